/* Holds OBJECTS objects and forks CHILDREN children, which live at the same time: each releases some
   objects, takes others, and ends when all have done so. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	int objects = atoi(arguments[1]), children = atoi(arguments[2]);
	int done[2], end[2];
	char byte = 0;
	void **held = malloc(objects * sizeof *held);
	if (pipe(done) != 0 || pipe(end) != 0)
		return 1;
	for (int place = 0; place < objects; place++)
		held[place] = malloc(40);
	for (int child = 0; child < children; child++) {
		if (fork() != 0)
			continue;
		close(end[1]);
		for (int place = child; place < objects; place += objects / 100) {
			free(held[place]);
			held[place] = malloc(100);
		}
		write(done[1], &byte, 1);
		read(end[0], &byte, 1);
		_exit(0);
	}
	for (int child = 0; child < children; child++)
		read(done[0], &byte, 1);
	/* The collector has read what the children wrote. */
	usleep(500000);
	close(end[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}

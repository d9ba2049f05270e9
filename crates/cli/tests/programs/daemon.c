/* Forks N times, one after the other, a child that becomes a daemon, every second one by the
   function of that name: its parent ends, and it releases what it inherited. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	for (int daemons = atoi(arguments[1]); daemons > 0; daemons--) {
		int parent = fork();
		if (parent != 0) {
			waitpid(parent, NULL, 0);
			continue;
		}
		void *held[1000];
		for (int place = 0; place < 1000; place++)
			held[place] = malloc(100);
		if (daemons % 2 ? daemon(1, 1) : fork())
			_exit(0);
		for (int place = 0; place < 1000; place++)
			free(held[place]);
		_exit(0);
	}
	return 0;
}

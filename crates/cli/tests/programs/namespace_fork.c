/* Takes BYTES, writes the file OWN, waits for the file OTHER, and forks a child that takes and
   releases something. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	char *kept = malloc(atol(arguments[1]));
	kept[0] = 1;
	if (close(open(arguments[2], O_CREAT | O_WRONLY, 0600)))
		return 1;
	while (access(arguments[3], F_OK))
		usleep(1000);
	int child = fork();
	if (child == 0) {
		free(malloc(123));
		free(kept);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	free(kept);
	return 0;
}

/* Goes to another root directory and forks a child, which lives for a while. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	if (chroot(arguments[1]) != 0 && (unshare(CLONE_NEWUSER) != 0 || chroot(arguments[1]) != 0))
		return 77;
	int child = fork();
	if (child == 0) {
		free(malloc(100));
		usleep(400000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}

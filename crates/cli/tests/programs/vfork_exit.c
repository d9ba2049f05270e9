/* Begins a program that does not exist, in a child that ends by exit, as no child of vfork may. Then
   it makes calls, and ends by a signal, or with an argument by exit. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	int status;
	pid_t child = vfork();
	if (child == 0) {
		execl("/nonexistent", "nonexistent", NULL);
		exit(127);
	}
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 127)
		return 1;
	for (int call = 0; call < 100000; call++)
		free(malloc(100));
	if (count < 2)
		raise(SIGKILL);
	exit(0);
}

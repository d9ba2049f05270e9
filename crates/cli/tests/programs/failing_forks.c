/* Tries N forks that fail, for it may have no more processes; exits with 77 if one succeeds. One in
   three each is of fork, daemon and forkpty. */
#include <pty.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	struct rlimit none = {0, 0};
	/* The limit is not for the superuser. */
	setuid(65534);
	setrlimit(RLIMIT_NPROC, &none);
	for (int forks = atoi(arguments[1]); forks > 0; forks--) {
		int terminal;
		int child = forks % 3 == 0 ? fork()
			: forks % 3 == 1 ? daemon(1, 1) : forkpty(&terminal, 0, 0, 0);
		/* In the child of daemon: the parent has gone. */
		if (child == 0)
			_exit(77);
		if (child > 0)
			return 77;
		free(malloc(100));
	}
	return 0;
}

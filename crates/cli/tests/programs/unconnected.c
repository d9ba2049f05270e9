/* Forks N children that cannot open a file, so that they send no ring, and allocates after each CALLS
   times: by default more than a ring holds. */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	struct rlimit none = {0, 0};
	int calls = count > 2 ? atoi(arguments[2]) : 140000;
	setrlimit(RLIMIT_NOFILE, &none);
	for (int children = atoi(arguments[1]); children > 0; children--) {
		int child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
		for (int call = 0; call < calls; call++)
			free(malloc(100));
	}
	return 0;
}

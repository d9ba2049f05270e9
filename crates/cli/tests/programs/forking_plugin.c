/* A library that forks when it is unloaded, the first time. Its child has to live as the parent. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int status;

void work(void)
{
	free(malloc(1000));
}

__attribute__((destructor)) static void unload(void)
{
	if (getenv("PLUGIN_HAS_FORKED") != NULL)
		return;
	setenv("PLUGIN_HAS_FORKED", "1", 1);
	int child = fork();
	if (child > 0 && waitpid(child, &status, 0) == child && status != 0)
		_exit(9);
}

/* A library whose handler of forks calls the allocator in the child, before the handlers of other
   libraries. */
#include <pthread.h>
#include <stdlib.h>

static void after_fork_in_child(void)
{
	free(malloc(100));
}

__attribute__((constructor)) static void load(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* A library that allocates, in a function of the name FUNCTION, below one that is always the same. */
#include <stdlib.h>

void *FUNCTION(void)
{
	return malloc(1000);
}

void work(void)
{
	for (int i = 0; i < 500; i++)
		free(FUNCTION());
}

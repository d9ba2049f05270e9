/* Asks for memory in `keep_memory` and ends at once. */
#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) static void keep_memory(void)
{
	kept = malloc(50000000);
}

int main(void)
{
	keep_memory();
	return 0;
}

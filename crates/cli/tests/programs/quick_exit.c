/* Ends by quick_exit, or with an argument by _exit. */
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	free(malloc(10));
	if (count > 1)
		_exit(0);
	quick_exit(0);
}

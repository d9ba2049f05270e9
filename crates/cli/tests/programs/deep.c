/* Allocates at the end of a recursion of N calls. */
#include <stdlib.h>
#include <unistd.h>

void *descend(int levels)
{
	if (levels == 0)
		return malloc(100000);
	void *found = descend(levels - 1);
	/* Not a tail call. */
	return (char *)found + (found == NULL);
}

int main(int count, char **arguments)
{
	/* Until the files of the program are known. */
	usleep(300000);
	for (int i = 0; i < 20; i++)
		free(descend(atoi(arguments[1])));
	return 0;
}

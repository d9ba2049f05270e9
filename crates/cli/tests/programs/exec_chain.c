/* Allocates in a function that is named FUNCTION, and then begins the programs that are its
   arguments, each with the rest of them. */
#include <stdlib.h>
#include <unistd.h>

void *FUNCTION(void)
{
	return malloc(10000);
}

int main(int count, char **arguments)
{
	for (int i = 0; i < 50; i++)
		if (FUNCTION() == NULL)
			return 1;
	if (count > 1)
		execv(arguments[1], arguments + 1);
	return 0;
}

/* Allocates N times, with releases in between, and kills itself; or ends, with a second argument. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
	long calls = atol(arguments[1]);
	static void *held[1000];
	unsigned x = 1;
	for (long call = 0; call < calls; call++) {
		x = x * 1664525u + 1013904223u;
		unsigned place = (x >> 8) % 1000;
		free(held[place]);
		held[place] = malloc((x >> 16) % 500 + 1);
	}
	if (count < 3)
		raise(SIGKILL);
	return 0;
}

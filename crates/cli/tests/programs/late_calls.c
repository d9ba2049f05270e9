/* Writes a message after more calls than can have been read by then, and ten calls a while after. */
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	for (int round = 0; round < 20; round++) {
		for (int call = 0; call < 50000; call++)
			free(malloc(32));
		write(2, "First: 1%\nSecond: 1%\n", 21);
		usleep(50000);
		for (int call = 0; call < 10; call++)
			malloc(100);
		write(2, "First: 1%\n", 10);
		usleep(50000);
	}
	return 0;
}

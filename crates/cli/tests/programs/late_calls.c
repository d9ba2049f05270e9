/* Writes messages right after more calls than can have been read by then, and makes ten calls once a
   message has been passed on to the named pipe of the argument. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes a message and waits until it arrives. */
static void send(const char *message, int passed_on)
{
	size_t length = strlen(message);
	if (write(2, message, length) != (ssize_t)length)
		_exit(1);
	for (char byte; length > 0; length--)
		if (read(passed_on, &byte, 1) != 1)
			_exit(1);
}

int main(int count, char **arguments)
{
	int passed_on = open(arguments[1], O_RDONLY);
	for (int round = 0; round < 20; round++) {
		for (int call = 0; call < 50000; call++)
			free(malloc(32));
		send("First: 1%\nSecond: 1%\n", passed_on);
		for (int call = 0; call < 10; call++)
			malloc(100);
		send("First: 1%\n", passed_on);
	}
	return 0;
}

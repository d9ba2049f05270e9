/* Allocates N times while a timer interrupts each wait. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static void ignore(int number)
{
}

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_handler = ignore};
	struct itimerval timer = {{0, 5000}, {0, 5000}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (long calls = atol(arguments[1]); calls > 0; calls--)
		free(malloc(100));
	return 0;
}

/* Eight threads that ask for memory as fast as they can, with little of it live. */
#include <pthread.h>
#include <stdlib.h>

static void *ask(void *nothing)
{
	void *held[100];
	for (int round = 0; round < 1000; round++) {
		for (int number = 0; number < 100; number++)
			held[number] = malloc(16 + round * number % 4000);
		for (int number = 0; number < 100; number++)
			free(held[number]);
	}
	return nothing;
}

int main(void)
{
	pthread_t threads[8];
	for (int number = 0; number < 8; number++)
		pthread_create(threads + number, 0, ask, 0);
	for (int number = 0; number < 8; number++)
		pthread_join(threads[number], 0);
	return 0;
}

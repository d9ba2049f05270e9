/* Forks N times while three other threads allocate and release. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int has_ended;

static void *allocate(void *ignored)
{
	void *held[100] = {0};
	for (unsigned call = 0; !atomic_load(&has_ended); call++) {
		free(held[call % 100]);
		held[call % 100] = malloc(call % 500 + 1);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[3];
	for (int number = 0; number < 3; number++)
		pthread_create(&threads[number], NULL, allocate, NULL);
	for (int forks = atoi(arguments[1]); forks > 0; forks--) {
		void *held = malloc(1000);
		int child = fork();
		if (child == 0) {
			/* What other threads had released is allocated again. */
			for (int call = 0; call < 10000; call++)
				malloc(call % 500 + 1);
			free(held);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		free(held);
	}
	atomic_store(&has_ended, 1);
	for (int number = 0; number < 3; number++)
		pthread_join(threads[number], NULL);
	return 0;
}

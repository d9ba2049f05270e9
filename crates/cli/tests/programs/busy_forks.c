/* Forks N times. Between the recorder's handler of a fork and the fork, three other threads release
   100 objects each and allocate larger ones: 100 bytes in the first round, 200 in the next. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int has_ended;
/* Of the three threads and the one that forks. */
static pthread_barrier_t begin, end;

static void *allocate(void *ignored)
{
	void *held[100] = {0};
	for (int round = 1;; round++) {
		pthread_barrier_wait(&begin);
		if (has_ended)
			return NULL;
		for (int index = 0; index < 100; index++) {
			free(held[index]);
			held[index] = malloc(100 * round);
		}
		pthread_barrier_wait(&end);
	}
}

static void let_threads_allocate(void)
{
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
}

/* Handlers run from the last one to the first, and this one is older than those of libraries. */
static void add_handler(void)
{
	pthread_atfork(let_threads_allocate, NULL, NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*const preparation)(void) = add_handler;

int main(int count, char **arguments)
{
	pthread_barrier_init(&begin, NULL, 4);
	pthread_barrier_init(&end, NULL, 4);
	pthread_t threads[3];
	for (int number = 0; number < 3; number++)
		pthread_create(&threads[number], NULL, allocate, NULL);
	for (int forks = atoi(arguments[1]); forks > 0; forks--) {
		void *held = malloc(1000);
		int child = fork();
		if (child == 0) {
			free(held);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		free(held);
	}
	has_ended = 1;
	pthread_barrier_wait(&begin);
	for (int number = 0; number < 3; number++)
		pthread_join(threads[number], NULL);
	return 0;
}

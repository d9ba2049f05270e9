/* Forks in two threads at the same moment, ROUNDS times: each child releases what its thread has
   allocated just before. A handler that is registered before all others, and so runs last, lets both
   threads wait for each other just before their forks. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int arrived;
static int rounds;

/* Waits for the other thread. */
static void meet(void)
{
	int number = atomic_fetch_add(&arrived, 1);
	while (atomic_load(&arrived) < (number / 2 + 1) * 2)
		sched_yield();
}

static void register_meeting(void)
{
	pthread_atfork(meet, NULL, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = register_meeting;

static void *run(void *ignored)
{
	void *held[1000];
	for (int round = 0; round < rounds; round++) {
		for (int place = 0; place < 1000; place++)
			held[place] = malloc(100);
		/* No thread allocates while the other one forks. */
		meet();
		int child = fork();
		if (child == 0) {
			for (int place = 0; place < 1000; place++)
				free(held[place]);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		meet();
		for (int place = 0; place < 1000; place++)
			free(held[place]);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t other;
	rounds = atoi(arguments[1]);
	pthread_create(&other, NULL, run, NULL);
	run(NULL);
	pthread_join(other, NULL);
	return 0;
}

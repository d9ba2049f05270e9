/* Its first thread ends; then another one asks for memory in `keep_memory`. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns whether the first thread has ended: its state is that of a zombie. */
static int has_first_ended(void)
{
	char path[64], state = 0;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
	FILE *file = fopen(path, "r");
	if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		exit(1);
	fclose(file);
	return state == 'Z';
}

static void *volatile kept;

__attribute__((noinline)) static void keep_memory(void)
{
	kept = malloc(50000000);
}

static void *allocate(void *ignored)
{
	while (!has_first_ended())
		sched_yield();
	keep_memory();
	exit(0);
}

int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, allocate, NULL);
	pthread_exit(NULL);
}

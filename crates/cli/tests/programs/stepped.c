/* Allocates 50 times 1,000 bytes while a handler runs after each instruction, which names a number;
   then, beside a second thread, 100,000 times 2,000 bytes while a timer runs the handler. Writes to
   the file TRUTH how many numbers there were. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile long numbers;

static void name_number(int number)
{
	numbers += access("/larder/number/steps/1", 0) == 0;
}

/* The trap flag makes the processor interrupt the program after each instruction. */
#define STEP() __asm__ volatile("pushf; orq $0x100, (%%rsp); popf" ::: "memory", "cc")
#define RUN() __asm__ volatile("pushf; andq $~0x100, (%%rsp); popf" ::: "memory", "cc")

static void *wait_for_end(void *gate)
{
	char byte;
	read(((int *)gate)[0], &byte, 1);
	return NULL;
}

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_handler = name_number, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 100}, {0, 100}}, none = {{0, 0}, {0, 0}};
	pthread_t thread;
	int gate[2];
	sigaction(SIGTRAP, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	for (int round = 0; round < 50; round++) {
		STEP();
		free(malloc(1000));
		RUN();
	}
	pipe(gate);
	setitimer(ITIMER_REAL, &timer, NULL);
	pthread_create(&thread, NULL, wait_for_end, gate);
	for (int round = 0; round < 100000; round++)
		free(malloc(2000));
	setitimer(ITIMER_REAL, &none, NULL);
	close(gate[1]);
	pthread_join(thread, NULL);
	FILE *truth = fopen(arguments[1], "w");
	fprintf(truth, "%ld\n", numbers);
	return fclose(truth);
}

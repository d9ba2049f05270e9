/* Forks in the handler of a signal after each instruction of a malloc and a free, once for each:
   the child goes on there. Exit code: the number of children that a signal killed. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long step, target, child, is_plain;
int _Fork(void) __attribute__((weak));

static void fork_at_target(int number, siginfo_t *info, void *context)
{
	if (++step != target)
		return;
	child = is_plain ? _Fork() : fork();
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

/* The trap flag makes the processor interrupt the program after each instruction. */
#define STEP() __asm__ volatile("pushf; orq $0x100, (%%rsp); popf" ::: "memory", "cc")
#define RUN() __asm__ volatile("pushf; andq $~0x100, (%%rsp); popf" ::: "memory", "cc")

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_sigaction = fork_at_target, .sa_flags = SA_SIGINFO | SA_RESTART};
	int killed = 0, stride = atoi(arguments[1]);
	is_plain = count > 2 && _Fork != NULL;
	sigaction(SIGTRAP, &action, NULL);
	free(malloc(1000));
	for (int is_left = 1; is_left;) {
		target += stride;
		step = 0;
		child = -1;
		STEP();
		free(malloc(1000));
		RUN();
		if (child == 0) {
			for (int call = 0; call < 10; call++)
				free(malloc(1000));
			_exit(0);
		}
		int status = 0;
		is_left = child > 0 && waitpid(child, &status, 0) == child;
		killed += WIFSIGNALED(status);
	}
	return killed < 100 ? killed : 100;
}

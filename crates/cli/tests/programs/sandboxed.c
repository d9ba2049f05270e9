/* Writes its id to FILE, forbids itself all system calls but a few, makes more calls than a ring
   holds, and ends by exit:
       sandboxed FILE
   From the id on it sleeps only when it waits for larder. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int count, char **arguments)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(futex), ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	FILE *file = fopen(arguments[1], "w");
	fprintf(file, "%d\n", getpid());
	fclose(file);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	for (int call = 0; call < 300000; call++)
		free(malloc(64 + call % 64));
	return 0;
}

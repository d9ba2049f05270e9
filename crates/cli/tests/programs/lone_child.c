/* Forks a child that is not recorded, and waits until larder has looked at the processes:
       lone_child ORDER ROOT [PROGRAM]
   The child runs PROGRAM, or ends when larder has looked. ORDER: "before" goes to the root directory
   ROOT before the fork, "after" in the child, "dead" is as "before" with a child that ends at once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the bytes that larder has read: it reads only to look at processes. */
static long bytes_read(int io)
{
	char text[400];
	long bytes = -1;
	int length = pread(io, text, sizeof text - 1, 0);
	if (length > 0) {
		text[length] = 0;
		sscanf(text, "rchar: %ld", &bytes);
	}
	return bytes;
}

static int change_root(const char *root)
{
	return chroot(root) != 0 || chdir("/") != 0 ? 77 : 0;
}

int main(int count, char **arguments)
{
	int gate[2], started[2];
	char path[100], byte;
	snprintf(path, sizeof path, "/proc/%d/io", getppid());
	int io = open(path, O_RDONLY);
	if (io < 0 || bytes_read(io) < 0 || pipe2(gate, O_CLOEXEC) != 0 || pipe2(started, O_CLOEXEC) != 0)
		return 77;
	int is_after = strcmp(arguments[1], "after") == 0, is_dead = strcmp(arguments[1], "dead") == 0;
	if (!is_after && change_root(arguments[2]) != 0)
		return 77;
	int child = fork();
	if (child == 0) {
		if (is_dead)
			_exit(0);
		if (is_after && change_root(arguments[2]) != 0)
			_exit(77);
		dup2(gate[0], 0);
		close(gate[1]);
		if (count > 3)
			execv(arguments[3], arguments + 3);
		free(malloc(100));
		close(started[1]);
		read(0, &byte, 1);
		_exit(0);
	}
	close(started[1]);
	read(started[0], &byte, 1);
	/* A change may be from before the child, or in the middle. */
	long last = bytes_read(io);
	for (int changes = 0; changes < 6;) {
		usleep(1000);
		long now = bytes_read(io);
		changes += now != last;
		last = now;
	}
	close(gate[1]);
	int status;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

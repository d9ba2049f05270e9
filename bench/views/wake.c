/* The floor of notifying another process: the time from a call in one process to the wake-up of another that waits.
 *
 *   wake FILE CHANGES
 *
 * One process writes a byte into FILE, which the other watches with inotify; then one process writes into an eventfd, which the
 * other reads. Each line of output has these columns, separated by tabs: row, wall-clock time (median and minimum), 0, 1,
 * repetitions, wall-clock time (p99). Times are in microseconds, from the writing call to the wake-up.
 *
 * build: gcc -O2 -o wake wake.c
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now (void)
{
	struct timespec time;

	clock_gettime (CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int compare (const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return x < y ? -1 : x > y;
}

static void check (int ok, const char *what)
{
	if (!ok) {
		perror (what);
		exit (1);
	}
}

/* The writer stores its times in memory that both processes share. */
static void one (const char *row, const char *file, int changes, int by_event)
{
	double *wrote = mmap (NULL, changes * sizeof *wrote, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double *heard = calloc (changes, sizeof *heard);
	int fd = open (file, O_RDWR | O_CREAT, 0600), event = eventfd (0, 0), watch = inotify_init (), i, status;
	char room[4096];
	int heard_it[2];
	pid_t child;

	check (pipe (heard_it) == 0, "pipe");
	check (wrote != MAP_FAILED && fd >= 0 && event >= 0 && watch >= 0, row);
	check (inotify_add_watch (watch, file, IN_MODIFY) >= 0, file);
	child = fork ();
	check (child >= 0, "fork");
	if (child == 0) {
		unsigned long long more = 1;

		for (i = 0; i < changes; i++) {
			usleep (5000 + i * 7919L % 15000);
			wrote[i] = now ();
			check (by_event ? write (event, &more, 8) == 8 : pwrite (fd, "x", 1, 0) == 1, "write");
			/* The kernel merges two equal events that were not read yet. */
			check (read (heard_it[0], &more, 1) == 1, "the reader");
			more = 1;
		}
		_exit (0);
	}
	for (i = 0; i < changes; i++) {
		check ((by_event ? read (event, room, 8) : read (watch, room, sizeof room)) > 0, "read");
		heard[i] = now ();
		check (write (heard_it[1], "x", 1) == 1, "write");
	}
	check (waitpid (child, &status, 0) == child && status == 0, "the writer");
	for (i = 0; i < changes; i++)
		heard[i] -= wrote[i];
	qsort (heard, changes, sizeof *heard, compare);
	printf ("%s\t%.1f\t%.1f\t0\t1\t%d\t%.1f\n", row, heard[changes / 2], heard[0], changes, heard[changes * 99 / 100]);
	close (heard_it[0]);
	close (heard_it[1]);
	close (fd);
	close (event);
	close (watch);
	free (heard);
}

int main (int argc, char **argv)
{
	int changes = argc > 2 ? atoi (argv[2]) : 0;

	check (changes > 0, "wake FILE CHANGES");
	one ("wake-inotify", argv[1], changes, 0);
	one ("wake-eventfd", argv[1], changes, 1);
	return 0;
}

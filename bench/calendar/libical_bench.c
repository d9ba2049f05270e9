/* Measures libical in memory on parts of Larder's work: parsing a file, and finding the occurrences in the time ranges of
 * some queries. There is no index: every component is expanded for each range.
 *
 *   libical_bench FILE QUERIES SECONDS
 *
 * QUERIES are the output of `larder measure generate queries`, of which the days and months are used. Prints a line for
 * each operation, with the columns of bench/eds/calendar_bench.c: row TAB wall TAB 0 TAB CPU TAB hits TAB repetitions TAB
 * p99, in microseconds. Overridden occurrences are not removed from their series, so a few hits are counted twice.
 *
 * build: gcc -O2 -o libical_bench libical_bench.c $(pkg-config --cflags --libs libical)
 */
#include <libical/ical.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FEWEST 3
#define MOST 20000

static double times[MOST], cpu_before;

static void die (const char *what)
{
	fprintf (stderr, "libical_bench: %s\n", what);
	exit (1);
}

static double microseconds (clockid_t clock)
{
	struct timespec time;

	clock_gettime (clock, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static double now (void) { return microseconds (CLOCK_MONOTONIC); }

static void begin (void) { cpu_before = microseconds (CLOCK_PROCESS_CPUTIME_ID); }

static int compare (const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return x < y ? -1 : x > y;
}

static void figures (const char *row, int n, double hits)
{
	double cpu = microseconds (CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
	int last = n * 99 / 100;

	if (!n)
		return;
	qsort (times, n, sizeof *times, compare);
	printf ("%s\t%.1f\t0\t%.1f\t%.1f\t%d\t%.1f\n", row, times[n / 2], cpu / n, hits / n, n, times[last < n ? last : n - 1]);
	fflush (stdout);
}

static char *read_all (const char *path)
{
	FILE *file = fopen (path, "rb");
	char *text;
	long size;

	if (!file || fseek (file, 0, SEEK_END) || (size = ftell (file)) < 0)
		die (path);
	rewind (file);
	text = malloc (size + 1);
	if (!text || fread (text, 1, size, file) != (size_t) size)
		die (path);
	text[size] = 0;
	fclose (file);
	return text;
}

/* Returns midnight UTC of a day, from the nth make-time of an expression. */
static icaltimetype time_of (const char *sexp, int nth)
{
	char text[9] = "";

	for (; nth >= 0 && sexp; nth--)
		sexp = strstr (sexp + 1, "(make-time \"");
	if (!sexp || strlen (sexp) < 20)
		die ("no time in an expression");
	memcpy (text, sexp + 12, 8);
	{
		icaltimetype time = icaltime_from_string (text);

		time.is_date = 0;
		time.zone = icaltimezone_get_utc_timezone ();
		return time;
	}
}

static void count_one (icalcomponent *component, struct icaltime_span *span, void *count)
{
	++*(long *) count;
}

static long expand (icalcomponent *calendar, const char *sexp)
{
	icaltimetype from = time_of (sexp, 0), to = time_of (sexp, 1);
	icalcomponent *one;
	long hits = 0;

	for (one = icalcomponent_get_first_component (calendar, ICAL_VEVENT_COMPONENT); one;
		one = icalcomponent_get_next_component (calendar, ICAL_VEVENT_COMPONENT))
		icalcomponent_foreach_recurrence (one, from, to, count_one, &hits);
	return hits;
}

static void one_row (icalcomponent *calendar, const char *queries, const char *row, const char *kind, double seconds)
{
	double start, hits = 0, before;
	const char *at = queries;
	int n = 0;

	begin ();
	for (start = now (); n < MOST && (n < FEWEST || now () - start < seconds * 1e6);) {
		const char *sexp;

		/* The next line of the kind, after the last one the first again. */
		while (*at && strncmp (at, kind, strlen (kind)))
			at = strchr (at, '\n') ? strchr (at, '\n') + 1 : "";
		if (!*at) {
			if (!n)
				return;
			at = queries;
			continue;
		}
		sexp = strstr (at, "\t(");
		if (!sexp)
			die ("no expression");
		before = now ();
		hits += expand (calendar, sexp);
		times[n++] = now () - before;
		at = strchr (at, '\n') ? strchr (at, '\n') + 1 : "";
	}
	figures (row, n, hits);
}

int main (int argc, char **argv)
{
	char *text, *queries;
	icalcomponent *calendar;
	double seconds;

	if (argc < 4)
		die ("libical_bench FILE QUERIES SECONDS");
	text = read_all (argv[1]);
	queries = read_all (argv[2]);
	seconds = atof (argv[3]);
	begin ();
	times[0] = now ();
	calendar = icalparser_parse_string (text);
	times[0] = now () - times[0];
	if (!calendar)
		die ("no calendar");
	figures ("parse", 1, icalcomponent_count_components (calendar, ICAL_ANY_COMPONENT));
	one_row (calendar, queries, "day-expanded", "day\t", seconds);
	one_row (calendar, queries, "month-expanded", "month\t", seconds);
	begin ();
	times[0] = now ();
	text = icalcomponent_as_ical_string_r (calendar);
	times[0] = now () - times[0];
	figures ("write", 1, strlen (text));
	return 0;
}

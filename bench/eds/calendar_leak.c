/* Measures the memory left in the calendar service of evolution-data-server by clients that are killed with open views.
 *
 *   calendar_leak EVENTS VIEWS ROUNDS
 *
 * Opens a calendar with a number of events. In each round another process opens views of all events, waits until all are
 * complete, and kills itself without closing them. Prints a line for each round: round TAB views left open so far TAB RssAnon
 * of the service in kB TAB its CPU time for one more event, in microseconds.
 *
 * build: gcc -O2 -o calendar_leak calendar_leak.c $(pkg-config --cflags --libs libecal-2.0)
 */
#define PROGRAM "calendar_leak"
#include "calendar.h"
#include <sys/wait.h>

static GMainLoop *loop;
static gint waiting;

static void complete (ECalClientView *view, GError *error, gpointer data)
{
	if (--waiting == 0)
		g_main_loop_quit (loop);
}

static void child (const gchar *uid, gint views)
{
	ESourceRegistry *registry = e_source_registry_new_sync (NULL, NULL);
	ESource *source = e_source_registry_ref_source (registry, uid);
	ECalClient *client;
	gint i;

	if (!source)
		die ("no source", NULL);
	client = connect_to (source);
	loop = g_main_loop_new (NULL, FALSE);
	for (i = 0; i < views; i++) {
		ECalClientView *view = NULL;
		GError *error = NULL;

		if (!e_cal_client_get_view_sync (client, "#t", &view, NULL, &error))
			die ("view", error);
		g_signal_connect (view, "complete", G_CALLBACK (complete), NULL);
		waiting++;
		e_cal_client_view_start (view, NULL);
	}
	g_main_loop_run (loop);
	kill (getpid (), SIGKILL);
}

static ICalComponent *event (gint i)
{
	gchar *text = g_strdup_printf ("BEGIN:VEVENT\r\nUID:leak-%d@example.org\r\nDTSTAMP:20200101T000000Z\r\n"
		"DTSTART:2025%02d%02dT%02d0000Z\r\nDTEND:2025%02d%02dT%02d3000Z\r\nSUMMARY:Event %d\r\nDESCRIPTION:Some text for event %d\r\n"
		"END:VEVENT\r\n", i, i % 12 + 1, i % 28 + 1, i % 24, i % 12 + 1, i % 28 + 1, i % 24, i, i);
	ICalComponent *component = parse (text);

	g_free (text);
	return component;
}

static void create (ECalClient *client, gint from, gint to)
{
	GSList *list = NULL, *uids = NULL;
	GError *error = NULL;

	for (; from < to; from++)
		list = g_slist_prepend (list, event (from));
	if (!e_cal_client_create_objects_sync (client, list, E_CAL_OPERATION_FLAG_NONE, &uids, NULL, &error))
		die ("create", error);
	g_slist_free_full (uids, g_free);
	g_slist_free_full (list, g_object_unref);
}

int main (int argc, char **argv)
{
	GError *error = NULL;
	ESourceRegistry *registry;
	ECalClient *client;
	ESource *source;
	gint round, events, rounds;

	if (argc < 4)
		die ("calendar_leak EVENTS VIEWS ROUNDS", NULL);
	if (!strcmp (argv[1], "--child")) {
		child (argv[2], atoi (argv[3]));
		return 1;
	}
	events = atoi (argv[1]);
	rounds = atoi (argv[3]);
	registry = e_source_registry_new_sync (NULL, &error);
	if (!registry)
		die ("registry", error);
	source = new_source (registry, NULL, NULL);
	client = connect_to (source);
	create (client, 0, events);
	for (round = 0; round <= rounds; round++) {
		gint64 kept;

		if (round > 0) {
			pid_t pid = fork ();
			gint status;

			if (pid == 0) {
				execl (argv[0], argv[0], "--child", e_source_get_uid (source), argv[2], NULL);
				_exit (9);
			}
			waitpid (pid, &status, 0);
			if (!WIFSIGNALED (status) || WTERMSIG (status) != SIGKILL)
				die ("the client ended by itself", NULL);
			g_usleep (2000000);
		}
		kept = number (service_pid (), "status", "RssAnon:");
		begin ();
		create (client, 1000000 + round, 1000001 + round);
		g_usleep (1500000); /* includes later notifications */
		printf ("%d\t%d\t%" G_GINT64_FORMAT "\t%" G_GINT64_FORMAT "\n", round, round * atoi (argv[2]), kept,
			(processor (watched) - service_before) / 1000);
		fflush (stdout);
	}
	return 0;
}

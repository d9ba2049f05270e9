/* Opens many views of a calendar of evolution-data-server, through libecal and D-Bus, and changes the calendar. Uses the
 * public client interface only.
 *
 *   views_bench FILE QUERIES OUTPUT BATCH CHANGES
 *
 * Imports the VEVENTs of FILE into a new calendar and writes the stored events to OUTPUT, as calendar_bench does; ends the
 * service and opens the calendar again; with a view on the first of the QUERIES, changes a single event a number of times,
 * and waits each time until the view is notified; then opens a view on each of the QUERIES, waits until all are complete, and
 * repeats the changes. The columns are those of calendar_bench; the time of a change is from its return to the notification.
 *
 * build: gcc -O2 -o views_bench views_bench.c $(pkg-config --cflags --libs libecal-2.0)
 */
#define PROGRAM "views_bench"
#include "calendar.h"

static gint waiting, seen;

static void told (ECalClientView *view, GSList *objects, gpointer data) { seen += g_slist_length (objects); }

static void complete (ECalClientView *view, GError *error, gpointer data) { waiting--; }

static ECalClientView *open_view (ECalClient *client, const gchar *sexp)
{
	ECalClientView *view = NULL;
	GError *error = NULL;

	if (!e_cal_client_get_view_sync (client, sexp, &view, NULL, &error))
		die (sexp, error);
	g_signal_connect (view, "objects-added", G_CALLBACK (told), NULL);
	g_signal_connect (view, "objects-modified", G_CALLBACK (told), NULL);
	g_signal_connect (view, "complete", G_CALLBACK (complete), NULL);
	waiting++;
	e_cal_client_view_start (view, &error);
	if (error)
		die ("start", error);
	return view;
}

static void open_all (ECalClient *client)
{
	gint64 start;
	guint i;

	seen = 0;
	begin ();
	start = now ();
	for (i = 0; i < queries->len; i++)
		open_view (client, ((Query *) queries->pdata[i])->sexp);
	while (waiting > 0)
		g_main_context_iteration (NULL, TRUE);
	times[0] = now () - start;
	figures ("open-bytes", 1, seen);
}

static gboolean wake (gpointer data) { return G_SOURCE_CONTINUE; }

/* The event is in the time range of the first query. */
static void change (ECalClient *client, const gchar *row, gint changes)
{
	guint timer = g_timeout_add (1, wake, NULL);
	gint i;

	begin ();
	for (i = 0; i < changes; i++) {
		gchar *text = g_strdup_printf ("BEGIN:VEVENT\r\nUID:larder-bench-told\r\nDTSTAMP:20200101T000000Z\r\n"
			"DTSTART:20170110T100000Z\r\nDTEND:20170110T110000Z\r\nSUMMARY:Seen %d times\r\nEND:VEVENT\r\n", i);
		ICalComponent *component = parse (text);
		GError *error = NULL;
		gchar *uid = NULL;
		gint64 before;

		g_usleep (20000);
		while (g_main_context_iteration (NULL, FALSE));
		seen = 0;
		if (!(e_cal_client_modify_object_sync (client, component, E_CAL_OBJ_MOD_ALL, E_CAL_OPERATION_FLAG_NONE, NULL, NULL)
		      || e_cal_client_create_object_sync (client, component, E_CAL_OPERATION_FLAG_NONE, &uid, NULL, &error)))
			die ("change", error);
		before = now ();
		while (!seen)
			g_main_context_iteration (NULL, TRUE);
		times[i] = now () - before;
		g_free (uid);
		g_free (text);
		g_object_unref (component);
	}
	g_source_remove (timer);
	figures (row, i, i);
}

int main (int argc, char **argv)
{
	GError *error = NULL;
	ESourceRegistry *registry;
	ECalClient *client;
	ECalClientView *view;
	ESource *source;
	gint changes;

	if (argc < 6)
		die ("views_bench FILE QUERIES KEPT BATCH CHANGES", NULL);
	changes = CLAMP (atoi (argv[5]), 1, MOST);
	read_file (argv[1]);
	read_queries (argv[2]);
	registry = e_source_registry_new_sync (NULL, &error);
	if (!registry)
		die ("registry", error);
	source = new_source (registry, NULL, NULL);
	client = connect_to (source);
	import (client, CLAMP (atoi (argv[4]), 1, 100000));
	export (client, argv[3]);
	g_object_unref (client);
	end_service ();
	client = connect_to (source);
	view = open_view (client, ((Query *) queries->pdata[0])->sexp);
	while (waiting > 0)
		g_main_context_iteration (NULL, TRUE);
	change (client, "deliver-1", changes);
	g_object_unref (view);
	memory ("before");
	open_all (client);
	memory ("open");
	change (client, "deliver-all", changes);
	return 0;
}

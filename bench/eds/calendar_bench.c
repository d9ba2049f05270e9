/* Runs queries and changes on a calendar of evolution-data-server, through libecal and D-Bus. Uses the public client
 * interface only.
 *
 *   calendar_bench FILE QUERIES OUTPUT SECONDS BATCH
 *
 * Imports the VEVENTs of FILE into a new calendar, masters first, in batches (overrides cannot be created, so they are
 * modifications of their masters); writes the stored events to OUTPUT, after the head and time zones of FILE; ends the
 * service and opens the calendar again; runs each kind of the QUERIES (see `larder measure generate queries`) for a number
 * of seconds, and all of them once, with the number of their hits in OUTPUT.hits; changes single events. Prints a line for
 * each operation:
 *
 *   row TAB wall TAB service TAB client TAB hits TAB repetitions TAB p99
 *
 * where wall is the median, service and client are means of CPU time, all in microseconds, and hits are a mean.
 *
 * build: gcc -O2 -o calendar_bench calendar_bench.c $(pkg-config --cflags --libs libecal-2.0)
 */
#define PROGRAM "calendar_bench"
#include "calendar.h"

#define SINGLY 30
#define FEWEST 3

/* Returns the nth time of an expression, in seconds. */
static time_t time_of (const gchar *sexp, gint nth)
{
	gint year = 1970, month = 1, day = 1;
	gchar *text;
	GDateTime *when;
	time_t seconds;

	for (; nth >= 0 && sexp; nth--)
		sexp = strstr (sexp + 1, "(make-time \"");
	if (!sexp || sscanf (sexp, "(make-time \"%4d%2d%2d", &year, &month, &day) != 3)
		die ("no time in an expression", NULL);
	text = g_strdup_printf ("%04d-%02d-%02dT00:00:00Z", year, month, day);
	when = g_date_time_new_from_iso8601 (text, NULL);
	seconds = g_date_time_to_unix (when);
	g_date_time_unref (when);
	g_free (text);
	return seconds;
}

static gboolean count_one (ICalComponent *component, ICalTime *start, ICalTime *end, gpointer count,
	GCancellable *cancellable, GError **error)
{
	++*(glong *) count;
	return TRUE;
}

static glong ask (ECalClient *client, const gchar *row, const Query *query)
{
	GSList *list;
	glong hits = 0;

	if (!strcmp (row, "uid")) {
		const gchar *uid = strchr (query->line, ':') + 1;
		ICalComponent *component = NULL;
		GError *error = NULL;

		if (*uid == '=') /* an exact match */
			uid++;
		if (!e_cal_client_get_object_sync (client, uid, NULL, &component, NULL, &error))
			die (uid, error);
		g_object_unref (component);
		return 1;
	}
	if (g_str_has_suffix (row, "-expanded")) {
		e_cal_client_generate_instances_sync (client, time_of (query->sexp, 0), time_of (query->sexp, 1), NULL, count_one, &hits);
		return hits;
	}
	list = listed (client, query->sexp);
	hits = g_slist_length (list);
	g_slist_free_full (list, g_object_unref);
	return hits;
}

/* Times the queries of a kind in turn, for a number of seconds. */
static void one_row (ECalClient *client, const gchar *row, const gchar *kind, gdouble seconds)
{
	GPtrArray *some = g_ptr_array_new ();
	gdouble hits = 0;
	gint64 start;
	guint i;
	gint n;

	for (i = 0; i < queries->len; i++)
		if (!strcmp (((Query *) queries->pdata[i])->kind, kind))
			g_ptr_array_add (some, queries->pdata[i]);
	if (!some->len)
		return;
	ask (client, row, some->pdata[0]);
	begin ();
	start = now ();
	for (n = 0; n < MOST && (n < FEWEST || now () - start < seconds * 1e9); n++) {
		gint64 before = now ();

		hits += ask (client, row, some->pdata[n % some->len]);
		times[n] = now () - before;
	}
	figures (row, n, hits);
	g_ptr_array_free (some, TRUE);
}

/* Runs each query once, and writes the number of its hits to a file for comparison. */
static void mixed (ECalClient *client, const gchar *kept)
{
	gchar *path = g_strconcat (kept, ".hits", NULL);
	FILE *file = fopen (path, "wb");
	gdouble hits = 0;
	guint i;

	if (!file)
		die (path, NULL);

	begin ();
	for (i = 0; i < queries->len && i < MOST; i++) {
		const Query *query = queries->pdata[i];
		gint64 before = now ();
		glong found = ask (client, query->kind, query);

		times[i] = now () - before;
		hits += found;
		fprintf (file, "%s\t%s\t%ld\n", query->kind, query->line, found);
	}
	figures ("mixed", i, hits);
	if (fclose (file))
		die (path, NULL);
	g_free (path);
}

static void years (ECalClient *client)
{
	gdouble hits = 0;
	gint i;

	begin ();
	for (i = 0; i < 10; i++) {
		gchar *sexp = g_strdup_printf ("(occur-in-time-range? (make-time \"%d0101T000000Z\") (make-time \"%d0101T000000Z\"))",
			2017 + i, 2018 + i);
		Query query = { "year", "", sexp };
		gint64 before = now ();

		hits += ask (client, "year", &query);
		times[i] = now () - before;
		g_free (sexp);
	}
	figures ("year", i, hits);
}

static void open_again (ESource *source)
{
	Query everything = { "day", "", "(occur-in-time-range? (make-time \"20210301T000000Z\") (make-time \"20210302T000000Z\"))" };
	gint64 start;
	gint i;
	gdouble hits;
	ECalClient *client;

	end_service ();
	watched = 0;
	service_before = 0;
	client_before = processor (getpid ());
	start = now ();
	client = connect_to (source);
	hits = ask (client, "day", &everything);
	times[0] = now () - start;
	watched = service_pid ();
	figures ("open-cold", 1, hits);
	memory ("cold");
	g_object_unref (client);
	begin ();
	for (hits = i = 0; i < FEWEST; i++) {
		start = now ();
		client = connect_to (source);
		hits += ask (client, "day", &everything);
		times[i] = now () - start;
		g_object_unref (client);
	}
	figures ("open-warm", i, hits);
}

/* ---- changes --------------------------------------------------------------- */

static ICalComponent *own (gint i)
{
	ICalComponent *component = parse (masters->pdata[i % masters->len]);
	gchar *uid = g_strdup_printf ("larder-bench-single-%d", i);

	i_cal_component_set_uid (component, uid);
	g_free (uid);
	return component;
}

static void change_singly (ECalClient *client)
{
	static const gchar *rows[] = { "create", "modify", "remove" };
	gint row, i;

	for (row = 0; row < 3; row++) {
		begin ();
		for (i = 0; i < SINGLY; i++) {
			ICalComponent *component = own (i);
			GError *error = NULL;
			gchar *uid = NULL;
			gint64 before;
			gboolean done;

			if (row)
				i_cal_component_set_summary (component, "changed");
			before = now ();
			if (row == 0)
				done = e_cal_client_create_object_sync (client, component, E_CAL_OPERATION_FLAG_NONE, &uid, NULL, &error);
			else if (row == 1)
				done = e_cal_client_modify_object_sync (client, component, E_CAL_OBJ_MOD_ALL, E_CAL_OPERATION_FLAG_NONE, NULL, &error);
			else
				done = e_cal_client_remove_object_sync (client, i_cal_component_get_uid (component), NULL, E_CAL_OBJ_MOD_ALL,
					E_CAL_OPERATION_FLAG_NONE, NULL, &error);
			if (!done)
				die (rows[row], error);
			times[i] = now () - before;
			g_free (uid);
			g_object_unref (component);
		}
		figures (rows[row], i, i);
	}
}

int main (int argc, char **argv)
{
	static const gchar *kinds[] = { "day", "week", "month", "list", "alarms", "words", "uid" };
	GError *error = NULL;
	ESourceRegistry *registry;
	ECalClient *client;
	ESource *source;
	gdouble seconds;
	guint i;

	if (argc < 6)
		die ("calendar_bench FILE QUERIES KEPT SECONDS BATCH", NULL);
	seconds = g_ascii_strtod (argv[4], NULL);
	read_file (argv[1]);
	read_queries (argv[2]);
	registry = e_source_registry_new_sync (NULL, &error);
	if (!registry)
		die ("registry", error);
	source = new_source (registry, NULL, NULL);
	client = connect_to (source);
	import (client, CLAMP (atoi (argv[5]), 1, 100000));
	export (client, argv[3]);
	g_object_unref (client);
	open_again (source);
	client = connect_to (source);
	for (i = 0; i < G_N_ELEMENTS (kinds); i++)
		one_row (client, kinds[i], kinds[i], seconds);
	one_row (client, "month-expanded", "month", seconds);
	years (client);
	mixed (client, argv[3]);
	memory ("asked");
	change_singly (client);
	memory ("changed");
	g_object_unref (client);
	return 0;
}

/* Functions of the programs for calendars: creating a calendar, adding events, queries, figures. Uses the public client
 * interface only. Included once by each program, which defines its name as PROGRAM.
 */
#include <libecal/libecal.h>

#define SERVICE "org.gnome.evolution.dataserver.Calendar8"
#define EXTENSION E_SOURCE_EXTENSION_CALENDAR

#include "service.h"
#include <signal.h>

#define MOST 20000

/* ---- times and figures -------------------------------------------------- */

static pid_t watched;
static gint64 service_before, client_before;
static gint64 times[MOST];

static gint64 now (void) { return nanoseconds (CLOCK_MONOTONIC); }

static void begin (void)
{
	watched = service_pid ();
	service_before = processor (watched);
	client_before = processor (getpid ());
}

static int compare (const void *a, const void *b)
{
	gint64 x = *(const gint64 *) a, y = *(const gint64 *) b;

	return x < y ? -1 : x > y;
}

static void figures (const gchar *row, gint n, gdouble hits)
{
	gdouble service = processor (watched) - service_before, client = processor (getpid ()) - client_before;

	if (n == 0)
		return;
	qsort (times, n, sizeof *times, compare);
	printf ("%s\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%.1f\n", row, times[n / 2] / 1e3, service / n / 1e3, client / n / 1e3,
		hits / n, n, times[MIN (n - 1, n * 99 / 100)] / 1e3);
	fflush (stdout);
}

static void memory (const gchar *when)
{
	pid_t pid = service_pid ();

	printf ("memory-%s\t%" G_GINT64_FORMAT " kB anonymous, service\t%" G_GINT64_FORMAT " kB, client\n", when,
		number (pid, "status", "RssAnon:"), number (getpid (), "status", "RssAnon:"));
	fflush (stdout);
}

/* ---- the calendar -------------------------------------------------------- */

static ECalClient *connect_to (ESource *source)
{
	GError *error = NULL;
	EClient *client = NULL;
	gint i;

	for (i = 0; i < 500 && !client; i++) {
		if (i)
			g_usleep (20000);
		g_clear_error (&error);
		client = e_cal_client_connect_sync (source, E_CAL_CLIENT_SOURCE_TYPE_EVENTS, (guint32) -1, NULL, &error);
	}
	if (!client)
		die ("connect", error);
	return (ECalClient *) client;
}

/* The parts of a file: the text before the events, and the texts of the events. */
static GString *head;
static GPtrArray *zones, *masters, *detached;
static gint others;

static void read_file (const gchar *path)
{
	FILE *file = fopen (path, "rb");
	GString *text = g_string_new (NULL);
	gchar *line = NULL;
	size_t room = 0;
	ssize_t length;
	gboolean in_head = TRUE;

	if (!file)
		die (path, NULL);
	head = g_string_new (NULL);
	zones = g_ptr_array_new ();
	masters = g_ptr_array_new ();
	detached = g_ptr_array_new ();
	while ((length = getline (&line, &room, file)) >= 0) {
		if (!strncmp (line, "BEGIN:VEVENT", 12) || !strncmp (line, "BEGIN:VTIMEZONE", 15))
			g_string_truncate (text, 0);
		if (!strncmp (line, "BEGIN:VEVENT", 12) || !strncmp (line, "BEGIN:VTODO", 11) || !strncmp (line, "BEGIN:VJOURNAL", 14))
			in_head = FALSE;
		if (in_head)
			g_string_append_len (head, line, length);
		g_string_append_len (text, line, length);
		if (!strncmp (line, "END:VEVENT", 10))
			g_ptr_array_add (strstr (text->str, "\nRECURRENCE-ID") ? detached : masters, g_strdup (text->str));
		else if (!strncmp (line, "END:VTIMEZONE", 13))
			g_ptr_array_add (zones, g_strdup (text->str));
		else if (!strncmp (line, "END:VTODO", 9) || !strncmp (line, "END:VJOURNAL", 12))
			others++;
	}
	free (line);
	fclose (file);
	g_string_free (text, TRUE);
}

static ICalComponent *parse (const gchar *text)
{
	ICalComponent *component = i_cal_component_new_from_string (text);

	if (!component)
		die (text, NULL);
	return component;
}

static void add_zones (ECalClient *client)
{
	guint i;

	for (i = 0; i < zones->len; i++) {
		ICalTimezone *zone = i_cal_timezone_new ();
		ICalComponent *component = parse (zones->pdata[i]);
		GError *error = NULL;

		if (!i_cal_timezone_set_component (zone, component) || !e_cal_client_add_timezone_sync (client, zone, NULL, &error))
			die ("add a zone", error);
		g_object_unref (component);
		g_object_unref (zone);
	}
}

static void add_all (ECalClient *client, GPtrArray *texts, guint batch, gboolean create)
{
	guint i = 0, j;

	while (i < texts->len) {
		GSList *list = NULL, *uids = NULL;
		GError *error = NULL;

		for (j = 0; j < batch && i < texts->len; j++)
			list = g_slist_prepend (list, parse (texts->pdata[i++]));
		list = g_slist_reverse (list);
		if (create ? !e_cal_client_create_objects_sync (client, list, E_CAL_OPERATION_FLAG_NONE, &uids, NULL, &error)
		           : !e_cal_client_modify_objects_sync (client, list, E_CAL_OBJ_MOD_THIS, E_CAL_OPERATION_FLAG_NONE, NULL, &error))
			die (create ? "create" : "detach", error);
		g_slist_free_full (uids, g_free);
		g_slist_free_full (list, g_object_unref);
	}
}

static void import (ECalClient *client, guint batch)
{
	gint64 written;

	memory ("empty");
	add_zones (client);
	begin ();
	written = number (watched, "io", "\nwrite_bytes:");
	times[0] = now ();
	add_all (client, masters, batch, TRUE);
	times[0] = now () - times[0];
	figures ("import", 1, masters->len);
	begin ();
	times[0] = now ();
	add_all (client, detached, batch, FALSE);
	times[0] = now () - times[0];
	figures ("import-detached", 1, detached->len);
	printf ("import-written\t%" G_GINT64_FORMAT " bytes\n", number (watched, "io", "\nwrite_bytes:") - written);
}

static GSList *listed (ECalClient *client, const gchar *sexp)
{
	GSList *list = NULL;
	GError *error = NULL;

	if (!e_cal_client_get_object_list_sync (client, sexp, &list, NULL, &error))
		die (sexp, error);
	return list;
}

static void export (ECalClient *client, const gchar *path)
{
	GSList *list = listed (client, "#t"), *one;
	FILE *file = fopen (path, "wb");

	if (!file)
		die (path, NULL);
	fputs (head->str, file);
	for (one = list; one; one = one->next) {
		gchar *text = i_cal_component_as_ical_string (one->data);

		fputs (text, file);
		g_free (text);
	}
	fputs ("END:VCALENDAR\r\n", file);
	if (fclose (file))
		die (path, NULL);
	printf ("kept\t%u of %u events; %d tasks and memos left out\n", g_slist_length (list), masters->len + detached->len, others);
	g_slist_free_full (list, g_object_unref);
}

/* The service saves some time after the last change, and the next call starts it again. */
static void end_service (void)
{
	pid_t pid = service_pid ();
	gchar *path = g_strdup_printf ("/proc/%d", (int) pid);
	gint i;

	g_usleep (3000000);
	if (pid > 0 && pid != getpid ())
		kill (pid, SIGTERM);
	for (i = 0; i < 3000 && g_file_test (path, G_FILE_TEST_EXISTS); i++)
		g_usleep (10000);
	g_free (path);
}

/* ---- queries -------------------------------------------------------------- */

typedef struct { gchar *kind, *line, *sexp; } Query;

static GPtrArray *queries;

static void read_queries (const gchar *path)
{
	gchar *text = NULL, **lines, **line;
	GError *error = NULL;

	if (!g_file_get_contents (path, &text, NULL, &error))
		die (path, error);
	queries = g_ptr_array_new ();
	lines = g_strsplit (text, "\n", -1);
	for (line = lines; *line && **line; line++) {
		gchar **parts = g_strsplit (*line, "\t", 3);
		Query *query = g_new (Query, 1);

		if (g_strv_length (parts) != 3)
			die (*line, NULL);
		*query = (Query) { parts[0], parts[1], parts[2] };
		g_ptr_array_add (queries, query);
	}
	g_strfreev (lines);
	g_free (text);
}

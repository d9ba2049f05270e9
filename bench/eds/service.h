/* Functions of all programs: a service of evolution-data-server, its cost, and a new source in it. Included by book.h and
 * calendar.h; the including file defines PROGRAM, SERVICE and EXTENSION, the extension of its sources.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void die (const gchar *what, GError *error)
{
	fprintf (stderr, PROGRAM ": %s: %s\n", what, error ? error->message : "failed");
	exit (1);
}

/* ---- the cost of processes-------------------------------------------- */

static pid_t service_pid (void)
{
	GDBusConnection *bus = g_bus_get_sync (G_BUS_TYPE_SESSION, NULL, NULL);
	GVariant *answer = g_dbus_connection_call_sync (bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
		"org.freedesktop.DBus", "GetConnectionUnixProcessID", g_variant_new ("(s)", SERVICE),
		G_VARIANT_TYPE ("(u)"), G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL);
	guint pid = 0;

	if (answer) {
		g_variant_get (answer, "(u)", &pid);
		g_variant_unref (answer);
	}
	g_object_unref (bus);
	return pid;
}

static gint64 nanoseconds (clockid_t clock)
{
	struct timespec time;

	clock_gettime (clock, &time);
	return time.tv_sec * G_GINT64_CONSTANT (1000000000) + time.tv_nsec;
}

static gint64 processor (pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid (pid, &clock) ? 0 : nanoseconds (clock);
}

/* Returns the number after a name in a file of /proc/PID. */
static gint64 number (pid_t pid, const gchar *file, const gchar *name)
{
	gchar *path = g_strdup_printf ("/proc/%d/%s", (int) pid, file), *text = NULL, *at;
	gint64 value = 0;

	if (g_file_get_contents (path, &text, NULL, NULL) && (at = strstr (text, name)))
		value = g_ascii_strtoll (at + strlen (name), NULL, 10);
	g_free (text);
	g_free (path);
	return value;
}

/* ---- a source -------------------------------------------------------- */

/* Configures the indexes of a source before the service learns of it. */
typedef void (*Setup) (ESource *scratch, gconstpointer data);

static ESource *new_source (ESourceRegistry *registry, Setup setup, gconstpointer data)
{
	static gint number_of_sources;
	gchar *uid = g_strdup_printf ("larder-bench-%d-%d", (int) getpid (), number_of_sources++);
	GError *error = NULL;
	ESource *scratch = e_source_new_with_uid (uid, NULL, &error), *source = NULL;
	gint i;

	if (!scratch)
		die ("new source", error);
	e_source_backend_set_backend_name (e_source_get_extension (scratch, EXTENSION), "local");
	if (setup)
		setup (scratch, data);
	if (!e_source_registry_commit_source_sync (registry, scratch, NULL, &error))
		die ("commit source", error);
	for (i = 0; i < 15000 && !source; i++) {
		while (g_main_context_iteration (NULL, FALSE));
		source = e_source_registry_ref_source (registry, uid);
		if (!source)
			g_usleep (2000);
	}
	if (!source)
		die ("the source does not appear", NULL);
	g_free (uid);
	return source;
}

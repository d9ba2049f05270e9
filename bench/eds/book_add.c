/* Adds the cards of a file to a new address book of evolution-data-server, through libebook, and prints what
 * that cost as one line of JSON: time, processor time of service and client, the peak of anonymous memory of
 * both together, bytes written by the service.
 *
 * Only the public client interface is used. The clock starts when the book is open and empty and the file is
 * not read yet, and stops when the last batch is acknowledged: starting the services is not counted.
 *
 * build: gcc -O2 -o book_add book_add.c $(pkg-config --cflags --libs libebook-1.2)
 * run:   on a session bus of its own: book_add FILE [BATCH]
 */
#include <libebook/libebook.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SERVICE "org.gnome.evolution.dataserver.AddressBook10"

static void die (const gchar *what, GError *error)
{
	fprintf (stderr, "book_add: %s: %s\n", what, error ? error->message : "failed");
	exit (1);
}

/* ---- what processes cost ---------------------------------------------- */

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

static gint64 processor_us (pid_t pid)
{
	clockid_t clock;
	struct timespec time;

	if (clock_getcpuclockid (pid, &clock) || clock_gettime (clock, &time))
		return 0;
	return time.tv_sec * G_GINT64_CONSTANT (1000000) + time.tv_nsec / 1000;
}

/* The number behind a name in a file of /proc/PID. */
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

static pid_t watched;
static gint stop;
static gint64 peak;

static gpointer watch_memory (gpointer unused)
{
	while (!g_atomic_int_get (&stop)) {
		gint64 now = number (watched, "status", "RssAnon:") + number (getpid (), "status", "RssAnon:");

		peak = MAX (peak, now);
		g_usleep (5000);
	}
	return NULL;
}

/* ---- the work ---------------------------------------------------------- */

static EBookClient *new_book (ESourceRegistry *registry)
{
	gchar *uid = g_strdup_printf ("larder-bench-%d", (int) getpid ());
	GError *error = NULL;
	ESource *scratch = e_source_new_with_uid (uid, NULL, &error), *source = NULL;
	EBookClient *client;
	gint i;

	if (!scratch)
		die ("new source", error);
	e_source_backend_set_backend_name (
		e_source_get_extension (scratch, E_SOURCE_EXTENSION_ADDRESS_BOOK), "local");
	if (!e_source_registry_commit_source_sync (registry, scratch, NULL, &error))
		die ("commit source", error);
	for (i = 0; i < 2500 && !source; i++) {
		while (g_main_context_iteration (NULL, FALSE));
		source = e_source_registry_ref_source (registry, uid);
		if (!source)
			g_usleep (2000);
	}
	if (!source)
		die ("the source does not appear", NULL);
	client = (EBookClient *) e_book_client_connect_sync (source, (guint32) -1, NULL, &error);
	if (!client)
		die ("connect", error);
	g_free (uid);
	return client;
}

static void add (EBookClient *client, GSList *batch)
{
	GSList *uids = NULL;
	GError *error = NULL;

	batch = g_slist_reverse (batch);
	if (!e_book_client_add_contacts_sync (client, batch, E_BOOK_OPERATION_FLAG_NONE, &uids, NULL, &error))
		die ("add", error);
	g_slist_free_full (uids, g_free);
	g_slist_free_full (batch, g_object_unref);
}

/* Cards as lines from BEGIN to END; returns how many there were. */
static gint add_all (EBookClient *client, const gchar *path, gint batch_size)
{
	FILE *file = fopen (path, "rb");
	GString *card = g_string_new (NULL);
	GSList *batch = NULL;
	gchar *line = NULL;
	size_t room = 0;
	ssize_t length;
	gint cards = 0, in_batch = 0;

	if (!file)
		die (path, NULL);
	while ((length = getline (&line, &room, file)) >= 0) {
		g_string_append_len (card, line, length);
		if (strncmp (line, "END:VCARD", 9))
			continue;
		batch = g_slist_prepend (batch, e_contact_new_from_vcard (card->str));
		g_string_truncate (card, 0);
		cards++;
		if (++in_batch == batch_size) {
			add (client, batch);
			batch = NULL;
			in_batch = 0;
		}
	}
	if (batch)
		add (client, batch);
	free (line);
	fclose (file);
	g_string_free (card, TRUE);
	return cards;
}

int main (int argc, char **argv)
{
	GError *error = NULL;
	ESourceRegistry *registry;
	EBookClient *client;
	GThread *thread;
	GSList *uids = NULL;
	gint64 wall, service, own, written;
	gint cards;

	if (argc < 2)
		die ("book_add FILE [BATCH]", NULL);
	registry = e_source_registry_new_sync (NULL, &error);
	if (!registry)
		die ("registry", error);
	client = new_book (registry);
	watched = service_pid ();
	thread = g_thread_new ("memory", watch_memory, NULL);
	service = processor_us (watched);
	own = processor_us (getpid ());
	written = number (watched, "io", "\nwrite_bytes:");
	wall = g_get_monotonic_time ();

	cards = add_all (client, argv[1], argc > 2 ? atoi (argv[2]) : 3200);

	wall = g_get_monotonic_time () - wall;
	service = processor_us (watched) - service;
	own = processor_us (getpid ()) - own;
	written = number (watched, "io", "\nwrite_bytes:") - written;
	g_atomic_int_set (&stop, 1);
	g_thread_join (thread);
	if (!e_book_client_get_contacts_uids_sync (client, "(contains \"x-evolution-any-field\" \"\")", &uids, NULL, &error))
		die ("count", error);
	printf ("{\"cards\":%d,\"kept\":%u,\"wall_us\":%" G_GINT64_FORMAT ",\"cpu_us\":%" G_GINT64_FORMAT
		",\"service_cpu_us\":%" G_GINT64_FORMAT ",\"anonymous_bytes\":%" G_GINT64_FORMAT
		",\"written_bytes\":%" G_GINT64_FORMAT "}\n",
		cards, g_slist_length (uids), wall, service + own, service, peak * 1024, written);
	return 0;
}

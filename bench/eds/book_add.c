/* Adds the cards of a file to a new address book of evolution-data-server, through libebook, and prints the cost as a
 * line of JSON: wall time, CPU time of service and client, the peak of anonymous memory of both together, bytes written
 * by the service.
 *
 * The time begins when the empty book is open, before the file is read, and ends when the last batch is acknowledged. It
 * does not include the start of the services.
 *
 * build: gcc -O2 -o book_add book_add.c $(pkg-config --cflags --libs libebook-1.2)
 * run:   on a session bus of its own: book_add FILE [BATCH]
 */
#define PROGRAM "book_add"
#include "book.h"

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

/* Reads the cards of a file, from BEGIN to END; returns their number. */
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
	client = connect_to (registry, new_source (registry, NULL, NULL), FALSE);
	watched = service_pid ();
	thread = g_thread_new ("memory", watch_memory, NULL);
	service = processor (watched) / 1000;
	own = processor (getpid ()) / 1000;
	written = number (watched, "io", "\nwrite_bytes:");
	wall = g_get_monotonic_time ();

	cards = add_all (client, argv[1], argc > 2 ? atoi (argv[2]) : 3200);

	wall = g_get_monotonic_time () - wall;
	service = processor (watched) / 1000 - service;
	own = processor (getpid ()) / 1000 - own;
	written = number (watched, "io", "\nwrite_bytes:") - written;
	g_atomic_int_set (&stop, 1);
	g_thread_join (thread);
	if (!e_book_client_get_contacts_uids_sync (client, EVERYTHING, &uids, NULL, &error))
		die ("count", error);
	printf ("{\"cards\":%d,\"kept\":%u,\"wall_us\":%" G_GINT64_FORMAT ",\"cpu_us\":%" G_GINT64_FORMAT
		",\"service_cpu_us\":%" G_GINT64_FORMAT ",\"anonymous_bytes\":%" G_GINT64_FORMAT
		",\"written_bytes\":%" G_GINT64_FORMAT "}\n",
		cards, g_slist_length (uids), wall, service + own, service, peak * 1024, written);
	return 0;
}

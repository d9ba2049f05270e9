/* Measures the memory left in an address book service by clients that are killed with open views. The service is that of
 * evolution-data-server, or another one with its D-Bus names.
 *
 *   book_leak CARDS VIEWS ROUNDS
 *
 * Opens the default book, with a number of cards. In each round another process opens views of all cards, waits until all
 * are complete, and kills itself without closing them. Prints a line for each round: round TAB views left open so far TAB
 * RssAnon of the service in kB TAB its CPU time for one more card, in microseconds.
 *
 * build: gcc -O2 -o book_leak book_leak.c $(pkg-config --cflags --libs libebook-1.2)
 */
#define PROGRAM "book_leak"
#include "book.h"
#include <signal.h>
#include <sys/wait.h>

static GMainLoop *loop;
static gint waiting;

static void complete (EBookClientView *view, GError *error, gpointer data)
{
	if (--waiting == 0)
		g_main_loop_quit (loop);
}

static EBookClient *open_book (void)
{
	GError *error = NULL;
	ESourceRegistry *registry = e_source_registry_new_sync (NULL, &error);

	if (!registry)
		die ("registry", error);
	return connect_to (registry, e_source_registry_ref_builtin_address_book (registry), FALSE);
}

static void child (gint views)
{
	EBookClient *client = open_book ();
	gint i;

	loop = g_main_loop_new (NULL, FALSE);
	for (i = 0; i < views; i++) {
		EBookClientView *view = NULL;
		GError *error = NULL;

		if (!e_book_client_get_view_sync (client, EVERYTHING, &view, NULL, &error))
			die ("view", error);
		g_signal_connect (view, "complete", G_CALLBACK (complete), NULL);
		waiting++;
		e_book_client_view_start (view, &error);
		if (error)
			die ("start", error);
	}
	g_main_loop_run (loop);
	kill (getpid (), SIGKILL);
}

static void create (EBookClient *client, gint from, gint to)
{
	GSList *batch = NULL;

	for (; from < to; from++) {
		gchar *text = g_strdup_printf ("BEGIN:VCARD\r\nVERSION:3.0\r\nUID:leak-%d@example.org\r\nFN:Person %d\r\nN:%d;Person;;;\r\n"
			"EMAIL:person%d@example.org\r\nNOTE:Some text for person %d\r\nEND:VCARD\r\n", from, from, from, from, from);

		batch = g_slist_prepend (batch, e_contact_new_from_vcard (text));
		g_free (text);
	}
	add (client, batch);
}

int main (int argc, char **argv)
{
	EBookClient *client;
	gint round, rounds;

	if (argc < 3)
		die ("book_leak CARDS VIEWS ROUNDS", NULL);
	if (!strcmp (argv[1], "--child")) {
		child (atoi (argv[2]));
		return 1;
	}
	rounds = atoi (argv[3]);
	client = open_book ();
	create (client, 0, atoi (argv[1]));
	for (round = 0; round <= rounds; round++) {
		pid_t service = service_pid ();
		gint64 kept, before;

		if (round > 0) {
			pid_t pid = fork ();
			gint status;

			if (pid == 0) {
				execl (argv[0], argv[0], "--child", argv[2], NULL);
				_exit (9);
			}
			waitpid (pid, &status, 0);
			if (!WIFSIGNALED (status) || WTERMSIG (status) != SIGKILL)
				die ("the client ended by itself", NULL);
			g_usleep (2000000);
		}
		kept = number (service, "status", "RssAnon:");
		before = processor (service);
		create (client, 1000000 + round, 1000001 + round);
		g_usleep (1500000); /* includes later notifications */
		printf ("%d\t%d\t%" G_GINT64_FORMAT "\t%" G_GINT64_FORMAT "\n", round, round * atoi (argv[2]), kept,
			(processor (service) - before) / 1000);
		fflush (stdout);
	}
	return 0;
}

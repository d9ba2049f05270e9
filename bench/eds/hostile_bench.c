/* Measures the calls of one client of an address book service while another client runs queries of 39 KB that no index
 * answers. The service is that of evolution-data-server, or another one with its D-Bus names.
 *
 *   hostile_bench FILE CALLS QUERIES
 *
 * Adds the cards of FILE to a new book and reads single cards by UID, first alone (CALLS calls), then as often as possible
 * while another process runs QUERIES such queries. Prints rows of: row TAB median TAB p99 TAB maximum TAB number of
 * calls; times in microseconds. The row "query" has the times of the queries.
 *
 * build: gcc -O2 -o hostile_bench hostile_bench.c $(pkg-config --cflags --libs libebook-1.2)
 */
#define PROGRAM "hostile_bench"
#include "book.h"
#include <sys/wait.h>

#define QUERY_BYTES (39 * 1024)
#define MOST_CALLS 2000000

static gint64 *times;

static gint by_size (gconstpointer a, gconstpointer b)
{
	gint64 one = *(const gint64 *) a, other = *(const gint64 *) b;

	return (one > other) - (one < other);
}

static void print_row (const gchar *name, gint count)
{
	qsort (times, count, sizeof *times, by_size);
	printf ("%s\t%" G_GINT64_FORMAT "\t%" G_GINT64_FORMAT "\t%" G_GINT64_FORMAT "\t%d\n", name, times[count / 2],
		times[(gint) (count * 0.99)], times[count - 1], count);
	fflush (stdout);
}

/* Different terms, each a substring of no card: the service must compare all of them with each card. Each query has other
 * terms, so that no answer is known. */
static gchar *hostile_query (gint number)
{
	GString *query = g_string_new ("(or");
	gint n;

	for (n = 0; query->len < QUERY_BYTES - 64; n++)
		g_string_append_printf (query, " (not (not (contains \"x-evolution-any-field\" \"zq%d-%d\")))", number, n);
	g_string_append_c (query, ')');
	return g_string_free (query, FALSE);
}

static void run_queries (const gchar *uid, gint queries)
{
	GError *error = NULL;
	ESourceRegistry *registry = e_source_registry_new_sync (NULL, &error);
	EBookClient *client;
	gint i;

	if (!registry)
		die ("registry", error);
	client = connect_to (registry, e_source_registry_ref_source (registry, uid), FALSE);
	for (i = 0; i < queries; i++) {
		GSList *found = NULL;
		gchar *query = hostile_query (i);
		gint64 start = g_get_monotonic_time ();

		if (!e_book_client_get_contacts_uids_sync (client, query, &found, NULL, &error))
			die ("query", error);
		times[i] = g_get_monotonic_time () - start;
		if (found)
			die ("the query has results", NULL);
		g_free (query);
	}
	print_row ("query", queries);
}

static GPtrArray *add_all (EBookClient *client, const gchar *path)
{
	gchar *text = NULL, **cards, **card;
	GPtrArray *uids = g_ptr_array_new ();
	GSList *batch = NULL, *added = NULL, *at;
	GError *error = NULL;

	if (!g_file_get_contents (path, &text, NULL, &error))
		die (path, error);
	cards = g_strsplit (text, "END:VCARD", -1);
	for (card = cards; strstr (*card, "BEGIN:VCARD"); card++) {
		gchar *whole = g_strconcat (strstr (*card, "BEGIN:VCARD"), "END:VCARD\r\n", NULL);

		batch = g_slist_prepend (batch, e_contact_new_from_vcard (whole));
		g_free (whole);
	}
	if (!e_book_client_add_contacts_sync (client, batch, E_BOOK_OPERATION_FLAG_NONE, &added, NULL, &error))
		die ("add", error);
	for (at = added; at; at = at->next)
		g_ptr_array_add (uids, at->data);
	g_strfreev (cards);
	g_free (text);
	return uids;
}

/* Reads cards, until the number of calls or the end of a process. */
static gint call (EBookClient *client, GPtrArray *uids, gint calls, pid_t until)
{
	gint count = 0;

	while (count < calls && (!until || waitpid (until, NULL, WNOHANG) == 0)) {
		EContact *contact = NULL;
		GError *error = NULL;
		gint64 start = g_get_monotonic_time ();

		if (!e_book_client_get_contact_sync (client, uids->pdata[count * 7919 % uids->len], &contact, NULL, &error))
			die ("get", error);
		times[count++] = g_get_monotonic_time () - start;
		g_object_unref (contact);
	}
	return count;
}

int main (int argc, char **argv)
{
	GError *error = NULL;
	ESourceRegistry *registry;
	ESource *source;
	EBookClient *client;
	GPtrArray *uids;
	pid_t pid;

	times = g_new (gint64, MOST_CALLS);
	if (argc != 4)
		die ("hostile_bench FILE CALLS QUERIES", NULL);
	if (!strcmp (argv[1], "--child")) {
		run_queries (argv[2], atoi (argv[3]));
		return 0;
	}
	registry = e_source_registry_new_sync (NULL, &error);
	if (!registry)
		die ("registry", error);
	source = new_source (registry, NULL, NULL);
	client = connect_to (registry, source, FALSE);
	uids = add_all (client, argv[1]);
	call (client, uids, 100, 0);
	print_row ("alone", call (client, uids, CLAMP (atoi (argv[2]), 1, MOST_CALLS), 0));
	pid = fork ();
	if (pid == 0) {
		execl ("/proc/self/exe", argv[0], "--child", e_source_get_uid (source), argv[3], NULL);
		_exit (9);
	}
	print_row ("beside", call (client, uids, MOST_CALLS, pid));
	return 0;
}

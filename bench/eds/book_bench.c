/* Runs the queries of bench/contacts on evolution-data-server, through libebook: through D-Bus, and with direct access.
 * Uses the public client interface only.
 *
 *   book_bench time CARDS DIR COMMAND SECONDS BATCH    adds CARDS in batches; writes the stored cards to DIR/cards.vcf; runs
 *        COMMAND, which writes DIR/search_terms; runs the queries; saves singly; deletes all. Prints figures in the format of
 *        bench/contacts.
 *   book_bench indexes CARDS ROUNDS BATCH              adds CARDS to books without an index, then with one more in each
 *        step. Prints figures of the steps of bench/contacts/src/index_cost.rs.
 *   book_bench fill CARDS BATCH                        adds CARDS to a new book, ends the service, prints the UID of the book.
 *   book_bench memory UID dbus|direct                  reads all cards of a book, and prints the memory of client and service
 *        together while the client holds them, and after, in kB.
 *
 * CPU time is that of service and client together. The start of the services is not included.
 *
 * build: gcc -O2 -o book_bench book_bench.c $(pkg-config --cflags --libs libebook-1.2)
 */
#define PROGRAM "book_bench"
#include "book.h"
#include <glib/gstdio.h>
#include <signal.h>

#define SINGLY 100
#define FEWEST 3
#define MOST 20000

static const gchar *who = "eds";
static gint contacts;
static gdouble seconds = 0.5;

/* ---- times and figures -------------------------------------------------- */

static pid_t watched;
static gint64 spent_before;
static gint64 times[MOST];

static gint64 now (void) { return nanoseconds (CLOCK_MONOTONIC); }

static void begin (void)
{
	watched = service_pid ();
	spent_before = processor (watched) + processor (getpid ());
}

static int compare (const void *a, const void *b)
{
	gint64 x = *(const gint64 *) a, y = *(const gint64 *) b;

	return x < y ? -1 : x > y;
}

static void figures (const gchar *row, gint n, gdouble hits)
{
	gint64 spent = processor (watched) + processor (getpid ()) - spent_before;

	if (n == 0)
		return;
	qsort (times, n, sizeof *times, compare);
	printf ("%s %d %s %d %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %.1f\n", who, contacts, row, n,
		times[n / 2], times[MIN (n - 1, n * 99 / 100)], spent / n, hits / n);
	fflush (stdout);
}

static void bytes_figure (const gchar *row, gint64 bytes)
{
	printf ("%s %d %s 1 %" G_GINT64_FORMAT " 0 0 0\n", who, contacts, row, bytes);
}

/* ---- cards --------------------------------------------------------------- */

/* Reads the cards of a file, from BEGIN to END. */
static GPtrArray *read_cards (const gchar *path)
{
	GPtrArray *cards = g_ptr_array_new_with_free_func (g_free);
	FILE *file = fopen (path, "rb");
	GString *card = g_string_new (NULL);
	gchar *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (!file)
		die (path, NULL);
	while ((length = getline (&line, &room, file)) >= 0) {
		g_string_append_len (card, line, length);
		if (strncmp (line, "END:VCARD", 9))
			continue;
		g_ptr_array_add (cards, g_strdup (card->str));
		g_string_truncate (card, 0);
	}
	free (line);
	fclose (file);
	g_string_free (card, TRUE);
	return cards;
}

static gint64 add_all (EBookClient *client, GPtrArray *cards, gint batch)
{
	gint64 wall = now ();
	guint i = 0;

	while (i < cards->len) {
		GSList *list = NULL;
		gint j;

		for (j = 0; j < batch && i < cards->len; j++)
			list = g_slist_prepend (list, e_contact_new_from_vcard (cards->pdata[i++]));
		add (client, list);
	}
	return now () - wall;
}

static GSList *everything (EBookClient *client)
{
	GSList *list = NULL;
	GError *error = NULL;

	if (!e_book_client_get_contacts_sync (client, EVERYTHING, &list, NULL, &error))
		die ("everything", error);
	return list;
}

static void extract (EBookClient *client, const gchar *dir)
{
	gchar *path = g_build_filename (dir, "cards.vcf", NULL);
	FILE *file = fopen (path, "wb");
	GSList *list = everything (client), *one;

	if (!file)
		die (path, NULL);
	for (one = list; one; one = one->next) {
		gchar *card = e_vcard_to_string (E_VCARD (one->data), EVC_FORMAT_VCARD_30);

		fprintf (file, "%s\r\n", card);
		g_free (card);
	}
	if (fclose (file))
		die (path, NULL);
	g_slist_free_full (list, g_object_unref);
	g_free (path);
}

/* ---- queries -------------------------------------------------------------- */

static EBookClientCursor *cursor;
static gboolean failed;

/* Reads 50 contacts after a position, before it, or at the end. */
static glong page (const gchar *row, gint place)
{
	gboolean end = !strcmp (row, "page-end");
	GSList *list = NULL;
	GError *error = NULL;
	glong hits;

	if (!end && e_book_client_cursor_step_sync (cursor, E_BOOK_CURSOR_STEP_MOVE, E_BOOK_CURSOR_ORIGIN_BEGIN, place + 1,
		NULL, NULL, &error) < 0)
		die ("cursor, move", error);
	if (e_book_client_cursor_step_sync (cursor, E_BOOK_CURSOR_STEP_FETCH,
		end ? E_BOOK_CURSOR_ORIGIN_END : E_BOOK_CURSOR_ORIGIN_CURRENT, strcmp (row, "page-50") ? -50 : 50, &list,
		NULL, &error) < 0)
		die ("cursor, fetch", error);
	hits = g_slist_length (list);
	g_slist_free_full (list, g_object_unref);
	return hits;
}

static glong ask (EBookClient *client, const gchar *row, const gchar *text, const gchar *sexp)
{
	GSList *list = NULL, *one;
	GError *error = NULL;
	glong hits;

	if (!strcmp (sexp, "#t"))
		sexp = EVERYTHING;
	if (!strcmp (row, "uid")) {
		EContact *contact = NULL;

		if (!e_book_client_get_contact_sync (client, text, &contact, NULL, &error))
			die (text, error);
		g_object_unref (contact);
		return 1;
	}
	if (g_str_has_prefix (row, "page-"))
		return page (row, atoi (sexp));
	if (!strcmp (row, "ids")) {
		if (!e_book_client_get_contacts_uids_sync (client, sexp, &list, NULL, &error))
			die (sexp, error);
		hits = g_slist_length (list);
		g_slist_free_full (list, g_free);
		return hits;
	}
	if (!e_book_client_get_contacts_sync (client, sexp, &list, NULL, &error)) {
		fprintf (stderr, "book_bench: %s: %s\n", sexp, error->message);
		g_clear_error (&error);
		failed = TRUE;
		return 0;
	}
	if (!strcmp (row, "ids-rev"))
		for (one = list; one; one = one->next)
			e_contact_get_const (one->data, E_CONTACT_REV);
	if (!strcmp (row, "fields-3"))
		for (one = list; one; one = one->next) {
			e_contact_get_const (one->data, E_CONTACT_FULL_NAME);
			e_contact_get_const (one->data, E_CONTACT_EMAIL_1);
			g_list_free_full (e_contact_get (one->data, E_CONTACT_TEL), g_free);
		}
	hits = g_slist_length (list);
	g_slist_free_full (list, g_object_unref);
	return hits;
}

static void one_row (ESourceRegistry *registry, ESource *source, EBookClient *client, gboolean direct, gchar ***search_terms, gint n)
{
	const gchar *row = search_terms[0][0];
	gboolean open = !strcmp (row, "open");
	gint64 start;
	gdouble hits = 0;
	gint i;

	failed = FALSE;
	if (!open)
		ask (client, row, search_terms[0][2], search_terms[0][3]);
	begin ();
	start = now ();
	for (i = 0; i < MOST && !failed && (i < FEWEST || now () - start < seconds * 1e9); i++) {
		gchar **search_term = search_terms[i % n];
		gint64 before = now ();
		EBookClient *asked = open ? connect_to (registry, source, direct) : client;

		hits += ask (asked, row, search_term[2], search_term[3]);
		times[i] = now () - before;
		if (open)
			g_object_unref (asked);
	}
	if (!failed)
		figures (row, i, hits);
}

static void ask_all (ESourceRegistry *registry, ESource *source, gboolean direct, const gchar *dir)
{
	EContactField sorted_by[] = { E_CONTACT_FAMILY_NAME, E_CONTACT_GIVEN_NAME };
	EBookCursorSortType ways[] = { E_BOOK_CURSOR_SORT_ASCENDING, E_BOOK_CURSOR_SORT_ASCENDING };
	gchar *path = g_build_filename (dir, "search_terms", NULL), *text = NULL, **lines;
	GPtrArray *rows = g_ptr_array_new (), *names = g_ptr_array_new ();
	EBookClient *client = connect_to (registry, source, direct);
	GError *error = NULL;
	guint i, j;

	who = direct ? "eds-direct" : "eds";
	if (!g_file_get_contents (path, &text, NULL, &error))
		die (path, error);
	if (!e_book_client_get_cursor_sync (client, NULL, sorted_by, ways, 2, &cursor, NULL, &error))
		die ("cursor", error);
	lines = g_strsplit (text, "\n", -1);
	/* The search terms of a row may be apart. Two rows are left out: EDS cannot limit an answer to 20 items, and the alphabet of
	 * its cursor does not tell which letters occur. */
	for (i = 0; lines[i] && *lines[i]; i++) {
		gchar **search_term = g_strsplit (lines[i], "\t", 4);

		if (strchr (search_term[0], '/') || !strcmp (search_term[0], "letters"))
			continue;
		for (j = 0; j < names->len && strcmp (names->pdata[j], search_term[0]); j++);
		if (j == names->len) {
			g_ptr_array_add (names, search_term[0]);
			g_ptr_array_add (rows, g_ptr_array_new ());
		}
		g_ptr_array_add (rows->pdata[j], search_term);
	}
	for (j = 0; j < rows->len; j++) {
		GPtrArray *search_terms = rows->pdata[j];

		one_row (registry, source, client, direct, (gchar ***) search_terms->pdata, search_terms->len);
	}
	g_object_unref (cursor);
	g_object_unref (client);
}

/* ---- saving and deleting --------------------------------------------------- */

static void save_singly (EBookClient *client, GPtrArray *cards)
{
	gint64 written;
	gint i;

	begin ();
	written = number (watched, "io", "\nwrite_bytes:");
	for (i = 0; i < SINGLY; i++) {
		GError *error = NULL;
		gchar *uid = NULL, *own = g_strdup_printf ("larder-bench-single-%d", i);
		gint64 before = now ();
		EContact *contact = e_contact_new_from_vcard (cards->pdata[i % cards->len]);

		e_contact_set (contact, E_CONTACT_UID, own);
		if (!e_book_client_add_contact_sync (client, contact, E_BOOK_OPERATION_FLAG_NONE, &uid, NULL, &error))
			die ("add one", error);
		times[i] = now () - before;
		g_object_unref (contact);
		g_free (uid);
		g_free (own);
	}
	figures ("save-one", SINGLY, SINGLY);
	bytes_figure ("written-one", (number (watched, "io", "\nwrite_bytes:") - written) / SINGLY);
}

static void delete_all (EBookClient *client)
{
	GSList *uids = NULL;
	GError *error = NULL;
	gint deleted;

	if (!e_book_client_get_contacts_uids_sync (client, EVERYTHING, &uids, NULL, &error))
		die ("uids", error);
	deleted = g_slist_length (uids);
	begin ();
	times[0] = now ();
	if (!e_book_client_remove_contacts_sync (client, uids, E_BOOK_OPERATION_FLAG_NONE, NULL, &error))
		die ("remove", error);
	times[0] = now () - times[0];
	figures ("delete-all", 1, deleted);
}

static gint64 book_size (ESource *source)
{
	gchar *dir = g_build_filename (g_get_user_data_dir (), "evolution", "addressbook", e_source_get_uid (source), NULL);
	GDir *open = g_dir_open (dir, 0, NULL);
	const gchar *name;
	gint64 size = 0;

	while (open && (name = g_dir_read_name (open))) {
		gchar *path = g_build_filename (dir, name, NULL);
		GStatBuf about;

		if (!g_stat (path, &about))
			size += about.st_size;
		g_free (path);
	}
	return size;
}

/* ---- the cost of indexes ------------------------------------------------------ */

/* The summary has the same fields in all steps. The missing step is the index of substrings, which it does not have. */
static const struct { gint step; EContactField field; EBookIndexType type; } indexes[] = {
	{ 1, E_CONTACT_FULL_NAME, E_BOOK_INDEX_PREFIX },
	{ 2, E_CONTACT_EMAIL, E_BOOK_INDEX_PREFIX },
	{ 3, E_CONTACT_TEL, E_BOOK_INDEX_PREFIX },
	{ 3, E_CONTACT_TEL, E_BOOK_INDEX_PHONE },
	{ 4, E_CONTACT_FILE_AS, E_BOOK_INDEX_PREFIX },
	{ 4, E_CONTACT_GIVEN_NAME, E_BOOK_INDEX_PREFIX },
	{ 4, E_CONTACT_FAMILY_NAME, E_BOOK_INDEX_PREFIX },
	{ 4, E_CONTACT_NICKNAME, E_BOOK_INDEX_PREFIX },
	{ 4, E_CONTACT_ORG, E_BOOK_INDEX_PREFIX },
	{ 6, E_CONTACT_FULL_NAME, E_BOOK_INDEX_SUFFIX },
	{ 6, E_CONTACT_GIVEN_NAME, E_BOOK_INDEX_SUFFIX },
	{ 6, E_CONTACT_FAMILY_NAME, E_BOOK_INDEX_SUFFIX },
	{ 6, E_CONTACT_NICKNAME, E_BOOK_INDEX_SUFFIX },
	{ 6, E_CONTACT_EMAIL, E_BOOK_INDEX_SUFFIX },
	{ 6, E_CONTACT_TEL, E_BOOK_INDEX_SUFFIX },
	{ 7, E_CONTACT_FILE_AS, E_BOOK_INDEX_SORT_KEY },
	{ 7, E_CONTACT_FULL_NAME, E_BOOK_INDEX_SORT_KEY },
};
static const gint steps[] = { 0, 1, 2, 3, 4, 6, 7 };

static void choose (ESource *scratch, gconstpointer data)
{
	gint step = *(const gint *) data, n = 0;
	guint i;
	EContactField fields[G_N_ELEMENTS (indexes)];
	EBookIndexType types[G_N_ELEMENTS (indexes)];
	ESourceBackendSummarySetup *setup;

	for (i = 0; i < G_N_ELEMENTS (indexes); i++)
		if (indexes[i].step <= step) {
			fields[n] = indexes[i].field;
			types[n++] = indexes[i].type;
		}
	g_type_ensure (E_TYPE_SOURCE_BACKEND_SUMMARY_SETUP);
	setup = e_source_get_extension (scratch, E_SOURCE_EXTENSION_BACKEND_SUMMARY_SETUP);
	e_source_backend_summary_setup_set_summary_fields (setup, E_CONTACT_FULL_NAME, E_CONTACT_EMAIL, E_CONTACT_TEL,
		E_CONTACT_FILE_AS, E_CONTACT_GIVEN_NAME, E_CONTACT_FAMILY_NAME, E_CONTACT_NICKNAME, E_CONTACT_ORG, 0);
	if (n)
		e_source_backend_summary_setup_set_indexed_fieldsv (setup, fields, types, n);
}

static void measure_indexes (ESourceRegistry *registry, gchar **argv)
{
	GPtrArray *cards = read_cards (argv[2]);
	gint rounds = CLAMP (atoi (argv[3]), 1, MOST), round;
	guint i;

	contacts = cards->len;
	for (i = 0; i < G_N_ELEMENTS (steps); i++) {
		gint64 written = 0, spent = 0, size = 0;
		gchar *row;

		for (round = 0; round < rounds; round++) {
			ESource *source = new_source (registry, choose, &steps[i]);
			EBookClient *client = connect_to (registry, source, FALSE);

			begin ();
			written -= number (watched, "io", "\nwrite_bytes:");
			times[round] = add_all (client, cards, atoi (argv[4]));
			written += number (watched, "io", "\nwrite_bytes:");
			spent += processor (watched) + processor (getpid ()) - spent_before;
			size = book_size (source);
			g_object_unref (client);
		}
		begin ();
		spent_before -= spent;
		row = g_strdup_printf ("index-%d", steps[i]);
		figures (row, rounds, (gdouble) cards->len * rounds);
		g_free (row);
		row = g_strdup_printf ("index-%d-written", steps[i]);
		bytes_figure (row, written / rounds);
		g_free (row);
		row = g_strdup_printf ("index-%d-store", steps[i]);
		bytes_figure (row, size);
		g_free (row);
	}
}

static void measure_time (ESourceRegistry *registry, gchar **argv)
{
	GPtrArray *cards = read_cards (argv[2]);
	ESource *source = new_source (registry, NULL, NULL);
	EBookClient *client = connect_to (registry, source, FALSE);
	gint64 written;

	contacts = cards->len;
	seconds = g_ascii_strtod (argv[5], NULL);
	begin ();
	written = number (watched, "io", "\nwrite_bytes:");
	times[0] = add_all (client, cards, atoi (argv[6]));
	figures ("save-batch", 1, cards->len);
	bytes_figure ("written-batch", number (watched, "io", "\nwrite_bytes:") - written);
	bytes_figure ("bytes-store", book_size (source));
	extract (client, argv[3]);
	if (system (argv[4]))
		die (argv[4], NULL);
	ask_all (registry, source, FALSE, argv[3]);
	ask_all (registry, source, TRUE, argv[3]);
	who = "eds";
	save_singly (client, cards);
	delete_all (client);
}

/* ---- memory ------------------------------------------------------------------ */

static void print_memory (const gchar *when)
{
	pid_t pid = service_pid (), own = getpid ();

	printf ("%s rss %" G_GINT64_FORMAT "\n", when, number (pid, "smaps_rollup", "\nRss:") + number (own, "smaps_rollup", "\nRss:"));
	printf ("%s pss %" G_GINT64_FORMAT "\n", when, number (pid, "smaps_rollup", "\nPss:") + number (own, "smaps_rollup", "\nPss:"));
	printf ("%s vms %" G_GINT64_FORMAT "\n", when, number (pid, "status", "\nVmSize:") + number (own, "status", "\nVmSize:"));
	printf ("%s anonymous %" G_GINT64_FORMAT "\n", when, number (pid, "status", "\nRssAnon:") + number (own, "status", "\nRssAnon:"));
}

static void restart_service (void)
{
	pid_t pid = service_pid ();
	gchar *path = g_strdup_printf ("/proc/%d", (int) pid);
	gint i;

	kill (pid, SIGTERM);
	for (i = 0; i < 3000 && g_file_test (path, G_FILE_TEST_EXISTS); i++)
		g_usleep (10000);
	g_free (path);
}

/* Another process adds the cards, so that they are not in the memory of the client. */
static void measure_memory (ESourceRegistry *registry, gchar **argv)
{
	gboolean direct = !strcmp (argv[3], "direct");
	ESource *source = e_source_registry_ref_source (registry, argv[2]);
	EBookClient *client;
	GSList *list;

	if (!source)
		die (argv[2], NULL);
	client = connect_to (registry, source, direct);
	list = everything (client);
	print_memory ("held");
	printf ("cards %u\n", g_slist_length (list));
	g_slist_free_full (list, g_object_unref);
	print_memory ("dropped");
}

/* Creates a book for `memory` and prints its UID. */
static void fill (ESourceRegistry *registry, gchar **argv)
{
	GPtrArray *cards = read_cards (argv[2]);
	ESource *source = new_source (registry, NULL, NULL);
	EBookClient *client = connect_to (registry, source, FALSE);

	add_all (client, cards, atoi (argv[3]));
	g_object_unref (client);
	restart_service ();
	printf ("%s\n", e_source_get_uid (source));
}

int main (int argc, char **argv)
{
	GError *error = NULL;
	ESourceRegistry *registry = e_source_registry_new_sync (NULL, &error);

	if (!registry)
		die ("registry", error);
	if (argc == 7 && !strcmp (argv[1], "time"))
		measure_time (registry, argv);
	else if (argc == 5 && !strcmp (argv[1], "indexes"))
		measure_indexes (registry, argv);
	else if (argc == 4 && !strcmp (argv[1], "fill"))
		fill (registry, argv);
	else if (argc == 4 && !strcmp (argv[1], "memory"))
		measure_memory (registry, argv);
	else
		die ("book_bench time CARDS DIR PICK SECONDS BATCH | indexes CARDS ROUNDS BATCH | fill CARDS BATCH | memory UID dbus|direct", NULL);
	return 0;
}

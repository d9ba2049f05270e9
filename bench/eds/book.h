/* Functions of the programs for address books: creating a book and adding cards. Uses the public client interface only.
 * Included once by each program, which defines its name as PROGRAM.
 */
#include <libebook/libebook.h>

#define SERVICE "org.gnome.evolution.dataserver.AddressBook10"
#define EXTENSION E_SOURCE_EXTENSION_ADDRESS_BOOK
#define EVERYTHING "(contains \"x-evolution-any-field\" \"\")"

#include "service.h"

/* The service may learn of a new source later than this process. */
static EBookClient *connect_to (ESourceRegistry *registry, ESource *source, gboolean direct)
{
	GError *error = NULL;
	EClient *client = NULL;
	gint i;

	for (i = 0; i < 500 && !client; i++) {
		if (i)
			g_usleep (20000);
		g_clear_error (&error);
		client = direct ? e_book_client_connect_direct_sync (registry, source, (guint32) -1, NULL, &error)
		                : e_book_client_connect_sync (source, (guint32) -1, NULL, &error);
	}
	if (!client)
		die ("connect", error);
	return (EBookClient *) client;
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

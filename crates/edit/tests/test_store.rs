//! A store of its own for each test, with contacts put in as an import does.

use larder_format::contact::{Contact, derive_uid};
use larder_store::{
    BatchChange, Collection, CollectionType, ItemPut, Operation, Precondition, Store, StoreOptions,
};
use std::sync::Arc;
use tempfile::TempDir;

/// The collection of tests that need only one.
pub(crate) const CONTACTS: &str = "contacts";

/// A store in a folder that is removed after the test.
pub(crate) struct TestStore {
    _folder: TempDir,
    pub(crate) store: Store,
}

impl TestStore {
    pub(crate) fn new() -> TestStore {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let store = Store::open(&folder.path().join("larder"), &options).unwrap();
        TestStore { _folder: folder, store }
    }

    /// Adds a contact to a collection, or replaces the one with its UID. A contact without a UID
    /// gets one derived from its bytes.
    pub(crate) fn put_contact(&mut self, collection: &str, contact: &str) {
        let extractor =
            self.store.extractor_for_collection(collection, CollectionType::AddressBook).unwrap();
        let uid = Contact::parse(contact.as_bytes()).uid().map(|uid| uid.to_string());
        let parsed = extractor.parse_contact(contact.as_bytes().to_vec()).unwrap();
        let put = ItemPut {
            collection: Arc::from(collection),
            derived_uid: uid.is_none(),
            uid: uid.unwrap_or_else(|| derive_uid(contact.as_bytes())),
            parsed,
            precondition: Precondition::Any,
        };
        let mut operation = Operation::new("import", "", 1_000);
        self.store.apply(&mut operation, vec![BatchChange::Put(put)]).unwrap();
    }

    fn collection(&self, name: &str) -> Option<Collection> {
        let collections = self.store.open_reader().unwrap().collections().list().unwrap();
        collections.into_iter().find(|collection| collection.name == name)
    }

    /// Returns the bytes of the items of a collection in the order in which they were added.
    pub(crate) fn items(&self, collection: &str) -> Vec<Vec<u8>> {
        let Some(collection) = self.collection(collection) else { return Vec::new() };
        let reader = self.store.open_reader().unwrap();
        let items = reader.items().list_after(&collection, None, usize::MAX >> 1).unwrap();
        items.iter().map(|item| reader.items().source_bytes(item.row).unwrap().unwrap()).collect()
    }

    /// Returns the text of the items of a collection, one after the other.
    pub(crate) fn text(&self, collection: &str) -> String {
        String::from_utf8(self.items(collection).concat()).unwrap()
    }
}

//! An address book: a collection of contacts that clients open, read and change.
//!
//! A call that changes contacts is one batch, applied as a whole or not at all. After the commit
//! all clients get the book's new revision and the events of their views, and then the caller gets
//! its reply.

use super::book_queries::SearchedBook;
use super::bus::{MethodCall, PropertyValues, build_properties_changed};
use super::call_error::{
    CONTACT_NOT_FOUND, CallError, ID_EXISTS, INVALID_ARG, IO_NOT_FOUND, IO_NOT_SUPPORTED,
    NOT_SUPPORTED, OTHER, OUT_OF_SYNC,
};
use super::card::{CardRenderer, book_revision};
use super::eds_source::{EdsSource, KeyFile, collection_of};
use super::interface::ADDRESS_BOOK;
use super::object_path::{BookNumber, book_path};
use super::service::{CallAnswer, EdsService, OpenBook};
use larder_edit::item_text::find_single_component;
use larder_format::contact::{Contact, ProblemKind};
use larder_format::edit::insert_uid;
use larder_store::{
    AppliedBatch, BatchChange, ChangeOutcome, CollectionRow, CollectionType, Extractor,
    IndexConfig, ItemMeta, ItemPut, Kind, Operation, ParsedItem, Precondition, Seq, Store,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use zbus::Variant;

/// The capabilities of a book, by the names of the client library.
const CAPABILITIES: &[&str] =
    &["local", "do-initial-query", "bulk-adds", "bulk-modifies", "bulk-removes", "contact-lists"];
const REQUIRED_FIELDS: &[&str] = &["file_as"];

/// The fields of a contact, by the names of the client library.
const SUPPORTED_FIELDS: &str = include_str!("fields.txt");

impl EdsService {
    /// Handles a call of the factory.
    pub(super) fn handle_open_book_call(
        &mut self,
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
        let uid: String = call.arguments()?;
        let source = self.published_sources.iter().find(|source| source.uid == uid).cloned();
        let Some(source) = source else {
            return Err(CallError::new(IO_NOT_FOUND, format!("No such source for UID “{uid}”")));
        };
        if !source.is_book {
            let text = format!(
                "Backend factory for source “{uid}” and extension “Address Book” cannot be found."
            );
            return Err(CallError::new(IO_NOT_SUPPORTED, text));
        }
        if let Some(row) = source.row {
            let path = self.open_book(source.uid, row)?;
            return call.reply(&(path, super::ADDRESS_BOOK_BUS_NAME)).map(CallAnswer::Reply);
        }
        let (name, now) = (collection_of(&uid).to_string(), (self.options.clock)());
        let create = move |store: &mut Store| create_book(store, &name, now);
        Ok(self.write_later(call, create, move |service, call, created| {
            created?;
            let mut sources = service.published_sources.iter();
            let row = sources.find(|source| source.uid == uid).and_then(|source| source.row);
            let missing = || CallError::new(OTHER, "the address book was not created");
            let path = service.open_book(uid, row.ok_or_else(missing)?)?;
            call.reply(&(path, super::ADDRESS_BOOK_BUS_NAME))
        }))
    }

    /// Opens a book, unless it is open. Returns the path of its object.
    fn open_book(&mut self, uid: String, row: CollectionRow) -> Result<String, CallError> {
        let is_open = |(_, book): &(&BookNumber, &OpenBook)| book.is_of(&uid, row);
        if let Some((number, _)) = self.open_books.iter().find(is_open) {
            return Ok(book_path(*number));
        }
        let published = self.last_change(row)?;
        self.last_book_number += 1;
        self.open_books.insert(self.last_book_number, OpenBook { uid, row, published });
        Ok(book_path(self.last_book_number))
    }

    /// Publishes the revisions of books that changed.
    pub(super) fn publish_book_revisions(&mut self) -> Result<(), CallError> {
        // After a restore the row may be another book: clients must not write there.
        self.open_books.retain(|_, book| {
            let mut sources = self.published_sources.iter();
            sources.any(|source| source.row.is_some_and(|row| book.is_of(&source.uid, row)))
        });
        let mut changed_books = Vec::new();
        let epoch = self.reader.epoch()?;
        let is_new_epoch = epoch != self.epoch;
        if is_new_epoch {
            self.published_seq = 0;
            self.cards = CardRenderer::default();
        }
        let seq = self.reader.changes().last_seq()?;
        // After an error the same changes are published next time.
        self.store_views.catch_up()?;
        for (number, book) in &mut self.open_books {
            if let Some(now) =
                self.reader.changes().last_collection_change(book.row, self.published_seq)?
                && (is_new_epoch || now != book.published)
            {
                let revision = book_revision(&self.reader, now)?;
                book.published = now;
                let path = book_path(*number);
                self.before_reply.extend(build_properties_changed(
                    &path,
                    ADDRESS_BOOK.name,
                    "Revision",
                    revision,
                ));
                changed_books.push(*number);
            }
        }
        self.deliver_to_books(&changed_books, seq);
        (self.published_seq, self.epoch) = (seq, epoch);
        Ok(())
    }

    /// Returns the last batch that changed a book.
    fn last_change(&self, row: CollectionRow) -> Result<Seq, CallError> {
        Ok(self.reader.changes().last_collection_change(row, 0)?.unwrap_or_default())
    }

    /// Returns the properties of a book.
    pub(super) fn book_property_values(
        &mut self,
        number: BookNumber,
    ) -> Result<PropertyValues, CallError> {
        let Some(book) = self.open_books.get(&number) else { return Ok(PropertyValues::new()) };
        let cache = self.options.cache_dir.join(book.uid.replace('/', "_")).display().to_string();
        let revision = book_revision(&self.reader, book.published)?;
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_string()).collect::<Vec<_>>();
        let fields: Vec<&str> = SUPPORTED_FIELDS.split_whitespace().collect();
        Ok(PropertyValues::from([
            ("Online", Variant::from(true)),
            ("Writable", Variant::from(true)),
            ("Revision", Variant::from(revision)),
            ("Locale", Variant::from(self.options.locale.clone())),
            ("CacheDir", Variant::from(cache)),
            ("Capabilities", Variant::from(texts(CAPABILITIES))),
            ("RequiredFields", Variant::from(texts(REQUIRED_FIELDS))),
            ("SupportedFields", Variant::from(texts(&fields))),
        ]))
    }

    /// Handles a call of a book.
    pub(super) fn handle_book_call(
        &mut self,
        number: BookNumber,
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
        let uid = self.open_books.get(&number).map(|book| &book.uid);
        let source = self.published_sources.iter().find(|source| Some(&source.uid) == uid).cloned();
        let Some(source) = source else {
            return Err(CallError::from_bus_error("UnknownObject", call.path()));
        };
        let book = AddressBook { name: Arc::from(collection_of(&source.uid)), source };
        let reply = match call.member() {
            "Open" | "RetrieveProperties" => {
                call.reply(&format_properties(&self.book_property_values(number)?))
            }
            "Refresh" => {
                Err(CallError::new(NOT_SUPPORTED, "Cannot refresh address book: Not supported"))
            }
            "CreateContacts" => {
                let (cards, _): (Vec<String>, u32) = call.arguments()?;
                return self
                    .create_contacts(&book, &cards, call)
                    .map_err(|it| it.with_context("Cannot add contact"));
            }
            "ModifyContacts" => {
                let (cards, _): (Vec<String>, u32) = call.arguments()?;
                return self
                    .modify_contacts(&book, &cards, call)
                    .map_err(|it| it.with_context("Cannot modify contacts"));
            }
            "RemoveContacts" => {
                let (uids, _): (Vec<String>, u32) = call.arguments()?;
                return self
                    .remove_contacts(&book, &uids, call)
                    .map_err(|it| it.with_context("Cannot remove contacts"));
            }
            "GetContact" => {
                let uid: String = call.arguments()?;
                let card = self
                    .read_card(&book, &uid)
                    .map_err(|it| it.with_context("Cannot get contact"))?;
                call.reply(&card)
            }
            "GetContactList" | "GetContactListUids" | "GetView" | "ContainsEmail" => {
                let settings = Arc::clone(&self.settings);
                let searched = SearchedBook { name: book.name, settings };
                return self.handle_book_query(number, searched, call);
            }
            _ => call.reply(&()),
        };
        reply.map(CallAnswer::Reply)
    }
}

/// The book of a call.
pub(super) struct AddressBook {
    /// The name of its collection.
    pub(super) name: Arc<str>,
    pub(super) source: EdsSource,
}

/// The calls that change contacts.
impl EdsService {
    fn create_contacts(
        &mut self,
        book: &AddressBook,
        cards: &[String],
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
        let extractor = self.extractor(book)?;
        let (mut uids, mut changes) = (Vec::new(), Vec::new());
        for card in cards {
            let (mut bytes, uid) = parse_single_card(card)?;
            if uid.is_none() {
                bytes = insert_uid(&bytes, &self.generate_uid()?);
            }
            let prepared = prepare_card(&extractor, bytes)?;
            let uid = prepared.uid().unwrap_or_default().to_string();
            if self.reader.items().get(&book.name, &uid)?.is_some() {
                return Err(uid_conflict_error());
            }
            uids.push(uid);
            changes.push(book.put_change(prepared, Precondition::Absent));
        }
        Ok(self.apply_later(call, "add", &book.name, changes, move |_, call, applied| {
            let added = applied.and_then(|applied| match has_conflict(&applied) {
                true => Err(uid_conflict_error()),
                false => Ok(uids),
            });
            call.reply(&added.map_err(|it| it.with_context("Cannot add contact"))?)
        }))
    }

    fn modify_contacts(
        &mut self,
        book: &AddressBook,
        cards: &[String],
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
        let guards = KeyFile::parse(&book.source.data).is_ok_and(|file| file.has_revision_guards());
        let extractor = self.extractor(book)?;
        // If a call has a contact twice, the last one counts.
        let mut changes = BTreeMap::new();
        for card in cards {
            let prepared = prepare_card(&extractor, parse_single_card(card)?.0)?;
            let Some(uid) = prepared.uid().map(str::to_string) else {
                return Err(CallError::new(OTHER, "No UID in the contact"));
            };
            let (meta, _) = self.read_item(book, &uid)?;
            if guards && !self.is_current(&prepared, &meta)? {
                return Err(out_of_sync_error());
            }
            let expect = match guards {
                true => Precondition::UnchangedSince(meta.seq),
                // Another client may remove it before this change is written.
                false => Precondition::Present,
            };
            changes.insert(uid, book.put_change(prepared, expect));
        }
        let changes = changes.into_values().collect();
        Ok(self.apply_later(call, "edit", &book.name, changes, move |_, call, applied| {
            let modified = applied.and_then(|applied| match has_conflict(&applied) {
                true if guards => Err(out_of_sync_error()),
                true => Err(already_removed_error()),
                false => Ok(()),
            });
            call.reply(&modified.map_err(|it| it.with_context("Cannot modify contacts"))?)
        }))
    }

    fn remove_contacts(
        &mut self,
        book: &AddressBook,
        uids: &[String],
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
        let mut changes: Vec<BatchChange> = Vec::new();
        let mut metas: Vec<ItemMeta> = Vec::new();
        for uid in uids {
            let (meta, _) = self.read_item(book, uid)?;
            if !metas.iter().any(|known| known.row == meta.row) {
                changes.push(BatchChange::Remove(meta.handle, Precondition::Any));
                metas.push(meta);
            }
        }
        Ok(self.apply_later(call, "remove", &book.name, changes, |_, call, applied| {
            let removed = applied.and_then(|applied| match has_conflict(&applied) {
                true => Err(already_removed_error()),
                false => Ok(()),
            });
            call.reply(&removed.map_err(|it| it.with_context("Cannot remove contacts"))?)
        }))
    }

    /// Returns the extractor for the contacts of a book. The store extracts a contact again whose
    /// index configuration has changed when it is written.
    fn extractor(&self, book: &AddressBook) -> Result<Extractor, CallError> {
        let configs = self.reader.collections().list_index_configs()?;
        let config = configs.into_iter().find(|(row, _)| Some(*row) == book.source.row);
        let config = config.map(|(_, config)| config);
        let config =
            config.unwrap_or_else(|| IndexConfig::shared_default(CollectionType::AddressBook));
        Ok(self.reader.extractor().with_index_config(config))
    }

    /// Returns whether a card has the current revision of its item.
    fn is_current(&mut self, card: &ParsedItem, meta: &ItemMeta) -> Result<bool, CallError> {
        let contact = Contact::parse(card.bytes());
        let revision = contact.properties().iter().find(|property| property.has_name("REV"));
        let rev = self.cards.rev(&self.reader, meta.seq)?;
        Ok(revision.is_some_and(|revision| revision.text().trim() == rev))
    }

    /// Returns a UID that no item has.
    fn generate_uid(&self) -> Result<String, CallError> {
        let mut uid = String::from("pas-id-");
        let random =
            || (self.options.random)().map_err(|error| CallError::new(OTHER, error.to_string()));
        for byte in random()?.into_iter().chain(random()?).take(20) {
            let _infallible = write!(uid, "{byte:02x}");
        }
        Ok(uid)
    }
}

/// The calls that read contacts.
impl EdsService {
    /// Returns an item and its bytes.
    fn read_item(&self, book: &AddressBook, uid: &str) -> Result<(ItemMeta, Vec<u8>), CallError> {
        let text = || CallError::new(CONTACT_NOT_FOUND, format!("Contact “{uid}” not found"));
        self.reader.items().get(&book.name, uid)?.ok_or_else(text)
    }

    fn read_card(&mut self, book: &AddressBook, uid: &str) -> Result<String, CallError> {
        let (meta, bytes) = self.read_item(book, uid)?;
        Ok(self.cards.render(&self.reader, &meta, &bytes)?)
    }
}

impl AddressBook {
    /// Returns the change that puts a card into the book.
    fn put_change(&self, prepared: ParsedItem, expect: Precondition) -> BatchChange {
        let uid = prepared.uid().unwrap_or_default().to_string();
        let collection = Arc::clone(&self.name);
        BatchChange::Put(ItemPut {
            collection,
            uid,
            derived_uid: false,
            parsed: prepared,
            precondition: expect,
        })
    }
}

/// Creates the collection of a book, unless another client or program has.
pub(super) fn create_book(store: &mut Store, name: &str, now: i64) -> Result<(), CallError> {
    if store.collection_type(name)?.is_none() {
        let change = BatchChange::CreateCollection(name.into(), Kind::Contact);
        let operation = Operation::new("create", name, now);
        store.apply(&mut operation.all_or_nothing(), vec![change])?;
    }
    Ok(())
}

fn has_conflict(applied: &AppliedBatch) -> bool {
    applied.outcomes.iter().any(|outcome| matches!(outcome, ChangeOutcome::Conflict(..)))
}

/// Parses a text as one complete card; returns its bytes and its UID.
fn parse_single_card(text: &str) -> Result<(Vec<u8>, Option<String>), CallError> {
    let wrong = |why: String| CallError::new(INVALID_ARG, why);
    let bytes = find_single_component(text.as_bytes(), "VCARD")
        .map_err(|error| wrong(error.to_string()))?;
    let card = Contact::parse(&bytes);
    let incomplete =
        card.problems().iter().find(|problem| problem.kind == ProblemKind::MissingCardEnd);
    if let Some(problem) = card.fatal_problem().or(incomplete) {
        return Err(wrong(problem.to_string()));
    }
    let uid = card.uid();
    drop(card);
    Ok((bytes, uid))
}

/// Extracts from a card all that the store needs to apply it.
fn prepare_card(extractor: &Extractor, bytes: Vec<u8>) -> Result<ParsedItem, CallError> {
    extractor
        .parse_contact(bytes)
        .map_err(|rejected| CallError::new(INVALID_ARG, rejected.problem.to_string()))
}

fn uid_conflict_error() -> CallError {
    CallError::new(ID_EXISTS, "Conflicting UIDs found in added contacts")
}

fn already_removed_error() -> CallError {
    CallError::new(CONTACT_NOT_FOUND, "A contact was removed meanwhile")
}

fn out_of_sync_error() -> CallError {
    CallError::new(OUT_OF_SYNC, "Tried to modify contact with an out of sync revision")
}

/// Formats properties as a list of names and values, in GLib's text form.
fn format_properties(values: &PropertyValues) -> Vec<String> {
    let mut all: Vec<(String, String)> =
        values.iter().map(|(name, value)| (to_kebab_case(name), format_variant(value))).collect();
    all.sort();
    all.into_iter().flat_map(|(name, value)| [name, value]).collect()
}

/// Converts `CacheDir` to `cache-dir`.
fn to_kebab_case(name: &str) -> String {
    let mut text = String::new();
    for (at, letter) in name.chars().enumerate() {
        if at > 0 && letter.is_ascii_uppercase() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Formats a value in GVariant's text form.
fn format_variant(value: &Variant<'_>) -> String {
    match value {
        Variant::Bool(value) => value.to_string(),
        Variant::Str(text) => quote_text(text),
        Variant::Array(all) => {
            let all: Vec<String> = all.iter().map(format_variant).collect();
            format!("[{}]", all.join(", "))
        }
        _ => String::new(),
    }
}

fn quote_text(text: &str) -> String {
    let quote = if text.contains('\'') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            letter if letter == quote => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _infallible = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push(quote);
    quoted
}

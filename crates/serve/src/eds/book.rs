//! An address book: a collection of contacts that clients open, read and change.
//!
//! A call that changes contacts is one batch, applied as a whole or not at all. After the commit
//! all clients get the book's new revision and the events of their views, and then the caller gets
//! its reply.

use super::bus::{
    MAX_ARRAY_BYTES, MethodCall, PropertyValues, build_properties_changed, replace_nul,
};
use super::call_error::{
    CONTACT_NOT_FOUND, CallError, ID_EXISTS, INVALID_ARG, INVALID_QUERY, IO_NOT_FOUND,
    IO_NOT_SUPPORTED, NOT_SUPPORTED, OTHER, OUT_OF_SYNC, SIZE_LIMIT,
};
use super::card::{CardRenderer, book_revision};
use super::eds_source::{EdsSource, KeyFile, collection_of};
use super::interface::ADDRESS_BOOK;
use super::object_path::{book_path, object_path};
use super::service::EdsService;
use larder_edit::item_text::find_single_component;
use larder_format::contact::{Contact, ProblemKind};
use larder_format::edit::insert_uid;
use larder_format::phone::ParsedPhoneNumber;
use larder_query::views::{QuerySyntax, ViewQuery};
use larder_query::{MatchOp, Query};
use larder_store::{
    BatchChange, ChangeOutcome, CollectionRow, CollectionType, Extractor, ItemMeta, ItemPut, Kind,
    ParsedItem, Precondition, Seq,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use zbus::{Message, Variant};

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
    ) -> Result<Message, CallError> {
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
        let row = self.ensure_book_row(&source)?;
        if !self.open_books.contains_key(&row) {
            self.open_books.insert(row, self.last_change(row)?);
        }
        call.reply(&(book_path(row), super::ADDRESS_BOOK_BUS_NAME))
    }

    /// Returns the row of a source's collection; creates the collection if it does not exist.
    pub(super) fn ensure_book_row(
        &mut self,
        source: &EdsSource,
    ) -> Result<CollectionRow, CallError> {
        if let Some(row) = source.row {
            return Ok(row);
        }
        let name = collection_of(&source.uid).to_string();
        self.write(
            "create",
            &name,
            vec![BatchChange::CreateCollection(name.clone(), Kind::Contact)],
        )?;
        let created = self.published_sources.iter().find(|created| created.uid == source.uid);
        created
            .and_then(|source| source.row)
            .ok_or_else(|| CallError::new(OTHER, "the address book was not created"))
    }

    /// Publishes the revisions of books that changed.
    pub(super) fn publish_book_revisions(&mut self) -> Result<(), CallError> {
        self.open_books
            .retain(|row, _| self.published_sources.iter().any(|source| source.row == Some(*row)));
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
        for (row, published) in &mut self.open_books {
            if let Some(now) =
                self.reader.changes().last_collection_change(*row, self.published_seq)?
                && (is_new_epoch || now != *published)
            {
                let revision = book_revision(&self.reader, now)?;
                *published = now;
                let path = book_path(*row);
                self.before_reply.extend(build_properties_changed(
                    &path,
                    ADDRESS_BOOK.name,
                    "Revision",
                    revision,
                ));
                changed_books.push(*row);
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
        row: CollectionRow,
    ) -> Result<PropertyValues, CallError> {
        let source = self.published_sources.iter().find(|source| source.row == Some(row));
        let uid = source.map(|source| source.uid.replace('/', "_")).unwrap_or_default();
        let cache = self.options.cache_dir.join(uid).display().to_string();
        let seq = match self.open_books.get(&row) {
            Some(published) => *published,
            None => self.last_change(row)?,
        };
        let revision = book_revision(&self.reader, seq)?;
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
        row: CollectionRow,
        call: &MethodCall<'_>,
    ) -> Result<Message, CallError> {
        let source = self.published_sources.iter().find(|source| source.row == Some(row)).cloned();
        let Some(source) = source else {
            return Err(CallError::from_bus_error("UnknownObject", call.path()));
        };
        let book = AddressBook { name: Arc::from(collection_of(&source.uid)), source };
        match call.member() {
            "Open" | "RetrieveProperties" => {
                call.reply(&format_properties(&self.book_property_values(row)?))
            }
            "Refresh" => {
                Err(CallError::new(NOT_SUPPORTED, "Cannot refresh address book: Not supported"))
            }
            "CreateContacts" => {
                let (cards, _): (Vec<String>, u32) = call.arguments()?;
                let uids = self
                    .create_contacts(&book, &cards)
                    .map_err(|it| it.with_context("Cannot add contact"))?;
                call.reply(&uids)
            }
            "ModifyContacts" => {
                let (cards, _): (Vec<String>, u32) = call.arguments()?;
                self.modify_contacts(&book, &cards)
                    .map_err(|it| it.with_context("Cannot modify contacts"))?;
                call.reply(&())
            }
            "RemoveContacts" => {
                let (uids, _): (Vec<String>, u32) = call.arguments()?;
                self.remove_contacts(&book, &uids)
                    .map_err(|it| it.with_context("Cannot remove contacts"))?;
                call.reply(&())
            }
            "GetContact" => {
                let uid: String = call.arguments()?;
                let card = self
                    .read_card(&book, &uid)
                    .map_err(|it| it.with_context("Cannot get contact"))?;
                call.reply(&card)
            }
            "GetContactList" => {
                let query: String = call.arguments()?;
                let cards = self.list_cards(&book, &query, call.sender());
                call.reply(&cards.map_err(|it| it.with_context("Cannot get contact list"))?)
            }
            "GetContactListUids" => {
                let query: String = call.arguments()?;
                let uids = self.list_uids(&book, &query, call.sender());
                call.reply(&uids.map_err(|it| it.with_context("Cannot get contact list uids"))?)
            }
            "GetView" => {
                let query: String = call.arguments()?;
                let view_query = self.view_query(&book, &query);
                let view_query =
                    view_query.map_err(|_| CallError::new(INVALID_QUERY, "Invalid query"))?;
                let path = self.add_client_view(row, view_query, call.sender());
                call.reply(&object_path(&path))
            }
            "ContainsEmail" => {
                let address: String = call.arguments()?;
                call.reply(&self.has_email(&book, &address, call.sender())?)
            }
            _ => call.reply(&()),
        }
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
    ) -> Result<Vec<String>, CallError> {
        let extractor =
            self.store.extractor_for_collection(&book.name, CollectionType::AddressBook)?;
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
        let outcomes = self.write("add", &book.name, changes)?.outcomes;
        match outcomes.iter().any(|outcome| matches!(outcome, ChangeOutcome::Conflict(..))) {
            true => Err(uid_conflict_error()),
            false => Ok(uids),
        }
    }

    fn modify_contacts(&mut self, book: &AddressBook, cards: &[String]) -> Result<(), CallError> {
        let guards = KeyFile::parse(&book.source.data).is_ok_and(|file| file.has_revision_guards());
        let extractor =
            self.store.extractor_for_collection(&book.name, CollectionType::AddressBook)?;
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
            let expect =
                if guards { Precondition::UnchangedSince(meta.seq) } else { Precondition::Any };
            changes.insert(uid, book.put_change(prepared, expect));
        }
        let changes = changes.into_values().collect();
        let outcomes = self.write("edit", &book.name, changes)?.outcomes;
        match outcomes.iter().any(|outcome| matches!(outcome, ChangeOutcome::Conflict(..))) {
            true => Err(out_of_sync_error()),
            false => Ok(()),
        }
    }

    fn remove_contacts(&mut self, book: &AddressBook, uids: &[String]) -> Result<(), CallError> {
        let mut changes: Vec<BatchChange> = Vec::new();
        let mut metas: Vec<ItemMeta> = Vec::new();
        for uid in uids {
            let (meta, _) = self.read_item(book, uid)?;
            if !metas.iter().any(|known| known.row == meta.row) {
                changes.push(BatchChange::Remove(meta.handle, Precondition::Any));
                metas.push(meta);
            }
        }
        self.write("remove", &book.name, changes).map(drop)
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

    fn list_cards(
        &mut self,
        book: &AddressBook,
        query: &str,
        client: &str,
    ) -> Result<Vec<String>, CallError> {
        let view_query = self.view_query(book, query)?;
        let (mut all, mut size, mut failed) = (Vec::new(), 0, None);
        let (cards, reader) = (&mut self.cards, &self.reader);
        self.store_views.find(view_query, client, &mut |meta, bytes| {
            match cards.render(reader, meta, bytes) {
                Ok(card) => {
                    size += card.len() + 8;
                    all.push(card);
                }
                Err(error) => failed = Some(CallError::from(error)),
            }
            failed.is_none() && size <= MAX_ARRAY_BYTES
        })?;
        match failed {
            Some(failure) => Err(failure),
            None if size > MAX_ARRAY_BYTES => Err(CallError::new(
                SIZE_LIMIT,
                "the answer is too large for one message; open a view",
            )),
            None => Ok(all),
        }
    }

    fn list_uids(
        &self,
        book: &AddressBook,
        query: &str,
        client: &str,
    ) -> Result<Vec<String>, CallError> {
        let (view_query, mut uids) = (self.view_query(book, query)?, Vec::new());
        self.store_views.find(view_query, client, &mut |meta, _| {
            uids.push(replace_nul(&meta.uid));
            true
        })?;
        Ok(uids)
    }

    fn has_email(
        &self,
        book: &AddressBook,
        address: &str,
        client: &str,
    ) -> Result<bool, CallError> {
        let text = address.replace('\\', "\\\\").replace('"', "\\\"");
        let view_query = self.view_query(book, &format!("(is \"email\" \"{text}\")"))?;
        Ok(self.store_views.find(view_query, client, &mut |_, _| false)? > 0)
    }

    fn view_query(&self, book: &AddressBook, text: &str) -> Result<ViewQuery, CallError> {
        self.check_query(text)?;
        let view_query = ViewQuery::new(QuerySyntax::Sexp, text, Arc::clone(&self.settings));
        Ok(view_query.with_collection(&book.name).with_kind(Kind::Contact))
    }

    /// Refuses queries to which clients expect an error. In this protocol the query for all
    /// contacts is an empty text, and not `#t`.
    fn check_query(&self, text: &str) -> Result<(), CallError> {
        let invalid = || CallError::new(INVALID_QUERY, format!("Invalid Query “{text}”"));
        if text.trim_start().starts_with('#') {
            return Err(invalid());
        }
        let query =
            Query::parse_sexp_with(text, &self.options.query_context).map_err(|_| invalid())?;
        if has_invalid_phone(&query) { Err(invalid()) } else { Ok(()) }
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

/// Returns whether a query tests for a text that is not a phone number. The query crate answers
/// such a test with no item, but clients expect an error.
fn has_invalid_phone(query: &Query) -> bool {
    match query {
        Query::And(all) | Query::Or(all) => all.iter().any(has_invalid_phone),
        Query::Not(query) => has_invalid_phone(query),
        Query::Test(test) => {
            matches!(test.op, MatchOp::EqPhone | MatchOp::EqPhoneNational | MatchOp::EqPhoneShort)
                && ParsedPhoneNumber::parse(&test.text, test.region.as_deref()).is_none()
        }
        _ => false,
    }
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

//! An address book: a collection of contacts as clients open, read and change it.
//!
//! A change is one batch, all of it or nothing. When it is committed, everybody is told of the book's new revision and of what changed in
//! their views, and then the caller gets its reply.

use super::bus::{Call, LARGEST_ARRAY, Values, changed, without_nul};
use super::card::{Cards, revision};
use super::failure::{
    CONTACT_NOT_FOUND, Failure, ID_EXISTS, INVALID_ARG, INVALID_QUERY, IO_NOT_FOUND,
    IO_NOT_SUPPORTED, NOT_SUPPORTED, OTHER, OUT_OF_SYNC, SIZE_LIMIT,
};
use super::interface::ADDRESS_BOOK;
use super::registry::object_path;
use super::service::{Service, book_path};
use super::source::{KeyFile, Source, collection_of};
use larder_format::contact::{Contact, Defect, with_uid};
use larder_format::phone::Number;
use larder_query::views::{Form, Question};
use larder_query::{Op, Query};
use larder_store::{Change, Deriver, Expect, Family, ItemHead, Kind, Outcome, Prepared, Put, Seq};
use larder_sync::card::only_card;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use zbus::{Message, Variant};

/// What a book can do, in the words that clients look for.
const CAPABILITIES: &[&str] =
    &["local", "do-initial-query", "bulk-adds", "bulk-modifies", "bulk-removes", "contact-lists"];
const REQUIRED_FIELDS: &[&str] = &["file_as"];

/// The fields of a contact, as the client library calls them.
const SUPPORTED_FIELDS: &str = include_str!("fields.txt");

impl Service {
    /// What the factory is asked.
    pub(super) fn open_book(&mut self, call: &Call<'_>) -> Result<Message, Failure> {
        let uid: String = call.arguments()?;
        let source = self.sources.iter().find(|source| source.uid == uid).cloned();
        let Some(source) = source else {
            return Err(Failure::new(IO_NOT_FOUND, format!("No such source for UID “{uid}”")));
        };
        if !source.is_book {
            let text = format!(
                "Backend factory for source “{uid}” and extension “Address Book” cannot be found."
            );
            return Err(Failure::new(IO_NOT_SUPPORTED, text));
        }
        let row = self.book_row(&source)?;
        if !self.books.contains_key(&row) {
            self.books.insert(row, self.last_change(row)?);
        }
        call.reply(&(book_path(row), super::ADDRESS_BOOK))
    }

    /// The row of a source's collection, which is made if it is not there yet.
    pub(super) fn book_row(&mut self, source: &Source) -> Result<i64, Failure> {
        if let Some(row) = source.row {
            return Ok(row);
        }
        let name = collection_of(&source.uid).to_string();
        self.write("create", &name, vec![Change::CreateCollection(name.clone(), Kind::Contact)])?;
        let made = self.sources.iter().find(|made| made.uid == source.uid);
        made.and_then(|made| made.row).ok_or_else(|| Failure::new(OTHER, "the book was not made"))
    }

    /// Tells which books have another revision.
    pub(super) fn notice_books(&mut self) -> Result<(), Failure> {
        self.books.retain(|row, _| self.sources.iter().any(|source| source.row == Some(*row)));
        let mut other = Vec::new();
        let epoch = self.reader.epoch()?;
        let anew = epoch != self.epoch;
        if anew {
            self.looked = 0;
            self.cards = Cards::default();
        }
        let seq = self.reader.seq()?;
        // Where something fails, the same is looked for next time.
        self.asked_views.catch_up()?;
        for (row, told) in &mut self.books {
            if let Some(now) = self.reader.changed_in(*row, self.looked)?
                && (anew || now != *told)
            {
                let revision = revision(&self.reader, now)?;
                *told = now;
                let path = book_path(*row);
                self.out.extend(changed(&path, ADDRESS_BOOK.name, "Revision", revision));
                other.push(*row);
            }
        }
        self.notice_views(&other, seq);
        (self.looked, self.epoch) = (seq, epoch);
        Ok(())
    }

    /// The last change of a book.
    fn last_change(&self, row: i64) -> Result<Seq, Failure> {
        Ok(self.reader.changed_in(row, 0)?.unwrap_or_default())
    }

    /// The properties of a book.
    pub(super) fn book_values(&mut self, row: i64) -> Result<Values, Failure> {
        let source = self.sources.iter().find(|source| source.row == Some(row));
        let uid = source.map(|source| source.uid.replace('/', "_")).unwrap_or_default();
        let cache = self.options.cache.join(uid).display().to_string();
        let seq = match self.books.get(&row) {
            Some(told) => *told,
            None => self.last_change(row)?,
        };
        let revision = revision(&self.reader, seq)?;
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_string()).collect::<Vec<_>>();
        let fields: Vec<&str> = SUPPORTED_FIELDS.split_whitespace().collect();
        Ok(Values::from([
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

    /// What a book is asked.
    pub(super) fn book(&mut self, row: i64, call: &Call<'_>) -> Result<Message, Failure> {
        let source = self.sources.iter().find(|source| source.row == Some(row)).cloned();
        let Some(source) = source else {
            return Err(Failure::of_bus("UnknownObject", call.path()));
        };
        let book = Book { name: Arc::from(collection_of(&source.uid)), source };
        match call.member() {
            "Open" | "RetrieveProperties" => call.reply(&printed(&self.book_values(row)?)),
            "Refresh" => {
                Err(Failure::new(NOT_SUPPORTED, "Cannot refresh address book: Not supported"))
            }
            "CreateContacts" => {
                let (cards, _): (Vec<String>, u32) = call.arguments()?;
                let uids = self.create(&book, &cards).map_err(|it| it.of("Cannot add contact"))?;
                call.reply(&uids)
            }
            "ModifyContacts" => {
                let (cards, _): (Vec<String>, u32) = call.arguments()?;
                self.modify(&book, &cards).map_err(|it| it.of("Cannot modify contacts"))?;
                call.reply(&())
            }
            "RemoveContacts" => {
                let (uids, _): (Vec<String>, u32) = call.arguments()?;
                self.remove(&book, &uids).map_err(|it| it.of("Cannot remove contacts"))?;
                call.reply(&())
            }
            "GetContact" => {
                let uid: String = call.arguments()?;
                let card = self.contact(&book, &uid).map_err(|it| it.of("Cannot get contact"))?;
                call.reply(&card)
            }
            "GetContactList" => {
                let query: String = call.arguments()?;
                let cards = self.list(&book, &query, call.sender());
                call.reply(&cards.map_err(|it| it.of("Cannot get contact list"))?)
            }
            "GetContactListUids" => {
                let query: String = call.arguments()?;
                let uids = self.uids(&book, &query, call.sender());
                call.reply(&uids.map_err(|it| it.of("Cannot get contact list uids"))?)
            }
            "GetView" => {
                let query: String = call.arguments()?;
                let question = self.question(&book, &query);
                let question =
                    question.map_err(|_| Failure::new(INVALID_QUERY, "Invalid query"))?;
                let path = self.open_view(row, question, call.sender());
                call.reply(&object_path(&path))
            }
            "ContainsEmail" => {
                let address: String = call.arguments()?;
                call.reply(&self.contains_email(&book, &address, call.sender())?)
            }
            _ => call.reply(&()),
        }
    }
}

/// A book that is being asked.
pub(super) struct Book {
    /// The name of its collection.
    pub(super) name: Arc<str>,
    pub(super) source: Source,
}

/// Writing.
impl Service {
    fn create(&mut self, book: &Book, cards: &[String]) -> Result<Vec<String>, Failure> {
        let deriver = self.store.deriver_for(&book.name, Family::Contacts)?;
        let (mut uids, mut changes) = (Vec::new(), Vec::new());
        for card in cards {
            let (mut bytes, uid) = whole(card)?;
            if uid.is_none() {
                bytes = with_uid(&bytes, &self.fresh_uid()?);
            }
            let prepared = prepared(&deriver, bytes)?;
            let uid = prepared.uid().unwrap_or_default().to_string();
            if self.reader.get(&book.name, &uid)?.is_some() {
                return Err(conflict());
            }
            uids.push(uid);
            changes.push(book.put(prepared, Expect::Nothing));
        }
        let outcomes = self.write("add", &book.name, changes)?.outcomes;
        match outcomes.iter().any(|outcome| matches!(outcome, Outcome::Conflict(..))) {
            true => Err(conflict()),
            false => Ok(uids),
        }
    }

    fn modify(&mut self, book: &Book, cards: &[String]) -> Result<(), Failure> {
        let guards = KeyFile::parse(&book.source.data).is_ok_and(|file| file.guards_revisions());
        let deriver = self.store.deriver_for(&book.name, Family::Contacts)?;
        // Of one contact twice the last is meant.
        let mut changes = BTreeMap::new();
        for card in cards {
            let prepared = prepared(&deriver, whole(card)?.0)?;
            let Some(uid) = prepared.uid().map(str::to_string) else {
                return Err(Failure::new(OTHER, "No UID in the contact"));
            };
            let (head, _) = self.stored(book, &uid)?;
            if guards && !self.is_current(&prepared, &head)? {
                return Err(out_of_sync());
            }
            let expect = if guards { Expect::At(head.seq) } else { Expect::Anything };
            changes.insert(uid, book.put(prepared, expect));
        }
        let changes = changes.into_values().collect();
        let outcomes = self.write("edit", &book.name, changes)?.outcomes;
        match outcomes.iter().any(|outcome| matches!(outcome, Outcome::Conflict(..))) {
            true => Err(out_of_sync()),
            false => Ok(()),
        }
    }

    fn remove(&mut self, book: &Book, uids: &[String]) -> Result<(), Failure> {
        let mut changes: Vec<Change> = Vec::new();
        let mut heads: Vec<ItemHead> = Vec::new();
        for uid in uids {
            let (head, _) = self.stored(book, uid)?;
            if !heads.iter().any(|known| known.row == head.row) {
                changes.push(Change::Remove(head.handle, Expect::Anything));
                heads.push(head);
            }
        }
        self.write("remove", &book.name, changes).map(drop)
    }

    /// Does a card say the revision that its item has?
    fn is_current(&mut self, card: &Prepared, head: &ItemHead) -> Result<bool, Failure> {
        let contact = Contact::parse(card.bytes());
        let said = contact.properties().iter().find(|property| property.is("REV"));
        let rev = self.cards.rev(&self.reader, head.seq)?;
        Ok(said.is_some_and(|said| said.text().trim() == rev))
    }

    /// A UID that no item has.
    fn fresh_uid(&self) -> Result<String, Failure> {
        let mut uid = String::from("pas-id-");
        let random =
            || (self.options.random)().map_err(|error| Failure::new(OTHER, error.to_string()));
        for byte in random()?.into_iter().chain(random()?).take(20) {
            let _infallible = write!(uid, "{byte:02x}");
        }
        Ok(uid)
    }
}

/// Reading.
impl Service {
    /// An item and its bytes.
    fn stored(&self, book: &Book, uid: &str) -> Result<(ItemHead, Vec<u8>), Failure> {
        let text = || Failure::new(CONTACT_NOT_FOUND, format!("Contact “{uid}” not found"));
        self.reader.get(&book.name, uid)?.ok_or_else(text)
    }

    fn contact(&mut self, book: &Book, uid: &str) -> Result<String, Failure> {
        let (head, bytes) = self.stored(book, uid)?;
        Ok(self.cards.card(&self.reader, &head, &bytes)?)
    }

    fn list(&mut self, book: &Book, query: &str, client: &str) -> Result<Vec<String>, Failure> {
        let question = self.question(book, query)?;
        let (mut all, mut size, mut failed) = (Vec::new(), 0, None);
        let (cards, reader) = (&mut self.cards, &self.reader);
        self.asked_views.find(question, client, &mut |head, bytes| {
            match cards.card(reader, head, bytes) {
                Ok(card) => {
                    size += card.len() + 8;
                    all.push(card);
                }
                Err(error) => failed = Some(Failure::from(error)),
            }
            failed.is_none() && size <= LARGEST_ARRAY
        })?;
        match failed {
            Some(failure) => Err(failure),
            None if size > LARGEST_ARRAY => {
                Err(Failure::new(SIZE_LIMIT, "the answer is too large; ask for a view"))
            }
            None => Ok(all),
        }
    }

    fn uids(&self, book: &Book, query: &str, client: &str) -> Result<Vec<String>, Failure> {
        let (question, mut uids) = (self.question(book, query)?, Vec::new());
        self.asked_views.find(question, client, &mut |head, _| {
            uids.push(without_nul(&head.uid));
            true
        })?;
        Ok(uids)
    }

    fn contains_email(&self, book: &Book, address: &str, client: &str) -> Result<bool, Failure> {
        let text = address.replace('\\', "\\\\").replace('"', "\\\"");
        let question = self.question(book, &format!("(is \"email\" \"{text}\")"))?;
        Ok(self.asked_views.find(question, client, &mut |_, _| false)? > 0)
    }

    fn question(&self, book: &Book, text: &str) -> Result<Question, Failure> {
        self.query(text)?;
        let question = Question::new(Form::Sexp, text, Arc::clone(&self.settings));
        Ok(question.within(&book.name).of_kind(Kind::Contact))
    }

    /// Looks whether clients are to be given an answer. Everything is asked by an empty text here, and not by `#t`.
    fn query(&self, text: &str) -> Result<(), Failure> {
        let invalid = || Failure::new(INVALID_QUERY, format!("Invalid Query “{text}”"));
        if text.trim_start().starts_with('#') {
            return Err(invalid());
        }
        let query = Query::parse_sexp_with(text, &self.options.settings).map_err(|_| invalid())?;
        if names_no_number(&query) { Err(invalid()) } else { Ok(()) }
    }
}

impl Book {
    /// The change that puts a card into it.
    fn put(&self, prepared: Prepared, expect: Expect) -> Change {
        let uid = prepared.uid().unwrap_or_default().to_string();
        let collection = Arc::clone(&self.name);
        Change::Put(Put { collection, uid, derived_uid: false, prepared, expect })
    }
}

/// Does it ask for a phone number that is none? Here that matches nothing; clients expect to be told.
fn names_no_number(query: &Query) -> bool {
    match query {
        Query::And(all) | Query::Or(all) => all.iter().any(names_no_number),
        Query::Not(query) => names_no_number(query),
        Query::Test(test) => {
            matches!(test.op, Op::EqPhone | Op::EqPhoneNational | Op::EqPhoneShort)
                && Number::parse(&test.text, test.region.as_deref()).is_none()
        }
        _ => false,
    }
}

/// The card that a client gives, and the UID that it names: one, whole, and with something in it.
fn whole(text: &str) -> Result<(Vec<u8>, Option<String>), Failure> {
    let wrong = |why: String| Failure::new(INVALID_ARG, why);
    let bytes = only_card(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    let card = Contact::parse(&bytes);
    let half = card.problems().iter().find(|problem| problem.what == Defect::NoEnd);
    if let Some(problem) = card.refusal().or(half) {
        return Err(wrong(problem.to_string()));
    }
    let uid = card.uid();
    drop(card);
    Ok((bytes, uid))
}

/// A card made ready to be kept.
fn prepared(deriver: &Deriver, bytes: Vec<u8>) -> Result<Prepared, Failure> {
    match deriver.contact(bytes) {
        Ok((prepared, _)) => Ok(prepared),
        Err((_, problem)) => Err(Failure::new(INVALID_ARG, problem.to_string())),
    }
}

fn conflict() -> Failure {
    Failure::new(ID_EXISTS, "Conflicting UIDs found in added contacts")
}

fn out_of_sync() -> Failure {
    Failure::new(OUT_OF_SYNC, "Tried to modify contact with an out of sync revision")
}

/// Properties as a list of names and values, as GLib prints them.
fn printed(values: &Values) -> Vec<String> {
    let mut all: Vec<(String, String)> =
        values.iter().map(|(name, value)| (dashed(name), glib_text(value))).collect();
    all.sort();
    all.into_iter().flat_map(|(name, value)| [name, value]).collect()
}

/// `CacheDir` as `cache-dir`.
fn dashed(name: &str) -> String {
    let mut text = String::new();
    for (at, letter) in name.chars().enumerate() {
        if at > 0 && letter.is_ascii_uppercase() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// A value in GVariant's text form.
fn glib_text(value: &Variant<'_>) -> String {
    match value {
        Variant::Bool(value) => value.to_string(),
        Variant::Str(text) => quoted(text),
        Variant::Array(all) => {
            let all: Vec<String> = all.iter().map(glib_text).collect();
            format!("[{}]", all.join(", "))
        }
        _ => String::new(),
    }
}

fn quoted(text: &str) -> String {
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

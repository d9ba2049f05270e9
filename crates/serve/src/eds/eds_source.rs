//! The sources of the registry, each a text of groups and keys.
//!
//! An address book is a collection of contacts. The UID of its source is the name of the
//! collection, and its text is the collection's properties, as clients wrote them; a collection
//! without properties gets a default text. The list also has the built-in sources that clients
//! expect in any registry. It is read from the store each time; the module keeps no state.

use super::call_error::{CallError, KEY_FILE_NO_GROUP, KEY_FILE_PARSE};
use larder_store::{CollectionRow, CollectionType, IndexConfig, Reader};

/// The beginning of the UID of a book whose collection has the name of another source. No
/// collection that is listed has a name with this beginning.
const BOOK_UID_START: &str = "larder:";
/// The UID of the address book that every client knows, and its collection: the collection to which
/// `add` and `import` add cards.
const PERSONAL_BOOK: (&str, &str) = ("system-address-book", "contacts");
/// The group that every source has.
const DATA_SOURCE_GROUP: &str = "Data Source";
/// The group that makes a source an address book.
const ADDRESS_BOOK_GROUP: &str = "Address Book";

/// A source of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EdsSource {
    pub(super) uid: String,
    /// The number in the path of its object.
    pub(super) number: i64,
    pub(super) data: String,
    /// The row of its collection; `None`: it has no collection, or not yet.
    pub(super) row: Option<CollectionRow>,
    pub(super) is_book: bool,
    pub(super) removable: bool,
}

/// The sources that clients expect in any registry, as parents of others and as defaults of each
/// type: UID, name, parent, remaining text. Only the address book can be opened.
const BUILT_IN_SOURCES: &[(&str, &str, &str, &str)] = &[
    ("system-address-book", "Personal", "local-stub", "[Address Book]\nBackendName=local\n"),
    ("local-stub", "On This Computer", "", ""),
    ("contacts-stub", "Contacts", "", ""),
    ("caldav-stub", "CalDAV", "", ""),
    ("carddav-stub", "CardDAV", "", ""),
    ("google-stub", "Google", "", ""),
    ("ldap-stub", "On LDAP Servers", "", ""),
    ("weather-stub", "Weather", "", ""),
    ("webcal-stub", "On The Web", "", ""),
    ("webdav-notes-stub", "WebDAV Notes", "", ""),
    ("system-calendar", "Personal", "local-stub", "[Calendar]\nBackendName=local\n"),
    ("system-task-list", "Personal", "local-stub", "[Task List]\nBackendName=local\n"),
    ("system-memo-list", "Personal", "local-stub", "[Memo List]\nBackendName=local\n"),
    ("birthdays", "Birthdays", "contacts-stub", "[Calendar]\nBackendName=contacts\n"),
    ("local", "On This Computer", "", "[Mail Account]\nBackendName=maildir\n"),
    ("vfolder", "Search Folders", "", "[Mail Account]\nBackendName=vfolder\n"),
    ("sendmail", "Sendmail", "", "[Mail Transport]\nBackendName=sendmail\n"),
    ("system-proxy", "Default Proxy Settings", "", "[Proxy]\nMethod=default\n"),
];

/// Returns the name of the collection of the source with this UID.
pub(super) fn collection_of(uid: &str) -> &str {
    let (personal, collection) = PERSONAL_BOOK;
    let reserved = uid.strip_prefix(BOOK_UID_START).filter(|name| is_reserved(name));
    if uid == personal { collection } else { reserved.unwrap_or(uid) }
}

/// Returns the UID of the book of a collection that is not the personal one.
fn book_uid(collection: &str) -> String {
    let start = if is_reserved(collection) { BOOK_UID_START } else { "" };
    format!("{start}{collection}")
}

/// Returns whether no new source may have this UID.
pub(super) fn is_reserved(uid: &str) -> bool {
    uid == PERSONAL_BOOK.1 || BUILT_IN_SOURCES.iter().any(|(known, ..)| *known == uid)
}

/// Reads the sources that exist now.
pub(super) fn read_sources(reader: &Reader) -> Result<Vec<EdsSource>, larder_store::Error> {
    let mut sources = Vec::new();
    for (number, (uid, name, parent, rest)) in (0..).zip(BUILT_IN_SOURCES) {
        sources.push(EdsSource {
            uid: (*uid).into(),
            number,
            data: key_file_text(name, parent, rest),
            row: None,
            is_book: *uid == PERSONAL_BOOK.0,
            removable: false,
        });
    }
    let first = i64::try_from(sources.len()).unwrap_or_default();
    for collection in reader.collections().list_properties(CollectionType::AddressBook)? {
        let own_text =
            collection.properties.as_deref().and_then(|head| std::str::from_utf8(head).ok());
        let own_text =
            own_text.filter(|own_text| KeyFile::parse(own_text).is_ok()).map(str::to_string);
        if collection.name == PERSONAL_BOOK.1 {
            // The personal book is the first of the built-in sources.
            if let Some(personal) = sources.first_mut() {
                personal.row = Some(collection.row);
                personal.data = own_text.unwrap_or_else(|| personal.data.clone());
            }
        } else {
            let rest = "[Address Book]\nBackendName=local\n";
            sources.push(EdsSource {
                number: first + collection.row.to_number(),
                data: own_text
                    .unwrap_or_else(|| key_file_text(&collection.name, "local-stub", rest)),
                uid: book_uid(&collection.name),
                row: Some(collection.row),
                is_book: true,
                removable: true,
            });
        }
    }
    Ok(sources)
}

/// Formats the text of a source.
fn key_file_text(name: &str, parent: &str, rest: &str) -> String {
    let name = name.replace('\\', "\\\\");
    format!("[{DATA_SOURCE_GROUP}]\nDisplayName={name}\nEnabled=true\nParent={parent}\n\n{rest}")
}

/// The parsed text of a source.
#[derive(Debug)]
pub(super) struct KeyFile<'t>(Vec<(&'t str, &'t str, &'t str)>);

impl<'t> KeyFile<'t> {
    /// Parses a text of `[Group]` and `Key=Value` lines.
    ///
    /// # Errors
    /// The texts that the registry of evolution-data-server refuses.
    pub(super) fn parse(text: &'t str) -> Result<KeyFile<'t>, CallError> {
        let mut group = None;
        let mut entries = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
            } else if let Some(name) =
                line.strip_prefix('[').and_then(|line| line.strip_suffix(']'))
            {
                group = Some(name);
                entries.push((name, "", ""));
            } else if let (Some(group), Some((key, value))) = (group, line.split_once('=')) {
                entries.push((group, key.trim_end(), value.trim_start()));
            } else {
                let text = format!(
                    "Key file contains line “{line}” which is not a key-value pair, group, or comment"
                );
                return Err(CallError::new(KEY_FILE_PARSE, text));
            }
        }
        let file = KeyFile(entries);
        if !file.has_group(DATA_SOURCE_GROUP) {
            let text = format!("Data source is missing a [{DATA_SOURCE_GROUP}] group");
            return Err(CallError::new(KEY_FILE_NO_GROUP, text));
        }
        Ok(file)
    }

    fn has_group(&self, group: &str) -> bool {
        self.0.iter().any(|(of, ..)| *of == group)
    }

    /// Returns whether this is the text of an address book.
    pub(super) fn is_book(&self) -> bool {
        self.has_group(ADDRESS_BOOK_GROUP)
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, group: &str, key: &str) -> Option<&'t str> {
        let mut entries = self.0.iter().rev();
        entries.find(|(of, name, _)| *of == group && *name == key).map(|(.., value)| *value)
    }

    /// Returns whether a change of a contact fails if the contact was changed in the meantime.
    pub(super) fn has_revision_guards(&self) -> bool {
        self.get("Revision Guards", "Enabled") == Some("true")
    }

    /// Returns the index configuration that the text requests in addition to the default; `None`:
    /// none.
    ///
    /// In evolution-data-server a summary names the few fields that have an index. Nearly all
    /// fields have one here, so a summary can only add to them, mainly sort orders. A field without
    /// its own index uses the index of the field that contains it.
    pub(super) fn index_config(&self) -> Option<IndexConfig> {
        let requested = self.get("Backend Summary Setup", "IndexedFields")?;
        let mut words = String::from("default");
        for (name, kind) in requested.split(':').filter_map(|pair| pair.split_once(',')) {
            let kind = if kind == "sort-key" { "sort" } else { kind };
            let word = format!("{name}:{kind}");
            if IndexConfig::parse(&word, CollectionType::AddressBook).is_ok() {
                words.push(' ');
                words.push_str(&word);
            }
        }
        let summary = IndexConfig::parse(&words, CollectionType::AddressBook).ok()?;
        (!summary.is_default()).then_some(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::KeyFile;

    #[test]
    fn texts_of_sources() {
        let check = |text: &str, expect: Result<bool, &str>| {
            let read = KeyFile::parse(text);
            let is =
                read.as_ref().map(KeyFile::is_book).map_err(|failure| failure.message.as_str());
            assert_eq!(is, expect, "{text:?}");
        };
        check("[Data Source]\nDisplayName=a=b\n\n[Address Book]\n", Ok(true));
        check(" [Data Source] \r\n# remark\r\nDisplayName = x\r\n", Ok(false));
        check("[Address Book]\n", Err("Data source is missing a [Data Source] group"));
        check("", Err("Data source is missing a [Data Source] group"));
        let garbage =
            "Key file contains line “garbage” which is not a key-value pair, group, or comment";
        check("garbage", Err(garbage));
        check("[Data Source]\ngarbage", Err(garbage));
    }

    #[test]
    fn summaries_that_add() {
        let check = |fields: &str, expect: &[(&str, &str)]| {
            let text = format!("[Data Source]\n[Backend Summary Setup]\nIndexedFields={fields}\n");
            let summary = KeyFile::parse(&text).unwrap().index_config();
            let has = |(name, kind): &(&str, &str)| {
                let field = larder_query::find_contact_field(name).unwrap();
                summary
                    .as_ref()
                    .is_some_and(|summary| summary.index_names(field).any(|of| of == *kind))
            };
            assert_eq!(summary.is_some(), !expect.is_empty(), "{fields}");
            assert!(expect.iter().all(has), "{fields}: {summary:?}");
        };
        check("full_name,prefix:phone,phone", &[]);
        check("family_name,sort-key", &[("family_name", "sort"), ("full_name", "substring")]);
        check("nonsense,prefix:x:,:full_name,nonsense", &[]);
        check("note,prefix", &[("note", "prefix")]);
    }
}

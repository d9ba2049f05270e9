//! The registered sources: which maildirs belong to which collections.
//!
//! A source is a collection of messages in `data.db` whose properties name the path; so it has
//! checksums, a history, and can be undone like any other change. The messages themselves are in
//! `index.db`, under a collection of the same name.

use crate::error::Error;
use larder_store::{BatchChange, CollectionType, Kind, MailChange, Operation, Reader, Store};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// The property line of the path.
const MAILDIR_PROPERTY: &[u8] = b"X-LARDER-MAILDIR:";
/// The number of files that a batch removes.
const FILES_PER_BATCH: usize = 2000;

/// A registered maildir.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailSource {
    /// The name of its collection.
    pub name: String,
    /// The absolute path.
    pub path: PathBuf,
}

/// Returns the registered maildirs, in the order of their registration.
///
/// # Errors
/// The store cannot be read.
pub fn list_mail_sources(reader: &Reader) -> Result<Vec<MailSource>, Error> {
    let collections = reader.collections().list_properties(CollectionType::Mail)?;
    let sources = collections.into_iter().filter_map(|collection| {
        let properties = collection.properties?;
        let path = properties.strip_prefix(MAILDIR_PROPERTY)?;
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        Some(MailSource { name: collection.name, path })
    });
    Ok(sources.collect())
}

/// Registers a maildir under a name. A source of that name gets the new path.
///
/// # Errors
/// A collection of another type has the name, or the store cannot be written.
pub fn add_mail_source(store: &mut Store, source: &MailSource, at: i64) -> Result<(), Error> {
    let detail = format!("{} {}", source.name, source.path.display());
    let mut operation = Operation::new("sources add", &detail, at);
    let properties = [MAILDIR_PROPERTY, source.path.as_os_str().as_bytes()].concat();
    let changes = vec![
        BatchChange::CreateCollection(source.name.clone(), Kind::Message),
        BatchChange::SetCollectionProperties(source.name.clone(), Some(properties)),
    ];
    store.apply(&mut operation, changes)?;
    Ok(())
}

/// Removes the registration of a maildir, whose files stay as they are.
///
/// # Errors
/// The store cannot be written.
pub fn remove_mail_source(store: &mut Store, name: &str, at: i64) -> Result<(), Error> {
    let mut operation = Operation::new("sources remove", name, at);
    store.apply(&mut operation, vec![BatchChange::RemoveCollection(name.to_string())])?;
    Ok(())
}

/// Removes the messages of a collection from the index, in batches. Returns the number of files.
///
/// # Errors
/// The store cannot be written.
pub fn remove_indexed_mail(index: &mut Store, name: &str, at: i64) -> Result<usize, Error> {
    let _lock = index.lock_mail_sync()?;
    let mut changes = Vec::new();
    let mut count = 0;
    {
        let reader = index.open_reader()?;
        let mail = reader.mail()?;
        for directory in mail.directories(name)? {
            for file in mail.files_in(directory.id)? {
                count += 1;
                let directory = directory.path.clone();
                changes.push(MailChange::RemoveFile { directory, name: file.name });
            }
            changes.push(MailChange::RemoveDirectory(directory.path));
        }
    }
    // Registered again, its messages are not new mail.
    changes.push(MailChange::SetRuleRow(None));
    let mut operation = Operation::new("sources remove", name, at);
    let mut changes = changes.into_iter().peekable();
    while changes.peek().is_some() {
        let batch = larder_store::MailBatch {
            collection: name.to_string(),
            changes: changes.by_ref().take(FILES_PER_BATCH).collect(),
            ..larder_store::MailBatch::default()
        };
        index.apply(&mut operation, vec![BatchChange::Mail(Box::new(batch))])?;
    }
    Ok(count)
}

//! The store of mail, `index.db`, beside the one that most commands use.
//!
//! Separate from `context`, because a data directory without mail has no such store.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use larder_store::{DataDirectory, Reader, Store, StoreFile};
use larder_sync::MailSource;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The paths of the maildirs, by the names of their collections.
pub(crate) type MailRoots = BTreeMap<String, PathBuf>;

fn mail_directory(context: &CommandContext) -> DataDirectory {
    DataDirectory::new(&context.dir).with_store_file(StoreFile::Index)
}

/// Opens the index of mail for reading; `None`: there is none.
pub(crate) fn open_mail_reader(context: &CommandContext) -> Result<Option<Reader>, CommandFailure> {
    let directory = mail_directory(context);
    if !directory.has_store() {
        return Ok(None);
    }
    let zones = Arc::clone(&context.settings.user_locale.zones);
    Ok(Some(Reader::open_with_zones(directory, zones)?))
}

/// Opens the index of mail for reading.
pub(crate) fn require_mail_reader(context: &CommandContext) -> Result<Reader, CommandFailure> {
    open_mail_reader(context)?.ok_or_else(|| {
        CommandFailure::new(FailureKind::Store, "no mail is indexed")
            .with_hint("register a maildir: larder sources add MAILDIR; then: larder sync")
    })
}

/// Opens the index of mail for writing, and creates it if there is none.
pub(crate) fn open_mail_store(context: &CommandContext) -> Result<Store, CommandFailure> {
    Ok(Store::open(mail_directory(context), &context.store_options(true))?)
}

/// Returns the registered maildirs.
pub(crate) fn list_sources(context: &CommandContext) -> Result<Vec<MailSource>, CommandFailure> {
    if !DataDirectory::new(&context.dir).has_store() {
        return Ok(Vec::new());
    }
    Ok(larder_sync::list_mail_sources(&context.open_reader()?)?)
}

/// Returns the paths of the registered maildirs.
pub(crate) fn mail_roots(context: &CommandContext) -> Result<MailRoots, CommandFailure> {
    let sources = list_sources(context)?.into_iter();
    Ok(sources.map(|source| (source.name, source.path)).collect())
}

/// Returns the path of a file of a message.
pub(crate) fn file_path(roots: &MailRoots, collection: &str, path: &Path) -> PathBuf {
    roots.get(collection).map_or_else(|| path.to_path_buf(), |root| root.join(path))
}

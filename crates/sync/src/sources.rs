//! The registered sources: which maildirs, files of mail and repositories belong to which
//! collections.
//!
//! A source is a collection of messages or commits in `data.db` whose properties name the path; so
//! it has checksums, a history, and can be undone like any other change. The messages themselves
//! are in `index.db`, the commits in `commits.db`, under a collection with the same key, so that
//! their handles stay when the source is renamed, and come back when the index is made again. Names
//! of the index follow those of the sources before the next search. The registrations
//! are read under the lock of a synchronisation, so that none writes what another one removes.

use crate::error::Error;
use crate::known_tips::KnownTips;
use crate::maildir::{MailSourceFormat, is_empty_file, is_maildir_part, scan_mail};
use larder_store::{
    BatchChange, CollectionProperties, Kind, MailBatch, MailChange, MailDirectoryRecord,
    MailSyncLock, Operation, Reader, StepSize, Store,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The number of files that a batch removes.
const FILES_PER_BATCH: StepSize = StepSize::in_index(1000, 50..=2000);

/// The property line of the path of mbox and .eml files.
const FILES_PROPERTY: &[u8] = b"X-LARDER-MAIL-FILES:";

/// The type of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceType {
    /// A maildir, or files of mail, with messages.
    Mail,
    /// A git repository, with commits.
    Repository,
}

impl SourceType {
    /// Returns the name in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SourceType::Mail => "maildir",
            SourceType::Repository => "repository",
        }
    }

    /// Returns the beginning of the property line of the path.
    fn property(self) -> &'static [u8] {
        match self {
            SourceType::Mail => b"X-LARDER-MAILDIR:",
            SourceType::Repository => b"X-LARDER-REPOSITORY:",
        }
    }

    /// Returns the kind of the items.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            SourceType::Mail => Kind::Message,
            SourceType::Repository => Kind::Commit,
        }
    }
}

/// A registered maildir, mbox file, folder of mbox and .eml files, or repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredSource {
    /// The name of its collection.
    pub name: String,
    /// The absolute path.
    pub path: PathBuf,
    /// The files of a source of mail.
    pub format: MailSourceFormat,
    /// The key of the handles of its items.
    pub handle_key: Vec<u8>,
}

/// The sources that are read. One that was chosen stays so when it gets another name, and one that
/// gets its former name is not chosen by that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceSelection {
    /// Whether only the sources of `keys` and `names` are read.
    is_limited: bool,
    /// The keys of the sources that had a name that was given.
    keys: BTreeSet<Vec<u8>>,
    /// The names that no source had.
    names: BTreeSet<String>,
}

impl SourceSelection {
    /// Selects the sources with these names; without names, all.
    pub fn from_names<'s>(
        names: impl IntoIterator<Item = &'s String>,
        sources: impl IntoIterator<Item = &'s RegisteredSource>,
    ) -> SourceSelection {
        let mut names: BTreeSet<String> = names.into_iter().cloned().collect();
        let (is_limited, mut keys) = (!names.is_empty(), BTreeSet::new());
        for source in sources {
            if names.remove(&source.name) {
                keys.insert(source.handle_key.clone());
            }
        }
        SourceSelection { is_limited, keys, names }
    }

    /// Returns whether a source is selected.
    #[must_use]
    pub fn contains(&self, source: &RegisteredSource) -> bool {
        !self.is_limited
            || self.keys.contains(&source.handle_key)
            || self.names.contains(&source.name)
    }
}

/// A collection of the index that is no source any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenSource {
    /// The name.
    pub name: String,
    /// The number of files that left the index.
    pub files: usize,
}

/// Returns the registered sources, in the order of their registration.
///
/// # Errors
/// The store cannot be read.
pub fn list_mail_sources(reader: &Reader) -> Result<Vec<RegisteredSource>, Error> {
    list_sources(reader, SourceType::Mail)
}

/// Returns the registered sources of a type, in the order of their registration.
///
/// # Errors
/// The store cannot be read.
pub fn list_sources(
    reader: &Reader,
    source_type: SourceType,
) -> Result<Vec<RegisteredSource>, Error> {
    let collection_type = source_type.kind().collection_type();
    let collections = reader.collections().list_properties(collection_type)?;
    let sources = collections.into_iter().filter_map(|collection| {
        let properties = collection.properties?;
        let files = properties.strip_prefix(FILES_PROPERTY);
        let files = files.filter(|_| source_type == SourceType::Mail);
        let (format, path) = match files {
            Some(path) => (MailSourceFormat::Files, path),
            None => (MailSourceFormat::Maildir, properties.strip_prefix(source_type.property())?),
        };
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        Some(RegisteredSource {
            name: collection.name,
            path,
            format,
            handle_key: collection.handle_key,
        })
    });
    Ok(sources.collect())
}

/// Returns the paths of the maildirs by the names that their collections have in the index, which
/// may be former names, and by their own.
///
/// # Errors
/// The index cannot be read.
pub fn map_mail_roots(
    index: &Reader,
    sources: &[RegisteredSource],
) -> Result<BTreeMap<String, PathBuf>, Error> {
    map_source_paths(index, SourceType::Mail, sources)
}

/// Returns the paths of the sources of a type, as [`map_mail_roots`].
///
/// # Errors
/// The index cannot be read.
pub fn map_source_paths(
    index: &Reader,
    source_type: SourceType,
    sources: &[RegisteredSource],
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut roots: BTreeMap<String, PathBuf> =
        sources.iter().map(|source| (source.name.clone(), source.path.clone())).collect();
    for collection in list_indexed(index, source_type)? {
        let source = sources.iter().find(|source| source.handle_key == collection.handle_key);
        if let Some(source) = source {
            roots.insert(collection.name, source.path.clone());
        }
    }
    Ok(roots)
}

fn list_indexed(
    index: &Reader,
    source_type: SourceType,
) -> Result<Vec<CollectionProperties>, Error> {
    Ok(index.collections().list_properties(source_type.kind().collection_type())?)
}

/// Returns the source that has messages of the mail at a path, too: the same folder under another
/// path, one inside it, or one around it. Mbox and .eml files beside maildirs are none of theirs.
#[must_use]
pub fn find_overlapping_source<'s>(
    sources: &'s [RegisteredSource],
    path: &Path,
    format: MailSourceFormat,
) -> Option<&'s RegisteredSource> {
    sources.iter().find(|source| {
        let (new, known) = ((path, format), (source.path.as_path(), source.format));
        match (is_within(path, &source.path), is_within(&source.path, path)) {
            (true, true) => true,
            (true, false) => !is_beside_maildirs(new, known),
            (false, true) => !is_beside_maildirs(known, new),
            (false, false) => false,
        }
    })
}

/// Returns whether a source has mbox and .eml files only that are in no maildir of the source
/// around it.
fn is_beside_maildirs(
    (inner, inner_format): (&Path, MailSourceFormat),
    (outer, outer_format): (&Path, MailSourceFormat),
) -> bool {
    if (inner_format, outer_format) != (MailSourceFormat::Files, MailSourceFormat::Maildir) {
        return false;
    }
    let (Ok(inner), Ok(outer)) = (fs::canonicalize(inner), fs::canonicalize(outer)) else {
        return false;
    };
    let has_no_maildir = || {
        let scan = scan_mail(&inner, MailSourceFormat::Maildir);
        scan.is_ok_and(|scan| scan.directories.is_empty())
    };
    inner.strip_prefix(outer).is_ok_and(|below| !below.iter().any(is_maildir_part))
        && (inner.is_file() || has_no_maildir())
}

/// Returns whether two paths name the same file or folder.
#[must_use]
pub fn is_same_place(one: &Path, other: &Path) -> bool {
    is_within(one, other) && is_within(other, one)
}

/// Returns whether a folder is another one, or in it, by whatever path.
fn is_within(inner: &Path, outer: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let (Ok(inner), Some(outer)) = (fs::canonicalize(inner), identity(outer)) else {
        // A maildir whose disk is not mounted is known by its path only.
        return inner.starts_with(outer);
    };
    inner.ancestors().any(|folder| identity(folder) == Some(outer))
}

/// Makes the collections of the index those of the sources: with the same keys and names. The index
/// of a collection that is no source any more is removed.
///
/// # Errors
/// The index cannot be written.
pub fn match_indexed_sources(
    index: &mut Store,
    lock: &MailSyncLock,
    source_type: SourceType,
    sources: &[RegisteredSource],
    at: i64,
) -> Result<Vec<ForgottenSource>, Error> {
    let kind = source_type.kind();
    let mut forgotten = Vec::new();
    let mut operation = Operation::new("sync", "sources", at);
    let mut changes = Vec::new();
    let indexed = list_indexed(&index.open_reader()?, source_type)?;
    for collection in &indexed {
        let source = sources.iter().find(|source| source.handle_key == collection.handle_key);
        match source {
            None => {
                let files = remove_locked_mail(index, lock, &collection.name, at)?;
                changes.push(BatchChange::RemoveCollection(collection.name.clone()));
                forgotten.push(ForgottenSource { name: collection.name.clone(), files });
            }
            // Names may be exchanged: each goes through one that no collection has.
            Some(source) if source.name != collection.name => {
                changes.push(take_name(kind, &source.handle_key));
            }
            Some(_) => {}
        }
    }
    for source in sources {
        let is_indexed = indexed.iter().any(|collection| {
            collection.handle_key == source.handle_key && collection.name == source.name
        });
        if !is_indexed {
            let (name, handle_key) = (source.name.clone(), source.handle_key.clone());
            changes.push(BatchChange::AdoptCollection { name, kind, handle_key });
        }
    }
    if !changes.is_empty() {
        index.apply(&mut operation, changes)?;
    }
    forgotten.retain(|one| one.files > 0);
    Ok(forgotten)
}

/// Takes the name of a collection, so that another one can have it.
fn take_name(kind: Kind, handle_key: &[u8]) -> BatchChange {
    let hex: String = handle_key.iter().map(|byte| format!("{byte:02x}")).collect();
    let (name, handle_key) = (format!("{hex} renamed"), handle_key.to_vec());
    BatchChange::AdoptCollection { name, kind, handle_key }
}

/// Returns the sources whose collections in the index have other names, because they were renamed
/// since the last synchronisation.
///
/// # Errors
/// The index cannot be read.
pub fn find_renamed_sources<'s>(
    index: &Reader,
    source_type: SourceType,
    sources: &'s [RegisteredSource],
) -> Result<Vec<&'s RegisteredSource>, Error> {
    let indexed = list_indexed(index, source_type)?;
    let is_renamed = |source: &&RegisteredSource| {
        indexed.iter().any(|one| one.handle_key == source.handle_key && one.name != source.name)
    };
    Ok(sources.iter().filter(is_renamed).collect())
}

/// Returns the names of the collections in the index whose sources are not registered: an undo, or
/// a restore, took the registration back. The next synchronisation removes their items.
///
/// # Errors
/// The index cannot be read.
pub fn find_departed_sources(
    index: &Reader,
    source_type: SourceType,
    sources: &[RegisteredSource],
) -> Result<Vec<String>, Error> {
    let mut indexed = list_indexed(index, source_type)?;
    indexed.retain(|one| sources.iter().all(|source| source.handle_key != one.handle_key));
    Ok(indexed.into_iter().map(|one| one.name).collect())
}

/// Returns the sources that were not read to the end since they were registered, or since their
/// registration came back: no synchronisation began, or the first one was interrupted or is
/// running. Searches do not find all of their items.
///
/// # Errors
/// The index cannot be read.
pub fn find_unindexed_sources<'s>(
    index: &Reader,
    source_type: SourceType,
    sources: &'s [RegisteredSource],
) -> Result<Vec<&'s RegisteredSource>, Error> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let indexed = list_indexed(index, source_type)?;
    let mut unindexed = Vec::new();
    for source in sources {
        let collection = indexed.iter().find(|one| one.handle_key == source.handle_key);
        let is_complete = match collection {
            Some(collection) => is_completely_indexed(index, source_type, source, collection)?,
            None => false,
        };
        if !is_complete {
            unindexed.push(source);
        }
    }
    Ok(unindexed)
}

fn is_completely_indexed(
    index: &Reader,
    source_type: SourceType,
    source: &RegisteredSource,
    collection: &CollectionProperties,
) -> Result<bool, Error> {
    let mail = index.mail()?;
    Ok(match source_type {
        // There is no directory of an mbox file without messages.
        SourceType::Mail => {
            mail.has_complete_directories(&collection.name)? || is_empty_file(&source.path)
        }
        SourceType::Repository => {
            let directories = mail.directories(&collection.name)?;
            directories.iter().any(|one| KnownTips::from_bytes(&one.state).is_complete())
        }
    })
}

/// Gives the collections of the index the names of their sources. Returns whether they have them: a
/// running synchronisation, which writes under the names of its beginning, keeps them.
///
/// # Errors
/// The index cannot be written.
pub fn follow_source_names(
    index: &mut Store,
    source_type: SourceType,
    sources: &[RegisteredSource],
    at: i64,
) -> Result<bool, Error> {
    let Some(lock) = index.try_lock_mail_sync()? else { return Ok(false) };
    let (kind, reader) = (source_type.kind(), index.open_reader()?);
    let renamed = find_renamed_sources(&reader, source_type, sources)?;
    let mut changes = Vec::new();
    // Names may be exchanged, and a source that was removed may still have one.
    for collection in list_indexed(&reader, source_type)? {
        let has_taken_name = |source: &&RegisteredSource| {
            source.handle_key == collection.handle_key || source.name == collection.name
        };
        if renamed.iter().any(has_taken_name) {
            changes.push(take_name(kind, &collection.handle_key));
        }
    }
    for source in renamed {
        let (name, handle_key) = (source.name.clone(), source.handle_key.clone());
        changes.push(BatchChange::AdoptCollection { name, kind, handle_key });
    }
    if !changes.is_empty() {
        index.apply(&mut Operation::new("sync", "sources", at), changes)?;
    }
    index.end_mail_sync(lock)?;
    Ok(true)
}

/// Registers the mail at an absolute path under a name. A source of that name gets the new path.
///
/// # Errors
/// A collection of another type has the name, or the store cannot be written.
pub fn add_mail_source(
    store: &mut Store,
    name: &str,
    path: &Path,
    format: MailSourceFormat,
    at: i64,
) -> Result<(), Error> {
    let property = match format {
        MailSourceFormat::Maildir => SourceType::Mail.property(),
        MailSourceFormat::Files => FILES_PROPERTY,
    };
    register_source(store, SourceType::Mail.kind(), property, name, path, at)
}

/// Registers the source at an absolute path under a name. A source of that name gets the new path.
///
/// # Errors
/// As [`add_mail_source`].
pub fn add_source(
    store: &mut Store,
    source_type: SourceType,
    name: &str,
    path: &Path,
    at: i64,
) -> Result<(), Error> {
    register_source(store, source_type.kind(), source_type.property(), name, path, at)
}

fn register_source(
    store: &mut Store,
    kind: Kind,
    property: &[u8],
    name: &str,
    path: &Path,
    at: i64,
) -> Result<(), Error> {
    let detail = format!("{name} {}", path.display());
    let mut operation = Operation::new("sources add", &detail, at);
    let properties = [property, path.as_os_str().as_bytes()].concat();
    let changes = vec![
        BatchChange::CreateCollection(name.to_string(), kind),
        BatchChange::SetCollectionProperties(name.to_string(), Some(properties)),
    ];
    store.apply(&mut operation, changes)?;
    Ok(())
}

/// Removes the registration of a source, whose files stay as they are.
///
/// # Errors
/// The store cannot be written.
pub fn remove_source(store: &mut Store, name: &str, at: i64) -> Result<(), Error> {
    let mut operation = Operation::new("sources remove", name, at);
    store.apply(&mut operation, vec![BatchChange::RemoveCollection(name.to_string())])?;
    Ok(())
}

/// Removes the messages of a collection from the index, in batches. Returns the number of files.
///
/// # Errors
/// The store cannot be written.
pub fn remove_indexed_mail(index: &mut Store, name: &str, at: i64) -> Result<usize, Error> {
    let lock = index.lock_mail_sync()?;
    remove_locked_mail(index, &lock, name, at)
}

/// Removes the messages of a collection from the index, as [`remove_indexed_mail`], while the
/// caller holds the lock.
///
/// # Errors
/// The store cannot be written.
pub fn remove_locked_mail(
    index: &mut Store,
    _lock: &MailSyncLock,
    name: &str,
    at: i64,
) -> Result<usize, Error> {
    let (count, mut changes) = list_removals(index, name)?;
    // Registered again, its messages are not new mail.
    changes.push(MailChange::SetRuleRow(None));
    let mut operation = Operation::new("sources remove", name, at);
    let mut size = FILES_PER_BATCH;
    let mut changes = changes.into_iter().peekable();
    while changes.peek().is_some() {
        let batch = MailBatch {
            collection: name.to_string(),
            changes: changes.by_ref().take(size.current()).collect(),
            ..MailBatch::default()
        };
        let written = batch.changes.len();
        let applied = index.apply(&mut operation, vec![BatchChange::Mail(Box::new(batch))])?;
        size.adapt_to(written, applied.lock_held);
    }
    Ok(count)
}

/// Lists the changes that remove the messages of a collection, and the number of their files. First
/// each directory counts as never read: a removal may be interrupted, and the source registered
/// again.
fn list_removals(index: &Store, name: &str) -> Result<(usize, Vec<MailChange>), Error> {
    let reader = index.open_reader()?;
    let mail = reader.mail()?;
    let directories = mail.directories(name)?;
    let put = |directory: &MailDirectoryRecord| MailChange::PutDirectory {
        path: directory.path.clone(),
        folder: directory.folder.clone(),
        is_new: false,
        state: Vec::new(),
    };
    let mut changes: Vec<MailChange> = directories.iter().map(put).collect();
    let mut count = 0;
    for directory in directories {
        for file in mail.files_in(directory.id)? {
            count += 1;
            let directory = directory.path.clone();
            changes.push(MailChange::RemoveFile { directory, name: file.name });
        }
        changes.push(MailChange::RemoveDirectory(directory.path));
    }
    Ok((count, changes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail_sync::{MailSyncOptions, sync_maildir};
    use larder_store::{DataDirectory, StoreFile, StoreOptions};

    /// The process ends after a part of the batches, and the removal is undone.
    #[test]
    fn files_of_an_interrupted_removal_are_indexed_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("mail");
        let old = std::time::UNIX_EPOCH;
        let set_old = |path: &Path| fs::File::open(path).unwrap().set_modified(old).unwrap();
        for (folder, names) in [("cur", 0..5), ("a/cur", 5..9)] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).unwrap();
            for name in names {
                let path = folder.join(format!("{name}:2,S"));
                fs::write(&path, format!("Message-ID: <m{name}@h>\nSubject: walrus\n\nx\n"))
                    .unwrap();
                set_old(&path);
            }
            set_old(&folder);
        }
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let directory = DataDirectory::new(dir.path().join("store"));
        let mut index = Store::open(directory.with_store_file(StoreFile::Index), &options).unwrap();
        let sync = |index: &mut Store| {
            let options = MailSyncOptions::default();
            sync_maildir(index, &root, "mail", &options, &mut |_| {}, &|| false).unwrap()
        };
        assert_eq!(sync(&mut index).added_files, 9);
        assert_eq!(sync(&mut index).listed_directories, 0);
        let (count, mut changes) = list_removals(&index, "mail").unwrap();
        assert_eq!((count, changes.len()), (9, 2 + 9 + 2));
        changes.truncate(2 + 3);
        let batch = MailBatch { collection: "mail".into(), changes, ..MailBatch::default() };
        let mut operation = Operation::new("sources remove", "mail", 0);
        index.apply(&mut operation, vec![BatchChange::Mail(Box::new(batch))]).unwrap();
        let report = sync(&mut index);
        assert_eq!((report.added_files, report.listed_directories), (3, 2));
    }
}

//! The difference between the files of a maildir and those that the store knows.
//!
//! A file keeps its inode and its base name when its flags or its folder change, so such a file is
//! a rename. Pure but for the lists of known files, which are read from the store.

use crate::error::Error;
use larder_format::maildir_name::MaildirName;
use larder_store::{MailChange, MailFile, MailReader};
use rustc_hash::FxHashMap;

/// A directory as the store knows it.
#[derive(Debug, Clone)]
pub(super) struct KnownDirectory {
    pub(super) id: i64,
    pub(super) path: Vec<u8>,
    pub(super) state: Vec<u8>,
}

/// A directory that was listed.
#[derive(Debug)]
pub(super) struct DirectoryListing {
    pub(super) path: Vec<u8>,
    pub(super) folder: Vec<u8>,
    pub(super) is_new: bool,
    /// Its state; empty: it must be listed again.
    pub(super) state: Vec<u8>,
    pub(super) known: Option<KnownDirectory>,
    /// The names and inodes of its files; `None`: it could not be listed.
    pub(super) files: Option<Vec<(Vec<u8>, u64)>>,
}

/// The directories to compare.
pub(super) struct FileChanges<'l> {
    listings: &'l [DirectoryListing],
    gone: &'l [KnownDirectory],
}

/// The changes of files.
#[derive(Debug, Default)]
pub(super) struct ResolvedChanges {
    pub(super) renamed: Vec<MailChange>,
    pub(super) removed: Vec<MailChange>,
    /// The newest first, by their names.
    pub(super) added: Vec<MailFile>,
    /// Whether no file changed.
    pub(super) is_unchanged: bool,
}

impl ResolvedChanges {
    /// Returns whether there are no new files.
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty()
    }
}

/// A known file that is not where it was.
struct MissingFile<'k> {
    directory: &'k [u8],
    name: Vec<u8>,
}

impl<'l> FileChanges<'l> {
    /// Names the directories to compare.
    pub(super) fn compare(
        listings: &'l [DirectoryListing],
        gone: &'l [KnownDirectory],
    ) -> FileChanges<'l> {
        FileChanges { listings, gone }
    }

    /// Compares the files.
    pub(super) fn resolve(&self, mail: &MailReader<'_>) -> Result<ResolvedChanges, Error> {
        // By inode and base name.
        let mut missing: FxHashMap<(u64, Vec<u8>), MissingFile<'_>> = FxHashMap::default();
        let mut removed: Vec<MailChange> = Vec::new();
        let mut unknown: Vec<(&DirectoryListing, &(Vec<u8>, u64))> = Vec::new();
        let mut add_missing = |directory: &'l [u8], name: Vec<u8>, inode: u64| {
            let base = MaildirName::parse(&name).base.to_vec();
            let file = MissingFile { directory, name };
            if let Some(MissingFile { directory, name }) = missing.insert((inode, base), file) {
                removed.push(MailChange::RemoveFile { directory: directory.to_vec(), name });
            }
        };
        for directory in self.gone {
            for (name, inode) in mail.files_in(directory.id)? {
                add_missing(&directory.path, name, inode);
            }
        }
        for listing in self.listings {
            let Some(files) = &listing.files else { continue };
            let mut known: FxHashMap<Vec<u8>, u64> = match &listing.known {
                Some(directory) => mail.files_in(directory.id)?.into_iter().collect(),
                None => FxHashMap::default(),
            };
            for file in files {
                // A file that another one replaced under its name is read again.
                if known.get(&file.0) == Some(&file.1) {
                    known.remove(&file.0);
                } else {
                    known.remove(&file.0);
                    unknown.push((listing, file));
                }
            }
            for (name, inode) in known {
                add_missing(&listing.path, name, inode);
            }
        }
        let mut changes = ResolvedChanges { removed, ..ResolvedChanges::default() };
        for (listing, (name, inode)) in unknown {
            let parsed = MaildirName::parse(name);
            let file = MailFile {
                directory: listing.path.clone(),
                name: name.clone(),
                inode: *inode,
                flags: parsed.flags(listing.is_new),
            };
            match missing.remove(&(*inode, parsed.base.to_vec())) {
                Some(from) => changes.renamed.push(MailChange::RenameFile {
                    from: (from.directory.to_vec(), from.name),
                    file,
                }),
                None => changes.added.push(file),
            }
        }
        changes.removed.extend(missing.into_values().map(|file| MailChange::RemoveFile {
            directory: file.directory.to_vec(),
            name: file.name,
        }));
        changes
            .added
            .sort_by_cached_key(|file| (std::cmp::Reverse(delivery_time(&file.name)), file.inode));
        changes.is_unchanged =
            changes.renamed.is_empty() && changes.removed.is_empty() && changes.added.is_empty();
        Ok(changes)
    }
}

/// Returns the time of delivery that the name of a file begins with, in seconds since 1970; 0 if it
/// has none.
pub(super) fn delivery_time(name: &[u8]) -> i64 {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = name.get(..digits).and_then(|digits| str::from_utf8(digits).ok());
    let seconds = number.and_then(|number| number.parse().ok()).unwrap_or_default();
    // Longer numbers are not times.
    if (1..=i64::from(u32::MAX)).contains(&seconds) { seconds } else { 0 }
}

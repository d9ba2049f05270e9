//! The difference between the files of a maildir and those that the store knows.
//!
//! A file keeps its inode and its base name when its flags or its folder change, so such a file is
//! a rename. A renamed file is looked at once, for its new times. Whether a file was edited in
//! place is only known from a look at each: on request.

use crate::error::Error;
use crate::maildir::MaildirProblem;
use larder_format::maildir_name::MaildirName;
use larder_format::mbox::MboxSection;
use larder_store::{MailChange, MailFile, MailFileRecord, MailFileState, MailReader};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that was changed less than this before it was read may change again without another time.
const MIN_AGE_NANOSECONDS: i64 = 2_000_000_000;

/// A directory as the store knows it.
#[derive(Debug, Clone)]
pub(super) struct KnownDirectory {
    pub(super) id: i64,
    pub(super) path: Vec<u8>,
    pub(super) state: Vec<u8>,
}

/// A directory that the store knows and the scan did not find.
#[derive(Debug)]
pub(super) struct GoneDirectory {
    pub(super) directory: KnownDirectory,
    /// The reason that it may come back: a folder in which a disk may have been mounted that had
    /// it, or an empty mbox file. Its files are not removed, but may have been moved elsewhere.
    pub(super) absence: Option<MaildirProblem>,
}

/// A directory that was listed.
#[derive(Debug)]
pub(super) struct DirectoryListing {
    pub(super) path: Vec<u8>,
    pub(super) folder: Vec<u8>,
    pub(super) is_new: bool,
    /// Whether each file is looked at, to find those that were edited.
    pub(super) finds_edits: bool,
    /// Whether only files are listed that were added to the known ones.
    pub(super) is_addition: bool,
    /// The time of the last change of an mbox file, in nanoseconds since 1970.
    pub(super) mbox_changed: Option<i64>,
    /// Its state; empty: it must be listed again.
    pub(super) state: Vec<u8>,
    pub(super) known: Option<KnownDirectory>,
    /// The names and inodes of its files; `None`: it could not be listed.
    pub(super) files: Option<Vec<(Vec<u8>, u64)>>,
}

/// The directories to compare.
pub(super) struct FileChanges<'l> {
    root: &'l Path,
    listings: &'l [DirectoryListing],
    gone: &'l [GoneDirectory],
}

/// The changes of files.
#[derive(Debug, Default)]
pub(super) struct ResolvedChanges {
    pub(super) renamed: Vec<MailChange>,
    /// Files whose contents changed.
    pub(super) edited: Vec<MailChange>,
    pub(super) removed: Vec<MailChange>,
    /// The directories that may come back and have files.
    pub(super) kept_directories: FxHashSet<Vec<u8>>,
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

    fn add_removal(&mut self, file: MissingFile<'_>) {
        let directory = file.directory.to_vec();
        if file.is_kept {
            self.kept_directories.insert(directory);
        } else {
            self.removed.push(MailChange::RemoveFile { directory, name: file.file.name });
        }
    }
}

/// A known file that is not where it was.
struct MissingFile<'k> {
    directory: &'k [u8],
    file: MailFileRecord,
    /// It stays in the index if it is nowhere else.
    is_kept: bool,
}

/// The known files that are not where they were, by what a renamed file keeps.
type MissingFiles<'k> = FxHashMap<(u64, Vec<u8>), MissingFile<'k>>;

/// Finds the messages of mbox files whose bytes changed at their place, such as the last one, which
/// was not complete. They are read again under their new names, as files are that were edited: a
/// new message would meet its former text under its own Message-ID, and get another name.
fn replace_sections(missing: &mut MissingFiles<'_>, changes: &mut ResolvedChanges) {
    let place = |directory: &[u8], name: &[u8]| {
        let section = MboxSection::parse_name(name).filter(|section| section.date != 0)?;
        Some((directory.to_vec(), section.date, section.offset))
    };
    let known = missing
        .iter()
        .filter_map(|(key, one)| Some((place(one.directory, &one.file.name)?, key.clone())));
    let mut known: FxHashMap<_, _> = known.collect();
    let ResolvedChanges { added, edited, renamed, .. } = changes;
    added.retain(|file| {
        let key = place(&file.directory, &file.name).and_then(|place| known.remove(&place));
        let Some(from) = key.and_then(|key| missing.remove(&key)) else { return true };
        let (directory, name) = (file.directory.clone(), file.name.clone());
        edited.push(MailChange::ExpireFile { directory, name });
        let file = MailFile { state: from.file.state, ..file.clone() };
        let from = (from.directory.to_vec(), from.file.name);
        renamed.push(MailChange::RenameFile { from, file });
        false
    });
}

/// The known files of a directory that was listed.
#[derive(Default)]
struct ListedDirectory {
    /// By place in the listing, whether the file is known. One that another file replaced under its
    /// name is not.
    is_known: Vec<bool>,
    /// The known files that are not there.
    missing: Vec<MailFileRecord>,
    /// The known files that are there, if each is to be looked at.
    unedited: Vec<MailFileRecord>,
}

/// Compares a listing with the known files of the directory. Almost all are there, so that only the
/// others are copied.
fn compare_listing(
    mail: &MailReader<'_>,
    listing: &DirectoryListing,
    files: &[(Vec<u8>, u64)],
) -> Result<ListedDirectory, Error> {
    let mut known = ListedDirectory { is_known: vec![false; files.len()], ..Default::default() };
    let Some(directory) = listing.known.as_ref().filter(|_| !listing.is_addition) else {
        return Ok(known);
    };
    let names = files.iter().enumerate().map(|(place, (name, _))| (name.as_slice(), place));
    let places: FxHashMap<&[u8], usize> = names.collect();
    mail.for_each_file(directory.id, &mut |name, inode, state| {
        let place = places.get(name).copied();
        let record = || MailFileRecord { name: name.to_vec(), inode, state };
        let is_there = place.and_then(|place| files.get(place)).is_some_and(|file| file.1 == inode);
        if let Some(is_known) = place.and_then(|place| known.is_known.get_mut(place)) {
            *is_known = is_there;
        }
        if place.is_none() {
            known.missing.push(record());
        } else if is_there && listing.finds_edits {
            known.unedited.push(record());
        }
    })?;
    Ok(known)
}

impl<'l> FileChanges<'l> {
    /// Names the directories to compare.
    pub(super) fn compare(
        root: &'l Path,
        listings: &'l [DirectoryListing],
        gone: &'l [GoneDirectory],
    ) -> FileChanges<'l> {
        FileChanges { root, listings, gone }
    }

    /// Compares the files.
    pub(super) fn resolve(&self, mail: &MailReader<'_>) -> Result<ResolvedChanges, Error> {
        let mut missing = MissingFiles::default();
        let mut changes = ResolvedChanges::default();
        let mut unknown: Vec<(&DirectoryListing, &(Vec<u8>, u64))> = Vec::new();
        let mut add_missing = |one: MissingFile<'l>, changes: &mut ResolvedChanges| {
            let key = identity_key(one.file.inode, &one.file.name);
            if let Some(other) = missing.insert(key, one) {
                changes.add_removal(other);
            }
        };
        for GoneDirectory { directory, absence } in self.gone {
            let is_kept = absence.is_some();
            for file in mail.files_in(directory.id)? {
                add_missing(
                    MissingFile { directory: &directory.path, file, is_kept },
                    &mut changes,
                );
            }
        }
        for listing in self.listings {
            let Some(files) = &listing.files else { continue };
            let known = compare_listing(mail, listing, files)?;
            for (file, is_known) in files.iter().zip(known.is_known) {
                if !is_known {
                    unknown.push((listing, file));
                }
            }
            for record in known.unedited {
                if self.is_edited(listing, &record) {
                    changes.edited.push(expire_file(listing, &record.name));
                }
            }
            for file in known.missing {
                let directory = &listing.path;
                add_missing(MissingFile { directory, file, is_kept: false }, &mut changes);
            }
        }
        for (listing, (name, inode)) in unknown {
            let parsed = MaildirName::parse(name);
            let mut file = MailFile {
                directory: listing.path.clone(),
                name: name.clone(),
                inode: *inode,
                flags: parsed.flags(listing.is_new),
                state: MailFileState::default(),
            };
            let Some(from) = missing.remove(&identity_key(*inode, name)) else {
                changes.added.push(file);
                continue;
            };
            let known = from.file.state;
            file.state = match listing.mbox_changed {
                Some(changed) => MailFileState { changed, ..known },
                None => self.state(listing, name).unwrap_or(known),
            };
            // The time changes with the name, but not that of the content.
            let is_edited = match known.modified {
                0 => listing.finds_edits,
                modified => (file.state.size, file.state.modified) != (known.size, modified),
            };
            if is_edited {
                changes.edited.push(expire_file(listing, name));
            } else {
                file.state.modified = known.modified;
            }
            let from = (from.directory.to_vec(), from.file.name);
            changes.renamed.push(MailChange::RenameFile { from, file });
        }
        replace_sections(&mut missing, &mut changes);
        missing.into_values().for_each(|file| changes.add_removal(file));
        sort_newest_first(&mut changes.added);
        changes.is_unchanged = changes.renamed.is_empty()
            && changes.edited.is_empty()
            && changes.removed.is_empty()
            && changes.added.is_empty();
        Ok(changes)
    }

    /// Returns the state of a file; `None`: it cannot be seen.
    fn state(&self, listing: &DirectoryListing, name: &[u8]) -> Option<MailFileState> {
        let path = file_path(self.root, &listing.path, name);
        std::fs::metadata(path).ok().map(|metadata| file_state(&metadata))
    }

    /// Returns whether a file has another state than the known one, or may have. One that cannot be
    /// seen was moved since its directory was listed.
    fn is_edited(&self, listing: &DirectoryListing, known: &MailFileRecord) -> bool {
        let is_same = |state| known.state.modified != 0 && state == known.state;
        self.state(listing, &known.name).is_some_and(|state| !is_same(state))
    }
}

fn expire_file(listing: &DirectoryListing, name: &[u8]) -> MailChange {
    MailChange::ExpireFile { directory: listing.path.clone(), name: name.to_vec() }
}

/// Returns what a renamed file keeps: its inode and the base of its name. A message in an mbox file
/// keeps its hash, which is in the place of the inode.
fn identity_key(inode: u64, name: &[u8]) -> (u64, Vec<u8>) {
    match MboxSection::parse_name(name) {
        Some(_) => (inode, Vec::new()),
        None => (inode, MaildirName::parse(name).base.to_vec()),
    }
}

/// Returns the number in whose order files are read fastest.
pub(super) fn read_order(file: &MailFile) -> u64 {
    MboxSection::parse_name(&file.name).map_or(file.inode, |section| section.offset)
}

/// Sorts files by the times in their names, the newest first.
pub(super) fn sort_newest_first(files: &mut [MailFile]) {
    files.sort_by_cached_key(|file| {
        (std::cmp::Reverse(delivery_time(&file.name)), file.inode, file.name.clone())
    });
}

/// Returns the path of a file of a directory below the root.
pub(super) fn file_path(root: &Path, directory: &[u8], name: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(directory)).join(OsStr::from_bytes(name))
}

/// Returns the state of a file that is being read or looked at.
pub(super) fn file_state(metadata: &Metadata) -> MailFileState {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000) + rest;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
    let modified = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
    let is_settled = now.saturating_sub(modified).saturating_abs() >= MIN_AGE_NANOSECONDS;
    MailFileState {
        size: metadata.len(),
        modified: if is_settled { modified } else { 0 },
        changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// A name with a smaller number is no time but the number of a file: there were no maildirs yet on
/// 1990-01-01.
pub(super) const FIRST_DELIVERY: i64 = 631_152_000;

/// Returns the time of delivery that the name of a file begins with, in seconds since 1970; 0 if it
/// has none.
pub(super) fn delivery_time(name: &[u8]) -> i64 {
    // People name such files.
    if name.len() > 4 && name.to_ascii_lowercase().ends_with(b".eml") {
        return 0;
    }
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = name.get(..digits).and_then(|digits| str::from_utf8(digits).ok());
    let seconds = number.and_then(|number| number.parse().ok()).unwrap_or_default();
    // Longer numbers are not times.
    if (1..=i64::from(u32::MAX)).contains(&seconds) { seconds } else { 0 }
}

//! The difference between the files of a maildir and those that the store knows.
//!
//! A file keeps its inode and its base name when its flags or its folder change, so such a file is
//! a rename. A renamed file is looked at once, for its new times. So is a file that was read when
//! it was new, and may have been written to the end since. Whether another file was edited in place
//! is only known from a look at each: on request.

use super::absent_mail::directory_path;
use super::file_list::FileList;
use crate::error::Error;
use crate::file_time::{MIN_AGE_SECONDS, NANOSECONDS, to_nanoseconds};
use crate::maildir::MaildirProblem;
use larder_format::maildir_name::MaildirName;
use larder_format::mbox::MboxSection;
use larder_store::{MailChange, MailFile, MailFileRecord, MailFileState, MailReader};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The state of a directory that was read to the end once, and must be listed again. An empty state
/// says that its files may never have been read.
pub(super) const UNSETTLED_STATE: &[u8] = b"unsettled";

/// A directory as the store knows it.
#[derive(Debug, Clone)]
pub(super) struct KnownDirectory {
    pub(super) id: i64,
    pub(super) path: Vec<u8>,
    pub(super) state: Vec<u8>,
}

impl KnownDirectory {
    /// Returns whether the directory need not be listed while it has this state.
    pub(super) fn is_settled(&self) -> bool {
        !self.state.is_empty() && self.state != UNSETTLED_STATE
    }
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
    /// Whether each file is looked at, to find those that were edited, and not only those that are
    /// known to be.
    pub(super) finds_edits: bool,
    /// Whether only files are listed that were added to the known ones.
    pub(super) is_addition: bool,
    /// The time of the last change of an mbox file, in nanoseconds since 1970.
    pub(super) mbox_changed: Option<i64>,
    /// Its state; empty: it must be listed again.
    pub(super) state: Vec<u8>,
    pub(super) known: Option<KnownDirectory>,
    /// Whether it could be listed.
    pub(super) is_listed: bool,
}

/// The files that were compared.
pub(super) struct FileChanges<'l> {
    root: &'l Path,
    /// Files that are looked at, also if their listings do not say so.
    edited_files: &'l BTreeSet<PathBuf>,
    missing: MissingFiles,
    /// The files whose names are not known in their directories, which have the numbers of the
    /// listings.
    unknown: FileList,
    changes: ResolvedChanges,
}

/// The changes of files.
#[derive(Debug, Default)]
pub(super) struct ResolvedChanges {
    pub(super) renamed: Vec<MailChange>,
    /// Files whose contents changed, or may have.
    pub(super) edited: Vec<MailChange>,
    /// The paths of those whose contents changed.
    pub(super) altered: FxHashSet<PathBuf>,
    pub(super) removed: Vec<MailChange>,
    /// The states of known files that were read when they were new, and have not changed since.
    pub(super) file_states: Vec<MailChange>,
    /// The directories with a file that changed less than two seconds ago, or is to be read again.
    pub(super) recent_directories: FxHashSet<Vec<u8>>,
    /// The directories that may come back and have files.
    pub(super) kept_directories: FxHashSet<Vec<u8>>,
    /// The newest first, by their names.
    pub(super) added: FileList,
    /// Whether no file changed.
    pub(super) is_unchanged: bool,
}

impl ResolvedChanges {
    /// Returns whether there are no new files.
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    fn add_removal(&mut self, file: MissingFile) {
        let directory = file.directory.to_vec();
        if file.is_kept {
            self.kept_directories.insert(directory);
        } else {
            self.removed.push(MailChange::RemoveFile { directory, name: file.file.name });
        }
    }
}

/// A known file that is not where it was.
struct MissingFile {
    directory: Rc<[u8]>,
    file: MailFileRecord,
    /// It stays in the index if it is nowhere else.
    is_kept: bool,
}

/// The known files that are not where they were, by what a renamed file keeps.
type MissingFiles = FxHashMap<(u64, Vec<u8>), MissingFile>;

/// Finds the messages of mbox files whose bytes changed at their place, such as the last one, which
/// was not complete. They are read again under their new names, as files are that were edited: a
/// new message would meet its former text under its own Message-ID, and get another name.
fn replace_sections(root: &Path, missing: &mut MissingFiles, changes: &mut ResolvedChanges) {
    let place = |directory: &[u8], name: &[u8]| {
        let section = MboxSection::parse_name(name).filter(|section| section.date != 0)?;
        Some((directory.to_vec(), section.date, section.offset))
    };
    let known = missing
        .iter()
        .filter_map(|(key, one)| Some((place(&one.directory, &one.file.name)?, key.clone())));
    let mut known: FxHashMap<_, _> = known.collect();
    if known.is_empty() {
        return;
    }
    let ResolvedChanges { added, edited, altered, renamed, .. } = changes;
    added.retain(&mut |_, file| {
        let key = place(&file.directory, &file.name).and_then(|place| known.remove(&place));
        let Some(from) = key.and_then(|key| missing.remove(&key)) else { return true };
        let (directory, name) = (file.directory.clone(), file.name.clone());
        altered.insert(file_path(root, &directory, &name));
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
    /// Otherwise those that were read when they were new.
    recent: Vec<MailFileRecord>,
}

/// Compares a listing with the known files of the directory. Almost all are there, so that only the
/// others are copied, and those with the names of files that were edited.
fn compare_listing(
    mail: &MailReader<'_>,
    listing: &DirectoryListing,
    edited: &FxHashSet<&[u8]>,
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
        } else if is_there && (listing.finds_edits || edited.contains(name)) {
            known.unedited.push(record());
        } else if is_there && state.modified == 0 && listing.mbox_changed.is_none() {
            known.recent.push(record());
        }
    })?;
    Ok(known)
}

impl<'l> FileChanges<'l> {
    /// Begins to compare the files of the maildir at a root.
    pub(super) fn new(root: &'l Path, edited_files: &'l BTreeSet<PathBuf>) -> FileChanges<'l> {
        FileChanges {
            root,
            edited_files,
            missing: MissingFiles::default(),
            unknown: FileList::default(),
            changes: ResolvedChanges::default(),
        }
    }

    /// Adds the files of a directory that the scan did not find.
    pub(super) fn add_gone(
        &mut self,
        gone: &GoneDirectory,
        mail: &MailReader<'_>,
    ) -> Result<(), Error> {
        let (directory, is_kept) =
            (Rc::from(gone.directory.path.as_slice()), gone.absence.is_some());
        for file in mail.files_in(gone.directory.id)? {
            self.add_missing(MissingFile { directory: Rc::clone(&directory), file, is_kept });
        }
        Ok(())
    }

    /// Adds a listing whose directory the store does not know, and returns its number.
    pub(super) fn add_directory(&mut self, listing: &DirectoryListing) -> usize {
        self.unknown.add_directory(&listing.path, listing.is_new)
    }

    /// Adds a file of such a listing.
    pub(super) fn add_unknown(&mut self, number: usize, name: Vec<u8>, inode: u64) {
        self.unknown.push(number, name, inode);
    }

    /// Compares the files of a listing, which are passed as names and inodes. Of a directory that
    /// could not be listed, the files that are known stay.
    pub(super) fn add_listing(
        &mut self,
        listing: &DirectoryListing,
        files: Vec<(Vec<u8>, u64)>,
        mail: &MailReader<'_>,
    ) -> Result<(), Error> {
        let number = self.add_directory(listing);
        if !listing.is_listed {
            return Ok(());
        }
        let directory = directory_path(self.root, &listing.path);
        let edited = files_in(self.edited_files, &directory).map(OsStr::as_bytes).collect();
        let known = compare_listing(mail, listing, &edited, &files)?;
        for ((name, inode), is_known) in files.into_iter().zip(known.is_known) {
            if !is_known {
                self.add_unknown(number, name, inode);
            }
        }
        for record in known.unedited {
            // One that cannot be seen was moved since its directory was listed.
            let Some(state) = self.state(listing, &record.name) else { continue };
            if record.state.modified != 0 && state == record.state {
                continue;
            }
            self.expire(listing, &record.name);
            // The time of the content is not known of a file that was read when it was new.
            let is_altered = match record.state.modified {
                0 => (state.size, state.changed) != (record.state.size, record.state.changed),
                modified => (state.size, state.modified) != (record.state.size, modified),
            };
            if is_altered {
                self.changes.altered.insert(file_path(self.root, &listing.path, &record.name));
            }
        }
        for record in known.recent {
            self.check_recent_file(listing, record);
        }
        let directory: Rc<[u8]> = Rc::from(listing.path.as_slice());
        for file in known.missing {
            self.add_missing(MissingFile {
                directory: Rc::clone(&directory),
                file,
                is_kept: false,
            });
        }
        Ok(())
    }

    /// Looks at a file that was read when it was new: another program may have written more of it.
    fn check_recent_file(&mut self, listing: &DirectoryListing, known: MailFileRecord) {
        let MailFileRecord { name, inode, state: former } = known;
        let state = self.state(listing, &name);
        if state.is_none_or(|state| state.modified == 0) {
            self.changes.recent_directories.insert(listing.path.clone());
        }
        let Some(state) = state else { return };
        if (state.size, state.changed) != (former.size, former.changed) {
            self.expire(listing, &name);
            self.changes.altered.insert(file_path(self.root, &listing.path, &name));
        } else if state.modified != 0 {
            let flags = MaildirName::parse(&name).flags(listing.is_new);
            let file = MailFile { directory: listing.path.clone(), name, inode, flags, state };
            self.changes.file_states.push(MailChange::SetFileState(file));
        }
    }

    /// Marks a file to be read again. Until that is done, its directory must be listed again: the
    /// file may still be written.
    fn expire(&mut self, listing: &DirectoryListing, name: &[u8]) {
        self.changes.recent_directories.insert(listing.path.clone());
        self.changes.edited.push(expire_file(listing, name));
    }

    fn add_missing(&mut self, one: MissingFile) {
        let key = identity_key(one.file.inode, &one.file.name);
        if let Some(other) = self.missing.insert(key, one) {
            self.changes.add_removal(other);
        }
    }

    /// Returns the changes, when all listings were compared.
    pub(super) fn resolve(mut self, listings: &[DirectoryListing]) -> ResolvedChanges {
        if !self.missing.is_empty() {
            let mut unknown = std::mem::take(&mut self.unknown);
            unknown.retain(&mut |number, file| !self.find_rename(listings.get(number), file));
            self.unknown = unknown;
        }
        let FileChanges { root, mut missing, unknown, mut changes, .. } = self;
        changes.added = unknown;
        replace_sections(root, &mut missing, &mut changes);
        missing.into_values().for_each(|file| changes.add_removal(file));
        changes.is_unchanged = changes.renamed.is_empty()
            && changes.edited.is_empty()
            && changes.removed.is_empty()
            && changes.added.is_empty();
        changes
    }

    /// Returns whether an unknown file is a known one that was renamed, and adds that change.
    fn find_rename(&mut self, listing: Option<&DirectoryListing>, file: &MailFile) -> bool {
        let Some(listing) = listing else { return false };
        let Some(from) = self.missing.remove(&identity_key(file.inode, &file.name)) else {
            return false;
        };
        let (known, name, mut file) = (from.file.state, &file.name, file.clone());
        file.state = match listing.mbox_changed {
            Some(changed) => MailFileState { changed, ..known },
            None => self.state(listing, name).unwrap_or(known),
        };
        // The time changes with the name, but not that of the content. That of a file that was read
        // when it was new is not known, but its size is.
        let is_named = |directory: &[u8], name: &[u8]| {
            !self.edited_files.is_empty()
                && self.edited_files.contains(&file_path(self.root, directory, name))
        };
        let finds_edits = listing.finds_edits
            || is_named(&listing.path, name)
            || is_named(&from.directory, &from.file.name);
        let is_edited = match known.modified {
            0 => finds_edits || file.state.size != known.size,
            modified => (file.state.size, file.state.modified) != (known.size, modified),
        };
        if is_edited {
            self.changes.edited.push(expire_file(listing, name));
            if known.modified != 0 || file.state.size != known.size {
                self.changes.altered.insert(file_path(self.root, &listing.path, name));
            }
        } else {
            file.state.modified = known.modified;
        }
        let from = (from.directory.to_vec(), from.file.name);
        self.changes.renamed.push(MailChange::RenameFile { from, file });
        true
    }

    /// Returns the state of a file; `None`: it cannot be seen.
    fn state(&self, listing: &DirectoryListing, name: &[u8]) -> Option<MailFileState> {
        let path = file_path(self.root, &listing.path, name);
        std::fs::metadata(path).ok().map(|metadata| file_state(&metadata))
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

/// Returns the names of the files of a directory that are in a set.
pub(super) fn files_in<'f>(
    files: &'f BTreeSet<PathBuf>,
    directory: &'f Path,
) -> impl Iterator<Item = &'f OsStr> {
    let within = files.range::<Path, _>((Bound::Included(directory), Bound::Unbounded));
    let within = within.take_while(move |path| path.starts_with(directory));
    within.filter(move |path| path.parent() == Some(directory)).filter_map(|path| path.file_name())
}

/// Returns the path of a file of a directory below the root.
pub(super) fn file_path(root: &Path, directory: &[u8], name: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(directory)).join(OsStr::from_bytes(name))
}

/// Returns the state of a file that is being read or looked at.
pub(super) fn file_state(metadata: &Metadata) -> MailFileState {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
    let modified = to_nanoseconds(metadata.mtime(), metadata.mtime_nsec());
    let is_settled = now.saturating_sub(modified).saturating_abs() >= MIN_AGE_SECONDS * NANOSECONDS;
    MailFileState {
        size: metadata.len(),
        // A file of 1970 is not a new one.
        modified: match (is_settled, modified) {
            (true, 0) => 1,
            (true, modified) => modified,
            (false, _) => 0,
        },
        changed: to_nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}

//! Listing the directories of a maildir, and comparing their files with those that are known, one
//! directory after the other: the names of all files would take much memory.
//!
//! Separate from `file_changes`, which compares, and from `mbox_listing`.

use super::absent_mail::directory_path;
use super::file_changes::{
    DirectoryListing, FileChanges, GoneDirectory, KnownDirectory, ResolvedChanges, files_in,
};
use super::{MailSync, SyncProblem, problem_of};
use crate::error::Error;
use crate::maildir::{
    DirectoryContents, DirectoryState, MaildirDirectory, MaildirProblem, MaildirScan, find_absence,
};
use larder_store::Reader;
use rustc_hash::FxHashSet;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

impl MailSync<'_> {
    /// Lists the directories whose state changed, and compares their files and those of directories
    /// that are gone with the known ones. `known` has the known directory of each scanned one.
    pub(super) fn list_directories(
        &mut self,
        scan: &MaildirScan,
        known: &[Option<&KnownDirectory>],
        gone: &[GoneDirectory],
        scanned_at: i64,
    ) -> Result<(Vec<DirectoryListing>, ResolvedChanges), Error> {
        let reader = self.store.open_reader()?;
        let mut changes = FileChanges::new(self.root, &self.options.edited_files);
        for directory in gone {
            changes.add_gone(directory, &reader.mail()?)?;
        }
        let mut listings = Vec::new();
        for (directory, record) in scan.directories.iter().zip(known.iter().copied()) {
            let path = self.relative_path(directory);
            listings.extend(match directory.contents {
                DirectoryContents::Mbox => {
                    let listed = self.list_mbox(directory, path, scanned_at, record)?;
                    let compare = |(listing, files)| {
                        changes.add_listing(&listing, files, &reader.mail()?)?;
                        Ok::<_, Error>(listing)
                    };
                    listed.map(compare).transpose()?
                }
                _ if self.is_unchanged(directory, record) => None,
                _ => {
                    let listing = self.begin_listing(directory, path, scanned_at, record);
                    Some(self.list_files(directory, listing, &mut changes, &reader)?)
                }
            });
        }
        let files = changes.resolve(&listings);
        Ok((listings, files))
    }

    /// Returns whether a directory need not be listed.
    fn is_unchanged(&self, directory: &MaildirDirectory, known: Option<&KnownDirectory>) -> bool {
        let state = encode_state(&directory.state);
        let is_same = known.is_some_and(|known| known.state == state);
        let is_frozen = directory.has_noupdate && known.is_some_and(KnownDirectory::is_settled);
        let has_edited_files = || files_in(&self.options.edited_files, &directory.path).next();
        !self.finds_edits(directory) && (is_same || is_frozen) && has_edited_files().is_none()
    }

    /// Lists the files of a directory, and compares them with the known ones.
    fn list_files(
        &mut self,
        directory: &MaildirDirectory,
        mut listing: DirectoryListing,
        changes: &mut FileChanges<'_>,
        reader: &Reader,
    ) -> Result<DirectoryListing, Error> {
        if listing.known.is_none() {
            let number = changes.add_directory(&listing);
            let listed = directory.list_files(&mut |file| {
                changes.add_unknown(number, file.name.into_vec(), file.inode);
            });
            self.end_listing(&mut listing, directory, listed);
        } else {
            let mut files = Vec::new();
            let listed = directory.list_files(&mut |file| {
                files.push((file.name.into_vec(), file.inode));
            });
            self.end_listing(&mut listing, directory, listed);
            changes.add_listing(&listing, files, &reader.mail()?)?;
        }
        Ok(listing)
    }

    /// Returns the known directories that the scan did not find, of those without a scanned one.
    /// A folder that cannot be read at the moment keeps its known files.
    pub(super) fn find_gone_directories(
        &self,
        scan: &MaildirScan,
        unscanned: &[&KnownDirectory],
        scanned_at: i64,
    ) -> Vec<GoneDirectory> {
        let unreadable: FxHashSet<&Path> =
            scan.problems.iter().map(|problem| problem.path.as_path()).collect();
        let mut gone = Vec::new();
        for record in unscanned {
            let path = directory_path(self.root, &record.path);
            if path.ancestors().any(|folder| unreadable.contains(folder)) {
                continue;
            }
            let absence = find_absence(self.root, self.format, &path, scanned_at);
            gone.push(GoneDirectory { directory: (*record).clone(), absence });
        }
        gone
    }

    /// Returns whether all files of a directory are looked at, to find those that were edited.
    fn finds_edits(&self, directory: &MaildirDirectory) -> bool {
        self.options.is_full || self.options.edited_directories.contains(&directory.path)
    }

    pub(super) fn relative_path(&self, directory: &MaildirDirectory) -> Vec<u8> {
        let path = directory.path.strip_prefix(self.root).unwrap_or(&directory.path);
        path.as_os_str().as_bytes().to_vec()
    }

    /// Returns the listing of a directory whose files are not listed yet.
    fn begin_listing(
        &self,
        directory: &MaildirDirectory,
        path: Vec<u8>,
        scanned_at: i64,
        known: Option<&KnownDirectory>,
    ) -> DirectoryListing {
        let is_settled = directory.state.is_settled(scanned_at);
        DirectoryListing {
            path,
            folder: directory.folder.as_os_str().as_bytes().to_vec(),
            is_new: directory.is_new,
            finds_edits: self.finds_edits(directory),
            is_addition: false,
            mbox_changed: None,
            state: if is_settled { encode_state(&directory.state) } else { Vec::new() },
            known: known.cloned(),
            is_listed: false,
        }
    }

    /// Ends the listing of a directory. One that cannot be listed keeps the files that are known of
    /// it.
    fn end_listing(
        &mut self,
        listing: &mut DirectoryListing,
        directory: &MaildirDirectory,
        listed: io::Result<Vec<MaildirProblem>>,
    ) {
        match listed {
            Ok(problems) => {
                if !problems.is_empty() {
                    listing.state.clear();
                }
                self.report.problems.extend(problems.iter().map(problem_of));
                listing.is_listed = true;
            }
            // It was removed after the scan.
            Err(error) if error.kind() == io::ErrorKind::NotFound => listing.state.clear(),
            Err(error) => {
                listing.state.clear();
                self.report.problems.push(SyncProblem {
                    path: directory.path.clone(),
                    reason: error.to_string(),
                    is_left_out: true,
                });
            }
        }
    }
}

/// Returns the stored form of the state of a directory.
fn encode_state(state: &DirectoryState) -> Vec<u8> {
    let times = [
        state.modified_seconds,
        state.modified_nanoseconds,
        state.inode_changed_seconds,
        state.inode_changed_nanoseconds,
    ];
    let numbers = [state.device, state.inode].into_iter();
    numbers.chain(times.map(i64::cast_unsigned)).flat_map(u64::to_le_bytes).collect()
}

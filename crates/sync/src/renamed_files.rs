//! Files of maildirs that were renamed since the last synchronisation.
//!
//! A mail reader that changes the flags of a message renames its file, and the index has the old
//! name until the next synchronisation. Separate from `mail_sync`, whose readers look for the files
//! of a batch: here any file may be wanted, and nothing is written.

use crate::mbox_file::has_message_file;
use larder_format::maildir_name::MaildirName;
use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most lists of a folder, each of which may find names that are newer than the one before.
const MAX_FOLDER_LISTINGS: usize = 4;

/// Finds the present names of files. Folders are listed once for all their files.
#[derive(Debug, Default)]
pub struct RenamedFileFinder {
    folders: HashMap<PathBuf, FolderListing>,
}

/// The paths of the files in `cur` and `new` of a folder, by their base names.
#[derive(Debug, Default)]
struct FolderListing {
    paths: HashMap<Vec<u8>, Vec<PathBuf>>,
    listings: usize,
}

impl RenamedFileFinder {
    /// Returns the path of a file now: the same one, or that of the file with this base name and
    /// inode in `cur` or `new` of the folder; `None`: there is none. As a synchronisation does, it
    /// takes no other file with the base name, which may be another message.
    pub fn find(&mut self, path: &Path, inode: u64) -> Option<PathBuf> {
        if has_message_file(path) {
            return Some(path.to_path_buf());
        }
        let directory = path.parent()?;
        if !directory.ends_with("cur") && !directory.ends_with("new") {
            return None;
        }
        let folder = directory.parent()?;
        let base = MaildirName::parse(path.file_name()?.as_bytes()).base;
        let listing = self.folders.entry(folder.to_path_buf()).or_default();
        let known = listing.find(base, inode);
        if known.is_some() || listing.listings >= MAX_FOLDER_LISTINGS {
            return known;
        }
        listing.list(folder);
        listing.find(base, inode)
    }
}

impl FolderListing {
    fn list(&mut self, folder: &Path) {
        self.listings += 1;
        self.paths.clear();
        for directory in ["new", "cur"] {
            let Ok(entries) = fs::read_dir(folder.join(directory)) else { continue };
            for entry in entries.filter_map(Result::ok) {
                let name = entry.file_name();
                let base = MaildirName::parse(name.as_bytes()).base;
                self.paths.entry(base.to_vec()).or_default().push(entry.path());
            }
        }
    }

    fn find(&self, base: &[u8], inode: u64) -> Option<PathBuf> {
        let is_wanted = |path: &&PathBuf| {
            fs::metadata(path).is_ok_and(|file| file.is_file() && file.ino() == inode)
        };
        self.paths.get(base)?.iter().find(is_wanted).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_files_are_found_by_their_base_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for directory in ["cur", "new", "tmp", "other"] {
            fs::create_dir(path(directory)).unwrap();
        }
        for name in ["cur/1.host:2,S", "cur/2.host:2,RS", "new/3.host", "tmp/4.host", "other/5:2,S"]
        {
            fs::write(path(name), "").unwrap();
        }
        let mut finder = RenamedFileFinder::default();
        for (known, present) in [
            ("cur/1.host:2,S", Some("cur/1.host:2,S")),
            ("cur/1.host:2,", Some("cur/1.host:2,S")),
            ("new/2.host", Some("cur/2.host:2,RS")),
            ("cur/3.host:2,F", Some("new/3.host")),
            ("cur/4.host:2,", None),
            ("other/5:2,", None),
            ("cur/6.host:2,", None),
            ("cur", None),
        ] {
            let inode = present.map_or(0, |name| fs::metadata(path(name)).unwrap().ino());
            assert_eq!(finder.find(&path(known), inode), present.map(path), "{known}");
        }
        // Another file took the base name.
        assert_eq!(finder.find(&path("new/2.host"), 1), None);
        // A file that was renamed since the folder was listed is found by another list.
        let mut finder = RenamedFileFinder::default();
        let inode = fs::metadata(path("cur/2.host:2,RS")).unwrap().ino();
        assert_eq!(finder.find(&path("new/2.host"), inode), Some(path("cur/2.host:2,RS")));
        fs::rename(path("cur/2.host:2,RS"), path("cur/2.host:2,FRS")).unwrap();
        assert_eq!(finder.find(&path("new/2.host"), inode), Some(path("cur/2.host:2,FRS")));
        for _ in 0..10 {
            assert_eq!(finder.find(&path("cur/6.host:2,"), 1), None);
        }
        assert_eq!(finder.folders[folder.path()].listings, MAX_FOLDER_LISTINGS);
    }
}

//! The refs from which git takes the commits of an import, in a folder for each remote.
//!
//! git reads them after the import has ended. With one folder for all remotes, a fetch from another
//! one, which runs at the same time and has branches of the same names, could change or delete them
//! in between (`git fetch --all --jobs=2`).

use crate::git::repository::{GitDirectory, GitDirectoryError, RefChange};
use crate::refs::{encode_name, folders_of};
use sha1::{Digest as _, Sha1};
use std::collections::BTreeSet;
use std::ffi::OsStr;

/// The folder of the folders of remotes.
const REMOTES_FOLDER: &str = "refs/larder/hg/remotes/";

/// The number of refs up to which asking for each is cheaper than a process that lists all.
const FEW_REFS: usize = 32;

/// The names of the refs of one remote.
#[derive(Clone, Debug)]
pub(crate) struct ImportRefs {
    /// With `/` at its end.
    folder: String,
}

impl ImportRefs {
    /// Takes the name of a remote as git knows it: a URL if the remote has no name. A URL, which
    /// may have a password, and other names that are no part of a ref give a hash.
    pub(crate) fn new(remote: &OsStr) -> ImportRefs {
        let bytes = remote.as_encoded_bytes();
        let is_part = |name: &&str| {
            encode_name(name.as_bytes()) == name.as_bytes() && !name.contains(['/', '%'])
        };
        let folder = match remote.to_str().filter(is_part) {
            Some(name) => format!("{REMOTES_FOLDER}{name}/"),
            None => {
                let hash = Sha1::digest(bytes);
                let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{REMOTES_FOLDER}%{digits}/")
            }
        };
        ImportRefs { folder }
    }

    /// Returns the lines that tell git where it finds the commit of each ref.
    pub(crate) fn refspecs(&self) -> String {
        let folder = &self.folder;
        format!("refspec refs/heads/*:{folder}heads/*\nrefspec HEAD:{folder}HEAD\n")
    }

    /// Returns the ref for a ref of the remote repository.
    pub(crate) fn name_of(&self, remote_ref: &[u8]) -> Vec<u8> {
        let name = remote_ref.strip_prefix(b"refs/").unwrap_or(remote_ref);
        [self.folder.as_bytes(), name].concat()
    }

    /// Removes refs of earlier imports that are a folder of a new one, or below it. git takes no
    /// such ref in the transaction that deletes the other one.
    pub(crate) fn remove_clashing(
        &self,
        repository: &mut GitDirectory,
        changes: &[RefChange],
    ) -> Result<(), GitDirectoryError> {
        if changes.len() <= FEW_REFS && have_refs(repository, changes)? {
            return Ok(());
        }
        let new: BTreeSet<&[u8]> = changes.iter().map(|change| change.name.as_slice()).collect();
        let new_folders: BTreeSet<&[u8]> = new.iter().flat_map(|name| folders_of(name)).collect();
        let clashes = |name: &[u8]| {
            new_folders.contains(name) || folders_of(name).any(|folder| new.contains(folder))
        };
        let stale = repository.refs(&self.folder)?.into_iter().filter(|(name, _)| clashes(name));
        let removed: Vec<RefChange> =
            stale.map(|(name, id)| RefChange { name, new: None, old: Some(id) }).collect();
        repository.change_refs(&removed)
    }
}

/// Returns whether all refs are there: then no other one can be a folder of them.
fn have_refs(
    repository: &mut GitDirectory,
    changes: &[RefChange],
) -> Result<bool, GitDirectoryError> {
    for change in changes {
        let Ok(name) = std::str::from_utf8(&change.name) else { return Ok(false) };
        if repository.resolve(name)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(remote: &str) -> String {
        String::from_utf8(ImportRefs::new(remote.as_ref()).name_of(b"refs/heads/a")).unwrap()
    }

    #[test]
    fn each_remote_has_a_folder() {
        assert_eq!(name("origin"), "refs/larder/hg/remotes/origin/heads/a");
        let head = ImportRefs::new("origin".as_ref()).name_of(b"HEAD");
        assert_eq!(head, b"refs/larder/hg/remotes/origin/HEAD");
        let remotes =
            ["hg::https://me:secret@host/a", "a/heads", "a", "", "a b", "a%20b", "a.lock"];
        let names: BTreeSet<String> = remotes.iter().map(|remote| name(remote)).collect();
        assert_eq!(names.len(), remotes.len());
        for name in names {
            assert_eq!(encode_name(name.as_bytes()), name.as_bytes());
            assert_eq!(name.split('/').count(), 7, "{name}");
            assert!(!name.contains("secret"), "{name}");
        }
    }
}

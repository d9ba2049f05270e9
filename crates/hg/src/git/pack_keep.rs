//! The mark that keeps a new pack until refs lead to its objects.
//!
//! git deletes packs whose objects it has packed again, and packs again only what refs lead to: a
//! `git repack -ad` between the appearance of a pack and the change of a ref would delete the pack.
//! A file `.keep` beside it prevents that, as in git's own fetches (git-index-pack(1)). It is
//! locked while its writer needs it; one without the lock is what a killed process left.

use super::file_lock::{is_abandoned, is_named};
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The text of the mark, without the end of its line.
pub(super) const KEEP_TEXT: &str = "larder, until a ref leads to the objects of this pack";
/// The end of the name of the mark.
const EXTENSION: &str = "keep";

/// The mark of a pack; deleted when it is dropped.
#[derive(Debug)]
pub(crate) struct PackKeep {
    path: PathBuf,
    /// Has the lock.
    file: File,
}

impl PackKeep {
    /// Marks a pack, which may not be there yet; `unfinished` is the name that it has before.
    /// `None`: it has a mark of a user or of git, which stays. One of another process here, which
    /// writes the same pack, is replaced: that process would delete it. A mark without its text,
    /// which nobody would delete after a kill, never has the final name.
    pub(super) fn create(pack: &Path, unfinished: &Path) -> io::Result<Option<PackKeep>> {
        let path = pack.with_extension(EXTENSION);
        if path.exists() && !has_keep_text(&path) {
            return Ok(None);
        }
        let unfinished = unfinished.with_extension(EXTENSION);
        loop {
            let mut file = File::options().write(true).create_new(true).open(&unfinished)?;
            lock(&file)?;
            // Otherwise a sweep came first.
            if is_named(&unfinished, &file) {
                let written = file.write_all(format!("{KEEP_TEXT}\n").as_bytes());
                if let Err(error) = written.and_then(|()| fs::rename(&unfinished, &path)) {
                    // The error is the one to report.
                    let _removed = fs::remove_file(&unfinished);
                    return Err(error);
                }
                return Ok(Some(PackKeep { path, file }));
            }
        }
    }

    /// Takes over the mark that git wrote with [`KEEP_TEXT`]; `None` if it is gone.
    pub(super) fn adopt(pack: &Path) -> Option<PackKeep> {
        let path = pack.with_extension(EXTENSION);
        let file = File::open(&path).ok()?;
        lock(&file).ok()?;
        Some(PackKeep { path, file })
    }
}

/// How often it is tried to delete a mark: calls on network file systems fail now and then.
const MAX_ATTEMPTS: u32 = 3;

impl Drop for PackKeep {
    fn drop(&mut self) {
        // One that stays is deleted by the next process that writes a pack.
        for _ in 0..MAX_ATTEMPTS {
            // Otherwise another process has put its own there.
            if is_named(&self.path, &self.file) {
                match fs::remove_file(&self.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {}
                    _ => return,
                }
            }
        }
    }
}

/// Locks a mark. Without locks, as on some network file systems, it is never swept.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        // A sweep looks at it.
        Err(TryLockError::WouldBlock) => file.lock(),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn has_keep_text(path: &Path) -> bool {
    fs::read(path).is_ok_and(|text| text.trim_ascii_end() == KEEP_TEXT.as_bytes())
}

/// Deletes the mark of a process that was killed.
pub(super) fn sweep_keep(path: &Path) {
    let is_mark = path.extension() == Some(OsStr::new(EXTENSION));
    if is_mark && has_keep_text(path) && is_abandoned(path) {
        let _removed = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_killed_processes_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let pack = |name: &str| folder.path().join(format!("pack-{name}.pack"));
        let mark = |name: &str| folder.path().join(format!("pack-{name}.keep"));
        let unfinished = folder.path().join("unfinished");
        let own = PackKeep::create(&pack("own"), &unfinished).unwrap().unwrap();
        for (name, text) in [("user", ""), ("git", "fetch-pack 7 on host\n"), ("left", KEEP_TEXT)] {
            fs::write(mark(name), text).unwrap();
        }
        assert!(PackKeep::create(&pack("user"), &unfinished).unwrap().is_none());
        let names = ["own", "user", "git", "left"];
        names.iter().for_each(|name| sweep_keep(&mark(name)));
        assert_eq!(names.map(|name| mark(name).exists()), [true, true, true, false]);
        // Another process writes the same pack: each deletes its own mark only.
        let other = PackKeep::create(&pack("own"), &unfinished).unwrap().unwrap();
        drop(own);
        assert!(mark("own").exists());
        drop(other);
        assert!(!mark("own").exists());
    }
}

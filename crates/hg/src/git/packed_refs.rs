//! Many new refs, added to the file of packed refs at once.
//!
//! `git update-ref` makes a file for each ref, with a folder for each branch, and `git pack-refs`
//! deletes them again: for thousands of branches that costs more CPU time than their commits. The
//! file, its lock and its order are those of gitrepository-layout(5) and git's own code. Whatever
//! is unusual is left to git, so that the result is the same.

use crate::object_id::GitId;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The first line of the file: refs are sorted, and those of tags are followed by what they name.
const HEADER: &[u8] = b"# pack-refs with: peeled fully-peeled sorted \n";

/// The lock of the file of packed refs, under git's name for it. It is the new file, too.
pub(super) struct PackedRefsLock {
    path: PathBuf,
    lock_path: PathBuf,
    file: File,
    is_committed: bool,
}

impl Drop for PackedRefsLock {
    fn drop(&mut self) {
        if !self.is_committed {
            let _removed = fs::remove_file(&self.lock_path);
        }
    }
}

impl PackedRefsLock {
    /// Locks the file. `None`: another process has the lock, or refs are kept in another way.
    pub(super) fn take(path: &Path) -> Option<PackedRefsLock> {
        let is_link = fs::symlink_metadata(path).is_ok_and(|status| status.is_symlink());
        if is_link || path.with_file_name("reftable").exists() {
            return None;
        }
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let lock_path = PathBuf::from(lock_path);
        let file = OpenOptions::new().write(true).create_new(true).open(&lock_path).ok()?;
        Some(PackedRefsLock { path: path.to_owned(), lock_path, file, is_committed: false })
    }

    /// Writes the file with further refs, none of which is in the way of another one. Returns false
    /// if it has a form that is not known here.
    pub(super) fn add(mut self, new: &[(&[u8], GitId)]) -> io::Result<bool> {
        let old = match fs::read(&self.path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => HEADER.to_vec(),
            Err(error) => return Err(error),
        };
        let Some(mut refs) = parse(&old) else { return Ok(false) };
        let lines: Vec<(&[u8], Vec<u8>)> = new
            .iter()
            .map(|(name, id)| (*name, [&id.to_hex()[..], b" ", name, b"\n"].concat()))
            .collect();
        refs.extend(lines.iter().map(|(name, line)| (*name, line.as_slice())));
        // With the rights that git gave to its files.
        let model = if self.path.exists() { &self.path } else { &self.path.with_file_name("HEAD") };
        self.file.set_permissions(fs::metadata(model)?.permissions())?;
        let content: Vec<u8> = refs.into_values().flatten().copied().collect();
        self.file.write_all(HEADER)?;
        self.file.write_all(&content)?;
        self.file.sync_all()?;
        fs::rename(&self.lock_path, &self.path)?;
        self.is_committed = true;
        Ok(true)
    }
}

/// Splits a file into names and the lines of each, as they are. `None`: it has another form.
fn parse(content: &[u8]) -> Option<BTreeMap<&[u8], &[u8]>> {
    let mut rest = content.strip_prefix(HEADER)?;
    let mut refs = BTreeMap::new();
    while !rest.is_empty() {
        let mut len = memchr::memchr(b'\n', rest)? + 1;
        let name = rest.get(41..len - 1)?;
        if rest.get(40) != Some(&b' ') || name.is_empty() {
            return None;
        }
        if rest.get(len) == Some(&b'^') {
            len += memchr::memchr(b'\n', rest.get(len..)?)? + 1;
        }
        let (lines, next) = rest.split_at_checked(len)?;
        refs.insert(name, lines);
        rest = next;
    }
    Some(refs)
}

/// Returns whether names are valid, and not in the way of each other or of the refs that are there:
/// no name is that of another ref, or of a folder of one.
pub(super) fn are_free(new: &[(&[u8], GitId)], present: &[(Vec<u8>, GitId)]) -> bool {
    // Each name, and whether it is new.
    let mut names: BTreeMap<&[u8], bool> =
        present.iter().map(|(name, _)| (name.as_slice(), false)).collect();
    let are_new = new.iter().all(|(name, _)| is_valid(name) && names.insert(name, true).is_none());
    are_new
        && names.iter().all(|(name, is_new)| {
            memchr::memchr_iter(b'/', name)
                .filter_map(|end| names.get(name.get(..end)?))
                .all(|is_other_new| !is_new && !is_other_new)
        })
}

/// Returns whether git takes a name for that of a ref (git-check-ref-format(1)).
fn is_valid(name: &[u8]) -> bool {
    let is_refused = |byte: u8| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte);
    let has_pair = |pair: &[u8]| memchr::memmem::find(name, pair).is_some();
    let has_valid_parts = name
        .split(|byte| *byte == b'/')
        .all(|part| !part.is_empty() && !part.starts_with(b".") && !part.ends_with(b".lock"));
    name.starts_with(b"refs/")
        && has_valid_parts
        && !name.ends_with(b".")
        && !name.iter().copied().any(is_refused)
        && !has_pair(b"..")
        && !has_pair(b"@{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_beside_others_are_free() {
        let id = GitId([1; 20]);
        let present = [(b"refs/heads/a".to_vec(), id), (b"refs/heads/d/e".to_vec(), id)];
        let are_free = |names: &[&str]| {
            let new: Vec<_> = names.iter().map(|name| (name.as_bytes(), id)).collect();
            are_free(&new, &present)
        };
        assert!(are_free(&["refs/heads/b/c", "refs/heads/b/d", "refs/heads/ab", "refs/heads/d/f"]));
        for names in [
            &["refs/heads/a"][..],
            &["refs/heads/a/b"],
            &["refs/heads/d"],
            &["refs/heads/b", "refs/heads/b/c"],
            &["refs/heads/b", "refs/heads/b"],
            &["refs/heads/b b"],
            &["refs/heads/b.lock"],
            &["heads/b"],
        ] {
            assert!(!are_free(names), "{names:?}");
        }
    }

    #[test]
    fn refs_are_added_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("HEAD"), "ref: refs/heads/x\n").expect("HEAD");
        let path = folder.path().join("packed-refs");
        let digits = |digit: &str| digit.repeat(40);
        let tag = format!("{} refs/tags/t\n^{}\n", digits("2"), digits("3"));
        let old = [HEADER, tag.as_bytes()].concat();
        fs::write(&path, &old).expect("packed refs");
        let add = |name: &str| {
            let lock = PackedRefsLock::take(&path).expect("a lock");
            assert!(PackedRefsLock::take(&path).is_none());
            lock.add(&[(name.as_bytes(), GitId([0x11; 20]))]).expect("written")
        };
        assert!(add("refs/x/y"));
        assert!(add("refs/heads/é"));
        let line = |name: &str| format!("{} {name}\n", digits("1"));
        let expected = [line("refs/heads/é"), tag, line("refs/x/y")].concat();
        let found = fs::read(&path).expect("packed refs");
        assert_eq!(found.strip_prefix(HEADER).expect("a header"), expected.as_bytes());
        // Other forms stay, and the lock goes.
        for content in ["# pack-refs with: peeled \n", "11 x\n"] {
            fs::write(&path, content).expect("packed refs");
            assert!(!add("refs/x/z"));
            assert_eq!(fs::read_to_string(&path).expect("packed refs"), content);
        }
        assert!(!folder.path().join("packed-refs.lock").exists());
        fs::create_dir(folder.path().join("reftable")).expect("a folder");
        assert!(PackedRefsLock::take(&path).is_none());
    }
}

//! The files that a killed process leaves in the folder of packs.
//!
//! A pack is locked by its writer until it has its index, under its temporary name and its final
//! one. A file without that lock is abandoned. `git gc` deletes files with such names, too
//! (`tmp_...`), but only after two weeks, and never a pack that lacks its index.

use super::file_lock::{is_abandoned, is_named, lock_abandoned};
use super::pack_keep::sweep_keep;
use crate::object_id::GitId;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

/// The beginning of the name of a pack that is being written.
pub(super) const TEMPORARY_PREFIX: &str = "tmp_pack_larder_";
/// The end of the name of an index that is being written; its beginning is the name of the pack.
const INDEX_SUFFIX: &str = ".idx";
/// The beginning of the names that git gives to packs that it writes.
const GIT_PREFIX: &str = "tmp_pack_";
/// The age from which an empty pack of git is abandoned: nothing waits for a first byte so long.
const ABANDONED_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The two checksums at the end of an index: of the pack, and of the index.
const INDEX_TRAILER_BYTES: u64 = 40;

/// Deletes what killed processes left in a folder of packs. Errors are not reported: the files are
/// in nobody's way, and the next process tries again.
pub(super) fn sweep_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        if !name.starts_with(TEMPORARY_PREFIX) {
            sweep_keep(&entry.path());
            sweep_empty_pack(&entry.path(), name);
            continue;
        }
        match name.strip_suffix(INDEX_SUFFIX) {
            Some(pack) => {
                if !folder.join(pack).exists() {
                    let _left = sweep_index(folder, &entry.path());
                }
            }
            None => {
                if is_abandoned(&entry.path()) {
                    let _index = fs::remove_file(folder.join(format!("{name}{INDEX_SUFFIX}")));
                    let _pack = fs::remove_file(entry.path());
                }
            }
        }
    }
}

/// Deletes the pack of an importer of git that was killed. git starts one for each import here, and
/// the importer begins a pack although it gets no objects.
fn sweep_empty_pack(path: &Path, name: &str) {
    let is_old = |status: &fs::Metadata| {
        let age = status.modified().ok().and_then(|time| time.elapsed().ok());
        age.is_some_and(|age| age > ABANDONED_AGE)
    };
    if name.starts_with(GIT_PREFIX)
        && fs::symlink_metadata(path)
            .is_ok_and(|status| status.is_file() && status.len() == 0 && is_old(&status))
    {
        let _removed = fs::remove_file(path);
    }
}

/// Deletes an index whose pack got its name, and the pack, unless its writer is just about to give
/// the index its name, too.
fn sweep_index(folder: &Path, index_path: &Path) -> io::Result<()> {
    let index = File::open(index_path)?;
    let start = index.metadata()?.len().checked_sub(INDEX_TRAILER_BYTES);
    let mut checksum = [0; 20];
    index.read_exact_at(&mut checksum, start.ok_or(io::ErrorKind::UnexpectedEof)?)?;
    let named = folder.join(format!("pack-{}", GitId(checksum)));
    let pack_path = named.with_extension("pack");
    if pack_path.exists() {
        // Also if there is an index: another process may have written the same pack.
        let Some(pack) = lock_abandoned(&pack_path) else { return Ok(()) };
        if !named.with_extension("idx").exists() && is_named(&pack_path, &pack) {
            fs::remove_file(&pack_path)?;
        }
    }
    fs::remove_file(index_path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// An index of a pack with the checksum 1111...
    fn index() -> Vec<u8> {
        [[7_u8; 30].as_slice(), &[0x11; 20], &[2; 20]].concat()
    }

    #[test]
    fn files_of_killed_processes_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let put =
            |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
        let one = "pack-1111111111111111111111111111111111111111";
        let two = "pack-2222222222222222222222222222222222222222";
        put("tmp_pack_larder_1_0", b"PACK");
        put("tmp_pack_larder_1_0.idx", b"");
        put("tmp_pack_larder_2_0.idx", &index());
        put(&format!("{one}.pack"), b"PACK");
        // Of others, and of a process that was killed between two calls of git.
        put("tmp_pack_XXabcd", b"PACK");
        put(&format!("{two}.pack"), b"PACK");
        // Of importers of git: killed long ago, and perhaps at work.
        put("tmp_pack_old", b"");
        put("tmp_pack_new", b"");
        let long_ago = SystemTime::now() - 2 * ABANDONED_AGE;
        for name in ["tmp_pack_old", "tmp_pack_XXabcd"] {
            let file = File::options().append(true).open(folder.path().join(name)).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        sweep_leftovers(folder.path());
        let expected = [&format!("{two}.pack"), "tmp_pack_XXabcd", "tmp_pack_new"];
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn files_of_running_processes_stay() {
        let folder = tempfile::tempdir().unwrap();
        let one = "pack-1111111111111111111111111111111111111111.pack";
        let files = ["tmp_pack_larder_1_0", "tmp_pack_larder_1_0.idx", one];
        let files = files.map(|name| File::create(folder.path().join(name)).unwrap());
        files[0].lock().unwrap();
        files[2].lock().unwrap();
        fs::write(folder.path().join("tmp_pack_larder_2_0.idx"), index()).unwrap();
        let before = names(folder.path());
        sweep_leftovers(folder.path());
        assert_eq!(names(folder.path()), before);
        drop(files);
        sweep_leftovers(folder.path());
        assert!(names(folder.path()).is_empty());
    }

    /// Another process wrote the same pack, so there is an index of that name.
    #[test]
    fn the_index_of_a_pack_in_work_stays_beside_an_equal_one() {
        let folder = tempfile::tempdir().unwrap();
        let named = |end: &str| {
            folder.path().join(format!("pack-1111111111111111111111111111111111111111.{end}"))
        };
        let pack = File::create(named("pack")).unwrap();
        pack.lock().unwrap();
        fs::write(named("idx"), b"").unwrap();
        fs::write(folder.path().join("tmp_pack_larder_1_0.idx"), index()).unwrap();
        sweep_leftovers(folder.path());
        assert_eq!(names(folder.path()).len(), 3);
        drop(pack);
        sweep_leftovers(folder.path());
        assert_eq!(names(folder.path()).len(), 2);
    }

    /// A pack that has its index is of no concern here, whatever lies beside it.
    #[test]
    fn complete_packs_stay() {
        let folder = tempfile::tempdir().unwrap();
        for end in ["pack", "idx"] {
            let name = format!("pack-1111111111111111111111111111111111111111.{end}");
            fs::write(folder.path().join(name), b"").unwrap();
        }
        fs::write(folder.path().join("tmp_pack_larder_1_0.idx"), index()).unwrap();
        sweep_leftovers(folder.path());
        assert_eq!(names(folder.path()).len(), 2);
    }
}

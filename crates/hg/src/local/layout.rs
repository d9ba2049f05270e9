//! Where the files of a repository are, and what reading them requires.

use crate::local::local_error::LocalError;
use crate::local::store_path::PathEncoding;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The requirements that do not hinder reading: those of the working copy, of caches, and the
/// formats that this crate knows (mercurial/requirements.py and `hg help internals.requirements`).
const SUPPORTED_REQUIREMENTS: &[&[u8]] = &[
    b"bookmarksinstore",
    b"dirstate-tracked-key-v1",
    b"dirstate-v2",
    b"dotencode",
    b"exp-archived-phase",
    b"exp-compression-none",
    b"exp-compression-zlib",
    b"exp-compression-zstd",
    b"exp-dirstate-v2",
    b"exp-sparse",
    b"fncache",
    b"generaldelta",
    b"internal-phase",
    b"internal-phase-2",
    b"largefiles",
    b"lfs",
    b"persistent-nodemap",
    b"relshared",
    b"revlog-compression-zstd",
    b"revlogv1",
    b"share-safe",
    b"shared",
    b"sparserevlog",
    b"store",
];

type Requirements = BTreeSet<Vec<u8>>;

/// The places of a repository's files.
#[derive(Debug)]
pub(crate) struct StoreLayout {
    /// The folder `.hg` of the repository that was opened.
    pub(crate) working_folder: PathBuf,
    /// The folder of the history: in `.hg`, or in that of the repository that shares it.
    pub(crate) store: PathBuf,
    /// The file of the bookmarks.
    pub(crate) bookmarks: PathBuf,
    /// The folder of caches, which may be missing or out of date.
    pub(crate) caches: PathBuf,
    /// Whether the store lists its files.
    pub(crate) has_file_list: bool,
    encoding: PathEncoding,
}

impl StoreLayout {
    /// Finds the files of the repository in a folder.
    pub(crate) fn find(repository: &Path) -> Result<StoreLayout, LocalError> {
        let working_folder = repository.join(".hg");
        if !working_folder.is_dir() {
            return Err(LocalError::NotRepository { path: repository.to_owned() });
        }
        let mut requirements = read_requirements(&working_folder)?;
        let is_shared = has(&requirements, b"shared") || has(&requirements, b"relshared");
        let history_folder = if is_shared {
            find_shared(&working_folder, &requirements)?
        } else {
            working_folder.clone()
        };
        let mut store = history_folder.clone();
        if has(&requirements, b"share-safe") {
            // The requirements of the store are with the store, which this one needs.
            store.push("store");
            requirements.extend(read_requirements(&store)?);
        } else if has(&requirements, b"store") {
            store.push("store");
        }
        check_requirements(repository, &requirements)?;
        let bookmarks = if has(&requirements, b"bookmarksinstore") {
            store.join("bookmarks")
        } else if is_shared && shares_bookmarks(&working_folder)? {
            history_folder.join("bookmarks")
        } else {
            working_folder.join("bookmarks")
        };
        Ok(StoreLayout {
            working_folder,
            store,
            bookmarks,
            caches: history_folder.join("cache"),
            has_file_list: has(&requirements, b"fncache"),
            encoding: path_encoding(&requirements),
        })
    }

    /// Describes a store in a folder of its own, with the names of the newest repositories.
    pub(crate) fn of_store(folder: &Path) -> StoreLayout {
        StoreLayout {
            working_folder: folder.to_owned(),
            store: folder.to_owned(),
            bookmarks: folder.join("bookmarks"),
            caches: folder.join("cache"),
            has_file_list: true,
            encoding: PathEncoding::Names { has_dots: true },
        }
    }

    /// Returns the path of a file of the store, by its name without encoding.
    pub(crate) fn store_file(&self, name: &[u8]) -> PathBuf {
        self.store.join(OsStr::from_bytes(&self.encoding.encode(name)))
    }

    /// Returns whether the store has revisions of manifests or files. Those of a transaction do not
    /// count: the changelog is written last.
    pub(crate) fn has_revisions(&self) -> bool {
        if self.store.join("journal").exists() {
            return false;
        }
        let has_bytes = |path: &Path| path.metadata().is_ok_and(|file| file.len() > 0);
        if has_bytes(&self.store.join("00manifest.i")) {
            return true;
        }
        let mut folders = vec![self.store.join("data"), self.store.join("dh")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                } else if path.extension() == Some(OsStr::new("i")) && has_bytes(&path) {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the paths of index and data of the filelog of a path; `None` for a path that would
    /// leave the store.
    pub(crate) fn filelog(&self, path: &[u8]) -> Option<(PathBuf, PathBuf)> {
        let name = |suffix: &[u8]| [b"data/", path, suffix].concat();
        let (index, data) = (self.store_file(&name(b".i")), self.store_file(&name(b".d")));
        let leaves = |path: &Path| path.components().any(|part| part.as_os_str() == "..");
        let inside = |path: &Path| path.strip_prefix(&self.store).is_ok_and(|rest| !leaves(rest));
        (inside(&index) && inside(&data)).then_some((index, data))
    }
}

fn has(requirements: &Requirements, name: &[u8]) -> bool {
    requirements.contains(name)
}

/// Reads the file `requires` of a folder. The oldest repositories have none.
fn read_requirements(folder: &Path) -> Result<Requirements, LocalError> {
    let text = read_optional(&folder.join("requires"))?.unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.trim_ascii().to_vec());
    Ok(lines.filter(|line| !line.is_empty()).collect())
}

fn check_requirements(repository: &Path, requirements: &Requirements) -> Result<(), LocalError> {
    match unsupported_requirements(requirements.iter().map(Vec::as_slice)) {
        Some(names) => Err(LocalError::Requirements { path: repository.to_owned(), names }),
        None => Ok(()),
    }
}

/// Returns the names of the requirements that are not supported, if there are any.
pub(crate) fn unsupported_requirements<'r>(
    requirements: impl Iterator<Item = &'r [u8]>,
) -> Option<String> {
    let is_unknown = |name: &&[u8]| !name.is_empty() && !SUPPORTED_REQUIREMENTS.contains(name);
    let names = requirements.filter(is_unknown).map(String::from_utf8_lossy);
    let names = names.collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then_some(names)
}

/// Returns the folder `.hg` whose history this repository shares (`hg share`).
fn find_shared(folder: &Path, requirements: &Requirements) -> Result<PathBuf, LocalError> {
    let file = folder.join("sharedpath");
    let text = read_optional(&file)?.unwrap_or_default();
    let shared = text.strip_suffix(b"\n").unwrap_or(&text);
    let mut path = PathBuf::from(OsStr::from_bytes(shared));
    if has(requirements, b"relshared") {
        path = folder.join(path);
    }
    if shared.is_empty() || !path.is_dir() {
        let what = "names a shared repository that does not exist".to_owned();
        return Err(LocalError::Damaged { path: file, what });
    }
    Ok(path)
}

fn shares_bookmarks(folder: &Path) -> Result<bool, LocalError> {
    let text = read_optional(&folder.join("shared"))?.unwrap_or_default();
    Ok(text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == b"bookmarks"))
}

fn path_encoding(requirements: &Requirements) -> PathEncoding {
    if !has(requirements, b"store") {
        PathEncoding::Folders
    } else if !has(requirements, b"fncache") {
        PathEncoding::Characters
    } else {
        PathEncoding::Names { has_dots: has(requirements, b"dotencode") }
    }
}

/// Reads a whole file; `None` if it does not exist.
pub(crate) fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, LocalError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LocalError::Read { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_repository(requirements: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join(".hg/store")).expect("folders");
        std::fs::write(folder.path().join(".hg/requires"), requirements).expect("a file");
        folder
    }

    #[test]
    fn unknown_requirements_are_named() {
        let folder = make_repository("revlogv1\nstore\ntreemanifest\nexp-revlogv2.2\n");
        let error = StoreLayout::find(folder.path()).expect_err("two are unknown");
        assert!(error.to_string().contains("exp-revlogv2.2, treemanifest"), "{error}");
    }

    #[test]
    fn a_folder_without_a_repository_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = StoreLayout::find(folder.path()).expect_err("nothing there");
        assert!(matches!(error, LocalError::NotRepository { .. }), "{error}");
    }

    #[test]
    fn paths_do_not_leave_the_store() {
        for requirements in ["revlogv1\n", "revlogv1\nstore\n"] {
            let folder = make_repository(requirements);
            let layout = StoreLayout::find(folder.path()).expect("a repository");
            assert!(layout.filelog(b"../../../etc/x").is_none());
            assert!(layout.filelog(b"/etc/x").is_some(), "data//etc is inside");
            assert!(layout.filelog(b"a/b").is_some());
        }
    }
}

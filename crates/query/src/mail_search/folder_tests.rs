//! The tests of folders and of files.
//!
//! Separate from `compilation`: folders and files are compared by their paths, which are few, and
//! no word of the index is read.

use super::MailSearch;
use super::block_test::{BlockTest, Conjunction};
use super::compilation::{compile_pattern, flag_test};
use super::row_origin::RowOrigin;
use crate::error::{Error, SyntaxError};
use crate::mail_query::{FolderTest, MailFlag};
use larder_format::fold::fold;
use larder_store::{MailDirectoryRecord, MailSet};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// The name of a collection, the path of a folder in it, and the set of its messages.
type Folder = (String, Vec<u8>, MailSet);

impl MailSearch<'_> {
    /// Returns the messages with the file of this absolute path, in all maildirs.
    pub(super) fn find_path(&self, path: &str) -> Result<Vec<u32>, Error> {
        self.check_roots()?;
        let mut found = Vec::new();
        for (collection, root) in self.roots {
            let Ok(below) = Path::new(path).strip_prefix(root) else { continue };
            let (Some(directory), Some(name)) = (below.parent(), below.file_name()) else {
                continue;
            };
            let directory = directory.as_os_str().as_encoded_bytes();
            found.extend(self.mail.find_file(collection, directory, name.as_encoded_bytes())?);
        }
        Ok(found)
    }

    /// Refuses the test of a path where the paths of the maildirs are not known, instead of finding
    /// nothing.
    fn check_roots(&self) -> Result<(), Error> {
        if !self.roots.is_empty() {
            return Ok(());
        }
        let message = "absolute paths can be used in larder find only".to_string();
        let hint = "elsewhere, use in:SOURCE and maildir:/FOLDER".to_string();
        Err(SyntaxError { message, at: 1, hint: Some(hint) }.into())
    }

    pub(super) fn compile_folder(&self, test: &FolderTest) -> Result<BlockTest, Error> {
        let folders = self.mail.folders()?;
        let mut chosen: Vec<&Folder> = match test {
            FolderTest::FilePrefix(prefix) => return self.compile_file_prefix(prefix, &folders),
            FolderTest::Pattern(text) => {
                let pattern = compile_pattern(text)?;
                // notmuch has no slash in front of a folder.
                let is_match = |path: &str| {
                    pattern.is_match(path) || pattern.is_match(path.trim_start_matches('/'))
                };
                folders.iter().filter(|one| is_match(&fold(&shown_path(one)))).collect()
            }
            FolderTest::Source(name) => folders.iter().filter(|(one, ..)| one == name).collect(),
            FolderTest::Directory(directory) => {
                self.check_roots()?;
                let is_below = |(source, path, _): &&Folder| {
                    let root = self.roots.get(source);
                    root.is_some_and(|root| {
                        root.join(OsStr::from_bytes(path)).starts_with(directory)
                    })
                };
                folders.iter().filter(is_below).collect()
            }
            FolderTest::Named(_) | FolderTest::Within(_) => self.find_in_case(&folders, test)?,
            FolderTest::Is(_) | FolderTest::Prefix(_) => Vec::new(),
        };
        if chosen.is_empty() {
            chosen = folders.iter().filter(|one| is_in_any_case(one, test)).collect();
        }
        Ok(BlockTest::Or(chosen.iter().map(|(.., set)| BlockTest::Set(*set)).collect()))
    }

    /// Returns the folders that a test names with the case of its letters. A folder that is gone is
    /// none of them: it would hide one whose name differs in case only.
    fn find_in_case<'f>(
        &self,
        folders: &'f [Folder],
        test: &FolderTest,
    ) -> Result<Vec<&'f Folder>, Error> {
        let present = self.mail.present_folders()?;
        let is_present = |(_, path, _): &&Folder| present.contains(path);
        let is_chosen = |one: &&Folder| match test {
            FolderTest::Named(name) => shown_path(one) == *name,
            FolderTest::Within(parent) => is_within(&shown_path(one), parent),
            _ => false,
        };
        Ok(folders.iter().filter(is_chosen).filter(is_present).collect())
    }

    /// Compiles the test of the beginning of the paths of files.
    fn compile_file_prefix(&self, prefix: &str, folders: &[Folder]) -> Result<BlockTest, Error> {
        self.check_roots()?;
        let mut tests = Vec::new();
        for (collection, root) in self.roots {
            for directory in self.mail.directories(collection)? {
                let mut path =
                    root.join(OsStr::from_bytes(&directory.path)).into_os_string().into_vec();
                if !path.ends_with(b"/") {
                    path.push(b'/');
                }
                if let Some(start) = prefix.as_bytes().strip_prefix(path.as_slice()) {
                    let rows = self.find_files(collection, &directory, start)?;
                    tests.push(self.rows_test(&rows, RowOrigin::Files));
                } else if path.starts_with(prefix.as_bytes()) {
                    let folder = folders.iter().find(|(source, folder, _)| {
                        source == collection && *folder == directory.folder
                    });
                    let Some((.., set)) = folder else { continue };
                    tests.push(directory_test(*set, &path, prefix.as_bytes()));
                }
            }
        }
        Ok(BlockTest::Or(tests))
    }

    /// Returns the messages of the files of a directory whose names begin with `start`.
    fn find_files(
        &self,
        collection: &str,
        directory: &MailDirectoryRecord,
        start: &[u8],
    ) -> Result<Vec<u32>, Error> {
        let mut names = Vec::new();
        self.mail.for_each_file_name(directory.id, &mut |name| {
            if name.starts_with(start) {
                names.push(name.to_vec());
            }
        })?;
        let mut rows = Vec::with_capacity(names.len());
        for name in names {
            rows.extend(self.mail.find_file(collection, &directory.path, &name)?);
        }
        Ok(rows)
    }
}

/// Returns the test of a directory that a prefix names: of the folder, if both of its directories
/// begin with the prefix.
fn directory_test(set: MailSet, path: &[u8], prefix: &[u8]) -> BlockTest {
    let is_new = match path {
        _ if path.ends_with(b"/new/") => true,
        _ if path.ends_with(b"/cur/") => false,
        _ => return BlockTest::Set(set),
    };
    let folder_length = path.len() - b"new/".len();
    if prefix.len() <= folder_length {
        return BlockTest::Set(set);
    }
    let flag = flag_test(MailFlag::New);
    let flag = if is_new { flag } else { BlockTest::Not(Box::new(flag)) };
    BlockTest::And(Conjunction::new([BlockTest::Set(set), flag]))
}

/// Returns the path of a folder as queries name it.
fn shown_path((_, path, _): &Folder) -> String {
    format!("/{}", String::from_utf8_lossy(path))
}

/// Returns whether a folder passes a test in which case does not matter, as in mu.
fn is_in_any_case(folder: &Folder, test: &FolderTest) -> bool {
    let path = shown_path(folder);
    let path = fold(&path);
    match test {
        FolderTest::Is(name) | FolderTest::Named(name) => *path == *fold(name),
        FolderTest::Within(parent) => is_within(&path, &fold(parent)),
        FolderTest::Prefix(start) => path.starts_with(&*fold(start)),
        _ => false,
    }
}

fn is_within(path: &str, parent: &str) -> bool {
    let below = path.strip_prefix(parent.trim_end_matches('/'));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

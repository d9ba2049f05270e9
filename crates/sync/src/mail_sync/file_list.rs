//! Files that are to be read, the newest mail first, in about twenty bytes each.
//!
//! A first synchronisation keeps all files of a maildir until they are read. They are sorted and
//! packed in runs of some thousand files, which are merged when the files are taken.
//!
//! Separate from `file_changes`, which decides which files are read.

use super::name_packer::NamePacker;
use larder_format::maildir_name::MaildirName;
use larder_store::{MailFile, MailFileState};
use larder_time::varint::{VarintReader, put_signed_number, put_unsigned_number};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// The files of a run. They take some hundred bytes each until they are sorted.
const RUN_FILES: usize = 8192;

/// The files.
#[derive(Debug, Default)]
pub(super) struct FileList {
    directories: Vec<FilesDirectory>,
    names: NamePacker,
    /// Sorted files, each run packed.
    runs: Vec<Vec<u8>>,
    unsorted: Vec<ListedFile>,
    count: usize,
}

/// A directory of files.
#[derive(Debug)]
struct FilesDirectory {
    path: Vec<u8>,
    is_new: bool,
}

/// A file of a list. Files are compared in the order in which they are read.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ListedFile {
    /// The time of delivery.
    time: Reverse<i64>,
    inode: u64,
    name: Vec<u8>,
    directory: usize,
}

impl FileList {
    /// Adds a directory of files, and returns its number. It is `new` or another one.
    pub(super) fn add_directory(&mut self, path: &[u8], is_new: bool) -> usize {
        self.directories.push(FilesDirectory { path: path.to_vec(), is_new });
        self.directories.len() - 1
    }

    /// Adds a file of a directory.
    pub(super) fn push(&mut self, directory: usize, name: Vec<u8>, inode: u64) {
        let time = Reverse(delivery_time(&name));
        self.unsorted.push(ListedFile { time, inode, name, directory });
        self.count += 1;
        if self.unsorted.len() >= RUN_FILES {
            self.end_run();
        }
    }

    /// Returns the number of files.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Leaves out the files for which `keep` returns false. It gets the number of the directory of
    /// each.
    pub(super) fn retain(&mut self, keep: &mut dyn FnMut(usize, &MailFile) -> bool) {
        let mut kept = FileList::default();
        for FilesDirectory { path, is_new } in &self.directories {
            kept.add_directory(path, *is_new);
        }
        let mut files = std::mem::take(self).into_queue();
        while let Some((directory, file)) = files.take_file() {
            if keep(directory, &file) {
                kept.push(directory, file.name, file.inode);
            }
        }
        *self = kept;
    }

    /// Returns the files in the order in which they are read.
    pub(super) fn into_queue(mut self) -> FileQueue {
        self.end_run();
        let mut queue = FileQueue {
            directories: self.directories,
            names: self.names,
            runs: BinaryHeap::with_capacity(self.runs.len()),
        };
        for bytes in self.runs {
            let mut run = FileRun { bytes, position: 0, inode: 0, first: None };
            if run.advance(&queue.names) {
                queue.runs.push(run);
            }
        }
        queue
    }

    /// Sorts and packs the files since the last run.
    fn end_run(&mut self) {
        self.unsorted.sort_unstable();
        let (mut bytes, mut former_inode) = (Vec::new(), 0);
        for file in self.unsorted.drain(..) {
            put_unsigned_number(&mut bytes, file.directory as u64);
            put_signed_number(&mut bytes, file.inode.wrapping_sub(former_inode).cast_signed());
            self.names.pack(&file.name, &mut bytes);
            former_inode = file.inode;
        }
        bytes.shrink_to_fit();
        if !bytes.is_empty() {
            self.runs.push(bytes);
        }
    }
}

/// Files that are taken one after the other.
#[derive(Debug)]
pub(super) struct FileQueue {
    directories: Vec<FilesDirectory>,
    names: NamePacker,
    /// The runs that have files.
    runs: BinaryHeap<FileRun>,
}

impl FileQueue {
    /// Takes the next files, at most so many.
    pub(super) fn take(&mut self, count: usize) -> Vec<MailFile> {
        let mut taken = Vec::new();
        while taken.len() < count
            && let Some((_, file)) = self.take_file()
        {
            taken.push(file);
        }
        taken
    }

    /// Takes the next file, with the number of its directory.
    fn take_file(&mut self) -> Option<(usize, MailFile)> {
        let mut run = self.runs.peek_mut()?;
        let ListedFile { inode, name, directory: number, .. } = run.first.take()?;
        if !run.advance(&self.names) {
            PeekMut::pop(run);
        }
        let directory = self.directories.get(number)?;
        let file = MailFile {
            directory: directory.path.clone(),
            inode,
            flags: MaildirName::parse(&name).flags(directory.is_new),
            // It is looked at when it is read.
            state: MailFileState::default(),
            name,
        };
        Some((number, file))
    }
}

/// A run whose first files were taken.
#[derive(Debug)]
struct FileRun {
    bytes: Vec<u8>,
    /// The place of the file after the first one.
    position: usize,
    /// The inode of the first file.
    inode: u64,
    first: Option<ListedFile>,
}

impl FileRun {
    /// Unpacks the next file. Returns false if there is none.
    fn advance(&mut self, names: &NamePacker) -> bool {
        let mut reader = VarintReader::new(self.bytes.get(self.position..).unwrap_or_default());
        self.first = unpack_file(&mut reader, self.inode, names);
        self.inode = self.first.as_ref().map_or(0, |file| file.inode);
        self.position = self.bytes.len() - reader.remaining_bytes().len();
        self.first.is_some()
    }
}

/// Unpacks a file that follows one with this inode; `None`: there is none.
fn unpack_file(
    reader: &mut VarintReader<'_>,
    former_inode: u64,
    names: &NamePacker,
) -> Option<ListedFile> {
    let directory = usize::try_from(reader.read_unsigned()?).ok()?;
    let inode = former_inode.wrapping_add(reader.read_signed()?.cast_unsigned());
    let name = names.unpack(reader)?;
    Some(ListedFile { time: Reverse(delivery_time(&name)), inode, name, directory })
}

/// The run whose first file is read first is the greatest.
impl Ord for FileRun {
    fn cmp(&self, other: &FileRun) -> Ordering {
        other.first.cmp(&self.first)
    }
}

impl PartialOrd for FileRun {
    fn partial_cmp(&self, other: &FileRun) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FileRun {
    fn eq(&self, other: &FileRun) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FileRun {}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of three directories, more than a run has, in no order.
    fn files() -> Vec<(usize, Vec<u8>, u64)> {
        let file = |number: u64| {
            let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (time, directory) = (1_500_000_000 + random % 5000, (random % 3) as usize);
            let name = format!("{time}.M{}P{}.host:2,S", random % 1_000_000, number % 900);
            (directory, name.into_bytes(), random >> 40)
        };
        (0..2 * RUN_FILES as u64 + 100).map(file).collect()
    }

    fn list(files: &[(usize, Vec<u8>, u64)]) -> FileList {
        let mut list = FileList::default();
        for (path, is_new) in [("a/cur", false), ("a/new", true), ("b/cur", false)] {
            list.add_directory(path.as_bytes(), is_new);
        }
        for (directory, name, inode) in files {
            list.push(*directory, name.clone(), *inode);
        }
        list
    }

    #[test]
    fn files_are_taken_newest_first() {
        let mut files = files();
        let list = list(&files);
        assert_eq!(list.len(), files.len());
        let packed: usize = list.runs.iter().map(Vec::len).sum();
        assert!(packed < 20 * files.len(), "{packed} bytes");
        let mut queue = list.into_queue();
        files.sort_by_key(|(directory, name, inode)| {
            (Reverse(delivery_time(name)), *inode, name.clone(), *directory)
        });
        for (directory, name, inode) in files {
            let taken = queue.take(1).pop().unwrap();
            assert_eq!((&taken.name, taken.inode), (&name, inode));
            assert_eq!(taken.directory, [&b"a/cur"[..], b"a/new", b"b/cur"][directory]);
            assert_eq!(taken.flags, MaildirName::parse(&name).flags(directory == 1));
        }
        assert!(queue.take(1).is_empty());
    }

    #[test]
    fn files_are_left_out() {
        let files = files();
        let mut list = list(&files);
        list.retain(&mut |directory, file| directory == 2 && file.inode % 2 == 0);
        let mut expect: Vec<&[u8]> = files
            .iter()
            .filter(|(directory, _, inode)| *directory == 2 && inode % 2 == 0)
            .map(|(_, name, _)| name.as_slice())
            .collect();
        assert_eq!(list.len(), expect.len());
        let taken = list.into_queue().take(usize::MAX);
        let mut names: Vec<&[u8]> = taken.iter().map(|file| file.name.as_slice()).collect();
        names.sort_unstable();
        expect.sort_unstable();
        assert_eq!(names, expect);
    }
}

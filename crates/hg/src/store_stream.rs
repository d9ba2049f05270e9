//! The files of a store, as a server sends them for the first clone: no revision is parsed by
//! either side, so that this is the cheapest clone for the server.
//!
//! The payload of the part `stream2` has for each file a byte for its folder (`s`: the store, `c`:
//! caches), the length of its name, its size, the name without encoding, and the bytes. Lengths
//! are numbers of seven bits a byte, the lowest first (mercurial/streamclone.py, `consumev2`). The
//! files are written to a folder, which [`crate::LocalPeer::open_store`] reads.

use crate::bundle::StorePart;
use crate::byte_reader::{end_of_stream, fill, read_array, read_bytes};
use crate::local::{StoreLayout, unsupported_requirements};
use crate::percent;
use crate::revision::ChangeError;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, Read as _};
use std::path::{Path, PathBuf};

/// Longer names do not occur: a path of 4096 bytes is the limit of most systems.
const MAX_NAME_BYTES: u64 = 1 << 14;

/// The files beside `data/` that reading needs.
const STORE_FILES: [&[u8]; 6] = [
    b"00changelog.i",
    b"00changelog.d",
    b"00manifest.i",
    b"00manifest.d",
    b"phaseroots",
    b"obsstore",
];

/// Writes the files of a part to an empty folder, and reads the bundle to its end. After an error
/// the folder is of no use.
pub fn unpack_store(part: &mut StorePart<'_>, folder: &Path) -> Result<(), ChangeError> {
    if part.name != "stream2" {
        let what = format!("the files of a store in a part {}", part.name);
        return Err(ChangeError::Unsupported { what });
    }
    let parameter = |name: &[u8]| {
        let mut parameters = part.parameters.iter();
        parameters.find(|(found, _)| found == name).map(|(_, value)| value.as_slice())
    };
    let requirements = percent::decode(parameter(b"requirements").unwrap_or_default());
    let unsupported = unsupported_requirements(requirements.split(|byte| *byte == b','));
    if let Some(names) = unsupported {
        let what = format!("a store that needs {names}");
        return Err(ChangeError::Unsupported { what });
    }
    let count = parameter(b"filecount").and_then(|count| str::from_utf8(count).ok()?.parse().ok());
    let count =
        count.ok_or_else(|| ChangeError::new_damaged("a store without the number of its files"))?;
    unpack_files(part, count, folder)?;
    part.finish()
}

/// Writes `count` files, with which the stream must end.
fn unpack_files(read: &mut dyn BufRead, count: u64, folder: &Path) -> Result<(), ChangeError> {
    let mut files = StoreFiles { layout: StoreLayout::of_store(folder), folders: HashSet::new() };
    let mut name = Vec::new();
    for _ in 0..count {
        let [kind] = read_array(read)?;
        let name_len = read_number(read)?;
        let size = read_number(read)?;
        if name_len > MAX_NAME_BYTES {
            return Err(ChangeError::new_damaged("the name of a file is too long"));
        }
        read_bytes(read, name_len as usize, &mut name)?;
        match kind {
            b's' => files.write(&name, size, read)?,
            b'c' => copy(read, size, &mut io::sink())?,
            other => {
                return Err(ChangeError::new_damaged(format!(
                    "a file in an unknown folder {other:#04x}"
                )));
            }
        }
    }
    if fill(read)?.is_empty() {
        Ok(())
    } else {
        Err(ChangeError::new_damaged("more files than announced"))
    }
}

/// The files written so far.
struct StoreFiles {
    layout: StoreLayout,
    /// The folders that exist.
    folders: HashSet<PathBuf>,
}

impl StoreFiles {
    /// Writes a file that reading needs, and passes over another one.
    fn write(&mut self, name: &[u8], size: u64, read: &mut dyn BufRead) -> Result<(), ChangeError> {
        if name.starts_with(b"meta/") {
            let what = "a store that needs treemanifest".to_owned();
            return Err(ChangeError::Unsupported { what });
        }
        let is_filelog = is_filelog(name);
        if !is_filelog && !STORE_FILES.contains(&name) {
            return if name.starts_with(b"data/") {
                Err(ChangeError::new_damaged(format!(
                    "a file with the name {}",
                    name.escape_ascii()
                )))
            } else {
                copy(read, size, &mut io::sink())
            };
        }
        let path = self.layout.store_file(name);
        if is_filelog {
            self.make_folder(&path)?;
        }
        let created = File::create_new(&path);
        let mut file = created.map_err(|error| name_file(&error, &path))?;
        copy(read, size, &mut file)
    }

    fn make_folder(&mut self, file: &Path) -> Result<(), ChangeError> {
        let Some(folder) = file.parent() else { return Ok(()) };
        if !self.folders.contains(folder) {
            std::fs::create_dir_all(folder).map_err(|error| name_file(&error, folder))?;
            self.folders.insert(folder.to_owned());
        }
        Ok(())
    }
}

/// Whether a name is that of a filelog. Its encoded form stays in the folder, as that has no
/// component of periods.
fn is_filelog(name: &[u8]) -> bool {
    let has_extension = name.ends_with(b".i") || name.ends_with(b".d");
    name.starts_with(b"data/") && has_extension && !name.contains(&0)
}

/// Reads a number of seven bits a byte.
fn read_number(read: &mut dyn BufRead) -> Result<u64, ChangeError> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let [byte] = read_array(read)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ChangeError::new_damaged("a number is too long"))
}

/// Copies `size` bytes.
fn copy(read: &mut dyn BufRead, size: u64, write: &mut dyn io::Write) -> Result<(), ChangeError> {
    let copied = io::copy(&mut read.take(size), write)?;
    if copied == size { Ok(()) } else { Err(end_of_stream().into()) }
}

fn name_file(error: &io::Error, path: &Path) -> ChangeError {
    ChangeError::Read(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(kind: u8, name: &[u8], content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, name.len() as u8, content.len() as u8];
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(content);
        bytes
    }

    fn unpack(bytes: &[u8], count: u64) -> Result<tempfile::TempDir, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let unpacked = unpack_files(&mut &*bytes, count, folder.path());
        unpacked.map(|()| folder).map_err(|error| error.to_string())
    }

    #[test]
    fn files_of_the_store_are_written_under_encoded_names() {
        let files = [
            file(b's', b"data/.A/b.i", b"one"),
            file(b's', b"00changelog.i", b"two"),
            file(b'c', b"branch2-served", b"skipped"),
            file(b's', b"00changelog.n", b"skipped"),
            file(b's', b"data//etc/c.i", b""),
            file(b's', b"data/../../../up.i", b"up"),
        ];
        let folder = unpack(&files.concat(), 6).expect("files");
        let read = |name: &str| std::fs::read(folder.path().join(name)).expect("a file");
        assert_eq!(read("data/~2e_a/b.i"), b"one");
        assert_eq!(read("data/etc/c.i"), b"");
        assert_eq!(read("data/~2e~2e/~2e~2e/~2e~2e/up.i"), b"up");
        assert_eq!(read("00changelog.i"), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn hostile_files_are_refused() {
        let long = [&[b's', 0xff, 0xff, 0xff, 0xff, 0x7f, 0][..], b"data"].concat();
        let endless = [&[b's'][..], &[0xff; 20]].concat();
        let large = [&[b's', 8, 0xff, 0xff, 0xff, 0xff, 0x7f][..], b"data/a.ix"].concat();
        let twice = file(b's', b"data/a.i", b"").repeat(2);
        let cases = [
            (file(b's', b"data/x\0.i", b""), "a file with the name data/x\\x00.i"),
            (file(b's', b"data/x.py", b""), "a file with the name data/x.py"),
            (file(b's', b"meta/a/00manifest.i", b""), "treemanifest"),
            (file(b'x', b"data/a.i", b""), "an unknown folder 0x78"),
            (long, "the name of a file is too long"),
            (endless, "a number is too long"),
            (large, "the stream ended early"),
            (twice, "a.i: File exists"),
        ];
        for (bytes, expected) in cases {
            let message = unpack(&bytes, 2).map(|_| ()).expect_err(expected);
            assert!(message.contains(expected), "{message}");
        }
        let two = [file(b's', b"data/a.i", b""), file(b's', b"data/b.i", b"")].concat();
        assert!(unpack(&two, 1).is_err_and(|message| message.contains("more files")));
        assert!(unpack(&two, 3).is_err_and(|message| message.contains("ended early")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_files_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            count in 0_u64..4,
        ) {
            drop(unpack(&bytes, count));
        }
    }
}

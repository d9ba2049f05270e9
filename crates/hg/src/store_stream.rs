//! The files of a store, as a server sends them for the first clone: no revision is parsed by
//! either side, so that this is the cheapest clone for the server.
//!
//! The payload of the part `stream2` has for each file a byte for its folder (`s`: the store, `c`:
//! caches), the length of its name, its size, the name without encoding, and the bytes. Lengths
//! are numbers of seven bits a byte, the lowest first (mercurial/streamclone.py, `consumev2`). A
//! bundle `packed1` has for each file a line with its name, a zero byte and the size in decimal
//! digits, and the bytes; folders have the names that a changegroup has (`consumev1`). The files
//! are written to a folder, which [`crate::LocalPeer::open_store`] reads.

use crate::bundle::{PACKED, StorePart};
use crate::byte_reader::{end_of_stream, fill, read_array, read_bytes};
use crate::local::{StoreLayout, decode_folders, unsupported_requirements};
use crate::path_text::path_text;
use crate::percent;
use crate::revision::ChangeError;
use crate::varint::{self, MAX_NUMBER_BYTES};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, Read as _, Write as _};
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
    unpack_with_progress(part, folder, &mut |_, _| {})
}

/// Calls `report` with the number of whole files so far and of all: before each file, after each
/// piece of one, and at the end.
pub(crate) fn unpack_with_progress(
    part: &mut StorePart<'_>,
    folder: &Path,
    report: &mut dyn FnMut(u64, u64),
) -> Result<(), ChangeError> {
    let read_header = match part.name.as_str() {
        "stream2" => read_header,
        PACKED => read_packed_header,
        name => {
            let what = format!("the files of a store in a part {name}");
            return Err(ChangeError::Unsupported { what });
        }
    };
    let requirements = percent::decode(part.parameter("requirements").unwrap_or_default());
    let unsupported = unsupported_requirements(requirements.split(|byte| *byte == b','));
    if let Some(names) = unsupported {
        let what = format!("a store that needs {names}");
        return Err(ChangeError::Unsupported { what });
    }
    let count = part.parameter("filecount");
    let count = count.and_then(|count| str::from_utf8(count).ok()?.parse().ok());
    let count =
        count.ok_or_else(|| ChangeError::new_damaged("a store without the number of its files"))?;
    unpack_files(part, count, folder, (read_header, report))?;
    if part.name == PACKED {
        // Nothing but the number of files tells where it ends.
        return Ok(());
    }
    check_end(part)?;
    part.finish()
}

fn check_end(read: &mut dyn BufRead) -> Result<(), ChangeError> {
    if fill(read)?.is_empty() {
        return Ok(());
    }
    Err(ChangeError::new_damaged("more files than announced"))
}

/// The header of a file.
struct StoreFileHeader {
    /// Whether the file is in the folder of the store.
    is_in_store: bool,
    name: Vec<u8>,
    size: u64,
}

/// Reads the header of a file in one of the forms.
type HeaderReader = fn(&mut dyn BufRead) -> Result<StoreFileHeader, ChangeError>;

fn read_header(read: &mut dyn BufRead) -> Result<StoreFileHeader, ChangeError> {
    let [kind] = read_array(read)?;
    let name_len = read_number(read)?;
    let size = read_number(read)?;
    if name_len > MAX_NAME_BYTES {
        return Err(ChangeError::new_damaged("the name of a file is too long"));
    }
    let mut name = Vec::new();
    read_bytes(read, name_len as usize, &mut name)?;
    let is_in_store = match kind {
        b's' => true,
        b'c' => false,
        other => {
            let what = format!("a file in an unknown folder {other:#04x}");
            return Err(ChangeError::new_damaged(what));
        }
    };
    Ok(StoreFileHeader { is_in_store, name, size })
}

fn read_packed_header(read: &mut dyn BufRead) -> Result<StoreFileHeader, ChangeError> {
    let mut line = Vec::new();
    read.take(MAX_NAME_BYTES).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return match line.len() as u64 + 1 < MAX_NAME_BYTES {
            true => Err(end_of_stream().into()),
            false => Err(ChangeError::new_damaged("the name of a file is too long")),
        };
    }
    let mut fields = line.splitn(2, |byte| *byte == 0);
    let name = decode_folders(fields.next().unwrap_or_default());
    let size = fields.next().and_then(|size| str::from_utf8(size).ok()?.parse().ok());
    let damaged = || ChangeError::new_damaged("a file without a size");
    Ok(StoreFileHeader { is_in_store: true, name, size: size.ok_or_else(damaged)? })
}

/// Writes `count` files.
fn unpack_files(
    read: &mut dyn BufRead,
    count: u64,
    folder: &Path,
    (read_header, report): (HeaderReader, &mut dyn FnMut(u64, u64)),
) -> Result<(), ChangeError> {
    let mut files = StoreFiles { layout: StoreLayout::of_store(folder), folders: HashSet::new() };
    for number in 0..count {
        report(number, count);
        let StoreFileHeader { is_in_store, name, size } = read_header(read)?;
        let mut advance = || report(number, count);
        if is_in_store {
            files.write(&name, size, read, &mut advance)?;
        } else {
            copy(read, size, &mut advance, |_| Ok(()))?;
        }
    }
    report(count, count);
    Ok(())
}

/// The files written so far.
struct StoreFiles {
    layout: StoreLayout,
    /// The folders that exist.
    folders: HashSet<PathBuf>,
}

impl StoreFiles {
    /// Writes a file that reading needs, and passes over another one.
    fn write(
        &mut self,
        name: &[u8],
        size: u64,
        read: &mut dyn BufRead,
        advance: &mut dyn FnMut(),
    ) -> Result<(), ChangeError> {
        if name.starts_with(b"meta/") {
            let what = "a store that needs treemanifest".to_owned();
            return Err(ChangeError::Unsupported { what });
        }
        let is_filelog = is_filelog(name);
        if !is_filelog && !STORE_FILES.contains(&name) {
            return if name.starts_with(b"data/") {
                Err(ChangeError::new_damaged(format!("a file with the name {}", path_text(name))))
            } else {
                copy(read, size, advance, |_| Ok(()))
            };
        }
        let path = self.layout.store_file(name);
        if is_filelog {
            self.make_folder(&path)?;
        }
        let created = File::create_new(&path);
        let mut file = created.map_err(|error| name_file(&error, &path))?;
        copy(read, size, advance, |bytes| {
            file.write_all(bytes).map_err(|error| name_file(&error, &path))
        })
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

/// Returns whether a name is that of a filelog. Its encoded form stays in the folder, as that has
/// no component of periods.
fn is_filelog(name: &[u8]) -> bool {
    let has_extension = name.ends_with(b".i") || name.ends_with(b".d");
    name.starts_with(b"data/") && has_extension && !name.contains(&0)
}

/// Reads a number of seven bits a byte.
fn read_number(read: &mut dyn BufRead) -> Result<u64, ChangeError> {
    // Each one has a next one until it is read.
    let mut bytes = [0x80; MAX_NUMBER_BYTES];
    for byte in &mut bytes {
        [*byte] = read_array(read)?;
        if *byte & 0x80 == 0 {
            break;
        }
    }
    let number = varint::read_number(&bytes).map(|(number, _)| number as u64);
    number.ok_or_else(|| ChangeError::new_damaged("a number is too long"))
}

/// Passes `size` bytes on, piece by piece; `advance` is called after each.
fn copy(
    read: &mut dyn BufRead,
    size: u64,
    advance: &mut dyn FnMut(),
    mut write: impl FnMut(&[u8]) -> Result<(), ChangeError>,
) -> Result<(), ChangeError> {
    let mut left = size;
    while left > 0 {
        let bytes = fill(read)?;
        let piece = bytes.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(bytes);
        if piece.is_empty() {
            return Err(end_of_stream().into());
        }
        write(piece)?;
        let len = piece.len();
        read.consume(len);
        left -= len as u64;
        advance();
    }
    Ok(())
}

/// Returns the error of writing a file. Names that cannot be those of files together are a mistake
/// in the changes; all else has its reason here.
fn name_file(error: &io::Error, path: &Path) -> ChangeError {
    use io::ErrorKind::{AlreadyExists, InvalidFilename, NotADirectory};
    let named = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    match error.kind() {
        AlreadyExists | InvalidFilename | NotADirectory => ChangeError::Read(named),
        _ => ChangeError::Scratch(named),
    }
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
        let mut read = bytes;
        let unpacked = unpack_files(&mut read, count, folder.path(), (read_header, &mut |_, _| {}));
        let unpacked = unpacked.and_then(|()| check_end(&mut read));
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
        // A file of several pieces, and the end, are reported.
        let mut reports = Vec::new();
        let mut report = |done, all| reports.push((done, all));
        let content = files[..2].concat();
        let mut read = std::io::BufReader::with_capacity(8, content.as_slice());
        let folder = tempfile::tempdir().expect("a folder");
        unpack_files(&mut read, 2, folder.path(), (read_header, &mut report)).expect("files");
        assert_eq!((reports.first(), reports.last()), (Some(&(0, 2)), Some(&(2, 2))));
        assert!(reports.windows(2).all(|pair| pair[0] <= pair[1]), "{reports:?}");
        assert!(reports.len() >= 5, "{reports:?}");
    }

    #[test]
    fn hostile_files_are_refused() {
        let long = [&[b's', 0xff, 0xff, 0xff, 0xff, 0x7f, 0][..], b"data"].concat();
        let endless = [&[b's'][..], &[0xff; 20]].concat();
        let large = [&[b's', 8, 0xff, 0xff, 0xff, 0xff, 0x7f][..], b"data/a.ix"].concat();
        let twice = file(b's', b"data/a.i", b"").repeat(2);
        let cases = [
            (file(b's', b"data/x\0.i", b""), "a file with the name data/x\\u{0}.i"),
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

    /// A full disk is no fault of the changes.
    #[test]
    fn files_that_cannot_be_written_are_told_from_damaged_ones() {
        let bytes = file(b's', b"data/a.i", b"text");
        let folder = tempfile::tempdir().expect("a folder");
        let unpack = |bytes: &[u8]| {
            let mut read = bytes;
            unpack_files(&mut read, 1, folder.path(), (read_header, &mut |_, _| {}))
        };
        let mut full = File::options().write(true).open("/dev/full").expect("a device");
        let written = copy(&mut bytes.as_slice(), 4, &mut || {}, |piece| {
            full.write_all(piece).map_err(|error| name_file(&error, Path::new("a.i")))
        });
        assert!(matches!(written, Err(ChangeError::Scratch(_))), "{written:?}");
        assert!(matches!(unpack(&bytes[..bytes.len() - 1]), Err(ChangeError::Read(_))));
        // The name is there now.
        assert!(matches!(unpack(&bytes), Err(ChangeError::Read(_))));
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

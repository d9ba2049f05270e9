//! Files that hold an address book in a wrapping that is not taken off here.
//!
//! It looks at the first bytes only. It is apart from `import`, which takes bytes as they are.

use std::io::Read as _;
use std::path::Path;

/// A program that takes the wrapping off, as a command that writes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// What the file is packed with.
    pub format: &'static str,
    /// The command that unpacks it, without the file's name.
    pub unpack_command: &'static str,
}

/// First bytes, what they stand for, and how that is unpacked.
const COMPRESSION_MAGIC_NUMBERS: &[(&[u8], &str, &str)] = &[
    (b"\x1f\x8b", "gzip", "gunzip -c"),
    (b"BZh", "bzip2", "bunzip2 -c"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// Is the file packed? `None` also where it is a folder, or cannot be read.
#[must_use]
pub fn detect_compression(path: &Path) -> Option<Compression> {
    // A pipe would lose what is read here.
    let file = path.is_file().then(|| std::fs::File::open(path).ok()).flatten()?;
    let mut first = Vec::new();
    file.take(8).read_to_end(&mut first).ok()?;
    let (_, with, unpack) =
        COMPRESSION_MAGIC_NUMBERS.iter().find(|(magic, ..)| first.starts_with(magic))?;
    Some(Compression { format: with, unpack_command: unpack })
}

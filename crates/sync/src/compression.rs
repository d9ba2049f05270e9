//! Recognition of compressed files, for a hint to the user.
//!
//! Separate from `import`, because this module does not decompress: it reads only the first bytes.

use std::io::Read as _;
use std::path::Path;

/// A compression format, and the command that decompresses to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// The name of the format.
    pub format: &'static str,
    /// The command without the file's name.
    pub unpack_command: &'static str,
}

/// First bytes, name of the format, command.
const COMPRESSION_MAGIC_NUMBERS: &[(&[u8], &str, &str)] = &[
    (b"\x1f\x8b", "gzip", "gunzip -c"),
    (b"BZh", "bzip2", "bunzip2 -c"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// Returns the compression of a file. `None`: not compressed, a folder, or unreadable.
#[must_use]
pub fn detect_compression(path: &Path) -> Option<Compression> {
    // Only a regular file can be read twice; a pipe would lose these bytes.
    let file = path.is_file().then(|| std::fs::File::open(path).ok()).flatten()?;
    let mut first = Vec::new();
    file.take(8).read_to_end(&mut first).ok()?;
    let (_, format, unpack_command) =
        COMPRESSION_MAGIC_NUMBERS.iter().find(|(magic, ..)| first.starts_with(magic))?;
    Some(Compression { format, unpack_command })
}

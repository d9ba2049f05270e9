//! Compressed files are recognised by their first bytes.

use crate::book::Book;
use larder_sync::detect_compression;

#[test]
fn compressed_files_are_recognised_by_their_first_bytes() {
    let book = Book::new();
    for (first, expect) in [
        (&b"\x1f\x8b\x08\0"[..], Some("gzip")),
        (b"BZh91AY", Some("bzip2")),
        (b"\xfd7zXZ\0\0", Some("xz")),
        (b"\x28\xb5\x2f\xfd\x04", Some("zstd")),
        (b"PK\x03\x04", Some("zip")),
        (b"BEGIN:VCARD\n", None),
        (b"\x1f", None),
        (b"", None),
    ] {
        let file = book.file("file", first);
        assert_eq!(
            detect_compression(&file).map(|compression| compression.format),
            expect,
            "{first:?}"
        );
    }
    assert_eq!(detect_compression(&book.path("")), None);
}

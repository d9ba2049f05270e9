//! Targets of Mercurial's formats.

use larder_hg::{ByteStream, ChangeError, Revision, open_bundle};
use std::io::BufReader;

/// A bundle: the changes end, and are the same however the stream delivers its bytes.
pub fn check_bundle(data: &[u8]) {
    let whole = read_changes(Box::new(data));
    let pieces = read_changes(Box::new(BufReader::with_capacity(7, data)));
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces),
        (Err(_), Err(_)) => {}
        (whole, pieces) => panic!("{whole:?} from the whole, {pieces:?} from pieces"),
    }
}

/// Reads all changes; returns the number of revisions, and of bytes in their deltas and in paths.
fn read_changes(read: ByteStream<'_>) -> Result<(usize, usize), ChangeError> {
    let mut source = open_bundle(read)?;
    let mut revision = Revision::empty();
    let (mut revisions, mut bytes) = (0, 0);
    let mut is_manifest_read = false;
    loop {
        while source.next_revision(&mut revision)? {
            revisions += 1;
            bytes += revision.delta.len();
        }
        if !std::mem::replace(&mut is_manifest_read, true) {
            continue;
        }
        match source.next_file()? {
            Some(path) => bytes += path.len(),
            None => break,
        }
    }
    assert!(source.next_file()?.is_none(), "a file after the end");
    assert!(!source.next_revision(&mut revision)?, "a revision after the end");
    Ok((revisions, bytes))
}

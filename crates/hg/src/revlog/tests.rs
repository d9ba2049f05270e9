//! Revlogs written byte by byte, and damaged ones.

use super::*;
use proptest::prelude::*;
use std::path::Path;

/// A revision to be written: base, data as stored, length of the text.
type StoredRevision<'a> = (u32, &'a [u8], u32);

/// Writes a revlog of format 1 with a linear history.
fn write_revlog(
    folder: &Path,
    is_inline: bool,
    is_general_delta: bool,
    revisions: &[StoredRevision<'_>],
) -> Revlog {
    let (index_path, data_path) = (folder.join("a.i"), folder.join("a.d"));
    let header = 1 | u32::from(is_inline) << 16 | u32::from(is_general_delta) << 17;
    let (mut index, mut data) = (Vec::new(), Vec::new());
    for (number, (base, chunk, text_len)) in (0..).zip(revisions) {
        let start = (data.len() as u64) << 16;
        let mut entry = start.to_be_bytes();
        if number == 0 {
            entry[..4].copy_from_slice(&u32::to_be_bytes(header));
        }
        index.extend(entry);
        for word in [chunk.len() as u32, *text_len, *base, number, u32::wrapping_sub(number, 1), NO]
        {
            index.extend(word.to_be_bytes());
        }
        index.extend([number as u8; 20]);
        index.extend([0; 12]);
        data.extend_from_slice(chunk);
        if is_inline {
            index.extend_from_slice(chunk);
        }
    }
    std::fs::write(&index_path, index).expect("a file");
    if !is_inline {
        std::fs::write(&data_path, data).expect("a file");
    }
    Revlog::open(index_path, data_path).expect("a revlog").expect("a file")
}

const NO: u32 = u32::MAX;

fn text(revlog: &mut Revlog, revision: u32) -> Result<Vec<u8>, String> {
    let text = revlog.read_text(revision, &mut ChunkDecoder::new());
    text.map(<[u8]>::to_vec).map_err(|error| error.to_string())
}

/// A delta of one hunk.
fn hunk(start: u32, end: u32, data: &[u8]) -> Vec<u8> {
    let mut delta = vec![b'u'];
    delta.extend(start.to_be_bytes());
    delta.extend(end.to_be_bytes());
    delta.extend((data.len() as u32).to_be_bytes());
    delta.extend_from_slice(data);
    delta
}

#[test]
fn chains_follow_the_base_or_the_revision_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (hunk(3, 3, b"!"), hunk(0, 1, b"F"));
    for is_inline in [false, true] {
        // In both, the third revision names the first one.
        let revisions = [(0, b"uone".as_slice(), 3), (0, &first, 4), (0, &second, 3)];
        let mut revlog = write_revlog(folder.path(), is_inline, true, &revisions);
        assert_eq!(text(&mut revlog, 2).expect("a text"), b"Fne");
        assert_eq!(text(&mut revlog, 1).expect("a text"), b"one!");
        assert_eq!(text(&mut revlog, 1).expect("a text"), b"one!");
        let revisions = [(0, b"uone".as_slice(), 3), (0, &first, 4), (0, &second, 4)];
        let mut revlog = write_revlog(folder.path(), is_inline, false, &revisions);
        assert_eq!(text(&mut revlog, 2).expect("a text"), b"Fne!");
        assert_eq!(revlog.delta_base(2), Some(1));
        assert_eq!(revlog.delta_base(0), None);
    }
}

#[test]
fn damaged_revisions_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let misfit = hunk(9, 9, b"!");
    let revisions = [(0, b"uone".as_slice(), 3), (0, &misfit, 4), (2, b"utwo", 4), (3, b"?two", 3)];
    let mut revlog = write_revlog(folder.path(), true, true, &revisions);
    let messages: Vec<_> =
        (1..5).map(|revision| text(&mut revlog, revision).expect_err("damage")).collect();
    let expected = [
        "revision 1: the delta does not fit its base",
        "revision 2: a text of 3 bytes instead of 4",
        "revision 3: an unknown compression, 0x3f",
        "revision 4: no such revision",
    ];
    for (message, expected) in messages.iter().zip(expected) {
        assert!(message.ends_with(&format!("a.i: {expected}")), "{message}");
    }
    assert_eq!(text(&mut revlog, 0).expect("a text"), b"one");
}

#[test]
fn data_that_is_cut_off_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut revlog = write_revlog(folder.path(), false, true, &[(0, b"uone", 3), (1, b"utwo", 3)]);
    std::fs::write(folder.path().join("a.d"), b"uoneut").expect("a file");
    assert_eq!(text(&mut revlog, 0).expect("a text"), b"one");
    let message = text(&mut revlog, 1).expect_err("the end is missing");
    assert!(message.ends_with("revision 1: its data is cut off"), "{message}");
}

#[test]
fn an_incomplete_last_entry_does_not_count() {
    let folder = tempfile::tempdir().expect("a folder");
    for is_inline in [false, true] {
        write_revlog(folder.path(), is_inline, true, &[(0, b"uone", 3), (1, b"utwo", 3)]);
        let path = folder.path().join("a.i");
        let bytes = std::fs::read(&path).expect("a file");
        std::fs::write(&path, bytes.split_last().expect("bytes").1).expect("a file");
        let revlog = Revlog::open(path, folder.path().join("a.d")).expect("a revlog").expect("it");
        assert_eq!((revlog.len(), revlog.is_complete()), (1, false));
    }
}

#[test]
fn other_versions_and_missing_files_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.i");
    assert!(Revlog::open(path.clone(), path.clone()).expect("no file").is_none());
    std::fs::write(&path, b"").expect("a file");
    assert!(Revlog::open(path.clone(), path.clone()).expect("a file").expect("it").is_empty());
    std::fs::write(&path, [0, 0, 0xde, 0xad, 0, 0]).expect("a file");
    let error = Revlog::open(path.clone(), path).map(|_| ()).expect_err("not supported");
    assert!(error.to_string().ends_with("a.i: format 57005 with flags 0x0 of revlogs"), "{error}");
}

proptest! {
    /// Each revision is a text or an error for all bytes.
    #[test]
    fn damaged_files_never_panic(
        is_inline: bool,
        is_general_delta: bool,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let delta = hunk(3, 3, b"!");
        let revisions = [(0, b"uone".as_slice(), 3), (0, &delta, 4), (1, &delta, 5)];
        drop(write_revlog(folder.path(), is_inline, is_general_delta, &revisions));
        let path = folder.path().join("a.i");
        let mut bytes = std::fs::read(&path).expect("a file");
        for (index, byte) in &changes {
            *index.get_mut(&mut bytes) = *byte;
        }
        std::fs::write(&path, bytes).expect("a file");
        if let Ok(Some(mut revlog)) = Revlog::open(path, folder.path().join("a.d")) {
            for revision in 0..revlog.len() {
                drop(text(&mut revlog, revision));
            }
        }
    }
}

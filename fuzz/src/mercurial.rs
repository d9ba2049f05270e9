//! Targets of Mercurial's formats.

#![allow(clippy::expect_used, reason = "files in memory can be written")]

use larder_hg::{
    BundleContent, ByteStream, ChangeError, ChunkDecoder, LocalPeer, Peer as _, Revision, Revlog,
    fuzz_checks, open_bundle, open_bundle_content, unpack_store,
};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

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

/// The answers of a server to all that a fetch asks, with bytes of 0xff between them.
pub fn check_hg_answers(data: &[u8]) {
    let answers: Vec<&[u8]> = data.split(|byte| *byte == 0xff).collect();
    fuzz_checks::check_answers(&answers);
}

/// The text of a changeset, and the commit made of it.
pub fn check_hg_changeset(data: &[u8]) {
    fuzz_checks::check_changeset(data);
}

/// Manifests that are made from deltas, whose lengths of two bytes are before them.
pub fn check_hg_manifests(data: &[u8]) {
    let mut rest = data;
    let mut deltas = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)).min(after.len());
        let (delta, after) = after.split_at(len);
        deltas.push(delta);
        rest = after;
    }
    deltas.truncate(8);
    fuzz_checks::check_manifests(&deltas);
}

/// Records of the metadata.
pub fn check_hg_records(data: &[u8]) {
    fuzz_checks::check_records(data);
}

/// A folder in memory, if there is one, for the files of targets.
fn scratch_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    tempfile::tempdir_in(parent).expect("a folder")
}

/// The index of a revlog with its data: all texts are read.
pub fn check_hg_revlog(data: &[u8]) {
    let folder = scratch_folder();
    let path = folder.path().join("file.i");
    fs::write(&path, data).expect("a file");
    let Ok(Some(mut revlog)) = Revlog::open(path, PathBuf::from("/dev/null")) else { return };
    let mut decoder = ChunkDecoder::new();
    for revision in 0..revlog.len() {
        let expected = revlog.entry(revision).and_then(|entry| entry.text_len());
        if let Ok(text) = revlog.read_text(revision, &mut decoder) {
            assert!(expected.is_none_or(|expected| expected as usize == text.len()));
        }
    }
}

/// The files of a store as a bundle, read as a repository.
pub fn check_hg_store(data: &[u8]) {
    let stream: ByteStream<'_> = Box::new(data);
    let Ok(BundleContent::Store(mut part)) = open_bundle_content(stream) else { return };
    let folder = scratch_folder();
    if unpack_store(&mut part, folder.path()).is_err() {
        return;
    }
    let Ok(mut peer) = LocalPeer::open_store(folder.path()) else { return };
    let Ok(refs) = peer.refs() else { return };
    let _known = peer.find_known(&refs.heads);
    let _found = peer.lookup(b"tip");
    let Ok(mut changes) = peer.changes(&refs.heads, &[]) else { return };
    let mut revision = Revision::empty();
    for _ in 0..2 {
        while let Ok(true) = changes.next_revision(&mut revision) {}
    }
    while let Ok(Some(_)) = changes.next_file() {
        while let Ok(true) = changes.next_revision(&mut revision) {}
    }
}

/// An object of a pack, and a delta of git against the first bytes.
pub fn check_pack_object(data: &[u8]) {
    let (base, delta) = data.split_at(data.len().min(16));
    fuzz_checks::check_git_delta(base, delta);
    let folder = scratch_folder();
    let path = folder.path().join("pack");
    fs::write(&path, data).expect("a file");
    fuzz_checks::check_pack(&File::open(&path).expect("a file"));
}

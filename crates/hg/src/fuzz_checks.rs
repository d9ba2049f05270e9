//! Entrances of the fuzz targets to parsers that nothing outside of this crate calls.
//!
//! Apart from the parsers, and only there with the feature `fuzz-checks`, which the crate
//! `larder-fuzz` sets: programs have none of it. Functions panic where a property does not hold.

use crate::changeset::Changeset;
use crate::commit::commit_content;
use crate::git::object::EMPTY_TREE;
use crate::git::{delta, pack_reader};
use crate::manifest::{ManifestError, ManifestText, Manifests};
use crate::metadata::RecordReader;
use crate::object_id::Node;
use crate::peer::Peer;
use crate::revision::{ChangeError, Revision, RevisionHeader, hash_revision};
use crate::wire::peer_of_answers;
use std::fs::File;

/// Parses the text of a changeset, and makes its commit.
pub fn check_changeset(text: &[u8]) {
    let Some(changeset) = Changeset::parse(text) else { return };
    let _closes = changeset.closes_branch();
    let content = commit_content(&changeset, EMPTY_TREE, &[]);
    let identity = content.split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
    assert!(identity.starts_with(b"author "), "{}", content.escape_ascii());
    let brackets = identity.iter().filter(|byte| matches!(byte, b'<' | b'>')).count();
    assert_eq!(brackets, 2, "{}", identity.escape_ascii());
}

/// Adds manifests, each with one of these deltas to the one before: the text is that of the delta.
pub fn check_manifests(deltas: &[&[u8]]) {
    let mut manifests = Manifests::default();
    let mut text = Vec::new();
    let mut base = Node::NULL;
    for bytes in deltas {
        let mut expected = Vec::new();
        let is_delta = crate::delta::apply_delta(&text, bytes, &mut expected).is_ok();
        let node = hash_revision(&base, &Node::NULL, [expected.as_slice()]);
        let header = RevisionHeader { node, p1: base, p2: Node::NULL, base, flags: 0 };
        let added = manifests.add::<ManifestError>(&header, bytes, &mut |_, _| Ok(None));
        assert!(is_delta || added.is_err(), "a manifest from no delta");
        if let Err(error) = &added {
            let has_hash = !error.to_string().ends_with("does not have its hash");
            assert!(!is_delta || has_hash, "{error}");
        }
        if added.is_err() {
            // The manifests before it have their hashes nevertheless.
            break;
        }
        assert_eq!(manifests.newest_text().map(ManifestText::to_bytes), Some(expected.clone()));
        (text, base) = (expected, node);
    }
    assert!(manifests.finish_checks().is_ok(), "texts without their hashes");
}

/// Applies a delta of git.
pub fn check_git_delta(base: &[u8], bytes: &[u8]) {
    let _text = delta::apply(base, bytes);
}

/// Reads the object at the beginning of a pack that is being written.
pub fn check_pack(pack: &File) {
    let _object = pack_reader::read_object(pack, 0);
}

/// Reads records of metadata.
pub fn check_records(bytes: &[u8]) {
    let mut reader = RecordReader { rest: bytes };
    while let Some(record) = reader.bytes() {
        let _manifest = RecordReader { rest: record }.manifest();
        let _changes = RecordReader { rest: record }.changes();
    }
}

/// Asks a server that gives these answers, the first of which are its capabilities, and the last of
/// which is a stream, for all that a fetch asks for.
pub fn check_answers(answers: &[&[u8]]) {
    let mut peer = peer_of_answers(answers);
    let Ok(refs) = peer.refs() else { return };
    let _known = peer.find_known(&refs.heads);
    let _found = peer.lookup(b"tip");
    let _bundles = peer.clone_bundles();
    let _read = read_all(&mut peer, &refs.heads);
}

fn read_all(peer: &mut dyn Peer, heads: &[Node]) -> Result<(), ChangeError> {
    let mut changes = peer.changes(heads, &[])?;
    let mut revision = Revision::empty();
    while changes.next_revision(&mut revision)? {}
    while changes.next_revision(&mut revision)? {}
    while changes.next_file()?.is_some() {
        while changes.next_revision(&mut revision)? {}
    }
    Ok(())
}

//! The parents and texts of all revisions, read from the metadata and the objects of git alone:
//! those that Mercurial has, and their hashes.

use crate::checks::faults;
use crate::golden_vectors::convert_repository;
use crate::mercurial::{Mercurial, each_edge_repository, has_mercurial};
use larder_hg::{GitDirectory, LocalPeer, Metadata, Node, Peer as _, Revision, WholeRevision};
use sha1::{Digest as _, Sha1};
use std::path::Path;

/// The revision of a file without bytes and without parents, which is in no metadata.
const EMPTY_FILE: &str = "b80de5d138758541c5f05265ad144ab9fa86d1db";

fn hash(stored: &WholeRevision) -> Node {
    let mut parents = stored.parents.unwrap();
    parents.sort();
    let hash = Sha1::new().chain_update(parents[0].0).chain_update(parents[1].0);
    Node(hash.chain_update(&stored.text).finalize().into())
}

/// Compares the metadata with all revisions of manifests and files, and returns their number.
pub(crate) fn compare_parents(directory: &Path, source: &Path) -> usize {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository).unwrap();
    let mut peer = LocalPeer::open(source).unwrap();
    let heads = peer.refs().unwrap().heads;
    let mut changes = peer.changes(&heads, &[]).unwrap();
    let mut revision = Revision::empty();
    while changes.next_revision(&mut revision).unwrap() {}
    let mut count = 0;
    let mut compare = |revision: &Revision, stored: Option<WholeRevision>| {
        let node = revision.node;
        let stored = stored.unwrap_or_else(|| panic!("{node} is missing"));
        assert_eq!(stored.parents, Some([revision.p1, revision.p2]), "{node}");
        if revision.flags & (Revision::CENSORED | Revision::EXTERNAL) == 0 {
            assert_eq!(hash(&stored), node);
        }
        count += 1;
    };
    while changes.next_revision(&mut revision).unwrap() {
        let stored = metadata.manifest_revision(&mut repository, &revision.node).unwrap();
        compare(&revision, stored);
    }
    while changes.next_file().unwrap().is_some() {
        while changes.next_revision(&mut revision).unwrap() {
            let stored = metadata.file_revision(&mut repository, &revision.node).unwrap();
            if stored.is_some() || revision.node.to_string() != EMPTY_FILE {
                compare(&revision, stored);
            }
        }
    }
    count
}

/// More file revisions than a piece of the tables has: the parents are in other pieces.
#[test]
fn parents_are_found_in_other_pieces() {
    if !has_mercurial("parents_are_found_in_other_pieces") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mercurial = Mercurial::init(&folder.path().join("hg"), &[]);
    for commit in 0..4_u32 {
        for file in 0..600 {
            mercurial.write(&format!("f{file}"), format!("{file} {commit}").as_bytes());
        }
        mercurial.commit(&format!("commit {commit}"), commit);
    }
    let (_folder, directory, _) = convert_repository(&mercurial.path);
    assert_eq!(compare_parents(&directory, &mercurial.path), 4 + 2_400);
    assert_eq!(faults(&directory, true), Vec::<String>::new());
}

#[test]
fn parents_of_edge_repositories_are_stored() {
    if !has_mercurial("parents_of_edge_repositories_are_stored") {
        return;
    }
    let mut count = 0;
    for source in each_edge_repository() {
        let (_folder, directory, _) = convert_repository(&source);
        count += compare_parents(&directory, &source);
    }
    assert!(count > 300, "{count}");
}

//! Bundles that Mercurial writes.

use crate::golden_vectors::NoProgress;
use crate::test_repository::{TestRepository, has_mercurial, read_all};
use larder_hg::{
    BundlePeer, ChangeError, GitDirectory, Peer as _, convert_bundle, open_bundle, stored_texts,
};
use std::num::NonZeroUsize;

/// All formats, by the names of `hg bundle`.
const SPECIFICATIONS: [&str; 8] = [
    "none-v1",
    "gzip-v1",
    "bzip2-v1",
    "none-v2",
    "gzip-v2",
    "bzip2-v2",
    "zstd-v2",
    "zstd-v2;cg.version=03",
];

/// One test, as making the repository takes longer than all checks.
#[test]
fn bundles_of_mercurial_are_read() {
    if !has_mercurial("bundles_of_mercurial_are_read") {
        return;
    }
    let repository = TestRepository::new();
    all_formats_deliver_the_same_changes(&repository);
    a_bundle_names_branches_and_heads(&repository);
    a_bundle_that_builds_on_others_needs_their_texts(&repository);
    store_bundles_need_a_scratch_folder(&repository);
    a_bundle_of_a_real_repository_is_never_read_in_part(&repository);
}

fn all_formats_deliver_the_same_changes(repository: &TestRepository) {
    for specification in SPECIFICATIONS {
        let mut peer = BundlePeer::from_path(repository.bundle(specification));
        let delivered = read_all(peer.changes(&[], &[]).unwrap().as_mut()).unwrap();
        assert_eq!(delivered.changesets, repository.nodes("all()"), "{specification}");
        assert_eq!(delivered.manifests.len(), 6, "{specification}");
        let counts: Vec<(&[u8], usize)> =
            delivered.files.iter().map(|(path, nodes)| (path.as_slice(), nodes.len())).collect();
        let expected: [(&[u8], usize); 5] = [
            (b"a.txt", 3),
            (b"c.txt", 1),
            (b"copy.txt", 1),
            (b"d.txt", 1),
            ("dir/ü b.txt".as_bytes(), 1),
        ];
        assert_eq!(counts, expected, "{specification}");
    }
}

fn a_bundle_names_branches_and_heads(repository: &TestRepository) {
    let mut peer = BundlePeer::from_path(repository.bundle("zstd-v2"));
    let refs = peer.refs().unwrap();
    let expected = vec![
        (b"default".to_vec(), repository.nodes("4+5")),
        (b"other/%C3%BC%20~x".to_vec(), repository.nodes("3")),
    ];
    assert_eq!(refs.branches, expected);
    assert_eq!(refs.heads, repository.nodes("reverse(head() and not 3)"));
    let nodes = repository.nodes("all()");
    assert_eq!(peer.find_known(&nodes).unwrap(), [true; 6]);
    assert_eq!(peer.find_known(&[larder_hg::Node([7; 20])]).unwrap(), [false]);
    let check = |peer: &mut BundlePeer, name: &str, number: usize| {
        assert_eq!(peer.lookup(name.as_bytes()).unwrap(), nodes[number], "{name}");
    };
    check(&mut peer, "tip", 5);
    check(&mut peer, "default", 5);
    check(&mut peer, "other/ü ~x", 3);
    check(&mut peer, &nodes[2].to_string()[..8].to_uppercase(), 2);
    let error = peer.lookup(b"nothing").unwrap_err();
    assert_eq!(error.to_string(), "the server says: unknown revision 'nothing'");
}

fn a_bundle_that_builds_on_others_needs_their_texts(repository: &TestRepository) {
    repository.hg(&["bundle", "-q", "--base", "3", "-r", "5", "-t", "none-v1", "part.hg"]);
    let path = repository.path().join("part.hg");
    let error = BundlePeer::from_path(path.clone()).refs().unwrap_err();
    assert!(matches!(error, ChangeError::Unsupported { .. }), "{error}");
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let read_refs = || {
        let mut peer = BundlePeer::from_path(path.clone());
        peer.set_base_texts(stored_texts(folder.path()));
        peer.refs()
    };
    let error = read_refs().unwrap_err();
    assert!(matches!(error, ChangeError::Unsupported { .. }), "{error}");
    let mut whole = BundlePeer::from_path(repository.bundle("zstd-v2"));
    convert_bundle(folder.path(), &mut whole, NonZeroUsize::MIN, &mut NoProgress).unwrap();
    let refs = read_refs().unwrap();
    assert_eq!(refs.heads, repository.nodes("5"));
}

fn store_bundles_need_a_scratch_folder(repository: &TestRepository) {
    let path = repository.bundle("none-v2;stream=v2");
    let error = BundlePeer::from_path(path).refs().unwrap_err();
    assert_eq!(
        error.to_string(),
        "not supported: a stream clone bundle (stream2) without a scratch folder"
    );
}

fn a_bundle_of_a_real_repository_is_never_read_in_part(repository: &TestRepository) {
    let bytes = std::fs::read(repository.bundle("none-v2")).unwrap();
    for end in (0..bytes.len()).step_by(7) {
        let source = open_bundle(Box::new(&bytes[..end]));
        assert!(source.and_then(|mut source| read_all(source.as_mut())).is_err(), "cut at {end}");
    }
}

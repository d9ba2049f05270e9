//! Repositories of git-cinnabar, taken over (`cinnabar/`): bundles of git with what version 0.7.5
//! made of the edge repositories `raw` and `dblslash`, and of the first 25 changesets of `cli`. How
//! they are made again is in `bench/hg/import-cinnabar.sh`.

use crate::checks::{faults, write_object};
use crate::golden_vectors::{NoProgress, changesets_in_order, git, read_vector};
use crate::mercurial::{Mercurial, edge_repositories, has_mercurial};
use larder_hg::{
    BundlePeer, CINNABAR_REF, CinnabarError, CinnabarImport, FetchError, GitDirectory, GitId,
    LocalPeer, Metadata, Node, Peer as _, convert_bundle, convert_clone_bundle, fetch,
    import_cinnabar,
};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

/// Makes the repository of a bundle.
fn repository_of(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let bundle = format!("{}/tests/cinnabar/{name}.bundle", env!("CARGO_MANIFEST_DIR"));
    let refs = format!("{CINNABAR_REF}:{CINNABAR_REF}");
    git(folder.path(), &["fetch", "-q", &bundle, &refs]);
    folder
}

fn import(directory: &Path) -> Result<CinnabarImport, CinnabarError> {
    let commit = GitDirectory::new(directory).resolve(CINNABAR_REF).unwrap().unwrap();
    import_cinnabar(directory, commit, &mut NoProgress)
}

/// Returns the commits of the changesets of a vector that the metadata has.
fn commits(directory: &Path, expected: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository).unwrap();
    let mut commits = BTreeMap::new();
    for node in expected.keys() {
        let id = Node::from_hex(node.as_bytes()).unwrap();
        if let Some(commit) = metadata.commit_of(&mut repository, &id).unwrap() {
            commits.insert(node.clone(), commit.to_string());
        }
    }
    commits
}

#[test]
fn repositories_of_git_cinnabar_are_taken_over() {
    for (name, changesets) in [("raw", 29), ("dblslash", 2)] {
        let folder = repository_of(name);
        let refs = git(folder.path(), &["for-each-ref"]);
        assert_eq!(import(folder.path()).unwrap().changesets, changesets, "{name}");
        let kept = git(folder.path(), &["for-each-ref", "refs/cinnabar"]);
        assert_eq!(kept, refs, "{name}");
        assert_eq!(faults(folder.path(), true), Vec::<String>::new(), "{name}");
        let expected = read_vector(name).unwrap();
        assert_eq!(commits(folder.path(), &expected.commits), expected.commits, "{name}");
        git(folder.path(), &["fsck", "--full", "--no-progress"]);
        assert!(matches!(import(folder.path()), Err(CinnabarError::NotEmpty)), "{name}");
    }
}

/// Before it is taken over, nothing is converted again.
fn refuse_conversion(directory: &Path) {
    let source = edge_repositories().join("cli");
    let mut peer = LocalPeer::open(&source).unwrap();
    let heads = peer.refs().unwrap().heads;
    let threads = NonZeroUsize::MIN;
    let fetched = fetch(&GitDirectory::new(directory), &mut peer, &heads, threads, &mut NoProgress);
    assert!(matches!(fetched, Err(FetchError::CinnabarRepository)), "{fetched:?}");
    let mut bundle = BundlePeer::from_path("none.hg".into());
    let converted = convert_bundle(directory, &mut bundle, threads, &mut NoProgress);
    assert!(matches!(converted, Err(FetchError::CinnabarRepository)), "{converted:?}");
    let options = threads.into();
    let converted = convert_clone_bundle(directory, &mut peer, &options, &mut NoProgress);
    assert!(matches!(converted, Err(FetchError::CinnabarRepository)), "{converted:?}");
}

/// The metadata is enough for the next fetch: also without that of git-cinnabar.
#[test]
fn fetches_go_on_after_a_repository_was_taken_over() {
    if !has_mercurial("fetches_go_on_after_a_repository_was_taken_over") {
        return;
    }
    let folder = repository_of("cli");
    refuse_conversion(folder.path());
    assert_eq!(import(folder.path()).unwrap().changesets, 25);
    git(folder.path(), &["update-ref", "-d", CINNABAR_REF]);
    git(folder.path(), &["gc", "-q", "--prune=now"]);
    let source = edge_repositories().join("cli");
    let mut peer = LocalPeer::open(&source).unwrap();
    let heads = peer.refs().unwrap().heads;
    let threads = NonZeroUsize::MIN;
    let fetched =
        fetch(&GitDirectory::new(folder.path()), &mut peer, &heads, threads, &mut NoProgress)
            .unwrap();
    assert_eq!(fetched.changesets, changesets_in_order(&source).len() - 25);
    let expected = read_vector("cli").unwrap().commits;
    assert_eq!(commits(folder.path(), &expected), expected);
    assert_eq!(faults(folder.path(), true), Vec::<String>::new());
}

/// A bundle brings manifests again that were taken over, as changes of other ones.
#[test]
fn bundles_are_added_after_a_repository_was_taken_over() {
    if !has_mercurial("bundles_are_added_after_a_repository_was_taken_over") {
        return;
    }
    let folder = repository_of("cli");
    import(folder.path()).unwrap();
    let mercurial = Mercurial { path: edge_repositories().join("cli") };
    let bundle = folder.path().join("bundle.hg");
    let path = bundle.to_str().unwrap();
    mercurial.run(&["bundle", "-q", "--base", "null", "-r", "all()", path]);
    convert_bundle(
        folder.path(),
        &mut BundlePeer::from_path(bundle.clone()),
        NonZeroUsize::MIN,
        &mut NoProgress,
    )
    .unwrap();
    let expected = read_vector("cli").unwrap().commits;
    assert_eq!(commits(folder.path(), &expected), expected);
    assert_eq!(faults(folder.path(), true), Vec::<String>::new());
}

/// Replaces the metadata of git-cinnabar: the message, the tree, or one of the parents.
fn replace_metadata(directory: &Path, message: &str, tree: &str, parent: Option<(usize, &str)>) {
    let listed = git(directory, &["rev-parse", &format!("{CINNABAR_REF}^@")]);
    let mut parents: Vec<&str> = listed.lines().collect();
    if let Some((place, parent)) = parent {
        parents[place] = parent;
    }
    let mut args = vec!["commit-tree", tree];
    parents.iter().for_each(|parent| args.extend(["-p", parent]));
    let commit = write_object(directory, &args, message.as_bytes());
    git(directory, &["update-ref", CINNABAR_REF, &commit]);
}

const FORMAT: &str = "files-meta unified-manifests-v2";

#[test]
fn other_metadata_is_refused() {
    let folder = repository_of("dblslash");
    let directory = folder.path();
    let whole = git(directory, &["rev-parse", CINNABAR_REF]);
    let empty = write_object(directory, &["mktree"], b"");
    let refused = |expected: &str| {
        let error = import(directory).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let refs = git(directory, &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs.trim(), CINNABAR_REF);
        git(directory, &["update-ref", CINNABAR_REF, whole.trim()]);
    };
    replace_metadata(directory, "files-meta", &empty, None);
    refused("the format \"files-meta\"");
    let entry = format!("160000 commit {}\t{}\n", whole.trim(), "0".repeat(40));
    let grafts = write_object(directory, &["mktree"], entry.as_bytes());
    replace_metadata(directory, FORMAT, &grafts, None);
    refused("grafts");

    // A note with another list of files, and one that is missing.
    let notes = git(directory, &["rev-parse", &format!("{CINNABAR_REF}^4")]);
    let listing = git(directory, &["ls-tree", "-r", notes.trim()]);
    let note = listing.split_ascii_whitespace().nth(2).unwrap();
    let text = git(directory, &["cat-file", "blob", note]);
    let other = write_object(
        directory,
        &["hash-object", "-w", "--stdin"],
        text.replacen("files ", "files x\0", 1).as_bytes(),
    );
    for listing in [listing.replace(note, &other), listing.lines().skip(1).collect()] {
        // Notes without folders are notes, too.
        let flat: String = listing
            .lines()
            .flat_map(|line| [&line.replace('/', ""), "\n"].map(str::to_string))
            .collect();
        let tree = write_object(directory, &["mktree"], flat.as_bytes());
        let commit = write_object(directory, &["commit-tree", &tree], b"");
        replace_metadata(directory, FORMAT, &empty, Some((3, &commit)));
        refused(if listing.contains(&other) {
            "1 changesets do not have"
        } else {
            "has no changeset"
        });
    }
    assert!(GitId::from_hex(whole.trim().as_bytes()).is_some());
    import(directory).unwrap();
}

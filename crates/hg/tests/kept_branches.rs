//! Branches of git that a later conversion keeps, because a new branch has no room beside them.

use crate::golden_vectors::{NoProgress, git};
use crate::mercurial::{Mercurial, has_mercurial};
use larder_hg::{BundlePeer, GitDirectory, LocalPeer, Oddity, Peer, RefStyle, convert_all};
use std::num::NonZeroUsize;
use std::path::Path;

/// Converts, and returns the branches that were kept.
fn convert(directory: &Path, peer: &mut dyn Peer, style: RefStyle) -> Vec<String> {
    let converted =
        convert_all(directory, peer, style, NonZeroUsize::MIN, &mut NoProgress).unwrap();
    let mut kinds = converted.oddities.kinds();
    let kept = kinds.find(|(oddity, _)| *oddity == Oddity::KeptBranch);
    kept.map(|(_, kind)| kind.examples.clone()).unwrap_or_default()
}

fn branches(directory: &Path) -> Vec<String> {
    let format = "--format=%(refname:lstrip=2) %(contents:subject)";
    let text = git(directory, &["for-each-ref", format, "refs/heads"]);
    text.lines().map(str::to_owned).collect()
}

/// The branch of a bookmark has a commit of git when the bookmark becomes a folder.
#[test]
fn a_branch_with_commits_of_git_is_kept_in_the_way_of_another() {
    if !has_mercurial("a_branch_with_commits_of_git_is_kept_in_the_way_of_another") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mercurial = Mercurial::init(&folder.path().join("mercurial"), &[]);
    mercurial.write("file", b"1");
    mercurial.commit("base", 0);
    mercurial.run(&["bookmark", "-r", "0", "b"]);
    let directory = folder.path().join("git");
    GitDirectory::create(&directory).unwrap();
    let convert = || {
        let mut peer = LocalPeer::open(&mercurial.path).unwrap();
        convert(&directory, &mut peer, RefStyle::ALL)
    };
    assert!(convert().is_empty());
    let name = "refs/heads/bookmarks/b";
    let tree = git(&directory, &["rev-parse", "refs/heads/bookmarks/b^{tree}"]);
    let author = ["-c", "user.name=x", "-c", "user.email=x"];
    let commit = ["commit-tree", "-p", name, "-m", "of git", tree.trim()];
    let commit = git(&directory, &[&author[..], &commit[..]].concat());
    git(&directory, &["update-ref", name, commit.trim()]);
    mercurial.run(&["bookmark", "-d", "b"]);
    mercurial.run(&["bookmark", "-r", "0", "b/c"]);
    mercurial.write("file", b"2");
    mercurial.commit("newer", 1);
    for _ in 0..2 {
        let kept = "refs/heads/bookmarks/b: in the way of refs/heads/bookmarks/b/c";
        assert_eq!(convert(), [kept]);
        let expected = ["bookmarks/b of git", "branches/default/tip newer"];
        assert_eq!(branches(&directory), expected);
    }
    git(&directory, &["update-ref", "-d", name]);
    assert!(convert().is_empty());
    let expected = ["bookmarks/b/c base", "branches/default/tip newer"];
    assert_eq!(branches(&directory), expected);
}

/// A bundle does not tell that a branch is gone.
#[test]
fn a_branch_of_an_earlier_bundle_is_kept_in_the_way_of_another() {
    if !has_mercurial("a_branch_of_an_earlier_bundle_is_kept_in_the_way_of_another") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mercurial = Mercurial::init(&folder.path().join("mercurial"), &[]);
    let commit = |branch: &str, message: &str, date: u32| {
        mercurial.run(&["branch", "-q", branch]);
        mercurial.write("file", message.as_bytes());
        mercurial.commit(message, date);
        let bundle = folder.path().join(message);
        mercurial.run(&["bundle", "-q", "-a", bundle.to_str().unwrap()]);
        BundlePeer::from_path(bundle)
    };
    let style = RefStyle::parse("tips").unwrap();
    let directory = folder.path().join("git");
    GitDirectory::create(&directory).unwrap();
    let mut first = commit("a/b", "first", 0);
    assert!(convert(&directory, &mut first, style).is_empty());
    assert_eq!(branches(&directory), ["a/b first"]);
    let mut second = commit("a", "second", 1);
    for _ in 0..2 {
        let kept = "refs/heads/a/b: in the way of refs/heads/a";
        assert_eq!(convert(&directory, &mut second, style), [kept]);
        assert_eq!(branches(&directory), ["a%2Fb first", "a/b first"]);
    }
    git(&directory, &["update-ref", "-d", "refs/heads/a/b"]);
    assert!(convert(&directory, &mut second, style).is_empty());
    assert_eq!(branches(&directory), ["a second", "a%2Fb first"]);
}

//! Bundles with changesets that were converted before: only what is new is written.

use crate::checks::faults;
use crate::golden_vectors::{NoProgress, git};
use crate::mercurial::{Mercurial, has_mercurial};
use crate::stored_parents::compare_parents;
use larder_hg::{
    BundlePeer, ChangeError, CloneSource, ConversionSummary, FetchOptions, GitDirectory, LocalPeer,
    Peer, Phase, Progress, RefStyle, convert_all, convert_bundle, fetch,
};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The changesets of the history.
const COMMITS: u32 = 12;
/// How many of them the first bundle has.
const FIRST: u32 = 7;

/// A history with a file that grows, one that comes back, one that is renamed, and a branch.
fn make_history(path: &Path) -> Mercurial {
    let mercurial = Mercurial::init(path, &[]);
    let mut text = String::new();
    for commit in 0..COMMITS {
        text.push_str(&format!("line {commit}\n"));
        mercurial.write("d/grows", text.as_bytes());
        mercurial.write("returns", if commit % 2 == 0 { b"even" } else { b"odd" });
        mercurial.write(&format!("d/e/new{commit}"), &[b'0' + commit as u8; 200]);
        if commit == FIRST + 1 {
            mercurial.run(&["mv", "d/e/new1", "moved"]);
        }
        mercurial.commit(&format!("commit {commit}"), commit);
        if commit == FIRST + 2 {
            mercurial.run(&["update", "-q", "-r", "3"]);
        }
    }
    mercurial
}

fn bundle(mercurial: &Mercurial, base: &str, heads: &str, name: &str) -> PathBuf {
    let path = mercurial.path.join(name);
    let arguments = ["bundle", "-q", "--base", base, "-r", heads, path.to_str().unwrap()];
    mercurial.run(&arguments);
    path
}

fn import(directory: &Path, bundle: &Path) -> ConversionSummary {
    convert_bundle(
        directory,
        &mut BundlePeer::from_path(bundle.to_path_buf()),
        NonZeroUsize::MIN,
        &mut NoProgress,
    )
    .unwrap()
}

fn packs(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory.join("objects/pack")).unwrap();
    entries
        .filter(|entry| entry.as_ref().unwrap().path().extension() == Some("pack".as_ref()))
        .count()
}

#[test]
fn only_new_changes_of_a_bundle_are_written() {
    if !has_mercurial("only_new_changes_of_a_bundle_are_written") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mercurial = make_history(&folder.path().join("hg"));
    let last_first = format!("{}", FIRST - 1);
    let first = bundle(&mercurial, "null", &last_first, "first.hg");
    let rest = bundle(&mercurial, &last_first, "all()", "rest.hg");
    let whole = bundle(&mercurial, "null", "all()", "whole.hg");
    let directories = ["apart", "overlapping"].map(|name| folder.path().join(name));
    let [apart, overlapping] = directories.each_ref().map(|directory| {
        GitDirectory::create(directory).unwrap();
        assert_eq!(import(directory, &first).changesets, FIRST as usize);
        let is_apart = directory.ends_with("apart");
        import(directory, if is_apart { &rest } else { &whole })
    });
    assert_eq!(overlapping.changesets, (COMMITS - FIRST) as usize);
    assert_eq!(overlapping.objects, apart.objects);
    assert_eq!(overlapping.oddities, apart.oddities);
    let [_, overlapping] = directories;
    assert_eq!(packs(&overlapping), 2);
    for again in [&first, &rest, &whole] {
        assert_eq!(import(&overlapping, again), ConversionSummary::default());
    }
    assert_eq!(packs(&overlapping), 2);
    assert_eq!(faults(&overlapping, true), Vec::<String>::new());
    compare_parents(&overlapping, &mercurial.path);
    git(&overlapping, &["fsck", "--full", "--no-progress"]);
}

/// Lets another import change the metadata during a conversion.
struct Disturbance<'a> {
    directory: &'a Path,
    bundle: Option<&'a Path>,
}

impl Progress for Disturbance<'_> {
    fn advance(&mut self, _: Phase, _: u64, _: Option<u64>) {
        if let Some(bundle) = self.bundle.take() {
            import(self.directory, bundle);
        }
    }
}

#[test]
fn an_import_is_repeated_after_another_one() {
    if !has_mercurial("an_import_is_repeated_after_another_one") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mercurial = make_history(&folder.path().join("hg"));
    let first = bundle(&mercurial, "null", &format!("{}", FIRST - 1), "first.hg");
    let whole = bundle(&mercurial, "null", "all()", "whole.hg");
    let disturbed = |name: &str, convert: &dyn Fn(&Path, &mut dyn Progress) -> usize| {
        let directory = folder.path().join(name);
        GitDirectory::create(&directory).unwrap();
        let mut progress = Disturbance { directory: &directory, bundle: Some(&first) };
        let converted = convert(&directory, &mut progress);
        assert_eq!(converted, (COMMITS - FIRST) as usize, "{name}");
        assert_eq!(faults(&directory, true), Vec::<String>::new());
    };
    let threads = NonZeroUsize::MIN;
    disturbed("bundle", &|directory, progress| {
        let mut peer = BundlePeer::from_path(whole.clone());
        convert_bundle(directory, &mut peer, threads, progress).unwrap().changesets
    });
    disturbed("bundle of the user", &|directory, progress| {
        let mut peer = LocalPeer::open(&mercurial.path).unwrap();
        let heads = peer.refs().unwrap().heads;
        let mut options = FetchOptions::from(threads);
        options.bundle = CloneSource::Given(whole.to_str().unwrap().to_owned());
        let no_server = |_: &str| Err(ChangeError::Settings { what: "no server".to_owned() });
        options.servers = Some(&no_server);
        fetch(&GitDirectory::new(directory), &mut peer, &heads, options, progress)
            .unwrap()
            .changesets
    });
}

/// A bundle of an older state, or of a part of the history, does not have the other refs.
#[test]
fn a_bundle_moves_no_branch_back_and_deletes_none() {
    if !has_mercurial("a_bundle_moves_no_branch_back_and_deletes_none") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mercurial = make_history(&folder.path().join("mercurial"));
    mercurial.run(&["bookmark", "-r", "tip", "feature"]);
    let directory = folder.path().join("git");
    GitDirectory::create(&directory).unwrap();
    let convert = |peer: &mut dyn Peer| {
        convert_all(&directory, peer, RefStyle::ALL, NonZeroUsize::MIN, &mut NoProgress).unwrap();
        git(&directory, &["for-each-ref", "refs/heads"])
    };
    let all = convert(&mut LocalPeer::open(&mercurial.path).unwrap());
    assert!(all.contains("refs/heads/bookmarks/feature"), "{all}");
    let older = bundle(&mercurial, "null", "1", "older");
    assert_eq!(convert(&mut BundlePeer::from_path(older)), all);
    mercurial.run(&["update", "-q", "feature"]);
    mercurial.write("new", b"x");
    mercurial.commit("new", 99);
    let newer = bundle(&mercurial, "null", "tip", "newer");
    assert_ne!(convert(&mut BundlePeer::from_path(newer)), all);
}

/// The names of heads depend on all heads of a branch, and a bundle has some of them.
#[test]
fn a_bundle_leaves_every_head_on_a_branch() {
    if !has_mercurial("a_bundle_leaves_every_head_on_a_branch") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mercurial = Mercurial::init(&folder.path().join("mercurial"), &[]);
    let commit = |file: &str, date: u32| {
        mercurial.write(file, file.as_bytes());
        mercurial.commit(file, date)
    };
    commit("base", 0);
    commit("a", 1);
    mercurial.run(&["update", "-q", "-r", "0"]);
    let b = commit("b", 2);
    let full = bundle(&mercurial, "null", "all()", "full.hg");
    mercurial.run(&["update", "-q", "-r", "1"]);
    commit("a2", 3);
    let newer = mercurial.path.join("newer.hg");
    let bases = ["--base", "1", "--base", "2", "-r", "3", newer.to_str().unwrap()];
    mercurial.run(&[&["bundle", "-q"], &bases[..]].concat());
    let convert = |name: &str, peer: &mut dyn Peer| {
        let directory = folder.path().join(name);
        if !directory.exists() {
            GitDirectory::create(&directory).unwrap();
        }
        let commits = || git(&directory, &["rev-list", "--branches"]);
        let before = commits();
        convert_all(&directory, peer, RefStyle::ALL, NonZeroUsize::MIN, &mut NoProgress).unwrap();
        let after = commits();
        for commit in before.lines() {
            assert!(after.lines().any(|other| other == commit), "{name}: {commit} is lost");
        }
        let format = "--format=%(refname:lstrip=4) %(contents:subject)";
        git(&directory, &["for-each-ref", format, "refs/heads/branches/default/"])
    };
    let from = |path: &Path| BundlePeer::from_path(path.to_path_buf());
    let expected = format!("{b} b\ntip a2\n");
    // An older bundle.
    let whole = convert("older", &mut LocalPeer::open(&mercurial.path).unwrap());
    assert_eq!(whole, expected);
    assert_eq!(convert("older", &mut from(&full)), expected);
    // A newer one with one of the heads. That a was a head of its own stays.
    convert("newer", &mut from(&full));
    let refs = convert("newer", &mut from(&newer));
    assert!(expected.lines().all(|line| refs.lines().any(|other| other == line)), "{refs}");
    // One that closes the newer head of two: the other one becomes the tip.
    mercurial.run(&["commit", "--close-branch", "-m", "close", "-u", "user", "-d", "4 0"]);
    let closed = mercurial.lines(&["log", "-r", ".", "-T", "{node}\n"]).remove(0);
    let closing = bundle(&mercurial, "3", ".", "closing.hg");
    let refs = convert("older", &mut from(&closing));
    let expected = [format!("{closed} close"), "tip b".to_owned()];
    assert!(expected.iter().all(|line| refs.lines().any(|other| other == line)), "{refs}");
}

//! The edge repositories as git-cinnabar 0.7.5 converts them (`golden/`, recorded from it): refs,
//! HEAD, and the commit of each changeset. Where it fails, the results are those of docs/hg.md.

use crate::checks::faults;
use crate::mercurial::{Mercurial, each_edge_repository, has_mercurial};
use larder_hg::{
    ConversionSummary, GitDirectory, LocalPeer, Metadata, Node, Peer as _, Phase, Progress,
    RefStyle, convert_all, fetch, tag_refs,
};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct NoProgress;

impl Progress for NoProgress {
    fn advance(&mut self, _: Phase, _: u64, _: Option<u64>) {}
}

/// The content of a vector: commits by refs, the ref of HEAD, and commits by changesets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Vector {
    refs: BTreeMap<String, String>,
    head: String,
    pub(crate) commits: BTreeMap<String, String>,
}

const NO_COMMIT: &str = "0000000000000000000000000000000000000000";

/// Reads a vector; `None` if git-cinnabar failed.
pub(crate) fn read_vector(name: &str) -> Option<Vector> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let text = std::fs::read_to_string(format!("{folder}/{name}.txt")).ok()?;
    let mut vector = Vector::default();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        match words[..] {
            ["ref" | "tag", commit, name] if !name.contains("cinnabar") => {
                vector.refs.insert(name.into(), commit.into());
            }
            ["HEAD", name] => vector.head = name.into(),
            ["map", node, commit] if commit != NO_COMMIT => {
                vector.commits.insert(node.into(), commit.into());
            }
            _ => {}
        }
    }
    (!vector.commits.is_empty()).then_some(vector)
}

pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = command.arg("--git-dir").arg(directory).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Converts a repository, and returns the folder with the result.
pub(crate) fn convert_repository(source: &Path) -> (tempfile::TempDir, PathBuf, ConversionSummary) {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("git");
    GitDirectory::create(&directory).unwrap();
    let mut peer = LocalPeer::open(source).unwrap();
    let threads = NonZeroUsize::new(2).unwrap();
    let converted =
        convert_all(&directory, &mut peer, RefStyle::ALL, threads, &mut NoProgress).unwrap();
    (folder, directory, converted)
}

/// Returns what a git repository has, in the form of a vector.
fn read_repository(directory: &Path, nodes: &BTreeSet<String>) -> Vector {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository).unwrap();
    let mut vector = Vector::default();
    for line in git(directory, &["for-each-ref", "--format=%(refname) %(objectname)"]).lines() {
        let (name, commit) = line.split_once(' ').unwrap();
        if !name.starts_with("refs/larder/") {
            vector.refs.insert(name.into(), commit.into());
        }
    }
    vector.head = git(directory, &["symbolic-ref", "HEAD"]).trim().into();
    for node in nodes {
        let id = Node::from_hex(node.as_bytes()).unwrap();
        if let Some(commit) = metadata.commit_of(&mut repository, &id).unwrap() {
            assert_eq!(metadata.changeset_of(&mut repository, &commit).unwrap(), Some(id));
            vector.commits.insert(node.clone(), commit.to_string());
        }
    }
    vector
}

/// Returns the tags of a git repository with their commits.
fn read_tags(directory: &Path) -> BTreeMap<String, String> {
    let format = "--format=%(refname) %(objectname)";
    let lines = git(directory, &["for-each-ref", format, "refs/tags/"]);
    let tags = lines.lines().filter_map(|line| line.split_once(' '));
    tags.map(|(name, commit)| (name.to_string(), commit.to_string())).collect()
}

/// Returns the tags that `hg tags` lists, as refs with their commits. Those of changesets that a
/// server does not show have none.
fn expected_tags(source: &Path, directory: &Path) -> BTreeMap<String, String> {
    let mercurial = Mercurial { path: source.to_path_buf() };
    let mut tags: BTreeMap<Vec<u8>, Node> = BTreeMap::new();
    for line in mercurial.lines(&["tags", "-T", "{node} {type}:{tag}\n"]) {
        let (node, name) = line.split_once(' ').unwrap();
        // Local tags are in no history.
        let Some(name) = name.strip_prefix(':') else { continue };
        if name != "tip" {
            tags.insert(name.as_bytes().to_vec(), Node::from_hex(node.as_bytes()).unwrap());
        }
    }
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository).unwrap();
    let mut refs = BTreeMap::new();
    for (name, node) in tag_refs(&tags) {
        if let Some(commit) = metadata.commit_of(&mut repository, &node).unwrap() {
            refs.insert(String::from_utf8(name).unwrap(), commit.to_string());
        }
    }
    refs
}

/// Faults that git finds in a repository, and that have to stay: without them, commits would have
/// other ids than git-cinnabar's.
const ACCEPTED_FAULTS: [(&str, &str); 3] = [
    // The path `../up`, which git does not check out.
    ("dotdot", "hasDotdot"),
    // The paths `.git/config` and `sub/.GIT/x`, which git does not check out.
    ("dotgit", "hasDotgit"),
    // A description with a NUL, which is the message.
    ("raw", "nulInCommit"),
];

/// Has git check all objects as it does when they are fetched or pushed with checks
/// (`transfer.fsckObjects`), in the repository and in the pack.
fn check_with_git(directory: &Path, name: &str) {
    let accepted = ACCEPTED_FAULTS.iter().find(|(repository, _)| *repository == name);
    let mut settings = Vec::new();
    let mut strict = "--strict".to_string();
    if let Some((_, fault)) = accepted {
        settings = vec!["-c".to_string(), format!("fsck.{fault}=ignore")];
        strict = format!("{strict}={fault}=ignore");
    }
    let settings = settings.iter().map(String::as_str);
    let args: Vec<&str> = settings.chain(["fsck", "--full", "--strict", "--no-progress"]).collect();
    git(directory, &args);
    let index = directory.join("checked.idx");
    for entry in std::fs::read_dir(directory.join("objects/pack")).unwrap() {
        let pack = entry.unwrap().path();
        if pack.extension().is_some_and(|extension| extension == "pack") {
            let (index, pack) = (index.to_string_lossy(), pack.to_string_lossy());
            git(directory, &["index-pack", &strict, "-o", &index, &pack]);
        }
    }
}

/// Refs that git-cinnabar leaves out, because git does not take the names: their heads are here.
fn is_encoded_here(name: &str) -> bool {
    name.contains('%')
}

#[test]
fn edge_repositories_are_as_git_cinnabar_converts_them() {
    if !has_mercurial("edge_repositories_are_as_git_cinnabar_converts_them") {
        return;
    }
    let mut compared = 0;
    for source in each_edge_repository() {
        let name = source.file_name().unwrap().to_string_lossy().into_owned();
        let (_folder, directory, converted) = convert_repository(&source);
        assert_eq!(converted.changesets, changesets_in_order(&source).len(), "{name}");
        check_with_git(&directory, &name);
        assert_eq!(faults(&directory, true), Vec::<String>::new(), "{name}");
        assert_eq!(read_tags(&directory), expected_tags(&source, &directory), "{name}");
        let Some(expected) = read_vector(&name) else { continue };
        let nodes = expected.commits.keys().cloned().collect();
        let mut found = read_repository(&directory, &nodes);
        found.refs.retain(|name, _| expected.refs.contains_key(name) || !is_encoded_here(name));
        // One tag that git does not take makes git-cinnabar fetch none.
        if !expected.refs.keys().any(|name| name.starts_with("refs/tags/")) {
            found.refs.retain(|name, _| !name.starts_with("refs/tags/"));
        }
        // A branch without a name: git-cinnabar does not fetch it.
        if name == "nluser" {
            found.refs.retain(|name, _| expected.refs.contains_key(name));
        }
        assert_eq!(found, expected, "{name}");
        compared += 1;
    }
    assert!(compared >= 12, "{compared} vectors");
}

/// Fetching head after head gives what one conversion gives, twins aside, whose ids depend on the
/// order: the texts of manifests and files are then made from what was stored.
#[test]
fn fetches_give_what_one_conversion_gives() {
    if !has_mercurial("fetches_give_what_one_conversion_gives") {
        return;
    }
    for source in each_edge_repository() {
        let name = source.file_name().unwrap().to_string_lossy().into_owned();
        if name == "raw" {
            continue;
        }
        let (_folder, at_once, _) = convert_repository(&source);
        let mut peer = LocalPeer::open(&source).unwrap();
        let nodes = changesets_in_order(&source);
        let folder = tempfile::tempdir().unwrap();
        GitDirectory::create(folder.path()).unwrap();
        let threads = NonZeroUsize::MIN;
        for node in &nodes {
            let node = Node::from_hex(node.as_bytes()).unwrap();
            fetch(&GitDirectory::new(folder.path()), &mut peer, &[node], threads, &mut NoProgress)
                .unwrap();
        }
        let nodes: BTreeSet<String> = nodes.into_iter().collect();
        let commits = read_repository(folder.path(), &nodes).commits;
        check_texts(folder.path(), &nodes);
        assert_eq!(faults(folder.path(), true), Vec::<String>::new(), "{name}");
        assert_eq!(commits, read_repository(&at_once, &nodes).commits, "{name}");
        assert_eq!(commits.len(), nodes.len(), "{name}");
        let Some(newest) = commits.values().next() else { continue };
        let segments = git(folder.path(), &["ls-tree", "refs/larder/hg/metadata:segments"]);
        assert!(segments.lines().count() <= 8, "{segments}");
        git(folder.path(), &["update-ref", "refs/heads/one", newest]);
        check_with_git(folder.path(), &name);
    }
}

/// Branches that are gone, and `git gc`: the metadata keeps all that the next fetch builds on.
#[test]
fn later_fetches_work_after_a_garbage_collection() {
    if !has_mercurial("later_fetches_work_after_a_garbage_collection") {
        return;
    }
    let source = each_edge_repository().into_iter().find(|path| path.ends_with("cli")).unwrap();
    let mut peer = LocalPeer::open(&source).unwrap();
    let nodes = changesets_in_order(&source);
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let threads = NonZeroUsize::MIN;
    for part in nodes.chunks(12) {
        let wanted: Vec<Node> =
            part.iter().map(|node| Node::from_hex(node.as_bytes()).unwrap()).collect();
        fetch(&GitDirectory::new(folder.path()), &mut peer, &wanted, threads, &mut NoProgress)
            .unwrap();
        let refs = git(folder.path(), &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs.trim(), larder_hg::METADATA_REF);
        git(folder.path(), &["gc", "-q", "--prune=now"]);
    }
    let (_folder, at_once, _) = convert_repository(&source);
    let nodes: BTreeSet<String> = nodes.into_iter().collect();
    let commits = read_repository(folder.path(), &nodes).commits;
    assert_eq!(commits, read_repository(&at_once, &nodes).commits);
    for commit in commits.values() {
        git(folder.path(), &["cat-file", "-e", commit]);
    }
    check_with_git(folder.path(), "cli");
}

/// Checks that the metadata has the text of each changeset, by its first line: the manifest.
fn check_texts(directory: &Path, nodes: &BTreeSet<String>) {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository).unwrap();
    let mut texts = BTreeSet::new();
    for node in nodes {
        let id = Node::from_hex(node.as_bytes()).unwrap();
        let text = metadata.changeset_text(&mut repository, &id).unwrap().unwrap();
        assert!(Node::from_hex(text.get(..40).unwrap()).is_some(), "{node}");
        texts.insert(text);
    }
    assert_eq!(texts.len(), nodes.len());
}

/// Returns the changesets that a server would show, in the order of their numbers.
pub(crate) fn changesets_in_order(source: &Path) -> Vec<String> {
    let mut peer = LocalPeer::open(source).unwrap();
    let heads = peer.refs().unwrap().heads;
    let mut changes = peer.changes(&heads, &[]).unwrap();
    let mut revision = larder_hg::Revision::empty();
    let mut nodes = Vec::new();
    while changes.next_revision(&mut revision).unwrap() {
        nodes.push(revision.node.to_string());
    }
    nodes
}

/// The reports of the edge repositories have all that is unusual in them.
#[test]
fn the_oddities_of_a_history_are_reported() {
    if !has_mercurial("the_oddities_of_a_history_are_reported") {
        return;
    }
    let check = |name: &str, expected: &[(&str, u64)]| {
        let source = each_edge_repository().into_iter().find(|path| path.ends_with(name)).unwrap();
        let (_folder, _, converted) = convert_repository(&source);
        let kinds = converted.oddities.kinds();
        let found: Vec<_> = kinds.map(|(oddity, kind)| (oddity.name(), kind.count)).collect();
        assert_eq!(found, expected, "{name}");
        for (oddity, kind) in converted.oddities.kinds() {
            let has_examples = oddity.name() != "hidden-changeset";
            assert_eq!(kind.examples.len() as u64, kind.count.min(5) * u64::from(has_examples));
        }
    };
    check("negdate", &[("early-time", 1)]);
    check("floatdate", &[("cut-time", 1)]);
    check("floattz", &[("cut-time", 1)]);
    check("emptyuser", &[("empty-user", 1)]);
    check("dblslash", &[("empty-path-name", 1)]);
    check("dotgit", &[("refused-path", 2)]);
    check("dotdot", &[("refused-path", 1)]);
    check("raw", &[("padded-twin", 3), ("extra-field", 3)]);
    check("ref-df", &[("encoded-ref", 1)]);
    let of_cli = [
        ("cut-time", 3),
        ("cut-user", 3),
        ("extra-field", 1),
        ("case-clash", 2),
        ("encoded-ref", 1),
        ("encoded-tag", 3),
        ("hidden-changeset", 2),
    ];
    check("cli", &of_cli);
}

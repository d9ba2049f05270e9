//! Manifests that git cannot have as they are: paths that are a file and a folder, and paths with
//! an empty name (`golden/path-clashes.txt`).

use crate::checks::faults;
use crate::golden_vectors::git;
use crate::made_changes::{MadeChanges, MadeCommit, hex, hunk};
use larder_hg::{GitDirectory, Metadata, Node};
use std::collections::BTreeMap;
use std::path::Path;

/// A changeset of a history.
struct PathStep {
    /// Whether the delta of its manifest has all lines.
    is_full: bool,
    tree: String,
    /// The numbers that the texts of files are, and their flags, by path.
    files: BTreeMap<String, (String, String)>,
}

/// Reads the histories.
fn read_histories() -> Vec<Vec<PathStep>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/path-clashes.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let mut histories: Vec<Vec<PathStep>> = Vec::new();
    let mut case = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let start = words.next().unwrap();
        if start == "case" {
            case = words.next().unwrap();
            histories.push(Vec::new());
        }
        assert!(["cinnabar", "larder"].contains(&words.next().unwrap()), "{line}");
        let tree = words.next().unwrap().to_string();
        let mut files = BTreeMap::from([("zz".to_string(), (case.to_string(), String::new()))]);
        for word in words {
            let (path, file) = word.rsplit_once('=').unwrap();
            let digits = file.trim_end_matches(['x', 'l']);
            let flag = file.strip_prefix(digits).unwrap();
            files.insert(path.to_string(), (digits.to_string(), flag.to_string()));
        }
        let step = PathStep { is_full: start != "next", tree, files };
        histories.last_mut().unwrap().push(step);
    }
    histories
}

/// Returns the text of a manifest, and its lines by path. Adds the files that are new.
fn manifest_of(
    step: &PathStep,
    nodes: &mut BTreeMap<String, Node>,
    changes: &mut MadeChanges,
) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for (path, (content, flag)) in &step.files {
        let node = *nodes
            .entry(content.clone())
            .or_insert_with(|| changes.file(path.as_bytes(), format!("{content}\n").as_bytes()));
        lines.insert(path.clone(), format!("{path}\0{}{flag}\n", hex(node)));
    }
    lines
}

/// Returns the delta of each line that differs.
fn delta_of(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<u8> {
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let (mut delta, mut position) = (Vec::new(), 0);
    for path in paths {
        let (before, after) = (old.get(path), new.get(path));
        let end = position + before.map_or(0, String::len);
        if before != after {
            let line = after.map_or("", String::as_str);
            delta.extend(hunk(position, end, line.as_bytes()));
        }
        position = end;
    }
    delta
}

/// The histories as changes: a part for each number of a changeset in its history, and the trees
/// that changesets have.
fn made_histories() -> (Vec<MadeChanges>, Vec<(Node, String)>) {
    let (mut parts, mut trees) = (vec![MadeChanges::default(); 4], Vec::new());
    let mut nodes = BTreeMap::new();
    for (case, history) in read_histories().iter().enumerate() {
        let (mut parent, mut old) = (MadeCommit::NONE, BTreeMap::new());
        for (number, step) in history.iter().enumerate() {
            let lines = manifest_of(step, &mut nodes, &mut parts[0]);
            let text: String = lines.values().map(String::as_str).collect();
            let part = &mut parts[number];
            parent = if step.is_full {
                part.commit_full_on(parent, text.as_bytes(), &format!("{case}.{number}"))
            } else {
                let delta = delta_of(&old, &lines);
                part.commit_on(parent, text.as_bytes(), delta, &format!("{case}.{number}"))
            };
            trees.push((parent.changeset, step.tree.clone()));
            old = lines;
        }
    }
    (parts, trees)
}

/// Compares the trees of commits, and checks all that was converted.
fn check_trees(directory: &Path, expected: &[(Node, String)]) {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository).unwrap();
    let mut names = vec!["rev-parse".to_string()];
    for (node, _) in expected {
        let commit = metadata.commit_of(&mut repository, node).unwrap().unwrap();
        names.push(format!("{commit}^{{tree}}"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = git(directory, &names);
    for (found, (node, tree)) in found.lines().zip(expected) {
        assert_eq!(found.get(..10), Some(tree.as_str()), "changeset {node}");
    }
    git(directory, &["fsck", "--full", "--strict"]);
    assert_eq!(faults(directory, true), Vec::<String>::new());
}

/// Trees of git-cinnabar, and others where it has none that git takes, from one conversion and from
/// several that follow each other.
#[test]
fn clashing_paths_are_as_git_cinnabar_converts_them() {
    let (parts, trees) = made_histories();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("at-once.git");
    GitDirectory::create(&directory).unwrap();
    let all = parts.iter().cloned().reduce(MadeChanges::merge).unwrap();
    let converted = all.convert_into(&directory).unwrap();
    check_trees(&directory, &trees);
    let lost = converted.oddities.kinds().find(|(kind, _)| kind.name() == "lost-path");
    assert!(lost.is_some_and(|(_, lost)| lost.count > 50), "{:?}", converted.oddities);

    let directory = folder.path().join("parts.git");
    GitDirectory::create(&directory).unwrap();
    for part in parts {
        part.convert_into(&directory).unwrap();
    }
    check_trees(&directory, &trees);
}

/// Each path that is in a manifest and not in its tree is named.
#[test]
fn lost_paths_are_reported() {
    let check = |manifests: &[&[(&str, &str)]], expected: &[&str]| {
        let mut changes = MadeChanges::default();
        let (mut parent, mut old) = (MadeCommit::NONE, BTreeMap::new());
        for files in manifests {
            let files = files
                .iter()
                .map(|(path, text)| (path.to_string(), (text.to_string(), String::new())));
            let step = PathStep { is_full: false, tree: String::new(), files: files.collect() };
            let lines = manifest_of(&step, &mut BTreeMap::new(), &mut changes);
            let text: String = lines.values().map(String::as_str).collect();
            let delta = delta_of(&old, &lines);
            parent = changes.commit_on(parent, text.as_bytes(), delta, "files");
            old = lines;
        }
        let (converted, _) = changes.convert_with_tree().unwrap();
        let lost = converted.oddities.kinds().find(|(kind, _)| kind.name() == "lost-path");
        let examples = lost.map(|(_, lost)| lost.examples.clone()).unwrap_or_default();
        assert_eq!(examples, expected, "{manifests:?}");
    };
    // A file and a folder: the folder is there.
    check(&[&[("a", "1"), ("a/b", "2")]], &["a"]);
    check(&[&[("a/b", "2")], &[("a/b", "2"), ("a", "1")]], &["a/b"]);
    check(&[&[("a", "1")], &[("a", "1"), ("a/b", "2")]], &["a"]);
    check(
        &[&[("a", "1"), ("a/b", "2"), ("a/c", "3")], &[("a/b", "2"), ("a/c", "3")]],
        &["a", "a/b", "a/c"],
    );
    // A file becomes a folder, and the other way round.
    check(&[&[("a", "1")], &[("a/b", "1")], &[("a", "2")], &[("a/b/c", "1")]], &[]);
    // Below an empty name: an equal file is there, others are not.
    check(&[&[("d/a", "1"), ("d//a", "1")]], &[]);
    check(&[&[("d/a", "1"), ("d//a", "2")]], &["d//a"]);
    check(&[&[("d/a", "1"), ("d//a/b", "2"), ("d//a/c/e", "2")]], &["d//a/b", "d//a/c/e"]);
    check(&[&[("d/a/b", "1"), ("d//a", "2")]], &["d//a"]);
    check(&[&[("a//b/c//d", "1"), ("a///e", "2"), ("x/", "3")]], &["a///e", "a//b/c//d", "x/"]);
}

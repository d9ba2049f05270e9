//! Changes made in memory, revision by revision: for faults that no program writes.

use crate::checks::faults;
use crate::golden_vectors::{NoProgress, git};
use larder_hg::{
    ChangeError, ChangeSource, ConversionOptions, ConversionSummary, GitDirectory, METADATA_REF,
    Node, Revision, convert,
};
use sha1::{Digest as _, Sha1};
use std::num::NonZeroUsize;
use std::path::Path;
use std::vec::IntoIter;

/// A history: the groups of a changegroup.
#[derive(Clone, Default)]
pub(crate) struct MadeChanges {
    changesets: Vec<Revision>,
    manifests: Vec<Revision>,
    files: Vec<(Vec<u8>, Vec<Revision>)>,
}

/// A changeset with its manifest.
#[derive(Clone, Copy)]
pub(crate) struct MadeCommit {
    pub(crate) changeset: Node,
    manifest: Node,
}

impl MadeCommit {
    /// The parent of the first changeset.
    pub(crate) const NONE: MadeCommit = MadeCommit { changeset: Node::NULL, manifest: Node::NULL };
}

/// Replaces bytes of the base.
pub(crate) fn hunk(start: usize, end: usize, data: &[u8]) -> Vec<u8> {
    let numbers = [start, end, data.len()].map(|number| (number as u32).to_be_bytes());
    [&numbers.concat(), data].concat()
}

/// A revision with a text, as a delta of its parent.
fn revision(parent: Node, text: &[u8], delta: Vec<u8>) -> Revision {
    let node = Sha1::new().chain_update(Node::NULL.0).chain_update(parent.0).chain_update(text);
    let node = Node(node.finalize().into());
    Revision { node, p1: parent, base: parent, delta, ..Revision::empty() }
}

fn last_node(revisions: &[Revision]) -> Node {
    revisions.last().map_or(Node::NULL, |revision| revision.node)
}

pub(crate) fn hex(node: Node) -> String {
    node.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl MadeChanges {
    /// Adds a changeset with a manifest, whose delta is given.
    fn commit(&mut self, manifest: &[u8], delta: Vec<u8>, description: &str) {
        let parent = MadeCommit {
            changeset: last_node(&self.changesets),
            manifest: last_node(&self.manifests),
        };
        self.commit_on(parent, manifest, delta, description);
    }

    /// Adds a changeset to a parent, and returns it.
    pub(crate) fn commit_on(
        &mut self,
        parent: MadeCommit,
        manifest: &[u8],
        delta: Vec<u8>,
        description: &str,
    ) -> MadeCommit {
        let manifest = revision(parent.manifest, manifest, delta);
        let text = format!("{}\nA <a@b>\n0 0\n\n{description}", hex(manifest.node));
        let mut changeset = revision(parent.changeset, text.as_bytes(), Vec::new());
        changeset.base = Node::NULL;
        changeset.delta = hunk(0, 0, text.as_bytes());
        let made = MadeCommit { changeset: changeset.node, manifest: manifest.node };
        self.manifests.push(manifest);
        self.changesets.push(changeset);
        made
    }

    /// Adds a changeset to a parent, whose manifest is a delta of no other one.
    pub(crate) fn commit_full_on(
        &mut self,
        parent: MadeCommit,
        manifest: &[u8],
        description: &str,
    ) -> MadeCommit {
        let made = self.commit_on(parent, manifest, hunk(0, 0, manifest), description);
        if let Some(manifest) = self.manifests.last_mut() {
            manifest.base = Node::NULL;
        }
        made
    }

    /// Appends other changes.
    pub(crate) fn merge(mut self, other: MadeChanges) -> MadeChanges {
        self.changesets.extend(other.changesets);
        self.manifests.extend(other.manifests);
        self.files.extend(other.files);
        self
    }

    /// Adds a file with one revision.
    pub(crate) fn file(&mut self, path: &[u8], text: &[u8]) -> Node {
        let revision = revision(Node::NULL, text, hunk(0, 0, text));
        let node = revision.node;
        self.files.push((path.to_vec(), vec![revision]));
        node
    }

    /// Converts the changes into a new repository.
    fn convert(self) -> Result<ConversionSummary, String> {
        self.convert_with_tree().map(|(converted, _)| converted)
    }

    /// Converts the changes into a repository.
    pub(crate) fn convert_into(self, directory: &Path) -> Result<ConversionSummary, String> {
        let options = ConversionOptions::from(NonZeroUsize::MIN);
        let mut source = MadeSource {
            group: self.changesets.into_iter(),
            manifests: Some(self.manifests.into_iter()),
            files: self.files.into_iter(),
        };
        let converted =
            convert(&GitDirectory::new(directory), &mut source, options, &mut NoProgress);
        converted.map_err(|error| error.to_string())
    }

    /// Converts the changes, and returns the tree of the newest one, too.
    pub(crate) fn convert_with_tree(self) -> Result<(ConversionSummary, String), String> {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("converted.git");
        GitDirectory::create(&directory).unwrap();
        let converted = self.convert_into(&directory)?;
        git(&directory, &["fsck", "--strict"]);
        let tree = git(&directory, &["rev-parse", &format!("{METADATA_REF}^1^1^{{tree}}")]);
        Ok((converted, tree.trim().to_string()))
    }
}

struct MadeSource {
    group: IntoIter<Revision>,
    manifests: Option<IntoIter<Revision>>,
    files: IntoIter<(Vec<u8>, Vec<Revision>)>,
}

impl ChangeSource for MadeSource {
    fn next_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError> {
        if let Some(next) = self.group.next() {
            *revision = next;
            return Ok(true);
        }
        self.group = self.manifests.take().unwrap_or_default();
        Ok(false)
    }

    fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        let Some((path, revisions)) = self.files.next() else { return Ok(None) };
        self.group = revisions.into_iter();
        Ok(Some(path))
    }
}

fn line(path: &str, file: Node, flag: &str) -> String {
    format!("{path}\0{}{flag}\n", hex(file))
}

/// A changeset with one file.
fn one_changeset() -> MadeChanges {
    let mut changes = MadeChanges::default();
    let file = changes.file(b"a", b"walrus\n");
    let manifest = line("a", file, "");
    changes.commit(manifest.as_bytes(), hunk(0, 0, manifest.as_bytes()), "one");
    changes
}

/// What comes twice is converted once.
#[test]
fn repeated_changesets_are_one_changeset() {
    let mut changes = one_changeset();
    changes.changesets.extend(changes.changesets.clone());
    changes.manifests.extend(changes.manifests.clone());
    changes.files.extend(changes.files.clone());
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    assert_eq!(changes.clone().convert_into(folder.path()).unwrap().changesets, 1);
    assert_eq!(changes.convert_into(folder.path()).unwrap().changesets, 0);
    assert_eq!(faults(folder.path(), true), Vec::<String>::new());
}

/// A bit of the flags is not enough to have a forged text taken.
#[test]
fn flags_do_not_switch_checks_off() {
    one_changeset().convert().unwrap();
    for bit in 0..16 {
        let mut forged = one_changeset();
        let changeset = &mut forged.changesets[0];
        *changeset.delta.last_mut().unwrap() ^= 1;
        changeset.flags = 1 << bit;
        let error = forged.convert().unwrap_err();
        let is_hash = error.ends_with("its text does not have its hash");
        assert!(if bit == 12 { is_hash } else { error.contains("not supported: ") }, "{error}");

        let mut flagged = one_changeset();
        flagged.manifests[0].flags = 1 << bit;
        let refused = flagged.convert();
        assert_eq!(refused.is_err(), bit != 12, "{refused:?}");

        let mut flagged = one_changeset();
        *flagged.files[0].1[0].delta.last_mut().unwrap() ^= 1;
        flagged.files[0].1[0].flags = 1 << bit;
        // Censored texts and pointers have other texts than their hashes are of.
        let refused = flagged.convert();
        assert_eq!(refused.is_err(), ![13, 15].contains(&bit), "{refused:?}");
    }
}

/// Changes of one file after the other in a folder of many, so that not each manifest is hashed;
/// `flag` is that of file 100 for two manifests, in the delta only.
fn long_history(flag: &str) -> MadeChanges {
    let mut changes = MadeChanges::default();
    let old = changes.file(b"old", b"old\n");
    let new = changes.file(b"new", b"new\n");
    let newest = changes.file(b"newest", b"newest\n");
    let path = |number: usize| format!("folder/{number:05}");
    let mut lines: Vec<String> = (0..3000).map(|number| line(&path(number), old, "")).collect();
    let text = lines.concat();
    changes.commit(text.as_bytes(), hunk(0, 0, text.as_bytes()), "first");
    let mut change = |number: usize, [in_text, in_delta]: [String; 2]| {
        let start = lines.iter().take(number).map(String::len).sum::<usize>();
        let end = start + lines[number].len();
        lines[number] = in_text;
        let delta = hunk(start, end, in_delta.as_bytes());
        changes.commit(lines.concat().as_bytes(), delta, &format!("change {number}"));
    };
    for number in 0..300 {
        let flags = if number == 100 { ["x", flag] } else { [""; 2] };
        change(number, flags.map(|flag| line(&path(number), new, flag)));
        if number == 102 {
            change(100, [""; 2].map(|flag| line(&path(100), newest, flag)));
        }
    }
    changes
}

/// A line that is wrong, and that the second manifest after it replaces: no text that comes later
/// has the mistake, but the commits would have.
#[test]
fn a_damaged_line_that_is_replaced_is_found() {
    long_history("x").convert().unwrap();
    let error = long_history("l").convert().unwrap_err();
    assert!(error.ends_with("its text does not have its hash"), "{error}");
}

/// Parents of a manifest are in its hash only, and most of these are not hashed.
#[test]
fn a_damaged_parent_of_a_manifest_is_found() {
    for number in [1, 120, 299] {
        let mut damaged = long_history("x");
        damaged.manifests[number].p1.0[19] ^= 1;
        let node = damaged.manifests[number].node;
        let error = damaged.convert().unwrap_err();
        let expected = format!("manifest {}: its text does not have its hash", hex(node));
        assert!(error.ends_with(&expected), "{number}: {error}");
    }
}

/// Hashes are made while later manifests are read; what is wrong first is reported, each time.
#[test]
fn the_first_damage_of_manifests_is_reported() {
    for _ in 0..4 {
        let mut damaged = long_history("x");
        damaged.manifests[1].p1.0[19] ^= 1;
        damaged.manifests[2].delta.pop();
        let node = damaged.manifests[1].node;
        let error = damaged.convert().unwrap_err();
        let expected = format!("manifest {}: its text does not have its hash", hex(node));
        assert!(error.ends_with(&expected), "{error}");
    }
}

/// Servers send a file revision again with each changeset that needs it.
#[test]
fn a_copy_that_several_segments_have_is_merged_into_one() {
    let copies = |is_repeated: bool| {
        let folder = tempfile::tempdir().unwrap();
        GitDirectory::create(folder.path()).unwrap();
        let mut parent = MadeCommit::NONE;
        for number in 0..9 {
            let mut changes = MadeChanges::default();
            let text = format!("\x01\ncopy: a\ncopyrev: {}\n\x01\nwalrus\n", "1".repeat(40));
            let file = changes.file(b"b", text.as_bytes());
            if number > 0 && !is_repeated {
                changes.files.clear();
            }
            let manifest = line("b", file, "");
            parent = changes.commit_full_on(parent, manifest.as_bytes(), &number.to_string());
            changes.convert_into(folder.path()).unwrap();
        }
        let tree = format!("{METADATA_REF}:segments");
        let segments = git(folder.path(), &["ls-tree", "--name-only", &tree]);
        assert_eq!(segments.lines().count(), 2, "{segments}");
        let merged = format!("{tree}/{}/copies", segments.lines().next().unwrap());
        git(folder.path(), &["rev-parse", &merged])
    };
    assert_eq!(copies(true), copies(false));
}

/// A changeset with a file at each path, which has the path's number.
fn changeset_of_paths(paths: &[&str]) -> MadeChanges {
    let mut changes = MadeChanges::default();
    let mut lines: Vec<String> = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let file = changes.file(path.as_bytes(), format!("{number}\n").as_bytes());
        lines.push(line(path, file, ""));
    }
    lines.sort();
    let manifest = lines.concat();
    changes.commit(manifest.as_bytes(), hunk(0, 0, manifest.as_bytes()), "paths");
    changes
}

/// git reads trees that are 2,048 folders deep; a deeper path is refused before it is a tree.
#[test]
fn paths_that_are_too_deep_are_refused() {
    let path = |depth: usize| format!("{}f", "a/".repeat(depth));
    // Trees are made by recursion, and threads of tests have a quarter of a program's stack.
    let thread = std::thread::Builder::new().stack_size(8 << 20);
    let deepest = [path(2048), format!("x//{}/f", "a/".repeat(2045))];
    let deepest = changeset_of_paths(&deepest.each_ref().map(String::as_str));
    thread.spawn(|| deepest.convert().unwrap()).unwrap().join().unwrap();
    for depth in [2049, 30_000] {
        let error = changeset_of_paths(&[&path(depth)]).convert().unwrap_err();
        let expected = format!("more than 2048 folders deep: {}...", "a/".repeat(30));
        assert!(error.ends_with(&expected), "{error}");
    }
}

/// Trees of git-cinnabar 0.7.5: of two empty names in a row, it leaves out what is below.
#[test]
fn empty_names_in_a_row_are_as_git_cinnabar_converts_them() {
    for (paths, expected) in [
        (&["//x"][..], "4b825dc642"),
        (&["//x", "q"], "303a9500c6"),
        (&["a///b"], "0a8a87dd80"),
        (&["/a", "//b"], "8f55e1d248"),
        (&["a//b", "a///c", "a////d"], "ef771cf9fb"),
        (&["a//b", "a///c", "q"], "f8304833de"),
    ] {
        let (_, tree) = changeset_of_paths(paths).convert_with_tree().unwrap();
        assert_eq!(tree.get(..10), Some(expected), "{paths:?}");
    }
}

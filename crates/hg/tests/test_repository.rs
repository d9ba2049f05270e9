//! A repository made by Mercurial, and the check of what sources deliver from it.

use crate::command_server::SharedServer;
pub(crate) use crate::mercurial::has_mercurial;
use larder_hg::{ChangeError, ChangeSource, Node, Revision, apply_delta};
use sha1::{Digest as _, Sha1};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A repository in a temporary directory.
pub(crate) struct TestRepository {
    directory: tempfile::TempDir,
}

impl TestRepository {
    /// Creates a repository with branches, a merge, a bookmark, a copied file and flags.
    pub(crate) fn new() -> TestRepository {
        let directory = tempfile::tempdir().unwrap();
        let repository = TestRepository { directory };
        repository.hg(&["init", "."]);
        let configuration = "[experimental]\nchangegroup3 = yes\n";
        std::fs::write(repository.path().join(".hg/hgrc"), configuration).unwrap();
        let mut text: String = (0..200).map(|line| format!("line {line}\n")).collect();
        repository.commit("a.txt", &text, "first");
        repository.commit("dir/ü b.txt", &text, "second");
        repository.hg(&["cp", "a.txt", "copy.txt"]);
        text.push_str("more\n");
        repository.commit("a.txt", &text, "third");
        repository.hg(&["branch", "-q", "other/ü ~x"]);
        repository.commit("c.txt", "c", "on another branch");
        repository.hg(&["update", "-q", "1"]);
        repository.commit("a.txt", "short", "second head");
        repository.hg(&["update", "-q", "2"]);
        repository.hg(&["merge", "-q", "other/ü ~x"]);
        repository.commit("d.txt", "d", "merge");
        repository.hg(&["bookmark", "-r", "1", "book mark"]);
        repository
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn commit(&self, path: &str, text: &str, message: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self.hg(&["commit", "-q", "-A", "-m", message, "-u", "user <a@b>", "-d", "1000000000 0"]);
    }

    /// Runs hg in the repository, and returns what it writes.
    pub(crate) fn hg(&self, arguments: &[&str]) -> Vec<u8> {
        static SERVER: SharedServer = SharedServer::new();
        let folder = [OsStr::new("--cwd"), self.path().as_os_str()];
        let all = folder.into_iter().chain(arguments.iter().map(OsStr::new));
        let output = SERVER.run(|| self.command(&[]), &all.collect::<Vec<_>>());
        let Output { status, stdout, stderr } = output;
        assert!(status.success(), "hg {arguments:?}: {}", String::from_utf8_lossy(&stderr));
        stdout
    }

    /// A command that is not influenced by the configuration of the user.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("hg");
        command.args(arguments).current_dir(self.path());
        command.env("HGRCPATH", "").env("HGPLAIN", "1").env("HGENCODING", "UTF-8");
        command
    }

    /// Writes a bundle of everything, and returns its path.
    pub(crate) fn bundle(&self, specification: &str) -> PathBuf {
        let name = specification.replace([';', '='], "_") + ".hg";
        self.hg(&["bundle", "-q", "-a", "-t", specification, &name]);
        self.path().join(name)
    }

    /// Returns nodes that a template makes of a set of revisions.
    pub(crate) fn nodes(&self, revisions: &str) -> Vec<Node> {
        let text = self.hg(&["log", "-r", revisions, "-T", "{node}\n"]);
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| Node::from_hex(line).unwrap()).collect()
    }
}

/// The nodes that a source delivers: those of the changelog, the manifest and of each file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceNodes {
    pub(crate) changesets: Vec<Node>,
    pub(crate) manifests: Vec<Node>,
    pub(crate) files: BTreeMap<Vec<u8>, Vec<Node>>,
}

/// Reads all changes; the text of each revision must have the digest that its node is.
pub(crate) fn read_all(source: &mut dyn ChangeSource) -> Result<SourceNodes, ChangeError> {
    let changesets = read_group(source)?;
    let manifests = read_group(source)?;
    let mut files = BTreeMap::new();
    while let Some(path) = source.next_file()? {
        assert_eq!(files.insert(path, read_group(source)?), None, "a path comes twice");
    }
    Ok(SourceNodes { changesets, manifests, files })
}

fn read_group(source: &mut dyn ChangeSource) -> Result<Vec<Node>, ChangeError> {
    let mut texts: HashMap<Node, Vec<u8>> = HashMap::from([(Node::NULL, Vec::new())]);
    let mut nodes = Vec::new();
    let mut revision = Revision::empty();
    while source.next_revision(&mut revision)? {
        let mut text = Vec::new();
        apply_delta(&texts[&revision.base], &revision.delta, &mut text).unwrap();
        let (first, second) = (revision.p1.min(revision.p2), revision.p1.max(revision.p2));
        let digest = Sha1::new().chain_update(first.0).chain_update(second.0).chain_update(&text);
        assert_eq!(Node(digest.finalize().into()), revision.node);
        nodes.push(revision.node);
        texts.insert(revision.node, text);
    }
    Ok(nodes)
}

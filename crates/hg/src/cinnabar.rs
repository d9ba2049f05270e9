//! Taking over the metadata of git-cinnabar 0.5 to 0.7, whose format is called
//! `files-meta unified-manifests-v2`.
//!
//! Its ref names a commit whose parents lead to five parts, and to the state before:
//!
//! | parent | content |
//! |---|---|
//! | changesets | in the message a line for each head of a branch; its parents are their commits |
//! | manifests | its ancestors are manifests: the message is the node, the trees have file nodes |
//! | hg2git | by nodes of changesets, manifests and files: commits, commits and blobs |
//! | git2hg | by commits: what is in a changeset, but not in its commit ([`changeset_note`]) |
//! | files-meta | by file nodes: the metadata between the marks |
//!
//! The last three are trees as `git notes` makes them. Everything is read once, and written as
//! metadata of ours; commits and blobs stay as they are. The text of each changeset must have its
//! hash. That of manifests and files is checked by [`crate::check_conversion`].

mod changeset_note;
mod manifest_walk;

use crate::changeset::Changeset;
use crate::conversion::{Phase, Progress};
use crate::file_conversion::METADATA_MARK;
use crate::git::deflate::Deflater;
use crate::git::object::EMPTY_TREE;
use crate::git::object_stream::StreamContent;
use crate::git::pack_writer::{FinishedPack, PackWriter};
use crate::git::repository::{GitDirectory, GitDirectoryError, RefChange};
use crate::metadata::{
    FileRows, HeadChangeset, METADATA_REF, Metadata, MetadataError, MetadataWriter, NewHeads,
    UNKNOWN_PARENTS,
};
use crate::object_id::{GitId, IdMap, Node};
use changeset_note::{CommitFields, rebuild_text};
use manifest_walk::ManifestWalk;
use std::io;
use std::path::Path;

/// The ref of git-cinnabar's metadata.
pub const CINNABAR_REF: &str = "refs/cinnabar/metadata";
/// The name of the format, which is the message of the commit.
const FORMAT: &[u8] = b"files-meta unified-manifests-v2";

/// Why metadata of git-cinnabar cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum CinnabarError {
    /// The repository has metadata of ours.
    #[error(
        "the repository has metadata of larder already; to take over that of git-cinnabar in its \
         place, forget it first: larder hg clear"
    )]
    NotEmpty,
    /// The metadata has another format.
    #[error(
        "the metadata of git-cinnabar has the format {0:?}, and only that of versions 0.5 to 0.7 \
         can be read"
    )]
    Format(String),
    /// Histories of git were joined to that of Mercurial.
    #[error("the metadata of git-cinnabar has grafts, which are not supported")]
    Grafts,
    /// The metadata is not what git-cinnabar writes.
    #[error("the metadata of git-cinnabar is damaged: {0}")]
    Damaged(String),
    /// Some changesets cannot be made again from their commits.
    #[error("{count} changesets do not have their hashes, the first one is {first}")]
    Changesets {
        /// The number of these changesets.
        count: usize,
        /// The first one.
        first: Node,
    },
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitDirectoryError),
    /// The metadata of ours cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The pack cannot be written.
    #[error("writing a pack: {0}")]
    Pack(#[from] io::Error),
}

/// The numbers of what was taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CinnabarImport {
    /// The changesets.
    pub changesets: usize,
    /// The manifests.
    pub manifests: usize,
    /// The file revisions.
    pub file_revisions: usize,
    /// The objects of the new metadata.
    pub objects: usize,
    /// The bytes of their pack and its index.
    pub bytes: u64,
}

/// Writes metadata of ours from that of git-cinnabar, in a commit such as [`CINNABAR_REF`] names.
/// The repository has the history, too, and no metadata of ours. Metadata and refs of git-cinnabar
/// stay as they are.
pub fn import_cinnabar(
    directory: &Path,
    metadata_commit: GitId,
    progress: &mut dyn Progress,
) -> Result<CinnabarImport, CinnabarError> {
    let mut repository = GitDirectory::new(directory);
    let metadata = Metadata::open(&mut repository)?;
    if metadata.commit().is_some() {
        return Err(CinnabarError::NotEmpty);
    }
    let parts = MetadataParts::read(&mut repository, metadata_commit)?;
    let mut pack = PackWriter::create(&repository.pack_folder()?)?;
    let mut segment = MetadataWriter::new();
    let changesets =
        ImportedChangesets::read(&mut repository, &parts, &mut segment, &mut pack, progress)?;
    let manifests = ManifestWalk::read(&repository, parts.manifests, &changesets.trees)?;
    let manifest_count = manifests.write(&mut segment, &mut pack, progress)?;
    let (files, file_revisions) = read_files(&repository, parts.hg2git, |node| {
        changesets.numbers.contains_key(node) || manifests.has(node)
    })?;
    let mut copies = read_copies(&repository, parts.files_meta)?;
    let file_tables = files.write(&mut pack)?;
    let segment = segment.finish(&mut pack, &changesets.rows, file_tables, &mut copies)?;
    let heads = changesets.sort_heads(&parts.branch_heads);
    let commits: Vec<GitId> = heads.iter().filter_map(|head| changesets.commit(head)).collect();
    let heads = NewHeads { heads: &heads, commits: &commits, history: None };
    let new = metadata.write_commit(&mut pack, &mut Deflater::new(), &heads, segment)?;
    let finished = pack.finish()?;
    let FinishedPack { objects, bytes, .. } = finished;
    let name = METADATA_REF.as_bytes().to_vec();
    repository.change_refs(&[RefChange { name, new: Some(new), old: Some(GitId::NULL) }])?;
    drop(finished);
    Ok(CinnabarImport {
        changesets: changesets.rows.len(),
        manifests: manifest_count,
        file_revisions,
        objects,
        bytes,
    })
}

/// Returns what is before the message of a commit, line by line, and the message.
fn split_commit(content: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let end = memchr::memmem::find(content, b"\n\n")?;
    let lines = content.get(..end)?.split(|byte| *byte == b'\n').collect();
    Some((lines, content.get(end + 2..)?))
}

/// Returns the ids of the lines that begin with a word.
fn ids_of(lines: &[&[u8]], word: &[u8]) -> Vec<GitId> {
    lines.iter().filter_map(|line| GitId::from_hex(line.strip_prefix(word)?)).collect()
}

fn damage(what: impl Into<String>) -> CinnabarError {
    CinnabarError::Damaged(what.into())
}

/// The parts of the metadata.
struct MetadataParts {
    /// The heads of branches and their commits, in the order of their import.
    branch_heads: Vec<(Node, GitId)>,
    manifests: GitId,
    hg2git: GitId,
    git2hg: GitId,
    files_meta: GitId,
}

impl MetadataParts {
    fn read(repository: &mut GitDirectory, commit: GitId) -> Result<MetadataParts, CinnabarError> {
        let content = repository.read_content(&commit)?;
        let (lines, message) = split_commit(&content).ok_or_else(|| damage("no commit"))?;
        if message != FORMAT {
            return Err(CinnabarError::Format(String::from_utf8_lossy(message).into_owned()));
        }
        if ids_of(&lines, b"tree ") != [EMPTY_TREE] {
            return Err(CinnabarError::Grafts);
        }
        let parents = ids_of(&lines, b"parent ");
        let [changesets, manifests, hg2git, git2hg, files_meta, ..] = parents[..] else {
            return Err(damage(format!("{} parts", parents.len())));
        };
        let content = repository.read_content(&changesets)?;
        let (lines, message) = split_commit(&content).ok_or_else(|| damage("no changesets"))?;
        let nodes = message.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let nodes: Option<Vec<Node>> = nodes.map(|line| Node::from_hex(line.get(..40)?)).collect();
        let nodes = nodes.ok_or_else(|| damage("heads of branches"))?;
        let commits = ids_of(&lines, b"parent ");
        if nodes.len() != commits.len() {
            return Err(damage("the heads of branches do not have their commits"));
        }
        let branch_heads = nodes.into_iter().zip(commits).collect();
        Ok(MetadataParts { branch_heads, manifests, hg2git, git2hg, files_meta })
    }
}

/// The changesets, whose texts were written.
#[derive(Default)]
struct ImportedChangesets {
    rows: Vec<(Node, GitId)>,
    numbers: IdMap<Node, u32>,
    nodes: IdMap<GitId, Node>,
    /// The trees of manifests.
    trees: IdMap<Node, GitId>,
    heads: IdMap<Node, HeadChangeset>,
    failed: Vec<Node>,
}

impl ImportedChangesets {
    /// Reads commits and notes, and writes the texts of changesets, parents first.
    fn read(
        repository: &mut GitDirectory,
        parts: &MetadataParts,
        segment: &mut MetadataWriter,
        pack: &mut PackWriter,
        progress: &mut dyn Progress,
    ) -> Result<ImportedChangesets, CinnabarError> {
        let heads = parts.branch_heads.iter().map(|(_, commit)| *commit);
        let commits = ancestors(repository, heads)?;
        let mut notes: IdMap<GitId, GitId> = IdMap::default();
        repository.stream_notes::<CinnabarError>(parts.git2hg, |commit, note| {
            notes.insert(GitId(commit), note);
            Ok(())
        })?;
        if let Some(commit) = commits.iter().find(|commit| !notes.contains_key(commit)) {
            return Err(damage(format!("commit {commit} has no changeset")));
        }
        let objects = commits.iter().flat_map(|commit| [Some(*commit), notes.get(commit).copied()]);
        let mut changesets = ImportedChangesets::default();
        let mut commit: Option<Vec<u8>> = None;
        let objects = objects.flatten();
        repository.stream_objects::<CinnabarError>(objects, StreamContent::Contents, |object| {
            if object.kind.is_empty() {
                return Err(GitDirectoryError::Missing { id: object.id }.into());
            }
            let Some(content) = commit.take() else {
                commit = Some(object.content.to_vec());
                return Ok(());
            };
            let Some(id) = commits.get(changesets.rows.len()) else { return Ok(()) };
            let text = changesets.add(*id, &content, object.content)?;
            segment.add_text(pack, &text)?;
            let (done, total) = (changesets.rows.len() as u64, commits.len() as u64);
            progress.advance(Phase::Changesets, done, Some(total));
            Ok(())
        })?;
        match changesets.failed.first() {
            Some(first) => {
                Err(CinnabarError::Changesets { count: changesets.failed.len(), first: *first })
            }
            None => Ok(changesets),
        }
    }

    /// Adds a changeset, and returns its text.
    fn add(&mut self, id: GitId, content: &[u8], note: &[u8]) -> Result<Vec<u8>, CinnabarError> {
        let damaged = |what| damage(format!("commit {id}: {what}"));
        let (lines, message) = split_commit(content).ok_or_else(|| damaged("not a commit"))?;
        let parents: Option<Vec<Node>> =
            ids_of(&lines, b"parent ").iter().map(|id| self.nodes.get(id).copied()).collect();
        let parents = parents.ok_or_else(|| damaged("a parent is no changeset"))?;
        let tree = ids_of(&lines, b"tree ").first().copied();
        let tree = tree.ok_or_else(|| damaged("no tree"))?;
        let commit = CommitFields::new(&lines, message, &parents);
        let commit = commit.ok_or_else(|| damaged("its author or committer"))?;
        let rebuilt = rebuild_text(&commit, note).ok_or_else(|| damaged("its note"))?;
        if !rebuilt.has_hash {
            self.failed.push(rebuilt.node);
        }
        let changeset = Changeset::parse(&rebuilt.text).ok_or_else(|| damaged("its text"))?;
        if !changeset.manifest.is_null() {
            self.trees.entry(changeset.manifest).or_insert(tree);
        }
        let branch = changeset.branch().to_vec();
        let is_closed = changeset.closes_branch();
        let node = rebuilt.node;
        for parent in &parents {
            self.heads.remove(parent);
        }
        self.heads.insert(node, HeadChangeset { node, is_closed, branch });
        self.numbers.insert(node, self.rows.len() as u32);
        self.nodes.insert(id, node);
        self.rows.push((node, id));
        Ok(rebuilt.text)
    }

    fn commit(&self, head: &HeadChangeset) -> Option<GitId> {
        let number = self.numbers.get(&head.node)?;
        self.rows.get(*number as usize).map(|(_, commit)| *commit)
    }

    /// Returns the heads in the order in which git-cinnabar imported them.
    fn sort_heads(&self, branch_heads: &[(Node, GitId)]) -> Vec<HeadChangeset> {
        let heads = branch_heads.iter().filter_map(|(node, _)| self.heads.get(node));
        heads.cloned().collect()
    }
}

/// Returns commits and all their ancestors, parents first.
fn ancestors(
    repository: &GitDirectory,
    heads: impl Iterator<Item = GitId>,
) -> Result<Vec<GitId>, CinnabarError> {
    let input: Vec<u8> = heads.flat_map(|head| format!("{head}\n").into_bytes()).collect();
    if input.is_empty() {
        return Ok(Vec::new());
    }
    let args = ["--topo-order", "--reverse", "--stdin"];
    let output = repository.run("rev-list", args, &input)?;
    Ok(output.split(|byte| *byte == b'\n').filter_map(GitId::from_hex).collect())
}

/// Reads the blobs of file revisions: all that is not of a changeset or manifest. Their parents are
/// not known. Returns their number, too.
fn read_files(
    repository: &GitDirectory,
    hg2git: GitId,
    is_other: impl Fn(&Node) -> bool,
) -> Result<(FileRows<'static>, usize), CinnabarError> {
    let mut files = FileRows::new(&[]);
    let mut count = 0;
    repository.stream_notes::<CinnabarError>(hg2git, |node, id| {
        if !is_other(&Node(node)) {
            files.push(Node(node), id, UNKNOWN_PARENTS);
            count += 1;
        }
        Ok(())
    })?;
    Ok((files, count))
}

/// Reads the metadata of file revisions.
fn read_copies(
    repository: &GitDirectory,
    files_meta: GitId,
) -> Result<Vec<(Node, Vec<u8>)>, CinnabarError> {
    let mut nodes = Vec::new();
    repository.stream_notes::<CinnabarError>(files_meta, |node, blob| {
        nodes.push((Node(node), blob));
        Ok(())
    })?;
    let mut copies = Vec::with_capacity(nodes.len());
    let blobs = nodes.iter().map(|(_, blob)| *blob);
    repository.stream_objects::<CinnabarError>(blobs, StreamContent::Contents, |object| {
        if object.kind.is_empty() {
            return Err(GitDirectoryError::Missing { id: object.id }.into());
        }
        if let Some((node, _)) = nodes.get(copies.len()) {
            copies.push((*node, [METADATA_MARK, object.content, METADATA_MARK].concat()));
        }
        Ok(())
    })?;
    Ok(copies)
}

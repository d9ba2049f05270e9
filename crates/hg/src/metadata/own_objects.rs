//! The commits and trees of the metadata: the same bytes for the same content, at any time.

use super::NewHeads;
use crate::git::object::{ObjectKind, commit_parents, object_id};
use crate::git::pack_writer::{EncodedObject, PackWriter};
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::object_id::GitId;

/// Writes the commit that keeps the history reachable.
pub(super) fn write_history_commit(
    pack: &mut PackWriter,
    heads: &NewHeads<'_>,
) -> std::io::Result<GitId> {
    let tree = append(pack, ObjectKind::Tree, b"")?;
    let parents = heads.history.into_iter().chain(heads.commits.iter().copied());
    write_own_commit(pack, tree, parents, "Mercurial history")
}

/// Writes a commit of the metadata: the same bytes for the same content, at any time.
pub(super) fn write_own_commit(
    pack: &mut PackWriter,
    tree: GitId,
    parents: impl Iterator<Item = GitId>,
    message: &str,
) -> std::io::Result<GitId> {
    let mut commit = format!("tree {tree}\n");
    for parent in parents {
        commit.push_str(&format!("parent {parent}\n"));
    }
    commit.push_str("author larder <larder-hg> 0 +0000\n");
    commit.push_str(&format!("committer larder <larder-hg> 0 +0000\n\n{message}\n"));
    append(pack, ObjectKind::Commit, commit.as_bytes())
}

/// Appends an object as it is.
pub(super) fn append(
    pack: &mut PackWriter,
    kind: ObjectKind,
    content: &[u8],
) -> std::io::Result<GitId> {
    let id = object_id(kind, content);
    pack.append_content(&EncodedObject::encode_stored(id, kind, content), content)
}

/// Returns the content of a tree; the entries are sorted as git sorts them.
pub(super) fn tree_content(
    entries: impl IntoIterator<Item = (Vec<u8>, ObjectKind, GitId)>,
) -> Vec<u8> {
    let mut content = Vec::new();
    for (name, kind, id) in entries {
        let is_tree = kind == ObjectKind::Tree;
        content.extend_from_slice(if is_tree { b"40000 " } else { b"100644 " });
        content.extend_from_slice(&name);
        content.push(0);
        content.extend_from_slice(&id.0);
    }
    content
}

/// Writes a tree whose entries are all of one kind, and sorted.
pub(super) fn write_tree(
    pack: &mut PackWriter,
    kind: ObjectKind,
    entries: impl IntoIterator<Item = (Vec<u8>, GitId)>,
) -> std::io::Result<GitId> {
    let content = tree_content(entries.into_iter().map(|(name, id)| (name, kind, id)));
    append(pack, ObjectKind::Tree, &content)
}

pub(super) fn tree_of_commit(content: &[u8]) -> Option<GitId> {
    let line = content.strip_prefix(b"tree ")?;
    GitId::from_hex(line.get(..40)?)
}

/// Returns a parent of a commit by its place, from 0 on.
pub(super) fn parent_of_commit(
    repository: &mut GitDirectory,
    commit: &GitId,
    place: usize,
) -> Result<Option<GitId>, GitDirectoryError> {
    let content = repository.read_content(commit)?;
    Ok(commit_parents(&content).nth(place))
}

/// Reads the names and ids of a tree.
pub(super) fn read_tree(
    repository: &mut GitDirectory,
    id: GitId,
) -> Result<Vec<(Vec<u8>, GitId)>, GitDirectoryError> {
    let content = repository.read_content(&id)?;
    let mut entries = Vec::new();
    let mut rest = content.as_slice();
    while let Some(space) = memchr::memchr(b' ', rest)
        && let Some(nul) = memchr::memchr(0, rest)
        && let Some(name) = rest.get(space + 1..nul)
        && let Some(id) = rest.get(nul + 1..nul + 21).and_then(|id| id.try_into().ok())
    {
        entries.push((name.to_vec(), GitId(id)));
        rest = rest.get(nul + 21..).unwrap_or_default();
    }
    Ok(entries)
}

//! The tags of a converted repository.

use crate::fetch_error::FetchError;
use crate::git::repository::{GitDirectory, RefChange};
use crate::metadata::{Metadata, WRITTEN_TAGS_FOLDER};
use crate::object_id::{GitId, Node};
use crate::oddity::{Oddity, OddityReport};
use crate::refs::{folders_of, tag_ref, tag_refs};
use crate::tags::TagMerge;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The folder of git's tags.
const TAG_FOLDER: &str = "refs/tags/";
/// The file in which Mercurial keeps tags.
const TAGS_FILE: &str = ".hgtags";

/// A tag of Mercurial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryTag {
    /// Its name.
    pub name: Vec<u8>,
    /// The changeset that it names.
    pub node: Node,
    /// The commit of that changeset.
    pub commit: GitId,
}

/// Returns the tags that Mercurial lists for the changesets that are converted, sorted by name.
pub fn repository_tags(directory: &Path) -> Result<Vec<RepositoryTag>, FetchError> {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository)?;
    let heads = head_nodes(&metadata);
    Ok(tags_of_heads(&mut repository, &mut metadata, &heads)?.tags)
}

/// Returns the refs of the tags, with valid names, and their commits.
pub(crate) fn repository_tag_refs(
    directory: &Path,
) -> Result<BTreeMap<Vec<u8>, GitId>, FetchError> {
    Ok(refs_of_tags(repository_tags(directory)?))
}

fn refs_of_tags(tags: Vec<RepositoryTag>) -> BTreeMap<Vec<u8>, GitId> {
    let commits: BTreeMap<Node, GitId> = tags.iter().map(|tag| (tag.node, tag.commit)).collect();
    let refs = tag_refs(&tags.into_iter().map(|tag| (tag.name, tag.node)).collect());
    let commit = |node: &Node| commits.get(node).copied();
    refs.into_iter().filter_map(|(name, node)| Some((name, commit(&node)?))).collect()
}

/// The result of an update of tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagUpdate {
    /// How many tags of git are those of Mercurial now.
    pub tags: usize,
    /// How many were deleted, because Mercurial does not have them any more.
    pub deleted: usize,
    /// The names of tags of Mercurial that git has otherwise, from elsewhere; those of git stay.
    pub kept: Vec<Vec<u8>>,
    pub(crate) oddities: OddityReport,
}

/// Points tags of the git repository at the commits that Mercurial's tags name, and deletes those
/// that were made so and are gone in Mercurial. Other tags of git stay as they are, and so do those
/// of commits that the metadata does not know: all may have been forgotten since they were made.
pub fn update_tags(directory: &Path) -> Result<TagUpdate, FetchError> {
    update_head_tags(directory, None)
}

/// Updates tags as [`update_tags`] does, from the files of these heads, the oldest first; `None`:
/// from those of all heads that were converted. A repository may have stripped some since, with
/// tags that were a mistake.
pub(crate) fn update_head_tags(
    directory: &Path,
    heads: Option<&[Node]>,
) -> Result<TagUpdate, FetchError> {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository)?;
    let heads = heads.map_or_else(|| head_nodes(&metadata), <[Node]>::to_vec);
    let HeadTags { tags, unknown, earlier } =
        tags_of_heads(&mut repository, &mut metadata, &heads)?;
    let mut update = TagUpdate::default();
    for name in &unknown {
        let name = || String::from_utf8_lossy(name).into_owned();
        update.oddities.add(Oddity::UnknownTag, name);
    }
    let refs = refs_of_tags(tags);
    update.oddities.add_refs(Oddity::EncodedTag, refs.keys().map(Vec::as_slice));
    let wanted = refs.iter().filter_map(|(name, commit)| Some((strip_folder(name)?, *commit)));
    let wanted: TagMap = wanted.collect();
    let present = read_tags(&repository, TAG_FOLDER)?;
    let mut written = read_tags(&repository, WRITTEN_TAGS_FOLDER)?;
    let mut without_note = present.clone();
    without_note.retain(|name, _| !written.contains_key(name));
    let outdated = outdated_tags(&mut repository, &mut metadata, &earlier, &without_note)?;
    let mut forgotten = BTreeSet::new();
    for (name, commit) in &written {
        let is_wanted = wanted.contains_key(name);
        if !is_wanted && metadata.changeset_of(&mut repository, commit)?.is_none() {
            forgotten.insert(name.clone());
        }
    }
    written.retain(|name, _| !forgotten.contains(name));
    let known = KnownTags { present, written, outdated };
    let (deletions, changes) = plan_changes(&wanted, &known, &mut update);
    // Before the others: git does not take a ref in place of a folder of refs in one transaction.
    repository.change_refs(&deletions)?;
    repository.change_refs(&changes)?;
    for name in &update.kept {
        update.oddities.add(Oddity::KeptTag, || String::from_utf8_lossy(name).into_owned());
    }
    Ok(update)
}

/// Tags, by their names without a folder.
type TagMap = BTreeMap<Vec<u8>, GitId>;

fn strip_folder(name: &[u8]) -> Option<Vec<u8>> {
    name.strip_prefix(TAG_FOLDER.as_bytes()).map(<[u8]>::to_vec)
}

fn read_tags(repository: &GitDirectory, folder: &str) -> Result<TagMap, FetchError> {
    let refs = repository.refs(folder)?;
    let tags = refs.into_iter().filter_map(|(name, id)| {
        let name = name.strip_prefix(folder.as_bytes())?;
        Some((name.to_vec(), id))
    });
    Ok(tags.collect())
}

/// Returns the tags of git that lead where a tag of Mercurial led before: a fetch from `hg::tags:`
/// made them, which leaves no notes and changes no tag that is there.
fn outdated_tags(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    earlier: &BTreeMap<Vec<u8>, Vec<Node>>,
    without_note: &TagMap,
) -> Result<TagMap, FetchError> {
    let mut outdated = TagMap::new();
    for (name, nodes) in earlier {
        let found = strip_folder(&tag_ref(name));
        let found = found.and_then(|name| without_note.get_key_value(&name));
        let Some((name, id)) = found else { continue };
        if metadata.changeset_of(repository, id)?.is_some_and(|node| nodes.contains(&node)) {
            outdated.insert(name.clone(), *id);
        }
    }
    Ok(outdated)
}

/// The tags of git, and those of them that were made from Mercurial's.
struct KnownTags {
    present: TagMap,
    /// The notes of tags that were made, whatever became of these.
    written: TagMap,
    /// Those of a fetch, without notes.
    outdated: TagMap,
}

/// Returns deletions and other changes, those of the tags and of the notes of what was written.
fn plan_changes(
    wanted: &TagMap,
    KnownTags { present, written, outdated }: &KnownTags,
    update: &mut TagUpdate,
) -> (Vec<RefChange>, Vec<RefChange>) {
    let change = |folder: &str, name: &[u8], new, old| {
        let name = [folder.as_bytes(), name].concat();
        RefChange { name, new, old: Some(old) }
    };
    // A tag that is what Mercurial says is taken for one that was made from it.
    let is_foreign = |(name, id): &(&Vec<u8>, &GitId)| {
        [written, wanted, outdated].iter().all(|tags| tags.get(*name) != Some(*id))
    };
    let foreign: BTreeSet<&[u8]> =
        present.iter().filter(is_foreign).map(|(name, _)| name.as_slice()).collect();
    let foreign_folders: BTreeSet<&[u8]> =
        foreign.iter().flat_map(|name| folders_of(name)).collect();
    let mut deletions = Vec::new();
    for (name, id) in written {
        // The note of a tag that a person has changed stays: without one, the tag would later count
        // as one that a fetch made.
        if foreign.contains(name.as_slice()) || wanted.contains_key(name) {
            continue;
        }
        deletions.push(change(WRITTEN_TAGS_FOLDER, name, None, *id));
        if present.contains_key(name) {
            deletions.push(change(TAG_FOLDER, name, None, *id));
            update.deleted += 1;
        }
    }
    for (name, id) in outdated.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
        deletions.push(change(TAG_FOLDER, name, None, *id));
        update.deleted += 1;
    }
    let mut changes = Vec::new();
    for (name, commit) in wanted {
        let is_kept = foreign.contains(name.as_slice())
            || foreign_folders.contains(name.as_slice())
            || folders_of(name).any(|folder| foreign.contains(folder));
        if is_kept {
            update.kept.push(name.clone());
            continue;
        }
        update.tags += 1;
        for (folder, known) in [(TAG_FOLDER, present), (WRITTEN_TAGS_FOLDER, written)] {
            let old = known.get(name).copied();
            if old != Some(*commit) {
                let old = old.unwrap_or(GitId::NULL);
                changes.push(change(folder, name, Some(*commit), old));
            }
        }
    }
    (deletions, changes)
}

/// Returns the changesets without children.
pub(crate) fn head_nodes(metadata: &Metadata) -> Vec<Node> {
    metadata.heads().iter().map(|head| head.node).collect()
}

/// How tags differ from those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagChange {
    /// There are new ones.
    Added,
    /// Some of those before have moved or are gone.
    Replaced,
}

/// Returns how the tags differ from those when the changesets `before` were those without children;
/// `None` if they are the same.
pub(crate) fn find_tag_change(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    before: &[Node],
) -> Result<Option<TagChange>, FetchError> {
    let now = head_nodes(metadata);
    // Of many heads, few change in a fetch.
    let removed = tag_files(repository, metadata, before, &now)?;
    let added = tag_files(repository, metadata, &now, before)?;
    if removed == added {
        return Ok(None);
    }
    let old = tags_of_heads(repository, metadata, before)?.tags;
    let new = tags_of_heads(repository, metadata, &now)?.tags;
    if old.iter().any(|tag| !new.contains(tag)) {
        return Ok(Some(TagChange::Replaced));
    }
    Ok((old != new).then_some(TagChange::Added))
}

/// Returns the ids of the tag files of the changesets that are not among others.
fn tag_files(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    heads: &[Node],
    others: &[Node],
) -> Result<BTreeSet<GitId>, FetchError> {
    let others: BTreeSet<&Node> = others.iter().collect();
    let mut files = BTreeSet::new();
    for head in heads.iter().filter(|head| !others.contains(head)) {
        let Some(commit) = metadata.commit_of(repository, head)? else { continue };
        let file = repository.read_object(&format!("{commit}:{TAGS_FILE}"))?;
        files.extend(file.map(|file| file.id));
    }
    Ok(files)
}

/// The tags of some heads.
struct HeadTags {
    tags: Vec<RepositoryTag>,
    /// The names of those whose changesets are not converted, sorted.
    unknown: Vec<Vec<u8>>,
    /// The changesets that the others, and removed ones, named before.
    earlier: BTreeMap<Vec<u8>, Vec<Node>>,
}

fn tags_of_heads(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    heads: &[Node],
) -> Result<HeadTags, FetchError> {
    let mut tags = TagMerge::default();
    for head in heads {
        let Some(commit) = metadata.commit_of(repository, head)? else { continue };
        if let Some(file) = repository.read_object(&format!("{commit}:{TAGS_FILE}"))? {
            tags.add_file(file.id.0, &file.content);
        }
    }
    let mut commits: BTreeMap<Node, GitId> = BTreeMap::new();
    for node in tags.nodes() {
        if let Some(commit) = metadata.commit_of(repository, &node)? {
            commits.insert(node, commit);
        }
    }
    let unknown = tags.unknown_names(|node| commits.contains_key(node));
    let unknown: Vec<Vec<u8>> = unknown.into_iter().map(<[u8]>::to_vec).collect();
    let mut earlier: BTreeMap<Vec<u8>, Vec<Node>> =
        tags.earlier_nodes().map(|(name, nodes)| (name.to_vec(), nodes)).collect();
    earlier.retain(|name, nodes| !nodes.is_empty() && unknown.binary_search(name).is_err());
    let tags = tags.into_tags(|node| commits.contains_key(node));
    let tag = |(name, node): (Vec<u8>, Node)| {
        let commit = *commits.get(&node)?;
        Some(RepositoryTag { name, node, commit })
    };
    let tags = tags.into_iter().filter_map(tag).collect();
    Ok(HeadTags { tags, unknown, earlier })
}

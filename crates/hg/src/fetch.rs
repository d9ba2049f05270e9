//! Fetching: from the refs of a repository to the changes that are missing here, and from these to
//! commits, branches and tags.

use crate::bundle_peer::BundlePeer;
use crate::changeset::Changeset;
use crate::conversion::{ConversionError, ConversionSummary, Progress, convert};
use crate::git::repository::{GitDirectory, GitDirectoryError, RefChange};
use crate::metadata::{Metadata, MetadataError};
use crate::object_id::{GitId, Node};
use crate::peer::{Peer, PeerRefs};
use crate::refs::{RefStyle, remote_refs, tag_refs};
use crate::revision::ChangeError;
use crate::tags::TagMerge;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::Path;

/// The most nodes that one question about known changesets has.
const KNOWN_SAMPLE: usize = 100;
/// How many heads, and how many ancestors of each, are asked about.
const MAX_UNKNOWN_HEADS: usize = 20;

/// The file in which Mercurial keeps tags.
const TAGS_FILE: &str = ".hgtags";

/// Why changes could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The repository of Mercurial failed.
    #[error(transparent)]
    Peer(#[from] ChangeError),
    /// The conversion failed.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitDirectoryError),
    /// The metadata cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A ref is not one of the remote repository.
    #[error("the remote repository has no ref {0}")]
    UnknownRef(String),
}

/// Fetches and converts the changes that lead to changesets, without those that were converted.
pub fn fetch(
    directory: &Path,
    peer: &mut dyn Peer,
    wanted: &[Node],
    threads: NonZeroUsize,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, FetchError> {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository)?;
    let mut missing = Vec::new();
    for node in wanted {
        if !node.is_null() && metadata.commit_of(&mut repository, node)?.is_none() {
            missing.push(*node);
        }
    }
    if missing.is_empty() {
        return Ok(ConversionSummary::default());
    }
    if !metadata.is_empty() {
        let common = common_changesets(&mut repository, &mut metadata, peer)?;
        drop((repository, metadata));
        let mut changes = peer.changes(&missing, &common)?;
        return Ok(convert(directory, &mut *changes, threads, progress)?);
    }
    drop((repository, metadata));
    if let Some(converted) = convert_clone_bundle(directory, peer, threads, progress)? {
        // What is newer than the bundle.
        let newer = fetch(directory, peer, &missing, threads, progress)?;
        return Ok(ConversionSummary {
            changesets: converted.changesets + newer.changesets,
            objects: converted.objects + newer.objects,
            bytes: converted.bytes + newer.bytes,
        });
    }
    let mut changes = peer.changes(&missing, &[])?;
    Ok(convert(directory, &mut *changes, threads, progress)?)
}

/// Converts the bundle that a repository recommends for a first clone. `None`: there is none, or it
/// cannot be read to its end; then all changes come from the repository itself.
fn convert_clone_bundle(
    directory: &Path,
    peer: &mut dyn Peer,
    threads: NonZeroUsize,
    progress: &mut dyn Progress,
) -> Result<Option<ConversionSummary>, FetchError> {
    let Ok(Some(mut bundle)) = peer.clone_bundle() else { return Ok(None) };
    match convert(directory, &mut *bundle.source, threads, progress) {
        Ok(converted) => Ok((converted.changesets > 0).then_some(converted)),
        // A failed conversion leaves nothing.
        Err(ConversionError::Source(_) | ConversionError::Damaged(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Converts all changes of a bundle that were not converted yet.
pub fn convert_bundle(
    directory: &Path,
    bundle: &Path,
    threads: NonZeroUsize,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, FetchError> {
    let mut peer = BundlePeer::from_path(bundle.to_path_buf());
    let mut changes = peer.changes(&[], &[])?;
    Ok(convert(directory, &mut *changes, threads, progress)?)
}

/// Converts a whole repository, and points branches, tags and HEAD of the git repository at its
/// refs.
pub fn convert_all(
    directory: &Path,
    peer: &mut dyn Peer,
    style: RefStyle,
    threads: NonZeroUsize,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, FetchError> {
    let peer_refs = peer.refs()?;
    let nodes: BTreeSet<Node> =
        remote_refs(&peer_refs, style, |_| false).refs.into_values().collect();
    let nodes: Vec<Node> = nodes.into_iter().collect();
    let converted = fetch(directory, peer, &nodes, threads, progress)?;
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository)?;
    let closed = closed_heads(&peer_refs, &mut repository, &mut metadata)?;
    let refs = remote_refs(&peer_refs, style, |head| closed.contains(head));
    let mut changes = Vec::new();
    for (name, node) in refs.refs {
        let missing = || FetchError::UnknownRef(String::from_utf8_lossy(&name).into_owned());
        let commit = metadata.commit_of(&mut repository, &node)?.ok_or_else(missing)?;
        changes.push(RefChange { name, new: Some(commit), old: None });
    }
    repository.change_refs(&changes)?;
    if let Some(head) = refs.head {
        let head: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(head.as_slice());
        repository.run("symbolic-ref", [OsStr::new("HEAD"), head], b"")?;
    }
    update_tags(directory)?;
    Ok(converted)
}

/// Returns the heads of branches that are converted, and close their branch.
pub(crate) fn closed_heads(
    peer_refs: &PeerRefs,
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
) -> Result<BTreeSet<Node>, FetchError> {
    let mut closed = BTreeSet::new();
    for head in peer_refs.branches.iter().flat_map(|(_, heads)| heads) {
        let text = metadata.changeset_text(repository, head)?;
        let text = text.as_deref().and_then(Changeset::parse);
        if text.is_some_and(|changeset| changeset.closes_branch()) {
            closed.insert(*head);
        }
    }
    Ok(closed)
}

/// Returns changesets that both sides have: heads of this side, or ancestors of those that the
/// other side does not know.
fn common_changesets(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    peer: &mut dyn Peer,
) -> Result<Vec<Node>, FetchError> {
    let heads: Vec<Node> = metadata.heads().iter().map(|head| head.node).collect();
    let mut common = Vec::new();
    let mut unknown = Vec::new();
    for sample in heads.chunks(KNOWN_SAMPLE) {
        for (node, is_known) in sample.iter().zip(peer.find_known(sample)?) {
            if is_known { common.push(*node) } else { unknown.push(*node) }
        }
    }
    // Heads of another remote repository, or ones that were removed from this one.
    for node in unknown.iter().rev().take(MAX_UNKNOWN_HEADS) {
        let ancestors = sample_ancestors(repository, metadata, node)?;
        let known = peer.find_known(&ancestors)?;
        let nearest = ancestors.iter().zip(known).find(|(_, is_known)| *is_known);
        common.extend(nearest.map(|(node, _)| *node));
    }
    common.sort_unstable();
    common.dedup();
    Ok(common)
}

/// Returns first parents of a changeset at growing distances.
fn sample_ancestors(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    node: &Node,
) -> Result<Vec<Node>, FetchError> {
    let mut ancestors = Vec::new();
    let Some(commit) = metadata.commit_of(repository, node)? else { return Ok(ancestors) };
    let mut distance = 1_u64;
    while ancestors.len() < KNOWN_SAMPLE {
        let Some(ancestor) = repository.resolve(&format!("{commit}~{distance}"))? else { break };
        let ancestor: GitId = ancestor;
        ancestors.extend(metadata.changeset_of(repository, &ancestor)?);
        distance = distance.saturating_mul(2);
    }
    Ok(ancestors)
}

/// Points the tags of the git repository at the commits that Mercurial's tags name, and returns
/// their number. Tags of git that Mercurial does not have stay.
pub fn update_tags(directory: &Path) -> Result<usize, FetchError> {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository)?;
    let mut tags = TagMerge::default();
    let heads: Vec<Node> = metadata.heads().iter().map(|head| head.node).collect();
    for head in heads {
        let Some(commit) = metadata.commit_of(&mut repository, &head)? else { continue };
        if let Some(file) = repository.read_object(&format!("{commit}:{TAGS_FILE}"))? {
            tags.add_file(file.id.0, &file.content);
        }
    }
    let mut commits: BTreeMap<Node, GitId> = BTreeMap::new();
    for node in tags.nodes() {
        if let Some(commit) = metadata.commit_of(&mut repository, &node)? {
            commits.insert(node, commit);
        }
    }
    let refs = tag_refs(&tags.into_tags(|node| commits.contains_key(node)));
    let changes: Vec<RefChange> = refs
        .into_iter()
        .map(|(name, node)| RefChange { name, new: commits.get(&node).copied(), old: None })
        .collect();
    repository.change_refs(&changes)?;
    Ok(changes.len())
}

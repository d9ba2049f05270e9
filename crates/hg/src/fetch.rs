//! Fetching: from the refs of a repository to the changes that are missing here, and from these to
//! commits, branches and tags.

use crate::base_texts::stored_texts;
use crate::changeset::Changeset;
use crate::cinnabar::CINNABAR_REF;
use crate::conversion::{ConversionError, ConversionOptions, ConversionSummary, Progress, convert};
use crate::fetch_error::FetchError;
use crate::fetch_options::FetchOptions;
use crate::first_fetch::{begin_clone, take_clone_bundle};
use crate::git::repository::{GitDirectory, RefChange};
use crate::metadata::{METADATA_REF, Metadata, WRITTEN_BRANCHES_FOLDER};
use crate::object_id::{GitId, Node};
use crate::oddity::{Oddity, OddityReport};
use crate::peer::{Peer, PeerRefs};
use crate::present_heads::add_present_heads;
use crate::refs::{RefStyle, RemoteRefs, folders_of, remote_refs};
use crate::repository_tags::update_head_tags;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

/// How many heads of this side are asked about, the newest ones.
const MAX_ASKED_HEADS: usize = 1000;
/// Of how many heads that the other side does not know ancestors are asked about.
const MAX_UNKNOWN_HEADS: usize = 20;

/// The folder of git's branches.
const BRANCH_FOLDER: &str = "refs/heads/";

/// How often a conversion or a change of refs begins again because another process changed the
/// metadata or the refs meanwhile.
const MAX_REPETITIONS: usize = 3;

/// Runs a conversion, again if another process changed the metadata meanwhile.
fn repeat_outdated<T>(mut convert: impl FnMut() -> Result<T, FetchError>) -> Result<T, FetchError> {
    for _ in 0..MAX_REPETITIONS {
        match convert() {
            Err(error) if error.is_outdated() => {}
            ended => return ended,
        }
    }
    convert()
}

/// Fetches and converts the changes that lead to changesets, without those that were converted.
/// Begins again if another process changes the metadata meanwhile.
pub fn fetch<'o>(
    repository: &GitDirectory,
    peer: &mut dyn Peer,
    wanted: &[Node],
    options: impl Into<FetchOptions<'o>>,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, FetchError> {
    progress.set_received(peer.received_bytes());
    let options = options.into();
    repeat_outdated(|| fetch_once(repository, peer, wanted, &options, progress))
}

fn fetch_once(
    repository: &GitDirectory,
    peer: &mut dyn Peer,
    wanted: &[Node],
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, FetchError> {
    let mut reader = repository.share();
    let mut metadata = Metadata::open(&mut reader)?;
    let mut missing = Vec::new();
    for node in wanted {
        if !node.is_null() && metadata.commit_of(&mut reader, node)?.is_none() {
            missing.push(*node);
        }
    }
    if missing.is_empty() {
        // No conversion does it.
        repository.sweep_packs();
        return Ok(ConversionSummary::default());
    }
    check_cinnabar(&mut reader, &metadata)?;
    if !metadata.is_empty() {
        let common = common_changesets(&mut reader, &mut metadata, peer)?;
        let state = metadata.commit();
        drop((reader, metadata));
        let mut changes = peer.changes(&missing, &common)?;
        let converted = convert(repository, &mut *changes, options.conversion, progress);
        return check_state(repository, state, converted);
    }
    drop((reader, metadata));
    if let Some(mut converted) = begin_clone(repository, peer, &missing, options, progress)? {
        // What is newer.
        converted.merge(fetch_once(repository, peer, &missing, options, progress)?);
        return Ok(converted);
    }
    let mut changes = peer.changes(&missing, &[])?;
    Ok(convert(repository, &mut *changes, options.conversion, progress)?)
}

/// Changes that fit a state of the metadata are not damaged if another process has gone back to an
/// earlier one meanwhile, in which their bases are missing.
fn check_state(
    repository: &GitDirectory,
    state: Option<GitId>,
    converted: Result<ConversionSummary, ConversionError>,
) -> Result<ConversionSummary, FetchError> {
    if let Err(ConversionError::Damaged(_)) = &converted
        && repository.share().resolve(METADATA_REF)? != state
    {
        return Err(ConversionError::Outdated.into());
    }
    Ok(converted?)
}

/// Refuses to convert again what git-cinnabar has converted.
fn check_cinnabar(repository: &mut GitDirectory, metadata: &Metadata) -> Result<(), FetchError> {
    if metadata.is_empty() && repository.resolve(CINNABAR_REF)?.is_some() {
        return Err(FetchError::CinnabarRepository);
    }
    Ok(())
}

/// Refuses to import into a repository that git-cinnabar has converted.
fn check_import(repository: &GitDirectory) -> Result<(), FetchError> {
    let mut reader = repository.share();
    let metadata = Metadata::open(&mut reader)?;
    check_cinnabar(&mut reader, &metadata)
}

/// Converts all changes of a bundle that were not converted yet.
pub fn convert_bundle(
    directory: &Path,
    bundle: &mut dyn Peer,
    options: impl Into<ConversionOptions>,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, FetchError> {
    let repository = GitDirectory::new(directory);
    check_import(&repository)?;
    bundle.set_scratch_folder(directory);
    progress.set_received(bundle.received_bytes());
    let options = options.into();
    repeat_outdated(|| {
        let mut changes = bundle.changes(&[], &[])?;
        Ok(convert(&repository, &mut *changes, options, progress)?)
    })
}

/// Converts the first of the bundles that a repository recommends for a first clone and that can be
/// read; the others are reported. `None`: there is none. The error is that of the last one.
pub fn convert_clone_bundle(
    directory: &Path,
    peer: &mut dyn Peer,
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<Option<ConversionSummary>, FetchError> {
    let repository = GitDirectory::new(directory);
    check_import(&repository)?;
    peer.set_scratch_folder(directory);
    progress.set_received(peer.received_bytes());
    repeat_outdated(|| take_clone_bundle(&repository, peer, options, progress))
}

/// Converts a whole repository, and points branches, tags and HEAD of the git repository at its
/// refs; again if that was done before, to add what is new.
pub fn convert_all<'o>(
    directory: &Path,
    peer: &mut dyn Peer,
    style: RefStyle,
    options: impl Into<FetchOptions<'o>>,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, FetchError> {
    peer.set_scratch_folder(directory);
    peer.set_base_texts(stored_texts(directory));
    let peer_refs = peer.refs()?;
    // All heads of branches: which of them are closed is known when they are converted.
    let all_heads = RefStyle { heads: style.heads || style.tips, ..style };
    let nodes: BTreeSet<Node> =
        remote_refs(&peer_refs, all_heads, |_| false).refs.into_values().collect();
    let nodes: Vec<Node> = nodes.into_iter().collect();
    let has_all_refs = peer.has_all_refs();
    let mut repository = GitDirectory::new(directory);
    if !peer.is_partial()? {
        check_relation(&mut repository, peer, &peer_refs)?;
    }
    let mut converted = fetch(&repository, peer, &nodes, options, progress)?;
    let oddities = &mut converted.oddities;
    oddities.add_count(Oddity::HiddenChangeset, peer.hidden_changesets());
    let mut left = MAX_REPETITIONS;
    loop {
        match set_refs(&mut repository, &peer_refs, style, has_all_refs) {
            Ok(of_refs) => {
                oddities.merge(of_refs);
                return Ok(converted);
            }
            // Another conversion may have changed a ref after it was read here.
            Err(error) if error.is_refused_ref() && left > 0 => left -= 1,
            Err(error) => return Err(error),
        }
    }
}

/// Points branches, tags and HEAD at what was converted, and returns what is unusual in them.
fn set_refs(
    repository: &mut GitDirectory,
    peer_refs: &PeerRefs,
    style: RefStyle,
    has_all_refs: bool,
) -> Result<OddityReport, FetchError> {
    let mut oddities = OddityReport::default();
    let mut metadata = Metadata::open(repository)?;
    let mut present: GitBranches = repository.refs(BRANCH_FOLDER)?.into_iter().collect();
    let mut named_refs = peer_refs.clone();
    if !has_all_refs && (style.heads || style.tips) {
        let commits = written_commits(repository, &present)?;
        add_present_heads(repository, &mut metadata, &commits, &mut named_refs)?;
    }
    let closed = closed_heads(&named_refs, repository, &mut metadata)?;
    let refs = remote_refs(&named_refs, style, |head| closed.contains(head));
    oddities.add_refs(Oddity::EncodedRef, refs.refs.keys().map(Vec::as_slice));
    let deletions = stale_branches(repository, &present, &refs, has_all_refs)?;
    for change in &deletions {
        present.remove(&change.name);
    }
    let mut changes = branch_changes(repository, &mut metadata, &refs, &present, &mut oddities)?;
    let heads: Vec<Node> = peer_refs.heads.iter().rev().copied().collect();
    let heads = has_all_refs.then_some(heads.as_slice());
    oddities.merge(update_head_tags(repository.directory(), heads)?.oddities);
    set_head(repository, refs.head.as_deref())?;
    if !has_all_refs {
        keep_newer_branches(repository, &mut changes)?;
    }
    // Before the others: git does not take a ref in place of a folder of refs in one transaction.
    repository.change_refs(&deletions)?;
    // Last and all at once: a repository with branches is complete.
    repository.change_refs(&changes)?;
    // The branch that HEAD names may be gone.
    set_head(repository, refs.head.as_deref())?;
    Ok(oddities)
}

/// Refuses a repository without a history, or with another one than that of the conversion before:
/// its branches would take the place of the others.
fn check_relation(
    repository: &mut GitDirectory,
    peer: &mut dyn Peer,
    peer_refs: &PeerRefs,
) -> Result<(), FetchError> {
    let mut metadata = Metadata::open(repository)?;
    if metadata.is_empty() {
        return Ok(());
    }
    let heads: Vec<&Node> = peer_refs.heads.iter().filter(|head| !head.is_null()).collect();
    if heads.is_empty() {
        return Err(FetchError::EmptySource);
    }
    for head in heads {
        if metadata.commit_of(repository, head)?.is_some() {
            return Ok(());
        }
    }
    if !common_changesets(repository, &mut metadata, peer)?.is_empty() {
        return Ok(());
    }
    let roots = root_changesets(repository, &mut metadata)?;
    if peer.find_known(&roots)?.contains(&true) {
        return Ok(());
    }
    Err(FetchError::Unrelated)
}

/// Returns the changesets without parents.
fn root_changesets(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
) -> Result<Vec<Node>, FetchError> {
    let mut roots = Vec::new();
    let Some(history) = metadata.history_commit(repository)? else { return Ok(roots) };
    let listed = repository.run("rev-list", ["--max-parents=0", &history.to_string()], b"")?;
    for commit in listed.split(|byte| *byte == b'\n').filter_map(GitId::from_hex) {
        roots.extend(metadata.changeset_of(repository, &commit)?);
    }
    Ok(roots)
}

/// Returns the commits of branches that conversions made and git still has: those that they led to,
/// and those that they lead to now.
fn written_commits(
    repository: &GitDirectory,
    present: &GitBranches,
) -> Result<BTreeSet<GitId>, FetchError> {
    let mut commits = BTreeSet::new();
    for (noted, id) in repository.refs(WRITTEN_BRANCHES_FOLDER)? {
        let name = replace_folder(&noted, WRITTEN_BRANCHES_FOLDER, BRANCH_FOLDER);
        if let Some(current) = present.get(&name) {
            commits.extend([id, *current]);
        }
    }
    Ok(commits)
}

/// The branches of git, by the names of their refs.
type GitBranches = BTreeMap<Vec<u8>, GitId>;

/// Returns the changes that make the branches, and the notes of them. A branch that leads to
/// commits of git stays as it is, and so does one that is in the way of another; both are reported.
fn branch_changes(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    refs: &RemoteRefs,
    present: &GitBranches,
    oddities: &mut OddityReport,
) -> Result<Vec<RefChange>, FetchError> {
    let mut changes = Vec::new();
    for (name, node) in &refs.refs {
        let missing = || FetchError::UnknownRef(String::from_utf8_lossy(name).into_owned());
        let commit = metadata.commit_of(repository, node)?.ok_or_else(missing)?;
        if let Some(other) = branch_in_way(present, name) {
            oddities.add(Oddity::KeptBranch, || {
                let [other, name] = [other, name.as_slice()].map(String::from_utf8_lossy);
                format!("{other}: in the way of {name}")
            });
            continue;
        }
        let old = present.get(name).copied();
        let is_of_git = match old {
            Some(old) => metadata.changeset_of(repository, &old)?.is_none(),
            None => false,
        };
        if is_of_git {
            oddities.add(Oddity::KeptBranch, || String::from_utf8_lossy(name).into_owned());
        } else {
            changes.push(RefChange { name: name.clone(), new: Some(commit), old });
        }
        let note = replace_folder(name, BRANCH_FOLDER, WRITTEN_BRANCHES_FOLDER);
        changes.push(RefChange { name: note, new: Some(commit), old: None });
    }
    Ok(changes)
}

/// Returns a branch beside which git cannot have another one: it is a folder of that, or below it.
fn branch_in_way<'b>(present: &'b GitBranches, name: &[u8]) -> Option<&'b [u8]> {
    let folder = folders_of(name).find_map(|folder| present.get_key_value(folder));
    let below = [name, b"/"].concat();
    let found = folder.or_else(|| present.range(below.clone()..).next());
    let found = found.map(|(other, _)| other.as_slice());
    found.filter(|other| folder.is_some() || other.starts_with(&below))
}

/// Leaves out the changes of branches that lead to newer commits already: a bundle has the heads of
/// the time at which it was made, or of a part of the history.
fn keep_newer_branches(
    repository: &mut GitDirectory,
    changes: &mut Vec<RefChange>,
) -> Result<(), FetchError> {
    let mut kept = BTreeSet::new();
    for change in changes.iter() {
        if let (Some(new), Some(old)) = (change.new, change.old)
            && new != old
        {
            let arguments = ["--max-count=1".to_string(), new.to_string(), format!("^{old}")];
            if repository.run("rev-list", arguments, b"")?.is_empty() {
                kept.insert(change.name.clone());
                kept.insert(replace_folder(&change.name, BRANCH_FOLDER, WRITTEN_BRANCHES_FOLDER));
            }
        }
    }
    changes.retain(|change| !kept.contains(&change.name));
    Ok(())
}

/// Returns the ref of the same name in another folder.
fn replace_folder(name: &[u8], from: &str, to: &str) -> Vec<u8> {
    let rest = name.strip_prefix(from.as_bytes()).unwrap_or(name);
    [to.as_bytes(), rest].concat()
}

/// Returns the deletions of branches that an earlier conversion made and Mercurial does not have
/// any more, unless git has changed them, and of the notes of branches that are gone. Refs that are
/// not all of a repository do not tell which ones are gone in Mercurial.
fn stale_branches(
    repository: &GitDirectory,
    present: &GitBranches,
    refs: &RemoteRefs,
    has_all_refs: bool,
) -> Result<Vec<RefChange>, FetchError> {
    let mut deletions = Vec::new();
    for (noted, id) in repository.refs(WRITTEN_BRANCHES_FOLDER)? {
        let name = replace_folder(&noted, WRITTEN_BRANCHES_FOLDER, BRANCH_FOLDER);
        let is_gone = has_all_refs || !present.contains_key(&name);
        if refs.refs.contains_key(&name) || !is_gone {
            continue;
        }
        if present.get(&name) == Some(&id) {
            deletions.push(RefChange { name, new: None, old: Some(id) });
        }
        deletions.push(RefChange { name: noted, new: None, old: Some(id) });
    }
    Ok(deletions)
}

/// Points HEAD at a branch, unless it leads to a commit already.
fn set_head(repository: &mut GitDirectory, branch: Option<&[u8]>) -> Result<(), FetchError> {
    let Some(branch) = branch else { return Ok(()) };
    if repository.resolve("HEAD")?.is_none() {
        let branch: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(branch);
        repository.run("symbolic-ref", [OsStr::new("HEAD"), branch], b"")?;
    }
    Ok(())
}

/// Returns the heads of branches that are converted, and close their branch; only of branches with
/// several heads, because the only head of a branch is its tip in any case.
pub(crate) fn closed_heads(
    peer_refs: &PeerRefs,
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
) -> Result<BTreeSet<Node>, FetchError> {
    let mut closed = BTreeSet::new();
    let several = peer_refs.branches.iter().filter(|(_, heads)| heads.len() > 1);
    for head in several.flat_map(|(_, heads)| heads) {
        let text = metadata.changeset_text(repository, head)?;
        let text = text.as_deref().and_then(Changeset::parse);
        if text.is_some_and(|changeset| changeset.closes_branch()) {
            closed.insert(*head);
        }
    }
    Ok(closed)
}

/// Returns changesets that both sides have: heads of this side, and ancestors of those that the
/// other side does not know; at the end, heads of both sides. Not all heads are asked about: with
/// fewer common changesets, only more changes come.
fn common_changesets(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    peer: &mut dyn Peer,
) -> Result<Vec<Node>, FetchError> {
    let listed: BTreeSet<Node> = peer.listed_heads().iter().copied().collect();
    // The newest ones first.
    let heads = metadata.heads().iter().rev().map(|head| head.node);
    let (listed, mut asked): (Vec<Node>, Vec<Node>) = heads.partition(|node| listed.contains(node));
    asked.truncate(MAX_ASKED_HEADS);
    let mut known = peer.find_known(&asked)?.into_iter();
    let (mut common, unknown): (Vec<Node>, Vec<Node>) =
        asked.into_iter().partition(|_| known.next().unwrap_or_default());
    // Heads of another remote repository, or ones that were removed from this one.
    let mut samples = Vec::new();
    for node in unknown.iter().take(MAX_UNKNOWN_HEADS) {
        samples.push(sample_ancestors(repository, metadata, node)?);
    }
    let mut known = peer.find_known(&samples.concat())?.into_iter();
    for sample in samples {
        let is_known: Vec<bool> = known.by_ref().take(sample.len()).collect();
        let nearest = sample.iter().zip(is_known).find(|(_, is_known)| *is_known);
        common.extend(nearest.map(|(node, _)| *node).filter(|node| !common.contains(node)));
    }
    common.extend(listed);
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
    for distance in (0..u32::BITS).map(|power| 1_u64 << power) {
        let Some(ancestor) = repository.resolve(&format!("{commit}~{distance}"))? else { break };
        let ancestor: GitId = ancestor;
        ancestors.extend(metadata.changeset_of(repository, &ancestor)?);
    }
    Ok(ancestors)
}

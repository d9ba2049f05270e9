//! The named branches of the visible changesets and their heads (mercurial/branchmap.py).

use crate::branch_heads::remove_ancestors;
use crate::changeset::branch_of;
use crate::local::branch_cache::BranchCache;
use crate::local::local_error::LocalError;
use crate::local::snapshot::Snapshot;
use crate::revision_set::RevisionSet;
use crate::revlog::ChunkDecoder;
use std::collections::{BTreeMap, HashMap};

/// The heads of each branch, as revision numbers in ascending order. The branches are in the order
/// of their names, as in the cache from which a server of Mercurial answers.
pub(crate) type BranchMap = BTreeMap<Vec<u8>, Vec<u32>>;

/// Reads the branches of all visible changesets. A head is a changeset without a descendant on its
/// branch. Closed heads count, obsolete changesets do not.
pub(crate) fn read_branch_heads(
    snapshot: &mut Snapshot,
    decoder: &mut ChunkDecoder,
) -> Result<BranchMap, LocalError> {
    let cache = BranchCache::read(&snapshot.layout.caches)?;
    let heads = collect_heads(snapshot, decoder, &cache)?;
    if cache.is_empty() || has_right_branches(snapshot, decoder, &heads)? {
        return Ok(heads);
    }
    collect_heads(snapshot, decoder, &BranchCache::default())
}

/// Returns whether the texts of the heads name their branches. If they do not, the cache was read
/// while it was written anew, with other numbers for the names.
fn has_right_branches(
    snapshot: &mut Snapshot,
    decoder: &mut ChunkDecoder,
    branches: &BranchMap,
) -> Result<bool, LocalError> {
    for (name, heads) in branches {
        for head in heads {
            if branch_of(snapshot.changelog.read_text(*head, decoder)?) != *name {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn collect_heads(
    snapshot: &mut Snapshot,
    decoder: &mut ChunkDecoder,
    cache: &BranchCache,
) -> Result<BranchMap, LocalError> {
    let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut branch_of_revision = vec![u32::MAX; snapshot.changelog.entries().len()];
    let mut candidates = RevisionSet::new(snapshot.changelog.len());
    let mut other_parents = RevisionSet::new(snapshot.changelog.len());
    let revisions: Vec<u32> = snapshot.served.iter().collect();
    for revision in revisions {
        let node = snapshot.changelog.node(Some(revision));
        let branch = match cache.branch(revision, node) {
            Some(name) => add_name(name, &mut numbers),
            None => {
                let name = branch_of(snapshot.changelog.read_text(revision, decoder)?);
                add_name(&name, &mut numbers)
            }
        };
        if let Some(slot) = branch_of_revision.get_mut(revision as usize) {
            *slot = branch;
        }
        let is_obsolete = snapshot.obsolete.contains(revision);
        if !is_obsolete {
            candidates.insert(revision);
        }
        for parent in parents_of(snapshot, revision) {
            if !is_obsolete && branch_of_revision.get(parent as usize) == Some(&branch) {
                candidates.remove(parent);
            } else {
                other_parents.insert(parent);
            }
        }
    }
    let mut names: Vec<(Vec<u8>, u32)> = numbers.into_iter().collect();
    names.sort_by_key(|(_, number)| *number);
    let mut heads: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
    for revision in candidates.iter() {
        let branch = branch_of_revision.get(revision as usize).copied().unwrap_or(u32::MAX);
        if let Some(heads) = heads.get_mut(branch as usize) {
            heads.push(revision);
        }
    }
    for heads in &mut heads {
        remove_inner_heads(snapshot, heads, &other_parents);
    }
    let branches = names.into_iter().map(|(name, _)| name).zip(heads);
    Ok(branches.filter(|(_, heads)| !heads.is_empty()).collect())
}

/// Returns the number of a branch, which is added if it is new.
fn add_name(name: &[u8], numbers: &mut HashMap<Vec<u8>, u32>) -> u32 {
    let next = numbers.len() as u32;
    match numbers.get(name) {
        Some(number) => *number,
        None => *numbers.entry(name.to_vec()).or_insert(next),
    }
}

fn parents_of(snapshot: &Snapshot, revision: u32) -> impl Iterator<Item = u32> + use<> {
    let entry = snapshot.changelog.entry(revision).copied();
    entry.into_iter().flat_map(|entry| [entry.p1(), entry.p2()]).flatten()
}

/// Removes the heads that are ancestors of others through other branches or obsolete changesets.
/// Only the parents of such changesets can be.
fn remove_inner_heads(snapshot: &Snapshot, heads: &mut Vec<u32>, other_parents: &RevisionSet) {
    let oldest = heads.iter().copied().find(|head| other_parents.contains(*head));
    if let (Some(oldest), [_, _, ..]) = (oldest, heads.as_slice()) {
        remove_ancestors(heads, oldest, |revision| parents_of(snapshot, revision));
    }
}

//! The heads of branches that earlier conversions made.
//!
//! The names of heads depend on all heads of their branch: the newest open one is its tip. A bundle
//! has some of them, so that those that git has count, too.

use crate::changeset::branch_of;
use crate::fetch_error::FetchError;
use crate::git::repository::GitDirectory;
use crate::metadata::{ChangesetPlace, Metadata};
use crate::object_id::{GitId, Node};
use crate::peer::PeerRefs;
use crate::percent;
use std::collections::{BTreeMap, BTreeSet};

/// Heads in the order of conversion, with their commits.
type OrderedHeads = BTreeMap<ChangesetPlace, (Node, GitId)>;

/// Adds to the heads of each branch in a bundle those that git has, and removes the ancestors of
/// others. `commits` are those of the branches that conversions made.
pub(crate) fn add_present_heads(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    commits: &BTreeSet<GitId>,
    peer_refs: &mut PeerRefs,
) -> Result<(), FetchError> {
    let mut present = present_heads(repository, metadata, commits)?;
    for (branch, heads) in &mut peer_refs.branches {
        let mut all = OrderedHeads::new();
        for head in heads.iter() {
            let missing = || FetchError::UnknownRef(head.to_string());
            let (place, commit) = metadata.place_of(repository, head)?.ok_or_else(missing)?;
            all.insert(place, (*head, commit));
        }
        let count = all.len();
        all.extend(present.remove(branch).unwrap_or_default());
        if all.len() > count {
            remove_ancestors(repository, &mut all)?;
        }
        *heads = all.into_values().map(|(node, _)| node).collect();
    }
    Ok(())
}

/// Returns the changesets of commits by their branches, percent-encoded. Commits of git have none.
fn present_heads(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    commits: &BTreeSet<GitId>,
) -> Result<BTreeMap<Vec<u8>, OrderedHeads>, FetchError> {
    let mut all = OrderedHeads::new();
    for commit in commits {
        let Some(node) = metadata.changeset_of(repository, commit)? else { continue };
        let found = metadata.place_of(repository, &node)?;
        all.extend(found.map(|(place, commit)| (place, (node, commit))));
    }
    let mut branches: BTreeMap<Vec<u8>, OrderedHeads> = BTreeMap::new();
    // In the order of the texts, several of which are compressed together.
    for (place, (node, commit)) in all {
        let Some(text) = metadata.changeset_text(repository, &node)? else { continue };
        let branch = percent::encode(&branch_of(&text));
        branches.entry(branch).or_default().insert(place, (node, commit));
    }
    Ok(branches)
}

fn remove_ancestors(repository: &GitDirectory, heads: &mut OrderedHeads) -> Result<(), FetchError> {
    // All heads without what their parents lead to. `merge-base --independent` takes a time of the
    // square of their number.
    let mut input = Vec::new();
    for (_, commit) in heads.values() {
        input.extend(format!("{commit}\n^{commit}^@\n").bytes());
    }
    let output = repository.run("rev-list", ["--stdin"], &input)?;
    let independent: BTreeSet<GitId> =
        output.split(|byte| *byte == b'\n').filter_map(GitId::from_hex).collect();
    heads.retain(|_, (_, commit)| independent.contains(commit));
    Ok(())
}

//! The names that a changelog gives: branches and heads, found in one pass over its revisions.
//!
//! This is for sources that hold no list of their heads. It keeps the texts of changesets only to
//! apply deltas to them, compressed in blocks.

use crate::branch_heads::remove_ancestors;
use crate::changeset::branch_of;
use crate::delta::apply_delta;
use crate::object_id::{IdMap, Node};
use crate::peer::{BaseTexts, PeerRefs};
use crate::percent;
use crate::revision::{ChangeError, ChangeSource, Revision};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The texts in a block are compressed when they have this size.
const BLOCK_BYTES: usize = 1 << 16;

/// A changeset: its parents and its branch.
struct ScannedChangeset {
    node: Node,
    /// Positions; `None` for parents outside.
    parents: [Option<u32>; 2],
    /// The position of the branch.
    branch: u32,
}

/// The changesets of a changelog.
#[derive(Default)]
pub(crate) struct ChangesetScan {
    changesets: Vec<ScannedChangeset>,
    positions: IdMap<Node, u32>,
    branches: Vec<Vec<u8>>,
    branch_positions: HashMap<Vec<u8>, u32>,
    /// Whether a parent is outside.
    is_partial: bool,
}

impl ChangesetScan {
    /// Reads the changelog, which is the current group of the source.
    pub(crate) fn read(
        source: &mut dyn ChangeSource,
        base_texts: &mut BaseTexts,
    ) -> Result<ChangesetScan, ChangeError> {
        let mut scan = ChangesetScan::default();
        let mut texts = Texts::default();
        let mut revision = Revision::empty();
        let (mut base, mut text) = (Vec::new(), Vec::new());
        while source.next_revision(&mut revision)? {
            scan.find_base(&revision, &mut texts, base_texts, &mut base)?;
            apply_delta(&base, &revision.delta, &mut text).map_err(|error| {
                ChangeError::new_damaged(format!("changeset {}: {error}", revision.node))
            })?;
            if scan.add(&revision, &text) {
                texts.push(&text)?;
            }
        }
        Ok(scan)
    }

    fn find_base(
        &self,
        revision: &Revision,
        texts: &mut Texts,
        base_texts: &mut BaseTexts,
        base: &mut Vec<u8>,
    ) -> Result<(), ChangeError> {
        base.clear();
        if revision.base.is_null() {
            return Ok(());
        }
        if let Some(position) = self.positions.get(&revision.base) {
            return texts.read(*position as usize, base);
        }
        *base = base_texts(revision.base).ok_or_else(|| {
            let (node, base) = (revision.node, revision.base);
            ChangeError::new_unsupported(format!(
                "changeset {node} builds on {base}, which is not here"
            ))
        })?;
        Ok(())
    }

    /// Adds a changeset; returns false if it was there.
    fn add(&mut self, revision: &Revision, text: &[u8]) -> bool {
        let position = self.changesets.len() as u32;
        if self.positions.contains_key(&revision.node) {
            return false;
        }
        let parents = [revision.p1, revision.p2].map(|parent| {
            let position = self.positions.get(&parent).copied();
            self.is_partial |= position.is_none() && !parent.is_null();
            position
        });
        let branch = branch_of(text);
        let branch = self.branch_positions.get(&branch).copied().unwrap_or_else(|| {
            let position = self.branches.len() as u32;
            self.branches.push(branch.clone());
            self.branch_positions.insert(branch, position);
            position
        });
        self.positions.insert(revision.node, position);
        self.changesets.push(ScannedChangeset { node: revision.node, parents, branch });
        true
    }

    /// Returns whether changesets build on others, which are not there.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns whether there is this changeset.
    pub(crate) fn has(&self, node: Node) -> bool {
        self.positions.contains_key(&node)
    }

    /// Returns the nodes that begin with these hexadecimal digits, at most two of them.
    pub(crate) fn find_prefix(&self, digits: &[u8]) -> Vec<Node> {
        let nodes = self.changesets.iter().map(|changeset| changeset.node);
        nodes.filter(|node| node.to_hex().starts_with(digits)).take(2).collect()
    }

    /// Returns the last changeset.
    pub(crate) fn tip(&self) -> Option<Node> {
        self.changesets.last().map(|changeset| changeset.node)
    }

    /// Returns the names in the order of their bytes, with heads in the order of the changelog. A
    /// head of a branch has no descendant on the same branch.
    pub(crate) fn refs(&self) -> PeerRefs {
        let mut has_child = vec![false; self.changesets.len()];
        let mut candidates: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (position, changeset) in (0..).zip(&self.changesets) {
            for parent in changeset.parents.into_iter().flatten() {
                if let Some(flag) = has_child.get_mut(parent as usize) {
                    *flag = true;
                }
                if self.branch_of(parent) == Some(changeset.branch)
                    && let Some(heads) = candidates.get_mut(&changeset.branch)
                {
                    heads.remove(&parent);
                }
            }
            candidates.entry(changeset.branch).or_default().insert(position);
        }
        let mut branches = Vec::new();
        for (branch, heads) in candidates {
            let is_inner = |head: &u32| has_child.get(*head as usize) == Some(&true);
            let oldest = heads.iter().copied().find(is_inner);
            let mut heads: Vec<u32> = heads.into_iter().collect();
            if let (Some(oldest), [_, _, ..]) = (oldest, heads.as_slice()) {
                remove_ancestors(&mut heads, oldest, |position| self.parents_of(position));
            }
            if let Some(name) = self.branches.get(branch as usize) {
                branches.push((name.clone(), self.nodes(heads)));
            }
        }
        branches.sort();
        for (name, _) in &mut branches {
            *name = percent::encode(name);
        }
        let heads = (0..).zip(&has_child).filter(|(_, has_child)| !**has_child);
        let mut heads = self.nodes(heads.map(|(position, _)| position));
        heads.reverse();
        PeerRefs { branches, heads, bookmarks: Vec::new() }
    }

    fn branch_of(&self, position: u32) -> Option<u32> {
        self.changesets.get(position as usize).map(|changeset| changeset.branch)
    }

    fn nodes(&self, positions: impl IntoIterator<Item = u32>) -> Vec<Node> {
        let changesets = positions.into_iter().filter_map(|at| self.changesets.get(at as usize));
        changesets.map(|changeset| changeset.node).collect()
    }

    fn parents_of(&self, position: u32) -> impl Iterator<Item = u32> {
        let changeset = self.changesets.get(position as usize);
        changeset.into_iter().flat_map(|changeset| changeset.parents).flatten()
    }
}

/// Texts in their order, in compressed blocks.
#[derive(Default)]
struct Texts {
    /// For each text the block, and its start and end there.
    places: Vec<(u32, u32, u32)>,
    blocks: Vec<Vec<u8>>,
    /// The block that is being filled.
    open: Vec<u8>,
    /// The block that was last read, with its number.
    read: Option<(u32, Vec<u8>)>,
}

impl Texts {
    fn push(&mut self, text: &[u8]) -> Result<(), ChangeError> {
        let too_large = || ChangeError::new_damaged("the texts of changesets are too large");
        if self.open.len() >= BLOCK_BYTES {
            self.blocks.push(zstd::bulk::compress(&self.open, 1)?);
            self.read = Some((self.blocks.len() as u32 - 1, std::mem::take(&mut self.open)));
        }
        let begin = self.open.len() as u32;
        self.open.extend_from_slice(text);
        let end = u32::try_from(self.open.len()).map_err(|_| too_large())?;
        self.places.push((self.blocks.len() as u32, begin, end));
        Ok(())
    }

    /// Reads a text over `text`.
    fn read(&mut self, position: usize, text: &mut Vec<u8>) -> Result<(), ChangeError> {
        let missing = || ChangeError::new_damaged("the text of a changeset is missing");
        let (block, begin, end) = *self.places.get(position).ok_or_else(missing)?;
        let content = if block as usize == self.blocks.len() {
            &self.open
        } else {
            if self.read.as_ref().is_none_or(|(read, _)| *read != block) {
                let compressed = self.blocks.get(block as usize).ok_or_else(missing)?;
                self.read = Some((block, zstd::stream::decode_all(compressed.as_slice())?));
            }
            &self.read.as_ref().ok_or_else(missing)?.1
        };
        text.extend_from_slice(content.get(begin as usize..end as usize).ok_or_else(missing)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source with a changelog only. Each text is whole, or appended to the text of the base.
    struct Changelog(Vec<Revision>);

    impl ChangeSource for Changelog {
        fn next_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError> {
            if self.0.is_empty() {
                return Ok(false);
            }
            *revision = self.0.remove(0);
            Ok(true)
        }

        fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
            Ok(None)
        }
    }

    fn changeset(node: u8, parents: [u8; 2], extra: &str) -> Revision {
        let text = format!("{}\nuser\n0 0{extra}\nfile\n\nmessage", "0".repeat(40));
        let mut delta = [0; 8].to_vec();
        delta.extend((text.len() as u32).to_be_bytes());
        delta.extend(text.as_bytes());
        let [p1, p2] = parents.map(|parent| Node([parent; 20]));
        Revision { node: Node([node; 20]), p1, p2, delta, ..Revision::empty() }
    }

    fn scan(revisions: Vec<Revision>) -> ChangesetScan {
        ChangesetScan::read(&mut Changelog(revisions), &mut |_| None).expect("a changelog")
    }

    fn refs(revisions: Vec<Revision>) -> (Vec<(String, Vec<u8>)>, Vec<u8>) {
        let refs = scan(revisions).refs();
        let first = |nodes: Vec<Node>| nodes.into_iter().map(|node| node.0[0]).collect::<Vec<_>>();
        let named = refs.branches.into_iter();
        let named =
            named.map(|(name, heads)| (String::from_utf8_lossy(&name).into(), first(heads)));
        (named.collect(), first(refs.heads))
    }

    #[test]
    fn a_head_has_no_descendant_on_its_branch() {
        let (branches, heads) = refs(vec![
            changeset(1, [0, 0], ""),
            changeset(2, [1, 0], " branch:b c"),
            changeset(3, [2, 0], " close:1\0branch:default"),
            changeset(4, [1, 0], " branch:a\\\\/ü"),
            changeset(5, [2, 4], " branch:b c"),
            changeset(6, [1, 0], ""),
        ]);
        let expected = [("a%5C/%C3%BC", vec![4]), ("b%20c", vec![5]), ("default", vec![3, 6])];
        assert_eq!(branches, expected.map(|(name, heads)| (name.to_owned(), heads)));
        assert_eq!(heads, [6, 5, 3]);
        assert_eq!(refs(Vec::new()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn deltas_apply_to_any_earlier_text() {
        let mut revisions = Vec::new();
        for node in 1..=255 {
            let mut revision = changeset(node, [node - 1, 0], &format!(" branch:{node}"));
            if node > 3 {
                // The text of another changeset, whose blocks may be compressed by now.
                revision.base = Node([node / 3; 20]);
                revision.delta = vec![0; 12];
            }
            revisions.push(revision);
        }
        let (branches, _) = refs(revisions);
        assert_eq!(branches.len(), 3);
        let mut missing = changeset(1, [9, 0], "");
        missing.base = Node([9; 20]);
        let error = ChangesetScan::read(&mut Changelog(vec![missing]), &mut |_| None);
        assert!(matches!(error, Err(ChangeError::Unsupported { .. })));
    }

    #[test]
    fn texts_are_kept_in_blocks() {
        let mut texts = Texts::default();
        let text = |number: u32| format!("text {number} ").repeat(100).into_bytes();
        (0..1000).for_each(|number| texts.push(&text(number)).expect("memory"));
        assert!(texts.blocks.len() > 5);
        for number in [999, 0, 500, 1, 998, 64] {
            let mut read = Vec::new();
            texts.read(number as usize, &mut read).expect("a text");
            assert_eq!(read, text(number));
        }
        assert!(texts.read(1000, &mut Vec::new()).is_err());
    }
}

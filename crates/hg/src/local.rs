//! Repositories of Mercurial on this machine, read without Mercurial.
//!
//! The visible changesets are those that a server would show: no secret changesets, and no obsolete
//! ones that nothing visible needs. The repository is not changed and not locked; see `snapshot`
//! for what happens when another process writes meanwhile.

mod branch_cache;
mod branches;
mod change_scope;
mod changes;
mod foreign_links;
mod layout;
mod local_error;
mod obsolescence;
mod phases;
mod pins;
mod revlog_group;
mod snapshot;
mod store_path;
mod tag_files;

use crate::changeset::Changeset;
use crate::local::branches::{BranchMap, read_branch_heads};
use crate::local::changes::LocalChanges;
use crate::local::snapshot::Snapshot;
use crate::local::tag_files::find_tag;
use crate::object_id::Node;
use crate::peer::{Peer, PeerRefs};
use crate::percent;
use crate::revision::{ChangeError, ChangeSource};
use crate::revlog::ChunkDecoder;
use std::path::Path;

pub(crate) use crate::local::layout::{StoreLayout, unsupported_requirements};
pub use crate::local::local_error::LocalError;
pub(crate) use crate::local::store_path::decode_folders;

/// A repository in a folder, as it was when it was opened.
pub struct LocalPeer {
    snapshot: Snapshot,
    decoder: ChunkDecoder,
    branches: Option<BranchMap>,
}

impl LocalPeer {
    /// Opens the repository in a folder, which contains `.hg`.
    pub fn open(repository: &Path) -> Result<LocalPeer, LocalError> {
        LocalPeer::new(StoreLayout::find(repository)?)
    }

    /// Opens a folder that contains only a store, with the names of the newest repositories.
    pub fn open_store(folder: &Path) -> Result<LocalPeer, LocalError> {
        LocalPeer::new(StoreLayout::of_store(folder))
    }

    fn new(layout: StoreLayout) -> Result<LocalPeer, LocalError> {
        let snapshot = Snapshot::read(layout)?;
        Ok(LocalPeer { snapshot, decoder: ChunkDecoder::new(), branches: None })
    }

    fn node(&self, revision: u32) -> Node {
        self.snapshot.changelog.node(Some(revision))
    }

    fn branch_heads(&mut self) -> Result<&BranchMap, LocalError> {
        let heads = match self.branches.take() {
            Some(heads) => heads,
            None => read_branch_heads(&mut self.snapshot, &mut self.decoder)?,
        };
        Ok(self.branches.insert(heads))
    }

    /// Returns the bookmarks that a server shows: those of visible changesets, without those that
    /// mark a conflict with another repository (`name@other`).
    fn visible_bookmarks(&self) -> Vec<(Vec<u8>, Node)> {
        let nodes: Vec<Node> = self.snapshot.bookmarks.iter().map(|(_, node)| *node).collect();
        let served = self.snapshot.find_served(&nodes);
        let is_visible = |(name, node): &&(Vec<u8>, Node)| {
            served.contains_key(node) && (!name.contains(&b'@') || name.ends_with(b"@"))
        };
        self.snapshot.bookmarks.iter().filter(is_visible).cloned().collect()
    }

    /// Finds a revision by its name; the rules and their order are those of Mercurial
    /// (mercurial/scmutil.py, `revsymbol`), without the working copy.
    fn find_name(&mut self, name: &[u8]) -> Result<Option<Node>, ChangeError> {
        if name == b"null" {
            return Ok(Some(Node::NULL));
        }
        if name == b"tip" {
            let tip = self.snapshot.served.iter().last();
            return Ok(Some(self.snapshot.changelog.node(tip)));
        }
        if let Some(revision) = parse_number(name, self.snapshot.changelog.len()) {
            let is_served = self.snapshot.served.contains(revision);
            return Ok(is_served.then(|| self.node(revision)));
        }
        if let Some(node) = Node::from_hex(name) {
            let found = self.snapshot.find(&[node]);
            if let Some(revision) = found.get(&node) {
                return Ok(self.snapshot.served.contains(*revision).then_some(node));
            }
        }
        let bookmark = self.snapshot.bookmarks.iter().find(|(bookmark, _)| bookmark == name);
        if let Some((_, node)) = bookmark
            && self.snapshot.find_served(&[*node]).contains_key(node)
        {
            return Ok(Some(*node));
        }
        if let Some(node) = find_tag(&mut self.snapshot, &mut self.decoder, name)? {
            // Without the changeset, no branch of the name counts.
            let is_served = self.snapshot.find_served(&[node]).contains_key(&node);
            return if is_served { Ok(Some(node)) } else { self.find_prefix(name) };
        }
        if let Some(tip) = self.find_branch_tip(name)? {
            return Ok(Some(self.node(tip)));
        }
        self.find_prefix(name)
    }

    /// Returns the newest open head of a branch, or the newest head if all are closed.
    fn find_branch_tip(&mut self, name: &[u8]) -> Result<Option<u32>, ChangeError> {
        let heads = self.branch_heads()?.get(name).cloned().unwrap_or_default();
        for head in heads.iter().rev() {
            let text = self.snapshot.changelog.read_text(*head, &mut self.decoder)?;
            if !Changeset::parse(text).is_some_and(|changeset| changeset.closes_branch()) {
                return Ok(Some(*head));
            }
        }
        Ok(heads.last().copied())
    }

    /// Returns the changeset whose node begins with these digits.
    fn find_prefix(&self, digits: &[u8]) -> Result<Option<Node>, ChangeError> {
        let is_digits = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if digits.is_empty() || digits.len() > 40 || !is_digits {
            return Ok(None);
        }
        // The null revision counts. Invisible changesets do as well: they may come back.
        let null = [(u32::MAX, Node::NULL)].into_iter();
        let entries = (0..).zip(self.snapshot.changelog.entries());
        let nodes = null.chain(entries.map(|(revision, entry)| (revision, entry.node)));
        let mut found = nodes.filter(|(_, node)| node.to_hex().starts_with(digits));
        let Some((revision, node)) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            let message = format!("ambiguous identifier '{}'", String::from_utf8_lossy(digits));
            return Err(ChangeError::Aborted { message });
        }
        let is_served = node.is_null() || self.snapshot.served.contains(revision);
        Ok(is_served.then_some(node))
    }
}

impl Peer for LocalPeer {
    fn hidden_changesets(&self) -> u64 {
        u64::from(self.snapshot.changelog.len().saturating_sub(self.snapshot.served.count()))
    }

    fn refs(&mut self) -> Result<PeerRefs, ChangeError> {
        let heads = self.branch_heads()?.clone();
        let node = |revision: &u32| self.node(*revision);
        let branches = heads
            .iter()
            .map(|(name, heads)| (percent::encode(name), heads.iter().map(node).collect()))
            .collect();
        let heads = self.snapshot.heads().iter().map(node).collect();
        Ok(PeerRefs { branches, heads, bookmarks: self.visible_bookmarks() })
    }

    fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError> {
        let found = self.snapshot.find_served(nodes);
        Ok(nodes.iter().map(|node| found.contains_key(node)).collect())
    }

    fn lookup(&mut self, name: &[u8]) -> Result<Node, ChangeError> {
        let node = self.find_name(name)?;
        let name = String::from_utf8_lossy(name);
        node.ok_or_else(|| ChangeError::Aborted { message: format!("unknown revision '{name}'") })
    }

    fn changes(
        &mut self,
        heads: &[Node],
        common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
        let mut all_heads = Vec::new();
        if heads.is_empty() {
            all_heads.extend(self.snapshot.heads().into_iter().map(|head| self.node(head)));
        }
        let heads = if heads.is_empty() { &all_heads } else { heads };
        let changes = LocalChanges::new(&mut self.snapshot, &mut self.decoder, heads, common)?;
        Ok(Box::new(changes))
    }
}

/// Reads a revision number in its only form; negative ones count from the end.
fn parse_number(name: &[u8], count: u32) -> Option<u32> {
    let text = str::from_utf8(name).ok()?;
    let number: i64 = text.parse().ok()?;
    if number.to_string() != text {
        return None;
    }
    let number = if number < 0 { number + i64::from(count) } else { number };
    u32::try_from(number).ok().filter(|number| *number < count)
}

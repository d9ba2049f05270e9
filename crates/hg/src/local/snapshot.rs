//! The state of a repository at one time: its changelog, and which changesets are served.
//!
//! No lock is taken. The changelog is read first; what is written later belongs to changesets that
//! it does not have, and is ignored. Only a removal of changesets (`hg strip`) can disturb a
//! reader, and [`Snapshot::check_unchanged`] notices it.

use crate::local::layout::{StoreLayout, read_optional};
use crate::local::local_error::LocalError;
use crate::local::obsolescence::read_replaced;
use crate::local::phases::{ARCHIVED, SECRET, read_phases};
use crate::local::pins::read_pins;
use crate::object_id::{IdMap, Node};
use crate::revision_set::RevisionSet;
use crate::revlog::Revlog;
use std::path::Path;
use std::time::Duration;

/// How often, and how long after, a changelog with an incomplete end is read again: another process
/// writes its last entries at once.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// The changelog, and the changesets that others may see.
pub(crate) struct Snapshot {
    pub(crate) layout: StoreLayout,
    pub(crate) changelog: Revlog,
    /// The visible changesets: neither secret, nor obsolete without a visible descendant.
    pub(crate) served: RevisionSet,
    /// The changesets that others have replaced, visible or not.
    pub(crate) obsolete: RevisionSet,
    /// The bookmarks in their file, sorted by name.
    pub(crate) bookmarks: Vec<(Vec<u8>, Node)>,
}

impl Snapshot {
    /// Reads the state of the repository.
    pub(crate) fn read(layout: StoreLayout) -> Result<Snapshot, LocalError> {
        // Before the changelog, which then has the changesets that they name.
        let bookmarks_text = read_optional(&layout.bookmarks)?.unwrap_or_default();
        let bookmarks = parse_bookmarks(&layout.bookmarks, &bookmarks_text)?;
        let changelog = read_changelog(&layout)?;
        if changelog.is_empty() && layout.has_revisions() {
            let what = "it is empty or missing".to_owned();
            return Err(LocalError::Damaged { path: layout.store.join("00changelog.i"), what });
        }
        let phases_path = layout.store.join("phaseroots");
        let phases_text = read_optional(&phases_path)?;
        let phases = read_phases(&phases_path, phases_text.as_deref(), &changelog)?;
        let mut served = RevisionSet::new(changelog.len());
        (0..changelog.len()).for_each(|revision| served.insert(revision));
        let obsolete = RevisionSet::new(changelog.len());
        let mut snapshot = Snapshot { layout, changelog, served, obsolete, bookmarks };
        if phases.iter().any(|phase| *phase > 0) {
            snapshot.hide(&phases)?;
        }
        Ok(snapshot)
    }

    /// Removes what is not served: obsolete changesets, unless something visible or a pin needs
    /// them, and secret ones.
    fn hide(&mut self, phases: &[u8]) -> Result<(), LocalError> {
        let replaced = read_replaced(&self.layout.store.join("obsstore"))?;
        for (number, (entry, phase)) in (0..).zip(self.changelog.entries().iter().zip(phases)) {
            let is_obsolete = *phase > 0 && replaced.binary_search(&entry.node).is_ok();
            if is_obsolete {
                self.obsolete.insert(number);
            }
            if is_obsolete || *phase >= ARCHIVED {
                self.served.remove(number);
            }
        }
        let pins = read_pins(&self.layout, &self.bookmarks)?;
        for revision in self.find(&pins).into_values() {
            self.served.insert(revision);
        }
        // Parents come before their children, so that one pass reveals all ancestors.
        let revisions = (0..self.changelog.len()).zip(self.changelog.entries().iter().zip(phases));
        for (number, (entry, _)) in revisions.rev().filter(|(_, (_, phase))| **phase > 0) {
            if self.served.contains(number) {
                [entry.p1(), entry.p2()].into_iter().flatten().for_each(|parent| {
                    self.served.insert(parent);
                });
            }
        }
        for (number, phase) in (0..).zip(phases) {
            if *phase >= SECRET {
                self.served.remove(number);
            }
        }
        Ok(())
    }

    /// Returns the revision numbers of nodes, visible or not, in one pass over the changelog. Nodes
    /// that do not exist are left out.
    pub(crate) fn find(&self, nodes: &[Node]) -> IdMap<Node, u32> {
        let mut missing: IdMap<Node, ()> = nodes.iter().map(|node| (*node, ())).collect();
        let mut found = IdMap::default();
        for (number, entry) in (0..).zip(self.changelog.entries()) {
            if missing.is_empty() {
                break;
            }
            if missing.remove(&entry.node).is_some() {
                found.insert(entry.node, number);
            }
        }
        found
    }

    /// Returns the revision numbers of visible changesets.
    pub(crate) fn find_served(&self, nodes: &[Node]) -> IdMap<Node, u32> {
        let mut found = self.find(nodes);
        found.retain(|_, revision| self.served.contains(*revision));
        found
    }

    /// Returns the visible changesets without visible children, the newest first.
    pub(crate) fn heads(&self) -> Vec<u32> {
        let mut heads = self.served.clone();
        for revision in self.served.iter() {
            if let Some(entry) = self.changelog.entry(revision) {
                [entry.p1(), entry.p2()].into_iter().flatten().for_each(|parent| {
                    heads.remove(parent);
                });
            }
        }
        let mut heads: Vec<u32> = heads.iter().collect();
        heads.reverse();
        heads
    }

    /// Returns an error if changesets were removed since the snapshot was made.
    pub(crate) fn check_unchanged(&self) -> Result<(), LocalError> {
        if self.changelog.is_current()? {
            return Ok(());
        }
        let what = "changesets were removed while they were read: try again".to_owned();
        Err(LocalError::Damaged { path: self.layout.store.join("00changelog.i"), what })
    }
}

fn read_changelog(layout: &StoreLayout) -> Result<Revlog, LocalError> {
    let index = layout.store.join("00changelog.i");
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        let opened = Revlog::open(index.clone(), layout.store.join("00changelog.d"))?;
        let changelog = opened.unwrap_or_else(|| Revlog::without_revisions(index.clone()));
        if changelog.is_complete() {
            return Ok(changelog);
        }
    }
    let what = "the last changeset is incomplete".to_owned();
    Err(LocalError::Damaged { path: index, what })
}

/// Parses lines of a node and a name, and sorts them by name. Mercurial warns of lines of any other
/// form and leaves them out; here the branches of bookmarks that are left out would be deleted.
fn parse_bookmarks(path: &Path, text: &[u8]) -> Result<Vec<(Vec<u8>, Node)>, LocalError> {
    let mut bookmarks = Vec::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)) {
        if line.is_empty() {
            continue;
        }
        let Some(bookmark) = parse_bookmark(line) else {
            let line = String::from_utf8_lossy(line);
            let what = format!("line {number}: no node and name of a bookmark: {line:?}");
            return Err(LocalError::Damaged { path: path.to_owned(), what });
        };
        bookmarks.push(bookmark);
    }
    // Of a repeated name, the last line counts.
    bookmarks.reverse();
    bookmarks.sort_by(|(name, _), (other, _)| name.cmp(other));
    bookmarks.dedup_by(|(name, _), (before, _)| name == before);
    Ok(bookmarks)
}

fn parse_bookmark(line: &[u8]) -> Option<(Vec<u8>, Node)> {
    let (digits, name) = line.split_at_checked(40)?;
    Some((name.strip_prefix(b" ")?.to_vec(), Node::from_hex(digits)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_have_names_with_spaces() {
        let digits = "00112233445566778899aabbccddeeff00112233";
        let older = "f".repeat(40);
        let text = format!("{older} @\n{digits} with space\n \n\n{digits} @\n");
        let path = Path::new("bookmarks");
        let bookmarks = parse_bookmarks(path, text.as_bytes()).expect("bookmarks");
        let names: Vec<_> = bookmarks.iter().map(|(name, _)| name.as_slice()).collect();
        assert_eq!(names, [b"@".as_slice(), b"with space"]);
        assert!(bookmarks.iter().all(|(_, node)| node.to_string() == digits));
    }
    #[test]
    fn damaged_bookmarks_are_named() {
        let digits = "00112233445566778899aabbccddeeff00112233";
        for line in ["odd", digits, &format!("{digits}@"), &format!("Z{} @", &digits[1..])] {
            let text = format!("{digits} @\n{line}\n");
            let error = parse_bookmarks(Path::new("x/bookmarks"), text.as_bytes());
            let expected = format!("x/bookmarks: line 2: no node and name of a bookmark: {line:?}");
            assert_eq!(error.expect_err(line).to_string(), expected);
        }
    }
}

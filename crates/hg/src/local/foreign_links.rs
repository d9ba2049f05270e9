//! File revisions that were introduced by a changeset that is not sent, but which a changeset that
//! is sent uses as well.
//!
//! A file revision names one changeset only, the first that used it. When that one is hidden or on
//! another branch, the number does not tell who needs the revision, and only the manifests do.

use crate::delta::hunks;
use crate::local::change_scope::ChangeScope;
use crate::local::layout::StoreLayout;
use crate::object_id::{IdMap, Node};
use crate::revision::{ChangeError, Revision};
use crate::revlog::{ChunkDecoder, Revlog, RevlogEntry, RevlogError};
use rustc_hash::FxHashMap;

/// Such file revisions by path and node, and the first changeset sent that uses each.
#[derive(Default)]
pub(crate) struct ForeignLinks {
    links: FxHashMap<Vec<u8>, IdMap<Node, Option<u32>>>,
}

impl ForeignLinks {
    /// Collects the file revisions of changesets that are neither sent nor known, in the files
    /// that are sent.
    pub(crate) fn collect<'p>(
        layout: &StoreLayout,
        paths: impl Iterator<Item = &'p Vec<u8>>,
        scope: &ChangeScope,
    ) -> Result<ForeignLinks, RevlogError> {
        let mut links = FxHashMap::default();
        for path in paths {
            let Some((index, data)) = layout.filelog(path) else { continue };
            let Some(filelog) = Revlog::open(index, data)? else { continue };
            let is_foreign = |entry: &&RevlogEntry| {
                !scope.is_missing(entry.link()) && !scope.is_common(entry.link())
            };
            let foreign = filelog.entries().iter().filter(is_foreign);
            let nodes: IdMap<Node, _> = foreign.map(|entry| (entry.node, None)).collect();
            if !nodes.is_empty() {
                links.insert(path.clone(), nodes);
            }
        }
        Ok(ForeignLinks { links })
    }

    /// Returns the changeset that a file revision is sent with, if one uses it.
    pub(crate) fn link(&self, path: &[u8], node: Node) -> Option<u32> {
        self.links.get(path)?.get(&node).copied().flatten()
    }

    /// Notes the file revisions that a manifest names, for the changeset that has the manifest. A
    /// line that the manifest shares with a parent was noted there, or the receiver has it.
    pub(crate) fn scan(
        &mut self,
        manifest: &mut Revlog,
        number: u32,
        revision: &Revision,
        changeset: u32,
        decoder: &mut ChunkDecoder,
    ) -> Result<(), ChangeError> {
        if self.links.is_empty() {
            return Ok(());
        }
        if revision.base.is_null() || ![revision.p1, revision.p2].contains(&revision.base) {
            self.scan_lines(manifest.read_text(number, decoder)?, changeset);
            return Ok(());
        }
        for hunk in hunks(&revision.delta, usize::MAX) {
            let hunk = hunk.map_err(|error| manifest.damage(number, error.to_string()))?;
            self.scan_lines(hunk.data, changeset);
        }
        Ok(())
    }

    fn scan_lines(&mut self, lines: &[u8], changeset: u32) {
        for line in lines.split(|byte| *byte == b'\n') {
            let Some(end) = memchr::memchr(0, line) else { continue };
            let (path, rest) = line.split_at_checked(end).unwrap_or((line, b""));
            let Some(links) = self.links.get_mut(path) else { continue };
            let Some(node) = rest.get(1..41).and_then(Node::from_hex) else { continue };
            if let Some(link @ None) = links.get_mut(&node) {
                *link = Some(changeset);
            }
        }
    }
}

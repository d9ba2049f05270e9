//! Revisions of a revlog, with deltas that the receiver can apply.

use crate::line_delta::write_full_delta;
use crate::local::change_scope::ChangeScope;
use crate::revision::Revision;
use crate::revision_set::RevisionSet;
use crate::revlog::{ChunkDecoder, Revlog, RevlogError};

/// A function that writes the delta between two texts over a buffer.
pub(crate) type DeltaWriter = fn(&[u8], &[u8], &mut Vec<u8>);

/// The revisions of one revlog that are sent, in the order of their numbers.
pub(crate) struct RevlogGroup {
    pub(crate) selected: RevisionSet,
    next: u32,
    previous: Option<u32>,
    write_delta: DeltaWriter,
}

impl RevlogGroup {
    /// Creates the group of some revisions. `write_delta` is used where a stored delta cannot be.
    pub(crate) fn new(selected: RevisionSet, write_delta: DeltaWriter) -> RevlogGroup {
        RevlogGroup { selected, next: 0, previous: None, write_delta }
    }

    /// Advances to the next revision.
    pub(crate) fn next_selected(&mut self) -> Option<u32> {
        let revision = self.selected.next_from(self.next)?;
        self.next = revision + 1;
        Some(revision)
    }

    /// Fills in a revision, except for its link. The stored delta is taken if the receiver has its
    /// base: a revision sent before, or a parent of a changeset that it has.
    pub(crate) fn write(
        &mut self,
        revlog: &mut Revlog,
        number: u32,
        scope: &ChangeScope,
        decoder: &mut ChunkDecoder,
        revision: &mut Revision,
    ) -> Result<(), RevlogError> {
        let Some(entry) = revlog.entry(number).copied() else {
            return Err(revlog.damage(number, "no such revision".to_owned()));
        };
        revision.node = entry.node;
        revision.p1 = revlog.node(entry.p1());
        revision.p2 = revlog.node(entry.p2());
        revision.flags = entry.flags();
        let previous = self.previous.replace(number);
        let is_available = |base: &u32| {
            let is_parent = entry.p1() == Some(*base) || entry.p2() == Some(*base);
            self.selected.contains(*base)
                || is_parent
                    && revlog.entry(*base).is_some_and(|entry| scope.is_common(entry.link()))
        };
        let stored_base = revlog.delta_base(number);
        if let Some(base) = stored_base.filter(is_available) {
            revision.base = revlog.node(Some(base));
            return revlog.read_data(number, decoder, &mut revision.delta);
        }
        let base = stored_base.and_then(|_| {
            let parents = [entry.p1(), entry.p2()].into_iter().flatten().find(is_available);
            parents.or(previous)
        });
        revision.base = revlog.node(base);
        let Some(base) = base else {
            write_full_delta(revlog.read_text(number, decoder)?, &mut revision.delta);
            return Ok(());
        };
        let base = revlog.read_text(base, decoder)?.to_vec();
        (self.write_delta)(&base, revlog.read_text(number, decoder)?, &mut revision.delta);
        Ok(())
    }
}

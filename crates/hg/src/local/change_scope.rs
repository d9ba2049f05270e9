//! Which changesets a receiver asks for.

use crate::local::snapshot::Snapshot;
use crate::object_id::Node;
use crate::revision::ChangeError;
use crate::revision_set::RevisionSet;
use crate::revlog::Revlog;

/// The changesets that are sent, and those that the receiver has.
pub(crate) struct ChangeScope {
    pub(crate) missing: RevisionSet,
    pub(crate) common: RevisionSet,
    /// Whether the changelog has other changesets.
    pub(crate) has_others: bool,
}

impl ChangeScope {
    /// Finds the ancestors of `heads` that are no ancestors of `common`. An invisible changeset
    /// cannot be a head; in `common` it is ignored.
    pub(crate) fn new(
        snapshot: &Snapshot,
        heads: &[Node],
        common: &[Node],
    ) -> Result<ChangeScope, ChangeError> {
        let changelog = &snapshot.changelog;
        let found = snapshot.find_served(heads);
        let unknown = heads.iter().find(|head| !head.is_null() && !found.contains_key(head));
        if let Some(head) = unknown {
            return Err(ChangeError::Aborted { message: format!("unknown revision '{head}'") });
        }
        let mut missing = RevisionSet::new(changelog.len());
        let mut known = RevisionSet::new(changelog.len());
        snapshot.find_served(common).into_values().for_each(|revision| known.insert(revision));
        add_ancestors(changelog, &mut known);
        found.into_values().for_each(|revision| missing.insert(revision));
        add_ancestors(changelog, &mut missing);
        known.iter().for_each(|revision| missing.remove(revision));
        let has_others = missing.count() + known.count() < changelog.len();
        Ok(ChangeScope { missing, common: known, has_others })
    }

    /// Returns whether a revision of another revlog belongs to a changeset that is sent.
    pub(crate) fn is_missing(&self, link: Option<u32>) -> bool {
        link.is_some_and(|link| self.missing.contains(link))
    }

    /// Returns whether a revision of another revlog belongs to a changeset that the receiver has.
    pub(crate) fn is_common(&self, link: Option<u32>) -> bool {
        link.is_some_and(|link| self.common.contains(link))
    }
}

fn add_ancestors(changelog: &Revlog, revisions: &mut RevisionSet) {
    for (revision, entry) in (0..changelog.len()).zip(changelog.entries()).rev() {
        if revisions.contains(revision) {
            for parent in [entry.p1(), entry.p2()].into_iter().flatten() {
                revisions.insert(parent);
            }
        }
    }
}

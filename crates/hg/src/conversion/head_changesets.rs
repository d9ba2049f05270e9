//! The changesets without children, as a conversion adds changesets.

use crate::changeset::Changeset;
use crate::metadata::HeadChangeset;
use crate::object_id::{IdMap, Node};

/// A changeset of this conversion.
pub(super) struct NewChangeset {
    pub(super) node: Node,
    pub(super) p1: Node,
    pub(super) p2: Node,
}

/// The changesets without children.
pub(super) struct Heads {
    heads: Vec<Option<HeadChangeset>>,
    places: IdMap<Node, usize>,
}

impl Heads {
    pub(super) fn new(stored: &[HeadChangeset]) -> Heads {
        let mut heads = Heads { heads: Vec::new(), places: IdMap::default() };
        stored.iter().for_each(|head| heads.push(head.clone()));
        heads
    }

    fn push(&mut self, head: HeadChangeset) {
        self.places.insert(head.node, self.heads.len());
        self.heads.push(Some(head));
    }

    pub(super) fn add(&mut self, changeset: &NewChangeset, parsed: &Changeset<'_>) {
        for parent in [changeset.p1, changeset.p2] {
            let place = self.places.remove(&parent);
            if let Some(head) = place.and_then(|place| self.heads.get_mut(place)) {
                *head = None;
            }
        }
        let branch = parsed.branch().to_vec();
        let is_closed = parsed.closes_branch();
        self.push(HeadChangeset { node: changeset.node, is_closed, branch });
    }

    pub(super) fn finish(self) -> Vec<HeadChangeset> {
        self.heads.into_iter().flatten().collect()
    }
}

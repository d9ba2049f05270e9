//! A set of revision numbers of one revlog, one bit for each revision.

/// A set of revision numbers below a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RevisionSet {
    words: Vec<u64>,
}

impl RevisionSet {
    /// Creates an empty set for the revisions below `limit`.
    pub(crate) fn new(limit: u32) -> RevisionSet {
        RevisionSet { words: vec![0; (limit as usize).div_ceil(64)] }
    }

    /// Adds a revision. One beyond the limit is ignored.
    pub(crate) fn insert(&mut self, revision: u32) {
        if let Some(word) = self.words.get_mut(revision as usize / 64) {
            *word |= 1 << (revision % 64);
        }
    }

    /// Removes a revision.
    pub(crate) fn remove(&mut self, revision: u32) {
        if let Some(word) = self.words.get_mut(revision as usize / 64) {
            *word &= !(1 << (revision % 64));
        }
    }

    /// Returns whether the set has a revision.
    pub(crate) fn contains(&self, revision: u32) -> bool {
        self.words.get(revision as usize / 64).is_some_and(|word| word >> (revision % 64) & 1 == 1)
    }

    /// Returns the number of revisions.
    pub(crate) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns whether there is no revision.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the first revision that is not before `start`.
    pub(crate) fn next_from(&self, start: u32) -> Option<u32> {
        let mut index = start as usize / 64;
        let mut word = self.words.get(index)? & (u64::MAX << (start % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(index as u32 * 64 + word.trailing_zeros())
    }

    /// Returns the revisions, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let mut next = self.next_from(0);
        std::iter::from_fn(move || {
            let current = next?;
            next = current.checked_add(1).and_then(|start| self.next_from(start));
            Some(current)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_of_bits_is_a_set(
            inserted in proptest::collection::vec(0_u32..300, 0..40),
            removed in proptest::collection::vec(0_u32..300, 0..40),
            start in 0_u32..300,
        ) {
            let mut set = RevisionSet::new(300);
            let mut expected = BTreeSet::new();
            for revision in inserted {
                set.insert(revision);
                expected.insert(revision);
            }
            for revision in removed {
                set.remove(revision);
                expected.remove(&revision);
            }
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.count() as usize, expected.len());
            prop_assert_eq!(set.is_empty(), expected.is_empty());
            prop_assert_eq!(set.next_from(start), expected.range(start..).next().copied());
            prop_assert_eq!(set.contains(start), expected.contains(&start));
        }
    }

    #[test]
    fn revisions_beyond_the_limit_are_ignored() {
        let mut set = RevisionSet::new(10);
        set.insert(1_000);
        set.remove(1_000);
        assert!(!set.contains(1_000) && set.is_empty());
    }
}

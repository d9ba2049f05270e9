//! A bound between two items of a sorted collection.
//!
//! A bound names no item and counts none, so it stays in place when items are added or removed
//! around it. Separate from `execution` because both result sets and cursors start at a bound.

use larder_format::collate::primary_weights;
use larder_store::{Extractor, SortPosition};

/// The direction in which a sorted index is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanDirection {
    Ascending,
    Descending,
}

impl ScanDirection {
    pub(crate) fn new(is_descending: bool) -> ScanDirection {
        if is_descending { ScanDirection::Descending } else { ScanDirection::Ascending }
    }

    pub(crate) fn is_descending(self) -> bool {
        self == ScanDirection::Descending
    }

    pub(crate) fn reverse(self) -> ScanDirection {
        ScanDirection::new(!self.is_descending())
    }
}

/// The position where a scan of a sorted index begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScanStart {
    /// At the first position in the direction of the scan.
    Unbounded,
    /// Behind this position.
    After(SortPosition),
    /// No position follows the bound.
    Exhausted,
}

/// A bound between two items. Its meaning does not depend on the direction of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SortBound {
    /// Before all items, including those added later.
    Start,
    /// Behind all smaller positions.
    Before(SortPosition),
    /// Behind all items, including those added later.
    End,
}

impl SortBound {
    /// The bound before the first item whose key begins with a text, or else that sorts after it.
    /// Case and accents do not count, unless the collation makes them a different letter.
    pub(crate) fn from_text(
        extractor: &Extractor,
        text: &str,
        direction: ScanDirection,
    ) -> SortBound {
        let key = extractor.sort_key(text);
        match (primary_weights(&key), direction) {
            ([], _) => SortBound::before_all(direction),
            (letters, ScanDirection::Ascending) => SortBound::before_prefix(letters),
            (letters, ScanDirection::Descending) => SortBound::after_prefix(letters),
        }
    }

    /// The bound before all items in this direction.
    pub(crate) fn before_all(direction: ScanDirection) -> SortBound {
        if direction.is_descending() { SortBound::End } else { SortBound::Start }
    }

    /// The bound before all keys with this prefix.
    pub(crate) fn before_prefix(prefix: &[u8]) -> SortBound {
        SortBound::Before(SortPosition { key: prefix.to_vec(), row: i64::MIN })
    }

    /// The bound after all keys with this prefix.
    pub(crate) fn after_prefix(prefix: &[u8]) -> SortBound {
        let mut key = prefix.to_vec();
        // The smallest key that is greater than all of them.
        while let Some(last) = key.pop() {
            if let Some(next) = last.checked_add(1) {
                key.push(next);
                return SortBound::before_prefix(&key);
            }
        }
        SortBound::End
    }

    /// Returns the position where a scan in this direction begins, for
    /// [`larder_store::IndexReader::for_each_position`].
    pub(crate) fn scan_start(&self, direction: ScanDirection) -> ScanStart {
        match (self, direction) {
            (SortBound::Start, ScanDirection::Ascending)
            | (SortBound::End, ScanDirection::Descending) => ScanStart::Unbounded,
            (SortBound::Start, ScanDirection::Descending)
            | (SortBound::End, ScanDirection::Ascending) => ScanStart::Exhausted,
            (SortBound::Before(position), ScanDirection::Descending) => {
                ScanStart::After(position.clone())
            }
            (SortBound::Before(SortPosition { key, row }), ScanDirection::Ascending) => {
                ScanStart::After(SortPosition { key: key.clone(), row: row.saturating_sub(1) })
            }
        }
    }

    /// Returns how many of these positions, which are in ascending order, lie before the bound.
    pub(crate) fn count_before(&self, positions: &[SortPosition]) -> usize {
        let ascending = ScanDirection::Ascending;
        positions.partition_point(|at| self.has_passed(&at.key, at.row, ascending))
    }

    /// Returns whether an item lies before the bound in this direction.
    pub(crate) fn has_passed(&self, key: &[u8], row: i64, direction: ScanDirection) -> bool {
        let is_smaller = match self {
            SortBound::Start => false,
            SortBound::Before(position) => (key, row) < (position.key.as_slice(), position.row),
            SortBound::End => true,
        };
        is_smaller != direction.is_descending()
    }
}

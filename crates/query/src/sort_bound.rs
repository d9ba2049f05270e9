//! Places between the items of an order: where a text would stand, and what lies on either side.
//!
//! A gap names no item and counts nothing, so it stays where it is whatever comes and goes around
//! it. It is apart because answers begin at one (`run`) and cursors stand in one (`cursor`).

use larder_format::collate::primary_weights;
use larder_store::{Extractor, SortPosition};

/// A place between two items, the same for both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SortBound {
    /// Before all items, those that come later too.
    Start,
    /// Behind all smaller places.
    Before(SortPosition),
    /// Behind all items, those that come later too.
    End,
}

impl SortBound {
    /// Before the first item that begins with a text, or else that lies behind where it would. Case
    /// and accents do not count, except where they make another letter in this order.
    pub(crate) fn from_text(deriver: &Extractor, text: &str, backwards: bool) -> SortBound {
        let key = deriver.sort_key(text);
        let letters = primary_weights(&key);
        if letters.is_empty() {
            return SortBound::start(backwards);
        }
        if backwards { SortBound::after_prefix(letters) } else { SortBound::before_prefix(letters) }
    }

    /// Before everything, in this direction.
    pub(crate) fn start(backwards: bool) -> SortBound {
        if backwards { SortBound::End } else { SortBound::Start }
    }

    /// Before all keys that begin so.
    pub(crate) fn before_prefix(beginning: &[u8]) -> SortBound {
        SortBound::Before(SortPosition { key: beginning.to_vec(), row: i64::MIN })
    }

    /// Behind all keys that begin so.
    pub(crate) fn after_prefix(beginning: &[u8]) -> SortBound {
        let mut key = beginning.to_vec();
        // The least key that is greater than all of them.
        while let Some(last) = key.pop() {
            if let Some(next) = last.checked_add(1) {
                key.push(next);
                return SortBound::before_prefix(&key);
            }
        }
        SortBound::End
    }

    /// What lies behind it in this direction, as [`larder_store::Reader::places`] wants it; `None`:
    /// nothing.
    pub(crate) fn last_place_before(&self, backwards: bool) -> Option<Option<SortPosition>> {
        match (self, backwards) {
            (SortBound::Start, false) | (SortBound::End, true) => Some(None),
            (SortBound::Start, true) | (SortBound::End, false) => None,
            (SortBound::Before(place), true) => Some(Some(place.clone())),
            (SortBound::Before(place), false) => Some(Some(SortPosition {
                key: place.key.clone(),
                row: place.row.saturating_sub(1),
            })),
        }
    }

    /// How many of these places, which are in their order, lie before it.
    pub(crate) fn count_before(&self, places: &[SortPosition]) -> usize {
        places.partition_point(|place| self.has_passed(&place.key, place.row, false))
    }

    /// Does this item lie before it in this direction?
    pub(crate) fn has_passed(&self, key: &[u8], row: i64, backwards: bool) -> bool {
        let smaller = match self {
            SortBound::Start => false,
            SortBound::Before(gap) => (key, row) < (gap.key.as_slice(), gap.row),
            SortBound::End => true,
        };
        smaller != backwards
    }
}

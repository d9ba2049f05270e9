//! Places between the items of an order: where a text would stand, and what lies on either side.
//!
//! A gap names no item and counts nothing, so it stays where it is whatever comes and goes around it. It is apart
//! because answers begin at one (`run`) and cursors stand in one (`cursor`).

use larder_format::collate::letters;
use larder_store::Deriver;
use larder_store::index::Place;

/// A place between two items, the same for both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Before all items, those that come later too.
    Start,
    /// Behind all smaller places.
    Before(Place),
    /// Behind all items, those that come later too.
    End,
}

impl Gap {
    /// Before the first item that begins with a text, or else that lies behind where it would. Case and accents do not
    /// count, except where they make another letter in this order.
    pub(crate) fn at_text(deriver: &Deriver, text: &str, backwards: bool) -> Gap {
        let key = deriver.sort_key(text);
        let letters = letters(&key);
        if letters.is_empty() {
            return Gap::first(backwards);
        }
        if backwards { Gap::behind(letters) } else { Gap::before(letters) }
    }

    /// Before everything, in this direction.
    pub(crate) fn first(backwards: bool) -> Gap {
        if backwards { Gap::End } else { Gap::Start }
    }

    /// Before all keys that begin so.
    pub(crate) fn before(beginning: &[u8]) -> Gap {
        Gap::Before(Place { key: beginning.to_vec(), row: i64::MIN })
    }

    /// Behind all keys that begin so.
    pub(crate) fn behind(beginning: &[u8]) -> Gap {
        let mut key = beginning.to_vec();
        // The least key that is greater than all of them.
        while let Some(last) = key.pop() {
            if let Some(next) = last.checked_add(1) {
                key.push(next);
                return Gap::before(&key);
            }
        }
        Gap::End
    }

    /// What lies behind it in this direction, as [`larder_store::Reader::places`] wants it; `None`: nothing.
    pub(crate) fn after(&self, backwards: bool) -> Option<Option<Place>> {
        match (self, backwards) {
            (Gap::Start, false) | (Gap::End, true) => Some(None),
            (Gap::Start, true) | (Gap::End, false) => None,
            (Gap::Before(place), true) => Some(Some(place.clone())),
            (Gap::Before(place), false) => {
                Some(Some(Place { key: place.key.clone(), row: place.row.saturating_sub(1) }))
            }
        }
    }

    /// How many of these places, which are in their order, lie before it.
    pub(crate) fn number(&self, places: &[Place]) -> usize {
        places.partition_point(|place| self.has_passed(&place.key, place.row, false))
    }

    /// Does this item lie before it in this direction?
    pub(crate) fn has_passed(&self, key: &[u8], row: i64, backwards: bool) -> bool {
        let smaller = match self {
            Gap::Start => false,
            Gap::Before(gap) => (key, row) < (gap.key.as_slice(), gap.row),
            Gap::End => true,
        };
        smaller != backwards
    }
}

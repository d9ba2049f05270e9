//! What happened when, in so many boxes at most.
//!
//! How long a log is nobody knows before its end, so boxes are a millisecond wide at first, and whenever there are
//! too many, they become wider: seconds, minutes, hours, days. Lines that come out of order, or from another
//! century, find their place, too.

use std::collections::BTreeMap;

/// How wide boxes may be, in microseconds: each is a multiple of the one before. Then they double.
const WIDTHS: [i64; 16] = [
    1_000,
    10_000,
    100_000,
    SECOND,
    5 * SECOND,
    15 * SECOND,
    60 * SECOND,
    5 * 60 * SECOND,
    15 * 60 * SECOND,
    30 * 60 * SECOND,
    HOUR,
    2 * HOUR,
    6 * HOUR,
    12 * HOUR,
    24 * HOUR,
    7 * 24 * HOUR,
];
const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;

/// Boxes in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline<T> {
    /// How wide a box is, in microseconds.
    pub width: i64,
    most: usize,
    boxes: BTreeMap<i64, T>,
}

/// What can be put together with the same of the next box.
pub trait Joined: Default {
    /// Takes in what was later.
    fn join(&mut self, later: Self);
}

impl<T: Joined> Timeline<T> {
    /// None yet, and never more than so many.
    #[must_use]
    pub fn new(most: usize) -> Timeline<T> {
        Timeline { width: WIDTHS[0], most: most.max(2), boxes: BTreeMap::new() }
    }

    /// The box of this moment.
    pub fn at(&mut self, at: i64) -> &mut T {
        while self.boxes.len() > self.most || self.across(at) > self.most as u64 {
            self.widen();
        }
        self.boxes.entry(at.div_euclid(self.width)).or_default()
    }

    /// When each box that has something begins, in order.
    pub fn boxes(&self) -> impl Iterator<Item = (i64, &T)> {
        self.boxes.iter().map(|(number, it)| (number.saturating_mul(self.width), it))
    }

    /// How many boxes there are from the first to the last, with this moment in one of them.
    fn across(&self, at: i64) -> u64 {
        let at = at.div_euclid(self.width);
        let first = self.boxes.keys().next().map_or(at, |first| at.min(*first));
        let last = self.boxes.keys().next_back().map_or(at, |last| at.max(*last));
        last.abs_diff(first).saturating_add(1)
    }

    fn widen(&mut self) {
        let wider = WIDTHS.iter().find(|width| **width > self.width);
        let wider = wider.copied().unwrap_or(self.width.saturating_mul(2));
        let times = (wider / self.width).max(2);
        self.width = self.width.saturating_mul(times);
        for (number, it) in std::mem::take(&mut self.boxes) {
            self.boxes.entry(number.div_euclid(times)).or_default().join(it);
        }
    }
}

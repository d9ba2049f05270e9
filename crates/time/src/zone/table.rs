//! Transitions in order, for answers by bisection; and the system's zones, of which those of our time are tabled.

use crate::civil::{Civil, DAY, Instant, year_start};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::OnceLock;

/// Changes of a zone's offset within a stretch of time.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Moments outside of them are not for this table to say.
    from: Instant,
    to: Instant,
    /// The offset before the first change.
    first: i32,
    changes: Vec<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    at: Instant,
    /// The first clock time that is read with the offset after the change. Where the clock goes forward, it is what
    /// it shows right after, where it goes back, what it shows right before: what is left out is before, as is
    /// the first of what comes twice.
    shown: i64,
    offset: i32,
}

impl Table {
    /// A table of changes in order; those that change nothing are left out.
    pub(super) fn new(
        from: Instant,
        to: Instant,
        first: i32,
        all: impl IntoIterator<Item = (Instant, i32)>,
    ) -> Table {
        let mut changes: Vec<Change> = Vec::new();
        let mut before = first;
        for (at, offset) in all {
            // Of two at one moment, the later one holds.
            if changes.last().is_some_and(|last| last.at == at) {
                let _ = changes.pop();
                before = changes.last().map_or(first, |last| last.offset);
            }
            if offset == before {
                continue;
            }
            let shown = at.seconds() + i64::from(offset.max(before));
            changes.push(Change { at, shown, offset });
            before = offset;
        }
        changes.shrink_to_fit();
        Table { from, to, first, changes }
    }

    pub(super) fn offset(&self, instant: Instant) -> Option<i32> {
        if instant < self.from || instant >= self.to {
            return None;
        }
        Some(self.after(self.changes.partition_point(|change| change.at <= instant)))
    }

    /// The offset that a clock time is read with; none within a day of the ends of the table.
    pub(super) fn offset_of(&self, civil: Civil) -> Option<i32> {
        let seconds = civil.seconds();
        let starts = self.from == Instant::MIN || seconds >= self.from.seconds() + DAY;
        let ends = self.to == Instant::MAX || seconds < self.to.seconds() - DAY;
        (starts && ends)
            .then(|| self.after(self.changes.partition_point(|change| change.shown <= seconds)))
    }

    fn after(&self, count: usize) -> i32 {
        let last = count.checked_sub(1).and_then(|last| self.changes.get(last));
        last.map_or(self.first, |change| change.offset)
    }

    /// The last change, or what always was.
    pub(super) fn last(&self) -> (Instant, i32) {
        let last = self.changes.last();
        last.map_or((Instant::MIN, self.first), |change| (change.at, change.offset))
    }

    pub(super) fn transitions(&self, from: Instant, to: Instant) -> Vec<(Instant, i32)> {
        let within = self.changes.iter().skip_while(|change| change.at < from);
        within
            .take_while(|change| change.at < to)
            .map(|change| (change.at, change.offset))
            .collect()
    }
}

/// A zone of the system's data.
pub(super) struct System {
    pub(super) name: String,
    zone: TimeZone,
    table: OnceLock<Table>,
    offsets: OnceLock<(i32, i32)>,
}

impl System {
    pub(super) fn new(zone: TimeZone, name: &str) -> System {
        let (table, offsets) = (OnceLock::new(), OnceLock::new());
        System { name: name.to_string(), zone, table, offsets }
    }

    /// The changes from 1970 to 2050, which answer nearly all questions.
    pub(super) fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let from = Instant::clamped(0);
            let to = Instant::clamped(year_start(2050) * DAY);
            Table::new(from, to, self.offset(from), self.transitions(from, to))
        })
    }

    /// The lowest and the highest offset: what is known of the past, and of the future until the same comes every year.
    pub(super) fn offsets(&self) -> (i32, i32) {
        *self.offsets.get_or_init(|| {
            let to = Instant::clamped(year_start(2150) * DAY);
            let later = self.transitions(Instant::MIN, to).into_iter().map(|(_, offset)| offset);
            let first = self.offset(Instant::MIN);
            later.fold((first, first), |(low, high), offset| (low.min(offset), high.max(offset)))
        })
    }

    pub(super) fn offset(&self, instant: Instant) -> i32 {
        self.zone.to_offset(timestamp(instant)).seconds()
    }

    pub(super) fn transitions(&self, from: Instant, to: Instant) -> Vec<(Instant, i32)> {
        let before = from.plus(-1);
        let mut offset = self.offset(before);
        let mut found = Vec::new();
        for change in self.zone.following(timestamp(before)) {
            let at = Instant::clamped(change.timestamp().as_second());
            if at >= to {
                break;
            }
            let after = change.offset().seconds();
            if after != offset {
                found.push((at, after));
            }
            offset = after;
        }
        found
    }
}

/// The nearest moment that jiff has.
fn timestamp(instant: Instant) -> Timestamp {
    let seconds =
        instant.seconds().clamp(Timestamp::MIN.as_second() + 1, Timestamp::MAX.as_second());
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH)
}

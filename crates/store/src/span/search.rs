//! Finding what is in a window: which rows of the interval index can be in it, and of which of these it has to be asked.

use super::{
    ALARM_SLOTS, ALARMS, ANY, CLASSES, FLOATING, Hint, MONTH_DAYS, Searched, Slot, WEEKDAYS, What,
    Window, YEAR_DAYS, unpack,
};
use crate::collection::Known;
use crate::deriver::{Deriver, Derivers};
use crate::error::{Result, at};
use crate::reader::Reader;
use crate::series;
use crate::times::{SHORT, Times, Verdict};
use larder_time::civil::{Civil, DAY, Date, Weekday};
use larder_time::series::Pattern;
use larder_time::zone::Zone;
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::ops::{Range, RangeInclusive};

/// Clocks of the world differ from UTC by less than this, and change by less.
const APART: i64 = DAY;
/// Some show as much less than UTC, others as much more: days began and ended with the date line elsewhere.
const WESTERNMOST: i64 = -16 * 3600;
const EASTERNMOST: i64 = 16 * 3600;
/// What is on a day may take so much longer where the clock changes.
const CHANGE: i64 = 3 * 3600;

/// The slots in which something can begin between two days, both included.
fn slots(first: i64, last: i64) -> Vec<RangeInclusive<i64>> {
    let days = last - first;
    let (a, b) = (Date::of_day(first), Date::of_day(last));
    let mut slots = vec![ANY..=ANY];
    let mut add = |all: bool, whole: RangeInclusive<i64>, from: Slot, to: Slot| {
        let (from, to) = (from.number(), to.number());
        match (all, from <= to) {
            (true, _) => slots.push(whole),
            (false, true) => slots.push(from..=to),
            (false, false) => slots.extend([*whole.start()..=to, from..=*whole.end()]),
        }
    };
    let (from, to) = (Weekday::of_day(first), Weekday::of_day(last));
    add(days >= 6, WEEKDAYS..=WEEKDAYS + 6, Slot::Weekday(from), Slot::Weekday(to));
    let month = MONTH_DAYS + 1..=MONTH_DAYS + 31;
    add(days >= 30, month, Slot::MonthDay(a.day), Slot::MonthDay(b.day));
    let year = YEAR_DAYS + 32..=YEAR_DAYS + 13 * 32;
    add(days >= 364, year, Slot::YearDay(a.month, a.day), Slot::YearDay(b.month, b.day));
    if days < 364 {
        // What may be on any day of the first month.
        let month = Slot::YearDay(a.month, 0).number();
        slots.push(month..=month);
    }
    slots
}
/// A search, as it goes from row to row.
struct Search<'a> {
    conn: &'a Connection,
    deriver: &'a Deriver,
    window: &'a Window,
    found: Searched,
    /// The times in a week and in a year that the window has: in UTC, and by the clock of whoever asks.
    patterns: (Pattern, Pattern),
    /// How much the clock of whoever asks changes, at most.
    change: i64,
    /// Series that have to be asked themselves, and where in `data` they are; 0..0: they are beside the item.
    open: Vec<(i64, Range<usize>)>,
    data: Vec<u8>,
    /// The zones of those that were asked, by their names: few, which is found out sooner than they are looked up.
    zones: Vec<(String, Zone)>,
}

/// The classes of spans that a collection has: a step for each, as most are not there.
pub(crate) fn classes(conn: &Connection, collection: i64) -> rusqlite::Result<Vec<i64>> {
    let sql =
        "SELECT class FROM idx_span WHERE collection = ?1 AND class > ?2 ORDER BY class LIMIT 1";
    let mut next = conn.prepare_cached(sql)?;
    let mut classes = Vec::new();
    loop {
        let last = classes.last().copied().unwrap_or(-1);
        let found = next.query_row((collection, last), |row| row.get(0)).optional()?;
        match found {
            Some(class) => classes.push(class),
            None => return Ok(classes),
        }
    }
}

/// Finds the items of these collections in a window.
pub(crate) fn search(
    conn: &Connection,
    deriver: &Deriver,
    collections: &[&Known],
    window: &Window,
) -> rusqlite::Result<Searched> {
    let (low, high) = window.local.offsets();
    let mut search = Search {
        conn,
        deriver,
        window,
        found: Searched::default(),
        patterns: patterns(window),
        change: i64::from(high) - i64::from(low),
        open: Vec::new(),
        data: Vec::new(),
        zones: Vec::new(),
    };
    if window.from < window.to {
        for collection in collections {
            search.spans(collection)?;
            search.slots(collection.of.id)?;
        }
        search.ask()?;
    }
    let mut found = search.found;
    found.rows.sort_unstable();
    found.rows.dedup();
    found.unsure.retain(|row| found.rows.binary_search(row).is_err());
    Ok(found)
}

/// When in the week and the year a window is: in UTC, and by a clock that floats.
fn patterns(window: &Window) -> (Pattern, Pattern) {
    let (from, to) = (window.from.seconds(), window.to.seconds());
    let (low, high) = window.local.offsets();
    let utc = Pattern::of_window(from, to);
    let shown = (from.saturating_add(low.into()), to.saturating_add(high.into()));
    (utc, if (low, high) == (0, 0) { utc } else { Pattern::of_window(shown.0, shown.1) })
}

impl Search<'_> {
    fn seconds(&self) -> (i64, i64) {
        (self.window.from.seconds(), self.window.to.seconds())
    }

    fn spans(&mut self, collection: &Known) -> rusqlite::Result<()> {
        let base = if self.window.what == What::Alarms { ALARMS } else { 0 };
        for &class in collection.classes(self.conn)? {
            if (base..base + ALARMS).contains(&class) {
                self.class(collection.of.id, class, class - base)?;
            }
        }
        Ok(())
    }

    fn class(&mut self, collection: i64, class: i64, kind: i64) -> rusqlite::Result<()> {
        let floating = kind >= FLOATING;
        let longest = CLASSES.get((kind % FLOATING) as usize);
        let (from, to) = self.seconds();
        let wider = if floating { APART } else { 0 };
        let first = longest.map_or(i64::MIN, |longest| from - wider - longest);
        let mut select = self.conn.prepare_cached(
            "SELECT end, item, series, start FROM idx_span
             WHERE collection = ?1 AND class = ?2 AND start >= ?3 AND start < ?4",
        )?;
        let mut rows = select.query((collection, class, first, to + wider))?;
        while let Some(row) = rows.next()? {
            self.found.visited += 1;
            if floating {
                self.floating(row)?;
                continue;
            }
            let end: i64 = row.get(0)?;
            if end <= from {
                continue;
            }
            let item = row.get(1)?;
            match row.get_ref(2)?.as_blob_or_null()? {
                None => self.found.rows.push(item),
                Some(series) => self.span(item, series, (row.get(3)?, end), false),
            }
        }
        Ok(())
    }

    /// A row in seconds of whatever clock asks.
    fn floating(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let instant = |seconds| self.window.local.instant(Civil::clamped(seconds)).seconds();
        let start = instant(row.get(3)?);
        let end = instant(row.get(0)?).max(start + 1);
        let (from, to) = self.seconds();
        if end <= from || start >= to {
            return Ok(());
        }
        let item = row.get(1)?;
        match row.get_ref(2)?.as_blob_or_null()? {
            None => self.found.rows.push(item),
            Some(series) => self.span(item, series, (start, end), true),
        }
        Ok(())
    }

    /// A series that reaches into the window, from and to when.
    fn span(&mut self, item: i64, mut series: &[u8], (start, end): (i64, i64), floating: bool) {
        let (from, to) = self.seconds();
        let Some(hint) = Hint::unpack(&mut series) else { return self.open(item, &[]) };
        let (begins, ends) = (start >= from, end <= to);
        let change = if floating { self.change } else { 0 };
        let sure = begins && hint.ends.0
            || ends && hint.ends.1
            || !begins && !ends && self.spans_gap(&hint, change);
        if sure {
            self.found.rows.push(item);
        } else {
            let window = if floating { self.patterns.1 } else { self.patterns.0 };
            self.unless_elsewhere(item, series, &hint, &[window]);
        }
    }

    /// Is the window as long as two occurrences can be apart? Then it has one of a series that goes on through all of it: the
    /// first that does not begin before it begins in it.
    fn spans_gap(&self, hint: &Hint, change: i64) -> bool {
        let (from, to) = self.seconds();
        hint.gap.is_some_and(|gap| gap.saturating_add(change) <= to - from)
    }

    fn slots(&mut self, collection: i64) -> rusqlite::Result<()> {
        let (from, to) = self.seconds();
        let earliest = Civil::clamped(from + WESTERNMOST - SHORT - CHANGE + 1);
        let days = earliest.day()..=Civil::clamped(to + EASTERNMOST - 1).day();
        let base = if self.window.what == What::Alarms { ALARM_SLOTS } else { 0 };
        let mut select = self.conn.prepare_cached(
            "SELECT end, item, series, start, slot FROM idx_slot
             WHERE collection = ?1 AND slot BETWEEN ?2 AND ?3 AND start < ?4",
        )?;
        let inner = self.whole_slots();
        for slots in slots(*days.start(), *days.end()) {
            let mut rows =
                select.query((collection, base + slots.start(), base + slots.end(), to + APART))?;
            while let Some(row) = rows.next()? {
                self.found.visited += 1;
                let end: i64 = row.get(0)?;
                if end.saturating_add(APART) <= from {
                    continue;
                }
                let start: i64 = row.get(3)?;
                // What has no time of its own needs only to have begun.
                let begun = start == i64::MIN || start.saturating_add(APART) <= from;
                let throughout = begun && end.saturating_sub(APART) >= to;
                let series = row.get_ref(2)?.as_blob_or_null()?;
                let inner = || {
                    let slot = row.get(4).map_or(-1, |slot: i64| slot - base);
                    inner.iter().any(|slots| slots.contains(&slot))
                };
                self.slot(row.get(1)?, series, throughout, &inner);
            }
        }
        Ok(())
    }

    /// A row of a slot in the window; is it `throughout` all of that, and is the slot's day?
    fn slot(
        &mut self,
        item: i64,
        series: Option<&[u8]>,
        throughout: bool,
        inner: &dyn Fn() -> bool,
    ) {
        let Some(mut series) = series else {
            return match throughout {
                true => self.found.rows.push(item),
                false => self.open(item, &[]),
            };
        };
        let Some(hint) = Hint::unpack(&mut series) else { return self.open(item, &[]) };
        if throughout && (hint.each_day && inner() || self.spans_gap(&hint, self.change)) {
            self.found.rows.push(item);
        } else {
            let windows = [self.patterns.0, self.patterns.1];
            self.unless_elsewhere(item, series, &hint, &windows);
        }
    }

    /// The slots of the days that are all in the window, wherever they are.
    fn whole_slots(&self) -> Vec<RangeInclusive<i64>> {
        let (from, to) = self.seconds();
        let first = Civil::clamped(from.saturating_add(EASTERNMOST + DAY - 1)).day();
        let last = Civil::clamped(to.saturating_add(WESTERNMOST)).day() - 1;
        if first <= last { slots(first, last) } else { Vec::new() }
    }

    /// What can be at none of these times is not found; the rest is asked.
    fn unless_elsewhere(&mut self, item: i64, series: &[u8], hint: &Hint, times: &[Pattern]) {
        let meets = |of: Pattern| times.iter().any(|window| of.meets(*window));
        if hint.pattern.is_none_or(meets) {
            self.open(item, series);
        }
    }

    /// Is to be asked.
    fn open(&mut self, item: i64, series: &[u8]) {
        let from = self.data.len();
        self.data.extend_from_slice(series);
        self.open.push((item, from..self.data.len()));
    }

    /// Asks the series of which the tables do not tell.
    fn ask(&mut self) -> rusqlite::Result<()> {
        self.open.sort_unstable_by_key(|(item, _)| *item);
        self.open.dedup_by_key(|(item, _)| *item);
        let mut beside = self.conn.prepare_cached("SELECT data FROM idx_time WHERE item = ?1")?;
        for (item, place) in std::mem::take(&mut self.open) {
            let kept;
            let data = match self.data.get(place).filter(|data| !data.is_empty()) {
                Some(data) => data,
                None => {
                    kept = beside.query_row([item], |row| row.get::<_, Vec<u8>>(0)).optional()?;
                    kept.as_deref().unwrap_or_default()
                }
            };
            let (conn, clocks, zones) = (self.conn, &self.deriver.clocks, &mut self.zones);
            let times = Times::unpack(data, &mut |name| {
                if let Some((_, zone)) = zones.iter().find(|(known, _)| known == name) {
                    return Some(zone.clone());
                }
                let zone = clocks.zone(conn, name)?;
                zones.push((name.to_string(), zone.clone()));
                Some(zone)
            });
            self.found.tested += 1;
            match times.map(|times| times.meets(self.window)) {
                Some(Verdict::Yes) => self.found.rows.push(item),
                Some(Verdict::No) => {}
                Some(Verdict::Unknown) | None => self.found.unsure.push(item),
            }
        }
        Ok(())
    }
}
impl Reader {
    /// The items of these collections that are in a window. `None`: the index is not whole, or not of this program's
    /// making; scan.
    pub fn search(&self, collections: &[i64], window: &Window) -> Result<Option<Searched>> {
        let run = || -> rusqlite::Result<Option<Searched>> {
            let _snapshot = self.hold()?;
            let known = self.remembered()?;
            if !self.times_usable(&known)? {
                return Ok(None);
            }
            let asked: Vec<&Known> = known
                .collections
                .iter()
                .filter(|known| collections.contains(&known.of.id))
                .collect();
            search(&self.conn, &self.deriver, &asked, window).map(Some)
        };
        run().map_err(at(&self.path))
    }

    /// Gives what the items in these rows are in time to `each`, in the order of `rows`, without those that are nowhere in it,
    /// until it answers false. All within one read transaction.
    pub fn times(&self, rows: &[i64], each: &mut dyn FnMut(i64, &Times) -> bool) -> Result<()> {
        let mut run = || -> rusqlite::Result<()> {
            let _snapshot = self.hold()?;
            let usable = self.times_usable(&*self.remembered()?)?;
            let mut derivers = Derivers::new(&self.deriver);
            let mut select =
                self.conn.prepare_cached("SELECT data FROM idx_time WHERE item = ?1")?;
            for &item in rows {
                let kept = match usable {
                    true => select
                        .query_row([item], |row| {
                            Ok(unpack(&self.conn, &self.deriver, row.get_ref(0)?.as_blob()?))
                        })
                        .optional()?
                        .flatten(),
                    false => series::of_item(&self.conn, &mut derivers, item)?,
                };
                if kept.is_some_and(|times| !each(item, &times)) {
                    break;
                }
            }
            Ok(())
        };
        run().map_err(at(&self.path))
    }

    /// What the item in this row is in time, by its bytes and by those of its UID, without the index.
    pub fn times_anew(&self, row: i64) -> Result<Option<Times>> {
        let run = || -> rusqlite::Result<Option<Times>> {
            let _snapshot = self.hold()?;
            let mut derivers = Derivers::new(&self.deriver);
            series::of_item(&self.conn, &mut derivers, row)
        };
        run().map_err(at(&self.path))
    }
}

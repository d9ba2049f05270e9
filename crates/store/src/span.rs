//! The interval index: which items are in a window of time, and which alarms ring in it.
//!
//! Two tables answer that, both in the order of their keys, so that a window reads about as many rows as it finds:
//!
//! * `idx_span(collection, class, start, end, item, gap)`: whatever has an end, with its first start and its last end. Spans of
//!   one class are about as long as each other, so none that reaches into a window begins much before it.
//! * `idx_slot(collection, slot, start, end, item, gap)`: series without an end, or with one far away. `slot` says when in the week,
//!   the month or the year an occurrence can begin, so that a birthday is not looked at in other months.
//!
//! `gap` tells a window that is long enough that it meets an occurrence, without a look at the rule: twice the longest time between
//! two that follow each other, in seconds; odd where none is missing, so that there is one at both ends. 0: there is one
//! only; -1: not known. What floats is in classes of its own, in the seconds of its own
//! clock, and is read by the clock of whoever asks; all of `idx_slot` is in such seconds, which a window is widened for.
//! What an item is in time is found in `times`; here it is only found again.

use crate::derived::IndexSet;
use crate::deriver::Deriver;
use crate::error::{Result, at};
use crate::reader::Reader;
use crate::store::{Store, immediate};
use crate::times::{SHORT, Times, Verdict};
use larder_time::civil::{Civil, DAY, Date, Instant, Weekday};
use larder_time::zone::Zone;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// The longest span of each class, in seconds; whatever is longer is in one more.
const CLASSES: [i64; 9] = [
    4 * 3600,
    DAY + 2 * 3600,
    8 * DAY,
    32 * DAY,
    64 * DAY,
    128 * DAY,
    256 * DAY,
    2 * 366 * DAY,
    10 * 366 * DAY,
];
/// Classes of what floats have this much more, and those of alarms that.
pub(crate) const FLOATING: i64 = 20;
pub(crate) const ALARMS: i64 = 100;
/// The slots of alarms have this much more.
const ALARM_SLOTS: i64 = 10_000;
/// Slots: at any time; from here on a weekday, a day of the month, a month (times 32) and its day.
const ANY: i64 = 0;
const WEEKDAYS: i64 = 1;
const MONTH_DAYS: i64 = 20;
const YEAR_DAYS: i64 = 100;
/// Clocks of the world differ from UTC by less than this, and change by less.
const APART: i64 = DAY;
/// Some show as much less than UTC, others as much more: days began and ended with the date line elsewhere.
const WESTERNMOST: i64 = -16 * 3600;
const EASTERNMOST: i64 = 16 * 3600;
/// By so much two occurrences are further apart than their clock says, where its offset changes.
const CHANGE: i64 = 3 * 3600;

/// What is looked for in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// Items with an occurrence in it: one that ends behind the window's beginning and begins before its end.
    Occurrences,
    /// Items with an alarm that rings in it.
    Alarms,
}

/// A window of time: from an instant up to, not including, another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
    /// The clock of who asks, by which floating times and days are read.
    pub local: Zone,
    /// What is looked for.
    pub what: What,
}

/// Items in a window.
#[derive(Debug, Clone, Default)]
pub struct Searched {
    /// Their rows, in order, each once.
    pub rows: Vec<i64>,
    /// Of these it could not be said within bounds whether they are in it.
    pub unsure: Vec<i64>,
    /// How many rows of the index were read.
    pub visited: u64,
    /// How many series were asked themselves.
    pub tested: u64,
}

/// A row of one of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Row {
    Span { class: i64, start: i64, end: i64, gap: i64 },
    Slot { slot: i64, start: i64, end: i64, gap: i64 },
}

impl Row {
    /// What is kept of the longest time between two occurrences; of a series of which none is missing.
    pub(crate) fn gap(longest: Option<i64>, whole: bool) -> i64 {
        match longest {
            Some(longest) if longest < i64::MAX / 4 => longest * 2 + i64::from(whole),
            _ => -1,
        }
    }

    /// Something that begins and ends; where it takes no time, it is taken to last a second.
    pub(crate) fn span(what: What, floating: bool, start: i64, end: i64, gap: i64) -> Row {
        let end = end.max(start + 1);
        let length = end - start;
        let class = CLASSES.iter().position(|most| length <= *most).unwrap_or(CLASSES.len()) as i64;
        let class = class + if floating { FLOATING } else { 0 };
        let class = class + if what == What::Alarms { ALARMS } else { 0 };
        Row::Span { class, start, end, gap }
    }

    /// Something that goes on for long, from and to when of its own clock.
    pub(crate) fn slot(what: What, slot: Slot, (start, end): (i64, i64), gap: i64) -> Row {
        let slot = slot.number() + if what == What::Alarms { ALARM_SLOTS } else { 0 };
        Row::Slot { slot, start, end, gap }
    }

    /// Is the other one the same stretch? Then what is not sure of one is not sure of both.
    pub(crate) fn absorbs(&mut self, other: &Row) -> bool {
        match (self, other) {
            (
                Row::Span { class, start, end, gap },
                Row::Span { class: c, start: s, end: e, gap: g },
            ) if (*class, *start, *end) == (*c, *s, *e) => {
                *gap = (*gap).min(*g);
                true
            }
            (mine, other) => mine == other,
        }
    }
}

/// When occurrences of a long series can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Any,
    Weekday(Weekday),
    MonthDay(u8),
    /// A month and its day; with the day 0 any day of it.
    YearDay(u8, u8),
}

impl Slot {
    fn number(self) -> i64 {
        match self {
            Slot::Any => ANY,
            Slot::Weekday(weekday) => WEEKDAYS + i64::from(weekday.number()),
            Slot::MonthDay(day) => MONTH_DAYS + i64::from(day),
            Slot::YearDay(month, day) => YEAR_DAYS + i64::from(month) * 32 + i64::from(day),
        }
    }
}

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
    /// Series that have to be asked themselves.
    open: Vec<i64>,
}

/// Finds the items of these collections in a window.
pub(crate) fn search(
    conn: &Connection,
    deriver: &Deriver,
    collections: &[i64],
    window: &Window,
) -> rusqlite::Result<Searched> {
    let (found, open) = (Searched::default(), Vec::new());
    let mut search = Search { conn, deriver, window, found, open };
    if window.from < window.to {
        for &collection in collections {
            search.spans(collection)?;
            search.slots(collection)?;
        }
        search.ask()?;
    }
    let mut found = search.found;
    found.rows.sort_unstable();
    found.rows.dedup();
    found.unsure.retain(|row| found.rows.binary_search(row).is_err());
    Ok(found)
}

impl Search<'_> {
    fn seconds(&self) -> (i64, i64) {
        (self.window.from.seconds(), self.window.to.seconds())
    }

    /// The classes that are there: a step for each, as most are not.
    fn spans(&mut self, collection: i64) -> rusqlite::Result<()> {
        let base = if self.window.what == What::Alarms { ALARMS } else { 0 };
        let sql = "SELECT class FROM idx_span WHERE collection = ?1 AND class > ?2 ORDER BY class LIMIT 1";
        let mut next = self.conn.prepare_cached(sql)?;
        let mut class = base - 1;
        loop {
            let found: Option<i64> =
                next.query_row((collection, class), |row| row.get(0)).optional()?;
            match found {
                Some(found) if found < base + ALARMS => class = found,
                _ => return Ok(()),
            }
            self.class(collection, class, class - base)?;
        }
    }

    fn class(&mut self, collection: i64, class: i64, kind: i64) -> rusqlite::Result<()> {
        let floating = kind >= FLOATING;
        let longest = CLASSES.get((kind % FLOATING) as usize);
        let (from, to) = self.seconds();
        let wider = if floating { APART } else { 0 };
        let first = longest.map_or(i64::MIN, |longest| from - wider - longest);
        let mut select = self.conn.prepare_cached(
            "SELECT start, end, item, gap FROM idx_span
             WHERE collection = ?1 AND class = ?2 AND start >= ?3 AND start < ?4",
        )?;
        let mut rows = select.query((collection, class, first, to + wider))?;
        while let Some(row) = rows.next()? {
            let (mut start, mut end): (i64, i64) = (row.get(0)?, row.get(1)?);
            self.found.visited += 1;
            if floating {
                let instant =
                    |seconds| self.window.local.instant(Civil::clamped(seconds)).seconds();
                (start, end) = (instant(start), instant(end).max(instant(start) + 1));
            }
            if end <= from || start >= to {
                continue;
            }
            let gap: i64 = row.get(3)?;
            let at_an_end = start >= from || end <= to;
            let sure = gap == 0
                || (gap > 0 && gap & 1 == 1 && at_an_end)
                || (gap > 0 && !at_an_end && self.spans_gap(gap));
            self.take(row.get(2)?, sure);
        }
        Ok(())
    }

    /// Is the window longer than two occurrences can be apart?
    fn spans_gap(&self, gap: i64) -> bool {
        let (from, to) = self.seconds();
        // What begins in the window before its end is in it; the last may begin a while before that.
        (gap >> 1).saturating_add(CHANGE + DAY) <= to - from
    }

    fn slots(&mut self, collection: i64) -> rusqlite::Result<()> {
        let (from, to) = self.seconds();
        let earliest = Civil::clamped(from + WESTERNMOST - SHORT + 1);
        let days = earliest.day()..=Civil::clamped(to + EASTERNMOST - 1).day();
        let base = if self.window.what == What::Alarms { ALARM_SLOTS } else { 0 };
        let mut select = self.conn.prepare_cached(
            "SELECT start, end, item, gap FROM idx_slot
             WHERE collection = ?1 AND slot BETWEEN ?2 AND ?3 AND start < ?4",
        )?;
        for slots in slots(*days.start(), *days.end()) {
            let mut rows =
                select.query((collection, base + slots.start(), base + slots.end(), to + APART))?;
            while let Some(row) = rows.next()? {
                let (start, end): (i64, i64) = (row.get(0)?, row.get(1)?);
                self.found.visited += 1;
                if end.saturating_add(APART) <= from {
                    continue;
                }
                let gap: i64 = row.get(3)?;
                // What has no time of its own needs only to have begun.
                let begun = start == i64::MIN || start.saturating_add(APART) <= from;
                let goes_on = end.saturating_sub(APART) >= to;
                self.take(row.get(2)?, gap >= 0 && begun && goes_on && self.spans_gap(gap));
            }
        }
        Ok(())
    }

    fn take(&mut self, item: i64, sure: bool) {
        if sure { self.found.rows.push(item) } else { self.open.push(item) }
    }

    /// Asks the series of which the tables do not tell.
    fn ask(&mut self) -> rusqlite::Result<()> {
        self.open.sort_unstable();
        self.open.dedup();
        let mut select = self.conn.prepare_cached("SELECT data FROM idx_time WHERE item = ?1")?;
        for &item in &self.open {
            let mut rows = select.query([item])?;
            let Some(row) = rows.next()? else { continue };
            let times = unpack(self.conn, self.deriver, row.get_ref(0)?.as_blob()?);
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

/// Writes what items are in time: gathered, then each table in the order of its keys.
pub(crate) struct Writer<'a> {
    conn: &'a Connection,
    deriver: &'a Deriver,
    /// The rows of zones that were met.
    clocks: HashMap<String, i64>,
    times: Vec<(i64, Option<i64>, Vec<u8>)>,
    rows: Vec<(i64, Row, i64)>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(conn: &'a Connection, deriver: &'a Deriver) -> Writer<'a> {
        let (clocks, times, rows) = (HashMap::new(), Vec::new(), Vec::new());
        Writer { conn, deriver, clocks, times, rows }
    }

    /// An item is this in time from now on; `None`: nothing. One that is new has nothing to be replaced.
    pub(crate) fn put(
        &mut self,
        collection: i64,
        item: i64,
        times: Option<&Times>,
        new: bool,
    ) -> rusqlite::Result<()> {
        if !new {
            erase(self.conn, self.deriver, collection, item)?;
        }
        let Some(times) = times else { return Ok(()) };
        let clock = match times.clocks() {
            [] => None,
            names => Some(self.clock(&names.join(" "))?),
        };
        self.times.push((item, clock, times.pack()));
        self.rows.extend(times.rows().into_iter().map(|row| (collection, row, item)));
        Ok(())
    }

    /// The row of these zones as they are now.
    fn clock(&mut self, names: &str) -> rusqlite::Result<i64> {
        if let Some(known) = self.clocks.get(names) {
            return Ok(*known);
        }
        let row = clock(self.conn, self.deriver, names)?;
        self.clocks.insert(names.to_string(), row);
        Ok(row)
    }

    pub(crate) fn finish(mut self) -> rusqlite::Result<()> {
        self.times.sort_unstable_by_key(|(item, ..)| *item);
        let mut insert = self.conn.prepare_cached("INSERT INTO idx_time VALUES(?1, ?2, ?3)")?;
        for (item, clock, data) in &self.times {
            insert.execute((item, clock, data))?;
        }
        self.rows.sort_unstable();
        let mut spans =
            self.conn.prepare_cached("INSERT INTO idx_span VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
        let mut slots =
            self.conn.prepare_cached("INSERT INTO idx_slot VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
        for (collection, row, item) in &self.rows {
            match row {
                Row::Span { class, start, end, gap } => {
                    spans.execute((collection, class, start, end, item, gap))?
                }
                Row::Slot { slot, start, end, gap } => {
                    slots.execute((collection, slot, start, end, item, gap))?
                }
            };
        }
        Ok(())
    }
}

/// What was packed, with its zone.
fn unpack(conn: &Connection, deriver: &Deriver, data: &[u8]) -> Option<Times> {
    Times::unpack(data, &mut |name| deriver.clocks.zone(conn, name))
}

/// Takes what an item is in time away.
pub(crate) fn erase(
    conn: &Connection,
    deriver: &Deriver,
    collection: i64,
    item: i64,
) -> rusqlite::Result<()> {
    let data: Option<Vec<u8>> = conn
        .prepare_cached("DELETE FROM idx_time WHERE item = ?1 RETURNING data")?
        .query_row([item], |row| row.get(0))
        .optional()?;
    let Some(data) = data else { return Ok(()) };
    for row in Times::rows_of(&data, &mut |name| deriver.clocks.zone(conn, name)) {
        match row {
            Row::Span { class, start, end, .. } => conn
                .prepare_cached(
                    "DELETE FROM idx_span
                     WHERE collection = ?1 AND class = ?2 AND start = ?3 AND end = ?4 AND item = ?5",
                )?
                .execute((collection, class, start, end, item))?,
            Row::Slot { slot, start, .. } => conn
                .prepare_cached(
                    "DELETE FROM idx_slot
                     WHERE collection = ?1 AND slot = ?2 AND start = ?3 AND item = ?4",
                )?
                .execute((collection, slot, start, item))?,
        };
    }
    Ok(())
}

/// Takes everything away.
pub(crate) fn empty(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "DELETE FROM idx_time; DELETE FROM idx_span; DELETE FROM idx_slot; DELETE FROM idx_clock;",
    )
}

/// The row of these zones as they are now.
fn clock(conn: &Connection, deriver: &Deriver, names: &str) -> rusqlite::Result<i64> {
    let print = deriver.clocks.fingerprint(names);
    let known = conn
        .prepare_cached("SELECT id FROM idx_clock WHERE name = ?1 AND fingerprint = ?2")?
        .query_row((names, &*print), |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    conn.execute("INSERT INTO idx_clock(name, fingerprint) VALUES(?1, ?2)", (names, &*print))?;
    Ok(conn.last_insert_rowid())
}

/// What the tables were filled with: the version of the system's zones.
const ZONES: &str = "zones";

/// Were the tables filled with these zones?
pub(crate) fn is_of_these_zones(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<bool> {
    let filled: Option<String> = conn
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([ZONES], |row| row.get(0))
        .optional()?;
    Ok(filled.as_deref() == Some(deriver.zones().version()))
}

/// Notes which zones they are filled with from now on.
pub(crate) fn note_zones(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<()> {
    conn.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2)", (ZONES, deriver.zones().version()))
        .map(drop)
}

impl Store {
    /// One step of having the items derived anew whose zones have changed. `None`: nothing is left to do.
    pub(crate) fn zones_step(&mut self, items: usize) -> Result<Option<u64>> {
        if self.usable(IndexSet::Time)? {
            return Ok(None);
        }
        let lock = self.locks.acquire()?;
        self.recover(&lock)?;
        let step = || -> rusqlite::Result<u64> {
            let tx = immediate(&self.conn)?;
            let mut left = items;
            for (id, name, print) in clocks(&tx)? {
                if *self.deriver.clocks.fingerprint(&name) == print {
                    continue;
                }
                left -= self.derive_again(&tx, id, left)?;
                if left == 0 {
                    break;
                }
                tx.execute("DELETE FROM idx_clock WHERE id = ?1", [id])?;
            }
            if left > 0 {
                note_zones(&tx, &self.deriver)?;
            }
            tx.commit()?;
            Ok((items - left) as u64)
        };
        let derived = step().map_err(at(&self.path))?;
        self.let_go(lock);
        Ok(Some(derived))
    }

    /// Derives the items of a clock anew, so many at most.
    fn derive_again(&self, tx: &Connection, clock: i64, limit: usize) -> rusqlite::Result<usize> {
        let rows: Vec<(i64, i64)> = tx
            .prepare_cached(
                "SELECT t.item, i.collection FROM idx_time t JOIN item i ON i.id = t.item
                 WHERE t.clock = ?1 LIMIT ?2",
            )?
            .query_map((clock, limit as i64), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut derivers = crate::deriver::Derivers::new(&self.deriver);
        let mut writer = Writer::new(tx, &self.deriver);
        for &(item, collection) in &rows {
            let times = crate::series::of_item(tx, &mut derivers, item)?;
            writer.put(collection, item, times.as_ref(), false)?;
        }
        writer.finish()?;
        Ok(rows.len())
    }
}

fn clocks(conn: &Connection) -> rusqlite::Result<Vec<(i64, String, String)>> {
    conn.prepare_cached("SELECT id, name, fingerprint FROM idx_clock ORDER BY id")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

/// A row of the tables, for a digest.
#[derive(Hash)]
pub(crate) enum Print<'a> {
    Time(i64, &'a [u8]),
    Row(i64, i64, Row),
}

/// Gives all that the tables hold.
pub(crate) fn each_row(conn: &Connection, each: &mut dyn FnMut(Print<'_>)) -> rusqlite::Result<()> {
    let mut select = conn.prepare("SELECT item, data FROM idx_time")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        each(Print::Time(row.get(0)?, row.get_ref(1)?.as_blob()?));
    }
    let mut select =
        conn.prepare("SELECT collection, item, class, start, end, gap FROM idx_span")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (class, start, end, gap) = (row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
        each(Print::Row(row.get(0)?, row.get(1)?, Row::Span { class, start, end, gap }));
    }
    let mut select =
        conn.prepare("SELECT collection, item, slot, start, end, gap FROM idx_slot")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (slot, start, end, gap) = (row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
        each(Print::Row(row.get(0)?, row.get(1)?, Row::Slot { slot, start, end, gap }));
    }
    Ok(())
}

/// Gives what the tables should hold of an item.
pub(crate) fn rows_of(
    collection: i64,
    item: i64,
    times: Option<&Times>,
    each: &mut dyn FnMut(Print<'_>),
) {
    let Some(times) = times else { return };
    each(Print::Time(item, &times.pack()));
    times.rows().into_iter().for_each(|row| each(Print::Row(collection, item, row)));
}

impl Reader {
    /// The items of these collections that are in a window. `None`: the index is not whole, or not of this program's
    /// making; scan.
    pub fn search(&self, collections: &[i64], window: &Window) -> Result<Option<Searched>> {
        let run = || -> rusqlite::Result<Option<Searched>> {
            let _snapshot = self.hold()?;
            if !self.remembered()?.time {
                return Ok(None);
            }
            search(&self.conn, &self.deriver, collections, window).map(Some)
        };
        run().map_err(at(&self.path))
    }

    /// Gives what the items in these rows are in time to `each`, in the order of `rows`, without those that are nowhere in it,
    /// until it answers false. All within one read transaction.
    pub fn times(&self, rows: &[i64], each: &mut dyn FnMut(i64, &Times) -> bool) -> Result<()> {
        let mut run = || -> rusqlite::Result<()> {
            let _snapshot = self.hold()?;
            let usable = self.remembered()?.time;
            let mut derivers = crate::deriver::Derivers::new(&self.deriver);
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
                    false => crate::series::of_item(&self.conn, &mut derivers, item)?,
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
            let mut derivers = crate::deriver::Derivers::new(&self.deriver);
            crate::series::of_item(&self.conn, &mut derivers, row)
        };
        run().map_err(at(&self.path))
    }
}

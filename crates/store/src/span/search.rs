//! Finding what is in a window: which rows of the interval index can be in it, and of which of these it has to be asked.

use super::{
    ALARM_SLOTS, ALARMS, ANY, CLASSES, FLOATING, FLOATING_SLOTS, Hint, MONTH_DAYS, Searched, Slot,
    WEEKDAYS, What, Window, YEAR_DAYS, place, unpack,
};
use crate::Family;
use crate::collection::Known;
use crate::deriver::{Deriver, Derivers};
use crate::error::{Result, at};
use crate::reader::Reader;
use crate::series;
use crate::times::{Times, Verdict};
use larder_time::civil::{Civil, DAY, Date, Weekday};
use larder_time::series::Pattern;
use larder_time::zone::Zone;
use rusqlite::{Connection, OptionalExtension as _, Row, Rows, Statement};
use std::ops::{Range, RangeInclusive};

/// So many slots are looked at one by one, as classes are: a question that is put once has one statement less to be made
/// ready, and what begins behind the window is not read.
const FEW_SLOTS: i64 = 2;
/// Clocks of the world differ from UTC by less than this.
const APART: i64 = DAY;

/// What is in one place and begins in a stretch of time.
const BEGUN: &str = "SELECT end, item, series, start FROM idx_span
    WHERE place = ?1 AND start >= ?2 AND start < ?3";

/// Days of a window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Days {
    /// It touches them: a slot too many is no harm.
    Touched,
    /// They are all in it: no slot may be named of which a day is not.
    Whole,
}

/// The slots of two days and all between them.
fn slots(first: i64, last: i64, which: Days) -> Vec<RangeInclusive<i64>> {
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
    // As many days of any month or year as have all of its dates; or so many that a shorter one may have begun anew.
    let (all_of_month, all_of_year) = match which {
        Days::Touched => (27, 364),
        Days::Whole => (30, 365),
    };
    add(days >= all_of_month, month, Slot::MonthDay(a.day), Slot::MonthDay(b.day));
    let year = YEAR_DAYS + 32..=YEAR_DAYS + 13 * 32;
    add(days >= all_of_year, year, Slot::YearDay(a.month, a.day), Slot::YearDay(b.month, b.day));
    if which == Days::Touched && days < all_of_year {
        // What may be on any day of the first month.
        let month = Slot::YearDay(a.month, 0).number();
        slots.push(month..=month);
    }
    slots
}

/// The window by a clock: seconds of UTC, or those that the clock of whoever asks shows.
struct Stretch {
    /// All that may be in it, and what is surely so: clocks change.
    around: (i64, i64),
    within: (i64, i64),
    /// When in the week and in the year something in it can be.
    pattern: Pattern,
}

impl Stretch {
    fn of(window: &Window, floats: bool) -> Stretch {
        let (from, to) = (window.from.seconds(), window.to.seconds());
        let (low, high) = if floats { window.local.offsets() } else { (0, 0) };
        let (low, high) = (i64::from(low), i64::from(high));
        let around = (from.saturating_add(low), to.saturating_add(high));
        let within = (from.saturating_add(high), to.saturating_add(low));
        Stretch { around, within, pattern: Pattern::of_window(around.0, around.1) }
    }

    /// How much its clock changes, at most.
    fn change(&self) -> i64 {
        self.within.0.saturating_sub(self.around.0)
    }

    /// Does it surely have an occurrence of a series that goes on before and behind it?
    fn surely_has(&self, hint: &Hint, whole_day: &dyn Fn() -> bool) -> bool {
        let (from, to) = self.within;
        let pattern = hint.pattern.unwrap_or(Pattern::ANY);
        from > hint.whole_behind
            && (hint.gap.is_some_and(|gap| pattern.begins_in(gap, from, to))
                || hint.each_week && pattern.has_day_in(from, to)
                || hint.each_day && whole_day())
    }

    /// The slots of the days that it touches, and of those that are all in it.
    fn slots(&self) -> (Vec<RangeInclusive<i64>>, Vec<RangeInclusive<i64>>) {
        let day = |second: i64| Civil::clamped(second).day();
        let touched = slots(day(self.around.0), day(self.around.1 - 1), Days::Touched);
        let (first, last) = (day(self.within.0.saturating_add(DAY - 1)), day(self.within.1) - 1);
        (touched, if first <= last { slots(first, last, Days::Whole) } else { Vec::new() })
    }
}

/// From when to when something in a row is.
struct Reach {
    start: i64,
    end: i64,
    /// It may have ended before the window.
    doubtful: bool,
}

/// A search, as it goes from row to row.
struct Search<'a> {
    conn: &'a Connection,
    deriver: &'a Deriver,
    window: &'a Window,
    found: Searched,
    /// The same window for what does not float, and for what does.
    fixed: Stretch,
    floating: Stretch,
    /// Series that have to be asked themselves, and where in `data` they are; 0..0: they are beside the item.
    open: Vec<(i64, Range<usize>)>,
    data: Vec<u8>,
    /// The zones of those that were asked, by their names: few, which is found out sooner than they are looked up.
    zones: Vec<(String, Zone)>,
}

/// How many classes there can be of what is looked for.
const MOST_CLASSES: usize = 2 * (CLASSES.len() + 1);

/// All classes that there can be, from this one on.
const fn classes_from(base: i64) -> [i64; MOST_CLASSES] {
    let (mut all, mut at) = ([0; MOST_CLASSES], 0);
    while at < MOST_CLASSES {
        let (floats, class) = (at / (CLASSES.len() + 1), at % (CLASSES.len() + 1));
        all[at] = base + floats as i64 * FLOATING + class as i64;
        at += 1;
    }
    all
}

/// All classes of spans that a collection can have for what is looked for.
pub(crate) fn all_classes(what: What) -> &'static [i64] {
    const OCCURRING: &[i64] = &classes_from(0);
    const RINGING: &[i64] = &classes_from(ALARMS);
    if what == What::Alarms { RINGING } else { OCCURRING }
}

/// The classes of spans that a collection has for what is looked for: a step for each, as most are not there.
pub(crate) fn classes(
    conn: &Connection,
    collection: i64,
    what: What,
) -> rusqlite::Result<Vec<i64>> {
    let base = if what == What::Alarms { ALARMS } else { 0 };
    let mut next = conn.prepare_cached(
        "SELECT place FROM idx_span WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT 1",
    )?;
    let mut classes = Vec::new();
    loop {
        let last = classes.last().copied().unwrap_or(base - 1);
        let between = (place(collection, last), place(collection, base + ALARMS));
        let found: Option<i64> = next.query_row(between, |row| row.get(0)).optional()?;
        match found {
            Some(found) => classes.push(found - place(collection, 0)),
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
    let mut search = Search {
        conn,
        deriver,
        window,
        found: Searched::default(),
        fixed: Stretch::of(window, false),
        floating: Stretch::of(window, true),
        open: Vec::new(),
        data: Vec::new(),
        zones: Vec::new(),
    };
    if window.from < window.to {
        let mut begun = conn.prepare_cached(BEGUN)?;
        for collection in collections.iter().filter(|of| of.summary.family() == Family::Calendar) {
            search.spans(&mut begun, collection)?;
            search.slots(&mut begun, collection.of.id, false)?;
            search.slots(&mut begun, collection.of.id, true)?;
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

    fn spans(&mut self, begun: &mut Statement<'_>, collection: &Known) -> rusqlite::Result<()> {
        let base = if self.window.what == What::Alarms { ALARMS } else { 0 };
        let (from, to) = self.seconds();
        for &class in collection.classes(self.conn, self.window.what)? {
            let floating = class - base >= FLOATING;
            let longest = CLASSES.get(((class - base) % FLOATING) as usize);
            let wider = if floating { APART } else { 0 };
            let first = longest.map_or(i64::MIN, |longest| from - wider - longest);
            let rows = begun.query((place(collection.of.id, class), first, to + wider))?;
            self.rows(rows, floating, false)?;
        }
        Ok(())
    }

    /// Decides of the rows of one place; is the day of their slot all in the window?
    fn rows(
        &mut self,
        mut rows: Rows<'_>,
        floating: bool,
        whole_day: bool,
    ) -> rusqlite::Result<()> {
        while let Some(row) = rows.next()? {
            self.row(row, floating, &|| whole_day)?;
        }
        Ok(())
    }

    fn slots(
        &mut self,
        begun: &mut Statement<'_>,
        collection: i64,
        floating: bool,
    ) -> rusqlite::Result<()> {
        let base = match (self.window.what, floating) {
            (What::Occurrences, false) => 0,
            (What::Occurrences, true) => FLOATING_SLOTS,
            (What::Alarms, false) => ALARM_SLOTS,
            (What::Alarms, true) => ALARM_SLOTS + FLOATING_SLOTS,
        };
        let stretch = if floating { &self.floating } else { &self.fixed };
        let (touched, whole) = match self.window.what {
            What::Occurrences => stretch.slots(),
            What::Alarms => (vec![ANY..=ANY], Vec::new()),
        };
        let before = self.window.to.seconds() + if floating { APART } else { 0 };
        let is_whole = |slot| whole.iter().any(|slots| slots.contains(&slot));
        let (one_by_one, at_once): (Vec<_>, Vec<_>) =
            touched.into_iter().partition(|slots| slots.end() - slots.start() < FEW_SLOTS);
        for slot in one_by_one.into_iter().flatten() {
            let rows = begun.query((place(collection, base + slot), i64::MIN, before))?;
            self.rows(rows, floating, is_whole(slot))?;
        }
        if at_once.is_empty() {
            return Ok(());
        }
        let mut select = self.conn.prepare_cached(
            "SELECT end, item, series, start, place FROM idx_span
             WHERE place BETWEEN ?1 AND ?2 AND start < ?3",
        )?;
        for slots in at_once {
            let slots_from = place(collection, base);
            let (first, last) = (slots_from + slots.start(), slots_from + slots.end());
            let mut rows = select.query((first, last, before))?;
            while let Some(row) = rows.next()? {
                self.row(row, floating, &|| {
                    row.get(4).is_ok_and(|slot: i64| is_whole(slot - slots_from))
                })?;
            }
        }
        Ok(())
    }

    /// Decides of a row; is the day of its slot all in the window?
    fn row(
        &mut self,
        row: &Row<'_>,
        floating: bool,
        whole_day: &dyn Fn() -> bool,
    ) -> rusqlite::Result<()> {
        self.found.visited += 1;
        let (from, to) = self.seconds();
        let end: i64 = row.get(0)?;
        let reach = match floating {
            false if end <= from => return Ok(()),
            false => None,
            true => Some(self.by_local_clock(row.get(3)?, end)),
        };
        if reach.as_ref().is_some_and(|reach| reach.start >= to || reach.end <= from) {
            return Ok(());
        }
        let item = row.get(1)?;
        match (row.get_ref(2)?.as_blob_or_null()?, reach) {
            (None, Some(reach)) if reach.doubtful => self.open(item, &[]),
            (None, _) => self.found.rows.push(item),
            (Some(series), Some(reach)) => {
                self.series(item, series, &reach, true, whole_day);
            }
            (Some(series), None) => {
                let reach = Reach { start: row.get(3)?, end, doubtful: false };
                self.series(item, series, &reach, false, whole_day);
            }
        }
        Ok(())
    }

    /// From when to when something is that floats.
    fn by_local_clock(&self, start: i64, end: i64) -> Reach {
        let instant = |seconds| self.window.local.instant(Civil::clamped(seconds)).seconds();
        let start = instant(start);
        if end == i64::MAX {
            return Reach { start, end, doubtful: false };
        }
        let (from, change) = (self.window.from.seconds(), self.floating.change());
        let end = instant(end).max(start + 1);
        // What takes so many seconds ends sooner or later than its clock says, where that changes meanwhile.
        let doubtful = start < from && end - change <= from && from < end + change;
        Reach { start, end: if doubtful { end.max(from + 1) } else { end }, doubtful }
    }

    /// Decides of a series that reaches into the window, or leaves it to be asked.
    fn series(
        &mut self,
        item: i64,
        mut series: &[u8],
        reach: &Reach,
        floating: bool,
        whole_day: &dyn Fn() -> bool,
    ) {
        let (from, to) = self.seconds();
        let Some(hint) = Hint::unpack(&mut series) else { return self.open(item, &[]) };
        let stretch = if floating { &self.floating } else { &self.fixed };
        let sure = match (reach.start >= from, reach.end <= to) {
            (false, false) => stretch.surely_has(&hint, whole_day),
            (begins, ends) => begins && hint.ends.0 || ends && hint.ends.1 && !reach.doubtful,
        };
        if sure {
            self.found.rows.push(item);
        } else if hint.pattern.is_none_or(|of| of.meets(stretch.pattern)) {
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
        for (item, place) in std::mem::take(&mut self.open) {
            let kept;
            let data = match self.data.get(place).filter(|data| !data.is_empty()) {
                Some(data) => data,
                None => {
                    kept = beside(self.conn, item)?;
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

/// What is kept of an item in time.
fn beside(conn: &Connection, item: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT data FROM idx_time WHERE item = ?1")?
        .query_row([item], |row| row.get(0))
        .optional()
}

impl Reader {
    /// The items of these collections that are in a window. `None`: the index is not whole, or not of this program's
    /// making; scan.
    pub fn search(&self, collections: &[i64], window: &Window) -> Result<Option<Searched>> {
        let run = || -> rusqlite::Result<Option<Searched>> {
            let _snapshot = self.hold()?;
            let known = self.remembered()?;
            if !self.times_usable(&known) {
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
            let usable = self.times_usable(&*self.remembered()?);
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

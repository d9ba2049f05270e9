//! What is on: occurrences with what lists show of their items, and the days on which they are.
//!
//! Where an answer is wanted as occurrences, [`occurrences`] gives them; [`agenda`] asks for all that happens in a window, and
//! [`days`] puts that into days. Printing is the caller's matter, but the words of a time are made here.

use crate::answer::Answer;
use crate::error::Error;
use crate::expand::{asks_for_a_window, expand};
use crate::query::Query;
use crate::run::{Find, find};
use crate::time::TimeTest;
use crate::when::{When, clock, end_clock, length, zone_name};
use larder_format::field::{Field, calendar_field};
use larder_store::{ItemHead, Kind, Occurring, Reader, Times, Window};
use larder_time::civil::{Civil, Date, Instant};
use larder_time::series::Series;
use larder_time::zone::Zone;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Items that are asked in one transaction.
const PAGE: usize = 1024;
/// Something that goes on for longer is shown on so many days.
const MOST_DAYS: i64 = 1000;

/// What lists show of an item.
#[derive(Debug, Clone)]
pub struct Brief {
    /// The item.
    pub head: ItemHead,
    /// What it is about, and where.
    pub summary: String,
    /// Where it is.
    pub location: String,
    /// STATUS, in upper case.
    pub status: String,
    /// It takes time that stays free.
    pub transparent: bool,
    /// It recurs, or stands for an occurrence of what does.
    pub recurs: bool,
    /// A task that is done.
    pub done: bool,
    /// A task that has a time until when it is to be done.
    pub due: bool,
    /// The zone of its own clock; `None`: it floats, or is of whole days.
    pub zone: Option<String>,
    /// When it is first; `None`: it has no time of its own.
    pub first: Option<When>,
}

/// An occurrence of an item.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it is an occurrence of.
    pub item: Arc<Brief>,
    /// The occurrence.
    pub occurring: Occurring,
    /// When it is, by the clock of who asks.
    pub when: When,
}

/// Occurrences, in the order of their beginnings; of alarms, in the order in which they ring.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    /// They.
    pub entries: Vec<Entry>,
    /// There are more than were asked for.
    pub cut: bool,
    /// Rows of items of which not all occurrences could be found within bounds, or not the end of a COUNT.
    pub unsure: Vec<i64>,
}

impl Brief {
    /// Was it called off?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.status == "CANCELLED"
    }
}

impl Entry {
    /// Which occurrence of its series it is, as RECURRENCE-ID would have it; empty where it does not recur.
    #[must_use]
    pub fn occurrence(&self) -> String {
        let of = &self.occurring.of;
        if !self.item.head.recurrence.is_empty() && (of.detached || of.tag.is_none()) {
            return self.item.head.recurrence.clone();
        }
        match (self.item.recurs, self.occurring.date, self.occurring.floating) {
            (false, ..) => self.item.head.recurrence.clone(),
            (true, true, _) => {
                of.original_civil.to_string().split('T').next().map(Into::into).unwrap_or_default()
            }
            (true, false, true) => of.original_civil.to_string(),
            (true, false, false) => format!("{}Z", of.original.civil(0)),
        }
    }

    /// The days on which an agenda has it.
    fn days(&self) -> (i64, i64) {
        let last = self.when.last_day();
        if self.item.due { (last, last) } else { (self.when.from.day(), last) }
    }
}

/// When the items of an answer happen, or their alarms ring, in a window: the first `limit`.
///
/// # Errors
/// What the store reports.
pub fn occurrences(
    reader: &Reader,
    answer: &Answer,
    window: &Window,
    limit: usize,
) -> Result<Entries, Error> {
    let expansion = expand(reader, answer, window, limit)?;
    let mut rows: Vec<i64> = expansion.occurrences.iter().map(|(row, _)| *row).collect();
    rows.sort_unstable();
    rows.dedup();
    let briefs = briefs(reader, &rows, &window.local)?;
    let entry = |(row, occurring): (i64, Occurring)| {
        // What was removed since is left out.
        let item = Arc::clone(briefs.get(&row)?);
        Some(Entry { item, occurring, when: When::of(&occurring, &window.local) })
    };
    let entries = expansion.occurrences.into_iter().filter_map(entry).collect();
    Ok(Entries { entries, cut: expansion.cut, unsure: expansion.unsure })
}

/// What lists show of the items in these rows, by the clock of who asks.
///
/// # Errors
/// What the store reports.
pub fn briefs(
    reader: &Reader,
    rows: &[i64],
    local: &Zone,
) -> Result<HashMap<i64, Arc<Brief>>, Error> {
    let named = |name| calendar_field(name);
    let fields: Vec<&'static Field> =
        ["summary", "location", "status", "transp"].into_iter().filter_map(named).collect();
    let mut found: HashMap<i64, Brief> = HashMap::with_capacity(rows.len());
    Answer::of(rows).fields(reader, &fields, &mut |head, of| {
        let mut values = fields.iter().map(|field| of.first(field).unwrap_or_default());
        let mut next = || values.next().unwrap_or_default().trim().to_string();
        let (summary, location) = (next(), next());
        let status = next().to_ascii_uppercase();
        let transparent = next().eq_ignore_ascii_case("TRANSPARENT");
        let (recurs, done, due) = (!head.recurrence.is_empty(), false, false);
        let (head, zone, first) = (head.clone(), None, None);
        let row = head.row;
        let brief =
            Brief { head, summary, location, status, transparent, recurs, done, due, zone, first };
        found.insert(row, brief);
        true
    })?;
    let mut timed = |row: i64, times: &Times| {
        if let Some(brief) = found.get_mut(&row) {
            brief.recurs |= times.recurs();
            brief.zone = zone_name(times);
            brief.first = When::first(times, local);
        }
        true
    };
    reader.times(rows, &mut timed)?;
    let tasks =
        rows.iter().filter(|row| found.get(row).is_some_and(|of| of.head.kind == Kind::Task));
    let tasks: Vec<i64> = tasks.copied().collect();
    let fields: Vec<&'static Field> = ["due", "done"].into_iter().filter_map(named).collect();
    Answer::of(&tasks).fields(reader, &fields, &mut |head, of| {
        if let (Some(brief), [due, done]) = (found.get_mut(&head.row), fields.as_slice()) {
            brief.due = of.first(due).is_some();
            brief.done = of.first(done).is_some();
        }
        true
    })?;
    Ok(found.into_iter().map(|(row, brief)| (row, Arc::new(brief))).collect())
}

/// Rows of items of which it is not sure that they answer the question as they do, or do not: their rules cannot be followed as far
/// as its time, or not to the end of a COUNT. What a negation left out for that is not among them.
///
/// # Errors
/// What the store reports.
pub fn unsure(reader: &Reader, answer: &Answer) -> Result<Vec<i64>, Error> {
    let mut unsure = answer.unsure.clone();
    let rows = if asks_for_a_window(&answer.query) { answer.rows() } else { Vec::new() };
    for page in rows.chunks(PAGE) {
        reader.times(page, &mut |row, times| {
            let is_counted = times.series().is_none_or(Series::is_counted);
            unsure.extend((!is_counted).then_some(row));
            true
        })?;
    }
    unsure.sort_unstable();
    unsure.dedup();
    Ok(unsure)
}

/// How many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// So many were counted.
    pub number: u64,
    /// Rows of items of which not all could be counted within bounds, or not the end of a COUNT.
    pub unsure: Vec<i64>,
}

/// How many occurrences, or alarms, the items of an answer have in a window.
///
/// # Errors
/// What the store reports.
pub fn count(reader: &Reader, answer: &Answer, window: &Window) -> Result<Count, Error> {
    let mut count = Count { unsure: answer.unsure.clone(), ..Count::default() };
    for page in answer.rows().chunks(PAGE) {
        reader.times(page, &mut |row, times| {
            let (number, whole) = times.count(window);
            count.number += number;
            if !whole {
                count.unsure.push(row);
            }
            true
        })?;
    }
    count.unsure.sort_unstable();
    count.unsure.dedup();
    Ok(count)
}

/// What is on in a window: events, and tasks where they are due; the first `limit`. In all collections if none is named.
///
/// # Errors
/// An unknown collection, or what the store reports.
pub fn agenda(
    reader: &Reader,
    collections: &[String],
    window: &Window,
    limit: usize,
) -> Result<Entries, Error> {
    agenda_by(&mut |question| find(reader, question), reader, collections, window, limit)
}

/// The same, for who wants to know what is asked for it: `ask` answers, as [`find`](crate::find()) does.
///
/// # Errors
/// As [`agenda`].
pub fn agenda_by(
    ask: &mut dyn FnMut(&Find) -> Result<Answer, Error>,
    reader: &Reader,
    collections: &[String],
    window: &Window,
    limit: usize,
) -> Result<Entries, Error> {
    // Memos are not on anywhere.
    let query = Query::And(vec![
        Query::Time(TimeTest::In(window.clone())),
        Query::Or(vec![Query::Kind(Kind::Event), Query::Kind(Kind::Task)]),
    ]);
    let mut ask = |collection: Option<&String>| {
        let (query, collection) = (query.clone(), collection.cloned());
        ask(&Find { query, collection, ..Find::default() })
    };
    let mut names: Vec<&String> = collections.iter().collect();
    names.sort_unstable();
    names.dedup();
    let mut answer = ask(names.pop())?;
    for name in names {
        answer.add(ask(Some(name))?);
    }
    let mut found = occurrences(reader, &answer, window, limit)?;
    let shown = bounds(window);
    found.entries.retain(|entry| {
        let (first, last) = entry.days();
        matches!(entry.item.head.kind, Kind::Event | Kind::Task)
            && first <= shown.1
            && last >= shown.0
    });
    Ok(found)
}

/// The first and the last day of a window.
fn bounds(window: &Window) -> (i64, i64) {
    let day = |at: Instant| window.local.civil(at).day();
    (day(window.from), day(Instant::clamped(window.to.seconds().saturating_sub(1))))
}

/// A day with something on it.
#[derive(Debug, Clone)]
pub struct Day<'e> {
    /// Which day.
    pub date: Date,
    /// What is on it: whole days first, then in the order of time.
    pub entries: Vec<OnDay<'e>>,
}

/// An occurrence, as it is on one day.
#[derive(Debug, Clone)]
pub struct OnDay<'e> {
    /// The occurrence.
    pub entry: &'e Entry,
    /// Which of its days it is, from 1.
    pub nth: i64,
    /// On how many days it is.
    pub of: i64,
    /// When it begins; `None`: on an earlier day, or it is of whole days.
    pub from: Option<Civil>,
    /// When it has ended; `None`: on a later day, or it is of whole days.
    pub to: Option<Civil>,
}

impl OnDay<'_> {
    /// Its time on this day: `09:30-10:00`, `09:30`, `all day`, `23:00-`, `-01:00`, `due 17:00`, `due`.
    #[must_use]
    pub fn time(&self) -> String {
        if self.entry.item.due {
            return self.to.map_or("due".into(), |to| format!("due {}", clock(to)));
        }
        match (self.from.map(clock), self.to.map(end_clock)) {
            (Some(from), Some(_)) if self.entry.when.seconds() == 0 => from,
            (Some(from), Some(to)) => format!("{from}-{to}"),
            (Some(from), None) => format!("{from}-"),
            (None, Some(to)) => format!("-{to}"),
            (None, None) => "all day".into(),
        }
    }

    /// Which of its days it is, where there are several: `day 2 of 3`; how long it takes, where the clock is changed meanwhile, so that
    /// its times do not say so.
    #[must_use]
    pub fn part(&self) -> Option<String> {
        let when = &self.entry.when;
        let by_clock = when.to.seconds() - when.from.seconds();
        let changed = || !when.all_day && by_clock != when.seconds();
        match self.of > 1 {
            true => Some(format!("day {} of {}", self.nth, self.of)),
            false => changed().then(|| length(when.seconds())),
        }
    }

    /// Whole days come first, and events before tasks.
    fn order(&self) -> (bool, bool, Civil, Civil) {
        let timed = self.from.or(self.to);
        let begins = if self.entry.item.due { self.to } else { self.from };
        let least = Civil::MIN;
        (
            timed.is_some(),
            self.entry.item.due && timed.is_none(),
            begins.unwrap_or(least),
            self.to.unwrap_or(least),
        )
    }
}

/// Puts occurrences into the days of a window; days without any are left out.
#[must_use]
pub fn days<'e>(entries: &'e [Entry], window: &Window) -> Vec<Day<'e>> {
    let mut days: BTreeMap<i64, Vec<OnDay<'e>>> = BTreeMap::new();
    let (first_shown, last_shown) = bounds(window);
    for entry in entries {
        let (first, last) = entry.days();
        let (from, to) = (first.max(first_shown), last.min(last_shown));
        for day in from..=to.min(from.saturating_add(MOST_DAYS)) {
            days.entry(day).or_default().push(on_day(entry, day, (first, last)));
        }
    }
    let day = |(day, mut entries): (i64, Vec<OnDay<'e>>)| {
        entries.sort_by_key(OnDay::order);
        Day { date: Date::of_day(day), entries }
    };
    days.into_iter().map(day).collect()
}

fn on_day(entry: &Entry, day: i64, (first, last): (i64, i64)) -> OnDay<'_> {
    let timed = !entry.when.all_day;
    let (from, to) = (entry.when.from, entry.when.to);
    OnDay {
        entry,
        nth: day - first + 1,
        of: last - first + 1,
        from: (timed && day == from.day()).then_some(from),
        to: (timed && day == last).then_some(to),
    }
}

//! What is on: occurrences with what lists show of their items, and the days on which they are.
//!
//! Where an answer is wanted as occurrences, [`occurrences`] gives them; [`read_agenda`] asks for
//! all that happens in a window, and [`days`] puts that into days. Printing is the caller's matter,
//! but the words of a time are made here.

use crate::error::Error;
use crate::execution::find;
use crate::expansion::{expand_occurrences, has_time_range};
use crate::local_time::{DayRange, LocalTimeSpan, zone_name};
use crate::query::Query;
use crate::result_set::ResultSet;
use crate::search_request::SearchRequest;
use crate::time_test::TimeTest;
use larder_format::field::{Field, find_calendar_field};
use larder_store::{ItemMeta, ItemOccurrence, Kind, Reader, Schedule, TimeRange};
use larder_time::series::Series;
use larder_time::zone::Zone;
use std::collections::HashMap;
use std::sync::Arc;

/// Items that are asked in one transaction.
const ITEMS_PER_TX: usize = 1024;

/// What lists show of an item.
#[derive(Debug, Clone)]
pub struct ItemSummary {
    /// The item.
    pub head: ItemMeta,
    /// What it is about, and where.
    pub summary: String,
    /// Where it is.
    pub location: String,
    /// STATUS, in upper case.
    pub status: String,
    /// It takes time that stays free.
    pub transparent: bool,
    /// It recurs, or stands for an occurrence of what does.
    pub is_recurring: bool,
    /// A task that is done.
    pub is_done: bool,
    /// A task that has a time until when it is to be done.
    pub has_due: bool,
    /// The zone of its own clock; `None`: it floats, or is of whole days.
    pub zone: Option<String>,
    /// When it is first; `None`: it has no time of its own.
    pub first: Option<LocalTimeSpan>,
}

/// An occurrence of an item.
#[derive(Debug, Clone)]
pub struct AgendaEntry {
    /// What it is an occurrence of.
    pub item: Arc<ItemSummary>,
    /// The occurrence.
    pub occurrence: ItemOccurrence,
    /// When it is, by the clock of who asks.
    pub local_time: LocalTimeSpan,
}

/// Occurrences, in the order of their beginnings; of alarms, in the order in which they ring.
#[derive(Debug, Clone, Default)]
pub struct OccurrenceList {
    /// They.
    pub entries: Vec<AgendaEntry>,
    /// There are more than were asked for.
    pub truncated: bool,
    /// Rows of items of which not all occurrences could be found within bounds, or not the end of a
    /// COUNT.
    pub uncertain_rows: Vec<i64>,
}

impl ItemSummary {
    /// Was it called off?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.status == "CANCELLED"
    }
}

impl AgendaEntry {
    /// Which occurrence of its series it is, as RECURRENCE-ID would have it; empty where it does
    /// not recur.
    #[must_use]
    pub fn recurrence_id(&self) -> String {
        let of = &self.occurrence.occurrence;
        if !self.item.head.recurrence_id.is_empty() && (of.is_override || of.tag.is_none()) {
            return self.item.head.recurrence_id.clone();
        }
        match (self.item.is_recurring, self.occurrence.is_date, self.occurrence.is_floating) {
            (false, ..) => self.item.head.recurrence_id.clone(),
            (true, true, _) => {
                of.original_civil.to_string().split('T').next().map(Into::into).unwrap_or_default()
            }
            (true, false, true) => of.original_civil.to_string(),
            (true, false, false) => format!("{}Z", of.original.to_civil(0)),
        }
    }

    /// The days on which an agenda lists the occurrence: a task with a due time on that day only.
    #[must_use]
    pub fn agenda_days(&self) -> DayRange {
        let last = self.local_time.last_day();
        let first = if self.item.has_due { last } else { self.local_time.from.day_number() };
        DayRange { first, last }
    }
}

/// When the items of an answer happen, or their alarms ring, in a window: the first `limit`.
///
/// # Errors
/// What the store reports.
pub fn list_occurrences(
    reader: &Reader,
    answer: &ResultSet,
    window: &TimeRange,
    limit: usize,
) -> Result<OccurrenceList, Error> {
    let expansion = expand_occurrences(reader, answer, window, limit)?;
    let mut rows: Vec<i64> = expansion.occurrences.iter().map(|(row, _)| *row).collect();
    rows.sort_unstable();
    rows.dedup();
    let briefs = read_item_summaries(reader, &rows, &window.local_zone)?;
    let entry = |(row, occurring): (i64, ItemOccurrence)| {
        // What was removed since is left out.
        let item = Arc::clone(briefs.get(&row)?);
        Some(AgendaEntry {
            item,
            occurrence: occurring,
            local_time: LocalTimeSpan::from_occurrence(&occurring, &window.local_zone),
        })
    };
    let entries = expansion.occurrences.into_iter().filter_map(entry).collect();
    Ok(OccurrenceList {
        entries,
        truncated: expansion.truncated,
        uncertain_rows: expansion.uncertain_rows,
    })
}

/// What lists show of the items in these rows, by the clock of who asks.
///
/// # Errors
/// What the store reports.
pub fn read_item_summaries(
    reader: &Reader,
    rows: &[i64],
    local: &Zone,
) -> Result<HashMap<i64, Arc<ItemSummary>>, Error> {
    let named = |name| find_calendar_field(name);
    let fields: Vec<&'static Field> =
        ["summary", "location", "status", "transp"].into_iter().filter_map(named).collect();
    let mut found: HashMap<i64, ItemSummary> = HashMap::with_capacity(rows.len());
    ResultSet::from_rows(rows).for_each_projected(reader, &fields, &mut |head, of| {
        let mut values = fields.iter().map(|field| of.first(field).unwrap_or_default());
        let mut next = || values.next().unwrap_or_default().trim().to_string();
        let (summary, location) = (next(), next());
        let status = next().to_ascii_uppercase();
        let transparent = next().eq_ignore_ascii_case("TRANSPARENT");
        let (recurs, done, due) = (!head.recurrence_id.is_empty(), false, false);
        let (head, zone, first) = (head.clone(), None, None);
        let row = head.row;
        let brief = ItemSummary {
            head,
            summary,
            location,
            status,
            transparent,
            is_recurring: recurs,
            is_done: done,
            has_due: due,
            zone,
            first,
        };
        found.insert(row, brief);
        true
    })?;
    let mut timed = |row: i64, times: &Schedule| {
        if let Some(brief) = found.get_mut(&row) {
            brief.is_recurring |= times.is_recurring();
            brief.zone = zone_name(times);
            brief.first = LocalTimeSpan::from_first_occurrence(times, local);
        }
        true
    };
    reader.for_each_schedule(rows, &mut timed)?;
    let tasks =
        rows.iter().filter(|row| found.get(row).is_some_and(|of| of.head.kind == Kind::Task));
    let tasks: Vec<i64> = tasks.copied().collect();
    let fields: Vec<&'static Field> = ["due", "done"].into_iter().filter_map(named).collect();
    ResultSet::from_rows(&tasks).for_each_projected(reader, &fields, &mut |head, of| {
        if let (Some(brief), [due, done]) = (found.get_mut(&head.row), fields.as_slice()) {
            brief.has_due = of.first(due).is_some();
            brief.is_done = of.first(done).is_some();
        }
        true
    })?;
    Ok(found.into_iter().map(|(row, brief)| (row, Arc::new(brief))).collect())
}

/// Rows of items of which it is not sure that they answer the question as they do, or do not: their
/// rules cannot be followed as far as its time, or not to the end of a COUNT. What a negation left
/// out for that is not among them.
///
/// # Errors
/// What the store reports.
pub fn find_uncertain_rows(reader: &Reader, answer: &ResultSet) -> Result<Vec<i64>, Error> {
    let mut unsure = answer.uncertain_rows.clone();
    let rows = if has_time_range(&answer.query) { answer.rows() } else { Vec::new() };
    for page in rows.chunks(ITEMS_PER_TX) {
        reader.for_each_schedule(page, &mut |row, times| {
            let is_counted = times.series().is_none_or(Series::has_resolved_ends);
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
pub struct OccurrenceCount {
    /// So many were counted.
    pub number: u64,
    /// Rows of items of which not all could be counted within bounds, or not the end of a COUNT.
    pub uncertain_rows: Vec<i64>,
}

/// How many occurrences, or alarms, the items of an answer have in a window.
///
/// # Errors
/// What the store reports.
pub fn count_occurrences(
    reader: &Reader,
    answer: &ResultSet,
    window: &TimeRange,
) -> Result<OccurrenceCount, Error> {
    let mut count = OccurrenceCount {
        uncertain_rows: answer.uncertain_rows.clone(),
        ..OccurrenceCount::default()
    };
    for page in answer.rows().chunks(ITEMS_PER_TX) {
        reader.for_each_schedule(page, &mut |row, times| {
            let (number, whole) = times.count_in(window);
            count.number += number;
            if !whole {
                count.uncertain_rows.push(row);
            }
            true
        })?;
    }
    count.uncertain_rows.sort_unstable();
    count.uncertain_rows.dedup();
    Ok(count)
}

/// What is on in a window: events, and tasks where they are due; the first `limit`. In all
/// collections if none is named.
///
/// # Errors
/// An unknown collection, or what the store reports.
pub fn read_agenda(
    reader: &Reader,
    collections: &[String],
    window: &TimeRange,
    limit: usize,
) -> Result<OccurrenceList, Error> {
    read_agenda_with(&mut |question| find(reader, question), reader, collections, window, limit)
}

/// The same, for who wants to know what is asked for it: `ask` answers, as [`find`](crate::find())
/// does.
///
/// # Errors
/// As [`read_agenda`].
pub fn read_agenda_with(
    ask: &mut dyn FnMut(&SearchRequest) -> Result<ResultSet, Error>,
    reader: &Reader,
    collections: &[String],
    window: &TimeRange,
    limit: usize,
) -> Result<OccurrenceList, Error> {
    // Memos are not on anywhere.
    let query = Query::And(vec![
        Query::Time(TimeTest::InRange(window.clone())),
        Query::Or(vec![Query::Kind(Kind::Event), Query::Kind(Kind::Task)]),
    ]);
    let mut ask = |collection: Option<&String>| {
        let (query, collection) = (query.clone(), collection.cloned());
        ask(&SearchRequest { query, collection, ..SearchRequest::default() })
    };
    let mut names: Vec<&String> = collections.iter().collect();
    names.sort_unstable();
    names.dedup();
    let mut answer = ask(names.pop())?;
    for name in names {
        answer.merge(ask(Some(name))?);
    }
    let mut found = list_occurrences(reader, &answer, window, limit)?;
    let page_days = DayRange::from_time_range(window);
    found.entries.retain(|entry| {
        matches!(entry.item.head.kind, Kind::Event | Kind::Task)
            && entry.agenda_days().overlaps(page_days)
    });
    Ok(found)
}

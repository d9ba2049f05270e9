//! Occurrences with the fields of their items that lists show, and counts of occurrences.
//!
//! [`list_occurrences`] expands a result; [`read_agenda`] searches a time range. Separate from
//! `expansion`, which reads no items. `larder-present` makes the text.

use crate::error::Error;
use crate::execution::find;
use crate::expansion::{expand_occurrences, has_time_range};
use crate::local_time::{DayRange, LocalTimeSpan, read_item_times, zone_name};
use crate::query::Query;
use crate::result_set::ResultSet;
use crate::search_request::SearchRequest;
use crate::time_test::TimeTest;
use larder_format::field::{Field, find_calendar_field};
use larder_store::{ItemMeta, ItemOccurrence, ItemRow, Kind, Reader, Schedule, TimeRange};
use larder_time::rule::StepBudget;
use larder_time::series::Series;
use larder_time::zone::Zone;
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum number of schedules read in one transaction.
const ITEMS_PER_TX: usize = 1024;

/// The fields of an item that lists show.
#[derive(Debug, Clone)]
pub struct ItemSummary {
    /// The item's metadata.
    pub meta: ItemMeta,
    /// SUMMARY.
    pub summary: String,
    /// LOCATION.
    pub location: String,
    /// STATUS, in upper case.
    pub status: String,
    /// Whether the item leaves its time free (TRANSP).
    pub transparent: bool,
    /// Whether the item is a series or an override of a series.
    pub is_recurring: bool,
    /// The item is a completed task.
    pub is_done: bool,
    /// The item is a task with a due time.
    pub has_due: bool,
    /// The time zone that the item names; `None` for floating times and dates.
    pub zone: Option<String>,
    /// The first occurrence; `None` if the item has no time.
    pub first: Option<LocalTimeSpan>,
}

/// An occurrence of an item.
#[derive(Debug, Clone)]
pub struct AgendaEntry {
    /// The item.
    pub item: Arc<ItemSummary>,
    /// The occurrence.
    pub occurrence: ItemOccurrence,
    /// Its time in the user's time zone.
    pub local_time: LocalTimeSpan,
}

/// The entries that an agenda is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgendaContent {
    /// Events and tasks.
    EventsAndTasks,
    /// Events that take up time.
    BusyTime,
}

impl AgendaContent {
    fn has_kind(self, kind: Kind) -> bool {
        match self {
            AgendaContent::EventsAndTasks => kind.is_in_agenda(),
            AgendaContent::BusyTime => kind.is_busy_time(),
        }
    }

    fn has_due_times(self) -> bool {
        Kind::all().any(|kind| self.has_kind(kind) && kind.has_due_time())
    }

    fn has_item(self, item: &ItemSummary) -> bool {
        self.has_kind(item.meta.kind) && (self == Self::EventsAndTasks || item.is_busy_time())
    }
}

/// The growth of the number of occurrences that are listed, as long as too few of them are entries
/// of an agenda.
const LIMIT_GROWTH: usize = 4;
/// The number of occurrences at which this growth ends. Rules can have any number of them.
const MAX_LISTED_OCCURRENCES: usize = 65_536;

/// Occurrences by start, or alarms by the time when they ring.
#[derive(Debug, Clone, Default)]
pub struct OccurrenceList {
    /// The occurrences.
    pub entries: Vec<AgendaEntry>,
    /// Whether there are more occurrences than the limit.
    pub truncated: bool,
    /// Rows of items whose occurrences, or whose last occurrence by COUNT, were not found within
    /// the budget.
    pub undecided_rows: Vec<ItemRow>,
}

impl ItemSummary {
    /// Returns whether STATUS is CANCELLED.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.status == "CANCELLED"
    }

    /// Returns whether the item takes up its time.
    #[must_use]
    pub fn is_busy_time(&self) -> bool {
        self.meta.kind.is_busy_time() && !self.transparent && !self.is_cancelled()
    }
}

impl AgendaEntry {
    /// Returns the recurrence-id of the occurrence; empty if the item does not recur.
    #[must_use]
    pub fn recurrence_id(&self) -> String {
        let occurrence = &self.occurrence.occurrence;
        if !self.item.meta.recurrence_id.is_empty()
            && (occurrence.is_override || occurrence.tag.is_none())
        {
            return self.item.meta.recurrence_id.clone();
        }
        match (self.item.is_recurring, self.occurrence.is_date, self.occurrence.is_floating) {
            (false, ..) => self.item.meta.recurrence_id.clone(),
            (true, true, _) => occurrence
                .original_civil
                .to_string()
                .split('T')
                .next()
                .map(Into::into)
                .unwrap_or_default(),
            (true, false, true) => occurrence.original_civil.to_string(),
            (true, false, false) => format!("{}Z", occurrence.original.to_civil(0)),
        }
    }

    /// The days on which an agenda lists the occurrence: a task with a due time on that day only.
    #[must_use]
    pub fn agenda_days(&self) -> DayRange {
        if self.item.has_due {
            let day = self.local_time.due_day();
            return DayRange { first: day, last: day };
        }
        DayRange { first: self.local_time.from.day_number(), last: self.local_time.last_day() }
    }
}

/// Lists the first `limit` occurrences, or alarms, of the items of a result in a time range.
///
/// # Errors
/// Errors of the store.
pub fn list_occurrences(
    reader: &Reader,
    result: &ResultSet,
    time_range: &TimeRange,
    limit: usize,
) -> Result<OccurrenceList, Error> {
    let expansion = expand_occurrences(reader, result, time_range, limit)?;
    let mut rows: Vec<ItemRow> = expansion.occurrences.iter().map(|(row, _)| *row).collect();
    rows.sort_unstable();
    rows.dedup();
    let summaries = read_item_summaries(reader, &rows, &time_range.local_zone)?;
    let entry = |(row, occurrence): (ItemRow, ItemOccurrence)| {
        // Items that have been removed in the meantime are skipped.
        let item = Arc::clone(summaries.get(&row)?);
        Some(AgendaEntry {
            item,
            occurrence,
            local_time: LocalTimeSpan::from_occurrence(&occurrence, &time_range.local_zone),
        })
    };
    let entries = expansion.occurrences.into_iter().filter_map(entry).collect();
    Ok(OccurrenceList {
        entries,
        truncated: expansion.truncated,
        undecided_rows: expansion.undecided_rows,
    })
}

/// Reads the fields that lists show of the items in these rows.
///
/// # Errors
/// Errors of the store.
pub fn read_item_summaries(
    reader: &Reader,
    rows: &[ItemRow],
    local: &Zone,
) -> Result<HashMap<ItemRow, Arc<ItemSummary>>, Error> {
    let named = |name| find_calendar_field(name);
    let fields: Vec<&'static Field> =
        ["summary", "location", "status", "transp"].into_iter().filter_map(named).collect();
    let mut found: HashMap<ItemRow, ItemSummary> = HashMap::with_capacity(rows.len());
    ResultSet::from_rows(rows).for_each_projected(reader, &fields, &mut |meta, item| {
        let mut values = fields.iter().map(|field| item.first(field).unwrap_or_default());
        let mut next = || values.next().unwrap_or_default().trim().to_string();
        let (summary, location) = (next(), next());
        let status = next().to_ascii_uppercase();
        let transparent = next().eq_ignore_ascii_case("TRANSPARENT");
        let (recurs, done, due) = (!meta.recurrence_id.is_empty(), false, false);
        let (meta, zone, first) = (meta.clone(), None, None);
        let row = meta.row;
        let summary_of_item = ItemSummary {
            meta,
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
        found.insert(row, summary_of_item);
        true
    })?;
    let mut add_times = |row: ItemRow, schedule: &Schedule| {
        if let Some(summary_of_item) = found.get_mut(&row) {
            summary_of_item.is_recurring |= schedule.is_recurring();
            summary_of_item.zone = zone_name(schedule);
            summary_of_item.first = LocalTimeSpan::from_first_occurrence(schedule, local);
        }
        true
    };
    reader.items().for_each_schedule(rows, &mut add_times)?;
    let has_due_time =
        |row: &&ItemRow| found.get(row).is_some_and(|item| item.meta.kind.has_due_time());
    let tasks: Vec<ItemRow> = rows.iter().filter(has_due_time).copied().collect();
    let fields: Vec<&'static Field> = ["due", "done"].into_iter().filter_map(named).collect();
    ResultSet::from_rows(&tasks).for_each_projected(reader, &fields, &mut |meta, item| {
        if let (Some(summary_of_item), [due, done]) = (found.get_mut(&meta.row), fields.as_slice())
        {
            summary_of_item.has_due = item.first(due).is_some();
            summary_of_item.is_done = item.first(done).is_some();
        }
        true
    })?;
    for summary in found.values_mut().filter(|summary| {
        summary.meta.kind.has_due_time() && !summary.has_due && summary.first.is_some()
    }) {
        // A task with a start and a length is due at its end.
        summary.has_due =
            read_item_times(reader, &summary.meta, local)?.is_some_and(|times| times.due.is_some());
    }
    Ok(found.into_iter().map(|(row, summary_of_item)| (row, Arc::new(summary_of_item))).collect())
}

/// Returns the rows of items whose match is uncertain: their rules cannot be expanded up to the
/// time range, or to the end of a COUNT, within bounds. Items that a negation excluded are not
/// among them.
///
/// # Errors
/// Errors of the store.
pub fn find_undecided_rows(reader: &Reader, result: &ResultSet) -> Result<Vec<ItemRow>, Error> {
    let mut uncertain = result.undecided_rows.clone();
    let rows = if has_time_range(&result.query) { result.rows() } else { Vec::new() };
    for page in rows.chunks(ITEMS_PER_TX) {
        reader.items().for_each_schedule(page, &mut |row, schedule| {
            let is_counted = schedule.series().is_none_or(Series::has_resolved_ends);
            uncertain.extend((!is_counted).then_some(row));
            true
        })?;
    }
    uncertain.sort_unstable();
    uncertain.dedup();
    Ok(uncertain)
}

/// A number of occurrences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OccurrenceCount {
    /// The number.
    pub number: u64,
    /// Rows of items whose occurrences, or whose last occurrence by COUNT, were not found within
    /// the budget.
    pub undecided_rows: Vec<ItemRow>,
}

/// Counts the occurrences, or alarms, of the items of a result in a time range, of each item at
/// most about `limit`.
///
/// # Errors
/// Errors of the store.
pub fn count_occurrences(
    reader: &Reader,
    result: &ResultSet,
    time_range: &TimeRange,
    limit: usize,
) -> Result<OccurrenceCount, Error> {
    let budget = StepBudget::for_occurrences(limit);
    let mut count = OccurrenceCount {
        undecided_rows: result.undecided_rows.clone(),
        ..OccurrenceCount::default()
    };
    for page in result.rows().chunks(ITEMS_PER_TX) {
        reader.items().for_each_schedule(page, &mut |row, schedule| {
            let (number, is_complete) = schedule.count_in(time_range, budget);
            count.number += number;
            if !is_complete {
                count.undecided_rows.push(row);
            }
            true
        })?;
    }
    count.undecided_rows.sort_unstable();
    count.undecided_rows.dedup();
    Ok(count)
}

/// Finds the first `limit` events and due tasks in a time range: in these collections, or in all if
/// the list is empty.
///
/// # Errors
/// An unknown collection, or an error of the store.
pub fn read_agenda(
    reader: &Reader,
    collections: &[String],
    time_range: &TimeRange,
    limit: usize,
) -> Result<OccurrenceList, Error> {
    let content = AgendaContent::EventsAndTasks;
    let search = &mut |request: &SearchRequest| find(reader, request);
    read_agenda_with(search, reader, collections, time_range, content, limit)
}

/// Like [`read_agenda`], with a function that runs each search in place of [`find`](crate::find()),
/// for callers that log it.
///
/// # Errors
/// As [`read_agenda`].
pub fn read_agenda_with(
    search: &mut dyn FnMut(&SearchRequest) -> Result<ResultSet, Error>,
    reader: &Reader,
    collections: &[String],
    time_range: &TimeRange,
    content: AgendaContent,
    limit: usize,
) -> Result<OccurrenceList, Error> {
    let mut names: Vec<&String> = collections.iter().collect();
    names.sort_unstable();
    names.dedup();
    let result = search_agenda(search, &names, time_range, content)?;
    let page_days = DayRange::from_time_range(time_range);
    let is_on_page = |entry: &AgendaEntry| entry.agenda_days().overlaps(page_days);
    let is_entry = |entry: &AgendaEntry| content.has_item(&entry.item) && is_on_page(entry);
    let mut found = list_entries(reader, &result, time_range, limit, &is_entry)?;
    let moment_before = moment_before_midnight(time_range);
    if let Some(moment_before) = moment_before.filter(|_| content.has_due_times()) {
        let find = &mut |request: &SearchRequest| find(reader, request);
        let ending = search_agenda(find, &names, &moment_before, content)?;
        let is_due_then = |entry: &AgendaEntry| {
            let ends_then = entry.occurrence.occurrence.end == time_range.from;
            entry.item.has_due && ends_then && is_on_page(entry)
        };
        let before = list_entries(reader, &ending, &moment_before, limit, &is_due_then)?;
        let mut due = before.entries;
        due.append(&mut found.entries);
        found.truncated |= before.truncated || due.len() > limit;
        due.truncate(limit);
        found.entries = due;
    }
    Ok(found)
}

/// Lists the first `limit` occurrences that are entries. The others, such as tasks that are due on
/// a later day, do not count.
fn list_entries(
    reader: &Reader,
    result: &ResultSet,
    time_range: &TimeRange,
    limit: usize,
    is_entry: &dyn Fn(&AgendaEntry) -> bool,
) -> Result<OccurrenceList, Error> {
    let mut listed = limit.saturating_add(1);
    loop {
        let mut found = list_occurrences(reader, result, time_range, listed)?;
        found.entries.retain(is_entry);
        if !found.truncated || found.entries.len() > limit || listed >= MAX_LISTED_OCCURRENCES {
            found.truncated &= listed >= MAX_LISTED_OCCURRENCES;
            found.truncated |= found.entries.len() > limit;
            found.entries.truncate(limit);
            return Ok(found);
        }
        listed = listed.saturating_mul(LIMIT_GROWTH);
    }
}

/// Searches items in a time range: in collections with these names, or in all if there are none.
fn search_agenda(
    search: &mut dyn FnMut(&SearchRequest) -> Result<ResultSet, Error>,
    names: &[&String],
    time_range: &TimeRange,
    content: AgendaContent,
) -> Result<ResultSet, Error> {
    let query = Query::And(vec![
        Query::Time(TimeTest::InRange(time_range.clone())),
        Query::Or(Kind::all().filter(|kind| content.has_kind(*kind)).map(Query::Kind).collect()),
    ]);
    let mut search_collection = |collection: Option<&&String>| {
        let (query, collection) = (query.clone(), collection.map(|name| name.to_string()));
        search(&SearchRequest { query, collection, ..SearchRequest::default() })
    };
    let (last, others) =
        names.split_last().map_or((None, names), |(last, rest)| (Some(last), rest));
    let mut result = search_collection(last)?;
    for name in others {
        result.merge(search_collection(Some(name))?);
    }
    Ok(result)
}

/// Returns the second before a time range that begins at midnight. A task that is due at midnight
/// is over then, but is listed on the day that begins.
fn moment_before_midnight(time_range: &TimeRange) -> Option<TimeRange> {
    let (from, to) = (time_range.from.saturating_add(-1), time_range.from);
    let is_midnight = time_range.local_zone.to_civil(to).second_of_day() == 0;
    is_midnight.then(|| TimeRange { from, to, ..time_range.clone() })
}

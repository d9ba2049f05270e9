//! The measurements of the benchmarks of calendars; shell scripts call them.
//!
//! * `ask STORE QUERIES SECONDS`: runs the queries of `larder measure generate queries` on a store
//!   in this process, and changes single items. Parsing and planning a query are part of its time.
//! * `row STORE QUERIES SECONDS ROW`: runs one row, for a profiler.
//! * `memory STORE QUERIES`: the memory of a process that answers the queries.
//!
//! The columns of the output, separated by tabs: row, wall time (median), 0, CPU time (mean), hits
//! (mean), repetitions, p99. Times are in microseconds. Lines that begin with `#` have the rows
//! visited, series tested and items returned by all queries of a kind. The program is no part of
//! Larder.

#![allow(clippy::print_stdout, reason = "a program for scripts")]

use jiff::tz::TimeZoneDatabase;
use larder_date_phrase::DateRange;
use larder_query::{
    Query, QueryContext, ResultSet, SearchRequest, UserLocale, expand_occurrences, find,
    required_time_range,
};
use larder_store::{
    BatchChange, CalendarContext, CollectionType, ItemPut, Operation, Precondition, Reader, Store,
    StoreOptions, TimeRange, TimeTarget,
};
use larder_time::civil::{CivilTime, Instant as Moment};
use larder_time::zone::ZoneDatabase;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The number of single changes of each kind.
const SINGLE_CHANGES_PER_KIND: usize = 100;
/// The minimum and maximum number of repetitions of a row.
const REPETITION_LIMITS: [usize; 2] = [5, 20_000];
/// The maximum number of occurrences of a query.
const MAX_OCCURRENCES: usize = 1 << 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["ask", store, queries, seconds] => {
            let queries = CalendarBenchQueries::read(queries)?;
            time_all_queries(Path::new(store), &queries, seconds.parse()?)?;
            time_changes(Path::new(store))
        }
        ["row", store, queries, seconds, "change"] if seconds.parse::<f64>().is_ok() => {
            CalendarBenchQueries::read(queries)?;
            time_changes(Path::new(store))
        }
        ["row", store, queries, seconds, name] => {
            let queries = CalendarBenchQueries::read(queries)?;
            let store = Path::new(store);
            let kind = name.split('-').next().unwrap_or_default();
            let kind = if kind == "open" { "day" } else { kind };
            let lines = queries.search_lines(kind);
            let reader = Reader::open_with_zones(store, system_zones()?)?;
            let collection = reader.collections().list()?.into_iter().next().ok_or("no collection")?.name;
            time_row(name, &lines, seconds.parse()?, &mut |line| match name {
                "uid" => get_by_uid(&reader, &collection, line),
                "open" => count_ids(&Reader::open_with_zones(store, system_zones()?)?, line),
                _ if name.ends_with("-bytes") => read_bytes(&reader, line),
                _ if name.ends_with("-expanded") => count_occurrences(&reader, line),
                _ => answer_query(&reader, kind, line),
            })
        }
        ["memory", store, queries] => print_memory(Path::new(store), &CalendarBenchQueries::read(queries)?),
        _ => Err("usage: ask STORE QUERIES SECONDS | row STORE QUERIES SECONDS ROW | memory STORE QUERIES".into()),
    }
}

/// The queries: kinds and search lines.
struct CalendarBenchQueries(Vec<(String, String)>);

impl CalendarBenchQueries {
    fn read(file: &str) -> Result<CalendarBenchQueries> {
        let text = fs::read_to_string(file)?;
        let line = |line: &str| {
            let mut parts = line.split('\t');
            Some((parts.next()?.to_string(), parts.next()?.to_string()))
        };
        Ok(CalendarBenchQueries(text.lines().filter_map(line).collect()))
    }

    fn search_lines(&self, kind: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(line_kind, _)| line_kind == kind)
            .map(|(_, line)| line.as_str())
            .collect()
    }
}

/// The timings of repetitions: the wall time of each, the CPU time of all.
#[derive(Default)]
struct CalendarTimings {
    times: Vec<Duration>,
    cpu_time: Duration,
}

impl CalendarTimings {
    fn measure<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (clock, before) = (Instant::now(), cpu_time()?);
        let result = work()?;
        self.times.push(clock.elapsed());
        self.cpu_time += cpu_time()?.saturating_sub(before);
        Ok(result)
    }

    fn print(mut self, row: &str, hits: usize) {
        self.times.sort_unstable();
        let reps = self.times.len().max(1);
        let us = |time: Duration| time.as_nanos() as f64 / 1e3;
        let at = |index: usize| self.times.get(index.min(reps - 1)).map_or(0.0, |&time| us(time));
        let (cpu, hits) = (us(self.cpu_time) / reps as f64, hits as f64 / reps as f64);
        let (median, p99) = (at(reps / 2), at(reps * 99 / 100));
        println!("{row}\t{median:.1}\t0\t{cpu:.1}\t{hits:.1}\t{reps}\t{p99:.1}");
    }
}

/// Returns the CPU time of this thread. Clock ticks would be too coarse for one query.
fn cpu_time() -> Result<Duration> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: u64 = text.split(' ').next().ok_or("no time")?.parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// Returns the time zones of this system, with their version, as `larder` has them.
fn system_zones() -> Result<Arc<ZoneDatabase>> {
    static SYSTEM_ZONES: OnceLock<Arc<ZoneDatabase>> = OnceLock::new();
    if let Some(zones) = SYSTEM_ZONES.get() {
        return Ok(Arc::clone(zones));
    }
    let database = TimeZoneDatabase::from_env();
    let first = fs::read_to_string("/usr/share/zoneinfo/tzdata.zi").unwrap_or_default();
    let version = first.lines().next().and_then(|line| line.strip_prefix("# version "));
    let zones = Arc::new(match version {
        Some(version) => ZoneDatabase::with_version(database, format!("tzdata {version}")),
        None => ZoneDatabase::new(database),
    });
    Ok(Arc::clone(SYSTEM_ZONES.get_or_init(|| zones)))
}

fn parse_query(line: &str) -> Result<Query> {
    Ok(Query::parse_with(line, &bench_settings())?)
}

/// The context of all queries: UTC, and a time in the middle of the calendar.
fn bench_settings() -> QueryContext {
    let now = Moment::from_seconds_clamped(1_640_995_200);
    QueryContext {
        user_locale: UserLocale { now, ..UserLocale::default() },
        ..QueryContext::default()
    }
}

fn run_query(reader: &Reader, line: &str) -> Result<ResultSet> {
    Ok(find(reader, &SearchRequest { query: parse_query(line)?, ..SearchRequest::default() })?)
}

fn count_ids(reader: &Reader, line: &str) -> Result<usize> {
    Ok(run_query(reader, line)?.rows().len())
}

fn read_bytes(reader: &Reader, line: &str) -> Result<usize> {
    let (mut count, mut all) = (0, 0);
    run_query(reader, line)?.for_each_source_bytes(reader, &mut |bytes| {
        count += 1;
        all += bytes.len();
        true
    })?;
    if count > 0 && all == 0 { Err("no bytes".into()) } else { Ok(count) }
}

fn count_occurrences(reader: &Reader, line: &str) -> Result<usize> {
    let query = parse_query(line)?;
    let range = required_time_range(&query).cloned().ok_or("no time range")?;
    let answer = find(reader, &SearchRequest { query, ..SearchRequest::default() })?;
    Ok(expand_occurrences(reader, &answer, &range, MAX_OCCURRENCES)?.occurrences.len())
}

/// Reads an item by its UID, without a query.
fn get_by_uid(reader: &Reader, collection: &str, line: &str) -> Result<usize> {
    let uid = line.trim_start_matches("uid:=");
    Ok(usize::from(reader.items().get(collection, uid)?.is_some()))
}

/// Counts the alarms in a time range, which is the whole line.
fn count_alarms(reader: &Reader, line: &str) -> Result<usize> {
    let range = parse_alarm_range(line)?;
    let query = larder_query::Query::Time(larder_query::TimeTest::InRange(range.clone()));
    let answer = find(reader, &SearchRequest { query, ..SearchRequest::default() })?;
    Ok(expand_occurrences(reader, &answer, &range, MAX_OCCURRENCES)?.occurrences.len())
}

fn parse_alarm_range(line: &str) -> Result<TimeRange> {
    let user_locale = bench_settings().user_locale;
    let now = CivilTime::from_seconds_clamped(user_locale.now.seconds());
    let text = line.strip_prefix("when:").or_else(|| line.strip_prefix("alarm:")).unwrap_or(line);
    let range = DateRange::parse(text, now, &user_locale.language)?;
    let (from, to) =
        (user_locale.zone.to_instant(range.from), user_locale.zone.to_instant(range.to));
    Ok(TimeRange { from, to, local_zone: user_locale.zone, target: TimeTarget::Alarms })
}

fn answer_query(reader: &Reader, kind: &str, line: &str) -> Result<usize> {
    match kind {
        "alarms" => count_alarms(reader, line),
        _ => count_ids(reader, line),
    }
}

fn time_all_queries(store: &Path, queries: &CalendarBenchQueries, seconds: f64) -> Result<()> {
    time_row("open", &queries.search_lines("day"), seconds, &mut |line| {
        count_ids(&Reader::open_with_zones(store, system_zones()?)?, line)
    })?;
    let reader = Reader::open_with_zones(store, system_zones()?)?;
    let years: Vec<String> = (2017..2027).map(|year| format!("when:{year}")).collect();
    for kind in ["day", "week", "month", "list", "year"] {
        let lines = match kind {
            "year" => years.iter().map(String::as_str).collect(),
            _ => queries.search_lines(kind),
        };
        time_row(&format!("{kind}-ids"), &lines, seconds, &mut |line| count_ids(&reader, line))?;
        time_row(&format!("{kind}-bytes"), &lines, seconds, &mut |line| read_bytes(&reader, line))?;
        if matches!(kind, "day" | "month") {
            time_row(&format!("{kind}-expanded"), &lines, seconds, &mut |line| {
                count_occurrences(&reader, line)
            })?;
        }
    }
    time_row("alarms", &queries.search_lines("alarms"), seconds, &mut |line| {
        count_alarms(&reader, line)
    })?;
    time_row("words", &queries.search_lines("words"), seconds, &mut |line| {
        count_ids(&reader, line)
    })?;
    let collection = reader.collections().list()?.into_iter().next().ok_or("no collection")?.name;
    let uids = queries.search_lines("uid");
    time_row("uid", &uids, seconds, &mut |line| get_by_uid(&reader, &collection, line))?;
    let all: Vec<&(String, String)> = queries.0.iter().collect();
    time_row("mixed", &all, seconds, &mut |(kind, line)| answer_query(&reader, kind, line))?;
    print_work_counts(&reader, queries)
}

/// Prints the rows visited, series tested and items returned.
fn print_work_counts(reader: &Reader, queries: &CalendarBenchQueries) -> Result<()> {
    let mut sums: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for (kind, line) in &queries.0 {
        let query = match kind.as_str() {
            "alarms" => {
                larder_query::Query::Time(larder_query::TimeTest::InRange(parse_alarm_range(line)?))
            }
            _ => parse_query(line)?,
        };
        let explain = find(reader, &SearchRequest { query, ..SearchRequest::default() })?.explain;
        for name in [kind.as_str(), "mixed"] {
            let sum = sums.entry(name).or_default();
            for (sum, more) in
                sum.iter_mut().zip([1, explain.rows_read, explain.verified, explain.returned])
            {
                *sum += more;
            }
        }
    }
    for (kind, [queries, visited, tested, returned]) in sums {
        println!(
            "# {kind}: {queries} queries, {visited} visited, {tested} tested, {returned} returned"
        );
    }
    Ok(())
}

fn time_row<T>(
    name: &str,
    search_terms: &[T],
    seconds: f64,
    ask: &mut dyn FnMut(&T) -> Result<usize>,
) -> Result<()> {
    let Some(first) = search_terms.first() else { return Ok(()) };
    ask(first)?;
    let (mut spent, mut hits, begin) = (CalendarTimings::default(), 0, Instant::now());
    let before = cpu_time()?;
    for search_term in search_terms.iter().cycle() {
        let clock = Instant::now();
        hits += ask(search_term)?;
        spent.times.push(clock.elapsed());
        let [min, max] = REPETITION_LIMITS;
        let enough = begin.elapsed().as_secs_f64() >= seconds || spent.times.len() >= max;
        if enough && spent.times.len() >= min {
            break;
        }
    }
    spent.cpu_time = cpu_time()?.saturating_sub(before);
    spent.print(name, hits);
    Ok(())
}

/// Times single changes, each an operation of its own, and a durable append of the same bytes after
/// each.
fn time_changes(path: &Path) -> Result<()> {
    let reader = Reader::open_with_zones(path, system_zones()?)?;
    let collection = reader.collections().list()?.into_iter().next().ok_or("no collection")?;
    let mut items = Vec::new();
    for head in reader.items().list_after(&collection, None, 4 * SINGLE_CHANGES_PER_KIND)? {
        let bytes = reader.items().source_bytes(head.row)?.unwrap_or_default();
        let context = head
            .calendar_context
            .map(|row| reader.items().calendar_context(row))
            .transpose()?
            .flatten();
        if head.recurrence_id.is_empty() && items.len() < SINGLE_CHANGES_PER_KIND {
            items.push((head, String::from_utf8(bytes)?, context.unwrap_or_default()));
        }
    }
    let mut store =
        Store::open(path, &StoreOptions { zones: system_zones()?, ..StoreOptions::default() })?;
    let mut appended = OpenOptions::new().create(true).append(true).open(path.join("appended"))?;
    let name: Arc<str> = Arc::from(collection.name.as_str());
    let mut handles = Vec::new();
    for kind in ["create", "modify", "remove"] {
        let (mut changes, mut appends) = (CalendarTimings::default(), CalendarTimings::default());
        for (index, (head, bytes, context)) in items.iter().enumerate() {
            let uid = format!("{}-single", head.uid);
            let bytes = bytes.replacen(&head.uid, &uid, 1);
            changes.measure(|| {
                let mut operation = Operation::new(kind, "", 0);
                let change = match kind {
                    "create" => item_put(&store, &name, &uid, &bytes, context)?,
                    "modify" => item_put(
                        &store,
                        &name,
                        &uid,
                        &bytes.replacen("SUMMARY:", "SUMMARY:Later ", 1),
                        context,
                    )?,
                    _ => BatchChange::Remove(
                        *handles.get(index).ok_or("no handle")?,
                        Precondition::Any,
                    ),
                };
                let applied = store.apply(&mut operation, vec![change])?;
                if let (Some(larder_store::ChangeOutcome::Added(handle)), "create") =
                    (applied.outcomes.first(), kind)
                {
                    handles.push(*handle);
                }
                Ok(())
            })?;
            appends.measure(|| {
                appended.write_all(bytes.as_bytes())?;
                Ok(appended.sync_data()?)
            })?;
        }
        if handles.len() != items.len() {
            return Err("a single item was not added".into());
        }
        changes.print(kind, items.len());
        appends.print(&format!("{kind}-append"), items.len());
    }
    Ok(fs::remove_file(path.join("appended"))?)
}

fn item_put(
    store: &Store,
    into: &Arc<str>,
    uid: &str,
    bytes: &str,
    context: &CalendarContext,
) -> Result<BatchChange> {
    let extractor = store.extractor_for_collection(into, CollectionType::Calendar)?;
    let prepared =
        extractor.parse_component(bytes.as_bytes().to_vec(), context).map_err(|_| "not an item")?;
    let (collection, uid, expect) = (Arc::clone(into), uid.to_string(), Precondition::Any);
    Ok(BatchChange::Put(ItemPut {
        collection,
        uid,
        derived_uid: false,
        parsed: prepared,
        precondition: expect,
    }))
}

/// Prints the memory of this process: before the store is opened, and the peak after each query.
fn print_memory(store: &Path, queries: &CalendarBenchQueries) -> Result<()> {
    let before = anonymous_memory_kib()?;
    let reader = Reader::open_with_zones(store, system_zones()?)?;
    let mut peak = anonymous_memory_kib()?;
    for (kind, line) in &queries.0 {
        answer_query(&reader, kind, line)?;
        peak = peak.max(anonymous_memory_kib()?);
    }
    println!("memory\t{before}\t{peak}\tkB anonymous: start, peak");
    Ok(())
}

fn anonymous_memory_kib() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).ok_or("no RssAnon")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}

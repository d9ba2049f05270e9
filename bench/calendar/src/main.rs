//! What the calendar benchmark asks of Larder, besides shell.
//!
//! * `ask STORE QUERIES SECONDS`: puts the questions of `larder measure generate queries` to a store, in place, through
//!   `larder-query`, and changes single items. Reading a question and planning are timed, too.
//! * `row STORE QUERIES SECONDS ROW`: one row of these alone, to be profiled.
//! * `memory STORE QUERIES`: what a process takes that has the store open and has answered all of them.
//!
//! A line each: row, wall (median), 0, processor (mean), hits (mean), repetitions, p99, with tabs between; microseconds. Lines that begin with
//! `#` say how many rows were visited, series tested and items returned by the questions of a kind, all together.
//! It is no part of Larder.

#![allow(clippy::print_stdout, reason = "a program for scripts")]

use jiff::tz::TimeZoneDatabase;
use larder_date_phrase as phrase;
use larder_query::{Answer, Asker, Find, Query, Settings, expand, find, window_of};
use larder_store::{
    Change, Expect, Family, Frame, Operation, Options, Put, Reader, Store, What, Window,
};
use larder_time::civil::{Civil, Instant as Moment};
use larder_time::zone::Zones;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Single changes of each kind.
const SINGLY: usize = 100;
/// Fewest and most repetitions of a question.
const REPETITIONS: [usize; 2] = [5, 20_000];
/// More occurrences than this of one question are not asked for.
const MOST: usize = 1 << 20;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["ask", store, queries, seconds] => {
            let questions = Questions::read(queries)?;
            ask_all(Path::new(store), &questions, seconds.parse()?)?;
            change(Path::new(store))
        }
        ["row", store, queries, seconds, "change"] if seconds.parse::<f64>().is_ok() => {
            Questions::read(queries)?;
            change(Path::new(store))
        }
        ["row", store, queries, seconds, name] => {
            let questions = Questions::read(queries)?;
            let store = Path::new(store);
            let kind = name.split('-').next().unwrap_or_default();
            let kind = if kind == "open" { "day" } else { kind };
            let lines = questions.of(kind);
            let reader = Reader::open_with(store, zones()?)?;
            let collection = reader.collections()?.into_iter().next().ok_or("no collection")?.name;
            row(name, &lines, seconds.parse()?, &mut |line| match name {
                "uid" => by_uid(&reader, &collection, line),
                "open" => ids(&Reader::open_with(store, zones()?)?, line),
                _ if name.ends_with("-bytes") => bytes(&reader, line),
                _ if name.ends_with("-expanded") => expanded(&reader, line),
                _ => one(&reader, kind, line),
            })
        }
        ["memory", store, queries] => memory(Path::new(store), &Questions::read(queries)?),
        _ => Err("usage: ask STORE QUERIES SECONDS | row STORE QUERIES SECONDS ROW | memory STORE QUERIES".into()),
    }
}

/// The questions, by their kind: search lines.
struct Questions(Vec<(String, String)>);

impl Questions {
    fn read(file: &str) -> Outcome<Questions> {
        let text = fs::read_to_string(file)?;
        let line = |line: &str| {
            let mut parts = line.split('\t');
            Some((parts.next()?.to_string(), parts.next()?.to_string()))
        };
        Ok(Questions(text.lines().filter_map(line).collect()))
    }

    fn of(&self, kind: &str) -> Vec<&str> {
        self.0.iter().filter(|(own, _)| own == kind).map(|(_, line)| line.as_str()).collect()
    }
}

/// Time that was spent, and what for.
#[derive(Default)]
struct Spent {
    times: Vec<Duration>,
    processor: Duration,
}

impl Spent {
    fn on<T>(&mut self, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let (clock, before) = (Instant::now(), processor_time()?);
        let done = work()?;
        self.times.push(clock.elapsed());
        self.processor += processor_time()?.saturating_sub(before);
        Ok(done)
    }

    fn print(mut self, row: &str, hits: usize) {
        self.times.sort_unstable();
        let reps = self.times.len().max(1);
        let us = |time: Duration| time.as_nanos() as f64 / 1e3;
        let at = |place: usize| self.times.get(place.min(reps - 1)).map_or(0.0, |&time| us(time));
        let (cpu, hits) = (us(self.processor) / reps as f64, hits as f64 / reps as f64);
        let (median, p99) = (at(reps / 2), at(reps * 99 / 100));
        println!("{row}\t{median:.1}\t0\t{cpu:.1}\t{hits:.1}\t{reps}\t{p99:.1}");
    }
}

/// User and system time of this process: clock ticks would be too coarse for one question.
fn processor_time() -> Outcome<Duration> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let own: u64 = text.split(' ').next().ok_or("no time")?.parse()?;
    Ok(Duration::from_nanos(own))
}

/// The zones of this system, known by their version as `larder` knows them.
fn zones() -> Outcome<Arc<Zones>> {
    static ZONES: OnceLock<Arc<Zones>> = OnceLock::new();
    if let Some(zones) = ZONES.get() {
        return Ok(Arc::clone(zones));
    }
    let database = TimeZoneDatabase::from_env();
    let first = fs::read_to_string("/usr/share/zoneinfo/tzdata.zi").unwrap_or_default();
    let version = first.lines().next().and_then(|line| line.strip_prefix("# version "));
    let zones = Arc::new(match version {
        Some(version) => Zones::with_version(database, format!("tzdata {version}")),
        None => Zones::new(database),
    });
    Ok(Arc::clone(ZONES.get_or_init(|| zones)))
}

fn query(line: &str) -> Outcome<Query> {
    Ok(Query::parse_with(line, &settings())?)
}

/// Everybody is asked in UTC, in the middle of the calendar.
fn settings() -> Settings {
    let now = Moment::clamped(1_640_995_200);
    Settings { asker: Asker { now, ..Asker::default() }, ..Settings::default() }
}

fn answer(reader: &Reader, line: &str) -> Outcome<Answer> {
    Ok(find(reader, &Find { query: query(line)?, ..Find::default() })?)
}

fn ids(reader: &Reader, line: &str) -> Outcome<usize> {
    Ok(answer(reader, line)?.rows().len())
}

fn bytes(reader: &Reader, line: &str) -> Outcome<usize> {
    let (mut given, mut all) = (0, 0);
    answer(reader, line)?.cards(reader, &mut |bytes| {
        given += 1;
        all += bytes.len();
        true
    })?;
    if given > 0 && all == 0 { Err("no bytes".into()) } else { Ok(given) }
}

fn expanded(reader: &Reader, line: &str) -> Outcome<usize> {
    let query = query(line)?;
    let window = window_of(&query).cloned().ok_or("no window")?;
    let answer = find(reader, &Find { query, ..Find::default() })?;
    Ok(expand(reader, &answer, &window, MOST)?.occurrences.len())
}

/// The shortest way to one item.
fn by_uid(reader: &Reader, collection: &str, line: &str) -> Outcome<usize> {
    let uid = line.trim_start_matches("uid:=");
    Ok(usize::from(reader.get(collection, uid)?.is_some()))
}

/// The alarms of a window: the line is the window alone.
fn alarms(reader: &Reader, line: &str) -> Outcome<usize> {
    let window = alarm_window(line)?;
    let query = larder_query::Query::Time(larder_query::TimeTest::In(window.clone()));
    let answer = find(reader, &Find { query, ..Find::default() })?;
    Ok(expand(reader, &answer, &window, MOST)?.occurrences.len())
}

fn alarm_window(line: &str) -> Outcome<Window> {
    let asker = settings().asker;
    let now = Civil::clamped(asker.now.seconds());
    let text = line.strip_prefix("when:").or_else(|| line.strip_prefix("alarm:")).unwrap_or(line);
    let window = phrase::Window::parse(text, now, &asker.language)?;
    let (from, to) = (asker.local.instant(window.from), asker.local.instant(window.to));
    Ok(Window { from, to, local: asker.local, what: What::Alarms })
}

fn one(reader: &Reader, kind: &str, line: &str) -> Outcome<usize> {
    match kind {
        "alarms" => alarms(reader, line),
        _ => ids(reader, line),
    }
}

fn ask_all(store: &Path, questions: &Questions, seconds: f64) -> Outcome<()> {
    row("open", &questions.of("day"), seconds, &mut |line| {
        ids(&Reader::open_with(store, zones()?)?, line)
    })?;
    let reader = Reader::open_with(store, zones()?)?;
    let years: Vec<String> = (2017..2027).map(|year| format!("when:{year}")).collect();
    for kind in ["day", "week", "month", "list", "year"] {
        let lines = match kind {
            "year" => years.iter().map(String::as_str).collect(),
            _ => questions.of(kind),
        };
        row(&format!("{kind}-ids"), &lines, seconds, &mut |line| ids(&reader, line))?;
        row(&format!("{kind}-bytes"), &lines, seconds, &mut |line| bytes(&reader, line))?;
        if matches!(kind, "day" | "month") {
            row(&format!("{kind}-expanded"), &lines, seconds, &mut |line| expanded(&reader, line))?;
        }
    }
    row("alarms", &questions.of("alarms"), seconds, &mut |line| alarms(&reader, line))?;
    row("words", &questions.of("words"), seconds, &mut |line| ids(&reader, line))?;
    let collection = reader.collections()?.into_iter().next().ok_or("no collection")?.name;
    let uids = questions.of("uid");
    row("uid", &uids, seconds, &mut |line| by_uid(&reader, &collection, line))?;
    let all: Vec<&(String, String)> = questions.0.iter().collect();
    row("mixed", &all, seconds, &mut |(kind, line)| one(&reader, kind, line))?;
    visits(&reader, questions)
}

/// How many rows were visited and series tested for what was returned.
fn visits(reader: &Reader, questions: &Questions) -> Outcome<()> {
    let mut sums: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for (kind, line) in &questions.0 {
        let query = match kind.as_str() {
            "alarms" => larder_query::Query::Time(larder_query::TimeTest::In(alarm_window(line)?)),
            _ => query(line)?,
        };
        let explain = find(reader, &Find { query, ..Find::default() })?.explain;
        for name in [kind.as_str(), "mixed"] {
            let sum = sums.entry(name).or_default();
            for (sum, more) in
                sum.iter_mut().zip([1, explain.visited, explain.tested, explain.returned])
            {
                *sum += more;
            }
        }
    }
    for (kind, [questions, visited, tested, returned]) in sums {
        println!(
            "# {kind}: {questions} questions, {visited} visited, {tested} tested, {returned} returned"
        );
    }
    Ok(())
}

fn row<T>(
    name: &str,
    needles: &[T],
    seconds: f64,
    ask: &mut dyn FnMut(&T) -> Outcome<usize>,
) -> Outcome<()> {
    let Some(first) = needles.first() else { return Ok(()) };
    ask(first)?;
    let (mut spent, mut hits, begin) = (Spent::default(), 0, Instant::now());
    let before = processor_time()?;
    for needle in needles.iter().cycle() {
        let clock = Instant::now();
        hits += ask(needle)?;
        spent.times.push(clock.elapsed());
        let [fewest, most] = REPETITIONS;
        let enough = begin.elapsed().as_secs_f64() >= seconds || spent.times.len() >= most;
        if enough && spent.times.len() >= fewest {
            break;
        }
    }
    spent.processor = processor_time()?.saturating_sub(before);
    spent.print(name, hits);
    Ok(())
}

/// Single changes, each an operation of its own; beside each an append of as many bytes, made durable.
fn change(path: &Path) -> Outcome<()> {
    let reader = Reader::open_with(path, zones()?)?;
    let collection = reader.collections()?.into_iter().next().ok_or("no collection")?;
    let mut items = Vec::new();
    for head in reader.page(&collection, i64::MIN, 4 * SINGLY)? {
        let bytes = reader.source(head.row)?.unwrap_or_default();
        let frame = head.frame.map(|row| reader.frame(row)).transpose()?.flatten();
        if head.recurrence.is_empty() && items.len() < SINGLY {
            items.push((head, String::from_utf8(bytes)?, frame.unwrap_or_default()));
        }
    }
    let mut store = Store::open(path, &Options { zones: zones()?, ..Options::default() })?;
    let mut appended = OpenOptions::new().create(true).append(true).open(path.join("appended"))?;
    let name: Arc<str> = Arc::from(collection.name.as_str());
    let mut handles = Vec::new();
    for kind in ["create", "modify", "remove"] {
        let (mut changes, mut appends) = (Spent::default(), Spent::default());
        for (place, (head, bytes, frame)) in items.iter().enumerate() {
            let uid = format!("{}-single", head.uid);
            let bytes = bytes.replacen(&head.uid, &uid, 1);
            changes.on(|| {
                let mut operation = Operation::new(kind, "", 0);
                let change = match kind {
                    "create" => put(&store, &name, &uid, &bytes, frame)?,
                    "modify" => put(
                        &store,
                        &name,
                        &uid,
                        &bytes.replacen("SUMMARY:", "SUMMARY:Later ", 1),
                        frame,
                    )?,
                    _ => Change::Remove(*handles.get(place).ok_or("no handle")?, Expect::Anything),
                };
                let applied = store.apply(&mut operation, vec![change])?;
                if let (Some(larder_store::Outcome::Added(handle)), "create") =
                    (applied.outcomes.first(), kind)
                {
                    handles.push(*handle);
                }
                Ok(())
            })?;
            appends.on(|| {
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

fn put(store: &Store, into: &Arc<str>, uid: &str, bytes: &str, frame: &Frame) -> Outcome<Change> {
    let deriver = store.deriver_for(into, Family::Calendar)?;
    let prepared =
        deriver.component(bytes.as_bytes().to_vec(), frame).map_err(|_| "not an item")?.0;
    let (collection, uid, expect) = (Arc::clone(into), uid.to_string(), Expect::Anything);
    Ok(Change::Put(Put { collection, uid, derived_uid: false, prepared, expect }))
}

/// Prints what this process takes, before it opens the store and after it has asked everything.
fn memory(store: &Path, questions: &Questions) -> Outcome<()> {
    let before = anonymous()?;
    let reader = Reader::open_with(store, zones()?)?;
    let mut most = anonymous()?;
    for (kind, line) in &questions.0 {
        one(&reader, kind, line)?;
        most = most.max(anonymous()?);
    }
    println!("memory\t{}\t{}\tkB anonymous: before, at most", before, most);
    Ok(())
}

fn anonymous() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).ok_or("no RssAnon")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}

//! The floor of the calendar benchmark: a lower bound for the cost of storing events in plain
//! SQLite and of finding them by time and UID.
//!
//! `larder-floor calendar FILE QUERIES DIR SECONDS BATCH` stores the components of FILE in DIR,
//! each as an item row, its bytes, and its interval from the first start to the last end, by length
//! class. Series without an end have a table of their own, with the months they occur in. Then it
//! runs the time ranges and UIDs of QUERIES (see `larder measure generate queries`), and changes
//! single items; after each change it appends the same number of bytes to a file, with `fdatasync`.
//! The output has the same columns as the output of `bench/eds/calendar_bench.c`: row, wall time,
//! 0, CPU time, hits, repetitions, p99, separated by tabs, in microseconds.
//!
//! The program evaluates no recurrence rule and no time zone: times are taken as UTC, and the end
//! of a series is its latest possible end. Its hits are therefore candidates, a few more than the
//! correct ones. Reading the file is not part of the time. It does not run queries for words and
//! alarms, which would need an index.

use crate::{Result, cpu_time};
use larder_time::civil::Date;
use rusqlite::{Connection, Statement};
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of single changes of each kind.
const SINGLE_CHANGES_PER_KIND: usize = 100;
/// The minimum and maximum number of repetitions of a row.
const REPETITION_LIMITS: [usize; 2] = [5, 20_000];
const DAY_SECONDS: i64 = 86_400;
/// The longest interval of each length class; longer ones are in the next class.
const SPAN_CLASS_LIMITS_SECONDS: [i64; 4] =
    [14_400, DAY_SECONDS + 7_200, 30 * DAY_SECONDS, 366 * DAY_SECONDS];

const SCHEMA_SQL: &str = "
    CREATE TABLE item(id INTEGER PRIMARY KEY, handle BLOB NOT NULL, uid TEXT NOT NULL, seq INTEGER NOT NULL,
      ordinal INTEGER NOT NULL) STRICT;
    CREATE INDEX item_handle ON item(handle);
    CREATE UNIQUE INDEX item_seq ON item(seq, ordinal);
    CREATE TABLE source(item INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE span(class INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, id INTEGER NOT NULL,
      PRIMARY KEY(class, start, end, id)) STRICT, WITHOUT ROWID;
    CREATE TABLE endless(id INTEGER PRIMARY KEY, start INTEGER NOT NULL, months INTEGER NOT NULL,
      period INTEGER NOT NULL, phase INTEGER NOT NULL) STRICT;
    CREATE TABLE batch(seq INTEGER PRIMARY KEY, operation INTEGER NOT NULL) STRICT;";

/// Runs the benchmark.
pub(crate) fn run_calendar_floor(
    file: &str,
    queries: &str,
    dir: &Path,
    seconds: &str,
    batch: &str,
) -> Result<()> {
    let mut items = ComponentFile { input: BufReader::with_capacity(256 << 10, File::open(file)?) };
    let queries = fs::read_to_string(queries)?;
    let (seconds, batch): (f64, usize) = (seconds.parse()?, batch.parse()?);
    let path = dir.join("calendar.db");
    let conn = open(&path)?;
    conn.execute_batch(SCHEMA_SQL)?;

    let (mut spent, mut number, mut samples) = (FloorTimings::default(), 0, Vec::new());
    for seq in 1.. {
        let mut rows = Vec::with_capacity(batch);
        while rows.len() < batch.max(1)
            && let Some(item) = items.read_next()?
        {
            rows.push(item);
        }
        if rows.is_empty() {
            break;
        }
        spent.measure(|| {
            let tx = conn.unchecked_transaction()?;
            insert_batch(&conn, seq, &rows)?;
            Ok(tx.commit()?)
        })?;
        number += rows.len();
        let bounded = rows.into_iter().filter(|it| matches!(it.end, SpanEnd::At(_)));
        samples.extend(
            bounded.take(SINGLE_CHANGES_PER_KIND - samples.len()).map(|it| with_single_uid(&it)),
        );
    }
    spent.into_total().print("import", number);

    // No connection is open, so each opening rebuilds the index of the write-ahead log.
    drop(conn);
    time_opening(&path, &queries, seconds)?;
    let conn = open(&path)?;
    time_all_queries(&conn, &queries, seconds)?;
    time_changes(&conn, &samples, &dir.join("appended"))
}

fn open(path: &Path) -> Result<Connection> {
    let conn = Connection::open(path)?;
    for (pragma, value) in [("journal_mode", "wal"), ("synchronous", "full")] {
        conn.pragma_update(None, pragma, value)?;
    }
    for (pragma, value) in [("cache_size", -8192), ("wal_autocheckpoint", 1000)] {
        conn.pragma_update(None, pragma, value)?;
    }
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// The timings of repetitions: the wall time of each, the CPU time of all.
#[derive(Default)]
struct FloorTimings {
    times: Vec<Duration>,
    cpu_time: Duration,
}

impl FloorTimings {
    /// Times one repetition.
    fn measure<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (clock, before) = (Instant::now(), cpu_time()?);
        let result = work()?;
        self.times.push(clock.elapsed());
        self.cpu_time += cpu_time()?.saturating_sub(before);
        Ok(result)
    }

    /// Returns the repetitions as one.
    fn into_total(self) -> FloorTimings {
        FloorTimings { times: vec![self.times.iter().sum()], ..self }
    }

    /// Prints a line of figures. `hits` is the sum for all repetitions.
    fn print(mut self, row: &str, hits: usize) {
        self.times.sort_unstable();
        let reps = self.times.len().max(1);
        let us = |time: Duration| time.as_nanos() as f64 / 1e3;
        let at = |place: usize| self.times.get(place.min(reps - 1)).map_or(0.0, |&time| us(time));
        let (cpu, hits) = (us(self.cpu_time) / reps as f64, hits as f64 / reps as f64);
        let (median, p99) = (at(reps / 2), at(reps * 99 / 100));
        println!("{row}\t{median:.1}\t0\t{cpu:.1}\t{hits:.1}\t{reps}\t{p99:.1}");
    }
}

// ---- components ---------------------------------------------------------------------------

/// A component to store.
struct FloorComponent {
    bytes: String,
    uid: String,
    handle: [u8; 8],
    start: i64,
    end: SpanEnd,
}

/// The possible occurrences of a series without an end: a bit for each month; a period and a phase
/// in days (period 0: any day).
#[derive(Clone, Copy)]
struct EndlessPattern {
    month_bits: u16,
    period_days: i64,
    phase: i64,
}

#[derive(Clone, Copy)]
enum SpanEnd {
    At(i64),
    Endless(EndlessPattern),
}

/// Splits a file into its events, tasks and memos.
struct ComponentFile {
    input: BufReader<File>,
}

impl ComponentFile {
    fn read_next(&mut self) -> Result<Option<FloorComponent>> {
        let mut bytes = String::with_capacity(1_024);
        loop {
            let at = bytes.len();
            if self.input.read_line(&mut bytes)? == 0 {
                return Ok(None);
            }
            match bytes[at..].trim_end() {
                "BEGIN:VEVENT" | "BEGIN:VTODO" | "BEGIN:VJOURNAL" => {
                    bytes.drain(..at);
                }
                "END:VEVENT" | "END:VTODO" | "END:VJOURNAL" => {
                    return Ok(Some(FloorComponent::parse(bytes)));
                }
                _ => {}
            }
        }
    }
}

impl FloorComponent {
    fn parse(bytes: String) -> FloorComponent {
        let text = bytes.replace("\r\n ", "").replace("\n ", "");
        let without_alarms = text.split("BEGIN:VALARM").next().unwrap_or_default();
        let value = |name: &str| {
            let has_name =
                |line: &&str| line.strip_prefix(name).is_some_and(|it| it.starts_with([';', ':']));
            without_alarms
                .lines()
                .find(has_name)
                .and_then(|line| line.rsplit(':').next())
                .map(str::trim_end)
        };
        let uid = value("UID").unwrap_or_default().to_owned();
        let until = value("DTEND").or(value("DUE")).and_then(parse_seconds);
        let start = value("DTSTART").and_then(parse_seconds).or(until).unwrap_or(0);
        let length = until.map_or(3_600, |end| (end - start).max(0));
        let end = value("RRULE")
            .map_or(SpanEnd::At(start + length), |rule| latest_end(rule, start, length));
        FloorComponent {
            bytes,
            handle: hash_uid(&uid, value("RECURRENCE-ID").is_some()),
            uid,
            start,
            end,
        }
    }

    fn span_class_and_end(&self) -> Option<(usize, i64)> {
        let SpanEnd::At(end) = self.end else { return None };
        let longer = |&most: &i64| end - self.start > most;
        Some((SPAN_CLASS_LIMITS_SECONDS.iter().take_while(|most| longer(most)).count(), end))
    }
}

/// Returns the hash of a UID, which differs for an override.
fn hash_uid(uid: &str, detached: bool) -> [u8; 8] {
    let mut hash = DefaultHasher::new();
    (uid, detached).hash(&mut hash);
    hash.finish().to_be_bytes()
}

/// Parses a DATE or DATE-TIME as seconds since 1970, as if it were in UTC.
fn parse_seconds(text: &str) -> Option<i64> {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<u8>().ok();
    let date = Date::new(text.get(..4)?.parse().ok()?, part(4, 6)?, part(6, 8)?)?;
    let time_of_day = match text.contains('T') {
        true => {
            let [hour, minute, second] = [part(9, 11)?, part(11, 13)?, part(13, 15)?];
            i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second)
        }
        false => 0,
    };
    Some(date.day_number() * DAY_SECONDS + time_of_day)
}

/// The bits of all months.
const ALL_MONTHS_BITS: u16 = 0xFFF;

/// Returns the latest possible end of a series.
fn latest_end(rule: &str, start: i64, length: i64) -> SpanEnd {
    let part = |name: &str| rule.split(';').find_map(|part| part.strip_prefix(name));
    let interval = part("INTERVAL=").and_then(|text| text.parse().ok()).unwrap_or(1);
    let (step, months) = match part("FREQ=") {
        Some("DAILY") => (1, ALL_MONTHS_BITS),
        Some("WEEKLY") => (7, ALL_MONTHS_BITS),
        Some("MONTHLY") => (31, ALL_MONTHS_BITS),
        _ => (366, 1 << (start.rem_euclid(31_556_952) / 2_629_746).min(11)),
    };
    if let Some(until) = part("UNTIL=").and_then(parse_seconds) {
        return SpanEnd::At(until + length);
    }
    let days = part("BYDAY=").map_or(1, |days| days.split(',').count() as i64);
    match part("COUNT=").and_then(|text| text.parse::<i64>().ok()) {
        Some(count) => {
            SpanEnd::At(start + (count / days + 1) * step * interval * DAY_SECONDS + length)
        }
        None => {
            let period = if step <= 7 && days == 1 { step * interval } else { 0 };
            let phase = (start / DAY_SECONDS).checked_rem(period).unwrap_or(0);
            SpanEnd::Endless(EndlessPattern { month_bits: months, period_days: period, phase })
        }
    }
}

fn insert_batch(conn: &Connection, seq: i64, batch: &[FloorComponent]) -> Result<()> {
    let first: i64 = conn
        .prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM item")?
        .query_row([], |row| row.get(0))?;
    let mut item = conn.prepare_cached("INSERT INTO item VALUES(?1, ?2, ?3, ?4, ?5)")?;
    let mut source = conn.prepare_cached("INSERT INTO source VALUES(?1, ?2)")?;
    let mut endless = conn.prepare_cached("INSERT INTO endless VALUES(?1, ?2, ?3, ?4, ?5)")?;
    let mut span = conn.prepare_cached("INSERT INTO span VALUES(?1, ?2, ?3, ?4)")?;
    let mut spans = Vec::with_capacity(batch.len());
    for (id, it) in (first..).zip(batch) {
        item.execute((id, it.handle, &it.uid, seq, id - first))?;
        source.execute((id, it.bytes.as_bytes()))?;
        match it.end {
            SpanEnd::Endless(EndlessPattern { month_bits: months, period_days: period, phase }) => {
                endless.execute((id, it.start, months, period, phase))?;
            }
            SpanEnd::At(_) => {
                spans.extend(
                    it.span_class_and_end().map(|(class, end)| (class as i64, it.start, end, id)),
                );
            }
        }
    }
    spans.sort_unstable();
    for row in spans {
        span.execute(row)?;
    }
    conn.prepare_cached("INSERT INTO batch VALUES(?1, 1)")?.execute([seq])?;
    Ok(())
}

// ---- queries --------------------------------------------------------------------------------

/// Returns a query with an arm for each length class and one for series without an end. ?1 and ?2
/// are the time range, ?3 its months, ?4 its first day, ?5 its number of days.
fn select_by_time_sql() -> String {
    let mut sql = String::new();
    for (class, longest) in SPAN_CLASS_LIMITS_SECONDS.iter().enumerate() {
        sql += &format!(
            "SELECT id FROM span WHERE class = {class} AND start >= ?1 - {longest} AND start < ?2
               AND (end > ?1 OR start >= ?1) UNION ALL "
        );
    }
    sql += "SELECT id FROM span WHERE class = 4 AND start < ?2 AND end > ?1 UNION ALL
            SELECT id FROM endless WHERE start < ?2 AND months & ?3
              AND (period = 0 OR (phase - ?4 % period + period) % period < ?5)";
    sql
}

/// Start, end, bits of the months, first day, number of days.
type FloorTimeRange = (i64, i64, u16, i64, i64);

fn parse_time_range(sexp: &str) -> Option<FloorTimeRange> {
    let mut times =
        sexp.split('"').skip(1).step_by(2).filter_map(|text| Some((parse_seconds(text)?, text)));
    let ((from, first), (to, _)) = (times.next()?, times.next()?);
    let month: u16 = first.get(4..6)?.parse().ok()?;
    let number = ((to - from) / (28 * DAY_SECONDS) + 2).min(12) as u16;
    let months = (0..number).fold(0, |mask, more| mask | 1 << ((month - 1 + more) % 12));
    Some((from, to, months, from / DAY_SECONDS, (to - from) / DAY_SECONDS))
}

/// Returns the queries of a kind: search lines and S-expressions.
fn queries_of_kind<'q>(queries: &'q str, kind: &str) -> Vec<(&'q str, &'q str)> {
    let parts = queries.lines().filter_map(|line| line.split_once('\t'));
    let parts = parts.filter(|(line_kind, _)| *line_kind == kind);
    parts.filter_map(|(_, rest)| rest.split_once('\t')).collect()
}

/// Times opening the file and one query.
fn time_opening(path: &Path, queries: &str, seconds: f64) -> Result<()> {
    let sql = select_by_time_sql();
    let days: Vec<_> = queries_of_kind(queries, "day")
        .iter()
        .filter_map(|(_, sexp)| parse_time_range(sexp))
        .collect();
    time_row("open", &days, seconds, &mut |range| {
        for_each_id(&mut open(path)?.prepare(&sql)?, *range, &mut |_| Ok(()))
    })
}

fn time_all_queries(conn: &Connection, queries: &str, seconds: f64) -> Result<()> {
    let sql = select_by_time_sql();
    let of_kind = |kind: &str| queries_of_kind(queries, kind);
    let ranges = |kind: &str| {
        of_kind(kind).iter().filter_map(|(_, sexp)| parse_time_range(sexp)).collect::<Vec<_>>()
    };
    let years: Vec<_> = (2017..2027)
        .filter_map(|year| parse_time_range(&format!("(\"{year}0101\" \"{}0101\")", year + 1)))
        .collect();
    let mut by_time = conn.prepare(&sql)?;
    for kind in ["day", "week", "month", "list", "year"] {
        let ranges = if kind == "year" { years.clone() } else { ranges(kind) };
        time_row(&format!("{kind}-ids"), &ranges, seconds, &mut |range| {
            for_each_id(&mut by_time, *range, &mut |_| Ok(()))
        })?;
        let mut source = conn.prepare("SELECT bytes FROM source WHERE item = ?1")?;
        time_row(&format!("{kind}-bytes"), &ranges, seconds, &mut |range| {
            for_each_id(&mut by_time, *range, &mut |id| {
                Ok(source.query_row([id], |row| {
                    row.get_ref(0)?.as_blob().map(drop).map_err(Into::into)
                })?)
            })
        })?;
    }
    let sql = "SELECT bytes FROM item JOIN source ON source.item = item.id WHERE handle = ?1 AND uid = ?2";
    let mut by_uid = conn.prepare(sql)?;
    time_row("uid", &of_kind("uid"), seconds, &mut |(line, _)| {
        let uid = line.trim_start_matches("uid:=");
        let mut rows = by_uid.query((hash_uid(uid, false), uid))?;
        let mut hits = 0;
        while let Some(row) = rows.next()? {
            hits += usize::from(!row.get_ref(0)?.as_blob()?.is_empty());
        }
        Ok(hits)
    })
}

fn for_each_id(
    statement: &mut Statement<'_>,
    range: FloorTimeRange,
    visit: &mut dyn FnMut(i64) -> Result<()>,
) -> Result<usize> {
    let mut rows = statement.query(range)?;
    let mut hits = 0;
    while let Some(row) = rows.next()? {
        visit(row.get(0)?)?;
        hits += 1;
    }
    Ok(hits)
}

/// Times `ask` on the search terms in turn until `seconds` have passed.
fn time_row<T>(
    name: &str,
    search_terms: &[T],
    seconds: f64,
    ask: &mut dyn FnMut(&T) -> Result<usize>,
) -> Result<()> {
    let Some(first) = search_terms.first() else { return Ok(()) };
    ask(first)?;
    let (mut spent, mut hits, begin) = (FloorTimings::default(), 0, Instant::now());
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
    // Read once for the row, because reading the CPU time takes longer than some queries.
    spent.cpu_time = cpu_time()?.saturating_sub(before);
    spent.print(name, hits);
    Ok(())
}

// ---- changes ----------------------------------------------------------------------------------

/// Times a durable transaction for each change, and a durable append of the same bytes after it.
fn time_changes(conn: &Connection, own: &[FloorComponent], path: &Path) -> Result<()> {
    let mut appended = OpenOptions::new().create(true).append(true).open(path)?;
    let first: i64 = conn.query_row("SELECT max(id) + 1 FROM item", [], |row| row.get(0))?;
    let seq: i64 = conn.query_row("SELECT max(seq) + 1 FROM batch", [], |row| row.get(0))?;
    let mut seqs = seq..;
    for kind in ["create", "modify", "remove"] {
        let (mut changes, mut appends) = (FloorTimings::default(), FloorTimings::default());
        for (id, it) in (first..).zip(own) {
            let seq = seqs.next().unwrap_or(seq);
            changes.measure(|| {
                let tx = conn.unchecked_transaction()?;
                match kind {
                    "create" => insert_batch(conn, seq, std::slice::from_ref(it))?,
                    "modify" => modify_item(conn, seq, id, it)?,
                    _ => remove_item(conn, seq, id, it)?,
                }
                Ok(tx.commit()?)
            })?;
            appends.measure(|| {
                appended.write_all(it.bytes.as_bytes())?;
                Ok(appended.sync_data()?)
            })?;
        }
        changes.print(kind, own.len());
        appends.print(&format!("{kind}-append"), own.len());
    }
    Ok(())
}

fn with_single_uid(it: &FloorComponent) -> FloorComponent {
    let uid = format!("{}-single", it.uid);
    let bytes = it.bytes.replacen(&it.uid, &uid, 1);
    FloorComponent { handle: hash_uid(&uid, false), uid, bytes, ..*it }
}

/// Returns the component one hour later.
fn modify_item(conn: &Connection, seq: i64, id: i64, it: &FloorComponent) -> Result<()> {
    conn.prepare_cached("UPDATE item SET seq = ?2, ordinal = 0 WHERE id = ?1")?
        .execute((id, seq))?;
    conn.prepare_cached("UPDATE source SET bytes = ?2 WHERE item = ?1")?
        .execute((id, it.bytes.as_bytes()))?;
    delete_span(conn, id, it, 0)?;
    if let Some((class, end)) = it.span_class_and_end() {
        conn.prepare_cached("INSERT INTO span VALUES(?1, ?2, ?3, ?4)")?.execute((
            class as i64,
            it.start + 3_600,
            end + 3_600,
            id,
        ))?;
    }
    conn.prepare_cached("INSERT INTO batch VALUES(?1, 1)")?.execute([seq])?;
    Ok(())
}

fn remove_item(conn: &Connection, seq: i64, id: i64, it: &FloorComponent) -> Result<()> {
    conn.prepare_cached("DELETE FROM item WHERE id = ?1")?.execute([id])?;
    conn.prepare_cached("DELETE FROM source WHERE item = ?1")?.execute([id])?;
    delete_span(conn, id, it, 3_600)?;
    conn.prepare_cached("INSERT INTO batch VALUES(?1, 1)")?.execute([seq])?;
    Ok(())
}

fn delete_span(conn: &Connection, id: i64, it: &FloorComponent, later: i64) -> Result<()> {
    if let Some((class, end)) = it.span_class_and_end() {
        let sql = "DELETE FROM span WHERE class = ?1 AND start = ?2 AND end = ?3 AND id = ?4";
        conn.prepare_cached(sql)?.execute((class as i64, it.start + later, end + later, id))?;
    }
    Ok(())
}

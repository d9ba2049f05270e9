//! Generates the query log of a day, as processes with an answer cache like Larder's would write
//! it. The code is independent of the code that reads logs.
//!
//! Five programs use two services: a calendar is browsed, names are typed into a search box, a
//! daemon queries alarms each minute, a greeter queries the current day, which the calendar has
//! open, and a clock in the panel opens a view at each click and never closes it. In addition short
//! commands run, items change, and a phone synchronises until the log ends.

use std::collections::BTreeMap;

/// 2 March 2026, 08:00 UTC, in microseconds.
pub(crate) const EIGHT: i64 = 1_772_438_400 * SECOND;
pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;

/// A query of the log: its text, kind and collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoggedQueryLine {
    pub(crate) query: String,
    pub(crate) kind: Option<&'static str>,
    pub(crate) collection: Option<&'static str>,
}

pub(crate) fn logged_query(
    query: &str,
    kind: Option<&'static str>,
    collection: Option<&'static str>,
) -> LoggedQueryLine {
    LoggedQueryLine { query: query.into(), kind, collection }
}

/// A process that answers queries and logs them.
pub(crate) struct Process {
    pid: u64,
    budget: u64,
    /// The rows visited by a query of the calendar that has no index.
    pub(crate) archive: u64,
    /// The cached answers, the least recently used first: query, number, bytes.
    cache: Vec<(LoggedQueryLine, u64, u64)>,
    views: BTreeMap<u64, (LoggedQueryLine, &'static str)>,
    next: u64,
    seq: u64,
    /// The peak of cached bytes.
    pub(crate) peak: u64,
    pub(crate) lines: Vec<(i64, String)>,
}

impl Process {
    pub(crate) fn new(pid: u64, at: i64, budget: u64) -> Process {
        let start = format!(r#""event":"start","version":"0.6.0","budget":{budget}"#);
        let mut process = Process {
            pid,
            budget,
            archive: 24_000,
            cache: Vec::new(),
            views: BTreeMap::new(),
            next: 1,
            seq: 800,
            peak: 0,
            lines: Vec::new(),
        };
        process.line(at, &start);
        process
    }

    fn line(&mut self, at: i64, rest: &str) {
        let pid = self.pid;
        self.lines.push((at, format!(r#"{{"at_us":{at},"pid":{pid},{rest}}}"#)));
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns the fields of an answer. Equal queries have equal work.
    fn answer(
        &self,
        client: &str,
        it: &LoggedQueryLine,
        from: &str,
        number: u64,
        bytes: u64,
    ) -> String {
        let (scanned, returned) = work(it, self.archive);
        let us = match from {
            "executed" => 60 + scanned * 3 / 4 + returned * 2 + (number * 7919) % 97,
            _ => 3 + number % 4,
        };
        let visited = if from == "executed" { scanned } else { 0 };
        let json = |text: Option<&str>| text.map_or("null".into(), |text| format!("{text:?}"));
        let (kind, collection) = (json(it.kind), json(it.collection));
        format!(
            r#""client":"{client}","query":{:?},"kind":{kind},"collection":{collection},"backend":"local","origin":"{from}","answer":{number},"rows_read":{visited},"verified":{},"returned":{returned},"us":{us},"bytes":{bytes}"#,
            it.query,
            visited / 9
        )
    }

    /// Answers a query; returns the origin of the answer, its number and its bytes.
    fn find(&mut self, at: i64, it: &LoggedQueryLine) -> (&'static str, u64, u64) {
        if let Some(place) = self.cache.iter().position(|(query, ..)| query == it) {
            let answer = self.cache.remove(place);
            self.cache.push(answer.clone());
            let open = self.views.values().any(|(query, _)| query == it);
            return (if open { "shared" } else { "cache" }, answer.1, answer.2);
        }
        let (_, returned) = work(it, self.archive);
        let (number, bytes) = (self.number(), 120 + returned * 96);
        if bytes <= self.budget {
            self.cache.push((it.clone(), number, bytes));
            while self.cached_bytes() > self.budget {
                let (_, number, bytes) = self.cache.remove(0);
                self.evict(at, number, bytes, "budget");
            }
            self.peak = self.peak.max(self.cached_bytes());
        }
        ("executed", number, bytes)
    }

    fn cached_bytes(&self) -> u64 {
        self.cache.iter().map(|(.., bytes)| bytes).sum()
    }

    pub(crate) fn query(&mut self, at: i64, client: &'static str, it: &LoggedQueryLine) {
        let (from, number, bytes) = self.find(at, it);
        let answer = self.answer(client, it, from, number, bytes);
        self.line(at, &format!(r#""event":"query",{answer}"#));
    }

    pub(crate) fn open(&mut self, at: i64, client: &'static str, it: &LoggedQueryLine) -> u64 {
        let (from, number, bytes) = self.find(at, it);
        let view = self.number();
        let answer = self.answer(client, it, from, number, bytes);
        self.line(at, &format!(r#""event":"open","view":{view},{answer}"#));
        self.views.insert(view, (it.clone(), client));
        view
    }

    pub(crate) fn close(&mut self, at: i64, view: u64) {
        let (_, client) = self.views.remove(&view).unwrap();
        self.line(at, &format!(r#""event":"close","client":"{client}","view":{view}"#));
    }

    /// Returns the open views.
    pub(crate) fn views(&self) -> Vec<u64> {
        self.views.keys().copied().collect()
    }

    /// Returns the number of cache hits.
    pub(crate) fn hits(&self) -> u64 {
        let hit = |line: &str| {
            line.contains("\"origin\":\"cache\"") || line.contains("\"origin\":\"shared\"")
        };
        self.lines.iter().filter(|(_, line)| hit(line)).count() as u64
    }

    /// Returns the log.
    pub(crate) fn log(&self) -> String {
        self.lines.iter().map(|(_, line)| format!("{line}\n")).collect()
    }

    fn evict(&mut self, at: i64, number: u64, bytes: u64, why: &str) {
        self.line(
            at,
            &format!(r#""event":"evict","answer":{number},"reason":"{why}","bytes":{bytes}"#),
        );
    }

    /// Records a change that notifies at most `most` of the affected views.
    pub(crate) fn change(
        &mut self,
        at: i64,
        collection: &str,
        kind: &str,
        items: u64,
        most: usize,
    ) {
        self.seq += 1;
        let is_affected = |it: &LoggedQueryLine| {
            it.collection.is_none_or(|name| name == collection)
                && it.kind.is_none_or(|name| name == kind)
        };
        let (stale, current) =
            std::mem::take(&mut self.cache).into_iter().partition(|(it, ..)| is_affected(it));
        self.cache = current;
        let stale: Vec<(LoggedQueryLine, u64, u64)> = stale;
        for (_, number, bytes) in stale {
            self.evict(at, number, bytes, "stale");
        }
        let views: Vec<(u64, &str)> = self
            .views
            .iter()
            .filter(|(_, (it, _))| is_affected(it))
            .map(|(view, (_, client))| (*view, *client))
            .collect();
        let (tested, seq) = (views.len(), self.seq);
        for (view, client) in views.iter().take(most) {
            self.line(at, &format!(r#""event":"notify","client":"{client}","view":{view},"seq":{seq},"added":{},"modified":1,"removed":0,"us":9"#, seq % 2));
        }
        let (told, us) = (tested.min(most), 20 + tested * 4);
        self.line(at, &format!(r#""event":"change","seq":{seq},"batches":1,"items":{items},"kinds":[["{collection}","{kind}"]],"tested":{tested},"notified":{told},"us":{us}"#));
    }

    pub(crate) fn end(&mut self, at: i64) {
        self.line(at, r#""event":"end""#);
    }
}

/// Returns the rows visited and the items returned.
fn work(it: &LoggedQueryLine, archive: u64) -> (u64, u64) {
    let sum = it.query.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let returned = match it.query.len() {
        _ if it.query.contains("occur-in") => 12 + sum % 60,
        length => (400 / (length as u64).saturating_sub(12).max(1)).max(1) + sum % 5,
    };
    match it.collection {
        Some("Archive") => (archive + sum % 900, returned),
        _ => (returned * (2 + sum % 3), returned),
    }
}

/// Returns the query for a number of days from `first`.
pub(crate) fn days(first: i64, number: i64) -> String {
    let day = |number: i64| {
        let (month, day) = (1 + number.div_euclid(28), 1 + number.rem_euclid(28));
        format!(r#"(make-time "2026{month:02}{day:02}T000000Z")"#)
    };
    format!("(occur-in-time-range? {} {})", day(first), day(first + number))
}

/// Returns the log of the day, in the order of time.
pub(crate) fn day() -> String {
    day_with_archive(24_000)
}

/// Returns the log of the day with `archive` items in the calendar that has no index.
pub(crate) fn day_with_archive(archive: u64) -> String {
    let mut service = Process::new(4100, EIGHT - 300 * SECOND, 1 << 16);
    service.archive = archive;
    let mut panel = Process::new(4210, EIGHT - 280 * SECOND, 1 << 16);
    let mut phone = Process::new(7033, EIGHT + 411 * MINUTE, 0);
    let mut lines = Vec::new();
    // This view is open all day.
    let today = logged_query(&days(33, 1), Some("event"), None);
    let today_view = service.open(EIGHT - SECOND, "calendar", &today);
    for minute in 0..600 {
        let at = EIGHT + minute * MINUTE;
        let alarms = format!(
            r#"(has-alarms-in-range? (make-time "20260302T{:02}{:02}00Z") (make-time "20260303T000000Z"))"#,
            8 + minute / 60,
            minute % 60 / 15 * 15
        );
        for collection in ["Work", "Home"] {
            service.query(at, "alarms", &logged_query(&alarms, Some("event"), Some(collection)));
        }
        if minute % 20 == 5 {
            service.query(at + 2 * SECOND, "greeter", &today);
        }
        if minute % 23 == 4 {
            browse(&mut service, at + 7 * SECOND, minute);
        }
        if minute % 17 == 11 {
            type_name(&mut service, at + 34 * SECOND, minute as usize);
        }
        if minute % 31 == 9 {
            panel.open(
                at + 3 * SECOND,
                "panel-clock",
                &logged_query(&days(28 + minute / 31, 28), None, None),
            );
        }
        let (collection, kind) = match minute % 10 {
            3 => ("Work", "event"),
            8 if minute % 40 == 8 => ("Friends", "contact"),
            _ => ("", ""),
        };
        if !kind.is_empty() {
            service.change(at + 40 * SECOND, collection, kind, 1 + minute as u64 % 3, 2);
            panel.change(at + 40 * SECOND, collection, kind, 1 + minute as u64 % 3, 99);
        }
        if minute % 97 == 50 {
            lines.extend(command(9000 + minute as u64, at + 30 * SECOND));
        }
    }
    service.close(EIGHT + 600 * MINUTE, today_view);
    service.end(EIGHT + 601 * MINUTE);
    panel.end(EIGHT + 602 * MINUTE);
    let friends = logged_query("(exists \"email\")", Some("contact"), Some("Friends"));
    phone.open(EIGHT + 412 * MINUTE, "phone-sync", &friends);
    for process in [service, panel, phone] {
        lines.extend(process.lines);
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}

/// Pages back and forth through some months of three calendars.
fn browse(service: &mut Process, at: i64, minute: i64) {
    let mut at = at;
    for step in [0, 1, 2, 3, 2, 1, 0] {
        let first = (1 + minute / 120 + step) * 28;
        let month = logged_query(&days(first, 28), Some("event"), Some("Work"));
        let home = logged_query(&days(first, 28), Some("event"), Some("Home"));
        let archive = logged_query(&days(first, 28), Some("event"), Some("Archive"));
        let views = [month, home, archive].map(|it| {
            at += 4_000;
            service.open(at, "calendar", &it)
        });
        at += (1 + step * 2) * SECOND;
        for view in views {
            service.close(at, view);
        }
    }
}

/// Types a name: a view for each letter, closed at the next one.
fn type_name(service: &mut Process, at: i64, number: usize) {
    let names = ["schmidt", "novak", "anna", "anders", "martinez"];
    let name = names[number / 17 % names.len()];
    let mut at = at;
    for end in 1..=name.len() {
        let query = format!(r#"(contains "x-evolution-any-field" "{}")"#, &name[..end]);
        let view = service.open(at, "contacts", &logged_query(&query, Some("contact"), None));
        at += 180_000;
        service.close(at, view);
    }
}

/// Returns the log of `larder find`, which caches nothing.
fn command(pid: u64, at: i64) -> Vec<(i64, String)> {
    let mut process = Process::new(pid, at, 0);
    process.query(at + 2_000, "find", &logged_query("(word \"budget\")", None, None));
    process.end(at + 9_000);
    process.lines
}

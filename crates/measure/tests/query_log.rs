//! The report of a query log: handwritten logs with known results.

use crate::generated_log;
use larder_measure::query_log::cost::CostGroup;
use larder_measure::query_log::fan_out::{DeliveredItems, NotifiedBucket, ResetCount};
use larder_measure::query_log::log_reader::LoggedEvictionReason;
use larder_measure::query_log::reuse::{ClientAnswers, OriginCounts, RepeatBucket};
use larder_measure::query_log::view_lifetimes::{ViewEnd, ViewLifetime};
use larder_measure::query_log::{QueryLogReport, read_log, render_html};

pub(crate) fn report(log: &str) -> QueryLogReport {
    read_log(&mut log.as_bytes(), None).unwrap()
}

/// Expands a short form of a log. Each line has a time, a process, an event and fields as
/// `name=value`; omitted fields have the defaults below. A value is a text unless it is a number,
/// is `null`, or begins with a quote or a bracket.
pub(crate) fn log(lines: &str) -> String {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let [at, pid, event] = [(); 3].map(|()| words.next().unwrap());
        let mut text = format!("{{\"at_us\":{at},\"pid\":{pid},\"event\":\"{event}\"");
        let mut fields: Vec<(&str, &str)> = words.map(|it| it.split_once('=').unwrap()).collect();
        let defaults: &[(&str, &str)] = match event {
            "query" | "open" => &[
                ("client", "find"),
                ("query", "(word)"),
                ("kind", "event"),
                ("collection", "Work"),
                ("backend", "local"),
                ("origin", "executed"),
                ("answer", "1"),
                ("rows_read", "10"),
                ("verified", "4"),
                ("returned", "2"),
                ("us", "100"),
                ("bytes", "1000"),
            ],
            "close" | "notify" | "reset" => &[("client", "find"), ("view", "1"), ("seq", "7")],
            "change" => &[
                ("seq", "7"),
                ("batches", "1"),
                ("items", "1"),
                ("tested", "0"),
                ("notified", "0"),
                ("us", "10"),
            ],
            "evict" => &[("bytes", "1000")],
            _ => &[],
        };
        for default in defaults {
            if !fields.iter().any(|(name, _)| *name == default.0) {
                fields.push(*default);
            }
        }
        for (name, value) in fields {
            let bare = value.parse::<i128>().is_ok() || value.starts_with(['[', '"', 'n']);
            let value = if bare { value.to_string() } else { format!("\"{value}\"") };
            text.push_str(&format!(",\"{name}\":{value}"));
        }
        text + "}\n"
    };
    lines.lines().map(str::trim).filter(|it| !it.is_empty()).map(line).collect()
}

/// The generated log of a day: leaks are reported, the replay agrees with the log, and the HTML
/// report can be rendered.
#[test]
fn the_log_of_a_day_is_analysed() {
    let log = generated_log::day();
    let it = report(&log);
    assert_eq!((it.bad_lines.lines, it.unknown_lines, it.process_count), (0, 0, 9));
    let leaks: Vec<&ViewLifetime> =
        it.lifetimes.unclosed.iter().filter(|life| life.end == ViewEnd::Leaked).collect();
    assert_eq!(leaks.len(), 20);
    assert!(leaks.iter().all(|life| (life.client.as_str(), life.pid) == ("panel-clock", 4210)));
    let open = it.lifetimes.unclosed.last().unwrap();
    assert_eq!((open.end, open.client.as_str()), (ViewEnd::Open, "phone-sync"));
    assert_eq!(it.lifetimes.clients[0].client, "panel-clock");
    assert_eq!(it.reuse.clients[0].client, "alarms");
    assert_eq!(it.cost.collections[0].collection.as_deref(), Some("Archive"));
    let cache = &it.cache;
    assert_eq!(cache.recorded.unwrap().hits, cache.hits, "the replay agrees with the log");
    assert_eq!(cache.recorded.unwrap().peak_bytes, it.lifetimes.cache_residency.peak_bytes);
    assert!(
        cache.trials.is_sorted_by_key(|trial| trial.hits),
        "a larger budget has no fewer hits here"
    );
    let sum = it.reuse.answers_over_time.buckets().map(|(_, answers)| answers.total()).sum::<u64>();
    assert_eq!(sum, it.reuse.answers.total());
    // The log and its reports, for a person to look at.
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(dir.join("day.log"), &log).unwrap();
    let html = render_html(("day.log", &it), None, &|_| 3600);
    std::fs::write(dir.join("day.html"), &html).unwrap();
    let indexed = report(&generated_log::day_with_archive(40));
    let both = render_html(("before", &it), Some(("after", &indexed)), &|_| 0);
    std::fs::write(dir.join("days.html"), &both).unwrap();
}

#[test]
fn repeated_queries_are_counted() {
    let mut lines = String::from("0 1 start version=1 budget=100000\n");
    for at in 0..6 {
        lines += &format!(
            "{at} 1 query query=(hot) origin={} us=10\n",
            if at == 0 { "executed" } else { "cache" }
        );
    }
    for at in 6..10 {
        lines += &format!("{at} 1 query query=(q{at}) us=500\n");
    }
    lines += "10 1 query query=(q6) collection=Home origin=shared client=agenda\n";
    lines += "11 1 query query=(q6) kind=null origin=shared client=agenda\n11 1 query query=(q6)";
    let it = report(&log(&lines)).reuse;
    assert_eq!(it.answers, OriginCounts { executed: 6, cache: 5, shared: 2 });
    assert_eq!((it.query_count, it.repeated_query_count, it.repeat_answers), (7, 2, 6));
    let most: Vec<(&str, u64, u64)> = it
        .most_frequent
        .iter()
        .map(|it| (it.query.query.as_str(), it.answers.total(), it.us))
        .collect();
    assert_eq!(most[..3], [("(hot)", 6, 60), ("(q6)", 2, 600), ("(q7)", 1, 500)]);
    let bucket = |min, max, queries, answers| RepeatBucket { min, max, queries, answers };
    assert_eq!(it.repeat_buckets, [bucket(1, 1, 5, 5), bucket(2, 2, 1, 2), bucket(5, 8, 1, 6)]);
    let answers = OriginCounts { executed: 0, cache: 0, shared: 2 };
    assert_eq!(it.clients[1], ClientAnswers { client: "agenda".into(), answers });
}

/// Returns the views never closed: client, pid, number, end and lifetime.
fn unclosed_views(lines: &str) -> Vec<(String, u64, u64, ViewEnd, u64)> {
    let it = report(&log(lines)).lifetimes;
    it.unclosed
        .iter()
        .map(|it| (it.client.clone(), it.pid, it.view, it.end, it.duration_us))
        .collect()
}

#[test]
fn unclosed_views_are_classified_by_their_end() {
    let check = |lines: &str, expect: &[(&str, u64, u64, ViewEnd, u64)]| {
        let expect: Vec<_> = expect
            .iter()
            .map(|(client, a, b, end, us)| (client.to_string(), *a, *b, *end, *us))
            .collect();
        assert_eq!(unclosed_views(lines), expect, "{lines}");
    };
    check("1 5 start budget=0\n2 5 open view=1\n9 5 close view=1\n10 5 end", &[]);
    check(
        "1 5 start budget=0\n2 5 open view=1 client=panel-clock\n10 5 end",
        &[("panel-clock", 5, 1, ViewEnd::Leaked, 8)],
    );
    check("2 5 open view=1\n12 9 query", &[("find", 5, 1, ViewEnd::Open, 10)]);
    check(
        "2 5 open view=1\n3 6 open view=1\n12 5 start budget=0\n13 5 open view=1\n14 5 close\n20 5 end",
        &[("find", 5, 1, ViewEnd::ProcessDied, 10), ("find", 6, 1, ViewEnd::Open, 17)],
    );
    // The number of an unclosed view is reused.
    check(
        "2 5 open view=1\n4 5 open view=1\n6 5 close view=1\n7 5 end",
        &[("find", 5, 1, ViewEnd::ProcessDied, 2)],
    );
    // The view was opened before the log began.
    check("2 5 close view=8\n3 5 end", &[]);
    // Leaks are first.
    check(
        "1 5 open view=1\n2 6 open view=1\n3 6 end",
        &[("find", 6, 1, ViewEnd::Leaked, 1), ("find", 5, 1, ViewEnd::Open, 2)],
    );
}

#[test]
fn lifetimes_of_views_are_measured() {
    let it = report(&log("
        1 1 open view=1
        2 1 open view=2 origin=shared
        101 1 close view=1
        302 1 close view=2
        900 1 open view=3 answer=0
        950 1 close view=3
    "));
    let lifetimes = &it.lifetimes;
    assert_eq!((lifetimes.opened, lifetimes.closed, lifetimes.peak_open), (3, 3, 2));
    assert_eq!(
        (lifetimes.lifetimes_us.count, lifetimes.lifetimes_us.sum, lifetimes.lifetimes_us.max),
        (3, 450, 300)
    );
    assert_eq!(it.reuse.answers.total(), 2, "one view asked for changes only");
}

#[test]
fn queries_without_an_answer_are_no_repetitions() {
    let it = report(&log("
        0 1 start budget=2000
        1 1 open view=1 query=(a) answer=0
        2 1 open view=2 query=(b) answer=0
        3 1 query query=(c)
        9 1 end
    "));
    let reuse = &it.reuse;
    assert_eq!((reuse.query_count, reuse.repeat_answers, reuse.most_frequent.len()), (1, 0, 1));
    assert_eq!(reuse.repeat_buckets.len(), 1);
}

/// A command that answers one query writes no `start`, and keeps no answer.
#[test]
fn commands_without_a_cache_keep_no_answer() {
    let it = report(&log("0 1 query query=(a)\n1 2 query query=(a)\n2 3 query query=(b)"));
    let residency = &it.lifetimes.cache_residency;
    assert_eq!((residency.answers, residency.peak_bytes), (0, 0));
    assert!(it.cache.trials.iter().all(|trial| (trial.peak_bytes, trial.hits) == (0, 0)));
    assert_eq!(it.cache.answers, 3);
    // A log that was cut, of a process that has one.
    let it = report(&log("0 1 query query=(a)\n1 1 open view=1 query=(b)\n9 1 end"));
    assert_eq!(it.lifetimes.cache_residency.answers, 1);
}

#[test]
fn lifetimes_of_cached_answers_are_measured() {
    let it = report(&log("
        0 1 start budget=2000
        1 1 query answer=1
        402 1 query answer=1 origin=cache
        501 1 evict answer=1 reason=stale
        600 1 query answer=2
        700 1 query answer=3 query=(x)
        800 1 evict answer=2 reason=budget
        801 1 query answer=4 query=(y)
        900 1 open view=3 answer=3 query=(x) origin=cache
        950 1 close view=3
        960 1 query bytes=2001 answer=5
        999 1 end
    "));
    let residency = &it.lifetimes.cache_residency;
    assert_eq!((residency.answers, residency.answers_used, residency.peak_bytes), (4, 2, 2000));
    assert_eq!(
        (
            residency.lifetimes_us.evicted[&LoggedEvictionReason::Stale].sum,
            residency.lifetimes_us.evicted[&LoggedEvictionReason::Budget].sum
        ),
        (500, 200)
    );
    assert_eq!(residency.lifetimes_us.ended.sum, 198 + 299);
    let held = report(&log("
        0 1 start budget=100000
        1000 1 open view=1
        5000 1 close view=1
        9000 1 evict answer=1 reason=stale
    "));
    let held =
        held.reuse.resident_bytes.buckets().map(|(_, held)| (held.cached_last, held.open_last));
    assert_eq!(held.collect::<Vec<_>>(), [(1000, 1000), (1000, 0), (0, 0)]);
}

/// The answers of a process leave the timeline together when it ends, not one by one in any order.
#[test]
fn the_end_of_a_process_is_one_step_of_the_timeline() {
    let mut lines = String::from("0 1 start budget=100000\n");
    for at in 1..9 {
        lines += &format!("{at} 1 query query=(q{at}) answer={at} bytes={at}00\n");
    }
    let it = report(&log(&format!("{lines}5000 1 end\n")));
    let bytes: Vec<(u64, u64)> = it
        .reuse
        .resident_bytes
        .buckets()
        .map(|(_, bytes)| (bytes.cached_max, bytes.cached_last))
        .collect();
    assert_eq!(bytes, [(3600, 3600), (0, 0)]);
}

#[test]
fn a_budget_of_zero_caches_nothing() {
    let it = report(&log("0 1 start budget=0\n1 1 query\n2 1 open view=1\n3 1 close\n9 1 end"));
    assert_eq!(
        (it.lifetimes.cache_residency.answers, it.lifetimes.cache_residency.peak_bytes),
        (0, 0)
    );
    // The answer was cached before the log began.
    let it = report(&log("1 1 query origin=cache\n9 1 end"));
    assert_eq!(
        (it.lifetimes.cache_residency.answers, it.lifetimes.cache_residency.answers_used),
        (1, 1)
    );
}

#[test]
fn cost_is_grouped_by_collection_and_source() {
    let it = report(&log("
        1 1 query collection=Old rows_read=9000 returned=3 us=90000 query=(slow)
        2 1 query collection=Old rows_read=1000 returned=1 us=10000
        3 1 query us=100
        4 1 query us=300 backend=phone query=(b)
        5 1 query us=2 origin=cache rows_read=0
        6 1 query us=4 origin=shared rows_read=0
        7 1 query us=0 collection=null rows_read=7 returned=0
    "))
    .cost;
    let groups: Vec<_> = it
        .collections
        .iter()
        .map(|it| {
            let CostGroup { backend: source, slowest_query, work } = &it.group;
            (
                it.collection.as_deref(),
                source.as_str(),
                work.us.sum,
                work.us.max,
                work.rows_per_item(),
                slowest_query.query.as_str(),
            )
        })
        .collect();
    assert_eq!(
        groups,
        [
            (Some("Old"), "local", 100_000, 90_000, Some(2500.0), "(slow)"),
            (Some("Work"), "phone", 300, 300, Some(5.0), "(b)"),
            (Some("Work"), "local", 100, 100, Some(5.0), "(word)"),
            (None, "local", 0, 0, None, "(word)"),
        ]
    );
    assert_eq!((it.backends.len(), it.backends[1].backend.as_str()), (2, "phone"));
    assert_eq!((it.cached_us.count, it.cached_us.mean()), (2, 3.0));
    assert_eq!(it.costliest[0].query.query, "(slow)");
}

#[test]
fn notified_views_are_counted() {
    let it = report(&log(r#"
        1 1 open view=1
        2 1 open view=2 query=(b)
        3 1 change items=3 kinds=[["Work","event"],["Work","task"],["Work","event"]] tested=2 notified=2 us=80
        3 1 notify added=2 modified=1 removed=0
        4 1 change kinds=[["Home","event"]] tested=1 notified=0 us=20
        5 1 change kinds=[["Work","event"]] tested=2 notified=1
        6 1 change kinds=[] notified=70
        7 1 reset reason=zones returned=3
        8 1 reset reason=expired
        9 1 reset reason=expired
    "#)).fan_out;
    assert_eq!(
        (it.changes, it.items, it.queries_tested, it.views_notified, it.views_open),
        (4, 6, 5, 73, 8)
    );
    let bucket = |min, max| NotifiedBucket { min, max, changes: 1 };
    assert_eq!(
        it.views_notified_buckets,
        [bucket(0, 0), bucket(1, 1), bucket(2, 2), bucket(65, 128)]
    );
    let groups: Vec<_> = it
        .collections
        .iter()
        .map(|it| {
            (
                it.collection.as_deref(),
                it.kind.as_deref(),
                it.changes,
                it.views_notified,
                it.max_views_notified,
            )
        })
        .collect();
    let (work, home) = (Some("Work"), Some("Home"));
    let (event, task) = (Some("event"), Some("task"));
    assert_eq!(groups, [(work, event, 2, 3, 2), (work, task, 1, 2, 2), (home, event, 1, 0, 0)]);
    assert_eq!(it.items_delivered, DeliveredItems { added: 2, modified: 1, removed: 0 });
    let resets = |reason: &str, count| ResetCount { reason: reason.into(), count };
    assert_eq!(it.resets, [resets("expired", 2), resets("zones", 1)]);
}

//! `measure queries`: the report of a query log as text, JSON and a page, and its anonymised copy.

use crate::test_home::Home;
use insta::assert_snapshot;
use larder_query::QueryContext;
use larder_query::query_log::JsonLinesLog;
use larder_query::views::{QuerySyntax, ViewOptions, ViewQuery, Views, ViewsOptions};
use std::sync::Arc;

/// A short morning: a search box, a calendar that closes what it opens, a clock that does not, a
/// slow archive.
const LOG: &str = r#"{"at_us":1772438400000000,"pid":7,"event":"start","version":"0.6.0","budget":65536}
{"at_us":1772438401000000,"pid":7,"event":"query","client":"search","query":"(contains \"any\" \"anna\")","kind":"contact","collection":null,"backend":"local","origin":"executed","answer":1,"rows_read":12,"verified":12,"returned":3,"us":140,"bytes":500}
{"at_us":1772438402000000,"pid":7,"event":"query","client":"search","query":"(contains \"any\" \"anna\")","kind":"contact","collection":null,"backend":"local","origin":"cache","answer":1,"rows_read":0,"verified":0,"returned":3,"us":4,"bytes":500}
{"at_us":1772438403000000,"pid":7,"event":"open","view":1,"client":"calendar","query":"(occur-in-time-range? (make-time \"20260301T000000Z\") (make-time \"20260401T083000Z\"))","kind":"event","collection":"Work","backend":"local","origin":"executed","answer":2,"rows_read":40,"verified":0,"returned":31,"us":210,"bytes":900}
{"at_us":1772438404000000,"pid":7,"event":"open","view":2,"client":"clock","query":"(occur-in-time-range? (make-time \"20260302T000000Z\") (make-time \"20260303T000000Z\"))","kind":"event","collection":"Archive","backend":"local","origin":"executed","answer":3,"rows_read":20000,"verified":20000,"returned":2,"us":18000,"bytes":300}
{"at_us":1772438405000000,"pid":7,"event":"notify","client":"calendar","view":1,"seq":9,"added":1,"modified":0,"removed":0,"us":8}
{"at_us":1772438405000100,"pid":7,"event":"change","seq":9,"batches":1,"items":1,"kinds":[["Work","event"]],"tested":1,"notified":1,"us":30}
{"at_us":1772438409000000,"pid":7,"event":"close","client":"calendar","view":1}
{"at_us":1772438464000000,"pid":7,"event":"end"}
"#;

#[test]
fn the_report_is_printed() {
    let home = Home::new();
    home.write("log", LOG);
    assert_snapshot!(home.ok(&["measure", "queries", "log"]), @r#"
    log: 9 lines from 1 process, 2 Mar 2026, 08:00:00 to 08:01:04.

    Queries and repetition
    4 answers to 3 different queries; 25 % of the answers repeat an earlier query. 75 % executed, 25 % from the cache, 0 % from an open view.
      times requested  queries  answers
      1                2        2        ████████████████████████
      2                1        2        ████████████████████████
      answers  from cache  shared  collection                query
      2        1           0       all collections, contact  (contains "any" "anna")
      1        0           0       Work, event               (occur-in-time-range? 2026-03-01 2026-04-01 08:30)
      1        0           0       Archive, event            (occur-in-time-range? 2026-03-02 2026-03-03)

    Lifetimes of views and cached answers
    2 views were opened, at most 2 at a time. 1 view was never closed: 1 leaked (the process ended normally). The closed views were open for 6 s (median), at most 6 s.
      clock: (occur-in-time-range? 2026-03-02 2026-03-03) (Archive, event), opened 08:00:04, leaked after 1 min; view 2 of process 7
    3 answers cached, 33 % of them used before they were evicted; peak memory 1.7 kB.
      client    opened  never closed  median lifetime  longest
      clock     1       1             -                -
      calendar  1       0             6 s              6 s

    Query time
    3 queries executed: 6.1 ms on average, 18 ms at most. Rows visited for each item returned: 557. Cached answers took 4 µs on average.
      collection               queries  mean    maximum  rows per item  slowest query
      Archive (local)          1        18 ms   18 ms    10,000         (occur-in-time-range? 2026-03-02 2026-03-03)
      Work (local)             1        210 µs  210 µs   1.3            (occur-in-time-range? 2026-03-01 2026-04-01 08:30)
      all collections (local)  1        140 µs  140 µs   4              (contains "any" "anna")

    Cache hit rate
    Cache hits: 1 of 4 answers (25 %); budget: 64 KiB. An unlimited cache would have a hit rate of 25 % and use up to 1.7 kB; a budget of 16 KiB would reach 25 %.
      budget    hit rate  peak memory  time saved
      none      0 %       0 bytes      0 µs
      16 KiB    25 %      1.7 kB       140 µs      ██████
      64 KiB    25 %      1.7 kB       140 µs      ██████
      256 KiB   25 %      1.7 kB       140 µs      ██████
      1 MiB     25 %      1.7 kB       140 µs      ██████
      4 MiB     25 %      1.7 kB       140 µs      ██████
      16 MiB    25 %      1.7 kB       140 µs      ██████
      no limit  25 %      1.7 kB       140 µs      ██████
      recorded  25 %      1.7 kB       140 µs      ██████
    Check: the replay of the log's own budget has 1 cache hit, the log 1. Figures for larger budgets are lower bounds.

    Views notified by a change
    1 change of 1 item. Mean per change: views open 2, queries tested 1, views notified 1, time 30 µs (at most 30 µs).
      views notified  changes
      1 view          1        ████████████████████████
    "#);
}

#[test]
fn the_report_fits_a_narrow_terminal() {
    let home = Home::new();
    home.write("log", LOG);
    for columns in [40, 60, 79, 100] {
        let run = home.shell(&format!("COLUMNS={columns} larder measure queries log"));
        let rows = run
            .stdout()
            .lines()
            .filter(|line| line.starts_with("  "))
            .map(str::to_string)
            .collect::<Vec<_>>();
        // Columns fit as soon as their numbers do.
        let fits = |line: &String| line.chars().count() <= columns.max(72);
        assert!(rows.iter().all(fits), "{columns}\n{}", run.stdout());
    }
}

#[test]
fn the_report_is_json() {
    let home = Home::new();
    home.write("log", LOG);
    let all = home.json(&["measure", "queries", "log", "--budget", "600"]);
    assert_eq!(all.len(), 1);
    let it = &all[0];
    let check = |path: &str, expect: serde_json::Value| {
        assert_eq!(it.pointer(path), Some(&expect), "{path} of {it:#}");
    };
    check("/log", "log".into());
    check("/lines", 9.into());
    check("/bad_lines/lines", 0.into());
    check("/reuse/answers", 4.into());
    check("/reuse/most_frequent/0/cache", 1.into());
    check("/lifetimes/unclosed_count", 1.into());
    check("/lifetimes/leaked", 1.into());
    check("/lifetimes/unclosed/0/client", "clock".into());
    check("/lifetimes/unclosed/0/collection", "Archive".into());
    check("/lifetimes/unclosed/0/end", "leaked".into());
    check("/cost/collections/0/us/max", 18_000.into());
    check("/cache/trials/1/budget_bytes", 600.into());
    check("/cache/trials/1/hits", 1.into());
    check("/cache/trials/8/budget_bytes", serde_json::Value::Null);
    check("/fan_out/views_notified_buckets/0/changes", 1.into());
    let both = home.json(&["measure", "queries", "log", "log"]);
    assert_eq!(both.len(), 2);
}

#[test]
fn two_logs_are_compared() {
    let home = Home::new();
    home.write("before", LOG);
    home.write("after", LOG.replace("\"us\":18000", "\"us\":600").replace("20000", "40"));
    assert_snapshot!(home.ok(&["measure", "queries", "before", "after"]), @"
    before: 9 lines from 1 process, 2 Mar 2026, 08:00:00 to 08:01:04.
    after: 9 lines from 1 process, 21 Jan 1970 12:20:38 to 2 Mar 2026 08:01:04.

                                            before  after   change
      answers                               4       4       same
      different queries                     3       3       same
      answers from the cache                25 %    25 %    same
      answers from an open view             0 %     0 %     same
      views opened                          2       2       same
      views never closed                    1       1       same
      mean time of a query                  6.1 ms  317 µs  19 times faster
      time of the slowest query             18 ms   600 µs  30 times faster
      rows read for each item found         557     2.6     218 times less
      peak memory of the cache              1.7 kB  1.7 kB  same
      peak memory of a cache without limit  1.7 kB  1.7 kB  same
      views notified of each change         1       1       same

    Query time
    Means by collection and backend.
      collection               before  after   change           rows per item
      Archive (local)          18 ms   600 µs  30 times faster  10,000 > 20
      Work (local)             210 µs  210 µs  same             1.3 > 1.3
      all collections (local)  140 µs  140 µs  same             4 > 4

    Lifetimes of views
    before: 2 views were opened, at most 2 at a time. 1 view was never closed: 1 leaked (the process ended normally). The closed views were open for 6 s (median), at most 6 s.
      clock: (occur-in-time-range? 2026-03-02 2026-03-03) (Archive, event), opened 08:00:04, leaked after 1 min; view 2 of process 7
    after: 2 views were opened, at most 2 at a time. 1 view was never closed: 1 leaked (the process ended normally). The closed views were open for 6 s (median), at most 6 s.
      clock: (occur-in-time-range? 2026-03-02 2026-03-03) (Archive, event), opened 2 Mar 2026 08:00:04, leaked after 1 min; view 2 of process 7
    ");
}

/// Two files with the same name are printed with their folders.
#[test]
fn logs_with_one_name_are_distinguished() {
    let home = Home::new();
    home.write("monday/log", LOG);
    home.write("friday/log", LOG);
    let both = home.json(&["measure", "queries", "monday/log", "friday/log"]);
    assert_eq!((&both[0]["log"], &both[1]["log"]), (&"monday/log".into(), &"friday/log".into()));
}

#[test]
fn the_html_report_is_written() {
    let home = Home::new();
    home.write("log", LOG);
    home.ok(&["measure", "queries", "log", "--html", "log.html"]);
    let html = std::fs::read_to_string(home.work("log.html")).unwrap();
    assert!(
        html.starts_with("<!doctype html>") && html.contains("leaked") && html.contains("clock")
    );
    let run = home.code(&["measure", "queries", "log", "--html", "./log"], 2);
    assert_snapshot!(run.stderr(), @"
    error: ./log is the log itself
    hint: choose another output file
    ");
    assert_eq!(std::fs::read_to_string(home.work("log")).unwrap(), LOG);
    home.code(&["measure", "queries", "log", "--html", "no/such/folder"], 5);
}

/// The log is recognised under another name, and an empty output overwrites nothing.
#[test]
fn a_log_is_not_overwritten() {
    let home = Home::new();
    home.write("log", LOG);
    home.write("nothing", "what is this?\n");
    home.write("notes", "mine");
    std::fs::hard_link(home.work("log"), home.work("link")).unwrap();
    for option in ["--html", "--anonymise"] {
        let run = home.code(&["measure", "queries", "log", option, "link"], 2);
        assert!(run.stderr().contains("link is the log itself"), "{}", run.masked_output());
        home.code(&["measure", "queries", "nothing", option, "notes"], 1);
    }
    assert_eq!(std::fs::read_to_string(home.work("log")).unwrap(), LOG);
    assert_eq!(std::fs::read_to_string(home.work("notes")).unwrap(), "mine");
    // The target is not replaced by a file: it may be a link or /dev/stdout.
    std::os::unix::fs::symlink("notes", home.work("to-notes")).unwrap();
    home.ok(&["measure", "queries", "log", "--anonymise", "to-notes"]);
    assert!(home.work("to-notes").is_symlink());
    assert!(std::fs::read_to_string(home.work("notes")).unwrap().starts_with('{'));
}

#[test]
fn a_log_is_anonymised() {
    let home = Home::new();
    home.write("log", format!("{LOG}what is this?\n"));
    let run = home.code(&["measure", "queries", "log", "--anonymise", "out"], 3);
    assert_snapshot!(run.masked_output(), @"
    Wrote 9 lines; replaced 6 texts and names
    ! error: rejected log:10: not a JSON object
    exit 3
    ");
    let out = std::fs::read_to_string(home.work("out")).unwrap();
    for word in ["anna", "search", "calendar", "clock", "Work", "Archive"] {
        assert!(!out.contains(word), "{word} in {out}");
    }
    assert!(out.contains(r#"(contains \"any\" \"t"#), "{out}");
    let object =
        home.run(&["measure", "queries", "out", "--anonymise", "again", "--format", "json"]);
    assert_eq!(object.stdout(), "{\"lines\":9,\"unknown_lines\":0,\"bad_lines\":0,\"texts\":6}\n");
    home.code(&["measure", "queries", "log", "--anonymise", "log"], 2);
    home.code(&["measure", "queries", "log", "--anonymise", "out", "--html", "x"], 2);
    assert!(!home.work("x").exists());
}

#[test]
fn other_files_are_refused() {
    let home = Home::new();
    home.write("empty", "");
    home.write("words", "words\nand more\n");
    let run = |args: &str| home.run(&args.split(' ').collect::<Vec<_>>()).masked_output();
    assert_snapshot!(run("measure queries empty"), @"
    ! error: empty: not a query log
    ! hint: docs/queries.md describes the format
    exit 1
    ");
    assert_snapshot!(run("measure queries words"), @"
    ! error: rejected words:1: not a JSON object
    ! error: rejected words:2: not a JSON object
    ! error: words: not a query log
    ! hint: docs/queries.md describes the format
    exit 1
    ");
    assert_snapshot!(run("measure queries words --quiet"), @r#"
    exit 1
    "#);
    assert_snapshot!(run("measure queries missing"), @"
    ! error: missing: no such file or directory
    ! hint: check the name
    exit 5
    ");
    assert_snapshot!(run("measure queries ."), @"
    ! error: .: is a directory
    ! hint: name a file
    exit 5
    ");
    home.write("log", format!("{LOG}{{\"at_us\":1,\"pid\":"));
    let cut = home.code(&["measure", "queries", "log"], 3);
    assert_eq!(cut.stderr(), "error: rejected log:10: incomplete line\n");
    let piped = home.run_with(&["measure", "queries", "-"], LOG.as_bytes());
    assert!(
        piped.stdout().starts_with("standard input: 9 lines from 1 process"),
        "{}",
        piped.masked_output()
    );
}

/// A log that Larder wrote is read: views opened, notified and closed, cached answers, and a view
/// that was never closed.
#[test]
fn a_log_of_larder_is_read() {
    let home = Home::new();
    home.generate("book.vcf", 200, 1);
    home.ok(&["import", "book.vcf"]);
    let log = std::fs::File::create(home.work("log")).unwrap();
    let options = ViewsOptions {
        cache_bytes: 4000,
        log: Some(Arc::new(JsonLinesLog::new(log))),
        watch: false,
        ..ViewsOptions::default()
    };
    let views = Views::open(&home.data(), options).unwrap();
    let settings = Arc::new(QueryContext::default());
    let query = |text: &str| ViewQuery::new(QuerySyntax::Sexp, text, Arc::clone(&settings));
    let options_for =
        |client: &str| ViewOptions { client: client.into(), ..ViewOptions::default() };
    let all = views.open_view(query("(exists \"email\")"), options_for("list")).unwrap();
    for _ in 0..3 {
        for end in 1..5 {
            let text = format!("(contains \"full_name\" \"{}\")", &"anna"[..end]);
            views.find(query(&text), "search", &mut |_, _| true).unwrap();
            drop(views.open_view(query(&text), options_for("search")).unwrap());
        }
        home.write("anna.vcf", crate::test_home::ANNA);
        home.ok(&["import", "anna.vcf"]);
        views.catch_up().unwrap();
        home.ok(&["remove", "uid:anna-1"]);
        views.catch_up().unwrap();
    }
    let changes_only = ViewOptions { initial: false, ..options_for("quiet") };
    drop(views.open_view(query("(exists \"phone\")"), changes_only).unwrap());
    let unclosed =
        views.open_view(query("(is \"family_name\" \"x\")"), options_for("clock")).unwrap();
    drop(all);
    // The last lines are written when the views are dropped.
    drop((views, unclosed));
    let all = home.json(&["measure", "queries", "log"]);
    let it = &all[0];
    assert_eq!(it["bad_lines"]["lines"], 0);
    assert_eq!(it["lifetimes"]["unclosed_count"], 0, "{it:#}");
    assert_eq!(it["lifetimes"]["opened"], 15);
    assert_eq!(it["fan_out"]["changes"], 6);
    assert_eq!(it["cache"]["recorded"]["hits"], it["cache"]["hits"], "{it:#}");
    assert!(it["cache"]["hits"].as_u64().unwrap() > 10, "{it:#}");
    assert!(
        it["lifetimes"]["cache_residency"]["lifetimes_us"]["stale"]["number"].as_u64().unwrap() > 0,
        "{it:#}"
    );
    // Without the line that closes it, the view is reported.
    let text = std::fs::read_to_string(home.work("log")).unwrap();
    let is_kept = |line: &&str| !(line.contains("\"close\"") && line.contains("\"clock\""));
    home.write("leak", text.lines().filter(is_kept).collect::<Vec<_>>().join("\n"));
    let unclosed = &home.json(&["measure", "queries", "leak"])[0]["lifetimes"]["unclosed"];
    assert_eq!((&unclosed[0]["client"], &unclosed[0]["end"]), (&"clock".into(), &"leaked".into()));
}

//! `measure report`: the results of benchmarks, from version to version.

use crate::test_home::{Home, left_out};
use insta::assert_snapshot;
use serde_json::json;
use std::path::Path;

/// Writes a result of T05 with these measures of Larder, in milliseconds.
pub fn write_result(home: &Home, file: &str, date: &str, commit: &str, rows: &[(&str, f64)]) {
    let row = |(measure, value): &(&str, f64)| {
        json!({ "measure": measure, "unit": "ms", "program": "larder", "version": "0.1.0",
                "size": 10_000, "value": value })
    };
    let mut rows: Vec<_> = rows.iter().map(row).collect();
    rows.push(json!({ "measure": "index", "unit": "ms", "program": "mu", "version": "1.8.14",
                      "size": 10_000, "value": 93.0 }));
    let run = json!({
        "format": "larder-benchmark", "version": 1, "script": "T05-mail", "date": date,
        "commit": commit, "larder": "0.1.0", "machine": "Testa 9000", "system": "Linux 6.1",
        "processors": 2, "load": 0.5, "size_of": "messages", "rows": rows,
    });
    home.write(file, run.to_string());
}

fn three_runs() -> Home {
    let home = Home::new();
    let day = |day: u32| format!("2026-11-{day:02}T10:00:00Z");
    write_result(&home, "dir/b.json", &day(2), "bbbbbbbbbbbb", &[("index", 10.0), ("search", 8.0)]);
    write_result(&home, "dir/a.json", &day(1), "aaaaaaaaaaaa", &[("index", 90.0), ("search", 8.0)]);
    let rows = [("index", 11.5), ("search", 8.7)];
    write_result(&home, "dir/c.json", &day(3), "cccccccccccc-dirty", &rows);
    home
}

#[test]
fn regressions_are_named_with_both_commits() {
    let home = three_runs();
    assert_snapshot!(home.ok(&["measure", "report", "dir"]), @"
    Benchmark results: dir
    T05-mail, index, 10,000 messages: 15.0 % worse. It is 11.5 ms at cccccccc-dirty, and was 10 ms at bbbbbbbb.

    Regressions
    Figures of Larder in the latest run of a script that are more than 10 % worse than in the last run of another commit on the same machine.
      measure                   script  before    after   change  commit before    commit after
      index, 10,000 messages  T05-mail   10 ms  11.5 ms  +15.0 %       bbbbbbbb  cccccccc-dirty

    T05-mail on Testa 9000
    2 processors, Linux 6.1. 3 runs, the latest of 2026-11-03, at cccccccc-dirty, with a load of 0.5. Changes are since the last run of another commit. 2.5 x is 2.5 times the value of Larder.
    The latest run
      measure                   change  larder 0.1.0       mu 1.8.14
      index, 10,000 messages   +15.0 %       11.5 ms  93 ms (8.09 x)
      search, 10,000 messages   +8.7 %       8.70 ms               -
    The last 3 runs
      measure, program                 2026-11-01 aaaaaaaa  2026-11-02 bbbbbbbb  2026-11-03 cccccccc-dirty
      load of the machine                              0.5                  0.5                        0.5
      index, 10,000 messages, larder                 90 ms                10 ms                    11.5 ms
      index, 10,000 messages, mu                     93 ms                93 ms                      93 ms
      search, 10,000 messages, larder                 8 ms                 8 ms                    8.70 ms
    ");
    let report = home.json(&["measure", "report", "dir"]).remove(0);
    let regressions = report["regressions"].as_array().unwrap();
    assert_eq!(regressions.len(), 1, "{regressions:?}");
    assert_eq!(regressions[0]["before"]["commit"], "bbbbbbbbbbbb");
    assert_eq!(regressions[0]["after"]["commit"], "cccccccccccc-dirty");
    assert_eq!(report["scripts"][0]["runs"].as_array().unwrap().len(), 3);
    // A second run of a commit does not hide what it made worse.
    let (date, commit) = ("2026-11-04T10:00:00Z", "cccccccccccc-dirty");
    write_result(&home, "dir/d.json", date, commit, &[("index", 11.6), ("search", 8.7)]);
    assert!(home.ok(&["measure", "report", "dir"]).contains("16.0 % worse"));
    std::fs::remove_file(home.work("dir/d.json")).unwrap();
    // Nothing is worse than the first run.
    std::fs::remove_file(home.work("dir/b.json")).unwrap();
    let text = home.ok(&["measure", "report", "dir"]);
    assert!(text.contains("Nothing of Larder is more than 10 % worse"), "{text}");
}

/// A script that writes another unit, or runs twice at one commit, has no value before.
#[test]
fn nothing_is_said_to_be_no_worse_without_a_value_before() {
    let home = three_runs();
    let text = std::fs::read_to_string(home.work("dir/c.json")).unwrap();
    home.write("dir/c.json", text.replace("\"ms\"", "\"s\""));
    let text = home.ok(&["measure", "report", "dir"]);
    assert!(!text.contains("Nothing of Larder"), "{text}");
    assert!(text.contains("1 script has nothing to be compared with"), "{text}");
}

/// Times of two machines say nothing about two versions.
#[test]
fn machines_are_apart() {
    let home = three_runs();
    let text = std::fs::read_to_string(home.work("dir/c.json")).unwrap();
    home.write("dir/c.json", text.replace("Testa 9000", "Testa 1000"));
    let report = home.json(&["measure", "report", "dir"]).remove(0);
    assert_eq!(report["regressions"], json!([]));
    assert_eq!(report["scripts"].as_array().unwrap().len(), 2);
}

#[test]
fn files_that_are_no_results_are_named_and_the_others_taken() {
    let home = three_runs();
    let whole = std::fs::read_to_string(home.work("dir/a.json")).unwrap();
    home.write("dir/cut.json", &whole[..200]);
    home.write("dir/date.json", whole.replace("2026-11-01T", "2026-13-01T"));
    home.write("dir/less.json", whole.replace("93.0", "-93.0"));
    home.write("dir/machine.json", whole.replace("Testa 9000", " "));
    home.write("dir/number.json", whole.replace("93.0", "\"fast\""));
    home.write("dir/other.json", "{\"a\":1}");
    home.write("dir/same.json", &whole);
    home.write(
        "dir/twice.json",
        whole.replace("search", "index").replace("2026-11-01", "2026-12-01"),
    );
    home.write("dir/version.json", whole.replace("\"version\":1,", "\"version\":2,"));
    home.write("dir/notes.txt", "no result");
    std::fs::create_dir(home.work("dir/folder.json")).unwrap();
    let run = home.code(&["measure", "report", "dir"], 3);
    assert_snapshot!(run.stderr(), @r#"
    error: dir/cut.json: invalid number at line 1 column 200; the file is left out
    error: dir/date.json: the date "2026-13-01T10:00:00Z" is not like 2026-11-28T17:40:21Z; the file is left out
    error: dir/folder.json: not a regular file; the file is left out
    error: dir/less.json: index: a value is below zero; the file is left out
    error: dir/machine.json: machine is empty; the file is left out
    error: dir/number.json: invalid type: string "fast", expected f64 at line 1 column 513; the file is left out
    error: dir/other.json: not the result of a benchmark: its format is not larder-benchmark; the file is left out
    error: dir/same.json: the same run is in dir/a.json; the file is left out
    error: dir/twice.json: index: two values for one program and size; the file is left out
    error: dir/version.json: version 2; this program reads version 1; the file is left out
    "#);
    assert!(run.masked_output().contains("3 runs, the latest of"));
}

#[test]
fn a_folder_without_results_is_refused() {
    let home = Home::new();
    std::fs::create_dir(home.work("dir")).unwrap();
    assert_snapshot!(home.code(&["measure", "report", "dir"], 1).masked_output(), @"
    ! error: dir: no result of a benchmark
    ! hint: the scripts in bench/ write them with LARDER_BENCH_RESULTS=DIR
    exit 1
    ");
    assert_snapshot!(home.code(&["measure", "report", "none"], 5).masked_output(), @"
    ! error: none: no such file or directory
    ! hint: check the name
    exit 5
    ");
}

#[test]
fn the_page_is_self_contained() {
    let home = three_runs();
    home.ok(&["measure", "report", "dir", "--html", "page.html"]);
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    for part in [
        "</h1>\n<p class=\"faint\">For developers",
        "T05-mail, index, 10,000 messages: 15.0 % worse",
        "<title>2026-11-02 bbbbbbbb - larder 0.1.0: 10 ms</title>",
        "Index over time",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for other in ["<script", "src=", "href=", "url(", "@import", "<link", "NaN"] {
        assert!(!page.contains(other), "the page has {other}");
    }
}

/// The shell functions of the scripts write what the report reads.
#[test]
fn a_script_leaves_its_results() {
    let home = Home::new();
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/lib.sh");
    home.write(
        "T99-test.sh",
        format!(
            "source {}\nworkplace\nresult 'a \"quoted\" measure' ms larder 100 12.5\n\
             result 'pace of the measure' calls/s larder - 7 more\nresult 'not measured' ms mu 100 -\n\
             result 'neither' ms mu 100 ''\nresult 'noise' ms larder 100 -0.5\n\
             leave_results things\n",
            library.display()
        ),
    );
    let run = home.shell(
        "mkdir bench; export larder=$(command -v larder) LARDER_BENCH_DIR=$PWD/bench \
         LARDER_BENCH_RESULTS=$PWD/dir LARDER_BENCH_MACHINE='a \"machine\"'; bash T99-test.sh",
    );
    if run.code == 127 {
        return left_out("a_script_leaves_its_results", "no bash");
    }
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let report = home.json(&["measure", "report", "dir"]).remove(0);
    let script = &report["scripts"][0];
    assert_eq!(script["script"], "T99-test");
    assert_eq!(script["machine"], "a 'machine'");
    let rows = script["runs"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0]["measure"], "a 'quoted' measure");
    assert_eq!((&rows[0]["size"], &rows[0]["value"]), (&json!(100), &json!(12.5)));
    assert_eq!((&rows[1]["size"], &rows[1]["less_is_better"]), (&json!(null), &json!(false)));
}

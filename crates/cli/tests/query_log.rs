//! The query log: its lines, its permissions, and that its failures never fail a command.

use crate::test_home::{ANNA, Home};
use serde_json::Value;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "a line is not whole: {text}");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn usual(home: &Home) -> std::path::PathBuf {
    home.path().join("home/.local/state/larder/queries.jsonl")
}

#[test]
fn queries_are_logged() {
    let home = Home::with_book();
    let log = home.work("q.jsonl");
    let noted = |args: &[&str]| home.run(&[&["--query-log", "q.jsonl"], args].concat());
    noted(&["find", "anna", "--kind", "contact", "--in", "contacts"]);
    noted(&["find", "nobody"]);
    noted(&["find", "when:2026-03", "--expand"]);
    noted(&["agenda", "2026-03"]);
    noted(&["remove", "--query", "nobody"]);
    noted(&["show", "uid:anna-1"]);
    let lines = lines(&log);
    let clients: Vec<&str> = lines.iter().map(|line| line["client"].as_str().unwrap()).collect();
    assert_eq!(
        clients,
        ["larder find", "larder find", "larder find", "larder agenda", "larder remove"]
    );
    let first = &lines[0];
    for (name, value) in [
        ("event", Value::from("query")),
        ("query", Value::from("(and (word \"anna\") (kind \"contact\"))")),
        ("kind", Value::from("contact")),
        ("collection", Value::from("contacts")),
        ("backend", Value::from("local")),
        ("origin", Value::from("executed")),
        ("answer", Value::from(1)),
        ("returned", Value::from(1)),
    ] {
        assert_eq!(first[name], value, "{name}: {first}");
    }
    for name in ["at_us", "pid", "rows_read", "verified", "us", "bytes"] {
        assert!(first[name].is_u64(), "{name}: {first}");
    }
    assert_eq!((&lines[1]["kind"], &lines[1]["returned"]), (&Value::Null, &Value::from(0)));
    assert_eq!(std::fs::metadata(&log).unwrap().mode() & 0o777, 0o600);
    // The log has no contents of items.
    assert!(!std::fs::read_to_string(&log).unwrap().contains("example.org"));
}

#[test]
fn the_configuration_enables_the_log() {
    let home = Home::with_book();
    home.ok(&["find", "anna"]);
    assert!(!usual(&home).exists(), "it is off unless it is asked for");
    home.configure("[query-log]\nenabled = true\n");
    home.ok(&["find", "anna"]);
    assert_eq!(lines(&usual(&home)).len(), 1);
    let folder = std::fs::metadata(usual(&home).parent().unwrap()).unwrap();
    assert_eq!(folder.mode() & 0o777, 0o700);
    home.configure("[query-log]\nfile = \"~/mine.jsonl\"\n");
    home.ok(&["find", "anna"]);
    let mine = home.path().join("home/mine.jsonl");
    assert_eq!(lines(&mine).len(), 1);
    home.ok(&["find", "anna", "--query-log", "other.jsonl"]);
    assert_eq!((lines(&mine).len(), lines(&home.work("other.jsonl")).len()), (1, 1));
    home.configure("[query-log]\nenabled = false\nfile = \"~/mine.jsonl\"\n");
    home.ok(&["find", "anna"]);
    assert_eq!((lines(&mine).len(), lines(&usual(&home)).len()), (1, 1));
    for (text, why) in [
        ("[query-log]\nfil = \"q\"\n", "line 2: unknown field `fil`"),
        ("[views]\ncache = \"much\"\n", "invalid size \"much\""),
    ] {
        home.configure(text);
        let run = home.code(&["find", "anna"], 2);
        assert!(run.stderr().contains(why), "{}", run.masked_output());
    }
}

#[test]
fn a_log_that_cannot_be_written_is_a_warning() {
    let home = Home::with_book();
    home.write("file", "");
    let run = home.code(&["find", "anna", "--query-log", "file/q.jsonl"], 0);
    assert!(run.stdout().contains("Anna"), "{}", run.masked_output());
    assert_eq!(
        run.stderr().matches("warning: cannot write the query log file/q.jsonl").count(),
        1,
        "{}",
        run.masked_output()
    );
    let run = home.code(&["find", "anna", "--query-log", "file/q.jsonl", "--quiet"], 0);
    assert_eq!(run.stderr(), "");
}

/// The log is rotated while several processes append to it: each query has one complete line.
#[test]
fn several_processes_and_a_full_log() {
    let home = Home::with_book();
    let log = home.work("q.jsonl");
    // Almost full: only some lines fit.
    let event = |text: &str| format!("{{\"event\":\"{text}\"}}\n");
    let filler = event(&"x".repeat(1024 - event("").len())).repeat(16 << 10);
    std::fs::write(&log, &filler[..filler.len() - 1024]).unwrap();
    let ask =
        "for i in 1 2 3 4 5 6 7 8; do larder find anna --query-log q.jsonl >/dev/null & done; wait";
    let run = home.shell(ask);
    assert_eq!(run.masked_output(), "");
    let before = std::fs::read_to_string(home.work("q.jsonl.1")).unwrap();
    assert!(before.len() <= 16 << 20);
    let in_it = before.lines().filter(|line| line.contains("anna")).count();
    assert_eq!(in_it + lines(&log).len(), 8);
    assert!(in_it > 0, "nothing fitted in");
}

#[test]
fn a_watch_is_logged_from_open_to_close() {
    let home = Home::with_book();
    home.write("new.vcf", ANNA.replace("anna-1", "new-1"));
    let script = "larder watch anna --changes 1 --query-log q.jsonl --format json | {
        while read -r line; do case $line in *complete*) break;; esac; done
        larder add new.vcf >/dev/null; cat >/dev/null; }";
    assert_eq!(home.shell(script).masked_output(), "");
    let lines = lines(&home.work("q.jsonl"));
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let count = |name| events.iter().filter(|event| **event == name).count();
    for name in ["start", "open", "notify", "change", "close", "end"] {
        assert_eq!(count(name), 1, "{name}: {events:?}");
    }
    assert_eq!((events[0], events[events.len() - 1]), ("start", "end"));
    let notified = lines.iter().find(|line| line["event"] == "notify").unwrap();
    assert_eq!((&notified["client"], &notified["added"]), (&"larder watch".into(), &1.into()));
    // An answer that takes no memory is not cached, so none is evicted.
    home.configure("[views]\ncache = 0\n");
    home.ok(&["watch", "anna", "--changes", "0", "--query-log", "none.jsonl"]);
    let text = std::fs::read_to_string(home.work("none.jsonl")).unwrap();
    assert!(text.contains("\"budget\":0") && !text.contains("\"evict\""), "{text}");
}

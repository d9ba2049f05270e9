//! Shared answers, the answer cache, and the query log of both.

use crate::book::{Book, card, small};
use larder_query::QueryContext;
use larder_query::query_log::{JsonLinesLog, QueryLogEvent, QueryLogSink};
use larder_query::views::{QuerySyntax, View, ViewOptions, ViewQuery, Views, ViewsOptions};
use larder_store::{BatchChange, Precondition};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// A log in memory, without the figures that differ from run to run.
#[derive(Debug, Default)]
struct MemoryLog(Mutex<Vec<String>>);

impl QueryLogSink for MemoryLog {
    fn record(&self, event: &QueryLogEvent<'_>) {
        let line = match event {
            QueryLogEvent::Start { budget, .. } => format!("start {budget}"),
            QueryLogEvent::Query(answer) => {
                format!(
                    "query {} {:?} {} of {}",
                    answer.query, answer.origin, answer.answer, answer.returned
                )
            }
            QueryLogEvent::Open { view, answer } => format!(
                "open {view} by {} {:?} {} of {}",
                answer.client, answer.origin, answer.answer, answer.returned
            ),
            QueryLogEvent::Notify { view, added, modified, removed, .. } => {
                format!("notify {view} +{added} ~{modified} -{removed}")
            }
            QueryLogEvent::Reset { view, reason, .. } => format!("reset {view} {reason:?}"),
            QueryLogEvent::Close { view, .. } => format!("close {view}"),
            QueryLogEvent::Change { batches, items, kinds, tested, notified, .. } => {
                format!("change {batches} {items} {kinds:?} tested {tested} notified {notified}")
            }
            QueryLogEvent::Evict { answer, reason, bytes } => {
                format!("evict {answer} {reason:?} {bytes}")
            }
            QueryLogEvent::End => "end".to_string(),
        };
        self.0.lock().unwrap().push(line);
    }
}

/// A small store, views on it, and their log.
struct LoggedViews {
    book: Book,
    views: Views,
    log: Arc<MemoryLog>,
}

impl LoggedViews {
    fn new(cache_bytes: usize) -> LoggedViews {
        let (book, log) = (small(), Arc::new(MemoryLog::default()));
        let sink: Arc<dyn QueryLogSink> = Arc::clone(&log) as Arc<dyn QueryLogSink>;
        let options =
            ViewsOptions { cache_bytes, log: Some(sink), watch: false, ..ViewsOptions::default() };
        let views = Views::open(&book.dir(), options).unwrap();
        LoggedViews { book, views, log }
    }

    fn line_query(line: &str) -> ViewQuery {
        ViewQuery::new(QuerySyntax::Line, line, Arc::new(QueryContext::default()))
    }

    fn open(&self, client: &str, line: &str) -> View {
        let options = ViewOptions { client: client.into(), ..ViewOptions::default() };
        let mut view = self.views.open_view(LoggedViews::line_query(line), options).unwrap();
        while view.try_next().unwrap().is_some() {}
        view
    }

    fn find(&self, line: &str) -> usize {
        self.views.find(LoggedViews::line_query(line), "find", &mut |_, _| true).unwrap()
    }

    /// Takes the lines of the log.
    fn take_log(&self) -> String {
        std::mem::take(&mut *self.log.0.lock().unwrap()).join("\n")
    }
}

#[test]
fn equal_queries_share_one_answer() {
    let mut views = LoggedViews::new(4000);
    let (a, b) = (views.open("a", "bob"), views.open("b", "bob"));
    drop(a);
    assert_eq!(views.find("bob"), 1);
    drop(b);
    assert_eq!(views.find("bob"), 1);
    views.book.put("contacts", [card("UID:x\nFN:Bob the Builder").as_str()]);
    assert_eq!(views.find("bob"), 2);
    insta::assert_snapshot!(views.take_log(), @r#"
    start 4000
    open 1 by a Executed 1 of 1
    open 2 by b Shared 1 of 1
    close 1
    query (word "bob") Shared 1 of 1
    close 2
    query (word "bob") Cache 1 of 1
    evict 1 Stale 1540
    change 1 1 [("contacts", "contact")] tested 1 notified 0
    query (word "bob") Executed 2 of 2
    "#);
}

#[test]
fn an_answer_stays_cached_while_its_items_are_the_same() {
    let mut views = LoggedViews::new(4000);
    views.find("bob");
    views.book.put("contacts", [card("UID:x\nFN:Somebody Else").as_str()]);
    views.find("bob");
    // An item was modified and stays in the answer, which is a list of rows.
    views.book.put("contacts", [card("UID:bob\nFN:Bob O'Brien the Second").as_str()]);
    views.find("bob");
    insta::assert_snapshot!(views.take_log(), @r#"
    start 4000
    query (word "bob") Executed 1 of 1
    change 1 1 [("contacts", "contact")] tested 0 notified 0
    query (word "bob") Cache 1 of 1
    change 1 1 [("contacts", "contact")] tested 1 notified 0
    query (word "bob") Cache 1 of 1
    "#);
}

#[test]
fn the_least_recently_used_answer_is_evicted() {
    let views = LoggedViews::new(3100);
    for line in ["anna", "bob", "anna", "wang", "anna", "bob"] {
        views.find(line);
    }
    insta::assert_snapshot!(views.take_log(), @r#"
    start 3100
    query (word "anna") Executed 1 of 1
    query (word "bob") Executed 2 of 1
    query (word "anna") Cache 1 of 1
    evict 2 Budget 1540
    query (word "wang") Executed 3 of 0
    query (word "anna") Cache 1 of 1
    evict 3 Budget 1540
    query (word "bob") Executed 4 of 1
    "#);
}

#[test]
fn a_budget_of_zero_disables_the_cache() {
    let views = LoggedViews::new(0);
    let view = views.open("a", "anna");
    views.find("anna");
    drop(view);
    assert_eq!(views.views.count_open_views(), 0);
    drop(views.views);
    insta::assert_snapshot!(views.log.0.lock().unwrap().join("\n"), @r#"
    start 0
    open 1 by a Executed 1 of 1
    query (word "anna") Executed 2 of 1
    close 1
    end
    "#);
}

#[test]
fn deliveries_and_resets_are_logged() {
    let mut views = LoggedViews::new(0);
    let mut view = views.open("a", "anna");
    let handle = views.book.reader().items().find_by_uid(None, "anna").unwrap()[0].handle;
    views.book.apply(vec![BatchChange::Remove(handle, Precondition::Any)]);
    views.views.catch_up().unwrap();
    while view.try_next().unwrap().is_some() {}
    views.book.apply(vec![BatchChange::RenameCollection("contacts".into(), "people".into())]);
    views.views.catch_up().unwrap();
    while view.try_next().unwrap().is_some() {}
    drop(view);
    insta::assert_snapshot!(views.take_log(), @r#"
    start 0
    open 1 by a Executed 1 of 1
    notify 1 +0 ~0 -1
    change 1 1 [("contacts", "contact")] tested 1 notified 1
    change 1 0 [] tested 0 notified 0
    reset 1 Collections
    close 1
    "#);
}

/// A file in memory that is shared with the test.
#[derive(Clone, Default)]
struct SharedFile(Arc<Mutex<Vec<u8>>>);

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        assert!(bytes.ends_with(b"\n"), "whole lines");
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_line_is_a_json_object() {
    let (book, file) = (small(), SharedFile::default());
    let log: Arc<dyn QueryLogSink> = Arc::new(JsonLinesLog::new(file.clone()));
    let options = ViewsOptions { log: Some(log), watch: false, ..ViewsOptions::default() };
    let views = Views::open(&book.dir(), options).unwrap();
    let options = ViewOptions { client: "a \"quoted\" client\n".into(), ..ViewOptions::default() };
    drop(views.open_view(LoggedViews::line_query("anna"), options).unwrap());
    drop(views);
    let text = String::from_utf8(file.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "open", "close", "end"]);
    for line in &lines {
        assert!(line["at_us"].as_u64().unwrap() > 1_700_000_000_000_000, "microseconds: {line}");
        assert_eq!(line["pid"], u64::from(std::process::id()));
    }
    assert_eq!(lines[1]["client"], "a \"quoted\" client\n");
    assert_eq!(lines[1]["query"], "(word \"anna\")");
    assert_eq!(lines[1]["origin"], "executed");
    assert_eq!(lines[1]["view"], lines[2]["view"]);
    for field in ["kind", "collection"] {
        assert!(lines[1][field].is_null());
    }
    for field in ["rows_read", "verified", "returned", "us", "bytes", "answer"] {
        assert!(lines[1][field].is_u64(), "{field}");
    }
}

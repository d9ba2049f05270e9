//! What views share, what is kept of answers and for how long, and what the log says of it.

use crate::book::{Book, card, small};
use larder_query::QueryContext;
use larder_query::query_log::{JsonLinesLog, QueryLogEvent, QueryLogSink};
use larder_query::views::{QuerySyntax, View, ViewOptions, ViewQuery, Views, ViewsOptions};
use larder_store::{BatchChange, Precondition};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// A log that is kept in memory, without what differs each time.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl QueryLogSink for Notes {
    fn record(&self, event: &QueryLogEvent<'_>) {
        let said = match event {
            QueryLogEvent::Start { budget, .. } => format!("start {budget}"),
            QueryLogEvent::Query(answer) => {
                format!(
                    "query {} {:?} {} of {}",
                    answer.query, answer.from, answer.answer, answer.returned
                )
            }
            QueryLogEvent::Open { view, answer } => format!(
                "open {view} by {} {:?} {} of {}",
                answer.client, answer.from, answer.answer, answer.returned
            ),
            QueryLogEvent::Told { view, added, modified, removed, .. } => {
                format!("told {view} +{added} ~{modified} -{removed}")
            }
            QueryLogEvent::Fresh { view, why, .. } => format!("fresh {view} {why:?}"),
            QueryLogEvent::Close { view, .. } => format!("close {view}"),
            QueryLogEvent::Change { batches, items, of, asked, told, .. } => {
                format!("change {batches} {items} {of:?} asked {asked} told {told}")
            }
            QueryLogEvent::Drop { answer, why, bytes } => format!("drop {answer} {why:?} {bytes}"),
            QueryLogEvent::End => "end".to_string(),
        };
        self.0.lock().unwrap().push(said);
    }
}

struct Shop {
    book: Book,
    views: Views,
    notes: Arc<Notes>,
}

impl Shop {
    fn new(cache: usize) -> Shop {
        let (book, notes) = (small(), Arc::new(Notes::default()));
        let log: Arc<dyn QueryLogSink> = Arc::clone(&notes) as Arc<dyn QueryLogSink>;
        let options = ViewsOptions {
            cache_bytes: cache,
            log: Some(log),
            watch: false,
            ..ViewsOptions::default()
        };
        let views = Views::open(&book.dir(), options).unwrap();
        Shop { book, views, notes }
    }

    fn question(line: &str) -> ViewQuery {
        ViewQuery::new(QuerySyntax::Line, line, Arc::new(QueryContext::default()))
    }

    fn open(&self, client: &str, line: &str) -> View {
        let options = ViewOptions { client: client.into(), ..ViewOptions::default() };
        let mut view = self.views.open_view(Shop::question(line), options).unwrap();
        while view.try_next().unwrap().is_some() {}
        view
    }

    fn find(&self, line: &str) -> usize {
        self.views.find(Shop::question(line), "find", &mut |_, _| true).unwrap()
    }

    /// What was noted since the last time.
    fn said(&self) -> String {
        std::mem::take(&mut *self.notes.0.lock().unwrap()).join("\n")
    }
}

#[test]
fn equal_questions_share_one_answer() {
    let mut shop = Shop::new(4000);
    let (a, b) = (shop.open("a", "bob"), shop.open("b", "bob"));
    drop(a);
    assert_eq!(shop.find("bob"), 1);
    drop(b);
    assert_eq!(shop.find("bob"), 1);
    shop.book.put("contacts", [card("UID:x\nFN:Bob the Builder").as_str()]);
    assert_eq!(shop.find("bob"), 2);
    insta::assert_snapshot!(shop.said(), @r#"
    start 4000
    open 1 by a Run 1 of 1
    open 2 by b Shared 1 of 1
    close 1
    query (word "bob") Shared 1 of 1
    close 2
    query (word "bob") Cache 1 of 1
    drop 1 Stale 1540
    change 1 1 [("contacts", "contact")] asked 1 told 0
    query (word "bob") Run 2 of 2
    "#);
}

#[test]
fn what_does_not_concern_an_answer_leaves_it() {
    let mut shop = Shop::new(4000);
    shop.find("bob");
    shop.book.put("contacts", [card("UID:x\nFN:Somebody Else").as_str()]);
    shop.find("bob");
    // The same items answer, though one is not what it was: an answer is which they are.
    shop.book.put("contacts", [card("UID:bob\nFN:Bob O'Brien the Second").as_str()]);
    shop.find("bob");
    insta::assert_snapshot!(shop.said(), @r#"
    start 4000
    query (word "bob") Run 1 of 1
    change 1 1 [("contacts", "contact")] asked 0 told 0
    query (word "bob") Cache 1 of 1
    change 1 1 [("contacts", "contact")] asked 1 told 0
    query (word "bob") Cache 1 of 1
    "#);
}

#[test]
fn the_oldest_goes_where_there_is_no_room() {
    let shop = Shop::new(3100);
    for line in ["anna", "bob", "anna", "wang", "anna", "bob"] {
        shop.find(line);
    }
    insta::assert_snapshot!(shop.said(), @r#"
    start 3100
    query (word "anna") Run 1 of 1
    query (word "bob") Run 2 of 1
    query (word "anna") Cache 1 of 1
    drop 2 Budget 1540
    query (word "wang") Run 3 of 0
    query (word "anna") Cache 1 of 1
    drop 3 Budget 1540
    query (word "bob") Run 4 of 1
    "#);
}

#[test]
fn nothing_is_kept_where_that_is_switched_off() {
    let shop = Shop::new(0);
    let view = shop.open("a", "anna");
    shop.find("anna");
    drop(view);
    assert_eq!(shop.views.count_open_views(), 0);
    drop(shop.views);
    insta::assert_snapshot!(shop.notes.0.lock().unwrap().join("\n"), @r#"
    start 0
    open 1 by a Run 1 of 1
    query (word "anna") Run 2 of 1
    close 1
    end
    "#);
}

#[test]
fn a_view_is_told_and_says_why_it_begins_anew() {
    let mut shop = Shop::new(0);
    let mut view = shop.open("a", "anna");
    let handle = shop.book.reader().find_by_uid(None, "anna").unwrap()[0].handle;
    shop.book.apply(vec![BatchChange::Remove(handle, Precondition::Any)]);
    shop.views.catch_up().unwrap();
    while view.try_next().unwrap().is_some() {}
    shop.book.apply(vec![BatchChange::RenameCollection("contacts".into(), "people".into())]);
    shop.views.catch_up().unwrap();
    while view.try_next().unwrap().is_some() {}
    drop(view);
    insta::assert_snapshot!(shop.said(), @r#"
    start 0
    open 1 by a Run 1 of 1
    told 1 +0 ~0 -1
    change 1 1 [("contacts", "contact")] asked 1 told 1
    change 1 0 [] asked 0 told 0
    fresh 1 Collections
    close 1
    "#);
}

/// A file that is shared with who looks into it.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        assert!(bytes.ends_with(b"\n"), "whole lines");
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_are_objects_of_json() {
    let (book, written) = (small(), Written::default());
    let log: Arc<dyn QueryLogSink> = Arc::new(JsonLinesLog::new(written.clone()));
    let options = ViewsOptions { log: Some(log), watch: false, ..ViewsOptions::default() };
    let views = Views::open(&book.dir(), options).unwrap();
    let options = ViewOptions { client: "a \"quoted\" client\n".into(), ..ViewOptions::default() };
    drop(views.open_view(Shop::question("anna"), options).unwrap());
    drop(views);
    let written = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<serde_json::Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "open", "close", "end"]);
    for line in &lines {
        assert!(line["at"].as_u64().unwrap() > 1_700_000_000_000_000, "microseconds: {line}");
        assert_eq!(line["pid"], u64::from(std::process::id()));
    }
    assert_eq!(lines[1]["client"], "a \"quoted\" client\n");
    assert_eq!(lines[1]["query"], "(word \"anna\")");
    assert_eq!(lines[1]["from"], "run");
    assert_eq!(lines[1]["view"], lines[2]["view"]);
    for field in ["kind", "collection"] {
        assert!(lines[1][field].is_null());
    }
    for field in ["scanned", "tested", "returned", "us", "bytes", "answer"] {
        assert!(lines[1][field].is_u64(), "{field}");
    }
}

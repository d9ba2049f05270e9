//! Views that are used by several threads: no client waits for the callback of another.

use crate::book::{Book, card, small};
use larder_query::QueryContext;
use larder_query::views::{
    QuerySyntax, View, ViewEvent, ViewOptions, ViewQuery, Views, ViewsOptions,
};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// The longest wait for a thread that must not be blocked.
const PATIENCE: Duration = Duration::from_secs(20);

fn open_views(dir: &Path) -> Views {
    Views::open(dir, ViewsOptions { watch: false, ..ViewsOptions::default() }).unwrap()
}

fn line_query(line: &str) -> ViewQuery {
    ViewQuery::new(QuerySyntax::Line, line, Arc::new(QueryContext::default()))
}

fn count_items(view: &mut View) -> usize {
    let mut count = 0;
    while let Some(event) = view.try_next().unwrap() {
        if let ViewEvent::Added(items) | ViewEvent::Modified(items) = event {
            count += items.len();
        }
    }
    count
}

#[test]
fn another_view_is_served_while_a_callback_reads_an_answer() {
    let mut book = small();
    let views = open_views(&book.dir());
    let mut view = views.open_view(line_query("bob"), ViewOptions::default()).unwrap();
    assert_eq!(count_items(&mut view), 1);
    let (begin, begun) = mpsc::channel();
    let (finish, finished) = mpsc::channel();
    let other = {
        let views = views.clone();
        thread::spawn(move || {
            begun.recv_timeout(PATIENCE).unwrap();
            // A change is delivered, a view is opened, and a query is answered.
            book.put("contacts", [card("UID:x\nFN:Bob the Builder").as_str()]);
            views.catch_up().unwrap();
            assert_eq!(count_items(&mut view), 1);
            let mut opened = views.open_view(line_query("anna"), ViewOptions::default()).unwrap();
            assert_eq!(count_items(&mut opened), 1);
            assert_eq!(views.find(line_query("bob"), "test", &mut |_, _| true).unwrap(), 2);
            finish.send(()).unwrap();
            book
        })
    };
    let mut given = 0;
    let found = views.find(line_query(""), "test", &mut |_, _| {
        given += 1;
        if given == 1 {
            begin.send(()).unwrap();
            finished.recv_timeout(PATIENCE).expect("the other thread waits for this callback");
        }
        true
    });
    assert_eq!(found.unwrap(), given);
    let _book = other.join().unwrap();
}

#[test]
fn a_callback_may_use_the_views() {
    let book = small();
    let views = open_views(&book.dir());
    let mut counts = Vec::new();
    let found = views.find(line_query("anna"), "test", &mut |_, _| {
        counts.push(views.find(line_query("bob"), "test", &mut |_, _| true).unwrap());
        true
    });
    assert_eq!(found.unwrap(), 1);
    assert_eq!(counts, [1]);
}

#[test]
fn a_wake_callback_may_use_the_views() {
    let mut book = small();
    let views = open_views(&book.dir());
    let (seen, woken) = (Arc::new(Mutex::new(Vec::new())), views.clone());
    let wake = {
        let seen = Arc::clone(&seen);
        move || seen.lock().unwrap().push(woken.current_seq())
    };
    let options = ViewOptions { wake: Some(Arc::new(wake)), ..ViewOptions::default() };
    let mut view = views.open_view(line_query("bob"), options).unwrap();
    assert_eq!(count_items(&mut view), 1);
    book.put("contacts", [card("UID:x\nFN:Bob the Builder").as_str()]);
    let seq = views.catch_up().unwrap();
    assert_eq!(*seen.lock().unwrap(), [seq]);
    assert_eq!(count_items(&mut view), 1);
}

/// The write-ahead log can be begun anew only if no read transaction is older than its last batch.
#[test]
fn the_log_stays_short_while_a_slow_query_runs_beside_an_import() {
    const MAX_LOG_BYTES: u64 = 16 << 20;
    const BATCHES: usize = 30;
    let text = "lorem ipsum ".repeat(100);
    let cards: Vec<String> =
        (0..1000).map(|n| card(&format!("UID:u{n}\nFN:Anna {n}\nNOTE:{text}"))).collect();
    let mut book = Book::with_contacts(cards.iter().map(String::as_str));
    let (views, log) = (open_views(&book.dir()), book.dir().join("data.db-wal"));
    let note = "x".repeat(1 << 20);
    // Processors differ in speed: the query grows until it takes longer than the import.
    let is_slow = [60, 240, 960].into_iter().any(|terms| {
        let query = slow_query(terms);
        let views = views.clone();
        let slow = thread::spawn(move || views.find(query, "test", &mut |_, _| true).unwrap());
        for batch in 0..BATCHES {
            let imported = card(&format!("UID:i{terms}_{batch}\nFN:Bob\nNOTE:{note}"));
            book.put("imported", [imported.as_str()]);
            let bytes = std::fs::metadata(&log).unwrap().len();
            assert!(bytes <= MAX_LOG_BYTES, "the log has {bytes} bytes");
        }
        let outlasts_import = !slow.is_finished();
        assert_eq!(slow.join().unwrap(), 0);
        outlasts_import
    });
    assert!(is_slow, "the queries ended before the import");
}

/// A query that looks for this many words in each item of the collection `contacts`.
fn slow_query(words: usize) -> ViewQuery {
    let terms = (0..words).map(|n| format!("(not (not (contains \"note\" \"zq{n}\")))"));
    let query = format!("(or {})", terms.collect::<Vec<String>>().join(" "));
    let query = ViewQuery::new(QuerySyntax::Sexp, &query, Arc::new(QueryContext::default()));
    query.with_collection("contacts")
}

//! Schedules in which a view was once told something wrong, or nothing: each of them failed before
//! it was mended.

use crate::book::{Book, card};
use larder_query::QueryContext;
use larder_query::views::{
    QuerySyntax, View, ViewEvent, ViewInterest, ViewLimits, ViewOptions, ViewQuery, Views,
    ViewsOptions,
};
use larder_store::{BatchChange, Handle, Kind, Operation, Precondition};
use larder_time::civil::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const DAY: i64 = 86_400;
struct Shop {
    book: Book,
    views: Views,
    now: Arc<AtomicI64>,
}
fn at(y: &str) -> i64 {
    larder_time::value::IcalDateTime::parse(y).unwrap().civil.seconds()
}
impl Shop {
    fn new() -> Shop {
        Shop::with(ViewLimits::default())
    }
    fn with(limits: ViewLimits) -> Shop {
        let mut book = Book::new();
        for (n, k) in [("contacts", Kind::Contact), ("calendar", Kind::Event)] {
            book.apply(vec![BatchChange::CreateCollection(n.into(), k)]);
        }
        let now = Arc::new(AtomicI64::new(at("20260328T120000")));
        let c = Arc::clone(&now);
        let clock = Arc::new(move || Instant::from_seconds_clamped(c.load(Ordering::Relaxed)));
        let options = ViewsOptions { clock, watch: false, limits, ..ViewsOptions::default() };
        let views = Views::open(&book.dir(), options).unwrap();
        Shop { book, views, now }
    }
    fn q(line: &str) -> ViewQuery {
        ViewQuery::new(QuerySyntax::Line, line, Arc::new(QueryContext::default()))
    }
    fn open(&self, q: ViewQuery) -> View {
        self.views
            .open_view(q, ViewOptions { interest: ViewInterest::Heads, ..ViewOptions::default() })
            .unwrap()
    }
    fn event(&mut self, uid: &str, day: &str) {
        let text = format!(
            "BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART:{day}T130000Z\r\nDTEND:{day}T133000Z\r\nEND:VEVENT\r\n"
        );
        self.book.put_components("calendar", [text.as_str()]);
    }
    fn handle(&self, uid: &str) -> Handle {
        self.book.reader().find_by_uid(None, uid).unwrap()[0].handle
    }
    fn remove(&mut self, uid: &str) {
        let h = self.handle(uid);
        self.book.apply(vec![BatchChange::Remove(h, Precondition::Any)]);
    }
    fn fresh(&self, q: ViewQuery) -> BTreeSet<i64> {
        let mut s = BTreeSet::new();
        self.views
            .find(q, "x", &mut |h, _| {
                s.insert(h.row);
                true
            })
            .unwrap();
        s
    }
}
fn listen(view: &mut View, knows: &mut BTreeSet<i64>) {
    while let Some(t) = view.try_next().unwrap() {
        match t {
            ViewEvent::Reset => knows.clear(),
            ViewEvent::Added(a) | ViewEvent::Modified(a) => knows.extend(a.iter().map(|t| t.row)),
            ViewEvent::Removed(a) => {
                for g in a {
                    knows.remove(&g.row);
                }
            }
            ViewEvent::Complete(_) => {}
        }
    }
}

/// Clock news in the queue, then overflow/pause.
#[test]
fn queued_clock_news_are_lost() {
    let mut s = Shop::new();
    s.event("tomorrow", "20260329");
    let mut v = s.open(Shop::q("when:today"));
    let mut k = BTreeSet::new();
    listen(&mut v, &mut k);
    s.now.fetch_add(DAY, Ordering::Relaxed);
    s.views.catch_up().unwrap();
    v.pause();
    s.event("other", "20260329");
    s.views.catch_up().unwrap();
    v.resume();
    listen(&mut v, &mut k);
    assert_eq!(k, s.fresh(Shop::q("when:today")));
}

/// Lagging, then midnight with nothing that moves.
#[test]
fn gone_while_lagging_over_midnight() {
    let mut s = Shop::new();
    s.event("today", "20260328");
    let mut v = s.open(Shop::q("when:today"));
    let mut k = BTreeSet::new();
    listen(&mut v, &mut k);
    assert_eq!(k.len(), 1);
    v.pause();
    s.remove("today");
    s.views.catch_up().unwrap();
    s.now.fetch_add(DAY, Ordering::Relaxed);
    s.views.catch_up().unwrap();
    v.resume();
    listen(&mut v, &mut k);
    assert_eq!(k, s.fresh(Shop::q("when:today")));
}

/// Lagging, and the look of catching up finds that collections were swapped.
#[test]
fn lost_is_overwritten() {
    let mut s = Shop::new();
    s.book.apply(vec![BatchChange::CreateCollection("home".into(), Kind::Contact)]);
    s.book.put("contacts", [card("UID:a\nFN:Anna").as_str()]);
    s.book.put("home", [card("UID:b\nFN:Bob").as_str()]);
    let q = || Shop::q("").with_collection("home");
    let mut v = s.open(q());
    let mut k = BTreeSet::new();
    listen(&mut v, &mut k);
    v.pause();
    s.book.put("home", [card("UID:c\nFN:Carl").as_str()]);
    s.views.catch_up().unwrap();
    v.resume();
    for (a, b) in [("home", "x"), ("contacts", "home")] {
        s.book.apply(vec![BatchChange::RenameCollection(a.into(), b.into())]);
    }
    listen(&mut v, &mut k);
    s.views.catch_up().unwrap();
    listen(&mut v, &mut k);
    assert_eq!(k, s.fresh(q()));
}

/// A clock that was ahead.
#[test]
fn clock_steps_back() {
    let mut s = Shop::new();
    s.event("today", "20260328");
    s.now.fetch_add(3650 * DAY, Ordering::Relaxed);
    let mut v = s.open(Shop::q("when:today"));
    let mut k = BTreeSet::new();
    listen(&mut v, &mut k);
    s.now.fetch_add(-3650 * DAY, Ordering::Relaxed);
    s.views.catch_up().unwrap();
    listen(&mut v, &mut k);
    let f = s.fresh(Shop::q("when:today"));
    assert_eq!(f.len(), 1, "a fresh question gets the kept reading");
    assert_eq!(k, f);
}

/// A purge, and in between a removal.
#[test]
fn purge_finished_later() {
    let mut s = Shop::new();
    s.event("x", "20260328");
    s.event("p", "20260401");
    let reader = s.book.reader();
    let held = reader.begin_read().unwrap(); // keeps the old pages: ReaderInTheWay
    reader.last_seq().unwrap();
    let p = s.handle("p");
    let _unfinished = s.book.store.purge(&mut Operation::new("purge", "", 0), &[p]);

    drop(held);
    let mut v = s.open(Shop::q("when:2026-03-28"));
    let mut k = BTreeSet::new();
    listen(&mut v, &mut k);
    assert_eq!(k.len(), 1);
    s.remove("x");
    s.book.store.purge(&mut Operation::new("purge", "", 0), &[]).unwrap();

    s.views.catch_up().unwrap();
    listen(&mut v, &mut k);
    assert_eq!(k, s.fresh(Shop::q("when:2026-03-28")));
}

/// The cursor of a view that keeps up does not move.
#[test]
fn fresh_though_it_kept_up() {
    let mut s = Shop::new();
    s.book.put(
        "contacts",
        [
            card("UID:a\nFN:Anna").as_str(),
            card("UID:b\nFN:Anna B").as_str(),
            card("UID:p\nFN:Paul").as_str(),
        ],
    );
    let mut v = s.open(Shop::q("anna"));
    let mut k = BTreeSet::new();
    listen(&mut v, &mut k);
    s.book.put("contacts", [card("UID:p\nFN:Paul P").as_str()]);
    s.views.catch_up().unwrap();
    listen(&mut v, &mut k);
    let year = 365 * DAY * 1000;
    for (n, name) in ["Quentin", "Quincy", "Quark"].iter().enumerate() {
        let text = card(&format!("UID:p\nFN:{name}"));
        let prepared = s.book.store.extractor().parse_contact((&text[..]).into()).unwrap();
        let put = larder_store::ItemPut {
            collection: "contacts".into(),
            derived_uid: false,
            uid: "p".into(),
            parsed: prepared,
            precondition: Precondition::Any,
        };
        s.book
            .store
            .apply(
                &mut Operation::new("test", "", year * (n as i64 + 1)),
                vec![BatchChange::Put(put)],
            )
            .unwrap();
        s.views.catch_up().unwrap();
        listen(&mut v, &mut k);
    }
    v.pause();
    s.remove("a");
    s.views.catch_up().unwrap();
    v.resume();
    let first = format!("{:?}", v.try_next().unwrap());
    assert!(first.contains("Removed"), "{first}");
}

/// An item stops answering while the first answer is on its way, and answers again.
#[test]
fn what_changes_on_its_way_is_told_all_the_same() {
    let mut s = Shop::new();
    s.book.put("contacts", [card("UID:a\nFN:Anna").as_str()]);
    let mut v = s.open(Shop::q("anna"));
    s.book.put("contacts", [card("UID:a\nFN:Berta").as_str()]);
    s.views.catch_up().unwrap();
    let mut k = BTreeSet::new();
    assert!(matches!(v.try_next().unwrap(), Some(ViewEvent::Added(items)) if items.len() == 1));
    k.insert(s.book.reader().find_by_uid(None, "a").unwrap()[0].row);
    v.pause();
    s.book.put("contacts", [card("UID:a\nFN:Anna again").as_str()]);
    s.views.catch_up().unwrap();
    v.resume();
    listen(&mut v, &mut k);
    assert_eq!(k, s.fresh(Shop::q("anna")));
}

/// The index of times is made anew between two looks, and something is removed meanwhile.
#[test]
fn a_rebuild_between_two_looks() {
    let mut s = Shop::new();
    for n in 0..3 {
        s.event(&format!("e{n}"), "20260328");
    }
    let mut v = s.open(Shop::q("when:2026-03-28"));
    let mut k = BTreeSet::new();
    listen(&mut v, &mut k);
    s.remove("e1");
    s.book.store.rebuild().unwrap();
    s.remove("e2");
    s.views.catch_up().unwrap();
    listen(&mut v, &mut k);
    assert_eq!(k, s.fresh(Shop::q("when:2026-03-28")));
}

/// News of what a question said before it turned wait, and are forgotten behind the turn.
#[test]
fn a_turn_behind_news_that_wait() {
    for (limits, pause) in
        [(ViewLimits { items: 2, ..ViewLimits::default() }, false), (ViewLimits::default(), true)]
    {
        let mut s = Shop::with(limits);
        s.book.put_components(
            "calendar",
            ["BEGIN:VEVENT\r\nUID:gone\r\nDTSTART:20260328T110000Z\r\nDTEND:20260328T120030Z\r\nEND:VEVENT\r\n"],
        );
        let mut v = s.open(Shop::q("when:now..+2h"));
        let mut k = BTreeSet::new();
        listen(&mut v, &mut k);
        assert_eq!(k.len(), 1);
        s.remove("gone");
        s.views.catch_up().unwrap();
        // What went would not answer any more.
        s.now.fetch_add(90, Ordering::Relaxed);
        s.views.catch_up().unwrap();
        if pause {
            v.pause();
        }
        for n in 0..3 {
            s.event(&format!("new{n}"), "20260328");
        }
        s.views.catch_up().unwrap();
        v.resume();
        listen(&mut v, &mut k);
        let fresh = s.fresh(Shop::q("when:now..+2h"));
        assert_eq!((k.len(), &k), (3, &fresh), "{pause}");
    }
}

/// Two windows of one question that begin alike, the shorter one last.
#[test]
fn two_windows_from_one_instant() {
    let mut s = Shop::new();
    let text = r#"(or (occur-in-time-range? (make-time "20260301T000000Z") (make-time "20260401T000000Z"))
                      (occur-in-time-range? (make-time "20260301T000000Z") (make-time "20260326T000000Z")))"#;
    let mut v = s.open(ViewQuery::new(QuerySyntax::Sexp, text, Arc::new(QueryContext::default())));
    let mut k = BTreeSet::new();
    s.event("a", "20260328");
    s.views.catch_up().unwrap();
    listen(&mut v, &mut k);
    assert_eq!(k.len(), 1);
}

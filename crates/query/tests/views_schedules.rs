//! Sequences of changes that once gave a view wrong events, or none: each test failed before its
//! fix.

use crate::book::{Book, card};
use larder_query::QueryContext;
use larder_query::views::{
    QuerySyntax, View, ViewEvent, ViewInterest, ViewLimits, ViewOptions, ViewQuery, Views,
    ViewsOptions,
};
use larder_store::{BatchChange, Handle, ItemPut, ItemRow, Kind, Operation, Precondition};
use larder_time::civil::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const DAY_SECONDS: i64 = 86_400;

/// A store with an address book and a calendar, views on it, and a clock that the test sets.
struct ViewFixture {
    book: Book,
    views: Views,
    now: Arc<AtomicI64>,
}

/// A view, and the rows that its events add up to.
struct FollowedView {
    view: View,
    rows: BTreeSet<ItemRow>,
}

fn line_query(line: &str) -> ViewQuery {
    ViewQuery::new(QuerySyntax::Line, line, Arc::new(QueryContext::default()))
}

fn unix_seconds(time: &str) -> i64 {
    larder_time::value::IcalDateTime::parse(time).unwrap().civil.seconds()
}

impl ViewFixture {
    fn new() -> ViewFixture {
        ViewFixture::with_limits(ViewLimits::default())
    }

    fn with_limits(limits: ViewLimits) -> ViewFixture {
        let mut book = Book::new();
        for (name, kind) in [("contacts", Kind::Contact), ("calendar", Kind::Event)] {
            book.apply(vec![BatchChange::CreateCollection(name.into(), kind)]);
        }
        let now = Arc::new(AtomicI64::new(unix_seconds("20260328T120000")));
        let clock = {
            let now = Arc::clone(&now);
            Arc::new(move || Instant::from_seconds_clamped(now.load(Ordering::Relaxed)))
        };
        let options = ViewsOptions { clock, watch: false, limits, ..ViewsOptions::default() };
        let views = Views::open(&book.dir(), options).unwrap();
        ViewFixture { book, views, now }
    }

    fn advance_clock(&self, seconds: i64) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
    }

    fn catch_up(&self) {
        self.views.catch_up().unwrap();
    }

    /// Opens a view, whose first answer is not read yet.
    fn open(&self, query: ViewQuery) -> FollowedView {
        let options = ViewOptions { interest: ViewInterest::Meta, ..ViewOptions::default() };
        let view = self.views.open_view(query, options).unwrap();
        FollowedView { view, rows: BTreeSet::new() }
    }

    /// Opens a view, and reads its first answer.
    fn follow(&self, query: ViewQuery) -> FollowedView {
        let mut followed = self.open(query);
        followed.read_events();
        followed
    }

    fn put_contact(&mut self, lines: &str) {
        self.book.put("contacts", [card(lines).as_str()]);
    }

    /// Stores an event that takes half an hour on this day.
    fn put_event(&mut self, uid: &str, day: &str) {
        let text = format!(
            "BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART:{day}T130000Z\r\nDTEND:{day}T133000Z\r\nEND:VEVENT\r\n"
        );
        self.book.put_components("calendar", [text.as_str()]);
    }

    fn handle(&self, uid: &str) -> Handle {
        self.book.reader().items().find_by_uid(None, uid).unwrap()[0].handle
    }

    fn remove(&mut self, uid: &str) {
        let handle = self.handle(uid);
        self.book.apply(vec![BatchChange::Remove(handle, Precondition::Any)]);
    }

    fn rename_collection(&mut self, from: &str, to: &str) {
        self.book.apply(vec![BatchChange::RenameCollection(from.into(), to.into())]);
    }

    /// The rows of the answer to a query now.
    fn find(&self, query: ViewQuery) -> BTreeSet<ItemRow> {
        let mut rows = BTreeSet::new();
        self.views
            .find(query, "test", &mut |meta, _| {
                rows.insert(meta.row);
                true
            })
            .unwrap();
        rows
    }
}

impl FollowedView {
    fn read_events(&mut self) {
        while let Some(event) = self.view.try_next().unwrap() {
            match event {
                ViewEvent::Reset => self.rows.clear(),
                ViewEvent::Added(items) | ViewEvent::Modified(items) => {
                    self.rows.extend(items.iter().map(|item| item.row));
                }
                ViewEvent::Removed(items) => {
                    for item in items {
                        self.rows.remove(&item.row);
                    }
                }
                ViewEvent::Complete(_) => {}
            }
        }
    }

    /// Reads all events, and returns the rows of the modified items.
    fn read_modified_rows(&mut self) -> Vec<ItemRow> {
        let mut modified = Vec::new();
        while let Some(event) = self.view.try_next().unwrap() {
            match event {
                ViewEvent::Modified(items) => modified.extend(items.iter().map(|item| item.row)),
                ViewEvent::Complete(_) => {}
                other => panic!("{other:?}"),
            }
        }
        modified
    }
}

/// The change feed does not contain the changes by the clock, so a view that drops such a change is
/// reset.
#[test]
fn queued_changes_of_the_clock_survive_a_pause() {
    let mut fixture = ViewFixture::new();
    fixture.put_event("tomorrow", "20260329");
    let mut followed = fixture.follow(line_query("when:today"));

    fixture.advance_clock(DAY_SECONDS);
    fixture.catch_up();
    followed.view.pause();
    fixture.put_event("other", "20260329");
    fixture.catch_up();
    followed.view.resume();
    followed.read_events();

    assert_eq!(followed.rows.len(), 2);
    assert_eq!(followed.rows, fixture.find(line_query("when:today")));
}

#[test]
fn a_removal_while_lagging_survives_midnight() {
    let mut fixture = ViewFixture::new();
    fixture.put_event("today", "20260328");
    let mut followed = fixture.follow(line_query("when:today"));
    assert_eq!(followed.rows.len(), 1);

    followed.view.pause();
    fixture.remove("today");
    fixture.catch_up();
    // No item enters or leaves the answer at midnight.
    fixture.advance_clock(DAY_SECONDS);
    fixture.catch_up();
    followed.view.resume();
    followed.read_events();

    assert_eq!(followed.rows, fixture.find(line_query("when:today")));
}

/// The poll that a lagging view makes to catch up finds that collections were swapped.
#[test]
fn a_reset_that_is_found_while_catching_up_is_kept() {
    let mut fixture = ViewFixture::new();
    fixture.book.apply(vec![BatchChange::CreateCollection("home".into(), Kind::Contact)]);
    fixture.put_contact("UID:a\nFN:Anna");
    fixture.book.put("home", [card("UID:b\nFN:Bob").as_str()]);
    let query = || line_query("").with_collection("home");
    let mut followed = fixture.follow(query());

    followed.view.pause();
    fixture.book.put("home", [card("UID:c\nFN:Carl").as_str()]);
    fixture.catch_up();
    followed.view.resume();
    fixture.rename_collection("home", "x");
    fixture.rename_collection("contacts", "home");
    followed.read_events();
    fixture.catch_up();
    followed.read_events();

    assert_eq!(followed.rows, fixture.find(query()));
}

#[test]
fn a_clock_that_is_set_back_resolves_queries_again() {
    let mut fixture = ViewFixture::new();
    fixture.put_event("today", "20260328");
    fixture.advance_clock(3650 * DAY_SECONDS);
    let mut followed = fixture.follow(line_query("when:today"));

    fixture.advance_clock(-3650 * DAY_SECONDS);
    fixture.catch_up();
    followed.read_events();

    let rows = fixture.find(line_query("when:today"));
    assert_eq!(rows.len(), 1, "an equal query shares the new resolution");
    assert_eq!(followed.rows, rows);
}

#[test]
fn a_removal_between_the_steps_of_a_purge_is_delivered() {
    let mut fixture = ViewFixture::new();
    fixture.put_event("kept", "20260328");
    fixture.put_event("purged", "20260401");
    let reader = fixture.book.reader();
    // A read transaction keeps the old pages, so the purge cannot end.
    let transaction = reader.begin_read().unwrap();
    reader.changes().last_seq().unwrap();
    let purged = fixture.handle("purged");
    let purge = || Operation::new("purge", "", 0);
    let _unfinished = fixture.book.store.purge(&mut purge(), &[purged]);
    drop(transaction);

    let mut followed = fixture.follow(line_query("when:2026-03-28"));
    assert_eq!(followed.rows.len(), 1);
    fixture.remove("kept");
    fixture.book.store.purge(&mut purge(), &[]).unwrap();
    fixture.catch_up();
    followed.read_events();

    assert_eq!(followed.rows, fixture.find(line_query("when:2026-03-28")));
}

/// Changes that do not concern a view count as delivered, so the retention of the change feed does
/// not pass a view that keeps up.
#[test]
fn a_view_that_kept_up_is_not_reset() {
    let mut fixture = ViewFixture::new();
    let cards = ["UID:a\nFN:Anna", "UID:b\nFN:Anna B", "UID:p\nFN:Paul"].map(card);
    fixture.book.put("contacts", cards.iter().map(String::as_str));
    let mut followed = fixture.follow(line_query("anna"));
    fixture.put_contact("UID:p\nFN:Paul P");
    fixture.catch_up();
    followed.read_events();

    let year_millis = 365 * DAY_SECONDS * 1000;
    for (year, name) in (1..).zip(["Quentin", "Quincy", "Quark"]) {
        let text = card(&format!("UID:p\nFN:{name}"));
        let store = &mut fixture.book.store;
        let parsed = store.extractor().parse_contact((&text[..]).into()).unwrap();
        let put = ItemPut {
            collection: "contacts".into(),
            derived_uid: false,
            uid: "p".into(),
            parsed,
            precondition: Precondition::Any,
        };
        let mut operation = Operation::new("test", "", year_millis * year);
        store.apply(&mut operation, vec![BatchChange::Put(put)]).unwrap();
        fixture.catch_up();
        followed.read_events();
    }
    followed.view.pause();
    fixture.remove("a");
    fixture.catch_up();
    followed.view.resume();

    let event = followed.view.try_next().unwrap();
    assert!(matches!(event, Some(ViewEvent::Removed(_))), "{event:?}");
}

/// Answers from an index that was made anew may have been wrong.
#[test]
fn a_rebuild_of_the_indexes_resets_views() {
    let mut fixture = ViewFixture::new();
    fixture.put_contact("UID:a\nFN:Anna");
    let mut followed = fixture.follow(line_query("anna"));
    assert_eq!(fixture.find(line_query("anna")), followed.rows);
    fixture.book.store.rebuild().unwrap();
    fixture.catch_up();
    let event = followed.view.try_next().unwrap();
    assert!(matches!(event, Some(ViewEvent::Reset)), "{event:?}");
    followed.rows.clear();
    followed.read_events();
    assert_eq!(followed.rows.len(), 1);
    fixture.catch_up();
    assert!(!followed.view.has_pending_events());
}

/// An item leaves the answer while the first answer is delivered, and enters it again.
#[test]
fn a_change_during_the_first_answer_is_delivered() {
    let mut fixture = ViewFixture::new();
    fixture.put_contact("UID:a\nFN:Anna");
    let mut followed = fixture.open(line_query("anna"));
    fixture.put_contact("UID:a\nFN:Berta");
    fixture.catch_up();
    let event = followed.view.try_next().unwrap();
    assert!(matches!(event, Some(ViewEvent::Added(items)) if items.len() == 1));
    followed.rows.insert(fixture.book.reader().items().find_by_uid(None, "a").unwrap()[0].row);

    followed.view.pause();
    fixture.put_contact("UID:a\nFN:Anna again");
    fixture.catch_up();
    followed.view.resume();
    followed.read_events();

    assert_eq!(followed.rows, fixture.find(line_query("anna")));
}

/// The schedules are derived again between two polls, and items are removed before and after.
#[test]
fn removals_around_a_rebuild_are_delivered() {
    let mut fixture = ViewFixture::new();
    for uid in ["first", "second", "third"] {
        fixture.put_event(uid, "20260328");
    }
    let mut followed = fixture.follow(line_query("when:2026-03-28"));

    fixture.remove("second");
    fixture.book.store.rebuild().unwrap();
    fixture.remove("third");
    fixture.catch_up();
    followed.read_events();

    assert_eq!(followed.rows.len(), 1);
    assert_eq!(followed.rows, fixture.find(line_query("when:2026-03-28")));
}

/// Changes of the time range before the clock moved it are queued, and dropped after it moved.
#[test]
fn changes_before_a_new_time_range_are_not_lost() {
    for (limits, is_paused) in
        [(ViewLimits { items: 2, ..ViewLimits::default() }, false), (ViewLimits::default(), true)]
    {
        let mut fixture = ViewFixture::with_limits(limits);
        fixture.book.put_components(
            "calendar",
            ["BEGIN:VEVENT\r\nUID:early\r\nDTSTART:20260328T110000Z\r\nDTEND:20260328T120030Z\r\nEND:VEVENT\r\n"],
        );
        let mut followed = fixture.follow(line_query("when:now..+2h"));
        assert_eq!(followed.rows.len(), 1);
        fixture.remove("early");
        fixture.catch_up();
        // The removed event would not be in the new time range.
        fixture.advance_clock(90);
        fixture.catch_up();
        if is_paused {
            followed.view.pause();
        }
        for uid in ["first", "second", "third"] {
            fixture.put_event(uid, "20260328");
        }
        fixture.catch_up();
        followed.view.resume();
        followed.read_events();

        let rows = fixture.find(line_query("when:now..+2h"));
        assert_eq!((followed.rows.len(), &followed.rows), (3, &rows), "paused: {is_paused}");
    }
}

/// The longer range decides whether a change concerns the query, also when the shorter comes last.
#[test]
fn a_query_may_have_two_time_ranges_with_the_same_start() {
    let mut fixture = ViewFixture::new();
    let text = r#"(or (occur-in-time-range? (make-time "20260301T000000Z") (make-time "20260401T000000Z"))
                      (occur-in-time-range? (make-time "20260301T000000Z") (make-time "20260326T000000Z")))"#;
    let query = ViewQuery::new(QuerySyntax::Sexp, text, Arc::new(QueryContext::default()));
    let mut followed = fixture.open(query);
    fixture.put_event("late", "20260328");
    fixture.catch_up();
    followed.read_events();
    assert_eq!(followed.rows.len(), 1);
}

/// Lists print the times of the first occurrence of a series, which changes with an override.
#[test]
fn an_override_modifies_its_series() {
    let kickoff = |summary: &str| {
        format!(
            "BEGIN:VEVENT\r\nUID:standup\r\nRECURRENCE-ID:20260302T090000Z\r\nSUMMARY:{summary}\r\n\
             DTSTART:20260302T150000Z\r\nDTEND:20260302T153000Z\r\nEND:VEVENT\r\n"
        )
    };
    let range = || line_query("when:2026-03-04 summary:standup").with_occurrences();
    for (query, is_paused) in [
        (line_query("summary:standup"), false),
        (line_query("summary:standup"), true),
        (range(), false),
    ] {
        let mut fixture = ViewFixture::new();
        fixture.book.put_components(
            "calendar",
            ["BEGIN:VEVENT\r\nUID:standup\r\nSUMMARY:Standup\r\nRRULE:FREQ=DAILY;COUNT=5\r\n\
              DTSTART:20260302T090000Z\r\nDTEND:20260302T093000Z\r\nEND:VEVENT\r\n"],
        );
        let mut followed = fixture.follow(query);
        let series = *followed.rows.first().unwrap();
        let mut read_changes = |fixture: &ViewFixture| {
            if is_paused {
                followed.view.pause();
            }
            fixture.catch_up();
            followed.view.resume();
            followed.read_modified_rows()
        };

        fixture.book.put_components("calendar", [kickoff("Kickoff").as_str()]);
        assert_eq!(read_changes(&fixture), [series], "paused: {is_paused}");
        // The times of the series stay.
        fixture.book.put_components("calendar", [kickoff("Beginning").as_str()]);
        assert!(read_changes(&fixture).is_empty(), "paused: {is_paused}");
        let items = fixture.book.reader().items().find_series("calendar", "standup").unwrap();
        let changed = items.iter().find(|item| item.row != series).unwrap().handle;
        fixture.book.apply(vec![BatchChange::Remove(changed, Precondition::Any)]);
        assert_eq!(read_changes(&fixture), [series], "paused: {is_paused}");
    }
}

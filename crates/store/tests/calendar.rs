//! Calendars under random operations: after each of them a check finds no fault, and the change
//! feed leads from every earlier state to the current one; an undo restores bytes, recurrence-ids
//! and calendar contexts.

use crate::book::{Book, NOW_MS};
use larder_format::contact::derive_uid;
use larder_store::{
    BatchChange, CalendarContext, CollectionType, FeedResult, Handle, ItemChange, ItemPut,
    ItemVersion, Kind, Operation, OperationId, Precondition, Reader, Store, TimeRange, TimeTarget,
    ZoneDefinition,
};
use larder_time::civil::Instant;
use larder_time::value::IcalDateTime;
use larder_time::zone;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::sync::Arc;

const CALENDARS: [&str; 3] = ["home", "work", "old"];

/// A component with these lines; the first one is its name.
pub(crate) fn component(lines: &str) -> Vec<u8> {
    let mut lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let name = lines.next().unwrap_or_default();
    let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
    format!("BEGIN:{name}\r\n{lines}END:{name}\r\n").into_bytes()
}

/// The definition of a zone that no system has, with this offset from UTC in minutes.
pub(crate) fn zone(tzid: &str, east: i32) -> Arc<ZoneDefinition> {
    let (hours, minutes) = (east / 60, east % 60);
    let bytes = component(&format!(
        "VTIMEZONE\nTZID:{tzid}\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+{hours:02}{minutes:02}
         TZOFFSETTO:+{hours:02}{minutes:02}\nEND:STANDARD"
    ));
    Arc::new(ZoneDefinition::new(&bytes).unwrap())
}

/// Calendar contexts: none, one zone, that zone and another, the first zone with another
/// definition, and version 1.
pub(crate) fn calendar_context(n: usize) -> CalendarContext {
    let zones = match n {
        0 => vec![],
        1 => vec![zone("Own", 345)],
        2 => vec![zone("Own", 345), zone("Other", 60)],
        _ => vec![zone("Own", 90)],
    };
    CalendarContext { is_vcalendar_1: n == 4, zone_definitions: zones }
}

pub(crate) fn put(
    store: &Store,
    collection: &str,
    bytes: &[u8],
    context: &CalendarContext,
    expect: Precondition,
) -> BatchChange {
    let extractor = store.extractor_for_collection(collection, CollectionType::Calendar).unwrap();
    let prepared = extractor.parse_component(bytes.to_vec(), context).expect("a component");
    let named = prepared.uid().map(str::to_string);
    BatchChange::Put(ItemPut {
        collection: Arc::from(collection),
        derived_uid: named.is_none(),
        uid: named.unwrap_or_else(|| derive_uid(bytes)),
        parsed: prepared,
        precondition: expect,
    })
}

/// The stored properties of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    handle: Handle,
    kind: Kind,
    bytes: Vec<u8>,
    context: Option<Arc<CalendarContext>>,
}

type Contents = BTreeMap<(String, String, String), Item>;

fn contents(reader: &Reader) -> Contents {
    let mut contents = Contents::new();
    for collection in reader.collections().list().unwrap() {
        for meta in reader.items().list_after(&collection, None, usize::MAX >> 1).unwrap() {
            let bytes = reader.items().source_bytes(meta.row).unwrap().unwrap();
            let context = meta
                .calendar_context
                .map(|row| reader.items().calendar_context(row).unwrap().expect("a context"));
            let key = (meta.collection.to_string(), meta.uid, meta.recurrence_id);
            let item = Item { handle: meta.handle, kind: meta.kind, bytes, context };
            assert_eq!(contents.insert(key, item), None, "one item twice");
        }
    }
    contents
}

#[derive(Debug, Clone)]
enum TestChange {
    Put { calendar: usize, text: String, context: usize, expect: Precondition },
    Remove(usize),
}

#[derive(Debug, Clone)]
enum Action {
    Batches(Vec<Vec<TestChange>>),
    UndoLast,
    Undo(usize),
    Purge(usize),
    Rename(usize, usize),
    Drop(usize),
    Later,
    Rebuild,
}

struct PastOperation {
    id: OperationId,
    before: Contents,
}

struct CalendarRun {
    book: Book,
    past: Vec<PastOperation>,
    now: i64,
    /// The last batch after each action, and the versions of all items then.
    seen: Vec<(i64, BTreeMap<Handle, String>)>,
    /// Whether versions may have been pruned or purged.
    forgets: bool,
}

/// Describes a version of an item with its occurrences and alarms.
fn describe_version(then: &ItemVersion) -> String {
    let window = TimeRange {
        from: instant("20260201"),
        to: instant("20260501"),
        local_zone: zone::Zone::UTC,
        target: TimeTarget::Occurrences,
    };
    let mut text = format!("{:?} {}", then.meta.kind, String::from_utf8_lossy(&then.bytes));
    for what in [TimeTarget::Occurrences, TimeTarget::Alarms] {
        let (window, mut left) = (TimeRange { target: what, ..window.clone() }, 50);
        then.schedule.iter().for_each(|times| {
            times.for_each_in(&window, &mut |occurring| {
                left -= 1;
                text += &format!("{occurring:?}\n");
                left > 0
            });
        });
    }
    text
}

/// Returns the current versions of all items, in the form of the change feed.
fn read_all_versions(reader: &Reader) -> BTreeMap<Handle, String> {
    let mut all = BTreeMap::new();
    for collection in reader.collections().list().unwrap() {
        for meta in reader.items().list_after(&collection, None, usize::MAX >> 1).unwrap() {
            let bytes = reader.items().source_bytes(meta.row).unwrap().unwrap().into();
            let mut times = None;
            reader
                .items()
                .for_each_schedule(&[meta.row], &mut |_, of| {
                    times = Some(of.clone());
                    true
                })
                .unwrap();
            let handle = meta.handle;
            let then = ItemVersion { meta, bytes, schedule: times };
            all.insert(handle, describe_version(&then));
        }
    }
    all
}

impl CalendarRun {
    fn perform(&mut self, action: &Action) {
        let before = contents(&self.book.reader());
        match action {
            Action::Batches(batches) => self.batches(batches, before),
            Action::UndoLast => self.undo_last(),
            Action::Undo(n) => {
                if let Some(past) = n.checked_rem(self.past.len()).map(|n| self.past.remove(n)) {
                    let _whatever = self.book.store.undo(past.id, self.now);
                    self.past.clear();
                }
            }
            Action::Purge(n) => {
                if let Some(item) = before.values().nth(n % before.len().max(1)) {
                    let mut operation = Operation::new("purge", "", self.now);
                    self.book.store.purge(&mut operation, &[item.handle]).unwrap();
                    self.past.clear();
                }
            }
            Action::Rename(from, to) => {
                let [from, to] = [from, to].map(|n| CALENDARS[n % 3].to_string());
                self.apply_change(BatchChange::RenameCollection(from, to));
            }
            Action::Drop(n) => {
                self.apply_change(BatchChange::RemoveCollection(CALENDARS[n % 3].into()));
            }
            // More than 90 days, in which the store is used; then versions are pruned.
            Action::Later => {
                self.now += 100 * crate::book::DAY_MS;
                self.book.age_by(100);
            }
            Action::Rebuild => assert_eq!(self.book.store.rebuild_and_check().unwrap().faults, []),
        }
        assert_eq!(self.book.store.check().unwrap().faults, [], "{action:?}");
        self.forgets |= matches!(action, Action::Purge(_) | Action::Later | Action::Rebuild);
        self.check_change_feed();
    }

    /// The changes since every earlier state lead to the current one.
    fn check_change_feed(&mut self) {
        let reader = self.book.reader();
        let (now, names) = (read_all_versions(&reader), reader.collections().list_names().unwrap());
        for (seq, then) in &self.seen {
            let (mut reached, mut changes) = (then.clone(), Vec::new());
            let result =
                reader.changes().for_each(*seq, 10_000, &names, &mut |change| changes.push(change));
            match result.unwrap() {
                FeedResult::Complete => {}
                FeedResult::Expired | FeedResult::WithoutSchedules => {
                    assert!(self.forgets, "since {seq}");
                    continue;
                }
                FeedResult::TooMany => panic!("too many since {seq}"),
            }
            for ItemChange { handle, before, after } in changes {
                let before = before.as_ref().map(describe_version);
                assert_eq!(before, reached.remove(&handle), "before-image of {handle}");
                reached.extend(after.as_ref().map(|after| (handle, describe_version(after))));
            }
            assert_eq!(reached, now, "since {seq}");
        }
        self.seen.push((reader.changes().last_seq().unwrap(), now));
    }

    fn apply_change(&mut self, change: BatchChange) {
        let mut operation = Operation::new("test", "", self.now);
        // The change may be refused: no such collection, a collection with items, a name that is
        // taken.
        let _whatever = self.book.store.apply(&mut operation, vec![change]);
        self.past.clear();
    }

    fn batches(&mut self, batches: &[Vec<TestChange>], before: Contents) {
        let mut operation = Operation::new("test", "", self.now);
        for acts in batches {
            let now = contents(&self.book.reader());
            let changes = acts.iter().filter_map(|act| match act {
                TestChange::Put { calendar, text, context: n, expect } => {
                    let name = CALENDARS[calendar % 3];
                    Some(put(
                        &self.book.store,
                        name,
                        &component(text),
                        &calendar_context(*n),
                        *expect,
                    ))
                }
                TestChange::Remove(n) => {
                    let item = now.values().nth(n % now.len().max(1))?;
                    Some(BatchChange::Remove(item.handle, Precondition::Any))
                }
            });
            let changes = changes.collect();
            self.book.store.apply(&mut operation, changes).unwrap();
        }
        self.past.extend(operation.id().map(|id| PastOperation { id, before }));
    }

    /// Nothing changed since the operation, so the undo restores the state before it.
    fn undo_last(&mut self) {
        let Some(PastOperation { id, before }) = self.past.pop() else { return };
        match self.book.store.undo(id, self.now) {
            Ok(undo) => assert_eq!(undo.conflicts, []),
            Err(larder_store::Error::HistoryPruned { .. }) => return self.past.clear(),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(contents(&self.book.reader()), before);
        // An undo is an operation, too, so the earlier operation is no longer the last one.
        self.past.clear();
    }
}

const TIMES: &[&str] = &[
    ":20260301T120000Z",
    ":20260302T120000",
    ";VALUE=DATE:20260303",
    ";TZID=Europe/Berlin:20260304T120000",
    ";TZID=Own:20260305T120000",
    ";TZID=Other:20260306T120000",
    ";TZID=Nowhere:20260307T120000",
    ":no time",
];

fn component_text() -> impl Strategy<Value = String> {
    let rules = &[
        "FREQ=DAILY",
        "FREQ=DAILY;COUNT=10",
        "FREQ=WEEKLY;BYDAY=MO,WE",
        "FREQ=MONTHLY;BYMONTHDAY=31",
        "FREQ=YEARLY",
        "FREQ=HOURLY;UNTIL=20290101T000000Z",
        "FREQ=NEVER",
    ];
    let name = select(&["VEVENT", "VEVENT", "VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY"][..]);
    let uid =
        prop_oneof![1 => Just(String::new()), 8 => (0..4).prop_map(|n| format!("UID:u{n}\n"))];
    let start = option::weighted(0.9, select(TIMES));
    let more =
        (option::of(select(&rules[..])), option::weighted(0.4, (select(TIMES), any::<bool>())));
    let alarm = select(
        &[
            "",
            "TRIGGER:-PT15M",
            "TRIGGER;RELATED=END:-P1D",
            "TRIGGER;VALUE=DATE-TIME:20260301T000000Z",
        ][..],
    );
    let large = prop_oneof![20 => Just(0), 1 => Just(70_000)];
    (name, uid, start, more, alarm, large, 0..4).prop_map(
        |(name, uid, start, (rule, recurrence), alarm, large, summary)| {
            let mut lines =
                format!("{name}\n{uid}SUMMARY:{summary}\nDESCRIPTION:{}\n", "x ".repeat(large / 2));
            lines += &start.map(|start| format!("DTSTART{start}\n")).unwrap_or_default();
            match recurrence {
                Some((of, true)) => lines += &format!("RECURRENCE-ID;RANGE=THISANDFUTURE{of}\n"),
                Some((of, false)) => lines += &format!("RECURRENCE-ID{of}\n"),
                None => lines += &rule.map(|rule| format!("RRULE:{rule}\n")).unwrap_or_default(),
            }
            if !alarm.is_empty() {
                lines += &format!("BEGIN:VALARM\nACTION:DISPLAY\n{alarm}\nEND:VALARM\n");
            }
            lines
        },
    )
}

fn change_strategy() -> impl Strategy<Value = TestChange> {
    let expect =
        prop_oneof![5 => Just(Precondition::Any), 1 => Just(Precondition::DeriveUidOnConflict)];
    prop_oneof![
        6 => (0..6usize, component_text(), 0..5usize, expect).prop_map(|(calendar, text, context, expect)| {
            TestChange::Put { calendar: calendar.saturating_sub(3), text, context, expect }
        }),
        2 => (0..20usize).prop_map(TestChange::Remove),
    ]
}

fn action_strategy() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => vec(vec(change_strategy(), 0..6), 1..4).prop_map(Action::Batches),
        6 => Just(Action::UndoLast),
        3 => (0..20usize).prop_map(Action::Undo),
        2 => (0..20usize).prop_map(Action::Purge),
        1 => (0..3usize, 0..3usize).prop_map(|(from, to)| Action::Rename(from, to)),
        1 => (0..3usize).prop_map(Action::Drop),
        1 => Just(Action::Later),
        1 => Just(Action::Rebuild),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_it_is_sound(actions in vec(action_strategy(), 1..20)) {
        let (book, past, seen) = (Book::new(), Vec::new(), Vec::new());
        let mut run = CalendarRun { book, past, now: NOW_MS, seen, forgets: false };
        for action in &actions {
            run.perform(action);
        }
        prop_assert_eq!(run.book.store.rebuild_and_check().unwrap().faults, []);
    }
}

impl Book {
    pub(crate) fn put_component(
        &mut self,
        collection: &str,
        lines: &str,
        context: &CalendarContext,
    ) -> larder_store::ChangeOutcome {
        let change = put(&self.store, collection, &component(lines), context, Precondition::Any);
        self.apply(vec![change]).1.outcomes[0]
    }
}

fn instant(text: &str) -> Instant {
    Instant::from_seconds_clamped(IcalDateTime::parse(text).unwrap().civil.seconds())
}

/// Returns the first start of each item in the tested years, by UID.
pub(crate) fn starts(reader: &Reader) -> BTreeMap<String, String> {
    let (from, to) = (instant("20200101"), instant("20300101"));
    let window =
        TimeRange { from, to, local_zone: zone::Zone::UTC, target: TimeTarget::Occurrences };
    let mut starts = BTreeMap::new();
    for collection in reader.collections().list().unwrap() {
        for meta in reader.items().list_after(&collection, None, 999).unwrap() {
            reader
                .items()
                .for_each_schedule(&[meta.row], &mut |_, times| {
                    times.for_each_in(&window, &mut |occurring| {
                        let civil = occurring.occurrence.start.to_civil(0);
                        let start =
                            IcalDateTime { civil, is_date: false, is_utc: true }.to_string();
                        starts.insert(meta.uid.clone(), start);
                        false
                    });
                    true
                })
                .unwrap();
        }
    }
    starts
}

/// The copies that a restore made are purged as well, and lose the item's calendar context.
#[test]
fn a_purged_copy_is_sound() {
    let mut book = Book::new();
    let lines = "VEVENT\nUID:a\nDTSTART;TZID=Own:20260305T120000";
    let a = crate::book::outcome_handle(&book.put_component("home", lines, &calendar_context(1)));
    book.put_component("home", "VEVENT\nUID:b\nDTSTART:20260305T120000", &calendar_context(0));
    let copy = book.sibling_path("copy.db");
    book.store.backup(&copy).unwrap();
    book.store.restore(&copy).unwrap();
    book.store.purge(&mut Operation::new("purge", "", NOW_MS), &[a]).unwrap();
    book.store.restore(&book.dir().join("data.db.before-restore")).unwrap();
    assert_eq!(contents(&book.reader()).len(), 1);
    assert_eq!(book.store.check().unwrap().faults, []);
    assert_eq!(book.count("SELECT count(*) FROM zone_definition"), 0);
}

/// Values that are ignored or read differently are reported with their line.
#[test]
fn odd_times_are_named() {
    let book = Book::new();
    let check = |lines: &str, describe_version: &str| {
        let parsed = book
            .store
            .extractor()
            .parse_component(component(lines), &CalendarContext::default())
            .unwrap();
        let warnings = parsed.warnings().iter();
        let notes = warnings.map(|warning| format!("{}: {}", warning.line, warning.text));
        assert_eq!(notes.collect::<Vec<_>>().join("; "), describe_version, "{lines}");
    };
    let at = "DTSTART:20260305T120000Z";
    let day = "DTSTART;VALUE=DATE:20260305";
    check(&format!("VEVENT\n{at}\nDTEND:20260305T110000Z"), "3: DTEND is before the start");
    check(&format!("VEVENT\n{day}\nDTEND;VALUE=DATE:20260304"), "3: DTEND is before the start");
    check(&format!("VTODO\n{at}\nDUE:20260305T110000Z"), "3: DUE is before the start");
    check(
        &format!("VEVENT\n{day}\nDTEND:20260306T110000Z"),
        "3: DTEND is a time, but the start is a date",
    );
    check(
        &format!("VEVENT\n{at}\nDTEND;VALUE=DATE:20260306"),
        "3: DTEND is a date, but the start is a time",
    );
    check(&format!("VEVENT\n{at}\nDURATION:-PT1H"), "3: a negative DURATION is ignored");
    check("VEVENT\nSUMMARY:a", "1: no DTSTART: the event will not appear in the calendar");
    check("VEVENT\nDTSTART:soon", "2: \"soon\" is neither a date nor a date-time");
    // Harmless deviations, and items without a time for a good reason, give no warning.
    check(&format!("VEVENT\n{day}\nDTEND;VALUE=DATE:20260305"), "");
    check(&format!("VEVENT\n{at}\nDTEND:20260305T120000Z"), "");
    check("VEVENT\nRECURRENCE-ID:20260305T120000Z", "");
    check("VTODO\nSUMMARY:a", "");
    check("VJOURNAL\nSUMMARY:a", "");
}

/// An override is identified by its RECURRENCE-ID as it is written, whatever the zone's name or
/// rules; an instant in UTC and a day have forms of their own.
#[test]
fn ways_to_write_one_occurrence() {
    let mut book = Book::new();
    book.put_component(
        "home",
        "VEVENT\nUID:a\nDTSTART;TZID=Europe/Berlin:20260301T120000\nRRULE:FREQ=DAILY;COUNT=9",
        &calendar_context(0),
    );
    let mut detached = |of: &str| {
        let lines = format!("VEVENT\nUID:a\nRECURRENCE-ID{of}\nDTSTART:20260305T150000Z");
        book.put_component("home", &lines, &calendar_context(1))
    };
    let first = detached(";TZID=Europe/Berlin:20260305T120000");
    let larder_store::ChangeOutcome::Added(handle) = first else { panic!("{first:?}") };
    for of in [
        ";TZID=W. Europe Standard Time:20260305T120000",
        ";TZID=Own:20260305T120000",
        ":20260305T120000",
    ] {
        assert_eq!(detached(of), larder_store::ChangeOutcome::Updated(handle), "{of}");
    }
    for of in [":20260305T110000Z", ";VALUE=DATE:20260305"] {
        let other = detached(of);
        assert!(matches!(other, larder_store::ChangeOutcome::Added(_)), "{of}: {other:?}");
    }
    let names: Vec<String> = contents(&book.reader()).into_keys().map(|key| key.2).collect();
    assert_eq!(names, ["", "20260305", "20260305T110000Z", "20260305T120000"]);
    assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
}

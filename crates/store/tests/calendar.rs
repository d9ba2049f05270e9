//! Calendars under random operations: after each the store is sound, which means that what it holds
//! of time is what its items give, and an undo brings back bytes, recurrence ids and frames.

use crate::book::{Book, NOW};
use larder_format::contact::derive_uid;
use larder_store::{
    BatchChange, CalendarContext, CollectionType, FeedResult, Handle, ItemChange, ItemPut,
    ItemVersion, Kind, Operation, Precondition, Reader, Store, TimeRange, TimeTarget,
    VtimezoneText,
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

/// A component of these lines, the first of which says what it is.
pub(crate) fn component(lines: &str) -> Vec<u8> {
    let mut lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let name = lines.next().unwrap_or_default();
    let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
    format!("BEGIN:{name}\r\n{lines}END:{name}\r\n").into_bytes()
}

/// A zone that no system has, so many minutes east of Greenwich.
pub(crate) fn zone(tzid: &str, east: i32) -> Arc<VtimezoneText> {
    let (hours, minutes) = (east / 60, east % 60);
    let bytes = component(&format!(
        "VTIMEZONE\nTZID:{tzid}\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+{hours:02}{minutes:02}
         TZOFFSETTO:+{hours:02}{minutes:02}\nEND:STANDARD"
    ));
    Arc::new(VtimezoneText::new(&bytes).unwrap())
}

/// What calendars say around their items: nothing, one zone, that zone and another, the first
/// otherwise, and version 1.
pub(crate) fn frame(n: usize) -> CalendarContext {
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
    frame: &CalendarContext,
    expect: Precondition,
) -> BatchChange {
    let deriver = store.extractor_for_collection(collection, CollectionType::Calendar).unwrap();
    let prepared = deriver.parse_component(bytes.to_vec(), frame).expect("a component");
    let named = prepared.uid().map(str::to_string);
    BatchChange::Put(ItemPut {
        collection: Arc::from(collection),
        derived_uid: named.is_none(),
        uid: named.unwrap_or_else(|| derive_uid(bytes)),
        parsed: prepared,
        precondition: expect,
    })
}

/// All that a store says of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    handle: Handle,
    kind: Kind,
    bytes: Vec<u8>,
    frame: Option<Arc<CalendarContext>>,
}

type Contents = BTreeMap<(String, String, String), Item>;

fn contents(reader: &Reader) -> Contents {
    let mut contents = Contents::new();
    for collection in reader.collections().unwrap() {
        for head in reader.items_after_row(&collection, 0, usize::MAX >> 1).unwrap() {
            let bytes = reader.source_bytes(head.row).unwrap().unwrap();
            let frame = head
                .calendar_context
                .map(|row| reader.calendar_context(row).unwrap().expect("a frame"));
            let key = (head.collection.to_string(), head.uid, head.recurrence_id);
            let item = Item { handle: head.handle, kind: head.kind, bytes, frame };
            assert_eq!(contents.insert(key, item), None, "one item twice");
        }
    }
    contents
}

#[derive(Debug, Clone)]
enum Act {
    Put { calendar: usize, text: String, frame: usize, expect: Precondition },
    Remove(usize),
}

#[derive(Debug, Clone)]
enum Deed {
    Batches(Vec<Vec<Act>>),
    UndoLast,
    Undo(usize),
    Purge(usize),
    Rename(usize, usize),
    Drop(usize),
    Later,
    Rebuild,
}

struct Past {
    id: u64,
    before: Contents,
}

struct Run {
    book: Book,
    past: Vec<Past>,
    now: i64,
    /// The batch after each deed, and what all items were then.
    seen: Vec<(i64, BTreeMap<Handle, String>)>,
    /// Former versions may have been forgotten, or erased.
    forgets: bool,
}

/// What an item is, and when it happens.
fn said(then: &ItemVersion) -> String {
    let window = TimeRange {
        from: instant("20260201"),
        to: instant("20260501"),
        local_zone: zone::Zone::UTC,
        target: TimeTarget::Occurrences,
    };
    let mut said = format!("{:?} {}", then.meta.kind, String::from_utf8_lossy(&then.bytes));
    for what in [TimeTarget::Occurrences, TimeTarget::Alarms] {
        let (window, mut left) = (TimeRange { target: what, ..window.clone() }, 50);
        then.schedule.iter().for_each(|times| {
            times.for_each_in(&window, &mut |occurring| {
                left -= 1;
                said += &format!("{occurring:?}\n");
                left > 0
            });
        });
    }
    said
}

/// Everything as it is, as news since the beginning have it.
fn all(reader: &Reader) -> BTreeMap<Handle, String> {
    let mut all = BTreeMap::new();
    for collection in reader.collections().unwrap() {
        for head in reader.items_after_row(&collection, 0, usize::MAX >> 1).unwrap() {
            let bytes = reader.source_bytes(head.row).unwrap().unwrap().into();
            let mut times = None;
            reader
                .for_each_schedule(&[head.row], &mut |_, of| {
                    times = Some(of.clone());
                    true
                })
                .unwrap();
            let handle = head.handle;
            let then =
                ItemVersion { meta: head, collection: collection.row, bytes, schedule: times };
            all.insert(handle, said(&then));
        }
    }
    all
}

impl Run {
    fn act(&mut self, deed: &Deed) {
        let before = contents(&self.book.reader());
        match deed {
            Deed::Batches(batches) => self.batches(batches, before),
            Deed::UndoLast => self.undo_last(),
            Deed::Undo(n) => {
                if let Some(past) = n.checked_rem(self.past.len()).map(|n| self.past.remove(n)) {
                    let _whatever = self.book.store.undo(past.id as _, self.now);
                    self.past.clear();
                }
            }
            Deed::Purge(n) => {
                if let Some(item) = before.values().nth(n % before.len().max(1)) {
                    let mut operation = Operation::new("purge", "", self.now);
                    self.book.store.purge(&mut operation, &[item.handle]).unwrap();
                    self.past.clear();
                }
            }
            Deed::Rename(from, to) => {
                let [from, to] = [from, to].map(|n| CALENDARS[n % 3].to_string());
                self.one(BatchChange::RenameCollection(from, to));
            }
            Deed::Drop(n) => self.one(BatchChange::RemoveCollection(CALENDARS[n % 3].into())),
            // More than 90 days, after which former versions are forgotten.
            Deed::Later => self.now += 100 * crate::book::DAY,
            Deed::Rebuild => assert_eq!(self.book.store.rebuild_and_check().unwrap().faults, []),
        }
        assert_eq!(self.book.store.check().unwrap().faults, [], "{deed:?}");
        self.forgets |= matches!(deed, Deed::Purge(_) | Deed::Later | Deed::Rebuild);
        self.follow();
    }

    /// What is told since any moment leads from what was then to what is now.
    fn follow(&mut self) {
        let reader = self.book.reader();
        let (now, names) = (all(&reader), reader.collection_names().unwrap());
        for (seq, then) in &self.seen {
            let mut reached = then.clone();
            let told = reader.for_each_change(
                *seq,
                10_000,
                &names,
                &mut |ItemChange { handle, before: was, after: is }| {
                    assert_eq!(
                        was.as_ref().map(said),
                        reached.remove(&handle),
                        "what {handle} was"
                    );
                    reached.extend(is.as_ref().map(|is| (handle, said(is))));
                },
            );
            match told.unwrap() {
                FeedResult::Complete => assert_eq!(reached, now, "since {seq}"),
                FeedResult::Expired => assert!(self.forgets, "since {seq}"),
                FeedResult::TooMany => panic!("too many since {seq}"),
            }
        }
        self.seen.push((reader.last_seq().unwrap(), now));
    }

    fn one(&mut self, change: BatchChange) {
        let mut operation = Operation::new("test", "", self.now);
        // It may be refused: no such collection, not empty, a name that is taken.
        let _whatever = self.book.store.apply(&mut operation, vec![change]);
        self.past.clear();
    }

    fn batches(&mut self, batches: &[Vec<Act>], before: Contents) {
        let mut operation = Operation::new("test", "", self.now);
        for acts in batches {
            let now = contents(&self.book.reader());
            let changes = acts.iter().filter_map(|act| match act {
                Act::Put { calendar, text, frame: n, expect } => {
                    let name = CALENDARS[calendar % 3];
                    Some(put(&self.book.store, name, &component(text), &frame(*n), *expect))
                }
                Act::Remove(n) => {
                    let item = now.values().nth(n % now.len().max(1))?;
                    Some(BatchChange::Remove(item.handle, Precondition::Any))
                }
            });
            let changes = changes.collect();
            self.book.store.apply(&mut operation, changes).unwrap();
        }
        self.past.extend(operation.id().map(|id| Past { id: id as _, before }));
    }

    /// Nothing was changed since, so all is as it was before.
    fn undo_last(&mut self) {
        let Some(Past { id, before }) = self.past.pop() else { return };
        match self.book.store.undo(id as _, self.now) {
            Ok(undo) => assert_eq!(undo.conflicts, []),
            Err(larder_store::Error::HistoryPruned { .. }) => return self.past.clear(),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(contents(&self.book.reader()), before);
        // An undo is an operation as well, and what came before is no longer the last one.
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

fn text() -> impl Strategy<Value = String> {
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

fn act() -> impl Strategy<Value = Act> {
    let expect =
        prop_oneof![5 => Just(Precondition::Any), 1 => Just(Precondition::DuplicateInImport)];
    prop_oneof![
        6 => (0..6usize, text(), 0..5usize, expect).prop_map(|(calendar, text, frame, expect)| {
            Act::Put { calendar: calendar.saturating_sub(3), text, frame, expect }
        }),
        2 => (0..20usize).prop_map(Act::Remove),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        10 => vec(vec(act(), 0..6), 1..4).prop_map(Deed::Batches),
        6 => Just(Deed::UndoLast),
        3 => (0..20usize).prop_map(Deed::Undo),
        2 => (0..20usize).prop_map(Deed::Purge),
        1 => (0..3usize, 0..3usize).prop_map(|(from, to)| Deed::Rename(from, to)),
        1 => (0..3usize).prop_map(Deed::Drop),
        1 => Just(Deed::Later),
        1 => Just(Deed::Rebuild),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_it_is_sound(deeds in vec(deed(), 1..20)) {
        let (book, past, seen) = (Book::new(), Vec::new(), Vec::new());
        let mut run = Run { book, past, now: NOW, seen, forgets: false };
        for deed in &deeds {
            run.act(deed);
        }
        prop_assert_eq!(run.book.store.rebuild_and_check().unwrap().faults, []);
    }
}

impl Book {
    pub(crate) fn put_component(
        &mut self,
        collection: &str,
        lines: &str,
        frame: &CalendarContext,
    ) -> larder_store::ChangeOutcome {
        let change = put(&self.store, collection, &component(lines), frame, Precondition::Any);
        self.apply(vec![change]).1.outcomes[0]
    }
}

fn instant(text: &str) -> Instant {
    Instant::from_seconds_clamped(IcalDateTime::parse(text).unwrap().civil.seconds())
}

/// When each item first begins in the years that matter here, by its UID.
pub(crate) fn starts(reader: &Reader) -> BTreeMap<String, String> {
    let (from, to) = (instant("20200101"), instant("20300101"));
    let window =
        TimeRange { from, to, local_zone: zone::Zone::UTC, target: TimeTarget::Occurrences };
    let mut starts = BTreeMap::new();
    for collection in reader.collections().unwrap() {
        for head in reader.items_after_row(&collection, 0, 999).unwrap() {
            reader
                .for_each_schedule(&[head.row], &mut |_, times| {
                    times.for_each_in(&window, &mut |occurring| {
                        let civil = occurring.occurrence.start.to_civil(0);
                        let start =
                            IcalDateTime { civil, is_date: false, is_utc: true }.to_string();
                        starts.insert(head.uid.clone(), start);
                        false
                    });
                    true
                })
                .unwrap();
        }
    }
    starts
}

/// Copies that a restore left are purged as well: they lose the item's frame with it.
#[test]
fn a_purged_copy_is_sound() {
    let mut book = Book::new();
    let lines = "VEVENT\nUID:a\nDTSTART;TZID=Own:20260305T120000";
    let a = crate::book::handle_of(&book.put_component("home", lines, &frame(1)));
    book.put_component("home", "VEVENT\nUID:b\nDTSTART:20260305T120000", &frame(0));
    let copy = book.beside("copy.db");
    book.store.backup(&copy).unwrap();
    book.store.restore(&copy).unwrap();
    book.store.purge(&mut Operation::new("purge", "", NOW), &[a]).unwrap();
    book.store.restore(&book.dir().join("data.db.before-restore")).unwrap();
    assert_eq!(contents(&book.reader()).len(), 1);
    assert_eq!(book.store.check().unwrap().faults, []);
    assert_eq!(book.count("SELECT count(*) FROM zone_definition"), 0);
}

/// Times that mean something else than they say, or nothing, are named where they stand.
#[test]
fn odd_times_are_named() {
    let book = Book::new();
    let check = |lines: &str, said: &str| {
        let parsed = book
            .store
            .extractor()
            .parse_component(component(lines), &CalendarContext::default())
            .unwrap();
        let warnings = parsed.warnings().iter();
        let notes = warnings.map(|warning| format!("{}: {}", warning.line, warning.text));
        assert_eq!(notes.collect::<Vec<_>>().join("; "), said, "{lines}");
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
    // What is a little loose, or has no time for a reason, is left alone.
    check(&format!("VEVENT\n{day}\nDTEND;VALUE=DATE:20260305"), "");
    check(&format!("VEVENT\n{at}\nDTEND:20260305T120000Z"), "");
    check("VEVENT\nRECURRENCE-ID:20260305T120000Z", "");
    check("VTODO\nSUMMARY:a", "");
    check("VJOURNAL\nSUMMARY:a", "");
}

/// A changed occurrence is known by the time that it stands for, as that is written, whatever the
/// zone is called or does; a moment of UTC and a day are written in other forms, and are known by
/// those.
#[test]
fn ways_to_write_one_occurrence() {
    let mut book = Book::new();
    book.put_component(
        "home",
        "VEVENT\nUID:a\nDTSTART;TZID=Europe/Berlin:20260301T120000\nRRULE:FREQ=DAILY;COUNT=9",
        &frame(0),
    );
    let mut detached = |of: &str| {
        let lines = format!("VEVENT\nUID:a\nRECURRENCE-ID{of}\nDTSTART:20260305T150000Z");
        book.put_component("home", &lines, &frame(1))
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

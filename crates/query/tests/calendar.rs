//! Test calendars: components from short texts, and random ones.

use crate::book::Book;
use larder_format::contact::derive_uid;
use larder_store::{
    BatchChange, CalendarContext, CollectionType, ItemPut, Precondition, ZoneDefinition,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;

/// A time zone that no system has: 5:45 hours east of UTC, in summer 6:15.
pub(crate) const OWN_ZONE: &str = "BEGIN:VTIMEZONE\r\nTZID:Own\r\nBEGIN:STANDARD\r\nDTSTART:19701025T030000\r\n\
    TZOFFSETFROM:+0615\r\nTZOFFSETTO:+0545\r\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\nEND:STANDARD\r\n\
    BEGIN:DAYLIGHT\r\nDTSTART:19700329T020000\r\nTZOFFSETFROM:+0545\r\nTZOFFSETTO:+0615\r\n\
    RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n";

/// Returns a component of these lines, the first of which is its name: `VEVENT`.
pub(crate) fn component(lines: &str) -> String {
    let mut lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let name = lines.next().unwrap_or_default();
    let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
    format!("BEGIN:{name}\r\n{lines}END:{name}\r\n")
}

impl Book {
    /// Creates a store of these components, in the collection `calendar`.
    pub(crate) fn calendar<'a>(components: impl IntoIterator<Item = &'a str>) -> Book {
        let mut book = Book::new();
        book.put_components("calendar", components);
        book
    }

    /// Puts components into a calendar that defines [`OWN_ZONE`].
    pub(crate) fn put_components<'a>(
        &mut self,
        collection: &str,
        components: impl IntoIterator<Item = &'a str>,
    ) {
        let zones = vec![Arc::new(ZoneDefinition::new(OWN_ZONE.as_bytes()).unwrap())];
        let calendar_context = CalendarContext { is_vcalendar_1: false, zone_definitions: zones };
        let extractor =
            self.store.extractor_for_collection(collection, CollectionType::Calendar).unwrap();
        let changes = components.into_iter().map(|bytes| {
            let prepared =
                extractor.parse_component(bytes.into(), &calendar_context).expect("a component");
            let named = prepared.uid().map(str::to_string);
            BatchChange::Put(ItemPut {
                collection: Arc::from(collection),
                derived_uid: named.is_none(),
                uid: named.unwrap_or_else(|| derive_uid(bytes.as_bytes())),
                parsed: prepared,
                precondition: Precondition::Any,
            })
        });
        let changes = changes.collect();
        self.apply(changes);
    }
}

/// Days near clock changes, ends of years and leap days.
pub(crate) const DAYS: &[&str] = &[
    "20260328", "20260329", "20260330", "20261024", "20261025", "20261026", "20260308", "20261101",
    "20251231", "20260101", "20240229", "20260131", "20260405", "20261004", "20260601",
];
const TIMES: &[&str] =
    &["000000", "013000", "020000", "023000", "030000", "090000", "120000", "233000", "235959"];

/// The form of a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeForm {
    Date,
    Floating,
    Utc,
    Zone(&'static str),
}

const CLOCKS: &[TimeForm] = &[
    TimeForm::Date,
    TimeForm::Floating,
    TimeForm::Utc,
    TimeForm::Zone("Europe/Berlin"),
    TimeForm::Zone("America/New_York"),
    TimeForm::Zone("Australia/Lord_Howe"),
    TimeForm::Zone("Pacific/Kiritimati"),
    TimeForm::Zone("Own"),
    TimeForm::Zone("Nowhere"),
];

fn time_line(name: &str, clock: TimeForm, day: &str, time: &str) -> String {
    match clock {
        TimeForm::Date => format!("{name};VALUE=DATE:{day}\n"),
        TimeForm::Floating => format!("{name}:{day}T{time}\n"),
        TimeForm::Utc => format!("{name}:{day}T{time}Z\n"),
        TimeForm::Zone(zone) => format!("{name};TZID={zone}:{day}T{time}\n"),
    }
}

const RULES: &[&str] = &[
    "FREQ=DAILY",
    "FREQ=DAILY;COUNT=5",
    "FREQ=DAILY;INTERVAL=10;COUNT=40",
    "FREQ=WEEKLY",
    "FREQ=WEEKLY;BYDAY=MO,WE",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,SU;WKST=SU",
    "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    "FREQ=WEEKLY;COUNT=200",
    "FREQ=WEEKLY;UNTIL=20270101T000000Z",
    "FREQ=MONTHLY",
    "FREQ=MONTHLY;BYMONTHDAY=31",
    "FREQ=MONTHLY;BYMONTHDAY=-1,1",
    "FREQ=MONTHLY;BYDAY=-1FR",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "FREQ=YEARLY",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=YEARLY;BYMONTH=3,10;BYDAY=-1SU",
    "FREQ=YEARLY;BYWEEKNO=53",
    "FREQ=YEARLY;BYYEARDAY=-1,60",
    "FREQ=HOURLY;INTERVAL=6",
    "FREQ=HOURLY;INTERVAL=25;COUNT=500",
    "FREQ=MINUTELY;COUNT=300",
    "FREQ=DAILY;BYMONTH=1",
    "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
];

fn length() -> impl Strategy<Value = String> {
    let durations = &["PT0S", "PT15M", "PT1H", "P1D", "PT36H", "P1W", "P40D", "P400D", "-PT1H"];
    prop_oneof![
        2 => Just(String::new()),
        5 => select(&durations[..]).prop_map(|length| format!("DURATION:{length}\n")),
    ]
}

fn alarm() -> impl Strategy<Value = String> {
    let triggers = &[
        "TRIGGER:-PT15M",
        "TRIGGER:-P1D",
        "TRIGGER:PT0S",
        "TRIGGER;RELATED=END:PT5M",
        "TRIGGER;RELATED=END:-P2D",
        "TRIGGER;VALUE=DATE-TIME:20260329T003000Z",
        "TRIGGER:P1DT1H",
    ];
    let more = &[
        "",
        "",
        "",
        "REPEAT:3\nDURATION:PT10M\n",
        "REPEAT:2\nDURATION:P1D\n",
        "ACKNOWLEDGED:20260329T000000Z\n",
        "ACKNOWLEDGED:20270101T000000Z\n",
    ];
    (select(&triggers[..]), select(&more[..])).prop_map(|(trigger, more)| {
        format!("BEGIN:VALARM\nACTION:DISPLAY\n{trigger}\n{more}END:VALARM\n")
    })
}

const WORDS: &[&str] = &["Standup", "Zahnarzt", "Brasília", "straße", "100 %", "東京", "a"];

fn texts() -> impl Strategy<Value = String> {
    let lines = &[
        "STATUS:CONFIRMED",
        "STATUS:CANCELLED",
        "STATUS:COMPLETED",
        "STATUS:NEEDS-ACTION",
        "PRIORITY:1",
        "PRIORITY:5",
        "PRIORITY:9",
        "PRIORITY:high",
        "CLASS:PRIVATE",
        "CATEGORIES:Work,Home",
        "CATEGORIES:home",
        "PERCENT-COMPLETE:50",
        "COMPLETED:20260330T120000Z",
        "CREATED:20260101T000000Z",
        "ATTENDEE;CN=Anna:mailto:anna@example.org",
        "ORGANIZER:mailto:bob@example.org",
        "DESCRIPTION:Zahnarzt\\, dann Standup",
        "LOCATION:Brasília",
        "ATTACH:https://example.org/a",
        "DUE:20260330T120000Z",
    ];
    (option::of(select(WORDS)), vec(select(&lines[..]), 0..3)).prop_map(|(word, lines)| {
        let word = word.map(|word| format!("SUMMARY:{word}\n")).unwrap_or_default();
        lines.into_iter().fold(word, |all, line| format!("{all}{line}\n"))
    })
}

/// Generates the content lines of a component, without its name and UID.
fn body() -> impl Strategy<Value = String> {
    let when = (select(CLOCKS), select(DAYS), select(TIMES));
    let other = (select(CLOCKS), select(DAYS), select(TIMES));
    let extra = (option::weighted(0.15, select(DAYS)), option::weighted(0.15, select(DAYS)));
    let rules = (option::weighted(0.6, select(RULES)), option::weighted(0.05, select(RULES)));
    let recurrence = option::weighted(0.3, (select(DAYS), select(TIMES), any::<bool>()));
    (when, other, length(), rules, extra, recurrence, vec(alarm(), 0..2), texts()).prop_map(
        |(when, other, length, rules, extra, recurrence, alarms, texts)| {
            let (clock, day, time) = when;
            let mut lines = time_line("DTSTART", clock, day, time);
            if length.is_empty() && other.1 >= day {
                lines += &time_line("DTEND", other.0, other.1, other.2);
            }
            lines += &length;
            if let Some((day, time, following)) = recurrence {
                let name =
                    if following { "RECURRENCE-ID;RANGE=THISANDFUTURE" } else { "RECURRENCE-ID" };
                lines += &time_line(name, clock, day, time);
            } else {
                lines.extend(rules.0.map(|rule| format!("RRULE:{rule}\n")));
                lines.extend(rules.1.map(|rule| format!("EXRULE:{rule}\n")));
                lines.extend(extra.0.map(|day| time_line("RDATE", clock, day, other.2)));
                lines.extend(extra.1.map(|day| time_line("EXDATE", clock, day, time)));
            }
            lines + &texts + &alarms.concat()
        },
    )
}

/// Generates a component with one of a few UIDs.
pub(crate) fn random_component() -> impl Strategy<Value = String> {
    let uid =
        prop_oneof![1 => Just(String::new()), 9 => (0..6).prop_map(|n| format!("UID:u{n}\n"))];
    let without_time = texts();
    let kind = select(&["VEVENT", "VEVENT", "VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY"][..]);
    (kind, uid, prop_oneof![9 => body(), 1 => without_time]).prop_map(|(kind, uid, body)| {
        component(&format!("{kind}\n{uid}DTSTAMP:20260101T000000Z\n{body}"))
    })
}

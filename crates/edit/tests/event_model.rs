//! After random changes by scope, what happens is what a plain list says that was changed by hand;
//! the index is what a rebuilt one is; and undo gives the bytes back.

use crate::event::{Action, act, bytes, calendar, civil, occurrences};
use larder_edit::event::{Error, EventEdit, OccurrenceRef, OccurrenceSelector, RecurrenceScope};
use larder_time::civil::{CivilTime, DAY_SECONDS};
use larder_time::value::IcalDateTime;
use proptest::prelude::*;

/// An occurrence, as a person who keeps a list of them would write it down.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    uid: String,
    planned: i64,
    start: i64,
    summary: String,
    /// What its series says.
    series: String,
}

#[derive(Debug, Clone)]
struct Step {
    /// Of all that are left, which one.
    pick: usize,
    scope: RecurrenceScope,
    /// Seconds that it is moved; `None`: it is removed.
    shift: Option<i64>,
}

/// How a series is written, and when it happens.
#[derive(Debug, Clone)]
struct GeneratedSeries {
    lines: String,
    starts: Vec<i64>,
    days: bool,
}

fn generate_series() -> impl Strategy<Value = GeneratedSeries> {
    (0..5_usize, 1..4_i64, 2..9_i64, 0..3_usize).prop_map(|(rule, interval, count, form)| {
        // A Monday; there is no change of the clock for months.
        let first = civil("20260406T100000");
        let at = |day: i64| CivilTime::midnight(first.day_number() + day).saturating_add(10 * 3600);
        let (freq, days): (&str, Vec<i64>) = match rule {
            0 => ("DAILY", (0..count).map(|n| n * interval).collect()),
            1 => ("WEEKLY", (0..count).map(|n| n * 7 * interval).collect()),
            _ => ("WEEKLY;BYDAY=MO,SU", {
                let of = |n: i64| n / 2 * 7 * interval + if n % 2 == 1 { 6 } else { 0 };
                (0..count).map(of).collect()
            }),
        };
        let all_days = form == 2;
        let last = at(*days.last().unwrap());
        let end = match (rule % 2, form) {
            (0, _) => format!("COUNT={count}"),
            (_, 2) => {
                format!("UNTIL={}", IcalDateTime { civil: last, is_date: true, is_utc: false })
            }
            (_, 1) => format!("UNTIL={last}"),
            _ => format!("UNTIL={}Z", last.saturating_add(-2 * 3600)),
        };
        let start = match form {
            0 => "DTSTART;TZID=Europe/Prague:20260406T100000".to_string(),
            1 => "DTSTART:20260406T100000".to_string(),
            _ => "DTSTART;VALUE=DATE:20260406".to_string(),
        };
        let lines = format!("SUMMARY:0\n{start}\nRRULE:FREQ={freq};INTERVAL={interval};{end}");
        let clock = if all_days { -10 * 3600 } else { 0 };
        let starts = days.into_iter().map(|day| at(day).saturating_add(clock).seconds()).collect();
        GeneratedSeries { lines, starts, days: all_days }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let scope = prop_oneof![
        Just(RecurrenceScope::This),
        Just(RecurrenceScope::ThisAndFuture),
        Just(RecurrenceScope::All)
    ];
    let shift = prop_oneof![
        2 => Just(None),
        1 => Just(Some(0)),
        2 => (-2..3_i64).prop_map(|days| Some(days * DAY_SECONDS)),
        2 => (-3..4_i64).prop_map(|hours| Some(hours * 3600)),
    ];
    (any::<usize>(), scope, shift).prop_map(|(pick, scope, shift)| Step { pick, scope, shift })
}

/// Does a step to the list; gives what it is called.
fn by_hand(list: &mut Vec<Entry>, step: &Step, of: &Entry, name: &str) {
    let first = list.iter().filter(|one| one.uid == of.uid).map(|one| one.planned).min();
    let scope = if Some(of.planned) == first && step.scope == RecurrenceScope::ThisAndFuture {
        RecurrenceScope::All
    } else {
        step.scope
    };
    let hit = |one: &Entry| {
        one.uid == of.uid
            && match scope {
                RecurrenceScope::This => one.planned == of.planned,
                RecurrenceScope::ThisAndFuture => one.planned >= of.planned,
                RecurrenceScope::All => true,
            }
    };
    let Some(shift) = step.shift else {
        list.retain(|one| !hit(one));
        return;
    };
    for one in list.iter_mut().filter(|one| hit(one)) {
        if scope == RecurrenceScope::This {
            one.start += shift;
            one.summary = name.to_string();
            continue;
        }
        if scope == RecurrenceScope::ThisAndFuture {
            one.uid = name.to_string();
        }
        // The first of those that are meant, even if it was changed; others where they still say
        // what their series does.
        let named = step.scope == RecurrenceScope::ThisAndFuture && one.planned == of.planned;
        if named || one.summary == one.series {
            one.summary = name.to_string();
        }
        one.series = name.to_string();
        if named || one.start == one.planned {
            one.start += shift;
        }
        one.planned += shift;
    }
}

fn as_length(shift: i64) -> String {
    let sign = if shift < 0 { "-" } else { "+" };
    match shift.abs() {
        whole if whole % DAY_SECONDS == 0 => format!("{sign}{} days", whole / DAY_SECONDS),
        part => format!("{sign}{}h", part / 3600),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn what_happens_is_what_the_list_says(given in generate_series(), steps in proptest::collection::vec(step(), 1..6)) {
        let mut book = calendar(&[&given.lines]);
        let entry = |&start: &i64| Entry {
            uid: "u".into(), planned: start, start, summary: "0".into(), series: "0".into(),
        };
        let mut list: Vec<Entry> = given.starts.iter().map(entry).collect();
        let mut undo = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let Some(of) = list.get(step.pick % list.len().max(1)).cloned() else { break };
            let shift = step.shift.map(|shift| if given.days { shift / DAY_SECONDS * DAY_SECONDS } else { shift });
            let step = Step { shift, ..step.clone() };
            let name = format!("{}", number + 1);
            let action = match step.shift {
                None => Action::Remove,
                Some(shift) => {
                    let mut edit = EventEdit::default();
                    edit.set_field("summary", &name).unwrap();
                    edit.shift = (shift != 0).then(|| as_length(shift));
                    Action::Change(edit)
                }
            };
            let civil = CivilTime::from_seconds_clamped(of.planned);
            let at = if given.days { OccurrenceRef::Day(civil) } else { OccurrenceRef::RecurrenceId(IcalDateTime { civil, is_date: false, is_utc: false }) };
            let before = bytes(&book);
            let which = OccurrenceSelector { scope: Some(step.scope), occurrence: Some(at) };
            let done = act(&mut book, &of.uid, which, &action, &name);
            let done = done.map_err(|error| TestCaseError::fail(format!("{step:?} of {of:?}: {error}\n{before:?}")))?;
            by_hand(&mut list, &step, &of, &name);
            let day = if given.days { "day " } else { "" };
            let shown = |one: &Entry| format!("{day}{} {}", CivilTime::from_seconds_clamped(one.start), one.summary);
            let mut expect: Vec<String> = list.iter().map(shown).collect();
            expect.sort();
            prop_assert_eq!(occurrences(&book, "20250101", "20280101"), expect, "{:?} of {:?}\n{:?}\n{:?}", step, of, before, bytes(&book));
            prop_assert!(book.store.check().unwrap().faults.is_empty());
            undo.push((done.operation, before));
        }
        for (operation, before) in undo.into_iter().rev() {
            if let Some(operation) = operation {
                book.store.undo(operation, 0).unwrap();
            }
            prop_assert_eq!(bytes(&book), before);
        }
    }
}

/// Rules whose occurrences do not all move as far as their start, and the days until their end.
const UNEVEN_RULES: [(&str, i64); 9] = [
    ("MONTHLY", 300),
    ("MONTHLY;INTERVAL=2", 500),
    ("YEARLY", 2500),
    ("MONTHLY;BYMONTHDAY=28", 300),
    ("MONTHLY;BYDAY=-1FR", 300),
    ("DAILY;BYDAY=MO,TU,WE,TH,FR", 20),
    ("DAILY;BYMONTH=1,2", 20),
    ("WEEKLY;BYDAY=MO,WE", 50),
    ("WEEKLY;INTERVAL=2;BYDAY=MO,WE", 90),
];

/// Removes or changes an occurrence, named by its line in a list.
fn change_one(book: &mut crate::test_store::TestStore, line: &str, action: &Action) {
    let time = IcalDateTime::parse(line.split(' ').next().unwrap()).unwrap();
    let occurrence = Some(OccurrenceRef::RecurrenceId(time));
    let which = OccurrenceSelector { scope: Some(RecurrenceScope::This), occurrence };
    act(book, "u", which, action, "").unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    /// A moved series has as many occurrences as before, or is refused and stays.
    #[test]
    fn a_moved_series_has_as_many_occurrences(
        (rule, days) in proptest::sample::select(&UNEVEN_RULES[..]),
        is_counted in any::<bool>(),
        first in 0..7_i64,
        shift in prop_oneof![-3..0_i64, 1..4_i64],
        removed in any::<usize>(),
        changed in any::<usize>(),
    ) {
        let start = civil("20240126T090000").saturating_add(first * DAY_SECONDS);
        let end = match is_counted {
            true => "COUNT=6".to_string(),
            false => format!("UNTIL={}", start.saturating_add(days * DAY_SECONDS)),
        };
        let mut book = calendar(&[&format!("SUMMARY:0\nDTSTART:{start}\nRRULE:FREQ={rule};{end}")]);
        let all = |book: &_| occurrences(book, "20230101", "20400101");
        let mut planned = all(&book);
        prop_assert!(planned.len() > 2, "{planned:?}");
        let line = planned.remove(removed % planned.len());
        change_one(&mut book, &line, &Action::Remove);
        let mut edit = EventEdit { shift: Some("+1h".into()), ..EventEdit::default() };
        edit.set_field("summary", "1").unwrap();
        let line = planned.swap_remove(changed % planned.len());
        change_one(&mut book, &line, &Action::Change(edit));
        let (before, bytes_before) = (all(&book), bytes(&book));
        let edit = EventEdit { shift: Some(as_length(shift * DAY_SECONDS)), ..EventEdit::default() };
        let which = OccurrenceSelector { scope: Some(RecurrenceScope::All), occurrence: None };
        match act(&mut book, "u", which, &Action::Change(edit), "") {
            Ok(_) => {
                let after = all(&book);
                prop_assert_eq!(after.len(), before.len(), "{:?}\n{:?}\n{:?}", before, after, bytes_before);
            }
            Err(Error::NeedsRule | Error::CannotMove) => prop_assert_eq!(bytes(&book), bytes_before),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
}

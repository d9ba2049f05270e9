//! The properties of generated calendars that benchmarks rely on.
//!
//! The components are parsed by code of this file, not by Larder's parser, because the calendars
//! serve to measure it.

use larder_generate::{write_calendar, write_zone_definitions};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::io;

/// A sample in which a share of 2 % deviates by a few tenths at most.
const MANY: u64 = 20_000;

fn text(n: u64, seed: u64, events: bool) -> String {
    let mut bytes = Vec::new();
    write_calendar(n, seed, events, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn copies(n: u64, events: bool) -> String {
    let mut bytes = Vec::new();
    write_zone_definitions(n, 1, events, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Returns the name and the unfolded lines of each component of the calendar, without BEGIN and
/// END.
fn components(text: &str) -> Vec<(String, Vec<String>)> {
    let unfolded = text.replace("\r\n ", "");
    let mut lines = unfolded.split_terminator("\r\n").peekable();
    let mut all = Vec::new();
    assert_eq!(lines.next(), Some("BEGIN:VCALENDAR"));
    while lines.next_if(|line| !line.starts_with("BEGIN:") && *line != "END:VCALENDAR").is_some() {}
    loop {
        let first = lines.next().unwrap();
        if first == "END:VCALENDAR" {
            assert_eq!(lines.next(), None);
            return all;
        }
        let name = first.strip_prefix("BEGIN:").unwrap_or_else(|| panic!("{first}"));
        let end = format!("END:{name}");
        let inside = lines.by_ref().take_while(|line| *line != end).map(str::to_owned).collect();
        all.push((name.to_owned(), inside));
    }
}

/// Returns the lines of each component that is not a time zone.
fn items(text: &str) -> Vec<Vec<String>> {
    let items = components(text).into_iter().filter(|(name, _)| name != "VTIMEZONE");
    items.map(|(_, lines)| lines).collect()
}

/// Returns the parameters and the value of a property that occurs at most once.
fn property<'l>(lines: &'l [String], name: &str) -> Option<&'l str> {
    let rest = |line: &'l String| line.strip_prefix(name).filter(|it| it.starts_with([';', ':']));
    let without_alarm = lines.iter().take_while(|line| *line != "BEGIN:VALARM");
    let mut all = without_alarm.filter_map(rest);
    let first = all.next();
    assert!(all.next().is_none() || name == "EXDATE" || name == "ATTENDEE", "{name} in {lines:?}");
    first
}

fn value(rest: &str) -> &str {
    rest.rsplit(':').next().unwrap()
}

fn check_share(
    what: &str,
    items: &[Vec<String>],
    share: f64,
    slack: f64,
    holds: impl Fn(&[String]) -> bool,
) {
    let found = items.iter().filter(|item| holds(item)).count() as f64;
    let found = found * 100.0 / items.len() as f64;
    assert!((found - share).abs() <= slack, "{what}: {found:.2} %, expected {share} %");
}

#[test]
fn equal_arguments_give_equal_bytes() {
    assert!(text(500, 7, false) == text(500, 7, false));
    assert!(text(500, 7, false) != text(500, 8, false));
    assert!(components(&text(0, 7, false)).iter().all(|(name, _)| name == "VTIMEZONE"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_smaller_calendar_is_a_prefix_of_a_larger_one(seed: u64, small in 0_u64..60, more in 0_u64..60) {
        let smaller = text(small, seed, false);
        let begins = smaller.strip_suffix("END:VCALENDAR\r\n").unwrap();
        prop_assert!(text(small + more, seed, false).starts_with(begins));
    }

    #[test]
    fn any_seed_gives_complete_components(seed: u64, n in 0_u64..60, events: bool) {
        let text = text(n, seed, events);
        let all = components(&text);
        let items = all.iter().filter(|(name, _)| name != "VTIMEZONE").count() as u64;
        prop_assert_eq!(items, n);
        prop_assert!(!events || all.iter().all(|(name, _)| name == "VTIMEZONE" || name == "VEVENT"));
    }
}

#[test]
fn the_mix_is_as_documented() {
    let text = text(MANY, 1, false);
    let all = components(&text);
    for (kind, share) in [("VEVENT", 92.0), ("VTODO", 6.0), ("VJOURNAL", 2.0)] {
        let found = all.iter().filter(|(name, _)| name == kind).count() as f64 / MANY as f64;
        assert!((found * 100.0 - share).abs() < 0.6, "{kind}: {found}");
    }
    let items = items(&text);
    let has = |name: &'static str| move |item: &[String]| property(item, name).is_some();
    let start = |item: &[String]| {
        let start = property(item, "DTSTART").or(property(item, "DUE")).unwrap();
        start.to_owned()
    };
    check_share("recurring", &items, 20.0, 0.8, has("RRULE"));
    check_share("endless", &items, 2.0, 0.4, |item| {
        property(item, "RRULE").is_some_and(|it| !it.contains("COUNT=") && !it.contains("UNTIL="))
    });
    check_share("detached", &items, 3.0, 0.4, has("RECURRENCE-ID"));
    check_share("exceptions", &items, 3.0, 0.5, has("EXDATE"));
    check_share("whole days", &items, 15.0, 1.0, |item| start(item).starts_with(";VALUE=DATE:"));
    check_share("zoned", &items, 68.0, 2.0, |item| start(item).starts_with(";TZID="));
    check_share("UTC", &items, 14.5, 1.0, |item| start(item).ends_with('Z'));
    check_share("alarm", &items, 30.0, 1.0, |item| item.iter().any(|it| it == "BEGIN:VALARM"));
    check_share("attendees", &items, 25.0, 1.0, has("ATTENDEE"));
    check_share("location", &items, 49.0, 1.5, has("LOCATION"));
    check_share("description", &items, 39.0, 1.5, has("DESCRIPTION"));
    check_share("categories", &items, 26.0, 1.5, has("CATEGORIES"));
    check_share("extension", &items, 74.0, 2.0, |item| item.iter().any(|it| it.starts_with("X-")));
    for year in 2017..=2026 {
        let year = format!(":{year}");
        check_share(&year, &items, 10.0, 0.8, |item| start(item).contains(&year));
    }
    let mean = text.len() as u64 / MANY;
    assert!((570..=630).contains(&mean), "a component has {mean} bytes");
}

#[test]
fn every_component_has_the_common_properties() {
    for item in items(&text(3_000, 2, false)) {
        for name in ["UID", "DTSTAMP", "SEQUENCE", "SUMMARY", "CLASS", "CREATED", "LAST-MODIFIED"] {
            assert!(property(&item, name).is_some(), "no {name} in {item:?}");
        }
        let stamp = |name| value(property(&item, name).unwrap()).to_owned();
        assert!(stamp("CREATED") <= stamp("LAST-MODIFIED"), "{item:?}");
        assert!(property(&item, "DTEND").is_none() || property(&item, "DURATION").is_none());
        assert_eq!(property(&item, "ORGANIZER").is_some(), property(&item, "ATTENDEE").is_some());
        if let (Some(from), Some(to)) = (property(&item, "DTSTART"), property(&item, "DTEND")) {
            assert!(value(from) < value(to), "{item:?}");
        }
    }
}

#[test]
fn lines_are_valid() {
    for line in text(3_000, 3, false).split_inclusive('\n') {
        let line = line.strip_suffix("\r\n").unwrap_or_else(|| panic!("{line:?}"));
        assert!(!line.contains(['\r', '\n', '\t']) && line.len() <= 75, "{line:?}");
        assert!(!line.is_empty() && line != " ");
    }
}

#[test]
fn series_last_about_ten_weeks() {
    let text = text(MANY, 4, false);
    let counts = |item: &Vec<String>| {
        let rule =
            property(item, "RRULE").filter(|rule| rule.starts_with(":FREQ=WEEKLY;BYDAY="))?;
        let (days, count) = rule.rsplit_once(";COUNT=")?;
        (days.len() == ":FREQ=WEEKLY;BYDAY=MO".len()).then(|| count.parse::<u64>().unwrap())
    };
    let mut counts: Vec<u64> = items(&text).iter().filter_map(counts).collect();
    counts.sort_unstable();
    assert!((9..=11).contains(&counts[counts.len() / 2]), "{}", counts[counts.len() / 2]);
    assert!(counts[0] >= 3);
    for frequency in ["DAILY", "WEEKLY;INTERVAL=2", "MONTHLY;BYMONTHDAY", "MONTHLY;BYDAY", "YEARLY"]
    {
        assert!(text.contains(&format!("\r\nRRULE:FREQ={frequency}")), "{frequency}");
    }
}

/// An override follows its master, has the same form of times, and overrides an occurrence that no
/// other override or exception names.
#[test]
fn overrides_match_their_master() {
    let items = items(&text(MANY, 5, false));
    let (mut masters, mut overridden) = (HashMap::new(), HashSet::new());
    let mut moved = 0;
    for item in &items {
        let uid = property(item, "UID").unwrap();
        let Some(recurrence_id) = property(item, "RECURRENCE-ID") else {
            assert!(masters.insert(uid, item).is_none(), "{uid} twice");
            continue;
        };
        let master = masters.get(uid).unwrap_or_else(|| panic!("no master of {item:?}"));
        assert!(overridden.insert((uid, recurrence_id)), "{item:?} twice");
        let start = property(master, "DTSTART").unwrap();
        assert_eq!(recurrence_id.split(':').next(), start.split(':').next());
        assert!(value(recurrence_id) > value(start), "{master:?} {item:?}");
        assert!(!master.contains(&format!("EXDATE{recurrence_id}")), "{master:?}");
        let time = |value: &str| value.split_once('T').map(|(_, time)| time.to_owned());
        assert_eq!(time(value(recurrence_id)), time(value(start)), "{master:?} {item:?}");
        moved += usize::from(property(item, "DTSTART") != Some(recurrence_id));
    }
    let all = overridden.len();
    assert!(moved * 10 > all * 7 && moved < all, "{moved} of {all}");
}

#[test]
fn zones_are_defined_once_before_their_use() {
    let all = components(&text(2_000, 6, false));
    let mut defined = HashSet::new();
    for (name, lines) in &all {
        if name == "VTIMEZONE" {
            assert!(defined.insert(lines[0].strip_prefix("TZID:").unwrap()));
        }
        for line in lines.iter().filter(|line| line.contains(";TZID=")) {
            let id = line.split_once(";TZID=").unwrap().1.split_once(':').unwrap().0;
            assert!(defined.contains(id), "{line}");
        }
    }
    assert_eq!(defined.len(), 4);
}

#[test]
fn copies_define_few_zones() {
    for (n, algiers) in [(0, 0), (538, 318), (814, 481)] {
        let all = components(&copies(n, false));
        assert_eq!(all.len() as u64, n);
        assert!(all.iter().all(|(name, _)| name == "VTIMEZONE"));
        let first = "TZID:/softwarestudio.org/Olson_20011030_5/Africa/Algiers";
        assert_eq!(all.iter().filter(|(_, lines)| lines[0] == first).count(), algiers);
        let distinct: HashSet<_> = all.iter().collect();
        assert!(distinct.len() <= 6, "{} zones", distinct.len());
    }
    let both = components(&copies(538, true));
    assert_eq!(both.len(), 2 * 538);
    for pair in both.chunks(2) {
        let id = pair[0].1[0].strip_prefix("TZID:").unwrap();
        let start = property(&pair[1].1, "DTSTART").unwrap();
        assert!(start.starts_with(&format!(";TZID={id}:")), "{start}");
    }
}

/// A writer that fails after a number of bytes.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn errors_of_the_writer_are_returned() {
    for room in [0, 100_000] {
        let error = write_calendar(1_000, 1, false, &mut Full(room)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

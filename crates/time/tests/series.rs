//! Series: a table of known implementation traps, and the windows of a series compared with all its
//! occurrences.

use crate::zone::{civil, utc, zone};
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::rule::{Rule, StepBudget};
use larder_time::series::{
    CalendarDateTime, EventLength, Occurrence, Override, OverrideMode, Rdate, Series, SeriesSpec,
    SeriesWarning, ZoneReference,
};
use larder_time::value::{IcalDateTime, IcalDuration, Period};
use larder_time::zone::Zone;

/// Returns a zone reference: `Z`, `-` for floating, or the name of a zone.
pub(crate) fn clock(name: &str) -> ZoneReference {
    match name {
        "Z" => ZoneReference::Utc,
        "-" => ZoneReference::Floating,
        name => ZoneReference::Zone(zone(name)),
    }
}

/// Parses a date, or a date-time in a zone; a final `Z` means UTC.
fn start(text: &str, zone: &ZoneReference) -> CalendarDateTime {
    let stamp = IcalDateTime::parse(text).expect("a date or a date-time");
    match stamp {
        IcalDateTime { is_date: true, .. } => CalendarDateTime::from_date(stamp.civil),
        IcalDateTime { is_utc: true, .. } => {
            CalendarDateTime::from_civil(stamp.civil, ZoneReference::Utc)
        }
        IcalDateTime { .. } => CalendarDateTime::from_civil(stamp.civil, zone.clone()),
    }
}

/// Parses the description of an item, one line each: `@zone`, `START text`, `LENGTH
/// seconds|duration`, `RRULE`, `EXRULE`, `RDATE`, `EXDATE` and `CHANGE original [start] [+]
/// [length]`. The tags of overrides begin at 1.
pub(crate) fn parse_description(text: &str) -> SeriesSpec {
    let mut zone_reference = ZoneReference::Utc;
    let mut description =
        SeriesSpec::without_recurrence(start("19700101", &zone_reference), EventLength::ZERO);
    let length = |text: &str| match text.parse::<i64>() {
        Ok(seconds) => EventLength::Exact(seconds),
        Err(_) => EventLength::Nominal(IcalDuration::parse(text).expect("a duration")),
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix('@') {
            zone_reference = clock(name);
            continue;
        }
        let (name, value) = line.split_once(' ').expect("a name and a value");
        match name {
            "START" => description.start = start(value, &zone_reference),
            "LENGTH" => description.length = length(value),
            "RRULE" => description.rules.push(Rule::parse(value).expect("a rule")),
            "EXRULE" => description.exrules.push(Rule::parse(value).expect("a rule")),
            "EXDATE" => {
                description.exdates.extend(value.split(',').map(|at| start(at, &zone_reference)));
            }
            "RDATE" => {
                let extra = |at: &str| match at.split_once('/') {
                    Some((begin, _)) => Rdate {
                        start: start(begin, &zone_reference),
                        length: Some(Period::parse(at).expect("a period").length()),
                    },
                    None => Rdate { start: start(at, &zone_reference), length: None },
                };
                description.rdates.extend(value.split(',').map(extra));
            }
            "CHANGE" => {
                let words: Vec<&str> = value.split(' ').collect();
                let tag = description.overrides.len() as u64 + 1;
                let is_stamp = |word: &&&str| IcalDateTime::parse(word).is_ok() && word.len() >= 8;
                let is_length = |word: &&&str| !is_stamp(word) && **word != "+";
                description.overrides.push(Override {
                    original: start(words[0], &zone_reference),
                    is_this_and_future: words.contains(&"+"),
                    start: words[1..].iter().find(is_stamp).map(|at| start(at, &zone_reference)),
                    length: words[1..].iter().find(is_length).map(|text| length(text)),
                    tag,
                });
            }
            other => panic!("{other}"),
        }
    }
    description
}

fn compile_series(text: &str) -> Series {
    Series::new(&parse_description(text), StepBudget::default()).0
}

/// Formats an occurrence as `start+length` in UTC, lengths in seconds, with `#tag` for an override
/// and `*` for one that is an item of its own.
fn format_occurrence(one: &Occurrence) -> String {
    let start = CivilTime::from_seconds_clamped(one.start.seconds()).to_string();
    let start = start.strip_suffix("00").filter(|_| start.len() == 15).unwrap_or(&start);
    let start = start.strip_suffix("T0000").unwrap_or(start);
    let length = one.end.seconds() - one.start.seconds();
    let length = if length == 0 { String::new() } else { format!("+{length}") };
    let tag = one.tag.map_or_else(String::new, |tag| format!("#{tag}"));
    format!("{start}{length}{tag}{}", if one.is_override { "*" } else { "" })
}

fn window(series: &Series, from: &str, to: &str, local: &str, detached: OverrideMode) -> String {
    let local = zone(local);
    let budget = StepBudget::default();
    let mut found = series.occurrences(utc(from), utc(to), &local, detached, budget);
    let text: Vec<String> = found.by_ref().map(|one| format_occurrence(&one)).collect();
    assert!(!found.is_exhausted());
    text.join(" ")
}

/// Compares all occurrences from 1900 to 2100, overrides included, in UTC.
fn check(text: &str, expected: &str) {
    let series = compile_series(text);
    let found = window(&series, "19000101", "21000101", "UTC", OverrideMode::Include);
    assert_eq!(found, expected, "{text}");
    let back = Series::from_bytes(&series.to_bytes(7), &mut |number| {
        assert_eq!(number, 7);
        series.zone_reference().clone()
    });
    assert_eq!(back.as_ref(), Some(&series), "{text}");
}

/// The start and the dates of a series need no rule: they are found even if the budget is spent in
/// search of an occurrence of a rule.
#[test]
fn the_start_is_found_beside_a_rule_that_exhausts_the_budget() {
    // Fifteen-digit intervals of steps that meet a Wednesday in centuries.
    let series = compile_series(
        "START 20260310T140000Z\nRRULE FREQ=SECONDLY;INTERVAL=604801;BYDAY=WE;BYHOUR=9;BYMONTH=2;BYMONTHDAY=29;BYSECOND=59\nRDATE 20260401T100000Z\nCHANGE 20260401T100000Z 20260402T110000Z",
    );
    let local = Zone::UTC;
    let budget = StepBudget::new(100);
    for (from, to, expected) in [
        ("20260310", "20260311", "20260310T1400"),
        ("20260101", "20270101", "20260310T1400 20260402T1100#1*"),
        ("20260402", "20260403", "20260402T1100#1*"),
    ] {
        let mut found =
            series.occurrences(utc(from), utc(to), &local, OverrideMode::Include, budget);
        let text: Vec<String> = found.by_ref().map(|one| format_occurrence(&one)).collect();
        assert_eq!(text.join(" "), expected, "{from} to {to}");
    }
    check("START 20260310T140000Z\nRRULE FREQ=HOURLY;INTERVAL=2;BYHOUR=9", "20260310T1400");
    check("START 20260310T140000Z\nRRULE FREQ=HOURLY;INTERVAL=2;BYHOUR=9;COUNT=3", "20260310T1400");
}

#[test]
fn the_start_is_the_first_occurrence() {
    check("START 20260101T090000Z", "20260101T0900");
    // The start does not match the rule, and counts as one of COUNT.
    check(
        "START 20260101T090000Z\nRRULE FREQ=WEEKLY;BYDAY=MO;COUNT=3",
        "20260101T0900 20260105T0900 20260112T0900",
    );
    check(
        "START 20260105T090000Z\nRRULE FREQ=WEEKLY;BYDAY=MO;COUNT=3",
        "20260105T0900 20260112T0900 20260119T0900",
    );
    check("START 20260101T090000Z\nRRULE FREQ=WEEKLY;BYDAY=MO;COUNT=1", "20260101T0900");
    // UNTIL before the start: the rule is empty, the start remains.
    check("START 20260101T090000Z\nRRULE FREQ=DAILY;UNTIL=20251201T000000Z", "20260101T0900");
    let (_, troubles) = Series::new(
        &parse_description("START 20260101T090000Z\nRRULE FREQ=DAILY;UNTIL=20251201T000000Z"),
        StepBudget::default(),
    );
    assert_eq!(troubles, [SeriesWarning::NoOccurrence(0)]);
    // Several rules, each with its own count.
    check(
        "START 20260101T090000Z\nRRULE FREQ=DAILY;COUNT=2\nRRULE FREQ=DAILY;INTERVAL=2;COUNT=3",
        "20260101T0900 20260102T0900 20260103T0900 20260105T0900",
    );
    check(
        "START 20260101T090000Z\nRRULE FREQ=DAILY;COUNT=9;UNTIL=20260102T090000Z",
        "20260101T0900 20260102T0900",
    );
}

#[test]
fn until_is_compared_in_every_form() {
    // A date with a timed start: UNTIL is the end of that local day.
    check(
        "@America/New_York\nSTART 20260101T210000\nRRULE FREQ=DAILY;UNTIL=20260102",
        "20260102T0200 20260103T0200",
    );
    // A date-time with a date: the dates are compared.
    check("START 20260101\nRRULE FREQ=DAILY;UNTIL=20260102T000000Z", "20260101 20260102");
    // UTC with a zone: the instants are compared.
    check(
        "@America/New_York\nSTART 20260101T210000\nRRULE FREQ=DAILY;UNTIL=20260102T020000Z",
        "20260102T0200",
    );
    check(
        "@America/New_York\nSTART 20260101T210000\nRRULE FREQ=DAILY;UNTIL=20260103T015959Z",
        "20260102T0200",
    );
    // A local time with a zone is in the zone of the start.
    check(
        "@America/New_York\nSTART 20260101T210000\nRRULE FREQ=DAILY;UNTIL=20260102T210000",
        "20260102T0200 20260103T0200",
    );
    // UTC with a floating start: compared as local time.
    check(
        "@-\nSTART 20260101T090000\nRRULE FREQ=DAILY;UNTIL=20260102T090000Z",
        "20260101T0900 20260102T0900",
    );
    // In the second pass of a repeated hour, all of the first pass is over.
    check(
        "@Europe/Berlin\nSTART 20261024T025000\nRRULE FREQ=DAILY;UNTIL=20261025T011500Z",
        "20261024T0050 20261025T0050",
    );
    check(
        "@Europe/Berlin\nSTART 20261024T025000\nRRULE FREQ=DAILY;UNTIL=20261025T003000Z",
        "20261024T0050",
    );
}

#[test]
fn exceptions_and_additions_apply() {
    let daily = |rest: &str| {
        format!("@Europe/Berlin\nSTART 20260101T090000\nRRULE FREQ=DAILY;COUNT=3\n{rest}")
    };
    let check = |rest: &str, expected: &str| check(&daily(rest), expected);
    check("EXDATE 20260102T090000", "20260101T0800 20260103T0800");
    // By instant, in any zone.
    check("EXDATE 20260102T080000Z", "20260101T0800 20260103T0800");
    check("@Asia/Tokyo\nEXDATE 20260102T170000", "20260101T0800 20260103T0800");
    check("@-\nEXDATE 20260102T090000", "20260101T0800 20260103T0800");
    check("EXDATE 20260102T100000", "20260101T0800 20260102T0800 20260103T0800");
    // A date removes all of that local day, and the start can be removed; COUNT stays.
    check("EXDATE 20260101,20260102", "20260103T0800");
    check("EXRULE FREQ=DAILY;INTERVAL=2", "20260102T0800");
    check("EXRULE FREQ=DAILY;COUNT=1", "20260102T0800 20260103T0800");
    check("EXRULE FREQ=DAILY;UNTIL=20260102", "20260103T0800");
    // Added occurrences do not count for COUNT; two at the same instant are one; a date takes the
    // time of the start.
    check(
        "RDATE 20260110T090000,20260102T080000Z",
        "20260101T0800 20260102T0800 20260103T0800 20260110T0800",
    );
    check("RDATE 20260110", "20260101T0800 20260102T0800 20260103T0800 20260110T0800");
    check("RDATE 20251230T090000", "20251230T0800 20260101T0800 20260102T0800 20260103T0800");
    // A period has its own length, even where the rule has the same occurrence.
    check(
        "RDATE 20260110T090000/PT2H,20260102T090000/20260102T093000",
        "20260101T0800 20260102T0800+1800 20260103T0800 20260110T0800+7200",
    );
    check("RDATE 20260110T090000\nEXDATE 20260110", "20260101T0800 20260102T0800 20260103T0800");
}

#[test]
fn exact_and_nominal_lengths_differ_across_transitions() {
    let check = |length: &str, expected: &str| {
        check(
            &format!(
                "@Europe/Berlin\nSTART 20260328T120000\nLENGTH {length}\nRRULE FREQ=DAILY;COUNT=2"
            ),
            expected,
        );
    };
    // With DTEND the length is exact. With DURATION a day is a calendar day.
    check("86400", "20260328T1100+86400 20260329T1000+86400");
    check("P1D", "20260328T1100+82800 20260329T1000+86400");
    check("PT24H", "20260328T1100+86400 20260329T1000+86400");
    check("P1DT1H", "20260328T1100+86400 20260329T1000+90000");
    check("-PT1H", "20260328T1100 20260329T1000");
}

#[test]
fn occurrences_in_gaps_and_folds_are_resolved() {
    // A time in a gap is moved and counted; 30 February is neither.
    check(
        "@Europe/Berlin\nSTART 20260328T023000\nRRULE FREQ=DAILY;COUNT=3",
        "20260328T0130 20260329T0130 20260330T0030",
    );
    check(
        "@Europe/Berlin\nSTART 20261024T023000\nRRULE FREQ=DAILY;COUNT=3",
        "20261024T0030 20261025T0030 20261026T0130",
    );
    // Two occurrences at one instant are one: 02:30 is moved to 03:30, which also matches.
    check(
        "@Europe/Berlin\nSTART 20260329T013000\nRRULE FREQ=HOURLY;COUNT=4",
        "20260329T0030 20260329T0130 20260329T0230",
    );
    // An exception removes the moved occurrence, in either form.
    check(
        "@Europe/Berlin\nSTART 20260328T023000\nRRULE FREQ=DAILY;COUNT=3\nEXDATE 20260329T013000Z",
        "20260328T0130 20260330T0030",
    );
    check(
        "@Europe/Berlin\nSTART 20260328T023000\nRRULE FREQ=DAILY;COUNT=3\nEXDATE 20260329T023000",
        "20260328T0130 20260330T0030",
    );
    // A day that a zone skipped.
    check(
        "@Pacific/Apia\nSTART 20111229T120000\nRRULE FREQ=DAILY;COUNT=3",
        "20111229T2200 20111230T2200",
    );
}

#[test]
fn dates_and_floating_times_use_the_zone_of_the_reader() {
    let series = compile_series("START 20260328\nLENGTH P1D\nRRULE FREQ=DAILY;COUNT=2");
    let ask = |from, to, local| window(&series, from, to, local, OverrideMode::Exclude);
    assert_eq!(
        ask("20260101", "20270101", "Europe/Berlin"),
        "20260327T2300+86400 20260328T2300+82800"
    );
    assert_eq!(
        ask("20260101", "20270101", "America/New_York"),
        "20260328T0400+86400 20260329T0400+86400"
    );
    // The end is exclusive.
    assert_eq!(ask("20260330", "20260401", "UTC"), "");
    assert_eq!(ask("20260329T235959", "20260401", "UTC"), "20260329+86400");
    let series = compile_series("@-\nSTART 20260328T090000\nLENGTH 3600");
    let ask = |local| window(&series, "20260101", "20270101", local, OverrideMode::Exclude);
    assert_eq!(ask("Europe/Berlin"), "20260328T0800+3600");
    assert_eq!(ask("Asia/Tokyo"), "20260328+3600");
    // Dates ignore times of day, and several hours of one day are one occurrence.
    check("START 20260101\nRRULE FREQ=DAILY;BYHOUR=9,17;COUNT=2", "20260101 20260102");
    check("START 20260101\nRRULE FREQ=HOURLY;INTERVAL=12;COUNT=4", "20260101 20260102");
    // Dates for a timed series, and date-times for a series of dates.
    check("START 20260101\nRRULE FREQ=DAILY;COUNT=3\nEXDATE 20260102T120000Z", "20260101 20260103");
    check("START 20260101\nRDATE 20260105T120000Z", "20260101 20260105");
}

#[test]
fn windows_are_half_open() {
    let series = compile_series("START 20260101T090000Z\nLENGTH 3600");
    let ask = |from, to| !window(&series, from, to, "UTC", OverrideMode::Exclude).is_empty();
    assert!(ask("20260101T0900", "20260101T1000"));
    assert!(ask("20260101T0959", "20260101T1100"));
    assert!(!ask("20260101T1000", "20260101T1100"));
    assert!(!ask("20260101T0800", "20260101T0900"));
    assert!(!ask("20260101T0930", "20260101T0930"));
    let moment = compile_series("START 20260101T090000Z");
    let ask = |from, to| !window(&moment, from, to, "UTC", OverrideMode::Exclude).is_empty();
    assert!(ask("20260101T0900", "20260101T0901"));
    assert!(!ask("20260101T0800", "20260101T0900"));
    assert!(!ask("20260101T0901", "20260101T1000"));
}

#[test]
fn overrides_replace_occurrences() {
    let weekly = |rest: &str| {
        format!(
            "@Europe/Berlin\nSTART 20260105T090000\nLENGTH 3600\nRRULE FREQ=WEEKLY;COUNT=4\n{rest}"
        )
    };
    let check = |rest: &str, expected: &str| check(&weekly(rest), expected);
    check(
        "CHANGE 20260112T090000 20260113T100000",
        "20260105T0800+3600 20260113T0900+3600#1* 20260119T0800+3600 20260126T0800+3600",
    );
    // By instant: UTC, another zone, a date.
    check(
        "CHANGE 20260112T080000Z 1800",
        "20260105T0800+3600 20260112T0800+1800#1* 20260119T0800+3600 20260126T0800+3600",
    );
    check(
        "@Asia/Tokyo\nCHANGE 20260112T170000 1800",
        "20260105T0800+3600 20260112T0800+1800#1* 20260119T0800+3600 20260126T0800+3600",
    );
    check(
        "CHANGE 20260112 1800",
        "20260105T0800+3600 20260112T0800+1800#1* 20260119T0800+3600 20260126T0800+3600",
    );
    // An override of a time that is not an occurrence is kept.
    check(
        "CHANGE 20260113T090000 1800",
        "20260105T0800+3600 20260112T0800+3600 20260113T0800+1800#1* 20260119T0800+3600 20260126T0800+3600",
    );
    // Moved before the start and after the end.
    check(
        "CHANGE 20260112T090000 20250101T090000\nCHANGE 20260119T090000 20270101T090000",
        "20250101T0800+3600#1* 20260105T0800+3600 20260126T0800+3600 20270101T0800+3600#2*",
    );
    // THISANDFUTURE shifts all later occurrences, with its length; their own overrides still win.
    check(
        "CHANGE 20260112T090000 20260112T110000 + 1800",
        "20260105T0800+3600 20260112T1000+1800#1* 20260119T1000+1800#1 20260126T1000+1800#1",
    );
    check(
        "CHANGE 20260112T090000 20260113T090000 +\nCHANGE 20260119T090000 20260119T120000",
        "20260105T0800+3600 20260113T0800+3600#1* 20260119T1100+3600#2* 20260127T0800+3600#1",
    );
    check(
        "CHANGE 20260112T090000 20260112T100000 +\nCHANGE 20260126T090000 20260126T060000 +",
        "20260105T0800+3600 20260112T0900+3600#1* 20260119T0900+3600#1 20260126T0500+3600#2*",
    );
    // The shift keeps local time.
    super::series::check(
        "@Europe/Berlin\nSTART 20260327T090000\nRRULE FREQ=DAILY;COUNT=4\nCHANGE 20260328T090000 20260328T100000 +",
        "20260327T0800 20260328T0900#1* 20260329T0800#1 20260330T0800#1",
    );
    // Overrides that are items of their own are left out; the occurrences that follow them are not.
    let series = compile_series(&weekly("CHANGE 20260112T090000 20260112T110000 +"));
    let found = window(&series, "20260101", "20270101", "UTC", OverrideMode::Exclude);
    assert_eq!(found, "20260105T0800+3600 20260119T1000+3600#1 20260126T1000+3600#1");
    // A timed override of a series of dates, and a date as an override of a timed series.
    super::series::check(
        "START 20260101\nLENGTH P1D\nRRULE FREQ=DAILY;COUNT=2\nCHANGE 20260102 20260102T150000Z 3600",
        "20260101+86400 20260102T1500+3600#1*",
    );
    super::series::check(
        "START 20260101T090000Z\nRRULE FREQ=DAILY;COUNT=2\nCHANGE 20260102T090000Z 20260105 P1D",
        "20260101T0900 20260105+86400#1*",
    );
}

#[test]
fn spans_cover_all_occurrences() {
    let check = |text: &str, fixed: bool, first: &str, end: Option<&str>| {
        let span = compile_series(text).span();
        let seconds = |text: &str| civil(text).seconds();
        assert_eq!(
            (span.is_utc, span.first, span.end),
            (fixed, seconds(first), end.map(seconds)),
            "{text}"
        );
    };
    check("START 20260101T090000Z\nLENGTH 3600", true, "20260101T0900", Some("20260101T1000"));
    check(
        "@Europe/Berlin\nSTART 20260101T090000\nLENGTH PT1H\nRRULE FREQ=DAILY;COUNT=200",
        true,
        "20260101T0800",
        Some("20260719T0800"),
    );
    check(
        "START 20260101\nLENGTH P1D\nRRULE FREQ=MONTHLY;UNTIL=20260320",
        false,
        "20260101",
        Some("20260302"),
    );
    check("@-\nSTART 20260101T090000\nRRULE FREQ=DAILY", false, "20260101T0900", None);
    check(
        "START 20260101T090000Z\nRDATE 20250101T090000Z,20270101T090000Z/P1D",
        true,
        "20250101T0900",
        Some("20270102T0900"),
    );
    check(
        "START 20260105T090000Z\nRRULE FREQ=WEEKLY;COUNT=2\nCHANGE 20260105T090000Z 20260106T090000Z +",
        true,
        "20260105T0900",
        Some("20260113T0900"),
    );
    check(
        "START 20260101T090000Z\nRRULE FREQ=DAILY;UNTIL=20251201T000000Z",
        true,
        "20260101T0900",
        Some("20260101T0900"),
    );
}

#[test]
fn the_next_occurrence_is_found() {
    let next = |text: &str, after: &str| {
        let series = compile_series(text);
        let (after, budget) = (utc(after), StepBudget::default());
        let mut found =
            series.occurrences(after, Instant::MAX, &Zone::UTC, OverrideMode::Include, budget);
        let next = found.find(|one| one.start > after);
        assert!(!found.is_exhausted(), "{text}");
        next.map_or_else(|| "-".to_string(), |one| format_occurrence(&one))
    };
    let daily = "START 20260101T090000Z\nLENGTH P30D\nRRULE FREQ=DAILY";
    assert_eq!(next(daily, "20260110T0900"), "20260111T0900+2592000");
    assert_eq!(next(daily, "19000101"), "20260101T0900+2592000");
    assert_eq!(next(daily, "99980110T0900"), "99980111T0900+2592000");
    assert_eq!(next("START 20260101T090000Z\nRRULE FREQ=SECONDLY", "20500101"), "20500101T000001");
    assert_eq!(
        next(
            "START 20240229T090000Z\nRRULE FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=TH",
            "20240229T0900"
        ),
        "20520229T0900"
    );
    assert_eq!(
        next("START 20260101T090000Z\nRRULE FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "20260101T0900"),
        "-"
    );
    assert_eq!(next("START 20260101T090000Z\nRRULE FREQ=DAILY;COUNT=3", "20260103T0900"), "-");
    assert_eq!(
        next("START 20260101T090000Z\nRDATE 20700101T090000Z", "20260101T0900"),
        "20700101T0900"
    );
    assert_eq!(
        next("START 20260101T090000Z\nCHANGE 20260101T090000Z 20800101T090000Z", "20260101T0900"),
        "20800101T0900#1*"
    );
    assert_eq!(
        next(
            "START 20260101T090000Z\nRRULE FREQ=DAILY;COUNT=3\nEXDATE 20260102,20260103",
            "20260101T0900"
        ),
        "-"
    );
}

#[test]
fn gaps_and_exceptions_bound_a_series() {
    let gap = |text: &str| compile_series(text).max_gap_seconds();
    assert_eq!(gap("START 20260105T090000Z\nRRULE FREQ=WEEKLY"), Some(7 * DAY_SECONDS));
    assert_eq!(gap("START 20260105T090000Z\nRRULE FREQ=WEEKLY\nRDATE 20270112T090000Z"), None);
    let tail = |text: &str| compile_series(text).complete_after();
    let excluded = utc("20260112T090000Z").seconds();
    assert_eq!(tail("START 20260105T090000Z\nRRULE FREQ=WEEKLY"), Some(i64::MIN));
    let text = "START 20260105T090000Z\nRRULE FREQ=WEEKLY\nEXDATE 20260112T090000Z";
    assert_eq!(tail(text), Some(excluded + DAY_SECONDS));
    assert_eq!(tail("START 20260105T090000Z\nRRULE FREQ=WEEKLY\nEXRULE FREQ=YEARLY"), None);
    let weekly = |text: &str| compile_series(text).is_gapless_weekly();
    assert!(weekly("START 20260105T090000Z\nRRULE FREQ=WEEKLY;BYDAY=MO,FR"));
    assert!(!weekly("START 20260105T090000Z\nRRULE FREQ=WEEKLY;INTERVAL=2"));
    assert!(!weekly("START 20260106T090000Z\nRRULE FREQ=WEEKLY;BYDAY=MO"));
}

#[test]
fn hostile_series_are_bounded_and_reported() {
    let text = "START 20260101T090000Z\nRRULE FREQ=SECONDLY";
    let series = compile_series(text);
    let ask = |steps| {
        let mut found = series.occurrences(
            utc("20300101"),
            utc("20310101"),
            &Zone::UTC,
            OverrideMode::Exclude,
            StepBudget::new(steps),
        );
        let count = found.by_ref().count();
        (count, found.is_exhausted(), found.spent_steps())
    };
    let (count, exhausted, steps) = ask(10_000);
    assert!(exhausted && count < 10_000 && steps <= 10_000, "{count} in {steps} steps");
    // The first occurrences of a long window do not wait for the last.
    let mut found = series.occurrences(
        utc("20300101"),
        utc("20310101"),
        &Zone::UTC,
        OverrideMode::Exclude,
        StepBudget::default(),
    );
    assert_eq!(found.next().map(|one| one.start), Some(utc("20300101")));
    assert!(found.spent_steps() < 8_000, "{} steps", found.spent_steps());
    let (uncounted, troubles) = Series::new(
        &parse_description("START 20260101T090000Z\nRRULE FREQ=DAILY;BYDAY=MO;COUNT=1000000000"),
        StepBudget::new(1000),
    );
    assert_eq!(troubles, [SeriesWarning::UnknownEnd(0)]);
    for (from, certain) in [("20250101", true), ("20260101", false), ("90000101", false)] {
        let (from, to) = (utc(from), utc(from).saturating_add(30 * DAY_SECONDS));
        let budget = StepBudget::default();
        let back = Series::from_bytes(&uncounted.to_bytes(0), &mut |_| ZoneReference::Utc);
        for series in [&uncounted, &back.expect("its own bytes")] {
            let mut found = series.occurrences(from, to, &Zone::UTC, OverrideMode::Exclude, budget);
            assert_eq!(found.by_ref().count() > 0, !certain);
            assert_eq!((found.is_exhausted(), found.is_exact()), (false, certain));
        }
    }
    let never = compile_series("START 20260101T090000Z\nRRULE FREQ=HOURLY;INTERVAL=168;BYDAY=TU");
    let (from, budget) = (utc("20260102"), StepBudget::new(1000));
    let mut found =
        never.occurrences(from, Instant::MAX, &Zone::UTC, OverrideMode::Exclude, budget);
    // Every step is a Thursday, so the rule is known to have no occurrence.
    assert_eq!((found.next(), found.is_exhausted()), (None, false));
    assert!(found.spent_steps() <= 1000, "{} steps", found.spent_steps());
    // A hundred thousand exceptions are looked up, not enumerated.
    let mut description = parse_description("START 20000101T090000Z\nRRULE FREQ=DAILY");
    let day = |n: i64| {
        CalendarDateTime::from_civil(
            civil("20000101T0900").saturating_add(n * DAY_SECONDS),
            ZoneReference::Utc,
        )
    };
    description.exdates = (0..100_000).filter(|n| n % 2 == 0).map(day).collect();
    let (series, _) = Series::new(&description, StepBudget::default());
    let mut found = series.occurrences(
        utc("20300101"),
        utc("20300201"),
        &Zone::UTC,
        OverrideMode::Exclude,
        StepBudget::default(),
    );
    assert_eq!(found.by_ref().count(), 15);
    assert!(found.spent_steps() < 100, "{} steps", found.spent_steps());
    assert!(series.to_bytes(0).len() < 200_000);
}

/// The cost of a month does not depend on its distance.
#[test]
fn distant_months_cost_no_more_than_near_ones() {
    for rule in ["FREQ=WEEKLY;BYDAY=MO,WE", "FREQ=DAILY", "FREQ=MONTHLY;BYDAY=2TH", "FREQ=YEARLY"] {
        let series = compile_series(&format!(
            "@Europe/Berlin\nSTART 19750106T090000\nLENGTH 3600\nRRULE {rule}"
        ));
        let steps = |from: &str, to: &str| {
            let mut found = series.occurrences(
                utc(from),
                utc(to),
                &Zone::UTC,
                OverrideMode::Exclude,
                StepBudget::default(),
            );
            let _ = found.by_ref().count();
            found.spent_steps()
        };
        let near = steps("19760101", "19760201");
        let far = steps("90000101", "90000201");
        assert!(far <= near + 4 && near < 80, "{rule}: {near} and {far} steps");
    }
}

//! Recurrence rules: the examples of RFC 5545 and a table of known implementation traps.

use larder_time::civil::{CivilTime, DAY_SECONDS};
use larder_time::rule::{LastOccurrence, LibicalDifference, Rule, RuleError, StepBudget};
use larder_time::value::IcalDateTime;

fn civil(text: &str) -> CivilTime {
    IcalDateTime::parse(text).expect("a date or a date-time").civil
}

pub(crate) fn rule(text: &str) -> Rule {
    Rule::parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
}

/// Formats occurrences in the shortest distinct form: dates, with hours and minutes if they differ
/// from those of the start.
fn format_occurrences(start: CivilTime, found: impl Iterator<Item = CivilTime>) -> String {
    let one = |at: CivilTime| {
        let text = at.to_string();
        match at.second_of_day() == start.second_of_day() {
            true => text[..8].to_string(),
            false if at.second_of_day() % 60 == 0 => text[..13].to_string(),
            false => text,
        }
    };
    found.map(one).collect::<Vec<_>>().join(" ")
}

/// Compares the first occurrences of a rule whose end is computed, as many as are expected; all of
/// them if the rule ends.
fn check(start: &str, text: &str, expected: &str) {
    let start = civil(start);
    let (expected, goes_on) = match expected.strip_suffix(" ...") {
        Some(expected) => (expected, true),
        None => (expected, false),
    };
    let ended = rule(text).with_resolved_end(start, StepBudget::default()).expect("an end");
    let count = expected.split_whitespace().count();
    let mut found = ended.occurrences_from(start, start);
    assert_eq!(format_occurrences(start, found.by_ref().take(count)), expected, "{text}");
    assert_eq!(found.next().is_some(), goes_on, "{text} goes on");
}

/// RFC 5545, section 3.8.5.3.
#[test]
fn examples_of_the_rfc_are_expanded() {
    check(
        "19970310T0900",
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        "19970310 19990110 19990210 19990310 20010110 20010210 20010310 20030110 20030210 20030310",
    );
    check(
        "19970101T0900",
        "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
        "19970101 19970410 19970719 20000101 20000409 20000718 20030101 20030410 20030719 20060101",
    );
    check("19970519T0900", "FREQ=YEARLY;BYDAY=20MO", "19970519 19980518 19990517 ...");
    check("19970512T0900", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "19970512 19980511 19990517 ...");
    check(
        "19970313T0900",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        "19970313 19970320 19970327 19980305 19980312 19980319 19980326 19990304 ...",
    );
    check(
        "19970902T0900",
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        "19980213 19980313 19981113 19990813 20001013 ...",
    );
    check(
        "19970913T0900",
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "19970913 19971011 19971108 19971213 19980110 19980207 19980307 ...",
    );
    check(
        "19961105T0900",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "19961105 20001107 20041102 ...",
    );
    check(
        "19970904T0900",
        "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
        "19970904 19971007 19971106",
    );
    check(
        "19970929T0900",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "19970929 19971030 19971127 19971230 19980129 19980226 19980330 ...",
    );
    check(
        "19970805T0900",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
        "19970805 19970810 19970819 19970824",
    );
    check(
        "19970805T0900",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
        "19970805 19970817 19970819 19970831",
    );
    check(
        "20070115T0900",
        "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
        "20070115 20070130 20070215 20070315 20070330",
    );
    check(
        "19970905T0900",
        "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
        "19970905 19971003 19971107 19971205 19980102 19980206 19980306 19980403 19980501 19980605",
    );
    check(
        "19970907T0900",
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        "19970907 19970928 19971102 19971130 19980104 19980125 19980301 19980329 19980503 19980531",
    );
    check(
        "19970922T0900",
        "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
        "19970922 19971020 19971117 19971222 19980119 19980216",
    );
    check(
        "19970928T0900",
        "FREQ=MONTHLY;BYMONTHDAY=-3",
        "19970928 19971029 19971128 19971229 19980129 19980226 ...",
    );
    check(
        "19970930T0900",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        "19970930 19971001 19971031 19971101 19971130 19971201 19971231 19980101 19980131 19980201",
    );
    check(
        "19970910T0900",
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "19970910 19970911 19970912 19970913 19970914 19970915 19990310 19990311 19990312 19990313",
    );
    check(
        "19970902T0900",
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "19970902 19970909 19970916 19970923 19970930 19971104 19971111 ...",
    );
    check(
        "19970610T0900",
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        "19970610 19970710 19980610 19980710 19990610 19990710 20000610 20000710 20010610 20010710",
    );
    check(
        "19970605T0900",
        "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
        "19970605 19970612 19970619 19970626 19970703 ...",
    );
    check(
        "19980101T0900",
        "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA;COUNT=4",
        "19980101 19980102 19980103 19980104",
    );
}

#[test]
fn hours_and_minutes_are_expanded() {
    check(
        "19970902T0900",
        "FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z",
        "19970902 19970902T1200 19970902T1500",
    );
    check(
        "19970902T0900",
        "FREQ=MINUTELY;INTERVAL=90;COUNT=4",
        "19970902 19970902T1030 19970902T1200 19970902T1330",
    );
    check(
        "19970902T0900",
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,16;COUNT=5",
        "19970902 19970902T0920 19970902T0940 19970902T1600 19970902T1620",
    );
    check(
        "19970902T0900",
        "FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0,30;BYSETPOS=1,-1;COUNT=4",
        "19970902 19970902T1730 19970903 19970903T1730",
    );
    // The filters apply to each step on its own; this match is eleven steps after the start (2.2,
    // row 9).
    check(
        "19970902T0900",
        "FREQ=SECONDLY;INTERVAL=8002;BYHOUR=9;COUNT=2",
        "19970902 19970903T092702",
    );
    check(
        "19970902T0900",
        "FREQ=HOURLY;BYMONTHDAY=-1;BYHOUR=23",
        "19970930T2300 19971031T2300 ...",
    );
    check(
        "19970902T0900",
        "FREQ=HOURLY;INTERVAL=5;BYDAY=SU;COUNT=3",
        "19970907T0400 19970907 19970907T1400",
    );
    check("19970902T0900", "FREQ=SECONDLY;BYSECOND=60;COUNT=2", "19970902T090059 19970902T090159");
}

#[test]
fn missing_days_are_skipped() {
    check(
        "20260131T0900",
        "FREQ=MONTHLY;COUNT=7",
        "20260131 20260331 20260531 20260731 20260831 20261031 20261231",
    );
    check("20240229T0900", "FREQ=YEARLY;COUNT=3", "20240229 20280229 20320229");
    check("18960229T0900", "FREQ=YEARLY;COUNT=2", "18960229 19040229");
    check("20260101T0900", "FREQ=YEARLY;BYYEARDAY=-366;COUNT=2", "20280101 20320101");
    check("20260101T0900", "FREQ=MONTHLY;BYMONTHDAY=-31;COUNT=3", "20260101 20260301 20260501");
    check("20260101T0900", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "");
    check("20260101T0900", "FREQ=YEARLY;BYMONTH=2;BYDAY=53MO", "");
    check("20260101T0900", "FREQ=DAILY;BYMONTH=4;BYMONTHDAY=31", "");
    // The longest gap of a rule that matches again: 2100 is not a leap year.
    check("20760101T0900", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SA", "20760229 21160229 ...");
}

/// RFC 7529.
#[test]
fn missing_days_are_moved_by_skip() {
    let check = |start, rest: &str, expected| {
        check(start, &format!("RSCALE=GREGORIAN;{rest}"), expected);
    };
    check("20140131", "FREQ=MONTHLY;COUNT=4", "20140131 20140331 20140531 20140731");
    check("20140131", "FREQ=MONTHLY;SKIP=FORWARD;COUNT=4", "20140131 20140301 20140331 20140501");
    check("20140131", "FREQ=MONTHLY;SKIP=BACKWARD;COUNT=4", "20140131 20140228 20140331 20140430");
    check(
        "20120229",
        "FREQ=YEARLY;SKIP=FORWARD;COUNT=5",
        "20120229 20130301 20140301 20150301 20160229",
    );
    check("20120229", "FREQ=YEARLY;SKIP=BACKWARD;COUNT=3", "20120229 20130228 20140228");
    // Occurrences at the same time are one.
    check(
        "20140101",
        "FREQ=MONTHLY;SKIP=BACKWARD;BYMONTHDAY=28,29,30,31;BYMONTH=2",
        "20140228 20150228 20160228 20160229 ...",
    );
    check(
        "20140101",
        "FREQ=MONTHLY;SKIP=FORWARD;BYMONTHDAY=1,30;COUNT=5",
        "20140101 20140130 20140201 20140301 20140330",
    );
    // SKIP moves a day before BYDAY limits it: 1 March 2014 was a Saturday.
    check(
        "20140101",
        "FREQ=MONTHLY;SKIP=FORWARD;BYMONTHDAY=30;BYDAY=SA;COUNT=2",
        "20140301 20140830",
    );
    let moved = rule("RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=FORWARD");
    let found = moved.occurrences_from(civil("20140131"), civil("20150301")).next();
    assert_eq!(found, Some(civil("20150301")), "found from the day that it was moved to");
    assert_eq!(rule("FREQ=MONTHLY;SKIP=FORWARD"), rule("FREQ=MONTHLY"), "SKIP needs RSCALE");
}

#[test]
fn positions_select_from_sets() {
    check(
        "20260101T0900",
        "FREQ=MONTHLY;BYMONTHDAY=1;BYSETPOS=1,-1;COUNT=3",
        "20260101 20260201 20260301",
    );
    check("20260101T0900", "FREQ=MONTHLY;BYMONTHDAY=1;BYSETPOS=2", "");
    // The first week is counted from its Monday (2.2, row 2).
    check("20151231T0900", "FREQ=WEEKLY;BYDAY=TU,TH;BYSETPOS=1;COUNT=2", "20160105 20160112");
    check("20151231T0900", "FREQ=WEEKLY;BYDAY=TU,TH;BYSETPOS=2;COUNT=2", "20151231 20160107");
    check(
        "20260105T0900",
        "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9,17;BYSETPOS=1;COUNT=2",
        "20260105 20260112",
    );
    check(
        "20260101T0900",
        "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=3",
        "20261231 20271231 20281229",
    );
}

#[test]
fn week_numbers_belong_to_week_years() {
    check("20150101T0900", "FREQ=YEARLY;BYWEEKNO=53;BYDAY=FR;COUNT=2", "20160101 20210101");
    check("20110101T0900", "FREQ=YEARLY;BYWEEKNO=-1;BYDAY=SU;COUNT=2", "20110102 20120101");
    // INTERVAL counts the year that the week belongs to (2.3).
    check(
        "20080101T0900",
        "FREQ=YEARLY;INTERVAL=2;BYWEEKNO=1;BYDAY=MO;COUNT=3",
        "20100104 20120102 20131230",
    );
    check("20000229T2330", "FREQ=YEARLY;BYWEEKNO=1;COUNT=3", "20010102 20020101 20021231");
}

#[test]
fn last_occurrences_are_computed() {
    check("20260101T0900", "FREQ=DAILY;COUNT=3;UNTIL=20260102T090000", "20260101 20260102");
    check("20260101T0900", "FREQ=DAILY;COUNT=2;UNTIL=20260201", "20260101 20260102");
    check("20260101T0900", "FREQ=DAILY;UNTIL=20260102", "20260101 20260102");
    check("20260101T0900", "FREQ=DAILY;UNTIL=20260102T085959", "20260101");
    check("20260101T0900", "FREQ=DAILY;UNTIL=20251231", "");
    check("99991230T0900", "FREQ=DAILY", "99991230 99991231");
    let last =
        |start: &str, text: &str| rule(text).last_occurrence(civil(start), StepBudget::default());
    let at = |text: &str| LastOccurrence::At(civil(text));
    assert_eq!(last("19750101T0900", "FREQ=DAILY;COUNT=30000"), at("20570218T0900"));
    assert_eq!(last("19750101T0900", "FREQ=DAILY"), LastOccurrence::Endless);
    assert_eq!(last("19750101T0900", "FREQ=DAILY;COUNT=4000000"), LastOccurrence::Endless);
    assert_eq!(
        last("19750101T0900", "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2"),
        LastOccurrence::NoOccurrence
    );
    assert_eq!(last("20260101", "FREQ=MONTHLY;UNTIL=20270115"), at("20270101"));
    assert_eq!(
        last("20260101", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;UNTIL=20270115"),
        LastOccurrence::NoOccurrence
    );
    assert_eq!(last("20260101", "FREQ=SECONDLY;UNTIL=90000101"), at("90000101T235959"));
    assert_eq!(last("20260105", "FREQ=WEEKLY;BYDAY=MO,TU;COUNT=3;WKST=TU"), at("20260112"));
    // The first hour begins before the start, and its first minute precedes the start.
    assert_eq!(last("20260105T093000", "FREQ=HOURLY;BYMINUTE=0,30;COUNT=4"), at("20260105T110000"));
}

/// The last occurrence by division equals the last occurrence by enumeration.
#[test]
fn computed_ends_equal_enumeration() {
    let rules = [
        "FREQ=DAILY;INTERVAL=3",
        "FREQ=DAILY;BYHOUR=8,10",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,SU;WKST=SU",
        "FREQ=WEEKLY;BYDAY=MO,WE;BYMONTH=1,6",
        "FREQ=MONTHLY;BYDAY=1MO,3FR;INTERVAL=5",
        "FREQ=MONTHLY;BYDAY=-1MO",
        "FREQ=MONTHLY;BYDAY=4FR,-1FR",
        "FREQ=MONTHLY;BYMONTHDAY=1,28",
        "FREQ=MONTHLY",
        "FREQ=YEARLY",
        "FREQ=YEARLY;BYMONTHDAY=1,2",
        "FREQ=YEARLY;BYMONTH=2,3;BYDAY=2TU,-2TU",
        "FREQ=YEARLY;BYWEEKNO=1,20",
        "FREQ=YEARLY;BYYEARDAY=1,-1,366",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1,1,22",
        "FREQ=MONTHLY;BYMONTHDAY=29,30,31;BYSETPOS=1,-1",
        "RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=FORWARD;BYMONTHDAY=1,31",
        "FREQ=HOURLY;INTERVAL=7",
        "FREQ=HOURLY;BYMINUTE=0,10,50",
        "FREQ=HOURLY;BYHOUR=9,10",
        "FREQ=MINUTELY;INTERVAL=50;BYSECOND=0,30",
        "FREQ=SECONDLY;INTERVAL=7777",
    ];
    for text in rules {
        for start in ["20260131T093015", "20240229T000000", "20251231T235959"] {
            let start = civil(start);
            let all: Vec<CivilTime> = rule(text).occurrences_from(start, start).take(200).collect();
            for count in [1, 2, 3, 5, 99, 200] {
                let counted = rule(&format!("{text};COUNT={count}"));
                let last = counted.last_occurrence(start, StepBudget::default());
                assert_eq!(last, LastOccurrence::At(all[count - 1]), "{counted} from {start}");
            }
        }
    }
}

#[test]
fn malformed_rules_are_errors() {
    let wrong = |text: &str| Rule::parse(text).expect_err(text).to_string();
    assert_eq!(wrong(""), "the rule has no FREQ");
    assert_eq!(wrong("FREQ=INVALID"), "invalid FREQ \"INVALID\" in the rule");
    assert_eq!(wrong("FREQ=DAILY;INTERVAL=0"), "invalid INTERVAL \"0\" in the rule");
    assert_eq!(wrong("FREQ=DAILY;COUNT=-1"), "invalid COUNT \"-1\" in the rule");
    assert_eq!(wrong("FREQ=DAILY;UNTIL=tomorrow"), "invalid UNTIL \"tomorrow\" in the rule");
    assert_eq!(wrong("FREQ=DAILY;FREQ=DAILY"), "FREQ occurs twice in the rule");
    assert_eq!(wrong("FREQ=DAILY;BYEASTER=1"), "unknown part \"BYEASTER=1\" in the rule");
    assert_eq!(wrong("FREQ=DAILY;BYDAY=XX"), "invalid BYDAY \"XX\" in the rule");
    for value in [
        "BYDAY=0MO",
        "BYDAY=M",
        "BYDAY=é",
        "BYDAY=1éMO",
        "BYMONTH=13",
        "BYMONTHDAY=0",
        "BYYEARDAY=367",
        "BYHOUR=24",
        "BYSETPOS=0",
        "WKST=X",
        "BYWEEKNO=54",
    ] {
        let part = value.split('=').next().unwrap();
        let message = wrong(&format!("FREQ=YEARLY;{value}"));
        assert!(message.starts_with(&format!("invalid {part} ")), "{value}: {message}");
    }
    for text in ["RSCALE=CHINESE;FREQ=YEARLY", "FREQ=YEARLY;BYMONTH=5L;RSCALE=CHINESE"] {
        assert_eq!(Rule::parse(text), Err(RuleError::UnsupportedCalendar("CHINESE".into())));
    }
    assert_eq!(
        Rule::parse("RSCALE=CHINESE;FREQ=YEARLY"),
        Err(RuleError::UnsupportedCalendar("CHINESE".into()))
    );
    assert_eq!(rule(" freq=daily ; interval=1;;BYDAY=;wkst=mo;").to_string(), "FREQ=DAILY");
    let text =
        "FREQ=YEARLY;COUNT=3;INTERVAL=2;BYDAY=MO,-1SU,2TU;BYMONTHDAY=-1,13;BYMONTH=1,12;WKST=SU";
    assert_eq!(rule(text).to_string(), text);
}

#[test]
fn vcalendar_rules_are_parsed() {
    let check = |text: &str, expected: &str| {
        let found = Rule::parse_vcal10(text).map(|rule| rule.to_string());
        match expected {
            "!" => assert!(found.is_err(), "{text}: {found:?}"),
            expected => assert_eq!(found.as_deref(), Ok(expected), "{text}"),
        }
    };
    check("D1 #5", "FREQ=DAILY;COUNT=5");
    check("D2", "FREQ=DAILY;COUNT=2;INTERVAL=2");
    check("D2 #0", "FREQ=DAILY;INTERVAL=2");
    check("W1 MO WE 19991231T000000Z", "FREQ=WEEKLY;UNTIL=19991231T000000Z;BYDAY=MO,WE");
    check("W2 TU 1200 #3", "FREQ=WEEKLY;COUNT=3;INTERVAL=2;BYMINUTE=0;BYHOUR=12;BYDAY=TU");
    check("MP1 1+ MO #0", "FREQ=MONTHLY;BYDAY=1MO");
    check("MP1 1- FR 2+ 3+ TU TH #0", "FREQ=MONTHLY;BYDAY=-1FR,2TU,2TH,3TU,3TH");
    check("MD1 1 15 LD #4", "FREQ=MONTHLY;COUNT=4;BYMONTHDAY=-1,1,15");
    check("YM1 6 7 #8", "FREQ=YEARLY;COUNT=8;BYMONTH=6,7");
    check("YD1 1 100 #9", "FREQ=YEARLY;COUNT=9;BYYEARDAY=1,100");
    for wrong in ["", "D", "D0", "X1", "D1 #5 M5 #3", "YM1 13", "MP1 6+ MO", "W1 XX", "FREQ=DAILY"]
    {
        check(wrong, "!");
    }
}

/// Distant windows cost as much as near ones, measured in steps and not in time.
#[test]
fn distant_windows_cost_no_more_than_near_ones() {
    let rules = [
        "FREQ=YEARLY",
        "FREQ=MONTHLY;BYDAY=2TH",
        "FREQ=WEEKLY;BYDAY=MO,WE",
        "FREQ=DAILY",
        "FREQ=HOURLY",
        "FREQ=MINUTELY;INTERVAL=7",
        "FREQ=SECONDLY;INTERVAL=8002;BYHOUR=9",
        "FREQ=HOURLY;INTERVAL=5;BYMONTH=1;BYDAY=MO",
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    ];
    let start = civil("19750106T0900");
    for text in rules {
        let steps = |year: i32| {
            let rule = rule(text);
            let from = civil(&format!("{year}0101"));
            let to = civil(&format!("{}0101", year + 1));
            let mut found = rule.occurrences_from(start, from);
            let count = found.by_ref().take_while(|at| *at < to).count() as u64;
            (found.spent_steps(), count)
        };
        let (near, count) = steps(1976);
        for year in [2026, 2500, 9000] {
            let (far, of_year) = steps(year);
            assert!(far <= near + near / 8 + 8, "{text}: {near} steps in 1976, {far} in {year}");
            assert!(of_year.abs_diff(count) <= count / 8 + 2, "{text}: {count} and {of_year}");
        }
        assert!(near <= 3 * count + 800, "{text}: {near} steps for {count}");
    }
}

#[test]
fn hostile_rules_are_bounded() {
    let start = civil("20260101");
    let far = rule("FREQ=HOURLY;INTERVAL=168;BYDAY=TU");
    let mut found = far.occurrences_from(start, start).with_budget(StepBudget::new(1000));
    assert_eq!((found.next(), found.is_exhausted(), found.spent_steps()), (None, true, 1000));
    let empty = rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30");
    let mut found = empty.occurrences_from(start, start);
    assert_eq!((found.next(), found.is_exhausted()), (None, false));
    assert!(found.spent_steps() < 500, "{} steps", found.spent_steps());
    let rare = rule("FREQ=YEARLY;INTERVAL=4294967295");
    assert_eq!(rare.occurrences_from(start, start).collect::<Vec<_>>(), [start]);
    let count = rule("FREQ=DAILY;BYDAY=MO;COUNT=1000000000");
    assert_eq!(count.last_occurrence(start, StepBudget::new(1000)), LastOccurrence::Unknown);
    let all: String = (1..=366).map(|n| format!("{n},-{n},")).collect();
    let positions = rule(&format!("FREQ=SECONDLY;BYSETPOS={}", all.trim_end_matches(',')));
    let mut found = positions.occurrences_from(start, start).with_budget(StepBudget::new(1000));
    assert!(found.by_ref().count() < 20);
    assert!(found.is_exhausted());
}

/// A step that never falls on a time or day of the rule is recognised: such a rule has no
/// occurrence, however many steps there are.
#[test]
fn rules_whose_steps_never_match_have_no_occurrence() {
    for (start, text, is_empty) in [
        ("20260310T140000", "FREQ=HOURLY;INTERVAL=2;BYHOUR=9", true),
        ("20260310T130000", "FREQ=HOURLY;INTERVAL=2;BYHOUR=9", false),
        ("20260310T140000", "FREQ=HOURLY;INTERVAL=5;BYHOUR=9", false),
        ("20260310T140000", "FREQ=HOURLY;INTERVAL=48;BYHOUR=9", true),
        ("20260310T140000", "FREQ=HOURLY;INTERVAL=168;BYDAY=WE", true),
        ("20260310T140000", "FREQ=HOURLY;INTERVAL=168;BYDAY=TU", false),
        ("20260310T140000", "FREQ=MINUTELY;INTERVAL=1440;BYHOUR=14;BYMINUTE=30", true),
        ("20260310T140000", "FREQ=MINUTELY;INTERVAL=30;BYHOUR=9;BYMINUTE=15", true),
        ("20260310T140000", "FREQ=MINUTELY;INTERVAL=30;BYHOUR=9;BYMINUTE=15,30", false),
        ("20260310T140000", "FREQ=SECONDLY;INTERVAL=2;BYSECOND=1", true),
        ("20260310T140000", "FREQ=SECONDLY;INTERVAL=86400;BYMINUTE=1", true),
        ("20260310T140000", "FREQ=SECONDLY;INTERVAL=7;BYSECOND=1", false),
    ] {
        let (start, rule) = (civil(start), rule(text));
        let mut found = rule.occurrences_from(start, start);
        assert_eq!((found.next().is_none(), found.is_exhausted()), (is_empty, false), "{text}");
    }
}

#[test]
fn masks_and_gaps_bound_a_rule() {
    let start = civil("20260307T0900");
    let months = |text: &str| rule(text).month_mask(start);
    assert_eq!(months("FREQ=YEARLY"), 1 << 2);
    assert_eq!(months("FREQ=YEARLY;BYMONTHDAY=1"), 0xfff);
    assert_eq!(months("FREQ=DAILY;BYMONTH=1,12"), 0x801);
    assert_eq!(months("FREQ=DAILY"), 0xfff);
    assert_eq!(months("RSCALE=GREGORIAN;SKIP=FORWARD;FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31"), 0x801);
    let weekdays = |text: &str| rule(text).weekday_mask(start);
    assert_eq!(weekdays("FREQ=WEEKLY"), 1 << 5);
    assert_eq!(weekdays("FREQ=MONTHLY;BYDAY=1MO,FR"), 0b1_0001);
    assert_eq!(weekdays("FREQ=MONTHLY"), 127);
    let gap = |text: &str| rule(text).max_gap_seconds(start);
    assert_eq!(gap("FREQ=WEEKLY;INTERVAL=2"), Some(14 * DAY_SECONDS));
    assert_eq!(gap("FREQ=DAILY;BYMONTH=2"), None);
    assert_eq!(gap("FREQ=HOURLY"), Some(3600));
}

/// The classes of rules that evolution-data-server expands differently.
#[test]
fn differences_from_libical_are_classified() {
    let check =
        |text: &str, expected| assert_eq!(rule(text).libical_difference(), expected, "{text}");
    check("FREQ=YEARLY;BYMONTHDAY=15", Some(LibicalDifference::StartMonthOnly));
    check("FREQ=WEEKLY;BYDAY=MO;BYHOUR=9,17;BYSETPOS=1", Some(LibicalDifference::SetPosIgnored));
    check("FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=1MO", Some(LibicalDifference::RuleRejected));
    check("FREQ=YEARLY;BYWEEKNO=1;BYYEARDAY=1", Some(LibicalDifference::RuleRejected));
    check("FREQ=DAILY;BYMONTHDAY=-1", Some(LibicalDifference::NegativeMonthDaysIgnored));
    check("FREQ=YEARLY;BYMONTH=2;BYDAY=53MO", Some(LibicalDifference::NoSuchOrdinal));
    check("FREQ=YEARLY;BYWEEKNO=1", Some(LibicalDifference::WeekNumbersDiffer));
    for plain in [
        "FREQ=YEARLY",
        "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=15",
        "FREQ=MONTHLY;BYDAY=-1FR",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "FREQ=MONTHLY;BYMONTHDAY=-1",
        "FREQ=YEARLY;BYDAY=20MO",
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
    ] {
        check(plain, None);
    }
}

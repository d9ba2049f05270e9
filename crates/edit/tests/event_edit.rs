//! Events and tasks that are edited, by somebody in Prague on Sunday, 1 March 2026, at noon: what
//! is written then.

use crate::event::{act, bytes, calendar, edit, occurrences, select_occurrence};
use larder_edit::event::{OccurrenceSelector, RecurrenceScope};

const TIMED: &str =
    "DTSTART;TZID=Europe/Prague:20260305T120000\nDTEND;TZID=Europe/Prague:20260305T130000";
const LONG: &str =
    "DTSTART;TZID=Europe/Prague:20260305T200000\nDTEND;TZID=Europe/Prague:20260307T100000";
const DAYS: &str = "DTSTART;VALUE=DATE:20260305\nDTEND;VALUE=DATE:20260307";
const DUE: &str = "DUE;TZID=Europe/Prague:20260305T170000";
const DAY: &str = "DUE;VALUE=DATE:20260305";

/// The lines of it, without what stays or only says when it was changed; or why nothing is.
fn edit_text(lines: &str, settings: &[(&str, &str)]) -> String {
    let mut book = calendar(&[lines]);
    let which = OccurrenceSelector { scope: Some(RecurrenceScope::All), occurrence: None };
    if let Err(error) = act(&mut book, "u", which, &edit(settings), "new") {
        return error.to_string();
    }
    let stays = ["BEGIN:V", "END:V", "UID", "DTSTAMP", "LAST-MODIFIED", "SEQUENCE"];
    let all = bytes(&book).concat();
    let lines = all.lines().filter(|line| !stays.iter().any(|name| line.starts_with(name)));
    let short = |line: &str| line.replace(";TZID=Europe/Prague", "").replace(";VALUE=DATE", "");
    lines.map(short).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(lines: &str, settings: &[(&str, &str)], expect: &str) {
    assert_eq!(edit_text(lines, settings), expect, "{lines} {settings:?}");
}

#[test]
fn ends() {
    let check = |lines, end, expect| check(lines, &[("end", end)], expect);
    check(TIMED, "15:00", "DTSTART:20260305T120000 DTEND:20260305T150000");
    // In the night that follows.
    check(LONG, "1:00", "DTSTART:20260305T200000 DTEND:20260306T010000");
    check(
        TIMED,
        "9:00",
        "the end (Thu 5 Mar 2026, 09:00) is before the start (Thu 5 Mar 2026, 12:00)",
    );
    // A day alone: at the time at which it ended.
    check(TIMED, "2026-03-06", "DTSTART:20260305T120000 DTEND:20260306T130000");
    check(TIMED, "monday", "DTSTART:20260305T120000 DTEND:20260309T130000");
    check(
        TIMED,
        "tomorrow",
        "the end (Mon 2 Mar 2026, 13:00) is before the start (Thu 5 Mar 2026, 12:00)",
    );
    check("DTSTART:20260305T120000", "2026-03-06", "DTSTART:20260305T120000 DTEND:20260307T000000");
    check(
        "DTSTART:20260305T120000\nDURATION:PT1H",
        "2026-03-06",
        "DTSTART:20260305T120000 DTEND:20260306T130000",
    );
    check(DAYS, "2026-03-09", "DTSTART:20260305 DTEND:20260310");
    check(DAYS, "2026-03-05", "DTSTART:20260305 DTEND:20260306");
    check(DAYS, "2026-03-04", "the end (Wed 4 Mar 2026) is before the start (Thu 5 Mar 2026)");
    check(DAYS, "9:00", "the start and the end must both be dates, or both be times");
    check(DUE, "2026-03-09", "DUE:20260309T170000");
    check(DUE, "9:00", "DUE:20260305T090000");
    check(DAY, "tomorrow", "DUE:20260302");
}

#[test]
fn beginnings() {
    check(DUE, &[("start", "2026-03-02")], "DUE:20260305T170000 DTSTART:20260302T170000");
    check(DAY, &[("start", "tomorrow"), ("end", "friday")], "DUE:20260306 DTSTART:20260302");
    check(
        DAY,
        &[("start", "2026-03-07")],
        "the end (Thu 5 Mar 2026) is before the start (Sat 7 Mar 2026)",
    );
    check(DAY, &[("start", "9:00")], "the start and the end must both be dates, or both be times");
    check(DAY, &[("for", "2h")], "a duration needs a start time");
    check(DAYS, &[("for", "2h")], "\"2h\" needs a start time, such as 12:30");
    // The night in which the clock goes forward: RFC 5545 says when that is.
    check(TIMED, &[("start", "2026-03-29 2:30")], "DTSTART:20260329T023000 DURATION:PT1H");
}

#[test]
fn whole_days() {
    check(TIMED, &[("all day", "")], "DTSTART:20260305 DTEND:20260306");
    check(LONG, &[("all day", "")], "DTSTART:20260305 DTEND:20260308");
    check(LONG, &[("all day", ""), ("end", "2026-03-06")], "DTSTART:20260305 DTEND:20260307");
    check(DAYS, &[("all day", "")], "DTSTART:20260305 DTEND:20260307");
    check(DUE, &[("all day", "")], "DUE:20260305");
    check(
        &format!("{TIMED}\nRRULE:FREQ=DAILY;UNTIL=20260307T110000Z\nEXDATE:20260306T110000Z"),
        &[("all day", "")],
        "DTSTART:20260305 DTEND:20260306 RRULE:FREQ=DAILY;UNTIL=20260307 EXDATE:20260306",
    );
}

/// Friday in Prague, and Thursday in UTC.
#[test]
fn a_day_is_one_in_the_zone_of_the_user() {
    let night = "DTSTART:20260305T233000Z\nDTEND:20260305T234500Z";
    let check_night = |settings: &[(&str, &str)], expect| check(night, settings, expect);
    check_night(&[("start", "2026-03-20")], "DTSTART:20260319T233000Z DTEND:20260319T234500Z");
    // In summer, at the same time in Prague.
    check_night(&[("start", "2026-04-03")], "DTSTART:20260402T223000Z DTEND:20260402T224500Z");
    check_night(&[("end", "2026-03-07")], "DTSTART:20260305T233000Z DTEND:20260306T234500Z");
    check_night(&[("all day", "")], "DTSTART:20260306 DTEND:20260307");
    // With a new zone, in that zone.
    check_night(
        &[("zone", "utc"), ("start", "2026-03-20")],
        "DTSTART:20260320T233000Z DTEND:20260320T234500Z",
    );
    check_night(&[("zone", "utc"), ("all day", "")], "DTSTART:20260305 DTEND:20260306");
    check("DUE:20260305T233000Z", &[("end", "2026-03-20")], "DUE:20260319T233000Z");
    check("DUE:20260305T233000Z", &[("all day", "")], "DUE:20260306");
    check(
        &format!("{night}\nRRULE:FREQ=WEEKLY;BYDAY=TH"),
        &[("start", "2026-03-13")],
        "DTSTART:20260312T233000Z DTEND:20260312T234500Z RRULE:FREQ=WEEKLY;BYDAY=TH",
    );
    check(
        &format!("{night}\nRRULE:FREQ=WEEKLY;BYDAY=TH\nEXDATE:20260312T233000Z"),
        &[("all day", "")],
        "DTSTART:20260306 DTEND:20260307 RRULE:FREQ=WEEKLY;BYDAY=FR EXDATE:20260313",
    );
}

#[test]
fn rules() {
    let rule = [("rule", "FREQ=WEEKLY;BYDAY=TU")];
    check(
        TIMED,
        &rule,
        "the start is not in the recurrence set of the new rule: set a new start as well",
    );
    check(
        TIMED,
        &[rule[0], ("start", "2026-03-10")],
        "DTSTART:20260310T120000 DTEND:20260310T130000 RRULE:FREQ=WEEKLY;BYDAY=TU",
    );
}

#[test]
fn alarms() {
    let alarm = |settings: &[(&str, &str)]| {
        let part = "BEGIN:VALARM\nACTION:AUDIO\nTRIGGER:-PT5M\nEND:VALARM";
        edit_text(&format!("DTSTART:20260305T120000\nSUMMARY:A\n{part}\n{part}"), settings)
    };
    let once = "DTSTART:20260305T120000 SUMMARY:A";
    assert_eq!(alarm(&[("alarm", "")]), once);
    let two =
        "ACTION:DISPLAY DESCRIPTION:B TRIGGER:-PT1H ACTION:DISPLAY DESCRIPTION:B TRIGGER:-P1D";
    let expect = format!("DTSTART:20260305T120000 SUMMARY:B {two}");
    assert_eq!(alarm(&[("alarm", "1h,1 day"), ("summary", "B")]), expect);
    assert_eq!(alarm(&[("alarm", "x")]), "unknown duration \"x\"; try 1h30, 90min or 2 days");
    let expect = "DUE:20260305 ACTION:DISPLAY DESCRIPTION: TRIGGER;RELATED=END:-PT1H";
    check(DAY, &[("alarm", "1h")], expect);
}

#[test]
fn values() {
    let check = |name, text, expect: &str| {
        let before = edit_text(DAYS, &[("zone", "utc")]);
        let got = edit_text(DAYS, &[(name, text)]);
        assert_eq!(got.strip_prefix(&format!("{before} ")).unwrap_or(&got), expect);
    };
    let levels = "use 1 (highest) to 9, or high, medium or low";
    check("priority", "9", "PRIORITY:9");
    check("priority", "10", &format!("\"10\" is not a valid priority: {levels}"));
    check("priority", "high", "PRIORITY:1");
    check("priority", "highest", &format!("\"highest\" is not a valid priority: {levels}"));
    check("percent", "101", "\"101\" is not a valid percent: use a number from 0 to 100");
    check("status", "cancelled", "STATUS:CANCELLED");
    let events = "use TENTATIVE, CONFIRMED or CANCELLED";
    check("status", "done", &format!("\"done\" is not a valid status: {events}"));
    check("status", "or", &format!("\"or\" is not a valid status: {events}"));
    check("status", "completed", &format!("\"completed\" is not a valid status: {events}"));
    check(
        "class",
        "secret",
        "\"secret\" is not a valid class: use PUBLIC, PRIVATE or CONFIDENTIAL",
    );
    check("transp", "transparent", "TRANSP:TRANSPARENT");
    check("url", "https://example.org/a,b;c", "URL:https://example.org/a,b;c");
    for no in ["example", "https://example.org/a b", "ht tp:a", ":a", "a:"] {
        let expect =
            format!("{no:?} is not a valid url: use an address such as https://example.org/");
        check("url", no, &expect);
    }
    check("color", "Turquoise", "COLOR:turquoise");
    check("color", "1", "\"1\" is not a valid color: use the name of a colour such as turquoise");
    check("category", "a, b;c,", "CATEGORIES:a,b\\;c");
    check("location", " A, B", "LOCATION: A\\, B");
}

#[test]
fn what_is_done() {
    let check = |lines: &str, settings: &[(&str, &str)], expect: &str| {
        check(&format!("{DAY}{lines}"), settings, format!("DUE:20260305 {expect}").trim_end());
    };
    let done = "STATUS:COMPLETED PERCENT-COMPLETE:100 COMPLETED:20260301T110000Z";
    let earlier = "\nSTATUS:COMPLETED\nCOMPLETED:20260101T110000Z\nPERCENT-COMPLETE:100";
    check("", &[("status", "completed")], done);
    check(
        "",
        &[("percent", "100")],
        "PERCENT-COMPLETE:100 STATUS:COMPLETED COMPLETED:20260301T110000Z",
    );
    check(earlier, &[("status", "completed")], earlier.replace('\n', " ").trim());
    check(earlier, &[("status", "needs-action")], "STATUS:NEEDS-ACTION");
    check(earlier, &[("status", "")], "");
    check(earlier, &[("percent", "50")], "STATUS:IN-PROCESS PERCENT-COMPLETE:50");
    check(earlier, &[("percent", "")], "STATUS:NEEDS-ACTION");
    check(
        "\nPERCENT-COMPLETE:30",
        &[("status", "in-process")],
        "PERCENT-COMPLETE:30 STATUS:IN-PROCESS",
    );
    check(
        earlier,
        &[("summary", "A")],
        &format!("{} SUMMARY:A", earlier.replace('\n', " ").trim()),
    );
}

#[test]
fn a_start_on_another_day_of_the_rule_keeps_the_rule() {
    let rule = |rule: &str| format!("{TIMED}\nRRULE:FREQ=WEEKLY;{rule}");
    let weekdays = "BYDAY=MO,TU,WE,TH,FR";
    check(
        &rule(&format!("{weekdays};UNTIL=20260331T100000Z\nEXDATE:20260310T110000Z")),
        &[("start", "2026-03-09 22:00")],
        "DTSTART:20260309T220000 DTEND:20260309T230000 \
         RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL=20260331T200000Z EXDATE:20260310T220000",
    );
    check(
        &rule(weekdays),
        &[("start", "2026-03-02")],
        "DTSTART:20260302T120000 DTEND:20260302T130000 RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    );
    // A shift moves the weekdays, and so does a start on another day or after the end.
    check(
        &rule("BYDAY=TU,TH"),
        &[("move", "+5d")],
        "DTSTART:20260310T120000 DTEND:20260310T130000 RRULE:FREQ=WEEKLY;BYDAY=SU,TU",
    );
    check(
        &rule("BYDAY=TU,TH"),
        &[("start", "2026-03-06")],
        "DTSTART:20260306T120000 DTEND:20260306T130000 RRULE:FREQ=WEEKLY;BYDAY=WE,FR",
    );
    // Every second week: a Tuesday of the weeks without an occurrence.
    check(
        &rule("INTERVAL=2;BYDAY=TU,TH;WKST=MO"),
        &[("start", "2026-03-10")],
        "DTSTART:20260310T120000 DTEND:20260310T130000 \
         RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,TU;WKST=SA",
    );
}

#[test]
fn a_moved_period_keeps_its_length_over_a_change_of_the_clock() {
    let period = "RDATE;VALUE=PERIOD;TZID=Europe/Prague:20260328T233000/20260329T043000";
    check(
        &format!("{TIMED}\n{period}"),
        &[("move", "+10min")],
        "DTSTART:20260305T121000 DTEND:20260305T131000 RDATE;VALUE=PERIOD:20260328T234000/PT4H",
    );
}

const OTHER_OCCURRENCES: &str = "cannot move the series: with its rule, removed or changed occurrences would come back, or some would be added or lost: set a new rule as well";
const NOT_IN_RULE: &str = "the new start is not in the recurrence set: set a new rule as well";

#[track_caller]
fn check_series(lines: &str, settings: &[(&str, &str)], expect: &str) {
    let lines = lines.replace('@', ";TZID=Europe/Prague:");
    check(&lines, settings, expect);
}

/// Months differ in length: the distance is not the same for all occurrences.
#[test]
fn exceptions_of_months_and_years_move_with_their_occurrences() {
    let monthly = |start, rule, removed| {
        format!("DTSTART@{start}T090000\nRRULE:FREQ=MONTHLY{rule}\nEXDATE@{removed}T090000")
    };
    let two_days = [("move", "+2 days")];
    check_series(
        &monthly("20240130", "", "20240430"),
        &two_days,
        "DTSTART:20240201T090000 RRULE:FREQ=MONTHLY EXDATE:20240501T090000",
    );
    check_series(
        &monthly("20240201", "", "20240501"),
        &[("move", "-2 days")],
        "DTSTART:20240130T090000 RRULE:FREQ=MONTHLY EXDATE:20240430T090000",
    );
    check_series(
        &monthly("20240130", ";INTERVAL=2", "20240530"),
        &two_days,
        "DTSTART:20240201T090000 RRULE:FREQ=MONTHLY;INTERVAL=2 EXDATE:20240601T090000",
    );
    // February has a first day, and had no thirtieth: an occurrence more.
    check_series(
        &monthly("20240130", ";UNTIL=20240530T070000Z", "20240430"),
        &two_days,
        OTHER_OCCURRENCES,
    );
    // The removed occurrence would be in April, which has no 31st.
    check_series(&monthly("20240130", "", "20240430"), &[("move", "+1 day")], OTHER_OCCURRENCES);
    check_series(
        "DTSTART;VALUE=DATE:20210228\nRRULE:FREQ=YEARLY;UNTIL=20240228",
        &[("move", "+1 day")],
        "DTSTART:20210301 RRULE:FREQ=YEARLY;UNTIL=20240301",
    );
    // The first Monday of a month is not always as many days after that of the month before.
    check_series(
        "DTSTART@20240101T090000\nRRULE:FREQ=MONTHLY;BYDAY=1MO\nEXDATE@20240304T090000",
        &[("move", "+35 days")],
        OTHER_OCCURRENCES,
    );
}

#[test]
fn exceptions_of_a_rule_that_names_its_days_stay() {
    let rule = "RRULE:FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR";
    let daily = |rest| format!("DTSTART@20240101T140000\n{rule}{rest}");
    let removed = "\nEXDATE@20240105T140000";
    check_series(
        &daily(removed),
        &[("move", "+25h")],
        &format!("DTSTART:20240102T150000 {rule} EXDATE:20240105T150000"),
    );
    check_series(
        &daily(removed),
        &[("move", "+7d")],
        &format!("DTSTART:20240108T140000 {rule} EXDATE:20240112T140000"),
    );
    check_series(&daily(""), &[("move", "-1 day")], NOT_IN_RULE);
    // All occurrences move, but one is lost; a series with a new start begins there.
    let until = ";UNTIL=20240112T130000Z";
    check_series(&daily(until), &[("move", "+1 day")], OTHER_OCCURRENCES);
    check_series(
        &daily(until),
        &[("start", "2024-01-02")],
        &format!("DTSTART:20240102T140000 {rule}{until}"),
    );
}

/// The end moves as far as the start, and a short move over midnight moves all times.
#[test]
fn ends_and_short_moves_of_a_rule_that_names_its_days() {
    let rule = "RRULE:FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR";
    check_series(
        &format!("DTSTART@20260105T233000\n{rule}\nEXDATE@20260107T233000"),
        &[("move", "+1h")],
        &format!("DTSTART:20260106T003000 {rule} EXDATE:20260108T003000"),
    );
    let one_day = [("move", "+1 day")];
    check_series(
        &format!("DTSTART@20260105T100000\n{rule};UNTIL=20260114T090000Z"),
        &one_day,
        &format!("DTSTART:20260106T100000 {rule};UNTIL=20260115T090000Z"),
    );
    check_series(
        &format!("DTSTART@20260105T100000\n{rule};COUNT=5\nEXDATE@20260107T100000"),
        &[("start", "2026-01-13")],
        OTHER_OCCURRENCES,
    );
    check_series(
        &format!("DTSTART@20260105T100000\n{rule};COUNT=10\nEXDATE@20260107T100000"),
        &[("start", "2026-01-06 9:00")],
        &format!("DTSTART:20260106T090000 {rule};COUNT=10 EXDATE:20260107T090000"),
    );
    // A month is no day.
    let june = "RRULE:FREQ=DAILY;BYMONTH=6;UNTIL";
    check_series(
        &format!("DTSTART@20260601T100000\n{june}=20260610T080000Z\nEXDATE@20260605T100000"),
        &one_day,
        &format!("DTSTART:20260602T100000 {june}=20260611T080000Z EXDATE:20260606T100000"),
    );
    // One hour of the week before does not exist.
    check_series(
        "DTSTART@20260328T100000\nRRULE:FREQ=HOURLY;COUNT=48",
        &[("move", "+7 days")],
        "DTSTART:20260404T100000 RRULE:FREQ=HOURLY;COUNT=48",
    );
}

/// A start that the rule does not produce is an occurrence of its own.
#[test]
fn a_rule_moves_with_a_start_outside_it() {
    let weekly =
        |rule| format!("DTSTART@20240102T090000\nRRULE:FREQ=WEEKLY;{rule}\nEXDATE@20240108T090000");
    check_series(
        &weekly("BYDAY=MO,WE"),
        &[("move", "+1 day")],
        "DTSTART:20240103T090000 RRULE:FREQ=WEEKLY;BYDAY=TU,TH EXDATE:20240109T090000",
    );
    check_series(
        &weekly("BYDAY=MO,WE"),
        &[("start", "2024-01-03")],
        "DTSTART:20240103T090000 RRULE:FREQ=WEEKLY;BYDAY=MO,WE EXDATE:20240108T090000",
    );
    // The weekday is that of the start.
    check_series(
        "DTSTART@20260107T100000\nRRULE:FREQ=WEEKLY\nEXDATE@20260114T100000",
        &[("start", "2026-01-06")],
        "DTSTART:20260106T100000 RRULE:FREQ=WEEKLY EXDATE:20260113T100000",
    );
    let monthly = |rest| format!("DTSTART@20240103T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=5{rest}");
    check_series(&monthly(""), &[("move", "+1 day")], NOT_IN_RULE);
    check_series(
        &monthly("\nEXDATE@20240205T090000"),
        &[("move", "+2 days")],
        "DTSTART:20240105T090000 RRULE:FREQ=MONTHLY;BYMONTHDAY=5 EXDATE:20240205T090000",
    );
    // To the place of a removed occurrence.
    let removed = monthly("\nEXDATE@20240105T090000");
    check_series(&removed, &[("move", "+2 days")], OTHER_OCCURRENCES);
}

#[test]
fn exclusion_rules_and_ends_move_with_the_series() {
    check_series(
        "DTSTART@20240101T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE\nEXRULE:FREQ=WEEKLY;BYDAY=WE",
        &[("move", "+1 day")],
        "DTSTART:20240102T090000 RRULE:FREQ=WEEKLY;BYDAY=TU,TH EXRULE:FREQ=WEEKLY;BYDAY=TH",
    );
    // It has not the start, which it would remove.
    let monthly = "EXRULE:FREQ=MONTHLY;BYMONTHDAY=1";
    check_series(
        &format!("DTSTART@20260105T100000\nRRULE:FREQ=DAILY;COUNT=60\n{monthly}"),
        &[("move", "+1 day")],
        &format!("DTSTART:20260106T100000 RRULE:FREQ=DAILY;COUNT=60 {monthly}"),
    );
    // The clock skips the removed occurrence before the move, and not after it.
    check_series(
        "DTSTART@20240330T023000\nRRULE:FREQ=DAILY\nEXDATE@20240331T023000",
        &[("move", "+1h")],
        "DTSTART:20240330T033000 RRULE:FREQ=DAILY EXDATE:20240331T033000",
    );
    check_series(
        "DTSTART;VALUE=DATE:20260305\nRRULE:FREQ=DAILY;UNTIL=20260307",
        &[("start", "10:00")],
        "DTSTART:20260305T100000 RRULE:FREQ=DAILY;UNTIL=20260307T090000Z",
    );
}

#[test]
fn a_changed_occurrence_of_a_moved_series_is_there_once() {
    let moved = |parts: &[&str], scope: &str, at: &str, shift: &str| {
        let mut book = calendar(parts);
        act(&mut book, "u", select_occurrence(scope, at), &edit(&[("move", shift)]), "new")
            .map(|_| occurrences(&book, "20230101", "20240615"))
            .map_err(|error| error.to_string())
    };
    let expect = |all: &[&str]| Ok(all.iter().map(ToString::to_string).collect::<Vec<_>>());
    let yearly = "SUMMARY:A\nDTSTART;VALUE=DATE:20230228\nRRULE:FREQ=YEARLY";
    let changed = "SUMMARY:B\nRECURRENCE-ID;VALUE=DATE:20240228\nDTSTART;VALUE=DATE:20240228";
    assert_eq!(
        moved(&[yearly, changed], "all", "", "+1 day"),
        expect(&["day 20230301T000000 A", "day 20240301T000000 B"])
    );
    let monthly = "SUMMARY:A\nDTSTART:20240130T090000\nRRULE:FREQ=MONTHLY\nEXDATE:20240430T090000";
    assert_eq!(
        moved(&[monthly], "future", "20240330T090000", "+2 days"),
        expect(&["20240130T090000 A", "20240401T090000 A", "20240601T090000 A"])
    );
    // The clock skips its first time.
    let daily = "SUMMARY:A\nDTSTART;TZID=Europe/Prague:20230325T023000\nRRULE:FREQ=DAILY;COUNT=2";
    let changed = "SUMMARY:B\nRECURRENCE-ID;TZID=Europe/Prague:20230326T023000\nDTSTART;TZID=Europe/Prague:20230326T033000";
    assert_eq!(
        moved(&[daily, changed], "all", "", "+1h"),
        expect(&["20230325T033000 A", "20230326T033000 B"])
    );
    // Its occurrence, the first, would be none.
    let daily = "SUMMARY:A\nDTSTART:20240101T090000\nRRULE:FREQ=DAILY;BYDAY=MO,TU,WE";
    let changed = "SUMMARY:B\nRECURRENCE-ID:20240101T090000\nDTSTART:20240101T150000";
    assert_eq!(moved(&[daily, changed], "all", "", "+1 day"), Err(OTHER_OCCURRENCES.to_string()));
}

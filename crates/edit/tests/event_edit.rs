//! Events and tasks that are edited, by somebody in Prague on Sunday, 1 March 2026, at noon: what
//! is written then.

use crate::event::{act, bytes, calendar, edit};
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

//! New events and tasks, as somebody in Prague says them on Sunday, 1 March 2026, at noon.

use crate::event::prague_locale;
use larder_edit::event::EventRequest;
use larder_store::Kind;

/// What is written of it: `DTSTART...`, `DUE...`, `RRULE...`; or why nothing is.
fn format_event(text: &str, options: &[(&str, &str)]) -> String {
    let mut said = EventRequest { text: text.into(), ..EventRequest::default() };
    for (name, value) in options {
        let value = Some((*value).to_string());
        match *name {
            "kind" if value.as_deref() == Some("memo") => said.kind = Some(Kind::Memo),
            "kind" => said.kind = Some(Kind::Task),
            "summary" => said.summary = value,
            "start" => said.start = value,
            "end" => said.end = value,
            "for" => said.length = value,
            "every" => said.every = value,
            "rule" => said.rule = value,
            "zone" => said.zone = value,
            _ => said.all_day = true,
        }
    }
    let draft = match said.to_draft(&prague_locale()) {
        Ok(draft) => draft,
        Err(error) => return error.to_string(),
    };
    let item = match draft.to_component("u", larder_time::civil::Instant::from_seconds_clamped(0)) {
        Ok((bytes, _)) => String::from_utf8(bytes).unwrap(),
        Err(error) => return error.to_string(),
    };
    let short = |line: &str| line.replace(";TZID=Europe/Prague", "").replace(";VALUE=DATE", "");
    let shown = ["SUMMARY", "DTSTART", "DTEND", "DURATION", "DUE", "RRULE"];
    let lines = item.lines().filter(|line| shown.iter().any(|name| line.starts_with(name)));
    lines.map(short).collect::<Vec<_>>().join(" ").replace("SUMMARY:", "")
}

#[track_caller]
fn check(text: &str, options: &[(&str, &str)], expect: &str) {
    assert_eq!(format_event(text, options), expect, "{text} {options:?}");
}

#[test]
fn what_is_due_is_a_task() {
    check("Tax return due friday 17:00", &[], "Tax return DUE:20260306T170000");
    check("Tax return due friday", &[], "Tax return DUE:20260306");
    check("Steuer fällig friday", &[], "Steuer fällig DTSTART:20260306 DTEND:20260307");
    check(
        "Tax return friday 17:00",
        &[],
        "Tax return DTSTART:20260306T170000 DTEND:20260306T180000",
    );
}

#[test]
fn ends() {
    let check = |start, end, expect| check("A", &[("start", start), ("end", end)], expect);
    // Words count from now, in the same way at both ends.
    check("tomorrow 9:00", "tomorrow 11:00", "A DTSTART:20260302T090000 DTEND:20260302T110000");
    check("tomorrow", "tomorrow", "A DTSTART:20260302 DTEND:20260303");
    check("tomorrow", "+3d", "A DTSTART:20260302 DTEND:20260305");
    // A time alone is on the day of the start, or in the night after it.
    check("tomorrow 9:00", "11:00", "A DTSTART:20260302T090000 DTEND:20260302T110000");
    check("tomorrow 22:00", "2:00", "A DTSTART:20260302T220000 DTEND:20260303T020000");
    // A weekday is one that is not before it.
    check("saturday", "monday", "A DTSTART:20260307 DTEND:20260310");
    // A day belongs to it.
    check("tomorrow 9:00", "wednesday", "A DTSTART:20260302T090000 DTEND:20260305T000000");
    let before = "the end (Sun 1 Mar 2026) is before the start (Mon 2 Mar 2026)";
    check("tomorrow", "today", before);
    check(
        "tomorrow 14:00",
        "13:00",
        "the end (Mon 2 Mar 2026, 13:00) is before the start (Mon 2 Mar 2026, 14:00)",
    );
    check("2026-05-05", "3 may", "the end (Sun 3 May 2026) is before the start (Tue 5 May 2026)");
    check("tomorrow", "9:00", "the start and the end must both be dates, or both be times");
}

#[test]
fn lengths() {
    check("A tomorrow", &[("for", "2 days")], "A DTSTART:20260302 DTEND:20260304");
    check("A tomorrow", &[("for", "2h")], "\"2h\" needs a start time, such as 12:30");
    check("A", &[("kind", ""), ("for", "2h")], "a duration needs a start time");
    check("A for 2h", &[("kind", "")], "a duration needs a start time");
    check(
        "A",
        &[("start", "tomorrow 9:00"), ("for", "-1h")],
        "unknown duration \"-1h\"; try 1h30, 90min or 2 days",
    );
    // The night in which the clock goes forward.
    check("A 2026-03-29 2:30", &[], "A DTSTART:20260329T023000 DURATION:PT1H");
    check(
        "A 2026-03-29 2:30 daily",
        &[],
        "A DTSTART:20260329T023000 DURATION:PT1H RRULE:FREQ=DAILY",
    );
    check("", &[], "missing summary");
}

#[test]
fn tasks() {
    let check = |text, options: &[(&str, &str)], expect| {
        check(text, &[&[("kind", "task")], options].concat(), expect);
    };
    check("A tomorrow", &[], "A DUE:20260302");
    check("A by friday", &[], "A DUE:20260306");
    check("A by 17:00", &[], "A DUE:20260301T170000");
    check("A tomorrow 9:00-11:00", &[], "A DTSTART:20260302T090000 DUE:20260302T110000");
    check("A tomorrow", &[("end", "friday")], "A DTSTART:20260302 DUE:20260306");
    check("A every friday", &[], "A DTSTART:20260306 DUE:20260306 RRULE:FREQ=WEEKLY;BYDAY=FR");
    check(
        "A every friday 17:00",
        &[],
        "A DTSTART:20260306T170000 DUE:20260306T170000 RRULE:FREQ=WEEKLY;BYDAY=FR",
    );
    for options in [
        [("end", "friday 17:00"), ("every", "week")],
        [("end", "friday 17:00"), ("every", "weekly")],
    ] {
        check("A", &options, "A DTSTART:20260306T170000 DUE:20260306T170000 RRULE:FREQ=WEEKLY");
    }
    check(
        "A every monday",
        &[("end", "friday 17:00")],
        "A DTSTART:20260309T170000 DUE:20260309T170000 RRULE:FREQ=WEEKLY;BYDAY=MO",
    );
    check("A", &[("start", "friday"), ("end", "monday")], "A DTSTART:20260306 DUE:20260309");
    check(
        "A",
        &[("start", "friday"), ("end", "tomorrow")],
        "the end (Mon 2 Mar 2026) is before the start (Fri 6 Mar 2026)",
    );
}

#[test]
fn rules() {
    // It begins when the rule first has it.
    for every in ["tuesday", "every tuesday"] {
        check(
            "A",
            &[("start", "tomorrow 9:00"), ("every", every)],
            "A DTSTART:20260303T090000 DTEND:20260303T100000 RRULE:FREQ=WEEKLY;BYDAY=TU",
        );
    }
    check(
        "A tomorrow 9:00",
        &[("rule", "FREQ=WEEKLY;BYDAY=TU")],
        "A DTSTART:20260303T090000 DTEND:20260303T100000 RRULE:FREQ=WEEKLY;BYDAY=TU",
    );
    check(
        "A tomorrow",
        &[("rule", "FREQ=DAILY;UNTIL=20260101")],
        "the rule FREQ=DAILY;UNTIL=20260101 has no occurrence after the start",
    );
    // The last day is one of the rule.
    check(
        "A",
        &[("start", "2026-03-06 17:00"), ("every", "week until 2026-03-20")],
        "A DTSTART:20260306T170000 DTEND:20260306T180000 RRULE:FREQ=WEEKLY;UNTIL=20260320T225959Z",
    );
    check(
        "A",
        &[("start", "2026-03-06"), ("every", "week until 2026-03-20")],
        "A DTSTART:20260306 DTEND:20260307 RRULE:FREQ=WEEKLY;UNTIL=20260320",
    );
    check(
        "A tomorrow",
        &[("every", "day 10 times")],
        "A DTSTART:20260302 DTEND:20260303 RRULE:FREQ=DAILY;COUNT=10",
    );
    check(
        "A",
        &[("every", "monday 18:00")],
        "A DTSTART:20260302T180000 DTEND:20260302T190000 RRULE:FREQ=WEEKLY;BYDAY=MO",
    );
    for every in ["moonday", "monday foo", "", "monday at Bistro"] {
        check(
            "A tomorrow",
            &[("every", every)],
            &format!(
                "{every:?} is not a recurrence; use for example monday, day, 2 weeks or month"
            ),
        );
    }
}

#[test]
fn zones() {
    let expect = "A DTSTART;TZID=America/New_York:20260302T150000 DTEND;TZID=America/New_York:20260302T160000";
    check("A tomorrow 15:00", &[("zone", "America/New_York")], expect);
    check("A tomorrow 15:00 America/New_York", &[], expect);
    check("A tomorrow 3pm New York time", &[], expect);
    // In Auckland, it is tomorrow already.
    check(
        "A tomorrow 15:00 Pacific/Auckland",
        &[],
        "A DTSTART;TZID=Pacific/Auckland:20260303T150000 DTEND;TZID=Pacific/Auckland:20260303T160000",
    );
    check("A tomorrow 15:00 Europe/Nowhere", &[], "unknown time zone \"Europe/Nowhere\"");
}

/// A birthday or a holiday does not make the day busy.
#[test]
fn all_day_events_are_free() {
    let is_free = |kind: Option<Kind>, text: &str| {
        let request = EventRequest { text: text.into(), kind, ..EventRequest::default() };
        let draft = request.to_draft(&prague_locale()).unwrap();
        let now = larder_time::civil::Instant::from_seconds_clamped(0);
        let item = String::from_utf8(draft.to_component("u", now).unwrap().0).unwrap();
        item.contains("TRANSP:TRANSPARENT\r\n")
    };
    assert!(is_free(None, "Anna's birthday tomorrow"));
    assert!(is_free(None, "Garbage every 2 weeks on thursday"));
    assert!(!is_free(None, "Lunch tomorrow 12:30"));
    assert!(!is_free(Some(Kind::Task), "Tax return tomorrow"));
    assert!(!is_free(Some(Kind::Memo), "Idea tomorrow"));
}

#[test]
fn memos() {
    let error = "a memo cannot have an end or a due time: make it a task or an event";
    check("A", &[("kind", "memo"), ("end", "friday")], error);
    check("A until friday", &[("kind", "memo")], error);
    check("A", &[("kind", "memo"), ("for", "2h")], error);
    check("A tomorrow", &[("kind", "memo")], "A DTSTART:20260302");
}

/// "--every" reads words that would be left over elsewhere.
#[test]
fn every() {
    let check = |every: &str, expect: &str| {
        check("A", &[("start", "tomorrow 9:00"), ("every", every)], expect);
    };
    let at = "A DTSTART:20260302T090000 DTEND:20260302T100000 RRULE:FREQ";
    check("2 weeks", &format!("{at}=WEEKLY;INTERVAL=2"));
    check("weekday except friday", &format!("{at}=WEEKLY;BYDAY=MO,TU,WE,TH"));
    check("quarter", &format!("{at}=MONTHLY;INTERVAL=3"));
    check(
        "monday in december",
        "cannot combine \"december\" with the other date or time; rephrase it, or quote it to keep it in the summary",
    );
}

//! `add`, `edit` and `remove` of events, tasks and memos.

use crate::test_home::Home;
use insta::assert_snapshot;

const SERIES: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:daily\r\nSUMMARY:Stand-up\r\nDTSTART:20260413T090000Z\r\nDTEND:20260413T091500Z\r\nRRULE:FREQ=DAILY;COUNT=4\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn series() -> Home {
    let home = Home::new();
    home.write("daily.ics", SERIES);
    assert_eq!(home.code(&["add", "daily.ics"], 0).stderr(), "");
    home
}

#[test]
fn a_dry_run_prints_titles() {
    let home = series();
    let args = ["remove", "--query", "stand", "--dry-run"];
    assert!(home.ok(&args).ends_with("  Stand-up\n"));
    let object = &home.json(&args)[0];
    assert_eq!((&object["summary"], object.get("full_name")), (&"Stand-up".into(), None));
    assert!(home.ok(&["remove", "--query", "stand"]).contains("  Stand-up. Undo: "));
}

/// Dates and zones are explicit, as the test knows neither the day nor the zone it runs in.
#[test]
fn an_event_is_added_in_words() {
    let home = Home::new();
    let lunch = "Lunch with Anna 2026-03-06 12:30 for 1h at Bistro #food !high";
    let run =
        home.run(&["add", "--kind", "event", lunch, "--zone", "Europe/Prague", "--alarm", "15min"]);
    let said: Vec<&str> = run
        .out
        .split(|byte| *byte == b'\n')
        .skip(1)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    assert_snapshot!(said.join("\n"), @"
    when: Fri 6 Mar 2026, 12:30-13:30 (1 hour), Europe/Prague; here Fri 6 Mar 2026, 11:30
    location: Bistro
    categories: food
    priority: 1
    alarm: 15 minutes before it begins
    ");
    let bytes = home.ok(&["export", "calendar"]);
    for line in [
        "SUMMARY:Lunch with Anna\r\n",
        "DTSTART;TZID=Europe/Prague:20260306T123000\r\n",
        "DTEND;TZID=Europe/Prague:20260306T133000\r\n",
        "LOCATION:Bistro\r\n",
        "CATEGORIES:food\r\n",
        "PRIORITY:1\r\n",
        "TRIGGER:-PT15M\r\n",
        "SEQUENCE:0\r\n",
        "RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\n",
    ] {
        assert!(bytes.contains(line), "{line} in {bytes}");
    }
    home.assert_store_is_sound();
}

#[test]
fn equal_alarms_are_added_once() {
    let home = Home::new();
    let lunch = "Lunch 2026-03-06 12:30 alarm 1d alarm 24h alarm 15min";
    let told = home.ok(&["add", lunch, "--alarm", "1 day", "--alarm", "15 min"]);
    let alarms: Vec<&str> = told.lines().filter(|line| line.contains("alarm:")).collect();
    assert_eq!(alarms, ["  alarm: 1 day before it begins", "  alarm: 15 minutes before it begins"]);
    let id = told.split(' ').next().unwrap();
    home.ok(&["edit", id, "--alarm", "1h", "--alarm", "60min", "--alarm", "2h"]);
    assert_eq!(home.ok(&["export", "calendar"]).matches("TRIGGER:").count(), 2);
}

/// A date and a zone, depending on the environment.
#[test]
fn the_understood_event_is_printed() {
    let check = |tz: &str, locale: &str, args: &[&str], expect: &str| {
        let home = Home::new();
        let mut command = home.command(&["add"]);
        command.args(args).env("TZ", tz).env("LC_ALL", locale);
        let run = home.finish(command.output().unwrap());
        let said = run.stdout();
        let said: Vec<&str> = said.lines().skip(1).map(str::trim).collect();
        assert_eq!(said.join("; "), expect, "{}", run.masked_output());
    };
    let lunch = &["Lunch 2026-03-06 12:30"];
    check("Europe/Berlin", "C", lunch, "when: Fri 6 Mar 2026, 12:30-13:30 (1 hour), Europe/Berlin");
    check(
        "America/New_York",
        "de_DE.UTF-8",
        lunch,
        "when: Fr 6. März 2026, 12:30-13:30 (1 hour), America/New_York",
    );
    check(
        "Asia/Kolkata",
        "de_DE.UTF-8",
        &["Lunch 2026-03-06 12:30", "--zone", "utc", "--alarm", "0min"],
        "when: Fr 6. März 2026, 12:30-13:30 (1 hour), UTC; here Fr 6. März 2026, 18:00; alarm: when it begins",
    );
    // The machine's zone has no name; an equivalent named zone is used.
    for (tz, name) in [
        ("CET-1CEST,M3.5.0,M10.5.0/3", "Europe/Budapest"),
        ("JST-9", "Asia/Seoul"),
        ("ABC0", "UTC"),
    ] {
        check(tz, "C", lunch, &format!("when: Fri 6 Mar 2026, 12:30-13:30 (1 hour), {name}"));
    }
    check("ABC-1:07", "C", lunch, "when: Fri 6 Mar 2026, 12:30-13:30 (1 hour), floating");
    // The night in which clocks go forward.
    check(
        "Europe/Berlin",
        "C",
        &["Run 2026-03-29 2:30 daily until 2026-04-05"],
        "when: Sun 29 Mar 2026, 03:30-04:30 (1 hour), Europe/Berlin; 02:30 does not exist on that day; repeats: every day, until Sun 5 Apr 2026",
    );
    let task = |args: &[&str], expect| {
        check("Europe/Berlin", "C", &[&["--kind", "task", "Report"], args].concat(), expect);
    };
    task(
        &["--due", "2026-03-06", "--every", "week"],
        "when: due Fri 6 Mar 2026; repeats: every week",
    );
    task(
        &["--due", "2026-03-06 17:00", "--alarm", "1h"],
        "when: due Fri 6 Mar 2026, 17:00, Europe/Berlin; alarm: 1 hour before it is due",
    );
    task(
        &["--start", "2026-03-02", "--due", "2026-03-06"],
        "when: Mon 2 Mar 2026, due Fri 6 Mar 2026",
    );
}

#[test]
fn an_event_is_added_with_options() {
    let home = Home::new();
    let check = |args: &[&str], expect: &[&str]| {
        let mut all = vec!["add", "--into", "c"];
        all.extend(args);
        if !args.contains(&"--zone") {
            all.extend(["--zone", "America/New_York"]);
        }
        let run = home.run(&all);
        assert_eq!(run.code, 0, "{}", run.masked_output());
        let bytes = home.ok(&["export", "c"]);
        for line in expect {
            assert!(bytes.contains(&format!("{line}\r\n")), "{line} in {bytes}");
        }
    };
    check(
        &["--summary", "A", "--start", "2026-03-06 9:00", "--end", "11:00"],
        &[
            "DTSTART;TZID=America/New_York:20260306T090000",
            "DTEND;TZID=America/New_York:20260306T110000",
        ],
    );
    check(
        &[
            "--summary",
            "B",
            "--start",
            "2026-04-01",
            "--end",
            "2026-04-03",
            "--every",
            "month until 2026-12-31",
        ],
        &["DTSTART;VALUE=DATE:20260401", "DTEND;VALUE=DATE:20260404"],
    );
    check(&["--kind", "task", "Taxes", "--due", "2026-05-31"], &["DUE;VALUE=DATE:20260531"]);
    check(
        &["--kind", "memo", "Thoughts", "--start", "2026-05-31", "--description", "many, many"],
        &["BEGIN:VJOURNAL", "DESCRIPTION:many\\, many"],
    );
    check(
        &["C", "2026-06-01", "9:00", "--zone", "utc", "--rule", "FREQ=DAILY;COUNT=2"],
        &["DTSTART:20260601T090000Z", "RRULE:FREQ=DAILY;COUNT=2"],
    );
    home.assert_store_is_sound();
}

#[test]
fn unclear_sentences_are_refused() {
    let home = Home::new();
    assert_snapshot!(home.run(&["add", "Buy milk"]).masked_output(), @"
    ! error: found no date or time, so the kind is unclear: event, task or memo
    ! hint: an event needs a time: tomorrow 12:30, friday, 2026-03-05
    ! hint: for an item without a time, add --kind task or --kind memo
    exit 2
    ");
    assert_snapshot!(home.run(&["add", "Holidays until friday"]).masked_output(), @r#"
    ! error: found an end but no start, so the kind is unclear: event or task
    ! hint: a task is due: write "due friday" or "by friday", or add --kind task
    ! hint: an event needs a start: "from today until friday", or --start TIME
    exit 2
    "#);
    assert_snapshot!(home.run(&["add", "--kind", "event", "Buy milk"]).masked_output(), @"
    ! error: an event needs a start time
    ! hint: add a time: tomorrow 12:30, friday, 2026-03-05; or --start TIME
    exit 2
    ");
    assert_snapshot!(home.run(&["add", ""]).masked_output(), @r#"
    ! error: missing summary
    ! hint: for example: larder add --kind event "Lunch tomorrow 12:30"
    exit 2
    "#);
    assert_snapshot!(home.run(&["add", "Lunch 2026-03-06 12:30", "--for", "-1h"]).masked_output(), @r#"
    ! error: unknown duration "-1h"; try 1h30, 90min or 2 days
    exit 2
    "#);
    assert_snapshot!(home.run(&["add", "Lunch 2026-03-06 12:30", "--zone", "Nowhere"]).masked_output(), @r#"
    ! error: unknown time zone "Nowhere"
    ! hint: use a name such as Europe/Prague, or utc or floating
    exit 2
    "#);
    assert_snapshot!(home.run(&["add", "--summary", "x", "--start", "someday"]).masked_output(), @r#"
    ! error: unknown date or time "someday"; try today, next friday, 2026-03-05, 5 march 14:00 or 12:30
    exit 2
    "#);
}

#[test]
fn occurrences() {
    let home = series();
    assert_snapshot!(home.run(&["remove", "uid:daily"]).masked_output(), @"
    ! error: the item recurs: choose which occurrences to change
    ! hint: for one occurrence: larder remove uid:daily --scope this --occurrence TIME
    ! hint: for this and future occurrences: larder remove uid:daily --scope future --occurrence TIME
    ! hint: for all occurrences: larder remove uid:daily --scope all
    exit 2
    ");
    assert_snapshot!(home.run(&["remove", "uid:daily/20260414T090000Z"]).masked_output(), @"Removed one occurrence of gkmbtgav  Stand-up. Undo: larder undo 2");
    assert_snapshot!(home.run(&["edit", "calendar/daily", "--scope", "this", "--occurrence", "20260415T090000Z", "--start", "2026-06-01", "--set", "summary=Moved"]).masked_output(), @r"
    gkmbtgav  Stand-up  changed
      g3era3sj  Mon 1 Jun 2026, 09:00-09:15 (15 minutes), UTC
    ");
    // Selected by its new time, which evolution-data-server does not support.
    assert_snapshot!(home.run(&["find", "when:2026-06"]).masked_output(), @"g3era3sj  2026-06-01 09:00  Moved");
    assert_snapshot!(home.run(&["edit", "uid:daily", "--scope", "all", "--move", "-30min"]).masked_output(), @"
    gkmbtgav  Stand-up  changed
      cn95cfyc  Mon 1 Jun 2026, 09:00-09:15 (15 minutes), UTC
      gkmbtgav  Mon 13 Apr 2026, 08:30-08:45 (15 minutes), UTC, every day, 4 times
    ! warning: 1 override: values that differ from the series are kept
    ");
    assert_snapshot!(home.run(&["edit", "uid:daily", "--scope", "future", "--occurrence", "2026-04-16", "--set", "summary=Last"]).masked_output().lines().count(), @r"3");
    // The ID of an override removes only that occurrence.
    let moved = home.ok(&["find", "when:2026-06"]);
    assert_snapshot!(home.run(&["remove", moved.split(' ').next().unwrap()]).masked_output(), @"
    Removed one occurrence of cn95cfyc  Moved. Undo: larder undo 6
    ! note: removed only this occurrence; use --scope all to remove all of them
    ");
    assert_snapshot!(home.run(&["remove", "uid:daily", "--scope", "all"]).masked_output(), @"Removed all occurrences of gkmbtgav  Stand-up. Undo: larder undo 7");
    assert_eq!(home.run(&["find", "--count", "when:2026"]).stdout(), "1\n");
    for _ in 0..6 {
        assert_eq!(home.run(&["undo"]).code, 0);
    }
    assert!(
        home.ok(&["export", "calendar"]).contains(SERIES.split_once("BEGIN:VEVENT").unwrap().1)
    );
    home.assert_store_is_sound();
}

#[test]
fn options_change_an_event() {
    let home = series();
    // Tests have no terminal, and no editor is set.
    assert_snapshot!(home.run(&["edit", "uid:daily"]).masked_output(), @"
    ! error: cannot open an editor: not a terminal
    ! hint: change events, tasks and memos with --set FIELD=TEXT, --start TIME and other options
    ! hint: read the new text from a file with --from FILE
    ! hint: or set EDITOR, VISUAL or editor in config.toml to an editor that needs no terminal
    exit 2
    ");
    let all = ["edit", "uid:daily", "--scope", "all"];
    let edit = |options: &[&str]| home.run(&[&all, options].concat()).masked_output();
    assert_snapshot!(edit(&["--set", "DTSTART:rubbish"]), @r#"
    ! error: field "DTSTART:rubbish" cannot be set
    ! hint: write --set FIELD=TEXT, for example --set summary=Lunch
    ! hint: `larder fields` lists the fields; times have options such as --start
    exit 2
    "#);
    assert_snapshot!(edit(&["--set", "status=completed"]), @r#"
    ! error: "completed" is not a valid status: use TENTATIVE, CONFIRMED or CANCELLED
    exit 2
    "#);
    assert_snapshot!(edit(&["--rule", "FREQ=WEEKLY;BYDAY=TU"]), @"
    ! error: the start is not in the recurrence set of the new rule: set a new start as well
    ! hint: give the start with --start TIME; it must be a time of the rule
    exit 2
    ");
    assert_snapshot!(edit(&["--summary", "Sit-down", "--all-day", "--category", "a", "--category", "b", "--priority", "1", "--alarm", "1 day", "--description", "d"]), @"
    gkmbtgav  Sit-down  changed
      gkmbtgav  Mon 13 Apr 2026, all day, every day, 4 times
    ");
    let bytes = home.ok(&["export", "calendar"]);
    for line in ["CATEGORIES:a,b", "PRIORITY:1", "TRIGGER:-P1D", "DTSTART;VALUE=DATE:20260413"] {
        assert!(bytes.contains(&format!("{line}\r\n")), "{line} in {bytes}");
    }
    home.assert_store_is_sound();
}

#[test]
fn a_text_replaces_an_event() {
    let home = series();
    let text = home.ok(&["show", "uid:daily", "--format", "raw"]);
    home.write("new.ics", text.replace("Stand-up", "Sit-down"));
    assert_snapshot!(home.run(&["edit", "uid:daily", "--from", "new.ics"]).masked_output(), @r"gkmbtgav  Sit-down  changed");
    home.write("new.ics", text.replace("UID:daily", "UID:other"));
    assert_snapshot!(home.run(&["edit", "uid:daily", "--from", "new.ics"]).masked_output(), @r#"
    ! error: new.ics: the UID cannot be changed: it must stay "daily"
    ! hint: nothing was changed; correct the text and run the command again
    exit 3
    "#);
    home.write("new.ics", text.replace("END:VEVENT", ""));
    assert_snapshot!(home.run(&["edit", "uid:daily", "--from", "new.ics"]).masked_output(), @"
    ! error: new.ics: missing END:VEVENT
    ! hint: nothing was changed; correct the text and run the command again
    exit 3
    ");
    assert_snapshot!(home.run(&["edit", "uid:daily", "--occurrence", "20260414T090000Z"]).masked_output(), @"
    ! error: no change given
    ! hint: add an option such as --set FIELD=TEXT, --start TIME or --move DURATION
    exit 2
    ");
    home.assert_store_is_sound();
}

/// An override with RANGE=THISANDFUTURE belongs to its series: it moves with the series, and the
/// printed ID exists.
#[test]
fn the_id_of_an_override_selects_the_series() {
    let home = Home::new();
    let part = "BEGIN:VEVENT\r\nUID:daily\r\nSUMMARY:Late\r\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260415T090000Z\r\nDTSTART:20260415T110000Z\r\nDURATION:PT15M\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    home.write("daily.ics", SERIES.replace("END:VCALENDAR\r\n", part));
    home.ok(&["import", "daily.ics"]);
    let found = home.ok(&["--format", "json", "find", "summary:late"]);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let id = found["id"].as_str().unwrap();
    for remove in [false, true] {
        let args: &[&str] = match remove {
            true => &["remove", id, "--scope", "all"],
            false => &["edit", id, "--scope", "all", "--move", "+1h"],
        };
        let told = home.ok(args);
        let (handle, _) = told.split_once(' ').unwrap();
        let there = home.run(&["show", handle]).code;
        let agenda = home.run(&["agenda", "2026-04-13", "2026-04-16"]);
        let shown = agenda.stdout();
        let hours = shown.lines().filter_map(|line| line.trim().get(..2));
        let hours: Vec<&str> = hours.filter(|hour| hour.parse::<u8>().is_ok()).collect();
        let expect: &[&str] = if remove { &[] } else { &["10", "10", "12", "12"] };
        assert_eq!(
            (hours, there == 0),
            (expect.to_vec(), !remove),
            "{told}{}",
            agenda.masked_output()
        );
        home.ok(&["undo", "--quiet"]);
    }
    home.assert_store_is_sound();
}

/// Adds an override of the series.
fn add_override(home: &Home, lines: &[&str]) {
    let begin = ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:daily"];
    let end = ["END:VEVENT", "END:VCALENDAR", ""];
    home.write("override.ics", [&begin, lines, &end].concat().join("\r\n"));
    home.ok(&["add", "override.ics", "--into", "calendar"]);
}

/// A series whose second occurrence was moved and cancelled.
fn cancelled_occurrence() -> Home {
    let home = series();
    let lines = [
        "SUMMARY:Offsite",
        "RECURRENCE-ID:20260414T090000Z",
        "DTSTART:20260415T150000Z",
        "DTEND:20260415T151500Z",
        "STATUS:CANCELLED",
    ];
    add_override(&home, &lines);
    assert_eq!(starts(&home), ["20260413", "20260415", "20260415", "20260416"]);
    home
}

/// The days of the occurrences, in their order.
fn starts(home: &Home) -> Vec<String> {
    let listed = home.json(&["agenda", "2026-04-01", "2026-05-01"]);
    let day = |one: &serde_json::Value| one["start"].as_str().unwrap()[..10].replace('-', "");
    listed.iter().map(day).collect()
}

/// Without its override, the occurrence would have the time of the series again.
#[test]
fn a_query_removes_an_override_with_its_occurrence() {
    let home = cancelled_occurrence();
    let args = ["remove", "--query", "is:cancelled"];
    assert!(home.ok(&[&args[..], &["--dry-run"]].concat()).ends_with("  Offsite\n"));
    assert!(home.ok(&args).contains("  Offsite. Undo: "));
    assert_eq!(starts(&home), ["20260413", "20260415", "20260416"]);
    assert!(home.ok(&["export", "calendar"]).contains("EXDATE:20260414T090000Z\r\n"));
    home.ok(&["undo"]);
    assert_eq!(starts(&home).len(), 4);
    home.assert_store_is_sound();
}

#[test]
fn a_query_removes_a_series_with_its_overrides() {
    let home = cancelled_occurrence();
    let args = ["remove", "--query", "summary:stand"];
    let listed = home.ok(&[&args[..], &["--dry-run"]].concat());
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    assert_eq!(names, ["Stand-up", "Offsite"]);
    assert!(home.ok(&args).starts_with("Removed 2 items. Undo: "));
    home.code(&["agenda", "2026-04-01", "2026-05-01"], 1);
    home.ok(&["undo"]);
    assert_eq!(starts(&home).len(), 4);
}

/// A dry run refuses the same requests, and names the same items.
#[test]
fn a_dry_run_of_occurrences_is_like_the_removal() {
    let home = cancelled_occurrence();
    for (args, code) in [
        (&["remove", "uid:daily"][..], 2),
        (&["remove", "uid:daily", "--scope", "future"], 2),
        (&["remove", "uid:daily", "--scope", "this", "--occurrence", "2026-04-20"], 1),
    ] {
        let dry = [args, &["--dry-run"]].concat();
        assert_eq!(home.code(&dry, code).stderr(), home.code(args, code).stderr());
    }
    for (scope, count) in [("all", 2), ("this", 1)] {
        let args =
            ["remove", "uid:daily", "--dry-run", "--scope", scope, "--occurrence", "2026-04-16"];
        assert_eq!(home.ok(&args).lines().count(), count, "{scope}");
    }
    assert_eq!(starts(&home).len(), 4);
}

/// Such an override gives all following occurrences its values.
#[test]
fn one_occurrence_of_an_override_of_all_following_ones_is_not_changed() {
    let home = series();
    let lines = [
        "SUMMARY:Later",
        "RECURRENCE-ID;RANGE=THISANDFUTURE:20260414T090000Z",
        "DTSTART:20260414T110000Z",
        "DTEND:20260414T111500Z",
    ];
    add_override(&home, &lines);
    let named = ["uid:daily", "--scope", "this", "--occurrence", "2026-04-14"];
    let edit = [&["edit"], &named[..], &["--start", "15:00"]].concat();
    for args in [edit, [&["remove"], &named[..]].concat()] {
        let told = home.code(&args, 3).stderr();
        assert!(told.contains("applies to all following ones"), "{told}");
    }
    home.ok(&["remove", "--query", "summary:later"]);
    assert_eq!(starts(&home), ["20260413"]);
}

#[test]
fn a_category_may_have_a_comma() {
    let home = series();
    home.ok(&[
        "edit",
        "uid:daily",
        "--scope",
        "all",
        "--category",
        "Berger, Anna",
        "--category",
        "a\\b",
    ]);
    assert!(home.ok(&["export", "calendar"]).contains("CATEGORIES:Berger\\, Anna,a\\\\b\r\n"));
    home.ok(&["edit", "uid:daily", "--scope", "all", "--set", "category=one, two\\, three"]);
    assert!(home.ok(&["export", "calendar"]).contains("CATEGORIES:one,two\\, three\r\n"));
}

/// The end of an event at midnight is the end of the day before, but a due time is not.
#[test]
fn a_task_is_due_at_midnight_on_the_day_that_begins() {
    let home = Home::new();
    home.write("task.ics", "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VTODO\r\nUID:t\r\nSUMMARY:Report\r\nDTSTART:20260301T080000\r\nDUE:20260306T000000\r\nEND:VTODO\r\nEND:VCALENDAR\r\n");
    home.ok(&["add", "task.ics"]);
    assert!(home.ok(&["agenda", "2026-03-06"]).starts_with("Fri 6 Mar 2026\n  due 00:00  Report"));
    home.code(&["agenda", "2026-03-05"], 1);
    home.ok(&["add", "Lunch 2026-03-06 12:30"]);
    let run = home.code(&["agenda", "2026-03-06", "-n", "1"], 0);
    assert!(run.stderr().contains("list cut at 1"), "{}", run.masked_output());
    assert_eq!(home.ok(&["agenda", "2026-03-06"]).lines().count(), 3);
    assert!(home.ok(&["edit", "uid:t", "--priority", "1"]).contains("due Fri 6 Mar 2026, 00:00"));
}

/// The times of a vCalendar 1.0 from a phone have no zone.
#[test]
fn an_alarm_without_a_zone_rings_by_the_clock_of_the_start() {
    for (zone, start, alarm) in [
        ("", "20260305T090000", "DALARM:20260305T083000;;;Meeting"),
        ("", "20260305T090000", "AALARM:20260305T083000"),
        (";TZID=America/New_York", "20260305T090000", "DALARM:20260305T083000"),
    ] {
        let home = Home::new();
        let event = format!(
            "BEGIN:VCALENDAR\r\nVERSION:1.0\r\nBEGIN:VEVENT\r\nUID:a\r\nSUMMARY:Meeting\r\nDTSTART{zone}:{start}\r\n{alarm}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        );
        home.write("event.vcs", &event);
        home.ok(&["add", "event.vcs"]);
        let args = ["find", "uid:a", "--alarms", "2026-03-05..2026-03-06"];
        let run = home.finish(home.command(&args).env("TZ", "Europe/Vienna").output().unwrap());
        let expected = if zone.is_empty() { "08:30" } else { "14:30" };
        assert!(run.stdout().contains(expected), "{}", run.masked_output());
    }
}

/// An export has the name of the calendar, by which an import finds the collection.
#[test]
fn a_renamed_calendar_is_exported_with_its_name() {
    let home = Home::new();
    let named =
        SERIES.replace("VERSION:2.0\r\n", "VERSION:2.0\r\nX-WR-CALNAME:Team\r\nNAME:The team\r\n");
    home.write("team.ics", named);
    home.ok(&["import", "team.ics"]);
    home.ok(&["collections", "rename", "Team", "Crew, new"]);
    let exported = home.ok(&["export", "Crew, new"]);
    assert!(exported.contains("X-WR-CALNAME:Crew\\, new\r\nNAME:The team\r\n"), "{exported}");
    home.write("crew.ics", &exported);
    home.ok(&["import", "crew.ics"]);
    let names = home.ok(&["collections"]);
    assert!(names.contains("Crew, new") && !names.contains("Team"), "{names}");
    home.ok(&["undo"]);
    assert!(home.ok(&["export", "Team"]).contains("X-WR-CALNAME:Team\r\n"));
    home.assert_store_is_sound();
}

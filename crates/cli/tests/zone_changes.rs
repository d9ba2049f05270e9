//! Changes of recurring events in one time zone by a user in another one, and hours that a change
//! of clocks skips or repeats.

use crate::test_home::{Home, Run};

/// Runs the program in Berlin.
fn berlin(home: &Home, args: &[&str]) -> Run {
    let mut command = home.command(args);
    command.env("TZ", "Europe/Berlin").env("LC_ALL", "C");
    home.finish(command.output().unwrap())
}

fn calendar(events: &[&str]) -> Home {
    let home = Home::new();
    let events: String =
        events.iter().map(|lines| format!("BEGIN:VEVENT\n{lines}\nEND:VEVENT\n")).collect();
    home.write("c.ics", format!("BEGIN:VCALENDAR\nVERSION:2.0\n{events}END:VCALENDAR\n"));
    assert_eq!(home.run(&["import", "c.ics"]).code, 0);
    home
}

/// Returns the agenda of some days in Berlin, one line for each entry.
fn agenda(home: &Home, args: &[&str]) -> String {
    let mut days: Vec<String> = Vec::new();
    for line in berlin(home, &[&["agenda"], args].concat()).stdout().lines() {
        match line.strip_prefix("  ") {
            Some(entry) => {
                // The last column has the IDs; busy times have none.
                let entry = entry.trim().rsplit_once("  ").map_or(entry, |(entry, _id)| entry);
                days.last_mut().unwrap().push_str(&format!("; {}", entry.trim()));
            }
            None if line.is_empty() => {}
            None => days.push(line.into()),
        }
    }
    days.join("\n")
}

const NIGHTLY: &str = "UID:n\nSUMMARY:Nightly\nDTSTART;TZID=America/New_York:20261201T230000\nDURATION:PT30M\nRRULE:FREQ=DAILY";

#[test]
fn a_day_is_in_the_zone_of_the_user() {
    let check = |args: &[&str], expect: &str| {
        let home = calendar(&[NIGHTLY]);
        let run = berlin(&home, args);
        assert_eq!(run.code, 0, "{}", run.masked_output());
        assert_eq!(agenda(&home, &["2026-12-09", "2026-12-11"]), expect, "{args:?}");
    };
    let this = ["uid:n", "--scope", "this", "--occurrence"];
    let left = "Wed 9 Dec 2026; 05:00-05:30  Nightly\nFri 11 Dec 2026; 05:00-05:30  Nightly";
    // By day, by time, and as in JSON.
    for at in [
        "2026-12-10",
        "2026-12-10 5:00",
        "2026-12-10T05:00:00+01:00",
        "2026-12-10T04:00:00Z",
        "20261209T230000",
    ] {
        check(&[&["remove"], &this[..], &[at]].concat(), left);
    }
    check(
        &["remove", "uid:n", "--scope", "future", "--occurrence", "2026-12-10"],
        "Wed 9 Dec 2026; 05:00-05:30  Nightly",
    );
    let moved = "Wed 9 Dec 2026; 05:00-05:30  Nightly\nThu 10 Dec 2026; 10:00-10:30  Nightly\nFri 11 Dec 2026; 05:00-05:30  Nightly";
    check(&[&["edit"], &this[..], &["2026-12-10", "--start", "10:00"]].concat(), moved);
}

/// Runs commands in order, with ID for the item that was added, and returns the last output.
fn in_turn(home: &Home, changes: &[&[&str]]) -> String {
    let (mut id, mut told) = (String::new(), String::new());
    for change in changes {
        let args: Vec<&str> =
            change.iter().map(|arg| if *arg == "ID" { id.as_str() } else { arg }).collect();
        let run = berlin(home, &args);
        assert_eq!(run.code, 0, "{}", run.masked_output());
        told = run.stdout();
        id = told.split(' ').next().unwrap().into();
    }
    told
}

#[test]
fn an_hour_that_comes_twice() {
    let check = |changes: &[&[&str]], lines: &[&str], days: &[&str], expect: &str| {
        let home = Home::new();
        in_turn(&home, changes);
        let bytes = home.ok(&["export", "calendar"]);
        for line in lines {
            assert!(bytes.contains(&format!("{line}\r\n")), "{line} in {bytes}");
        }
        assert_eq!(agenda(&home, days), expect, "{changes:?}");
    };
    let fold: &[&str] = &["add", "F 2026-10-25 02:30 for 1h"];
    let twice = "Sun 25 Oct 2026; 02:30-02:30  F (1 hour)";
    let start = "DTSTART;TZID=Europe/Berlin:20261025T023000";
    check(&[fold], &[start, "DURATION:PT1H"], &["2026-10-25"], twice);
    check(&[fold], &[], &["2026-10-25", "--busy"], "Sun 25 Oct 2026; 02:30-02:30");
    let short: &[&str] = &["add", "F 2026-10-25 02:30 for 30min"];
    let shorter = "Sun 25 Oct 2026; 02:30-02:00  F (30 minutes)";
    check(&[short], &["DURATION:PT30M"], &["2026-10-25"], shorter);
    let two: &[&str] = &["add", "--summary", "F", "--start", "2026-10-25 01:30", "--for", "2h"];
    check(&[two], &["DURATION:PT2H"], &["2026-10-25"], "Sun 25 Oct 2026; 01:30-02:30  F (2 hours)");
    let ends = "DTEND;TZID=Europe/Berlin:20261025T043000";
    let more: &[&str] = &["add", "F 2026-10-25 01:30 for 4h"];
    check(&[more], &[ends], &["2026-10-25"], "Sun 25 Oct 2026; 01:30-04:30  F (4 hours)");
    // A series begins on a day of its rule.
    let weekly: &[&str] = &["add", "F every monday 02:30 from 2026-10-25 for 1h"];
    check(
        &[weekly],
        &["DTSTART;TZID=Europe/Berlin:20261026T023000"],
        &["2026-10-26"],
        "Mon 26 Oct 2026; 02:30-03:30  F",
    );
    // Moved into that hour and further.
    let before: &[&str] = &["add", "F 2027-10-30 02:30 for 1h"];
    let on: &[&str] = &["edit", "ID", "--move", "+1d"];
    check(
        &[before, on],
        &["DURATION:PT1H"],
        &["2027-10-31"],
        "Sun 31 Oct 2027; 02:30-02:30  F (1 hour)",
    );
    check(&[before, on, on], &["DURATION:PT1H"], &["2027-11-01"], "Mon 1 Nov 2027; 02:30-03:30  F");
    let long: &[&str] = &["edit", "ID", "--for", "2h"];
    check(
        &[fold, long],
        &["DTEND;TZID=Europe/Berlin:20261025T033000"],
        &["2026-10-25"],
        "Sun 25 Oct 2026; 02:30-03:30  F (2 hours)",
    );
}

#[test]
fn a_time_that_does_not_exist() {
    let check = |changes: &[&[&str]], expect: &str, lines: &[&str]| {
        let home = Home::new();
        let told = in_turn(&home, changes);
        assert!(told.contains(expect), "{expect} in {told}");
        let bytes = home.ok(&["export", "calendar"]);
        for line in lines {
            assert!(bytes.contains(&format!("{line}\r\n")), "{line} in {bytes}");
        }
    };
    let told =
        "Sun 28 Mar 2027, 03:30-04:30 (1 hour), Europe/Berlin; 02:30 does not exist on that day";
    let lines = ["DTSTART;TZID=Europe/Berlin:20270328T023000", "DURATION:PT1H"];
    check(&[&["add", "Feed every day 02:30 from 2027-03-28"]], told, &lines);
    check(&[&["add", "Feed 2027-03-28 02:30"]], told, &lines);
    let feed: &[&str] = &["add", "Feed every day 02:00 from 2027-03-28"];
    let edit: &[&str] = &["edit", "ID", "--scope", "all", "--start", "02:30"];
    check(&[feed, edit], told, &lines);
    let before: &[&str] = &["add", "Feed 2027-03-27 02:30"];
    check(&[before, &["edit", "ID", "--move", "+1d"]], told, &lines);
}

const WEEKLY: &str = "UID:w\nSUMMARY:A\nDTSTART;TZID=Europe/Berlin:20260303T090000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY";
const CHANGED: &str = "UID:w\nSUMMARY:B\nRECURRENCE-ID;TZID=Europe/Berlin:20260324T090000\nDTSTART;TZID=Europe/Berlin:20260324T140000\nDURATION:PT1H";

#[test]
fn a_changed_occurrence_that_is_named_is_changed_with_what_follows() {
    let check = |args: &[&str], expect: &str| {
        let home = calendar(&[WEEKLY, CHANGED]);
        let run = berlin(&home, &[&["edit", "uid:w"], args].concat());
        assert_eq!(run.code, 0, "{}", run.masked_output());
        assert_eq!(agenda(&home, &["2026-03-17", "2026-04-01"]), expect, "{args:?}");
    };
    let future = ["--scope", "future", "--occurrence", "2026-03-24 14:00"];
    check(
        &[&future[..], &["--location", "Z"]].concat(),
        "Tue 17 Mar 2026; 09:00-10:00  A\nTue 24 Mar 2026; 14:00-15:00  B  (Z)\nTue 31 Mar 2026; 09:00-10:00  A  (Z)",
    );
    check(
        &[&future[..], &["--move", "+1h"]].concat(),
        "Tue 17 Mar 2026; 09:00-10:00  A\nTue 24 Mar 2026; 15:00-16:00  B\nTue 31 Mar 2026; 10:00-11:00  A",
    );
}

#[test]
fn changed_occurrences_that_a_rule_does_not_have() {
    let check = |rule: &str, expect: &str| {
        let home = calendar(&[WEEKLY, CHANGED]);
        let run = berlin(&home, &["edit", "uid:w", "--scope", "all", "--rule", rule]);
        assert_eq!((run.code, run.stderr()), (0, expect.into()), "{}", run.masked_output());
    };
    let kept = "warning: kept 1 override that the rule does not contain\n";
    check("", kept);
    check("FREQ=WEEKLY;INTERVAL=2", kept);
    check("FREQ=DAILY", "");
}

#[test]
fn an_edited_text_is_checked_like_an_import() {
    let home = calendar(&[WEEKLY]);
    let text = home.ok(&["show", "uid:w", "--format", "raw"]);
    let garbage = text.replace("DTSTART;TZID=Europe/Berlin:20260303T090000", "DTSTART:garbage");
    home.write("new.ics", garbage);
    let run = home.run(&["edit", "uid:w", "--from", "new.ics"]);
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert!(run.stderr().starts_with("warning: line "), "{}", run.stderr());
}

#[test]
fn a_shortened_rule_ends_with_its_last() {
    let home = calendar(&[WEEKLY]);
    let args =
        ["edit", "uid:w", "--scope", "future", "--occurrence", "2026-03-31", "--summary", "C"];
    let run = berlin(&home, &args);
    assert!(run.stdout().contains("until Tue 24 Mar 2026"), "{}", run.masked_output());
}

/// The last day of a rule is one in the zone of the item, wherever it is printed.
#[test]
fn the_end_of_a_rule_is_in_the_zone_of_the_item() {
    for (kind, time) in [("event", "--start"), ("task", "--due")] {
        let home = Home::new();
        let add = ["add", "--kind", kind, "--summary", "Report", time, "2026-12-04 17:00"];
        let rule = ["--zone", "America/New_York", "--rule", "FREQ=WEEKLY;UNTIL=20261219T045959Z"];
        let added = berlin(&home, &[&add[..], &rule].concat());
        let id = added.stdout().split(' ').next().unwrap().to_string();
        let edited = berlin(&home, &["edit", &id, "--scope", "all", "--move", "-10min"]);
        for run in [added, edited, berlin(&home, &["show", &id])] {
            assert!(run.stdout().contains("until Fri 18 Dec 2026"), "{}", run.masked_output());
        }
    }
}

/// Warnings and errors around time zones, incomplete files and old invitations.
#[test]
fn warnings_name_the_cause() {
    let home = calendar(&[WEEKLY]);
    let check = |tz: &str, args: &[&str], expect: &str| {
        let mut command = home.command(args);
        command.env("TZ", tz);
        let run = home.finish(command.output().unwrap());
        assert_eq!(run.stderr(), expect, "{}", run.masked_output());
    };
    let unknown = "warning: unknown time zone in TZ=Nonsense/Zone; using UTC\n";
    check("Nonsense/Zone", &["find", "A"], unknown);
    check("Nonsense/Zone", &["--quiet", "find", "A"], "");
    check("CET-1CEST,M3.5.0,M10.5.0/3", &["find", "A"], "");
    check(
        "UTC",
        &["find", "A", "--fields", "zone"],
        "error: unknown field \"zone\" in --fields\nhint: `larder show` and --format json show the zone\n",
    );
    home.write("begun.ics", "BEGIN:VCALENDAR");
    check("UTC", &["import", "begun.ics"], "warning: begun.ics:2: END:VCALENDAR is missing\n");
    let event = "BEGIN:VEVENT\nUID:x\nDTSTAMP:20260101T000000Z\nSEQUENCE:2\nSUMMARY:X\nDTSTART:20260301T100000Z\nEND:VEVENT\n";
    let sent = |event: &str| {
        format!("BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:REQUEST\n{event}END:VCALENDAR\n")
    };
    home.write("sent.ics", sent(event));
    home.write("before.ics", sent(&event.replace("SEQUENCE:2", "SEQUENCE:1")));
    check("UTC", &["import", "--into", "c", "sent.ics"], "");
    check(
        "UTC",
        &["import", "--into", "c", "before.ics"],
        "error: rejected before.ics:4: the stored item is newer, by SEQUENCE or DTSTAMP\n",
    );
    home.write("none.ics", "");
    check(
        "UTC",
        &["edit", "uid:w", "--from", "none.ics"],
        "error: none.ics: expected one VEVENT, found 0\nhint: nothing was changed; correct the text and run the command again\n",
    );
}

/// The due time of a task is printed in the zone of its start, also in an ambiguous hour.
#[test]
fn a_task_that_is_due_in_the_hour_that_comes_twice() {
    let home = Home::new();
    let task =
        ["add", "--kind", "task", "--summary", "Y", "--start", "2026-10-25 01:00", "--for", "2h"];
    let run = berlin(&home, &task);
    let told = "when: Sun 25 Oct 2026, 01:00, due Sun 25 Oct 2026, 02:00, Europe/Berlin";
    assert!(run.stdout().contains(told), "{}", run.masked_output());
}

/// Times are those of the user; the days of a rule are those of its item, whose zone is named.
#[test]
fn exceptions_and_rules_of_another_zone_are_shown() {
    let series = |uid: &str, rule: &str, exceptions: &str| {
        format!(
            "UID:{uid}\nSUMMARY:Call\nDTSTART;TZID=America/Los_Angeles:20260302T170000\n\
             DTEND;TZID=America/Los_Angeles:20260302T180000\nRRULE:FREQ=WEEKLY;{rule}\n\
             EXDATE;TZID=America/Los_Angeles:{exceptions}"
        )
    };
    let counted = series("counted", "BYDAY=MO;COUNT=4", "20260309T170000,20260316T170000");
    let ended = series("ended", "UNTIL=20260310T000000Z", "20260309T170000");
    let home = calendar(&[&counted, &ended]);
    let show = |zone: &str, id: &str| {
        let mut command = home.command(&["show", id]);
        command.env("TZ", zone).env("LC_ALL", "C");
        home.finish(command.output().unwrap()).stdout()
    };
    for (zone, id, lines) in [
        (
            "Asia/Tokyo",
            "uid:counted",
            [
                "every week on Monday, 4 times, America/Los_Angeles\n",
                "Tue 10 Mar 2026, 09:00\n",
                "Tue 17 Mar 2026, 09:00\n",
            ],
        ),
        (
            "America/Los_Angeles",
            "uid:counted",
            [
                "every week on Monday, 4 times\n",
                "Mon 9 Mar 2026, 17:00\n",
                "Mon 16 Mar 2026, 17:00\n",
            ],
        ),
        (
            "Asia/Tokyo",
            "uid:ended",
            [
                "every week, until Mon 9 Mar 2026, America/Los_Angeles\n",
                "Tue 10 Mar 2026, 09:00\n",
                "Tue 3 Mar 2026, 10:00-11:00",
            ],
        ),
    ] {
        let shown = show(zone, id);
        for line in lines {
            assert!(shown.contains(line), "{line:?} in {zone}:\n{shown}");
        }
    }
}

//! Changes of what recurs by the clock of one zone, made by somebody whose clock is another one's, and hours that clocks leave out or
//! show twice.

use crate::home::{Home, Run};

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

/// What a program in Berlin tells about some days, a line for each.
fn agenda(home: &Home, args: &[&str]) -> String {
    let mut days: Vec<String> = Vec::new();
    for line in berlin(home, &[&["agenda"], args].concat()).stdout().lines() {
        match line.strip_prefix("  ") {
            Some(entry) => days.last_mut().unwrap().push_str(&format!("; {}", entry.trim())),
            None if line.is_empty() => {}
            None => days.push(line.into()),
        }
    }
    days.join("\n")
}

const NIGHTLY: &str = "UID:n\nSUMMARY:Nightly\nDTSTART;TZID=America/New_York:20261201T230000\nDURATION:PT30M\nRRULE:FREQ=DAILY";

#[test]
fn a_day_is_by_the_clock_of_who_asks() {
    let check = |args: &[&str], expect: &str| {
        let home = calendar(&[NIGHTLY]);
        let run = berlin(&home, args);
        assert_eq!(run.code, 0, "{}", run.shown());
        assert_eq!(agenda(&home, &["2026-12-09", "2026-12-11"]), expect, "{args:?}");
    };
    let this = ["uid:n", "--scope", "this", "--occurrence"];
    let left = "Wed 9 Dec 2026; 05:00-05:30  Nightly\nFri 11 Dec 2026; 05:00-05:30  Nightly";
    // By its day, by its time, and as JSON has it.
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

#[test]
fn an_hour_that_comes_twice() {
    let check = |changes: &[&[&str]], lines: &[&str], days: &[&str], expect: &str| {
        let home = Home::new();
        for change in changes {
            let run = berlin(&home, change);
            assert_eq!(run.code, 0, "{}", run.shown());
        }
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
    check(&[more], &[ends], &["2026-10-25"], "Sun 25 Oct 2026; 01:30-04:30  F");
    // What recurs begins on the day that its rule has.
    let weekly: &[&str] = &["add", "F every monday 02:30 from 2026-10-25 for 1h"];
    check(
        &[weekly],
        &["DTSTART;TZID=Europe/Berlin:20261026T023000"],
        &["2026-10-26"],
        "Mon 26 Oct 2026; 02:30-03:30  F",
    );
    // Moved there, and on.
    let before: &[&str] = &["add", "F 2027-10-30 02:30 for 1h"];
    let on: &[&str] = &["edit", "summary:F", "--move", "+1d"];
    check(
        &[before, on],
        &["DURATION:PT1H"],
        &["2027-10-31"],
        "Sun 31 Oct 2027; 02:30-02:30  F (1 hour)",
    );
    check(&[before, on, on], &["DURATION:PT1H"], &["2027-11-01"], "Mon 1 Nov 2027; 02:30-03:30  F");
    let long: &[&str] = &["edit", "summary:F", "--for", "2h"];
    check(
        &[fold, long],
        &["DTEND;TZID=Europe/Berlin:20261025T033000"],
        &["2026-10-25"],
        "Sun 25 Oct 2026; 02:30-03:30  F",
    );
}

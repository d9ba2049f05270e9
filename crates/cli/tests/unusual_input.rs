//! Input that other programs write, against the letter of the RFCs or at its edge: which items and
//! times come out of it, and what is said.

use crate::test_home::{Home, Run};
use insta::assert_snapshot;
use serde_json::Value;

/// Returns a calendar with these lines, separated by ` / `.
fn calendar(lines: &str) -> String {
    let lines: String = lines.split(" / ").map(|line| format!("{line}\n")).collect();
    format!("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n{lines}END:VCALENDAR\n")
}

/// Imports a calendar with these lines into a new store.
fn import(lines: &str) -> (Home, Run) {
    let home = Home::new();
    home.write("c.ics", calendar(lines));
    let run = home.run(&["import", "--rejects", "rejects", "c.ics"]);
    (home, run)
}

fn keys(item: &Value, names: &[&str]) -> String {
    let value = |name: &&str| item.get(*name).map_or("-".into(), |value| value.to_string());
    names.iter().map(value).collect::<Vec<_>>().join(" ").replace('"', "")
}

/// CREATED and COMPLETED are the time in which a task exists, which time ranges match (RFC 4791,
/// 9.9); they are not its start and end.
#[test]
fn tasks_without_dates_are_on_no_day() {
    let (home, _) = import(
        "BEGIN:VTODO / UID:t / CREATED:20100101T000000Z / COMPLETED:20200601T120000Z / SUMMARY:old / END:VTODO",
    );
    home.code(&["agenda", "2015-05-30", "2015-06-06"], 1);
    home.code(&["find", "--expand", "when:2015"], 1);
    assert!(!home.ok(&["show", "c/t"]).contains("when"));
    assert_eq!(keys(&home.json(&["find", "old"])[0], &["start", "end", "due"]), "- - -");
    for (range, found) in [("2009", 1), ("2010", 0), ("2015-06", 0), ("2020-06-01", 0), ("2021", 1)]
    {
        home.code(&["find", &format!("when:{range}")], found);
    }
    home.assert_store_is_sound();
}

#[test]
fn a_zone_name_in_another_case_means_its_definition() {
    let (home, _) = import(
        "BEGIN:VTIMEZONE / TZID:Europe/lisbon / BEGIN:STANDARD / DTSTART:19700101T000000 / TZOFFSETFROM:+0100 / TZOFFSETTO:+0100 / END:STANDARD / END:VTIMEZONE / \
         BEGIN:VEVENT / UID:a / DTSTART;TZID=Europe/lisbon:20120110T140000 / SUMMARY:defined / END:VEVENT / \
         BEGIN:VEVENT / UID:b / DTSTART;TZID=Europe/Lisbon:20120110T140000 / SUMMARY:known / END:VEVENT",
    );
    assert_snapshot!(home.ok(&["agenda", "2012-01-10"]), @"
    Tue 10 Jan 2012
      13:00  defined  mrxfz5q6
      14:00  known    8w7davb2
    ");
}

#[test]
fn an_hourly_rule_that_never_hits_leaves_the_start() {
    let (home, run) = import(
        "BEGIN:VEVENT / UID:a / DTSTART:20260310T140000Z / RRULE:FREQ=HOURLY;INTERVAL=2;BYHOUR=9 / SUMMARY:h / END:VEVENT",
    );
    assert!(run.stderr().contains("the rule has no occurrence"), "{}", run.stderr());
    assert_snapshot!(home.ok(&["agenda", "2026-03-10"]), @"
    Tue 10 Mar 2026
      14:00  h  mrxfz5q6
    ");
}

/// Nothing of a component with a damaged BEGIN becomes a property of the calendar.
#[test]
fn damaged_and_misspelt_components_are_rejected_as_a_whole() {
    for begin in ["BEGIN=VEVENT", "BEGIN:\"VEVENT\"", "BEGIN:VEVNT"] {
        let lost =
            format!("{begin} / UID:b / DTSTART:20260311T100000Z / SUMMARY:lost / END:VEVENT");
        let next = "BEGIN:VEVENT / UID:c / DTSTART:20260311T100000Z / SUMMARY:next / END:VEVENT";
        let (home, run) = import(&format!("{lost} / {next}"));
        assert_eq!(run.code, 3, "{begin}");
        assert!(
            run.stderr().contains("rejected c.ics:4: the BEGIN line is damaged"),
            "{}",
            run.stderr()
        );
        assert_eq!(
            std::fs::read_to_string(home.work("rejects")).unwrap(),
            lost.replace(" / ", "\n") + "\n"
        );
        assert_eq!(home.json(&["find", "summary:next"]).len(), 1);
        assert_eq!(home.ok(&["export", "c"]), calendar(next));
    }
}

#[test]
fn calendar_lines_with_nul_come_back() {
    let home = Home::new();
    let calendar = "BEGIN:VCALENDAR\nX\0-A:hello world\nVERSION:2.0\nBEGIN:VEVENT\nUID:c\nDTSTART:20260311T100000Z\nEND:VEVENT\nEND:VCALENDAR\n";
    home.write("c.ics", calendar);
    home.ok(&["import", "c.ics"]);
    assert_eq!(home.ok(&["export", "c"]), calendar);
}

#[test]
fn organisations_keep_their_commas() {
    let home = Home::new();
    home.write(
        "c.vcf",
        "BEGIN:VCARD\nVERSION:2.1\nN:Berg, jr.;Anna\nFN:Anna Berg\nORG:Acme, Inc.\nEND:VCARD\n",
    );
    home.ok(&["import", "c.vcf"]);
    for query in ["org:\"Acme, Inc.\"", "org:=\"Acme, Inc.\"", "family_name:=\"Berg, jr.\""] {
        assert_eq!(home.json(&["find", query]).len(), 1, "{query}");
    }
}

/// A series whose occurrences are all replaced still has the times of its DTSTART.
#[test]
fn a_series_without_own_occurrences_has_a_start() {
    let (home, _) = import(
        "BEGIN:VEVENT / UID:a / DTSTART;TZID=Europe/Paris:20240110T140000 / DURATION:PT1H / RRULE:FREQ=DAILY;COUNT=1 / SUMMARY:series / END:VEVENT / \
         BEGIN:VEVENT / UID:a / RECURRENCE-ID;TZID=Europe/Paris:20240110T140000 / DTSTART;TZID=Europe/Paris:20240111T140000 / SUMMARY:moved / END:VEVENT",
    );
    let found = home.json(&["find", "series"]);
    assert_eq!(
        keys(&found[0], &["start", "end", "zone"]),
        "2024-01-10T13:00:00Z 2024-01-10T14:00:00Z Europe/Paris"
    );
    assert!(home.ok(&["show", "c/a"]).contains("Wed 10 Jan 2024, 13:00-14:00"));
}

/// A rule beside a RECURRENCE-ID counts only if no series has the UID.
#[test]
fn a_rule_beside_a_recurrence_id_is_followed_without_a_series() {
    let (home, run) = import(
        "BEGIN:VEVENT / UID:a / RECURRENCE-ID:19700101T070000Z / DTSTART:20260310T100000Z / RRULE:FREQ=WEEKLY / SUMMARY:weekly / END:VEVENT",
    );
    assert!(run.stderr().contains("RRULE beside RECURRENCE-ID"), "{}", run.stderr());
    let count = || home.ok(&["find", "when:2026-03", "--expand", "--count"]);
    assert_eq!(count(), "4\n");
    home.assert_store_is_sound();
    home.write("m.ics", calendar("BEGIN:VEVENT / UID:a / DTSTART:20250101T100000Z / RRULE:FREQ=DAILY;COUNT=2 / END:VEVENT"));
    home.ok(&["import", "--into", "c", "m.ics"]);
    assert_eq!(count(), "1\n");
    home.assert_store_is_sound();
    home.ok(&["undo"]);
    assert_eq!(count(), "4\n");
    home.assert_store_is_sound();
}

#[test]
fn a_limit_allows_for_more_steps_of_a_rule() {
    let (home, _) = import(
        "BEGIN:VEVENT / UID:a / DTSTART:20260101T000000Z / RRULE:FREQ=MINUTELY / END:VEVENT",
    );
    let count = ["find", "when:2026", "--expand", "--count", "--limit", "1000000"];
    assert_snapshot!(home.run(&count).masked_output(), @"525600");
}

#[test]
fn tasks_have_the_times_of_their_properties() {
    let (home, _) = import(
        "BEGIN:VTODO / UID:a / SUMMARY:a / DUE:20260310T140000Z / END:VTODO / \
         BEGIN:VTODO / UID:b / SUMMARY:b / DUE;VALUE=DATE:20260310 / END:VTODO / \
         BEGIN:VTODO / UID:c / SUMMARY:c / DTSTART:20260312T140000Z / DUE:20260310T140000Z / END:VTODO / \
         BEGIN:VTODO / UID:d / SUMMARY:d / DTSTART:20260310T140000Z / DURATION:PT2H / END:VTODO / \
         BEGIN:VTODO / UID:e / SUMMARY:e / DTSTART:20260310T140000Z / END:VTODO",
    );
    let found = home.json(&["find", "--sort", "summary", ""]);
    let found = found.iter().map(|item| keys(item, &["summary", "start", "due", "all_day"]));
    assert_snapshot!(found.collect::<Vec<_>>().join("\n"), @"
    a - 2026-03-10T14:00:00Z false
    b - 2026-03-10 true
    c 2026-03-12T14:00:00Z 2026-03-10T14:00:00Z false
    d 2026-03-10T14:00:00Z 2026-03-10T16:00:00Z false
    e 2026-03-10T14:00:00Z - false
    ");
    assert_snapshot!(home.ok(&["agenda", "2026-03-10"]), @"
    Tue 10 Mar 2026
      due        b  8w7davb2
      due 14:00  a  mrxfz5q6
      due 14:00  c  cbk26vg1
      14:00      e  2tnnwdm6
      due 16:00  d  bsa5x67h
    ");
}

#[test]
fn a_card_in_utf_16_is_the_same_after_an_export() {
    let home = Home::new();
    let card = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Jürgen\r\nEND:VCARD\r\n";
    let wide: Vec<u8> = card.encode_utf16().flat_map(u16::to_le_bytes).collect();
    home.write("wide.vcf", wide);
    home.ok(&["import", "wide.vcf"]);
    home.ok(&["export", "contacts", "-o", "narrow.vcf"]);
    home.ok(&["import", "narrow.vcf"]);
    assert_eq!(home.ok(&["find", "--count", ""]), "1\n");
}

#[test]
fn nested_calendars_are_not_incomplete() {
    let home = Home::new();
    let event = "BEGIN:VEVENT\nUID:c\nDTSTART:20260311T100000Z\nEND:VEVENT\n";
    let nested =
        format!("BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VCALENDAR\nPRODID:x\n{event}END:VCALENDAR\n");
    home.write("n.ics", format!("{nested}END:VCALENDAR\n"));
    home.write("cut.ics", nested);
    assert_snapshot!(home.run(&["import", "n.ics"]).masked_output(), @"
    1 event added to n (1 file, 136 bytes)
    Undo: larder undo 1
    ! note: created a new store in [HOME]/home/.local/share/larder
    ");
    assert_snapshot!(home.run(&["import", "cut.ics"]).masked_output(), @"
    1 event added to cut (1 file, 122 bytes)
    Undo: larder undo 2
    ! warning: cut.ics:3: END:VCALENDAR is missing
    ");
}

/// A definition that is too long to be read is not unknown.
#[test]
fn a_definition_that_is_too_long_is_called_so() {
    let part = "BEGIN:STANDARD / DTSTART:19700101T000000 / TZOFFSETFROM:+0100 / TZOFFSETTO:+0100 / END:STANDARD / ";
    let (_, run) = import(&format!(
        "BEGIN:VTIMEZONE / TZID:Long / {}END:VTIMEZONE / BEGIN:VEVENT / UID:a / DTSTART;TZID=Long:20120110T140000 / END:VEVENT",
        part.repeat(70_000)
    ));
    let expected = "the definition of time zone \"Long\" is malformed or too long";
    assert!(run.stderr().contains(expected), "{}", run.stderr());
}

/// Of several revisions in one file the newest is the item, wherever it stands. Items with the same
/// SEQUENCE may be different events, and all are kept.
#[test]
fn the_newest_revision_in_a_file_is_imported() {
    let event = |number: u8, name: &str| {
        format!(
            "BEGIN:VEVENT / UID:a / SEQUENCE:{number} / DTSTART:20260310T100000Z / SUMMARY:{name} / END:VEVENT"
        )
    };
    let (old, new) = (event(0, "old"), event(2, "new"));
    for (method, parts) in
        [("", [&old, &new]), ("", [&new, &old]), ("METHOD:PUBLISH / ", [&old, &new])]
    {
        let (home, run) = import(&format!("{method}{} / {}", parts[0], parts[1]));
        assert_eq!(run.code, 3, "{}", run.masked_output());
        assert!(
            run.stderr().contains("the file has a newer revision of this item"),
            "{}",
            run.stderr()
        );
        assert_eq!(
            std::fs::read_to_string(home.work("rejects")).unwrap(),
            old.replace(" / ", "\n") + "\n"
        );
        let day = home.ok(&["agenda", "2026-03-10"]);
        let (day, _id) = day.trim().rsplit_once("  ").unwrap();
        assert_eq!(day, "Tue 10 Mar 2026\n  10:00  new");
        let again = home.code(&["--format", "json", "import", "c.ics"], 3).stdout();
        assert!(
            again.contains("\"added\":0,\"updated\":0") && again.contains("\"unchanged\":1"),
            "{again}"
        );
        // A later update of the item finds it.
        home.write("later.ics", calendar(&event(3, "latest")));
        home.ok(&["import", "--into", "c", "later.ics"]);
        assert_eq!(keys(&home.json(&["find", "uid:=a"])[0], &["summary"]), "latest");
        assert_eq!(home.ok(&["find", "--count", ""]), "1\n");
    }
    let (home, run) = import(&format!("{} / {}", event(1, "one"), event(1, "other")));
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert_eq!(home.ok(&["find", "--count", ""]), "2\n");
}

/// A check of a series with many overrides of the following occurrences takes time proportional to
/// their number: it combines the series once, and not once for each override.
#[test]
fn a_check_of_many_overrides_takes_linear_time() {
    let cpu_seconds = |count: i64| {
        let change = |n: i64| {
            let day = larder_time::civil::CivilTime::from_seconds_clamped((20_000 + n) * 86_400);
            let time = format!("{day}Z");
            format!(
                "BEGIN:VEVENT / UID:s / RECURRENCE-ID;RANGE=THISANDFUTURE:{time} / DTSTART:{time} / END:VEVENT"
            )
        };
        let changes: Vec<String> = (0..count).map(change).collect();
        let (home, _) = import(&format!(
            "BEGIN:VEVENT / UID:s / DTSTART:20240101T000000Z / RRULE:FREQ=DAILY / END:VEVENT / {}",
            changes.join(" / ")
        ));
        let run = home.shell("(larder check && larder check --rebuild) > /dev/null && times");
        // The last line has the time of the children: `0m1.234s 0m0.056s`.
        let times = run.stdout();
        let user = times.lines().last().and_then(|line| line.split(' ').next()).unwrap();
        let (minutes, seconds) = user.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    let (few, many) = (cpu_seconds(800), cpu_seconds(4000));
    // Five times as many: 5 times the time if it is proportional, 25 times if it is quadratic.
    assert!(many < 11.0 * few, "{few} s for 800, {many} s for 4,000");
}

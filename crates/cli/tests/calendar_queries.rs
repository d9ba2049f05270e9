//! `larder find` and `larder show` with events, tasks and memos.

use crate::agenda::{run_in, with_calendars};
use crate::test_home::{ANNA, Home};
use insta::assert_snapshot;

fn find_lines(home: &Home, args: &[&str]) -> String {
    run_in(home, "Europe/Berlin", "C.UTF-8", args).masked_output()
}

#[test]
fn lists_have_time_title_and_place() {
    let home = with_calendars();
    assert_snapshot!(find_lines(&home, &["find", "--in", "Home"]), @r"
    6wnszjwv  1969-03-07        Mum’s birthday                      repeats
    bp82wnjj  2026-03-02 18:00  中文课                VHS           repeats
    qxgykc03  2026-03-03 08:00  Dentist               Dr. Vogel
    phq0hkwm  2026-03-04 20:00  Night of short films  Kino Central
    rbprkztj  2026-03-06        At the sea            Sylt
    ");
    assert_snapshot!(find_lines(&home, &["find", "when:2026-03-05"]), @r"
    7b7tsy40                    Learn to whistle                         task
    phq0hkwm  2026-03-04 20:00  Night of short films       Kino Central
    b3vp0czt  2026-03-05 09:00  Quarterly review           Big room
    eg7sn0kb  2026-03-05 11:00  Standup, after the review  Room 2
    ");
    assert_snapshot!(find_lines(&home, &["find", "--kind", "task"]), @r"
    7b7tsy40                    Learn to whistle     task
    xkkvwdmk  2026-03-02        Water the plants     task, done
    1zscg71b  2026-03-06 17:00  Send the tax return  task
    ");
    assert_snapshot!(find_lines(&home, &["find", "is:recurring", "--sort", "summary"]), @r"
    385dk83s  2026-03-02 15:00  Bright & Early: numbers    Microsoft Teams Meeting  repeats
    rvqb03z5  2026-03-29        Clocks go forward                                   repeats
    vn7pdchd  2026-03-08        International Women's Day                           repeats
    6wnszjwv  1969-03-07        Mum’s birthday                                      repeats
    h7sb8b0z  2026-01-05 09:30  Standup                    Room 4                   repeats
    eg7sn0kb  2026-03-05 11:00  Standup, after the review  Room 2
    bp82wnjj  2026-03-02 18:00  中文课                     VHS                      repeats
    ");
    assert_snapshot!(find_lines(&home, &["find", "--kind", "memo", "--format", "raw"]), @r"
    BEGIN:VJOURNAL
    DTSTAMP:20260301T200000Z
    UID:3f6f0b0e-8d39-4b02-9d2b-7d64b0a1f7c3
    DTSTART;VALUE=DATE:20260301
    SUMMARY:First snowdrops
    DESCRIPTION:Behind the shed\, seven of them.
    END:VJOURNAL
    ");
    assert_snapshot!(find_lines(&home, &["find", "--kind", "event", "--count"]), @"13");
    assert_snapshot!(find_lines(&home, &["find", "--in", "Home", "--from", "a"]), @"
    ! error: --from cannot be used with --sort start, which sorts by time
    ! hint: use when:2026-03.. to list from a day on
    exit 2
    ");
    assert_snapshot!(find_lines(&home, &["find", "summary:nothing"]), @"
    ! note: no results
    exit 1
    ");
}

#[test]
fn contacts_and_events_are_listed_together() {
    let home = with_calendars();
    home.write("anna.vcf", ANNA);
    home.ok(&["import", "anna.vcf"]);
    assert_snapshot!(find_lines(&home, &["find", "anna or standup"]), @"
    Events
    h7sb8b0z  2026-01-05 09:30  Standup                    Room 4  repeats
    eg7sn0kb  2026-03-05 11:00  Standup, after the review  Room 2

    Contacts
    xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works
    ");
    assert_snapshot!(find_lines(&home, &["find", "anna", "or", "dentist", "--fields", "full_name,summary,start"]), @r"
    qxgykc03		Dentist	2026-03-03T08:00:00+01:00
    xdnskgpk	Anna Hölderlin
    ");
    assert_snapshot!(find_lines(&home, &["find", "anna", "or", "dentist", "--kind", "contact"]), @"xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works");
}

#[test]
fn occurrences() {
    let home = with_calendars();
    assert_snapshot!(find_lines(&home, &["find", "when:2026-W10 standup", "--expand"]), @r"
    h7sb8b0z  2026-03-02 09:30  Standup                    Room 4
    h7sb8b0z  2026-03-03 09:30  Standup                    Room 4
    eg7sn0kb  2026-03-05 11:00  Standup, after the review  Room 2
    h7sb8b0z  2026-03-06 09:30  Standup                    Room 4
    ");
    assert_snapshot!(find_lines(&home, &["find", "when:2026-W10 standup", "--expand", "--count"]), @"4");
    let fields = [
        "find",
        "when:2026-W10 standup",
        "--expand",
        "--fields",
        "occurrence,start,summary,recurrence_id",
    ];
    assert_snapshot!(find_lines(&home, &fields), @r"
    h7sb8b0z	20260302T083000Z	2026-03-02T09:30:00+01:00	Standup	
    h7sb8b0z	20260303T083000Z	2026-03-03T09:30:00+01:00	Standup	
    eg7sn0kb	20260305T093000	2026-03-05T11:00:00+01:00	Standup, after the review	20260305T093000
    h7sb8b0z	20260306T083000Z	2026-03-06T09:30:00+01:00	Standup
    ");
    let json = [&fields[..], &["-n", "3", "--format", "json"]].concat();
    assert_snapshot!(find_lines(&home, &json), @r#"
    {"id":"h7sb8b0z7c4cp","kind":"event","collection":"Work","uid":"standup-7k2v@google.example","seq":1,"occurrence":"20260302T083000Z","start":"2026-03-02T09:30:00+01:00","summary":"Standup"}
    {"id":"h7sb8b0z7c4cp","kind":"event","collection":"Work","uid":"standup-7k2v@google.example","seq":1,"occurrence":"20260303T083000Z","start":"2026-03-03T09:30:00+01:00","summary":"Standup"}
    {"id":"eg7sn0kb04d6j","kind":"event","collection":"Work","uid":"standup-7k2v@google.example","recurrence_id":"20260305T093000","seq":1,"occurrence":"20260305T093000","start":"2026-03-05T11:00:00+01:00","summary":"Standup, after the review"}
    "#);
    assert_snapshot!(find_lines(&home, &["find", "standup", "--fields", "recurrence_id,summary"]), @r"
    h7sb8b0z		Standup
    eg7sn0kb	20260305T093000	Standup, after the review
    ");
    assert_snapshot!(find_lines(&home, &["find", "is:cancelled"]), @r"1cs4g3pp  2026-03-06 14:00  Team photo  Courtyard  cancelled");
    assert_snapshot!(find_lines(&home, &["find", "when:2026-W10 standup", "--expand", "-n", "1", "--format", "json"]), @r#"{"id":"h7sb8b0z7c4cp","kind":"event","collection":"Work","uid":"standup-7k2v@google.example","seq":1,"occurrence":"20260302T083000Z","summary":"Standup","location":"Room 4","status":"CONFIRMED","start":"2026-03-02T09:30:00+01:00","end":"2026-03-02T09:45:00+01:00","zone":"Europe/Berlin","all_day":false,"recurring":true,"transparent":false}"#);
    assert_snapshot!(find_lines(&home, &["find", "when:2026-W10 dentist", "--expand", "--format", "raw"]), @r#"
    BEGIN:VEVENT
    CREATED:20260115T071211Z
    DTEND;TZID=Europe/Berlin:20260303T083000
    DTSTAMP:20260222T090155Z
    DTSTART;TZID=Europe/Berlin:20260303T080000
    LAST-MODIFIED:20260222T090154Z
    LOCATION:Dr. Vogel\nLindenstraße 12\n10969 Berlin
    SEQUENCE:1
    SUMMARY:Dentist
    TRANSP:OPAQUE
    UID:5B0A7E0A-4B3D-4E0C-8B49-3B9E8C7D6A10
    X-APPLE-STRUCTURED-LOCATION;VALUE=URI;X-APPLE-RADIUS=141;X-TITLE="Dr. Vogel
     ":geo:52.5039,13.3955
    BEGIN:VALARM
    ACTION:DISPLAY
    DESCRIPTION:Reminder
    TRIGGER:-PT1H
    UID:F2A1D7C4-5C3E-4E55-8C43-2A97B2C1D0E5
    END:VALARM
    BEGIN:VALARM
    ACTION:NONE
    TRIGGER;VALUE=DATE-TIME:19760401T005545Z
    END:VALARM
    END:VEVENT
    "#);
    assert_snapshot!(find_lines(&home, &["find", "standup", "--expand"]), @"
    ! error: --expand needs a time range
    ! hint: add when: to the query, for example when:2026-03 or when:today..+7d
    exit 2
    ");
    assert_snapshot!(find_lines(&home, &["find", "when:1999 standup", "--expand"]), @"
    ! note: no results
    exit 1
    ");
}

/// A rule that is not fully expanded causes a warning on standard error.
#[test]
fn hostile_rules_are_named() {
    let home = Home::new();
    let event = |uid: &str, rule: &str| {
        format!(
            "BEGIN:VEVENT\r\nUID:{uid}\r\nSUMMARY:{uid}\r\nDTSTART:20260302T000000Z\r\nRRULE:{rule}\r\n\
             BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:PT0S\r\nEND:VALARM\r\nEND:VEVENT\r\n"
        )
    };
    let uncounted = event("uncounted", "FREQ=SECONDLY;BYHOUR=0;COUNT=5000000");
    let each_second = event("each second", "FREQ=SECONDLY");
    home.write("h.ics", format!("BEGIN:VCALENDAR\r\n{uncounted}{each_second}END:VCALENDAR\r\n"));
    home.run(&["import", "h.ics"]);
    assert_snapshot!(find_lines(&home, &["find", "when:2026-03-03 uncounted", "--expand", "-n", "1"]), @"
    srn8vec2  2026-03-03 01:00  uncounted
    ! warning: srn8vec2, uncounted: occurrences may be missing, because the recurrence rule takes too long to expand
    ");
    assert_snapshot!(find_lines(&home, &["find", "when:2026..2026 each", "--expand", "--count"]), @"
    99995
    ! warning: vhbbtfgy, each second: occurrences may be missing, because the recurrence rule takes too long to expand
    ");
    assert_snapshot!(find_lines(&home, &["find", "--alarms", "2026..2026", "--count"]), @"
    128000
    ! warning: srn8vec2, uncounted: occurrences may be missing, because the recurrence rule takes too long to expand
    ! warning: vhbbtfgy, each second: occurrences may be missing, because the recurrence rule takes too long to expand
    ");
    assert_snapshot!(find_lines(&home, &["agenda", "2026-03-03", "-n", "1"]), @"
    Tue 3 Mar 2026
      00:00  each second  vhbbtfgy
    ! note: list cut at 1; narrow the range or raise --limit
    ! warning: srn8vec2, uncounted: occurrences may be missing, because the recurrence rule takes too long to expand
    ");
    assert_snapshot!(find_lines(&home, &["find", "when:2026-03-03", "--count"]), @"
    2
    ! warning: srn8vec2, uncounted: occurrences may be missing, because the recurrence rule takes too long to expand
    ");
    assert_snapshot!(find_lines(&home, &["find", "when:2026-03-03 uncounted"]), @"
    srn8vec2  2026-03-02 01:00  uncounted  repeats
    ! warning: srn8vec2, uncounted: occurrences may be missing, because the recurrence rule takes too long to expand
    ");
    // Without a time range the answer is certain.
    assert_snapshot!(find_lines(&home, &["find", "uncounted"]), @"srn8vec2  2026-03-02 01:00  uncounted  repeats");
}

#[test]
fn alarms() {
    let home = with_calendars();
    assert_snapshot!(find_lines(&home, &["find", "--alarms", "2026-03-01..2026-03-07"]), @r"
    385dk83s  2026-03-02 14:45  Bright & Early: numbers  2026-03-02 15:00
    qxgykc03  2026-03-03 07:00  Dentist                  2026-03-03 08:00
    b3vp0czt  2026-03-05 08:45  Quarterly review         2026-03-05 09:00
    1zscg71b  2026-03-05 17:00  Send the tax return      2026-03-06 17:00  task
    6wnszjwv  2026-03-06 09:00  Mum’s birthday           2026-03-07
    ");
    assert_snapshot!(find_lines(&home, &["find", "dentist", "--alarms", "2026-03", "--format", "json"]), @r#"{"id":"qxgykc03p0982","kind":"event","collection":"Home","uid":"5B0A7E0A-4B3D-4E0C-8B49-3B9E8C7D6A10","seq":1,"occurrence":"","summary":"Dentist","location":"Dr. Vogel\nLindenstraße 12\n10969 Berlin","start":"2026-03-03T08:00:00+01:00","end":"2026-03-03T08:30:00+01:00","zone":"Europe/Berlin","all_day":false,"recurring":false,"transparent":false,"alarm":"2026-03-03T07:00:00+01:00"}"#);
    assert_snapshot!(find_lines(&home, &["find", "--alarms", "2026-03", "--count"]), @"5");
    // A range that begins with a minus sign is not a negated term.
    let relative = run_in(&home, "Europe/Berlin", "C.UTF-8", &["find", "--alarms", "-3d..+9d"]);
    assert!(matches!(relative.code, 0 | 1), "{}", relative.masked_output());
    assert_snapshot!(find_lines(&home, &["find", "--alarms", "whenever"]), @r#"
    ! error: unknown date "whenever"; try today, next friday, 2026-03, +2w or today..+7d
    exit 2
    "#);
}

#[test]
fn json_has_local_times() {
    let home = with_calendars();
    assert_snapshot!(find_lines(&home, &["find", "mum", "--format", "json"]), @r#"{"id":"6wnszjwvkc5n4","kind":"event","collection":"Home","uid":"0D5C7E5E-21B4-4B0B-8E0C-6E2C4F6E9B77","seq":1,"summary":"Mum’s birthday","transp":"TRANSPARENT","sequence":"0","created":"20240302T120000Z","modified":"20240302T120001Z","stamp":"20240302T120001Z","start":"1969-03-07","end":"1969-03-08","rule":["FREQ=YEARLY"],"alarm":true,"recurring":true,"done":false,"all_day":true}"#);
    assert_snapshot!(find_lines(&home, &["find", "--kind", "task", "--fields", "due,done,summary", "--format", "json"]), @r#"
    {"id":"7b7tsy400jhp2","kind":"task","collection":"Tasks","uid":"e7a6a5c3-9b5b-4d7e-8a63-1f7b3d2c9e05","seq":1,"done":false,"summary":"Learn to whistle"}
    {"id":"xkkvwdmkh201p","kind":"task","collection":"Tasks","uid":"d30c2c6f-0d53-4fb5-8d37-9d8d1c5f0a42","seq":1,"due":"2026-03-02","done":true,"summary":"Water the plants"}
    {"id":"1zscg71b4m3cc","kind":"task","collection":"Tasks","uid":"b1f8a5d2-6c6f-4b8c-9a7d-2f9e6d0c1b11","seq":1,"due":"2026-03-06T17:00:00+01:00","done":false,"summary":"Send the tax return"}
    "#);
    assert_snapshot!(find_lines(&home, &["find", "dentist", "--fields", "summary,start,end"]), @"qxgykc03	Dentist	2026-03-03T08:00:00+01:00	2026-03-03T08:30:00+01:00");
    assert_snapshot!(find_lines(&home, &["find", "dentist", "--fields", "sumary"]), @r#"
    ! error: unknown field "sumary" in --fields
    ! hint: did you mean summary?
    exit 2
    "#);
}

#[test]
fn pages_show_all_fields() {
    let home = with_calendars();
    let page = |line: &str| {
        let found = home.json(&["find", line]);
        find_lines(&home, &["show", found[0]["id"].as_str().unwrap()])
    };
    assert_snapshot!(page("quarterly"), @r"
    Quarterly review
    id           b3vp0czt
    collection   Work
    uid          review-q1-93hs@google.example
    when         Thu 5 Mar 2026, 09:00-10:30 (1 hour 30 minutes)
    time zone    Europe/Berlin (the system's)
    description  What we built this quarter, and what we did not.
                 Bring numbers.
    location     Big room
    status       CONFIRMED
    transp       OPAQUE
    conference   https://meet.example.com/kfz-uvwx-abc
    organizer    Helene Brandt <helene.brandt@example.com>
    attendees    Helene Brandt <helene.brandt@example.com>, accepted
                 otto@example.org
                 Ana Lima <ana.lima@example.com>, declined, optional
    alarms       15 minutes before it begins
    ");
    assert_snapshot!(page("numbers"), @r"
    Bright & Early: numbers
    id           385dk83s
    collection   Customers
    uid          040000008200E00074C5B7101A82E00800000000B0E1D3C2A1F0DB010000000000000000100000007C6B5A493827164
    when         Mon 2 Mar 2026, 15:00-16:00 (1 hour)
    recurrence   every month on the 1st Monday, 6 times, America/New_York
    time zone    America/New_York (the system's, for Eastern Standard Time)
    description  Figures are in the folder.
    location     Microsoft Teams Meeting
    class        PUBLIC
    priority     5
    transp       OPAQUE
    created      Fri 20 Feb 2026, 16:12
    modified     Fri 20 Feb 2026, 16:12
    alarms       15 minutes before it begins
    ");
    assert_snapshot!(page("\"room 4\""), @r"
    Standup
    id          h7sb8b0z
    collection  Work
    uid         standup-7k2v@google.example
    when        Mon 5 Jan 2026, 09:30-09:45 (15 minutes)
    recurrence  every week on Monday to Friday
    exceptions  Wed 4 Mar 2026, 09:30
    time zone   Europe/Berlin (the system's)
    location    Room 4
    status      CONFIRMED
    transp      OPAQUE
    created     Thu 18 Dec 2025, 15:02
    modified    Thu 26 Feb 2026, 09:30
    ");
    assert_snapshot!(page("\"room 2\""), @r"
    Standup, after the review
    id          eg7sn0kb
    collection  Work
    uid         standup-7k2v@google.example
    when        Thu 5 Mar 2026, 11:00-11:15 (15 minutes)
    replaces    Thu 5 Mar 2026, 09:30
    time zone   Europe/Berlin (the system's)
    location    Room 2
    status      CONFIRMED
    transp      OPAQUE
    ");
    assert_snapshot!(page("tax"), @r"
    Send the tax return
    id          1zscg71b
    collection  Tasks
    uid         b1f8a5d2-6c6f-4b8c-9a7d-2f9e6d0c1b11
    due         Fri 6 Mar 2026, 17:00
    time zone   Europe/Berlin (the system's)
    category    Paper
                Home
    priority    1
    created     Mon 23 Feb 2026, 20:00
    modified    Mon 23 Feb 2026, 20:01
    alarms      1 day before it is due
    ");
    assert_snapshot!(page("whistle"), @r"
    Learn to whistle
    id          7b7tsy40
    collection  Tasks
    uid         e7a6a5c3-9b5b-4d7e-8a63-1f7b3d2c9e05
    created     Mon 23 Feb 2026, 20:03
    ");
    assert_snapshot!(page("sea"), @r"
    At the sea
    id          rbprkztj
    collection  Home
    uid         9E1B3C58-7C1F-4D3B-A9C2-0E5A8F20D7A1
    when        Fri 6 Mar 2026 to Sun 8 Mar 2026 (3 days)
    location    Sylt
    transp      TRANSPARENT
    created     Sat 10 Jan 2026, 19:33
    modified    Sun 22 Feb 2026, 10:01
    ");
    assert_snapshot!(find_lines(&home, &["show", "--raw", "uid:e7a6a5c3-9b5b-4d7e-8a63-1f7b3d2c9e05"]), @r"
    BEGIN:VTODO
    CREATED:20260223T190311Z
    DTSTAMP:20260223T190311Z
    UID:e7a6a5c3-9b5b-4d7e-8a63-1f7b3d2c9e05
    SUMMARY:Learn to whistle
    END:VTODO
    ");
}

/// Returns an event in a zone of this name, in a calendar with or without its definition.
fn in_zone(tzid: &str, definition: &str) -> String {
    let zone = match definition {
        "" => String::new(),
        offset => format!(
            "BEGIN:VTIMEZONE\r\nTZID:{tzid}\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n\
             TZOFFSETFROM:{offset}\r\nTZOFFSETTO:{offset}\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
        ),
    };
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{zone}BEGIN:VEVENT\r\nUID:z\r\nSUMMARY:Lunch\r\n\
         DTSTART;TZID={tzid}:20260305T120000\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

#[test]
fn the_zone_used_is_shown() {
    let check = |tzid: &str, definition: &str, expect: &str| {
        let home = Home::new();
        home.write("zones.ics", in_zone(tzid, definition));
        home.ok(&["import", "--quiet", "zones.ics"]);
        let page = find_lines(&home, &["show", "uid:z"]);
        let said = |label: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(label));
            line.unwrap_or_default().trim().to_string()
        };
        let (when, zone) = (said("when"), said("time zone"));
        let zones = &home.json(&["show", "uid:z"])[0]["zones"];
        assert_eq!(zones[0]["tzid"], tzid);
        let used = zones[0]["used"].as_str().unwrap();
        assert_eq!(used == "system", zone.contains("the system's"), "{zones}");
        assert_eq!(used == "file", zone.contains("as the file"), "{zones}");
        assert_eq!(format!("{when} {zone}"), format!("Thu 5 Mar 2026, {expect}"), "{page}");
    };
    check("Europe/Berlin", "", "12:00 Europe/Berlin (the system's)");
    check("Europe/Berlin", "+0100", "12:00 Europe/Berlin (the system's)");
    check(
        "Europe/Berlin",
        "+0300",
        "12:00 Europe/Berlin (the system's; the file defines it otherwise)",
    );
    let named = "Europe/Berlin (the system's, for W. Europe Standard Time)";
    check("W. Europe Standard Time", "", &format!("12:00 {named}"));
    check("Our Town", "+0117", "11:43 Our Town (as the file defines it)");
    check("Nowhere", "", "12:00 Nowhere (unknown: treated as floating)");
}

#[test]
fn calendars_are_created() {
    let home = Home::new();
    let create = ["collections", "create", "work", "--type", "calendar"];
    assert_snapshot!(home.run(&create).masked_output(), @"work created");
    let create =
        ["collections", "create", "rare", "--type", "calendar", "--index", "summary:prefix"];
    assert_snapshot!(home.run(&create).masked_output(), @"rare created");
    assert_snapshot!(home.run(&["collections", "--format", "json"]).masked_output(), @r#"
    {"name":"rare","type":"calendar","items":0,"index":"summary:exact,prefix"}
    {"name":"work","type":"calendar","items":0,"index":"default"}
    "#);
    assert_snapshot!(home.run(&["collections", "index", "rare"]).masked_output(), @"summary               exact, prefix");
    assert_snapshot!(home.run(&["collections", "create", "x", "--type", "mail"]).masked_output(), @r#"
    ! error: invalid value "mail" for --type <TYPE>
    ! hint: possible values: address-book, calendar
    exit 2
    "#);
}

//! `larder agenda`, and the import of calendars, with the samples in three zones and two languages.

use crate::test_home::{Home, Run};
use insta::assert_snapshot;
use std::path::Path;

fn samples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/calendars").display().to_string()
}

/// Returns a home whose store holds the sample calendars.
pub fn with_calendars() -> Home {
    let home = Home::new();
    home.ok(&["import", "--quiet", &samples()]);
    home
}

/// Runs the program in another zone and language.
pub fn run_in(home: &Home, zone: &str, locale: &str, args: &[&str]) -> Run {
    home.finish(home.command(args).env("TZ", zone).env("LC_ALL", locale).output().unwrap())
}

#[test]
fn calendars_are_imported() {
    let home = Home::new();
    let folder = samples();
    assert_snapshot!(home.run(&["import", "--quiet", &folder]).stdout(), @"
    5 events added to Home
    5 events added to Work
    2 events added to Holidays
    1 event added to Customers
    3 tasks, 1 memo added to Tasks
    5 files, 8.9 kB
    4 time zone definitions, 3 distinct
    Undo: larder undo 1
    ");
    assert_snapshot!(home.run(&["collections"]).masked_output(), @"
    Customers             1 item  calendar
    Holidays              2 items  calendar  #c98879
    Home                  5 items  calendar  #63DA38
    Tasks                 4 items  calendar
    Work                  5 items  calendar
    ");
}

#[test]
fn a_week_is_listed_day_by_day() {
    let home = with_calendars();
    assert_snapshot!(run_in(&home, "Europe/Berlin", "C.UTF-8", &["agenda", "2026-W10"]).masked_output(), @"
    Mon 2 Mar 2026
      due          Water the plants (done)                                       Tasks      xkkvwdmk
      09:30-09:45  Standup                            (Room 4)                   Work       h7sb8b0z
      15:00-16:00  Bright & Early: numbers            (Microsoft Teams Meeting)  Customers  385dk83s
      18:00-19:30  中文课                             (VHS)                      Home       bp82wnjj

    Tue 3 Mar 2026
      08:00-08:30  Dentist                            (Dr. Vogel)                Home       qxgykc03
      09:30-09:45  Standup                            (Room 4)                   Work       h7sb8b0z

    Wed 4 Mar 2026
      20:00-       Night of short films (day 1 of 2)  (Kino Central)             Home       phq0hkwm

    Thu 5 Mar 2026
      -01:00       Night of short films (day 2 of 2)  (Kino Central)             Home       phq0hkwm
      09:00-10:30  Quarterly review                   (Big room)                 Work       b3vp0czt
      11:00-11:15  Standup, after the review          (Room 2)                   Work       eg7sn0kb

    Fri 6 Mar 2026
      all day      At the sea (day 1 of 3)            (Sylt)                     Home       rbprkztj
      09:30-09:45  Standup                            (Room 4)                   Work       h7sb8b0z
      14:00-15:00  Team photo (cancelled)             (Courtyard)                Work       1cs4g3pp
      due 17:00    Send the tax return                                           Tasks      1zscg71b
      17:00-18:00  Call with New York (tentative)                                Work       xmmrqpf9

    Sat 7 Mar 2026
      all day      At the sea (day 2 of 3)            (Sylt)                     Home       rbprkztj
      all day      Mum’s birthday                                                Home       6wnszjwv

    Sun 8 Mar 2026
      all day      At the sea (day 3 of 3)            (Sylt)                     Home       rbprkztj
      all day      International Women's Day                                     Holidays   vn7pdchd
    ");
}

#[test]
fn days_follow_zone_and_language() {
    let home = with_calendars();
    let day = &["agenda", "2026-03-02"];
    assert_snapshot!(run_in(&home, "Europe/Berlin", "de_DE.UTF-8", &["agenda", "5. märz 2026"]).masked_output(), @"
    Do 5. März 2026
      -01:00       Night of short films (day 2 of 2)  (Kino Central)  Home  phq0hkwm
      09:00-10:30  Quarterly review                   (Big room)      Work  b3vp0czt
      11:00-11:15  Standup, after the review          (Room 2)        Work  eg7sn0kb
    ");
    assert_snapshot!(run_in(&home, "America/New_York", "en_US.UTF-8", day).masked_output(), @"
    Mon 2 Mar 2026
      due          Water the plants (done)                             Tasks      xkkvwdmk
      03:30-03:45  Standup                  (Room 4)                   Work       h7sb8b0z
      09:00-10:00  Bright & Early: numbers  (Microsoft Teams Meeting)  Customers  385dk83s
      12:00-13:30  中文课                   (VHS)                      Home       bp82wnjj
    ");
    assert_snapshot!(run_in(&home, "Asia/Kathmandu", "C.UTF-8", day).masked_output(), @"
    Mon 2 Mar 2026
      due          Water the plants (done)                             Tasks      xkkvwdmk
      14:15-14:30  Standup                  (Room 4)                   Work       h7sb8b0z
      19:45-20:45  Bright & Early: numbers  (Microsoft Teams Meeting)  Customers  385dk83s
      22:45-       中文课 (day 1 of 2)      (VHS)                      Home       bp82wnjj
    ");
}

#[test]
fn one_calendar_fits_a_narrow_terminal() {
    let home = with_calendars();
    assert_snapshot!(run_in(&home, "Europe/Berlin", "C.UTF-8", &["agenda", "2026-03-06", "2026-03-07", "--in", "Home"]).masked_output(), @"
    Fri 6 Mar 2026
      all day  At the sea (day 1 of 3)  (Sylt)  rbprkztj

    Sat 7 Mar 2026
      all day  At the sea (day 2 of 3)  (Sylt)  rbprkztj
      all day  Mum’s birthday                   6wnszjwv
    ");
    let narrow = home
        .command(&["agenda", "2026-03-05"])
        .env("COLUMNS", "44")
        .env("TZ", "Europe/Berlin")
        .output()
        .unwrap();
    assert_snapshot!(home.finish(narrow).masked_output(), @"
    Thu 5 Mar 2026
      -01:00       Night of sh…  (…  …  phq0hkwm
      09:00-10:30  Quarterly r…  (…  …  b3vp0czt
      11:00-11:15  Standup, af…  (…  …  eg7sn0kb
    ");
    assert_snapshot!(home.run(&["agenda", "2026-03-05", "--in", "Garden"]).masked_output(), @r#"
    ! error: no such collection: "Garden"
    ! hint: `larder collections` lists the collections
    exit 1
    "#);
    assert_snapshot!(home.run(&["agenda", "2026-03-05", "--in", "work"]).masked_output(), @r#"
    ! error: no such collection: "work"
    ! hint: did you mean "Work"? `larder collections` lists them
    exit 1
    "#);
}

#[test]
fn colours_on_a_terminal() {
    let home = with_calendars();
    let run = run_in(
        &home,
        "Europe/Berlin",
        "C.UTF-8",
        &["agenda", "2026-03-06", "--in", "Work", "--color", "always"],
    );
    assert_snapshot!(run.masked_output().replace('\x1b', "~"), @"
    ~[1mFri 6 Mar 2026~[0m
      09:30-09:45  ~[36mStandup~[0m                         ~[2m(Room 4)~[0m     ~[36m~[0m~[2mh7sb8b0z~[0m
      14:00-15:00  ~[9mTeam photo (cancelled)~[0m          ~[2m(Courtyard)~[0m  ~[36m~[0m~[2m1cs4g3pp~[0m
      17:00-18:00  ~[36mCall with New York (tentative)~[0m  ~[2m~[0m             ~[36m~[0m~[2mxmmrqpf9~[0m
    ");
}

#[test]
fn an_empty_agenda_has_a_note() {
    let home = with_calendars();
    assert_snapshot!(home.run(&["agenda", "1999-01-01"]).masked_output(), @"
    ! note: no events
    exit 1
    ");
    assert_snapshot!(home.run(&["agenda", "1999-01-01", "--busy"]).masked_output(), @"
    ! note: no busy times
    exit 1
    ");
    assert_snapshot!(home.run(&["agenda", "1999-01-01", "--format", "json"]).masked_output(), @"exit 1");
    assert_snapshot!(home.run(&["agenda", "someday"]).masked_output(), @r#"
    ! error: unknown date "someday"; try today, next friday, 2026-03, +2w or today..+7d
    exit 2
    "#);
    assert_snapshot!(home.run(&["agenda", "--weekly"]).masked_output(), @"
    ! error: unknown option --weekly
    ! hint: usage: larder agenda [OPTIONS] [FROM] [TO]
    exit 2
    ");
    assert_eq!(home.run(&["agenda", "-1d", "today", "--in", "Home"]).code, 1);
    assert_snapshot!(home.run(&["agenda", "--format", "raw"]).masked_output(), @"
    ! error: --format raw is not supported by this command
    ! hint: use --format text or json
    exit 2
    ");
    assert_snapshot!(home.run(&["agenda", "2026-01", "-n", "1"]).masked_output(), @"
    Mon 5 Jan 2026
      08:30-08:45  Standup  (Room 4)  h7sb8b0z
    ! note: list cut at 1; narrow the range or raise --limit
    ");
}

#[test]
fn json_lists_occurrences() {
    let home = with_calendars();
    let json = |args: &[&str]| {
        let args = [&["agenda", "--format", "json"], args].concat();
        run_in(&home, "Europe/Berlin", "C.UTF-8", &args).masked_output()
    };
    assert_snapshot!(json(&["2026-03-06", "--in", "Home"]), @r#"{"id":"rbprkztj1r6sc","kind":"event","collection":"Home","uid":"9E1B3C58-7C1F-4D3B-A9C2-0E5A8F20D7A1","seq":1,"occurrence":"","summary":"At the sea","location":"Sylt","start":"2026-03-06","end":"2026-03-09","all_day":true,"recurring":false,"transparent":true}"#);
    assert_snapshot!(json(&["2026-03-05", "--in", "Work"]), @r#"
    {"id":"b3vp0cztc8be0","kind":"event","collection":"Work","uid":"review-q1-93hs@google.example","seq":1,"occurrence":"","summary":"Quarterly review","location":"Big room","status":"CONFIRMED","start":"2026-03-05T09:00:00+01:00","end":"2026-03-05T10:30:00+01:00","zone":"Europe/Berlin","all_day":false,"recurring":false,"transparent":false}
    {"id":"eg7sn0kb04d6j","kind":"event","collection":"Work","uid":"standup-7k2v@google.example","recurrence_id":"20260305T093000","seq":1,"occurrence":"20260305T093000","summary":"Standup, after the review","location":"Room 2","status":"CONFIRMED","start":"2026-03-05T11:00:00+01:00","end":"2026-03-05T11:15:00+01:00","zone":"Europe/Berlin","all_day":false,"recurring":true,"transparent":false}
    "#);
    assert_snapshot!(json(&["2026-03-06", "--in", "Tasks"]), @r#"{"id":"1zscg71b4m3cc","kind":"task","collection":"Tasks","uid":"b1f8a5d2-6c6f-4b8c-9a7d-2f9e6d0c1b11","seq":1,"occurrence":"","summary":"Send the tax return","start":"2026-03-06T17:00:00+01:00","end":"2026-03-06T17:00:00+01:00","due":"2026-03-06T17:00:00+01:00","zone":"Europe/Berlin","all_day":false,"recurring":false,"transparent":false,"done":false}"#);
}

#[test]
fn busy_time() {
    let home = with_calendars();
    let busy = |more: &[&str]| {
        let args = [&["agenda", "2026-03-04", "2026-03-06", "--busy"], more].concat();
        run_in(&home, "Europe/Berlin", "C.UTF-8", &args).masked_output()
    };
    assert_snapshot!(busy(&[]), @r"
    Wed 4 Mar 2026
      20:00-01:00 (Thu 5 Mar 2026)

    Thu 5 Mar 2026
      09:00-10:30
      11:00-11:15

    Fri 6 Mar 2026
      09:30-09:45
      17:00-18:00  tentative
    ");
    assert_snapshot!(busy(&["--format", "json"]), @r#"
    {"from":"2026-03-04T20:00:00+01:00","to":"2026-03-05T01:00:00+01:00","tentative":false}
    {"from":"2026-03-05T09:00:00+01:00","to":"2026-03-05T10:30:00+01:00","tentative":false}
    {"from":"2026-03-05T11:00:00+01:00","to":"2026-03-05T11:15:00+01:00","tentative":false}
    {"from":"2026-03-06T09:30:00+01:00","to":"2026-03-06T09:45:00+01:00","tentative":false}
    {"from":"2026-03-06T17:00:00+01:00","to":"2026-03-06T18:00:00+01:00","tentative":true}
    "#);
    let raw = busy(&["--format", "raw"]);
    let kept = raw.lines().filter(|line| !line.starts_with("DTSTAMP") && !line.starts_with("UID"));
    assert_snapshot!(kept.collect::<Vec<_>>().join("\n"), @r"
    BEGIN:VCALENDAR
    VERSION:2.0
    PRODID:-//Larder//EN
    BEGIN:VFREEBUSY
    DTSTART:20260303T230000Z
    DTEND:20260306T230000Z
    FREEBUSY;FBTYPE=BUSY:20260304T190000Z/20260305T000000Z
    FREEBUSY;FBTYPE=BUSY:20260305T080000Z/20260305T093000Z
    FREEBUSY;FBTYPE=BUSY:20260305T100000Z/20260305T101500Z
    FREEBUSY;FBTYPE=BUSY:20260306T083000Z/20260306T084500Z
    FREEBUSY;FBTYPE=BUSY-TENTATIVE:20260306T160000Z/20260306T170000Z
    END:VFREEBUSY
    END:VCALENDAR
    ");
}

/// A cancelled event keeps its title and does not count as busy.
#[test]
fn cancelled_events_stay_visible() {
    let home = Home::new();
    let event =
        |lines: &str| format!("BEGIN:VCALENDAR\nVERSION:2.0\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n");
    home.write(
        "work.ics",
        event("BEGIN:VEVENT\nUID:a\nSUMMARY:Daily\nDTSTART:20260413T090000Z\nDURATION:PT15M\nRRULE:FREQ=DAILY;COUNT=3"),
    );
    home.write(
        "message.ics",
        event("METHOD:CANCEL\nBEGIN:VEVENT\nUID:a\nSEQUENCE:1\nRECURRENCE-ID:20260414T090000Z"),
    );
    home.ok(&["import", "work.ics"]);
    let told = home.ok(&["import", "--into", "work", "message.ics"]);
    assert!(told.starts_with("1 event cancelled in work (1 file, "), "{told}");
    assert_snapshot!(home.ok(&["agenda", "2026-04-13", "2026-04-15"]), @"
    Mon 13 Apr 2026
      09:00-09:15  Daily              s8wqdcja

    Tue 14 Apr 2026
      09:00-09:15  Daily (cancelled)  kr2f6g9q

    Wed 15 Apr 2026
      09:00-09:15  Daily              s8wqdcja
    ");
    let busy = home.ok(&["agenda", "2026-04-13", "2026-04-15", "--busy"]);
    assert!(!busy.contains("Tue 14"), "{busy}");
    let told = home.ok(&["import", "--into", "work", "message.ics"]);
    assert!(told.starts_with("nothing new: 1 event unchanged in work"), "{told}");
    home.assert_store_is_sound();
}

#[test]
fn several_calendars() {
    let home = with_calendars();
    let agenda = |of: &[&str]| {
        let names = of.iter().flat_map(|name| ["--in", name]);
        let args: Vec<&str> =
            ["agenda", "2026-03-02", "2026-03-04"].into_iter().chain(names).collect();
        run_in(&home, "Europe/Berlin", "C.UTF-8", &args)
    };
    assert_snapshot!(agenda(&["Home", "Customers", "Home"]).masked_output(), @"
    Mon 2 Mar 2026
      15:00-16:00  Bright & Early: numbers            (Microsoft Teams Meeting)  Customers  385dk83s
      18:00-19:30  中文课                             (VHS)                      Home       bp82wnjj

    Tue 3 Mar 2026
      08:00-08:30  Dentist                            (Dr. Vogel)                Home       qxgykc03

    Wed 4 Mar 2026
      20:00-       Night of short films (day 1 of 2)  (Kino Central)             Home       phq0hkwm
    ");
    let all = agenda(&["Home", "Work", "Holidays", "Customers", "Tasks"]).masked_output();
    assert_eq!(all, agenda(&[]).masked_output());
    assert_eq!(agenda(&["Home", "Nowhere"]).code, 1);
}

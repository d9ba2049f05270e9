//! `larder watch` in a pipe and on a terminal, while other processes write.

use crate::test_home::{ANNA, BRUNO, Home, left_out};
use insta::assert_snapshot;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

/// A series of three days and a single event.
const WEEK: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n\
    BEGIN:VEVENT\r\nUID:standup\r\nSUMMARY:Standup\r\nDTSTART:20260302T093000Z\r\nDTEND:20260302T094500Z\r\n\
    RRULE:FREQ=DAILY;COUNT=3\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nUID:dentist\r\nSUMMARY:Dentist\r\nDTSTART:20260303T070000Z\r\nDTEND:20260303T073000Z\r\nEND:VEVENT\r\n\
    END:VCALENDAR\r\n";

/// A watch in a pipe; it is stopped when the value is dropped.
struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    fn start(home: &Home, args: &[&str]) -> Watch {
        let mut child = home.spawn(&mut home.command(&[&["watch"], args].concat()));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Watch { child, lines }
    }

    fn json(home: &Home, args: &[&str]) -> Watch {
        Watch::start(home, &[args, &["--format", "json"]].concat())
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("the watch has ended").unwrap()
    }

    fn object(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).expect(&line)
    }

    /// Returns the changes up to the next `complete`: `+anna-1`, `~anna-1`, `-anna-1`, sorted by
    /// UID.
    fn changes(&mut self) -> Vec<String> {
        let mut told: Vec<String> = self.objects().iter().map(mark).collect();
        told.sort();
        told
    }

    fn objects(&mut self) -> Vec<Value> {
        let mut objects = Vec::new();
        loop {
            let object = self.object();
            if object["change"] == "complete" {
                assert!(object["seq"].is_i64(), "{object}");
                return objects;
            }
            objects.push(object);
        }
    }
}

fn mark(object: &Value) -> String {
    let mark = match object["change"].as_str().unwrap() {
        "added" => "+",
        "modified" => "~",
        "removed" => "-",
        "reset" => return "=".into(),
        other => panic!("{other}"),
    };
    format!("{mark}{}", object["uid"].as_str().unwrap())
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

#[test]
fn changes_of_other_processes_are_printed() {
    let home = Home::with_book();
    let mut watch = Watch::json(&home, &["org:orchard"]);
    let first = watch.object();
    assert_eq!(
        (&first["change"], &first["full_name"][0]),
        (&"added".into(), &"Anna Hölderlin".into())
    );
    assert_eq!(watch.object()["change"], "complete");
    let mut found = home.json(&["find", "org:orchard"]).remove(0);
    found.as_object_mut().unwrap().insert("change".into(), "added".into());
    assert_eq!(first, found, "an item is as `find` prints it");
    home.run_with(&["add"], ANNA.replace("anna-1", "new-1").as_bytes());
    assert_eq!(watch.changes(), ["+new-1"]);
    home.run_with(
        &["edit", "uid:new-1", "--from", "-"],
        ANNA.replace("anna-1", "new-1").replace("1234567", "7").as_bytes(),
    );
    assert_eq!(watch.changes(), ["~new-1"]);
    // A change that the query does not match: the next line is the change after it.
    home.ok(&["remove", "uid:bruno-2"]);
    home.run_with(
        &["edit", "uid:new-1", "--from", "-"],
        ANNA.replace("anna-1", "new-1").replace("Orchard", "Meadow").as_bytes(),
    );
    assert_eq!(watch.changes(), ["-new-1"]);
    home.ok(&["undo"]);
    assert_eq!(watch.changes(), ["+new-1"]);
    home.ok(&["remove", "--query", "org:orchard"]);
    assert_eq!(watch.changes(), ["-anna-1", "-new-1"]);
    home.ok(&["undo"]);
    assert_eq!(watch.changes(), ["+anna-1", "+new-1"]);
}

/// A change is printed at its commit notification and not at the next poll. A busy machine may
/// delay one change, but not every one.
#[test]
fn a_change_is_printed_at_once() {
    let home = Home::with_book();
    let mut watch = Watch::json(&home, &["org:orchard"]);
    watch.changes();
    let told = |number: usize| {
        let run = home.run_with(&["add"], ANNA.replace("anna-1", &format!("n{number}")).as_bytes());
        assert_eq!(run.code, 0, "{}", run.masked_output());
        let began = Instant::now();
        assert_eq!(watch.changes(), [format!("+n{number}")]);
        began.elapsed()
    };
    let soonest = (0..5).map(told).min().unwrap();
    assert!(soonest < Duration::from_millis(500), "{soonest:?}");
}

/// A restored store is another one, a purge leaves no change to report, and a collection may be
/// created later.
#[test]
fn the_store_is_replaced_during_a_watch() {
    let home = Home::with_book();
    home.ok(&["backup", "copy.db"]);
    let mut watch = Watch::json(&home, &["org:orchard"]);
    assert_eq!(watch.changes(), ["+anna-1"]);
    let card = ANNA.replace("anna-1", "new-1");
    home.run_with(&["add"], card.as_bytes());
    assert_eq!(watch.changes(), ["+new-1"]);
    home.ok(&["restore", "copy.db"]);
    assert_eq!(watch.changes(), ["+anna-1", "="]);
    home.ok(&["purge", "uid:anna-1", "--yes"]);
    let told = watch.changes();
    assert!(told == ["-anna-1"] || told == ["="], "{told:?}");
    home.run_with(&["add"], card.as_bytes());
    assert_eq!(watch.changes(), ["+new-1"]);
    let mut watch = Watch::json(&home, &["--in", "contacts", "org:orchard"]);
    assert_eq!(watch.changes(), ["+new-1"]);
    home.ok(&["collections", "rename", "contacts", "others"]);
    assert_eq!(watch.changes(), ["="]);
    home.ok(&["collections", "rename", "others", "contacts"]);
    assert_eq!(watch.changes(), ["+new-1", "="]);
}

/// The sum of all changes is the answer of a new query, however fast other processes write.
#[test]
fn changes_add_up_to_the_answer() {
    let home = Home::with_book();
    let mut watch = Watch::json(&home, &["has:email", "--fields", "full_name"]);
    let mut held: Vec<String> = watch.changes();
    home.generate("many.vcf", 3000, 5);
    home.ok(&["import", "many.vcf", "--batch", "100"]);
    home.ok(&["remove", "--query", "full_name:a"]);
    home.ok(&["undo"]);
    home.run_with(&["add"], ANNA.replace("anna-1", "last").as_bytes());
    while !held.contains(&"+last".to_string()) {
        for object in watch.objects() {
            let uid = format!("+{}", object["uid"].as_str().unwrap_or_default());
            match object["change"].as_str().unwrap() {
                "reset" => held.clear(),
                "removed" => held.retain(|of| *of != uid),
                "added" => held.push(uid),
                _ => assert!(held.contains(&uid), "{object}"),
            }
        }
    }
    held.sort();
    let answer = home.json(&["find", "has:email", "--fields", "full_name"]);
    let mut answer: Vec<String> =
        answer.iter().map(|of| format!("+{}", of["uid"].as_str().unwrap())).collect();
    answer.sort();
    assert!(held == answer, "{} are held, {} are there", held.len(), answer.len());
}

#[test]
fn occurrences_in_a_range() {
    let home = Home::new();
    home.write("week.ics", WEEK);
    home.ok(&["import", "week.ics"]);
    let mut watch = Watch::json(&home, &["when:2026-03-03..2026-03-10", "--expand"]);
    let starts = |objects: Vec<Value>| {
        let mut all = Vec::new();
        for object in objects {
            for of in object["occurrences"].as_array().unwrap() {
                all.push(format!("{} {}", mark(&object), of["start"].as_str().unwrap()));
            }
        }
        all.sort();
        all
    };
    assert_eq!(
        starts(watch.objects()),
        [
            "+dentist 2026-03-03T07:00:00Z",
            "+standup 2026-03-03T09:30:00Z",
            "+standup 2026-03-04T09:30:00Z"
        ]
    );
    home.ok(&["edit", "uid:standup", "--scope", "all", "--rule", "FREQ=DAILY;COUNT=4"]);
    assert_eq!(
        starts(watch.objects()),
        [
            "~standup 2026-03-03T09:30:00Z",
            "~standup 2026-03-04T09:30:00Z",
            "~standup 2026-03-05T09:30:00Z"
        ]
    );
    // Out of the range and back.
    home.ok(&["edit", "uid:dentist", "--start", "2026-04-03 08:00"]);
    assert_eq!(watch.changes(), ["-dentist"]);
    home.ok(&["undo"]);
    assert_eq!(starts(watch.objects()), ["+dentist 2026-03-03T07:00:00Z"]);
    // One occurrence is moved within the range: it becomes an item, and leaves its series.
    home.ok(&[
        "edit",
        "uid:standup",
        "--scope",
        "this",
        "--occurrence",
        "2026-03-04",
        "--start",
        "2026-03-04 15:00",
    ]);
    assert_eq!(
        starts(watch.objects()),
        [
            "+standup 2026-03-04T15:00:00Z",
            "~standup 2026-03-03T09:30:00Z",
            "~standup 2026-03-05T09:30:00Z"
        ]
    );
}

#[test]
fn as_text() {
    let home = Home::new();
    home.write("week.ics", WEEK);
    home.write("book.vcf", ANNA);
    home.ok(&["import", "week.ics", "book.vcf"]);
    let run = home.code(&["watch", "--changes", "0", "anna"], 0);
    assert!(
        run.stdout().contains(
            "  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works\n"
        ),
        "{}",
        run.masked_output()
    );
    assert!(run.stdout().starts_with("+ "), "{}", run.masked_output());
    let run = home.code(&["watch", "--changes", "0", "standup"], 0);
    assert!(
        run.stdout().contains("  2026-03-02 09:30  Standup  repeats\n"),
        "{}",
        run.masked_output()
    );
    let run =
        home.code(&["watch", "--changes", "0", "--expand", "standup", "when:2026-03-03.."], 0);
    assert!(
        run.stdout().contains("  2026-03-03 09:30  Standup  repeats, 2 times\n"),
        "{}",
        run.masked_output()
    );
    let run = home.code(
        &[
            "watch",
            "--changes",
            "0",
            "--fields",
            "full_name,phone",
            "-standup",
            "--kind",
            "contact",
        ],
        0,
    );
    assert!(run.stdout().contains("\tAnna Hölderlin\t+49 30 1234567\n"), "{}", run.masked_output());
    let mut watch = Watch::start(&home, &["standup"]);
    let handle = watch.line()[2..10].to_string();
    home.ok(&["remove", "uid:standup", "--scope", "all"]);
    assert_eq!(watch.line(), format!("- {handle}"));
    home.ok(&["undo"]);
    assert!(watch.line().starts_with(&format!("+ {handle}  ")));
}

#[test]
fn invalid_watches_are_refused() {
    let home = Home::new();
    home.code(&["watch"], 1);
    home.write("book.vcf", ANNA);
    home.ok(&["import", "book.vcf"]);
    for (args, code, why) in [
        (&["anna", "--expand"][..], 2, "--expand needs a time range"),
        (&["anna", "--fields", "nmae"], 2, "unknown field"),
        (&["(anna"], 2, "error"),
        (&["anna", "--in", "contact"], 1, "did you mean \"contacts\"?"),
        (&["anna", "--format", "raw"], 2, "text or json"),
    ] {
        let run = home.code(&[&["watch"], args].concat(), code);
        assert!(run.stderr().contains(why), "{args:?}: {}", run.masked_output());
    }
}

/// A signal ends a watch in order; so do its options, and a closed pipe even if nothing is written.
#[test]
fn a_watch_ends() {
    let home = Home::with_book();
    for signal in ["INT", "TERM"] {
        let mut watch = Watch::json(&home, &["anna"]);
        watch.changes();
        let kill = format!("kill -{signal} {}", watch.child.id());
        assert_eq!(home.shell(&kill).code, 0);
        assert_eq!(watch.child.wait().unwrap().code(), Some(130), "{signal}");
    }
    home.code(&["watch", "anna", "--for", "0"], 0);
    let mut watch = Watch::json(&home, &["anna", "--changes", "2"]);
    watch.changes();
    for uid in ["one", "two"] {
        home.run_with(&["add"], ANNA.replace("anna-1", uid).as_bytes());
        assert_eq!(watch.changes(), [format!("+{uid}")]);
    }
    assert_eq!(watch.child.wait().unwrap().code(), Some(0));
    let script = "{ larder watch anna; echo $? >code; } | head -n 1 >line; cat code";
    assert_eq!(home.shell(script).masked_output(), "0\n");
}

/// A commit by a writer that died before its notification is noticed by the poll of each second.
/// Here no writer dies, but the notify file cannot be written.
#[test]
fn a_commit_without_notification_is_found() {
    let home = Home::with_book();
    let mut watch = Watch::json(&home, &["org:orchard"]);
    assert_eq!(watch.changes(), ["+anna-1"]);
    let bell = home.data().join("data.notify");
    std::fs::remove_file(&bell).unwrap();
    std::os::unix::fs::symlink("/dev/full", &bell).unwrap();
    let began = Instant::now();
    let run = home.run_with(&["add"], ANNA.replace("anna-1", "unheard").as_bytes());
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert_eq!(watch.changes(), ["+unheard"]);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// Returns the output of a watch on a terminal of this size. After its first list is drawn, another
/// process runs a command.
fn capture_screen(
    home: &Home,
    (lines, columns): (usize, usize),
    watch: &str,
    other: &str,
) -> Option<String> {
    let run = home.shell(&format!(
        "command -v script >/dev/null && command -v stty >/dev/null || exit 77
         export SHELL=/bin/sh TERM=xterm; : >said
         (until grep -q 'Ctrl-C ends' said; do sleep 0.02; done; {other}) >/dev/null &
         script -qec 'stty rows {lines} cols {columns}; larder watch {watch}; echo \"code $?\"' /dev/null </dev/null >said
         wait; cat said"
    ));
    if run.code == 77 {
        left_out("a watch on a terminal", "there is no terminal (no script, or no stty)");
        return None;
    }
    assert_eq!(run.code, 0, "{}", run.masked_output());
    Some(run.stdout())
}

/// Returns the final lines on the terminal. A watch uses only cursor-up, clear and text.
fn last_frame(out: &str) -> Vec<String> {
    let (mut lines, mut at): (Vec<String>, usize) = (vec![String::new()], 0);
    let mut rest = out;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\r' => {}
            '\n' => {
                at += 1;
                lines.resize(lines.len().max(at + 1), String::new());
            }
            '\x1b' => {
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                let (number, name) = (&rest[1..end], &rest[end..=end]);
                match name {
                    "A" => at -= number.parse::<usize>().unwrap(),
                    "K" => lines[at].clear(),
                    "J" => lines.truncate(at + 1),
                    "m" => {}
                    other => panic!("{other}"),
                }
                rest = &rest[end + 1..];
            }
            c => lines[at].push(c),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.into_iter().map(|line| mask_clock(&line)).collect()
}

/// Replaces the time of day in the last line by `[CLOCK]`.
fn mask_clock(line: &str) -> String {
    match (line.find(" · "), line.find(" · Ctrl-C")) {
        (Some(_), Some(end)) => {
            format!("{}[CLOCK]{}", &line[..end - "00:00:00".len()], &line[end..])
        }
        _ => line.to_string(),
    }
}

#[test]
fn a_list_on_a_terminal() {
    let home = Home::with_book();
    home.write("week.ics", WEEK);
    home.ok(&["import", "week.ics"]);
    home.write("new.vcf", ANNA.replace("anna-1", "new").replace("Anna", "Zoe"));
    let add = "larder add new.vcf";
    let Some(out) =
        capture_screen(&home, (24, 60), "--kind contact --fields full_name --changes 1", add)
    else {
        return;
    };
    let lines = last_frame(&out);
    let names: Vec<&str> = lines.iter().map(|line| line.get(12..).unwrap_or(line)).collect();
    assert_eq!(
        names,
        [
            "Bruno Álvarez",
            "Chloé Dupont",
            "Anna Hölderlin",
            "Zoe Hölderlin",
            "4 contacts · changed [CLOCK] · Ctrl-C ends",
            "code 0"
        ],
        "{lines:?}"
    );
    assert!(lines[3].starts_with("+ ") && lines[2].starts_with("  "), "{lines:?}");
}

/// Days fit the terminal, and removed items disappear.
#[test]
fn days_on_a_terminal() {
    let home = Home::new();
    home.write("week.ics", WEEK);
    home.ok(&["import", "week.ics"]);
    let remove = "larder remove uid:dentist";
    let Some(out) = capture_screen(&home, (24, 60), "when:2026-03 --changes 1", remove) else {
        return;
    };
    assert!(out.contains("2 events · unchanged since "), "{out}");
    assert_eq!(
        last_frame(&out),
        [
            "Mon 2 Mar 2026",
            "  09:30-09:45  Standup  ng2wh7xb",
            "Tue 3 Mar 2026",
            "  09:30-09:45  Standup  ng2wh7xb",
            "Wed 4 Mar 2026",
            "  09:30-09:45  Standup  ng2wh7xb",
            "1 event · changed [CLOCK] · Ctrl-C ends",
            "code 0"
        ]
    );
    let Some(out) = capture_screen(&home, (5, 60), "when:2026-03 --changes 1", "larder undo")
    else {
        return;
    };
    assert_eq!(
        last_frame(&out),
        [
            "Mon 2 Mar 2026",
            "  09:30-09:45  Standup  ng2wh7xb",
            "  … and 3 more",
            "2 events · changed [CLOCK] · Ctrl-C ends",
            "code 0"
        ]
    );
}

/// Control-C leaves the list in place and a complete log.
#[test]
fn interrupted_on_a_terminal() {
    let home = Home::with_book();
    let run = home.shell(
        "command -v script >/dev/null || exit 77
         export SHELL=/bin/sh TERM=xterm; : >said
         (until grep -q 'Ctrl-C ends' said; do sleep 0.02; done; printf '\\003'; sleep 1) |
         script -qec 'larder watch anna --query-log q.jsonl' /dev/null >said",
    );
    if run.code == 77 {
        return left_out("an interrupted watch", "there is no terminal to type on (no script)");
    }
    assert_eq!(run.code, 130, "{}", run.masked_output());
    let log = std::fs::read_to_string(home.work("q.jsonl")).unwrap();
    assert!(log.contains("\"close\"") && log.ends_with("\"end\"}\n"), "{log}");
}

/// Typed keys do not appear in the list. The terminal is as before when the watch has ended, also
/// after it was interrupted.
#[test]
fn keys_are_not_echoed() {
    let echo = "stty -a </dev/tty | grep -qw -e -echo";
    for (end, options) in [("larder add bruno.vcf", "--changes 1"), ("kill -INT $(cat pid)", "")] {
        let home = Home::with_book();
        home.write("bruno.vcf", BRUNO.replace("bruno-2", "bruno-3"));
        let run = home.shell(&format!(
            "command -v script >/dev/null && command -v stty >/dev/null || exit 77
             export SHELL=/bin/sh TERM=xterm
             cat >inner <<'END'
             (tries=2000
              until {echo} || [ $tries = 0 ]; do tries=$((tries - 1)); done
              {echo} && echo silent
              {end}) >said 2>&1 &
             sh -c 'echo $$ >pid; exec larder watch bruno {options}'
             wait
             {echo} || echo restored >>said
END
             script -qec '. ./inner' /dev/null </dev/null >screen; cat said"
        ));
        if run.code == 77 {
            return left_out("a silent terminal", "there is no terminal (no script, or no stty)");
        }
        let said = run.stdout();
        assert!(said.starts_with("silent\n") && said.ends_with("restored\n"), "{said}");
    }
}

/// Returns the next changes of messages, as many as these at least, by Message-ID. A run of `sync`
/// may have several batches.
fn message_changes(watch: &mut Watch, count: usize) -> Vec<String> {
    let mark = |object: &Value| match object["change"].as_str().unwrap() {
        "reset" => "=".to_string(),
        change => format!("{change} {}", object["message_id"].as_str().unwrap()),
    };
    let mut changes: Vec<String> = Vec::new();
    while changes.len() < count {
        changes.extend(watch.objects().iter().map(mark));
    }
    changes.sort();
    changes
}

#[test]
fn changes_of_messages_are_printed() {
    let home = Home::new();
    let write = |path: &str, id: &str, body: &str| {
        let text = format!(
            "Message-ID: <{id}>\nFrom: Anna <anna@b.example>\nSubject: note {id}\n\
             Date: Mon, 02 Mar 2026 10:00:00 +0000\n\n{body}\n"
        );
        home.write(&format!("mail/{path}"), text);
    };
    for folder in ["mail/cur", "mail/new", "mail/a/cur", "mail/a/new"] {
        std::fs::create_dir_all(home.work(folder)).unwrap();
    }
    let rename = |from: &str, to: &str| {
        std::fs::rename(home.work("mail").join(from), home.work("mail").join(to)).unwrap();
    };
    write("cur/1:2,S", "m1", "a walrus");
    write("cur/2:2,S", "m2", "a seal");
    home.ok(&["sources", "add", home.work("mail").to_str().unwrap()]);
    home.ok(&["sync"]);
    let query = ["--kind", "message", "walrus", "maildir:/"];
    assert_snapshot!(home.ok(&[&["watch", "--changes", "0"], &query[..]].concat()), @"+ 574gsmtn  2026-03-02 10:00  Anna  note m1");
    let run = home.code(&["watch", "--kind", "message", "--sort", "date", "walrus"], 2);
    assert_snapshot!(run.masked_output(), @"
    ! error: --sort cannot be used for messages
    exit 2
    ");

    let mut watch = Watch::json(&home, &query);
    let first = watch.object();
    assert_eq!((&first["change"], &first["subject"]), (&"added".into(), &"note m1".into()));
    assert_eq!(watch.object()["change"], "complete");
    let mut text = Watch::start(&home, &query);
    let line = text.line();
    let id = line.split(' ').nth(1).unwrap().to_string();

    write("new/3", "m3", "another walrus");
    write("new/4", "m4", "another seal");
    home.ok(&["sync"]);
    assert_eq!(message_changes(&mut watch, 1), ["added m3"]);
    assert!(text.line().ends_with("note m3"));
    rename("cur/1:2,S", "cur/1:2,FS");
    rename("new/4", "cur/4:2,S");
    home.ok(&["sync"]);
    assert_eq!(message_changes(&mut watch, 1), ["modified m1"]);
    assert_eq!(text.line().split("  ").next(), Some(&*format!("~ {id}")));
    rename("cur/1:2,FS", "a/cur/1:2,FS");
    std::fs::remove_file(home.work("mail").join("new/3")).unwrap();
    home.ok(&["sync"]);
    assert_eq!(message_changes(&mut watch, 2), ["removed m1", "removed m3"]);
    assert!(text.line().starts_with("- ") && text.line().starts_with("- "));
    rename("a/cur/1:2,FS", "cur/1:2,F");
    home.ok(&["sync"]);
    assert_eq!(message_changes(&mut watch, 1), ["added m1"]);

    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let _missing = std::fs::remove_file(home.data().join(name));
    }
    assert_eq!(message_changes(&mut watch, 1), ["="]);
    home.ok(&["sync"]);
    assert_eq!(message_changes(&mut watch, 1), ["added m1"]);
}

/// A watch shows the answer to the new definition of a saved search, and ends if there is none.
#[test]
fn saved_searches_are_followed() {
    let home = Home::with_book();
    home.ok(&["searches", "add", "other", "--kind", "contact", "bruno"]);
    home.ok(&["searches", "add", "friends", "--kind", "contact", "anna"]);
    home.ok(&["searches", "add", "all", "--kind", "contact", "@friends or uid:nobody"]);
    let mut watch = Watch::json(&home, &["@all"]);
    assert_eq!(watch.changes(), ["+anna-1"]);
    // Another search changes nothing.
    home.ok(&["searches", "add", "other", "--kind", "contact", "anna"]);
    home.ok(&["searches", "add", "friends", "--kind", "contact", "bruno"]);
    assert_eq!(watch.changes(), ["+bruno-2", "="]);
    home.ok(&["remove", "uid:bruno-2"]);
    assert_eq!(watch.changes(), ["-bruno-2"]);
    home.ok(&["searches", "remove", "friends"]);
    let mut error = String::new();
    let mut errors = watch.child.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut errors, &mut error).unwrap();
    assert!(error.contains("no saved search is named \"friends\""), "{error}");
    assert_eq!(watch.child.wait().unwrap().code(), Some(2));
}

/// The next synchronisation removes them from the index.
#[test]
fn messages_of_a_source_that_an_undo_takes_leave_an_open_view() {
    let home = crate::mail_lists::home_with_mail();
    home.write("other/cur/1.host:2,S", "Message-ID: <b9>\nSubject: walrus\n\nText.\n");
    home.ok(&["sources", "add", "other"]);
    home.ok(&["sync"]);
    let mut watch =
        Watch::json(&home, &["--kind", "message", "subject:walrus", "from:nobody or mid:b9"]);
    assert_eq!(message_changes(&mut watch, 1), ["added b9"]);
    home.code(&["undo"], 0);
    assert_eq!(message_changes(&mut watch, 1), ["removed b9"]);
}

/// Without all of its commits, the store does not know the sources.
#[test]
fn sources_are_followed_after_the_loss_of_commits_is_settled() {
    let home = crate::mail_lists::home_with_mail();
    home.write("other/cur/1.host:2,S", "Message-ID: <b9>\nSubject: walrus\n\nText.\n");
    home.ok(&["sources", "add", "other"]);
    home.ok(&["sync"]);
    let (data, old) = (home.data().join("data.db"), home.work("old.db"));
    std::fs::copy(&data, &old).unwrap();
    home.ok(&["searches", "add", "other", "--kind", "message", "walrus"]);
    for end in ["-wal", "-shm"] {
        let _missing = std::fs::remove_file(home.data().join(format!("data.db{end}")));
    }
    std::fs::copy(&old, &data).unwrap();
    home.code(&["undo"], 4);
    let mut watch =
        Watch::json(&home, &["--kind", "message", "subject:walrus", "from:nobody or mid:b9"]);
    assert_eq!(message_changes(&mut watch, 1), ["added b9"]);
    std::fs::remove_file(home.data().join("data.notify")).unwrap();
    home.code(&["undo"], 0);
    assert_eq!(message_changes(&mut watch, 1), ["removed b9"]);
}

#[test]
fn messages_of_a_saved_search_and_of_a_source_are_watched() {
    let home = crate::mail_lists::home_with_mail();
    home.ok(&["searches", "add", "mine", "from:anna"]);
    let mut watch = Watch::json(&home, &["--kind", "message", "--in", "post", "@mine"]);
    let first = message_changes(&mut watch, 1);
    assert_eq!(first, ["added a1"]);
    home.ok(&["searches", "add", "mine", "from:bruno"]);
    assert_eq!(message_changes(&mut watch, 1), ["added a2", "removed a1"]);
    let watch = |args: &[&str]| home.run(&[&["watch", "--changes", "0"], args].concat());
    let args = ["--kind", "message", "--in", "post", "walrus"];
    assert_eq!(watch(&args[2..]).stdout(), watch(&args).stdout());
    let unknown = watch(&["--kind", "message", "--in", "nowhere", "walrus"]);
    assert!(unknown.stderr().contains("no mail of a source \"nowhere\""), "{}", unknown.stderr());
    home.write("anna.vcf", ANNA);
    home.ok(&["import", "anna.vcf"]);
    let mixed = watch(&["from:bruno", "or", "anna"]);
    assert_eq!(
        mixed.stderr(),
        "note: messages are not watched; for them: larder watch --kind message QUERY\n"
    );
    assert!(mixed.stdout().contains("Anna"), "{}", mixed.stdout());
    assert_eq!(watch(&["anna"]).stderr(), "");
}

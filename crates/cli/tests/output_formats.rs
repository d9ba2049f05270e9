//! Output formats, widths, tabs, labels, and hints.

use crate::test_home::{ANNA, BRUNO, Home};
use insta::assert_snapshot;
use std::time::{Duration, Instant};

/// Every subcommand prints JSON or refuses it; `3` marks invalid input.
#[test]
fn every_subcommand_honours_or_refuses_a_format() {
    let home = Home::with_book();
    home.write("bruno.vcf", BRUNO.replace("bruno-2", "bruno-3"));
    home.write("anna.vcf", ANNA.replace("Orchard", "Meadow"));
    home.write("log", r#"{"at_us":1,"pid":2,"event":"end"}"#);
    for line in [
        "import book.vcf",
        "find",
        "find --count",
        "find --explain anna",
        "find --fields email",
        "show uid:anna-1",
        "add bruno.vcf",
        "edit uid:anna-1 --from anna.vcf",
        "edit uid:anna-1 --from anna.vcf",
        "remove --query bruno --dry-run",
        "remove uid:bruno-3",
        "undo",
        "log",
        "log 1",
        "log uid:anna-1",
        "purge uid:bruno-3 --yes",
        "collections",
        "collections create friends",
        "collections index friends",
        "collections index friends --index none",
        "collections rename friends others",
        "collections remove others",
        "export contacts -o out.vcf",
        "fields",
        "check",
        "check --rebuild",
        "backup copy.db",
        "restore copy.db",
        "measure run -- true",
        "measure queries log",
    ] {
        // Before `--`, which ends the options.
        let args: Vec<&str> = ["--format", "json"].into_iter().chain(line.split(' ')).collect();
        let run = home.code(&args, 0);
        assert!(!run.out.is_empty(), "{line} says nothing");
        for object in run.stdout().lines() {
            let value: serde_json::Value = serde_json::from_str(object).expect(object);
            assert!(value.is_object(), "{line}: {object}");
        }
    }
    for (line, format, supported) in [
        ("export contacts", "json", "text or raw"),
        ("completions bash", "json", "text"),
        ("man", "json", "text"),
        ("measure generate contacts 1", "json", "text"),
        ("find --count", "raw", "text or json"),
        ("log", "raw", "text or json"),
        ("log 1", "raw", "text or json"),
        ("check", "raw", "text or json"),
        ("import book.vcf", "raw", "text or json"),
    ] {
        let args: Vec<&str> = line.split(' ').chain(["--format", format]).collect();
        let run = home.code(&args, 2);
        let expect = format!(
            "error: --format {format} is not supported by this command\nhint: use --format {supported}\n"
        );
        assert_eq!((run.stdout(), run.stderr()), (String::new(), expect), "{line}");
    }
}

#[test]
fn count_and_explain_conflict() {
    let home = Home::with_book();
    let run = home.code(&["find", "--count", "--explain", "anna"], 2);
    assert!(
        run.stderr().contains("--count cannot be used with --explain"),
        "{}",
        run.masked_output()
    );
}

/// Rows fit a known width and are complete in a pipe.
#[test]
fn rows_fit() {
    let home = Home::new();
    let long = ANNA.replace("Orchard Works", "Orchard Works of the Lower Valley and All Its Hills");
    home.write(
        "book of many people and places, taken from an old phone.vcf",
        [&long, BRUNO].concat(),
    );
    home.ok(&["import", "book of many people and places, taken from an old phone.vcf"]);
    home.ok(&["collections", "create", "friends from the years in the lower valley, and theirs"]);
    for verb in ["find", "log", "collections", "fields"] {
        // A list of contacts leaves out columns first.
        let widths = if verb == "find" { [39, 38] } else { [60, 55] };
        let shown = |columns: &str| {
            let run = home.command(&[verb]).env("COLUMNS", columns).output().unwrap();
            home.finish(run).stdout()
        };
        let whole = home.ok(&[verb]);
        assert!(!whole.contains('…'), "{whole}");
        assert_eq!(shown(""), whole);
        for columns in widths {
            let text = shown(&columns.to_string());
            assert!(text.contains('…'), "{verb} {columns}: {text}");
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{verb} {columns}: {line}");
            }
        }
    }
    assert!(home.ok(&["find"]).contains("Lower Valley and All Its Hills"));
    let narrow = home.command(&["find"]).env("COLUMNS", "60").output().unwrap();
    assert_snapshot!(home.finish(narrow).stdout(), @"
    kc7xst8t  Bruno Álvarez   030 765-43-21 (home)
    xdnskgpk  Anna Hölderlin  +49 30 1234567 (mobile)
    ");
    // Names are distinguished by their beginning.
    let narrow = home.command(&["find"]).env("COLUMNS", "40").output().unwrap();
    assert_snapshot!(home.finish(narrow).stdout(), @"
    kc7xst8t  Bruno Álvarez   030 765-43-21
    xdnskgpk  Anna Hölderlin  +49 30 1234567
    ");
}

/// A narrow log has no times, and shortens details and then commands, but no counts.
#[test]
fn the_log_fits_narrow_terminals() {
    let home = Home::with_book();
    home.ok(&["collections", "create", "friends from the years in the lower valley"]);
    home.ok(&["edit", "xdnskgpk", "--note", "moved"]);
    home.ok(&["undo"]);
    let log = |columns: &str| {
        let output = home.command(&["log"]).env("COLUMNS", columns).output().unwrap();
        let text = home.finish(output).stdout();
        let width = columns.parse::<usize>().unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        let is_date = |word: &str| word.len() == 10 && word.starts_with("20");
        let mask = |word: &str| if is_date(word) { "YYYY-MM-DD".into() } else { word.to_string() };
        let line = |line: &str| line.split(' ').map(mask).collect::<Vec<_>>().join(" ");
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(log("69"), @"
    4  YYYY-MM-DD  undo    ~1  operation 3, edit
    3  YYYY-MM-DD  edit    ~1  xdnskgpk Anna Hölderlin in…  (undone by 4)
    2  YYYY-MM-DD  create      friends from the years in the lower valley
    1  YYYY-MM-DD  import  +3  book.vcf
    ");
    assert_snapshot!(log("40"), @"
    4  YYYY-MM-DD  undo    ~1  operation 3,…
    3  YYYY-MM-DD  edit    ~1  (undone by 4)
    2  YYYY-MM-DD  create      friends from…
    1  YYYY-MM-DD  import  +3  book.vcf
    ");
    assert_snapshot!(log("30"), @"
    4  YYYY-MM-DD  undo    ~1  op…
    3  YYYY-MM-DD  edit    ~1  (u…
    2  YYYY-MM-DD  create      fr…
    1  YYYY-MM-DD  import  +3  bo…
    ");
}

#[test]
fn one_tab_before_each_field() {
    let home = Home::with_book();
    let text = home.ok(&["find", "--fields", "phone,org,note", "--sort", "none"]);
    assert_eq!(
        text,
        "xdnskgpk\t+49 30 1234567\tOrchard Works\t\nkc7xst8t\t030 765-43-21\t\t\nfhbw2pvt\t\t\t\n"
    );
}

#[test]
fn labels_are_as_wide_as_the_widest() {
    let home = Home::new();
    let card = ANNA.replace(
        "END:VCARD",
        "X-EVOLUTION-BLOG-URL:https://example.org\r\nX-EVOLUTION-SPOUSE:Otto\r\nEND:VCARD",
    );
    home.write("anna.vcf", card);
    home.ok(&["import", "anna.vcf"]);
    for name in ["uid:anna-1", "contacts/anna-1"] {
        let page = home.ok(&["show", name]);
        let values: std::collections::BTreeSet<_> = page
            .lines()
            .skip(1)
            .map(|line| line.find("  ").map(|at| line.len() - line[at..].trim_start().len()))
            .collect();
        assert_eq!(values.len(), 1, "{page}");
    }
}

#[test]
fn rejects_have_hints() {
    let home = Home::new();
    assert_snapshot!(home.run_with(&["add"], b"hello\n").masked_output(), @r#"
    ! error: standard input: no vCard and no calendar item in the text
    ! hint: a vCard begins with BEGIN:VCARD and ends with END:VCARD
    ! hint: for example: printf 'BEGIN:VCARD\nVERSION:4.0\nFN:Anna Example\nEND:VCARD\n' | larder add
    ! hint: to add an event in words: larder add --kind event "Lunch tomorrow 12:30"
    exit 3
    "#);
    assert!(!home.data().exists(), "nothing to add made a store");
    home.write("x.vcf.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03 no card");
    assert_snapshot!(home.run(&["import", "x.vcf.gz", "--quiet"]).masked_output(), @"
    no items in x.vcf.gz (1 file, 18 bytes)
    1 rejected; --rejects FILE writes them to a file
    ! error: rejected x.vcf.gz:1: text outside any item
    ! hint: x.vcf.gz is compressed with gzip; use: gunzip -c x.vcf.gz | larder import -
    exit 3
    ");
    home.write("notes.vcf", "no card at all\n");
    assert_snapshot!(home.run(&["import", "notes.vcf", "--quiet"]).masked_output(), @"
    no items in notes.vcf (1 file, 15 bytes)
    1 rejected; --rejects FILE writes them to a file
    ! error: rejected notes.vcf:1: text outside any item
    ! hint: larder reads vCard (BEGIN:VCARD) and iCalendar (BEGIN:VCALENDAR), not CSV or other formats
    exit 3
    ");
    home.write("anna.vcf", ANNA);
    assert_snapshot!(home.run(&["import", "anna.vcf", "x.vcf.gz", "--quiet"]).masked_output(), @"
    1 contact added to contacts (2 files, 217 bytes)
    1 rejected; --rejects FILE writes them to a file
    Undo: larder undo 1
    ! error: rejected x.vcf.gz:1: text outside any item
    ! hint: x.vcf.gz is compressed with gzip; use: gunzip -c x.vcf.gz | larder import -
    exit 3
    ");
}

/// A UID exists in two collections, and twice in one of them.
#[test]
fn an_ambiguous_uid_is_explained() {
    let home = Home::new();
    home.write("two.vcf", [ANNA, &ANNA.replace("Anna H", "Hanna H")].concat());
    home.write("one.vcf", ANNA);
    home.ok(&["import", "two.vcf", "--quiet"]);
    home.ok(&["import", "one.vcf", "--into", "friends"]);
    let run = home.run(&["show", "uid:anna-1"]);
    assert_snapshot!(run.masked_output(), @r#"
    ! error: the ID "uid:anna-1" matches several items
    ! hint: xdnskgpk7xp6c  Anna Hölderlin  (in contacts)
    ! hint: qqm230bqfyy16  Anna Hölderlin  (in friends)
    ! hint: s8hxk6hhx4shg  Hanna Hölderlin  (in contacts)
    ! hint: use one of the listed IDs (for example xdnskgpk7xp6c), or COLLECTION/UID
    exit 2
    "#);
    for head in home.json(&["find"]) {
        home.ok(&["show", head["id"].as_str().unwrap()]);
    }
    home.ok(&["show", "contacts/anna-1"]);
}

/// The log describes each operation; names are looked up, and are gone after a purge.
#[test]
fn the_log_describes_operations() {
    let home = Home::with_book();
    home.write("new.vcf", ANNA.replace("Orchard", "Meadow"));
    home.ok(&["edit", "uid:anna-1", "--from", "new.vcf"]);
    home.ok(&["remove", "uid:bruno-2"]);
    home.ok(&["remove", "--query", "chloe"]);
    home.ok(&["collections", "rename", "contacts", "people"]);
    home.write("bruno.vcf", BRUNO);
    home.ok(&["add", "bruno.vcf", "--into", "people"]);
    home.ok(&["collections", "remove", "people"]);
    assert_snapshot!(home.run(&["log"]).masked_output(), @"
    7  [TIME]  remove    -2                collection people
    6  [TIME]  add       +1                bruno.vcf into people
    5  [TIME]  rename                      contacts to people
    4  [TIME]  remove    -1                fhbw2pvt Chloé Dupont found by a query
    3  [TIME]  remove    -1                kc7xst8t Bruno Álvarez
    2  [TIME]  edit      ~1                xdnskgpk Anna Hölderlin in contacts
    1  [TIME]  import    +3                book.vcf
    ");
    assert_snapshot!(home.run(&["log", "3"]).masked_output(), @"    3  [TIME]  remove    -1                kc7xst8t Bruno Álvarez");
    assert_snapshot!(home.run(&["log", "99"]).masked_output(), @"
    ! error: no such operation: 99
    ! hint: `larder log` lists operations
    exit 1
    ");
    home.ok(&["purge", "xdnskgpk7xp6c", "--yes"]);
    let log = home.ok(&["log"]);
    assert!(!log.contains("Anna"), "{log}");
}

/// An item that is edited between two batches of a collection's removal is kept and named.
#[test]
fn a_changed_item_survives_a_removal() {
    let home = Home::new();
    let card = |n: usize| format!("BEGIN:VCARD\nVERSION:4.0\nUID:n-{n}\nFN:N {n}\nEND:VCARD\n");
    home.write("many.vcf", (0..600).map(card).collect::<String>());
    home.ok(&["import", "many.vcf"]);
    home.write("new.vcf", card(599).replace("FN:N", "FN:Changed"));
    let turn = home.data().join("data.lock");
    let turn = std::fs::File::options().read(true).write(true).open(turn).unwrap();
    turn.lock().unwrap();
    let remove = home.spawn(&mut home.command(&["-q", "collections", "remove", "contacts"]));
    let begun = Instant::now();
    let waits = |pid: u32| {
        let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        locks.lines().any(|line| line.contains("->") && line.contains(&format!(" {pid} ")))
    };
    while !waits(remove.id()) && begun.elapsed().as_secs() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    // The edit queues, and so comes between the first batch and the second.
    let edit = home.spawn(&mut home.command(&["edit", "uid:n-599", "--from", "new.vcf"]));
    while !waits(edit.id()) && begun.elapsed().as_secs() < 6 {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(turn);
    let edit = home.finish(edit.wait_with_output().unwrap());
    assert_eq!(edit.code, 0, "{}", edit.masked_output());
    let run = home.finish(remove.wait_with_output().unwrap());
    assert_snapshot!(run.masked_output(), @"
    Removed 599 items. Undo: larder undo 3
    ! error: contacts was not removed: conflict: another program changed or added 1 item
    ! note: kept vheqhg8taq8gp  Changed 599
    ! hint: run the command again to remove the rest
    exit 3
    ");
}

/// A damaged store, and the hints of the check.
#[test]
fn damage_has_hints() {
    let home = Home::with_book();
    home.ok(&["backup", "copy.db"]);
    home.ok(&["restore", "copy.db"]);
    let data = home.data().join("data.db");
    let mut bytes = std::fs::read(&data).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0x5a);
    std::fs::write(&data, bytes).unwrap();
    let run = home.code(&["check"], 4);
    for hint in [
        "larder restore FILE",
        "[HOME]/home/.local/share/larder/data.db.before-restore is an older copy",
        "\"Recovery\" in docs/backup.md",
    ] {
        assert!(run.stderr().contains(hint), "{hint}: {}", run.masked_output());
    }
}

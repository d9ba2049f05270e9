//! `collections`, `export`, `check`, `backup`, `restore`, and the directory of the store.

use crate::test_home::{ANNA, BRUNO, CHLOE, Home};
use insta::assert_snapshot;

#[test]
fn collections() {
    let home = Home::with_book();
    assert_snapshot!(home.run(&["collections"]).masked_output(), @"contacts              3 contacts");
    assert_snapshot!(home.run(&["collections", "create", "friends"]).masked_output(), @"friends created");
    assert_snapshot!(home.run(&["collections", "create", "friends"]).masked_output(), @r#"
    ! error: collection "friends" already exists
    ! hint: choose another name
    exit 2
    "#);
    assert_snapshot!(home.run(&["collections", "create", "a/b"]).masked_output(), @r#"
    ! error: invalid collection name "a/b": use 1 to 200 characters, without control characters and /, and without larder: at the start
    ! hint: choose another name
    exit 2
    "#);
    assert_snapshot!(home.run(&["collections", "rename", "contacts", "people"]).masked_output(), @"contacts is now people. Undo: larder undo 3");
    assert_snapshot!(home.run(&["collections", "rename", "contacts", "people"]).masked_output(), @r#"
    ! error: no such collection: "contacts"
    ! hint: `larder collections` lists the collections
    exit 1
    "#);
    assert_snapshot!(home.run(&["collections", "list", "--format", "json"]).masked_output(), @r#"
    {"name":"friends","type":"address-book","items":0,"index":"default"}
    {"name":"people","type":"address-book","items":3,"index":"default"}
    "#);
    assert_snapshot!(home.run(&["collections", "remove", "people"]).masked_output(), @"Removed people and 3 items. Undo: larder undo 4");
    assert_eq!(home.code(&["find"], 1).stdout(), "");
    assert_snapshot!(home.run(&["undo"]).masked_output(), @"Undid operation 4 (remove): 3 items restored. Redo: larder undo 5");
    assert_eq!(home.ok(&["find", "--count"]), "3\n");
    assert_snapshot!(home.run(&["collections", "remove", "nowhere"]).masked_output(), @r#"
    ! error: no such collection: "nowhere"
    ! hint: `larder collections` lists the collections
    exit 1
    "#);
    home.assert_store_is_sound();
}

#[test]
fn the_colour_of_a_calendar_is_listed() {
    let home = Home::new();
    let calendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-APPLE-CALENDAR-COLOR:#FF8800\r\n\
        BEGIN:VEVENT\r\nUID:e\r\nDTSTART:20260301\r\nSUMMARY:e\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    home.write("sea.ics", calendar);
    home.ok(&["import", "sea.ics", "--into", "sea"]);
    assert_snapshot!(home.run(&["collections"]).masked_output(), @"sea                   1 item  calendar  #FF8800");
    assert_snapshot!(home.run(&["collections", "--format", "json"]).masked_output(), @r##"{"name":"sea","type":"calendar","items":1,"index":"default","color":"#FF8800"}"##);
}

#[test]
fn the_index_is_chosen() {
    let home = Home::with_book();
    let created = &["collections", "create", "work", "--type", "address-book"][..];
    let index = &["--index", "full_name:prefix", "--index", "phone:suffix,phone"][..];
    assert_snapshot!(home.run(&[created, index].concat()).masked_output(), @"work created");
    assert_snapshot!(home.run(&["collections", "index", "work"]).masked_output(), @r#"
    full_name             exact, prefix
    phone                 suffix, phone
    "#);
    assert_snapshot!(home.run(&["collections", "index", "work", "--format", "json"]).masked_output(), @r#"{"name":"work","index":"full_name:exact,prefix phone:suffix,phone","fields":{"full_name":["exact","prefix"],"phone":["suffix","phone"]}}"#);
    assert_snapshot!(home.run(&["collections"]).masked_output(), @"
    contacts              3 contacts
    work                  0 contacts  custom indexes
    ");
    assert_snapshot!(home.run(&["collections", "--format", "json"]).masked_output(), @r#"
    {"name":"contacts","type":"address-book","items":3,"index":"default"}
    {"name":"work","type":"address-book","items":0,"index":"full_name:exact,prefix phone:suffix,phone"}
    "#);
    home.ok(&["import", "book.vcf", "--into", "work"]);
    home.assert_store_is_sound();
    let explained =
        |line: &str| home.json(&["find", "--explain", line, "--in", "work"])[0]["plan"].to_string();
    assert_snapshot!(explained("full_name:=anna"), @r#"["scan: test every item"]"#);
    assert_snapshot!(home.run(&["find", "--explain", "email:=anna@example.org"]).masked_output(), @r#"
    query     (is "email" "anna@example.org")
    plan      index: email is "anna@example.org"
              scan: test every item
    order     sort keys of file_as, computed for each match
    read      4 rows of the index, or of the full scan
    verified  4 items
    matched   2 items
    returned  2 items
    "#);
    // Changed with items present; set to the present value; undone.
    assert_snapshot!(home.run(&["collections", "index", "work", "--index", "email:exact"]).masked_output(), @"
    Changed the index configuration of work. Undo: larder undo 4
    ! note: indexing the contacts of work again; queries are slower until this is complete
    ");
    assert_snapshot!(explained("email:=anna@example.org"), @r#"["index: email is \"anna@example.org\""]"#);
    home.assert_store_is_sound();
    assert_snapshot!(home.run(&["collections", "index", "work", "--index", "email:prefix", "--format", "json"]).masked_output(), @r#"{"name":"work","index":"email:exact,prefix","operation":null}"#);
    assert_snapshot!(home.run(&["undo"]).masked_output(), @"Undid operation 4 (index). Redo: larder undo 5");
    home.assert_store_is_sound();
    assert_snapshot!(home.run(&["collections", "index", "work", "--index", "none", "--quiet"]).masked_output(), @"Changed the index configuration of work. Undo: larder undo 6");
    assert_snapshot!(home.run(&["collections", "index", "work"]).masked_output(), @"no field is indexed");
    assert_snapshot!(home.run(&["collections", "index", "work", "--index", "default", "-q", "--format", "json"]).masked_output(), @r#"{"name":"work","index":"default","operation":7}"#);
    home.assert_store_is_sound();
    for wrong in ["email:prefx", "mobile:phone", "email"] {
        home.code(&["collections", "create", "x", "--index", wrong], 2);
    }
    assert_snapshot!(home.run(&["collections", "create", "x", "--index", "emial:prefix"]).masked_output(), @r#"
    ! error: unknown field "emial"
    ! hint: did you mean email?
    exit 2
    "#);
    assert_snapshot!(home.run(&["collections", "index", "nowhere", "--index", "none"]).masked_output(), @r#"
    ! error: no such collection: "nowhere"
    ! hint: `larder collections` lists the collections
    exit 1
    "#);
}

#[test]
fn exports_equal_imports() {
    let home = Home::with_book();
    let book = [ANNA, BRUNO, CHLOE].concat();
    assert_eq!(home.run(&["export", "contacts"]).stdout(), book);
    assert_snapshot!(home.run(&["export", "contacts", "-o", "out.vcf"]).masked_output(), @"3 items written to out.vcf");
    assert_eq!(std::fs::read_to_string(home.work("out.vcf")).unwrap(), book);
    assert_snapshot!(home.run(&["export", "contacts", "-o", "json.vcf", "--format", "json"]).masked_output(), @r#"{"items":3}"#);
    assert_snapshot!(home.run(&["export", "contact"]).masked_output(), @r#"
    ! error: no such collection: "contact"
    ! hint: did you mean "contacts"? `larder collections` lists them
    exit 1
    "#);
    assert_snapshot!(home.run(&["export", "contacts", "-o", "no/such/folder.vcf"]).masked_output(), @"
    ! error: no/such/folder.vcf: no such file or directory
    ! hint: check the name
    exit 5
    ");
}

/// One letter of an item changes in the file. No command gives the changed bytes with exit code 0.
#[test]
fn a_changed_letter_is_named_by_every_command_that_reads_the_item() {
    let home = Home::with_book();
    let backup = home.work("backup.db");
    let path = backup.to_str().unwrap();
    home.ok(&["backup", path]);
    let good_backup = std::fs::read(path).unwrap();
    let id_of = |name: &str| home.json(&["find", name])[0]["id"].as_str().unwrap().to_string();
    let (id, other) = (id_of("anna"), id_of("bruno"));
    let data = home.data().join("data.db");
    let mut file = std::fs::read(&data).unwrap();
    let needle = b"FN:Anna";
    let places = (0..file.len()).filter(|at| file[*at..].starts_with(needle)).collect::<Vec<_>>();
    assert!(!places.is_empty());
    for at in places {
        file[at + 4] = b'm';
    }
    std::fs::write(&data, file).unwrap();
    let name = format!("item {} in contacts", &id[..8]);
    let rejected: &[&[&str]] = &[
        &["check"],
        &["check", "--rebuild"],
        &["check"],
        &["backup", path],
        &["backup", "new.db"],
        &["show", &id, "--format", "raw"],
        &["show", &id],
        &["find", "anna", "--format", "raw"],
        &["export", "contacts"],
        &["export", "contacts", "-o", "book.vcf"],
        &["edit", &id],
        &["merge", &other, &id],
    ];
    for args in rejected {
        let run = home.code(args, 4);
        assert!(run.stderr().contains(&name), "{args:?}: {}", run.stderr());
        assert!(!run.stdout().contains("Amna"), "{args:?}");
    }
    assert!(std::fs::read(path).unwrap() == good_backup);
    assert!(!home.work("new.db").exists());
    // These lists have the stored values, which are as they were.
    for args in [&["find"][..], &["find", "--sort", "family_name"]] {
        let list = home.ok(args);
        assert!(list.contains("Anna") && list.contains("Bruno") && !list.contains("Amna"));
    }
    // Lists of other values have all other items, and then name the damaged one.
    let lists: &[&[&str]] = &[
        &["find", "--fields", "full_name,note"],
        &["find", "--format", "json"],
        &["find", "--format", "raw", "-n", "9"],
        &["find", "not note:zzz"],
    ];
    for args in lists {
        let run = home.code(args, 4);
        assert!(run.stderr().contains(&name), "{args:?}: {}", run.stderr());
        assert!(run.stdout().contains("Bruno"), "{args:?}: {}", run.stdout());
        assert!(!run.stdout().contains("Amna"), "{args:?}");
    }
    // The others can be read, and the damaged one can be removed for good.
    assert!(home.ok(&["find", "bruno"]).contains("Bruno"));
    home.ok(&["purge", "-y", &id]);
    home.assert_store_is_sound();
}

/// One letter of a duplicate changes in the file: the duplicates among the other contacts are
/// listed, and the damaged one is named.
#[test]
fn duplicates_are_found_among_the_cards_that_are_not_damaged() {
    let home = Home::new();
    let person = |uid: &str, name: &str| {
        format!("BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{uid}\r\nFN:{name}\r\nEND:VCARD\r\n")
    };
    let names = ["Anna Berg", "Anna Berg", "Bruno Tal", "Bruno Tal"];
    let cards = names.iter().zip(["a", "b", "c", "d"]).map(|(name, uid)| person(uid, name));
    home.write("book.vcf", cards.collect::<String>());
    home.ok(&["import", "book.vcf"]);
    let id = home.json(&["find", "anna"])[0]["id"].as_str().unwrap().to_string();
    let data = home.data().join("data.db");
    let mut file = std::fs::read(&data).unwrap();
    let (needle, mut found) = (b"UID:a\r\nFN:Anna", 0);
    for at in 0..file.len() - needle.len() {
        if file[at..].starts_with(needle) {
            file[at + needle.len() - 3] = b'm';
            found += 1;
        }
    }
    assert_ne!(found, 0);
    std::fs::write(&data, file).unwrap();
    for (args, first) in [
        (&["find", "--duplicates"][..], "same name: Bruno Tal\n"),
        (&["find", "--duplicates", "--count"], "1\n"),
        (&["find", "--duplicates", "--format", "json"], "{\"reasons\""),
    ] {
        let run = home.code(args, 4);
        assert!(run.stdout().starts_with(first), "{args:?}: {}", run.stdout());
        assert!(!run.stdout().contains("Amna"), "{args:?}");
        assert!(run.stderr().contains(&id[..8]), "{args:?}: {}", run.stderr());
    }
}

/// One letter of a removed contact changes in the file: an undo restores the others.
#[test]
fn an_undo_restores_the_items_that_are_not_damaged() {
    let home = Home::with_book();
    let id = home.json(&["find", "anna"])[0]["id"].as_str().unwrap().to_string();
    let mask = |run: crate::test_home::Run| {
        run.masked_output().replace(&id, "[whole id]").replace(&id[..8], "[id]")
    };
    home.ok(&["collections", "remove", "contacts"]);
    let data = home.data().join("data.db");
    let mut file = std::fs::read(&data).unwrap();
    for at in 0..file.len() {
        if file[at..].starts_with(b"FN:Anna") {
            file[at + 4] = b'm';
        }
    }
    std::fs::write(&data, file).unwrap();
    assert_snapshot!(mask(home.run(&["undo"])), @"
    ! missing: the version of item [id] in contacts that batch 2 replaced
    ! error: operation 2 was partly undone: 2 items restored, 1 damaged item skipped; changes made before are committed as operation 3
    ! hint: an older backup may have the damaged items
    ! hint: to erase a damaged item with all its versions: larder purge ID
    ! hint: `larder log 3` shows them
    exit 4
    ");
    assert_eq!(home.ok(&["find", "--count"]), "2\n");
    assert_snapshot!(mask(home.run(&["undo", "2", "--format", "json"])), @r#"
    {"unreadable":"[whole id]","damaged":"the version of item [id] in contacts that batch 2 replaced"}
    ! error: operation 2 was not undone: 1 damaged item
    ! hint: an older backup may have the damaged items
    ! hint: to erase a damaged item with all its versions: larder purge ID
    exit 4
    "#);
    home.ok(&["purge", "-y", &id]);
    assert_snapshot!(home.run(&["undo", "2"]).masked_output(), @"! note: nothing of operation 2 (remove) is left to undo: changed back or purged since");
    home.assert_store_is_sound();
}

/// The first page is destroyed: SQLite does not open the file any more.
#[test]
fn salvage_saves_what_can_be_read() {
    let home = Home::with_book();
    let before = home.ok(&["export", "contacts"]);
    let data = home.data().join("data.db");
    let mut file = std::fs::read(&data).unwrap();
    file[..4096].fill(0);
    std::fs::write(&data, &file).unwrap();
    let check = home.code(&["check"], 4);
    assert!(check.stderr().contains("larder salvage FILE"), "{}", check.stderr());
    assert_snapshot!(home.run(&["salvage", "saved.db"]).masked_output(), @"
    Wrote 3 items and 0 previous versions to saved.db
    ! missing: an unknown number of previous versions of items
    ! missing: an unknown number of items
    ! missing: an unknown number of collections
    ! missing: an unknown number of previous versions of collections
    ! missing: an unknown number of operations
    ! missing: an unknown number of batches
    ! missing: an unknown number of values of the store itself
    ! error: cannot read all of the store: an unknown number of objects missing
    ! hint: to continue with what was saved: larder restore saved.db
    ! hint: an older backup may have what is missing
    exit 4
    ");
    assert_eq!(std::fs::read(&data).unwrap(), file);
    assert_snapshot!(home.run(&["salvage", "saved.db"]).masked_output(), @"
    ! error: saved.db exists
    ! hint: name a new file: salvage replaces nothing
    exit 2
    ");
    home.ok(&["restore", "saved.db"]);
    assert_eq!(home.ok(&["export", "contacts"]), before);
    home.assert_store_is_sound();
}

/// A letter of an item is changed: a rebuild keeps the values of lists, so none prints it, and
/// the error does not recommend another rebuild.
#[test]
fn a_rebuild_keeps_changed_bytes_out_of_lists() {
    let home = Home::new();
    home.write(
        "one.vcf",
        "BEGIN:VCARD\nVERSION:3.0\nUID:one\nFN:Anna\nTEL:5550001111\nEND:VCARD\n",
    );
    home.ok(&["import", "one.vcf"]);
    let data = home.data().join("data.db");
    let mut file = std::fs::read(&data).unwrap();
    let needle = b"TEL:5550001111";
    let places: Vec<usize> = (0..file.len()).filter(|at| file[*at..].starts_with(needle)).collect();
    for at in places {
        file[at + needle.len() - 1] = b'3';
    }
    std::fs::write(&data, &file).unwrap();
    home.run(&["check", "--rebuild"]);
    for number in ["5550001113", "5550001111"] {
        let output = home.run(&["find", number, "--fields", "phone"]).masked_output();
        assert!(!output.contains("5550001113"), "{output}");
    }
    let output = home.run(&["show", "uid:one"]).masked_output();
    assert!(output.contains("hint: import the item again"), "{output}");
    assert!(!output.contains("--rebuild"), "{output}");
}

/// A letter of an item is changed: salvage leaves the item out, and says so.
#[test]
fn salvage_names_what_is_missing() {
    let home = Home::with_book();
    let data = home.data().join("data.db");
    let mut file = std::fs::read(&data).unwrap();
    let needle = b"FN:Anna";
    for at in 0..file.len() - needle.len() {
        if file[at..].starts_with(needle) {
            file[at + 4] = b'm';
        }
    }
    std::fs::write(&data, &file).unwrap();
    assert_snapshot!(home.run(&["salvage", "saved.db"]).masked_output(), @"
    Wrote 2 items and 0 previous versions to saved.db
    ! missing: item xdnskgpk in contacts does not match its checksum
    ! error: cannot read all of the store: 1 object missing
    ! hint: to continue with what was saved: larder restore saved.db
    ! hint: an older backup may have what is missing
    exit 4
    ");
    assert_snapshot!(home.run(&["--format", "json", "salvage", "again.db"]).masked_output(), @r#"
    {"file":"again.db","items":2,"previous_versions":0,"missing":["item xdnskgpk in contacts does not match its checksum"],"unreadable":[]}
    ! missing: item xdnskgpk in contacts does not match its checksum
    ! error: cannot read all of the store: 1 object missing
    ! hint: to continue with what was saved: larder restore again.db
    ! hint: an older backup may have what is missing
    exit 4
    "#);
    home.ok(&["restore", "saved.db"]);
    assert_eq!(home.ok(&["find", "--count"]), "2\n");
    home.assert_store_is_sound();
}

/// Every other page of a store with a calendar that defines its time zone is destroyed, or the file
/// ends before it. Salvage and a rebuild lose no line of an export in silence.
#[test]
fn no_export_loses_a_line_in_silence() {
    let home = Home::new();
    let zone = "BEGIN:VTIMEZONE\r\nTZID:Own\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n\
                TZOFFSETFROM:+0545\r\nTZOFFSETTO:+0545\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n";
    let events: String = (0..20)
        .map(|n| {
            format!(
                "BEGIN:VEVENT\r\nUID:e{n}\r\nDTSTART;TZID=Own:20260302T090000\r\n\
                 SUMMARY:Meeting {n}\r\nEND:VEVENT\r\n"
            )
        })
        .collect();
    let head = "VERSION:2.0\r\nPRODID:-//Own//Own//EN\r\nX-WR-CALNAME:Own\r\n";
    home.write("book.vcf", [ANNA, BRUNO, CHLOE].concat());
    home.write("own.ics", format!("BEGIN:VCALENDAR\r\n{head}{zone}{events}END:VCALENDAR\r\n"));
    home.ok(&["import", "book.vcf", "--into", "contacts"]);
    home.ok(&["import", "own.ics", "--into", "own"]);
    home.ok(&["edit", "uid:anna-1", "--set", "note=changed"]);
    let export = |dir: &[&str]| {
        let exports = ["contacts", "own"].map(|name| home.run(&[dir, &["export", name]].concat()));
        exports.map(|run| run.stdout().to_string())
    };
    let before = export(&[]);
    assert!(before[1].contains(zone) && before[1].contains("PRODID:-//Own//Own//EN"));
    let (data, record) = (home.data().join("data.db"), home.data().join("data.notify"));
    let (file, notified) = (std::fs::read(&data).unwrap(), std::fs::read(&record).unwrap());
    let mut whole = 0;
    for page in (0..file.len() / 4096).step_by(2) {
        let mut damaged = file.clone();
        match page % 4 {
            0 => damaged[page * 4096..(page + 1) * 4096].fill(0),
            _ => damaged.truncate(page * 4096),
        }
        std::fs::write(&data, &damaged).unwrap();
        std::fs::write(&record, &notified).unwrap();
        let salvaged = home.run(&["salvage", &format!("saved-{page}.db")]);
        if salvaged.code == 0 {
            let other = ["--data-dir", &format!("other-{page}")];
            home.ok(&[&other[..], &["restore", &format!("saved-{page}.db")]].concat());
            assert_eq!(export(&other), before, "page {page}");
            whole += 1;
        } else {
            assert_eq!(salvaged.code, 4, "page {page}");
            assert!(salvaged.stderr().contains("missing: "), "page {page}");
        }
        let rebuilt = home.code(&["check", "--rebuild"], 4);
        if rebuilt.stderr().contains("all items were copied") {
            assert_eq!(export(&[]), before, "page {page}");
        } else if salvaged.code != 0 {
            assert!(rebuilt.stderr().contains("larder salvage FILE"), "{}", rebuilt.stderr());
            assert!(!rebuilt.stderr().contains("--rebuild"), "{}", rebuilt.stderr());
            assert_eq!(home.run(&["check"]).code, 4, "page {page}: the loss has vanished");
        }
    }
    assert!(whole > 5, "{whole}");
}

/// A page of an index is destroyed.
#[test]
fn a_rebuild_mends_a_page_of_an_index() {
    let home = Home::with_book();
    let before = home.ok(&["export", "contacts"]);
    let data = home.data().join("data.db");
    let file = std::fs::read(&data).unwrap();
    // It names the epoch of the file, and the rebuilt file has another one.
    let notify = home.data().join("data.notify");
    let record = std::fs::read(&notify).unwrap();
    let mut mended = 0;
    // The pages of the derived tables are the last ones.
    for page in (file.len() / 4096 - 4)..file.len() / 4096 {
        let mut damaged = file.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0);
        std::fs::write(&data, damaged).unwrap();
        std::fs::write(&notify, &record).unwrap();
        let rebuilt = home.code(&["check", "--rebuild"], 4);
        let is_mended = rebuilt.stderr().contains("all items were copied into a new file");
        mended += usize::from(is_mended);
        home.assert_store_is_sound();
        assert_eq!(home.ok(&["export", "contacts"]), before);
    }
    assert!(mended > 0);
}

#[test]
fn check_reports_no_damage() {
    let home = Home::with_book();
    for args in [&["check"][..], &["check", "--rebuild"]] {
        let text = home.ok(args);
        assert!(
            text.starts_with(
                "OK: 3 items checked\nprevious versions  0 bytes of 0 versions\ndata.db "
            ),
            "{text}"
        );
    }
    let report = &home.json(&["check", "--rebuild"])[0];
    assert_eq!(report["faults"], serde_json::json!([]));
    assert_eq!(report["items"], 3);
    assert!(report["rebuilt"].as_u64() >= Some(3), "{report}");
}

#[test]
fn backups_are_restored() {
    let home = Home::with_book();
    let text = home.ok(&["backup", "copy.db"]);
    assert!(text.starts_with("Wrote and verified copy.db, "), "{text}");
    home.ok(&["remove", "uid:anna-1"]);
    home.ok(&["backup", "later.db"]);
    assert_snapshot!(home.run(&["restore", "copy.db"]).masked_output(), @"
    Restored 3 items from copy.db
    The previous store is in [HOME]/home/.local/share/larder/data.db.before-restore
    ");
    assert_eq!(home.ok(&["find", "--count"]), "3\n");
    home.assert_store_is_sound();
    let directory = larder_store::DataDirectory::new(home.data());
    home.write("../home/.local/share/larder/data.db.before-damaged", "x");
    home.write("../home/.local/share/larder/data.db.before-restore-wal", "x");
    let copies = directory.restorable_copies();
    assert_eq!(copies, [home.data().join("data.db.before-restore")]);
    // Into an empty directory.
    assert_snapshot!(home.run(&["restore", "later.db", "--data-dir", "elsewhere"]).masked_output(), @"Restored 2 items from later.db");
    assert!(!home.work("elsewhere/data.db.before-restore").exists());
    assert_eq!(home.ok(&["find", "--count", "--data-dir", "elsewhere"]), "2\n");
    assert_snapshot!(home.run(&["restore", "missing.db"]).masked_output(), @"
    ! error: missing.db: no such file or directory
    ! hint: check the name
    exit 5
    ");
    assert_snapshot!(home.run(&["restore", "elsewhere"]).masked_output(), @"
    ! error: elsewhere: is a directory
    ! hint: name a file
    exit 5
    ");
    assert_snapshot!(home.shell("mkfifo pipe && larder restore pipe").masked_output(), @"
    ! error: pipe is a pipe or a device, not a file
    ! hint: name a file that `larder backup` wrote
    exit 5
    ");
    home.write("broken.db", "this is no store at all, and was never one");
    assert_snapshot!(home.run(&["restore", "broken.db"]).masked_output(), @"
    ! error: broken.db is damaged: file is not a database
    ! hint: name a file that `larder backup` wrote; the store was not changed
    exit 5
    ");
    assert_snapshot!(home.run(&["backup", "broken.db"]).masked_output(), @"
    ! error: broken.db exists and is not a backup
    ! hint: choose another file; only backups are replaced
    exit 5
    ");
    assert_snapshot!(home.run(&["backup", "no/such/folder.db"]).masked_output(), @"
    ! error: no/such/folder.db: no such file or directory
    ! hint: check the name
    exit 5
    ");
    assert_eq!(home.ok(&["find", "--count"]), "3\n");
    home.assert_store_is_sound();
}

/// `--data-dir`, else `LARDER_DIR`, else the configuration, else `$XDG_DATA_HOME/larder`; global
/// options may precede or follow the subcommand.
#[test]
fn the_directory_is_chosen() {
    let home = Home::new();
    for (place, card) in [("one", ANNA), ("two", BRUNO), ("three", CHLOE)] {
        home.write("card.vcf", card);
        home.ok(&["--data-dir", place, "import", "card.vcf"]);
    }
    assert!(!home.data().exists());
    let found = |args: &[&str], variable: &str| {
        let output = home.command(args).env("LARDER_DIR", variable).output().unwrap();
        home.finish(output).stdout().split_whitespace().nth(1).unwrap_or_default().to_string()
    };
    assert_eq!(found(&["find", "--data-dir", "one"], "two"), "Anna");
    assert_eq!(found(&["--data-dir", "one", "find"], "two"), "Anna");
    assert_eq!(found(&["find"], "two"), "Bruno");
    home.configure(&format!("data-dir = {:?}\n", home.work("three").to_str().unwrap()));
    assert_eq!(found(&["find"], "two"), "Bruno");
    assert_eq!(found(&["find"], ""), "Chloé");
    // No shell expands the configuration.
    std::fs::rename(home.work("three"), home.path().join("home/books")).unwrap();
    home.configure("data-dir = \"~/books\"\n");
    assert_eq!(found(&["find"], ""), "Chloé");
    assert!(!home.data().exists());
}

/// The record of the last commit is ahead of the store, as after the write-ahead log was deleted.
#[test]
fn missing_batches_are_named() {
    let home = Home::with_book();
    home.ok(&["backup", "copy.db"]);
    let (data, record) = (home.data().join("data.db"), home.data().join("data.notify"));
    let old = std::fs::read(&data).unwrap();
    for uid in ["dana", "erik", "fay"] {
        assert_eq!(home.run_with(&["add"], ANNA.replace("anna-1", uid).as_bytes()).code, 0);
    }
    std::fs::write(&data, old).unwrap();
    let find = home.code(&["find", "anna"], 0);
    assert_snapshot!(find.masked_output(), @"
    xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works
    ! warning: 3 committed batches are missing from [HOME]/home/.local/share/larder/data.db: its write-ahead log was deleted or replaced
    ");
    for args in [&["remove", "uid:anna-1"][..], &["check"], &["backup", "other.db"]] {
        assert_eq!(home.run(args).code, 4, "{args:?}");
    }
    assert_snapshot!(home.run(&["check"]).masked_output(), @"
    ! error: 3 committed batches are missing from [HOME]/home/.local/share/larder/data.db: its write-ahead log was deleted or replaced
    ! hint: restore the last backup (a file that `larder backup` wrote): larder restore FILE
    ! hint: `larder export NAME -o FILE` writes the items that are there to FILE.partial
    ! hint: to go on without what is missing, delete [HOME]/home/.local/share/larder/data.notify
    exit 4
    ");
    home.ok(&["restore", "copy.db"]);
    assert_eq!(home.ok(&["find", "--count", "anna"]), "1\n");
    home.assert_store_is_sound();
    // The record of another store.
    std::fs::copy(Home::with_book().data().join("data.notify"), &record).unwrap();
    let find = home.code(&["find", "anna"], 0);
    assert_snapshot!(find.stderr(), @"warning: [HOME]/home/.local/share/larder/data.db or its write-ahead log was replaced by another program");
}

#[test]
fn a_command_that_waits_names_the_other_one() {
    let home = Home::with_book();
    let lock = home.data().join("data.lock");
    let lock = std::fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    std::io::Write::write_all(
        &mut &lock,
        format!("writing\n{:<55}\n", "4711 larder import").as_bytes(),
    )
    .unwrap();
    let check = home.spawn(&mut home.command(&["check"]));
    let quiet = home.spawn(&mut home.command(&["-q", "check"]));
    // Longer than the two seconds after which a command says that it waits: it goes on waiting.
    let mut check = check;
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(check.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert_eq!(line, "note: waiting for larder import (process 4711)\n");
    lock.unlock().unwrap();
    assert_eq!(home.finish(check.wait_with_output().unwrap()).code, 0);
    let quiet = home.finish(quiet.wait_with_output().unwrap());
    assert_eq!((quiet.code, &*quiet.stderr()), (0, ""));
}

/// An event whose time zone definition is damaged is not missing from an answer in silence,
/// whether an index or a scan answers.
#[test]
fn a_damaged_time_zone_definition_is_an_error_of_the_query() {
    let home = Home::new();
    let zone = "BEGIN:VTIMEZONE\r\nTZID:Own\r\n\
                BEGIN:STANDARD\r\nDTSTART:19700101T000000\r\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=2TH\r\n\
                TZOFFSETFROM:+0645\r\nTZOFFSETTO:+0545\r\nTZNAME:own-name\r\nEND:STANDARD\r\n\
                BEGIN:DAYLIGHT\r\nDTSTART:19700401T000000\r\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=2TU\r\n\
                TZOFFSETFROM:+0545\r\nTZOFFSETTO:+0645\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n";
    let event = "BEGIN:VEVENT\r\nUID:e1\r\nDTSTART;TZID=Own:20260302T090000\r\n\
                 RRULE:FREQ=WEEKLY;INTERVAL=2\r\nCREATED;TZID=Own:20260301T090000\r\nSUMMARY:x\r\n\
                 END:VEVENT\r\nBEGIN:VTODO\r\nUID:t1\r\nDUE;TZID=Own:20260302T090000\r\n\
                 SUMMARY:y\r\nEND:VTODO\r\n";
    home.write("own.ics", format!("BEGIN:VCALENDAR\r\n{zone}{event}END:VCALENDAR\r\n"));
    home.ok(&["import", "own.ics", "--into", "cal"]);
    let data = home.data().join("data.db");
    let mut bytes = std::fs::read(&data).unwrap();
    let at = bytes.windows(8).position(|window| window == b"own-name").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    for query in ["when:2026-03", "when:2026-03 summary:x", "is:overdue", "created:2026-03"] {
        let run = home.run(&["find", query]);
        let failure = run.stderr();
        assert_eq!(run.code, 4, "{query}: {} {failure}", run.stdout());
        assert!(failure.contains("time-zone definition Own"), "{query}: {failure}");
    }
    assert_eq!(home.code(&["agenda", "2026-03"], 4).stdout(), "");
}

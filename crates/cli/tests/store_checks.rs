//! `larder check` of all stores of a data directory, and searches while one of them is damaged.

use crate::commits::home_with_repository;
use crate::test_home::{ANNA, Home, left_out};
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// The stores of a data directory.
const FILES: [&str; 3] = ["data.db", "index.db", "commits.db"];

/// Returns a home with a contact, a message and commits that `anna` finds.
fn home_with_three_stores() -> Home {
    let home = home_with_repository();
    home.write("book.vcf", ANNA);
    home.ok(&["import", "book.vcf"]);
    let message = "Message-ID: <m1@example.org>\nFrom: Anna <anna@example.org>\nSubject: walrus\n\
                   Date: Thu, 01 Jan 2026 10:00:00 +0000\n\nText.\n";
    home.write("Mail/cur/1:2,S", message);
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    home
}

/// Writes over the head of a store.
fn damage(home: &Home, file: &str) {
    let path = home.data().join(file);
    let mut bytes = fs::read(&path).unwrap();
    bytes[..100].fill(7);
    fs::write(&path, bytes).unwrap();
    for end in ["-wal", "-shm"] {
        drop(fs::remove_file(home.data().join(format!("{file}{end}"))));
    }
}

/// Returns the kinds of the items that a search lists, with the exit code of the search.
fn found_kinds(home: &Home, code: i32) -> (Vec<String>, String) {
    let run = home.code(&["find", "anna", "--format", "json"], code);
    let kind = |line: &str| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["kind"].as_str().unwrap().to_string()
    };
    (run.stdout().lines().map(kind).collect(), run.stderr())
}

#[test]
fn each_store_is_checked_whatever_the_others_have() {
    let home = home_with_three_stores();
    home.ok(&["check"]);
    let mut damaged: Vec<&str> = Vec::new();
    for file in ["commits.db", "data.db", "index.db"] {
        damage(&home, file);
        damaged.push(file);
        let check = home.code(&["check"], 4);
        let (stdout, stderr) = (check.stdout(), check.stderr());
        for file in FILES {
            let is_error = |line: &str| line.starts_with("error: ") && line.contains(file);
            let is_named = stderr.lines().any(is_error);
            assert_eq!(is_named, damaged.contains(&file), "{damaged:?} {file}: {stderr}");
            let is_listed = stdout.lines().any(|line| line.starts_with(file));
            assert_eq!(is_listed, !damaged.contains(&file), "{damaged:?} {file}: {stdout}");
        }
        let next_step = "to make the index again: larder check --rebuild";
        assert!(stderr.contains(next_step), "{damaged:?}: {stderr}");
    }
}

#[test]
fn the_other_groups_answer_beside_a_damaged_store() {
    let home = home_with_three_stores();
    assert_eq!(found_kinds(&home, 0).0, ["contact", "message", "commit", "commit"]);
    damage(&home, "commits.db");
    let (kinds, stderr) = found_kinds(&home, 4);
    assert_eq!(kinds, ["contact", "message"]);
    assert!(stderr.contains("commits.db is damaged"), "{stderr}");
    assert!(stderr.contains("hint: no commits are lost"), "{stderr}");
    damage(&home, "index.db");
    let (kinds, stderr) = found_kinds(&home, 4);
    assert_eq!(kinds, ["contact"]);
    assert!(stderr.contains("commits.db is damaged"), "{stderr}");
    assert!(stderr.contains("index.db is damaged"), "{stderr}");
    assert_eq!(home.code(&["find", "anna", "--count"], 4).stdout(), "1\n");
    home.code(&["check", "--rebuild"], 0);
    assert_eq!(found_kinds(&home, 0).0, ["contact", "message", "commit", "commit"]);
}

/// The failure of the only store with sources is not taken for a lack of sources.
#[test]
fn a_synchronisation_names_a_damaged_store_of_commits() {
    let home = home_with_repository();
    damage(&home, "commits.db");
    let failed = home.code(&["sync"], 4).stderr();
    assert!(failed.contains("commits.db is damaged"), "{failed}");
    assert!(failed.contains("larder check --rebuild"), "{failed}");
    home.code(&["check", "--rebuild"], 0);
    home.ok(&["sync"]);
}

/// The index is no backup of the data, and a copy of the data is no index.
#[test]
fn a_file_of_another_store_is_named() {
    let home = home_with_three_stores();
    let answer = found_kinds(&home, 0).0;
    let index = home.data().join("index.db");
    let refused = home.code(&["restore", index.to_str().unwrap()], 5);
    let reason = "has the tables of another store, not those of";
    assert!(refused.stderr().contains(&format!("{reason} data.db")), "{}", refused.stderr());
    assert_eq!(found_kinds(&home, 0).0, answer);
    damage(&home, "index.db");
    fs::copy(home.data().join("data.db"), &index).unwrap();
    let (kinds, stderr) = found_kinds(&home, 4);
    assert_eq!(kinds, ["contact", "commit", "commit"]);
    assert!(stderr.contains(&format!("{reason} index.db")), "{stderr}");
    home.code(&["check"], 4);
    home.code(&["check", "--rebuild"], 0);
    assert_eq!(found_kinds(&home, 0).0, answer);
}

/// Files are compared with the index, and what is not damage is told apart.
#[test]
fn files_of_messages_are_compared_with_the_index() {
    let home = home_with_three_stores();
    let path = home.work("Mail/cur/1:2,S");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    home.ok(&["sync", "--full"]);
    let sound = home.code(&["check", "--full"], 0);
    assert!(sound.stdout().contains("1 file read and compared"), "{}", sound.stdout());
    assert_eq!(sound.stderr(), "");
    // Another text with the same state: the index or the disk is wrong.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("Text.", "Next.")).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let damaged = home.code(&["check", "--full"], 4);
    assert!(
        damaged.stderr().contains("the index has another content of the file"),
        "{}",
        damaged.stderr()
    );
    home.code(&["check"], 0);
    // A file that was edited, and one that is gone.
    fs::write(&path, text.replace("Text.", "Something else.")).unwrap();
    let changed = home.code(&["check", "--full"], 0);
    assert!(changed.stderr().contains("was changed since it was indexed"), "{}", changed.stderr());
    fs::remove_file(&path).unwrap();
    let missing = home.code(&["check", "--full"], 0);
    assert!(missing.stderr().contains("is missing, or was renamed"), "{}", missing.stderr());
    let object = &home.json(&["check", "--full"])[2];
    assert_eq!(object["not_compared_files"], 1, "{object}");
    fs::rename(home.work("Mail"), home.work("Away")).unwrap();
    let missing = home.code(&["check", "--full"], 5);
    assert!(missing.stderr().contains("the source is missing"), "{}", missing.stderr());
}

/// The name of a message in an mbox file has the hash of its bytes, so it cannot have changed.
#[test]
fn wrong_rows_of_messages_in_mbox_files_are_damage() {
    let home = home_with_three_stores();
    let text = "From anna Thu Jan  1 10:00:00 2026\nMessage-ID: <m2@example.org>\n\nText.\n";
    home.write("box.mbox", text);
    home.ok(&["sources", "add", "box.mbox", "--into", "box"]);
    home.ok(&["sync"]);
    home.ok(&["check", "--full"]);
    let sql =
        "UPDATE mail_file SET rank = rank + 65536 WHERE item = (SELECT max(item) FROM mail_file)";
    if !run_sql(&home, "index.db", sql) {
        left_out("wrong_rows_of_messages_in_mbox_files_are_damage", "python3 is not installed");
        return;
    }
    let damaged = home.code(&["check", "--full"], 4);
    let reason = "the index has another content of the file";
    assert!(damaged.stderr().contains(reason), "{}", damaged.stderr());
}

/// A check that compared nothing does not end as one that found nothing.
#[test]
fn files_that_are_not_compared_give_an_exit_code() {
    let home = home_with_three_stores();
    let path = home.work("Mail/cur/1:2,S");
    fs::rename(&path, home.work("Away")).unwrap();
    // A link that leads to itself cannot be read, whoever reads it.
    std::os::unix::fs::symlink("1:2,S", &path).unwrap();
    let unreadable = home.code(&["check", "--full"], 3);
    assert!(unreadable.stderr().contains("1:2,S: cannot be read"), "{}", unreadable.stderr());
    fs::remove_file(&path).unwrap();
    fs::rename(home.work("Away"), &path).unwrap();
    home.ok(&["check", "--full"]);
    home.configure("[mail]\naddresses = [\"anna@example.org\"]\n");
    let outdated = home.code(&["check", "--full"], 3);
    assert!(outdated.stderr().contains("no file was compared"), "{}", outdated.stderr());
}

#[test]
fn labels_are_compared_with_those_of_the_other_store() {
    if Command::new("python3").arg("--version").output().is_err() {
        left_out("labels_are_compared_with_those_of_the_other_store", "python3 is not installed");
        return;
    }
    let home = home_with_three_stores();
    home.ok(&["edit", "mid:m1@example.org", "--label", "+tax"]);
    home.ok(&["edit", "mid:m1@example.org", "--label", "+todo"]);
    home.ok(&["check"]);
    // Labels that another program changed in the index: the name of a label.
    let change = |sql: &str| assert!(run_sql(&home, "index.db", sql));
    for sql in [
        "UPDATE mail_label SET name = 'tux' WHERE name = 'tax'",
        "DELETE FROM mail_set WHERE id >= (1 << 62)",
        "INSERT INTO mail_waiting_label VALUES('x', CAST('tax' AS BLOB), 0, 'x')",
    ] {
        change(sql);
        let check = home.code(&["check"], 4);
        assert!(
            check.stderr().contains("other labels than in data.db: 1 message"),
            "{sql}: {}",
            check.stderr()
        );
        home.code(&["check", "--rebuild"], 0);
        home.ok(&["check"]);
    }
}

#[test]
fn two_rows_of_one_file_are_named_and_mended() {
    let home = home_with_three_stores();
    let sql = "INSERT INTO mail_file SELECT directory, base, place + 1, name, inode, item, size, modified,
                 changed, rank FROM mail_file LIMIT 1";
    if !run_sql(&home, "index.db", sql) {
        left_out("two_rows_of_one_file_are_named_and_mended", "python3 is not installed");
        return;
    }
    let damaged = home.code(&["check"], 4);
    let fault = "1 files that more than one row names";
    assert!(damaged.stderr().contains(fault), "{}", damaged.stderr());
    home.code(&["check", "--rebuild"], 0);
    home.ok(&["check"]);
}

#[test]
fn derived_stores_are_made_anew_and_old_ones_stay_without_their_sources() {
    let home = home_with_three_stores();
    home.ok(&["edit", "mid:m1@example.org", "--label", "+tax"]);
    let answer = home.ok(&["find", "anna"]);
    let identity = |file: &str| {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(home.data().join(file)).unwrap().ino()
    };
    let before = ["index.db", "commits.db"].map(identity);
    let rebuilt = home.code(&["check", "--rebuild"], 0);
    for (file, former) in ["index.db", "commits.db"].into_iter().zip(before) {
        assert!(
            rebuilt.stderr().contains(&format!("{file} was made anew")),
            "{}",
            rebuilt.stderr()
        );
        assert_ne!(identity(file), former);
    }
    assert_eq!(home.ok(&["find", "anna"]), answer);
    assert_eq!(home.ok(&["find", "--kind", "message", "label:tax", "--count"]), "1\n");
    let names = |home: &Home| -> Vec<String> {
        let entries = fs::read_dir(home.data()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter(|name| name.contains("new-") || name.contains("before")).collect();
        names.sort();
        names
    };
    assert_eq!(names(&home), [""; 0]);
    // A disk that is not mounted.
    fs::rename(home.work("Mail"), home.work("Away")).unwrap();
    let kept = home.code(&["check", "--rebuild"], 5);
    assert!(kept.stderr().contains("index.db stays as it was"), "{}", kept.stderr());
    assert_eq!(home.ok(&["find", "anna"]), answer);
    assert_eq!(names(&home), [""; 0]);
}

/// Runs a statement of another program on a store. Returns false if there is no such program.
fn run_sql(home: &Home, file: &str, sql: &str) -> bool {
    if Command::new("python3").arg("--version").output().is_err() {
        return false;
    }
    let python =
        "import sqlite3,sys\nc = sqlite3.connect(sys.argv[1])\nc.execute(sys.argv[2])\nc.commit()";
    let mut program = home.program("python3");
    let status = program.args(["-c", python]).arg(home.data().join(file)).arg(sql).status();
    assert!(status.unwrap().success(), "{sql}");
    true
}

/// A new index knows no folders, so an empty one looks like one that was always empty.
#[test]
fn an_index_stays_while_the_disk_of_its_mail_is_not_mounted() {
    let home = home_with_three_stores();
    let message = |id: &str| format!("Message-ID: <{id}@example.org>\nSubject: walrus\n\nText.\n");
    home.write("Mail/.Sub/cur/1:2,S", message("m2"));
    home.write("box.mbox", format!("From anna Thu Jan  1 10:00:00 2026\n{}", message("m3")));
    home.ok(&["sources", "add", "box.mbox", "--into", "box"]);
    home.ok(&["sync"]);
    let count = |home: &Home| home.ok(&["find", "walrus", "--kind", "message", "--count"]);
    assert_eq!(count(&home), "3\n");
    for (path, reason) in [
        ("Mail", "Mail: has no folders with messages: is its disk mounted?"),
        ("Mail/.Sub", "Mail/.Sub: its messages are gone, and stay in the index"),
        ("box.mbox", "box.mbox: is empty, as while a mail program writes it anew"),
    ] {
        let (path, away) = (home.work(path), home.work("Away"));
        fs::rename(&path, &away).unwrap();
        if away.is_dir() {
            fs::create_dir(&path).unwrap();
        } else {
            fs::write(&path, "").unwrap();
        }
        let kept = home.code(&["check", "--rebuild"], 5);
        assert!(kept.stderr().contains(reason), "{}", kept.stderr());
        assert!(kept.stderr().contains("index.db stays as it was"), "{}", kept.stderr());
        assert_eq!(count(&home), "3\n", "{reason}");
        if path.is_dir() {
            fs::remove_dir(&path).unwrap();
        }
        fs::rename(&away, &path).unwrap();
    }
    // A folder that was removed is no such folder.
    fs::remove_dir_all(home.work("Mail/.Sub")).unwrap();
    home.code(&["check", "--rebuild"], 0);
    assert_eq!(count(&home), "2\n");
}

/// An index that can be read is better than one without the items of a source.
#[test]
fn a_faulty_index_stays_while_a_source_is_missing() {
    let home = home_with_three_stores();
    home.ok(&["edit", "mid:m1@example.org", "--label", "+tax"]);
    let faults = [
        ("index.db", "Mail", "UPDATE mail_label SET name = 'tux' WHERE name = 'tax'"),
        (
            "commits.db",
            "project",
            "DELETE FROM mail_file WHERE item = (SELECT min(item) FROM mail_file)",
        ),
    ];
    let count = |home: &Home| home.ok(&["find", "anna", "--count"]);
    let before = count(&home);
    for (file, source, sql) in faults {
        if !run_sql(&home, file, sql) {
            left_out("a_faulty_index_stays_while_a_source_is_missing", "python3 is not installed");
            return;
        }
        let (path, away) = (home.work(source), home.work("Away"));
        fs::rename(&path, &away).unwrap();
        let kept = home.code(&["check", "--rebuild"], 4);
        assert!(kept.stderr().contains(&format!("{file} stays as it was")), "{}", kept.stderr());
        assert_eq!(count(&home), before, "{file}");
        // One that cannot be read is replaced by one with less.
        damage(&home, file);
        let replaced = home.code(&["check", "--rebuild"], 5);
        let is_replaced = replaced.stderr().contains(&format!("{file} was made anew"));
        assert!(is_replaced, "{}", replaced.stderr());
        assert_ne!(count(&home), before, "{file}");
        fs::rename(&away, &path).unwrap();
        home.ok(&["sync"]);
        assert_eq!(count(&home), before, "{file}");
    }
}

/// Without all registrations, an index would be made anew without the items of their sources.
#[test]
fn indexes_stay_without_the_store_of_their_sources() {
    let home = home_with_three_stores();
    let (data, old) = (home.data().join("data.db"), home.work("old.db"));
    let answer = found_kinds(&home, 0).0;
    fs::copy(&data, &old).unwrap();
    home.ok(&["edit", "mid:m1@example.org", "--label", "+tax"]);
    let newest = fs::read(&data).unwrap();
    for copy in [None, Some(fs::read(&old).unwrap())] {
        for end in ["", "-wal", "-shm"] {
            drop(fs::remove_file(home.data().join(format!("data.db{end}"))));
        }
        if let Some(copy) = &copy {
            fs::write(&data, copy).unwrap();
        }
        let stderr = home.code(&["check", "--rebuild"], 4).stderr();
        for file in ["index.db", "commits.db"] {
            assert!(stderr.contains(&format!("{file} was not made anew: ")), "{stderr}");
        }
        assert!(stderr.contains("larder restore FILE"), "{stderr}");
    }
    for end in ["-wal", "-shm"] {
        drop(fs::remove_file(home.data().join(format!("data.db{end}"))));
    }
    fs::write(&data, newest).unwrap();
    assert_eq!(found_kinds(&home, 0).0, answer);
    home.ok(&["check", "--rebuild"]);
    assert_eq!(home.ok(&["find", "--kind", "message", "label:tax", "--count"]), "1\n");
}

/// Damage that prevents a count is not a count of zero.
#[test]
fn a_damaged_index_has_no_counts() {
    const PAGE: usize = 4096;
    let home = home_with_three_stores();
    for (file, count) in [("index.db", "1 message"), ("commits.db", "2 commits")] {
        let path = home.data().join(file);
        let whole = fs::read(&path).unwrap();
        let mut refused = 0;
        for page in 1..whole.len() / PAGE {
            let mut bytes = whole.clone();
            bytes[page * PAGE..][..PAGE].fill(7);
            for end in ["-wal", "-shm"] {
                drop(fs::remove_file(home.data().join(format!("{file}{end}"))));
            }
            fs::write(&path, bytes).unwrap();
            let sources = home.run(&["sources"]);
            if sources.code == 4 {
                refused += 1;
                let collections = home.code(&["collections"], 4).stdout();
                for (listed, all) in [(sources.stdout(), 2), (collections, 3)] {
                    assert_eq!(listed.lines().count(), all, "{file} {page}: {listed}");
                    assert_eq!(listed.matches("not counted").count(), 1, "{file} {page}: {listed}");
                }
                let json = home.code(&["sources", "--format", "json"], 4).stdout();
                assert_eq!(json.matches(":null").count(), 1, "{file} {page}: {json}");
            } else {
                let is_counted = sources.code == 0 && sources.stdout().contains(count);
                assert!(is_counted, "{file} {page}: {}", sources.masked_output());
            }
        }
        assert!(refused > 0, "{file}");
        for end in ["-wal", "-shm"] {
            drop(fs::remove_file(home.data().join(format!("{file}{end}"))));
        }
        fs::write(&path, whole).unwrap();
    }
    home.ok(&["check"]);
}

/// A contact is not in the index of mail, and a message may be there.
#[test]
fn a_contact_is_purged_beside_a_damaged_index() {
    let home = home_with_three_stores();
    let message = home.json(&["find", "--kind", "message", "anna"])[0]["id"].clone();
    let contact = home.json(&["find", "--kind", "contact", "anna"])[0]["id"].clone();
    let contact = contact.as_str().unwrap();
    // An index that cannot be opened now is no damaged one.
    let (index, aside) = (home.data().join("index.db"), home.work("index.db"));
    fs::rename(&index, &aside).unwrap();
    fs::create_dir(&index).unwrap();
    let refused = home.code(&["purge", "--yes", "uid:anna-1"], 4).stderr();
    assert!(refused.contains("index.db: is not a regular file"), "{refused}");
    fs::remove_dir(&index).unwrap();
    fs::rename(&aside, &index).unwrap();
    damage(&home, "index.db");
    for args in [
        &["purge", "--yes", "mid:m1@example.org"][..],
        &["purge", "--yes", message.as_str().unwrap()],
        // A message may have an ID that begins so.
        &["purge", "--yes", &contact[..6]],
        &["remove", message.as_str().unwrap()],
        &["merge", message.as_str().unwrap(), "uid:anna-1"],
    ] {
        let stderr = home.code(args, 4).stderr();
        assert!(stderr.contains("error: ") && stderr.contains("index.db is damaged"), "{stderr}");
    }
    let missing = home.code(&["remove", "uid:nobody"], 1).stderr();
    assert!(missing.contains("no item has the ID"), "{missing}");
    let purged = home.code(&["purge", "--yes", contact], 0);
    assert!(purged.stdout().contains("Purged 1 item"), "{}", purged.masked_output());
    let warning = "warning: the index of mail was not looked at: ";
    assert!(purged.stderr().contains(warning), "{}", purged.masked_output());
    assert_eq!(found_kinds(&home, 4).0, ["commit", "commit"]);
    home.code(&["check", "--rebuild"], 0);
    home.ok(&["check"]);
}

/// A store that went is not one that was never there.
#[test]
fn a_missing_store_is_named_by_every_command() {
    let home = home_with_three_stores();
    let answer = found_kinds(&home, 0).0;
    home.ok(&["backup", "backup.db"]);
    home.ok(&["restore", "backup.db"]);
    home.write("Other/cur/1:2,S", "Subject: other\n\nText.\n");
    for end in ["", "-wal", "-shm"] {
        drop(fs::remove_file(home.data().join(format!("data.db{end}"))));
    }
    for has_record in [true, false] {
        for arguments in [
            &["find", "anna"][..],
            &["export", "contacts"],
            &["undo"],
            &["remove", "zzzz"],
            &["check"],
            &["collections"],
            &["import", "book.vcf"],
            &["sources", "add", "Other"],
            &["sources"],
            &["sources", "remove", "mail"],
            &["searches"],
            &["searches", "add", "ann", "anna"],
            &["sync"],
        ] {
            let stderr = home.code(arguments, 4).stderr();
            for part in [
                "data.db is missing, although the directory had a store",
                "hint: restore the last backup",
                "data.db.before-restore is an older copy of the store",
                "delete data.notify, data.db-wal, data.db-shm, index.db and commits.db in [HOME]/",
            ] {
                assert!(stderr.contains(part), "{arguments:?}: {stderr}");
            }
        }
        for (kind, count) in [("message", "1\n"), ("commit", "2\n")] {
            assert_eq!(home.ok(&["find", "--kind", kind, "--count", "anna"]), count);
        }
        if has_record {
            fs::remove_file(home.data().join("data.notify")).unwrap();
        }
    }
    home.ok(&["restore", "backup.db"]);
    assert_eq!(found_kinds(&home, 0).0, answer);
    home.ok(&["check"]);
    // Its record is left alone.
    for file in FILES {
        for end in ["", "-wal", "-shm"] {
            drop(fs::remove_file(home.data().join(format!("{file}{end}"))));
        }
    }
    for arguments in [&["sync"][..], &["sources"], &["searches"], &["import", "book.vcf"]] {
        let stderr = home.code(arguments, 4).stderr();
        assert!(stderr.contains("data.db is missing"), "{arguments:?}: {stderr}");
    }
}

/// A process that was killed while it replaced a store.
#[test]
fn interrupted_replacements_are_finished() {
    for file in ["index.db", "commits.db"] {
        let home = home_with_three_stores();
        let answer = home.ok(&["find", "anna"]);
        let path = |end: &str| home.data().join(format!("{file}{end}"));
        for has_old in [true, false] {
            fs::copy(path(""), path(".restoring")).unwrap();
            fs::write(path(".damaged-name"), format!("{file}.before-damaged")).unwrap();
            if has_old {
                damage(&home, file);
            } else {
                fs::rename(path(""), path(".before-damaged")).unwrap();
            }
            fs::create_dir_all(home.data().join(format!("new-{file}"))).unwrap();
            assert_eq!(home.ok(&["find", "anna"]), answer, "{file} {has_old}");
            home.ok(&["sync"]);
            assert!(!home.data().join(format!("new-{file}")).exists());
            assert!(!path(".restoring").exists() && !path(".before-damaged").exists());
            home.ok(&["check"]);
        }
    }
}

/// A pipe in the place of a file is not waited for.
#[test]
fn a_pipe_in_the_place_of_a_message_is_named() {
    let home = home_with_three_stores();
    let path = home.work("Mail/cur/1:2,S");
    fs::remove_file(&path).unwrap();
    assert!(home.program("mkfifo").arg(&path).status().unwrap().success());
    for args in [&["check", "--full"][..], &["show", "m1@example.org"], &["sync", "--full"]] {
        let run = home.run(args);
        let error = run.stderr();
        assert!(
            error.contains("1:2,S: ") && error.contains("not a file"),
            "{args:?}: {}",
            run.masked_output()
        );
    }
}

/// Control-C ends the comparison between two files.
#[test]
fn a_check_of_files_can_be_interrupted() {
    let home = Home::new();
    let words: String = (0..4000).map(|number| format!("word{number} ")).collect();
    for number in 0..60 {
        let text = format!("Message-ID: <m{number}@x>\nSubject: walrus\n\n{words}\n");
        home.write(&format!("Mail/cur/{number}:2,S"), text);
    }
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    let mut child = home.spawn(&mut home.command(&["check", "--full"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The tables are checked, and the files come next.
    assert!(lines.any(|line| line.unwrap().starts_with("index.db")));
    let id = child.id().to_string();
    assert!(home.program("kill").args(["-INT", &id]).status().unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?} {error}");
    assert!(error.contains("interrupted: "), "{error}");
    assert!(error.contains("of 60 messages were compared"), "{error}");
}

/// A data directory that others can read is no fault of each change: few commands name it.
#[test]
fn access_by_others_is_a_warning_of_few_commands() {
    let home = Home::new();
    home.write("book.vcf", ANNA);
    home.write("Mail/cur/1:2,S", "Message-ID: <a@example.org>\nSubject: a\n\ntext\n");
    home.write("Other/cur/1:2,S", "Message-ID: <b@example.org>\nSubject: b\n\ntext\n");
    home.ok(&["sources", "add", "Mail"]);
    fs::set_permissions(home.data(), Permissions::from_mode(0o755)).unwrap();
    let warnings = |arguments: &[&str]| {
        let stderr = home.code(arguments, 0).stderr();
        stderr.matches("other users can access the data directory").count()
    };
    for arguments in [&["sync"][..], &["check"], &["sources", "add", "Other", "--into", "other"]] {
        assert_eq!(warnings(arguments), 1, "{arguments:?}");
    }
    for arguments in [
        &["searches", "add", "one", "anna"][..],
        &["import", "book.vcf"],
        &["edit", "a@example.org", "--label", "+x"],
        &["undo"],
        &["find", "anna", "--kind", "contact"],
    ] {
        assert_eq!(warnings(arguments), 0, "{arguments:?}");
    }
}

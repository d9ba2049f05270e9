//! A purge that is killed at a write call is reported by every command, and finished by one command
//! without an ID. A purge writes nothing outside of the data directory.
//!
//! strace(1) kills the process at the n-th call of a system call, so each run is the same.

use crate::test_home::{ANNA, Home, LARDER, Run, left_out, times};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOKEN: &str = "Quokkabriefmarke";
/// System calls that change files.
const WRITE_CALLS: &str = "pwrite64,write,ftruncate,unlink,rename,fsync,fdatasync";

/// Runs the program under strace. `None`: there is no strace, or it may not trace.
fn trace(home: &Home, options: &[&str], args: &[&str]) -> Option<(Run, String)> {
    let log = home.work("calls.txt");
    let mut command = home.program("strace");
    command.args(["-f", "-qq", "-y", "-o"]).arg(&log).args(options).arg(LARDER).args(args);
    let output = command.output().ok()?;
    let calls = std::fs::read_to_string(&log).unwrap_or_default();
    (!calls.is_empty()).then(|| (home.finish(output), calls))
}

/// Returns the name of the system call in a line of strace.
fn call_name(line: &str) -> Option<&str> {
    let (_, call) = line.split_once(' ')?;
    let name = call.trim_start().split_once('(')?.0;
    name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_').then_some(name)
}

/// Creates a store with an item that has versions, a blob, and a place in a copy of the store.
fn home_with_secret() -> Home {
    let home = Home::new();
    let path = home.generate("many.vcf", 60, 3);
    home.ok(&["import", path.to_str().unwrap(), "-q"]);
    let secret = |note: &str| {
        ANNA.replace("Anna Hölderlin", TOKEN)
            .replace("anna-1", "secret")
            .replace("END:VCARD", &format!("NOTE:{TOKEN} {note}\r\nEND:VCARD"))
    };
    home.write("new.vcf", secret("one"));
    home.ok(&["add", "new.vcf"]);
    for note in [&format!("{TOKEN} ").repeat(6_000), "two"] {
        home.write("new.vcf", secret(note));
        home.ok(&["edit", "uid:secret", "--from", "new.vcf"]);
    }
    home.ok(&["backup", "copy.db"]);
    home.ok(&["restore", "copy.db"]);
    home
}

fn copy_directory(from: &Path, to: &Path) {
    let _none = std::fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Returns the files of the data directory that have the token.
fn files_with_token(home: &Home) -> Vec<PathBuf> {
    files_with(home, TOKEN)
}

/// Returns the files of the data directory that have a word.
fn files_with(home: &Home, word: &str) -> Vec<PathBuf> {
    let has_token = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        text.contains(&word.to_lowercase())
    };
    let entries = std::fs::read_dir(home.data()).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(has_token).collect()
}

#[test]
fn a_purge_that_is_killed_is_reported_and_finished() {
    let home = home_with_secret();
    let template = home.work("template");
    copy_directory(&home.data(), &template);
    let purge = ["purge", "--yes", "uid:secret"];
    let Some((run, calls)) = trace(&home, &["-e", &format!("trace={WRITE_CALLS}")], &purge) else {
        return left_out("a purge that is killed", "strace cannot trace");
    };
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert_eq!(files_with_token(&home), [""; 0].map(PathBuf::from));
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut points = Vec::new();
    for name in calls.lines().filter_map(call_name) {
        let count = counts.entry(name).or_default();
        *count += 1;
        points.push((name, *count));
    }
    let wanted = times("LARDER_PURGE_KILLS", 50) as usize;
    let step = (points.len() / wanted).max(1);
    let (mut interrupted, mut finished) = (0, 0);
    for (name, count) in points.iter().step_by(step) {
        copy_directory(&template, &home.data());
        let inject = format!("inject={name}:signal=KILL:when={count}");
        let (run, _) =
            trace(&home, &["-e", &format!("trace={name}"), "-e", &inject], &purge).unwrap();
        assert_ne!(run.code, 0, "{name} {count} kills: {}", run.masked_output());
        match finish_killed_purge(&home, &format!("{name} {count}")) {
            true => finished += 1,
            false => interrupted += 1,
        }
    }
    assert!(finished > 10, "{finished} were pending, {interrupted} had not begun or were complete");
}

/// Returns whether the purge was pending.
fn finish_killed_purge(home: &Home, point: &str) -> bool {
    let check = home.run(&["check"]);
    let is_pending = check.stderr().contains("a purge was interrupted");
    let expect = if is_pending { 4 } else { 0 };
    assert_eq!(check.code, expect, "{point}: {}", check.masked_output());
    if is_pending {
        let log = home.run(&["log"]);
        let warning = "warning: a purge was interrupted: data of the purged items may remain in the \
                       store; to finish it: larder purge\n";
        assert_eq!(log.stderr(), warning, "{point}");
        let backup = home.run(&["backup", "refused.db"]);
        assert_eq!(backup.code, 4, "{point}: {}", backup.masked_output());
        home.ok(&["purge"]);
    } else {
        assert_eq!(home.run(&["purge"]).code, 2, "{point}");
        // It had not begun, or was complete.
        if home.run(&["find", TOKEN]).code == 0 {
            home.ok(&["purge", "--yes", "uid:secret"]);
        }
    }
    assert_eq!(files_with_token(home), [""; 0].map(PathBuf::from), "{point}");
    home.assert_store_is_sound();
    assert_eq!(home.run(&["find", TOKEN]).code, 1, "{point}");
    is_pending
}

#[test]
fn a_purge_writes_in_the_data_directory_only() {
    let home = home_with_secret();
    let path = home.generate("more.vcf", 4000, 5);
    home.ok(&["import", path.to_str().unwrap(), "-q"]);
    let options = ["-e", "trace=open,openat,openat2,creat,rename,renameat,renameat2,link,linkat"];
    let Some((run, calls)) = trace(&home, &options, &["purge", "--yes", "uid:secret"]) else {
        return left_out("the files of a purge", "strace cannot trace");
    };
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TMPFILE", "rename", "link", "creat("];
    let data = home.data();
    let data = data.to_str().unwrap();
    let mut written = 0;
    for line in calls.lines().filter(|line| writes.iter().any(|word| line.contains(word))) {
        let path = line.split('"').nth(1).unwrap_or_default();
        written += 1;
        assert!(path.starts_with(data) || path.starts_with("/dev/"), "{line}");
    }
    assert!(written > 3, "{calls}");
}

#[test]
fn a_purge_without_an_id_needs_an_interrupted_one() {
    let home = Home::with_book();
    insta::assert_snapshot!(home.run(&["purge"]).masked_output(), @"
    ! error: no purge was interrupted
    ! hint: name the items to purge: larder purge ID...
    exit 2
    ");
}

/// The words of the message that is purged: in its Message-ID, sender, subject, text and label.
const MESSAGE_WORDS: [&str; 4] = ["quokkaid", "quokkasender", "quokkasubject", "quokkatext"];

/// A home with a contact and an indexed maildir of thirty messages, of which one has
/// [`MESSAGE_WORDS`].
fn home_with_unlabelled_message() -> Home {
    let home = Home::new();
    for number in 0..30 {
        let (id, sender, subject, text) = match number {
            7 => ("quokkaid".into(), "quokkasender", "quokkasubject", "quokkatext"),
            _ => (format!("m{number}"), "anna", "walrus", "tusks"),
        };
        home.write(
            &format!("Mail/cur/{number}:2,S"),
            format!(
                "Message-ID: <{id}@example.org>\nFrom: {sender}@example.org\n\
                 Subject: {subject} {number}\nDate: Thu, 01 Jan 2026 10:00:00 +0000\n\n{text}\n"
            ),
        );
    }
    std::fs::create_dir(home.work("Mail/new")).unwrap();
    home.write("book.vcf", ANNA);
    home.ok(&["import", "book.vcf"]);
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    home
}

/// A home with such a message that has labels.
fn home_with_secret_message() -> Home {
    let home = home_with_unlabelled_message();
    home.ok(&["edit", "quokkaid@example.org", "--label", "+private", "+later"]);
    home.ok(&["edit", "m3@example.org", "--label", "+later"]);
    home
}

fn assert_message_is_gone(home: &Home) {
    for word in MESSAGE_WORDS {
        assert_eq!(files_with(home, word), [""; 0].map(PathBuf::from), "{word}");
    }
    assert_eq!(home.ok(&["find", "--kind", "message", "--count"]).trim(), "29");
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "label:later"]).trim(), "1");
    home.assert_store_is_sound();
    home.ok(&["check"]);
}

#[test]
fn a_message_is_purged_and_its_file_is_named() {
    let home = home_with_secret_message();
    for word in MESSAGE_WORDS {
        assert_ne!(files_with(&home, word), [""; 0].map(PathBuf::from), "{word}");
    }
    insta::assert_snapshot!(home.run(&["purge", "quokkaid@example.org"]).masked_output(), @"
    ! error: nothing was purged
    ! hint: this would permanently delete: quokkasubject 7 (6vp12bjv)
    ! hint: use --yes to purge without confirmation
    exit 2
    ");
    insta::assert_snapshot!(home.run(&["purge", "--yes", "quokkaid@example.org"]).masked_output(), @"
    Purged 1 item with all previous versions
    The message is still in the file [HOME]/work/Mail/cur/7:2,S
    ! hint: delete the file, or the next larder sync indexes the message again, without labels
    exit 3
    ");
    assert_message_is_gone(&home);
    // The file is still there.
    home.ok(&["sync"]);
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "quokkatext"]).trim(), "1");
    home.code(&["find", "--kind", "message", "label:private"], 1);
    std::fs::remove_file(home.work("Mail/cur/7:2,S")).unwrap();
    let purged = home.run(&["purge", "--yes", "--format", "json", "mid:quokkaid@example.org"]);
    assert_eq!(purged.code, 0, "{}", purged.masked_output());
    home.ok(&["sync"]);
    assert_message_is_gone(&home);
}

/// A message whose file was deleted is purged by its Message-ID, too: its labels wait for it.
#[test]
fn a_message_without_a_file_is_purged() {
    let home = home_with_secret_message();
    std::fs::remove_file(home.work("Mail/cur/7:2,S")).unwrap();
    home.ok(&["sync"]);
    insta::assert_snapshot!(home.run(&["purge", "--yes", "quokkaid@example.org"]).masked_output(), @"Purged 1 item with all previous versions");
    assert_message_is_gone(&home);
    home.code(&["purge", "--yes", "quokkaid@example.org"], 1);
}

/// Returns a home whose secret message is gone from the maildir, and from the index, which was made
/// anew; `data.db` has its labels.
fn home_with_unindexed_message() -> Home {
    let home = home_with_secret_message();
    std::fs::remove_file(home.work("Mail/cur/7:2,S")).unwrap();
    home.ok(&["sync"]);
    home.code(&["check", "--rebuild"], 0);
    home
}

/// A new index does not know a message whose file is gone, and `data.db` has its labels.
#[test]
fn labels_of_a_message_that_is_not_indexed_are_purged() {
    let home = home_with_unindexed_message();
    assert_ne!(files_with(&home, "quokkaid"), [""; 0].map(PathBuf::from));
    let purge = ["purge", "--yes", "mid:quokkaid@example.org"];
    insta::assert_snapshot!(home.run(&purge).masked_output(), @"Purged 1 item with all previous versions");
    assert_message_is_gone(&home);
    home.code(&purge, 1);
}

/// A copy of the store has labels that came after the backup which was restored.
#[test]
fn labels_are_purged_from_a_copy_alone() {
    let home = home_with_unlabelled_message();
    home.ok(&["backup", "copy.db"]);
    home.ok(&["edit", "quokkaid@example.org", "--label", "+private"]);
    home.ok(&["restore", "copy.db"]);
    let copy = home.data().join("data.db.before-restore");
    assert!(files_with(&home, "quokkaid").contains(&copy));
    std::fs::remove_file(home.work("Mail/cur/7:2,S")).unwrap();
    home.code(&["purge", "--yes", "mid:quokkaid@example.org"], 0);
    for word in MESSAGE_WORDS {
        assert_eq!(files_with(&home, word), [""; 0].map(PathBuf::from), "{word}");
    }
    assert!(copy.exists());
}

/// Neither an index nor `data.db` knows the message, whose labels are in a copy.
#[test]
fn labels_of_a_message_that_is_not_indexed_are_purged_from_a_copy_alone() {
    let home = home_with_unlabelled_message();
    home.ok(&["backup", "copy.db"]);
    home.ok(&["edit", "quokkaid@example.org", "--label", "+private"]);
    home.ok(&["restore", "copy.db"]);
    std::fs::remove_file(home.work("Mail/cur/7:2,S")).unwrap();
    home.ok(&["sync"]);
    home.code(&["check", "--rebuild"], 0);
    let copy = home.data().join("data.db.before-restore");
    assert!(files_with(&home, "quokkaid").contains(&copy));
    home.code(&["purge", "--yes", "mid:quokkaid@example.com"], 1);
    let purge = ["purge", "--yes", "mid:quokkaid@example.org"];
    insta::assert_snapshot!(home.run(&purge).masked_output(), @"Purged 0 items with all previous versions");
    assert_eq!(files_with(&home, "quokkaid"), [""; 0].map(PathBuf::from));
}

/// Labels that no indexed message has are an item, also beside an indexed message.
#[test]
fn labels_of_a_message_that_is_not_indexed_count() {
    let home = home_with_unindexed_message();
    home.ok(&["edit", "m4@example.org", "--label", "+later"]);
    let purge =
        ["purge", "--yes", "--format", "json", "mid:quokkaid@example.org", "mid:m4@example.org"];
    let purged: serde_json::Value = serde_json::from_slice(&home.code(&purge, 3).out).unwrap();
    assert_eq!(purged["purged"], 2);
}

#[test]
fn a_purge_of_a_message_that_is_killed_is_finished() {
    let home = home_with_secret_message();
    std::fs::remove_file(home.work("Mail/cur/7:2,S")).unwrap();
    let template = home.work("template");
    copy_directory(&home.data(), &template);
    let purge = ["purge", "--yes", "quokkaid@example.org"];
    let Some((run, calls)) = trace(&home, &["-e", "trace=pwrite64"], &purge) else {
        return left_out("a purge of a message that is killed", "strace cannot trace");
    };
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let writes = calls.lines().filter_map(call_name).count();
    let mut pending = 0;
    for count in (1..=writes).step_by((writes / 8).max(1)) {
        copy_directory(&template, &home.data());
        let inject = format!("inject=pwrite64:signal=KILL:when={count}");
        trace(&home, &["-e", "trace=pwrite64", "-e", &inject], &purge).unwrap();
        if home.run(&["purge"]).code == 0 {
            pending += 1;
        }
        // If only the labels were purged, or nothing, the same command does the rest.
        let again = home.run(&purge);
        assert!(matches!(again.code, 0 | 1), "{count}: {}", again.masked_output());
        assert_message_is_gone(&home);
    }
    assert!(pending > 2, "{pending} of {writes}");
}

//! Failing stores, conflicting writers, and input that is too large or invalid.

use crate::error_messages::as_anybody;
use crate::mail_lists::home_with_mail;
use crate::test_home::{ANNA, BRUNO, Home, left_out};
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The edited text is kept if the store cannot be written.
#[test]
fn an_edit_is_kept_if_the_store_fails() {
    let home = Home::with_book();
    let data = home.data().join("data.db");
    let script = format!("sed -i s/Orchard/Meadow/ \"$1\"; : >{}; true", data.display());
    let editor = home.write("editor", script);
    let editor = format!("sh {}", editor.display());
    let mut command = home.command(&["edit", "uid:anna-1"]);
    let run = home.finish(command.env("EDITOR", editor).output().unwrap());
    assert_eq!(run.code, 4, "{}", run.masked_output());
    let text = String::from_utf8_lossy(&run.err).into_owned();
    let path = text.lines().find_map(|line| line.strip_prefix("hint: your text is kept in "));
    let text = std::fs::read_to_string(path.expect(&text)).unwrap();
    assert_eq!(text, ANNA.replace("Orchard", "Meadow"));
}

/// Two different cards with one UID in one import: the second gets a derived UID.
#[test]
fn an_item_with_a_derived_uid_can_be_edited() {
    let home = Home::new();
    let second = ANNA.replace("Anna H", "Hanna H");
    home.write("two.vcf", [ANNA, second.as_str()].concat());
    home.ok(&["import", "two.vcf"]);
    let id = home.json(&["find", "hanna"])[0]["id"].as_str().unwrap().to_string();
    let uid = home.json(&["show", &id])[0]["uid"].as_str().unwrap().to_string();
    assert!(uid.starts_with("larder-"), "{uid}");
    home.write("new.vcf", second.replace("Orchard", "Meadow"));
    home.ok(&["edit", &id, "--from", "new.vcf"]);
    assert_eq!(home.json(&["show", &id])[0]["uid"], uid.as_str());
    let shown = home.run(&["show", &id, "--format", "raw"]).stdout();
    assert_eq!(shown, second.replace("Orchard", "Meadow"));
    assert!(home.ok(&["show", &id]).contains("assigned by Larder"));
    home.write("new.vcf", second.replace("anna-1", &uid));
    let run = home.code(&["edit", &id, "--from", "new.vcf"], 3);
    assert!(
        run.stderr().contains("the UID cannot be changed: it must stay \"anna-1\""),
        "{}",
        run.masked_output()
    );
    home.assert_store_is_sound();
}

#[test]
fn an_edit_stores_the_card_only() {
    let home = Home::with_book();
    let card = ANNA.replace("Orchard", "Meadow");
    home.write("new.vcf", format!("\r\n\n{card}\n\n"));
    home.ok(&["edit", "uid:anna-1", "--from", "new.vcf"]);
    assert_eq!(home.run(&["show", "uid:anna-1", "--format", "raw"]).stdout(), card);
}

#[test]
fn add_refuses_what_is_too_large() {
    let home = Home::new();
    let mut text = ANNA.as_bytes().to_vec();
    text.resize((32 << 20) + 1, b'\n');
    home.write("large.vcf", &text);
    let run = home.code(&["add", "large.vcf"], 3);
    assert!(run.stderr().contains("larger than 32 MB"), "{}", run.masked_output());
    assert!(run.stderr().contains("larder import"), "{}", run.masked_output());
    assert!(!home.data().exists());
    text.pop();
    home.write("large.vcf", &text);
    home.ok(&["add", "large.vcf"]);
}

/// Other writers can commit between the batches; it is still one operation.
#[test]
fn add_cuts_a_long_file_into_batches() {
    let home = Home::new();
    let card = |n: usize, note: &str| {
        format!("BEGIN:VCARD\nVERSION:4.0\nUID:n-{n}\nFN:N {n}\nNOTE:{note}\nEND:VCARD\n")
    };
    let seqs = |home: &Home| {
        let items = home.json(&["find", "--fields", "full_name"]);
        let seqs: std::collections::BTreeSet<_> =
            items.iter().map(|item| item["seq"].as_u64().unwrap()).collect();
        (items.len(), seqs.len())
    };
    home.write("many.vcf", (0..450).map(|n| card(n, "")).collect::<String>());
    assert_eq!(home.ok(&["add", "many.vcf"]).lines().count(), 450);
    assert_eq!(seqs(&home), (450, 3));
    let log = home.json(&["log"]);
    assert_eq!((log.len(), &log[0]["added"]), (1, &450.into()));
    home.assert_store_is_sound();
    let home = Home::new();
    let large = "x".repeat(3 << 20);
    home.write("large.vcf", (0..3).map(|n| card(n, &large)).collect::<String>());
    home.ok(&["add", "large.vcf"]);
    assert_eq!(seqs(&home), (3, 3));
}

#[test]
fn a_measured_command_keeps_its_options() {
    let home = Home::new();
    // If the option were taken for a term, find would fail.
    home.ok(&["measure", "run", "--", "find", ".", "-maxdepth", "0"]);
}

#[test]
fn a_long_difference_is_cut() {
    let home = Home::with_book();
    let notes: String = (0..60_000).map(|n| format!("X-N:{n}\r\n")).collect();
    home.write("new.vcf", ANNA.replace("END:VCARD", &format!("{notes}END:VCARD")));
    home.ok(&["edit", "uid:anna-1", "--from", "new.vcf"]);
    home.write(
        "new.vcf",
        ANNA.replace("END:VCARD", &format!("{}END:VCARD", notes.replace("X-N", "X-M"))),
    );
    home.ok(&["edit", "uid:anna-1", "--from", "new.vcf"]);
    let begun = Instant::now();
    let log = home.ok(&["log", "uid:anna-1"]);
    // Comparing line by line would take minutes.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(log.contains("  ... and 59,800 more lines\n"), "{log}");
    assert!(log.ends_with("  ... and 119,800 more lines\n"), "{log}");
}

/// Both look up the item before they take the lock; the second reports that it is gone.
#[test]
fn two_removals_of_one_item() {
    let home = Home::with_book();
    let turn = File::options().read(true).write(true).open(home.data().join("data.lock")).unwrap();
    turn.lock().unwrap();
    let start = || home.spawn(&mut home.command(&["remove", "--query", "anna"]));
    let running = [start(), start()];
    let begun = Instant::now();
    let waits = |pid: u32| {
        let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        locks.lines().any(|line| line.contains("->") && line.contains(&format!(" {pid} ")))
    };
    while !running.iter().all(|child| waits(child.id())) && begun.elapsed().as_secs() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    turn.unlock().unwrap();
    let mut runs = running.map(|child| home.finish(child.wait_with_output().unwrap()));
    runs.sort_by_key(|run| run.code);
    assert_eq!(runs[0].masked_output(), "Removed xdnskgpk  Anna Hölderlin. Undo: larder undo 2\n");
    assert_eq!(runs[1].code, 3, "{}", runs[1].masked_output());
    let why = "nothing was removed: conflict: another program changed or removed 1 item";
    assert!(
        runs[1].out.is_empty() && runs[1].stderr().contains(why),
        "{}",
        runs[1].masked_output()
    );
    home.assert_store_is_sound();
}

#[test]
fn a_rename_makes_no_store() {
    let home = Home::new();
    let run = home.code(&["collections", "rename", "one", "two"], 1);
    assert!(run.stderr().contains("no store in"), "{}", run.masked_output());
    assert!(!home.data().exists());
}

#[test]
fn a_name_with_two_blanks_is_one_name() {
    let home = Home::new();
    let note = "x".repeat(300);
    let card = ANNA.replace("FN:Anna Hölderlin", "FN:Anna  Hölderlin").replace("Orchard", &note);
    home.write("anna.vcf", [card.as_str(), BRUNO].concat());
    home.ok(&["import", "anna.vcf"]);
    let found = home.ok(&["find", "--color", "always", "anna"]);
    assert!(found.contains("\x1b[1mAnna  Hölderlin\x1b[0m  "), "{found:?}");
    let found = home.ok(&["find", "anna"]);
    // Output that is not a terminal is never shortened.
    assert!(found.ends_with(&format!("  {note} Works\n")), "{found:?}");
    let found = home.ok(&["find", "anna", "--fields", "full_name,org"]);
    assert!(found.ends_with(&format!("\tAnna  Hölderlin\t{note} Works\n")), "{found:?}");
}

/// Warnings do not hide errors.
#[test]
fn a_flood_of_warnings() {
    let home = Home::new();
    let odd = "BEGIN:VCARD\nVERSION:3.0\nFN:A\nno property\nEND:VCARD\n".repeat(1200);
    home.write("odd.vcf", [odd.as_str(), "BEGIN:VEVENT\nEND:VEVENT\n"].concat());
    let errors = home.code(&["import", "odd.vcf"], 3).stderr();
    assert_eq!(errors.matches("note: 200 further warnings not shown").count(), 1, "{errors}");
    assert_eq!(errors.matches("error: rejected ").count(), 1);
}

/// All rejects are counted and written, and only the first ones are printed.
#[test]
fn a_flood_of_rejects() {
    let home = Home::new();
    let mut file = File::create(home.work("bad.vcf")).unwrap();
    let bad = "BEGIN:VEVENT\nEND:VEVENT\n".repeat(1500);
    file.write_all([bad.as_bytes(), ANNA.as_bytes()].concat().as_slice()).unwrap();
    let run = home.code(&["import", "bad.vcf", "--rejects", "rejects"], 3);
    let errors = run.stderr();
    assert_eq!(errors.matches("error: rejected ").count(), 1000);
    assert_eq!(errors.matches("note: 500 further errors not shown").count(), 1);
    assert!(run.stdout().contains("1,500 rejected; written to rejects"), "{}", run.stdout());
    assert_eq!(std::fs::read_to_string(home.work("rejects")).unwrap(), bad);
}

/// Sends Control-C before any input.
#[test]
fn an_import_that_is_interrupted_at_once() {
    let home = Home::with_book();
    let mut command = home.command(&["import", "-", "--into", "others"]);
    let mut import = home.spawn(command.stdin(std::process::Stdio::piped()));
    let status = format!("/proc/{}/status", import.id());
    let caught = || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
        mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 2 != 0)
    };
    let begun = Instant::now();
    while !caught() && begun.elapsed().as_secs() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(home.shell(&format!("kill -INT {}", import.id())).code, 0);
    std::thread::sleep(Duration::from_millis(300));
    drop(import.stdin.take());
    let run = home.finish(import.wait_with_output().unwrap());
    assert_eq!(run.masked_output(), "interrupted; nothing was imported\nexit 130\n");
}

#[test]
fn an_edit_from_standard_input() {
    let home = Home::with_book();
    let card = ANNA.replace("Orchard", "Meadow");
    let run = home.run_with(&["edit", "uid:anna-1", "--from", "-"], card.as_bytes());
    assert_eq!(run.masked_output(), "xdnskgpk  Anna Hölderlin  changed\n");
    assert_eq!(home.run(&["show", "uid:anna-1", "--format", "raw"]).stdout(), card);
    let run = home.run_with(&["edit", "uid:anna-1", "--from", "-"], b"");
    let why = "error: standard input: expected one VCARD, found 0";
    assert!(run.code == 3 && run.stderr().starts_with(why), "{}", run.masked_output());
}

/// A pipe or a device in place of a file that is read must not make a command wait for ever.
#[test]
fn pipes_and_devices_in_place_of_files() {
    let home = Home::with_book();
    let run = |script: &str| home.shell(&format!("timeout 60 sh -c '{script}'"));
    for zone in [":/dev/zero", "/dev/zero"] {
        let found = run(&format!("TZ={zone} larder find anna; TZ={zone} larder agenda"));
        assert!(found.stdout().contains("Anna") && found.code == 1, "{}", found.masked_output());
        assert!(found.stderr().contains("unknown time zone in TZ="), "{}", found.masked_output());
    }
    let found = run("mkdir -p zones/Europe && mkfifo zones/Europe/Vienna && \
                     TZDIR=$PWD/zones TZ=Europe/Vienna larder find anna");
    assert!(found.code == 0 && found.stdout().contains("Anna"), "{}", found.masked_output());
    let config = run("mkdir -p \"$XDG_CONFIG_HOME/larder\" && \
                      mkfifo \"$XDG_CONFIG_HOME/larder/config.toml\"; larder find anna");
    assert!(
        config.code == 2 && config.stderr().contains("is not a regular file"),
        "{}",
        config.masked_output()
    );
    home.shell("rm \"$XDG_CONFIG_HOME/larder/config.toml\"; mkdir other; mkfifo other/data.db");
    for verb in ["find anna", "check", "add --kind event \"x tomorrow 12:30\""] {
        let pipe = run(&format!("larder --data-dir other {verb}"));
        assert!(
            pipe.code == 4 && pipe.stderr().contains("data.db: is not a regular file"),
            "{verb}: {}",
            pipe.masked_output()
        );
    }
}

/// A store that may not be seen is not taken for one that is not there.
#[test]
fn a_store_without_permission_is_no_empty_one() {
    let home = home_with_mail();
    let data = home.data();
    let set_mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let folder = data.to_str().unwrap();
    let run = |args: &[&str]| as_anybody(&home, &[&["--data-dir", folder], args].concat());
    for parent in data.ancestors().skip(1).take_while(|parent| *parent != home.path()) {
        set_mode(parent, 0o755);
    }
    set_mode(&data, 0o700);
    for args in [
        &["sources"][..],
        &["searches"],
        &["labels"],
        &["sync"],
        &["find", "--kind", "message", "walrus"],
        &["find", "--correspondents", "anna"],
        &["edit", "a1", "--label", "+x"],
    ] {
        let Some(run) = run(args) else {
            return left_out("a_store_without_permission_is_no_empty_one", "no setpriv");
        };
        assert_eq!(run.code, 4, "{args:?}: {}", run.masked_output());
        assert!(run.stderr().contains("Permission denied"), "{args:?}: {}", run.stderr());
    }
    // A store that others may read can be copied and checked by them.
    set_mode(&data, 0o755);
    for file in std::fs::read_dir(&data).unwrap() {
        set_mode(&file.unwrap().path(), 0o644);
    }
    let backup = home.path().join("backup");
    std::fs::create_dir(&backup).unwrap();
    set_mode(&backup, 0o777);
    let copy = backup.join("copy");
    let run = |args: &[&str]| run(args).unwrap();
    let saved = run(&["backup", copy.to_str().unwrap()]);
    assert_eq!(saved.code, 0, "{}", saved.masked_output());
    let checked = run(&["check"]);
    assert_eq!(checked.code, 0, "{}", checked.masked_output());
}

//! Messages and hints for common mistakes.

use crate::test_home::{ANNA, BRUNO, Home, LARDER, Run, left_out};
use insta::assert_snapshot;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

#[test]
fn a_missing_store_is_explained() {
    let home = Home::new();
    assert_snapshot!(home.run(&[] as &[&str]).code, @"2");
    assert_snapshot!(home.run(&["find", "anna"]).masked_output(), @"
    ! error: no store in [HOME]/home/.local/share/larder
    ! hint: import an address book or a calendar first: larder import FILE (.vcf or .ics)
    ! hint: or register mail or a git repository: larder sources add PATH
    ! hint: --data-dir DIR or LARDER_DIR chooses another directory
    exit 1
    ");
    for verb in [
        "show x",
        "log",
        "undo",
        "check",
        "collections",
        "export contacts",
        "backup b",
        "remove x",
        "purge x",
        "edit x",
        "find --count",
        "agenda",
        "find --kind event",
        "find --count --format json",
    ] {
        let run = home.run(&verb.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, 1, "{verb}: {}", run.masked_output());
        assert!(
            run.stderr().contains("no store in [HOME]/home/.local/share/larder"),
            "{}",
            run.masked_output()
        );
        let hint = "hint: import an address book or a calendar first";
        assert!(run.stderr().contains(hint), "{}", run.masked_output());
        assert_eq!(run.stdout(), "", "{verb}");
    }
    assert!(!home.data().exists(), "a question made a store");
}

#[test]
fn usage_errors_have_hints() {
    let home = Home::with_book();
    let check = |args: &[&str]| home.code(args, 2).stderr();
    assert_snapshot!(check(&["imprt", "book.vcf"]), @r#"
    error: unknown command "imprt"
    hint: did you mean import?
    hint: `larder help` lists the commands
    "#);
    assert_snapshot!(check(&["find", "--cuont"]), @"
    error: unknown option --cuont
    hint: did you mean --count?
    hint: usage: larder find [OPTIONS] [QUERY]...
    ");
    assert_snapshot!(check(&["import"]), @"
    error: missing <PATH>...
    hint: usage: larder import [OPTIONS] <PATH>...
    ");
    assert_snapshot!(check(&["import", "book.vcf", "--batch", "0"]), @r#"error: invalid value "0" for --batch <N>: 0 is not between 1 and 4000"#);
    assert_snapshot!(check(&["import", "book.vcf", "--batch", "4001"]), @r#"error: invalid value "4001" for --batch <N>: 4001 is not between 1 and 4000"#);
    assert_snapshot!(check(&["import", "book.vcf", "--max-item", "big"]), @r#"error: invalid value "big" for --max-item <SIZE>: write a size as 1 MB, 384 KiB or 32M"#);
    assert_snapshot!(check(&["import", "book.vcf", "--max-item", "99999999999G"]), @r#"error: invalid value "99999999999G" for --max-item <SIZE>: too large"#);
    assert_snapshot!(check(&["find", "emial:anna"]), @r#"
    error: unknown field "emial" (at character 1 of the query)
    hint: did you mean email:? `larder fields` lists all fields; to search for a word with a colon, quote it
    "#);
    assert_snapshot!(check(&["find", "has:emial"]), @r#"
    error: unknown field "emial" (at character 1 of the query)
    hint: did you mean email:? `larder fields` lists all fields; to search for a word with a colon, quote it
    "#);
    assert_snapshot!(check(&["find", "qqqq:anna"]), @r#"
    error: unknown field "qqqq" (at character 1 of the query)
    hint: `larder fields` lists all fields; to search for a word with a colon, quote it
    "#);
    assert_snapshot!(check(&["find", "\"anna"]), @r#"
    error: unclosed quote (at character 1 of the query)
    hint: add a " at the end of the phrase
    "#);
    assert_snapshot!(check(&["find", "(anna"]), @r#"
    error: unclosed "(" (at character 1 of the query)
    hint: add a ")", or quote the word that contains it
    "#);
    assert_snapshot!(check(&["find", "anna or"]), @r#"
    error: "or" needs a term on both sides (at character 6 of the query)
    hint: to look for the word itself, quote it: "or"
    "#);
    assert_snapshot!(check(&["find", "--sexp", "(contains \"full_name\""]), @"
    error: expected a string in double quotes (at character 22 of the query)
    hint: `larder find --help` shows the syntax of queries
    ");
    assert_snapshot!(check(&["find", "--sort", "emial"]), @r#"
    error: unknown field "emial"
    hint: did you mean email?
    "#);
    assert_snapshot!(check(&["find", "--fields", "emial"]), @r#"
    error: unknown field "emial" in --fields
    hint: did you mean email?
    "#);
    assert_snapshot!(check(&["find", "--limit", "many"]), @r#"error: invalid value "many" for --limit <N>: not a number"#);
    assert_snapshot!(check(&["find", "--format", "xml"]), @r#"
    error: invalid value "xml" for --format <FORMAT>
    hint: larder prints no XML; --format json has all values
    hint: possible values: text, json, raw
    "#);
    assert_snapshot!(check(&["undo", "yesterday"]), @r#"error: invalid value "yesterday" for [OPERATION]: not a number"#);
}

#[test]
fn a_missing_collection_is_suggested() {
    let home = Home::with_book();
    assert_snapshot!(home.run(&["find", "--in", "contact"]).masked_output(), @r#"
    ! error: no such collection: "contact"
    ! hint: did you mean "contacts"? `larder collections` lists them
    exit 1
    "#);
    assert_snapshot!(home.run(&["find", "--in", "contact", "--count"]).masked_output(), @r#"
    ! error: no such collection: "contact"
    ! hint: did you mean "contacts"? `larder collections` lists them
    exit 1
    "#);
    assert_snapshot!(home.run(&["remove", "--query", "anna", "--in", "contact"]).masked_output(), @r#"
    ! error: no such collection: "contact"
    ! hint: did you mean "contacts"? `larder collections` lists them
    exit 1
    "#);
}

#[test]
fn configuration_errors_name_the_line() {
    let home = Home::with_book();
    let check = |text: &str| {
        home.configure(text);
        home.code(&["find"], 2).stderr()
    };
    assert_snapshot!(check("data-dri = \"x\"\n"), @r#"
    error: [HOME]/home/.config/larder/config.toml: line 1: unknown key "data-dri"
    hint: did you mean data-dir? known keys: data-dir, locale, region, editor, query-log, views, mail
    "#);
    assert_snapshot!(check("# fine\nlocale = de\n"), @r#"
    error: [HOME]/home/.config/larder/config.toml: line 2: string values must be quoted, expected literal string
    hint: for example: locale = "sv"
    "#);
    assert_snapshot!(check("locale = 7\n"), @r#"
    error: [HOME]/home/.config/larder/config.toml: line 1: invalid type: integer `7`, expected a string
    hint: for example: locale = "sv"
    "#);
    for (text, what, such) in [
        (
            "region = \"austria\"",
            "line 1: region = \"austria\": must be a two-letter country code",
            "region = \"AT\"",
        ),
        (
            "# x\nregion = \"\"",
            "line 2: region = \"\": must be a two-letter country code",
            "region = \"AT\"",
        ),
        (
            "region = \"4T\"",
            "line 1: region = \"4T\": must be a two-letter country code",
            "region = \"AT\"",
        ),
        (
            "region = \"AT\"\nlocale = \"sv SE\"",
            "line 2: locale = \"sv SE\": not a locale name",
            "locale = \"sv\" or \"de_DE\"",
        ),
        (
            "locale = \"German\"",
            "line 1: locale = \"German\": not a locale name",
            "locale = \"sv\" or \"de_DE\"",
        ),
        (
            "locale = \"12\"",
            "line 1: locale = \"12\": not a locale name",
            "locale = \"sv\" or \"de_DE\"",
        ),
    ] {
        assert_eq!(
            check(text),
            format!(
                "error: [HOME]/home/.config/larder/config.toml: {what}\nhint: for example: {such}\n"
            )
        );
    }
    for text in [
        "locale = \"sv\"",
        "locale = \"de_DE.UTF-8\"",
        "locale = \"sr-Latn\"",
        "locale = \"C\"",
        "region = \"at\"",
    ] {
        home.configure(text);
        home.ok(&["find"]);
    }
}

#[test]
fn unusable_directories_are_explained() {
    let home = Home::new();
    home.write("book.vcf", ANNA);
    home.write("file", "x");
    let at =
        |dir: &str, verb: &[&str]| home.run(&[&["--data-dir", dir], verb].concat()).masked_output();
    assert_snapshot!(at("file", &["import", "book.vcf"]), @"
    ! error: file is a file, not a directory
    ! hint: choose a directory with --data-dir DIR
    exit 4
    ");
    assert_snapshot!(at("file", &["find"]), @"
    ! error: file: Not a directory (os error 20)
    ! hint: choose a directory with --data-dir DIR
    exit 4
    ");
    assert_snapshot!(at("file/below", &["import", "book.vcf"]), @"
    ! error: file/below: Not a directory (os error 20)
    ! hint: choose a directory with --data-dir DIR
    exit 4
    ");
    home.write(
        "foreign/data.db",
        "this is not a database, but somebody's diary, and long enough to be read as one",
    );
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(home.work("foreign"), private.clone()).unwrap();
    assert_snapshot!(at("foreign", &["import", "book.vcf"]), @r#"
    ! error: foreign/data.db is damaged: file is not a database
    ! hint: `larder check --rebuild` repairs damaged indexes; `larder salvage FILE` saves what can be read
    ! hint: restore the last backup (a file that `larder backup` wrote): larder restore FILE
    ! hint: see "Recovery" in docs/backup.md
    exit 4
    "#);
    assert_snapshot!(at("foreign", &["find"]), @r#"
    ! error: foreign/data.db is damaged: file is not a database
    ! hint: `larder check --rebuild` repairs damaged indexes; `larder salvage FILE` saves what can be read
    ! hint: restore the last backup (a file that `larder backup` wrote): larder restore FILE
    ! hint: see "Recovery" in docs/backup.md
    exit 4
    "#);
    assert_snapshot!(at("foreign", &["check"]), @r#"
    ! error: foreign/data.db is damaged: file is not a database
    ! hint: `larder check --rebuild` repairs damaged indexes; `larder salvage FILE` saves what can be read
    ! hint: restore the last backup (a file that `larder backup` wrote): larder restore FILE
    ! hint: see "Recovery" in docs/backup.md
    exit 4
    "#);
    std::fs::create_dir_all(home.work("odd/data.db")).unwrap();
    std::fs::set_permissions(home.work("odd"), private.clone()).unwrap();
    assert_snapshot!(at("odd", &["import", "book.vcf"]), @"
    ! error: odd/data.db: is not a regular file
    ! hint: `ls -l` shows who owns the files; `larder check` checks the store for damage
    exit 4
    ");
    assert_snapshot!(at("odd", &["find"]), @"
    ! error: odd/data.db: is not a regular file
    ! hint: `ls -l` shows who owns the files; `larder check` checks the store for damage
    exit 4
    ");
}

/// Runs the program without privileges. Returns `None` if that is not possible.
pub fn as_anybody(home: &Home, args: &[&str]) -> Option<Run> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return Some(home.run(args));
    }
    // The build directory may be readable only by root.
    let copy = home.path().join("larder");
    if !copy.exists() {
        std::fs::copy(LARDER, &copy).unwrap();
        for dir in [home.path().to_path_buf(), home.work(""), home.path().join("home")] {
            std::fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
        }
    }
    let mut command = home.program("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy).args(args);
    let run = home.finish(command.output().ok()?);
    (run.code != 127).then_some(run)
}

#[test]
fn missing_permissions_are_explained() {
    let home = Home::new();
    home.write("book.vcf", ANNA);
    home.write("secret.vcf", BRUNO);
    std::fs::create_dir(home.work("locked")).unwrap();
    for (name, mode) in [("secret.vcf", 0o000), ("locked", 0o000), ("book.vcf", 0o644)] {
        std::fs::set_permissions(home.work(name), Permissions::from_mode(mode)).unwrap();
    }
    let Some(run) = as_anybody(&home, &["--data-dir", "locked/store", "import", "book.vcf"]) else {
        return left_out("without permission", "root cannot give its rights away (no setpriv)");
    };
    assert_snapshot!(run.masked_output(), @"
    ! error: locked/store: Permission denied (os error 13)
    ! hint: change its owner (`ls -ld` shows it), or choose another directory with --data-dir DIR
    exit 4
    ");
    let store = home.path().join("anybody");
    std::fs::create_dir(&store).unwrap();
    std::fs::set_permissions(&store, Permissions::from_mode(0o777)).unwrap();
    let run = as_anybody(
        &home,
        &["--data-dir", store.to_str().unwrap(), "import", "secret.vcf", "book.vcf"],
    )
    .unwrap();
    assert_snapshot!(run.masked_output(), @"
    1 contact added to contacts (1 file, 199 bytes)
    Undo: larder undo 1
    ! note: created a new store in [HOME]/anybody
    ! error: secret.vcf: permission denied
    ! hint: check the name and the permissions; the other files were imported
    exit 5
    ");
    let run = as_anybody(&home, &["--data-dir", "locked", "find"]).unwrap();
    assert_snapshot!(run.masked_output(), @"
    ! error: locked: Permission denied (os error 13)
    ! hint: change its owner (`ls -ld` shows it), or choose another directory with --data-dir DIR
    exit 4
    ");
    let counted = as_anybody(&home, &["--data-dir", "locked", "find", "--count"]).unwrap();
    assert_eq!(counted.masked_output(), run.masked_output());
    let export =
        ["--data-dir", store.to_str().unwrap(), "export", "contacts", "-o", "locked/out.vcf"];
    assert_snapshot!(as_anybody(&home, &export).unwrap().masked_output(), @"
    ! error: locked/out.vcf: permission denied
    ! hint: `ls -ld` shows who may read and write it
    exit 5
    ");
}

/// The text of a card cannot move the cursor, clear the screen or ring the bell.
#[test]
fn escape_sequences_are_not_printed() {
    let home = Home::new();
    let escape = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m";
    let card = format!(
        "BEGIN:VCARD\nVERSION:4.0\nUID:e{escape}vil\nFN:E{escape}vil\nEMAIL:a@b.c{escape}\nTEL:1{escape}23\n\
         ORG:O{escape}rg\nNOTE:a\\n{escape}b\nX-{escape}:x\nEND:VCARD\nstray{escape}\n"
    );
    home.write("evil.vcf", &card);
    home.write(&format!("ev{escape}il.vcf").replace('/', ""), "BEGIN:VCARD\nEND:VCARD\n");
    let mut runs = vec![home.run(&["import", "."])];
    let id = home.json(&["find"])[0]["id"].as_str().unwrap().to_string();
    for line in [
        "find",
        "find --fields full_name,uid,note",
        "show ID",
        "log ID",
        "log",
        "log --format json",
        "find --format json",
        "show ID --format json",
        "find --explain e",
        "remove ID --dry-run",
        "edit ID",
        "collections",
        "remove ID",
        "undo",
        "purge ID",
        "show uid:nobody",
    ] {
        let args: Vec<&str> =
            line.split(' ').map(|word| if word == "ID" { id.as_str() } else { word }).collect();
        for color in ["always", "never"] {
            let args = [args.as_slice(), &["--color", color]].concat();
            let run = home.command(&args).env("EDITOR", "true").output().unwrap();
            runs.push(home.finish(run));
        }
    }
    let (named, unknown) = (format!("x{escape}"), format!("find x{escape}:y"));
    for args in [
        vec!["show", &named],
        vec!["export", &named],
        unknown.split(' ').collect(),
        vec!["collections", "create", &named],
        vec!["import", &named],
        vec!["find", "--in", &named],
        vec!["find", "--sort", &named],
        vec!["find", "--fields", &named],
    ] {
        runs.push(home.run(&args));
    }
    for run in runs {
        // Only the program's own colours are allowed: ESC [ digits m.
        for text in [run.stdout(), run.stderr()] {
            for (at, c) in text.char_indices().filter(|(_, c)| c.is_control() && *c != '\n') {
                let rest = text[at..].strip_prefix("\u{1b}[");
                let own = rest.and_then(|rest| rest.split_once('m')).is_some_and(|(digits, _)| {
                    digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')
                });
                assert!(
                    own && c == '\u{1b}' || c == '\t',
                    "{c:?} is written to the terminal: {}",
                    run.masked_output().escape_debug()
                );
            }
        }
    }
}

/// Runs an edit whose editor is a shell script; $1 is the file.
fn edit(home: &Home, script: &str) -> Run {
    let editor = home.write("editor", format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&editor, Permissions::from_mode(0o755)).unwrap();
    let output = home.command(&["edit", "uid:anna-1"]).env("EDITOR", &editor).output().unwrap();
    home.finish(output)
}

/// Returns the file that an error message names for the kept text.
fn read_kept_text(home: &Home, run: &Run) -> String {
    let text = String::from_utf8_lossy(&run.err).into_owned();
    let path = text.lines().find_map(|line| line.strip_prefix("hint: your text is kept in "));
    let path = path.unwrap_or_else(|| panic!("{text}"));
    assert!(path.starts_with(home.temporary().to_str().unwrap()), "{text}");
    std::fs::read_to_string(path).unwrap()
}

/// Control-C, end of input or a no at the question whether to edit again keep the text in a named
/// file.
#[test]
fn a_cancelled_edit_keeps_the_text() {
    let home = Home::with_book();
    let script = "script -qec 'larder edit uid:anna-1' /dev/null";
    for (typed, code) in [("\\003", 130), ("\\004", 3), ("n\\n", 3)] {
        // Typed after the question is printed.
        let run = home.shell(&format!(
            "command -v script >/dev/null || exit 77
             export EDITOR='echo scribbles >' SHELL=/bin/sh; : >said
             (until grep -q again said; do sleep 0.02; done; printf '{typed}'; sleep 1) | {script} >said"
        ));
        if run.code == 77 {
            return left_out("giving an edit up", "there is no terminal to type on (no script)");
        }
        assert_eq!(run.code, code, "{typed}: {}", run.masked_output());
        let said = std::fs::read_to_string(home.work("said")).unwrap();
        let path =
            said.split("your text is kept in ").nth(1).unwrap_or_else(|| panic!("{typed}: {said}"));
        assert_eq!(std::fs::read_to_string(path.trim()).unwrap(), "scribbles\n", "{typed}: {said}");
    }
}

#[test]
fn editor_failures_are_explained() {
    let home = Home::with_book();
    assert_snapshot!(edit(&home, "sed -i s/Orchard/Meadow/ \"$1\"").masked_output(), @"xdnskgpk  Anna Hölderlin  changed");
    assert_snapshot!(edit(&home, "true").masked_output(), @"! note: no changes");
    let run = edit(&home, "exit 3");
    assert_snapshot!(run.masked_output(), @r#"
    ! error: the editor "[HOME]/work/editor" failed (exit status: 3); nothing was changed
    ! hint: set EDITOR, or `editor` in config.toml, to another editor
    exit 5
    "#);
    // An editor that saved before it failed.
    let run = edit(&home, "sed -i s/Meadow/Forest/ \"$1\"; exit 3");
    assert_eq!(run.code, 5, "{}", run.masked_output());
    assert!(read_kept_text(&home, &run).contains("ORG:Forest Works"), "{}", run.masked_output());
    let mut missing = home.command(&["edit", "uid:anna-1"]);
    let run = home.finish(missing.env("EDITOR", "no-such-editor --wait").output().unwrap());
    assert_eq!(run.code, 5, "{}", run.masked_output());
    assert!(run.stderr().contains("hint: set EDITOR"), "{}", run.masked_output());
    for (script, text, what) in [
        ("echo scribbles >\"$1\"", "scribbles\n", "text outside the item"),
        ("sed -i /^UID/d \"$1\"", "FN:Anna", "missing line UID:anna-1"),
        (
            "sed -i s/anna-1/anna-9/ \"$1\"",
            "UID:anna-9",
            "the UID cannot be changed: it must stay \"anna-1\"",
        ),
        ("sed -i /^END/d \"$1\"", "X-KEEP", "missing END:VCARD"),
        (
            "cat \"$1\" \"$1\" >\"$1\".two; mv \"$1\".two \"$1\"",
            "END:VCARD",
            "expected one VCARD, found 2",
        ),
        (": >\"$1\"", "", "expected one VCARD, found 0"),
    ] {
        let run = edit(&home, script);
        assert_eq!(run.code, 3, "{script}: {}", run.masked_output());
        assert!(run.stderr().contains(what), "{script}: {}", run.masked_output());
        assert!(read_kept_text(&home, &run).contains(text), "{script}: {}", run.masked_output());
    }
    assert_snapshot!(edit(&home, "rm \"$1\"").masked_output(), @"
    ! error: the editor deleted its file; nothing was changed
    ! hint: read the new text from a file with --from FILE
    exit 3
    ");
    // Another process changes the item while the editor is open.
    let other = home.write("other.vcf", ANNA.replace("Orchard", "Other"));
    let data = home.data();
    let script = format!(
        "sed -i s/Meadow/Mine/ \"$1\"; {LARDER} --data-dir {} edit uid:anna-1 --from {} >/dev/null",
        data.display(),
        other.display()
    );
    let run = edit(&home, &script);
    assert_eq!(run.code, 3, "{}", run.masked_output());
    assert!(
        run.stderr().contains("conflict: another program modified the item"),
        "{}",
        run.masked_output()
    );
    assert!(read_kept_text(&home, &run).contains("ORG:Mine Works"), "{}", run.masked_output());
    let now = home.run(&["show", "uid:anna-1", "--format", "raw"]).stdout();
    assert_eq!(now, ANNA.replace("Orchard", "Other"));
    // The configuration's editor takes precedence over the environment's.
    home.configure("editor = \"sed -i s/Other/Configured/\"\n");
    assert_eq!(edit(&home, "exit 9").code, 0);
    assert_eq!(home.json(&["show", "uid:anna-1"])[0]["org"][0], "Configured Works");
}

/// Hints for common first attempts with a calendar.
#[test]
fn first_attempts_with_a_calendar() {
    let home = Home::new();
    let calendar = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VTODO\nUID:tax\nSUMMARY:Tax\nEND:VTODO\n\
        BEGIN:VTODO\nUID:rent\nSUMMARY:Rent\nEND:VTODO\nEND:VCALENDAR\n";
    home.write("todo.ics", calendar);
    assert_eq!(home.run(&["import", "todo.ics"]).code, 0);
    let said = |args: &[&str], what: &[&str]| {
        let run = home.run(args);
        let told = run.stderr();
        assert!(
            run.code != 0 && what.iter().all(|what| told.contains(what)),
            "{}",
            run.masked_output()
        );
    };
    said(&["merge", "uid:tax", "uid:rent"], &["only contacts can be merged"]);
    said(
        &["edit", "uid:tax", "--set", "done=1"],
        &["mark a task as done with --set status=completed"],
    );
    said(&["add", "Meeting"], &["no such file", "larder add --kind event \"Meeting\""]);
    assert_eq!(home.run(&["edit", "uid:tax", "--set", "status=completed"]).code, 0);
}

#[test]
fn usage_errors_name_the_mistake() {
    let home = Home::with_book();
    home.write("a.vcf", crate::test_home::ANNA);
    home.write("b.vcf", crate::test_home::BRUNO);
    home.ok(&["add", "Lunch 2026-12-01 12:30"]);
    let lunch = home.json(&["find", "lunch", "--format", "json"])[0]["id"].clone();
    let lunch = lunch.as_str().unwrap();
    let check = |args: &[&str]| home.code(args, 2).stderr();
    assert_snapshot!(check(&["agenda", "today", "--kind", "event"]), @"
    error: unknown option --kind
    hint: usage: larder agenda [OPTIONS] [FROM] [TO]
    ");
    assert_snapshot!(check(&["agenda", "--busyy"]), @"
    error: unknown option --busyy
    hint: did you mean --busy?
    hint: usage: larder agenda [OPTIONS] [FROM] [TO]
    ");
    assert_snapshot!(check(&["add", "Call Bob 9am", "--in", "Work"]), @"
    error: unknown option --in
    hint: did you mean --into?
    hint: usage: larder add [OPTIONS] [FILE|TEXT]...
    ");
    assert_snapshot!(check(&["find", "--in", "Work", "--in", "Home"]), @"
    error: --in <NAME> may be given once only
    hint: without --in, all collections are searched; for some of them, run the command for each
    ");
    assert_snapshot!(check(&["remove", "--in", "Work"]), @"
    error: missing --query <QUERY>
    hint: usage: larder remove [OPTIONS] [ID]...
    ");
    assert_snapshot!(check(&["edit", lunch, "--set", "stauts=cancelled"]), @r#"
    error: field "stauts" cannot be set
    hint: did you mean status?
    "#);
    assert_snapshot!(check(&["edit", lunch, "--every", "monday"]), @"
    error: unknown option --every
    hint: did you mean --rule?
    hint: usage: larder edit [OPTIONS] [ID]...
    ");
    assert_snapshot!(check(&["add", "a.vcf", "b.vcf"]), @"
    error: add takes one file
    hint: larder import takes several; or: larder add a.vcf
    ");
    assert_snapshot!(check(&["find", "re: lunch"]), @r#"
    error: unknown field "re" (at character 1 of the query)
    hint: did you mean rev:? `larder fields` lists all fields; to search for a word with a colon, quote it
    "#);
    assert_snapshot!(check(&["find", "in:Work"]), @r#"
    error: unknown field "in" (at character 1 of the query)
    hint: to search one collection: --in NAME
    "#);
    assert_snapshot!(check(&["find", "kind:event"]), @r#"
    error: unknown field "kind" (at character 1 of the query)
    hint: for one kind of item: is:event, or --kind event
    "#);
    assert_snapshot!(check(&["redo"]), @r#"
    error: unknown command "redo"
    hint: did you mean undo?
    hint: `larder undo N` with the number of an undo redoes
    "#);
    let every = ["add", "Stand-up every day 9:00 starting 2026-03-02", "--format", "json"];
    let series = home.json(&every)[0]["id"].clone();
    for (typed, expect) in
        [("2025-12-03", "at 2025-12-03"), ("2026-03-05 10:00", "at 2026-03-05 10:00")]
    {
        let edit = ["edit", series.as_str().unwrap(), "--occurrence", typed, "--summary", "B"];
        assert!(home.run(&edit).stderr().contains(expect), "{}", home.run(&edit).stderr());
    }
    assert!(home.ok(&["help", "--help"]).contains("Usage: larder"));
    // A value is no option.
    home.code(&["edit", lunch, "--for", "--summary"], 2);
    home.ok(&["edit", lunch, "--summary=--set"]);
}

#[test]
fn priorities_are_words_or_numbers() {
    let home = Home::new();
    home.ok(&["add", "Tax 2026-12-01", "--priority", "high"]);
    let tax = home.json(&["find", "tax", "--format", "json"])[0]["id"].clone();
    let tax = tax.as_str().unwrap();
    home.ok(&["edit", tax, "--priority", "low"]);
    assert!(home.ok(&["show", tax, "--format", "raw"]).contains("PRIORITY:9\r\n"));
    home.ok(&["edit", tax, "--set", "priority=0"]);
    assert_snapshot!(home.code(&["edit", tax, "--priority", "urgent"], 2).stderr(), @r#"error: "urgent" is not a valid priority: use 1 (highest) to 9, or high, medium or low"#);
    assert_snapshot!(home.code(&["find", "priority:x"], 2).stderr(), @r#"
    error: "x" is not a priority (at character 1 of the query)
    hint: use a number from 0 to 9, high, normal, low or none
    "#);
    assert_snapshot!(home.code(&["find", "priority:10"], 2).stderr(), @r#"
    error: "10" is not a priority (at character 1 of the query)
    hint: use a number from 0 to 9, high, normal, low or none
    "#);
    assert_eq!(home.ok(&["find", "--count", "priority:none"]), "1\n");
    assert_snapshot!(home.code(&["add", "Tax 2026-12-01", "--priority", "0"], 2).stderr(), @r#"error: invalid value "0" for --priority <NUMBER>: use 1 (highest) to 9, or high, medium or low"#);
}

#[test]
fn a_change_whose_report_cannot_be_printed_is_said_to_be_made() {
    let home = Home::with_book();
    let meeting = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:gym\r\nDTSTART:20260302T090000\r\nRRULE:FREQ=DAILY\r\n\
        SUMMARY:Gym\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    home.write("gym.ics", meeting);
    home.write("twin.vcf", ANNA.replace("UID:anna-1", "UID:anna-2"));
    let changes: &[&[&str]] = &[
        &["import", "gym.ics", "--into", "calendar"],
        &["add", "twin.vcf", "--into", "contacts"],
        &["add", "Lunch 2026-03-04 12:00"],
        &["add", "--kind", "contact", "Dora Berg"],
        &["edit", "uid:anna-1", "--note", "red door"],
        &["edit", "uid:gym", "--occurrence", "2026-03-03", "--summary", "Pool"],
        &["merge", "uid:anna-1", "uid:anna-2"],
        &["remove", "uid:gym", "--occurrence", "2026-03-04"],
        &["remove", "uid:bruno-2"],
        &["undo"],
        &["remove", "--query", "dora"],
        &["collections", "create", "empty"],
        &["collections", "rename", "empty", "spare"],
        &["collections", "index", "contacts", "--index", "email:exact"],
        &["collections", "remove", "spare"],
        &["purge", "-y", "uid:bruno-2"],
    ];
    let run = |args: &[&str]| {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let run = home.finish(home.command(args).stdout(full).output().unwrap());
        assert_eq!(run.code, 5, "{args:?}: {}", run.stderr());
        run.stderr()
    };
    for args in changes {
        let message = run(args);
        let newest = home.json(&["log", "--format", "json"])[0]["operation"].to_string();
        let expected = format!(
            "error: the change was made as operation {newest}; cannot write the output: no space left"
        );
        assert!(message.contains(&expected), "{args:?}: {message}");
        assert!(message.contains("hint: do not run the command again"), "{args:?}: {message}");
        assert!(!message.contains("free some space"), "{args:?}: {message}");
    }
    home.ok(&["backup", "copy.db"]);
    assert!(
        run(&["restore", "copy.db"])
            .contains("error: the backup was restored; cannot write the output")
    );
    assert!(run(&["find"]).starts_with("error: cannot write the output: no space left"));
}

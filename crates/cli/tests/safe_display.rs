//! No character that deceives a reader or controls a terminal reaches standard output or standard
//! error: every command for people is run over items, names and files that consist of them.

use crate::test_home::{Home, Run};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use unicode_width::UnicodeWidthStr as _;

/// Characters that no line may have: controls, bidirectional controls, invisible characters, line
/// and paragraph separators, annotations, tags.
const HOSTILE: &[char] = &[
    '\u{1}',
    '\u{7}',
    '\u{8}',
    '\u{1b}',
    '\u{7f}',
    '\u{90}',
    '\u{9b}',
    '\u{9d}',
    '\u{ad}',
    '\u{61c}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202b}',
    '\u{202c}',
    '\u{202d}',
    '\u{202e}',
    '\u{2060}',
    '\u{2063}',
    '\u{2066}',
    '\u{2067}',
    '\u{2068}',
    '\u{2069}',
    '\u{206a}',
    '\u{feff}',
    '\u{fff9}',
    '\u{fffb}',
    '\u{e0001}',
    '\u{e0041}',
    '\u{e007f}',
];

/// Returns a word with every hostile character in it.
fn hostile(word: &str) -> String {
    let inside: String = HOSTILE.iter().map(|c| format!("{c}x")).collect();
    format!("{word} {inside}")
}

/// Like [`hostile`], without the characters that names of collections and arguments refuse.
fn hostile_name(word: &str) -> String {
    hostile(word).chars().filter(|c| !c.is_control()).collect()
}

fn card(uid: &str, name: &str) -> String {
    let bad = |word: &str| hostile(word);
    format!(
        "BEGIN:VCARD\nVERSION:3.0\nUID:{uid}{}\nFN:{}\nN:{};{};;;\nEMAIL;TYPE={}:same@example.org\nTEL:+49 30 1234567\n\
         ORG:{};{}\nNOTE:{}\\n{}\nADR:;;{};;;;\nNICKNAME:{}\nX-ODD:{}\nTITLE:{}\nURL:{}\nEND:VCARD\n",
        hostile_name(""),
        bad(name),
        bad("family"),
        bad("given"),
        hostile_name("work"),
        bad("org"),
        bad("unit"),
        bad("note"),
        bad("second line"),
        bad("street"),
        bad("nick"),
        bad("odd"),
        bad("title"),
        bad("https://example.org/")
    )
}

fn calendar() -> String {
    let bad = |word: &str| hostile(word);
    let name = hostile_name("calendar");
    format!(
        "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nX-WR-CALNAME:{name}\n\
         BEGIN:VEVENT\nUID:event{}\nDTSTART;TZID={}:20260306T100000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3\n\
         SUMMARY:{}\nLOCATION:{}\\n{}\nDESCRIPTION:{}\nSTATUS:{}\nCATEGORIES:{}\nATTENDEE;CN={}:mailto:a{}@example.org\n\
         ORGANIZER;CN={}:mailto:b@example.org\nEXDATE:{}\nX-BAD{}\n\
         BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER:-PT10M\nDESCRIPTION:{}\nEND:VALARM\nEND:VEVENT\n\
         BEGIN:VTODO\nUID:task\nDUE:20260306T120000Z\nSUMMARY:{}\nEND:VTODO\n\
         BEGIN:VEVENT\nUID:broken\nDTSTART:{}\nRRULE:{}\nSUMMARY:{}\nEND:VEVENT\n\
         BEGIN={}VEVENT\nEND:VCALENDAR\nout{}side\n",
        hostile_name(""),
        hostile_name("Zone"),
        bad("summary"),
        bad("place"),
        bad("floor"),
        bad("text"),
        bad("CONFIRMED"),
        bad("category"),
        hostile_name("name"),
        hostile_name(""),
        hostile_name("chief"),
        bad("when"),
        bad("no colon"),
        bad("alarm"),
        bad("task"),
        bad("start"),
        bad("rule"),
        bad("broken"),
        hostile(""),
        hostile("")
    )
}

/// Checks what a person reads: only line ends and tabs, and styles if the output has them.
#[track_caller]
fn check(shown: &str, run: &Run) {
    for (stream, bytes) in [("output", &run.out), ("error", &run.err)] {
        let text = String::from_utf8_lossy(bytes);
        let text = without_styles(&text);
        let bad =
            text.chars().find(|c| HOSTILE.contains(c) || c.is_control() && !"\n\t".contains(*c));
        assert_eq!(bad, None, "{shown}: standard {stream}:\n{}", text.escape_debug());
    }
}

/// Removes the styles `ESC [ numbers m`.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        match part.split_once('m') {
            Some((numbers, rest))
                if numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') =>
            {
                plain.push_str(rest);
            }
            _ => plain.push_str(&format!("\u{1b}[{part}")),
        }
    }
    plain
}

#[test]
fn no_command_shows_hostile_characters() {
    let home = Home::new();
    let (book, events) = (hostile_name("book") + ".vcf", hostile_name("events") + ".ics");
    home.write(&book, card("one", "Anna") + &card("two", "Anna") + &hostile("BEGIN:VCARD\nFN:cut"));
    home.write(&events, calendar());
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut add =
        |args: &[&str]| commands.push(args.iter().map(|arg| (*arg).to_string()).collect());
    let (bad, name) = (hostile_name("word"), hostile_name("calendar"));
    add(&["import", &book, &events]);
    add(&["import", &(hostile_name("missing") + ".vcf")]);
    add(&["collections"]);
    add(&["collections", "create", &hostile_name("new")]);
    add(&["collections", "rename", &hostile_name("new"), &hostile_name("newer")]);
    add(&["collections", "index", &hostile_name("newer")]);
    add(&["collections", "create", &hostile("controls")]);
    for query in ["", "anna", "summary:summary", "any:note"] {
        add(&["find", query]);
        add(&["find", query, "--explain"]);
        add(&["find", query, "--fields", "full_name,email,org,note,summary,location,start,status"]);
        add(&["--format", "json", "find", query]);
    }
    add(&["find", &bad]);
    add(&["find", &format!("{bad}:x")]);
    add(&["find", "--in", &bad, "x"]);
    add(&["find", &format!("when:{bad}")]);
    add(&["find", &format!("full_name:~({bad}")]);
    add(&["find", "--sort", &bad, ""]);
    add(&["find", "--duplicates"]);
    add(&["find", "when:2026-03", "--expand"]);
    add(&["find", "--alarms", "2026-03"]);
    add(&["agenda", "2026-03-06"]);
    add(&["agenda", "2026-03-06", "--busy"]);
    add(&["agenda", "--in", &name, "2026-03-06"]);
    add(&["agenda", &bad]);
    add(&["show", &bad]);
    add(&["add", &format!("Lunch {bad} 6 March 2026 12:30 at {bad}"), "--in", &name]);
    add(&["add", &bad]);
    add(&["log"]);
    add(&["log", "1"]);
    add(&["export", &name, "-o", &(hostile_name("out") + ".ics")]);
    add(&["export", &bad]);
    add(&["backup", &(hostile_name("backup") + ".db")]);
    add(&["restore", &hostile_name("no backup")]);
    add(&["check"]);
    add(&[&bad]);
    add(&["find", &format!("--{bad}")]);
    add(&["--format", &bad, "find", "x"]);
    add(&["--config", &bad, "find", "x"]);
    let run = |args: &[String]| {
        let plain = home.run(args);
        check(&format!("{args:?}"), &plain);
        let styled = [&["--color".to_string(), "always".to_string()], args].concat();
        let mut command = home.command(&styled);
        command.env("COLUMNS", "100");
        check(&format!("{args:?} with styles"), &home.finish(command.output().unwrap()));
        plain.code
    };
    let codes: Vec<i32> = commands.iter().map(|args| run(args)).collect();
    assert!(codes.iter().filter(|code| **code == 0).count() > 20, "{codes:?}");

    // The commands that take the ID of an item.
    let ids: Vec<String> =
        home.json(&["find", ""]).iter().map(|item| item["id"].as_str().unwrap().into()).collect();
    assert!(ids.len() >= 5, "{ids:?}");
    for id in &ids {
        for args in [vec!["show", id], vec!["log", id], vec!["remove", "--dry-run", id]] {
            let args: Vec<String> = args.into_iter().map(String::from).collect();
            run(&args);
        }
    }
    let contacts: Vec<String> = home
        .json(&["find", "anna"])
        .iter()
        .map(|item| item["id"].as_str().unwrap().into())
        .collect();
    let with = |words: &[&str], ids: &[String]| -> Vec<String> {
        words.iter().map(|word| (*word).to_string()).chain(ids.iter().cloned()).collect()
    };
    assert_eq!(run(&with(&["merge", "--dry-run"], &contacts[..2])), 0);
    assert_eq!(run(&with(&["merge"], &contacts[..2])), 0);
    run(&with(&["remove"], &contacts[..1]));
    run(&with(&["log"], &contacts[..1]));
    run(&["undo".into()]);
    run(&with(&["purge", "--yes"], &contacts[..1]));
    run(&["log".into()]);
    // An editor that changes nothing sensible.
    for id in &ids[2..] {
        let mut command = home.command(&["edit", id]);
        command
            .env("EDITOR", "sh -c 'echo X:\"$(cat \"$0\" | head -c 300)\" >> \"$0\"'")
            .stdin(Stdio::null());
        check("edit", &home.finish(command.output().unwrap()));
    }
}

/// Marks and joiners that a text needs are not escaped where a list cuts it, and widen no line.
#[test]
fn cut_names_have_no_escapes() {
    let home = Home::new();
    let names = [
        "zzfam\u{200f} abcdefgh ijklmnop qrstuvw שלום",
        "Family \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466} of many names and words",
    ];
    let cards = names.map(|name| format!("BEGIN:VCARD\nVERSION:4.0\nFN:{name}\nEND:VCARD\n"));
    home.write("a.vcf", cards.concat());
    home.ok(&["import", "a.vcf"]);
    for width in 18..=60 {
        let mut command = home.command(&["find"]);
        command.env("COLUMNS", width.to_string());
        let shown = home.finish(command.output().unwrap()).stdout();
        assert_eq!(shown.lines().count(), 2, "{shown}");
        for line in shown.lines() {
            assert!(!line.contains("<U+"), "{width}: {line:?}");
            assert!(line.width() <= width, "{width}: {line:?}");
        }
    }
}

#[test]
fn watch_shows_no_hostile_characters() {
    let home = Home::new();
    home.write("a.vcf", card("one", "Anna"));
    home.ok(&["import", "a.vcf"]);
    let mut child = home.spawn(&mut home.command(&["watch", "anna"]));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    let mut run = home.finish(child.wait_with_output().unwrap());
    run.out = line.into_bytes();
    assert!(run.stdout().contains("Anna"), "{}", run.masked_output());
    check("watch", &run);
}

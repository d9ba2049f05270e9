//! The table of texts that mu and notmuch find otherwise holds for all three programs.

use crate::test_home::{Home, left_out};
use std::collections::BTreeSet;

/// The beginning of the table in the documentation.
const HEADER: &str = "| text | query | Larder | mu | notmuch | reason |";

/// Returns the rows of the table: text, query, and whether each program finds the text.
fn documented_rows() -> Vec<(String, String, [bool; 3])> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mail.md");
    let page = std::fs::read_to_string(page).unwrap().replace("&shy;", "\u{ad}");
    let (_, table) = page.split_once(HEADER).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let row = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [text, query, larder, mu, notmuch, _] = cells[..] else { panic!("{row}") };
        (text.to_string(), query.to_string(), [larder, mu, notmuch].map(|cell| cell == "yes"))
    };
    rows.map(row).collect()
}

/// Writes a message for each row, whose Message-ID is the number of the row.
fn write_maildir(home: &Home, rows: &[(String, String, [bool; 3])]) {
    for folder in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(home.work("mail").join(folder)).unwrap();
    }
    for (number, (text, ..)) in rows.iter().enumerate() {
        let message = format!(
            "From: a@b.example\nDate: Tue, 24 Nov 2026 12:00:00 +0000\nSubject: row\n\
             Message-ID: <{number}.row@c.example>\nContent-Type: text/plain; charset=utf-8\n\
             Content-Transfer-Encoding: 8bit\n\n{text}\n"
        );
        std::fs::write(home.work("mail").join(format!("cur/{number}.x:2,S")), message).unwrap();
    }
}

/// Runs a program and returns the words of its output.
fn output_words(home: &Home, program: &str, arguments: &[&str]) -> Option<BTreeSet<String>> {
    let mut command = home.program(program);
    command.env("NOTMUCH_CONFIG", home.path().join("notmuch")).env("LC_ALL", "C.UTF-8");
    let output = command.args(arguments).output().ok()?;
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(words.split_whitespace().map(ToString::to_string).collect())
}

/// Checks the cells of a program.
fn check_cells(
    rows: &[(String, String, [bool; 3])],
    column: usize,
    find: &dyn Fn(&str) -> BTreeSet<String>,
) {
    for (number, (text, query, expected)) in rows.iter().enumerate() {
        let found = find(query);
        let id = format!("{number}.row@c.example");
        let is_found = found.contains(&id) || found.contains(&format!("id:{id}"));
        assert_eq!(is_found, expected[column], "{text:?} {query:?}, column {column}");
    }
}

#[test]
fn the_documented_differences_are_those_of_the_programs() {
    let home = Home::new();
    let rows = documented_rows();
    assert!(rows.len() > 15);
    write_maildir(&home, &rows);
    let maildir = home.work("mail");
    home.ok(&["sources", "add", maildir.to_str().unwrap(), "--into", "mail"]);
    home.ok(&["sync"]);
    check_cells(&rows, 0, &|query| crate::mail_against_mu::find_with_larder(&home, query));

    let name = "the_documented_differences_are_those_of_the_programs";
    let version = output_words(&home, "mu", &["--version"]).unwrap_or_default();
    if version.iter().any(|word| word.starts_with("1.8")) {
        let state = format!("--muhome={}", home.path().join("mu").display());
        let option = format!("--maildir={}", maildir.display());
        output_words(&home, "mu", &["init", "--quiet", &state, &option]);
        output_words(&home, "mu", &["index", "--quiet", &state]);
        check_cells(&rows, 1, &|query| {
            output_words(&home, "mu", &["find", &state, "--fields", "i", "--", query]).unwrap()
        });
    } else {
        left_out(name, "mu 1.8 is not installed");
    }
    let version = output_words(&home, "notmuch", &["--version"]).unwrap_or_default();
    if version.iter().any(|word| word.starts_with("0.37")) {
        let path = maildir.display();
        let config = format!("[database]\npath={path}\n[user]\nprimary_email=a@b.example\n");
        std::fs::write(home.path().join("notmuch"), config).unwrap();
        output_words(&home, "notmuch", &["new", "--quiet"]);
        check_cells(&rows, 2, &|query| {
            output_words(&home, "notmuch", &["search", "--output=messages", query]).unwrap()
        });
    } else {
        left_out(name, "notmuch 0.37 is not installed");
    }
}

//! Arbitrary arguments never make the program panic, die by a signal or run forever.

use crate::test_home::{ANNA, Home, times};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// Words that a person could type. No path leads out of the working directory, and no number is
/// large.
const WORDS: &[&str] = &[
    "import",
    "find",
    "show",
    "add",
    "edit",
    "remove",
    "undo",
    "log",
    "purge",
    "collections",
    "export",
    "fields",
    "check",
    "backup",
    "restore",
    "measure",
    "completions",
    "man",
    "help",
    "list",
    "create",
    "rename",
    "generate",
    "contacts",
    "bash",
    "--data-dir",
    "--format",
    "json",
    "raw",
    "text",
    "--quiet",
    "-q",
    "--color",
    "always",
    "--into",
    "--kind",
    "contact",
    "--rejects",
    "--batch",
    "--max-item",
    "--in",
    "--sexp",
    "--sort",
    "--limit",
    "-n",
    "--fields",
    "--count",
    "--explain",
    "--query",
    "--dry-run",
    "--rebuild",
    "--yes",
    "--from",
    "--seed",
    "-o",
    "--out",
    "--",
    "-",
    "--help",
    "book.vcf",
    "out",
    "missing",
    "uid:anna-1",
    "contacts/anna-1",
    "anna",
    "0",
    "1",
    "2",
    "-1",
    "4000",
    "18446744073709551616",
    "1K",
    "full_name",
    "-full_name",
    "has:email",
    "email:*@x",
    "\"",
    "(",
    ")",
    "(and)",
    "(contains \"email\" \"a\")",
    "not",
    "or",
    "",
    " ",
    "💣",
    "ß",
    "é",
];

fn word() -> impl Strategy<Value = OsString> {
    prop_oneof![
        12 => select(WORDS).prop_map(OsString::from),
        1 => "[a-zäß:\"()*=, \\\\-]{0,12}".prop_map(OsString::from),
        1 => proptest::collection::vec(1_u8..=255, 0..8).prop_map(|bytes| {
            // Neither a way out of the directory nor a long number.
            let harmless = bytes.into_iter().filter(|byte| !b"/.0123456789".contains(byte));
            OsString::from_vec(harmless.collect())
        }),
    ]
}

#[test]
fn no_argument_makes_it_panic() {
    let home = Home::new();
    home.write("book.vcf", ANNA);
    home.ok(&["import", "book.vcf"]);
    let cases = u32::try_from(times("LARDER_ARGUMENT_CASES", 400)).unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let args = proptest::collection::vec(word(), 0..7);
    let result = TestRunner::new(config).run(&args, |args| {
        let mut command = home.command(&args);
        let run = home.finish(command.env("EDITOR", "true").output().unwrap());
        let known = [0, 1, 2, 3, 4, 5].contains(&run.code);
        prop_assert!(known, "{:?}\n{}", args, run.masked_output());
        let silent = run.code != 0 && run.code != 1 && run.err.is_empty();
        prop_assert!(!silent, "{:?} failed without a word: {}", args, run.code);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// Runs all subcommands with every odd word as the only argument and as the value of every option.
#[test]
fn every_subcommand_survives_odd_words() {
    let home = Home::new();
    home.write("book.vcf", ANNA);
    home.ok(&["import", "book.vcf"]);
    let verbs = [
        "show",
        "find",
        "export",
        "log",
        "undo",
        "remove",
        "edit",
        "add",
        "restore",
        "completions",
        "collections remove",
        "collections create",
        "collections index",
        "collections index contacts --index",
        "find --in",
        "find --sort",
        "find --fields",
        "find --limit",
        "find --sexp",
        "remove --query",
        "import --max-item",
        "measure generate contacts",
        "measure queries",
        "log -n",
    ];
    for verb in verbs {
        for odd in [
            "",
            " ",
            "-",
            "--",
            "/",
            "//",
            "uid:",
            "contacts/",
            "\u{0}x",
            "(",
            ")",
            "\"\"",
            "*",
            ":",
            "=",
            "-",
            "💣",
            "a\nb",
            "\u{202e}x",
            "none",
            "-1",
        ] {
            if odd.contains('\0') {
                continue; // No argument can hold it.
            }
            let mut args: Vec<&str> = verb.split(' ').collect();
            args.push(odd);
            let run = home.finish(home.command(&args).env("EDITOR", "true").output().unwrap());
            assert!((0..=5).contains(&run.code), "{args:?}: {}", run.masked_output());
        }
    }
}

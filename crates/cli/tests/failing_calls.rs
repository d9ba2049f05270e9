//! Calls of the system that fail once or for good: the message names the cause, and the changes
//! that were committed before the failure.
//!
//! `torture/preload/fault.c` makes the calls fail; `torture/run.py io-errors` tries every call of
//! every command.

use crate::test_home::{Home, Run, left_out};
use std::path::{Path, PathBuf};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../torture/preload/fault.c");
const EIO: i32 = 5;
const EDQUOT: i32 = 122;

/// Builds the library that makes calls fail and sends signals. Without a C compiler, the test with
/// this name is left out.
pub fn fault_library(home: &Home, test: &str) -> Option<PathBuf> {
    let library = home.work("fault.so");
    let compiler = home
        .program("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(SOURCE)
        .args(["-ldl", "-lpthread"])
        .output();
    if !compiler.is_ok_and(|run| run.status.success()) {
        left_out(test, "the library that makes calls fail cannot be built");
        return None;
    }
    Some(library)
}

/// Calls in the data directory that fail.
struct Fault<'a> {
    /// The letters of the calls, see `fault.c`.
    calls: &'a str,
    /// The number of the first call that fails.
    at: u64,
    error: i32,
    is_once: bool,
}

/// Runs a command while calls fail. The last value is whether one of them was made.
fn run_with_fault(home: &Home, library: &Path, args: &[&str], fault: &Fault) -> (Run, bool) {
    let count = home.work("count");
    let _none = std::fs::remove_file(&count);
    let mut command = home.command(args);
    command
        .env("LD_PRELOAD", library)
        .env("TORTURE_ROOT", home.data())
        .env("TORTURE_CALLS", fault.calls)
        .env("TORTURE_AT", fault.at.to_string())
        .env("TORTURE_ERRNO", fault.error.to_string())
        .env("TORTURE_COUNT", &count);
    if fault.is_once {
        command.env("TORTURE_ONCE", "1");
    }
    let run = home.finish(command.output().unwrap());
    let calls: u64 = std::fs::read_to_string(&count).unwrap().trim().parse().unwrap();
    (run, calls > fault.at)
}

#[test]
fn a_store_that_cannot_be_made_names_the_cause() {
    let home = Home::new();
    let Some(library) = fault_library(&home, "stores that cannot be made") else { return };
    let mut failed = 0;
    for at in 0.. {
        let _none = std::fs::remove_dir_all(home.data());
        let fault = Fault { calls: "wstorulmp", at, error: EDQUOT, is_once: true };
        let (run, was_made) =
            run_with_fault(&home, &library, &["collections", "create", "a"], &fault);
        if !was_made {
            break;
        }
        let is_named = run.stderr().contains("quota");
        assert!(run.code == 0 || is_named, "call {at}: {}", run.masked_output());
        failed += u32::from(run.code != 0);
    }
    assert!(failed > 20, "{failed} calls");
}

#[test]
fn an_unreadable_mark_of_the_lock_is_no_failure() {
    let home = Home::with_book();
    let Some(library) = fault_library(&home, "unreadable marks") else { return };
    let (mut calls, mut marks) = (0, 0);
    loop {
        let fault = Fault { calls: "R", at: calls, error: EIO, is_once: true };
        let (run, was_made) =
            run_with_fault(&home, &library, &["add", "Lunch 2026-03-06 12:00"], &fault);
        if !was_made {
            break;
        }
        let message = run.stderr();
        assert!(!message.contains("data.lock"), "call {calls}: {message}");
        marks += u32::from(run.code == 0);
        calls += 1;
    }
    assert!(marks > 0 && calls > 5, "{marks} of {calls} commands succeeded");
    home.assert_store_is_sound();
}

#[test]
fn an_import_that_fails_names_the_batches_that_it_made() {
    let home = Home::new();
    let Some(library) = fault_library(&home, "imports that fail") else { return };
    home.generate("book.vcf", 60, 5);
    let (mut partial, mut complete) = (0, false);
    for at in (0..).step_by(13) {
        let _none = std::fs::remove_dir_all(home.data());
        let fault = Fault { calls: "ws", at, error: EIO, is_once: false };
        let (run, was_made) =
            run_with_fault(&home, &library, &["import", "book.vcf", "--batch", "10"], &fault);
        if !was_made {
            complete = true;
            break;
        }
        let added = home.run(&["find", "--count"]).stdout();
        if run.code != 0 && !matches!(added.trim(), "" | "0") {
            let message = run.stderr();
            // A batch whose sync failed may be there or not.
            let is_unknown = message.contains("the change may have been committed");
            let is_named = message.contains("changes made before are committed as operation ");
            assert!(is_named || is_unknown, "call {at}: {message}");
            partial += u32::from(is_named);
        }
    }
    assert!(partial > 0 && complete, "{partial} imports were made in part");
}

#[test]
fn a_salvage_from_a_failing_disk_names_the_error_and_the_missing() {
    let home = Home::with_book();
    let Some(library) = fault_library(&home, "salvages from failing disks") else { return };
    home.generate("book.vcf", 60, 5);
    home.run(&["import", "book.vcf"]);
    let (mut partial, mut complete) = (0, false);
    for at in (0..).step_by(4) {
        let saved = home.work("saved.db");
        let _none = std::fs::remove_file(&saved);
        let fault = Fault { calls: "R", at, error: EIO, is_once: false };
        let (run, was_made) =
            run_with_fault(&home, &library, &["salvage", "saved.db", "--format", "json"], &fault);
        if !was_made {
            complete = run.code == 0;
            break;
        }
        let message = run.stderr();
        let is_named = message.contains("data.db") && message.contains("(os error 5)");
        assert!(run.code == 0 || is_named, "call {at}: {message}");
        if message.contains("cannot read all of the store") {
            assert_eq!(run.code, 4, "call {at}: {message}");
            assert!(message.contains("missing: "), "call {at}: {message}");
            assert!(run.stdout().contains("the disk failed to read"), "call {at}");
            partial += 1;
        }
    }
    assert!(partial > 2 && complete, "{partial} salvages were partial");
}

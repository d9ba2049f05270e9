//! Several processes use one store: writers take turns, a small change gets in during a large
//! import, and a suspended reader blocks nothing.

use crate::test_home::{Home, cards, components};
use std::io::{BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn two_imports_at_once() {
    let home = Home::new();
    let one = home.generate("one.vcf", 600, 1);
    let two = home.generate("two.vcf", 600, 2);
    let start = |file: &str| home.spawn(&mut home.command(&["import", file, "--batch", "50"]));
    let running = [start("one.vcf"), start("two.vcf")];
    for child in running {
        let run = home.finish(child.wait_with_output().unwrap());
        assert_eq!(run.code, 0, "{}", run.masked_output());
    }
    home.assert_store_is_sound();
    let mut both = std::fs::read(one).unwrap();
    both.extend(std::fs::read(two).unwrap());
    assert!(cards(&home.run(&["export", "contacts"]).out) == cards(&both), "the export differs");
}

#[test]
fn the_same_file_twice_at_once() {
    let home = Home::new();
    let file = home.generate("one.vcf", 600, 3);
    let start = || home.spawn(&mut home.command(&["import", "one.vcf", "--batch", "50"]));
    for child in [start(), start()] {
        let run = home.finish(child.wait_with_output().unwrap());
        assert_eq!(run.code, 0, "{}", run.masked_output());
    }
    home.assert_store_is_sound();
    let file = std::fs::read(file).unwrap();
    assert!(cards(&home.run(&["export", "contacts"]).out) == cards(&file), "the export differs");
}

/// Two calendars are imported into one collection. For each UID one has the series, the other the
/// overrides.
#[test]
fn two_calendars_at_once() {
    let home = Home::new();
    let whole = std::fs::read(home.generate_calendar("whole.ics", 600, 8)).unwrap();
    let all = components(&whole);
    let is_detached = |item: &&Vec<u8>| item.windows(13).any(|part| part == b"RECURRENCE-ID");
    let (changed, series): (Vec<_>, Vec<_>) = all.iter().partition(is_detached);
    assert!(!changed.is_empty(), "no occurrence is changed");
    for (name, items) in [("series.ics", series), ("changed.ics", changed)] {
        let items: Vec<u8> = items.into_iter().flatten().copied().collect();
        home.write(
            name,
            [b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n", &*items, b"END:VCALENDAR\r\n"].concat(),
        );
    }
    let start = |file: &str| {
        home.spawn(&mut home.command(&["import", file, "--batch", "10", "--into", "mine"]))
    };
    for child in [start("series.ics"), start("changed.ics")] {
        let run = home.finish(child.wait_with_output().unwrap());
        assert_eq!(run.code, 0, "{}", run.masked_output());
    }
    home.assert_store_is_sound();
    assert!(components(&home.run(&["export", "mine"]).out) == all, "the export differs");
}

/// The import's input ends only after the small changes are done, so that they must be made between
/// its batches. No clock is involved.
#[test]
fn an_addition_gets_its_turn() {
    let home = Home::new();
    let mut import = home.spawn(
        home.command(&["import", "-", "--batch", "20", "--format", "json"]).stdin(Stdio::piped()),
    );
    let mut stdin = import.stdin.take().unwrap();
    let enough = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&enough);
    let feeder = std::thread::spawn(move || {
        let mut fed = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            let card =
                format!("BEGIN:VCARD\nVERSION:4.0\nUID:fed-{fed}\nFN:Fed {fed}\nEND:VCARD\n");
            stdin.write_all(card.as_bytes()).unwrap();
            fed += 1;
        }
        // More than pipes and readers buffer, so that batches follow the last addition.
        for last in 0..200_000 / 50 {
            let card = format!("BEGIN:VCARD\nVERSION:4.0\nUID:last-{last}\nFN:L\nEND:VCARD\n");
            stdin.write_all(card.as_bytes()).unwrap();
        }
        fed + 200_000 / 50
    });
    let bell = home.data().join("data.notify");
    let last_batch =
        || -> Option<u64> { std::fs::read_to_string(&bell).ok()?.split(' ').next()?.parse().ok() };
    while last_batch() < Some(3) {
        assert!(import.try_wait().unwrap().is_none(), "the import ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for number in 0..3 {
        let card = format!("BEGIN:VCARD\nVERSION:4.0\nUID:small-{number}\nFN:Small\nEND:VCARD\n");
        let run = home.run_with(&["add", "--into", "small"], card.as_bytes());
        assert_eq!(run.code, 0, "{}", run.masked_output());
    }
    enough.store(true, Ordering::Relaxed);
    let fed = feeder.join().unwrap();
    let run = home.finish(import.wait_with_output().unwrap());
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let summary: serde_json::Value = serde_json::from_str(run.stdout().trim()).unwrap();
    assert_eq!(summary["added"], fed);
    let small = home.json(&["find", "--in", "small", "--sort", "none"]);
    let last =
        home.json(&["find", "--in", "contacts", "full_name:L", "--limit", "1", "--sort", "-uid"]);
    let last = last[0]["seq"].as_u64().unwrap();
    assert_eq!(small.len(), 3);
    for item in &small {
        let seq = item["seq"].as_u64().unwrap();
        assert!(seq < last, "added by batch {seq}, after the import's last, {last}");
    }
    home.assert_store_is_sound();
}

/// The reader's pipe is full and not read while a large import runs.
#[test]
fn a_sleeping_reader_does_not_let_the_log_grow() {
    const LIMIT: u64 = 16 << 20;
    let home = Home::new();
    home.generate("first.vcf", 1500, 4);
    home.generate("second.vcf", 9000, 5);
    home.ok(&["import", "first.vcf"]);
    let mut sleeper = home.spawn(&mut home.command(&["find", "--format", "json"]));
    // The reader is within its answer: the first bytes have arrived, the rest does not fit.
    let mut answer = BufReader::with_capacity(1, sleeper.stdout.take().unwrap());
    let mut first = [0];
    answer.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"{");
    let mut import = home.spawn(&mut home.command(&["import", "second.vcf"]));
    let wal = home.data().join("data.db-wal");
    let mut largest = 0;
    let mut written = 0;
    while import.try_wait().unwrap().is_none() {
        largest = largest.max(std::fs::metadata(&wal).map_or(0, |file| file.len()));
        written = std::fs::metadata(home.data().join("data.db")).map_or(0, |file| file.len());
        assert!(sleeper.try_wait().unwrap().is_none(), "the reader was not held back");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let run = home.finish(import.wait_with_output().unwrap());
    assert_eq!(run.code, 0, "{}", run.masked_output());
    largest = largest.max(std::fs::metadata(&wal).map_or(0, |file| file.len()));
    assert!(written > LIMIT, "only {written} bytes were written: the test shows nothing");
    assert!(largest <= LIMIT, "the write-ahead log grew to {largest} bytes");
    let mut rest = Vec::new();
    answer.read_to_end(&mut rest).unwrap();
    assert!(sleeper.wait().unwrap().success());
    assert!(rest.ends_with(b"}\n"));
}

/// A reader that closes the pipe is no failure, however early.
#[test]
fn a_reader_that_leaves() {
    let home = Home::new();
    home.generate("many.vcf", 1500, 6);
    home.ok(&["import", "many.vcf"]);
    for verb in [
        "find",
        "find --format json",
        "find --format raw",
        "export contacts",
        "man",
        "--help",
        "measure generate contacts 100000",
        "completions bash",
        "fields",
        "log",
    ] {
        let script = format!("{{ larder {verb}; echo $? >code; }} | head -n 1 >line; cat code");
        let run = home.shell(&script);
        assert_eq!(run.masked_output(), "0\n", "larder {verb} | head -n 1");
        assert!(!std::fs::read(home.work("line")).unwrap().is_empty(), "larder {verb}");
        let run = home.shell(&format!("{{ larder {verb}; echo $? >code; }} | true; cat code"));
        assert_eq!(run.masked_output(), "0\n", "larder {verb} | true");
    }
}

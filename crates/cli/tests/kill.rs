//! Killed in the middle of writing, an import of a book or a calendar leaves whole batches, a sound
//! store, and a second import that completes it.
//!
//! The process is killed at random moments after the write lock's mark says that a batch is being
//! written, so that most kills hit in mid-transaction. One store takes many kills: each import goes
//! on where the last one ended. `LARDER_KILL_POINTS` says how many kills there are,
//! `LARDER_KILL_SEED` repeats a run.

use crate::home::{Home, Random, cards, components, times};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const ITEMS: u64 = 1000;
const BATCH: u64 = 40;
/// No import of this size takes so long, not even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is imported: a file, where its items go, and how they are told apart.
struct Input {
    file: &'static str,
    collection: &'static str,
    items: fn(&[u8]) -> Vec<Vec<u8>>,
    make: fn(&Home),
}

const BOOK: Input = Input {
    file: "many.vcf",
    collection: "contacts",
    items: cards,
    make: |home| drop(home.generate("many.vcf", ITEMS, 7)),
};

/// With zones, series and occurrences that are changed in other batches than their series came in.
const CALENDAR: Input = Input {
    file: "many.ics",
    collection: "Calendar",
    items: components,
    make: |home| drop(home.generate_calendar("many.ics", ITEMS, 7)),
};

#[test]
fn killed_at_random_writes() {
    killed(&BOOK, times("LARDER_KILL_POINTS", 50));
}

#[test]
fn killed_at_random_writes_of_a_calendar() {
    killed(&CALENDAR, times("LARDER_KILL_POINTS", 50));
}

fn killed(input: &Input, points: u64) {
    let seed = times("LARDER_KILL_SEED", u64::from(std::process::id()));
    eprintln!("{}: LARDER_KILL_SEED={seed} repeats this run", input.file);
    let mut random = Random(seed);
    let mut home = fresh(input);
    let mut written = measured(&home, input);
    home = fresh(input);
    let (mut killed, mut in_mid_write) = (0, 0);
    while killed < points {
        let batches = random.below(4);
        match kill(&home, input, batches, &mut random) {
            Some(mid_write) => {
                killed += 1;
                in_mid_write += u64::from(mid_write);
                whole(&home, seed, killed);
            }
            None => {
                complete(&home, input);
                home = fresh(input);
                written += ITEMS;
            }
        }
    }
    second_import_completes(&home, input);
    eprintln!("{killed} kills, {in_mid_write} in mid-write, over {written} items");
    assert!(in_mid_write * 2 > killed, "only {in_mid_write} of {killed} kills hit in mid-write");
}

fn fresh(input: &Input) -> Home {
    let home = Home::new();
    (input.make)(&home);
    home
}

/// One import that is left alone: what the others have to come to.
fn measured(home: &Home, input: &Input) -> u64 {
    import(home, input).wait().unwrap();
    complete(home, input);
    ITEMS
}

fn import(home: &Home, input: &Input) -> Child {
    let args = ["import", input.file, "--batch", &BATCH.to_string(), "--quiet"];
    home.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts an import and kills it some time after it began to write its batch number `batches`
/// (counted from this start). Was it writing when it died? `None`: it had ended before.
fn kill(home: &Home, input: &Input, batches: u64, random: &mut Random) -> Option<bool> {
    let mut child = import(home, input);
    let lock = home.data().join("data.lock");
    let bell = home.data().join("data.notify");
    let began = Instant::now();
    let first = number(&bell);
    // The mark of a writer that was killed before stays until the lock is taken again.
    let stale = marked(&lock);
    let mut moment = None;
    loop {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        assert!(began.elapsed() < PATIENCE, "the import does not go on");
        let writing = marked(&lock) && (!stale || number(&bell) > first);
        if writing && number(&bell) >= first + batches {
            let wait = Duration::from_micros(random.below(8_000));
            moment.get_or_insert_with(|| Instant::now() + wait);
        }
        if moment.is_some_and(|moment| Instant::now() >= moment)
            && (marked(&lock) || random.below(20) == 0)
        {
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Some(marked(&lock))
}

fn marked(lock: &Path) -> bool {
    std::fs::metadata(lock).is_ok_and(|file| file.len() > 0)
}

/// The number in the bell; 0 where there is none yet.
fn number(bell: &Path) -> u64 {
    std::fs::read_to_string(bell).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The store opens, is sound, and every batch in it is whole.
fn whole(home: &Home, seed: u64, kill: u64) {
    let run = home.run(&["check"]);
    if run.code == 1 && run.stderr().contains("there is no store") {
        return; // Killed before the first transaction.
    }
    assert!(run.code == 0, "kill {kill} of seed {seed}:\n{}", run.shown());
    for items in batches(home) {
        assert!(
            items.is_multiple_of(BATCH),
            "kill {kill} of seed {seed}: a batch of {items} items"
        );
    }
}

/// How many items each batch of the store has.
fn batches(home: &Home) -> Vec<u64> {
    let reader = larder_store::Reader::open(&home.data()).unwrap();
    let mut batches = Vec::new();
    let sql = "SELECT count(*) FROM item GROUP BY seq ORDER BY seq";
    reader
        .for_each_sql_row(sql, &[], &mut |row| {
            batches.push(row.integer(0).unsigned_abs());
            true
        })
        .unwrap();
    batches
}

fn second_import_completes(home: &Home, input: &Input) {
    let run = home.run(&["import", input.file, "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    complete(home, input);
}

/// The store holds the file's items, byte for byte, and nothing else.
fn complete(home: &Home, input: &Input) {
    home.sound();
    let exported = (input.items)(&home.run(&["export", input.collection]).out);
    let original = (input.items)(&std::fs::read(home.work(input.file)).unwrap());
    assert!(
        exported == original,
        "the export differs: {} items of {}",
        exported.len(),
        original.len()
    );
}

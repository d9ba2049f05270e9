//! An import that is killed while writing leaves complete batches and a valid store, and a second
//! import completes it.
//!
//! The process is killed at random moments while the lock file says that a batch is being written,
//! so that most kills hit an open transaction. One store takes many kills: each import continues
//! where the last one ended. `LARDER_KILL_POINTS` is the number of kills, 1,000 in `make torture`;
//! `LARDER_KILL_SEED` repeats a run.

use crate::test_home::{Home, Random, cards, components, times};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const ITEMS: u64 = 1000;
const BATCH: u64 = 40;
/// A limit for imports of this size, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The input: a file, the collection, and the function that splits it into items.
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

/// Includes zones, series, and overrides in other batches than their series.
const CALENDAR: Input = Input {
    file: "many.ics",
    collection: "Calendar",
    items: components,
    make: |home| drop(home.generate_calendar("many.ics", ITEMS, 7)),
};

#[test]
fn killed_at_random_writes() {
    check_kills(&BOOK, times("LARDER_KILL_POINTS", 20));
}

#[test]
fn killed_at_random_writes_of_a_calendar() {
    check_kills(&CALENDAR, times("LARDER_KILL_POINTS", 20));
}

fn check_kills(input: &Input, points: u64) {
    let seed = times("LARDER_KILL_SEED", u64::from(std::process::id()));
    eprintln!("{}: LARDER_KILL_SEED={seed} repeats this run", input.file);
    let mut random = Random(seed);
    let mut home = create_home(input);
    let mut written = count_batches(&home, input);
    home = create_home(input);
    let (mut kill_count, mut in_mid_write) = (0, 0);
    while kill_count < points {
        let batches = random.next_below(4);
        match kill(&home, input, batches, &mut random) {
            Some(mid_write) => {
                kill_count += 1;
                in_mid_write += u64::from(mid_write);
                check_batches(&home, seed, kill_count);
            }
            None => {
                check_items(&home, input);
                home = create_home(input);
                written += ITEMS;
            }
        }
    }
    second_import_completes(&home, input);
    eprintln!("{kill_count} kills, {in_mid_write} in mid-write, over {written} items");
    assert!(
        in_mid_write * 2 > kill_count,
        "only {in_mid_write} of {kill_count} kills hit in mid-write"
    );
}

fn create_home(input: &Input) -> Home {
    let home = Home::new();
    (input.make)(&home);
    home
}

/// Runs one import without a kill. Returns its number of batches.
fn count_batches(home: &Home, input: &Input) -> u64 {
    import(home, input).wait().unwrap();
    check_items(home, input);
    ITEMS
}

fn import(home: &Home, input: &Input) -> Child {
    let args = ["import", input.file, "--batch", &BATCH.to_string(), "--quiet"];
    home.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts an import and kills it some time after it began to write its batch number `batches`,
/// counted from this start. Returns whether it was writing when it died, or `None` if it had ended
/// before.
fn kill(home: &Home, input: &Input, batches: u64, random: &mut Random) -> Option<bool> {
    let mut child = import(home, input);
    let lock = home.data().join("data.lock");
    let notify_file = home.data().join("data.notify");
    let began = Instant::now();
    let first = number(&notify_file);
    // The mark of a killed writer stays until the lock is taken again.
    let stale = is_writing(&lock);
    let mut moment = None;
    loop {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        assert!(began.elapsed() < PATIENCE, "the import does not go on");
        let writing = is_writing(&lock) && (!stale || number(&notify_file) > first);
        if writing && number(&notify_file) >= first + batches {
            let wait = Duration::from_micros(random.next_below(8_000));
            moment.get_or_insert_with(|| Instant::now() + wait);
        }
        if moment.is_some_and(|moment| Instant::now() >= moment)
            && (is_writing(&lock) || random.next_below(20) == 0)
        {
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Some(is_writing(&lock))
}

fn is_writing(lock: &Path) -> bool {
    std::fs::metadata(lock).is_ok_and(|file| file.len() > 0)
}

/// Returns the number in the notify file, or 0 if there is none yet.
fn number(notify_file: &Path) -> u64 {
    let text = std::fs::read_to_string(notify_file).unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Checks that the store opens without damage and has only complete batches.
fn check_batches(home: &Home, seed: u64, kill: u64) {
    let run = home.run(&["check"]);
    if run.code == 1 && run.stderr().contains("no store in") {
        return; // Killed before the first transaction.
    }
    assert!(run.code == 0, "kill {kill} of seed {seed}:\n{}", run.masked_output());
    for items in batches(home) {
        assert!(
            items.is_multiple_of(BATCH),
            "kill {kill} of seed {seed}: a batch of {items} items"
        );
    }
}

/// Returns the number of items of each batch in the store.
fn batches(home: &Home) -> Vec<u64> {
    let reader = larder_store::Reader::open(&home.data()).unwrap();
    let mut batches = BTreeMap::new();
    for collection in reader.collections().list().unwrap() {
        for item in reader.items().list_after(&collection, None, usize::MAX >> 1).unwrap() {
            *batches.entry(item.seq).or_default() += 1;
        }
    }
    batches.into_values().collect()
}

fn second_import_completes(home: &Home, input: &Input) {
    let run = home.run(&["import", input.file, "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.masked_output());
    check_items(home, input);
}

/// Checks that the store holds exactly the file's items, byte for byte.
fn check_items(home: &Home, input: &Input) {
    home.assert_store_is_sound();
    let exported = (input.items)(&home.run(&["export", input.collection]).out);
    let original = (input.items)(&std::fs::read(home.work(input.file)).unwrap());
    assert!(
        exported == original,
        "the export differs: {} items of {}",
        exported.len(),
        original.len()
    );
}

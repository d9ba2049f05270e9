//! Killed in the middle of writing, an import leaves whole batches, a sound store, and a second import that
//! completes it.
//!
//! The process is killed at random moments after the write lock's mark says that a batch is being written, so
//! that most kills hit in mid-transaction. One store takes many kills: each import goes on where the last one
//! ended. `LARDER_KILL_POINTS` says how many kills there are, `LARDER_KILL_SEED` repeats a run.

use crate::home::{Home, Random, cards, times};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const CONTACTS: u64 = 1000;
const BATCH: u64 = 40;
/// No import of this size takes so long, not even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn killed_at_random_writes() {
    let points = times("LARDER_KILL_POINTS", 50);
    let seed = times("LARDER_KILL_SEED", u64::from(std::process::id()));
    eprintln!("killed_at_random_writes: LARDER_KILL_SEED={seed} repeats this run");
    let mut random = Random(seed);
    let mut home = fresh();
    let mut written = measured(&home);
    home = fresh();
    let (mut killed, mut in_mid_write) = (0, 0);
    while killed < points {
        let batches = random.below(4);
        match kill(&home, batches, &mut random) {
            Some(mid_write) => {
                killed += 1;
                in_mid_write += u64::from(mid_write);
                whole(&home, seed, killed);
            }
            None => {
                complete(&home);
                home = fresh();
                written += CONTACTS;
            }
        }
    }
    second_import_completes(&home);
    eprintln!("{killed} kills, {in_mid_write} in mid-write, over {written} contacts");
    assert!(in_mid_write * 2 > killed, "only {in_mid_write} of {killed} kills hit in mid-write");
}

fn fresh() -> Home {
    let home = Home::new();
    home.generate("many.vcf", CONTACTS, 7);
    home
}

/// One import that is left alone: what the others have to come to.
fn measured(home: &Home) -> u64 {
    import(home).wait().unwrap();
    complete(home);
    CONTACTS
}

fn import(home: &Home) -> Child {
    let args = ["import", "many.vcf", "--batch", &BATCH.to_string(), "--quiet"];
    home.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts an import and kills it some time after it began to write its batch number `batches` (counted from
/// this start). Was it writing when it died? `None`: it had ended before.
fn kill(home: &Home, batches: u64, random: &mut Random) -> Option<bool> {
    let mut child = import(home);
    let lock = home.data().join("lock");
    let bell = home.data().join("bell");
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
        .rows(sql, &[], &mut |row| {
            batches.push(row.integer(0).unsigned_abs());
            true
        })
        .unwrap();
    batches
}

fn second_import_completes(home: &Home) {
    let run = home.run(&["import", "many.vcf", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    complete(home);
}

/// The store holds the file's cards, byte for byte, and nothing else.
fn complete(home: &Home) {
    home.sound();
    let exported = cards(&home.run(&["export", "contacts"]).out);
    let original = cards(&std::fs::read(home.work("many.vcf")).unwrap());
    assert!(
        exported == original,
        "the export differs: {} cards of {}",
        exported.len(),
        original.len()
    );
}

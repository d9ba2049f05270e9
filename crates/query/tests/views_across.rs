//! Views on a store that another process writes: the property of `views` holds when the writer
//! ends, when it is killed, and when its notifications are not received.

use crate::book::Book;
use crate::views::{self, Client};
use crate::writer;
use larder_query::views::{Views, ViewsOptions};
use larder_store::{BatchChange, Kind, Store, StoreOptions};
use larder_time::civil::Instant;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::OnceCell;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant as Timer};

/// The environment variables of the writer, which is this program again: its store and its seed.
const DIR: &str = "LARDER_TEST_WRITER";
const SEED: &str = "LARDER_TEST_SEED";
/// The number of writes of a writer that is not killed.
const WRITES: usize = 40;

fn seeded_runner(seed: u8) -> TestRunner {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    TestRunner::new_with_rng(Config::default(), rng)
}

fn generate<T>(strategy: &impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    strategy.new_tree(runner).unwrap().current()
}

/// Runs as the writer.
fn run_writer(dir: &Path) {
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let store = Store::open(dir, &StoreOptions::default()).unwrap();
    let (mut book, mut runner) = (Book::with_store(store), seeded_runner(seed));
    for _ in 0..WRITES {
        writer::write(&mut book, &generate(&writer::store_action(), &mut runner));
    }
}

fn spawn_writer(book: &Book, test: &str, seed: u8) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("views_across::{test}")])
        .env(DIR, book.dir())
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Acts on the writer of a store after the views have read a batch of it.
type WriterAction<'a> = &'a dyn Fn(&Book, i64, &mut Child);

/// Opens views, and reads their events while another process writes. In the end each view must have
/// what a new query answers.
fn check(test: &str, seed: u8, before: &dyn Fn(&Book), act: WriterAction<'_>) {
    if let Some(dir) = std::env::var_os(DIR) {
        return run_writer(Path::new(&dir));
    }
    let book = writer::book();
    let clock = Arc::new(|| Instant::from_seconds_clamped(views::start()));
    let views =
        Views::open(&book.dir(), ViewsOptions { clock, ..ViewsOptions::default() }).unwrap();
    let mut runner = seeded_runner(seed);
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..12 {
        let query = generate(&views::test_query(), &mut runner);
        let pace = generate(&views::pace(), &mut runner);
        clients.extend(Client::open(&views, &query, views::start(), pace));
    }
    before(&book);
    let mut child = spawn_writer(&book, test, seed);
    let mut rounds = 0;
    while child.try_wait().unwrap().is_none() {
        rounds += 1;
        let count = clients.len();
        // One view at a time, so that most of them lag.
        clients[rounds % count].wait();
        act(&book, views.current_seq(), &mut child);
    }
    // Not only its number: after a restore, the last batch may have a smaller one than the batch
    // that the views have read.
    let last = book.reader().changes().stamp().unwrap();
    let began = Timer::now();
    while views.current_state() != last {
        let late = began.elapsed() > Duration::from_secs(20);
        assert!(!late, "{:?} instead of {last:?}", views.current_state());
        clients[0].wait();
    }
    for client in &mut clients {
        client.read_events();
        client.check(&book.reader(), views::start());
    }
}

#[test]
fn views_follow_a_writer_to_its_end() {
    for seed in 0..3 {
        check("views_follow_a_writer_to_its_end", seed, &|_| {}, &|_, _, _| {});
    }
}

/// A restore may leave fewer batches than the views have read.
#[test]
fn the_state_of_views_tells_a_restored_store_from_an_older_one() {
    let mut book = writer::book();
    let options = ViewsOptions { watch: false, ..ViewsOptions::default() };
    let views = Views::open(&book.dir(), options).unwrap();
    let backup = book.backup_path();
    book.store.backup(&backup).unwrap();
    book.apply(vec![BatchChange::CreateCollection("new".into(), Kind::Contact)]);
    let seen = views.catch_up().unwrap();
    book.store.restore(&backup).unwrap();
    let restored = book.reader().changes().stamp().unwrap();
    assert!(restored.seq < seen && views.current_seq() == seen);
    assert_ne!(views.current_state(), restored);
    assert_eq!(views.catch_up().unwrap(), restored.seq);
    assert_eq!(views.current_state(), restored);
}

/// The writer may die between a commit and its notification.
#[test]
fn views_follow_a_writer_that_is_killed() {
    for seed in 3..9 {
        check("views_follow_a_writer_that_is_killed", seed, &|_| {}, &|_, seen, child| {
            if seen > 4 + 2 * i64::from(seed) {
                child.kill().unwrap();
            }
        });
    }
}

/// The last batch has a smaller number than the views have read, and they may not know it yet.
#[test]
fn views_follow_a_writer_that_is_killed_after_a_restore() {
    for seed in [4, 9, 11, 12] {
        let epoch = OnceCell::new();
        let test = "views_follow_a_writer_that_is_killed_after_a_restore";
        check(
            test,
            seed,
            &|book| drop(epoch.set(book.reader().epoch().unwrap())),
            &|book, _, child| {
                if book.reader().epoch().unwrap() != *epoch.get().unwrap() {
                    child.kill().unwrap();
                }
            },
        );
    }
}

/// The notify file was replaced, so the views learn of a commit by the poll once a second.
#[test]
fn views_follow_a_writer_without_notifications() {
    check(
        "views_follow_a_writer_without_notifications",
        9,
        &|book| std::fs::remove_file(book.dir().join("data.notify")).unwrap(),
        &|_, _, _| {},
    );
}

//! Views on a store that another process writes: the property of `views` holds when the writer
//! ends, when it is killed, and when its notifications are not received.

use crate::book::Book;
use crate::views::{self, Client};
use crate::writer;
use larder_query::views::{Views, ViewsOptions};
use larder_store::{Store, StoreOptions};
use larder_time::civil::Instant;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
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

/// Acts on the writer after a batch of it was seen.
type WriterAction<'a> = &'a dyn Fn(i64, &mut Child);

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
        act(views.current_seq(), &mut child);
    }
    let last = book.reader().changes().last_seq().unwrap();
    let began = Timer::now();
    while views.current_seq() < last {
        assert!(began.elapsed() < Duration::from_secs(20), "{} of {last}", views.current_seq());
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
        check("views_follow_a_writer_to_its_end", seed, &|_| {}, &|_, _| {});
    }
}

/// The writer may die between a commit and its notification.
#[test]
fn views_follow_a_writer_that_is_killed() {
    for seed in 3..9 {
        check("views_follow_a_writer_that_is_killed", seed, &|_| {}, &|seen, child| {
            if seen > 4 + 2 * i64::from(seed) {
                child.kill().unwrap();
            }
        });
    }
}

/// The notify file was replaced, so the views learn of a commit by the poll once a second.
#[test]
fn views_follow_a_writer_without_notifications() {
    check(
        "views_follow_a_writer_without_notifications",
        9,
        &|book| std::fs::remove_file(book.dir().join("data.notify")).unwrap(),
        &|_, _| {},
    );
}

//! Views whose store is written by another process, with their own thread waiting for the bell: the
//! same property as in `views`, when the writer ends, when it is killed, and when nobody hears it
//! ring.

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

/// Where the writer, which is this program again, finds its store and its seed.
const DIR: &str = "LARDER_TEST_WRITER";
const SEED: &str = "LARDER_TEST_SEED";
/// So many deeds a writer does, if it comes that far.
const DEEDS: usize = 40;

fn random(seed: u8) -> TestRunner {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    TestRunner::new_with_rng(Config::default(), rng)
}

fn some<T>(of: &impl Strategy<Value = T>, random: &mut TestRunner) -> T {
    of.new_tree(random).unwrap().current()
}

/// The writer's life.
fn write(dir: &Path) {
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let store = Store::open(dir, &StoreOptions::default()).unwrap();
    let (mut book, mut random) = (Book::of_store(store), random(seed));
    for _ in 0..DEEDS {
        writer::write(&mut book, &some(&writer::deed(), &mut random));
    }
}

fn writer_of(book: &Book, test: &str, seed: u8) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("views_across::{test}")])
        .env(DIR, book.dir())
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// What happens to the writer when this batch of it was seen.
type Fate<'a> = &'a dyn Fn(i64, &mut Child);

/// Opens views, and looks on while another process writes.
fn check(test: &str, seed: u8, before: &dyn Fn(&Book), fate: Fate<'_>) {
    if let Some(dir) = std::env::var_os(DIR) {
        return write(Path::new(&dir));
    }
    let book = writer::book();
    let clock = Arc::new(|| Instant::from_seconds_clamped(views::start()));
    let views =
        Views::open(&book.dir(), ViewsOptions { clock, ..ViewsOptions::default() }).unwrap();
    let mut random = random(seed);
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..12 {
        let asked = some(&views::asked(), &mut random);
        let following = some(&views::following(), &mut random);
        clients.extend(Client::open(&views, &asked, views::start(), following));
    }
    before(&book);
    let mut child = writer_of(&book, test, seed);
    let mut rounds = 0;
    while child.try_wait().unwrap().is_none() {
        rounds += 1;
        let count = clients.len();
        // One after the other, so that most of them do not keep up.
        clients[rounds % count].wait();
        fate(views.current_seq(), &mut child);
    }
    let last = book.reader().last_seq().unwrap();
    let began = Timer::now();
    while views.current_seq() < last {
        assert!(began.elapsed() < Duration::from_secs(20), "{} of {last}", views.current_seq());
        clients[0].wait();
    }
    for client in &mut clients {
        client.listen();
        client.check(&book.reader(), views::start());
    }
}

#[test]
fn it_comes_to_its_end() {
    for seed in 0..3 {
        check("it_comes_to_its_end", seed, &|_| {}, &|_, _| {});
    }
}

/// At some moment, so perhaps between a commit and the bell.
#[test]
fn it_is_killed() {
    for seed in 3..9 {
        check("it_is_killed", seed, &|_| {}, &|seen, child| {
            if seen > 4 + 2 * i64::from(seed) {
                child.kill().unwrap();
            }
        });
    }
}

/// The writer rings another bell than the one that the views hear, as one that is killed rings
/// none: the look once a second is all that there is.
#[test]
fn nobody_hears_it() {
    check(
        "nobody_hears_it",
        9,
        &|book| std::fs::remove_file(book.dir().join("data.notify")).unwrap(),
        &|_, _| {},
    );
}

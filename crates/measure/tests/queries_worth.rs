//! The replay: small logs by hand, and any log against one that was made with the other budget.

use crate::day::{Process, parse_query_line};
use crate::queries::log;
use larder_measure::query_log::cache_simulation::{CacheReport, UNLIMITED_BYTES};
use larder_measure::query_log::read_log;
use proptest::prelude::*;

fn worth(log: &str, budget: u64) -> CacheReport {
    read_log(&mut log.as_bytes(), Some(budget)).unwrap().cache
}

/// How many answers a budget of 3000 bytes gives to a log that was made without a cache; each
/// answer has a thousand.
fn check(lines: &str, expect: u64) {
    let lines = format!("0 1 start budget=0\n{lines}");
    let it = worth(&log(&lines), 3000);
    let trial = it.trials.iter().find(|trial| trial.budget_bytes == 3000).unwrap();
    assert_eq!(trial.hits, expect, "{lines}");
    assert_eq!(it.trials[0].hits, 0, "no budget gives nothing");
    assert!(trial.peak_bytes <= 3000);
}

#[test]
fn what_is_asked_again() {
    check("1 1 query\n2 1 query\n3 1 query", 2);
    check("1 1 query\n2 2 query", 0);
    check("1 1 query\n2 1 query kind=task\n3 1 query collection=Home\n4 1 query query=(x)", 0);
    // A process that begins again has nothing.
    check("1 1 query\n2 1 start budget=0\n3 1 query", 0);
    check("1 1 query\n2 1 end\n3 1 query", 0);
    // Whoever asks, and whether it is open or closed.
    check(
        "1 1 open view=1\n2 1 query\n3 1 open view=2\n4 1 close view=1\n5 1 close view=2\n6 1 query",
        3,
    );
    // A view that wants no answer asks for none.
    check("1 1 open view=1 answer=0 bytes=0\n2 1 query", 0);
    // One that has to begin anew does.
    check("1 1 open view=1\n2 1 change of=[[null,null]]\n3 1 fresh view=1 why=zones\n4 1 query", 1);
}

#[test]
fn what_goes_stale() {
    let change =
        |of: &str, expect| check(&format!("1 1 query\n2 1 change of={of}\n3 1 query"), expect);
    change(r#"[["Work","event"]]"#, 0);
    change(r#"[["Work","task"]]"#, 1);
    change(r#"[["Home","event"]]"#, 1);
    change(r#"[["Home","event"],["Work","event"]]"#, 0);
    change("[]", 1);
    change(r#"[["Work",null]]"#, 0);
    change(r#"[[null,"event"]]"#, 0);
    change(r#"[[null,"task"]]"#, 1);
    change("[[null,null]]", 0);
    let any = |of: &str, expect| {
        let query = "query kind=null collection=null";
        check(&format!("1 1 {query}\n2 1 change of={of}\n3 1 {query}"), expect);
    };
    any(r#"[["Work","event"]]"#, 0);
    any("[]", 1);
    // Other processes read the log of the store by themselves.
    check("1 1 query\n2 2 change of=[[\"Work\",\"event\"]]\n3 1 query", 1);
}

/// What the log's own cache keeps goes stale when the log says so, and not before.
#[test]
fn what_the_log_tells_of_going_stale() {
    let check = |lines: &str, expect: u64| {
        let it = worth(&log(&format!("0 1 start budget=2000\n{lines}")), 5000);
        let trial = it.trials.iter().find(|trial| trial.budget_bytes == 5000).unwrap();
        assert_eq!(trial.hits, expect, "{lines}");
    };
    let change = "2 1 change of=[[\"Work\",\"event\"]]";
    check(&format!("1 1 query\n{change}\n3 1 query from=cache"), 1);
    check(&format!("1 1 query\n1 1 drop answer=1 why=stale\n{change}\n3 1 query answer=2"), 0);
    // By the clock, too.
    check("1 1 query\n2 1 drop answer=1 why=stale\n3 1 query answer=2", 0);
    // Once it has dropped it for want of room, a change is all that is known.
    check("1 1 query\n1 1 drop answer=1 why=budget\n3 1 query answer=2", 1);
    check(&format!("1 1 query\n1 1 drop answer=1 why=budget\n{change}\n3 1 query answer=2"), 0);
    // What is too large for it was never kept.
    check(&format!("1 1 query bytes=2001\n{change}\n3 1 query answer=2"), 0);
    // It has it again.
    check(
        &format!(
            "1 1 query\n1 1 drop answer=1 why=budget\n1 1 query answer=2\n{change}\n3 1 query answer=2 from=shared"
        ),
        2,
    );
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    let four =
        "1 1 query query=(a)\n2 1 query query=(b)\n3 1 query query=(c)\n4 1 query query=(d)\n";
    check(&format!("{four}5 1 query query=(a)"), 0);
    check(&format!("{four}5 1 query query=(b)\n6 1 query query=(c)\n7 1 query query=(d)"), 3);
    let used =
        "1 1 query query=(a)\n2 1 query query=(b)\n3 1 query query=(c)\n4 1 query query=(a)\n";
    check(&format!("{used}5 1 query query=(d)\n6 1 query query=(a)\n7 1 query query=(b)"), 2);
    // What is too large is not kept, and makes no room.
    check(
        "1 1 query\n2 1 query query=(b) bytes=3001\n3 1 query\n4 1 query query=(b) bytes=3001",
        1,
    );
}

#[test]
fn what_is_saved() {
    let it =
        worth(&log("1 1 query us=700\n2 1 query from=cache us=2\n3 1 query from=cache us=3"), 9);
    assert_eq!(it.trials.last().unwrap().saved_us, 1400);
    assert_eq!((it.answers, it.hits, it.recorded), (3, 2, None));
    assert_eq!(it.smallest_sufficient_budget().unwrap().budget_bytes, 16 << 10);
}

#[derive(Debug, Clone)]
enum Act {
    Query(usize),
    Open(usize),
    Close(usize),
    Change(usize, usize),
}

const COLLECTIONS: [&str; 2] = ["Work", "Home"];
const KINDS: [&str; 2] = ["event", "contact"];

/// The same acts with a budget.
fn replay(acts: &[Act], budget: u64) -> Process {
    let mut process = Process::new(1, 0, budget);
    let question = |number: usize| {
        let collection = [None, Some(COLLECTIONS[0]), Some(COLLECTIONS[1])][number % 3];
        let kind = [None, Some(KINDS[0]), Some(KINDS[1])][number / 3 % 3];
        parse_query_line(
            &format!("(word \"{}\")", "x".repeat(1 + number % 4 * 30)),
            kind,
            collection,
        )
    };
    for (at, act) in acts.iter().enumerate() {
        let at = at as i64;
        match *act {
            Act::Query(number) => process.query(at, "find", &question(number)),
            Act::Open(number) => {
                process.open(at, "find", &question(number));
            }
            Act::Close(number) => {
                let views = process.views();
                if !views.is_empty() {
                    process.close(at, views[number % views.len()]);
                }
            }
            Act::Change(a, b) => process.change(at, COLLECTIONS[a], KINDS[b], 1, 2),
        }
    }
    process
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..30_usize).prop_map(Act::Query),
        4 => (0..30_usize).prop_map(Act::Open),
        4 => (0..9_usize).prop_map(Act::Close),
        1 => (0..2_usize, 0..2_usize).prop_map(|(a, b)| Act::Change(a, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A log that was made with one budget, played with another, gives what the same acts give with
    /// that one.
    #[test]
    fn a_replay_is_what_would_have_been(
        acts in prop::collection::vec(act(), 0..200),
        own in prop_oneof![Just(0_u64), 500..20_000_u64],
        other in 1..20_000_u64,
    ) {
        let log = replay(&acts, own);
        let it = worth(&log.log(), other);
        prop_assert_eq!(it.hits, log.hits());
        prop_assert_eq!(it.recorded.map(|trial| (trial.hits, trial.peak_bytes)), Some((log.hits(), log.peak)));
        for trial in &it.trials {
            let there = replay(&acts, trial.budget_bytes);
            prop_assert_eq!((trial.hits, trial.peak_bytes), (there.hits(), there.peak), "{}", trial.budget_bytes);
        }
        prop_assert_eq!(it.trials.last().map(|trial| trial.budget_bytes), Some(UNLIMITED_BYTES));
    }
}

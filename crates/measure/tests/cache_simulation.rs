//! The cache simulation: small handwritten logs, and random logs compared with a recording that
//! used the simulated budget.

use crate::generated_log::{Process, logged_query};
use crate::query_log::log;
use larder_measure::query_log::cache_simulation::{CacheReport, UNLIMITED_BYTES};
use larder_measure::query_log::read_log;
use proptest::prelude::*;

fn simulate(log: &str, budget: u64) -> CacheReport {
    read_log(&mut log.as_bytes(), Some(budget)).unwrap().cache
}

/// Checks the number of hits that a budget of 3000 bytes gives. The log was recorded without a
/// cache; each answer takes 1000 bytes.
fn check(lines: &str, expect: u64) {
    let lines = format!("0 1 start budget=0\n{lines}");
    let it = simulate(&log(&lines), 3000);
    let trial = it.trials.iter().find(|trial| trial.budget_bytes == 3000).unwrap();
    assert_eq!(trial.hits, expect, "{lines}");
    assert_eq!(it.trials[0].hits, 0, "a budget of zero has no hits");
    assert!(trial.peak_bytes <= 3000);
}

#[test]
fn a_repeated_query_is_a_hit() {
    check("1 1 query\n2 1 query\n3 1 query", 2);
    check("1 1 query\n2 2 query", 0);
    check("1 1 query\n2 1 query kind=task\n3 1 query collection=Home\n4 1 query query=(x)", 0);
    // A restarted process has an empty cache.
    check("1 1 query\n2 1 start budget=0\n3 1 query", 0);
    check("1 1 query\n2 1 end\n3 1 query", 0);
    // Any client, with a view open or closed.
    check(
        "1 1 open view=1\n2 1 query\n3 1 open view=2\n4 1 close view=1\n5 1 close view=2\n6 1 query",
        3,
    );
    // A view that asks for changes only has no initial answer.
    check("1 1 open view=1 answer=0 bytes=0\n2 1 query", 0);
    // The reset of a view executes its query.
    check(
        "1 1 open view=1\n2 1 change kinds=[[null,null]]\n3 1 reset view=1 reason=zones\n4 1 query",
        1,
    );
}

#[test]
fn a_change_evicts_matching_answers() {
    let change =
        |of: &str, expect| check(&format!("1 1 query\n2 1 change kinds={of}\n3 1 query"), expect);
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
        check(&format!("1 1 {query}\n2 1 change kinds={of}\n3 1 {query}"), expect);
    };
    any(r#"[["Work","event"]]"#, 0);
    any("[]", 1);
    // Each process has a cache of its own.
    check("1 1 query\n2 2 change kinds=[[\"Work\",\"event\"]]\n3 1 query", 1);
}

/// An answer in the log's own cache is evicted when the log records it, and not before.
#[test]
fn recorded_evictions_are_followed() {
    let check = |lines: &str, expect: u64| {
        let it = simulate(&log(&format!("0 1 start budget=2000\n{lines}")), 5000);
        let trial = it.trials.iter().find(|trial| trial.budget_bytes == 5000).unwrap();
        assert_eq!(trial.hits, expect, "{lines}");
    };
    let change = "2 1 change kinds=[[\"Work\",\"event\"]]";
    check(&format!("1 1 query\n{change}\n3 1 query origin=cache"), 1);
    check(&format!("1 1 query\n1 1 evict answer=1 reason=stale\n{change}\n3 1 query answer=2"), 0);
    // Without a change: by the clock.
    check("1 1 query\n2 1 evict answer=1 reason=stale\n3 1 query answer=2", 0);
    // After an eviction for memory, only changes are known.
    check("1 1 query\n1 1 evict answer=1 reason=budget\n3 1 query answer=2", 1);
    check(&format!("1 1 query\n1 1 evict answer=1 reason=budget\n{change}\n3 1 query answer=2"), 0);
    // An answer larger than the log's budget was never cached.
    check(&format!("1 1 query bytes=2001\n{change}\n3 1 query answer=2"), 0);
    // The answer is cached again.
    check(
        &format!(
            "1 1 query\n1 1 evict answer=1 reason=budget\n1 1 query answer=2\n{change}\n3 1 query answer=2 origin=shared"
        ),
        2,
    );
}

#[test]
fn the_least_recently_used_answer_is_evicted_first() {
    let four =
        "1 1 query query=(a)\n2 1 query query=(b)\n3 1 query query=(c)\n4 1 query query=(d)\n";
    check(&format!("{four}5 1 query query=(a)"), 0);
    check(&format!("{four}5 1 query query=(b)\n6 1 query query=(c)\n7 1 query query=(d)"), 3);
    let used =
        "1 1 query query=(a)\n2 1 query query=(b)\n3 1 query query=(c)\n4 1 query query=(a)\n";
    check(&format!("{used}5 1 query query=(d)\n6 1 query query=(a)\n7 1 query query=(b)"), 2);
    // An answer larger than the budget is not cached and evicts nothing.
    check(
        "1 1 query\n2 1 query query=(b) bytes=3001\n3 1 query\n4 1 query query=(b) bytes=3001",
        1,
    );
}

#[test]
fn the_time_saved_is_that_of_the_last_execution() {
    let it = simulate(
        &log("1 1 query us=700\n2 1 query origin=cache us=2\n3 1 query origin=cache us=3"),
        9,
    );
    // Without a start, the first use of an answer shows that the process has a cache.
    assert_eq!(it.trials.last().unwrap().saved_us, 700);
    assert_eq!((it.answers, it.hits, it.recorded), (3, 2, None));
    assert_eq!(it.smallest_sufficient_budget().unwrap().budget_bytes, 16 << 10);
}

#[derive(Debug, Clone)]
enum ViewStep {
    Query(usize),
    Open(usize),
    Close(usize),
    Change(usize, usize),
}

const COLLECTIONS: [&str; 2] = ["Work", "Home"];
const KINDS: [&str; 2] = ["event", "contact"];

/// Records the steps with a budget.
fn record(steps: &[ViewStep], budget: u64) -> Process {
    let mut process = Process::new(1, 0, budget);
    let query = |number: usize| {
        let collection = [None, Some(COLLECTIONS[0]), Some(COLLECTIONS[1])][number % 3];
        let kind = [None, Some(KINDS[0]), Some(KINDS[1])][number / 3 % 3];
        logged_query(&format!("(word \"{}\")", "x".repeat(1 + number % 4 * 30)), kind, collection)
    };
    for (at, view_step) in steps.iter().enumerate() {
        let at = at as i64;
        match *view_step {
            ViewStep::Query(number) => process.query(at, "find", &query(number)),
            ViewStep::Open(number) => {
                process.open(at, "find", &query(number));
            }
            ViewStep::Close(number) => {
                let views = process.views();
                if !views.is_empty() {
                    process.close(at, views[number % views.len()]);
                }
            }
            ViewStep::Change(a, b) => process.change(at, COLLECTIONS[a], KINDS[b], 1, 2),
        }
    }
    process
}

fn view_step() -> impl Strategy<Value = ViewStep> {
    prop_oneof![
        6 => (0..30_usize).prop_map(ViewStep::Query),
        4 => (0..30_usize).prop_map(ViewStep::Open),
        4 => (0..9_usize).prop_map(ViewStep::Close),
        1 => (0..2_usize, 0..2_usize).prop_map(|(a, b)| ViewStep::Change(a, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The simulation of a budget has the hits of a recording of the same steps with that budget.
    #[test]
    fn a_replay_equals_a_recording_with_that_budget(
        steps in prop::collection::vec(view_step(), 0..200),
        recorded_budget in prop_oneof![Just(0_u64), 500..20_000_u64],
        simulated_budget in 1..20_000_u64,
    ) {
        let log = record(&steps, recorded_budget);
        let it = simulate(&log.log(), simulated_budget);
        prop_assert_eq!(it.hits, log.hits());
        prop_assert_eq!(it.recorded.map(|trial| (trial.hits, trial.peak_bytes)), Some((log.hits(), log.peak)));
        for trial in &it.trials {
            let expected = record(&steps, trial.budget_bytes);
            prop_assert_eq!((trial.hits, trial.peak_bytes), (expected.hits(), expected.peak), "{}", trial.budget_bytes);
        }
        prop_assert_eq!(it.trials.last().map(|trial| trial.budget_bytes), Some(UNLIMITED_BYTES));
    }
}

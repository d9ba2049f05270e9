//! The time for which a thread has waited in vain.

#[path = "../src/idle_time.rs"]
mod idle_time;

use idle_time::IdleTime;

const MILLISECOND: i64 = 1_000_000;

#[test]
fn a_time_without_progress_is_counted_while_the_process_runs() {
    let mut idle = IdleTime::default();
    let start = 5_000 * MILLISECOND;
    for wait in 0..90 {
        assert_eq!(idle.note_wait(start + wait * 100 * MILLISECOND), wait * 100 * MILLISECOND);
    }
    // Stopped for a minute, as by Control-Z.
    let continued = start + 69_000 * MILLISECOND;
    assert_eq!(idle.note_wait(continued), 0);
    assert_eq!(idle.note_wait(continued + 100 * MILLISECOND), 100 * MILLISECOND);
    idle.end();
    assert_eq!(idle.note_wait(continued + 200 * MILLISECOND), 0);
}

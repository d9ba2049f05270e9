//! Commands whose cost is known well enough.

use larder_measure::process_cost::{ProcessCost, run_command};
use std::process::Command;
use std::time::Duration;

fn shell(script: &str) -> ProcessCost {
    run_command(Command::new("sh").args(["-c", script])).unwrap()
}

#[test]
fn the_end_is_the_commands() {
    for code in [0, 3] {
        assert_eq!(shell(&format!("exit {code}")).status.code(), Some(code));
    }
    assert_eq!(shell("kill -9 $$").status.code(), None);
}

#[test]
fn waiting_takes_time_and_no_processor() {
    let run = shell("exec sleep 0.2");
    assert!(run.wall >= Duration::from_millis(200), "{run:?}");
    assert!(run.user + run.system < Duration::from_millis(150), "{run:?}");
}

#[test]
fn work_is_counted_to_the_end() {
    let run = shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
    // Other programs may hold it up, but nothing does that much within a moment.
    assert!(run.user + run.system >= Duration::from_millis(30), "{run:?}");
}

#[test]
fn a_heap_and_a_file_are_seen() {
    let path = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let of = format!("of={}", path.path().display());
    let run = run_command(Command::new("dd").args([
        "if=/dev/zero",
        &of,
        "bs=24M",
        "count=1",
        "status=none",
    ]));
    let run = run.unwrap();
    // One buffer of 24 MB, all of it touched.
    assert!((24 << 20..32 << 20).contains(&run.peak_anonymous_bytes), "{run:?}");
    // On a file system in memory nothing is written to a disk.
    if let Some(written @ 1..) = run.written_bytes {
        assert!((24 << 20..25 << 20).contains(&written), "{run:?}");
    }
}

#[test]
fn a_command_that_is_not_there() {
    let error = run_command(&mut Command::new("/nonexistent/larder")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

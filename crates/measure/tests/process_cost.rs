//! The measured cost of commands whose cost is approximately known.

use larder_measure::command_signals::CommandSignals;
use larder_measure::process_cost::{ProcessCost, run_command};
use std::process::Command;
use std::time::Duration;

fn shell(script: &str) -> ProcessCost {
    run_command(Command::new("sh").args(["-c", script]), &CommandSignals::default()).unwrap()
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    for code in [0, 3] {
        assert_eq!(shell(&format!("exit {code}")).status.code(), Some(code));
    }
    assert_eq!(shell("kill -9 $$").status.code(), None);
}

#[test]
fn waiting_costs_wall_time_only() {
    let run = shell("exec sleep 0.2");
    assert!(run.wall >= Duration::from_millis(200), "{run:?}");
    assert!(run.user + run.system < Duration::from_millis(150), "{run:?}");
}

#[test]
fn cpu_time_is_counted_until_the_command_ends() {
    let run = shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
    // A lower bound: other programs may delay the loop but cannot shorten it.
    assert!(run.user + run.system >= Duration::from_millis(30), "{run:?}");
}

#[test]
fn memory_and_written_bytes_are_measured() {
    let path = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output_argument = format!("of={}", path.path().display());
    let mut command = Command::new("dd");
    command.args(["if=/dev/zero", &output_argument, "bs=24M", "count=1", "status=none"]);
    let run = run_command(&mut command, &CommandSignals::default()).unwrap();
    // `dd` fills one buffer of 24 MB.
    assert!((24 << 20..32 << 20).contains(&run.peak_anonymous_bytes), "{run:?}");
    assert_eq!(run.first_anonymous_bytes, run.peak_anonymous_bytes);
    // Nothing is written to a disk if the file system is in memory.
    if let Some(written @ 1..) = run.written_bytes {
        assert!((24 << 20..25 << 20).contains(&written), "{run:?}");
    }
}

/// The memory is that of the largest process, which may be one that the command starts.
#[test]
fn the_memory_of_the_largest_process_is_measured() {
    let run = shell("dd if=/dev/zero of=/dev/null bs=24M count=40 status=none; exit 0");
    assert!((24 << 20..32 << 20).contains(&run.peak_anonymous_bytes), "{run:?}");
    assert!((1 << 10..8 << 20).contains(&run.first_anonymous_bytes), "{run:?}");
    // Two of them are no larger one.
    let copy = "dd if=/dev/zero of=/dev/null bs=24M count=40 status=none";
    let run = shell(&format!("{copy} & {copy}; wait; exit 0"));
    assert!((24 << 20..32 << 20).contains(&run.peak_anonymous_bytes), "{run:?}");
}

/// A process whose first thread has ended goes on with its other threads.
#[test]
fn memory_without_the_first_thread_is_measured() {
    let program = "import ctypes, os, threading\n\
                   def work():\n  \
                     while ') Z ' not in open('/proc/self/stat').read(): pass\n  \
                     held = bytearray(60_000_000)\n  \
                     for i in range(3_000_000): pass\n  \
                     os._exit(3)\n\
                   threading.Thread(target=work).start()\n\
                   ctypes.CDLL(None).syscall(60, 0)\n";
    let run =
        run_command(Command::new("python3").args(["-c", program]), &CommandSignals::default())
            .unwrap();
    assert_eq!(run.status.code(), Some(3));
    assert!((60_000_000..90_000_000).contains(&run.first_anonymous_bytes), "{run:?}");
}

/// The kernel cuts the name of a process to 15 bytes, here within a character.
#[test]
fn a_name_that_is_cut_within_a_character_is_no_obstacle() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().join("messung-der-größe");
    std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
    let mut command = Command::new(&program);
    let run = run_command(command.args(["-c", "exit 3"]), &CommandSignals::default()).unwrap();
    assert_eq!(run.status.code(), Some(3));
    // The shell below holds 4 MB of text.
    let script = "text=$(seq 600000); sleep 0.2; exit 0";
    let run = shell(&format!("{} -c '{script}'; exit 0", program.display()));
    assert!(run.peak_anonymous_bytes >= run.first_anonymous_bytes + 3_000_000, "{run:?}");
}

#[test]
fn a_missing_command_is_an_error() {
    let error = run_command(&mut Command::new("/nonexistent/larder"), &CommandSignals::default())
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

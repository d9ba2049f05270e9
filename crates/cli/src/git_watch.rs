//! The end of this program when git, which started it, is gone.
//!
//! A program that git starts learns of git's end when it reads or writes the next time, which may
//! be an hour of conversion later; the importer of git that waits for it keeps its pipes open. So
//! git's process is watched, and standard input, to which git sends nothing during an import.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::parent_id;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Ends this program if git ends while `is_importing` is set. Nothing of an import that does not
/// end is visible, and the next one deletes its files.
pub(crate) fn watch_git(is_importing: &Arc<AtomicBool>, exit_code: u8) {
    let is_importing = Arc::clone(is_importing);
    let processes = git_processes();
    // Without the thread, the import goes on to its end.
    let _started = thread::Builder::new().spawn(move || {
        if wait_for_end(&processes).is_ok() && is_importing.load(Ordering::SeqCst) {
            process::exit(exit_code.into());
        }
    });
}

/// Opens the parent, and the parent of that if it is a git which only looks for this program. Those
/// that cannot be watched are left out.
fn git_processes() -> Vec<OwnedFd> {
    let parent = parent_id();
    let command = fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let is_search = command.split(|byte| *byte == 0).nth(1) == Some(b"remote-hg");
    let above = if is_search { parent_of(parent) } else { None };
    let open = |id: u32| {
        let id = Pid::from_raw(i32::try_from(id).ok()?)?;
        pidfd_open(id, PidfdFlags::empty()).ok()
    };
    [Some(parent), above].into_iter().flatten().filter_map(open).collect()
}

fn parent_of(id: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line?.trim().parse().ok()
}

/// Waits until one of the processes has ended, or nobody can write to standard input any more.
fn wait_for_end(processes: &[OwnedFd]) -> Result<(), Errno> {
    let stdin = io::stdin();
    // A hang-up is reported without being asked for.
    let mut watched = vec![PollFd::new(&stdin, PollFlags::empty())];
    watched.extend(processes.iter().map(|process| PollFd::new(process, PollFlags::IN)));
    loop {
        match poll(&mut watched, None) {
            Err(Errno::INTR) => {}
            ended => return ended.map(drop),
        }
    }
}

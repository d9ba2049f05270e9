//! A recorded process as the system shows it: its parent, its name, its memory.

use crate::process_cost::{read_memory_file, read_proc_file};

/// Returns resident and anonymous bytes, with the pages of the ring, which are not anonymous. A
/// process that is about to end has none.
pub(super) fn memory(pid: u32) -> Option<(u64, u64)> {
    let parse = |text: &str| {
        let mut pages = text.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
        let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
        let page = rustix::param::page_size() as u64;
        (resident > 0).then_some((resident * page, resident.saturating_sub(shared) * page))
    };
    read_memory_file(pid, "statm", parse).ok()
}

/// Returns a field of `/proc/PID/stat` after the name.
fn stat_field(pid: u32, index: usize) -> Option<String> {
    let text = read_proc_file(pid, "stat").ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(index).map(String::from)
}

/// Returns whether a process has not ended.
pub(super) fn is_running(pid: u32) -> bool {
    stat_field(pid, 0).is_some_and(|state| !matches!(state.as_str(), "Z" | "X"))
}

/// Returns when a process began, in ticks of the system; `None` if it is gone.
pub(super) fn start_ticks(pid: u32) -> Option<u64> {
    stat_field(pid, 19)?.parse().ok()
}

/// Returns the parent of a process; `None` if it is gone.
pub(super) fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 1)?.parse().ok()
}

/// Returns the name of a process.
pub(super) fn name(pid: u32) -> String {
    read_proc_file(pid, "comm").map(|name| name.trim_end().to_string()).unwrap_or_default()
}

//! Processes below the command that are not recorded, and the reason as far as it can be seen.

use super::recorded_process;
use super::ring_process::RingProcess;
use crate::memory_timeline::process_tree;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A reason why a process was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnrecordedReason {
    /// It has another root directory, or another view of the files: the recorder cannot be loaded
    /// there, or cannot reach the collector.
    OtherRoot,
    /// It is static, or ran without `LD_PRELOAD`.
    NotLoaded,
    /// So many children of this process did not send their rings after their forks.
    LostChildren(u32),
}

/// A process that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnrecordedProcess {
    /// The process id.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// The reason.
    pub reason: UnrecordedReason,
}

/// Finds processes that are not recorded.
#[derive(Default)]
pub(super) struct UnrecordedFinder {
    /// Processes without a ring so far.
    found: BTreeMap<u32, UnrecordedProcess>,
    /// Processes that have, or had, a ring.
    recorded: FxHashSet<u32>,
    /// Processes some of whose children are missing.
    parents: Vec<UnrecordedProcess>,
}

impl UnrecordedFinder {
    /// Looks for processes below the command that have no ring.
    pub(super) fn find(&mut self, command: u32) {
        for pid in process_tree(command) {
            if self.recorded.contains(&pid) {
                continue;
            }
            // A process may go to another root after it was seen.
            let reason = match is_in_other_root(pid) {
                true => UnrecordedReason::OtherRoot,
                false => UnrecordedReason::NotLoaded,
            };
            let new = || UnrecordedProcess { pid, program: recorded_process::name(pid), reason };
            let process = self.found.entry(pid).or_insert_with(new);
            if reason == UnrecordedReason::OtherRoot {
                process.reason = reason;
            }
        }
    }

    /// Notes that a process has sent its ring.
    pub(super) fn note_recorded(&mut self, pid: u32) {
        self.found.remove(&pid);
        self.recorded.insert(pid);
    }

    /// Notes the children that a process is missing at its end.
    pub(super) fn note_end(&mut self, process: &RingProcess) {
        let children = process.forks.lost_children();
        if children > 0 {
            self.parents.push(UnrecordedProcess {
                pid: process.pid,
                program: process.program.clone(),
                reason: UnrecordedReason::LostChildren(children),
            });
        }
    }

    /// Returns the processes that were not recorded.
    pub(super) fn finish(&mut self) -> Vec<UnrecordedProcess> {
        let found = std::mem::take(&mut self.found).into_values();
        found.chain(std::mem::take(&mut self.parents)).collect()
    }
}

/// Returns whether a process sees other files than this one.
fn is_in_other_root(pid: u32) -> bool {
    let differs = |name: &str| {
        let link = |process: &str| -> Option<PathBuf> {
            std::fs::read_link(format!("/proc/{process}/{name}")).ok()
        };
        let (own, other) = (link("self"), link(&pid.to_string()));
        other.is_some() && own != other
    };
    differs("root") || differs("ns/mnt")
}

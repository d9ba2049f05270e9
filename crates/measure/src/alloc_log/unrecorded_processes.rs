//! Processes of a command that are not recorded, and the reason as far as it can be seen.

use super::privileged_program::is_privileged_process;
use super::process_maps::has_ring;
use super::recorded_process;
use super::ring_layout::ENVIRONMENT_VARIABLE;
use super::ring_process::RingProcess;
use super::static_program::has_loader;
use crate::memory_timeline::process_tree;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The ring of a parent that could not be seen, as where no file is left to read `/proc`.
const UNKNOWN_RING: u64 = 0;

/// A reason why a process was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnrecordedReason {
    /// It has another root directory, or another view of the files: the recorder cannot be loaded
    /// there, or cannot reach the collector.
    OtherRoot,
    /// It is a static program.
    Static,
    /// It ran without `LD_PRELOAD`.
    NoPreload,
    /// Its `LD_PRELOAD` has other libraries in place of the recorder.
    OtherPreload,
    /// The recorder was not loaded into it, as into a program of 32 bits, or it ended too soon for
    /// another reason to be seen.
    NotLoaded,
    /// Its program has rights of its own (setuid, setgid, capabilities).
    Privileged,
    /// The recorder in it is of another version of larder.
    OtherVersion,
    /// It could not make a ring, or send it.
    NoRing,
    /// Its ring could not be received, because larder had as many files open as it may.
    TooManyFiles,
    /// It sends its ring to another recording.
    OtherRecording,
    /// The number of its children that did not send their rings after their forks.
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

/// A process that was seen without a ring.
struct UnrecordedChild {
    process: UnrecordedProcess,
    /// The ring of the process that it was forked from, of which it is a lost child.
    parent_ring: Option<u64>,
    /// It is in the program of its parent, as from a fork until its own program begins.
    is_forked: bool,
}

impl UnrecordedChild {
    /// Returns whether a ring that the process sends is of another program.
    fn is_other_program(&self) -> bool {
        match self.process.reason {
            // The ring of this one does not come again.
            UnrecordedReason::TooManyFiles => true,
            UnrecordedReason::NoRing | UnrecordedReason::NotLoaded => false,
            _ => !self.is_forked,
        }
    }
}

/// A process that has sent a ring.
struct RecordedRing {
    /// The inode of the ring that it sent last.
    ring: u64,
    /// The program image in which the ring was seen.
    image: Option<ProgramImage>,
}

/// Where a program image begins, and where its stack does: another image of a process is elsewhere,
/// and the child of a fork has those of its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProgramImage {
    code: u64,
    stack: u64,
}

/// A process as `/proc/PID/stat` shows it.
struct ProcessStat {
    state: char,
    parent: u32,
    /// `None`: it may not be read.
    image: Option<ProgramImage>,
}

/// Finds processes that are not recorded.
pub(super) struct UnrecordedFinder {
    /// The files without which no process is recorded, with device and inode.
    files: Vec<(PathBuf, (u64, u64))>,
    /// The paths of these files in the environment of the command.
    names: Vec<PathBuf>,
    /// Processes without a ring so far.
    found: BTreeMap<u32, UnrecordedChild>,
    /// Processes that have, or had, a ring.
    recorded: FxHashMap<u32, RecordedRing>,
    /// Processes some of whose children are missing, with their rings.
    parents: Vec<(u64, u32, UnrecordedProcess)>,
}

impl UnrecordedFinder {
    /// Creates a finder; a process has to see these files, the socket first, to be recorded.
    pub(super) fn new(files: &[&Path]) -> UnrecordedFinder {
        let with_key = |file: &&Path| {
            let path = file.canonicalize().ok()?;
            let key = file_key(&path).ok()?;
            Some((path, key))
        };
        UnrecordedFinder {
            files: files.iter().filter_map(with_key).collect(),
            names: files.iter().map(|file| file.to_path_buf()).collect(),
            found: BTreeMap::new(),
            recorded: FxHashMap::default(),
            parents: Vec::new(),
        }
    }

    /// Looks for processes that have no ring, among these and all below them. What has ended shows
    /// nothing that a reason could be found by: children of forks are then missed by their parents.
    pub(super) fn find(&mut self, roots: impl IntoIterator<Item = u32>) {
        for pid in process_tree(roots) {
            let Some(stat) = read_stat(pid).filter(|stat| !matches!(stat.state, 'Z' | 'X')) else {
                continue;
            };
            if self.is_recorded(pid, stat.image) || self.has_told_reason(pid) {
                continue;
            }
            let parent = self.recorded.get(&stat.parent);
            let parent = parent.filter(|parent| stat.image.is_some() && parent.image == stat.image);
            let parent_ring = parent.map(|parent| parent.ring);
            // After vfork it is in the memory of its parent, until it begins its program.
            if parent_ring.is_some_and(|ring| has_mapped(pid, ring) == Some(true)) {
                continue;
            }
            let known = self.found.get(&pid).map(|found| found.process.reason);
            // One that is about to end shows less than before.
            let reason = self.reason(pid).or(known).unwrap_or(UnrecordedReason::NotLoaded);
            let program = recorded_process::name(pid);
            // It has ended meanwhile.
            if program.is_empty() {
                continue;
            }
            let process = UnrecordedProcess { pid, program, reason };
            let before = self.found.remove(&pid).and_then(|found| found.parent_ring);
            let parent_ring = before.or(parent_ring);
            let is_forked = stat.image.is_some()
                && read_stat(stat.parent).is_some_and(|parent| parent.image == stat.image);
            self.found.insert(pid, UnrecordedChild { process, parent_ring, is_forked });
        }
    }

    /// Returns whether a process is in the program that has sent its ring, as far as can be seen.
    fn is_recorded(&mut self, pid: u32, image: Option<ProgramImage>) -> bool {
        let Some(recorded) = self.recorded.get_mut(&pid) else { return false };
        // A program that may not be read is another one if it has got rights by its file.
        if image.is_none() {
            return !is_privileged_process(pid);
        }
        if recorded.image == image {
            return true;
        }
        let is_mapped = has_mapped(pid, recorded.ring).unwrap_or(true);
        if is_mapped {
            recorded.image = image;
        }
        is_mapped
    }

    /// Returns the reason that a process shows; `None`: it has ended.
    fn reason(&self, pid: u32) -> Option<UnrecordedReason> {
        let root = PathBuf::from(format!("/proc/{pid}"));
        let is_hidden = |(path, key): &(PathBuf, (u64, u64))| {
            let Ok(path) = path.strip_prefix("/") else { return false };
            match file_key(&root.join("root").join(path)) {
                Ok(found) => found != *key,
                Err(error) => error.kind() == ErrorKind::NotFound,
            }
        };
        let program = root.join("exe");
        if std::fs::read_link(&program).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return None;
        }
        Some(if has_loader(&program) == Some(false) {
            UnrecordedReason::Static
        } else if self.files.iter().any(is_hidden) {
            UnrecordedReason::OtherRoot
        } else if is_privileged_process(pid) {
            UnrecordedReason::Privileged
        } else {
            self.reason_in_environment(pid)
        })
    }

    /// Returns the reason that the environment of a program shows: the libraries that it loads, and
    /// the socket to which it sends its ring.
    fn reason_in_environment(&self, pid: u32) -> UnrecordedReason {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let variable = |name: &str| {
            let mut variables = environment.split(|byte| *byte == 0);
            let value =
                variables.find_map(|it| it.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let has_own = |value: &String| {
            // A library whose path cannot be in the list has a link beside the socket.
            let folder = self.names.first().and_then(|socket| socket.parent());
            let mut paths = self.names.iter().map(PathBuf::as_path).chain(folder);
            paths.any(|path| path.to_str().is_some_and(|path| value.contains(path)))
        };
        let socket = variable(ENVIRONMENT_VARIABLE);
        match variable("LD_PRELOAD") {
            _ if self.has_recorder(pid) => match socket.filter(|socket| !has_own(socket)) {
                Some(_) => UnrecordedReason::OtherRecording,
                None => UnrecordedReason::NoRing,
            },
            Some(libraries) if !has_own(&libraries) => UnrecordedReason::OtherPreload,
            // A program may hide its environment, or write a title for its process over it.
            None if !environment.is_empty() => UnrecordedReason::NoPreload,
            _ => UnrecordedReason::NotLoaded,
        }
    }

    /// Returns whether one of the files, the recorder, is loaded into a process.
    fn has_recorder(&self, pid: u32) -> bool {
        let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        let is_loaded = |(path, _): &(PathBuf, (u64, u64))| {
            path.to_str().is_some_and(|path| maps.lines().any(|line| line.ends_with(path)))
        };
        self.files.iter().any(is_loaded)
    }

    /// Returns whether a process has sent a ring, or has failed to.
    pub(super) fn has_answered(&self, pid: u32) -> bool {
        self.recorded.contains_key(&pid) || self.has_told_reason(pid)
    }

    fn has_told_reason(&self, pid: u32) -> bool {
        let reason = self.found.get(&pid).map(|found| found.process.reason);
        matches!(
            reason,
            Some(
                UnrecordedReason::OtherVersion
                    | UnrecordedReason::NoRing
                    | UnrecordedReason::TooManyFiles
            )
        )
    }

    /// Notes that a process has sent a ring of another version.
    pub(super) fn note_other_version(&mut self, pid: u32, program: String) {
        self.note_reason(pid, program, UnrecordedReason::OtherVersion);
    }

    /// Notes that a process could not make a ring.
    pub(super) fn note_failure(&mut self, pid: u32, program: String) {
        self.note_reason(pid, program, UnrecordedReason::NoRing);
    }

    /// Notes that the ring of a process could not be received.
    pub(super) fn note_lost_ring(&mut self, pid: u32, program: String) {
        let before = self.found.get(&pid).and_then(|found| found.parent_ring);
        // The first ring of a child comes from its fork, even if it has begun a program since.
        let first = (!self.recorded.contains_key(&pid)).then_some(UNKNOWN_RING);
        let parent = read_stat(pid).and_then(|stat| self.recorded.get(&stat.parent));
        let first = first.map(|unknown| parent.map_or(unknown, |parent| parent.ring));
        let parent_ring = before.or(first);
        let process = UnrecordedProcess { pid, program, reason: UnrecordedReason::TooManyFiles };
        self.found.insert(pid, UnrecordedChild { process, parent_ring, is_forked: false });
    }

    fn note_reason(&mut self, pid: u32, program: String, reason: UnrecordedReason) {
        let process = UnrecordedProcess { pid, program, reason };
        let child = UnrecordedChild { process, parent_ring: None, is_forked: false };
        self.found.insert(pid, child);
    }

    /// Notes that a process has sent its ring. An earlier program of it may have been without one.
    pub(super) fn note_recorded(&mut self, pid: u32, ring: u64) {
        if self.found.get(&pid).is_some_and(|found| !found.is_other_program()) {
            self.found.remove(&pid);
        }
        self.recorded.insert(pid, RecordedRing { ring, image: None });
    }

    /// Notes the children that a process is missing at its end.
    pub(super) fn note_end(&mut self, process: &RingProcess) {
        let children = process.forks.lost_children();
        if children > 0 {
            let parent = UnrecordedProcess {
                pid: process.pid,
                program: process.program.clone(),
                reason: UnrecordedReason::LostChildren(children),
            };
            self.parents.push((process.reader.inode(), children, parent));
        }
    }

    /// Returns the processes that were not recorded. Children that are named themselves do not
    /// count among those that their parents lost.
    pub(super) fn finish(&mut self) -> Vec<UnrecordedProcess> {
        let found: Vec<UnrecordedChild> = std::mem::take(&mut self.found).into_values().collect();
        let count = |ring| found.iter().filter(|child| child.parent_ring == Some(ring)).count();
        let mut unknown = count(UNKNOWN_RING) as u32;
        let parents = std::mem::take(&mut self.parents).into_iter();
        let parents: Vec<UnrecordedProcess> = parents
            .filter_map(|(ring, children, parent)| {
                let unnamed = children.saturating_sub(count(ring) as u32);
                let of_unknown = unnamed.min(unknown);
                unknown -= of_unknown;
                let unnamed = unnamed - of_unknown;
                let reason = UnrecordedReason::LostChildren(unnamed);
                (unnamed > 0).then_some(UnrecordedProcess { reason, ..parent })
            })
            .collect();
        found.into_iter().map(|child| child.process).chain(parents).collect()
    }
}

/// Returns whether a process has mapped a ring; `None` if its mappings cannot be read.
fn has_mapped(pid: u32, ring: u64) -> Option<bool> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
    (!text.is_empty()).then(|| has_ring(&String::from_utf8_lossy(&text), ring))
}

fn file_key(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn read_stat(pid: u32) -> Option<ProcessStat> {
    parse_stat(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// Reads the text of `/proc/PID/stat`; the name in it may hold parentheses.
fn parse_stat(text: &str) -> Option<ProcessStat> {
    let (_, text) = text.rsplit_once(')')?;
    // From the third field on.
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let (code, stack) = (number(26)?, number(28)?);
    Some(ProcessStat {
        state: fields.first()?.chars().next()?,
        parent: u32::try_from(number(4)?).ok()?,
        image: (stack != 0).then_some(ProgramImage { code, stack }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::process::{Child, Command, Stdio};

    fn finder() -> UnrecordedFinder {
        UnrecordedFinder::new(&[Path::new("/proc/self/exe")])
    }

    /// Starts a script that runs until its input ends; returns when it has printed a line.
    fn reader(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    #[test]
    fn a_process_is_recorded_while_its_ring_is_mapped() {
        let mut child = reader("echo; exec cat");
        let mut finder = finder();
        // The ring is not in this program: it was sent before exec.
        finder.note_recorded(child.id(), 1);
        finder.find([child.id()]);
        drop(child.stdin.take());
        let found = finder.finish();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].pid, found[0].reason), (child.id(), UnrecordedReason::NoPreload));
        child.wait().unwrap();
    }

    #[test]
    fn an_earlier_program_of_a_recorded_process_is_named() {
        // The child of the shell is in the same program, until it begins its own.
        let mut child = reader("(echo; read -r line); true");
        let mut finder = finder();
        finder.find([child.id()]);
        let processes: Vec<u32> = finder.found.keys().copied().collect();
        assert_eq!(processes.len(), 2);
        processes.iter().for_each(|pid| finder.note_recorded(*pid, 1));
        drop(child.stdin.take());
        let found: Vec<u32> = finder.finish().iter().map(|process| process.pid).collect();
        assert_eq!(found, [child.id()]);
        child.wait().unwrap();
    }

    #[test]
    fn a_child_whose_ring_was_lost_is_named_once() {
        let mut child = reader("(echo; read -r line); true");
        let processes = process_tree([child.id()]);
        let [parent, forked] = processes[..] else { panic!("{processes:?}") };
        let mut finder = finder();
        finder.note_recorded(parent, 1);
        finder.note_lost_ring(forked, "sh".into());
        // The ring of a program that it begins does not stand for the lost one.
        finder.note_recorded(forked, 2);
        let reason = UnrecordedReason::LostChildren(1);
        let lost = UnrecordedProcess { pid: parent, program: "sh".into(), reason };
        finder.parents.push((1, 1, lost));
        drop(child.stdin.take());
        let found = finder.finish();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].pid, found[0].reason), (forked, UnrecordedReason::TooManyFiles));
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_has_ended_is_not_looked_at() {
        let mut child = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
        // The pipe is closed just before the process is a zombie.
        child.stdout.as_mut().unwrap().read_to_end(&mut Vec::new()).unwrap();
        while read_stat(child.id()).unwrap().state != 'Z' {
            std::thread::yield_now();
        }
        let mut finder = finder();
        finder.find([child.id()]);
        assert_eq!(finder.finish(), []);
        child.wait().unwrap();
    }

    #[test]
    fn the_state_and_the_image_of_a_process_are_read() {
        let rest = "1 7 7 0 -1 4 338 0 0 0 12 10 3 1 20 0 1 0 31 9 9 9 111 222 333 0";
        let stat = parse_stat(&format!("7 (a) b (c) S {rest}")).unwrap();
        assert_eq!((stat.state, stat.parent), ('S', 1));
        assert_eq!(stat.image, Some(ProgramImage { code: 111, stack: 333 }));
        let hidden = rest.replace("111 222 333", "1 1 0");
        assert_eq!(parse_stat(&format!("7 (a) S {hidden}")).unwrap().image, None);
        assert!(parse_stat("7 (a").is_none() && parse_stat("7 (a) S 1").is_none());
    }
}

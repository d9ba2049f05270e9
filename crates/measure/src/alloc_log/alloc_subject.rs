//! An analysed process of a log, which reports are about, and the names of functions in them.

use super::analysis::AllocAnalysis;
use super::end_point::EndPoint;
use super::log_file::{AllocLog, LoggedProcess};
use super::ring_layout::{ALL_OPERATIONS, LAST_CALL, RingOperation};
use super::stack_profile::StackProfile;
use crate::chart::ColourRole;

/// The parts of a long command that are shown, its beginning and its end.
const COMMAND_CHARS: (usize, usize) = (50, 20);
/// The colours of the first and the second subject.
pub(super) const SUBJECT_COLOURS: [ColourRole; 2] = [ColourRole::First, ColourRole::Error];

/// An analysed process of a log.
pub struct AllocSubject<'a> {
    /// The name of the log.
    pub name: String,
    /// The log.
    pub log: &'a AllocLog,
    /// The process, by its number in the log.
    pub process: usize,
    /// Its analysis.
    pub analysis: AllocAnalysis,
    /// Its call stacks, if they were recorded.
    pub stacks: Option<StackProfile>,
}

impl LoggedProcess {
    /// Returns the command line, or the program if it is not known.
    #[must_use]
    pub fn command_line(&self) -> String {
        match self.start.arguments.is_empty() {
            true => self.start.executable.clone(),
            false => self.start.arguments.join(" "),
        }
    }
}

impl LoggedProcess {
    /// Returns the start, and how long the process is known to have run, in microseconds.
    pub(super) fn duration_us(&self) -> (u64, u64) {
        let start = self.start.start_us;
        let last_sample = self.samples.last().map_or(start, |sample| sample.time_us);
        let end = self.end.map_or(last_sample.max(self.last_call_us), |end| end.end_us);
        (start, end.saturating_sub(start))
    }
}

impl AllocSubject<'_> {
    pub(super) fn logged_process(&self) -> &LoggedProcess {
        &self.log.processes[self.process]
    }
}

/// Returns the point at which the calls of all subjects end; that of a process, if it is one for
/// some.
pub(super) fn common_end_point(subjects: &[AllocSubject<'_>]) -> EndPoint {
    let is_cut = subjects.iter().all(|subject| subject.logged_process().is_cut());
    if is_cut { EndPoint::Log } else { EndPoint::Process }
}

/// Returns a command that is too long for a line without the folder of its program, and without its
/// middle: equal programs are told apart by what comes last.
pub(super) fn shorten_command(command: &str) -> String {
    let (start, end) = COMMAND_CHARS;
    if command.chars().count() <= start + end {
        return command.to_string();
    }
    // A folder with a blank is not recognised as one, which only makes the command longer.
    let program = command.split(' ').next().unwrap_or_default();
    let folder = program.rfind('/').map_or(0, |slash| slash + 1);
    let command = command.get(folder..).unwrap_or_default();
    let chars: Vec<char> = command.chars().collect();
    match chars.len().checked_sub(end) {
        Some(tail) if tail > start => {
            let text = |chars: &[char]| chars.iter().collect::<String>();
            format!("{}…{}", text(&chars[..start]), text(&chars[tail..]))
        }
        _ => command.to_string(),
    }
}

/// Returns the name of a function, as programs call it.
#[must_use]
pub fn function_name(function: RingOperation) -> &'static str {
    use RingOperation as Op;
    match function {
        Op::Malloc => "malloc",
        Op::Free => "free",
        Op::Calloc => "calloc",
        Op::Realloc => "realloc",
        Op::ReallocOfNull => "realloc(NULL, n)",
        Op::ReallocToZero => "realloc(p, 0)",
        Op::Reallocarray => "reallocarray",
        Op::PosixMemalign => "posix_memalign",
        Op::AlignedAlloc => "aligned_alloc",
        Op::Memalign => "memalign",
        Op::Valloc => "valloc",
        Op::Pvalloc => "pvalloc",
        Op::New => "operator new",
        Op::NewArray => "operator new[]",
        Op::NewAligned => "operator new (aligned)",
        Op::NewArrayAligned => "operator new[] (aligned)",
        Op::Delete => "operator delete",
        Op::DeleteArray => "operator delete[]",
        Op::Cfree => "cfree",
        Op::FreeSized => "free_sized",
        Op::FreeAlignedSized => "free_aligned_sized",
        Op::Failure
        | Op::Release
        | Op::Mark
        | Op::Number
        | Op::Fork
        | Op::Stack
        | Op::Unload
        | Op::ForkFailure => "",
    }
}

/// Returns the functions that a program can call.
pub fn call_functions() -> impl Iterator<Item = RingOperation> {
    ALL_OPERATIONS.into_iter().take(LAST_CALL as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::shorten_command;

    #[test]
    fn a_long_command_has_its_beginning_and_its_end() {
        assert_eq!(shorten_command("/bin/sh -c true"), "/bin/sh -c true");
        let compiler = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet -imultiarch x86_64-linux-gnu \
                        part1.c -quiet -dumpbase part1.c -mtune=generic -o /tmp/ccwd7Uhr.s";
        let short = "cc1 -quiet -imultiarch x86_64-linux-gnu part1.c -q…c -o /tmp/ccwd7Uhr.s";
        assert_eq!(shorten_command(compiler), short);
        // The folder alone made it too long.
        let folder = "/a".repeat(40);
        assert_eq!(shorten_command(&format!("{folder}/git log --stat")), "git log --stat");
        let umlauts = "ä".repeat(200);
        assert_eq!(shorten_command(&umlauts).chars().count(), 71);
    }
}

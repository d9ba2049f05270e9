//! The processes of a log in a report: who began whom, how each ended, and how much it took.

use super::alloc_subject::{AllocSubject, shorten_command};
use super::log_block::{ProcessStart, RecordingEnd};
use super::log_file::{AllocLog, LoggedProcess};
use crate::chart::MeasureUnit;
use crate::measure_report::{ReportSection, ReportTable};
use crate::process_cost::signal_text;
use serde_json::{Value, json};

/// Rows of the list in a report: those of the processes with the most calls.
const MAX_PROCESS_ROWS: usize = 40;
/// The column of the calls.
const CALLS_COLUMN: usize = 6;

/// The end of a process image, as far as the log tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessEnding {
    /// By `exit`, `_exit`, or the return of `main`.
    Exit,
    /// It went on as another program.
    Exec,
    /// By a signal, by its number.
    Signal(i32),
    /// It went on as another program, which is not recorded.
    UnrecordedExec,
    /// By no signal: it went on as another program, which is not recorded, or ended unseen, as by a
    /// system call that passes by libc.
    Unseen,
    /// By a signal, or as an `Unseen` one.
    Killed,
    /// It went on without being recorded.
    Unrecorded,
    /// The log ends before.
    Unknown,
}

impl ProcessEnding {
    /// Returns the end for people.
    pub(super) fn describe(self) -> String {
        match self {
            ProcessEnding::Exit => "exit".into(),
            ProcessEnding::Exec => "exec".into(),
            ProcessEnding::Signal(signal) => signal_text(signal),
            ProcessEnding::UnrecordedExec => "exec (not recorded)".into(),
            ProcessEnding::Unseen => "exec (likely, not recorded)".into(),
            ProcessEnding::Killed => "signal (likely)".into(),
            ProcessEnding::Unrecorded => "went on unrecorded".into(),
            ProcessEnding::Unknown => "not in the log".into(),
        }
    }

    fn code(self) -> &'static str {
        match self {
            ProcessEnding::Exit => "exit",
            ProcessEnding::Exec => "exec",
            ProcessEnding::Signal(_) => "signal",
            ProcessEnding::UnrecordedExec => "unrecorded_exec",
            ProcessEnding::Unseen => "unseen",
            ProcessEnding::Killed => "killed",
            ProcessEnding::Unrecorded => "unrecorded",
            ProcessEnding::Unknown => "unknown",
        }
    }

    fn signal(self) -> Option<i32> {
        if let ProcessEnding::Signal(signal) = self { Some(signal) } else { None }
    }
}

impl AllocLog {
    /// Returns how a process of the log ended.
    pub(super) fn process_ending(&self, number: usize) -> ProcessEnding {
        let process = &self.processes[number];
        let Some(end) = &process.end else { return ProcessEnding::Unknown };
        let pid = process.start.pid;
        let next = self.processes.iter().skip(number + 1).find(|next| next.start.pid == pid);
        let first = self.processes.first().map(|first| first.start.pid);
        let is_command = self.end.as_ref().and_then(|end| end.pid).or(first) == Some(pid);
        match &self.end {
            _ if end.is_abandoned => ProcessEnding::Unrecorded,
            _ if end.is_exit => ProcessEnding::Exit,
            _ if next.is_some_and(|next| !next.start.is_forked) => ProcessEnding::Exec,
            // The id is that of a later process by chance.
            _ if next.is_some() => ProcessEnding::Killed,
            Some(end) if end.has_program_after(&process.start) => ProcessEnding::UnrecordedExec,
            Some(RecordingEnd { signal: Some(signal), .. }) if is_command => {
                ProcessEnding::Signal(*signal)
            }
            Some(_) if is_command => ProcessEnding::Unseen,
            _ => ProcessEnding::Killed,
        }
    }
}

impl RecordingEnd {
    /// Returns whether a process went on as a program that was not recorded. One that has lost
    /// children is in the list with its own program.
    fn has_program_after(&self, start: &ProcessStart) -> bool {
        let is_next =
            |(pid, program): &(u32, String)| *pid == start.pid && *program != start.executable;
        self.unrecorded.iter().any(is_next)
    }
}

/// Returns the processes of a log as JSON.
pub(super) fn processes_json(log: &AllocLog) -> Vec<Value> {
    let json = |(number, process): (usize, &LoggedProcess)| {
        let (start, ending) = (&process.start, log.process_ending(number));
        json!({
            "number": number,
            "pid": start.pid,
            "parent": start.parent,
            "is_forked": start.is_forked,
            "command": process.command_line(),
            "executable": start.executable,
            "start_us": start.start_us,
            "duration_us": process.duration_us().1,
            "ending": ending.code(),
            "signal": ending.signal(),
            "is_cut": process.is_cut(),
            "calls": process.calls,
            "peak_bytes": process.peak_bytes,
            "end_bytes": process.live_bytes,
            "inherited_bytes": start.inherited_bytes,
            "marks": process.end.and_then(|end| end.marks),
            "number_values": process.end.and_then(|end| end.number_values),
        })
    };
    log.processes.iter().enumerate().map(json).collect()
}

/// Returns the section with the processes, if there are several.
pub(super) fn processes_section(subjects: &[AllocSubject<'_>]) -> Option<ReportSection> {
    let [subject] = subjects else { return None };
    if subject.log.processes.len() < 2 {
        return None;
    }
    let processes = &subject.log.processes;
    let mut numbers: Vec<usize> = (0..processes.len()).collect();
    numbers.sort_by_key(|number| {
        (*number != subject.process, std::cmp::Reverse(processes[*number].calls), *number)
    });
    let omitted = numbers.split_off(numbers.len().min(MAX_PROCESS_ROWS));
    numbers.sort_unstable();
    let marks = |process: &LoggedProcess| {
        let end = process.end.as_ref()?;
        Some((end.marks?, end.number_values?))
    };
    let has_marks = processes.iter().filter_map(marks).any(|found| found != (0, 0));
    let rows = numbers.into_iter().map(|number| {
        let process = &processes[number];
        let parent = process.start.parent.map_or("-".into(), |parent| parent.to_string());
        let mut row = vec![
            shorten_command(&process.command_line()),
            number.to_string(),
            parent,
            process.start.pid.to_string(),
            MeasureUnit::Time.format(process.duration_us().1 as f64),
            subject.log.process_ending(number).describe(),
            MeasureUnit::Count.format(process.calls as f64),
            MeasureUnit::Bytes.format(process.peak_bytes as f64),
        ];
        if has_marks {
            row.extend(match marks(process) {
                Some((marks, values)) => {
                    [marks, values].map(|count| MeasureUnit::Count.format(count as f64))
                }
                None => ["-".to_string(), "-".to_string()],
            });
        }
        row
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    let calls = omitted.iter().map(|number| processes[*number].calls).sum::<u64>();
    let mut head =
        vec!["command", "number", "parent", "process id", "time", "ended by", "calls", "peak"];
    if has_marks {
        head.extend(["marks", "values of numbers"]);
    }
    if !omitted.is_empty() {
        let mut row = vec![String::new(); head.len()];
        row[0] = format!("and {} with fewer calls, which JSON has", omitted.len());
        row[CALLS_COLUMN] = MeasureUnit::Count.format(calls as f64);
        rows.push(row);
    }
    Some(ReportSection {
        heading: "Processes".into(),
        text: format!(
            "This report is of process {}. Each program that a process begins has a line of its own. \
             The peak of a forked process includes the memory that it inherited.",
            subject.process
        ),
        charts: Vec::new(),
        tables: vec![ReportTable {
            title: "Processes".into(),
            head: head.into_iter().map(String::from).collect(),
            rows,
        }],
    })
}

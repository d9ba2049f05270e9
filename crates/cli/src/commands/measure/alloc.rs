//! `larder measure alloc`.

use super::report_output::{ReportFiles, finish_output, print_report};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{print_message, sanitize_line};
use crate::output_path::OutputPath;
use larder_measure::alloc_log::{
    AllocLog, AllocLogError, AllocSubject, LifetimeClock, StackProfile, analyse_process,
    build_report, report_json,
};
use std::path::{Path, PathBuf};

/// Analyse a log of allocator calls: live memory, sizes, lifetimes, phases
///
/// With a second log, compares them: FILE is before a change, OTHER after it. --html writes a
/// self-contained page with charts. Of several processes, the one with the highest peak of memory
/// of its own is analysed: what a fork inherits counts at its parent. With two logs, a second
/// --process is for OTHER; without it, both have the process of that number.
#[derive(Debug, clap::Args)]
pub(crate) struct AllocArgs {
    /// The log that `larder measure record` has written
    #[arg(value_name = "FILE")]
    log: PathBuf,
    /// A second log to compare with
    other: Option<PathBuf>,
    /// Also write a page with charts to this file
    #[arg(long, value_name = "PAGE")]
    html: Option<OutputPath>,
    /// Also write the charts over time to this file, as a picture for a document
    #[arg(long, value_name = "PICTURE")]
    svg: Option<OutputPath>,
    /// Analyse the process with this number in the list of processes
    #[arg(long, value_name = "NUMBER")]
    process: Vec<usize>,
    /// Leave calls that change a size out of lifetimes
    #[arg(long)]
    without_reallocs: bool,
}

impl AllocArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let paths: Vec<&Path> = [Some(&self.log), self.other.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect();
        if self.process.len() > paths.len() {
            let message = "--process is given more often than there are logs";
            return Err(CommandFailure::new(FailureKind::Usage, message));
        }
        let files = ReportFiles { html: self.html.as_ref(), svg: self.svg.as_ref() };
        files.check(context, &paths)?;
        let mut logs = Vec::new();
        for path in paths {
            logs.push((path, open_log(path)?));
        }
        let mut subjects = Vec::new();
        let mut is_damaged = false;
        for (number, (path, log)) in logs.iter().enumerate() {
            is_damaged |= log.damage.is_some();
            let process = self.process.get(number).or(self.process.last());
            subjects.push(self.analyse(path, log, process.copied())?);
        }
        // Logs of the same name in two folders are told apart by their paths.
        if let [before, after] = &mut subjects[..]
            && before.name == after.name
        {
            let path = |path: &Path| sanitize_line(&path.display().to_string());
            (before.name, after.name) = (path(logs[0].0), path(logs[1].0));
        }
        let report = build_report(&subjects);
        let written = files.write(context, &report);
        let printed = match context.format {
            OutputFormat::Json => subjects
                .iter()
                .try_for_each(|subject| context.out.print_json(&report_json(subject)))
                .map_err(CommandFailure::from),
            _ => print_report(context, &report),
        };
        finish_output(context, printed)?;
        finish_output(context, written)?;
        Ok(if is_damaged { CommandStatus::Rejected } else { CommandStatus::Done })
    }

    fn analyse<'a>(
        &self,
        path: &Path,
        log: &'a AllocLog,
        process: Option<usize>,
    ) -> Result<AllocSubject<'a>, CommandFailure> {
        let process = find_process(path, log, process)?;
        let clock = match self.without_reallocs {
            true => LifetimeClock::WithoutReallocs,
            false => LifetimeClock::AllCalls,
        };
        let analysis =
            analyse_process(log, process, clock).map_err(|error| log_failure(path, &error))?;
        let stacks = analysis
            .stacks
            .as_ref()
            .map(|stacks| StackProfile::new(&log.processes[process], stacks));
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Ok(AllocSubject { name: sanitize_line(&name), log, process, analysis, stacks })
    }
}

/// Opens a log, and names the part that cannot be used.
pub(super) fn open_log(path: &Path) -> Result<AllocLog, CommandFailure> {
    if path.as_os_str() == "-" {
        return Err(log_failure(Path::new("standard input"), &AllocLogError::NoFile));
    }
    let log = AllocLog::open(path).map_err(|error| log_failure(path, &error))?;
    if let Some(damage) = &log.damage {
        let name = sanitize_line(&path.display().to_string());
        print_message(
            "error",
            format!(
                "{name}: {} at byte {}; {} of {} bytes are left out",
                damage.reason, damage.offset, damage.bytes, log.bytes
            ),
        );
    }
    Ok(log)
}

/// Returns the process of this number, or the one with the highest peak of live memory of its own.
pub(super) fn find_process(
    path: &Path,
    log: &AllocLog,
    number: Option<usize>,
) -> Result<usize, CommandFailure> {
    let process = number.or_else(|| log.largest_process());
    process.filter(|process| *process < log.processes.len()).ok_or_else(|| {
        let name = sanitize_line(&path.display().to_string());
        let message = match number {
            Some(number) => format!("{name}: no process has the number {number}"),
            None => format!("{name}: no process was recorded"),
        };
        CommandFailure::new(FailureKind::NotFound, message)
    })
}

fn log_failure(path: &Path, error: &AllocLogError) -> CommandFailure {
    match error {
        AllocLogError::Read(error) => CommandFailure::from_file_error(path, error),
        AllocLogError::NoFile => CommandFailure::new(
            FailureKind::Usage,
            format!("{}: {error}", sanitize_line(&path.display().to_string())),
        )
        .with_hint("write the log to a file, and name that"),
        _ => CommandFailure::new(
            FailureKind::NotFound,
            format!("{}: {error}", sanitize_line(&path.display().to_string())),
        ),
    }
}

//! `larder measure memory`.

use super::report_output::{ReportFiles, finish_output, print_report};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output_path::OutputPath;
use larder_measure::command_signals::CommandSignals;
use larder_measure::memory_timeline::{memory_report, watch_command, watch_process};
use larder_measure::process_cost::exit_code;
use regex::bytes::Regex;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Sample the memory of a command and of the processes that it starts
///
/// Prints resident, proportional, private and anonymous memory, the processors in use, and the
/// memory by file, heap and stack near the peak and where each phase begins. The peak of the
/// largest process is exact; sums over processes are those of samples, 1 to 50 ms apart. The
/// command's standard output is discarded unless --show is given. --pid watches a process that
/// runs, until it ends or Control-C. The exit code is the exit code of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryArgs {
    /// Watch this process and its children
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// Begin a phase at lines on standard error that match; its name is the first group. After a
    /// pause within a line, an optional rest of more than one character is a phase of its own.
    /// Marks of the program itself are only seen by `larder measure record`
    #[arg(long, value_name = "REGEX", conflicts_with = "pid")]
    phases: Option<Regex>,
    /// Show the command's output
    #[arg(long)]
    show: bool,
    /// Also write a page with charts to this file
    #[arg(long, value_name = "PAGE")]
    html: Option<OutputPath>,
    /// Also write the charts over time to this file, as a picture for a document
    #[arg(long, value_name = "PICTURE")]
    svg: Option<OutputPath>,
    /// The command and its arguments, after --
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "pid")]
    command: Vec<OsString>,
}

impl MemoryArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let files = ReportFiles { html: self.html.as_ref(), svg: self.svg.as_ref() };
        files.check(context, &[])?;
        let interrupted = crate::interrupt::install_interrupt_flag();
        let signals = CommandSignals {
            interrupt: Arc::clone(&interrupted),
            termination: crate::interrupt::note_termination(),
        };
        let (name, timeline, status) = match (self.pid, self.command.split_first()) {
            (Some(pid), _) => {
                let timeline = watch_process(pid, &|| interrupted.load(Ordering::Relaxed))
                    .map_err(|error| {
                        CommandFailure::new(
                            FailureKind::NotFound,
                            format!("process {pid}: {error}"),
                        )
                    })?;
                (format!("process {pid}"), timeline, CommandStatus::Done)
            }
            (None, Some((program, arguments))) => {
                let output = if self.show { Stdio::inherit() } else { Stdio::null() };
                let mut command = Command::new(program);
                command.args(arguments).stdout(output);
                let phases = self.phases.clone();
                let phases = phases.map(|pattern| (pattern, Box::new(std::io::stderr()) as _));
                let (timeline, status) = watch_command(&mut command, phases, &signals)
                    .map_err(|error| CommandFailure::from_file_error(Path::new(program), &error))?;
                let words: Vec<_> =
                    self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
                (words.join(" "), timeline, CommandStatus::Command(exit_code(status)))
            }
            (None, None) => {
                return Err(CommandFailure::new(FailureKind::Usage, "missing command after --")
                    .with_hint("usage: larder measure memory -- COMMAND"));
            }
        };
        let report = memory_report(&name, &timeline);
        let written = files.write(context, &report);
        let printed = match context.format {
            OutputFormat::Json => serde_json::to_value(timeline)
                .map_err(std::io::Error::from)
                .and_then(|json| context.out.print_json(&json))
                .map_err(CommandFailure::from),
            _ => print_report(context, &report),
        };
        finish_output(context, printed)?;
        finish_output(context, written)?;
        Ok(status)
    }
}

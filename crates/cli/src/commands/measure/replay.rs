//! `larder measure replay`.

use super::alloc::{find_process, open_log};
use super::record::find_recorder;
use super::report_output::{ReportFiles, finish_output, print_report};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::sanitize_line;
use crate::output_path::OutputPath;
use larder_measure::alloc_log::{
    AllocLog, AllocLogError, NamedReplay, ReplayOptions, find_allocator, replay_json,
    replay_process, replay_report,
};
use std::path::{Path, PathBuf};

/// The allocator of libc.
const SYSTEM_ALLOCATOR: &str = "glibc";
/// Allocators that are replayed if they are installed.
const OTHER_ALLOCATORS: [&str; 2] = ["jemalloc", "mimalloc"];

/// Replay a log of allocator calls on other allocators, and compare their memory
///
/// Each allocator gets the same calls in a fresh process. Prints resident and live memory at the
/// peaks of both, at the end, and where their ratio is highest. Without --allocator: glibc, and of
/// jemalloc and mimalloc those that are installed.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The log that `larder measure record` has written
    #[arg(value_name = "FILE")]
    log: PathBuf,
    /// glibc, jemalloc, mimalloc, tcmalloc, or the path of a library; may be given several times
    #[arg(long, value_name = "NAME")]
    allocator: Vec<String>,
    /// Also write a page with a chart to this file
    #[arg(long, value_name = "PAGE")]
    html: Option<OutputPath>,
    /// Replay the process with this number in the list of processes
    #[arg(long, value_name = "NUMBER")]
    process: Option<usize>,
    /// The recorder's library, if it is not beside larder
    #[arg(long, value_name = "FILE")]
    recorder: Option<PathBuf>,
}

impl ReplayArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let files = ReportFiles { html: self.html.as_ref(), svg: None };
        files.check(context, &[&self.log])?;
        let log = open_log(&self.log)?;
        let process = find_process(&self.log, &log, self.process)?;
        let recorder = find_recorder(self.recorder.as_deref())?;
        let mut replays = Vec::new();
        for (name, library) in self.allocators()? {
            replays.push(self.replay(&log, process, &recorder, name, library.as_deref())?);
        }
        let name = sanitize_line(&self.log.display().to_string());
        let report = replay_report(&name, &replays);
        let written = files.write(context, &report);
        let printed = match context.format {
            OutputFormat::Json => {
                context.out.print_json(&replay_json(&name, &replays)).map_err(CommandFailure::from)
            }
            _ => print_report(context, &report),
        };
        finish_output(context, printed)?;
        finish_output(context, written)?;
        Ok(if log.damage.is_some() { CommandStatus::Rejected } else { CommandStatus::Done })
    }

    /// Returns names and libraries of the allocators.
    fn allocators(&self) -> Result<Vec<(String, Option<PathBuf>)>, CommandFailure> {
        if self.allocator.is_empty() {
            let others = OTHER_ALLOCATORS.iter().filter_map(|name| {
                find_allocator(name).map(|path| ((*name).to_string(), Some(path)))
            });
            return Ok([(SYSTEM_ALLOCATOR.to_string(), None)].into_iter().chain(others).collect());
        }
        let find = |name: &String| match name.as_str() {
            SYSTEM_ALLOCATOR => Ok((name.clone(), None)),
            path if path.contains('/') => std::fs::canonicalize(path)
                .map(|path| (name.clone(), Some(path)))
                .map_err(|error| CommandFailure::from_file_error(Path::new(path), &error)),
            _ => match find_allocator(name) {
                Some(path) => Ok((name.clone(), Some(path))),
                None => Err(CommandFailure::new(
                    FailureKind::NotFound,
                    format!("the allocator {} is not installed", sanitize_line(name)),
                )
                .with_hint("glibc, jemalloc, mimalloc, tcmalloc, or the path of a library")),
            },
        };
        self.allocator.iter().map(find).collect()
    }

    fn replay(
        &self,
        log: &AllocLog,
        process: usize,
        recorder: &Path,
        allocator: String,
        library: Option<&Path>,
    ) -> Result<NamedReplay, CommandFailure> {
        let failure = |error: AllocLogError| {
            let name = sanitize_line(&self.log.display().to_string());
            let AllocLogError::NoAllocation(_) = error else {
                let message = format!("{name}: {allocator}: {error}");
                return CommandFailure::new(FailureKind::Source, message);
            };
            let kind = match log.damage {
                Some(_) => FailureKind::Input,
                None => FailureKind::NotFound,
            };
            CommandFailure::new(kind, format!("{name}: {error}"))
                .with_hint("`larder measure alloc` lists the processes; --process chooses another")
        };
        let host = std::env::current_exe()
            .map_err(|error| CommandFailure::from_file_error(Path::new("larder"), &error))?;
        let options = ReplayOptions { recorder, host: &host, allocator: library };
        let result = replay_process(log, process, &options).map_err(failure)?;
        Ok(NamedReplay { allocator, result })
    }
}

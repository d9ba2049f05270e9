//! `larder measure record`.

use super::report_output::finish_output;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_bytes, format_count, format_grouped, print_message, sanitize_line};
use crate::output_path::{OutputPath, standard_output};
use larder_measure::alloc_log::{
    AllocLogError, RecordingOptions, RecordingSummary, UnrecordedProcess, UnrecordedReason,
    find_program, has_address_sanitizer, is_privileged_program, is_python_program, is_recorder,
    is_static_program, record_command,
};
use larder_measure::command_signals::CommandSignals;
use larder_measure::process_cost::exit_code;
use larder_store::{DataDirectory, OutputFile};
use regex::bytes::Regex;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The name of the recorder's library.
const RECORDER_NAME: &str = "liblarder_alloclog.so";

/// Record every allocator call of a command, and of the processes that it starts
///
/// Each call of malloc, free and their kin is written to a log, with its order, its size and the
/// age of the memory: as a rule 0.1 to 2 bytes for each call. `larder measure alloc FILE` analyses
/// the log. The exit code is the exit code of the command. docs/alloclog.md describes the log and
/// how a program marks its phases.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// The log to write
    #[arg(long, short, value_name = "FILE", default_value = "larder.alloclog")]
    out: OutputPath,
    /// Begin a phase at lines on standard error that match; its name is the first group. After a
    /// pause within a line, an optional rest of more than one character is a phase of its own
    #[arg(long, value_name = "REGEX")]
    phases: Option<Regex>,
    /// Record the call stack of one request in so many bytes, on average, such as 512k
    #[arg(long, value_name = "BYTES", value_parser = parse_stack_interval)]
    stacks: Option<u64>,
    /// The recorder's library, if it is not beside larder
    #[arg(long, value_name = "FILE")]
    recorder: Option<PathBuf>,
    /// The command and its arguments, after --
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl RecordArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        // Without the variable, these are the folders in which the system looks for programs.
        let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        if let Some(program) = self.command.first() {
            // Before the log is created, which would be left empty.
            let path = find_program(program, &folders).ok_or(ErrorKind::NotFound.into());
            path.and_then(std::fs::metadata)
                .map_err(|error| CommandFailure::from_file_error(Path::new(program), &error))?;
        }
        if let Some(program) = self.command.first()
            && is_static_program(program, &folders)
        {
            let program = sanitize_line(&program.to_string_lossy());
            let message = format!("{program} is a static program, whose calls cannot be recorded");
            return Err(CommandFailure::new(FailureKind::Usage, message)
                .with_hint("`larder measure memory` shows its memory over time"));
        }
        let options = RecordingOptions {
            recorder: find_recorder(self.recorder.as_deref())?,
            stack_interval: self.stacks.unwrap_or(0),
            other_libraries: std::env::var_os("LD_PRELOAD"),
            phases: self.phases.clone().map(|pattern| (pattern, Box::new(std::io::stderr()) as _)),
            is_standard_output: self.out.is_standard_output(),
            background_notice: (!context.quiet).then(|| Box::new(print_background_note) as _),
            capacity_log2: None,
            signals: CommandSignals {
                interrupt: crate::interrupt::install_interrupt_flag(),
                termination: crate::interrupt::note_termination(),
            },
        };
        let path = self.out.path();
        let file = create_log(context, &self.out)?;
        let summary =
            record_command(&self.command, file, options).map_err(|error| record_failure(&error))?;
        let hint = self.program_hint(&folders, &summary);
        let printed = print_summary(context, path, &summary, hint.as_deref());
        finish_output(context, printed)?;
        if let Some(hint) = self.python_hint(&folders) {
            context.print_note(hint);
        }
        // A failure to write does not hide behind the success of the command.
        let failure = failure_of(path, &summary);
        match (failure, exit_code(summary.status)) {
            (Some(message), 0) => {
                let failure = CommandFailure::new(FailureKind::Source, message);
                Err(hint.into_iter().fold(failure, CommandFailure::with_hint))
            }
            (_, code) => Ok(CommandStatus::Command(code)),
        }
    }
}

impl RecordArgs {
    /// Returns why no process was recorded, if the program shows the reason.
    fn program_hint(&self, folders: &OsStr, summary: &RecordingSummary) -> Option<String> {
        let program = self.command.first().filter(|_| summary.processes == 0)?;
        let reason = if is_privileged_program(program, folders) {
            "is setuid, setgid or has capabilities, and the system loads no other library into it: \
             record a copy of the file, which has no such rights, or as its user"
        } else if has_address_sanitizer(program, folders) {
            "is built with AddressSanitizer, which has an allocator of its own and refuses the \
             recorder: record a build without -fsanitize=address"
        } else {
            return None;
        };
        Some(format!("{} {reason}", sanitize_line(&program.to_string_lossy())))
    }

    /// Says what is missing in the log of a Python with its own allocator.
    fn python_hint(&self, folders: &OsStr) -> Option<&'static str> {
        let is_python = is_python_program(self.command.first()?, folders);
        (is_python && std::env::var_os("PYTHONMALLOC").is_none()).then_some(
            "Python takes memory for small objects by mmap, which is not recorded: set \
             PYTHONMALLOC=malloc to record it",
        )
    }
}

/// Reads a number of bytes, in units of 1024 if `k` follows, or of its square if `m` does.
fn parse_stack_interval(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.to_ascii_lowercase() {
        text if text.ends_with('k') => (text.trim_end_matches('k').to_string(), 1 << 10),
        text if text.ends_with('m') => (text.trim_end_matches('m').to_string(), 1 << 20),
        text => (text, 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let bytes = bytes.filter(|bytes| (1..=1 << 40).contains(bytes));
    bytes.ok_or_else(|| "a number of bytes from 1 on is needed, such as 512k".into())
}

/// Opens the log, readable by this user only: it names programs and their arguments. It has its
/// name from the start, so that each recorded call is there whatever happens. Its former contents
/// are replaced when the command has started.
fn create_log(context: &mut CommandContext, out: &OutputPath) -> Result<File, CommandFailure> {
    if out.is_standard_output() {
        context.out.divert_to_standard_error()?;
        return Ok(standard_output()?);
    }
    let path = out.path();
    OutputFile::check_path(&DataDirectory::new(&context.dir), path)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let failure = |error| CommandFailure::from_file_error(path, &error);
    let file = options.open(path).map_err(failure)?;
    // Devices may be locked by anybody.
    if !file.metadata().map_err(failure)?.is_file() {
        return Ok(file);
    }
    // Two recordings to one file would leave neither.
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        let name = sanitize_line(&path.display().to_string());
        let message = format!("{name} is locked, likely by another recording to it");
        return Err(
            CommandFailure::new(FailureKind::Source, message).with_hint("--out names another file")
        );
    }
    Ok(file)
}

/// Finds the recorder: the file that was named, or the one beside this program.
pub(super) fn find_recorder(named: Option<&Path>) -> Result<PathBuf, CommandFailure> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None => std::env::current_exe()
            .map_err(|error| CommandFailure::from_file_error(Path::new("larder"), &error))?
            .with_file_name(RECORDER_NAME),
    };
    let hint = "`make install` installs it beside larder; --recorder names it elsewhere";
    let found = std::fs::canonicalize(&path)
        .map_err(|error| CommandFailure::from_file_error(&path, &error).with_hint(hint))?;
    if !is_recorder(&found) {
        let path = sanitize_line(&path.display().to_string());
        let message = format!("{path} is not the recorder of larder, {RECORDER_NAME}");
        return Err(CommandFailure::new(FailureKind::Usage, message).with_hint(hint));
    }
    Ok(found)
}

fn record_failure(error: &AllocLogError) -> CommandFailure {
    match error {
        AllocLogError::Command(program, error) => {
            CommandFailure::from_file_error(Path::new(program), error)
        }
        AllocLogError::NoCommand => CommandFailure::new(FailureKind::Usage, error.to_string()),
        _ => CommandFailure::new(FailureKind::Source, error.to_string()),
    }
}

/// Names a process that was not recorded, and the reason.
fn describe_unrecorded(process: &UnrecordedProcess) -> String {
    let (program, pid) = (sanitize_line(&process.program), process.pid);
    let reason = match process.reason {
        UnrecordedReason::Static => "it is a static program",
        UnrecordedReason::NoPreload => "it ran without LD_PRELOAD",
        UnrecordedReason::OtherPreload => {
            "its LD_PRELOAD has other libraries in place of the recorder; set that variable for \
             larder, which adds the recorder to them"
        }
        UnrecordedReason::NotLoaded => "the recorder was not loaded into it",
        UnrecordedReason::OtherRecording => "it is recorded by another larder",
        UnrecordedReason::Privileged => {
            "it is setuid, setgid or has capabilities, and the system loads no other library into it"
        }
        UnrecordedReason::OtherRoot => {
            "it has another root directory (chroot), where larder cannot be reached"
        }
        UnrecordedReason::OtherVersion => "the recorder in it is of another version of larder",
        UnrecordedReason::NoRing => {
            "it could not make the memory file that larder reads, or send it (ulimit -f, -v, or its \
             rights)"
        }
        UnrecordedReason::TooManyFiles => {
            "larder had too many files open to take its ring; raise the limit for larder (ulimit -n)"
        }
        UnrecordedReason::LostChildren(1) => {
            return format!(
                "a child of {program} (process {pid}) was not recorded: it did not reach larder"
            );
        }
        UnrecordedReason::LostChildren(children) => {
            return format!(
                "{children} children of {program} (process {pid}) were not recorded: they did not \
                 reach larder"
            );
        }
    };
    format!("{program} (process {pid}) was not recorded: {reason}")
}

/// Says that the log stays open after the end of the command.
fn print_background_note(program: &str, pid: u32, processes: usize) {
    let program = sanitize_line(program);
    let others = match processes - 1 {
        0 => String::new(),
        1 => " and another process".into(),
        others => format!(" and {others} other processes"),
    };
    print_message(
        "note",
        format!(
            "the command has ended; {program} (process {pid}){others} went on and is still recorded, \
             until Control-C"
        ),
    );
}

/// Returns what is wrong with the log, if it does not have what it should.
fn failure_of(path: &Path, summary: &RecordingSummary) -> Option<String> {
    let name = sanitize_line(&path.display().to_string());
    match &summary.write_failure {
        Some(failure) => Some(format!("{name}: {failure}; the log ends there")),
        None if summary.processes == 0 => Some(format!("{name}: no process was recorded")),
        None => None,
    }
}

fn print_summary(
    context: &mut CommandContext,
    path: &Path,
    summary: &RecordingSummary,
    hint: Option<&str>,
) -> Result<(), CommandFailure> {
    if let Some(message) = failure_of(path, summary)
        && exit_code(summary.status) != 0
    {
        print_message("error", message);
        if let Some(hint) = hint {
            print_message("hint", hint);
        }
    }
    if summary.processes > 0 && summary.calls == 0 && summary.write_failure.is_none() {
        context.print_warning(
            "no call is in the log: the program made none, or has an allocator of its own",
        );
    }
    for process in &summary.unrecorded {
        context.print_warning(describe_unrecorded(process));
    }
    for process in &summary.abandoned {
        let (program, pid) = (sanitize_line(&process.program), process.pid);
        let calls = format_grouped(process.calls);
        context.print_warning(format!(
            "{program} (process {pid}) was recorded in part: after {calls} calls larder did not \
             read its ring for 10 seconds, or found damage there"
        ));
    }
    if let Some(failure) = &summary.connection_failure {
        context.print_warning(format!(
            "a connection of a process could not be accepted, which is perhaps not recorded: {failure}"
        ));
    }
    if context.format == OutputFormat::Json {
        context.out.print_json(&serde_json::json!({
            "log": path.display().to_string(),
            "code": exit_code(summary.status),
            "processes": summary.processes,
            "calls": summary.calls,
            "lost_calls": summary.lost_calls,
            "bytes": summary.bytes,
            "unrecorded": summary.unrecorded,
            "abandoned": summary.abandoned,
            "connection_failure": summary.connection_failure,
            "write_failure": summary.write_failure,
        }))?;
        return Ok(());
    }
    if !context.quiet {
        let calls = format_count(summary.calls, "call");
        let processes = format_count(summary.processes as u64, "program");
        let lost = match summary.lost_calls {
            0 => String::new(),
            lost => format!("; {} later calls are lost", format_grouped(lost)),
        };
        context.print_note(format!(
            "recorded {calls} of {processes} in {} ({}){lost}",
            path.display(),
            format_bytes(summary.bytes)
        ));
    }
    Ok(())
}

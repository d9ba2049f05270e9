//! The command of a recording: how it is recorded, and its start with the recorder in it.

use super::AllocLogError;
use super::preload_list::preload_list;
use super::ring_layout::ENVIRONMENT_VARIABLE;
use crate::command_signals::CommandSignals;
use regex::bytes::Regex;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The logarithm of the number of words of a ring: 2 MiB. Measured: below 2^16 writers wait, above
/// 2^18 nothing is gained.
pub(super) const CAPACITY_LOG2: u32 = 18;

/// A function that tells of processes in the background: the program and the id of one, and their
/// number.
pub type BackgroundNotice = Box<dyn FnOnce(&str, u32, usize)>;

/// How a command is recorded.
pub struct RecordingOptions {
    /// The library `liblarder_alloclog.so`.
    pub recorder: PathBuf,
    /// The mean distance of samples of call stacks, in bytes asked for; 0: none are taken.
    pub stack_interval: u64,
    /// Other libraries to load into the command, as in `LD_PRELOAD`.
    pub other_libraries: Option<OsString>,
    /// Lines on standard error that match begin a phase: the name is the first group, else the
    /// whole match. Standard error is passed on to this.
    pub phases: Option<(Regex, Box<dyn Write + Send>)>,
    /// The log goes to standard output, and the output of the command to standard error. Else an
    /// earlier log is replaced, once the command has started.
    pub is_standard_output: bool,
    /// Gets processes in the background, once, if there are any a second after the end of the
    /// command.
    pub background_notice: Option<BackgroundNotice>,
    /// The logarithm of the number of words of a ring; `None`: the usual size.
    pub capacity_log2: Option<u32>,
    /// A request to end is sent on to the command, and the log is closed when that has ended. An
    /// interrupt after its end closes the log, although processes in the background go on.
    pub signals: CommandSignals,
}

/// Starts the command with the recorder in it.
pub(super) fn start_command(
    command: &[OsString],
    socket: &Path,
    options: &RecordingOptions,
) -> Result<Child, AllocLogError> {
    let (program, arguments) = command.split_first().ok_or(AllocLogError::NoCommand)?;
    let capacity_log2 = options.capacity_log2.unwrap_or(CAPACITY_LOG2);
    let settings = format!(
        "{capacity_log2}:{}:{}:{}",
        options.stack_interval,
        std::process::id(),
        socket.display()
    );
    let folder = socket.parent().unwrap_or(Path::new("/"));
    let mut preload = preload_list(&[&options.recorder], folder)?;
    if let Some(others) = options.other_libraries.as_ref().filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let messages = if options.phases.is_some() { Stdio::piped() } else { Stdio::inherit() };
    let failure = |error| AllocLogError::Command(program.to_string_lossy().into_owned(), error);
    let output = match options.is_standard_output {
        true => Stdio::from(std::io::stderr().as_fd().try_clone_to_owned().map_err(failure)?),
        false => Stdio::inherit(),
    };
    Command::new(program)
        .args(arguments)
        .env(ENVIRONMENT_VARIABLE, settings)
        .env("LD_PRELOAD", preload)
        .stdout(output)
        .stderr(messages)
        .spawn()
        .map_err(failure)
}

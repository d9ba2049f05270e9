//! Running another program for its output.

use crate::error::Error;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// The end of an error text that is kept.
const MAX_ERROR_CHARS: usize = 500;

/// Runs a program and returns its standard output.
///
/// # Errors
/// The program cannot be started, or reports a failure.
pub(super) fn run_program<S: AsRef<OsStr>>(
    program: &str,
    arguments: &[S],
) -> Result<Vec<u8>, Error> {
    let failed = |reason: String| Error::Program { program: program.to_string(), reason };
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let reason: String = text.trim().chars().take(MAX_ERROR_CHARS).collect();
    let status = output.status.to_string();
    Err(failed(if reason.is_empty() { status } else { format!("{status}: {reason}") }))
}

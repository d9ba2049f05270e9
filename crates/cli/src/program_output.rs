//! Running another mail program for its output.
//!
//! Apart from the libraries, because the program is found, and finds its own settings, by the
//! environment.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::process::{Child, Command, Stdio};

/// The largest output that is read: that of a file of labels.
const MAX_OUTPUT_BYTES: u64 = 1 << 30;
/// The start of an error text that is kept.
const MAX_ERROR_BYTES: u64 = 500;

/// Runs a program and returns its standard output, or the reason that there is none.
pub(crate) fn run_program(program: &str, arguments: &[OsString]) -> Result<Vec<u8>, String> {
    run_bounded(program, arguments, MAX_OUTPUT_BYTES)
}

fn run_bounded(program: &str, arguments: &[OsString], max_bytes: u64) -> Result<Vec<u8>, String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let output = read_output(&mut child, max_bytes);
    if !matches!(&output, Ok((bytes, _)) if bytes.len() as u64 <= max_bytes) {
        // It may have ended already.
        drop(child.kill());
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let (bytes, errors) = output.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it printed more than {max_bytes} bytes"));
    }
    if status.success() {
        return Ok(bytes);
    }
    let errors = errors.trim();
    Err(if errors.is_empty() { status.to_string() } else { format!("{status}: {errors}") })
}

/// Reads what a program prints, at most one byte more than the limit, and the start of its errors.
/// Both are read at the same time: the program waits for a full pipe.
fn read_output(child: &mut Child, max_bytes: u64) -> io::Result<(Vec<u8>, String)> {
    let errors = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || -> io::Result<String> {
            let mut start = Vec::new();
            pipe.by_ref().take(MAX_ERROR_BYTES).read_to_end(&mut start)?;
            io::copy(&mut pipe, &mut io::sink())?;
            Ok(String::from_utf8_lossy(&start).into_owned())
        })
    });
    let mut bytes = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        pipe.take(max_bytes + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > max_bytes {
        return Ok((bytes, String::new()));
    }
    let errors = match errors.map(std::thread::JoinHandle::join) {
        Some(Ok(errors)) => errors?,
        _ => String::new(),
    };
    Ok((bytes, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(script: &str) -> Result<Vec<u8>, String> {
        run_bounded("/bin/sh", &["-c".into(), script.into()], 10_000)
    }

    #[test]
    fn output_is_bounded() {
        assert_eq!(run_shell("echo a"), Ok(b"a\n".to_vec()));
        assert_eq!(run_shell("exit 3"), Err("exit status: 3".to_string()));
        assert_eq!(run_shell("echo no >&2; exit 1"), Err("exit status: 1: no".to_string()));
        // Without end, on both.
        assert_eq!(run_shell("yes"), Err("it printed more than 10000 bytes".to_string()));
        let long = run_shell("head -c 300000 /dev/zero | tr '\\0' x >&2; exit 1");
        assert_eq!(long.map_err(|text| text.len()), Err(516));
        assert!(run_bounded("/no/program", &[], 1).is_err());
    }
}

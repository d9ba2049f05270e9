//! Running another mail program for its output.
//!
//! Apart from the libraries, because the program is found, and finds its own settings, by the
//! environment.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read as _};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};

/// The largest output that is read: that of a file of labels.
const MAX_OUTPUT_BYTES: u64 = 1 << 30;
/// The longest line of an output that is read by line: the tags of one message.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// The start of an error text that is kept.
const MAX_ERROR_BYTES: u64 = 500;

/// Runs a program and returns its standard output, or the reason that there is none.
pub(crate) fn run_program(program: &str, arguments: &[OsString]) -> Result<Vec<u8>, String> {
    run_bounded(program, arguments, MAX_OUTPUT_BYTES)
}

/// Runs a program and passes each line of its standard output to `visit`, while it runs. Returns
/// the reason if it fails; the lines may then be a part of its output.
pub(crate) fn run_program_by_line(
    program: &str,
    arguments: &[OsString],
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), String> {
    run_and_read(program, arguments, |pipe| read_lines(BufReader::new(pipe), visit))
}

fn run_bounded(program: &str, arguments: &[OsString], max_bytes: u64) -> Result<Vec<u8>, String> {
    run_and_read(program, arguments, |pipe| {
        let mut bytes = Vec::new();
        let read = pipe.take(max_bytes + 1).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        match bytes.len() as u64 > max_bytes {
            true => Err(format!("it printed more than {max_bytes} bytes")),
            false => Ok(bytes),
        }
    })
}

/// Passes each line to `visit`.
fn read_lines(mut input: impl BufRead, visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            return Ok(());
        }
        if line.len() as u64 > MAX_LINE_BYTES {
            return Err(format!("it printed a line of more than {MAX_LINE_BYTES} bytes"));
        }
        visit(line.strip_suffix(b"\n").unwrap_or(&line));
    }
}

/// Runs a program, and reads its standard output with `read`, which ends the program if it fails.
/// Its errors are read at the same time: the program waits for a full pipe.
fn run_and_read<T>(
    program: &str,
    arguments: &[OsString],
    read: impl FnOnce(ChildStdout) -> Result<T, String>,
) -> Result<T, String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let errors = child.stderr.take().map(|pipe| std::thread::spawn(|| read_errors(pipe)));
    let output = match child.stdout.take() {
        Some(pipe) => read(pipe),
        None => Err("it has no output".to_string()),
    };
    if output.is_err() {
        // It may have ended already. What it started may keep its errors open.
        drop(child.kill());
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let output = output?;
    if status.success() {
        return Ok(output);
    }
    let errors = match errors.map(std::thread::JoinHandle::join) {
        Some(Ok(errors)) => errors.map_err(|error| error.to_string())?,
        _ => String::new(),
    };
    let errors = errors.trim();
    Err(if errors.is_empty() { status.to_string() } else { format!("{status}: {errors}") })
}

/// Reads the errors that a program prints, and returns their start.
fn read_errors(mut pipe: ChildStderr) -> io::Result<String> {
    let mut start = Vec::new();
    pipe.by_ref().take(MAX_ERROR_BYTES).read_to_end(&mut start)?;
    io::copy(&mut pipe, &mut io::sink())?;
    Ok(String::from_utf8_lossy(&start).into_owned())
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

    #[test]
    fn lines_are_passed_while_the_program_runs() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        // It prints the second line when the first one was read, and fails if nobody reads it.
        let script = format!(
            "echo a; for n in $(seq 500); do [ -e '{}' ] && printf b && exit; sleep 0.02; done; exit 1",
            seen.display()
        );
        let mut lines = Vec::new();
        let ran = run_program_by_line("/bin/sh", &["-c".into(), script.into()], &mut |line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            std::fs::write(&seen, "").unwrap();
        });
        assert_eq!((ran, lines), (Ok(()), vec!["a".to_string(), "b".to_string()]));
        let run = |script: &str| {
            run_program_by_line("/bin/sh", &["-c".into(), script.into()], &mut |_| {})
        };
        assert_eq!(run("echo a; echo no >&2; exit 1"), Err("exit status: 1: no".to_string()));
        let long = "it printed a line of more than 16777216 bytes".to_string();
        assert_eq!(run("tr '\\0' x < /dev/zero"), Err(long));
    }
}

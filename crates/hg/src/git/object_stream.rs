//! Many objects, read one after the other: git is told ahead which ones follow, so that it reads
//! the next ones while one is looked at.

use super::repository::{GitDirectory, GitDirectoryError};
use crate::object_id::GitId;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::process::Stdio;

/// An object of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamedObject<'o> {
    pub(crate) id: GitId,
    /// The kind as git names it; empty: the object is missing.
    pub(crate) kind: &'o str,
    /// Empty if only the kinds are asked for.
    pub(crate) content: &'o [u8],
}

/// Whether the contents of objects are read, or only their kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamContent {
    Contents,
    Kinds,
}

impl GitDirectory {
    /// Reads objects in the order of the ids, and passes each one on; after an error none.
    pub(crate) fn stream_objects<E: From<GitDirectoryError>>(
        &self,
        ids: impl Iterator<Item = GitId> + Send,
        wanted: StreamContent,
        mut each: impl FnMut(StreamedObject<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let command = "cat-file";
        let pipe_error = |source| GitDirectoryError::Pipe { command, source };
        let has_contents = wanted == StreamContent::Contents;
        let mut child = self
            .command(command)
            .arg(if has_contents { "--batch" } else { "--batch-check" })
            .arg("--buffer")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(pipe_error)?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let result = std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut requests = BufWriter::new(requests?);
                for id in ids {
                    // git that has ended answers no more, which is reported below.
                    writeln!(requests, "{id}").ok()?;
                }
                requests.flush().ok()
            });
            let mut answers = BufReader::with_capacity(
                1 << 16,
                answers.ok_or_else(|| pipe_error(io::ErrorKind::BrokenPipe.into()))?,
            );
            let mut content = Vec::new();
            let mut header = Vec::new();
            loop {
                header.clear();
                answers.read_until(b'\n', &mut header).map_err(pipe_error)?;
                if header.is_empty() {
                    return Ok(());
                }
                let (id, kind, len) =
                    parse_header(&header).ok_or(GitDirectoryError::Output { command })?;
                content.clear();
                if has_contents && !kind.is_empty() {
                    (&mut answers).take(len + 1).read_to_end(&mut content).map_err(pipe_error)?;
                    if content.pop() != Some(b'\n') || content.len() as u64 != len {
                        return Err(pipe_error(io::ErrorKind::UnexpectedEof.into()).into());
                    }
                }
                each(StreamedObject { id, kind, content: &content })?;
            }
        });
        // Its output is closed, so it ends, also if not all was read.
        let status = child.wait().map_err(pipe_error)?;
        if result.is_ok() && !status.success() {
            let message = status.to_string();
            return Err(GitDirectoryError::Failed { command, message }.into());
        }
        result
    }

    /// Reads a tree of notes: keys of 20 bytes, and the object of each.
    pub(crate) fn stream_notes<E: From<GitDirectoryError>>(
        &self,
        notes: GitId,
        mut each: impl FnMut([u8; 20], GitId) -> Result<(), E>,
    ) -> Result<(), E> {
        let command = "ls-tree";
        let pipe_error = |source| GitDirectoryError::Pipe { command, source };
        let mut child = self
            .command(command)
            .args(["-r", "-z", &notes.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(pipe_error)?;
        let mut lines = child.stdout.take().map(|lines| BufReader::with_capacity(1 << 16, lines));
        let mut line = Vec::new();
        let result = loop {
            line.clear();
            let read = lines.as_mut().map_or(Ok(0), |lines| lines.read_until(0, &mut line));
            match read {
                Ok(0) => break Ok(()),
                Ok(_) => {
                    line.pop();
                    let note = parse_note(&line).ok_or(GitDirectoryError::Output { command });
                    let passed = note.map_err(E::from).and_then(|(key, id)| each(key, id));
                    if passed.is_err() {
                        break passed;
                    }
                }
                Err(error) => break Err(pipe_error(error).into()),
            }
        };
        // git ends when nobody reads.
        drop(lines);
        let status = child.wait().map_err(pipe_error)?;
        if result.is_ok() && !status.success() {
            let message = status.to_string();
            return Err(GitDirectoryError::Failed { command, message }.into());
        }
        result
    }
}

/// Reads `MODE KIND ID<tab>PATH`; the digits of the key are in the path, with slashes.
fn parse_note(line: &[u8]) -> Option<([u8; 20], GitId)> {
    let (object, path) = line.split_at_checked(memchr::memchr(b'\t', line)?)?;
    let id = GitId::from_hex(object.rsplit(|byte| *byte == b' ').next()?)?;
    let digits: Vec<u8> = path.iter().copied().filter(|byte| !b"\t/".contains(byte)).collect();
    Some((GitId::from_hex(&digits)?.0, id))
}

/// Reads `ID KIND LENGTH` or `ID missing`; the kind of the latter is empty.
fn parse_header(header: &[u8]) -> Option<(GitId, &str, u64)> {
    let header = std::str::from_utf8(header).ok()?;
    let mut words = header.split_ascii_whitespace();
    let id = GitId::from_hex(words.next()?.as_bytes())?;
    match words.next()? {
        "missing" => Some((id, "", 0)),
        kind => Some((id, kind, words.next()?.parse().ok()?)),
    }
}

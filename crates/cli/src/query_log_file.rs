//! The file of the query log: whole lines, shared by all processes, rotated when it is large.
//!
//! Separate from `larder_query::query_log`, which formats the lines, because only the binary opens
//! files. Several processes append at the same time, and any of them may rotate the file. Each
//! therefore locks the file briefly and checks that the path still names the open file. A file that
//! is no query log is neither appended to nor renamed.

use crate::failure::CommandFailure;
use crate::output::{print_message, sanitize_line};
use crate::output_path::{OutputPath, standard_output};
use larder_query::query_log::{JsonLinesLog, QueryLogSink};
use larder_store::{DataDirectory, FilePrivacy, OutputError, OutputFile};
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A larger log is rotated.
const MAX_LOG_BYTES: u64 = 16 << 20;

/// The bytes at the beginning of a file that tell whether it is a query log.
const HEAD_BYTES: u64 = 4 << 10;

/// Returns a query log in this file, which is created when the first line is written. A file of the
/// store is a wrong option; any other failure is a warning later.
pub(crate) fn open_sink(
    data_dir: &Path,
    path: &OutputPath,
    quiet: bool,
) -> Result<Arc<dyn QueryLogSink>, CommandFailure> {
    if path.is_standard_output() {
        return Ok(Arc::new(JsonLinesLog::new(standard_output()?)));
    }
    let directory = DataDirectory::new(data_dir);
    OutputFile::check_path(&directory, path.path())?;
    Ok(Arc::new(JsonLinesLog::new(QueryLogFile {
        directory,
        path: path.path().to_path_buf(),
        max_bytes: MAX_LOG_BYTES,
        file: None,
        is_warning_pending: !quiet,
    })))
}

struct QueryLogFile {
    directory: DataDirectory,
    path: PathBuf,
    max_bytes: u64,
    file: Option<File>,
    /// The first failure is reported, and no other.
    is_warning_pending: bool,
}

impl Write for QueryLogFile {
    /// Writes whole lines. A failure is only a warning: no command fails for it.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.append(lines) {
            self.file = None;
            if std::mem::take(&mut self.is_warning_pending) {
                let path = sanitize_line(&self.path.display().to_string());
                print_message("warning", format!("cannot write the query log {path}: {error}"));
            }
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl QueryLogFile {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        loop {
            let (mut file, is_new) = match self.file.take() {
                Some(file) => (file, false),
                None => (open_log(&self.directory, &self.path)?, true),
            };
            // Lines are appended whole even if the file cannot be locked.
            let locked = file.lock().is_ok();
            let about = file.metadata()?;
            if !about.is_file() {
                return file.write_all(lines).map(|()| self.file = Some(file));
            }
            if !is_same_file(&self.path, about.dev(), about.ino()) {
                // Another process has rotated it in the meantime.
                continue;
            }
            // Only now: without the lock, the path may name the next file, which is still empty.
            if is_new && about.len() > 0 && !is_query_log(&self.path)? {
                return Err(io::Error::other("the file exists and is not a query log"));
            }
            let full = about.len() > 0 && about.len() + lines.len() as u64 > self.max_bytes;
            // Processes that wait for the lock find another file of this name.
            if full && locked && self.rotate().is_ok() {
                continue;
            }
            let written = file.write_all(lines);
            let _unlocked = file.unlock();
            self.file = Some(file);
            return written;
        }
    }

    /// Renames the full log. The file that it replaces must be a log, too.
    fn rotate(&self) -> io::Result<()> {
        let rotated = rotated_path(&self.path);
        if rotated.exists() && !is_query_log(&rotated)? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        std::fs::rename(&self.path, rotated)
    }
}

/// Opens the file, which only its owner may read, in a folder with the same permissions.
fn open_log(directory: &DataDirectory, path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match OutputFile::append(directory, path, FilePrivacy::Private) {
        Err(OutputError::File { source, .. }) => Err(source),
        result => result.map_err(io::Error::other),
    }
}

/// Returns whether a file begins with a line of a query log.
fn is_query_log(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |text: &[u8]| line.windows(text.len()).any(|window| window == text);
    Ok(line.starts_with(b"{") && has(br#""event":""#))
}

fn is_same_file(path: &Path, dev: u64, ino: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.dev() == dev && about.ino() == ino)
}

/// Returns the name of the rotated file: `queries.jsonl.1`.
fn rotated_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn log(path: &Path, largest: u64) -> QueryLogFile {
        QueryLogFile {
            directory: DataDirectory::new("/nonexistent"),
            path: path.to_path_buf(),
            max_bytes: largest,
            file: None,
            is_warning_pending: true,
        }
    }

    /// Two writers at once lose and break no line, and rotate the log once, not twice.
    #[test]
    fn two_writers_rotate_the_log_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/queries.jsonl");
        const LINES: usize = 400;
        // The first file holds most lines, so a second rotation would lose them.
        let length = "{\"event\":\"writer 0 line 0000\"}\n".len();
        let largest = (LINES * length * 3 / 2) as u64;
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let mut log = log(&path, largest);
                scope.spawn(move || {
                    for line in 0..LINES {
                        let line = format!("{{\"event\":\"writer {writer} line {line:04}\"}}\n");
                        log.write_all(line.as_bytes()).unwrap();
                    }
                });
            }
        });
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let (before, now) = (read(&rotated_path(&path)), read(&path));
        assert!(before.len() as u64 <= largest && !now.is_empty());
        let both = before + &now;
        let lines: BTreeSet<&str> = both.lines().collect();
        assert_eq!((both.lines().count(), lines.len()), (2 * LINES, 2 * LINES));
        assert!(lines.iter().all(|line| line.len() + 1 == length), "{lines:?}");
        for (path, mode) in [(path.as_path(), 0o600), (path.parent().unwrap(), 0o700)] {
            assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, mode);
        }
    }

    /// A process that opens the log while another rotates it takes neither file for something else.
    #[test]
    fn a_log_is_opened_during_rotations() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("queries.jsonl");
        let line = b"{\"event\":\"end\"}\n";
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mut log = log(&path, 2 * line.len() as u64);
                        log.write_all(line).unwrap();
                        assert!(log.is_warning_pending, "a line was lost");
                    }
                });
            }
        });
    }

    /// Neither a full file that is no log nor one in place of the rotated log is touched.
    #[test]
    fn a_file_that_is_no_log_stays() {
        let dir = tempfile::tempdir().unwrap();
        let line = b"{\"event\":\"end\"}\n";
        let path = dir.path().join("notes.txt");
        std::fs::write(&path, "notes, more than fit\n").unwrap();
        log(&path, 10).write_all(line).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"notes, more than fit\n");
        assert!(!rotated_path(&path).exists());
        let path = dir.path().join("queries.jsonl");
        std::fs::write(rotated_path(&path), "notes").unwrap();
        for _ in 0..3 {
            log(&path, 10).write_all(line).unwrap();
        }
        assert_eq!(std::fs::read(rotated_path(&path)).unwrap(), b"notes");
        assert_eq!(std::fs::read(&path).unwrap(), line.repeat(3));
    }

    /// A terminal or /dev/null is not rotated.
    #[test]
    fn a_device_is_not_rotated() {
        let mut log = log(Path::new("/dev/null"), 1);
        log.write_all(b"one\n").unwrap();
        log.write_all(b"two\n").unwrap();
        assert!(log.is_warning_pending && log.file.is_some());
    }
}

//! Finding the files to import.
//!
//! It reads no content. It is apart so that what counts as an address book on disk, and in which order
//! they come, can be read in one place.

use super::{Input, Notice};
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How standard input is called in messages.
const STANDARD_INPUT: &str = "standard input";
/// Names of inputs that are written out in the log before "and N more".
const NAMED: usize = 3;
/// What address books and calendars are called.
const ENDINGS: &[&str] = &["vcf", "vcard", "ics", "ical", "ifb", "icalendar", "vcs"];
/// Those of them that calendars are called.
const CALENDARS: &[&str] = &["ics", "ical", "ifb", "icalendar", "vcs"];
/// What a list of names is cut to, in characters.
const NAMES_LIMIT: usize = 200;

/// One stream of bytes to read.
pub(super) enum Source {
    /// A file that was there when it was looked for.
    File(PathBuf),
    /// A stream that is open already.
    Stream(Box<dyn Read + Send>),
}

impl Source {
    /// Is it a calendar, by its name?
    pub(super) fn is_called_calendar(&self) -> bool {
        let Source::File(path) = self else { return false };
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        CALENDARS.contains(&&*ending)
    }

    /// Its name without folder and ending; nothing for a stream.
    pub(super) fn stem(&self) -> String {
        match self {
            Source::File(path) => {
                path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
            }
            Source::Stream(_) => String::new(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => path.display().fmt(f),
            Source::Stream(_) => f.write_str(STANDARD_INPUT),
        }
    }
}

/// What was found where the inputs point to.
#[derive(Default)]
pub(super) struct Files {
    /// In the order in which they are to be read.
    pub(super) sources: Vec<Source>,
    /// Bytes of all of them.
    pub(super) bytes: u64,
    /// One of them is no regular file: its length is not known, and reading it may wait for ever.
    pub(super) endless: bool,
    /// What is missing or may not be read.
    pub(super) unreadable: Vec<Notice>,
    /// Folders that hold nothing to import.
    pub(super) barren: Vec<Notice>,
    /// Folders that were walked, by their real names, so that a symbolic link cannot lead in circles.
    walked: HashSet<PathBuf>,
}

impl Files {
    /// Looks where the inputs point to: files as they are, folders with all below them.
    pub(super) fn find(inputs: Vec<Input>) -> Files {
        let mut files = Files::default();
        for input in inputs {
            match input {
                Input::Stdin(stream) => {
                    files.endless = true;
                    files.sources.push(Source::Stream(stream));
                }
                Input::Path(path) => files.given(path),
            }
        }
        files
    }

    /// Is this path one of the files, under whatever name?
    pub(super) fn contain(&self, path: &Path) -> bool {
        let Ok(real) = fs::canonicalize(path) else { return false };
        self.sources.iter().any(|source| match source {
            Source::File(path) => fs::canonicalize(path).is_ok_and(|path| path == real),
            Source::Stream(_) => false,
        })
    }

    fn given(&mut self, path: PathBuf) {
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                let before = (self.sources.len(), self.unreadable.len());
                self.folder(&path);
                if before == (self.sources.len(), self.unreadable.len()) {
                    self.barren.push(Notice::whole(
                        path.display().to_string(),
                        "no .vcf, .vcard or .ics file in this folder".into(),
                    ));
                }
            }
            Ok(meta) => self.file(path, &meta),
            Err(error) => self.missing(&path, &error),
        }
    }

    fn file(&mut self, path: PathBuf, meta: &fs::Metadata) {
        self.bytes += meta.len();
        self.endless |= !meta.is_file();
        self.sources.push(Source::File(path));
    }

    fn missing(&mut self, path: &Path, error: &io::Error) {
        self.unreadable.push(Notice::whole(path.display().to_string(), said(error)));
    }

    /// The address books and calendars in a folder and below it, by name. Hidden ones are left out: they belong to
    /// programs, and hold half-written copies as often as not.
    fn folder(&mut self, path: &Path) {
        let names = match fs::canonicalize(path).and_then(|real| self.names(path, real)) {
            Ok(names) => names,
            Err(error) => return self.missing(path, &error),
        };
        for path in names {
            // A link is followed to what it stands for.
            match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() => self.folder(&path),
                Ok(meta) if meta.is_file() && is_wanted(&path) => self.file(path, &meta),
                Err(error) if is_wanted(&path) => self.missing(&path, &error),
                _ => {}
            }
        }
    }

    fn names(&mut self, path: &Path, real: PathBuf) -> io::Result<Vec<PathBuf>> {
        if !self.walked.insert(real) {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                names.push(entry.path());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn is_wanted(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ENDINGS.iter().any(|wanted| ending.eq_ignore_ascii_case(wanted))
}

/// What the system said, as the reason in a notice: without its number where the words are enough.
pub(super) fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// The names of the inputs, for the log: short, without their folders.
pub(super) fn names(inputs: &[Input]) -> String {
    let mut names: Vec<String> = inputs
        .iter()
        .take(NAMED)
        .map(|input| match input {
            Input::Stdin(_) => STANDARD_INPUT.into(),
            Input::Path(path) => {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
        })
        .collect();
    if inputs.len() > NAMED {
        names.push(format!("and {} more", inputs.len() - NAMED));
    }
    super::shown(&names.join(", "), NAMES_LIMIT)
}

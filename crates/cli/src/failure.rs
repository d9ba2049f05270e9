//! The one error type of the edge: who is to blame, what happened, and what to do next.

use crate::context::Context;
use crate::output::plain;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what was asked; each kind is an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing was found (1).
    NotFound,
    /// Wrong usage (2).
    Usage,
    /// Bad input was left out (3).
    Input,
    /// The store could not be used (4).
    Store,
    /// A file or other source could not be read (5).
    Source,
    /// Nobody reads the output any more (0).
    BrokenPipe,
}

/// How a command that ran to its end ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Done,
    NothingFound,
    LeftOut,
    SourceMissing,
    Interrupted,
    /// As the command that was measured ended.
    Command(u8),
}

impl Code {
    pub(crate) fn number(self) -> u8 {
        match self {
            Code::Done => 0,
            Code::NothingFound => 1,
            Code::LeftOut => 3,
            Code::SourceMissing => 5,
            Code::Interrupted => 130,
            Code::Command(code) => code,
        }
    }
}

/// A failure as the user sees it.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hints: Vec<String>,
    /// The name of a collection that there is not.
    collection: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Display) -> Failure {
        Failure { kind, message: message.to_string(), hints: Vec::new(), collection: None }
    }

    /// Of a file that was to be read or written for the command, outside the store.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Failure {
        let path = plain(&path.display().to_string());
        let (what, hint) = match error.kind() {
            ErrorKind::NotFound => ("there is no such file or folder", "check its name"),
            ErrorKind::PermissionDenied => {
                ("permission denied", "ls -ld shows who may read and write it")
            }
            ErrorKind::IsADirectory => ("it is a folder", "name a file"),
            ErrorKind::NotADirectory => {
                ("a file stands where a folder should be", "check the folder's name")
            }
            ErrorKind::StorageFull => ("no space left on its disk", "make room, or name another"),
            _ => {
                return Failure::new(Kind::Source, format!("{path}: {error}"))
                    .hint("name another file");
            }
        };
        Failure::new(Kind::Source, format!("{path}: {what}")).hint(hint)
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Failure {
        self.hints.push(hint.to_string());
        self
    }

    /// Where a collection was asked for that there is not, names the one that was perhaps meant.
    pub(crate) fn with_nearest(self, context: &Context) -> Failure {
        let Some(name) = &self.collection else { return self };
        let there = context.reader().and_then(|reader| Ok(reader.collections()?));
        let there = there.unwrap_or_default().into_iter().map(|collection| collection.name);
        let asked = name.to_lowercase();
        let is_near = |known: &String| {
            let known = known.to_lowercase();
            known.starts_with(&asked) || asked.starts_with(&known)
        };
        let near = there.filter(is_near).min_by_key(|known| known.len().abs_diff(name.len()));
        match near {
            Some(near) => {
                self.hint(format!("did you mean {near:?}? larder collections lists them"))
            }
            None => self.hint("larder collections lists them"),
        }
    }

    fn number(&self) -> u8 {
        match self.kind {
            Kind::BrokenPipe => 0,
            Kind::NotFound => 1,
            Kind::Usage => 2,
            Kind::Input => 3,
            Kind::Store => 4,
            Kind::Source => 5,
        }
    }

    /// Says it on standard error, and gives the exit code.
    pub(crate) fn report(&self, quiet: bool) -> ExitCode {
        if self.kind != Kind::BrokenPipe && !(quiet && self.kind == Kind::NotFound) {
            crate::output::complain("error", &self.message);
            for hint in &self.hints {
                crate::output::complain("hint", hint);
            }
        }
        ExitCode::from(self.number())
    }
}

/// Reports what clap found wrong, or prints the help that was asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let asked = matches!(error.kind(), DisplayHelp | DisplayVersion);
    // A reader that left, as in `larder --help | head -1`, is no failure.
    let _nobody_listens = error.print();
    ExitCode::from(if asked { 0 } else { 2 })
}

impl From<std::io::Error> for Failure {
    /// Of writing to standard output.
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            ErrorKind::BrokenPipe => Failure::new(Kind::BrokenPipe, ""),
            ErrorKind::StorageFull => Failure::new(
                Kind::Source,
                "the output could not be written: no space left on its disk",
            )
            .hint("make room, or send the output elsewhere"),
            _ => Failure::new(Kind::Source, format!("the output could not be written: {error}"))
                .hint("send the output elsewhere"),
        }
    }
}

impl From<larder_store::Error> for Failure {
    fn from(error: larder_store::Error) -> Failure {
        use larder_store::Error;
        let failure = |kind| Failure::new(kind, &error);
        match &error {
            Error::NoStore { .. } => failure(Kind::NotFound)
                .hint("take in an address book or a calendar first: larder import FILE (.vcf or .ics)")
                .hint("another directory is named with --data-dir DIR, or LARDER_DIR"),
            Error::File { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                failure(Kind::Store)
                    .hint("make it yours (ls -ld shows whose it is), or name another with --data-dir DIR")
            }
            Error::File { path, source } if source.kind() == ErrorKind::AlreadyExists => {
                let path = plain(&path.display().to_string());
                Failure::new(Kind::Store, format!("{path} is a file, not a directory"))
                    .hint("name a directory with --data-dir DIR")
            }
            Error::File { source, .. } if source.kind() == ErrorKind::NotADirectory => {
                failure(Kind::Store).hint("name a directory with --data-dir DIR")
            }
            Error::Full { .. } => failure(Kind::Store)
                .hint("what was committed is kept: make room, then run the same command again"),
            Error::Damaged { path, .. } => {
                let failure = failure(Kind::Store).hint(
                    "larder restore FILE brings the last backup back (FILE: what larder backup wrote)",
                );
                copies(path.parent().unwrap_or(Path::new(".")))
                    .iter()
                    .fold(failure, |failure, copy| failure.hint(copy))
                    .hint(WHEN_SOMETHING_BREAKS)
            }
            Error::NetworkFileSystem { .. } => failure(Kind::Store)
                .hint("name a directory on a local disk with --data-dir DIR; larder backup can copy to the network"),
            Error::TooNew { .. } | Error::ReadOnly { .. } => {
                failure(Kind::Store).hint("use the newer larder")
            }
            Error::NoCollection { name } => {
                Failure { collection: Some(name.clone()), ..failure(Kind::NotFound) }
            }
            Error::CollectionExists { .. } | Error::WrongKind { .. } | Error::BadName { .. } => {
                failure(Kind::Usage).hint("choose another name")
            }
            Error::NoOperation { .. } | Error::Replaced { .. } => {
                failure(Kind::NotFound).hint("larder log lists operations")
            }
            Error::Restored => failure(Kind::Input).hint("look at what is there now, and run the command again"),
            Error::Undone { .. } => failure(Kind::Input).hint("larder log lists operations"),
            Error::Forgotten { .. } => failure(Kind::NotFound)
                .hint("former versions are kept for 90 days or 64 MB, whichever is less"),
            Error::Purged { .. } => failure(Kind::NotFound)
                .hint("a backup made before may hold them: larder restore FILE brings all of it back"),
            Error::CollectionChanged { .. } => failure(Kind::Usage)
                .hint("undo the later operations first (larder log lists them)"),
            Error::AlreadyUndone { by, .. } => {
                failure(Kind::NotFound).hint(format!("to do it again, undo the undo: larder undo {by}"))
            }
            Error::NotAStore { .. } => {
                failure(Kind::Store).hint("another directory is named with --data-dir DIR, or LARDER_DIR")
            }
            Error::File { .. } | Error::Sqlite { .. } => failure(Kind::Store).hint(
                "ls -l shows whose the files are; larder check tells whether the store is sound",
            ),
            _ => failure(Kind::Store),
        }
    }
}

/// Where the steps are written down.
pub(crate) const WHEN_SOMETHING_BREAKS: &str =
    "docs/keeping.md, \"When something breaks\", goes through it step by step";

/// The copies that a migration or a restore left in the store's directory, each as a hint.
pub(crate) fn copies(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let temporary = ["-wal", "-shm", "-journal", ".partial"];
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("data.db.before-"))
        // A damaged store that was put aside is no copy that could be restored.
        .filter(|name| !name.starts_with("data.db.before-damaged"))
        .filter(|name| !temporary.iter().any(|end| name.ends_with(end)))
        .collect();
    names.sort();
    let copy = |name: &String| {
        let path = plain(&dir.join(name).display().to_string());
        format!("{path} is a copy made before: larder restore takes it, too")
    };
    names.iter().map(copy).collect()
}

impl From<larder_query::Error> for Failure {
    fn from(error: larder_query::Error) -> Failure {
        match error {
            larder_query::Error::Store(error) => error.into(),
            larder_query::Error::Syntax(error) => {
                let failure = Failure::new(Kind::Usage, &error);
                match error.hint {
                    Some(hint) => failure.hint(hint),
                    None => failure.hint("larder find --help shows how a query is written"),
                }
            }
            larder_query::Error::NoField { nearest, .. } => {
                let failure = Failure::new(Kind::Usage, &error);
                match nearest {
                    Some(near) => failure.hint(format!("did you mean {near}?")),
                    None => failure.hint("larder fields lists them"),
                }
            }
            error => Failure::new(Kind::Store, error),
        }
    }
}

impl From<larder_store::SummaryError> for Failure {
    fn from(error: larder_store::SummaryError) -> Failure {
        Failure::new(Kind::Usage, &error).hint(error.hint())
    }
}

impl From<larder_query::SyntaxError> for Failure {
    fn from(error: larder_query::SyntaxError) -> Failure {
        larder_query::Error::from(error).into()
    }
}

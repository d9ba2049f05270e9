//! The one error type of the edge: who is to blame, what happened, and what to do next.

use crate::context::CommandContext;
use crate::output::sanitize_line;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what was asked; each kind is an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
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
pub(crate) enum CommandStatus {
    Done,
    NothingFound,
    LeftOut,
    SourceMissing,
    Interrupted,
    /// As the command that was measured ended.
    Command(u8),
}

impl CommandStatus {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            CommandStatus::Done => 0,
            CommandStatus::NothingFound => 1,
            CommandStatus::LeftOut => 3,
            CommandStatus::SourceMissing => 5,
            CommandStatus::Interrupted => 130,
            CommandStatus::Command(code) => code,
        }
    }
}

/// A failure as the user sees it.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    kind: FailureKind,
    message: String,
    hints: Vec<String>,
    /// The name of a collection that there is not.
    missing_collection: Option<String>,
}

impl CommandFailure {
    pub(crate) fn new(kind: FailureKind, message: impl Display) -> CommandFailure {
        CommandFailure {
            kind,
            message: message.to_string(),
            hints: Vec::new(),
            missing_collection: None,
        }
    }

    /// Of a file that was to be read or written for the command, outside the store.
    pub(crate) fn from_file_error(path: &Path, error: &std::io::Error) -> CommandFailure {
        let path = sanitize_line(&path.display().to_string());
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
                return CommandFailure::new(FailureKind::Source, format!("{path}: {error}"))
                    .with_hint("name another file");
            }
        };
        CommandFailure::new(FailureKind::Source, format!("{path}: {what}")).with_hint(hint)
    }

    pub(crate) fn with_hint(mut self, hint: impl Display) -> CommandFailure {
        self.hints.push(hint.to_string());
        self
    }

    /// Where a collection was asked for that there is not, names the one that was perhaps meant.
    pub(crate) fn with_nearest_collection(self, context: &CommandContext) -> CommandFailure {
        let Some(name) = &self.missing_collection else { return self };
        let there = context.open_reader().and_then(|reader| Ok(reader.collections()?));
        let there = there.unwrap_or_default().into_iter().map(|collection| collection.name);
        let asked = name.to_lowercase();
        let is_near = |known: &String| {
            let known = known.to_lowercase();
            known.starts_with(&asked) || asked.starts_with(&known)
        };
        let near = there.filter(is_near).min_by_key(|known| known.len().abs_diff(name.len()));
        match near {
            Some(near) => {
                self.with_hint(format!("did you mean {near:?}? larder collections lists them"))
            }
            None => self.with_hint("larder collections lists them"),
        }
    }

    fn exit_code(&self) -> u8 {
        match self.kind {
            FailureKind::BrokenPipe => 0,
            FailureKind::NotFound => 1,
            FailureKind::Usage => 2,
            FailureKind::Input => 3,
            FailureKind::Store => 4,
            FailureKind::Source => 5,
        }
    }

    /// Says it on standard error, and gives the exit code.
    pub(crate) fn print_and_exit_code(&self, quiet: bool) -> ExitCode {
        if self.kind != FailureKind::BrokenPipe && !(quiet && self.kind == FailureKind::NotFound) {
            crate::output::print_message("error", &self.message);
            for hint in &self.hints {
                crate::output::print_message("hint", hint);
            }
        }
        ExitCode::from(self.exit_code())
    }
}

/// Reports what clap found wrong, or prints the help that was asked for.
pub(crate) fn print_usage_error(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let asked = matches!(error.kind(), DisplayHelp | DisplayVersion);
    // A reader that left, as in `larder --help | head -1`, is no failure.
    let _nobody_listens = error.print();
    ExitCode::from(if asked { 0 } else { 2 })
}

impl From<std::io::Error> for CommandFailure {
    /// Of writing to standard output.
    fn from(error: std::io::Error) -> CommandFailure {
        match error.kind() {
            ErrorKind::BrokenPipe => CommandFailure::new(FailureKind::BrokenPipe, ""),
            ErrorKind::StorageFull => CommandFailure::new(
                FailureKind::Source,
                "the output could not be written: no space left on its disk",
            )
            .with_hint("make room, or send the output elsewhere"),
            _ => CommandFailure::new(
                FailureKind::Source,
                format!("the output could not be written: {error}"),
            )
            .with_hint("send the output elsewhere"),
        }
    }
}

impl From<larder_store::Error> for CommandFailure {
    fn from(error: larder_store::Error) -> CommandFailure {
        use larder_store::Error;
        let failure = |kind| CommandFailure::new(kind, &error);
        match &error {
            Error::NoStore { .. } => failure(FailureKind::NotFound)
                .with_hint("take in an address book or a calendar first: larder import FILE (.vcf or .ics)")
                .with_hint("another directory is named with --data-dir DIR, or LARDER_DIR"),
            Error::File { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                failure(FailureKind::Store)
                    .with_hint("make it yours (ls -ld shows whose it is), or name another with --data-dir DIR")
            }
            Error::File { path, source } if source.kind() == ErrorKind::AlreadyExists => {
                let path = sanitize_line(&path.display().to_string());
                CommandFailure::new(FailureKind::Store, format!("{path} is a file, not a directory"))
                    .with_hint("name a directory with --data-dir DIR")
            }
            Error::File { source, .. } if source.kind() == ErrorKind::NotADirectory => {
                failure(FailureKind::Store).with_hint("name a directory with --data-dir DIR")
            }
            Error::DiskFull { .. } => failure(FailureKind::Store)
                .with_hint("what was committed is kept: make room, then run the same command again"),
            Error::Damaged { path, .. } => {
                let failure = failure(FailureKind::Store).with_hint(
                    "larder restore FILE brings the last backup back (FILE: what larder backup wrote)",
                );
                backup_copy_hints(path.parent().unwrap_or(Path::new(".")))
                    .iter()
                    .fold(failure, |failure, copy| failure.with_hint(copy))
                    .with_hint(RECOVERY_DOC_HINT)
            }
            Error::NetworkFileSystem { .. } => failure(FailureKind::Store)
                .with_hint("name a directory on a local disk with --data-dir DIR; larder backup can copy to the network"),
            Error::DevelopmentSchema { .. } => failure(FailureKind::Store).with_hint(
                "larder export of that version writes its items to a file; \
                 import that file into a new directory (--data-dir DIR)",
            ),
            Error::SchemaTooNew { .. } | Error::ReadOnly { .. } => {
                failure(FailureKind::Store).with_hint("use the newer larder")
            }
            Error::NoCollection { name } => {
                CommandFailure { missing_collection: Some(name.clone()), ..failure(FailureKind::NotFound) }
            }
            Error::CollectionExists { .. } | Error::WrongKind { .. } | Error::InvalidCollectionName { .. } => {
                failure(FailureKind::Usage).with_hint("choose another name")
            }
            Error::NoOperation { .. } | Error::RestoredDuringUndo { .. } => {
                failure(FailureKind::NotFound).with_hint("larder log lists operations")
            }
            Error::StoreRestored => failure(FailureKind::Input).with_hint("look at what is there now, and run the command again"),
            Error::OperationUndone { .. } => failure(FailureKind::Input).with_hint("larder log lists operations"),
            Error::HistoryPruned { .. } => failure(FailureKind::NotFound)
                .with_hint("former versions are kept for 90 days or 64 MB, whichever is less"),
            Error::PurgeNotUndoable { .. } => failure(FailureKind::NotFound)
                .with_hint("a backup made before may hold them: larder restore FILE brings all of it back"),
            Error::CollectionChanged { .. } => failure(FailureKind::Usage)
                .with_hint("undo the later operations first (larder log lists them)"),
            Error::AlreadyUndone { by, .. } => {
                failure(FailureKind::NotFound).with_hint(format!("to do it again, undo the undo: larder undo {by}"))
            }
            Error::NotAStore { .. } => {
                failure(FailureKind::Store).with_hint("another directory is named with --data-dir DIR, or LARDER_DIR")
            }
            Error::File { .. } | Error::Sqlite { .. } => failure(FailureKind::Store).with_hint(
                "ls -l shows whose the files are; larder check tells whether the store is sound",
            ),
            _ => failure(FailureKind::Store),
        }
    }
}

/// Where the steps are written down.
pub(crate) const RECOVERY_DOC_HINT: &str =
    "docs/keeping.md, \"When something breaks\", goes through it step by step";

/// The copies that a migration or a restore left in the store's directory, each as a hint.
pub(crate) fn backup_copy_hints(dir: &Path) -> Vec<String> {
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
        let path = sanitize_line(&dir.join(name).display().to_string());
        format!("{path} is a copy made before: larder restore takes it, too")
    };
    names.iter().map(copy).collect()
}

impl From<larder_query::Error> for CommandFailure {
    fn from(error: larder_query::Error) -> CommandFailure {
        match error {
            larder_query::Error::Store(error) => error.into(),
            larder_query::Error::Syntax(error) => {
                let failure = CommandFailure::new(FailureKind::Usage, &error);
                match error.hint {
                    Some(hint) => failure.with_hint(hint),
                    None => failure.with_hint("larder find --help shows how a query is written"),
                }
            }
            larder_query::Error::NoField { nearest, .. } => {
                let failure = CommandFailure::new(FailureKind::Usage, &error);
                match nearest {
                    Some(near) => failure.with_hint(format!("did you mean {near}?")),
                    None => failure.with_hint("larder fields lists them"),
                }
            }
            error => CommandFailure::new(FailureKind::Store, error),
        }
    }
}

impl From<larder_store::IndexConfigError> for CommandFailure {
    fn from(error: larder_store::IndexConfigError) -> CommandFailure {
        CommandFailure::new(FailureKind::Usage, &error).with_hint(error.hint())
    }
}

impl From<larder_query::SyntaxError> for CommandFailure {
    fn from(error: larder_query::SyntaxError) -> CommandFailure {
        larder_query::Error::from(error).into()
    }
}

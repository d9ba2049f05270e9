//! The error type of the binary: an exit code, a message, and hints that say what to do next.

use crate::output::sanitize_line;
use larder_store::{DataDirectory, OperationId};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The kinds of failures; each is an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Nothing was found (1).
    NotFound,
    /// Wrong usage (2).
    Usage,
    /// Invalid input, which was rejected, or a conflict (3).
    Input,
    /// The store cannot be used (4).
    Store,
    /// A file or another source cannot be read or written (5).
    Source,
    /// Standard output cannot be written (5).
    Output,
    /// The reader of standard output has gone (0).
    BrokenPipe,
}

/// The result of a command that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandStatus {
    Done,
    NothingFound,
    Rejected,
    /// Faults of stores were printed.
    Damaged,
    SourceMissing,
    Interrupted,
    /// The exit code of the command that was measured.
    Command(u8),
}

impl CommandStatus {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            CommandStatus::Done => 0,
            CommandStatus::NothingFound => 1,
            CommandStatus::Rejected => 3,
            CommandStatus::Damaged => 4,
            CommandStatus::SourceMissing => 5,
            CommandStatus::Interrupted => 130,
            CommandStatus::Command(code) => code,
        }
    }
}

/// A failure as it is printed.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    kind: FailureKind,
    message: String,
    hints: Vec<String>,
    /// The name of a collection that does not exist.
    missing_collection: Option<String>,
    /// A file of a store is damaged.
    is_damage: bool,
}

impl CommandFailure {
    pub(crate) fn new(kind: FailureKind, message: impl Display) -> CommandFailure {
        CommandFailure {
            kind,
            message: message.to_string(),
            hints: Vec::new(),
            missing_collection: None,
            is_damage: false,
        }
    }

    /// A failure to read or write a file outside the store.
    pub(crate) fn from_file_error(path: &Path, error: &std::io::Error) -> CommandFailure {
        let path = sanitize_line(&path.display().to_string());
        let (what, hint) = match error.kind() {
            ErrorKind::NotFound => ("no such file or directory", "check the name"),
            ErrorKind::PermissionDenied => {
                ("permission denied", "`ls -ld` shows who may read and write it")
            }
            ErrorKind::IsADirectory => ("is a directory", "name a file"),
            ErrorKind::NotADirectory => ("not a directory", "check the name of the directory"),
            ErrorKind::StorageFull => {
                ("no space left on the disk", "free some space or choose another disk")
            }
            ErrorKind::QuotaExceeded => {
                ("the quota of the disk is used up", "free some space or choose another disk")
            }
            _ => {
                return CommandFailure::new(FailureKind::Source, format!("{path}: {error}"))
                    .with_hint("check the file and its directory");
            }
        };
        CommandFailure::new(FailureKind::Source, format!("{path}: {what}")).with_hint(hint)
    }

    /// Prints the failure as a warning, for work that goes on without what failed.
    pub(crate) fn print_as_warning(&self, quiet: bool) {
        if !quiet {
            crate::output::print_message("warning", &self.message);
        }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == FailureKind::NotFound
    }

    /// Returns whether a store cannot be used.
    pub(crate) fn is_of_store(&self) -> bool {
        self.kind == FailureKind::Store
    }

    /// Returns whether a file of a store is damaged: another attempt does not help.
    pub(crate) fn is_of_damage(&self) -> bool {
        self.is_damage
    }

    /// Returns whether standard output cannot be written.
    pub(crate) fn is_of_output(&self) -> bool {
        matches!(self.kind, FailureKind::Output | FailureKind::BrokenPipe)
    }

    /// Returns whether the reader of standard output has gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.kind == FailureKind::BrokenPipe
    }

    pub(crate) fn with_hint(mut self, hint: impl Display) -> CommandFailure {
        self.hints.push(hint.to_string());
        self
    }

    /// Returns the name of the collection that does not exist, if that was the failure.
    pub(crate) fn missing_collection(&self) -> Option<&str> {
        self.missing_collection.as_deref()
    }

    /// Turns a failure of the store into a warning, and returns `None`, for the steps after a
    /// commit: a command that changed the store must not look as if it had failed, because it would
    /// be run again.
    pub(crate) fn after_commit<T>(
        result: Result<T, CommandFailure>,
    ) -> Result<Option<T>, CommandFailure> {
        match result {
            Err(failure) if failure.kind == FailureKind::Store => {
                let message = &failure.message;
                crate::output::print_message(
                    "warning",
                    format!("the change is committed; the work after it failed: {message}"),
                );
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// Adds a change that was made to a failure to print it: the command must not be run again.
    pub(crate) fn after_change(mut self, change: impl Display) -> CommandFailure {
        if self.kind == FailureKind::Output {
            self.message = format!("{change}; {}", self.message);
            self.hints = vec!["do not run the command again; `larder log` lists changes".into()];
        }
        self
    }

    /// Adds the operation of the batches that a command committed before the store failed: they
    /// stay.
    pub(crate) fn after_batches(mut self, operation: OperationId) -> CommandFailure {
        if self.kind == FailureKind::Store {
            self.message = format!(
                "{}; changes made before are committed as operation {operation}",
                self.message
            );
            self.hints.push(format!("`larder log {operation}` shows them"));
        }
        self
    }

    fn exit_code(&self) -> u8 {
        match self.kind {
            FailureKind::BrokenPipe => 0,
            FailureKind::NotFound => 1,
            FailureKind::Usage => 2,
            FailureKind::Input => 3,
            FailureKind::Store => 4,
            FailureKind::Source | FailureKind::Output => 5,
        }
    }

    /// Prints the failure on standard error.
    pub(crate) fn print(&self) {
        crate::output::print_message("error", &self.message);
        for hint in &self.hints {
            crate::output::print_message("hint", hint);
        }
    }

    /// Prints the failure on standard error and returns the exit code.
    pub(crate) fn print_and_exit_code(&self, quiet: bool) -> ExitCode {
        if self.kind != FailureKind::BrokenPipe && !(quiet && self.kind == FailureKind::NotFound) {
            self.print();
        }
        ExitCode::from(self.exit_code())
    }
}

impl From<std::io::Error> for CommandFailure {
    /// A failure to write to standard output.
    fn from(error: std::io::Error) -> CommandFailure {
        match error.kind() {
            ErrorKind::BrokenPipe => CommandFailure::new(FailureKind::BrokenPipe, ""),
            ErrorKind::StorageFull => CommandFailure::new(
                FailureKind::Output,
                "cannot write the output: no space left on the disk",
            )
            .with_hint("free some space or redirect the output"),
            _ => CommandFailure::new(
                FailureKind::Output,
                format!("cannot write the output: {error}"),
            )
            .with_hint("redirect the output"),
        }
    }
}

impl From<larder_store::Error> for CommandFailure {
    fn from(error: larder_store::Error) -> CommandFailure {
        use larder_store::{DamagedObject, Error};
        let error = match error {
            Error::Output(error) => return error.into(),
            error => error,
        };
        let is_damage = error.damaged_file().is_some();
        let failure = |kind| CommandFailure { is_damage, ..CommandFailure::new(kind, &error) };
        match &error {
            Error::NoStore { .. } => failure(FailureKind::NotFound)
                .with_hint("import an address book or a calendar first: larder import FILE (.vcf or .ics)")
                .with_hint("or register mail or a git repository: larder sources add PATH")
                .with_hint("--data-dir DIR or LARDER_DIR chooses another directory"),
            Error::StoreMissing { path } => {
                let failure = failure(FailureKind::Store).with_hint(
                    "restore the last backup (a file that `larder backup` wrote): larder restore FILE",
                );
                let dir = path.parent().unwrap_or(Path::new("."));
                backup_copy_hints(dir)
                    .iter()
                    .fold(failure, |failure, copy| failure.with_hint(copy))
                    .with_hint(format!(
                        "to begin anew, delete data.notify, data.db-wal, data.db-shm, index.db and \
                         commits.db in {}",
                        sanitize_line(&dir.display().to_string())
                    ))
            }
            Error::File { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                failure(FailureKind::Store)
                    .with_hint("change its owner (`ls -ld` shows it), or choose another directory with --data-dir DIR")
            }
            Error::File { path, source } if source.kind() == ErrorKind::AlreadyExists => {
                let path = sanitize_line(&path.display().to_string());
                CommandFailure::new(FailureKind::Store, format!("{path} is a file, not a directory"))
                    .with_hint("choose a directory with --data-dir DIR")
            }
            Error::File { source, .. } if source.kind() == ErrorKind::NotADirectory => {
                failure(FailureKind::Store).with_hint("choose a directory with --data-dir DIR")
            }
            Error::ReadOnlyDisk { .. } => failure(FailureKind::Store)
                .with_hint("the store can be read: `larder backup` and `larder export` copy it to another disk, and `larder salvage` copies a damaged one"),
            Error::Locked { .. } => failure(FailureKind::Store)
                .with_hint("close the program that has it open (`fuser -v` on the file names it), then run the command again"),
            Error::DiskFailed { .. } => failure(FailureKind::Store)
                .with_hint("copy the store to another disk: larder backup FILE; the system's log (`dmesg`) has details"),
            Error::DiskFull { .. } | Error::QuotaExceeded { .. } => failure(FailureKind::Store)
                .with_hint("committed changes are safe: free some space, then run the command again"),
            Error::Damaged { path, .. }
            | Error::DamagedObject { path, .. }
            | Error::OtherStore { path, .. }
                if path.ends_with("commits.db") =>
            {
                failure(FailureKind::Store).with_hint(
                    "no commits are lost; to make the index of commits again: larder check --rebuild",
                )
            }
            Error::Damaged { path, .. }
            | Error::DamagedObject { path, .. }
            | Error::OtherStore { path, .. }
                if path.ends_with("index.db") =>
            {
                failure(FailureKind::Store).with_hint(
                    "no mail is lost; to make the index of mail again: larder check --rebuild",
                )
            }
            Error::OtherStore { .. } => failure(FailureKind::Store).with_hint(
                "restore the last backup (a file that `larder backup` wrote): larder restore FILE",
            ),
            error @ (Error::Damaged { path, .. } | Error::DamagedObject { path, .. }) => {
                let next_step = match error {
                    // A rebuild repairs indexes only.
                    Error::DamagedObject { object: DamagedObject::Item { .. }, .. } => {
                        "import the item again from another copy, or save what can be read: larder salvage FILE"
                    }
                    Error::DamagedObject { object: DamagedObject::FormerVersion { .. }, .. } => {
                        "to erase the item with all its versions: larder purge ID; to save what can be read: larder salvage FILE"
                    }
                    Error::DamagedObject { .. } => "save what can be read: larder salvage FILE",
                    _ => {
                        "`larder check --rebuild` repairs damaged indexes; `larder salvage FILE` saves what can be read"
                    }
                };
                let dir = path.parent().unwrap_or(Path::new("."));
                let log = DataDirectory::new(dir).wal_path();
                let has_log = log.metadata().is_ok_and(|log| log.len() > 0);
                let failure = match error {
                    Error::Damaged { .. } if has_log => failure(FailureKind::Store).with_hint(
                        "if data.db or data.db-wal was copied or replaced, put both files back as they were",
                    ),
                    _ => failure(FailureKind::Store),
                };
                let failure = failure.with_hint(next_step).with_hint(
                    "restore the last backup (a file that `larder backup` wrote): larder restore FILE",
                );
                backup_copy_hints(dir)
                    .iter()
                    .fold(failure, |failure, copy| failure.with_hint(copy))
                    .with_hint(RECOVERY_DOC_HINT)
            }
            Error::SeveralNames { path, .. } => {
                let path = sanitize_line(&path.display().to_string());
                failure(FailureKind::Store).with_hint(format!(
                    "while no larder runs, give it a file of its own: cp -p {path} {path}.copy && mv {path}.copy {path}"
                ))
            }
            Error::BatchesMissing { path, .. } | Error::StoreReplaced { path } => {
                let record = path.with_file_name("data.notify");
                let record = sanitize_line(&record.display().to_string());
                failure(FailureKind::Store)
                    .with_hint("restore the last backup (a file that `larder backup` wrote): larder restore FILE")
                    .with_hint("`larder export NAME -o FILE` writes the items that are there to FILE.partial")
                    .with_hint(format!("to go on without what is missing, delete {record}"))
            }
            Error::CommitNotSynced { .. } => failure(FailureKind::Store).with_hint(
                "`larder log` shows whether it was committed: look before you run the command again",
            ),
            Error::RestoreNotVerified { .. } => {
                failure(FailureKind::Store).with_hint("to verify the store: larder check")
            }
            Error::PurgeNotFinished { .. } => failure(FailureKind::Store).with_hint(
                "remove the cause, then finish the purge: larder purge",
            ),
            Error::UnknownCopy { .. } => failure(FailureKind::Store).with_hint(
                "move it out of the data directory, then run the command again",
            ),
            Error::PurgePending { .. } => {
                failure(FailureKind::Store).with_hint("to finish the purge: larder purge")
            }
            Error::ReaderBlocksPurge => failure(FailureKind::Store).with_hint(
                "close the programs that read the store, then finish the purge: larder purge",
            ),
            Error::NetworkFileSystem { .. } => failure(FailureKind::Store)
                .with_hint("choose a directory on a local disk with --data-dir DIR; `larder backup` can write to the network"),
            Error::DevelopmentSchema { .. } => failure(FailureKind::Store).with_hint(
                "export the items with that version (larder export), and import them into a new \
                 directory (--data-dir DIR)",
            ),
            Error::NoMigration { .. } => failure(FailureKind::Store).with_hint(
                "export the items with the older version (larder export), and import them into a \
                 new directory (--data-dir DIR)",
            ),
            Error::SchemaTooNew { .. } | Error::ReadOnly { .. } => {
                failure(FailureKind::Store).with_hint("use the version of larder that wrote the store, or a newer one")
            }
            Error::NoCollection { name } => {
                CommandFailure { missing_collection: Some(name.clone()), ..failure(FailureKind::NotFound) }
            }
            Error::CollectionExists { .. } | Error::WrongKind { .. } | Error::InvalidCollectionName { .. } => {
                failure(FailureKind::Usage).with_hint("choose another name")
            }
            Error::NoOperation { .. } => {
                failure(FailureKind::NotFound).with_hint("`larder log` lists operations")
            }
            Error::RestoredDuringUndo { .. } => failure(FailureKind::NotFound)
                .with_hint("check `larder log`, then run undo again"),
            Error::StoreRestored => failure(FailureKind::Input).with_hint("check the current items, then run the command again"),
            Error::OperationUndone { .. } => failure(FailureKind::Input).with_hint("`larder log` lists operations"),
            Error::HistoryPruned { .. } => failure(FailureKind::NotFound)
                .with_hint("previous versions are kept for 90 days, up to 64 MB; after `larder salvage`, some may be missing"),
            Error::PurgeNotUndoable { .. } => failure(FailureKind::NotFound)
                .with_hint("an older backup may contain the items: larder restore FILE replaces the whole store"),
            Error::CollectionChanged { .. } => failure(FailureKind::Usage)
                .with_hint("undo the later operations first (`larder log` lists them)"),
            Error::AlreadyUndone { by, .. } => {
                failure(FailureKind::NotFound).with_hint(format!("redo with: larder undo {by}"))
            }
            Error::NotAStore { .. } => {
                failure(FailureKind::Store).with_hint("--data-dir DIR or LARDER_DIR chooses another directory")
            }
            Error::File { .. } | Error::Sqlite { .. } => failure(FailureKind::Store).with_hint(
                "`ls -l` shows who owns the files; `larder check` checks the store for damage",
            ),
            _ => failure(FailureKind::Store),
        }
    }
}

/// The hint that points to the steps of recovery.
pub(crate) const RECOVERY_DOC_HINT: &str = "see \"Recovery\" in docs/backup.md";

/// Returns a hint for each copy that a migration or a restore left in the store's directory.
pub(crate) fn backup_copy_hints(dir: &Path) -> Vec<String> {
    let copy = |path: PathBuf| {
        let path = sanitize_line(&path.display().to_string());
        format!("{path} is an older copy of the store; to restore it: larder restore {path}")
    };
    DataDirectory::new(dir).restorable_copies().into_iter().map(copy).collect()
}

impl From<larder_query::Error> for CommandFailure {
    fn from(error: larder_query::Error) -> CommandFailure {
        match error {
            larder_query::Error::Store(error) => error.into(),
            larder_query::Error::DamagedItems { first, others } => {
                let failure = CommandFailure::from(*first);
                let message = others.iter().fold(failure.message, |message, object| {
                    format!("{message}; damaged as well: {object}")
                });
                CommandFailure { message, ..failure }
            }
            larder_query::Error::Syntax(error) => {
                let failure = CommandFailure::new(FailureKind::Usage, &error);
                match error.hint {
                    Some(hint) => failure.with_hint(hint),
                    None => failure.with_hint("`larder find --help` shows the syntax of queries"),
                }
            }
            larder_query::Error::NoField { nearest, .. } => {
                let failure = CommandFailure::new(FailureKind::Usage, &error);
                match nearest {
                    Some(near) => failure.with_hint(format!("did you mean {near}?")),
                    None => failure.with_hint("`larder fields` lists the fields"),
                }
            }
            larder_query::Error::StepLimit { .. } => CommandFailure::new(FailureKind::Usage, error)
                .with_hint(
                    "use fewer terms, or terms that an index answers (`--explain` shows them)",
                ),
            larder_query::Error::MailWorkLimit { .. } => {
                CommandFailure::new(FailureKind::Usage, error)
                    .with_hint("use more letters of the word, or fewer words")
            }
            error => CommandFailure::new(FailureKind::Store, error),
        }
    }
}

impl From<larder_edit::SavedSearchError> for CommandFailure {
    fn from(error: larder_edit::SavedSearchError) -> CommandFailure {
        match error {
            larder_edit::SavedSearchError::Store(error) => error.into(),
            error => CommandFailure::new(FailureKind::Usage, error),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// SQLite keeps the log of a linked database beside the file that the link leads to.
    #[test]
    fn the_log_of_a_damaged_linked_database_is_found() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("data.db");
        std::os::unix::fs::symlink(scratch.path().join("real.db"), &path).unwrap();
        for name in ["real.db", "real.db-wal"] {
            std::fs::write(scratch.path().join(name), "content").unwrap();
        }
        let error = larder_store::Error::Damaged { path, what: "a page".to_string() };
        let failure = CommandFailure::from(error);
        assert!(failure.hints[0].contains("data.db-wal was copied"), "{:?}", failure.hints);
    }
}

//! The errors that end an import or an export. Bad input does not: it is reported in events, and
//! the rest is imported.

use std::io;
use std::path::PathBuf;

/// An error that ends an import or an export. Batches that were committed before it stay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] larder_store::Error),
    /// A search could not be run.
    #[error(transparent)]
    Query(#[from] larder_query::Error),
    /// The file of rejected input could not be written.
    #[error(transparent)]
    RejectsFile(larder_store::OutputError),
    /// Everything was imported, and then the file of rejected input could not be written.
    #[error("the items were imported, but the rejected input was not written: {0}")]
    RejectsNotWritten(larder_store::OutputError),
    /// The file of rejected input is one of the inputs.
    #[error("{path} is one of the files to import: rejected input cannot be written to it")]
    RejectsFileIsInput {
        /// The file.
        path: PathBuf,
    },
    /// A saved search could not be written.
    #[error(transparent)]
    SavedSearch(larder_edit::SavedSearchError),
    /// Another program could not be run, or reported a failure.
    #[error("cannot run {program}: {reason}")]
    Program {
        /// Its name.
        program: String,
        /// The reason.
        reason: String,
    },
    /// A file of another program could not be read.
    #[error("cannot read {path}: {source}")]
    ForeignFile {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A directory has nothing that could be taken over from mu.
    #[error("mu has neither a database nor bookmarks in {folder}")]
    NoMuData {
        /// The directory.
        folder: PathBuf,
    },
    /// A file has no labels of this program.
    #[error("the file has no labels of {program}")]
    NoLabelDump {
        /// The name of the program.
        program: &'static str,
    },
    /// A git repository could not be read.
    #[error(transparent)]
    Git(#[from] crate::git_repository::GitError),
    /// A maildir could not be listed.
    #[error("cannot read {path}: {source}")]
    Maildir {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A source with known messages has no folders or files of mail any more.
    #[error("{path} {reason}")]
    EmptyMaildir {
        /// Its path.
        path: PathBuf,
        /// The reason, for a person.
        reason: String,
    },
    /// A folder of links cannot be read or written.
    #[error("cannot make links in {path}: {source}")]
    LinkFolder {
        /// The path of the folder or the link.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A folder for links has files of others.
    #[error("{path} is neither empty nor a folder of links that larder made")]
    NotALinkFolder {
        /// The path of the folder.
        path: PathBuf,
    },
    /// A folder for links is part of the mail.
    #[error("cannot make links in {path}: the source {root} has to be apart")]
    LinksInSource {
        /// The path of the folder.
        path: PathBuf,
        /// The maildir of the source.
        root: PathBuf,
    },
    /// The output of an export could not be written.
    #[error("cannot write the export: {0}")]
    Write(#[source] io::Error),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    SpawnThread(#[source] io::Error),
    /// A thread that reads or parses ended early, which is a bug.
    #[error("a thread that reads the input ended early; this is a bug in larder")]
    ThreadDied,
}

//! What can go wrong in a store.

use std::path::PathBuf;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong in a store. Nothing that was committed is lost by any of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no store in this directory, and the caller did not ask for one to be made.
    #[error("there is no store in {dir}")]
    NoStore {
        /// The data directory.
        dir: PathBuf,
    },
    /// A file of the data directory could not be made, opened, read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The directory lies on a file system that cannot hold a WAL database safely.
    #[error("{dir} lies on {file_system}, a network file system, where SQLite's locks do not hold")]
    NetworkFileSystem {
        /// The data directory.
        dir: PathBuf,
        /// The file system's name, as the mount table has it.
        file_system: String,
    },
    /// The file is a database, but not one of Larder's.
    #[error("{path} is not a larder store (application id {found:#x})")]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// The `application_id` found in it.
        found: i64,
    },
    /// A newer Larder wrote the store, in a form that this one does not know.
    #[error("{path} has schema {major}.{minor}, made by a newer larder; this one knows {known}")]
    SchemaTooNew {
        /// The file.
        path: PathBuf,
        /// Major version found.
        major: i64,
        /// Minor version found.
        minor: i64,
        /// The newest version known here, as `major.minor`.
        known: String,
    },
    /// A development version made the store, with a schema that was never released.
    #[error("{path} was made by a development version of larder and cannot be read by this one")]
    DevelopmentSchema {
        /// The file.
        path: PathBuf,
    },
    /// An older version made the store, and nobody has opened it for writing since.
    #[error("{path} has schema {major}.{minor}, and is migrated when it is opened for writing")]
    SchemaTooOld {
        /// The file.
        path: PathBuf,
        /// Major version found.
        major: i64,
        /// Minor version found.
        minor: i64,
    },
    /// The store may be read but not written: a newer minor version made it.
    #[error(
        "{path} was made by a newer larder (schema {version}) and can only be read by this one"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// `major.minor` found.
        version: String,
    },
    /// The disk is full. What was committed before is kept.
    #[error("no space left on the disk that holds {dir}")]
    DiskFull {
        /// The data directory.
        dir: PathBuf,
    },
    /// The file's pages or indexes contradict each other.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first thing that SQLite or the check found.
        what: String,
    },
    /// The SQLite that is linked in could corrupt a WAL database.
    #[error("SQLite {found} is older than 3.51.3 and can damage a store")]
    SqliteTooOld {
        /// The version found, as a number.
        found: i32,
    },
    /// No collection has this name.
    #[error("there is no collection {name:?}")]
    NoCollection {
        /// The name asked for.
        name: String,
    },
    /// A collection of this name exists already.
    #[error("there is a collection {name:?} already")]
    CollectionExists {
        /// The name asked for.
        name: String,
    },
    /// A name that no collection can have.
    #[error(
        "{name:?} cannot name a collection: a name is 1 to 200 characters, without control characters or /"
    )]
    InvalidCollectionName {
        /// The name asked for.
        name: String,
    },
    /// The collection holds items of another kind.
    #[error("the collection {name:?} does not hold items of kind {kind}")]
    WrongKind {
        /// The collection.
        name: String,
        /// The kind that was to be put into it.
        kind: &'static str,
    },
    /// No operation has this number.
    #[error("there is no operation {id}")]
    NoOperation {
        /// The number asked for.
        id: i64,
    },
    /// The operation's former versions are not kept any more.
    #[error("operation {id} is too old to be undone: its former versions are no longer kept")]
    HistoryPruned {
        /// The operation.
        id: i64,
    },
    /// A restore replaced the store while the operation was being undone: its number may be another
    /// one's now.
    #[error(
        "a restore replaced the store while operation {id} was being undone; look at the log and undo again"
    )]
    RestoredDuringUndo {
        /// The operation.
        id: i64,
    },
    /// A restore replaced the store after the items of an operation were looked at.
    #[error("a restore replaced the store in the meantime; nothing was changed")]
    StoreRestored,
    /// Somebody undid the operation while it was going on: nothing more is written of it.
    #[error("operation {id} was undone while it was going on, so it ends here")]
    OperationUndone {
        /// The operation.
        id: i64,
    },
    /// The operation was undone before.
    #[error("operation {id} was undone already, by operation {by}")]
    AlreadyUndone {
        /// The operation.
        id: i64,
        /// The operation that undid it.
        by: i64,
    },
    /// The operation erased items for good.
    #[error("operation {id} erased items for good: that cannot be undone")]
    PurgeNotUndoable {
        /// The operation.
        id: i64,
    },
    /// A collection is no longer what the operation left.
    #[error("operation {id} was not undone: the collection {name:?} was changed or removed since")]
    CollectionChanged {
        /// The operation.
        id: i64,
        /// The name that it left the collection.
        name: String,
    },
    /// The cursor is older than what is kept, or of a store that was replaced: read afresh.
    #[error("the cursor has expired: read the whole answer again")]
    CursorExpired,
    /// Erasing for good needs the file to itself, and a reader held on to it.
    #[error("purged, but a reader kept the old pages in use: close it and run the purge again")]
    ReaderBlocksPurge,
    /// Anything else SQLite reports.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// The result of functions that do not know the path of the file, see [`sqlite_error_at`].
pub(crate) type RowResult<T> = std::result::Result<T, RowError>;

/// An error of a function that does not know the path of the file.
#[derive(Debug)]
pub(crate) enum RowError {
    /// An error that SQLite reports.
    Sqlite(rusqlite::Error),
    /// The file is damaged: a row that others require is missing, or pages contradict each other.
    Damaged(String),
}

impl RowError {
    /// The error of a key of `meta` that every store has.
    pub(crate) fn missing_meta(key: &str) -> RowError {
        RowError::Damaged(format!("there is no value for {key:?} in its table meta"))
    }

    /// The error of an item without source bytes.
    pub(crate) fn missing_source_bytes(item: i64) -> RowError {
        RowError::Damaged(format!("the source bytes of item row {item} are missing"))
    }

    /// Returns whether the file is damaged, or no database at all.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            RowError::Damaged(_) => true,
            RowError::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
            ),
        }
    }
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> RowError {
        RowError::Sqlite(error)
    }
}

impl From<rusqlite::types::FromSqlError> for RowError {
    fn from(error: rusqlite::types::FromSqlError) -> RowError {
        RowError::Sqlite(error.into())
    }
}

/// Names the file to which an error of a row or of SQLite belongs, and tells apart the errors that
/// users can act on.
pub(crate) fn sqlite_error_at<E: Into<RowError>>(
    path: &std::path::Path,
) -> impl Fn(E) -> Error + '_ {
    move |error| match error.into() {
        RowError::Damaged(what) => Error::Damaged { path: path.to_path_buf(), what },
        RowError::Sqlite(source) => name_sqlite_error(path, source),
    }
}

fn name_sqlite_error(path: &std::path::Path, source: rusqlite::Error) -> Error {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => {
            Error::DiskFull { dir: path.parent().unwrap_or(path).to_path_buf() }
        }
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            Error::Damaged { path: path.to_path_buf(), what: source.to_string() }
        }
        _ => Error::Sqlite { path: path.to_path_buf(), source },
    }
}

/// Names the file to which a system error belongs.
pub(crate) fn file_error_at(path: &std::path::Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| match source.kind() {
        std::io::ErrorKind::StorageFull => {
            Error::DiskFull { dir: path.parent().unwrap_or(path).to_path_buf() }
        }
        _ => Error::File { path: path.to_path_buf(), source },
    }
}

//! Errors of a store.

use crate::damaged_object::DamagedObject;
use crate::disk_state::{DiskState, disk_state_after_failure};
use crate::failure_cause::{FailureCause, failure_cause, is_failed_sync};
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemHistoryRow, ItemRow, OperationId};
use crate::staging_file::folder_of;
use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a store. No error loses a committed batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory has no store, and the caller did not request to create one.
    #[error("no store in {dir}")]
    NoStore {
        /// The data directory.
        dir: PathBuf,
    },
    /// A file of the data directory could not be created, opened, read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The directory is on a file system that cannot hold a WAL database safely.
    #[error("{dir} is on {file_system}, a network file system: file locks are not reliable there")]
    NetworkFileSystem {
        /// The data directory.
        dir: PathBuf,
        /// The name of the file system in the mount table.
        file_system: String,
    },
    /// The file is a database of another program.
    #[error("{path} is not a larder store (application id {found:#x})")]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// The `application_id` found in it.
        found: i64,
    },
    /// The file is that of another store of a data directory.
    #[error("{path} has the tables of another store, not those of {expected}")]
    OtherStore {
        /// The file.
        path: PathBuf,
        /// The name of the database that it should be.
        expected: String,
    },
    /// A newer Larder wrote the store, with a major version that this program does not support.
    #[error(
        "{path} has schema {major}.{minor} of a newer larder; this version supports schema {known}"
    )]
    SchemaTooNew {
        /// The file.
        path: PathBuf,
        /// Major version found.
        major: i64,
        /// Minor version found.
        minor: i64,
        /// The newest version that this program supports, as `major.minor`.
        known: String,
    },
    /// A development version created the store, with a schema that was never released.
    #[error("{path} was created by a development version of larder; this version cannot read it")]
    DevelopmentSchema {
        /// The file.
        path: PathBuf,
    },
    /// An older version created the store, with a schema that this program cannot migrate.
    #[error("{path} has schema {major}.{minor}, which this version of larder cannot migrate")]
    NoMigration {
        /// The file.
        path: PathBuf,
        /// Major version found.
        major: i64,
        /// Minor version found.
        minor: i64,
    },
    /// An older version created the store, and it has not been opened for writing since then.
    #[error("{path} has the older schema {major}.{minor}: open it for writing to migrate it")]
    SchemaTooOld {
        /// The file.
        path: PathBuf,
        /// Major version found.
        major: i64,
        /// Minor version found.
        minor: i64,
    },
    /// The store is read-only: a newer minor version created it.
    #[error(
        "{path} was created by a newer larder (schema {version}); this version can read it but not write to it"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The version of the store, as `major.minor`.
        version: String,
    },
    /// The disk is full. Committed batches are not affected.
    #[error("no space left on the disk that holds {dir}")]
    DiskFull {
        /// The data directory.
        dir: PathBuf,
    },
    /// The user's quota of the disk is used up. Committed batches are not affected.
    #[error("the quota of the disk that holds {dir} is used up")]
    QuotaExceeded {
        /// The data directory.
        dir: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("{dir} is on a read-only file system")]
    ReadOnlyDisk {
        /// The data directory.
        dir: PathBuf,
    },
    /// Another program has locked the file.
    #[error("another program has locked {path}")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The disk failed.
    #[error("{path}: the disk failed to {operation}")]
    DiskFailed {
        /// The file.
        path: PathBuf,
        /// The operation that failed: read, write, sync or open.
        operation: &'static str,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
    /// Pages or indexes of the file contradict each other.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first finding of SQLite or of the check.
        what: String,
    },
    /// The database file has several names (hard links), each of which would have its own
    /// write-ahead log: changes made under one name would be lost under the other.
    #[error(
        "{path} has {names} names (hard links): changes made under one name are lost under the other"
    )]
    SeveralNames {
        /// The file.
        path: PathBuf,
        /// The number of its names.
        names: u64,
    },
    /// The database is missing, although other files show that it was there.
    #[error("{path} is missing, although the directory had a store")]
    StoreMissing {
        /// The database.
        path: PathBuf,
    },
    /// A restore of a damaged store was interrupted. Opening the store for writing finishes it.
    #[error("a restore of the store in {dir} was interrupted: open it for writing to finish it")]
    RestorePending {
        /// The data directory.
        dir: PathBuf,
    },
    /// The caller stopped the restore: the store is as it was.
    #[error("the restore was stopped; the store was not changed")]
    RestoreStopped,
    /// The file that the caller named as an output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Stored bytes do not match their checksum: a disk, memory or another program changed them.
    #[error("{path} is damaged: the checksum of {object} is wrong")]
    DamagedObject {
        /// The file.
        path: PathBuf,
        /// The object that the bytes belong to.
        object: DamagedObject,
    },
    /// The linked SQLite can corrupt a WAL database.
    #[error(
        "SQLite {}.{}.{} is older than 3.51.3 and can damage a store: build larder with SQLite 3.51.3 or newer",
        .found / 1_000_000,
        .found / 1000 % 1000,
        .found % 1000
    )]
    SqliteTooOld {
        /// The version found, as a number.
        found: i32,
    },
    /// No collection has this name.
    #[error("no such collection: {name:?}")]
    NoCollection {
        /// The requested name.
        name: String,
    },
    /// A collection with this name exists already.
    #[error("collection {name:?} already exists")]
    CollectionExists {
        /// The requested name.
        name: String,
    },
    /// A name that no collection can have.
    #[error(
        "invalid collection name {name:?}: use 1 to 200 characters, without control characters and /, and without larder: at the start"
    )]
    InvalidCollectionName {
        /// The requested name.
        name: String,
    },
    /// Other programs change the labels of a message all the time.
    #[error("the labels of {uid:?} were not changed: other programs keep changing them; try again")]
    LabelsBusy {
        /// The Message-ID.
        uid: String,
    },
    /// A message would have too many labels.
    #[error("{uid:?} would have more than {max} labels: its labels were not changed")]
    TooManyLabels {
        /// The Message-ID.
        uid: String,
        /// The most labels of a message.
        max: usize,
    },
    /// The collection has items of another type.
    #[error("collection {name:?} cannot contain items of kind {kind}")]
    WrongKind {
        /// The collection.
        name: String,
        /// The kind of the refused item.
        kind: &'static str,
    },
    /// No operation has this number.
    #[error("no such operation: {id}")]
    NoOperation {
        /// The requested number.
        id: OperationId,
    },
    /// Versions that the operation replaced were pruned, or a salvage did not find them.
    #[error("operation {id} cannot be undone: versions that it replaced are not in the history")]
    HistoryPruned {
        /// The operation.
        id: OperationId,
    },
    /// A restore replaced the store during the undo of an operation: another operation may now have
    /// its number.
    #[error("a restore replaced the store while operation {id} was being undone")]
    RestoredDuringUndo {
        /// The operation.
        id: OperationId,
    },
    /// A restore replaced the store after the items of an operation were read.
    #[error("conflict: a restore replaced the store; nothing was changed")]
    StoreRestored,
    /// The operation was stopped by an undo: nothing more of it is written.
    #[error("an undo of operation {id} stopped it: the rest was not written")]
    OperationUndone {
        /// The operation.
        id: OperationId,
    },
    /// The operation is undone already.
    #[error("operation {id} was already undone by operation {by}")]
    AlreadyUndone {
        /// The operation.
        id: OperationId,
        /// The operation that undid it.
        by: OperationId,
    },
    /// The operation purged items.
    #[error("operation {id} is a purge: it cannot be undone")]
    PurgeNotUndoable {
        /// The operation.
        id: OperationId,
    },
    /// A collection changed after the operation.
    #[error("operation {id} was not undone: collection {name:?} was changed or removed after it")]
    CollectionChanged {
        /// The operation.
        id: OperationId,
        /// The name of the collection after the operation.
        name: String,
    },
    /// Changes after the cursor were pruned, or the store was replaced: the caller has to read
    /// everything again.
    #[error("change cursor expired: read all items again")]
    CursorExpired,
    /// A purge needs exclusive use of the file, and a reader kept it open.
    #[error("purge incomplete: another process is reading the store")]
    ReaderBlocksPurge,
    /// The store has fewer batches than were committed: another program deleted or replaced the
    /// write-ahead log, or replaced the database by an older copy.
    #[error(
        "{batches} committed {} missing from {path}: its write-ahead log was deleted or replaced",
        if *.batches == 1 { "batch is" } else { "batches are" }
    )]
    BatchesMissing {
        /// The database.
        path: PathBuf,
        /// The number of missing batches.
        batches: u64,
    },
    /// The store is another one than was last written, or a mixture of two.
    #[error("{path} or its write-ahead log was replaced by another program")]
    StoreReplaced {
        /// The database.
        path: PathBuf,
    },
    /// The disk failed to sync a commit: it is unknown whether the change is on the disk.
    #[error("{source}; the change may have been committed")]
    CommitNotSynced {
        /// The failure to sync.
        source: Box<Error>,
    },
    /// The backup is in the place of the store, and could not be verified there.
    #[error(
        "the backup was restored, and the restore was committed, but it cannot be verified: {source}"
    )]
    RestoreNotVerified {
        /// The failure to read it.
        source: Box<Error>,
    },
    /// A purge could not be finished. It is pending work.
    #[error("the purge is not finished: {source}")]
    PurgeNotFinished {
        /// The failure.
        source: Box<Error>,
    },
    /// A copy beside the store is of a version from which this program cannot erase items.
    #[error("items cannot be erased from a copy: {source}")]
    UnknownCopy {
        /// The reason, with the path of the copy.
        source: Box<Error>,
    },
    /// A purge was interrupted or is still running: a copy of the store would have the purged
    /// bytes.
    #[error("{path} may contain data of purged items: a purge is not finished")]
    PurgePending {
        /// The file.
        path: PathBuf,
    },
    /// Any other error of SQLite.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
}

impl Error {
    /// Returns the file that the error says is damaged, or that of another store; `None`: it says
    /// nothing of this kind.
    #[must_use]
    pub fn damaged_file(&self) -> Option<&Path> {
        match self {
            Error::Damaged { path, .. }
            | Error::DamagedObject { path, .. }
            | Error::OtherStore { path, .. } => Some(path),
            Error::PurgeNotFinished { source } => source.damaged_file(),
            _ => None,
        }
    }
}

/// An error of a file that a user names as an output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The output is a file of the store, or in its directory.
    #[error("{path} belongs to the store in {dir}; no output is written there")]
    FileOfStore {
        /// The output.
        path: PathBuf,
        /// The data directory.
        dir: PathBuf,
    },
    /// The output cannot be opened or written.
    #[error("{path}: {source}")]
    File {
        /// The output.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// The result of functions that do not know the path of the file, see [`sqlite_error_at`].
pub(crate) type DatabaseResult<T> = std::result::Result<T, DatabaseError>;

/// An error of a function that does not know the path of the file.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// An error that SQLite reports.
    Sqlite(rusqlite::Error),
    /// The file is damaged: a row that others require is missing, or pages contradict each other.
    Damaged(String),
    /// Stored bytes do not match their checksum.
    DamagedObject(DamagedObject),
}

impl DatabaseError {
    /// The error of a key of `meta` that every store has.
    pub(crate) fn missing_meta(key: &str) -> DatabaseError {
        DatabaseError::Damaged(format!("missing key {key:?} in table meta"))
    }

    /// The error of an item without source bytes.
    pub(crate) fn missing_source_bytes(item: ItemRow) -> DatabaseError {
        DatabaseError::Damaged(format!("the source bytes of item row {item} are missing"))
    }

    /// The error of a calendar context that items refer to.
    pub(crate) fn missing_context(row: CalendarContextRow) -> DatabaseError {
        DatabaseError::Damaged(format!("calendar context {row} is missing"))
    }

    /// The error of a former version that another row refers to.
    pub(crate) fn missing_version(version: ItemHistoryRow) -> DatabaseError {
        DatabaseError::Damaged(format!("former version {version} is missing"))
    }

    /// The error of a collection of an unknown type, in a file whose version this program may
    /// write.
    pub(crate) fn unknown_collection_type(collection: CollectionRow, number: i64) -> DatabaseError {
        DatabaseError::Damaged(format!("collection row {collection} has the unknown type {number}"))
    }

    /// Returns whether the file is damaged, or no database at all.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            DatabaseError::Damaged(_) | DatabaseError::DamagedObject(_) => true,
            DatabaseError::Sqlite(error) => failure_cause(error) == FailureCause::Damage,
        }
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> DatabaseError {
        DatabaseError::Sqlite(error)
    }
}

impl From<rusqlite::types::FromSqlError> for DatabaseError {
    fn from(error: rusqlite::types::FromSqlError) -> DatabaseError {
        DatabaseError::Sqlite(error.into())
    }
}

/// Adds the path of the file to an error of a row or of SQLite, and maps the errors that users can
/// act on to their own variants.
pub(crate) fn sqlite_error_at<E: Into<DatabaseError>>(
    path: &std::path::Path,
) -> impl Fn(E) -> Error + '_ {
    move |error| match error.into() {
        DatabaseError::Damaged(what) => Error::Damaged { path: path.to_path_buf(), what },
        DatabaseError::DamagedObject(object) => {
            Error::DamagedObject { path: path.to_path_buf(), object }
        }
        DatabaseError::Sqlite(source) => name_sqlite_error(path, source),
    }
}

/// Names the file or the disk that an error of SQLite is about.
fn name_sqlite_error(path: &std::path::Path, source: rusqlite::Error) -> Error {
    let is_unsynced = is_failed_sync(&source);
    match name_cause(path, source) {
        source if is_unsynced => Error::CommitNotSynced { source: Box::new(source) },
        error => error,
    }
}

fn name_cause(path: &std::path::Path, source: rusqlite::Error) -> Error {
    // First, because other system calls may fail below.
    let cause = failure_cause(&source);
    let dir = folder_of(path).to_path_buf();
    let path = path.to_path_buf();
    let name_call = |operation| match disk_state_after_failure(&dir) {
        DiskState::Full => FailureCause::DiskFull,
        DiskState::OverQuota => FailureCause::QuotaExceeded,
        DiskState::ReadOnly => FailureCause::ReadOnlyDisk,
        DiskState::Failing => FailureCause::DiskFailed(operation),
        DiskState::Writable if source.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) => {
            FailureCause::DiskFailed(operation)
        }
        DiskState::Writable => FailureCause::Other,
    };
    let cause = match cause {
        FailureCause::System(operation) => name_call(operation),
        cause => cause,
    };
    match cause {
        FailureCause::DiskFull => Error::DiskFull { dir },
        FailureCause::QuotaExceeded => Error::QuotaExceeded { dir },
        FailureCause::ReadOnlyDisk => Error::ReadOnlyDisk { dir },
        FailureCause::DiskFailed(operation) => Error::DiskFailed { path, operation, source },
        FailureCause::Damage => Error::Damaged { path, what: source.to_string() },
        FailureCause::ShortFile => {
            let what = "the file or its write-ahead log, data.db-wal, ends too early; another \
                        program has cut or replaced it";
            Error::Damaged { path, what: what.into() }
        }
        FailureCause::Locked => Error::Locked { path },
        FailureCause::System(_) | FailureCause::Other => Error::Sqlite { path, source },
    }
}

/// Names the file to which a system error belongs.
pub(crate) fn file_error_at(path: &std::path::Path) -> impl Fn(std::io::Error) -> Error + '_ {
    use std::io::ErrorKind;
    move |source| {
        let dir = || folder_of(path).to_path_buf();
        match source.kind() {
            ErrorKind::StorageFull => Error::DiskFull { dir: dir() },
            ErrorKind::QuotaExceeded => Error::QuotaExceeded { dir: dir() },
            ErrorKind::ReadOnlyFilesystem => Error::ReadOnlyDisk { dir: dir() },
            _ => Error::File { path: path.to_path_buf(), source },
        }
    }
}

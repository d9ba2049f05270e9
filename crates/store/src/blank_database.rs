//! The file of a new store: a database without tables, whose changes go to a write-ahead log.
//!
//! SQLite would make it from an empty file, but through a rollback journal: if it cannot create the
//! journal or the log, it tries to open the missing file for reading, and only the error of this
//! second attempt remains. Separate from `data_directory`, which knows names and no databases.

use crate::connection::WriteConnection;
use crate::data_directory::DataDirectory;
use crate::database_copy::create_staging;
use crate::error::{Result, file_error_at, sqlite_error_at};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// The place in the file of the versions that are needed to write and to read it; 2 stands for a
/// write-ahead log.
const VERSIONS_OFFSET: u64 = 18;
const WAL_VERSIONS: [u8; 2] = [2, 2];

/// Creates the file of the store if it is missing or empty, so that only its owner can read it. One
/// that was there and is gone is not made again. For writers that hold the lock.
pub(crate) fn create_database_file(directory: &DataDirectory) -> Result<()> {
    directory.refuse_lost_store()?;
    let path = directory.database_path();
    let is_blank = match fs::symlink_metadata(&path) {
        Ok(found) => found.is_file() && found.len() == 0 && found.nlink() == 1,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    if !is_blank {
        return directory.create_link_target();
    }
    directory.check_not_truncated()?;
    directory.delete_log_of_deleted_store()?;
    let staged = create_staging(directory.path(), &directory.staging_prefix("create"))?;
    WriteConnection::open_staging(staged.path())
        .and_then(|conn| conn.write_first_page())
        .map_err(sqlite_error_at(&path))?;
    staged.file().write_all_at(&WAL_VERSIONS, VERSIONS_OFFSET).map_err(file_error_at(&path))?;
    staged.persist(&path).map_err(file_error_at(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn journal_mode(directory: &DataDirectory) -> String {
        let conn = WriteConnection::open(&directory.database_path()).expect("a database");
        conn.journal_mode().expect("a journal mode")
    }

    #[test]
    fn a_new_file_has_a_write_ahead_log_from_the_beginning() {
        let scratch = tempfile::tempdir().expect("a folder");
        let directory = DataDirectory::new(scratch.path());
        create_database_file(&directory).expect("a new file");
        assert_eq!(journal_mode(&directory), "wal");
        fs::write(directory.database_path(), "").expect("an empty file");
        create_database_file(&directory).expect("a file in the place of the empty one");
        assert_eq!(journal_mode(&directory), "wal");
    }

    #[test]
    fn a_file_that_is_gone_is_not_made_again() {
        let scratch = tempfile::tempdir().expect("a folder");
        let directory = DataDirectory::new(scratch.path());
        for name in ["index.db", "commits.db", "data.notify", "data.db-wal"] {
            let kept = scratch.path().join(name);
            fs::write(&kept, "x").expect("a file");
            let refused = create_database_file(&directory);
            assert!(matches!(refused, Err(Error::StoreMissing { .. })), "{name}: {refused:?}");
            assert!(!directory.has_store(), "{name}");
            fs::remove_file(kept).expect("no file");
        }
        create_database_file(&directory).expect("a new file");
    }

    #[test]
    fn a_file_with_content_stays() {
        let scratch = tempfile::tempdir().expect("a folder");
        let directory = DataDirectory::new(scratch.path());
        fs::write(directory.database_path(), "x").expect("a file");
        create_database_file(&directory).expect("nothing to do");
        assert_eq!(fs::read(directory.database_path()).expect("a file"), b"x");
    }
}

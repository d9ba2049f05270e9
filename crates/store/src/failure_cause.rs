//! The cause of an error of SQLite, as far as users can act on it.
//!
//! SQLite reports the call that failed, and rarely the reason: a used-up quota is an "I/O error",
//! and a page that the disk failed to read is a "malformed" database. The reason is the error
//! number that the last failed system call left in the thread. SQLite's own function for it,
//! `sqlite3_system_errno`, returns the same number, but not for a malformed database. Separate from
//! `error`, which names files, and from `disk_state`, which asks the file system.

use rusqlite::{ErrorCode, ffi};
use rustix::io::Errno;
use std::io;

/// The part of an extended code that is the code of its kind.
const PRIMARY_CODE_MASK: i32 = 0xff;
/// The words of SQLite's integrity check about a page that it could not read: with a code, and
/// without one.
const UNREAD_PAGE_WORDS: [&str; 2] = ["unable to get the page. error code=", "failed to get page"];

/// The cause of an error of SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// The disk has no room.
    DiskFull,
    /// The user's part of the disk is used up.
    QuotaExceeded,
    /// The file system is mounted read-only.
    ReadOnlyDisk,
    /// The disk failed; the operation is `read`, `write`, `sync` or `open`.
    DiskFailed(&'static str),
    /// Pages of the file contradict each other, or it is no database.
    Damage,
    /// A file ended before the place that was read.
    ShortFile,
    /// Another program has locked the file.
    Locked,
    /// A call failed for a reason that SQLite does not report: the file system may know it.
    System(&'static str),
    /// An error of another kind.
    Other,
}

/// Returns the cause of an error. Called in the thread and soon after the call that failed, before
/// another system call fails.
pub(crate) fn failure_cause(error: &rusqlite::Error) -> FailureCause {
    cause_by_errno(error, Errno::from_io_error(&io::Error::last_os_error()))
}

/// Returns whether a sync failed. SQLite syncs after it has written a whole commit to the log, so
/// the next process may find it there.
pub(crate) fn is_failed_sync(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_FSYNC)
}

fn cause_by_errno(error: &rusqlite::Error, errno: Option<Errno>) -> FailureCause {
    if is_value_damage(error) {
        return FailureCause::Damage;
    }
    if is_short_read(error) {
        return FailureCause::ShortFile;
    }
    let Some(code) = error.sqlite_error_code() else { return FailureCause::Other };
    let operation =
        || failed_operation(error.sqlite_error().map_or(0, |error| error.extended_code));
    match code {
        ErrorCode::DiskFull => FailureCause::DiskFull,
        // SQLite's code for a page that it could not read, too.
        ErrorCode::DatabaseCorrupt if is_disk_failure(errno) => FailureCause::DiskFailed("read"),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => FailureCause::Damage,
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => FailureCause::Locked,
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly => match errno {
            Some(Errno::NOSPC) => FailureCause::DiskFull,
            Some(Errno::DQUOT) => FailureCause::QuotaExceeded,
            Some(Errno::ROFS) => FailureCause::ReadOnlyDisk,
            errno if is_disk_failure(errno) => FailureCause::DiskFailed(operation()),
            _ => FailureCause::System(operation()),
        },
        _ => FailureCause::Other,
    }
}

/// Returns whether a value has another type than its column: the tables are strict, so this is
/// damage.
fn is_value_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error;
    matches!(
        error,
        Error::InvalidColumnType(..)
            | Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    )
}

/// Returns whether a file ended before the place that was read. SQLite reads no more of a file than
/// its own index of the file says, so another program has cut or replaced it.
fn is_short_read(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHORT_READ)
}

/// Returns whether a device reported the error. SQLite calls a page malformed after any of them.
fn is_disk_failure(errno: Option<Errno>) -> bool {
    matches!(errno, Some(Errno::IO | Errno::NXIO | Errno::RANGE))
}

/// Returns the operation that failed, by the extended code of SQLite.
fn failed_operation(code: i32) -> &'static str {
    match code {
        ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_FSTAT | ffi::SQLITE_IOERR_CORRUPTFS => "read",
        ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => "sync",
        code if code & PRIMARY_CODE_MASK == ffi::SQLITE_CANTOPEN => "open",
        _ => "write",
    }
}

/// Returns the error in a finding of SQLite's integrity check that is no damage: the disk failed to
/// read a page.
pub(crate) fn read_failure_in_finding(finding: &str) -> Option<rusqlite::Error> {
    let errno = Errno::from_io_error(&io::Error::last_os_error());
    let [with_code, without_code] = UNREAD_PAGE_WORDS;
    let code = finding.split_once(with_code).and_then(|(_, code)| {
        code.split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<i32>().ok()
    });
    let is_unread = match code {
        Some(code) => code & PRIMARY_CODE_MASK == ffi::SQLITE_IOERR,
        None => finding.contains(without_code) && is_disk_failure(errno),
    };
    let code = ffi::Error::new(ffi::SQLITE_IOERR_CORRUPTFS);
    is_unread.then_some(rusqlite::Error::SqliteFailure(code, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn sqlite_error(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn a_page_that_the_disk_failed_to_read_is_not_damage() {
        let malformed = sqlite_error(ffi::SQLITE_CORRUPT);
        assert_eq!(cause_by_errno(&malformed, None), FailureCause::Damage);
        assert_eq!(cause_by_errno(&malformed, Some(Errno::NOENT)), FailureCause::Damage);
        fail_to_read();
        assert_eq!(failure_cause(&malformed), FailureCause::DiskFailed("read"));
    }

    #[test]
    fn the_error_number_tells_the_cause() {
        for (code, errno, cause) in [
            (ffi::SQLITE_IOERR_WRITE, Errno::DQUOT, FailureCause::QuotaExceeded),
            (ffi::SQLITE_IOERR_SHMSIZE, Errno::NOSPC, FailureCause::DiskFull),
            (ffi::SQLITE_IOERR_SHMMAP, Errno::NOSPC, FailureCause::DiskFull),
            (ffi::SQLITE_IOERR_TRUNCATE, Errno::IO, FailureCause::DiskFailed("write")),
            (ffi::SQLITE_IOERR_FSYNC, Errno::IO, FailureCause::DiskFailed("sync")),
            (ffi::SQLITE_IOERR_FSYNC, Errno::DQUOT, FailureCause::QuotaExceeded),
            (ffi::SQLITE_IOERR_CORRUPTFS, Errno::IO, FailureCause::DiskFailed("read")),
            (ffi::SQLITE_CANTOPEN, Errno::DQUOT, FailureCause::QuotaExceeded),
            (ffi::SQLITE_CANTOPEN, Errno::IO, FailureCause::DiskFailed("open")),
            (ffi::SQLITE_CANTOPEN, Errno::ACCESS, FailureCause::System("open")),
            (ffi::SQLITE_FULL, Errno::INVAL, FailureCause::DiskFull),
            (ffi::SQLITE_BUSY, Errno::IO, FailureCause::Locked),
        ] {
            assert_eq!(cause_by_errno(&sqlite_error(code), Some(errno)), cause, "{code} {errno}");
        }
    }

    #[test]
    fn an_unread_page_is_told_from_a_damaged_one() {
        let is_unread = |finding| read_failure_in_finding(finding).is_some();
        assert!(is_unread("Tree 5 page 7: unable to get the page. error code=8458"));
        assert!(!is_unread("Tree 5 page 7: unable to get the page. error code=11"));
        assert!(!is_unread("row 3 missing from index item_uid"));
        assert!(!is_unread("Tree 5 page 7 cell 0: failed to get page 8"));
        fail_to_read();
        assert!(is_unread("Tree 5 page 7 cell 0: failed to get page 8"));
    }

    /// Leaves the error number of a failed read in this thread.
    fn fail_to_read() {
        let mut memory = std::fs::File::open("/proc/self/mem").expect("the memory of this process");
        let read = memory.read(&mut [0]).map_err(|error| error.raw_os_error());
        assert_eq!(read, Err(Some(Errno::IO.raw_os_error())));
    }
}

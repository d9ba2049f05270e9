//! The times of files, which may be any numbers of seconds: a file system takes what it is told.
//!
//! Separate from `maildir`, `mbox_file` and `mail_sync`, which compare them.

/// The nanoseconds of a second.
pub(crate) const NANOSECONDS: i64 = 1_000_000_000;
/// The resolution of the times of common file systems; FAT has two seconds. What was changed less
/// than this before it was read may change again without another time.
pub(crate) const MIN_AGE_SECONDS: i64 = 2;

/// Returns a time in nanoseconds since 1970. One after the year 2262, or before 1677, is the last
/// or the first that there is.
pub(crate) fn to_nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(NANOSECONDS).saturating_add(rest)
}

/// Returns whether a file has at least [`MIN_AGE_SECONDS`] between its last change and the time at
/// which it is read, both in seconds since 1970.
pub(crate) fn has_min_age(modified: i64, read_at: i64) -> bool {
    read_at.saturating_sub(modified) >= MIN_AGE_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_any_numbers() {
        assert_eq!(to_nanoseconds(-1, 999_999_999), -1);
        assert_eq!(to_nanoseconds(9_223_372_036, 854_775_807), i64::MAX);
        assert_eq!(to_nanoseconds(9_223_372_036, 999_999_999), i64::MAX);
        assert_eq!(to_nanoseconds(i64::MAX, 999_999_999), i64::MAX);
        assert_eq!(to_nanoseconds(i64::MIN, 0), i64::MIN);
        assert!(has_min_age(i64::MIN, i64::MAX) && !has_min_age(i64::MAX, i64::MIN));
        assert!(has_min_age(8, 10) && !has_min_age(9, 10));
    }
}

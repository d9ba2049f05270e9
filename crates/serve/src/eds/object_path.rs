//! The paths of the objects on the bus.
//!
//! The module is separate because the service, the registry, books and views all build paths.

use zbus::ObjectPath;

/// The root of all object paths.
pub(super) const ROOT_PATH: &str = "/org/gnome/evolution/dataserver";

/// The number of an opened book, which is never used again. A row would be: after a restore it may
/// belong to another book.
pub(super) type BookNumber = u64;

/// The path of a view.
pub(super) fn view_path(number: u64) -> String {
    format!("{ROOT_PATH}/AddressBookView/{}/{number}", std::process::id())
}

/// Returns whether `path` is an ancestor of `other`.
pub(super) fn is_above(path: &str, other: &str) -> bool {
    other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

/// The process id as part of a path. A client that finds another process under the same bus name
/// does not mistake that process's objects for objects of this process.
pub(super) fn process_id() -> String {
    std::process::id().to_string()
}

/// The path of an opened book.
pub(super) fn book_path(number: BookNumber) -> String {
    format!("{ROOT_PATH}/Subprocess/{}/{number}", std::process::id())
}

/// Converts a text to an object path; an invalid one becomes the root path.
pub(super) fn object_path(path: &str) -> ObjectPath<'static> {
    ObjectPath::try_from(path.to_string())
        .unwrap_or_else(|_| ObjectPath::from_static_str_unchecked("/"))
}

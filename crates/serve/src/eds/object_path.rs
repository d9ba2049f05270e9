//! The paths of the objects on the bus.
//!
//! It is apart because the service, the registry and views all build paths.

use zbus::ObjectPath;

/// The root of all paths.
pub(super) const ROOT_PATH: &str = "/org/gnome/evolution/dataserver";

/// The path of a view.
pub(super) fn view_path(number: u64) -> String {
    format!("{ROOT_PATH}/AddressBookView/{}/{number}", std::process::id())
}

/// Is the first of two paths above the second?
pub(super) fn is_above(path: &str, other: &str) -> bool {
    other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

/// This process, as it is called in paths: who finds another one behind the same name does not take
/// its objects for ours.
pub(super) fn process_id() -> String {
    std::process::id().to_string()
}

/// The path of a book, by its collection's row.
pub(super) fn book_path(row: i64) -> String {
    format!("{ROOT_PATH}/Subprocess/{}/{row}", std::process::id())
}

/// A path that is one; where it were none, the root.
pub(super) fn object_path(path: &str) -> ObjectPath<'static> {
    ObjectPath::try_from(path.to_string())
        .unwrap_or_else(|_| ObjectPath::from_static_str_unchecked("/"))
}

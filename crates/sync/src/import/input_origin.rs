//! The origin of a piece of an import: the name of its file for messages, and the collection of the
//! folder around it.
//!
//! Reads nothing. Separate from `files`, which finds the files, because `calendar` needs the origin
//! and `files` needs `calendar`.

use larder_store::{CollectionType, Kind};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An input: a file or a stream.
#[derive(Debug, Default)]
pub(crate) struct InputOrigin {
    /// The name in messages.
    pub(super) name: String,
    /// The file's name without folder and extension; empty for a stream.
    pub(super) stem: String,
    /// The collection of its folder, if the folder is one.
    pub(super) collection: Option<Arc<FolderCollection>>,
}

/// The collection of a folder with one file for each item.
#[derive(Debug)]
pub(crate) struct FolderCollection {
    /// The name of the collection.
    pub(super) name: Arc<str>,
    pub(super) collection_type: CollectionType,
    /// The text of the file `displayname`, as the name of a collection.
    pub(super) display_name: Option<String>,
    /// The text of the file `color`: `#RRGGBB`, or the name of a colour.
    pub(super) colour: Option<String>,
}

impl InputOrigin {
    /// Returns the collection of the folder, if it holds items of this type.
    pub(super) fn collection_of_type(
        &self,
        collection_type: CollectionType,
    ) -> Option<&Arc<FolderCollection>> {
        self.collection.as_ref().filter(|folder| folder.collection_type == collection_type)
    }
}

impl fmt::Display for InputOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns whether the name of a file is that of files with items of such a kind.
pub(super) fn has_extension(path: &Path, is_wanted: impl Fn(Kind) -> bool) -> bool {
    let ending = path.extension().unwrap_or_default();
    let mut known = Kind::all().filter(|kind| is_wanted(*kind)).flat_map(Kind::file_extensions);
    known.any(|extension| ending.eq_ignore_ascii_case(extension))
}

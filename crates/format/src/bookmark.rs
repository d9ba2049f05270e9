//! Bookmarks: a toy kind of item, which shows what a further kind needs. No release has it.
//!
//! Its fields are here, and its parser; all other stages read its rows in the
//! [table of kinds](crate::kind) and the [table of collection types](crate::collection_type).
//!
//! ```text
//! BEGIN:BOOKMARK
//! UID:1
//! TITLE:Recurrence rules
//! TAG:calendar,reading
//! DATE:2026-03-05
//! LINK:https://example.org/rules
//! END:BOOKMARK
//! ```

use crate::component::Component;
use crate::field::FieldSource::{ListProperties, Properties};
use crate::field::FieldType::{Date, Text, Uid, Uri};
use crate::field::{Field, field_row};
use crate::problem::Problem;
use crate::property::Property;

/// All fields of bookmarks.
#[rustfmt::skip] // A table is read by its columns.
pub const BOOKMARK_FIELDS: &[Field] = &[
    field_row(300, "uid", Uid, Properties(&["UID"]), "the bookmark's identifier").with_aliases(&["id"]),
    field_row(301, "title", Text, Properties(&["TITLE"]), "title").searched_by_default(),
    field_row(302, "tag", Text, ListProperties(&["TAG"]), "tags").with_aliases(&["tags"]).multi_valued().searched_by_default(),
    field_row(303, "date", Date, Properties(&["DATE"]), "date of creation"),
    field_row(304, "link", Uri, Properties(&["LINK"]), "address of the page"),
];

/// A parsed bookmark.
#[derive(Debug, Clone)]
pub struct Bookmark<'a> {
    lines: Component<'a>,
}

impl<'a> Bookmark<'a> {
    /// Parses the bytes of a bookmark.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Bookmark<'a> {
        Bookmark { lines: Component::parse(bytes) }
    }

    /// Returns the values of a field in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        self.lines.values(field)
    }

    /// The first UID that is not empty.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        self.lines.uid()
    }

    /// The properties in order.
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        self.lines.properties()
    }

    /// The problems that do not prevent the bytes from being a bookmark.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        self.lines.problems()
    }

    /// The problem because of which these bytes are not a bookmark, if there is one.
    #[must_use]
    pub fn fatal_problem(&self) -> Option<&Problem> {
        self.lines.fatal_problem()
    }
}

//! Saved searches: named queries, with the labels that their new matches get.
//!
//! A saved search is an item of the store like any other, so that it has a history, can be undone,
//! and is part of backups. Larder writes these items itself; an import does not recognise them.
//!
//! ```text
//! BEGIN:SAVED-SEARCH
//! UID:work
//! QUERY:from:anna or subject:budget
//! KIND:message
//! LABEL:+work
//! LABEL:-inbox
//! END:SAVED-SEARCH
//! ```
//!
//! Values are escaped, and long lines folded, as in iCalendar. A reader ignores lines that it does
//! not know, so that later versions may add some.
//!
//! ```
//! use larder_format::saved_search::SavedSearch;
//!
//! let search = SavedSearch::new("work", "from:anna", "message");
//! let parsed = SavedSearch::parse(search.to_text().as_bytes());
//! assert_eq!(parsed, Some(search));
//! ```

use crate::component::Component;
use crate::field::FieldSource::Properties;
use crate::field::FieldType::{Text, Uid};
use crate::field::{Field, field_row};
use crate::label::{LabelChange, LabelError};
use crate::problem::Problem;
use crate::property::Property;
use crate::writer::ComponentBuilder;

/// The name after BEGIN.
pub(crate) const SAVED_SEARCH_MARK: &str = "SAVED-SEARCH";
/// The name of the kind of a saved search that names none.
const DEFAULT_KIND: &str = "message";
/// The longest name of a saved search, in characters.
pub const MAX_SEARCH_NAME_CHARS: usize = 100;

const NAME: Field = field_row(350, "name", Uid, Properties(&["UID"]), "the name");
const QUERY: Field = field_row(351, "query", Text, Properties(&["QUERY"]), "the search line");
const KIND: Field = field_row(352, "kind", Text, Properties(&["KIND"]), "the kind of the items");
const LABEL: Field =
    field_row(353, "label", Text, Properties(&["LABEL"]), "the labels of new matches")
        .multi_valued();

/// All fields of saved searches.
pub const SAVED_SEARCH_FIELDS: &[Field] = &[NAME, QUERY, KIND, LABEL];

/// A saved search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSearch {
    /// The name, which is its UID.
    pub name: String,
    /// The search line.
    pub query: String,
    /// The name of the kind of the items. A newer program may know more kinds.
    pub kind_name: String,
    /// The changes of labels of new matches: `+label` or `-label`.
    pub label_changes: Vec<String>,
}

impl SavedSearch {
    /// Creates a saved search for items of the kind with this name, which changes no labels.
    #[must_use]
    pub fn new(name: &str, query: &str, kind_name: &str) -> SavedSearch {
        SavedSearch {
            name: name.to_string(),
            query: query.to_string(),
            kind_name: kind_name.to_string(),
            label_changes: Vec::new(),
        }
    }

    /// Parses the source bytes of a saved search; `None`: they have no name.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<SavedSearch> {
        let source = SavedSearchSource::parse(bytes);
        let first = |field| source.values(field).into_iter().next();
        let label_changes = source.values(&LABEL);
        Some(SavedSearch {
            name: first(&NAME)?,
            query: first(&QUERY).unwrap_or_default(),
            kind_name: first(&KIND).unwrap_or_else(|| DEFAULT_KIND.to_string()),
            label_changes,
        })
    }

    /// Returns the change of the labels of new matches.
    ///
    /// # Errors
    /// A part of it is none, as for [`LabelChange::parse`].
    pub fn label_change(&self) -> Result<LabelChange, LabelError> {
        LabelChange::parse(self.label_changes.iter().map(String::as_str))
    }

    /// Returns the source bytes.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut builder = ComponentBuilder::new(SAVED_SEARCH_MARK)
            .add_text("UID", &self.name)
            .add_text("QUERY", &self.query)
            .add_text("KIND", &self.kind_name);
        for change in &self.label_changes {
            builder = builder.add_text("LABEL", change);
        }
        builder.finish()
    }
}

/// Returns whether a saved search can have this name: letters, digits, `_` and `-`, so that `@name`
/// is a whole term of a search line.
#[must_use]
pub fn is_search_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= MAX_SEARCH_NAME_CHARS
        && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// The parsed source of a saved search.
#[derive(Debug, Clone)]
pub struct SavedSearchSource<'a> {
    lines: Component<'a>,
}

impl<'a> SavedSearchSource<'a> {
    /// Parses the bytes of a saved search.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> SavedSearchSource<'a> {
        SavedSearchSource { lines: Component::parse(bytes) }
    }

    /// Returns the values of a field in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        self.lines.values(field)
    }

    /// Returns the name.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        self.lines.uid()
    }

    /// Returns the properties in order.
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        self.lines.properties()
    }

    /// Returns the problems that do not prevent the bytes from being a saved search.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        self.lines.problems()
    }

    /// Returns the problem because of which the bytes are not a saved search, if there is one.
    #[must_use]
    pub fn fatal_problem(&self) -> Option<&Problem> {
        self.lines.fatal_problem()
    }
}

//! The table of types of collections: one row for each type, with the fields of its items and the
//! indexes of these fields.
//!
//! Separate from the [table of kinds](crate::kind) because kinds share a type: events, tasks and
//! memos stand in the same calendar, have the same fields, and are indexed by the same
//! configuration. The numbers are stored: they are never changed, and never used again for another
//! type.

#[cfg(feature = "toy-kind")]
use crate::bookmark::BOOKMARK_FIELDS;
use crate::commit::COMMIT_FIELDS;
use crate::field::{CALENDAR_FIELDS, CONTACT_FIELDS, Field, find_field, suggest_field};
use crate::message::MESSAGE_FIELDS;
use crate::saved_search::SAVED_SEARCH_FIELDS;

/// The type of a collection: the items that it can hold. The default is the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectionType {
    /// Contacts.
    #[default]
    AddressBook = 1,
    /// Events, tasks, memos and the other components of a calendar.
    Calendar = 2,
    /// The messages of a maildir.
    Mail = 3,
    /// Bookmarks.
    #[cfg(feature = "toy-kind")]
    Bookmarks = 4,
    /// The labels of messages.
    Labels = 5,
    /// Saved searches.
    SavedSearches = 6,
    /// The commits of a git repository.
    Repository = 7,
}

/// A row of [`COLLECTION_TYPES`].
#[derive(Debug)]
pub struct CollectionTypeRow {
    /// The type; its number is stored.
    pub collection_type: CollectionType,
    /// The name on the command line and in output.
    pub name: &'static str,
    /// The items that such a collection holds, in words.
    pub items: &'static str,
    /// Whether lists show such collections, and people choose their names. The others have one
    /// collection, which Larder keeps itself and verbs of their own show.
    pub is_listed: bool,
    /// The collection of items for which none was chosen.
    pub default_collection: &'static str,
    /// The fields of these items.
    pub fields: &'static [Field],
    /// The field that names an item.
    pub title_field: &'static str,
    /// The text in place of an empty title.
    pub missing_title: &'static str,
    /// Whether a bare word of three letters or more is searched in all text, also in notes and
    /// addresses.
    pub has_full_text_words: bool,
    /// The field whose order a list has for which none was requested.
    pub default_order: &'static str,
    /// The fields that can be stored beside an item's row, for lists, in the order of their bits.
    /// New ones go to the end.
    pub stored_fields: &'static [&'static str],
    /// The indexes of collections for which none were chosen.
    pub default_indexes: DefaultIndexes,
}

/// The indexes of collections for which none were chosen, by the names of the fields.
#[derive(Debug)]
pub struct DefaultIndexes {
    /// Fields with an index of whole values...
    pub value_fields: &'static [&'static str],
    /// ...of values from their end...
    pub suffix_fields: &'static [&'static str],
    /// ...and of sort keys.
    pub sort_fields: &'static [&'static str],
    /// Fields with an index of their text.
    pub text_fields: TextFields,
}

/// The fields with an index of their text.
#[derive(Debug)]
pub enum TextFields {
    /// These.
    Only(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}

/// All types of collections, by number.
pub const COLLECTION_TYPES: &[CollectionTypeRow] = &[
    CollectionTypeRow {
        collection_type: CollectionType::AddressBook,
        name: "address-book",
        items: "contacts",
        is_listed: true,
        default_collection: "contacts",
        fields: CONTACT_FIELDS,
        title_field: "full_name",
        missing_title: "(no name)",
        has_full_text_words: true,
        default_order: "file_as",
        // The fields that bare words search, the revision, and the labels that lists show.
        stored_fields: &[
            "file_as",
            "full_name",
            "given_name",
            "family_name",
            "nickname",
            "email",
            "phone",
            "org",
            "org_unit",
            "rev",
            "phone_type",
            "email_type",
        ],
        default_indexes: DefaultIndexes {
            value_fields: &[
                "file_as",
                "full_name",
                "given_name",
                "family_name",
                "nickname",
                "email",
                "phone",
                "org",
                "categories",
            ],
            suffix_fields: &[
                "full_name",
                "given_name",
                "family_name",
                "nickname",
                "email",
                "phone",
            ],
            sort_fields: &["file_as", "full_name"],
            // UIDs are looked up through the handle; a search for part of a UID or of a revision is
            // not useful.
            text_fields: TextFields::AllBut(&["uid", "rev"]),
        },
    },
    CollectionTypeRow {
        collection_type: CollectionType::Calendar,
        name: "calendar",
        items: "events, tasks and memos",
        is_listed: true,
        default_collection: "calendar",
        fields: CALENDAR_FIELDS,
        title_field: "summary",
        missing_title: "(no summary)",
        has_full_text_words: false,
        default_order: "start",
        // The fields that lists show.
        stored_fields: &["summary", "location", "category", "status", "priority", "transp"],
        default_indexes: DefaultIndexes {
            value_fields: &["category", "status", "class", "priority"],
            suffix_fields: &[],
            sort_fields: &[],
            // The fields that bare words search.
            text_fields: TextFields::Only(&[
                "summary",
                "description",
                "location",
                "comment",
                "category",
                "organizer",
                "attendee",
            ]),
        },
    },
    CollectionTypeRow {
        collection_type: CollectionType::Mail,
        name: "mail",
        items: "messages",
        is_listed: true,
        default_collection: "mail",
        fields: MESSAGE_FIELDS,
        title_field: "subject",
        missing_title: "(no subject)",
        has_full_text_words: true,
        default_order: "date",
        // Messages are indexed by their words, and their summaries are stored as a whole.
        stored_fields: &[],
        default_indexes: DefaultIndexes {
            value_fields: &[],
            suffix_fields: &[],
            sort_fields: &[],
            text_fields: TextFields::Only(&[]),
        },
    },
    #[cfg(feature = "toy-kind")]
    CollectionTypeRow {
        collection_type: CollectionType::Bookmarks,
        name: "bookmark",
        items: "bookmarks",
        is_listed: true,
        default_collection: "bookmarks",
        fields: BOOKMARK_FIELDS,
        title_field: "title",
        missing_title: "(no title)",
        has_full_text_words: false,
        default_order: "title",
        stored_fields: &["title", "tag", "date"],
        default_indexes: DefaultIndexes {
            value_fields: &["tag"],
            suffix_fields: &[],
            sort_fields: &["title"],
            text_fields: TextFields::Only(&["title", "tag"]),
        },
    },
    CollectionTypeRow {
        collection_type: CollectionType::Labels,
        name: "labels",
        items: "labels of messages",
        is_listed: false,
        default_collection: "larder:labels",
        fields: &[],
        title_field: "",
        missing_title: "(no message)",
        has_full_text_words: false,
        default_order: "",
        stored_fields: &[],
        default_indexes: DefaultIndexes {
            value_fields: &[],
            suffix_fields: &[],
            sort_fields: &[],
            text_fields: TextFields::Only(&[]),
        },
    },
    CollectionTypeRow {
        collection_type: CollectionType::SavedSearches,
        name: "saved-searches",
        items: "saved searches",
        is_listed: false,
        default_collection: "larder:searches",
        fields: SAVED_SEARCH_FIELDS,
        title_field: "name",
        missing_title: "(no name)",
        has_full_text_words: false,
        default_order: "name",
        stored_fields: &[],
        default_indexes: DefaultIndexes {
            value_fields: &[],
            suffix_fields: &[],
            sort_fields: &[],
            text_fields: TextFields::Only(&[]),
        },
    },
    CollectionTypeRow {
        collection_type: CollectionType::Repository,
        name: "repository",
        items: "commits",
        is_listed: true,
        default_collection: "commits",
        fields: COMMIT_FIELDS,
        title_field: "subject",
        missing_title: "(no subject)",
        has_full_text_words: true,
        default_order: "date",
        // As messages: indexed by words, with summaries that are stored as a whole.
        stored_fields: &[],
        default_indexes: DefaultIndexes {
            value_fields: &[],
            suffix_fields: &[],
            sort_fields: &[],
            text_fields: TextFields::Only(&[]),
        },
    },
];

/// The end of the numbers of types.
const NUMBER_END: usize = COLLECTION_TYPES[COLLECTION_TYPES.len() - 1].collection_type as usize + 1;

/// The position of the row of each number; not every number below the end has one.
const POSITIONS: [Option<u8>; NUMBER_END] = {
    let mut positions = [None; NUMBER_END];
    let (mut at, mut last) = (0, 0);
    while at < COLLECTION_TYPES.len() {
        let number = COLLECTION_TYPES[at].collection_type as usize;
        assert!(last < number, "types of collections are in the order of their numbers");
        positions[number] = Some(at as u8);
        (at, last) = (at + 1, number);
    }
    positions
};

impl CollectionType {
    /// Returns the row of the type.
    #[must_use]
    pub fn row(self) -> &'static CollectionTypeRow {
        &COLLECTION_TYPES[self.index()]
    }

    /// Returns the position in tables with a row for each type.
    #[must_use]
    pub fn index(self) -> usize {
        POSITIONS[self as usize].map_or(0, usize::from)
    }

    /// Returns the type with this stored number; `None` if this program does not know it.
    #[must_use]
    pub fn from_number(number: i64) -> Option<CollectionType> {
        let position = POSITIONS.get(usize::try_from(number).ok()?).copied().flatten()?;
        COLLECTION_TYPES.get(usize::from(position)).map(|row| row.collection_type)
    }

    /// Returns the number that is stored.
    #[must_use]
    pub fn number(self) -> i64 {
        self as i64
    }

    /// Returns the type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<CollectionType> {
        CollectionType::all().find(|collection_type| collection_type.name() == name)
    }

    /// Returns the type of the collections whose items have this field.
    #[must_use]
    pub fn from_field(field: &Field) -> CollectionType {
        let has_field =
            |one: &CollectionType| one.fields().iter().any(|other| other.id == field.id);
        CollectionType::all().find(has_field).unwrap_or_default()
    }

    /// Returns all types, by number.
    pub fn all() -> impl Iterator<Item = CollectionType> {
        COLLECTION_TYPES.iter().map(|row| row.collection_type)
    }

    /// Returns the types whose collections lists show, by number.
    pub fn all_listed() -> impl Iterator<Item = CollectionType> {
        CollectionType::all().filter(|one| one.is_listed())
    }

    /// Returns whether lists show such collections, and people choose their names.
    #[must_use]
    pub fn is_listed(self) -> bool {
        self.row().is_listed
    }

    /// Returns the name on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the items that such a collection holds, in words.
    #[must_use]
    pub fn describe_items(self) -> &'static str {
        self.row().items
    }

    /// Returns the collection of items for which none was chosen.
    #[must_use]
    pub fn default_collection(self) -> &'static str {
        self.row().default_collection
    }

    /// Returns the fields of the items.
    #[must_use]
    pub fn fields(self) -> &'static [Field] {
        self.row().fields
    }

    /// Returns the field of the items with this name or alias.
    #[must_use]
    pub fn find_field(self, name: &str) -> Option<&'static Field> {
        find_field(self.fields(), name)
    }

    /// Returns the field that names an item.
    #[must_use]
    pub fn title_field(self) -> Option<&'static Field> {
        self.find_field(self.row().title_field)
    }

    /// Returns the text in place of an empty title.
    #[must_use]
    pub fn missing_title(self) -> &'static str {
        self.row().missing_title
    }

    /// Returns the field whose order a list has for which none was requested.
    #[must_use]
    pub fn default_order(self) -> Option<&'static Field> {
        self.find_field(self.row().default_order)
    }
}

/// Returns the field with this name or alias, of the first type of collection that has one.
#[must_use]
pub fn find_any_field(name: &str) -> Option<&'static Field> {
    CollectionType::all_listed().find_map(|collection_type| collection_type.find_field(name))
}

/// Returns the nearest name of a field to a misspelt one, of the first type of collection that has
/// one that is near.
#[must_use]
pub fn suggest_any_field(name: &str) -> Option<&'static str> {
    CollectionType::all_listed().find_map(|one| suggest_field(one.fields(), name))
}

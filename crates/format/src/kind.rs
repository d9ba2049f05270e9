//! The table of kinds of items: one row for each kind.
//!
//! Import, indexes, storage, queries and lists read this table and test a capability
//! ([`Kind::has_schedule`], [`Kind::is_searchable`], ...) instead of comparing kinds. A new kind is
//! a new row, and one module in each stage that treats it in its own way; a kind with fields of its
//! own has a row in the [table of collection types](crate::collection_type), too. The numbers are
//! stored: they are never changed, and never used again for another kind. A number without a row
//! belongs to a newer program; it has no [`Kind`], and its items are skipped.
//!
//! ```
//! use larder_format::kind::Kind;
//!
//! assert_eq!(Kind::from_component_name("vtodo"), Kind::Task);
//! assert_eq!(Kind::from_number(99), None);
//! assert!(Kind::Task.has_schedule());
//! ```

use crate::collection_type::CollectionType;
use crate::component::ComponentKind;
use crate::field::Field;
use crate::saved_search::{SAVED_SEARCH_MARK, SavedSearch};

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A vCard (RFC 6350, RFC 2426, vCard 2.1).
    Contact = 1,
    /// A VEVENT (RFC 5545, 3.6.1).
    Event = 2,
    /// A VTODO (3.6.2).
    Task = 3,
    /// A VJOURNAL (3.6.3).
    Memo = 4,
    /// Another component of a calendar (VFREEBUSY, VPOLL, ...): stored and exported, not searched.
    Component = 5,
    /// A mail message (RFC 5322).
    Message = 6,
    /// A bookmark.
    #[cfg(feature = "toy-kind")]
    Bookmark = 7,
    /// The labels of a message, see [`crate::label`].
    Labels = 8,
    /// A named query, see [`crate::saved_search`].
    SavedSearch = 9,
    /// A commit of a git repository, see [`crate::commit`].
    Commit = 10,
}

/// How items of a kind are recognised in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMark {
    /// By the name after BEGIN of a component that stands by itself.
    TopLevel(&'static str),
    /// By the name after BEGIN of a component of a calendar.
    CalendarComponent(&'static str),
    /// Any component of a calendar that no other row names.
    AnyCalendarComponent,
    /// In no stream: each item is a file of a source, or is made by the program.
    WholeFile,
    /// In no stream: Larder writes such items itself. In the store they have this name after BEGIN.
    StoreOnly(&'static str),
}

/// The format of source bytes, which decides how they are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFormat {
    /// A vCard.
    Vcard,
    /// A component of a calendar.
    Icalendar,
    /// A mail message.
    Mail,
    /// A commit object of git.
    Commit,
    /// A bookmark.
    #[cfg(feature = "toy-kind")]
    Bookmark,
    /// The labels of a message, one a line.
    Labels,
    /// A saved search.
    SavedSearch,
}

/// Where the source bytes of an item are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLocation {
    /// In the store.
    Store,
    /// At a locator: a path or an object id.
    Locator,
}

/// The columns of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListLayout {
    /// These fields, at most [`MAX_LIST_FIELDS`]; the first is the title.
    Fields(&'static [&'static str]),
    /// Time, title, place, and marks such as "cancelled".
    Schedule,
}

/// The maximum number of fields of a list.
pub const MAX_LIST_FIELDS: usize = 4;

/// A row of [`KINDS`].
#[derive(Debug)]
pub struct KindRow {
    /// The kind; its number is stored.
    pub kind: Kind,
    /// The singular name, on the command line and in output.
    pub name: &'static str,
    /// The plural name, in messages.
    pub plural: &'static str,
    /// How items of the kind are recognised in a stream.
    pub stream_mark: StreamMark,
    /// The type of the collections that hold the kind.
    pub collection_type: CollectionType,
    /// The format of the source bytes.
    pub source_format: SourceFormat,
    /// The extensions of files with such items; the first is the usual one.
    pub file_extensions: &'static [&'static str],
    /// Where the source bytes are.
    pub source_location: SourceLocation,
    /// Items have a time, and perhaps alarms.
    pub has_schedule: bool,
    /// Items are due at the end of their time, which may be their only time.
    pub has_due_time: bool,
    /// An agenda shows the items.
    pub is_in_agenda: bool,
    /// The time of items is busy time.
    pub is_busy_time: bool,
    /// Items have fields that are indexed and searched.
    pub is_searchable: bool,
    /// Options change single fields of items; items of other kinds are changed as text only.
    pub has_field_edits: bool,
    /// Items stand in a calendar (VCALENDAR) with the time zones that they name; an export puts
    /// them into one.
    pub is_exported_in_calendar: bool,
    /// The columns of a list.
    pub list_layout: ListLayout,
}

/// All kinds, by number.
pub const KINDS: &[KindRow] = &[
    KindRow {
        kind: Kind::Contact,
        name: "contact",
        plural: "contacts",
        stream_mark: StreamMark::TopLevel("VCARD"),
        collection_type: CollectionType::AddressBook,
        source_format: SourceFormat::Vcard,
        file_extensions: &["vcf", "vcard"],
        source_location: SourceLocation::Store,
        has_schedule: false,
        has_due_time: false,
        is_in_agenda: false,
        is_busy_time: false,
        is_searchable: true,
        has_field_edits: true,
        is_exported_in_calendar: false,
        list_layout: ListLayout::Fields(&["full_name", "email", "phone", "org"]),
    },
    KindRow {
        kind: Kind::Event,
        name: "event",
        plural: "events",
        stream_mark: StreamMark::CalendarComponent("VEVENT"),
        is_in_agenda: true,
        is_busy_time: true,
        ..CALENDAR_ROW
    },
    KindRow {
        kind: Kind::Task,
        name: "task",
        plural: "tasks",
        stream_mark: StreamMark::CalendarComponent("VTODO"),
        has_due_time: true,
        is_in_agenda: true,
        ..CALENDAR_ROW
    },
    KindRow {
        kind: Kind::Memo,
        name: "memo",
        plural: "memos",
        stream_mark: StreamMark::CalendarComponent("VJOURNAL"),
        ..CALENDAR_ROW
    },
    KindRow { has_schedule: false, is_searchable: false, ..CALENDAR_ROW },
    KindRow {
        kind: Kind::Message,
        name: "message",
        plural: "messages",
        stream_mark: StreamMark::WholeFile,
        collection_type: CollectionType::Mail,
        source_format: SourceFormat::Mail,
        file_extensions: &["eml"],
        source_location: SourceLocation::Locator,
        has_schedule: false,
        has_due_time: false,
        is_in_agenda: false,
        is_busy_time: false,
        is_searchable: true,
        has_field_edits: false,
        is_exported_in_calendar: false,
        list_layout: ListLayout::Fields(&["date", "from", "subject"]),
    },
    #[cfg(feature = "toy-kind")]
    KindRow {
        kind: Kind::Bookmark,
        name: "bookmark",
        plural: "bookmarks",
        stream_mark: StreamMark::TopLevel("BOOKMARK"),
        collection_type: CollectionType::Bookmarks,
        source_format: SourceFormat::Bookmark,
        file_extensions: &["bookmark"],
        source_location: SourceLocation::Store,
        has_schedule: false,
        has_due_time: false,
        is_in_agenda: false,
        is_busy_time: false,
        is_searchable: true,
        has_field_edits: false,
        is_exported_in_calendar: false,
        list_layout: ListLayout::Fields(&["title", "tag", "date"]),
    },
    UNLISTED_ROW,
    KindRow {
        kind: Kind::SavedSearch,
        name: "saved-search",
        plural: "saved searches",
        stream_mark: StreamMark::StoreOnly(SAVED_SEARCH_MARK),
        collection_type: CollectionType::SavedSearches,
        source_format: SourceFormat::SavedSearch,
        list_layout: ListLayout::Fields(&["name", "query"]),
        ..UNLISTED_ROW
    },
    KindRow {
        kind: Kind::Commit,
        name: "commit",
        plural: "commits",
        stream_mark: StreamMark::WholeFile,
        collection_type: CollectionType::Repository,
        source_format: SourceFormat::Commit,
        file_extensions: &[],
        source_location: SourceLocation::Locator,
        has_schedule: false,
        has_due_time: false,
        is_in_agenda: false,
        is_busy_time: false,
        is_searchable: true,
        has_field_edits: false,
        is_exported_in_calendar: false,
        list_layout: ListLayout::Fields(&["date", "author", "subject"]),
    },
];

/// The row of labels, and the values that kinds in collections which no list shows share.
const UNLISTED_ROW: KindRow = KindRow {
    kind: Kind::Labels,
    name: "labels",
    plural: "labels of messages",
    stream_mark: StreamMark::WholeFile,
    collection_type: CollectionType::Labels,
    source_format: SourceFormat::Labels,
    file_extensions: &[],
    source_location: SourceLocation::Store,
    has_schedule: false,
    has_due_time: false,
    is_in_agenda: false,
    is_busy_time: false,
    is_searchable: false,
    has_field_edits: false,
    is_exported_in_calendar: false,
    list_layout: ListLayout::Fields(&[]),
};

/// The row of other components, and the values that all kinds of a calendar share.
const CALENDAR_ROW: KindRow = KindRow {
    kind: Kind::Component,
    name: "component",
    plural: "components",
    stream_mark: StreamMark::AnyCalendarComponent,
    collection_type: CollectionType::Calendar,
    source_format: SourceFormat::Icalendar,
    file_extensions: &["ics", "ical", "ifb", "icalendar", "vcs"],
    source_location: SourceLocation::Store,
    has_schedule: true,
    has_due_time: false,
    is_in_agenda: false,
    is_busy_time: false,
    is_searchable: true,
    has_field_edits: true,
    is_exported_in_calendar: true,
    list_layout: ListLayout::Schedule,
};

/// The end of the numbers of kinds.
const NUMBER_END: usize = KINDS[KINDS.len() - 1].kind as usize + 1;

/// The position of the row of each number; not every number below the end has one.
const POSITIONS: [Option<u8>; NUMBER_END] = {
    let mut positions = [None; NUMBER_END];
    let mut at = 0;
    while at < KINDS.len() {
        let number = KINDS[at].kind as usize;
        assert!(at == 0 || (KINDS[at - 1].kind as usize) < number, "kinds are in order");
        if let ListLayout::Fields(fields) = KINDS[at].list_layout {
            assert!(fields.len() <= MAX_LIST_FIELDS, "a list has no more columns");
        }
        positions[number] = Some(at as u8);
        at += 1;
    }
    positions
};

impl Kind {
    /// Returns the row of the kind.
    #[must_use]
    pub fn row(self) -> &'static KindRow {
        &KINDS[self.index()]
    }

    /// Returns the position in tables with a row for each kind.
    #[must_use]
    pub fn index(self) -> usize {
        POSITIONS[self as usize].map_or(0, usize::from)
    }

    /// Returns the kind with this stored number; `None` if this program does not know it.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Kind> {
        let position = POSITIONS.get(usize::try_from(number).ok()?).copied().flatten()?;
        KINDS.get(usize::from(position)).map(|row| row.kind)
    }

    /// Returns the number that is stored.
    #[must_use]
    pub fn number(self) -> i64 {
        self as i64
    }

    /// Returns the kind with this singular name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::all().find(|kind| kind.name() == name)
    }

    /// Returns the kind of an item of the store by this name after BEGIN, in any case.
    #[must_use]
    pub fn from_component_name(name: &str) -> Kind {
        let names = |row: &&KindRow| match row.stream_mark {
            StreamMark::TopLevel(mark)
            | StreamMark::CalendarComponent(mark)
            | StreamMark::StoreOnly(mark) => mark.eq_ignore_ascii_case(name),
            StreamMark::AnyCalendarComponent | StreamMark::WholeFile => false,
        };
        KINDS.iter().find(names).map_or(Kind::Component, |row| row.kind)
    }

    /// Returns the kind that is recognised in a stream by this name after BEGIN, in any case.
    #[must_use]
    pub fn from_stream_name(name: &str) -> Kind {
        let kind = Kind::from_component_name(name);
        let is_internal = matches!(kind.row().stream_mark, StreamMark::StoreOnly(_));
        if is_internal { Kind::Component } else { kind }
    }

    /// Returns the kind of the items in a collection of this type if they have no name after BEGIN;
    /// `None`: they have one.
    #[must_use]
    pub fn from_unmarked_items(collection_type: CollectionType) -> Option<Kind> {
        let is_unmarked = |row: &&KindRow| {
            row.collection_type == collection_type && row.stream_mark == StreamMark::WholeFile
        };
        KINDS.iter().find(is_unmarked).map(|row| row.kind)
    }

    /// Returns the kind of the items of a saved search; `None` if this program does not know it.
    #[must_use]
    pub fn from_saved_search(search: &SavedSearch) -> Option<Kind> {
        Kind::from_name(&search.kind_name).filter(|kind| kind.is_searchable())
    }

    /// Returns the kind of item that such a component of a calendar is stored as.
    #[must_use]
    pub fn from_component(component: &ComponentKind) -> Kind {
        let kind = Kind::from_component_name(component.name());
        if kind.is_exported_in_calendar() { kind } else { Kind::Component }
    }

    /// Returns whether items that begin with this name, in upper case, are never nested.
    #[must_use]
    pub fn is_top_level_name(name: &str) -> bool {
        let is_named =
            |row: &KindRow| matches!(row.stream_mark, StreamMark::TopLevel(mark) if mark == name);
        KINDS.iter().any(is_named)
    }

    /// Returns all kinds, by number.
    pub fn all() -> impl Iterator<Item = Kind> {
        KINDS.iter().map(|row| row.kind)
    }

    /// Returns the singular name, as on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the plural name.
    #[must_use]
    pub fn plural(self) -> &'static str {
        self.row().plural
    }

    /// Returns the type of the collections that hold the kind.
    #[must_use]
    pub fn collection_type(self) -> CollectionType {
        self.row().collection_type
    }

    /// Returns the name after BEGIN of such items; `None` if they have several or none.
    #[must_use]
    pub fn component_name(self) -> Option<&'static str> {
        match self.row().stream_mark {
            StreamMark::TopLevel(name)
            | StreamMark::CalendarComponent(name)
            | StreamMark::StoreOnly(name) => Some(name),
            StreamMark::AnyCalendarComponent | StreamMark::WholeFile => None,
        }
    }

    /// Returns the format of the source bytes of such items.
    #[must_use]
    pub fn source_format(self) -> SourceFormat {
        self.row().source_format
    }

    /// Returns where the source bytes of such items are.
    #[must_use]
    pub fn source_location(self) -> SourceLocation {
        self.row().source_location
    }

    /// Returns whether the source bytes of such items are elsewhere, at a locator.
    #[must_use]
    pub fn has_locator(self) -> bool {
        self.source_location() == SourceLocation::Locator
    }

    /// Returns the extensions of files with such items; the first is the usual one.
    #[must_use]
    pub fn file_extensions(self) -> &'static [&'static str] {
        self.row().file_extensions
    }

    /// Returns whether such items have a time, and perhaps alarms.
    #[must_use]
    pub fn has_schedule(self) -> bool {
        self.row().has_schedule
    }

    /// Returns whether such items are due at the end of their time.
    #[must_use]
    pub fn has_due_time(self) -> bool {
        self.row().has_due_time
    }

    /// Returns whether an agenda shows such items.
    #[must_use]
    pub fn is_in_agenda(self) -> bool {
        self.row().is_in_agenda
    }

    /// Returns whether the time of such items is busy time.
    #[must_use]
    pub fn is_busy_time(self) -> bool {
        self.row().is_busy_time
    }

    /// Returns whether such items have fields that are indexed and searched.
    #[must_use]
    pub fn is_searchable(self) -> bool {
        self.row().is_searchable
    }

    /// Returns whether options change single fields of such items.
    #[must_use]
    pub fn has_field_edits(self) -> bool {
        self.row().has_field_edits
    }

    /// Returns whether such items stand in a calendar.
    #[must_use]
    pub fn is_exported_in_calendar(self) -> bool {
        self.row().is_exported_in_calendar
    }

    /// Returns the columns of a list.
    #[must_use]
    pub fn list_layout(self) -> ListLayout {
        self.row().list_layout
    }

    /// Returns the fields of such items.
    #[must_use]
    pub fn fields(self) -> &'static [Field] {
        self.collection_type().fields()
    }

    /// Returns whether this is the first kind of its collections, which lists need not name.
    #[must_use]
    pub fn is_main_kind(self) -> bool {
        self.collection_type().main_kind() == self
    }
}

/// The kinds that a collection holds.
impl CollectionType {
    /// Returns the kinds that such a collection holds.
    pub fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::all().filter(move |kind| kind.collection_type() == self)
    }

    /// Returns the first of these kinds.
    #[must_use]
    pub fn main_kind(self) -> Kind {
        self.kinds().next().unwrap_or(Kind::Component)
    }

    /// Returns whether all items of such a collection are of one kind.
    #[must_use]
    pub fn has_one_kind(self) -> bool {
        self.kinds().count() == 1
    }

    /// Returns the singular noun for any item of such a collection.
    #[must_use]
    pub fn item_noun(self) -> &'static str {
        if self.has_one_kind() { self.main_kind().name() } else { "item" }
    }

    /// Returns whether items of such a collection can have a time.
    #[must_use]
    pub fn has_schedules(self) -> bool {
        self.kinds().any(Kind::has_schedule)
    }

    /// Returns whether the items of such a collection stand in a calendar.
    #[must_use]
    pub fn is_exported_in_calendar(self) -> bool {
        self.kinds().any(Kind::is_exported_in_calendar)
    }
}

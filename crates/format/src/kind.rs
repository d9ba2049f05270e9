//! The kinds of items, and the types of collections that hold them: one row a kind, one row a type.
//!
//! Import, indexes, storage, queries and lists read these tables and ask for a capability
//! ([`Kind::has_schedule`], [`Kind::is_searchable`], ...) instead of comparing kinds. A new kind is
//! a new row, and one module in each stage that treats it in its own way. The numbers are stored:
//! they are never changed, and never used again for another kind. A number without a row belongs to
//! a newer program; it has no [`Kind`], and its items are skipped.
//!
//! ```
//! use larder_format::kind::Kind;
//!
//! assert_eq!(Kind::from_component_name("vtodo"), Kind::Task);
//! assert_eq!(Kind::from_number(99), None);
//! assert!(Kind::Task.has_schedule());
//! ```

use crate::component::ComponentKind;
use crate::field::{CALENDAR_FIELDS, CONTACT_FIELDS, Field};

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
}

/// The type of a collection: the items that it can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectionType {
    /// Contacts.
    AddressBook = 1,
    /// Events, tasks, memos and the other components of a calendar.
    Calendar = 2,
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
}

/// Where the source bytes of an item are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLocation {
    /// In the store.
    Store,
    /// At a locator: a path or an object id.
    Locator,
}

/// The order of a list for which none was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultOrder {
    /// By the sort key of this field.
    Field(&'static str),
    /// By the first start.
    Start,
}

/// The columns of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListLayout {
    /// Name, e-mail address, phone number.
    Contacts,
    /// Time, summary, place.
    Calendar,
}

/// A row of [`KINDS`].
#[derive(Debug)]
pub struct KindRow {
    /// The kind; its number is the one that is stored.
    pub kind: Kind,
    /// The singular name, on the command line and in output.
    pub name: &'static str,
    /// The plural name.
    pub plural: &'static str,
    /// How items of the kind are recognised in a stream.
    pub stream_mark: StreamMark,
    /// The type of the collections that hold the kind.
    pub collection_type: CollectionType,
    /// Where the source bytes are.
    pub source_location: SourceLocation,
    /// Items have a time, and perhaps alarms.
    pub has_schedule: bool,
    /// Items have fields that are indexed and searched.
    pub is_searchable: bool,
    /// An export puts items into a calendar (VCALENDAR) with the time zones that they name.
    pub is_exported_in_calendar: bool,
    /// The order of a list for which none was requested.
    pub default_order: DefaultOrder,
    /// The columns of a list.
    pub list_layout: ListLayout,
}

/// A row of [`COLLECTION_TYPES`].
#[derive(Debug)]
pub struct CollectionTypeRow {
    /// The type; its number is the one that is stored.
    pub collection_type: CollectionType,
    /// The name used in output.
    pub name: &'static str,
    /// The items that such a collection holds, in words.
    pub items: &'static str,
    /// The fields of these items.
    pub fields: &'static [Field],
    /// The name of the index configuration of collections for which none was chosen.
    pub default_index_config: &'static str,
}

/// All kinds, by number.
pub const KINDS: &[KindRow] = &[
    KindRow {
        kind: Kind::Contact,
        name: "contact",
        plural: "contacts",
        stream_mark: StreamMark::TopLevel("VCARD"),
        collection_type: CollectionType::AddressBook,
        source_location: SourceLocation::Store,
        has_schedule: false,
        is_searchable: true,
        is_exported_in_calendar: false,
        default_order: DefaultOrder::Field("file_as"),
        list_layout: ListLayout::Contacts,
    },
    KindRow {
        kind: Kind::Event,
        name: "event",
        plural: "events",
        stream_mark: StreamMark::CalendarComponent("VEVENT"),
        ..CALENDAR_ROW
    },
    KindRow {
        kind: Kind::Task,
        name: "task",
        plural: "tasks",
        stream_mark: StreamMark::CalendarComponent("VTODO"),
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
];

/// The row of other components, and the values that all kinds of a calendar share.
const CALENDAR_ROW: KindRow = KindRow {
    kind: Kind::Component,
    name: "component",
    plural: "components",
    stream_mark: StreamMark::AnyCalendarComponent,
    collection_type: CollectionType::Calendar,
    source_location: SourceLocation::Store,
    has_schedule: true,
    is_searchable: true,
    is_exported_in_calendar: true,
    default_order: DefaultOrder::Start,
    list_layout: ListLayout::Calendar,
};

/// All types of collections, by number.
pub const COLLECTION_TYPES: &[CollectionTypeRow] = &[
    CollectionTypeRow {
        collection_type: CollectionType::AddressBook,
        name: "contacts",
        items: "contacts",
        fields: CONTACT_FIELDS,
        default_index_config: "contacts",
    },
    CollectionTypeRow {
        collection_type: CollectionType::Calendar,
        name: "calendar",
        items: "events, tasks and memos",
        fields: CALENDAR_FIELDS,
        default_index_config: "calendar",
    },
];

// A row is found by its number.
const _: () = {
    let mut at = 0;
    while at < KINDS.len() {
        assert!(KINDS[at].kind as usize == at + 1, "kinds are in the order of their numbers");
        at += 1;
    }
    at = 0;
    while at < COLLECTION_TYPES.len() {
        let number = COLLECTION_TYPES[at].collection_type as usize;
        assert!(number == at + 1, "types of collections are in the order of their numbers");
        at += 1;
    }
};

impl Kind {
    /// Returns the row of the kind.
    #[must_use]
    pub fn row(self) -> &'static KindRow {
        &KINDS[self as usize - 1]
    }

    /// Returns the kind with this stored number; `None` if this program does not know it.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Kind> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        KINDS.get(index).map(|row| row.kind)
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

    /// Returns the kind that is recognised by this name after BEGIN, in any case.
    #[must_use]
    pub fn from_component_name(name: &str) -> Kind {
        let names = |row: &&KindRow| match row.stream_mark {
            StreamMark::TopLevel(mark) | StreamMark::CalendarComponent(mark) => {
                mark.eq_ignore_ascii_case(name)
            }
            StreamMark::AnyCalendarComponent => false,
        };
        KINDS.iter().find(names).map_or(Kind::Component, |row| row.kind)
    }

    /// Returns the kind of the items that such components of a calendar are.
    #[must_use]
    pub fn from_component(component: &ComponentKind) -> Kind {
        match component {
            ComponentKind::Event => Kind::Event,
            ComponentKind::Task => Kind::Task,
            ComponentKind::Memo => Kind::Memo,
            _ => Kind::Component,
        }
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

    /// Returns where the source bytes of such items are.
    #[must_use]
    pub fn source_location(self) -> SourceLocation {
        self.row().source_location
    }

    /// Returns whether such items have a time, and perhaps alarms.
    #[must_use]
    pub fn has_schedule(self) -> bool {
        self.row().has_schedule
    }

    /// Returns whether such items have fields that are indexed and searched.
    #[must_use]
    pub fn is_searchable(self) -> bool {
        self.row().is_searchable
    }

    /// Returns whether an export puts such items into a calendar.
    #[must_use]
    pub fn is_exported_in_calendar(self) -> bool {
        self.row().is_exported_in_calendar
    }

    /// Returns the fields of such items.
    #[must_use]
    pub fn fields(self) -> &'static [Field] {
        self.collection_type().fields()
    }

    /// Returns the order of a list for which none was requested.
    #[must_use]
    pub fn default_order(self) -> DefaultOrder {
        self.row().default_order
    }

    /// Returns the columns of a list.
    #[must_use]
    pub fn list_layout(self) -> ListLayout {
        self.row().list_layout
    }
}

impl CollectionType {
    /// Returns the row of the type.
    #[must_use]
    pub fn row(self) -> &'static CollectionTypeRow {
        &COLLECTION_TYPES[self as usize - 1]
    }

    /// Returns the type with this stored number; `None` if this program does not know it.
    #[must_use]
    pub fn from_number(number: i64) -> Option<CollectionType> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        COLLECTION_TYPES.get(index).map(|row| row.collection_type)
    }

    /// Returns the number that is stored.
    #[must_use]
    pub fn number(self) -> i64 {
        self as i64
    }

    /// Returns all types, by number.
    pub fn all() -> impl Iterator<Item = CollectionType> {
        COLLECTION_TYPES.iter().map(|row| row.collection_type)
    }

    /// Returns the name used in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the items that such a collection holds, in words.
    #[must_use]
    pub fn describe_items(self) -> &'static str {
        self.row().items
    }

    /// Returns the kinds that such a collection holds.
    pub fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::all().filter(move |kind| kind.collection_type() == self)
    }

    /// Returns whether items of such a collection can have a time.
    #[must_use]
    pub fn has_schedules(self) -> bool {
        self.kinds().any(Kind::has_schedule)
    }

    /// Returns whether an export puts the items of such a collection into a calendar.
    #[must_use]
    pub fn is_exported_in_calendar(self) -> bool {
        self.kinds().any(Kind::is_exported_in_calendar)
    }

    /// Returns the fields of the items.
    #[must_use]
    pub fn fields(self) -> &'static [Field] {
        self.row().fields
    }

    /// Returns the name of the index configuration of collections for which none was chosen.
    #[must_use]
    pub fn default_index_config(self) -> &'static str {
        self.row().default_index_config
    }
}

//! An item as a question sees it: its values, and what it is in time, each read when it is asked
//! for.
//!
//! There are two: the item itself, taken apart ([`Item`]), and what is kept beside it
//! ([`StoredFieldsItem`]), which is read faster and tells less. `matcher` puts questions to them.

use crate::time_test::DateProperty;
use larder_format::component::Component;
use larder_format::contact::Contact;
use larder_format::field::Field;
use larder_format::property::Property;
use larder_store::{
    CollectionType, ItemMeta, ItemOccurrence, Kind, Reader, Schedule, StoredFields, TimeRange,
};
use larder_time::civil::{CivilTime, Instant};
use larder_time::zone::Zone;
use std::borrow::Cow;
use std::cell::Cell;

/// What a question is put to.
pub(crate) trait ItemFields {
    /// Does a value of the field pass? `None`: there is no value.
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool>;

    /// Its properties; none, if this is only what is kept.
    fn properties(&self) -> &[Property<'_>];

    /// The UID that it names itself.
    fn uid(&self) -> Option<String>;

    /// What it is.
    fn kind(&self) -> Kind;

    /// What it is in time.
    fn schedule(&self) -> Option<Cow<'_, Schedule>>;

    /// The moment that a property names; by this clock where it names no other.
    fn property_instant(&self, stamp: DateProperty, local: &Zone) -> Option<Instant>;

    /// Is it a task, of which an occurrence was due before the end of this window?
    fn is_overdue(&self, _: &TimeRange) -> bool {
        false
    }

    /// Whether it answers cannot be told within bounds.
    fn mark_uncertain(&self) {}
}

/// An item, taken apart.
#[derive(Debug)]
pub struct DecodedItem<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) head: &'a ItemMeta,
    pub(crate) parsed: ParsedSource<'a>,
    pub(crate) schedule_origin: ScheduleOrigin<'a>,
    /// It could not be told within bounds whether it answers.
    pub(crate) uncertain: Cell<bool>,
}

/// Where what an item is in time is known from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScheduleOrigin<'a> {
    /// It is kept beside the item.
    Stored,
    /// It is worked out anew.
    Recomputed,
    /// It was this.
    Given(Option<&'a Schedule>),
}

/// A card or a component.
#[derive(Debug)]
pub(crate) enum ParsedSource<'a> {
    Card(Contact<'a>),
    Component(Component<'a>),
}

impl<'a> ParsedSource<'a> {
    pub(crate) fn parse(reader: &Reader, head: &ItemMeta, bytes: &'a [u8]) -> ParsedSource<'a> {
        match head.kind.collection_type() {
            CollectionType::Calendar => {
                ParsedSource::Component(reader.parse_component(head, bytes))
            }
            _ => ParsedSource::Card(Contact::parse(bytes)),
        }
    }

    pub(crate) fn values(&self, field: &Field) -> Vec<String> {
        match self {
            ParsedSource::Card(card) => card.values(field),
            ParsedSource::Component(component) => component.values(field),
        }
    }

    pub(crate) fn first(&self, field: &Field) -> Option<String> {
        match self {
            ParsedSource::Card(card) => card.first_value(field),
            ParsedSource::Component(component) => component.first_value(field),
        }
    }
}

impl<'a> DecodedItem<'a> {
    /// Takes an item apart.
    #[must_use]
    pub fn new(reader: &'a Reader, head: &'a ItemMeta, bytes: &'a [u8]) -> DecodedItem<'a> {
        let (parsed, uncertain) = (ParsedSource::parse(reader, head, bytes), Cell::new(false));
        DecodedItem { reader, head, parsed, schedule_origin: ScheduleOrigin::Stored, uncertain }
    }

    /// The first value of a field.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<String> {
        self.parsed.first(field)
    }

    /// The values of a field that are searched.
    pub(crate) fn searched_values(&self, field: &Field) -> Vec<String> {
        // What is only kept is not searched.
        if self.head.kind == Kind::Component { Vec::new() } else { self.parsed.values(field) }
    }
}

impl ItemFields for DecodedItem<'_> {
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let values = self.searched_values(field);
        (!values.is_empty()).then(|| values.iter().any(|value| pass(value)))
    }

    fn properties(&self) -> &[Property<'_>] {
        match &self.parsed {
            ParsedSource::Card(card) => card.properties(),
            ParsedSource::Component(component) => component.properties(),
        }
    }

    fn uid(&self) -> Option<String> {
        match &self.parsed {
            ParsedSource::Card(card) => card.uid(),
            ParsedSource::Component(component) => component.uid(),
        }
    }

    fn kind(&self) -> Kind {
        self.head.kind
    }

    fn schedule(&self) -> Option<Cow<'_, Schedule>> {
        match self.schedule_origin {
            ScheduleOrigin::Recomputed => {
                self.reader.recompute_schedule(self.head.row).ok().flatten().map(Cow::Owned)
            }
            ScheduleOrigin::Stored => {
                read_schedule_or_none(self.reader, self.head.row).map(Cow::Owned)
            }
            ScheduleOrigin::Given(times) => times.map(Cow::Borrowed),
        }
    }

    fn property_instant(&self, stamp: DateProperty, local: &Zone) -> Option<Instant> {
        let ParsedSource::Component(component) = &self.parsed else { return None };
        let frame = self
            .head
            .calendar_context
            .and_then(|row| self.reader.calendar_context(row).ok().flatten());
        let frame = frame.unwrap_or_default();
        self.reader.extractor().resolve_instant(component, &frame, stamp.property_name(), local)
    }

    fn is_overdue(&self, window: &TimeRange) -> bool {
        let ParsedSource::Component(component) = &self.parsed else { return false };
        let frame = self
            .head
            .calendar_context
            .and_then(|row| self.reader.calendar_context(row).ok().flatten());
        let frame = frame.unwrap_or_default();
        let (deriver, local) = (self.reader.extractor(), &window.local_zone);
        let said = |name: &str| component.time_properties(name).next();
        let start = |name: &str| deriver.resolve_date_time(&said(name)?, &frame);
        let due = start("DUE");
        if self.head.kind != Kind::Task || (due.is_none() && said("DURATION").is_none()) {
            return false;
        }
        // A day is due until it is over.
        let day_after = |day: i64| local.to_instant(CivilTime::midnight(day + 1));
        let times = if self.head.recurrence_id.is_empty() { self.schedule() } else { None };
        if let (Some(due), None) = (&due, times.as_ref().filter(|times| times.is_recurring())) {
            let moment = match due.is_date {
                true => Some(day_after(due.civil.day_number())),
                false => deriver.resolve_instant(component, &frame, "DUE", local),
            };
            return moment.is_some_and(|due| due < window.to);
        }
        let days = due.filter(|due| due.is_date).map(|due| {
            due.civil.day_number()
                - start("DTSTART").map_or(due.civil.day_number(), |start| start.civil.day_number())
        });
        // They take as long as each other, so the first is due first.
        let mut overdue = None;
        let whole = times.or_else(|| self.schedule()).is_none_or(|times| {
            times.for_each_in(window, &mut |ItemOccurrence { occurrence: of, .. }| {
                let due = days.map_or(of.end, |days| day_after(of.start_civil.day_number() + days));
                overdue = Some(due < window.to);
                false
            })
        });
        if overdue.is_none() && !whole {
            self.mark_uncertain();
        }
        overdue.unwrap_or_default()
    }

    fn mark_uncertain(&self) {
        self.uncertain.set(true);
    }
}

/// What is kept of an item.
pub(crate) struct StoredFieldsItem<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) head: &'a ItemMeta,
    pub(crate) stored_fields: StoredFields<'a>,
    /// It could not be told within bounds whether it answers.
    pub(crate) uncertain: &'a Cell<bool>,
}

impl ItemFields for StoredFieldsItem<'_> {
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let mut values = self.stored_fields.values(field).peekable();
        values.peek()?;
        Some(values.any(pass))
    }

    fn properties(&self) -> &[Property<'_>] {
        &[]
    }

    fn uid(&self) -> Option<String> {
        None
    }

    fn kind(&self) -> Kind {
        self.head.kind
    }

    fn schedule(&self) -> Option<Cow<'_, Schedule>> {
        read_schedule_or_none(self.reader, self.head.row).map(Cow::Owned)
    }

    fn property_instant(&self, _: DateProperty, _: &Zone) -> Option<Instant> {
        None
    }

    fn mark_uncertain(&self) {
        self.uncertain.set(true);
    }
}

/// A card alone, of which nobody asks more.
impl ItemFields for Contact<'_> {
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let values = self.values(field);
        (!values.is_empty()).then(|| values.iter().any(|value| pass(value)))
    }

    fn properties(&self) -> &[Property<'_>] {
        Contact::properties(self)
    }

    fn uid(&self) -> Option<String> {
        Contact::uid(self)
    }

    fn kind(&self) -> Kind {
        Kind::Contact
    }

    fn schedule(&self) -> Option<Cow<'_, Schedule>> {
        None
    }

    fn property_instant(&self, _: DateProperty, _: &Zone) -> Option<Instant> {
        None
    }
}

fn read_schedule_or_none(reader: &Reader, row: i64) -> Option<Schedule> {
    let mut found = None;
    // Where the store cannot be read, the question that this is part of meets the same error.
    let _read = reader.for_each_schedule(&[row], &mut |_, times| {
        found = Some(times.clone());
        false
    });
    found
}

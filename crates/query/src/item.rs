//! The values and the schedule of an item, each read when a predicate tests it.
//!
//! There are two implementations: the parsed item ([`DecodedItem`]), and its stored fields
//! ([`StoredFieldsItem`]), which are faster to read and incomplete. Separate from `matcher`, which
//! tests them.

use crate::local_time::read_schedule;
use crate::time_test::DateProperty;
use larder_format::field::Field;
use larder_format::parsed_source::ParsedSource;
use larder_format::property::Property;
use larder_store::{
    CalendarContext, Error, ItemMeta, ItemOccurrence, Kind, Reader, Schedule, StoredFields,
    TimeRange,
};
use larder_time::civil::{CivilTime, Instant};
use larder_time::zone::Zone;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The values of an item that a predicate tests.
pub(crate) trait ItemFields {
    /// Returns whether a value of the field passes; `None` if there is no value.
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool>;

    /// The properties; none if only stored fields are available.
    fn properties(&self) -> &[Property<'_>];

    /// The UID in the source bytes.
    fn uid(&self) -> Option<String>;

    /// The kind of the item.
    fn kind(&self) -> Kind;

    /// The schedule.
    fn schedule(&self) -> Option<Cow<'_, Schedule>>;

    /// The instant in a property; read in `local` if the property names no time zone.
    fn property_instant(&self, stamp: DateProperty, local: &Zone) -> Option<Instant>;

    /// Returns whether this is a task with an occurrence that was due before the end of the range.
    fn is_overdue(&self, _: &TimeRange) -> bool {
        false
    }

    /// Records that the test could not be decided within bounds.
    fn mark_undecided(&self) {}
}

/// The errors and the missing decisions of a test. Its result counts only if there is no error.
#[derive(Debug, Default)]
pub(crate) struct TestStatus {
    is_undecided: Cell<bool>,
    error: RefCell<Option<Error>>,
}

impl TestStatus {
    /// Returns the value, or a default value in place of an error, which is kept.
    fn value_or_default<T: Default>(&self, value: Result<T, Error>) -> T {
        value.unwrap_or_else(|error| {
            self.error.borrow_mut().get_or_insert(error);
            T::default()
        })
    }

    /// Returns whether the test could not be decided within bounds.
    ///
    /// # Errors
    /// The first error of the store.
    pub(crate) fn into_undecided(self) -> Result<bool, Error> {
        match self.error.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.is_undecided.get()),
        }
    }
}

/// A parsed item.
#[derive(Debug)]
pub struct DecodedItem<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) meta: &'a ItemMeta,
    pub(crate) parsed: ParsedSource<'a>,
    pub(crate) schedule_origin: ScheduleOrigin<'a>,
    pub(crate) status: TestStatus,
    /// The values of the fields that were read, by id; `None` if each is read once.
    pub(crate) kept_values: Option<RefCell<FxHashMap<u16, Vec<String>>>>,
}

/// The origin of an item's schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScheduleOrigin<'a> {
    /// The index.
    Stored,
    /// The source bytes, from which the schedule is derived again.
    Recomputed,
    /// The caller.
    Given(Option<&'a Schedule>),
}

impl<'a> DecodedItem<'a> {
    /// Parses the source bytes of an item.
    #[must_use]
    pub fn new(reader: &'a Reader, meta: &'a ItemMeta, bytes: &'a [u8]) -> DecodedItem<'a> {
        DecodedItem::from_parsed(reader, meta, reader.items().parse_source(meta, bytes))
    }

    pub(crate) fn from_parsed(
        reader: &'a Reader,
        meta: &'a ItemMeta,
        parsed: ParsedSource<'a>,
    ) -> DecodedItem<'a> {
        DecodedItem {
            reader,
            meta,
            parsed,
            schedule_origin: ScheduleOrigin::Stored,
            status: TestStatus::default(),
            kept_values: None,
        }
    }

    pub(crate) fn with_schedule_origin(
        self,
        schedule_origin: ScheduleOrigin<'a>,
    ) -> DecodedItem<'a> {
        DecodedItem { schedule_origin, ..self }
    }

    /// Keeps the values of each field that is read, for queries that read a field many times.
    pub(crate) fn with_kept_values(self) -> DecodedItem<'a> {
        DecodedItem { kept_values: Some(RefCell::default()), ..self }
    }

    /// The first value of a field.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<String> {
        self.parsed.first_value(field)
    }

    /// The calendar context; empty if the item has none.
    fn calendar_context(&self) -> Arc<CalendarContext> {
        let row = self.meta.calendar_context;
        let context = row.map(|row| self.reader.items().calendar_context(row)).transpose();
        self.status.value_or_default(context).flatten().unwrap_or_default()
    }

    /// The values of a field; none for an item of a kind that is not searched.
    pub(crate) fn searched_values(&self, field: &Field) -> Vec<String> {
        if self.meta.kind.is_searchable() { self.parsed.values(field) } else { Vec::new() }
    }
}

impl ItemFields for DecodedItem<'_> {
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let any = |values: &[String], pass: &mut dyn FnMut(&str) -> bool| {
            (!values.is_empty()).then(|| values.iter().any(|value| pass(value)))
        };
        let Some(kept_values) = &self.kept_values else {
            return any(&self.searched_values(field), pass);
        };
        if let Some(values) = kept_values.borrow().get(&field.id) {
            return any(values, pass);
        }
        let values = self.searched_values(field);
        let passes = any(&values, pass);
        kept_values.borrow_mut().insert(field.id, values);
        passes
    }

    fn properties(&self) -> &[Property<'_>] {
        self.parsed.properties()
    }

    fn uid(&self) -> Option<String> {
        self.parsed.uid()
    }

    fn kind(&self) -> Kind {
        self.meta.kind
    }

    fn schedule(&self) -> Option<Cow<'_, Schedule>> {
        match self.schedule_origin {
            ScheduleOrigin::Recomputed => {
                let schedule = self.reader.items().recompute_schedule(self.meta.row);
                self.status.value_or_default(schedule).map(Cow::Owned)
            }
            ScheduleOrigin::Stored => {
                let schedule = read_schedule(self.reader, self.meta.row);
                self.status.value_or_default(schedule).map(Cow::Owned)
            }
            ScheduleOrigin::Given(times) => times.map(Cow::Borrowed),
        }
    }

    fn property_instant(&self, stamp: DateProperty, local: &Zone) -> Option<Instant> {
        let component = self.parsed.component()?;
        let calendar_context = self.calendar_context();
        self.reader.extractor().resolve_instant(
            component,
            &calendar_context,
            stamp.property_name(),
            local,
        )
    }

    fn is_overdue(&self, time_range: &TimeRange) -> bool {
        let Some(component) = self.parsed.component() else { return false };
        let calendar_context = self.calendar_context();
        let (extractor, local) = (self.reader.extractor(), &time_range.local_zone);
        let written = |name: &str| component.time_properties(name).next();
        let start = |name: &str| extractor.resolve_date_time(&written(name)?, &calendar_context);
        let due = start("DUE");
        if !self.meta.kind.has_due_time() || (due.is_none() && written("DURATION").is_none()) {
            return false;
        }
        // A date is due until the end of that day.
        let day_after = |day: i64| local.to_instant(CivilTime::midnight(day + 1));
        let times = if self.meta.recurrence_id.is_empty() { self.schedule() } else { None };
        if let (Some(due), None) = (&due, times.as_ref().filter(|times| times.is_recurring())) {
            let moment = match due.is_date {
                true => Some(day_after(due.civil.day_number())),
                false => extractor.resolve_instant(component, &calendar_context, "DUE", local),
            };
            return moment.is_some_and(|due| due < time_range.to);
        }
        let days = due.filter(|due| due.is_date).map(|due| {
            due.civil.day_number()
                - start("DTSTART").map_or(due.civil.day_number(), |start| start.civil.day_number())
        });
        // All occurrences have the same duration, so the first is due first.
        let mut overdue = None;
        let is_complete = times.or_else(|| self.schedule()).is_none_or(|times| {
            times.for_each_in(time_range, &mut |ItemOccurrence { occurrence, .. }| {
                let due = days.map_or(occurrence.end, |days| {
                    day_after(occurrence.start_civil.day_number() + days)
                });
                overdue = Some(due < time_range.to);
                false
            })
        });
        if overdue.is_none() && !is_complete {
            self.mark_undecided();
        }
        overdue.unwrap_or_default()
    }

    fn mark_undecided(&self) {
        self.status.is_undecided.set(true);
    }
}

/// The stored fields of an item.
pub(crate) struct StoredFieldsItem<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) meta: &'a ItemMeta,
    pub(crate) stored_fields: StoredFields<'a>,
    pub(crate) status: &'a TestStatus,
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
        self.meta.kind
    }

    fn schedule(&self) -> Option<Cow<'_, Schedule>> {
        self.status.value_or_default(read_schedule(self.reader, self.meta.row)).map(Cow::Owned)
    }

    fn property_instant(&self, _: DateProperty, _: &Zone) -> Option<Instant> {
        None
    }

    fn mark_undecided(&self) {
        self.status.is_undecided.set(true);
    }
}

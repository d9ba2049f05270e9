//! An item as a question sees it: its values, and what it is in time, each read when it is asked for.
//!
//! There are two: the item itself, taken apart ([`Item`]), and what is kept beside it ([`KeptItem`]), which is read faster and
//! tells less. `matcher` puts questions to them.

use crate::time::Stamp;
use larder_format::component::Component;
use larder_format::contact::Contact;
use larder_format::field::Field;
use larder_format::property::Property;
use larder_store::{Family, ItemHead, Kept, Kind, Reader, Times, Window};
use larder_time::civil::{Civil, Instant};
use larder_time::zone::Zone;
use std::cell::Cell;

/// What a question is put to.
pub(crate) trait Values {
    /// Does a value of the field pass? `None`: there is no value.
    fn any(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool>;

    /// Its properties; none, if this is only what is kept.
    fn properties(&self) -> &[Property<'_>];

    /// The UID that it names itself.
    fn uid(&self) -> Option<String>;

    /// What it is.
    fn kind(&self) -> Kind;

    /// What it is in time.
    fn times(&self) -> Option<Times>;

    /// The moment that a property names; by this clock where it names no other.
    fn stamp(&self, stamp: Stamp, local: &Zone) -> Option<Instant>;

    /// Is it a task, of which an occurrence was due before the end of this window?
    fn is_overdue(&self, _: &Window) -> bool {
        false
    }

    /// Whether it answers cannot be told within bounds.
    fn doubt(&self) {}
}

/// An item, taken apart.
#[derive(Debug)]
pub struct Item<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) head: &'a ItemHead,
    pub(crate) parsed: Parsed<'a>,
    /// What it is in time is worked out anew.
    pub(crate) anew: bool,
    /// It could not be told within bounds whether it answers.
    pub(crate) doubt: Cell<bool>,
}

/// A card or a component.
#[derive(Debug)]
pub(crate) enum Parsed<'a> {
    Card(Contact<'a>),
    Component(Component<'a>),
}

impl<'a> Parsed<'a> {
    pub(crate) fn of(reader: &Reader, head: &ItemHead, bytes: &'a [u8]) -> Parsed<'a> {
        match head.kind.family() {
            Family::Calendar => Parsed::Component(reader.component(head, bytes)),
            _ => Parsed::Card(Contact::parse(bytes)),
        }
    }

    pub(crate) fn values(&self, field: &Field) -> Vec<String> {
        match self {
            Parsed::Card(card) => card.values(field),
            Parsed::Component(component) => component.values(field),
        }
    }

    pub(crate) fn first(&self, field: &Field) -> Option<String> {
        match self {
            Parsed::Card(card) => card.first(field),
            Parsed::Component(component) => component.first(field),
        }
    }
}

impl<'a> Item<'a> {
    /// Takes an item apart.
    #[must_use]
    pub fn new(reader: &'a Reader, head: &'a ItemHead, bytes: &'a [u8]) -> Item<'a> {
        let (parsed, doubt) = (Parsed::of(reader, head, bytes), Cell::new(false));
        Item { reader, head, parsed, anew: false, doubt }
    }

    /// The first value of a field.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<String> {
        self.parsed.first(field)
    }
}

impl Values for Item<'_> {
    fn any(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        // What is only kept is not searched.
        if self.head.kind == Kind::Other {
            return None;
        }
        let values = self.parsed.values(field);
        (!values.is_empty()).then(|| values.iter().any(|value| pass(value)))
    }

    fn properties(&self) -> &[Property<'_>] {
        match &self.parsed {
            Parsed::Card(card) => card.properties(),
            Parsed::Component(component) => component.properties(),
        }
    }

    fn uid(&self) -> Option<String> {
        match &self.parsed {
            Parsed::Card(card) => card.uid(),
            Parsed::Component(component) => component.uid(),
        }
    }

    fn kind(&self) -> Kind {
        self.head.kind
    }

    fn times(&self) -> Option<Times> {
        match self.anew {
            true => self.reader.times_anew(self.head.row).ok().flatten(),
            false => times(self.reader, self.head.row),
        }
    }

    fn stamp(&self, stamp: Stamp, local: &Zone) -> Option<Instant> {
        let Parsed::Component(component) = &self.parsed else { return None };
        let frame = self.head.frame.and_then(|row| self.reader.frame(row).ok().flatten());
        let frame = frame.unwrap_or_default();
        self.reader.deriver().moment(component, &frame, stamp.property(), local)
    }

    fn is_overdue(&self, window: &Window) -> bool {
        let Parsed::Component(component) = &self.parsed else { return false };
        let Some(due) = component.timed("DUE").next() else { return false };
        let frame = self.head.frame.and_then(|row| self.reader.frame(row).ok().flatten());
        let frame = frame.unwrap_or_default();
        let (deriver, local) = (self.reader.deriver(), &window.local);
        let Some(first) = deriver.start(&due, &frame) else { return false };
        // A day is due until it is over.
        let day_after = |day: i64| local.instant(Civil::midnight(day + 1));
        let series = if self.head.recurrence.is_empty() { self.times() } else { None };
        let Some(series) = series.filter(Times::recurs) else {
            let due = match first.date {
                true => Some(day_after(first.civil.day())),
                false => deriver.moment(component, &frame, "DUE", local),
            };
            return due.is_some_and(|due| due < window.to);
        };
        let begins = component.timed("DTSTART").next();
        let begins = begins.and_then(|begins| deriver.start(&begins, &frame));
        let days = begins.map_or(0, |begins| first.civil.day() - begins.civil.day());
        let mut overdue = false;
        let whole = series.each(window, &mut |occurring| {
            let of = occurring.of;
            let due = if first.date { day_after(of.start_civil.day() + days) } else { of.end };
            overdue = due < window.to;
            !overdue
        });
        if !overdue && !whole {
            self.doubt();
        }
        overdue
    }

    fn doubt(&self) {
        self.doubt.set(true);
    }
}

/// What is kept of an item.
pub(crate) struct KeptItem<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) head: &'a ItemHead,
    pub(crate) kept: Kept<'a>,
    /// It could not be told within bounds whether it answers.
    pub(crate) doubt: &'a Cell<bool>,
}

impl Values for KeptItem<'_> {
    fn any(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let mut values = self.kept.values(field).peekable();
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

    fn times(&self) -> Option<Times> {
        times(self.reader, self.head.row)
    }

    fn stamp(&self, _: Stamp, _: &Zone) -> Option<Instant> {
        None
    }

    fn doubt(&self) {
        self.doubt.set(true);
    }
}

/// A card alone, of which nobody asks more.
impl Values for Contact<'_> {
    fn any(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
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

    fn times(&self) -> Option<Times> {
        None
    }

    fn stamp(&self, _: Stamp, _: &Zone) -> Option<Instant> {
        None
    }
}

fn times(reader: &Reader, row: i64) -> Option<Times> {
    let mut found = None;
    // Where the store cannot be read, the question that this is part of meets the same error.
    let _read = reader.times(&[row], &mut |_, times| {
        found = Some(times.clone());
        false
    });
    found
}

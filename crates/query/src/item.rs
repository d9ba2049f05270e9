//! An item as a question sees it: its values, and what it is in time, each read when it is asked for.
//!
//! There are two: the item itself, taken apart ([`Item`]), and what is kept beside it ([`KeptItem`]), which is read faster and
//! tells less. `matcher` puts questions to them.

use crate::time::Stamp;
use larder_format::component::Component;
use larder_format::contact::Contact;
use larder_format::field::Field;
use larder_format::property::Property;
use larder_store::{Family, ItemHead, Kept, Kind, Occurring, Reader, Times, Window};
use larder_time::civil::{Civil, Instant};
use larder_time::zone::Zone;
use std::borrow::Cow;
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
    fn times(&self) -> Option<Cow<'_, Times>>;

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
    pub(crate) when: When<'a>,
    /// It could not be told within bounds whether it answers.
    pub(crate) doubt: Cell<bool>,
}

/// Where what an item is in time is known from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When<'a> {
    /// It is kept beside the item.
    Kept,
    /// It is worked out anew.
    Anew,
    /// It was this.
    Was(Option<&'a Times>),
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
        Item { reader, head, parsed, when: When::Kept, doubt }
    }

    /// The first value of a field.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<String> {
        self.parsed.first(field)
    }

    /// The values of a field that are searched.
    pub(crate) fn searched(&self, field: &Field) -> Vec<String> {
        // What is only kept is not searched.
        if self.head.kind == Kind::Other { Vec::new() } else { self.parsed.values(field) }
    }
}

impl Values for Item<'_> {
    fn any(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let values = self.searched(field);
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

    fn times(&self) -> Option<Cow<'_, Times>> {
        match self.when {
            When::Anew => self.reader.times_anew(self.head.row).ok().flatten().map(Cow::Owned),
            When::Kept => times(self.reader, self.head.row).map(Cow::Owned),
            When::Was(times) => times.map(Cow::Borrowed),
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
        let frame = self.head.frame.and_then(|row| self.reader.frame(row).ok().flatten());
        let frame = frame.unwrap_or_default();
        let (deriver, local) = (self.reader.deriver(), &window.local);
        let said = |name: &str| component.timed(name).next();
        let start = |name: &str| deriver.start(&said(name)?, &frame);
        let due = start("DUE");
        if self.head.kind != Kind::Task || (due.is_none() && said("DURATION").is_none()) {
            return false;
        }
        // A day is due until it is over.
        let day_after = |day: i64| local.instant(Civil::midnight(day + 1));
        let times = if self.head.recurrence.is_empty() { self.times() } else { None };
        if let (Some(due), None) = (&due, times.as_ref().filter(|times| times.recurs())) {
            let moment = match due.date {
                true => Some(day_after(due.civil.day())),
                false => deriver.moment(component, &frame, "DUE", local),
            };
            return moment.is_some_and(|due| due < window.to);
        }
        let days = due.filter(|due| due.date).map(|due| {
            due.civil.day() - start("DTSTART").map_or(due.civil.day(), |start| start.civil.day())
        });
        // They take as long as each other, so the first is due first.
        let mut overdue = None;
        let whole = times.or_else(|| self.times()).is_none_or(|times| {
            times.each(window, &mut |Occurring { of, .. }| {
                let due = days.map_or(of.end, |days| day_after(of.start_civil.day() + days));
                overdue = Some(due < window.to);
                false
            })
        });
        if overdue.is_none() && !whole {
            self.doubt();
        }
        overdue.unwrap_or_default()
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

    fn times(&self) -> Option<Cow<'_, Times>> {
        times(self.reader, self.head.row).map(Cow::Owned)
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

    fn times(&self) -> Option<Cow<'_, Times>> {
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

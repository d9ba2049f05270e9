//! An item as it was, or is: does it answer, and is it another thing to who asks?
//!
//! Nothing here knows who is told.

use super::concern::Has;
use super::hub::Asked;
use super::news::What as Became;
use crate::item::{Item, Parsed, Values, When};
use crate::time::Stamp;
use larder_format::field::Field;
use larder_format::property::Property;
use larder_store::{Changed, Kind, Occurring, Reader, Then, Times, What, Window};
use larder_time::civil::Instant;
use larder_time::zone::Zone;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};

/// Occurrences of one item that are compared.
const COMPARED: usize = 1000;

/// A version of an item, taken apart when somebody asks.
pub(super) struct Version<'a> {
    reader: &'a Reader,
    pub(super) then: &'a Then,
    parsed: OnceCell<Item<'a>>,
    /// The UID that it names.
    named: OnceCell<Option<String>>,
    /// Values of fields that were asked for, as several questions look at the same ones.
    values: RefCell<Vec<(u16, Vec<String>)>>,
}

impl<'a> Version<'a> {
    pub(super) fn new(reader: &'a Reader, then: &'a Then) -> Version<'a> {
        Version {
            reader,
            then,
            parsed: OnceCell::new(),
            named: OnceCell::new(),
            values: RefCell::default(),
        }
    }

    fn item(&self) -> &Item<'a> {
        self.parsed.get_or_init(|| item(self.reader, self.then))
    }

    pub(super) fn answers(&self, asked: &Asked) -> bool {
        asked.is_asked_of(self.then.collection)
            && asked.matcher.matches_values(&self.then.head, self)
    }
}

fn item<'a>(reader: &'a Reader, then: &'a Then) -> Item<'a> {
    Item {
        reader,
        head: &then.head,
        parsed: Parsed::of(reader, &then.head, &then.bytes),
        when: When::Was(then.times.as_ref()),
        doubt: Cell::new(false),
    }
}

/// What needs no look into its bytes is answered without.
impl Values for Version<'_> {
    fn any(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let any = |values: &[String], pass: &mut dyn FnMut(&str) -> bool| {
            (!values.is_empty()).then(|| values.iter().any(|value| pass(value)))
        };
        if let Some((_, values)) = self.values.borrow().iter().find(|(id, _)| *id == field.id) {
            return any(values, pass);
        }
        let values = self.item().searched(field);
        let passes = any(&values, pass);
        self.values.borrow_mut().push((field.id, values));
        passes
    }

    fn properties(&self) -> &[Property<'_>] {
        self.item().properties()
    }

    fn uid(&self) -> Option<String> {
        self.item().uid()
    }

    fn kind(&self) -> Kind {
        self.then.head.kind
    }

    fn times(&self) -> Option<Cow<'_, Times>> {
        self.then.times.as_ref().map(Cow::Borrowed)
    }

    fn stamp(&self, stamp: Stamp, local: &Zone) -> Option<Instant> {
        self.item().stamp(stamp, local)
    }

    fn is_overdue(&self, window: &Window) -> bool {
        self.item().is_overdue(window)
    }
}

impl Has for Version<'_> {
    fn place(&self) -> (i64, Kind) {
        (self.then.collection, self.then.head.kind)
    }

    fn each(&self, field: &'static Field, each: &mut dyn FnMut(&str)) {
        self.any(field, &mut |value| {
            each(value);
            false
        });
    }

    fn uids(&self) -> [Option<&str>; 4] {
        let (kept, named) = (&*self.then.head.uid, self.named.get_or_init(|| self.uid()));
        [Some(kept), named.as_deref().filter(|named| *named != kept), None, None]
    }

    fn spans(&self, what: What) -> [Option<(i64, i64)>; 2] {
        [self.then.times.as_ref().and_then(|times| times.hull(what)), None]
    }
}

/// An item as it was and as it is, in the same place: what is the same in both is looked at once.
pub(super) struct Both<'v, 'a> {
    was: &'v Version<'a>,
    is: &'v Version<'a>,
    /// Values that it has now, and had not before, of fields that were asked for.
    new: RefCell<Vec<(u16, Vec<String>)>>,
}

impl<'v, 'a> Both<'v, 'a> {
    /// `None`: these are not in the same place.
    pub(super) fn of(was: &'v Version<'a>, is: &'v Version<'a>) -> Option<Both<'v, 'a>> {
        (was.place() == is.place()).then(|| Both { was, is, new: RefCell::default() })
    }

    fn find_new(&self, field: &Field) -> Vec<String> {
        let mut new = self.is.item().searched(field);
        new.retain(|value| self.was.any(field, &mut |known| known == value) != Some(true));
        new
    }
}

impl Has for Both<'_, '_> {
    fn place(&self) -> (i64, Kind) {
        self.is.place()
    }

    fn each(&self, field: &'static Field, each: &mut dyn FnMut(&str)) {
        self.was.each(field, each);
        let mut new = self.new.borrow_mut();
        let known = new.iter().position(|(id, _)| *id == field.id);
        if known.is_none() {
            new.push((field.id, self.find_new(field)));
        }
        let values = known.map_or_else(|| new.last(), |at| new.get(at));
        values.into_iter().flat_map(|(_, values)| values).for_each(|value| each(value));
    }

    fn uids(&self) -> [Option<&str>; 4] {
        let [kept, named, ..] = self.was.uids();
        let [kept_now, named_now, ..] = self.is.uids();
        let is_new = |uid: &&str| kept != Some(*uid) && named != Some(*uid);
        [kept, named, kept_now.filter(is_new), named_now.filter(is_new)]
    }

    fn spans(&self, what: What) -> [Option<(i64, i64)>; 2] {
        let ([was, _], [is, _]) = (self.was.spans(what), self.is.spans(what));
        [was, is.filter(|_| is != was)]
    }
}

/// What a change comes to for who asks, where the item answered before, and where it does now.
pub(super) fn became(
    asked: &Asked,
    changed: &Changed,
    answered: bool,
    answers: bool,
) -> &'static [Became] {
    let row = |then: &Option<Then>| then.as_ref().map(|then| then.head.row);
    match (answered, answers) {
        (false, false) => &[],
        (false, true) => &[Became::Added],
        (true, false) => &[Became::Removed],
        // It went and came back: it is called the same, and is another row.
        (true, true) if row(&changed.was) != row(&changed.is) => &[Became::Removed, Became::Added],
        (true, true) if matters(asked, changed) => &[Became::Modified],
        (true, true) => &[],
    }
}

/// Does a change of an item that answered before, and still does, matter to who asks?
fn matters(asked: &Asked, changed: &Changed) -> bool {
    let (Some(was), Some(is)) = (&changed.was, &changed.is) else { return true };
    // Another item of its series changed.
    if was.head.seq != is.head.seq {
        return true;
    }
    let Some(window) = &asked.reading.window else { return false };
    was.times != is.times
        && occurrences(was.times.as_ref(), window) != occurrences(is.times.as_ref(), window)
}

pub(super) fn occurrences(times: Option<&Times>, window: &Window) -> Vec<Occurring> {
    let mut all = Vec::new();
    if let Some(times) = times {
        times.each(window, &mut |occurring| {
            all.push(occurring);
            all.len() < COMPARED
        });
    }
    all
}

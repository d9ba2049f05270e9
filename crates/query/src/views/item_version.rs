//! An item as it was, or is: does it answer, and is it another thing to who asks?
//!
//! Nothing here knows who is told.

use super::pending_changes::ViewChangeKind as Became;
use super::state::RegisteredQuery;
use super::subscription_index::ItemProbe;
use crate::item::{DecodedItem, ItemFields, ParsedSource, ScheduleOrigin};
use crate::time_test::DateProperty;
use larder_format::field::Field;
use larder_format::property::Property;
use larder_store::{
    ItemChange, ItemOccurrence, ItemVersion, Kind, Reader, Schedule, TimeRange, TimeTarget,
    schedule_bounds,
};
use larder_time::civil::Instant;
use larder_time::zone::Zone;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};

/// Occurrences of one item that are compared.
const MAX_COMPARED_OCCURRENCES: usize = 1000;

/// A version of an item, taken apart when somebody asks.
pub(super) struct LazyVersion<'a> {
    reader: &'a Reader,
    pub(super) version: &'a ItemVersion,
    parsed: OnceCell<DecodedItem<'a>>,
    /// The UID that it names.
    named_uid: OnceCell<Option<String>>,
    /// Values of fields that were asked for, as several questions look at the same ones.
    values: RefCell<Vec<(u16, Vec<String>)>>,
}

impl<'a> LazyVersion<'a> {
    pub(super) fn new(reader: &'a Reader, version: &'a ItemVersion) -> LazyVersion<'a> {
        LazyVersion {
            reader,
            version,
            parsed: OnceCell::new(),
            named_uid: OnceCell::new(),
            values: RefCell::default(),
        }
    }

    fn decoded(&self) -> &DecodedItem<'a> {
        self.parsed.get_or_init(|| decode_item(self.reader, self.version))
    }

    pub(super) fn matches(&self, asked: &RegisteredQuery) -> bool {
        asked.is_about_collection(self.version.collection)
            && asked.matcher.matches_fields(&self.version.meta, self)
    }
}

fn decode_item<'a>(reader: &'a Reader, then: &'a ItemVersion) -> DecodedItem<'a> {
    DecodedItem {
        reader,
        head: &then.meta,
        parsed: ParsedSource::parse(reader, &then.meta, &then.bytes),
        schedule_origin: ScheduleOrigin::Given(then.schedule.as_ref()),
        uncertain: Cell::new(false),
    }
}

/// What needs no look into its bytes is answered without.
impl ItemFields for LazyVersion<'_> {
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let any = |values: &[String], pass: &mut dyn FnMut(&str) -> bool| {
            (!values.is_empty()).then(|| values.iter().any(|value| pass(value)))
        };
        if let Some((_, values)) = self.values.borrow().iter().find(|(id, _)| *id == field.id) {
            return any(values, pass);
        }
        let values = self.decoded().searched_values(field);
        let passes = any(&values, pass);
        self.values.borrow_mut().push((field.id, values));
        passes
    }

    fn properties(&self) -> &[Property<'_>] {
        self.decoded().properties()
    }

    fn uid(&self) -> Option<String> {
        self.decoded().uid()
    }

    fn kind(&self) -> Kind {
        self.version.meta.kind
    }

    fn schedule(&self) -> Option<Cow<'_, Schedule>> {
        self.version.schedule.as_ref().map(Cow::Borrowed)
    }

    fn property_instant(&self, stamp: DateProperty, local: &Zone) -> Option<Instant> {
        self.decoded().property_instant(stamp, local)
    }

    fn is_overdue(&self, window: &TimeRange) -> bool {
        self.decoded().is_overdue(window)
    }
}

impl ItemProbe for LazyVersion<'_> {
    fn scope(&self) -> (i64, Kind) {
        (self.version.collection, self.version.meta.kind)
    }

    fn for_each_value(&self, field: &'static Field, each: &mut dyn FnMut(&str)) {
        self.any_value(field, &mut |value| {
            each(value);
            false
        });
    }

    fn uids(&self) -> [Option<&str>; 4] {
        let (kept, named) = (&*self.version.meta.uid, self.named_uid.get_or_init(|| self.uid()));
        [Some(kept), named.as_deref().filter(|named| *named != kept), None, None]
    }

    fn time_spans(&self, what: TimeTarget) -> [Option<(i64, i64)>; 2] {
        [self.version.schedule.as_ref().and_then(|times| schedule_bounds(times, what)), None]
    }
}

/// An item as it was and as it is, in the same place: what is the same in both is looked at once.
pub(super) struct LazyVersionPair<'v, 'a> {
    before: &'v LazyVersion<'a>,
    after: &'v LazyVersion<'a>,
    /// Values that it has now, and had not before, of fields that were asked for.
    new_values: RefCell<Vec<(u16, Vec<String>)>>,
}

impl<'v, 'a> LazyVersionPair<'v, 'a> {
    /// `None`: these are not in the same place.
    pub(super) fn from_same_scope(
        was: &'v LazyVersion<'a>,
        is: &'v LazyVersion<'a>,
    ) -> Option<LazyVersionPair<'v, 'a>> {
        (was.scope() == is.scope()).then(|| LazyVersionPair {
            before: was,
            after: is,
            new_values: RefCell::default(),
        })
    }

    fn new_values(&self, field: &Field) -> Vec<String> {
        let mut new = self.after.decoded().searched_values(field);
        new.retain(|value| self.before.any_value(field, &mut |known| known == value) != Some(true));
        new
    }
}

impl ItemProbe for LazyVersionPair<'_, '_> {
    fn scope(&self) -> (i64, Kind) {
        self.after.scope()
    }

    fn for_each_value(&self, field: &'static Field, each: &mut dyn FnMut(&str)) {
        self.before.for_each_value(field, each);
        let mut new = self.new_values.borrow_mut();
        let known = new.iter().position(|(id, _)| *id == field.id);
        if known.is_none() {
            new.push((field.id, self.new_values(field)));
        }
        let values = known.map_or_else(|| new.last(), |at| new.get(at));
        values.into_iter().flat_map(|(_, values)| values).for_each(|value| each(value));
    }

    fn uids(&self) -> [Option<&str>; 4] {
        let [kept, named, ..] = self.before.uids();
        let [kept_now, named_now, ..] = self.after.uids();
        let is_new = |uid: &&str| kept != Some(*uid) && named != Some(*uid);
        [kept, named, kept_now.filter(is_new), named_now.filter(is_new)]
    }

    fn time_spans(&self, what: TimeTarget) -> [Option<(i64, i64)>; 2] {
        let ([was, _], [is, _]) = (self.before.time_spans(what), self.after.time_spans(what));
        [was, is.filter(|_| is != was)]
    }
}

/// What a change comes to for who asks, where the item answered before, and where it does now.
pub(super) fn classify_change(
    asked: &RegisteredQuery,
    changed: &ItemChange,
    answered: bool,
    answers: bool,
) -> &'static [Became] {
    let row = |then: &Option<ItemVersion>| then.as_ref().map(|then| then.meta.row);
    match (answered, answers) {
        (false, false) => &[],
        (false, true) => &[Became::Added],
        (true, false) => &[Became::Removed],
        // It went and came back: it is called the same, and is another row.
        (true, true) if row(&changed.before) != row(&changed.after) => {
            &[Became::Removed, Became::Added]
        }
        (true, true) if is_visible_change(asked, changed) => &[Became::Modified],
        (true, true) => &[],
    }
}

/// Does a change of an item that answered before, and still does, matter to who asks?
fn is_visible_change(asked: &RegisteredQuery, changed: &ItemChange) -> bool {
    let (Some(was), Some(is)) = (&changed.before, &changed.after) else { return true };
    // Another item of its series changed.
    if was.meta.seq != is.meta.seq {
        return true;
    }
    let Some(window) = &asked.resolved.occurrence_range else { return false };
    was.schedule != is.schedule
        && list_range_occurrences(was.schedule.as_ref(), window)
            != list_range_occurrences(is.schedule.as_ref(), window)
}

pub(super) fn list_range_occurrences(
    times: Option<&Schedule>,
    window: &TimeRange,
) -> Vec<ItemOccurrence> {
    let mut all = Vec::new();
    if let Some(times) = times {
        times.for_each_in(window, &mut |occurring| {
            all.push(occurring);
            all.len() < MAX_COMPARED_OCCURRENCES
        });
    }
    all
}

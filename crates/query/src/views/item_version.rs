//! A version of a changed item: the terms by which queries find it, and whether it matches.
//!
//! Separate from the fan-out because a lagging view is brought up to date by the same comparison.
//! It does not depend on views.

use super::pending_changes::ViewEffect;
use super::query_registry::RegisteredQuery;
use super::subscription_index::ItemTerms;
use crate::item::{DecodedItem, ItemFields, ScheduleOrigin};
use crate::step_counter::StepCounter;
use crate::time_test::DateProperty;
use larder_format::field::Field;
use larder_format::property::Property;
use larder_store::{
    CollectionRow, ItemChange, ItemOccurrence, ItemVersion, Kind, Reader, Schedule, TimeRange,
    TimeTarget, schedule_bounds,
};
use larder_time::civil::Instant;
use larder_time::zone::Zone;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

/// The maximum number of occurrences of an item that are compared.
const MAX_COMPARED_OCCURRENCES: usize = 1000;

/// A version of an item, whose bytes are parsed when they are first needed.
pub(super) struct LazyVersion<'a> {
    reader: &'a Reader,
    version: &'a ItemVersion,
    parsed: OnceCell<DecodedItem<'a>>,
    /// The UID in the bytes.
    named_uid: OnceCell<Option<String>>,
    /// The values of fields by id: several queries test the same fields.
    values: RefCell<FxHashMap<u16, Vec<String>>>,
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

    fn decoded_item(&self) -> &DecodedItem<'a> {
        self.parsed.get_or_init(|| decode_item(self.reader, self.version))
    }

    /// Returns whether the version answers a query. The result means nothing if the steps exceed
    /// their budget.
    pub(super) fn matches(&self, query: &RegisteredQuery, steps: &StepCounter) -> bool {
        query.target.has_row(self.version.meta.collection_row)
            && query.matcher.matches_fields(&self.version.meta, self, steps)
    }
}

fn decode_item<'a>(reader: &'a Reader, version: &'a ItemVersion) -> DecodedItem<'a> {
    DecodedItem::new(reader, &version.meta, &version.bytes)
        .with_schedule_origin(ScheduleOrigin::Given(version.schedule.as_ref()))
}

/// Metadata and schedule are given without parsing the bytes.
impl ItemFields for LazyVersion<'_> {
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let any = |values: &[String], pass: &mut dyn FnMut(&str) -> bool| {
            (!values.is_empty()).then(|| values.iter().any(|value| pass(value)))
        };
        if let Some(values) = self.values.borrow().get(&field.id) {
            return any(values, pass);
        }
        let values = self.decoded_item().searched_values(field);
        let passes = any(&values, pass);
        self.values.borrow_mut().insert(field.id, values);
        passes
    }

    fn properties(&self) -> &[Property<'_>] {
        self.decoded_item().properties()
    }

    fn uid(&self) -> Option<String> {
        self.decoded_item().uid()
    }

    fn kind(&self) -> Kind {
        self.version.meta.kind
    }

    fn schedule(&self) -> Option<Cow<'_, Schedule>> {
        self.version.schedule.as_ref().map(Cow::Borrowed)
    }

    fn property_instant(&self, property: DateProperty, local: &Zone) -> Option<Instant> {
        self.decoded_item().property_instant(property, local)
    }

    fn is_overdue(&self, time_range: &TimeRange) -> bool {
        self.decoded_item().is_overdue(time_range)
    }
}

impl ItemTerms for LazyVersion<'_> {
    fn scope(&self) -> (CollectionRow, Kind) {
        (self.version.meta.collection_row, self.version.meta.kind)
    }

    fn for_each_value(&self, field: &'static Field, visit: &mut dyn FnMut(&str)) {
        self.any_value(field, &mut |value| {
            visit(value);
            false
        });
    }

    fn uids(&self) -> [Option<&str>; 4] {
        let (stored, named) = (&*self.version.meta.uid, self.named_uid.get_or_init(|| self.uid()));
        [Some(stored), named.as_deref().filter(|named| *named != stored), None, None]
    }

    fn time_spans(&self, target: TimeTarget) -> [Option<(i64, i64)>; 2] {
        let schedule = self.version.schedule.as_ref();
        [schedule.and_then(|schedule| schedule_bounds(schedule, target)), None]
    }
}

/// The two versions of a changed item that stayed in its collection. A value that both versions
/// have is looked up once.
pub(super) struct LazyVersionPair<'v, 'a> {
    before: &'v LazyVersion<'a>,
    after: &'v LazyVersion<'a>,
    /// The values by field id that only the later version has.
    new_values: RefCell<Vec<(u16, Vec<String>)>>,
}

impl<'v, 'a> LazyVersionPair<'v, 'a> {
    /// Returns `None` if the versions are in different collections or of different kinds.
    pub(super) fn from_same_partition(
        before: &'v LazyVersion<'a>,
        after: &'v LazyVersion<'a>,
    ) -> Option<LazyVersionPair<'v, 'a>> {
        (before.scope() == after.scope()).then(|| LazyVersionPair {
            before,
            after,
            new_values: RefCell::default(),
        })
    }

    fn new_values(&self, field: &Field) -> Vec<String> {
        let mut new = self.after.decoded_item().searched_values(field);
        new.retain(|value| self.before.any_value(field, &mut |known| known == value) != Some(true));
        new
    }
}

impl ItemTerms for LazyVersionPair<'_, '_> {
    fn scope(&self) -> (CollectionRow, Kind) {
        self.after.scope()
    }

    fn for_each_value(&self, field: &'static Field, visit: &mut dyn FnMut(&str)) {
        self.before.for_each_value(field, visit);
        let mut new = self.new_values.borrow_mut();
        let known = new.iter().position(|(id, _)| *id == field.id);
        if known.is_none() {
            new.push((field.id, self.new_values(field)));
        }
        let values = known.map_or_else(|| new.last(), |at| new.get(at));
        values.into_iter().flat_map(|(_, values)| values).for_each(|value| visit(value));
    }

    fn uids(&self) -> [Option<&str>; 4] {
        let [stored, named, ..] = self.before.uids();
        let [stored_after, named_after, ..] = self.after.uids();
        let is_new = |uid: &&str| stored != Some(*uid) && named != Some(*uid);
        [stored, named, stored_after.filter(is_new), named_after.filter(is_new)]
    }

    fn time_spans(&self, target: TimeTarget) -> [Option<(i64, i64)>; 2] {
        let [before, _] = self.before.time_spans(target);
        let [after, _] = self.after.time_spans(target);
        [before, after.filter(|_| after != before)]
    }
}

/// Returns the effects of a change on an answer. `matched`: whether the item was in the answer
/// before the change; `matches`: whether it is in the answer afterwards.
pub(super) fn classify_change(
    change: &ItemChange,
    matched: bool,
    matches: bool,
) -> &'static [ViewEffect] {
    let row = |version: &Option<ItemVersion>| version.as_ref().map(|version| version.meta.row);
    match (matched, matches) {
        (false, false) => &[],
        (false, true) => &[ViewEffect::Added],
        (true, false) => &[ViewEffect::Removed],
        // The item was removed and stored again: it has its handle, but another row.
        (true, true) if row(&change.before) != row(&change.after) => {
            &[ViewEffect::Removed, ViewEffect::Added]
        }
        (true, true) if is_visible_change(change) => &[ViewEffect::Modified],
        (true, true) => &[],
    }
}

/// Returns whether a change of an item that stays in the answer can be seen in it.
fn is_visible_change(change: &ItemChange) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    // An item with the same bytes is in the feed because another item of its series changed. Lists
    // print the times of the first occurrence that still applies. An unknown schedule may differ.
    before.meta.seq != after.meta.seq
        || before.schedule.is_none()
        || before.schedule != after.schedule
}

/// Returns the occurrences of a schedule in a time range, up to a maximum.
pub(super) fn list_range_occurrences(
    schedule: Option<&Schedule>,
    time_range: &TimeRange,
) -> Vec<ItemOccurrence> {
    let mut occurrences = Vec::new();
    if let Some(schedule) = schedule {
        schedule.for_each_in(time_range, &mut |occurrence| {
            occurrences.push(occurrence);
            occurrences.len() < MAX_COMPARED_OCCURRENCES
        });
    }
    occurrences
}

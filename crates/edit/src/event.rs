//! Events, tasks and memos: new ones, and changes by recurrence scope.
//!
//! Most of it is pure: from the items of a UID and a request to a batch of changes. The functions
//! here read the items and apply the batch. Zones, the current time and random numbers are passed
//! in. Items of other kinds are changed as text only ([`item_text`](crate::item_text)).
//!
//! Each module uses only modules above it.
//!
//! | module | contents |
//! |---|---|
//! | `date_time_form` | how a time is written: date, UTC, zone, or floating |
//! | `rule_text` | changes to the text of a rule |
//! | `vtimezone` | time zone definitions for new items |
//! | `draft` | [`EventDraft`]: a new item, ready to be written |
//! | `new_event` | [`EventRequest`]: a new item in words |
//! | `error` | [`Error`]: reasons why a change is impossible |
//! | `editable_component` | one component while it is changed, and its schedule |
//! | `editable_field` | the fields that can be set |
//! | `edit` | [`EventEdit`]: a change to one component |
//! | `uid_group` | [`UidGroup`]: the items of one UID |
//! | `series_shift` | moving the rules, dates and overrides of a series |
//! | `scope` | [`RecurrenceScope`]: changes to one, following or all occurrences |
//! | `series_removal` | the removal of items of series that a query finds |
//! | `cancellation` | cancellation by a scheduling message |

mod cancellation;
mod date_time_form;
mod draft;
mod edit;
mod editable_component;
mod editable_field;
mod error;
mod new_event;
mod rule_text;
mod scope;
mod series_removal;
mod series_shift;
mod uid_group;
mod vtimezone;

pub use self::cancellation::{CancelOutcome, compute_cancellation};
pub use self::draft::{EventDraft, EventDraftError};
pub use self::edit::EventEdit;
pub use self::editable_field::{editable_field_names, join_members, parse_priority};
pub use self::error::Error;
pub use self::new_event::{EventRequest, EventRequestError, resolve_clock};
pub use self::scope::RecurrenceScope;
pub use self::series_removal::remove_series_items;
pub use self::uid_group::{OccurrenceRef, OverrideIndex, UidGroup};
pub use self::vtimezone::build_vtimezone;

use self::edit::EditContext;
use self::editable_component::EditableComponent;
use self::scope::{OccurrenceTarget, SeriesEdit, compute_edit, compute_removal};
use larder_date_phrase::UserLocale;
use larder_format::component::Component;
use larder_store::{
    BatchChange, CalendarContext, ChangeOutcome, Extractor, Handle, ItemMeta, Operation,
    OperationId, Reader, Store,
};
use larder_time::civil::Instant;
use larder_time::series::CalendarDateTime;
use larder_time::value::IcalDuration;

/// The result of a change to occurrences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditOutcome {
    /// The new items.
    pub added: Vec<Handle>,
    /// The changed items.
    pub changed: Vec<Handle>,
    /// The removed items.
    pub removed: Vec<Handle>,
    /// The number of overrides that are kept although the new rule does not include their
    /// occurrence.
    pub orphaned_overrides: usize,
    /// The number of overrides that keep their own value of a property that was changed in the
    /// series.
    pub diverged_overrides: usize,
    /// Whether an item was changed in between, so that nothing was written.
    pub conflict: bool,
    /// The operation, for undo. `None` if nothing was written.
    pub operation: Option<OperationId>,
}

/// Selects occurrences of the series that an item belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OccurrenceSelector {
    /// The scope. `None`: [`RecurrenceScope::This`] for an occurrence, everything for an item that
    /// does not recur.
    pub scope: Option<RecurrenceScope>,
    /// The occurrence. `None`: the occurrence that the item overrides, if it is an override.
    pub occurrence: Option<OccurrenceRef>,
}

impl OccurrenceSelector {
    fn resolve(
        self,
        group: &UidGroup<'_>,
        item: &ItemMeta,
        locale: &UserLocale,
    ) -> Result<OccurrenceTarget, Error> {
        let key = match self.occurrence {
            Some(occurrence) => Some(group.find_occurrence(occurrence, &locale.zone)?),
            None => group.item_key(item),
        };
        // An occurrence alone means that one.
        let is_this = self.occurrence.is_some() && self.scope.is_none() && group.is_recurring();
        let scope = if is_this { Some(RecurrenceScope::This) } else { self.scope };
        Ok(OccurrenceTarget { scope, key })
    }
}

/// Computes the changes by which [`remove_occurrences`] removes occurrences.
///
/// # Errors
/// [`Error`] if the removal is impossible, and errors of the store.
pub fn compute_occurrence_removal(
    reader: &Reader,
    extractor: &Extractor,
    item: &ItemMeta,
    selector: OccurrenceSelector,
    locale: &UserLocale,
) -> Result<Vec<BatchChange>, Error> {
    let group = UidGroup::read(reader, extractor, item)?;
    let target = selector.resolve(&group, item, locale)?;
    compute_removal(&group, target, locale.now)
}

/// Removes occurrences, in one batch of `operation`, or does nothing.
///
/// # Errors
/// [`Error`] if the removal is impossible, and errors of the store.
pub fn remove_occurrences(
    store: &mut Store,
    operation: &mut Operation,
    item: &ItemMeta,
    selector: OccurrenceSelector,
    locale: &UserLocale,
) -> Result<EditOutcome, Error> {
    let extractor =
        store.extractor_for_collection(&item.collection, item.kind.collection_type())?;
    let reader = store.open_reader()?;
    let changes = compute_occurrence_removal(&reader, &extractor, item, selector, locale)?;
    apply_changes(store, operation, changes)
}

/// A change to occurrences of a series.
#[derive(Debug, Clone, Copy)]
pub struct OccurrenceEdit<'a> {
    /// The occurrences to change.
    pub selector: OccurrenceSelector,
    /// The change.
    pub edit: &'a EventEdit,
    /// The UID of the second series, if the change splits the series in two.
    pub new_uid: &'a str,
}

/// Changes occurrences, in one batch of `operation`, or does nothing.
///
/// # Errors
/// [`Error`] if the change is impossible, and errors of the store.
pub fn edit_occurrences(
    store: &mut Store,
    operation: &mut Operation,
    item: &ItemMeta,
    request: OccurrenceEdit<'_>,
    locale: &UserLocale,
) -> Result<EditOutcome, Error> {
    let extractor =
        store.extractor_for_collection(&item.collection, item.kind.collection_type())?;
    let group = UidGroup::read(&store.open_reader()?, &extractor, item)?;
    let target = request.selector.resolve(&group, item, locale)?;
    let context = EditContext { edit: request.edit, locale, extractor: &extractor };
    let SeriesEdit { changes, orphaned_overrides, diverged_overrides } =
        compute_edit(&group, target, &context, request.new_uid)?;
    let outcome = apply_changes(store, operation, changes)?;
    Ok(EditOutcome { orphaned_overrides, diverged_overrides, ..outcome })
}

/// Returns whether an item belongs to a series: it recurs, or overrides an occurrence.
///
/// # Errors
/// Errors of the store.
pub fn is_recurring(reader: &Reader, item: &ItemMeta) -> Result<bool, larder_store::Error> {
    if !item.recurrence_id.is_empty() {
        return Ok(true);
    }
    let mut recurs = reader.items().find_series_of_item(item)?.len() > 1;
    reader.items().for_each_schedule(&[item.row], &mut |_, times| {
        recurs |= times.is_recurring();
        true
    })?;
    Ok(recurs)
}

/// The times of an item as its component has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemTimes {
    /// DTSTART.
    pub start: Option<CalendarDateTime>,
    /// DTEND or DUE, or the end that follows from DURATION.
    pub end: Option<CalendarDateTime>,
}

/// Reads the start and the end of an item. An item that no longer exists has neither.
///
/// # Errors
/// Errors of the store.
pub fn read_item_times(reader: &Reader, item: &ItemMeta) -> Result<ItemTimes, larder_store::Error> {
    let Some(bytes) = reader.items().source_bytes(item.row)? else {
        return Ok(ItemTimes::default());
    };
    let context = item
        .calendar_context
        .map(|row| reader.items().calendar_context(row))
        .transpose()?
        .flatten()
        .unwrap_or_default();
    let component = Component::parse(&bytes);
    let read_time = |name: &str| {
        let property = component.time_properties(name).next()?;
        reader.extractor().resolve_date_time(&property, &context)
    };
    let start = read_time("DTSTART");
    let end = read_time("DTEND").or_else(|| read_time("DUE")).or_else(|| {
        let part = EditableComponent::new(bytes.clone(), CalendarContext::clone(&context));
        let seconds = part.schedule(reader.extractor())?.duration_seconds();
        let end = draft::end_after(start.as_ref()?, IcalDuration { days: 0, seconds });
        (start.as_ref() != Some(&end)).then_some(end)
    });
    Ok(ItemTimes { start, end })
}

/// Reads the first recurrence rule of an item.
///
/// # Errors
/// Errors of the store.
pub fn read_rrule(reader: &Reader, item: &ItemMeta) -> Result<Option<String>, larder_store::Error> {
    let Some(bytes) = reader.items().source_bytes(item.row)? else { return Ok(None) };
    let component = Component::parse(&bytes);
    let rule = component.time_properties("RRULE").next();
    Ok(rule.map(|rule| rule.text.into_owned()))
}

fn apply_changes(
    store: &mut Store,
    operation: &mut Operation,
    changes: Vec<BatchChange>,
) -> Result<EditOutcome, Error> {
    let mut result = EditOutcome::default();
    if changes.is_empty() {
        return Ok(result);
    }
    let applied = store.apply(operation, changes)?;
    result.conflict =
        applied.outcomes.iter().any(|outcome| matches!(outcome, ChangeOutcome::Conflict(..)));
    if result.conflict {
        return Ok(result);
    }
    for outcome in applied.outcomes {
        match outcome {
            ChangeOutcome::Added(handle) => result.added.push(handle),
            ChangeOutcome::Updated(handle) => result.changed.push(handle),
            ChangeOutcome::Removed(handle) => result.removed.push(handle),
            _ => {}
        }
    }
    result.operation = operation.id();
    Ok(result)
}

/// Sets the time of the change in a component that was edited as text, and adds the definitions
/// of its time zones to its calendar context.
pub(crate) fn stamp_edited_component(
    extractor: &Extractor,
    context: &CalendarContext,
    before: &[u8],
    text: Vec<u8>,
    now: Instant,
) -> (Vec<u8>, CalendarContext) {
    let mut part = EditableComponent::new(text, context.clone());
    let old = EditableComponent::new(before.to_vec(), context.clone());
    if let Some(schedule) = part.schedule(extractor) {
        draft::ensure_zone_defined(&mut part.context, &schedule.form, schedule.start);
    }
    const TIME_PROPERTIES: [&str; 7] =
        ["DTSTART", "DTEND", "DUE", "DURATION", "RRULE", "RDATE", "EXDATE"];
    let is_rescheduled =
        TIME_PROPERTIES.iter().any(|name| part.property_texts(name) != old.property_texts(name));
    part.bump_revision(now, is_rescheduled);
    (part.bytes, part.context)
}

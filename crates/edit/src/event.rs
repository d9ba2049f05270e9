//! What a person does to events, tasks and memos: new ones, and changes of one occurrence, of it
//! and all that follow, or of all.
//!
//! Pure functions from items as they are to items as they are to be; [`item_edits`](mod@crate::item_edits)
//! writes them. Zones, the time and random numbers are passed in. It is apart from
//! [`item_text`](crate::item_text), as a card has no time.

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
mod series_shift;
mod uid_group;
mod vtimezone;

pub use self::cancellation::{CancelOutcome, compute_cancellation};
pub use self::draft::{EventDraft, EventDraftError};
pub use self::edit::EventEdit;
pub use self::error::Error;
pub use self::new_event::{EventRequest, EventRequestError, InputContext, resolve_clock};
pub use self::scope::{RecurrenceScope, SeriesEdit, compute_edit, compute_removal};
pub use self::uid_group::{OccurrenceRef, UidGroup};
pub use self::vtimezone::build_vtimezone;

use editable_component::EditableComponent;
use larder_format::component::Component;
use larder_store::{
    CalendarContext, ChangeOutcome, Extractor, Handle, ItemMeta, Operation, OperationId, Reader,
    Store,
};
use larder_time::civil::Instant;
use larder_time::series::CalendarDateTime;
use larder_time::value::IcalDuration;

/// What a change of occurrences came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditOutcome {
    /// Items that are new.
    pub added: Vec<Handle>,
    /// Items that were changed.
    pub changed: Vec<Handle>,
    /// Items that were taken away.
    pub removed: Vec<Handle>,
    /// Changed occurrences that stay, though a new rule does not have them.
    pub orphaned_overrides: usize,
    /// Changed occurrences that keep what they say otherwise than their series.
    pub diverged_overrides: usize,
    /// Somebody else was first, and nothing was done.
    pub conflict: bool,
    /// What to undo it by; `None` where nothing was written.
    pub operation: Option<OperationId>,
}

/// Which occurrences of the series of an item are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OccurrenceSelector {
    /// How many; `None`: one, if it is said which.
    pub scope: Option<RecurrenceScope>,
    /// Which one; `None`: the one that the item stands for.
    pub occurrence: Option<OccurrenceRef>,
}

impl OccurrenceSelector {
    fn resolve_key(
        self,
        whole: &UidGroup<'_>,
        head: &ItemMeta,
        speaker: &InputContext<'_>,
    ) -> Result<Option<i64>, Error> {
        match self.occurrence {
            Some(at) => whole.find_occurrence(at, speaker.local).map(Some),
            None => Ok(whole.item_key(head)),
        }
    }
}

/// Takes occurrences away, in one batch of `operation`, or does nothing.
///
/// # Errors
/// Why it cannot be done, and what the store says.
pub fn remove_occurrences(
    store: &mut Store,
    operation: &mut Operation,
    head: &ItemMeta,
    which: OccurrenceSelector,
    speaker: &InputContext<'_>,
) -> Result<EditOutcome, Error> {
    let deriver = store.extractor_for_collection(&head.collection, head.kind.collection_type())?;
    let whole = UidGroup::read(&store.open_reader()?, &deriver, head)?;
    let key = which.resolve_key(&whole, head, speaker)?;
    let changes = compute_removal(&whole, which.scope, key, speaker.now)?;
    apply_changes(store, operation, changes)
}

/// Changes occurrences, in one batch of `operation`, or does nothing. What follows goes on under
/// the UID that is given, where it needs one.
///
/// # Errors
/// Why it cannot be done, and what the store says.
pub fn edit_occurrences(
    store: &mut Store,
    operation: &mut Operation,
    head: &ItemMeta,
    which: OccurrenceSelector,
    edit: &EventEdit,
    uid: &str,
    speaker: &InputContext<'_>,
) -> Result<EditOutcome, Error> {
    let deriver = store.extractor_for_collection(&head.collection, head.kind.collection_type())?;
    let whole = UidGroup::read(&store.open_reader()?, &deriver, head)?;
    let key = which.resolve_key(&whole, head, speaker)?;
    let SeriesEdit { changes, orphaned_overrides: astray, diverged_overrides: apart } =
        compute_edit(&whole, which.scope, key, edit, uid, speaker)?;
    Ok(EditOutcome {
        orphaned_overrides: astray,
        diverged_overrides: apart,
        ..apply_changes(store, operation, changes)?
    })
}

/// Are there several occurrences of an item, or of what it is one of?
///
/// # Errors
/// What the store says.
pub fn is_recurring(reader: &Reader, head: &ItemMeta) -> Result<bool, larder_store::Error> {
    if !head.recurrence_id.is_empty() {
        return Ok(true);
    }
    let mut recurs = reader.find_series_of_item(head)?.len() > 1;
    reader.for_each_schedule(&[head.row], &mut |_, times| {
        recurs |= times.is_recurring();
        true
    })?;
    Ok(recurs)
}

/// When an item begins and ends, as it says.
///
/// # Errors
/// What the store says.
#[allow(clippy::type_complexity, reason = "two times, each perhaps")]
pub fn read_start_and_end(
    reader: &Reader,
    head: &ItemMeta,
) -> Result<Option<(Option<CalendarDateTime>, Option<CalendarDateTime>)>, larder_store::Error> {
    let Some(bytes) = reader.source_bytes(head.row)? else { return Ok(None) };
    let frame = head
        .calendar_context
        .map(|row| reader.calendar_context(row))
        .transpose()?
        .flatten()
        .unwrap_or_default();
    let component = Component::parse(&bytes);
    let time = |name: &str| {
        let timed = component.time_properties(name).next()?;
        reader.extractor().resolve_date_time(&timed, &frame)
    };
    let (start, end) = (time("DTSTART"), time("DTEND").or_else(|| time("DUE")));
    let part = EditableComponent {
        uid: String::new(),
        bytes: bytes.clone(),
        context: CalendarContext::clone(&frame),
    };
    let lasts = || {
        let seconds = part.schedule(reader.extractor())?.duration_seconds();
        Some(draft::end_after(start.as_ref()?, IcalDuration { days: 0, seconds }))
    };
    let end = end.or_else(|| lasts().filter(|end| start.as_ref() != Some(end)));
    Ok(Some((start, end)))
}

/// How an item recurs, as it says.
///
/// # Errors
/// What the store says.
pub fn read_rrule(reader: &Reader, head: &ItemMeta) -> Result<Option<String>, larder_store::Error> {
    let Some(bytes) = reader.source_bytes(head.row)? else { return Ok(None) };
    let rule =
        Component::parse(&bytes).time_properties("RRULE").next().map(|rule| rule.text.into_owned());
    Ok(rule)
}

fn apply_changes(
    store: &mut Store,
    operation: &mut Operation,
    changes: Vec<larder_store::BatchChange>,
) -> Result<EditOutcome, Error> {
    let mut done = EditOutcome::default();
    if changes.is_empty() {
        return Ok(done);
    }
    let applied = store.apply(operation, changes)?;
    done.conflict =
        applied.outcomes.iter().any(|outcome| matches!(outcome, ChangeOutcome::Conflict(..)));
    if done.conflict {
        return Ok(done);
    }
    for outcome in applied.outcomes {
        match outcome {
            ChangeOutcome::Added(handle) => done.added.push(handle),
            ChangeOutcome::Updated(handle) => done.changed.push(handle),
            ChangeOutcome::Removed(handle) => done.removed.push(handle),
            _ => {}
        }
    }
    done.operation = operation.id();
    Ok(done)
}

/// A component as it came back from an editor, with the time of the change in it; what it says of
/// zones is in the frame.
pub(crate) fn stamp_edited_component(
    deriver: &Extractor,
    frame: &CalendarContext,
    before: &[u8],
    text: Vec<u8>,
    now: Instant,
) -> (Vec<u8>, CalendarContext) {
    let mut part = EditableComponent { uid: String::new(), bytes: text, context: frame.clone() };
    let old =
        EditableComponent { uid: String::new(), bytes: before.to_vec(), context: frame.clone() };
    if let Some(plan) = part.schedule(deriver) {
        draft::ensure_zone_defined(&mut part.context, &plan.form, plan.start);
    }
    const TIME_PROPERTIES: [&str; 7] =
        ["DTSTART", "DTEND", "DUE", "DURATION", "RRULE", "RDATE", "EXDATE"];
    let moved =
        TIME_PROPERTIES.iter().any(|name| part.property_texts(name) != old.property_texts(name));
    part.bump_revision(now, moved);
    (part.bytes, part.context)
}

//! Cancellation of items by a scheduling message with METHOD:CANCEL (RFC 5546, 3.2.5): the items
//! are marked as cancelled and keep everything else.
//!
//! This module writes nothing. It is separate from [`scope`](super::scope) because a cancellation
//! comes from the organizer: it has a revision, and it does not move occurrences.

use super::editable_component::{ComponentSchedule, EditableComponent};
use super::scope::create_override;
use super::uid_group::{OverrideComponent, UidGroup};
use larder_format::component::Component;
use larder_store::{BatchChange, ParsedItem, is_newer_revision};

/// The result of a cancellation.
#[derive(Debug)]
pub enum CancelOutcome {
    /// The changes that mark the items; empty if they are marked already.
    Marked(Vec<BatchChange>),
    /// The item is newer than the message.
    Outdated,
    /// There is no item that the message refers to.
    NotFound,
}

/// Computes the changes that mark a series, one occurrence, or one and all following as cancelled.
///
/// An occurrence without an override gets one. Items that are newer than the message stay as they
/// are.
#[must_use]
pub fn compute_cancellation(group: &UidGroup<'_>, message: &ParsedItem) -> CancelOutcome {
    let message = EditableComponent::from_parsed(message);
    let targets = match message.recurrence_id(group.extractor) {
        // A RECURRENCE-ID that cannot be resolved refers to nothing.
        None if Component::parse(&message.bytes).recurrence_id().is_some() => None,
        None => target_series(group, &message),
        Some(recurrence_id) => {
            let key = group.recurrence_id_key(&recurrence_id.time);
            target_occurrence(group, key, recurrence_id.following, &message)
        }
    };
    let Some(CancelTargets { components, first_is_newer }) = targets else {
        return CancelOutcome::NotFound;
    };
    if first_is_newer {
        return CancelOutcome::Outdated;
    }
    let mark = |CancelTarget { mut component, is_cancelled }| {
        if is_cancelled && !is_newer_revision(&component.bytes, &message.bytes) {
            mark_cancelled(&mut component, &message);
        }
        component
    };
    let components = components.into_iter().map(mark).collect();
    group.compute_changes(components).map_or(CancelOutcome::NotFound, CancelOutcome::Marked)
}

/// A component of the series, and whether the message cancels it.
struct CancelTarget {
    component: EditableComponent,
    is_cancelled: bool,
}

/// All components of a UID.
struct CancelTargets {
    components: Vec<CancelTarget>,
    /// Whether the component that the message names is newer than the message.
    first_is_newer: bool,
}

/// Targets every component. Returns `None` if there is none.
fn target_series(group: &UidGroup<'_>, message: &EditableComponent) -> Option<CancelTargets> {
    let overrides = group.overrides.iter().map(|one| &one.component);
    let target =
        |part: &EditableComponent| CancelTarget { component: part.clone(), is_cancelled: true };
    let components: Vec<_> = group.master.iter().chain(overrides).map(target).collect();
    let first_is_newer = is_newer_revision(&components.first()?.component.bytes, &message.bytes);
    Some(CancelTargets { components, first_is_newer })
}

/// Targets an occurrence, or it and all following. Returns `None` if there is no such occurrence.
fn target_occurrence(
    group: &UidGroup<'_>,
    key: i64,
    following: bool,
    message: &EditableComponent,
) -> Option<CancelTargets> {
    let mut overrides = group.overrides.clone();
    let named = match overrides.iter_mut().find(|one| one.key == Some(key)) {
        Some(named) => named,
        None => {
            overrides.push(OverrideComponent {
                key: Some(key),
                following,
                component: create_override_if_active(group, key)?,
            });
            overrides.last_mut()?
        }
    };
    if let (Some(schedule), true) = (&group.schedule, following) {
        named.following = true;
        named.set_recurrence_id(&schedule.form, schedule.key_to_civil(key));
    }
    let first_is_newer = is_newer_revision(&named.component.bytes, &message.bytes);
    let master = group.master.iter();
    let master = master.map(|part| CancelTarget { component: part.clone(), is_cancelled: false });
    let overrides = overrides.into_iter().map(|one| CancelTarget {
        is_cancelled: one.key == Some(key) || following && one.key > Some(key),
        component: one.component,
    });
    Some(CancelTargets { components: master.chain(overrides).collect(), first_is_newer })
}

/// Creates an override for an occurrence of a series that is not cancelled as a whole.
fn create_override_if_active(group: &UidGroup<'_>, key: i64) -> Option<EditableComponent> {
    group.check_format_version().ok()?;
    group.master.as_ref().filter(|master| !is_cancelled(master))?;
    group.schedule.as_ref().filter(|schedule: &&ComponentSchedule| schedule.is_recurring())?;
    create_override(group, key).ok()
}

fn is_cancelled(part: &EditableComponent) -> bool {
    part.property_texts("STATUS")
        .iter()
        .any(|status| status.trim().eq_ignore_ascii_case("CANCELLED"))
}

/// Sets STATUS, and the revision of the message.
fn mark_cancelled(part: &mut EditableComponent, message: &EditableComponent) {
    if !is_cancelled(part) {
        part.set_property("STATUS", &[], "CANCELLED");
    }
    for name in ["SEQUENCE", "DTSTAMP"] {
        let (new, old) = (message.property_texts(name), part.property_texts(name));
        if let Some(value) = new.first().filter(|value| old.first() != Some(value)) {
            part.set_property(name, &[], value);
        }
    }
}

//! What a message by METHOD:CANCEL does to the items of its UID (RFC 5546, 3.2.5): they are marked
//! as cancelled, and keep all else.
//!
//! Nothing is written here. It is apart from [`scope`](super::scope), as it is the word of an
//! organizer, which has a revision, and moves nothing.

use super::editable_component::{ComponentSchedule, EditableComponent};
use super::scope::create_override;
use super::uid_group::{OverrideComponent, UidGroup};
use larder_format::component::Component;
use larder_store::{BatchChange, ParsedItem, is_newer_revision};

/// What a message comes to.
pub enum CancelOutcome {
    /// What has to be written so that it is marked; nothing where it is already.
    Marked(Vec<BatchChange>),
    /// What is there is newer than the message.
    Outdated,
    /// It is about nothing that is there.
    NotFound,
}

/// Marks what a message is about: all of a series, one occurrence, or one and all that follow. An
/// occurrence that was not changed before becomes a detached one. What is newer than the message
/// stays as it is.
#[must_use]
pub fn compute_cancellation(whole: &UidGroup<'_>, message: &ParsedItem) -> CancelOutcome {
    let frame = message.calendar_context().map(|frame| (**frame).clone()).unwrap_or_default();
    let message =
        EditableComponent { uid: String::new(), bytes: message.bytes().to_vec(), context: frame };
    let original = message.recurrence_id(whole.deriver);
    let meant = match original.map(|(time, following)| (whole.recurrence_id_key(&time), following))
    {
        None if Component::parse(&message.bytes).recurrence_id().is_some() => None,
        None => target_series(whole, &message),
        Some((key, following)) => target_occurrence(whole, key, following, &message),
    };
    let Some(CancelTargets { components: mut parts, first_is_newer }) = meant else {
        return CancelOutcome::NotFound;
    };
    if first_is_newer {
        return CancelOutcome::Outdated;
    }
    for (part, _) in parts.iter_mut().filter(|(_, meant)| *meant) {
        if !is_newer_revision(&part.bytes, &message.bytes) {
            mark_cancelled(part, &message);
        }
    }
    let parts = parts.into_iter().map(|(part, _)| part).collect();
    whole.compute_changes(parts).map_or(CancelOutcome::NotFound, CancelOutcome::Marked)
}

/// All items of a UID, and which of them are meant.
struct CancelTargets {
    components: Vec<(EditableComponent, bool)>,
    /// The one that the message names is newer.
    first_is_newer: bool,
}

/// All of them are meant. `None`: there is none.
fn target_series(whole: &UidGroup<'_>, message: &EditableComponent) -> Option<CancelTargets> {
    let detached = whole.overrides.iter().map(|one| &one.component);
    let parts: Vec<_> =
        whole.master.iter().chain(detached).map(|part| (part.clone(), true)).collect();
    let first_is_newer = is_newer_revision(&parts.first()?.0.bytes, &message.bytes);
    Some(CancelTargets { components: parts, first_is_newer })
}

/// An occurrence is meant, or it and all that follow. `None`: there is no such one.
fn target_occurrence(
    whole: &UidGroup<'_>,
    key: i64,
    following: bool,
    message: &EditableComponent,
) -> Option<CancelTargets> {
    let mut changed = whole.overrides.clone();
    let named = match changed.iter_mut().find(|one| one.key == Some(key)) {
        Some(named) => named,
        None => {
            changed.push(OverrideComponent {
                key: Some(key),
                following,
                component: create_override_if_active(whole, key)?,
            });
            changed.last_mut()?
        }
    };
    if let (Some(plan), true) = (&whole.schedule, following) {
        named.following = true;
        named.set_recurrence_id(plan, &plan.form, 0);
    }
    let first_is_newer = is_newer_revision(&named.component.bytes, &message.bytes);
    let is_meant =
        |one: &OverrideComponent| one.key == Some(key) || following && one.key > Some(key);
    let master = whole.master.iter().map(|part| (part.clone(), false));
    let changed = changed.into_iter().map(|one| (is_meant(&one), one.component));
    let parts = master.chain(changed.map(|(meant, part)| (part, meant))).collect();
    Some(CancelTargets { components: parts, first_is_newer })
}

/// An occurrence of what is not cancelled, as a component of its own.
fn create_override_if_active(whole: &UidGroup<'_>, key: i64) -> Option<EditableComponent> {
    whole.check_format_version().ok()?;
    whole.master.as_ref().filter(|master| !is_cancelled(master))?;
    whole.schedule.as_ref().filter(|plan: &&ComponentSchedule| plan.is_recurring())?;
    create_override(whole, key).ok()
}

fn is_cancelled(part: &EditableComponent) -> bool {
    part.property_texts("STATUS")
        .iter()
        .any(|status| status.trim().eq_ignore_ascii_case("CANCELLED"))
}

fn mark_cancelled(part: &mut EditableComponent, message: &EditableComponent) {
    if !is_cancelled(part) {
        part.set_property("STATUS", &[], "CANCELLED");
    }
    for name in ["SEQUENCE", "DTSTAMP"] {
        let (said, before) = (message.property_texts(name), part.property_texts(name));
        if let Some(said) = said.first().filter(|said| before.first() != Some(said)) {
            part.set_property(name, &[], said);
        }
    }
}

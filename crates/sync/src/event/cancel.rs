//! What a message by METHOD:CANCEL does to the items of its UID (RFC 5546, 3.2.5): they are marked as cancelled, and keep all else.
//!
//! Nothing is written here. It is apart from [`scope`](super::scope), as it is the word of an organizer, which has a revision, and
//! moves nothing.

use super::part::{Part, Plan};
use super::scope::detached;
use super::whole::{Detached, Whole};
use larder_format::component::Component;
use larder_store::{Change, Prepared, is_newer};

/// What a message comes to.
pub(crate) enum Cancelled {
    /// What has to be written so that it is marked; nothing where it is already.
    Marked(Vec<Change>),
    /// What is there is newer than the message.
    Older,
    /// It is about nothing that is there.
    NotThere,
}

/// Marks what a message is about: all of a series, one occurrence, or one and all that follow. An occurrence that was not
/// changed before becomes a detached one. What is newer than the message stays as it is.
pub(crate) fn cancelled(whole: &Whole<'_>, message: &Prepared) -> Cancelled {
    let frame = message.frame().map(|frame| (**frame).clone()).unwrap_or_default();
    let message = Part { uid: String::new(), bytes: message.bytes().to_vec(), frame };
    let original = message.original(whole.deriver);
    let meant = match original.map(|(time, following)| (whole.key_of_original(&time), following)) {
        None if Component::parse(&message.bytes).recurrence_id().is_some() => None,
        None => all(whole, &message),
        Some((key, following)) => some(whole, key, following, &message),
    };
    let Some(Meant { mut parts, first_is_newer }) = meant else { return Cancelled::NotThere };
    if first_is_newer {
        return Cancelled::Older;
    }
    for (part, _) in parts.iter_mut().filter(|(_, meant)| *meant) {
        if !is_newer(&part.bytes, &message.bytes) {
            mark(part, &message);
        }
    }
    let parts = parts.into_iter().map(|(part, _)| part).collect();
    whole.changes(parts).map_or(Cancelled::NotThere, Cancelled::Marked)
}

/// All items of a UID, and which of them are meant.
struct Meant {
    parts: Vec<(Part, bool)>,
    /// The one that the message names is newer.
    first_is_newer: bool,
}

/// All of them are meant. `None`: there is none.
fn all(whole: &Whole<'_>, message: &Part) -> Option<Meant> {
    let detached = whole.detached.iter().map(|one| &one.part);
    let parts: Vec<_> =
        whole.master.iter().chain(detached).map(|part| (part.clone(), true)).collect();
    let first_is_newer = is_newer(&parts.first()?.0.bytes, &message.bytes);
    Some(Meant { parts, first_is_newer })
}

/// An occurrence is meant, or it and all that follow. `None`: there is no such one.
fn some(whole: &Whole<'_>, key: i64, following: bool, message: &Part) -> Option<Meant> {
    let mut changed = whole.detached.clone();
    let named = match changed.iter_mut().find(|one| one.key == Some(key)) {
        Some(named) => named,
        None => {
            changed.push(Detached { key: Some(key), following, part: occurrence(whole, key)? });
            changed.last_mut()?
        }
    };
    if let (Some(plan), true) = (&whole.plan, following) {
        named.following = true;
        named.stand_for(plan, &plan.form, 0);
    }
    let first_is_newer = is_newer(&named.part.bytes, &message.bytes);
    let is_meant = |one: &Detached| one.key == Some(key) || following && one.key > Some(key);
    let master = whole.master.iter().map(|part| (part.clone(), false));
    let changed = changed.into_iter().map(|one| (is_meant(&one), one.part));
    let parts = master.chain(changed.map(|(meant, part)| (part, meant))).collect();
    Some(Meant { parts, first_is_newer })
}

/// An occurrence of what is not cancelled, as a component of its own.
fn occurrence(whole: &Whole<'_>, key: i64) -> Option<Part> {
    whole.is_current().ok()?;
    whole.master.as_ref().filter(|master| !is_cancelled(master))?;
    whole.plan.as_ref().filter(|plan: &&Plan| plan.recurs())?;
    detached(whole, key).ok()
}

fn is_cancelled(part: &Part) -> bool {
    part.texts("STATUS").iter().any(|status| status.trim().eq_ignore_ascii_case("CANCELLED"))
}

fn mark(part: &mut Part, message: &Part) {
    if !is_cancelled(part) {
        part.set("STATUS", &[], "CANCELLED");
    }
    for name in ["SEQUENCE", "DTSTAMP"] {
        let (said, before) = (message.texts(name), part.texts(name));
        if let Some(said) = said.first().filter(|said| before.first() != Some(said)) {
            part.set(name, &[], said);
        }
    }
}

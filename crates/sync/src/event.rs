//! What a person does to events, tasks and memos: new ones, and changes of one occurrence, of it and all that follow, or of all.
//!
//! Pure functions from items as they are to items as they are to be; [`change`](crate::add()) writes them. Zones, the time and random
//! numbers are passed in. It is apart from [`card`](crate::card), as a card has no time.

mod along;
mod cancel;
mod draft;
mod edit;
mod error;
mod field;
mod form;
mod part;
mod said;
mod scope;
mod whole;
mod zone;

pub(crate) use self::cancel::{Cancelled, cancelled};
pub use self::draft::{Draft, DraftError};
pub use self::edit::Edit;
pub use self::error::Error;
pub use self::said::{Said, SaidError, Speaker, clock};
pub use self::scope::{Changed, Scope, change, remove};
pub use self::whole::{At, Whole};
pub use self::zone::definition;

use larder_format::component::Component;
use larder_store::{
    Deriver, Frame, Handle, ItemHead, Operation, OperationId, Outcome, Reader, Store,
};
use larder_time::civil::Instant;
use larder_time::series::Start;
use larder_time::value::Nominal;
use part::Part;

/// What a change of occurrences came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Items that are new.
    pub added: Vec<Handle>,
    /// Items that were changed.
    pub changed: Vec<Handle>,
    /// Items that were taken away.
    pub removed: Vec<Handle>,
    /// Changed occurrences that stay, though a new rule does not have them.
    pub astray: usize,
    /// Changed occurrences that keep what they say otherwise than their series.
    pub apart: usize,
    /// Somebody else was first, and nothing was done.
    pub late: bool,
    /// What to undo it by; `None` where nothing was written.
    pub operation: Option<OperationId>,
}

/// Which occurrences of the series of an item are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Which {
    /// How many; `None`: one, if it is said which.
    pub scope: Option<Scope>,
    /// Which one; `None`: the one that the item stands for.
    pub at: Option<At>,
}

impl Which {
    fn key(
        self,
        whole: &Whole<'_>,
        head: &ItemHead,
        speaker: &Speaker<'_>,
    ) -> Result<Option<i64>, Error> {
        match self.at {
            Some(at) => whole.find(at, speaker.local).map(Some),
            None => Ok(whole.key_of(head)),
        }
    }
}

/// Takes occurrences away, in one batch of `operation`, or does nothing.
///
/// # Errors
/// Why it cannot be done, and what the store says.
pub fn remove_which(
    store: &mut Store,
    operation: &mut Operation,
    head: &ItemHead,
    which: Which,
    speaker: &Speaker<'_>,
) -> Result<Done, Error> {
    let deriver = store.deriver_for(&head.collection, head.kind.family())?;
    let whole = Whole::read(&store.reader()?, &deriver, head)?;
    let key = which.key(&whole, head, speaker)?;
    let changes = remove(&whole, which.scope, key, speaker.now)?;
    written(store, operation, changes)
}

/// Changes occurrences, in one batch of `operation`, or does nothing. What follows goes on under the UID that is given, where it needs
/// one.
///
/// # Errors
/// Why it cannot be done, and what the store says.
pub fn change_which(
    store: &mut Store,
    operation: &mut Operation,
    head: &ItemHead,
    which: Which,
    edit: &Edit,
    uid: &str,
    speaker: &Speaker<'_>,
) -> Result<Done, Error> {
    let deriver = store.deriver_for(&head.collection, head.kind.family())?;
    let whole = Whole::read(&store.reader()?, &deriver, head)?;
    let key = which.key(&whole, head, speaker)?;
    let Changed { changes, astray, apart } = change(&whole, which.scope, key, edit, uid, speaker)?;
    Ok(Done { astray, apart, ..written(store, operation, changes)? })
}

/// Are there several occurrences of an item, or of what it is one of?
///
/// # Errors
/// What the store says.
pub fn recurs(reader: &Reader, head: &ItemHead) -> Result<bool, larder_store::Error> {
    if !head.recurrence.is_empty() {
        return Ok(true);
    }
    let mut recurs = reader.series_of(head)?.len() > 1;
    reader.times(&[head.row], &mut |_, times| {
        recurs |= times.recurs();
        true
    })?;
    Ok(recurs)
}

/// When an item begins and ends, as it says.
///
/// # Errors
/// What the store says.
#[allow(clippy::type_complexity, reason = "two times, each perhaps")]
pub fn when(
    reader: &Reader,
    head: &ItemHead,
) -> Result<Option<(Option<Start>, Option<Start>)>, larder_store::Error> {
    let Some(bytes) = reader.source(head.row)? else { return Ok(None) };
    let frame = head.frame.map(|row| reader.frame(row)).transpose()?.flatten().unwrap_or_default();
    let component = Component::parse(&bytes);
    let time = |name: &str| {
        let timed = component.timed(name).next()?;
        reader.deriver().start(&timed, &frame)
    };
    let (start, end) = (time("DTSTART"), time("DTEND").or_else(|| time("DUE")));
    let part = Part { uid: String::new(), bytes: bytes.clone(), frame: Frame::clone(&frame) };
    let lasts = || {
        let seconds = part.plan(reader.deriver())?.length();
        Some(draft::ended(start.as_ref()?, Nominal { days: 0, seconds }))
    };
    let end = end.or_else(|| lasts().filter(|end| start.as_ref() != Some(end)));
    Ok(Some((start, end)))
}

/// How an item recurs, as it says.
///
/// # Errors
/// What the store says.
pub fn rule(reader: &Reader, head: &ItemHead) -> Result<Option<String>, larder_store::Error> {
    let Some(bytes) = reader.source(head.row)? else { return Ok(None) };
    let rule = Component::parse(&bytes).timed("RRULE").next().map(|rule| rule.text.into_owned());
    Ok(rule)
}

fn written(
    store: &mut Store,
    operation: &mut Operation,
    changes: Vec<larder_store::Change>,
) -> Result<Done, Error> {
    let mut done = Done::default();
    if changes.is_empty() {
        return Ok(done);
    }
    let applied = store.apply(operation, changes)?;
    done.late = applied.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Conflict(..)));
    if done.late {
        return Ok(done);
    }
    for outcome in applied.outcomes {
        match outcome {
            Outcome::Added(handle) => done.added.push(handle),
            Outcome::Updated(handle) => done.changed.push(handle),
            Outcome::Removed(handle) => done.removed.push(handle),
            _ => {}
        }
    }
    done.operation = operation.id();
    Ok(done)
}

/// A component as it came back from an editor, with the time of the change in it; what it says of zones is in the frame.
pub(crate) fn noted(
    deriver: &Deriver,
    frame: &Frame,
    before: &[u8],
    text: Vec<u8>,
    now: Instant,
) -> (Vec<u8>, Frame) {
    let mut part = Part { uid: String::new(), bytes: text, frame: frame.clone() };
    let old = Part { uid: String::new(), bytes: before.to_vec(), frame: frame.clone() };
    if let Some(plan) = part.plan(deriver) {
        draft::define(&mut part.frame, &plan.form, plan.start);
    }
    const TIMES: [&str; 7] = ["DTSTART", "DTEND", "DUE", "DURATION", "RRULE", "RDATE", "EXDATE"];
    let moved = TIMES.iter().any(|name| part.texts(name) != old.texts(name));
    part.touch(now, moved);
    (part.bytes, part.frame)
}

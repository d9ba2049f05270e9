//! What an answer is about: contacts, what is in calendars, or both. Lists differ by it, and what they are sorted by.

use crate::error::Error;
use crate::query::{Number, Query, Subject, Test};
use crate::run::Find;
use larder_format::field::{CALENDAR_FIELDS, Field};
use larder_store::{Family, Reader};

/// What an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Contacts.
    Contacts,
    /// Events, tasks and memos.
    Calendar,
    /// Perhaps both.
    Both,
}

impl From<Family> for About {
    fn from(family: Family) -> About {
        if family == Family::Calendar { About::Calendar } else { About::Contacts }
    }
}

/// What the answer to a question can be about: as the question says, else as the collections do in which it is asked.
///
/// # Errors
/// What the store reports.
pub fn about(reader: &Reader, find: &Find) -> Result<About, Error> {
    if let Some(about) = says(&find.query) {
        return Ok(about);
    }
    let asked = match &find.collection {
        Some(name) => Some(reader.collection_rows(Some(name))?),
        None => None,
    };
    let mut found = None;
    for (row, summary) in reader.summaries()? {
        let family = summary.family();
        if asked.as_ref().is_some_and(|asked| !asked.contains(&row)) || found == Some(family) {
            continue;
        }
        // A collection without anything in it says nothing.
        if reader.rows_of(row, 0, 1)?.is_empty() {
            continue;
        }
        if found.is_some() {
            return Ok(About::Both);
        }
        found = Some(family);
    }
    Ok(found.unwrap_or(Family::Contacts).into())
}

/// Is this a field of what is in calendars?
#[must_use]
pub fn is_of_calendar(field: &Field) -> bool {
    CALENDAR_FIELDS.iter().any(|known| known.id == field.id)
}

fn says(query: &Query) -> Option<About> {
    let of_field = |field: &Field| {
        if is_of_calendar(field) { About::Calendar } else { About::Contacts }
    };
    match query {
        Query::Kind(kind) => Some(kind.family().into()),
        Query::Time(_) | Query::Number(Number::Occurrences(_), ..) => Some(About::Calendar),
        Query::Number(Number::Field(field), ..)
        | Query::Test(Test { subject: Subject::Field(field), .. }) => Some(of_field(field)),
        Query::And(all) => all.iter().find_map(says),
        Query::Or(any) => {
            let mut any = any.iter().map(says);
            let first = any.next()??;
            any.all(|says| says == Some(first)).then_some(first)
        }
        _ => None,
    }
}

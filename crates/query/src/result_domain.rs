//! What an answer is about: contacts, what is in calendars, or both. Lists differ by it, and what
//! they are sorted by.

use crate::error::Error;
use crate::query::{FieldSelector, FieldTest, NumericOperand, Query};
use crate::search_request::SearchRequest;
use larder_format::field::{CALENDAR_FIELDS, Field};
use larder_store::{CollectionType, Reader};

/// What an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultDomain {
    /// Contacts.
    Contacts,
    /// Events, tasks and memos.
    Calendar,
    /// Perhaps both.
    Both,
}

impl From<CollectionType> for ResultDomain {
    fn from(family: CollectionType) -> ResultDomain {
        if family == CollectionType::Calendar {
            ResultDomain::Calendar
        } else {
            ResultDomain::Contacts
        }
    }
}

/// What the answer to a question can be about: as the question says, else as the collections do in
/// which it is asked.
///
/// # Errors
/// What the store reports.
pub fn resolve_domain(reader: &Reader, find: &SearchRequest) -> Result<ResultDomain, Error> {
    if let Some(about) = domain_of_query(&find.query) {
        return Ok(about);
    }
    let asked = match &find.collection {
        Some(name) => Some(reader.collection_rows(Some(name))?),
        None => None,
    };
    let mut found = None;
    for (row, summary) in reader.index_configs()? {
        let family = summary.collection_type();
        if asked.as_ref().is_some_and(|asked| !asked.contains(&row)) || found == Some(family) {
            continue;
        }
        // A collection without anything in it says nothing.
        if reader.item_rows(row, 0, 1)?.is_empty() {
            continue;
        }
        if found.is_some() {
            return Ok(ResultDomain::Both);
        }
        found = Some(family);
    }
    Ok(found.unwrap_or(CollectionType::AddressBook).into())
}

/// Is this a field of what is in calendars?
#[must_use]
pub fn is_calendar_field(field: &Field) -> bool {
    CALENDAR_FIELDS.iter().any(|known| known.id == field.id)
}

fn domain_of_query(query: &Query) -> Option<ResultDomain> {
    let of_field = |field: &Field| {
        if is_calendar_field(field) { ResultDomain::Calendar } else { ResultDomain::Contacts }
    };
    match query {
        Query::Kind(kind) => Some(kind.collection_type().into()),
        Query::Time(_) | Query::Number(NumericOperand::Occurrences(_), ..) => {
            Some(ResultDomain::Calendar)
        }
        Query::Number(NumericOperand::Field(field), ..)
        | Query::Test(FieldTest { subject: FieldSelector::Field(field), .. }) => {
            Some(of_field(field))
        }
        Query::And(all) => all.iter().find_map(domain_of_query),
        Query::Or(any) => {
            let mut any = any.iter().map(domain_of_query);
            let first = any.next()??;
            any.all(|says| says == Some(first)).then_some(first)
        }
        _ => None,
    }
}

//! The domain of a result: contacts, calendar items, or both. Lists show and sort each differently.
//!
//! Apart from `query`, as the domain may depend on the collections of the store.

use crate::error::Error;
use crate::query::{FieldSelector, FieldTest, NumericOperand, Query};
use crate::search_request::SearchRequest;
use larder_format::field::{CALENDAR_FIELDS, Field};
use larder_store::{CollectionType, Reader};

/// The kinds of items that a result may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultDomain {
    /// Contacts.
    Contacts,
    /// Events, tasks and memos.
    Calendar,
    /// Possibly both.
    Both,
}

impl From<CollectionType> for ResultDomain {
    fn from(collection_type: CollectionType) -> ResultDomain {
        if collection_type == CollectionType::Calendar {
            ResultDomain::Calendar
        } else {
            ResultDomain::Contacts
        }
    }
}

/// Returns the domain of a request: that of its query, or else that of the collections searched.
///
/// # Errors
/// Errors of the store.
pub fn resolve_domain(reader: &Reader, request: &SearchRequest) -> Result<ResultDomain, Error> {
    if let Some(domain) = domain_of_query(&request.query) {
        return Ok(domain);
    }
    let searched = match &request.collection {
        Some(name) => Some(reader.collection_rows(Some(name))?),
        None => None,
    };
    let mut found = None;
    for (row, index_config) in reader.index_configs()? {
        let collection_type = index_config.collection_type();
        if searched.as_ref().is_some_and(|rows| !rows.contains(&row))
            || found == Some(collection_type)
        {
            continue;
        }
        // An empty collection does not count.
        if reader.item_rows(row, None, 1)?.is_empty() {
            continue;
        }
        if found.is_some() {
            return Ok(ResultDomain::Both);
        }
        found = Some(collection_type);
    }
    Ok(found.unwrap_or(CollectionType::AddressBook).into())
}

/// Returns whether this is a field of calendar items.
#[must_use]
pub fn is_calendar_field(field: &Field) -> bool {
    CALENDAR_FIELDS.iter().any(|known| known.id == field.id)
}

fn domain_of_query(query: &Query) -> Option<ResultDomain> {
    let domain_of_field = |field: &Field| {
        if is_calendar_field(field) { ResultDomain::Calendar } else { ResultDomain::Contacts }
    };
    match query {
        Query::Kind(kind) => Some(kind.collection_type().into()),
        Query::Time(_) | Query::Number(NumericOperand::Occurrences(_), ..) => {
            Some(ResultDomain::Calendar)
        }
        Query::Number(NumericOperand::Field(field), ..)
        | Query::Test(FieldTest { subject: FieldSelector::Field(field), .. }) => {
            Some(domain_of_field(field))
        }
        Query::And(all) => all.iter().find_map(domain_of_query),
        Query::Or(any) => {
            let mut any = any.iter().map(domain_of_query);
            let first = any.next()??;
            any.all(|domain| domain == Some(first)).then_some(first)
        }
        _ => None,
    }
}

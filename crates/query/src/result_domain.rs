//! The domain of a result: a single type of collection, or several types. Lists show and sort each
//! type differently.
//!
//! Separate from `query` because the domain may depend on the collections of the store.

use crate::error::Error;
use crate::query::{FieldSelector, FieldTest, NumericOperand, Query};
use crate::search_request::{SearchRequest, SortSpec};
use larder_store::{CollectionType, Reader};

/// The types of collections whose items a result may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultDomain {
    /// One type.
    One(CollectionType),
    /// Possibly several.
    Several,
}

impl ResultDomain {
    /// Returns the order of such a result for which none was requested.
    #[must_use]
    pub fn default_sort(self) -> Option<SortSpec> {
        let field = match self {
            ResultDomain::One(collection_type) => collection_type.default_order(),
            ResultDomain::Several => CollectionType::default().default_order(),
        };
        field.map(|field| SortSpec { field, descending: false })
    }

    /// Returns the singular noun for any item of such a result.
    #[must_use]
    pub fn item_noun(self) -> &'static str {
        match self {
            ResultDomain::One(collection_type) => collection_type.item_noun(),
            ResultDomain::Several => "item",
        }
    }
}

/// Returns the domain of a request: the domain of its query, or else of the collections searched.
///
/// # Errors
/// Errors of the store.
pub fn resolve_domain(reader: &Reader, request: &SearchRequest) -> Result<ResultDomain, Error> {
    if let Some(domain) = domain_of_query(&request.query) {
        return Ok(domain);
    }
    let searched = match &request.collection {
        Some(name) => Some(reader.collections().list_rows(Some(name))?),
        None => None,
    };
    let mut found = None;
    for (row, index_config) in reader.collections().list_index_configs()? {
        let collection_type = index_config.collection_type();
        if searched.as_ref().is_some_and(|rows| !rows.contains(&row))
            || found == Some(collection_type)
        {
            continue;
        }
        // An empty collection does not count.
        if reader.items().list_rows(row, None, 1)?.is_empty() {
            continue;
        }
        if found.is_some() {
            return Ok(ResultDomain::Several);
        }
        found = Some(collection_type);
    }
    Ok(ResultDomain::One(found.unwrap_or_default()))
}

/// Returns the domain of a query; `None`: the searched collections decide.
pub(crate) fn domain_of_query(query: &Query) -> Option<ResultDomain> {
    match query {
        Query::Kind(kind) => Some(ResultDomain::One(kind.collection_type())),
        Query::Time(_) | Query::Number(NumericOperand::Occurrences(_), ..) => {
            CollectionType::all().find(|one| one.has_schedules()).map(ResultDomain::One)
        }
        Query::Number(NumericOperand::Field(field), ..)
        | Query::Test(FieldTest { subject: FieldSelector::Field(field), .. }) => {
            Some(ResultDomain::One(CollectionType::from_field(field)))
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

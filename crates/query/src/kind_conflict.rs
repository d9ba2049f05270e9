//! Search lines that nothing can match, because their terms are of different kinds.
//!
//! Separate from `result_domain`, which says what lists show: this is for a search that found
//! nothing, and reads its line for each kind once more.

use crate::mail_query::{MailQuery, MailQueryContext};
use crate::query::{Query, QueryContext};
use crate::result_domain::{ResultDomain, domain_of_query};
use larder_store::Kind;

/// Returns the kinds of the terms of a search line that no item of any kind can match, because it
/// has terms of different kinds joined by `and`; `None`: there may be such items.
#[must_use]
pub fn find_kind_conflict(line: &str, context: &QueryContext) -> Option<Vec<Kind>> {
    let context = context.among_kinds();
    let Ok(Query::And(all)) = Query::parse_with(line, &context) else { return None };
    let mut kinds = Vec::new();
    for query in &all {
        if let Some(ResultDomain::One(collection_type)) = domain_of_query(query)
            && !kinds.contains(&collection_type.main_kind())
        {
            kinds.push(collection_type.main_kind());
        }
    }
    // A term may be one of messages, too, such as a date.
    let mail_context = MailQueryContext::from(&context);
    let is_empty = |kind: Kind| {
        let query = MailQuery::parse(line, &mail_context.clone().with_kind(kind));
        query.is_ok_and(|query| has_no_match(&query))
    };
    (kinds.len() > 1 && is_empty(Kind::Message) && is_empty(Kind::Commit)).then_some(kinds)
}

/// Returns whether no item can match a query, whatever the store has.
fn has_no_match(query: &MailQuery) -> bool {
    match query {
        MailQuery::Nothing => true,
        MailQuery::And(all) => all.iter().any(has_no_match),
        MailQuery::Or(any) => any.iter().all(has_no_match),
        _ => false,
    }
}

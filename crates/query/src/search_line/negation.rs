//! The terms of a search line together with their negations.
//!
//! Separate from the parser: a term about a field matches only items of kinds with that field, and
//! so does its negation. The negation of a group of terms of different kinds therefore consists of
//! the negations of its terms, by De Morgan's laws.

use crate::matcher::searched_fields;
use crate::query::Query;
use larder_format::field::Field;
use larder_store::{CollectionType, Kind};

/// The fields that only kinds with due times have, though the table of fields is one for a type of
/// collection.
const DUE_TIME_FIELDS: [&str; 3] = ["due", "done", "percent"];

/// A part of a search line.
#[derive(Debug)]
pub(super) struct ParsedTerm {
    query: Query,
    /// The query of the negated term; `None`: every item that does not match.
    negation: Option<Query>,
}

impl ParsedTerm {
    /// A term that items of other kinds match, neither it nor its negation.
    pub(super) fn of_other_kind() -> ParsedTerm {
        let nothing = Query::Or(Vec::new());
        ParsedTerm { query: nothing.clone(), negation: Some(nothing) }
    }

    /// A test of this field.
    pub(super) fn of_field(query: Query, field: &'static Field) -> ParsedTerm {
        ParsedTerm::in_kinds(query, kinds_with_field(field))
    }

    /// A test of times, or of another value of calendars.
    pub(super) fn of_schedule(query: Query) -> ParsedTerm {
        let types = CollectionType::all().filter(|one| one.has_schedules());
        ParsedTerm::in_kinds(query, types.flat_map(CollectionType::kinds).collect())
    }

    /// A test of due times, or of completion.
    pub(super) fn of_due_time(query: Query) -> ParsedTerm {
        ParsedTerm::in_kinds(query, Kind::all().filter(|kind| kind.has_due_time()).collect())
    }

    fn in_kinds(query: Query, kinds: Vec<Kind>) -> ParsedTerm {
        if stored_types().flat_map(CollectionType::kinds).all(|kind| kinds.contains(&kind)) {
            return ParsedTerm::from(query);
        }
        let mut kinds: Vec<Query> = kinds.into_iter().map(Query::Kind).collect();
        let kinds = if kinds.len() == 1 { kinds.swap_remove(0) } else { Query::Or(kinds) };
        let negation = Query::And(vec![kinds, Query::Not(Box::new(query.clone()))]);
        ParsedTerm { query, negation: Some(negation) }
    }

    /// Restricts the term to items of a kind. Its negation is the others of that kind, also those
    /// that a negated part of the term would not be about.
    pub(super) fn of_kind(self, kind: Kind) -> ParsedTerm {
        let of_kind = |query| Query::And(vec![Query::Kind(kind), query]);
        let negation = of_kind(Query::Not(Box::new(self.query.clone())));
        ParsedTerm { query: of_kind(self.query), negation: Some(negation) }
    }

    pub(super) fn negate(self) -> ParsedTerm {
        match self.negation {
            Some(negation) => ParsedTerm { query: negation, negation: Some(self.query) },
            None => ParsedTerm::from(Query::Not(Box::new(self.query))),
        }
    }

    /// All of these terms must match.
    pub(super) fn join_all(terms: Vec<ParsedTerm>) -> ParsedTerm {
        ParsedTerm::join(terms, Query::And, Query::Or)
    }

    /// Any of these terms must match.
    pub(super) fn join_any(terms: Vec<ParsedTerm>) -> ParsedTerm {
        ParsedTerm::join(terms, Query::from_alternatives, Query::And)
    }

    fn join(
        mut terms: Vec<ParsedTerm>,
        join_queries: fn(Vec<Query>) -> Query,
        join_negations: fn(Vec<Query>) -> Query,
    ) -> ParsedTerm {
        if terms.len() == 1 {
            return terms.swap_remove(0);
        }
        if terms.iter().all(|term| term.negation.is_none()) {
            let queries = terms.into_iter().map(ParsedTerm::into_query).collect();
            return ParsedTerm::from(join_queries(queries));
        }
        let (queries, negations) = terms.into_iter().map(ParsedTerm::into_both).unzip();
        ParsedTerm { query: join_queries(queries), negation: Some(join_negations(negations)) }
    }

    pub(super) fn into_query(self) -> Query {
        self.query
    }

    /// Returns the query and that of the negated term.
    fn into_both(self) -> (Query, Query) {
        let negation = self.negation.unwrap_or_else(|| Query::Not(Box::new(self.query.clone())));
        (self.query, negation)
    }

    /// Returns whether nothing was typed that items could fail.
    pub(super) fn is_empty(&self) -> bool {
        self.query == Query::All
    }
}

impl From<Query> for ParsedTerm {
    /// A term that items of every kind may match.
    fn from(query: Query) -> ParsedTerm {
        ParsedTerm { query, negation: None }
    }
}

/// Returns the types of collections whose items such a query can find.
fn stored_types() -> impl Iterator<Item = CollectionType> {
    CollectionType::all_listed().filter(|one| !one.main_kind().has_locator())
}

/// Returns the kinds whose items have a field; of messages and commits, the kinds of the type that
/// the field is of.
fn kinds_with_field(field: &'static Field) -> Vec<Kind> {
    let has_field = |one: &CollectionType| !searched_fields(field, *one).is_empty();
    let mut types: Vec<CollectionType> = stored_types().filter(has_field).collect();
    if types.is_empty() {
        types.push(CollectionType::from_field(field));
    }
    let is_of_due_time = DUE_TIME_FIELDS.contains(&field.name);
    let kinds = types.into_iter().flat_map(CollectionType::kinds);
    kinds.filter(|kind| !is_of_due_time || kind.has_due_time()).collect()
}

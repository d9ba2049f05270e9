//! The terms that every item in the answer to a query has.
//!
//! The terms depend only on the query, and the subscription index files the query under them. An
//! item with one of the terms may be in the answer; an item without any is not. Separate from the
//! query planner, whose candidates depend on the index configuration of the store.

use crate::matcher::{any_fields, pattern_fields, searched_fields};
use crate::query::{FieldSelector, FieldTest, MatchOp, Query};
use crate::time_test::TimeTest;
use crate::value_matcher::{WordPattern, parse_phone_digits, split_phrase};
use larder_format::field::{Field, FieldType as FieldKind};
use larder_format::fold::fold;
use larder_store::{CollectionType, Kind, TimeRange, TimeTarget};

/// The maximum number of terms of a query: looking up more terms costs more than testing the query
/// for every change.
const MAX_REQUIRED_TERMS: usize = 64;

/// A term that an item has.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RequiredTerm {
    Uid(String),
    /// A folded value of a field.
    Value(&'static Field, String),
    /// The beginning of a folded value of a field.
    Prefix(&'static Field, String),
    /// A trigram in a folded value of one of these fields.
    Trigram(Vec<&'static Field>, [char; 3]),
    /// The first one or two letters of a word in one of these fields.
    WordPrefix(Vec<&'static Field>, String),
    TimeRange(TimeTarget, i64, i64),
}

/// The items that a query can match.
enum TermRequirement {
    NoItem,
    AnyItem,
    /// Items with at least one of these terms.
    AnyTerm(Vec<RequiredTerm>),
}

impl RequiredTerm {
    /// A rank by the likely number of items that have the term; the lowest rank stands for the
    /// fewest items.
    fn selectivity(&self) -> i64 {
        match self {
            RequiredTerm::Uid(_) => 0,
            RequiredTerm::Value(..) => 1,
            RequiredTerm::Prefix(_, text) if text.len() > 2 => 2,
            RequiredTerm::Trigram(..) => 3,
            RequiredTerm::WordPrefix(..) => 5,
            RequiredTerm::TimeRange(_, from, to) => {
                4 + (to.saturating_sub(*from) / (400 * 86_400)).min(1)
            }
            RequiredTerm::Prefix(..) => 5,
        }
    }
}

/// Returns a set of terms; every item in the answer has at least one of them; `None` if there are
/// none, or too many.
pub(super) fn required_terms(query: &Query, kind: Option<Kind>) -> Option<Vec<RequiredTerm>> {
    // Without a kind, items of all types of collections can match.
    let wanted = kind.map(Kind::collection_type);
    let collection_types =
        CollectionType::all().filter(|one| wanted.is_none_or(|wanted| wanted == *one));
    let mut terms: Vec<RequiredTerm> = Vec::new();
    for collection_type in collection_types {
        match require_for_query(query, collection_type) {
            TermRequirement::NoItem => {}
            TermRequirement::AnyItem => return None,
            TermRequirement::AnyTerm(more) => {
                for term in more {
                    if !terms.contains(&term) {
                        terms.push(term);
                    }
                }
            }
        }
    }
    (terms.len() <= MAX_REQUIRED_TERMS).then_some(terms)
}

/// Calls `visit` with each trigram of a text.
pub(super) fn for_each_trigram(text: &str, visit: &mut dyn FnMut([char; 3])) {
    let mut chars = text.chars();
    let (Some(mut a), Some(mut b)) = (chars.next(), chars.next()) else { return };
    for c in chars {
        visit([a, b, c]);
        (a, b) = (b, c);
    }
}

fn require_for_query(query: &Query, collection_type: CollectionType) -> TermRequirement {
    match query {
        Query::All | Query::Not(_) | Query::Number(..) => TermRequirement::AnyItem,
        Query::Kind(kind) if kind.collection_type() == collection_type => TermRequirement::AnyItem,
        Query::Kind(_) => TermRequirement::NoItem,
        Query::And(all) => require_all(all, collection_type),
        Query::Or(any) => {
            require_any(any.iter().map(|query| require_for_query(query, collection_type)))
        }
        Query::Uids(uids) => {
            TermRequirement::AnyTerm(uids.iter().cloned().map(RequiredTerm::Uid).collect())
        }
        Query::Word(text) => {
            let pattern = WordPattern::parse(text);
            let fields = pattern_fields(&pattern, collection_type);
            match pattern {
                WordPattern::Substring(folded, None) => require_trigram(fields, &folded),
                WordPattern::WordPrefix(prefix) => {
                    TermRequirement::AnyTerm(vec![RequiredTerm::WordPrefix(
                        fields.to_vec(),
                        prefix,
                    )])
                }
                WordPattern::Substring(..) => TermRequirement::AnyItem,
            }
        }
        Query::Time(_) if !collection_type.has_schedules() => TermRequirement::NoItem,
        Query::Time(TimeTest::InRange(time_range)) => require_time_range(time_range),
        Query::Time(_) => TermRequirement::AnyItem,
        Query::Test(test) => require_for_test(test, collection_type),
    }
}

fn require_time_range(time_range: &TimeRange) -> TermRequirement {
    let (from, to) = (time_range.from.seconds(), time_range.to.seconds());
    if from >= to {
        TermRequirement::NoItem
    } else {
        TermRequirement::AnyTerm(vec![RequiredTerm::TimeRange(time_range.target, from, to)])
    }
}

fn require_all(all: &[Query], collection_type: CollectionType) -> TermRequirement {
    let mut best: Option<(i64, Vec<RequiredTerm>)> = None;
    for query in all {
        match require_for_query(query, collection_type) {
            TermRequirement::NoItem => return TermRequirement::NoItem,
            TermRequirement::AnyItem => {}
            TermRequirement::AnyTerm(terms) => {
                let rank = terms.iter().map(RequiredTerm::selectivity).max().unwrap_or(0);
                if best.as_ref().is_none_or(|(best_rank, _)| rank < *best_rank) {
                    best = Some((rank, terms));
                }
            }
        }
    }
    best.map_or(TermRequirement::AnyItem, |(_, terms)| TermRequirement::AnyTerm(terms))
}

fn require_any(any: impl Iterator<Item = TermRequirement>) -> TermRequirement {
    let mut all = Vec::new();
    for requirement in any {
        match requirement {
            TermRequirement::NoItem => {}
            TermRequirement::AnyItem => return TermRequirement::AnyItem,
            TermRequirement::AnyTerm(terms) => all.extend(terms),
        }
    }
    if all.is_empty() { TermRequirement::NoItem } else { TermRequirement::AnyTerm(all) }
}

fn require_for_test(test: &FieldTest, collection_type: CollectionType) -> TermRequirement {
    let folded = fold(&test.text).into_owned();
    let fields: &[&'static Field] = match &test.subject {
        FieldSelector::Nothing => return TermRequirement::NoItem,
        FieldSelector::Property(_) => return TermRequirement::AnyItem,
        FieldSelector::Field(Field { field_type: FieldKind::Uid, .. }) => {
            return match test.op {
                MatchOp::Is => TermRequirement::AnyTerm(vec![RequiredTerm::Uid(test.text.clone())]),
                _ => TermRequirement::AnyItem,
            };
        }
        FieldSelector::Field(field) => searched_fields(field, collection_type),
        FieldSelector::Any => any_fields(collection_type),
    };
    if fields.is_empty() {
        return TermRequirement::NoItem;
    }
    // An empty text matches items without the field, and the digits of a phone number match it
    // however it is punctuated.
    if folded.is_empty()
        || (test.op == MatchOp::ContainsWords && parse_phone_digits(&test.text).is_some())
    {
        return TermRequirement::AnyItem;
    }
    let is_one_field = matches!(&test.subject, FieldSelector::Field(_));
    let each_field = |term: fn(&'static Field, String) -> RequiredTerm| {
        TermRequirement::AnyTerm(fields.iter().map(|field| term(field, folded.clone())).collect())
    };
    match test.op {
        MatchOp::Is if is_one_field => each_field(RequiredTerm::Value),
        MatchOp::BeginsWith if is_one_field => each_field(RequiredTerm::Prefix),
        MatchOp::ContainsWords => {
            let longest =
                split_phrase(&folded).into_iter().max_by_key(String::len).unwrap_or_default();
            require_trigram(fields, &longest)
        }
        MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith | MatchOp::Substring => {
            require_trigram(fields, &folded)
        }
        _ => TermRequirement::AnyItem,
    }
}

/// A value that contains a text contains its last trigram.
fn require_trigram(fields: &[&'static Field], text: &str) -> TermRequirement {
    let mut last = None;
    for_each_trigram(text, &mut |trigram| last = Some(trigram));
    match last {
        Some(trigram) => {
            TermRequirement::AnyTerm(vec![RequiredTerm::Trigram(fields.to_vec(), trigram)])
        }
        None => TermRequirement::AnyItem,
    }
}

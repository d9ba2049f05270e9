//! What an answer must have: by what of it a question may be filed (`concern`).
//!
//! Of a question alone, whatever is filed already. What is named here may be had by items that do
//! not answer; none that answers is without it.

use crate::matcher::{any_fields, fields_matched_by, word_fields};
use crate::query::{FieldSelector, FieldTest, MatchOp, Query};
use crate::time_test::TimeTest;
use crate::value_matcher::{WordPattern, parse_phone_digits, split_phrase};
use larder_format::field::{Field, FieldType as FieldKind};
use larder_format::fold::fold;
use larder_store::{CollectionType, Kind, TimeRange, TimeTarget};

/// More ways than this to one question cost more than to ask it.
const MAX_REQUIRED_TERMS: usize = 64;

/// Something that an item must have to answer a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RequiredTerm {
    Uid(String),
    /// A folded value of a field.
    Value(&'static Field, String),
    /// The beginning of a folded value of a field.
    Prefix(&'static Field, String),
    /// Three letters in a folded value of any of these fields.
    Trigram(Vec<&'static Field>, [char; 3]),
    /// One or two letters at the beginning of a word in any of these fields.
    WordPrefix(Vec<&'static Field>, String),
    TimeRange(TimeTarget, i64, i64),
}

/// How an answer is narrowed.
enum TermRequirement {
    NoItem,
    AnyItem,
    /// Any of these.
    AnyTerm(Vec<RequiredTerm>),
}

impl RequiredTerm {
    /// How many items probably have it, from few to many.
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

/// Under what a question is filed; `None`: there is nothing without which no item answers it.
pub(super) fn required_terms(query: &Query, kind: Option<Kind>) -> Option<Vec<RequiredTerm>> {
    // Its items may be of either family, unless it says which.
    let families: &[CollectionType] = match kind.map(Kind::collection_type) {
        Some(CollectionType::AddressBook) => &[CollectionType::AddressBook],
        Some(CollectionType::Calendar) => &[CollectionType::Calendar],
        _ => &[CollectionType::AddressBook, CollectionType::Calendar],
    };
    let mut ways: Vec<RequiredTerm> = Vec::new();
    for family in families {
        match require_for_query(query, *family) {
            TermRequirement::NoItem => {}
            TermRequirement::AnyItem => return None,
            TermRequirement::AnyTerm(more) => {
                for way in more {
                    if !ways.contains(&way) {
                        ways.push(way);
                    }
                }
            }
        }
    }
    (ways.len() <= MAX_REQUIRED_TERMS).then_some(ways)
}

/// Each three letters in a row.
pub(super) fn for_each_trigram(text: &str, each: &mut dyn FnMut([char; 3])) {
    let mut chars = text.chars();
    let (Some(mut a), Some(mut b)) = (chars.next(), chars.next()) else { return };
    for c in chars {
        each([a, b, c]);
        (a, b) = (b, c);
    }
}

fn require_for_query(query: &Query, family: CollectionType) -> TermRequirement {
    match query {
        Query::All | Query::Not(_) | Query::Number(..) => TermRequirement::AnyItem,
        Query::Kind(kind) if kind.collection_type() == family => TermRequirement::AnyItem,
        Query::Kind(_) => TermRequirement::NoItem,
        Query::And(all) => require_all(all, family),
        Query::Or(any) => require_any(any.iter().map(|query| require_for_query(query, family))),
        Query::Uids(uids) => {
            TermRequirement::AnyTerm(uids.iter().cloned().map(RequiredTerm::Uid).collect())
        }
        Query::Word(text) => match WordPattern::parse(text) {
            WordPattern::Substring(folded, None) => require_trigram(word_fields(family), &folded),
            WordPattern::WordPrefix(start) => {
                TermRequirement::AnyTerm(vec![RequiredTerm::WordPrefix(
                    word_fields(family).to_vec(),
                    start,
                )])
            }
            WordPattern::Substring(..) => TermRequirement::AnyItem,
        },
        Query::Time(_) if family != CollectionType::Calendar => TermRequirement::NoItem,
        Query::Time(TimeTest::InRange(window)) => require_time_range(window),
        Query::Time(_) => TermRequirement::AnyItem,
        Query::Test(test) => require_for_test(test, family),
    }
}

fn require_time_range(window: &TimeRange) -> TermRequirement {
    let (from, to) = (window.from.seconds(), window.to.seconds());
    if from >= to {
        TermRequirement::NoItem
    } else {
        TermRequirement::AnyTerm(vec![RequiredTerm::TimeRange(window.target, from, to)])
    }
}

fn require_all(all: &[Query], family: CollectionType) -> TermRequirement {
    let mut best: Option<(i64, Vec<RequiredTerm>)> = None;
    for query in all {
        match require_for_query(query, family) {
            TermRequirement::NoItem => return TermRequirement::NoItem,
            TermRequirement::AnyItem => {}
            TermRequirement::AnyTerm(ways) => {
                let breadth = ways.iter().map(RequiredTerm::selectivity).max().unwrap_or(0);
                if best.as_ref().is_none_or(|(known, _)| breadth < *known) {
                    best = Some((breadth, ways));
                }
            }
        }
    }
    best.map_or(TermRequirement::AnyItem, |(_, ways)| TermRequirement::AnyTerm(ways))
}

fn require_any(any: impl Iterator<Item = TermRequirement>) -> TermRequirement {
    let mut all = Vec::new();
    for narrow in any {
        match narrow {
            TermRequirement::NoItem => {}
            TermRequirement::AnyItem => return TermRequirement::AnyItem,
            TermRequirement::AnyTerm(ways) => all.extend(ways),
        }
    }
    if all.is_empty() { TermRequirement::NoItem } else { TermRequirement::AnyTerm(all) }
}

fn require_for_test(test: &FieldTest, family: CollectionType) -> TermRequirement {
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
        FieldSelector::Field(field) => fields_matched_by(field, family),
        FieldSelector::Any => any_fields(family),
    };
    if fields.is_empty() {
        return TermRequirement::NoItem;
    }
    // An empty text is found where the field is missing, and the digits of a phone number among
    // others.
    if folded.is_empty()
        || (test.op == MatchOp::Contains && parse_phone_digits(&test.text).is_some())
    {
        return TermRequirement::AnyItem;
    }
    let one = matches!(&test.subject, FieldSelector::Field(_));
    let each = |way: fn(&'static Field, String) -> RequiredTerm| {
        TermRequirement::AnyTerm(fields.iter().map(|field| way(field, folded.clone())).collect())
    };
    match test.op {
        MatchOp::Is if one => each(RequiredTerm::Value),
        MatchOp::BeginsWith if one => each(RequiredTerm::Prefix),
        MatchOp::Contains => {
            let longest =
                split_phrase(&folded).into_iter().max_by_key(String::len).unwrap_or_default();
            require_trigram(fields, &longest)
        }
        MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith | MatchOp::Includes => {
            require_trigram(fields, &folded)
        }
        _ => TermRequirement::AnyItem,
    }
}

/// What has this text in it has its last three letters.
fn require_trigram(fields: &[&'static Field], text: &str) -> TermRequirement {
    let mut last = None;
    for_each_trigram(text, &mut |three| last = Some(three));
    match last {
        Some(three) => {
            TermRequirement::AnyTerm(vec![RequiredTerm::Trigram(fields.to_vec(), three)])
        }
        None => TermRequirement::AnyItem,
    }
}

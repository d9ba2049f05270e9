//! The planner: the candidates of a query, by the indexes.
//!
//! The candidates are a superset of the matches. If the plan is `exact` they are the matches;
//! otherwise `verification` tests each, so a plan may be coarse but must miss nothing. A predicate
//! without an index (a negation, a field that is not indexed) needs a full scan; `--explain` shows
//! this.

use crate::matcher::{any_fields, pattern_fields, searched_fields};
use crate::query::{FieldSelector, FieldTest, MatchOp, Query};
use crate::time_test::TimeTest;
use crate::value_matcher::{WordPattern, contains_parts, parse_phone_digits, split_phrase};
use larder_format::field::{Field, FieldType};
use larder_format::fold::{collect_digits, fold, is_cjk};
use larder_format::phone::{count_certain_digits, find_number_part};
use larder_store::{
    CollectionType, ExternalQuery, FieldIndex, IndexConfig, IndexQuery, MIN_LONG_NUMBER_DIGITS,
    term_encoding as term,
};

/// The maximum number of trigrams of a text that are looked up. The last trigrams are used, because
/// long texts with the same prefix (`urn:uuid:...`) differ at their end.
const MAX_TRIGRAMS: usize = 16;
/// The maximum number of terms of a plan: with more terms, a scan is faster.
const MAX_TERMS_PER_PLAN: usize = 4096;
/// The maximum number of UIDs that are looked up; more UIDs are tested in a full scan.
const MAX_UIDS_PER_PLAN: usize = 65_536;
/// The minimum number of digits of a national number.
const MIN_NATIONAL_DIGITS: usize = 2;
/// The maximum number of final digits that certainly belong to the number itself: in Argentina a
/// prefix is dialled inside the number.
const MAX_CERTAIN_DIGITS: usize = 6;

/// The source of the candidates of a query.
#[derive(Debug)]
pub enum Plan {
    /// Nothing can match.
    Nothing,
    /// Every item has to be tested, or every item of this kind.
    Scan(Option<larder_store::Kind>),
    /// The index names the candidates.
    Index {
        /// The lookup.
        lookup: IndexQuery,
        /// The candidates match, and need no test.
        exact: bool,
        /// The lookup in words.
        description: String,
    },
}

impl Plan {
    /// Plans a query for collections with this index configuration.
    #[must_use]
    pub fn new(query: &Query, index_config: &IndexConfig) -> Plan {
        // Equal terms are looked up once.
        match plan_candidates(&query.without_duplicates(), index_config) {
            CandidateSet::Nothing => Plan::Nothing,
            CandidateSet::All => Plan::Scan(query.required_kind()),
            CandidateSet::Lookup(LookupPlan { lookup, exact, description: words, .. }) => {
                Plan::Index { lookup, exact, description: words }
            }
        }
    }

    /// Returns the plan in words, for `--explain`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Plan::Nothing => "nothing can match".into(),
            Plan::Scan(kind) => {
                format!("scan: test every {}", kind.map_or("item", larder_store::Kind::name))
            }
            Plan::Index { description: words, .. } => format!("index: {words}"),
        }
    }
}

/// The candidates of a part of a query.
enum CandidateSet {
    /// No item can match.
    Nothing,
    /// Any item may match.
    All,
    /// Only the items of a lookup can match.
    Lookup(LookupPlan),
}

/// The expected number of candidates, from few to many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CardinalityClass {
    OneValue,
    Substring,
    TimeRange,
    Prefix,
    OneLetterPrefix,
    AnyValue,
}

/// A lookup and its properties.
struct LookupPlan {
    selectivity: CardinalityClass,
    lookup: IndexQuery,
    exact: bool,
    description: String,
    /// The number of terms.
    terms: usize,
}

impl LookupPlan {
    fn single_lookup(
        selectivity: CardinalityClass,
        lookup: IndexQuery,
        exact: bool,
        words: String,
    ) -> CandidateSet {
        CandidateSet::Lookup(LookupPlan {
            selectivity,
            lookup,
            exact,
            description: words,
            terms: 1,
        })
    }
}

fn plan_candidates(query: &Query, index_config: &IndexConfig) -> CandidateSet {
    let searched_by = |word: &_| pattern_fields(word, index_config.collection_type());
    match query {
        Query::All | Query::Not(_) => CandidateSet::All,
        Query::And(all) => plan_and(all, index_config),
        Query::Or(any) => plan_or(any.iter().map(|query| plan_candidates(query, index_config))),
        Query::Word(text) => match WordPattern::parse(text) {
            pattern if !has_text_index(index_config, searched_by(&pattern)) => CandidateSet::All,
            WordPattern::WordPrefix(prefix) => plan_word_prefix(&prefix),
            WordPattern::Substring(folded, number) => {
                match plan_substring(&folded, number.as_deref()) {
                    CandidateSet::All => plan_characters(&folded),
                    candidates => candidates,
                }
            }
        },
        Query::Test(test) => match test.subject {
            FieldSelector::Nothing => CandidateSet::Nothing,
            FieldSelector::Field(field) => plan_fields(
                searched_fields(field, index_config.collection_type()),
                test,
                index_config,
            ),
            FieldSelector::Any
                if !has_text_index(index_config, any_fields(index_config.collection_type())) =>
            {
                CandidateSet::All
            }
            FieldSelector::Any => plan_any_field(test),
            FieldSelector::Property(_) => CandidateSet::All,
        },
        Query::Uids(uids) => plan_uids(uids),
        Query::Kind(kind) if kind.collection_type() != index_config.collection_type() => {
            CandidateSet::Nothing
        }
        Query::Time(_) | Query::Number(..) if !index_config.collection_type().has_schedules() => {
            CandidateSet::Nothing
        }
        Query::Time(TimeTest::InRange(time_range)) => {
            let lookup = IndexQuery::External(ExternalQuery::TimeRange(time_range.clone()));
            LookupPlan::single_lookup(
                CardinalityClass::TimeRange,
                lookup,
                true,
                crate::time_test::describe_time_range(time_range),
            )
        }
        Query::Kind(_)
        | Query::Time(TimeTest::DateInRange(..) | TimeTest::Overdue(_))
        | Query::Number(..) => CandidateSet::All,
    }
}

/// Returns whether the text of all these fields is indexed.
fn has_text_index(index_config: &IndexConfig, fields: &[&Field]) -> bool {
    fields.iter().all(|field| index_config.has_index(field, FieldIndex::Substring))
}

/// All parts have to match: the most selective is looked up first.
fn plan_and(all: &[Query], index_config: &IndexConfig) -> CandidateSet {
    let (mut parts, mut exact) = (Vec::new(), true);
    for query in all {
        match plan_candidates(query, index_config) {
            CandidateSet::Nothing => return CandidateSet::Nothing,
            CandidateSet::All => exact &= *query == Query::All,
            CandidateSet::Lookup(part) => parts.push(part),
        }
    }
    parts.sort_by_key(|part| part.selectivity);
    exact &= parts.iter().all(|part| part.exact);
    match parts.len() {
        0 => CandidateSet::All,
        1 => CandidateSet::Lookup(LookupPlan { exact, ..parts.remove(0) }),
        _ => {
            let join = if exact { IndexQuery::And } else { IndexQuery::ApproximateAnd };
            CandidateSet::Lookup(combine_lookups(
                parts,
                exact,
                " and ",
                join,
                CardinalityClass::min,
            ))
        }
    }
}

/// Combines alternatives: if any item may match one of them, the whole query needs a scan.
fn plan_or(any: impl Iterator<Item = CandidateSet>) -> CandidateSet {
    let (mut parts, mut terms) = (Vec::new(), 0);
    for candidates in any {
        match candidates {
            CandidateSet::Nothing => {}
            CandidateSet::All => return CandidateSet::All,
            CandidateSet::Lookup(part) => {
                terms += part.terms;
                parts.push(part);
            }
        }
        if terms > MAX_TERMS_PER_PLAN {
            return CandidateSet::All;
        }
    }
    match parts.len() {
        0 => CandidateSet::Nothing,
        1 => CandidateSet::Lookup(parts.remove(0)),
        _ => {
            let exact = parts.iter().all(|part| part.exact);
            CandidateSet::Lookup(combine_lookups(
                parts,
                exact,
                " or ",
                IndexQuery::Or,
                CardinalityClass::max,
            ))
        }
    }
}

/// Combines at least two parts.
fn combine_lookups(
    parts: Vec<LookupPlan>,
    exact: bool,
    join: &str,
    lookup: fn(Vec<IndexQuery>) -> IndexQuery,
    selectivity: fn(CardinalityClass, CardinalityClass) -> CardinalityClass,
) -> LookupPlan {
    let selectivity = parts.iter().map(|part| part.selectivity).reduce(selectivity);
    let terms = parts.iter().map(|part| part.terms).sum();
    let (lookups, words): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|part| (part.lookup, part.description)).unzip();
    LookupPlan {
        selectivity: selectivity.unwrap_or(CardinalityClass::AnyValue),
        lookup: lookup(lookups),
        exact,
        description: format!("({})", words.join(join)),
        terms,
    }
}

/// One test of several fields. The text of all fields has one index, so it is looked up once.
fn plan_fields(
    fields: &[&'static Field],
    test: &FieldTest,
    index_config: &IndexConfig,
) -> CandidateSet {
    let mut known: Vec<String> = Vec::new();
    let mut is_new = |candidates: &CandidateSet| match candidates {
        CandidateSet::Lookup(part) if known.contains(&part.description) => false,
        CandidateSet::Lookup(part) => {
            known.push(part.description.clone());
            true
        }
        _ => true,
    };
    plan_or(
        fields.iter().map(|field| plan_field(field, test, index_config)).filter(|one| is_new(one)),
    )
}

/// UIDs are looked up in the item table.
fn plan_uids(uids: &[String]) -> CandidateSet {
    let words = match uids {
        [] => return CandidateSet::Nothing,
        uids if uids.len() > MAX_UIDS_PER_PLAN => return CandidateSet::All,
        [uid] => format!("UID {uid:?}"),
        uids => format!("one of {} UIDs", uids.len()),
    };
    LookupPlan::single_lookup(
        CardinalityClass::OneValue,
        IndexQuery::External(ExternalQuery::Uids(uids.to_vec())),
        true,
        words,
    )
}

fn plan_field(field: &'static Field, test: &FieldTest, index_config: &IndexConfig) -> CandidateSet {
    let Some(index) = index_field(field) else { return CandidateSet::All };
    // The UID in the source bytes may differ from the UID in the store.
    if field.field_type == FieldType::Uid {
        return match test.op {
            MatchOp::Is => plan_uids(std::slice::from_ref(&test.text)),
            _ => CandidateSet::All,
        };
    }
    let (is_own, name) = (index == field, index.name);
    let folded = fold(&test.text);
    let has = |kind| index_config.has_index(index, kind);
    let (has_values, has_text) = (has(FieldIndex::Value), has(FieldIndex::Substring));
    // The index has only the prefix of a longer value.
    let is_untruncated = term::is_untruncated(&folded);
    match test.op {
        // A value that consists of accents is folded to an empty text, but exists.
        MatchOp::Is if folded.is_empty() => CandidateSet::All,
        MatchOp::Exists => plan_presence(index, is_own),
        MatchOp::ExistsVcard | MatchOp::RegexNormal | MatchOp::RegexRaw => CandidateSet::All,
        MatchOp::EqPhone | MatchOp::EqPhoneNational | MatchOp::EqPhoneShort
            if has(FieldIndex::Phone) =>
        {
            plan_phone(index, test)
        }
        MatchOp::EqPhone | MatchOp::EqPhoneNational | MatchOp::EqPhoneShort => CandidateSet::All,
        // An empty text matches even if the field is missing.
        _ if folded.is_empty() => CandidateSet::All,
        MatchOp::Is if has_values => {
            let lookup = IndexQuery::Term(term::value(index.id, &folded));
            let words = format!("{name} is {:?}", term::truncate_value(&folded));
            LookupPlan::single_lookup(
                CardinalityClass::OneValue,
                lookup,
                is_own && is_untruncated,
                words,
            )
        }
        MatchOp::BeginsWith if has_values => {
            let lookup = IndexQuery::Prefix(term::value(index.id, &folded));
            let words = format!("{name} begins with {:?}", term::truncate_value(&folded));
            LookupPlan::single_lookup(
                prefix_selectivity(&folded),
                lookup,
                is_own && is_untruncated,
                words,
            )
        }
        MatchOp::EndsWith if has(FieldIndex::Suffix) => {
            let lookup = IndexQuery::Prefix(term::suffix(index.id, &folded));
            let words = format!("{name} ends with {folded:?}");
            LookupPlan::single_lookup(
                prefix_selectivity(&folded),
                lookup,
                is_own && is_untruncated,
                words,
            )
        }
        MatchOp::ContainsWords => {
            let number = parse_phone_digits(&test.text);
            match if has_text {
                plan_substring(&folded, number.as_deref())
            } else {
                CandidateSet::All
            } {
                CandidateSet::All if has_values && field.field_type != FieldType::Phone => {
                    plan_value_scan(index, is_own, &folded)
                }
                candidates => candidates,
            }
        }
        // Without an index of values, trigrams narrow the search.
        MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith | MatchOp::Substring if has_text => {
            plan_substring(&folded, None)
        }
        MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith | MatchOp::Substring => {
            CandidateSet::All
        }
    }
}

/// Equal numbers have the same final digits. The numbering plans, which are slow to load, are not
/// needed: the digits that are certainly part of the national number suffice.
fn plan_phone(field: &Field, test: &FieldTest) -> CandidateSet {
    let Some(number) = find_number_part(&test.text) else { return CandidateSet::All };
    let (digits, short) = (collect_digits(number), test.op == MatchOp::EqPhoneShort);
    let certain = count_certain_digits(number).clamp(
        MIN_NATIONAL_DIGITS,
        if short { MIN_LONG_NUMBER_DIGITS } else { MAX_CERTAIN_DIGITS },
    );
    let ending = |length| digits.len().checked_sub(length).map(|start| &digits[start..]);
    let (Some(ending), Some(shortest)) = (ending(certain), ending(MIN_NATIONAL_DIGITS)) else {
        return CandidateSet::Nothing;
    };
    let mut words = format!("{} ends with the digits {ending:?}", field.name);
    let mut any = vec![
        IndexQuery::Prefix(term::phone(field.id, ending)),
        IndexQuery::Term(term::odd_phone(field.id)),
    ];
    // A longer number may end with a short one.
    if short && certain > MIN_NATIONAL_DIGITS {
        any.push(IndexQuery::Prefix(term::short_phone(field.id, shortest)));
        words = format!("{words}, or is short");
    }
    LookupPlan::single_lookup(CardinalityClass::Prefix, IndexQuery::Or(any), false, words)
}

/// Returns the field whose index has the values of a field: itself, or the field that it is a
/// subset of.
fn index_field(field: &'static Field) -> Option<&'static Field> {
    if field.is_indexed {
        Some(field)
    } else {
        field.subset_of.and_then(|name| CollectionType::from_field(field).find_field(name))
    }
}

fn plan_any_field(test: &FieldTest) -> CandidateSet {
    let folded = fold(&test.text);
    if folded.is_empty() {
        return CandidateSet::All;
    }
    match test.op {
        MatchOp::ContainsWords => {
            plan_substring(&folded, parse_phone_digits(&test.text).as_deref())
        }
        MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith | MatchOp::Substring => {
            plan_substring(&folded, None)
        }
        _ => CandidateSet::All,
    }
}

/// The index has a term for each field that an item has.
fn plan_presence(field: &Field, exact: bool) -> CandidateSet {
    let lookup = IndexQuery::Term(term::presence(field.id));
    LookupPlan::single_lookup(
        CardinalityClass::AnyValue,
        lookup,
        exact,
        format!("has {}", field.name),
    )
}

fn plan_word_prefix(prefix: &str) -> CandidateSet {
    let lookup = IndexQuery::Prefix(term::word(prefix));
    let words = format!("a word begins with {prefix:?}");
    LookupPlan::single_lookup(prefix_selectivity(prefix), lookup, true, words)
}

/// In scripts without spaces between words, each character is a word.
fn plan_characters(text: &str) -> CandidateSet {
    if text.is_empty() || !text.chars().all(|c| is_cjk(c) && c.is_alphanumeric()) {
        return CandidateSet::All;
    }
    let exact = text.chars().nth(1).is_none();
    let lookup = |c: char| IndexQuery::Term(term::word(c.encode_utf8(&mut [0; 4])));
    let lookup = IndexQuery::ApproximateAnd(text.chars().map(lookup).collect());
    LookupPlan::single_lookup(
        CardinalityClass::Prefix,
        lookup,
        exact,
        format!("the characters of {text:?}"),
    )
}

fn prefix_selectivity(prefix: &str) -> CardinalityClass {
    match prefix.chars().count() {
        1 => CardinalityClass::OneLetterPrefix,
        _ => CardinalityClass::Prefix,
    }
}

/// Filters all indexed values of a field, for texts too short to have trigrams.
fn plan_value_scan(field: &Field, exact: bool, text: &str) -> CandidateSet {
    let words = format!("scan of the values of {} for {text:?}", field.name);
    let pieces = split_phrase(text);
    let test = Box::new(move |value: &str| contains_parts(value, &pieces));
    let lookup = IndexQuery::PrefixFilter(term::value(field.id, ""), test);
    LookupPlan::single_lookup(CardinalityClass::AnyValue, lookup, exact, words)
}

/// Looks up the trigrams of a text, or of a phone number. A text without three characters between
/// spaces has none.
fn plan_substring(text: &str, number: Option<&str>) -> CandidateSet {
    match (plan_trigrams(text), number.and_then(plan_trigrams)) {
        (None, _) => CandidateSet::All,
        (Some(text), None) => CandidateSet::Lookup(text),
        (Some(text), Some(number)) => CandidateSet::Lookup(combine_lookups(
            vec![text, number],
            false,
            " or ",
            IndexQuery::Or,
            CardinalityClass::max,
        )),
    }
}

/// Looks up all trigrams of a text.
fn plan_trigrams(text: &str) -> Option<LookupPlan> {
    let mut trigrams: Vec<&str> = term::trigrams(text).rev().take(MAX_TRIGRAMS).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    let terms = trigrams.len();
    let words: Vec<String> = trigrams.iter().map(|trigram| format!("{trigram:?}")).collect();
    let mut lookups: Vec<IndexQuery> =
        trigrams.into_iter().map(|trigram| IndexQuery::Term(term::trigram(trigram))).collect();
    let lookup = match terms {
        0 => return None,
        1 => lookups.remove(0),
        _ => IndexQuery::ApproximateAnd(lookups),
    };
    let noun = if terms == 1 { "trigram" } else { "trigrams" };
    let words = format!("{noun} {}", words.join(", "));
    Some(LookupPlan {
        selectivity: CardinalityClass::Substring,
        lookup,
        exact: false,
        description: words,
        terms,
    })
}

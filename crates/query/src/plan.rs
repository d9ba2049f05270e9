//! The planner: which items can answer a question at all, by the index.
//!
//! Candidates are always a superset of the answer. Where the plan is `exact` they are the answer;
//! else each is tested by its own bytes (`contact`), so a plan may be coarse, and it is right as
//! long as it leaves nothing out. What no index can narrow (a negation, a field that is not
//! indexed) is a scan, and `--explain` says so.

use crate::matcher::{any_fields, fields_matched_by, word_fields};
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

/// More trigrams than this narrow no further. The last ones are taken: long texts that begin alike
/// (`urn:uuid:...`) differ at their end.
const MAX_TRIGRAMS: usize = 16;
/// More look-ups than this cost more than a scan.
const MAX_TERMS_PER_PLAN: usize = 4096;
/// More UIDs than this are looked for in each item.
const MAX_UIDS_PER_PLAN: usize = 65_536;
/// The fewest digits that a number within a country has.
const MIN_NATIONAL_DIGITS: usize = 2;
/// So many digits at its end are the number's own, if it has as many: in Argentina digits are
/// dialled within it.
const MAX_CERTAIN_DIGITS: usize = 6;

/// How a question's candidates are found.
#[derive(Debug)]
pub enum Plan {
    /// Nothing can match.
    Nothing,
    /// Every item has to be tested, or every one of this kind.
    Scan(Option<larder_store::Kind>),
    /// The index names the candidates.
    Index {
        /// What to look up.
        lookup: IndexQuery,
        /// What is found is the answer, and needs no test.
        exact: bool,
        /// In words.
        description: String,
    },
}

impl Plan {
    /// Plans a question to items that have this summary.
    #[must_use]
    pub fn new(query: &Query, summary: &IndexConfig) -> Plan {
        match plan_candidates(query, summary) {
            CandidateSet::Nothing => Plan::Nothing,
            CandidateSet::All => Plan::Scan(query.required_kind()),
            CandidateSet::Lookup(LookupPlan { lookup, exact, description: words, .. }) => {
                Plan::Index { lookup, exact, description: words }
            }
        }
    }

    /// In words, for `--explain`.
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

/// What the index says of a part of a question.
enum CandidateSet {
    /// No item can match.
    Nothing,
    /// No index narrows it.
    All,
    /// Only these can match.
    Lookup(LookupPlan),
}

/// How many items a set of candidates probably has, from few to many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Selectivity {
    OneValue,
    Substring,
    TimeRange,
    Prefix,
    OneLetterPrefix,
    AnyValue,
}

/// What a look-up names.
struct LookupPlan {
    selectivity: Selectivity,
    lookup: IndexQuery,
    exact: bool,
    description: String,
    /// How many terms it takes.
    terms: usize,
}

impl LookupPlan {
    fn single_lookup(
        breadth: Selectivity,
        lookup: IndexQuery,
        exact: bool,
        words: String,
    ) -> CandidateSet {
        CandidateSet::Lookup(LookupPlan {
            selectivity: breadth,
            lookup,
            exact,
            description: words,
            terms: 1,
        })
    }
}

fn plan_candidates(query: &Query, summary: &IndexConfig) -> CandidateSet {
    match query {
        Query::All | Query::Not(_) => CandidateSet::All,
        Query::And(all) => plan_and(all, summary),
        Query::Or(any) => plan_or(any.iter().map(|query| plan_candidates(query, summary))),
        Query::Word(_) if !has_text_index(summary, word_fields(summary.collection_type())) => {
            CandidateSet::All
        }
        Query::Word(text) => match WordPattern::parse(text) {
            WordPattern::WordPrefix(beginning) => plan_word_prefix(&beginning),
            WordPattern::Substring(folded, number) => {
                match plan_substring(&folded, number.as_deref()) {
                    CandidateSet::All => plan_characters(&folded),
                    narrow => narrow,
                }
            }
        },
        Query::Test(test) => match test.subject {
            FieldSelector::Nothing => CandidateSet::Nothing,
            FieldSelector::Field(field) => {
                plan_fields(fields_matched_by(field, summary.collection_type()), test, summary)
            }
            FieldSelector::Any
                if !has_text_index(summary, any_fields(summary.collection_type())) =>
            {
                CandidateSet::All
            }
            FieldSelector::Any => plan_any_field(test),
            FieldSelector::Property(_) => CandidateSet::All,
        },
        Query::Uids(uids) => plan_uids(uids),
        Query::Kind(kind) if kind.collection_type() != summary.collection_type() => {
            CandidateSet::Nothing
        }
        Query::Time(_) | Query::Number(..)
            if summary.collection_type() != CollectionType::Calendar =>
        {
            CandidateSet::Nothing
        }
        Query::Time(TimeTest::InRange(window)) => {
            let lookup = IndexQuery::External(ExternalQuery::TimeRange(window.clone()));
            LookupPlan::single_lookup(
                Selectivity::TimeRange,
                lookup,
                true,
                crate::time_test::describe_time_range(window),
            )
        }
        Query::Kind(_)
        | Query::Time(TimeTest::DateInRange(..) | TimeTest::Overdue(_))
        | Query::Number(..) => CandidateSet::All,
    }
}

/// Is the text of all these fields indexed?
fn has_text_index(summary: &IndexConfig, fields: &[&Field]) -> bool {
    fields.iter().all(|field| summary.has_index(field, FieldIndex::Substring))
}

/// All have to match: the narrowest is looked up first, and others as long as that narrows.
fn plan_and(all: &[Query], summary: &IndexConfig) -> CandidateSet {
    let (mut parts, mut exact) = (Vec::new(), true);
    for query in all {
        match plan_candidates(query, summary) {
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
            let join = if exact { IndexQuery::All } else { IndexQuery::AllApprox };
            CandidateSet::Lookup(combine_lookups(parts, exact, " and ", join, Selectivity::min))
        }
    }
}

/// Any may match: only if each part is narrow is the whole.
fn plan_or(any: impl Iterator<Item = CandidateSet>) -> CandidateSet {
    let (mut parts, mut terms) = (Vec::new(), 0);
    for narrow in any {
        match narrow {
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
                IndexQuery::Any,
                Selectivity::max,
            ))
        }
    }
}

/// Puts several parts together, which there must be.
fn combine_lookups(
    parts: Vec<LookupPlan>,
    exact: bool,
    join: &str,
    lookup: fn(Vec<IndexQuery>) -> IndexQuery,
    breadth: fn(Selectivity, Selectivity) -> Selectivity,
) -> LookupPlan {
    let breadth = parts.iter().map(|part| part.selectivity).reduce(breadth);
    let terms = parts.iter().map(|part| part.terms).sum();
    let (lookups, words): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|part| (part.lookup, part.description)).unzip();
    LookupPlan {
        selectivity: breadth.unwrap_or(Selectivity::AnyValue),
        lookup: lookup(lookups),
        exact,
        description: format!("({})", words.join(join)),
        terms,
    }
}

/// One test of several fields. Text is indexed together, whatever field it is of, so it is looked
/// up once.
fn plan_fields(fields: &[&'static Field], test: &FieldTest, summary: &IndexConfig) -> CandidateSet {
    let mut known: Vec<String> = Vec::new();
    let mut is_new = |narrow: &CandidateSet| match narrow {
        CandidateSet::Lookup(part) if known.contains(&part.description) => false,
        CandidateSet::Lookup(part) => {
            known.push(part.description.clone());
            true
        }
        _ => true,
    };
    plan_or(fields.iter().map(|field| plan_field(field, test, summary)).filter(|one| is_new(one)))
}

/// An item is found by its UID without the index.
fn plan_uids(uids: &[String]) -> CandidateSet {
    let words = match uids {
        [] => return CandidateSet::Nothing,
        uids if uids.len() > MAX_UIDS_PER_PLAN => return CandidateSet::All,
        [uid] => format!("UID {uid:?}"),
        uids => format!("one of {} UIDs", uids.len()),
    };
    LookupPlan::single_lookup(
        Selectivity::OneValue,
        IndexQuery::External(ExternalQuery::Uids(uids.to_vec())),
        true,
        words,
    )
}

fn plan_field(field: &'static Field, test: &FieldTest, summary: &IndexConfig) -> CandidateSet {
    let Some(index) = index_field(field) else { return CandidateSet::All };
    // The UID of the card may be another one than that under which it is kept.
    if field.field_type == FieldType::Uid {
        return match test.op {
            MatchOp::Is => plan_uids(std::slice::from_ref(&test.text)),
            _ => CandidateSet::All,
        };
    }
    let (own, name) = (index == field, index.name);
    let folded = fold(&test.text);
    let has = |kind| summary.has_index(index, kind);
    let (whole, text) = (has(FieldIndex::Value), has(FieldIndex::Substring));
    // Of a longer value only the beginning is in the index.
    let short = term::is_untruncated(&folded);
    match test.op {
        // A value of nothing but accents is folded to nothing, and is there all the same.
        MatchOp::Is if folded.is_empty() => CandidateSet::All,
        MatchOp::Exists => plan_presence(index, own),
        MatchOp::ExistsVcard | MatchOp::RegexNormal | MatchOp::RegexRaw => CandidateSet::All,
        MatchOp::EqPhone | MatchOp::EqPhoneNational | MatchOp::EqPhoneShort
            if has(FieldIndex::Phone) =>
        {
            plan_phone(index, test)
        }
        MatchOp::EqPhone | MatchOp::EqPhoneNational | MatchOp::EqPhoneShort => CandidateSet::All,
        // Where the field is missing, an empty text is found all the same.
        _ if folded.is_empty() => CandidateSet::All,
        MatchOp::Is if whole => {
            let lookup = IndexQuery::Term(term::value(index.id, &folded));
            let words = format!("{name} is {:?}", term::truncate_value(&folded));
            LookupPlan::single_lookup(Selectivity::OneValue, lookup, own && short, words)
        }
        MatchOp::BeginsWith if whole => {
            let lookup = IndexQuery::Prefix(term::value(index.id, &folded));
            let words = format!("{name} begins with {:?}", term::truncate_value(&folded));
            LookupPlan::single_lookup(prefix_selectivity(&folded), lookup, own && short, words)
        }
        MatchOp::EndsWith if has(FieldIndex::Suffix) => {
            let lookup = IndexQuery::Prefix(term::suffix(index.id, &folded));
            let words = format!("{name} ends with {folded:?}");
            LookupPlan::single_lookup(prefix_selectivity(&folded), lookup, own && short, words)
        }
        MatchOp::Contains => {
            let number = parse_phone_digits(&test.text);
            match if text { plan_substring(&folded, number.as_deref()) } else { CandidateSet::All }
            {
                CandidateSet::All if whole && field.field_type != FieldType::Phone => {
                    plan_value_scan(index, own, &folded)
                }
                narrow => narrow,
            }
        }
        // Not found by its whole value, it is found by its trigrams.
        MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith | MatchOp::Includes if text => {
            plan_substring(&folded, None)
        }
        MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith | MatchOp::Includes => {
            CandidateSet::All
        }
    }
}

/// Numbers that agree end alike, however they begin. The numbering plans, which take their time to
/// load, are not asked: what of the digits is certain to be within the country will do.
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
    // Any longer number may end with a short one.
    if short && certain > MIN_NATIONAL_DIGITS {
        any.push(IndexQuery::Prefix(term::short_phone(field.id, shortest)));
        words = format!("{words}, or is short");
    }
    LookupPlan::single_lookup(Selectivity::Prefix, IndexQuery::Any(any), false, words)
}

/// The field whose index holds this one's values: itself, or the one that has them among its own.
fn index_field(field: &'static Field) -> Option<&'static Field> {
    if field.is_indexed {
        Some(field)
    } else {
        field.subset_of.and_then(larder_format::field::find_contact_field)
    }
}

fn plan_any_field(test: &FieldTest) -> CandidateSet {
    let folded = fold(&test.text);
    if folded.is_empty() {
        return CandidateSet::All;
    }
    match test.op {
        MatchOp::Contains => plan_substring(&folded, parse_phone_digits(&test.text).as_deref()),
        MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith | MatchOp::Includes => {
            plan_substring(&folded, None)
        }
        _ => CandidateSet::All,
    }
}

/// Each field that an item has is noted.
fn plan_presence(field: &Field, exact: bool) -> CandidateSet {
    let lookup = IndexQuery::Term(term::presence(field.id));
    LookupPlan::single_lookup(Selectivity::AnyValue, lookup, exact, format!("has {}", field.name))
}

fn plan_word_prefix(beginning: &str) -> CandidateSet {
    let lookup = IndexQuery::Prefix(term::word(beginning));
    let words = format!("a word begins with {beginning:?}");
    LookupPlan::single_lookup(prefix_selectivity(beginning), lookup, true, words)
}

/// Each character of a script that puts no blanks between words is a word.
fn plan_characters(text: &str) -> CandidateSet {
    if text.is_empty() || !text.chars().all(|c| is_cjk(c) && c.is_alphanumeric()) {
        return CandidateSet::All;
    }
    let exact = text.chars().nth(1).is_none();
    let lookup = |c: char| IndexQuery::Term(term::word(c.encode_utf8(&mut [0; 4])));
    let lookup = IndexQuery::AllApprox(text.chars().map(lookup).collect());
    LookupPlan::single_lookup(
        Selectivity::Prefix,
        lookup,
        exact,
        format!("the characters of {text:?}"),
    )
}

fn prefix_selectivity(beginning: &str) -> Selectivity {
    match beginning.chars().count() {
        1 => Selectivity::OneLetterPrefix,
        _ => Selectivity::Prefix,
    }
}

/// Reads all values of a field that there are, for texts too short to have trigrams.
fn plan_value_scan(field: &Field, exact: bool, text: &str) -> CandidateSet {
    let words = format!("{text:?} among all of {}", field.name);
    let pieces = split_phrase(text);
    let test = Box::new(move |value: &str| contains_parts(value, &pieces));
    let lookup = IndexQuery::PrefixFilter(term::value(field.id, ""), test);
    LookupPlan::single_lookup(Selectivity::AnyValue, lookup, exact, words)
}

/// Texts without three characters between blanks are in no trigram.
fn plan_substring(text: &str, number: Option<&str>) -> CandidateSet {
    match (plan_trigrams(text), number.and_then(plan_trigrams)) {
        (None, _) => CandidateSet::All,
        (Some(text), None) => CandidateSet::Lookup(text),
        (Some(text), Some(number)) => CandidateSet::Lookup(combine_lookups(
            vec![text, number],
            false,
            " or ",
            IndexQuery::Any,
            Selectivity::max,
        )),
    }
}

/// What has all trigrams of the text.
fn plan_trigrams(text: &str) -> Option<LookupPlan> {
    let mut trigrams: Vec<&str> = term::trigrams(text).rev().take(MAX_TRIGRAMS).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    let terms = trigrams.len();
    let words: Vec<String> = trigrams.iter().map(|three| format!("{three:?}")).collect();
    let mut lookups: Vec<IndexQuery> =
        trigrams.into_iter().map(|three| IndexQuery::Term(term::trigram(three))).collect();
    let lookup = match terms {
        0 => return None,
        1 => lookups.remove(0),
        _ => IndexQuery::AllApprox(lookups),
    };
    let words = words.join(" and ");
    Some(LookupPlan {
        selectivity: Selectivity::Substring,
        lookup,
        exact: false,
        description: words,
        terms,
    })
}

//! The planner: which items can answer a question at all, by the index.
//!
//! Candidates are always a superset of the answer. Where the plan is `exact` they are the answer; else each is
//! tested by its own bytes (`contact`), so a plan may be coarse, and it is right as long as it leaves nothing
//! out. What no index can narrow (a negation, a field that is not indexed) is a scan, and `--explain` says so.

use crate::compare::{Needle, contains_pieces, phone_digits, pieces};
use crate::matcher::{any_fields, looked_at, word_fields};
use crate::query::{Op, Query, Subject, Test};
use crate::time::TimeTest;
use larder_format::field::{Field, Kind};
use larder_format::fold::{digits, fold, is_cjk};
use larder_format::phone::{certain_digits, number_part};
use larder_store::LONG_NUMBER;
use larder_store::index::{Lookup, term};
use larder_store::{Family, IndexKind, Summary};

/// More trigrams than this narrow no further. The last ones are taken: long texts that begin alike
/// (`urn:uuid:...`) differ at their end.
const TRIGRAMS: usize = 16;
/// More look-ups than this cost more than a scan.
const LOOK_UPS: usize = 4096;
/// More UIDs than this are looked for in each item.
const UIDS: usize = 65_536;
/// The fewest digits that a number within a country has.
const SHORTEST: usize = 2;
/// So many digits at its end are the number's own, if it has as many: in Argentina digits are dialled within it.
const CERTAIN: usize = 6;

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
        lookup: Lookup,
        /// What is found is the answer, and needs no test.
        exact: bool,
        /// In words.
        words: String,
    },
}

impl Plan {
    /// Plans a question to items that have this summary.
    #[must_use]
    pub fn of(query: &Query, summary: &Summary) -> Plan {
        match candidates(query, summary) {
            Narrow::Nothing => Plan::Nothing,
            Narrow::All => Plan::Scan(query.kind()),
            Narrow::To(Candidates { lookup, exact, words, .. }) => {
                Plan::Index { lookup, exact, words }
            }
        }
    }

    /// In words, for `--explain`.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Plan::Nothing => "nothing can match".into(),
            Plan::Scan(kind) => {
                format!("scan: test every {}", kind.map_or("item", larder_store::Kind::name))
            }
            Plan::Index { words, .. } => format!("index: {words}"),
        }
    }
}

/// What the index says of a part of a question.
enum Narrow {
    /// No item can match.
    Nothing,
    /// No index narrows it.
    All,
    /// Only these can match.
    To(Candidates),
}

/// How many items a set of candidates probably has, from few to many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Breadth {
    OneValue,
    Text,
    Window,
    Beginning,
    OneLetter,
    AnyValue,
}

/// What a look-up names.
struct Candidates {
    breadth: Breadth,
    lookup: Lookup,
    exact: bool,
    words: String,
    /// How many terms it takes.
    terms: usize,
}

impl Candidates {
    fn one(breadth: Breadth, lookup: Lookup, exact: bool, words: String) -> Narrow {
        Narrow::To(Candidates { breadth, lookup, exact, words, terms: 1 })
    }
}

fn candidates(query: &Query, summary: &Summary) -> Narrow {
    match query {
        Query::All | Query::Not(_) => Narrow::All,
        Query::And(all) => narrowest(all, summary),
        Query::Or(any) => any_of(any.iter().map(|query| candidates(query, summary))),
        Query::Word(_) if !has_text(summary, word_fields(summary.family())) => Narrow::All,
        Query::Word(text) => match Needle::of(text) {
            Needle::Beginning(beginning) => word(&beginning),
            Needle::Anywhere(folded, number) => match anywhere(&folded, number.as_deref()) {
                Narrow::All => characters(&folded),
                narrow => narrow,
            },
        },
        Query::Test(test) => match test.subject {
            Subject::Nothing => Narrow::Nothing,
            Subject::Field(field) => of_fields(looked_at(field, summary.family()), test, summary),
            Subject::Any if !has_text(summary, any_fields(summary.family())) => Narrow::All,
            Subject::Any => of_any(test),
            Subject::Property(_) => Narrow::All,
        },
        Query::Uids(uids) => of_uids(uids),
        Query::Kind(kind) if kind.family() != summary.family() => Narrow::Nothing,
        Query::Time(_) | Query::Number(..) if summary.family() != Family::Calendar => {
            Narrow::Nothing
        }
        Query::Time(TimeTest::In(window)) => {
            let lookup = Lookup::Window(window.clone());
            Candidates::one(Breadth::Window, lookup, true, crate::time::words(window))
        }
        Query::Kind(_)
        | Query::Time(TimeTest::Stamp(..) | TimeTest::Overdue(_))
        | Query::Number(..) => Narrow::All,
    }
}

/// Is the text of all these fields indexed?
fn has_text(summary: &Summary, fields: &[&Field]) -> bool {
    fields.iter().all(|field| summary.has(field, IndexKind::Substring))
}

/// All have to match: the narrowest is looked up first, and others as long as that narrows.
fn narrowest(all: &[Query], summary: &Summary) -> Narrow {
    let (mut parts, mut exact) = (Vec::new(), true);
    for query in all {
        match candidates(query, summary) {
            Narrow::Nothing => return Narrow::Nothing,
            Narrow::All => exact &= *query == Query::All,
            Narrow::To(part) => parts.push(part),
        }
    }
    parts.sort_by_key(|part| part.breadth);
    exact &= parts.iter().all(|part| part.exact);
    match parts.len() {
        0 => Narrow::All,
        1 => Narrow::To(Candidates { exact, ..parts.remove(0) }),
        _ => {
            let join = if exact { Lookup::All } else { Lookup::Narrow };
            Narrow::To(joined(parts, exact, " and ", join, Breadth::min))
        }
    }
}

/// Any may match: only if each part is narrow is the whole.
fn any_of(any: impl Iterator<Item = Narrow>) -> Narrow {
    let (mut parts, mut terms) = (Vec::new(), 0);
    for narrow in any {
        match narrow {
            Narrow::Nothing => {}
            Narrow::All => return Narrow::All,
            Narrow::To(part) => {
                terms += part.terms;
                parts.push(part);
            }
        }
        if terms > LOOK_UPS {
            return Narrow::All;
        }
    }
    match parts.len() {
        0 => Narrow::Nothing,
        1 => Narrow::To(parts.remove(0)),
        _ => {
            let exact = parts.iter().all(|part| part.exact);
            Narrow::To(joined(parts, exact, " or ", Lookup::Any, Breadth::max))
        }
    }
}

/// Puts several parts together, which there must be.
fn joined(
    parts: Vec<Candidates>,
    exact: bool,
    join: &str,
    lookup: fn(Vec<Lookup>) -> Lookup,
    breadth: fn(Breadth, Breadth) -> Breadth,
) -> Candidates {
    let breadth = parts.iter().map(|part| part.breadth).reduce(breadth);
    let terms = parts.iter().map(|part| part.terms).sum();
    let (lookups, words): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|part| (part.lookup, part.words)).unzip();
    Candidates {
        breadth: breadth.unwrap_or(Breadth::AnyValue),
        lookup: lookup(lookups),
        exact,
        words: format!("({})", words.join(join)),
        terms,
    }
}

/// One test of several fields. Text is indexed together, whatever field it is of, so it is looked up once.
fn of_fields(fields: &[&'static Field], test: &Test, summary: &Summary) -> Narrow {
    let mut known: Vec<String> = Vec::new();
    let mut is_new = |narrow: &Narrow| match narrow {
        Narrow::To(part) if known.contains(&part.words) => false,
        Narrow::To(part) => {
            known.push(part.words.clone());
            true
        }
        _ => true,
    };
    any_of(fields.iter().map(|field| of_field(field, test, summary)).filter(|one| is_new(one)))
}

/// An item is found by its UID without the index.
fn of_uids(uids: &[String]) -> Narrow {
    let words = match uids {
        [] => return Narrow::Nothing,
        uids if uids.len() > UIDS => return Narrow::All,
        [uid] => format!("UID {uid:?}"),
        uids => format!("one of {} UIDs", uids.len()),
    };
    Candidates::one(Breadth::OneValue, Lookup::Uids(uids.to_vec()), true, words)
}

fn of_field(field: &'static Field, test: &Test, summary: &Summary) -> Narrow {
    let Some(index) = indexed(field) else { return Narrow::All };
    // The UID of the card may be another one than that under which it is kept.
    if field.kind == Kind::Uid {
        return match test.op {
            Op::Is => of_uids(std::slice::from_ref(&test.text)),
            _ => Narrow::All,
        };
    }
    let (own, name) = (index == field, index.name);
    let folded = fold(&test.text);
    let has = |kind| summary.has(index, kind);
    let (whole, text) = (has(IndexKind::Value), has(IndexKind::Substring));
    // Of a longer value only the beginning is in the index.
    let short = term::is_whole(&folded);
    match test.op {
        // A value of nothing but accents is folded to nothing, and is there all the same.
        Op::Is if folded.is_empty() => Narrow::All,
        Op::Exists => present(index, own),
        Op::ExistsVcard | Op::RegexNormal | Op::RegexRaw => Narrow::All,
        Op::EqPhone | Op::EqPhoneNational | Op::EqPhoneShort if has(IndexKind::Phone) => {
            of_phone(index, test)
        }
        Op::EqPhone | Op::EqPhoneNational | Op::EqPhoneShort => Narrow::All,
        // Where the field is missing, an empty text is found all the same.
        _ if folded.is_empty() => Narrow::All,
        Op::Is if whole => {
            let lookup = Lookup::Term(term::value(index.id, &folded));
            let words = format!("{name} is {:?}", term::kept(&folded));
            Candidates::one(Breadth::OneValue, lookup, own && short, words)
        }
        Op::BeginsWith if whole => {
            let lookup = Lookup::Prefix(term::value(index.id, &folded));
            let words = format!("{name} begins with {:?}", term::kept(&folded));
            Candidates::one(breadth_of(&folded), lookup, own && short, words)
        }
        Op::EndsWith if has(IndexKind::Suffix) => {
            let lookup = Lookup::Prefix(term::suffix(index.id, &folded));
            let words = format!("{name} ends with {folded:?}");
            Candidates::one(breadth_of(&folded), lookup, own && short, words)
        }
        Op::Contains => {
            let number = phone_digits(&test.text);
            match if text { anywhere(&folded, number.as_deref()) } else { Narrow::All } {
                Narrow::All if whole && field.kind != Kind::Phone => {
                    among_values(index, own, &folded)
                }
                narrow => narrow,
            }
        }
        // Not found by its whole value, it is found by its trigrams.
        Op::Is | Op::BeginsWith | Op::EndsWith | Op::Includes if text => anywhere(&folded, None),
        Op::Is | Op::BeginsWith | Op::EndsWith | Op::Includes => Narrow::All,
    }
}

/// Numbers that agree end alike, however they begin. The numbering plans, which take their time to load, are not
/// asked: what of the digits is certain to be within the country will do.
fn of_phone(field: &Field, test: &Test) -> Narrow {
    let Some(number) = number_part(&test.text) else { return Narrow::All };
    let (digits, short) = (digits(number), test.op == Op::EqPhoneShort);
    let certain = certain_digits(number).clamp(SHORTEST, if short { LONG_NUMBER } else { CERTAIN });
    let ending = |length| digits.len().checked_sub(length).map(|start| &digits[start..]);
    let (Some(ending), Some(shortest)) = (ending(certain), ending(SHORTEST)) else {
        return Narrow::Nothing;
    };
    let mut words = format!("{} ends with the digits {ending:?}", field.name);
    let mut any = vec![
        Lookup::Prefix(term::phone(field.id, ending)),
        Lookup::Term(term::odd_phone(field.id)),
    ];
    // Any longer number may end with a short one.
    if short && certain > SHORTEST {
        any.push(Lookup::Prefix(term::short_phone(field.id, shortest)));
        words = format!("{words}, or is short");
    }
    Candidates::one(Breadth::Beginning, Lookup::Any(any), false, words)
}

/// The field whose index holds this one's values: itself, or the one that has them among its own.
fn indexed(field: &'static Field) -> Option<&'static Field> {
    if field.indexed { Some(field) } else { field.within.and_then(larder_format::field::field) }
}

fn of_any(test: &Test) -> Narrow {
    let folded = fold(&test.text);
    if folded.is_empty() {
        return Narrow::All;
    }
    match test.op {
        Op::Contains => anywhere(&folded, phone_digits(&test.text).as_deref()),
        Op::Is | Op::BeginsWith | Op::EndsWith | Op::Includes => anywhere(&folded, None),
        _ => Narrow::All,
    }
}

/// Each field that an item has is noted.
fn present(field: &Field, exact: bool) -> Narrow {
    let lookup = Lookup::Term(term::presence(field.id));
    Candidates::one(Breadth::AnyValue, lookup, exact, format!("has {}", field.name))
}

fn word(beginning: &str) -> Narrow {
    let lookup = Lookup::Prefix(term::word(beginning));
    let words = format!("a word begins with {beginning:?}");
    Candidates::one(breadth_of(beginning), lookup, true, words)
}

/// Each character of a script that puts no blanks between words is a word.
fn characters(text: &str) -> Narrow {
    if text.is_empty() || !text.chars().all(|c| is_cjk(c) && c.is_alphanumeric()) {
        return Narrow::All;
    }
    let exact = text.chars().nth(1).is_none();
    let lookup = |c: char| Lookup::Term(term::word(c.encode_utf8(&mut [0; 4])));
    let lookup = Lookup::Narrow(text.chars().map(lookup).collect());
    Candidates::one(Breadth::Beginning, lookup, exact, format!("the characters of {text:?}"))
}

fn breadth_of(beginning: &str) -> Breadth {
    match beginning.chars().count() {
        1 => Breadth::OneLetter,
        _ => Breadth::Beginning,
    }
}

/// Reads all values of a field that there are, for texts too short to have trigrams.
fn among_values(field: &Field, exact: bool, text: &str) -> Narrow {
    let words = format!("{text:?} among all of {}", field.name);
    let pieces = pieces(text);
    let test = Box::new(move |value: &str| contains_pieces(value, &pieces));
    let lookup = Lookup::Filter(term::value(field.id, ""), test);
    Candidates::one(Breadth::AnyValue, lookup, exact, words)
}

/// Texts without three characters between blanks are in no trigram.
fn anywhere(text: &str, number: Option<&str>) -> Narrow {
    match (trigrams(text), number.and_then(trigrams)) {
        (None, _) => Narrow::All,
        (Some(text), None) => Narrow::To(text),
        (Some(text), Some(number)) => {
            Narrow::To(joined(vec![text, number], false, " or ", Lookup::Any, Breadth::max))
        }
    }
}

/// What has all trigrams of the text.
fn trigrams(text: &str) -> Option<Candidates> {
    let mut trigrams: Vec<&str> = term::trigrams(text).rev().take(TRIGRAMS).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    let terms = trigrams.len();
    let words: Vec<String> = trigrams.iter().map(|three| format!("{three:?}")).collect();
    let mut lookups: Vec<Lookup> =
        trigrams.into_iter().map(|three| Lookup::Term(term::trigram(three))).collect();
    let lookup = match terms {
        0 => return None,
        1 => lookups.remove(0),
        _ => Lookup::Narrow(lookups),
    };
    let words = words.join(" and ");
    Some(Candidates { breadth: Breadth::Text, lookup, exact: false, words, terms })
}

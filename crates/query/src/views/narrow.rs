//! What an answer must have: by what of it a question may be filed (`concern`).
//!
//! Of a question alone, whatever is filed already. What is named here may be had by items that do not answer; none that answers is
//! without it.

use crate::compare::{Needle, phone_digits, pieces};
use crate::matcher::{any_fields, looked_at, word_fields};
use crate::query::{Op, Query, Subject, Test};
use crate::time::TimeTest;
use larder_format::field::{Field, Kind as FieldKind};
use larder_format::fold::fold;
use larder_store::{Family, Kind, What, Window};

/// More ways than this to one question cost more than to ask it.
const WAYS: usize = 64;

/// Something that an item must have to answer a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Way {
    Uid(String),
    /// A folded value of a field.
    Value(&'static Field, String),
    /// The beginning of a folded value of a field.
    Beginning(&'static Field, String),
    /// Three letters in a folded value of any of these fields.
    Letters(Vec<&'static Field>, [char; 3]),
    /// One or two letters at the beginning of a word in any of these fields.
    Word(Vec<&'static Field>, String),
    Window(What, i64, i64),
}

/// How an answer is narrowed.
enum Narrow {
    Nothing,
    All,
    /// Any of these.
    Ways(Vec<Way>),
}

impl Way {
    /// How many items probably have it, from few to many.
    fn breadth(&self) -> i64 {
        match self {
            Way::Uid(_) => 0,
            Way::Value(..) => 1,
            Way::Beginning(_, text) if text.len() > 2 => 2,
            Way::Letters(..) => 3,
            Way::Word(..) => 5,
            Way::Window(_, from, to) => 4 + (to.saturating_sub(*from) / (400 * 86_400)).min(1),
            Way::Beginning(..) => 5,
        }
    }
}

/// Under what a question is filed; `None`: there is nothing without which no item answers it.
pub(super) fn ways(query: &Query, kind: Option<Kind>) -> Option<Vec<Way>> {
    // Its items may be of either family, unless it says which.
    let families: &[Family] = match kind.map(Kind::family) {
        Some(Family::Contacts) => &[Family::Contacts],
        Some(Family::Calendar) => &[Family::Calendar],
        _ => &[Family::Contacts, Family::Calendar],
    };
    let mut ways: Vec<Way> = Vec::new();
    for family in families {
        match narrow(query, *family) {
            Narrow::Nothing => {}
            Narrow::All => return None,
            Narrow::Ways(more) => {
                for way in more {
                    if !ways.contains(&way) {
                        ways.push(way);
                    }
                }
            }
        }
    }
    (ways.len() <= WAYS).then_some(ways)
}

/// Each three letters in a row.
pub(super) fn each_three(text: &str, each: &mut dyn FnMut([char; 3])) {
    let mut chars = text.chars();
    let (Some(mut a), Some(mut b)) = (chars.next(), chars.next()) else { return };
    for c in chars {
        each([a, b, c]);
        (a, b) = (b, c);
    }
}

fn narrow(query: &Query, family: Family) -> Narrow {
    match query {
        Query::All | Query::Not(_) | Query::Number(..) => Narrow::All,
        Query::Kind(kind) if kind.family() == family => Narrow::All,
        Query::Kind(_) => Narrow::Nothing,
        Query::And(all) => narrowest(all, family),
        Query::Or(any) => any_of(any.iter().map(|query| narrow(query, family))),
        Query::Uids(uids) => Narrow::Ways(uids.iter().cloned().map(Way::Uid).collect()),
        Query::Word(text) => match Needle::of(text) {
            Needle::Anywhere(folded, None) => letters(word_fields(family), &folded),
            Needle::Beginning(start) => {
                Narrow::Ways(vec![Way::Word(word_fields(family).to_vec(), start)])
            }
            Needle::Anywhere(..) => Narrow::All,
        },
        Query::Time(_) if family != Family::Calendar => Narrow::Nothing,
        Query::Time(TimeTest::In(window)) => of_window(window),
        Query::Time(_) => Narrow::All,
        Query::Test(test) => of_test(test, family),
    }
}

fn of_window(window: &Window) -> Narrow {
    let (from, to) = (window.from.seconds(), window.to.seconds());
    if from >= to {
        Narrow::Nothing
    } else {
        Narrow::Ways(vec![Way::Window(window.what, from, to)])
    }
}

fn narrowest(all: &[Query], family: Family) -> Narrow {
    let mut best: Option<(i64, Vec<Way>)> = None;
    for query in all {
        match narrow(query, family) {
            Narrow::Nothing => return Narrow::Nothing,
            Narrow::All => {}
            Narrow::Ways(ways) => {
                let breadth = ways.iter().map(Way::breadth).max().unwrap_or(0);
                if best.as_ref().is_none_or(|(known, _)| breadth < *known) {
                    best = Some((breadth, ways));
                }
            }
        }
    }
    best.map_or(Narrow::All, |(_, ways)| Narrow::Ways(ways))
}

fn any_of(any: impl Iterator<Item = Narrow>) -> Narrow {
    let mut all = Vec::new();
    for narrow in any {
        match narrow {
            Narrow::Nothing => {}
            Narrow::All => return Narrow::All,
            Narrow::Ways(ways) => all.extend(ways),
        }
    }
    if all.is_empty() { Narrow::Nothing } else { Narrow::Ways(all) }
}

fn of_test(test: &Test, family: Family) -> Narrow {
    let folded = fold(&test.text).into_owned();
    let fields: &[&'static Field] = match &test.subject {
        Subject::Nothing => return Narrow::Nothing,
        Subject::Property(_) => return Narrow::All,
        Subject::Field(Field { kind: FieldKind::Uid, .. }) => {
            return match test.op {
                Op::Is => Narrow::Ways(vec![Way::Uid(test.text.clone())]),
                _ => Narrow::All,
            };
        }
        Subject::Field(field) => looked_at(field, family),
        Subject::Any => any_fields(family),
    };
    if fields.is_empty() {
        return Narrow::Nothing;
    }
    // An empty text is found where the field is missing, and the digits of a phone number among others.
    if folded.is_empty() || (test.op == Op::Contains && phone_digits(&test.text).is_some()) {
        return Narrow::All;
    }
    let one = matches!(&test.subject, Subject::Field(_));
    let each = |way: fn(&'static Field, String) -> Way| {
        Narrow::Ways(fields.iter().map(|field| way(field, folded.clone())).collect())
    };
    match test.op {
        Op::Is if one => each(Way::Value),
        Op::BeginsWith if one => each(Way::Beginning),
        Op::Contains => {
            let longest = pieces(&folded).into_iter().max_by_key(String::len).unwrap_or_default();
            letters(fields, &longest)
        }
        Op::Is | Op::BeginsWith | Op::EndsWith | Op::Includes => letters(fields, &folded),
        _ => Narrow::All,
    }
}

/// What has this text in it has its last three letters.
fn letters(fields: &[&'static Field], text: &str) -> Narrow {
    let mut last = None;
    each_three(text, &mut |three| last = Some(three));
    match last {
        Some(three) => Narrow::Ways(vec![Way::Letters(fields.to_vec(), three)]),
        None => Narrow::All,
    }
}

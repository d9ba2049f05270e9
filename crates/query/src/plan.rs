//! The planner: which items can answer a question at all, by the indexes.
//!
//! Candidates are always a superset of the answer; each is then tested by its own bytes (`contact`). So a
//! plan may be coarse, and it is right as long as it leaves nothing out. What no index can narrow (a
//! negation, a field that is not indexed) is a scan, and `--explain` says so.

use crate::contact::{Needle, looked_at, phone_digits};
use crate::query::{Op, Query, Subject, Test};
use larder_format::field::{Field, Kind};
use larder_format::fold::fold;
use larder_store::{Entry, VALUE_FIELDS, Value, WORD_FIELD};

/// More trigrams than this narrow no further. The last ones are taken: long texts that begin alike
/// (`urn:uuid:...`) differ at their end.
const TRIGRAMS: usize = 16;
/// More look-ups than this in one statement are not worth it, and SQLite takes no more than 500.
const LOOK_UPS: usize = 250;
/// How deep an FTS5 expression may nest; its parser takes no more than some dozens.
const NESTING: usize = 20;

/// How a question's candidates are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nothing can match.
    Nothing,
    /// Every item has to be tested.
    Scan,
    /// An index names the candidates.
    Index {
        /// A SELECT of rows, each once, in their order.
        sql: String,
        /// Its arguments.
        args: Vec<Value>,
        /// In words, one line an index.
        steps: Vec<String>,
    },
}

impl Plan {
    /// Plans a question. `text_index` says whether the text indexes can be used.
    #[must_use]
    pub fn of(query: &Query, text_index: bool) -> Plan {
        match candidates(query) {
            Narrow::Nothing => Plan::Nothing,
            Narrow::All => Plan::Scan,
            Narrow::To(_) if !text_index => Plan::Scan,
            Narrow::To(candidates) => candidates.plan(),
        }
    }

    /// In words, for `--explain`.
    #[must_use]
    pub fn steps(&self) -> Vec<String> {
        match self {
            Plan::Nothing => vec!["nothing can match".into()],
            Plan::Scan => vec!["scan: test every item".into()],
            Plan::Index { steps, .. } => steps.clone(),
        }
    }
}

/// What the indexes say of a part of a question.
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
    SomeText,
    Beginning,
    OneLetter,
    AnyValue,
}

/// A union of what several index look-ups name.
struct Candidates {
    breadth: Breadth,
    /// How many look-ups it takes.
    look_ups: usize,
    /// An expression over trigrams.
    text: Option<Text>,
    /// SELECTs of items, with their arguments, and in words.
    values: Vec<(&'static str, Vec<Value>, String)>,
}

impl Candidates {
    fn text(expression: String) -> Narrow {
        let text = Some(Text { join: "", parts: vec![expression], nesting: 1 });
        let breadth = Breadth::SomeText;
        Narrow::To(Candidates { breadth, look_ups: 1, text, values: Vec::new() })
    }

    fn value(breadth: Breadth, select: &'static str, args: Vec<Value>, words: &str) -> Narrow {
        let values = vec![(select, args, format!("idx_value: {words}"))];
        Narrow::To(Candidates { breadth, look_ups: 1, text: None, values })
    }

    fn none(breadth: Breadth) -> Candidates {
        Candidates { breadth, look_ups: 0, text: None, values: Vec::new() }
    }

    fn is_text(&self) -> bool {
        self.values.is_empty()
    }

    /// Would SQLite refuse it, or a scan be faster?
    fn is_too_much(&self) -> bool {
        self.look_ups > LOOK_UPS || self.text.as_ref().is_some_and(|text| text.nesting > NESTING)
    }

    fn plan(self) -> Plan {
        let (mut selects, mut args, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for (select, with, words) in self.values {
            selects.push(select.to_string());
            args.extend(with);
            steps.push(words);
        }
        if let Some(expression) = self.text.map(|text| text.expression()) {
            selects.push("SELECT rowid FROM idx_text WHERE idx_text MATCH ?".into());
            selects.push("SELECT item FROM idx_large".into());
            steps.push(format!("idx_text: {expression}"));
            args.push(Value::Text(expression));
        }
        // A union gives each row once.
        if selects.len() == 1 {
            selects[0] = selects[0].replacen("SELECT", "SELECT DISTINCT", 1);
        }
        Plan::Index { sql: format!("{} ORDER BY 1", selects.join(" UNION ")), args, steps }
    }
}

/// An FTS5 expression whose parts are joined by one operator.
#[derive(Clone)]
struct Text {
    join: &'static str,
    parts: Vec<String>,
    /// How deep the parts nest.
    nesting: usize,
}

impl Text {
    fn joined(&self, join: &'static str, other: &Text) -> Text {
        let mut text = Text { join, parts: Vec::new(), nesting: 1 };
        for side in [self, other] {
            // What the same operator joins needs no parentheses of its own.
            if side.parts.len() == 1 || side.join == join {
                text.parts.extend_from_slice(&side.parts);
                text.nesting = text.nesting.max(side.nesting);
            } else {
                text.parts.push(side.expression());
                text.nesting = text.nesting.max(side.nesting + 1);
            }
        }
        text
    }

    fn expression(&self) -> String {
        match &self.parts[..] {
            [part] => part.clone(),
            parts => format!("({})", parts.join(&format!(") {} (", self.join))),
        }
    }
}

fn candidates(query: &Query) -> Narrow {
    match query {
        Query::All | Query::Not(_) => Narrow::All,
        Query::And(all) => narrowest(all),
        Query::Or(any) => union(any),
        Query::Word(text) => match Needle::of(text) {
            Needle::Beginning(beginning) => beginning_of(WORD_FIELD, "a word", &beginning),
            Needle::Anywhere(folded, number) => anywhere(&folded, number.as_deref()),
        },
        Query::Test(test) => match test.subject {
            Subject::Nothing => Narrow::Nothing,
            Subject::Field(field) => of_fields(looked_at(field), test),
            Subject::Any => of_any(test),
            Subject::Property(_) => Narrow::All,
        },
        Query::Uids(uids) if uids.is_empty() => Narrow::Nothing,
        Query::Uids(uids) => of_uids(uids),
    }
}

/// All have to match: the smallest set will do, and parts that are all text are asked for at once.
fn narrowest(all: &[Query]) -> Narrow {
    let mut best: Option<Candidates> = None;
    for query in all {
        match candidates(query) {
            Narrow::Nothing => return Narrow::Nothing,
            Narrow::All => {}
            Narrow::To(next) => {
                best = Some(match best {
                    None => next,
                    Some(best) => smaller(best, next),
                });
            }
        }
    }
    best.map_or(Narrow::All, Narrow::To)
}

fn smaller(a: Candidates, b: Candidates) -> Candidates {
    let look_ups = a.look_ups + b.look_ups;
    match (&a.text, &b.text) {
        (Some(x), Some(y)) if a.is_text() && b.is_text() => {
            let both = Candidates {
                text: Some(x.joined("AND", y)),
                look_ups,
                ..Candidates::none(a.breadth)
            };
            if both.is_too_much() { a } else { both }
        }
        _ if b.breadth < a.breadth => b,
        _ => a,
    }
}

/// Any may match: only if each part is narrow is the whole.
fn union(any: &[Query]) -> Narrow {
    let mut whole: Option<Candidates> = None;
    for query in any {
        match candidates(query) {
            Narrow::Nothing => {}
            Narrow::All => return Narrow::All,
            Narrow::To(next) => {
                let next = match whole {
                    None => next,
                    Some(whole) => both(whole, next),
                };
                if next.is_too_much() {
                    return Narrow::All;
                }
                whole = Some(next);
            }
        }
    }
    whole.map_or(Narrow::Nothing, Narrow::To)
}

fn both(mut a: Candidates, b: Candidates) -> Candidates {
    a.breadth = a.breadth.max(b.breadth);
    a.look_ups += b.look_ups;
    a.text = match (a.text, b.text) {
        (Some(x), Some(y)) => Some(x.joined("OR", &y)),
        (x, y) => x.or(y),
    };
    a.values.extend(b.values);
    a
}

/// The look-up goes by the unique index over collection and UID.
fn of_uids(uids: &[String]) -> Narrow {
    let select = "SELECT id FROM item WHERE collection IN (SELECT id FROM collection)
        AND uid IN (SELECT value FROM json_each(?))";
    let list: Vec<String> = uids.iter().map(|uid| json_string(uid)).collect();
    let values = vec![(
        select,
        vec![Value::Text(format!("[{}]", list.join(",")))],
        format!("item: one of {} UIDs", uids.len()),
    )];
    let breadth = Breadth::OneValue;
    Narrow::To(Candidates { breadth, look_ups: 1, text: None, values })
}

fn json_string(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// Any of the fields may pass: their candidates together.
fn of_fields(fields: &[&'static Field], test: &Test) -> Narrow {
    let mut whole: Option<Candidates> = None;
    for field in fields {
        match of_field(field, test) {
            Narrow::Nothing => {}
            Narrow::All => return Narrow::All,
            // What is asked for as text is the same for each field.
            Narrow::To(next) if next.is_text() => return Narrow::To(next),
            Narrow::To(next) => {
                whole = Some(match whole {
                    None => next,
                    Some(whole) => both(whole, next),
                });
            }
        }
    }
    whole.map_or(Narrow::Nothing, Narrow::To)
}

fn of_field(field: &'static Field, test: &Test) -> Narrow {
    // UIDs are compared byte by byte; that folding leaves nothing out is sure for ASCII only.
    let exact = field.kind == Kind::Uid && !test.text.is_ascii();
    let Some(field) = indexed(field).filter(|_| !exact) else { return Narrow::All };
    let folded = fold(&test.text);
    let whole = VALUE_FIELDS.contains(&field.name);
    match test.op {
        // A value of nothing but accents is folded to nothing, and is there all the same.
        Op::Is if folded.is_empty() => Narrow::All,
        Op::Exists => present(field),
        Op::ExistsVcard => Narrow::All,
        Op::RegexNormal | Op::RegexRaw => Narrow::All,
        Op::EqPhone | Op::EqPhoneNational | Op::EqPhoneShort => Narrow::All,
        // Where the field is missing, an empty text is found all the same.
        _ if folded.is_empty() => Narrow::All,
        Op::Is if whole => {
            let value = Entry::kept(&folded);
            let words = format!("{} is {value:?}", field.name);
            let args = vec![Value::Integer(field.id.into()), Value::Text(value.to_string())];
            Candidates::value(
                Breadth::OneValue,
                "SELECT item FROM idx_value WHERE field = ? AND value = ?",
                args,
                &words,
            )
        }
        Op::BeginsWith if whole => beginning_of(field.id, field.name, &folded),
        Op::Contains => in_order(&folded, phone_digits(&test.text).as_deref()),
        // Not found by its whole value, it is found by its trigrams.
        Op::Is | Op::BeginsWith | Op::EndsWith => anywhere(&folded, None),
    }
}

/// The field whose index holds this one's values: itself, or the one that has them among its own.
fn indexed(field: &'static Field) -> Option<&'static Field> {
    if field.indexed { Some(field) } else { field.within.and_then(larder_format::field::field) }
}

fn of_any(test: &Test) -> Narrow {
    let folded = fold(&test.text);
    if folded.is_empty() || !test.text.is_ascii() {
        return Narrow::All;
    }
    match test.op {
        Op::Contains => in_order(&folded, phone_digits(&test.text).as_deref()),
        Op::Is | Op::BeginsWith | Op::EndsWith => anywhere(&folded, None),
        _ => Narrow::All,
    }
}

/// Each field that an item has is noted by an empty value.
fn present(field: &Field) -> Narrow {
    let args = vec![Value::Integer(field.id.into())];
    let select = "SELECT item FROM idx_value WHERE field = ? AND value = ''";
    Candidates::value(Breadth::AnyValue, select, args, &format!("has {}", field.name))
}

fn beginning_of(field: u16, name: &str, text: &str) -> Narrow {
    let first = Entry::kept(text);
    let breadth = match first.chars().count() {
        1 => Breadth::OneLetter,
        _ => Breadth::Beginning,
    };
    let mut args = vec![Value::Integer(field.into()), Value::Text(first.to_string())];
    let words = format!("{name} begins with {first:?}");
    match after(first) {
        Some(end) => {
            args.push(Value::Text(end));
            let select = "SELECT item FROM idx_value WHERE field = ? AND value >= ? AND value < ?";
            Candidates::value(breadth, select, args, &words)
        }
        None => {
            let select = "SELECT item FROM idx_value WHERE field = ? AND value >= ?";
            Candidates::value(breadth, select, args, &words)
        }
    }
}

/// Texts shorter than three characters are in no trigram.
fn anywhere(text: &str, number: Option<&str>) -> Narrow {
    either(all_trigrams(text), number)
}

/// A blank stands for anything: only what is between blanks is sure to be there.
fn in_order(text: &str, number: Option<&str>) -> Narrow {
    either(trigrams(text, |trigram| !trigram.contains(' ')), number)
}

fn either(text: Option<String>, number: Option<&str>) -> Narrow {
    match (text, number.and_then(all_trigrams)) {
        (None, _) => Narrow::All,
        (Some(text), None) => Candidates::text(text),
        (Some(text), Some(number)) => Candidates::text(format!("({text}) OR ({number})")),
    }
}

/// An FTS5 expression that holds where all trigrams of the text do.
fn all_trigrams(text: &str) -> Option<String> {
    trigrams(text, |_| true)
}

fn trigrams(text: &str, is_sure: fn(&str) -> bool) -> Option<String> {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut trigrams: Vec<String> = starts
        .windows(4)
        .map(|window| &text[window[0]..window[3]])
        .filter(|trigram| is_sure(trigram))
        .rev()
        .take(TRIGRAMS)
        .map(|trigram| format!("\"{}\"", trigram.replace('"', "\"\"")))
        .collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    (!trigrams.is_empty()).then(|| trigrams.join(" AND "))
}

/// The first text after all that begin with this one; `None` where there is no such text.
fn after(text: &str) -> Option<String> {
    let mut text = text.to_string();
    while let Some(last) = text.pop() {
        if last < char::MAX {
            let next = u32::from(last) + 1;
            // There are no characters between U+D800 and U+DFFF.
            text.push(char::from_u32(next).unwrap_or('\u{e000}'));
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_beginning() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(after(text).as_deref(), expect);
        check("ann", Some("ano"));
        check("\u{d7ff}", Some("\u{e000}"));
        check("a\u{10ffff}", Some("b"));
        check("\u{10ffff}", None);
    }
}

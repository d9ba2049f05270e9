//! What a question means for a contact: the plain test of one parsed card. The planner's answer is right
//! when it is this one's.

use crate::query::{Op, Query, Subject, Test};
use larder_format::contact::Contact;
use larder_format::field::{FIELDS, Field, Kind};
use larder_format::fold::{digits, fold, is_cjk, words};

/// Fewer digits than this are no part of a phone number, just a number.
pub(crate) const PHONE_DIGITS: usize = 3;

/// Does the card answer the question?
pub(crate) fn matches(query: &Query, card: &Contact<'_>) -> bool {
    match query {
        Query::All => true,
        Query::And(all) => all.iter().all(|query| matches(query, card)),
        Query::Or(any) => any.iter().any(|query| matches(query, card)),
        Query::Not(query) => !matches(query, card),
        Query::Word(text) => word(text, card),
        Query::Test(test) => match test.subject {
            Subject::Nothing => false,
            Subject::Field(field) => field_matches(field, test, card),
            Subject::Any => FIELDS
                .iter()
                .filter(|field| field.indexed)
                .any(|field| field_matches(field, test, card)),
        },
    }
}

/// A free word as it is looked for.
pub(crate) enum Needle {
    /// One or two letters: the beginning of a word.
    Beginning(String),
    /// Anything else: anywhere in a value; the digits of what looks like a phone number also among a
    /// number's digits.
    Anywhere(String, Option<String>),
}

impl Needle {
    pub(crate) fn of(text: &str) -> Needle {
        let folded = fold(text).into_owned();
        let short = folded.chars().count() <= 2
            && !folded.is_empty()
            && folded.chars().all(|c| c.is_alphanumeric() && !is_cjk(c))
            && words(&folded).eq([folded.as_str()]);
        if short { Needle::Beginning(folded) } else { Needle::Anywhere(folded, phone_digits(text)) }
    }
}

/// The digits of a text that can be read as (part of) a phone number.
pub(crate) fn phone_digits(text: &str) -> Option<String> {
    let number =
        text.chars().all(|c| c.is_numeric() || c.is_whitespace() || "+-–().,/".contains(c));
    let digits = digits(text);
    (number && digits.len() >= PHONE_DIGITS).then_some(digits)
}

fn word(text: &str, card: &Contact<'_>) -> bool {
    let needle = Needle::of(text);
    FIELDS.iter().filter(|field| field.words).any(|field| {
        card.values(field).iter().any(|value| {
            let folded = fold(value);
            match &needle {
                Needle::Beginning(beginning) => {
                    words(&folded).any(|word| word.starts_with(beginning.as_str()))
                }
                Needle::Anywhere(text, number) => {
                    folded.contains(text.as_str()) || has_digits(field, &folded, number.as_deref())
                }
            }
        })
    })
}

fn has_digits(field: &Field, folded: &str, number: Option<&str>) -> bool {
    field.kind == Kind::Phone && number.is_some_and(|number| digits(folded).contains(number))
}

fn field_matches(field: &Field, test: &Test, card: &Contact<'_>) -> bool {
    let values = card.values(field);
    let mut values = values.iter().filter(|value| !value.is_empty());
    if test.op == Op::Exists {
        return values.next().is_some();
    }
    if field.kind == Kind::Uid {
        return values.any(|value| compare(test.op, value, &test.text));
    }
    let text = fold(&test.text);
    let number = if test.op == Op::Contains { phone_digits(&test.text) } else { None };
    values.any(|value| {
        let folded = fold(value);
        compare(test.op, &folded, &text) || has_digits(field, &folded, number.as_deref())
    })
}

fn compare(op: Op, value: &str, text: &str) -> bool {
    match op {
        Op::Contains => value.contains(text),
        Op::Is => value == text,
        Op::BeginsWith => value.starts_with(text),
        Op::EndsWith => value.ends_with(text),
        Op::Exists => true,
    }
}

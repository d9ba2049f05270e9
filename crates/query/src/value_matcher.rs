//! The test of one value: as text, as a pattern, as a phone number, as a bare word.
//!
//! Texts are folded and patterns compiled once for a query. Separate from `matcher`, which chooses
//! the values of an item, because it knows only texts.

use crate::pattern::RegexPattern;
use crate::query::{FieldSelector, FieldTest, MatchOp};
use crate::step_counter::StepCounter;
use larder_format::field::{Field, FieldType};
use larder_format::fold::{collect_digits, fold, is_cjk, split_words};
use larder_format::phone::{ParsedPhoneNumber as PhoneNumber, PhoneMatch, is_number_like};
use std::sync::OnceLock;
use std::time::Instant;

/// A text with fewer digits than this is not treated as part of a phone number.
pub(crate) const MIN_PHONE_DIGITS: usize = 3;
/// The steps of parsing a phone number.
const STEPS_PER_PHONE_NUMBER: u64 = 4096;
/// Longer texts are searched by an algorithm whose time does not depend on their length.
const MAX_NAIVE_NEEDLE_BYTES: usize = 32;

/// A comparison with a prepared text.
#[derive(Debug, Clone)]
pub(crate) enum ValueMatcher {
    /// The value is not empty.
    Exists,
    /// The first component of the first property of the name is not empty.
    FirstExists,
    /// The text, not folded, for a UID.
    Raw(MatchOp, String),
    /// These folded texts in their order; or these digits of a phone number.
    Contains(PhrasePattern, Option<String>),
    Is(String),
    BeginsWith(String),
    EndsWith(String),
    Includes(String),
    FoldedRegex(RegexPattern),
    RawRegex(RegexPattern),
    /// A phone number, and the minimum agreement.
    Phone(PhonePattern, PhoneMatch),
}

impl ValueMatcher {
    /// Prepares a test; `None` if no value can pass.
    pub(crate) fn from_test(test: &FieldTest) -> Option<ValueMatcher> {
        if let FieldSelector::Field(Field { field_type: FieldType::Uid, .. }) = &test.subject
            && matches!(
                test.op,
                MatchOp::ContainsWords | MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith
            )
        {
            return Some(ValueMatcher::Raw(test.op, test.text.clone()));
        }
        let folded = || fold(&test.text).into_owned();
        let phone = |wanted: PhoneMatch| {
            let (text, region) = (test.text.clone(), test.region.clone());
            ValueMatcher::Phone(PhonePattern { text, region, number: OnceLock::new() }, wanted)
        };
        Some(match test.op {
            MatchOp::ContainsWords => {
                let phrase = PhrasePattern::new(split_phrase(&folded()));
                ValueMatcher::Contains(phrase, parse_phone_digits(&test.text))
            }
            MatchOp::Is => ValueMatcher::Is(folded()),
            MatchOp::BeginsWith => ValueMatcher::BeginsWith(folded()),
            MatchOp::EndsWith => ValueMatcher::EndsWith(folded()),
            MatchOp::Substring => ValueMatcher::Includes(folded()),
            MatchOp::Exists => ValueMatcher::Exists,
            MatchOp::ExistsVcard => ValueMatcher::FirstExists,
            MatchOp::RegexNormal => {
                ValueMatcher::FoldedRegex(RegexPattern::compile(&test.text).ok()?)
            }
            MatchOp::RegexRaw => ValueMatcher::RawRegex(RegexPattern::compile(&test.text).ok()?),
            MatchOp::EqPhone => phone(PhoneMatch::Exact),
            MatchOp::EqPhoneNational => phone(PhoneMatch::National),
            MatchOp::EqPhoneShort => phone(PhoneMatch::Short),
        })
    }

    /// Returns whether a value of this field passes.
    pub(crate) fn matches_field_value(&self, field: &Field, value: &str) -> bool {
        match self {
            ValueMatcher::Contains(_, Some(number)) if field.field_type == FieldType::Phone => {
                self.matches(value) || collect_digits(value).contains(number)
            }
            _ => self.matches(value),
        }
    }

    /// Counts the steps of comparing a value, then calls `compare`; returns false if the steps
    /// exceed the budget. For a pattern, whose time does not follow from the length of the value, a
    /// step is a nanosecond.
    pub(crate) fn count_steps(
        &self,
        value: &str,
        steps: &StepCounter,
        compare: impl FnOnce() -> bool,
    ) -> bool {
        match self {
            ValueMatcher::FoldedRegex(pattern) | ValueMatcher::RawRegex(pattern) => {
                if !pattern.is_affordable(value, steps) {
                    return steps.count_test(u64::MAX);
                }
                let began = Instant::now();
                let is_match = compare();
                let nanoseconds = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                steps.count_test(nanoseconds) && is_match
            }
            ValueMatcher::Exists | ValueMatcher::FirstExists => steps.count_test(0) && compare(),
            ValueMatcher::Phone(..) => steps.count_test(STEPS_PER_PHONE_NUMBER) && compare(),
            _ => steps.count_test(value.len() as u64) && compare(),
        }
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        match self {
            ValueMatcher::Exists | ValueMatcher::FirstExists => !value.is_empty(),
            ValueMatcher::Raw(MatchOp::ContainsWords, text) => value.contains(text.as_str()),
            ValueMatcher::Raw(MatchOp::BeginsWith, text) => value.starts_with(text.as_str()),
            ValueMatcher::Raw(MatchOp::EndsWith, text) => value.ends_with(text.as_str()),
            ValueMatcher::Raw(_, text) => value == text,
            ValueMatcher::Contains(phrase, _) if phrase.is_short && is_ascii_foldable(value) => {
                contains_in_order(value, &phrase.parts, find_ascii)
            }
            ValueMatcher::Contains(phrase, _) => contains_parts(&fold(value), &phrase.parts),
            ValueMatcher::Is(text) if is_ascii_foldable(value) => value.eq_ignore_ascii_case(text),
            ValueMatcher::Is(text) => fold(value) == text.as_str(),
            ValueMatcher::BeginsWith(text) if is_ascii_foldable(value) => {
                value.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
            }
            ValueMatcher::BeginsWith(text) => fold(value).starts_with(text.as_str()),
            ValueMatcher::EndsWith(text) if is_ascii_foldable(value) => value
                .len()
                .checked_sub(text.len())
                .and_then(|start| value.get(start..))
                .is_some_and(|end| end.eq_ignore_ascii_case(text)),
            ValueMatcher::EndsWith(text) => fold(value).ends_with(text.as_str()),
            ValueMatcher::Includes(text) => fold(value).contains(text.as_str()),
            ValueMatcher::FoldedRegex(pattern) => pattern.is_match(&fold(value)),
            ValueMatcher::RawRegex(pattern) => pattern.is_match(value),
            ValueMatcher::Phone(dialled, wanted) => dialled.matches(value, *wanted),
        }
    }
}

/// The parts of a text that a value must contain in their order.
#[derive(Debug, Clone)]
pub(crate) struct PhrasePattern {
    parts: Vec<String>,
    /// Whether every part is so short that a simple search is fastest.
    is_short: bool,
}

impl PhrasePattern {
    fn new(parts: Vec<String>) -> PhrasePattern {
        let is_short = parts.iter().all(|part| part.len() <= MAX_NAIVE_NEEDLE_BYTES);
        PhrasePattern { parts, is_short }
    }
}

/// A phone number to search for. The number is parsed when the first value is compared, because
/// loading the numbering plans takes longer than many searches.
#[derive(Debug, Clone)]
pub(crate) struct PhonePattern {
    text: String,
    /// The region of both numbers.
    region: Option<String>,
    number: OnceLock<Option<PhoneNumber>>,
}

impl PhonePattern {
    fn matches(&self, value: &str, wanted: PhoneMatch) -> bool {
        let read = |text: &str| PhoneNumber::parse(text, self.region.as_deref());
        let Some(number) = self.number.get_or_init(|| read(&self.text)) else { return false };
        read(value).is_some_and(|found| found.compare(number) >= wanted)
    }
}

/// Splits a folded text into the parts that a value must contain in this order. The first space
/// after a word, and a space at the end, match any text; further spaces belong to the next word.
pub(crate) fn split_phrase(folded: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut in_word, mut after_space) = (false, false);
    for c in folded.chars() {
        if c == ' ' && in_word && !after_space {
            after_space = true;
            parts.push(std::mem::take(&mut part));
        } else {
            if c != ' ' {
                (in_word, after_space) = (true, false);
            }
            part.push(c);
        }
    }
    match parts.last_mut() {
        Some(last) if after_space => last.push_str(&part),
        _ => parts.push(part),
    }
    parts
}

/// Returns whether a text contains the parts, each starting after the start of the previous one.
/// They may overlap: `anna` contains `an nn`, as in evolution-data-server.
fn contains_in_order(text: &str, parts: &[String], find: fn(&str, &str) -> Option<usize>) -> bool {
    let mut rest = text;
    for (nth, part) in parts.iter().enumerate() {
        let Some(at) = find(rest, part) else { return false };
        if nth + 1 < parts.len() {
            let next = rest[at..].chars().next().map_or(0, char::len_utf8);
            rest = &rest[at + next..];
        }
    }
    true
}

/// Returns whether a folded value contains the parts in their order.
pub(crate) fn contains_parts(folded: &str, parts: &[String]) -> bool {
    contains_in_order(folded, parts, |text, part| text.find(part))
}

/// Returns whether folding only makes letters lower case: values are then compared without a copy.
fn is_ascii_foldable(value: &str) -> bool {
    value.is_ascii() && !value.as_bytes().contains(&0)
}

/// Finds a folded part in an [ASCII](is_ascii_foldable) text.
fn find_ascii(text: &str, part: &str) -> Option<usize> {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let Some(first) = part.first() else { return Some(0) };
    let last = text.len().checked_sub(part.len())?;
    let starts = text[..=last].iter().enumerate();
    starts
        .filter(|(_, byte)| byte.eq_ignore_ascii_case(first))
        .map(|(at, _)| at)
        .find(|at| text[*at..*at + part.len()].eq_ignore_ascii_case(part))
}

/// A prepared bare word.
#[derive(Debug, Clone)]
pub(crate) enum WordPattern {
    /// One or two letters: the start of a word.
    WordPrefix(String),
    /// Any other text: any part of a value; the digits of a possible phone number also match the
    /// digits of a phone value.
    Substring(String, Option<String>),
}

impl WordPattern {
    pub(crate) fn parse(text: &str) -> WordPattern {
        let folded = fold(text).into_owned();
        let short = folded.chars().count() <= 2
            && !folded.is_empty()
            && folded.chars().all(|c| c.is_alphanumeric() && !is_cjk(c))
            && split_words(&folded).eq([folded.as_str()]);
        if short {
            WordPattern::WordPrefix(folded)
        } else {
            WordPattern::Substring(folded, parse_phone_digits(text))
        }
    }

    /// Returns whether a value of this field contains it.
    pub(crate) fn matches(&self, field: &Field, value: &str) -> bool {
        match self {
            WordPattern::WordPrefix(beginning) => {
                split_words(&fold(value)).any(|word| word.starts_with(beginning.as_str()))
            }
            WordPattern::Substring(text, _)
                if text.len() <= MAX_NAIVE_NEEDLE_BYTES
                    && is_ascii_foldable(value)
                    && find_ascii(value, text).is_some() =>
            {
                true
            }
            WordPattern::Substring(text, None)
                if text.len() <= MAX_NAIVE_NEEDLE_BYTES && is_ascii_foldable(value) =>
            {
                false
            }
            WordPattern::Substring(text, number) => {
                let folded = fold(value);
                let has_digits = |number: &String| collect_digits(&folded).contains(number);
                folded.contains(text.as_str())
                    || (field.field_type == FieldType::Phone
                        && number.as_ref().is_some_and(has_digits))
            }
        }
    }
}

/// Returns the digits of a text that may be a phone number or a part of one.
pub(crate) fn parse_phone_digits(text: &str) -> Option<String> {
    let digits = collect_digits(text);
    (is_number_like(text) && digits.len() >= MIN_PHONE_DIGITS).then_some(digits)
}

//! How a value passes a test: as text, as a pattern, as a phone number, as a free word.
//!
//! A text is folded, a pattern compiled and a number read once, when the question is made ready.
//! Which values of an item are looked at is found in `matcher`; this is apart because it knows
//! texts alone.

use crate::query::{FieldSelector, FieldTest, MatchOp};
use larder_format::field::{Field, FieldType};
use larder_format::fold::{collect_digits, fold, is_cjk, split_words};
use larder_format::phone::{ParsedPhoneNumber as PhoneNumber, PhoneMatch, is_number_like};
use regex::Regex;
use std::sync::OnceLock;

/// Fewer digits than this are no part of a phone number, just a number.
pub(crate) const MIN_PHONE_DIGITS: usize = 3;
/// A pattern's program may have so many bytes, and so may the states found while it runs.
const MAX_REGEX_PROGRAM_BYTES: usize = 1 << 20;
/// A pattern may have so many bytes, and nest so deep.
const MAX_REGEX_BYTES: usize = 4096;
const MAX_REGEX_DEPTH: u32 = 64;

/// How a value is compared, with what made ready.
#[derive(Debug, Clone)]
pub(crate) enum ValueMatcher {
    /// It is there and not empty.
    Exists,
    /// The first component of the first property of the name is not empty.
    FirstExists,
    /// As it is, not folded: a UID.
    Raw(MatchOp, String),
    /// These in their order, folded; or these digits, of a phone number.
    Contains(Vec<String>, Option<String>),
    Is(String),
    BeginsWith(String),
    EndsWith(String),
    Includes(String),
    FoldedRegex(Regex),
    RawRegex(Regex),
    /// Such a number, that agrees so well; the value is read in this region.
    Phone(PhonePattern, PhoneMatch),
}

impl ValueMatcher {
    /// `None`: nothing can pass.
    pub(crate) fn from_test(test: &FieldTest) -> Option<ValueMatcher> {
        if let FieldSelector::Field(Field { field_type: FieldType::Uid, .. }) = &test.subject
            && matches!(
                test.op,
                MatchOp::Contains | MatchOp::Is | MatchOp::BeginsWith | MatchOp::EndsWith
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
            MatchOp::Contains => {
                ValueMatcher::Contains(split_phrase(&folded()), parse_phone_digits(&test.text))
            }
            MatchOp::Is => ValueMatcher::Is(folded()),
            MatchOp::BeginsWith => ValueMatcher::BeginsWith(folded()),
            MatchOp::EndsWith => ValueMatcher::EndsWith(folded()),
            MatchOp::Includes => ValueMatcher::Includes(folded()),
            MatchOp::Exists => ValueMatcher::Exists,
            MatchOp::ExistsVcard => ValueMatcher::FirstExists,
            MatchOp::RegexNormal => ValueMatcher::FoldedRegex(compile_pattern(&test.text).ok()?),
            MatchOp::RegexRaw => ValueMatcher::RawRegex(compile_pattern(&test.text).ok()?),
            MatchOp::EqPhone => phone(PhoneMatch::Exact),
            MatchOp::EqPhoneNational => phone(PhoneMatch::National),
            MatchOp::EqPhoneShort => phone(PhoneMatch::Short),
        })
    }

    /// Does a value of this field pass?
    pub(crate) fn matches_field_value(&self, field: &Field, value: &str) -> bool {
        match self {
            ValueMatcher::Contains(_, Some(number)) if field.field_type == FieldType::Phone => {
                self.matches(value) || collect_digits(value).contains(number)
            }
            _ => self.matches(value),
        }
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        match self {
            ValueMatcher::Exists | ValueMatcher::FirstExists => !value.is_empty(),
            ValueMatcher::Raw(MatchOp::Contains, text) => value.contains(text.as_str()),
            ValueMatcher::Raw(MatchOp::BeginsWith, text) => value.starts_with(text.as_str()),
            ValueMatcher::Raw(MatchOp::EndsWith, text) => value.ends_with(text.as_str()),
            ValueMatcher::Raw(_, text) => value == text,
            ValueMatcher::Contains(pieces, _) if is_ascii_foldable(value) => {
                contains_in_order(value, pieces, find_ascii)
            }
            ValueMatcher::Contains(pieces, _) => contains_parts(&fold(value), pieces),
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

/// A number that is looked for. It is read when a value is there to compare: the numbering plans
/// take longer to load than a whole answer may.
#[derive(Debug, Clone)]
pub(crate) struct PhonePattern {
    text: String,
    /// Where numbers are dialled, this one and the values.
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

/// Compiles a pattern, within bounds.
///
/// It is the `regex` crate's language, not all of PCRE's: no pattern of libebook's own looks around
/// or back, and without those a match takes time linear in the text, whoever wrote the pattern.
/// PCRE's backtracking would have to be stopped by a budget in mid-card, and a live view would then
/// miss a contact now and then.
pub(crate) fn compile_pattern(text: &str) -> Result<Regex, String> {
    if text.len() > MAX_REGEX_BYTES {
        return Err(format!("it has more than {MAX_REGEX_BYTES} bytes"));
    }
    let built = regex::RegexBuilder::new(text)
        .size_limit(MAX_REGEX_PROGRAM_BYTES)
        .dfa_size_limit(MAX_REGEX_PROGRAM_BYTES)
        .nest_limit(MAX_REGEX_DEPTH)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large when compiled".into(),
        // The crate draws the pattern and points into it; what is wrong stands in the last line.
        error => {
            let drawn = error.to_string();
            let last = drawn.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_string()
        }
    })
}

/// What a folded text has to contain, in this order: the first blank behind a word stands for
/// anything, or for nothing; so does one at the end. Other blanks belong to the words behind them.
pub(crate) fn split_phrase(folded: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut in_word, mut after_blank) = (false, false);
    for c in folded.chars() {
        if c == ' ' && in_word && !after_blank {
            after_blank = true;
            pieces.push(std::mem::take(&mut piece));
        } else {
            if c != ' ' {
                (in_word, after_blank) = (true, false);
            }
            piece.push(c);
        }
    }
    match pieces.last_mut() {
        Some(last) if after_blank => last.push_str(&piece),
        _ => pieces.push(piece),
    }
    pieces
}

/// Are the pieces in the text, each beginning behind the beginning of the one before? They may
/// overlap: `an nn` is in `anna`, as in evolution-data-server.
fn contains_in_order(text: &str, pieces: &[String], find: fn(&str, &str) -> Option<usize>) -> bool {
    let mut rest = text;
    for (nth, piece) in pieces.iter().enumerate() {
        let Some(at) = find(rest, piece) else { return false };
        if nth + 1 < pieces.len() {
            let next = rest[at..].chars().next().map_or(0, char::len_utf8);
            rest = &rest[at + next..];
        }
    }
    true
}

/// Are the pieces in a folded value, in their order?
pub(crate) fn contains_parts(folded: &str, pieces: &[String]) -> bool {
    contains_in_order(folded, pieces, |text, piece| text.find(piece))
}

/// Is folding no more than making letters small? Then that can be done while comparing, without
/// another text.
fn is_ascii_foldable(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii() && byte != 0)
}

/// Where in a [plain](is_ascii_foldable) text a folded piece begins.
fn find_ascii(text: &str, piece: &str) -> Option<usize> {
    let (text, piece) = (text.as_bytes(), piece.as_bytes());
    let Some(first) = piece.first() else { return Some(0) };
    let last = text.len().checked_sub(piece.len())?;
    let starts = text[..=last].iter().enumerate();
    starts
        .filter(|(_, byte)| byte.eq_ignore_ascii_case(first))
        .map(|(at, _)| at)
        .find(|at| text[*at..*at + piece.len()].eq_ignore_ascii_case(piece))
}

/// A free word as it is looked for.
#[derive(Debug, Clone)]
pub(crate) enum WordPattern {
    /// One or two letters: the beginning of a word.
    WordPrefix(String),
    /// Anything else: anywhere in a value; the digits of what looks like a phone number also among
    /// a number's digits.
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

    /// Is it in a value of this field?
    pub(crate) fn matches(&self, field: &Field, value: &str) -> bool {
        match self {
            WordPattern::WordPrefix(beginning) => {
                split_words(&fold(value)).any(|word| word.starts_with(beginning.as_str()))
            }
            WordPattern::Substring(text, _)
                if is_ascii_foldable(value) && find_ascii(value, text).is_some() =>
            {
                true
            }
            WordPattern::Substring(_, None) if is_ascii_foldable(value) => false,
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

/// The digits of a text that can be read as (part of) a phone number.
pub(crate) fn parse_phone_digits(text: &str) -> Option<String> {
    let digits = collect_digits(text);
    (is_number_like(text) && digits.len() >= MIN_PHONE_DIGITS).then_some(digits)
}

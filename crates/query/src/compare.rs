//! How a value passes a test: as text, as a pattern, as a phone number, as a free word.
//!
//! A text is folded, a pattern compiled and a number read once, when the question is made ready. Which values of an item are
//! looked at is found in `matcher`; this is apart because it knows texts alone.

use crate::query::{Op, Subject, Test};
use larder_format::field::{Field, Kind};
use larder_format::fold::{digits, fold, is_cjk, words};
use larder_format::phone::{Match, Number as PhoneNumber, looks_like_number};
use regex::Regex;
use std::sync::OnceLock;

/// Fewer digits than this are no part of a phone number, just a number.
pub(crate) const PHONE_DIGITS: usize = 3;
/// A pattern's program may have so many bytes, and so may the states found while it runs.
const REGEX_SIZE: usize = 1 << 20;
/// A pattern may have so many bytes, and nest so deep.
const REGEX_LENGTH: usize = 4096;
const REGEX_DEPTH: u32 = 64;

/// How a value is compared, with what made ready.
#[derive(Debug, Clone)]
pub(crate) enum Compare {
    /// It is there and not empty.
    Exists,
    /// The first component of the first property of the name is not empty.
    FirstExists,
    /// As it is, not folded: a UID.
    Raw(Op, String),
    /// These in their order, folded; or these digits, of a phone number.
    Contains(Vec<String>, Option<String>),
    Is(String),
    BeginsWith(String),
    EndsWith(String),
    Includes(String),
    Normal(Regex),
    Unfolded(Regex),
    /// Such a number, that agrees so well; the value is read in this region.
    Phone(Dialled, Match),
}

impl Compare {
    /// `None`: nothing can pass.
    pub(crate) fn of(test: &Test) -> Option<Compare> {
        if let Subject::Field(Field { kind: Kind::Uid, .. }) = &test.subject
            && matches!(test.op, Op::Contains | Op::Is | Op::BeginsWith | Op::EndsWith)
        {
            return Some(Compare::Raw(test.op, test.text.clone()));
        }
        let folded = || fold(&test.text).into_owned();
        let phone = |wanted: Match| {
            let (text, region) = (test.text.clone(), test.region.clone());
            Compare::Phone(Dialled { text, region, number: OnceLock::new() }, wanted)
        };
        Some(match test.op {
            Op::Contains => Compare::Contains(pieces(&folded()), phone_digits(&test.text)),
            Op::Is => Compare::Is(folded()),
            Op::BeginsWith => Compare::BeginsWith(folded()),
            Op::EndsWith => Compare::EndsWith(folded()),
            Op::Includes => Compare::Includes(folded()),
            Op::Exists => Compare::Exists,
            Op::ExistsVcard => Compare::FirstExists,
            Op::RegexNormal => Compare::Normal(pattern(&test.text).ok()?),
            Op::RegexRaw => Compare::Unfolded(pattern(&test.text).ok()?),
            Op::EqPhone => phone(Match::Exact),
            Op::EqPhoneNational => phone(Match::National),
            Op::EqPhoneShort => phone(Match::Short),
        })
    }

    /// Does a value of this field pass?
    pub(crate) fn passes_in(&self, field: &Field, value: &str) -> bool {
        match self {
            Compare::Contains(_, Some(number)) if field.kind == Kind::Phone => {
                self.passes(value) || digits(value).contains(number)
            }
            _ => self.passes(value),
        }
    }

    pub(crate) fn passes(&self, value: &str) -> bool {
        match self {
            Compare::Exists | Compare::FirstExists => !value.is_empty(),
            Compare::Raw(Op::Contains, text) => value.contains(text.as_str()),
            Compare::Raw(Op::BeginsWith, text) => value.starts_with(text.as_str()),
            Compare::Raw(Op::EndsWith, text) => value.ends_with(text.as_str()),
            Compare::Raw(_, text) => value == text,
            Compare::Contains(pieces, _) if is_plain(value) => in_order(value, pieces, find_plain),
            Compare::Contains(pieces, _) => contains_pieces(&fold(value), pieces),
            Compare::Is(text) if is_plain(value) => value.eq_ignore_ascii_case(text),
            Compare::Is(text) => fold(value) == text.as_str(),
            Compare::BeginsWith(text) if is_plain(value) => {
                value.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
            }
            Compare::BeginsWith(text) => fold(value).starts_with(text.as_str()),
            Compare::EndsWith(text) if is_plain(value) => value
                .len()
                .checked_sub(text.len())
                .and_then(|start| value.get(start..))
                .is_some_and(|end| end.eq_ignore_ascii_case(text)),
            Compare::EndsWith(text) => fold(value).ends_with(text.as_str()),
            Compare::Includes(text) => fold(value).contains(text.as_str()),
            Compare::Normal(pattern) => pattern.is_match(&fold(value)),
            Compare::Unfolded(pattern) => pattern.is_match(value),
            Compare::Phone(dialled, wanted) => dialled.agrees(value, *wanted),
        }
    }
}

/// A number that is looked for. It is read when a value is there to compare: the numbering plans take longer to load
/// than a whole answer may.
#[derive(Debug, Clone)]
pub(crate) struct Dialled {
    text: String,
    /// Where numbers are dialled, this one and the values.
    region: Option<String>,
    number: OnceLock<Option<PhoneNumber>>,
}

impl Dialled {
    fn agrees(&self, value: &str, wanted: Match) -> bool {
        let read = |text: &str| PhoneNumber::parse(text, self.region.as_deref());
        let Some(number) = self.number.get_or_init(|| read(&self.text)) else { return false };
        read(value).is_some_and(|found| found.compare(number) >= wanted)
    }
}

/// Compiles a pattern, within bounds.
///
/// It is the `regex` crate's language, not all of PCRE's: no pattern of libebook's own looks around or back, and
/// without those a match takes time linear in the text, whoever wrote the pattern. PCRE's backtracking would
/// have to be stopped by a budget in mid-card, and a live view would then miss a contact now and then.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    if text.len() > REGEX_LENGTH {
        return Err(format!("it has more than {REGEX_LENGTH} bytes"));
    }
    let built = regex::RegexBuilder::new(text)
        .size_limit(REGEX_SIZE)
        .dfa_size_limit(REGEX_SIZE)
        .nest_limit(REGEX_DEPTH)
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

/// What a folded text has to contain, in this order: the first blank behind a word stands for anything, or for
/// nothing; so does one at the end. Other blanks belong to the words behind them.
pub(crate) fn pieces(folded: &str) -> Vec<String> {
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

/// Are the pieces in the text, each beginning behind the beginning of the one before? They may overlap:
/// `an nn` is in `anna`, as in evolution-data-server.
fn in_order(text: &str, pieces: &[String], find: fn(&str, &str) -> Option<usize>) -> bool {
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
pub(crate) fn contains_pieces(folded: &str, pieces: &[String]) -> bool {
    in_order(folded, pieces, |text, piece| text.find(piece))
}

/// Is folding no more than making letters small? Then that can be done while comparing, without another text.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii() && byte != 0)
}

/// Where in a [plain](is_plain) text a folded piece begins.
fn find_plain(text: &str, piece: &str) -> Option<usize> {
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

    /// Is it in a value of this field?
    pub(crate) fn is_in(&self, field: &Field, value: &str) -> bool {
        match self {
            Needle::Beginning(beginning) => {
                words(&fold(value)).any(|word| word.starts_with(beginning.as_str()))
            }
            Needle::Anywhere(text, _) if is_plain(value) && find_plain(value, text).is_some() => {
                true
            }
            Needle::Anywhere(_, None) if is_plain(value) => false,
            Needle::Anywhere(text, number) => {
                let folded = fold(value);
                let has_digits = |number: &String| digits(&folded).contains(number);
                folded.contains(text.as_str())
                    || (field.kind == Kind::Phone && number.as_ref().is_some_and(has_digits))
            }
        }
    }
}

/// The digits of a text that can be read as (part of) a phone number.
pub(crate) fn phone_digits(text: &str) -> Option<String> {
    let digits = digits(text);
    (looks_like_number(text) && digits.len() >= PHONE_DIGITS).then_some(digits)
}

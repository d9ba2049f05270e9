//! Phone numbers: parsing, and comparison across spellings.
//!
//! `0664/123 45 67`, `+43 (664) 1234567` and `0043-664-1234567` are one number, which follows only
//! from the numbering plans of the countries. These come from Google's libphonenumber through one
//! crate, behind the feature `phone`; without the feature only digits are compared. Nothing here
//! formats or validates numbers.
//!
//! The comparison follows evolution-data-server, and so libphonenumber's `IsNumberMatch`: a country
//! code that was not written is unknown, even if a region helped to parse the number.

#[cfg(not(feature = "phone"))]
mod digits_only;
#[cfg(feature = "phone")]
mod numbering_plans;

#[cfg(not(feature = "phone"))]
use digits_only as plans;
#[cfg(feature = "phone")]
use numbering_plans as plans;

use crate::fold::collect_digits;

/// Longer texts are not numbers (libphonenumber's limit).
const MAX_NUMBER_BYTES: usize = 250;
/// The number of digits of a national number (libphonenumber's limits).
const NATIONAL_DIGITS: std::ops::RangeInclusive<usize> = 2..=17;

/// The number of digits of an unambiguous extension; more may be another number.
const EXTENSION_DIGITS: std::ops::RangeInclusive<usize> = 1..=6;

/// Words before an extension, longer ones first (a selection of libphonenumber's).
const EXTENSION_MARKS: &[&str] =
    &["extension", "extn", "ext", "xtn", "xt", "доб", "anexo", "int", "x", "#"];

/// A phone number in the form that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParsedPhoneNumber {
    /// The country calling code if it was written, otherwise 0.
    pub country: u16,
    /// The national number: ASCII digits without leading zeros.
    pub national: String,
    /// The extension; usually empty.
    pub extension: String,
}

/// How well two numbers match, from not at all to exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhoneMatch {
    /// The numbers differ.
    None,
    /// One number ends with the other, or only one has an extension; the country codes do not
    /// differ.
    Short,
    /// The national numbers are equal, and a country code is unknown.
    National,
    /// Country code, number and extension are equal and known.
    Exact,
}

impl ParsedPhoneNumber {
    /// Parses a number. `region`, a two-letter country code (`AT`), decides the trunk prefix (`0`,
    /// in Russia `8`) and the international prefix (`00`, in America `011`) of a number without a
    /// country code. Without a region these are `0` and `00`. `None` if the text is not a number.
    #[must_use]
    pub fn parse(text: &str, region: Option<&str>) -> Option<ParsedPhoneNumber> {
        if text.len() > MAX_NUMBER_BYTES {
            return None;
        }
        plans::parse(text, region)
    }

    /// Returns how well the two match.
    #[must_use]
    pub fn compare(&self, other: &ParsedPhoneNumber) -> PhoneMatch {
        let both_known = self.country != 0 && other.country != 0;
        let extensions = self.extension != other.extension;
        if (extensions && !self.extension.is_empty() && !other.extension.is_empty())
            || (both_known && self.country != other.country)
        {
            return PhoneMatch::None;
        }
        if !extensions && self.national == other.national {
            return if both_known { PhoneMatch::Exact } else { PhoneMatch::National };
        }
        let ends =
            self.national.ends_with(&other.national) || other.national.ends_with(&self.national);
        if ends { PhoneMatch::Short } else { PhoneMatch::None }
    }
}

/// The fingerprint of the numbering plans that [`ParsedPhoneNumber::parse`] uses. It is stored with
/// parsed numbers, together with the region; numbers are parsed again when either changes.
#[must_use]
pub fn fingerprint() -> &'static str {
    plans::FINGERPRINT
}

/// Returns whether the text has only digits and the punctuation of phone numbers, so that it may be
/// part of a number. True for empty text.
#[must_use]
pub fn is_number_like(text: &str) -> bool {
    const NUMBER_PUNCTUATION: &str = "+＋-‐‑‒–—−－()（）[].．·,/／~";
    text.chars().all(|c| c.is_numeric() || c.is_whitespace() || NUMBER_PUNCTUATION.contains(c))
}

/// Returns the part of a text whose last digits are certainly the last digits of its number: all of
/// it, or the part before an extension. `None` if letters may stand for digits.
#[must_use]
pub fn find_number_part(text: &str) -> Option<&str> {
    let in_number = |c: char| {
        c.is_numeric() || (is_number_like(c.encode_utf8(&mut [0; 4])) && !",~～".contains(c))
    };
    let end = text.find(|c| !in_number(c)).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let is_extension = || {
        let rest = rest.trim_start_matches([',', ';', ' ']).to_lowercase();
        let digits = EXTENSION_MARKS.iter().find_map(|mark| rest.strip_prefix(mark))?;
        let digits = digits.trim_start_matches(['.', ':', '=', ' ']);
        (EXTENSION_DIGITS.contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then_some(())
    };
    let enough = collect_digits(number).len() > *NATIONAL_DIGITS.start();
    (rest.is_empty() || (enough && is_extension().is_some())).then_some(number)
}

/// Returns how many final digits of a [number part](find_number_part) certainly belong to the
/// national number, whatever the country; the digits before may be prefixes. After a plus sign, the
/// country code and one trunk digit may precede; after a possible international prefix, that
/// prefix, zeros and nine more; otherwise a trunk prefix and a carrier code.
#[must_use]
pub fn count_certain_digits(number: &str) -> usize {
    let digits = collect_digits(number);
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    let abroad = || ["01", "81", "11", "99"].iter().any(|abroad| digits.starts_with(abroad));
    let dialled = match zeros {
        zeros if number.contains(['+', '＋']) => zeros + 5,
        zeros if zeros > 1 || abroad() => zeros + 9,
        zeros => zeros + 4,
    };
    digits.len().saturating_sub(dialled)
}

/// Returns whether this is a two-letter region with a known numbering plan.
#[must_use]
pub fn is_region(region: &str) -> bool {
    plans::is_region(region)
}

/// Parses a number by its digits alone, with a leading `0`, `00` or `+`. The country code cannot be
/// separated from the rest.
fn parse_digits(text: &str) -> Option<ParsedPhoneNumber> {
    let digits = collect_digits(text);
    let national = digits.trim_start_matches('0');
    (is_number_like(text) && NATIONAL_DIGITS.contains(&national.len())).then(|| ParsedPhoneNumber {
        country: 0,
        national: national.to_string(),
        extension: String::new(),
    })
}

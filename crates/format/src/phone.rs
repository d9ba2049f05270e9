//! Phone numbers: is what one person wrote the number that another one wrote?
//!
//! `0664/123 45 67`, `+43 (664) 1234567` and `0043-664-1234567` are one number, and only the
//! numbering plans of the countries say so. They come from Google's libphonenumber, through one
//! crate, behind the feature `phone`; without it, only digits are compared. Nothing here formats or
//! validates numbers.
//!
//! How two numbers compare follows evolution-data-server, and so libphonenumber's `IsNumberMatch`:
//! a country that the writer left out is unknown, even where a region helped to read the number.

#[cfg(not(feature = "phone"))]
mod digits_only;
#[cfg(feature = "phone")]
mod numbering_plans;

#[cfg(not(feature = "phone"))]
use digits_only as plans;
#[cfg(feature = "phone")]
use numbering_plans as plans;

use crate::fold::collect_digits;

/// Longer texts are no numbers (libphonenumber's limit).
const MAX_NUMBER_BYTES: usize = 250;
/// The fewest and the most digits of a number within a country (libphonenumber's limits).
const NATIONAL_DIGITS: std::ops::RangeInclusive<usize> = 2..=17;

/// Digits of what is certain to be an extension; more may be another number.
const EXTENSION_DIGITS: std::ops::RangeInclusive<usize> = 1..=6;

/// What people write before an extension, the longer ones first (of those that libphonenumber
/// knows).
const EXTENSION_MARKS: &[&str] =
    &["extension", "extn", "ext", "xtn", "xt", "доб", "anexo", "int", "x", "#"];

/// A phone number as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParsedPhoneNumber {
    /// The country's calling code, if it was written: 0 is unknown.
    pub country: u16,
    /// The number within the country: ASCII digits, without zeros in front.
    pub national: String,
    /// The extension behind it; mostly empty.
    pub extension: String,
}

/// How well two numbers agree, from not at all to entirely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhoneMatch {
    /// They are two numbers.
    None,
    /// One ends with the other, or only one has an extension; the countries do not differ.
    Short,
    /// The numbers within the country are the same, and a country is unknown.
    National,
    /// Country, number and extension are the same, and both are known.
    Exact,
}

impl ParsedPhoneNumber {
    /// Reads a number. `region`, the two letters of a country (`AT`), says how numbers are written
    /// where no country is: which digits one dials before them (`0`, in Russia `8`), and before a
    /// country (`00`, in America `011`). Without a region those are `0` and `00`. `None`: it is no
    /// number.
    #[must_use]
    pub fn parse(text: &str, region: Option<&str>) -> Option<ParsedPhoneNumber> {
        if text.len() > MAX_NUMBER_BYTES {
            return None;
        }
        plans::parse(text, region)
    }

    /// How well the two agree.
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

/// Names the numbering plans that [`ParsedPhoneNumber::parse_locale`] reads by. Whoever stores
/// parsed numbers stores this with them, and the region, and reads them again when either changes.
#[must_use]
pub fn fingerprint() -> &'static str {
    plans::FINGERPRINT
}

/// Has it nothing in it but digits and what people write between them? It may be part of a number,
/// then, or empty.
#[must_use]
pub fn is_number_like(text: &str) -> bool {
    const NUMBER_PUNCTUATION: &str = "+＋-‐‑‒–—−－()（）[].．·,/／~";
    text.chars().all(|c| c.is_numeric() || c.is_whitespace() || NUMBER_PUNCTUATION.contains(c))
}

/// The part of a text whose last digits are certain to be the last ones of the number in it: all of
/// it, or what is before an extension. `None`: nothing is certain, since there are letters in it
/// that may stand for digits.
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

/// How many digits at the end of a [number part](find_number_part) are certain to be within the
/// country, whatever the country; what is before them may be dialled to get there. Behind a plus
/// that is the country, and one digit to leave it behind; where it may begin with the digits for
/// abroad, these, any zeros and nine more; else those for a call within the country, and for its
/// carrier.
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

/// Are these the two letters of a region whose numbering plan is known?
#[must_use]
pub fn is_region(region: &str) -> bool {
    plans::is_region(region)
}

/// Reads a number by its digits alone, with `0` before it or `00` or `+` before the country, whose
/// code cannot be told from the rest.
fn parse_digits(text: &str) -> Option<ParsedPhoneNumber> {
    let digits = collect_digits(text);
    let national = digits.trim_start_matches('0');
    (is_number_like(text) && NATIONAL_DIGITS.contains(&national.len())).then(|| ParsedPhoneNumber {
        country: 0,
        national: national.to_string(),
        extension: String::new(),
    })
}

//! The comparison of phone numbers: by their digits if these decide it, otherwise by the numbering
//! plans.
//!
//! Separate from `duplicates` because it does not depend on cards. `larder_format::phone` defines
//! `eqphone_national`; this module computes it with as little use of the plans as possible, and
//! within bounds.

use larder_format::fold::collect_digits;
use larder_format::phone::{ParsedPhoneNumber, PhoneMatch, find_number_part};
use std::collections::HashMap;

/// A number with fewer digits is an extension or a short code.
const MIN_DIGITS: usize = 6;
/// A text with more digits is several numbers, or none.
const MAX_DIGITS: usize = 20;
/// The number of final digits by which numbers are looked up.
const LOOKUP_DIGITS: usize = 7;
/// The number of digits of a country code.
const COUNTRY_CODE_DIGITS: std::ops::RangeInclusive<usize> = 1..=3;
/// The maximum number of digits of a trunk prefix, besides zeros.
const MAX_TRUNK_PREFIX_DIGITS: usize = 2;
/// The maximum number of pairs of numbers that are compared for a value: fifty cards with one
/// number each need a third of it. Other pairs must be equal as dialled.
pub(super) const MAX_COMPARED_PAIRS: usize = 4096;
/// The maximum number of phone numbers whose parsed form is cached.
const MAX_CACHED_NUMBERS: usize = 1024;

/// A phone number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DialledNumber {
    /// The dialled characters: an optional plus, at most two zeros, and the digits.
    dialled: String,
    extension: String,
}

impl DialledNumber {
    pub(super) fn parse(text: &str, region: Option<&str>) -> Option<DialledNumber> {
        let text = text.trim();
        let part = find_number_part(text).unwrap_or_else(|| {
            // Text after a complete number is an extension, regardless of the word that introduces
            // it.
            text.find(char::is_alphabetic).map_or(text, |letter| text.split_at(letter).0)
        });
        let before = part.split(char::is_numeric).next().unwrap_or_default();
        let mut plus = before.contains(['+', '\u{ff0b}']);
        // The zero of "(0)" is not dialled after a country code.
        let mut all =
            collect_digits(&if plus { part.replacen("(0)", "", 1) } else { part.to_string() });
        let mut extension = text.get(part.len()..).map(collect_digits).unwrap_or_default();
        if all.len() < MIN_DIGITS && part.len() < text.len() {
            // Letters stand for digits.
            let number = ParsedPhoneNumber::parse(text, region)?;
            plus = number.country != 0;
            let country = if plus { number.country.to_string() } else { String::new() };
            (all, extension) = (country + &number.national, number.extension);
        }
        let digits = all.trim_start_matches('0');
        let zeros = "00".get(..all.len() - digits.len()).unwrap_or("00");
        let dialled = format!("{}{zeros}{digits}", if plus { "+" } else { "" });
        let phone = DialledNumber { dialled, extension };
        // A country code is followed by at least seven digits.
        let least = if phone.has_country_code() { MIN_DIGITS + 2 } else { MIN_DIGITS };
        (least..=MAX_DIGITS).contains(&phone.digits().len()).then_some(phone)
    }

    /// Returns the digits without leading zeros.
    fn digits(&self) -> &str {
        self.dialled.trim_start_matches(['+', '0'])
    }

    /// Returns whether the number begins with a plus and a country code.
    fn is_international(&self) -> bool {
        self.dialled.starts_with('+')
    }

    /// Returns whether the number probably begins with a country code.
    fn has_country_code(&self) -> bool {
        self.is_international() || self.dialled.starts_with("00")
    }

    /// Returns the final digits by which the number is looked up; for a number that may be a short
    /// number after a country code, also shorter suffixes.
    pub(super) fn lookup_suffixes(&self) -> impl Iterator<Item = &str> {
        let digits = self.digits();
        let end = |number: usize| digits.get(digits.len().checked_sub(number)?..);
        let tail = digits.len() - MIN_DIGITS;
        let few = tail == 0 || (self.has_country_code() && COUNTRY_CODE_DIGITS.contains(&tail));
        end(LOOKUP_DIGITS).into_iter().chain(end(MIN_DIGITS).filter(|_| few))
    }

    /// Returns whether the numbers are equal by `eqphone_national`; `None` if the digits do not
    /// decide it.
    fn compare_digits(&self, other: &DialledNumber) -> Option<bool> {
        if self.extension != other.extension {
            return Some(false);
        }
        if self.is_international() == other.is_international()
            && self.digits().len() == other.digits().len()
        {
            return Some(self.digits() == other.digits());
        }
        let (short, long) = match self.digits().len() < other.digits().len() {
            true => (self, other),
            false => (other, self),
        };
        let ends = short.digits().bytes().rev().zip(long.digits().bytes().rev());
        let same = ends.take_while(|(a, b)| a == b).count();
        let (more, rest) = (long.digits().len() - same, short.digits().len() - same);
        let plain = rest == 0 && long.is_international() && !short.is_international();
        if plain && COUNTRY_CODE_DIGITS.contains(&more) {
            return Some(true);
        }
        // The digits before the common ones must be a trunk prefix or a country code.
        let (all, least) = match (long.is_international(), short.is_international()) {
            (true, true) => (2 * MAX_TRUNK_PREFIX_DIGITS, MAX_TRUNK_PREFIX_DIGITS),
            (true, false) => (*COUNTRY_CODE_DIGITS.end(), MAX_TRUNK_PREFIX_DIGITS),
            (false, true) => (MAX_TRUNK_PREFIX_DIGITS, *COUNTRY_CODE_DIGITS.end()),
            (false, false) => {
                (MAX_TRUNK_PREFIX_DIGITS + COUNTRY_CODE_DIGITS.end(), MAX_TRUNK_PREFIX_DIGITS)
            }
        };
        if more <= all && rest <= least { None } else { Some(false) }
    }
}

/// Compares numbers by the numbering plans. They are slow and take much memory, so they are used
/// only if the digits do not decide, and once for each number.
#[derive(Default)]
pub(super) struct PhoneComparer<'a> {
    pub(super) region: Option<&'a str>,
    pub(super) cached_numbers: HashMap<String, Option<ParsedPhoneNumber>>,
    /// The number of pairs that may still be compared.
    pub(super) pairs_left: usize,
}

impl PhoneComparer<'_> {
    pub(super) fn compare(&mut self, a: &DialledNumber, b: &DialledNumber) -> bool {
        if a == b || self.pairs_left == 0 {
            return a == b;
        }
        self.pairs_left -= 1;
        if let Some(known) = a.compare_digits(b) {
            return known;
        }
        if self.cached_numbers.len() + 2 > MAX_CACHED_NUMBERS {
            self.cached_numbers.clear();
        }
        for phone in [a, b].map(|phone| &phone.dialled) {
            if !self.cached_numbers.contains_key(phone) {
                self.cached_numbers
                    .insert(phone.clone(), ParsedPhoneNumber::parse(phone, self.region));
            }
        }
        let read = |phone: &DialledNumber| self.cached_numbers.get(&phone.dialled)?.as_ref();
        read(a).is_some_and(|a| read(b).is_some_and(|b| a.compare(b) >= PhoneMatch::National))
    }

    /// Returns for each value the indexes of equal values. A value that is not a number equals
    /// itself only.
    pub(super) fn group_equal(&mut self, values: &[Option<&DialledNumber>]) -> Vec<Vec<usize>> {
        let mut same: Vec<Vec<usize>> = (0..values.len()).map(|place| vec![place]).collect();
        let phones = || values.iter().enumerate().filter_map(|(at, it)| Some((at, (*it)?)));
        for (number, (at, phone)) in phones().enumerate() {
            for (other, known) in phones().take(number) {
                if self.pairs_left == 0 {
                    return same;
                }
                if self.compare(phone, known) {
                    same.get_mut(at).into_iter().for_each(|same| same.push(other));
                    same.get_mut(other).into_iter().for_each(|same| same.push(at));
                }
            }
        }
        same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many numbers with one ending as fifty cards may have, with different leading digits.
    #[test]
    fn comparisons_are_bounded() {
        let number = |at: usize| DialledNumber::parse(&format!("{at}1234567"), Some("AT"));
        let many: Vec<DialledNumber> = (0..3200).filter_map(number).collect();
        let mut plans = PhoneComparer {
            region: Some("AT"),
            pairs_left: MAX_COMPARED_PAIRS,
            ..PhoneComparer::default()
        };
        let same = plans.group_equal(&many.iter().map(Some).collect::<Vec<_>>());
        assert_eq!((same.len(), plans.pairs_left), (many.len(), 0));
        // Each number is parsed once, and only the compared ones.
        assert!((2..=92).contains(&plans.cached_numbers.len()), "{}", plans.cached_numbers.len());
        let (few, read) =
            (many.iter().take(8).map(Some).collect::<Vec<_>>(), plans.cached_numbers.len());
        plans.pairs_left = MAX_COMPARED_PAIRS;
        plans.group_equal(&few);
        assert_eq!(
            (plans.pairs_left, plans.cached_numbers.len()),
            (MAX_COMPARED_PAIRS - 8 * 7 / 2, read)
        );
    }
}

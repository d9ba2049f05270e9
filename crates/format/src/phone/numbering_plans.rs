//! With the numbering plans of libphonenumber.

use super::ParsedPhoneNumber;
use rlibphonenumber::{CountryCodeSource, PhoneNumber, PhoneNumberUtil, Region};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

/// The version of the crate stands for that of its metadata (9.0.42); a test holds it to the lock
/// file.
pub(super) const FINGERPRINT: &str = "rlibphonenumber 2.2.15, rules 1";

/// Made when the first number is read, in some milliseconds; reading one then takes half a
/// microsecond.
static NUMBERING_PLANS: LazyLock<Option<PhoneNumberUtil>> =
    LazyLock::new(|| PhoneNumberUtil::new().ok());

pub(super) fn parse(text: &str, region: Option<&str>) -> Option<ParsedPhoneNumber> {
    let text = text.trim();
    let region = region.and_then(find_region);
    if region.is_some() || is_international(text) {
        return parse_with_plans(text, region);
    }
    // Nobody says where we are: nearly everywhere, 00 comes before a country.
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    match bare.strip_prefix("00") {
        Some(rest) if !rest.starts_with('0') => parse_with_plans(&format!("+{rest}"), None),
        _ => None,
    }
    .or_else(|| super::parse_digits(text))
}

pub(super) fn is_region(region: &str) -> bool {
    find_region(region).is_some()
}

fn find_region(region: &str) -> Option<Region> {
    let region: Region = region.to_ascii_uppercase().parse().ok()?;
    NUMBERING_PLANS.as_ref()?.get_country_code_for_region(region).map(|_| region)
}

fn is_international(text: &str) -> bool {
    let text = text.strip_prefix("tel:").unwrap_or(text);
    let mut chars = text.chars().skip_while(|c| c.is_whitespace() || "([".contains(*c));
    matches!(chars.next(), Some('+' | '\u{ff0b}')) || text.contains(";phone-context=+")
}

fn parse_with_plans(text: &str, region: Option<Region>) -> Option<ParsedPhoneNumber> {
    let plans = NUMBERING_PLANS.as_ref()?;
    // The crate panics where a pattern in its own metadata is wrong. Numbers come from anybody's
    // cards, and none of them may end a program: what makes it panic is no number.
    let parse = AssertUnwindSafe(|| plans.parse_and_keep_raw_input(text, region));
    let parsed: PhoneNumber = catch_unwind(parse).ok()?.ok()?;
    let written = matches!(
        parsed.country_code_source(),
        CountryCodeSource::FromNumberWithPlusSign | CountryCodeSource::FromNumberWithIdd
    );
    Some(ParsedPhoneNumber {
        country: if written { u16::try_from(parsed.country_code).ok()? } else { 0 },
        national: parsed.national_number.to_string(),
        extension: parsed.extension.unwrap_or_default(),
    })
}

//! Phone numbers with the numbering plans of libphonenumber.

use super::ParsedPhoneNumber;
use rlibphonenumber::{CountryCodeSource, PhoneNumber, PhoneNumberUtil, Region};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

/// The version of the crate identifies its metadata (9.0.42); a test compares it with the lock
/// file.
pub(super) const FINGERPRINT: &str = "rlibphonenumber 2.2.15, rules 1";

/// Loaded when the first number is parsed, which takes some milliseconds; parsing a number then
/// takes half a microsecond.
static NUMBERING_PLANS: LazyLock<Option<PhoneNumberUtil>> =
    LazyLock::new(|| PhoneNumberUtil::new().ok());

pub(super) fn parse(text: &str, region: Option<&str>) -> Option<ParsedPhoneNumber> {
    let text = text.trim();
    let region = region.and_then(find_region);
    if region.is_some() || is_international(text) {
        return parse_with_plans(text, region);
    }
    // The region is unknown; 00 is the international prefix in most countries.
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
    // The crate panics on an invalid pattern in its own metadata. Numbers come from untrusted
    // cards, so a panic means "not a number" instead of the end of the program.
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

//! Phone numbers without numbering plans: digits only.

use super::ParsedPhoneNumber;

pub(super) const FINGERPRINT: &str = "digits 1";

pub(super) fn parse(text: &str, _region: Option<&str>) -> Option<ParsedPhoneNumber> {
    super::parse_digits(text.trim().trim_start_matches("tel:"))
}

pub(super) fn is_region(_region: &str) -> bool {
    false
}

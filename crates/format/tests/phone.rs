//! Phone numbers: as people write them, and as evolution-data-server compares them.

use larder_format::phone::{ParsedPhoneNumber, PhoneMatch, fingerprint, is_number_like, is_region};
use proptest::prelude::*;

#[track_caller]
fn parse_number(text: &str, region: &str) -> Option<(u16, String, String)> {
    let region = Some(region).filter(|region| !region.is_empty());
    ParsedPhoneNumber::parse(text, region)
        .map(|number| (number.country, number.national, number.extension))
}

#[test]
fn written_numbers_are_parsed() {
    for (text, region, expect) in [
        ("+43 664 1234567", "", Some((43, "6641234567", ""))),
        ("+43 (0)664 123 45-67", "AT", Some((43, "6641234567", ""))),
        ("0043 664 1234567", "AT", Some((43, "6641234567", ""))),
        ("0043 664 1234567", "", Some((43, "6641234567", ""))),
        ("0664/1234567", "AT", Some((0, "6641234567", ""))),
        ("0664/1234567", "at", Some((0, "6641234567", ""))),
        // Without a region, or with an unknown one, numbers are compared by their digits.
        ("0664/1234567", "", Some((0, "6641234567", ""))),
        ("0664/1234567", "XX", Some((0, "6641234567", ""))),
        ("tel:+43-664-1234567", "", Some((43, "6641234567", ""))),
        ("tel:664-1234;phone-context=+43", "", Some((43, "6641234", ""))),
        ("011 43 664 1234567", "US", Some((43, "6641234567", ""))),
        ("(212) 555-0123", "US", Some((0, "2125550123", ""))),
        ("1-212-555-0123 x17", "US", Some((0, "2125550123", "17"))),
        ("8 (916) 123-45-67", "RU", Some((0, "9161234567", ""))),
        ("06 1234 5678", "IT", Some((0, "612345678", ""))),
        ("+39 06 1234 5678", "", Some((39, "612345678", ""))),
        ("1-800-FLOWERS", "US", Some((0, "8003569377", ""))),
        ("٠٦٦٤١٢٣٤٥٦٧", "AT", Some((0, "6641234567", ""))),
        ("＋４３ ６６４ １２３４５６７", "", Some((43, "6641234567", ""))),
        ("1", "AT", None),
        ("anna", "AT", None),
        ("anna", "", None),
        ("", "AT", None),
        ("+", "", None),
        ("+999 123456", "", None),
        ("123456789012345678901", "", None),
    ] {
        let expect = expect.map(|(country, national, extension): (u16, &str, &str)| {
            (country, national.to_string(), extension.to_string())
        });
        assert_eq!(parse_number(text, region), expect, "{text:?} in {region:?}");
    }
    assert_eq!(ParsedPhoneNumber::parse(&"1".repeat(251), Some("AT")), None);
}

/// The table of evolution-data-server's test-book-client-custom-summary.c, and more.
#[test]
fn numbers_compare_by_their_parts() {
    for (a, b, expect) in [
        ("+1 221.542.3789", "+1-221-5423789", PhoneMatch::Exact),
        ("+1 221.542.3789", "+31-221-5423789", PhoneMatch::None),
        ("+49 408.765.5050", "408 765-5050", PhoneMatch::National),
        ("+49 408.765.5050", "+1 408 765-5050", PhoneMatch::None),
        ("+49 408.765.5050", "+49 408 765-5050", PhoneMatch::Exact),
        ("408.765.5050", "408 765-5050", PhoneMatch::National),
        ("408.765.5050", "+1 408 765-5050", PhoneMatch::National),
        ("408.765.5050", "+49 408 765-5050", PhoneMatch::National),
        ("221.542.3789", "+31-221-5423789", PhoneMatch::National),
        ("+49 514-845-8436", "514-845-8436", PhoneMatch::National),
        ("5423789", "+1-221-5423789", PhoneMatch::Short),
        ("765-5050", "408 765-5050", PhoneMatch::Short),
        ("765-5050", "+49 408 765-5050", PhoneMatch::Short),
        ("+1 212 555 0123 x1", "+1 212 555 0123", PhoneMatch::Short),
        ("+1 212 555 0123 x1", "+1 212 555 0123 x2", PhoneMatch::None),
        ("+1 212 555 0123 x1", "+1 212 555 0123 ext. 1", PhoneMatch::Exact),
        ("212 555 0123", "212 555 0124", PhoneMatch::None),
    ] {
        let read = |text| ParsedPhoneNumber::parse(text, Some("US")).expect(text);
        assert_eq!(read(a).compare(&read(b)), expect, "{a} and {b}");
        assert_eq!(read(b).compare(&read(a)), expect, "{b} and {a}");
    }
    assert!(PhoneMatch::Exact > PhoneMatch::National && PhoneMatch::Short > PhoneMatch::None);
}

#[test]
fn only_texts_like_numbers_are_parsed() {
    for (text, expect) in [
        ("", true),
        ("+43 (0)664/123.45-67", true),
        ("［", false),
        ("０３－１２３４", true),
        ("(212)\u{a0}555–0123", true),
        ("٠٦٦٤", true),
        ("x1", false),
        ("#1", false),
    ] {
        assert_eq!(is_number_like(text), expect, "{text:?}");
    }
}

#[test]
fn regions_are_known_by_code() {
    for (name, expect) in [
        ("AT", true),
        ("us", true),
        ("XX", false),
        ("ZZ", false),
        ("", false),
        ("A", false),
        ("de_AT", false),
        ("ÄÖ", false),
    ] {
        assert_eq!(is_region(name), expect, "{name:?}");
    }
}

/// The metadata of every region can be read. The crate detects damage only when it parses a number
/// of the region.
#[test]
fn every_region_reads_numbers() {
    let letters = || (b'A'..=b'Z').map(char::from);
    let mut regions = 0;
    for region in letters().flat_map(|a| letters().map(move |b| format!("{a}{b}"))) {
        if is_region(&region) {
            regions += 1;
            for text in [
                "0123456789",
                "1234567",
                "8123456789",
                "00 44 20 7946 0000",
                "+44 20 7946 0000",
                "12",
            ] {
                if let Some(number) = ParsedPhoneNumber::parse(text, Some(&region)) {
                    assert!(!number.national.starts_with('0') && !number.national.is_empty());
                }
            }
        }
    }
    assert!(regions > 240, "{regions}");
}

#[test]
fn the_fingerprint_names_the_locked_version() {
    let lock = include_str!("../../../Cargo.lock");
    let (_, tail) = lock.split_once("name = \"rlibphonenumber\"\nversion = \"").expect("locked");
    let version = tail.split('"').next().expect("a version");
    assert!(fingerprint().starts_with(&format!("rlibphonenumber {version}, ")), "{version}");
}

proptest! {
    #[test]
    fn nothing_panics(text in any::<String>(), number in "[+0-9 ()./;=a-zäx\u{660}-\u{669}-]{0,40}", tel in "(tel:)?[+0-9]{0,12}(;(phone-context|isub|ext)=[+a-z0-9.]{0,8}){0,3}") {
        for text in [&text, &number, &tel] {
            for region in [None, Some("AT"), Some("US"), Some("IT"), Some("BR"), Some(text.as_str())] {
                if let Some(number) = ParsedPhoneNumber::parse(text, region) {
                    prop_assert!(number.national.bytes().all(|byte| byte.is_ascii_digit()));
                    prop_assert!(number.compare(&number) >= PhoneMatch::National);
                }
            }
        }
    }
}

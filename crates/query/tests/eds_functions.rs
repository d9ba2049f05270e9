//! The address-book functions of evolution-data-server, with their edge cases. The expected results
//! are the results of its evaluator in memory (`e-book-backend-sexp.c`), with the folding of its
//! SQL evaluator; "differs" marks a deliberate difference.

use crate::book::{Book, card, search_request, uids};
use larder_format::field::find_eds_field;
use larder_query::{Query, QueryContext};
use std::fmt::Write as _;

fn book() -> Book {
    let cards = [
        "UID:anna\nFN:Anna Maria Smith\nN:Smith;Anna;Maria;;\nNICKNAME:Annie\nEMAIL:Anna@Example.org\nEMAIL:as@work.example
         TEL;TYPE=CELL:+1 221-542-3789\nORG:Müller & Söhne;Verkauf\nX-FOO:bar baz\nX-EMPTY:\nNOTE:first\\nsecond\nCATEGORIES:Chess,Friends",
        "UID:jurgen\nFN:Jürgen Groß\nN:Groß;Jürgen;;;\nTEL:408 765-5050\nTITLE:Cheﬁngenieur\nX-AIM;TYPE=HOME:juergen\nREV:2026-01-01T00:00:00Z",
        "UID:Us\nFN:US One\nTEL:+1 408 765-5050\nX-EVOLUTION-LIST:TRUE\nURL:https://example.org/~us\nBDAY:1970-02-28",
        "UID:de\nFN:DE One\nTEL:+49 408 765-5050\nPHOTO;ENCODING=b:QUFB\nADR;TYPE=HOME:;;Gasse 1;Wien;;1010;Austria\nN:;Otto",
    ]
    .map(card);
    Book::with_contacts(cards.iter().map(String::as_str))
}

const ALL: &[&str] = &["anna", "jurgen", "Us", "de"];

/// Checks all rows and reports all failures together.
fn check(region: &str, rows: &[(&str, &[&str])]) {
    let book = book();
    let reader = book.reader();
    let settings = QueryContext { region: Some(region.to_string()), ..QueryContext::default() };
    let mut wrong = String::new();
    for (text, expect) in rows {
        let query = Query::parse_sexp_with(text, &settings);
        let request = search_request(query.unwrap_or_else(|error| panic!("{text}: {error}")));
        let (found, walked) =
            (uids(&reader, &request), larder_query::full_scan(&reader, &request).unwrap().len());
        if found != *expect || walked != found.len() {
            writeln!(wrong, "{text} finds {found:?}, not {expect:?}, and {walked}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn contains_finds_words_in_order() {
    check(
        "US",
        &[
            (r#"(contains "full_name" "ANNA")"#, &["anna"]),
            // The first blank after a word matches any text between the words, in their order.
            (r#"(contains "full_name" "anna smith")"#, &["anna"]),
            (r#"(contains "full_name" "smith anna")"#, &[]),
            (r#"(contains "full_name" "anna ")"#, &["anna"]),
            (r#"(contains "full_name" "a m s")"#, &["anna"]),
            // Further blanks belong to the next word.
            (r#"(contains "full_name" "anna  maria")"#, &["anna"]),
            (r#"(contains "full_name" "anna  smith")"#, &["anna"]),
            (r#"(contains "full_name" "ann  a")"#, &[]),
            (r#"(contains "full_name" " maria")"#, &["anna"]),
            (r#"(contains "full_name" " anna")"#, &[]),
            // Words may overlap: each must begin after the beginning of the previous one.
            (r#"(contains "given_name" "an nn")"#, &["anna"]),
            (r#"(contains "given_name" "na nn")"#, &[]),
            // The full name includes its parts and the nicknames.
            (r#"(contains "full_name" "annie")"#, &["anna"]),
            (r#"(contains "full_name" "otto")"#, &["de"]),
            (r#"(contains "family_name" "annie")"#, &[]),
            (r#"(contains "full_name" "jurgen gross")"#, &["jurgen"]),
            (r#"(contains "title" "chefing")"#, &["jurgen"]),
            (r#"(contains "org" "mull")"#, &["anna"]),
            // The empty text is in every value; a list without values does not match.
            (r#"(contains "nickname" "")"#, ALL),
            (r#"(contains "title" "")"#, ALL),
            (r#"(contains "email" "")"#, &["anna"]),
            (r#"(contains "full_name" "")"#, ALL),
            // differs: the digits of a phone number match as well, as in later versions of
            // evolution-data-server.
            (r#"(contains "phone" "7655050")"#, &["jurgen", "Us", "de"]),
            (r#"(contains "phone" "765-5050")"#, &["jurgen", "Us", "de"]),
        ],
    );
}

#[test]
fn is_beginswith_and_endswith_compare_values() {
    check(
        "US",
        &[
            // differs: full case folding, as in SQL; in memory ß is not ss.
            (r#"(is "full_name" "JURGEN GROSS")"#, &["jurgen"]),
            (r#"(beginswith "family_name" "gros")"#, &["jurgen"]),
            (r#"(endswith "family_name" "SS")"#, &["jurgen"]),
            (r#"(is "title" "chefingenieur")"#, &["jurgen"]),
            (r#"(is "full_name" "anna smith")"#, &[]),
            (r#"(is "full_name" "annie")"#, &["anna"]),
            (r#"(is "full_name" "anna")"#, &["anna"]),
            (r#"(beginswith "full_name" "smi")"#, &["anna"]),
            (r#"(beginswith "full_name" "nni")"#, &[]),
            (r#"(endswith "full_name" "nie")"#, &["anna"]),
            (r#"(is "email" "anna@example.ORG")"#, &["anna"]),
            (r#"(endswith "email" "work.example")"#, &["anna"]),
            // A missing value is an empty text; an empty list has no values.
            (r#"(is "nickname" "")"#, &["jurgen", "Us", "de"]),
            (r#"(not (is "nickname" ""))"#, &["anna"]),
            (r#"(is "email" "")"#, &[]),
            (r#"(beginswith "nickname" "")"#, ALL),
            (r#"(endswith "email" "")"#, &["anna"]),
            // differs: a UID is compared byte by byte, as in SQL.
            (r#"(is "id" "Us")"#, &["Us"]),
            (r#"(is "id" "us")"#, &[]),
            (r#"(contains "id" "s")"#, &["Us"]),
            // Phone numbers are compared as they are written.
            (r#"(beginswith "phone" "408 7")"#, &["jurgen"]),
            (r#"(beginswith "phone" "4087")"#, &[]),
            (r#"(endswith "phone" "765-5050")"#, &["jurgen", "Us", "de"]),
            (r#"(is "phone" "4087655050")"#, &[]),
            // Dates, addresses (differs: one text; there each component), flags.
            (r#"(is "birth_date" "1970-02-28")"#, &["Us"]),
            (r#"(beginswith "birth_date" "1970")"#, &["Us"]),
            (r#"(contains "address" "wien")"#, &["de"]),
            (r#"(is "list" "1")"#, &["Us"]),
            // A missing flag is off.
            (r#"(is "list" "0")"#, &["anna", "jurgen", "de"]),
            (r#"(is "list_show_addresses" "0")"#, ALL),
            (r#"(is "wants_html" "0")"#, ALL),
            (r#"(not (is "list" "0"))"#, &["Us"]),
            (r#"(is "category_list" "chess")"#, &["anna"]),
            (r#"(is "categories" "friends")"#, &["anna"]),
            (r#"(is "url" "https://example.org/~us")"#, &["Us"]),
            // differs: all names at the messenger, of any type.
            (r#"(is "im_aim_home_1" "juergen")"#, &["jurgen"]),
            (r#"(is "im_aim" "juergen")"#, &["jurgen"]),
            // A region is accepted and ignored.
            (r#"(is "nickname" "annie" "AT")"#, &["anna"]),
        ],
    );
}

#[test]
fn exists_tests_for_a_value() {
    check(
        "US",
        &[
            (r#"(exists "nickname")"#, &["anna"]),
            (r#"(exists "email")"#, &["anna"]),
            (r#"(exists "full_name")"#, ALL),
            (r#"(exists "photo")"#, &["de"]),
            (r#"(exists "X-FOO")"#, &["anna"]),
            (r#"(exists "X-EMPTY")"#, &[]),
            (r#"(exists "x-foo")"#, &["anna"]),
            (r#"(exists "nonsense")"#, &[]),
            (r#"(not (exists "nonsense"))"#, ALL),
            (r#"(exists_vcard "X-FOO")"#, &["anna"]),
            (r#"(exists_vcard "x-foo")"#, &["anna"]),
            (r#"(exists_vcard "X-EMPTY")"#, &[]),
            (r#"(exists_vcard "EMAIL")"#, &["anna"]),
            // The first component must have a value: here the family name.
            (r#"(exists_vcard "N")"#, &["anna", "jurgen"]),
            // Names of vCard properties, not of fields.
            (r#"(exists_vcard "full_name")"#, &[]),
            (r#"(exists_vcard "")"#, &[]),
        ],
    );
}

#[test]
fn any_field_and_any_property_can_be_searched() {
    check(
        "US",
        &[
            (r#"(contains "x-evolution-any-field" "verkauf")"#, &["anna"]),
            (r#"(contains "x-evolution-any-field" "otto")"#, &["de"]),
            (r#"(contains "x-evolution-any-field" "")"#, ALL),
            (r#"(is "x-evolution-any-field" "")"#, ALL),
            (r#"(beginswith "x-evolution-any-field" "")"#, ALL),
            (r#"(is "x-evolution-any-field" "wien")"#, &[]),
            (r#"(endswith "x-evolution-any-field" "austria")"#, &["de"]),
            // Excludes the UID, the photo, technical fields, and properties without a field.
            (r#"(is "x-evolution-any-field" "Us")"#, &[]),
            (r#"(contains "x-evolution-any-field" "jurgen")"#, &["jurgen"]),
            (r#"(contains "x-evolution-any-field" "QUFB")"#, &[]),
            (r#"(contains "x-evolution-any-field" "2026-01")"#, &[]),
            (r#"(is "x-evolution-any-field" "1")"#, &[]),
            (r#"(contains "x-evolution-any-field" "bar baz")"#, &[]),
            // Properties by name, in any case; each component is compared.
            (r#"(contains "X-FOO" "BAZ")"#, &["anna"]),
            (r#"(is "x-foo" "bar baz")"#, &["anna"]),
            (r#"(is "N" "smith")"#, &["anna"]),
            (r#"(is "n" "otto")"#, &["de"]),
            (r#"(is "N" "")"#, &["anna", "jurgen", "de"]),
            (r#"(is "X-EMPTY" "")"#, &["anna"]),
            (r#"(is "X-NONE" "")"#, &[]),
            (r#"(contains "X-NONE" "")"#, &[]),
            (r#"(is "FN" "anna maria smith")"#, &["anna"]),
            (r#"(is "FN" "annie")"#, &[]),
            (r#"(is "fn" "annie")"#, &[]),
            // differs: the whole value is compared as well.
            (r#"(is "N" "Smith;Anna;Maria;;")"#, &["anna"]),
            (r#"(is "CATEGORIES" "chess")"#, &["anna"]),
        ],
    );
}

/// The numbers and results of test-book-client-custom-summary.c of evolution-data-server.
#[test]
fn phone_numbers_are_compared() {
    check(
        "US",
        &[
            (r#"(eqphone "phone" "+1 221.542.3789")"#, &["anna"]),
            (r#"(eqphone "phone" "+49 408.765.5050")"#, &["de"]),
            // A number without a country code has no known country, even if the region is known.
            (r#"(eqphone "phone" "408.765.5050")"#, &[]),
            (r#"(eqphone_national "phone" "408 765-5050")"#, &["jurgen", "Us", "de"]),
            (r#"(eqphone_national "phone" "+1 408 765-5050")"#, &["jurgen", "Us"]),
            (r#"(eqphone_national "phone" "+49 408 765-5050")"#, &["jurgen", "de"]),
            (r#"(eqphone_national "phone" "+49 221.542.3789")"#, &[]),
            (r#"(eqphone_national "phone" "765-5050")"#, &[]),
            (r#"(eqphone_short "phone" "765-5050")"#, &["jurgen", "Us", "de"]),
            (r#"(eqphone_short "phone" "5423789")"#, &["anna"]),
            (r#"(eqphone_national "phone" "011 49 408 765-5050")"#, &["jurgen", "de"]),
            // A third argument is the region.
            (r#"(eqphone_national "phone" "0049 408 765-5050" "AT")"#, &["jurgen", "de"]),
            (r#"(eqphone_national "phone" "1 408 765-5050")"#, &["jurgen", "Us", "de"]),
            (r#"(eqphone_national "phone" "0408 765-5050" "DE")"#, &["jurgen", "Us", "de"]),
            (r#"(eqphone_national "phone" "408 765-5050" "nowhere")"#, &["jurgen", "Us", "de"]),
            (r#"(eqphone_national "mobile_phone" "2215423789")"#, &["anna"]),
            (r#"(eqphone_national "home_phone" "2215423789")"#, &[]),
            (r#"(eqphone "TEL" "+1 221.542.3789")"#, &["anna"]),
            (r#"(eqphone "x-evolution-any-field" "+1 221.542.3789")"#, &["anna"]),
            (r#"(not (eqphone "phone" "+1 221.542.3789"))"#, &["jurgen", "Us", "de"]),
            // A text that is not a number equals no number, as in memory; in SQL it is an error.
            // The client is often a telephone that forwards text from the network.
            (r#"(eqphone "phone" "anonymous")"#, &[]),
            (r#"(eqphone_short "phone" "")"#, &[]),
            (r#"(not (eqphone "phone" "anonymous"))"#, ALL),
        ],
    );
}

#[test]
fn patterns_are_matched() {
    check(
        "US",
        &[
            // Matches anywhere in the folded text, so a capital in the pattern never matches.
            (r#"(regex_normal "full_name" ".*anna.*")"#, &["anna"]),
            (r#"(regex_normal "full_name" "nna m")"#, &["anna"]),
            (r#"(regex_normal "full_name" "Anna")"#, &[]),
            (r#"(regex_normal "full_name" "gross$")"#, &["jurgen"]),
            (r#"(regex_normal "full_name" "^annie$")"#, &["anna"]),
            (r#"(regex_normal "full_name" "^[jkl5][tuv8][pqrs7].*")"#, &["jurgen"]),
            (r#"(regex_raw "full_name" "Anna")"#, &["anna"]),
            (r#"(regex_raw "full_name" "ß")"#, &["jurgen"]),
            (r#"(regex_raw "full_name" "anna")"#, &[]),
            (r#"(regex_raw "full_name" "(?i)anna")"#, &["anna"]),
            (r#"(regex_raw "phone" "^\\+49")"#, &["de"]),
            (r#"(regex_raw "note" "first.second")"#, &[]),
            (r#"(regex_raw "note" "(?m)^second$")"#, &["anna"]),
            // A missing value is an empty text, except in lists.
            (r#"(regex_normal "nickname" "^$")"#, &["jurgen", "Us", "de"]),
            (r#"(regex_normal "email" "^$")"#, &[]),
            (r#"(regex_normal "nickname" ".*")"#, ALL),
            (r#"(regex_raw "x-evolution-any-field" "Wie.")"#, &["de"]),
            (r#"(regex_normal "x-evolution-any-field" "")"#, ALL),
            // A pattern with exponential time in PCRE.
            (r#"(regex_normal "note" "(((((a|b)*)*)*)*)*c.*x$")"#, &[]),
        ],
    );
    // differs: an invalid pattern is an error; there it matches nothing. Look-around and
    // back-references are not supported, so that the time of a match is linear in the text.
    for pattern in ["[a", "(a", "*", "a{2", "(?=a)", "(a)\\\\1", "(?<!b)a"] {
        let error =
            Query::parse_sexp(&format!("(regex_normal \"note\" \"{pattern}\")")).unwrap_err();
        let named = pattern.replace("\\\\", "\\");
        assert!(
            error
                .message
                .starts_with(&format!("the regular expression {named:?} cannot be used: ")),
            "{error}"
        );
        assert!(!error.message.ends_with(": ") && !error.message.contains('\n'), "{error}");
    }
    let long = format!("(regex_raw \"note\" \"{}\")", "a".repeat(5000));
    assert!(Query::parse_sexp(&long).unwrap_err().message.ends_with("it has more than 4096 bytes"));
}

#[test]
fn queries_are_combined() {
    check(
        "US",
        &[
            ("", ALL),
            // differs: there these are errors in SQL.
            ("#t", ALL),
            ("(and)", ALL),
            ("(or)", &[]),
            ("#f", &[]),
            (r#"(or (exists "photo") (exists "email"))"#, &["anna", "de"]),
            (r#"(not (exists "photo"))"#, &["anna", "jurgen", "Us"]),
            (r#"(contains "full_name" "anna") and more that is not read"#, &["anna"]),
            (r#"contains "full_name" "anna""#, &["anna"]),
            (r#"(uids "de" "anna" "nobody")"#, &["anna", "de"]),
        ],
    );
    for text in [
        r#"(contains "full_name" "anna""#,
        "(",
        ")",
        "nil",
        "\"\"",
        "(contains)",
        r#"(contains "full_name")"#,
        r#"(contains "full_name" 7)"#,
        r#"(contains "full_name" "a" "AT" "x")"#,
        r#"(exists "full_name" "a")"#,
        r#"(Contains "full_name" "a")"#,
        r#"(not)"#,
        r#"(not #t #t)"#,
    ] {
        assert!(Query::parse_sexp(text).is_err(), "{text}");
    }
}

/// Every field of the local address book of evolution-data-server 3.46, and the names that only
/// queries use.
#[test]
fn every_field_has_a_meaning() {
    let fields = "id file_as full_name given_name family_name nickname email_1 email_2 email_3 email_4 mailer \
        address_label_home address_label_work address_label_other assistant_phone business_phone business_phone_2 \
        business_fax callback_phone car_phone company_phone home_phone home_phone_2 home_fax isdn_phone \
        mobile_phone other_phone other_fax pager primary_phone radio telex tty org org_unit office title role \
        manager assistant homepage_url blog_url categories caluri fburl icscalendar video_url spouse note Rev \
        name_or_org address address_home address_work address_other category_list photo logo name email im_aim \
        im_groupwise im_jabber im_yahoo im_msn im_icq wants_html list list_show_addresses birth_date anniversary \
        x509Cert pgpCert im_gadugadu geo phone im_skype sip im_google_talk im_twitter im_matrix url calurl";
    let services = [
        "aim",
        "groupwise",
        "jabber",
        "yahoo",
        "msn",
        "icq",
        "gadugadu",
        "skype",
        "google_talk",
        "matrix",
    ];
    let places = services.iter().flat_map(|service| {
        ["home", "work"].map(|place| (1..=3).map(move |nth| format!("im_{service}_{place}_{nth}")))
    });
    for name in fields.split_whitespace().map(str::to_string).chain(places.flatten()) {
        assert!(find_eds_field(&name).is_some(), "{name}");
    }
    for name in
        ["Full_Name", "fn", "FN", "mail", "im_aim_home_4", "im_aim_other_1", "im_none_home_1", ""]
    {
        assert!(find_eds_field(name).is_none(), "{name}");
    }
}

//! Duplicate contacts: values that join cards, and values that do not.

use crate::book::{Book, card, search_request};
use larder_format::contact::Contact;
use larder_format::field::find_contact_field;
use larder_format::fold::{fold, split_words};
use larder_format::phone::{ParsedPhoneNumber, PhoneMatch};
use larder_query::{DuplicateGroup, Query, QueryContext, SearchRequest, find_duplicates};
use larder_store::Reader;
use proptest::prelude::*;

fn settings(region: &str) -> QueryContext {
    QueryContext {
        region: (!region.is_empty()).then(|| region.to_string()),
        ..QueryContext::default()
    }
}

fn groups(reader: &Reader, request: &SearchRequest, region: &str) -> Vec<DuplicateGroup> {
    find_duplicates(reader, request, &settings(region)).unwrap().groups
}

/// Formats each group: the numbers of its cards, and the fields that they have in common.
fn describe_groups(groups: &[DuplicateGroup]) -> Vec<String> {
    let shown = |group: &DuplicateGroup| {
        let rows: Vec<String> = group.rows.iter().map(ToString::to_string).collect();
        let mut fields: Vec<&str> = group.reasons.iter().map(|reason| reason.field).collect();
        fields.dedup();
        format!("{}: {}", rows.join(" "), fields.join(" "))
    };
    groups.iter().map(shown).collect()
}

/// Checks the groups of cards. The lines of a card are separated by `/`.
#[track_caller]
fn check(cards: &[&str], expect: &[&str]) {
    let with_uid =
        |(at, lines): (usize, &&str)| card(&format!("UID:{at}\n{}", lines.replace('/', "\n")));
    let cards: Vec<String> = cards.iter().enumerate().map(with_uid).collect();
    let book = Book::with_contacts(cards.iter().map(String::as_str));
    let found = groups(&book.reader(), &search_request(Query::All), "AT");
    assert_eq!(describe_groups(&found), expect, "{cards:#?}");
}

#[test]
fn shared_values_join_cards() {
    check(
        &["FN:Anna Berg/EMAIL:a@x.example", "FN:A. Berg/EMAIL:mailto:A@X.example"],
        &["1 2: email"],
    );
    check(&["FN:Anna Berg", "FN:Berg\\, ÁNNA"], &["1 2: full_name"]);
    check(&["FN:Anna Berg/TEL:+43 664 1234567", "FN:Berg/TEL:0664 123-45-67"], &["1 2: phone"]);
    check(&["FN:Mum/TEL:0664 1234567", "FN:Helga Berg/TEL:0664 1234567"], &["1 2: phone"]);
    check(&["N:Berg;Anna;;;/NOTE:x", "FN:Anna Berg"], &["1 2: full_name"]);
    check(&["FN:王小明", "FN:王小明"], &["1 2: full_name"]);
    // A chain of different values.
    check(
        &[
            "FN:Anna Berg/TEL:0664 1234567",
            "FN:A Berg/TEL:06641234567/EMAIL:a@x.example",
            "FN:Anna/EMAIL:a@x.example",
            "FN:Otto Kern",
        ],
        &["1 2 3: email phone"],
    );
    // The most certain groups are first, those with different names last.
    check(
        &[
            "FN:Ida Kern/TEL:0664 7654321",
            "FN:Otto Kern/TEL:0664 7654321",
            "FN:Eva Lind",
            "FN:Eva Lind",
            "FN:Anna Berg/EMAIL:a@x.example",
            "FN:Anna Berg/EMAIL:a@x.example",
        ],
        &["5 6: email full_name", "3 4: full_name", "1 2: phone"],
    );
}

#[test]
fn contradictions_do_not_join_cards() {
    check(&["FN:Anna Berg", "FN:Anna Kern", "NOTE:x/FN:", "NOTE:x/FN:"], &[]);
    check(&["FN:Anna Berg/TEL:117", "FN:Berg/TEL:117"], &[]);
    check(&["FN:Anna Berg/TEL:+43 1 999", "FN:A. Berg/TEL:+43 1 999"], &[]);
    check(&["FN:A B/TEL:0664 1234567 ext. 5", "FN:C D/TEL:0664 1234567 ext. 6"], &[]);
    check(&["FN:A B/TEL:+43 664 1234567", "FN:C D/TEL:+49 664 1234567"], &[]);
    // A person and an organisation; the members of a list and the list.
    check(&["FN:Bakery/TEL:01 5551234", "FN:Tom Berg/ORG:Bakery/TEL:01 5551234"], &[]);
    check(&["FN:Club/X-EVOLUTION-LIST:TRUE/EMAIL:a@x.example", "FN:Anna/EMAIL:a@x.example"], &[]);
    // Father and son, with one name and different birthdays.
    check(&["FN:Otto Berg/BDAY:1940-01-01", "FN:Otto Berg/BDAY:1970-02-03"], &[]);
    check(&["FN:Otto Berg/BDAY:1940-01-01", "FN:Otto Berg/BDAY:--0101"], &["1 2: full_name"]);
    // A name of one word is weak evidence.
    check(&["FN:Anna/TEL:0664 1111111", "FN:Anna/TEL:0664 2222222"], &[]);
    check(&["FN:Anna/TEL:0664 1111111", "FN:Anna/EMAIL:a@x.example"], &["1 2: full_name"]);
    // An e-mail address does not replace a missing name.
    check(&["EMAIL:a@x.example", "EMAIL:b@x.example"], &[]);
}

/// A number that several cards share joins only cards with similar names, and a number that very
/// many share joins none.
#[test]
fn widely_shared_values_do_not_join_cards() {
    let names = ["Anna Berg", "Otto Kern", "Ida Lind", "A. Berg", "Berg", ""];
    let cards: Vec<String> =
        names.iter().map(|name| format!("FN:{name}/TEL:01 5551234/EMAIL:info@x.example")).collect();
    check(&cards.iter().map(String::as_str).collect::<Vec<_>>(), &["1 4: email phone"]);
    let cards: Vec<String> = (0..60).map(|_| "FN:Anna Berg/TEL:01 5551234".to_string()).collect();
    check(&cards.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    // Many cards with one name, two of which have one number.
    let mut cards: Vec<String> =
        (0..6).map(|n| format!("FN:Otto Berg/TEL:0664 111111{n}")).collect();
    cards.push("FN:Otto Berg/TEL:0664 1111113/ORG:Firm".into());
    check(&cards.iter().map(String::as_str).collect::<Vec<_>>(), &["4 7: phone"]);
}

/// The number of comparisons is bounded for cards with the maximum of names and of numbers with one
/// ending. Numbers with the same digits are found nevertheless.
#[test]
fn comparisons_are_bounded() {
    let lines = |card: usize| {
        let phones = (0..64).map(|at| format!("TEL:{}1234567/", 1000 + 64 * card + at));
        let names = (0..64).map(|at| format!("FN:Anna a{card} b{at}/"));
        names.chain(phones).collect::<String>()
    };
    let mut cards: Vec<String> = (0..49).map(lines).collect();
    cards.push("FN:Anna a48 b2/TEL:(4135) 123-45-67".into());
    check(&cards.iter().map(String::as_str).collect::<Vec<_>>(), &["49 50: full_name phone"]);
    // Every card has the same numbers.
    let phones: String = (1000..1064).map(|at| format!("TEL:{at}1234567/")).collect();
    let named = |card: usize| format!("FN:{}/{phones}", ["Anna Berg", "A. Berg", "Otto"][card % 3]);
    let cards: Vec<String> = (0..9).map(named).collect();
    check(
        &cards.iter().map(String::as_str).collect::<Vec<_>>(),
        &["1 2 4 5 7 8: full_name phone", "3 6 9: full_name"],
    );
}

#[test]
fn duplicates_are_restricted_to_a_query_and_a_collection() {
    let cards = ["FN:Anna Berg\nEMAIL:a@x.example", "FN:Otto Kern\nTEL:123456"].map(card);
    let mut book = Book::with_contacts(cards.iter().map(String::as_str));
    let twins =
        ["FN:Anna Berg\nNOTE:b", "FN:Otto Kern\nNOTE:b", "FN:Ida\nNOTE:1", "FN:Ida\nNOTE:2"]
            .map(card);
    book.put("work", twins.iter().map(String::as_str));
    let reader = book.reader();
    let check = |line: &str, collection: Option<&str>, limit: Option<usize>, expect: &[&str]| {
        let query = Query::parse(line).unwrap();
        let request = SearchRequest {
            query,
            collection: collection.map(str::to_string),
            limit,
            ..SearchRequest::default()
        };
        assert_eq!(describe_groups(&groups(&reader, &request, "")), expect, "{line}");
    };
    check("", None, None, &["1 3: full_name", "2 4: full_name", "5 6: full_name"]);
    check("", None, Some(1), &["1 3: full_name"]);
    check("has:phone", None, None, &["2 4: full_name"]);
    check("nobody", None, None, &[]);
    check("", Some("work"), None, &["5 6: full_name"]);
    check("anna", Some("work"), None, &[]);
    let request = SearchRequest { collection: Some("none".into()), ..search_request(Query::All) };
    assert!(find_duplicates(&reader, &request, &settings("")).is_err());
}

/// Two cards share a number if `eqphone_national` matches, in any region.
#[test]
fn numbers_are_compared_by_numbering_plans() {
    let numbers = [
        "+43 664 1234567",
        "0664/123 45 67",
        "0043 664 1234567",
        "011 43 664 1234567",
        "+43 (0)664 1234567",
        "664 1234567",
        "+49 664 1234567",
        "06641234568",
        "1234567",
        "+298 123456",
        "123456",
        "00298 123456",
        "+7 912 345-67-89",
        "8 912 345 67 89",
        "+1 212 555 1234",
        "1-212-555-1234",
        "(212) 555-1234",
        "0664 1234567 ext. 9",
        "+43 664 1234567 x9",
        "1-800-FLOWERS",
        "1 800 356 9377",
        "tel:+43-664-1234567",
        "(+43) 664 1234567",
        "+1-800-FLOWERS",
        "+1 800 356 9377",
    ];
    let mut book = Book::new();
    for (at, a) in numbers.iter().enumerate() {
        for (other, b) in numbers.iter().enumerate().skip(at + 1) {
            let cards = [("x", a), ("y", b)]
                .map(|(name, tel)| card(&format!("UID:{name}\nFN:{name}\nTEL:{tel}")));
            book.put(&format!("{at} {other}"), cards.iter().map(String::as_str));
        }
    }
    let reader = book.reader();
    for region in ["AT", "US", "RU", ""] {
        let read = |text: &str| {
            ParsedPhoneNumber::parse(text, Some(region).filter(|region| !region.is_empty()))
        };
        for (at, a) in numbers.iter().enumerate() {
            for (other, b) in numbers.iter().enumerate().skip(at + 1) {
                let same = read(a.trim_start_matches("tel:"))
                    .zip(read(b.trim_start_matches("tel:")))
                    .is_some_and(|(a, b)| {
                        a.compare(&b) >= PhoneMatch::National && a.national.len() >= 6
                    });
                let request = SearchRequest {
                    collection: Some(format!("{at} {other}")),
                    ..search_request(Query::All)
                };
                let found = !groups(&reader, &request, region).is_empty();
                // Without a region, numbers with letters are not parsed; here the letters begin an
                // extension.
                let letters = [a, b].iter().any(|text| text.contains(char::is_alphabetic));
                let unread = letters && region.is_empty();
                assert!(found == same || unread, "{a:?} {b:?} {region:?}: {found}");
            }
        }
    }
}

/// Returns whether two cards share an e-mail address, a name or a number.
fn has_shared_value(a: &Contact<'_>, b: &Contact<'_>) -> bool {
    let values = |card: &Contact<'_>, name: &str| card.values(find_contact_field(name).unwrap());
    let folded = |card: &Contact<'_>| -> Vec<String> {
        let mut all: Vec<String> =
            values(card, "email").iter().map(|email| fold(email).into_owned()).collect();
        for name in values(card, "full_name") {
            let folded = fold(&name).into_owned();
            let mut sorted: Vec<&str> = split_words(&folded).collect();
            sorted.sort_unstable();
            all.push(sorted.join(" "));
        }
        all
    };
    let numbers = |card: &Contact<'_>| -> Vec<ParsedPhoneNumber> {
        values(card, "phone")
            .iter()
            .filter_map(|phone| ParsedPhoneNumber::parse(phone, Some("AT")))
            .collect()
    };
    let (in_a, in_b) = (folded(a), folded(b));
    in_a.iter().any(|value| in_b.contains(value))
        || numbers(a)
            .iter()
            .any(|a| numbers(b).iter().any(|b| a.compare(b) >= PhoneMatch::National))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each card of a group shares a value with another card of the group, and no card is in two
    /// groups.
    #[test]
    fn groups_are_connected_and_disjoint(
        people in prop::collection::vec(("(Anna|Otto|A\\.|Ida) (Berg|Kern|Lind)|Anna|", "(a|b|c|d|e)@x|", "(|\\+43|0)66412345[6-9]{2}|"), 0..24)
    ) {
        let cards: Vec<String> = people
            .iter()
            .map(|(name, email, phone)| card(&format!("FN:{name}\nEMAIL:{email}\nTEL:{phone}\nNOTE:x")))
            .collect();
        let book = Book::with_contacts(cards.iter().map(String::as_str));
        let reader = book.reader();
        let groups = groups(&reader, &search_request(Query::All), "AT");
        let mut seen = Vec::new();
        for group in &groups {
            prop_assert!(group.rows.len() > 1 && !group.reasons.is_empty());
            let bytes: Vec<Vec<u8>> = group.rows.iter().map(|row| reader.items().source_bytes(*row).unwrap().unwrap()).collect();
            let cards: Vec<Contact<'_>> = bytes.iter().map(|bytes| Contact::parse(bytes)).collect();
            for (at, card) in cards.iter().enumerate() {
                let mut others = cards.iter().enumerate().filter(|(other, _)| *other != at);
                prop_assert!(others.any(|(_, other)| has_shared_value(card, other)));
            }
            seen.extend(group.rows.iter().copied());
        }
        let number = seen.len();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), number);
    }
}

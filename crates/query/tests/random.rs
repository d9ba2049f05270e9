//! Random cards, queries and index configurations for the property tests of `agree`.
//!
//! Cards and queries are made of the same few texts, so that queries have matches.

use crate::book::card;
use larder_format::field::{CONTACT_FIELDS, Field};
use larder_query::{
    FieldSelector, FieldTest, MatchOp, Query, QueryBudget, SearchRequest, SortSpec,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The texts of cards and queries.
const POOL: &[&str] = &[
    "anna",
    "Änne",
    "ANNA",
    "Anna Maria",
    "Müller",
    "Muller",
    "MÜLLER & Söhne",
    "Straße",
    "STRASSE",
    "ß",
    "ss",
    "İstanbul",
    "ıstanbul",
    "ISTANBUL",
    "王小明",
    "小",
    "明",
    "か",
    "が",
    "김철수",
    "Ёлка",
    "елка",
    "علي",
    "שָׁלוֹם",
    "שלום",
    "o'brien",
    "O’Brien",
    "a",
    "B",
    "é",
    "e\u{301}",
    "x y",
    "1",
    "12",
    "100%",
    "%",
    "_",
    "\"",
    "\\",
    "\"quoted\"",
    "'",
    "*",
    "a*b",
    ";",
    "a\nb",
    "\t",
    "",
    " ",
    "anna@example.org",
    "example",
    ".org",
    "@",
    "tel",
    "AND",
    "NEAR(",
    "+43 (664) 123-45 67",
    "06641234567",
    "664 123",
    "123",
    "4567",
    "٠٦٦٤١٢٣",
    "١٢٣",
    "++",
    "1970-01-01",
    "1970",
    "--02-29",
    "https://example.org/",
    "u1",
    "U1",
    "u2",
    "ﬁ",
    "fi",
    "Ⅷ",
    "½",
    "K",
    "\u{10ffff}",
    "\u{d7ff}",
    "\0",
    "ann\0",
    "\u{200d}",
];

fn text() -> impl Strategy<Value = String> {
    let one = || select(POOL).prop_map(str::to_string);
    prop_oneof![
        12 => one(),
        3 => (one(), one()).prop_map(|(a, b)| format!("{a} {b}")),
        2 => (one(), one()).prop_map(|(a, b)| a + &b),
        2 => (one(), 0..6usize, 0..6usize).prop_map(|(text, from, length)| {
            text.chars().skip(from).take(length).collect()
        }),
        // Near the length at which values are cut.
        1 => (228..252usize, select(&["x", "é", "王", "𝒳"][..]), one())
            .prop_map(|(length, fill, end)| fill.repeat(length / fill.len()) + &end),
        1 => "\\PC{0,4}",
    ]
}

/// Escapes a value for a card, on one line.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace(',', "\\,").replace(';', "\\;")
}

fn line() -> impl Strategy<Value = String> {
    let properties = &[
        "FN",
        "FN",
        "N",
        "N",
        "NICKNAME",
        "EMAIL",
        "EMAIL",
        "EMAIL;TYPE=WORK",
        "TEL",
        "TEL;TYPE=CELL",
        "TEL;TYPE=WORK,FAX",
        "TEL;TYPE=HOME;VALUE=uri",
        "ORG",
        "TITLE",
        "NOTE",
        "URL",
        "BDAY",
        "CATEGORIES",
        "ADR;TYPE=HOME",
        "IMPP",
        "X-EVOLUTION-FILE-AS",
        "X-EVOLUTION-SPOUSE",
        "X-EVOLUTION-LIST",
        "X-JABBER",
        "GEO",
        "PHOTO;ENCODING=b",
        "LABEL;TYPE=WORK",
        "KEY;TYPE=PGP",
        "REV",
        "X-UNKNOWN",
        "item1.TEL",
    ];
    (select(&properties[..]), vec(text(), 1..3)).prop_map(|(name, values)| {
        let values: Vec<String> = values.iter().map(|value| escape(value)).collect();
        format!("{name}:{}\n", values.join(";"))
    })
}

pub(crate) fn one_card() -> impl Strategy<Value = String> {
    let uid = prop_oneof![2 => Just(String::new()), 5 => (0..12).prop_map(|n| format!("UID:u{n}\n")),
        1 => text().prop_map(|uid| format!("UID:{}\n", escape(&uid)))];
    let long = prop_oneof![
        30 => Just(String::new()),
        1 => select(POOL).prop_map(|text| format!("NOTE:{}\n", escape(text).repeat(70_000 / (text.len() + 1)))),
    ];
    (uid, vec(line(), 1..7), long)
        .prop_map(|(uid, lines, long)| card(&(uid + "X-A:b\n" + &lines.concat() + &long)))
}

fn one_test() -> impl Strategy<Value = Query> {
    let names = vec!["uid", "full_name", "email", "phone", "given_name", "note", "org"];
    let subject = prop_oneof![
        8 => (0..CONTACT_FIELDS.len()).prop_map(|row| FieldSelector::Field(&CONTACT_FIELDS[row])),
        8 => select(names).prop_map(|name| FieldSelector::Field(larder_format::field::find_contact_field(name).unwrap())),
        2 => Just(FieldSelector::Any),
        2 => select(&["N", "x-unknown", "TEL", "Categories", "X-NONE"][..])
            .prop_map(|name| FieldSelector::Property(name.to_string())),
        1 => Just(FieldSelector::Nothing),
    ];
    let op = select(vec![
        MatchOp::ContainsWords,
        MatchOp::Is,
        MatchOp::BeginsWith,
        MatchOp::EndsWith,
        MatchOp::Exists,
    ]);
    let plain = (subject.clone(), op, text()).prop_map(|(subject, op, text)| {
        let text = if op == MatchOp::Exists { String::new() } else { text };
        Query::from_test(FieldTest::new(subject, op, text))
    });
    let numbers =
        &["+43 664 1234567", "0664/1234567", "664 123", "06641234567", "123", "++", "anna"];
    let regions = &[None, Some("AT"), Some("US"), Some("RU")];
    let phone = select(vec![MatchOp::EqPhone, MatchOp::EqPhoneNational, MatchOp::EqPhoneShort]);
    let phone = (subject.clone(), phone, select(&numbers[..]), select(&regions[..])).prop_map(
        |(subject, op, number, region)| {
            let region = region.map(str::to_string);
            Query::Test(FieldTest { region, ..FieldTest::new(subject, op, number) })
        },
    );
    let patterns = &["an+a", "^m.*e$", "", "\\d{3}", "[[:upper:]]", "王|小", ".", "a\\\\", "^$"];
    let regex = select(vec![MatchOp::RegexNormal, MatchOp::RegexRaw]);
    let regex = (subject, regex, select(&patterns[..]))
        .prop_map(|(subject, op, pattern)| Query::Test(FieldTest::new(subject, op, pattern)));
    let vcard = select(&["N", "tel", "X-UNKNOWN", "X-NONE", "EMAIL"][..]).prop_map(|name| {
        Query::Test(FieldTest::new(
            FieldSelector::Property(name.to_string()),
            MatchOp::ExistsVcard,
            "",
        ))
    });
    prop_oneof![20 => plain, 3 => phone, 3 => regex, 1 => vcard]
}

fn some_uids() -> impl Strategy<Value = Query> {
    let uid = prop_oneof![4 => (0..12).prop_map(|n| format!("u{n}")), 1 => text()];
    vec(uid, 0..5).prop_map(Query::from_uids)
}

pub(crate) fn query() -> impl Strategy<Value = Query> {
    let leaf = prop_oneof![6 => text().prop_map(Query::Word), 12 => one_test(), 1 => some_uids(), 1 => Just(Query::All)];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(Query::And),
            3 => vec(inner.clone(), 0..4).prop_map(Query::Or),
            2 => inner.prop_map(|query| Query::Not(Box::new(query))),
        ]
    })
}

fn sort() -> impl Strategy<Value = Option<SortSpec>> {
    let names = vec!["file_as", "full_name", "full_name", "email", "phone", "version"];
    let sort = (select(names), any::<bool>()).prop_map(|(name, descending)| {
        Some(SortSpec {
            field: larder_format::field::find_contact_field(name).unwrap(),
            descending,
        })
    });
    prop_oneof![1 => Just(None), 1 => sort]
}

pub(crate) fn random_request() -> impl Strategy<Value = SearchRequest> {
    let collection =
        prop_oneof![3 => Just(None), 1 => select(&["contacts", "work"][..]).prop_map(Some)];
    let limit = prop_oneof![3 => Just(None), 1 => (0..4usize).prop_map(Some)];
    let from = prop_oneof![3 => Just(None), 1 => text().prop_map(Some)];
    (query(), collection, sort(), from, limit, any::<bool>()).prop_map(
        |(query, collection, sort, from, limit, cards)| {
            let collection = collection.map(str::to_string);
            let max_steps = QueryBudget::default();
            SearchRequest {
                query,
                collection,
                sort,
                start_text: from,
                limit,
                prefetch: cards,
                max_steps,
            }
        },
    )
}

/// An index configuration, as text.
pub(crate) fn summary() -> impl Strategy<Value = String> {
    let kinds =
        select(&["exact", "prefix", "suffix", "substring", "sort", "suffix,sort,exact"][..]);
    let indexed: Vec<&str> =
        CONTACT_FIELDS.iter().filter(|field| field.is_indexed).map(|f| f.name).collect();
    let names = vec!["uid", "full_name", "file_as", "email", "phone", "given_name", "note", "org"];
    let field = prop_oneof![select(indexed), select(names)];
    let all = |is: fn(&Field) -> bool| {
        let fields = CONTACT_FIELDS.iter().filter(move |field| field.is_indexed && is(field));
        fields.map(|field| format!("{}:substring", field.name)).collect::<Vec<_>>().join(" ")
    };
    let word = prop_oneof![
        16 => (field, kinds).prop_map(|(field, kinds)| format!("{field}:{kinds}")),
        2 => Just("phone:phone".to_string()),
        1 => Just(all(|field| field.is_default_search)),
        1 => Just(all(|_| true)),
    ];
    prop_oneof![
        1 => Just("none".to_string()),
        1 => Just("default".to_string()),
        5 => vec(word, 1..12).prop_map(|words| words.join(" ")),
    ]
}

/// A part of a search line.
pub(crate) fn type_line() -> impl Strategy<Value = String> {
    let field = select(
        &[
            "name",
            "email",
            "phone",
            "uid",
            "any",
            "note",
            "birthday",
            "has",
            "x-unknown",
            "nofield",
        ][..],
    );
    let quoted = |text: String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    prop_oneof![
        4 => text(),
        3 => text().prop_map(quoted),
        3 => (field.clone(), select(&["", "=", "*", "~", "a,"][..]), text())
            .prop_map(|(field, op, text)| format!("{field}:{op}{text}")),
        2 => (field, select(&["", "=", "*", "~"][..]), text(), select(&["", "*"][..]))
            .prop_map(move |(field, op, text, star)| format!("{field}:{op}{}{star}", quoted(text))),
        1 => select(&["+43 664 1234567", "0664/1234567", "06641234567"][..]).prop_map(move |number: &str| quoted(number.into())),
        2 => select(&["or", "and", "not", "-", "(", ")", "has:email", "-has:phone", "--a"][..]).prop_map(str::to_string),
    ]
}

/// Parts of S-expressions.
pub(crate) const CALLS: &[&str] = &[
    "(and",
    "(or",
    "(not",
    "(contains",
    "(is",
    "(exists",
    "(exists_vcard",
    "(eqphone",
    "(eqphone_short",
    "(regex_normal",
    "(regex_raw",
    "(uids",
    "(word",
    "contains",
    ")",
    "))",
    "#t",
    "#f",
    "\"id\"",
    "\"phone\"",
    "\"X-FOO\"",
    "\"AT\"",
    "\"(a|b)*\"",
    "\"[\"",
    "\"+43 664 1234567\"",
    "\"\\x\"",
    "\"ä\"",
    "\"",
];

/// Parts of search lines.
pub(crate) const WORDS: &[&str] = &[
    " ",
    " ",
    "anna",
    "0664",
    "123",
    "45 67",
    "+43",
    "-",
    "/",
    ":",
    "uid",
    "phone:",
    "x-foo:",
    "any:",
    "has:",
    "~",
    "=",
    "*",
    ",",
    "(",
    ")",
    "[",
    "\"",
    "\\",
    "or",
    "not",
    "ä",
    "é",
    "1970-02-28",
    "\u{ff11}",
];

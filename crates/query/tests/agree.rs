//! The property that everything rests on: for any book and any question, the plan's answer is that of a
//! plain walk, with whatever indexes there are.

use crate::book::{Book, Stale, ask, card};
use larder_format::contact::Contact;
use larder_format::field::{FIELDS, Field, Kind, field};
use larder_query::{Answer, Find, Op, Query, Sort, Subject, Test, find, walk};
use larder_store::{Change, Expect, Reader};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Texts that are in cards and in questions.
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
        // Around the length at which values are cut.
        1 => (228..252usize, select(&["x", "é", "王", "𝒳"][..]), one())
            .prop_map(|(length, fill, end)| fill.repeat(length / fill.len()) + &end),
        1 => "\\PC{0,4}",
    ]
}

/// A value as a card has it: escaped, on one line.
fn escaped(text: &str) -> String {
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
        let values: Vec<String> = values.iter().map(|value| escaped(value)).collect();
        format!("{name}:{}\n", values.join(";"))
    })
}

fn one_card() -> impl Strategy<Value = String> {
    let uid = prop_oneof![2 => Just(String::new()), 5 => (0..12).prop_map(|n| format!("UID:u{n}\n")),
        1 => text().prop_map(|uid| format!("UID:{}\n", escaped(&uid)))];
    let long = prop_oneof![
        30 => Just(String::new()),
        1 => select(POOL).prop_map(|text| format!("NOTE:{}\n", escaped(text).repeat(70_000 / (text.len() + 1)))),
    ];
    (uid, vec(line(), 1..7), long)
        .prop_map(|(uid, lines, long)| card(&(uid + "X-A:b\n" + &lines.concat() + &long)))
}

fn one_test() -> impl Strategy<Value = Query> {
    let names = vec!["uid", "full_name", "email", "phone", "given_name", "note", "org"];
    let subject = prop_oneof![
        8 => (0..FIELDS.len()).prop_map(|row| Subject::Field(&FIELDS[row])),
        8 => select(names).prop_map(|name| Subject::Field(larder_format::field::field(name).unwrap())),
        2 => Just(Subject::Any),
        2 => select(&["N", "x-unknown", "TEL", "Categories", "X-NONE"][..])
            .prop_map(|name| Subject::Property(name.to_string())),
        1 => Just(Subject::Nothing),
    ];
    let op = select(vec![Op::Contains, Op::Is, Op::BeginsWith, Op::EndsWith, Op::Exists]);
    let plain = (subject.clone(), op, text()).prop_map(|(subject, op, text)| {
        let text = if op == Op::Exists { String::new() } else { text };
        Query::Test(Test::new(subject, op, text))
    });
    let numbers =
        &["+43 664 1234567", "0664/1234567", "664 123", "06641234567", "123", "++", "anna"];
    let regions = &[None, Some("AT"), Some("US"), Some("RU")];
    let phone = select(vec![Op::EqPhone, Op::EqPhoneNational, Op::EqPhoneShort]);
    let phone = (subject.clone(), phone, select(&numbers[..]), select(&regions[..])).prop_map(
        |(subject, op, number, region)| {
            let region = region.map(str::to_string);
            Query::Test(Test { region, ..Test::new(subject, op, number) })
        },
    );
    let patterns = &["an+a", "^m.*e$", "", "\\d{3}", "[[:upper:]]", "王|小", ".", "a\\\\", "^$"];
    let regex = select(vec![Op::RegexNormal, Op::RegexRaw]);
    let regex = (subject, regex, select(&patterns[..]))
        .prop_map(|(subject, op, pattern)| Query::Test(Test::new(subject, op, pattern)));
    let vcard = select(&["N", "tel", "X-UNKNOWN", "X-NONE", "EMAIL"][..]).prop_map(|name| {
        Query::Test(Test::new(Subject::Property(name.to_string()), Op::ExistsVcard, ""))
    });
    prop_oneof![20 => plain, 3 => phone, 3 => regex, 1 => vcard]
}

fn some_uids() -> impl Strategy<Value = Query> {
    let uid = prop_oneof![4 => (0..12).prop_map(|n| format!("u{n}")), 1 => text()];
    vec(uid, 0..5).prop_map(Query::uids)
}

fn query() -> impl Strategy<Value = Query> {
    let leaf = prop_oneof![6 => text().prop_map(Query::Word), 12 => one_test(), 1 => some_uids(), 1 => Just(Query::All)];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(Query::And),
            3 => vec(inner.clone(), 0..4).prop_map(Query::Or),
            2 => inner.prop_map(|query| Query::Not(Box::new(query))),
        ]
    })
}

fn sort() -> impl Strategy<Value = Option<Sort>> {
    let names = vec!["file_as", "full_name", "full_name", "email", "phone", "version"];
    let sort = (select(names), any::<bool>()).prop_map(|(name, descending)| {
        Some(Sort { field: larder_format::field::field(name).unwrap(), descending })
    });
    prop_oneof![1 => Just(None), 1 => sort]
}

fn asked() -> impl Strategy<Value = Find> {
    let collection =
        prop_oneof![3 => Just(None), 1 => select(&["contacts", "work"][..]).prop_map(Some)];
    let limit = prop_oneof![3 => Just(None), 1 => (0..4usize).prop_map(Some)];
    let from = prop_oneof![3 => Just(None), 1 => text().prop_map(Some)];
    (query(), collection, sort(), from, limit, any::<bool>()).prop_map(
        |(query, collection, sort, from, limit, cards)| {
            let collection = collection.map(str::to_string);
            Find { query, collection, sort, from, limit, cards }
        },
    )
}

/// The plan finds what the walk finds, in its order.
fn check(reader: &Reader, asked: &Find) {
    let found = find(reader, asked).unwrap_or_else(|error| panic!("{error}: {asked:?}"));
    let walked = walk(reader, asked).unwrap();
    assert_eq!(found.rows(), walked.rows(), "{}: {asked:?}", found.explain.plan.join("; "));
    assert_eq!(found.len(), walked.len());
    assert_eq!(found.explain.returned, found.len() as u64);
    // Neither goes on when it has what it was asked for.
    if asked.limit.is_none() {
        assert_eq!(found.explain.matched, walked.explain.matched);
    }
    let parsed = Query::parse_sexp(&asked.query.to_string());
    assert_eq!(parsed.as_ref(), Ok(&asked.query));
    let mut given = Vec::new();
    found
        .each(reader, &mut |head, bytes| {
            assert_eq!(reader.source(head.row).unwrap().as_deref(), Some(bytes));
            given.push(head.row);
            true
        })
        .unwrap();
    assert_eq!(given, found.rows());
    for names in [&[][..], &["uid", "rev", "full_name", "phone"], &["email", "note"]] {
        check_fields(reader, &found, names);
    }
}

/// The fields of each item are what its card has.
fn check_fields(reader: &Reader, found: &Answer, names: &[&str]) {
    let fields: Vec<_> = names.iter().map(|name| field(name).unwrap()).collect();
    let mut given = Vec::new();
    found
        .fields(reader, &fields, &mut |head, of| {
            let card = reader.source(head.row).unwrap().unwrap();
            let card = Contact::parse(&card);
            for field in &fields {
                assert_eq!(of.values(field), card.values(field), "{}", field.name);
                assert_eq!(of.first(field).as_deref(), card.first(field).as_deref());
            }
            given.push(head.row);
            true
        })
        .unwrap();
    assert_eq!(given, found.rows());
}

/// Any summary, as text.
fn summary() -> impl Strategy<Value = String> {
    let kinds =
        select(&["exact", "prefix", "suffix", "substring", "sort", "suffix,sort,exact"][..]);
    let indexed: Vec<&str> = FIELDS.iter().filter(|field| field.indexed).map(|f| f.name).collect();
    let names = vec!["uid", "full_name", "file_as", "email", "phone", "given_name", "note", "org"];
    let field = prop_oneof![select(indexed), select(names)];
    let all = |is: fn(&Field) -> bool| {
        let fields = FIELDS.iter().filter(move |field| field.indexed && is(field));
        fields.map(|field| format!("{}:substring", field.name)).collect::<Vec<_>>().join(" ")
    };
    let word = prop_oneof![
        16 => (field, kinds).prop_map(|(field, kinds)| format!("{field}:{kinds}")),
        2 => Just("phone:phone".to_string()),
        1 => Just(all(|field| field.words)),
        1 => Just(all(|_| true)),
    ];
    prop_oneof![
        1 => Just("none".to_string()),
        1 => Just("default".to_string()),
        5 => vec(word, 1..12).prop_map(|words| words.join(" ")),
    ]
}

fn book(cards: &[String], more: &[String]) -> Book {
    let mut book = Book::of(cards.iter().map(String::as_str));
    book.apply(vec![Change::CreateCollection("work".into(), larder_store::Kind::Contact)]);
    book.put("work", more.iter().map(String::as_str));
    book
}

/// Questions for what is in the cards, each answered by one kind of index or another.
fn questions(cards: &[String]) -> Vec<Query> {
    let mut questions = vec![Query::uids(vec!["anna".into(), "bob".into()])];
    for card in cards {
        let card = Contact::parse(card.as_bytes());
        for field in FIELDS.iter().filter(|field| field.kind != Kind::Binary) {
            for value in card.values(field) {
                let chars: Vec<char> = value.chars().collect();
                let part = |from: usize, to: usize| {
                    chars.iter().skip(from).take(to.saturating_sub(from)).collect::<String>()
                };
                let last = chars.len().saturating_sub(4);
                let subject = Subject::Field(field);
                let test = |op, text: &str| Query::Test(Test::new(subject.clone(), op, text));
                questions.extend([
                    test(Op::Is, &value),
                    test(Op::BeginsWith, &part(0, 3)),
                    test(Op::EndsWith, &part(last, chars.len())),
                    test(Op::Contains, &part(1, 5)),
                    test(Op::Exists, ""),
                    test(Op::EqPhoneShort, &value),
                    Query::Test(Test::new(Subject::Any, Op::Contains, part(1, 5))),
                    Query::Test(Test::new(Subject::Any, Op::Is, value.as_str())),
                    Query::Word(part(0, 2)),
                    Query::Word(part(1, 5)),
                ]);
            }
        }
    }
    questions.sort_unstable_by_key(ToString::to_string);
    questions.dedup();
    questions
}

/// The default without one kind of index of one field, and that one alone.
#[test]
fn without_any_one_index() {
    let cards = [
        "UID:anna\nFN:Änne Berg\nN:Bergström;Anna;;;\nNICKNAME:Nan\nEMAIL:post@example.org\nTEL:+43 664 1234567
         ORG:Müller & Söhne;Verkauf;Zimmer 7\nTITLE:Joiner\nROLE:Carpenter\nNOTE:likes blue\nCATEGORIES:Freunde
         BDAY:1970-02-28\nURL:https://web.example\nADR:;;Gasse 1;Wien;;1010;Austria\nIMPP:xmpp:max@jabber.example
         X-EVOLUTION-SPOUSE:Maxine\nX-EVOLUTION-MANAGER:Boss\nX-EVOLUTION-FILE-AS:Filed\nREV:20200102",
        "UID:bob\nFN:Bob",
    ]
    .map(card);
    let questions = questions(&cards);
    let mut book = Book::of(cards.iter().map(String::as_str));
    let reader = book.reader();
    let asked: Vec<(Find, Vec<i64>)> = questions
        .into_iter()
        .map(|query| Find { query, ..Find::default() })
        .map(|asked| (asked.clone(), walk(&reader, &asked).unwrap().rows()))
        .collect();
    let default = larder_store::Summary::default().to_string();
    let words: Vec<(&str, Vec<&str>)> = default
        .split(' ')
        .filter_map(|word| word.split_once(':'))
        .map(|(field, kinds)| (field, kinds.split(',').collect()))
        .collect();
    for (field, kinds) in &words {
        for kind in kinds.iter().filter(|kind| **kind != "prefix") {
            let without = |(name, kinds): &(&str, Vec<&str>)| {
                let left = kinds.iter().filter(|one| {
                    name != field || (*one != kind && !(*kind == "exact" && **one == "prefix"))
                });
                let left: Vec<&str> = left.copied().collect();
                if left.is_empty() { String::new() } else { format!("{name}:{}", left.join(",")) }
            };
            let without = words.iter().map(without).collect::<Vec<_>>().join(" ");
            for text in [without, format!("{field}:{kind}")] {
                book.apply(vec![Change::SetSummary("contacts".into(), text.parse().unwrap())]);
                book.store.refresh().unwrap();
                for (asked, walked) in &asked {
                    let found = find(&reader, asked).unwrap();
                    assert_eq!(found.rows(), *walked, "{} with {text}", asked.query);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plan_and_walk(
        cards in vec(one_card(), 1..10),
        more in vec(one_card(), 0..3),
        asked in vec(asked(), 1..24),
    ) {
        let book = book(&cards, &more);
        let reader = book.reader();
        for asked in &asked {
            check(&reader, asked);
        }
    }

    #[test]
    fn plan_and_walk_after_edits(
        cards in vec(one_card(), 2..8),
        edits in vec(one_card(), 1..8),
        removed in 0..8usize,
        asked in vec(asked(), 1..12),
    ) {
        let mut book = book(&cards, &[]);
        book.put("contacts", edits.iter().map(String::as_str));
        let collection = book.reader().collections().unwrap().remove(0);
        let items = book.reader().page(&collection, 0, 99).unwrap();
        let gone = items[removed % items.len()].handle;
        book.apply(vec![Change::Remove(gone, Expect::Anything)]);
        prop_assert_eq!(book.store.check().unwrap().faults, []);
        let reader = book.reader();
        for asked in &asked {
            check(&reader, asked);
        }
    }

    #[test]
    fn plan_and_walk_without_indexes(
        cards in vec(one_card(), 1..6),
        stale in select(vec![&Stale::ALL[..1], &Stale::ALL[1..], Stale::ALL]),
        asked in vec(asked(), 1..8),
    ) {
        let (_scratch, reader) = book(&cards, &[]).with_stale(stale);
        for asked in &asked {
            check(&reader, asked);
        }
    }

    /// However each collection is indexed, and while it is being indexed otherwise.
    #[test]
    fn plan_and_walk_by_any_summary(
        cards in vec(one_card(), 1..8),
        more in vec(one_card(), 1..5),
        edits in vec(one_card(), 1..4),
        summaries in (summary(), summary(), summary()),
        step in 1..6usize,
        asked in vec(asked(), 1..8),
    ) {
        let mut book = Book::new();
        let set = |name: &str, text: &str| Change::SetSummary(name.into(), text.parse().unwrap());
        for (name, text, cards) in [("contacts", &summaries.0, &cards), ("work", &summaries.1, &more)] {
            let create = Change::CreateCollection(name.into(), larder_store::Kind::Contact);
            book.apply(vec![create, set(name, text)]);
            book.put(name, cards.iter().map(String::as_str));
        }
        prop_assert_eq!(book.store.check().unwrap().faults, []);
        let reader = book.reader();
        let all = || asked.iter().for_each(|asked| check(&reader, asked));
        all();
        book.apply(vec![set("contacts", &summaries.2)]);
        all();
        let mut edits = edits.chunks(1);
        while book.store.refresh_step(step).unwrap().is_some() {
            all();
            let name = if step % 2 == 0 { "work" } else { "contacts" };
            book.put(name, edits.next().unwrap_or_default().iter().map(String::as_str));
            all();
        }
        prop_assert_eq!(book.store.check().unwrap().faults, []);
    }

    #[test]
    fn what_people_type(
        cards in vec(one_card(), 1..6),
        lines in vec(vec(typed(), 0..5), 1..12),
        summary in prop_oneof![Just("default".to_string()), summary()],
    ) {
        let mut book = book(&cards, &cards);
        book.apply(vec![Change::SetSummary("contacts".into(), summary.parse().unwrap())]);
        book.store.refresh().unwrap();
        let reader = book.reader();
        for line in lines {
            if let Ok(query) = Query::parse(&line.join(" ")) {
                check(&reader, &ask(query));
            }
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(
        text in "\\PC{0,40}",
        sexp in "[()a-z\"\\\\# -]{0,60}",
        calls in vec(select(CALLS), 0..12),
        words in vec(select(WORDS), 0..12),
    ) {
        for text in [text, sexp, calls.join(" "), words.concat()] {
            for parsed in [Query::parse(&text), Query::parse_sexp(&text)] {
                match parsed {
                    Ok(query) => prop_assert_eq!(Query::parse_sexp(&query.to_string()), Ok(query)),
                    Err(error) => prop_assert!(error.at <= text.chars().count() + 1, "{}", error),
                }
            }
        }
    }
}

const CALLS: &[&str] = &[
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
const WORDS: &[&str] = &[
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

/// A part of a search line.
fn typed() -> impl Strategy<Value = String> {
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

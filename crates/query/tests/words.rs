//! Words and scripts: search lines and the contacts that they find, one card in each row.

use crate::book::{Book, card, search_request, uids};
use larder_query::{Query, QueryContext};

/// Checks all rows and reports all failures together.
fn check(cards: &[&str], region: Option<&str>, lines: &[(&str, &[&str])]) {
    let cards: Vec<String> = cards
        .iter()
        .enumerate()
        .map(|(nth, lines)| {
            card(&if lines.contains("UID:") {
                (*lines).into()
            } else {
                format!("UID:{nth}\n{lines}")
            })
        })
        .collect();
    let book = Book::with_contacts(cards.iter().map(String::as_str));
    let reader = book.reader();
    let settings = QueryContext { region: region.map(str::to_string), ..QueryContext::default() };
    let mut wrong = Vec::new();
    for (line, expect) in lines {
        let found = uids(&reader, &search_request(Query::parse_with(line, &settings).unwrap()));
        if found != *expect {
            wrong.push(format!("{line:?} finds {found:?}, not {expect:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn short_words_match_beginnings_of_words() {
    check(
        &[
            "UID:an\nFN:An Li",
            "UID:anna\nFN:Anna-Lena Obermaier",
            "UID:hans\nFN:Hans Öhler",
            "UID:ob\nFN:O'Brien Bob\nEMAIL:b.o@example.org",
            "UID:3m\nFN:3M",
        ],
        None,
        &[
            ("a", &["an", "anna"]),
            ("an", &["an", "anna"]),
            ("AN", &["an", "anna"]),
            ("li", &["an"]),
            ("le", &["anna"]),
            ("o", &["anna", "hans", "ob"]),
            ("ö", &["anna", "hans", "ob"]),
            ("ob", &["anna"]),
            ("br", &["ob"]),
            ("an li", &["an"]),
            ("\"an l\"", &["an"]),
            ("3", &["3m"]),
            ("3m", &["3m"]),
            // In a field, a single letter matches anywhere.
            ("full_name:n", &["an", "anna", "hans", "ob"]),
            // A star after a word has no effect; in quotes it is literal.
            ("an*", &["an", "anna"]),
            ("\"an*\"", &[]),
        ],
    );
}

/// Every text of a card is found by `any:`, its labels and relations too.
#[test]
fn any_searches_labels_relations_and_profiles() {
    let card = "UID:a\nFN:A\nitem1.TEL:1\nitem1.X-ABLabel:Sommerhaus\nRELATED;TYPE=spouse:Peter\n\
        item2.X-ABRELATEDNAMES:Paula\nitem2.X-ABLabel:_$!<Sister>!$_\nX-SOCIALPROFILE;TYPE=twitter:https://x.example/anna\n\
        ADR:;;Weg 1;Wien;;1010;\nNOTE:likes tea\nBDAY:--1127";
    let found: &[&str] = &["a"];
    let lines: Vec<(&str, &[&str])> = [
        "any:sommerhaus",
        "any:peter",
        "any:paula",
        "any:spouse",
        "any:sister",
        "related_type:sister",
        "any:x.example",
        "any:wien",
        "any:tea",
        "related:peter",
        "birthday:november",
    ]
    .map(|line| (line, found))
    .to_vec();
    check(&[card, "UID:b\nFN:B\nBDAY:1980-10-11"], None, &lines);
}

#[test]
fn han_kana_and_hangul_are_searched() {
    check(
        &[
            "UID:wang\nFN:王小明\nN:王;小明;;;",
            "UID:sato\nFN:佐藤 花子\nX-PHONETIC-LAST-NAME:サトウ\nNICKNAME:はなちゃん",
            "UID:kim\nFN:김철수\nORG:한국전력",
            "UID:gaku\nFN:ガク",
            "UID:zhang\nFN:張偉",
        ],
        None,
        &[
            ("王", &["wang"]),
            ("小明", &["wang"]),
            ("明", &["wang"]),
            ("明小", &[]),
            ("花", &["sato"]),
            ("佐藤花子", &[]),
            ("佐藤 花子", &["sato"]),
            ("花子 佐藤", &["sato"]),
            ("ちゃ", &["sato"]),
            // Hiragana and katakana differ, and so do voiced and unvoiced letters.
            ("チャ", &[]),
            ("ガ", &["gaku"]),
            ("カ", &[]),
            ("ｶﾞ", &["gaku"]),
            ("x-phonetic-last-name:サト", &["sato"]),
            ("김", &["kim"]),
            ("철수", &["kim"]),
            ("국전", &["kim"]),
            // A syllable is one letter, also if it is typed in parts.
            ("\u{1100}\u{1175}\u{11b7}", &["kim"]),
            ("ㄱ", &[]),
            // Traditional and simplified characters differ.
            ("张", &[]),
            ("張", &["zhang"]),
        ],
    );
}

#[test]
fn case_and_accents_are_ignored_in_many_languages() {
    check(
        &[
            "UID:isik\nFN:Işık İnan",
            "UID:ilgaz\nFN:ILGAZ IRMAK",
            "UID:strauss\nFN:Jürgen Groß-Strauß",
            "UID:angstrom\nFN:Åsa Ångström",
            "UID:soren\nFN:Søren Ødegård",
            "UID:odysseus\nFN:Οδυσσέας Παπαδόπουλος",
            "UID:alyona\nFN:Алёна Ёлкина",
            "UID:lodz\nFN:Łukasz Żółć",
            "UID:nguyen\nFN:Nguyễn Văn Đức",
            "UID:ofir\nFN:אוֹפִיר כהן",
            "UID:fine\nFN:Joseﬁne",
        ],
        None,
        &[
            // Turkish: all forms of i are equal.
            ("ışık", &["isik"]),
            ("isik", &["isik"]),
            ("IŞIK", &["isik"]),
            ("İŞİK", &["isik"]),
            ("inan", &["isik"]),
            ("İNAN", &["isik"]),
            ("ilgaz", &["ilgaz"]),
            ("ılgaz", &["ilgaz"]),
            ("full_name:=\"ılgaz ırmak\"", &["ilgaz"]),
            // German: ß is ss, also for `is`; in the memory of evolution-data-server it is not.
            ("strauss", &["strauss"]),
            ("STRAUSS", &["strauss"]),
            ("STRAUẞ", &["strauss"]),
            ("full_name:=\"jurgen gross-strauss\"", &["strauss"]),
            ("jürgen", &["strauss"]),
            ("jurgen", &["strauss"]),
            // There is no transcription: ue is not ü.
            ("juergen", &[]),
            // Å and the Ångström sign are an A with a ring; Ø and Ł are separate letters.
            ("asa", &["angstrom"]),
            ("\u{212b}ngström", &["angstrom"]),
            ("angstrom", &["angstrom"]),
            ("A\u{30a}sa", &["angstrom"]),
            ("søren", &["soren"]),
            ("SØREN", &["soren"]),
            ("soren", &[]),
            ("ødegard", &["soren"]),
            ("łukasz", &["lodz"]),
            ("lukasz", &[]),
            ("żołć", &["lodz"]),
            // Greek: the final sigma is a sigma.
            ("οδυσσεας", &["odysseus"]),
            ("ΟΔΥΣΣΕΑΣ", &["odysseus"]),
            ("οδυσσεασ", &["odysseus"]),
            ("παπαδόπουλος", &["odysseus"]),
            // Cyrillic: ё is an е with a mark, as in evolution-data-server, and so й is an и.
            ("елкина", &["alyona"]),
            ("ЁЛКИНА", &["alyona"]),
            ("алена", &["alyona"]),
            // Two marks on one letter; đ is a letter.
            ("nguyen", &["nguyen"]),
            ("van", &["nguyen"]),
            ("đuc", &["nguyen"]),
            ("duc", &[]),
            ("אופיר", &["ofir"]),
            ("josefine", &["fine"]),
            ("joseﬁne", &["fine"]),
        ],
    );
}

/// The number of each country, as written in a card, is found by the notations of that country, and
/// by no other line of the table.
#[test]
fn numbers_of_ten_countries_are_found() {
    for (region, in_card, typed, not) in [
        (
            "AT",
            "+43 664 1234567",
            &[
                "0664 1234567",
                "0664/123 45 67",
                "0043 664 1234567",
                "+43(0)664-1234567",
                "6641234567",
                "664 1234",
            ][..],
            &["0665 1234567", "+49 664 1234567"][..],
        ),
        (
            "DE",
            "0171 / 23 45 678",
            &["+49 171 2345678", "0171-2345678", "00491712345678", "1712345678"],
            &["0172 2345678", "+49 172 2345678"],
        ),
        (
            "CH",
            "+41 44 668 18 00",
            &["044 668 18 00", "0446681800", "0041 44 668 18 00"],
            &["043 668 18 00"],
        ),
        (
            "US",
            "(212) 555-0123",
            &["+1 212 555 0123", "1-212-555-0123", "212.555.0123", "555-0123"],
            &["(213) 555-0123"],
        ),
        (
            "GB",
            "+44 20 7946 0958",
            &["020 7946 0958", "(020) 79460958", "0044 20 7946 0958"],
            &["0121 7946 0958"],
        ),
        (
            "FR",
            "01 42 68 53 00",
            &["+33 1 42 68 53 00", "+33 (0)1 42 68 53 00", "0142685300", "0033142685300"],
            &["+33 2 42 68 53 00"],
        ),
        (
            "IT",
            "+39 06 6988 1022",
            &["06 6988 1022", "0669881022", "0039 06 69881022"],
            &["02 6988 1022"],
        ),
        ("RU", "8 (916) 123-45-67", &["+7 916 123-45-67", "89161234567"], &["+7 917 123-45-67"]),
        (
            "JP",
            "03-1234-5678",
            &[
                "+81 3 1234 5678",
                "0312345678",
                "０３ １２３４ ５６７８",
                "０３−１２３４−５６７８",
                "０３－１２３４－５６７８",
            ],
            &["06-1234-5678"],
        ),
        (
            "BR",
            "+55 11 96123-4567",
            &["(11) 96123-4567", "011 96123-4567", "0 15 11 96123-4567"],
            &["(21) 96123-4567"],
        ),
        (
            "IN",
            "098765 43210",
            &["+91 98765 43210", "9876543210", "0091 98765-43210"],
            &["+91 98765 43211"],
        ),
        ("HU", "06 20 123 4567", &["+36 20 123 4567", "0036 20 1234567"], &["+36 30 123 4567"]),
    ] {
        let lines: Vec<(String, &[&str])> = typed
            .iter()
            .map(|typed| (format!("\"{typed}\""), &["0"][..]))
            .chain(not.iter().map(|typed| (format!("\"{typed}\""), &[][..])))
            .chain(typed.iter().map(|typed| (format!("phone:\"{typed}\""), &["0"][..])))
            // Without quotes, where parentheses group.
            .chain(
                typed
                    .iter()
                    .filter(|typed| !typed.contains('('))
                    .map(|typed| (typed.to_string(), &["0"][..])),
            )
            .collect();
        let lines: Vec<(&str, &[&str])> =
            lines.iter().map(|(line, expect)| (line.as_str(), *expect)).collect();
        check(
            &[&format!("FN:A\nTEL:{in_card}"), "FN:B\nTEL:+1 900 000 0000"],
            Some(region),
            &lines,
        );
    }
}

#[test]
fn numbers_are_found_without_a_region() {
    check(
        &[
            "UID:at\nFN:A\nTEL:+43 664 1234567",
            "UID:local\nFN:B\nTEL;TYPE=CELL:0664/1234567",
            "UID:de\nFN:C\nTEL:+49 664 1234567",
        ],
        None,
        &[
            ("0664/1234567", &["at", "local", "de"]),
            ("+436641234567", &["at", "local"]),
            ("00436641234567", &["at", "local"]),
            ("mobile:+436641234567", &["local"]),
            ("phone:=+436641234567", &["at", "local"]),
            // Parts of numbers match by their digits.
            ("664123", &["at", "local", "de"]),
            ("+43664", &["at"]),
            ("phone:0664", &["local"]),
            // A number typed with blanks: each part may match anywhere.
            ("0664 123 45 67", &["at", "local", "de"]),
            ("+43 664 123 45 67", &["at", "local"]),
            ("+43 (0)664 123 45 67", &["at", "local"]),
            ("+43 (664) 1234567", &["at", "local"]),
            ("(0664) 123 45 67", &["at", "local", "de"]),
            ("a +43 664 123 45 67", &["at"]),
            ("+43 664 123 45 67 or c", &["at", "local", "de"]),
            ("-(+43 664 123 45 67)", &["de"]),
            ("664 123", &["at", "local", "de"]),
            ("0664 123", &["local"]),
        ],
    );
}

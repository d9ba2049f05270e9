//! Incremental search: the query after each typed letter costs at most one lookup more than the
//! query before.

use crate::book::{Book, card, search_request};
use larder_query::{Query, find, full_scan};
use larder_store::Reader;

const FIRST: &[&str] = &[
    "Anna", "Hannah", "Annette", "Bert", "Robert", "Berta", "Otto", "Zoë", "Xander", "Sandra",
    "Иван", "小明",
];
const LAST: &[&str] = &[
    "Bergström",
    "Huber",
    "Weber",
    "Berger",
    "Anders",
    "Sanders",
    "Zander",
    "O'Brien",
    "de la Cruz",
    "Müller",
    "Mülleder",
    "Ёлкин",
    "王",
    "Strauß",
    "Al-Amin",
];

/// A collection that was written in several batches.
fn book() -> Book {
    let mut book = Book::new();
    let mut number = 0;
    for first in FIRST {
        let cards = LAST.iter().map(|last| {
            number += 1;
            let mail = format!("{number}.{last}@example.org").replace(' ', "");
            let name =
                if *last == "王" { format!("{last}{first}") } else { format!("{first} {last}") };
            let tel = 6_640_000_000_u64 + number * 7919;
            card(&format!(
                "UID:u{number}\nFN:{name}\nN:{last};{first};;;\nEMAIL:{mail}\nTEL:0{tel}"
            ))
        });
        let cards: Vec<String> = cards.collect();
        book.put("contacts", cards.iter().map(String::as_str));
    }
    book
}

/// Returns how many rows of the index a search visits. Its result must equal the result of a full
/// scan.
fn count_visited(reader: &Reader, line: &str) -> u64 {
    let request = search_request(Query::parse(line).unwrap());
    let result = find(reader, &request).unwrap();
    assert_eq!(result.rows(), full_scan(reader, &request).unwrap().rows(), "{line:?}");
    result.explain.rows_read
}

/// Returns the prefixes of a text, without prefixes that end in a space, which are the same query
/// as the preceding prefix.
fn prefixes(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.map(|end| &text[..end]).filter(|text| !text.ends_with(' '))
}

#[test]
fn another_letter_adds_at_most_one_lookup() {
    let book = book();
    let reader = book.reader();
    let check = |typed: &str| {
        let mut before = None;
        for text in prefixes(typed) {
            let now = count_visited(&reader, text);
            // The cost of the last letters of the last word alone: a prefix, or one trigram.
            let word = text.rsplit(' ').next().unwrap_or_default();
            let start = word.char_indices().rev().map(|(at, _)| at).take(3).last().unwrap_or(0);
            // In quotes, as "and" is an operator.
            let alone = count_visited(&reader, &format!("\"{}\"", &word[start..]));
            if let Some(before) = before {
                assert!(now <= before + alone, "{text:?}: {now}, after {before}, alone {alone}");
            }
            before = Some(now);
        }
    };
    for typed in [
        "bergström",
        "BERGSTROM",
        "zander",
        "annette",
        "anna huber",
        "huber anna",
        "bert b",
        "strauss",
        "иван елкин",
        "王小明",
        "0664000",
        "example.org",
        "otto de la cruz",
        "nobody",
    ] {
        check(typed);
    }
}

/// A field is searched by its values, so each letter leaves fewer.
#[test]
fn another_letter_of_a_field_visits_no_more_rows() {
    let book = book();
    let reader = book.reader();
    for (field, typed) in [
        ("full_name", "Anna Bergström"),
        ("family_name", "zander"),
        ("email", "1.bergström@e"),
        ("phone", "066400"),
    ] {
        let mut before = u64::MAX;
        for text in prefixes(typed) {
            let now = count_visited(&reader, &format!("{field}:\"{text}\"*"));
            assert!(now <= before, "{field} {text:?}: {now}, after {before}");
            before = now;
        }
    }
}

/// No index has two characters that are not a word; the third makes a trigram.
#[test]
fn two_characters_that_are_not_a_word_visit_all_items() {
    let book = book();
    let reader = book.reader();
    let all = (FIRST.len() * LAST.len()) as u64;
    for typed in ["o'brien", "@example", "-amin"] {
        let visited: Vec<u64> = prefixes(typed)
            .take(3)
            .map(|text| count_visited(&reader, &format!("\"{text}\"")))
            .collect();
        assert_eq!((visited[1], visited[2] <= all), (all, true), "{typed}: {visited:?}");
    }
}

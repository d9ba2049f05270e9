//! Results larger than a prefetch, a page, or the candidates of one transaction.

use crate::book::{Book, card, search_request};
use larder_query::{Query, SearchRequest, find, full_scan};
use larder_store::BatchChange;
use std::collections::HashMap;

#[test]
fn results_across_boundaries_are_complete() {
    let long = "x ".repeat(36_000);
    let one = |n: usize, c: &str| {
        let note = if n % 47 == 3 { format!("NOTE:{long}\n") } else { String::new() };
        let name = if n.is_multiple_of(5) { "Berta" } else { "Anna" };
        card(&format!("UID:{c}{n}\nFN:{name} {n}\nEMAIL:{name}@x\nORG:O{}\n{note}", n % 2))
    };
    let mut book = Book::new();
    let cards: Vec<String> = (0..2600).map(|n| one(n, "u")).collect();
    for chunk in cards.chunks(700) {
        book.put("contacts", chunk.iter().map(String::as_str));
    }
    let work: Vec<String> = (0..700).map(|n| one(n, "w")).collect();
    book.put("work", work.iter().map(String::as_str));
    // Updates and removals.
    let edits: Vec<String> = (0..2600)
        .step_by(13)
        .map(|n| one(n + 5, "u").replace(&format!("UID:u{}", n + 5), &format!("UID:u{n}")))
        .collect();
    book.put("contacts", edits.iter().map(String::as_str));
    let mut walks = HashMap::new();
    for summary in
        [None, Some("none"), Some("full_name:prefix email:exact"), Some("default note:sort")]
    {
        if let Some(summary) = summary {
            book.apply(vec![BatchChange::SetIndexConfig("work".into(), summary.parse().unwrap())]);
            book.store.refresh().unwrap();
        }
        let reader = book.reader();
        for q in [
            "(beginswith \"given_name\" \"an\")",
            "(beginswith \"full_name\" \"anna\")",
            "(is \"email\" \"anna@x\")",
            "(contains \"full_name\" \"nna\")",
            "(and (is \"email\" \"anna@x\") (is \"org\" \"o1\"))",
            "(or (is \"email\" \"berta@x\") (beginswith \"full_name\" \"anna 1\"))",
            "(exists \"note\")",
            "(contains \"note\" \"x x\")",
            "(not (exists \"note\"))",
        ] {
            for collection in [None, Some("contacts"), Some("work")] {
                for limit in [
                    None,
                    Some(1),
                    Some(63),
                    Some(64),
                    Some(65),
                    Some(257),
                    Some(1000),
                    Some(1001),
                    Some(1500),
                ] {
                    let request = SearchRequest {
                        limit,
                        collection: collection.map(str::to_string),
                        ..search_request(Query::parse_sexp(q).unwrap())
                    };
                    let found = find(&reader, &request).unwrap();
                    if limit.is_none_or(|l| l > 60) || collection.is_none() {
                        let mut given = Vec::new();
                        found
                            .for_each(&reader, &mut |meta, _| {
                                given.push(meta.row);
                                true
                            })
                            .unwrap();
                        assert_eq!(
                            given,
                            found.rows(),
                            "each {q} {collection:?} {limit:?} {summary:?}"
                        );
                        let all = walks.entry(format!("{q}{collection:?}")).or_insert_with(|| {
                            full_scan(&reader, &SearchRequest { limit: None, ..request.clone() })
                                .unwrap()
                                .rows()
                        });
                        let all = &all[..limit.unwrap_or(all.len()).min(all.len())];
                        assert_eq!(found.rows(), all, "{q} {collection:?} {limit:?} {summary:?}");
                    }
                }
            }
        }
    }
}

//! Saved searches as bytes: written, read, and read although a newer program wrote them.

use larder_format::kind::Kind;
use larder_format::saved_search::{SavedSearch, is_search_name};

#[test]
fn a_saved_search_is_written_and_read() {
    let query = "from:\"anna berg\" or (subject:budget; a,b \\x) -tag:todo";
    let mut search = SavedSearch::new("work", query, "message");
    search.label_changes = vec!["+tax".into(), "-inbox, old".into()];
    let text = search.to_text();
    assert!(text.starts_with("BEGIN:SAVED-SEARCH\r\nUID:work\r\nQUERY:from:"), "{text}");
    assert_eq!(SavedSearch::parse(text.as_bytes()), Some(search.clone()));
    // Long lines are folded.
    search.query = "walrus ".repeat(50).trim().to_string();
    let text = search.to_text();
    assert!(text.lines().all(|line| line.len() <= 75), "{text}");
    assert_eq!(SavedSearch::parse(text.as_bytes()), Some(search));
}

#[test]
fn unknown_lines_are_skipped() {
    let text = "BEGIN:SAVED-SEARCH\r\nX-COLOUR:red\r\nUID:a\r\nQUERY:x\r\nORDER;BY=1:date\r\n\
                END:SAVED-SEARCH\r\n";
    let search = SavedSearch::parse(text.as_bytes());
    assert_eq!(search, Some(SavedSearch::new("a", "x", "message")));
    let text = text.replace("QUERY:x", "KIND:commit-of-2040");
    let search = SavedSearch::parse(text.as_bytes()).unwrap();
    assert_eq!((Kind::from_saved_search(&search), search.query.as_str()), (None, ""));
    assert_eq!(SavedSearch::parse(b"BEGIN:SAVED-SEARCH\r\nEND:SAVED-SEARCH\r\n"), None);
    assert_eq!(SavedSearch::parse(b""), None);
}

#[test]
fn a_name_is_a_whole_term() {
    for name in ["work", "to-do", "größe_2", "東京"] {
        assert!(is_search_name(name), "{name}");
    }
    for name in ["", "a b", "example.org", "a:b", "a(b", "a\"b", "@a", &"a".repeat(101)] {
        assert!(!is_search_name(name), "{name}");
    }
}

//! What people and programs type: search lines, S-expressions, handles, cursors.

use larder_query::{Query, SyntaxError};
use larder_store::{ChangeCursor, HandlePrefix};

/// The search line: what parses is written out as an S-expression that means the same.
pub fn check_search_line(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Query::parse(&text) {
        Ok(query) => check_round_trip(&query),
        Err(error) => check_syntax_error(&text, &error),
    }
}

/// The S-expressions of evolution-data-server: what parses, parses again from what it is written
/// as.
pub fn check_sexp(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Query::parse_sexp(&text) {
        Ok(query) => check_round_trip(&query),
        Err(error) => check_syntax_error(&text, &error),
    }
}

/// How items and places in the log are named on the command line: handles and cursors.
pub fn check_address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(cursor) = ChangeCursor::parse(&text) {
        assert_eq!(
            ChangeCursor::parse(&cursor.to_string()),
            Some(cursor),
            "a cursor, written and read"
        );
    }
    let Some(prefix) = HandlePrefix::parse(&text) else { return };
    assert_eq!(HandlePrefix::parse(&text.to_ascii_uppercase()), Some(prefix), "in capitals");
    for length in 1..text.len() {
        assert!(HandlePrefix::parse(&text[..length]).is_some(), "a beginning of a beginning");
    }
}

fn check_round_trip(query: &Query) {
    let written = query.to_string();
    match Query::parse_sexp(&written) {
        Ok(read) => assert_eq!(read, *query, "written as {written}"),
        Err(error) => panic!("{query:?} is written as {written}, which is refused: {error}"),
    }
}

/// A message says something, of a place that is in the text or just behind it.
fn check_syntax_error(text: &str, error: &SyntaxError) {
    assert!(!error.message.is_empty(), "nothing is said");
    assert!(
        (1..=text.chars().count() + 1).contains(&error.at),
        "{error}: there is no such place in the text"
    );
}

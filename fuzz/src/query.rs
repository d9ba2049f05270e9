//! Targets of typed text: search lines, S-expressions, handles and cursors.

use larder_query::{Query, SyntaxError};
use larder_store::{ChangeCursor, HandlePrefix};

/// The search line: a query that parses is written as an S-expression that parses to the same
/// query.
pub fn check_search_line(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Query::parse(&text) {
        Ok(query) => check_round_trip(&query),
        Err(error) => check_syntax_error(&text, &error),
    }
}

/// The S-expressions of evolution-data-server: a query that parses is written as a text that parses
/// to the same query.
pub fn check_sexp(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Query::parse_sexp(&text) {
        Ok(query) => check_round_trip(&query),
        Err(error) => check_syntax_error(&text, &error),
    }
}

/// Handles and cursors of the change feed, as the command line takes them.
pub fn check_address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(cursor) = ChangeCursor::parse(&text) {
        assert_eq!(
            ChangeCursor::parse(&cursor.to_string()),
            Some(cursor),
            "a cursor changed when written and read"
        );
    }
    let Some(prefix) = HandlePrefix::parse(&text) else { return };
    assert_eq!(HandlePrefix::parse(&text.to_ascii_uppercase()), Some(prefix), "upper case");
    for length in 1..text.len() {
        assert!(HandlePrefix::parse(&text[..length]).is_some(), "a prefix of a prefix is invalid");
    }
}

fn check_round_trip(query: &Query) {
    let written = query.to_string();
    match Query::parse_sexp(&written) {
        Ok(read) => assert_eq!(read, *query, "written as {written}"),
        Err(error) => panic!("{query:?} is written as {written}, which does not parse: {error}"),
    }
}

/// A syntax error has a message, and a position in the text or directly after it.
pub(crate) fn check_syntax_error(text: &str, error: &SyntaxError) {
    assert!(!error.message.is_empty(), "the message is empty");
    assert!(
        (1..=text.chars().count() + 1).contains(&error.at),
        "{error}: the position is not in the text"
    );
}

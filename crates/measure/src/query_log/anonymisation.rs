//! An anonymous copy of a query log: texts and names are replaced by tokens.
//!
//! Equal texts have equal tokens throughout the log, and different texts different ones, so the
//! analysis of the copy gives the same figures. Numbers, times, events, the functions and field
//! names of queries, and the times in queries remain. Texts that a person or a program wrote and
//! the names of collections and clients are replaced. Unreadable lines and the events and fields of
//! later versions are omitted, because their content is unknown.

use crate::query_log::log_reader::{BadLines, read_lines};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{self, BufRead, Write};

/// The result of an anonymisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnonymisationReport {
    /// The number of lines written.
    pub lines: u64,
    /// The number of lines omitted because their event is unknown.
    pub unknown_lines: u64,
    /// The lines omitted because they are unreadable.
    pub bad_lines: BadLines,
    /// The number of texts replaced by tokens.
    pub texts: u64,
}

/// Writes a copy of a log without its texts and names.
///
/// # Errors
/// Any error of reading the source or writing the target.
pub fn anonymise(
    source: &mut dyn BufRead,
    target: &mut dyn Write,
) -> io::Result<AnonymisationReport> {
    let (mut tokens, mut written, mut unknown) = (TextTokens::default(), 0, 0);
    let broken = read_lines(source, &mut |text, _| {
        let Ok(Value::Object(line)) = serde_json::from_str(text) else { return Ok(()) };
        match tokens.anonymise_line(&line) {
            Some(line) => {
                written += 1;
                writeln!(target, "{}", Value::Object(line))
            }
            None => {
                unknown += 1;
                Ok(())
            }
        }
    })?;
    Ok(AnonymisationReport {
        lines: written,
        unknown_lines: unknown,
        bad_lines: broken,
        texts: tokens.numbers.len() as u64,
    })
}

/// The fields of each event whose values are numbers or keywords of the log.
const NUMERIC_FIELDS_BY_EVENT: &[(&str, &[&str])] = &[
    ("start", &["budget"]),
    ("query", ANSWER_NUMERIC_FIELDS),
    ("open", ANSWER_NUMERIC_FIELDS),
    ("notify", &["view", "seq", "added", "modified", "removed", "us"]),
    ("reset", &["view", "seq", "returned", "us"]),
    ("close", &["view"]),
    ("change", &["seq", "batches", "items", "tested", "notified", "us"]),
    ("evict", &["answer", "bytes"]),
    ("end", &[]),
];
const ANSWER_NUMERIC_FIELDS: &[&str] =
    &["view", "answer", "rows_read", "verified", "returned", "us", "bytes"];

/// The keywords of the log, by field.
const LOG_KEYWORDS_BY_FIELD: &[(&str, &[&str])] = &[
    ("event", &["start", "query", "open", "notify", "reset", "close", "change", "evict", "end"]),
    ("origin", &["executed", "cache", "shared"]),
    ("reason", &["stale", "budget", "expired", "collections", "zones"]),
    ("kind", KIND_NAMES),
    ("backend", &["local"]),
];
/// The names of all kinds, as `the_names_of_kinds_are_kept` compares them.
const KIND_NAMES: &[&str] = &[
    "contact",
    "event",
    "task",
    "memo",
    "other",
    "message",
    "commit",
    "saved-search",
    "labels",
    "component",
];

/// Functions whose first text is the name of a field, a kind or a time.
const FIELD_NAME_FUNCTIONS: &[&str] = &[
    "contains",
    "is",
    "beginswith",
    "endswith",
    "includes",
    "exists",
    "exists_vcard",
    "eqphone",
    "eqphone_national",
    "eqphone_short",
    "regex_normal",
    "regex_raw",
    "contains?",
    "stamp",
    "number",
    "kind",
    "make-time",
];

/// The other functions.
const OTHER_FUNCTIONS: &[&str] = &[
    "and",
    "or",
    "not",
    "word",
    "uids",
    "uid?",
    "occur-in-time-range?",
    "has-alarms-in-range?",
    "due-in-time-range?",
    "completed-before?",
    "starts-before?",
    "has-start?",
    "has-end?",
    "has-due?",
    "has-duration?",
    "has-attachments?",
    "has-alarms?",
    "has-recurrences?",
    "is-completed?",
    "has-categories?",
    "overdue?",
    "percent-complete?",
    "occurrences-count?",
    "time-now",
    "time-day-begin",
    "time-day-end",
    "time-add-day",
    "=",
    "<",
    ">",
];

/// The tokens of texts, numbered in the order of first occurrence.
#[derive(Debug, Default)]
struct TextTokens {
    numbers: HashMap<String, usize>,
}

impl TextTokens {
    /// Returns the token of a text. `begin` is a prefix that names the place of the text.
    fn token_for(&mut self, begin: &str, text: &str) -> String {
        let next = self.numbers.len() + 1;
        let number = *self.numbers.entry(text.to_string()).or_insert(next);
        format!("{begin}{number}")
    }

    /// Returns the line with tokens, or `None` if its event is unknown.
    fn anonymise_line(&mut self, line: &Map<String, Value>) -> Option<Map<String, Value>> {
        let event = line.get("event")?.as_str()?;
        let (_, numbers) = NUMERIC_FIELDS_BY_EVENT.iter().find(|(known, _)| *known == event)?;
        let mut new = Map::new();
        for (name, value) in line {
            let number =
                ["at_us", "pid"].contains(&name.as_str()) || numbers.contains(&name.as_str());
            let value = match name.as_str() {
                _ if number => Some(value).filter(|value| value.is_number()).cloned(),
                "query" => value.as_str().map(|text| self.anonymise_query(text).into()),
                "collection" => Some(self.anonymise_name("collection", value)),
                "client" => Some(self.anonymise_name("client", value)),
                "kind" | "backend" | "origin" | "reason" | "event" => {
                    Some(self.anonymise_keyword(name, value))
                }
                "kinds" => Some(self.anonymise_changed_kinds(value)),
                "version" => value.as_str().filter(|text| is_version(text)).map(Value::from),
                _ => None,
            };
            if let Some(value) = value {
                new.insert(name.clone(), value);
            }
        }
        Some(new)
    }

    fn anonymise_name(&mut self, begin: &str, value: &Value) -> Value {
        value.as_str().map_or(Value::Null, |text| self.token_for(begin, text).into())
    }

    /// Returns a keyword of the log unchanged, and another text as a token.
    fn anonymise_keyword(&mut self, field: &str, value: &Value) -> Value {
        let (_, words) =
            LOG_KEYWORDS_BY_FIELD.iter().find(|(name, _)| *name == field).unwrap_or(&("", &[]));
        match value.as_str() {
            Some(text) if words.contains(&text) => text.into(),
            Some(text) => self.token_for(field, text).into(),
            None => Value::Null,
        }
    }

    /// Replaces the collections and unknown kinds of a change.
    fn anonymise_changed_kinds(&mut self, value: &Value) -> Value {
        let pairs = value.as_array().into_iter().flatten().filter_map(Value::as_array);
        let mut pair = |pair: &Vec<Value>| -> Value {
            let [collection, kind] = [0, 1].map(|at| pair.get(at).unwrap_or(&Value::Null));
            vec![
                self.anonymise_name("collection", collection),
                self.anonymise_keyword("kind", kind),
            ]
            .into()
        };
        pairs.map(&mut pair).collect::<Vec<_>>().into()
    }

    /// Replaces the texts of a query. A query that is not an S-expression is one text.
    fn anonymise_query(&mut self, text: &str) -> String {
        match split_sexp(text) {
            Some(parts) => self.anonymise_sexp(&parts),
            None => self.token_for("t", text),
        }
    }

    fn anonymise_sexp(&mut self, parts: &[SexpPart<'_>]) -> String {
        let mut out = String::new();
        // The enclosing functions, each with the number of its texts so far.
        let mut calls: Vec<(&str, usize)> = Vec::new();
        let mut first = false;
        for part in parts {
            match *part {
                SexpPart::Whitespace(blank) => out.push_str(blank),
                SexpPart::Open => {
                    out.push('(');
                    calls.push(("", 0));
                }
                SexpPart::Close => {
                    out.push(')');
                    calls.pop();
                }
                SexpPart::Atom(word) if first && is_function(word) => {
                    out.push_str(word);
                    if let Some(call) = calls.last_mut() {
                        *call = (word, 0);
                    }
                }
                SexpPart::Atom(word) if is_harmless_atom(word) => out.push_str(word),
                SexpPart::Atom(word) => out.push_str(&self.token_for("t", word)),
                SexpPart::Text(text) => {
                    let (function, texts) = calls.last().copied().unwrap_or_default();
                    let stays = texts == 0
                        && FIELD_NAME_FUNCTIONS.contains(&function)
                        && is_harmless_argument(function, text);
                    let shown =
                        if stays { text.to_string() } else { self.token_for("t", &unescape(text)) };
                    out.extend(["\"", &shown, "\""]);
                    if let Some(call) = calls.last_mut() {
                        call.1 += 1;
                    }
                }
            }
            first = matches!(part, SexpPart::Open)
                || (first && matches!(part, SexpPart::Whitespace(_)));
        }
        out
    }
}

/// A part of an S-expression.
#[derive(Debug, Clone, Copy)]
enum SexpPart<'a> {
    Open,
    Close,
    Whitespace(&'a str),
    Atom(&'a str),
    /// A quoted text without its quotes, still escaped.
    Text(&'a str),
}

/// Splits an S-expression into its parts; `None` if it is malformed.
fn split_sexp(text: &str) -> Option<Vec<SexpPart<'_>>> {
    let (mut parts, mut depth, mut rest) = (Vec::new(), 0_usize, text);
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '(' => {
                depth += 1;
                parts.push(SexpPart::Open);
                1
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                parts.push(SexpPart::Close);
                1
            }
            '"' => {
                let inner = rest.get(1..)?;
                let end = find_closing_quote(inner)?;
                parts.push(SexpPart::Text(inner.get(..end)?));
                end + 2
            }
            c if c.is_whitespace() => {
                let end = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
                parts.push(SexpPart::Whitespace(rest.get(..end)?));
                end
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || "()\"".contains(c);
                let end = rest.find(ends).unwrap_or(rest.len());
                parts.push(SexpPart::Atom(rest.get(..end)?));
                end
            }
        };
        // Text outside the first expression could be anything.
        if depth == 0 && !matches!(parts.first(), Some(SexpPart::Open)) && rest.len() > end {
            return None;
        }
        rest = rest.get(end..)?;
    }
    (depth == 0 && !parts.is_empty()).then_some(parts)
}

/// Returns the position of the closing quote of a text.
fn find_closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let found = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        found.then_some(at)
    })
}

/// Returns the text without escapes, so that equal texts have one token.
fn unescape(text: &str) -> String {
    let (mut plain, mut escaped) = (String::new(), false);
    for c in text.chars() {
        if escaped && !matches!(c, '"' | '\\') {
            // Two spellings of one text are two queries, which must stay different: an unusual
            // spelling gets a token of its own.
            return format!("\0{text}");
        }
        escaped = c == '\\' && !escaped;
        if !escaped {
            plain.push(c);
        }
    }
    plain
}

fn is_function(word: &str) -> bool {
    OTHER_FUNCTIONS.contains(&word) || FIELD_NAME_FUNCTIONS.contains(&word)
}

/// Returns whether an atom may remain: `#t`, `#f`, and numbers too short for a telephone number.
fn is_harmless_atom(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    ["#t", "#f"].contains(&word)
        || ((1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether the first text of a function may remain. Field names are short words; the names
/// of extension fields begin with `x-` and may contain anything.
fn is_harmless_argument(function: &str, text: &str) -> bool {
    let short = |is_allowed: fn(u8) -> bool| {
        text.len() <= 40 && !text.is_empty() && text.bytes().all(is_allowed)
    };
    match function {
        "make-time" => short(|byte| byte.is_ascii_digit() || b"TZ-:".contains(&byte)),
        "kind" => KIND_NAMES.contains(&text),
        _ => {
            let is_extension = text.get(..2).is_some_and(|begin| begin.eq_ignore_ascii_case("x-"));
            let token = text.strip_prefix('t').is_some_and(|rest| rest.parse::<u64>().is_ok());
            let word = short(|byte| byte.is_ascii_alphanumeric() || b"_-:".contains(&byte));
            word && !token && (!is_extension || text == "x-evolution-any-field")
        }
    }
}

fn is_version(text: &str) -> bool {
    text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

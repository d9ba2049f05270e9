//! Queries of notmuch, written as Larder has them.
//!
//! Separate from `notmuch`, which reads the data: here only texts are translated.

use super::implicit_operators::write_operators;

/// Returns a query of notmuch as Larder has it.
pub(super) fn translate_query(line: &str) -> String {
    translate_terms(&replace_references(&write_operators(line)))
}

/// Returns a query with the terms that mean something else in Larder written otherwise: `to:`
/// finds all recipients in notmuch, `mimetype:` a part of the type, a date such as `2y` the whole
/// year, and parentheses in quotes are a group of words. Other quoted terms and the inner query of
/// a thread stay as they are.
fn translate_terms(line: &str) -> String {
    let mut translated = String::with_capacity(line.len());
    let mut rest = line;
    let mut is_start = true;
    while let Some(c) = rest.chars().next() {
        if is_start && let Some((name, value)) = split_term(rest) {
            let length = value_length(value);
            let (value, behind) = value.split_at(length);
            translated.push_str(&translate_term(name, value));
            rest = behind;
            is_start = false;
            continue;
        }
        // A phrase is copied as a whole.
        let phrase = rest.strip_prefix('"').and_then(|inner| inner.find('"')).map(|end| end + 2);
        let length = phrase.unwrap_or(c.len_utf8());
        is_start = c.is_whitespace() || "(-".contains(c);
        let (copied, behind) = rest.split_at(length);
        translated.push_str(copied);
        rest = behind;
    }
    translated
}

/// Returns the name of the field that a text begins with, if its terms are translated, and the text
/// behind its colon.
fn split_term(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(':')?;
    ["to", "mimetype", "date", "from", "subject"].contains(&name).then_some((name, value))
}

/// Returns the length of the value that a text begins with: up to white space or a parenthesis
/// outside of quotes.
fn value_length(text: &str) -> usize {
    let mut is_quoted = false;
    let is_end = |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && (c.is_whitespace() || c == ')' || c == '(')
    };
    text.find(is_end).unwrap_or(text.len())
}

fn translate_term(name: &str, value: &str) -> String {
    match name {
        "to" => format!("recip:{value}"),
        "from" | "subject" => {
            let group = value.strip_prefix("\"(").and_then(|rest| rest.strip_suffix(")\""));
            match group.filter(|words| !words.contains(['(', ')', '"'])) {
                Some(words) => format!("{name}:({words})"),
                None => format!("{name}:{value}"),
            }
        }
        "date" => {
            let bounds: Vec<String> = value.split("..").map(translate_age).collect();
            format!("date:{}", bounds.join(".."))
        }
        _ if value.is_empty() || value.contains(['/', '*', '"']) => format!("{name}:{value}"),
        _ => format!("{name}:*{value}*"),
    }
}

/// Returns a relative date with the names of its units. In notmuch, `m` is a minute and `M` a
/// month.
fn translate_age(bound: &str) -> String {
    let text = bound.trim_matches('"').trim_start_matches('-');
    let mut translated = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(number);
        let unit = match behind.chars().next() {
            Some('s') => "seconds",
            Some('m') => "minutes",
            Some('h') => "hours",
            Some('d') => "days",
            Some('w') => "weeks",
            Some('M') => "months",
            Some('y' | 'Y') => "years",
            _ => return bound.to_string(),
        };
        let behind = &behind[1..];
        if number.is_empty() || behind.starts_with(char::is_alphabetic) {
            return bound.to_string();
        }
        translated.push_str(&format!("{number}{unit}"));
        rest = behind;
    }
    if translated.is_empty() { bound.to_string() } else { translated }
}

/// Replaces the terms `query:NAME` by `@NAME`. Quoted text stays as it is.
pub(super) fn replace_references(line: &str) -> String {
    let mut replaced = String::with_capacity(line.len());
    let mut is_quoted = false;
    let mut is_start = true;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if is_start
            && !is_quoted
            && let Some(after) = rest.strip_prefix("query:")
        {
            replaced.push('@');
            rest = after;
            is_start = false;
            continue;
        }
        is_quoted ^= c == '"';
        is_start = c.is_whitespace() || "(-".contains(c);
        replaced.push(c);
        rest = &rest[c.len_utf8()..];
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_become_names() {
        for (line, expect) in [
            ("query:work", "@work"),
            ("(query:a or -query:b) \"query:c\"", "(@a or -@b) \"query:c\""),
            ("xquery:a subject:query:b", "xquery:a subject:query:b"),
            ("", ""),
            ("größe query:größe", "größe @größe"),
        ] {
            assert_eq!(replace_references(line), expect);
        }
    }

    #[test]
    fn terms_with_another_meaning_are_written_otherwise() {
        for (line, expect) in [
            ("to:anna", "recip:anna"),
            ("(to:\"a b\" or -to:x)", "(recip:\"a b\" or -recip:x)"),
            ("\"to:anna\" xto:b subject:to:c", "\"to:anna\" xto:b subject:to:c"),
            ("mimetype:pdf and a", "mimetype:*pdf* and a"),
            ("mimetype:text/plain mimetype:\"x y\"", "mimetype:text/plain mimetype:\"x y\""),
            ("subject:\"(a b)\" from:\"a b\"", "subject:(a b) from:\"a b\""),
            ("date:2y..", "date:2years.."),
            ("date:1M2d..3h x", "date:1months2days..3hours x"),
            ("date:\"2w\"..", "date:2weeks.."),
            ("date:\"3 years\"..2020", "date:\"3 years\"..2020"),
            ("date:yesterday..now", "date:yesterday..now"),
            ("gr\u{f6}\u{df}e \"unclosed to:x", "gr\u{f6}\u{df}e \"unclosed recip:x"),
            ("", ""),
        ] {
            assert_eq!(translate_terms(line), expect);
        }
    }

    #[test]
    fn a_query_is_translated_as_a_whole() {
        for (line, expect) in [
            ("query:a query:b to:c", "(@a or @b) recip:c"),
            ("not tag:a tag:b date:1M..", "not ((tag:a or tag:b) date:1months..)"),
        ] {
            assert_eq!(translate_query(line), expect);
        }
    }
}

//! Queries of notmuch, written as Larder has them.
//!
//! Separate from `notmuch`, which reads the data: here only texts are translated.

use super::implicit_operators::write_operators;
use super::to_search_name;
use larder_format::label::NOTMUCH_FLAG_TAGS;
use larder_query::MailFlag;
use std::borrow::Cow;

/// Returns a query of notmuch as Larder has it.
pub(super) fn translate_query(line: &str) -> String {
    translate_terms(&replace_references(&write_operators(line)))
}

/// Returns a query with the terms that mean something else in Larder written otherwise: `to:`
/// finds all recipients in notmuch, `body:` forwarded messages, too, `mimetype:` a part of the
/// type, a date such as `2y` the whole year, `is:` a label that Larder has a flag for, parentheses
/// in quotes are a group of words, and a term in quotes is a phrase. The inner query of a thread is
/// translated as a whole; other quoted terms stay as they are.
fn translate_terms(line: &str) -> String {
    let has_distance = line.split_whitespace().any(|word| {
        let operator = word.split('/').next().unwrap_or(word);
        ["NEAR", "ADJ"].contains(&operator)
    });
    let mut translated = String::with_capacity(line.len());
    let mut rest = line;
    let mut is_start = true;
    while let Some(c) = rest.chars().next() {
        if is_start && let Some((inner, behind)) = split_thread_query(rest) {
            translated.push_str(&format!("thread:{{{}}}", translate_query(&inner)));
            rest = behind;
            is_start = false;
            continue;
        }
        if is_start && let Some((name, value)) = split_term(rest) {
            let length = value_length(value);
            let (value, behind) = value.split_at(length);
            match name {
                // Both words are of one field.
                "body" if has_distance || value.is_empty() => {
                    translated.push_str(&format!("body:{value}"));
                }
                _ => translated.push_str(&translate_term(name, value)),
            }
            rest = behind;
            is_start = false;
            continue;
        }
        // A phrase is copied as a whole.
        let phrase = rest.strip_prefix('"').and_then(|inner| inner.find('"')).map(|end| end + 2);
        let length = phrase.unwrap_or(c.len_utf8());
        let (copied, behind) = rest.split_at(length);
        match phrase.filter(|_| is_start).and_then(|_| split_quoted_term(copied)) {
            Some((name, value)) => translated.push_str(&format!("{name} {value}")),
            None => translated.push_str(copied),
        }
        is_start = c.is_whitespace() || "(-".contains(c);
        rest = behind;
    }
    translated
}

/// Returns the name of the field that a text begins with, if its terms are translated, and the text
/// behind its colon.
fn split_term(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(':')?;
    ["to", "mimetype", "date", "from", "subject", "body", "is"]
        .contains(&name)
        .then_some((name, value))
}

/// Returns the inner query of the thread that a text begins with, and the text behind it:
/// `thread:"{from:""a b"" x}"`, in whose quotes two quotes are one, or `thread:{x}`.
fn split_thread_query(text: &str) -> Option<(String, &str)> {
    let value = text.strip_prefix("thread:")?;
    if let Some(value) = value.strip_prefix('{') {
        let (inner, behind) = value.split_once('}')?;
        return (!inner.contains(['"', '{'])).then(|| (inner.to_string(), behind));
    }
    let quoted = value.strip_prefix('"')?;
    let mut end = 0;
    loop {
        end += quoted.get(end..)?.find('"')?;
        match quoted.get(end + 1..)?.strip_prefix('"') {
            Some(_) => end += 2,
            None => break,
        }
    }
    let inner = quoted.get(..end)?.strip_prefix('{')?.strip_suffix('}')?;
    Some((inner.replace("\"\"", "\""), quoted.get(end + 1..)?))
}

/// Returns the two sides of the colon in quotes that look like a term, as `"from:anna"`: notmuch
/// reads the words as a phrase.
fn split_quoted_term(quoted: &str) -> Option<(&str, &str)> {
    let (name, value) = quoted.split_once(':')?;
    let letters = name.strip_prefix('"')?;
    let is_term = !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
        && !value.starts_with([' ', '"', '/']);
    is_term.then_some((name, value))
}

/// Returns the length of the value that a text begins with: up to white space or a parenthesis
/// outside of quotes. A group at its beginning is the value.
fn value_length(text: &str) -> usize {
    let (mut is_quoted, mut depth) = (false, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' if at == 0 || depth > 0 => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' if depth > 1 => depth -= 1,
            _ if depth > 0 => {}
            '(' | ')' => return at,
            _ if c.is_whitespace() => return at,
            _ => {}
        }
    }
    text.len()
}

fn translate_term(name: &str, value: &str) -> String {
    match name {
        "to" => format!("recip:{value}"),
        "body" => format!("(body:{value} or embed:{value})"),
        // Not the flag.
        "is" => match MailFlag::from_name(value) {
            Some(_) if !NOTMUCH_FLAG_TAGS.contains(&value) => format!("tag:{value}"),
            _ => format!("is:{value}"),
        },
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
        _ if value.is_empty() || value.contains(['/', '*', '"', '(']) => format!("{name}:{value}"),
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

/// Returns what a query means in Larder, where notmuch reads something else and no term says it.
pub(super) fn find_differences(line: &str) -> Vec<String> {
    let mut differences = Vec::new();
    if line.trim_start().starts_with('-') {
        differences.push("the hyphen at its beginning negates the term; not in notmuch".into());
    }
    let mut is_quoted = false;
    let is_end = |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && (c.is_whitespace() || "()+".contains(c))
    };
    for term in line.split(is_end) {
        let range = term.trim_start_matches('-').strip_prefix("date:");
        let bounds = range.and_then(|range| range.split_once(".."));
        if bounds.is_some_and(|(from, to)| is_reversed(from, to)) {
            differences.push(format!(
                "the ends of {term} are swapped; notmuch finds nothing in such a range"
            ));
        }
    }
    differences
}

/// Returns whether the first end of a range is certainly after the other one: of two ages, of two
/// dates that are written with the year first, or of two numbers of seconds.
fn is_reversed(from: &str, to: &str) -> bool {
    let (from, to) = (from.trim_matches('"'), to.trim_matches('"'));
    if let (Some(from), Some(to)) = (parse_age(from), parse_age(to)) {
        return from < to;
    }
    if let (Some(from), Some(to)) = (from.strip_prefix('@'), to.strip_prefix('@')) {
        return from.parse::<i64>().ok().zip(to.parse().ok()).is_some_and(|(from, to)| from > to);
    }
    let is_date = |text: &str| {
        let mut fields = text.split('-');
        fields.next().is_some_and(|year| year.len() == 4)
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let length = from.len().min(to.len());
    is_date(from) && is_date(to) && from.get(..length) > to.get(..length)
}

/// Returns the seconds of an age: `2y`, `1M2d`, or `now`.
fn parse_age(text: &str) -> Option<u64> {
    if text == "now" {
        return Some(0);
    }
    let (mut seconds, mut number) = (0_u64, None);
    for c in text.trim_start_matches('-').chars() {
        if let Some(digit) = c.to_digit(10) {
            number = Some(number.unwrap_or(0_u64).saturating_mul(10).saturating_add(digit.into()));
            continue;
        }
        let unit: u64 = match c {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            'M' => 30 * 86_400,
            'y' | 'Y' => 365 * 86_400,
            _ => return None,
        };
        seconds = seconds.saturating_add(number.take()?.saturating_mul(unit));
    }
    (number.is_none() && !text.is_empty()).then_some(seconds)
}

/// Replaces the terms `query:NAME` by `@NAME`, with the name that the saved search gets. Quoted
/// text stays as it is.
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
            let (name, behind) = split_query_name(after);
            replaced.push('@');
            replaced.push_str(&to_search_name(&name));
            rest = behind;
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

/// Returns the name of a query that a text begins with, without its quotes, in which a quote is
/// written twice, and the text behind it.
fn split_query_name(text: &str) -> (Cow<'_, str>, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c.is_whitespace() || c == ')').unwrap_or(text.len());
        let (name, behind) = text.split_at(end);
        return (Cow::Borrowed(name), behind);
    };
    let mut end = 0;
    while let Some(found) = quoted[end..].find('"') {
        end += found;
        if !quoted[end + 1..].starts_with('"') {
            return (Cow::Owned(quoted[..end].replace("\"\"", "\"")), &quoted[end + 1..]);
        }
        end += 2;
    }
    (Cow::Owned(quoted.replace("\"\"", "\"")), "")
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
            ("query:lists.dev or (-query:a/b)", "@lists-dev or (-@a-b)"),
            ("query:\"a b\" query:\"c \"\"d\"\"\" x", "@a-b @c--d- x"),
            ("x query:\"open", "x @open"),
        ] {
            assert_eq!(replace_references(line), expect);
        }
    }

    #[test]
    fn terms_with_another_meaning_are_written_otherwise() {
        for (line, expect) in [
            ("to:anna", "recip:anna"),
            ("(to:\"a b\" or -to:x)", "(recip:\"a b\" or -recip:x)"),
            ("\"to:anna\" xto:b subject:to:c", "\"to anna\" xto:b subject:to:c"),
            ("\"from:a b\" or \"re: x\" x\"to:y\"", "\"from a b\" or \"re: x\" x\"to:y\""),
            ("body:x -body:\"a b\"", "(body:x or embed:x) -(body:\"a b\" or embed:\"a b\")"),
            ("(body:(a (b))) body:", "((body:(a (b)) or embed:(a (b)))) body:"),
            ("body:a NEAR/3 body:b", "body:a NEAR/3 body:b"),
            ("mimetype:pdf and a", "mimetype:*pdf* and a"),
            ("mimetype:text/plain mimetype:\"x y\"", "mimetype:text/plain mimetype:\"x y\""),
            ("subject:\"(a b)\" from:\"a b\"", "subject:(a b) from:\"a b\""),
            ("date:2y..", "date:2years.."),
            ("date:1M2d..3h x", "date:1months2days..3hours x"),
            ("date:\"2w\"..", "date:2weeks.."),
            ("date:\"3 years\"..2020", "date:\"3 years\"..2020"),
            ("date:yesterday..now", "date:yesterday..now"),
            ("is:new is:unread (is:list)", "tag:new is:unread (tag:list)"),
            ("thread:\"{tag:a tag:b}\" to:x", "thread:{(tag:a or tag:b)} recip:x"),
            ("x thread:\"{from:\"\"a b\"\" date:1M..}\"", "x thread:{from:\"a b\" date:1months..}"),
            ("(thread:{to:x})", "(thread:{recip:x})"),
            ("thread:0001 thread:\"{x", "thread:0001 thread:\"{x"),
            ("gr\u{f6}\u{df}e \"unclosed to:x", "gr\u{f6}\u{df}e \"unclosed recip:x"),
            ("", ""),
        ] {
            assert_eq!(translate_terms(line), expect);
        }
    }

    #[test]
    fn terms_that_notmuch_reads_otherwise_are_named() {
        for (line, count) in [
            ("-tag:spam", 1),
            ("a -tag:spam", 0),
            ("date:1m..1M", 1),
            ("date:1M..1m or (date:2021..2019)", 1),
            ("a -date:2021-03..2021 date:2019..2021-03", 0),
            ("a and -date:2021-04..2021-03 date:now..\"2d\"", 2),
            ("date:@9..@10 date:@10..@9 date:monday..2019 subject:date:2..1", 1),
            ("date:..2019 date:2019.. date:2019..! date:99..98", 0),
        ] {
            assert_eq!(find_differences(line).len(), count, "{line}");
        }
        let found = find_differences("x date:2021..2019");
        assert_eq!(
            found,
            ["the ends of date:2021..2019 are swapped; notmuch finds nothing in such a range"]
        );
    }

    #[test]
    fn a_query_is_translated_as_a_whole() {
        for (line, expect) in [
            ("query:a query:b to:c", "(@a or @b) recip:c"),
            ("query:a.b query:\"c d\" to:c", "(@a-b or @c-d) recip:c"),
            ("not tag:a tag:b date:1M..", "not ((tag:a or tag:b) date:1months..)"),
        ] {
            assert_eq!(translate_query(line), expect);
        }
    }
}

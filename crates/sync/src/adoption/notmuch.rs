//! The data of notmuch: tags, named queries, and settings.
//!
//! The tags are those of `notmuch dump`. Named queries are in the configuration (`query.NAME`), of
//! which a dump has the part that is in the database.

use super::{ForeignMail, RunProgram};
use crate::error::Error;
use larder_format::label_dump::{LabelDump, LabelDumpFormat, decode_hex};
use std::ffi::OsString;
use std::path::PathBuf;

/// Reads the data of notmuch: from the program, as its configuration says, or from a dump that it
/// wrote.
///
/// # Errors
/// notmuch cannot be run, or the dump is none.
pub fn read_notmuch(
    dump: Option<&[u8]>,
    run_program: RunProgram<'_>,
) -> Result<ForeignMail, Error> {
    let run = |arguments: &[&str]| {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        run_program("notmuch", &arguments)
            .map_err(|reason| Error::Program { program: "notmuch".to_string(), reason })
    };
    let mut foreign = ForeignMail::default();
    let ran;
    let bytes = match dump {
        Some(bytes) => {
            read_dumped_queries(bytes, &mut foreign);
            bytes
        }
        None => {
            let config = run(&["config", "list"])?;
            read_config(&String::from_utf8_lossy(&config), &mut foreign);
            ran = run(&["dump"])?;
            &ran
        }
    };
    let labels = LabelDump::parse(bytes);
    if dump.is_some() && labels.as_ref().is_none_or(|one| one.format != LabelDumpFormat::Notmuch) {
        return Err(Error::NoLabelDump { program: "notmuch" });
    }
    foreign.labels = labels;
    Ok(foreign)
}

/// Reads the lines of `notmuch config list`.
fn read_config(text: &str, foreign: &mut ForeignMail) {
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match key {
            "search.exclude_tags" => {
                let tags = value.split(';').filter(|tag| !tag.is_empty());
                foreign.excluded_labels = tags.map(str::to_string).collect();
            }
            "database.mail_root" => foreign.maildir = Some(PathBuf::from(value)),
            "database.path" if foreign.maildir.is_none() => {
                foreign.maildir = Some(PathBuf::from(value));
            }
            _ => add_query(key, value, foreign),
        }
    }
}

/// Reads the lines `#@ query.NAME QUERY` of a dump.
fn read_dumped_queries(bytes: &[u8], foreign: &mut ForeignMail) {
    for line in String::from_utf8_lossy(bytes).lines() {
        let Some((key, value)) = line.strip_prefix("#@ ").and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        if let (Some(key), Some(value)) = (decode_hex(key), decode_hex(value)) {
            add_query(&key, &value, foreign);
        }
    }
}

fn add_query(key: &str, value: &str, foreign: &mut ForeignMail) {
    if let Some(name) = key.strip_prefix("query.") {
        let replaced = replace_references(value);
        let query = translate_query(&replaced);
        if query != replaced {
            foreign
                .notices
                .push(format!("the query {name:?} is now {query:?}, with the same meaning"));
        }
        foreign.searches.push((name.to_string(), query));
    } else if let Some(name) = key.strip_prefix("squery.") {
        foreign.notices.push(format!("the query {name:?} is an S-expression of notmuch: left out"));
    }
}

/// Returns a query with the terms that mean something else in Larder written otherwise: `to:`
/// finds all recipients in notmuch, `mimetype:` a part of the type, and a date such as `2y` the
/// whole year. Quoted terms and the inner query of a thread stay as they are.
fn translate_query(line: &str) -> String {
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
    ["to", "mimetype", "date"].contains(&name).then_some((name, value))
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
fn replace_references(line: &str) -> String {
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
            ("date:2y..", "date:2years.."),
            ("date:1M2d..3h x", "date:1months2days..3hours x"),
            ("date:\"2w\"..", "date:2weeks.."),
            ("date:\"3 years\"..2020", "date:\"3 years\"..2020"),
            ("date:yesterday..now", "date:yesterday..now"),
            ("gr\u{f6}\u{df}e \"unclosed to:x", "gr\u{f6}\u{df}e \"unclosed recip:x"),
            ("", ""),
        ] {
            assert_eq!(translate_query(line), expect);
        }
    }

    #[test]
    fn a_configuration_is_read() {
        let mut foreign = ForeignMail::default();
        let text = "database.path=/x\ndatabase.mail_root=/mail\nquery.work=a = b\n\
                    search.exclude_tags=deleted;spam\nsquery.s=(and)\nuser.name=A\n";
        read_config(text, &mut foreign);
        assert_eq!(foreign.maildir, Some(PathBuf::from("/mail")));
        assert_eq!(foreign.excluded_labels, ["deleted", "spam"]);
        assert_eq!(foreign.searches, [("work".to_string(), "a = b".to_string())]);
        assert_eq!(foreign.notices.len(), 1);
    }

    #[test]
    fn a_dump_has_queries() {
        let dump = b"#notmuch-dump batch-tag:3 config,properties,tags\n\
                     #@ query.db subject%3awalrus%20%22a%20b%22\n#= m1@x a=b\n+inbox -- id:m1@x\n";
        let run: RunProgram<'_> = &|_, _| Err("not run".to_string());
        let foreign = read_notmuch(Some(dump), run).expect("dump");
        assert_eq!(foreign.searches, [("db".into(), "subject:walrus \"a b\"".into())]);
        assert_eq!(foreign.labels.expect("labels").messages.len(), 1);
        assert!(read_notmuch(Some(b"no dump"), run).is_err());
    }
}

//! The data of mu: bookmarks, and the labels of its later versions.

use super::{ForeignMail, RunProgram};
use crate::error::Error;
use larder_format::label_dump::{LabelDump, LabelDumpFormat};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Reads the data of mu: bookmarks from its file, the maildir and the labels from the program, or
/// the labels from a file that `mu labels export` wrote. `home` is the directory of `--muhome`.
///
/// # Errors
/// The bookmarks cannot be read, the file has no labels, or the directory has no database of mu.
pub fn read_mu(
    bookmarks: &Path,
    home: Option<&Path>,
    labels: Option<&[u8]>,
    run_program: RunProgram<'_>,
) -> Result<ForeignMail, Error> {
    let mut foreign = ForeignMail::default();
    match std::fs::read(bookmarks) {
        Ok(bytes) => {
            for (name, query) in read_bookmarks(&String::from_utf8_lossy(&bytes)) {
                foreign.add_bookmark(name, &query);
            }
            if foreign.searches.is_empty() {
                let path = bookmarks.display();
                foreign.notices.push(format!("{path} has no bookmarks in a group [mu]"));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            foreign
                .notices
                .push(format!("mu has no bookmarks: {} is missing", bookmarks.display()));
        }
        Err(source) => return Err(Error::ForeignFile { path: bookmarks.to_path_buf(), source }),
    }
    let with_home = |arguments: &[&str]| -> Vec<OsString> {
        let home = home.map(|home| {
            let mut option = OsString::from("--muhome=");
            option.push(home);
            option
        });
        arguments.iter().map(OsString::from).chain(home).collect()
    };
    if let Some(bytes) = labels {
        let dump = LabelDump::parse(bytes).filter(|dump| dump.format == LabelDumpFormat::Mu);
        foreign.labels = Some(dump.ok_or(Error::NoLabelDump { program: "mu" })?);
        return Ok(foreign);
    }
    // mu would make the directory.
    if let Some(path) = home.map(|home| home.join("xapian")).filter(|path| !path.is_dir()) {
        if !foreign.searches.is_empty() {
            let path = path.display();
            foreign.notices.push(format!("{path} is missing: labels of mu are not read"));
            return Ok(foreign);
        }
        let folder = home.unwrap_or(&path).to_path_buf();
        return Err(Error::NoMuData { folder });
    }
    match run_program("mu", &with_home(&["info"])) {
        Ok(output) => foreign.maildir = find_maildir(&String::from_utf8_lossy(&output)),
        Err(reason) => foreign.notices.push(format!("cannot run mu: {reason}")),
    }
    // `-` is no name of a file for mu.
    match run_program("mu", &with_home(&["labels", "export", "/dev/fd/1"])) {
        Ok(output) => {
            foreign.labels = LabelDump::parse(&output);
            if foreign.labels.is_none() {
                foreign.notices.push("`mu labels export` printed no labels".to_string());
            }
        }
        Err(reason) => foreign.notices.push(match has_labels(run_program) {
            true => format!("labels of mu are not read: {reason}"),
            false => "this version of mu has no labels".to_string(),
        }),
    }
    Ok(foreign)
}

/// Returns whether the version of mu has labels: 1.12.13 and later ones have.
fn has_labels(run_program: RunProgram<'_>) -> bool {
    let output = run_program("mu", &["--version".into()]).unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let version = text.split_whitespace().find(is_version).unwrap_or_default();
    let numbers: Vec<u32> = version.split('.').map_while(|number| number.parse().ok()).collect();
    numbers >= vec![1, 12, 13]
}

impl ForeignMail {
    fn add_bookmark(&mut self, name: String, query: &str) {
        let translated = translate_patterns(query);
        if translated != query {
            self.notices
                .push(format!("the bookmark {name:?} is now {translated}, with the same meaning"));
        }
        self.searches.push((name, translated));
    }
}

/// Reads the lines `NAME=QUERY` of the group `[mu]`; what follows a `#` behind white space is a
/// comment.
fn read_bookmarks(text: &str) -> Vec<(String, String)> {
    let mut is_group = false;
    let mut bookmarks = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_group = line == "[mu]";
        } else if is_group
            && !line.starts_with('#')
            && let Some((name, query)) = line.split_once('=')
        {
            let comment = query.match_indices('#').map(|(at, _)| at);
            let mut comment = comment.filter(|at| query[..*at].ends_with(char::is_whitespace));
            let query = comment.next().map_or(query, |at| &query[..at]);
            bookmarks.push((name.trim().to_string(), decode_value(query.trim())));
        }
    }
    bookmarks
}

/// Returns the text of a value, as the format of the bookmarks (that of desktop files) has it: with
/// escapes for white space and the backslash.
fn decode_value(value: &str) -> String {
    let mut decoded = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match (c, characters.as_str().chars().next()) {
            ('\\', Some(next)) => {
                characters.next();
                match next {
                    's' => decoded.push(' '),
                    't' => decoded.push('\t'),
                    'n' => decoded.push('\n'),
                    'r' => decoded.push('\r'),
                    '\\' => decoded.push('\\'),
                    other => decoded.extend(['\\', other]),
                }
            }
            ('\\', None) => {}
            _ => decoded.push(c),
        }
    }
    decoded
}

/// Returns a query with the backslashes of its regular expressions as Larder has them. mu takes a
/// level of backslashes away before it reads an expression: its `\\d` is `\d`.
fn translate_patterns(query: &str) -> String {
    let mut translated = String::with_capacity(query.len());
    let mut rest = query;
    let mut is_start = true;
    while let Some(c) = rest.chars().next() {
        if let Some((start, end)) = find_pattern(rest).filter(|_| is_start) {
            let (pattern, behind) = rest.split_at(end);
            let (field, pattern) = pattern.split_at(start);
            translated.push_str(field);
            push_unescaped(pattern, &mut translated);
            rest = behind;
            if let Some(behind_quote) = rest.strip_prefix('"') {
                translated.push('"');
                rest = behind_quote;
            }
            is_start = false;
            continue;
        }
        // A phrase is copied as a whole.
        let phrase = rest.strip_prefix('"').and_then(|inner| inner.find('"')).map(|end| end + 2);
        let (copied, behind) = rest.split_at(phrase.unwrap_or(c.len_utf8()));
        is_start = c.is_whitespace() || c == '(';
        translated.push_str(copied);
        rest = behind;
    }
    translated
}

/// Returns where the regular expression begins and ends in the term that a text begins with.
fn find_pattern(text: &str) -> Option<(usize, usize)> {
    let is_name = |c: char| c.is_ascii_alphabetic() || c == '-';
    let behind_quote = text.strip_prefix('"');
    let mut value = behind_quote.unwrap_or(text);
    if let Some(rest) = value.trim_start_matches(is_name).strip_prefix(':') {
        value = rest;
    }
    let quoted_value = value.strip_prefix('"').filter(|_| behind_quote.is_none());
    let is_quoted = behind_quote.is_some() || quoted_value.is_some();
    value = quoted_value.unwrap_or(value);
    let start = text.len() - value.len();
    let mut is_escaped = false;
    let is_end = |c: char| {
        let is_end = !is_escaped
            && if is_quoted { c == '"' } else { c.is_whitespace() || c == '(' || c == ')' };
        is_escaped = c == '\\' && !is_escaped;
        is_end
    };
    let length = value.find(is_end).unwrap_or(value.len());
    let (pattern, _) = value.split_at(length);
    let is_pattern = pattern.len() > 1 && pattern.starts_with('/') && pattern.ends_with('/');
    is_pattern.then_some((start, start + length))
}

/// Adds a regular expression with one level of backslashes less. Those in front of a quote or a
/// slash are needed in Larder, too.
fn push_unescaped(pattern: &str, text: &mut String) {
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match (c, characters.as_str().chars().next()) {
            ('\\', Some('"' | '/')) => text.push(c),
            ('\\', next) => {
                text.extend(next);
                characters.next();
            }
            _ => text.push(c),
        }
    }
}

/// Finds the maildir in the table that `mu info` prints.
fn find_maildir(text: &str) -> Option<PathBuf> {
    let cells = |line: &str| -> Vec<String> {
        line.split(['|', '\u{2502}']).map(|cell| cell.trim().to_string()).collect()
    };
    let named = |row: &Vec<String>| {
        row.get(1).is_some_and(|name| name == "maildir" || name == "root-maildir")
    };
    let row = text.lines().map(cells).find(named)?;
    row.get(2).filter(|path| path.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_are_read() {
        let text = "x=y\n[mu]\n# a comment\ninbox=maildir:/inbox                  # inbox\n\
                    old hat = subject:#1 a=b\n\n[other]\nz=1\n";
        let expect = [("inbox", "maildir:/inbox"), ("old hat", "subject:#1 a=b")];
        assert_eq!(read_bookmarks(text), expect.map(|(a, b)| (a.to_string(), b.to_string())));
    }

    /// The meanings are those of mu 1.8.
    #[test]
    fn values_of_bookmarks_are_decoded() {
        for (value, expect) in [
            (r"\sfrom:a\ssubject:b", r" from:a subject:b"),
            (r"a\tb\nc\rd\\e\.f", "a\tb\nc\rd\\e\\.f"),
            ("a\\", "a"),
            ("gr\u{f6}\u{df}e", "gr\u{f6}\u{df}e"),
        ] {
            assert_eq!(decode_value(value), expect);
        }
    }

    #[test]
    fn patterns_have_a_level_of_backslashes_less() {
        for (query, expect) in [
            (r"from:/.*\.org/", r"from:/.*.org/"),
            (r"from:/.*\\.org/ and x", r"from:/.*\.org/ and x"),
            (r"not (subject:/v\\d/)", r"not (subject:/v\d/)"),
            (r#"subject:"/a b\\d/" "subject:/c\\s\"/""#, r#"subject:"/a b\d/" "subject:/c\s\"/""#),
            (r"/a\ b\\/ x\\y", r"/a b\/ x\\y"),
            (r"/a\/b/", r"/a\/b/"),
            (r"maildir:/a\b subject:a\\b", r"maildir:/a\b subject:a\\b"),
            (r#""x /a\\d/""#, r#""x /a\\d/""#),
            ("/ // \\", "/ // \\"),
        ] {
            assert_eq!(translate_patterns(query), expect, "{query}");
        }
    }

    #[test]
    fn labels_that_cannot_be_read_are_named() {
        let notices = |version: &str, export: Result<&str, &str>| {
            let (version, export) = (version.to_string(), export.map(str::to_string));
            let export = export.map(String::into_bytes).map_err(str::to_string);
            let run: RunProgram<'_> = &|_, arguments| match arguments.first() {
                Some(first) if first == "labels" => export.clone(),
                Some(first) if first == "--version" => Ok(version.clone().into_bytes()),
                _ => Ok(Vec::new()),
            };
            let foreign = read_mu(Path::new("/none/bookmarks"), None, None, run).expect("mu");
            foreign.notices.last().cloned().unwrap_or_default()
        };
        let locked = Err("exit status: 19: database is locked");
        assert_eq!(notices("mu 1.8.13\n", locked), "this version of mu has no labels");
        assert_eq!(
            notices("mu (mail indexer/searcher) version 1.12.13\n", locked),
            "labels of mu are not read: exit status: 19: database is locked"
        );
        assert_eq!(notices("", Ok("nonsense")), "`mu labels export` printed no labels");
    }

    #[test]
    fn the_maildir_is_in_the_table() {
        let table = "+---+\n| maildir           | /home/a/Mail                  |\n+---+\n";
        assert_eq!(find_maildir(table), Some(PathBuf::from("/home/a/Mail")));
        assert_eq!(find_maildir("| messages | 3 |\n"), None);
    }
}

//! Dumps of labels: the formats of `notmuch dump` and of `mu labels export`.
//!
//! ```text
//! #notmuch-dump batch-tag:3 tags
//! +tax +a%20b -- id:"m(1)@example.org"
//! ```
//!
//! notmuch writes a line for each message: its tags, with bytes other than letters, digits and
//! `+-_@=.,` as `%xx`, and its Message-ID, which is in quotes if it has to be. Lines that begin
//! with `#` are comments, settings and properties.
//!
//! ```text
//! ;; version:0 @ 2026-03-01-10:00:00
//!
//! path:/home/anna/Maildir/cur/1:2,S
//! message-id:m1@example.org
//! labels:tax,todo
//! ```
//!
//! mu writes three lines for each message. Labels of mu have neither spaces nor commas.
//!
//! Separate from `label`, because these files are written and read by other programs.

use crate::label::{LabelError, LabelList, NOTMUCH_FLAG_TAGS, check_label};
use std::collections::BTreeSet;
use std::fmt;

/// The program that a dump is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelDumpFormat {
    /// notmuch.
    Notmuch,
    /// mu.
    Mu,
}

/// The labels of a message in a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedLabels {
    /// The Message-ID.
    pub message_id: String,
    /// The labels.
    pub labels: LabelList,
    /// Whether the dump has others that cannot be labels here.
    pub is_partial: bool,
}

impl DumpedLabels {
    fn new(message_id: String) -> DumpedLabels {
        DumpedLabels { message_id, labels: LabelList::default(), is_partial: false }
    }
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpProblem {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub reason: DumpProblemReason,
}

/// The reason why a line cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpProblemReason {
    /// It is not UTF-8.
    NotUtf8,
    /// It does not say which message it is about.
    NoMessageId,
    /// It has something else than tags before the Message-ID.
    NotATag(String),
    /// A `%` is not followed by two hexadecimal digits.
    BadEncoding(String),
    /// The bytes of a tag are not UTF-8.
    TagNotUtf8(String),
    /// It has a label that cannot be one.
    BadLabel(LabelError),
}

impl fmt::Display for DumpProblemReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpProblemReason::NotUtf8 => write!(f, "not UTF-8"),
            DumpProblemReason::NoMessageId => write!(f, "no Message-ID"),
            DumpProblemReason::NotATag(word) => write!(f, "{word:?} is no tag: tags begin with +"),
            DumpProblemReason::BadEncoding(word) => {
                write!(f, "{word:?} is not encoded as notmuch does")
            }
            DumpProblemReason::TagNotUtf8(word) => write!(f, "the tag {word:?} is not UTF-8"),
            DumpProblemReason::BadLabel(error) => error.fmt(f),
        }
    }
}

/// A dump that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelDump {
    /// The program that it is from.
    pub format: LabelDumpFormat,
    /// The messages, in order. One may be there twice.
    pub messages: Vec<DumpedLabels>,
    /// The lines that cannot be read, whose messages are left out, and the tags that cannot be
    /// labels: without them, their messages are there.
    pub problems: Vec<DumpProblem>,
}

impl LabelDump {
    /// Reads a dump in either format; `None`: it is in neither.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<LabelDump> {
        let format = find_format(bytes)?;
        let mut dump = LabelDump { format, messages: Vec::new(), problems: Vec::new() };
        let mut entry = MuEntry::default();
        for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let mut refuse = |reason| dump.problems.push(DumpProblem { line: number, reason });
            let read = match std::str::from_utf8(line) {
                Err(_) => Err(DumpProblemReason::NotUtf8),
                Ok(line) => match format {
                    LabelDumpFormat::Notmuch => read_notmuch_line(line, &mut refuse),
                    LabelDumpFormat::Mu => entry.read_line(line, &mut refuse),
                },
            };
            match read {
                Ok(message) => dump.messages.extend(message),
                Err(reason) => refuse(reason),
            }
        }
        Some(dump)
    }
}

/// The beginning of a dump of notmuch in the format of sup, which does not mark its tags.
const SUP_DUMP_START: &[u8] = b"#notmuch-dump sup:";

/// Returns whether a dump is in the format of sup, which is not read.
#[must_use]
pub fn is_sup_dump(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(SUP_DUMP_START)
}

/// Returns the format of a dump, by its first line that has text.
fn find_format(bytes: &[u8]) -> Option<LabelDumpFormat> {
    if is_sup_dump(bytes) {
        return None;
    }
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty())?;
    let is_mu =
        [";;", "path:", "message-id:"].iter().any(|start| first.starts_with(start.as_bytes()));
    // Without the line of the version, as `notmuch tag --batch` takes it.
    let is_notmuch =
        first.starts_with(b"#") || first.starts_with(b"+") || first.starts_with(b"-- ");
    match (is_mu, is_notmuch) {
        (true, _) => Some(LabelDumpFormat::Mu),
        (_, true) => Some(LabelDumpFormat::Notmuch),
        _ => None,
    }
}

/// Reads a line of notmuch, and passes the tags that cannot be labels to `refuse`; `None`: it is
/// about no message.
fn read_notmuch_line(
    line: &str,
    refuse: &mut dyn FnMut(DumpProblemReason),
) -> Result<Option<DumpedLabels>, DumpProblemReason> {
    let Some((message_id, words)) = split_notmuch_line(line)? else { return Ok(None) };
    let (mut message, mut problems) = (DumpedLabels::new(message_id), Vec::new());
    for word in words.split_ascii_whitespace() {
        let tag = word.strip_prefix('+');
        let tag = tag.ok_or_else(|| DumpProblemReason::NotATag(word.to_string()))?;
        let bytes = decode_bytes(tag);
        // A damaged line may have lost more than this tag.
        let bytes = bytes.ok_or_else(|| DumpProblemReason::BadEncoding(word.to_string()))?;
        match String::from_utf8(bytes) {
            Ok(name) => add_label(&name, &mut message, &mut problems),
            Err(_) => problems.push(DumpProblemReason::TagNotUtf8(word.to_string())),
        }
    }
    message.is_partial = !problems.is_empty();
    problems.into_iter().for_each(refuse);
    Ok(Some(message))
}

fn add_label(name: &str, message: &mut DumpedLabels, problems: &mut Vec<DumpProblemReason>) {
    match check_label(name) {
        Ok(()) => drop(message.labels.insert(name)),
        Err(error) => problems.push(DumpProblemReason::BadLabel(error)),
    }
}

/// Returns the Message-ID and the encoded tags of a line of notmuch; `None`: it is about no
/// message.
fn split_notmuch_line(line: &str) -> Result<Option<(String, &str)>, DumpProblemReason> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (tags, query) = match line.strip_prefix("-- ") {
        Some(query) => ("", query),
        None => line.split_once(" -- ").ok_or(DumpProblemReason::NoMessageId)?,
    };
    let id = query.trim().strip_prefix("id:").ok_or(DumpProblemReason::NoMessageId)?;
    let message_id = unquote(id).filter(|id| !id.is_empty());
    let message_id = message_id.ok_or(DumpProblemReason::NoMessageId)?;
    Ok(Some((message_id, tags)))
}

/// Reads a line of a dump of notmuch: the Message-ID, and the tags that no labels are made of,
/// those that say how a file or its content is, and those that cannot be labels, in the encoding of
/// notmuch. `None`: the line is about no message, or cannot be read.
#[must_use]
pub fn read_tags_without_labels(line: &[u8]) -> Option<(String, BTreeSet<String>)> {
    let (message_id, words) = split_notmuch_line(str::from_utf8(line).ok()?).ok().flatten()?;
    let is_label = |name: &str| !NOTMUCH_FLAG_TAGS.contains(&name) && check_label(name).is_ok();
    // A tag may have bytes that are not UTF-8.
    let is_kept = |tag: &&str| match decode_bytes(tag).map(String::from_utf8) {
        Some(Ok(name)) => !is_label(&name),
        Some(Err(_)) => true,
        None => false,
    };
    let tags = words.split_ascii_whitespace().filter_map(|word| word.strip_prefix('+'));
    Some((message_id, tags.filter(is_kept).map(str::to_string).collect()))
}

/// Takes a term out of its quotes, in which a quote is written twice.
fn unquote(term: &str) -> Option<String> {
    let Some(inner) = term.strip_prefix('"') else { return Some(term.to_string()) };
    let inner = inner.strip_suffix('"')?;
    let text = inner.replace("\"\"", "");
    (!text.contains('"')).then(|| inner.replace("\"\"", "\""))
}

/// Decodes the encoding of notmuch: `%` and two hexadecimal digits for a byte. `None`: it is not
/// encoded so.
#[must_use]
pub fn decode_hex(text: &str) -> Option<String> {
    String::from_utf8(decode_bytes(text)?).ok()
}

fn decode_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    Some(bytes)
}

/// The lines of an entry of mu so far.
#[derive(Default)]
struct MuEntry {
    message_id: String,
}

impl MuEntry {
    /// Reads a line, and passes names that cannot be labels to `refuse`; the labels end an entry.
    fn read_line(
        &mut self,
        line: &str,
        refuse: &mut dyn FnMut(DumpProblemReason),
    ) -> Result<Option<DumpedLabels>, DumpProblemReason> {
        if let Some(id) = line.strip_prefix("message-id:") {
            self.message_id = id.trim().to_string();
        }
        let Some(names) = line.strip_prefix("labels:") else { return Ok(None) };
        let message_id = std::mem::take(&mut self.message_id);
        if message_id.is_empty() {
            return Err(DumpProblemReason::NoMessageId);
        }
        let (mut message, mut problems) = (DumpedLabels::new(message_id), Vec::new());
        for name in names.trim().split(',').filter(|name| !name.is_empty()) {
            add_label(name, &mut message, &mut problems);
        }
        message.is_partial = !problems.is_empty();
        problems.into_iter().for_each(refuse);
        Ok(Some(message))
    }
}

/// The first line of a dump.
#[must_use]
pub fn dump_header(format: LabelDumpFormat) -> &'static str {
    match format {
        LabelDumpFormat::Notmuch => "#notmuch-dump batch-tag:3 tags\n",
        LabelDumpFormat::Mu => ";; version:0\n\n",
    }
}

/// Returns the tag of notmuch for a label, in its encoding.
#[must_use]
pub fn encode_tag(label: &str) -> String {
    let mut tag = String::with_capacity(label.len());
    encode_hex(label, &mut tag);
    tag
}

/// Returns the line of a message for notmuch, with tags in its encoding; `None`: notmuch cannot
/// read such a Message-ID.
#[must_use]
pub fn write_notmuch_line(message_id: &str, tags: &BTreeSet<String>) -> Option<String> {
    if message_id.chars().any(char::is_control) {
        return None;
    }
    let mut line = String::new();
    for tag in tags {
        line.push('+');
        line.push_str(tag);
        line.push(' ');
    }
    line.push_str("-- id:");
    // As Xapian takes a boolean term: in quotes if it has any of these, or is not ASCII.
    let needs_quotes = message_id.is_empty()
        || !message_id.is_ascii()
        || message_id.contains([' ', '"', '(', ')']);
    match needs_quotes {
        true => line.push_str(&format!("\"{}\"\n", message_id.replace('"', "\"\""))),
        false => line.push_str(&format!("{message_id}\n")),
    }
    Some(line)
}

fn encode_hex(text: &str, encoded: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            b'+' | b'-' | b'_' | b'@' | b'=' | b'.' | b',' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02x}")),
        }
    }
}

/// Returns the lines of a message for mu, with those labels that mu can have; `None`: it can have
/// none of them, or the message's name or path has a line end.
#[must_use]
pub fn write_mu_entry(path: &str, message_id: &str, labels: &LabelList) -> Option<String> {
    let names: Vec<&str> = labels.iter().filter(|name| can_be_in_mu(name)).collect();
    let has_line_end = [path, message_id].iter().any(|text| text.contains('\n'));
    if names.is_empty() || has_line_end {
        return None;
    }
    let names = names.join(",");
    Some(format!("path:{path}\nmessage-id:{message_id}\nlabels:{names}\n\n"))
}

/// Returns whether mu takes such a label.
#[must_use]
pub fn can_be_in_mu(name: &str) -> bool {
    let is_letter = |c: char| {
        !c.is_control()
            && !c.is_whitespace()
            && !matches!(c, '"' | '$' | '\'' | ',' | '/' | '\\' | '`')
    };
    !name.starts_with(['+', '-']) && !name.is_empty() && name.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn list(names: &[&str]) -> LabelList {
        let mut labels = LabelList::default();
        labels.extend(names.iter().copied());
        labels
    }

    fn dumped(message_id: &str, names: &[&str]) -> DumpedLabels {
        DumpedLabels { labels: list(names), ..DumpedLabels::new(message_id.to_string()) }
    }

    #[test]
    fn a_dump_of_notmuch_is_read_and_written() {
        let text = "#notmuch-dump batch-tag:3 config,properties,tags\n\
            #@ search.exclude_tags deleted;\n#= a@x index.decryption=x\n\
            +a%20b ++plus +q%22r +tax%2f2026 +t%c3%b6ne +x%25y -- id:plain@example.org\n\
            +new -- id:\"quo\"\"te@x\"\n +new -- id:\"par(en)@x\"\r\n-- id:a:b/c%@x\n\n";
        let dump = LabelDump::parse(text.as_bytes()).expect("a dump");
        let messages = [
            dumped("plain@example.org", &["a b", "+plus", "q\"r", "tax/2026", "töne", "x%y"]),
            dumped("quo\"te@x", &["new"]),
            dumped("par(en)@x", &["new"]),
            dumped("a:b/c%@x", &[]),
        ];
        assert_eq!(dump.messages, messages);
        assert_eq!(dump.problems, []);
        let mut written = dump_header(LabelDumpFormat::Notmuch).to_string();
        for one in &messages {
            let tags = one.labels.iter().map(encode_tag).collect();
            written += &write_notmuch_line(&one.message_id, &tags).expect("a line");
        }
        let again = LabelDump::parse(written.as_bytes()).expect("a dump");
        assert_eq!(again.messages, messages);
        assert!(written.contains("\n+new -- id:\"quo\"\"te@x\"\n"), "{written}");
        assert_eq!(write_notmuch_line("a\nb", &BTreeSet::new()), None);
    }

    #[test]
    fn tags_without_labels_are_read() {
        let text = "#notmuch-dump batch-tag:3 tags\n+a +draft +unread -- id:m1@x\n\
            +a +%2dx -- id:m2@x\n-- id:m3@x\n+b -- from:x\n+%zz +signed -- id:m4@x\n\
            + +a%ff +b%0a +%ef%bb%bf -- id:m5@x\n";
        let lines = text.split('\n').filter_map(|line| read_tags_without_labels(line.as_bytes()));
        let tags: HashMap<String, BTreeSet<String>> = lines.collect();
        for (id, names) in [
            ("m1@x", &["draft", "unread"][..]),
            ("m2@x", &["%2dx"]),
            ("m3@x", &[]),
            ("m4@x", &["signed"]),
            ("m5@x", &["", "a%ff", "b%0a"]),
        ] {
            assert_eq!(tags[id].iter().collect::<Vec<_>>(), names, "{id}");
        }
        assert_eq!(tags.len(), 5);
    }

    #[test]
    fn an_export_of_mu_is_read_and_written() {
        let text = ";; version:0 @ 2026-03-01-10:00:00\n\n\
            path:/mail/cur/1:2,S\nmessage-id:m1@x\nlabels:foo,bär\n\n\
            path:/mail/cur/2:2,S\nmessage-id:m2@x\nlabels:foo\n\n";
        let dump = LabelDump::parse(text.as_bytes()).expect("a dump");
        assert_eq!(dump.messages, [dumped("m1@x", &["foo", "bär"]), dumped("m2@x", &["foo"])]);
        let entry = write_mu_entry("/mail/1", "m1@x", &list(&["foo", "a b", "x/y", "bär"]));
        assert_eq!(entry.as_deref(), Some("path:/mail/1\nmessage-id:m1@x\nlabels:bär,foo\n\n"));
        assert_eq!(write_mu_entry("/mail/1", "m1@x", &list(&["a b"])), None);
    }

    fn check_problem(text: &str, messages: &[DumpedLabels], line: usize, message: &str) {
        let dump = LabelDump::parse(text.as_bytes()).expect(text);
        assert_eq!(dump.messages, messages, "{text}");
        let found: Vec<(usize, String)> =
            dump.problems.iter().map(|one| (one.line, one.reason.to_string())).collect();
        assert_eq!(found, [(line, message.to_string())], "{text}");
    }

    #[test]
    fn lines_that_cannot_be_read_are_named() {
        for (text, line, message) in [
            ("#notmuch-dump batch-tag:3 tags\n+a +b\n", 2, "no Message-ID"),
            ("+a -- from:anna\n", 1, "no Message-ID"),
            ("+a -- id:\"x\n", 1, "no Message-ID"),
            ("+a -- id:\"x\"y\"\n", 1, "no Message-ID"),
            ("+a -- id:\n", 1, "no Message-ID"),
            ("+a tag -- id:x\n", 1, "\"tag\" is no tag: tags begin with +"),
            ("+a%2 +a -- id:x\n", 1, "\"+a%2\" is not encoded as notmuch does"),
            ("+a +%zz -- id:x\n", 1, "\"+%zz\" is not encoded as notmuch does"),
            ("\n+a%ff +a% -- id:x\n", 2, "\"+a%\" is not encoded as notmuch does"),
            (";; version:0\nlabels:a\n", 2, "no Message-ID"),
        ] {
            check_problem(text, &[], line, message);
        }
        // The other tags of the message are kept.
        for (text, line, message) in [
            ("+a +a%ff -- id:x\n", 1, "the tag \"+a%ff\" is not UTF-8"),
            ("+ +a -- id:x\n", 1, "a label cannot be empty"),
            ("+%0a +a -- id:x\n", 1, "the label \"\\n\" has a control character"),
            ("message-id:x\nlabels:a,-b\n", 2, "the label \"-b\" begins with -"),
        ] {
            let kept = DumpedLabels { is_partial: true, ..dumped("x", &["a"]) };
            check_problem(text, &[kept], line, message);
        }
        let dump = LabelDump::parse(b"+a -- id:x\n+\xff -- id:y\n").expect("a dump");
        assert_eq!(dump.messages, [dumped("x", &["a"])]);
        assert_eq!(dump.problems, [DumpProblem { line: 2, reason: DumpProblemReason::NotUtf8 }]);
        for text in ["", "\n \n", "hello", "BEGIN:VCARD\n"] {
            assert_eq!(LabelDump::parse(text.as_bytes()), None, "{text}");
        }
    }
}

//! Targets of mail beside the message itself: queries, words, snippets, header fields, names of
//! files, dumps of labels; and of commits, which are indexed by the same code.

use crate::query::check_syntax_error;
use larder_format::commit::{COMMIT_FIELDS, Commit};
use larder_format::fold::fold;
use larder_format::html_text::html_to_text;
use larder_format::label::LabelList;
use larder_format::label_dump::{
    LabelDump, LabelDumpFormat, can_be_in_mu, dump_header, encode_tag, write_mu_entry,
    write_notmuch_line,
};
use larder_format::maildir_name::{MaildirFlags, MaildirName};
use larder_format::message::Message;
use larder_query::{MailQuery, MailQueryContext, SnippetFinder, UserLocale};
use larder_store::tokenizer::{MAX_WORD_BYTES, Tokenizer};

/// Queries for messages: a query is the same when it is parsed again, and an error is in the text.
/// The snippet of a message with the text of the query has its marks in it.
pub fn check_mail_query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let context = MailQueryContext::from(&UserLocale::default());
    let query = match MailQuery::parse(&text, &context) {
        Ok(query) => query,
        Err(error) => return check_syntax_error(&text, &error),
    };
    let again = MailQuery::parse(&text, &context);
    assert_eq!(again.map(|again| again.to_string()), Ok(query.to_string()), "parsed again");
    let source = ["Content-Type: text/plain; charset=utf-8\n\n", &*text].concat();
    check_snippet(&query, &Message::parse(source.as_bytes()));
}

/// Snippets: the first line is a query, the rest a message.
pub fn check_snippets(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, source) = data.split_at(end);
    let context = MailQueryContext::from(&UserLocale::default());
    let Ok(query) = MailQuery::parse(&String::from_utf8_lossy(line), &context) else { return };
    check_snippet(&query, &Message::parse(source));
}

fn check_snippet(query: &MailQuery, message: &Message) {
    let snippet = SnippetFinder::new(query).find(message);
    assert!(snippet.text.len() < 2000, "a snippet of {} bytes", snippet.text.len());
    assert!(!snippet.text.contains(['\n', '\r', '\t']), "a snippet of several lines");
    let mut end = 0;
    for hit in &snippet.hits {
        assert!(hit.start >= end && hit.start <= hit.end, "hits do not ascend: {hit:?}");
        assert!(snippet.text.get(hit.clone()).is_some(), "{hit:?} is not in {:?}", snippet.text);
        end = hit.end;
    }
}

/// Words of running text: they are folded, their positions ascend, and a text gives the words of
/// its parts between white space.
pub fn check_tokenizer(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut words: Vec<(String, u32)> = Vec::new();
    let end = Tokenizer::default().for_each_word(&text, 7, |word, position| {
        words.push((word.to_string(), position));
    });
    let mut previous = 7;
    for (word, position) in &words {
        assert!((1..=MAX_WORD_BYTES).contains(&word.len()), "a word of {} bytes", word.len());
        assert!(!word.contains(char::is_whitespace) && !word.contains('\0'), "{word:?}");
        assert!((previous..=previous + 1).contains(position), "{position} after {previous}");
        assert!(*position < end, "{position} is not before the end");
        previous = *position;
    }
    let mut parts = Vec::new();
    let mut tokenizer = Tokenizer::default();
    let last = text.split_ascii_whitespace().fold(7, |at, part| {
        tokenizer.for_each_word(part, at, |word, position| parts.push((word.to_string(), position)))
    });
    assert_eq!((parts, last), (words, end), "the words of the parts");
    let has_word = |text: &str| Tokenizer::default().for_each_word(text, 0, |_, _| {}) > 0;
    assert_eq!(has_word(&text), has_word(&fold(&text)), "folded text has other words");
}

/// Header fields of a message: names are words in lower case, values are on one line.
pub fn check_header_fields(data: &[u8]) {
    let message = Message::parse(data);
    for (name, value) in message.header_fields.iter() {
        assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
        assert!(value.len() < 2000, "a value of {} bytes", value.len());
        assert!(!value.contains(['\n', '\r', '\t', '\0']), "{name}: {value:?}");
        assert_eq!(value, value.trim_matches(' '), "{name}");
    }
}

/// Names of files in a maildir: the parts are in the name, and a known name is read as it was
/// written.
pub fn check_maildir_name(data: &[u8]) {
    let name = MaildirName::parse(data);
    assert!(data.starts_with(name.base) && data.ends_with(name.letters));
    let flags = name.flags(false);
    assert_eq!(flags, MaildirFlags::from_letters(name.letters));
    let letters: String = flags.iter().map(|flag| flag.letter()).collect();
    let written = [name.base, b":2,", letters.as_bytes()].concat();
    let again = MaildirName::parse(&written);
    assert_eq!((again.base, again.flags(false)), (name.base, flags), "written and read");
}

/// Text of HTML: it is not much longer than its source, and converting it ends.
pub fn check_html(data: &[u8]) {
    let text = html_to_text(&String::from_utf8_lossy(data));
    assert!(!text.contains('\r'), "a CR in the text");
}

/// Dumps of labels: a dump that is written for the same program and read again has the same
/// messages with the labels that this program can have, and each problem is in a line of the dump.
pub fn check_label_dump(data: &[u8]) {
    let Some(mut dump) = LabelDump::parse(data) else { return };
    let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
    for problem in &dump.problems {
        assert!((1..=lines).contains(&problem.line), "line {} of {lines}", problem.line);
        assert!(!problem.reason.to_string().is_empty(), "a problem without a reason");
    }
    let mut text = dump_header(dump.format).to_string();
    let mut written = Vec::new();
    for message in &mut dump.messages {
        if dump.format == LabelDumpFormat::Mu {
            // Dumps are read with more labels than mu can have.
            let mut labels = LabelList::default();
            labels.extend(message.labels.iter().filter(|name| can_be_in_mu(name)));
            message.labels = labels;
        }
        let line = match dump.format {
            LabelDumpFormat::Notmuch => {
                let tags = message.labels.iter().map(encode_tag).collect();
                write_notmuch_line(&message.message_id, &tags)
            }
            LabelDumpFormat::Mu => write_mu_entry("/mail/1", &message.message_id, &message.labels),
        };
        if let Some(line) = line {
            text.push_str(&line);
            written.push(message.clone());
        }
    }
    let again = LabelDump::parse(text.as_bytes());
    let again = again.unwrap_or_else(|| panic!("no dump: {text:?}"));
    assert_eq!(again.messages, written, "written as {text:?}");
    assert_eq!(again.problems, [], "written as {text:?}");
}

/// Commit objects: subject and body are in the message, and no field has an empty value.
pub fn check_commit(data: &[u8]) {
    let commit = Commit::parse(data);
    assert!(commit.message.ends_with(commit.body()), "the body is no part of the message");
    assert!(!commit.subject().contains('\n'), "a subject of several lines");
    assert!(commit.author.date.to_rfc3339().len() >= 20, "a date of {:?}", commit.author.date);
    for field in COMMIT_FIELDS {
        for value in commit.values(field) {
            assert!(!value.is_empty(), "an empty value of {}", field.name);
        }
    }
}

//! The messages that `larder find --kind message` lists.
//!
//! Separate from `field_list`, because messages come from the index of mail, newest first, and may
//! be drawn as threads.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::mail_store::{
    MailRoots, file_path, mail_roots, open_mail_reader, open_message_row, require_mail_reader,
};
use crate::output::{FAINT_STYLE, STRONG_STYLE, sanitize_line};
use crate::table::{pad_cells, style_cells};
use anstyle::Style;
use larder_format::message::{MailAddress, MessageDate};
use larder_query::{
    MailHit, MailQuery, MailQueryContext, MailSearch, ThreadMessage, ThreadOrder, order_threads,
};
use larder_store::message_flags::MessageFlags;
use larder_store::{MailColumn, MailReader, MessageRow, Reader, block_of};
use serde_json::{Value, json};

/// The number of messages that a list has if the user sets no limit.
const DEFAULT_LIMIT: usize = 1000;

/// The number of messages among items of other kinds, if the user sets no limit.
const GROUP_LIMIT: usize = 20;

/// The options of a list of messages.
#[derive(Debug, Default)]
pub(super) struct MessageListOptions {
    pub(super) query: String,
    pub(super) limit: Option<usize>,
    pub(super) offset: usize,
    pub(super) is_count: bool,
    pub(super) is_threaded: bool,
    pub(super) is_related: bool,
    pub(super) is_files: bool,
}

/// A message with what lists show of its state.
struct ListedMessage {
    message: MessageRow,
    flags: MessageFlags,
    /// Whether it matches, and is not only in the thread of one that does.
    is_match: bool,
}

/// Prints the messages that match.
pub(super) fn print_messages(
    context: &mut CommandContext,
    options: &MessageListOptions,
) -> Result<CommandStatus, CommandFailure> {
    let query_context = MailQueryContext::from(&context.settings.user_locale);
    let query = MailQuery::parse(&options.query, &query_context)?;
    let reader = require_mail_reader(context)?;
    if options.is_count {
        let mail = reader.mail()?;
        let words = mail.words();
        let count = MailSearch::open(&mail, &words)?.count(&query)?;
        super::print_count(context, count)?;
        return Ok(if count > 0 { CommandStatus::Done } else { CommandStatus::NothingFound });
    }
    let listed = read_messages(&reader, &query, options)?;
    if listed.is_empty() {
        if context.format == OutputFormat::Text {
            context.print_note("no results");
        }
        return Ok(CommandStatus::NothingFound);
    }
    if context.format == OutputFormat::Raw {
        print_raw(context, &reader, &listed)?;
    } else if options.is_files {
        print_files(context, &reader, &listed)?;
    } else if options.is_threaded {
        print_threads(context, &reader, &listed)?;
    } else {
        print_list(context, &reader, &listed)?;
    }
    let matches = listed.iter().filter(|one| one.is_match).count();
    if options.limit.is_none() && matches == DEFAULT_LIMIT {
        context.print_note(format!("the newest {DEFAULT_LIMIT} messages; -n N lists more"));
    }
    Ok(CommandStatus::Done)
}

/// Prints the newest messages that match after the items of other kinds. Returns whether there are
/// any. A query that has no meaning for messages matches none.
pub(super) fn print_message_group(
    context: &mut CommandContext,
    options: &MessageListOptions,
) -> Result<bool, CommandFailure> {
    let Some(reader) = open_mail_reader(context)? else { return Ok(false) };
    let query_context = MailQueryContext::from(&context.settings.user_locale);
    let Ok(query) = MailQuery::parse(&options.query, &query_context) else { return Ok(false) };
    let limit = options.limit.unwrap_or(GROUP_LIMIT);
    let group = MessageListOptions { limit: Some(limit), ..MessageListOptions::default() };
    let listed = match read_messages(&reader, &query, &group) {
        Ok(listed) => listed,
        Err(error) if error.is_usage() => return Ok(false),
        Err(error) => return Err(error),
    };
    if listed.is_empty() {
        return Ok(false);
    }
    if context.format == OutputFormat::Raw {
        print_raw(context, &reader, &listed)?;
    } else {
        print_list(context, &reader, &listed)?;
    }
    if listed.len() == limit && options.limit.is_none() && context.format == OutputFormat::Text {
        let note = format!("the newest {limit} messages; all of them: larder find --kind message");
        context.print_note(note);
    }
    Ok(true)
}

/// Reads the messages of the list, the newest first.
fn read_messages(
    reader: &Reader,
    query: &MailQuery,
    options: &MessageListOptions,
) -> Result<Vec<ListedMessage>, CommandFailure> {
    let mail = reader.mail()?;
    let words = mail.words();
    let search = MailSearch::open(&mail, &words)?;
    let limit = options.limit.unwrap_or(DEFAULT_LIMIT);
    let hits = search.find_newest(query, limit.saturating_add(options.offset))?;
    let hits = hits.get(options.offset..).unwrap_or_default();
    let mut rows: Vec<(u32, bool)> = hits.iter().map(|MailHit { row, .. }| (*row, true)).collect();
    if options.is_related {
        let matches: Vec<u32> = rows.iter().map(|(row, _)| *row).collect();
        let mut known = matches.clone();
        known.sort_unstable();
        let related = search.with_threads(&matches)?.into_iter();
        rows.extend(
            related.filter(|row| known.binary_search(row).is_err()).map(|row| (row, false)),
        );
    }
    let mut listed = Vec::with_capacity(rows.len());
    let mut values = (None, Vec::new());
    for (row, is_match) in rows {
        let (block, place) = block_of(row);
        if values.0 != Some(block) {
            mail.values(MailColumn::Flags, block, &mut values.1)?;
            values.0 = Some(block);
        }
        let bits = values.1.get(place).copied().unwrap_or_default();
        let flags = MessageFlags::from_bits(u16::try_from(bits).unwrap_or_default());
        if let Some(message) = mail.message(row)? {
            listed.push(ListedMessage { message, flags, is_match });
        }
    }
    Ok(listed)
}

/// Prints a line for each message: ID, date, sender, flags and subject.
fn print_list(
    context: &mut CommandContext,
    reader: &Reader,
    listed: &[ListedMessage],
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        return listed.iter().try_for_each(|one| {
            context.out.print_json(&message_json(one)).map_err(CommandFailure::from)
        });
    }
    let mut rows = Vec::with_capacity(listed.len());
    for one in listed {
        rows.push(list_cells(context, reader, one, "")?);
    }
    print_rows(context, &rows)
}

fn list_cells(
    context: &CommandContext,
    reader: &Reader,
    one: &ListedMessage,
    indent: &str,
) -> Result<[String; 5], CommandFailure> {
    let letters = reader.items().unique_prefix_len(one.message.handle)?;
    let summary = &one.message.summary;
    let subject = match summary.subject.trim() {
        "" => "(no subject)".to_string(),
        subject => sanitize_line(subject),
    };
    Ok([
        format!("{:.letters$}", one.message.handle),
        list_date(context, summary.date),
        sanitize_line(&summary.from.first().map(short_name).unwrap_or_default()),
        flag_letters(one.flags),
        format!("{indent}{subject}"),
    ])
}

fn print_rows(context: &mut CommandContext, rows: &[[String; 5]]) -> Result<(), CommandFailure> {
    let width = context.out.line_width();
    for [handle, date, from, flags, subject] in pad_cells(rows, [13, 16, 22, 6, 0], width) {
        let is_unread = flags.contains('u');
        let title = if is_unread { STRONG_STYLE } else { Style::new() };
        let cells = [
            (FAINT_STYLE, handle.as_str()),
            (Style::new(), date.as_str()),
            (title, from.as_str()),
            (FAINT_STYLE, flags.as_str()),
            (title, subject.as_str()),
        ];
        context.out.print_line(style_cells(&cells))?;
    }
    Ok(())
}

/// Prints messages as threads: each thread where its newest message is, and its messages indented
/// below those that they answer.
fn print_threads(
    context: &mut CommandContext,
    reader: &Reader,
    listed: &[ListedMessage],
) -> Result<(), CommandFailure> {
    let messages: Vec<ThreadMessage<'_>> = listed
        .iter()
        .map(|one| ThreadMessage {
            message_id: &one.message.uid,
            references: &one.message.summary.references,
            date: one.message.summary.date,
            subject: &one.message.summary.subject,
        })
        .collect();
    let order = order_threads(&messages, ThreadOrder::Descending);
    let mut rows = Vec::with_capacity(listed.len());
    for place in &order {
        let Some(one) = listed.get(place.index) else { continue };
        if context.format == OutputFormat::Json {
            let mut object = message_json(one);
            object["thread"] = json!({
                "level": place.level, "root": place.root, "first_child": place.first_child,
                "last_child": place.last_child, "has_child": place.has_child,
                "orphan": place.orphan, "duplicate": place.duplicate,
                "thread_subject": place.thread_subject, "number": place.thread,
            });
            context.out.print_json(&object)?;
            continue;
        }
        let branch = match (place.level, place.last_child) {
            (0, _) if place.orphan => "\u{2570} ".to_string(),
            (0, _) => String::new(),
            (level, true) => "  ".repeat(level - 1) + "\u{2514} ",
            (level, false) => "  ".repeat(level - 1) + "\u{251c} ",
        };
        rows.push(list_cells(context, reader, one, &branch)?);
    }
    print_rows(context, &rows)
}

/// Prints the paths of the files of each message.
fn print_files(
    context: &mut CommandContext,
    reader: &Reader,
    listed: &[ListedMessage],
) -> Result<(), CommandFailure> {
    let roots = mail_roots(context)?;
    for one in listed {
        for path in message_paths(reader, &roots, one.message.row)? {
            if context.format == OutputFormat::Json {
                let mut object = message_json(one);
                object["file"] = json!(path.to_string_lossy());
                context.out.print_json(&object)?;
            } else {
                context.out.print_line(sanitize_line(&path.display().to_string()))?;
            }
        }
    }
    Ok(())
}

/// Prints the bytes of each message, one after the other.
fn print_raw(
    context: &mut CommandContext,
    reader: &Reader,
    listed: &[ListedMessage],
) -> Result<(), CommandFailure> {
    let roots = mail_roots(context)?;
    for one in listed {
        let file = open_message_row(&roots, reader, one.message.row)?;
        context.out.print_bytes(&file.bytes)?;
    }
    Ok(())
}

/// Returns the paths of the files of a message.
pub(in crate::commands) fn message_paths(
    reader: &Reader,
    roots: &MailRoots,
    row: u32,
) -> Result<Vec<std::path::PathBuf>, CommandFailure> {
    let mail: MailReader<'_> = reader.mail()?;
    let files = mail.message_files(row)?.into_iter();
    files.map(|(collection, path)| file_path(roots, &collection, &path)).collect()
}

fn message_json(one: &ListedMessage) -> Value {
    let summary = &one.message.summary;
    let addresses = |addresses: &[MailAddress]| -> Value {
        addresses.iter().map(|one| json!({ "name": one.name, "address": one.address })).collect()
    };
    let date = MessageDate { seconds: summary.date, offset_minutes: 0 };
    json!({
        "kind": "message",
        "id": one.message.handle.to_string(),
        "message_id": one.message.uid,
        "date": (summary.date != 0).then(|| date.to_rfc3339()),
        "timestamp": summary.date,
        "size": summary.size,
        "from": addresses(&summary.from),
        "to": addresses(&summary.to),
        "cc": addresses(&summary.cc),
        "subject": summary.subject,
        "list_id": (!summary.list_id.is_empty()).then_some(&summary.list_id),
        "references": summary.references,
        "flags": one.flags.names().collect::<Vec<_>>(),
        "is_match": one.is_match,
    })
}

/// Returns the name of a person, else the address.
fn short_name(one: &MailAddress) -> String {
    one.name.clone().unwrap_or_else(|| one.address.clone())
}

/// Returns the date of a list, in the user's time zone.
fn list_date(context: &CommandContext, seconds: i64) -> String {
    if seconds == 0 {
        return String::new();
    }
    let instant = larder_time::civil::Instant::from_seconds_clamped(seconds);
    let civil = context.settings.user_locale.zone.to_civil(instant);
    let (date, minute) = (civil.date(), civil.second_of_day() / 60);
    let (year, month, day) = (date.year, date.month, date.day);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// Returns the letters of the flags that matter in a list: unread, flagged, replied, passed,
/// attachment, draft, trashed, encrypted and signed.
fn flag_letters(flags: MessageFlags) -> String {
    use larder_store::message_flags::MessageFlag;
    let letters = [
        (MessageFlag::Flagged, 'F'),
        (MessageFlag::Replied, 'R'),
        (MessageFlag::Passed, 'P'),
        (MessageFlag::Draft, 'D'),
        (MessageFlag::Trashed, 'T'),
        (MessageFlag::Attachment, 'a'),
        (MessageFlag::Encrypted, 'x'),
        (MessageFlag::Signed, 's'),
    ];
    let set = letters.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, c)| c);
    flags.is_unread().then_some('u').into_iter().chain(set).collect()
}

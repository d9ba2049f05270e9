//! The threads that `larder find --threads` lists: as trees, or a line for each.

use super::message_fields::{fields_line, message_json, select_fields};
use super::message_rows::{list_cells, list_date, print_rows, subject_text};
use super::snippets::{SnippetReader, snippet_json};
use crate::args::OutputFormat;
use crate::commands::show::message_page::place_json;
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::mail_store::{MailRoots, mail_roots};
use crate::output::{FAINT_STYLE, STRONG_STYLE, sanitize_line};
use crate::table::{pad_cells, style_cells};
use anstyle::Style;
use larder_format::message::MessageDate;
use larder_query::{ListedThread, MailQuery, ThreadPath, ThreadRow, format_thread_id};
use larder_store::Reader;
use serde_json::{Value, json};

/// Prints the messages of each thread, indented below those that they answer, or these fields of
/// them. With a query, those that match have snippets.
pub(super) fn print_threads(
    context: &mut CommandContext,
    reader: &Reader,
    threads: &[ListedThread],
    fields: &[&'static str],
    snippet_query: Option<&MailQuery>,
) -> Result<(), CommandFailure> {
    let needs_files =
        context.format == OutputFormat::Json || !fields.is_empty() || snippet_query.is_some();
    let roots = if needs_files { mail_roots(context)? } else { MailRoots::default() };
    let snippets = snippet_query.map(|query| SnippetReader::new(context, query, reader, &roots));
    let mut lines = Vec::new();
    let mut path = ThreadPath::default();
    let mut rows = Vec::new();
    for thread in threads {
        for place in &thread.rows {
            let Some(one) = thread.messages.get(place.index) else { continue };
            let snippet = snippets.as_ref().map(|snippets| match one.is_match {
                true => snippets.read(context, one),
                false => None,
            });
            if context.format == OutputFormat::Json {
                let mut object = message_json(reader, &roots, one)?;
                object["thread"] = place_json(place, path.advance(place));
                if let Some(snippet) = snippet {
                    object["snippet"] = json!(snippet.as_ref().map(snippet_json));
                }
                context.out.print_json(&select_fields(object, fields))?;
            } else if !fields.is_empty() {
                let object = message_json(reader, &roots, one)?;
                context.out.print_line(fields_line(reader, one, &object, fields)?)?;
            } else {
                rows.push(list_cells(context, reader, one, &branch(place))?);
                lines.extend(snippet);
            }
        }
    }
    print_rows(context, &rows, &lines)
}

/// Returns the line in front of the subject of a reply.
fn branch(place: &ThreadRow) -> String {
    match (place.level, place.last_child) {
        (0, _) if place.orphan => "\u{2570} ".to_string(),
        (0, _) => String::new(),
        (level, true) => "  ".repeat(level - 1) + "\u{2514} ",
        (level, false) => "  ".repeat(level - 1) + "\u{251c} ",
    }
}

/// Prints a line for each thread: its ID, the date of the newest message that matches, the number
/// of those and of all, the senders, and the subject.
pub(super) fn print_summaries(
    context: &mut CommandContext,
    threads: &[ListedThread],
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        let objects = threads.iter().map(summary_json);
        return Ok(objects.into_iter().try_for_each(|one| context.out.print_json(&one))?);
    }
    let mut rows = Vec::with_capacity(threads.len());
    for thread in threads {
        let newest = thread.newest_match();
        let (matching, others) = thread.authors();
        let authors = matching.join(", ");
        let authors = match others.as_slice() {
            [] => authors,
            others => format!("{authors} | {}", others.join(", ")),
        };
        rows.push([
            format_thread_id(thread.thread),
            list_date(context, newest.map_or(0, |one| one.message.summary.date)),
            format!("[{}/{}]", thread.matched, thread.total),
            sanitize_line(&authors),
            subject_text(thread.subject()),
        ]);
    }
    let width = context.out.line_width();
    for (row, thread) in pad_cells(&rows, [16, 16, 7, 30, 0], width).into_iter().zip(threads) {
        let is_unread = thread.messages.iter().any(|one| one.is_match && one.flags.is_unread());
        let title = if is_unread { STRONG_STYLE } else { Style::new() };
        let styles = [FAINT_STYLE, Style::new(), FAINT_STYLE, title, title];
        let cells: Vec<(Style, &str)> =
            styles.into_iter().zip(row.iter().map(String::as_str)).collect();
        context.out.print_line(style_cells(&cells))?;
    }
    Ok(())
}

fn summary_json(thread: &ListedThread) -> Value {
    let seconds = thread.newest_match().map_or(0, |one| one.message.summary.date);
    let (matching, others) = thread.authors();
    let ids = |is_match: bool| -> Vec<&str> {
        let messages = thread.messages.iter().filter(|one| one.is_match == is_match);
        messages.map(|one| one.message.uid.as_str()).collect()
    };
    let mut flags: Vec<&str> = Vec::new();
    for name in thread.messages.iter().filter(|one| one.is_match).flat_map(|one| one.flags.names())
    {
        if !flags.contains(&name) {
            flags.push(name);
        }
    }
    json!({
        "kind": "thread",
        "thread_id": format_thread_id(thread.thread),
        "date": (seconds != 0).then(|| MessageDate { seconds, offset_minutes: 0 }.to_rfc3339()),
        "timestamp": seconds,
        "matched": thread.matched,
        "total": thread.total,
        "authors": matching,
        "other_authors": others,
        "subject": thread.subject(),
        "flags": flags,
        "message_ids": ids(true),
        "other_message_ids": ids(false),
    })
}

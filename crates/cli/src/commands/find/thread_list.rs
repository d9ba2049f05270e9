//! The threads that `larder find --threads` lists: as trees, or a line for each.

use super::message_fields::{ListColumn, fields_line, message_json, select_fields};
use super::message_rows::{
    DATE_LETTERS, TitleCell, flag_letters, is_narrow, list_cells, list_date, print_rows,
    subject_text,
};
use super::snippets::{SnippetReader, snippet_json};
use crate::args::OutputFormat;
use crate::commands::show::message_page::place_json;
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::mail_store::{MailRoots, mail_roots};
use crate::output::{FAINT_STYLE, STRONG_STYLE, sanitize_line};
use crate::table::{pad_cells_with_bound, style_cells};
use anstyle::Style;
use larder_format::message::MessageDate;
use larder_query::{
    ListedMessage, ListedThread, MailQuery, ThreadPath, ThreadRow, format_thread_id,
};
use larder_store::Reader;
use larder_store::message_flags::MessageFlags;
use serde_json::{Value, json};

/// Returns the messages of threads, in the order of the list.
pub(super) fn listed_messages(threads: &[ListedThread]) -> impl Iterator<Item = &ListedMessage> {
    threads
        .iter()
        .flat_map(|thread| thread.rows.iter().filter_map(|place| thread.messages.get(place.index)))
}

/// Prints the messages of each thread, indented below those that they answer, or these fields of
/// them. With a query, those that match have snippets.
pub(super) fn print_threads(
    context: &mut CommandContext,
    reader: &Reader,
    threads: &[ListedThread],
    fields: &[ListColumn],
    snippet_query: Option<&MailQuery>,
) -> Result<(), CommandFailure> {
    let needs_files =
        context.format == OutputFormat::Json || !fields.is_empty() || snippet_query.is_some();
    let roots = if needs_files { mail_roots(context)? } else { MailRoots::default() };
    let snippets = snippet_query.map(|query| SnippetReader::new(context, query, reader, &roots));
    let mut lines = Vec::new();
    let mut path = ThreadPath::default();
    let mut branches = BranchLines::default();
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
                rows.push(list_cells(context, reader, one, &branches.advance(place))?);
                lines.extend(snippet);
            }
        }
    }
    print_rows(context, &rows, &lines)
}

/// The levels that are drawn. A message of a deeper level stands on the last one.
const MAX_DRAWN_LEVEL: usize = 20;

/// The lines that join the replies of a list of threads to what they answer.
#[derive(Debug, Default)]
struct BranchLines {
    /// For each level above the message, from 1 on: whether a sibling follows there.
    has_later_sibling: Vec<bool>,
}

impl BranchLines {
    /// Returns the lines in front of the subject of the next message.
    fn advance(&mut self, place: &ThreadRow) -> String {
        self.has_later_sibling.resize(place.level.saturating_sub(1), false);
        if place.level == 0 {
            return if place.orphan { "\u{2570} ".to_string() } else { String::new() };
        }
        let above = self.has_later_sibling.iter().take(MAX_DRAWN_LEVEL - 1);
        let above = above.map(|more| if *more { "\u{2502} " } else { "  " });
        let above: String = above.collect();
        self.has_later_sibling.push(!place.last_child);
        above + if place.last_child { "\u{2514} " } else { "\u{251c} " }
    }
}

/// The column of the senders in summaries.
const AUTHORS_COLUMN: usize = 3;
/// The most columns of the terminal that senders take in a pipe.
const AUTHORS_WIDTH: usize = 48;
/// The most names of senders in a line.
const MAX_NAMES: usize = 6;

/// Returns the first names of senders, and the number of the others.
fn join_names(names: &[&str]) -> String {
    let shown = names.iter().take(MAX_NAMES).map(|name| sanitize_line(name));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} +{more}"),
    }
}

/// Returns the labels of the messages that match, each once.
fn matching_labels(thread: &ListedThread) -> Vec<&str> {
    let matching = thread.messages.iter().filter(|one| one.is_match);
    let mut labels: Vec<&str> =
        matching.flat_map(|one| &one.labels).map(|label| label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// Prints a line for each thread: its ID, the date of the newest message that matches, the number
/// of those and of all, the senders, the flags of those that match, the subject, and their labels.
pub(super) fn print_summaries(
    context: &mut CommandContext,
    threads: &[ListedThread],
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        let objects = threads.iter().map(summary_json);
        return Ok(objects.into_iter().try_for_each(|one| context.out.print_json(&one))?);
    }
    let (mut rows, mut titles) = (Vec::new(), Vec::new());
    for thread in threads {
        let newest = thread.newest_match();
        let (matching, others) = thread.authors();
        let authors = match others.as_slice() {
            [] => join_names(&matching),
            others => format!("{} | {}", join_names(&matching), join_names(others)),
        };
        let flags = thread.messages.iter().filter(|one| one.is_match).map(|one| one.flags);
        let is_unread = flags.clone().any(MessageFlags::is_unread);
        let flags = flags.fold(MessageFlags::default(), MessageFlags::union);
        let subject = subject_text(thread.subject());
        let title = TitleCell::new(subject, matching_labels(thread).into_iter());
        rows.push([
            format_thread_id(thread.thread),
            list_date(context, newest.map_or(0, |one| one.message.summary.date())),
            format!("[{}/{}]", thread.matched, thread.total),
            authors,
            flag_letters(flags, is_unread),
            title.text(),
        ]);
        titles.push((title, is_unread));
    }
    let width = context.out.line_width();
    if is_narrow(width) {
        for [_, date, numbers, ..] in &mut rows {
            date.truncate(DATE_LETTERS);
            numbers.clear();
        }
    }
    let limits = [16, 16, 7, AUTHORS_WIDTH, 6, 0];
    let padded = pad_cells_with_bound(&mut rows, limits, width, AUTHORS_COLUMN);
    for (row, title) in padded.into_iter().zip(titles) {
        let [id, date, numbers, authors, flags, last] = &row;
        let (title, is_unread) = title;
        let (subject, labels) = title.fit(last);
        let style = if is_unread { STRONG_STYLE } else { Style::new() };
        let cells = [
            (FAINT_STYLE, id.as_str()),
            (Style::new(), date),
            (FAINT_STYLE, numbers),
            (style, authors),
            (FAINT_STYLE, flags),
            (style, &subject),
            (FAINT_STYLE, &labels),
        ];
        context.out.print_line(style_cells(&cells))?;
    }
    Ok(())
}

fn summary_json(thread: &ListedThread) -> Value {
    let seconds = thread.newest_match().map_or(0, |one| one.message.summary.date());
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
        "labels": matching_labels(thread),
        "message_ids": ids(true),
        "other_message_ids": ids(false),
    })
}

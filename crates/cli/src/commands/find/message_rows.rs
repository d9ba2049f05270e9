//! The rows of lists of messages: ID, date, sender, flags, subject and labels.
//!
//! Separate from `message_list` and `thread_list`, which both print such rows.

use super::snippets::snippet_line;
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::output::{FAINT_STYLE, STRONG_STYLE, sanitize_line};
use crate::table::{pad_cells, style_cells};
use anstyle::Style;
use larder_query::{ListedMessage, Snippet};
use larder_store::Reader;
use larder_store::message_flags::{MessageFlag, MessageFlags};

/// A line of a list.
pub(in crate::commands) struct MessageLine {
    /// ID, date, sender, flags, and subject with labels.
    cells: [String; 5],
    /// The labels at the end of the last cell.
    labels: String,
}

/// Returns the line of a message, whose subject is indented.
pub(in crate::commands) fn list_cells(
    context: &CommandContext,
    reader: &Reader,
    one: &ListedMessage,
    indent: &str,
) -> Result<MessageLine, CommandFailure> {
    let letters = reader.items().unique_prefix_len(one.message.handle)?;
    let summary = &one.message.summary;
    let from = summary.from.first().map(|one| one.display_name()).unwrap_or_default();
    let labels = match one.labels.is_empty() {
        true => String::new(),
        false => format!("  ({})", sanitize_line(&one.labels.join(" "))),
    };
    let cells = [
        format!("{:.letters$}", one.message.handle),
        list_date(context, summary.date),
        sanitize_line(from),
        flag_letters(one.flags),
        format!("{indent}{}{labels}", subject_text(&summary.subject)),
    ];
    Ok(MessageLine { cells, labels })
}

/// Returns a subject as lists show it.
pub(super) fn subject_text(subject: &str) -> String {
    match subject.trim() {
        "" => "(no subject)".to_string(),
        subject => sanitize_line(subject),
    }
}

/// Returns lines as a table of this width. Unread messages stand out.
pub(in crate::commands) fn format_lines(
    lines: &[MessageLine],
    width: Option<usize>,
) -> Vec<String> {
    let rows: Vec<[String; 5]> = lines.iter().map(|line| line.cells.clone()).collect();
    let padded = pad_cells(&rows, [13, 16, 22, 6, 0], width).into_iter().zip(lines);
    let format_line = |([handle, date, from, flags, last], line): ([String; 5], &MessageLine)| {
        // A cell that was shortened has lost its end.
        let labels = if last.ends_with(&line.labels) { line.labels.as_str() } else { "" };
        let subject = last.strip_suffix(labels).unwrap_or(&last);
        let title = if flags.contains('u') { STRONG_STYLE } else { Style::new() };
        let cells = [
            (FAINT_STYLE, handle.as_str()),
            (Style::new(), date.as_str()),
            (title, from.as_str()),
            (FAINT_STYLE, flags.as_str()),
            (title, subject),
            (FAINT_STYLE, labels),
        ];
        style_cells(&cells)
    };
    padded.map(format_line).collect()
}

/// Prints the lines of messages as a table, each with its snippet below.
pub(super) fn print_rows(
    context: &mut CommandContext,
    lines: &[MessageLine],
    snippets: &[Option<Snippet>],
) -> Result<(), CommandFailure> {
    let width = context.out.line_width();
    let mut snippets = snippets.iter();
    for line in format_lines(lines, width) {
        context.out.print_line(line)?;
        if let Some(Some(snippet)) = snippets.next()
            && !snippet.text.is_empty()
        {
            context.out.print_line(snippet_line(snippet))?;
        }
    }
    Ok(())
}

/// Returns the date of a list, in the user's time zone.
pub(super) fn list_date(context: &CommandContext, seconds: i64) -> String {
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

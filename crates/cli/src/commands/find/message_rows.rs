//! The rows of lists of messages: ID, date, sender, flags, subject and labels.
//!
//! Separate from `message_list` and `thread_list`, which both print such rows.

use super::snippets::snippet_line;
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::output::{FAINT_STYLE, STRONG_STYLE, join_labels, sanitize_line};
use crate::table::{pad_cells_with_bound, shorten_to_width, style_cells};
use anstyle::Style;
use larder_query::{ListedMessage, Snippet};
use larder_store::Reader;
use larder_store::message_flags::{MessageFlag, MessageFlags};
use unicode_width::UnicodeWidthStr as _;

/// The column of the sender or author in lists of messages and commits.
pub(super) const SENDER_COLUMN: usize = 2;
/// The most columns of the terminal that a sender takes in a pipe.
pub(super) const SENDER_WIDTH: usize = 32;

/// Terminals with fewer columns have no room for times and counts.
const NARROW_WIDTH: usize = 70;
/// The room that a subject has before its labels.
const MIN_SUBJECT_WIDTH: usize = 10;
/// The least room in which labels are worth showing.
const MIN_LABELS_WIDTH: usize = 6;
/// The characters of a date without its time.
pub(in crate::commands) const DATE_LETTERS: usize = 10;

/// A line of a list.
pub(in crate::commands) struct MessageLine {
    /// ID, date, sender, flags, and subject with labels.
    cells: [String; 5],
    /// The last cell.
    title: TitleCell,
}

/// Returns the line of a message, whose subject is indented.
pub(in crate::commands) fn list_cells(
    context: &CommandContext,
    reader: &Reader,
    one: &ListedMessage,
    indent: &str,
) -> Result<MessageLine, CommandFailure> {
    let letters = reader.items().unique_prefix_len(one.message.handle)?;
    let summary = one.message.summary.values();
    let from = summary.from.first().map(|one| one.display_name()).unwrap_or_default();
    let subject = format!("{indent}{}", subject_text(summary.subject));
    let title = TitleCell::new(subject, one.labels.iter().map(String::as_str));
    let cells = [
        format!("{:.letters$}", one.message.handle),
        list_date(context, summary.date),
        sanitize_line(from),
        flag_letters(one.flags, one.flags.is_unread()),
        title.text(),
    ];
    Ok(MessageLine { cells, title })
}

/// A subject with labels behind it. Where there is little room, the subject is cut first.
pub(super) struct TitleCell {
    subject: String,
    /// In parentheses, with a gap in front; empty: there are none.
    labels: String,
}

impl TitleCell {
    pub(super) fn new<'l>(subject: String, labels: impl Iterator<Item = &'l str>) -> TitleCell {
        let labels = join_labels(labels);
        let labels = if labels.is_empty() { labels } else { format!("  ({labels})") };
        TitleCell { subject, labels }
    }

    /// Returns the whole text.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.subject, self.labels)
    }

    /// Returns the subject and the labels in the room of a cell that was made from the text.
    pub(super) fn fit(&self, cell: &str) -> (String, String) {
        let width = cell.width();
        if self.labels.is_empty() || width >= self.subject.width() + self.labels.width() {
            return (cell.strip_suffix(&self.labels).unwrap_or(cell).into(), self.labels.clone());
        }
        // A beginning of a label says less than the words of the subject.
        let labels = match (width / 2).min(width.saturating_sub(MIN_SUBJECT_WIDTH)) {
            room if room < MIN_LABELS_WIDTH => String::new(),
            room => shorten_to_width(&self.labels, room),
        };
        (shorten_to_width(&self.subject, width.saturating_sub(labels.width())), labels)
    }
}

/// Returns a subject as lists show it.
pub(in crate::commands) fn subject_text(subject: &str) -> String {
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
    let mut rows: Vec<[String; 5]> = lines.iter().map(|line| line.cells.clone()).collect();
    if is_narrow(width) {
        rows.iter_mut().for_each(|[_, date, ..]| date.truncate(DATE_LETTERS));
    }
    let limits = [13, 16, SENDER_WIDTH, 6, 0];
    let padded = pad_cells_with_bound(&mut rows, limits, width, SENDER_COLUMN);
    let padded = padded.into_iter().zip(lines);
    let format_line = |([handle, date, from, flags, last], line): ([String; 5], &MessageLine)| {
        let (subject, labels) = line.title.fit(&last);
        let title = if flags.contains('u') { STRONG_STYLE } else { Style::new() };
        let cells = [
            (FAINT_STYLE, handle.as_str()),
            (Style::new(), date.as_str()),
            (title, from.as_str()),
            (FAINT_STYLE, flags.as_str()),
            (title, subject.as_str()),
            (FAINT_STYLE, labels.as_str()),
        ];
        style_cells(&cells)
    };
    padded.map(format_line).collect()
}

/// Returns whether a terminal is too narrow for all columns of a list.
pub(in crate::commands) fn is_narrow(width: Option<usize>) -> bool {
    width.is_some_and(|width| width < NARROW_WIDTH)
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
pub(in crate::commands) fn list_date(context: &CommandContext, seconds: i64) -> String {
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
pub(super) fn flag_letters(flags: MessageFlags, is_unread: bool) -> String {
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
    is_unread.then_some('u').into_iter().chain(set).collect()
}

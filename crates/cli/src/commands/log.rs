//! `larder log`.

use crate::args::OutputFormat;
use crate::commands::find::message_rows::{DATE_LETTERS, is_narrow, list_date, subject_text};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::{display_name, name_from_bytes, resolve_item};
use crate::mail_store::{find_message_rows, message_id, open_mail_reader};
use crate::output::{
    ADDED_STYLE, FAINT_STYLE, OutputStream, REMOVED_STYLE, STRONG_STYLE, format_count,
    format_local_time, sanitize_line,
};
use crate::table::{pad_columns, shorten_to_width, style_cells};
use anstyle::Style;
use larder_format::binary_description::display_lines;
use larder_format::label::MessageLabels;
use larder_present::safe_text::drop_stranded_chars;
use larder_store::{Handle, HandlePrefix, OperationId, OperationRecord, Reader, Version};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io;
use unicode_width::UnicodeWidthStr as _;

/// List operations, newest first, or the versions of one item
///
/// ID is the ID of an item, which may have been removed, or the number of an operation (fewer than
/// eight digits), which shows only that operation. Of a message, by its ID or Message-ID, the
/// versions are those of its labels. Previous versions are kept for 90 days, up to
/// 64 MB. `larder log ID --format raw` prints the bytes of each version, oldest first.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Show the versions of this item, or the operation with this number
    id: Option<String>,
    /// Show at most N operations
    #[arg(long, short = 'n', value_name = "N", default_value_t = 30)]
    limit: usize,
}

impl LogArgs {
    /// Returns whether the argument is an item's ID. IDs are printed with at least eight letters,
    /// so a shorter number is the number of an operation.
    pub(super) fn is_about_item(&self) -> bool {
        let number = |id: &str| id.len() < 8 && id.bytes().all(|byte| byte.is_ascii_digit());
        self.id.as_deref().is_some_and(|id| !number(id))
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let reader = context.open_reader()?;
        let operations = match &self.id {
            Some(id) if self.is_about_item() => {
                let handle = match resolve_handle(&reader, id) {
                    Err(failure) if failure.is_not_found() => {
                        let histories = list_label_histories(context, &reader, id)?;
                        return print_histories(context, &histories.ok_or(failure)?);
                    }
                    handle => handle?,
                };
                let versions = reader.changes().list_versions(handle)?;
                let history = ItemHistory { title: String::new(), versions, are_labels: false };
                return print_histories(context, &[history]);
            }
            Some(number) => find_operation(&reader, number)?,
            None => reader.changes().list_operations(None, self.limit)?,
        };
        let width = context.out.line_width();
        let index = open_mail_reader(context)?;
        let verbs = operations.iter().map(|row| row.verb.len());
        let verb_width = verbs.max().unwrap_or_default().max(8);
        let (is_narrow, mut details) = (is_narrow(width), Vec::new());
        for row in &operations {
            if context.format == OutputFormat::Json {
                context.out.print_json(&operation_json(row))?;
                continue;
            }
            let detail = describe_detail(context, &reader, index.as_ref(), &row.detail)?;
            match is_narrow {
                true => details.push(detail),
                false => context.out.print_line(operation_line(row, detail, verb_width, width))?,
            }
        }
        for line in format_narrow_lines(operations.iter().zip(details), width) {
            context.out.print_line(line)?;
        }
        Ok(if operations.is_empty() { CommandStatus::NothingFound } else { CommandStatus::Done })
    }
}

/// Returns the handle of a current or removed item.
fn resolve_handle(reader: &Reader, id: &str) -> Result<Handle, CommandFailure> {
    if let Some(name) = id.strip_prefix('@')
        && let Some(handle) = larder_query::find_saved_search(reader, name)?
    {
        return Ok(handle);
    }
    let missing = match resolve_item(reader, id) {
        Ok(head) => return Ok(head.handle),
        Err(failure) => failure,
    };
    let prefix = HandlePrefix::parse(id);
    let removed =
        prefix.map(|prefix| reader.changes().find_removed_handles(prefix, 2)).transpose()?;
    match removed.as_deref() {
        Some([handle]) => Ok(*handle),
        _ => Err(missing),
    }
}

/// The versions of an item.
struct ItemHistory {
    /// The heading, if several items are printed.
    title: String,
    /// The versions, oldest first.
    versions: Vec<Version>,
    /// Whether the item is the labels of a message, which is removed with its last label.
    are_labels: bool,
}

/// Returns the versions of the labels of the message with an ID, of each of its texts; `None`:
/// there is no such message.
fn list_label_histories(
    context: &CommandContext,
    reader: &Reader,
    id: &str,
) -> Result<Option<Vec<ItemHistory>>, CommandFailure> {
    // A message that went has labels still.
    let mut names = vec![message_id(id).into_owned()];
    let mut is_message = false;
    if let Some(index) = open_mail_reader(context)? {
        let rows = find_message_rows(&index, id)?;
        let mail = index.mail()?;
        for row in rows {
            names.extend(mail.uid(row)?);
            is_message = true;
        }
    }
    names.sort_unstable();
    names.dedup();
    let mut histories = Vec::new();
    for name in names {
        for handle in reader.label_handles(&name)? {
            is_message = true;
            let mut versions = reader.changes().list_versions(handle)?;
            for version in &mut versions {
                // Without the hash of the text that has the labels.
                let bytes = version.bytes.take();
                version.bytes = bytes.map(|bytes| MessageLabels::parse(&bytes).labels.to_bytes());
            }
            let title = format!("labels of {}", sanitize_line(&name));
            histories.push(ItemHistory { title, versions, are_labels: true });
        }
    }
    histories.retain(|history| !history.versions.is_empty());
    Ok(is_message.then_some(histories))
}

/// Returns the operation with this number.
fn find_operation(reader: &Reader, number: &str) -> Result<Vec<OperationRecord>, CommandFailure> {
    let id = OperationId::from_number(number.parse().unwrap_or_default());
    match reader.changes().find_operation(id)? {
        Some(found) => Ok(vec![found]),
        None => Err(larder_store::Error::NoOperation { id }.into()),
    }
}

fn operation_line(
    row: &OperationRecord,
    mut detail: String,
    verb_width: usize,
    width: Option<usize>,
) -> String {
    let (counts, undone) = (format_counts(row), format_undone(row));
    let (id, verb) = (row.id, &row.verb);
    let mut counts_wide = 16;
    if let Some(width) = width {
        counts_wide = if width < 80 { 8 } else { counts_wide };
        let used = DETAIL_OFFSET_COLUMNS + verb_width + counts_wide + undone.len();
        detail = shorten_to_width(&detail, width.saturating_sub(used).max(1));
    }
    let line = format!(
        "{id:>5}  {FAINT_STYLE}{}{FAINT_STYLE:#}  {STRONG_STYLE}{verb:<verb_width$}{STRONG_STYLE:#}  {:<counts_wide$}  {detail}{undone}",
        format_local_time(row.started_at_ms),
        counts
    );
    line.trim_end().to_string()
}

/// Returns a line for each operation, with its detail, for a narrow terminal: without the time of
/// the day, and cut as other lists are.
fn format_narrow_lines<'o>(
    operations: impl Iterator<Item = (&'o OperationRecord, String)>,
    width: Option<usize>,
) -> Vec<String> {
    let rows: Vec<(&OperationRecord, String)> = operations.collect();
    let id_width = rows.iter().map(|(row, _)| row.id.to_string().len()).max().unwrap_or_default();
    let cells = |(row, detail): &(&OperationRecord, String)| {
        [
            format!("{:>id_width$}", row.id),
            format!("{:.DATE_LETTERS$}", format_local_time(row.started_at_ms)),
            row.verb.clone(),
            format_counts(row),
            format!("{detail}{}", format_undone(row)),
        ]
    };
    let cells: Vec<[String; 5]> = rows.iter().map(cells).collect();
    let verb_width = cells.iter().map(|[_, _, verb, ..]| verb.len()).max().unwrap_or_default();
    let limits = [0, 0, verb_width, 0, 0];
    // A number that is cut would be another one.
    let fixed = [false, false, false, true, false];
    let padded = pad_columns(&cells, limits, width, VERB_COLUMN, fixed);
    let mut lines = Vec::with_capacity(rows.len());
    for ([id, date, verb, counts, room], (row, detail)) in padded.iter().zip(&rows) {
        let last = fit_detail(detail, &format_undone(row), room.width());
        lines.push(style_cells(&[
            (Style::new(), id),
            (FAINT_STYLE, date),
            (STRONG_STYLE, verb),
            (Style::new(), counts),
            (Style::new(), &last),
        ]));
    }
    lines
}

/// Returns a detail and the operation that undid it, of which the detail is cut first.
fn fit_detail(detail: &str, undone: &str, width: usize) -> String {
    let room = width.saturating_sub(undone.width());
    match room {
        0 => shorten_to_width(undone.trim_start(), width),
        room => format!("{}{undone}", shorten_to_width(detail, room)),
    }
}

/// Returns the numbers of items that an operation added, changed and removed.
fn format_counts(row: &OperationRecord) -> String {
    let [added, updated, removed] = row.counts;
    let counts = [(added, "+"), (updated, "~"), (removed, "-")];
    let some = counts.iter().filter(|(number, _)| *number > 0);
    some.map(|(number, sign)| format!("{sign}{number}")).collect::<Vec<_>>().join(" ")
}

/// Returns the end of the line of an operation that was undone.
fn format_undone(row: &OperationRecord) -> String {
    row.undone_by.map_or(String::new(), |by| format!("  (undone by {by})"))
}

/// Returns the detail of an operation with a name after each item's ID. The log itself contains no
/// names, as a purge would have to erase them there.
fn describe_detail(
    context: &CommandContext,
    reader: &Reader,
    index: Option<&Reader>,
    detail: &str,
) -> Result<String, CommandFailure> {
    let mut words = Vec::new();
    for word in detail.split(' ') {
        let prefix = HandlePrefix::parse(word).filter(|_| word.len() == HANDLE_LETTERS);
        let mut named = prefix.map(|prefix| last_known_name(reader, prefix)).transpose()?.flatten();
        if let (None, Some(prefix), Some(index)) = (&named, prefix, index) {
            named = message_name(context, index, prefix)?;
        }
        match named {
            Some((handle, name)) => words.push(format!("{handle:.8} {name}")),
            None => words.push(sanitize_line(word)),
        }
    }
    Ok(words.join(" "))
}

/// Columns before the detail, without the name of the command and the counts.
const DETAIL_OFFSET_COLUMNS: usize = 32;

/// The column of the command in a narrow log.
const VERB_COLUMN: usize = 2;

/// The length of a complete ID.
const HANDLE_LETTERS: usize = 13;

/// Returns the current or last name of an item.
fn last_known_name(
    reader: &Reader,
    prefix: HandlePrefix,
) -> Result<Option<(Handle, String)>, CommandFailure> {
    if let Some(head) = reader.items().find_by_handle(prefix, 1)?.first() {
        return Ok(Some((head.handle, display_name(reader, head)?)));
    }
    let Some(&handle) = reader.changes().find_removed_handles(prefix, 1)?.first() else {
        return Ok(None);
    };
    let versions = reader.changes().list_versions(handle)?;
    let bytes = versions.last().and_then(|version| version.bytes.as_deref());
    Ok(bytes.map(|bytes| (handle, name_from_bytes(bytes))))
}

/// Returns the handle, subject and date of a message.
fn message_name(
    context: &CommandContext,
    index: &Reader,
    prefix: HandlePrefix,
) -> Result<Option<(Handle, String)>, CommandFailure> {
    let Some(meta) = index.items().find_by_handle(prefix, 1)?.pop() else { return Ok(None) };
    let row = u32::try_from(meta.row.to_number()).unwrap_or(u32::MAX);
    let Some(message) = index.mail()?.message(row)? else { return Ok(None) };
    let title = subject_text(message.summary.subject());
    let date = list_date(context, message.summary.date());
    let title = if date.is_empty() { title } else { format!("{title}, {date}") };
    Ok(Some((message.handle, title)))
}

/// Returns the handle and the title of the message whose labels an item is; of one that is not in
/// the index, the name. `None`: the item is no list of labels.
pub(super) fn labelled_message_name(
    context: &CommandContext,
    data: &Reader,
    labels: Handle,
) -> Result<Option<(Handle, String)>, CommandFailure> {
    let Some(uid) = data.labelled_message(labels)? else { return Ok(None) };
    let unindexed = (labels, format!("labels of {}", sanitize_line(&uid)));
    let Some(index) = open_mail_reader(context)? else { return Ok(Some(unindexed)) };
    let found = find_message_rows(&index, &uid)?.into_iter().next();
    let message = found.map(|row| index.mail()?.message(row)).transpose()?.flatten();
    let prefix = message.and_then(|found| HandlePrefix::parse(&found.handle.to_string()));
    let named = prefix.map(|prefix| message_name(context, &index, prefix)).transpose()?;
    Ok(named.flatten().or(Some(unindexed)))
}

fn operation_json(row: &OperationRecord) -> Value {
    let [added, updated, removed] = row.counts;
    json!({
        "operation": row.id.to_number(), "command": row.verb, "detail": row.detail, "started_at_ms": row.started_at_ms,
        "added": added, "updated": updated, "removed": removed,
        "undoes": row.undoes.map(OperationId::to_number),
        "undone_by": row.undone_by.map(OperationId::to_number),
    })
}

fn print_histories(
    context: &mut CommandContext,
    histories: &[ItemHistory],
) -> Result<CommandStatus, CommandFailure> {
    if histories.iter().all(|history| history.versions.is_empty()) {
        return Err(CommandFailure::new(
            FailureKind::NotFound,
            "no versions of this item are stored",
        )
        .with_hint("previous versions are kept for 90 days, up to 64 MB"));
    }
    let is_titled =
        histories.len() > 1 && !matches!(context.format, OutputFormat::Raw | OutputFormat::Json);
    for history in histories {
        if is_titled {
            let title = &history.title;
            context.out.print_line(format!("{STRONG_STYLE}{title}{STRONG_STYLE:#}"))?;
        }
        print_versions(context, history)?;
    }
    Ok(CommandStatus::Done)
}

fn print_versions(
    context: &mut CommandContext,
    history: &ItemHistory,
) -> Result<(), CommandFailure> {
    let mut before: &[u8] = &[];
    for version in &history.versions {
        let ends_labels = history.are_labels && version.removed;
        let bytes = version.bytes.as_deref().unwrap_or_default();
        match context.format {
            OutputFormat::Raw => {
                context.out.print_item_bytes(bytes)?;
            }
            OutputFormat::Json => context.out.print_json(&json!({
                "since": version.since, "until": version.until, "removed": version.removed,
                "operation": version.operation.as_ref().map(operation_json),
                "ended_by": version.ended_by.as_ref().map(operation_json),
                "source_bytes": version.bytes.as_deref().map(String::from_utf8_lossy),
            }))?,
            _ => {
                print_version_event(&mut context.out, version.operation.as_ref(), "")?;
                match version.bytes {
                    Some(_) => print_difference(&mut context.out, before, bytes)?,
                    None => context.out.print_line("  (purged)")?,
                }
                if version.removed {
                    print_version_event(&mut context.out, version.ended_by.as_ref(), "removed")?;
                }
                if ends_labels {
                    print_difference(&mut context.out, bytes, &[])?;
                }
            }
        }
        // Labels that come after the last one was removed are new.
        before = if ends_labels { &[] } else { bytes };
    }
    Ok(())
}

fn print_version_event(
    out: &mut OutputStream,
    row: Option<&OperationRecord>,
    what: &str,
) -> io::Result<()> {
    match row {
        Some(row) => {
            let (verb, id, at) = (&row.verb, row.id, format_local_time(row.started_at_ms));
            let mut line = format!(
                "{STRONG_STYLE}{verb}{STRONG_STYLE:#}  {FAINT_STYLE}operation {id}, {at}{FAINT_STYLE:#}"
            );
            if !what.is_empty() {
                line.push_str("  ");
                line.push_str(what);
            }
            out.print_line(line)
        }
        None => out.print_line(format!("(operation pruned)  {what}").trim_end()),
    }
}

/// Lines of a difference to print.
const MAX_DIFFERENCE_LINES: usize = 200;

/// Returns the lines of an item to compare, each with the text to print. A picture is one line.
fn difference_lines(item: &[u8]) -> Vec<(Vec<u8>, String)> {
    let mut lines = Vec::new();
    for line in display_lines(item) {
        if let Some(description) = line.description {
            lines.push((line.raw.to_vec(), description));
            continue;
        }
        for text in String::from_utf8_lossy(line.raw).lines() {
            let text = sanitize_line(text.trim_end());
            lines.push((text.clone().into_bytes(), text));
        }
    }
    lines
}

/// Prints the lines that are in only one of two texts: removed ones in red, added ones in green.
/// Cuts long lines and long lists.
pub(crate) fn print_difference(
    out: &mut OutputStream,
    before: &[u8],
    after: &[u8],
) -> io::Result<()> {
    let (before, after) = (difference_lines(before), difference_lines(after));
    let bytes = |lines: &[(Vec<u8>, String)]| -> HashSet<Vec<u8>> {
        lines.iter().map(|(bytes, _)| bytes.clone()).collect()
    };
    let (old, new) = (bytes(&before), bytes(&after));
    let cut = |line: &str| match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", drop_stranded_chars(&line[..end])),
        None => line.to_string(),
    };
    let removed = before
        .iter()
        .filter(|(bytes, _)| !new.contains(bytes))
        .map(|(_, line)| (REMOVED_STYLE, '-', line));
    let added = after
        .iter()
        .filter(|(bytes, _)| !old.contains(bytes))
        .map(|(_, line)| (ADDED_STYLE, '+', line));
    let mut all = removed.chain(added);
    for (style, sign, line) in all.by_ref().take(MAX_DIFFERENCE_LINES) {
        out.print_line(format!("  {style}{sign} {}{style:#}", cut(line)))?;
    }
    match all.count() {
        0 => Ok(()),
        more => out.print_line(format!("  ... and {}", format_count(more as u64, "more line"))),
    }
}

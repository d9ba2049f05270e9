//! Labels of messages, as `larder edit --label` changes them.

use crate::commands::find::query_args::{EMPTY_WORD_MESSAGE, is_without_text};
use crate::commands::labels::{change_and_print, label_failure};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::mail_store::{
    find_thread_rows, list_sources, message_id, parse_mail_query, query_roots, require_mail_index,
    require_mail_reader, resolve_message,
};
use crate::output::sanitize_line;
use crate::source_names::print_index_notes;
use larder_edit::labels::{count_stored_labels, unique_texts};
use larder_format::label::{LabelChange, LabelError};
use larder_query::{MailQuery, MailSearch};
use larder_store::{DataDirectory, Reader};
use larder_sync::SourceType;

/// Changes the labels of the messages with these IDs, or of those that match a query.
pub(super) fn edit_labels(
    context: &mut CommandContext,
    ids: &[String],
    query: Option<&str>,
    changes: &[String],
) -> Result<CommandStatus, CommandFailure> {
    let change = LabelChange::parse(changes.iter().map(String::as_str)).map_err(|error| {
        let removed = match &error {
            LabelError::Flag(name) if changes.contains(&format!("-{name}")) => Some(name.clone()),
            _ => None,
        };
        removed.into_iter().fold(label_failure(error), |failure, name| {
            match has_label(context, &name) {
                true => failure.with_hint(format!(
                    "to take the label of this name from all messages: larder labels remove {name}"
                )),
                false => failure,
            }
        })
    })?;
    context.read_saved_searches(query.unwrap_or_default())?;
    let searches = &context.settings.saved_searches;
    let fault = query.and_then(|line| match line {
        line if is_without_text(line) => Some("the query of --query is empty"),
        line if MailQuery::has_empty_word(line, searches) => Some(EMPTY_WORD_MESSAGE),
        _ => None,
    });
    if let Some(message) = fault {
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint("to label all messages: --query '*'"));
    }
    // The labels that messages have are read in the store; only a query needs those in the index.
    let reader = match query {
        Some(_) => require_mail_reader(context)?,
        None => require_mail_index(context)?,
    };
    let (mut rows, mut hints) = (Vec::new(), Vec::new());
    for id in ids {
        rows.extend(find_rows(context, &reader, id)?);
    }
    if let Some(line) = query {
        let sources = list_sources(context)?;
        print_index_notes(context, SourceType::Mail, &sources, Some(&reader), None)?;
        let query = parse_mail_query(context, line)?;
        let roots = query_roots(context, &query)?;
        let mail = reader.mail()?;
        let words = mail.words();
        let search = MailSearch::open(&mail, &words)?.with_roots(&roots);
        search.check_names(&query)?;
        search.for_each_match(&query, &mut |row| rows.push(row))?;
        if rows.is_empty() {
            hints = search.missing_name_hints(&query)?;
        }
    }
    rows.sort_unstable();
    rows.dedup();
    let listed = rows.len();
    let messages = unique_texts(reader.mail()?.labelled_texts(&rows)?);
    if messages.is_empty() {
        let failure = CommandFailure::new(FailureKind::NotFound, "no message matches the query");
        if hints.is_empty() {
            hints.push("`larder find --kind message QUERY` shows what a query matches".to_string());
        }
        return Err(hints.into_iter().fold(failure, CommandFailure::with_hint));
    }
    change_and_print(context, "edit labels", &messages, &change, Some(listed))
}

/// Returns whether a message has a label; false if that cannot be read.
fn has_label(context: &CommandContext, name: &str) -> bool {
    let reader = DataDirectory::new(&context.dir).has_store().then(|| context.open_reader().ok());
    let counts = reader.flatten().and_then(|reader| count_stored_labels(&reader).ok());
    counts.is_some_and(|counts| counts.iter().any(|(label, _)| label == name))
}

/// Returns the rows of the message with an ID: several if the ID is a Message-ID that several texts
/// have, or if the message is in several maildirs.
fn find_rows(
    context: &CommandContext,
    reader: &Reader,
    id: &str,
) -> Result<Vec<u32>, CommandFailure> {
    let rows = reader.mail()?.rows_with_uid(&message_id(id))?;
    if !rows.is_empty() {
        return Ok(rows);
    }
    match resolve_message(context, reader, id)? {
        Some(row) => Ok(vec![row]),
        None => {
            let members = find_thread_rows(reader, id)?;
            if !members.is_empty() {
                return Ok(members);
            }
            let message = format!("no message has the ID {:?}", sanitize_line(id));
            Err(CommandFailure::new(FailureKind::NotFound, message)
                .with_hint("`larder find --kind message` shows IDs; only messages have labels"))
        }
    }
}

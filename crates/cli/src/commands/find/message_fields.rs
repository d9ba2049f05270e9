//! The values of a listed message, as JSON and as columns of `--fields`.

use crate::failure::{CommandFailure, FailureKind};
use crate::mail_store::MailRoots;
use crate::output::sanitize_line;
use larder_format::message::{MailAddress, MessageDate};
use larder_query::{KindGroup, ListedMessage, format_thread_id};
use larder_store::Reader;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The name in JSON of the field in a column; `None`: the kind does not have the column.
pub(super) type ListColumn = Option<&'static str>;

/// Returns the names in JSON of the columns of `--fields`.
pub(super) fn parse_field_names(names: &[String]) -> Result<Vec<ListColumn>, CommandFailure> {
    let find = |name: &str| {
        KindGroup::Messages.find_field(name).map(Some).ok_or_else(|| {
            let known = KindGroup::Messages.field_names();
            let message =
                format!("unknown field {:?} of messages in --fields", sanitize_line(name));
            CommandFailure::new(FailureKind::Usage, message)
                .with_hint(format!("one of {}", known.join(", ")))
        })
    };
    // mu separates them by spaces.
    let names = names.iter().flat_map(|name| name.split_whitespace());
    names.map(find).collect()
}

/// Returns the files of a message: the names of their collections, and their paths below the root
/// of the maildir.
fn read_files(reader: &Reader, row: u32) -> Result<Vec<(String, PathBuf)>, CommandFailure> {
    Ok(reader.mail()?.message_files(row)?)
}

/// Returns all values of a message.
pub(in crate::commands) fn message_json(
    reader: &Reader,
    roots: &MailRoots,
    one: &ListedMessage,
) -> Result<Value, CommandFailure> {
    let summary = one.message.summary.to_summary();
    let addresses = |addresses: &[MailAddress]| -> Value {
        addresses.iter().map(|one| json!({ "name": one.name, "address": one.address })).collect()
    };
    let date = MessageDate { seconds: summary.date, offset_minutes: 0 };
    let files = read_files(reader, one.message.row)?;
    let folders = reader.mail()?.message_folders(one.message.row)?;
    // As `maildir:` takes them.
    let folders = folders.iter().map(|path| format!("/{}", String::from_utf8_lossy(path)));
    let folders: Vec<String> = folders.collect();
    // The files of a source that is no longer registered have no paths.
    let paths = files.iter().filter_map(|(name, path)| roots.get(name).map(|root| root.join(path)));
    let paths: Vec<String> = paths.map(|path| path.to_string_lossy().into_owned()).collect();
    Ok(json!({
        "kind": "message",
        "id": one.message.handle.to_string(),
        "collection": files.first().map(|(name, _)| name),
        "message_id": one.message.uid,
        "date": (summary.date != 0).then(|| date.to_rfc3339()),
        "timestamp": summary.date,
        "size": summary.size,
        "priority": one.flags.priority().name(),
        "from": addresses(&summary.from),
        "to": addresses(&summary.to),
        "cc": addresses(&summary.cc),
        "bcc": addresses(&summary.bcc),
        "reply_to": addresses(&summary.reply_to),
        "subject": summary.subject,
        "list_id": (!summary.list_id.is_empty()).then_some(&summary.list_id),
        "references": summary.references,
        "keywords": summary.keywords,
        "flags": one.flags.names().collect::<Vec<_>>(),
        "labels": one.labels,
        "folders": folders,
        "files": paths,
        "thread_id": format_thread_id(one.thread),
        "is_match": one.is_match,
    }))
}

/// Returns the line of a message with these values: its ID, and a tab before each.
pub(super) fn fields_line(
    reader: &Reader,
    one: &ListedMessage,
    object: &Value,
    columns: &[ListColumn],
) -> Result<String, CommandFailure> {
    let letters = reader.items().unique_prefix_len(one.message.handle)?;
    let mut line = format!("{:.letters$}", one.message.handle);
    for column in columns {
        line.push('\t');
        line.push_str(&column_text(object, *column));
    }
    Ok(line)
}

/// Returns these values of an object; all of them, if none is named.
pub(super) fn select_fields(object: Value, columns: &[ListColumn]) -> Value {
    if columns.is_empty() {
        return object;
    }
    let always = ["id", "kind", "is_match", "thread"];
    let names = always.iter().chain(columns.iter().flatten());
    names.filter_map(|name| Some(((*name).to_string(), object.get(name)?.clone()))).collect()
}

/// Returns the text of a column.
pub(super) fn column_text(object: &Value, column: ListColumn) -> String {
    column.and_then(|name| object.get(name)).map(field_text).unwrap_or_default()
}

/// Returns the text of a value: several texts have a comma between them, people their addresses.
fn field_text(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(field_text).collect::<Vec<_>>().join(", "),
        Value::Object(_) => {
            let part = |name: &str| value.get(name).and_then(Value::as_str);
            let address = part("address").unwrap_or_default().to_string();
            MailAddress { name: part("name").map(Into::into), address }.to_string()
        }
        other => other.to_string(),
    };
    sanitize_line(&text)
}

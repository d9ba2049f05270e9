//! `larder show`.

mod calendar_item;
mod commit_page;
pub(super) mod item_format;
pub(super) mod message_page;

use self::message_page::place_json;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::resolve_items;
use crate::mail_store::{self, FoundThread, MessageOpener};
use crate::message_file::MessageFile;
use crate::output::{FAINT_STYLE, OutputStream, STRONG_STYLE, sanitize_line};
use larder_format::binary_description::describe_binary;
use larder_format::field::{Field, FieldType};
use larder_format::kind::ListLayout;
use larder_format::parsed_source::ParsedSource;
use larder_present::message_html::format_message_page;
use larder_query::{ThreadMember, UserLocale, format_thread_id};
use larder_store::{ItemMeta, Reader};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Show items in full: as text, JSON, or the original vCard, iCalendar or message
///
/// ID is the ID that `larder find` prints, or any unambiguous beginning of it; or `uid:TEXT`; or
/// `COLLECTION/UID`; or the Message-ID of a message; or the ID of a thread; or the beginning of the
/// hash of a commit. A message that is not indexed is shown by the path of its file, with a slash
/// in it or `.eml` at its end, or `-` for standard input.
/// `--format html` prints a page for a browser, which runs no script and loads nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The items
    #[arg(required = true, value_name = "ID")]
    ids: Vec<OsString>,
    /// Print the original bytes; the same as --format raw
    #[arg(long)]
    raw: bool,
    /// Show the whole thread of each message, the oldest first
    #[arg(long)]
    thread: bool,
    /// Print the texts that converters made of attachments, too
    #[arg(long)]
    converted: bool,
}

impl ShowArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if self.raw {
            context.format = OutputFormat::Raw;
        }
        let mut ids = Vec::new();
        let mut shown = ShownMessages { is_converted: self.converted, ..ShownMessages::default() };
        let mut status = CommandStatus::Done;
        for operand in self.ids {
            let found = find_messages(context, &operand, self.thread)?;
            // One that is not UTF-8 is the name of a file.
            let operand = operand.to_string_lossy().into_owned();
            match found {
                FoundMessages::File(file) => shown.print(context, &file, None)?,
                FoundMessages::Thread(thread) => {
                    let opener = MessageOpener::new(&thread.roots);
                    for (number, member) in (1..).zip(&thread.members) {
                        let message = &member.listed.message;
                        match opener.open_listed(&thread.reader, message)? {
                            Some(file) => {
                                let place = (number, thread.members.len());
                                shown.print(context, &file, Some((member, place)))?;
                            }
                            None => status = CommandStatus::SourceMissing,
                        }
                    }
                }
                FoundMessages::None => {
                    if !matches!(context.format, OutputFormat::Html | OutputFormat::Mbox)
                        && let Some(commit) = commit_page::open_commit(context, &operand)?
                    {
                        shown.print_gap(context)?;
                        commit_page::print_commit(context, &commit)?;
                    } else if operand.starts_with("thread:") {
                        let message = format!("no thread is named {:?}", sanitize_line(&operand));
                        return Err(CommandFailure::new(FailureKind::NotFound, message).with_hint(
                            "`larder find --summary` shows the IDs of threads; the ID of a \
                             message with --thread shows its thread",
                        ));
                    } else {
                        ids.push(operand);
                    }
                }
            }
        }
        if let Some(id) = ids.first()
            && matches!(context.format, OutputFormat::Html | OutputFormat::Mbox)
        {
            let message = format!("no message is named {:?}", sanitize_line(id));
            let hint = format!("--format {} shows messages only", context.format.name());
            return Err(CommandFailure::new(FailureKind::NotFound, message).with_hint(hint));
        }
        if context.format == OutputFormat::Html {
            let page = format_message_page("larder", &shown.articles);
            context.out.print_bytes(page.as_bytes())?;
        }
        if ids.is_empty() {
            return Ok(status);
        }
        let reader = context.open_reader()?;
        let user_locale = context.settings.user_locale.clone();
        let metas = match resolve_items(context, &ids) {
            Ok(metas) => metas,
            Err(failure) => {
                mail_store::print_unindexed_mail_after(context, &failure);
                return Err(failure);
            }
        };
        for (place, meta) in metas.iter().enumerate() {
            let bytes = reader.items().source_bytes(meta.row)?.unwrap_or_default();
            match context.format {
                OutputFormat::Raw => {
                    context.out.print_item_bytes(&bytes)?;
                }
                OutputFormat::Json => {
                    let mut object =
                        item_format::item_json(&reader, &user_locale.zone, meta, &bytes)?;
                    if meta.kind.is_exported_in_calendar() {
                        object["zones"] =
                            json!(calendar_item::zone_uses_json(&reader, meta, &bytes)?);
                    }
                    object["source_bytes"] = json!(String::from_utf8_lossy(&bytes));
                    context.out.print_json(&object)?;
                }
                _ => {
                    if place > 0 || shown.has_printed {
                        context.out.print_line("")?;
                    }
                    print_item_page(&mut context.out, &reader, &user_locale, meta, &bytes)?;
                }
            }
        }
        Ok(status)
    }
}

/// The messages that are printed, one after the other.
#[derive(Default)]
struct ShownMessages {
    is_converted: bool,
    /// A message or a commit was printed.
    has_printed: bool,
    /// The articles of the HTML page, which is printed at the end.
    articles: Vec<String>,
}

impl ShownMessages {
    /// Prints a message, with its number among those of the thread that is shown, and their number.
    /// In text, a line above it has them, and the ID by which other commands know the message.
    fn print(
        &mut self,
        context: &mut CommandContext,
        file: &MessageFile,
        place: Option<(&ThreadMember, (usize, usize))>,
    ) -> Result<(), CommandFailure> {
        if context.format == OutputFormat::Html {
            self.articles.push(message_page::html_article(context, file)?);
            return Ok(());
        }
        self.print_gap(context)?;
        if let Some((member, (number, count @ 2..))) = place
            && context.format == OutputFormat::Text
        {
            let id = member.listed.message.handle.to_string();
            let line = format!("{FAINT_STYLE}── {number} of {count}: {id:.8} ──{FAINT_STYLE:#}");
            context.out.print_line(line)?;
        }
        let place = place.map(|(member, _)| member_json(member));
        message_page::print_message(context, file, place, self.is_converted)
    }

    /// Prints the empty line between two pages of text.
    fn print_gap(&mut self, context: &mut CommandContext) -> Result<(), CommandFailure> {
        if std::mem::replace(&mut self.has_printed, true) && context.format == OutputFormat::Text {
            context.out.print_line("")?;
        }
        Ok(())
    }
}

/// The messages that an operand names.
enum FoundMessages {
    File(MessageFile),
    Thread(Box<FoundThread>),
    None,
}

/// Finds the messages that an operand names.
fn find_messages(
    context: &CommandContext,
    operand: &OsStr,
    is_thread: bool,
) -> Result<FoundMessages, CommandFailure> {
    let Some(operand) = operand.to_str() else {
        return Ok(FoundMessages::File(MessageFile::open(Path::new(operand))?));
    };
    if let Some(file) = MessageFile::open_operand(context, operand)? {
        return Ok(FoundMessages::File(file));
    }
    Ok(if is_thread || mail_store::is_thread_id(context, operand)? {
        let thread = mail_store::find_thread(context, operand)?;
        thread.map_or(FoundMessages::None, |one| FoundMessages::Thread(Box::new(one)))
    } else {
        let file = mail_store::open_message(context, operand)?;
        file.map_or(FoundMessages::None, FoundMessages::File)
    })
}

/// Returns the name of a message of a thread, and its place in it, as JSON.
fn member_json(member: &ThreadMember) -> Value {
    json!({
        "id": member.listed.message.handle.to_string(),
        "message_id": member.listed.message.uid,
        "thread_id": format_thread_id(member.listed.thread),
        "thread": place_json(&member.place, &member.path),
    })
}

/// Fields that other fields already contain; shown only on request.
const REDUNDANT_FIELDS: &[&str] = &[
    "name",
    "given_name",
    "family_name",
    "name_or_org",
    "address_home",
    "address_work",
    "address_other",
    "im",
    "uid",
    "version",
    "email_type",
    "phone_type",
    "custom_label",
    "related_type",
];

/// Returns whether the field is shown by default.
fn is_shown_by_default(field: &Field) -> bool {
    let numbered = field.name.ends_with(|c: char| c.is_ascii_digit());
    let typed_phone = field.field_type == FieldType::Phone && field.name != "phone";
    field.field_type != FieldType::Binary
        && !numbered
        && !typed_phone
        && !REDUNDANT_FIELDS.contains(&field.name)
}

/// Prints an item: each field with its values.
fn print_item_page(
    out: &mut OutputStream,
    reader: &Reader,
    user_locale: &UserLocale,
    meta: &ItemMeta,
    bytes: &[u8],
) -> Result<(), CommandFailure> {
    let letters = reader.items().unique_prefix_len(meta.handle)?;
    out.print_line(format!(
        "{STRONG_STYLE}{}{STRONG_STYLE:#}",
        crate::item_ids::name_from_bytes(bytes)
    ))?;
    let derived = if meta.derived_uid { "  (assigned by Larder)" } else { "" };
    let about = [
        ("id", format!("{:.letters$}", meta.handle)),
        ("collection", sanitize_line(&meta.collection)),
        ("uid", format!("{}{derived}", sanitize_line(&meta.uid))),
    ];
    let (values, pictures) = match meta.kind.list_layout() {
        ListLayout::Schedule => {
            (calendar_item::page_rows(reader, user_locale, meta, bytes)?, Vec::new())
        }
        ListLayout::Fields(_) => {
            field_page_rows(reader, meta, &reader.items().parse_source(meta, bytes))?
        }
    };
    let labels = about.iter().chain(&values).chain(&pictures).map(|(label, _)| label.len());
    let width = labels.max().unwrap_or_default();
    let faint = |(label, value): &(&str, String)| {
        format!("{FAINT_STYLE}{label:<width$}  {value}{FAINT_STYLE:#}")
    };
    for row in &about {
        out.print_line(faint(row))?;
    }
    for (label, value) in &values {
        out.print_line(format!("{label:<width$}  {value}").trim_end())?;
    }
    for row in &pictures {
        out.print_line(faint(row))?;
    }
    Ok(())
}

/// A line of the page: a label, which is empty if the line continues the one above, and a text.
type PageRow = (&'static str, String);

/// The prefix of properties that a merge kept from other cards.
const LARDER_PROPERTY_PREFIX: &str = "X-LARDER-";

/// Adds the values of a field, each of which may have several lines.
fn add_values(rows: &mut Vec<PageRow>, mut label: &'static str, values: Vec<String>) {
    for value in values {
        let mut lines = value.lines().map(sanitize_line);
        rows.push((std::mem::take(&mut label), lines.next().unwrap_or_default()));
        rows.extend(lines.map(|line| ("", line)));
    }
}

/// Returns the rows of the fields of an item, and those of its pictures, which are described.
fn field_page_rows(
    reader: &Reader,
    meta: &ItemMeta,
    source: &ParsedSource<'_>,
) -> Result<(Vec<PageRow>, Vec<PageRow>), CommandFailure> {
    let mut rows = Vec::new();
    for field in meta.kind.fields().iter().filter(|field| is_shown_by_default(field)) {
        let mut values = source.values(field);
        if field.name == "member" {
            for value in &mut values {
                if let Some(name) = member_name(reader, meta, value)? {
                    *value = name;
                }
            }
        }
        let labels = source.value_labels(field);
        if labels.len() >= values.len() {
            for (value, label) in values.iter_mut().zip(labels) {
                if let Some(label) = label {
                    *value = item_format::with_label(value, &label);
                }
            }
        }
        add_values(&mut rows, field.name, values);
    }
    let kept = source.properties().iter().filter_map(|property| {
        let name = property.name().get(..LARDER_PROPERTY_PREFIX.len())?;
        let merged_name = property.name().get(LARDER_PROPERTY_PREFIX.len()..)?;
        let shown = ["FN", "BDAY"].iter().any(|shown| merged_name.eq_ignore_ascii_case(shown));
        (name.eq_ignore_ascii_case(LARDER_PROPERTY_PREFIX) && !shown)
            .then(|| ("merged", format!("{merged_name} {}", sanitize_line(&property.text()))))
    });
    rows.extend(kept);
    let mut pictures = Vec::new();
    for field in meta.kind.fields().iter().filter(|row| row.field_type == FieldType::Binary) {
        let descriptions = source.properties().iter().filter(|one| one.has_name(field.name));
        let mut described: Vec<String> = descriptions.filter_map(describe_binary).collect();
        if described.is_empty() && source.first_value(field).is_some() {
            described.push("(`larder show --format raw` prints it)".into());
        }
        add_values(&mut pictures, field.name, described);
    }
    Ok((rows, pictures))
}

/// Returns the name of a member of a list, given its UID, if it is in the same collection.
fn member_name(
    reader: &Reader,
    list: &ItemMeta,
    member: &str,
) -> Result<Option<String>, CommandFailure> {
    const UUID_SCHEME: &str = "urn:uuid:";
    let other = match member.strip_prefix(UUID_SCHEME) {
        Some(uuid) => uuid.to_string(),
        None => format!("{UUID_SCHEME}{member}"),
    };
    for uid in [member, other.as_str()] {
        if let Some(found) = reader.items().find_series(&list.collection, uid)?.first() {
            return Ok(Some(crate::item_ids::display_name(reader, found)?));
        }
    }
    Ok(None)
}

//! A mail message as `larder show` prints it.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::mail_store::open_mail_reader;
use crate::message_file::MessageFile;
use crate::output::{
    FAINT_STYLE, STRONG_STYLE, colour_style, format_bytes, join_labels, sanitize_line,
};
use larder_format::message::{
    MailAddress, Message, MessageDate, MessageHeaders, MessagePart, MessageProblem, PartContent,
    PartRole,
};
use larder_present::description::describe_stamp;
use larder_present::message_html::{HeaderRows, MessageArticle, format_message_article};
use larder_query::{ThreadRow, UserLocale};
use larder_sync::IndexedConversion;
use serde_json::{Value, json};

/// The colours of quotations, by their depth.
const QUOTATION_COLOURS: [u8; 4] = [6, 2, 3, 5];

/// Prints the message in a file: its bytes, its fields as JSON, or its text, on request with the
/// texts of converted attachments. JSON has these texts, and gets the place of the message in its
/// thread.
pub(super) fn print_message(
    context: &mut CommandContext,
    file: &MessageFile,
    place: Option<Value>,
    is_converted: bool,
) -> Result<(), CommandFailure> {
    match context.format {
        OutputFormat::Raw => return Ok(context.out.print_item_bytes(&file.bytes)?),
        OutputFormat::Mbox => return Ok(context.out.print_bytes(&file.to_mbox())?),
        _ => {}
    }
    let message = file.parse()?;
    if context.format == OutputFormat::Json {
        let conversions = match find_conversions(context, &message) {
            // The message is in its file.
            Err(failure) if failure.is_of_store() => {
                let reason = failure.message();
                context.print_warning(format!("without the texts of attachments: {reason}"));
                Vec::new()
            }
            conversions => conversions?,
        };
        let mut object = message_json(file, &message, &conversions);
        if let (Some(object), Some(Value::Object(place))) = (object.as_object_mut(), place) {
            object.extend(place);
        }
        return Ok(context.out.print_json(&object)?);
    }
    for problem in &message.problems {
        // A guess is seldom wrong, and then it is seen.
        if !matches!(problem, MessageProblem::BadCharset { .. } | MessageProblem::HeaderNotAscii) {
            context.print_warning(format!("{}: {problem}", file.name()));
        }
    }
    print_page(file, context, &message)?;
    if is_converted { print_conversions(context, &message) } else { Ok(()) }
}

/// Returns the texts of the attachments for which a converter is set, with the places of the parts.
fn find_conversions(
    context: &CommandContext,
    message: &Message,
) -> Result<Vec<(usize, IndexedConversion)>, CommandFailure> {
    if context.converters.converters.is_empty() {
        return Ok(Vec::new());
    }
    let Some(index) = open_mail_reader(context)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (at, part) in message.attachments() {
        let text = context.converters.find_indexed_text(&index, part)?;
        found.extend(text.map(|text| (at, text)));
    }
    Ok(found)
}

/// Prints the texts of converted attachments, each with a heading that names the attachment and the
/// converter.
fn print_conversions(
    context: &mut CommandContext,
    message: &Message,
) -> Result<(), CommandFailure> {
    for (at, conversion) in find_conversions(context, message)? {
        let Some(part) = message.parts.get(at) else { continue };
        let name = part.file_name.as_deref().map_or_else(|| "(no name)".into(), sanitize_line);
        let program = conversion.command.first().map(|word| sanitize_line(word));
        let title = format!("{} {name}, text by {}", at + 1, program.unwrap_or_default());
        context.out.print_line(format!("\n{STRONG_STYLE}{title}{STRONG_STYLE:#}"))?;
        let (text, failure) = match &conversion.converted {
            Some(converted) => (&*converted.text, converted.failure.as_deref()),
            None => ("", Some("not converted yet: larder sync")),
        };
        print_text(context, text.trim_end())?;
        if let Some(failure) = failure {
            let failure = sanitize_line(failure);
            context.out.print_line(format!("{FAINT_STYLE}({failure}){FAINT_STYLE:#}"))?;
        } else if text.trim().is_empty() {
            context.out.print_line(format!("{FAINT_STYLE}(no text){FAINT_STYLE:#}"))?;
        }
    }
    Ok(())
}

/// Returns the message in a file as an article of an HTML page.
pub(super) fn html_article(
    context: &CommandContext,
    file: &MessageFile,
) -> Result<String, CommandFailure> {
    let message = file.parse()?;
    let mut rows = message_rows(&message, &context.settings.user_locale);
    let names = message.attachments().map(|(at, part)| match &part.file_name {
        Some(name) => format!("{} {}", at + 1, sanitize_line(name)),
        None => (at + 1).to_string(),
    });
    let names: Vec<String> = names.collect();
    rows.extend((!names.is_empty()).then(|| ("parts", names.join(", "))));
    let inner_rows = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Message(headers) => Some(header_rows(headers, &context.settings.user_locale)),
        _ => None,
    });
    let inner_rows = inner_rows.collect();
    Ok(format_message_article(&MessageArticle { message: &message, rows, inner_rows }))
}

/// Prints the page of a message: header, attachments, text.
fn print_page(
    file: &MessageFile,
    context: &mut CommandContext,
    message: &Message,
) -> Result<(), CommandFailure> {
    let user_locale = context.settings.user_locale.clone();
    let out = &mut context.out;
    let mut rows = message_rows(message, &user_locale);
    let mut flags: Vec<&str> = file.flags.iter().map(|flag| flag.name()).collect();
    flags.extend(message.is_signed().then_some("signed"));
    flags.extend(message.is_encrypted().then_some("encrypted"));
    rows.extend((!flags.is_empty()).then(|| ("flags", flags.join(" "))));
    let labels = join_labels(file.labels.iter().map(String::as_str));
    rows.extend((!labels.is_empty()).then_some(("labels", labels)));
    let mut label = "parts";
    for (at, part) in message.attachments() {
        rows.push((std::mem::take(&mut label), attachment_line(at, part)));
    }
    let title = message.headers.subject.as_deref().unwrap_or_default();
    let title = if title.is_empty() { "(no subject)".into() } else { sanitize_line(title) };
    out.print_line(format!("{STRONG_STYLE}{title}{STRONG_STYLE:#}"))?;
    let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or_default().max(5);
    for (label, value) in &rows {
        out.print_line(format!("{label:<width$}  {value}"))?;
    }
    out.print_line("")?;
    let mut has_text = false;
    for part in &message.parts {
        if let PartContent::Message(headers) = &part.content {
            print_inner_header(context, headers, &user_locale)?;
        } else if (part.role == PartRole::Body || part.is_report())
            && let Some(text) = part.plain_text()
        {
            has_text |= !text.trim().is_empty();
            if part.is_report() {
                let title = sanitize_line(&part.media_type);
                context.out.print_line(format!("\n{STRONG_STYLE}{title}{STRONG_STYLE:#}"))?;
            }
            print_text(context, text.trim_end())?;
        }
    }
    if !has_text {
        let why = if message.is_encrypted() { "(encrypted)" } else { "(no text)" };
        context.out.print_line(format!("{FAINT_STYLE}{why}{FAINT_STYLE:#}"))?;
    }
    Ok(())
}

/// Returns a message as JSON.
fn message_json(
    file: &MessageFile,
    message: &Message,
    conversions: &[(usize, IndexedConversion)],
) -> Value {
    let part = |(at, part): (usize, &MessagePart)| {
        let mut object = part_json(at, part);
        if let Some((_, one)) = conversions.iter().find(|(place, _)| *place == at) {
            let converted = one.converted.as_ref();
            object["converter"] = json!(one.command);
            object["converted_text"] = json!(converted.map(|one| &*one.text));
            object["conversion_failure"] = json!(converted.and_then(|one| one.failure.as_ref()));
        }
        object
    };
    let parts = message.parts.iter().enumerate().map(part);
    let problems = message.problems.iter().map(ToString::to_string);
    json!({
        "kind": "message",
        "file": file.path.as_ref().map(|path| path.to_string_lossy()),
        "flags": file.flags.iter().map(|flag| flag.name()).collect::<Vec<_>>(),
        "labels": file.labels,
        "signed": message.is_signed(),
        "encrypted": message.is_encrypted(),
        "headers": headers_json(&message.headers),
        "parts": parts.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
    })
}

/// Returns the place of a message in its thread as JSON.
pub(in crate::commands) fn place_json(place: &ThreadRow, path: &[u32]) -> Value {
    json!({
        "level": place.level,
        "root": place.root,
        "first_child": place.first_child,
        "last_child": place.last_child,
        "has_child": place.has_child,
        "orphan": place.orphan,
        "duplicate": place.duplicate,
        "thread_subject": place.thread_subject,
        "number": place.thread,
        "path": path,
    })
}

/// Returns the rows of a message. A Date that is no date is shown as it is in the header.
fn message_rows(message: &Message, user_locale: &UserLocale) -> HeaderRows {
    let mut rows = header_rows(&message.headers, user_locale);
    let written = message.header_fields.iter().find(|(name, _)| *name == "date");
    if let Some((_, text)) = written.filter(|(_, text)| !text.is_empty())
        && message.headers.date.is_none()
    {
        rows.push(("date", sanitize_line(text)));
    }
    rows
}

/// Returns the fields of a header as rows of the page, without the subject.
fn header_rows(headers: &MessageHeaders, user_locale: &UserLocale) -> HeaderRows {
    let joined = |addresses: &[MailAddress]| {
        let shown = addresses.iter().map(|one| sanitize_line(&one.to_string()));
        shown.collect::<Vec<_>>().join(", ")
    };
    let rows = [
        ("from", joined(&headers.from)),
        ("to", joined(&headers.to)),
        ("cc", joined(&headers.cc)),
        ("bcc", joined(&headers.bcc)),
        ("date", headers.date.map(|date| local_date(date, user_locale)).unwrap_or_default()),
        ("list", headers.list_id.as_deref().map(sanitize_line).unwrap_or_default()),
    ];
    rows.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// Returns a date in the zone and the language of the user.
pub(super) fn local_date(date: MessageDate, user_locale: &UserLocale) -> String {
    let instant = jiff::Timestamp::from_second(date.seconds);
    let stamp = instant.map(|instant| instant.strftime("%Y%m%dT%H%M%SZ").to_string());
    stamp.map_or_else(
        |_| String::new(),
        |stamp| describe_stamp(&stamp, &user_locale.zone, &user_locale.language),
    )
}

/// Returns a date as RFC 3339, in the zone of the sender.
fn sender_date(date: MessageDate) -> Option<String> {
    let offset = jiff::tz::Offset::from_seconds(date.offset_minutes * 60).ok()?;
    let instant = jiff::Timestamp::from_second(date.seconds).ok()?;
    let civil = instant.to_zoned(jiff::tz::TimeZone::fixed(offset));
    Some(civil.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

/// Returns the line of an attachment: its number, its name, its type and its size.
fn attachment_line(at: usize, part: &MessagePart) -> String {
    let name = match (&part.file_name, &part.content) {
        (Some(name), _) => sanitize_line(name),
        (None, PartContent::Message(headers)) => {
            sanitize_line(headers.subject.as_deref().unwrap_or("(no subject)"))
        }
        (None, _) => "(no name)".into(),
    };
    let size = part.bytes().map(|bytes| format!(", {}", format_bytes(bytes.len() as u64)));
    let about = format!("({}{})", sanitize_line(&part.media_type), size.unwrap_or_default());
    format!("{} {name} {FAINT_STYLE}{about}{FAINT_STYLE:#}", at + 1)
}

/// Prints the header of a message in the message.
fn print_inner_header(
    context: &mut CommandContext,
    headers: &MessageHeaders,
    user_locale: &UserLocale,
) -> Result<(), CommandFailure> {
    let title = sanitize_line(headers.subject.as_deref().unwrap_or("(no subject)"));
    context.out.print_line("")?;
    context.out.print_line(format!("{STRONG_STYLE}Message: {title}{STRONG_STYLE:#}"))?;
    for (label, value) in header_rows(headers, user_locale) {
        context.out.print_line(format!("{FAINT_STYLE}{label:<5}  {value}{FAINT_STYLE:#}"))?;
    }
    Ok(context.out.print_line("")?)
}

/// Prints the text of a part. Quotations have colours; signatures are faint.
fn print_text(context: &mut CommandContext, text: &str) -> Result<(), CommandFailure> {
    let mut is_signature = false;
    for line in text.lines() {
        is_signature |= line == "-- ";
        let depth = line.chars().filter(|c| *c != ' ').take_while(|c| *c == '>').count();
        let shown = sanitize_line(line.trim_end());
        context.out.print_line(match depth.checked_sub(1) {
            Some(depth) => {
                let number = QUOTATION_COLOURS[depth % QUOTATION_COLOURS.len()];
                let style = colour_style(number);
                format!("{style}{shown}{style:#}")
            }
            None if is_signature => format!("{FAINT_STYLE}{shown}{FAINT_STYLE:#}"),
            None => shown,
        })?;
    }
    Ok(())
}

fn headers_json(headers: &MessageHeaders) -> Value {
    let array = |addresses: &[MailAddress]| -> Value {
        let object = |one: &MailAddress| json!({ "name": one.name, "address": one.address });
        addresses.iter().map(object).collect()
    };
    json!({
        "subject": headers.subject,
        "from": array(&headers.from),
        "reply_to": array(&headers.reply_to),
        "to": array(&headers.to),
        "cc": array(&headers.cc),
        "bcc": array(&headers.bcc),
        "date": headers.date.and_then(sender_date),
        "timestamp": headers.date.map(|date| date.seconds),
        "message_id": headers.message_id,
        "in_reply_to": headers.in_reply_to,
        "references": headers.references,
        "list_id": headers.list_id,
    })
}

/// Returns a part as JSON: the text of texts, the size of all.
fn part_json(at: usize, part: &MessagePart) -> Value {
    let role = match part.role {
        PartRole::Body => "body",
        PartRole::AlternativeBody => "alternative",
        PartRole::Attachment => "attachment",
        PartRole::Container => "container",
    };
    let mut object = json!({
        "number": at + 1,
        "depth": part.depth,
        "media_type": part.media_type,
        "role": role,
        "file_name": part.file_name,
        "content_id": part.content_id,
        "size": part.bytes().map(<[u8]>::len),
    });
    match &part.content {
        PartContent::Text(text) => object["text"] = json!(text),
        PartContent::Html(html) => object["html"] = json!(html),
        PartContent::Message(headers) => object["headers"] = headers_json(headers),
        PartContent::Binary(_) | PartContent::Multipart => {}
    }
    object
}

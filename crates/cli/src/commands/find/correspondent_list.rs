//! The output of `larder find --correspondents`: the people of the mail.

use super::print_count;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::mail_store::{list_sources, require_mail_reader};
use crate::output::{FAINT_STYLE, format_count, sanitize_line};
use crate::source_names::print_index_notes;
use crate::table::{MIN_NAME_WIDTH, pad_columns, style_cells};
use anstyle::Style;
use larder_format::message::MessageDate;
use larder_present::{AddressEntry, AddressFormat, format_addresses};
use larder_query::{
    AddressOwner, Correspondent, CorrespondentQuery, CorrespondentText, MailQueryContext,
    find_contacts_by_address, find_correspondents,
};
use larder_store::{DataDirectory, Reader};
use larder_sync::SourceType;
use larder_time::civil::Instant;
use serde_json::json;
use std::collections::HashMap;

/// The options of a list of correspondents.
#[derive(Debug)]
pub(super) struct CorrespondentListOptions<'a> {
    pub(super) query: String,
    pub(super) limit: Option<usize>,
    pub(super) is_count: bool,
    pub(super) is_personal: bool,
    pub(super) after: Option<&'a str>,
}

/// Prints the correspondents that match, or their number.
pub(super) fn print_correspondents(
    context: &mut CommandContext,
    options: &CorrespondentListOptions<'_>,
) -> Result<CommandStatus, CommandFailure> {
    let user_locale = &context.settings.user_locale;
    let query = CorrespondentQuery {
        text: CorrespondentText::parse(&options.query)?,
        is_personal: options.is_personal,
        after: options.after.map(|text| parse_date(context, text)).transpose()?,
        limit: options.limit.filter(|_| !options.is_count),
        excluded_labels: context.excluded_labels.clone(),
    };
    let reader = require_mail_reader(context)?;
    let sources = list_sources(context)?;
    print_index_notes(context, SourceType::Mail, &sources, Some(&reader), None)?;
    let found = find_correspondents(&reader.mail()?, &query, user_locale.now.seconds())?;
    if options.is_count {
        print_count(context, found.len() as u64)?;
    } else {
        print_found(context, &found)?;
    }
    Ok(if found.is_empty() { CommandStatus::NothingFound } else { CommandStatus::Done })
}

fn parse_date(context: &CommandContext, text: &str) -> Result<i64, CommandFailure> {
    let query_context = MailQueryContext::from(&context.settings);
    query_context.parse_time(text).ok_or_else(|| {
        CommandFailure::new(FailureKind::Usage, format!("unknown date {text:?} in --after"))
            .with_hint("write it as in date:, such as 2026-03-06, 6w or @1772755200")
    })
}

fn print_found(
    context: &mut CommandContext,
    found: &[Correspondent],
) -> Result<(), CommandFailure> {
    let directory = DataDirectory::new(&context.dir);
    let contacts = match directory.has_store() && !found.is_empty() {
        true => Some(context.open_reader()?),
        false => None,
    };
    let owners = match &contacts {
        Some(reader) => {
            find_contacts_by_address(reader, found.iter().map(|one| one.address.as_str()))?
        }
        None => HashMap::new(),
    };
    let owned = found.iter().map(|one| (one, owners.get(&one.address)));
    match (context.format, address_format(context.format)) {
        (_, Some(format)) => {
            let entries: Vec<AddressEntry> =
                owned.map(|(one, owner)| address_entry(context, one, owner)).collect();
            let today = day(context, context.settings.user_locale.now);
            let text = format_addresses(format, &entries, &today);
            Ok(context.out.print_bytes(text.as_bytes())?)
        }
        (OutputFormat::Json, _) => owned
            .map(|(one, owner)| correspondent_json(one, owner))
            .try_for_each(|object| Ok(context.out.print_json(&object)?)),
        _ if found.is_empty() => {
            context.print_note("no results");
            Ok(())
        }
        _ => {
            let mut rows = Vec::with_capacity(found.len());
            for (one, owner) in owned {
                rows.push(list_cells(context, contacts.as_ref(), one, owner)?);
            }
            print_rows(context, &rows)
        }
    }
}

/// Returns the format of other programs that the user chose.
fn address_format(format: OutputFormat) -> Option<AddressFormat> {
    Some(match format {
        OutputFormat::Mutt => AddressFormat::Mutt,
        OutputFormat::MuttAlias => AddressFormat::MuttAlias,
        OutputFormat::Csv => AddressFormat::Csv,
        OutputFormat::Org => AddressFormat::Org,
        OutputFormat::Bbdb => AddressFormat::Bbdb,
        OutputFormat::Vcard => AddressFormat::Vcard,
        OutputFormat::Text
        | OutputFormat::Json
        | OutputFormat::Raw
        | OutputFormat::Html
        | OutputFormat::Mbox => return None,
    })
}

/// Returns the name in the address book, else that of the newest message.
fn best_name<'a>(one: &'a Correspondent, owner: Option<&'a AddressOwner>) -> &'a str {
    owner.map(|owner| owner.name.as_str()).filter(|name| !name.is_empty()).unwrap_or(&one.name)
}

fn address_entry(
    context: &CommandContext,
    one: &Correspondent,
    owner: Option<&AddressOwner>,
) -> AddressEntry {
    let last_seen = last_day(context, one);
    AddressEntry {
        address: one.address.clone(),
        name: best_name(one, owner).to_string(),
        note: format!("{}, {last_seen}", format_count(one.message_count.into(), "message")),
        last_seen,
    }
}

fn correspondent_json(one: &Correspondent, owner: Option<&AddressOwner>) -> serde_json::Value {
    let date = MessageDate { seconds: one.last_seen.into(), offset_minutes: 0 };
    let name = best_name(one, owner);
    json!({
        "kind": "correspondent",
        "address": one.address,
        "name": (!name.is_empty()).then_some(name),
        "message_count": one.message_count,
        "last_seen": date.to_rfc3339(),
        "timestamp": one.last_seen,
        "is_personal": one.is_personal,
        "contact": owner.map(|owner| owner.handle.to_string()),
    })
}

/// Returns the cells of a row: the ID of the contact, name, address, messages, and the last day.
fn list_cells(
    context: &CommandContext,
    contacts: Option<&Reader>,
    one: &Correspondent,
    owner: Option<&AddressOwner>,
) -> Result<[String; 5], CommandFailure> {
    let handle = match (contacts, owner) {
        (Some(reader), Some(owner)) => {
            let letters = reader.items().unique_prefix_len(owner.handle)?;
            format!("{:.letters$}", owner.handle)
        }
        _ => String::new(),
    };
    let name = sanitize_line(best_name(one, owner));
    let address = sanitize_line(&one.address);
    Ok([address, name, one.message_count.to_string(), last_day(context, one), handle])
}

fn print_rows(context: &mut CommandContext, rows: &[[String; 5]]) -> Result<(), CommandFailure> {
    let width = context.out.line_width();
    // One long address must not take the width of all names.
    let address_limit = if width.is_some() { 2 * MIN_NAME_WIDTH } else { 40 };
    let limits = [address_limit, 30, 6, 10, 0];
    let fixed = [false, false, true, true, true];
    let padded = pad_columns(rows, limits, width, 0, fixed);
    for [address, name, count, last_seen, handle] in padded {
        let cells = [
            (Style::new(), address.as_str()),
            (Style::new(), name.as_str()),
            (FAINT_STYLE, count.as_str()),
            (FAINT_STYLE, last_seen.as_str()),
            (FAINT_STYLE, handle.as_str()),
        ];
        context.out.print_line(style_cells(&cells).trim_end())?;
    }
    Ok(())
}

/// Returns the day on which a correspondent was last met, in the user's time zone.
fn last_day(context: &CommandContext, one: &Correspondent) -> String {
    day(context, Instant::from_seconds_clamped(one.last_seen.into()))
}

fn day(context: &CommandContext, instant: Instant) -> String {
    let date = context.settings.user_locale.zone.to_civil(instant).date();
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

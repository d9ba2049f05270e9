//! The output of `larder find --duplicates`: groups of contacts that may be one person.

use super::print_count;
use crate::args::OutputFormat;
use crate::commands::show::item_format::{self, OutputColumn};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::output::{STRONG_STYLE, sanitize_line};
use larder_query::{DuplicateGroup, DuplicateReason, SearchRequest};
use larder_store::Reader;
use serde_json::json;

/// Prints the groups of likely duplicates, or their number.
pub(super) fn print_duplicates(
    context: &mut CommandContext,
    reader: &Reader,
    request: &SearchRequest,
    count: bool,
    columns: Option<&[OutputColumn]>,
) -> Result<CommandStatus, CommandFailure> {
    let found = larder_query::find_duplicates(reader, request, &context.settings)?;
    let groups = &found.groups;
    let code = if groups.is_empty() { CommandStatus::NothingFound } else { CommandStatus::Done };
    if count {
        print_count(context, groups.len() as u64)?;
        found.check_complete()?;
        return Ok(code);
    }
    for (at, group) in groups.iter().enumerate() {
        match context.format {
            OutputFormat::Json => group_json(context, reader, group, columns)?,
            _ => {
                if at > 0 {
                    context.out.print_line("")?;
                }
                print_groups(context, reader, group, columns)?;
            }
        }
    }
    if context.format == OutputFormat::Text {
        context.out.flush()?;
        context.print_note(match groups.is_empty() {
            true => "no likely duplicates",
            false => "merge duplicates into the first one with: larder merge ID ID",
        });
    }
    found.check_complete()?;
    Ok(code)
}

fn group_json(
    context: &mut CommandContext,
    reader: &Reader,
    group: &DuplicateGroup,
    columns: Option<&[OutputColumn]>,
) -> Result<(), CommandFailure> {
    let mut items = Vec::new();
    let (local, mut failed) = (&context.settings.user_locale.zone, None);
    match columns {
        Some(columns) => {
            let fields = OutputColumn::fields_of_columns(columns);
            group.result_set().for_each_projected(reader, &fields, &mut |meta, item| {
                match item_format::item_columns_json(reader, local, meta, item, columns) {
                    Ok(object) => items.push(object),
                    Err(failure) => failed = Some(failure),
                }
                failed.is_none()
            })?;
        }
        None => group.result_set().for_each(reader, &mut |meta, bytes| {
            match item_format::item_json(reader, local, meta, bytes) {
                Ok(object) => items.push(object),
                Err(failure) => failed = Some(failure),
            }
            failed.is_none()
        })?,
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    let reason = |reason: &DuplicateReason| json!({ "field": reason.field, "value": reason.value });
    let reasons: Vec<_> = group.reasons.iter().map(reason).collect();
    Ok(context.out.print_json(&json!({ "reasons": reasons, "items": items }))?)
}

fn print_groups(
    context: &mut CommandContext,
    reader: &Reader,
    group: &DuplicateGroup,
    columns: Option<&[OutputColumn]>,
) -> Result<(), CommandFailure> {
    let reasons: Vec<String> = group.reasons.iter().map(reason_text).collect();
    context.out.print_line(format!(
        "{STRONG_STYLE}same {}{STRONG_STYLE:#}",
        sanitize_line(&reasons.join("; "))
    ))?;
    let columns: Option<Vec<Option<OutputColumn>>> =
        columns.map(|columns| columns.iter().copied().map(Some).collect());
    super::print_answer(context, reader, &group.result_set(), columns.as_deref(), false)
}

/// Returns a reason as text.
fn reason_text(reason: &DuplicateReason) -> String {
    let field = match reason.field {
        "email" => "e-mail",
        "full_name" => "name",
        field => field,
    };
    format!("{field}: {}", reason.value)
}

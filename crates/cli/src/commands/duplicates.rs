use super::find::counted;
use super::item::{self, Column};
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::{STRONG, plain};
use larder_query::{Find, Group, Reason};
use larder_store::Reader;
use serde_json::json;

/// What `larder find --duplicates` prints: the groups, or how many there are.
pub(super) fn run(
    context: &mut Context,
    reader: &Reader,
    find: &Find,
    count: bool,
    columns: Option<&[Column]>,
) -> Result<Code, Failure> {
    let groups = larder_query::duplicates(reader, find, &context.settings)?;
    let code = if groups.is_empty() { Code::NothingFound } else { Code::Done };
    if count {
        counted(context, groups.len() as u64)?;
        return Ok(code);
    }
    for (at, group) in groups.iter().enumerate() {
        match context.format {
            Format::Json => object(context, reader, group, columns)?,
            _ => {
                if at > 0 {
                    context.out.line("")?;
                }
                print(context, reader, group, columns)?;
            }
        }
    }
    if context.format == Format::Text {
        context.out.flush()?;
        context.note(match groups.is_empty() {
            true => "no two seem to be the same",
            false => "larder merge ID ID joins those that are the same; the first one stays",
        });
    }
    Ok(code)
}

fn object(
    context: &mut Context,
    reader: &Reader,
    group: &Group,
    columns: Option<&[Column]>,
) -> Result<(), Failure> {
    let mut items = Vec::new();
    let (local, mut failed) = (&context.settings.asker.local, None);
    match columns {
        Some(columns) => {
            let fields = Column::fields(columns);
            group.items().fields(reader, &fields, &mut |head, of| {
                match item::partial_json(reader, local, head, of, columns) {
                    Ok(object) => items.push(object),
                    Err(failure) => failed = Some(failure),
                }
                failed.is_none()
            })?;
        }
        None => group.items().each(reader, &mut |head, bytes| {
            items.push(item::json(head, bytes));
            true
        })?,
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    let reason = |reason: &Reason| json!({ "field": reason.field, "value": reason.value });
    let reasons: Vec<_> = group.reasons.iter().map(reason).collect();
    Ok(context.out.json(&json!({ "reasons": reasons, "items": items }))?)
}

fn print(
    context: &mut Context,
    reader: &Reader,
    group: &Group,
    columns: Option<&[Column]>,
) -> Result<(), Failure> {
    let reasons: Vec<String> = group.reasons.iter().map(words).collect();
    context.out.line(format!("{STRONG}same {}{STRONG:#}", plain(&reasons.join("; "))))?;
    super::find::print(context, reader, &group.items(), columns)
}

/// A reason for people.
fn words(reason: &Reason) -> String {
    let field = match reason.field {
        "email" => "e-mail",
        "full_name" => "name",
        field => field,
    };
    format!("{field}: {}", reason.value)
}

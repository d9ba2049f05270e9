use super::find::counted;
use super::item;
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::{STRONG, plain};
use larder_format::field::Field;
use larder_query::{Find, Group, Reason};
use larder_store::Reader;
use serde_json::json;

/// What `larder find --duplicates` prints: the groups, or how many there are.
pub(super) fn run(
    context: &mut Context,
    reader: &Reader,
    find: &Find,
    count: bool,
    fields: Option<&[&'static Field]>,
) -> Result<Code, Failure> {
    let groups = larder_query::duplicates(reader, find, &context.settings)?;
    let code = if groups.is_empty() { Code::NothingFound } else { Code::Done };
    if count {
        counted(context, groups.len())?;
        return Ok(code);
    }
    for (at, group) in groups.iter().enumerate() {
        match context.format {
            Format::Json => object(context, reader, group, fields)?,
            _ => {
                if at > 0 {
                    context.out.line("")?;
                }
                print(context, reader, group, fields)?;
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
    fields: Option<&[&'static Field]>,
) -> Result<(), Failure> {
    let mut items = Vec::new();
    match fields {
        Some(fields) => group.items().fields(reader, fields, &mut |head, of| {
            items.push(item::partial_json(head, of, fields));
            true
        })?,
        None => group.items().each(reader, &mut |head, bytes| {
            items.push(item::json(head, bytes));
            true
        })?,
    }
    let reason = |reason: &Reason| json!({ "field": reason.field, "value": reason.value });
    let reasons: Vec<_> = group.reasons.iter().map(reason).collect();
    Ok(context.out.json(&json!({ "reasons": reasons, "items": items }))?)
}

fn print(
    context: &mut Context,
    reader: &Reader,
    group: &Group,
    fields: Option<&[&'static Field]>,
) -> Result<(), Failure> {
    let reasons: Vec<String> = group.reasons.iter().map(words).collect();
    context.out.line(format!("{STRONG}same {}{STRONG:#}", plain(&reasons.join("; "))))?;
    super::find::print(context, reader, &group.items(), fields)
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

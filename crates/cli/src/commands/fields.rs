use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::STRONG;
use crate::table::shorten;
use larder_format::field::{CALENDAR_FIELDS, FIELDS, Field};
use serde_json::json;

/// List the fields that can be searched, sorted by and printed
#[derive(Debug, clap::Args)]
pub(crate) struct Fields {}

/// The tables, and what has such fields: in a heading, and as a program is told.
const TABLES: [(&str, &str, &[Field]); 2] =
    [("Contacts", "contact", FIELDS), ("Events, tasks and memos", "calendar", CALENDAR_FIELDS)];

/// The tables of fields, for the manual of `find`.
pub(super) fn manual() -> String {
    let row = |field: &Field| format!("  {:<20}  {}", field.name, field.help);
    let table = |(heading, _, fields): (&str, &str, &[Field])| {
        let rows: Vec<String> = fields.iter().map(row).collect();
        format!("Fields of {}:\n{}", heading.to_lowercase(), rows.join("\n"))
    };
    TABLES.map(table).join("\n\n")
}

impl Fields {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let Fields {} = self;
        let width = context.out.width().map(|width| width.saturating_sub(22).max(8));
        for (place, (heading, of, fields)) in TABLES.into_iter().enumerate() {
            if context.format == Format::Text {
                let gap = if place > 0 { "\n" } else { "" };
                context.out.line(format!("{gap}{heading}:"))?;
            }
            for field in fields {
                print(context, of, field, width)?;
            }
        }
        Ok(Code::Done)
    }
}

fn print(
    context: &mut Context,
    of: &str,
    field: &Field,
    width: Option<usize>,
) -> Result<(), Failure> {
    if context.format == Format::Json {
        context.out.json(&json!({
            "name": field.name, "of": of, "aliases": field.aliases,
            "kind": format!("{:?}", field.kind).to_lowercase(), "multi": field.multi,
            "words": field.words, "indexed": field.indexed, "help": field.help,
        }))?;
        return Ok(());
    }
    let mut text = field.help.to_string();
    if field.words {
        text.push_str(" (free words look here)");
    }
    if !field.indexed {
        text.push_str(" (not indexed)");
    }
    let text = width.map_or_else(|| text.clone(), |width| shorten(&text, width));
    let name = field.name;
    context.out.line(format!("{STRONG}{name:<20}{STRONG:#}  {text}"))?;
    Ok(())
}

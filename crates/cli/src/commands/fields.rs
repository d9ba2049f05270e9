use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::STRONG;
use crate::table::shorten;
use larder_format::field::{FIELDS, Field};
use serde_json::json;

/// List the fields that can be searched, sorted by and printed
#[derive(Debug, clap::Args)]
pub(crate) struct Fields {}

/// The table of fields, for the manual of `find`.
pub(super) fn manual() -> String {
    let row = |field: &Field| format!("  {:<20}  {}", field.name, field.help);
    let rows: Vec<String> = FIELDS.iter().map(row).collect();
    format!("Fields:\n{}", rows.join("\n"))
}

impl Fields {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let Fields {} = self;
        let width = context.out.width().map(|width| width.saturating_sub(22).max(8));
        for field in FIELDS {
            if context.format == Format::Json {
                context.out.json(&json!({
                    "name": field.name, "aliases": field.aliases, "kind": format!("{:?}", field.kind).to_lowercase(),
                    "multi": field.multi, "words": field.words, "indexed": field.indexed, "help": field.help,
                }))?;
                continue;
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
        }
        Ok(Code::Done)
    }
}

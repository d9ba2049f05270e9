use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::{FAINT, STRONG};
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
        for field in FIELDS {
            if context.format == Format::Json {
                context.out.json(&json!({
                    "name": field.name, "aliases": field.aliases, "kind": format!("{:?}", field.kind).to_lowercase(),
                    "multi": field.multi, "words": field.words, "indexed": field.indexed, "help": field.help,
                }))?;
                continue;
            }
            let mut marks = Vec::new();
            if field.words {
                marks.push("free words look here");
            }
            if !field.indexed {
                marks.push("not indexed");
            }
            let marks =
                if marks.is_empty() { String::new() } else { format!("  ({})", marks.join(", ")) };
            let (name, help) = (field.name, field.help);
            context
                .out
                .line(format!("{STRONG}{name:<20}{STRONG:#}  {help}{FAINT}{marks}{FAINT:#}"))?;
        }
        Ok(Code::Done)
    }
}

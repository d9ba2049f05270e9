//! `larder fields`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::output::STRONG_STYLE;
use crate::table::shorten_to_width;
use larder_format::collection_type::CollectionType;
use larder_format::field::Field;
use larder_query::MAIL_QUERY_FIELDS;
use serde_json::json;

/// List the fields for searching, sorting and printing
#[derive(Debug, clap::Args)]
pub(crate) struct FieldsArgs {}

impl FieldsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let FieldsArgs {} = self;
        let width = context.out.line_width().map(|width| width.saturating_sub(22).max(8));
        for row in CollectionType::all_listed().map(CollectionType::row) {
            if context.format == OutputFormat::Text {
                let gap = if row.collection_type.index() > 0 { "\n" } else { "" };
                let (first, rest) = row.items.split_at(1);
                context.out.print_line(format!("{gap}{}{rest}:", first.to_uppercase()))?;
            }
            for field in row.fields {
                print_field(context, row.name, field, width)?;
            }
        }
        print_query_fields(context, width)?;
        Ok(CommandStatus::Done)
    }
}

/// Prints the fields of queries for messages, which test more than lists and JSON show.
fn print_query_fields(
    context: &mut CommandContext,
    width: Option<usize>,
) -> Result<(), CommandFailure> {
    let is_text = context.format == OutputFormat::Text;
    if is_text {
        context.out.print_line("\nIn queries for messages:")?;
    }
    for (names, help) in MAIL_QUERY_FIELDS {
        let Some((name, aliases)) = names.split_first() else { continue };
        if !is_text {
            context.out.print_json(&json!({
                "name": name, "collection_type": null, "aliases": aliases,
                "type": "query", "multi": false, "default_search": false, "indexed": true,
                "help": help,
            }))?;
            continue;
        }
        let mut text = (*help).to_string();
        if !aliases.is_empty() {
            text.push_str(&format!(" (also {})", aliases.join(", ")));
        }
        let text = width.map_or_else(|| text.clone(), |width| shorten_to_width(&text, width));
        context.out.print_line(format!("{STRONG_STYLE}{name:<20}{STRONG_STYLE:#}  {text}"))?;
    }
    Ok(())
}

fn print_field(
    context: &mut CommandContext,
    collection_type: &str,
    field: &Field,
    width: Option<usize>,
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "name": field.name, "collection_type": collection_type, "aliases": field.aliases,
            "type": format!("{:?}", field.field_type).to_lowercase(), "multi": field.is_multi_valued,
            "default_search": larder_query::is_bare_word_field(field), "indexed": field.is_indexed, "help": field.help,
        }))?;
        return Ok(());
    }
    let mut text = field.help.to_string();
    if larder_query::is_bare_word_field(field) {
        text.push_str(" (searched by default)");
    }
    if !field.is_indexed {
        text.push_str(" (not indexed)");
    }
    let text = width.map_or_else(|| text.clone(), |width| shorten_to_width(&text, width));
    let name = field.name;
    context.out.print_line(format!("{STRONG_STYLE}{name:<20}{STRONG_STYLE:#}  {text}"))?;
    Ok(())
}

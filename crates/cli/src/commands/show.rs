use super::{calendar_item, item_format};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::item_ids::resolve_items;
use larder_store::CollectionType;
use serde_json::json;

/// Show items: on a page of their own, as JSON, or (--format raw) as they came
///
/// ID is what `larder find` prints in front of an item, or any beginning of it that no other item
/// has; or `uid:TEXT`; or `COLLECTION/UID`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Which items
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Print them as they came: the same as --format raw
    #[arg(long)]
    raw: bool,
}

impl ShowArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if self.raw {
            context.format = OutputFormat::Raw;
        }
        let reader = context.open_reader()?;
        let asker = context.settings.user_locale.clone();
        let heads = resolve_items(context, &self.ids)?;
        for (place, head) in heads.iter().enumerate() {
            let bytes = reader.source_bytes(head.row)?.unwrap_or_default();
            match context.format {
                OutputFormat::Raw => {
                    item_format::print_raw(&mut context.out, &bytes, place + 1 == heads.len())?;
                }
                OutputFormat::Json => {
                    let mut object = item_format::item_json(&reader, &asker.zone, head, &bytes)?;
                    if head.kind.collection_type() == CollectionType::Calendar {
                        object["zones"] =
                            json!(calendar_item::zone_uses_json(&reader, head, &bytes)?);
                    }
                    object["source"] = json!(String::from_utf8_lossy(&bytes));
                    context.out.print_json(&object)?;
                }
                OutputFormat::Text => {
                    if place > 0 {
                        context.out.print_line("")?;
                    }
                    item_format::print_item_page(&mut context.out, &reader, &asker, head, &bytes)?;
                }
            }
        }
        Ok(CommandStatus::Done)
    }
}

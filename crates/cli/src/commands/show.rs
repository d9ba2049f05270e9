use super::{component, item};
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ids::resolve_all;
use larder_store::Family;
use serde_json::json;

/// Show items: on a page of their own, as JSON, or (--format raw) as they came
///
/// ID is what `larder find` prints in front of an item, or any beginning of it that no other item has;
/// or `uid:TEXT`; or `COLLECTION/UID`.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Which items
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Print them as they came: the same as --format raw
    #[arg(long)]
    raw: bool,
}

impl Show {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        if self.raw {
            context.format = Format::Raw;
        }
        let reader = context.reader()?;
        let asker = context.settings.asker.clone();
        let heads = resolve_all(context, &self.ids)?;
        for (place, head) in heads.iter().enumerate() {
            let bytes = reader.source(head.row)?.unwrap_or_default();
            match context.format {
                Format::Raw => item::raw(&mut context.out, &bytes, place + 1 == heads.len())?,
                Format::Json => {
                    let mut object = item::whole(&reader, &asker.local, head, &bytes)?;
                    if head.kind.family() == Family::Calendar {
                        object["zones"] = json!(component::zones_json(&reader, head, &bytes)?);
                    }
                    object["source"] = json!(String::from_utf8_lossy(&bytes));
                    context.out.json(&object)?;
                }
                Format::Text => {
                    if place > 0 {
                        context.out.line("")?;
                    }
                    item::page(&mut context.out, &reader, &asker, head, &bytes)?;
                }
            }
        }
        Ok(Code::Done)
    }
}

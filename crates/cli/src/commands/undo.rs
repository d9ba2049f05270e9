use super::log::difference;
use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::name_in;
use crate::output::{GONE, NEW, STRONG, count};
use serde_json::json;

/// Put back what an operation changed
///
/// Without a number it is the newest operation that is not undone yet; `larder log` lists them. An undo is
/// an operation itself, and can be undone. Where something was changed since, nothing is undone and both
/// versions are shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Undo {
    /// The number of the operation
    operation: Option<i64>,
}

impl Undo {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        let id = match self.operation {
            Some(id) => id,
            None => match reader.last_operation()? {
                Some(row) => row.id,
                None => {
                    return Err(Failure::new(Kind::NotFound, "there is nothing to undo")
                        .hint("larder log lists what was done"));
                }
            },
        };
        let mut store = context.store()?;
        let undo = store.undo(id, now())?;
        // A summary may have come back.
        store.refresh()?;
        if !undo.conflicts.is_empty() {
            return refuse(context, id, &undo);
        }
        let items = count(undo.items, "item");
        let by = undo.operation.unwrap_or_default();
        match context.format {
            Format::Json => {
                context.out.json(&json!({ "undone": id, "operation": by, "items": undo.items }))?;
            }
            _ if undo.items == 0 => {
                context
                    .out
                    .line(format!("operation {id} is undone; larder undo {by} does it again"))?;
            }
            _ => context.out.line(format!(
                "operation {id} is undone, {items} as before it; larder undo {by} does it again"
            ))?,
        }
        Ok(Code::Done)
    }
}

/// Shows what the operation left and what is there now.
fn refuse(context: &mut Context, id: i64, undo: &larder_store::Undo) -> Result<Code, Failure> {
    for conflict in &undo.conflicts {
        let left = conflict.left.as_deref().unwrap_or_default();
        let now = conflict.now.as_deref().unwrap_or_default();
        let name = name_in(if now.is_empty() { left } else { now });
        let handle = conflict.handle;
        if context.format == Format::Json {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (left, now) =
                (conflict.left.as_deref().map(text), conflict.now.as_deref().map(text));
            context
                .out
                .json(&json!({ "conflict": handle.to_string(), "left": left, "now": now }))?;
            continue;
        }
        context.out.line(format!("{STRONG}{name}{STRONG:#}  {handle:.8}"))?;
        context.out.line(format!(
            "{GONE}- as operation {id} left it{GONE:#}  {NEW}+ as it is now{NEW:#}"
        ))?;
        difference(&mut context.out, left, now)?;
    }
    context.out.flush()?;
    let items = count(undo.conflicts.len() as u64, "item");
    if undo.operation.is_some() {
        let back = count(undo.items, "item");
        let message = format!(
            "operation {id} was undone in part: {back} put back, {items} changed meanwhile and left as they are"
        );
        return Err(Failure::new(Kind::Usage, message)
            .hint(format!("larder undo {id} puts back the rest, once nothing of it is changed")));
    }
    Err(Failure::new(Kind::Usage, format!("operation {id} was not undone: {items} changed since"))
        .hint("undo the later operations first (larder log lists them), or edit the items by hand"))
}

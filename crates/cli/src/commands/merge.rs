use super::item_format;
use crate::args::OutputFormat;
use crate::context::{CommandContext, now_milliseconds};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::{name_from_bytes, resolve_item};
use crate::output::format_count;
use larder_edit::{MergeError, MergeOutcome, write_merge};
use larder_store::{ItemMeta, Operation, Reader};
use serde_json::json;

/// Join items that are the same person; `larder undo` takes them apart again
///
/// The first one stays, with its UID and in its collection, and gets every
/// value of the others that it does not have; the others are removed. What may
/// stand only once and differs (a birthday, a name, the other UID) is kept
/// under a name of its own: X-LARDER-BDAY, X-LARDER-N, X-LARDER-UID.
///
///   larder find --duplicates         lists what may belong together
///   larder merge 7k2mq1xz hz80c2rs   joins them into the first
///   larder merge -n 7k2m hz80        prints the card that would be made, and changes nothing
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MergeArgs {
    /// Which items; the first is the one that stays
    #[arg(value_name = "ID", required = true, num_args = 1..)]
    ids: Vec<String>,
    /// Print the card that would be made, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

/// Items that the log names.
const MAX_LOGGED_ITEMS: usize = 3;

impl MergeArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let reader = context.open_reader()?;
        let items: Vec<ItemMeta> =
            self.ids.iter().map(|id| resolve_item(&reader, id)).collect::<Result<_, _>>()?;
        let joined = larder_edit::ContactMerge::from_items(&reader, &items)?;
        if self.dry_run {
            return print_dry_run(context, &joined);
        }
        let (base, name) = (joined.base().clone(), name_from_bytes(joined.card()));
        let mut store = context.open_store()?;
        let operation = Operation::new("merge", operation_detail(&items), now_milliseconds());
        let merged = write_merge(&mut store, operation, joined)?;
        print_merged(context, &reader, &base, &items, &name, merged)
    }
}

/// What the log says of it: handles, since names are contents.
fn operation_detail(items: &[ItemMeta]) -> String {
    let mut words: Vec<String> =
        items.iter().take(MAX_LOGGED_ITEMS).map(|item| item.handle.to_string()).collect();
    if items.len() > MAX_LOGGED_ITEMS {
        words.push(format!("and {} more", items.len() - MAX_LOGGED_ITEMS));
    }
    words.join(" ")
}

/// Prints the card that would be made.
fn print_dry_run(
    context: &mut CommandContext,
    joined: &larder_edit::ContactMerge,
) -> Result<CommandStatus, CommandFailure> {
    match context.format {
        OutputFormat::Json => {
            let mut object = item_format::contact_json(joined.base(), joined.card());
            let source = String::from_utf8_lossy(joined.card()).into_owned();
            object["source"] = json!(source);
            context.out.print_json(&object)?;
        }
        _ => item_format::print_raw(&mut context.out, joined.card(), false)?,
    }
    Ok(CommandStatus::Done)
}

fn print_merged(
    context: &mut CommandContext,
    reader: &Reader,
    base: &ItemMeta,
    items: &[ItemMeta],
    name: &str,
    merged: MergeOutcome,
) -> Result<CommandStatus, CommandFailure> {
    let MergeOutcome { operation, seq } = merged;
    if context.format == OutputFormat::Json {
        let others: Vec<String> =
            items.iter().skip(1).map(|item| item.handle.to_string()).collect();
        let id = base.handle.to_string();
        context.out.print_json(
            &json!({ "id": id, "joined": others, "seq": seq, "operation": operation }),
        )?;
        return Ok(CommandStatus::Done);
    }
    let (handle, letters) = (base.handle, reader.unique_prefix_len(base.handle)?);
    let number = format_count(items.len() as u64, "contact");
    context.out.print_line(format!(
        "{number} joined as {handle:.letters$}  {name}; larder undo {operation} brings them back"
    ))?;
    Ok(CommandStatus::Done)
}

impl From<MergeError> for CommandFailure {
    fn from(error: MergeError) -> CommandFailure {
        let what = error.to_string();
        match error {
        MergeError::Store(error) => error.into(),
        MergeError::TooFew => CommandFailure::new(FailureKind::Usage, what)
            .with_hint("larder find --duplicates lists what may belong together"),
        MergeError::DuplicateItem { .. } => {
            CommandFailure::new(FailureKind::Usage, what).with_hint("name each item once")
        }
        MergeError::NotAContact { handle, .. } => CommandFailure::new(FailureKind::Usage, what)
            .with_hint(format!("larder show {handle:.8} says what it is")),
        MergeError::IncompleteCard { handle } => CommandFailure::new(FailureKind::Input, what).with_hint(format!(
            "larder edit {handle:.8} mends it; or name another one first, which is then the one that stays"
        )),
        MergeError::Conflict { .. } => {
            CommandFailure::new(FailureKind::Input, format!("nothing was joined: {what}"))
                .with_hint("run the same command again to join what is there now")
        }
        _ => CommandFailure::new(FailureKind::Input, what).with_hint("nothing was changed"),
    }
    }
}

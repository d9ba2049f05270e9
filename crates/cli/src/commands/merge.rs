//! `larder merge`.

use super::show::item_format;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::{name_from_bytes, resolve_item};
use crate::machine_time::now_milliseconds;
use crate::mail_store::explain_unread_index;
use crate::output::{format_count, sanitize_line};
use larder_edit::{MergeError, MergeOutcome, write_merge};
use larder_format::binary_description::describe_binaries;
use larder_store::{ItemMeta, Operation, Reader};
use serde_json::json;

/// Merge duplicate contacts into the first one (`larder undo` reverts it)
///
/// The first contact keeps its UID and its collection and gets every value of the
/// others that it does not have; the others are removed. If a property may occur
/// only once and the values differ (a birthday, a name, a UID), the other value is
/// kept under a different name: X-LARDER-BDAY, X-LARDER-N, X-LARDER-UID.
///
///   larder find --duplicates         list likely duplicates
///   larder merge 7k2mq1xz hz80c2rs   merge the second into the first
///   larder merge -n 7k2m hz80        print the merged card and change nothing
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MergeArgs {
    /// The contacts; the first one is kept
    #[arg(value_name = "ID", required = true, num_args = 1..)]
    ids: Vec<String>,
    /// Print the merged card and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

/// Items that the log names.
const MAX_LOGGED_ITEMS: usize = 3;

impl MergeArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let reader = context.open_reader()?;
        let resolve = |id: &String| {
            let found = resolve_item(&reader, id);
            found.map_err(|failure| explain_unread_index(context, id, failure))
        };
        let items: Vec<ItemMeta> = self.ids.iter().map(resolve).collect::<Result<_, _>>()?;
        let merge = larder_edit::ContactMerge::from_items(&reader, &items)?;
        if self.dry_run {
            return print_dry_run(context, &reader, &merge);
        }
        let (base, name) = (merge.base().clone(), name_from_bytes(merge.card()));
        let mut store = context.open_store()?;
        let operation = Operation::new("merge", operation_detail(&items), now_milliseconds());
        let merged = write_merge(&mut store, operation, merge)?;
        let shown = print_merged(context, &reader, &base, &items, &name, merged);
        Ok(CommandFailure::after_commit(shown)?.unwrap_or(CommandStatus::Done))
    }
}

/// Returns the detail for the log: IDs, as names are private data.
fn operation_detail(items: &[ItemMeta]) -> String {
    let mut words: Vec<String> =
        items.iter().take(MAX_LOGGED_ITEMS).map(|item| item.handle.to_string()).collect();
    if items.len() > MAX_LOGGED_ITEMS {
        words.push(format!("and {} more", items.len() - MAX_LOGGED_ITEMS));
    }
    words.join(" ")
}

/// Prints the merged card.
fn print_dry_run(
    context: &mut CommandContext,
    reader: &Reader,
    merge: &larder_edit::ContactMerge,
) -> Result<CommandStatus, CommandFailure> {
    match context.format {
        OutputFormat::Json => {
            let local = &context.settings.user_locale.zone;
            let mut object = item_format::item_json(reader, local, merge.base(), merge.card())?;
            let source = String::from_utf8_lossy(merge.card()).into_owned();
            object["source_bytes"] = json!(source);
            context.out.print_json(&object)?;
        }
        _ => {
            let bytes = match context.format {
                OutputFormat::Raw => merge.card().to_vec(),
                _ => describe_binaries(merge.card()),
            };
            for line in String::from_utf8_lossy(&bytes).lines() {
                context.out.print_line(sanitize_line(line))?;
            }
        }
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
            &json!({ "id": id, "merged": others, "seq": seq, "operation": operation.to_number() }),
        )?;
        return Ok(CommandStatus::Done);
    }
    let (handle, letters) = (base.handle, reader.items().unique_prefix_len(base.handle)?);
    let number = format_count(items.len() as u64, "contact");
    context.out.print_line(format!(
        "Merged {number} into {handle:.letters$}  {name}. Undo: larder undo {operation}"
    ))?;
    Ok(CommandStatus::Done)
}

impl From<MergeError> for CommandFailure {
    fn from(error: MergeError) -> CommandFailure {
        let what = error.to_string();
        match error {
        MergeError::Store(error) => error.into(),
        MergeError::TooFew => CommandFailure::new(FailureKind::Usage, what)
            .with_hint("`larder find --duplicates` lists likely duplicates"),
        MergeError::DuplicateItem { .. } => {
            CommandFailure::new(FailureKind::Usage, what).with_hint("give each ID once")
        }
        MergeError::NotAContact { handle, .. } => {
            CommandFailure::new(FailureKind::Usage, what)
                .with_hint(format!("`larder show {handle:.8}` shows it"))
        }
        MergeError::IncompleteCard { handle } => CommandFailure::new(FailureKind::Input, what).with_hint(format!(
            "correct it with `larder edit {handle:.8}`, or name another contact first; the first one is kept"
        )),
        MergeError::Conflict { .. } => {
            CommandFailure::new(FailureKind::Input, format!("nothing was merged: {what}"))
                .with_hint("run the command again to merge the current versions")
        }
        _ => CommandFailure::new(FailureKind::Input, what).with_hint("nothing was changed"),
    }
    }
}

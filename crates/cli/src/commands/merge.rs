use super::item;
use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{name_in, resolve};
use crate::output::count;
use larder_store::{ItemHead, Operation, Reader};
use larder_sync::{MergeError, Merged, merge};
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
pub(crate) struct Merge {
    /// Which items; the first is the one that stays
    #[arg(value_name = "ID", required = true, num_args = 1..)]
    ids: Vec<String>,
    /// Print the card that would be made, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

/// Items that the log names.
const NAMED: usize = 3;

impl Merge {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        let items: Vec<ItemHead> =
            self.ids.iter().map(|id| resolve(&reader, id)).collect::<Result<_, _>>()?;
        let joined = larder_sync::Merge::of(&reader, &items)?;
        if self.dry_run {
            return would(context, &joined);
        }
        let (base, name) = (joined.base().clone(), name_in(joined.card()));
        let mut store = context.store()?;
        let operation = Operation::new("merge", detail(&items), now());
        let merged = merge(&mut store, operation, joined)?;
        print(context, &reader, &base, &items, &name, merged)
    }
}

/// What the log says of it: handles, since names are contents.
fn detail(items: &[ItemHead]) -> String {
    let mut words: Vec<String> =
        items.iter().take(NAMED).map(|item| item.handle.to_string()).collect();
    if items.len() > NAMED {
        words.push(format!("and {} more", items.len() - NAMED));
    }
    words.join(" ")
}

/// Prints the card that would be made.
fn would(context: &mut Context, joined: &larder_sync::Merge) -> Result<Code, Failure> {
    match context.format {
        Format::Json => {
            let mut object = item::json(joined.base(), joined.card());
            let source = String::from_utf8_lossy(joined.card()).into_owned();
            object["source"] = json!(source);
            context.out.json(&object)?;
        }
        _ => item::raw(&mut context.out, joined.card(), false)?,
    }
    Ok(Code::Done)
}

fn print(
    context: &mut Context,
    reader: &Reader,
    base: &ItemHead,
    items: &[ItemHead],
    name: &str,
    merged: Merged,
) -> Result<Code, Failure> {
    let Merged { operation, seq } = merged;
    if context.format == Format::Json {
        let others: Vec<String> =
            items.iter().skip(1).map(|item| item.handle.to_string()).collect();
        let id = base.handle.to_string();
        context
            .out
            .json(&json!({ "id": id, "joined": others, "seq": seq, "operation": operation }))?;
        return Ok(Code::Done);
    }
    let (handle, letters) = (base.handle, reader.letters(base.handle)?);
    let number = count(items.len() as u64, "contact");
    context.out.line(format!(
        "{number} joined as {handle:.letters$}  {name}; larder undo {operation} brings them back"
    ))?;
    Ok(Code::Done)
}

impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Failure {
        let what = error.to_string();
        match error {
        MergeError::Store(error) => error.into(),
        MergeError::TooFew => Failure::new(Kind::Usage, what)
            .hint("larder find --duplicates lists what may belong together"),
        MergeError::Twice { handle } => {
            Failure::new(Kind::Usage, format!("{handle:.8} is named twice")).hint("name each item once")
        }
        MergeError::NoContact { handle } => {
            Failure::new(Kind::Usage, format!("only contacts can be joined, and {handle:.8} is none"))
                .hint(format!("larder show {handle:.8} says what it is"))
        }
        MergeError::NotWhole { handle } => Failure::new(Kind::Input, what).hint(format!(
            "larder edit {handle:.8} mends it; or name another one first, which is then the one that stays"
        )),
        MergeError::Changed { .. } => {
            Failure::new(Kind::Input, format!("nothing was joined: {what}"))
                .hint("run the same command again to join what is there now")
        }
        _ => Failure::new(Kind::Input, what).hint("nothing was changed"),
    }
    }
}

use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::name_in;
use crate::output::{complain, count, plain};
use larder_store::{Operation, Store};
use larder_sync::Added;
use larder_sync::card::{Error, LARGEST, Pieces, Typed};
use serde_json::json;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

/// Add a contact, from a file or standard input
///
/// The card gets a UID if it has none. Each card of the file is added; one whose UID is there already is left
/// alone (`larder edit` changes it, `larder import` takes the file's version).
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// A vCard file; - is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The collection it goes to, made if there is none of that name
    #[arg(long, value_name = "NAME", default_value = "contacts")]
    into: String,
}

/// The least that is a card, as a command.
const EXAMPLE: &str =
    r"printf 'BEGIN:VCARD\nVERSION:4.0\nFN:Anna Example\nEND:VCARD\n' | larder add";

impl Add {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let (name, bytes) = self.read(context)?;
        let refused = |error: Error| refused(&name, &error);
        let pieces = Pieces::of(&bytes).map_err(refused)?;
        let mut store = context.store_or_new()?;
        let typed = pieces.typed(&store.deriver_for(&self.into)?, &mut random).map_err(refused)?;
        let mut left_out = remark(context, &name, &typed);
        let detail = format!("{} into {}", count(typed.cards.len() as u64, "card"), self.into);
        let mut operation = Operation::new("add", detail, now());
        let mut told = |store: &Store, added: Added| self.told(context, store, &added);
        left_out +=
            larder_sync::add(&mut store, &mut operation, &self.into, typed.cards, &mut told)?;
        Ok(if left_out > 0 { Code::LeftOut } else { Code::Done })
    }

    /// Says what became of one card.
    fn told(&self, context: &mut Context, store: &Store, added: &Added) -> Result<(), Failure> {
        let (name, uid) = (name_in(&added.bytes), &added.uid);
        let Some(handle) = added.handle else {
            let uid = plain(uid);
            complain("left out", format!("{name}: there is an item with UID {uid:?} already"));
            complain("hint", format!("larder edit 'uid:{uid}' changes it"));
            return Ok(());
        };
        if context.format == Format::Json {
            let id = handle.to_string();
            let object = json!({ "id": id, "uid": uid, "collection": self.into });
            return Ok(context.out.json(&object)?);
        }
        let letters = store.reader()?.letters(handle)?;
        let into = plain(&self.into);
        Ok(context.out.line(format!("{handle:.letters$}  {name}  added to {into}"))?)
    }

    /// The file's name, for messages, and its bytes: one more than is taken, at most.
    fn read(&self, context: &Context) -> Result<(String, Vec<u8>), Failure> {
        let mut bytes = Vec::new();
        let most = LARGEST as u64 + 1;
        let (name, read) = match self.file.to_str() {
            Some("-") => {
                if std::io::stdin().is_terminal() {
                    context.note("type or paste a vCard, and end it with Control-D");
                }
                let read = std::io::stdin().take(most).read_to_end(&mut bytes);
                ("standard input".to_string(), read)
            }
            _ => {
                let file = std::fs::File::open(&self.file);
                let read = file.and_then(|file| file.take(most).read_to_end(&mut bytes));
                (plain(&self.file.display().to_string()), read)
            }
        };
        match read {
            Ok(_) => Ok((name, bytes)),
            Err(error) => Err(Failure::file(&self.file, &error)),
        }
    }
}

/// A text that holds nothing to add.
fn refused(name: &str, error: &Error) -> Failure {
    let failure = |kind| Failure::new(kind, format!("{name}: {error}"));
    match error {
        Error::NoCard => failure(Kind::Input)
            .hint("a vCard is expected: it begins with BEGIN:VCARD and ends with END:VCARD")
            .hint(format!("a small one: {EXAMPLE}")),
        Error::TooLarge => {
            failure(Kind::Input).hint("nothing was added; larder import takes files of any size")
        }
        _ => failure(Kind::Store),
    }
}

/// Says what there is to say about the text; gives the number of things left out.
fn remark(context: &Context, name: &str, typed: &Typed) -> u64 {
    for remark in &typed.remarks {
        let text = plain(&format!("{name}:{}: {}", remark.line, remark.what));
        match remark.what.left_out() {
            true => complain("left out", text),
            false => context.warn(text),
        }
    }
    typed.remarks.iter().filter(|remark| remark.what.left_out()).count() as u64
}

fn random() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::name_in;
use crate::output::{complain, plain};
use larder_format::contact::{Contact, Problem, with_uid};
use larder_format::split::{Piece, Splitter};
use larder_store::{Change, Expect, Operation, Outcome, Put, Store};
use serde_json::json;
use std::io::Read as _;
use std::iter::Peekable;
use std::path::PathBuf;
use std::sync::Arc;

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

/// More than this is no card that anybody typed; `larder import` takes larger files.
const LARGEST: u64 = 32 << 20;

/// Cards, and bytes of them, that are written in one batch: short enough to let others in between.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 4 << 20;

impl Add {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let (name, bytes) = self.read(context)?;
        let mut store = context.store_or_new()?;
        let (puts, mut left_out) = prepare(context, &store, &name, &self.into, &bytes)?;
        if puts.is_empty() && left_out == 0 {
            return Err(Failure::new(Kind::Input, format!("{name}: there is no card in it"))
                .hint("a card begins with BEGIN:VCARD and ends with END:VCARD"));
        }
        let mut operation = Operation::new("add", &self.into, now());
        let mut puts = puts.into_iter().peekable();
        while puts.peek().is_some() {
            left_out += self.add(context, &mut store, &mut operation, batch(&mut puts))?;
        }
        Ok(if left_out > 0 { Code::LeftOut } else { Code::Done })
    }

    /// Adds one batch, and says what became of each; gives the number that was left out.
    fn add(
        &self,
        context: &mut Context,
        store: &mut Store,
        operation: &mut Operation,
        puts: Vec<Put>,
    ) -> Result<u64, Failure> {
        let names: Vec<String> = puts.iter().map(|put| name_in(put.prepared.bytes())).collect();
        let uids: Vec<String> = puts.iter().map(|put| put.uid.clone()).collect();
        let applied = store.apply(operation, puts.into_iter().map(Change::Put).collect())?;
        let mut left_out = 0;
        let reader = store.reader()?;
        for ((outcome, name), uid) in applied.outcomes.iter().zip(&names).zip(&uids) {
            match outcome {
                Outcome::Added(handle) => {
                    let letters = reader.letters(*handle)?;
                    match context.format {
                        Format::Json => context
                            .out
                            .json(&json!({ "id": handle.to_string(), "uid": uid, "collection": self.into }))?,
                        _ => context.out.line(format!(
                            "{handle:.letters$}  {name}  added to {}",
                            plain(&self.into)
                        ))?,
                    }
                }
                _ => {
                    left_out += 1;
                    complain(
                        "left out",
                        format!("{name}: there is an item with UID {uid:?} already"),
                    );
                    complain("hint", format!("larder edit 'uid:{uid}' changes it"));
                }
            }
        }
        Ok(left_out)
    }

    fn read(&self, context: &Context) -> Result<(String, Vec<u8>), Failure> {
        let mut bytes = Vec::new();
        let name = match self.file.to_str() {
            Some("-") => {
                use std::io::IsTerminal as _;
                if std::io::stdin().is_terminal() {
                    context.note("type or paste a vCard, and end it with Control-D");
                }
                std::io::stdin()
                    .take(LARGEST + 1)
                    .read_to_end(&mut bytes)
                    .map(|_| "standard input".into())
            }
            _ => std::fs::File::open(&self.file)
                .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
                .map(|_| self.file.display().to_string()),
        };
        let name = name.map_err(|error| Failure::file(&self.file, &error))?;
        if bytes.len() as u64 > LARGEST {
            return Err(Failure::new(Kind::Input, format!("{name}: it has more than 32 MB"))
                .hint("nothing was added; larder import takes files of any size"));
        }
        Ok((name, bytes))
    }
}

/// The next batch: one card at least, however large.
fn batch(puts: &mut Peekable<impl Iterator<Item = Put>>) -> Vec<Put> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(put) = puts.next_if(|put| {
        bytes += put.prepared.bytes().len();
        batch.is_empty() || (batch.len() < BATCH && bytes <= BATCH_BYTES)
    }) {
        batch.push(put);
    }
    batch
}

/// The cards of the file on their way in, and how many were left out.
fn prepare(
    context: &Context,
    store: &Store,
    file: &str,
    into: &str,
    bytes: &[u8],
) -> Result<(Vec<Put>, u64), Failure> {
    let mut cards: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut left_out = 0;
    let mut sink = |piece: Piece<'_>| match piece {
        Piece::Component { name: "VCARD", line, bytes, .. } => cards.push((line, bytes.to_vec())),
        Piece::Component { name, line, .. } => {
            left_out += 1;
            complain("left out", format!("{file}:{line}: {name}: not an address card"));
        }
        Piece::Stray { first: true, line, .. } => {
            left_out += 1;
            complain("left out", format!("{file}:{line}: text outside any card"));
        }
        Piece::Stray { .. } => {}
    };
    let mut splitter = Splitter::new(LARGEST as usize);
    splitter.push(bytes, &mut sink);
    splitter.finish(&mut sink);
    let into: Arc<str> = Arc::from(into);
    let mut puts = Vec::new();
    for (start, mut bytes) in cards {
        let line = |problem: &Problem| start + u64::from(problem.line) - 1;
        let card = Contact::parse(&bytes);
        // Of the card as it was given: a UID is a line more.
        for problem in card.problems().iter().filter(|_| card.refusal().is_none()) {
            context.warn(format!("{file}:{}: {problem}", line(problem)));
        }
        if card.uid().is_none() {
            bytes = with_uid(&bytes, &fresh_uid()?);
        }
        match store.deriver().contact(bytes) {
            Ok((prepared, _)) => {
                let uid = prepared.uid().unwrap_or_default().to_string();
                let (collection, expect) = (Arc::clone(&into), Expect::Nothing);
                puts.push(Put { collection, uid, derived_uid: false, prepared, expect });
            }
            Err((_, problem)) => {
                left_out += 1;
                complain("left out", format!("{file}:{}: {problem}", line(&problem)));
            }
        }
    }
    Ok((puts, left_out))
}

/// A random UID (RFC 9562, version 4), as RFC 6350 6.7.6 likes it.
fn fresh_uid() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::new(Kind::Store, format!("no random number could be had: {error}"))
    })?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!(
        "urn:uuid:{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    ))
}

use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{name_in, resolve};
use crate::output::complain;
use larder_format::contact::{Contact, Defect};
use larder_format::split::{Piece, Splitter};
use larder_store::{Change, Expect, ItemHead, Operation, Outcome, Prepared, Put, Store};
use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempPath;

/// Change an item in your editor ($VISUAL, $EDITOR), or take its new text from a file
///
/// A text that is no card any more is offered again; if you give up, it is kept in a file. Nothing is lost if
/// somebody else changed the item in the meantime: your text is kept in a file then, too.
#[derive(Debug, clap::Args)]
pub(crate) struct Edit {
    /// Which item
    id: String,
    /// Take the new text from this file instead of an editor
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

impl Edit {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        let head = resolve(&reader, &self.id)?;
        let before = reader.source(head.row)?.unwrap_or_default();
        let mut store = context.store()?;
        let (prepared, edited) = match &self.from {
            Some(file) => {
                let bytes = std::fs::read(file).map_err(|error| Failure::file(file, &error))?;
                let prepared = read(&store, &head, &before, &bytes).map_err(|what| {
                    Failure::new(Kind::Input, format!("{}: {what}", file.display()))
                        .hint("nothing was changed: mend the file, and run the same command again")
                })?;
                (prepared, None)
            }
            None => match ask(context, &store, &head, &before)? {
                Some((prepared, edited)) => (prepared, Some(edited)),
                None => {
                    context.note("nothing was changed");
                    return Ok(Code::Done);
                }
            },
        };
        let text = prepared.bytes().to_vec();
        let mut operation = Operation::new("edit", &head.collection, now());
        let put = Put {
            collection: Arc::from(head.collection.as_str()),
            uid: head.uid.clone(),
            // An item kept beside another of its UID is known by a derived one, whatever its bytes say.
            derived_uid: prepared.uid() != Some(head.uid.as_str()),
            prepared,
            expect: Expect::At(head.seq),
        };
        let applied = match store.apply(&mut operation, vec![Change::Put(put)]) {
            Ok(applied) => applied,
            Err(error) => {
                let failure = Failure::from(error);
                return Err(match edited {
                    Some(edited) => left(failure, edited),
                    None => failure,
                });
            }
        };
        match applied.outcomes.first() {
            Some(Outcome::Updated(handle)) => {
                let letters = reader.letters(*handle)?;
                context.out.line(format!("{handle:.letters$}  {}  changed", name_in(&text)))?;
                Ok(Code::Done)
            }
            Some(Outcome::Unchanged(_)) => {
                context.note("nothing was changed");
                Ok(Code::Done)
            }
            _ => {
                let kept = match edited.map(TempPath::keep) {
                    Some(Ok(path)) => path,
                    _ => keep(&head, &text)?,
                };
                Err(Failure::new(
                    Kind::Input,
                    "the item was changed by somebody else in the meantime",
                )
                .hint(format!("your text is kept in {}", kept.display()))
                .hint(format!(
                    "larder show {} prints what is there now; larder edit {} --from {} takes yours",
                    self.id,
                    self.id,
                    kept.display()
                )))
            }
        }
    }
}

/// Lets the user edit until the text is a card, unchanged, or given up; and the file that holds the text.
fn ask(
    context: &Context,
    store: &Store,
    head: &ItemHead,
    before: &[u8],
) -> Result<Option<(Prepared, TempPath)>, Failure> {
    let editor = context.editor.clone().unwrap_or_else(|| OsString::from("vi"));
    let file = create(head, before).map_err(|error| {
        Failure::new(Kind::Source, format!("no temporary file could be made: {error}"))
            .hint("TMPDIR names the folder for temporary files")
    })?;
    loop {
        let ended = run_editor(&editor, &file);
        let text = std::fs::read(&file);
        if let Err(failure) = ended {
            // It may have saved before it failed.
            let changed = text.is_ok_and(|text| text != before);
            return Err(if changed { left(failure, file) } else { failure });
        }
        let text = text.map_err(|error| Failure::file(&file, &error))?;
        if text == before {
            return Ok(None);
        }
        match read(store, head, before, &text) {
            Ok(prepared) => return Ok(Some((prepared, file))),
            Err(what) => complain("error", &what),
        }
        if !again() {
            return Err(left(Failure::new(Kind::Input, "the item was not changed"), file));
        }
    }
}

/// A failure after the user typed something: the editor's file stays where it is. It is not copied, since the
/// disk may be full.
fn left(failure: Failure, file: TempPath) -> Failure {
    let path = file.to_path_buf();
    match file.keep() {
        Ok(path) => failure.hint(format!("your text is kept in {}", path.display())),
        Err(error) => failure.hint(format!("your text in {} is lost: {error}", path.display())),
    }
}

fn run_editor(editor: &OsString, file: &Path) -> Result<(), Failure> {
    // Through the shell, since $EDITOR may have options: EDITOR="code --wait".
    let mut script = editor.clone();
    script.push(" \"$1\"");
    let status = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .arg("larder")
        .arg(file)
        .current_dir(std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")))
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(
            Kind::Source,
            format!("the editor {editor:?} ended with {status}; nothing was changed"),
        )
        .hint("name another one with EDITOR, or in the configuration")),
        Err(error) => Err(Failure::new(Kind::Source, format!("no editor could be run: {error}"))
            .hint("--from FILE takes the new text from a file")),
    }
}

/// Asks whether to edit again; where nobody can answer, the answer is no.
fn again() -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    complain("edit again?", "[Y/n]");
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => false,
        Ok(_) => !answer.trim().to_lowercase().starts_with('n'),
    }
}

/// The one card in the text, without blank lines around it, if it is one and keeps its UID; else what is wrong.
fn read(store: &Store, head: &ItemHead, before: &[u8], text: &[u8]) -> Result<Prepared, String> {
    let mut cards: Vec<Vec<u8>> = Vec::new();
    let mut strays = None;
    let mut sink = |piece: Piece<'_>| match piece {
        Piece::Component { name: "VCARD", bytes, .. } => cards.push(bytes.to_vec()),
        Piece::Component { line, .. } | Piece::Stray { line, .. } => strays = strays.or(Some(line)),
    };
    let mut splitter = Splitter::new(usize::MAX);
    splitter.push(text, &mut sink);
    splitter.finish(&mut sink);
    if let Some(line) = strays {
        return Err(format!("line {line}: text outside the card"));
    }
    let card = match <[Vec<u8>; 1]>::try_from(cards) {
        Ok([card]) => card,
        Err(cards) => return Err(format!("one card is needed, and there are {}", cards.len())),
    };
    let (prepared, problems) = store
        .deriver()
        .contact(card)
        .map_err(|(_, problem)| format!("line {}: {problem}", problem.line))?;
    if problems.iter().any(|problem| problem.what == Defect::NoEnd) {
        return Err("the line END:VCARD is missing".into());
    }
    // What the card itself said; an item that is kept beside another of its UID is known by a derived one.
    let card = Contact::parse(before);
    let own = card.uid();
    let stays = own.as_deref().unwrap_or(&head.uid);
    match prepared.uid() {
        Some(uid) if uid != stays => {
            Err(format!("the UID has to stay {stays:?}: it is what the item is known by"))
        }
        None if own.is_some() => Err(format!("the line UID:{stays} is missing")),
        _ => Ok(prepared),
    }
}

/// Keeps a text that could not be taken where its writer can find it.
fn keep(head: &ItemHead, text: &[u8]) -> Result<PathBuf, Failure> {
    let path = create(head, text)?.keep().map_err(|error| error.error)?;
    Ok(path)
}

/// A file of its own for this text, with an item's name in its own.
fn create(head: &ItemHead, text: &[u8]) -> std::io::Result<TempPath> {
    let name = format!("larder-edit-{:.8}-", head.handle);
    let mut file = tempfile::Builder::new().prefix(&name).suffix(".vcf").tempfile()?;
    file.write_all(text)?;
    Ok(file.into_temp_path())
}

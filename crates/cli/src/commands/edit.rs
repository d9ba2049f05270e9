use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{name_in, resolve};
use crate::output::complain;
use larder_format::contact::Defect;
use larder_format::split::{Piece, Splitter};
use larder_store::{Change, Expect, ItemHead, Operation, Outcome, Prepared, Put, Store};
use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        let prepared = match &self.from {
            Some(file) => {
                let bytes = std::fs::read(file).map_err(|error| Failure::file(file, &error))?;
                read(&store, &head, bytes).map_err(|(_, what)| {
                    Failure::new(Kind::Input, format!("{}: {what}", file.display()))
                        .hint("nothing was changed: mend the file, and run the same command again")
                })?
            }
            None => match ask(context, &store, &head, &before)? {
                Some(prepared) => prepared,
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
            derived_uid: head.derived_uid && prepared.uid().is_none(),
            prepared,
            expect: Expect::At(head.seq),
        };
        let applied = store.apply(&mut operation, vec![Change::Put(put)])?;
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
                let kept = keep(&head, &text)?;
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

/// Lets the user edit until the text is a card, unchanged, or given up.
fn ask(
    context: &Context,
    store: &Store,
    head: &ItemHead,
    before: &[u8],
) -> Result<Option<Prepared>, Failure> {
    let editor = context.editor.clone().unwrap_or_else(|| OsString::from("vi"));
    let mut file =
        tempfile::Builder::new().prefix("larder-").suffix(".vcf").tempfile().map_err(|error| {
            Failure::new(Kind::Source, format!("no temporary file could be made: {error}"))
                .hint("TMPDIR names the folder for temporary files")
        })?;
    file.write_all(before).and_then(|()| file.flush())?;
    loop {
        run_editor(&editor, file.path())?;
        let text = std::fs::read(file.path())?;
        if text == before {
            return Ok(None);
        }
        let (text, what) = match read(store, head, text) {
            Ok(prepared) => return Ok(Some(prepared)),
            Err(broken) => broken,
        };
        complain("error", &what);
        if !again() {
            let kept = keep(head, &text)?;
            return Err(Failure::new(Kind::Input, "the item was not changed")
                .hint(format!("your text is kept in {}", kept.display())));
        }
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

/// The one card in the text, if it is one and keeps its UID; else the text, and what is wrong with it.
fn read(store: &Store, head: &ItemHead, text: Vec<u8>) -> Result<Prepared, (Vec<u8>, String)> {
    let mut cards = 0;
    let mut strays = None;
    let mut sink = |piece: Piece<'_>| match piece {
        Piece::Component { name: "VCARD", .. } => cards += 1,
        Piece::Component { line, .. } | Piece::Stray { line, .. } => strays = strays.or(Some(line)),
    };
    let mut splitter = Splitter::new(usize::MAX);
    splitter.push(&text, &mut sink);
    splitter.finish(&mut sink);
    if let Some(line) = strays {
        return Err((text, format!("line {line}: text outside the card")));
    }
    if cards != 1 {
        return Err((text, format!("one card is needed, and there are {cards}")));
    }
    match store.deriver().contact(text) {
        Err((text, problem)) => Err((text, format!("line {}: {problem}", problem.line))),
        Ok((prepared, problems))
            if problems.iter().any(|problem| problem.what == Defect::NoEnd) =>
        {
            Err((prepared.bytes().to_vec(), "the line END:VCARD is missing".into()))
        }
        Ok((prepared, _)) => match prepared.uid() {
            Some(uid) if uid != head.uid => {
                let what =
                    format!("the UID has to stay {:?}: it is what the item is known by", head.uid);
                Err((prepared.bytes().to_vec(), what))
            }
            None if !head.derived_uid => {
                let what = format!("the line UID:{} is missing", head.uid);
                Err((prepared.bytes().to_vec(), what))
            }
            _ => Ok(prepared),
        },
    }
}

/// Keeps a text that could not be taken where its writer can find it.
fn keep(head: &ItemHead, text: &[u8]) -> Result<PathBuf, Failure> {
    let name = format!("larder-edit-{:.8}-", head.handle);
    let file = tempfile::Builder::new().prefix(&name).suffix(".vcf").tempfile()?;
    let (mut file, path) = file.keep().map_err(|error| error.error)?;
    file.write_all(text)?;
    Ok(path)
}

use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{name_in, resolve};
use crate::output::{complain, plain};
use larder_store::{Applied, Deriver, ItemHead, Operation, Outcome, Prepared, Reader, Seq};
use larder_sync::{card::edited, replace};
use serde_json::json;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tempfile::TempPath;

/// Change an item in your editor ($VISUAL, $EDITOR), or take its new text from a file
///
/// A text that is no card any more is offered again; if you give up, it is kept in a file. Nothing is lost if
/// somebody else changed the item in the meantime: your text is kept in a file then, too.
#[derive(Debug, clap::Args)]
pub(crate) struct Edit {
    /// Which item
    id: String,
    /// Take the new text from this file instead of an editor; - is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// A card that may be written, and the editor's file that it comes from.
struct Edited {
    card: Prepared,
    file: Option<TempPath>,
}

impl Edit {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        let head = resolve(&reader, &self.id)?;
        let before = reader.source(head.row)?.unwrap_or_default();
        let mut store = context.store()?;
        let deriver = store.deriver_for(&head.collection)?;
        let edited = match &self.from {
            Some(file) => Some(from_file(&deriver, &head, &before, file)?),
            None => ask(context, &deriver, &head, &before)?,
        };
        let Some(Edited { card, file }) = edited else { return unchanged(context, &head) };
        let text = card.bytes().to_vec();
        let detail = format!("{} in {}", head.handle, head.collection);
        let mut operation = Operation::new("edit", detail, now());
        let applied = match replace(&mut store, &mut operation, &head, card) {
            Ok(applied) => applied,
            Err(error) => {
                let failure = Failure::from(error);
                return Err(match file {
                    Some(file) => left(failure, file),
                    None => failure,
                });
            }
        };
        match applied.outcomes.first() {
            Some(Outcome::Updated(_)) => changed(context, &reader, &head, &text, &applied),
            Some(Outcome::Unchanged(_)) => unchanged(context, &head),
            _ => Err(self.overtaken(&head, file, &text)?),
        }
    }

    /// Somebody else was first: the text is kept.
    fn overtaken(
        &self,
        head: &ItemHead,
        file: Option<TempPath>,
        text: &[u8],
    ) -> Result<Failure, Failure> {
        let kept = match file.map(TempPath::keep) {
            Some(Ok(path)) => path,
            _ => keep(head, text)?,
        };
        let (id, kept) = (&self.id, kept.display());
        let what = "the item was changed by somebody else in the meantime";
        Ok(Failure::new(Kind::Input, what).hint(format!("your text is kept in {kept}")).hint(format!(
            "larder show {id} prints what is there now; larder edit {id} --from {kept} takes yours"
        )))
    }
}

fn from_file(
    deriver: &Deriver,
    head: &ItemHead,
    before: &[u8],
    file: &Path,
) -> Result<Edited, Failure> {
    let mut bytes = Vec::new();
    let (name, read) = match file.to_str() {
        Some("-") => ("standard input".into(), std::io::stdin().read_to_end(&mut bytes).map(drop)),
        _ => {
            let read = std::fs::read(file).map(|text| bytes = text);
            (plain(&file.display().to_string()), read)
        }
    };
    read.map_err(|error| Failure::file(file, &error))?;
    match edited(deriver, &head.uid, before, &bytes) {
        Ok(card) => Ok(Edited { card, file: None }),
        Err(what) => Err(Failure::new(Kind::Input, format!("{name}: {what}"))
            .hint("nothing was changed: mend the text, and run the same command again")),
    }
}

fn changed(
    context: &mut Context,
    reader: &Reader,
    head: &ItemHead,
    text: &[u8],
    applied: &Applied,
) -> Result<Code, Failure> {
    if context.format == Format::Json {
        told(context, head, true, applied.seq)?;
    } else {
        let (handle, letters) = (head.handle, reader.letters(head.handle)?);
        context.out.line(format!("{handle:.letters$}  {}  changed", name_in(text)))?;
    }
    Ok(Code::Done)
}

fn unchanged(context: &mut Context, head: &ItemHead) -> Result<Code, Failure> {
    if context.format == Format::Json {
        told(context, head, false, head.seq)?;
    } else {
        context.note("nothing was changed");
    }
    Ok(Code::Done)
}

fn told(context: &mut Context, head: &ItemHead, changed: bool, seq: Seq) -> Result<(), Failure> {
    let id = head.handle.to_string();
    Ok(context.out.json(&json!({ "id": id, "changed": changed, "seq": seq }))?)
}

/// Lets the user edit until the text is a card, unchanged, or given up; and the file that holds the text.
fn ask(
    context: &Context,
    deriver: &Deriver,
    head: &ItemHead,
    before: &[u8],
) -> Result<Option<Edited>, Failure> {
    let editor = context.editor.clone().unwrap_or_else(|| OsString::from("vi"));
    let file = create(head, before).map_err(|error| {
        Failure::new(Kind::Source, format!("no temporary file could be made: {error}"))
            .hint("TMPDIR names the folder for temporary files")
    })?;
    let said = format!("your text is kept in {}", file.display());
    let editing = crate::interrupt::say_before_the_end(said);
    loop {
        editing.store(true, Ordering::Relaxed);
        let ended = run_editor(&editor, &file);
        editing.store(false, Ordering::Relaxed);
        let text = std::fs::read(&file);
        if let Err(failure) = ended {
            // It may have saved before it failed.
            let changed = text.is_ok_and(|text| text != before);
            return Err(if changed { left(failure, file) } else { failure });
        }
        let text = text.map_err(|error| unreadable(&file, &error))?;
        if text == before {
            return Ok(None);
        }
        match edited(deriver, &head.uid, before, &text) {
            Ok(card) => return Ok(Some(Edited { card, file: Some(file) })),
            Err(what) => complain("error", plain(&what.to_string())),
        }
        if !again() {
            return Err(left(Failure::new(Kind::Input, "the item was not changed"), file));
        }
    }
}

/// The text that the editor should have left is not there.
fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    if error.kind() != std::io::ErrorKind::NotFound {
        return Failure::file(file, error);
    }
    Failure::new(Kind::Input, "the editor deleted the file it was given; nothing was changed")
        .hint("--from FILE takes the new text from a file")
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

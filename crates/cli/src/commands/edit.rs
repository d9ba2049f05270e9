use crate::args::Format;
use crate::context::{Context, now, random};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{name_in, shown_name};
use crate::occurrences::{Occurrences, failed, is_of_calendar, late};
use crate::output::{complain, count, plain};
use crate::when;
use larder_store::{
    Applied, Deriver, Frame, Handle, HandlePrefix, ItemHead, Operation, Outcome, Prepared, Reader,
    Seq,
};
use larder_sync::card::{Remark, edited, edited_component, fresh_uid};
use larder_sync::event::{self, Which};
use larder_sync::replace;
use serde_json::json;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tempfile::TempPath;

/// Change an item in your editor ($VISUAL, $EDITOR), by options, or take its new text from a file
///
/// Of an event that recurs, options change one occurrence (--scope this), one and all that follow (future), or all.
///
/// A text that is no card any more is offered again; if you give up, it is kept in a file. Nothing is lost if
/// somebody else changed the item in the meantime: your text is kept in a file then, too.
#[derive(Debug, clap::Args)]
pub(crate) struct Edit {
    /// Which item
    id: String,
    /// Take the new text from this file instead of an editor; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scope", "occurrence"])]
    from: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    occurrences: Occurrences,
}

/// What is to be otherwise in an event, a task or a memo.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Events, tasks and memos")]
struct Changes {
    /// A field and what it is to be, nothing to take it out: status=cancelled; may be given several times
    #[arg(long = "set", value_name = "FIELD=TEXT", conflicts_with = "from")]
    fields: Vec<String>,
    /// What it is about
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    summary: Option<String>,
    /// When it begins: a time, a day, or both
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    start: Option<String>,
    /// When it ends; of a task, when it is due
    #[arg(long, visible_alias = "due", value_name = "TIME", conflicts_with = "from")]
    end: Option<String>,
    /// How long it takes
    #[arg(
        long = "for",
        value_name = "LENGTH",
        allow_hyphen_values = true,
        conflicts_with_all = ["end", "from"]
    )]
    length: Option<String>,
    /// It is of whole days
    #[arg(long, conflicts_with = "from")]
    all_day: bool,
    /// How much later it begins, or earlier: +1h, \"-2 days\"
    #[arg(
        long = "move",
        value_name = "LENGTH",
        allow_hyphen_values = true,
        conflicts_with = "from"
    )]
    shift: Option<String>,
    /// Where it is
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    location: Option<String>,
    /// What it is about, at length
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    description: Option<String>,
    /// A category, in the place of those it has; may be given several times
    #[arg(long = "category", value_name = "TEXT", conflicts_with = "from")]
    categories: Vec<String>,
    /// 1, the highest, to 9
    #[arg(long, value_name = "NUMBER", conflicts_with = "from")]
    priority: Option<String>,
    /// An alarm so long before it begins, in the place of those it has; nothing: none; may be given several times
    #[arg(long = "alarm", value_name = "LENGTH", conflicts_with = "from")]
    alarms: Vec<String>,
    /// The zone of its clock
    #[arg(long, value_name = "ZONE", conflicts_with = "from")]
    zone: Option<String>,
    /// How it recurs, as RFC 5545 writes it; nothing: not at all
    #[arg(long, value_name = "RULE", conflicts_with = "from")]
    rule: Option<String>,
}

impl Changes {
    fn edit(&self) -> Result<event::Edit, event::Error> {
        let mut edit = event::Edit::default();
        for field in &self.fields {
            let no_value = || event::Error::NoProperty(field.clone());
            let (name, value) = field.split_once('=').ok_or_else(no_value)?;
            edit.set(name.trim(), value)?;
        }
        let categories = (!self.categories.is_empty()).then(|| self.categories.join(","));
        let fields = [
            ("summary", &self.summary),
            ("location", &self.location),
            ("description", &self.description),
            ("category", &categories),
            ("priority", &self.priority),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                edit.set(name, value)?;
            }
        }
        edit.all_day = self.all_day;
        edit.alarms = (!self.alarms.is_empty()).then(|| self.alarms.clone());
        let times = [
            (&mut edit.start, &self.start),
            (&mut edit.end, &self.end),
            (&mut edit.length, &self.length),
            (&mut edit.shift, &self.shift),
            (&mut edit.zone, &self.zone),
            (&mut edit.rule, &self.rule),
        ];
        for (time, said) in times.into_iter().filter(|(_, said)| said.is_some()) {
            time.clone_from(said);
        }
        Ok(edit)
    }
}

/// A card that may be written, and the editor's file that it comes from.
struct Edited {
    card: Prepared,
    remarks: Vec<Remark>,
    file: Option<TempPath>,
}

impl Edit {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        let (head, which) = self.occurrences.of(context, &reader, &self.id)?;
        let wrong = |error| failed(error, "edit", &self.id);
        let edit = self.changes.edit().map_err(wrong)?;
        if !edit.is_empty() {
            return self.by_options(context, &reader, &head, which, &edit);
        }
        if which != Which::default() {
            return Err(Failure::new(Kind::Usage, "nothing says what is to be otherwise")
                .hint("--set FIELD=TEXT, --start TIME, --move LENGTH and others do"));
        }
        let before = reader.source(head.row)?.unwrap_or_default();
        let frame = head.frame.map(|row| reader.frame(row)).transpose()?.flatten();
        let before = Before { bytes: before, frame: frame.unwrap_or_default() };
        let mut store = context.store()?;
        let deriver = store.deriver_for(&head.collection, head.kind.family())?;
        let edited = match &self.from {
            Some(file) => Some(from_file(&deriver, &head, &before, file)?),
            None => ask(context, &deriver, &head, &before)?,
        };
        let Some(Edited { card, remarks, file }) = edited else { return unchanged(context, &head) };
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
        for Remark { line, what } in remarks {
            context.warn(plain(&format!("line {line}: {what}")));
        }
        match applied.outcomes.first() {
            Some(Outcome::Updated(_)) => changed(context, &reader, &head, &text, &applied),
            Some(Outcome::Unchanged(_)) => unchanged(context, &head),
            _ => Err(self.overtaken(&head, file, &text)?),
        }
    }

    /// Changes an event, a task or a memo, or some of its occurrences.
    fn by_options(
        &self,
        context: &mut Context,
        reader: &Reader,
        head: &ItemHead,
        which: Which,
        edit: &event::Edit,
    ) -> Result<Code, Failure> {
        if !is_of_calendar(head) {
            return Err(Failure::new(Kind::Usage, "a contact is changed as a text")
                .hint(format!("larder edit {} opens it in your editor", self.id)));
        }
        let uid = random().map_err(|error| Failure::new(Kind::Store, error))?;
        let uid = fresh_uid(uid);
        let mut store = context.store()?;
        let detail = format!("{} in {}", head.handle, head.collection);
        let mut operation = Operation::new("edit", detail, now()).all_or_nothing();
        let speaker = context.speaker();
        let done =
            event::change_which(&mut store, &mut operation, head, which, edit, &uid, &speaker);
        let done = done.map_err(|error| failed(error, "edit", &self.id))?;
        late(&done)?;
        let Some(operation) = done.operation else { return unchanged(context, head) };
        if done.astray > 0 {
            let kept = count(done.astray as u64, "changed occurrence");
            context.warn(format!("its rule does not have all that is kept: {kept}"));
        }
        if done.apart > 0 {
            let kept = count(done.apart as u64, "changed occurrence");
            context.warn(format!("not changed where it says something of its own: {kept}"));
        }
        // An occurrence that was moved along is another item.
        let gone = done.removed.contains(&head.handle);
        let stays = done.changed.first().or(done.added.first()).filter(|_| gone);
        let handle = stays.copied().unwrap_or(head.handle);
        let new: Vec<String> = done.added.iter().map(ToString::to_string).collect();
        if context.format == Format::Json {
            let object = json!({
                "id": handle.to_string(), "changed": true, "added": new, "operation": operation
            });
            context.out.json(&object)?;
            return Ok(Code::Done);
        }
        let after = store.reader()?;
        let letters = after.letters(handle)?;
        context.out.line(format!("{handle:.letters$}  {}  changed", shown_name(reader, head)?))?;
        for handle in done.added.iter().chain(&done.changed) {
            told_when(context, &after, *handle)?;
        }
        Ok(Code::Done)
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

/// Says when an item is now.
fn told_when(context: &mut Context, reader: &Reader, handle: Handle) -> Result<(), Failure> {
    let Some(prefix) = HandlePrefix::parse(&handle.to_string()) else { return Ok(()) };
    let Some(head) = reader.by_handle(prefix, 1)?.pop() else { return Ok(()) };
    let letters = reader.letters(handle)?;
    let when = event::when(reader, &head)?;
    let asker = &context.settings.asker;
    let (start, end) = when.unwrap_or_default();
    let when = when::shown(head.kind, start.as_ref(), end.as_ref(), asker);
    let rule = event::rule(reader, &head)?;
    let rule = rule.map(|rule| format!(", {}", when::repeated(&rule, start.as_ref(), asker)));
    let rule = rule.unwrap_or_default();
    let when = when.unwrap_or_else(|| "at no time".into());
    Ok(context.out.line(format!("  {handle:.letters$}  {when}{}", plain(&rule)))?)
}

/// What an item was before.
struct Before {
    bytes: Vec<u8>,
    frame: Arc<Frame>,
}

/// The item that a text is, if it may take the place of what was before.
fn taken(
    deriver: &Deriver,
    head: &ItemHead,
    before: &Before,
    text: &[u8],
) -> Result<(Prepared, Vec<Remark>), larder_sync::card::Error> {
    if !is_of_calendar(head) {
        return Ok((edited(deriver, &head.uid, &before.bytes, text)?, Vec::new()));
    }
    let now = larder_time::civil::Instant::clamped(now() / 1000);
    edited_component(deriver, &before.frame, &head.uid, &before.bytes, text, now)
}

fn from_file(
    deriver: &Deriver,
    head: &ItemHead,
    before: &Before,
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
    match taken(deriver, head, before, &bytes) {
        Ok((card, remarks)) => Ok(Edited { card, remarks, file: None }),
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
    before: &Before,
) -> Result<Option<Edited>, Failure> {
    let editor = match &context.editor {
        Some(editor) => editor.clone(),
        // An editor that somebody chose may need no terminal.
        None if std::io::stdin().is_terminal() => OsString::from("vi"),
        None => return Err(no_editor(head)),
    };
    let file = create(head, &before.bytes).map_err(|error| {
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
            let changed = text.is_ok_and(|text| text != before.bytes);
            return Err(if changed { left(failure, file) } else { failure });
        }
        let text = text.map_err(|error| unreadable(&file, &error))?;
        if text == before.bytes {
            return Ok(None);
        }
        match taken(deriver, head, before, &text) {
            Ok((card, remarks)) => return Ok(Some(Edited { card, remarks, file: Some(file) })),
            Err(what) => complain("error", plain(&what.to_string())),
        }
        if !again() {
            return Err(left(Failure::new(Kind::Input, "the item was not changed"), file));
        }
    }
}

/// Nobody is there who could edit.
fn no_editor(head: &ItemHead) -> Failure {
    let failure = Failure::new(Kind::Usage, "there is no terminal for an editor");
    let failure = match is_of_calendar(head) {
        true => failure.hint(
            "--set FIELD=TEXT, --start TIME and other options change an event, a task or a memo",
        ),
        false => failure,
    };
    failure
        .hint("--from FILE takes the new text from a file")
        .hint("EDITOR, VISUAL or the configuration name an editor that needs no terminal")
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
    let suffix = if is_of_calendar(head) { ".ics" } else { ".vcf" };
    let mut file = tempfile::Builder::new().prefix(&name).suffix(suffix).tempfile()?;
    file.write_all(text)?;
    Ok(file.into_temp_path())
}

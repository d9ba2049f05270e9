//! The new text of an item: from the editor of the user, or from a file.
//!
//! Separate from the command, which replaces the item: the text is kept in a file until it is
//! stored, whatever fails.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::output::{print_message, sanitize_line};
use larder_edit::item_text::{EditBase, TextDiagnostic, parse_edited_item};
use larder_store::{CalendarContext, Extractor, ItemMeta, ParsedItem};
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tempfile::TempPath;

/// A valid new version, and the editor's file that it comes from.
pub(super) struct EditedItem {
    pub(super) item: ParsedItem,
    pub(super) remarks: Vec<TextDiagnostic>,
    pub(super) file: Option<TempPath>,
}

/// The version before the edit.
pub(super) struct OriginalItem {
    pub(super) bytes: Vec<u8>,
    pub(super) calendar_context: Arc<CalendarContext>,
}

/// Parses an edited text, if it may replace the previous version.
fn parse_edited(
    extractor: &Extractor,
    meta: &ItemMeta,
    before: &OriginalItem,
    text: &[u8],
) -> Result<(ParsedItem, Vec<TextDiagnostic>), larder_edit::item_text::Error> {
    let now = larder_time::civil::Instant::from_seconds_clamped(now_milliseconds() / 1000);
    let OriginalItem { bytes, calendar_context } = before;
    let base = EditBase { kind: meta.kind, uid: &meta.uid, bytes, context: calendar_context };
    parse_edited_item(extractor, base, text, now)
}

pub(super) fn read_edited_file(
    extractor: &Extractor,
    meta: &ItemMeta,
    before: &OriginalItem,
    file: &Path,
) -> Result<EditedItem, CommandFailure> {
    let mut bytes = Vec::new();
    let (name, read) = match file.to_str() {
        Some("-") => ("standard input".into(), std::io::stdin().read_to_end(&mut bytes).map(drop)),
        _ => {
            let read = std::fs::read(file).map(|text| bytes = text);
            (sanitize_line(&file.display().to_string()), read)
        }
    };
    read.map_err(|error| CommandFailure::from_file_error(file, &error))?;
    match parse_edited(extractor, meta, before, &bytes) {
        Ok((card, remarks)) => Ok(EditedItem { item: card, remarks, file: None }),
        Err(what) => Err(CommandFailure::new(FailureKind::Input, format!("{name}: {what}"))
            .with_hint("nothing was changed; correct the text and run the command again")),
    }
}

/// Runs the editor until the text is valid or unchanged, or the user gives up. Returns the new
/// version with the file that holds the text.
pub(super) fn edit_interactively(
    context: &CommandContext,
    extractor: &Extractor,
    meta: &ItemMeta,
    before: &OriginalItem,
) -> Result<Option<EditedItem>, CommandFailure> {
    let editor = match &context.editor {
        Some(editor) => editor.clone(),
        // An editor set by the user may not need a terminal.
        None if std::io::stdin().is_terminal() => OsString::from("vi"),
        None => return Err(no_editor_failure(meta)),
    };
    let file = create_temp_file(meta, &before.bytes).map_err(|error| {
        CommandFailure::new(FailureKind::Source, format!("cannot create a temporary file: {error}"))
            .with_hint("TMPDIR sets the directory for temporary files")
    })?;
    let hint = format!("your text is kept in {}", file.display());
    let editing = crate::interrupt::print_hint_on_interrupt(hint);
    loop {
        editing.store(true, Ordering::Relaxed);
        let ended = run_editor(&editor, &file);
        editing.store(false, Ordering::Relaxed);
        let text = std::fs::read(&file);
        if let Err(failure) = ended {
            // The editor may have saved before it failed.
            let changed = text.is_ok_and(|text| text != before.bytes);
            return Err(if changed { keep_editor_file(failure, file) } else { failure });
        }
        let text = text.map_err(|error| unreadable_file_failure(&file, &error))?;
        if text == before.bytes {
            return Ok(None);
        }
        match parse_edited(extractor, meta, before, &text) {
            Ok((card, remarks)) => {
                return Ok(Some(EditedItem { item: card, remarks, file: Some(file) }));
            }
            Err(what) => print_message("error", sanitize_line(&what.to_string())),
        }
        if !confirm_edit_again() {
            return Err(keep_editor_file(
                CommandFailure::new(FailureKind::Input, "the item was not changed"),
                file,
            ));
        }
    }
}

/// The failure for an edit without a terminal.
fn no_editor_failure(meta: &ItemMeta) -> CommandFailure {
    let failure = CommandFailure::new(FailureKind::Usage, "cannot open an editor: not a terminal");
    let failure = match meta.kind.has_field_edits() {
        true => failure.with_hint(
            "change events, tasks and memos with --set FIELD=TEXT, --start TIME and other options",
        ),
        false => failure,
    };
    failure.with_hint("read the new text from a file with --from FILE").with_hint(
        "or set EDITOR, VISUAL or editor in config.toml to an editor that needs no terminal",
    )
}

/// The failure for an editor's file that cannot be read.
fn unreadable_file_failure(file: &Path, error: &std::io::Error) -> CommandFailure {
    if error.kind() != std::io::ErrorKind::NotFound {
        return CommandFailure::from_file_error(file, error);
    }
    CommandFailure::new(FailureKind::Input, "the editor deleted its file; nothing was changed")
        .with_hint("read the new text from a file with --from FILE")
}

/// Keeps the editor's file after a failure. It is not copied, as the disk may be full.
pub(super) fn keep_editor_file(failure: CommandFailure, file: TempPath) -> CommandFailure {
    let path = file.to_path_buf();
    match file.keep() {
        Ok(path) => failure.with_hint(format!("your text is kept in {}", path.display())),
        Err(error) => {
            failure.with_hint(format!("your text in {} was lost: {error}", path.display()))
        }
    }
}

fn run_editor(editor: &OsString, file: &Path) -> Result<(), CommandFailure> {
    // Runs through the shell, as $EDITOR may have options: EDITOR="code --wait".
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
        Ok(status) => Err(CommandFailure::new(
            FailureKind::Source,
            format!("the editor {editor:?} failed ({status}); nothing was changed"),
        )
        .with_hint("set EDITOR, or `editor` in config.toml, to another editor")),
        Err(error) => {
            Err(CommandFailure::new(FailureKind::Source, format!("cannot run an editor: {error}"))
                .with_hint("read the new text from a file with --from FILE"))
        }
    }
}

/// Asks whether to edit again; returns false without a terminal.
fn confirm_edit_again() -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    print_message("note", "edit again? [Y/n]");
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => false,
        Ok(_) => !answer.trim().to_lowercase().starts_with('n'),
    }
}

/// Keeps a text that was not stored in a file.
pub(super) fn keep_text(meta: &ItemMeta, text: &[u8]) -> Result<PathBuf, CommandFailure> {
    let path = create_temp_file(meta, text)?.keep().map_err(|error| error.error)?;
    Ok(path)
}

/// Creates a temporary file with this text; its name contains the item's ID.
fn create_temp_file(meta: &ItemMeta, text: &[u8]) -> std::io::Result<TempPath> {
    let name = format!("larder-edit-{:.8}-", meta.handle);
    let extension = meta.kind.file_extensions().first().unwrap_or(&"txt");
    let suffix = format!(".{extension}");
    let mut file = tempfile::Builder::new().prefix(&name).suffix(&suffix).tempfile()?;
    file.write_all(text)?;
    Ok(file.into_temp_path())
}

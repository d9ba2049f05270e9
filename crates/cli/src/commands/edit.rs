//! `larder edit`.

mod contact;
mod message_labels;
mod text_editor;

use crate::args::OutputFormat;
use crate::contact_args::ContactArgs;
use crate::context::{CommandContext, random_bytes};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::{display_name, name_from_bytes};
use crate::machine_time::now_milliseconds;
use crate::mail_store::explain_message;
use crate::occurrence_args::{OccurrenceArgs, check_not_outdated, edit_failure};
use crate::output::{format_count, sanitize_line};
use crate::time_display;
use larder_edit::event::{self, OccurrenceSelector};
use larder_edit::item_text::{TextDiagnostic, uid_from_random};
use larder_edit::replace_item;
use larder_format::kind::SourceFormat;
use larder_store::{
    AppliedBatch, ChangeOutcome, Handle, HandlePrefix, ItemMeta, Operation, Reader, Seq,
};
use serde_json::json;
use std::path::PathBuf;
use tempfile::TempPath;
use text_editor::{
    EditedItem, OriginalItem, edit_interactively, keep_editor_file, keep_text, read_edited_file,
};

/// Change an item in your editor ($VISUAL, $EDITOR), with options, or from a file
///
/// --set and the other options change single fields; everything else in the item stays as it is.
/// For a recurring event, --scope selects the occurrences: one occurrence (this), this and future
/// occurrences (future), or all.
///
/// In a contact, --set mobile=NUMBER and --set work.email=ADDRESS set the value with a label, and
/// add it if there is none; --set phone+=NUMBER adds a value, and --set phone.2=NUMBER sets the
/// second.
///
/// Messages have no text to edit, but labels: --label +tax -todo adds and removes them, on the
/// messages with these IDs, or on all that match --query.
///
/// If the edited text is invalid, the editor opens again. If you give up, or another program
/// modified the item, your text is kept in a file.
#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    /// The item; with --label, the messages
    #[arg(value_name = "ID", required_unless_present_any = ["query", "labels"])]
    ids: Vec<String>,
    /// Change the labels of all messages that match this query
    #[arg(
        long,
        value_name = "QUERY",
        conflicts_with = "ids",
        requires = "labels",
        allow_hyphen_values = true
    )]
    query: Option<String>,
    /// Add labels to messages, and remove others; takes all words that follow
    #[arg(long = "label", value_name = "+NAME|-NAME", num_args = 1.., allow_hyphen_values = true)]
    labels: Vec<String>,
    /// The single item of all changes but those of labels.
    #[arg(skip)]
    id: String,
    /// Read the new text from this file (- for standard input) instead of an editor
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scope", "occurrence"])]
    from: Option<PathBuf>,
    /// Set a field: status=cancelled, mobile=NUMBER; an empty value removes it (repeatable)
    #[arg(long = "set", value_name = "FIELD=TEXT", conflicts_with = "from")]
    fields: Vec<String>,
    #[command(flatten)]
    changes: ChangeArgs,
    #[command(flatten)]
    contact: ContactArgs,
    #[command(flatten)]
    occurrences: OccurrenceArgs,
}

/// The options that change an event, a task or a memo.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Events, tasks and memos")]
struct ChangeArgs {
    /// The new summary
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    summary: Option<String>,
    /// The new start: a time, a date, or both
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    start: Option<String>,
    /// The new end; for a task, when it is due
    #[arg(long, visible_alias = "due", value_name = "TIME", conflicts_with = "from")]
    end: Option<String>,
    /// The new duration
    #[arg(
        long = "for",
        value_name = "DURATION",
        allow_hyphen_values = true,
        conflicts_with_all = ["end", "from"]
    )]
    length: Option<String>,
    /// Make it an all-day event
    #[arg(long, conflicts_with = "from")]
    all_day: bool,
    /// Move it later or earlier: +1h, "-2 days"
    #[arg(
        long = "move",
        value_name = "DURATION",
        allow_hyphen_values = true,
        conflicts_with = "from"
    )]
    shift: Option<String>,
    /// The new place
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    location: Option<String>,
    /// The new description
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    description: Option<String>,
    /// Replace its categories (repeatable)
    #[arg(long = "category", value_name = "TEXT", conflicts_with = "from")]
    categories: Vec<String>,
    /// The new priority: 1 (highest) to 9, or high, medium or low
    #[arg(long, value_name = "NUMBER", conflicts_with = "from")]
    priority: Option<String>,
    /// Replace its alarms (time before the start; repeatable; empty removes all)
    #[arg(long = "alarm", value_name = "DURATION", conflicts_with = "from")]
    alarms: Vec<String>,
    /// The new time zone
    #[arg(long, value_name = "ZONE", conflicts_with = "from")]
    zone: Option<String>,
    /// The new recurrence rule (RRULE); an empty rule removes it
    #[arg(long, value_name = "RULE", conflicts_with = "from")]
    rule: Option<String>,
}

impl ChangeArgs {
    /// Returns whether no option was given that contacts lack; they have categories.
    fn is_empty_for_contact(&self) -> bool {
        let ChangeArgs { summary, location, description, priority, rule, .. } = self;
        let ChangeArgs { start, end, length, shift, zone, .. } = self;
        let texts =
            [summary, location, description, priority, rule, start, end, length, shift, zone];
        texts.into_iter().all(Option::is_none) && !self.all_day && self.alarms.is_empty()
    }

    fn to_edit(&self, fields: &[String]) -> Result<event::EventEdit, event::Error> {
        let mut edit = event::EventEdit::default();
        for field in fields {
            let no_value = || event::Error::UnknownField(field.clone());
            let (name, value) = field.split_once('=').ok_or_else(no_value)?;
            edit.set_field(name.trim(), value)?;
        }
        let categories =
            (!self.categories.is_empty()).then(|| event::join_members(&self.categories));
        let fields = [
            ("summary", &self.summary),
            ("location", &self.location),
            ("description", &self.description),
            ("category", &categories),
            ("priority", &self.priority),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                edit.set_field(name, value)?;
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
        for (time, value) in times.into_iter().filter(|(_, value)| value.is_some()) {
            time.clone_from(value);
        }
        Ok(edit)
    }
}

impl EditArgs {
    pub(crate) fn run(
        mut self,
        context: &mut CommandContext,
    ) -> Result<CommandStatus, CommandFailure> {
        if !self.labels.is_empty() {
            return self.edit_labels(context);
        }
        self.id = match self.ids.as_slice() {
            [id] => id.clone(),
            _ => {
                let message = "only labels are changed on several items at once";
                return Err(CommandFailure::new(FailureKind::Usage, message)
                    .with_hint("change each item with a command of its own"));
            }
        };
        let reader = context.open_reader()?;
        let found = self.occurrences.resolve_item(context, &reader, &self.id);
        let (meta, which) = found.map_err(|failure| explain_message(context, &self.id, failure))?;
        let wrong = |error| edit_failure(error, "edit", &self.id);
        if meta.kind.source_format() == SourceFormat::Vcard {
            if let Some(status) = self.edit_contact(context, &reader, &meta)? {
                return Ok(status);
            }
        } else if let Some(option) = self.contact.given_options().first() {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                format!("{option} cannot change {}", meta.kind.plural()),
            )
            .with_hint("the options under \"Contacts\" of `larder edit --help` change contacts"));
        }
        let edit = self.changes.to_edit(&self.fields).map_err(wrong)?;
        if !edit.is_empty() {
            return self.edit_by_options(context, &reader, &meta, which, &edit);
        }
        if which != OccurrenceSelector::default() {
            return Err(CommandFailure::new(FailureKind::Usage, "no change given").with_hint(
                "add an option such as --set FIELD=TEXT, --start TIME or --move DURATION",
            ));
        }
        let before = reader.items().source_bytes(meta.row)?.unwrap_or_default();
        let calendar_context = meta
            .calendar_context
            .map(|row| reader.items().calendar_context(row))
            .transpose()?
            .flatten();
        let before =
            OriginalItem { bytes: before, calendar_context: calendar_context.unwrap_or_default() };
        let mut store = context.open_store()?;
        let extractor =
            store.extractor_for_collection(&meta.collection, meta.kind.collection_type())?;
        let edited = match &self.from {
            Some(file) => Some(read_edited_file(&extractor, &meta, &before, file)?),
            None => edit_interactively(context, &extractor, &meta, &before)?,
        };
        let Some(EditedItem { item: card, remarks, file }) = edited else {
            return print_unchanged(context, &meta);
        };
        let text = card.bytes().to_vec();
        let detail = format!("{} in {}", meta.handle, meta.collection);
        let mut operation = Operation::new("edit", detail, now_milliseconds());
        let applied = match replace_item(&mut store, &mut operation, &meta, card) {
            Ok(applied) => applied,
            Err(error) => {
                let failure = CommandFailure::from(error);
                return Err(match file {
                    Some(file) => keep_editor_file(failure, file),
                    None => failure,
                });
            }
        };
        for TextDiagnostic { line, kind: what } in remarks {
            context.print_warning(sanitize_line(&format!("line {line}: {what}")));
        }
        match applied.outcomes.first() {
            Some(ChangeOutcome::Updated(_)) => {
                let shown = print_changed(context, &reader, &meta, &text, &applied);
                Ok(CommandFailure::after_commit(shown)?.unwrap_or(CommandStatus::Done))
            }
            Some(ChangeOutcome::Unchanged(_)) => print_unchanged(context, &meta),
            _ => Err(self.conflict_failure(&meta, file, &text)?),
        }
    }

    /// Changes the labels of messages.
    fn edit_labels(&self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let has_other_changes = self.from.is_some()
            || !self.fields.is_empty()
            || !self.contact.given_options().is_empty()
            || !self.occurrences.is_empty()
            || self.changes.to_edit(&[]).map_or(true, |edit| !edit.is_empty());
        if has_other_changes {
            let message = "--label changes messages, and the other options change other items";
            return Err(
                CommandFailure::new(FailureKind::Usage, message).with_hint("give --label alone")
            );
        }
        if self.ids.is_empty() && self.query.is_none() {
            let failure = CommandFailure::new(FailureKind::Usage, "missing <ID>... or --query");
            return Err(match self.labels.iter().find(|label| label.starts_with("--")) {
                Some(option) => failure.with_hint(format!(
                    "--label takes all words that follow: write {} before it",
                    sanitize_line(option)
                )),
                None => failure.with_hint("larder edit ID --label +NAME"),
            });
        }
        message_labels::edit_labels(context, &self.ids, self.query.as_deref(), &self.labels)
    }

    /// Changes an event, a task or a memo, or some of its occurrences, with options.
    fn edit_by_options(
        &self,
        context: &mut CommandContext,
        reader: &Reader,
        meta: &ItemMeta,
        which: OccurrenceSelector,
        edit: &event::EventEdit,
    ) -> Result<CommandStatus, CommandFailure> {
        if !meta.kind.has_field_edits() {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                format!("options cannot change {}", meta.kind.plural()),
            )
            .with_hint(format!("to change it in an editor: larder edit {}", self.id)));
        }
        let uid = random_bytes().map_err(|error| CommandFailure::new(FailureKind::Store, error))?;
        let uid = uid_from_random(uid);
        let mut store = context.open_store()?;
        let detail = format!("{} in {}", meta.handle, meta.collection);
        let mut operation = Operation::new("edit", detail, now_milliseconds()).all_or_nothing();
        let request = event::OccurrenceEdit { selector: which, edit, new_uid: &uid };
        let locale = &context.settings.user_locale;
        let done = event::edit_occurrences(&mut store, &mut operation, meta, request, locale);
        let done = done.map_err(|error| edit_failure(error, "edit", &self.id))?;
        check_not_outdated(&done)?;
        let Some(operation) = done.operation else { return print_unchanged(context, meta) };
        if done.orphaned_overrides > 0 {
            let kept = format_count(done.orphaned_overrides as u64, "override");
            context.print_warning(format!("kept {kept} that the rule does not contain"));
        }
        if done.diverged_overrides > 0 {
            let kept = format_count(done.diverged_overrides as u64, "override");
            context.print_warning(format!("{kept}: values that differ from the series are kept"));
        }
        // A moved override is another item.
        let is_removed = done.removed.contains(&meta.handle);
        let replacement = done.changed.first().or(done.added.first()).filter(|_| is_removed);
        let handle = replacement.copied().unwrap_or(meta.handle);
        let new: Vec<String> = done.added.iter().map(ToString::to_string).collect();
        if context.format == OutputFormat::Json {
            let object = json!({
                "id": handle.to_string(), "changed": true, "added": new,
                "operation": operation.to_number()
            });
            context.out.print_json(&object)?;
            return Ok(CommandStatus::Done);
        }
        let mut show = || {
            let after = store.open_reader()?;
            let letters = after.items().unique_prefix_len(handle)?;
            let name = display_name(reader, meta)?;
            context.out.print_line(format!("{handle:.letters$}  {name}  changed"))?;
            for handle in done.added.iter().chain(&done.changed) {
                print_new_time(context, &after, *handle)?;
            }
            Ok(CommandStatus::Done)
        };
        Ok(CommandFailure::after_commit(show())?.unwrap_or(CommandStatus::Done))
    }

    /// The failure for an item that another program changed first. Keeps the text.
    fn conflict_failure(
        &self,
        meta: &ItemMeta,
        file: Option<TempPath>,
        text: &[u8],
    ) -> Result<CommandFailure, CommandFailure> {
        let kept = match file.map(TempPath::keep) {
            Some(Ok(path)) => path,
            _ => keep_text(meta, text)?,
        };
        let (id, kept) = (&self.id, kept.display());
        let what = "conflict: another program modified the item";
        Ok(CommandFailure::new(FailureKind::Input, what).with_hint(format!("your text is kept in {kept}")).with_hint(format!(
            "`larder show {id}` shows the current version; to use yours: larder edit {id} --from {kept}"
        )))
    }
}

/// Prints the new time of an item.
fn print_new_time(
    context: &mut CommandContext,
    reader: &Reader,
    handle: Handle,
) -> Result<(), CommandFailure> {
    let Some(prefix) = HandlePrefix::parse(&handle.to_string()) else { return Ok(()) };
    let Some(meta) = reader.items().find_by_handle(prefix, 1)?.pop() else { return Ok(()) };
    let letters = reader.items().unique_prefix_len(handle)?;
    let event::ItemTimes { start, end } = event::read_item_times(reader, &meta)?;
    let user_locale = &context.settings.user_locale;
    let when = time_display::format_times(meta.kind, start.as_ref(), end.as_ref(), user_locale);
    let rule = event::read_rrule(reader, &meta)?;
    let own_time = start.as_ref().or(end.as_ref());
    let rule =
        rule.map(|rule| format!(", {}", time_display::format_rule(&rule, own_time, user_locale)));
    let rule = rule.unwrap_or_default();
    let when = when.unwrap_or_else(|| "no time".into());
    Ok(context.out.print_line(format!("  {handle:.letters$}  {when}{}", sanitize_line(&rule)))?)
}

fn print_changed(
    context: &mut CommandContext,
    reader: &Reader,
    meta: &ItemMeta,
    text: &[u8],
    applied: &AppliedBatch,
) -> Result<CommandStatus, CommandFailure> {
    if context.format == OutputFormat::Json {
        print_result_json(context, meta, true, applied.seq)?;
    } else {
        let (handle, letters) = (meta.handle, reader.items().unique_prefix_len(meta.handle)?);
        context
            .out
            .print_line(format!("{handle:.letters$}  {}  changed", name_from_bytes(text)))?;
    }
    Ok(CommandStatus::Done)
}

fn print_unchanged(
    context: &mut CommandContext,
    meta: &ItemMeta,
) -> Result<CommandStatus, CommandFailure> {
    if context.format == OutputFormat::Json {
        print_result_json(context, meta, false, meta.seq)?;
    } else {
        context.print_note("no changes");
    }
    Ok(CommandStatus::Done)
}

fn print_result_json(
    context: &mut CommandContext,
    meta: &ItemMeta,
    changed: bool,
    seq: Seq,
) -> Result<(), CommandFailure> {
    let id = meta.handle.to_string();
    Ok(context.out.print_json(&json!({ "id": id, "changed": changed, "seq": seq }))?)
}

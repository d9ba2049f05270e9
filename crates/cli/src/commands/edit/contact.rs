//! `larder edit` of a contact with options.

use super::{EditArgs, print_changed, print_unchanged};
use crate::args::OutputFormat;
use crate::contact_args::{contact_edit_failure, print_contact_fields};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::occurrence_args::conflict_failure;
use larder_edit::contact_edit::{ContactEdit, ContactEditError};
use larder_edit::{add_missing_uid, replace_item};
use larder_store::{ChangeOutcome, ItemMeta, Operation, Reader};

impl EditArgs {
    /// Changes fields of a contact. Returns `None` if no option was given.
    pub(super) fn edit_contact(
        &self,
        context: &mut CommandContext,
        reader: &Reader,
        meta: &ItemMeta,
    ) -> Result<Option<CommandStatus>, CommandFailure> {
        if !self.occurrences.is_empty() || !self.changes.is_empty_for_contact() {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                "the options for events, tasks and memos cannot change contacts",
            )
            .with_hint("use --set FIELD=TEXT, for example --set mobile=NUMBER, or the options under \"Contacts\" of `larder edit --help`"));
        }
        let failed = |error| contact_edit_failure(&error, &self.id);
        let edit = self.to_contact_edit().map_err(failed)?;
        if edit.is_empty() {
            return Ok(None);
        }
        let before = reader.items().source_bytes(meta.row)?.unwrap_or_default();
        let after = edit.apply(&before).map_err(failed)?;
        if after == before {
            return print_unchanged(context, meta).map(Some);
        }
        let mut store = context.open_store()?;
        let extractor =
            store.extractor_for_collection(&meta.collection, meta.kind.collection_type())?;
        let parsed = extractor.parse_contact(after);
        let parsed = parsed.and_then(|card| add_missing_uid(&extractor, card, &meta.uid));
        let card = parsed.map_err(|rejected| {
            let problem = rejected.problem;
            CommandFailure::new(FailureKind::Input, format!("line {}: {problem}", problem.line))
        })?;
        let after = card.bytes().to_vec();
        let detail = format!("{} in {}", meta.handle, meta.collection);
        let mut operation = Operation::new("edit", detail, now_milliseconds());
        let applied = replace_item(&mut store, &mut operation, meta, card)?;
        match applied.outcomes.first() {
            Some(ChangeOutcome::Updated(_)) => {}
            Some(ChangeOutcome::Unchanged(_)) => return print_unchanged(context, meta).map(Some),
            _ => return Err(conflict_failure()),
        }
        let mut show = || {
            let status = print_changed(context, reader, meta, &after, &applied)?;
            if context.format != OutputFormat::Json {
                print_contact_fields(&mut context.out, &after, &edit.field_names())?;
            }
            Ok(status)
        };
        let shown = CommandFailure::after_commit(show())?;
        Ok(Some(shown.unwrap_or(CommandStatus::Done)))
    }

    fn to_contact_edit(&self) -> Result<ContactEdit, ContactEditError> {
        let mut edit = ContactEdit::default();
        for field in &self.fields {
            let (name, text) = field.split_once('=').ok_or_else(|| {
                ContactEditError::UnknownField { name: field.clone(), suggestion: None }
            })?;
            edit.set_field(name, text)?;
        }
        self.contact.add_to_edit(&mut edit)?;
        let categories = &self.changes.categories;
        if !categories.is_empty() {
            edit.set_members("categories", categories)?;
        }
        Ok(edit)
    }
}

//! `larder add` of a contact with options.

use super::{AddArgs, input_failure};
use crate::args::OutputFormat;
use crate::contact_args::{contact_edit_failure, print_contact_fields};
use crate::context::{CommandContext, random_bytes};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::machine_time::now_milliseconds;
use larder_edit::AddedItem;
use larder_edit::contact_edit::{ContactEdit, ContactEditError};
use larder_edit::item_text::{Error, uid_from_random};
use larder_store::{CollectionType, Kind, Operation, Store};

impl AddArgs {
    /// Adds a contact whose name is the text, with the values of the options.
    pub(super) fn add_contact(
        &self,
        context: &mut CommandContext,
    ) -> Result<CommandStatus, CommandFailure> {
        if let Some(option) = self.options.first_event_option() {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                format!("{option} is an option of events, tasks and memos"),
            )
            .with_hint("`larder add --help` lists the options of contacts"));
        }
        let failed = |error: ContactEditError| contact_edit_failure(&error, "");
        let edit = self.to_contact_edit().map_err(failed)?;
        let random =
            random_bytes().map_err(|error| input_failure("a new UID", &Error::Random(error)))?;
        let bytes = edit.to_card(&uid_from_random(random)).map_err(failed)?;
        let mut store = context.open_or_create_store()?;
        let collection_type = CollectionType::AddressBook;
        let into = self.target_collection(collection_type);
        let prepared = store
            .extractor_for_collection(into, collection_type)?
            .parse_contact(bytes)
            .map_err(|rejected| {
                let problem = rejected.problem;
                CommandFailure::new(FailureKind::Input, format!("line {}: {problem}", problem.line))
            })?;
        let detail = format!("{} into {into}", Kind::Contact.name());
        let mut operation = Operation::new("add", detail, now_milliseconds());
        let mut print = |store: &Store, added: AddedItem| {
            self.print_added(context, store, into, &added)?;
            if context.format != OutputFormat::Json {
                let mut fields = edit.field_names();
                fields.retain(|name| *name != "full_name");
                print_contact_fields(&mut context.out, &added.bytes, &fields)?;
            }
            Ok::<(), CommandFailure>(())
        };
        larder_edit::add_items(&mut store, &mut operation, into, vec![prepared], &mut print)?;
        Ok(CommandStatus::Done)
    }

    fn to_contact_edit(&self) -> Result<ContactEdit, ContactEditError> {
        let mut edit = ContactEdit::default();
        let words: Vec<_> = self.text.iter().map(|word| word.to_string_lossy()).collect();
        let name = words.join(" ");
        if !name.trim().is_empty() {
            edit.set_field("full_name", &name)?;
        }
        self.contact.add_to_edit(&mut edit)?;
        let categories = &self.options.categories;
        if !categories.is_empty() {
            edit.set_members("categories", categories)?;
        }
        Ok(edit)
    }
}

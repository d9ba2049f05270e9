//! The options that describe a contact, and the errors of changes of contacts.
//!
//! Separate from the commands because `add` and `edit` take the same options.

use crate::failure::{CommandFailure, FailureKind};
use crate::output::{OutputStream, sanitize_line};
use larder_edit::contact_edit::{ContactEdit, ContactEditError};
use larder_format::contact::Contact;
use larder_format::field::find_contact_field;

/// The options that describe a contact.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Contacts")]
pub(crate) struct ContactArgs {
    /// The full name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// A phone number: mobile=NUMBER, work=NUMBER, or NUMBER (repeatable)
    #[arg(long = "phone", value_name = "[LABEL=]NUMBER")]
    phones: Vec<String>,
    /// An e-mail address: home=ADDRESS, or ADDRESS (repeatable)
    #[arg(long = "email", value_name = "[LABEL=]ADDRESS")]
    emails: Vec<String>,
    /// A postal address: home=TEXT, or TEXT (repeatable)
    #[arg(long = "address", value_name = "[LABEL=]TEXT")]
    addresses: Vec<String>,
    /// A web page (repeatable)
    #[arg(long = "url", value_name = "[LABEL=]URL")]
    urls: Vec<String>,
    /// The organisation
    #[arg(long, value_name = "TEXT")]
    org: Option<String>,
    /// The job title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The birthday: YYYY-MM-DD, or --MM-DD without the year
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    birthday: Option<String>,
    /// A nickname
    #[arg(long, value_name = "TEXT")]
    nickname: Option<String>,
    /// A note
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl ContactArgs {
    /// Returns the names of the options that were given.
    pub(crate) fn given_options(&self) -> Vec<&'static str> {
        let ContactArgs {
            name,
            phones,
            emails,
            addresses,
            urls,
            org,
            title,
            birthday,
            nickname,
            note,
        } = self;
        let options = [
            ("--name", name.is_some()),
            ("--phone", !phones.is_empty()),
            ("--email", !emails.is_empty()),
            ("--address", !addresses.is_empty()),
            ("--url", !urls.is_empty()),
            ("--org", org.is_some()),
            ("--title", title.is_some()),
            ("--birthday", birthday.is_some()),
            ("--nickname", nickname.is_some()),
            ("--note", note.is_some()),
        ];
        options.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect()
    }

    /// Adds the options to the changes.
    pub(crate) fn add_to_edit(&self, edit: &mut ContactEdit) -> Result<(), ContactEditError> {
        let single = [
            ("full_name", &self.name),
            ("org", &self.org),
            ("title", &self.title),
            ("birth_date", &self.birthday),
            ("nickname", &self.nickname),
            ("note", &self.note),
        ];
        for (field, value) in single {
            if let Some(value) = value {
                edit.set_field(field, value)?;
            }
        }
        let labelled = [
            ("phone", &self.phones),
            ("email", &self.emails),
            ("address", &self.addresses),
            ("url", &self.urls),
        ];
        for (field, values) in labelled {
            for value in values {
                edit.set_labelled(field, value)?;
            }
        }
        Ok(())
    }
}

/// The failure for a change of a contact. Hints repeat the command for `subject`, the ID of the
/// contact.
pub(crate) fn contact_edit_failure(error: &ContactEditError, subject: &str) -> CommandFailure {
    let usage = CommandFailure::new(FailureKind::Usage, sanitize_line(&error.to_string()));
    match error {
        ContactEditError::UnknownField { suggestion: Some(name), .. } => {
            usage.with_hint(format!("did you mean {name}?"))
        }
        ContactEditError::UnknownField { .. } => usage
            .with_hint("write --set FIELD=TEXT, for example --set mobile=NUMBER or --set work.email=ADDRESS")
            .with_hint("`larder fields` lists the fields"),
        ContactEditError::NotEditable { .. } => {
            usage.with_hint(format!("to change the card in an editor: larder edit {subject}"))
        }
        ContactEditError::LabelWithoutField { label } => usage
            .with_hint(format!("write {label}.phone, {label}.email, {label}.address or {label}.url")),
        ContactEditError::SeveralValues { choices, .. } => {
            choices.iter().fold(usage, |failure, (name, value)| {
                failure.with_hint(sanitize_line(&format!("--set \"{name}=TEXT\" replaces {value}")))
            })
        }
        ContactEditError::DamagedCard => {
            CommandFailure::new(FailureKind::Input, error)
                .with_hint(format!("to correct the card in an editor: larder edit {subject}"))
        }
        ContactEditError::EmptyName => {
            usage.with_hint("for example: larder add --kind contact \"Anna Berger\"")
        }
        _ => usage,
    }
}

/// Prints the values of these fields of a card.
pub(crate) fn print_contact_fields(
    out: &mut OutputStream,
    card: &[u8],
    fields: &[&str],
) -> std::io::Result<()> {
    let card = Contact::parse(card);
    for field in fields.iter().filter_map(|name| find_contact_field(name)) {
        let labels = card.value_labels(field);
        for (at, value) in card.values(field).iter().enumerate() {
            let label = labels.get(at).cloned().flatten();
            let label = label.map(|label| format!(" ({label})")).unwrap_or_default();
            let name = field.name;
            out.print_line(format!("  {name}: {}", sanitize_line(&format!("{value}{label}"))))?;
        }
    }
    Ok(())
}

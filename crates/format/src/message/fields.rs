//! The table of fields of messages, and their values in a message.
//!
//! Separate from `headers`, which reads the header: these are the names under which lists, JSON and
//! `--fields` show its values.

use crate::field::FieldSource::Properties;
use crate::field::FieldType::{Date, Email, Text, Uid};
use crate::field::{Field, field_row};
use crate::message::{MailAddress, Message, MessageDate};

/// All fields of messages.
#[rustfmt::skip] // A table is read by its columns.
pub const MESSAGE_FIELDS: &[Field] = &[
    field_row(400, "message_id", Uid, Properties(&["Message-ID"]), "the message's identifier, without angle brackets").with_aliases(&["msgid", "mid"]),
    field_row(401, "date", Date, Properties(&["Date"]), "the time at which the message was sent, else received"),
    field_row(402, "subject", Text, Properties(&["Subject"]), "subject").searched_by_default(),
    field_row(403, "from", Email, Properties(&["From"]), "the sender: name and address").multi_valued().searched_by_default(),
    field_row(404, "to", Email, Properties(&["To"]), "the recipients").multi_valued().searched_by_default(),
    field_row(405, "cc", Email, Properties(&["Cc"]), "the recipients of copies").multi_valued().searched_by_default(),
    field_row(406, "bcc", Email, Properties(&["Bcc"]), "the recipients that others do not see").multi_valued().searched_by_default(),
    field_row(407, "reply_to", Email, Properties(&["Reply-To"]), "the addresses for answers").multi_valued(),
    field_row(408, "list_id", Text, Properties(&["List-Id"]), "the mailing list"),
    field_row(409, "references", Uid, Properties(&["References"]), "the messages above this one in the thread, the oldest first").multi_valued(),
    field_row(410, "in_reply_to", Uid, Properties(&["In-Reply-To"]), "the messages that this one answers").multi_valued(),
    field_row(411, "attachment", Text, Properties(&["Content-Disposition"]), "the names of the attached files").multi_valued(),
    field_row(412, "body", Text, Properties(&["Content-Type"]), "the text of the message").searched_by_default(),
];

impl Message {
    /// Returns the values of a field of [`MESSAGE_FIELDS`] in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        let headers = &self.headers;
        let addresses = |all: &[MailAddress]| all.iter().map(ToString::to_string).collect();
        let mut values: Vec<String> = match field.name {
            "message_id" => headers.message_id.iter().cloned().collect(),
            "date" => headers.date.map(MessageDate::to_rfc3339).into_iter().collect(),
            "subject" => headers.subject.iter().cloned().collect(),
            "from" => addresses(&headers.from),
            "to" => addresses(&headers.to),
            "cc" => addresses(&headers.cc),
            "bcc" => addresses(&headers.bcc),
            "reply_to" => addresses(&headers.reply_to),
            "list_id" => headers.list_id.iter().cloned().collect(),
            "references" => headers.references.clone(),
            "in_reply_to" => headers.in_reply_to.clone(),
            "attachment" => {
                self.attachments().filter_map(|(_, part)| part.file_name.clone()).collect()
            }
            "body" => vec![self.body_text()],
            _ => Vec::new(),
        };
        values.retain(|value| !value.is_empty());
        values
    }
}

//! The texts of a message that words are searched in, as a set.
//!
//! Separate from the query, because the index of words and the tests of messages take such sets,
//! too.

use std::fmt;

/// A set of the texts of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MailTextFields(u16);

/// The texts and their names.
const TEXT_FIELD_NAMES: [(MailTextFields, &str); 13] = [
    (MailTextFields::FROM, "from"),
    (MailTextFields::TO, "to"),
    (MailTextFields::CC, "cc"),
    (MailTextFields::BCC, "bcc"),
    (MailTextFields::SUBJECT, "subject"),
    (MailTextFields::BODY, "body"),
    (MailTextFields::EMBEDDED, "embed"),
    (MailTextFields::FILE, "file"),
    (MailTextFields::MIME, "mime"),
    (MailTextFields::LIST, "list"),
    (MailTextFields::KEYWORD, "keyword"),
    (MailTextFields::LANGUAGE, "lang"),
    (MailTextFields::COMMITTER, "committer"),
];

impl MailTextFields {
    /// The addresses and names of the header From.
    pub const FROM: MailTextFields = MailTextFields(1);
    /// The addresses and names of the header To.
    pub const TO: MailTextFields = MailTextFields(1 << 1);
    /// The addresses and names of the header Cc.
    pub const CC: MailTextFields = MailTextFields(1 << 2);
    /// The addresses and names of the header Bcc.
    pub const BCC: MailTextFields = MailTextFields(1 << 3);
    /// The subject.
    pub const SUBJECT: MailTextFields = MailTextFields(1 << 4);
    /// The text of the message itself.
    pub const BODY: MailTextFields = MailTextFields(1 << 5);
    /// The text of attachments and of forwarded messages.
    pub const EMBEDDED: MailTextFields = MailTextFields(1 << 6);
    /// The file names of attachments.
    pub const FILE: MailTextFields = MailTextFields(1 << 7);
    /// The MIME types of the parts.
    pub const MIME: MailTextFields = MailTextFields(1 << 8);
    /// The id of the mailing list.
    pub const LIST: MailTextFields = MailTextFields(1 << 9);
    /// The keywords of the headers X-Label, X-Keywords and Keywords, which mu calls tags.
    pub const KEYWORD: MailTextFields = MailTextFields(1 << 10);
    /// The language of the text.
    pub const LANGUAGE: MailTextFields = MailTextFields(1 << 11);
    /// Commits: the name and the address of the committer. The author is the sender, and the names
    /// of files are the paths.
    pub const COMMITTER: MailTextFields = MailTextFields(1 << 12);
    /// The recipients.
    pub const RECIPIENTS: MailTextFields =
        MailTextFields::TO.union(MailTextFields::CC).union(MailTextFields::BCC);
    /// The recipients and the sender.
    pub const CONTACTS: MailTextFields = MailTextFields::RECIPIENTS.union(MailTextFields::FROM);
    /// The texts that a word without a field is searched in.
    pub const FREE: MailTextFields = MailTextFields::CONTACTS
        .union(MailTextFields::SUBJECT)
        .union(MailTextFields::BODY)
        .union(MailTextFields::EMBEDDED);

    /// Returns the texts of both sets.
    #[must_use]
    pub const fn union(self, other: MailTextFields) -> MailTextFields {
        MailTextFields(self.0 | other.0)
    }

    /// Returns whether the set has all texts of the other one.
    #[must_use]
    pub const fn contains(self, other: MailTextFields) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns each text of the set, as a set of one.
    pub fn iter(self) -> impl Iterator<Item = MailTextFields> {
        let all = TEXT_FIELD_NAMES.into_iter().map(|(field, _)| field);
        all.filter(move |field| self.contains(*field))
    }
}

impl fmt::Display for MailTextFields {
    /// Writes `any` for the texts of a word without a field, else the names with `+` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == MailTextFields::FREE {
            return f.write_str("any");
        }
        let names = TEXT_FIELD_NAMES.iter().filter(|(field, _)| self.contains(*field));
        for (at, (_, name)) in names.enumerate() {
            write!(f, "{}{name}", if at > 0 { "+" } else { "" })?;
        }
        Ok(())
    }
}

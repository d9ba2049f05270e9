//! The flags of messages, with their names and letters in mu.
//!
//! Separate from the query, because lists and counts name them, too.

/// A flag of a message: of its file name, of its contents, or derived from these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MailFlag {
    /// A draft.
    Draft,
    /// Marked by the user as important.
    Flagged,
    /// Forwarded or bounced.
    Passed,
    /// Answered.
    Replied,
    /// Read.
    Seen,
    /// Moved to the trash.
    Trashed,
    /// Not yet seen by a mail reader.
    New,
    /// Has a signature.
    Signed,
    /// Encrypted.
    Encrypted,
    /// Has an attachment.
    Attachment,
    /// New or not seen.
    Unread,
    /// From a mailing list.
    List,
    /// From or to an address of the user.
    Personal,
    /// Has a part with calendar data.
    Calendar,
}

impl MailFlag {
    /// All flags, with their names and letters in mu.
    pub const ALL: [(MailFlag, &str, char); 14] = [
        (MailFlag::Draft, "draft", 'd'),
        (MailFlag::Flagged, "flagged", 'f'),
        (MailFlag::Passed, "passed", 'p'),
        (MailFlag::Replied, "replied", 'r'),
        (MailFlag::Seen, "seen", 's'),
        (MailFlag::Trashed, "trashed", 't'),
        (MailFlag::New, "new", 'n'),
        (MailFlag::Signed, "signed", 'z'),
        (MailFlag::Encrypted, "encrypted", 'x'),
        (MailFlag::Attachment, "attach", 'a'),
        (MailFlag::Unread, "unread", 'u'),
        (MailFlag::List, "list", 'l'),
        (MailFlag::Personal, "personal", 'q'),
        (MailFlag::Calendar, "calendar", 'c'),
    ];

    /// Returns the name, as mu writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        MailFlag::ALL.iter().find(|(flag, ..)| *flag == self).map_or("", |(_, name, _)| name)
    }

    /// Returns the flag with this name in mu or notmuch, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<MailFlag> {
        let name = if name.eq_ignore_ascii_case("attachment") { "attach" } else { name };
        let mut all = MailFlag::ALL.into_iter();
        all.find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(flag, ..)| flag)
    }
}

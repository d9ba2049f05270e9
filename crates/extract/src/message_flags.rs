//! The states of a message that are kept beside its text: the flags of its files, the properties
//! of its contents, and its priority, in 16 bits.
//!
//! Separate from `message`, which extracts the contents: the flags of files change while the text
//! stays as it is.

use larder_format::maildir_name::{MaildirFlag, MaildirFlags};
use larder_format::message::MessagePriority;

/// A state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum MessageFlag {
    /// A draft.
    Draft = 1,
    /// Marked by the user as important.
    Flagged = 1 << 1,
    /// Forwarded or bounced.
    Passed = 1 << 2,
    /// Answered.
    Replied = 1 << 3,
    /// Read.
    Seen = 1 << 4,
    /// Moved to the trash.
    Trashed = 1 << 5,
    /// In a folder `new`.
    New = 1 << 6,
    /// Signed, by OpenPGP or S/MIME.
    Signed = 1 << 7,
    /// Encrypted: its text is not indexed.
    Encrypted = 1 << 8,
    /// It has an attachment.
    Attachment = 1 << 9,
    /// Sent to a mailing list.
    List = 1 << 10,
    /// An address of the user is among the sender and the recipients.
    Personal = 1 << 11,
    /// It has a part with calendar data.
    Calendar = 1 << 12,
}

impl MessageFlag {
    /// All flags with their names, as mu writes them, in the order of the bits.
    pub const ALL: [(MessageFlag, &'static str); 13] = [
        (MessageFlag::Draft, "draft"),
        (MessageFlag::Flagged, "flagged"),
        (MessageFlag::Passed, "passed"),
        (MessageFlag::Replied, "replied"),
        (MessageFlag::Seen, "seen"),
        (MessageFlag::Trashed, "trashed"),
        (MessageFlag::New, "new"),
        (MessageFlag::Signed, "signed"),
        (MessageFlag::Encrypted, "encrypted"),
        (MessageFlag::Attachment, "attach"),
        (MessageFlag::List, "list"),
        (MessageFlag::Personal, "personal"),
        (MessageFlag::Calendar, "calendar"),
    ];
}

/// The bits of the flags that come from the files of a message.
const FILE_FLAGS: u16 = 0x7f;
/// The first of the two bits of the priority: 0 none, 1 low, 2 normal, 3 high.
const PRIORITY_SHIFT: u32 = 14;

/// The set of the states of a message, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MessageFlags(u16);

impl MessageFlags {
    /// Returns the set with these stored bits.
    #[must_use]
    pub fn from_bits(bits: u16) -> MessageFlags {
        MessageFlags(bits)
    }

    /// Returns the bits to store.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set with a flag if `is_set`.
    #[must_use]
    pub fn with_flag(self, flag: MessageFlag, is_set: bool) -> MessageFlags {
        if is_set { MessageFlags(self.0 | flag as u16) } else { self }
    }

    /// Returns the set with the flags of the files, and with no others that come from files.
    #[must_use]
    pub fn with_file_flags(self, flags: MaildirFlags) -> MessageFlags {
        let pairs = [
            (MaildirFlag::Draft, MessageFlag::Draft),
            (MaildirFlag::Flagged, MessageFlag::Flagged),
            (MaildirFlag::Passed, MessageFlag::Passed),
            (MaildirFlag::Replied, MessageFlag::Replied),
            (MaildirFlag::Seen, MessageFlag::Seen),
            (MaildirFlag::Trashed, MessageFlag::Trashed),
            (MaildirFlag::New, MessageFlag::New),
        ];
        pairs.into_iter().fold(self.without_file_flags(), |set, (file_flag, flag)| {
            set.with_flag(flag, flags.contains(file_flag))
        })
    }

    /// Returns the set without the flags that come from files.
    #[must_use]
    pub fn without_file_flags(self) -> MessageFlags {
        MessageFlags(self.0 & !FILE_FLAGS)
    }

    /// Returns the set with this priority.
    #[must_use]
    pub fn with_priority(self, priority: Option<MessagePriority>) -> MessageFlags {
        let number = match priority {
            None => 0,
            Some(MessagePriority::Low) => 1,
            Some(MessagePriority::Normal) => 2,
            Some(MessagePriority::High) => 3,
        };
        MessageFlags(self.0 & ((1 << PRIORITY_SHIFT) - 1) | number << PRIORITY_SHIFT)
    }

    /// Returns the flags of both sets.
    #[must_use]
    pub fn union(self, other: MessageFlags) -> MessageFlags {
        MessageFlags(self.0 | other.0)
    }

    /// Returns whether the set has a flag.
    #[must_use]
    pub fn contains(self, flag: MessageFlag) -> bool {
        self.0 & flag as u16 != 0
    }

    /// Returns whether the message is not read yet: none of its files is seen.
    #[must_use]
    pub fn is_unread(self) -> bool {
        !self.contains(MessageFlag::Seen)
    }

    /// Returns the priority; a message without one is normal.
    #[must_use]
    pub fn priority(self) -> MessagePriority {
        match self.0 >> PRIORITY_SHIFT {
            1 => MessagePriority::Low,
            3 => MessagePriority::High,
            _ => MessagePriority::Normal,
        }
    }

    /// Returns the names of the flags, `unread` last.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let set = MessageFlag::ALL.into_iter().filter(move |(flag, _)| self.contains(*flag));
        let unread = self.is_unread().then_some("unread");
        set.map(|(_, name)| name).chain(unread)
    }
}

//! The names of files in a maildir (maildir(5), and its extensions by Dovecot and mutt).
//!
//! A name is `BASE:2,FLAGS`. The base name never changes; a changed flag or folder renames the
//! file. Separate from `message`, because a name says nothing about the bytes of the file.

use std::fmt;

/// The separators in front of the flags: that of the standard, and those of file systems that
/// forbid a colon in a name (VFAT).
const SEPARATORS: &[&str] = &[":2,", "!2,", ";2,"];

/// A set of flags of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MaildirFlags(u8);

/// A flag of a message, in the file name or by the folder `new`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaildirFlag {
    /// D: a draft.
    Draft = 1,
    /// F: marked by the user as important.
    Flagged = 2,
    /// P: forwarded or bounced ("passed").
    Passed = 4,
    /// R: answered.
    Replied = 8,
    /// S: read.
    Seen = 16,
    /// T: moved to the trash.
    Trashed = 32,
    /// No letter: in the folder `new`, and not yet seen by a mail reader.
    New = 64,
}

impl MaildirFlag {
    /// All flags, in the order of their letters.
    pub const ALL: [MaildirFlag; 7] = [
        MaildirFlag::Draft,
        MaildirFlag::Flagged,
        MaildirFlag::Passed,
        MaildirFlag::Replied,
        MaildirFlag::Seen,
        MaildirFlag::Trashed,
        MaildirFlag::New,
    ];

    /// Returns the name, as mu and notmuch write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MaildirFlag::Draft => "draft",
            MaildirFlag::Flagged => "flagged",
            MaildirFlag::Passed => "passed",
            MaildirFlag::Replied => "replied",
            MaildirFlag::Seen => "seen",
            MaildirFlag::Trashed => "trashed",
            MaildirFlag::New => "new",
        }
    }

    /// Returns the letter in file names; N, which no file name has, for [`MaildirFlag::New`].
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            MaildirFlag::Draft => 'D',
            MaildirFlag::Flagged => 'F',
            MaildirFlag::Passed => 'P',
            MaildirFlag::Replied => 'R',
            MaildirFlag::Seen => 'S',
            MaildirFlag::Trashed => 'T',
            MaildirFlag::New => 'N',
        }
    }
}

impl MaildirFlags {
    /// Returns the flags of a set of letters; other letters are ignored.
    #[must_use]
    pub fn from_letters(letters: &[u8]) -> MaildirFlags {
        let flags = MaildirFlag::ALL
            .into_iter()
            .filter(|flag| *flag != MaildirFlag::New && letters.contains(&(flag.letter() as u8)));
        flags.fold(MaildirFlags::default(), MaildirFlags::with_flag)
    }

    /// Returns the set with another flag.
    #[must_use]
    pub fn with_flag(self, flag: MaildirFlag) -> MaildirFlags {
        MaildirFlags(self.0 | flag as u8)
    }

    /// Returns the flags of both sets.
    #[must_use]
    pub fn union(self, other: MaildirFlags) -> MaildirFlags {
        MaildirFlags(self.0 | other.0)
    }

    /// Returns whether the set has a flag.
    #[must_use]
    pub fn contains(self, flag: MaildirFlag) -> bool {
        self.0 & flag as u8 != 0
    }

    /// Returns the flags, in the order of their letters.
    pub fn iter(self) -> impl Iterator<Item = MaildirFlag> {
        MaildirFlag::ALL.into_iter().filter(move |flag| self.contains(*flag))
    }
}

impl fmt::Display for MaildirFlags {
    /// Writes the names, separated by spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, flag) in self.iter().enumerate() {
            write!(f, "{}{}", if at > 0 { " " } else { "" }, flag.name())?;
        }
        Ok(())
    }
}

/// The name of a file in a maildir.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaildirName<'a> {
    /// The unique part, which stays when flags change.
    pub base: &'a [u8],
    /// The letters after the separator.
    pub letters: &'a [u8],
}

impl<'a> MaildirName<'a> {
    /// Parses a file name, without its folder. A name without a separator has no flags.
    #[must_use]
    pub fn parse(name: &'a [u8]) -> MaildirName<'a> {
        let is_separator =
            |window: &[u8]| SEPARATORS.iter().any(|separator| separator.as_bytes() == window);
        match name.windows(3).rposition(is_separator) {
            Some(at) => MaildirName {
                base: name.get(..at).unwrap_or_default(),
                letters: name.get(at + 3..).unwrap_or_default(),
            },
            None => MaildirName { base: name, letters: &[] },
        }
    }

    /// Returns the flags; `is_new` tells whether the file is in the folder `new`.
    #[must_use]
    pub fn flags(&self, is_new: bool) -> MaildirFlags {
        let flags = MaildirFlags::from_letters(self.letters);
        if is_new { flags.with_flag(MaildirFlag::New) } else { flags }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_flags_behind_any_separator() {
        for (name, base, flags) in [
            ("1204.M1P2.host:2,", "1204.M1P2.host", ""),
            ("1204.M1P2.host:2,FS", "1204.M1P2.host", "flagged seen"),
            ("1204.host!2,RST", "1204.host", "replied seen trashed"),
            ("1204.host;2,DPx", "1204.host", "draft passed"),
            ("1204.host,S=10:2,aS", "1204.host,S=10", "seen"),
            ("1204:2,old:2,S", "1204:2,old", "seen"),
            ("1204.host:1,S", "1204.host:1,S", ""),
            ("", "", ""),
        ] {
            let parsed = MaildirName::parse(name.as_bytes());
            assert_eq!(parsed.base, base.as_bytes(), "{name}");
            assert_eq!(parsed.flags(false).to_string(), flags, "{name}");
        }
        let new = MaildirName::parse(b"1.host").flags(true);
        assert!(new.contains(MaildirFlag::New) && !new.contains(MaildirFlag::Seen));
    }
}

//! Where the rows of a test come from that were looked up before any block is tested.
//!
//! Separate from `block_test`, to which all of them are alike: only the plan of a search names it.

/// The source of rows that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOrigin {
    /// The terms that begin with a text.
    TermRange,
    /// The words of the dictionary that match.
    Dictionary,
    /// The terms of a field that match.
    FieldTerms,
    /// The values of a header that match.
    HeaderValues,
    /// A path, and the paths below it.
    PathTerms,
    /// The names of messages.
    MessageIds,
    /// The names of all messages, each of which was compared.
    AllMessageIds,
    /// The subjects of all messages, each of which was compared.
    AllSubjects,
    /// The messages of threads.
    Threads,
    /// The table of files.
    Files,
    /// The messages that an earlier search found.
    EarlierSearch,
}

impl RowOrigin {
    /// Returns what was read, for a person.
    pub(super) fn describe(self) -> &'static str {
        match self {
            RowOrigin::TermRange => "posting lists of a range of terms",
            RowOrigin::Dictionary => "posting lists of the words in the dictionary that match",
            RowOrigin::FieldTerms => "posting lists of the terms of the field that match",
            RowOrigin::HeaderValues => "posting lists of the values of the header that match",
            RowOrigin::PathTerms => "posting lists of the path and of the paths below it",
            RowOrigin::MessageIds => "table of Message-IDs",
            RowOrigin::AllMessageIds => "all Message-IDs",
            RowOrigin::AllSubjects => "all subjects",
            RowOrigin::Threads => "table of threads",
            RowOrigin::Files => "table of files",
            RowOrigin::EarlierSearch => "known messages",
        }
    }
}

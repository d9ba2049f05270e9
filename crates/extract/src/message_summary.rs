//! The header values of a message that lists and threads show, packed into its row, so that a list
//! reads no file.
//!
//! | value | bytes |
//! |---|---|
//! | date | seconds since 1970, eight bytes, little-endian |
//! | size of the file | four bytes, little-endian |
//! | hash of the text | eight bytes |
//! | hash of the file | four bytes |
//! | subject, list | a text each |
//! | From, To, Cc | a list each: its length, and a name and an address for each person |
//! | references | a list: its length, and a text for each Message-ID |
//! | Bcc, Reply-To | as From |
//! | keywords | as references |
//!
//! A text is its length as a varint, and its bytes. Long values are cut off: a list shows a line.
//!
//! | module | content |
//! |---|---|
//! | `summary_values` | the packed values, read in place |
//!
//! Separate from `stored_fields`, whose values are single fields by number: a list of messages
//! needs all of these, or only the first ones.

mod summary_values;

pub use self::summary_values::{
    AddressValue, AddressValues, PackedSummary, SummaryValues, TextValues,
};

use larder_format::message::MailAddress;
use larder_time::varint::put_unsigned_number;

/// The longest text of a value.
const MAX_TEXT_BYTES: usize = 1000;
/// The number of addresses that are kept of a header.
const MAX_ADDRESSES: usize = 20;
/// The number of references that the summary has: the first one begins the thread, the last is the
/// parent. The tree of a list needs the nearest ones only, and each summary is as long as they are.
const MAX_LISTED_REFERENCES: usize = 60;
/// The number of keywords that are kept.
const MAX_KEYWORDS: usize = 60;

/// The values that lists show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageSummary {
    /// The time, in seconds since 1970; 0: unknown.
    pub date: i64,
    /// The bytes of the file.
    pub size: u32,
    /// A hash of the text and of the header values that are searched: files with the same hash and
    /// the same Message-ID are one message.
    pub text_hash: u64,
    /// A hash of all bytes of the file.
    pub file_hash: u32,
    /// Subject.
    pub subject: String,
    /// The mailing list.
    pub list_id: String,
    /// From.
    pub from: Vec<MailAddress>,
    /// To.
    pub to: Vec<MailAddress>,
    /// Cc.
    pub cc: Vec<MailAddress>,
    /// The messages above this one in its thread, the oldest first; without duplicates.
    pub references: Vec<String>,
    /// Bcc.
    pub bcc: Vec<MailAddress>,
    /// Reply-To.
    pub reply_to: Vec<MailAddress>,
    /// The keywords in the header.
    pub keywords: Vec<String>,
}

impl MessageSummary {
    /// Packs the values.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(self.date.to_le_bytes());
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(self.text_hash.to_le_bytes());
        bytes.extend(self.file_hash.to_le_bytes());
        write_text(&mut bytes, &self.subject);
        write_text(&mut bytes, &self.list_id);
        for addresses in [&self.from, &self.to, &self.cc] {
            write_addresses(&mut bytes, addresses);
        }
        let skipped = self.references.len().saturating_sub(MAX_LISTED_REFERENCES);
        let first = self.references.iter().take(1);
        let kept = first.chain(self.references.iter().skip(1 + skipped));
        put_unsigned_number(&mut bytes, self.references.len().min(MAX_LISTED_REFERENCES) as u64);
        kept.for_each(|id| write_text(&mut bytes, id));
        for addresses in [&self.bcc, &self.reply_to] {
            write_addresses(&mut bytes, addresses);
        }
        let keywords = self.keywords.iter().take(MAX_KEYWORDS);
        put_unsigned_number(&mut bytes, keywords.len() as u64);
        keywords.for_each(|keyword| write_text(&mut bytes, keyword));
        bytes
    }

    /// Unpacks the values; `None` for bytes that [`MessageSummary::to_bytes`] did not write.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<MessageSummary> {
        SummaryValues::read(bytes).map(|values| values.to_summary())
    }

    /// Reads the hash of the text from packed values.
    #[must_use]
    pub fn text_hash_of(bytes: &[u8]) -> Option<u64> {
        bytes.get(12..20).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
    }

    /// Returns the rank of the file among the files of its message. A message has the values of the
    /// file with the least rank: the one with the earliest date, among equal dates one that came
    /// through a mailing list, and of these the one with the least hash. So the values do not
    /// depend on the order in which the files came.
    #[must_use]
    pub fn copy_rank(&self) -> i64 {
        copy_rank(self.date, self.file_hash)
    }

    /// Returns the date in a rank.
    #[must_use]
    pub fn date_of_rank(rank: i64) -> i64 {
        rank >> 31
    }

    /// Reads the rank of the file from packed values, as [`MessageSummary::copy_rank`].
    #[must_use]
    pub fn copy_rank_of(bytes: &[u8]) -> Option<i64> {
        let date = bytes.get(..8).and_then(|bytes| bytes.try_into().ok()).map(i64::from_le_bytes);
        let hash = bytes.get(20..24).and_then(|bytes| bytes.try_into().ok());
        Some(copy_rank(date?, hash.map(u32::from_le_bytes)?))
    }
}

fn copy_rank(date: i64, file_hash: u32) -> i64 {
    date.clamp(0, i64::from(u32::MAX)) << 31 | i64::from(file_hash >> 1)
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    put_unsigned_number(bytes, end as u64);
    bytes.extend_from_slice(text.get(..end).unwrap_or_default().as_bytes());
}

fn write_addresses(bytes: &mut Vec<u8>, addresses: &[MailAddress]) {
    let kept = addresses.iter().take(MAX_ADDRESSES);
    put_unsigned_number(bytes, kept.len() as u64);
    for one in kept {
        write_text(bytes, one.name.as_deref().unwrap_or_default());
        write_text(bytes, &one.address);
    }
}

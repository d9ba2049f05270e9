//! The packed values of a message, read in place.
//!
//! A list of messages keeps the bytes of each row, and copies no text before it is shown: to copy
//! some twenty texts takes longer than to read the row. Separate from `message_summary`, which has
//! the format and the values that a writer packs.

use super::MessageSummary;
use larder_format::message::MailAddress;
use larder_time::varint::VarintReader;

/// The bytes in front of the texts: date, size and hashes.
const FIXED_BYTES: usize = 24;

/// The values that lists show, as the row of a message has them. The bytes are well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedSummary(Box<[u8]>);

impl PackedSummary {
    /// Copies packed values; `None` for bytes that [`MessageSummary::to_bytes`] did not write.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<PackedSummary> {
        SummaryValues::read(bytes).map(|_| PackedSummary(bytes.into()))
    }

    /// Returns the values in place.
    #[must_use]
    pub fn values(&self) -> SummaryValues<'_> {
        SummaryValues::read(&self.0).unwrap_or_default()
    }

    /// Unpacks the values.
    #[must_use]
    pub fn to_summary(&self) -> MessageSummary {
        self.values().to_summary()
    }

    /// Returns the date, in seconds since 1970; 0: unknown.
    #[must_use]
    pub fn date(&self) -> i64 {
        self.0.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }

    /// Returns the subject.
    #[must_use]
    pub fn subject(&self) -> &str {
        let mut texts =
            TextReader { rest: self.0.get(FIXED_BYTES..).unwrap_or_default(), all: None };
        texts.read_text().unwrap_or_default()
    }
}

/// The values of a [`MessageSummary`], read in place.
#[derive(Debug, Clone, Copy, Default)]
pub struct SummaryValues<'b> {
    /// The time, in seconds since 1970; 0: unknown.
    pub date: i64,
    /// The bytes of the file.
    pub size: u32,
    /// The hash of the text.
    pub text_hash: u64,
    /// The hash of all bytes of the file.
    pub file_hash: u32,
    /// Subject.
    pub subject: &'b str,
    /// The mailing list.
    pub list_id: &'b str,
    /// From.
    pub from: AddressValues<'b>,
    /// To.
    pub to: AddressValues<'b>,
    /// Cc.
    pub cc: AddressValues<'b>,
    /// The messages above this one in its thread, the oldest first.
    pub references: TextValues<'b>,
    /// Bcc.
    pub bcc: AddressValues<'b>,
    /// Reply-To.
    pub reply_to: AddressValues<'b>,
    /// The keywords in the header.
    pub keywords: TextValues<'b>,
}

impl<'b> SummaryValues<'b> {
    /// Reads packed values; `None` for bytes that [`MessageSummary::to_bytes`] did not write.
    #[must_use]
    pub fn read(bytes: &'b [u8]) -> Option<SummaryValues<'b>> {
        let (date, rest) = bytes.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (text_hash, rest) = rest.split_first_chunk()?;
        let (file_hash, rest) = rest.split_first_chunk()?;
        let mut texts = TextReader::new(rest);
        Some(SummaryValues {
            date: i64::from_le_bytes(*date),
            size: u32::from_le_bytes(*size),
            text_hash: u64::from_le_bytes(*text_hash),
            file_hash: u32::from_le_bytes(*file_hash),
            subject: texts.read_text()?,
            list_id: texts.read_text()?,
            from: AddressValues(texts.read_list(2)?),
            to: AddressValues(texts.read_list(2)?),
            cc: AddressValues(texts.read_list(2)?),
            references: texts.read_list(1)?,
            bcc: AddressValues(texts.read_list(2)?),
            reply_to: AddressValues(texts.read_list(2)?),
            keywords: texts.read_list(1)?,
        })
    }

    /// Copies the values.
    #[must_use]
    pub fn to_summary(&self) -> MessageSummary {
        let addresses = |values: AddressValues<'_>| values.iter().map(MailAddress::from).collect();
        let texts = |values: TextValues<'_>| values.iter().map(str::to_string).collect();
        MessageSummary {
            date: self.date,
            size: self.size,
            text_hash: self.text_hash,
            file_hash: self.file_hash,
            subject: self.subject.to_string(),
            list_id: self.list_id.to_string(),
            from: addresses(self.from),
            to: addresses(self.to),
            cc: addresses(self.cc),
            references: texts(self.references),
            bcc: addresses(self.bcc),
            reply_to: addresses(self.reply_to),
            keywords: texts(self.keywords),
        }
    }
}

/// A list of texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextValues<'b> {
    count: usize,
    texts: TextReader<'b>,
}

impl<'b> TextValues<'b> {
    /// Returns the texts.
    pub fn iter(self) -> impl Iterator<Item = &'b str> {
        let mut texts = self.texts;
        (0..self.count).map_while(move |_| texts.read_text())
    }
}

/// A list of addresses.
#[derive(Debug, Clone, Copy, Default)]
pub struct AddressValues<'b>(TextValues<'b>);

impl<'b> AddressValues<'b> {
    /// Returns the addresses.
    pub fn iter(self) -> impl Iterator<Item = AddressValue<'b>> {
        let mut texts = self.0.iter();
        std::iter::from_fn(move || {
            let (name, address) = (texts.next()?, texts.next()?);
            Some(AddressValue { name: (!name.is_empty()).then_some(name), address })
        })
    }

    /// Returns the first address.
    #[must_use]
    pub fn first(self) -> Option<AddressValue<'b>> {
        self.iter().next()
    }
}

/// An address with the name of its owner, as [`MailAddress`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressValue<'b> {
    /// The display name.
    pub name: Option<&'b str>,
    /// The address; empty if the header has only a name.
    pub address: &'b str,
}

impl<'b> AddressValue<'b> {
    /// Returns the name, else the address.
    #[must_use]
    pub fn display_name(self) -> &'b str {
        self.name.unwrap_or(self.address)
    }
}

impl From<AddressValue<'_>> for MailAddress {
    fn from(value: AddressValue<'_>) -> MailAddress {
        MailAddress { name: value.name.map(str::to_string), address: value.address.to_string() }
    }
}

/// Reads texts one after the other.
#[derive(Debug, Clone, Copy, Default)]
struct TextReader<'b> {
    rest: &'b [u8],
    /// All bytes, if they are UTF-8: then each part of them is, and need not be tested alone. That
    /// is so unless a length is 128 or more.
    all: Option<&'b str>,
}

impl<'b> TextReader<'b> {
    fn new(bytes: &'b [u8]) -> TextReader<'b> {
        TextReader { rest: bytes, all: str::from_utf8(bytes).ok() }
    }

    #[inline]
    fn read_number(&mut self) -> Option<usize> {
        let mut numbers = VarintReader::new(self.rest);
        let number = numbers.read_unsigned()?;
        self.rest = numbers.remaining_bytes();
        usize::try_from(number).ok()
    }

    #[inline]
    fn read_text(&mut self) -> Option<&'b str> {
        let length = self.read_number()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        match self.all {
            Some(all) => {
                let end = all.len() - rest.len();
                all.get(end - length..end)
            }
            None => str::from_utf8(text).ok(),
        }
    }

    /// Passes a list whose members are some texts each.
    fn read_list(&mut self, texts_each: usize) -> Option<TextValues<'b>> {
        let count = self.read_number()?.checked_mul(texts_each)?;
        let list = TextValues { count, texts: *self };
        for _ in 0..count {
            self.read_text()?;
        }
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let address = |name: &str, address: &str| MailAddress {
            name: (!name.is_empty()).then(|| name.to_string()),
            address: address.to_string(),
        };
        let mut summary = MessageSummary {
            date: -5,
            size: 7,
            text_hash: u64::MAX - 1,
            file_hash: 9,
            subject: "Grüße".into(),
            list_id: "list".into(),
            from: vec![address("Jörg", "j@x"), address("", "k@x")],
            cc: vec![address("Name", "")],
            references: vec!["a@x".into(), "ä@x".into()],
            keywords: vec!["k".into()],
            ..MessageSummary::default()
        };
        // Lengths from 128 on are no UTF-8.
        for subject in ["Grüße".to_string(), "ü".repeat(100), "s".repeat(500)] {
            summary.subject = subject;
            let packed = PackedSummary::from_bytes(&summary.to_bytes()).expect("packed values");
            assert_eq!(packed.to_summary(), summary);
            assert_eq!((packed.date(), packed.subject()), (-5, summary.subject.as_str()));
            let values = packed.values();
            assert_eq!(values.from.first().map(AddressValue::display_name), Some("Jörg"));
            assert_eq!(values.cc.first().map(AddressValue::display_name), Some("Name"));
            assert_eq!(values.to.first(), None);
            assert_eq!(values.references.iter().collect::<Vec<_>>(), ["a@x", "ä@x"]);
        }
        let bytes = summary.to_bytes();
        for end in 0..bytes.len() {
            assert_eq!(PackedSummary::from_bytes(&bytes[..end]), None, "{end}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            head in proptest::collection::vec(0_u8.., FIXED_BYTES),
            texts in proptest::collection::vec(prop_oneof![0..4_u8, 0_u8..], 0..60),
        ) {
            let bytes = [head, texts].concat();
            if let Some(packed) = PackedSummary::from_bytes(&bytes) {
                let summary = packed.to_summary();
                prop_assert_eq!(summary.from.len(), packed.values().from.iter().count());
            }
        }
    }
}

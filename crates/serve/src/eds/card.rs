//! Cards for clients: version 3.0, with UID and REV.
//!
//! The store keeps source bytes as they came. Clients need a UID in each card, a REV that differs
//! after every change, and one version of the format; the renderer adds these to its output and
//! never to the stored bytes. REV is the time of the item's last change, with the sequence number
//! of its batch as the fraction of the second: programs can read it as a time, and no two changes
//! have the same REV.

use super::bus::replace_nul;
use larder_format::contact::{Contact, VcardVersion, convert_card};
use larder_format::writer::{escape_text, format_content_line};
use larder_store::{Error, ItemMeta, Reader, Seq};
use larder_time::civil::{CivilTime, Date};

/// Renders cards. It caches the time of the last batch, because successive cards are often of the
/// same batch.
#[derive(Debug, Default)]
pub(super) struct CardRenderer {
    last: Option<(Seq, String)>,
}

impl CardRenderer {
    /// Renders the card of an item, without a line end after the last line.
    pub(super) fn render(
        &mut self,
        reader: &Reader,
        meta: &ItemMeta,
        bytes: &[u8],
    ) -> Result<String, Error> {
        let rev = self.rev(reader, meta.seq)?;
        let contact = Contact::parse(bytes);
        let keep = |name: &str| name != "UID" && name != "REV";
        let text = convert_card(&contact, VcardVersion::V3_0, "\r\n", &|property| {
            keep(property.name().to_ascii_uppercase().as_str())
        });
        Ok(append_lines(&text, &[("UID", &escape_text(&meta.uid)), ("REV", rev)]))
    }

    /// Renders a card with UID and REV only.
    pub(super) fn render_short(
        &mut self,
        reader: &Reader,
        meta: &ItemMeta,
    ) -> Result<String, Error> {
        let rev = self.rev(reader, meta.seq)?;
        let text = "BEGIN:VCARD\r\nVERSION:3.0\r\nEND:VCARD\r\n";
        Ok(append_lines(text, &[("UID", &escape_text(&meta.uid)), ("REV", rev)]))
    }

    /// Returns the REV of the items that a batch wrote.
    pub(super) fn rev(&mut self, reader: &Reader, seq: Seq) -> Result<&str, Error> {
        if self.last.as_ref().is_none_or(|(known, _)| *known != seq) {
            let time = format_timestamp(reader.changes().batch_time(seq)?.unwrap_or_default());
            self.last = Some((seq, format!("{time}.{seq:09}Z")));
        }
        Ok(self.last.as_ref().map_or("", |(_, rev)| rev))
    }
}

/// Returns the revision of a book whose last change is in this batch.
pub(super) fn book_revision(reader: &Reader, seq: Seq) -> Result<String, Error> {
    let time = format_timestamp(reader.changes().batch_time(seq)?.unwrap_or_default());
    Ok(format!("{time}Z({seq})"))
}

/// Formats a time in milliseconds since 1970, to the second and in UTC.
fn format_timestamp(milliseconds: i64) -> String {
    let civil = CivilTime::from_seconds_clamped(milliseconds.div_euclid(1000));
    let (Date { year, month, day }, second) = (civil.date(), civil.second_of_day());
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Inserts lines before the last line of a card, and removes the line end after it.
fn append_lines(card: &str, lines: &[(&str, &str)]) -> String {
    const END: &str = "END:VCARD\r\n";
    let mut text = card.strip_suffix(END).unwrap_or(card).to_string();
    for (name, value) in lines {
        text.push_str(&format_content_line(name, &[], value));
        text.push_str("\r\n");
    }
    text.push_str(END.trim_end());
    replace_nul(&text)
}

//! Writing a collection out again, as its items came.
//!
//! It is apart from the store's reader because a file of many items asks for things that an item by
//! itself does not: every item ends with a line end, all have one encoding, and those of a calendar
//! have a calendar around them (`calendar`). Nothing else is changed.

mod calendar;

use crate::error::Error;
use larder_format::decoding::decode_utf16;
use larder_store::{Collection, CollectionType, ItemMeta, Reader};
use std::borrow::Cow;
use std::io::{BufWriter, Write};

/// Items that are looked up in one read transaction.
const ITEMS_PER_READ: usize = 256;

/// What an export wrote.
#[derive(Debug, Default)]
pub struct ExportReport {
    /// Items written.
    pub items: u64,
    /// Items that the collection counts and that could not be read: the store is damaged.
    pub unreadable: u64,
    /// What ended the reading before its time, if anything did. What was read before is written,
    /// and `unread` counts the rest, as far as it can be counted.
    pub error: Option<larder_store::Error>,
    /// Those of them that came as UTF-16 and were written as UTF-8: one file has one encoding.
    pub transcoded: u64,
    /// Definitions of time zones written.
    pub zones: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Writes the items of a collection to `out`, in the order in which they came.
///
/// No read transaction outlives a page, so a slow `out` holds no writer up. What is removed
/// meanwhile is left out, what is added meanwhile comes at the end. Of a damaged store it is what
/// can be read: the summary tells what is missing.
///
/// # Errors
/// [`Error::Write`] where `out` takes no more (a pipe whose reader left is `BrokenPipe` in there).
pub fn export(
    reader: &Reader,
    collection: &Collection,
    out: &mut dyn Write,
) -> Result<ExportReport, Error> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    let mut summary = ExportReport::default();
    if collection.collection_type == CollectionType::AddressBook {
        let all = for_each_item(reader, collection, &mut summary, &mut |summary, head| {
            let Some(bytes) = read_source(reader, head.row, summary) else { return Ok(()) };
            write_text(&bytes, &mut out, summary)?;
            summary.items += 1;
            Ok(())
        })?;
        summary.unreadable = all.saturating_sub(summary.items);
    } else {
        calendar::export_calendar(reader, collection, &mut out, &mut summary)?;
    }
    out.flush().map_err(Error::Write)?;
    Ok(summary)
}

/// Goes through the items. Returns how many the collection counts when no more come, or when
/// something ended the reading before its time.
fn for_each_item(
    reader: &Reader,
    collection: &Collection,
    summary: &mut ExportReport,
    each: &mut dyn FnMut(&mut ExportReport, &ItemMeta) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut after = i64::MIN;
    // Where a page of many cannot be read, items are read one by one up to the one that is the
    // cause.
    let mut limit = ITEMS_PER_READ;
    loop {
        match reader.items_after_row(collection, after, limit) {
            Ok(page) if page.is_empty() => match count_items(reader, collection, after) {
                Ok(Some(all)) => return Ok(all),
                // Somebody added items meanwhile.
                Ok(None) => {}
                Err(error) => {
                    summary.error = Some(error);
                    return Ok(0);
                }
            },
            Ok(page) => {
                for head in &page {
                    after = head.row;
                    each(summary, head)?;
                }
            }
            Err(_) if limit > 1 => limit = 1,
            Err(error) => {
                summary.error = Some(error);
                return Ok(count_items(reader, collection, i64::MAX)
                    .ok()
                    .flatten()
                    .unwrap_or_default());
            }
        }
    }
}

/// The bytes of an item; `None`: it was removed meanwhile, or cannot be read, which the count at
/// the end tells.
fn read_source(reader: &Reader, row: i64, summary: &mut ExportReport) -> Option<Vec<u8>> {
    match reader.source_bytes(row) {
        Ok(bytes) => bytes,
        Err(error) => {
            summary.error = Some(error);
            None
        }
    }
}

/// How many items the collection counts; `None` where there are some behind row `after`.
fn count_items(
    reader: &Reader,
    collection: &Collection,
    after: i64,
) -> larder_store::Result<Option<u64>> {
    // The count and the page are of one moment, so that what is added just now is not taken for
    // unreadable.
    let _snapshot = reader.begin_read()?;
    if !reader.items_after_row(collection, after, 1)?.is_empty() {
        return Ok(None);
    }
    let all = reader.collections()?;
    let now = all.iter().find(|other| other.row == collection.row).map_or(0, |now| now.item_count);
    Ok(Some(now))
}

/// Writes a part of the file that ends with a line end.
fn write_text(bytes: &[u8], out: &mut impl Write, summary: &mut ExportReport) -> Result<(), Error> {
    let bytes = match decode_utf16(bytes) {
        Some(text) => {
            summary.transcoded += 1;
            Cow::Owned(text.into_bytes())
        }
        None => Cow::Borrowed(bytes),
    };
    write_bytes(out, summary, &bytes)?;
    write_bytes(out, summary, missing_line_end(&bytes))
}

fn write_bytes(
    out: &mut impl Write,
    summary: &mut ExportReport,
    bytes: &[u8],
) -> Result<(), Error> {
    summary.bytes += bytes.len() as u64;
    out.write_all(bytes).map_err(Error::Write)
}

/// What must follow an item so that the next can begin on its own line, in the item's own style.
fn missing_line_end(bytes: &[u8]) -> &'static [u8] {
    match bytes.last() {
        None | Some(b'\n') => b"",
        // Half of the line end is there already.
        Some(b'\r') => b"\n",
        Some(_) => detect_line_end(bytes).unwrap_or(b"\n"),
    }
}

/// How the first line ends that does.
fn detect_line_end(bytes: &[u8]) -> Option<&'static [u8]> {
    let first = bytes.iter().position(|&byte| byte == b'\n')?;
    let is_crlf = bytes.get(..first).is_some_and(|line| line.ends_with(b"\r"));
    Some(if is_crlf { b"\r\n" } else { b"\n" })
}

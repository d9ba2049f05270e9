//! Exports a collection byte for byte.
//!
//! Separate from the store's reader because a file of many items has rules that a single item does
//! not have: every item ends with a line ending, all have one encoding, and calendar components are
//! inside a calendar (`calendar`). Nothing else is changed.

mod calendar;

use crate::error::Error;
use larder_format::decoding::decode_utf16;
use larder_store::{Collection, ItemMeta, ItemRow, Reader, UnreadableItem};
use std::borrow::Cow;
use std::io::{BufWriter, Write};

/// The number of rows of the table of items that are read in one transaction.
const ROWS_PER_READ: usize = 2_048;

/// The result of an export.
#[derive(Debug, Default)]
pub struct ExportReport {
    /// The number of items written.
    pub items: u64,
    /// The items that could not be read: the store is damaged.
    pub unreadable: Vec<UnreadableItem>,
    /// The number of further items that are missing: the store counts more than it has.
    pub uncounted: u64,
    /// The error that ended the reading early. The items before it are written.
    pub error: Option<larder_store::Error>,
    /// The reason why committed changes may be missing: the store lost batches, or was replaced.
    pub lost_commits: Option<String>,
    /// The number of items that were converted from UTF-16 to UTF-8: one file has one encoding.
    pub transcoded: u64,
    /// The number of time-zone definitions written.
    pub zones: u64,
    /// The number of bytes written.
    pub bytes: u64,
}

impl ExportReport {
    /// Returns whether everything was exported.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unreadable.is_empty()
            && self.uncounted == 0
            && self.error.is_none()
            && self.lost_commits.is_none()
    }

    /// Compares the number of items in the collection with the items that were found. The rest has
    /// rows that other rows name and that are missing.
    fn count_missing(&mut self, all: Option<u64>) {
        let found = self.items + self.unreadable.len() as u64;
        self.uncounted = all.map_or(0, |all| all.saturating_sub(found));
    }

    fn add_unreadable(&mut self, meta: &ItemMeta, error: larder_store::Error) {
        let (row, handle) = (meta.row, Some(meta.handle));
        let collection = meta.collection.to_string();
        self.unreadable.push(UnreadableItem { row, handle, collection, error });
    }
}

/// Writes the items of a collection to `out`, in the order in which they were added.
///
/// No read transaction lasts longer than a page, so a slow `out` does not block writers. An item
/// that is removed during the export is left out, one that is added comes at the end. Of a damaged
/// store everything readable is written.
///
/// # Errors
/// [`Error::Write`] if `out` fails; a closed pipe is a `BrokenPipe` in it.
pub fn export(
    reader: &Reader,
    collection: &Collection,
    out: &mut dyn Write,
) -> Result<ExportReport, Error> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    let lost_commits = reader.lost_commits().map(ToString::to_string);
    let mut summary = ExportReport { lost_commits, ..ExportReport::default() };
    if !collection.collection_type.is_exported_in_calendar() {
        let all = for_each_item(reader, collection, &mut summary, &mut |summary, meta| {
            let Some(bytes) = read_source(reader, meta, summary) else { return Ok(()) };
            write_text(&bytes, &mut out, summary)?;
            summary.items += 1;
            Ok(())
        })?;
        summary.count_missing(all);
    } else {
        calendar::export_calendar(reader, collection, &mut out, &mut summary)?;
    }
    out.flush().map_err(Error::Write)?;
    if let Err(error) = reader.items().name_unreadable(&mut summary.unreadable) {
        summary.error.get_or_insert(error);
    }
    Ok(summary)
}

/// Calls `visit` with every item that can be read, and adds the others to the summary. Returns the
/// number of items in the collection at the end; `None`: it cannot be counted.
fn for_each_item(
    reader: &Reader,
    collection: &Collection,
    summary: &mut ExportReport,
    visit: &mut dyn FnMut(&mut ExportReport, &ItemMeta) -> Result<(), Error>,
) -> Result<Option<u64>, Error> {
    let mut after = None;
    loop {
        let found = match reader.items().list_past_damage(collection, after, ROWS_PER_READ) {
            Ok(found) => found,
            Err(error) => {
                summary.error = Some(error);
                return Ok(None);
            }
        };
        if found.last.is_none() {
            match count_at_end(reader, collection, after) {
                Ok(Some(all)) => return Ok(Some(all)),
                // Another writer added items.
                Ok(None) => continue,
                Err(_) => return Ok(None),
            }
        }
        after = found.last;
        for meta in &found.items {
            visit(summary, meta)?;
        }
        summary.unreadable.extend(found.unreadable);
    }
}

/// Returns the bytes of an item. `None`: it was removed, or cannot be read.
fn read_source(reader: &Reader, meta: &ItemMeta, summary: &mut ExportReport) -> Option<Vec<u8>> {
    match reader.items().source_bytes(meta.row) {
        Ok(bytes) => bytes,
        Err(error) => {
            summary.add_unreadable(meta, error);
            None
        }
    }
}

/// Returns the number of items in the collection, by an index: a table with a changed byte may lack
/// items. `None`: there are rows after `after`.
fn count_at_end(
    reader: &Reader,
    collection: &Collection,
    after: Option<ItemRow>,
) -> larder_store::Result<Option<u64>> {
    // The count and the end are read in one transaction, so that a new item is not counted as
    // unreadable.
    let _transaction = reader.begin_read()?;
    if reader.items().list_past_damage(collection, after, 1)?.last.is_some() {
        return Ok(None);
    }
    reader.collections().count_items(collection.row).map(Some)
}

/// Writes an item, with a line end if it has none.
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

/// Returns the missing line end of an item, in the style of the item.
fn missing_line_end(bytes: &[u8]) -> &'static [u8] {
    match bytes.last() {
        None | Some(b'\n') => b"",
        // Half of the line end is present.
        Some(b'\r') => b"\n",
        Some(_) => detect_line_end(bytes).unwrap_or(b"\n"),
    }
}

/// Returns the first line end.
fn detect_line_end(bytes: &[u8]) -> Option<&'static [u8]> {
    let first = bytes.iter().position(|&byte| byte == b'\n')?;
    let is_crlf = bytes.get(..first).is_some_and(|line| line.ends_with(b"\r"));
    Some(if is_crlf { b"\r\n" } else { b"\n" })
}

//! Writing a collection out again, as its items came.
//!
//! It is apart from the store's reader because a file of many cards asks for two things that an item by
//! itself does not: every item ends with a line end, and all have one encoding. Nothing else is changed.

use crate::error::Error;
use larder_format::decode::utf16;
use larder_store::{Collection, Reader};
use std::borrow::Cow;
use std::io::{BufWriter, Write};

/// Items that are looked up in one read transaction.
const PAGE: usize = 256;

/// What an export wrote.
#[derive(Debug, Default)]
pub struct ExportSummary {
    /// Items written.
    pub items: u64,
    /// Items that the collection counts and that could not be read: the store is damaged.
    pub unread: u64,
    /// What ended the reading before its time, if anything did. What was read before is written, and `unread`
    /// counts the rest, as far as it can be counted.
    pub failed: Option<larder_store::Error>,
    /// Those of them that came as UTF-16 and were written as UTF-8: one file has one encoding.
    pub transcoded: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Writes the items of a collection to `out`, in the order in which they came.
///
/// No read transaction outlives a page, so a slow `out` holds no writer up. What is removed meanwhile is
/// left out, what is added meanwhile comes at the end. Of a damaged store it is what can be read: the
/// summary tells what is missing.
///
/// # Errors
/// [`Error::Write`] where `out` takes no more (a pipe whose reader left is `BrokenPipe` in there).
pub fn export(
    reader: &Reader,
    collection: &Collection,
    out: &mut dyn Write,
) -> Result<ExportSummary, Error> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    let mut summary = ExportSummary::default();
    let mut after = i64::MIN;
    // Where a page of many cannot be read, items are read one by one up to the one that is the cause.
    let mut limit = PAGE;
    loop {
        match reader.page(collection, after, limit) {
            Ok(page) if page.is_empty() => match unread(reader, collection, after, summary.items) {
                Ok(Some(unread)) => {
                    summary.unread = unread;
                    break;
                }
                // Somebody added items meanwhile.
                Ok(None) => {}
                Err(error) => return ended(out, summary, error),
            },
            Ok(page) => {
                for head in &page {
                    after = head.row;
                    match reader.source(head.row) {
                        Ok(Some(bytes)) => {
                            write_item(&bytes, &mut out, &mut summary).map_err(Error::Write)?;
                        }
                        // Removed meanwhile, or unreadable: the count at the end tells.
                        Ok(None) => {}
                        Err(error) => summary.failed = Some(error),
                    }
                }
            }
            Err(_) if limit > 1 => limit = 1,
            Err(error) => {
                let counted = unread(reader, collection, i64::MAX, summary.items);
                summary.unread = counted.ok().flatten().unwrap_or_default();
                return ended(out, summary, error);
            }
        }
    }
    out.flush().map_err(Error::Write)?;
    Ok(summary)
}

/// The summary of an export that this error ended.
fn ended(
    mut out: impl Write,
    mut summary: ExportSummary,
    error: larder_store::Error,
) -> Result<ExportSummary, Error> {
    out.flush().map_err(Error::Write)?;
    summary.failed = Some(error);
    Ok(summary)
}

/// How many more items the collection counts than were written; `None` where there are some behind row `after`.
fn unread(
    reader: &Reader,
    collection: &Collection,
    after: i64,
    written: u64,
) -> larder_store::Result<Option<u64>> {
    // The count and the page are of one moment, so that what is added just now is not taken for unreadable.
    let _snapshot = reader.snapshot()?;
    if !reader.page(collection, after, 1)?.is_empty() {
        return Ok(None);
    }
    let all = reader.collections()?;
    let now = all.iter().find(|other| other.row == collection.row).map_or(0, |now| now.items);
    Ok(Some(now.saturating_sub(written)))
}

fn write_item(
    bytes: &[u8],
    out: &mut impl Write,
    summary: &mut ExportSummary,
) -> std::io::Result<()> {
    let bytes = match utf16(bytes) {
        Some(text) => {
            summary.transcoded += 1;
            Cow::Owned(text.into_bytes())
        }
        None => Cow::Borrowed(bytes),
    };
    let end = missing_line_end(&bytes);
    out.write_all(&bytes)?;
    out.write_all(end)?;
    summary.items += 1;
    summary.bytes += (bytes.len() + end.len()) as u64;
    Ok(())
}

/// What must follow an item so that the next can begin on its own line, in the item's own style.
fn missing_line_end(bytes: &[u8]) -> &'static [u8] {
    match bytes.last() {
        None | Some(b'\n') => b"",
        // Half of the line end is there already.
        Some(b'\r') => b"\n",
        Some(_) => {
            let first = bytes.iter().position(|&byte| byte == b'\n');
            if first.is_some_and(|at| at > 0 && bytes[at - 1] == b'\r') { b"\r\n" } else { b"\n" }
        }
    }
}

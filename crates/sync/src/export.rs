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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Items written.
    pub items: u64,
    /// Those of them that came as UTF-16 and were written as UTF-8: one file has one encoding.
    pub transcoded: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Writes the items of a collection to `out`, in the order in which they came.
///
/// No read transaction outlives a page, so a slow `out` holds no writer up. What is removed meanwhile is
/// left out, what is added meanwhile comes at the end.
///
/// # Errors
/// [`Error::Store`] where the store cannot be read, [`Error::Write`] where `out` takes no more (a pipe
/// whose reader left is `BrokenPipe` in there).
pub fn export(
    reader: &Reader,
    collection: &Collection,
    out: &mut dyn Write,
) -> Result<ExportSummary, Error> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    let mut summary = ExportSummary::default();
    let mut after = i64::MIN;
    loop {
        let page = reader.page(collection, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.row;
        for head in &page {
            if let Some(bytes) = reader.source(head.row)? {
                write_item(&bytes, &mut out, &mut summary).map_err(Error::Write)?;
            }
        }
    }
    out.flush().map_err(Error::Write)?;
    Ok(summary)
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

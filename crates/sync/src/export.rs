//! Writing a collection out again, as its items came.
//!
//! It is apart from the store's reader because a file of many items asks for things that an item by itself does not:
//! every item ends with a line end, all have one encoding, and those of a calendar have a calendar around them, with each
//! time zone defined once. Nothing else is changed.

use crate::error::Error;
use larder_format::component::Version;
use larder_format::decode::utf16;
use larder_store::{Collection, Family, Frame, Reader, Zone};
use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::sync::Arc;

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
    /// Definitions of time zones written.
    pub zones: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// What a calendar says of itself that nothing is known of.
const HEAD: &[u8] = b"VERSION:2.0\r\nPRODID:-//Larder//Larder//EN\r\n";
const HEAD_1: &[u8] = b"VERSION:1.0\r\nPRODID:-//Larder//Larder//EN\r\n";

/// Frames that go together into one calendar: of one version, and with no two definitions of one name.
struct Object {
    frame: Frame,
    of: Vec<Option<i64>>,
}

/// Puts frames together into as few calendars as there must be: mostly one.
fn objects(reader: &Reader, collection: &Collection) -> larder_store::Result<Vec<Object>> {
    let mut objects: Vec<Object> = Vec::new();
    for row in reader.frames(collection)? {
        let frame = match row {
            Some(row) => reader.frame(row)?.unwrap_or_default(),
            None => Default::default(),
        };
        let fits = |object: &&mut Object| {
            let clash = |zone: &Arc<Zone>| {
                object.frame.zone(zone.tzid()).is_some_and(|other| other.hash() != zone.hash())
            };
            object.frame.version_1 == frame.version_1 && !frame.zones.iter().any(clash)
        };
        match objects.iter_mut().find(fits) {
            Some(object) => {
                for zone in &frame.zones {
                    if object.frame.zone(zone.tzid()).is_none() {
                        object.frame.zones.push(Arc::clone(zone));
                    }
                }
                object.of.push(row);
            }
            None => objects.push(Object { frame: Frame::clone(&frame), of: vec![row] }),
        }
    }
    Ok(objects)
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
    if collection.family == Family::Contacts {
        let all = items(reader, collection, None, &mut out, &mut summary)?;
        summary.unread = all.saturating_sub(summary.items);
    } else {
        calendar(reader, collection, &mut out, &mut summary)?;
    }
    out.flush().map_err(Error::Write)?;
    Ok(summary)
}

/// Writes a calendar: one, or several one after the other where its items need that.
fn calendar(
    reader: &Reader,
    collection: &Collection,
    out: &mut impl Write,
    summary: &mut ExportSummary,
) -> Result<(), Error> {
    let head = reader.head(collection)?;
    let mut objects = objects(reader, collection)?;
    if objects.is_empty() {
        objects.push(Object { frame: Frame::default(), of: Vec::new() });
    }
    let mut all = 0;
    for (at, Object { frame, of }) in objects.iter().enumerate() {
        let default = if frame.version_1 { HEAD_1 } else { HEAD };
        // Where there are several, what is said of itself by the first is not true of all.
        let version_1 = |head: &&[u8]| Version::of_calendar(head) == Version::V1_0;
        let own = head.as_deref().filter(|head| version_1(head) == frame.version_1);
        let head = own.filter(|_| at == 0).unwrap_or(default);
        write(out, summary, b"BEGIN:VCALENDAR\r\n")?;
        write(out, summary, head)?;
        write(out, summary, missing_line_end(head))?;
        for zone in &frame.zones {
            write(out, summary, zone.bytes())?;
            write(out, summary, missing_line_end(zone.bytes()))?;
            summary.zones += 1;
        }
        all = items(reader, collection, Some(of), out, summary)?;
        write(out, summary, b"END:VCALENDAR\r\n")?;
    }
    summary.unread = all.saturating_sub(summary.items);
    Ok(())
}

fn write(out: &mut impl Write, summary: &mut ExportSummary, bytes: &[u8]) -> Result<(), Error> {
    summary.bytes += bytes.len() as u64;
    out.write_all(bytes).map_err(Error::Write)
}

/// Writes the items, of a calendar those with one of these frames. Returns how many the collection counts when no more
/// come, or when something ended the reading before its time.
fn items(
    reader: &Reader,
    collection: &Collection,
    frames: Option<&[Option<i64>]>,
    out: &mut impl Write,
    summary: &mut ExportSummary,
) -> Result<u64, Error> {
    let mut after = i64::MIN;
    // Where a page of many cannot be read, items are read one by one up to the one that is the cause.
    let mut limit = PAGE;
    loop {
        match reader.page(collection, after, limit) {
            Ok(page) if page.is_empty() => match counted(reader, collection, after) {
                Ok(Some(all)) => return Ok(all),
                // Somebody added items meanwhile.
                Ok(None) => {}
                Err(error) => {
                    summary.failed = Some(error);
                    return Ok(0);
                }
            },
            Ok(page) => {
                for head in &page {
                    after = head.row;
                    if frames.is_some_and(|frames| !frames.contains(&head.frame)) {
                        continue;
                    }
                    match reader.source(head.row) {
                        Ok(Some(bytes)) => {
                            write_item(&bytes, out, summary).map_err(Error::Write)?;
                        }
                        // Removed meanwhile, or unreadable: the count at the end tells.
                        Ok(None) => {}
                        Err(error) => summary.failed = Some(error),
                    }
                }
            }
            Err(_) if limit > 1 => limit = 1,
            Err(error) => {
                summary.failed = Some(error);
                return Ok(counted(reader, collection, i64::MAX)
                    .ok()
                    .flatten()
                    .unwrap_or_default());
            }
        }
    }
}

/// How many items the collection counts; `None` where there are some behind row `after`.
fn counted(
    reader: &Reader,
    collection: &Collection,
    after: i64,
) -> larder_store::Result<Option<u64>> {
    // The count and the page are of one moment, so that what is added just now is not taken for unreadable.
    let _snapshot = reader.snapshot()?;
    if !reader.page(collection, after, 1)?.is_empty() {
        return Ok(None);
    }
    let all = reader.collections()?;
    let now = all.iter().find(|other| other.row == collection.row).map_or(0, |now| now.items);
    Ok(Some(now))
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

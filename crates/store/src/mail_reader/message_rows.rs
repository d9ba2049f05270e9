//! The rows of messages that lists show.
//!
//! Separate from `mail_reader`, which reads states and words by block: a list reads rows of its own
//! choice, many at once.

use super::MailReader;
use crate::error::{DatabaseError, DatabaseResult, Result};
use crate::handle::Handle;
use larder_extract::message_summary::PackedSummary;
use rusqlite::Row;
use rusqlite::types::Value;
use std::rc::Rc;

/// The rows that one statement reads.
const ROWS_PER_STATEMENT: usize = 1024;

/// A message in a list.
#[derive(Debug, Clone)]
pub struct MessageRow {
    /// The row.
    pub row: u32,
    /// The handle.
    pub handle: Handle,
    /// The Message-ID, or the name of a message without one.
    pub uid: String,
    /// Whether another message has the same Message-ID, so that the name was made from the text.
    pub has_derived_uid: bool,
    /// The values that lists show.
    pub summary: PackedSummary,
}

impl MailReader<'_> {
    /// Returns a message; `None`: the row has none.
    pub fn message(&self, row: u32) -> Result<Option<MessageRow>> {
        self.run(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT id, handle, uid, uid_origin, stored_fields FROM item WHERE id = ?1",
            )?;
            let mut rows = select.query([row])?;
            rows.next()?.map(read_message).transpose()
        })
    }

    /// Returns messages in the order of their rows here. Rows that have none are left out.
    pub fn messages(&self, rows: &[u32]) -> Result<Vec<MessageRow>> {
        let mut messages = Vec::with_capacity(rows.len());
        self.for_each_message(rows, &mut |message| messages.push(message))?;
        Ok(messages)
    }

    /// Passes messages to `visit`, in the order of their rows here. Rows that have none are left
    /// out. The rows are read in ascending order, some at a time: one statement costs less than one
    /// for each row, and neighbours are on one page.
    pub fn for_each_message(&self, rows: &[u32], visit: &mut dyn FnMut(MessageRow)) -> Result<()> {
        self.map_file(rows.len());
        let mut messages: Vec<Option<MessageRow>> = Vec::new();
        for chunk in rows.chunks(ROWS_PER_STATEMENT) {
            let mut places: Vec<(u32, usize)> = chunk.iter().copied().zip(0..).collect();
            places.sort_unstable();
            messages.clear();
            messages.resize_with(chunk.len(), || None);
            self.run(|tx| {
                let mut select = tx.prepare_cached(
                    "SELECT i.id, i.handle, i.uid, i.uid_origin, i.stored_fields
                     FROM rarray(?1) wanted CROSS JOIN item i ON i.id = wanted.value",
                )?;
                let wanted = places.iter().map(|(row, _)| Value::Integer((*row).into()));
                let mut found = select.query([Rc::<Vec<Value>>::new(wanted.collect())])?;
                let mut places = places.iter();
                while let Some(item) = found.next()? {
                    let message = read_message(item)?;
                    let place = places.find(|(row, _)| *row == message.row);
                    if let Some(slot) = place.and_then(|(_, place)| messages.get_mut(*place)) {
                        *slot = Some(message);
                    }
                }
                Ok(())
            })?;
            messages.drain(..).flatten().for_each(&mut *visit);
        }
        Ok(())
    }
}

/// Reads a message from the columns id, handle, uid, uid_origin and stored_fields.
fn read_message(item: &Row<'_>) -> DatabaseResult<MessageRow> {
    let summary = PackedSummary::from_bytes(item.get_ref(4)?.as_blob()?);
    Ok(MessageRow {
        row: item.get(0)?,
        handle: Handle::from_bytes(item.get_ref(1)?.as_blob()?),
        uid: item.get(2)?,
        has_derived_uid: item.get::<_, i64>(3)? == 2,
        summary: summary
            .ok_or_else(|| DatabaseError::Damaged("the row of a message is malformed".into()))?,
    })
}

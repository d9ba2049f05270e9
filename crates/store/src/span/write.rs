//! Writing the interval index, and reading all of it to be compared.

use super::Row;
use super::zones::clock;
use crate::deriver::Deriver;
use crate::times::Times;
use larder_time::series::Pattern;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::sync::Arc;

/// Writes what items are in time: gathered, then each table in the order of its keys.
pub(crate) struct Writer<'a> {
    conn: &'a Connection,
    deriver: &'a Deriver,
    /// The rows of zones that were met.
    clocks: HashMap<String, i64>,
    times: Vec<(i64, Option<i64>, Arc<[u8]>)>,
    rows: Vec<(i64, Row, i64, Arc<[u8]>)>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(conn: &'a Connection, deriver: &'a Deriver) -> Writer<'a> {
        let (clocks, times, rows) = (HashMap::new(), Vec::new(), Vec::new());
        Writer { conn, deriver, clocks, times, rows }
    }

    /// An item is this in time from now on; `None`: nothing. One that is new has nothing to be replaced.
    pub(crate) fn put(
        &mut self,
        collection: i64,
        item: i64,
        times: Option<&Times>,
        new: bool,
    ) -> rusqlite::Result<()> {
        if !new {
            erase(self.conn, self.deriver, collection, item)?;
        }
        let Some(times) = times else { return Ok(()) };
        let clock = match times.clocks() {
            [] => None,
            names => Some(self.clock(&names.join(" "))?),
        };
        let data: Arc<[u8]> = times.pack().into();
        self.rows
            .extend(times.rows().into_iter().map(|row| (collection, row, item, Arc::clone(&data))));
        self.times.push((item, clock, data));
        Ok(())
    }

    /// The row of these zones as they are now.
    fn clock(&mut self, names: &str) -> rusqlite::Result<i64> {
        if let Some(known) = self.clocks.get(names) {
            return Ok(*known);
        }
        let row = clock(self.conn, self.deriver, names)?;
        self.clocks.insert(names.to_string(), row);
        Ok(row)
    }

    pub(crate) fn finish(mut self) -> rusqlite::Result<()> {
        self.times.sort_unstable_by_key(|(item, ..)| *item);
        let mut insert = self.conn.prepare_cached("INSERT INTO idx_time VALUES(?1, ?2, ?3)")?;
        for (item, clock, data) in &self.times {
            insert.execute((item, clock, &**data))?;
        }
        self.rows.sort_unstable();
        let mut spans = self
            .conn
            .prepare_cached("INSERT INTO idx_span VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
        let mut slots = self
            .conn
            .prepare_cached("INSERT INTO idx_slot VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
        for (collection, row, item, data) in &self.rows {
            let (insert, group, start, end, gap, pattern) = match *row {
                Row::Span { class, start, end, gap, pattern } => {
                    (&mut spans, class, start, end, gap, pattern)
                }
                Row::Slot { slot, start, end, gap, pattern } => {
                    (&mut slots, slot, start, end, gap, pattern)
                }
            };
            let (week, year) = (pattern.map(|of| of.week as i64), pattern.map(|of| of.year as i64));
            let data = row.inlined(data);
            insert.execute((collection, group, start, end, item, gap, week, year, data))?;
        }
        Ok(())
    }
}
/// Takes what an item is in time away.
pub(crate) fn erase(
    conn: &Connection,
    deriver: &Deriver,
    collection: i64,
    item: i64,
) -> rusqlite::Result<()> {
    let data: Option<Vec<u8>> = conn
        .prepare_cached("DELETE FROM idx_time WHERE item = ?1 RETURNING data")?
        .query_row([item], |row| row.get(0))
        .optional()?;
    let Some(data) = data else { return Ok(()) };
    for row in Times::rows_of(&data, &mut |name| deriver.clocks.zone(conn, name)) {
        match row {
            Row::Span { class, start, end, .. } => conn
                .prepare_cached(
                    "DELETE FROM idx_span
                     WHERE collection = ?1 AND class = ?2 AND start = ?3 AND end = ?4 AND item = ?5",
                )?
                .execute((collection, class, start, end, item))?,
            Row::Slot { slot, start, .. } => conn
                .prepare_cached(
                    "DELETE FROM idx_slot
                     WHERE collection = ?1 AND slot = ?2 AND start = ?3 AND item = ?4",
                )?
                .execute((collection, slot, start, item))?,
        };
    }
    Ok(())
}

/// Takes everything away.
pub(crate) fn empty(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "DELETE FROM idx_time; DELETE FROM idx_span; DELETE FROM idx_slot; DELETE FROM idx_clock;",
    )
}
/// A row of the tables, for a digest.
#[derive(Hash)]
pub(crate) enum Print<'a> {
    Time(i64, &'a [u8]),
    Row(i64, i64, Row, Option<&'a [u8]>),
}

/// Gives all that the tables hold.
pub(crate) fn each_row(conn: &Connection, each: &mut dyn FnMut(Print<'_>)) -> rusqlite::Result<()> {
    let mut select = conn.prepare("SELECT item, data FROM idx_time")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        each(Print::Time(row.get(0)?, row.get_ref(1)?.as_blob()?));
    }
    let columns = "start, end, gap, week, year, data";
    let mut select =
        conn.prepare(&format!("SELECT collection, item, class, {columns} FROM idx_span"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (class, start, end, gap) = (row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
        let found = Row::Span { class, start, end, gap, pattern: pattern(row, 6)? };
        each(Print::Row(row.get(0)?, row.get(1)?, found, row.get_ref(8)?.as_blob_or_null()?));
    }
    let mut select =
        conn.prepare(&format!("SELECT collection, item, slot, {columns} FROM idx_slot"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (slot, start, end, gap) = (row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
        let found = Row::Slot { slot, start, end, gap, pattern: pattern(row, 6)? };
        each(Print::Row(row.get(0)?, row.get(1)?, found, row.get_ref(8)?.as_blob_or_null()?));
    }
    Ok(())
}

/// The two masks in the columns from this one on.
pub(super) fn pattern(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<Pattern>> {
    let (week, year): (Option<i64>, Option<i64>) = (row.get(column)?, row.get(column + 1)?);
    Ok(week.zip(year).map(|(week, year)| Pattern { week: week as u64, year: year as u64 }))
}

/// Gives what the tables should hold of an item.
pub(crate) fn rows_of(
    collection: i64,
    item: i64,
    times: Option<&Times>,
    each: &mut dyn FnMut(Print<'_>),
) {
    let Some(times) = times else { return };
    let data = times.pack();
    each(Print::Time(item, &data));
    for row in times.rows() {
        each(Print::Row(collection, item, row, row.inlined(&data)));
    }
}

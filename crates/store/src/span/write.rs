//! Writing the interval index, and reading all of it to be compared.

use super::Row;
use super::zones::clock;
use crate::deriver::Deriver;
use crate::times::Times;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::sync::Arc;

/// Writes what items are in time: gathered, then each table in the order of its key.
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
        let mut insert =
            self.conn.prepare_cached("INSERT INTO idx_span VALUES(?1, ?2, ?3, ?4, ?5)")?;
        for (collection, row, item, data) in &self.rows {
            let series = row.packed(data);
            insert.execute((row.place(*collection), row.start, row.end, item, series))?;
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
        conn.prepare_cached(
            "DELETE FROM idx_span
             WHERE place = ?1 AND start = ?2 AND end = ?3 AND item = ?4",
        )?
        .execute((row.place(collection), row.start, row.end, item))?;
    }
    Ok(())
}

/// Takes everything away.
pub(crate) fn empty(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch("DELETE FROM idx_time; DELETE FROM idx_span; DELETE FROM idx_clock;")
}
/// A row of the tables, for a digest.
#[derive(Hash)]
pub(crate) enum Print<'a> {
    Time(i64, &'a [u8]),
    /// Place, start, end, item.
    Span([i64; 4], Option<&'a [u8]>),
}

/// Gives all that the tables hold.
pub(crate) fn each_row(conn: &Connection, each: &mut dyn FnMut(Print<'_>)) -> rusqlite::Result<()> {
    let mut select = conn.prepare("SELECT item, data FROM idx_time")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        each(Print::Time(row.get(0)?, row.get_ref(1)?.as_blob()?));
    }
    let mut select = conn.prepare("SELECT place, start, end, item, series FROM idx_span")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let numbers = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
        each(Print::Span(numbers, row.get_ref(4)?.as_blob_or_null()?));
    }
    Ok(())
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
        let numbers = [row.place(collection), row.start, row.end, item];
        each(Print::Span(numbers, row.packed(&data).as_deref()));
    }
}

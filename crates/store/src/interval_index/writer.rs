//! Writing the interval index, and reading all of it to be compared.

use super::IntervalEntry;
use super::zone_update::find_or_insert_zone_set;
use crate::interval_entries::interval_entries;
use crate::zone_loader::unpack_schedule;
use larder_extract::Extractor;
use larder_extract::Schedule;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::sync::Arc;

/// Writes what items are in time: gathered, then each table in the order of its key.
pub(crate) struct IntervalWriter<'a> {
    conn: &'a Connection,
    extractor: &'a Extractor,
    /// The rows of zones that were met.
    zone_sets: HashMap<String, i64>,
    schedules: Vec<(i64, Option<i64>, Arc<[u8]>)>,
    entries: Vec<(i64, IntervalEntry, i64, Arc<[u8]>)>,
}

impl<'a> IntervalWriter<'a> {
    pub(crate) fn new(conn: &'a Connection, extractor: &'a Extractor) -> IntervalWriter<'a> {
        let (zone_sets, schedules, entries) = (HashMap::new(), Vec::new(), Vec::new());
        IntervalWriter { conn, extractor, zone_sets, schedules, entries }
    }

    /// An item is this in time from now on; `None`: nothing. One that is new has nothing to be
    /// replaced.
    pub(crate) fn put(
        &mut self,
        collection: i64,
        item: i64,
        times: Option<&Schedule>,
        new: bool,
    ) -> rusqlite::Result<()> {
        if !new {
            delete_item(self.conn, self.extractor, collection, item)?;
        }
        let Some(times) = times else { return Ok(()) };
        let clock = match times.zone_names() {
            [] => None,
            names => Some(self.zone_set(&names.join(" "))?),
        };
        let data: Arc<[u8]> = times.pack().into();
        self.entries.extend(
            interval_entries(times)
                .into_iter()
                .map(|row| (collection, row, item, Arc::clone(&data))),
        );
        self.schedules.push((item, clock, data));
        Ok(())
    }

    /// The row of these zones as they are now.
    fn zone_set(&mut self, names: &str) -> rusqlite::Result<i64> {
        if let Some(known) = self.zone_sets.get(names) {
            return Ok(*known);
        }
        let row = find_or_insert_zone_set(self.conn, self.extractor, names)?;
        self.zone_sets.insert(names.to_string(), row);
        Ok(row)
    }

    pub(crate) fn finish(mut self) -> rusqlite::Result<()> {
        self.schedules.sort_unstable_by_key(|(item, ..)| *item);
        let mut insert = self.conn.prepare_cached("INSERT INTO idx_time VALUES(?1, ?2, ?3)")?;
        for (item, clock, data) in &self.schedules {
            insert.execute((item, clock, &**data))?;
        }
        self.entries.sort_unstable();
        let mut insert =
            self.conn.prepare_cached("INSERT INTO idx_span VALUES(?1, ?2, ?3, ?4, ?5)")?;
        for (collection, row, item, data) in &self.entries {
            let series = row.pack_series(data);
            insert.execute((row.row_class(*collection), row.start, row.end, item, series))?;
        }
        Ok(())
    }
}
/// Takes what an item is in time away.
pub(crate) fn delete_item(
    conn: &Connection,
    deriver: &Extractor,
    collection: i64,
    item: i64,
) -> rusqlite::Result<()> {
    let data: Option<Vec<u8>> = conn
        .prepare_cached("DELETE FROM idx_time WHERE item = ?1 RETURNING data")?
        .query_row([item], |row| row.get(0))
        .optional()?;
    let Some(data) = data else { return Ok(()) };
    let schedule = unpack_schedule(conn, deriver.zone_resolver(), &data);
    for row in schedule.iter().flat_map(interval_entries) {
        conn.prepare_cached(
            "DELETE FROM idx_span
             WHERE place = ?1 AND start = ?2 AND end = ?3 AND item = ?4",
        )?
        .execute((row.row_class(collection), row.start, row.end, item))?;
    }
    Ok(())
}

/// Takes everything away.
pub(crate) fn clear(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch("DELETE FROM idx_time; DELETE FROM idx_span; DELETE FROM idx_clock;")
}
/// A row of the tables, for a digest.
#[derive(Hash)]
pub(crate) enum DigestRecord<'a> {
    Schedule(i64, &'a [u8]),
    /// Place, start, end, item.
    Interval([i64; 4], Option<&'a [u8]>),
}

/// Gives all that the tables hold.
pub(crate) fn for_each_record(
    conn: &Connection,
    each: &mut dyn FnMut(DigestRecord<'_>),
) -> rusqlite::Result<()> {
    let mut select = conn.prepare("SELECT item, data FROM idx_time")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        each(DigestRecord::Schedule(row.get(0)?, row.get_ref(1)?.as_blob()?));
    }
    let mut select = conn.prepare("SELECT place, start, end, item, series FROM idx_span")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let numbers = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
        each(DigestRecord::Interval(numbers, row.get_ref(4)?.as_blob_or_null()?));
    }
    Ok(())
}

/// Gives what the tables should hold of an item.
pub(crate) fn for_each_expected_record(
    collection: i64,
    item: i64,
    times: Option<&Schedule>,
    each: &mut dyn FnMut(DigestRecord<'_>),
) {
    let Some(times) = times else { return };
    let data = times.pack();
    each(DigestRecord::Schedule(item, &data));
    for row in interval_entries(times) {
        let numbers = [row.row_class(collection), row.start, row.end, item];
        each(DigestRecord::Interval(numbers, row.pack_series(&data).as_deref()));
    }
}

//! The tables of calendar contexts and of time-zone definitions.
//!
//! Thousands of items share a context, and many calendars share a definition, so each is stored
//! once with a reference count (`schema` describes the tables). `larder-extract` defines what both
//! mean.

use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CalendarContextRow, ZoneDefinitionRow};
use crate::write_transaction::WriteTransaction;
use larder_extract::{CalendarContext, ZoneDefinition};
use rusqlite::OptionalExtension as _;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number by which the table names a version of the format.
const VCALENDAR_1_NUMBER: i64 = 1;
const ICALENDAR_NUMBER: i64 = 2;

/// The calendar contexts of a batch: their rows, and the changes of their reference counts.
#[derive(Debug, Default)]
pub(crate) struct ContextRefCounts {
    cached_rows: Vec<(Arc<CalendarContext>, CalendarContextRow)>,
    count_changes: BTreeMap<CalendarContextRow, i64>,
}

/// The maximum number of contexts that a batch caches.
const MAX_CACHED_CONTEXTS: usize = 32;

impl ContextRefCounts {
    /// Returns the row of a context, inserted if it is new, and adds one reference.
    pub(crate) fn acquire(
        &mut self,
        tx: &WriteTransaction<'_>,
        context: &Arc<CalendarContext>,
    ) -> rusqlite::Result<CalendarContextRow> {
        let is_same = |cached: &&(Arc<CalendarContext>, CalendarContextRow)| {
            Arc::ptr_eq(&cached.0, context) || cached.0 == *context
        };
        let row = match self.cached_rows.iter().find(is_same) {
            Some((_, row)) => *row,
            None => {
                let row = find_or_insert(tx, context)?;
                if self.cached_rows.len() >= MAX_CACHED_CONTEXTS {
                    self.cached_rows.clear();
                }
                self.cached_rows.push((Arc::clone(context), row));
                row
            }
        };
        *self.count_changes.entry(row).or_default() += 1;
        Ok(row)
    }

    /// Writes the reference counts. The next [`delete_unreferenced`] deletes contexts without
    /// references.
    pub(crate) fn write(&mut self, tx: &WriteTransaction<'_>) -> rusqlite::Result<()> {
        for (row, change) in std::mem::take(&mut self.count_changes) {
            tx.prepare_cached(
                "UPDATE calendar_context SET ref_count = ref_count + ?2 WHERE id = ?1",
            )?
            .execute((row, change))?;
        }
        Ok(())
    }
}

fn find_or_insert(
    tx: &WriteTransaction<'_>,
    context: &CalendarContext,
) -> rusqlite::Result<CalendarContextRow> {
    let mut zones = Vec::new();
    for zone in &context.zone_definitions {
        zones.push(find_or_insert_zone(tx, zone)?.to_string());
    }
    let version = if context.is_vcalendar_1 { VCALENDAR_1_NUMBER } else { ICALENDAR_NUMBER };
    let key = (version, zones.join(" "));
    let known = tx
        .prepare_cached(
            "SELECT id FROM calendar_context WHERE calendar_version = ?1 AND zone_definitions = ?2",
        )?
        .query_row((key.0, &key.1), |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    tx.execute("INSERT INTO calendar_context(calendar_version, zone_definitions, ref_count) VALUES(?1, ?2, 0)", key)?;
    Ok(CalendarContextRow::from_number(tx.last_insert_rowid()))
}

fn find_or_insert_zone(
    tx: &WriteTransaction<'_>,
    zone: &ZoneDefinition,
) -> rusqlite::Result<ZoneDefinitionRow> {
    let known = tx
        .prepare_cached("SELECT id FROM zone_definition WHERE hash = ?1")?
        .query_row([&zone.hash()[..]], |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    tx.execute(
        "INSERT INTO zone_definition(hash, tzid, bytes) VALUES(?1, ?2, ?3)",
        (&zone.hash()[..], zone.tzid(), zone.bytes()),
    )?;
    Ok(ZoneDefinitionRow::from_number(tx.last_insert_rowid()))
}

/// Releases the contexts of the replaced versions with this key.
pub(crate) fn release_history(
    tx: &WriteTransaction<'_>,
    column: &'static str,
    key: impl rusqlite::ToSql,
) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT calendar_context, count(*) FROM item_history WHERE {column} = ?1 AND calendar_context IS NOT NULL GROUP BY calendar_context"
    );
    let released: Vec<(CalendarContextRow, i64)> = tx
        .prepare_cached(&sql)?
        .query_map([key], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (row, uses) in released {
        tx.prepare_cached("UPDATE calendar_context SET ref_count = ref_count - ?2 WHERE id = ?1")?
            .execute((row, uses))?;
    }
    Ok(())
}

/// Deletes contexts without references, and definitions that no context names.
pub(crate) fn delete_unreferenced(tx: &WriteTransaction<'_>) -> rusqlite::Result<()> {
    if tx.prepare_cached("DELETE FROM calendar_context WHERE ref_count <= 0")?.execute([])? == 0 {
        return Ok(());
    }
    let lists: Vec<String> = tx
        .prepare_cached("SELECT zone_definitions FROM calendar_context")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let used: std::collections::BTreeSet<ZoneDefinitionRow> =
        lists.iter().flat_map(|list| parse_row_ids(list)).collect();
    let stored: Vec<ZoneDefinitionRow> = tx
        .prepare_cached("SELECT id FROM zone_definition")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for unused in stored.into_iter().filter(|row| !used.contains(row)) {
        tx.execute("DELETE FROM zone_definition WHERE id = ?1", [unused])?;
    }
    Ok(())
}

fn parse_row_ids(list: &str) -> impl Iterator<Item = ZoneDefinitionRow> + '_ {
    list.split(' ').filter_map(|number| number.parse().ok().map(ZoneDefinitionRow::from_number))
}

/// Reads the context in this row.
pub(crate) fn read_context(
    tx: &ReadTransaction<'_>,
    row: CalendarContextRow,
) -> rusqlite::Result<Option<Arc<CalendarContext>>> {
    let found: Option<(i64, String)> = tx
        .prepare_cached(
            "SELECT calendar_version, zone_definitions FROM calendar_context WHERE id = ?1",
        )?
        .query_row([row], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((version, list)) = found else { return Ok(None) };
    let mut zones = Vec::new();
    for number in parse_row_ids(&list) {
        zones.extend(read_zone(tx, number)?.map(Arc::new));
    }
    Ok(Some(Arc::new(CalendarContext {
        is_vcalendar_1: version == VCALENDAR_1_NUMBER,
        zone_definitions: zones,
    })))
}

/// Returns whether the context in this row is of vCalendar 1.0.
pub(crate) fn is_vcalendar_1(
    tx: &ReadTransaction<'_>,
    row: CalendarContextRow,
) -> rusqlite::Result<bool> {
    let version: Option<i64> = tx
        .prepare_cached("SELECT calendar_version FROM calendar_context WHERE id = ?1")?
        .query_row([row], |row| row.get(0))
        .optional()?;
    Ok(version == Some(VCALENDAR_1_NUMBER))
}

fn read_zone(
    tx: &ReadTransaction<'_>,
    row: ZoneDefinitionRow,
) -> rusqlite::Result<Option<ZoneDefinition>> {
    tx.prepare_cached("SELECT tzid, hash, bytes FROM zone_definition WHERE id = ?1")?
        .query_row([row], |row| {
            Ok(ZoneDefinition::from_parts(row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::WriteConnection;
    use std::path::Path;

    fn zone_named(tzid: &str) -> Arc<ZoneDefinition> {
        let bytes = format!("BEGIN:VTIMEZONE\r\nTZID:{tzid}\r\nEND:VTIMEZONE\r\n");
        Arc::new(ZoneDefinition::new(bytes.as_bytes()).expect("a definition with a name"))
    }

    #[test]
    fn contexts_are_stored_once_and_go_with_their_last_reference() {
        let conn = WriteConnection::open(Path::new(":memory:")).expect("a database");
        let tx = conn.begin_write().expect("a transaction");
        crate::schema::create_tables(&tx, "und").expect("the tables");
        let (a, b) = (zone_named("A"), zone_named("B"));
        let both = Arc::new(CalendarContext {
            is_vcalendar_1: false,
            zone_definitions: vec![Arc::clone(&a), b],
        });
        let one = Arc::new(CalendarContext { is_vcalendar_1: false, zone_definitions: vec![a] });
        let mut contexts = ContextRefCounts::default();
        let first = contexts.acquire(&tx, &both).expect("a row");
        assert_eq!(
            contexts.acquire(&tx, &Arc::new(CalendarContext::clone(&both))).expect("a row"),
            first
        );
        let second = contexts.acquire(&tx, &one).expect("a row");
        assert_ne!(first, second);
        contexts.write(&tx).expect("written");
        assert_eq!(read_context(&tx, first).expect("readable").as_deref(), Some(&*both));
        let count = |table: &str| -> i64 {
            tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
                .expect("a count")
        };
        assert_eq!((count("calendar_context"), count("zone_definition")), (2, 2));
        tx.execute("UPDATE calendar_context SET ref_count = ref_count - 2 WHERE id = ?1", [first])
            .expect("fewer references");
        delete_unreferenced(&tx).expect("deleted");
        assert_eq!((count("calendar_context"), count("zone_definition")), (1, 1));
    }
}

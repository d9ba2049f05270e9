//! The tables of calendar contexts and of time-zone definitions.
//!
//! Thousands of items share a context, and many calendars share a definition, so each is stored
//! once with a reference count (`schema` describes the tables). `larder-extract` defines what both
//! mean.

use crate::checksum::Checksum;
use crate::damaged_object::DamagedObject;
use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CalendarContextRow, ZoneDefinitionRow};
use crate::write_transaction::WriteTransaction;
use larder_extract::{CalendarContext, ZoneDefinition};
use rusqlite::{OptionalExtension as _, Row};
use std::collections::{BTreeMap, HashSet};
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
    ) -> DatabaseResult<CalendarContextRow> {
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
) -> DatabaseResult<CalendarContextRow> {
    let mut zones = Vec::new();
    for zone in &context.zone_definitions {
        zones.push(find_or_insert_zone(tx, zone)?.to_string());
    }
    let version = if context.is_vcalendar_1 { VCALENDAR_1_NUMBER } else { ICALENDAR_NUMBER };
    let list = zones.join(" ");
    let known = tx
        .prepare_cached(concat!(
            "SELECT id, calendar_version, zone_definitions, checksum FROM calendar_context ",
            "WHERE calendar_version = ?1 AND zone_definitions = ?2"
        ))?
        .query_row((version, &list), ContextRecord::from_row)
        .optional()?;
    if let Some(known) = known {
        // Another context may have become equal to this one by damage.
        known.verify()?;
        return Ok(known.row);
    }
    let row = tx
        .query_row("SELECT coalesce(max(id), 0) + 1 FROM calendar_context", [], |row| row.get(0))?;
    let checksum = Checksum::from_calendar_context(row, version, &list);
    tx.execute(
        "INSERT INTO calendar_context VALUES(?1, ?2, ?3, 0, ?4)",
        (row, version, list, checksum),
    )?;
    Ok(row)
}

fn find_or_insert_zone(
    tx: &WriteTransaction<'_>,
    zone: &ZoneDefinition,
) -> DatabaseResult<ZoneDefinitionRow> {
    let known = tx
        .prepare_cached(
            "SELECT id, hash, tzid, bytes, checksum FROM zone_definition WHERE hash = ?1",
        )?
        .query_row([&zone.hash()[..]], ZoneRecord::from_row)
        .optional()?;
    if let Some(known) = &known
        && known.is_sound()
    {
        return Ok(known.row);
    }
    // A damaged definition is replaced by this one, which has the hash.
    let row = match known {
        Some(damaged) => damaged.row,
        None => {
            let sql = "SELECT coalesce(max(id), 0) + 1 FROM zone_definition";
            tx.query_row(sql, [], |row| row.get(0))?
        }
    };
    let checksum = Checksum::from_zone_definition(row, zone.hash(), zone.tzid(), zone.bytes());
    tx.execute(
        "INSERT OR REPLACE INTO zone_definition VALUES(?1, ?2, ?3, ?4, ?5)",
        (row, &zone.hash()[..], zone.tzid(), zone.bytes(), checksum),
    )?;
    Ok(row)
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
    delete_unused_zones(tx)
}

/// Deletes definitions that no context names.
pub(crate) fn delete_unused_zones(tx: &WriteTransaction<'_>) -> rusqlite::Result<()> {
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

/// A row of `calendar_context`.
struct ContextRecord {
    row: CalendarContextRow,
    version: i64,
    zone_definitions: String,
    checksum: Checksum,
}

impl ContextRecord {
    /// Reads the columns `id, calendar_version, zone_definitions, checksum`.
    fn from_row(row: &Row<'_>) -> rusqlite::Result<ContextRecord> {
        let zone_definitions = lossy_text(row, 2)?;
        let (id, version, checksum) = (row.get(0)?, row.get(1)?, row.get(3)?);
        Ok(ContextRecord { row: id, version, zone_definitions, checksum })
    }

    fn is_sound(&self) -> bool {
        let expected =
            Checksum::from_calendar_context(self.row, self.version, &self.zone_definitions);
        expected == self.checksum
    }

    fn verify(&self) -> DatabaseResult<()> {
        if self.is_sound() {
            return Ok(());
        }
        Err(DatabaseError::DamagedObject(DamagedObject::CalendarContext { row: self.row }))
    }
}

/// A row of `zone_definition`.
struct ZoneRecord {
    row: ZoneDefinitionRow,
    hash: Vec<u8>,
    tzid: String,
    bytes: Vec<u8>,
    checksum: Checksum,
}

impl ZoneRecord {
    /// Reads the columns `id, hash, tzid, bytes, checksum`.
    fn from_row(row: &Row<'_>) -> rusqlite::Result<ZoneRecord> {
        let (id, hash, tzid) = (row.get(0)?, row.get(1)?, lossy_text(row, 2)?);
        Ok(ZoneRecord { row: id, hash, tzid, bytes: row.get(3)?, checksum: row.get(4)? })
    }

    fn is_sound(&self) -> bool {
        let expected =
            Checksum::from_zone_definition(self.row, &self.hash, &self.tzid, &self.bytes);
        expected == self.checksum
    }

    fn damage(&self) -> Option<DamagedObject> {
        (!self.is_sound()).then(|| DamagedObject::ZoneDefinition { tzid: self.tzid.clone() })
    }
}

/// Returns a column of text. Damage may have left bytes in it that are no text: the checksum then
/// fails, because it is computed from this text.
fn lossy_text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned())
}

/// A calendar context, and the first damage of its row or of its definitions.
#[derive(Debug, Clone)]
pub(crate) struct UnverifiedContext {
    pub(crate) context: Arc<CalendarContext>,
    pub(crate) damage: Option<DamagedObject>,
}

/// Reads the context in this row without verifying it.
pub(crate) fn read_unverified_context(
    tx: &ReadTransaction<'_>,
    row: CalendarContextRow,
) -> rusqlite::Result<Option<UnverifiedContext>> {
    let found = tx
        .prepare_cached(concat!(
            "SELECT id, calendar_version, zone_definitions, checksum FROM calendar_context ",
            "WHERE id = ?1"
        ))?
        .query_row([row], ContextRecord::from_row)
        .optional()?;
    let Some(found) = found else { return Ok(None) };
    let mut damage =
        (!found.is_sound()).then_some(DamagedObject::CalendarContext { row: found.row });
    let mut zone_definitions = Vec::new();
    for number in parse_row_ids(&found.zone_definitions) {
        let Some(zone) = read_zone(tx, number)? else {
            damage = damage.or(Some(DamagedObject::CalendarContext { row: found.row }));
            continue;
        };
        damage = damage.or(zone.damage());
        if let Ok(hash) = zone.hash.try_into() {
            let zone = ZoneDefinition::from_parts(zone.tzid, hash, zone.bytes);
            zone_definitions.push(Arc::new(zone));
        }
    }
    let is_vcalendar_1 = found.version == VCALENDAR_1_NUMBER;
    let context = Arc::new(CalendarContext { is_vcalendar_1, zone_definitions });
    Ok(Some(UnverifiedContext { context, damage }))
}

/// Reads the context in this row.
///
/// # Errors
/// The context or the definition by name, if it does not match its checksum; the context, if a
/// definition is missing.
pub(crate) fn read_context(
    tx: &ReadTransaction<'_>,
    row: CalendarContextRow,
) -> DatabaseResult<Option<Arc<CalendarContext>>> {
    match read_unverified_context(tx, row)? {
        Some(UnverifiedContext { damage: Some(object), .. }) => {
            Err(DatabaseError::DamagedObject(object))
        }
        found => Ok(found.map(|found| found.context)),
    }
}

/// Returns whether an item has the context in this row.
pub(crate) fn is_context_used(
    tx: &ReadTransaction<'_>,
    row: CalendarContextRow,
) -> rusqlite::Result<bool> {
    tx.query_row("SELECT EXISTS(SELECT 1 FROM item WHERE calendar_context = ?1)", [row], |row| {
        row.get(0)
    })
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
) -> rusqlite::Result<Option<ZoneRecord>> {
    tx.prepare_cached("SELECT id, hash, tzid, bytes, checksum FROM zone_definition WHERE id = ?1")?
        .query_row([row], ZoneRecord::from_row)
        .optional()
}

/// Reads the bytes of the definition whose hash begins with these bytes.
///
/// # Errors
/// The definition by name, if it does not match its checksum.
pub(crate) fn find_zone_by_hash_prefix(
    tx: &ReadTransaction<'_>,
    prefix: &[u8; 8],
) -> DatabaseResult<Option<Vec<u8>>> {
    let (from, to) = ([&prefix[..], &[0; 24]].concat(), [&prefix[..], &[255; 24]].concat());
    let found = tx
        .prepare_cached(concat!(
            "SELECT id, hash, tzid, bytes, checksum FROM zone_definition ",
            "WHERE hash BETWEEN ?1 AND ?2"
        ))?
        .query_row((from, to), ZoneRecord::from_row)
        .optional()?;
    match found.as_ref().and_then(ZoneRecord::damage) {
        Some(object) => Err(DatabaseError::DamagedObject(object)),
        None => Ok(found.map(|found| found.bytes)),
    }
}

/// Returns the damaged contexts and definitions, and the contexts that are affected by them.
pub(crate) fn find_damaged_rows(
    tx: &ReadTransaction<'_>,
) -> DatabaseResult<(Vec<DamagedObject>, HashSet<CalendarContextRow>)> {
    let (mut objects, mut affected) = (Vec::new(), HashSet::new());
    let mut damaged_zones = HashSet::new();
    let sql = "SELECT id, hash, tzid, bytes, checksum FROM zone_definition";
    let mut select = tx.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let zone = ZoneRecord::from_row(row)?;
        if let Some(damage) = zone.damage() {
            objects.push(damage);
            damaged_zones.insert(zone.row);
        }
    }
    let sql = "SELECT id, calendar_version, zone_definitions, checksum FROM calendar_context";
    let mut select = tx.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let context = ContextRecord::from_row(row)?;
        if !context.is_sound() {
            objects.push(DamagedObject::CalendarContext { row: context.row });
            affected.insert(context.row);
        }
        if parse_row_ids(&context.zone_definitions).any(|zone| damaged_zones.contains(&zone)) {
            affected.insert(context.row);
        }
    }
    Ok((objects, affected))
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
        crate::schema::create_tables(&tx, crate::StoreFile::Data, "und").expect("the tables");
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

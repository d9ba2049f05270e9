//! Checksums of stored bytes, and the comparison with them.
//!
//! The checksum of each item, former version, calendar context, time-zone definition, value of
//! `meta` and of the properties of each collection is in its row. It covers the row's identity too,
//! so that it also fails if the contents of two rows were exchanged. It detects what a disk, memory
//! or another program changed; it is no protection against a person who computes it again. Separate
//! from the modules of the tables because all of them, and `damage_scan`, use it.

use crate::damaged_object::DamagedObject;
use crate::error::{DatabaseError, DatabaseResult};
use crate::handle::Handle;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow, ZoneDefinitionRow};
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{OptionalExtension as _, ToSql};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// An odd number with which a row number is spread over 64 bits.
const ROW_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A checksum as it is stored: 64 bits of XXH3 as a signed number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum(i64);

impl Checksum {
    /// Computes the checksum of the source bytes of an item, which a former version of it keeps.
    pub(crate) fn from_item(item: ItemRow, bytes: &[u8]) -> Checksum {
        Checksum::from_row(item.to_number(), bytes)
    }

    /// Computes the checksum of a calendar context.
    pub(crate) fn from_calendar_context(
        row: CalendarContextRow,
        version: i64,
        zone_definitions: &str,
    ) -> Checksum {
        let parts = [&version.to_le_bytes(), zone_definitions.as_bytes()];
        Checksum::from_row(row.to_number(), &join_parts(&parts))
    }

    /// Computes the checksum of a time-zone definition.
    pub(crate) fn from_zone_definition(
        row: ZoneDefinitionRow,
        hash: &[u8],
        tzid: &str,
        bytes: &[u8],
    ) -> Checksum {
        Checksum::from_row(row.to_number(), &join_parts(&[hash, tzid.as_bytes(), bytes]))
    }

    /// Computes the checksum of the properties of a collection, which a former version of it keeps.
    pub(crate) fn from_properties(collection: CollectionRow, properties: &[u8]) -> Checksum {
        Checksum::from_row(collection.to_number(), properties)
    }

    /// Computes the checksum of a value of `meta`.
    pub(crate) fn from_meta_value(key: &str, value: ValueRef<'_>) -> Checksum {
        let parts = match value {
            ValueRef::Null => join_parts(&[key.as_bytes(), b"n"]),
            ValueRef::Integer(number) => join_parts(&[key.as_bytes(), b"i", &number.to_le_bytes()]),
            ValueRef::Real(number) => join_parts(&[key.as_bytes(), b"r", &number.to_le_bytes()]),
            ValueRef::Text(bytes) => join_parts(&[key.as_bytes(), b"t", bytes]),
            ValueRef::Blob(bytes) => join_parts(&[key.as_bytes(), b"b", bytes]),
        };
        Checksum::from_row(0, &parts)
    }

    /// Computes the checksum of columns of a row, in their order. Each value's type, length and
    /// place count.
    pub(crate) fn from_columns(columns: &[ValueRef<'_>]) -> Checksum {
        let mut hash = 0;
        for column in columns {
            hash = match column {
                ValueRef::Null => extend_hash(hash, 1, &[]),
                ValueRef::Integer(number) => extend_hash(hash, 2, &number.to_le_bytes()),
                ValueRef::Real(number) => extend_hash(hash, 3, &number.to_le_bytes()),
                ValueRef::Text(bytes) => extend_hash(hash, 4, bytes),
                ValueRef::Blob(bytes) => extend_hash(hash, 5, bytes),
            };
        }
        Checksum(hash.cast_signed())
    }

    /// Adds the place of an item in its batch to the checksum of its other columns. A simple
    /// operation, which the statement that copies an item into the history takes back.
    pub(crate) fn at_ordinal(self, ordinal: i64) -> Checksum {
        Checksum(self.0 ^ ordinal)
    }

    /// Combines the checksums of two groups of columns of a row.
    pub(crate) fn combine(self, other: Checksum) -> Checksum {
        Checksum(self.0 ^ other.0)
    }

    /// Returns the stored number.
    pub(crate) fn to_number(self) -> i64 {
        self.0
    }

    fn from_row(row: i64, bytes: &[u8]) -> Checksum {
        let spread = row.cast_unsigned().wrapping_mul(ROW_FACTOR);
        Checksum((xxh3_64(bytes) ^ spread).cast_signed())
    }
}

/// Extends the hash of the columns before by a column of a type.
fn extend_hash(hash: u64, type_tag: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, hash.wrapping_add(type_tag.wrapping_mul(ROW_FACTOR)))
}

impl ToSql for Checksum {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0))
    }
}

impl FromSql for Checksum {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Checksum> {
        value.as_i64().map(Checksum)
    }
}

/// Joins parts so that a byte cannot move from one part to the next.
fn join_parts(parts: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        joined.extend_from_slice(&(part.len() as u64).to_le_bytes());
        joined.extend_from_slice(part);
    }
    joined
}

/// Fails if the source bytes of an item do not have this checksum; the error names the item.
pub(crate) fn verify_item(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
    bytes: &[u8],
    stored: Checksum,
) -> DatabaseResult<()> {
    if Checksum::from_item(item, bytes) == stored {
        return Ok(());
    }
    Err(damaged_item_error(tx, item))
}

/// Returns the error of an item whose bytes do not match their checksum, or are missing.
#[cold]
pub(crate) fn damaged_item_error(tx: &ReadTransaction<'_>, item: ItemRow) -> DatabaseError {
    let sql = "SELECT i.handle, coalesce(c.name, '') FROM item i
               LEFT JOIN collection c ON c.id = i.collection WHERE i.id = ?1";
    let found = tx.query_row(sql, [item], |row| {
        let handle = Handle::from_bytes(row.get_ref(0)?.as_blob()?);
        Ok(DamagedObject::Item { handle, collection: row.get(1)? })
    });
    match found.optional() {
        Ok(Some(object)) => DatabaseError::DamagedObject(object),
        Ok(None) => DatabaseError::missing_source_bytes(item),
        Err(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_covers_the_row_and_each_bit() {
        let bytes = b"BEGIN:VCARD\r\nFN:Anna\r\nEND:VCARD\r\n";
        let whole = Checksum::from_item(ItemRow::from_number(7), bytes);
        assert_ne!(whole, Checksum::from_item(ItemRow::from_number(8), bytes));
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            let changed = Checksum::from_item(ItemRow::from_number(7), &changed);
            assert_ne!(whole, changed, "bit {bit}");
        }
    }

    #[test]
    fn parts_do_not_run_together() {
        let zone = |tzid: &str, bytes: &[u8]| {
            Checksum::from_zone_definition(ZoneDefinitionRow::from_number(1), b"h", tzid, bytes)
        };
        assert_ne!(zone("ab", b"c"), zone("a", b"bc"));
        let value = |key: &str, value| Checksum::from_meta_value(key, value);
        assert_ne!(value("a", ValueRef::Text(b"1")), value("a", ValueRef::Blob(b"1")));
        assert_ne!(value("a", ValueRef::Integer(1)), value("b", ValueRef::Integer(1)));
    }

    #[test]
    fn columns_do_not_run_together() {
        use ValueRef::{Blob, Integer, Null, Text};
        let rows: &[&[ValueRef<'_>]] = &[
            &[],
            &[Null],
            &[Null, Null],
            &[Text(b"ab"), Text(b"c")],
            &[Text(b"a"), Text(b"bc")],
            &[Text(b"abc")],
            &[Text(b"abc"), Text(b"")],
            &[Text(b""), Text(b"abc")],
            &[Blob(b"abc")],
            &[Integer(1), Integer(2)],
            &[Integer(2), Integer(1)],
            &[Integer(0), Integer(0)],
            &[Integer(0)],
        ];
        let sums: std::collections::HashSet<i64> =
            rows.iter().map(|row| Checksum::from_columns(row).0).collect();
        assert_eq!(sums.len(), rows.len());
    }

    #[test]
    fn the_stored_form_never_changes() {
        let sum = Checksum::from_item(ItemRow::from_number(1), b"BEGIN:VCARD\r\n");
        assert_eq!(sum.0, -2_786_676_801_112_769_573);
        let columns = [ValueRef::Integer(1), ValueRef::Null, ValueRef::Text(b"uid")];
        assert_eq!(Checksum::from_columns(&columns).0, 7_648_966_275_618_235_249);
    }
}

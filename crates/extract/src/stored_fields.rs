//! Stored fields: the field values that lists show, in the item's row, so that a list need not
//! parse its bytes.
//!
//! A row begins with two bytes, a bit for each field that is in it; each type of collection assigns
//! the bits to its own fields. For each of these fields follow the number of its values, and the
//! values. A value is its length, doubled, and its bytes; or, because most names repeat each other,
//! a reference to an equal text earlier in the row: its position, doubled and odd, and its length.
//! All numbers are varints. This module packs and unpacks; the values come from `field_extraction`.

use larder_format::collection_type::{COLLECTION_TYPES, CollectionType};
use larder_format::field::Field;
use larder_format::kind::Kind;
use larder_time::varint::{VarintReader, put_unsigned_number};
use std::sync::LazyLock;

/// The bits of a row.
const FIELD_BITS: usize = 16;
const _: () = {
    let mut at = 0;
    while at < COLLECTION_TYPES.len() {
        assert!(COLLECTION_TYPES[at].stored_fields.len() <= FIELD_BITS, "a field has no bit");
        at += 1;
    }
};
/// Rows are short: nothing is stored for an item with longer values.
const MAX_STORED_BYTES: usize = 1000;

/// The bit of a field, in rows of a type of collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FieldBit {
    collection_type: CollectionType,
    bit: usize,
}

/// The bits by field number.
static BITS_BY_FIELD: LazyLock<Vec<Option<FieldBit>>> = LazyLock::new(|| {
    let mut bits = Vec::new();
    for collection_type in CollectionType::all() {
        let names = collection_type.row().stored_fields;
        for field in collection_type.fields() {
            let bit = names.iter().position(|name| *name == field.name);
            let index = usize::from(field.id);
            if bits.len() <= index {
                bits.resize(index + 1, None);
            }
            bits[index] = bit.map(|bit| FieldBit { collection_type, bit });
        }
    }
    bits
});

fn field_bit(field: &Field) -> Option<FieldBit> {
    BITS_BY_FIELD.get(usize::from(field.id)).copied().flatten()
}

/// Returns whether the values of this field can be stored.
#[must_use]
pub fn is_storable(field: &Field) -> bool {
    field_bit(field).is_some()
}

/// Packs the values of fields of one type of collection. `None`: they are too long.
pub(crate) fn pack(mut values: Vec<(&'static Field, Vec<String>)>) -> Option<Vec<u8>> {
    values.sort_by_key(|(field, _)| field_bit(field));
    let (mut mask, mut bytes) = (0_u16, vec![0, 0]);
    for (field, values) in values {
        mask |= 1 << field_bit(field)?.bit;
        put_unsigned_number(&mut bytes, values.len() as u64);
        for value in &values {
            match find_repeated(&bytes, value) {
                Some(at) => {
                    put_unsigned_number(&mut bytes, (at as u64) << 1 | 1);
                    put_unsigned_number(&mut bytes, value.len() as u64);
                }
                None => {
                    put_unsigned_number(&mut bytes, (value.len() as u64) << 1);
                    bytes.extend_from_slice(value.as_bytes());
                }
            }
            if bytes.len() > MAX_STORED_BYTES {
                return None;
            }
        }
    }
    bytes[..2].copy_from_slice(&mask.to_le_bytes());
    Some(bytes)
}

/// Returns the position of an equal text in the row, if a reference is shorter than the text.
fn find_repeated(bytes: &[u8], value: &str) -> Option<usize> {
    let value = value.as_bytes();
    if value.len() < 4 {
        return None;
    }
    memchr::memchr_iter(*value.first()?, bytes).find(|at| bytes[*at..].starts_with(value))
}

/// The stored fields of an item.
#[derive(Debug, Clone, Copy)]
pub struct StoredFields<'a> {
    collection_type: CollectionType,
    row: &'a [u8],
}

impl<'a> StoredFields<'a> {
    /// Reads the row of an item of this kind. `None`: nothing is stored.
    #[must_use]
    pub fn from_bytes(kind: Kind, row: &'a [u8]) -> Option<StoredFields<'a>> {
        let collection_type = kind.collection_type();
        (row.len() >= 2).then_some(StoredFields { collection_type, row })
    }

    /// Returns the row, to be read again later.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.row
    }

    fn field_mask(&self) -> u16 {
        self.row.first_chunk().map_or(0, |mask| u16::from_le_bytes(*mask))
    }

    /// Returns the bit of a field in this row, if the field belongs to such items.
    fn field_bit(&self, field: &Field) -> Option<usize> {
        let place = field_bit(field)?;
        (place.collection_type == self.collection_type).then_some(place.bit)
    }

    /// Returns whether the values of this field are stored, even if there are none.
    #[must_use]
    pub fn has_field(&self, field: &Field) -> bool {
        self.field_bit(field).is_some_and(|bit| self.field_mask() >> bit & 1 == 1)
    }

    /// Returns the values of a field, in the order of the item; none if they are not stored.
    pub fn values(&self, field: &Field) -> impl Iterator<Item = &'a str> + use<'a> {
        let row = self.row;
        let found = self.field_bit(field).and_then(|bit| self.find_values(bit));
        let (mut reader, count) = found.unwrap_or((VarintReader::new(&[]), 0));
        (0..count).map_while(move |_| std::str::from_utf8(read_value(row, &mut reader)?).ok())
    }

    /// Returns the first value of a field.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<&'a str> {
        self.values(field).next()
    }

    /// Returns a reader at the first value of a field, and the number of values.
    fn find_values(&self, wanted: usize) -> Option<(VarintReader<'a>, u64)> {
        let mask = self.field_mask();
        let mut reader = VarintReader::new(self.row.get(2..)?);
        for bit in (0..FIELD_BITS).filter(|bit| mask >> bit & 1 == 1) {
            let count = reader.read_unsigned()?;
            if bit == wanted {
                return Some((reader, count));
            }
            for _ in 0..count {
                read_value(self.row, &mut reader)?;
            }
        }
        None
    }
}

/// Reads the next value; `None` if the row is malformed.
fn read_value<'a>(row: &'a [u8], reader: &mut VarintReader<'a>) -> Option<&'a [u8]> {
    let head = reader.read_unsigned()?;
    let number = usize::try_from(head >> 1).ok()?;
    if head & 1 == 1 {
        let length = usize::try_from(reader.read_unsigned()?).ok()?;
        row.get(number..number.checked_add(length)?)
    } else {
        reader.read_bytes(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_format::field::{CALENDAR_FIELDS, CONTACT_FIELDS};
    use proptest::prelude::*;

    fn storable_fields(kind: Kind) -> impl Iterator<Item = &'static Field> {
        kind.fields().iter().filter(|field| is_storable(field))
    }

    fn field_values() -> impl Strategy<Value = Vec<Vec<String>>> {
        use proptest::collection::vec;
        vec(vec("[a-c]{0,9}|.{0,9}", 0..4), FIELD_BITS)
    }

    proptest! {
        #[test]
        fn packed_values_are_read_back(values in field_values()) {
            for kind in [Kind::Contact, Kind::Event] {
                let fields: Vec<&Field> = storable_fields(kind).collect();
                let pairs = fields.iter().copied().zip(values.clone()).collect();
                let packed = pack(pairs).expect("short values");
                let stored = StoredFields::from_bytes(kind, &packed).expect("a row");
                for (field, values) in fields.iter().zip(&values) {
                    prop_assert!(stored.has_field(field));
                    let read: Vec<&str> = stored.values(field).collect();
                    prop_assert_eq!(&read, values);
                }
            }
        }

        #[test]
        fn malformed_rows_are_read_without_a_panic(row in proptest::collection::vec(0_u8.., 0..60)) {
            for kind in Kind::all() {
                let Some(stored) = StoredFields::from_bytes(kind, &row) else { continue };
                for field in kind.fields() {
                    let _values = stored.values(field).count();
                }
            }
        }
    }

    #[test]
    fn fields_that_are_not_stored_have_no_values() {
        let full_name =
            CONTACT_FIELDS.iter().find(|field| field.name == "full_name").expect("a field");
        let packed = pack(vec![(full_name, vec!["Anna Schmidt".into()])]).expect("short");
        let stored = StoredFields::from_bytes(Kind::Contact, &packed).expect("a row");
        assert_eq!(stored.first(full_name), Some("Anna Schmidt"));
        for field in CONTACT_FIELDS.iter().filter(|field| field.id != full_name.id) {
            assert!(!stored.has_field(field) && stored.first(field).is_none(), "{}", field.name);
        }
        assert_eq!(pack(vec![(full_name, vec!["x".repeat(1001)])]), None);
    }

    #[test]
    fn each_collection_type_has_its_own_bits() {
        let first = |kind: Kind| {
            let name = kind.collection_type().row().stored_fields[0];
            kind.fields().iter().find(|field| field.name == name).expect("a field")
        };
        let (name, summary) = (first(Kind::Contact), first(Kind::Event));
        let packed = pack(vec![(summary, vec!["Lunch".into()])]).expect("short");
        let event = StoredFields::from_bytes(Kind::Event, &packed).expect("a row");
        assert_eq!(event.first(summary), Some("Lunch"));
        assert!(CONTACT_FIELDS.iter().all(|field| !event.has_field(field)));
        let contact = StoredFields::from_bytes(Kind::Contact, &packed).expect("a row");
        assert!(CALENDAR_FIELDS.iter().all(|field| !contact.has_field(field)));
        assert_eq!(contact.first(name), Some("Lunch"), "both are the first bit");
    }
}

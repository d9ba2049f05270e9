//! Kept values: what lists show of a contact, beside its row, so that they need no look at its
//! card.
//!
//! `item.kept` has the values of a few fields as they are written, one after the other: two bytes
//! that say which fields are held, then for each of these how many values it has, then these. A
//! value is its length, doubled, and its bytes; or, as most names repeat each other, where in the
//! row the same text stands: its place, doubled and odd, and its length. All numbers are varints.
//! This module packs and unpacks; which card has which values is the matter of `contact`.

use larder_format::field::{CALENDAR_FIELDS, CONTACT_FIELDS, Field};
use larder_index::varint::{read_varint, write_varint};
use std::sync::LazyLock;

/// The fields of contacts that can be kept, in the order in which they are: those that free words
/// look at, and the revision. New ones go to the end.
const CONTACT_FIELD_NAMES: &[&str] = &[
    "file_as",
    "full_name",
    "given_name",
    "family_name",
    "nickname",
    "email",
    "phone",
    "org",
    "org_unit",
    "rev",
];
/// The fields of what is in calendars, behind those: what lists show.
const CALENDAR_FIELD_NAMES: &[&str] =
    &["summary", "location", "category", "status", "priority", "transp"];
/// All of them: each has a bit.
const STORED_FIELD_COUNT: usize = CONTACT_FIELD_NAMES.len() + CALENDAR_FIELD_NAMES.len();
const _: () = assert!(STORED_FIELD_COUNT <= 16, "two bytes say which fields are held");
/// Rows stay short: with more than this nothing is kept.
const MAX_STORED_BYTES: usize = 1000;

/// By number of the field: its place in [`CONTACT_FIELD_NAMES`].
static FIELD_BITS: LazyLock<Vec<Option<usize>>> = LazyLock::new(|| {
    let all = CONTACT_FIELDS.iter().chain(CALENDAR_FIELDS);
    let most = all.map(|field| usize::from(field.id)).max().unwrap_or_default();
    let mut places = vec![None; most + 1];
    for (fields, names, first) in [
        (CONTACT_FIELDS, CONTACT_FIELD_NAMES, 0),
        (CALENDAR_FIELDS, CALENDAR_FIELD_NAMES, CONTACT_FIELD_NAMES.len()),
    ] {
        for field in fields {
            if let Some(slot) = places.get_mut(usize::from(field.id)) {
                *slot = names.iter().position(|name| *name == field.name).map(|at| first + at);
            }
        }
    }
    places
});

fn field_bit(field: &Field) -> Option<usize> {
    FIELD_BITS.get(usize::from(field.id)).copied().flatten()
}

/// Can this field's values be kept?
#[must_use]
pub fn is_storable(field: &Field) -> bool {
    field_bit(field).is_some()
}

/// Packs the values of the fields that are to be held. `None`: they are too long.
pub(crate) fn pack(mut values: Vec<(&'static Field, Vec<String>)>) -> Option<Vec<u8>> {
    values.sort_by_key(|(field, _)| field_bit(field));
    let (mut held, mut bytes) = (0_u16, vec![0, 0]);
    for (field, values) in values {
        held |= 1 << field_bit(field)?;
        write_varint(&mut bytes, values.len() as u64);
        for value in &values {
            match find_repeated(&bytes, value) {
                Some(at) => {
                    write_varint(&mut bytes, (at as u64) << 1 | 1);
                    write_varint(&mut bytes, value.len() as u64);
                }
                None => {
                    write_varint(&mut bytes, (value.len() as u64) << 1);
                    bytes.extend_from_slice(value.as_bytes());
                }
            }
            if bytes.len() > MAX_STORED_BYTES {
                return None;
            }
        }
    }
    bytes[..2].copy_from_slice(&held.to_le_bytes());
    Some(bytes)
}

/// Where a text stands already, if saying so is shorter than the text.
fn find_repeated(bytes: &[u8], value: &str) -> Option<usize> {
    let value = value.as_bytes();
    if value.len() < 4 {
        return None;
    }
    bytes.windows(value.len()).position(|window| window == value)
}

/// Kept values of an item.
#[derive(Debug, Clone, Copy)]
pub struct StoredFields<'a> {
    row: &'a [u8],
}

impl<'a> StoredFields<'a> {
    /// Reads a row of kept values. `None`: nothing is kept.
    #[must_use]
    pub fn from_bytes(row: &'a [u8]) -> Option<StoredFields<'a>> {
        (row.len() >= 2).then_some(StoredFields { row })
    }

    /// The row, to be read again later.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.row
    }

    fn field_mask(&self) -> u16 {
        self.row.first_chunk().map_or(0, |held| u16::from_le_bytes(*held))
    }

    /// Are the values of this field here, be it that there are none?
    #[must_use]
    pub fn has_field(&self, field: &Field) -> bool {
        field_bit(field).is_some_and(|place| self.field_mask() >> place & 1 == 1)
    }

    /// The values of a field, in the order of the card; none where they are not held.
    pub fn values(&self, field: &Field) -> impl Iterator<Item = &'a str> + use<'a> {
        let row = self.row;
        let (rest, count) =
            field_bit(field).and_then(|place| self.find_values(place)).unwrap_or_default();
        let mut rest = rest;
        (0..count).map_while(move |_| read_value(row, &mut rest))
    }

    /// The first value of a field.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<&'a str> {
        self.values(field).next()
    }

    /// Where the values of a field begin, and how many they are.
    fn find_values(&self, wanted: usize) -> Option<(&'a [u8], u64)> {
        let held = self.field_mask();
        let mut rest = self.row.get(2..)?;
        for place in (0..STORED_FIELD_COUNT).filter(|place| held >> place & 1 == 1) {
            let count = read_varint(&mut rest)?;
            if place == wanted {
                return Some((rest, count));
            }
            for _ in 0..count {
                read_value(self.row, &mut rest)?;
            }
        }
        None
    }
}

/// Takes the next value; `None` where the row is malformed.
fn read_value<'a>(row: &'a [u8], rest: &mut &'a [u8]) -> Option<&'a str> {
    let said = read_varint(rest)?;
    let number = usize::try_from(said >> 1).ok()?;
    let bytes = if said & 1 == 1 {
        let length = usize::try_from(read_varint(rest)?).ok()?;
        row.get(number..number.checked_add(length)?)?
    } else {
        let (bytes, behind) = rest.split_at_checked(number)?;
        *rest = behind;
        bytes
    };
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields() -> impl Iterator<Item = &'static Field> {
        CONTACT_FIELDS.iter().filter(|field| is_storable(field))
    }

    proptest! {
        #[test]
        fn what_is_kept_is_read(values in proptest::collection::vec(proptest::collection::vec("[a-c]{0,9}|.{0,9}", 0..4), CONTACT_FIELD_NAMES.len())) {
            let packed = pack(fields().zip(values.clone()).collect()).expect("short values");
            let kept = StoredFields::from_bytes(&packed).expect("a row");
            for (field, values) in fields().zip(&values) {
                prop_assert!(kept.has_field(field));
                prop_assert_eq!(kept.values(field).collect::<Vec<_>>(), values.iter().map(String::as_str).collect::<Vec<_>>());
            }
        }

        #[test]
        fn no_bytes_are_a_panic(row in proptest::collection::vec(0_u8.., 0..60)) {
            if let Some(kept) = StoredFields::from_bytes(&row) {
                for field in CONTACT_FIELDS {
                    let _values = kept.values(field).count();
                }
            }
        }
    }

    #[test]
    fn what_is_not_held_has_no_values() {
        let full_name =
            CONTACT_FIELDS.iter().find(|field| field.name == "full_name").expect("a field");
        let packed = pack(vec![(full_name, vec!["Anna Schmidt".into()])]).expect("short");
        let kept = StoredFields::from_bytes(&packed).expect("a row");
        assert_eq!(kept.first(full_name), Some("Anna Schmidt"));
        let others = CONTACT_FIELDS.iter().filter(|field| field.id != full_name.id);
        assert!(others.clone().all(|field| !kept.has_field(field) && kept.first(field).is_none()));
        assert_eq!(pack(vec![(full_name, vec!["x".repeat(1001)])]), None);
    }
}

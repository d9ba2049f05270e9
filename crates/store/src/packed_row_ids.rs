//! Packed lists of row ids, for callers that keep answers: each row as its distance from the row
//! before, in as few bytes as possible.
//!
//! The rows of an answer are mostly close together, so one takes a byte or two instead of eight.
//! The list can only be read as a whole.

use crate::row_ids::ItemRow;
use larder_index::varint::{read_signed_varint, write_signed_varint};

/// A packed list of rows, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedRowIds(Box<[u8]>);

impl PackedRowIds {
    /// Packs rows.
    #[must_use]
    pub fn new(rows: &[ItemRow]) -> PackedRowIds {
        let (mut bytes, mut last) = (Vec::with_capacity(rows.len() * 2), 0);
        for &row in rows {
            write_signed_varint(&mut bytes, row.to_number().wrapping_sub(last));
            last = row.to_number();
        }
        PackedRowIds(bytes.into())
    }

    /// Returns the rows.
    #[must_use]
    pub fn to_vec(&self) -> Vec<ItemRow> {
        let (mut rest, mut last) = (&*self.0, 0i64);
        // A byte ends a number where its highest bit is not set.
        let mut rows = Vec::with_capacity(self.0.iter().filter(|byte| **byte < 0x80).count());
        while let Some(distance) = read_signed_varint(&mut rest) {
            last = last.wrapping_add(distance);
            rows.push(ItemRow::from_number(last));
        }
        rows
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(rows: Vec<i64>) {
            let rows: Vec<ItemRow> = rows.into_iter().map(ItemRow::from_number).collect();
            prop_assert_eq!(PackedRowIds::new(&rows).to_vec(), rows);
        }
    }

    #[test]
    fn rows_that_lie_close_take_a_byte() {
        let rows: Vec<ItemRow> = (1..=1000).map(|n| ItemRow::from_number(n * 7)).collect();
        assert_eq!(PackedRowIds::new(&rows).byte_len(), 1000);
    }
}

//! Rows of an answer for who keeps it: the distance from each row to the next, in as few bytes as
//! it needs.
//!
//! Rows of one answer mostly lie close together, so that one takes a byte or two instead of eight.
//! It is no index: what is asked of it is all of it.

use larder_index::varint::{read_signed_varint, write_signed_varint};

/// Rows in their order, packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedRowIds(Box<[u8]>);

impl PackedRowIds {
    /// Packs rows.
    #[must_use]
    pub fn new(rows: &[i64]) -> PackedRowIds {
        let (mut bytes, mut last) = (Vec::with_capacity(rows.len() * 2), 0);
        for &row in rows {
            write_signed_varint(&mut bytes, row.wrapping_sub(last));
            last = row;
        }
        PackedRowIds(bytes.into())
    }

    /// The rows.
    #[must_use]
    pub fn to_vec(&self) -> Vec<i64> {
        let (mut rest, mut last) = (&*self.0, 0i64);
        // A byte ends a number where its highest bit is not set.
        let mut rows = Vec::with_capacity(self.0.iter().filter(|byte| **byte < 0x80).count());
        while let Some(distance) = read_signed_varint(&mut rest) {
            last = last.wrapping_add(distance);
            rows.push(last);
        }
        rows
    }

    /// What they take, in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::PackedRowIds;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(rows: Vec<i64>) {
            prop_assert_eq!(PackedRowIds::new(&rows).to_vec(), rows);
        }
    }

    #[test]
    fn rows_that_lie_close_take_a_byte() {
        let rows: Vec<i64> = (1..=1000).map(|n| n * 7).collect();
        assert_eq!(PackedRowIds::new(&rows).byte_len(), 1000);
    }
}

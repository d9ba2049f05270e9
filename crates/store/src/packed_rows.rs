//! Rows of an answer for who keeps it: the distance from each row to the next, in as few bytes as it needs.
//!
//! Rows of one answer mostly lie close together, so that one takes a byte or two instead of eight. It is no index: what is
//! asked of it is all of it.

use crate::index::varint::{put_signed, take_signed};

/// Rows in their order, packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedRows(Box<[u8]>);

impl PackedRows {
    /// Packs rows.
    #[must_use]
    pub fn new(rows: &[i64]) -> PackedRows {
        let (mut bytes, mut last) = (Vec::with_capacity(rows.len() * 2), 0);
        for &row in rows {
            put_signed(&mut bytes, row.wrapping_sub(last));
            last = row;
        }
        PackedRows(bytes.into())
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> Vec<i64> {
        let (mut rest, mut last) = (&*self.0, 0i64);
        // A byte ends a number where its highest bit is not set.
        let mut rows = Vec::with_capacity(self.0.iter().filter(|byte| **byte < 0x80).count());
        while let Some(distance) = take_signed(&mut rest) {
            last = last.wrapping_add(distance);
            rows.push(last);
        }
        rows
    }

    /// What they take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::PackedRows;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(rows: Vec<i64>) {
            prop_assert_eq!(PackedRows::new(&rows).rows(), rows);
        }
    }

    #[test]
    fn rows_that_lie_close_take_a_byte() {
        let rows: Vec<i64> = (1..=1000).map(|n| n * 7).collect();
        assert_eq!(PackedRows::new(&rows).bytes(), 1000);
    }
}

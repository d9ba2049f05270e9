//! The states of messages after an earlier batch, from the records of `before_image`.
//!
//! Separate from `before_image`, because the columns that write records do not read them.

use super::before_image::ChangedPageKind;
use super::columns::{BlockValues, MailColumn, MailSet, column_page};
use super::{BLOCK_ROWS, BLOCK_WORDS, BlockRows};
use crate::Seq;
use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use larder_index::varint::{read_signed_varint, read_varint};
use std::collections::BTreeMap;

/// The states of messages after an earlier batch, as differences from the present.
#[derive(Debug, Default)]
pub struct FormerMailStates {
    /// The first row that no message had.
    first_new_row: u32,
    /// By page, the former values of places.
    values: BTreeMap<i64, BTreeMap<usize, u32>>,
    /// By page, the rows whose membership was another one.
    sets: BTreeMap<i64, BlockRows>,
    /// By block, the rows that changed or are new.
    changed: BTreeMap<u32, BlockRows>,
}

fn malformed_record_error() -> DatabaseError {
    DatabaseError::Damaged("a before-image of messages is malformed".into())
}

fn add_place(rows: &mut BlockRows, place: usize) {
    if let Some(word) = rows.get_mut(place / 64) {
        *word |= 1 << (place % 64);
    }
}

impl FormerMailStates {
    /// Reads the states after the batch `after`. `None`: they are not known any more.
    pub(crate) fn read(
        tx: &ReadTransaction<'_>,
        after: Seq,
        end_row: u32,
    ) -> DatabaseResult<Option<FormerMailStates>> {
        let mut states = FormerMailStates { first_new_row: end_row, ..FormerMailStates::default() };
        let mut select = tx.prepare_cached(
            "SELECT seq, previous, first_new_row, data FROM mail_before_image ORDER BY id DESC",
        )?;
        let mut records = select.query([])?;
        let mut oldest_known = None;
        while let Some(record) = records.next()? {
            if record.get::<_, Seq>(0)? <= after {
                oldest_known = None;
                break;
            }
            oldest_known = Some(record.get::<_, Seq>(1)?);
            states.first_new_row = states.first_new_row.min(record.get(2)?);
            let Some(data) =
                record.get_ref(3)?.as_blob_or_null().map_err(|_| malformed_record_error())?
            else {
                return Ok(None);
            };
            states.add_record(data).ok_or_else(malformed_record_error)?;
        }
        // The records of further batches were deleted.
        if oldest_known.is_some_and(|oldest| oldest > after) {
            return Ok(None);
        }
        Ok(Some(states))
    }

    fn add_record(&mut self, mut data: &[u8]) -> Option<()> {
        while !data.is_empty() {
            let block = u32::try_from(read_varint(&mut data)?).ok()?;
            let kind = ChangedPageKind::from_number(read_varint(&mut data)?)?;
            let page = read_signed_varint(&mut data)?;
            let count = read_varint(&mut data)?;
            let mut next = 0;
            for _ in 0..count {
                let place = usize::try_from(read_varint(&mut data)?).ok()?.checked_add(next)?;
                if place >= BLOCK_ROWS as usize {
                    return None;
                }
                match kind {
                    ChangedPageKind::Column | ChangedPageKind::HiddenColumn => {
                        let former = u32::try_from(read_varint(&mut data)?).ok()?;
                        // The records come in descending order: the oldest one stays.
                        self.values.entry(page).or_default().insert(place, former);
                    }
                    ChangedPageKind::Set => {
                        let rows = self.sets.entry(page).or_insert([0; BLOCK_WORDS]);
                        *rows.get_mut(place / 64)? ^= 1 << (place % 64);
                    }
                }
                if kind != ChangedPageKind::HiddenColumn {
                    add_place(self.changed.entry(block).or_insert([0; BLOCK_WORDS]), place);
                }
                next = place + 1;
            }
        }
        Some(())
    }

    /// Adds a row to those that changed.
    pub(crate) fn add_changed_row(&mut self, row: u32) {
        let rows = self.changed.entry(row / BLOCK_ROWS).or_insert([0; BLOCK_WORDS]);
        add_place(rows, (row % BLOCK_ROWS) as usize);
    }

    /// Returns the rows of a block that changed or are new.
    #[must_use]
    pub fn changed_rows(&self, block: u32) -> BlockRows {
        self.changed.get(&block).copied().unwrap_or([0; BLOCK_WORDS])
    }

    /// Returns the blocks with rows that changed or are new, and these rows.
    pub fn changed_blocks(&self) -> impl Iterator<Item = (u32, &BlockRows)> {
        self.changed.iter().map(|(block, rows)| (*block, rows))
    }

    /// Replaces the present values of a column in a block by the former ones.
    pub fn restore_values(&self, column: MailColumn, block: u32, values: &mut BlockValues) {
        for (place, former) in self.values.get(&column_page(column, block)).into_iter().flatten() {
            if let Some(value) = values.get_mut(*place) {
                *value = *former;
            }
        }
        let first = u64::from(block) * u64::from(BLOCK_ROWS);
        let known = u64::from(self.first_new_row).saturating_sub(first);
        values.iter_mut().skip(usize::try_from(known).unwrap_or(usize::MAX)).for_each(|value| {
            *value = 0;
        });
    }

    /// Replaces the present rows of a set in a block by the former ones. Rows that no message had
    /// may be among them.
    pub fn restore_set(&self, set: MailSet, block: u32, rows: &mut BlockRows) {
        if let Some(changed) = self.sets.get(&set.page(block)) {
            rows.iter_mut().zip(changed).for_each(|(word, changed)| *word ^= changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::before_image::BeforeImageWriter;
    use crate::{DataDirectory, Store, StoreFile, StoreOptions};

    fn create_store(folder: &tempfile::TempDir) -> Store {
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let directory = DataDirectory::new(folder.path()).with_store_file(StoreFile::Index);
        Store::open(directory, &options).expect("a store")
    }

    fn read(store: &Store, after: Seq, end_row: u32) -> Option<FormerMailStates> {
        let tx = store.conn.begin_read().expect("a transaction");
        FormerMailStates::read(&tx, after, end_row).expect("records")
    }

    /// Writes a record in which the values of a block were `former`, and those of a set, too.
    fn write_record(store: &Store, seq: Seq, last_row: i64, former: &[u32], set: BlockRows) {
        let tx = store.conn.begin_write().expect("a transaction");
        let mut writer = BeforeImageWriter::new(last_row);
        let page = column_page(MailColumn::Flags, 0);
        let changed = former.iter().copied().enumerate().filter(|(_, former)| *former != 0);
        let changes: Vec<(usize, u32)> = changed.collect();
        writer.add_values(ChangedPageKind::Column, page, 0, &changes);
        writer.add_set(MailSet::Folder(1).page(0), 0, &set, &[0; BLOCK_WORDS]);
        writer.write(&tx, seq).expect("a record");
        tx.commit().expect("a commit");
    }

    fn values(states: &FormerMailStates) -> BlockValues {
        let mut values = vec![0; 4];
        states.restore_values(MailColumn::Flags, 0, &mut values);
        values
    }

    #[test]
    fn the_oldest_former_state_is_restored() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = create_store(&folder);
        let mut set = [0; BLOCK_WORDS];
        set[0] = 0b110;
        write_record(&store, 1, 2, &[5, 6, 7, 8], set);
        write_record(&store, 3, 3, &[0, 1, 0, 9], [0; BLOCK_WORDS]);
        let restored = |after: Seq| {
            let states = read(&store, after, 4).expect("states");
            let mut rows = [0; BLOCK_WORDS];
            states.restore_set(MailSet::Folder(1), 0, &mut rows);
            (values(&states), rows[0], states.changed_rows(0)[0])
        };
        // Row 3 is new in batch 1.
        assert_eq!(restored(0), (vec![5, 6, 7, 0], 0b110, 0b1111));
        assert_eq!(restored(1), (vec![0, 1, 0, 9], 0, 0b1010));
        assert_eq!(restored(2), restored(1));
        assert_eq!(restored(3), (vec![0; 4], 0, 0));
    }

    #[test]
    fn states_before_deleted_records_are_not_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = create_store(&folder);
        let tx = store.conn.begin_write().expect("a transaction");
        // Pages without changes.
        let sql =
            "INSERT INTO mail_before_image VALUES(?1 * 900016, ?1, ?1 - 1, 9, zeroblob(900000))";
        for seq in 1..=21 {
            tx.execute(sql, [seq]).expect("a record");
        }
        BeforeImageWriter::new(9).write(&tx, 22).expect("a record");
        tx.commit().expect("a commit");
        assert!(read(&store, 21, 1).is_some());
        assert!(read(&store, 10, 1).is_some());
        assert!(read(&store, 0, 1).is_none());
    }

    #[test]
    fn a_malformed_record_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = create_store(&folder);
        let tx = store.conn.begin_write().expect("a transaction");
        let sql = "INSERT INTO mail_before_image VALUES(9, 1, 0, 0, ?1)";
        tx.execute(sql, [vec![0_u8, 0, 0, 1, 0xff, 0xff, 0x7f, 0]]).expect("a record");
        assert!(FormerMailStates::read(&tx, 0, 1).is_err());
        let tail: &[u8] = &[0, 7];
        tx.execute("UPDATE mail_before_image SET data = ?1", [tail]).expect("a record");
        assert!(FormerMailStates::read(&tx, 0, 1).is_err());
    }
}

//! The record of the last commit in the notify file, and its comparison with the store.
//!
//! The record is `SEQ EPOCH`. It is written after each commit; so the store is never behind it,
//! unless another program deleted or replaced `data.db` or its write-ahead log. While a restore
//! gives the store another epoch, the record names both states: `SEQ EPOCH SEQ EPOCH`. It is not
//! synced to the disk, so after a power cut it may be behind the store, or empty.
//!
//! Separate from `lock`, which keeps the file open for writing, because readers compare it, too.

use crate::Seq;
use crate::data_directory::DataDirectory;
use crate::error::{DatabaseResult, Error, Result, sqlite_error_at};
use crate::history::read_epoch;
use crate::meta::read_meta_number;
use crate::read_transaction::ReadTransaction;
use std::fs::File;
use std::io::Read as _;

/// More than any record has.
const MAX_RECORD_BYTES: u64 = 128;

/// The number of a batch, and the epoch in which it has that number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommittedState {
    pub(crate) seq: Seq,
    pub(crate) epoch: String,
}

impl CommittedState {
    /// Reads the state of the store.
    pub(crate) fn read(tx: &ReadTransaction<'_>) -> DatabaseResult<CommittedState> {
        Ok(CommittedState { seq: read_meta_number(tx, "last_seq")?, epoch: read_epoch(tx)? })
    }
}

/// Returns the text of a record of one state, or of two states during a restore.
pub(crate) fn format_record(states: &[&CommittedState]) -> String {
    let states: Vec<_> =
        states.iter().map(|state| format!("{} {}", state.seq, state.epoch)).collect();
    format!("{}\n", states.join(" "))
}

fn parse_record(text: &str) -> Vec<CommittedState> {
    let mut words = text.split_whitespace();
    let mut states = Vec::new();
    while let (Some(seq), Some(epoch)) = (words.next(), words.next()) {
        let Ok(seq) = seq.parse() else { break };
        states.push(CommittedState { seq, epoch: epoch.to_string() });
    }
    states
}

/// Reads the record of the last commit. It has to be read before the store: the store may be ahead
/// of it, but not behind. Empty: there is no record.
pub(crate) fn read_record(directory: &DataDirectory) -> Vec<CommittedState> {
    let path = directory.notify_path();
    let mut bytes = Vec::new();
    if path.metadata().is_ok_and(|file| file.is_file())
        && let Ok(file) = File::open(&path)
        && file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes).is_ok()
    {
        return parse_record(&String::from_utf8_lossy(&bytes));
    }
    Vec::new()
}

/// Fails if the store has fewer batches than the record, or another epoch.
pub(crate) fn compare(
    record: &[CommittedState],
    store: &CommittedState,
    directory: &DataDirectory,
) -> Result<()> {
    let path = directory.database_path();
    // After a power cut, the end of a longer record may be left behind a shorter one.
    let recorded = record.iter().filter(|recorded| recorded.epoch == store.epoch);
    match recorded.map(|recorded| recorded.seq).min() {
        Some(seq) if seq > store.seq => {
            Err(Error::BatchesMissing { path, batches: seq.abs_diff(store.seq) })
        }
        Some(_) => Ok(()),
        None if record.is_empty() => Ok(()),
        None => Err(Error::StoreReplaced { path }),
    }
}

/// Compares the store with the record, in a transaction that is open since a moment after the
/// record was read.
pub(crate) fn compare_with_store(
    record: &[CommittedState],
    tx: &ReadTransaction<'_>,
    directory: &DataDirectory,
) -> Result<()> {
    let store = CommittedState::read(tx).map_err(sqlite_error_at(&directory.database_path()))?;
    compare(record, &store, directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_behind_its_record_is_refused() {
        let directory = DataDirectory::new("/nowhere");
        let check = |record: &str, store: &str, expect: &str| {
            let [store] = &parse_record(store)[..] else { panic!("{store}") };
            let found = compare(&parse_record(record), store, &directory);
            let found = found.map_or_else(|error| error.to_string(), |()| "sound".into());
            assert_eq!(found, expect, "{record:?}, {store:?}");
        };
        let replaced = "/nowhere/data.db or its write-ahead log was replaced by another program";
        let missing = |what: &str| {
            format!(
                "{what} missing from /nowhere/data.db: its write-ahead log was deleted or replaced"
            )
        };
        check("7 aa\n", "7 aa", "sound");
        check("7 aa\n", "9 aa", "sound");
        check("", "9 aa", "sound");
        check("garbage", "9 aa", "sound");
        check("7\n", "1 aa", "sound");
        check("7 aa", "6 aa", &missing("1 committed batch is"));
        check("7 aa", "4 aa", &missing("3 committed batches are"));
        check("7 aa", "7 bb", replaced);
        check("7 aa 2 bb", "2 bb", "sound");
        check("7 aa 2 bb", "7 aa", "sound");
        check("7 aa 2 bb", "7 cc", replaced);
        check("7 aa\n0 aa", "1 aa", "sound");
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let states = [(7, "aa"), (2, "bb")]
            .map(|(seq, epoch)| CommittedState { seq, epoch: epoch.to_string() });
        for states in [&states[..1], &states[..]] {
            let text = format_record(&states.iter().collect::<Vec<_>>());
            assert_eq!(parse_record(&text), states);
        }
    }
}

//! The record of the last commit in the notify file, and its comparison with the store.
//!
//! The record is the line `SEQ EPOCH CHECKSUM`. It is written after each commit; so the store is
//! never behind it, unless another program deleted or replaced `data.db` or its write-ahead log.
//! While a restore gives the store another epoch, the record names both states: `SEQ EPOCH SEQ
//! EPOCH CHECKSUM`. That record is synced to the disk before the restore commits; others are not,
//! so after a power cut the record may be behind the store, empty, or a mixture of two, which the
//! checksum reveals. Then there is nothing to compare.
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
use xxhash_rust::xxh3::xxh3_64;

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
    let states = states.join(" ");
    format!("{states} {}\n", format_checksum(&states))
}

/// Returns the states of a record; none if it is incomplete, or its checksum is wrong.
fn parse_record(text: &str) -> Vec<CommittedState> {
    let line = text.split_once('\n').map(|(line, _)| line);
    let Some((states, checksum)) = line.and_then(|line| line.rsplit_once(' ')) else {
        return Vec::new();
    };
    if checksum != format_checksum(states) {
        return Vec::new();
    }
    let words: Vec<&str> = states.split(' ').collect();
    let state = |pair: &[&str]| match pair {
        [seq, epoch] => Some(CommittedState { seq: seq.parse().ok()?, epoch: epoch.to_string() }),
        _ => None,
    };
    words.chunks(2).map_while(state).collect()
}

fn format_checksum(states: &str) -> String {
    format!("{:016x}", xxh3_64(states.as_bytes()))
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

/// Fails if the store has fewer batches than the record, or another epoch. A store that can be made
/// again may lose its last commits in a power cut, or be deleted: its next synchronisation writes
/// what is missing.
pub(crate) fn compare(
    record: &[CommittedState],
    store: &CommittedState,
    directory: &DataDirectory,
) -> Result<()> {
    if directory.store_file().is_disposable() {
        return Ok(());
    }
    let path = directory.database_path();
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
        let state = |text: &str| {
            let (seq, epoch) = text.split_once(' ').expect("a number and an epoch");
            CommittedState { seq: seq.parse().expect("a number"), epoch: epoch.to_string() }
        };
        let check = |states: &[&str], store: &str, expect: &str| {
            let states: Vec<CommittedState> = states.iter().copied().map(state).collect();
            let found = compare(&states, &state(store), &directory);
            let found = found.map_or_else(|error| error.to_string(), |()| "sound".into());
            assert_eq!(found, expect, "{states:?}, {store:?}");
        };
        let replaced = "/nowhere/data.db or its write-ahead log was replaced by another program";
        let missing = |what: &str| {
            format!(
                "{what} missing from /nowhere/data.db: its write-ahead log was deleted or replaced"
            )
        };
        check(&["7 aa"], "7 aa", "sound");
        check(&["7 aa"], "9 aa", "sound");
        check(&[], "9 aa", "sound");
        check(&["7 aa"], "6 aa", &missing("1 committed batch is"));
        check(&["7 aa"], "4 aa", &missing("3 committed batches are"));
        check(&["7 aa"], "7 bb", replaced);
        check(&["7 aa", "2 bb"], "2 bb", "sound");
        check(&["7 aa", "2 bb"], "7 aa", "sound");
        check(&["7 aa", "2 bb"], "7 cc", replaced);
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
    /// A power cut leaves any part of a record over the former one.
    #[test]
    fn a_torn_record_is_no_record() {
        let record = |states: &[(Seq, &str)]| {
            let state = |&(seq, epoch): &(Seq, &str)| CommittedState { seq, epoch: epoch.into() };
            let states: Vec<CommittedState> = states.iter().map(state).collect();
            format_record(&states.iter().collect::<Vec<_>>())
        };
        let records = [
            record(&[(9, "aa")]),
            record(&[(19, "aa")]),
            record(&[(20, "aa")]),
            record(&[(20, "aa"), (3, "bb")]),
            record(&[(3, "bb")]),
        ];
        for (old, new) in records.iter().zip(&records[1..]) {
            for torn in 0..new.len() {
                let old_end = old.get(torn..).unwrap_or_default();
                let text = format!("{}{old_end}", &new[..torn]);
                let found = parse_record(&text);
                let is_old = found == parse_record(old);
                let is_new = found == parse_record(new);
                assert!(found.is_empty() || is_old || is_new, "{text:?}");
            }
        }
    }
}

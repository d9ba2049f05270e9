//! Writing messages that were read: words by segments, rows by batches.
//!
//! A segment of words is much larger than a batch of rows, so that few segments are merged
//! afterwards, and a batch is small, because others wait for the lock while it is written. The
//! words of a segment are written first, in parts, and then the messages in batches, while readers
//! prepare the next ones. Words without a message are never found. Few messages are written with
//! their words, in one transaction.
//!
//! The first segment of many messages is small, so that the newest ones are found at once; the size
//! doubles until the words take [`MAX_SEGMENT_BYTES`] in memory. Few messages are one segment and,
//! up to [`FIRST_BATCH_MESSAGES`], one transaction: a second one would write the same pages again.
//!
//! The size of the transactions adapts to the time for which they hold the lock ([`StepSize`]).
//!
//! Separate from `message_pipeline`, which reads and parses without the store.

use super::message_pipeline::PreparedBatch;
use super::{MailSync, follow_labels};
use crate::error::Error;
use larder_store::{
    BegunWordSegments, MAX_RESTING_SEGMENTS, MailChange, SegmentWords, StepSize, Store,
    new_segment_words,
};
use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

/// The number of messages of the first segment.
const FIRST_SEGMENT_MESSAGES: usize = 128;
/// The time after which messages are written, when converters are slow.
const MAX_SEGMENT_TIME: Duration = Duration::from_secs(5);
/// The bytes of words and converted texts in memory that make a segment.
const MAX_SEGMENT_BYTES: usize = 24 << 20;
/// The most messages of the first transaction. Those of later ones follow from the time for which
/// the lock was held.
const FIRST_BATCH_MESSAGES: usize = 512;
/// The least number to which the messages of a transaction are reduced.
const MIN_BATCH_MESSAGES: usize = 64;
/// The bytes of a segment that are written in one transaction.
const PART_BYTES: StepSize = StepSize::in_index(1 << 20, 64 << 10..=1 << 20);
/// The most segments that are not merged while messages are added.
const MAX_WRITING_SEGMENTS: usize = 12;
/// The most segments that are left after many messages, and of a merge then: messages that come one
/// by one later need a few more.
const MAX_INDEXED_SEGMENTS: usize = 8;
const MAX_FINAL_SEGMENTS: usize = 5;
/// The bytes of words that are merged in one transaction.
pub(crate) const MERGED_BYTES: StepSize = StepSize::in_index(1 << 20, 256 << 10..=4 << 20);
/// The transactions of a merge after each segment.
const MERGE_STEPS_PER_SEGMENT: usize = 4;

/// Messages that were read and are not written yet.
pub(super) struct MessageWriter {
    /// The most messages of a transaction.
    max_batch_messages: usize,
    /// The number of messages of a transaction.
    batch_messages: StepSize,
    part_bytes: StepSize,
    merged_bytes: StepSize,
    /// The number of messages after which the segment ends.
    segment_messages: usize,
    /// The words of the messages in `begun`.
    words: SegmentWords,
    begun: Vec<UnwrittenMessages>,
    begun_at: Instant,
    /// The bytes of texts that converters made, which the messages in `begun` have.
    converted_bytes: usize,
    /// The messages whose words are written.
    ready: VecDeque<UnwrittenMessages>,
    /// The number of files that are done.
    pub(super) done: usize,
}

/// The messages of one batch of the pipeline.
struct UnwrittenMessages {
    changes: Vec<MailChange>,
    end_row: u32,
    /// The number of files, also of those that could not be read.
    count: usize,
}

impl MessageWriter {
    /// Creates a writer of this many messages that writes at most `batch_messages` in one
    /// transaction.
    pub(super) fn new(messages: usize, batch_messages: usize) -> MessageWriter {
        let most = batch_messages.max(1);
        let is_small = messages <= most;
        MessageWriter {
            max_batch_messages: most,
            batch_messages: StepSize::in_index(
                FIRST_BATCH_MESSAGES.min(most),
                MIN_BATCH_MESSAGES.min(most)..=most,
            ),
            part_bytes: PART_BYTES,
            merged_bytes: MERGED_BYTES,
            segment_messages: if is_small { most } else { FIRST_SEGMENT_MESSAGES.min(most) },
            words: new_segment_words(),
            begun: Vec::new(),
            begun_at: Instant::now(),
            converted_bytes: 0,
            ready: VecDeque::new(),
            done: 0,
        }
    }

    /// Adds messages, and writes some of those that were added before.
    pub(super) fn add(
        &mut self,
        sync: &mut MailSync<'_>,
        batch: PreparedBatch,
    ) -> Result<(), Error> {
        let PreparedBatch { changes, words, end_row, count, converted_bytes, .. } = batch;
        if self.begun.is_empty() {
            self.begun_at = Instant::now();
        }
        self.words.add(words);
        self.converted_bytes += converted_bytes;
        self.begun.push(UnwrittenMessages { changes, end_row, count });
        let begun: usize = self.begun.iter().map(|one| one.count).sum();
        if begun >= self.segment_messages
            || self.words.bytes() + self.converted_bytes >= MAX_SEGMENT_BYTES
            || self.begun_at.elapsed() >= MAX_SEGMENT_TIME
        {
            return self.end_segment(sync);
        }
        self.write_batch(sync)
    }

    /// Writes all messages.
    pub(super) fn finish(&mut self, sync: &mut MailSync<'_>) -> Result<(), Error> {
        self.end_segment(sync)?;
        self.write_ready(sync)
    }

    /// Returns whether so few messages were written that their words need not be merged.
    pub(super) fn is_small(&self) -> bool {
        self.done <= self.max_batch_messages
    }

    /// Writes the messages whose words are written.
    fn write_ready(&mut self, sync: &mut MailSync<'_>) -> Result<(), Error> {
        while !self.ready.is_empty() {
            self.write_batch(sync)?;
        }
        Ok(())
    }

    /// Writes the words of a segment; those of few messages with the messages.
    fn end_segment(&mut self, sync: &mut MailSync<'_>) -> Result<(), Error> {
        self.write_ready(sync)?;
        let begun = mem::take(&mut self.begun);
        self.converted_bytes = 0;
        let words = mem::replace(&mut self.words, new_segment_words());
        let mut encoder = words.into_encoder();
        let Some(end_row) = begun.last().map(|last| last.end_row) else { return Ok(()) };
        let count = begun.iter().map(|one| one.count).sum::<usize>();
        if count <= self.batch_messages.current() {
            let words = encoder.next_part(usize::MAX);
            self.done += count;
            let changes = begun.into_iter().flat_map(|one| one.changes).collect();
            let held = sync.apply(changes, words, end_row)?;
            self.batch_messages.adapt_to(count, held);
        } else {
            let mut segments = BegunWordSegments::default();
            while let Some(part) = encoder.next_part(self.part_bytes.current()) {
                let held = sync.store.write_words_ahead(&part, end_row, &mut segments)?;
                self.part_bytes.adapt(held);
                follow_labels(&mut sync.labels, sync.store);
            }
            self.ready.extend(begun);
        }
        self.segment_messages = self.segment_messages.saturating_mul(2);
        for _ in 0..MERGE_STEPS_PER_SEGMENT {
            if !sync.store.merge_words(MAX_WRITING_SEGMENTS, &mut self.merged_bytes)? {
                break;
            }
            follow_labels(&mut sync.labels, sync.store);
        }
        Ok(())
    }

    /// Writes one batch of messages whose words are written.
    fn write_batch(&mut self, sync: &mut MailSync<'_>) -> Result<(), Error> {
        let batch = take_batch(&mut self.ready, self.batch_messages.current());
        if batch.count > 0 || !batch.changes.is_empty() {
            let written = batch.changes.len();
            let held = sync.apply(batch.changes, None, batch.end_row)?;
            self.batch_messages.adapt_to(written, held);
            self.done += batch.count;
        }
        Ok(())
    }
}

/// Takes messages that are written in one transaction, with at most so many changes. The mark of a
/// message that is to be read again is written with it, also beyond that number.
fn take_batch(ready: &mut VecDeque<UnwrittenMessages>, max_changes: usize) -> UnwrittenMessages {
    let mut batch = UnwrittenMessages { changes: Vec::new(), end_row: 0, count: 0 };
    while let Some(next) = ready.front_mut() {
        let room = max_changes.saturating_sub(batch.changes.len());
        let behind = next.changes.iter().skip(room);
        let marks = behind.take_while(|change| matches!(change, MailChange::ExpireFile { .. }));
        let room = room.saturating_add(marks.count());
        if next.changes.len() > room {
            // The rows of the rest are not reserved yet: a merge would take them for free ones.
            let rest = next.changes.split_off(room);
            let part = mem::replace(&mut next.changes, rest);
            let mut rows = part.iter().filter_map(MailChange::added_row);
            let count = rows.clone().count();
            batch.end_row = rows.next_back().map_or(batch.end_row, |row| row.saturating_add(1));
            batch.count += count;
            next.count -= count;
            batch.changes.extend(part);
            break;
        }
        if let Some(next) = ready.pop_front() {
            batch.changes.extend(next.changes);
            batch.end_row = next.end_row;
            batch.count += next.count;
        }
    }
    batch
}

/// Merges the words of a synchronisation, as [`merge_written_words`].
pub(super) fn merge_segments(sync: &mut MailSync<'_>, is_small: bool) -> Result<(), Error> {
    let MailSync { store, labels, is_cancelled, .. } = sync;
    let after_step = &mut |store: &mut Store| follow_labels(labels, store);
    merge_written_words(store, is_small, is_cancelled, after_step)
}

/// Merges the words after few items were written, or many, until few segments are left, and makes
/// parts of words quick to find. Between the transactions, `after_step` is called.
pub(crate) fn merge_written_words(
    store: &mut Store,
    is_small: bool,
    is_cancelled: &dyn Fn() -> bool,
    after_step: &mut dyn FnMut(&mut Store),
) -> Result<(), Error> {
    let settled = if is_small { MAX_RESTING_SEGMENTS } else { MAX_INDEXED_SEGMENTS };
    let (mut most, mut bytes) = (settled, MERGED_BYTES);
    while !is_small && !is_cancelled() && store.merge_words(most, &mut bytes)? {
        most = MAX_FINAL_SEGMENTS;
        after_step(store);
    }
    while !is_cancelled() && store.settle_words(settled, &mut bytes)? {
        after_step(store);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::{MailBatchBuilder, MailFile, MailFileState};

    fn add_file(builder: &mut MailBatchBuilder, row: u32) -> MailChange {
        let (message, _) = builder.prepare(row, b"Subject: x\n\nx\n", 0);
        let file = MailFile {
            directory: b"cur".to_vec(),
            name: row.to_string().into_bytes(),
            inode: 0,
            flags: Default::default(),
            state: MailFileState::default(),
        };
        MailChange::AddFile { file, message: Box::new(message) }
    }

    /// Messages in the rows of a range, of files of which some could not be read.
    fn unwritten(rows: std::ops::Range<u32>, unread: usize) -> UnwrittenMessages {
        let mut builder = MailBatchBuilder::new(&[]);
        let changes: Vec<MailChange> =
            rows.clone().map(|row| add_file(&mut builder, row)).collect();
        UnwrittenMessages { count: changes.len() + unread, changes, end_row: rows.end }
    }

    /// Each transaction reserves the rows of its messages, and not of those that follow.
    #[test]
    fn messages_are_divided_among_transactions() {
        let units = [(10..13, 0), (13..13, 2), (13..20, 1), (20..21, 0)];
        // The most changes of a transaction, and of each the number of files and the row after its
        // last one.
        let cases: [(usize, &[(usize, u32)]); 4] = [
            (100, &[(14, 21)]),
            (10, &[(13, 20), (1, 21)]),
            (4, &[(6, 14), (4, 18), (4, 21)]),
            (3, &[(5, 13), (3, 16), (3, 19), (3, 21)]),
        ];
        for (most, expect) in cases {
            let mut ready: VecDeque<UnwrittenMessages> =
                units.iter().map(|(rows, unread)| unwritten(rows.clone(), *unread)).collect();
            let mut written = Vec::new();
            let mut rows = Vec::new();
            while !ready.is_empty() {
                let batch = take_batch(&mut ready, most);
                assert!(batch.changes.len() <= most);
                rows.extend(batch.changes.iter().filter_map(MailChange::added_row));
                written.push((batch.count, batch.end_row));
            }
            assert_eq!(written, expect, "{most}");
            assert!(rows.into_iter().eq(10..21));
        }
    }

    /// Messages whose attachments are converted later are marked in the transaction that has them.
    #[test]
    fn marks_are_written_with_their_messages() {
        let marked = |rows: std::ops::Range<u32>| {
            let (mut builder, mut changes) = (MailBatchBuilder::new(&[]), Vec::new());
            for row in rows.clone() {
                changes.push(add_file(&mut builder, row));
                let (directory, name) = (b"cur".to_vec(), row.to_string().into_bytes());
                changes.push(MailChange::ExpireFile { directory, name });
            }
            UnwrittenMessages { changes, end_row: rows.end, count: rows.len() }
        };
        for most in 1..9 {
            let mut ready = VecDeque::from([marked(3..6), unwritten(6..6, 1), marked(6..8)]);
            let (mut count, mut messages) = (0, 0);
            while !ready.is_empty() {
                let batch = take_batch(&mut ready, most);
                assert!(batch.changes.len() <= most + 1);
                for pair in batch.changes.chunks(2) {
                    assert!(matches!(
                        pair,
                        [MailChange::AddFile { file, .. }, MailChange::ExpireFile { name, .. }]
                            if file.name == *name
                    ));
                    messages += 1;
                }
                count += batch.count;
            }
            assert_eq!((count, messages), (6, 5));
        }
    }
}

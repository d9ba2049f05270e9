//! Writing messages that were read: words by segments, rows by batches.
//!
//! A segment of words is much larger than a batch of rows, so that few segments are merged
//! afterwards, and a batch is small, because others wait for the lock while it is written. The
//! words of a segment are written first, in parts, and then the messages in batches, while readers
//! prepare the next ones. Words without a message are never found. Few messages are written with
//! their words, in one transaction.
//!
//! The first segment of many messages is small, so that the newest ones are found at once; the size
//! doubles until the words take [`MAX_SEGMENT_BYTES`] in memory. Few messages are one segment and
//! one transaction: a second one would write the same pages again.
//!
//! Separate from `message_pipeline`, which reads and parses without the store.

use super::MailSync;
use super::message_pipeline::PreparedBatch;
use crate::error::Error;
use larder_store::{
    BegunWordSegments, MAX_RESTING_SEGMENTS, MailChange, SegmentWords, Store, new_segment_words,
};
use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

/// The number of messages of the first segment.
const FIRST_SEGMENT_MESSAGES: usize = 128;
/// The time after which messages are written, when converters are slow.
const MAX_SEGMENT_TIME: Duration = Duration::from_secs(5);
/// The bytes of words and converted texts in memory that make a segment.
const MAX_SEGMENT_BYTES: usize = 16 << 20;
/// The bytes of a segment that are written in one transaction.
const PART_BYTES: usize = 1 << 20;
/// The most segments that are not merged while messages are added.
const MAX_WRITING_SEGMENTS: usize = 12;
/// The most segments that are left after many messages, and of a merge then: messages that come one
/// by one later need a few more.
const MAX_INDEXED_SEGMENTS: usize = 8;
const MAX_FINAL_SEGMENTS: usize = 5;
/// The bytes of words that are merged in one transaction.
const MERGED_BYTES_PER_STEP: i64 = 4 << 20;
/// The transactions of a merge after each segment.
const MERGE_STEPS_PER_SEGMENT: usize = 4;

/// Messages that were read and are not written yet.
pub(super) struct MessageWriter {
    batch_messages: usize,
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
        let batch_messages = batch_messages.max(1);
        let is_small = messages <= batch_messages;
        MessageWriter {
            batch_messages,
            segment_messages: if is_small {
                batch_messages
            } else {
                FIRST_SEGMENT_MESSAGES.min(batch_messages)
            },
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

    /// Merges the words until few segments are left, or the user interrupts it.
    pub(super) fn merge_segments(&self, sync: &mut MailSync<'_>) -> Result<(), Error> {
        let is_small = self.done <= self.batch_messages;
        merge_written_words(sync.store, is_small, sync.is_cancelled)
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
        if begun.iter().map(|one| one.count).sum::<usize>() <= self.batch_messages {
            let words = encoder.next_part(usize::MAX);
            self.done += begun.iter().map(|one| one.count).sum::<usize>();
            let changes = begun.into_iter().flat_map(|one| one.changes).collect();
            sync.apply(changes, words, end_row)?;
        } else {
            let mut segments = BegunWordSegments::default();
            while let Some(part) = encoder.next_part(PART_BYTES) {
                sync.store.write_words_ahead(&part, end_row, &mut segments)?;
            }
            self.ready.extend(begun);
        }
        self.segment_messages = self.segment_messages.saturating_mul(2);
        for _ in 0..MERGE_STEPS_PER_SEGMENT {
            if !sync.store.merge_words(MAX_WRITING_SEGMENTS, MERGED_BYTES_PER_STEP)? {
                break;
            }
        }
        Ok(())
    }

    /// Writes one batch of messages whose words are written.
    fn write_batch(&mut self, sync: &mut MailSync<'_>) -> Result<(), Error> {
        let (mut changes, mut end_row, mut count) = (Vec::new(), 0, 0);
        while let Some(next) = self.ready.front()
            && (count == 0 || count + next.count <= self.batch_messages)
            && let Some(next) = self.ready.pop_front()
        {
            changes.extend(next.changes);
            (end_row, count) = (next.end_row, count + next.count);
        }
        if count > 0 {
            sync.apply(changes, None, end_row)?;
            self.done += count;
        }
        Ok(())
    }
}

/// Merges the words after few items were written, or many, until few segments are left.
pub(crate) fn merge_written_words(
    store: &mut Store,
    is_small: bool,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let mut most = if is_small { MAX_RESTING_SEGMENTS } else { MAX_INDEXED_SEGMENTS };
    while !is_cancelled() && store.merge_words(most, MERGED_BYTES_PER_STEP)? {
        most = if is_small { MAX_RESTING_SEGMENTS } else { MAX_FINAL_SEGMENTS };
    }
    Ok(())
}

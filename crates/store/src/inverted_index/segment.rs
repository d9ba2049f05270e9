//! Segments: immutable runs of terms in the database, and reading them in place.
//!
//! `idx_segment` has a row for each, `idx_chunk` its chunks, `idx_fence` the first term of each
//! chunk but the first. A segment is read by one step into `idx_fence` and then chunk by chunk;
//! nothing is ever loaded whole.

use super::chunk::{ChunkBuilder, ChunkEntries, PackedPostings, Postings};
use super::term;
use crate::Seq;
use crate::index_maintenance::DerivedIndex;
use rusqlite::{Connection, OptionalExtension as _};

/// Chunks of a segment have this many numbers.
const MAX_CHUNKS_PER_SEGMENT: i64 = 1 << 24;

/// A row of `idx_segment`.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(super) id: i64,
    /// What it says of an item holds if the item was last changed by this batch, or before.
    pub(super) max_seq: Seq,
    /// Its chunks' numbers, from the first to behind the last.
    pub(super) chunks: std::ops::Range<i64>,
    /// Terms before this one have gone on to the segment it is merged into.
    pub(super) from_term: Vec<u8>,
    /// How many bytes its chunks had when it was written.
    pub(super) bytes: i64,
    /// There are items in it that are always candidates.
    pub(super) has_oversized: bool,
    /// The segment that it is being merged into.
    pub(super) merged_into: Option<i64>,
}

/// SQLite's error for a file that is damaged, in our words.
pub(super) fn malformed_chunk_error() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
        Some("a chunk of the index is malformed".into()),
    )
}

/// All segments of a set, the oldest first.
pub(crate) fn read_segments(
    conn: &Connection,
    set: DerivedIndex,
) -> rusqlite::Result<Vec<Segment>> {
    let mut select = conn.prepare_cached(
        "SELECT id, max_seq, first_chunk, end_chunk, from_term, bytes, has_oversized, merged_into
         FROM idx_segment WHERE derived_index = ?1",
    )?;
    let mut rows = select.query([set as i64])?;
    let mut segments = Vec::new();
    while let Some(row) = rows.next()? {
        segments.push(Segment {
            id: row.get(0)?,
            max_seq: row.get(1)?,
            chunks: row.get(2)?..row.get(3)?,
            from_term: row.get_ref(4)?.as_blob()?.to_vec(),
            bytes: row.get(5)?,
            has_oversized: row.get(6)?,
            merged_into: row.get(7)?,
        });
    }
    // They are few: SQLite takes longer.
    segments.sort_by_key(|segment| (segment.max_seq, segment.id));
    Ok(segments)
}

/// Makes a segment without any chunk; returns its number.
pub(super) fn create_segment(
    conn: &Connection,
    set: DerivedIndex,
    max_seq: Seq,
    large: bool,
) -> rusqlite::Result<i64> {
    conn.prepare_cached(
        "INSERT INTO idx_segment(derived_index, max_seq, first_chunk, end_chunk, from_term, bytes, has_oversized, rank_delta)
         VALUES(?1, ?2, 0, 0, x'', 0, ?3, 0)",
    )?
    .execute((set as i64, max_seq, large))?;
    Ok(conn.last_insert_rowid())
}

impl Segment {
    /// Gives each entry from the term `from` on to `each`, until that answers false. A frequent
    /// term comes several times, one after the other.
    pub(super) fn for_each_entry(
        &self,
        conn: &Connection,
        from: &[u8],
        each: &mut dyn FnMut(&[u8], Postings<'_>) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<()> {
        let from = from.max(&self.from_term);
        let mut term = Vec::new();
        for number in self.find_chunk_before(conn, from)?..self.chunks.end {
            let go_on = self.read_chunk(conn, number, |chunk| {
                let mut entries = ChunkEntries::new(chunk);
                if term.is_empty() {
                    let Some(entry) = entries.seek(from).map_err(|_| malformed_chunk_error())?
                    else {
                        return Ok(true);
                    };
                    term.extend_from_slice(
                        from.get(..entry.shared).ok_or_else(malformed_chunk_error)?,
                    );
                    term.extend_from_slice(entry.suffix);
                    if !each(&term, entry.postings)? {
                        return Ok(false);
                    }
                }
                while let Some(entry) = entries.next().map_err(|_| malformed_chunk_error())? {
                    if entry.shared > term.len() {
                        return Err(malformed_chunk_error());
                    }
                    term.truncate(entry.shared);
                    term.extend_from_slice(entry.suffix);
                    if !each(&term, entry.postings)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            })?;
            if !go_on {
                break;
            }
        }
        Ok(())
    }

    /// Adds the items of a term to `items`, in their order.
    pub(super) fn read_postings(
        &self,
        conn: &Connection,
        term: &[u8],
        items: &mut Vec<i64>,
    ) -> rusqlite::Result<()> {
        self.for_each_entry(conn, term, &mut |found, postings| {
            if found != term {
                return Ok(false);
            }
            postings.unpack(items).ok_or_else(malformed_chunk_error)?;
            Ok(true)
        })
    }

    /// How many items a term has; it is not counted beyond `enough`.
    pub(super) fn count_postings(
        &self,
        conn: &Connection,
        term: &[u8],
        enough: u64,
    ) -> rusqlite::Result<u64> {
        let mut count: u64 = 0;
        self.for_each_entry(conn, term, &mut |found, postings| {
            let same = found == term;
            count = count.saturating_add(if same { postings.count } else { 0 });
            Ok(same && count < enough)
        })?;
        Ok(count)
    }

    /// The last chunk that begins before this term, else the first of all: the term, if it is
    /// there, begins in it or in the next one.
    pub(super) fn find_chunk_before(
        &self,
        conn: &Connection,
        term: &[u8],
    ) -> rusqlite::Result<i64> {
        if self.chunks.end - self.chunks.start <= 1 {
            return Ok(self.chunks.start);
        }
        Ok(self.find_fence(conn, term)?.map_or(self.chunks.start, |(chunk, _)| chunk))
    }

    /// The last chunk that begins before this term, and what the chunks before it come to.
    fn find_fence(&self, conn: &Connection, term: &[u8]) -> rusqlite::Result<Option<(i64, i64)>> {
        conn.prepare_cached(
            "SELECT chunk, rank_delta FROM idx_fence WHERE segment = ?1 AND first_term < ?2
             ORDER BY first_term DESC, chunk DESC LIMIT 1",
        )?
        .query_row((self.id, term), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
    }

    /// How many items more the sort terms from `from` to before `to` put into an order than they
    /// take out.
    pub(super) fn rank_delta(
        &self,
        conn: &Connection,
        from: &[u8],
        to: &[u8],
    ) -> rusqlite::Result<i64> {
        if self.chunks.is_empty() || to <= self.from_term.as_slice() {
            return Ok(0);
        }
        Ok(self.rank_delta_before(conn, to)?
            - self.rank_delta_before(conn, from.max(&self.from_term))?)
    }

    /// How many items more the sort terms before this one put into an order than they take out,
    /// from somewhere that is the same for all terms.
    fn rank_delta_before(&self, conn: &Connection, term: &[u8]) -> rusqlite::Result<i64> {
        let (number, mut net) = match self.find_fence(conn, term)? {
            Some(fence) => fence,
            None if self.chunks.start == 0 => (0, 0),
            None => {
                let sql = "SELECT rank_delta FROM idx_fence WHERE segment = ?1 ORDER BY first_term, chunk LIMIT 1";
                return conn.prepare_cached(sql)?.query_row([self.id], |row| row.get(0));
            }
        };
        let mut found = Vec::new();
        self.read_chunk(conn, number, |chunk| {
            let mut entries = ChunkEntries::new(chunk);
            while let Some(entry) = entries.next().map_err(|_| malformed_chunk_error())? {
                found.truncate(entry.shared);
                found.extend_from_slice(entry.suffix);
                if found.as_slice() >= term {
                    break;
                }
                net = net.saturating_add(
                    term::sort_sign(&found).saturating_mul(entry.postings.count as i64),
                );
            }
            Ok(net)
        })
    }

    pub(super) fn read_chunk<T>(
        &self,
        conn: &Connection,
        number: i64,
        read: impl FnOnce(&[u8]) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut select = conn.prepare_cached("SELECT data FROM idx_chunk WHERE id = ?1")?;
        let id = self.id.checked_mul(MAX_CHUNKS_PER_SEGMENT).and_then(|id| id.checked_add(number));
        let mut rows = select.query([id.ok_or_else(malformed_chunk_error)?])?;
        let row = rows.next()?.ok_or_else(malformed_chunk_error)?;
        read(row.get_ref(0)?.as_blob().map_err(|_| malformed_chunk_error())?)
    }

    /// Takes the chunks before `number` away for now; [`Segment::drop_merged_prefix`] or
    /// [`Segment::delete`] has to follow in the same transaction.
    pub(super) fn delete_read_chunks(
        &mut self,
        conn: &Connection,
        number: i64,
    ) -> rusqlite::Result<()> {
        self.delete_chunks(conn, number)?;
        self.chunks.start = number;
        Ok(())
    }

    /// Takes the chunks before `number` away, and with them the terms before `from`.
    pub(super) fn drop_merged_prefix(
        &self,
        conn: &Connection,
        number: i64,
        from: &[u8],
    ) -> rusqlite::Result<()> {
        // Each of these chunks begins with `from` or before it.
        conn.prepare_cached(
            "DELETE FROM idx_fence WHERE segment = ?1 AND first_term <= ?2 AND chunk < ?3",
        )?
        .execute((self.id, from, number))?;
        self.delete_chunks(conn, number)?;
        conn.prepare_cached(
            "UPDATE idx_segment SET first_chunk = ?2, from_term = ?3 WHERE id = ?1",
        )?
        .execute((self.id, number, from))
        .map(drop)
    }

    /// Takes it away.
    pub(super) fn delete(&self, conn: &Connection) -> rusqlite::Result<()> {
        if self.chunks.end > 1 {
            conn.prepare_cached("DELETE FROM idx_fence WHERE segment = ?1")?.execute([self.id])?;
        }
        self.delete_chunks(conn, self.chunks.end)?;
        conn.prepare_cached("DELETE FROM idx_segment WHERE id = ?1")?.execute([self.id]).map(drop)
    }

    fn delete_chunks(&self, conn: &Connection, end: i64) -> rusqlite::Result<()> {
        let first =
            self.id.checked_mul(MAX_CHUNKS_PER_SEGMENT).ok_or_else(malformed_chunk_error)?;
        conn.prepare_cached("DELETE FROM idx_chunk WHERE id >= ?1 AND id < ?2")?
            .execute((first + self.chunks.start, first + end))
            .map(drop)
    }
}

/// Writes chunks at the end of a segment.
pub(super) struct SegmentWriter<'a> {
    chunk_builder: ChunkBuilder,
    appender: ChunkAppender<'a>,
}

/// The end of a segment.
struct ChunkAppender<'a> {
    conn: &'a Connection,
    segment: i64,
    /// The number of the next chunk.
    next_chunk: i64,
    bytes: i64,
    /// What the chunks come to that are written.
    rank_delta: i64,
}

impl<'a> SegmentWriter<'a> {
    /// Begins a segment in which nothing is yet.
    pub(super) fn begin(conn: &'a Connection, id: i64) -> SegmentWriter<'a> {
        SegmentWriter {
            chunk_builder: ChunkBuilder::default(),
            appender: ChunkAppender { conn, segment: id, next_chunk: 0, bytes: 0, rank_delta: 0 },
        }
    }

    /// Continues a segment.
    pub(super) fn open(conn: &'a Connection, id: i64) -> rusqlite::Result<SegmentWriter<'a>> {
        let (next, net) = conn
            .prepare_cached("SELECT end_chunk, rank_delta FROM idx_segment WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(SegmentWriter {
            chunk_builder: ChunkBuilder::default(),
            appender: ChunkAppender {
                conn,
                segment: id,
                next_chunk: next,
                bytes: 0,
                rank_delta: net,
            },
        })
    }

    /// Adds a term with its items; terms come in their order, and so do items.
    pub(super) fn add(&mut self, term: &[u8], items: &[i64]) -> rusqlite::Result<()> {
        let end = &mut self.appender;
        self.chunk_builder.add(term, items, term::sort_sign(term), &mut |first, chunk, net| {
            end.append_chunk(first, chunk, net)
        })
    }

    /// The same with items that are packed already, which are all that the term has.
    pub(super) fn add_packed(
        &mut self,
        term: &[u8],
        items: &PackedPostings,
    ) -> rusqlite::Result<()> {
        let end = &mut self.appender;
        self.chunk_builder.add_packed(
            term,
            items,
            term::sort_sign(term),
            &mut |first, chunk, net| end.append_chunk(first, chunk, net),
        )
    }

    /// Writes the last chunk, and what there is now into the segment's row. Returns how many bytes
    /// were added.
    pub(super) fn finish(mut self) -> rusqlite::Result<i64> {
        let end = &mut self.appender;
        self.chunk_builder.finish(&mut |first, chunk, net| end.append_chunk(first, chunk, net))?;
        end.conn
            .prepare_cached(
                "UPDATE idx_segment SET end_chunk = ?2, bytes = bytes + ?3, rank_delta = ?4 WHERE id = ?1",
            )?
            .execute((end.segment, end.next_chunk, end.bytes, end.rank_delta))?;
        Ok(end.bytes)
    }
}

impl ChunkAppender<'_> {
    fn append_chunk(&mut self, first: &[u8], chunk: &[u8], net: i64) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("INSERT INTO idx_chunk VALUES(?1, ?2)")?
            .execute((self.segment * MAX_CHUNKS_PER_SEGMENT + self.next_chunk, chunk))?;
        // Whatever is before the others is in the first one.
        if self.next_chunk > 0 {
            self.conn.prepare_cached("INSERT INTO idx_fence VALUES(?1, ?2, ?3, ?4)")?.execute((
                self.segment,
                first,
                self.next_chunk,
                self.rank_delta,
            ))?;
        }
        self.next_chunk += 1;
        self.bytes += chunk.len() as i64;
        self.rank_delta += net;
        Ok(())
    }
}

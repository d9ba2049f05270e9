//! Merging segments into larger ones, a range of terms at a time.
//!
//! A merge moves terms, in their order, from its inputs to a new segment: each step moves some, within the
//! transaction of a batch, and takes the chunks that have become empty away. So no step is long, no space is
//! needed for a second copy, and the index can be read between any two steps.
//!
//! What a segment says of an item is dropped where a newer input of the merge knows the item, too: all that
//! holds of it is said there. What is older than the merge is left to a later one.

use super::chunk::{Entries, Packed, Postings};
use super::segment::{self, Segment, Writer, malformed};
use super::term;
use crate::derived::IndexSet;
use rusqlite::Connection;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem;

/// So many neighbours of about one size are merged into one...
const NEIGHBOURS: usize = 4;
/// ...and so many of those from this many bytes on, which are a large job's: it is going to merge them in the end.
const MANY_NEIGHBOURS: usize = 64;
const LARGE: i64 = 32 << 10;
/// So many times larger than all newer ones is much larger. A byte is moved 5 times then before it is at rest, and there are 7 segments;
/// it would be 8 times, and 5 segments, with 4 (reckoned for single items of 450 bytes, behind 1.3 MB).
const MUCH: i64 = 2;
/// Segments up to this many bytes are of the smallest size.
const SMALLEST: i64 = 4096;
/// A batch moves this many times its own bytes...
const SHARE: i64 = 4;
/// ...but so many at least.
const LEAST: i64 = 32 << 10;
/// So many items are listed without asking whether they have to be.
const LISTED: usize = 4096;
/// So many chunks are taken away at once.
const FREED: i64 = 16;

/// Does the share of merging that a batch of so many bytes owes.
pub(super) fn share(conn: &Connection, set: IndexSet, bytes: i64) -> rusqlite::Result<()> {
    work(conn, set, (bytes * SHARE).max(LEAST), choose_by_size).map(drop)
}

/// Moves up to about so many bytes towards as few segments as are worth having. False: there is nothing to do.
pub(crate) fn merge_most(conn: &Connection, budget: i64) -> rusqlite::Result<bool> {
    for set in IndexSet::ALL {
        if work(conn, set, budget, choose_most)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Merges everything into one segment of each set, which says nothing of items that are gone.
pub(crate) fn merge_all(conn: &Connection) -> rusqlite::Result<()> {
    for set in IndexSet::ALL {
        while work(conn, set, i64::MAX, |free| (free.len() > 1).then_some(0..free.len()))? {}
    }
    Ok(())
}

type Choose = fn(&[Segment]) -> Option<std::ops::Range<usize>>;

fn work(conn: &Connection, set: IndexSet, budget: i64, choose: Choose) -> rusqlite::Result<bool> {
    let mut merges: BTreeMap<i64, Vec<Segment>> = BTreeMap::new();
    for segment in begin(conn, set, choose)? {
        if let Some(into) = segment.into {
            merges.entry(into).or_default().push(segment);
        }
    }
    let mut merges: Vec<(i64, Vec<Segment>)> = merges.into_iter().collect();
    // Small ones first: they are soon done, and each segment costs every reader.
    merges.sort_by_key(|(_, inputs)| inputs.iter().map(Segment::left).sum::<i64>());
    let found = !merges.is_empty();
    let mut left = budget;
    for (into, inputs) in merges {
        if left <= 0 {
            break;
        }
        left -= step(conn, into, inputs, left)?;
    }
    Ok(found)
}

impl Segment {
    fn left(&self) -> i64 {
        (self.chunks.end - self.chunks.start) * super::chunk::CHUNK as i64
    }

    /// 0 for the smallest; each next one is of segments that as many of the former make.
    fn size(&self) -> u32 {
        let ratio = (self.bytes.max(1) - 1) / SMALLEST;
        ratio.checked_ilog(NEIGHBOURS as i64).map_or(0, |log| log + 1)
    }
}

/// Marks the runs that are worth merging, and returns all segments. Only neighbours are: what lies between them could be
/// about the same items.
fn begin(conn: &Connection, set: IndexSet, choose: Choose) -> rusqlite::Result<Vec<Segment>> {
    let mut segments = segment::all(conn, set)?;
    let is_target = |id| segments.iter().any(|segment| segment.into == Some(id));
    let mut marked: Vec<(i64, i64)> = Vec::new();
    for free in segments.split(|segment| segment.into.is_some() || is_target(segment.id)) {
        let Some(inputs) = choose(free).and_then(|run| free.get(run)) else { continue };
        let Some(last) = inputs.last() else { continue };
        let large = inputs.iter().any(|segment| segment.large);
        let into = segment::create(conn, set, last.max_seq, large)?;
        marked.extend(inputs.iter().map(|input| (input.id, into)));
    }
    let mut mark = conn.prepare_cached("UPDATE idx_segment SET merged_into = ?2 WHERE id = ?1")?;
    for (input, into) in marked {
        mark.execute((input, into))?;
        for segment in segments.iter_mut().filter(|segment| segment.id == input) {
            segment.into = Some(into);
        }
    }
    Ok(segments)
}

/// The newest ones that are of one size, or smaller, if they are enough; none that is much larger than all newer ones,
/// which would be written again for a few items.
fn choose_by_size(free: &[Segment]) -> Option<std::ops::Range<usize>> {
    let largest = free.iter().map(Segment::size).max()?;
    (0..=largest).find_map(|size| {
        let (mut count, mut least, mut sum) = (0, i64::MAX, 0_i64);
        for segment in free.iter().rev().take_while(|segment| segment.size() <= size) {
            if count > 0 && segment.bytes / MUCH > sum {
                break;
            }
            (count, least) = (count + 1, least.min(segment.bytes));
            sum = sum.saturating_add(segment.bytes);
        }
        let enough = if least < LARGE { NEIGHBOURS } else { MANY_NEIGHBOURS };
        (count >= enough).then_some(free.len() - count..free.len())
    })
}

/// All, or all but a first one that is much larger than the rest.
fn choose_most(free: &[Segment]) -> Option<std::ops::Range<usize>> {
    let (first, rest) = free.split_first()?;
    let small: i64 = rest.iter().map(|segment| segment.bytes).sum();
    let start = usize::from(first.bytes > small * 8);
    (free.len() - start > 1).then_some(start..free.len())
}

/// Moves terms of one merge, up to about so many bytes. Returns how many.
fn step(
    conn: &Connection,
    into: i64,
    segments: Vec<Segment>,
    budget: i64,
) -> rusqlite::Result<i64> {
    let mut inputs = Input::open(conn, segments)?;
    let mut writer = Writer::open(conn, into)?;
    let mut moved = Moved::default();
    let mut read = 0;
    while let Some(least) = Least::of(&inputs) {
        // What takes items out of an order goes with what puts them in.
        let term = least.term(&inputs);
        if read >= budget && !(term::sign(term) < 0 && moved.same_place(term)) {
            break;
        }
        read += moved.take(conn, &mut inputs, least)?;
        match moved.is_packed {
            true => writer.copy(&moved.term, &moved.packed)?,
            false => writer.add(&moved.term, &moved.items)?,
        }
        // What was read makes room for what is written.
        inputs.iter_mut().try_for_each(|input| input.free(conn, FREED))?;
    }
    writer.finish()?;
    let least = Least::of(&inputs).map(|least| least.term(&inputs).to_vec());
    for mut input in inputs {
        match &least {
            None => input.segment.delete(conn)?,
            Some(least) => input.give_up(conn, least)?,
        }
    }
    Ok(read)
}

/// A term on its way, with what holds of its items.
#[derive(Default)]
struct Moved {
    term: Vec<u8>,
    items: Vec<i64>,
    /// They are these instead, as they were: most terms of a merge are of one input, which has the last word on their items.
    packed: Packed,
    is_packed: bool,
    /// Items that were not taken along, of this place in an order.
    dropped: Vec<i64>,
}

impl Moved {
    /// Takes the least term of all inputs, and its items together. Returns how many bytes were read.
    fn take(
        &mut self,
        conn: &Connection,
        inputs: &mut [Input],
        least: Least,
    ) -> rusqlite::Result<i64> {
        let term = least.term(inputs);
        let out = term::sign(term) < 0;
        if !out || !self.same_place(term) {
            self.dropped.clear();
        }
        self.term.clear();
        self.term.extend_from_slice(term);
        self.items.clear();
        self.is_packed = false;
        if let Some(input) = inputs.get_mut(least.at)
            && least.only
            && self.dropped.is_empty()
            && input.newer.is_empty()
            && let Some(packed) = input.small()
        {
            self.is_packed = true;
            mem::swap(&mut self.packed, packed);
            return input.advance(conn);
        }
        let at_it = |input: &&Input| input.is_at(&self.term);
        let count = inputs.iter().filter(at_it).flat_map(Input::packed).map(Packed::count).sum();
        self.items.reserve_exact(count);
        let mut read = 0;
        for input in inputs.iter_mut().skip(least.at) {
            if !input.is_at(&self.term) {
                continue;
            }
            let from = self.items.len();
            for packed in input.packed() {
                packed.unpack(&mut self.items).ok_or_else(malformed)?;
            }
            if !out && !input.newer.is_empty() {
                self.drop_known(from, &input.newer);
            }
            read += input.advance(conn)?;
        }
        if !self.items.is_sorted() {
            self.items.sort_unstable();
        }
        match out {
            true => self.cancel(),
            false => self.items.dedup(),
        }
        Ok(read)
    }

    /// Of the items from `from` on, those that are `known` to a newer input are not taken along.
    fn drop_known(&mut self, from: usize, known: &[i64]) {
        let mut kept = from;
        for at in from..self.items.len() {
            let item = self.items[at];
            match known.binary_search(&item).is_ok() {
                true => self.dropped.push(item),
                false => {
                    self.items[kept] = item;
                    kept += 1;
                }
            }
        }
        self.items.truncate(kept);
    }

    /// Items come into a place and go out of it in turn. For each time that one was put in and is not taken along, one
    /// time that it was taken out goes, too; what is left is that it was there before the first of the inputs.
    fn cancel(&mut self) {
        self.dropped.sort_unstable();
        let mut dropped = self.dropped.iter().peekable();
        self.items.retain(|item| {
            while dropped.next_if(|other| *other < item).is_some() {}
            dropped.next_if(|other| *other == item).is_none()
        });
        self.items.dedup();
    }

    fn same_place(&self, term: &[u8]) -> bool {
        term::key(term).is_some()
            && term.split_last().map(|(_, place)| place)
                == self.term.split_last().map(|(_, place)| place)
    }
}

/// The least of the present terms.
#[derive(Clone, Copy)]
struct Least {
    /// The first input that is at it.
    at: usize,
    /// No other one is.
    only: bool,
}

impl Least {
    /// `None`: all inputs have ended.
    fn of(inputs: &[Input]) -> Option<Least> {
        let mut open = inputs.iter().enumerate().filter(|(_, input)| !input.ended);
        let (at, mut first) = open.next()?;
        let mut least = Least { at, only: true };
        for (at, input) in open {
            let order = input.beginning.cmp(&first.beginning);
            match order.then_with(|| input.term.cmp(&first.term)) {
                Ordering::Less => (least, first) = (Least { at, only: true }, input),
                Ordering::Equal => least.only = false,
                Ordering::Greater => {}
            }
        }
        Some(least)
    }

    fn term(self, inputs: &[Input]) -> &[u8] {
        inputs.get(self.at).map_or(&[], |input| &input.term)
    }
}

/// A segment on its way into another one.
struct Input {
    segment: Segment,
    /// Items of which a newer input knows all that holds.
    newer: Vec<i64>,
    /// The chunk that is being read: its number, its bytes, and how many of them were read.
    number: i64,
    chunk: Vec<u8>,
    at: usize,
    /// The chunk in which the present term began.
    began: i64,
    term: Vec<u8>,
    /// The term's first bytes, see [`term::beginning`].
    beginning: u64,
    /// Its items, as they are packed: so many entries of these. Of a frequent term they would take eight times as much.
    packed: Vec<Packed>,
    entries: usize,
    ended: bool,
}

impl Input {
    /// Opens the inputs of a merge, the oldest first, each at its first term.
    fn open(conn: &Connection, segments: Vec<Segment>) -> rusqlite::Result<Vec<Input>> {
        let touched = |segment: &Segment| -> rusqlite::Result<Vec<i64>> {
            let mut touched = Vec::new();
            segment.postings(conn, &term::touched(), &mut touched)?;
            Ok(touched)
        };
        // Of most, no other knows an item, as they are of items that were new: those need no list of them.
        let (mut ranges, mut lists, mut listed) = (Vec::new(), Vec::new(), 0);
        for segment in &segments {
            let items = touched(segment)?;
            ranges.push(items.first().copied().zip(items.last().copied()));
            listed += items.len();
            lists.push((listed <= LISTED).then_some(items));
        }
        let meet = |a: usize, b: usize| match (ranges.get(a), ranges.get(b)) {
            (Some(Some(a)), Some(Some(b))) => a.0 <= b.1 && b.0 <= a.1,
            _ => false,
        };
        let count = segments.len();
        let (mut inputs, mut newer) = (Vec::new(), Vec::new());
        for (at, segment) in segments.into_iter().enumerate().rev() {
            let mut known: Vec<i64> = Vec::new();
            if (0..count).any(|other| other != at && meet(at, other)) {
                let items = match lists.get_mut(at).and_then(Option::take) {
                    Some(items) => items,
                    None => touched(&segment)?,
                };
                known =
                    items.iter().copied().filter(|of| newer.binary_search(of).is_ok()).collect();
                newer.extend(items);
                newer.sort_unstable();
                newer.dedup();
            }
            let number = segment.chunks.start;
            let mut input = Input {
                segment,
                newer: known,
                number,
                chunk: Vec::new(),
                at: 0,
                began: number,
                term: Vec::new(),
                beginning: 0,
                packed: Vec::new(),
                entries: 0,
                ended: false,
            };
            input.load(conn)?;
            input.advance(conn)?;
            while !input.ended && input.term < input.segment.from {
                input.advance(conn)?;
            }
            inputs.push(input);
        }
        inputs.reverse();
        Ok(inputs)
    }

    /// Is this its present term?
    fn is_at(&self, term: &[u8]) -> bool {
        !self.ended && self.term == term
    }

    fn load(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        self.chunk.clear();
        self.at = 0;
        if self.number < self.segment.chunks.end {
            let (number, chunk) = (self.number, &mut self.chunk);
            self.segment.read(conn, number, |data| {
                chunk.extend_from_slice(data);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The items of the present term, packed.
    fn packed(&self) -> &[Packed] {
        self.packed.get(..self.entries).unwrap_or_default()
    }

    /// Those of the present term, where they are few, and in one entry.
    fn small(&mut self) -> Option<&mut Packed> {
        match self.entries {
            1 => self.packed.first_mut().filter(|packed| packed.is_small()),
            _ => None,
        }
    }

    /// Keeps one more entry of the present term.
    fn keep(&mut self, postings: &Postings<'_>) {
        if self.entries == self.packed.len() {
            self.packed.push(Packed::default());
        }
        if let Some(packed) = self.packed.get_mut(self.entries) {
            packed.set(postings);
            self.entries += 1;
        }
    }

    /// Goes to the next term and gathers its items. Returns how many bytes were read.
    fn advance(&mut self, conn: &Connection) -> rusqlite::Result<i64> {
        self.entries = 0;
        self.fill(conn)?;
        let chunk = mem::take(&mut self.chunk);
        let mut entries = Entries::of(&chunk[self.at..]);
        let first = entries.next().map_err(|_| malformed())?;
        let left = entries.left();
        if let Some(entry) = first {
            if entry.shared > self.term.len() {
                return Err(malformed());
            }
            self.term.truncate(entry.shared);
            self.term.extend_from_slice(entry.suffix);
            self.beginning = term::beginning(&self.term);
            self.keep(&entry.postings);
        }
        self.ended = first.is_none();
        self.chunk = chunk;
        self.began = self.number;
        let mut read = self.read_to(left);
        // A frequent term has several entries.
        while !self.ended && self.take_more(conn, &mut read)? {}
        Ok(read)
    }

    /// Keeps the next entry, if it is of the present term; else false.
    fn take_more(&mut self, conn: &Connection, read: &mut i64) -> rusqlite::Result<bool> {
        self.fill(conn)?;
        let chunk = mem::take(&mut self.chunk);
        let mut entries = Entries::of(&chunk[self.at..]);
        let next = match entries.go_on(&self.term) {
            true => entries.next().map_err(|_| malformed())?,
            false => None,
        };
        let left = entries.left();
        if let Some(entry) = next {
            self.keep(&entry.postings);
        }
        let more = next.is_some();
        self.chunk = chunk;
        *read += self.read_to(left);
        Ok(more)
    }

    /// Goes on to the next chunk, where the present one is read.
    fn fill(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        if self.at == self.chunk.len() && self.number < self.segment.chunks.end {
            self.number += 1;
            self.load(conn)?;
            if self.chunk.is_empty() && self.number < self.segment.chunks.end {
                return Err(malformed());
            }
        }
        Ok(())
    }

    /// So many bytes of the chunk are left; returns how many were read.
    fn read_to(&mut self, left: usize) -> i64 {
        let end = self.chunk.len() - left;
        let read = (end - self.at) as i64;
        self.at = end;
        read
    }

    /// Takes chunks away that were read, as soon as there are so many of them.
    fn free(&mut self, conn: &Connection, many: i64) -> rusqlite::Result<()> {
        let end = if self.ended { self.segment.chunks.end } else { self.began };
        match end - self.segment.chunks.start >= many {
            true => self.segment.free(conn, end),
            false => Ok(()),
        }
    }

    /// Keeps what begins with the term `from`, which is not moved yet.
    fn give_up(&mut self, conn: &Connection, from: &[u8]) -> rusqlite::Result<()> {
        let number = if self.ended { self.segment.chunks.end } else { self.began };
        self.segment.consume(conn, number, from)
    }
}

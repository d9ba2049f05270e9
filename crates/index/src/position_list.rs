//! The positions of a term in the items of a posting list, for phrases and proximity.
//!
//! A posting list of text is followed by one *position list* for each posting:
//!
//! | positions | bytes |
//! |---|---|
//! | one | the position, doubled, plus one, as a varint |
//! | several | the length of the rest in bytes, doubled, as a varint; the first position and the gaps as varints |
//!
//! The length in front lets a reader pass a posting without decoding it, and a merge copy it
//! unread.
//!
//! Separate from `block`, which has postings alone: the terms of contacts have no positions, and a
//! conjunction reads the positions only of items that have all of its terms.

use crate::block::CorruptBlock;
use crate::varint::{read_varint, write_varint};
use std::cmp::Ordering;
use std::ops::Range;

/// Appends the positions of one posting, in ascending order and at least one.
pub fn write_position_list(bytes: &mut Vec<u8>, positions: &[u32]) {
    debug_assert!(positions.is_sorted_by(|a, b| a < b) && !positions.is_empty());
    if let [position] = positions {
        write_varint(bytes, u64::from(*position) << 1 | 1);
        return;
    }
    let gaps = || {
        let previous = [0].iter().chain(positions);
        positions.iter().zip(previous).map(|(position, previous)| position - previous)
    };
    let length: u64 = gaps().map(varint_length).sum();
    write_varint(bytes, length << 1);
    gaps().for_each(|gap| write_varint(bytes, u64::from(gap)));
}

/// Returns the number of bytes of a varint.
pub(crate) fn varint_length(number: u32) -> u64 {
    u64::from((38 - (number | 1).leading_zeros()) / 7)
}

/// Reads the position lists of consecutive postings.
#[derive(Debug, Clone, Copy)]
pub struct PositionLists<'a> {
    rest: &'a [u8],
}

impl<'a> PositionLists<'a> {
    /// Reads lists that [`write_position_list`] wrote one after the other.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> PositionLists<'a> {
        PositionLists { rest: bytes }
    }

    /// Returns the bytes that are not read yet.
    #[must_use]
    pub fn remaining_bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// Passes the lists of `count` postings, and returns their bytes.
    ///
    /// # Errors
    /// Malformed bytes, or fewer lists.
    pub fn skip(&mut self, count: usize) -> Result<&'a [u8], CorruptBlock> {
        let all = self.rest;
        for _ in 0..count {
            let head = read_varint(&mut self.rest).ok_or(CorruptBlock)?;
            if head & 1 == 0 {
                let length = usize::try_from(head >> 1).map_err(|_| CorruptBlock)?;
                self.rest = self.rest.get(length..).ok_or(CorruptBlock)?;
            }
        }
        all.get(..all.len() - self.rest.len()).ok_or(CorruptBlock)
    }

    /// Replaces `positions` by those of the next posting, in ascending order.
    ///
    /// # Errors
    /// Malformed bytes: none left, a list that is cut off or empty, or positions beyond `u32`.
    pub fn read(&mut self, positions: &mut Vec<u32>) -> Result<(), CorruptBlock> {
        positions.clear();
        let head = read_varint(&mut self.rest).ok_or(CorruptBlock)?;
        if head & 1 == 1 {
            positions.push(u32::try_from(head >> 1).map_err(|_| CorruptBlock)?);
            return Ok(());
        }
        let length = usize::try_from(head >> 1).map_err(|_| CorruptBlock)?;
        let (mut list, rest) = self.rest.split_at_checked(length).ok_or(CorruptBlock)?;
        self.rest = rest;
        let mut position = 0_u32;
        while !list.is_empty() {
            let gap = read_varint(&mut list).and_then(|gap| u32::try_from(gap).ok());
            let gap = gap.filter(|gap| *gap > 0 || positions.is_empty()).ok_or(CorruptBlock)?;
            position = position.checked_add(gap).ok_or(CorruptBlock)?;
            positions.push(position);
        }
        if positions.is_empty() { Err(CorruptBlock) } else { Ok(()) }
    }
}

/// Reads the positions of one posting one after the other, as far as they are needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PositionStream<'a> {
    rest: &'a [u8],
    position: u64,
}

impl<'a> PositionStream<'a> {
    /// Begins to read a list, at its first position.
    pub(crate) fn open(mut list: &'a [u8]) -> Result<PositionStream<'a>, CorruptBlock> {
        let head = read_varint(&mut list).ok_or(CorruptBlock)?;
        if head & 1 == 1 {
            return Ok(PositionStream { rest: &[], position: head >> 1 });
        }
        if head >> 1 != list.len() as u64 {
            return Err(CorruptBlock);
        }
        let position = read_varint(&mut list).ok_or(CorruptBlock)?;
        Ok(PositionStream { rest: list, position })
    }

    /// Goes to the first position that is not before `target`, and returns it; `None`: there is
    /// none. Adds the number of positions that were read to `steps`.
    #[inline]
    fn seek(&mut self, target: u64, steps: &mut u64) -> Result<Option<u64>, CorruptBlock> {
        while self.position < target {
            if !self.advance()? {
                return Ok(None);
            }
            *steps += 1;
        }
        Ok(Some(self.position))
    }

    /// Goes to the next position. Returns false if there is none.
    #[inline]
    fn advance(&mut self) -> Result<bool, CorruptBlock> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        let gap = read_varint(&mut self.rest).filter(|gap| *gap > 0).ok_or(CorruptBlock)?;
        self.position = self.position.checked_add(gap).ok_or(CorruptBlock)?;
        Ok(true)
    }
}

/// Returns whether the words of a phrase follow each other in one item, at positions in a range.
/// `words` has the positions of each word, and its distance from the beginning of the phrase. Adds
/// the number of positions that were read or compared to `steps`, and stops beyond `max_steps`.
///
/// The words take turns: each goes to the first position at which the phrase may be, or moves the
/// phrase on. So the positions behind the first place of the phrase are not read.
pub(crate) fn has_phrase(
    words: &mut [(PositionStream<'_>, u32)],
    range: &Range<u32>,
    steps: &mut u64,
    max_steps: u64,
) -> Result<bool, CorruptBlock> {
    if let [first, second] = words {
        return has_pair(*first, *second, range, steps);
    }
    let (mut start, mut agreed, mut turn) = (0, 0, 0);
    while agreed < words.len() {
        let Some((positions, distance)) = words.get_mut(turn) else { return Ok(false) };
        let target = (start + u64::from(*distance)).max(range.start.into());
        *steps += 1;
        let Some(position) = positions.seek(target, steps)? else { return Ok(false) };
        if position >= range.end.into() || *steps > max_steps {
            return Ok(false);
        }
        if position - u64::from(*distance) == start {
            agreed += 1;
        } else {
            start = position - u64::from(*distance);
            agreed = 1;
        }
        turn = if turn + 1 == words.len() { 0 } else { turn + 1 };
    }
    Ok(!words.is_empty())
}

/// Returns whether two words of a phrase follow each other, as [`has_phrase`]: it merges the two
/// lists, which takes two thirds of the time of turns.
fn has_pair(
    (mut first, first_distance): (PositionStream<'_>, u32),
    (mut second, second_distance): (PositionStream<'_>, u32),
    range: &Range<u32>,
    steps: &mut u64,
) -> Result<bool, CorruptBlock> {
    let range = u64::from(range.start)..u64::from(range.end);
    loop {
        *steps += 1;
        // The beginnings of the phrase plus both distances.
        let beginnings = [
            first.position.saturating_add(second_distance.into()),
            second.position.saturating_add(first_distance.into()),
        ];
        let has_more = match beginnings[0].cmp(&beginnings[1]) {
            Ordering::Less => first.advance()?,
            Ordering::Greater => second.advance()?,
            Ordering::Equal => {
                let is_in_item = first.position >= first_distance.into();
                if is_in_item && range.contains(&first.position) && range.contains(&second.position)
                {
                    return Ok(true);
                }
                first.advance()?
            }
        };
        if !has_more {
            return Ok(false);
        }
    }
}

/// Returns the number of places of a phrase in one item. `terms` has the positions of each word,
/// and its distance from the beginning of the phrase.
///
/// The word with the fewest positions is tried at each of them, so a phrase with one rare word is
/// as cheap as the rare word.
#[must_use]
pub fn count_phrase(terms: &[(&[u32], u32)]) -> usize {
    let Some((rarest, distance)) = terms.iter().min_by_key(|(positions, _)| positions.len()) else {
        return 0;
    };
    let starts = rarest.iter().filter_map(|position| position.checked_sub(*distance));
    let is_phrase = |start: &u32| {
        terms.iter().all(|(positions, distance)| {
            start.checked_add(*distance).is_some_and(|at| positions.binary_search(&at).is_ok())
        })
    };
    starts.filter(is_phrase).count()
}

/// Returns whether two words are near each other in one item, in either order: at most `distance`
/// positions apart, where neighbours are 1 apart.
#[must_use]
pub fn is_near(first: &[u32], second: &[u32], distance: u32) -> bool {
    let (few, many) = if first.len() <= second.len() { (first, second) } else { (second, first) };
    few.iter().any(|position| {
        let from = position.saturating_sub(distance);
        let next = many.partition_point(|other| *other < from);
        // A word is not near itself.
        let mut others = many.get(next..).unwrap_or_default().iter();
        others
            .find(|other| *other != position)
            .is_some_and(|other| other.abs_diff(*position) <= distance)
    })
}

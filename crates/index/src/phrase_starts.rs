//! The beginnings of a phrase in one item, as two of its words have them: a quick comparison, which
//! is exact for most phrases of two words.
//!
//! The first word marks the places at which the phrase would begin in a table, and the second one
//! finds a mark, or none. So no branch depends on the order of the positions: the branches of a
//! merge of two lists take more time than all else. The table has the lowest bits of a beginning,
//! so a phrase that it finds at high positions is one that may be there.
//!
//! Separate from `position_list`, which has the exact comparison, and reads all lists.

/// The number of beginnings that are told apart. The table stays in the nearest cache.
const STARTS: usize = 4096;
/// From this position on, another beginning may have the same place in the table. It is lower than
/// `STARTS` by more than the greatest distance.
const FIRST_AMBIGUOUS: u32 = 3072;
/// The greatest distance of a word from the beginning of the phrase.
const MAX_DISTANCE: u32 = 1023;

/// The answer for one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhraseAnswer {
    Found,
    Absent,
    /// The positions have to be compared exactly.
    Open,
}

/// Compares two words of a phrase, item after item.
#[derive(Debug, Clone)]
pub(crate) struct PhraseStarts {
    /// The last mark of each beginning.
    marks: Box<[u16; STARTS]>,
    /// The greatest mark.
    mark: u16,
}

impl Default for PhraseStarts {
    fn default() -> PhraseStarts {
        PhraseStarts { marks: Box::new([0; STARTS]), mark: 0 }
    }
}

impl PhraseStarts {
    /// Returns whether a phrase with words at these distances can be compared.
    pub(crate) fn can_compare(distances: impl Iterator<Item = u32> + Clone) -> bool {
        distances.clone().any(|distance| distance == 0)
            && distances.max().is_some_and(|most| most <= MAX_DISTANCE)
    }

    /// Compares two words in one item: the position list of each, and its distance from the
    /// beginning of the phrase. The phrase is found or absent as far as these words go.
    #[inline]
    pub(crate) fn compare(
        &mut self,
        (first, first_distance): (&[u8], u32),
        (second, second_distance): (&[u8], u32),
    ) -> PhraseAnswer {
        if self.mark == u16::MAX {
            self.marks.fill(0);
            self.mark = 0;
        }
        self.mark += 1;
        let (mark, marks) = (self.mark, &mut *self.marks);
        let first_last = for_each_start(first, first_distance, |start| marks[start] = mark);
        let mut is_found = false;
        let second_last =
            for_each_start(second, second_distance, |start| is_found |= marks[start] == mark);
        match (first_last, second_last) {
            (Some(_), Some(_)) if !is_found => PhraseAnswer::Absent,
            (Some(first), Some(second)) if first.max(second) < FIRST_AMBIGUOUS => {
                PhraseAnswer::Found
            }
            _ => PhraseAnswer::Open,
        }
    }
}

/// Passes the place of each beginning in the table to `visit`, and returns the last position.
/// `None`: the list is one that is read exactly.
#[inline]
fn for_each_start(list: &[u8], distance: u32, mut visit: impl FnMut(usize)) -> Option<u32> {
    let (head, mut gaps) = list.split_first()?;
    let mut head = u32::from(*head);
    if head >= 0x80 {
        let (next, rest) = gaps.split_first().filter(|(next, _)| **next < 0x80)?;
        head = head & 0x7f | u32::from(*next) << 7;
        gaps = rest;
    }
    let mut start = 0_u32.wrapping_sub(distance);
    if head & 1 == 1 {
        start = start.wrapping_add(head >> 1);
        visit(start as usize % STARTS);
        return Some(head >> 1);
    }
    let mut gaps = gaps.iter();
    while let Some(byte) = gaps.next() {
        start = start.wrapping_add(u32::from(*byte));
        if *byte >= 0x80 {
            start = start.wrapping_sub(0x80).wrapping_add(read_high_bits(&mut gaps)?);
        }
        visit(start as usize % STARTS);
    }
    Some(start.wrapping_add(distance))
}

/// Reads the bits of a gap that follow its lowest seven.
#[inline]
fn read_high_bits(gaps: &mut std::slice::Iter<'_, u8>) -> Option<u32> {
    let mut bits = 0;
    for shift in [7, 14, 21] {
        let byte = gaps.next()?;
        bits |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(bits);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position_list::{count_phrase, write_position_list};
    use proptest::prelude::*;

    /// Positions as messages have them: many neighbours, and parts that are far away.
    fn positions() -> impl Strategy<Value = Vec<u32>> {
        let position = prop_oneof![
            8 => 0..40_u32,
            4 => 0..600_u32,
            1 => 3000..9000_u32,
            1 => (1 << 19)..(1 << 19) + 40_u32,
            1 => 0..u32::MAX,
        ];
        proptest::collection::btree_set(position, 1..20).prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #[test]
        fn answers_are_those_of_the_exact_comparison(
            items in proptest::collection::vec((positions(), positions()), 1..40),
            first_distance in 0..3_u32,
            second_distance in 0..3_u32,
        ) {
            let distances = [first_distance, second_distance];
            prop_assume!(PhraseStarts::can_compare(distances.into_iter()));
            // The marks run out on the way.
            let mut starts = PhraseStarts { mark: u16::MAX - 20, ..PhraseStarts::default() };
            for (first, second) in items {
                let (mut first_list, mut second_list) = (Vec::new(), Vec::new());
                write_position_list(&mut first_list, &first);
                write_position_list(&mut second_list, &second);
                let answer = starts
                    .compare((&first_list, first_distance), (&second_list, second_distance));
                let count =
                    count_phrase(&[(&first, first_distance), (&second, second_distance)]);
                match answer {
                    PhraseAnswer::Found => prop_assert!(count > 0),
                    PhraseAnswer::Absent => prop_assert_eq!(count, 0),
                    PhraseAnswer::Open => {
                        let last = first.iter().chain(&second).max().copied().unwrap_or_default();
                        prop_assert!(last >= FIRST_AMBIGUOUS);
                    }
                }
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(lists in proptest::collection::vec(any::<Vec<u8>>(), 2..9)) {
            let mut starts = PhraseStarts::default();
            for pair in lists.windows(2) {
                starts.compare((&pair[0], 0), (&pair[1], 1));
            }
        }
    }
}

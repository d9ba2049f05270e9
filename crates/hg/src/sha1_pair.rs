//! Two SHA-1 hashes at once.
//!
//! Each text of a file is hashed twice: as the blob of git, and with its parents as the revision of
//! Mercurial. A step of SHA-1 waits for the one before, so that the instructions that processors
//! have for it are idle half of the time, and two hashes in turn take hardly longer than one. More
//! than half of the CPU time of a conversion is that of SHA-1.
//!
//! This module is apart because the call of these instructions is unsafe code.

#![allow(unsafe_code)]

use sha1::{Digest as _, Sha1};

/// The bytes of one hash.
#[derive(Clone, Copy)]
pub(crate) struct HashInput<'t> {
    /// Fewer than 64 bytes.
    pub(crate) header: &'t [u8],
    /// The bytes after the header.
    pub(crate) text: &'t [u8],
}

/// Returns the hashes of two inputs.
pub(crate) fn hash_pair(inputs: [HashInput<'_>; 2]) -> [[u8; 20]; 2] {
    debug_assert!(inputs.iter().all(|input| input.header.len() < 64), "a header of one block");
    #[cfg(target_arch = "x86_64")]
    if let Some(hashes) = x86_64::hash_pair(inputs) {
        return hashes;
    }
    inputs.map(|HashInput { header, text }| {
        Sha1::new().chain_update(header).chain_update(text).finalize().into()
    })
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::HashInput;
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_extract_epi32, _mm_set_epi32, _mm_set_epi64x,
        _mm_setzero_si128, _mm_sha1msg1_epu32, _mm_sha1msg2_epu32, _mm_sha1nexte_epu32,
        _mm_sha1rnds4_epu32, _mm_shuffle_epi8, _mm_xor_si128,
    };

    const BLOCK_BYTES: usize = 64;

    type Block = [u8; BLOCK_BYTES];

    /// The five words of a hash (FIPS 180-4, section 5.3.1).
    type State = [u32; 5];
    const INITIAL_STATE: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

    /// Returns the hashes; `None` if the processor does not have the instructions.
    pub(super) fn hash_pair(inputs: [HashInput<'_>; 2]) -> Option<[[u8; 20]; 2]> {
        let is_supported = is_x86_feature_detected!("sha")
            && is_x86_feature_detected!("ssse3")
            && is_x86_feature_detected!("sse4.1");
        // SAFETY: the processor has the instructions that the function is compiled for.
        is_supported.then(|| unsafe { hash_messages(&inputs.map(Message::new)) })
    }

    /// An input in blocks: the first one has the header and the begin of the text, the last ones
    /// its end and the padding. Those between are the bytes of the text in place.
    struct Message<'t> {
        first: Option<Block>,
        middle: &'t [Block],
        last: [Block; 2],
        last_count: usize,
    }

    impl<'t> Message<'t> {
        fn new(input: HashInput<'t>) -> Message<'t> {
            let HashInput { header, text } = input;
            let begin = text.split_at_checked(BLOCK_BYTES.saturating_sub(header.len()));
            let first = begin.map(|(begin, _)| {
                let mut block = [0; BLOCK_BYTES];
                fill(&mut block, &[header, begin]);
                block
            });
            let (middle, end) = begin.map_or((&[][..], text), |(_, rest)| rest.as_chunks());
            let header = if first.is_some() { &[] } else { header };
            let mut last = [[0; BLOCK_BYTES]; 2];
            let end_len = fill(last.as_flattened_mut(), &[header, end, &[0x80]]);
            // The length in bits is at the end of the last block.
            let last_count = if end_len + 8 <= BLOCK_BYTES { 1 } else { 2 };
            let bits = (input.header.len() + text.len()) as u64 * 8;
            if let Some(block) = last.get_mut(last_count - 1) {
                let (_, place) = block.split_at_mut(BLOCK_BYTES - 8);
                place.copy_from_slice(&bits.to_be_bytes());
            }
            Message { first, middle, last, last_count }
        }

        fn first(&self) -> &[Block] {
            self.first.as_slice()
        }

        fn last(&self) -> &[Block] {
            self.last.get(..self.last_count).unwrap_or_default()
        }
    }

    /// Copies pieces one behind the other into a buffer, and returns their length.
    fn fill(buffer: &mut [u8], pieces: &[&[u8]]) -> usize {
        let len = buffer.len();
        let mut rest = buffer;
        for piece in pieces {
            let (place, left) = rest.split_at_mut(piece.len());
            place.copy_from_slice(piece);
            rest = left;
        }
        len - rest.len()
    }

    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn hash_messages(messages: &[Message<'_>; 2]) -> [[u8; 20]; 2] {
        let [one, other] = messages;
        let mut states = [INITIAL_STATE; 2];
        compress_pair(&mut states, [one.first(), other.first()]);
        compress_pair(&mut states, [one.middle, other.middle]);
        compress_pair(&mut states, [one.last(), other.last()]);
        states.map(|state| {
            let mut hash = [0; 20];
            for (place, word) in hash.as_chunks_mut::<4>().0.iter_mut().zip(state) {
                *place = word.to_be_bytes();
            }
            hash
        })
    }

    /// Takes blocks of two hashes, which may be of different number.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn compress_pair(states: &mut [State; 2], [one, other]: [&[Block]; 2]) {
        let count = one.len().min(other.len());
        let ((one, one_rest), (other, other_rest)) = (one.split_at(count), other.split_at(count));
        compress(states, [one, other]);
        let [one_state, other_state] = states.each_mut().map(std::slice::from_mut);
        for (state, rest) in [(one_state, one_rest), (other_state, other_rest)] {
            if let Ok(state) = <&mut [State; 1]>::try_from(state) {
                compress(state, [rest]);
            }
        }
    }

    /// A hash in the registers of the processor.
    #[derive(Clone, Copy)]
    struct Lane {
        /// The words A to D, of which A is the highest.
        abcd: __m128i,
        /// A to D of the step before: E of the next one is A there, rotated.
        former: __m128i,
        /// The last 16 words of the message schedule.
        schedule: [__m128i; 4],
    }

    /// Takes blocks of several hashes, of all the same number, in turn.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn compress<const N: usize>(states: &mut [State; N], blocks: [&[Block]; N]) {
        let mut sums = states.map(|[a, b, c, d, e]| {
            let word = |word: u32| word.cast_signed();
            (_mm_set_epi32(word(a), word(b), word(c), word(d)), _mm_set_epi32(word(e), 0, 0, 0))
        });
        let count = blocks.iter().map(|blocks| blocks.len()).min().unwrap_or_default();
        for number in 0..count {
            let zero = _mm_setzero_si128();
            let mut lanes = [Lane { abcd: zero, former: zero, schedule: [zero; 4] }; N];
            for ((lane, (abcd, e)), blocks) in lanes.iter_mut().zip(&sums).zip(&blocks) {
                let Some(block) = blocks.get(number) else { return };
                lane.schedule = load(block);
                let [words, ..] = lane.schedule;
                // The first E is not rotated.
                lane.former = *abcd;
                lane.abcd = _mm_sha1rnds4_epu32::<0>(*abcd, _mm_add_epi32(*e, words));
            }
            run_rounds(&mut lanes);
            for (lane, (abcd, e)) in lanes.iter().zip(&mut sums) {
                *e = _mm_sha1nexte_epu32(lane.former, *e);
                *abcd = _mm_add_epi32(*abcd, lane.abcd);
            }
        }
        for (state, (abcd, e)) in states.iter_mut().zip(sums) {
            *state = [
                _mm_extract_epi32::<3>(abcd).cast_unsigned(),
                _mm_extract_epi32::<2>(abcd).cast_unsigned(),
                _mm_extract_epi32::<1>(abcd).cast_unsigned(),
                _mm_extract_epi32::<0>(abcd).cast_unsigned(),
                _mm_extract_epi32::<3>(e).cast_unsigned(),
            ];
        }
    }

    /// Reads the words of a block, the first one as the highest of its four.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn load(block: &Block) -> [__m128i; 4] {
        let order = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
        let (quarters, _) = block.as_chunks::<16>();
        let mut words = [_mm_setzero_si128(); 4];
        for (words, quarter) in words.iter_mut().zip(quarters) {
            let bytes = u128::from_le_bytes(*quarter).cast_signed();
            *words = _mm_shuffle_epi8(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64), order);
        }
        words
    }

    /// Runs the steps 4 to 79 of a block (FIPS 180-4, section 6.1.2), four at once; `F` is the number
    /// of the function and the constant.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn run_rounds<const N: usize>(lanes: &mut [Lane; N]) {
        for lane in lanes.iter_mut() {
            let [_, second, third, fourth] = lane.schedule;
            run_steps::<0>(lane, second);
            run_steps::<0>(lane, third);
            run_steps::<0>(lane, fourth);
        }
        run_extended::<N, 0>(lanes);
        for _ in 0..5 {
            run_extended::<N, 1>(lanes);
        }
        for _ in 0..5 {
            run_extended::<N, 2>(lanes);
        }
        for _ in 0..5 {
            run_extended::<N, 3>(lanes);
        }
    }

    /// Runs four steps with the next words of the message schedule.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn run_extended<const N: usize, const F: i32>(lanes: &mut [Lane; N]) {
        for lane in lanes {
            let [first, second, third, fourth] = lane.schedule;
            let mixed = _mm_xor_si128(_mm_sha1msg1_epu32(first, second), third);
            let words = _mm_sha1msg2_epu32(mixed, fourth);
            lane.schedule = [second, third, fourth, words];
            run_steps::<F>(lane, words);
        }
    }

    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn run_steps<const F: i32>(lane: &mut Lane, words: __m128i) {
        let words = _mm_sha1nexte_epu32(lane.former, words);
        lane.former = lane.abcd;
        lane.abcd = _mm_sha1rnds4_epu32::<F>(lane.abcd, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lengths around the ends of blocks, and headers of all lengths, each with another one.
    #[test]
    fn pairs_have_the_hashes_of_each() {
        let bytes: Vec<u8> = (0..2_000_u32).map(|number| ((number * number) >> 3) as u8).collect();
        let hash = |input: HashInput<'_>| -> [u8; 20] {
            Sha1::new().chain_update(input.header).chain_update(input.text).finalize().into()
        };
        for first in 0..300 {
            for second in [0, 1, 23, 24, 54, 55, 56, 63, 64, 65, 119, 120, 128, 1_000, first] {
                let (header, text) = (&bytes[..first % 64], &bytes[7..7 + first]);
                let one = HashInput { header, text };
                let (header, text) = (&bytes[..second % 61], &bytes[100..100 + second]);
                let other = HashInput { header, text };
                let expected = [hash(one), hash(other)];
                assert_eq!(hash_pair([one, other]), expected, "{first} {second}");
                assert_eq!(hash_pair([other, one]), [expected[1], expected[0]]);
            }
        }
    }
}

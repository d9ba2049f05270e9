//! Two SHA-1 hashes at once.
//!
//! Each text of a file is hashed twice: as the blob of git, and with its parents as the revision of
//! Mercurial. A step of SHA-1 waits for the one before, so that the instructions that processors
//! have for it are idle half of the time, and two hashes in turn take hardly longer than one. More
//! than half of the CPU time of a conversion was that of SHA-1.
//!
//! This module is apart because the call of these instructions is unsafe code.

#![allow(unsafe_code)]

use sha1::{Digest as _, Sha1};

/// Returns the hashes of two texts, each of which is given in pieces.
pub(crate) fn hash_pair<'t>(texts: [impl Iterator<Item = &'t [u8]>; 2]) -> [[u8; 20]; 2] {
    #[cfg(target_arch = "x86_64")]
    if let Some(instructions) = x86_64::Instructions::detect() {
        return instructions.hash_pair(texts);
    }
    texts.map(hash_pieces)
}

/// Returns the hash of a text, on any processor.
fn hash_pieces<'t>(pieces: impl Iterator<Item = &'t [u8]>) -> [u8; 20] {
    let mut hasher = Sha1::new();
    pieces.for_each(|piece| hasher.update(piece));
    hasher.finalize().into()
}

#[cfg(target_arch = "x86_64")]
mod block_stream;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::block_stream::{Block, BlockStream};
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_extract_epi32, _mm_set_epi32, _mm_set_epi64x,
        _mm_setzero_si128, _mm_sha1msg1_epu32, _mm_sha1msg2_epu32, _mm_sha1nexte_epu32,
        _mm_sha1rnds4_epu32, _mm_shuffle_epi8, _mm_xor_si128,
    };

    /// The five words of a hash (FIPS 180-4, section 5.3.1).
    type State = [u32; 5];
    const INITIAL_STATE: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

    /// Exists where the processor has the instructions.
    #[derive(Clone, Copy)]
    pub(super) struct Instructions(());

    impl Instructions {
        pub(super) fn detect() -> Option<Instructions> {
            let is_there = is_x86_feature_detected!("sha")
                && is_x86_feature_detected!("ssse3")
                && is_x86_feature_detected!("sse4.1");
            is_there.then_some(Instructions(()))
        }

        pub(super) fn hash_pair<'t>(
            self,
            texts: [impl Iterator<Item = &'t [u8]>; 2],
        ) -> [[u8; 20]; 2] {
            let [mut one, mut other] = texts.map(BlockStream::new);
            let mut states = [INITIAL_STATE; 2];
            loop {
                let blocks = [one.blocks(), other.blocks()];
                let count = blocks.iter().map(|blocks| blocks.len()).min().unwrap_or_default();
                if count == 0 {
                    break;
                }
                self.compress(&mut states, blocks);
                one.skip(count);
                other.skip(count);
            }
            let [one_state, other_state] = states;
            [self.compress_rest(one_state, one), self.compress_rest(other_state, other)]
        }

        /// Takes the blocks that one text has beyond those of the other, and returns its hash.
        fn compress_rest<'t>(
            self,
            state: State,
            mut stream: BlockStream<'t, impl Iterator<Item = &'t [u8]>>,
        ) -> [u8; 20] {
            let mut states = [state];
            loop {
                let blocks = stream.blocks();
                let count = blocks.len();
                if count == 0 {
                    break;
                }
                self.compress(&mut states, [blocks]);
                stream.skip(count);
            }
            let mut hash = [0; 20];
            let (places, _) = hash.as_chunks_mut::<4>();
            for (place, word) in places.iter_mut().zip(states.as_flattened()) {
                *place = word.to_be_bytes();
            }
            hash
        }

        /// Takes as many blocks of each text as all have.
        fn compress<const N: usize>(self, states: &mut [State; N], blocks: [&[Block]; N]) {
            // SAFETY: the processor has the instructions that the function is compiled for.
            unsafe { compress(states, blocks) }
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

    /// Takes blocks of several texts in turn, of each as many as all have.
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
                lane.schedule = load(&blocks[number]);
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

    /// Runs the steps 4 to 79 of a block (FIPS 180-4, section 6.1.2), four at once. `F` is the
    /// number of the function and of the constant.
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

    /// All lengths around the ends of blocks, in one piece and in several.
    #[test]
    fn pairs_have_the_hashes_of_each() {
        let bytes: Vec<u8> = (0..2_000_u32).map(|number| ((number * number) >> 3) as u8).collect();
        let hash = |text: &[u8]| -> [u8; 20] { Sha1::digest(text).into() };
        for first in 0..300 {
            for second in [0, 1, 23, 24, 54, 55, 56, 63, 64, 65, 119, 120, 128, 1_000, first] {
                let (one, other) = (&bytes[7..7 + first], &bytes[100..100 + second]);
                let expected = [hash(one), hash(other)];
                for size in [1, 3, 40, 64, 100, 2_000] {
                    // Every other piece is empty.
                    let pieces = |text| <[u8]>::chunks(text, size).flat_map(|piece| [piece, &[]]);
                    let found = hash_pair([one, other].map(pieces));
                    assert_eq!(found, expected, "{first} {second} {size}");
                    assert_eq!([one, other].map(|text| hash_pieces(pieces(text))), expected);
                }
                assert_eq!(
                    hash_pair([other, one].map(std::iter::once)),
                    [expected[1], expected[0]]
                );
            }
        }
    }
}

//! Pseudo-random numbers that are the same on every machine.
//!
//! The generator is splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", 2014). Its state is one word, and every initial state is good, so that each item
//! can have a stream of its own. It is not suitable for secrets. The project has its own
//! implementation because the numbers are part of the definition of benchmarks and must not change
//! with a dependency.

/// The step of the state: 2^64 divided by the golden ratio, made odd.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of numbers.
pub(super) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Returns the stream of item `index` for a seed.
    pub(super) fn from_seed(seed: u64, index: u64) -> SplitMix64 {
        // Both are scrambled; otherwise the streams of consecutive items would be the same
        // sequence, shifted by one.
        SplitMix64 { state: scramble(scramble(seed.wrapping_add(GOLDEN_GAMMA)) ^ scramble(index)) }
    }

    /// Returns the next 64 bits.
    pub(super) fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        scramble(self.state)
    }

    /// Returns a number below `limit`; 0 if `limit` is 0.
    pub(super) fn next_below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next_bits()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns a number from `first` to `last`, both included.
    pub(super) fn next_between(&mut self, first: u64, last: u64) -> u64 {
        first + self.next_below(last - first + 1)
    }

    /// Returns true with a probability of `share` percent.
    pub(super) fn roll_percent(&mut self, share: u64) -> bool {
        self.next_below(100) < share
    }

    /// Returns 2 with a probability of `two` percent, 3 with `three` percent, else 1.
    pub(super) fn roll_one_to_three(&mut self, two: u64, three: u64) -> usize {
        match self.next_below(100) {
            roll if roll < three => 3,
            roll if roll < three + two => 2,
            _ => 1,
        }
    }

    /// Returns an element of a list that is not empty.
    pub(super) fn pick<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.next_below(list.len() as u64) as usize]
    }

    /// Returns an element of a list of words that is not empty.
    pub(super) fn pick_word(&mut self, words: &[&'static str]) -> &'static str {
        words[self.next_below(words.len() as u64) as usize]
    }

    /// Returns an element of a list that is not empty; earlier elements are more likely.
    pub(super) fn pick_early<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        let (one, other) = (self.next_below(list.len() as u64), self.next_below(list.len() as u64));
        &list[one.min(other) as usize]
    }
}

fn scramble(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

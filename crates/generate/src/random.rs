//! Numbers that look random and are the same everywhere.
//!
//! The generator is splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", 2014): one word of state, and any starting state is a good one, which lets every
//! item have its own stream. It is not fit for secrets. It is our own because what it yields is
//! part of a benchmark's definition, and must not change with a dependency.

/// The step of the state: 2^64 divided by the golden ratio, made odd.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// One stream of numbers.
pub(super) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The stream of item `index` under `seed`.
    pub(super) fn from_seed(seed: u64, index: u64) -> SplitMix64 {
        // Both are scrambled, else neighbouring items would walk along one stream a step apart.
        SplitMix64 { state: scramble(scramble(seed.wrapping_add(GOLDEN_GAMMA)) ^ scramble(index)) }
    }

    /// The next 64 bits.
    pub(super) fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        scramble(self.state)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub(super) fn next_below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next_bits()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from `first` to `last`, both included.
    pub(super) fn next_between(&mut self, first: u64, last: u64) -> u64 {
        first + self.next_below(last - first + 1)
    }

    /// True `share` times in a hundred.
    pub(super) fn roll_percent(&mut self, share: u64) -> bool {
        self.next_below(100) < share
    }

    /// How many there are of something: 1, or 2 (`two` times in a hundred), or 3 (`three` times).
    pub(super) fn roll_one_to_three(&mut self, two: u64, three: u64) -> usize {
        match self.next_below(100) {
            roll if roll < three => 3,
            roll if roll < three + two => 2,
            _ => 1,
        }
    }

    /// One of `list`, which is not empty.
    pub(super) fn pick<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.next_below(list.len() as u64) as usize]
    }

    /// One of `words`, which are not none.
    pub(super) fn pick_word(&mut self, words: &[&'static str]) -> &'static str {
        words[self.next_below(words.len() as u64) as usize]
    }

    /// One of `list`, which is not empty; the nearer to its beginning, the likelier.
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

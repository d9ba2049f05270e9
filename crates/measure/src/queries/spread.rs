//! How values are spread, in little room: mean and greatest exactly, quantiles to a thirty-second.
//!
//! Not a list of values: a log may have many millions. A value is counted in the step that it belongs to; there
//! are 32 steps from each power of two to the next.

use std::collections::BTreeMap;

/// Steps from a power of two to the next, as a power of two.
const STEPS: u32 = 5;

/// Some values, such as times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spread {
    /// How many there are.
    pub number: u64,
    /// All together.
    pub sum: u64,
    /// The greatest.
    pub most: u64,
    steps: BTreeMap<u64, u64>,
}

impl Spread {
    /// Takes one more value.
    pub fn add(&mut self, value: u64) {
        self.number += 1;
        self.sum = self.sum.saturating_add(value);
        self.most = self.most.max(value);
        *self.steps.entry(step(value)).or_default() += 1;
    }

    /// The mean; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.number.max(1) as f64
    }

    /// The value below or at which this share (0 to 1) of all lies, or one that is a thirty-second greater at most.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.number as f64 * share).ceil().max(1.0) as u64;
        let mut below = 0;
        for (step, number) in &self.steps {
            below += number;
            if below >= wanted {
                return last(*step).min(self.most);
            }
        }
        self.most
    }

    /// The greatest value of each step that has some, with the share of all values that are no greater.
    #[must_use]
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let mut below = 0;
        let mut point = |(step, number): (&u64, &u64)| {
            below += number;
            (last(*step).min(self.most) as f64, below as f64 / self.number.max(1) as f64)
        };
        self.steps.iter().map(&mut point).collect()
    }
}

/// The smallest value that is counted with this one.
fn step(value: u64) -> u64 {
    let lost = lost(value);
    (value >> lost) << lost
}

/// The greatest value of a step.
fn last(step: u64) -> u64 {
    step | ((1 << lost(step)) - 1)
}

/// How many bits of a value do not count.
fn lost(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).saturating_sub(STEPS + 1)
}

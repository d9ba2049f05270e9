//! The distances between samples: random, with an exponential distribution, so that each byte that
//! is asked for is met with the same probability, whatever came before it.
//!
//! Plain numbers, which a test includes.

use core::sync::atomic::{AtomicU64, Ordering};

/// The natural logarithm of 2, in units of 2^-32.
const LN_2: u128 = 0xB172_17F8;

/// Returns the distance of the next sample; without an interval there is none. The state of the
/// random numbers goes on.
pub(crate) fn next_distance(interval: u64, random: &AtomicU64) -> i64 {
    if interval == 0 {
        return i64::MAX;
    }
    sample_distance(interval, random_number(random.fetch_add(1, Ordering::Relaxed)))
}

/// Returns the number of bytes up to the next sample, at a mean distance of `interval` bytes:
/// -ln(`random` / 2^64) intervals.
pub(crate) fn sample_distance(interval: u64, random: u64) -> i64 {
    // One bit, so that there is a logarithm.
    let random = random | 1;
    let zeros = random.leading_zeros();
    let log2 = (u64::from(zeros + 1) << 32) - fraction_of_log2(random << zeros);
    let intervals = (u128::from(log2) * LN_2) >> 32;
    let distance = u128::from(interval).saturating_mul(intervals) >> 32;
    i64::try_from(distance).unwrap_or(i64::MAX)
}

/// Returns the logarithm to the base 2 of a number of 1 to 2, which is in units of 2^-63, in units
/// of 2^-32: each squaring of the number yields a bit.
fn fraction_of_log2(number: u64) -> u64 {
    let (mut number, mut logarithm) = (number, 0);
    for _ in 0..32 {
        let square = u128::from(number) * u128::from(number);
        let bit = (square >> 127) as u64;
        logarithm = logarithm << 1 | bit;
        number = (square >> (63 + bit)) as u64;
    }
    logarithm
}

/// Returns the random number of a state (SplitMix64); the states that follow each other are one
/// apart.
fn random_number(state: u64) -> u64 {
    let mut number = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

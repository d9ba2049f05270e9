//! The distances between samples of the stack, against the exponential distribution.

#[path = "../src/sample_distance.rs"]
mod sample_distance;

use sample_distance::{next_distance, sample_distance};
use std::sync::atomic::AtomicU64;

const INTERVAL: u64 = 64 * 1024;

fn is_near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() < share
}

#[test]
fn distances_are_exponential() {
    let draws = 1_000_000;
    let random = AtomicU64::new(0);
    let mut distances: Vec<i64> = (0..draws).map(|_| next_distance(INTERVAL, &random)).collect();
    distances.sort_unstable();
    let mean = distances.iter().sum::<i64>() as f64 / draws as f64;
    assert!(is_near(mean, INTERVAL as f64, 0.005), "{mean}");
    for intervals in [0.1, 1.0, 4.0, 8.0] {
        let limit = (intervals * INTERVAL as f64) as i64;
        let beyond = distances.partition_point(|distance| *distance < limit);
        let (below, above) = (beyond as f64 / draws as f64, 1.0 - beyond as f64 / draws as f64);
        let expected = (-intervals).exp();
        assert!(is_near(below, 1.0 - expected, 0.01), "{intervals}: {below}");
        assert!((above - expected).abs() < 0.001, "{intervals}: {above}");
    }
    // Some 335 of a million are longer than 8 intervals.
    let longest = *distances.last().unwrap();
    assert!(longest > 10 * INTERVAL as i64, "{longest}");
}

#[test]
fn distances_follow_the_logarithm() {
    for random in [1, 3, 12_345_679, u64::MAX / 3, u64::MAX / 2, u64::MAX / 2 + 2, u64::MAX - 1024]
    {
        let exact = -(random as f64 / 2_f64.powi(64)).ln() * 1e9;
        let distance = sample_distance(1_000_000_000, random) as f64;
        assert!((distance - exact).abs() < 10.0, "{random}: {distance}, {exact}");
    }
    assert_eq!(sample_distance(INTERVAL, u64::MAX), 0);
    assert_eq!(sample_distance(u64::MAX, 1), i64::MAX);
    assert_eq!(next_distance(0, &AtomicU64::new(0)), i64::MAX);
}

//! The time, place and language of the user.
//!
//! Separate from [`Language`] because code that resolves a phrase to instants needs all of it: a
//! query and a new event read dates with the same clock and the same words.

use crate::language::Language;
use larder_time::civil::Instant;
use larder_time::zone::{Zone, ZoneDatabase};
use std::sync::Arc;

/// The time, place and language of the user.
#[derive(Debug, Clone)]
pub struct UserLocale {
    /// The current time.
    pub now: Instant,
    /// The time zone of the user: days begin and end by it.
    pub zone: Zone,
    /// The zones that can be named.
    pub zones: Arc<ZoneDatabase>,
    /// The words for dates, times and durations.
    pub language: Language,
}

impl Default for UserLocale {
    /// The year 1970, UTC, English, and the bundled zones.
    fn default() -> UserLocale {
        UserLocale {
            now: Instant::from_seconds_clamped(0),
            zone: Zone::UTC,
            zones: ZoneDatabase::open_bundled(),
            language: Language::default(),
        }
    }
}

//! The end of a connection on which hardly anything arrives.

use std::time::Duration;

/// The least speed of a server, as in git's `http.lowSpeedLimit` and `http.lowSpeedTime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedLimit {
    /// The bytes in a second.
    pub bytes_per_second: u64,
    /// How long the server may be slower.
    pub time: Duration,
}

/// The bytes that arrived while a server was waited for. Time in which nobody waited, because the
/// bytes before are still being converted, does not count.
#[derive(Debug, Default)]
pub(super) struct SpeedWindow {
    bytes: u64,
    waited: Duration,
}

impl SpeedWindow {
    /// Adds the result of a read. Returns whether the server was slower than the limit for all of
    /// its time.
    pub(super) fn is_too_slow(
        &mut self,
        bytes: usize,
        waited: Duration,
        limit: SpeedLimit,
    ) -> bool {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.waited = self.waited.saturating_add(waited);
        if self.waited < limit.time {
            return false;
        }
        let expected = self.waited.as_secs_f64() * limit.bytes_per_second as f64;
        let is_slow = (self.bytes as f64) < expected;
        *self = SpeedWindow::default();
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_slow_for_a_time() {
        let limit = SpeedLimit { bytes_per_second: 100, time: Duration::from_secs(10) };
        let second = Duration::from_secs(1);
        let mut window = SpeedWindow::default();
        for _ in 0..9 {
            assert!(!window.is_too_slow(10, second, limit));
        }
        assert!(window.is_too_slow(10, second, limit));
        // Fast in the end.
        assert!(!window.is_too_slow(1, second * 9, limit));
        assert!(!window.is_too_slow(1000, second, limit));
        // Bytes that were there already took no time.
        for _ in 0..100 {
            assert!(!window.is_too_slow(1, Duration::ZERO, limit));
        }
    }
}

//! The curve of live memory over the calls of a process, reduced to a number of points that can be
//! drawn. Each point keeps the minimum and the maximum of its calls, so no peak is lost. A point
//! ends after so many calls, and at a note of the time after so long, so that calls that are rare
//! are not moved to the time of the next ones.

use super::live_table::MAX_PHASE;

/// Phases that are told apart.
pub(super) const MAX_PHASES: usize = MAX_PHASE as usize + 1;
/// The most points of a curve that end after so many calls, and as many that end after so long.
const MAX_POINTS: u64 = 2000;

/// A part of the curve: calls one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurvePoint {
    /// The number of calls at its end.
    pub calls: u64,
    /// The last note of the time before its first call, in microseconds since the recording began.
    pub start_us: u64,
    /// The time of its end.
    pub time_us: u64,
    /// The minimum of live bytes.
    pub min_bytes: u64,
    /// The maximum of live bytes.
    pub max_bytes: u64,
    /// The minimum of live objects.
    pub min_objects: u64,
    /// The maximum of live objects.
    pub max_objects: u64,
    /// The live bytes at its end.
    pub end_bytes: u64,
    /// Cumulated bytes at its end, as if every change of a size happened in place.
    pub lower_bytes: u64,
    /// Cumulated bytes at its end, as if every change of a size took new memory.
    pub upper_bytes: u64,
}

/// Live bytes by the phase that asked for them, at each point of a curve where its live bytes have
/// their maximum.
#[derive(Debug)]
struct PhaseMemory {
    live: [u64; MAX_PHASES],
    /// The live bytes at the maximum of the current point.
    at_max: [u64; MAX_PHASES],
    /// A bit for each phase whose live bytes have changed since they were copied.
    changed: u64,
    /// Nothing was released since the maximum, which is copied when something is.
    is_at_max: bool,
    /// The phases so far.
    phases: usize,
    points: Vec<Vec<u64>>,
}

impl PhaseMemory {
    #[inline(always)]
    fn add(&mut self, phase: u8, bytes: u64) {
        let phase = phase & MAX_PHASE;
        self.live[usize::from(phase)] = self.live[usize::from(phase)].wrapping_add(bytes);
        self.changed |= 1 << phase;
    }

    /// Notes that live memory gets less.
    #[inline(always)]
    fn end_max(&mut self) {
        if self.is_at_max {
            self.is_at_max = false;
            self.copy_changed();
        }
    }

    fn copy_changed(&mut self) {
        while self.changed != 0 {
            let phase = self.changed.trailing_zeros() as usize;
            self.changed &= self.changed - 1;
            self.at_max[phase] = self.live[phase];
        }
    }

    /// Ends a point before a call that has asked for so many bytes in a phase.
    fn end_point(&mut self, phase: u8, growth: u64) {
        if self.is_at_max {
            self.add(phase, growth.wrapping_neg());
            self.end_max();
            self.add(phase, growth);
        }
        self.points.push(self.at_max[..self.phases].to_vec());
        self.at_max = self.live;
        self.changed = 0;
    }
}

/// Collects the curve.
#[derive(Debug)]
pub(super) struct LiveCurve {
    calls_per_point: u64,
    next_call: u64,
    /// How long a point is that ends at a note of the time.
    point_us: u64,
    points: Vec<CurvePoint>,
    current: CurvePoint,
    time_us: u64,
    by_phase: PhaseMemory,
}

impl LiveCurve {
    /// Begins a curve of so many calls, and of so many microseconds from `start_us` on.
    pub(super) fn new(
        total_calls: u64,
        (start_us, total_us): (u64, u64),
        (bytes, objects): (u64, u64),
    ) -> LiveCurve {
        let calls_per_point = total_calls.div_ceil(MAX_POINTS).max(1);
        LiveCurve {
            calls_per_point,
            next_call: calls_per_point,
            point_us: total_us.div_ceil(MAX_POINTS),
            points: Vec::new(),
            current: Self::start_point(start_us, bytes, objects),
            time_us: start_us,
            by_phase: PhaseMemory {
                live: [0; MAX_PHASES],
                at_max: [0; MAX_PHASES],
                changed: 0,
                is_at_max: false,
                phases: 1,
                points: Vec::new(),
            },
        }
    }

    fn start_point(start_us: u64, bytes: u64, objects: u64) -> CurvePoint {
        CurvePoint {
            calls: 0,
            start_us,
            time_us: 0,
            min_bytes: bytes,
            max_bytes: bytes,
            min_objects: objects,
            max_objects: objects,
            end_bytes: 0,
            lower_bytes: 0,
            upper_bytes: 0,
        }
    }

    /// Notes the time at which so many calls had been made, with live bytes and objects, and the
    /// bounds of the bytes that were requested up to then.
    pub(super) fn note_time(
        &mut self,
        calls: u64,
        time_us: u64,
        (bytes, objects): (u64, u64),
        requested: (u64, u64),
    ) {
        self.time_us = time_us;
        if self.has_point(calls) {
            self.current.start_us = time_us;
        } else if time_us.saturating_sub(self.current.start_us) >= self.point_us {
            self.by_phase.end_point(0, 0);
            self.push_point(calls, bytes, requested);
            self.current = Self::start_point(time_us, bytes, objects);
        }
    }

    /// Returns whether a point ends after so many calls.
    fn has_point(&self, calls: u64) -> bool {
        self.points.last().map_or(0, |point| point.calls) >= calls
    }

    /// Notes how many phases there are.
    pub(super) fn note_phases(&mut self, phases: usize) {
        self.by_phase.phases = phases.clamp(1, MAX_PHASES);
    }

    /// Takes bytes from a phase that had asked for them, or from none, before the call is noted.
    #[inline(always)]
    pub(super) fn release(&mut self, bytes: Option<(u8, u64)>) {
        self.by_phase.end_max();
        if let Some((phase, bytes)) = bytes {
            self.by_phase.add(phase, bytes.wrapping_neg());
        }
    }

    /// Notes live bytes and objects after a call, by its number from 0 on, the phase and the bytes
    /// that it asked for, and the bounds of the bytes that were requested up to it, which only the
    /// ends of points need.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        call: u64,
        (bytes, objects): (u64, u64),
        (phase, asked): (u8, u64),
        requested: (u64, u64),
    ) {
        self.by_phase.add(phase, asked);
        if call >= self.next_call {
            self.end_point(call, (bytes, objects), (phase, asked), requested);
        }
        let point = &mut self.current;
        point.min_bytes = point.min_bytes.min(bytes);
        if bytes > point.max_bytes {
            point.max_bytes = bytes;
            self.by_phase.is_at_max = true;
        }
        point.min_objects = point.min_objects.min(objects);
        point.max_objects = point.max_objects.max(objects);
    }

    /// Notes live bytes and objects after a call that has only released some, see
    /// [`LiveCurve::note`].
    #[inline(always)]
    pub(super) fn note_release(
        &mut self,
        call: u64,
        (bytes, objects): (u64, u64),
        phase: u8,
        requested: (u64, u64),
    ) {
        if call >= self.next_call {
            self.end_point(call, (bytes, objects), (phase, 0), requested);
        }
        let point = &mut self.current;
        point.min_bytes = point.min_bytes.min(bytes);
        point.min_objects = point.min_objects.min(objects);
    }

    #[cold]
    fn end_point(
        &mut self,
        call: u64,
        (bytes, objects): (u64, u64),
        (phase, asked): (u8, u64),
        requested: (u64, u64),
    ) {
        // A note of the time may have ended one just before.
        if !self.has_point(call) {
            self.by_phase.end_point(phase, asked);
            self.push_point(call, bytes, requested);
            self.current = Self::start_point(self.time_us, bytes, objects);
        }
        self.next_call = (call / self.calls_per_point + 1) * self.calls_per_point;
    }

    fn push_point(&mut self, calls: u64, end_bytes: u64, (lower_bytes, upper_bytes): (u64, u64)) {
        let time_us = self.time_us;
        self.points.push(CurvePoint {
            calls,
            time_us,
            end_bytes,
            lower_bytes,
            upper_bytes,
            ..self.current
        });
    }

    /// Ends the curve, with the live bytes then and the bounds of all bytes that were requested.
    /// Returns its points, and of each the live bytes at its maximum by the phase that asked for
    /// them.
    pub(super) fn finish(
        mut self,
        calls: u64,
        end_bytes: u64,
        requested: (u64, u64),
    ) -> (Vec<CurvePoint>, Vec<Vec<u64>>) {
        if self.points.is_empty() || !self.has_point(calls) {
            self.by_phase.end_point(0, 0);
            self.push_point(calls, end_bytes, requested);
        }
        (self.points, self.by_phase.points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of a call is that of the notes around it, however late the next call is.
    #[test]
    fn calls_that_are_rare_are_where_they_were_made() {
        let mut curve = LiveCurve::new(2, (0, 2_000_000), (0, 0));
        for time_us in [0, 250_000, 500_000] {
            curve.note_time(0, time_us, (0, 0), (0, 0));
        }
        curve.note(0, (50, 1), (0, 50), (50, 50));
        for time_us in [550_000, 1_000_000, 1_500_000] {
            curve.note_time(1, time_us, (50, 1), (50, 50));
        }
        curve.release(Some((0, 50)));
        curve.note(1, (0, 0), (0, 0), (50, 50));
        for time_us in [1_550_000, 2_000_000] {
            curve.note_time(2, time_us, (0, 0), (50, 50));
        }
        let (points, by_phase) = curve.finish(2, 0, (50, 50));
        let times = |point: &CurvePoint| (point.start_us, point.time_us, point.calls);
        let live = |point: &CurvePoint| (point.min_bytes, point.max_bytes, point.end_bytes);
        let times: Vec<_> = points.iter().map(times).collect();
        assert_eq!(times, [(500_000, 550_000, 1), (1_500_000, 1_550_000, 2)]);
        assert_eq!(points.iter().map(live).collect::<Vec<_>>(), [(0, 50, 50), (0, 50, 0)]);
        assert_eq!(by_phase, [[50], [50]]);
    }

    #[test]
    fn a_long_run_has_a_bounded_number_of_points() {
        let calls = 1_000_000;
        let mut curve = LiveCurve::new(calls, (0, calls * 10), (0, 0));
        for call in 0..calls {
            curve.note(call, (call + 1, call + 1), (0, 1), (call + 1, call + 1));
            curve.note_time(call + 1, call * 10, (call + 1, call + 1), (call + 1, call + 1));
        }
        let (points, by_phase) = curve.finish(calls, calls, (calls, calls));
        assert!((2000..=4001).contains(&points.len()), "{}", points.len());
        assert_eq!(points.len(), by_phase.len());
        assert!(points.is_sorted_by_key(|point| (point.calls, point.time_us)));
        assert!(points.windows(2).all(|pair| pair[0].calls < pair[1].calls));
    }
}

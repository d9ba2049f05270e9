//! The curve of live memory over the calls of a process, reduced to a number of points that can be
//! drawn. Each point keeps the minimum and the maximum of its calls, so no peak is lost.

use super::live_table::MAX_PHASE;

/// Phases that are told apart.
pub(super) const MAX_PHASES: usize = MAX_PHASE as usize + 1;
/// The most points of a curve.
const MAX_POINTS: u64 = 2000;

/// A part of the curve: calls one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurvePoint {
    /// The number of calls at its end.
    pub calls: u64,
    /// The time of its end, in microseconds since the recording began.
    pub time_us: u64,
    /// The minimum of live bytes.
    pub min_bytes: u64,
    /// The maximum of live bytes.
    pub max_bytes: u64,
    /// The minimum of live objects.
    pub min_objects: u64,
    /// The maximum of live objects.
    pub max_objects: u64,
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
    points: Vec<CurvePoint>,
    current: CurvePoint,
    time_us: u64,
    by_phase: PhaseMemory,
}

impl LiveCurve {
    /// Begins a curve of so many calls.
    pub(super) fn new(total_calls: u64, bytes: u64, objects: u64) -> LiveCurve {
        let calls_per_point = total_calls.div_ceil(MAX_POINTS).max(1);
        LiveCurve {
            calls_per_point,
            next_call: calls_per_point,
            points: Vec::new(),
            current: Self::start_point(bytes, objects),
            time_us: 0,
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

    fn start_point(bytes: u64, objects: u64) -> CurvePoint {
        CurvePoint {
            calls: 0,
            time_us: 0,
            min_bytes: bytes,
            max_bytes: bytes,
            min_objects: objects,
            max_objects: objects,
            lower_bytes: 0,
            upper_bytes: 0,
        }
    }

    /// Notes the time of the calls that follow.
    pub(super) fn note_time(&mut self, time_us: u64) {
        self.time_us = time_us;
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
            self.by_phase.end_point(phase, asked);
            self.end_point(call, bytes, objects, requested);
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

    #[cold]
    fn end_point(&mut self, call: u64, bytes: u64, objects: u64, requested: (u64, u64)) {
        self.push_point(call, requested);
        self.current = Self::start_point(bytes, objects);
        self.next_call = (call / self.calls_per_point + 1) * self.calls_per_point;
    }

    fn push_point(&mut self, calls: u64, (lower_bytes, upper_bytes): (u64, u64)) {
        let time_us = self.time_us;
        self.points.push(CurvePoint { calls, time_us, lower_bytes, upper_bytes, ..self.current });
    }

    /// Ends the curve, with the bounds of all bytes that were requested. Returns its points, and of
    /// each the live bytes at its maximum by the phase that asked for them.
    pub(super) fn finish(
        mut self,
        calls: u64,
        requested: (u64, u64),
    ) -> (Vec<CurvePoint>, Vec<Vec<u64>>) {
        if self.points.last().is_none_or(|point| point.calls < calls) {
            self.by_phase.end_point(0, 0);
            self.push_point(calls, requested);
        }
        (self.points, self.by_phase.points)
    }
}

//! The curve of live memory over the calls of a process, reduced to a number of points that can be
//! drawn. Each point keeps the minimum and the maximum of its calls, so no peak is lost.

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

/// Collects the curve.
#[derive(Debug)]
pub(super) struct LiveCurve {
    calls_per_point: u64,
    next_call: u64,
    points: Vec<CurvePoint>,
    current: CurvePoint,
    time_us: u64,
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

    /// Notes live bytes and objects after a call, by its number from 0 on, and the bounds of the
    /// bytes that were requested up to it, which only the ends of points need.
    #[inline(always)]
    pub(super) fn note(&mut self, call: u64, bytes: u64, objects: u64, requested: (u64, u64)) {
        if call >= self.next_call {
            self.end_point(call, bytes, objects, requested);
        }
        let point = &mut self.current;
        point.min_bytes = point.min_bytes.min(bytes);
        point.max_bytes = point.max_bytes.max(bytes);
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

    /// Ends the curve, with the bounds of all bytes that were requested.
    pub(super) fn finish(mut self, calls: u64, requested: (u64, u64)) -> Vec<CurvePoint> {
        if self.points.last().is_none_or(|point| point.calls < calls) {
            self.push_point(calls, requested);
        }
        self.points
    }
}

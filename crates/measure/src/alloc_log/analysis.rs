//! The analysis of the calls of one process in a log, in one pass.

use super::AllocLogError;
use super::call_decoder::{CallPlace, CallVisitor, LifetimeClock, decode_process};
use super::call_stacks::{CallStacks, StackCounter};
use super::call_statistics::{CallStatistics, LifetimeShares};
use super::call_times::{CallTimes, TIME_STEP_US};
use super::large_sizes::LargeSizes;
use super::live_curve::{CurvePoint, LiveCurve, MAX_PHASES};
use super::live_table::{LiveObject, LiveTable};
use super::log_file::AllocLog;
use super::number_series::{NumberCollector, NumberSeries};
use crate::chart::MeasureUnit;
use rustc_hash::FxHashMap;

/// The phase of the calls of further phases than [`MAX_PHASES`].
const OTHER_PHASES: &str = "other phases";
/// The most marks that are kept, with their names.
const MAX_MARKS: usize = 10_000;
/// The name of the phase before the first mark.
const FIRST_PHASE: &str = "start";

/// The analysis of a process.
#[derive(Debug, Clone)]
pub struct AllocAnalysis {
    /// All calls.
    pub total: CallStatistics,
    /// The phases, in the order in which they began; one that comes again continues.
    pub phases: Vec<PhaseStatistics>,
    /// The number of calls of the process.
    pub calls: u64,
    /// The start of the process, in microseconds since the recording began.
    pub start_us: u64,
    /// The least time that lifetimes in microseconds are told from none.
    pub time_step_us: u64,
    /// The peak of live bytes.
    pub peak: PeakMemory,
    /// The name of the phase of that peak.
    pub peak_phase: String,
    /// The largest number of live objects.
    pub peak_objects: u64,
    /// Live bytes and objects over the calls.
    pub curve: Vec<CurvePoint>,
    /// Of each point of the curve, the live bytes at its maximum by the phase that asked for them,
    /// in the order of the phases, as far as these had begun. The rest is from before the fork.
    pub curve_by_phase: Vec<Vec<u64>>,
    /// Marks, in their order.
    pub marks: Vec<ProgramMark>,
    /// The number of later marks, which begin phases, but are not kept.
    pub omitted_marks: u64,
    /// Numbers that the program named.
    pub numbers: Vec<NumberSeries>,
    /// How many values had further names, which are not kept.
    pub omitted_values: u64,
    /// The number of calls that failed, and the largest size that one of them asked for.
    pub failures: (u64, u64),
    /// Shares of the released objects by lifetime.
    pub lifetimes: LifetimeShares,
    /// Objects that were live at the end, by size: size, objects; most bytes first.
    pub live_at_end: Vec<(u64, u64)>,
    /// Bytes in objects that were live at the end.
    pub end_bytes: u64,
    /// The number of objects that were live at the end.
    pub end_objects: u64,
    /// Objects from before the fork that were still live at the end, and their bytes.
    pub inherited_at_end: (u64, u64),
    /// Bytes by call stack; `None` if no stacks were recorded.
    pub stacks: Option<CallStacks>,
}

/// The calls of a phase.
#[derive(Debug, Clone)]
pub struct PhaseStatistics {
    /// Its name.
    pub name: String,
    /// How long it took, in microseconds, from mark to mark; of one that came again, in all.
    pub duration_us: u64,
    /// The calls in it, and the lifetimes of the objects that it asked for.
    pub statistics: CallStatistics,
    /// The peak of live bytes in it.
    pub peak_bytes: u64,
    /// Live bytes at its end.
    pub end_bytes: u64,
    /// Live bytes at the peak of the process that it had asked for.
    pub bytes_at_peak: u64,
    /// The objects that it had asked for and that were live at the end of the process.
    pub unreleased_objects: u64,
    /// Bytes in these.
    pub unreleased_bytes: u64,
}

/// The peak of live bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeakMemory {
    /// Bytes in live objects.
    pub bytes: u64,
    /// The number of live objects at that time.
    pub objects: u64,
    /// Bytes in those that are from before the fork.
    pub inherited_bytes: u64,
    /// The number of calls up to then.
    pub calls: u64,
    /// The time, in microseconds since the recording began, as far as the log knows it.
    pub time_us: u64,
    /// The phase, by its number.
    phase: usize,
}

/// Live memory by its origin.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OriginBytes {
    /// Bytes that the process asked for itself, of which there are call stacks.
    pub(super) own: u64,
    /// Bytes from before the fork.
    pub(super) inherited: u64,
}

/// A mark, which begins a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramMark {
    /// The number of calls before it.
    pub calls: u64,
    /// The last note of the time before it, in microseconds since the recording began.
    pub time_us: u64,
    /// Its name.
    pub name: String,
}

impl AllocAnalysis {
    /// Returns the time from the start of the process to its peak, in microseconds.
    #[must_use]
    pub fn time_to_peak_us(&self) -> u64 {
        self.peak.time_us.saturating_sub(self.start_us)
    }

    /// Returns the live memory at the peak and at the end, by its origin.
    pub(super) fn peak_and_end(&self) -> [OriginBytes; 2] {
        let of =
            |all: u64, inherited| OriginBytes { own: all.saturating_sub(inherited), inherited };
        [
            of(self.peak.bytes, self.peak.inherited_bytes),
            of(self.end_bytes, self.inherited_at_end.1),
        ]
    }

    /// Formats a lifetime in microseconds, as far as it is known.
    pub(super) fn format_lifetime(&self, time_us: u64) -> String {
        format_time_step(time_us, self.time_step_us)
    }
}

/// Formats the time from the start, or from a mark, in microseconds, as far as the log knows it.
pub(super) fn format_time(time_us: u64) -> String {
    format_time_step(time_us, TIME_STEP_US)
}

/// Formats a time; one that is less than a step is not told from none.
fn format_time_step(time_us: u64, step_us: u64) -> String {
    let format = |time_us: u64| MeasureUnit::Time.format(time_us as f64);
    match time_us < step_us {
        true => format!("<{}", format(step_us)),
        false => format(time_us),
    }
}

/// Analyses the calls of a process.
///
/// # Errors
/// The log cannot be read, or holds something that is no call.
pub fn analyse_process(
    log: &AllocLog,
    process: usize,
    clock: LifetimeClock,
) -> Result<AllocAnalysis, AllocLogError> {
    let mut visitor = AnalysisVisitor::new(log, process);
    let live = decode_process(log, process, clock, &mut visitor)?;
    Ok(visitor.finish(&live))
}

struct AnalysisVisitor {
    phases: Vec<PhaseStatistics>,
    /// The phase of the current calls. Its statistics are in `current`, and empty ones are in its
    /// place.
    phase: usize,
    current: CallStatistics,
    /// The large sizes of all phases.
    large_sizes: LargeSizes,
    phase_peak: u64,
    phase_start_us: u64,
    /// The bounds of the bytes that were requested in other phases.
    requested_elsewhere: (u64, u64),
    calls: u64,
    live_bytes: u64,
    live_objects: u64,
    inherited: (u64, u64),
    peak: PeakMemory,
    peak_objects: u64,
    curve: LiveCurve,
    times: CallTimes,
    start_us: u64,
    end_us: u64,
    marks: Vec<ProgramMark>,
    omitted_marks: u64,
    numbers: NumberCollector,
    failures: (u64, u64),
    lifetime_limits: (u64, u64),
    stacks: StackCounter,
}

impl AnalysisVisitor {
    fn new(log: &AllocLog, process: usize) -> AnalysisVisitor {
        let process = &log.processes[process];
        let (bytes, objects) = (process.start.inherited_bytes, process.start.inherited_objects);
        AnalysisVisitor {
            phases: vec![PhaseStatistics::new(FIRST_PHASE.into())],
            phase: 0,
            current: CallStatistics::of_phase(),
            large_sizes: LargeSizes::new(),
            phase_peak: bytes,
            phase_start_us: process.start.start_us,
            requested_elsewhere: (0, 0),
            calls: process.calls,
            live_bytes: bytes,
            live_objects: objects,
            inherited: (objects, bytes),
            peak: PeakMemory { bytes, objects, inherited_bytes: bytes, ..PeakMemory::default() },
            peak_objects: objects,
            curve: LiveCurve::new(process.calls, process.duration_us(), (bytes, objects)),
            times: CallTimes::new(process.start.start_us),
            start_us: process.start.start_us,
            end_us: process.start.start_us.saturating_add(process.duration_us().1),
            marks: Vec::new(),
            omitted_marks: 0,
            numbers: NumberCollector::default(),
            failures: (0, 0),
            lifetime_limits: (process.calls / 10_000, process.calls / 10),
            stacks: StackCounter::new(process.start.stack_interval, process.frames.len()),
        }
    }

    /// Notes live memory after a call that has asked for so many bytes.
    #[inline(always)]
    fn note_live(&mut self, call: u64, asked: u64) {
        if self.live_bytes > self.peak.bytes {
            self.peak = PeakMemory {
                bytes: self.live_bytes,
                objects: self.live_objects,
                inherited_bytes: self.inherited.1,
                calls: call + 1,
                time_us: self.times.time_us(),
                phase: self.phase,
            };
            self.stacks.begin_peak();
        }
        self.phase_peak = self.phase_peak.max(self.live_bytes);
        self.peak_objects = self.peak_objects.max(self.live_objects);
        let live = (self.live_bytes, self.live_objects);
        self.curve.note(call, live, (self.phase as u8, asked), self.requested_bytes());
    }

    /// Notes live memory after a call that has only released some.
    #[inline(always)]
    fn note_release(&mut self, call: u64) {
        let live = (self.live_bytes, self.live_objects);
        self.curve.note_release(call, live, self.phase as u8, self.requested_bytes());
    }

    /// Returns the bounds of the bytes that were requested so far.
    #[inline(always)]
    fn requested_bytes(&self) -> (u64, u64) {
        // The sums of a log that somebody made up may exceed 64 bits.
        let (lower, upper) = self.requested_elsewhere;
        let current = &self.current;
        (lower.wrapping_add(current.lower_bytes), upper.wrapping_add(current.upper_bytes))
    }

    /// Ends the current phase: its statistics are in the list then.
    fn end_phase(&mut self) {
        self.requested_elsewhere = self.requested_bytes();
        let phase = &mut self.phases[self.phase];
        std::mem::swap(&mut phase.statistics, &mut self.current);
        phase.peak_bytes = phase.peak_bytes.max(self.phase_peak);
        phase.end_bytes = self.live_bytes;
        let time_us = self.times.time_us();
        let duration_us = time_us.saturating_sub(self.phase_start_us);
        phase.duration_us = phase.duration_us.saturating_add(duration_us);
        self.phase_start_us = time_us;
        self.phase_peak = self.live_bytes;
    }

    /// Begins a phase, or continues it. No counter is copied: there may be a mark for each call.
    fn begin_phase(&mut self, phase: usize) {
        self.phase = phase;
        std::mem::swap(&mut self.phases[phase].statistics, &mut self.current);
        let (lower, upper) = self.requested_elsewhere;
        let current = &self.current;
        self.requested_elsewhere =
            (lower.wrapping_sub(current.lower_bytes), upper.wrapping_sub(current.upper_bytes));
    }

    fn finish(mut self, live: &LiveTable) -> AllocAnalysis {
        self.times.note(u64::MAX, self.end_us);
        self.end_phase();
        let requested = self.requested_elsewhere;
        let phases = self.phases.iter().map(|phase| &phase.statistics);
        let total = CallStatistics::sum(phases, self.large_sizes);
        let mut by_size: FxHashMap<u64, u64> = FxHashMap::default();
        for object in live.iter() {
            *by_size.entry(object.size).or_default() += 1;
            if let Some(phase) = self.phases.get_mut(usize::from(object.phase)) {
                phase.unreleased_objects += 1;
                phase.unreleased_bytes = phase.unreleased_bytes.wrapping_add(object.size);
            }
        }
        let (curve, mut curve_by_phase) = self.curve.finish(self.calls, self.live_bytes, requested);
        let at_peak = curve.iter().position(|point| point.max_bytes >= self.peak.bytes);
        if let Some(at_peak) = at_peak.and_then(|index| curve_by_phase.get(index)) {
            for (phase, bytes) in self.phases.iter_mut().zip(at_peak) {
                phase.bytes_at_peak = *bytes;
            }
        }
        let peak_phase = self.phases.get(self.peak.phase).map(|phase| phase.name.clone());
        // Where the first mark comes before all calls, nothing is before it.
        let first = self.phases.first();
        let is_first_empty = first
            .is_some_and(|first| first.statistics.total_calls() == 0 && first.duration_us == 0);
        if is_first_empty && self.phases.len() > 1 {
            self.phases.remove(0);
            curve_by_phase.iter_mut().filter(|point| !point.is_empty()).for_each(|point| {
                point.remove(0);
            });
        }
        let (numbers, omitted_values) = self.numbers.finish();
        let mut live_at_end: Vec<(u64, u64)> = by_size.into_iter().collect();
        let bytes = |(size, objects): (u64, u64)| std::cmp::Reverse(size.saturating_mul(objects));
        live_at_end.sort_unstable_by_key(|entry| (bytes(*entry), entry.0));
        AllocAnalysis {
            lifetimes: total.lifetime_shares,
            total,
            phases: self.phases,
            calls: self.calls,
            start_us: self.start_us,
            time_step_us: self.times.step_us(),
            peak: self.peak,
            peak_phase: peak_phase.unwrap_or_default(),
            peak_objects: self.peak_objects,
            curve,
            curve_by_phase,
            marks: self.marks,
            omitted_marks: self.omitted_marks,
            numbers,
            omitted_values,
            failures: self.failures,
            live_at_end,
            end_bytes: self.live_bytes,
            end_objects: self.live_objects,
            inherited_at_end: self.inherited,
            stacks: self.stacks.finish(),
        }
    }
}

impl PhaseStatistics {
    fn new(name: String) -> PhaseStatistics {
        PhaseStatistics {
            name,
            duration_us: 0,
            statistics: CallStatistics::of_phase(),
            peak_bytes: 0,
            end_bytes: 0,
            bytes_at_peak: 0,
            unreleased_objects: 0,
            unreleased_bytes: 0,
        }
    }
}

impl CallVisitor for AnalysisVisitor {
    #[inline(always)]
    fn alloc(&mut self, at: CallPlace, object: &LiveObject, _alignment_log2: u64) {
        self.current.count_call(at.function);
        self.count_request(object.size, object.size);
        self.live_bytes = self.live_bytes.wrapping_add(object.size);
        self.live_objects = self.live_objects.wrapping_add(1);
        self.note_live(at.call, object.size);
    }

    #[inline(always)]
    fn free(&mut self, at: CallPlace, object: &LiveObject) {
        self.current.count_call(at.function);
        self.live_bytes = self.live_bytes.wrapping_sub(object.size);
        self.live_objects = self.live_objects.wrapping_sub(1);
        let lifetime = at.clock.saturating_sub(object.birth);
        let limits = self.lifetime_limits;
        self.stacks.release(object.ordinal, lifetime <= limits.0);
        let age_us = self.times.age_us(object.birth);
        self.statistics_of(object.phase).count_lifetime(lifetime, age_us, limits);
        self.curve.release(Some((object.phase, object.size)));
        self.note_release(at.call);
    }

    #[inline(always)]
    fn realloc(&mut self, at: CallPlace, object: &LiveObject, new_size: u64) {
        self.current.count_call(at.function);
        self.count_request(new_size, new_size.saturating_sub(object.size));
        self.stacks.release(object.ordinal, false);
        self.live_bytes = self.live_bytes.wrapping_sub(object.size).wrapping_add(new_size);
        self.curve.release(Some((object.phase, object.size)));
        self.note_live(at.call, new_size);
    }

    fn failure(&mut self, at: CallPlace, size: u64) {
        self.current.count_failure(at.function);
        let (count, largest) = self.failures;
        self.failures = (count + 1, largest.max(size));
    }

    fn unknown_free(&mut self, at: CallPlace) {
        self.current.count_call(at.function);
        self.current.unknown_frees += 1;
    }

    fn inherited_free(&mut self, at: CallPlace, size: u64) {
        self.current.count_call(at.function);
        self.release_inherited(size);
        self.note_release(at.call);
    }

    fn inherited_realloc(&mut self, at: CallPlace, old_size: u64, object: &LiveObject) {
        self.current.count_call(at.function);
        self.count_request(object.size, object.size.saturating_sub(old_size));
        self.release_inherited(old_size);
        self.live_bytes = self.live_bytes.wrapping_add(object.size);
        self.live_objects = self.live_objects.wrapping_add(1);
        self.note_live(at.call, object.size);
    }

    fn mark(&mut self, call: u64, name: &[u8]) -> u8 {
        let name = String::from_utf8_lossy(name).into_owned();
        self.end_phase();
        let known = self.phases.iter().position(|phase| phase.name == name);
        let phase = known.unwrap_or_else(|| {
            match MAX_PHASES - self.phases.len() {
                0 => {}
                1 => self.phases.push(PhaseStatistics::new(OTHER_PHASES.into())),
                _ => self.phases.push(PhaseStatistics::new(name.clone())),
            }
            self.phases.len() - 1
        });
        self.begin_phase(phase);
        self.curve.note_phases(self.phases.len());
        if self.marks.len() < MAX_MARKS {
            self.marks.push(ProgramMark { calls: call, time_us: self.times.time_us(), name });
        } else {
            self.omitted_marks += 1;
        }
        self.phase as u8
    }

    fn number(&mut self, call: u64, name: &[u8], value: u64) {
        self.numbers.add(&String::from_utf8_lossy(name), call, value);
    }

    fn stack(&mut self, object: &LiveObject, frame: u64) {
        self.stacks.add(object, frame);
    }

    fn time(&mut self, call: u64, clock: u64, time_us: u64) {
        self.times.note(clock, time_us);
        let live = (self.live_bytes, self.live_objects);
        self.curve.note_time(call, time_us, live, self.requested_bytes());
    }
}

impl AnalysisVisitor {
    #[inline(always)]
    fn count_request(&mut self, size: u64, growth: u64) {
        self.current.count_request(size, growth, &mut self.large_sizes);
    }

    /// Returns the statistics of the phase that asked for an object.
    #[inline(always)]
    fn statistics_of(&mut self, phase: u8) -> &mut CallStatistics {
        let phase = usize::from(phase);
        if phase != self.phase
            && let Some(phase) = self.phases.get_mut(phase)
        {
            return &mut phase.statistics;
        }
        &mut self.current
    }

    fn release_inherited(&mut self, size: u64) {
        self.curve.release(None);
        let (objects, bytes) = self.inherited;
        self.inherited = (objects.saturating_sub(1), bytes.saturating_sub(size));
        self.stacks.end_peak();
        self.live_bytes = self.live_bytes.saturating_sub(size);
        self.live_objects = self.live_objects.saturating_sub(1);
    }
}

//! Random calls through the encoder, a log and the analysis, compared with a plain model.

mod inheritance;
mod process_ends;

use super::alloc_subject::AllocSubject;
use super::analysis::{AllocAnalysis, analyse_process};
use super::call_decoder::{LifetimeClock, is_realloc};
use super::json_report::report_json;
use super::log_block::{
    BlockKind, LogWriter, ProcessEnd, ProcessStart, RecordingEnd, StackBlock, StackFrame,
};
use super::log_file::AllocLog;
use super::process_encoder::ProcessEncoder;
use super::report::build_report;
use super::ring_layout::RingOperation;
use super::ring_reader::RingEvent;
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs::File;

/// A random call: a choice of function, of an object, and of a size.
type RandomCall = (u8, prop::sample::Index, u32);

const ALLOCATORS: [RingOperation; 8] = [
    RingOperation::Malloc,
    RingOperation::Malloc,
    RingOperation::Calloc,
    RingOperation::ReallocOfNull,
    RingOperation::PosixMemalign,
    RingOperation::New,
    RingOperation::NewArray,
    RingOperation::Valloc,
];
const RELEASERS: [RingOperation; 4] =
    [RingOperation::Free, RingOperation::Free, RingOperation::Delete, RingOperation::DeleteArray];

/// Keeps everything.
#[derive(Default)]
struct Model {
    clock_skips_reallocs: bool,
    calls: u64,
    clock: u64,
    counts: HashMap<RingOperation, u64>,
    live: Vec<ModelObject>,
    peak_bytes: u64,
    lower_bytes: u64,
    upper_bytes: u64,
    sizes: Vec<u64>,
    lifetimes: Vec<u64>,
    /// The phase of the calls, and of each object in `lifetimes`.
    phase: usize,
    lifetime_phases: Vec<usize>,
    /// Bytes at the peak by phase.
    peak_by_phase: [u64; PHASES.len()],
}

const PHASES: [&str; 4] = ["start", "one", "two", "three"];

struct ModelObject {
    address: u64,
    birth: u64,
    size: u64,
    phase: usize,
}

impl Model {
    fn live_by_phase(&self) -> [u64; PHASES.len()] {
        let mut bytes = [0; PHASES.len()];
        self.live.iter().for_each(|object| bytes[object.phase] += object.size);
        bytes
    }

    /// Notes that an object is released.
    fn end_life(&mut self, object: &ModelObject) {
        self.lifetimes.push(self.clock - object.birth);
        self.lifetime_phases.push(object.phase);
    }

    fn call(&mut self, function: RingOperation) {
        *self.counts.entry(function).or_default() += 1;
        self.calls += 1;
        self.clock += u64::from(!self.clock_skips_reallocs || !is_realloc(function));
        let by_phase = self.live_by_phase();
        let live = by_phase.iter().sum();
        if live > self.peak_bytes {
            (self.peak_bytes, self.peak_by_phase) = (live, by_phase);
        }
    }

    fn request(&mut self, size: u64, growth: u64) {
        self.upper_bytes += size;
        self.lower_bytes += growth;
        self.sizes.push(size);
    }

    /// Makes a random call; returns its event.
    fn step(&mut self, (choice, object, size): RandomCall) -> RingEvent<'static> {
        let place = (!self.live.is_empty()).then(|| object.index(self.live.len()));
        let size = u64::from(if size % 10 == 0 { size } else { size % 600 });
        let event = |operation, address, size, operand| RingEvent {
            operation,
            address,
            size,
            operand,
            thread: u64::from(choice / 250),
            operands: &[],
        };
        match (choice % 8, place) {
            (0..=2, Some(place)) => {
                let function = RELEASERS[usize::from(choice / 8) % RELEASERS.len()];
                let object = self.live.swap_remove(place);
                self.end_life(&object);
                self.call(function);
                event(function, object.address, 0, 0)
            }
            (3, Some(place)) => {
                let new_address = self.free_address(object.index(4_000) as u64);
                let object = &mut self.live[place];
                let (old, before) = (object.address, object.size);
                (object.address, object.size, object.phase) = (new_address, size, self.phase);
                self.request(size, size.saturating_sub(before));
                self.call(RingOperation::Realloc);
                event(RingOperation::Realloc, new_address, size, old)
            }
            (4, Some(place)) if choice > 200 => {
                let object = self.live.swap_remove(place);
                self.end_life(&object);
                self.call(RingOperation::ReallocToZero);
                event(RingOperation::ReallocToZero, object.address, 0, 0)
            }
            _ => {
                let function = ALLOCATORS[usize::from(choice / 8) % ALLOCATORS.len()];
                let address = self.free_address(object.index(4_000) as u64);
                self.request(size, size);
                let counts = !self.clock_skips_reallocs || !is_realloc(function);
                let birth = self.clock + u64::from(counts);
                self.live.push(ModelObject { address, birth, size, phase: self.phase });
                self.call(function);
                event(function, address, size, 64)
            }
        }
    }

    /// Returns an address at which nothing is; some are only multiples of 8.
    fn free_address(&self, start: u64) -> u64 {
        let is_free = |address: &u64| self.live.iter().all(|object| object.address != *address);
        (start + 1..).map(|place| place * 24).find(is_free).unwrap()
    }
}

/// Encodes calls into a log and analyses it.
fn analyse(
    calls: &[RandomCall],
    model: &mut Model,
    clock: LifetimeClock,
) -> (AllocAnalysis, ProcessEncoder) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut encoder = ProcessEncoder::new();
    let mut log = LogWriter::new(File::create(file.path()).unwrap()).unwrap();
    log.write_json(BlockKind::PROCESS, 0, &ProcessStart::default()).unwrap();
    for (number, call) in calls.iter().enumerate() {
        if number % 113 == 112 {
            model.phase = number / 113 % PHASES.len();
            encoder.mark(PHASES[model.phase].as_bytes());
        }
        encoder.encode(&model.step(*call));
        if number % 97 == 0 {
            encoder.note_time(number as u64);
        }
        if number % 250 == 249 {
            log.write_calls(0, &encoder.take_block(number as u64).unwrap()).unwrap();
        }
    }
    if let Some(block) = encoder.take_block(calls.len() as u64) {
        log.write_calls(0, &block).unwrap();
    }
    drop(log);
    let log = AllocLog::open(file.path()).unwrap();
    assert_eq!(log.damage, None);
    (analyse_process(&log, 0, clock).unwrap(), encoder)
}

fn assert_equal(model: &Model, analysis: &AllocAnalysis) {
    assert_eq!(analysis.calls, model.calls);
    for (function, count) in &model.counts {
        assert_eq!(analysis.total.calls_of(*function), *count, "{function:?}");
    }
    assert_eq!(analysis.total.total_calls(), model.calls);
    assert_eq!(analysis.total.upper_bytes, model.upper_bytes);
    assert_eq!(analysis.total.lower_bytes, model.lower_bytes);
    assert_eq!(analysis.peak.bytes, model.peak_bytes);
    let curve = analysis.curve.last().map(|point| (point.lower_bytes, point.upper_bytes));
    let requested = (model.lower_bytes, model.upper_bytes);
    assert_eq!(curve.unwrap_or_default(), requested);
    assert!(analysis.curve.is_sorted_by_key(|point| (point.calls, point.upper_bytes)));
    assert_eq!(analysis.curve_by_phase.len(), analysis.curve.len());
    for (point, by_phase) in analysis.curve.iter().zip(&analysis.curve_by_phase) {
        assert_eq!(by_phase.iter().sum::<u64>(), point.max_bytes);
    }
    assert_phases(model, analysis);
    assert_eq!(analysis.end_objects, model.live.len() as u64);
    assert_eq!(analysis.end_bytes, model.live.iter().map(|object| object.size).sum::<u64>());
    let mut live_at_end: HashMap<u64, u64> = HashMap::new();
    model.live.iter().for_each(|object| *live_at_end.entry(object.size).or_default() += 1);
    assert_eq!(analysis.live_at_end.iter().copied().collect::<HashMap<_, _>>(), live_at_end);
    let mut narrow = vec![0; 2048];
    let mut wide: HashMap<u64, u64> = HashMap::new();
    for size in &model.sizes {
        if let Some(count) = narrow.get_mut((size / 16) as usize) {
            *count += 1;
        }
        *wide.entry(size / 32_768).or_default() += 1;
    }
    assert_eq!(analysis.total.narrow_buckets(), narrow);
    assert_eq!(analysis.total.wide_buckets().into_iter().collect::<HashMap<_, _>>(), wide);
    let requests = model.sizes.len() as u64;
    for (size, sum) in analysis.total.cumulative_sizes() {
        let at_most = model.sizes.iter().filter(|it| **it <= size).count();
        assert_eq!(sum, at_most as u64, "{size}");
    }
    assert_eq!(analysis.total.cumulative_sizes().last().map_or(0, |(_, sum)| *sum), requests);
    let mut by_size: HashMap<u64, u64> = HashMap::new();
    model.sizes.iter().for_each(|size| *by_size.entry(*size).or_default() += 1);
    let heaviest = by_size.iter().map(|(size, times)| size * times).max();
    let found = analysis.total.heavy_sizes(1).first().map(|(size, times)| size * times);
    assert_eq!(found, heaviest);
    let below = model.sizes.iter().filter(|size| **size < 32_768).sum::<u64>();
    assert_eq!(analysis.total.bytes_below_32_kib(), below);
    let small = model.sizes.iter().filter(|size| **size < 512).count();
    assert_eq!(analysis.total.small_requests(), small as u64);
    let at_most = |limit: u64| model.lifetimes.iter().filter(|calls| **calls <= limit).count();
    let shares = &analysis.lifetimes;
    assert_eq!(shares.released, model.lifetimes.len() as u64);
    assert_eq!(shares.at_zero, at_most(0) as u64);
    assert_eq!(shares.at_most_ten_thousandth, at_most(model.calls / 10_000) as u64);
    assert_eq!(shares.at_most_tenth, at_most(model.calls / 10) as u64);
    let mut sorted = model.lifetimes.clone();
    sorted.sort_unstable();
    for part in [0.1, 0.5, 0.9, 0.99] {
        let rank = ((sorted.len() as f64 * part).ceil() as usize).max(1) - 1;
        match (sorted.get(rank), analysis.total.lifetimes.quantile(part)) {
            (None, shown) => assert_eq!(shown, None),
            (Some(exact), Some(shown)) => {
                assert!(shown <= *exact && exact - shown <= exact / 64, "{shown} for {exact}");
            }
            (Some(_), None) => panic!("no quantile {part}"),
        }
    }
}

/// The figures of each phase are those of the objects that it asked for.
fn assert_phases(model: &Model, analysis: &AllocAnalysis) {
    let live = model.live_by_phase();
    for (number, name) in PHASES.iter().enumerate() {
        let Some(phase) = analysis.phases.iter().find(|phase| phase.name == *name) else {
            assert_eq!((live[number], model.peak_by_phase[number]), (0, 0));
            continue;
        };
        assert_eq!(phase.bytes_at_peak, model.peak_by_phase[number], "{name}");
        assert_eq!(phase.unreleased_bytes, live[number], "{name}");
        let objects = model.live.iter().filter(|object| object.phase == number).count();
        assert_eq!(phase.unreleased_objects, objects as u64, "{name}");
        let phases = model.lifetime_phases.iter().zip(&model.lifetimes);
        let lifetimes: Vec<u64> =
            phases.filter(|(phase, _)| **phase == number).map(|(_, calls)| *calls).collect();
        let at_most = |limit: u64| lifetimes.iter().filter(|calls| **calls <= limit).count() as u64;
        let shares = &phase.statistics.lifetime_shares;
        assert_eq!((shares.released, shares.at_zero), (lifetimes.len() as u64, at_most(0)));
        assert_eq!(shares.at_most_ten_thousandth, at_most(model.calls / 10_000), "{name}");
        assert_eq!(shares.at_most_tenth, at_most(model.calls / 10), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_analysis_equals_a_plain_model(
        calls in prop::collection::vec(any::<RandomCall>(), 0..3_000),
        skips_reallocs in any::<bool>(),
    ) {
        let mut model = Model { clock_skips_reallocs: skips_reallocs, ..Model::default() };
        let clock = match skips_reallocs {
            true => LifetimeClock::WithoutReallocs,
            false => LifetimeClock::AllCalls,
        };
        let (analysis, encoder) = analyse(&calls, &mut model, clock);
        prop_assert_eq!(encoder.anomalies(), 0);
        assert_equal(&model, &analysis);
    }
}

/// An event of a process with one thread.
fn simple_event(operation: RingOperation, address: u64, size: u64) -> RingEvent<'static> {
    RingEvent { operation, address, size, operand: 0, thread: 0, operands: &[] }
}

/// The tables of children that live at once take memory for what differs, not for what they
/// inherit, and no process sees the calls of another.
#[test]
fn forked_processes_share_what_they_inherit() {
    let objects = 100_000;
    let address = |number: u64| 0x5555_0000_0000 + number * 48;
    let mut parent = ProcessEncoder::new();
    for number in 0..objects {
        parent.encode(&simple_event(RingOperation::Malloc, address(number), 40));
    }
    let pages = parent.own_pages();
    let released = |child: u64| (0..10).map(move |place| (child * 1_000 + place * 7_919) % objects);
    let mut children: Vec<ProcessEncoder> = (0..30)
        .map(|child| {
            let mut encoder = parent.fork();
            for number in released(child) {
                encoder.encode(&simple_event(RingOperation::Free, address(number), 0));
                encoder.encode(&simple_event(RingOperation::Malloc, address(number), 8));
            }
            encoder
        })
        .collect();
    // Each of ten objects is in a bucket, or in an overflow bucket of it.
    for (child, encoder) in children.iter().enumerate() {
        assert!(encoder.own_pages() <= 20, "{} pages of child {child}", encoder.own_pages());
        let (_, live, _) = encoder.inheritance();
        assert_eq!((live, encoder.anomalies()), (objects, 0));
    }
    // The parent and the children release all that they have.
    for number in 0..objects {
        parent.encode(&simple_event(RingOperation::Free, address(number), 0));
    }
    for encoder in children.iter_mut().chain([&mut parent.fork()]).take(3) {
        for number in 0..objects {
            encoder.encode(&simple_event(RingOperation::Free, address(number), 0));
        }
        let (bytes, live, _) = encoder.inheritance();
        assert_eq!((bytes, live, encoder.anomalies()), (0, 0, 0));
    }
    assert_eq!((parent.inheritance().1, parent.anomalies()), (0, 0));
    drop(children);
    assert_eq!(parent.own_pages(), pages);
}

/// Bytes and number of the live objects of a process, and its anomalies.
fn live_and_anomalies(encoder: &ProcessEncoder) -> (u64, u64, u64) {
    let (bytes, objects, _) = encoder.inheritance();
    (bytes, objects, encoder.anomalies())
}

/// Sizes of which the second has no room beside its address.
#[test]
fn calls_that_do_not_fit_are_counted() {
    for size in [100, 1 << 34] {
        let mut encoder = ProcessEncoder::new();
        let mut call = |operation, address, size, operand, thread| {
            let event = simple_event(operation, address, size);
            encoder.encode(&RingEvent { operand, thread, ..event });
            live_and_anomalies(&encoder)
        };
        use RingOperation::{Failure, Free, Malloc, Realloc, Release};
        // The release of the first object was not seen: it stays live.
        assert_eq!(call(Malloc, 0x1000, size, 0, 0), (size, 1, 0));
        assert_eq!(call(Malloc, 0x1000, 7, 0, 0), (size + 7, 2, 1));
        assert_eq!(call(Free, 0x1000, 0, 0, 0), (size, 1, 1));
        assert_eq!(call(Free, 0x1000, 0, 0, 0), (size, 1, 2));
        assert_eq!(call(Malloc, 0x1000, 9, 0, 0), (size + 9, 2, 2));
        // A realloc that fails leaves its object in place; another one of the same thread moves it,
        // while another thread has got its memory.
        assert_eq!(call(Malloc, 0x2000, size, 0, 0), (2 * size + 9, 3, 2));
        assert_eq!(call(Release, 0x2000, 0, 0, 1), (2 * size + 9, 3, 2));
        assert_eq!(call(Failure, 0, 1, Realloc as u64, 1), (2 * size + 9, 3, 2));
        assert_eq!(call(Release, 0x2000, 0, 0, 1), (2 * size + 9, 3, 2));
        assert_eq!(call(Malloc, 0x2000, 5, 0, 2), (2 * size + 14, 4, 2));
        assert_eq!(call(Realloc, 0x3000, size + 1, 0x2000, 1), (2 * size + 15, 4, 2));
        assert_eq!(call(Free, 0x3000, 0, 0, 1), (size + 14, 3, 2));
        // A child changes what it inherits as if it were its own.
        let mut child = encoder.fork();
        let event = simple_event(Realloc, 0x4000, size);
        child.encode(&RingEvent { operand: 0x1000, ..event });
        assert_eq!(live_and_anomalies(&child), (2 * size + 5, 3, 0));
        child.encode(&simple_event(Free, 0x4000, 0));
        child.encode(&simple_event(Free, 0x1000, 0));
        assert_eq!(live_and_anomalies(&child), (size + 5, 2, 1));
        assert_eq!(live_and_anomalies(&encoder), (size + 14, 3, 2));
    }
}

/// A larder that does not know an operation takes it for damage: a new one needs a new version.
#[test]
fn the_version_of_the_ring_stands_for_its_operations() {
    use super::ring_layout::{OPERATIONS, RING_VERSION};
    assert_eq!((RING_VERSION, OPERATIONS), (4, 29));
}

/// A realloc continues an object: what it replaces is not short-lived, in stacks as in lifetimes.
#[test]
fn a_realloc_ends_no_life() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut log = LogWriter::new(File::create(file.path()).unwrap()).unwrap();
    let start = ProcessStart { stack_interval: 1, ..ProcessStart::default() };
    log.write_json(BlockKind::PROCESS, 0, &start).unwrap();
    let frames = vec![StackFrame { caller: 0, module: 0, address: 1 }];
    log.write_json(BlockKind::STACKS, 0, &StackBlock { modules: Vec::new(), frames }).unwrap();
    let mut encoder = ProcessEncoder::new();
    let mut call = |operation, address, size, operand| {
        encoder.encode(&RingEvent { operand, ..simple_event(operation, address, size) });
        if size > 0 {
            encoder.note_stack(address, 1);
        }
    };
    // One object that lives long, and one that does not; both are at the same place.
    call(RingOperation::Malloc, 4800, 1000, 0);
    call(RingOperation::Realloc, 9600, 2000, 4800);
    for _ in 0..10_000 {
        call(RingOperation::Malloc, 4800, 500, 0);
        call(RingOperation::Realloc, 4800, 700, 4800);
        call(RingOperation::Free, 4800, 0, 0);
    }
    call(RingOperation::Free, 9600, 0, 0);
    log.write_calls(0, &encoder.take_block(1).unwrap()).unwrap();
    drop(log);
    let log = AllocLog::open(file.path()).unwrap();
    let analysis = analyse_process(&log, 0, LifetimeClock::AllCalls).unwrap();
    assert_eq!(analysis.lifetimes.released, 10_001);
    assert_eq!(analysis.lifetimes.at_most_ten_thousandth, 10_000);
    let stacks = analysis.stacks.unwrap();
    assert_eq!(stacks.by_frame[1].requested, 3000 + 1200 * 10_000);
    assert_eq!(stacks.by_frame[1].short_lived, 700 * 10_000);
}

/// Writes a log of two processes with a hundred blocks of calls each, in turn; returns its bytes,
/// and the places of the heads.
fn two_processes() -> (Vec<u8>, Vec<usize>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut log = LogWriter::new(File::create(file.path()).unwrap()).unwrap();
    let mut heads = Vec::new();
    let mut encoders = [ProcessEncoder::new(), ProcessEncoder::new()];
    for process in 0..2 {
        heads.push(log.bytes() as usize);
        let start = ProcessStart { pid: 7 + process, ..ProcessStart::default() };
        log.write_json(BlockKind::PROCESS, process, &start).unwrap();
    }
    for block in 1..=100_u64 {
        for (process, encoder) in (0..).zip(&mut encoders) {
            heads.push(log.bytes() as usize);
            for call in 0..50 {
                let address = (block * 50 + call) * 48;
                encoder.encode(&simple_event(RingOperation::Malloc, address, 30 + call));
            }
            log.write_calls(process, &encoder.take_block(block * 1000).unwrap()).unwrap();
        }
    }
    for process in 0..2 {
        heads.push(log.bytes() as usize);
        let end = ProcessEnd { end_us: 200_000, calls: 5_000, ..ProcessEnd::default() };
        log.write_json(BlockKind::PROCESS_END, process, &end).unwrap();
    }
    (std::fs::read(file.path()).unwrap(), heads)
}

/// Opens a log of these bytes, and returns it with the analysis of its processes.
fn open_bytes(bytes: &[u8]) -> (AllocLog, Vec<AllocAnalysis>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let log = AllocLog::open(file.path()).unwrap();
    let analyse = |process| analyse_process(&log, process, LifetimeClock::AllCalls).unwrap();
    let analyses = (0..log.processes.len()).map(analyse).collect();
    (log, analyses)
}

/// A damaged block costs the calls of its process from there on, and nothing of the other one.
#[test]
fn whole_blocks_after_a_damage_are_used() {
    let (whole, heads) = two_processes();
    let calls = |bytes: &[u8]| -> Vec<u64> {
        let (log, analyses) = open_bytes(bytes);
        let damage = log.damage.unwrap();
        assert!(damage.bytes > 0 && damage.bytes < bytes.len() as u64, "{damage:?}");
        assert!(log.processes.iter().all(|process| process.end.is_some()));
        analyses.iter().map(|analysis| analysis.calls).collect()
    };
    // The twenty-first block of the first process, and the tenth of the second: content and head.
    let (first, second) = (heads[2 + 40], heads[2 + 19]);
    for place in [40, 100, 0, 9, 20] {
        let mut bytes = whole.clone();
        bytes[first + place] ^= 0x10;
        assert_eq!(calls(&bytes), [1_000, 5_000], "{place}");
        bytes[second + place] ^= 0x10;
        assert_eq!(calls(&bytes), [1_000, 450], "{place}");
    }
    // A process whose start is lost keeps its number.
    let mut bytes = whole.clone();
    bytes[heads[0] + 30] ^= 0x10;
    assert_eq!(calls(&bytes), [0, 5_000]);
    // Bytes that are lost or added.
    let mut bytes = whole.clone();
    bytes.drain(first + 40..first + 50);
    assert_eq!(calls(&bytes), [1_000, 5_000]);
    bytes.splice(second..second, vec![7; 3_000_000]);
    assert_eq!(calls(&bytes), [1_000, 5_000]);
}

/// The time of a log that was cut off is that of its last block, and it does not say that the
/// program made no calls.
#[test]
fn a_log_that_was_cut_off_has_its_time() {
    let (whole, heads) = two_processes();
    let report = |bytes: &[u8]| {
        let (log, mut analyses) = open_bytes(bytes);
        let analysis = analyses.remove(0);
        let subject =
            AllocSubject { name: "log".into(), log: &log, process: 0, analysis, stacks: None };
        build_report(&[subject])
    };
    let cut = report(&whole[..heads[2 + 100]]);
    assert!(cut.findings[0].contains("Recorded for 50 ms"), "{:?}", cut.findings);
    let titles: Vec<&str> = cut.sections[0].charts.iter().map(|chart| chart.0.as_str()).collect();
    assert!(titles.contains(&"Memory by time"), "{titles:?}");
    let empty = report(&whole[..heads[2]]);
    let gap = "The log ends before the process did: later calls are missing.";
    assert_eq!(empty.findings[1..3], [gap, "No calls of the process are in the log."]);
    let mut bytes = whole.clone();
    bytes[heads[2 + 40] + 40] ^= 0x10;
    let damaged = report(&bytes).findings;
    let gap = "A part of the log cannot be read: the last 4,000 of 5,000 calls are missing.";
    assert_eq!(damaged[1], gap, "{damaged:?}");
}

/// The report names programs that were not recorded, and what a call that does not fit may be.
#[test]
fn calls_and_programs_that_are_not_in_the_log_are_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut log = LogWriter::new(File::create(file.path()).unwrap()).unwrap();
    log.write_json(BlockKind::PROCESS, 0, &ProcessStart::default()).unwrap();
    let end = ProcessEnd { is_exit: true, anomalies: 1, ..ProcessEnd::default() };
    log.write_json(BlockKind::PROCESS_END, 0, &end).unwrap();
    let unrecorded = vec![(7, "busybox".into()), (8, "apt".into()), (9, "busybox".into())];
    let end = RecordingEnd { unrecorded, ..RecordingEnd::default() };
    log.write_json(BlockKind::RECORDING_END, 0, &end).unwrap();
    drop(log);
    let log = AllocLog::open(file.path()).unwrap();
    let analysis = analyse_process(&log, 0, LifetimeClock::AllCalls).unwrap();
    let subject =
        AllocSubject { name: "log".into(), log: &log, process: 0, analysis, stacks: None };
    let json = report_json(&subject);
    assert_eq!(json["unrecorded"][1], serde_json::json!({ "pid": 8, "program": "apt" }));
    let findings = build_report(&[subject]).findings;
    assert!(
        findings[1].starts_with("1 call does not fit to those before: memory was released twice")
    );
    let unrecorded = "Not recorded, and not in any figure: 3 processes (apt, busybox).";
    assert_eq!(findings[2], unrecorded, "{findings:?}");
}

//! Reports of a program and its forked child: the process that is analysed, what it inherited, its
//! marks, and the bounds of what it requested.

use super::super::alloc_subject::AllocSubject;
use super::super::analysis::analyse_process;
use super::super::call_decoder::LifetimeClock;
use super::super::json_report::report_json;
use super::super::log_block::{BlockKind, LogWriter, ProcessEnd, ProcessStart};
use super::super::log_file::AllocLog;
use super::super::process_encoder::ProcessEncoder;
use super::super::report::build_report;
use super::super::ring_layout::RingOperation;
use super::super::ring_reader::RingEvent;
use crate::measure_report::MeasureReport;
use std::fs::File;

/// The addresses of the objects of the parent and of the child.
const PARENT_PLACE: u64 = 0x1000_0000;
const CHILD_PLACE: u64 = 0x2000_0000;

fn call(encoder: &mut ProcessEncoder, operation: RingOperation, address: u64, size: u64) {
    let event = RingEvent { operation, address, size, operand: 0, thread: 0, operands: &[] };
    encoder.encode(&event);
}

/// Gives an object of this size twice as much.
fn grow(encoder: &mut ProcessEncoder, address: u64, size: u64) {
    let event = RingEvent {
        operation: RingOperation::Realloc,
        address,
        size: size * 2,
        operand: address,
        thread: 0,
        operands: &[],
    };
    encoder.encode(&event);
}

/// Returns the log of a process with ten objects of a kilobyte, and of its forked child, which
/// makes the calls of a closure.
fn forked_log(calls_of_child: impl FnOnce(&mut ProcessEncoder)) -> AllocLog {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut log = LogWriter::new(File::create(file.path()).unwrap()).unwrap();
    let mut parent = ProcessEncoder::new();
    for number in 0..10 {
        call(&mut parent, RingOperation::Malloc, PARENT_PLACE + number * 4800, 1000);
    }
    let mut child = parent.fork();
    let (inherited_bytes, inherited_objects, first_ordinal) = child.inheritance();
    calls_of_child(&mut child);
    let parent_start = ProcessStart { pid: 7, ..ProcessStart::default() };
    let child_start = ProcessStart {
        pid: 8,
        parent: Some(0),
        is_forked: true,
        inherited_bytes,
        inherited_objects,
        first_ordinal,
        ..ProcessStart::default()
    };
    for (process, (start, mut encoder)) in (0..).zip([(parent_start, parent), (child_start, child)])
    {
        log.write_json(BlockKind::PROCESS, process, &start).unwrap();
        let (marks, values) = encoder.marks_and_values();
        let end = ProcessEnd {
            is_exit: true,
            calls: encoder.calls(),
            marks: Some(marks),
            number_values: Some(values),
            ..ProcessEnd::default()
        };
        if let Some(block) = encoder.take_block(1000) {
            log.write_calls(process, &block).unwrap();
        }
        log.write_json(BlockKind::PROCESS_END, process, &end).unwrap();
    }
    drop(log);
    AllocLog::open(file.path()).unwrap()
}

fn subject(log: &AllocLog, process: usize) -> AllocSubject<'_> {
    let analysis = analyse_process(log, process, LifetimeClock::AllCalls).unwrap();
    AllocSubject { name: "log".into(), log, process, analysis, stacks: None }
}

#[track_caller]
fn assert_finding(report: &MeasureReport, expected: &str) {
    let has_it = report.findings.iter().any(|finding| finding.contains(expected));
    assert!(has_it, "{:#?}", report.findings);
}

/// A child has the live memory of its parent, and more, but asked for little of it.
#[test]
fn a_process_is_chosen_by_memory_of_its_own() {
    let small = forked_log(|child| call(child, RingOperation::Malloc, CHILD_PLACE, 9_000));
    assert!(small.processes[1].peak_bytes > small.processes[0].peak_bytes);
    assert_eq!(small.largest_process(), Some(0));
    let large = forked_log(|child| call(child, RingOperation::Malloc, CHILD_PLACE, 11_000));
    assert_eq!(large.largest_process(), Some(1));
    // The first of equals.
    let equal = forked_log(|child| call(child, RingOperation::Malloc, CHILD_PLACE, 10_000));
    assert_eq!(equal.largest_process(), Some(0));
}

/// Two inherited objects are released before the peak, and one more after it.
#[test]
fn inherited_memory_is_described() {
    let log = forked_log(|child| {
        call(child, RingOperation::Free, PARENT_PLACE, 0);
        call(child, RingOperation::Free, PARENT_PLACE + 4800, 0);
        call(child, RingOperation::Malloc, CHILD_PLACE, 5_000);
        call(child, RingOperation::Free, PARENT_PLACE + 9600, 0);
    });
    let report = build_report(&[subject(&log, 1)]);
    assert_finding(
        &report,
        "10 kB in 10 objects are from before the fork: 8 kB of them were live at the peak, \
         7 kB at the end, when 3 objects had been released.",
    );
    let rows: Vec<String> = report.sections[0].tables[0]
        .rows
        .iter()
        .filter(|row| row[0].contains("inherited") || row[0].starts_with("of it live"))
        .map(|row| row.join("|"))
        .collect();
    assert_eq!(
        rows,
        [
            "inherited by the fork|10 kB",
            "of it live at the peak|8 kB",
            "of it live at the end|7 kB"
        ]
    );
    let report = build_report(&[subject(&log, 0)]);
    assert!(report.findings.iter().all(|finding| !finding.contains("before the fork")));
}

/// Where reallocs keep much of their memory, the sum of all sizes is far above what was asked for.
#[test]
fn both_bounds_of_requested_memory_are_named() {
    let log = forked_log(|child| {
        child.mark(b"growing");
        call(child, RingOperation::Malloc, CHILD_PLACE, 40_000);
        grow(child, CHILD_PLACE, 40_000);
    });
    let report = build_report(&[subject(&log, 1)]);
    assert_finding(
        &report,
        "2 calls asked for 80 kB (what sizes grew by) to 120 kB (all sizes) in total.",
    );
    assert_finding(&report, "100 % of the sum of all sizes is in requests for at least 32 KiB.");
    // Without reallocs both bounds are one.
    let report = build_report(&[subject(&log, 0)]);
    assert_finding(&report, "10 calls asked for 10 kB in total.");
    assert_finding(&report, "0 % of the requested memory is in requests for at least 32 KiB.");
}

/// The list of processes says which of them has phases and numbers.
#[test]
fn the_list_of_processes_counts_marks_and_numbers() {
    let log = forked_log(|child| {
        child.mark(b"reading");
        let number = RingEvent {
            operation: RingOperation::Number,
            address: 0,
            size: 4,
            operand: 0,
            thread: 0,
            operands: &[7, u64::from_le_bytes(*b"rows\0\0\0\0")],
        };
        (0..3).for_each(|_| child.encode(&number));
        call(child, RingOperation::Malloc, CHILD_PLACE, 5_000);
    });
    let subject = subject(&log, 1);
    assert_eq!(subject.analysis.numbers[0].count, 3);
    let processes = &report_json(&subject)["processes"];
    assert_eq!((&processes[0]["marks"], &processes[0]["number_values"]), (&0.into(), &0.into()));
    assert_eq!((&processes[1]["marks"], &processes[1]["number_values"]), (&1.into(), &3.into()));
    let report = build_report(&[subject]);
    let list = &report.sections.last().unwrap().tables[0];
    assert_eq!(list.head[8..], ["marks", "values of numbers"]);
    assert_eq!(list.rows[0][8..], ["0", "0"]);
    assert_eq!(list.rows[1][8..], ["1", "3"]);
}

//! Reports of a program and its forked child.

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
use std::fs::File;

/// The addresses of the objects of the parent and of the child.
const PARENT_PLACE: u64 = 0x1000_0000;
const CHILD_PLACE: u64 = 0x2000_0000;

fn call(encoder: &mut ProcessEncoder, operation: RingOperation, address: u64, size: u64) {
    let event = RingEvent { operation, address, size, operand: 0, thread: 0, operands: &[] };
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

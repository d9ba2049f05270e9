//! Reports of processes by how they end, and how their logs do.

use super::super::alloc_subject::AllocSubject;
use super::super::analysis::analyse_process;
use super::super::call_decoder::LifetimeClock;
use super::super::json_report::report_json;
use super::super::log_block::{
    BlockKind, LogWriter, ProcessEnd, ProcessStart, RecordingEnd, RssSample, StackBlock, StackFrame,
};
use super::super::log_file::AllocLog;
use super::super::process_encoder::ProcessEncoder;
use super::super::report::build_report;
use super::super::ring_layout::RingOperation;
use super::super::stack_profile::StackProfile;
use super::simple_event;
use std::fs::File;

const CALLS: u64 = 100;

/// Returns the log of a process with objects of a kilobyte in two phases, and their call stacks.
fn log_with_end(end: Option<ProcessEnd>) -> AllocLog {
    log_with_ends(end, None)
}

fn log_with_ends(end: Option<ProcessEnd>, recording_end: Option<RecordingEnd>) -> AllocLog {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut log = LogWriter::new(File::create(file.path()).unwrap()).unwrap();
    let start = ProcessStart {
        pid: 7,
        executable: "/bin/server".into(),
        stack_interval: 1,
        ..ProcessStart::default()
    };
    log.write_json(BlockKind::PROCESS, 0, &start).unwrap();
    let frames = vec![StackFrame { caller: 0, module: 0, address: 1 }];
    let stacks = StackBlock { modules: Vec::new(), frames };
    log.write_json(BlockKind::STACKS, 0, &stacks).unwrap();
    let mut encoder = ProcessEncoder::new();
    for address in (1..=CALLS).map(|call| call * 4800) {
        encoder.encode(&simple_event(RingOperation::Malloc, address, 1000));
        encoder.note_stack(address, 1);
        if address == CALLS / 2 * 4800 {
            encoder.mark(b"serve");
        }
    }
    log.write_calls(0, &encoder.take_block(1000).unwrap()).unwrap();
    if let Some(end) = end {
        log.write_json(BlockKind::PROCESS_END, 0, &end).unwrap();
    }
    if let Some(end) = recording_end {
        log.write_json(BlockKind::RECORDING_END, 0, &end).unwrap();
    }
    drop(log);
    AllocLog::open(file.path()).unwrap()
}

fn subject<'a>(name: &str, log: &'a AllocLog) -> AllocSubject<'a> {
    let analysis = analyse_process(log, 0, LifetimeClock::AllCalls).unwrap();
    let stacks = analysis.stacks.as_ref();
    let stacks = stacks.map(|stacks| StackProfile::new(&log.processes[0], stacks));
    AllocSubject { name: name.into(), log, process: 0, analysis, stacks }
}

/// Returns all texts of a report.
fn report_text(subjects: &[AllocSubject<'_>]) -> String {
    let report = build_report(subjects);
    let mut texts = report.findings.clone();
    for section in &report.sections {
        texts.extend([section.heading.clone(), section.text.clone()]);
        texts.extend(section.charts.iter().map(|(title, _, _)| title.clone()));
        for table in &section.tables {
            texts.extend([&table.title].into_iter().chain(&table.head).cloned());
            texts.extend(table.rows.iter().flatten().cloned());
        }
    }
    texts.join("\n")
}

/// A report says nothing of the end of a process whose last calls are missing in its log.
#[test]
fn a_log_that_ends_early_shows_no_end() {
    let whole_end = ProcessEnd { is_exit: true, calls: CALLS, ..ProcessEnd::default() };
    let cut_ends = [
        None,
        Some(ProcessEnd { calls: CALLS + 50, ..whole_end }),
        Some(ProcessEnd { is_abandoned: true, ..whole_end }),
    ];
    let whole = log_with_end(Some(whole_end));
    let text = report_text(&[subject("whole", &whole)]);
    assert!(text.contains("At the end 100 kB in 100 objects were live, 100 % of"), "{text}");
    assert!(text.contains("It also holds the most at the end."), "{text}");
    assert!(text.contains("Memory that was never released"), "{text}");
    assert_eq!(report_json(&subject("whole", &whole))["is_cut"], false);
    for end in cut_ends {
        let cut = log_with_end(end);
        let text = report_text(&[subject("cut", &cut)]);
        let words = ["at the end", "At the end", "never released"];
        assert!(words.iter().all(|words| !text.contains(words)), "{text}");
        for words in [
            "\nWhere the log ends, 100 kB in 100 objects were live, 100 % of the peak.\n",
            " It also holds the most where the log ends.",
            "\nWhere the log ends\nMemory that was live at the last call in the log,",
            "\nPaths to the memory where the log ends\n",
            "\nobjects live where the log ends\n",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let json = report_json(&subject("cut", &cut));
        assert_eq!(
            (&json["is_cut"], &json["processes"][0]["is_cut"]),
            (&true.into(), &true.into())
        );
        // In a comparison, the sentence says so.
        let compared = [subject("whole", &whole), subject("cut", &cut)];
        let findings = build_report(&compared).findings;
        let reservation = " The figures of cut are incomplete: its log ends before its process did, \
                           and what was live there may have been released later.";
        assert!(findings[0].ends_with(reservation), "{}", findings[0]);
        let section = report_text(&compared);
        assert_eq!(section.matches(reservation).count(), 2, "{section}");
        let both = report_text(&[subject("a", &cut), subject("b", &cut)]);
        assert!(words.iter().all(|words| !both.contains(words)), "{both}");
        assert!(both.contains(" The figures of both are incomplete: "), "{both}");
    }
}

/// A process that ends without `exit` was not killed if larder knows better.
#[test]
fn a_program_that_is_not_recorded_is_no_signal() {
    let ending_below = |command, pid: u32, program: &str, signal: Option<i32>| {
        let end = ProcessEnd { calls: CALLS, ..ProcessEnd::default() };
        let unrecorded = vec![(pid, program.into())];
        let recording_end =
            RecordingEnd { signal, unrecorded, pid: command, ..RecordingEnd::default() };
        let log = log_with_ends(Some(end), Some(recording_end));
        let subject = subject("log", &log);
        let ending = report_json(&subject)["processes"][0]["ending"].clone();
        (ending.as_str().unwrap().to_string(), build_report(&[subject]).findings.remove(0))
    };
    let ending = |pid, program, signal| ending_below(None, pid, program, signal);
    let begun = ", until it began a program that is not recorded: /bin/server.";
    let (code, text) = ending(7, "static", None);
    assert_eq!((code.as_str(), text.ends_with(begun)), ("unrecorded_exec", true), "{text}");
    // The signal ended that program.
    assert_eq!(ending(7, "static", Some(9)).0, "unrecorded_exec");
    // The command itself is not recorded.
    assert_eq!(ending_below(Some(6), 8, "other", None).0, "killed");
    // The program is not known, or it is the process itself, whose children are missing.
    for (pid, program) in [(8, "other"), (7, "/bin/server")] {
        let (code, text) = ending(pid, program, None);
        let either = ", until it began a program that is not recorded, or ended unseen by the \
                      recorder: /bin/server.";
        assert_eq!((code.as_str(), text.ends_with(either)), ("unseen", true), "{text}");
        let (code, text) = ending(pid, program, Some(9));
        let killed = ", to its end by SIGKILL: /bin/server.";
        assert_eq!((code.as_str(), text.ends_with(killed)), ("signal", true), "{text}");
    }
}

/// Python has memory past the allocator, so less of it is named than of other programs.
#[test]
fn memory_of_python_that_is_not_live_is_named() {
    let findings = |executable: &str, anonymous_bytes| {
        let mut log = log_with_end(None);
        let process = &mut log.processes[0];
        process.start.executable = executable.into();
        process.samples = vec![RssSample { anonymous_bytes, ..RssSample::default() }];
        build_report(&[subject("log", &log)]).findings.concat()
    };
    let resident = "were live, but 6 MB of anonymous memory were resident: ";
    let python = " Python takes memory for small objects by mmap, unless it is recorded with \
                  PYTHONMALLOC=malloc: without that, they are in no figure.";
    let text = findings("/usr/bin/python3.13", 6_000_000);
    assert!(text.contains(resident) && text.contains(python), "{text}");
    assert!(!findings("/usr/bin/python3.13", 3_000_000).contains("anonymous"));
    assert!(!findings("/bin/server", 6_000_000).contains("anonymous"));
    let text = findings("/bin/server", 60_000_000);
    assert!(text.contains("60 MB of anonymous memory were resident") && !text.contains("Python"));
}

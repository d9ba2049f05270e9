//! Tests of samples, with programs whose memory is known.

use super::*;

#[test]
fn the_name_of_a_program_may_hold_parentheses() {
    let stat = "7 (a) b (c) Z 1 7 7 0 -1 4 338 0 0 0 12 10 3 1 20 0 1 0 31";
    assert_eq!(processor_time(stat), Some(Duration::from_millis(260)));
    assert_eq!(processor_time("7 (a) Z 1"), Some(Duration::ZERO));
}

/// Processor time from before the first sample is not counted.
#[test]
fn the_processor_time_before_the_first_sample_does_not_count() {
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    let used = || processor_time(&std::fs::read_to_string(&stat).unwrap()).unwrap();
    while used() < Duration::from_millis(500) {
        std::thread::yield_now();
    }
    let begin = Instant::now();
    let timeline = watch_process(child.id(), &|| begin.elapsed().as_millis() > 150);
    child.kill().unwrap();
    child.wait().unwrap();
    let timeline = timeline.unwrap();
    let most = timeline.samples.iter().map(|sample| sample.processor_share).fold(0.0, f64::max);
    // One thread, and a tick of the clock at either end.
    assert!(most > 0.0 && most < 2.0, "{most}");
}

/// The peak of a command is its own: that of the program which starts it is left out.
#[test]
fn the_memory_of_the_starting_program_is_not_that_of_the_command() {
    let own = peak_of(UsageWho::RUSAGE_SELF);
    for _ in 0..20 {
        let (timeline, _) =
            watch_command(&mut Command::new("true"), None, &CommandSignals::default()).unwrap();
        let most = timeline.largest_process_bytes;
        assert!(most.is_none_or(|most| most > own + own / 10), "{most:?} with {own}");
    }
}

/// Watches a process for some samples.
fn watch_samples(pid: u32) -> MemoryTimeline {
    let rounds = std::cell::Cell::new(0);
    watch_process(pid, &|| rounds.replace(rounds.get() + 1) > 5).unwrap()
}

/// A process whose first thread has ended has the memory of its other threads.
#[test]
fn a_process_without_its_first_thread_has_memory() {
    let program = "import ctypes, sys, threading\n\
                   held = bytearray(60_000_000)\n\
                   threading.Thread(target=sys.stdin.read).start()\n\
                   ctypes.CDLL(None).syscall(60, 0)\n";
    let mut command = Command::new("python3");
    let mut child = command.args(["-c", program]).stdin(Stdio::piped()).spawn().unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    let timeline = watch_samples(child.id());
    drop(child.stdin.take());
    child.wait().unwrap();
    for sample in &timeline.samples {
        assert!(sample.anonymous_bytes > 60_000_000, "{sample:?}");
        assert!(sample.private_bytes.is_none_or(|bytes| bytes > 60_000_000), "{sample:?}");
    }
    assert!(timeline.samples.iter().any(|sample| sample.private_bytes.is_some()));
    assert!(timeline.map.total().private > 60_000_000);
    assert_eq!(timeline.processes[0].1, "python3");
}

/// A child is in the memory of its parent until it begins its program: here, until the file
/// that it opens before is written to.
#[test]
fn memory_that_a_child_borrows_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let program = "import os, sys\n\
                   held = bytearray(60_000_000)\n\
                   os.mkfifo(sys.argv[1])\n\
                   action = (os.POSIX_SPAWN_OPEN, 9, sys.argv[1], os.O_RDONLY, 0)\n\
                   os.posix_spawn('/bin/true', ['true'], {}, file_actions=[action])\n";
    let mut command = Command::new("python3");
    let mut child = command.args(["-c", program]).arg(&path).spawn().unwrap();
    while !path.exists() || process_tree([child.id()]).len() < 2 {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    let timeline = watch_samples(child.id());
    drop(std::fs::OpenOptions::new().write(true).open(&path).unwrap());
    assert!(child.wait().unwrap().success());
    for sample in &timeline.samples {
        assert_eq!(sample.processes, 1);
        assert!((60_000_000..100_000_000).contains(&sample.resident_bytes), "{sample:?}");
        assert!(sample.private_bytes.is_none_or(|bytes| bytes < 100_000_000), "{sample:?}");
    }
    assert_eq!(timeline.processes.len(), 1);
    assert!(timeline.map.total().private < 100_000_000);
}

/// A sample has proportional and private memory if they were read for it, and only then.
#[test]
fn proportional_memory_is_only_of_samples_that_read_it() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut sampler = TreeSampler::new(child.id(), Instant::now());
    let is_mapped = |now: CheapCounters| now.name == "cat" && now.resident >= MIN_PROGRAM_BYTES;
    while !CheapCounters::read(child.id()).is_some_and(is_mapped) {
        std::thread::yield_now();
    }
    // The map covers all memory that the child can have, so that none is due.
    sampler.timeline.map_resident_bytes = u64::MAX;
    sampler.next_costly = Instant::now() + Duration::from_secs(3_600);
    assert!(sampler.sample());
    sampler.next_costly = Instant::now();
    assert!(sampler.sample());
    drop(child.stdin.take());
    child.wait().unwrap();
    let [without, with] = sampler.timeline.samples[..] else { panic!("not two samples") };
    assert_eq!((without.proportional_bytes, without.private_bytes), (None, None));
    let range = 1..=with.resident_bytes;
    assert!(with.proportional_bytes.is_some_and(|bytes| range.contains(&bytes)), "{with:?}");
    assert!(with.private_bytes.is_some_and(|bytes| range.contains(&bytes)), "{with:?}");
}

#[test]
fn a_tree_of_processes_is_sampled() {
    let mut command = Command::new("sh");
    command.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done | cat"]);
    let signals = CommandSignals::default();
    let (timeline, status) = watch_command(&mut command, None, &signals).unwrap();
    assert!(status.success());
    let most = timeline.samples.iter().map(|sample| sample.processes).max();
    assert!(most >= Some(2), "{most:?}");
    assert!(timeline.samples.iter().any(|sample| sample.proportional_bytes > Some(0)));
    assert!(timeline.map.mappings.keys().any(|name| name.contains("/libc")));
}

/// Memory at the moment of exec is not that of the command.
#[test]
fn a_command_that_has_not_begun_its_program_is_left_out() {
    let now = Instant::now();
    let mut sampler = TreeSampler::new(7, now);
    let is_left_out = |sampler: &TreeSampler, pid: u32, resident: u64| {
        let status = format!("Name:\tcat\nVmRSS:\t{} kB\n", resident >> 10);
        let stat = format!("7 (cat) R {}", "0 ".repeat(40));
        sampler.is_before_program(pid, &CheapCounters::parse(&status, &stat).unwrap())
    };
    sampler.exec_limit = now + Duration::from_secs(60);
    assert!(is_left_out(&sampler, 7, 4096));
    assert!(!is_left_out(&sampler, 8, 4096));
    assert!(!is_left_out(&sampler, 7, MIN_PROGRAM_BYTES));
    sampler.exec_limit = now;
    assert!(!is_left_out(&sampler, 7, 4096));
}

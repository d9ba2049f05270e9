//! The analysis of allocation logs: phases, comparisons, replays, pages and damaged logs.

use crate::alloc_log::{analyse, record, recorder};
use crate::test_home::{Home, left_out};
use serde_json::Value;
use std::path::Path;

#[test]
fn messages_begin_phases() {
    let home = Home::new();
    recorder();
    // The program ends when its last message has been passed on.
    home.write(
        "work.sh",
        "echo 'reading: 1%' >&2; ls >/dev/null; echo 'writing: 1%' >&2\n\
         until grep -q writing messages; do :; done\n",
    );
    let run = home.shell(
        "larder measure record --out log --phases '^(\\w+): +\\d+%' -- sh work.sh 2>messages; \
         cat messages",
    );
    assert!(run.stdout().contains("reading: 1%\nwriting: 1%\n"), "{}", run.masked_output());
    let analysis = analyse(&home, &["--process", "0"]);
    let marks: Vec<&str> = analysis["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| mark[1].as_str().unwrap())
        .collect();
    assert_eq!(marks, ["reading", "writing"]);
}

/// A message begins no phase in processes that did not write it, except in those that its writer
/// begins.
#[test]
fn messages_of_other_processes_begin_no_phase() {
    let home = Home::new();
    recorder();
    home.write("inner.sh", "sleep 0.4; echo 'inner: 1%' >&2; sleep 0.3; ls / >/dev/null\n");
    home.write(
        "work.sh",
        "echo 'outer: 1%' >&2; sleep 0.2; sh inner.sh; sleep 0.3; echo 'last: 1%' >&2; sleep 0.2\n",
    );
    let run = home.shell(
        "larder measure record --out log --phases '^(\\w+): +\\d+%' -- sh work.sh 2>messages",
    );
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let processes = analyse(&home, &[])["processes"].as_array().unwrap().clone();
    let phases = |command: &str| -> Vec<String> {
        let is_meant = |process: &&Value| process["command"] == command;
        let process = processes.iter().rfind(is_meant).expect(command);
        let analysis = analyse(&home, &["--process", &process["number"].to_string()]);
        let marks = analysis["marks"].as_array().unwrap().iter();
        marks.map(|mark| mark[1].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(phases("sh work.sh"), ["outer", "last"]);
    assert_eq!(phases("sh inner.sh"), ["outer", "inner"]);
    assert_eq!(phases("ls /"), ["inner"]);
}

#[test]
fn two_logs_are_compared() {
    let home = Home::new();
    let program = |count: u32| format!("held = [bytes(5000) for i in range({count})]\n");
    home.write("work.py", program(2000));
    record(&home, "env PYTHONMALLOC=malloc python3 work.py");
    std::fs::rename(home.work("log"), home.work("before")).unwrap();
    home.write("work.py", program(6000));
    record(&home, "env PYTHONMALLOC=malloc python3 work.py");
    let text = home.ok(&["measure", "alloc", "before", "log", "--html", "page.html"]);
    let changes = text.lines().nth(1).unwrap();
    let beginning = "From before to log: peak of live memory 2.";
    assert!(changes.starts_with(beginning) && changes.contains(" times as much ("), "{changes}");
    assert!(text.contains("\nbefore: ") && text.contains("\nlog: "), "{text}");
    // The process with the most memory, of those of the command.
    let command = text.lines().nth(2).unwrap();
    assert!(command.starts_with("before: Recorded for "), "{command}");
    assert!(command.contains("python3") && command.ends_with("work.py."), "{command}");
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    for part in [
        "Requested memory by calls",
        "</svg>before</span>",
        "</svg>log</span>",
        "<title>malloc - before: ",
        "<title>malloc - log: ",
    ] {
        assert!(page.contains(part), "the page lacks {part}");
    }
    // Logs of the same name.
    std::fs::create_dir(home.work("old")).unwrap();
    std::fs::rename(home.work("before"), home.work("old/log")).unwrap();
    let text = home.ok(&["measure", "alloc", "old/log", "log"]);
    assert!(text.starts_with("Allocations: old/log and log\n"), "{text}");
}

#[test]
fn a_log_is_replayed_on_an_allocator() {
    let home = Home::new();
    home.write(
        "work.py",
        "held = [bytes(1000 + i % 900) for i in range(40_000)]\n\
         grown = bytearray()\n\
         for i in range(300): grown += bytes(10_000)\n",
    );
    let analysis = record(&home, "env PYTHONMALLOC=malloc python3 work.py");
    let live = analysis["peak_bytes"].as_u64().unwrap();
    assert!(live > 55_000_000, "{live}");
    let replay = &home.json(&["measure", "replay", "log", "--allocator", "glibc"])[0]["replays"][0];
    assert_eq!(replay["allocator"], "glibc");
    // One sample is at the peak of live memory, and no allocator has less than what is live, apart
    // from pages of calloc that nobody touched.
    let samples = replay["samples"].as_array().unwrap();
    let most = samples.iter().map(|sample| sample[1].as_u64().unwrap()).max().unwrap();
    assert_eq!(most, live);
    let resident = replay["peak_resident_bytes"].as_u64().unwrap();
    assert!(resident > live * 9 / 10 && resident < live * 3 / 2, "{resident} for {live}");
    let run = home.code(&["measure", "replay", "log", "--allocator", "noalloc"], 1);
    assert!(run.stderr().contains("noalloc is not installed"), "{}", run.masked_output());
    // A library that is not there, or has no malloc, is not taken for an allocator.
    let run = home.code(&["measure", "replay", "log", "--allocator", "./none.so"], 5);
    assert!(run.stderr().contains("./none.so: "), "{}", run.masked_output());
    home.write("text.so", "no library\n");
    let Some(other) = LIBRARIES.iter().find(|path| Path::new(path).exists()) else {
        return left_out("a_log_is_replayed_on_an_allocator", "no library without malloc");
    };
    for library in ["./text.so", other] {
        let run = home.code(&["measure", "replay", "log", "--allocator", library], 5);
        assert!(run.stderr().contains("has no malloc"), "{library}: {}", run.masked_output());
    }
}

/// Libraries of C that have no malloc.
const LIBRARIES: [&str; 2] = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"];

/// The page of a real clone, in a real browser: it needs nothing but itself, and everything is
/// drawn.
#[test]
fn a_browser_draws_the_page() {
    let home = Home::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let command = format!("git clone --quiet --bare --no-local {} clone", root.display());
    recorder();
    let run = home.shell(&format!("larder measure record --out log -- {command}"));
    assert_eq!(run.code, 0, "{}", run.masked_output());
    home.ok(&["measure", "alloc", "log", "--html", "page.html"]);
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    for other in ["<script", "src=", "href=", "url(", "@import", "<link", "<iframe"] {
        assert!(!page.contains(other), "the page has {other}");
    }
    for width in [1400, 400] {
        let browse = |result: &str| {
            let mut browser = home.program("chromium");
            browser
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
                .arg(format!("--window-size={width},4000"))
                .arg(result)
                .arg(format!("file://{}", home.work("page.html").display()));
            browser.output()
        };
        let Ok(output) = browse("--dump-dom") else {
            return left_out("a_browser_draws_the_page", "no chromium");
        };
        let drawn = String::from_utf8_lossy(&output.stdout);
        // Each chart in both widths, of which the browser shows one.
        assert_eq!(drawn.matches("<svg").count(), page.matches("<svg").count());
        assert!(drawn.matches("<path").count() >= 8, "{}", drawn.matches("<path").count());
        assert!(!drawn.contains("parsererror"));
        browse("--screenshot=page.png").unwrap();
        // An empty page of this size takes about 15 kB.
        let bytes = std::fs::metadata(home.work("page.png")).unwrap().len();
        assert!(bytes > 60_000, "the picture has {bytes} bytes");
    }
}

#[test]
fn damaged_logs_are_read_as_far_as_they_are_whole() {
    let home = Home::new();
    record(&home, "git --version");
    let whole = std::fs::read(home.work("log")).unwrap();
    for length in (0..whole.len()).step_by(whole.len() / 60 + 1) {
        home.write("log", &whole[..length]);
        let run = home.run(&["measure", "alloc", "log"]);
        assert!(matches!(run.code, 0 | 1 | 3), "{length}: {}", run.masked_output());
        let is_named = run.stderr().contains("log: ");
        assert!(run.code == 0 || is_named, "{length}: {}", run.masked_output());
    }
    for place in (0..whole.len()).step_by(whole.len() / 60 + 1) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        home.write("log", &damaged);
        let run = home.run(&["measure", "alloc", "log"]);
        // Four bytes of the head of the file are not used.
        let is_noticed = run.code != 0 || (12..16).contains(&place);
        assert!(is_noticed, "byte {place}: {}", run.masked_output());
    }
}

/// Each phase has its own figures, and an object belongs to the phase that asked for it.
#[test]
fn figures_are_split_by_phase() {
    let home = Home::new();
    home.write(
        "phases.py",
        "import os\n\
         os.access('/larder/mark/keeping', 0)\n\
         held = [bytes(2000) for i in range(1000)]\n\
         os.access('/larder/mark/wasting', 0)\n\
         for i in range(3000): bytes(600)\n\
         os.access('/larder/mark/growing', 0)\n\
         grown = bytearray()\n\
         for i in range(100): grown += bytes(50_000)\n\
         os.access('/larder/mark/dropping', 0)\n\
         del held\n\
         for i in range(250_000): os.access('/larder/number/rows/' + str(i % 1000), 0)\n\
         os._exit(0)\n",
    );
    let analysis = record(&home, "env PYTHONMALLOC=malloc python3 phases.py");
    let phases = analysis["phases"].as_array().unwrap();
    let figure = |name: &str, path: &str| {
        let phase = phases.iter().find(|phase| phase["name"] == name).expect(name);
        phase.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name}{path}"))
    };
    assert!((2_000_000..2_300_000).contains(&figure("keeping", "/bytes_at_peak")));
    // Released in the last phase, after most of the run.
    assert!(figure("keeping", "/lifetimes/released") >= 1000);
    assert!(figure("keeping", "/unreleased_bytes") < 100_000);
    assert!((5_000_000..7_000_000).contains(&figure("growing", "/bytes_at_peak")));
    assert!((5_000_000..7_000_000).contains(&figure("growing", "/unreleased_bytes")));
    assert!(figure("wasting", "/lifetimes/at_most_ten_thousandth") >= 3000);
    assert!(figure("wasting", "/bytes_at_peak") < 100_000);
    assert!(figure("wasting", "/requests") - figure("wasting", "/small_requests") >= 3000);
    let sum = |key: &str| phases.iter().map(|phase| phase[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("bytes_at_peak"), analysis["peak_bytes"].as_u64().unwrap());
    assert_eq!(sum("unreleased_bytes"), analysis["end_bytes"].as_u64().unwrap());
    // Values of a number are joined, and the report says so.
    let rows = &analysis["numbers"][0];
    assert_eq!((&rows["count"], &rows["highest"]), (&250_000.into(), &999.into()));
    assert_eq!(rows["points"].as_array().unwrap().len(), 31_250);
    let text = home.ok(&["measure", "alloc", "log", "--html", "page.html"]);
    let sentence = "The number \"rows\" has 250,000 values: of each 8 one after another the lowest";
    assert!(text.contains(sentence), "{text}");
    for table in ["Live memory by phase", "Sizes by phase", "Lifetimes by phase"] {
        assert!(text.contains(table), "{text}");
    }
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    for part in [
        "Live memory by phase</b>",
        "</i>growing</span>",
        "class=\"c0 part\"",
        " in wasting - ",
        "Requests by size and phase</b>",
        "Released objects by lifetime and phase</b>",
        "A point is 8 values one after another",
    ] {
        assert!(page.contains(part), "the page lacks {part}");
    }
}

/// The memory of an analysis does not grow with the marks and the names that a program gives.
#[test]
fn marks_and_numbers_beyond_a_limit_are_counted() {
    let home = Home::new();
    home.write(
        "marks.py",
        "import os\n\
         for i in range(10_005): os.access('/larder/mark/m' + str(i), 0)\n\
         for i in range(107): os.access('/larder/number/n' + str(i) + '/5', 0)\n",
    );
    let analysis = record(&home, "env PYTHONMALLOC=malloc python3 marks.py");
    assert_eq!(analysis["marks"].as_array().unwrap().len(), 10_000);
    assert_eq!(analysis["numbers"].as_array().unwrap().len(), 100);
    assert_eq!((&analysis["omitted_marks"], &analysis["omitted_values"]), (&5.into(), &7.into()));
    let text = home.ok(&["measure", "alloc", "log"]);
    let sentence = "5 marks after the first 10,000 are left out of the charts.";
    assert!(text.contains(sentence), "{text}");
    let sentence = "7 values of numbers after the first 100 names are left out.";
    assert!(text.contains(sentence), "{text}");
}

/// Times are in the figures beside calls, and what charts draw is in the JSON.
#[test]
fn figures_are_in_time_as_well_as_in_calls() {
    let home = Home::new();
    home.write(
        "times.py",
        "import os, time\n\
         os.access('/larder/mark/keeping', 0)\n\
         held = [bytes(1000 + i % 7) for i in range(40_000)]\n\
         time.sleep(0.5)\n\
         os.access('/larder/mark/growing', 0)\n\
         more = [bytes(2000) for i in range(20_000)]\n\
         del held\n",
    );
    let analysis = record(&home, "env PYTHONMALLOC=malloc python3 times.py");
    let number = |path: &str| {
        let value = analysis.pointer(path).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("{path}"))
    };
    let (start, end) = (number("/start/start_us"), number("/end/end_us"));
    assert_eq!(number("/duration_us"), end - start);
    let peak = number("/peak_us");
    assert!(peak > start + 500_000 && peak <= end, "{start} {peak} {end}");
    // Most objects of the program were held for the time of its sleep.
    let held = number("/lifetimes/p90_us");
    assert!((450_000..2_000_000).contains(&held), "{held}");
    assert!(number("/lifetimes/median_us") <= held);
    let phases = analysis["phases"].as_array().unwrap();
    let durations: Vec<u64> =
        phases.iter().map(|phase| phase["duration_us"].as_u64().unwrap()).collect();
    assert!(phases[1]["name"] == "keeping" && durations[1] >= 490_000, "{durations:?}");
    assert_eq!(durations.iter().sum::<u64>(), end - start);
    let column = |path: &str| -> Vec<u64> {
        let values = analysis.pointer(path).and_then(Value::as_array).expect(path).iter();
        values.map(|value| value.as_u64().unwrap()).collect()
    };
    let most = column("/curve/max_bytes");
    assert_eq!(most.iter().max(), Some(&number("/peak_bytes")));
    for path in ["/curve/time_us", "/curve/calls", "/curve/max_bytes_by_phase/keeping"] {
        assert_eq!(column(path).len(), most.len(), "{path}");
    }
    assert!(column("/resident/resident_bytes").iter().max() >= Some(&50_000_000));
    let text = home.ok(&["measure", "alloc", "log", "--html", "page.html"]);
    for part in ["  time from the start to that peak", "  median lifetime in time"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let is_head = |line: &&str| line.starts_with("  phase ") && line.contains(" time ");
    // Phases, and their lifetimes.
    assert_eq!(text.lines().filter(is_head).count(), 1, "{text}");
    let lifetimes = text.split("Lifetimes by phase").nth(1).unwrap();
    assert!(lifetimes.lines().nth(1).unwrap().ends_with("median lifetime in time"), "{text}");
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    assert!(page.contains("Released objects by lifetime in time</b>"));
}

/// The list of processes says how each ended, in text and in JSON.
#[test]
fn processes_are_listed_with_their_ends() {
    let home = Home::new();
    recorder();
    let command = "sh -c 'python3 -c \"import os; os.fork() or os._exit(3)\"; git --version; \
                   exec python3 -c \"import os; os.abort()\"'";
    let run = home.shell(&format!("larder measure record --out log -- {command}"));
    assert_eq!(run.code, 134, "{}", run.masked_output());
    let analysis = analyse(&home, &[]);
    let processes = analysis["processes"].as_array().unwrap();
    let ends: Vec<(&str, Option<i64>)> = processes
        .iter()
        .filter(|process| process["is_forked"] == false)
        .map(|process| (process["ending"].as_str().unwrap(), process["signal"].as_i64()))
        .collect();
    // The program of a shim, as of pyenv, ends by exec, too.
    assert_eq!(ends.first(), Some(&("exec", None)), "{ends:?}");
    assert!(ends.contains(&("exit", None)), "{ends:?}");
    assert_eq!(ends.last(), Some(&("signal", Some(6))), "{ends:?}");
    // A child that ends by _exit.
    let is_python = |process: &&Value| process["command"].as_str().unwrap().contains("os.fork");
    let child = processes.iter().filter(is_python).rfind(|process| process["is_forked"] == true);
    assert_eq!(child.unwrap()["ending"], "exit", "{processes:?}");
    let calls: u64 = processes.iter().map(|process| process["calls"].as_u64().unwrap()).sum();
    assert!(calls > 100 && processes.iter().all(|process| process["pid"].is_u64()));
    let last = (processes.len() - 1).to_string();
    let text = home.ok(&["measure", "alloc", "log", "--process", &last]);
    assert!(text.contains(" SIGABRT ") && text.contains("to its end by SIGABRT: "), "{text}");
}

/// A run that is too short for a sample has no row for what was not sampled.
#[test]
fn figures_that_were_not_sampled_are_left_out() {
    let home = Home::new();
    record(&home, "git --version");
    let text = home.ok(&["measure", "alloc", "log"]);
    let is_listed = text.contains("peak of resident memory, by samples");
    let is_explained = text.contains("Resident memory is sampled every 50 ms");
    assert!(is_listed != is_explained, "{text}");
}

/// A program may take most of its memory past the allocator: then live memory misleads.
#[test]
fn memory_that_is_resident_but_not_live_is_named() {
    let home = Home::new();
    recorder();
    // The program goes on until its memory was sampled.
    home.write(
        "work.py",
        "import mmap, time\n\
         held = mmap.mmap(-1, 60_000_000, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n\
         for place in range(0, 60_000_000, 4096): held[place] = 1\n\
         end = time.monotonic() + 0.3\n\
         while time.monotonic() < end: pass\n",
    );
    record(&home, "python3 work.py");
    let text = home.ok(&["measure", "alloc", "log"]);
    assert!(text.contains(" of anonymous memory were resident: memory that the program"), "{text}");
    assert!(
        text.contains(" with PYTHONMALLOC=malloc: without that, they are in no figure.\n"),
        "{text}"
    );
}

#[test]
fn a_program_without_calls_has_no_figures_of_them() {
    let home = Home::new();
    record(&home, "true");
    let text = home.ok(&["measure", "alloc", "log"]);
    let sentence =
        "\nNo calls were recorded: the program made none, or has an allocator of its own.\n";
    assert!(text.contains(sentence) && !text.contains("Everything was released"), "{text}");
    let log = std::fs::read(home.work("log")).unwrap();
    home.write("damaged", &log[..log.len() - 1]);
    for (name, code) in [("log", 1), ("damaged", 3)] {
        let run = home.code(&["measure", "replay", name], code);
        let reason = format!("error: {name}: process 0 allocated nothing");
        assert!(run.stdout().is_empty(), "{}", run.stdout());
        assert!(run.stderr().contains(&reason), "{}", run.stderr());
    }
}

#[test]
fn a_request_that_failed_is_named() {
    let home = Home::new();
    home.write("work.py", "try:\n    bytearray(1 << 46)\nexcept MemoryError:\n    pass\n");
    let analysis = record(&home, "env PYTHONMALLOC=malloc python3 work.py");
    assert!(analysis["largest_failure"].as_u64() >= Some(1 << 46), "{analysis}");
    let text = home.ok(&["measure", "alloc", "log"]);
    let is_named =
        |line: &str| line.ends_with(" failed; the largest request among them was for 70 TB.");
    assert!(text.lines().any(is_named), "{text}");
}

/// An output that is the log itself, by whatever name, or that cannot be created, is refused before
/// anything is read or run.
#[test]
fn outputs_are_checked_before_the_work() {
    let home = Home::new();
    record(&home, "true");
    let log = std::fs::read(home.work("log")).unwrap();
    std::fs::hard_link(home.work("log"), home.work("link")).unwrap();
    for command in [
        "alloc log --html log",
        "alloc log --svg ./log",
        "alloc log --html link",
        "alloc link log --svg log",
        "replay log --html link",
    ] {
        let run =
            home.code(&[&["measure"], &command.split(' ').collect::<Vec<_>>()[..]].concat(), 2);
        assert!(run.stderr().contains(" is the log itself"), "{command}: {}", run.masked_output());
        assert!(std::fs::read(home.work("log")).unwrap() == log, "{command}");
    }
    for svg in ["page", "./page", "copy"] {
        if svg == "copy" {
            home.write("page", "");
            std::fs::hard_link(home.work("page"), home.work("copy")).unwrap();
        }
        let run = home.code(&["measure", "alloc", "log", "--html", "page", "--svg", svg], 2);
        assert!(run.stderr().contains("page is the file of both --html and --svg"), "{svg}");
    }
    for option in ["--html", "--svg"] {
        let arguments = ["measure", "memory", option, "none/page", "--", "touch", "started"];
        let run = home.code(&arguments, 5);
        assert!(run.stderr().contains("none/page: "), "{}", run.masked_output());
        assert!(!home.work("started").exists());
    }
    // A measurement is printed also if its page cannot be written.
    let run = home.run(&["measure", "memory", "--html", "/dev/full", "--", "sleep", "0.1"]);
    assert!(run.stdout().starts_with("Memory: sleep 0.1\n"), "{}", run.masked_output());
    assert!(run.code == 5 && run.stderr().contains("/dev/full: "), "{}", run.masked_output());
}

/// A log is read several times, so it cannot come through a pipe.
#[test]
fn a_log_from_a_pipe_is_refused() {
    let home = Home::new();
    record(&home, "true");
    for command in ["cat log | larder measure alloc /dev/stdin", "larder measure alloc - <log"] {
        let run = home.shell(command);
        assert_eq!(run.code, 2, "{command}: {}", run.masked_output());
        assert!(run.stderr().contains("has to be a regular file"), "{}", run.masked_output());
    }
    // Standard input that is a file can be read twice.
    assert_eq!(home.shell("larder measure alloc /dev/stdin <log").code, 0);
}

/// A number that does not fit into 63 bits is not recorded as another one: its check fails.
#[test]
fn numbers_that_are_too_large_are_refused() {
    let home = Home::new();
    home.write(
        "numbers.py",
        "import os\n\
         for value in ['9223372036854775807', '9223372036854775808', '9' * 40, '', '-1', '7']:\n    \
             print(os.access('/larder/number/rows/' + value, 0))\n",
    );
    recorder();
    let run = home.shell("larder measure record --out log -- python3 numbers.py");
    assert_eq!(run.stdout(), "True\nFalse\nFalse\nFalse\nFalse\nTrue\n", "{}", run.masked_output());
    let processes = analyse(&home, &[])["processes"].as_array().unwrap().len();
    let process = (processes - 1).to_string();
    let rows = analyse(&home, &["--process", &process])["numbers"][0].clone();
    assert_eq!((&rows["count"], &rows["first"]), (&2.into(), &i64::MAX.into()), "{rows}");
}

/// A phase or a number without a name could not be read in a report.
#[test]
fn empty_names_are_refused() {
    let home = Home::new();
    home.write(
        "names.py",
        "import ctypes, os\n\
         for name in ['mark/', 'number//7', 'mark/work', 'number/rows/7']:\n    \
             print(os.access('/larder/' + name, 0))\n\
         library = ctypes.CDLL(None)\n\
         library.larder_mark(b'')\n\
         library.larder_number(b'', ctypes.c_ulong(8))\n",
    );
    recorder();
    let run = home.shell("larder measure record --out log -- python3 names.py");
    assert_eq!(run.stdout(), "False\nFalse\nTrue\nTrue\n", "{}", run.masked_output());
    let processes = analyse(&home, &[])["processes"].as_array().unwrap().clone();
    let process = (processes.len() - 1).to_string();
    let analysis = analyse(&home, &["--process", &process]);
    let last = &analysis["processes"][processes.len() - 1];
    assert_eq!((&last["marks"], &last["number_values"]), (&1.into(), &1.into()), "{last}");
    let numbers = analysis["numbers"].as_array().unwrap();
    let names: Vec<&str> = numbers.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rows"]);
}

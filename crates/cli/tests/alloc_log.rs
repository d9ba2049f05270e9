//! The allocation log: programs are recorded, and the figures compared with a slow reference that
//! sees the same calls, and with a plain model in memory.

use crate::test_home::{Home, LARDER, left_out};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the recorder, which no crate depends on; returns its path.
pub fn recorder() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--offline", "--package", "larder-alloclog"]);
    let target = Path::new(LARDER).parent().unwrap();
    build.arg("--target-dir").arg(target.parent().unwrap());
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("liblarder_alloclog.so")
}

/// Compiles a program of this folder; `None` if there is no compiler.
pub fn compile(home: &Home, source: &str, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let program = home.work(source.split('.').next().unwrap());
    let output = Command::new(compiler)
        .args(["-O0", "-fno-builtin", "-w", "-o"])
        .arg(&program)
        .arg(path)
        .args(options)
        .output();
    match output {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("{source}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => None,
    }
}

/// Records a command; returns the analysis of its largest process.
#[track_caller]
pub fn record(home: &Home, command: &str) -> Value {
    record_with(home, "", command)
}

#[track_caller]
pub fn record_with(home: &Home, options: &str, command: &str) -> Value {
    recorder();
    let run = home.shell(&format!("larder measure record {options} --out log -- {command}"));
    assert_eq!(run.code, 0, "{command}\n{}", run.masked_output());
    analyse(home, &[])
}

#[track_caller]
pub fn analyse(home: &Home, options: &[&str]) -> Value {
    home.json(&[&["measure", "alloc", "log"], options].concat()).remove(0)
}

/// Returns the number of processes in a log.
pub fn process_count(analysis: &Value) -> u64 {
    analysis["processes"].as_array().unwrap().len() as u64
}

/// Records a command with the reference in it; returns the analysis, and the calls that the
/// reference saw.
fn record_with_reference(home: &Home, command: &str) -> Option<(Value, Vec<ReferenceCall>)> {
    let options = ["-shared", "-fPIC", "-ldl", "-pthread"];
    let reference = compile(home, "reference.c", "gcc", &options)?;
    let command = format!(
        "env LD_PRELOAD=\"$LD_PRELOAD:{}\" REFERENCE_LINES={} {command}",
        reference.display(),
        home.work("lines").display()
    );
    // Of a command before.
    drop(std::fs::remove_file(home.work("lines")));
    let analysis = record(home, &format!("sh -c '{command}'"));
    let lines = std::fs::read_to_string(home.work("lines")).unwrap();
    Some((analysis, lines.lines().map(ReferenceCall::parse).collect()))
}

/// A call as the reference saw it.
struct ReferenceCall {
    name: String,
    address: u64,
    size: u64,
    old: u64,
}

impl ReferenceCall {
    fn parse(line: &str) -> ReferenceCall {
        let mut words = line.split(' ');
        let name = words.next().unwrap().to_string();
        let mut number = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        ReferenceCall { name, address: number(), size: number(), old: number() }
    }
}

/// The figures of calls, by a plain model: everything is kept, nothing is clever.
#[derive(Default)]
struct Model {
    calls: u64,
    failures: u64,
    /// Birth and size of the objects at each address. With threads there may be two for a while: a
    /// realloc has released the older one, and its line follows.
    live: HashMap<u64, Vec<(u64, u64)>>,
    live_objects: u64,
    live_bytes: u64,
    peak_bytes: u64,
    peak_objects: u64,
    lower_bytes: u64,
    upper_bytes: u64,
    sizes: Vec<u64>,
    lifetimes: Vec<u64>,
}

impl Model {
    fn from_calls(calls: &[ReferenceCall]) -> Model {
        let mut model = Model::default();
        calls.iter().for_each(|call| model.take(call));
        model
    }

    fn take(&mut self, call: &ReferenceCall) {
        match (call.name.as_str(), call.address, call.old) {
            ("free", address, _) => self.free(address),
            ("realloc", 0, old) if old != 0 && call.size == 0 => self.free(old),
            (_, 0, _) => {
                self.failures += 1;
                self.calls += 1;
            }
            ("realloc", address, old) if old != 0 => self.realloc(old, address, call.size),
            (_, address, _) => {
                self.calls += 1;
                self.request(call.size, call.size);
                self.live.entry(address).or_default().push((self.calls, call.size));
                self.live_objects += 1;
                self.live_bytes += call.size;
            }
        }
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
        self.peak_objects = self.peak_objects.max(self.live_objects);
    }

    fn request(&mut self, size: u64, growth: u64) {
        self.upper_bytes += size;
        self.lower_bytes += growth;
        self.sizes.push(size);
    }

    fn free(&mut self, address: u64) {
        let (birth, size) = self.live.get_mut(&address).unwrap().pop().unwrap();
        self.live_objects -= 1;
        self.lifetimes.push(self.calls - birth);
        self.live_bytes -= size;
        self.calls += 1;
    }

    fn realloc(&mut self, old: u64, address: u64, size: u64) {
        let (birth, before) = self.live.get_mut(&old).unwrap().remove(0);
        self.live.entry(address).or_default().push((birth, size));
        self.live_bytes = self.live_bytes - before + size;
        self.request(size, size.saturating_sub(before));
        self.calls += 1;
    }

    /// Fails unless the analysis has the figures that do not depend on the order of threads.
    #[track_caller]
    fn assert_sums(&self, analysis: &Value) {
        assert_eq!(analysis["calls"], self.calls);
        assert_eq!(analysis["end"]["anomalies"], 0);
        assert_eq!(analysis["upper_bytes"], self.upper_bytes);
        assert_eq!(analysis["lower_bytes"], self.lower_bytes);
        assert_eq!(analysis["end_bytes"], self.live_bytes);
        assert_eq!(analysis["end_objects"], self.live_objects);
        assert_eq!(analysis["requests"], self.sizes.len() as u64);
        let mut narrow = vec![0_u64; 2048];
        let mut wide: HashMap<u64, u64> = HashMap::new();
        for size in &self.sizes {
            if let Some(count) = narrow.get_mut((size / 16) as usize) {
                *count += 1;
            }
            *wide.entry(size / 32_768).or_default() += 1;
        }
        let mut wide: Vec<(u64, u64)> = wide.into_iter().collect();
        wide.sort_unstable();
        assert_eq!(analysis["narrow_buckets"], serde_json::json!(narrow));
        assert_eq!(analysis["wide_buckets"], serde_json::json!(wide));
        let failures = analysis["failures_by_function"].as_object().unwrap();
        assert_eq!(failures.values().filter_map(Value::as_u64).sum::<u64>(), self.failures);
    }

    /// Fails unless the analysis has all figures.
    #[track_caller]
    fn assert_equal(&self, analysis: &Value) {
        self.assert_sums(analysis);
        assert_eq!(analysis["peak_bytes"], self.peak_bytes);
        assert_eq!(analysis["peak_objects"], self.peak_objects);
        let lifetimes = &analysis["lifetimes"];
        let share = |limit: u64| self.lifetimes.iter().filter(|calls| **calls <= limit).count();
        assert_eq!(lifetimes["released"], self.lifetimes.len());
        assert_eq!(lifetimes["at_zero"], share(0));
        assert_eq!(lifetimes["at_most_ten_thousandth"], share(self.calls / 10_000));
        assert_eq!(lifetimes["at_most_tenth"], share(self.calls / 10));
        let mut sorted = self.lifetimes.clone();
        sorted.sort_unstable();
        for (name, part) in [("median", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let rank = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len());
            let exact = sorted[rank - 1];
            let shown = lifetimes[name].as_u64().unwrap();
            assert!(shown <= exact && exact - shown <= exact / 64, "{name}: {shown}, {exact}");
        }
    }
}

/// Returns the number of calls of functions in an analysis.
fn calls_of(analysis: &Value, functions: &[&str]) -> u64 {
    let count = |group: &str, name: &&str| analysis[group][name].as_u64().unwrap_or(0);
    let both = |name| count("calls_by_function", name) + count("failures_by_function", name);
    functions.iter().map(both).sum()
}

/// The functions to which the reference's names lead.
const FUNCTIONS_OF_NAMES: [(&str, &[&str]); 8] = [
    ("malloc", &["malloc", "operator new", "operator new[]"]),
    ("calloc", &["calloc"]),
    ("realloc", &["realloc", "realloc(NULL, n)", "realloc(p, 0)", "reallocarray"]),
    ("posix_memalign", &["posix_memalign"]),
    ("aligned_alloc", &["aligned_alloc"]),
    ("memalign", &["memalign", "operator new (aligned)", "operator new[] (aligned)"]),
    ("valloc", &["valloc"]),
    ("pvalloc", &["pvalloc"]),
];

#[track_caller]
fn assert_counts_by_function(analysis: &Value, calls: &[ReferenceCall]) {
    for (name, functions) in FUNCTIONS_OF_NAMES {
        let seen = calls.iter().filter(|call| call.name == name).count();
        assert_eq!(calls_of(analysis, functions), seen as u64, "{name}");
    }
}

#[test]
fn every_entry_point_is_recorded() {
    let home = Home::new();
    let options = ["-std=c++17", "-pthread", "-ldl"];
    let Some(program) = compile(&home, "entry_points.cpp", "g++", &options) else {
        return left_out("every_entry_point_is_recorded", "no g++");
    };
    let Some((analysis, calls)) = record_with_reference(&home, &format!("{} 0", program.display()))
    else {
        return left_out("every_entry_point_is_recorded", "no gcc");
    };
    assert_counts_by_function(&analysis, &calls);
    Model::from_calls(&calls).assert_equal(&analysis);
    // free(NULL) and delete of null, which the recorder does not pass on.
    assert!(analysis["end"]["null_frees"].as_u64().unwrap() >= 100);
    let counts = [
        ("operator new", 150),
        ("operator new[]", 150),
        ("operator new (aligned)", 100),
        ("operator new[] (aligned)", 100),
        ("operator delete", 250),
        ("operator delete[]", 250),
        ("realloc(p, 0)", 50),
        ("reallocarray", 100),
        ("cfree", 50),
        ("free_sized", 50),
        ("free_aligned_sized", 50),
    ];
    for (function, count) in counts {
        assert_eq!(analysis["calls_by_function"][function], count, "{function}");
    }
}

#[test]
fn threads_lose_no_call() {
    let home = Home::new();
    let options = ["-std=c++17", "-pthread", "-ldl"];
    let Some(program) = compile(&home, "entry_points.cpp", "g++", &options) else {
        return left_out("threads_lose_no_call", "no g++");
    };
    let command = format!("{} 20000", program.display());
    let Some((analysis, calls)) = record_with_reference(&home, &command) else {
        return left_out("threads_lose_no_call", "no gcc");
    };
    assert_counts_by_function(&analysis, &calls);
    assert!(calls.len() > 200_000, "{}", calls.len());
    Model::from_calls(&calls).assert_sums(&analysis);
}

/// A library that `dlopen` loads, and one that is loaded for it, throw `bad_alloc` as unrecorded.
#[test]
fn a_plugin_of_c_plus_plus_catches_bad_alloc() {
    let home = Home::new();
    let test = "a_plugin_of_c_plus_plus_catches_bad_alloc";
    let Some(host) = compile(&home, "cplusplus_host.c", "gcc", &["-ldl"]) else {
        return left_out(test, "no gcc");
    };
    recorder();
    let outer = home.write(
        "outer.c",
        "int count_inner(long);\n\
         int count_exceptions(long bytes) { return count_inner(bytes); }\n",
    );
    let library = home.work("libplugin.so");
    let shared = ["-std=c++17", "-shared", "-fPIC"];
    for options in [
        &["-DNAME=count_exceptions"][..],
        &["-DNAME=count_exceptions", "-static-libstdc++"],
        &["-DNAME=count_inner"],
    ] {
        let options = [&shared, options].concat();
        let Some(inner) = compile(&home, "cplusplus_plugin.cpp", "g++", &options) else {
            return left_out(test, "no g++");
        };
        std::fs::rename(inner, &library).unwrap();
        let mut plugin = library.clone();
        if options.contains(&"-DNAME=count_inner") {
            plugin = home.work("outer.so");
            let mut link = Command::new("gcc");
            link.args(["-shared", "-fPIC", "-o"]).arg(&plugin).arg(&outer).arg(&library);
            assert!(link.status().unwrap().success());
        }
        let command = format!("{} {}", host.display(), plugin.display());
        let analysis = record(&home, &command);
        assert_eq!(analysis["failures_by_function"]["operator new[]"], 10, "{options:?}");
        assert_eq!(analysis["failures_by_function"]["operator new (aligned)"], 10, "{options:?}");
    }
}

#[test]
fn git_and_python_agree_with_the_reference() {
    let home = Home::new();
    let repository = home.work("repository");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = Command::new("git")
        .args(["clone", "--quiet", "--bare", "--no-hardlinks"])
        .args([&root, &repository])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let git = format!("git -C {} log --stat -n 20", repository.display());
    // The program itself, not a script that finds it.
    let python = home.program("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let Ok(python) = python.map(|output| String::from_utf8(output.stdout).unwrap()) else {
        return left_out("git_and_python_agree_with_the_reference", "no python3");
    };
    let python = format!(
        "env PYTHONMALLOC=malloc {} -c \"print(sorted(str(i) for i in range(5000)))\"",
        python.trim()
    );
    for command in [&git, &python] {
        let Some((analysis, calls)) = record_with_reference(&home, &format!("{command} >out"))
        else {
            return left_out("git_and_python_agree_with_the_reference", "no gcc");
        };
        assert!(calls.len() > 5_000, "{command}: {}", calls.len());
        assert_counts_by_function(&analysis, &calls);
        Model::from_calls(&calls).assert_equal(&analysis);
    }
}

#[test]
fn a_killed_program_loses_no_call() {
    let home = Home::new();
    let Some(program) = compile(&home, "killed.c", "gcc", &[]) else {
        return left_out("a_killed_program_loses_no_call", "no gcc");
    };
    recorder();
    for calls in [1_000, 123_456, 1_000_000] {
        let run = home
            .shell(&format!("larder measure record --out log -- {} {calls}", program.display()));
        assert_eq!(run.code, 137, "{}", run.masked_output());
        let analysis = analyse(&home, &[]);
        assert_eq!(analysis["calls_by_function"]["malloc"], calls);
        assert_eq!(analysis["end"]["anomalies"], 0);
    }
}

#[test]
fn memory_that_is_unmapped_above_a_stack_harms_no_sample() {
    let home = Home::new();
    let Some(program) = compile(&home, "unmapped.c", "gcc", &["-pthread"]) else {
        return left_out("memory_that_is_unmapped_above_a_stack_harms_no_sample", "no gcc");
    };
    let analysis = record_with(&home, "--stacks 1", &program.display().to_string());
    assert_eq!(analysis["end"]["anomalies"], 0);
    assert!(analysis["calls_by_function"]["malloc"].as_u64().unwrap() >= 20_000);
}

#[test]
fn a_check_of_a_bad_pointer_fails_as_it_does_unrecorded() {
    let home = Home::new();
    let Some(program) = compile(&home, "bad_pointer.c", "gcc", &[]) else {
        return left_out("a_check_of_a_bad_pointer_fails_as_it_does_unrecorded", "no gcc");
    };
    let analysis = record(&home, &program.display().to_string());
    assert_eq!(analysis["marks"][0][1], "checked");
}

/// Threads that wait for space in the ring hold up nothing of what the others wrote. A thread that
/// was interrupted as it wrote a call may do so, thus the best of some runs counts.
#[test]
fn a_killed_program_with_threads_loses_few_calls() {
    let home = Home::new();
    let Some(program) = compile(&home, "killed_threads.c", "gcc", &["-pthread"]) else {
        return left_out("a_killed_program_with_threads_loses_few_calls", "no gcc");
    };
    recorder();
    let mut lost = Vec::new();
    for _ in 0..5 {
        let command = format!("larder measure record --out log -- {} count", program.display());
        let run = home.shell(&command);
        assert_eq!(run.code, 137, "{}", run.masked_output());
        let count = std::fs::read(home.work("count")).unwrap();
        let count = u64::from_le_bytes(count[..8].try_into().unwrap());
        assert!(count >= 1_000_000, "{count}");
        let calls = analyse(&home, &[])["calls_by_function"]["malloc"].as_u64().unwrap();
        lost.push(count.saturating_sub(calls));
    }
    assert!(lost.iter().any(|lost| *lost <= 1_000), "{lost:?}");
}

/// The first sample of a process is as likely as any other: most processes that ask for less than
/// an interval have none, but not all.
#[test]
fn small_processes_are_sampled() {
    let home = Home::new();
    let Some(program) = compile(&home, "killed.c", "gcc", &[]) else {
        return left_out("small_processes_are_sampled", "no gcc");
    };
    let command = format!("sh -c 'for i in $(seq 60); do {} 100 end; done'", program.display());
    let processes = process_count(&record_with(&home, "--stacks 64k", &command));
    let sampled = (0..processes).filter(|number| {
        let process = analyse(&home, &["--process", &number.to_string()]);
        let is_meant = process["command"].as_str().unwrap().contains("killed");
        is_meant && !process["stacks"]["nodes"].as_array().unwrap().is_empty()
    });
    let sampled = sampled.count();
    assert!((1..60).contains(&sampled), "{sampled}");
}

/// A ring keeps its length, so that no program can take memory away that the collector reads.
#[test]
fn a_ring_is_sealed() {
    let home = Home::new();
    home.write(
        "collector.py",
        "import array, fcntl, os, socket, subprocess, sys\n\
         server = socket.socket(socket.AF_UNIX)\n\
         server.bind('socket')\n\
         server.listen(1)\n\
         setting = f'12:0:{os.getpid()}:' + os.path.abspath('socket')\n\
         os.environ.update(LD_PRELOAD=sys.argv[1], LARDER_ALLOCLOG=setting)\n\
         program = subprocess.Popen(['true'])\n\
         server.settimeout(60)\n\
         connection, _ = server.accept()\n\
         parts = connection.recvmsg(4096, socket.CMSG_SPACE(4))[1]\n\
         ring = array.array('i', parts[0][2])[0]\n\
         seals = fcntl.fcntl(ring, fcntl.F_GET_SEALS)\n\
         assert seals == fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW, seals\n\
         sys.exit(program.wait())\n",
    );
    let mut python = home.program("python3");
    let Ok(output) = python.arg("collector.py").arg(recorder()).output() else {
        return left_out("a_ring_is_sealed", "no python3");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_program_outlives_the_collector() {
    let home = Home::new();
    let Some(program) = compile(&home, "killed.c", "gcc", &[]) else {
        return left_out("a_program_outlives_the_collector", "no gcc");
    };
    recorder();
    // The shell kills the collector, its parent, after a program that has ended for longer than a
    // block may take; then one fills its ring many times.
    let run = home.shell(&format!(
        "larder measure record --out log -- \
         sh -c '{0} 300000 end; sleep 2; kill -9 $PPID; {0} 3000000 end; echo $? >code'; \
         until [ -s code ]; do sleep 0.01; done; cat code",
        program.display()
    ));
    assert_eq!(run.stdout().trim(), "0", "{}", run.masked_output());
    let analysis = home.json(&["measure", "alloc", "log"]).remove(0);
    assert_eq!(analysis["calls_by_function"]["malloc"], 300_000);
    assert_eq!(analysis["end"]["anomalies"], 0);
}

#[test]
fn a_full_disk_harms_no_program() {
    let home = Home::new();
    let Some(program) = compile(&home, "killed.c", "gcc", &[]) else {
        return left_out("a_full_disk_harms_no_program", "no gcc");
    };
    recorder();
    // The limit of the size of files, in units of 512 bytes, leaves room for the ring.
    let run = home.shell(&format!(
        "trap '' XFSZ; ulimit -f 4200; \
         larder measure record --out log -- sh -c '{} 5000000 end && echo done'",
        program.display()
    ));
    assert_eq!(run.code, 5, "{}", run.masked_output());
    assert_eq!(run.stdout().trim(), "done");
    let messages = run.stderr();
    assert!(messages.contains("log: "), "{}", run.masked_output());
    let run = home.run(&["--format", "json", "measure", "alloc", "log"]);
    assert!(matches!(run.code, 0 | 3), "{}", run.masked_output());
    // The calls in the log, and the others.
    let analysis: Value = serde_json::from_slice(&run.out).unwrap();
    let processes = analysis["processes"].as_array().unwrap().iter();
    let calls: u64 = processes.map(|process| process["calls"].as_u64().unwrap()).sum();
    let note = messages.lines().find(|line| line.contains("note: recorded ")).unwrap();
    let numbers: Vec<u64> = note
        .split(' ')
        .filter_map(|word| word.replace(',', "").parse().ok())
        .filter(|number| *number > 100)
        .collect();
    assert_eq!(numbers[0], calls, "{note}");
    assert!(numbers[1] > 1_000_000 && note.ends_with(" later calls are lost"), "{note}");
}

#[test]
fn children_inherit_what_is_live() {
    let home = Home::new();
    home.write(
        "fork.py",
        "import os\n\
         held = [bytes(1000 + i) for i in range(500)]\n\
         os.access('/larder/mark/forking', 0)\n\
         os.access('/larder/number/held/500', 0)\n\
         child = os.fork()\n\
         if child == 0:\n    os.access('/larder/mark/child', 0)\n    del held\n    os._exit(0)\n\
         os.waitpid(child, 0)\n",
    );
    let analysis = record(&home, "env PYTHONMALLOC=malloc python3 fork.py");
    assert_eq!(analysis["end"]["anomalies"], 0);
    assert_eq!(analysis["marks"][0][1], "forking");
    assert_eq!(analysis["numbers"][0]["name"], "held");
    assert_eq!(analysis["numbers"][0]["last"], 500);
    home.ok(&["measure", "alloc", "log", "--html", "page.html"]);
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    for part in [
        ">forking</text>",
        " in forking - ",
        "The program's number &quot;held&quot; by calls",
        "Requested memory by calls",
        "Calls by phase and function",
    ] {
        assert!(page.contains(part), "the page lacks {part}");
    }
    let child = (0..process_count(&analysis))
        .map(|number| analyse(&home, &["--process", &number.to_string()]))
        .find(|process| process["start"]["is_forked"] == true && process["marks"][0][1] == "child")
        .expect("no forked child with a mark");
    assert_eq!(child["end"]["anomalies"], 0);
    assert!(child["start"]["inherited_objects"].as_u64().unwrap() > 500);
    // 500 objects of 1,000 to 1,499 bytes, with their heads.
    let inherited = child["start"]["inherited_bytes"].as_u64().unwrap();
    assert!(inherited - child["end_bytes"].as_u64().unwrap() > 500 * 1_250);
}

#[test]
fn the_child_of_a_program_that_writes_a_title_is_recorded() {
    let home = Home::new();
    let Some(program) = compile(&home, "titled.c", "gcc", &[]) else {
        return left_out("the_child_of_a_program_that_writes_a_title_is_recorded", "no gcc");
    };
    let parent = record(&home, &program.display().to_string());
    assert_eq!(process_count(&parent), 2);
    let child = (0..2)
        .map(|number| analyse(&home, &["--process", &number.to_string()]))
        .find(|process| process["start"]["is_forked"] == true)
        .expect("no forked child");
    assert_eq!(child["calls_by_function"]["malloc"], 1_000);
}

#[test]
fn a_tree_of_processes_is_in_one_log() {
    let home = Home::new();
    for number in 1..=4 {
        let text = format!("int value_{number}(void) {{ return {number}; }}\n");
        home.write(&format!("part{number}.c"), text);
    }
    home.write("main.c", "int main(void) { return 0; }\n");
    home.write(
        "Makefile",
        "program: main.o part1.o part2.o part3.o part4.o\n\tcc -o $@ $^\n%.o: %.c\n\tcc -c $<\n",
    );
    if Command::new("make").arg("--version").output().is_err() {
        return left_out("a_tree_of_processes_is_in_one_log", "no make");
    }
    recorder();
    let run = home.shell("larder measure record --out log -- make -j2");
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let count = process_count(&analyse(&home, &[]));
    let processes: Vec<Value> =
        (0..count).map(|number| analyse(&home, &["--process", &number.to_string()])).collect();
    let commands: Vec<&str> =
        processes.iter().map(|process| process["command"].as_str().unwrap()).collect();
    for number in 1..=4 {
        let compiler = format!("cc -c part{number}.c");
        assert!(commands.contains(&compiler.as_str()), "{commands:?}");
    }
    assert_eq!(commands[0], "make -j2");
    for process in &processes[1..] {
        let parent = process["start"]["parent"].as_u64();
        assert!(parent.is_some(), "{}", process["command"]);
        assert_eq!(process["end"]["anomalies"], 0, "{}", process["command"]);
    }
}

#[test]
fn a_static_program_is_named() {
    let home = Home::new();
    recorder();
    let Some(program) = compile(&home, "killed.c", "gcc", &["-static"]) else {
        return left_out("a_static_program_is_named", "no gcc");
    };
    let run = home.shell(&format!("larder measure record -- {} 1 end", program.display()));
    assert_eq!(run.code, 2);
    assert!(run.stderr().contains("is a static program"), "{}", run.masked_output());
}

/// A program that refuses the recorder says so in words of its own; larder names the reason.
#[test]
fn a_program_with_a_sanitizer_is_named() {
    let home = Home::new();
    recorder();
    let source = home.work("sanitized.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut compiler = Command::new("gcc");
    compiler.arg("-fsanitize=address").arg("-o").arg(home.work("sanitized")).arg(&source);
    if !compiler.output().is_ok_and(|output| output.status.success()) {
        return left_out("a_program_with_a_sanitizer_is_named", "no gcc with AddressSanitizer");
    }
    let run = home.shell("larder measure record --out log -- ./sanitized");
    assert_ne!(run.code, 0, "{}", run.masked_output());
    let stderr = run.stderr();
    assert!(stderr.contains("log: no process was recorded"), "{stderr}");
    let hint = "hint: ./sanitized is built with AddressSanitizer, ";
    assert!(stderr.contains(hint), "{stderr}");
    let run = home.shell("larder measure record --out log -- false");
    assert!(!run.stderr().contains("AddressSanitizer"), "{}", run.masked_output());
}

/// The log of a Python with its own allocator lacks small objects.
#[test]
fn python_without_malloc_is_noted() {
    let home = Home::new();
    recorder();
    let note = "note: Python takes memory for small objects by mmap";
    let has_note = |environment: &str, options: &str| {
        let command = format!("larder {options} measure record --out log -- python3 -c 1");
        let run = home.shell(&format!("{environment} {command}"));
        assert_eq!(run.code, 0, "{}", run.masked_output());
        run.stderr().contains(note)
    };
    assert!(has_note("", ""));
    assert!(!has_note("PYTHONMALLOC=malloc", ""));
    assert!(!has_note("", "--quiet"));
}

//! The memory of commands over time.

use crate::test_home::Home;
use serde_json::Value;

/// Messages of the command begin phases, which have the memory by mapping where they begin. The
/// messages are passed on.
#[test]
fn the_memory_of_a_command_has_phases() {
    let home = Home::new();
    home.write(
        "work.py",
        "import sys\n\
         def say(text): print(text, file=sys.stderr, flush=True)\n\
         say('reading: 1%')\nfor i in range(3_000_000): pass\n\
         held = bytearray(60_000_000)\nsay('reading: 100%')\n\
         say('writing: 1%')\nfor i in range(3_000_000): pass\n\
         say('a note')\n",
    );
    let command = "larder --format json measure memory --phases '^([^:]+): +[0-9]+%' --html page.html \
                   -- python3 work.py";
    let run = home.shell(command);
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert!(run.stderr().ends_with("a note\n"), "{}", run.stderr());
    let memory: Value = serde_json::from_slice(&run.out).unwrap();
    let phases = memory["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    // What is before the first message is a phase, too.
    assert_eq!(names, ["start", "reading", "writing"]);
    assert_eq!(phases[0]["time_us"], 0);
    let private = |phase: &Value| -> u64 {
        let mappings = phase["map"]["mappings"].as_object().unwrap().values();
        mappings.map(|bytes| bytes["private"].as_u64().unwrap()).sum()
    };
    let (first, second) = (private(&phases[1]), private(&phases[2]));
    assert!(first > 0 && second > first + 50_000_000, "{first}, then {second}");
    let samples = memory["samples"].as_array().unwrap().iter();
    let most = samples.filter_map(|sample| sample["private_bytes"].as_u64()).max();
    assert!(most >= Some(second), "{most:?}, but {second} where a phase begins");
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    for part in [">writing</text>", " in writing - ", "where &quot;writing&quot; begins"] {
        assert!(page.contains(part), "the page lacks {part}");
    }
    home.code(&["measure", "memory", "--phases", "x", "--pid", "1"], 2);
    home.code(&["measure", "memory", "--phases", "(", "--", "true"], 2);
    let run = home.code(&["measure", "memory", "--pid", "4194305"], 1);
    assert!(run.stderr().contains("process 4194305: no such process"), "{}", run.stderr());
    // A process that goes on in the background does not hold up the report.
    let command =
        "larder measure memory --phases x -- sh -c 'sleep 100 & echo $! >pid'; kill $(cat pid)";
    assert_eq!(home.shell(command).code, 0);
}

#[test]
fn the_memory_of_a_command_is_sampled() {
    let home = Home::new();
    home.write("work.py", "held = bytearray(60_000_000)\nfor i in range(3_000_000): pass\n");
    let command = ["measure", "memory", "--html", "page.html", "--", "python3", "work.py"];
    let memory = home.json(&command).remove(0);
    let peak = |key: &str| {
        let samples = memory["samples"].as_array().unwrap().iter();
        samples.map(|sample| sample[key].as_u64().unwrap()).max().unwrap()
    };
    assert!(peak("anonymous_bytes") > 60_000_000, "{}", peak("anonymous_bytes"));
    assert!(peak("resident_bytes") >= peak("anonymous_bytes"));
    // A process that begins another program has a row for each.
    let shell = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exec python3 work.py";
    let run = home.json(&["measure", "memory", "--", "sh", "-c", shell]).remove(0);
    let processes = run["processes"].as_array().unwrap();
    let names: Vec<&str> = processes.iter().map(|process| process[1].as_str().unwrap()).collect();
    // Between them may be a script that looks for the interpreter.
    assert_eq!((names.first(), names.last()), (Some(&"sh"), Some(&"python3")), "{names:?}");
    let mappings = memory["map"]["mappings"].as_object().unwrap();
    assert!(mappings.keys().any(|name| name.contains("libc")), "{mappings:?}");
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    assert!(page.contains("Memory: python3 work.py</h1>\n<p class=\"faint\">For developers"));
    // How to get phases is said by the help, not by each report.
    let text = home.shell("larder measure memory -- sh -c 'test -e /larder/mark/x; sleep 0.2'");
    assert!(!text.stdout().contains("--phases"), "{}", text.stdout());
    let text = home.shell("larder measure memory --phases none -- sleep 0.1");
    assert!(text.stdout().contains("No message matched."), "{}", text.stdout());
    // A process that runs, until it ends.
    let run = home.shell(
        "python3 work.py & larder --format json measure memory --pid $! | grep -c samples; wait",
    );
    assert_eq!(run.stdout().trim(), "1", "{}", run.masked_output());
    let run = home.code(&["measure", "memory", "--", "sh", "-c", "exit 7"], 7);
    let beginning = "Memory: sh -c exit 7\nThe command ended with exit code 7.\n";
    assert!(run.stdout().starts_with(beginning), "{}", run.masked_output());
    let run = home.shell("larder --format json measure memory -- sh -c 'kill -SEGV $$'");
    let crash: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!((run.code, &crash["code"], &crash["signal"]), (139, &139.into(), &11.into()));
}

/// The peak of the largest process is exact, also if it lasts for less than an interval.
#[test]
fn a_short_peak_of_memory_is_not_missed() {
    let home = Home::new();
    home.write(
        "work.py",
        "import time\ntime.sleep(0.5)\nheld = bytearray(200_000_000)\nheld = None\n\
         time.sleep(0.2)\nheld = bytearray(300_000_000)\n",
    );
    let memory = home.json(&["measure", "memory", "--", "python3", "work.py"]).remove(0);
    let most = memory["largest_process_bytes"].as_u64();
    assert!(most > Some(300_000_000) && most < Some(400_000_000), "{most:?}");
    let process = memory["processes"].as_array().unwrap().last().unwrap();
    assert!(process[2].as_u64() > Some(200_000_000), "{process}");
    let text = home.shell("larder measure memory -- python3 work.py");
    assert!(text.stdout().contains("\nExactly 3"), "{}", text.stdout());
    assert!(text.stdout().contains(" samples, "), "{}", text.stdout());
}

/// A run that takes no longer than an interval has its duration and several samples.
#[test]
fn a_short_run_has_samples_and_its_duration() {
    let home = Home::new();
    let run = ["measure", "memory", "--", "sh", "-c", "sleep 0.06"];
    let memory = home.json(&run).remove(0);
    let duration = memory["duration_us"].as_u64().unwrap();
    assert!(duration >= 60_000, "{duration}");
    let samples = memory["samples"].as_array().unwrap();
    assert!(samples.len() >= 4, "{}", samples.len());
    let last = samples.last().unwrap()["time_us"].as_u64().unwrap();
    assert!(last <= duration, "{last} of {duration}");
}

/// Proportional and private memory are never above the resident memory of their sample. How many
/// samples have them depends on the machine.
#[test]
fn proportional_memory_is_of_its_sample() {
    let home = Home::new();
    home.write(
        "work.py",
        "import time\nheld = []\n\
         for i in range(40):\n    held.append(bytearray(5_000_000))\n    time.sleep(0.04)\n\
         held = None\ntime.sleep(0.4)\n",
    );
    let memory = home.json(&["measure", "memory", "--", "python3", "work.py"]).remove(0);
    let samples = memory["samples"].as_array().unwrap();
    let mut count = 0;
    for sample in samples {
        let resident = sample["resident_bytes"].as_u64().unwrap();
        for key in ["proportional_bytes", "private_bytes"] {
            let Some(value) = sample[key].as_u64() else { continue };
            assert!(value <= resident, "{sample}");
            count += 1;
        }
    }
    assert!(count >= 2, "{count} of {}", samples.len());
    // The map is of memory near the peak.
    let peak = samples.iter().map(|sample| sample["resident_bytes"].as_u64().unwrap()).max();
    let map = memory["map_resident_bytes"].as_u64().unwrap_or_default();
    assert!(map * 100 >= peak.unwrap() * 70, "{map} of {peak:?}");
}

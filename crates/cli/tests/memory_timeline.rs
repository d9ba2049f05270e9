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
    assert_eq!(names, ["reading", "writing"]);
    let private = |phase: &Value| -> u64 {
        let mappings = phase["map"]["mappings"].as_object().unwrap().values();
        mappings.map(|bytes| bytes["private"].as_u64().unwrap()).sum()
    };
    let (first, second) = (private(&phases[0]), private(&phases[1]));
    assert!(first > 0 && second > first + 50_000_000, "{first}, then {second}");
    let samples = memory["samples"].as_array().unwrap().iter();
    let most = samples.map(|sample| sample["private_bytes"].as_u64().unwrap()).max();
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
    // Marks of the program are not seen, and the report says how to get phases.
    let command = "larder measure memory -- sh -c 'test -e /larder/mark/x; sleep 0.2'";
    let text = home.shell(command);
    assert!(text.stdout().contains("There are no phases: --phases REGEX begins them"));
    // A process that runs, until it ends.
    let run = home.shell(
        "python3 work.py & larder --format json measure memory --pid $! | grep -c samples; wait",
    );
    assert_eq!(run.stdout().trim(), "1", "{}", run.masked_output());
    let run = home.code(&["measure", "memory", "--", "sh", "-c", "exit 7"], 7);
    assert!(run.stdout().starts_with("Memory: sh -c exit 7"), "{}", run.masked_output());
}

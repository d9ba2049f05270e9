//! The call stacks of allocations, of a program whose functions ask for known amounts of memory.

use crate::alloc_log::{analyse, compile, process_count, record_with, recorder};
use crate::alloc_recording::comes_true;
use crate::test_home::{Home, left_out};
use serde_json::Value;

/// The bytes of each call path of an analysis: the names from the outermost function on, and the
/// figures of the innermost one.
fn call_paths(analysis: &Value) -> Vec<(Vec<String>, Value)> {
    let stacks = &analysis["stacks"];
    let nodes = stacks["nodes"].as_array().unwrap();
    let name = |node: &Value| {
        let function = node["function"].as_u64().unwrap() as usize;
        stacks["functions"][function]["name"].as_str().unwrap().to_string()
    };
    let mut paths: Vec<(Vec<String>, Value)> = Vec::new();
    for node in nodes {
        let parent = node["parent"].as_u64().map(|parent| paths[parent as usize].0.clone());
        let mut path = parent.unwrap_or_default();
        path.push(name(node));
        paths.push((path, node.clone()));
    }
    paths
}

#[test]
fn call_stacks_name_the_functions_of_memory() {
    let home = Home::new();
    let Some(program) = compile(&home, "stacks.cpp", "g++", &["-pthread"]) else {
        return left_out("call_stacks_name_the_functions_of_memory", "no g++");
    };
    let analysis = record_with(&home, "--stacks 1000", &program.display().to_string());
    let paths = call_paths(&analysis);
    // The sum of the paths through a function that end with another one.
    let sum = |within: &str, last: &str, figure: &str| -> f64 {
        let is_meant = |path: &[String]| {
            path.last().is_some_and(|name| name == last) && path.iter().any(|name| name == within)
        };
        let found = paths.iter().filter(|(path, _)| is_meant(path));
        found.map(|(_, node)| node[figure].as_u64().unwrap() as f64).sum()
    };
    let is_near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.2;
    assert!(is_near(sum("app::build", "app::keep", "bytes_at_peak"), 2e6), "{paths:?}");
    assert!(is_near(sum("app::build", "app::keep", "end_bytes"), 2e6), "{paths:?}");
    assert!(is_near(sum("main", "app::keep", "requested_bytes"), 2e6), "{paths:?}");
    assert!(is_near(sum("app::churn", "app::use", "short_lived_bytes"), 4e6), "{paths:?}");
    assert_eq!(sum("app::churn", "app::use", "end_bytes"), 0.0);
    // A new size counts where it was asked for.
    assert!(is_near(sum("app::grow", "app::grow", "end_bytes"), 1e6), "{paths:?}");
    assert!(paths.iter().all(|(path, _)| path[0] != "[deeper]"), "{paths:?}");
    // The log has the names: the program may be built anew.
    std::fs::remove_file(&program).unwrap();
    let text = home.shell("larder measure alloc log");
    assert!(text.stdout().contains("app::build > app::keep"), "{}", text.stdout());
}

#[test]
fn forked_processes_have_call_stacks() {
    let home = Home::new();
    let Some(program) = compile(&home, "stacks.cpp", "g++", &["-pthread"]) else {
        return left_out("forked_processes_have_call_stacks", "no g++");
    };
    record_with(&home, "--stacks 1000", &format!("{} fork", program.display()));
    let child = analyse(&home, &["--process", "1"]);
    let names: Vec<String> =
        call_paths(&child).into_iter().filter_map(|(mut path, _)| path.pop()).collect();
    assert!(names.contains(&"app::use".to_string()), "{names:?}");
}

#[test]
fn threads_behind_the_first_one_have_call_stacks() {
    assert_named_memory("last_thread.c", "threads_behind_the_first_one_have_call_stacks");
}

/// A program waits at its end until its files are read.
#[test]
fn short_programs_have_call_stacks() {
    assert_named_memory("short_life.c", "short_programs_have_call_stacks");
}

/// Asserts that the stack of the memory of a program is known.
#[track_caller]
fn assert_named_memory(program: &str, test: &str) {
    let home = Home::new();
    let Some(program) = compile(&home, program, "gcc", &["-pthread"]) else {
        return left_out(test, "no gcc");
    };
    // The collector of a busy machine may be late.
    let is_named = (0..10).any(|_| {
        let paths = call_paths(&record_with(&home, "--stacks 1M", &program.display().to_string()));
        paths.iter().any(|(path, _)| path.last().is_some_and(|name| name == "keep_memory"))
    });
    assert!(is_named, "the function is missing in each recording");
}

#[test]
fn a_program_that_is_built_anew_has_its_own_functions() {
    let home = Home::new();
    // Without a build id, which would tell the files apart.
    let options = ["-pthread", "-Wl,--build-id=none"];
    let Some(program) = compile(&home, "stacks.cpp", "g++", &options) else {
        return left_out("a_program_that_is_built_anew_has_its_own_functions", "no g++");
    };
    let program = program.display().to_string();
    std::fs::rename(&program, format!("{program}.old")).unwrap();
    compile(&home, "stacks.cpp", "g++", &[&options[..], &["-Dkeep=hold", "-Duse=apply"]].concat());
    std::fs::rename(&program, format!("{program}.new")).unwrap();
    let run = format!(
        "sh -c 'cp {program}.old {program}.1; cp {program}.new {program}.2; \
         mv {program}.1 {program}; {program}; mv {program}.2 {program}; {program}'"
    );
    // On a busy machine a program may have ended before its files were read.
    let is_complete = (0..10).any(|_| {
        record_with(&home, "--stacks 1000", &run);
        let names = (0..8).filter_map(|process| function_names(&home, process));
        let programs: Vec<[bool; 2]> = names
            .map(|names| {
                let has = |name: &str| names.iter().any(|known| known == name);
                [has("app::keep") || has("app::use"), has("app::hold") || has("app::apply")]
            })
            .collect();
        assert!(!programs.contains(&[true, true]), "functions of two programs in one");
        programs.contains(&[true, false]) && programs.contains(&[false, true])
    });
    assert!(is_complete, "the functions of a program are missing in each recording");
}

/// Returns the functions in the call stacks of a process of the log, if there is such a process.
fn function_names(home: &Home, process: u32) -> Option<Vec<String>> {
    let process = process.to_string();
    let arguments = ["--format", "json", "measure", "alloc", "log", "--process", &process];
    let run = home.run(&arguments);
    (run.code == 0).then(|| {
        let analysis: Value = serde_json::from_slice(&run.out).unwrap();
        call_paths(&analysis).into_iter().filter_map(|(mut path, _)| path.pop()).collect()
    })
}

/// The stacks of a program that soon begins another one are not named by the functions of that:
/// both have their functions at the same addresses.
#[test]
fn a_process_that_begins_another_program_has_the_functions_of_both() {
    let home = Home::new();
    let mut programs = Vec::new();
    for name in ["one", "two"] {
        let function = format!("-DFUNCTION=allocate_{name}");
        let Some(program) = compile(&home, "exec_chain.c", "gcc", &["-no-pie", &function]) else {
            return left_out("a_process_that_begins_another_program", "no gcc");
        };
        let named = home.work(name);
        std::fs::rename(program, &named).unwrap();
        programs.push(named.display().to_string());
    }
    let images = 40;
    record_with(&home, "--stacks 1000", &vec![programs.join(" "); images / 2].join(" "));
    let mut named = 0;
    for number in 0..images {
        let names = function_names(&home, number as u32).expect("an image is missing");
        let (own, other) = match number % 2 {
            0 => ("allocate_one", "allocate_two"),
            _ => ("allocate_two", "allocate_one"),
        };
        assert!(!names.iter().any(|name| name == other), "program {number}: {names:?}");
        named += usize::from(names.iter().any(|name| name == own));
    }
    // The last one is there until it ends.
    assert!(named > 0, "no program has names");
}

/// The functions of a library that was closed have their names, also when another library has come
/// to its addresses.
#[test]
fn closed_libraries_have_their_functions() {
    let home = Home::new();
    let mut arguments = Vec::new();
    for name in ["one", "two"] {
        let options = ["-shared", "-fPIC", &format!("-DFUNCTION=allocate_{name}")];
        let Some(library) = compile(&home, "plugin.c", "gcc", &options) else {
            return left_out("closed_libraries_have_their_functions", "no gcc");
        };
        let named = home.work(name);
        std::fs::rename(library, &named).unwrap();
        arguments.push(named.display().to_string());
    }
    let host = compile(&home, "plugin_host.c", "gcc", &[]).unwrap();
    let command = format!("{} {} >times", host.display(), arguments.join(" "));
    let analysis = record_with(&home, "--stacks 1000", &command);
    let times = std::fs::read_to_string(home.work("times")).unwrap();
    assert!(times.trim().parse::<u32>().unwrap() > 10, "the libraries are at other addresses");
    let paths = call_paths(&analysis);
    let requested = |name: &str| -> f64 {
        let of_name = paths.iter().filter(|(path, _)| path.last().is_some_and(|it| it == name));
        of_name.map(|(_, node)| node["requested_bytes"].as_u64().unwrap() as f64).sum()
    };
    for name in ["allocate_one", "allocate_two"] {
        // 5 MB each.
        assert!((requested(name) / 5e6 - 1.0).abs() < 0.1, "{name}: {}", requested(name));
    }
}

/// Records `closing_host` with these further arguments; returns how often it slept for 50 closed
/// libraries.
fn sleeps_of_closing_host(home: &Home, arguments: &str) -> Option<u32> {
    recorder();
    let options = ["-shared", "-fPIC", "-DFUNCTION=allocate"];
    let library = compile(home, "plugin.c", "gcc", &options)?;
    let host = compile(home, "closing_host.c", "gcc", &[])?;
    let (host, library, sleeps) = (host.display(), library.display(), home.work("sleeps"));
    let command = "larder measure record --stacks 1000000 --out log --";
    home.shell(&format!("{command} {host} {library} {} {arguments}", sleeps.display()));
    assert!(comes_true(|| sleeps.exists()), "the program does not end");
    Some(std::fs::read_to_string(sleeps).unwrap().trim().parse().unwrap())
}

/// `dlclose` wakes larder rather than to wait until it looks: it slept up to ten times for each.
#[test]
fn a_closed_library_does_not_wait_long() {
    let home = Home::new();
    let Some(sleeps) = sleeps_of_closing_host(&home, "") else {
        return left_out("a_closed_library_does_not_wait_long", "no gcc");
    };
    assert!(sleeps <= 200, "{sleeps} sleeps");
}

/// `dlclose` does not wait for a larder that is gone: it slept 100 times for each.
#[test]
fn a_closed_library_does_not_wait_for_a_larder_that_is_gone() {
    let home = Home::new();
    let Some(sleeps) = sleeps_of_closing_host(&home, "kill") else {
        return left_out("a_closed_library_does_not_wait_for_a_larder_that_is_gone", "no gcc");
    };
    assert!(sleeps <= 20, "{sleeps} sleeps");
}

/// A library may fork when it is unloaded. Its child, too, returns from `dlclose`.
#[test]
fn a_library_may_fork_when_it_is_unloaded() {
    let home = Home::new();
    let Some(library) = compile(&home, "forking_plugin.c", "gcc", &["-shared", "-fPIC"]) else {
        return left_out("a_library_may_fork_when_it_is_unloaded", "no gcc");
    };
    let host = compile(&home, "plugin_host.c", "gcc", &[]).unwrap();
    let library = library.display();
    let command = format!("{} {library} {library} >times", host.display());
    let analysis = record_with(&home, "--stacks 1000", &command);
    assert_eq!(process_count(&analysis), 2);
}

/// A stripped program has no names of its functions: each has that of its file and where it begins.
#[test]
fn functions_of_a_stripped_program_are_told_apart() {
    let home = Home::new();
    let Some(program) = compile(&home, "stacks.cpp", "g++", &["-pthread", "-s"]) else {
        return left_out("functions_of_a_stripped_program_are_told_apart", "no g++");
    };
    let analysis = record_with(&home, "--stacks 1000", &program.display().to_string());
    let paths = call_paths(&analysis);
    let own: Vec<&(Vec<String>, Value)> = paths
        .iter()
        .filter(|(path, _)| path.last().is_some_and(|name| name.starts_with("stacks+0x")))
        .collect();
    let at_peak = |(_, node): &&&(Vec<String>, Value)| node["bytes_at_peak"].as_u64();
    assert!(own.len() >= 4, "{paths:?}");
    // 2 MB of `keep`, a function of its own, below that of `main`.
    let keep = own.iter().max_by_key(at_peak).unwrap();
    assert!(keep.0.len() > 2, "{:?}", keep.0);
}

/// Of a deep recursion, what is near to the allocation is known, and the rest is named as cut.
#[test]
fn a_deep_stack_is_cut_at_its_outer_end() {
    let home = Home::new();
    let Some(program) = compile(&home, "deep.c", "gcc", &[]) else {
        return left_out("a_deep_stack_is_cut_at_its_outer_end", "no gcc");
    };
    let analysis = record_with(&home, "--stacks 1000", &format!("{} 10000", program.display()));
    let paths = call_paths(&analysis);
    let (deepest, node) = paths.iter().max_by_key(|(path, _)| path.len()).unwrap();
    assert_eq!((deepest[0].as_str(), deepest.last().unwrap().as_str()), ("[deeper]", "descend"));
    assert!((100..=513).contains(&deepest.len()), "{}", deepest.len());
    assert!(deepest[1..].iter().all(|name| name == "descend"), "{deepest:?}");
    assert!(node["requested_bytes"].as_u64().unwrap() > 1_900_000, "{node}");
    let text = home.ok(&["measure", "alloc", "log", "--html", "page.html"]);
    assert!(text.contains("descend"), "{text}");
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    assert!(page.contains("are not shown"), "the page does not say that rows are cut");
}

/// Threads that ask for memory at the same moment are sampled as often as they would be alone.
#[test]
fn samples_of_many_threads_add_up() {
    let home = Home::new();
    let Some(program) = compile(&home, "threads_request.c", "gcc", &["-pthread"]) else {
        return left_out("samples_of_many_threads_add_up", "no gcc");
    };
    let analysis = record_with(&home, "--stacks 16k", &program.display().to_string());
    let nodes = analysis["stacks"]["nodes"].as_array().unwrap().iter();
    let sampled: u64 = nodes.map(|node| node["requested_bytes"].as_u64().unwrap()).sum();
    let exact = analysis["upper_bytes"].as_u64().unwrap();
    let ratio = sampled as f64 / exact as f64;
    // Of so many samples, the standard deviation is about 0.3 %.
    assert!((0.98..1.02).contains(&ratio), "{sampled} for {exact}");
}

//! The functions that the hooks reach: a hook runs inside another program, in the middle of an
//! allocation, where it must neither allocate nor panic.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the library that was built for this test.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("liblarder_alloclog.so")
}

/// Returns the functions of the recorder that its hooks reach, by the calls and jumps in its code.
fn functions_of_hooks(library: &Path) -> Option<BTreeSet<String>> {
    let run = |arguments: &[&str]| {
        let output = Command::new(arguments[0]).args(&arguments[1..]).arg(library).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let code = run(&["objdump", "--disassemble", "--no-show-raw-insn"])?;
    let exported = run(&["nm", "--dynamic", "--defined-only"])?;
    let mut targets: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut function = "";
    for line in code.lines() {
        let Some((before, after)) = line.split_once('<') else { continue };
        let name = after.split(['>', '+', '@']).next().unwrap();
        match line.ends_with(">:") {
            true => function = name,
            false if before.contains("call") || before.contains("\tj") => {
                targets.entry(function).or_default().push(name);
            }
            false => {}
        }
    }
    let mut open: Vec<&str> =
        exported.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let mut reached = BTreeSet::new();
    while let Some(name) = open.pop() {
        if reached.insert(name.to_string()) {
            open.extend(targets.get(name).into_iter().flatten());
        }
    }
    Some(reached)
}

#[test]
fn no_hook_allocates_or_panics() {
    let Some(reached) = functions_of_hooks(&library()) else {
        panic!("objdump and nm of binutils, with which Rust links, are missing");
    };
    assert!(reached.iter().any(|name| name.contains("wait_for_space")), "{reached:?}");
    for name in reached {
        for word in ["panic", "rust_alloc", "rdl_alloc", "unwrap_failed", "slice_index"] {
            assert!(!name.contains(word), "a hook reaches {name}");
        }
    }
}

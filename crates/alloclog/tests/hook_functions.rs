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
/// Functions whose address is taken may be called from anywhere: as handlers of forks, at the start
/// and at the end.
fn functions_of_hooks(library: &Path) -> Option<BTreeSet<String>> {
    let run = |arguments: &[&str]| {
        let output = Command::new(arguments[0]).args(&arguments[1..]).arg(library).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let code = run(&["objdump", "--disassemble", "--no-show-raw-insn"])?;
    let exported = run(&["nm", "--dynamic", "--defined-only"])?;
    // Addresses in data, such as those of the functions that the loader calls.
    let pointers = run(&["readelf", "--wide", "--relocs"])?;
    let is_pointer = |line: &&str| line.contains("R_X86_64_RELATIVE");
    let pointers =
        pointers.lines().filter(is_pointer).filter_map(|line| line.split(' ').next_back());
    let pointers: BTreeSet<u64> =
        pointers.filter_map(|address| u64::from_str_radix(address, 16).ok()).collect();
    let mut targets: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut taken: Vec<&str> = Vec::new();
    let mut function = "";
    for line in code.lines() {
        let Some((before, after)) = line.split_once('<') else { continue };
        let name = after.split(['>', '+', '@']).next().unwrap();
        match line.ends_with(">:") {
            true => {
                function = name;
                let address = u64::from_str_radix(before.trim(), 16).unwrap_or(0);
                taken.extend(pointers.contains(&address).then_some(name));
            }
            false if before.contains("call") || before.contains("\tj") => {
                targets.entry(function).or_default().push(name);
            }
            // An address within the code of a function is not one of it.
            false if before.contains("lea ") && !after.contains('+') => taken.push(name),
            false => {}
        }
    }
    let mut open: Vec<&str> =
        exported.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    // Those of the standard library are for a panic, which is not reached otherwise.
    open.extend(taken.into_iter().filter(|name| name.contains("larder_alloclog")));
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
    for expected in
        ["wait_for_space", "before_fork", "after_fork_in_child", "at_load", "at_quick_exit"]
    {
        assert!(reached.iter().any(|name| name.contains(expected)), "{expected}: {reached:?}");
    }
    for name in reached {
        for word in ["panic", "rust_alloc", "rdl_alloc", "unwrap_failed", "slice_index"] {
            assert!(!name.contains(word), "a hook reaches {name}");
        }
    }
}

//! The recording of programs that go their own ways: they run as they do unrecorded.

use crate::alloc_log::{analyse, compile, record, recorder};
use crate::test_home::{Home, left_out};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;

/// A library with operators of its own, which other libraries see first, or not, and a program with
/// some. Operators that it has not replaced call its own.
#[test]
fn a_program_keeps_its_operators() {
    let home = Home::new();
    let test = "a_program_keeps_its_operators";
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/pool.cpp");
    let library = home.work("libpool.so");
    let library = library.to_str().unwrap();
    let shared = ["-shared", "-fPIC"];
    for options in [&[][..], &["-Wl,-Bsymbolic-functions"], &["-Wl,-Bsymbolic"], &["static"]] {
        let linked = if options == ["static"] {
            source
        } else {
            let options = [&shared, options].concat();
            let Some(pool) = compile(&home, "pool.cpp", "g++", &options) else {
                return left_out(test, "no g++");
            };
            std::fs::rename(pool, library).unwrap();
            library
        };
        let Some(program) = compile(&home, "pool_user.cpp", "g++", &[linked]) else {
            return left_out(test, "no g++");
        };
        let analysis = record(&home, &program.display().to_string());
        assert_eq!(analysis["calls_by_function"]["calloc"], 1, "{options:?}");
        assert!(analysis["calls_by_function"]["operator new"].is_null(), "{options:?}");
        assert_eq!(analysis["end"]["anomalies"], 0, "{options:?}");
    }
}

/// An operator that fails asks the new-handler, also one that throws nothing.
#[test]
fn operators_call_the_new_handler() {
    let home = Home::new();
    let Some(program) = compile(&home, "new_handler.cpp", "g++", &["-std=c++17"]) else {
        return left_out("operators_call_the_new_handler", "no g++");
    };
    record(&home, &program.display().to_string());
}

/// Operators are looked for in the libraries while other threads close some.
#[test]
fn operators_are_found_beside_libraries_that_are_closed() {
    let home = Home::new();
    let test = "operators_are_found_beside_libraries_that_are_closed";
    let shared = ["-shared", "-fPIC"];
    let plugin = |name: &str| {
        let options = [&shared[..], &["-DNAME=count_exceptions"]].concat();
        let library = compile(&home, "cplusplus_plugin.cpp", "g++", &options)?;
        std::fs::rename(library, home.work(name)).unwrap();
        Some(home.work(name).display().to_string())
    };
    let (Some(first), Some(second)) = (plugin("first.so"), plugin("second.so")) else {
        return left_out(test, "no g++");
    };
    let options = [&shared[..], &["-DFUNCTION=allocate"]].concat();
    let closed = compile(&home, "plugin.c", "gcc", &options).unwrap();
    let host = compile(&home, "closing_thread.c", "gcc", &["-pthread", "-ldl"]).unwrap();
    let mut command = format!("{} {first} {second}", host.display());
    for number in 0..3 {
        let copy = home.work(&format!("closed{number}.so"));
        std::fs::copy(&closed, &copy).unwrap();
        command += &format!(" {}", copy.display());
    }
    let analysis = record(&home, &command);
    assert_eq!(analysis["failures_by_function"]["operator new[]"], 20_000);
}

/// Runs a command in a namespace of process ids of its own.
const UNSHARE: &str = "unshare --user --map-root-user --pid --fork";

/// Processes with the same ids in different namespaces are told apart.
#[test]
fn children_in_namespaces_inherit_from_their_parents() {
    let home = Home::new();
    let test = "children_in_namespaces_inherit_from_their_parents";
    let Some(program) = compile(&home, "namespace_fork.c", "gcc", &[]) else {
        return left_out(test, "no gcc");
    };
    if home.shell(&format!("{UNSHARE} true")).code != 0 {
        return left_out(test, "no namespaces");
    }
    let program = program.display();
    let analysis = record(
        &home,
        &format!(
            "sh -c '{UNSHARE} {program} 1000000 one two & {UNSHARE} {program} 5000 two one; wait'"
        ),
    );
    let number = |value: &Value| value["number"].as_u64().unwrap();
    let processes = analysis["processes"].as_array().unwrap();
    let is_program = |process: &&Value| {
        process["executable"] == program.to_string().as_str() && process["is_forked"] == true
    };
    let children: Vec<&Value> = processes.iter().filter(is_program).collect();
    assert_eq!(children.len(), 2, "{processes:?}");
    for child in children {
        let parent = processes.iter().find(|it| child["parent"] == number(it)).unwrap();
        assert_eq!(child["command"], parent["command"], "{processes:?}");
        let start = &analyse(&home, &["--process", &number(child).to_string()])["start"];
        let bytes: u64 = start["arguments"][1].as_str().unwrap().parse().unwrap();
        let inherited = start["inherited_bytes"].as_u64().unwrap();
        assert!((bytes..bytes + 2000).contains(&inherited), "{start}");
        // Its parent is in the same namespace, and was begun by unshare from outside.
        let begun_by = processes.iter().find(|it| parent["parent"] == number(it)).unwrap();
        assert_eq!(begun_by["is_forked"], true, "{processes:?}");
    }
}

/// A collector outside of the namespace of a program is not taken for gone.
#[test]
fn a_program_in_a_namespace_waits_for_a_stopped_larder() {
    let home = Home::new();
    let test = "a_program_in_a_namespace_waits_for_a_stopped_larder";
    let Some(program) = compile(&home, "ticking.c", "gcc", &[]) else {
        return left_out(test, "no gcc");
    };
    if home.shell(&format!("{UNSHARE} true")).code != 0 {
        return left_out(test, "no namespaces");
    }
    recorder();
    let run = home.shell(&format!(
        "larder measure record --out log -- \
         sh -c '(sleep 1; kill -CONT $PPID) & kill -STOP $PPID; exec {UNSHARE} {} 1000000'",
        program.display()
    ));
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert!(!run.stderr().contains("recorded in part"), "{}", run.stderr());
}

/// Where too many programs wait for larder, one of another namespace waits, too.
#[test]
fn a_program_in_a_namespace_waits_until_its_connection_is_accepted() {
    let home = Home::new();
    let test = "a_program_in_a_namespace_waits_until_its_connection_is_accepted";
    if home.shell(&format!("{UNSHARE} true")).code != 0 {
        return left_out(test, "no namespaces");
    }
    home.write(
        "collector.py",
        "import os, socket, subprocess, sys, time\n\
         server = socket.socket(socket.AF_UNIX)\n\
         server.bind('socket')\n\
         server.listen(0)\n\
         first = socket.socket(socket.AF_UNIX)\n\
         first.connect('socket')\n\
         setting = f'LARDER_ALLOCLOG=12:0:{os.getpid()}:' + os.path.abspath('socket')\n\
         recorded = ['env', 'LD_PRELOAD=' + sys.argv[1], setting, 'true']\n\
         program = subprocess.Popen(sys.argv[2].split() + recorded)\n\
         time.sleep(0.5)\n\
         server.settimeout(8)\n\
         server.accept()\n\
         message = server.accept()[0].recv(4096)\n\
         assert b'\\0true\\0' in message, message\n\
         sys.exit(program.wait())\n",
    );
    let mut python = home.program("python3");
    let Ok(output) = python.arg("collector.py").arg(recorder()).arg(UNSHARE).output() else {
        return left_out(test, "no python3");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A limit of the length of files, within which there is no room for a ring, kills no program.
#[test]
fn a_limit_of_file_lengths_kills_no_program() {
    let home = Home::new();
    recorder();
    let command = "larder measure record --out log -- sh -c";
    let run = home.shell(&format!("{command} 'ulimit -Sf 16; ls / >out && ulimit -Sf'"));
    assert_eq!((run.code, run.stdout().trim()), (0, "16"), "{}", run.masked_output());
    assert!(!run.stderr().contains("not recorded"), "{}", run.stderr());
    let analysis = analyse(&home, &[]);
    let processes = analysis["processes"].as_array().unwrap();
    assert!(processes.iter().any(|process| process["command"] == "ls /"), "{processes:?}");
    let run = home.shell(&format!("{command} 'ulimit -f 16; ls / >out'"));
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let messages = run.stderr();
    let named: Vec<&str> = messages.lines().filter(|line| line.contains("not rec")).collect();
    assert_eq!(named.len(), 1, "{messages}");
    assert!(named[0].contains("/ls (process ") && named[0].contains("ulimit -f"), "{messages}");
}

/// Records a program that has forbidden itself system calls (seccomp): larder is stopped until the
/// program waits for it, then the shell does `then` to it, its parent. Returns the exit code of the
/// program, as text; `None` if it cannot be done here.
fn run_sandboxed_program(home: &Home, test: &str, then: &str) -> Option<String> {
    let Some(program) = compile(home, "sandboxed.c", "gcc", &[]) else {
        left_out(test, "no gcc");
        return None;
    };
    recorder();
    let until = |condition: &str| format!("until {condition}; do sleep 0.01; done");
    let (starts, waits) = (until("[ -s id ]"), until("grep -q State:.S /proc/$(cat id)/status"));
    let run = home.shell(&format!(
        "larder measure record --out log -- \
         sh -c '({starts}; {waits}; {then}) & kill -STOP $PPID; {} id; echo $? >code'; {}; cat code",
        program.display(),
        until("[ -s code ]")
    ));
    let code = run.stdout().trim().to_string();
    if code == "77" {
        left_out(test, "no seccomp");
        return None;
    }
    Some(code)
}

/// A program that has forbidden itself system calls may call exit, and waits for larder, however
/// long that takes.
#[test]
fn a_sandboxed_program_is_not_killed() {
    let home = Home::new();
    let test = "a_sandboxed_program_is_not_killed";
    let Some(code) = run_sandboxed_program(&home, test, "sleep 2.5; kill -CONT $PPID") else {
        return;
    };
    assert_eq!(code, "0");
    let analysis = analyse(&home, &[]);
    let processes = analysis["processes"].as_array().unwrap();
    let sandboxed = processes.iter().find(|it| it["calls"].as_u64() >= Some(600_000));
    assert_eq!(sandboxed.unwrap()["ending"], "exit", "{processes:?}");
}

/// It does not wait for a larder that is gone.
#[test]
fn a_sandboxed_program_outlives_larder() {
    let home = Home::new();
    let test = "a_sandboxed_program_outlives_larder";
    let code = run_sandboxed_program(&home, test, "kill -KILL $PPID");
    assert_eq!(code.unwrap_or_else(|| "0".into()), "0");
}

/// An end by `quick_exit` is none by a signal, and `_exit` of another library is called.
#[test]
fn ends_without_handlers_are_as_unrecorded() {
    let home = Home::new();
    let test = "ends_without_handlers_are_as_unrecorded";
    let Some(program) = compile(&home, "quick_exit.c", "gcc", &[]) else {
        return left_out(test, "no gcc");
    };
    let library = compile(&home, "own_exit.c", "gcc", &["-shared", "-fPIC", "-ldl"]).unwrap();
    for (argument, output) in [("", ""), ("_exit", "own\n")] {
        recorder();
        let run = home.shell(&format!(
            "LD_PRELOAD={} larder measure record --out log -- {} {argument}",
            library.display(),
            program.display()
        ));
        assert_eq!((run.code, run.stdout().as_str()), (0, output), "{}", run.masked_output());
        assert_eq!(analyse(&home, &[])["processes"][0]["ending"], "exit", "{argument}");
    }
}

/// A child after `vfork` is in the memory of its parent. Its end says nothing of the parent.
#[test]
fn a_child_after_vfork_does_not_end_its_parent() {
    let home = Home::new();
    let test = "a_child_after_vfork_does_not_end_its_parent";
    let Some(program) = compile(&home, "vfork_exit.c", "gcc", &[]) else {
        return left_out(test, "no gcc");
    };
    recorder();
    let ending = |command: &str| {
        home.shell(&format!("larder measure record --out log -- {command}"));
        let analysis = analyse(&home, &[]);
        let processes = analysis["processes"].as_array().unwrap();
        let process = processes.iter().find(|it| it["calls"].as_u64() >= Some(200_000));
        process.unwrap()["ending"].as_str().unwrap().to_string()
    };
    let program = program.display();
    assert_eq!(ending(&program.to_string()), "signal");
    assert_eq!(ending(&format!("sh -c '{program}; true'")), "killed");
    // The end of the command is known, but was not seen in the process.
    assert_eq!(ending(&format!("{program} exit")), "unseen");
}

/// The child of a program that has given up its rights is recorded.
#[test]
fn a_child_of_another_user_is_recorded() {
    let home = Home::new();
    recorder();
    home.write(
        "user.py",
        "import os, sys\n\
         if os.getuid() != 0: sys.exit(77)\n\
         os.setgid(65534); os.setuid(65534)\n\
         child = os.fork()\n\
         if child == 0: os._exit(0)\n\
         os.waitpid(child, 0)\n",
    );
    let run = home.shell(
        "TMPDIR=/tmp PYTHONMALLOC=malloc larder measure record --out log -- python3 user.py",
    );
    if run.code == 77 {
        return left_out("a_child_of_another_user_is_recorded", "only root can give up rights");
    }
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert!(!run.stderr().contains("not recorded"), "{}", run.stderr());
    let analysis = analyse(&home, &[]);
    let processes = analysis["processes"].as_array().unwrap();
    assert!(processes.iter().any(|process| process["is_forked"] == true), "{processes:?}");
}

/// The system loads no library into a program that gets other rights: larder says so.
#[test]
fn a_program_with_rights_of_its_own_is_named() {
    let home = Home::new();
    let test = "a_program_with_rights_of_its_own_is_named";
    recorder();
    let program = home.work("sleeper");
    std::fs::copy("/bin/sleep", &program).unwrap();
    if std::os::unix::fs::chown(&program, Some(65534), None).is_err() {
        return left_out(test, "only root can give a program to another user");
    }
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let reason = "is setuid, setgid or has capabilities";
    let run = home.shell("larder measure record --out log -- ./sleeper 0");
    let stderr = run.stderr();
    assert!(stderr.contains("log: no process was recorded"), "{stderr}");
    assert!(stderr.contains(&format!("hint: ./sleeper {reason}, and the system")), "{stderr}");
    let run = home.shell("larder measure record --out log -- sh -c './sleeper 0.4; true'");
    let named = format!(") was not recorded: it {reason}, and the system loads");
    assert!(run.stderr().contains(&named), "{}", run.stderr());
}

//! The recording of forks whose children come late or never, and of programs that misbehave.

use crate::alloc_log::{analyse, compile, process_count, record, record_with, recorder};
use crate::test_home::{Home, left_out};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn daemons_inherit_from_a_parent_that_has_ended() {
    let home = Home::new();
    let Some(program) = compile(&home, "daemon.c", "gcc", &[]) else {
        return left_out("daemons_inherit_from_a_parent_that_has_ended", "no gcc");
    };
    let daemons = 20;
    let analysis = record(&home, &format!("{} {daemons}", program.display()));
    assert_eq!(process_count(&analysis), 1 + 2 * daemons);
    // Neither _exit nor the end within daemon is taken for a signal.
    let processes = analysis["processes"].as_array().unwrap();
    assert!(processes.iter().all(|process| process["ending"] == "exit"), "{processes:?}");
    for number in 0..=2 * daemons {
        let process = analyse(&home, &["--process", &number.to_string()]);
        assert_eq!(process["end"]["anomalies"], 0, "process {number}: {}", process["start"]);
    }
}

/// A command that cannot be started costs no earlier log; another one replaces it.
#[test]
fn a_command_that_does_not_start_leaves_an_earlier_log() {
    let home = Home::new();
    recorder();
    let earlier = "an earlier log ".repeat(10_000);
    home.write("log", &earlier);
    home.write("no-program", "#!/no/such/interpreter\n");
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(home.work("no-program"), mode).unwrap();
    for command in ["no-such-program", "./no-such-program", "./no-program", "./log", "/tmp"] {
        let run = home.shell(&format!("larder measure record --out log -- {command}"));
        assert_ne!(run.code, 0);
        let name = command.trim_start_matches("./");
        assert!(run.stderr().contains(&format!("{name}: ")), "{}", run.stderr());
        assert_eq!(std::fs::read_to_string(home.work("log")).unwrap(), earlier);
    }
    record(&home, "true");
    assert!(std::fs::metadata(home.work("log")).unwrap().len() < 10_000);
}

/// The end of a recording waits for a child whose parent has ended.
#[test]
fn a_recording_does_not_end_before_a_daemon_appears() {
    let home = Home::new();
    let Some(program) = compile(&home, "daemon.c", "gcc", &[]) else {
        return left_out("a_recording_does_not_end_before_a_daemon_appears", "no gcc");
    };
    for _ in 0..10 {
        let analysis = record(&home, &format!("{} 1", program.display()));
        assert_eq!(process_count(&analysis), 3);
    }
}

/// Nor before a program appears that was begun without a fork, and has loaded its libraries only
/// when its parent has ended.
#[test]
fn a_recording_does_not_end_before_a_spawned_program_appears() {
    let home = Home::new();
    let Some(library) = compile(&home, "slow_start.c", "gcc", &["-shared", "-fPIC"]) else {
        return left_out("a_recording_does_not_end_before_a_spawned_program_appears", "no gcc");
    };
    let spawn = compile(&home, "lone_spawn.c", "gcc", &[]).unwrap();
    let options = ["-Wl,--no-as-needed", library.to_str().unwrap()];
    let program = compile(&home, "static_reader.c", "gcc", &options).unwrap();
    let analysis = record(&home, &format!("{} {}", spawn.display(), program.display()));
    assert_eq!(process_count(&analysis), 2);
}

#[test]
fn a_fork_whose_child_sends_no_ring_does_not_stop_the_program() {
    let home = Home::new();
    let Some(program) = compile(&home, "unconnected.c", "gcc", &[]) else {
        return left_out("a_fork_whose_child_sends_no_ring_does_not_stop_the_program", "no gcc");
    };
    recorder();
    // Before, each fork took a second: in the program, or after its end if it makes few calls.
    for arguments in ["40", "40 10"] {
        let command = format!("larder measure record --out log -- {}", program.display());
        let run = home.shell(&format!("timeout 20 {command} {arguments}"));
        assert_eq!(run.code, 0, "{}", run.masked_output());
        assert!(run.stderr().contains(" children of "), "{}", run.stderr());
        let analysis = analyse(&home, &[]);
        assert_eq!(process_count(&analysis), 1);
        assert_eq!(analysis["end"]["anomalies"], 0);
    }
}

/// Records a program that does `steps` with a ring of its own making, see [`ring_sender`]; it has
/// to succeed. It runs without the recorder, which would send a ring, too. Returns the messages.
#[track_caller]
pub fn run_ring_sender(home: &Home, steps: &str) -> String {
    home.write("sender.py", ring_sender(steps));
    let run = home.shell("larder measure record --out log -- env -u LD_PRELOAD python3 sender.py");
    assert_eq!(run.code, 0, "{}", run.masked_output());
    run.stderr()
}

/// A program that does `steps`, with a ring of its own making: its memory is `ring`, its file is
/// `file`, and `send()` sends it and returns the connection.
fn ring_sender(steps: &str) -> String {
    format!(
        "import array, fcntl, mmap, os, socket, struct, sys, time\n\
         path = os.environ['LARDER_ALLOCLOG'].split(':', 3)[3]\n\
         file = os.memfd_create('ring', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)\n\
         os.ftruncate(file, 4096 + 8 * 1024)\n\
         ring = mmap.mmap(file, 4096 + 8 * 1024)\n\
         ring[0:8], ring[8:12] = b'LARDRING', struct.pack('<I', 4)\n\
         ring[12:16], ring[16:24] = struct.pack('<I', os.getpid()), struct.pack('<Q', 1024)\n\
         ring[40:44] = struct.pack('<I', 1)\n\
         def send():\n\
         \x20   rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [file]))]\n\
         \x20   peer = socket.socket(socket.AF_UNIX)\n\
         \x20   peer.connect(path)\n\
         \x20   peer.sendmsg([b'/x\\0y\\0'], rights)\n\
         \x20   return peer\n\
         {steps}"
    )
}

/// A ring that may be cut off is not read: to read what is gone ends a process.
#[test]
fn a_ring_that_is_not_sealed_is_not_read() {
    let home = Home::new();
    recorder();
    // Cut off when larder has mapped it, or, as it should be, has closed the connection.
    let steps = "peer = send()\n\
         peer.settimeout(10)\n\
         peer.recv(1)\n\
         os.ftruncate(file, 0)\n\
         time.sleep(0.1)\n";
    run_ring_sender(&home, steps);
}

/// A ring with a word that is no event is not read any more. Its program does not wait for that.
#[test]
fn a_damaged_ring_stops_no_program() {
    let home = Home::new();
    recorder();
    // The operation 31 does not exist. The read position has to be far ahead within 10 seconds.
    let steps = "fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)\n\
         ring[4096:4104] = struct.pack('<Q', 1 << 63 | 31 << 57)\n\
         send()\n\
         for _ in range(1000):\n\
         \x20   if struct.unpack('<Q', ring[256:264])[0] > 1 << 32: sys.exit(0)\n\
         \x20   time.sleep(0.01)\n\
         sys.exit('the ring has no space')\n";
    let messages = run_ring_sender(&home, steps);
    assert!(messages.contains(" was recorded in part: after 0 calls "), "{messages}");
}

/// A process in the background that is not recorded may keep the messages open.
#[test]
fn open_messages_do_not_hold_up_a_recording() {
    let home = Home::new();
    recorder();
    let command = "timeout 20 larder measure record --phases x --out log -- \
                   env -u LD_PRELOAD sh -c 'sleep 100 & echo $! >pid'; code=$?; \
                   kill $(cat pid); exit $code";
    let run = home.shell(command);
    assert_eq!(run.code, 0, "{}", run.masked_output());
}

/// All threads that wait for space go on when there is some.
#[test]
fn all_waiting_threads_are_woken() {
    let home = Home::new();
    recorder();
    // Four threads wait at the futex (264), a flag (268) says so, then a malloc is in the ring.
    let steps = "fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)\n\
         import ctypes, threading\n\
         system = ctypes.CDLL(None, use_errno=True)\n\
         futex = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(ring, 264)))\n\
         failures = []\n\
         def wait():\n\
         \x20   limit = (ctypes.c_long * 2)(10, 0)\n\
         \x20   if system.syscall(202, futex, 0, 0, limit, None, 0) != 0:\n\
         \x20       failures.append(os.strerror(ctypes.get_errno()))\n\
         threads = [threading.Thread(target=wait) for _ in range(4)]\n\
         for thread in threads: thread.start()\n\
         def is_asleep(thread):\n\
         \x20   state = open(f'/proc/self/task/{thread.native_id}/syscall').read()\n\
         \x20   return state.startswith(f'202 {futex.value:#x} ')\n\
         while not all(map(is_asleep, threads)): time.sleep(0.01)\n\
         ring[268:272] = struct.pack('<I', 1)\n\
         ring[4096:4104] = struct.pack('<Q', 1 << 63 | 8 << 44 | 512)\n\
         send()\n\
         for thread in threads: thread.join()\n\
         if failures: sys.exit(str(failures))\n";
    run_ring_sender(&home, steps);
}

/// Connections that send nothing hold up no other ring.
#[test]
fn silent_connections_hold_up_no_ring() {
    let home = Home::new();
    recorder();
    // The collector waited 0.2 seconds for each, one after the other: 40 seconds.
    let steps = "fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)\n\
         silent = [socket.socket(socket.AF_UNIX) for _ in range(200)]\n\
         for peer in silent: peer.connect(path)\n\
         peer = send()\n\
         peer.settimeout(20)\n\
         peer.recv(1)\n";
    run_ring_sender(&home, steps);
}

/// Waits until something has happened; returns whether it did within 20 seconds.
pub fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A process in the background is recorded until it ends, or until an interrupt.
#[test]
fn an_interrupt_after_the_command_closes_the_log() {
    let home = Home::new();
    recorder();
    let script = "sleep 100 & echo $$ $! >pids.new; mv pids.new pids";
    let command = ["measure", "record", "--out", "log", "--", "sh", "-c", script];
    let mut larder = home.command(&command).spawn().unwrap();
    assert!(comes_true(|| home.work("pids").exists()));
    let pids = std::fs::read_to_string(home.work("pids")).unwrap();
    let pids: Vec<i32> = pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    // Until larder has seen that the command has ended.
    let command = format!("/proc/{}", pids[0]);
    assert!(comes_true(|| !Path::new(&command).exists()));
    // The other process may begin its program later; it sleeps when it has.
    let stat = format!("/proc/{}/stat", pids[1]);
    let sleeps = || std::fs::read_to_string(&stat).unwrap().contains("(sleep) S ");
    assert!(comes_true(sleeps));
    kill_process(Pid::from_child(&larder), Signal::INT).unwrap();
    let has_ended = comes_true(|| larder.try_wait().unwrap().is_some());
    kill_process(Pid::from_raw(pids[1]).unwrap(), Signal::KILL).unwrap();
    assert!(has_ended, "the recording goes on after an interrupt");
    assert_eq!(larder.wait().unwrap().code(), Some(0));
    let count = process_count(&analyse(&home, &[]));
    let mut ends = (0..count).filter_map(|number| {
        let process = analyse(&home, &["--process", &number.to_string()]);
        (process["start"]["arguments"][0] == "sleep").then(|| process["end"].clone())
    });
    assert_eq!(ends.next().expect("no process sleep")["is_abandoned"], true);
}

/// A reader of the messages that takes none holds up neither the end of the log nor an interrupt.
#[test]
fn an_interrupt_ends_the_wait_for_a_stalled_reader_of_messages() {
    let home = Home::new();
    recorder();
    // More than one pipe holds, and less than two.
    let script = "echo $$ >pid.new; mv pid.new pid; seq 1 20000 >&2";
    let phases = ["--quiet", "measure", "record", "--phases", "x", "--out", "log"];
    let command = [&phases[..], &["--", "sh", "-c", script]].concat();
    let mut larder = home.command(&command).stderr(Stdio::piped()).spawn().unwrap();
    assert!(comes_true(|| home.work("pid").exists()));
    let command = std::fs::read_to_string(home.work("pid")).unwrap();
    let command = format!("/proc/{}", command.trim());
    assert!(comes_true(|| !Path::new(&command).exists()));
    kill_process(Pid::from_child(&larder), Signal::INT).unwrap();
    let has_ended = comes_true(|| larder.try_wait().unwrap().is_some());
    drop(larder.stderr.take());
    assert!(has_ended, "the recording waits for a reader after an interrupt");
    assert_eq!(larder.wait().unwrap().code(), Some(0));
    assert_ne!(process_count(&analyse(&home, &[])), 0);
}

/// The memory of the collector follows what forked processes differ in, not what they inherit.
#[test]
fn forked_processes_take_little_memory() {
    let home = Home::new();
    let Some(program) = compile(&home, "forks.c", "gcc", &[]) else {
        return left_out("forked_processes_take_little_memory", "no gcc");
    };
    recorder();
    let (objects, children) = (300_000, 30);
    let command = format!(
        "larder --format json measure run -- \
         larder --quiet measure record --out log -- {} {objects} {children}",
        program.display()
    );
    let run = home.shell(&command);
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let cost: serde_json::Value = serde_json::from_str(run.stdout().trim()).unwrap();
    let anonymous = cost["anonymous_bytes"]["median"].as_u64().expect("no anonymous memory");
    assert!(anonymous <= 32_000_000 + 40 * objects, "{anonymous} bytes of the collector");
    for number in 0..=children {
        let process = analyse(&home, &["--process", &number.to_string()]);
        assert_eq!(process["end"]["anomalies"], 0, "process {number}");
        assert_eq!(
            process["start"]["inherited_objects"],
            if number == 0 { 0 } else { objects + 1 }
        );
    }
}

/// A handler of a fork that calls the allocator opens the ring of the child, before the recorder's
/// own handler runs: it is one process, which inherits.
#[test]
fn a_fork_handler_that_allocates_makes_one_process() {
    let home = Home::new();
    let Some(library) = compile(&home, "fork_handler.c", "gcc", &["-shared", "-fPIC"]) else {
        return left_out("a_fork_handler_that_allocates_makes_one_process", "no gcc");
    };
    let options = ["-Wl,--no-as-needed", library.to_str().unwrap()];
    let program = compile(&home, "forks.c", "gcc", &options).unwrap();
    recorder();
    let (objects, children) = (1000, 2);
    let run = home.shell(&format!(
        "larder measure record --out log -- {} {objects} {children}",
        program.display()
    ));
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert!(!run.stderr().contains("not recorded"), "{}", run.stderr());
    assert_eq!(process_count(&analyse(&home, &[])), 1 + children);
    for number in 1..=children {
        let process = analyse(&home, &["--process", &number.to_string()]);
        assert_eq!(process["end"]["anomalies"], 0, "process {number}: {}", process["start"]);
        let inherited = process["start"]["inherited_objects"].as_u64().unwrap();
        assert!(inherited > objects, "process {number}: {}", process["start"]);
    }
}

/// Each child inherits what was live at its own fork, also when another thread forks meanwhile.
#[test]
fn threads_that_fork_at_the_same_moment() {
    let home = Home::new();
    let Some(program) = compile(&home, "forking_threads.c", "gcc", &["-pthread"]) else {
        return left_out("threads_that_fork_at_the_same_moment", "no gcc");
    };
    let rounds = 30;
    let analysis = record(&home, &format!("{} {rounds}", program.display()));
    assert_eq!(process_count(&analysis), 1 + 2 * rounds);
    for number in 0..=2 * rounds {
        let process = analyse(&home, &["--process", &number.to_string()]);
        assert_eq!(process["end"]["anomalies"], 0, "process {number}: {}", process["start"]);
        let inherited = process["start"]["inherited_objects"].as_u64().unwrap();
        assert!(number == 0 || inherited >= 2_000, "{inherited} of process {number}");
    }
}

/// Records `lone_child` with these arguments, in the folder with a static program and a folder
/// `jail` that has it, too; returns the messages about processes that were not recorded.
/// `None`: that is not possible here.
fn unrecorded_children(home: &Home, arguments: &str) -> Option<Vec<String>> {
    recorder();
    let program = compile(home, "lone_child.c", "gcc", &[])?;
    let reader = compile(home, "static_reader.c", "gcc", &["-static"])?;
    std::fs::create_dir_all(home.work("jail")).unwrap();
    std::fs::copy(&reader, home.work("jail/static_reader")).unwrap();
    let command = "larder measure record --out log --";
    let run = home.shell(&format!("{command} {} {arguments}", program.display()));
    if run.code == 77 {
        left_out("unrecorded_children", "chroot is not permitted");
        return None;
    }
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let messages = run.stderr();
    let named = messages.lines().filter(|line| line.contains("not recorded"));
    Some(named.map(String::from).collect())
}

/// A child that cannot reach larder from its root directory is named once, not by its parent, too.
#[test]
fn a_process_in_another_root_directory_is_named() {
    let home = Home::new();
    let Some(named) = unrecorded_children(&home, "before jail") else { return };
    assert_eq!(named.len(), 1, "{named:?}");
    let reason = ") was not recorded: it has another root directory (chroot), where larder cannot \
                  be reached";
    assert!(named[0].contains("lone_child (process "), "{named:?}");
    assert!(named[0].ends_with(reason), "{named:?}");
}

/// A child that has ended shows no root directory: it counts among those that its parent lost.
#[test]
fn a_child_that_has_ended_is_named_by_its_parent() {
    let home = Home::new();
    let Some(named) = unrecorded_children(&home, "dead jail") else { return };
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("a child of ") && named[0].contains("lone_child (process "));
    assert!(named[0].ends_with(") was not recorded: it did not reach larder"), "{named:?}");
}

/// A process that was recorded after its fork and then begins a program that cannot be is named.
#[test]
fn a_program_that_a_recorded_process_begins_is_named() {
    let home = Home::new();
    for (root, program) in [("/", home.work("static_reader")), ("jail", "/static_reader".into())] {
        let arguments = format!("after {root} {}", program.display());
        let Some(named) = unrecorded_children(&home, &arguments) else { return };
        assert_eq!(named.len(), 1, "{root}: {named:?}");
        assert!(named[0].contains("static_reader (process "), "{root}: {named:?}");
        let reason = ") was not recorded: it is a static program";
        assert!(named[0].ends_with(reason), "{root}: {named:?}");
    }
}

/// A process in the background may begin such a program when the command has ended.
#[test]
fn a_program_that_begins_after_the_command_is_named() {
    let home = Home::new();
    if compile(&home, "static_reader.c", "gcc", &["-static"]).is_none() {
        return left_out("a_program_that_begins_after_the_command_is_named", "no gcc");
    }
    recorder();
    let script = "(sleep 0.3; sleep 1 | ./static_reader) &";
    let run = home.shell(&format!("larder measure record --out log -- sh -c '{script}'"));
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let messages = run.stderr();
    let named: Vec<&str> = messages.lines().filter(|line| line.contains("not rec")).collect();
    assert_eq!(named.len(), 1, "{messages}");
    assert!(named[0].contains("static_reader (process "), "{messages}");
    assert!(named[0].ends_with(") was not recorded: it is a static program"), "{messages}");
}

/// A fork that fails has no child: none is awaited, and none is lost.
#[test]
fn a_fork_that_fails_loses_no_child() {
    let home = Home::new();
    let Some(program) = compile(&home, "failing_forks.c", "gcc", &["-lutil"]) else {
        return left_out("a_fork_that_fails_loses_no_child", "no gcc");
    };
    recorder();
    // Before, each fork took a second.
    let command = format!("larder measure record --out log -- {} 40", program.display());
    let run = home.shell(&format!("timeout 30 {command}"));
    if run.code == 77 {
        return left_out("a_fork_that_fails_loses_no_child", "forks do not fail");
    }
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert!(!run.stderr().contains("not recorded"), "{}", run.stderr());
}

/// A handler of a signal may name numbers between any two instructions of a call that is recorded.
#[test]
fn numbers_of_signal_handlers_harm_no_call() {
    let home = Home::new();
    let Some(program) = compile(&home, "stepped.c", "gcc", &["-pthread"]) else {
        return left_out("numbers_of_signal_handlers_harm_no_call", "no gcc");
    };
    let analysis = record(&home, &format!("timeout 60 {} truth", program.display()));
    let process = (0..process_count(&analysis))
        .map(|number| analyse(&home, &["--process", &number.to_string()]))
        .find(|process| !process["numbers"].as_array().unwrap().is_empty())
        .expect("no process with numbers");
    let numbers: u64 = std::fs::read_to_string(home.work("truth")).unwrap().trim().parse().unwrap();
    assert!(numbers > 10_000, "{numbers}");
    assert_eq!(process["numbers"].as_array().unwrap().len(), 1);
    assert_eq!(process["numbers"][0]["count"], numbers);
    assert_eq!(process["end"]["anomalies"], 0);
    assert!(process["calls_by_function"]["malloc"].as_u64().unwrap() >= 100_050);
    let live = process["end_objects"].as_u64().unwrap();
    assert!(live < 20, "{live} objects are left");
}

/// The handler of a signal may fork between any two instructions of a call that is recorded.
#[test]
fn forks_of_signal_handlers_kill_no_child() {
    let home = Home::new();
    let Some(program) = compile(&home, "stepped_forks.c", "gcc", &[]) else {
        return left_out("forks_of_signal_handlers_kill_no_child", "no gcc");
    };
    recorder();
    for arguments in ["1", "5 plain"] {
        let command = format!("larder measure record --out log -- {}", program.display());
        let run = home.shell(&format!("{command} {arguments}"));
        assert_eq!(run.code, 0, "{} children were killed", run.code);
        assert!(!run.stderr().contains("not recorded"), "{}", run.stderr());
        let analysis = analyse(&home, &[]);
        let processes = analysis["processes"].as_array().unwrap();
        assert!(processes.len() > 50, "{}", processes.len());
        for process in &processes[1..] {
            let origin = (&process["parent"], &process["is_forked"]);
            assert_eq!(origin, (&0.into(), &true.into()), "{process}");
        }
        // Every second one, to save time.
        for number in (0..processes.len()).step_by(2) {
            let process = analyse(&home, &["--process", &number.to_string()]);
            assert_eq!(process["end"]["anomalies"], 0, "process {number}: {}", process["start"]);
        }
    }
}

/// A message begins a phase after the calls that were made before, though larder reads them later.
#[test]
fn a_message_begins_a_phase_after_the_calls_before_it() {
    let home = Home::new();
    let Some(program) = compile(&home, "late_calls.c", "gcc", &[]) else {
        return left_out("a_message_begins_a_phase_after_the_calls_before_it", "no gcc");
    };
    let command = format!("{} passed-on 2<>passed-on", program.display());
    assert_eq!(home.shell("mkfifo passed-on").code, 0);
    let analysis = record_with(&home, "--phases '^([^:]+): +\\d+%'", &command);
    let phases = analysis["phases"].as_array().unwrap();
    let second = phases.iter().find(|phase| phase["name"] == "Second").expect("no second phase");
    assert_eq!(second["calls"], 200, "{phases:?}");
}

/// A child inherits what is live at its fork, not what was when the fork began.
#[test]
fn children_of_a_busy_program_inherit_at_their_forks() {
    let home = Home::new();
    let Some(program) = compile(&home, "busy_forks.c", "gcc", &["-pthread"]) else {
        return left_out("children_of_a_busy_program_inherit_at_their_forks", "no gcc");
    };
    recorder();
    let command = format!("larder measure record --out log -- {} 50", program.display());
    let run = home.shell(&command);
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert!(!run.stderr().contains("not recorded"), "{}", run.stderr());
    for number in 1..=50 {
        let process = analyse(&home, &["--process", &number.to_string()]);
        assert_eq!(process["end"]["anomalies"], 0, "process {number}");
        // Beside them, the object of the first thread and what the C library needs for threads.
        let of_threads = 300 * 100 * number;
        let inherited = process["start"]["inherited_bytes"].as_u64().unwrap();
        assert!((of_threads..of_threads + 10_000).contains(&inherited), "{inherited}: {number}");
    }
}

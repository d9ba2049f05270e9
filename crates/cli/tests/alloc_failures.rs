//! Recordings in which larder is stopped, killed, or at its limits.

use crate::alloc_log::{analyse, compile, process_count, record, recorder};
use crate::alloc_recording::{comes_true, run_ring_sender};
use crate::measure_report::write_result;
use crate::test_home::{Home, left_out};
use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Stdio};

/// A request to end larder is one to end the command. Then the log is closed, although a process
/// in the background goes on.
#[test]
fn a_termination_is_sent_on_to_the_command() {
    let home = Home::new();
    recorder();
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::HUP, "HUP")] {
        let script = format!(
            "trap 'kill $child; exit 7' {name}; sleep 100 & echo $! >background; \
             sleep 99 & child=$!; touch {name}; wait"
        );
        let command = ["measure", "record", "--out", "log", "--", "sh", "-c", &script];
        let mut larder = home.command(&command).spawn().unwrap();
        assert!(comes_true(|| home.work(name).exists()));
        kill_process(Pid::from_child(&larder), signal).unwrap();
        let has_ended = comes_true(|| larder.try_wait().unwrap().is_some());
        let background = std::fs::read_to_string(home.work("background")).unwrap();
        let background = Pid::from_raw(background.trim().parse().unwrap()).unwrap();
        kill_process(background, Signal::KILL).unwrap();
        if !has_ended {
            larder.kill().unwrap();
        }
        assert!(has_ended, "{name}: the recording goes on");
        assert_eq!(larder.wait().unwrap().code(), Some(7), "{name}");
        assert!(process_count(&analyse(&home, &[])) >= 1);
    }
}

/// The other instruments send a request to end on, too, and report up to that end.
#[test]
fn a_termination_of_a_measured_command_is_reported() {
    let home = Home::new();
    for instrument in [&["memory"][..], &["run", "--repeat", "3"]] {
        for (signal, name) in [(Signal::TERM, "TERM"), (Signal::HUP, "HUP")] {
            let script = format!(
                "trap 'kill $child; exit 7' {name}; sleep 99 & child=$!; echo $child >child; \
                 touch ready; wait"
            );
            let options = ["--", "sh", "-c", &script];
            let command = [&["--format", "json", "measure"], instrument, &options].concat();
            let mut larder = home.command(&command).stdout(Stdio::piped()).spawn().unwrap();
            assert!(comes_true(|| home.work("ready").exists()));
            kill_process(Pid::from_child(&larder), signal).unwrap();
            if !comes_true(|| larder.try_wait().unwrap().is_some()) {
                let child = std::fs::read_to_string(home.work("child")).unwrap();
                let child = Pid::from_raw(child.trim().parse().unwrap()).unwrap();
                kill_process(child, Signal::KILL).unwrap();
                larder.kill().unwrap();
                panic!("{instrument:?}: {name} is not sent on");
            }
            let output = larder.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(7), "{instrument:?}: {name}");
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["code"], 7, "{instrument:?}: {name}: {report}");
            assert!(report["runs"].is_null() || report["runs"] == 1, "{report}");
            std::fs::remove_file(home.work("ready")).unwrap();
        }
    }
}

/// A reader of the output that has gone changes no exit code of an instrument.
#[test]
fn exit_codes_do_not_depend_on_the_reader_of_the_output() {
    let home = Home::new();
    record(&home, "true");
    let log = std::fs::read(home.work("log")).unwrap();
    home.write("damaged", &log[..log.len() - 1]);
    home.write("words", "{\"at_us\":1,\"pid\":7,\"event\":\"end\"}\nwords\n");
    let failing = ["--", "sh", "-c", "exit 4"];
    write_result(&home, "results/run.json", "2026-11-01T10:00:00Z", "aaaaaaaaaaaa", &[]);
    home.write("results/broken.json", "{");
    let commands: [(&[&str], &[&str], i32); 10] = [
        (&["run"], &failing, 4),
        (&["run", "--show"], &failing, 4),
        (&["memory"], &failing, 4),
        (&["memory", "--html", "-"], &failing, 4),
        (&["memory", "--html", "-", "--svg", "picture"], &failing, 4),
        (&["record", "--out", "other"], &failing, 4),
        (&["alloc", "damaged"], &[], 3),
        (&["queries", "words", "--anonymise", "tokens"], &[], 3),
        (&["queries", "words", "--html", "-"], &[], 3),
        (&["report", "results", "--html", "-"], &[], 3),
    ];
    for (instrument, arguments, code) in commands {
        for format in ["text", "json"] {
            let command = [&["--format", format, "measure"], instrument, arguments].concat();
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let run = home.finish(home.command(&command).stdout(writer).output().unwrap());
            assert_eq!(run.code, code, "{command:?}: {}", run.masked_output());
        }
    }
    assert!(home.work("picture").metadata().unwrap().len() > 0);
}

/// Rings that larder has no file for are lost by its limit, not by one of the program. Twenty
/// processes run at once, and each has sent its ring before it says so.
#[test]
fn the_limit_of_open_files_is_named() {
    let home = Home::new();
    recorder();
    home.write(
        "work.sh",
        "mkfifo ready hold; exec 8<>hold 9<>ready; all=$(seq 20)\n\
         for i in $all; do sh -c 'echo >&9; read -r line <&8' & done\n\
         for i in $all; do read -r line <&9; done\n\
         for i in $all; do echo >&8; done; wait\n",
    );
    let run = home.shell("ulimit -n 16; larder measure record --out log -- sh work.sh");
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let reason = "was not recorded: larder had too many files open to take its ring";
    assert!(run.stderr().contains(reason), "{}", run.masked_output());
    assert!(!run.stderr().contains("memory file"), "{}", run.masked_output());
    // Each child is named once, by its reason.
    assert!(!run.stderr().contains("did not reach larder"), "{}", run.masked_output());
    let messages = String::from_utf8_lossy(&run.err);
    let mut named: Vec<&str> = messages
        .lines()
        .filter(|line| line.contains(reason))
        .filter_map(|line| Some(line.split_once("(process ")?.1.split_once(')')?.0))
        .collect();
    let lines = named.len();
    named.sort_unstable();
    named.dedup();
    assert!(lines > 0 && named.len() == lines, "{}", run.masked_output());
}

/// A signal that the caller ignores (`nohup`) is ignored by larder and by the command.
#[test]
fn ignored_signals_stay_ignored() {
    let home = Home::new();
    recorder();
    let script = "kill -INT $PPID; kill -HUP $PPID; kill -INT $$; kill -HUP $$; echo survived";
    for instrument in ["record --out log", "memory --show", "run --show"] {
        let command = format!("larder --quiet measure {instrument} -- sh -c '{script}'");
        let run = home.shell(&format!("trap '' INT HUP; {command}"));
        assert_eq!(run.code, 0, "{instrument}: {}", run.masked_output());
        assert!(run.stdout().contains("survived\n"), "{instrument}: {}", run.masked_output());
    }
}

/// A program with the recorder of another version goes on at once, and is named with that reason.
#[test]
fn a_recorder_of_another_version_is_named() {
    let home = Home::new();
    recorder();
    let steps = "fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)\n\
         ring[8:12] = struct.pack('<I', 99)\n\
         send()\n\
         for _ in range(100):\n\
         \x20   if struct.unpack('<Q', ring[256:264])[0] > 1 << 32: sys.exit(0)\n\
         \x20   time.sleep(0.01)\n\
         sys.exit('the ring has no space')\n";
    let messages = run_ring_sender(&home, steps);
    let reason = "was not recorded: the recorder in it is of another version of larder";
    assert!(messages.contains(reason), "{messages}");
}

/// Handlers of signals end waits early: the time that larder has is measured by the clock.
#[test]
fn a_program_waits_for_a_stopped_larder_whatever_signals_it_gets() {
    let home = Home::new();
    let Some(program) = compile(&home, "ticking.c", "gcc", &[]) else {
        return left_out("a_program_waits_for_a_stopped_larder_whatever_signals_it_gets", "no gcc");
    };
    recorder();
    let run = home.shell(&format!(
        "larder measure record --out log -- \
         sh -c '(sleep 3; kill -CONT $PPID) & kill -STOP $PPID; exec {} 1000000'",
        program.display()
    ));
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let analysis = analyse(&home, &[]);
    let index = (0..process_count(&analysis))
        .find(|number| {
            let process = analyse(&home, &["--process", &number.to_string()]);
            process["calls_by_function"]["malloc"].as_u64() >= Some(1_000_000)
        })
        .expect("no process with all calls");
    let process = analyse(&home, &["--process", &index.to_string()]);
    assert_eq!(process["end"]["is_abandoned"], false);
    assert!(process["end"]["stalls"].as_u64().unwrap() > 0);
}

/// Each recorded process takes a file of larder, whose limit is not that of the command.
#[test]
fn many_processes_are_recorded_within_a_low_limit_of_files() {
    let home = Home::new();
    recorder();
    let run = home.shell(
        "ulimit -Sn 24; larder measure record --out log -- \
         sh -c 'ulimit -Sn; for i in $(seq 40); do sleep 0.5 & done; wait'",
    );
    assert_eq!((run.code, run.stdout().trim()), (0, "24"), "{}", run.masked_output());
    // A fork and a program each, and seq.
    let analysis = analyse(&home, &[]);
    assert_eq!(process_count(&analysis), 1 + 2 * (40 + 1));
    let processes = analysis["processes"].as_array().unwrap();
    let exits = processes.iter().filter(|process| process["ending"] == "exit").count();
    assert_eq!(exits, 1 + 40 + 1, "{processes:?}");
}

/// A program waits at its start for a collector that does not accept its connection, but not for
/// ever.
#[test]
fn a_program_starts_beside_a_collector_that_accepts_nothing() {
    let home = Home::new();
    home.write(
        "collector.py",
        "import os, socket, subprocess, sys\n\
         server = socket.socket(socket.AF_UNIX)\n\
         server.bind('socket')\n\
         server.listen(0)\n\
         setting = '12:0:1:' + os.path.abspath('socket')\n\
         os.environ.update(LD_PRELOAD=sys.argv[1], LARDER_ALLOCLOG=setting)\n\
         for _ in range(2): subprocess.run(['true'], check=True, timeout=30)\n",
    );
    let mut python = home.program("python3");
    let Ok(output) = python.arg("collector.py").arg(recorder()).output() else {
        return left_out("a_program_starts_beside_a_collector_that_accepts_nothing", "no python3");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// `LD_PRELOAD` has no way to write a path with a blank or a colon.
#[test]
fn a_recorder_in_a_folder_with_a_blank_is_loaded() {
    let home = Home::new();
    for folder in ["a b", "a:b"] {
        std::fs::create_dir_all(home.work(folder)).unwrap();
        std::fs::copy(recorder(), home.work(folder).join("recorder.so")).unwrap();
        let run = home.shell(&format!(
            "larder measure record --recorder '{folder}/recorder.so' --out log -- true"
        ));
        assert_eq!(run.code, 0, "{}", run.masked_output());
        assert_eq!(process_count(&analyse(&home, &[])), 1);
    }
}

/// A log without any process is no success, though the command is one.
#[test]
fn a_recording_of_no_process_says_so() {
    let home = Home::new();
    recorder();
    home.write("code.c", "int main(int count, char **words) { return count > 2 ? 9 : 0; }\n");
    let mut compiler = Command::new("gcc");
    compiler.arg("-static").arg("-o").arg(home.work("code")).arg(home.work("code.c"));
    if !compiler.output().is_ok_and(|output| output.status.success()) {
        return left_out("a_recording_of_no_process_says_so", "no gcc");
    }
    // A script whose interpreter is a static program.
    home.write("script", format!("#!{}\n", home.work("code").display()));
    home.shell("chmod +x script");
    for (command, code) in [("./script", 5), ("./script word", 9)] {
        let run = home.shell(&format!("larder measure record --out log -- {command}"));
        assert_eq!(run.code, code, "{}", run.masked_output());
        assert!(run.stderr().contains("log: no process was recorded"), "{}", run.stderr());
    }
}

/// Another library would be loaded into the command and record nothing.
#[test]
fn a_library_that_is_no_recorder_is_refused() {
    let home = Home::new();
    recorder();
    home.write("text.so", "no library");
    let run = home.shell("larder measure record --recorder text.so --out log -- true");
    assert_snapshot!(run.masked_output(), @"
    ! error: text.so is not the recorder of larder, liblarder_alloclog.so
    ! hint: `make install` installs it beside larder; --recorder names it elsewhere
    exit 2
    ");
    assert!(!home.work("log").exists());
}

/// The log of the first would be that of neither.
#[test]
fn two_recordings_do_not_share_a_log() {
    let home = Home::new();
    recorder();
    let second = "larder measure record --out log -- true; echo $?";
    let run = home.shell(&format!("larder measure record --out log -- sh -c '{second}'"));
    assert_eq!((run.code, run.stdout()), (0, "5\n".into()), "{}", run.masked_output());
    let message = "error: log is locked, likely by another recording to it\n";
    assert!(run.stderr().contains(message), "{}", run.stderr());
    assert_eq!(analyse(&home, &[])["is_cut"], false);
}

/// Without `PATH`, a command is found where the system looks for it.
#[test]
fn a_command_is_recorded_without_a_path() {
    let home = Home::new();
    recorder();
    let run = home.shell("env -u PATH $(command -v larder) measure record --out log -- true");
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert_eq!(process_count(&analyse(&home, &[])), 1);
}

/// The output of the command would be in the middle of the log.
#[test]
fn a_log_on_standard_output_has_no_other_output_in_it() {
    let home = Home::new();
    recorder();
    let run = home.shell("larder measure record --out - -- sh -c 'echo shown' | cat > log");
    assert!(run.stderr().contains("shown\n"), "{}", run.masked_output());
    assert_eq!(analyse(&home, &[])["command"], "sh -c echo shown");
}

/// A recording that waits for a process in the background does not look as if it hung.
#[test]
fn a_recording_tells_of_a_process_in_the_background() {
    let home = Home::new();
    recorder();
    let run = home.shell("larder measure record --out log -- sh -c 'sleep 3 &'");
    let stderr = run.stderr();
    let note = "note: the command has ended; ";
    assert!(stderr.contains(note) && stderr.contains("sleep (process "), "{stderr}");
    assert!(stderr.contains(") went on and is still recorded, until Control-C\n"), "{stderr}");
}

/// A program that sets `LD_PRELOAD` itself, or that another larder records.
#[test]
fn a_program_without_the_recorder_has_its_reason() {
    let home = Home::new();
    let library = recorder();
    // It has to be seen, also on a busy machine.
    let slow = "sh -c \"sleep 1\"";
    let other =
        format!("larder measure record --recorder {} --out other -- {slow}", library.display());
    let cases = [
        (format!("LD_PRELOAD=libm.so.6 {slow}"), "its LD_PRELOAD has other libraries in place of"),
        (format!("unset LD_PRELOAD; {slow}"), "it ran without LD_PRELOAD"),
        (other, "it is recorded by another larder"),
    ];
    for (command, reason) in cases {
        let run =
            home.shell(&format!("larder measure record --out log -- sh -c '{command}; true'"));
        assert_eq!(run.code, 0, "{}", run.masked_output());
        assert!(run.stderr().contains(reason), "{command}: {}", run.stderr());
    }
}

/// A number that has no place in an event is not a smaller one.
#[test]
fn numbers_that_are_too_large_are_refused() {
    let home = Home::new();
    recorder();
    home.write(
        "numbers.py",
        "import os\n\
         for value in ['9223372036854775807', '9223372036854775808', '18446744073709551617']:\n\
         \x20   print(os.access('/larder/number/big/' + value, 0))\n",
    );
    let run = home.shell("larder measure record --out log -- python3 numbers.py");
    assert_eq!(run.stdout(), "True\nFalse\nFalse\n", "{}", run.masked_output());
    let analysis = analyse(&home, &[]);
    assert_eq!(analysis["numbers"][0]["count"], 1);
    assert_eq!(analysis["numbers"][0]["last"], 9_223_372_036_854_775_807_u64);
    // The tables have it as it is, too; charts have it to 15 digits.
    home.ok(&["measure", "alloc", "log", "--html", "page.html"]);
    let text = home.ok(&["measure", "alloc", "log"]);
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    assert!(text.contains(" 9,223,372,036,854,775,807 "), "{text}");
    assert!(page.contains(">9,223,372,036,854,775,807<"));
    assert_eq!(page.matches("9,223,372,036,854,775,808").count(), page.matches("≈ 9,223").count());
}

/// The path of a socket is short: where the temporary folder has a long one, another folder is
/// taken.
#[test]
fn a_long_temporary_folder_is_no_obstacle() {
    let home = Home::new();
    recorder();
    let folder = home.work(&"a".repeat(120));
    std::fs::create_dir(&folder).unwrap();
    let run = home.shell(&format!(
        "TMPDIR={} larder measure record --out log -- git --version",
        folder.display()
    ));
    assert_eq!(run.code, 0, "{}", run.masked_output());
    assert_eq!(process_count(&analyse(&home, &[])), 1);
}

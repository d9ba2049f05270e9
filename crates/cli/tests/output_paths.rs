//! Every option that names an output, with every kind of path: a file of the store, a link, a pipe,
//! a folder, standard output. The options are those of `path_arguments.txt`, which a unit test of
//! the command line compares with all options.

use crate::alloc_log::recorder;
use crate::measure_report::write_result;
use crate::test_home::{ANNA, Home, Run, left_out};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

/// An argument of the table that names an output.
struct Output {
    name: &'static str,
    usage: &'static str,
    code: i32,
    mode: u32,
    begins: &'static str,
    line: &'static str,
}

impl Output {
    fn args(&self, path: &Path) -> Vec<String> {
        let path = path.to_str().unwrap();
        self.line.split(' ').map(|word| word.replace("{}", path)).collect()
    }

    fn run(&self, home: &Home, path: &Path) -> Run {
        home.run(&self.args(path))
    }
}

fn outputs() -> Vec<Output> {
    let rows = include_str!("path_arguments.txt").lines();
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.split(" | ").collect();
        let &[name, usage, code, privacy, begins, line] = cells.as_slice() else {
            assert!(["input", "store", "program"].contains(&cells[1]), "{row}");
            return None;
        };
        let mode = if privacy == "private" { 0o600 } else { 0o644 };
        Some(Output { name, usage, code: code.parse().unwrap(), mode, begins, line })
    })
    .collect()
}

fn files() -> impl Iterator<Item = Output> {
    outputs().into_iter().filter(|output| output.usage != "folder")
}

/// A home in which every command of the table works.
fn home() -> Home {
    let home = Home::with_book();
    home.write("bad.vcf", format!("END:VCARD\r\n{ANNA}"));
    home.write("mail.eml", "Subject: x\n\nSubject matter\n");
    home.ok(&["--query-log", "queries.jsonl", "find", "anna"]);
    home.ok(&["backup", "old.db"]);
    recorder();
    home.ok(&["measure", "record", "--out", "calls.alloclog", "--", "ls"]);
    write_result(&home, "results/one.json", "2026-11-28T17:40:21Z", "1ca118ed", &[("index", 10.0)]);
    std::fs::create_dir(home.work("out")).unwrap();
    home
}

/// Returns the names of the files in the data directory.
fn file_names(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.data()).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Fails unless the store has these items and no new file.
fn assert_unchanged(home: &Home, exported: &str, output: &Output) {
    assert_eq!(home.ok(&["export", "contacts"]), exported, "{} changed the store", output.name);
    let names = file_names(home);
    let is_new = |name: &&String| name.contains("partial") || !name.starts_with("data.");
    assert_eq!(names.iter().find(is_new), None, "{}", output.name);
}

#[test]
fn no_output_is_a_file_of_the_store() {
    let home = home();
    // A reader keeps the files beside the database in existence.
    let _reader = larder_store::Reader::open(&home.data()).unwrap();
    let names = file_names(&home);
    let exported = home.ok(&["export", "contacts"]);
    let others = ["data.db-wal", "data.db-shm", "data.db-journal", "new.vcf"].map(String::from);
    for output in files() {
        let refused = |path: &Path| {
            let run = output.run(&home, path);
            assert_eq!(run.code, 2, "{} {path:?}:\n{}", output.name, run.masked_output());
            let text = run.stderr();
            assert!(text.contains("belongs to the store in"), "{} {path:?}: {text}", output.name);
        };
        for name in names.iter().chain(&others) {
            refused(&home.data().join(name));
        }
        let own = home.data().join("data.db");
        let link = home.work("link");
        symlink(&own, &link).unwrap();
        refused(&link);
        std::fs::remove_file(&link).unwrap();
        assert_unchanged(&home, &exported, &output);
    }
    for output in outputs().into_iter().filter(|output| output.usage == "folder") {
        let run = output.run(&home, &home.data());
        assert_eq!(run.code, 2, "{}: {}", output.name, run.masked_output());
        assert_unchanged(&home, &exported, &output);
    }
    home.assert_store_is_sound();
}

/// A hard link has another name, and the same file.
#[test]
fn no_output_is_a_hard_link_to_a_file_of_the_store() {
    let home = home();
    let (own, other) = (home.data().join("data.notify"), home.work("out/other"));
    std::fs::hard_link(&own, &other).unwrap();
    let before = std::fs::read(&own).unwrap();
    for output in files() {
        let run = output.run(&home, &other);
        assert_eq!(run.code, 2, "{}: {}", output.name, run.masked_output());
        assert_eq!(std::fs::read(&own).unwrap(), before, "{}", output.name);
    }
}

/// A new file has the mode of its kind, an existing one keeps its own, and a link stays a link.
#[test]
fn files_are_replaced_with_their_mode() {
    let home = home();
    for (n, output) in files().enumerate() {
        let check = |path: &Path, mode: u32| {
            let run = output.run(&home, path);
            assert_eq!(run.code, output.code, "{}: {}", output.name, run.masked_output());
            let bytes = std::fs::read(path).unwrap();
            assert!(
                bytes.starts_with(output.begins.as_bytes()),
                "{}: {}",
                output.name,
                String::from_utf8_lossy(&bytes[..bytes.len().min(80)])
            );
            let found = std::fs::metadata(path).unwrap().mode() & 0o777;
            assert_eq!(found, mode, "{}: {found:o}", output.name);
        };
        let path = home.work(&format!("out/{n}"));
        check(&path, output.mode);
        if output.usage == "new" {
            assert_eq!(output.run(&home, &path).code, 2, "{} replaced a file", output.name);
            continue;
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        check(&path, 0o640);
        let link = home.work(&format!("out/link{n}"));
        symlink(&path, &link).unwrap();
        check(&link, 0o640);
        assert!(link.is_symlink(), "{}", output.name);
        let names = std::fs::read_dir(home.work("out")).unwrap();
        let left = names.filter(|entry| {
            entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".larder")
        });
        assert_eq!(left.count(), 0, "{} left a temporary file", output.name);
    }
}

#[test]
fn a_folder_is_no_output() {
    let home = home();
    for output in files() {
        let run = output.run(&home, &home.work("out"));
        let text = run.stderr();
        // No command fails because of its log.
        let codes: &[i32] = if output.usage == "log" { &[0] } else { &[2, 5] };
        assert!(codes.contains(&run.code), "{}: {}", output.name, run.masked_output());
        assert!(text.contains("is a directory"), "{}: {text}", output.name);
    }
}

#[test]
fn a_pipe_is_written_directly() {
    let home = home();
    let pipe = home.work("pipe");
    let made = home.program("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for output in files() {
        let mut reader = home.spawn(home.program("/bin/sh").args(["-c", "cat pipe >read"]));
        let run = output.run(&home, &pipe);
        assert!(reader.wait().unwrap().success());
        let read = std::fs::read(home.work("read")).unwrap();
        assert_eq!(run.code, output.code, "{}: {}", output.name, run.masked_output());
        assert!(
            read.starts_with(output.begins.as_bytes()),
            "{}: {} bytes",
            output.name,
            read.len()
        );
        assert!(!std::fs::metadata(&pipe).unwrap().is_file(), "{} replaced the pipe", output.name);
    }
}

/// `-`, `/dev/stdout` and the file that standard output is redirected to are one output.
#[test]
fn standard_output_is_an_output() {
    let home = home();
    for output in outputs() {
        if output.usage == "folder" {
            assert_eq!(output.run(&home, Path::new("-")).code, 2, "{}", output.name);
            continue;
        }
        for name in ["-", "/dev/stdout"] {
            let run = output.run(&home, Path::new(name));
            assert_eq!(run.code, output.code, "{} {name}: {}", output.name, run.masked_output());
            // The log comes after the answer.
            let has = match output.usage {
                "log" => run.stdout().lines().any(|line| line.starts_with(output.begins)),
                _ => run.out.starts_with(output.begins.as_bytes()),
            };
            assert!(has, "{} {name}: {}", output.name, run.masked_output());
        }
        let words = output.args(Path::new("whole"));
        let run = home.shell(&format!("larder {} >whole", words.join(" ")));
        assert_eq!(run.code, output.code, "{}: {}", output.name, run.masked_output());
        assert!(!home.work("-").exists(), "{}", output.name);
    }
    // The bytes of the output alone, and messages on standard error.
    let run = home.run(&["export", "contacts", "-o", "-"]);
    assert_eq!(run.stdout(), home.ok(&["export", "contacts"]));
    assert!(run.stderr().contains("3 items written to"), "{}", run.stderr());
}

/// A link that another user planted in a folder for everybody is followed if the system lets a
/// shell follow it, which `fs.protected_symlinks` forbids.
#[test]
fn foreign_links_in_shared_folders_are_followed_as_by_a_shell() {
    let home = home();
    let folder = home.work("shared");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let (target, link) = (home.work("target"), folder.join("link"));
    let plant = |has_target: bool| {
        let _none = std::fs::remove_file(&target);
        let _none = std::fs::remove_file(&link);
        if has_target {
            std::fs::write(&target, "mine").unwrap();
        }
        symlink(&target, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).is_ok()
    };
    if !plant(true) {
        return left_out("foreign links", "only root can plant the link of another user");
    }
    let is_followed = home.shell("echo shell > shared/link").code == 0;
    for output in files() {
        for has_target in [true, false] {
            assert!(plant(has_target));
            let run = output.run(&home, &link);
            assert!(link.is_symlink(), "{}", output.name);
            if is_followed {
                // A backup or a query log does not replace a file of another kind, and a salvage
                // replaces nothing.
                let is_refused = run.code != output.code || (has_target && output.usage == "log");
                let found = std::fs::read(&target).unwrap_or_default();
                let is_written = !found.is_empty() && found != b"mine";
                assert!(is_written || is_refused, "{}: {}", output.name, run.stderr());
                continue;
            }
            assert!(run.stderr().contains("ermission denied"), "{}: {}", output.name, run.stderr());
            assert_eq!(target.exists(), has_target, "{}", output.name);
            if has_target {
                assert_eq!(std::fs::read(&target).unwrap(), b"mine", "{}", output.name);
            }
        }
    }
}

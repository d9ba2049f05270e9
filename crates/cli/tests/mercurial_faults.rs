//! Faults of `git clone hg::...`, `git fetch` and `larder hg`: the repository is as before or
//! complete, and the next run gives the commits of an undisturbed one.
//!
//! A few of the points that `torture/run.py hg-kill hg-errors hg-full-disk hg-together` try. larder
//! is a child of git, so a script with the name of the remote helper preloads the library of
//! `torture/preload/fault.c` into it alone.

use crate::failing_calls::fault_library;
use crate::full_disk::on_a_disk;
use crate::mercurial::{commit, git, has_mercurial, hg, home_with_mercurial, url};
use crate::test_home::{Home, LARDER, left_out};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Calls that change a file, see `fault.c`.
const WRITE_CALLS: &str = "wstorulm";
const EIO: i32 = 5;
const SIGKILL: i32 = 9;

/// What happens at a call.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Kill,
    Fail(i32),
}

/// A home with a clone that lacks one changeset, and the script that preloads the library.
fn home_with_clone() -> Home {
    let home = home_with_mercurial();
    let (code, text) = git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    assert_eq!(code, 0, "{text}");
    home.write("project/seal.txt", "flippers\n");
    commit(&home, "the seal", 1_000_000_200);
    let program = home.work("git-remote-hg");
    let script = format!("#!/bin/sh\nLD_PRELOAD=$LIBRARY exec '{}' \"$@\"\n", program.display());
    let path = home.write("faulty/git-remote-hg", script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, mode).unwrap();
    home
}

/// Fetches with a fault at a call of larder. Returns the exit code, what git and larder print, and
/// whether the call was made.
fn fetch_with_fault(
    home: &Home,
    library: &Path,
    calls: &str,
    at: u64,
    fault: Fault,
) -> (i32, String, bool) {
    let count = home.work("count");
    let _none = std::fs::remove_file(&count);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = home.program("git");
    command
        .args(["-C", "clone", "fetch", "-q"])
        .env("PATH", format!("{}:{path}", home.work("faulty").display()))
        .env("LIBRARY", library)
        .env("TORTURE_ROOT", home.work("clone").canonicalize().unwrap())
        .env("TORTURE_CALLS", calls)
        .env("TORTURE_AT", at.to_string())
        .env("TORTURE_COUNT", &count);
    match fault {
        Fault::Kill => command.env("TORTURE_SIGNAL", SIGKILL.to_string()),
        Fault::Fail(error) => {
            command.env("TORTURE_ERRNO", error.to_string()).env("TORTURE_ONCE", "1")
        }
    };
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // A killed program reports no count.
    let made = std::fs::read_to_string(&count).map_or(true, |count| {
        count.lines().any(|count| count.parse::<u64>().is_ok_and(|count| count > at))
    });
    (output.status.code().unwrap_or(-1), text, made)
}

fn refs(home: &Home, clone: &str) -> String {
    git(home, &["-C", clone, "for-each-ref", "refs/remotes", "refs/larder/hg/metadata"]).1
}

fn assert_sound(home: &Home, clone: &str) {
    let checked = git(home, &["-C", clone, "fsck", "--full", "--strict", "--no-dangling"]);
    assert_eq!(checked, (0, String::new()));
}

/// Compares the branches of a clone with those of a new one, and looks for leftovers in its packs.
fn assert_complete(home: &Home, clone: &str) {
    let (code, text) = git(home, &["clone", "-q", &url(home, "project"), "undisturbed"]);
    assert_eq!(code, 0, "{text}");
    let branches = |clone: &str| git(home, &["-C", clone, "for-each-ref", "refs/remotes"]);
    assert_eq!(branches(clone), branches("undisturbed"));
    for entry in std::fs::read_dir(home.work(clone).join(".git/objects/pack")).unwrap() {
        let path = entry.unwrap().path();
        let is_left = path.to_string_lossy().contains("tmp_")
            || path.extension().is_some_and(|end| end == "keep")
            || path.extension().is_some_and(|end| end == "pack")
                && !path.with_extension("idx").exists();
        assert!(!is_left, "{}", path.display());
    }
}

/// Tries a fault at every `step`th call of fetches, until one is undisturbed; returns the number of
/// those that failed.
fn fetch_through_faults(home: &Home, calls: &str, step: usize, fault: Fault) -> u32 {
    let Some(library) = fault_library(home, "faults of fetches") else { return u32::MAX };
    let before = refs(home, "clone");
    let mut failed = 0;
    for at in (0..).step_by(step) {
        let (code, text, was_made) = fetch_with_fault(home, &library, calls, at, fault);
        if !was_made {
            assert_eq!(code, 0, "{text}");
            break;
        }
        assert_ne!(code, 0, "call {at}: {text}");
        failed += 1;
        assert_eq!(refs(home, "clone"), before, "call {at}: {text}");
        if fault != Fault::Kill {
            assert!(text.contains("/clone/.git/objects/pack: "), "call {at}: {text}");
            assert!(text.contains("Input/output error"), "call {at}: {text}");
        }
        assert_sound(home, "clone");
    }
    failed
}

#[test]
fn killed_fetches_leave_what_was_there() {
    if !has_mercurial("killed_fetches_leave_what_was_there") {
        return;
    }
    let home = home_with_clone();
    let failed = fetch_through_faults(&home, WRITE_CALLS, 1, Fault::Kill);
    assert!(failed >= 8, "{failed} fetches were killed");
    assert_sound(&home, "clone");
    assert_complete(&home, "clone");
}

#[test]
fn syncs_and_renames_that_fail_are_named() {
    if !has_mercurial("syncs_and_renames_that_fail_are_named") {
        return;
    }
    let home = home_with_clone();
    let failed = fetch_through_faults(&home, "sr", 1, Fault::Fail(EIO));
    assert!(failed >= 5, "{failed} fetches failed");
    assert_sound(&home, "clone");
    assert_complete(&home, "clone");
}

/// Clones to a disk that is too small, and then to a larger one: $2 is the disk, $3 its size, $4
/// the repository, $5 the folder for the output, $6 the folder of the remote helper.
const CLONE_SCRIPT: &str = r#"
disk=$2 size=$3 project=$4 answers=$5
PATH=$(dirname "$project"):$PATH
mount -t tmpfs -o size="$size"k none "$disk" || exit 77
said() { "$@"; echo "exit $?"; }
said git clone -q --template= "hg::$project" "$disk/clone" >"$answers/clone" 2>&1
ls "$disk" >"$answers/left"
mount -o remount,size=64m "$disk" || exit 78
said git clone -q --template= "hg::$project" "$disk/clone" >"$answers/again" 2>&1
said git -C "$disk/clone" fsck --full --strict --no-dangling >"$answers/fsck" 2>&1
"#;

#[test]
fn clones_to_a_full_disk_leave_nothing() {
    if !has_mercurial("clones_to_a_full_disk_leave_nothing") {
        return;
    }
    let home = home_with_mercurial();
    // Text that cannot be compressed by much.
    home.generate("project/noise.txt", 2000, 3);
    commit(&home, "noise", 1_000_000_300);
    for size in [60, 100, 150] {
        let run = on_a_disk(&home, CLONE_SCRIPT, size, "project", "");
        if run.code != 0 {
            let why = run.stderr();
            return left_out("clones to a full disk", &format!("cannot mount a tmpfs ({why})"));
        }
        let answer = |name: &str| std::fs::read_to_string(home.work("answers").join(name)).unwrap();
        let clone = answer("clone");
        assert!(clone.ends_with("exit 128\n"), "{size} kB: {clone}");
        assert!(clone.contains("No space left on device"), "{size} kB: {clone}");
        assert!(clone.contains("/disk/clone/.git/objects/pack: "), "{size} kB: {clone}");
        assert_eq!(answer("left"), "", "{size} kB");
        assert_eq!(answer("again"), "exit 0\n", "{size} kB");
        assert_eq!(answer("fsck"), "exit 0\n", "{size} kB");
    }
}

/// A clone by way of the files of a store, which do not fit on the disk: as above.
const STORE_SCRIPT: &str = r#"
disk=$2 size=$3 project=$4 answers=$5
PATH=$(dirname "$project"):$PATH
mount -t tmpfs -o size="$size"k none "$disk" || exit 77
git -c cinnabar.clonebundle="$project/store.hg" clone --template= "hg::$project" "$disk/clone" \
	>"$answers/clone" 2>&1
echo "exit $?" >>"$answers/clone"
"#;

/// The next bundle would not fit, either.
#[test]
fn a_store_that_does_not_fit_on_the_disk_is_no_damaged_bundle() {
    if !has_mercurial("a_store_that_does_not_fit_on_the_disk_is_no_damaged_bundle") {
        return;
    }
    let home = home_with_mercurial();
    home.generate("project/noise.txt", 2000, 3);
    commit(&home, "noise", 1_000_000_300);
    let specification = ["-t", "none-v2;stream=v2", "project/store.hg"];
    hg(&home, &[&["-R", "project", "bundle", "-q", "-a"], &specification[..]].concat());
    let run = on_a_disk(&home, STORE_SCRIPT, 100, "project", "");
    if run.code != 0 {
        return left_out("a store on a full disk", &format!("no tmpfs ({})", run.stderr()));
    }
    let clone = std::fs::read_to_string(home.work("answers/clone")).unwrap();
    assert!(clone.contains("fatal: "), "{clone}");
    assert!(clone.contains("writing temporary files: "), "{clone}");
    assert!(clone.contains("No space left on device"), "{clone}");
    assert!(!clone.to_lowercase().contains("warning"), "{clone}");
}

/// One of them may meet a lock of git; no change of the metadata is lost.
#[test]
fn two_fetches_at_once_are_as_one() {
    if !has_mercurial("two_fetches_at_once_are_as_one") {
        return;
    }
    let home = home_with_clone();
    let path = std::env::var("PATH").unwrap_or_default();
    let fetches = [(); 2].map(|()| {
        let mut command = home.program("git");
        command.env("PATH", format!("{}:{path}", home.work(".").display()));
        command.args(["-C", "clone", "fetch", "-q"]).stdin(Stdio::null());
        home.spawn(&mut command)
    });
    for fetch in fetches {
        let output = fetch.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_locked = text.contains("cannot lock ref") || text.contains("Unable to create");
        assert!(output.status.success() || is_locked, "{text}");
    }
    assert_eq!(git(&home, &["-C", "clone", "fetch", "-q"]), (0, String::new()));
    assert_sound(&home, "clone");
    assert_complete(&home, "clone");
}

/// Each remote gets its own commits, although the branches have the same names.
#[test]
fn fetches_from_two_remotes_at_once_do_not_mix() {
    if !has_mercurial("fetches_from_two_remotes_at_once_do_not_mix") {
        return;
    }
    let home = home_with_clone();
    hg(&home, &["clone", "-q", "project", "copy"]);
    hg(&home, &["clone", "-q", "-r", "0", "project", "old"]);
    for name in ["old", "copy"] {
        let added = git(&home, &["-C", "clone", "remote", "add", name, &url(&home, name)]);
        assert_eq!(added, (0, String::new()));
    }
    let (code, text) =
        git(&home, &["-C", "clone", "fetch", "-q", "--multiple", "-j2", "old", "copy"]);
    let is_locked = text.contains("cannot lock ref") || text.contains("Unable to create");
    assert!(code == 0 || is_locked, "{text}");
    for (name, subject) in [("old", "the walrus"), ("copy", "the seal")] {
        let tip = format!("refs/remotes/{name}/branches/default/tip");
        let found = git(&home, &["-C", "clone", "log", "-1", "--format=%s", &tip]);
        assert!(found.1 == subject || is_locked && found.0 != 0, "{name}: {found:?}");
    }
    assert_sound(&home, "clone");
}

/// A server of Mercurial that begins to send changes and then is silent. Whoever asks for them is
/// told of on the first channel; on the second one, that the connection has ended.
fn silent_server() -> (String, Receiver<()>, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("hg::http://{}/", listener.local_addr().unwrap());
    let (asked, is_asked) = channel();
    let (ended, has_ended) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            let mut read = BufReader::new(stream.try_clone().unwrap());
            while !request.ends_with("\r\n\r\n") && read.read_line(&mut request).unwrap() > 0 {}
            let node = "1".repeat(40);
            let body = match request.split(['=', '&', ' ']).nth(2) {
                Some("capabilities") => "getbundle known branchmap".to_owned(),
                Some("heads") => format!("{node}\n"),
                Some("branchmap") => format!("default {node}"),
                _ => String::new(),
            };
            let is_last = body.is_empty();
            let len = if is_last { 1_000_000 } else { body.len() };
            let header = "HTTP/1.1 200 OK\r\nContent-Type: application/mercurial-0.1\r\n";
            let header = format!("{header}Content-Length: {len}\r\nConnection: close\r\n\r\n");
            stream.write_all([header, body].concat().as_bytes()).unwrap();
            if is_last {
                asked.send(()).unwrap();
                // The client sends nothing more.
                let _count = read.read(&mut [0]);
                ended.send(()).unwrap();
            }
        }
    });
    (url, is_asked, has_ended)
}

/// The remote helper would wait for the server, or go on for an hour.
#[test]
fn an_import_ends_when_git_is_killed() {
    let home = Home::new();
    std::os::unix::fs::symlink(LARDER, home.work("git-remote-hg")).unwrap();
    let (url, is_asked, has_ended) = silent_server();
    git(&home, &["init", "-q", "clone"]);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = home.program("git");
    command.env("PATH", format!("{}:{path}", home.work(".").display()));
    command.args(["-C", "clone", "fetch", "-q", &url, "HEAD"]).stdin(Stdio::null());
    let mut fetch = home.spawn(&mut command);
    let limit = Duration::from_secs(60);
    is_asked.recv_timeout(limit).unwrap();
    fetch.kill().unwrap();
    fetch.wait().unwrap();
    has_ended.recv_timeout(limit).unwrap();
    assert_eq!(git(&home, &["-C", "clone", "for-each-ref"]), (0, String::new()));
}

/// A process that is killed after its last change of a ref leaves files behind, and the next one
/// finds nothing new.
#[test]
fn leftovers_go_when_nothing_is_new() {
    if !has_mercurial("leftovers_go_when_nothing_is_new") {
        return;
    }
    let home = home_with_clone();
    assert_eq!(git(&home, &["-C", "clone", "fetch", "-q"]), (0, String::new()));
    let report = |end: &str| {
        format!(
            "fast-import crash report:\nfatal: stream ends early\n\n\
             Most Recent Commands Before Crash\n---------------------------------\n{end}\n"
        )
    };
    home.write("clone/.git/fast_import_crash_1", report("* feature done"));
    home.write("clone/.git/fast_import_crash_2", report("* commit refs/heads/foreign"));
    assert_eq!(git(&home, &["-C", "clone", "fetch", "-q"]), (0, String::new()));
    assert!(!home.work("clone/.git/fast_import_crash_1").exists());
    assert!(home.work("clone/.git/fast_import_crash_2").exists());
    let convert = || assert_eq!(home.run(&["hg", "convert", "project", "converted.git"]).code, 0);
    convert();
    let keep = "converted.git/objects/pack/pack-0123456789012345678901234567890123456789.keep";
    home.write(keep, "larder, until a ref leads to the objects of this pack\n");
    convert();
    assert!(!home.work(keep).exists());
}

/// The bundle of an import is named in its errors, too.
#[test]
fn a_bundle_that_is_cut_off_is_named() {
    if !has_mercurial("a_bundle_that_is_cut_off_is_named") {
        return;
    }
    let home = home_with_clone();
    hg(&home, &["-R", "project", "bundle", "-q", "-a", "-t", "none-v2", "whole.hg"]);
    let bytes = std::fs::read(home.work("whole.hg")).unwrap();
    home.write("cut.hg", &bytes[..bytes.len() - 40]);
    let (code, text) = git(&home, &["clone", "-q", &url(&home, "cut.hg"), "of-bundle"]);
    assert_eq!(code, 128);
    assert!(text.starts_with(&format!("fatal: {}: ", home.work("cut.hg").display())), "{text}");
}

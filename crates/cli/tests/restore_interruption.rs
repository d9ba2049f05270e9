//! A restore that is killed or interrupted at any call that writes leaves the old state or the new
//! one, and a restore of another backup afterwards is right.
//!
//! `torture/preload/fault.c` sends the signal. By default, 12 calls over the whole run get each
//! signal; `LARDER_RESTORE_POINTS` sets another number.

use crate::failing_calls::fault_library;
use crate::test_home::{Home, times};
use std::path::{Path, PathBuf};

const SIGKILL: i32 = 9;
const SIGINT: i32 = 2;

/// A store of five hundred contacts and two backups of earlier states of it.
struct Case {
    home: Home,
    library: PathBuf,
}

/// The numbers of items of the store and of the backups.
struct Counts {
    store: String,
    first: String,
    second: String,
}

fn case() -> Option<(Case, Counts)> {
    let home = Home::new();
    let library = fault_library(&home, "interrupted restores")?;
    home.generate("book.vcf", 500, 5);
    home.ok(&["import", "book.vcf"]);
    let count = || home.ok(&["find", "--count"]);
    home.ok(&["remove", "--query", "email:a*"]);
    home.ok(&["backup", "first.db"]);
    let first = count();
    home.ok(&["remove", "--query", "email:b*"]);
    home.ok(&["backup", "second.db"]);
    let second = count();
    home.ok(&["undo"]);
    home.generate("more.vcf", 20, 6);
    home.ok(&["import", "more.vcf"]);
    let store = count();
    assert!(store != first && first != second);
    copy_folder(&home.data(), &home.work("base"));
    Some((Case { home, library }, Counts { store, first, second }))
}

fn copy_folder(from: &Path, to: &Path) {
    let _none = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    let mode = std::fs::metadata(from).unwrap().permissions();
    std::fs::set_permissions(to, mode).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

impl Case {
    /// Puts the store back into its first state.
    fn reset(&self, damaged: bool) {
        copy_folder(&self.home.work("base"), &self.home.data());
        if damaged {
            let data = self.home.data().join("data.db");
            let mut bytes = std::fs::read(&data).unwrap();
            bytes[..4096].fill(0xa5);
            std::fs::write(&data, bytes).unwrap();
        }
    }

    /// Restores the first backup with further environment variables. Returns the exit code; -1: a
    /// signal ended the restore.
    fn restore_first(&self, variables: &[(&str, String)]) -> i32 {
        let mut command = self.home.command(&["restore", "first.db"]);
        command.env("LD_PRELOAD", &self.library).env("TORTURE_ROOT", self.home.data());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        self.home.finish(command.output().unwrap()).code
    }

    /// Returns the number of calls that a restore makes.
    fn count_calls(&self, damaged: bool) -> u64 {
        self.reset(damaged);
        let count = self.home.work("count");
        let _none = std::fs::remove_file(&count);
        let code = self.restore_first(&[("TORTURE_COUNT", count.display().to_string())]);
        assert_eq!(code, 0);
        std::fs::read_to_string(&count).unwrap().trim().parse().unwrap()
    }

    /// Returns the names of the files of the database that are left in the data directory.
    fn databases(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.home.data()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter(|name| name.starts_with("data.db") && !name.contains("damaged"))
            .filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm"))
            .collect();
        names.sort();
        names
    }
}

/// Ends a restore at some calls of its run. Each time, the store is the old or the new one, and a
/// restore of the other backup is right.
fn end_restores(signal: i32, damaged: bool, name: &str) {
    let Some((case, counts)) = case() else { return };
    let home = &case.home;
    let calls = case.count_calls(damaged);
    assert!(calls > 20, "{calls} calls");
    let points = times("LARDER_RESTORE_POINTS", 12).min(calls);
    let (mut old, mut ended) = (0, 0);
    for point in 0..points {
        let at = point * calls / points;
        let what = format!("{name} at call {at} of {calls}");
        case.reset(damaged);
        let code = case.restore_first(&[
            ("TORTURE_AT", at.to_string()),
            ("TORTURE_SIGNAL", signal.to_string()),
        ]);
        // An interrupt that comes too late does not stop a restore.
        let codes: &[i32] = if signal == SIGINT { &[0, 130] } else { &[-1] };
        assert!(codes.contains(&code), "{what}: exit code {code}");
        ended += u32::from(code != 0);
        let run = home.run(&["check"]);
        if damaged && run.code == 4 {
            assert!(run.stderr().contains("is damaged"), "{what}: {}", run.masked_output());
            old += 1;
        } else {
            assert_eq!(run.code, 0, "{what}: {}", run.masked_output());
            let found = home.ok(&["find", "--count"]);
            let is_old = found == counts.store;
            assert!(is_old || found == counts.first, "{what}: {found}");
            old += u32::from(is_old);
            // What was said to be interrupted did not happen, and left nothing.
            assert!(code != 130 || is_old, "{what}: the store was changed");
            let mut expected = vec!["data.db"];
            if !is_old && !damaged {
                expected.push("data.db.before-restore");
            }
            assert_eq!(case.databases(), expected, "{what}");
        }
        home.ok(&["restore", "second.db"]);
        let run = home.run(&["check"]);
        assert_eq!(run.code, 0, "{what}: {}", run.masked_output());
        assert_eq!(home.ok(&["find", "--count"]), counts.second, "{what}");
    }
    assert!(old > 0 && ended > 0, "{name}: {old} were not yet restored, {ended} ended early");
}

#[test]
fn a_killed_restore_harms_no_later_one() {
    end_restores(SIGKILL, false, "SIGKILL");
}

#[test]
fn an_interrupted_restore_harms_no_later_one() {
    end_restores(SIGINT, false, "SIGINT");
}

#[test]
fn a_killed_restore_of_a_damaged_store_harms_no_later_one() {
    end_restores(SIGKILL, true, "SIGKILL with a damaged store");
}

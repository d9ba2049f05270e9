//! Evolution-data-server's own installed test programs against `larder serve --eds`.
//!
//! `scripts/eds-clients.sh` runs them; without names it runs all of them and counts.

use crate::test_home::{Home, LARDER, left_out};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/eds-clients.sh");

#[track_caller]
fn check(programs: &[&str]) {
    let home = Home::new();
    let mut command = home.program(SCRIPT);
    command.arg(LARDER).args(programs.iter().map(|name| format!("test-book-client-{name}")));
    let run = home.finish(command.output().unwrap());
    match run.code {
        0 => {}
        77 => left_out("eds_clients", run.stderr().trim()),
        _ => panic!("{}{}", run.stdout(), run.stderr()),
    }
}

#[test]
fn usage() {
    let home = Home::new();
    let run = home.run(&["serve"]);
    assert_eq!(run.code, 2, "{}", run.stderr());
    assert!(run.stderr().contains("--eds"), "{}", run.stderr());
    let run = home.run(&["serve", "--eds"]);
    assert_eq!(run.code, 5, "{}", run.stderr());
    assert!(
        run.stderr().starts_with("error: cannot find the D-Bus session bus"),
        "{}",
        run.stderr()
    );
    let address = format!("unix:path={}", home.work("nothing").display());
    let run = home.command(&["serve", "--eds"]).env("DBUS_SESSION_BUS_ADDRESS", address).output();
    let run = home.finish(run.unwrap());
    assert_eq!(run.code, 5, "{}", run.stderr());
    assert!(
        run.stderr().starts_with("error: no connection to the session bus: "),
        "{}",
        run.stderr()
    );
}

#[test]
fn service_files() {
    let home = Home::new();
    let args = ["serve", "--eds", "--data-dir", "store", "--service-files", "a/b"];
    let run = home.run(&args);
    assert_eq!((run.code, run.stdout().lines().count()), (0, 2), "{}", run.stderr());
    let name = "org.gnome.evolution.dataserver.Sources5";
    let text = std::fs::read_to_string(home.work(&format!("a/b/{name}.service"))).unwrap();
    let store = home.work("store");
    let expect = format!(
        "[D-BUS Service]\nName={name}\nExec=\"{LARDER}\" --quiet --data-dir \"{}\" serve --eds --idle 10\n",
        store.display()
    );
    assert_eq!(text, expect);
    assert!(!store.exists());
}

/// SIGTERM stops the service with exit code 0.
#[test]
fn a_termination_signal_stops_the_service() {
    let home = Home::new();
    let script = r#"mkfifo said; "$1" serve --eds 2>said & read line <said; echo "$line"
        kill -TERM $!; wait $!; echo "exit $?""#;
    let mut command = home.program("dbus-run-session");
    command.args(["--", "/bin/sh", "-c", script, "sh", LARDER]);
    match command.output() {
        Err(error) => left_out("a_termination_signal_stops_the_service", &error.to_string()),
        Ok(output) => {
            let run = home.finish(output);
            assert_eq!(run.stdout(), "note: serving address books\nexit 0\n", "{}", run.stderr());
        }
    }
}

#[test]
fn contacts_are_added_and_found() {
    check(&["add-contact", "get-contact", "get-contact-uids"]);
}

#[test]
fn contacts_are_changed_and_removed() {
    check(&["modify-contact", "remove-contact"]);
}

#[test]
fn revisions() {
    check(&["get-revision", "write-write"]);
}

#[test]
fn views() {
    check(&["get-view", "view-operations", "uid-only-view"]);
}

//! Mercurial repositories through git: `git clone hg::...` with larder as the remote helper, and
//! `larder hg`.

use crate::test_home::{Home, LARDER, left_out};
use std::path::Path;
use std::process::Command;

/// Returns whether Mercurial is there; says that the test is left out if not.
fn has_mercurial(test: &str) -> bool {
    let found = Command::new("hg").arg("version").output().is_ok_and(|out| out.status.success());
    found || {
        left_out(test, "no hg");
        false
    }
}

/// A home with a repository of Mercurial in `project`, and git-remote-hg on the PATH.
fn home_with_mercurial() -> Home {
    let home = Home::new();
    std::os::unix::fs::symlink(LARDER, home.work("git-remote-hg")).unwrap();
    let hg = |args: &[&str]| {
        let mut command = home.program("hg");
        command.env("HGPLAIN", "1").env("HGRCPATH", "").args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    hg(&["init", "project"]);
    home.write("project/walrus.txt", "tusks\n");
    commit(&home, "the walrus\n\nsank", 1_000_000_000);
    home.write("project/walrus.txt", "tusks\nwhiskers\n");
    commit(&home, "whiskers", 1_000_000_100);
    home
}

fn commit(home: &Home, message: &str, seconds: u32) {
    let date = format!("{seconds} -7200");
    let mut command = home.program("hg");
    command.env("HGPLAIN", "1").env("HGRCPATH", "").args(["-R", "project", "commit", "-A", "-q"]);
    command.args(["-m", message, "-u", "Anna Berg <anna@example.org>", "-d", &date]);
    assert!(command.status().unwrap().success());
}

/// Runs git with the remote helper on its PATH; returns its exit code and all that it prints.
fn git(home: &Home, args: &[&str]) -> (i32, String) {
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = home.work(".");
    let mut command = home.program("git");
    command.env("PATH", format!("{}:{path}", folder.display())).args(args);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).trim().to_string())
}

fn url(home: &Home, name: &str) -> String {
    format!("hg::{}", home.work(name).display())
}

fn node(home: &Home, revision: &str) -> String {
    let mut command = home.program("hg");
    command.env("HGPLAIN", "1").env("HGRCPATH", "");
    command.args(["-R", "project", "log", "-r", revision, "-T", "{node}"]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_repository_is_cloned_and_fetched() {
    if !has_mercurial("a_repository_is_cloned_and_fetched") {
        return;
    }
    let home = home_with_mercurial();
    let (code, text) = git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    assert_eq!(code, 0, "{text}");
    // The ids are those of git-cinnabar: they follow from the bytes alone.
    let (_, log) = git(&home, &["-C", "clone", "log", "--format=%an %ae %ad %s"]);
    let zone = "2001 +0200";
    assert_eq!(
        log,
        format!(
            "Anna Berg anna@example.org Sun Sep 9 03:48:20 {zone} whiskers\n\
             Anna Berg anna@example.org Sun Sep 9 03:46:40 {zone} the walrus"
        )
    );
    assert_eq!(std::fs::read(home.work("clone/walrus.txt")).unwrap(), b"tusks\nwhiskers\n");
    home.write("project/seal.txt", "flippers\n");
    commit(&home, "the seal", 1_000_000_200);
    assert_eq!(git(&home, &["-C", "clone", "pull", "-q", "--ff-only"]), (0, String::new()));
    assert!(home.work("clone/seal.txt").exists());
    let (code, text) = git(&home, &["-C", "clone", "fsck", "--full", "--no-dangling"]);
    assert_eq!((code, text.as_str()), (0, ""));
    let newest = node(&home, "tip");
    let found = home.run(&["hg", "--repository", "clone", "git2hg", "HEAD"]);
    assert_eq!(found.stdout().trim(), newest);
    let (_, head) = git(&home, &["-C", "clone", "rev-parse", "HEAD"]);
    let found = home.run(&["hg", "--repository", "clone", "hg2git", &newest[..12], "00112233"]);
    assert_eq!(found.code, 1);
    assert_eq!(found.stdout(), format!("{head}\n{}\n", "0".repeat(40)));
}

/// A command stands in for ssh: it leaves out the host, and runs the rest here.
#[test]
fn a_server_behind_ssh_is_cloned() {
    if !has_mercurial("a_server_behind_ssh_is_cloned") {
        return;
    }
    let home = home_with_mercurial();
    home.write("ssh", "#!/bin/sh\nshift\nexec sh -c \"$*\"\n");
    let program = home.work("ssh");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let (code, text) = git(&home, &["clone", "-q", &url(&home, "project"), "at-path"]);
    assert_eq!(code, 0, "{text}");
    let url = format!("hg::ssh://example.org/{}", home.work("project").display());
    let setting = format!("core.sshCommand={}", program.display());
    let (code, text) = git(&home, &["-c", &setting, "clone", "-q", &url, "at-server"]);
    assert_eq!(code, 0, "{text}");
    let refs = |clone: &str| git(&home, &["-C", clone, "for-each-ref", "refs/remotes"]);
    assert_eq!(refs("at-server"), refs("at-path"));
}

#[test]
fn an_import_is_forgotten_and_repeated() {
    if !has_mercurial("an_import_is_forgotten_and_repeated") {
        return;
    }
    let home = home_with_mercurial();
    let run = |args: &[&str]| {
        let output = home.program("hg").env("HGRCPATH", "").args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["-q", "-R", "project", "bundle", "--all", "-t", "zstd-v2", "project.hg"]);
    git(&home, &["init", "-q", "repository"]);
    let hg = |args: &[&str]| home.run(&[&["hg", "--repository", "repository"], args].concat());
    let bundle = std::fs::read(home.work("project.hg")).unwrap();
    home.write("cut.hg", &bundle[..bundle.len() / 2]);
    let cut = hg(&["unbundle", "cut.hg"]);
    assert_eq!(cut.code, 5);
    assert!(cut.stderr().contains("error: cut.hg: "), "{}", cut.stderr());
    assert_eq!(hg(&["unbundle", "project.hg"]).code, 0);
    let newest = node(&home, "tip");
    let commit = hg(&["hg2git", &newest]).stdout();
    assert_eq!(hg(&["rollback"]).code, 0);
    assert_eq!(hg(&["hg2git", &newest]).code, 1);
    assert_eq!(hg(&["rollback"]).code, 1);
    assert_eq!(hg(&["unbundle", "project.hg"]).code, 0);
    assert_eq!(hg(&["hg2git", &newest]).stdout(), commit);
    let converted = home.run(&["hg", "convert", "project", "converted.git"]);
    assert_eq!(converted.code, 0);
    let (_, head) = git(&home, &["-C", "converted.git", "rev-parse", "HEAD"]);
    assert_eq!(head, commit.trim());
}

#[test]
fn what_is_not_supported_is_refused() {
    if !has_mercurial("what_is_not_supported_is_refused") {
        return;
    }
    let home = home_with_mercurial();
    let (code, text) = git(&home, &["clone", "-q", "--depth", "1", "hg::project", "shallow"]);
    assert_eq!(code, 128);
    assert!(text.contains("shallow clones of Mercurial repositories are not supported"), "{text}");
    assert!(!Path::new(&home.work("shallow")).exists());
    git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    let (code, text) = git(&home, &["-C", "clone", "push", "-q", "origin", "HEAD:refs/heads/x"]);
    assert_eq!(code, 1);
    assert!(text.contains("pushing to Mercurial is not supported yet"), "{text}");
    let (code, text) = git(&home, &["clone", "-q", "hg::missing", "none"]);
    assert_eq!(code, 128);
    assert!(text.contains("missing: No such file or directory"), "{text}");
}

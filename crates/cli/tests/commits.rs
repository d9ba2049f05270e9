//! Commits of git repositories on the command line: sources, synchronisation, searches, `show`.

use crate::test_home::{ANNA, Home};
use insta::assert_snapshot;
use std::fs;

/// Runs git in a folder of the working directory.
fn git(home: &Home, folder: &str, arguments: &[&str]) -> String {
    let mut git = home.program("git");
    git.current_dir(home.work(folder)).args(arguments).env("GIT_CONFIG_NOSYSTEM", "1");
    for (name, person) in [("AUTHOR", "Anna Berg"), ("COMMITTER", "Otto Sand")] {
        git.env(format!("GIT_{name}_NAME"), person);
        let mail = format!("{}@example.org", person.split(' ').next().unwrap().to_lowercase());
        git.env(format!("GIT_{name}_EMAIL"), mail);
    }
    let output = git.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// Commits a file at a time, so that the hash is always the same.
fn commit(home: &Home, folder: &str, path: &str, message: &str, day: u32) -> String {
    home.write(&format!("{folder}/{path}"), message);
    git(home, folder, &["add", "-A"]);
    let date = format!("2020-01-{day:02}T10:00:00+0000");
    let mut git_commit = home.program("git");
    git_commit.current_dir(home.work(folder)).args(["commit", "-q", "-m", message]);
    for (name, person) in [("AUTHOR", "Anna Berg"), ("COMMITTER", "Otto Sand")] {
        git_commit.env(format!("GIT_{name}_NAME"), person).env(format!("GIT_{name}_DATE"), &date);
        let mail = format!("{}@example.org", person.split(' ').next().unwrap().to_lowercase());
        git_commit.env(format!("GIT_{name}_EMAIL"), mail);
    }
    assert!(git_commit.status().unwrap().success());
    git(home, folder, &["rev-parse", "HEAD"])
}

/// A home with a repository of two commits, which is registered and indexed.
pub(crate) fn home_with_repository() -> Home {
    let home = Home::new();
    make_repository(&home);
    home
}

/// Makes a repository of two commits, registers and indexes it.
pub(crate) fn make_repository(home: &Home) {
    fs::create_dir(home.work("project")).unwrap();
    git(home, "project", &["init", "-q", "-b", "main"]);
    commit(home, "project", "src/main.rs", "Begin\n\nThe walrus sank.", 1);
    commit(home, "project", "docs/guide.md", "Describe the walrus", 2);
    home.ok(&["sources", "add", "project"]);
    home.ok(&["sync"]);
}

/// Lines of a narrow list have dates without times, as those of messages.
#[test]
fn lists_of_commits_fit_narrow_terminals() {
    let home = home_with_repository();
    let list = |columns: &str, args: &[&str]| {
        let args = [&["find", "walrus"], args].concat();
        let output = home.command(&args).env("COLUMNS", columns).output().unwrap();
        home.finish(output).stdout()
    };
    assert_snapshot!(list("40", &["--kind", "commit"]), @"
    c014781  2020-01-02  Anna Berg  Describ…
    21bfb1c  2020-01-01  Anna Berg  Begin
    ");
    assert_eq!(list("40", &[]), list("40", &["--kind", "commit"]));
    assert_snapshot!(list("80", &[]), @"
    c014781  2020-01-02 10:00  Anna Berg  Describe the walrus
    21bfb1c  2020-01-01 10:00  Anna Berg  Begin
    ");
}

#[test]
fn a_repository_is_registered_indexed_and_searched() {
    let home = Home::new();
    fs::create_dir(home.work("project")).unwrap();
    git(&home, "project", &["init", "-q", "-b", "main"]);
    let first = commit(&home, "project", "src/main.rs", "Begin\n\nThe walrus sank.", 1);
    commit(&home, "project", "docs/guide.md", "Describe the walrus", 2);
    assert_snapshot!(home.run(&["sources", "add", "project"]).masked_output(), @"project is [HOME]/work/project (git repository, 1 ref); to index it: larder sync");
    assert_snapshot!(home.run(&["sync"]).masked_output(), @"project: 2 commits added (1 ref)");
    assert_snapshot!(home.run(&["sync"]).masked_output(), @"project: nothing changed (1 ref)");
    assert_snapshot!(home.run(&["sources"]).masked_output(), @"project  2 commits  [HOME]/work/project");
    assert_snapshot!(home.run(&["collections"]).masked_output(), @"project               2 commits");
    assert_snapshot!(home.run(&["find", "--kind", "commit", "walrus"]).masked_output(), @r"
    c014781  2020-01-02 10:00  Anna Berg  Describe the walrus
    21bfb1c  2020-01-01 10:00  Anna Berg  Begin
    ");
    assert_snapshot!(home.run(&["find", "--kind", "commit", "author:anna", "path:src/*.rs", "date:..2020-01-01"]).masked_output(), @"21bfb1c  2020-01-01 10:00  Anna Berg  Begin");
    assert_snapshot!(home.run(&["find", "--kind", "commit", "--sort", "date", "--fields", "author,committer,subject"]).masked_output(), @r"
    21bfb1c	Anna Berg <anna@example.org>	Otto Sand <otto@example.org>	Begin
    c014781	Anna Berg <anna@example.org>	Otto Sand <otto@example.org>	Describe the walrus
    ");
    assert_snapshot!(home.run(&["find", "--in", "project", "guide"]).masked_output(), @r"
    ! note: no results
    exit 1
    ");
    assert_eq!(home.ok(&["find", "--in", "project", "begin", "--count"]).trim(), "1");
    assert_snapshot!(home.run(&["find", "--kind", "commit", "--in", "other"]).masked_output(), @r#"
    ! error: no repository is named "other"
    ! hint: registered repositories: project
    exit 2
    "#);
    assert_snapshot!(home.run(&["find", "--kind", "commit", "begin", "--format", "json"]).masked_output(), @r#"{"kind":"commit","id":"38fmf2vhtss7m","collection":"project","hash":"21bfb1c8f7f1302f5d6b260ba1ec6bcf589c3127","date":"2020-01-01T10:00:00Z","timestamp":1577872800,"author":{"name":"Anna Berg","address":"anna@example.org"},"committer":{"name":"Otto Sand","address":"otto@example.org"},"commit_date":"2020-01-01T10:00:00Z","subject":"Begin","parents":[]}"#);
    assert_snapshot!(home.run(&["show", &first[..7]]).masked_output(), @r"
    Begin
    commit      21bfb1c8f7f1302f5d6b260ba1ec6bcf589c3127
    repository  project
    author      Anna Berg <anna@example.org>
    date        Wed 1 Jan 2020, 10:00
    committer   Otto Sand <otto@example.org>

    The walrus sank.

    A  src/main.rs
    ");
    assert_snapshot!(home.run(&["show", &first, "--format", "json"]).masked_output(), @r#"{"kind":"commit","id":"38fmf2vhtss7m","collection":"project","hash":"21bfb1c8f7f1302f5d6b260ba1ec6bcf589c3127","date":"2020-01-01T10:00:00Z","timestamp":1577872800,"author":{"name":"Anna Berg","address":"anna@example.org"},"committer":{"name":"Otto Sand","address":"otto@example.org"},"commit_date":"2020-01-01T10:00:00Z","subject":"Begin","body":"The walrus sank.\n","parents":[],"paths":[{"path":"src/main.rs","change":"A"}]}"#);
    assert_snapshot!(home.run(&["show", &first, "--raw"]).masked_output(), @r"
    tree 535271cf9137c219a3615fb719129ddce30f7ba6
    author Anna Berg <anna@example.org> 1577872800 +0000
    committer Otto Sand <otto@example.org> 1577872800 +0000

    Begin

    The walrus sank.
    ");
    let check = home.ok(&["check"]);
    assert!(
        check.lines().any(|line| line.starts_with("commits.db") && line.ends_with("2 commits"))
    );
}

/// Commits of a clone without trees are shown without their paths.
#[test]
fn commits_without_trees_are_shown() {
    let home = Home::new();
    fs::create_dir(home.work("origin")).unwrap();
    git(&home, "origin", &["init", "-q", "-b", "main"]);
    git(&home, "origin", &["config", "uploadpack.allowFilter", "true"]);
    let hash = commit(&home, "origin", "src/main.rs", "Begin\n\nThe walrus sank.", 1);
    let url = format!("file://{}", home.work("origin").display());
    git(&home, "", &["clone", "-q", "--bare", "--filter=tree:0", &url, "clone"]);
    home.ok(&["sources", "add", "clone"]);
    let run = home.run(&["sync"]);
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let note = format!("note: the paths of {hash} are left out: git cannot read [HOME]/work/clone");
    let run = home.run(&["show", &hash]);
    let output = run.masked_output();
    assert!(run.code == 0 && output.contains(&note), "{output}");
    assert!(run.stdout().ends_with("\nThe walrus sank.\n"), "{output}");
    let output = home.run(&["show", &hash, "--format", "json"]).stdout();
    assert!(output.ends_with("\"paths\":[]}\n"), "{output}");
    let run = home.run(&["show", &hash, "--raw"]);
    let output = run.masked_output();
    assert!(run.code == 0 && !output.contains("note:"), "{output}");
}

#[test]
fn one_question_is_answered_in_groups() {
    let home = home_with_repository();
    home.write("book.vcf", ANNA);
    home.ok(&["import", "book.vcf"]);
    let message = "Message-ID: <m1@example.org>\nFrom: Anna <anna@example.org>\nSubject: walrus\n\
                   Date: Thu, 01 Jan 2026 10:00:00 +0000\n\nText.\n";
    home.write("Mail/cur/1:2,S", message);
    fs::create_dir(home.work("Mail/new")).unwrap();
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    assert_snapshot!(home.run(&["find", "anna"]).masked_output(), @r"
    Contacts
    xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works

    Messages
    8t6tfc87  2026-01-01 10:00  Anna  walrus

    Commits
    c014781  2020-01-02 10:00  Anna Berg  Describe the walrus
    21bfb1c  2020-01-01 10:00  Anna Berg  Begin
    ");
    assert_snapshot!(home.run(&["find", "anna", "--count"]).masked_output(), @"4");
    assert_snapshot!(home.run(&["find", "path:src"]).masked_output(), @"21bfb1c  2020-01-01 10:00  Anna Berg  Begin");
}

#[test]
fn changes_of_refs_are_followed() {
    let home = home_with_repository();
    git(&home, "project", &["commit", "-q", "--amend", "-m", "Describe the seal"]);
    assert_snapshot!(home.run(&["sync", "project"]).masked_output(), @"project: 1 commit added, 1 removed (1 ref)");
    assert_snapshot!(home.run(&["find", "--kind", "commit", "subject:describe"]).masked_output().split("Anna").last().unwrap_or_default(), @" Berg  Describe the seal");
    assert_snapshot!(home.run(&["sources", "remove", "project"]).masked_output(), @"project forgotten (2 commits); [HOME]/work/project is unchanged. Undo: larder undo 2, then larder sync");
    assert_snapshot!(home.run(&["find", "--kind", "commit"]).masked_output(), @r"
    ! note: no results
    exit 1
    ");
}

#[test]
fn wrong_sources_are_refused_and_missing_ones_named() {
    let home = home_with_repository();
    git(&home, "project", &["worktree", "add", "-q", "../second", "-b", "second"]);
    for arguments in [
        &["sources", "add", "second"][..],
        &["sources", "add", "project/.git", "--into", "again"],
        &["sources", "add", "project/src"],
        &["find", "--kind", "commit", "id:walrus"],
        &["find", "--kind", "commit", "--threads"],
        &["find", "--kind", "commit", "--sort", "size"],
        &["watch", "--kind", "commit", "--in", "other", "walrus"],
        &["searches", "add", "one", "--kind", "commit", "id:walrus"],
    ] {
        let run = home.run(arguments);
        assert_eq!(run.code, 2, "{arguments:?} {}", run.masked_output());
    }
    assert_snapshot!(home.run(&["sources", "add", "second"]).masked_output(), @r"
    ! error: [HOME]/work/second is already registered: it is the source project, [HOME]/work/project
    ! hint: larder sync indexes it
    exit 2
    ");
    let run = home.run(&["sources", "add", "project/.git"]);
    assert_snapshot!(run.masked_output(), @r"
    ! error: [HOME]/work/project/.git is already registered: it is the source project, [HOME]/work/project
    ! hint: larder sync indexes it
    exit 2
    ");
    assert_snapshot!(home.run(&["sources", "add", "project"]).masked_output(), @r"
    ! error: [HOME]/work/project is already registered: it is the source project
    ! hint: larder sync indexes it
    exit 2
    ");
    fs::rename(home.work("project"), home.work("away")).unwrap();
    assert_snapshot!(home.run(&["sync"]).masked_output(), @r"
    ! error: project: [HOME]/work/project is no git repository
    exit 5
    ");
    assert_eq!(home.run(&["sync"]).code, 5);
    // What is indexed is found, and the rest is named.
    assert_eq!(home.run(&["find", "--kind", "commit", "walrus"]).code, 0);
    let hash = home.run(&["find", "--kind", "commit", "begin", "--fields", "hash"]);
    let hash = hash.stdout().trim().rsplit('\t').next().unwrap().to_string();
    let run = home.run(&["show", &hash]);
    assert_eq!(run.code, 5, "{}", run.masked_output());
}

/// The next synchronisation makes a deleted index again, with the same IDs.
#[test]
fn a_deleted_index_is_made_again() {
    let home = home_with_repository();
    let find = || home.ok(&["find", "--kind", "commit", "--format", "json"]);
    let before = find();
    fs::remove_file(home.data().join("commits.db")).unwrap();
    assert_eq!(home.run(&["find", "--kind", "commit"]).code, 4);
    assert_eq!(home.ok(&["sync", "--quiet"]), "");
    assert_eq!(find(), before);
    // A copy from before the last run, as a power cut leaves it, is brought up to date.
    let copy = fs::read(home.data().join("commits.db")).unwrap();
    commit(&home, "project", "third", "Count the seals", 3);
    home.ok(&["sync"]);
    fs::write(home.data().join("commits.db"), copy).unwrap();
    home.ok(&["sync"]);
    assert_eq!(find().lines().count(), 3);
}

#[test]
fn without_git_a_message_says_what_to_do() {
    let home = home_with_repository();
    let mut sync = home.program(crate::test_home::LARDER);
    let output = sync.arg("sync").env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"error: project: git is not installed, or not in PATH, and repositories are read through it: install git, and run larder sync again");
}

#[test]
fn commits_are_counted_by_saved_searches_and_watched() {
    let home = home_with_repository();
    let add = |name: &str, query: &str| {
        home.run(&["searches", "add", name, query, "--kind", "commit"]).masked_output()
    };
    assert_snapshot!(add("docs", "path:docs walrus"), @"@docs added: 1 commit. Undo: larder undo 2");
    assert_snapshot!(add("all", "@docs or author:anna"), @"@all added: 2 commits. Undo: larder undo 3");
    assert_snapshot!(home.run(&["searches"]).masked_output(), @r"
    all   2 commits  @docs or author:anna
    docs  1 commit   path:docs walrus
    ");
    let watch = |arguments: &[&str]| {
        let command = [&["watch", "--kind", "commit", "--changes", "0"], arguments].concat();
        home.run(&command).masked_output()
    };
    assert_snapshot!(watch(&["@all"]), @r"
    + c014781  2020-01-02 10:00  Anna Berg  Describe the walrus
    + 21bfb1c  2020-01-01 10:00  Anna Berg  Begin
    ");
    let objects = watch(&["walrus", "--format", "json"]);
    let objects: Vec<serde_json::Value> =
        objects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    assert_eq!(objects[0]["change"], "added");
    assert_eq!(objects[0]["subject"], "Describe the walrus");
    assert_eq!(objects[2]["change"], "complete");
    assert_snapshot!(watch(&["--in", "project", "path:docs"]), @"+ c014781  2020-01-02 10:00  Anna Berg  Describe the walrus");
    let by_name = home.ok(&["watch", "--changes", "0", "--in", "project", "path:docs"]);
    assert!(by_name.ends_with("Describe the walrus\n"), "{by_name}");
}

/// The ID that lists show is known, and the repository is not changed.
#[test]
fn a_purge_of_a_commit_names_its_repository() {
    let home = home_with_repository();
    let commit = &home.json(&["find", "--kind", "commit"])[0];
    let id = commit["id"].as_str().unwrap();
    let refused = home.code(&["purge", "--yes", id], 2).stderr();
    assert!(refused.contains("is a commit: it is in the repository"), "{refused}");
    assert!(refused.contains("larder sources remove project"), "{refused}");
    let unknown = home.code(&["purge", "--yes", "zzzzzzzz"], 1).stderr();
    assert!(unknown.contains("no item has the ID"), "{unknown}");
    assert_eq!(home.ok(&["find", "--kind", "commit", "--count"]).trim(), "2");
}

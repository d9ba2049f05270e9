//! Mercurial repositories through git: `git clone hg::...` with larder as the remote helper, and
//! `larder hg`.

use crate::command_server::SharedServer;
use crate::test_home::{Home, LARDER, left_out};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns whether Mercurial is there; says that the test is left out if not.
pub fn has_mercurial(test: &str) -> bool {
    let found = Command::new("hg").arg("version").output().is_ok_and(|out| out.status.success());
    found || {
        left_out(test, "no hg");
        false
    }
}

/// A home with git-remote-hg and git-cinnabar on the PATH.
fn home_with_programs() -> Home {
    let home = Home::new();
    for name in ["git-remote-hg", "git-cinnabar"] {
        std::os::unix::fs::symlink(LARDER, home.work(name)).unwrap();
    }
    home
}

/// The same with a repository of Mercurial in `project`.
pub fn home_with_mercurial() -> Home {
    let home = home_with_programs();
    git(&home, &["config", "--global", "fetch.prune", "true"]);
    hg(&home, &["init", "project"]);
    home.write("project/walrus.txt", "tusks\n");
    commit(&home, "the walrus\n\nsank", 1_000_000_000);
    home.write("project/walrus.txt", "tusks\nwhiskers\n");
    commit(&home, "whiskers", 1_000_000_100);
    home
}

/// Runs Mercurial in the folder of work, without settings of a user. Returns what it prints.
pub fn hg(home: &Home, args: &[&str]) -> String {
    static SERVER: SharedServer = SharedServer::new();
    let command = || {
        let mut command = home.program("hg");
        // The process outlives this home.
        command.env("HGPLAIN", "1").env("HGRCPATH", "").env_remove("TMPDIR");
        command
    };
    let folder = home.work(".");
    let folder = [OsStr::new("--cwd"), folder.as_os_str()];
    let all = folder.into_iter().chain(args.iter().map(OsStr::new));
    let output = SERVER.run(command, &all.collect::<Vec<_>>());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn commit(home: &Home, message: &str, seconds: u32) {
    let date = format!("{seconds} -7200");
    let author = ["-u", "Anna Berg <anna@example.org>", "-d", &date];
    hg(home, &[&["-R", "project", "commit", "-A", "-q", "-m", message], &author[..]].concat());
}

fn commit_file(home: &Home, name: &str) {
    home.write(&format!("project/{name}"), "flippers\n");
    commit(home, "the seal", 1_000_000_200);
}

/// Runs git with the remote helper on its PATH; returns its exit code and all that it prints.
pub fn git(home: &Home, args: &[&str]) -> (i32, String) {
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = home.work(".");
    let mut command = home.program("git");
    command.env("PATH", format!("{}:{path}", folder.display())).args(args);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).trim().to_string())
}

pub fn url(home: &Home, name: &str) -> String {
    format!("hg::{}", home.work(name).display())
}

pub fn node(home: &Home, revision: &str) -> String {
    hg(home, &["-R", "project", "log", "-r", revision, "-T", "{node}"])
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
    let found = home.run(&["hg", "--repository", "clone", "git2hg", "walrus", "HEAD"]);
    assert_eq!((found.code, found.stdout()), (1, format!("{}\n{newest}\n", "0".repeat(40))));
    assert_eq!(found.stderr(), "warning: git has no commit with the name \"walrus\"\n");
}

/// git takes milliseconds to start, most of the time of a fetch of few changesets.
#[test]
fn a_fetch_starts_few_processes_of_git() {
    if !has_mercurial("a_fetch_starts_few_processes_of_git") {
        return;
    }
    let home = home_with_mercurial();
    assert_eq!(git(&home, &["clone", "-q", &url(&home, "project"), "clone"]).0, 0);
    commit_file(&home, "seal.txt");
    let log = home.work("trace");
    let started = || {
        let _absent = std::fs::remove_file(&log);
        let setting = format!("GIT_TRACE={}", log.display());
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = home.program("env");
        command.arg(setting).arg(format!("PATH={}:{path}", home.work(".").display()));
        assert!(command.args(["git", "-C", "clone", "fetch", "-q"]).status().unwrap().success());
        let trace = std::fs::read_to_string(&log).unwrap();
        let commands =
            trace.lines().filter_map(|line| line.split_once("built-in: git ")?.1.split(' ').next());
        // git starts these itself.
        let own = ["fetch", "remote-hg", "fast-import", "rev-list", "maintenance", "gc"];
        let commands = commands.filter(|command| !own.contains(command));
        commands.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        started(),
        ["config", "cat-file", "rev-parse", "cat-file", "update-ref", "update-ref"]
    );
    assert_eq!(started(), ["config", "cat-file"]);
}

/// A clone is made in another folder than the fetches after it.
#[test]
fn a_relative_path_is_kept_from_the_root() {
    if !has_mercurial("a_relative_path_is_kept_from_the_root") {
        return;
    }
    let home = home_with_mercurial();
    let run = |args: &[&str]| {
        let (code, text) = git(&home, args);
        assert_eq!(code, 0, "git {args:?}: {text}");
        text
    };
    run(&["clone", "-q", "-o", "walrus", "hg::./project", "clone"]);
    let kept = run(&["-C", "clone", "config", "--get-all", "remote.walrus.url"]);
    assert_eq!(kept, url(&home, "project"));
    run(&["init", "-q", "fetched"]);
    run(&["-C", "fetched", "remote", "add", "origin", "hg::../project"]);
    // git stands in the root of the working tree.
    home.write("fetched/folder/file", "");
    run(&["-C", "fetched/folder", "fetch", "-q"]);
    let kept = run(&["-C", "fetched", "config", "--get-all", "remote.origin.url"]);
    assert_eq!(kept, url(&home, "fetched/../project"));
    commit_file(&home, "seal.txt");
    let tip = |repository: &str, remote: &str| {
        run(&["-C", repository, "fetch", "-q"]);
        let name = format!("{remote}/branches/default/tip");
        run(&["-C", repository, "log", "-1", "--format=%s", &name])
    };
    assert_eq!(tip("clone", "walrus"), "the seal");
    assert_eq!(tip("fetched", "origin"), "the seal");
    // A clone without changesets imports nothing.
    hg(&home, &["init", "empty"]);
    run(&["clone", "-q", "hg::empty", "empty-clone"]);
    run(&["-C", "empty-clone", "fetch", "-q"]);
}

/// The refs of earlier imports are in the way of new ones.
#[test]
fn a_bookmark_becomes_a_folder_and_a_folder_a_bookmark() {
    if !has_mercurial("a_bookmark_becomes_a_folder_and_a_folder_a_bookmark") {
        return;
    }
    let home = home_with_mercurial();
    let bookmark = |args: &[&str]| hg(&home, &[&["-R", "project", "bookmark"], args].concat());
    bookmark(&["-r", "0", "walrus/pup"]);
    git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    let folder = "refs/remotes/origin/bookmarks";
    let refs = || git(&home, &["-C", "clone", "for-each-ref", "--format=%(refname)", folder]).1;
    assert_eq!(refs(), format!("{folder}/walrus/pup"));
    bookmark(&["-r", "0", "walrus"]);
    assert_eq!(git(&home, &["-C", "clone", "fetch", "-q"]), (0, String::new()));
    assert_eq!(refs(), format!("{folder}/walrus\n{folder}/walrus%2Fpup"));
    bookmark(&["-d", "walrus"]);
    assert_eq!(git(&home, &["-C", "clone", "fetch", "-q"]), (0, String::new()));
    assert_eq!(refs(), format!("{folder}/walrus/pup"));
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
    hg(&home, &["-q", "-R", "project", "bundle", "--all", "-t", "zstd-v2", "project.hg"]);
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
    // The URL of a bundle is as good, and so is a repository.
    let url = format!("hg::FILE://localhost{}", home.work("project.hg").display());
    for source in [&url, "project"] {
        assert_eq!(hg(&["unbundle", source]).code, 0);
        assert_eq!(hg(&["hg2git", &newest]).stdout(), commit, "{source}");
        assert_eq!(hg(&["rollback"]).code, 0);
    }
    let converted = home.run(&["hg", "convert", "project", "converted.git"]);
    assert_eq!(converted.code, 0);
    let (_, head) = git(&home, &["-C", "converted.git", "rev-parse", "HEAD"]);
    assert_eq!(head, commit.trim());
}

/// Tags of git that are not made from Mercurial's stay; those that are follow Mercurial's.
#[test]
fn tags_of_others_are_kept() {
    if !has_mercurial("tags_of_others_are_kept") {
        return;
    }
    let home = home_with_mercurial();
    let hg_tag = |args: &[&str]| {
        let user = ["-u", "Anna Berg <anna@example.org>", "-d", "1000000200 0"];
        hg(&home, &[&["-R", "project", "tag"], &user[..], args].concat())
    };
    let tags = || {
        let run = home.run(&["hg", "--repository", "clone", "tags", "--format", "json"]);
        (run.code, run.stdout().trim().to_owned(), run.stderr())
    };
    let in_clone = |args: &[&str]| {
        let (code, text) = git(&home, &[&["-C", "clone"], args].concat());
        assert_eq!(code, 0, "git {args:?}: {text}");
        text
    };
    let expected = |tags: u32, deleted: u32, kept: &str| {
        format!(r#"{{"tags":{tags},"deleted":{deleted},"kept":[{kept}]}}"#)
    };
    for name in ["v1", "v2", "v3/a", "gone"] {
        hg_tag(&["-r", "0", name]);
    }
    git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    // One of the same name, one that is a folder of another.
    for name in ["v1", "v3"] {
        let author = ["-c", "user.name=x", "-c", "user.email=x"];
        in_clone(&[&author[..], &["tag", "-a", "-m", "mine", name]].concat());
    }
    let mine = in_clone(&["rev-parse", "refs/tags/v1", "refs/tags/v3"]);
    let (code, report, messages) = tags();
    assert_eq!((code, report), (1, expected(2, 0, r#""v1","v3/a""#)));
    let line = "warning: the tag v1 of Mercurial is not set: git has another one\n";
    assert!(messages.contains(line), "{messages}");
    assert_eq!(in_clone(&["rev-parse", "refs/tags/v1", "refs/tags/v3"]), mine);
    assert_eq!(in_clone(&["tag"]), "gone\nv1\nv2\nv3");
    // Moved, removed and in place of a folder.
    hg_tag(&["-f", "-r", "1", "v2"]);
    hg_tag(&["--remove", "gone"]);
    hg_tag(&["-r", "1", "gone/below"]);
    in_clone(&["tag", "-d", "v3"]);
    in_clone(&["fetch", "-q"]);
    assert_eq!(tags().1, expected(3, 1, r#""v1""#));
    assert_eq!(in_clone(&["tag"]), "gone/below\nv1\nv2\nv3/a");
    let second = home.run(&["hg", "--repository", "clone", "hg2git", &node(&home, "1")]).stdout();
    assert_eq!(in_clone(&["rev-parse", "refs/tags/v2"]), second.trim());
    // One that was changed in git is git's from then on, also after a rollback.
    in_clone(&["tag", "-f", "v2", "HEAD"]);
    in_clone(&["tag", "-d", "v1"]);
    assert_eq!(tags().1, expected(3, 0, r#""v2""#));
    assert_eq!(home.run(&["hg", "--repository", "clone", "rollback"]).code, 0);
    assert_eq!(tags().1, expected(3, 1, r#""v2""#));
    // A conversion goes on with what is there, tags of git included.
    git(&home, &["init", "-q", "--bare", "converted.git"]);
    let (_, text) = git(&home, &["-C", "converted.git", "hash-object", "-w", "HEAD"]);
    git(&home, &["-C", "converted.git", "update-ref", "refs/tags/v1", &text]);
    let converted = home.run(&["hg", "convert", "project", "converted.git"]);
    assert_eq!(converted.code, 1, "{}", converted.stderr());
    assert!(converted.stdout().contains("those of git were kept\n         v1\n"));
    assert_eq!(git(&home, &["-C", "converted.git", "rev-parse", "refs/tags/v1"]).1, text);
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

/// Ids that cannot be found are told from those that are not there.
#[test]
fn ids_of_another_form_are_named() {
    if !has_mercurial("ids_of_another_form_are_named") {
        return;
    }
    let home = home_with_mercurial();
    git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    let long = "0".repeat(41);
    let ids = ["35dba8", "tip", "", &long, "00112233", &node(&home, "0")[..8].to_uppercase()];
    let run = home.run(&[&["hg", "--repository", "clone", "hg2git"], &ids[..]].concat());
    assert_eq!(run.code, 1);
    let (_, first) = git(&home, &["-C", "clone", "rev-parse", "HEAD^"]);
    let zeros = format!("{}\n", "0".repeat(40));
    assert_eq!(run.stdout(), format!("{}{first}\n", zeros.repeat(5)));
    let line = |id: &str, fault: &str| format!("warning: {id:?} is no changeset: {fault}\n");
    let lines = [
        line("35dba8", "at least 8 digits of an id are needed"),
        line("tip", "an id has hexadecimal digits"),
        line("", "at least 8 digits of an id are needed"),
        line(&long, "an id has 40 digits"),
    ];
    assert_eq!(run.stderr(), lines.concat());
}

/// A program may ask for the next id when it has the answer for the last one. Two of the changesets
/// have ids with the same eight digits at their beginning.
#[test]
fn each_line_of_a_batch_is_answered_at_once() {
    if !has_mercurial("each_line_of_a_batch_is_answered_at_once") {
        return;
    }
    let home = home_with_programs();
    let hg = |args: &[&str]| hg(&home, args);
    hg(&["init", "project"]);
    for description in ["12773", "145184"] {
        hg(&["-R", "project", "update", "-q", "null"]);
        let allowed = ["-R", "project", "--config", "ui.allowemptycommit=1", "commit", "-q"];
        hg(&[&allowed[..], &["-u", "a", "-d", "0 0", "-m", description]].concat());
    }
    assert_eq!(home.run(&["hg", "convert", "project", "clone"]).code, 0);
    let mut command = home.command(&["hg", "--repository", "clone", "hg2git", "--batch"]);
    let mut program = home.spawn(command.stdin(Stdio::piped()));
    let mut input = program.stdin.take().unwrap();
    let mut answers = BufReader::new(program.stdout.take().unwrap()).lines().map(Result::unwrap);
    let find = ["-C", "clone", "log", "--branches", "--grep=145184", "--format=%H"];
    let (_, commit) = git(&home, &find);
    let ids = ["ee383053", "ee383053d96e3684565477573b0979c4f9d1c577"];
    for (id, answer) in ids.into_iter().zip(["0".repeat(40), commit]) {
        writeln!(input, "{id}").unwrap();
        assert_eq!(answers.next(), Some(answer));
    }
    drop(input);
    let run = home.finish(program.wait_with_output().unwrap());
    assert_eq!(run.code, 1);
    assert_eq!(run.stderr(), "warning: ee383053 is the beginning of 2 changesets\n");
}

#[test]
fn a_repository_without_imports_is_said_to_be_one() {
    if !has_mercurial("a_repository_without_imports_is_said_to_be_one") {
        return;
    }
    let home = home_with_mercurial();
    git(&home, &["init", "-q", "repository"]);
    let hg = |args: &[&str]| {
        let run = home.run(&[&["hg", "--repository", "repository"], args].concat());
        (run.code, run.stdout(), run.stderr())
    };
    let note = || "note: nothing was imported from Mercurial\n".to_owned();
    assert_eq!(hg(&["fsck"]), (1, String::new(), note()));
    assert_eq!(hg(&["tags"]), (1, String::new(), note()));
    assert_eq!(hg(&["rollback"]), (1, String::new(), note()));
    let zeros = format!("{}\n", "0".repeat(40));
    assert_eq!(hg(&["hg2git", "00112233"]), (1, zeros, note()));
    let none = "{\"forgotten\":0,\"changesets\":0}\n".to_owned();
    assert_eq!(hg(&["rollback", "--format", "json"]), (1, none, note()));
    let fetch = || git(&home, &["-C", "repository", "fetch", "-q", &url(&home, "project")]);
    assert_eq!(fetch().0, 0);
    commit_file(&home, "seal.txt");
    assert_eq!(fetch().0, 0);
    let message = "note: the last import is forgotten: 1 changeset\n".to_owned();
    let report = "{\"forgotten\":1,\"changesets\":2}\n".to_owned();
    assert_eq!(hg(&["rollback", "--format", "json"]), (0, report, message));
    let message = "note: the last import is forgotten: 2 changesets\n".to_owned();
    assert_eq!(hg(&["rollback"]), (0, String::new(), message));
}

/// The messages say what is there, in the words of users.
#[test]
fn places_without_mercurial_are_named() {
    let home = home_with_programs();
    git(&home, &["init", "-q", "repository"]);
    git(&home, &["init", "-q", "--bare", "bare"]);
    home.write("folder/letter.txt", "Dear walrus\n");
    let message = |source: &str| {
        let (code, text) = git(&home, &["ls-remote", source]);
        assert_eq!(code, 128, "{text}");
        assert!(!text.contains("damaged") && !text.contains("?cmd="), "{text}");
        text
    };
    for name in ["repository", "bare"] {
        let expected =
            format!("fatal: {name} is a repository of git, not of Mercurial; git takes it");
        let text = message(&format!("hg::{name}"));
        assert!(text.starts_with(&expected), "{text}");
    }
    let text = message("hg::folder");
    assert!(text.starts_with("fatal: folder is not a Mercurial repository"), "{text}");
    let text = message("hg::folder/letter.txt");
    assert!(text.starts_with("fatal: folder/letter.txt: not a bundle: it begins with"), "{text}");
    // Not a bundle without changes.
    home.write("zeros", [0; 400]);
    let text = message("hg::zeros");
    assert!(text.starts_with("fatal: zeros: not a bundle: it begins with"), "{text}");
    // A server that ends the connection, and is asked in clear and by TLS.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _read = stream.read(&mut [0; 1000]);
            let page = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
            let _written = stream.write_all(page.as_bytes());
        }
    });
    let text = message(&format!("hg::http://127.0.0.1:{port}/project"));
    let expected = format!("404 Not Found (http://127.0.0.1:{port}/project)");
    assert!(text.contains(&expected), "{text}");
    let text = message(&format!("hg::https://127.0.0.1:{port}/project"));
    let expected = format!("https://127.0.0.1:{port}/project: the server does not speak TLS");
    assert!(text.contains(&expected), "{text}");
    let text = message("hg::http://127.0.0.1:1/project");
    assert!(text.contains("http://127.0.0.1:1/project: Connection refused"), "{text}");
}

/// Settings that cannot be read are not those that are the default.
#[test]
fn settings_that_cannot_be_read_are_errors() {
    let home = Home::new();
    // Nothing listens there.
    let convert = |scheme: &str, name: &str, value: &str| {
        let source = format!("{scheme}://127.0.0.1:1/project");
        let mut command = home.command(&["hg", "convert", &source, "converted.git"]);
        let run = home.finish(command.env(name, value).output().unwrap());
        assert_ne!(run.code, 0);
        run.stderr()
    };
    let missing = "certificates (GIT_SSL_CAINFO, http.sslCAInfo): missing.pem: No such file";
    for scheme in ["https", "http"] {
        let message = convert(scheme, "GIT_SSL_CAINFO", "missing.pem");
        assert!(message.contains(missing), "{message}");
    }
    home.write("broken", "[core\n");
    let message = convert("https", "GIT_CONFIG_GLOBAL", "broken");
    assert!(message.contains("bad config line 1"), "{message}");
    home.write("authorities", "[http]\nsslCAInfo = missing.pem\n");
    let message = convert("https", "GIT_CONFIG_GLOBAL", "authorities");
    assert!(message.contains(missing), "{message}");
    home.write("authorities", "[http]\nsslCAInfo = ~/none.pem\n");
    let message = convert("https", "GIT_CONFIG_GLOBAL", "authorities");
    assert!(message.contains("home/none.pem: No such file"), "{message}");
}

/// A conversion is whole; with other metadata in its place, the faults are named.
#[test]
fn a_conversion_is_checked() {
    if !has_mercurial("a_conversion_is_checked") {
        return;
    }
    let home = home_with_mercurial();
    git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    let fsck = |args: &[&str]| home.run(&[&["hg", "--repository", "clone", "fsck"], args].concat());
    let (fast, full) = (fsck(&[]), fsck(&["--full"]));
    let counts = "2 changesets, 2 manifests, 2 file revisions checked\n";
    let fast_verdict = "OK, without the texts of manifests and files";
    assert_eq!((fast.code, fast.stdout()), (0, format!("{fast_verdict}: {counts}")));
    assert_eq!((full.code, full.stdout()), (0, format!("OK: {counts}")));
    // A changeset in place of one that is hidden now brings the manifest again.
    let amend = ["-R", "project", "commit", "--amend", "-m", "other", "-d", "1000000200 0"];
    hg(&home, &[&["--config", "experimental.evolution=all"], &amend[..]].concat());
    git(&home, &["-C", "clone", "fetch", "-q"]);
    let counts = "3 changesets, 2 manifests, 2 file revisions checked\n";
    assert_eq!(fsck(&["--full"]).stdout(), format!("OK: {counts}"));
    // The metadata without the history.
    let metadata = "refs/larder/hg/metadata";
    let tree = format!("{metadata}^{{tree}}");
    let author = ["-c", "user.name=x", "-c", "user.email=x"];
    let args = [&["-C", "clone"], &author[..], &["commit-tree", &tree, "-m", "x"]].concat();
    let (_, commit) = git(&home, &args);
    git(&home, &["-C", "clone", "update-ref", metadata, &commit]);
    let damaged = fsck(&[]);
    assert_eq!(damaged.code, 4);
    assert!(damaged.stdout().starts_with("damaged: 3 changesets"), "{}", damaged.stdout());
    let expected = "error: history: the commit that keeps it is missing\n";
    assert!(damaged.stderr().contains(expected), "{}", damaged.stderr());
}

/// A repository that git-cinnabar converted (a bundle of git with its metadata) is taken over.
#[test]
fn a_repository_of_git_cinnabar_is_taken_over() {
    let home = Home::new();
    git(&home, &["init", "-q", "repository"]);
    let hg = |args: &[&str]| home.run(&[&["hg", "--repository", "repository"], args].concat());
    assert_eq!(hg(&["import-cinnabar"]).code, 1);
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/../hg/tests/cinnabar/dblslash.bundle");
    let refs = "refs/cinnabar/metadata:refs/cinnabar/metadata";
    let (code, text) = git(&home, &["-C", "repository", "fetch", "-q", bundle, refs]);
    assert_eq!(code, 0, "{text}");
    let imported = hg(&["import-cinnabar"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr());
    let counts = "2 changesets, 2 manifests, 3 file revisions";
    assert!(imported.stdout().starts_with(&format!("taken over: {counts} (")));
    let note = "3 file revisions: of git-cinnabar, without the parents: these are tried\n";
    assert_eq!(hg(&["fsck", "--full"]).stdout(), format!("OK: {counts} checked\n{note}"));
    let again = hg(&["import-cinnabar"]);
    assert_eq!(again.code, 4);
    let message = "has metadata of larder already; to take over that of git-cinnabar in its \
                   place, forget it first: larder hg clear";
    assert!(again.stderr().contains(message), "{}", again.stderr());
    assert_eq!(hg(&["clear"]).code, 0);
    assert_eq!(hg(&["import-cinnabar"]).code, 0);
}

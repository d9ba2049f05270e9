//! Git repositories of other forms than a new clone: worktrees, borrowed objects, mirrors, several
//! remotes, SHA-256, no permission to write.

use crate::mercurial::{commit, git, has_mercurial, hg, home_with_mercurial, node, url};
use crate::test_home::Home;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

fn ok(home: &Home, args: &[&str]) -> String {
    let (code, text) = git(home, args);
    assert_eq!(code, 0, "git {args:?}: {text}");
    text
}

fn assert_sound(home: &Home, repository: &str) {
    let text = ok(home, &["-C", repository, "fsck", "--full", "--strict", "--no-dangling"]);
    assert_eq!(text, "", "{repository}");
}

fn metadata(home: &Home, repository: &str) -> String {
    ok(home, &["-C", repository, "rev-parse", "refs/larder/hg/metadata"])
}

fn add_changeset(home: &Home) {
    home.write("project/seal.txt", "flippers\n");
    commit(home, "the seal", 1_000_000_200);
}

/// Creates a second repository of Mercurial, with a history of its own.
fn create_other(home: &Home) {
    hg(home, &["init", "other"]);
    home.write("other/file", "of another history\n");
    hg(home, &["-q", "-R", "other", "commit", "-A", "-m", "other", "-u", "a", "-d", "0 0"]);
}

/// A bundle of what is new builds on what the clone has.
#[test]
fn a_bundle_of_new_changes_is_fetched() {
    if !has_mercurial("a_bundle_of_new_changes_is_fetched") {
        return;
    }
    let home = home_with_mercurial();
    ok(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    add_changeset(&home);
    // Its first changeset is a delta of that before.
    let range = ["--base", "1", "-r", "tip", "-t", "gzip-v1"];
    hg(&home, &[&["-q", "-R", "project", "bundle"], &range[..], &["new.hg"]].concat());
    ok(&home, &["-C", "clone", "remote", "add", "news", &url(&home, "new.hg")]);
    ok(&home, &["-C", "clone", "fetch", "-q", "news"]);
    let branch = "news/branches/default/tip";
    assert_eq!(ok(&home, &["-C", "clone", "log", "-1", "--format=%s", branch]), "the seal");
    assert_eq!(ok(&home, &["-C", "clone", "rev-list", "--count", branch]), "3");
    assert_sound(&home, "clone");
    // Without the clone there is nothing to build on.
    let (code, text) = git(&home, &["clone", "-q", &url(&home, "new.hg"), "other"]);
    assert_eq!(code, 128);
    let message = format!(" builds on {}, which is not here", node(&home, "1"));
    assert!(text.contains(&message), "{text}");
    ok(&home, &["init", "-q", "empty"]);
    for form in ["gzip-v1", "none-v2"] {
        hg(
            &home,
            &[&["-q", "-R", "project", "bundle"], &range[..4], &["-t", form, "x.hg"]].concat(),
        );
        let run = home.run(&["hg", "--repository", "empty", "unbundle", "x.hg"]);
        assert!(run.stderr().contains(&message), "{form}: {}", run.stderr());
    }
}

/// More refs than are worth a file each, and later changes of them.
#[test]
fn many_refs_are_packed_at_once() {
    if !has_mercurial("many_refs_are_packed_at_once") {
        return;
    }
    let home = home_with_mercurial();
    let write_bookmarks = |first: u32, revision: &str| {
        let node = node(&home, revision);
        let lines = (first..first + 150).map(|number| format!("{node} mark{number}\n"));
        home.write("project/.hg/bookmarks", lines.collect::<String>());
    };
    write_bookmarks(0, "0");
    ok(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    let run = home.run(&["hg", "convert", "project", "converted.git"]);
    assert_eq!(run.code, 0, "{}", run.stderr());
    let folder = home.work("clone/.git/refs/larder/hg/remotes");
    assert!(!folder.exists(), "a ref has a file of its own");
    // Some go, most move, some are new.
    write_bookmarks(20, "1");
    ok(&home, &["-C", "clone", "fetch", "-q", "--prune"]);
    let run = home.run(&["hg", "convert", "project", "converted.git"]);
    assert_eq!(run.code, 0, "{}", run.stderr());
    ok(&home, &["clone", "-q", &url(&home, "project"), "other"]);
    let format = "--format=%(objectname) %(refname)";
    let refs = |repository: &str, folder: &str| {
        ok(&home, &["-C", repository, "for-each-ref", format, folder])
    };
    let cloned = refs("other", "refs/remotes/origin");
    assert!(refs("clone", "refs/remotes/origin") == cloned);
    let cloned: Vec<String> = cloned
        .lines()
        .filter(|line| !line.ends_with("/HEAD"))
        .map(|line| line.replace("refs/remotes/origin/", "refs/heads/"))
        .collect();
    assert!(refs("converted.git", "refs/heads").lines().eq(cloned));
    for repository in ["clone", "converted.git", "other"] {
        assert_sound(&home, repository);
    }
    for folder in ["clone/.git", "converted.git"] {
        assert!(!home.work(folder).join("packed-refs.lock").exists());
    }
}

/// Mercurial's ids and SHA-1 are in the formats; a pack with them would break such a repository.
#[test]
fn repositories_of_sha_256_are_refused() {
    if !has_mercurial("repositories_of_sha_256_are_refused") {
        return;
    }
    let home = home_with_mercurial();
    ok(&home, &["init", "-q", "--object-format=sha256", "repository"]);
    let fetch = ["-C", "repository", "fetch", "-q", &url(&home, "project"), "HEAD:refs/heads/x"];
    let (code, text) = git(&home, &fetch);
    assert_eq!(code, 128);
    let expected = "not supported: a git repository with the object format sha256";
    assert!(text.contains(expected), "{text}");
    let packs = home.work("repository/.git/objects/pack");
    assert_eq!(std::fs::read_dir(packs).unwrap().count(), 0);
    // A new repository has the right format, whatever the user's default is.
    let mut command = home.command(&["hg", "convert", "project", "converted.git"]);
    let run = home.finish(command.env("GIT_DEFAULT_HASH", "sha256").output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr());
    assert_sound(&home, "converted.git");
}

#[test]
fn a_worktree_shares_the_metadata() {
    if !has_mercurial("a_worktree_shares_the_metadata") {
        return;
    }
    let home = home_with_mercurial();
    ok(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    ok(&home, &["-C", "clone", "worktree", "add", "-q", "--detach", "../tree"]);
    add_changeset(&home);
    ok(&home, &["-C", "tree", "fetch", "-q"]);
    let newest = node(&home, "tip");
    for repository in ["clone", "tree"] {
        assert_eq!(
            home.run(&["hg", "--repository", repository, "hg2git", &newest]).code,
            0,
            "{repository}"
        );
        assert_sound(&home, repository);
    }
    assert_eq!(home.run(&["hg", "--repository", "tree", "rollback"]).code, 0);
    assert_eq!(home.run(&["hg", "--repository", "clone", "hg2git", &newest]).code, 1);
}

/// git sets variables for a hook, which name the repository of the hook.
#[test]
fn a_named_repository_is_not_that_of_the_environment() {
    if !has_mercurial("a_named_repository_is_not_that_of_the_environment") {
        return;
    }
    let home = home_with_mercurial();
    for name in ["hook.git", "named.git"] {
        assert_eq!(home.run(&["hg", "convert", "project", name]).code, 0);
    }
    let in_hook = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("GIT_DIR", home.work("hook.git"));
        command.env("GIT_OBJECT_DIRECTORY", home.work("hook.git/objects"));
        home.finish(command.output().unwrap())
    };
    let has_metadata = |repository: &str| {
        let args = ["-C", repository, "rev-parse", "-q", "--verify", "refs/larder/hg/metadata"];
        git(&home, &args).0 == 0
    };
    let run = in_hook(&["hg", "--repository", "named.git", "clear"]);
    assert_eq!(run.code, 0, "{}", run.stderr());
    assert!(has_metadata("hook.git") && !has_metadata("named.git"));
    let run = in_hook(&["hg", "convert", "project", "converted.git"]);
    assert_eq!(run.code, 0, "{}", run.stderr());
    assert_sound(&home, "converted.git");
    assert!(has_metadata("converted.git"));
    // Without a name, it is the repository of the hook.
    assert_eq!(in_hook(&["hg", "clear"]).code, 0);
    assert!(!has_metadata("hook.git"));
}

/// Returns the number of objects in the packs of a repository itself.
fn own_objects(home: &Home, repository: &str) -> usize {
    let counts = ok(home, &["-C", repository, "count-objects", "-v"]);
    let count = counts.lines().find_map(|line| line.strip_prefix("in-pack: "));
    count.unwrap().parse().unwrap()
}

/// With the metadata of the other repository, nothing is converted again; what is newer has its own
/// objects. A `--shared` clone converts into its own packs.
#[test]
fn objects_of_another_repository_are_borrowed() {
    if !has_mercurial("objects_of_another_repository_are_borrowed") {
        return;
    }
    let home = home_with_mercurial();
    let url = url(&home, "project");
    ok(&home, &["clone", "-q", &url, "first"]);
    let all = own_objects(&home, "first");
    let setting = format!("cinnabar.clone={}", home.work("first").display());
    ok(&home, &["-c", &setting, "clone", "-q", "--reference", "first", &url, "second"]);
    assert_eq!(own_objects(&home, "second"), 0);
    assert_eq!(metadata(&home, "second"), metadata(&home, "first"));
    ok(&home, &["clone", "-q", "--shared", "first", "third"]);
    let fetch_third = ["-C", "third", "fetch", "-q", &url, "+refs/heads/*:refs/remotes/hg/*"];
    ok(&home, &fetch_third);
    assert_eq!(own_objects(&home, "third"), all);
    add_changeset(&home);
    ok(&home, &["-C", "second", "fetch", "-q"]);
    ok(&home, &fetch_third);
    let new = own_objects(&home, "second");
    assert!(0 < new && new < all, "{new} of {all}");
    assert_eq!(own_objects(&home, "third"), all + new);
    for repository in ["second", "third"] {
        assert_sound(&home, repository);
    }
    assert_eq!(metadata(&home, "second"), metadata(&home, "third"));
    std::fs::rename(home.work("first"), home.work("elsewhere")).unwrap();
    assert_ne!(git(&home, &["-C", "second", "fsck"]).0, 0);
}

/// The refs of a mirror are those of the remote, but the metadata is nobody else's.
#[test]
fn pruning_a_mirror_keeps_the_metadata() {
    if !has_mercurial("pruning_a_mirror_keeps_the_metadata") {
        return;
    }
    let home = home_with_mercurial();
    ok(&home, &["clone", "-q", "--mirror", &url(&home, "project"), "mirror"]);
    let before = metadata(&home, "mirror");
    ok(&home, &["-C", "mirror", "update-ref", "refs/heads/gone", "HEAD"]);
    ok(&home, &["-C", "mirror", "remote", "update", "--prune"]);
    assert_eq!(metadata(&home, "mirror"), before);
    assert!(!ok(&home, &["-C", "mirror", "for-each-ref"]).contains("refs/heads/gone"));
    add_changeset(&home);
    ok(&home, &["-C", "mirror", "remote", "update", "--prune"]);
    assert_ne!(metadata(&home, "mirror"), before);
    let commit = home.run(&["hg", "--repository", "mirror", "hg2git", &node(&home, "tip")]);
    let tip = ok(&home, &["-C", "mirror", "rev-parse", "refs/heads/branches/default/tip"]);
    assert_eq!(commit.stdout().trim(), tip);
    ok(&home, &["-C", "mirror", "remote", "update", "--prune"]);
    assert_sound(&home, "mirror");
}

/// git sets `remote.NAME.mirror` only in a clone.
#[test]
fn pruning_with_the_refspec_of_a_mirror_keeps_the_metadata() {
    if !has_mercurial("pruning_with_the_refspec_of_a_mirror_keeps_the_metadata") {
        return;
    }
    let home = home_with_mercurial();
    let url = url(&home, "project");
    for repository in ["added", "configured"] {
        let run = |args: &[&str]| ok(&home, &[&["-C", repository], args].concat());
        ok(&home, &["init", "-q", "--bare", repository]);
        if repository == "added" {
            run(&["remote", "add", "--mirror=fetch", "origin", &url]);
        } else {
            run(&["config", "remote.origin.url", &url]);
            run(&["config", "remote.origin.fetch", "+refs/*:refs/*"]);
        }
        run(&["fetch", "-q"]);
        let before = metadata(&home, repository);
        run(&["update-ref", "refs/heads/gone", "refs/heads/branches/default/tip"]);
        run(&["fetch", "-q", "--prune"]);
        assert_eq!(metadata(&home, repository), before);
        assert!(!run(&["for-each-ref"]).contains("refs/heads/gone"));
    }
    // Elsewhere the refs of the helper are not listed.
    ok(&home, &["clone", "-q", &url, "clone"]);
    assert!(!ok(&home, &["-C", "clone", "ls-remote"]).contains("refs/larder/"));
}

#[test]
fn remotes_share_the_metadata() {
    if !has_mercurial("remotes_share_the_metadata") {
        return;
    }
    let home = home_with_mercurial();
    hg(&home, &["clone", "-q", "project", "copy"]);
    create_other(&home);
    add_changeset(&home);
    ok(&home, &["init", "-q", "repository"]);
    let git_args = |args: &[&'static str]| [&["-C", "repository"], args].concat();
    ok(
        &home,
        &git_args(&[
            "-c",
            "user.name=a",
            "-c",
            "user.email=b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "unrelated",
        ]),
    );
    for name in ["copy", "other", "project"] {
        ok(&home, &["-C", "repository", "remote", "add", name, &url(&home, name)]);
        ok(&home, &["-C", "repository", "fetch", "-q", name]);
    }
    let before = metadata(&home, "repository");
    ok(&home, &git_args(&["fetch", "-q", "--all"]));
    assert_eq!(metadata(&home, "repository"), before);
    let tip = |name: &str| {
        let name = format!("refs/remotes/{name}/branches/default/tip");
        ok(&home, &["-C", "repository", "rev-parse", &name])
    };
    let parent = ok(&home, &git_args(&["rev-parse", "project/branches/default/tip^"]));
    assert_eq!(tip("copy"), parent);
    assert_ne!(tip("other"), parent);
    assert_sound(&home, "repository");
}

/// Imports a branch as git would, and returns the ref from which git would then read its commit.
fn import_branch(home: &Home, remote: &str, path: &str) -> String {
    let mut command = home.program(home.work("git-remote-hg"));
    command.args([remote, path]).env("GIT_DIR", home.work("repository/.git"));
    let mut program = home.spawn(command.stdin(Stdio::piped()));
    // An end of the input would be the end of git.
    let mut input = program.stdin.take().unwrap();
    input.write_all(b"capabilities\nlist\nimport refs/heads/branches/default/tip\n\n").unwrap();
    let mut answers = BufReader::new(program.stdout.take().unwrap()).lines().map(Result::unwrap);
    let folder =
        answers.find_map(|line| Some(line.strip_prefix("refspec refs/heads/*:")?.to_owned()));
    assert!(answers.any(|line| line == "done"));
    drop(input);
    assert!(program.wait().unwrap().success());
    folder.unwrap().replace('*', "branches/default/tip")
}

/// git reads the refs of an import when the import has ended, and that of another remote may have
/// ended meanwhile.
#[test]
fn an_import_leaves_those_of_other_remotes() {
    if !has_mercurial("an_import_leaves_those_of_other_remotes") {
        return;
    }
    let home = home_with_mercurial();
    create_other(&home);
    ok(&home, &["init", "-q", "repository"]);
    let read = |name: &str| ok(&home, &["-C", "repository", "rev-parse", name]);
    let path = |name: &str| home.work(name).display().to_string();
    for (first, second) in [
        ("walrus", "seal"),
        ("sea/walrus", "sea/seal"),
        ("hg::https://host/walrus", "hg::https://host/seal"),
    ] {
        let of_first = import_branch(&home, first, &path("project"));
        let before = read(&of_first);
        let of_second = import_branch(&home, second, &path("other"));
        assert_ne!(read(&of_second), before);
        assert_eq!(read(&of_first), before, "{first}");
    }
}

/// A fetch from another remote gives branches that no conversion made.
#[test]
fn a_conversion_deletes_its_own_branches_only() {
    if !has_mercurial("a_conversion_deletes_its_own_branches_only") {
        return;
    }
    let home = home_with_mercurial();
    create_other(&home);
    hg(&home, &["-R", "other", "bookmark", "-r", "0", "other"]);
    hg(&home, &["-R", "project", "bookmark", "-r", "0", "walrus"]);
    let convert = || {
        let run = home.run(&["hg", "convert", "project", "converted.git"]);
        assert_eq!(run.code, 0, "{}", run.stderr());
    };
    let in_converted = |args: &[&str]| ok(&home, &[&["-C", "converted.git"], args].concat());
    let bookmarks =
        || in_converted(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/bookmarks"]);
    convert();
    let name = "refs/heads/bookmarks/other";
    in_converted(&["fetch", "-q", &url(&home, "other"), &format!("{name}:{name}")]);
    convert();
    assert_eq!(bookmarks(), "other\nwalrus");
    // What the conversion made stays known when the metadata goes back.
    assert_eq!(home.run(&["hg", "--repository", "converted.git", "rollback"]).code, 0);
    hg(&home, &["-R", "project", "bookmark", "-d", "walrus"]);
    convert();
    assert_eq!(bookmarks(), "other");
}

/// A line that cannot be read is not a bookmark that was deleted.
#[test]
fn a_damaged_bookmark_keeps_its_branch() {
    if !has_mercurial("a_damaged_bookmark_keeps_its_branch") {
        return;
    }
    let home = home_with_mercurial();
    hg(&home, &["-R", "project", "bookmark", "-r", "0", "walrus"]);
    let convert = || home.run(&["hg", "convert", "project", "converted.git"]);
    assert_eq!(convert().code, 0);
    let path = home.work("project/.hg/bookmarks");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("Z{}", &text[1..])).unwrap();
    let run = convert();
    assert_eq!(run.code, 5, "{}", run.stderr());
    assert!(run.stderr().contains(".hg/bookmarks: line 1: no node and name"), "{}", run.stderr());
    ok(&home, &["-C", "converted.git", "rev-parse", "--verify", "refs/heads/bookmarks/walrus"]);
}

/// Branches of an unrelated repository would take the place of those that are there.
#[test]
fn an_unrelated_repository_is_not_added() {
    if !has_mercurial("an_unrelated_repository_is_not_added") {
        return;
    }
    let home = home_with_mercurial();
    create_other(&home);
    let convert = |source: &str| home.run(&["hg", "convert", source, "converted.git"]);
    assert_eq!(convert("project").code, 0);
    let refs = || ok(&home, &["-C", "converted.git", "for-each-ref"]);
    let before = refs();
    let run = convert("other");
    assert_ne!(run.code, 0);
    let message = "other: no changeset of it is in the folder, which has another repository";
    assert!(run.stderr().contains(message), "{}", run.stderr());
    assert!(!run.stderr().contains("the same command goes on"), "{}", run.stderr());
    assert_eq!(refs(), before);
    // Other heads on a common root, and a bundle of what is new only.
    hg(&home, &["clone", "-q", "-r", "0", "project", "fork"]);
    home.write("fork/file", "of the fork\n");
    hg(&home, &["-q", "-R", "fork", "commit", "-A", "-m", "fork", "-u", "a", "-d", "0 0"]);
    assert_eq!(convert("fork").code, 0);
    add_changeset(&home);
    hg(&home, &["-q", "-R", "project", "bundle", "--base", "1", "-r", "tip", "new.hg"]);
    let run = convert("new.hg");
    assert_eq!(run.code, 0, "{}", run.stderr());
}

/// A repository that is empty by mistake, and a bundle of one branch, do not tell that the others
/// are gone.
#[test]
fn branches_stay_where_the_source_does_not_tell_of_them() {
    if !has_mercurial("branches_stay_where_the_source_does_not_tell_of_them") {
        return;
    }
    let home = home_with_mercurial();
    hg(&home, &["-R", "project", "bookmark", "-r", "0", "walrus"]);
    let convert = |source: &str| home.run(&["hg", "convert", source, "converted.git"]);
    assert_eq!(convert("project").code, 0);
    let refs = || ok(&home, &["-C", "converted.git", "for-each-ref", "--format=%(refname)"]);
    let before = refs();
    assert!(before.contains("refs/heads/bookmarks/walrus\n"), "{before}");
    hg(&home, &["init", "empty"]);
    let run = convert("empty");
    assert_eq!(run.code, 5);
    let message = "empty: it has no changesets, and the folder has some of an earlier conversion";
    assert!(run.stderr().contains(message), "{}", run.stderr());
    assert!(run.stderr().contains("hint: is it the right one?"), "{}", run.stderr());
    assert_eq!(refs(), before);
    hg(&home, &["-R", "project", "-q", "branch", "stable"]);
    add_changeset(&home);
    hg(&home, &["-q", "-R", "project", "bundle", "--base", "1", "-r", "tip", "new.hg"]);
    assert_eq!(convert("new.hg").code, 0);
    assert!(before.lines().all(|name| refs().lines().any(|found| found == name)), "{}", refs());
    assert!(refs().contains("refs/heads/branches/stable/tip\n"), "{}", refs());
}

/// The advice leads on: all is converted again, to the same ids.
#[test]
fn damaged_metadata_is_made_again() {
    if !has_mercurial("damaged_metadata_is_made_again") {
        return;
    }
    let home = home_with_mercurial();
    ok(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    let in_clone = |args: &[&str]| ok(&home, &[&["-C", "clone"], args].concat());
    let branches = || in_clone(&["for-each-ref", "refs/heads", "refs/remotes"]);
    let before = branches();
    // A commit of the history in place of that of the metadata, and one that is lost.
    for damage in [in_clone(&["rev-parse", "HEAD"]), "1".repeat(40)] {
        home.write("clone/.git/refs/larder/hg/metadata", format!("{damage}\n"));
        let advice = "larder hg clear forgets the metadata, and git fetch then converts all again";
        let (code, text) = git(&home, &["-C", "clone", "fetch", "-q"]);
        assert!(code != 0 && text.contains(advice), "{text}");
        for command in ["git2hg", "hg2git"] {
            let run = home.run(&["hg", "--repository", "clone", command, &"2".repeat(40)]);
            assert!(run.code == 4 && run.stderr().contains(advice), "{}", run.stderr());
        }
        let (code, text) = git(&home, &["-C", "clone", "cinnabar", "git2hg", "HEAD"]);
        assert!(code == 1 && text.contains(advice), "{text}");
        for command in ["fsck", "rollback", "tags"] {
            let run = home.run(&["hg", "--repository", "clone", command]);
            let message = "the Mercurial metadata is damaged";
            assert!(run.code == 4 && run.stderr().contains(message), "{}", run.stderr());
        }
        assert_eq!(home.run(&["hg", "--repository", "clone", "clear"]).code, 0);
        in_clone(&["fetch", "-q"]);
        assert_eq!(branches(), before);
        let run = home.run(&["hg", "--repository", "clone", "git2hg", "HEAD"]);
        assert_eq!(run.stdout().trim(), node(&home, "tip"));
        assert_eq!(home.run(&["hg", "--repository", "clone", "fsck", "--full"]).code, 0);
    }
}

#[test]
fn an_unfinished_convert_is_completed() {
    if !has_mercurial("an_unfinished_convert_is_completed") {
        return;
    }
    let home = home_with_mercurial();
    assert_eq!(home.run(&["hg", "convert", "project", "whole.git"]).code, 0);
    // What a kill leaves: before the metadata is there, and before the branches are.
    ok(&home, &["init", "-q", "--bare", "empty.git"]);
    ok(&home, &["clone", "-q", "--bare", &url(&home, "project"), "late.git"]);
    ok(&home, &["-C", "late.git", "update-ref", "-d", "refs/heads/branches/default/tip"]);
    for name in ["empty.git", "late.git"] {
        let run = home.run(&["hg", "convert", "project", name]);
        assert_eq!(run.code, 0, "{}", run.stderr());
        let head = |name: &str| ok(&home, &["-C", name, "rev-parse", "HEAD"]);
        assert_eq!(head(name), head("whole.git"));
    }
    home.write("folder/file", "");
    assert_eq!(home.run(&["hg", "convert", "project", "folder"]).code, 2);
}

/// What a kill in the middle of `git init` leaves is no reason to refuse.
#[test]
fn an_unfinished_init_is_completed() {
    if !has_mercurial("an_unfinished_init_is_completed") {
        return;
    }
    let home = home_with_mercurial();
    for missing in ["HEAD", "config", "objects", "refs"] {
        let folder = format!("{missing}.git");
        ok(&home, &["init", "-q", "--bare", &folder]);
        let path = home.work(&folder).join(missing);
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        };
        removed.unwrap();
        let run = home.run(&["hg", "convert", "project", &folder]);
        assert_eq!(run.code, 0, "{missing}: {}", run.stderr());
        assert_sound(&home, &folder);
    }
    // A repository that lost a part is not taken for one.
    ok(&home, &["clone", "-q", "--bare", "HEAD.git", "lost.git"]);
    std::fs::remove_file(home.work("lost.git").join("HEAD")).unwrap();
    assert_eq!(home.run(&["hg", "convert", "project", "lost.git"]).code, 2);
}

/// None removes what another one makes.
#[test]
fn conversions_at_once_to_a_new_folder_end_well() {
    if !has_mercurial("conversions_at_once_to_a_new_folder_end_well") {
        return;
    }
    let home = home_with_mercurial();
    for round in 0..5 {
        let folder = format!("new{round}.git");
        let start = || {
            let mut command = home.command(&["hg", "convert", "project", &folder]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        for child in [start(), start(), start()] {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{text}");
        }
        assert_eq!(ok(&home, &["-C", &folder, "rev-list", "--count", "HEAD"]), "2");
    }
}

/// Each one sets the branches from where they were before.
#[test]
fn conversions_at_once_that_add_changes_end_well() {
    if !has_mercurial("conversions_at_once_that_add_changes_end_well") {
        return;
    }
    let home = home_with_mercurial();
    assert_eq!(home.run(&["hg", "convert", "project", "converted.git"]).code, 0);
    for round in 0..10 {
        home.write("project/seal.txt", format!("flippers {round}\n"));
        commit(&home, "the seal", 1_000_000_200 + round);
        let start = || {
            let mut command = home.command(&["hg", "convert", "project", "converted.git"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        for child in [start(), start()] {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "round {round}: {text}");
        }
        let count = ok(&home, &["-C", "converted.git", "rev-list", "--count", "HEAD"]);
        assert_eq!(count, (3 + round).to_string());
    }
    assert_sound(&home, "converted.git");
}

/// Tags that were made before are known after it, too.
#[test]
fn tags_are_known_after_all_is_forgotten() {
    if !has_mercurial("tags_are_known_after_all_is_forgotten") {
        return;
    }
    let home = home_with_mercurial();
    let hg_tag = |args: &[&str]| {
        hg(&home, &[&["-R", "project", "tag", "-u", "a", "-d", "1000000200 0"], args].concat());
    };
    let tags = || home.run(&["hg", "--repository", "clone", "tags", "--format", "json"]);
    for name in ["stays", "moves", "goes"] {
        hg_tag(&["-r", "0", name]);
    }
    ok(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    assert_eq!(tags().code, 0);
    assert_eq!(home.run(&["hg", "--repository", "clone", "clear"]).code, 0);
    let run = tags();
    assert_eq!((run.code, run.stdout().trim()), (1, r#"{"tags":0,"deleted":0,"kept":[]}"#));
    assert_eq!(ok(&home, &["-C", "clone", "tag"]), "goes\nmoves\nstays");
    hg_tag(&["-f", "-r", "1", "moves"]);
    hg_tag(&["--remove", "goes"]);
    ok(&home, &["-C", "clone", "fetch", "-q"]);
    let run = tags();
    assert_eq!((run.code, run.stdout().trim()), (0, r#"{"tags":2,"deleted":1,"kept":[]}"#));
    assert_eq!(ok(&home, &["-C", "clone", "tag"]), "moves\nstays");
}

//! Larder under the name of git-cinnabar: its commands, its settings, and its messages.

use crate::mercurial::{commit, git, has_mercurial, hg, home_with_mercurial, node, url};
use crate::mercurial_clones::project_hg;
use crate::test_home::Home;
use std::path::Path;

/// Runs git in the repository `clone`, and returns its output; it succeeds.
fn in_clone(home: &Home, args: &[&str]) -> String {
    let (code, text) = git(home, &[&["-C", "clone"], args].concat());
    assert_eq!(code, 0, "{args:?}: {text}");
    text
}

/// Runs git in the repository `clone`, and returns its message; it fails as git-cinnabar does.
fn fail_in_clone(home: &Home, args: &[&str]) -> String {
    let (code, text) = git(home, &[&["-C", "clone", "cinnabar"], args].concat());
    assert_eq!(code, 1, "{args:?}: {text}");
    text.trim_start_matches('\r').trim_start_matches("ERROR ").to_string()
}

/// Makes an empty repository `clone` with the remote `origin`.
fn init_clone(home: &Home) {
    git(home, &["init", "-q", "clone"]);
    in_clone(home, &["remote", "add", "origin", &url(home, "project")]);
}

#[test]
fn revisions_are_fetched_and_looked_up() {
    if !has_mercurial("revisions_are_fetched_and_looked_up") {
        return;
    }
    let home = home_with_mercurial();
    init_clone(&home);
    let (first, second) = (node(&home, "0"), node(&home, "1"));
    let url = url(&home, "project");
    let fetched = in_clone(&home, &["cinnabar", "fetch", "origin", &first]);
    let line = format!("branch            hg/revs/{first} -> FETCH_HEAD");
    assert_eq!(fetched, format!("From {url}\n * {line}"));
    let commit = in_clone(&home, &["rev-parse", "FETCH_HEAD"]);
    assert_eq!(in_clone(&home, &["cinnabar", "hg2git", &first]), commit);
    assert_eq!(in_clone(&home, &["cinnabar", "hg2git", "--abbrev", &first]), commit[..12]);
    assert_eq!(in_clone(&home, &["cinnabar", "git2hg", "--abbrev=8", "FETCH_HEAD"]), first[..8]);
    assert_eq!(in_clone(&home, &["cinnabar", "hg2git", &second]), "0".repeat(40));
    let zeros = "0".repeat(40);
    let warning = "WARNING git has no commit with the name \"none\"";
    let found = in_clone(&home, &["cinnabar", "git2hg", "none"]);
    assert_eq!(found, format!("{zeros}\n\r{warning}"));
    assert_eq!(in_clone(&home, &["cinnabar", "git2hg", &zeros]), zeros);
    // A URL in place of a remote, and a name in place of a node.
    in_clone(&home, &["cinnabar", "fetch", &url, "tip"]);
    assert_ne!(in_clone(&home, &["cinnabar", "hg2git", &second]), "0".repeat(40));
    let text = in_clone(&home, &["cinnabar", "data", "-c", &first]);
    assert!(text.contains("Anna Berg") && text.ends_with("sank"), "{text}");
    let args = ["-R", "project", "log", "-r", "0", "-T", "{manifest.node}"];
    let manifest = hg(&home, &args);
    let text = in_clone(&home, &["cinnabar", "data", "-m", &manifest]);
    let (path, file) = text.split_once('\0').unwrap();
    assert_eq!((path, file.len()), ("walrus.txt", 40));
    assert_eq!(in_clone(&home, &["cinnabar", "data", file]), "tusks");
    let unknown = "1".repeat(40);
    let message = fail_in_clone(&home, &["data", "-m", &unknown]);
    assert_eq!(message, format!("Unknown manifest id: {unknown}"));
    assert_eq!(fail_in_clone(&home, &["data", "12"]), "Unknown file id: 12");
    let message = fail_in_clone(&home, &["fetch", "origin", &unknown]);
    assert_eq!(message, format!("Unknown revision: {unknown}"));
    assert_eq!(fail_in_clone(&home, &["fetch", "origin", "nothing"]), "unknown revision 'nothing'");
    assert_eq!(fail_in_clone(&home, &["fetch", ".", "tip"]), "Invalid mercurial url: .");
    assert_eq!(fail_in_clone(&home, &["hg2git", "tip"]), "Invalid changeset id: tip");
    let message = fail_in_clone(&home, &["bundle", "x.hg"]);
    assert_eq!(message, "larder does not have the command git cinnabar bundle");
    let (code, text) = git(&home, &["cinnabar", "--version"]);
    assert!(code == 0 && text.starts_with("git-cinnabar 0.7.5 (larder "), "{text}");
}

/// Each length that one command prints is read by the other; one that several changesets share is
/// not answered.
#[test]
fn abbreviated_ids_are_found() {
    if !has_mercurial("abbreviated_ids_are_found") {
        return;
    }
    let home = home_with_mercurial();
    let newest = node(&home, "1");
    // The ids of these begin with the same eight digits.
    for description in ["12773", "145184"] {
        hg(&home, &["-R", "project", "update", "-q", "null"]);
        let allowed = ["-R", "project", "--config", "ui.allowemptycommit=1", "commit", "-q"];
        hg(&home, &[&allowed[..], &["-u", "a", "-d", "0 0", "-m", description]].concat());
    }
    assert_eq!(home.run(&["hg", "convert", "project", "clone"]).code, 0);
    let commit = in_clone(&home, &["cinnabar", "hg2git", &newest]);
    assert_ne!(commit, "0".repeat(40));
    for len in 4..=12 {
        let abbreviation = format!("--abbrev={len}");
        let id = in_clone(&home, &["cinnabar", "git2hg", &abbreviation, &commit]);
        assert_eq!(id, newest[..len]);
        assert_eq!(in_clone(&home, &["cinnabar", "hg2git", &id]), commit, "{len}");
        assert_eq!(in_clone(&home, &["cinnabar", "hg2git", &id.to_uppercase()]), commit);
    }
    for id in ["ee38", "ee38305", "ee383053"] {
        let message = fail_in_clone(&home, &["hg2git", id]);
        assert_eq!(message, format!("{id} is the beginning of 2 changesets"));
    }
    assert_eq!(in_clone(&home, &["cinnabar", "hg2git", "ee383054"]), "0".repeat(40));
}

#[test]
fn bundles_are_imported() {
    if !has_mercurial("bundles_are_imported") {
        return;
    }
    let home = home_with_mercurial();
    project_hg(&home, &["bundle", "-q", "--all", "project.hg"]);
    init_clone(&home);
    let bundle = home.work("project.hg");
    in_clone(&home, &["cinnabar", "unbundle", &bundle.display().to_string()]);
    let tip = node(&home, "tip");
    assert_ne!(in_clone(&home, &["cinnabar", "hg2git", &tip]), "0".repeat(40));
    let project = home.work("project").display().to_string();
    let message = fail_in_clone(&home, &["unbundle", "--clonebundle", &project]);
    assert!(message.ends_with("Repository didn't provide a clonebundle"), "{message}");
    // A bundle that a setting names comes before the repository.
    let setting = format!("cinnabar.clonebundle={}", bundle.display());
    let clone = |setting: &str, name: &str| {
        git(&home, &["-c", setting, "clone", "-q", &url(&home, "project"), name])
    };
    let expected = format!("Getting clone bundle from {}", bundle.display());
    assert_eq!(clone(&setting, "by-bundle"), (0, expected));
    assert_eq!(clone("cinnabar.clonebundle=", "by-repository"), (0, String::new()));
    // A repository is as good; this one has a changeset more.
    project_hg(&home, &["clone", "-q", "project", "larger"]);
    let larger = home.work("larger").display().to_string();
    home.write("larger/seal.txt", "flippers\n");
    project_hg(&home, &["-R", &larger, "commit", "-q", "-A", "-m", "seal", "-u", "a", "-d", "0 0"]);
    let (code, message) = clone(&format!("cinnabar.clonebundle={larger}"), "by-larger");
    assert_eq!((code, message), (0, format!("Getting clone bundle from {larger}")));
    let seal = hg(&home, &["-R", "larger", "log", "-r", "tip", "-T", "{node}"]);
    let (_, commit) = git(&home, &["-C", "by-larger", "cinnabar", "hg2git", &seal]);
    assert_ne!(commit, "0".repeat(40));
    let (code, text) = clone("cinnabar.clonebundle=/none.hg", "without-bundle");
    assert_eq!(code, 0);
    assert!(text.contains("WARNING reading changes: /none.hg: No such file"), "{text}");
    home.write("cut.hg", b"HG20");
    let check = format!("cinnabar.clonebundle={}", home.work("cut.hg").display());
    let args = ["-c", "cinnabar.check=clonebundles", "-c", &check, "clone", "-q"];
    let (code, text) = git(&home, &[&args[..], &[&url(&home, "project"), "required"]].concat());
    assert_eq!(code, 128, "{text}");
    assert!(!Path::new(&home.work("required")).exists());
    // A clone that fails names the file.
    let cut = home.work("cut.hg").display().to_string();
    let (_, text) = git(&home, &["clone", "-q", &format!("hg::{cut}"), "none"]);
    assert!(text.contains(&format!("fatal: {cut}: ")), "{text}");
}

#[test]
fn a_rollback_goes_to_any_state_before() {
    if !has_mercurial("a_rollback_goes_to_any_state_before") {
        return;
    }
    let home = home_with_mercurial();
    home.write("project/seal.txt", "flippers\n");
    commit(&home, "the seal", 1_000_000_200);
    init_clone(&home);
    for revision in ["0", "1", "2"] {
        in_clone(&home, &["cinnabar", "fetch", "origin", &node(&home, revision)]);
    }
    let candidates = || in_clone(&home, &["cinnabar", "rollback", "--candidates"]);
    let listed = candidates();
    let states: Vec<String> = listed.lines().map(|line| line[..40].to_string()).collect();
    let [third, second, first] = &states[..] else { panic!("{listed}") };
    assert_eq!(listed, format!("{third} (current)\n{second}\n{first}"));
    // A state that was checked, and those before it, are sound.
    in_clone(&home, &["cinnabar", "rollback"]);
    assert_eq!(in_clone(&home, &["cinnabar", "fsck", "--full"]), "");
    in_clone(&home, &["cinnabar", "fetch", "origin", &node(&home, "2")]);
    in_clone(&home, &["update-ref", "refs/larder/hg/broken", third]);
    let expected = format!("{third} (current, broken)\n{second} (checked)\n{first}");
    assert_eq!(candidates(), expected);
    in_clone(&home, &["cinnabar", "rollback"]);
    assert_eq!(candidates(), format!("{second} (current, checked)\n{first}"));
    in_clone(&home, &["cinnabar", "rollback", first]);
    assert_eq!(candidates(), format!("{first} (current, checked)"));
    let message = fail_in_clone(&home, &["rollback", third]);
    let other = "it is not in the ancestry of current metadata.";
    assert_eq!(message, format!("Cannot rollback to {third}, {other}"));
    in_clone(&home, &["cinnabar", "rollback", "--force", third]);
    let expected = format!("{third} (current, broken)\n{second}\n{first} (checked)");
    assert_eq!(candidates(), expected);
    in_clone(&home, &["cinnabar", "rollback", "--fsck"]);
    assert_eq!(candidates(), format!("{first} (current, checked)"));
    assert_eq!(fail_in_clone(&home, &["rollback", "foo"]), "Invalid revision: foo");
    let commit = in_clone(&home, &["rev-parse", "FETCH_HEAD"]);
    let message = fail_in_clone(&home, &["rollback", "--force", "FETCH_HEAD"]);
    assert_eq!(message, format!("Invalid cinnabar metadata: {commit}"));
    // The same changes give the same state.
    for revision in ["1", "2"] {
        in_clone(&home, &["cinnabar", "fetch", "origin", &node(&home, revision)]);
    }
    assert!(candidates().starts_with(third));
    in_clone(&home, &["cinnabar", "clear"]);
    assert_eq!(candidates(), "");
    assert_eq!(in_clone(&home, &["for-each-ref", "refs/larder"]), "");
    assert_eq!(fail_in_clone(&home, &["rollback"]), "Nothing to rollback.");
    let message = fail_in_clone(&home, &["fsck"]);
    assert_eq!(message, "There does not seem to be any git-cinnabar metadata.");
    let message = fail_in_clone(&home, &["rollback", "--fsck"]);
    assert_eq!(message, "No successful fsck has been recorded. Cannot rollback.");
    in_clone(&home, &["cinnabar", "clear"]);
    assert_eq!(home.run(&["hg", "--repository", "clone", "clear"]).code, 0);
}

#[test]
fn tags_are_a_remote_of_their_own() {
    if !has_mercurial("tags_are_a_remote_of_their_own") {
        return;
    }
    let home = home_with_mercurial();
    let user = ["-u", "anna", "-d", "1000000200 0"];
    project_hg(&home, &[&["tag", "-r", "0", "walrus 1"], &user[..]].concat());
    let (code, text) = git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(text, "Run the following command to update tags:\n  git cinnabar fetch --tags");
    let first = node(&home, "0");
    let commit = in_clone(&home, &["cinnabar", "hg2git", &first]);
    let listed = in_clone(&home, &["ls-remote", "hg::tags:"]);
    assert_eq!(listed, format!("{commit}\trefs/tags/walrus%201"));
    assert_eq!(in_clone(&home, &["cinnabar", "tag", "-l"]), "walrus 1");
    let format = "--format=%(objectname) %(hg::objectname) %(tagname)";
    let listed = in_clone(&home, &["cinnabar", "tag", "-l", format]);
    assert_eq!(listed, format!("{commit} {first} walrus 1"));
    in_clone(&home, &["cinnabar", "fetch", "--tags"]);
    assert_eq!(in_clone(&home, &["rev-parse", "refs/tags/walrus%201"]), commit);
    // A fetch that leaves the tags as they are does not speak of them.
    home.write("project/seal.txt", "flippers\n");
    commit_seal(&home);
    assert_eq!(in_clone(&home, &["fetch", "-q"]), "");
    let message = fail_in_clone(&home, &["tag", "-m", "message", "new", "HEAD"]);
    assert!(message.starts_with("larder does not make tags"), "{message}");
}

/// git changes no tag that is there. Those that a fetch made have no notes of larder.
#[test]
fn fetched_tags_follow_those_of_mercurial() {
    if !has_mercurial("fetched_tags_follow_those_of_mercurial") {
        return;
    }
    let home = home_with_mercurial();
    let user = ["-u", "anna", "-d", "1000000200 0"];
    let tag = |args: &[&str]| project_hg(&home, &[&["tag"], &user[..], args].concat());
    for name in ["gone", "mine", "v1"] {
        tag(&["-r", "0", name]);
    }
    git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    in_clone(&home, &["cinnabar", "fetch", "--tags"]);
    assert_eq!(in_clone(&home, &["tag"]), "gone\nmine\nv1");
    // The tag of Mercurial never led there.
    in_clone(&home, &["tag", "-f", "mine", "HEAD"]);
    let mine = in_clone(&home, &["rev-parse", "refs/tags/mine"]);
    assert_eq!(in_clone(&home, &["for-each-ref", "refs/larder/hg/tags"]), "");
    tag(&["-f", "-r", "1", "v1"]);
    tag(&["-f", "-r", "1", "mine"]);
    tag(&["--remove", "gone"]);
    in_clone(&home, &["fetch", "-q"]);
    let run = home.run(&["hg", "--repository", "clone", "tags", "--format", "json"]);
    assert_eq!(run.stdout().trim(), r#"{"tags":1,"deleted":1,"kept":["mine"]}"#);
    assert_eq!(run.code, 1);
    assert_eq!(in_clone(&home, &["tag"]), "mine\nv1");
    let second = in_clone(&home, &["cinnabar", "hg2git", &node(&home, "1")]);
    assert_eq!(in_clone(&home, &["rev-parse", "refs/tags/v1"]), second);
    assert_eq!(in_clone(&home, &["rev-parse", "refs/tags/mine"]), mine);
    // A person leads a tag back to where it was: it stays there.
    let first = in_clone(&home, &["cinnabar", "hg2git", &node(&home, "0")]);
    in_clone(&home, &["tag", "-f", "v1", &first]);
    for _ in 0..2 {
        let run = home.run(&["hg", "--repository", "clone", "tags", "--format", "json"]);
        assert_eq!(run.stdout().trim(), r#"{"tags":0,"deleted":0,"kept":["mine","v1"]}"#);
        assert_eq!(in_clone(&home, &["rev-parse", "refs/tags/v1"]), first);
    }
}

fn commit_seal(home: &Home) {
    commit(home, "the seal", 1_000_000_300);
}

#[test]
fn settings_are_those_of_git_cinnabar() {
    if !has_mercurial("settings_are_those_of_git_cinnabar") {
        return;
    }
    let home = home_with_mercurial();
    project_hg(&home, &["branch", "-q", "--force", "other"]);
    home.write("project/seal.txt", "flippers\n");
    commit_seal(&home);
    let url = url(&home, "project");
    let names = |args: &[&str]| {
        let (code, text) = git(&home, args);
        assert_eq!(code, 0, "{text}");
        let names = text.lines().filter_map(|line| line.split_once('\t'));
        names.map(|(_, name)| name.to_string()).collect::<Vec<String>>().join(" ")
    };
    let listed = names(&["-c", "cinnabar.refs=tips", "ls-remote", &url]);
    assert_eq!(listed, "HEAD refs/heads/default refs/heads/other");
    init_clone(&home);
    in_clone(&home, &["config", "remote.origin.cinnabar-refs", "bookmarks"]);
    assert_eq!(names(&["-C", "clone", "ls-remote", "origin"]), "");
    let listed = names(&["-C", "clone", "-c", "cinnabar.refs=tips", "ls-remote", &url]);
    assert_eq!(listed, "HEAD refs/heads/default refs/heads/other");
    let (code, text) = git(&home, &["-c", "cinnabar.refs=tops", "ls-remote", &url]);
    assert_eq!(code, 128);
    assert!(text.contains("cinnabar.refs is \"tops\""), "{text}");
    // Without pruning, refs that are named by nodes would pile up.
    let advice = "It is recommended that you set \"remote.origin.prune\"";
    let unpruned = ["-c", "fetch.prune=false"];
    let all = [&unpruned[..], &["-c", "cinnabar.refs=all"]].concat();
    let (_, text) = git(&home, &[&all[..], &["clone", &url, "unpruned"]].concat());
    assert!(text.contains(advice), "{text}");
    // With --quiet, too, as git-cinnabar does; not without a setting of git-cinnabar.
    let (_, text) = git(&home, &[&all[..], &["clone", "-q", &url, "quiet"]].concat());
    assert!(text.starts_with(advice), "{text}");
    let (_, text) = git(&home, &[&unpruned[..], &["clone", &url, "without-settings"]].concat());
    assert!(!text.contains(advice), "{text}");
    // The setting of the remote goes before that of all.
    for (prunes_all, prunes_one) in [("true", "no"), ("false", "Yes")] {
        let settings = [
            "-c",
            &format!("fetch.prune={prunes_all}"),
            "-c",
            &format!("remote.origin.prune={prunes_one}"),
            "-c",
            "cinnabar.refs=all",
        ];
        let clone = format!("pruned-{prunes_one}");
        let (_, text) = git(&home, &[&settings[..], &["clone", &url, &clone]].concat());
        assert_eq!(text.contains(advice), prunes_one == "no", "{text}");
    }
    let settings = ["-c", "fetch.prune=false", "-c", "cinnabar.refs=tips"];
    let (_, text) = git(&home, &[&settings[..], &["clone", &url, "tips"]].concat());
    assert!(!text.contains(advice), "{text}");
}

/// Outside of a repository, and by the commands that are larder's own.
#[test]
fn settings_hold_for_conversions() {
    if !has_mercurial("settings_hold_for_conversions") {
        return;
    }
    let home = home_with_mercurial();
    let convert = |name: &str, value: &str, destination: &str| {
        let mut command = home.command(&["hg", "convert", "project", destination]);
        home.finish(command.env(name, value).output().unwrap())
    };
    let refs = |repository: &str| {
        git(&home, &["-C", repository, "for-each-ref", "--format=%(refname)", "refs/heads"]).1
    };
    assert_eq!(convert("GIT_CINNABAR_REFS", "tips", "tips.git").code, 0);
    assert_eq!(refs("tips.git"), "refs/heads/default");
    let run = convert("GIT_CINNABAR_REFS", "tops", "none.git");
    assert_eq!(run.code, 2);
    assert!(run.stderr().contains("cinnabar.refs is \"tops\""), "{}", run.stderr());
    assert!(!Path::new(&home.work("none.git")).exists());
    // Of the repository itself, when the conversion goes on.
    git(&home, &["init", "-q", "--bare", "own.git"]);
    git(&home, &["-C", "own.git", "config", "cinnabar.refs", "heads"]);
    assert_eq!(home.run(&["hg", "convert", "project", "own.git"]).code, 0);
    assert_eq!(refs("own.git"), format!("refs/heads/default/{}", node(&home, "tip")));
    // Of the user.
    git(&home, &["config", "--global", "cinnabar.compat", "0.5"]);
    assert_eq!(home.run(&["hg", "convert", "project", "none.git"]).code, 2);
    project_hg(&home, &["bundle", "-q", "--all", "project.hg"]);
    git(&home, &["init", "-q", "clone"]);
    let run = home.run(&["hg", "--repository", "clone", "unbundle", "project.hg"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr().contains("cinnabar.compat is \"0.5\""), "{}", run.stderr());
}

/// Changesets that differ only in their branch.
#[test]
fn the_older_rule_for_twins_is_followed() {
    if !has_mercurial("the_older_rule_for_twins_is_followed") {
        return;
    }
    let home = home_with_mercurial();
    for branch in ["left", "right"] {
        project_hg(&home, &["update", "-q", "-C", "0"]);
        project_hg(&home, &["branch", "-q", branch]);
        home.write("project/twin.txt", "same\n");
        commit(&home, "twin", 1_000_000_300);
    }
    let tail = |setting: &str, name: &str| {
        let args = ["-c", setting, "clone", "-q", &url(&home, "project"), name];
        assert_eq!(git(&home, &args), (0, String::new()));
        let commit = "refs/remotes/origin/branches/right/tip";
        let mut command = home.program("git");
        let output = command.args(["-C", name, "cat-file", "commit", commit]).output().unwrap();
        output.stdout.last().copied()
    };
    assert_eq!(tail("cinnabar.compat=", "today"), Some(b'\n'));
    assert_eq!(tail("cinnabar.compat=0.6", "before"), Some(0));
}

#[test]
fn metadata_is_taken_from_another_clone() {
    if !has_mercurial("metadata_is_taken_from_another_clone") {
        return;
    }
    let home = home_with_mercurial();
    let url = url(&home, "project");
    let (code, text) = git(&home, &["clone", "-q", &url, "clone"]);
    assert_eq!(code, 0, "{text}");
    in_clone(&home, &["bundle", "create", "-q", "../shared.git", "refs/larder/hg/metadata"]);
    in_clone(&home, &["bundle", "create", "-q", "../other.git", "HEAD"]);
    let shared = std::fs::read(home.work("shared.git")).unwrap();
    home.write("cut.git", &shared[..shared.len() / 2]);
    home.write("text.git", "no bundle\n");
    // What is newer comes from Mercurial.
    home.write("project/seal.txt", "flippers\n");
    commit_seal(&home);
    let tip = node(&home, "tip");
    let clone = |place: &str| {
        let name = format!("from-{place}");
        let place = home.work(place).display().to_string();
        let setting = format!("cinnabar.clone={place}");
        let (code, text) = git(&home, &["-c", &setting, "clone", "-q", &url, &name]);
        assert_eq!(code, 0, "{text}");
        let found = home.run(&["hg", "--repository", &name, "git2hg", "HEAD"]);
        assert_eq!(found.stdout().trim(), tip);
        let (code, fsck) = git(&home, &["-C", &name, "fsck", "--full", "--no-dangling"]);
        assert_eq!((code, fsck.as_str()), (0, ""));
        // What was refused is not kept.
        let refs = git(&home, &["-C", &name, "for-each-ref", "refs/larder/hg/fetch"]);
        assert_eq!(refs, (0, String::new()), "{place}");
        let states = git(&home, &["-C", &name, "cinnabar", "rollback", "--candidates"]).1;
        let (from, text) = text.split_once('\n').unwrap_or((&text, ""));
        assert_eq!(from, format!("Fetching cinnabar metadata from file://{place}"));
        (states.lines().count(), text.replace('\r', ""))
    };
    assert_eq!(clone("shared.git"), (2, String::new()));
    assert_eq!(clone("clone"), (2, String::new()));
    let warning = "WARNING Falling back to normal clone.";
    let missing = format!("ERROR Could not find cinnabar metadata\n{warning}");
    assert_eq!(clone("other.git"), (1, missing.clone()));
    assert_eq!(clone("text.git"), (1, missing));
    let (states, text) = clone("cut.git");
    assert_eq!(states, 1);
    assert!(text.ends_with(&format!("ERROR Failed to fetch cinnabar metadata.\n{warning}")));
    // A ref of that name which is no metadata.
    git(&home, &["init", "-q", "false"]);
    git(&home, &["-C", "false", "fetch", "-q", "../clone", "HEAD:refs/larder/hg/metadata"]);
    let invalid = format!("ERROR Invalid cinnabar metadata.\n{warning}");
    assert_eq!(clone("false"), (1, invalid));
    let setting = format!("cinnabar.clone={}", home.work("false").display());
    let args = ["-c", &setting, "-c", "cinnabar.check=cinnabarclone", "clone", "-q", &url, "no"];
    assert_eq!(git(&home, &args).0, 128);
    assert!(!Path::new(&home.work("no")).exists());
}

//! First clones of Mercurial repositories: the branch that is checked out, and what git asks for
//! that Mercurial does not have.

use crate::mercurial::{commit, git, has_mercurial, hg, home_with_mercurial, node, url};
use crate::test_home::Home;

/// Runs Mercurial in the repository `project`.
pub fn project_hg(home: &Home, args: &[&str]) {
    hg(home, &[&["-R", "project"], args].concat());
}

/// Returns the branch that is checked out, and the first line of its commit.
fn current_branch(home: &Home, repository: &str) -> String {
    git(home, &["-C", repository, "log", "-1", "--format=%D %s"]).1
}

/// As git-cinnabar does: a head is known to be closed when it was imported.
#[test]
fn the_next_fetch_after_a_clone_knows_closed_heads() {
    if !has_mercurial("the_next_fetch_after_a_clone_knows_closed_heads") {
        return;
    }
    let home = home_with_mercurial();
    project_hg(&home, &["update", "-q", "0"]);
    home.write("project/seal.txt", "flippers\n");
    commit(&home, "the seal", 1_000_000_200);
    let user = ["-u", "anna", "-d", "1000000300 0"];
    project_hg(&home, &[&["commit", "--close-branch", "-m", "no more seals"], &user[..]].concat());
    let clone = |args: &[&str], name: &str| {
        let url = url(&home, "project");
        let (code, text) = git(&home, &[&["clone"], args, &[&url, name]].concat());
        assert_eq!(code, 0, "{text}");
        text
    };
    let text = clone(&[], "clone");
    let note = "note: branches/default/tip is a closed head, which is known only now; to go \
                to the newest open head: git fetch && git reset --hard @{upstream}";
    assert!(text.contains(note), "{text}");
    assert!(current_branch(&home, "clone").ends_with(" no more seals"));
    assert_eq!(git(&home, &["-C", "clone", "fetch", "-q"]), (0, String::new()));
    let tip = git(&home, &["-C", "clone", "log", "-1", "--format=%s", "@{upstream}"]);
    assert_eq!(tip.1, "whiskers");
    git(&home, &["-C", "clone", "reset", "-q", "--hard", "@{upstream}"]);
    assert!(current_branch(&home, "clone").ends_with(" whiskers"));
    assert_eq!(clone(&["-q"], "quiet"), "");
    // A conversion knows all heads before it makes branches.
    assert_eq!(home.run(&["hg", "convert", "project", "converted.git"]).code, 0);
    let head = "HEAD -> branches/default/tip whiskers";
    assert_eq!(current_branch(&home, "converted.git"), head);
}

#[test]
fn without_a_default_branch_that_of_the_newest_changeset_is_used() {
    if !has_mercurial("without_a_default_branch_that_of_the_newest_changeset_is_used") {
        return;
    }
    let home = home_with_mercurial();
    std::fs::rename(home.work("project"), home.work("other")).unwrap();
    project_hg(&home, &["init", "project"]);
    for branch in ["walrus", "a seal"] {
        project_hg(&home, &["branch", "-q", branch]);
        home.write("project/name.txt", branch);
        commit(&home, branch, 1_000_000_200);
    }
    project_hg(&home, &["bundle", "-q", "--all", "project.hg"]);
    for source in ["project", "project.hg"] {
        let clone = format!("clone-{source}");
        let (code, text) = git(&home, &["clone", "-q", &url(&home, source), &clone]);
        assert_eq!((code, text.as_str()), (0, ""));
        let begin = "HEAD -> branches/a%20seal/tip, ";
        assert!(current_branch(&home, &clone).starts_with(begin), "{source}");
        let converted = format!("{source}.git");
        assert_eq!(home.run(&["hg", "convert", source, &converted]).code, 0);
        let expected = "HEAD -> branches/a%20seal/tip a seal";
        assert_eq!(current_branch(&home, &converted), expected);
    }
}

/// git may ask for a part of the history, which Mercurial's protocol does not have.
#[test]
fn parts_of_a_history_are_refused() {
    if !has_mercurial("parts_of_a_history_are_refused") {
        return;
    }
    let home = home_with_mercurial();
    let url = url(&home, "project");
    git(&home, &["clone", "-q", &url, "clone"]);
    let refs = git(&home, &["-C", "clone", "for-each-ref"]);
    let check = |option: &str, name: &str, kind: &str| {
        let expected = format!(
            "fatal: {}: {kind} clones of Mercurial repositories are not supported; leave out {name}",
            home.work("project").display()
        );
        let clone = git(&home, &["clone", "-q", option, &url, "part"]);
        let fetch = git(&home, &["-C", "clone", "fetch", "-q", option]);
        for (code, text) in [clone, fetch] {
            assert_eq!(code, 128, "{option}: {text}");
            assert!(text.starts_with(&expected), "{option}: {text}");
        }
        assert!(!home.work("part").exists(), "{option}");
        assert_eq!(git(&home, &["-C", "clone", "for-each-ref"]), refs, "{option}");
    };
    check("--depth=1", "--depth", "shallow");
    check("--shallow-since=2001-01-01", "--shallow-since", "shallow");
    check("--shallow-exclude=v1", "--shallow-exclude", "shallow");
    check("--filter=blob:none", "--filter", "partial");
    // git notes the filter before it fetches; the message names this way out.
    for name in ["promisor", "partialclonefilter"] {
        let setting = format!("remote.origin.{name}");
        git(&home, &["-C", "clone", "config", "--unset", &setting]);
    }
    assert_eq!(git(&home, &["-C", "clone", "fetch", "-q"]), (0, String::new()));
}

/// The note names a command that is there.
#[test]
fn the_first_clone_tells_of_tags() {
    if !has_mercurial("the_first_clone_tells_of_tags") {
        return;
    }
    let home = home_with_mercurial();
    let url = url(&home, "project");
    let clone =
        |args: &[&str], name: &str| git(&home, &[&["clone"], args, &[&url, name]].concat()).1;
    let note = "note: tags of Mercurial are new or changed; to set them in git: larder hg tags";
    let command = "git cinnabar fetch --tags";
    assert!(!clone(&[], "plain").contains("tags"));
    project_hg(&home, &["tag", "-r", "0", "v1", "-u", "anna", "-d", "1000000200 0"]);
    assert!(clone(&["-q"], "quiet-cinnabar").contains(command));
    std::fs::remove_file(home.work("git-cinnabar")).unwrap();
    let text = clone(&[], "clone");
    assert!(text.contains(note) && !text.contains(command), "{text}");
    assert_eq!(clone(&["-q"], "quiet"), "");
    assert_eq!(home.run(&["hg", "--repository", "clone", "tags"]).code, 0);
    assert_eq!(git(&home, &["-C", "clone", "tag"]), (0, "v1".to_string()));
}

/// `git fetch` does not move a tag that is there, and does not delete one.
#[test]
fn tags_that_moved_need_another_command() {
    if !has_mercurial("tags_that_moved_need_another_command") {
        return;
    }
    let home = home_with_mercurial();
    let tag = |args: &[&str]| {
        project_hg(&home, &[&["tag", "-u", "anna", "-d", "1000000200 0"], args].concat());
    };
    let fetch = || git(&home, &["-C", "clone", "fetch"]).1;
    let (of_cinnabar, own) = ("git cinnabar fetch --tags", "larder hg tags");
    tag(&["-r", "0", "v1"]);
    git(&home, &["clone", "-q", &url(&home, "project"), "clone"]);
    tag(&["-r", "0", "v2"]);
    let text = fetch();
    assert!(text.contains(of_cinnabar) && !text.contains(own), "{text}");
    for change in [&["-f", "-r", "1", "v1"][..], &["--remove", "v2"]] {
        tag(change);
        let text = fetch();
        assert!(text.contains(own) && !text.contains(of_cinnabar), "{text}");
    }
}

/// git has nothing that leads to the commits.
#[test]
fn heads_of_a_bundle_are_named() {
    if !has_mercurial("heads_of_a_bundle_are_named") {
        return;
    }
    let home = home_with_mercurial();
    project_hg(&home, &["bundle", "-q", "--all", "project.hg"]);
    git(&home, &["init", "-q", "repository"]);
    let import = || home.run(&["hg", "--repository", "repository", "unbundle", "project.hg"]);
    let run = import();
    let tip = home.run(&["hg", "--repository", "repository", "hg2git", &node(&home, "tip")]);
    let tip = tip.stdout().trim().to_owned();
    let expected = format!(
        "note: no branch of git leads to what was imported; it has 1 head\n\
         note: {tip} is a head of the branch default\n\
         note: to have a branch there: git branch NAME COMMIT\n"
    );
    assert_eq!((run.code, run.stderr()), (0, expected));
    assert_eq!(import().stderr(), "");
    assert_eq!(git(&home, &["-C", "repository", "branch", "walrus", &tip]).0, 0);
    assert_eq!(home.run(&["hg", "--repository", "repository", "rollback"]).code, 0);
    assert_eq!(import().stderr(), "");
}

/// Subrepositories, largefiles and LFS.
#[test]
fn pointers_to_other_places_are_named() {
    if !has_mercurial("pointers_to_other_places_are_named") {
        return;
    }
    let home = home_with_mercurial();
    home.write("project/.hgsub", "pup = https://example.org/pup\n");
    home.write("project/.hgsubstate", format!("{} pup\n", "1".repeat(40)));
    home.write("project/.hglf/film.mkv", format!("{}\n", "2".repeat(40)));
    commit(&home, "pointers", 1_000_000_200);
    let (code, text) = git(&home, &["clone", &url(&home, "project"), "clone"]);
    assert_eq!(code, 0, "{text}");
    for line in [
        "note: paths of largefiles: git has the hashes in .hglf, not the files (1)",
        "note: files about subrepositories: git has these files, not the subrepositories (2)",
    ] {
        assert!(text.contains(line), "{text}");
    }
    home.write("project/.hglf/song.ogg", format!("{}\n", "3".repeat(40)));
    commit(&home, "one more", 1_000_000_300);
    let (_, text) = git(&home, &["-C", "clone", "fetch"]);
    assert!(!text.contains("largefiles"), "{text}");
    assert_eq!(git(&home, &["clone", "-q", &url(&home, "project"), "quiet"]).1, "");
    let report = home.run(&["hg", "convert", "project", "converted.git"]).stdout();
    let line = "2 paths of largefiles: git has the hashes in .hglf, not the files\n         \
                .hglf/film.mkv\n         .hglf/song.ogg\n";
    assert!(report.contains(line), "{report}");
}

#[test]
fn a_second_conversion_adds_what_is_new() {
    if !has_mercurial("a_second_conversion_adds_what_is_new") {
        return;
    }
    let home = home_with_mercurial();
    project_hg(&home, &["bookmark", "-r", "0", "walrus"]);
    project_hg(&home, &["bookmark", "-r", "0", "kept"]);
    let convert = || {
        let run = home.run(&["hg", "convert", "project", "converted.git", "--format", "json"]);
        assert_eq!(run.code, 0, "{}", run.stderr());
        run.stdout()
    };
    let in_converted = |args: &[&str]| git(&home, &[&["-C", "converted.git"], args].concat()).1;
    let branches = || in_converted(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    assert!(convert().contains(r#""changesets":2"#));
    assert!(convert().contains(r#""changesets":0"#));
    let all = "bookmarks/kept\nbookmarks/walrus\nbranches/default/tip";
    assert_eq!(branches(), all);
    // A branch that git has changed is not of Mercurial any more, and HEAD is the user's.
    in_converted(&["update-ref", "refs/heads/bookmarks/kept", "branches/default/tip"]);
    in_converted(&["update-ref", "refs/heads/own", "branches/default/tip"]);
    in_converted(&["symbolic-ref", "HEAD", "refs/heads/own"]);
    project_hg(&home, &["bookmark", "-d", "walrus", "kept"]);
    project_hg(&home, &["bookmark", "-r", "1", "walrus/pup"]);
    home.write("project/seal.txt", "flippers\n");
    commit(&home, "the seal", 1_000_000_200);
    assert!(convert().contains(r#""changesets":1"#));
    assert_eq!(branches(), "bookmarks/kept\nbookmarks/walrus/pup\nbranches/default/tip\nown");
    assert_eq!(in_converted(&["log", "-1", "--format=%s", "branches/default/tip"]), "the seal");
    assert_eq!(in_converted(&["symbolic-ref", "HEAD"]), "refs/heads/own");
    // Commits of git on a branch of Mercurial are kept.
    let tree = in_converted(&["rev-parse", "branches/default/tip^{tree}"]);
    let own = "-c user.name=a -c user.email=b commit-tree -m own";
    let own = [&own.split(' ').collect::<Vec<_>>()[..], &[tree.as_str()]].concat();
    let pushed = in_converted(&own);
    in_converted(&["update-ref", "refs/heads/branches/default/tip", &pushed]);
    home.write("project/seal.txt", "more flippers\n");
    commit(&home, "the seal again", 1_000_000_300);
    let run = home.run(&["hg", "convert", "project", "converted.git"]);
    assert_eq!(run.code, 1, "{}", run.stderr());
    assert!(run.stdout().contains("branches that have commits of git"), "{}", run.stdout());
    assert_eq!(in_converted(&["rev-parse", "branches/default/tip"]), pushed);
    // Without them, the branch is Mercurial's again.
    in_converted(&["update-ref", "-d", "refs/heads/branches/default/tip"]);
    convert();
    let newest = in_converted(&["log", "-1", "--format=%s", "branches/default/tip"]);
    assert_eq!(newest, "the seal again");
    // A repository of git with branches that no conversion made.
    git(&home, &["clone", "-q", "--bare", "converted.git", "other.git"]);
    assert_eq!(home.run(&["hg", "convert", "project", "other.git"]).code, 2);
}

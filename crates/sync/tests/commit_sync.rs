//! The index of a repository's commits: in comparison with git, and with an index made afresh.

use crate::git_home::GitHome;
use larder_query::{Kind, MailQueryContext, MailView, MailViewEvent, MailViewOptions, UserLocale};
use larder_store::{StepSize, Store, StoreOptions};
use larder_sync::CommitSyncOptions;
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

/// Returns the hashes that git lists, sorted.
fn git_hashes(home: &GitHome, arguments: &[&str]) -> BTreeSet<String> {
    let listed = home.git(&[&["log", "--format=%H"], arguments].concat());
    listed.lines().map(ToString::to_string).collect()
}

fn find_set(home: &GitHome, line: &str) -> BTreeSet<String> {
    home.find(line).into_iter().collect()
}

/// A repository with two branches and a merge.
pub(crate) fn home_with_branches(options: &[&str]) -> GitHome {
    let home = GitHome::new(options);
    home.commit("src/main.rs", "Begin\n\nThe walrus sank.", 10);
    home.commit("docs/guide one.md", "Write about the \u{dc}bung", 20);
    home.git(&["checkout", "-q", "-b", "side"]);
    home.commit("src/parser/tokens.rs", "Parse tokens", 30);
    home.git(&["checkout", "-q", "main"]);
    home.commit("src/main.rs", "Print the walrus", 40);
    home.git(&["merge", "-q", "side", "-m", "Merge side"]);
    home.git(&["tag", "-a", "v1", "-m", "one"]);
    home
}

#[test]
fn fields_find_what_git_finds() {
    for options in [&[][..], &["--object-format=sha256"], &["--bare"]] {
        let home = match options {
            ["--bare"] => {
                let home = home_with_branches(&[]);
                home.git(&["clone", "-q", "--bare", ".", "../bare"]);
                fs::remove_dir_all(home.root()).unwrap();
                fs::rename(home.path("bare"), home.root()).unwrap();
                home
            }
            options => home_with_branches(options),
        };
        let report = home.sync();
        assert_eq!((report.added, report.removed, report.problems.len()), (5, 0, 0));
        for (line, arguments) in [
            ("", &["--all"][..]),
            ("walrus", &["--all", "-i", "--grep=walrus"]),
            ("subject:walrus", &["--all", "-i", "--grep=print the walrus"]),
            ("ubung", &["--all", "--grep=bung"]),
            ("author:anna committer:berg", &["--all", "--author=Anna"]),
            ("author:otto", &["--all", "--author=Otto"]),
            ("path:src/", &["--all", "--", "src"]),
            ("path:src/main.rs", &["--all", "--", "src/main.rs"]),
            ("path:src/*.rs", &["--all", "--", "src/*.rs"]),
            ("path:*.rs", &["--all", "--", "*.rs"]),
            ("path:main.rs", &["--all", "--", "src/main.rs"]),
            ("path:parser", &["--all", "--", "src/parser"]),
            ("path:rs", &["--all", "--", "rs"]),
            ("path:\"docs/guide one.md\"", &["--all", "--", "docs"]),
            ("path:/guide.*md$/", &["--all", "--", "docs"]),
            ("file:tokens", &["--all", "--", "src/parser"]),
            ("file:\"guide one\"", &["--all", "--", "docs"]),
            ("in:code -path:src", &["--all", "--not", "--all"]),
        ] {
            let mut expected = git_hashes(&home, &[&["--no-merges"], arguments].concat());
            match line {
                "" => expected = git_hashes(&home, arguments),
                "author:anna committer:berg" => expected = git_hashes(&home, arguments),
                "in:code -path:src" => {
                    expected = find_set(&home, "subject:merge or path:docs");
                    assert_eq!(expected.len(), 2);
                }
                _ => {}
            }
            assert_eq!(find_set(&home, line), expected, "{line} {options:?}");
        }
        let head = home.git(&["rev-parse", "main"]);
        assert_eq!(home.find(&format!("id:{}", &head[..9])), [head.as_str()]);
        assert_eq!(home.find(&format!("parent:{}", home.git(&["rev-parse", "side"]))), [head]);
        home.check();
    }
}

/// Brackets stand for one character of a set, and for themselves.
#[test]
fn paths_with_brackets_are_those_of_git() {
    let home = GitHome::new(&[]);
    let paths = ["pages/[id].tsx", "pages/[slug]/index.tsx", "pages/i.tsx", "pages/x.tsx", "[q]"];
    for (path, second) in paths.iter().zip(1..) {
        home.commit(path, "Add a page", second);
    }
    home.sync();
    for (path, count) in [
        ("pages/[id].tsx", 2),
        ("pages/[slug]", 1),
        ("pages/[slug]/index.tsx", 1),
        ("pages/[!i].tsx", 1),
        ("[q]", 1),
    ] {
        let found = find_set(&home, &format!("path:{path}"));
        assert_eq!(found, git_hashes(&home, &["--", path]), "{path}");
        assert_eq!(found.len(), count, "{path}");
        let rest = find_set(&home, &format!("-path:{path}"));
        assert_eq!(rest.len(), paths.len() - count, "{path}");
    }
}

#[test]
fn a_second_run_reads_new_commits_only() {
    let home = home_with_branches(&[]);
    home.sync();
    assert!(home.sync().is_unchanged);
    home.commit("a", "Add a", 50);
    let report = home.sync();
    assert_eq!((report.added, report.reread, report.removed), (1, 0, 0));
    // An amended commit replaces the former one.
    let old = home.git(&["rev-parse", "HEAD"]);
    home.git(&["commit", "-q", "--amend", "-m", "Add a again"]);
    let report = home.sync();
    assert_eq!((report.added, report.removed), (1, 1));
    assert!(!home.read_commits().contains_key(&old));
    // Notes are no history.
    home.git(&["notes", "add", "-m", "a note"]);
    assert!(home.sync().is_unchanged);
    home.git(&["branch", "-D", "side"]);
    home.git(&["tag", "-d", "v1"]);
    home.git(&["reset", "-q", "--hard", "HEAD~2"]);
    let report = home.sync();
    assert_eq!((report.added, report.removed), (0, 3));
    let report = home.sync_fully();
    assert_eq!((report.added, report.reread, report.removed), (0, 0, 0));
}

/// The ref of stashes names the last one, and no ref the commit of a work tree without a branch.
#[test]
fn stashes_and_work_trees_without_a_branch_are_read() {
    let home = home_with_branches(&[]);
    for subject in ["Stash one", "Stash two"] {
        fs::write(home.root().join("src/main.rs"), subject).unwrap();
        home.git(&["stash", "push", "-q", "-m", subject]);
        assert_eq!(home.sync().removed, 0);
    }
    let work_tree = home.path("second").display().to_string();
    home.git(&["worktree", "add", "-q", "--detach", &work_tree]);
    home.git(&["-C", &work_tree, "commit", "-q", "--allow-empty", "-m", "Work apart"]);
    assert_eq!(home.sync().added, 1);
    for subject in ["Stash one", "Stash two", "Work apart"] {
        assert_eq!(home.find(&format!("subject:\"{subject}\"")).len(), 1, "{subject}");
    }
    assert!(home.sync().is_unchanged);
    // A work tree whose commit is unknown removes none.
    let head = home.root().join(".git/worktrees/second/HEAD");
    let hash = fs::read(&head).unwrap();
    fs::write(&head, "").unwrap();
    let report = home.sync();
    assert_eq!((report.removed, report.problems.len()), (0, 1));
    assert!(report.problems[0].reason.ends_with("/second cannot be read"));
    fs::write(&head, hash).unwrap();
    home.git(&["worktree", "remove", &work_tree]);
    home.git(&["stash", "drop", "-q"]);
    assert_eq!(home.sync().problems, []);
    assert_eq!((home.find("subject:\"Stash one\"").len(), home.find("stash").len()), (1, 1));
    assert_eq!(home.find("apart"), [""; 0]);
    home.check();
}

#[test]
fn repositories_without_commits_and_without_their_folder_are_named() {
    let home = GitHome::new(&[]);
    assert_eq!(home.sync().added, 0);
    assert!(home.sync().is_unchanged);
    let commit = home.commit("a", "first", 1);
    assert_eq!(home.sync().added, 1);
    fs::rename(home.root(), home.path("away")).unwrap();
    let error = home.try_sync(CommitSyncOptions::default(), &|| false).unwrap_err();
    assert!(error.ends_with("repository is no git repository"), "{error}");
    assert_eq!(home.find(""), [commit]);
    fs::create_dir(home.root()).unwrap();
    fs::write(home.root().join(".git"), "gitdir: nowhere").unwrap();
    let error = home.try_sync(CommitSyncOptions::default(), &|| false).unwrap_err();
    assert!(error.contains("git"), "{error}");
}

#[test]
fn old_tips_that_git_has_no_longer_need_no_help() {
    let home = home_with_branches(&[]);
    home.sync();
    home.git(&["checkout", "-q", "--orphan", "new"]);
    let only = home.commit("b", "Begin again", 60);
    for reference in ["refs/heads/main", "refs/heads/side", "refs/tags/v1"] {
        home.git(&["update-ref", "-d", reference]);
    }
    home.git(&["reflog", "expire", "--expire=now", "--all"]);
    home.git(&["gc", "-q", "--prune=now"]);
    let report = home.sync();
    assert_eq!((report.added, report.removed), (1, 5));
    assert_eq!(home.find(""), [only]);
}

#[test]
fn a_shallow_clone_is_completed() {
    let home = home_with_branches(&[]);
    fs::rename(home.root(), home.path("origin")).unwrap();
    fs::create_dir(home.root()).unwrap();
    let url = format!("file://{}", home.path("origin").display());
    home.git(&["clone", "-q", "--depth", "1", &url, "."]);
    let report = home.sync();
    assert_eq!((report.added, report.problems.len()), (1, 0));
    let head = home.git(&["rev-parse", "HEAD"]);
    // All files are new in the first commit that is there.
    assert_eq!(home.find("path:docs"), [head.as_str()]);
    // A list of the ends that cannot be read is no empty one.
    let (shallow, ends) = (home.root().join(".git/shallow"), home.path("ends"));
    fs::rename(&shallow, &ends).unwrap();
    symlink(&shallow, &shallow).unwrap();
    let error = home.try_sync(CommitSyncOptions::default(), &|| false).unwrap_err();
    assert!(error.contains("/shallow"), "{error}");
    fs::rename(&ends, &shallow).unwrap();
    home.git(&["fetch", "-q", "--unshallow"]);
    let report = home.sync();
    assert_eq!((report.added, report.reread), (4, 1));
    assert_eq!(find_set(&home, "path:docs"), git_hashes(&home, &["--all", "--", "docs"]));
    home.check();
}

/// Few segments of many words each are left, which one small step of a merge would not complete.
#[test]
fn many_commits_leave_few_segments() {
    let home = GitHome::new(&[]);
    for number in 0..9 {
        let words: String = (0..1500).map(|word| format!("w{number}x{word}\n")).collect();
        home.commit("a", &words, number);
    }
    let options = CommitSyncOptions { batch_commits: 1, ..CommitSyncOptions::default() };
    assert_eq!(home.try_sync(options, &|| false).unwrap().added, 9);
    let mut index = Store::open(home.index(), &StoreOptions::default()).unwrap();
    assert!(!index.merge_words(8, &mut StepSize::new(1, 1..=1)).unwrap());
}

/// A run that is cancelled while git is read ends at once, and the next one goes on.
#[test]
fn a_log_that_is_read_can_be_cancelled() {
    let home = home_with_branches(&[]);
    let asked = Cell::new(0);
    let mut left = 0;
    loop {
        asked.set(0);
        let is_cancelled = || asked.replace(asked.get() + 1) >= left;
        let report = home.try_sync(CommitSyncOptions::default(), &is_cancelled);
        if !report.as_ref().is_ok_and(|report| report.is_interrupted) {
            assert_eq!(report.unwrap().problems, []);
            assert_eq!(home.count_unindexed(), 0);
            break;
        }
        assert_eq!(home.count_unindexed(), 1, "{left}");
        left += 1;
    }
    assert!(left > 3, "{left}");
    assert_eq!(home.find("").len(), 5);
    home.check();
}

#[test]
fn texts_in_other_character_sets_are_read() {
    let home = GitHome::new(&[]);
    fs::write(home.path("message"), b"Gr\xfc\xdfe\n\nvon M\xfcller").unwrap();
    let message = home.path("message");
    for setting in ["ISO-8859-1", "UTF-8", "nothing-known"] {
        fs::write(home.root().join("file"), setting).unwrap();
        home.git(&["add", "-A"]);
        let setting = format!("i18n.commitEncoding={setting}");
        home.git(&["-c", &setting, "commit", "-q", "-F", message.to_str().unwrap()]);
    }
    fs::write(home.root().join("\u{e4}\t\"x"), "1").unwrap();
    home.commit("b", "Paths", 9);
    assert_eq!(home.sync().added, 4);
    assert_eq!(home.find("subject:grusse muller").len(), 3);
    assert_eq!(home.find("file:a").len(), 1);
}

#[test]
fn settings_of_the_user_change_nothing() {
    let home = home_with_branches(&[]);
    home.sync();
    let expected = home.read_commits();
    let paths = home.find("path:src");
    for (name, value) in [
        ("log.showSignature", "true"),
        ("log.showRoot", "false"),
        ("log.diffMerges", "separate"),
        ("log.mailmap", "true"),
        ("diff.renames", "copies"),
        ("diff.noprefix", "true"),
        ("diff.external", "false"),
        ("core.pager", "false"),
        ("core.quotePath", "true"),
        ("color.ui", "always"),
        ("format.pretty", "oneline"),
        ("i18n.logOutputEncoding", "ISO-8859-1"),
        ("log.date", "relative"),
        ("log.follow", "true"),
        ("log.decorate", "full"),
        ("format.notes", "true"),
        ("log.excludeDecoration", "*"),
        ("diff.ignoreSubmodules", "all"),
        ("diff.orderFile", "absent"),
        ("core.abbrev", "4"),
    ] {
        home.git(&["config", name, value]);
    }
    home.delete_index();
    home.sync();
    assert_eq!(home.read_commits(), expected);
    assert_eq!(home.find("path:src"), paths);
}

/// A step of a repository's life.
#[derive(Debug, Clone)]
enum Step {
    Commit(u8),
    Branch(u8),
    Checkout(u8),
    Amend,
    Reset(u8),
    Merge(u8),
    Delete(u8),
    Tag(u8),
    Collect,
    Sync,
    /// A run that ends after this number of batches.
    Interrupt(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..4_u8).prop_map(Step::Commit),
        2 => (0..4_u8).prop_map(Step::Branch),
        2 => (0..4_u8).prop_map(Step::Checkout),
        1 => Just(Step::Amend),
        1 => (1..3_u8).prop_map(Step::Reset),
        2 => (0..4_u8).prop_map(Step::Merge),
        1 => (0..4_u8).prop_map(Step::Delete),
        1 => (0..4_u8).prop_map(Step::Tag),
        1 => Just(Step::Collect),
        3 => Just(Step::Sync),
        2 => (0..3_u8).prop_map(Step::Interrupt),
    ];
    prop::collection::vec(step, 1..20)
}

impl Step {
    /// Takes the step; one that git refuses changes nothing.
    fn take(&self, home: &GitHome, second: u32) {
        let branch = |number: u8| format!("b{number}");
        let run = |arguments: &[&str]| drop(home.try_git(arguments));
        match self {
            Step::Commit(file) => {
                home.commit(&format!("f{file}/x"), &format!("change {file}"), second);
            }
            Step::Branch(number) => run(&["branch", &branch(*number)]),
            Step::Checkout(number) => run(&["checkout", "-q", "-f", &branch(*number)]),
            Step::Amend => {
                run(&["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]);
            }
            Step::Reset(count) => run(&["reset", "-q", "--hard", &format!("HEAD~{count}")]),
            Step::Merge(number) => {
                run(&["merge", "-q", "-X", "ours", "-m", "merge", &branch(*number)]);
            }
            Step::Delete(number) => run(&["branch", "-q", "-D", &branch(*number)]),
            Step::Tag(number) => run(&["tag", "-f", &format!("t{number}")]),
            Step::Collect => {
                run(&["reflog", "expire", "--expire=now", "--all"]);
                run(&["gc", "-q", "--prune=now"]);
            }
            Step::Sync => drop(home.sync()),
            Step::Interrupt(batches) => {
                let left = Cell::new(*batches);
                let options = CommitSyncOptions { batch_commits: 1, ..Default::default() };
                let is_cancelled = || match left.get() {
                    0 => true,
                    batches => {
                        left.set(batches - 1);
                        false
                    }
                };
                home.try_sync(options, &is_cancelled).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// After any history, and runs that ended early, the index is that which is made afresh.
    #[test]
    fn incremental_runs_give_the_index_made_afresh(steps in steps()) {
        let home = GitHome::new(&[]);
        for (step, second) in steps.iter().zip(0..) {
            step.take(&home, second);
        }
        home.sync();
        let queries = ["path:f0", "change", "subject:amended", "file:x"];
        let all = |home: &GitHome| {
            let mut answers = Vec::new();
            for query in queries {
                answers.push(find_set(home, query));
            }
            (home.read_commits(), answers)
        };
        let incremental = all(&home);
        home.check();
        let listed = home.try_git(&["rev-list", "--all"]).unwrap_or_default();
        let mut expected: Vec<&str> = listed.lines().collect();
        expected.sort_unstable();
        prop_assert_eq!(incremental.0.keys().map(String::as_str).collect::<Vec<_>>(), expected);
        home.delete_index();
        home.sync();
        prop_assert_eq!(all(&home), incremental);
    }
}

/// Applies the events of a view to the answer of its client.
fn follow_view(view: &mut MailView, answer: &mut BTreeSet<String>) {
    while let Some(event) = view.try_next().unwrap() {
        match event {
            MailViewEvent::Reset => answer.clear(),
            MailViewEvent::Added(commits) => {
                answer.extend(commits.into_iter().map(|one| one.message.uid));
            }
            MailViewEvent::Removed(removed) => {
                answer.retain(|hash| removed.iter().all(|one| one.uid != *hash));
            }
            MailViewEvent::Modified(_) | MailViewEvent::Complete(_) => {}
        }
    }
}

/// The events of a view over commits give the answer of a fresh search after each change.
#[test]
fn views_follow_the_commits() {
    let home = home_with_branches(&[]);
    home.sync();
    let lines =
        ["", "walrus", "path:src/*.rs", "not path:docs", "author:anna date:2020..", "parent:0"];
    let open = |line: &&str| {
        let options = MailViewOptions {
            context: MailQueryContext::from(&UserLocale::default()).with_kind(Kind::Commit),
            excluded_labels: Vec::new(),
            zones: ZoneDatabase::open_bundled(),
            clock: Arc::new(|| Instant::from_seconds_clamped(1_600_000_000)),
        };
        (MailView::open(home.index(), line, options).unwrap(), BTreeSet::new())
    };
    let mut views: Vec<(MailView, BTreeSet<String>)> = lines.iter().map(open).collect();
    let mut check = |step: &str| {
        for ((view, answer), line) in views.iter_mut().zip(lines) {
            follow_view(view, answer);
            assert_eq!(*answer, find_set(&home, line), "{line:?} after {step}");
        }
    };
    check("the first run");
    home.commit("src/walrus.rs", "Add the walrus", 50);
    home.commit("docs/other.md", "Write more", 60);
    home.sync();
    check("new commits");
    home.git(&["reset", "-q", "--hard", "HEAD~1"]);
    home.sync();
    check("a commit that went");
    home.commit("src/last.rs", "Another walrus", 70);
    home.git(&["branch", "-q", "-D", "side"]);
    home.git(&["tag", "-d", "v1"]);
    home.sync();
    check("both at once");
    home.delete_index();
    home.sync();
    check("a new index");
}

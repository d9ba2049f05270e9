//! The index of a repository's commits: in comparison with git, and with an index made afresh.

use crate::git_home::{GitFault, GitHome, object_path};
use larder_query::{Kind, MailQueryContext, MailView, MailViewEvent, MailViewOptions, UserLocale};
use larder_store::{StepSize, Store, StoreOptions};
use larder_sync::CommitSyncOptions;
use larder_sync::git_repository::GitTimeLimits;
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

/// Returns the hashes that git lists, sorted.
fn git_hashes(home: &GitHome, arguments: &[&str]) -> BTreeSet<String> {
    let listed = home.git(&[&["log", "--format=%H"], arguments].concat());
    listed.lines().map(ToString::to_string).collect()
}

fn find_set(home: &GitHome, line: &str) -> BTreeSet<String> {
    home.find(line).into_iter().collect()
}

/// A repository with two branches and a merge.
fn home_with_branches(options: &[&str]) -> GitHome {
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
fn broken_objects_are_named_and_the_rest_is_taken() {
    let home = home_with_branches(&[]);
    // The commit of a branch, and the tree of another commit.
    let broken = home.git(&["rev-parse", "side"]);
    let without_paths = home.git(&["rev-parse", "main~1"]);
    let tree = home.git(&["rev-parse", "main~1^{tree}"]);
    let kept = [&broken, &tree].map(|object| {
        let path = object_path(&home.root(), object);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        bytes
    });
    home.git(&["tag", "-d", "v1"]);
    let report = home.sync();
    assert!(!report.problems.is_empty());
    assert!(report.problems.iter().all(|problem| problem.is_left_out));
    let mut subjects: Vec<String> =
        home.read_commits().into_values().map(|(subject, ..)| subject).collect();
    subjects.sort();
    assert_eq!(subjects, ["Begin", "Merge side", "Print the walrus", "Write about the \u{dc}bung"]);
    // The commit whose tree is missing has no paths, and is found by its words.
    assert_eq!(home.find(&format!("id:{without_paths} path:src")), [""; 0]);
    assert_eq!(home.find("subject:print"), [without_paths]);
    let reasons: Vec<&str> = report.problems.iter().map(|one| one.reason.as_str()).collect();
    assert!(reasons.iter().any(|reason| reason.contains(&broken)), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains(&tree)), "{reasons:?}");
    // The next run names them again, and adds nothing twice.
    let again = home.sync();
    assert_eq!((again.added, again.reread, again.removed), (0, 1, 0));
    assert_eq!(again.problems, report.problems);
    home.check();
    for (object, bytes) in [&broken, &tree].into_iter().zip(kept) {
        fs::write(object_path(&home.root(), object), bytes).unwrap();
    }
    let complete = home.sync();
    assert_eq!((complete.added, complete.reread, complete.problems.len()), (1, 1, 0));
    assert_eq!(home.find("path:src").len(), 3);
    assert!(home.sync().is_unchanged);
    home.check();
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

/// Makes a repository with a history of so many commits.
fn home_with_history(commits: u32) -> GitHome {
    let home = GitHome::new(&[]);
    let mut history = String::new();
    for number in 0..commits {
        let time = 1_577_836_800 + number;
        history += &format!(
            "commit refs/heads/main\ncommitter Anna Berg <anna@example.org> {time} +0000\n\
             data 4\nwordM 644 inline src/f{number}\ndata 1\nx\n"
        );
    }
    home.git_with_input(&["fast-import", "--quiet"], &history);
    home.git(&["reset", "-q", "--hard"]);
    home
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

/// Makes a repository a clone without the trees of a history of so many commits.
fn clone_without_trees(commits: u32) -> GitHome {
    let home = home_with_history(commits);
    home.git(&["config", "uploadpack.allowFilter", "true"]);
    fs::rename(home.root(), home.path("origin")).unwrap();
    fs::create_dir(home.root()).unwrap();
    let url = format!("file://{}", home.path("origin").display());
    home.git(&["clone", "-q", "--bare", "--filter=tree:0", &url, "."]);
    home
}

/// Past the limit of trees that are missing, commits are read without paths, until one of them can
/// be read.
#[test]
fn a_clone_without_trees_is_read_without_paths() {
    let home = clone_without_trees(110);
    let objects = || home.git(&["count-objects", "-v"]);
    let before = objects();
    let report = home.sync();
    assert_eq!((report.added, home.find("").len(), home.find("path:src").len()), (110, 110, 0));
    let reasons: Vec<&str> = report.problems.iter().map(|one| one.reason.as_str()).collect();
    let path = home.root().display().to_string();
    let repair = format!("git -C {path} fetch --refetch --filter=blob:none");
    assert!(reasons.len() == 1 && reasons[0].ends_with(&repair), "{reasons:?}");
    assert!(!report.problems[0].is_left_out);
    assert_eq!(objects(), before, "something was fetched");
    // The next run says it again, and reads nothing again.
    let again = home.sync();
    assert!(again.is_unchanged);
    assert_eq!((again.reread, &again.problems), (0, &report.problems));
    let full = home.sync_fully();
    assert_eq!((full.added, full.reread, full.removed), (0, 110, 0));
    assert_eq!((&full.problems, home.find("").len()), (&report.problems, 110));
    // New commits come without trees, too.
    fs::rename(home.root(), home.path("clone")).unwrap();
    fs::rename(home.path("origin"), home.root()).unwrap();
    home.commit("src/new", "newest", 200);
    fs::rename(home.root(), home.path("origin")).unwrap();
    fs::rename(home.path("clone"), home.root()).unwrap();
    home.git(&["fetch", "-q", "origin", "main:main"]);
    let report = home.sync();
    assert_eq!((report.added, report.reread, report.problems.len()), (1, 0, 1));
    assert_eq!(home.find("newest").len(), 1);
    home.check();
    home.git(&["fetch", "-q", "--refetch", "--filter=blob:none", "origin", "main:main"]);
    let report = home.sync();
    assert_eq!((report.added, report.reread, report.problems), (0, 111, vec![]));
    assert_eq!((home.find("path:src").len(), home.find("path:src/new").len()), (111, 1));
    assert!(home.sync().is_unchanged);
    home.check();
}

/// Makes a commit of a tree with `width` to the power of `depth` paths, and one behind it.
fn commit_deep_tree(home: &GitHome, width: u32, depth: u32) -> String {
    let mut tree = format!("100644 blob {}", home.hash_object("x"));
    for level in 0..=depth {
        let names = 0..if level == 0 { 1 } else { width };
        let long = "x".repeat(220);
        let rows = names.map(|name| format!("{tree}\tname{name}.{long}\n")).collect::<String>();
        tree = format!("040000 tree {}", home.git_with_input(&["mktree"], &rows));
    }
    let tree = tree.rsplit(' ').next().unwrap().to_string();
    let commit = home.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "a bomb"]);
    home.git(&["update-ref", "HEAD", &commit]);
    let next = home.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "behind it"]);
    home.git(&["update-ref", "HEAD", &next]);
    commit
}

/// A tree of a few objects can have any number of paths.
#[test]
fn the_paths_of_a_commit_have_a_bound() {
    for (depth, memory, reason, with_paths) in [
        (9, u64::MAX, "changes at least ", 1),
        (15, 100 << 20, "changes more paths than git can compare", 0),
    ] {
        let mut home = GitHome::new(&[]);
        home.commit("src/main.rs", "Begin", 10);
        home.git_memory = memory;
        let commit = commit_deep_tree(&home, 3, depth);
        let report = home.sync();
        let reasons: Vec<&str> = report.problems.iter().map(|one| one.reason.as_str()).collect();
        let is_named = |text: &&str| text.contains(&commit) && text.contains(reason);
        assert!(reasons.len() == 1 && is_named(&reasons[0]), "{reasons:?}");
        assert!(!report.problems[0].is_left_out);
        assert_eq!((report.added, home.find("").len()), (3, 3));
        let line = format!("id:{commit} path:name0*");
        assert_eq!(home.find(&line).len(), with_paths, "{reason}");
        assert_eq!(home.find("path:src/main.rs").len(), 1);
        // It is not tried again.
        assert!(home.sync().is_unchanged);
        // The commits behind it stay, though the log of a comparison ends at it.
        let report = home.sync_fully();
        assert_eq!((report.added, report.removed, home.find("").len()), (0, 0, 3));
        assert_eq!(home.find("path:src/main.rs").len(), 1);
        // It is tried again then.
        assert_eq!((report.reread, report.problems.len()), (1 - with_paths, 1));
        home.check();
    }
}

/// A process of git that the system ended says nothing about the commit.
#[test]
fn a_commit_at_which_git_was_killed_is_tried_again() {
    let mut home = home_with_history(4);
    let commit = home.git(&["rev-parse", "main~1"]);
    home.git_fault = Some(GitFault::Killed(commit.clone()));
    let report = home.sync();
    let reasons: Vec<&str> = report.problems.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["git was ended by signal: 9 (SIGKILL)"]);
    assert!(report.problems[0].is_left_out);
    assert_eq!((report.added, home.find("path:src").len()), (4, 3));
    home.git_fault = None;
    let report = home.sync();
    assert_eq!((report.reread, report.problems, home.find("path:src").len()), (1, vec![], 4));
    assert!(home.sync().is_unchanged);
}

/// The time of a run that git may print nothing has a limit, and a full run tries all again.
#[test]
fn a_commit_at_which_git_is_silent_is_left_out() {
    let tick = Duration::from_millis(1);
    for (total, with_paths) in [(Duration::MAX, 3), (tick, 1)] {
        let time_limits =
            GitTimeLimits { longest: tick, next_longest: tick, total, ..GitTimeLimits::default() };
        let options = CommitSyncOptions { time_limits, ..CommitSyncOptions::default() };
        let mut home = home_with_history(4);
        let commit = home.git(&["rev-parse", "main~1"]);
        home.git_fault = Some(GitFault::Silent(commit.clone()));
        let report = home.try_sync(options, &|| false).unwrap();
        let reasons: Vec<&str> = report.problems.iter().map(|one| one.reason.as_str()).collect();
        let is_named = reasons[0].contains(&commit) == (total == Duration::MAX);
        assert!(reasons.len() == 1 && is_named, "{reasons:?}");
        assert!(reasons[0].ends_with("larder sync --full"), "{reasons:?}");
        assert_eq!((report.added, home.find("path:src").len()), (4, with_paths));
        home.git_fault = None;
        assert!(home.sync().is_unchanged);
        let report = home.sync_fully();
        assert_eq!((report.reread, report.problems), (4 - with_paths, vec![]));
        assert_eq!(home.find("path:src").len(), 4);
        home.check();
    }
}

/// A repository for which git never stops to print a little is read without paths at last.
#[test]
fn the_wait_for_git_has_a_limit_in_all() {
    let time_limits = GitTimeLimits { waiting: Duration::ZERO, ..GitTimeLimits::default() };
    let options = CommitSyncOptions { time_limits, ..CommitSyncOptions::default() };
    let home = home_with_history(4);
    let report = home.try_sync(options, &|| false).unwrap();
    let reasons: Vec<&str> = report.problems.iter().map(|one| one.reason.as_str()).collect();
    assert!(reasons.iter().all(|reason| reason.ends_with("larder sync --full")), "{reasons:?}");
    assert_eq!((report.added, home.find("path:src").len(), reasons.len()), (4, 0, 1));
    assert!(home.sync().is_unchanged);
    assert_eq!(home.sync_fully().reread, 4);
    assert_eq!(home.find("path:src").len(), 4);
    home.check();
}

/// A commit that is left out is not tried again because another one is broken.
#[test]
fn a_broken_repository_tries_no_expensive_commit_again() {
    let mut home = home_with_history(4);
    let (commit, broken) = (home.git(&["rev-parse", "main~1"]), home.git(&["rev-parse", "main"]));
    home.git(&["branch", "broken"]);
    home.git(&["reset", "-q", "--hard", "main~1"]);
    fs::remove_file(object_path(&home.root(), &broken)).unwrap();
    home.git_fault = Some(GitFault::Silent(commit));
    let tick = Duration::from_millis(1);
    let time_limits = GitTimeLimits {
        longest: tick,
        next_longest: tick,
        total: Duration::MAX,
        ..GitTimeLimits::default()
    };
    let options = CommitSyncOptions { time_limits, ..CommitSyncOptions::default() };
    for (added, reread) in [(3, 0), (0, 0)] {
        let report = home.try_sync(options, &|| false).unwrap();
        assert_eq!((report.added, report.reread), (added, reread), "{:?}", report.problems);
        assert!(report.problems.iter().any(|problem| problem.is_left_out));
    }
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

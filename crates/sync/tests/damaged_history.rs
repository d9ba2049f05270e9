//! The index of a repository of which parts are missing, broken, or take too much.

use crate::commit_sync::home_with_branches;
use crate::git_home::{GitFault, GitHome, object_path};
use larder_sync::CommitSyncOptions;
use larder_sync::git_repository::GitTimeLimits;
use std::fs;
use std::time::Duration;

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

/// A file of a ref without a hash, as a crash leaves it, is no ref that was deleted.
#[test]
fn commits_of_a_broken_ref_stay() {
    for (name, text, reason) in [
        ("refs/heads/main", "", "the ref refs/heads/main is broken"),
        ("refs/heads/main", "\0\0\0\0", "the ref refs/heads/main is broken"),
        ("refs/heads/side", "", "the ref refs/heads/side is broken"),
    ] {
        let home = home_with_branches(&[]);
        home.git(&["tag", "-d", "v1"]);
        home.git(&["checkout", "-q", "side"]);
        home.commit("src/side.rs", "Only on side", 45);
        home.git(&["checkout", "-q", "main"]);
        home.sync();
        let path = home.root().join(".git").join(name);
        let hash = fs::read(&path).unwrap();
        fs::write(&path, text).unwrap();
        for _ in 0..2 {
            let report = home.sync();
            let reasons: Vec<&str> =
                report.problems.iter().map(|one| one.reason.as_str()).collect();
            assert!(reasons.len() == 1 && reasons[0].starts_with(reason), "{reasons:?}");
            assert!(report.problems[0].is_left_out);
            assert_eq!((report.added, report.removed, home.find("").len()), (0, 0, 6));
        }
        // What the other refs have is taken.
        if name == "refs/heads/side" {
            home.commit("new", "Go on", 50);
            assert_eq!((home.sync().added, home.find("").len()), (1, 7));
        }
        fs::write(&path, hash).unwrap();
        let report = home.sync();
        assert_eq!((report.added, report.removed, report.problems), (0, 0, vec![]));
        assert!(home.sync().is_unchanged);
        home.check();
    }
}

/// What is no history, and names of branches that are gone, are no damage.
#[test]
fn broken_notes_and_dangling_names_are_no_damage() {
    let home = home_with_branches(&[]);
    home.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone"]);
    fs::create_dir_all(home.root().join(".git/refs/notes")).unwrap();
    fs::write(home.root().join(".git/refs/notes/commits"), "").unwrap();
    assert_eq!(home.sync().problems, vec![]);
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

/// Commits of a clone without trees, few or past the limit of trees that are missing, are read
/// without paths, until one of them can be read.
#[test]
fn a_clone_without_trees_is_read_without_paths() {
    for commits in [110, 4] {
        check_clone_without_trees(commits);
    }
}

fn check_clone_without_trees(commits: u32) {
    let home = clone_without_trees(commits);
    let count = commits as usize;
    let objects = || home.git(&["count-objects", "-v"]);
    let before = objects();
    let report = home.sync();
    assert_eq!((report.added, home.find("").len(), home.find("path:src").len()), (count, count, 0));
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
    assert_eq!((full.added, full.reread, full.removed), (0, count, 0));
    assert_eq!((&full.problems, home.find("").len()), (&report.problems, count));
    // New commits come without trees, too.
    fs::rename(home.root(), home.path("clone")).unwrap();
    fs::rename(home.path("origin"), home.root()).unwrap();
    home.commit("src/new", "newest", 200);
    fs::rename(home.root(), home.path("origin")).unwrap();
    fs::rename(home.path("clone"), home.root()).unwrap();
    home.git(&["fetch", "-q", "origin", "main:main"]);
    // The own ones have theirs.
    let blob = home.hash_object("own");
    let tree = home.git_with_input(&["mktree"], &format!("100644 blob {blob}\town\n"));
    let own = home.git(&["commit-tree", &tree, "-m", "Mine"]);
    home.git(&["update-ref", "refs/heads/own", &own]);
    let report = home.sync();
    assert_eq!((report.added, report.reread, report.problems.len()), (2, 0, 1));
    assert_eq!((home.find("newest").len(), home.find("path:own").len()), (1, 1));
    home.check();
    home.git(&["fetch", "-q", "--refetch", "--filter=blob:none", "origin", "main:main"]);
    let report = home.sync();
    assert_eq!((report.added, report.reread, report.problems), (0, count + 1, vec![]));
    assert_eq!((home.find("path:src").len(), home.find("path:src/new").len()), (count + 1, 1));
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

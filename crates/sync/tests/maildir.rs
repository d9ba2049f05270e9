//! Scans of maildirs: folders, files, links, changes, and what cannot be read.

use larder_sync::maildir::{MaildirDirectory, MaildirFile, MaildirProblem, scan_maildir};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

fn write(root: &Path, path: impl AsRef<Path>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "Subject: x\n\nx\n").unwrap();
}

fn folders(root: &Path) -> Vec<String> {
    let scan = scan_maildir(root).unwrap();
    assert!(scan.problems.is_empty(), "{:?}", scan.problems);
    let label = |found: &MaildirDirectory| {
        let kind = if found.is_new { "new" } else { "cur" };
        assert!(found.path.ends_with(kind));
        format!("{} {kind}", found.folder.display())
    };
    scan.directories.iter().map(label).collect()
}

fn list(directory: &MaildirDirectory) -> (Vec<MaildirFile>, Vec<MaildirProblem>) {
    let mut files = Vec::new();
    let problems = directory.list_files(&mut |file| files.push(file)).unwrap();
    (files, problems)
}

fn names(directory: &MaildirDirectory) -> Vec<String> {
    let (files, problems) = list(directory);
    assert!(problems.is_empty(), "{problems:?}");
    let mut names: Vec<String> =
        files.iter().map(|file| file.name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn directory(root: &Path, path: &str) -> MaildirDirectory {
    let scan = scan_maildir(root).unwrap();
    scan.directories.into_iter().find(|found| found.path == root.join(path)).unwrap()
}

#[test]
fn folders_are_found_at_any_depth() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for path in ["cur/1:2,", "new/2", "tmp/3", ".Sent.2024/cur/4", "INBOX/a/b/new/5", "notes/6"] {
        write(root, path);
    }
    assert_eq!(folders(root), [".Sent.2024 cur", "INBOX/a/b new", " cur", " new"]);
    assert_eq!(names(&directory(root, "cur")), ["1:2,"]);
    // Files beside the directories, and folders in them, are no messages.
    write(root, "cur/.hidden");
    write(root, "cur/folder/7");
    assert_eq!(names(&directory(root, "cur")), ["1:2,"]);
}

/// Servers allow folders of these names.
#[test]
fn folders_named_as_directories_of_messages_are_found() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for path in ["INBOX/cur/1", "new/new/2", "new/cur/3", "cur/new/4", "cur/.Sent/cur/5", "new/6"] {
        write(root, path);
    }
    let all = ["INBOX cur", " cur", "cur/.Sent cur", "cur new", " new", "new cur", "new new"];
    assert_eq!(folders(root), all);
    assert_eq!(names(&directory(root, "new")), ["6"]);
    assert_eq!(names(&directory(root, "new/new")), ["2"]);
    // One that has no messages of its own is not told from a folder beside the messages.
    write(root, "INBOX/new/2024/cur/7");
    assert_eq!(folders(root).len(), 8);
    fs::remove_dir_all(root.join("INBOX/new")).unwrap();
    write(root, "cur/.noindex");
    assert_eq!(folders(root), ["INBOX cur", " cur", " new", "new cur", "new new"]);
}

#[test]
fn folders_are_left_out_on_request() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for path in ["spam/cur/1", "spam/.noindex", "spam/deep/cur/2", "old/cur/3", "old/.noupdate"] {
        write(root, path);
    }
    assert_eq!(folders(root), ["old cur"]);
    assert!(directory(root, "old/cur").has_noupdate);
}

#[test]
fn links_are_followed_without_loops() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "INBOX/cur/1");
    write(elsewhere.path(), "new/2");
    symlink(root, root.join("INBOX/up")).unwrap();
    symlink(root.join("INBOX"), root.join("again")).unwrap();
    symlink(elsewhere.path(), root.join("elsewhere")).unwrap();
    symlink("/no/such/folder", root.join("nowhere")).unwrap();
    assert_eq!(folders(root).len(), 2);
    assert!(folders(root).contains(&"elsewhere new".to_string()));
    // A linked message is one; a link to nowhere is none.
    symlink(elsewhere.path().join("new/2"), root.join("INBOX/cur/linked")).unwrap();
    symlink("/no/such/file", root.join("INBOX/cur/dead")).unwrap();
    let found = scan_maildir(root).unwrap().directories;
    let found = found.iter().find(|found| !found.is_new).unwrap();
    assert_eq!(names(found), ["1", "linked"]);
}

/// A link is listed under the path of its target, whatever the names and the order of entries.
#[test]
fn folders_that_are_reached_twice_keep_their_own_paths() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "m/INBOX/cur/1");
    write(elsewhere.path(), "cur/2");
    for link in ["Important", "a", "m/0", "m/Z", "z"] {
        symlink(root.join("m/INBOX"), root.join(link)).unwrap();
    }
    // A directory that is a link itself, and one in a folder that only links lead to.
    fs::create_dir(root.join("b")).unwrap();
    symlink(root.join("m/INBOX/cur"), root.join("b/cur")).unwrap();
    for link in ["m/y", "x", "w"] {
        symlink(elsewhere.path(), root.join(link)).unwrap();
    }
    assert_eq!(folders(root), ["m/INBOX cur", "m/y cur"]);
}

#[test]
fn names_need_not_be_utf_8() {
    let root = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"br\xfccke");
    write(root.path(), PathBuf::from(name).join("cur").join(OsStr::from_bytes(b"1.h\xf6st:2,S")));
    let scan = scan_maildir(root.path()).unwrap();
    assert_eq!(scan.directories[0].folder, Path::new(name));
    let (files, _) = list(&scan.directories[0]);
    assert_eq!(files[0].name.as_bytes(), b"1.h\xf6st:2,S");
}

/// A changed flag renames a file: it is recognised by its inode, and its directory by its state.
#[test]
fn changes_are_seen_in_the_state_and_the_inodes() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "cur/1:2,");
    write(root, "new/2");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    for path in ["cur", "new"] {
        fs::File::open(root.join(path)).unwrap().set_modified(old).unwrap();
    }
    let before = directory(root, "cur");
    let (files, _) = list(&before);
    assert_eq!(directory(root, "cur"), before);
    fs::rename(root.join("cur/1:2,"), root.join("cur/1:2,S")).unwrap();
    let after = directory(root, "cur");
    assert_ne!(after.state, before.state);
    let (renamed, _) = list(&after);
    assert_eq!((renamed[0].inode, renamed[0].name.to_str()), (files[0].inode, Some("1:2,S")));
    assert_eq!(renamed[0].inode, fs::metadata(root.join("cur/1:2,S")).unwrap().ino());
    assert!(before.state.is_settled(1_000_002) && !before.state.is_settled(1_000_001));
}

#[test]
fn unreadable_folders_and_pipes_are_reported_and_the_rest_is_listed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "good/cur/1");
    write(root, "bad/cur/2");
    let made = std::process::Command::new("mkfifo").arg(root.join("good/cur/pipe")).status();
    assert!(made.unwrap().success());
    let (files, problems) = list(&directory(root, "good/cur"));
    assert_eq!((files.len(), problems.len()), (1, 1));
    assert_eq!(problems[0].reason.to_string(), "not a file");
    let deep: PathBuf = std::iter::repeat_n("d", 70).collect();
    fs::create_dir_all(root.join(&deep).join("cur")).unwrap();
    let scan = scan_maildir(root).unwrap();
    assert_eq!(scan.directories.len(), 2);
    assert_eq!(scan.problems[0].reason.to_string(), "more than 64 folders deep");
    fs::set_permissions(root.join("bad"), fs::Permissions::from_mode(0o000)).unwrap();
    let scan = scan_maildir(root).unwrap();
    fs::set_permissions(root.join("bad"), fs::Permissions::from_mode(0o755)).unwrap();
    // Root reads everything.
    let is_root = scan.directories.len() == 2;
    assert!(is_root || scan.problems.iter().any(|problem| problem.path.ends_with("bad")));
    assert!(scan.directories.iter().any(|found| found.folder == Path::new("good")));
    assert!(scan_maildir(&root.join("missing")).is_err());
}

//! Mbox files and folders of .eml files as sources.

use crate::mail_sync::{check, full_sync, set_old, small_batches};
use crate::mailbox::{
    COLLECTION, IndexedMessage, create_index, find_rows, indexed_messages, message,
};
use larder_store::{BatchChange, MailBatch, MailChange, Operation, Store};
use larder_sync::maildir::{detect_mail_source, scan_mail};
use larder_sync::{
    MailSource, MailSourceFormat, MailSyncOptions, MailSyncReport, is_mbox_message,
    read_message_file, sync_locked_mail,
};
use proptest::prelude::*;
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

fn source_at(root: &Path) -> MailSource<'_> {
    MailSource { root, format: MailSourceFormat::Files, collection: COLLECTION }
}

/// Files of mail with an index of them.
struct MailFiles {
    folder: TempDir,
    root: PathBuf,
    store: Store,
}

impl MailFiles {
    /// Creates an index of what is at a path of a new folder.
    fn new(root: &str) -> MailFiles {
        let folder = tempfile::tempdir().unwrap();
        let store = create_index(folder.path().join("index"));
        let root = folder.path().join(root);
        MailFiles { folder, root, store }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        set_old(&path);
    }

    fn sync(&mut self, options: &MailSyncOptions) -> MailSyncReport {
        self.sync_until(options, &|| false)
    }

    fn sync_until(
        &mut self,
        options: &MailSyncOptions,
        is_cancelled: &dyn Fn() -> bool,
    ) -> MailSyncReport {
        let lock = self.store.lock_mail_sync().unwrap();
        let (store, source) = (&mut self.store, source_at(&self.root));
        sync_locked_mail(store, &lock, source, options, None, &mut |_| {}, is_cancelled).unwrap()
    }

    /// Synchronises. Returns the numbers of added, renamed, removed and reread messages.
    fn counts(&mut self, options: &MailSyncOptions) -> [usize; 4] {
        let report = self.sync(options);
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        [report.added_files, report.renamed_files, report.removed_files, report.reread_files]
    }

    fn find(&self, line: &str) -> Vec<String> {
        let reader = self.store.open_reader().unwrap();
        let rows = find_rows(&reader, line).into_iter();
        let mut uids: Vec<String> =
            rows.map(|row| reader.mail().unwrap().message(row).unwrap().unwrap().uid).collect();
        uids.sort();
        uids
    }

    /// The bytes of all messages, sorted.
    fn bytes(&self) -> Vec<Vec<u8>> {
        let messages = indexed_messages(&self.store).into_values();
        let mut files: Vec<Vec<u8>> = messages
            .flat_map(|one| one.files)
            .map(|(_, path)| read_message_file(&self.root.join(path), 1 << 20).unwrap())
            .collect();
        files.sort();
        files
    }

    /// Returns everything that is known of the messages.
    fn content(&self) -> Vec<IndexedMessage> {
        let mut content: Vec<IndexedMessage> =
            indexed_messages(&self.store).into_values().collect();
        content.sort();
        content
    }

    fn assert_same_as_fresh(&self) {
        let mut fresh = MailFiles::new("x");
        fresh.root.clone_from(&self.root);
        fresh.sync(&small_batches(64));
        assert_eq!(self.content(), fresh.content());
        check(&self.store);
    }
}

/// Returns a message of an mbox file, with the line in front and the empty line behind.
fn mbox_message(id: &str, fields: &str, body: &str) -> String {
    format!("From a Wed Jan  1 10:00:00 2020\n{fields}{}\n", message(id, "note", body))
}

fn numbered_messages(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|n| mbox_message(&format!("m{n}"), "", &format!("common word{n}"))).collect()
}

#[test]
fn messages_of_an_mbox_file_are_found() {
    let mut files = MailFiles::new("old.mbox");
    let first = mbox_message("m1", "Status: RO\nX-Status: AF\n", "walrus\n>From the sea");
    let gone = mbox_message("m2", "X-Mozilla-Status: 0009\n", "otter");
    files.write("old.mbox", first + &gone + &mbox_message("m3", "", "seal"));
    assert_eq!(files.counts(&small_batches(64)), [2, 0, 0, 0]);
    for (line, expected) in [
        ("walrus", vec!["m1"]),
        ("\"from the sea\"", vec!["m1"]),
        ("otter", vec![]),
        ("flag:replied flag:flagged flag:seen", vec!["m1"]),
        ("flag:unread", vec!["m3"]),
        ("maildir:/", vec!["m1", "m3"]),
        ("header:status", vec![]),
        ("date:2020", vec!["m1", "m3"]),
    ] {
        assert_eq!(files.find(line), expected, "{line}");
    }
    let expected =
        format!("Status: RO\nX-Status: AF\n{}", message("m1", "note", "walrus\nFrom the sea"));
    assert_eq!(files.bytes(), [message("m3", "note", "seal").into_bytes(), expected.into_bytes()]);
    assert_eq!(files.counts(&small_batches(64)), [0; 4]);
    assert_eq!(files.counts(&full_sync()), [0; 4]);
    files.assert_same_as_fresh();
}

/// A change in the middle of a file that grew is found on request only: the file was read from its
/// former end on.
#[test]
fn a_file_that_grew_is_read_from_its_former_end() {
    let mut files = MailFiles::new("old.mbox");
    let text = numbered_messages(0..200);
    files.write("old.mbox", &text);
    assert_eq!(files.counts(&small_batches(64)), [200, 0, 0, 0]);
    let edited = text.replace("word100", "WORD777");
    files.write("old.mbox", edited.clone() + &numbered_messages(200..203));
    assert_eq!(files.counts(&small_batches(64)), [3, 0, 0, 0]);
    assert_eq!((files.find("word777").len(), files.find("common").len()), (0, 203));
    assert_eq!(files.counts(&full_sync()), [0, 1, 0, 1]);
    assert_eq!((files.find("word777"), files.find("word100").len()), (vec!["m100".into()], 0));
    // The empty line at the end may come with the next message.
    let grown = edited + &numbered_messages(200..203);
    files.write("old.mbox", grown.strip_suffix('\n').unwrap());
    assert_eq!(files.counts(&small_batches(64)), [0; 4]);
    files.write("old.mbox", grown.clone() + &numbered_messages(203..204));
    assert_eq!(files.counts(&small_batches(64)), [1, 0, 0, 0]);
    files.assert_same_as_fresh();
    // The last message grew.
    files.write("old.mbox", grown + &numbered_messages(203..204) + "more\n");
    assert_eq!(files.counts(&small_batches(64)), [0, 1, 0, 1]);
    assert_eq!(files.find("more"), ["m203"]);
    files.assert_same_as_fresh();
}

/// A mail program changes flags in their place, and the mail server adds a message.
#[test]
fn flags_in_the_older_part_of_a_file_that_grew_are_read() {
    let mut files = MailFiles::new("old.mbox");
    let status = |bits: &str| format!("X-Mozilla-Status: {bits}\n");
    let text = |bits: [&str; 3]| {
        let messages = bits.iter().enumerate().map(|(number, bits)| {
            // A header that is longer than what is read at first.
            let fields = "X-Long: x\n".repeat(1000 * (number % 2)) + &status(bits);
            mbox_message(&format!("m{number}"), &fields, "common\nX-Mozilla-Status: 0009")
        });
        messages.collect::<String>()
    };
    files.write("old.mbox", text(["0000", "0000", "0000"]));
    assert_eq!(files.counts(&small_batches(64)), [3, 0, 0, 0]);
    files.write("old.mbox", text(["0000", "0005", "0009"]) + &numbered_messages(7..9));
    assert_eq!(files.counts(&small_batches(64)), [2, 1, 1, 0]);
    assert_eq!(files.find("flag:flagged flag:seen"), ["m1"]);
    assert_eq!(files.find("common"), ["m0", "m1", "m7", "m8"]);
    files.assert_same_as_fresh();
    files.write("old.mbox", text(["0000", "0005", "0009"]) + &numbered_messages(7..10));
    assert_eq!(files.counts(&small_batches(64)), [1, 0, 0, 0]);
    files.assert_same_as_fresh();
}

/// A mail program that writes a file anew empties it first.
#[test]
fn an_mbox_file_that_is_empty_for_a_moment_keeps_its_messages() {
    for (root, file) in [("mail", "mail/Inbox"), ("old.mbox", "old.mbox")] {
        let mut files = MailFiles::new(root);
        let path = files.folder.path().join(file);
        let text = numbered_messages(0..3);
        files.write(file, &text);
        if root == "mail" {
            files.write("mail/Sent", numbered_messages(7..8));
        }
        let all = files.sync(&small_batches(64)).added_files;
        for options in [small_batches(64), full_sync()] {
            fs::write(&path, "").unwrap();
            let report = files.sync(&options);
            assert_eq!((report.removed_files, report.problems.len()), (0, 1), "{root}");
            assert!(report.has_unsettled_files, "{root}");
            assert_eq!(report.problems[0].path, path);
            assert_eq!(files.find("common").len(), all);
            files.write(file, &text);
            assert_eq!(files.counts(&options), [0; 4]);
        }
        // All its messages were deleted.
        files.write(file, "");
        assert_eq!(files.counts(&small_batches(64)), [0, 0, 3, 0]);
        assert_eq!(files.find("common").len(), all - 3);
        files.write(file, &text);
        assert_eq!(files.counts(&small_batches(64)), [3, 0, 0, 0]);
        check(&files.store);
    }
}

#[test]
fn a_message_that_is_too_large_is_named_each_time() {
    let mut files = MailFiles::new("old.mbox");
    let large = mbox_message("large", "", &"walrus ".repeat(10_000));
    files.write("old.mbox", numbered_messages(0..2) + &large + &numbered_messages(2..3));
    let options = MailSyncOptions { max_message_bytes: 10_000, ..small_batches(64) };
    let report = files.sync(&options);
    let reasons: Vec<&str> = report.problems.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!((report.added_files, reasons), (3, vec!["larger than 0 MiB"]));
    // The file is not read again for it.
    let report = files.sync(&options);
    assert_eq!((report.listed_directories, report.problems.len()), (0, 1));
    let problems = report.problems;
    let report = files.sync(&MailSyncOptions { is_full: true, ..options.clone() });
    assert_eq!((report.added_files, &report.problems), (0, &problems));
    // Nor is its part of a file that grew.
    let grown = numbered_messages(0..2) + &large + &numbered_messages(2..4);
    files.write("old.mbox", grown);
    let report = files.sync(&options);
    assert_eq!((report.added_files, &report.problems), (1, &problems));
    assert_eq!((&files.sync(&options).problems, files.find("common").len()), (&problems, 4));
}

/// A file whose messages were found by other rules is read again, though it did not change.
#[test]
fn a_state_of_other_rules_is_none() {
    let mut files = MailFiles::new("old.mbox");
    files.write("old.mbox", numbered_messages(0..2));
    files.sync(&small_batches(64));
    assert_eq!(files.sync(&small_batches(64)).listed_directories, 0);
    for rules in [&[][..], &[0]] {
        let known = {
            let reader = files.store.open_reader().unwrap();
            reader.mail().unwrap().directories(COLLECTION).unwrap().remove(0)
        };
        let state = [&known.state[..48], rules].concat();
        let (path, folder) = (known.path, known.folder);
        let batch = MailBatch {
            collection: COLLECTION.to_string(),
            changes: vec![MailChange::PutDirectory { path, folder, is_new: false, state }],
            ..MailBatch::default()
        };
        let change = BatchChange::Mail(Box::new(batch));
        files.store.apply(&mut Operation::new("test", "", 0), vec![change]).unwrap();
        let report = files.sync(&small_batches(64));
        assert_eq!((report.listed_directories, report.added_files), (1, 0));
        assert_eq!(files.sync(&small_batches(64)).listed_directories, 0);
    }
}

#[test]
fn separators_without_a_message_are_left_out() {
    let mut files = MailFiles::new("old.mbox");
    let blank = "From a Wed Jan  1 10:00:00 2020\n\n";
    let text = blank.repeat(3) + &numbered_messages(0..1) + blank + "\r\n\n" + blank;
    files.write("old.mbox", text.clone() + &numbered_messages(1..2) + blank);
    assert_eq!(files.counts(&small_batches(64)), [2, 0, 0, 0]);
    assert_eq!(files.find(""), ["m0", "m1"]);
    files.write("old.mbox", text + &numbered_messages(1..2) + blank + &numbered_messages(2..3));
    assert_eq!(files.counts(&small_batches(64)), [1, 0, 0, 0]);
    files.assert_same_as_fresh();
}

/// Messages that moved in a file are not read again, and have their new flags.
#[test]
fn a_file_that_changed_is_compared_by_contents() {
    let mut files = MailFiles::new("old.mbox");
    files.write("old.mbox", numbered_messages(0..50));
    files.sync(&small_batches(64));
    let flagged = mbox_message("m20", "X-Status: F\n", "common word20");
    let text = numbered_messages(1..20) + &flagged + &numbered_messages(21..50);
    files.write("old.mbox", text);
    assert_eq!(files.counts(&small_batches(64)), [0, 49, 1, 0]);
    assert_eq!(files.find("flag:flagged"), ["m20"]);
    assert_eq!(files.find("word0").len(), 0);
    files.assert_same_as_fresh();
    // The bytes are those of now, and never those of another message.
    let path = files.content()[10].files[0].1.clone();
    files.write("old.mbox", numbered_messages(5..50));
    let error = read_message_file(&files.root.join(path), 1 << 20).unwrap_err();
    assert!(error.to_string().contains("larder sync"), "{error}");
    fs::remove_file(&files.root).unwrap();
    files.write("old.mbox", "x");
    let lock = files.store.lock_mail_sync().unwrap();
    let source = source_at(&files.root);
    let options = small_batches(64);
    let store = &mut files.store;
    assert!(
        sync_locked_mail(store, &lock, source, &options, None, &mut |_| {}, &|| false).is_err(),
        "a file that is no mbox file any more removes no messages"
    );
}

/// A source is said to have no files of mail any more only if none of its disks may be missing.
#[test]
fn a_source_whose_disk_is_away_is_not_said_to_be_empty() {
    let mut files = MailFiles::new("mail");
    fs::create_dir(&files.root).unwrap();
    let (root, disk) = (files.root.clone(), files.folder.path().join("disk"));
    let describe_failure = |files: &mut MailFiles| {
        let lock = files.store.lock_mail_sync().unwrap();
        let (store, source, options) = (&mut files.store, source_at(&root), small_batches(64));
        let synced = sync_locked_mail(store, &lock, source, &options, None, &mut |_| {}, &|| false);
        synced.unwrap_err().to_string()
    };
    // A link that leads nowhere, and an empty mount point.
    files.write("disk/a/2024.mbox", mbox_message("m1", "", "walrus"));
    symlink(&disk, root.join("archive")).unwrap();
    assert_eq!(files.counts(&small_batches(64)), [1, 0, 0, 0]);
    fs::rename(&disk, files.folder.path().join("away")).unwrap();
    let failure = describe_failure(&mut files);
    assert!(failure.contains("mail/archive: ") && failure.contains("mounted"), "{failure}");
    fs::remove_file(root.join("archive")).unwrap();
    fs::create_dir(root.join("archive")).unwrap();
    let failure = describe_failure(&mut files);
    assert!(failure.contains("mail/archive: ") && failure.contains("mounted"), "{failure}");
    // A folder that cannot be read; root reads everything.
    fs::write(root.join("archive/notes"), "seal").unwrap();
    fs::set_permissions(root.join("archive"), fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = fs::read_dir(root.join("archive")).is_ok();
    let failure = describe_failure(&mut files);
    fs::set_permissions(root.join("archive"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(is_root || failure.contains("mail/archive: Permission denied"), "{failure}");
    let failure = describe_failure(&mut files);
    assert!(failure.contains("has no mbox or .eml files any more"), "{failure}");
}

#[test]
fn an_interrupted_synchronisation_is_completed_by_the_next_one() {
    let mut files = MailFiles::new("old.mbox");
    files.write("old.mbox", numbered_messages(0..100));
    let asked = Cell::new(0);
    let report = files.sync_until(&small_batches(8), &|| asked.replace(asked.get() + 1) > 6);
    assert!(report.is_interrupted);
    let found = files.find("common").len();
    assert!(found > 0 && found < 100, "{found}");
    assert_eq!(files.counts(&small_batches(8)), [100 - found, 0, 0, 0]);
    files.assert_same_as_fresh();
}

/// The folders of Thunderbird, and those of .eml files.
#[test]
fn trees_have_mbox_and_eml_files() {
    let mut files = MailFiles::new("mail");
    files.write("mail/Inbox", mbox_message("m1", "", "walrus"));
    files.write("mail/Inbox.msf", "// <!-- <mdb:mork");
    files.write("mail/Inbox.sbd/Work", mbox_message("m2", "", "seal"));
    files.write("mail/Empty", "");
    files.write("mail/Takeout/All mail.mbox", mbox_message("m3", "X-Gmail-Labels: Inbox\n", "owl"));
    files.write("mail/export/2020/1.eml", message("m4", "note", "otter"));
    files.write("mail/export/2020/notes.txt", "otter");
    files.write("mail/export/2020/2.EML", message("m5", "note", "otter"));
    files.write("mail/hidden/.noindex", "");
    files.write("mail/hidden/old.mbox", mbox_message("m6", "", "walrus"));
    let scan = scan_mail(&files.root, MailSourceFormat::Files).unwrap();
    let folders: Vec<&str> =
        scan.directories.iter().map(|one| one.folder.to_str().unwrap()).collect();
    assert_eq!(folders, ["Inbox", "Inbox/Work", "Takeout/All mail", "export/2020"]);
    assert_eq!(files.counts(&small_batches(64)), [5, 0, 0, 0]);
    assert_eq!(files.find("maildir:/Inbox"), ["m1"]);
    assert_eq!(files.find("maildir:/Inbox/Work"), ["m2"]);
    assert_eq!(files.find("otter"), ["m4", "m5"]);
    assert_eq!(files.find("flag:seen"), ["m3"]);
    // A message moves from one file to another.
    files.write(
        "mail/Inbox.sbd/Work",
        mbox_message("m2", "", "seal") + &mbox_message("m1", "", "walrus"),
    );
    files.write("mail/Inbox", mbox_message("m7", "", "new"));
    fs::remove_file(files.root.join("export/2020/1.eml")).unwrap();
    files.write("mail/export/3.eml", message("m8", "note", "otter"));
    let counts = files.counts(&full_sync());
    assert_eq!(counts, [2, 1, 1, 0]);
    assert_eq!(files.find("maildir:/Inbox/Work"), ["m1", "m2"]);
    assert_eq!(files.find("otter"), ["m5", "m8"]);
    files.assert_same_as_fresh();
    let path = files.root.join("export/3.eml");
    assert!(path.is_file() && !is_mbox_message(&path));
}

/// A change of one of these files is a reason to look at the source.
#[test]
fn targets_of_links_are_mbox_files_or_may_become_some() {
    let files = MailFiles::new("mail");
    fs::create_dir(&files.root).unwrap();
    files.write("var/anna", mbox_message("m1", "", "walrus"));
    files.write("var/empty", "");
    files.write("var/mail.log", "a line");
    let var = fs::canonicalize(files.folder.path().join("var")).unwrap();
    for name in ["anna", "empty", "mail.log", "missing"] {
        symlink(var.join(name), files.root.join(name)).unwrap();
    }
    symlink("/dev/null", files.root.join("Trash")).unwrap();
    symlink(&var, files.root.join("folder")).unwrap();
    let mut targets = scan_mail(&files.root, MailSourceFormat::Files).unwrap().link_targets;
    targets.sort();
    assert_eq!(targets, ["anna", "empty", "missing"].map(|name| var.join(name)));
}

#[test]
fn formats_are_recognised() {
    let files = MailFiles::new("x");
    let root = files.folder.path().to_path_buf();
    files.write("maildir/cur/1:2,", message("m1", "note", "walrus"));
    files.write("maildir/old.mbox", mbox_message("m2", "", "seal"));
    files.write("tree/a/1.eml", message("m1", "note", "walrus"));
    files.write("file", mbox_message("m2", "", "seal"));
    files.write("other/text", "walrus");
    // A folder of a tree may be named `new`, and a copy of a maildir may lack its empty directory.
    files.write("years/new/2024.mbox", mbox_message("m1", "", "seal"));
    files.write("years/old/2023.mbox", mbox_message("m2", "", "seal"));
    files.write("copy/cur/1:2,", message("m1", "note", "walrus"));
    files.write("copy/eml/2.eml", message("m2", "note", "walrus"));
    fs::create_dir_all(root.join("bare/new")).unwrap();
    let detect =
        |name: &str| detect_mail_source(&root.join(name)).unwrap().map(|found| found.format);
    assert_eq!(detect("maildir"), Some(MailSourceFormat::Maildir));
    assert_eq!(detect("tree"), Some(MailSourceFormat::Files));
    assert_eq!(detect("file"), Some(MailSourceFormat::Files));
    assert_eq!(detect("years"), Some(MailSourceFormat::Files));
    assert_eq!(detect("copy"), Some(MailSourceFormat::Maildir));
    assert_eq!(detect("bare"), Some(MailSourceFormat::Maildir));
    fs::create_dir(root.join("years/cur")).unwrap();
    assert_eq!(detect("years"), Some(MailSourceFormat::Maildir));
    let left_out = |name: &str| {
        let found = detect_mail_source(&root.join(name)).unwrap().unwrap();
        let paths = found.left_out.iter().map(|one| one.path.strip_prefix(&root).unwrap());
        paths.map(|path| path.display().to_string()).collect::<Vec<String>>()
    };
    assert_eq!(left_out("maildir"), ["maildir/old.mbox"]);
    assert_eq!(left_out("copy"), ["copy/eml"]);
    assert_eq!(left_out("years"), ["years/old/2023.mbox"]);
    assert_eq!(detect("other"), None);
    assert_eq!(detect("other/text"), None);
    assert!(detect_mail_source(&root.join("missing")).is_err());
}

/// Prints the bytes of each message of an mbox file as a line of hexadecimal digits.
const PYTHON: &str = "import mailbox, sys
box = mailbox.mbox(sys.argv[1], create=False)
for key in box.keys(): print(box.get_bytes(key).hex())";

#[test]
fn messages_are_those_of_python() {
    let mut files = MailFiles::new("old.mbox");
    let mut text = String::new();
    for number in 0..300 {
        let body = ["x", "", "\n", "a\n\n", " From x"][number % 5].repeat(number % 7 + 1);
        let fields = ["", "Status: R\n", "X-Status: A\nX-UID: 5\n"][number % 3];
        text += &mbox_message(&format!("m{number}"), fields, &body);
    }
    files.write("old.mbox", &text);
    let Ok(output) = Command::new("python3").args(["-c", PYTHON]).arg(&files.root).output() else {
        eprintln!("left out: python3 is not installed");
        return;
    };
    assert!(output.status.success());
    let decode = |line: &str| -> Vec<u8> {
        let digits = line.as_bytes().chunks(2).map(|two| str::from_utf8(two).unwrap());
        digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
    };
    let mut expected: Vec<Vec<u8>> =
        str::from_utf8(&output.stdout).unwrap().lines().map(decode).collect();
    expected.sort();
    assert_eq!(expected.len(), 300);
    files.sync(&small_batches(64));
    assert_eq!(files.bytes(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever happens to a file, its index is that of a new one.
    #[test]
    fn the_index_of_a_changing_file_is_that_of_a_fresh_one(
        steps in prop::collection::vec((0..6u8, 0..20usize, any::<bool>()), 1..10),
    ) {
        let mut files = MailFiles::new("old.mbox");
        let mut content: Vec<(u32, &str)> = vec![(0, "")];
        let mut next = 1;
        for (kind, place, is_synchronised) in steps {
            let at = place % content.len();
            match kind {
                0 | 1 => {
                    content.push((next, ""));
                    next += 1;
                }
                2 if content.len() > 1 => {
                    content.remove(at);
                }
                3 => content[at].1 = "Status: RO\n",
                4 => content[at].1 = "X-Status: F\n",
                _ => content.push(content[at]),
            }
            if is_synchronised {
                let text = content.iter().map(|(number, fields)| {
                    mbox_message(&format!("m{number}"), fields, &"word ".repeat(*number as usize))
                });
                files.write("old.mbox", text.collect::<String>());
                // Two versions of one size may have one time here.
                files.sync(&full_sync());
                files.assert_same_as_fresh();
            }
        }
    }
}

/// A mail program that writes an mbox file anew in its place may pause: the file is then shorter
/// than it was, and does not change while it is read.
#[test]
fn messages_stay_while_the_end_of_an_mbox_file_is_missing() {
    let mut mail = MailFiles::new("old.mbox");
    let complete = numbered_messages(0..6);
    let cuts = [numbered_messages(0..2), complete[..complete.len() - 9].to_string()];
    for options in [small_batches(64), full_sync()] {
        mail.write("old.mbox", &complete);
        mail.sync(&options);
        for cut in &cuts {
            fs::write(&mail.root, cut).unwrap();
            for _ in 0..2 {
                let report = mail.sync(&options);
                let [problem] = report.problems.as_slice() else { panic!("{report:?}") };
                assert!(problem.reason.starts_with("the end of the file is missing"));
                assert!(report.has_unsettled_files && report.removed_files == 0);
                assert_eq!(mail.find("common").len(), 6);
            }
            mail.write("old.mbox", &complete);
            assert_eq!(mail.counts(&options), [0; 4]);
        }
    }
    // The last message is at another place, so the file is complete.
    fs::write(&mail.root, numbered_messages(1..2) + &numbered_messages(3..6)).unwrap();
    assert_eq!(mail.counts(&small_batches(64)), [0, 4, 2, 0]);
    // The last message was deleted.
    mail.write("old.mbox", numbered_messages(1..2) + &numbered_messages(3..5));
    assert_eq!(mail.counts(&small_batches(64)), [0, 0, 1, 0]);
    mail.assert_same_as_fresh();
}

/// A mail program that writes an mbox file anew in its place has it incomplete for a while.
#[test]
fn messages_stay_while_an_mbox_file_is_rewritten() {
    let mut mail = MailFiles::new("old.mbox");
    // The last message is so long that the file is changed while it is read.
    let long = mbox_message("long", "", &"walrus ".repeat(300_000));
    let complete = numbered_messages(0..3) + &long + &numbered_messages(3..6);
    let root = mail.root.clone();
    let part = numbered_messages(0..2) + &long;
    for _ in 0..20 {
        mail.write("old.mbox", &complete);
        mail.sync(&small_batches(64));
        fs::write(&root, &part).unwrap();
        let is_done = AtomicBool::new(false);
        let begin = Barrier::new(2);
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                let file = fs::File::options().write(true).open(&root).unwrap();
                let mut time = std::time::SystemTime::now();
                begin.wait();
                while !is_done.load(Ordering::Relaxed) {
                    time += std::time::Duration::from_millis(1);
                    file.set_modified(time).unwrap();
                }
            });
            begin.wait();
            let report = mail.sync(&small_batches(64));
            is_done.store(true, Ordering::Relaxed);
            report
        });
        let [problem] = report.problems.as_slice() else { continue };
        assert_eq!((problem.is_left_out, report.removed_files), (true, 0));
        assert!(report.has_unsettled_files);
        if !problem.reason.starts_with("another program is writing") {
            continue;
        }
        assert_eq!(mail.find("common").len(), 6);
        mail.write("old.mbox", &complete);
        assert_eq!(mail.counts(&small_batches(64)), [0, 0, 0, 0]);
        mail.assert_same_as_fresh();
        return;
    }
    panic!("the file was never changed while it was read");
}

//! Live views over messages: replaying the events of a view gives the answer of a fresh search,
//! after any history of deliveries, changed flags, moves and removals, however often it is asked.

use crate::mailbox::{Mailbox, column_value, find_rows, message};
use larder_format::label::{LabelList, MessageLabels};
use larder_query::{MailQueryContext, MailView, MailViewEvent, MailViewOptions, UserLocale};
use larder_store::{BatchChange, DataDirectory, LabelBatch, MailColumn, Operation, StoreFile};
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const FOLDERS: [&str; 3] = ["cur", "a/cur", "a/b/new"];
const LETTERS: [&str; 5] = ["", "S", "FS", "R", "T"];
const WORDS: [&str; 4] = ["walrus", "seal", "walrus seal", "sealion"];
const LINES: [&str; 19] = [
    "",
    "walrus",
    "not walrus",
    "flag:unread",
    "walrus flag:seen",
    "walrus xor flag:seen",
    "maildir:/a",
    "maildir:/a/** or flag:flagged",
    "sea* -flag:replied",
    "\"walrus seal\"",
    "subject:note (flag:seen or not seal)",
    "msgid:m2",
    "subject:/n.t/",
    "date:2019..2020 not maildir:/",
    "thread:{walrus}",
    "size:..170",
    "label:todo",
    "walrus -label:todo",
    "thread:{flag:seen seal} -label:todo",
];

/// A change of a maildir. Files are chosen by their place among those that exist.
#[derive(Debug, Clone)]
enum MaildirChange {
    Deliver {
        word: usize,
        folder: usize,
        letters: usize,
    },
    /// Delivers a file with the text of another one.
    Copy {
        file: usize,
        folder: usize,
    },
    Rename {
        file: usize,
        folder: usize,
        letters: usize,
    },
    Remove {
        file: usize,
    },
    /// Labels a message, or takes its label.
    Label {
        message: usize,
        is_labelled: bool,
    },
}

fn arb_change() -> impl Strategy<Value = MaildirChange> {
    let (folder, letters) = (0..FOLDERS.len(), 0..LETTERS.len());
    prop_oneof![
        3 => (0..WORDS.len(), folder.clone(), letters.clone())
            .prop_map(|(word, folder, letters)| MaildirChange::Deliver { word, folder, letters }),
        1 => (0..100_usize, folder.clone())
            .prop_map(|(file, folder)| MaildirChange::Copy { file, folder }),
        4 => (0..100_usize, folder, letters)
            .prop_map(|(file, folder, letters)| MaildirChange::Rename { file, folder, letters }),
        2 => (0..100_usize).prop_map(|file| MaildirChange::Remove { file }),
        2 => (0..12_usize, any::<bool>())
            .prop_map(|(message, is_labelled)| MaildirChange::Label { message, is_labelled }),
    ]
}

/// A maildir whose files are known.
struct TestMaildir {
    mailbox: Mailbox,
    /// The paths of the files, and their texts.
    files: Vec<(String, String)>,
    next_number: usize,
}

impl TestMaildir {
    fn new() -> TestMaildir {
        TestMaildir { mailbox: Mailbox::new(), files: Vec::new(), next_number: 0 }
    }

    fn write(&mut self, text: String, folder: usize, letters: &str) {
        let number = self.next_number;
        let path = match FOLDERS[folder] {
            new if new.ends_with("new") => format!("{new}/{number}.host"),
            cur => format!("{cur}/{number}.host:2,{letters}"),
        };
        self.mailbox.write(&path, &text);
        self.files.push((path, text));
        self.next_number += 1;
    }

    fn apply(&mut self, change: &MaildirChange) {
        let count = self.files.len();
        match change {
            MaildirChange::Deliver { word, folder, letters } => {
                let id = format!("m{}", self.next_number);
                let text = message(&id, "a note", WORDS[*word]);
                self.write(text, *folder, LETTERS[*letters]);
            }
            MaildirChange::Label { message, is_labelled } => {
                self.label(&format!("m{message}"), *is_labelled);
            }
            _ if count == 0 => {}
            MaildirChange::Copy { file, folder } => {
                let text = self.files[file % count].1.clone();
                self.write(text, *folder, "F");
            }
            MaildirChange::Rename { file, folder, letters } => {
                let (path, text) = self.files.swap_remove(file % count);
                fs::remove_file(self.mailbox.root().join(&path)).unwrap();
                // The same base name; the inode may be another one.
                let base = path.rsplit('/').next().unwrap().split(':').next().unwrap().to_string();
                let path = match FOLDERS[*folder] {
                    new if new.ends_with("new") => format!("{new}/{base}"),
                    cur => format!("{cur}/{base}:2,{}", LETTERS[*letters]),
                };
                self.mailbox.write(&path, &text);
                self.files.push((path, text));
            }
            MaildirChange::Remove { file } => {
                let (path, _) = self.files.swap_remove(file % count);
                fs::remove_file(self.mailbox.root().join(path)).unwrap();
            }
        }
    }

    fn label(&mut self, uid: &str, is_labelled: bool) {
        let store = &mut self.mailbox.store;
        let (from, to) = {
            let reader = store.open_reader().unwrap();
            (reader.mail().unwrap().label_cursor().unwrap(), reader.changes().current_cursor())
        };
        let mut labels = LabelList::default();
        if is_labelled {
            labels.insert("todo");
        }
        let messages =
            vec![(uid.to_string(), MessageLabels { labels, ..MessageLabels::default() })];
        let batch = LabelBatch { from, is_restart: false, messages, to: to.unwrap() };
        let changes = vec![BatchChange::Labels(Box::new(batch))];
        store.apply(&mut Operation::new("labels", "", 0), changes).unwrap();
    }

    fn sync(&mut self) {
        self.mailbox.sync();
    }

    fn directory(&self) -> DataDirectory {
        let path = self.mailbox.outside_path("index");
        DataDirectory::new(path).with_store_file(StoreFile::Index)
    }
}

/// A view, and its events replayed: the rows of its messages and their flags.
struct ReplayedView {
    line: &'static str,
    view: MailView,
    messages: BTreeMap<u32, u16>,
    resets: usize,
}

impl ReplayedView {
    fn open(maildir: &TestMaildir, line: &'static str, clock: &Arc<AtomicI64>) -> ReplayedView {
        let clock = Arc::clone(clock);
        let options = MailViewOptions {
            context: MailQueryContext::from(&UserLocale::default()),
            excluded_labels: Vec::new(),
            zones: ZoneDatabase::open_bundled(),
            clock: Arc::new(move || Instant::from_seconds_clamped(clock.load(Ordering::Relaxed))),
        };
        let view = MailView::open(maildir.directory(), line, options).unwrap();
        ReplayedView { line, view, messages: BTreeMap::new(), resets: 0 }
    }

    /// Reads all events.
    fn replay(&mut self) {
        let mut is_complete = true;
        while let Some(event) = self.view.try_next().unwrap() {
            is_complete = matches!(event, MailViewEvent::Complete(_));
            match event {
                MailViewEvent::Reset => {
                    self.messages.clear();
                    self.resets += 1;
                }
                MailViewEvent::Added(messages) => {
                    for one in messages {
                        let known = self.messages.insert(one.message.row, one.flags.bits());
                        assert_eq!(known, None, "{}: added twice", self.line);
                    }
                }
                MailViewEvent::Modified(messages) => {
                    for one in messages {
                        let known = self.messages.insert(one.message.row, one.flags.bits());
                        assert!(known.is_some(), "{}: modified before it was added", self.line);
                    }
                }
                MailViewEvent::Removed(removed) => {
                    for one in removed {
                        self.messages.remove(&one.row);
                    }
                }
                MailViewEvent::Complete(_) => {}
            }
        }
        assert!(is_complete, "{}: the last event is complete", self.line);
    }

    fn assert_equals_search(&self, maildir: &TestMaildir) {
        let reader = maildir.mailbox.store.open_reader().unwrap();
        let expected: BTreeMap<u32, u16> = find_rows(&reader, self.line)
            .into_iter()
            .map(|row| (row, u16::try_from(column_value(&reader, MailColumn::Flags, row)).unwrap()))
            .collect();
        assert_eq!(self.messages, expected, "{}", self.line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn events_replayed_are_a_fresh_search(
        batches in vec((vec(arb_change(), 1..5), 1..6_u8), 1..7),
        lines in vec(select(&LINES[..]), 4),
    ) {
        let clock = Arc::new(AtomicI64::new(1_600_000_000));
        let mut maildir = TestMaildir::new();
        for number in 0..4 {
            let (word, folder, letters) = (number, number % 3, number);
            maildir.apply(&MaildirChange::Deliver { word, folder, letters });
        }
        maildir.sync();
        let mut views: Vec<ReplayedView> =
            lines.iter().map(|line| ReplayedView::open(&maildir, line, &clock)).collect();
        for view in &mut views {
            view.replay();
            view.assert_equals_search(&maildir);
        }
        for (changes, asked) in &batches {
            changes.iter().for_each(|change| maildir.apply(change));
            maildir.sync();
            // Some views lag.
            for view in views.iter_mut().step_by(usize::from(*asked)) {
                view.replay();
                view.assert_equals_search(&maildir);
            }
        }
        for view in &mut views {
            view.replay();
            view.assert_equals_search(&maildir);
            prop_assert_eq!(view.resets, 0, "{}", view.line);
            prop_assert!(view.view.try_next().unwrap().is_none());
        }
    }
}

fn open_views(maildir: &TestMaildir, lines: &[&'static str]) -> Vec<ReplayedView> {
    let clock = Arc::new(AtomicI64::new(1_600_000_000));
    lines.iter().map(|line| ReplayedView::open(maildir, line, &clock)).collect()
}

#[test]
fn a_view_follows_the_clock() {
    let mut maildir = TestMaildir::new();
    maildir.apply(&MaildirChange::Deliver { word: 0, folder: 0, letters: 0 });
    maildir.sync();
    // The message is of 2020-01-01, 10:00.
    let clock = Arc::new(AtomicI64::new(1_577_880_000));
    let mut view = ReplayedView::open(&maildir, "date:today walrus", &clock);
    view.replay();
    assert_eq!(view.messages.len(), 1);
    clock.store(1_577_880_000 + 86_400, Ordering::Relaxed);
    view.replay();
    assert_eq!((view.messages.len(), view.resets), (0, 0));
    clock.store(1_577_880_000 - 86_400, Ordering::Relaxed);
    view.replay();
    clock.store(1_577_880_000, Ordering::Relaxed);
    view.replay();
    assert_eq!((view.messages.len(), view.resets), (1, 0));
}

/// What a message that no longer exists has in the index is not decided. Each of these tests would
/// double the work of those inside it.
#[test]
fn nested_tests_of_removed_messages_take_linear_time() {
    let mut maildir = TestMaildir::new();
    for word in 0..4 {
        maildir.apply(&MaildirChange::Deliver { word, folder: 0, letters: 0 });
    }
    maildir.sync();
    let lines: Vec<&'static str> = ["xor", "xor not", "and not", "or not"]
        .into_iter()
        .map(|operator| &*format!("walrus{}", format!(" {operator} seal").repeat(80)).leak())
        .collect();
    let mut views = open_views(&maildir, &lines);
    views.iter_mut().for_each(ReplayedView::replay);
    maildir.apply(&MaildirChange::Remove { file: 2 });
    maildir.apply(&MaildirChange::Remove { file: 0 });
    maildir.sync();
    for view in &mut views {
        view.replay();
        view.assert_equals_search(&maildir);
        assert_eq!(view.resets, 0);
    }
}

#[test]
fn a_deleted_index_resets_a_view() {
    let mut maildir = TestMaildir::new();
    for word in 0..3 {
        maildir.apply(&MaildirChange::Deliver { word, folder: 0, letters: 0 });
    }
    maildir.sync();
    let mut views = open_views(&maildir, &["walrus", "flag:unread", "in:mail walrus"]);
    views.iter_mut().for_each(ReplayedView::replay);
    let index = maildir.mailbox.outside_path("index");
    maildir.mailbox.store = crate::mailbox::create_index(maildir.mailbox.outside_path("other"));
    fs::remove_dir_all(&index).unwrap();
    for view in &mut views {
        view.replay();
        assert_eq!((view.messages.len(), view.resets), (0, 1), "{}", view.line);
    }
    maildir.mailbox.store = crate::mailbox::create_index(index);
    // The source is not indexed yet.
    views.iter_mut().for_each(ReplayedView::replay);
    maildir.apply(&MaildirChange::Deliver { word: 0, folder: 1, letters: 1 });
    maildir.sync();
    for view in &mut views {
        view.replay();
        view.assert_equals_search(&maildir);
        assert!(!view.messages.is_empty());
    }
}

#[test]
fn a_query_with_an_error_opens_no_view() {
    let mut maildir = TestMaildir::new();
    maildir.sync();
    let options = MailViewOptions {
        context: MailQueryContext::from(&UserLocale::default()),
        excluded_labels: Vec::new(),
        zones: ZoneDatabase::open_bundled(),
        clock: Arc::new(|| Instant::from_seconds_clamped(0)),
    };
    let error = MailView::open(maildir.directory(), "flag:sen", options).unwrap_err();
    assert!(error.to_string().contains("sen"), "{error}");
}

/// A draft that was saved anew takes the handle of its former text when that is deleted.
#[test]
fn a_message_with_another_handle_is_removed_and_added() {
    let mut maildir = TestMaildir::new();
    let draft = |text| message("draft", "a note", text);
    maildir.mailbox.write("cur/1.host:2,DS", draft("walrus"));
    maildir.sync();
    let mut views = open_views(&maildir, &["flag:draft", "folder:/", "walrus"]);
    let mut listed = vec![BTreeMap::new(); views.len()];
    let mut follow = |maildir: &TestMaildir| {
        let reader = maildir.mailbox.store.open_reader().unwrap();
        for (ReplayedView { line, view, .. }, listed) in views.iter_mut().zip(&mut listed) {
            while let Some(event) = view.try_next().unwrap() {
                match event {
                    MailViewEvent::Added(messages) | MailViewEvent::Modified(messages) => {
                        listed.extend(
                            messages.into_iter().map(|one| (one.message.handle, one.message.uid)),
                        );
                    }
                    MailViewEvent::Removed(removed) => removed.iter().for_each(|one| {
                        listed.remove(&one.handle);
                    }),
                    MailViewEvent::Reset | MailViewEvent::Complete(_) => {}
                }
            }
            let mail = reader.mail().unwrap();
            let messages = mail.messages(&find_rows(&reader, line)).unwrap().into_iter();
            let expected: BTreeMap<_, _> = messages.map(|one| (one.handle, one.uid)).collect();
            assert_eq!(*listed, expected, "{line}");
        }
    };
    follow(&maildir);
    maildir.mailbox.write("cur/2.host:2,DS", draft("walrus seal"));
    maildir.sync();
    follow(&maildir);
    fs::remove_file(maildir.mailbox.root().join("cur/1.host:2,DS")).unwrap();
    maildir.sync();
    follow(&maildir);
    // A change between two answers that also takes the message out of one.
    maildir.mailbox.write("cur/3.host:2,DS", draft("seal"));
    maildir.sync();
    follow(&maildir);
    fs::remove_file(maildir.mailbox.root().join("cur/2.host:2,DS")).unwrap();
    let path = |name: &str| maildir.mailbox.root().join(name);
    fs::rename(path("cur/3.host:2,DS"), path("cur/3.host:2,S")).unwrap();
    maildir.sync();
    follow(&maildir);
}

/// The folders that a name stands for depend on those that are there.
#[test]
fn a_folder_that_comes_and_goes_hides_one_in_another_case() {
    let mut maildir = TestMaildir::new();
    maildir.mailbox.write("Work/cur/1.host:2,S", message("upper", "a note", "walrus"));
    maildir.mailbox.write("Work/sub/cur/2.host:2,S", message("below", "a note", "walrus"));
    maildir.sync();
    let mut views = open_views(&maildir, &["folder:work", "path:work/**", "maildir:/work"]);
    let mut follow = |maildir: &TestMaildir| {
        for view in &mut views {
            view.replay();
            view.assert_equals_search(maildir);
            assert_eq!(view.resets, 0);
        }
        let find = |line| maildir.mailbox.find(line).join(" ");
        [find("folder:work"), find("path:work/**"), find("maildir:/work")]
    };
    assert_eq!(follow(&maildir), ["upper", "below upper", "upper"]);
    maildir.mailbox.write("work/cur/3.host:2,S", message("lower", "a note", "walrus"));
    maildir.sync();
    assert_eq!(follow(&maildir), ["lower", "lower", "lower upper"]);
    fs::remove_dir_all(maildir.mailbox.root().join("work")).unwrap();
    maildir.sync();
    assert_eq!(follow(&maildir), ["upper", "below upper", "upper"]);
}

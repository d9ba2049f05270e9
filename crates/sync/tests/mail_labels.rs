//! Labels of messages: the copy in the index follows the labels in `data.db`.

use crate::mail_sources::MailHome;
use crate::mail_sync::{check, small_batches};
use crate::mailbox::{Mailbox, create_index, find_rows, message};
use larder_edit::labels::{
    are_labels_outdated, change_labels, follow_labels, for_each_labelled, read_labels, unique_texts,
};
use larder_edit::{LabelDifferences, compare_labels};
use larder_format::label::{LabelChange, LabelList};
use larder_format::label_dump::LabelDumpFormat;
use larder_store::{
    DataDirectory, MailReader, Operation, OperationId, Reader, Store, StoreOptions,
};
use larder_sync::{
    MailSyncOptions, NotmuchTags, SourceSelection, SyncRound, SyncRoundEvent, export_labels,
    sync_mail_sources, sync_maildir,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The number of Message-IDs.
const IDS: usize = 6;
const CHANGES: [&str; 8] = ["+tax", "+todo", "-tax", "-todo", "+Tax", "+a b", "-a b", "+töne"];
const QUERIES: [&str; 5] = ["tax", "Tax", "todo", "\"a b\"", "töne"];

/// A maildir with its index, and the store that has the labels.
pub(crate) struct LabelledMail {
    pub(crate) mailbox: Mailbox,
    pub(crate) data: Store,
    operations: Vec<OperationId>,
    indexes: usize,
}

impl LabelledMail {
    pub(crate) fn new() -> LabelledMail {
        let mailbox = Mailbox::new();
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let directory = DataDirectory::new(mailbox.outside_path("data"));
        let data = Store::open(directory, &options).unwrap();
        LabelledMail { mailbox, data, operations: Vec::new(), indexes: 0 }
    }

    pub(crate) fn label(&mut self, uids: &[&str], changes: &[&str]) {
        let change = LabelChange::parse(changes.iter().copied()).unwrap();
        let uids: Vec<_> = uids.iter().map(|uid| uid.to_string().into()).collect();
        let mut operation = Operation::new("edit labels", change.to_string(), 0);
        change_labels(&mut self.data, &mut operation, &uids, &change).unwrap();
        self.operations.extend(operation.id());
    }

    /// Labels the messages that match a query, as the texts that they have.
    pub(crate) fn label_matches(&mut self, query: &str, changes: &[&str]) {
        let change = LabelChange::parse(changes.iter().copied()).unwrap();
        let reader = self.mailbox.store.open_reader().unwrap();
        let texts = reader.mail().unwrap().labelled_texts(&find_rows(&reader, query)).unwrap();
        let mut operation = Operation::new("edit labels", change.to_string(), 0);
        change_labels(&mut self.data, &mut operation, &unique_texts(texts), &change).unwrap();
        self.operations.extend(operation.id());
        self.follow();
    }

    pub(crate) fn follow(&mut self) {
        let reader = self.data.open_reader().unwrap();
        follow_labels(&reader, &mut self.mailbox.store, 0).unwrap();
        assert!(!are_labels_outdated(&reader, &self.mailbox.store.open_reader().unwrap()).unwrap());
    }

    /// The other maildir, which has texts of its own.
    pub(crate) fn other_root(&self) -> PathBuf {
        self.mailbox.outside_path("other")
    }

    fn write_other(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.other_root().join("cur")).unwrap();
        fs::create_dir_all(self.other_root().join("new")).unwrap();
        fs::write(self.other_root().join(name), text).unwrap();
    }

    /// Synchronises the other maildir.
    fn sync_other(&mut self) {
        self.sync_other_with(&MailSyncOptions::default());
    }

    /// Synchronises the other maildir, and finds changes right after the last run.
    pub(crate) fn sync_other_fully(&mut self) {
        self.sync_other_with(&MailSyncOptions { is_full: true, ..MailSyncOptions::default() });
    }

    fn sync_other_with(&mut self, options: &MailSyncOptions) {
        let root = self.other_root();
        fs::create_dir_all(root.join("cur")).unwrap();
        let store = &mut self.mailbox.store;
        sync_maildir(store, &root, "other", options, &mut |_| {}, &|| false).unwrap();
    }

    /// Reads all messages of the maildir again, by other rules than before.
    fn sync_with_addresses(&mut self, addresses: &[&str]) {
        let personal_addresses = addresses.iter().map(|one| one.to_string()).collect();
        self.mailbox
            .sync_with(&MailSyncOptions { personal_addresses, ..MailSyncOptions::default() });
    }

    /// Synchronises the maildir as a further collection, so that each message is in two.
    fn sync_twin(&mut self) {
        let (root, options) = (self.mailbox.root(), MailSyncOptions::default());
        let store = &mut self.mailbox.store;
        sync_maildir(store, &root, "twin", &options, &mut |_| {}, &|| false).unwrap();
    }

    fn delete_index(&mut self) {
        drop(self.replace_index());
    }

    /// Begins with an empty index. Returns the former one.
    pub(crate) fn replace_index(&mut self) -> Store {
        self.indexes += 1;
        let path = self.mailbox.outside_path(&format!("index{}", self.indexes));
        std::mem::replace(&mut self.mailbox.store, create_index(path))
    }

    /// Undoes one of the last operations, or its undo.
    pub(crate) fn undo(&mut self, back: usize) {
        let Some(place) = self.operations.len().checked_sub(back + 1) else { return };
        if let Ok(report) = self.data.undo(self.operations[place], 0) {
            self.operations.extend(report.operation);
        }
    }

    /// Compares the labels in the index with those in `data.db`.
    pub(crate) fn check_labels(&self) {
        let data = self.data.open_reader().unwrap();
        let reader = self.mailbox.store.open_reader().unwrap();
        let mail = reader.mail().unwrap();
        let differences = compare_labels(&data, &reader).unwrap();
        assert_eq!(differences, Some(LabelDifferences::default()));
        let mut listed = mail.listed_labels().unwrap();
        let mut expected: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for row in 0..mail.end_row().unwrap() {
            let found = mail.labels_of(&mut listed, row).unwrap();
            let Some(message) = mail.message(row).unwrap() else {
                assert!(found.is_empty(), "a row without a message has labels");
                continue;
            };
            let labels = expected_labels(&data, &mail, row);
            assert_eq!(found, labels.iter().collect::<Vec<_>>(), "{}", message.uid);
            for name in labels.iter() {
                expected.entry(name.to_string()).or_default().push(row);
            }
        }
        let counts: Vec<(String, u64)> =
            expected.iter().map(|(name, rows)| (name.clone(), rows.len() as u64)).collect();
        assert_eq!(mail.count_labels().unwrap(), counts);
        for name in QUERIES {
            let rows = expected.remove(name.trim_matches('"')).unwrap_or_default();
            assert_eq!(find_rows(&reader, &format!("label:{name}")), rows, "{name}");
            let others = find_rows(&reader, &format!("not label:{name}"));
            assert!(others.iter().all(|row| !rows.contains(row)), "{name}");
        }
    }
}

/// Returns the labels that a message must have: those that its Message-ID was given for any text,
/// for its text, and for texts that no message has.
fn expected_labels(data: &Reader, mail: &MailReader<'_>, row: u32) -> LabelList {
    let message = mail.labelled_text(row).unwrap().unwrap();
    let (message_id, text_hash) = message.identity();
    let texts = mail.labelled_texts(&mail.rows_with_uid(message_id).unwrap()).unwrap();
    let mut labels = LabelList::default();
    for_each_labelled(data, &mut |name, item| {
        let is_away = || texts.iter().all(|text| text.text_hash != item.text_hash);
        if item.message_id.as_ref().unwrap_or(&name) == message_id
            && (item.text_hash.is_none() || item.text_hash == text_hash || is_away())
        {
            labels.extend(item.labels.iter());
        }
    })
    .unwrap();
    labels
}

fn label_one(data: &mut Store, uid: &str, change: &str) {
    let change = LabelChange::parse([change]).unwrap();
    let mut operation = Operation::new("edit labels", change.to_string(), 0);
    change_labels(data, &mut operation, &[uid.to_string().into()], &change).unwrap();
}

/// Those who change labels during a synchronisation leave the copy to it.
#[test]
fn a_synchronisation_follows_labels_between_its_batches() {
    let home = MailHome::new();
    let root = home.create_maildir("mail");
    for number in 0..40 {
        let text = message(&format!("m{number}"), "note", "common");
        fs::write(root.join(format!("cur/{number}:2,")), text).unwrap();
    }
    home.add("mail", &root);
    let sync = |report: &mut dyn FnMut(&SyncRoundEvent<'_>), is_cancelled: &dyn Fn() -> bool| {
        let (selection, options) = (SourceSelection::default(), small_batches(4));
        let round = SyncRound { selection: &selection, options: &options, at: 0 };
        sync_mail_sources(&home.stores, &round, &mut |event| report(&event), is_cancelled).unwrap();
    };
    let is_outdated = || {
        let data = larder_store::Reader::open(home.stores.data.clone()).unwrap();
        are_labels_outdated(&data, &home.index()).unwrap()
    };
    let mut labelled = 0;
    let mut label = |event: &SyncRoundEvent<'_>| {
        // Transactions came after the last change; the end of the round is not one.
        if labelled > 0 && matches!(event, SyncRoundEvent::Progress(progress) if progress.done < 40)
        {
            assert!(!is_outdated());
        }
        labelled += 1;
        home.change_data(|data| label_one(data, "m7", &format!("+l{labelled}")));
    };
    sync(&mut label, &|| false);
    assert!(labelled > 5);
    assert!(!is_outdated(), "the change after the last batch is followed at the end");
    assert_eq!(find_rows(&home.index(), &format!("label:l1 label:l{labelled}")).len(), 1);
    // An interrupted one follows, too.
    let is_labelled = std::cell::Cell::new(false);
    let label = &mut |_: &SyncRoundEvent<'_>| {
        is_labelled.set(true);
        home.change_data(|data| label_one(data, "m8", "+last"));
    };
    fs::write(root.join("cur/new:2,"), message("m41", "note", "common")).unwrap();
    sync(label, &|| is_labelled.get());
    assert!(!is_outdated());
}

/// notmuch would change the flags of files for labels with their names, which an import once took.
#[test]
fn labels_named_like_flags_are_not_exported_to_notmuch() {
    let mut mail = LabelledMail::new();
    for id in ["m1", "m2"] {
        mail.mailbox.write(format!("cur/{id}:2,S"), message(id, "note", "text"));
    }
    mail.mailbox.sync();
    let mut change = LabelChange::default();
    change.add("flagged");
    let texts = ["m1", "m2"].map(|id| id.to_string().into());
    let mut operation = Operation::new("labels import", "", 0);
    change_labels(&mut mail.data, &mut operation, &texts, &change).unwrap();
    mail.label(&["m2"], &["+tax"]);
    mail.follow();
    let (data, index) =
        (mail.data.open_reader().unwrap(), mail.mailbox.store.open_reader().unwrap());
    let mut dump = Vec::new();
    let (format, tags) = (LabelDumpFormat::Notmuch, NotmuchTags::default());
    let report =
        export_labels(&data, Some(&index), &BTreeMap::new(), format, &tags, &mut dump).unwrap();
    let dump = String::from_utf8(dump).unwrap();
    assert_eq!(dump.lines().skip(1).collect::<Vec<_>>(), ["+tax -- id:m2"]);
    assert_eq!((report.messages, report.partial_messages, report.omitted_labels.len()), (1, 1, 1));
    assert_eq!(report.left_out.values().sum::<u64>(), 1);
    assert!(report.refused_labels.contains("flagged"));
}

#[test]
fn labels_are_found_by_name() {
    let mut mail = LabelledMail::new();
    mail.mailbox.write_numbered("cur", 0..4);
    mail.mailbox.sync();
    mail.label(&["m0", "m1"], &["+tax", "+todo"]);
    mail.label(&["m2"], &["+Tax", "+tax/2026"]);
    assert_eq!(mail.mailbox.find("label:tax"), [""; 0], "the index has not followed");
    mail.follow();
    mail.check_labels();
    for (line, uids) in [
        ("label:tax", &["m0", "m1"][..]),
        ("tag:todo", &["m0", "m1"]),
        ("is:todo and not label:Tax", &["m0", "m1"]),
        ("label:Tax", &["m2"]),
        ("label:tax*", &["m0", "m1", "m2"]),
        ("label:*od*", &["m0", "m1"]),
        ("label:*26", &["m2"]),
        ("label:/^tax/", &["m0", "m1", "m2"]),
        ("label:", &["m0", "m1", "m2"]),
        ("not label:", &["m3"]),
        ("label:*", &["m0", "m1", "m2"]),
        ("label:missing", &[]),
        ("label:todo or word3", &["m0", "m1", "m3"]),
    ] {
        assert_eq!(mail.mailbox.find(line), uids, "{line}");
    }
    mail.label(&["m0"], &["-tax"]);
    mail.label(&["m1"], &["-tax", "-todo", "+x"]);
    mail.follow();
    assert_eq!(mail.mailbox.find("label:tax"), [""; 0]);
    let operation = mail.operations.pop().unwrap();
    mail.data.undo(operation, 0).unwrap();
    mail.follow();
    assert_eq!(mail.mailbox.find("label:tax and label:todo"), ["m1"]);
    mail.check_labels();
    check(&mail.mailbox.store);
    check(&mail.data);
}

/// Messages in neighbouring rows, with gaps, and in two collections.
#[test]
fn neighbours_get_their_labels() {
    let mut mail = LabelledMail::new();
    mail.mailbox.write_numbered("cur", 0..60);
    mail.mailbox.sync();
    for number in [3, 4, 17, 40] {
        let files = fs::read_dir(mail.mailbox.root().join("cur")).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        names.sort();
        fs::remove_file(&names[number]).unwrap();
    }
    mail.mailbox.sync();
    mail.label_matches("*", &["+tax"]);
    mail.check_labels();
    assert_eq!(mail.mailbox.find("label:tax").len(), 56);
    mail.sync_twin();
    mail.label_matches("*", &["+todo", "-tax"]);
    mail.check_labels();
    let reader = mail.mailbox.store.open_reader().unwrap();
    assert_eq!(find_rows(&reader, "label:todo").len(), 112);
    assert_eq!(find_rows(&reader, "label:tax").len(), 0);
}

#[test]
fn a_message_has_its_labels_in_the_batch_that_adds_it() {
    let mut mail = LabelledMail::new();
    mail.label(&["m0", "m1", "far@example.org"], &["+tax"]);
    mail.follow();
    mail.mailbox.write_numbered("cur", 0..2);
    mail.mailbox.sync();
    assert_eq!(mail.mailbox.find("label:tax"), ["m0", "m1"]);
    // A message that goes away and comes back under another file has them, too.
    fs::remove_file(mail.mailbox.root().join("cur/1000000.host:2,")).unwrap();
    mail.mailbox.settle();
    mail.mailbox.sync_with(&MailSyncOptions { is_full: true, ..MailSyncOptions::default() });
    assert_eq!(mail.mailbox.find("label:tax"), ["m1"]);
    mail.mailbox.write("new/1", message("m0", "note", "other text"));
    mail.mailbox.sync();
    assert_eq!(mail.mailbox.find("label:tax"), ["m0", "m1"]);
    mail.check_labels();
    // A new index has all of them before the first message.
    mail.delete_index();
    mail.follow();
    mail.mailbox.sync();
    assert_eq!(mail.mailbox.find("label:tax"), ["m0", "m1"]);
    mail.check_labels();
}

/// A forged message with the Message-ID of a labelled one takes neither its name nor its labels,
/// in whatever order a new index reads them.
#[test]
fn labels_stay_with_their_text_in_a_new_index() {
    let texts = ["walrus", "otter"].map(|word| message("m", "note", word));
    for (order, is_one_labelled) in
        [([0, 1], false), ([1, 0], false), ([0, 1], true), ([1, 0], true)]
    {
        let mut mail = LabelledMail::new();
        for place in order {
            mail.mailbox.write(format!("{place}/cur/1:2,"), &texts[place]);
            mail.mailbox.sync();
        }
        if !is_one_labelled {
            mail.label_matches("walrus", &["+trusted"]);
        }
        mail.label_matches("otter", &["+spam"]);
        let handles = |mail: &LabelledMail| {
            let reader = mail.mailbox.store.open_reader().unwrap();
            ["walrus", "otter"].map(|word| {
                let row = find_rows(&reader, word)[0];
                reader.mail().unwrap().message(row).unwrap().unwrap().handle
            })
        };
        let known = handles(&mail);
        for first in [0, 1] {
            mail.delete_index();
            mail.follow();
            for place in [first, 1 - first] {
                // The other text is hidden at first.
                let (root, hidden) = (mail.mailbox.root(), mail.mailbox.outside_path("hidden"));
                let folder = root.join((1 - place).to_string());
                if place == first {
                    fs::rename(&folder, &hidden).unwrap();
                } else {
                    fs::rename(&hidden, root.join(place.to_string())).unwrap();
                }
                mail.mailbox.sync();
            }
            assert_eq!(handles(&mail), known, "{order:?} {first}");
            let found = |line: &str| find_rows(&mail.mailbox.store.open_reader().unwrap(), line);
            let trusted = if is_one_labelled { Vec::new() } else { found("walrus") };
            assert_eq!(found("label:trusted"), trusted, "{order:?} {first}");
            assert_eq!(found("label:spam"), found("otter"), "{order:?} {first}");
            mail.check_labels();
            check(&mail.mailbox.store);
        }
    }
}

/// A list sends a copy with a footer, in another source than the copy that came directly.
#[test]
fn labels_stay_with_their_text_beside_another_source() {
    for is_other_first in [false, true] {
        let mut mail = LabelledMail::new();
        mail.mailbox.write("cur/1:2,", message("m", "note", "walrus"));
        mail.write_other("cur/1:2,", message("m", "note", "otter"));
        mail.mailbox.sync();
        mail.sync_other();
        mail.label_matches("walrus", &["+tax"]);
        let check_rows = |mail: &LabelledMail, line: &str| {
            let reader = mail.mailbox.store.open_reader().unwrap();
            assert_eq!(find_rows(&reader, "label:tax"), find_rows(&reader, line), "{line}");
            assert_eq!(find_rows(&reader, line).len(), 1, "{line}");
            mail.check_labels();
            check(&mail.mailbox.store);
        };
        check_rows(&mail, "walrus");
        mail.sync_with_addresses(&["anna@example.org"]);
        check_rows(&mail, "walrus");
        // While the text is away, the other one has its labels.
        let (path, away) = (mail.mailbox.root().join("cur/1:2,"), mail.mailbox.outside_path("m"));
        fs::rename(&path, &away).unwrap();
        let full = MailSyncOptions { is_full: true, ..MailSyncOptions::default() };
        mail.mailbox.sync_with(&full);
        check_rows(&mail, "otter");
        if is_other_first {
            mail.delete_index();
            mail.follow();
            mail.sync_other();
            check_rows(&mail, "otter");
        }
        fs::rename(&away, &path).unwrap();
        mail.mailbox.sync_with(&full);
        check_rows(&mail, "walrus");
        // A copy of the text comes into the source that has the other one.
        mail.write_other("cur/2:2,", message("m", "note", "walrus"));
        mail.sync_other();
        let reader = mail.mailbox.store.open_reader().unwrap();
        assert_eq!(find_rows(&reader, "label:tax"), find_rows(&reader, "walrus"));
        assert_eq!(find_rows(&reader, "label:tax").len(), 2);
        mail.check_labels();
        check(&mail.mailbox.store);
    }
}

/// Labels that were given before the mail was read belong to each text with the Message-ID.
#[test]
fn all_texts_in_all_sources_have_labels_that_came_first() {
    let mut mail = LabelledMail::new();
    mail.mailbox.write("cur/1:2,", message("m", "note", "walrus"));
    mail.write_other("cur/1:2,", message("m", "note", "otter"));
    mail.label(&["m"], &["+tax"]);
    mail.follow();
    let labelled = |mail: &LabelledMail| {
        find_rows(&mail.mailbox.store.open_reader().unwrap(), "label:tax").len()
    };
    let full = MailSyncOptions { is_full: true, ..MailSyncOptions::default() };
    mail.mailbox.sync();
    mail.sync_other();
    assert_eq!(labelled(&mail), 2);
    mail.check_labels();
    let path = mail.mailbox.root().join("cur/1:2,");
    let text = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    mail.mailbox.sync_with(&full);
    assert_eq!(labelled(&mail), 1);
    mail.check_labels();
    fs::write(&path, text).unwrap();
    mail.mailbox.sync_with(&full);
    assert_eq!(labelled(&mail), 2);
    mail.check_labels();
    check(&mail.mailbox.store);
}

/// A draft that is saved again in its file has another text, and the same Message-ID.
#[test]
fn a_message_whose_text_changed_keeps_its_labels() {
    let mut mail = LabelledMail::new();
    mail.mailbox.write("cur/1:2,", message("draft", "note", "walrus"));
    mail.mailbox.sync();
    mail.label_matches("walrus", &["+todo"]);
    mail.mailbox.write("cur/1:2,", message("draft", "note", "otter"));
    mail.mailbox.sync_with(&MailSyncOptions { is_full: true, ..MailSyncOptions::default() });
    assert_eq!(mail.mailbox.find("label:todo otter"), ["draft"]);
    mail.label_matches("otter", &["+tax"]);
    mail.delete_index();
    mail.follow();
    mail.mailbox.sync();
    assert_eq!(mail.mailbox.find("label:todo label:tax otter"), ["draft"]);
    mail.check_labels();
    let reader = mail.mailbox.store.open_reader().unwrap();
    assert_eq!(reader.mail().unwrap().count_waiting_labels().unwrap(), 0);
    check(&mail.mailbox.store);
}

/// Many programs save a draft in a new file, and then delete the former one. An index that is made
/// again cannot tell this from a file that was edited, nor a draft that was sent.
#[test]
fn a_draft_that_is_saved_in_a_new_file_keeps_its_labels() {
    for name in ["cur/2:2,D", "cur/2:2,S"] {
        let mut mail = LabelledMail::new();
        mail.mailbox.write("cur/1:2,D", message("draft", "note", "walrus"));
        mail.mailbox.sync();
        mail.label_matches("walrus", &["+todo"]);
        fs::remove_file(mail.mailbox.root().join("cur/1:2,D")).unwrap();
        mail.mailbox.write(name, message("draft", "note", "otter"));
        mail.mailbox.sync();
        assert_eq!(mail.mailbox.find("label:todo otter").len(), 1, "{name}");
        mail.check_labels();
        check(&mail.mailbox.store);
    }
}

#[test]
fn purged_labels_leave_the_index() {
    let mut mail = LabelledMail::new();
    mail.mailbox.write_numbered("cur", 0..2);
    mail.mailbox.sync();
    mail.label(&["m0", "m1"], &["+tax"]);
    mail.follow();
    let collection = larder_store::CollectionType::Labels.default_collection();
    let reader = mail.data.open_reader().unwrap();
    let (item, _) = reader.items().get(collection, "m0").unwrap().unwrap();
    let mut operation = Operation::new("purge", "", 0);
    mail.data.purge(&mut operation, &[item.handle]).unwrap();
    mail.follow();
    assert_eq!(mail.mailbox.find("label:tax"), ["m1"]);
    mail.check_labels();
}

/// A step in the life of labelled mail.
#[derive(Debug, Clone)]
enum Action {
    Label(Vec<usize>, Vec<&'static str>),
    /// Undoes an operation, or undoes its undo.
    Undo(Index),
    Follow,
    /// Labels the messages with a word, as the texts that they have.
    LabelTexts(&'static str, &'static str),
    Deliver(usize, &'static str),
    Delete(usize, &'static str),
    Sync,
    SyncTwin,
    DeliverOther(usize, &'static str),
    DeleteOther(usize, &'static str),
    SyncOther,
    ReadAgain(&'static str),
    DeleteIndex,
}

/// The words of texts with one Message-ID.
const TEXTS: [&str; 3] = ["walrus", "otter", "seal"];

fn arb_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (vec(0..IDS, 1..4), vec(select(&CHANGES[..]), 1..3))
            .prop_map(|(ids, changes)| Action::Label(ids, changes)),
        2 => any::<Index>().prop_map(Action::Undo),
        2 => Just(Action::Follow),
        2 => (select(&TEXTS[..]), select(&CHANGES[..]))
            .prop_map(|(word, change)| Action::LabelTexts(word, change)),
        3 => (0..IDS, select(&TEXTS[..])).prop_map(|(id, word)| Action::Deliver(id, word)),
        2 => (0..IDS, select(&TEXTS[..])).prop_map(|(id, word)| Action::Delete(id, word)),
        2 => Just(Action::Sync),
        1 => Just(Action::SyncTwin),
        2 => (0..IDS, select(&TEXTS[..])).prop_map(|(id, word)| Action::DeliverOther(id, word)),
        1 => (0..IDS, select(&TEXTS[..])).prop_map(|(id, word)| Action::DeleteOther(id, word)),
        2 => Just(Action::SyncOther),
        1 => select(&["a@example.org", "b@example.org"][..]).prop_map(Action::ReadAgain),
        1 => Just(Action::DeleteIndex),
    ]
}

impl LabelledMail {
    fn apply(&mut self, action: &Action) {
        match action {
            Action::Label(ids, changes) => {
                let uids: Vec<String> = ids.iter().map(|id| format!("m{id}")).collect();
                self.label(&uids.iter().map(String::as_str).collect::<Vec<_>>(), changes);
            }
            Action::Undo(index) => {
                if self.operations.is_empty() {
                    return;
                }
                let place = index.index(self.operations.len());
                // One that was undone is redone by the undo of its undo.
                if let Ok(report) = self.data.undo(self.operations[place], 0) {
                    self.operations.extend(report.operation);
                }
            }
            Action::Follow => {
                self.follow();
                self.check_labels();
            }
            Action::LabelTexts(word, change) => self.label_matches(word, &[change]),
            Action::Deliver(id, word) => {
                let text = message(&format!("m{id}"), "note", word);
                self.mailbox.write(format!("cur/{id}.{word}:2,"), text);
            }
            Action::Delete(id, word) => {
                let path = self.mailbox.root().join(format!("cur/{id}.{word}:2,"));
                let _may_not_exist = fs::remove_file(path);
            }
            Action::DeliverOther(id, word) => {
                let text = message(&format!("m{id}"), "note", word);
                self.write_other(&format!("cur/{id}.{word}:2,"), text);
            }
            Action::DeleteOther(id, word) => {
                let path = self.other_root().join(format!("cur/{id}.{word}:2,"));
                let _may_not_exist = fs::remove_file(path);
            }
            Action::SyncOther => self.sync_other(),
            Action::ReadAgain(address) => self.sync_with_addresses(&[address]),
            Action::Sync => drop(self.mailbox.sync()),
            Action::SyncTwin => self.sync_twin(),
            Action::DeleteIndex => self.delete_index(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn labels_in_the_index_are_those_in_the_data(actions in vec(arb_action(), 5..40)) {
        let mut mail = LabelledMail::new();
        for action in &actions {
            mail.apply(action);
        }
        mail.follow();
        mail.check_labels();
        mail.mailbox.sync();
        mail.sync_other();
        mail.check_labels();
        let mut labelled = BTreeMap::new();
        let data = mail.data.open_reader().unwrap();
        for_each_labelled(&data, &mut |uid, item| drop(labelled.insert(uid, item.labels))).unwrap();
        for id in 0..IDS {
            let uid = format!("m{id}");
            let labels = read_labels(&data, &uid).unwrap();
            assert_eq!(labelled.remove(&uid).unwrap_or_else(LabelList::default), labels);
        }
        check(&mail.mailbox.store);
        check(&mail.data);
    }
}

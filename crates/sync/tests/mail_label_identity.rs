//! Labels and rules know a message by its Message-ID and its text, in whatever order the texts with
//! a Message-ID, and the sources that have them, came.

use crate::mail_labels::LabelledMail;
use crate::mail_sync::check;
use crate::mailbox::{find_rows, message};
use larder_edit::{LabelDifferences, compare_labels};
use larder_store::Store;
use larder_sync::MailSyncOptions;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const IDS: [&str; 2] = ["m0@x", "m1@x"];
const TEXTS: [&str; 3] = ["walrus", "otter", "seal"];
const CHANGES: [&str; 4] = ["+tax", "-tax", "+todo", "-todo"];

/// A place for a copy of a message: the first maildir or the other one.
type Source = bool;

#[derive(Debug, Clone)]
enum Step {
    Deliver(Source, &'static str, &'static str),
    Delete(Source, &'static str, &'static str),
    /// Moves a message into the other maildir.
    Move(Source, &'static str, &'static str),
    /// Changes the labels of the messages with a word.
    LabelText(&'static str, &'static str),
    /// Changes the labels of a text in a maildir, under the name that it has there.
    LabelCopy(Source, &'static str, &'static str, &'static str),
    /// Changes the labels of a Message-ID, as an import before the message came.
    LabelId(&'static str, &'static str),
    Undo(usize),
}

fn arb_step() -> impl Strategy<Value = Step> {
    let copy = || (any::<bool>(), select(&IDS[..]), select(&TEXTS[..]));
    prop_oneof![
        4 => copy().prop_map(|(source, id, text)| Step::Deliver(source, id, text)),
        2 => copy().prop_map(|(source, id, text)| Step::Delete(source, id, text)),
        1 => copy().prop_map(|(source, id, text)| Step::Move(source, id, text)),
        2 => (select(&TEXTS[..]), select(&CHANGES[..]))
            .prop_map(|(text, change)| Step::LabelText(text, change)),
        3 => (copy(), select(&CHANGES[..]))
            .prop_map(|((source, id, text), change)| Step::LabelCopy(source, id, text, change)),
        1 => (select(&IDS[..]), select(&CHANGES[..]))
            .prop_map(|(id, change)| Step::LabelId(id, change)),
        1 => (0_usize..8).prop_map(Step::Undo),
    ]
}

/// The labels of each Message-ID and text.
type TextLabels = BTreeMap<(String, Option<u64>), Vec<String>>;

impl LabelledMail {
    fn file(&self, source: Source, id: &str, text: &str) -> PathBuf {
        let root = if source { self.other_root() } else { self.mailbox.root() };
        root.join(format!("cur/{id}.{text}:2,"))
    }

    fn deliver(&self, source: Source, id: &str, text: &str) {
        let path = self.file(source, id, text);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, message(id, "note", text)).unwrap();
    }

    /// Synchronises both maildirs. A change right after the last run is found, too.
    fn sync_both(&mut self, is_other_first: bool) {
        let full = MailSyncOptions { is_full: true, ..MailSyncOptions::default() };
        if is_other_first {
            self.sync_other_fully();
        }
        self.mailbox.sync_with(&full);
        if !is_other_first {
            self.sync_other_fully();
        }
    }

    /// Returns the labels of each text, which are the same in both maildirs.
    fn text_labels(&self) -> TextLabels {
        let reader = self.mailbox.store.open_reader().unwrap();
        let mail = reader.mail().unwrap();
        let mut listed = mail.listed_labels().unwrap();
        let mut found = TextLabels::new();
        for row in 0..mail.end_row().unwrap() {
            let Some(text) = mail.labelled_text(row).unwrap() else { continue };
            let (id, hash) = text.identity();
            let labels = mail.labels_of(&mut listed, row).unwrap();
            let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
            if let Some(known) = found.insert((id.to_string(), hash), labels.clone()) {
                assert_eq!(known, labels, "the copies in two sources differ");
            }
        }
        found
    }

    fn take_step(&mut self, step: &Step) {
        match step {
            Step::Deliver(source, id, text) => self.deliver(*source, id, text),
            Step::Delete(source, id, text) => {
                let _may_not_exist = fs::remove_file(self.file(*source, id, text));
            }
            Step::Move(source, id, text) => {
                let to = self.file(!source, id, text);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                let _may_not_exist = fs::rename(self.file(*source, id, text), to);
            }
            Step::LabelText(text, change) => self.label_matches(text, &[change]),
            Step::LabelCopy(source, id, text, change) => {
                let source = if *source { "other" } else { "mail" };
                self.label_matches(&format!("in:{source} msgid:{id} {text}"), &[change]);
            }
            Step::LabelId(id, change) => {
                self.label(&[id], &[change]);
                self.follow();
            }
            Step::Undo(back) => {
                self.undo(*back);
                self.follow();
            }
        }
    }

    /// Compares the labels with those of an index that is made afresh, in either order.
    fn compare_with_new_index(&mut self) {
        let known = self.text_labels();
        self.check_labels();
        let mut index: Option<Store> = None;
        for is_other_first in [false, true] {
            let former = self.replace_index();
            index.get_or_insert(former);
            self.follow();
            self.sync_both(is_other_first);
            assert_eq!(self.text_labels(), known, "other first: {is_other_first}");
            self.check_labels();
        }
        self.mailbox.store = index.unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 8, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn labels_are_those_of_an_index_made_afresh(steps in vec(arb_step(), 4..16)) {
        let mut mail = LabelledMail::new();
        mail.sync_both(false);
        for step in &steps {
            mail.take_step(step);
            mail.sync_both(false);
            mail.compare_with_new_index();
        }
        check(&mail.mailbox.store);
        check(&mail.data);
    }
}

/// The text has another name in each source, because the texts came in another order.
#[test]
fn copies_in_two_sources_have_the_same_labels() {
    let mut mail = LabelledMail::new();
    for (source, text) in [(false, "walrus"), (true, "otter"), (false, "otter"), (true, "walrus")] {
        mail.deliver(source, "m0@x", text);
        mail.sync_both(false);
    }
    mail.label_matches("in:mail otter", &["+tax"]);
    mail.label_matches("in:other walrus", &["+todo"]);
    let found = |mail: &LabelledMail, line: &str| {
        find_rows(&mail.mailbox.store.open_reader().unwrap(), line).len()
    };
    for step in ["labelled", "made afresh", "without one text", "made afresh again"] {
        if step.starts_with("made") {
            drop(mail.replace_index());
            mail.follow();
        }
        if step.starts_with("without") {
            fs::remove_file(mail.file(true, "m0@x", "walrus")).unwrap();
        }
        mail.sync_both(true);
        assert_eq!(found(&mail, "label:tax otter not label:todo"), 2, "{step}");
        assert_eq!(found(&mail, "label:tax walrus"), 0, "{step}");
        mail.check_labels();
    }
    // While a text is away, all others with the Message-ID have its labels.
    fs::remove_file(mail.file(false, "m0@x", "walrus")).unwrap();
    mail.sync_both(false);
    assert_eq!(found(&mail, "label:tax label:todo otter"), 2);
    mail.label_matches("in:other otter", &["-todo"]);
    assert_eq!(found(&mail, "label:todo"), 0);
    mail.compare_with_new_index();
    check(&mail.mailbox.store);
}

/// Items of former versions are under the name of the text, and do not name the Message-ID.
#[test]
fn labels_of_former_versions_stay_with_their_text() {
    let mut mail = LabelledMail::new();
    for text in ["walrus", "otter"] {
        mail.deliver(false, "m0@x", text);
        mail.sync_both(false);
    }
    let found = |mail: &LabelledMail, line: &str| {
        find_rows(&mail.mailbox.store.open_reader().unwrap(), line)
    };
    let name = {
        let reader = mail.mailbox.store.open_reader().unwrap();
        let row = found(&mail, "otter")[0];
        reader.mail().unwrap().labelled_text(row).unwrap().unwrap().uid
    };
    mail.label(&[&name], &["+tax"]);
    mail.follow();
    for step in ["labelled", "beside a copy", "alone", "made afresh", "beside the other text"] {
        match step {
            "beside a copy" => mail.deliver(true, "m0@x", "otter"),
            "alone" => fs::remove_file(mail.file(false, "m0@x", "walrus")).unwrap(),
            "made afresh" => {
                drop(mail.replace_index());
                mail.follow();
            }
            "beside the other text" => mail.deliver(false, "m0@x", "walrus"),
            _ => {}
        }
        mail.sync_both(true);
        assert_eq!(found(&mail, "label:tax"), found(&mail, "otter"), "{step}");
        let data = mail.data.open_reader().unwrap();
        let index = mail.mailbox.store.open_reader().unwrap();
        let differences = compare_labels(&data, &index).unwrap();
        assert_eq!(differences, Some(LabelDifferences::default()), "{step}");
    }
    mail.label_matches("in:other otter", &["-tax"]);
    assert_eq!(found(&mail, "label:tax"), [0; 0]);
}

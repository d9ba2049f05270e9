//! Labels of texts with one Message-ID, compared with a plain model: a change of the labels of a
//! text changes those of no other text.

use crate::mail_labels::LabelledMail;
use crate::mail_sync::check;
use crate::mailbox::{find_rows, message};
use larder_edit::labels::{LabelReport, change_labels, find_labels_to_purge, read_text_labels};
use larder_edit::{LabelDifferences, compare_labels};
use larder_format::label::LabelChange;
use larder_format::label::MAX_LABELS;
use larder_format::label_dump::LabelDump;
use larder_store::{Error, Handle, Operation};
use larder_sync::{MailSyncOptions, import_labels};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const IDS: [&str; 2] = ["m0@x", "m1@x"];
const TEXTS: [&str; 3] = ["walrus", "otter", "seal"];
const LABELS: [&str; 2] = ["tax", "todo"];

/// A step in the life of texts with two Message-IDs, in two maildirs.
#[derive(Debug, Clone)]
enum ModelStep {
    Deliver(bool, &'static str, &'static str),
    /// Deletes a text from both maildirs.
    Delete(&'static str, &'static str),
    Purge(&'static str, &'static str),
    Label(&'static str, &'static str, bool, &'static str),
    /// Changes the labels of all texts with a Message-ID together.
    LabelAll(&'static str, bool, &'static str),
    Import(&'static str, &'static str),
}

fn arb_model_step() -> impl Strategy<Value = ModelStep> {
    let text = || (select(&IDS[..]), select(&TEXTS[..]));
    let change = || (any::<bool>(), select(&LABELS[..]));
    prop_oneof![
        4 => (any::<bool>(), text()).prop_map(|(source, (id, text))| ModelStep::Deliver(source, id, text)),
        2 => text().prop_map(|(id, text)| ModelStep::Delete(id, text)),
        1 => text().prop_map(|(id, text)| ModelStep::Purge(id, text)),
        5 => (text(), change())
            .prop_map(|((id, text), (adds, label))| ModelStep::Label(id, text, adds, label)),
        1 => (select(&IDS[..]), change())
            .prop_map(|(id, (adds, label))| ModelStep::LabelAll(id, adds, label)),
        2 => (select(&IDS[..]), select(&LABELS[..]))
            .prop_map(|(id, label)| ModelStep::Import(id, label)),
    ]
}

/// The labels of one Message-ID: those of any text, and those of each text.
#[derive(Debug, Default)]
struct IdModel {
    any: BTreeSet<&'static str>,
    own: BTreeMap<&'static str, BTreeSet<&'static str>>,
    present: BTreeSet<&'static str>,
}

impl IdModel {
    /// Returns the labels that all texts have.
    fn shared_labels(&self) -> BTreeSet<&'static str> {
        let gone = self.own.iter().filter(|(text, _)| !self.present.contains(*text));
        self.any.iter().chain(gone.flat_map(|(_, labels)| labels)).copied().collect()
    }

    fn labels(&self, text: &str) -> BTreeSet<&'static str> {
        self.shared_labels()
            .union(self.own.get(text).unwrap_or(&BTreeSet::new()))
            .copied()
            .collect()
    }

    fn change(&mut self, texts: &BTreeSet<&'static str>, adds: bool, label: &'static str) {
        let was_shared = self.shared_labels().contains(label);
        if adds && !was_shared {
            for text in texts {
                self.own.entry(text).or_default().insert(label);
            }
        } else if !adds && !texts.is_empty() {
            if was_shared {
                self.any.remove(label);
                self.own.iter_mut().for_each(|(text, labels)| {
                    if !self.present.contains(text) {
                        labels.remove(label);
                    }
                });
                for other in self.present.difference(texts) {
                    self.own.entry(other).or_default().insert(label);
                }
            }
            for text in texts {
                self.own.entry(text).or_default().remove(label);
            }
        }
    }

    fn purge(&mut self, text: &str) {
        if self.present.remove(text) {
            self.own.remove(text);
            if self.present.is_empty() {
                *self = IdModel::default();
            }
        }
    }
}

impl LabelledMail {
    fn deliver_text(&self, is_other: bool, id: &str, text: &str) {
        let root = if is_other { self.other_root() } else { self.mailbox.root() };
        fs::create_dir_all(root.join("cur")).unwrap();
        fs::write(root.join(format!("cur/{id}.{text}:2,")), message(id, "note", text)).unwrap();
    }

    fn delete_text(&self, id: &str, text: &str) {
        for root in [self.other_root(), self.mailbox.root()] {
            let _may_not_exist = fs::remove_file(root.join(format!("cur/{id}.{text}:2,")));
        }
    }

    fn sync_fully(&mut self) {
        let full = MailSyncOptions { is_full: true, ..MailSyncOptions::default() };
        self.mailbox.sync_with(&full);
        self.sync_other_fully();
    }

    fn purge_text(&mut self, id: &str, text: &str) {
        let index = self.mailbox.store.open_reader().unwrap();
        let messages: Vec<(Handle, String)> = {
            let mail = index.mail().unwrap();
            let rows = find_rows(&index, &format!("msgid:{id} {text}")).into_iter();
            let messages = rows.map(|row| mail.message(row).unwrap().unwrap());
            messages.map(|message| (message.handle, message.uid)).collect()
        };
        if messages.is_empty() {
            return;
        }
        self.delete_text(id, text);
        let data = self.data.open_reader().unwrap();
        let labels = find_labels_to_purge(&data, &index, &messages).unwrap();
        drop((data, index));
        let mut operation = Operation::new("purge", "", 0);
        if !labels.is_empty() {
            self.data.purge(&mut operation, &labels).unwrap();
        }
        self.follow();
        let handles: Vec<Handle> = messages.into_iter().map(|(handle, _)| handle).collect();
        self.mailbox.store.purge(&mut Operation::new("purge", "", 0), &handles).unwrap();
    }

    fn import(&mut self, id: &str, label: &str) {
        let index = self.mailbox.store.open_reader().unwrap();
        let dump = LabelDump::parse(format!("+{label} -- id:{id}\n").as_bytes()).unwrap();
        let mut operation = Operation::new("import labels", "", 0);
        import_labels(&mut self.data, Some(&index), &mut operation, dump, false).unwrap();
        self.follow();
    }

    fn take_model_step(&mut self, step: &ModelStep) {
        let sign = |adds: &bool| if *adds { "+" } else { "-" };
        match step {
            ModelStep::Deliver(is_other, id, text) => self.deliver_text(*is_other, id, text),
            ModelStep::Delete(id, text) => self.delete_text(id, text),
            ModelStep::Purge(id, text) => self.purge_text(id, text),
            ModelStep::Label(id, text, adds, label) => {
                self.label_matches(
                    &format!("msgid:{id} {text}"),
                    &[&format!("{}{label}", sign(adds))],
                );
            }
            ModelStep::LabelAll(id, adds, label) => {
                self.label_matches(&format!("msgid:{id}"), &[&format!("{}{label}", sign(adds))]);
            }
            ModelStep::Import(id, label) => self.import(id, label),
        }
        self.sync_fully();
    }

    /// Returns the labels of a text; `None`: no message has it.
    fn labels_of_text(&self, id: &str, text: &str) -> Option<BTreeSet<String>> {
        let reader = self.mailbox.store.open_reader().unwrap();
        let mail = reader.mail().unwrap();
        let mut listed = mail.listed_labels().unwrap();
        let mut found = None;
        for row in find_rows(&reader, &format!("msgid:{id} {text}")) {
            let labels = mail.labels_of(&mut listed, row).unwrap();
            let labels: BTreeSet<String> = labels.into_iter().map(str::to_string).collect();
            let text = mail.labelled_text(row).unwrap().unwrap();
            let stored = read_text_labels(&self.data.open_reader().unwrap(), &[&text]).unwrap();
            let stored: BTreeSet<String> = stored[0].iter().map(str::to_string).collect();
            assert_eq!(stored, labels, "the change reads other labels than the search");
            assert!(found.as_ref().is_none_or(|found| *found == labels), "copies differ");
            found = Some(labels);
        }
        found
    }
}

fn take_step_in_model(models: &mut BTreeMap<&'static str, IdModel>, step: &ModelStep) {
    match step {
        ModelStep::Deliver(_, id, text) => {
            models.entry(*id).or_default().present.insert(*text);
        }
        ModelStep::Delete(id, text) => {
            models.entry(*id).or_default().present.remove(text);
        }
        ModelStep::Purge(id, text) => models.entry(*id).or_default().purge(text),
        ModelStep::Label(id, text, adds, label) => {
            let model = models.entry(*id).or_default();
            if model.present.contains(text) {
                model.change(&BTreeSet::from([*text]), *adds, label);
            }
        }
        ModelStep::LabelAll(id, adds, label) => {
            let model = models.entry(*id).or_default();
            model.change(&model.present.clone(), *adds, label);
        }
        ModelStep::Import(id, label) => {
            let model = models.entry(*id).or_default();
            if !model.present.is_empty() {
                model.change(&model.present.clone(), true, label);
            } else if !model.shared_labels().contains(label) {
                model.any.insert(*label);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn a_change_of_a_text_changes_no_other_text(steps in vec(arb_model_step(), 4..24)) {
        let mut mail = LabelledMail::new();
        mail.sync_fully();
        let mut models: BTreeMap<&'static str, IdModel> = BTreeMap::new();
        for (place, step) in steps.iter().enumerate() {
            mail.take_model_step(step);
            take_step_in_model(&mut models, step);
            for id in IDS {
                let model = models.entry(id).or_default();
                for text in TEXTS {
                    let expected = model.present.contains(text).then(|| {
                        model.labels(text).iter().map(ToString::to_string).collect()
                    });
                    prop_assert_eq!(mail.labels_of_text(id, text), expected, "{} {} {}", place, id, text);
                }
            }
            mail.check_labels();
        }
        check(&mail.mailbox.store);
        check(&mail.data);
    }
}

impl LabelledMail {
    /// Delivers texts one after the other, all with one Message-ID.
    fn deliver_in_order(&mut self, texts: &[&str]) {
        for text in texts {
            self.deliver_text(false, "m0@x", text);
            self.sync_fully();
        }
    }

    /// Returns the labels of a text with the Message-ID, separated by spaces.
    fn labels_in_line(&self, text: &str) -> String {
        let labels = self.labels_of_text("m0@x", text).unwrap();
        labels.into_iter().collect::<Vec<_>>().join(" ")
    }

    fn change_report(&mut self, query: &str, change: &str) -> Result<LabelReport, Error> {
        let texts = {
            let reader = self.mailbox.store.open_reader().unwrap();
            let mail = reader.mail().unwrap();
            mail.labelled_texts(&find_rows(&reader, query)).unwrap()
        };
        let change = LabelChange::parse([change]).unwrap();
        let mut operation = Operation::new("edit labels", "", 0);
        let report = change_labels(&mut self.data, &mut operation, &texts, &change)?;
        self.follow();
        Ok(report)
    }
}

#[test]
fn a_label_goes_to_the_chosen_text_in_any_order_of_arrival() {
    for order in [["walrus", "otter"], ["otter", "walrus"]] {
        let mut mail = LabelledMail::new();
        mail.import("m0@x", "tax");
        mail.deliver_in_order(&order);
        mail.label_matches("walrus", &["+y"]);
        assert_eq!(mail.labels_in_line("walrus"), "tax y", "{order:?}");
        assert_eq!(mail.labels_in_line("otter"), "tax", "{order:?}");
        mail.label_matches("walrus", &["-tax"]);
        assert_eq!(mail.labels_in_line("walrus"), "y", "{order:?}");
        assert_eq!(mail.labels_in_line("otter"), "tax", "{order:?}");
        mail.check_labels();
        check(&mail.mailbox.store);
    }
    // A text that is gone has the Message-ID as its name.
    let mut mail = LabelledMail::new();
    mail.deliver_in_order(&["walrus", "otter"]);
    mail.label_matches("walrus", &["+tax"]);
    mail.delete_text("m0@x", "walrus");
    mail.sync_fully();
    mail.deliver_in_order(&["seal"]);
    mail.label_matches("seal", &["+y"]);
    assert_eq!(mail.labels_in_line("seal"), "tax y");
    assert_eq!(mail.labels_in_line("otter"), "tax");
    mail.deliver_in_order(&["walrus"]);
    assert_eq!(mail.labels_in_line("walrus"), "tax");
    assert_eq!(mail.labels_in_line("seal"), "y");
}

/// Labels that were imported before the message came, and more that it got then.
#[test]
fn a_message_with_imported_labels_keeps_its_name_in_a_new_index() {
    let mut mail = LabelledMail::new();
    mail.import("m0@x", "inbox");
    mail.deliver_in_order(&["walrus"]);
    mail.label_matches("walrus", &["+y", "-inbox"]);
    for step in ["labelled", "made afresh"] {
        assert_eq!(mail.mailbox.find("label:y"), ["m0@x"], "{step}");
        assert_eq!(mail.mailbox.find("label:inbox"), [""; 0], "{step}");
        drop(mail.replace_index());
        mail.follow();
        mail.sync_fully();
    }
}

#[test]
fn a_purge_takes_the_labels_of_its_text_only() {
    let mut mail = LabelledMail::new();
    mail.import("m0@x", "tax");
    mail.deliver_in_order(&["walrus", "otter"]);
    mail.label_matches("walrus", &["+y"]);
    mail.purge_text("m0@x", "walrus");
    assert_eq!(mail.labels_in_line("otter"), "tax");
    // The purged text has the Message-ID as its name.
    let mut mail = LabelledMail::new();
    mail.deliver_in_order(&["walrus", "otter"]);
    mail.label_matches("walrus", &["+secret"]);
    mail.purge_text("m0@x", "walrus");
    assert_eq!(mail.labels_in_line("otter"), "");
    mail.deliver_in_order(&["walrus"]);
    assert_eq!(mail.labels_in_line("walrus"), "");
}

/// Labels of texts that are gone may be more than a message can be given.
#[test]
fn a_message_with_too_many_labels_can_lose_some() {
    let mut mail = LabelledMail::new();
    mail.deliver_in_order(&["walrus", "otter"]);
    for text in ["walrus", "otter"] {
        let labels: Vec<String> =
            (0..MAX_LABELS - 1).map(|number| format!("+{text}{number}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        mail.label_matches(text, &labels);
    }
    mail.delete_text("m0@x", "walrus");
    mail.sync_fully();
    let error = mail.change_report("otter", "+more").unwrap_err();
    assert!(matches!(&error, Error::TooManyLabels { uid, .. } if uid == "m0@x"), "{error}");
    let report = mail.change_report("otter", "-walrus7").unwrap();
    assert_eq!(report, LabelReport { changed: 1, unchanged: 0 });
    assert_eq!(mail.labels_of_text("m0@x", "otter").unwrap().len(), 2 * MAX_LABELS - 3);
}

/// The texts have the label from one item.
#[test]
fn texts_that_share_an_item_are_counted_one_by_one() {
    let mut mail = LabelledMail::new();
    mail.import("m0@x", "tax");
    mail.deliver_in_order(&["walrus", "otter", "seal"]);
    let report = mail.change_report("walrus or otter", "-tax").unwrap();
    assert_eq!(report, LabelReport { changed: 2, unchanged: 0 });
    assert_eq!(mail.labels_in_line("seal"), "tax");
    let report = mail.change_report("note", "+tax").unwrap();
    assert_eq!(report, LabelReport { changed: 2, unchanged: 1 });
}

/// A program that gives all its messages one Message-ID. A batch reads the texts once, and not once
/// for each of them: that would take hours here.
#[test]
fn a_thousand_texts_share_a_message_id() {
    let count = 1000;
    let mut mail = LabelledMail::new();
    mail.import("m0@x", "inbox");
    for number in 0..count {
        let text = message("m0@x", "note", &format!("cron word{number}"));
        mail.mailbox.write(format!("cur/{number}.x:2,"), text);
    }
    mail.sync_fully();
    let report = mail.change_report("cron", "+tax").unwrap();
    assert_eq!(report, LabelReport { changed: count, unchanged: 0 });
    mail.label_matches("word7", &["-inbox"]);
    let found = |mail: &LabelledMail, line: &str| {
        find_rows(&mail.mailbox.store.open_reader().unwrap(), line).len() as u64
    };
    for step in ["labelled", "made afresh"] {
        assert_eq!(found(&mail, "label:inbox"), count - 1, "{step}");
        assert_eq!(found(&mail, "label:tax"), count, "{step}");
        let data = mail.data.open_reader().unwrap();
        let index = mail.mailbox.store.open_reader().unwrap();
        let differences = compare_labels(&data, &index).unwrap();
        assert_eq!(differences, Some(LabelDifferences::default()), "{step}");
        drop((data, index));
        drop(mail.replace_index());
        mail.follow();
        mail.sync_fully();
    }
    for number in 1..count {
        fs::remove_file(mail.mailbox.root().join(format!("cur/{number}.x:2,"))).unwrap();
    }
    mail.sync_fully();
    assert_eq!(mail.labels_in_line("word0"), "inbox tax");
}

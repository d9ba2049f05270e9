//! Rules: saved searches label new mail, once, also after an interruption; replies inherit labels.

use crate::mailbox::{COLLECTION, Mailbox, create_index, message};
use larder_edit::labels::{change_labels, follow_labels, read_labels};
use larder_edit::put_saved_searches;
use larder_format::label::LabelChange;
use larder_format::saved_search::SavedSearch;
use larder_query::QueryContext;
use larder_store::{DataDirectory, Operation, Store, StoreOptions};
use larder_sync::{MailRuleReport, MailSyncOptions, RuleScope, run_mail_rules, sync_maildir};
use std::cell::Cell;

/// A maildir with its index, and the store with the rules and the labels.
struct RuledMail {
    mailbox: Mailbox,
    data: Store,
}

impl RuledMail {
    fn new(rules: &[(&str, &str, &[&str])]) -> RuledMail {
        let mailbox = Mailbox::new();
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let directory = DataDirectory::new(mailbox.outside_path("data"));
        let mut data = Store::open(directory, &options).unwrap();
        let searches: Vec<SavedSearch> = rules
            .iter()
            .map(|(name, query, labels)| {
                let label_changes = labels.iter().map(ToString::to_string).collect();
                SavedSearch { label_changes, ..SavedSearch::new(name, query, "message") }
            })
            .collect();
        put_saved_searches(&mut data, &mut Operation::new("searches add", "", 0), &searches)
            .unwrap();
        RuledMail { mailbox, data }
    }

    fn run(&mut self, scope: RuleScope) -> MailRuleReport {
        run_mail_rules(
            &mut self.data,
            &mut self.mailbox.store,
            &QueryContext::default(),
            &["muted".to_string()],
            &[COLLECTION.to_string()],
            scope,
            0,
        )
        .unwrap()
    }

    fn sync(&mut self) -> MailRuleReport {
        self.mailbox.sync();
        self.run(RuleScope::New)
    }

    fn write(&self, id: &str, subject: &str, references: &str) {
        let text = message(id, subject, "text").replacen(
            "Subject",
            &format!("References: {references}\nSubject"),
            usize::from(!references.is_empty()),
        );
        self.mailbox.write(format!("cur/{id}.host:2,"), text);
    }

    fn labels(&self, uid: &str) -> Vec<String> {
        let labels = read_labels(&self.data.open_reader().unwrap(), uid).unwrap();
        labels.iter().map(str::to_string).collect()
    }

    /// Returns the effects, and the number of messages with other labels than before.
    fn effects(report: &MailRuleReport) -> (Vec<String>, u64) {
        (report.effects.iter().map(ToString::to_string).collect(), report.changed)
    }
}

#[test]
fn new_mail_is_labelled_once() {
    let rules: &[(&str, &str, &[&str])] = &[
        ("bills", "subject:invoice", &["+tax", "-inbox"]),
        ("both", "@bills subject:urgent", &["+now"]),
        ("plain", "subject:note", &[]),
    ];
    let mut mail = RuledMail::new(rules);
    mail.write("old", "invoice", "");
    // The first synchronisation finds no new mail.
    assert_eq!(RuledMail::effects(&mail.sync()), (vec![], 0));
    mail.write("a", "invoice urgent", "");
    mail.write("b", "invoice", "");
    mail.write("c", "note", "");
    let report = mail.sync();
    let effects = ["+tax -inbox on 2 messages", "+now on 1 message"].map(String::from).to_vec();
    assert_eq!(RuledMail::effects(&report), (effects, 2));
    assert_eq!(mail.labels("a"), ["now", "tax"]);
    assert_eq!(mail.mailbox.find("label:tax"), ["a", "b"]);
    assert_eq!(mail.labels("old"), [""; 0]);
    // It is one operation, and the next synchronisation does not repeat it.
    mail.data.undo(report.operation.unwrap(), 0).unwrap();
    assert_eq!(mail.labels("a"), [""; 0]);
    assert_eq!(RuledMail::effects(&mail.sync()), (vec![], 0));
    mail.write("d", "invoice", "");
    mail.mailbox.sync();
    assert_eq!(mail.run(RuleScope::New).changed, 1);
    assert_eq!(mail.run(RuleScope::New).changed, 0);
    assert_eq!(mail.run(RuleScope::All).changed, 3);
    assert_eq!(mail.labels("old"), ["tax"]);
    // An index made anew has no new mail, and the labels.
    mail.mailbox.store = create_index(mail.mailbox.outside_path("index2"));
    mail.write("e", "invoice", "");
    assert_eq!(mail.sync().changed, 0);
    assert_eq!(mail.labels("e"), [""; 0]);
    mail.write("f", "invoice", "");
    assert_eq!(mail.sync().changed, 1);
    // Nor has a maildir that is registered again.
    larder_sync::remove_indexed_mail(&mut mail.mailbox.store, COLLECTION, 0).unwrap();
    assert_eq!(RuledMail::effects(&mail.sync()), (vec![], 0));
}

#[test]
fn an_interrupted_synchronisation_leaves_the_rest_to_the_next() {
    let mut mail = RuledMail::new(&[("notes", "subject:note", &["+n"])]);
    let interrupt = |mail: &mut RuledMail| {
        let options =
            MailSyncOptions { batch_messages: 10, readers: 1, ..MailSyncOptions::default() };
        let asked = Cell::new(0);
        let is_cancelled = || asked.replace(asked.get() + 1) > 0;
        let root = mail.mailbox.root();
        let store = &mut mail.mailbox.store;
        let report =
            sync_maildir(store, &root, COLLECTION, &options, &mut |_| {}, &is_cancelled).unwrap();
        assert!(report.is_interrupted);
        report.added_files
    };
    // What an interrupted first synchronisation leaves is found by another first one.
    mail.mailbox.write_numbered("cur", 0..30);
    assert!((1..30).contains(&interrupt(&mut mail)));
    assert_eq!(RuledMail::effects(&mail.sync()), (vec![], 0));
    mail.mailbox.write_numbered("cur", 30..60);
    assert!((1..30).contains(&interrupt(&mut mail)));
    assert_eq!(RuledMail::effects(&mail.sync()), (vec!["+n on 30 messages".into()], 30));
    assert_eq!(mail.mailbox.find("label:n").len(), 30);
    assert_eq!(mail.labels("m29"), [""; 0]);
    assert_eq!(mail.labels("m30"), ["n"]);
}

/// A program that ends after the labels and before the row runs the rules again.
#[test]
fn rules_may_run_twice() {
    let mut mail = RuledMail::new(&[("notes", "subject:note", &["+n"])]);
    mail.sync();
    mail.mailbox.write_numbered("cur", 0..3);
    mail.mailbox.sync();
    let before = mail.mailbox.outside_path("before");
    std::fs::create_dir(&before).unwrap();
    for name in ["index.db", "index.db-wal"] {
        let file = mail.mailbox.outside_path("index").join(name);
        if file.exists() {
            std::fs::copy(file, before.join(name)).unwrap();
        }
    }
    assert_eq!(mail.run(RuleScope::New).changed, 3);
    mail.mailbox.store = create_index(before);
    let report = mail.run(RuleScope::New);
    assert_eq!((report.changed, report.operation), (0, None));
    follow_labels(&mail.data.open_reader().unwrap(), &mut mail.mailbox.store, 0).unwrap();
    assert_eq!(mail.mailbox.find("label:n").len(), 3);
}

#[test]
fn replies_inherit_labels() {
    let mut mail = RuledMail::new(&[]);
    mail.write("a", "walrus", "");
    mail.write("x", "other", "");
    mail.sync();
    let change = LabelChange::parse(["+muted", "+todo"]).unwrap();
    let mut operation = Operation::new("edit", "", 0);
    change_labels(&mut mail.data, &mut operation, &["a".to_string()], &change).unwrap();
    follow_labels(&mail.data.open_reader().unwrap(), &mut mail.mailbox.store, 0).unwrap();
    mail.write("b", "Re: walrus", "<a>");
    mail.write("c", "Re: walrus", "<a> <b>");
    mail.write("y", "Re: other", "<x>");
    let report = mail.sync();
    assert_eq!(RuledMail::effects(&report), (vec!["+muted on 2 messages".into()], 2));
    assert_eq!(mail.mailbox.find("label:muted"), ["a", "b", "c"]);
    assert_eq!(mail.labels("b"), ["muted"]);
    assert_eq!(mail.labels("y"), [""; 0]);
    // A thread that is muted no more stays so.
    let change = LabelChange::parse(["-muted"]).unwrap();
    let uids = ["a", "b", "c"].map(String::from);
    change_labels(&mut mail.data, &mut operation, &uids, &change).unwrap();
    follow_labels(&mail.data.open_reader().unwrap(), &mut mail.mailbox.store, 0).unwrap();
    mail.write("d", "Re: walrus", "<a>");
    assert_eq!(mail.sync().changed, 0);
}

#[test]
fn a_rule_that_cannot_be_run_is_named() {
    let rules: &[(&str, &str, &[&str])] = &[
        ("bad", "@gone", &["+x"]),
        ("good", "subject:note", &["+n"]),
        ("unsupported", "lang:de", &["+y"]),
        ("unsigned", "subject:note", &["x"]),
    ];
    let mut mail = RuledMail::new(rules);
    mail.sync();
    mail.mailbox.write_numbered("cur", 0..2);
    let report = mail.sync();
    assert_eq!(RuledMail::effects(&report), (vec!["+n on 2 messages".into()], 2));
    let names: Vec<&str> = report.problems.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bad", "unsigned", "unsupported"]);
}

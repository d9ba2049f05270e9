//! Rules: saved searches label new mail, once, also after an interruption; replies inherit labels.

use crate::mail_sync::check;
use crate::mailbox::{COLLECTION, Mailbox, create_index, message};
use larder_edit::labels::{change_labels, follow_labels, for_each_labelled};
use larder_edit::put_saved_searches;
use larder_format::label::{LabelChange, LabelList, MAX_LABELS};
use larder_format::saved_search::SavedSearch;
use larder_query::QueryContext;
use larder_store::{DataDirectory, LabelledText, Operation, Store, StoreOptions};
use larder_sync::{
    MailRule, MailRuleReport, MailRuleRun, MailSyncOptions, RuleScope, run_mail_rules, sync_maildir,
};
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
        self.run_within(scope, None)
    }

    fn run_within(&mut self, scope: RuleScope, max_work: Option<u64>) -> MailRuleReport {
        self.run_on(&[COLLECTION.to_string()], scope, max_work)
    }

    fn run_on(
        &mut self,
        collections: &[String],
        scope: RuleScope,
        max_work: Option<u64>,
    ) -> MailRuleReport {
        run_rules_on(&mut self.data, &mut self.mailbox.store, collections, scope, max_work)
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
        let mut labels = LabelList::default();
        for_each_labelled(&self.data.open_reader().unwrap(), &mut |name, item| {
            if item.message_id.as_ref().unwrap_or(&name) == uid {
                labels.extend(item.labels.iter());
            }
        })
        .unwrap();
        labels.iter().map(str::to_string).collect()
    }

    fn problems(report: &MailRuleReport) -> Vec<&str> {
        report.problems.iter().filter_map(|one| one.search.as_deref()).collect()
    }

    /// Returns the effects, and the number of messages with other labels than before.
    fn effects(report: &MailRuleReport) -> (Vec<String>, u64) {
        (report.effects.iter().map(ToString::to_string).collect(), report.changed)
    }
}

fn run_rules_on(
    data: &mut Store,
    index: &mut Store,
    collections: &[String],
    scope: RuleScope,
    max_work: Option<u64>,
) -> MailRuleReport {
    let run = MailRuleRun {
        inherited_labels: &["muted".to_string()],
        collections,
        scope,
        max_work,
        at: 0,
    };
    run_mail_rules(data, index, &QueryContext::default(), &run).unwrap()
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

/// The rules run on a message once, also if its last file goes in one round and another one comes
/// in a later one, and if it is moved to another source.
#[test]
fn mail_that_comes_back_is_not_new() {
    let mut mail = RuledMail::new(&[("notes", "subject:note", &["+n"])]);
    mail.sync();
    mail.write("a", "note", "");
    mail.write("b", "note", "");
    let report = mail.sync();
    assert_eq!(report.changed, 2);
    mail.data.undo(report.operation.unwrap(), 0).unwrap();
    let path = mail.mailbox.root().join("cur/a.host:2,");
    let text = std::fs::read(&path).unwrap();
    for _ in 0..2 {
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mail.sync().changed, 0);
        assert_eq!(mail.mailbox.find("subject:note"), ["b"]);
        std::fs::write(&path, &text).unwrap();
        assert_eq!(mail.sync().changed, 0);
        assert_eq!(mail.mailbox.find("subject:note"), ["a", "b"]);
    }
    // What went before the rules were run on it is new.
    mail.write("c", "note", "");
    mail.mailbox.sync();
    std::fs::remove_file(mail.mailbox.root().join("cur/c.host:2,")).unwrap();
    mail.mailbox.sync();
    mail.write("c", "note", "");
    mail.mailbox.sync();
    assert_eq!(mail.sync().changed, 1);
    assert_eq!(mail.labels("c"), ["n"]);

    // The other source has the message before this one loses it, and after.
    let other = mail.mailbox.outside_path("other");
    std::fs::create_dir_all(other.join("cur")).unwrap();
    std::fs::create_dir_all(other.join("new")).unwrap();
    let sync_other = |mail: &mut RuledMail| {
        let options = MailSyncOptions::default();
        let store = &mut mail.mailbox.store;
        sync_maildir(store, &other, "other", &options, &mut |_| {}, &|| false).unwrap();
        mail.run_on(&[COLLECTION.to_string(), "other".to_string()], RuleScope::New, None)
    };
    sync_other(&mut mail);
    std::fs::copy(&path, mail.mailbox.outside_path("other/cur/a1:2,")).unwrap();
    assert_eq!(sync_other(&mut mail).changed, 0);
    let path = mail.mailbox.root().join("cur/b.host:2,");
    std::fs::rename(path, mail.mailbox.outside_path("other/cur/b1:2,")).unwrap();
    assert_eq!(mail.sync().changed, 0);
    assert_eq!(sync_other(&mut mail).changed, 0);
    std::fs::write(mail.mailbox.outside_path("other/cur/d1:2,"), message("d", "note", "text"))
        .unwrap();
    assert_eq!(sync_other(&mut mail).changed, 1);
    check(&mail.mailbox.store);
}

/// A file name says nothing about a message: another text under it is new mail.
#[test]
fn another_message_in_a_file_of_the_same_name_is_new() {
    let mut mail = RuledMail::new(&[("notes", "subject:note", &["+n"])]);
    mail.write("a", "hello", "");
    mail.sync();
    let replace = |mail: &RuledMail, id: &str| {
        let other = mail.mailbox.outside_path("other");
        std::fs::write(&other, message(id, "note", id)).unwrap();
        std::fs::rename(other, mail.mailbox.root().join("cur/a.host:2,")).unwrap();
    };
    replace(&mail, "b");
    assert_eq!(mail.sync().changed, 1);
    assert_eq!(
        (mail.mailbox.find("subject:note"), mail.labels("b")),
        (vec!["b".into()], vec!["n".into()])
    );
    replace(&mail, "c");
    assert_eq!(mail.sync().changed, 1);
    check(&mail.mailbox.store);
}

/// A message is known by its Message-ID and its text, also where another source has another text
/// under the Message-ID.
#[test]
fn another_text_is_new_mail_beside_another_source() {
    let mut mail = RuledMail::new(&[("lists", "footer", &["+n"])]);
    let other = mail.mailbox.outside_path("other");
    std::fs::create_dir_all(other.join("cur")).unwrap();
    let sync_other = |mail: &mut RuledMail| {
        let options = MailSyncOptions::default();
        let store = &mut mail.mailbox.store;
        sync_maildir(store, &other, "other", &options, &mut |_| {}, &|| false).unwrap();
        mail.run_on(&[COLLECTION.to_string(), "other".to_string()], RuleScope::New, None)
    };
    mail.sync();
    sync_other(&mut mail);
    // The own copy is known before that of the list comes.
    std::fs::write(other.join("cur/1:2,"), message("m", "note", "text")).unwrap();
    assert_eq!(sync_other(&mut mail).changed, 0);
    mail.write("m", "note", "");
    std::fs::write(mail.mailbox.root().join("cur/2:2,"), message("m", "note", "text footer"))
        .unwrap();
    let report = mail.sync();
    assert_eq!(report.changed, 1);
    // It is no new mail when it comes to the text that has the Message-ID there.
    mail.data.undo(report.operation.unwrap(), 0).unwrap();
    std::fs::rename(mail.mailbox.root().join("cur/2:2,"), other.join("cur/2:2,")).unwrap();
    assert_eq!(mail.sync().changed, 0);
    assert_eq!(sync_other(&mut mail).changed, 0);
    check(&mail.mailbox.store);
}

#[test]
fn runs_at_the_same_time_take_turns() {
    let mut mail = RuledMail::new(&[("notes", "subject:note", &["+n"])]);
    mail.sync();
    mail.mailbox.write_numbered("cur", 0..20);
    mail.mailbox.sync();
    let (data, index) = (mail.mailbox.outside_path("data"), mail.mailbox.outside_path("index"));
    let run = || {
        let directory = DataDirectory::new(data.clone());
        let mut data = Store::open(directory, &StoreOptions::default()).unwrap();
        let mut index = create_index(index.clone());
        run_rules_on(&mut data, &mut index, &[COLLECTION.to_string()], RuleScope::New, None)
    };
    let effects = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
        runs.into_iter().map(|run| run.join().unwrap().effects.len()).sum::<usize>()
    });
    assert_eq!(effects, 1);
    assert_eq!(mail.sync().effects, []);
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
    change_labels(&mut mail.data, &mut operation, &["a".to_string().into()], &change).unwrap();
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
    let uids = ["a", "b", "c"].map(|uid| uid.to_string().into());
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
        ("joined", "subject:note", &["+a,-b"]),
        ("flag", "subject:note", &["+unread"]),
    ];
    let mut mail = RuledMail::new(rules);
    mail.sync();
    mail.mailbox.write_numbered("cur", 0..2);
    let report = mail.sync();
    assert_eq!(RuledMail::effects(&report), (vec!["+n on 2 messages".into()], 2));
    assert_eq!(RuledMail::problems(&report), ["bad", "flag", "joined", "unsigned", "unsupported"]);
    // The hint is about the saved search: nobody typed options.
    let label_changes = vec!["x".to_string()];
    let search = SavedSearch { label_changes, ..SavedSearch::new("unsigned", "note", "message") };
    let error = MailRule::from_saved_search(&search, &QueryContext::default()).unwrap_err();
    let hint = error.hint.unwrap_or_default();
    assert!(hint.contains("searches add") && !hint.contains("before it"), "{hint}");
}

#[test]
fn a_rule_that_is_too_expensive_is_named_and_the_others_are_run() {
    let mut mail = RuledMail::new(&[("costly", "/./", &["+x"]), ("good", "subject:note", &["+n"])]);
    mail.sync();
    mail.mailbox.write_numbered("cur", 0..20);
    mail.mailbox.sync();
    let report = mail.run_within(RuleScope::New, Some(2000));
    assert_eq!(RuledMail::problems(&report), ["costly"]);
    assert_eq!(report.changed, 20);
    // The next run is one of the mail that comes after.
    let report = mail.run_within(RuleScope::New, Some(2000));
    assert_eq!((RuledMail::problems(&report), report.changed), (vec![], 0));
}

#[test]
fn a_message_with_too_many_labels_stops_no_rule() {
    let rules: &[(&str, &str, &[&str])] = &[
        ("more", "subject:note", &["+more"]),
        ("less", "subject:note", &["-l0", "+other"]),
        ("last", "subject:note", &["+last"]),
    ];
    let mut mail = RuledMail::new(rules);
    mail.sync();
    let mut change = LabelChange::default();
    (0..MAX_LABELS).for_each(|number| change.add(&format!("l{number}")));
    let full = LabelledText::from("full".to_string());
    change_labels(&mut mail.data, &mut Operation::new("edit", "", 0), &[full], &change).unwrap();
    mail.write("full", "note", "");
    mail.write("free", "note", "");
    let report = mail.sync();
    assert_eq!(RuledMail::problems(&report), ["last", "more"]);
    let error = report.problems[0].error.to_string();
    assert!(error.contains("\"full\" would have more than 1000 labels"), "{error}");
    assert_eq!(report.changed, 2);
    assert_eq!(mail.labels("free"), ["last", "more", "other"]);
    let labels = mail.labels("full");
    assert!(labels.contains(&"other".to_string()) && !labels.contains(&"l0".to_string()));
    assert_eq!(labels.len(), MAX_LABELS);
    assert_eq!(mail.sync().problems.len(), 0);
}

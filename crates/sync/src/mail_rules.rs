//! Rules: saved searches that label new mail, and labels that new replies inherit.
//!
//! A rule runs on each message once, in the synchronisation that finds it. `index.db` keeps, for
//! each collection, the first row that the rules have not been run on. A message that is found
//! later has a later row, so a run after an interruption takes up what is missing. What the first
//! synchronisation of a maildir finds is no new mail.
//!
//! All rules are tested on the mail as it was before; then the labels are written as one operation,
//! which can be undone; then the row is written. After a crash in between, the rules run again, and
//! find the labels there. Separate from `mail_sync`, which brings `index.db` up to date and knows
//! nothing of `data.db`, where labels are.

use crate::error::Error;
use larder_edit::labels::{follow_labels, read_text_labels, replace_labels, unique_texts};
use larder_format::label::{LabelChange, LabelList, MAX_LABELS};
use larder_format::saved_search::SavedSearch;
use larder_query::{
    MailQuery, MailSearch, QueryContext, SavedQuery, SavedSearches, SyntaxError, TextMatch,
};
use larder_store::Error as StoreError;
use larder_store::{
    BatchChange, LabelledText, MailBatch, MailChange, MailReader, MailSet, Operation, OperationId,
    Reader, Store, block_of,
};
use std::collections::BTreeMap;
use std::mem;

/// The labels that new replies inherit if the user sets none.
pub const DEFAULT_INHERITED_LABELS: &[&str] = &["muted"];

/// The number of messages whose labels are read at once.
const MESSAGES_PER_READ: usize = 2000;

/// A rule: the messages that match get labels, or lose some.
#[derive(Debug, Clone, PartialEq)]
pub struct MailRule {
    /// The name of the saved search; `None`: a label that replies inherit.
    pub search: Option<String>,
    /// The messages.
    pub query: MailQuery,
    /// The change of their labels.
    pub change: LabelChange,
}

/// The messages that rules are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleScope {
    /// Those that came since the last run.
    New,
    /// All.
    All,
}

/// The effect of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailRuleEffect {
    /// The name of the saved search; `None`: a label that replies inherit.
    pub search: Option<String>,
    /// The change of labels.
    pub change: LabelChange,
    /// The number of messages whose labels it changes.
    pub messages: u64,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct MailRuleReport {
    /// The rules that changed labels of any message.
    pub effects: Vec<MailRuleEffect>,
    /// The number of messages whose labels changed.
    pub changed: u64,
    /// The operation, for undo; `None`: no label changed.
    pub operation: Option<OperationId>,
    /// The rules that cannot be run, or not on a message.
    pub problems: Vec<MailRuleProblem>,
}

/// A rule that cannot be run, or that cannot change the labels of a message.
#[derive(Debug)]
pub struct MailRuleProblem {
    /// The name of the saved search; `None`: a label that replies inherit.
    pub search: Option<String>,
    /// The error of its query, or of its labels.
    pub error: larder_query::Error,
}

/// A run of the rules.
#[derive(Debug, Clone, Copy)]
pub struct MailRuleRun<'r> {
    /// The labels that new replies inherit.
    pub inherited_labels: &'r [String],
    /// The collections, each of which a synchronisation has just completed.
    pub collections: &'r [String],
    /// The messages among theirs.
    pub scope: RuleScope,
    /// The budget of each rule, if it is another one than that of a search.
    pub max_work: Option<u64>,
    /// The time, in milliseconds since 1970.
    pub at: i64,
}

impl MailRule {
    /// Returns the rule that a saved search is; `None`: it changes no labels.
    ///
    /// # Errors
    /// The search cannot be run.
    pub fn from_saved_search(
        search: &SavedSearch,
        context: &QueryContext,
    ) -> Result<Option<MailRule>, SyntaxError> {
        if search.label_changes.is_empty() {
            return Ok(None);
        }
        let change = search.label_change().map_err(|error| SyntaxError {
            message: error.to_string(),
            at: 1,
            hint: Some("its labels: larder searches add NAME QUERY --label +LABEL".into()),
        })?;
        Ok(match SavedQuery::parse(search, context)? {
            SavedQuery::Mail(query) => {
                Some(MailRule { search: Some(search.name.clone()), query, change })
            }
            SavedQuery::Commits(_) | SavedQuery::Items(_) => None,
        })
    }

    /// Returns the rule that new messages of a thread get a label that a message of it has.
    #[must_use]
    pub fn inherit(label: &str) -> MailRule {
        let labelled = MailQuery::Label(TextMatch::Words(label.to_string()));
        let mut change = LabelChange::default();
        change.add(label);
        MailRule { search: None, query: MailQuery::ThreadOf(Box::new(labelled)), change }
    }
}

/// Runs the rules among the saved searches, and those of inherited labels.
///
/// # Errors
/// A store cannot be used. A rule that cannot be run is a problem of the report, and the other
/// rules are run.
pub fn run_mail_rules(
    data: &mut Store,
    index: &mut Store,
    context: &QueryContext,
    run: &MailRuleRun<'_>,
) -> Result<MailRuleReport, Error> {
    let at = run.at;
    // Two runs on the same messages would each write the row up to which it knows them.
    let lock = index.lock_mail_sync()?;
    let mut report = MailRuleReport::default();
    // Other programs may have changed labels since.
    follow_labels(&data.open_reader()?, index, at)?;
    let searches = SavedSearches::read(&data.open_reader()?)?;
    let context = QueryContext { saved_searches: searches.into(), ..context.clone() };
    let mut rules: Vec<MailRule> =
        run.inherited_labels.iter().map(|label| MailRule::inherit(label)).collect();
    for search in context.saved_searches.iter() {
        match MailRule::from_saved_search(search, &context) {
            Ok(rule) => rules.extend(rule),
            Err(error) => report
                .problems
                .push(MailRuleProblem { search: Some(search.name.clone()), error: error.into() }),
        }
    }
    let mut matches = find_matches(&index.open_reader()?, &rules, run, &mut report)?;
    let rule_rows = mem::take(&mut matches.rule_rows);
    write_labels(data, &rules, matches, &mut report, at)?;
    write_rule_rows(index, rule_rows, at)?;
    drop(lock);
    if report.changed > 0 {
        follow_labels(&data.open_reader()?, index, at)?;
    }
    Ok(report)
}

/// A Message-ID and the hash of a text.
type TextIdentity = (String, Option<u64>);

fn to_identity(text: &LabelledText) -> TextIdentity {
    let (message_id, text_hash) = text.identity();
    (message_id.to_string(), text_hash)
}

/// The messages that match rules.
#[derive(Default)]
struct RuleMatches {
    /// The Message-IDs and texts of the messages, with the numbers of the rules that match,
    /// ascending.
    rules_by_text: BTreeMap<TextIdentity, Vec<usize>>,
    /// These messages.
    messages: Vec<LabelledText>,
    /// The collections, each with the row that the rules have then been run up to, if it is another
    /// one than before.
    rule_rows: Vec<(String, u32)>,
}

/// The messages of a collection that rules are run on.
struct NewMail<'c> {
    collection: &'c str,
    first: u32,
    /// Whether messages that were read again are left out.
    is_new_only: bool,
}

fn find_matches(
    reader: &Reader,
    rules: &[MailRule],
    run: &MailRuleRun<'_>,
    report: &mut MailRuleReport,
) -> Result<RuleMatches, Error> {
    let mut matches = RuleMatches::default();
    let mail = reader.mail()?;
    let end = mail.end_row()?;
    let mut new_mail = Vec::new();
    for collection in run.collections {
        let known = mail.rule_row(collection)?;
        let first = match run.scope {
            RuleScope::All => Some(0),
            RuleScope::New => known,
        };
        let is_new_only = run.scope == RuleScope::New;
        new_mail.extend(first.map(|first| NewMail { collection, first, is_new_only }));
        if known != Some(end) {
            matches.rule_rows.push((collection.clone(), end));
        }
    }
    let Some(first) = new_mail.iter().map(|one| one.first).min().filter(|first| *first < end)
    else {
        return Ok(matches);
    };
    let words = mail.words();
    let mut search = MailSearch::open(&mail, &words)?;
    if let Some(max_work) = run.max_work {
        search = search.with_max_work(max_work);
    }
    for (number, rule) in rules.iter().enumerate() {
        let mut rows = Vec::new();
        match search.for_each_match_from(first, &rule.query, &mut |row| rows.push(row)) {
            Err(error) if error.is_of_query() => {
                report.problems.push(MailRuleProblem { search: rule.search.clone(), error });
                continue;
            }
            result => result?,
        }
        add_matches(&mail, &new_mail, number, &rows, &mut matches)?;
    }
    Ok(matches)
}

fn add_matches(
    mail: &MailReader<'_>,
    new_mail: &[NewMail<'_>],
    number: usize,
    rows: &[u32],
    matches: &mut RuleMatches,
) -> Result<(), Error> {
    let mut found = Vec::new();
    for &row in rows {
        let Some(collection) = mail.collection_of(row)? else { continue };
        let (block, place) = block_of(row);
        let reread = mail.set(MailSet::Reread, block)?;
        let is_reread = reread.get(place / 64).is_some_and(|word| word & 1 << (place % 64) != 0);
        let is_new = |one: &NewMail<'_>| {
            one.collection == collection && one.first <= row && !(one.is_new_only && is_reread)
        };
        if new_mail.iter().any(is_new) {
            found.push(row);
        }
    }
    for message in mail.labelled_texts(&found)? {
        let numbers = matches.rules_by_text.entry(to_identity(&message)).or_default();
        matches.messages.push(message);
        // A message may be in several collections.
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }
    Ok(())
}

fn write_rule_rows(index: &mut Store, rows: Vec<(String, u32)>, at: i64) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let change = |(collection, row)| {
        let changes = vec![MailChange::SetRuleRow(Some(row))];
        BatchChange::Mail(Box::new(MailBatch { collection, changes, ..MailBatch::default() }))
    };
    let mut operation = Operation::new("rules", "", at);
    index.apply(&mut operation, rows.into_iter().map(change).collect())?;
    Ok(())
}

/// Writes the labels of all matches as one operation.
fn write_labels(
    data: &mut Store,
    rules: &[MailRule],
    matches: RuleMatches,
    report: &mut MailRuleReport,
    at: i64,
) -> Result<(), Error> {
    let messages = unique_texts(matches.messages);
    let counts = count_changes(data, rules, &matches.rules_by_text, &messages, report)?;
    for (rule, messages) in rules.iter().zip(counts).filter(|(_, messages)| *messages > 0) {
        let (search, change) = (rule.search.clone(), rule.change.clone());
        report.effects.push(MailRuleEffect { search, change, messages });
    }
    let effects = report.effects.iter().map(ToString::to_string);
    let mut operation = Operation::new("rules", effects.collect::<Vec<_>>().join("; "), at);
    let written = replace_labels(data, &mut operation, &messages, &mut |message, labels| {
        let numbers = matches.rules_by_text.get(&to_identity(message));
        apply_rules(rules, numbers.map(Vec::as_slice).unwrap_or_default(), labels, &mut |_, _| {})
    })?;
    report.changed = written.changed;
    report.operation = operation.id().filter(|_| written.changed > 0);
    Ok(())
}

/// Returns the number of messages that each rule gives other labels. A message that has them
/// already is in no count, as it is in none of the log and of an undo. One that cannot have more
/// labels is a problem of the report.
fn count_changes(
    data: &Store,
    rules: &[MailRule],
    rules_by_text: &BTreeMap<TextIdentity, Vec<usize>>,
    messages: &[LabelledText],
    report: &mut MailRuleReport,
) -> Result<Vec<u64>, Error> {
    let mut counts = vec![0; rules.len()];
    let reader = data.open_reader()?;
    for messages in messages.chunks(MESSAGES_PER_READ) {
        let messages: Vec<&LabelledText> = messages.iter().collect();
        for (message, labels) in messages.iter().zip(read_text_labels(&reader, &messages)?) {
            let numbers = rules_by_text.get(&to_identity(message));
            let numbers = numbers.map(Vec::as_slice).unwrap_or_default();
            apply_rules(rules, numbers, &labels, &mut |number, effect| match effect {
                RuleEffect::Unchanged => {}
                RuleEffect::Changed => {
                    if let Some(count) = counts.get_mut(number) {
                        *count += 1;
                    }
                }
                RuleEffect::TooManyLabels => {
                    let search = rules.get(number).and_then(|rule| rule.search.clone());
                    let uid = message.identity().0.to_string();
                    let error = StoreError::TooManyLabels { uid, max: MAX_LABELS }.into();
                    report.problems.push(MailRuleProblem { search, error });
                }
            });
        }
    }
    Ok(counts)
}

/// The effect of a rule on one message.
enum RuleEffect {
    Unchanged,
    Changed,
    /// It is left as it was: it would have more labels than a message can have.
    TooManyLabels,
}

/// Returns the labels that the rules with these numbers make of those of a message, and passes the
/// effect of each rule to `note`.
fn apply_rules(
    rules: &[MailRule],
    numbers: &[usize],
    labels: &LabelList,
    note: &mut dyn FnMut(usize, RuleEffect),
) -> LabelList {
    let mut labels = labels.clone();
    for number in numbers {
        let Some(rule) = rules.get(*number) else { continue };
        let after = rule.change.apply(&labels);
        if after == labels {
            note(*number, RuleEffect::Unchanged);
        } else if after.exceeds_limit(&labels) {
            note(*number, RuleEffect::TooManyLabels);
        } else {
            note(*number, RuleEffect::Changed);
            labels = after;
        }
    }
    labels
}

impl std::fmt::Display for MailRuleEffect {
    /// Writes `+tax on 3 messages`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noun = if self.messages == 1 { "message" } else { "messages" };
        write!(f, "{} on {} {noun}", self.change, self.messages)
    }
}

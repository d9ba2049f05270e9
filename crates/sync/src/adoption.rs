//! Taking over labels and saved searches from another mail program.
//!
//! [`read_notmuch`] and [`read_mu`] read what the other program has: from the program itself, from
//! its files, or from a dump. [`adopt_mail`] writes what Larder can use as one operation, and names
//! the rest. Nothing of the other program is changed.
//!
//! Separate from `label_exchange`, which reads a dump of labels alone.

mod implicit_operators;
mod mu;
mod notmuch;
mod notmuch_query;

use crate::error::Error;
use crate::label_exchange::{LabelImportReport, import_labels};
use larder_edit::put_saved_searches;
use larder_format::label_dump::LabelDump;
use larder_format::saved_search::{SavedSearch, is_search_name};
use larder_query::{CountedStores, QueryContext, SavedQuery, SavedSearches, count_saved_queries};
use larder_store::{Operation, Reader, Store};
pub use mu::read_mu;
pub use notmuch::read_notmuch;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs a program with arguments and returns its output, or the reason that there is none.
pub type RunProgram<'r> = &'r dyn Fn(&str, &[OsString]) -> Result<Vec<u8>, String>;

/// The labels, searches and settings of another mail program.
#[derive(Debug, Default)]
pub struct ForeignMail {
    /// The labels; `None`: it has none, or they cannot be read.
    pub labels: Option<LabelDump>,
    /// The saved searches: their names and search lines.
    pub searches: Vec<(String, String)>,
    /// The labels whose messages it hides.
    pub excluded_labels: Vec<String>,
    /// The maildir.
    pub maildir: Option<PathBuf>,
    /// Remarks on parts that could not be read, for a person.
    pub notices: Vec<String>,
}

/// A saved search that was not taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSearch {
    /// The name, as the other program has it.
    pub name: String,
    /// The search line.
    pub query: String,
    /// The reason.
    pub reason: String,
}

/// The result of an adoption.
#[derive(Debug, Default)]
pub struct AdoptionReport {
    /// The labels that were taken over.
    pub labels: LabelImportReport,
    /// The saved searches that were taken over.
    pub searches: Vec<SavedSearch>,
    /// The saved searches that were not.
    pub refused: Vec<RefusedSearch>,
}

/// Writes the labels and the saved searches of another program, as parts of one operation.
///
/// Labels are added to those that a message has. A saved search that is defined already, or that
/// cannot be run, is refused.
///
/// # Errors
/// A store cannot be used. The batches before the error are kept.
pub fn adopt_mail(
    data: &mut Store,
    index: Option<&Reader>,
    foreign: ForeignMail,
    context: &QueryContext,
    operation: &mut Operation,
) -> Result<AdoptionReport, Error> {
    let mut report = AdoptionReport::default();
    if let Some(dump) = foreign.labels {
        report.labels = import_labels(data, index, operation, dump, false)?;
    }
    let reader = data.open_reader()?;
    let known = SavedSearches::read(&reader)?;
    let mut accepted: Vec<(SavedSearch, String)> = Vec::new();
    for (name, query) in foreign.searches {
        let search = SavedSearch::new(&to_search_name(&name), query.trim(), "message");
        let is_taken = accepted.iter().any(|(other, _)| other.name == search.name);
        match known.get(&search.name) {
            Some(other) if *other == search => {}
            None if search.query.is_empty() => report.refuse(name, query, "it has no query"),
            None if !is_taken && is_search_name(&search.name) => accepted.push((search, name)),
            None if !is_taken => report.refuse(name, query, "it has no name that Larder can use"),
            _ => {
                let reason = format!("another search is named @{}", search.name);
                report.refuse(name, query, &reason);
            }
        }
    }
    drop_unusable(&reader, index, &known, context, &mut accepted, &mut report)?;
    let searches: Vec<SavedSearch> = accepted.into_iter().map(|(search, _)| search).collect();
    put_saved_searches(data, operation, &searches).map_err(Error::SavedSearch)?;
    report.searches = searches;
    Ok(report)
}

impl AdoptionReport {
    fn refuse(&mut self, name: String, query: String, reason: &str) {
        self.refused.push(RefusedSearch { name, query, reason: reason.to_string() });
    }
}

/// Refuses the searches that cannot be run. One that is refused may be part of others, which are
/// then refused, too.
fn drop_unusable(
    reader: &Reader,
    index: Option<&Reader>,
    known: &SavedSearches,
    context: &QueryContext,
    accepted: &mut Vec<(SavedSearch, String)>,
    report: &mut AdoptionReport,
) -> Result<(), Error> {
    loop {
        let mut all = known.clone();
        accepted.iter().for_each(|(search, _)| all.insert(search.clone()));
        let context = QueryContext { saved_searches: Arc::new(all), ..context.clone() };
        let stores = CountedStores { items: reader, mail: index, commits: None };
        let mut kept = Vec::new();
        let count = accepted.len();
        for (search, name) in accepted.drain(..) {
            let run = |query| match count_saved_queries(stores, &[query]) {
                Err(error) if error.is_of_query() => Ok(Some(error)),
                result => result.map(|_| None),
            };
            let error = match SavedQuery::parse(&search, &context) {
                Err(error) => Some(error.into()),
                Ok(query) => run(query)?,
            };
            match error {
                None => kept.push((search, name)),
                Some(error) => report.refuse(name, search.query, &error.to_string()),
            }
        }
        *accepted = kept;
        if accepted.len() == count {
            return Ok(());
        }
    }
}

/// Returns the name in which every character that a name cannot have is a hyphen.
fn to_search_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '-' };
    name.trim().chars().map(plain).collect()
}

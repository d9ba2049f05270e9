//! Parsing and counting saved searches of any kind.
//!
//! Separate from `saved_searches`, which the parsers depend on: this module depends on them.

use crate::error::{Error, SyntaxError};
use crate::execution::find;
use crate::mail_query::{MailQuery, MailQueryContext};
use crate::mail_search::{MailCount, MailSearch};
use crate::query::{Query, QueryContext};
use crate::search_request::SearchRequest;
use larder_format::saved_search::SavedSearch;
use larder_store::{Kind, Reader};

/// The query of a saved search.
#[derive(Debug, Clone, PartialEq)]
pub enum SavedQuery {
    /// For messages.
    Mail(MailQuery),
    /// For items of another kind.
    Items(Query),
}

/// The number of items that match a saved search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedSearchCount {
    /// All of them.
    pub items: u64,
    /// The unread ones, of messages.
    pub unread: Option<u64>,
}

impl SavedQuery {
    /// Parses the search line of a saved search, with the others of the context that it uses.
    ///
    /// # Errors
    /// Errors of the line, a name that no saved search has, and a search that uses itself.
    pub fn parse(search: &SavedSearch, context: &QueryContext) -> Result<SavedQuery, SyntaxError> {
        let line = &search.query;
        let Some(kind) = Kind::from_saved_search(search) else {
            let message = format!(
                "the saved search @{} is for the kind {:?}, which this version does not have",
                search.name, search.kind_name
            );
            return Err(SyntaxError::new(line, 0, message));
        };
        if kind.has_locator() && kind != Kind::Message {
            let message = format!("{} cannot be counted by saved searches yet", kind.plural());
            return Err(SyntaxError::new(line, 0, message));
        }
        if kind.has_locator() {
            let context = MailQueryContext::from(context);
            return MailQuery::parse(line, &context).map(SavedQuery::Mail);
        }
        let query = Query::parse_with(line, context)?;
        Ok(SavedQuery::Items(of_kind(kind, query)))
    }

    /// Leaves out the messages with labels that hide them, as a list of messages does.
    #[must_use]
    pub fn without_labels(self, labels: &[String]) -> SavedQuery {
        match self {
            SavedQuery::Mail(query) => SavedQuery::Mail(query.without_labels(labels)),
            query @ SavedQuery::Items(_) => query,
        }
    }
}

fn of_kind(kind: Kind, query: Query) -> Query {
    match query {
        Query::All => Query::Kind(kind),
        query => Query::And(vec![query, Query::Kind(kind)]),
    }
}

/// Counts the matches of each query. `mail` is the index of mail; without it there are no messages.
///
/// # Errors
/// A store cannot be read, or a query has a test that is not supported.
pub fn count_saved_queries(
    reader: &Reader,
    mail: Option<&Reader>,
    queries: &[SavedQuery],
) -> Result<Vec<SavedSearchCount>, Error> {
    let mail_queries: Vec<MailQuery> = queries
        .iter()
        .filter_map(|query| match query {
            SavedQuery::Mail(query) => Some(query.clone()),
            SavedQuery::Items(_) => None,
        })
        .collect();
    let mut mail_counts = match mail.filter(|_| !mail_queries.is_empty()) {
        Some(mail) => count_mail(mail, &mail_queries)?,
        None => Vec::new(),
    }
    .into_iter();
    let mut counts = Vec::with_capacity(queries.len());
    for query in queries {
        counts.push(match query {
            SavedQuery::Mail(_) => {
                let MailCount { messages, unread } = mail_counts.next().unwrap_or_default();
                SavedSearchCount { items: messages, unread: Some(unread) }
            }
            SavedQuery::Items(query) => {
                let query = query.clone();
                let found = find(reader, &SearchRequest { query, ..SearchRequest::default() })?;
                SavedSearchCount { items: found.len() as u64, unread: None }
            }
        });
    }
    Ok(counts)
}

fn count_mail(mail: &Reader, queries: &[MailQuery]) -> Result<Vec<MailCount>, Error> {
    let mail = mail.mail()?;
    let words = mail.words();
    MailSearch::open(&mail, &words)?.count_each(queries)
}

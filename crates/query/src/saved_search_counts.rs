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
    /// For commits.
    Commits(MailQuery),
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
        if kind.has_locator() {
            let context = MailQueryContext::from(context).with_kind(kind);
            let query = MailQuery::parse(line, &context)?;
            let is_of_commits = kind == Kind::Commit;
            return Ok(if is_of_commits { Self::Commits(query) } else { Self::Mail(query) });
        }
        let query = Query::parse_with(line, context)?;
        Ok(SavedQuery::Items(of_kind(kind, query)))
    }

    /// Leaves out the messages with labels that hide them, as a list of messages does.
    #[must_use]
    pub fn without_labels(self, labels: &[String]) -> SavedQuery {
        match self {
            SavedQuery::Mail(query) => SavedQuery::Mail(query.without_labels(labels)),
            query @ (SavedQuery::Commits(_) | SavedQuery::Items(_)) => query,
        }
    }
}

fn of_kind(kind: Kind, query: Query) -> Query {
    match query {
        Query::All => Query::Kind(kind),
        query => Query::And(vec![query, Query::Kind(kind)]),
    }
}

/// The stores that saved searches are counted in.
#[derive(Debug, Clone, Copy)]
pub struct CountedStores<'r> {
    /// The items.
    pub items: &'r Reader,
    /// The index of mail; without it there are no messages.
    pub mail: Option<&'r Reader>,
    /// The index of commits; without it there are no commits.
    pub commits: Option<&'r Reader>,
}

/// Counts the matches of each query, those of messages in one pass, and those of commits.
///
/// # Errors
/// A store cannot be read, or a query has a test that is not supported.
pub fn count_saved_queries(
    stores: CountedStores<'_>,
    queries: &[SavedQuery],
) -> Result<Vec<SavedSearchCount>, Error> {
    let of_mail = |query: &SavedQuery| match query {
        SavedQuery::Mail(query) => Some(query.clone()),
        _ => None,
    };
    let of_commits = |query: &SavedQuery| match query {
        SavedQuery::Commits(query) => Some(query.clone()),
        _ => None,
    };
    let mut mail_counts = count_each(stores.mail, queries.iter().filter_map(of_mail))?;
    let mut commit_counts = count_each(stores.commits, queries.iter().filter_map(of_commits))?;
    let mut counts = Vec::with_capacity(queries.len());
    for query in queries {
        counts.push(match query {
            SavedQuery::Mail(_) => {
                let MailCount { messages, unread } = mail_counts.next().unwrap_or_default();
                SavedSearchCount { items: messages, unread: Some(unread) }
            }
            SavedQuery::Commits(_) => {
                let items = commit_counts.next().unwrap_or_default().messages;
                SavedSearchCount { items, unread: None }
            }
            SavedQuery::Items(query) => {
                let request = SearchRequest { query: query.clone(), ..SearchRequest::default() };
                let found = find(stores.items, &request)?;
                SavedSearchCount { items: found.len() as u64, unread: None }
            }
        });
    }
    Ok(counts)
}

/// Counts the matches of queries in one index; none without the index.
fn count_each(
    index: Option<&Reader>,
    queries: impl Iterator<Item = MailQuery>,
) -> Result<std::vec::IntoIter<MailCount>, Error> {
    let queries: Vec<MailQuery> = queries.collect();
    let Some(index) = index.filter(|_| !queries.is_empty()) else {
        return Ok(Vec::new().into_iter());
    };
    let mail = index.mail()?;
    let words = mail.words();
    Ok(MailSearch::open(&mail, &words)?.count_each(&queries)?.into_iter())
}

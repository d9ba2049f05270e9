//! A query as it was written, and its resolution at an instant.
//!
//! Separate from [`Query`] because the text of a relative query means another time range each day:
//! a view keeps the text, and resolves it again as the clock moves.

use crate::error::Error;
use crate::expansion::required_time_range;
use crate::query::{NumericOperand, Query, QueryContext};
use crate::search_request::{SearchRequest, SortSpec};
use larder_store::{Kind, TimeRange};
use larder_time::civil::{CivilTime, Instant};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A query that names the present moment is resolved by the minute.
const MINUTE_SECONDS: i64 = 60;

/// The syntax of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuerySyntax {
    /// A search line, as people type it.
    Line,
    /// An S-expression of evolution-data-server.
    Sexp,
}

/// A query as it was written, with its collection and kind. Equal queries share one answer.
#[derive(Debug, Clone)]
pub struct ViewQuery {
    syntax: QuerySyntax,
    text: Box<str>,
    settings: Arc<QueryContext>,
    collection: Option<Arc<str>>,
    kind: Option<Kind>,
    sort: Option<SortSpec>,
    wants_occurrences: bool,
}

/// A query at an instant, with its relative times resolved.
#[derive(Debug, Clone)]
pub(super) struct ResolvedQuery {
    pub(super) query: Query,
    /// The time range whose occurrences are delivered.
    pub(super) occurrence_range: Option<TimeRange>,
    /// The instant from which the query may mean another time range.
    pub(super) valid_until: Option<Instant>,
}

impl ViewQuery {
    /// A query with this text. The current time in `settings` is not used: the clock of the views
    /// is.
    #[must_use]
    pub fn new(syntax: QuerySyntax, text: &str, settings: Arc<QueryContext>) -> ViewQuery {
        let text = text.into();
        ViewQuery {
            syntax,
            text,
            settings,
            collection: None,
            kind: None,
            sort: None,
            wants_occurrences: false,
        }
    }

    /// Restricts the query to a collection.
    #[must_use]
    pub fn with_collection(self, collection: &str) -> ViewQuery {
        ViewQuery { collection: Some(collection.into()), ..self }
    }

    /// Restricts the query to a kind.
    #[must_use]
    pub fn with_kind(self, kind: Kind) -> ViewQuery {
        ViewQuery { kind: Some(kind), ..self }
    }

    /// Sorts the first answer.
    #[must_use]
    pub fn with_sort(self, sort: SortSpec) -> ViewQuery {
        ViewQuery { sort: Some(sort), ..self }
    }

    /// Delivers with each item its occurrences in the time range of the query.
    #[must_use]
    pub fn with_occurrences(self) -> ViewQuery {
        ViewQuery { wants_occurrences: true, ..self }
    }

    /// The text of the query.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The collection that the query is restricted to.
    #[must_use]
    pub fn collection(&self) -> Option<&str> {
        self.collection.as_deref()
    }

    /// The kind that the query is restricted to.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    pub(super) fn wants_occurrences(&self) -> bool {
        self.wants_occurrences
    }

    pub(super) fn sort(&self) -> Option<SortSpec> {
        self.sort
    }

    /// Resolves the relative times of the query at an instant, rounded down to the minute.
    pub(super) fn resolve_at(&self, now: Instant) -> Result<ResolvedQuery, Error> {
        let minute = Instant::from_seconds_clamped(
            now.seconds().div_euclid(MINUTE_SECONDS) * MINUTE_SECONDS,
        );
        let query = self.query_at(minute)?;
        let valid_until = match is_time_dependent(&query) {
            true => {
                let next = minute.saturating_add(MINUTE_SECONDS);
                let local = &self.settings.user_locale.zone;
                let tomorrow =
                    local.to_instant(CivilTime::midnight(local.to_civil(minute).day_number() + 1));
                // A relative time changes by the minute or by the day.
                let change = if self.query_at(next)? == query { tomorrow } else { next };
                Some(change.max(next))
            }
            false => None,
        };
        let occurrence_range =
            required_time_range(&query).filter(|_| self.wants_occurrences).cloned();
        Ok(ResolvedQuery { query, occurrence_range, valid_until })
    }

    /// The search request of the query, resolved to `query`.
    pub(super) fn search_request(&self, query: &Query) -> SearchRequest {
        let (query, collection) = (query.clone(), self.collection.as_deref().map(str::to_string));
        SearchRequest { query, collection, sort: self.sort, ..SearchRequest::default() }
    }

    fn query_at(&self, now: Instant) -> Result<Query, Error> {
        let mut settings = QueryContext::clone(&self.settings);
        settings.user_locale.now = now;
        let query = match self.syntax {
            QuerySyntax::Line => Query::parse_with(&self.text, &settings)?,
            QuerySyntax::Sexp => Query::parse_sexp_with(&self.text, &settings)?,
        };
        Ok(match (self.kind, query) {
            (None, query) => query,
            (Some(kind), Query::All) => Query::Kind(kind),
            (Some(kind), Query::And(mut all)) => {
                all.push(Query::Kind(kind));
                Query::And(all)
            }
            (Some(kind), query) => Query::And(vec![query, Query::Kind(kind)]),
        })
    }
}

impl PartialEq for ViewQuery {
    fn eq(&self, other: &ViewQuery) -> bool {
        let is_same_context = |a: &QueryContext, b: &QueryContext| {
            a.region == b.region
                && a.user_locale.zone.name() == b.user_locale.zone.name()
                && a.user_locale.language == b.user_locale.language
                && a.saved_searches == b.saved_searches
        };
        (self.syntax, &self.text, &self.collection, self.kind, self.sort, self.wants_occurrences)
            == (
                other.syntax,
                &other.text,
                &other.collection,
                other.kind,
                other.sort,
                other.wants_occurrences,
            )
            && (Arc::ptr_eq(&self.settings, &other.settings)
                || is_same_context(&self.settings, &other.settings))
    }
}

impl Eq for ViewQuery {}

impl Hash for ViewQuery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.syntax, &self.text, &self.collection, self.kind).hash(state);
    }
}

/// Returns whether a query tests times, so that its text may mean another time range later.
pub(super) fn is_time_dependent(query: &Query) -> bool {
    match query {
        Query::Time(_) | Query::Number(NumericOperand::Occurrences(_), ..) => true,
        Query::And(all) | Query::Or(all) => all.iter().any(is_time_dependent),
        Query::Not(query) => is_time_dependent(query),
        _ => false,
    }
}

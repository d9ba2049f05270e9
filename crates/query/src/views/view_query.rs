//! A question as it was written: what it says of time depends on when it is read.

use crate::error::Error;
use crate::execution::{SearchRequest, SortSpec};
use crate::expansion::required_time_range;
use crate::query::{NumericOperand, Query, QueryContext};
use larder_store::{Kind, TimeRange};
use larder_time::civil::{CivilTime, Instant};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A minute in seconds: questions that name the present moment are read by the minute.
const MINUTE_SECONDS: i64 = 60;

/// How a question is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuerySyntax {
    /// A search line, as people type it.
    Line,
    /// An S-expression of evolution-data-server.
    Sexp,
}

/// A question as it was written, and where it is put. Two that are equal share one answer.
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

/// What a question says at a moment.
#[derive(Debug, Clone)]
pub(super) struct ResolvedQuery {
    pub(super) query: Query,
    /// The window whose occurrences are wanted.
    pub(super) occurrence_range: Option<TimeRange>,
    /// From this instant on it may say something else.
    pub(super) valid_until: Option<Instant>,
}

impl ViewQuery {
    /// A question of this text. Of the settings everything matters but the time at which it is
    /// asked.
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

    /// Only items of this collection.
    #[must_use]
    pub fn with_collection(self, collection: &str) -> ViewQuery {
        ViewQuery { collection: Some(collection.into()), ..self }
    }

    /// Only items of this kind.
    #[must_use]
    pub fn with_kind(self, kind: Kind) -> ViewQuery {
        ViewQuery { kind: Some(kind), ..self }
    }

    /// The answer is wanted in this order at first.
    #[must_use]
    pub fn with_sort(self, sort: SortSpec) -> ViewQuery {
        ViewQuery { sort: Some(sort), ..self }
    }

    /// With each item come its occurrences in the window that the question asks for.
    #[must_use]
    pub fn with_occurrences(self) -> ViewQuery {
        ViewQuery { wants_occurrences: true, ..self }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The collection whose items are asked for.
    #[must_use]
    pub fn collection(&self) -> Option<&str> {
        self.collection.as_deref()
    }

    /// The kind of items that is asked for.
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

    /// What it says at an instant; the present moment, where it names that, is the minute that has
    /// begun.
    pub(super) fn resolve_at(&self, now: Instant) -> Result<ResolvedQuery, Error> {
        let minute = Instant::from_seconds_clamped(
            now.seconds().div_euclid(MINUTE_SECONDS) * MINUTE_SECONDS,
        );
        let query = self.query_at(minute)?;
        let until = match is_time_dependent(&query) {
            true => {
                let next = minute.saturating_add(MINUTE_SECONDS);
                let local = &self.settings.user_locale.zone;
                let tomorrow =
                    local.to_instant(CivilTime::midnight(local.to_civil(minute).day_number() + 1));
                // By the minute, or by the day: nothing that people say has another end.
                let until = if self.query_at(next)? == query { tomorrow } else { next };
                Some(until.max(next))
            }
            false => None,
        };
        let window = required_time_range(&query).filter(|_| self.wants_occurrences).cloned();
        Ok(ResolvedQuery { query, occurrence_range: window, valid_until: until })
    }

    /// The question as it is asked of the store, when it says this.
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
        let settings = |a: &QueryContext, b: &QueryContext| {
            a.region == b.region
                && a.user_locale.zone.name() == b.user_locale.zone.name()
                && a.user_locale.language == b.user_locale.language
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
                || settings(&self.settings, &other.settings))
    }
}

impl Eq for ViewQuery {}

impl Hash for ViewQuery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.syntax, &self.text, &self.collection, self.kind).hash(state);
    }
}

/// Does a question ask when something is? Such may mean another time later.
pub(super) fn is_time_dependent(query: &Query) -> bool {
    match query {
        Query::Time(_) | Query::Number(NumericOperand::Occurrences(_), ..) => true,
        Query::And(all) | Query::Or(all) => all.iter().any(is_time_dependent),
        Query::Not(of) => is_time_dependent(of),
        _ => false,
    }
}

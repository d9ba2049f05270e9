//! A question as it was written: what it says of time depends on when it is read.

use crate::error::Error;
use crate::expand::window_of;
use crate::query::{Number, Query, Settings};
use crate::run::{Find, Sort};
use larder_store::{Kind, Window};
use larder_time::civil::{Civil, Instant};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A minute in seconds: questions that name the present moment are read by the minute.
const MINUTE: i64 = 60;

/// How a question is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A search line, as people type it.
    Line,
    /// An S-expression of evolution-data-server.
    Sexp,
}

/// A question as it was written, and where it is put. Two that are equal share one answer.
#[derive(Debug, Clone)]
pub struct Question {
    form: Form,
    text: Box<str>,
    settings: Arc<Settings>,
    collection: Option<Arc<str>>,
    kind: Option<Kind>,
    sort: Option<Sort>,
    occurrences: bool,
}

/// What a question says at a moment.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) query: Query,
    /// The window whose occurrences are wanted.
    pub(super) window: Option<Window>,
    /// From this instant on it may say something else.
    pub(super) until: Option<Instant>,
}

impl Question {
    /// A question of this text. Of the settings everything matters but the time at which it is asked.
    #[must_use]
    pub fn new(form: Form, text: &str, settings: Arc<Settings>) -> Question {
        let text = text.into();
        Question {
            form,
            text,
            settings,
            collection: None,
            kind: None,
            sort: None,
            occurrences: false,
        }
    }

    /// Only items of this collection.
    #[must_use]
    pub fn within(self, collection: &str) -> Question {
        Question { collection: Some(collection.into()), ..self }
    }

    /// Only items of this kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Question {
        Question { kind: Some(kind), ..self }
    }

    /// The answer is wanted in this order at first.
    #[must_use]
    pub fn sorted(self, sort: Sort) -> Question {
        Question { sort: Some(sort), ..self }
    }

    /// With each item come its occurrences in the window that the question asks for.
    #[must_use]
    pub fn with_occurrences(self) -> Question {
        Question { occurrences: true, ..self }
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
        self.occurrences
    }

    pub(super) fn sort(&self) -> Option<Sort> {
        self.sort
    }

    /// What it says at an instant; the present moment, where it names that, is the minute that has begun.
    pub(super) fn read(&self, now: Instant) -> Result<Reading, Error> {
        let minute = Instant::clamped(now.seconds().div_euclid(MINUTE) * MINUTE);
        let query = self.query_at(minute)?;
        let until = match depends_on_time(&query) {
            true => {
                let next = minute.plus(MINUTE);
                let local = &self.settings.asker.local;
                let tomorrow = local.instant(Civil::midnight(local.civil(minute).day() + 1));
                // By the minute, or by the day: nothing that people say has another end.
                let until = if self.query_at(next)? == query { tomorrow } else { next };
                Some(until.max(next))
            }
            false => None,
        };
        let window = window_of(&query).filter(|_| self.occurrences).cloned();
        Ok(Reading { query, window, until })
    }

    /// The question as it is asked of the store, when it says this.
    pub(super) fn find(&self, query: &Query) -> Find {
        let (query, collection) = (query.clone(), self.collection.as_deref().map(str::to_string));
        Find { query, collection, sort: self.sort, ..Find::default() }
    }

    fn query_at(&self, now: Instant) -> Result<Query, Error> {
        let mut settings = Settings::clone(&self.settings);
        settings.asker.now = now;
        let query = match self.form {
            Form::Line => Query::parse_with(&self.text, &settings)?,
            Form::Sexp => Query::parse_sexp_with(&self.text, &settings)?,
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

impl PartialEq for Question {
    fn eq(&self, other: &Question) -> bool {
        let settings = |a: &Settings, b: &Settings| {
            a.region == b.region
                && a.asker.local.name() == b.asker.local.name()
                && a.asker.language == b.asker.language
        };
        (self.form, &self.text, &self.collection, self.kind, self.sort, self.occurrences)
            == (
                other.form,
                &other.text,
                &other.collection,
                other.kind,
                other.sort,
                other.occurrences,
            )
            && (Arc::ptr_eq(&self.settings, &other.settings)
                || settings(&self.settings, &other.settings))
    }
}

impl Eq for Question {}

impl Hash for Question {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.form, &self.text, &self.collection, self.kind).hash(state);
    }
}

/// Does a question ask when something is? Such may mean another time later.
pub(super) fn depends_on_time(query: &Query) -> bool {
    match query {
        Query::Time(_) | Query::Number(Number::Occurrences(_), ..) => true,
        Query::And(all) | Query::Or(all) => all.iter().any(depends_on_time),
        Query::Not(of) => depends_on_time(of),
        _ => false,
    }
}

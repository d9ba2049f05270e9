//! Numbers for the texts and queries of a log.
//!
//! A log repeats the same few texts; the analysis holds a number for each. An interner never
//! removes an entry.

use crate::query_log::log_reader::AnswerEvent;
use serde::Serialize;
use std::collections::HashMap;
use std::hash::Hash;

/// Values numbered in the order of their first occurrence.
#[derive(Debug)]
pub(super) struct Interner<T> {
    values: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { values: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    pub(super) fn intern(&mut self, thing: T) -> u32 {
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(thing).or_insert_with_key(|thing| {
            self.values.push(thing.clone());
            next
        })
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }
}

/// A query with its restrictions. Equal queries have equal answers until a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct LoggedQuery {
    /// The query, as an S-expression.
    pub query: String,
    /// The kind of item; `None`: any.
    pub kind: Option<String>,
    /// The collection; `None`: all.
    pub collection: Option<String>,
}

/// The interned texts and queries of a log.
#[derive(Debug, Default)]
pub(super) struct LogInterner {
    pub(super) texts: Interner<String>,
    pub(super) queries: Interner<LoggedQuery>,
}

/// The numbers of a query and of its texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct InternedQuery {
    pub(super) client: u32,
    pub(super) query: u32,
    pub(super) collection: Option<u32>,
    pub(super) kind: Option<u32>,
    pub(super) source: u32,
}

impl LogInterner {
    pub(super) fn intern_query(&mut self, answer: &AnswerEvent) -> InternedQuery {
        let query = LoggedQuery {
            query: answer.query.clone(),
            kind: answer.kind.clone(),
            collection: answer.collection.clone(),
        };
        InternedQuery {
            client: self.texts.intern(answer.client.clone()),
            query: self.queries.intern(query),
            collection: answer.collection.as_ref().map(|name| self.texts.intern(name.clone())),
            kind: answer.kind.as_ref().map(|name| self.texts.intern(name.clone())),
            source: self.texts.intern(answer.backend.clone()),
        }
    }

    pub(super) fn text(&self, number: u32) -> String {
        self.texts.get(number).cloned().unwrap_or_default()
    }

    pub(super) fn query(&self, number: u32) -> LoggedQuery {
        let none = || LoggedQuery { query: String::new(), kind: None, collection: None };
        self.queries.get(number).cloned().unwrap_or_else(none)
    }
}

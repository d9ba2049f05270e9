//! Texts and questions by numbers.
//!
//! A log says the same few texts again and again; what is kept of each line is a number. Not a store of anything
//! else: it only grows, by what is new.

use crate::queries::log::Asked;
use std::collections::HashMap;
use std::hash::Hash;

/// Things by the order in which they came first.
#[derive(Debug)]
pub(super) struct Numbers<T> {
    all: Vec<T>,
    by: HashMap<T, u32>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Numbers<T> {
        Numbers { all: Vec::new(), by: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbers<T> {
    pub(super) fn of(&mut self, thing: T) -> u32 {
        let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        *self.by.entry(thing).or_insert_with_key(|thing| {
            self.all.push(thing.clone());
            next
        })
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.all.get(number as usize)
    }
}

/// What is asked, of what: the same question has the same answer until something changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Question {
    /// As an S-expression.
    pub query: String,
    /// The kind of item; `None`: any.
    pub kind: Option<String>,
    /// The collection; `None`: all.
    pub collection: Option<String>,
}

/// The texts of a log.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) texts: Numbers<String>,
    pub(super) questions: Numbers<Question>,
}

/// A question or an opening, by numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) client: u32,
    pub(super) question: u32,
    pub(super) collection: Option<u32>,
    pub(super) kind: Option<u32>,
    pub(super) source: u32,
}

impl Names {
    pub(super) fn ask(&mut self, asked: &Asked) -> Ask {
        let question = Question {
            query: asked.query.clone(),
            kind: asked.kind.clone(),
            collection: asked.collection.clone(),
        };
        Ask {
            client: self.texts.of(asked.client.clone()),
            question: self.questions.of(question),
            collection: asked.collection.as_ref().map(|name| self.texts.of(name.clone())),
            kind: asked.kind.as_ref().map(|name| self.texts.of(name.clone())),
            source: self.texts.of(asked.source.clone()),
        }
    }

    pub(super) fn text(&self, number: u32) -> String {
        self.texts.get(number).cloned().unwrap_or_default()
    }

    pub(super) fn question(&self, number: u32) -> Question {
        let none = || Question { query: String::new(), kind: None, collection: None };
        self.questions.get(number).cloned().unwrap_or_else(none)
    }
}

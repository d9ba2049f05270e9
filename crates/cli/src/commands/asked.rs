//! What is asked on the command line, and where it is put: the arguments of everything that takes a QUERY.

use crate::failure::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use larder_query::views::{Form, Question};
use larder_query::{Query, Settings};
use larder_store::Kind;
use std::sync::Arc;

/// A question and where it is put.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Asked {
    /// What to look for; several words all have to match
    query: Vec<String>,
    /// Only in this collection
    #[arg(long = "in", value_name = "NAME")]
    pub(super) collection: Option<String>,
    /// Only items of this kind
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    pub(super) kind: Option<Kind>,
    /// QUERY is an S-expression of evolution-data-server: (contains "full_name" "anna")
    #[arg(long)]
    pub(super) sexp: bool,
}

impl Asked {
    /// The question as it was written.
    pub(super) fn text(&self) -> String {
        self.query.join(" ")
    }

    /// What it means now, of items of any kind.
    pub(super) fn query(&self, settings: &Settings) -> Result<Query, Failure> {
        Ok(match self.sexp {
            true => Query::parse_sexp_with(&self.text(), settings)?,
            false => Query::parse_with(&self.text(), settings)?,
        })
    }

    /// The same to be kept open.
    pub(super) fn question(&self, settings: &Settings) -> Question {
        let form = if self.sexp { Form::Sexp } else { Form::Line };
        let mut question = Question::new(form, &self.text(), Arc::new(settings.clone()));
        if let Some(name) = &self.collection {
            question = question.within(name);
        }
        if let Some(kind) = self.kind {
            question = question.of_kind(kind);
        }
        question
    }
}

/// Reads a kind of items.
pub(super) fn kinds() -> impl TypedValueParser<Value = Kind> {
    const KINDS: [Kind; 4] = [Kind::Contact, Kind::Event, Kind::Task, Kind::Memo];
    let kind = |name: String| KINDS.into_iter().find(|kind| kind.name() == name);
    PossibleValuesParser::new(KINDS.map(Kind::name))
        .map(move |name| kind(name).unwrap_or(Kind::Other))
}

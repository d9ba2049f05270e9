//! The arguments of subcommands that take a QUERY.

use crate::failure::CommandFailure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use larder_format::kind::SourceLocation;
use larder_query::views::{QuerySyntax, ViewQuery};
use larder_query::{Query, QueryContext};
use larder_store::Kind;
use std::sync::Arc;

/// A query and its collection and kind.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct QueryArgs {
    /// The search terms, all of which must match
    query: Vec<String>,
    /// Search only this collection or source of mail
    #[arg(long = "in", value_name = "NAME")]
    pub(crate) collection: Option<String>,
    /// Search only items of this kind
    #[arg(long, value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Option<Kind>,
    /// QUERY is an S-expression as in evolution-data-server: (contains "full_name" "anna")
    #[arg(long)]
    pub(crate) sexp: bool,
}

impl QueryArgs {
    /// Returns whether the query is for messages, which are in a store of their own.
    pub(crate) fn is_about_messages(&self) -> bool {
        self.kind.is_some_and(|kind| kind.source_location() == SourceLocation::Locator)
    }

    /// Returns the query as typed.
    pub(crate) fn query_text(&self) -> String {
        self.query.join(" ")
    }

    /// Parses the query, relative to the current time.
    pub(crate) fn parse_query(&self, settings: &QueryContext) -> Result<Query, CommandFailure> {
        Ok(match self.sexp {
            true => Query::parse_sexp_with(&self.query_text(), settings)?,
            false => Query::parse_with(&self.query_text(), settings)?,
        })
    }

    /// Returns the query for a live view.
    pub(crate) fn to_live_query(&self, settings: &QueryContext) -> ViewQuery {
        let form = if self.sexp { QuerySyntax::Sexp } else { QuerySyntax::Line };
        let mut question = ViewQuery::new(form, &self.query_text(), Arc::new(settings.clone()));
        if let Some(name) = &self.collection {
            question = question.with_collection(name);
        }
        if let Some(kind) = self.kind {
            question = question.with_kind(kind);
        }
        question
    }
}

/// Says that a query for changes has a quoted text without letters.
pub(in crate::commands) const EMPTY_WORD_MESSAGE: &str =
    "the query of --query has an empty text, \"\", which everything matches";

/// Returns whether a query has no text: only white space, quotes and parentheses. An unset variable
/// of a script, in quotes or not, must not change everything.
pub(in crate::commands) fn is_without_text(line: &str) -> bool {
    line.chars().all(|c| c.is_whitespace() || "\"'()".contains(c))
}

/// Returns a parser for a kind of items.
pub(crate) fn kind_parser() -> impl TypedValueParser<Value = Kind> {
    let kinds = Kind::all().filter(|kind| kind.is_searchable());
    PossibleValuesParser::new(kinds.map(Kind::name))
        .try_map(|name| Kind::from_name(&name).ok_or("no such kind"))
}

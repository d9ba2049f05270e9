//! The calls that search an address book. They are answered by the reader threads.
//!
//! Separate from `book`, whose calls read and change single contacts.

use super::bus::{MAX_ARRAY_BYTES, MethodCall, replace_nul};
use super::call_error::{CallError, INVALID_QUERY, SIZE_LIMIT};
use super::card::CardRenderer;
use super::object_path::{BookNumber, object_path};
use super::service::{CallAnswer, EdsService};
use larder_format::phone::ParsedPhoneNumber;
use larder_query::views::{QuerySyntax, ViewQuery, Views};
use larder_query::{FieldSelector, FieldTest, MAX_QUERY_BYTES, MatchOp, Query, QueryContext};
use larder_store::Kind;
use std::borrow::Cow;
use std::sync::Arc;

/// The part of a book that its queries need.
pub(super) struct SearchedBook {
    /// The name of the collection.
    pub(super) name: Arc<str>,
    pub(super) settings: Arc<QueryContext>,
}

impl EdsService {
    /// Handles a call that searches a book.
    pub(super) fn handle_book_query(
        &mut self,
        number: BookNumber,
        book: SearchedBook,
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
        let text: String = call.arguments()?;
        let client = call.sender().to_string();
        Ok(match call.member() {
            "GetView" => self.answer_later(
                call,
                move |_, _| book.view_query(&text),
                move |service, call, view_query| {
                    let view_query = view_query
                        .map_err(|error| CallError { message: "Invalid query".into(), ..error })?;
                    call.reply(&object_path(&service.add_client_view(number, view_query, &client)))
                },
            ),
            "GetContactList" => self.answer_later(
                call,
                move |views, call| {
                    let cards = book.list_cards(views, &text, &client);
                    call.reply(&cards.map_err(|it| it.with_context("Cannot get contact list"))?)
                },
                |_, _, reply| reply,
            ),
            "GetContactListUids" => self.answer_later(
                call,
                move |views, call| {
                    let uids = book.list_uids(views, &text, &client);
                    call.reply(&uids.map_err(|it| it.with_context("Cannot get contact list uids"))?)
                },
                |_, _, reply| reply,
            ),
            _ => self.answer_later(
                call,
                move |views, call| call.reply(&book.has_email(views, &text, &client)?),
                |_, _, reply| reply,
            ),
        })
    }
}

impl SearchedBook {
    fn list_cards(
        &self,
        views: &Views,
        query: &str,
        client: &str,
    ) -> Result<Vec<String>, CallError> {
        let view_query = self.view_query(query)?;
        let (mut all, mut size, mut failed) = (Vec::new(), 0, None);
        let mut cards = CardRenderer::default();
        views.find(view_query, client, &mut |meta, bytes| {
            let card = views.with_reader(|reader| cards.render(reader, meta, bytes));
            match card.and_then(|card| Ok(card?)) {
                Ok(card) => {
                    size += card.len() + 8;
                    all.push(card);
                }
                Err(error) => failed = Some(CallError::from(error)),
            }
            failed.is_none() && size <= MAX_ARRAY_BYTES
        })?;
        match failed {
            Some(failure) => Err(failure),
            None if size > MAX_ARRAY_BYTES => Err(CallError::new(
                SIZE_LIMIT,
                "the answer is too large for one message; open a view",
            )),
            None => Ok(all),
        }
    }

    fn list_uids(
        &self,
        views: &Views,
        query: &str,
        client: &str,
    ) -> Result<Vec<String>, CallError> {
        let (view_query, mut uids) = (self.view_query(query)?, Vec::new());
        views.find_uids(view_query, client, &mut |uid| {
            uids.push(replace_nul(uid));
            true
        })?;
        Ok(uids)
    }

    fn has_email(&self, views: &Views, address: &str, client: &str) -> Result<bool, CallError> {
        let text = address.replace('\\', "\\\\").replace('"', "\\\"");
        let view_query = self.view_query(&format!("(is \"email\" \"{text}\")"))?;
        Ok(views.find(view_query, client, &mut |_, _| false)? > 0)
    }

    fn view_query(&self, text: &str) -> Result<ViewQuery, CallError> {
        let text = self.check_query(text)?;
        let view_query = ViewQuery::new(QuerySyntax::Sexp, &text, Arc::clone(&self.settings));
        Ok(view_query.with_collection(&self.name).with_kind(Kind::Contact))
    }

    /// Refuses queries to which clients expect an error, and returns the text of the others with
    /// the tests of REV answered. In this protocol the query for all contacts is an empty text, and
    /// not `#t`.
    fn check_query<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, CallError> {
        let invalid = || CallError::new(INVALID_QUERY, format!("Invalid Query “{text}”"));
        if text.len() > MAX_QUERY_BYTES {
            let text = format!("Invalid Query: it is longer than {MAX_QUERY_BYTES} bytes");
            return Err(CallError::new(INVALID_QUERY, text));
        }
        if text.trim_start().starts_with('#') {
            return Err(invalid());
        }
        let query = Query::parse_sexp_with(text, &self.settings).map_err(|_| invalid())?;
        if has_test(&query, is_invalid_phone_test) {
            return Err(invalid());
        }
        if !has_test(&query, is_rev_test) {
            return Ok(Cow::Borrowed(text));
        }
        let answered = answer_rev_tests(query).ok_or_else(|| {
            let text = "Invalid Query: REV cannot be compared with a text; test whether it exists";
            CallError::new(INVALID_QUERY, text)
        })?;
        Ok(Cow::Owned(answered.to_string()))
    }
}

/// Returns whether any test of a query is of a kind.
fn has_test(query: &Query, is_wanted: fn(&FieldTest) -> bool) -> bool {
    match query {
        Query::And(all) | Query::Or(all) => all.iter().any(|query| has_test(query, is_wanted)),
        Query::Not(query) => has_test(query, is_wanted),
        Query::Test(test) => is_wanted(test),
        _ => false,
    }
}

/// Returns whether a test is for a text that is not a phone number. The query crate answers such a
/// test with no item, but clients expect an error.
fn is_invalid_phone_test(test: &FieldTest) -> bool {
    matches!(test.op, MatchOp::EqPhone | MatchOp::EqPhoneNational | MatchOp::EqPhoneShort)
        && ParsedPhoneNumber::parse(&test.text, test.region.as_deref()).is_none()
}

/// Returns whether a test is of REV. The REV of the source bytes is not the one that clients get.
fn is_rev_test(test: &FieldTest) -> bool {
    match &test.subject {
        FieldSelector::Field(field) => field.name == "rev",
        FieldSelector::Property(name) => name.eq_ignore_ascii_case("REV"),
        _ => false,
    }
}

/// Answers the tests of REV, which every card for clients has. `None`: one compares it with a text.
fn answer_rev_tests(query: Query) -> Option<Query> {
    let answer_all =
        |all: Vec<Query>| -> Option<Vec<Query>> { all.into_iter().map(answer_rev_tests).collect() };
    Some(match query {
        Query::And(all) => Query::And(answer_all(all)?),
        Query::Or(any) => Query::Or(answer_all(any)?),
        Query::Not(query) => Query::Not(Box::new(answer_rev_tests(*query)?)),
        Query::Test(test) if is_rev_test(&test) => match test.op {
            MatchOp::Exists | MatchOp::ExistsVcard => Query::All,
            _ if !test.text.is_empty() => return None,
            MatchOp::Is => Query::Or(Vec::new()),
            MatchOp::ContainsWords
            | MatchOp::Substring
            | MatchOp::BeginsWith
            | MatchOp::EndsWith
            | MatchOp::RegexNormal
            | MatchOp::RegexRaw => Query::All,
            _ => return None,
        },
        query => query,
    })
}

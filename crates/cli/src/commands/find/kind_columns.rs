//! The fields of `--fields` and `--sort` in a search over all kinds: messages and commits have
//! others than the items of the store.
//!
//! A column that a kind does not have is empty for it. A kind with none of the columns is not
//! listed, and a note says so, as a note says which kinds do not have the order.

use super::commit_list::{COMMIT_JSON_FIELDS, find_commit_field, is_commit_order};
use super::item_list::parse_columns;
use super::message_fields::{find_message_field, message_field_names};
use crate::commands::show::item_format::OutputColumn;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::output::sanitize_line;
use larder_format::collection_type::CollectionType;
use larder_query::MailSort;

/// The indexes that a search over all kinds has beside the store.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SearchedIndexes {
    pub(super) has_mail: bool,
    pub(super) has_commits: bool,
}

impl SearchedIndexes {
    /// Returns whether messages or commits can be sorted by a field.
    pub(super) fn have_order(self, sort: &str) -> bool {
        self.has_mail && MailSort::parse(sort).is_some()
            || self.has_commits && is_commit_order(sort)
    }
}

/// The columns of `--fields` for each kind.
#[derive(Default)]
pub(super) struct KindColumns {
    /// The columns of the items of the store; `None`: the default ones.
    pub(super) items: Option<Vec<OutputColumn>>,
    /// The fields of messages, with an empty name for a column that they do not have; without
    /// fields, the default ones.
    pub(super) messages: Vec<&'static str>,
    /// The fields of commits, as those of messages.
    pub(super) commits: Vec<&'static str>,
    /// Whether kinds have none of the columns.
    are_items_left_out: bool,
    are_messages_left_out: bool,
    are_commits_left_out: bool,
}

impl KindColumns {
    /// Parses the names of `--fields` in a search for items of the store only.
    pub(super) fn parse_for_items(
        names: &[String],
        is_any_kind: bool,
    ) -> Result<KindColumns, CommandFailure> {
        let known_to_messages = |failure: CommandFailure| {
            let mut names = names.iter().flat_map(|name| name.split_whitespace()).peekable();
            let has_names = names.peek().is_some();
            match has_names && names.all(|name| find_message_field(name).is_some()) {
                true => failure.with_hint("messages have it: --kind message"),
                false => failure,
            }
        };
        let items = parse_columns(names).map_err(known_to_messages)?;
        if let Some(columns) = items.as_ref().filter(|_| is_any_kind)
            && !columns.iter().any(OutputColumn::is_of_stored_items)
        {
            return Err(missing_field_failure(names.first().map_or("", String::as_str)));
        }
        Ok(KindColumns { items, ..KindColumns::default() })
    }

    /// Parses the names of `--fields` in a search over all kinds.
    pub(super) fn parse(
        names: &[String],
        indexes: SearchedIndexes,
    ) -> Result<KindColumns, CommandFailure> {
        // mu separates them by spaces.
        let parts: Vec<&str> = names.iter().flat_map(|name| name.split_whitespace()).collect();
        if parts.is_empty() {
            let items = parse_columns(names)?;
            return Ok(KindColumns { items, ..KindColumns::default() });
        }
        let mut columns = KindColumns::default();
        let mut items = Vec::with_capacity(parts.len());
        for name in parts {
            let item = OutputColumn::from_name(name).filter(OutputColumn::is_of_stored_items);
            let message = find_message_field(name).filter(|_| indexes.has_mail);
            let commit = find_commit_field(name).filter(|_| indexes.has_commits);
            // Each item has them, but the columns of items do not.
            let is_of_all = ["id", "kind", "collection"].contains(&name);
            if item.is_none() && (is_of_all || message.or(commit).is_none()) {
                return Err(unknown_field_failure(name, indexes));
            }
            items.push(item);
            columns.messages.push(message.unwrap_or_default());
            columns.commits.push(commit.unwrap_or_default());
        }
        columns.are_items_left_out = items.iter().all(Option::is_none);
        columns.are_messages_left_out = columns.messages.iter().all(|name| name.is_empty());
        columns.are_commits_left_out = columns.commits.iter().all(|name| name.is_empty());
        columns.items =
            Some(items.into_iter().map(|one| one.unwrap_or(OutputColumn::EMPTY)).collect());
        Ok(columns)
    }

    /// Returns the numbers of items, messages and commits of an answer that are listed.
    pub(super) fn listed_counts(&self, [items, messages, commits]: [u64; 3]) -> [u64; 3] {
        let listed = |count, is_left_out| if is_left_out { 0 } else { count };
        [
            listed(items, self.are_items_left_out),
            listed(messages, self.are_messages_left_out),
            listed(commits, self.are_commits_left_out),
        ]
    }

    /// Says which kinds match and are not listed. `counts` are those of [`Self::listed_counts`].
    pub(super) fn print_left_out(&self, context: &CommandContext, counts: [u64; 3]) {
        let listed = self.listed_counts(counts);
        let kinds = KIND_NOUNS.into_iter().zip(counts.into_iter().zip(listed));
        let left_out: Vec<&str> =
            kinds.filter(|(_, (all, listed))| all > listed).map(|(noun, _)| noun).collect();
        if !left_out.is_empty() {
            let kinds = left_out.join(", ");
            context.print_note(format!("not listed, as they have none of these fields: {kinds}"));
        }
    }
}

/// The items of the store, and those of the indexes.
const KIND_NOUNS: [&str; 3] = ["contacts or calendar items", "messages", "commits"];

/// Says which of the listed kinds do not have the order. `counts` are those of items, messages and
/// commits.
pub(super) fn print_missing_orders(context: &CommandContext, sort: &str, counts: [u64; 3]) {
    if sort == "none" {
        return;
    }
    let has_order = [is_item_order(sort), MailSort::parse(sort).is_some(), is_commit_order(sort)];
    let kinds = KIND_NOUNS.into_iter().zip(counts.into_iter().zip(has_order));
    let missing: Vec<&str> =
        kinds.filter(|(_, (count, has))| *count > 0 && !has).map(|(noun, _)| noun).collect();
    if !missing.is_empty() {
        let (kinds, name) = (missing.join(", "), sanitize_line(field_name(sort)));
        context.print_note(format!("in their usual order, as they have no {name}: {kinds}"));
    }
}

fn field_name(sort: &str) -> &str {
    sort.strip_prefix('-').unwrap_or(sort)
}

/// Returns whether items of the store can be sorted by a field.
pub(super) fn is_item_order(sort: &str) -> bool {
    let mut stored = CollectionType::all_listed().filter(|one| !one.main_kind().has_locator());
    stored.any(|one| one.find_field(field_name(sort)).is_some())
}

/// Returns the failure for a field that no kind of the search has.
fn unknown_field_failure(name: &str, indexes: SearchedIndexes) -> CommandFailure {
    let Err(failure) = parse_columns(&[name.to_string()]) else {
        return missing_field_failure(name);
    };
    match (find_message_field(name), find_commit_field(name)) {
        (Some(_), _) => failure.with_hint("messages have it: --kind message"),
        (None, Some(_)) => failure.with_hint("commits have it: --kind commit"),
        (None, None) if failure.hints().iter().any(|hint| hint.starts_with("did you mean")) => {
            failure
        }
        (None, None) => {
            let mut failure = failure;
            for (is_searched, noun, names) in [
                (indexes.has_mail, "messages", message_field_names()),
                (indexes.has_commits, "commits", COMMIT_JSON_FIELDS.to_vec()),
            ] {
                if is_searched {
                    failure = failure.with_hint(format!("fields of {noun}: {}", names.join(", ")));
                }
            }
            failure
        }
    }
}

fn missing_field_failure(name: &str) -> CommandFailure {
    let message = format!("contacts and calendar items have no field {:?}", sanitize_line(name));
    let kind = if find_message_field(name).is_some() { "message" } else { "commit" };
    CommandFailure::new(FailureKind::Usage, message)
        .with_hint(format!("{kind}s have it: --kind {kind}"))
}

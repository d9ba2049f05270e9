//! The names of `--fields` and `--sort` in a search over all kinds, and the notes about kinds that
//! do not have them. Which kind has which field is known to `larder_query`.

use super::item_list::parse_columns;
use crate::commands::show::item_format::OutputColumn;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::output::sanitize_line;
use larder_query::{KindColumns, KindGroup, field_of_order};

/// The columns of `--fields`.
#[derive(Default)]
pub(super) struct ListColumns {
    /// The columns of the items of the store; `None`: the default ones.
    pub(super) items: Option<Vec<Option<OutputColumn>>>,
    /// The fields of the other kinds.
    pub(super) kinds: KindColumns,
}

impl ListColumns {
    /// Parses the names of `--fields` in a search for items of the store only.
    pub(super) fn parse_for_items(
        names: &[String],
        is_any_kind: bool,
    ) -> Result<ListColumns, CommandFailure> {
        let is_of = |group: KindGroup, name: &str| group.find_field(name).is_some();
        let known_to_messages = |failure: CommandFailure| {
            let mut names = names.iter().flat_map(|name| name.split_whitespace()).peekable();
            let has_names = names.peek().is_some();
            match has_names && names.all(|name| is_of(KindGroup::Messages, name)) {
                true => failure.with_hint("messages have it: --kind message"),
                false => failure,
            }
        };
        let items = parse_columns(names).map_err(known_to_messages)?;
        if is_any_kind
            && let Some(first) = names.first()
            && !names.iter().any(|name| is_of(KindGroup::StoredItems, name))
        {
            return Err(missing_field_failure(first));
        }
        let items = items.map(|columns| columns.into_iter().map(Some).collect());
        Ok(ListColumns { items, ..ListColumns::default() })
    }

    /// Parses the names of `--fields` in a search over these groups of kinds.
    pub(super) fn parse(
        names: &[String],
        searched: &[KindGroup],
    ) -> Result<ListColumns, CommandFailure> {
        // mu separates them by spaces.
        let parts: Vec<&str> = names.iter().flat_map(|name| name.split_whitespace()).collect();
        if parts.is_empty() {
            parse_columns(names)?;
            return Ok(ListColumns::default());
        }
        let kinds = KindColumns::resolve(parts.iter().copied(), searched)
            .map_err(|unknown| unknown_field_failure(&unknown.0, searched))?;
        let stored = kinds.columns_of(KindGroup::StoredItems).iter().zip(parts);
        let items = stored.map(|(field, name)| field.and_then(|_| OutputColumn::from_name(name)));
        Ok(ListColumns { items: Some(items.collect()), kinds })
    }

    /// Returns the columns of a search for items of the store only, which has them all.
    pub(super) fn item_columns(&self) -> Option<Vec<OutputColumn>> {
        self.items.as_ref().map(|columns| columns.iter().flatten().copied().collect())
    }

    /// Says which kinds match and are not listed.
    pub(super) fn print_left_out(&self, context: &CommandContext, matched: &[KindGroup]) {
        let left_out = matched.iter().filter(|group| !self.kinds.is_listed(**group));
        let nouns: Vec<&str> = left_out.map(|group| group.noun()).collect();
        if !nouns.is_empty() {
            let kinds = nouns.join(", ");
            context.print_note(format!("not listed, as they have none of these fields: {kinds}"));
        }
    }
}

/// Says which of the listed kinds do not have the order.
pub(super) fn print_missing_orders(context: &CommandContext, sort: &str, listed: &[KindGroup]) {
    if sort == "none" {
        return;
    }
    let missing = listed.iter().filter(|group| !group.has_order(sort));
    let nouns: Vec<&str> = missing.map(|group| group.noun()).collect();
    if !nouns.is_empty() {
        let (kinds, name) = (nouns.join(", "), sanitize_line(field_of_order(sort)));
        context.print_note(format!("in their usual order, as they have no {name}: {kinds}"));
    }
}

/// Returns the failure for a field that no kind of the search has.
fn unknown_field_failure(name: &str, searched: &[KindGroup]) -> CommandFailure {
    let Err(failure) = parse_columns(&[name.to_string()]) else {
        return missing_field_failure(name);
    };
    if KindGroup::Messages.find_field(name).is_some() {
        return failure.with_hint("messages have it: --kind message");
    }
    if KindGroup::Commits.find_field(name).is_some() {
        return failure.with_hint("commits have it: --kind commit");
    }
    if failure.hints().iter().any(|hint| hint.starts_with("did you mean")) {
        return failure;
    }
    let indexed = searched.iter().filter(|group| **group != KindGroup::StoredItems);
    indexed.fold(failure, |failure, group| {
        let names = group.field_names().join(", ");
        failure.with_hint(format!("fields of {}: {names}", group.noun()))
    })
}

fn missing_field_failure(name: &str) -> CommandFailure {
    let message = format!("contacts and calendar items have no field {:?}", sanitize_line(name));
    let is_of_messages = KindGroup::Messages.find_field(name).is_some();
    let kind = if is_of_messages { "message" } else { "commit" };
    CommandFailure::new(FailureKind::Usage, message)
        .with_hint(format!("{kind}s have it: --kind {kind}"))
}

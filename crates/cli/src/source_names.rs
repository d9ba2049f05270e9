//! The sources of `data.db` in the indexes of mail and commits: their names, which follow, and
//! which of them the indexes do not have.
//!
//! Separate from `mail_store` and `commit_store`, which both need it: a source is renamed in
//! `data.db`, goes, or comes back, by a command, an undo or a restore. The next search finds its
//! items by the name, or says that they are not indexed, or left out.

use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::machine_time::now_milliseconds;
use crate::output::sanitize_line;
use larder_store::{Reader, Store};
use larder_sync::{
    RegisteredSource, SourceStores, SourceType, find_departed_sources, find_renamed_sources,
    find_unindexed_sources,
};

/// Gives the collections of an index the names that their sources have in `data.db`. If that is not
/// possible now, a note says so.
pub(crate) fn follow_source_names(
    context: &CommandContext,
    source_type: SourceType,
    data: &Reader,
    stores: &SourceStores,
    index: &Reader,
) -> Result<(), CommandFailure> {
    let sources = larder_sync::list_sources(data, source_type)?;
    let renamed = find_renamed_sources(index, source_type, &sources)?;
    if renamed.is_empty() {
        return Ok(());
    }
    let follow = || -> Result<bool, CommandFailure> {
        let mut store = Store::open(stores.index.clone(), &stores.options)?;
        let at = now_milliseconds();
        Ok(larder_sync::follow_source_names(&mut store, source_type, &sources, at)?)
    };
    let reason = match follow() {
        Ok(true) => return Ok(()),
        Ok(false) => "a synchronisation is running".to_string(),
        Err(failure) => failure.message().to_string(),
    };
    let names: Vec<String> = renamed.iter().map(|source| sanitize_line(&source.name)).collect();
    let names = names.join(", ");
    context.print_note(format!("searches still use the former names of: {names} ({reason})"));
    Ok(())
}

/// Says which of the sources of a type are not completely indexed, so that a search does not pass
/// for an answer about them; without an index, that none is. With a name, only that source is
/// meant. Says also that messages of the index were read with other rules than those of now.
pub(crate) fn print_index_notes(
    context: &CommandContext,
    source_type: SourceType,
    sources: &[RegisteredSource],
    index: Option<&Reader>,
    name: Option<&str>,
) -> Result<(), CommandFailure> {
    let Some(index) = index else {
        if !sources.is_empty() {
            let items = match source_type {
                SourceType::Mail => "mail is",
                SourceType::Repository => "commits are",
            };
            context.print_note(format!("{items} not indexed yet; run: larder sync"));
        }
        return Ok(());
    };
    if source_type == SourceType::Mail
        && !sources.is_empty()
        && larder_sync::is_mail_outdated(index, &context.mail_addresses, &context.converters)?
    {
        context.print_note("the index of mail is out of date; run: larder sync");
    }
    print_left_out_sources(context, index, name)?;
    let unindexed = find_unindexed_sources(index, source_type, sources)?;
    let named = unindexed.iter().filter(|source| name.is_none_or(|name| name == source.name));
    let names: Vec<String> = named.map(|source| sanitize_line(&source.name)).collect();
    if !names.is_empty() {
        let (items, names) = (source_type.kind().plural(), names.join(", "));
        context.print_note(format!(
            "not completely indexed yet: the {items} of {names}; run: larder sync"
        ));
    }
    Ok(())
}

/// Says that the messages of sources are left out of searches with a reader, if there are any. With
/// a name, only that source is meant.
pub(crate) fn print_left_out_sources(
    context: &CommandContext,
    index: &Reader,
    name: Option<&str>,
) -> Result<(), CommandFailure> {
    let mut departed = index.mail()?.left_out_collections().to_vec();
    departed.retain(|source| name.is_none_or(|name| name == source));
    if !departed.is_empty() {
        let names = join_names(&departed);
        context.print_note(format!(
            "left out, because they are no sources any more: the messages of {names}; run: larder sync"
        ));
    }
    Ok(())
}

/// Says that the index still has the items of former sources which are not registered any more.
pub(crate) fn print_departed_sources(
    context: &CommandContext,
    source_type: SourceType,
    former: &[RegisteredSource],
    sources: &[RegisteredSource],
    index: &Reader,
) -> Result<(), CommandFailure> {
    let mut departed = find_departed_sources(index, source_type, sources)?;
    departed.retain(|name| former.iter().any(|source| source.name == *name));
    if !departed.is_empty() {
        let (items, names) = (source_type.kind().plural(), join_names(&departed));
        context.print_note(format!("still indexed: the {items} of {names}; run: larder sync"));
    }
    Ok(())
}

fn join_names(names: &[String]) -> String {
    names.iter().map(|name| sanitize_line(name)).collect::<Vec<_>>().join(", ")
}

//! The names of sources in the indexes of mail and commits, which follow those in `data.db`.
//!
//! Separate from `mail_store` and `commit_store`, which both need it: a source is renamed in
//! `data.db`, by a command, an undo or a restore, and the next search finds its items by the name.

use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::machine_time::now_milliseconds;
use crate::output::sanitize_line;
use larder_store::{Reader, Store};
use larder_sync::{SourceStores, SourceType, find_renamed_sources};

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

//! Writing saved searches.

use larder_format::problem::Problem;
use larder_format::saved_search::SavedSearch;
use larder_store::{
    BatchChange, CalendarContext, ChangeOutcome, Error, ItemPut, Kind, Operation, Precondition,
    Reader, Store,
};
use std::sync::Arc;

/// The reason that a saved search was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedSearchError {
    /// The definition has no valid form.
    #[error("the saved search {name:?} cannot be stored: {problem}")]
    Invalid {
        /// Its name.
        name: String,
        /// The problem of its text.
        problem: Problem,
    },
    /// The store could not be written.
    #[error(transparent)]
    Store(#[from] Error),
}

/// The result of the definition of a saved search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchDefinition {
    /// The name is new.
    Added,
    /// It replaced another definition.
    Changed,
    /// The stored definition is the same.
    Unchanged,
}

/// Writes saved searches in one batch; each replaces the one of its name.
///
/// # Errors
/// Errors of the store, and a definition without a valid form; then none is written.
pub fn put_saved_searches(
    store: &mut Store,
    operation: &mut Operation,
    searches: &[SavedSearch],
) -> Result<Vec<SearchDefinition>, SavedSearchError> {
    let collection: Arc<str> = Arc::from(Kind::SavedSearch.collection_type().default_collection());
    let mut changes = Vec::with_capacity(searches.len());
    for search in searches {
        let bytes = search.to_text().into_bytes();
        let context = CalendarContext::default();
        let parsed = store.extractor().parse_item(Kind::SavedSearch, bytes, &context).map_err(
            |rejected| SavedSearchError::Invalid {
                name: search.name.clone(),
                problem: rejected.problem,
            },
        )?;
        changes.push(BatchChange::Put(ItemPut {
            collection: Arc::clone(&collection),
            uid: search.name.clone(),
            derived_uid: false,
            parsed,
            precondition: Precondition::Any,
        }));
    }
    let applied = store.apply(operation, changes)?;
    let definition = |outcome: &ChangeOutcome| match outcome {
        ChangeOutcome::Added(_) => SearchDefinition::Added,
        ChangeOutcome::Updated(_) => SearchDefinition::Changed,
        _ => SearchDefinition::Unchanged,
    };
    Ok(applied.outcomes.iter().map(definition).collect())
}

/// Removes the saved search with this name. Returns whether there was one.
///
/// # Errors
/// Errors of the store.
pub fn remove_saved_search(
    store: &mut Store,
    operation: &mut Operation,
    reader: &Reader,
    name: &str,
) -> Result<bool, Error> {
    let collection = Kind::SavedSearch.collection_type().default_collection();
    let Some((meta, _)) = reader.items().get(collection, name)? else { return Ok(false) };
    let change = BatchChange::Remove(meta.handle, Precondition::Any);
    let applied = store.apply(operation, vec![change])?;
    Ok(matches!(applied.outcomes.as_slice(), [ChangeOutcome::Removed(_)]))
}

//! The properties of a calendar itself, as opposed to the properties of its items.

use larder_store::{Collection, CollectionType, IndexConfig, Reader};

/// Returns the content lines of each calendar of this name, as they were imported. A calendar
/// without properties is skipped.
///
/// # Errors
/// Errors of the store.
pub fn read_calendar_properties(
    reader: &Reader,
    name: &str,
) -> Result<Vec<Vec<u8>>, larder_store::Error> {
    let mut found = Vec::new();
    for row in reader.collections().list_rows(Some(name))? {
        let collection = Collection {
            row,
            name: name.to_string(),
            collection_type: CollectionType::Calendar,
            item_count: 0,
            index_config: IndexConfig::shared_default(CollectionType::Calendar),
        };
        found.extend(reader.collections().properties(&collection)?);
    }
    Ok(found)
}

//! Targets of the serialised formats in a store's file: stored fields and index configurations.

use larder_format::field::CONTACT_FIELDS;
use larder_store::{IndexConfig, Kind, StoredFields};

/// Stored fields: no value is longer than the row. As text, an index configuration: one that parses
/// is written as a text that parses to the same one.
pub fn check_stored_formats(data: &[u8]) {
    if let Some(stored) = StoredFields::from_bytes(Kind::Contact, data) {
        for field in CONTACT_FIELDS {
            let values: Vec<&str> = stored.values(field).take(1 << 16).collect();
            assert!(values.iter().all(|value| value.len() <= data.len()), "{} grew", field.name);
            assert_eq!(stored.first(field), values.first().copied(), "{}", field.name);
        }
    }
    if let Ok(config) = String::from_utf8_lossy(data).parse::<IndexConfig>() {
        let written = config.to_string();
        assert_eq!(written.parse().as_ref(), Ok(&config), "written as {written}");
    }
}

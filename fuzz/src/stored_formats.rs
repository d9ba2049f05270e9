//! What a file may hold that nobody here wrote: rows of kept values, and summaries.

use larder_format::field::CONTACT_FIELDS;
use larder_store::{IndexConfig, Kind, StoredFields};

/// A row of kept values: none is longer than the row. As text, a summary: what is read is read
/// again as it is written.
pub fn check_stored_formats(data: &[u8]) {
    if let Some(kept) = StoredFields::from_bytes(Kind::Contact, data) {
        for field in CONTACT_FIELDS {
            let values: Vec<&str> = kept.values(field).take(1 << 16).collect();
            assert!(values.iter().all(|value| value.len() <= data.len()), "{} grew", field.name);
            assert_eq!(kept.first(field), values.first().copied(), "{}", field.name);
        }
    }
    if let Ok(summary) = String::from_utf8_lossy(data).parse::<IndexConfig>() {
        let written = summary.to_string();
        assert_eq!(written.parse().as_ref(), Ok(&summary), "written as {written}");
    }
}

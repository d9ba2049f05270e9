//! Terms, stored fields and sort keys from the fields of an item, by an index configuration.
//!
//! Separate from the modules of the kinds because items of all kinds are indexed by the same means.

use crate::index_config::{FieldIndex, IndexConfig};
use crate::parsed_item::{IndexDocument, SortKeys};
use crate::stored_fields::{self, is_storable};
use crate::term_extraction::{TermCollector, prefix_chars};
use larder_format::collate::Collator;
use larder_format::field::{Field, find_field};
use larder_format::parsed_source::ParsedSource;
use std::sync::Arc;

/// Sort keys are made of at most this many characters: texts that differ only after them are in no
/// order.
const MAX_SORT_KEY_CHARS: usize = 512;
/// Sort keys are cut to this many bytes, so that a position in an order fits into a chunk of the
/// index.
const MAX_SORT_KEY_BYTES: usize = 1000;

/// Extracts the entries of fields. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct FieldExtractor {
    pub(crate) collator: Arc<Collator>,
    pub(crate) index_config: Arc<IndexConfig>,
}

impl FieldExtractor {
    /// Returns the sort key of the first [`MAX_SORT_KEY_CHARS`] characters of a text.
    pub(crate) fn sort_key(&self, text: &str) -> Vec<u8> {
        let mut key = self.collator.sort_key(prefix_chars(text, MAX_SORT_KEY_CHARS));
        key.truncate(MAX_SORT_KEY_BYTES);
        key
    }

    /// Extracts the entry of an item that has these fields.
    pub(crate) fn extract(
        &self,
        item: &ParsedSource<'_>,
        fields: &'static [Field],
    ) -> IndexDocument {
        let mut terms = TermCollector::default();
        let mut stored = Vec::new();
        for field in fields.iter().filter(|field| field.is_indexed) {
            let values = item.values(field);
            terms.add(field, &self.index_config, &values);
            if is_storable(field)
                && (self.index_config.has_text_index(field) || field.name == "rev")
            {
                // Lists show the labels beside the values; labels have no index of their own.
                let labels = field.label_field.and_then(|name| find_field(fields, name));
                if let Some(labels) = labels.filter(|labels| is_storable(labels)) {
                    stored.push((labels, item.values(labels)));
                }
                stored.push((field, values));
            }
        }
        IndexDocument {
            terms: terms.into_terms(),
            has_uid: item.uid().is_some(),
            stored_fields: stored_fields::pack(stored),
            sort_keys: self.extract_sort_keys(item, fields),
            parsed_schedule: None,
        }
    }

    /// Extracts the sort keys of an item that has these fields.
    pub(crate) fn extract_sort_keys(
        &self,
        item: &ParsedSource<'_>,
        fields: &'static [Field],
    ) -> SortKeys {
        let sorted =
            fields.iter().filter(|field| self.index_config.has_index(field, FieldIndex::Sort));
        sorted
            .map(|field| (field.id, self.sort_key(&item.first_value(field).unwrap_or_default())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Extractor, ItemContext, StoredFields};
    use larder_format::kind::Kind;

    /// Without them a list reads and parses each of its items.
    #[test]
    fn all_fields_of_the_lists_are_stored() {
        let card = "BEGIN:VCARD\nVERSION:3.0\nFN:Anna\nN:Berg;Anna\nTEL;TYPE=CELL:1\n\
                    EMAIL;TYPE=WORK:a@b.example\nitem1.TEL:2\nitem1.X-ABLabel:Boot\nEND:VCARD\n";
        let context = ItemContext {
            kind: Kind::Contact,
            recurrence_id: String::new(),
            calendar_context: None,
        };
        let entry = Extractor::new("C").extract(card.as_bytes(), &context);
        let bytes = entry.stored_fields.expect("a short row");
        let stored = StoredFields::from_bytes(Kind::Contact, &bytes).expect("a row");
        let collection_type = Kind::Contact.collection_type();
        for name in collection_type.row().stored_fields {
            let field = collection_type.find_field(name).expect("a field");
            assert!(stored.has_field(field), "{name}");
        }
        let values = |name| {
            let field = collection_type.find_field(name).expect("a field");
            stored.values(field).collect::<Vec<_>>()
        };
        assert_eq!(values("phone_type"), ["mobile", "Boot"]);
        assert_eq!(values("email_type"), ["work"]);
    }
}

//! The data that a salvage could not read, as its report names them.
//!
//! Separate from `repair`, which finds them, because the report is public.

use crate::damaged_object::DamagedObject;
use crate::handle::Handle;

/// Data that a salvage could not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageLoss {
    /// An object whose bytes have changed.
    #[error("{0} does not match its checksum")]
    Changed(DamagedObject),
    /// An item whose bytes could not be read.
    #[error("the bytes of item {handle:.8} in {collection} (UID {uid})")]
    Bytes {
        /// The item.
        handle: Handle,
        /// The name of its collection.
        collection: String,
        /// Its UID.
        uid: String,
    },
    /// An item of which neither the row nor the bytes could be read.
    #[error("item {handle:.8} in {collection}")]
    Item {
        /// The item.
        handle: Handle,
        /// The name of its collection, if it is known.
        collection: String,
    },
    /// Items of which nothing but their number is known.
    #[error("{} without a known ID", format_count(*items, "item"))]
    UnnamedItems {
        /// The number of items.
        items: u64,
    },
    /// An item that is in the new store under another ID.
    #[error("the ID of item {handle:.8}: it is {new_handle:.8} in {collection} now")]
    Identity {
        /// The former ID.
        handle: Handle,
        /// The ID in the new store.
        new_handle: Handle,
        /// The name of the collection in the new store.
        collection: String,
    },
    /// Items whose collection is unknown: they are in a collection of their own.
    #[error("the collection of {}", format_count(*items, "item"))]
    ItemCollections {
        /// The number of items.
        items: u64,
    },
    /// Items of which the last change is unknown.
    #[error("the batch of the last change of {}", format_count(*items, "item"))]
    ItemBatches {
        /// The number of items.
        items: u64,
    },
    /// The data of a collection besides its items.
    #[error("the properties and the index configuration of collection {collection}")]
    Collection {
        /// The name of the collection in the new store.
        collection: String,
    },
    /// Items whose time-zone definitions could not be read.
    #[error("the time-zone definitions of {}", format_count(*items, "item"))]
    CalendarContexts {
        /// The number of items.
        items: u64,
    },
    /// Former versions whose time-zone definitions could not be read.
    #[error("the time-zone definitions of {}", format_count(*versions, "previous version"))]
    VersionContexts {
        /// The number of versions.
        versions: u64,
    },
    /// Former versions that could not be read.
    #[error("{}", format_count(*versions, "previous version"))]
    Versions {
        /// The number of versions.
        versions: u64,
    },
    /// Batches that were committed, and that neither the file nor its write-ahead log has.
    #[error("{}", format_batches(*batches))]
    Batches {
        /// The number of batches.
        batches: u64,
    },
    /// Objects in an unknown number.
    #[error("an unknown number of {objects}")]
    Unknown {
        /// The objects, in the plural.
        objects: &'static str,
    },
}

impl SalvageLoss {
    /// Returns the number of lost objects; `None`: it is unknown.
    #[must_use]
    pub fn object_count(&self) -> Option<u64> {
        match self {
            SalvageLoss::UnnamedItems { items: count }
            | SalvageLoss::ItemCollections { items: count }
            | SalvageLoss::ItemBatches { items: count }
            | SalvageLoss::CalendarContexts { items: count }
            | SalvageLoss::VersionContexts { versions: count }
            | SalvageLoss::Versions { versions: count }
            | SalvageLoss::Batches { batches: count } => Some(*count),
            SalvageLoss::Unknown { .. } => None,
            _ => Some(1),
        }
    }

    /// Returns whether versions of any batch may be missing or have another identity, so that no
    /// earlier operation can be undone. The batches of versions that are known to be missing are
    /// counted apart.
    pub(super) fn affects_all_history(&self) -> bool {
        matches!(
            self,
            SalvageLoss::Identity { .. }
                | SalvageLoss::ItemCollections { .. }
                | SalvageLoss::ItemBatches { .. }
                | SalvageLoss::Collection { .. }
                | SalvageLoss::Changed(DamagedObject::CollectionProperties { .. })
                | SalvageLoss::Unknown { .. }
        )
    }
}

fn format_batches(count: u64) -> String {
    match count {
        1 => "1 committed batch".to_string(),
        count => format!("{count} committed batches"),
    }
}

fn format_count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

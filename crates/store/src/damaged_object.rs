//! The objects of a store that have a checksum, as errors and reports name them.
//!
//! Separate from `checksum`, which computes and compares, because errors name these objects.

use crate::Seq;
use crate::handle::Handle;
use crate::row_ids::{CalendarContextRow, OperationId};

/// An object whose stored bytes do not match their checksum.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DamagedObject {
    /// The source bytes of an item, or its row.
    #[error("item {handle:.8} in {collection}")]
    Item {
        /// The item.
        handle: Handle,
        /// The name of its collection; empty if the collection is missing.
        collection: String,
    },
    /// The UID, the collection or the handle of an item: the handle is not the one that the UID and
    /// the collection give.
    #[error("the UID or the collection of item {handle:.8} in {collection}")]
    Identity {
        /// The stored handle.
        handle: Handle,
        /// The name of the stored collection; empty if the collection is missing.
        collection: String,
    },
    /// A former version of an item.
    #[error("the version of item {handle:.8} in {collection} that batch {until} replaced")]
    FormerVersion {
        /// The item.
        handle: Handle,
        /// The name of its collection; empty if the collection is missing.
        collection: String,
        /// The batch that replaced or removed the version.
        until: Seq,
    },
    /// Bytes of a large item. Where an item or a former version refers to them, it is named as
    /// well.
    #[error("the shared bytes {hash_prefix}")]
    Blob {
        /// The first letters of the SHA-256 under which the bytes are stored.
        hash_prefix: String,
    },
    /// A calendar context.
    #[error("calendar context {row}")]
    CalendarContext {
        /// Its row.
        row: CalendarContextRow,
    },
    /// A time-zone definition.
    #[error("time-zone definition {tzid}")]
    ZoneDefinition {
        /// The stored TZID.
        tzid: String,
    },
    /// A collection.
    #[error("collection {collection}")]
    Collection {
        /// Its stored name.
        collection: String,
    },
    /// A former state of a collection.
    #[error("the state of a collection that batch {until} replaced")]
    FormerCollection {
        /// The batch that changed the collection.
        until: Seq,
    },
    /// An operation of the log.
    #[error("operation {operation}")]
    Operation {
        /// The operation.
        operation: OperationId,
    },
    /// The record of the operation of a batch.
    #[error("batch {seq}")]
    Batch {
        /// The batch.
        seq: Seq,
    },
    /// The properties of a collection, or their former version.
    #[error("the properties of collection {collection}")]
    CollectionProperties {
        /// The name of the collection; empty if the collection is missing.
        collection: String,
    },
    /// A value of the table `meta`.
    #[error("the value {key} in table meta")]
    MetaValue {
        /// The stored key.
        key: String,
    },
}

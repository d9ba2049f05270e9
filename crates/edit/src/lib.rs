//! Changes to items: new events in words, changes by recurrence scope, edited texts, merged
//! contacts.
//!
//! Most of the crate is pure: a function takes items and a request, and returns the items that
//! result. A few functions write a result as one operation, which expects the items as they were
//! read: an item that was changed in between is left alone and reported. Random numbers, the
//! current time and time zones are passed in. It is separate from `larder-sync`, which imports and
//! exports whole files, because here a person waits for the result, and one invalid line makes the
//! whole text invalid.
//!
//! | module | contents |
//! |---|---|
//! | `calendar_context_builder` | the calendar context of components while their calendar is read |
//! | `contact` | merging contacts into one |
//! | `contact_edit` | changes of single fields of a contact, new contacts from fields |
//! | `event` | new events, tasks and memos, and changes by recurrence scope |
//! | `item_edits` | adding, replacing and removing items in batches |
//! | `item_text` | items of any kind that a person typed or edited |
//! | `label_comparison` | comparing the labels in the index of mail with the stored ones |
//! | `label_follower` | following labels while other work on the index of mail lasts long |
//! | `labels` | labels of messages, and their copy in the index of mail |
//! | `saved_search` | definitions of saved searches |

pub mod calendar_context_builder;
mod contact;
pub mod contact_edit;
pub mod event;
mod item_edits;
pub mod item_text;
mod label_comparison;
mod label_follower;
pub mod labels;
mod saved_search;

pub use crate::contact::{ContactMerge, MergeError, MergeOutcome, write_merge};
pub use crate::item_edits::{
    AddedItem, CollectionListing, CollectionRemovalOutcome, RemovalOutcome, add_items,
    add_missing_uid, list_collection, remove_collection, remove_items, replace_item,
};
pub use crate::label_comparison::{LabelDifferences, compare_labels};
pub use crate::label_follower::LabelFollower;
pub use crate::saved_search::{
    SavedSearchError, SearchDefinition, put_saved_searches, remove_saved_search,
};

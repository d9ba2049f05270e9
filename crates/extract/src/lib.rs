//! From source bytes to everything that is derived from them: terms, sort keys, stored fields, and
//! the schedule.
//!
//! ```text
//! source bytes + calendar context --> Extractor --> ParsedItem --> index, interval index, lists
//! ```
//!
//! Everything here is pure: no file, no environment, no clock, no SQL. So importers extract in
//! parallel before they take the lock, and derived data can be rebuilt and compared at any time.
//! The database of time zones is passed in. The crate is separate from `larder-store`, which writes
//! the results, and from `larder-index`, which stores terms without a notion of items.
//!
//! The rules here are part of the fingerprints of derived data: a change of a rule needs a new
//! version number in `extractor`, so that stores extract their items again by the new rules.
//!
//! | module | contents |
//! |---|---|
//! | `fold_digest` | a digest of the folding rules, for fingerprints |
//! | `extractor` | [`Extractor`]: entries by the capabilities of a kind, and the fingerprints |
//! | `contact` | contacts that come in |
//! | `component` | components of a calendar that come in |
//! | `event` | events, tasks and memos: times and time zones |
//! | `parsed_item` | the result: [`ParsedItem`], [`IndexDocument`], warnings |
//! | `field_extraction` | terms, stored fields and sort keys from the fields of any kind |
//! | `term_extraction` | the terms of one item |
//! | `term` | the encoding of terms, which extraction and queries share |
//! | `header_term` | the terms of the header fields of messages |
//! | `message`, `message_flags`, `message_summary` | mail messages: their words, states and list rows |
//! | `commit` | commits of git: their words and list rows |
//! | `common_pair` | pairs of very common words, as terms |
//! | `correspondent` | the addresses of messages, as terms |
//! | `tokenizer` | the words of running text, with positions |
//! | `stored_fields` | field values that are stored in an item's row |
//! | `index_config` | index configurations: which fields are indexed, and how |
//! | `calendar_context` | the version and the time zone definitions of the enclosing calendar |
//! | `schedule` | times and alarms of an item: occurrences in a time range, packing |
//! | `series` | the schedules of items with one UID: master and overrides |

mod calendar_context;
mod commit;
mod common_pair;
mod component;
mod contact;
mod correspondent;
mod event;
mod extractor;
mod field_extraction;
mod fold_digest;
pub mod header_term;
mod index_config;
mod message;
pub mod message_flags;
pub mod message_summary;
mod parsed_item;
mod schedule;
mod series;
mod stored_fields;
pub mod term;
mod term_extraction;
pub mod tokenizer;

pub use crate::calendar_context::{CalendarContext, ZoneDefinition};
pub use crate::commit::{CommitExtractor, MAX_COMMIT_PATHS};
pub use crate::common_pair::common_pair;
pub use crate::correspondent::{CorrespondentName, NAME_SEPARATOR, is_mail_address};
pub use crate::event::{ZoneLookup, ZoneResolver, ZoneUse, is_newer_revision};
pub use crate::extractor::Extractor;
pub use crate::index_config::{FieldIndex, IndexConfig, IndexConfigError};
pub use crate::message::{
    BODY_POSITIONS, EMBEDDED_POSITIONS, HEADER_POSITIONS, MAX_MESSAGE_WORDS, MessageDocument,
    MessageExtractor, MessageTermField, hash_message_id, write_message_term,
};
pub use crate::parsed_item::{
    IndexDocument, ItemContext, LineWarning, ParsedItem, RejectedItem, SortKeys,
};
pub use crate::schedule::{
    Alarm, Existence, ItemOccurrence, Overlap, ParsedSchedule, Schedule, ScheduleForm, TimeRange,
    TimeTarget, Trigger,
};
pub use crate::series::{SeriesMember, combine_schedules};
pub use crate::stored_fields::{StoredFields, is_storable};
pub use crate::term::WORD_PREFIX_CHARS;
pub use crate::term_extraction::{ExtractedTerms, MIN_LONG_NUMBER_DIGITS};

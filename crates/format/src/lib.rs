//! Bytes to values: the vCard formats, iCalendar with their shared content lines, mail, commits.
//!
//! The crate is pure: no file, no clock, no environment. No input makes it fail: what cannot be
//! parsed is kept and reported. The source bytes of an item remain authoritative.
//!
//! | module | purpose |
//! |---|---|
//! | `splitter` | finds the items in a stream of bytes |
//! | `content_line` | logical lines |
//! | `property`, `properties` | one property, the properties of an item |
//! | `contact`, `component`, `vtimezone` | a vCard, a calendar component, a time zone definition |
//! | `bookmark` | a toy kind, behind the feature `toy-kind`: no release has it |
//! | `field`, `field_values` | the tables of fields, and how their values are read |
//! | `value_labels` | the labels of values: mobile, work, a person's own |
//! | `binary_description` | pictures and keys in words |
//! | `charset`, `utf16` | character sets by their names |
//! | `decoding` | transfer encodings, the character sets of values, escapes |
//! | `edit`, `splice`, `writer` | edits of single properties, new lines and components |
//! | `item_identity`, `item_revision` | UIDs and the equality of items; the revision of a component |
//! | `fold`, `collate`, `phone` | text for comparison, sort keys, phone numbers |
//! | `message`, `maildir_name` | a mail message; the flags in the name of its file |
//! | `mbox` | the messages in an mbox file |
//! | `commit` | a commit of git |
//! | `html_text`, `safe_html` | HTML as plain text, and without anything that runs or loads |
//! | `kind`, `collection_type` | the tables of kinds and of types of collections |
//! | `label`, `label_dump` | the labels of a message; labels as notmuch and mu write them |
//! | `parsed_source` | the parsed source of an item of any kind |
//! | `saved_search` | a named query |
//! | `problem` | problems of an item, for messages |
//!
//! ```
//! use larder_format::contact::Contact;
//! use larder_format::field::find_contact_field;
//!
//! let card = Contact::parse(b"BEGIN:VCARD\nVERSION:3.0\nFN:Anna Berg\nTEL:1\nEND:VCARD\n");
//! let name = find_contact_field("full_name").and_then(|field| card.first_value(field));
//! assert_eq!(name.as_deref(), Some("Anna Berg"));
//! assert!(card.fatal_problem().is_none());
//! ```

pub mod binary_description;
#[cfg(feature = "toy-kind")]
pub mod bookmark;
mod charset;
pub mod collate;
pub mod collection_type;
pub mod commit;
pub mod component;
pub mod contact;
pub mod content_line;
pub mod decoding;
pub mod edit;
pub mod field;
mod field_values;
pub mod fold;
pub mod html_text;
mod item_identity;
pub mod item_revision;
pub mod kind;
pub mod label;
pub mod label_dump;
pub mod maildir_name;
pub mod mbox;
pub mod message;
pub mod parsed_source;
pub mod phone;
pub mod problem;
mod properties;
pub mod property;
pub mod safe_html;
pub mod saved_search;
mod splice;
pub mod splitter;
mod utf16;
mod value_labels;
pub mod vtimezone;
pub mod writer;

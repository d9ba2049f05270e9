//! Bytes and values: the vCard formats, iCalendar, and the content lines that they share.
//!
//! Everything here is pure: no file, no clock, no environment. Nothing here fails on any input:
//! what cannot be understood is kept and named. The bytes stay the truth; this crate finds items in
//! a stream ([`splitter`]), takes one apart ([`line`](mod@line), [`property`], [`contact`],
//! [`component`], [`vtimezone`]), says which fields there are ([`field`](mod@field)), and prepares
//! their text for comparing ([`fold`](mod@fold), [`phone`]) and sorting ([`collate`]).
//!
//! ```
//! use larder_format::contact::Contact;
//! use larder_format::field::field;
//!
//! let card = Contact::parse(b"BEGIN:VCARD\nVERSION:3.0\nFN:Anna Berg\nTEL:+43 1 234\nEND:VCARD\n");
//! let name = field("full_name").and_then(|field| card.first(field));
//! assert_eq!(name.as_deref(), Some("Anna Berg"));
//! assert!(card.refusal().is_none());
//! ```

pub mod collate;
pub mod component;
pub mod contact;
pub mod content_line;
pub mod decoding;
pub mod edit;
pub mod field;
mod field_values;
pub mod fold;
mod item_identity;
pub mod kind;
pub mod phone;
pub mod problem;
mod properties;
pub mod property;
pub mod splitter;
mod utf16;
pub mod vtimezone;
pub mod writer;

//! Text for people: what lists and pages show of items, in words and in the user's time zone.
//!
//! | module | contents |
//! |---|---|
//! | [`address_format`] | addresses in the formats of other programs |
//! | [`agenda`] | occurrences grouped by day, and the text of each on its day |
//! | [`colour`] | the colour of a calendar |
//! | [`description`] | recurrence rules, alarms and time zones in words |
//! | [`free_busy`] | busy periods as a VFREEBUSY component |
//! | [`local_time`] | dates, times and durations: for lists, in words, and as RFC 3339 |
//! | [`message_html`] | mail messages as an HTML page |
//! | [`safe_text`] | deceptive and invisible characters made visible |
//!
//! The crate is pure: it reads no store, and values of `larder-query` are passed in. It is separate
//! from `larder-query` so that a program that needs only results does not depend on their wording.

pub mod address_format;
pub mod agenda;
pub mod colour;
pub mod description;
pub mod free_busy;
pub mod local_time;
pub mod message_html;
pub mod safe_text;

pub use crate::address_format::{AddressEntry, AddressFormat, format_addresses};
pub use crate::agenda::{AgendaDay, DayEntry, group_by_day};
pub use crate::colour::{calendar_colour, declared_colour_text};
pub use crate::free_busy::format_free_busy;

//! Time of calendars: clock times and moments, the time values of RFC 5545, recurrence rules,
//! time zones, and the series that follow from them.
//!
//! Everything here is pure: no file, no clock, no environment; the database of the system's zones
//! is passed in. All arithmetic is on whole seconds and day numbers of the years 1 to 9999. Nothing
//! walks: whatever is asked is found where it is, and what hostile input may cost is bounded by a
//! [`Budget`](rule::Budget) that the caller gives.
//!
//! ```
//! use larder_time::rule::Rule;
//! use larder_time::value::Stamp;
//!
//! let start = Stamp::parse("19750105T090000")?.civil;
//! let rule = Rule::parse("FREQ=MONTHLY;BYDAY=-1FR")?;
//! let at = Stamp::parse("20260301")?.civil;
//! let next = rule.from(start, at).next();
//! assert_eq!(next.map(|civil| civil.to_string()).as_deref(), Some("20260327T090000"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod civil;
pub mod rule;
pub mod series;
pub mod value;
pub mod varint;
pub mod zone;

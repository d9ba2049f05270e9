//! Calendar time: civil times and instants, the time values of RFC 5545, recurrence rules, time
//! zones, and compiled series.
//!
//! The crate is pure: no file, no clock, no environment; the system's zone database is passed in.
//! All arithmetic is on whole seconds and day numbers of the years 1 to 9999. Occurrences are found
//! by seeking, not by iterating from the start, and a [`StepBudget`](rule::StepBudget) from the
//! caller bounds the cost of hostile input.
//!
//! | module | purpose |
//! |---|---|
//! | `civil` | civil times, instants, dates, weekdays |
//! | `value` | the time values of RFC 5545: their texts and back |
//! | `rule` | recurrence rules: parsing, occurrences, ends, bounds |
//! | `zone` | time zones: system zones, time zone definitions, the meaning of a TZID |
//! | `series` | a master with its exceptions and overrides, compiled |
//! | `varint` | the numbers of serialised rules and series |
//!
//! ```
//! use larder_time::rule::Rule;
//! use larder_time::value::IcalDateTime;
//!
//! let start = IcalDateTime::parse("19750105T090000")?.civil;
//! let rule = Rule::parse("FREQ=MONTHLY;BYDAY=-1FR")?;
//! let at = IcalDateTime::parse("20260301")?.civil;
//! let next = rule.occurrences_from(start, at).next();
//! assert_eq!(next.map(|civil| civil.to_string()).as_deref(), Some("20260327T090000"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod civil;
pub mod rule;
pub mod series;
pub mod value;
pub mod varint;
pub mod zone;

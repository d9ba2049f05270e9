//! Time of calendars: clock times and moments, and the time values of RFC 5545.
//!
//! Everything here is pure: no file, no clock, no environment. All arithmetic is on whole seconds and
//! day numbers of the years 1 to 9999.

pub mod civil;
pub mod value;

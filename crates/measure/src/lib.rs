//! The instruments: what it takes to show, with numbers that anybody can make again, that Larder is
//! fast and small.
//!
//! So far these are the generators ([`generate`]), because a measurement needs input of any size
//! that is the same on every machine, and that no one's real address book has to be given away for;
//! what a command costs ([`run`](mod@run)), Larder or another; and what a query log shows
//! ([`queries`]), with charts ([`chart`]) on a page ([`page`]).
//!
//! It is no part of what Larder does for a person: nothing here is on the way from bytes to
//! answers. It is apart so that the crates on that way carry no code that exists only to watch
//! them.

pub mod calendar_workload;
pub mod chart;
pub mod html_page;
pub mod process_cost;
pub mod query_log;

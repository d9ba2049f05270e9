//! The instruments: reproducible measurements of Larder's speed and memory.
//!
//! No crate that processes data depends on this one, and those crates contain no code that exists
//! only for measurements. Test data comes from `larder-generate`.
//!
//! | module | purpose |
//! |---|---|
//! | `process_cost` | the cost of a command, Larder's or another program's |
//! | `command_signals` | signals that are meant for a measured command |
//! | `memory_map` | the memory of a process by mapping |
//! | `memory_timeline` | memory and processor time of a tree of processes over time |
//! | `benchmark_results` | results that benchmark scripts leave, and their comparison |
//! | `message_phases` | phases of a program by its messages |
//! | `alloc_log` | the recording of allocator calls, and its analysis |
//! | `query_log` | the analysis of a query log |
//! | `calendar_workload` | a workload: paging through a calendar, a working day |
//! | `chart` | charts as SVG |
//! | `page_section` | sections of a page that a benchmark writes anew |
//! | `measure_report` | the report of an instrument, as text and as a page |
//! | `html_page` | a self-contained HTML page of texts, tables and charts |

pub mod alloc_log;
pub mod benchmark_results;
pub mod calendar_workload;
pub mod chart;
pub mod command_signals;
pub mod html_page;
pub mod measure_report;
pub mod memory_map;
pub mod memory_timeline;
mod message_phases;
pub mod page_section;
pub mod process_cost;
pub mod query_log;

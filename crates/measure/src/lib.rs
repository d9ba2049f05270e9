//! The instruments: reproducible measurements of Larder's speed and memory.
//!
//! No crate that processes data depends on this one, and those crates contain no code that exists
//! only for measurements. Test data comes from `larder-generate`.
//!
//! | module | purpose |
//! |---|---|
//! | `process_cost` | the cost of a command, Larder's or another program's |
//! | `query_log` | the analysis of a query log |
//! | `calendar_workload` | a workload: paging through a calendar, a working day |
//! | `chart` | charts as SVG |
//! | `page_section` | sections of a page that a benchmark writes anew |
//! | `html_page` | a self-contained HTML page of texts, tables and charts |

pub mod calendar_workload;
pub mod chart;
pub mod html_page;
pub mod page_section;
pub mod process_cost;
pub mod query_log;

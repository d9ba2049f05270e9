//! Tests of the library from outside, as nothing can link it. `crates/cli/tests/alloc_log.rs` runs
//! programs with it.
//!
//! | module | content |
//! |---|---|
//! | `hook_functions` | the functions that the hooks reach |
//! | `idle_times` | the time for which a thread has waited in vain |
//! | `sample_distances` | the distribution of the distances between samples |

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]
#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]

mod hook_functions;
mod idle_times;
mod sample_distances;

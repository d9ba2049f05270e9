//! The allocation log: the recording of every allocator call of a program, and its analysis.
//!
//! A program is started with the recorder (`larder-alloclog`) in it, which writes each call into a
//! ring of shared memory. The collector here reads the rings, replaces addresses by the ages of
//! objects, and writes a log of about a third of a byte for each call. `docs/alloclog.md` describes
//! the file.
//!
//! | module | purpose |
//! |---|---|
//! | `ring_layout` | the layout of the ring; the same file as in the recorder |
//! | `ring_reader` | the collector's end of a ring |
//! | `ring_socket` | the socket to which processes send their rings |
//! | `shared_pages` | tables that processes share until they differ |
//! | `address_table` | live objects by address |
//! | `call_token` | the codes of calls in a log |
//! | `process_encoder` | the calls of a process, from events to tokens |
//! | `log_block` | the blocks of a log |
//! | `log_file` | a log on the disk |
//! | `live_table` | live objects while a log is read |
//! | `call_decoder` | the calls of a process, from tokens to a visitor |
//! | `call_times` | the times of calls |
//! | `call_statistics` | counts, sizes and lifetimes |
//! | `live_curve` | live memory over calls, as points to draw |
//! | `alloc_subject` | an analysed process, which a report is about |
//! | `number_series` | the values of a number that a program names |
//! | `analysis` | the analysis of a process |
//! | `end_point` | the point at which the calls of a process end in its log |
//! | `findings` | sentences that say what stands out |
//! | `live_charts` | charts of live and requested memory |
//! | `phase_charts` | charts of phases |
//! | `phase_report` | phases in a report |
//! | `quantity_table` | tables of quantities of one subject, or of two |
//! | `lifetime_report` | lifetimes in a report |
//! | `report` | the report, for text and for a page |
//! | `json_report` | the figures of a log as JSON |
//! | `replay` | the replay of a log on another allocator |
//! | `replay_step` | the steps of a replay; the same file as in the recorder |
//! | `replay_report` | the report of replays |
//! | `process_list` | the processes of a log in a report |
//! | `recorded_command` | the command of a recording, and its start |
//! | `recorded_process` | a process as the system shows it |
//! | `awaited_forks` | forks whose children have not appeared |
//! | `awaited_programs` | programs that have not sent a ring |
//! | `privileged_program` | programs with rights of their own, into which nothing is loaded |
//! | `program_features` | features of a program for which a recording needs a hint |
//! | `static_program` | programs into which nothing can be loaded |
//! | `process_maps` | the mappings of a process |
//! | `program_code` | the code of a program, by its file |
//! | `stack_unwinder` | the call stacks of a process, from words to frames |
//! | `call_stacks` | the bytes of each call stack |
//! | `function_names` | the functions of frames |
//! | `stack_profile` | bytes by function and by call path |
//! | `stack_report` | call stacks in a report |
//! | `flame_graphs` | their flame graphs |
//! | `memory_samples` | which samples of the memory of processes are written |
//! | `message_writer` | a process as the possible writer of a message |
//! | `recording_log` | the log while it is written |
//! | `preload_list` | the libraries that a program loads before its own |
//! | `ring_process` | a process image whose ring is read |
//! | `unrecorded_processes` | processes that are not recorded |
//! | `wake_pipe` | a pipe that ends the sleep of the collector |
//! | `recording` | the recording of a command |

mod address_table;
mod alloc_subject;
mod analysis;
mod awaited_forks;
mod awaited_programs;
mod call_decoder;
mod call_stacks;
mod call_statistics;
mod call_times;
mod call_token;
mod end_point;
mod findings;
mod flame_graphs;
mod function_names;
mod json_report;
mod large_sizes;
mod lifetime_report;
mod live_charts;
mod live_curve;
mod live_table;
mod log_block;
mod log_file;
mod memory_prefetch;
mod memory_samples;
mod message_writer;
mod number_series;
mod phase_charts;
mod phase_report;
mod preload_list;
mod privileged_program;
mod process_encoder;
mod process_list;
mod process_maps;
mod program_code;
mod program_features;
mod quantity_table;
mod recorded_command;
mod recorded_process;
mod recording;
mod recording_log;
mod replay;
mod replay_report;
#[path = "../../alloclog/src/replay_step.rs"]
#[allow(dead_code, unreachable_pub)] // The recorder uses the other half.
mod replay_step;
mod report;
#[path = "../../alloclog/src/ring_layout.rs"]
#[allow(dead_code, unreachable_pub)] // The recorder uses the other half.
mod ring_layout;
mod ring_process;
mod ring_reader;
mod ring_socket;
mod shared_pages;
mod small_sizes;
mod stack_profile;
mod stack_report;
mod stack_unwinder;
mod static_program;
#[cfg(test)]
mod tests;
mod unrecorded_processes;
mod wake_pipe;

pub use self::alloc_subject::{AllocSubject, call_functions, function_name};
pub use self::analysis::{AllocAnalysis, PeakMemory, PhaseStatistics, analyse_process};
pub use self::call_decoder::LifetimeClock;
pub use self::call_stacks::{CallStacks, StackBytes};
pub use self::call_statistics::{CallStatistics, LifetimeHistogram, LifetimeShares};
pub use self::function_names::FunctionNames;
pub use self::json_report::report_json;
pub use self::live_curve::CurvePoint;
pub use self::log_block::{
    ProcessEnd, ProcessStart, RecordingEnd, RssSample, StackFrame, StackModule,
};
pub use self::log_file::{AllocLog, LogDamage, LoggedProcess};
pub use self::number_series::{NumberPoint, NumberSeries};
pub use self::privileged_program::is_privileged_program;
pub use self::program_features::{has_address_sanitizer, is_python_program, is_recorder};
pub use self::recorded_command::{BackgroundNotice, RecordingOptions};
pub use self::recording::{AbandonedProcess, RecordingSummary, record_command};
pub use self::replay::{ReplayOptions, ReplayResult, ReplaySample, find_allocator, replay_process};
pub use self::replay_report::{NamedReplay, replay_json, replay_report};
pub use self::report::build_report;
pub use self::ring_layout::RingOperation;
pub use self::stack_profile::StackProfile;
pub use self::static_program::{find_program, is_static_program};
pub use self::unrecorded_processes::{UnrecordedProcess, UnrecordedReason};

use crate::chart::MeasureUnit;
use std::io;

/// A failure to record a command, or to read a log.
#[derive(Debug, thiserror::Error)]
pub enum AllocLogError {
    /// There is no command to record.
    #[error("no command to record")]
    NoCommand,
    /// The command cannot be started.
    #[error("{0}: {1}")]
    Command(String, #[source] io::Error),
    /// The end of the command cannot be awaited.
    #[error("cannot wait for the command: {0}")]
    Wait(#[source] io::Error),
    /// A library cannot be loaded into a program.
    #[error("{0} cannot be loaded into the program: {1}")]
    Preload(String, #[source] io::Error),
    /// There is no socket at which processes send their rings.
    #[error("cannot listen for the processes of the command: {0}")]
    Socket(#[source] io::Error),
    /// The calls cannot be replayed.
    #[error("cannot replay the calls: {0}")]
    Replay(#[source] io::Error),
    /// The process allocated nothing.
    #[error("process {0} allocated nothing, so that there is nothing to replay")]
    NoAllocation(usize),
    /// The calls need more memory than there is.
    #[error(
        "the calls have {} live at their peak, and {} of memory are available",
        MeasureUnit::Bytes.format(*needed as f64),
        MeasureUnit::Bytes.format(*available as f64)
    )]
    TooLarge {
        /// The peak of live bytes.
        needed: u64,
        /// Bytes that a process can take.
        available: u64,
    },
    /// The library of an allocator has no `malloc`, or cannot be loaded.
    #[error("the library has no malloc, or cannot be loaded into a program")]
    Allocator,
    /// The log cannot be read.
    #[error("cannot read the log: {0}")]
    Read(#[source] io::Error),
    /// The log is a pipe or a device, which cannot be read twice.
    #[error("a log is read several times, so it has to be a regular file")]
    NoFile,
    /// The file is no log.
    #[error("not a log of larder measure record")]
    NoLog,
    /// The log is of another version.
    #[error("the log has version {0}; this program reads version 1")]
    Version(u32),
    /// The content of a block is not as it should be.
    #[error("the log is damaged: {0}")]
    Content(String),
}

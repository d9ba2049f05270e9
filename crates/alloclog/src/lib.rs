//! The recorder of allocator calls: a library that is loaded into a program before its own
//! libraries (`LD_PRELOAD`) and passes each call of an allocator on to the collector, which is the
//! process of `larder measure record`.
//!
//! Each call becomes an event of one to four words in a ring of shared memory, one for each
//! process. The order in which writers reserve words is the order of the log. Nothing is ever
//! flushed: the ring outlives a process that is killed. No lock is taken, no thread started, no
//! memory allocated, and no function of this library panics (a test examines its code).
//!
//! The library is a crate of its own because it runs inside other programs, where everything above
//! holds; only x86-64 Linux with glibc is supported, elsewhere the library is empty.
//!
//! | module | purpose |
//! |---|---|
//! | `ring_layout` | the layout of the ring; the collector includes the same file |
//! | `syscall` | system calls that leave `errno` alone |
//! | `real_functions` | the functions that the hooks replace |
//! | `loaded_symbol` | functions of libraries that only a part of the program sees |
//! | `ring_connection` | a new ring, made known to the collector |
//! | `ring_position` | the next free word of a ring |
//! | `idle_time` | the time for which a thread has waited in vain |
//! | `forking_thread` | the threads that are about to fork |
//! | `process_ring` | the ring of this process, from its opening to its end |
//! | `ring_writer` | events into the ring |
//! | `process_fork` | the forks of the process, and the rings of their children |
//! | `process_exit` | the end of the process by its own will |
//! | `stack_sample` | the call stacks of some allocations |
//! | `sample_distance` | the random distances between them |
//! | `hooks` | the allocator of C |
//! | `operator_hooks` | the operators of C++ |
//! | `operator_functions` | the functions to which they are passed on |
//! | `program_marks` | marks and numbers that the program emits |
//! | `replay` | the replay of recorded calls on another allocator |
//! | `replay_step` | the steps of a replay; the reader of logs includes the same file |
//! | `library_load` | libraries that the program loads as it runs |

#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
// Hooks take and return raw pointers, by the definition of the functions that they replace.
#![allow(unsafe_code)]

mod forking_thread;
mod hooks;
mod idle_time;
mod library_load;
mod loaded_symbol;
mod operator_functions;
mod operator_hooks;
mod process_exit;
mod process_fork;
mod process_ring;
mod program_marks;
mod real_functions;
mod replay;
#[allow(dead_code, unreachable_pub)] // The reader of logs uses the other half.
mod replay_step;
mod ring_connection;
#[allow(dead_code, unreachable_pub)] // The collector uses the other half.
mod ring_layout;
mod ring_position;
mod ring_writer;
mod sample_distance;
mod stack_sample;
mod syscall;

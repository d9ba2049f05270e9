//! End-to-end tests: the binary is run as a person would run it, in a private home. All modules are
//! one test binary, so that it is linked once.
//!
//! | module | content |
//! |---|---|
//! | `test_home` | no test: a private home, and the program run in it |
//! | `import`, `export`, `maintenance`, `item_changes`, `calendar_changes`, `zone_changes`, `merge` | subcommands that write |
//! | `find_and_show`, `calendar_queries`, `agenda`, `watch` | subcommands that read |
//! | `help`, `output_formats` | help, manual pages, completions; formats, widths, hints |
//! | `saved_searches` | saved searches, and `@name` in search lines |
//! | `output_paths` | files that the user names as outputs, for each option that takes one |
//! | `alloc_log` | the recording of allocator calls |
//! | `alloc_analysis` | the analysis of allocation logs |
//! | `alloc_recording` | the recording of forks, daemons and damaged rings |
//! | `alloc_programs` | the recording of programs that go their own ways |
//! | `alloc_failures` | recordings in which larder is stopped, killed, or at its limits |
//! | `call_stacks` | the call stacks of allocations |
//! | `memory_timeline` | the memory of commands over time |
//! | `measure_report` | the results of benchmarks |
//! | `query_log`, `measure_queries`, `measure_browse` | the query log and the instruments |
//! | `error_messages`, `argument_fuzzing` | common mistakes, and arbitrary arguments |
//! | `failing_calls`, `restore_interruption` | calls of the system that fail, restores that are killed or interrupted |
//! | `robustness`, `crash_recovery`, `full_disk`, `concurrency` | failing stores, oversized input, crashes, several processes |
//! | `unusual_input`, `safe_display` | input against the letter of the RFCs, or made to deceive |
//! | `corpora` | address books and calendars of other programs, byte for byte |
//! | `mail_against_mu`, `mail_against_notmuch`, `word_rules` | messages that queries find, in comparison with mu and with notmuch |
//! | `adoption` | labels and saved searches of mu and notmuch |
//! | `commits` | commits of git repositories |
//! | `store_checks` | `check` of all stores, and searches beside a damaged one |
//! | `lost_registrations` | the indexes beside a `data.db` that is missing, older or foreign |
//! | `mail_lists` | lists of messages and threads |
//! | `mail_sources`, `mail_file_sources` | sources of mail and commits |
//! | `eds_clients` | unmodified client programs of evolution-data-server |
//! | `command_server` | no test: the commands of Mercurial, as in the tests of `larder-hg` |
//! | `source_tree` | no test: the sources as syntax trees |
//! | `naming`, `module_graph`, `kind_places` | names, the form of comments, cycles and tables of modules, the places of a kind |
//! | `invariants`, `readme` | promises of the sources, of the README and of docs/tour.md |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "the helpers of tests are tests too"
)]

mod adoption;
mod agenda;
mod alloc_analysis;
mod alloc_failures;
mod alloc_log;
mod alloc_programs;
mod alloc_recording;
mod argument_fuzzing;
mod calendar_changes;
mod calendar_queries;
mod call_stacks;
#[path = "../../hg/tests/command_server.rs"]
mod command_server;
mod commits;
mod concurrency;
mod contact_changes;
mod corpora;
mod correspondents;
mod crash_recovery;
mod eds_clients;
mod error_messages;
mod export;
mod failing_calls;
mod find_and_show;
mod foreign_usage;
mod full_disk;
mod git_cinnabar;
mod help;
mod import;
mod invariants;
mod item_changes;
mod kind_places;
mod labels;
mod lost_registrations;
mod mail_against_mu;
mod mail_against_notmuch;
mod mail_file_sources;
mod mail_lists;
mod mail_queries;
mod mail_sources;
mod mail_watch;
mod maintenance;
mod measure_browse;
mod measure_queries;
mod measure_report;
mod memory_timeline;
mod mercurial;
mod mercurial_clones;
mod mercurial_faults;
mod mercurial_repositories;
mod mercurial_servers;
mod merge;
mod message_files;
mod module_graph;
mod naming;
mod output_formats;
mod output_paths;
mod purge;
mod query_log;
mod raw_output;
mod readme;
mod restore_interruption;
mod robustness;
mod safe_display;
mod saved_searches;
mod source_tree;
mod store_checks;
mod test_home;
mod unusual_input;
mod watch;
mod word_rules;
mod zone_changes;

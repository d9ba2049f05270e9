//! `larder`: the command line. Stores a person's contacts and calendars, and answers queries.
//!
//! The binary is the only place that reads the environment, the home directory, the clock and the
//! terminal, and it contains no logic: a subcommand parses arguments, calls a library crate and
//! prints.
//!
//! | module | content |
//! |---|---|
//! | `args` | global options, and the rewriting of negated search terms before clap reads them |
//! | `commands` | one file for each subcommand; parts of one are in a folder of its name |
//! | `commit_store` | the store of commits, and the registered repositories |
//! | `config` | `config.toml` |
//! | `context` | the settings from options, environment and configuration: paths, locale, zone |
//! | `machine_time` | the clock, the time zone and the zone data of the machine |
//! | `failure` | the error type: exit code, message, hints |
//! | `usage_error` | clap's errors in the same form |
//! | `suggestion` | the known word nearest to a mistyped one |
//! | `interrupt` | Control-C and SIGTERM |
//! | `item_ids` | from an ID on the command line to an item; names of items in messages |
//! | `label_dump_file` | reading a file of labels |
//! | `mail_rules` | the rules that a synchronisation runs |
//! | `mail_store` | the store of mail, and the registered maildirs |
//! | `message_file` | the file of a mail message that a user names |
//! | `occurrence_args` | `--scope`, `--occurrence` and `ID/RECURRENCE-ID` |
//! | `contact_args` | the options that describe a contact |
//! | `byte_size` | sizes such as `32M` in options and in the configuration |
//! | `output` | standard output and messages on standard error |
//! | `output_path` | files that the user names as outputs |
//! | `table` | aligned columns that fit the terminal |
//! | `time_display` | times and recurrence rules as text |
//! | `screen` | lines redrawn in place on a terminal |
//! | `terminal_echo` | the echo of keys, switched off beside such lines |
//! | `source_names` | the names of sources in the indexes |
//! | `program_output` | the output of another mail program |
//! | `foreign_usage` | the names that other programs give to commands, options and values |
//! | `git_cinnabar` | larder as git-cinnabar |
//! | `git_remote_hg` | larder as git's remote helper for Mercurial |
//! | `git_progress` | the progress of both, and their notices |
//! | `git_watch` | the end of the remote helper when git is gone |
//! | `hg_lookup` | from changesets to commits, and back |
//! | `hg_settings` | the settings of git-cinnabar |
//! | `hg_servers` | how servers of Mercurial are reached |
//! | `git_program` | git, as repositories are read through it |
//! | `progress` | progress bars |
//! | `query_log_file` | the file that the query log is written to |

mod args;
mod byte_size;
mod commands;
mod commit_store;
mod config;
mod contact_args;
mod context;
mod failure;
mod foreign_usage;
mod git_cinnabar;
mod git_program;
mod git_progress;
mod git_remote_hg;
mod git_watch;
mod hg_lookup;
mod hg_servers;
mod hg_settings;
mod interrupt;
mod item_ids;
mod label_dump_file;
mod machine_time;
mod mail_rules;
mod mail_store;
mod message_file;
mod occurrence_args;
mod output;
mod output_path;
mod program_output;
mod progress;
mod query_log_file;
mod screen;
mod source_names;
mod suggestion;
mod table;
mod terminal_echo;
mod time_display;
mod usage_error;

use std::process::ExitCode;

fn main() -> ExitCode {
    if is_named(git_remote_hg::PROGRAM_NAME) {
        return git_remote_hg::run(std::env::args_os());
    }
    if is_named(git_cinnabar::PROGRAM_NAME) {
        return git_cinnabar::run(std::env::args_os());
    }
    let (command_name, args) = match commands::parse_command_line(std::env::args_os()) {
        Ok(args) => args,
        Err(usage) => {
            let command = commands::clap_command();
            return usage_error::print_and_exit_code(&usage, command, std::env::args_os());
        }
    };
    let quiet = args.global.quiet;
    let mut context = match context::CommandContext::new(args.global, &command_name) {
        Ok(context) => context,
        Err(failure) => return failure.print_and_exit_code(quiet),
    };
    let ended = args.command.run(&mut context);
    context.flush_query_log();
    match ended {
        Ok(code) => ExitCode::from(code.exit_code()),
        Err(failure) => context.with_nearest_collection(failure).print_and_exit_code(quiet),
    }
}

/// Returns whether the program was started under another name.
fn is_named(name: &str) -> bool {
    let program = std::env::args_os().next();
    program
        .is_some_and(|path| std::path::Path::new(&path).file_name().is_some_and(|own| own == name))
}

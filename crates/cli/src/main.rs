//! `larder`: keeps what a person owns, and answers any question about it at once.
//!
//! The binary is the only place that reads the environment, the home directory, the clock and the
//! terminal, and it holds no logic: each subcommand (`commands/`) is arguments, a call into a
//! library crate, and printing. What was typed is `args`; what it means is `context`; what is shown
//! is `output`; who is to blame is `failure`.

mod args;
mod byte_size;
mod commands;
mod config;
mod context;
mod failure;
mod interrupt;
mod item_ids;
mod occurrence_args;
mod output;
mod progress;
mod query_log_file;
mod screen;
mod table;
mod time_display;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::CliArgs::try_parse_from(args::rewrite_negations(std::env::args_os())) {
        Ok(args) => args,
        Err(usage) => return failure::print_usage_error(&usage),
    };
    let quiet = args.global.quiet;
    let mut context = match context::CommandContext::new(args.global) {
        Ok(context) => context,
        Err(failure) => return failure.print_and_exit_code(quiet),
    };
    let ended = args.command.run(&mut context);
    context.flush_query_log();
    match ended {
        Ok(code) => ExitCode::from(code.exit_code()),
        Err(failure) => failure.with_nearest_collection(&context).print_and_exit_code(quiet),
    }
}

//! `larder`: keeps what a person owns, and answers any question about it at once.
//!
//! The binary is the only place that reads the environment, the home directory, the clock and the
//! terminal, and it holds no logic: each subcommand (`commands/`) is arguments, a call into a library
//! crate, and printing. What was typed is `args`; what it means is `context`; what is shown is `output`;
//! who is to blame is `failure`.

mod args;
mod commands;
mod config;
mod context;
mod failure;
mod ids;
mod interrupt;
mod occurrences;
mod output;
mod progress;
mod query_log;
mod screen;
mod size;
mod table;
mod when;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::Args::try_parse_from(args::negations(std::env::args_os())) {
        Ok(args) => args,
        Err(usage) => return failure::usage(&usage),
    };
    let quiet = args.global.quiet;
    let mut context = match context::Context::new(args.global) {
        Ok(context) => context,
        Err(failure) => return failure.report(quiet),
    };
    let ended = args.command.run(&mut context);
    context.end_log();
    match ended {
        Ok(code) => ExitCode::from(code.number()),
        Err(failure) => failure.with_nearest(&context).report(quiet),
    }
}

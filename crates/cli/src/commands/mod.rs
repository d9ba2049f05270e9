//! The subcommands, one file each: a struct of arguments whose comment is the manual, and one function.

mod add;
mod backup;
mod check;
mod collections;
mod completions;
mod edit;
mod export;
mod fields;
mod find;
mod import;
mod item;
mod log;
mod man;
mod measure;
mod purge;
mod remove;
mod restore;
mod show;
mod undo;

use crate::context::Context;
use crate::failure::{Code, Failure};

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Import(import::Import),
    Find(find::Find),
    Show(show::Show),
    Add(add::Add),
    Edit(edit::Edit),
    Remove(remove::Remove),
    Undo(undo::Undo),
    Log(log::Log),
    Purge(purge::Purge),
    Collections(collections::Collections),
    Export(export::Export),
    Fields(fields::Fields),
    Check(check::Check),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Measure(measure::Measure),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let code = match self {
            Command::Import(args) => args.run(context),
            Command::Find(args) => args.run(context),
            Command::Show(args) => args.run(context),
            Command::Add(args) => args.run(context),
            Command::Edit(args) => args.run(context),
            Command::Remove(args) => args.run(context),
            Command::Undo(args) => args.run(context),
            Command::Log(args) => args.run(context),
            Command::Purge(args) => args.run(context),
            Command::Collections(args) => args.run(context),
            Command::Export(args) => args.run(context),
            Command::Fields(args) => args.run(context),
            Command::Check(args) => args.run(context),
            Command::Backup(args) => args.run(context),
            Command::Restore(args) => args.run(context),
            Command::Measure(args) => args.run(context),
            Command::Completions(args) => args.run(context),
            Command::Man(args) => args.run(context),
        }?;
        context.out.flush()?;
        Ok(code)
    }
}

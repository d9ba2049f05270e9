//! The subcommands, one file each: a struct of arguments whose comment is the manual, and one function.

mod add;
mod agenda;
mod asked;
mod backup;
mod browse;
mod check;
mod collections;
mod completions;
mod component;
mod duplicates;
mod edit;
mod expand;
mod export;
mod fields;
mod find;
mod import;
mod item;
mod listed;
mod log;
mod man;
mod measure;
mod merge;
mod purge;
mod queries;
mod queries_json;
mod remove;
mod restore;
mod serve;
mod show;
mod told;
mod undo;
mod watch;

use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Import(import::Import),
    Find(find::Find),
    Agenda(agenda::Agenda),
    Watch(watch::Watch),
    Show(show::Show),
    Add(add::Add),
    Edit(edit::Edit),
    Merge(merge::Merge),
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
    Serve(serve::Serve),
    Measure(measure::Measure),
    Completions(completions::Completions),
    Man(man::Man),
}

/// What most verbs can print.
const USUAL: &[Format] = &[Format::Text, Format::Json];
const WITH_RAW: &[Format] = &[Format::Text, Format::Json, Format::Raw];
const TEXT: &[Format] = &[Format::Text];

impl Command {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let supported = self.formats();
        if !supported.contains(&context.format) {
            return Err(unsupported(context.format, supported));
        }
        let code = match self {
            Command::Import(args) => args.run(context),
            Command::Find(args) => args.run(context),
            Command::Agenda(args) => args.run(context),
            Command::Watch(args) => args.run(context),
            Command::Show(args) => args.run(context),
            Command::Add(args) => args.run(context),
            Command::Edit(args) => args.run(context),
            Command::Merge(args) => args.run(context),
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
            Command::Serve(args) => args.run(context),
            Command::Measure(args) => args.run(context),
            Command::Completions(args) => args.run(context),
            Command::Man(args) => args.run(context),
        }?;
        context.out.flush()?;
        Ok(code)
    }

    /// The formats in which this verb, used in this way, can answer.
    fn formats(&self) -> &'static [Format] {
        match self {
            Command::Find(find) if find.lists() => WITH_RAW,
            Command::Agenda(agenda) if agenda.is_busy() => WITH_RAW,
            Command::Log(log) if log.item() => WITH_RAW,
            Command::Show(_) => WITH_RAW,
            Command::Export(export) => export.formats(),
            Command::Measure(measure) if measure.generates() => TEXT,
            Command::Completions(_) | Command::Man(_) => TEXT,
            _ => USUAL,
        }
    }
}

fn unsupported(format: Format, supported: &[Format]) -> Failure {
    let names: Vec<&str> = supported.iter().map(|format| format.name()).collect();
    let what = format!("this cannot be printed as {}", format.name());
    Failure::new(Kind::Usage, what).hint(format!("--format takes {} here", names.join(" or ")))
}

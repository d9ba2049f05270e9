//! The subcommands, one file each: a struct of arguments whose comment is the manual, and one
//! function.

mod add;
mod agenda;
mod backup;
mod calendar_item;
mod check;
mod collections;
mod completions;
mod duplicate_groups;
mod edit;
mod export;
mod fields;
mod find;
mod import;
mod item_format;
mod log;
mod man;
mod measure;
mod merge;
mod occurrence_list;
mod purge;
mod query_args;
mod query_log_report;
mod query_log_report_json;
mod remove;
mod restore;
mod serve;
mod show;
mod undo;
mod view_workload;
mod watch;
mod watch_screen;
mod watch_stream;

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Import(import::ImportArgs),
    Find(find::FindArgs),
    Agenda(agenda::AgendaArgs),
    Watch(watch::WatchArgs),
    Show(show::ShowArgs),
    Add(add::AddArgs),
    Edit(edit::EditArgs),
    Merge(merge::MergeArgs),
    Remove(remove::RemoveArgs),
    Undo(undo::UndoArgs),
    Log(log::LogArgs),
    Purge(purge::PurgeArgs),
    Collections(collections::CollectionsArgs),
    Export(export::ExportArgs),
    Fields(fields::FieldsArgs),
    Check(check::CheckArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Serve(serve::ServeArgs),
    Measure(measure::MeasureArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// What most verbs can print.
const USUAL_FORMATS: &[OutputFormat] = &[OutputFormat::Text, OutputFormat::Json];
const FORMATS_WITH_RAW: &[OutputFormat] =
    &[OutputFormat::Text, OutputFormat::Json, OutputFormat::Raw];
const TEXT_FORMAT: &[OutputFormat] = &[OutputFormat::Text];

impl Command {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let supported = self.supported_formats();
        if !supported.contains(&context.format) {
            return Err(unsupported_format_failure(context.format, supported));
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
    fn supported_formats(&self) -> &'static [OutputFormat] {
        match self {
            Command::Find(find) if find.is_item_list() => FORMATS_WITH_RAW,
            Command::Agenda(agenda) if agenda.is_busy() => FORMATS_WITH_RAW,
            Command::Log(log) if log.is_about_item() => FORMATS_WITH_RAW,
            Command::Show(_) => FORMATS_WITH_RAW,
            Command::Export(export) => export.supported_formats(),
            Command::Measure(measure) if measure.is_generator() => TEXT_FORMAT,
            Command::Completions(_) | Command::Man(_) => TEXT_FORMAT,
            _ => USUAL_FORMATS,
        }
    }
}

fn unsupported_format_failure(format: OutputFormat, supported: &[OutputFormat]) -> CommandFailure {
    let names: Vec<&str> = supported.iter().map(|format| format.name()).collect();
    let what = format!("this cannot be printed as {}", format.name());
    CommandFailure::new(FailureKind::Usage, what)
        .with_hint(format!("--format takes {} here", names.join(" or ")))
}

//! The subcommands, one file for each: a struct of arguments, whose documentation is the help text,
//! and a function that runs it. Parts of a subcommand are in a folder of its name.

mod add;
mod adopt;
mod agenda;
mod backup;
mod check;
mod collections;
mod completions;
mod edit;
mod export;
mod fields;
mod find;
mod hg;
mod import;
mod labels;
mod log;
mod man;
mod measure;
mod merge;
mod purge;
mod remove;
mod restore;
mod salvage;
mod save;
mod searches;
mod serve;
mod show;
mod sources;
mod sync;
mod undo;
mod watch;

use crate::args::{GlobalArgs, OutputFormat, rewrite_negations};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use clap::{CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;

/// Store contacts and calendars, index mail, and search all of it instantly, on your own machine
///
/// Import address books and calendars with `larder import FILE...`, then search: `larder find
/// anna`. Every change can be undone with `larder undo`.
#[derive(Debug, clap::Parser)]
#[command(
    name = "larder",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = EXIT_CODES_HELP
)]
pub(crate) struct CliArgs {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES_HELP: &str = "\
Exit codes: 0 success; 1 nothing found; 2 usage error; 3 some input was invalid and rejected; 4 the \
store cannot be used, or not all of it can be read; 5 a file or server cannot be reached; 130 interrupted.";

/// The line in place of the global options in the help of a subcommand.
const GLOBAL_OPTIONS_HELP: &str = "`larder help` describes the global options: --data-dir, \
--format, --quiet, --color, --query-log.";

/// Parses the arguments of the process. Returns the name of the subcommand, and all arguments.
pub(crate) fn parse_command_line(
    args: impl Iterator<Item = OsString>,
) -> Result<(String, CliArgs), clap::Error> {
    let mut matches = clap_command().try_get_matches_from(rewrite_negations(args))?;
    let name = matches.subcommand_name().unwrap_or_default().to_string();
    Ok((name, CliArgs::from_arg_matches_mut(&mut matches)?))
}

/// Returns the whole command line. Subcommands do not list the global options in their help.
pub(crate) fn clap_command() -> clap::Command {
    let command = CliArgs::command();
    let global: Vec<clap::Arg> =
        command.get_arguments().map(|arg| arg.clone().hide(true)).collect();
    command.mut_subcommands(|subcommand| hide_global_options(subcommand, &global))
}

fn hide_global_options(mut command: clap::Command, global: &[clap::Arg]) -> clap::Command {
    command = command.args(global);
    if command.get_after_help().is_none() {
        command = command.after_help(GLOBAL_OPTIONS_HELP);
    }
    command.mut_subcommands(|subcommand| hide_global_options(subcommand, global))
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Import(import::ImportArgs),
    Find(find::FindArgs),
    Agenda(agenda::AgendaArgs),
    Watch(watch::WatchArgs),
    Show(show::ShowArgs),
    Save(save::SaveArgs),
    Add(add::AddArgs),
    Edit(edit::EditArgs),
    Merge(merge::MergeArgs),
    Remove(remove::RemoveArgs),
    Undo(undo::UndoArgs),
    Log(log::LogArgs),
    Purge(purge::PurgeArgs),
    Collections(collections::CollectionsArgs),
    Export(export::ExportArgs),
    Sources(sources::SourcesArgs),
    Sync(sync::SyncArgs),
    Searches(searches::SearchesArgs),
    Labels(labels::LabelsArgs),
    Adopt(adopt::AdoptArgs),
    Fields(fields::FieldsArgs),
    Check(check::CheckArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Salvage(salvage::SalvageArgs),
    Serve(serve::ServeArgs),
    Hg(hg::HgArgs),
    Measure(measure::MeasureArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// The formats of most subcommands.
const USUAL_FORMATS: &[OutputFormat] = &[OutputFormat::Text, OutputFormat::Json];
const FORMATS_WITH_RAW: &[OutputFormat] =
    &[OutputFormat::Text, OutputFormat::Json, OutputFormat::Raw];
/// The formats of lists of messages.
const MESSAGE_FORMATS: &[OutputFormat] =
    &[OutputFormat::Text, OutputFormat::Json, OutputFormat::Raw, OutputFormat::Mbox];
/// The formats of messages and other items.
const PAGE_FORMATS: &[OutputFormat] = &[
    OutputFormat::Text,
    OutputFormat::Json,
    OutputFormat::Raw,
    OutputFormat::Html,
    OutputFormat::Mbox,
];
/// The formats of addresses, those of other programs included.
const ADDRESS_FORMATS: &[OutputFormat] = &[
    OutputFormat::Text,
    OutputFormat::Json,
    OutputFormat::Mutt,
    OutputFormat::MuttAlias,
    OutputFormat::Csv,
    OutputFormat::Org,
    OutputFormat::Bbdb,
    OutputFormat::Vcard,
];
const TEXT_FORMAT: &[OutputFormat] = &[OutputFormat::Text];

impl Command {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let supported = self.supported_formats();
        if !supported.contains(&context.format) {
            return Err(unsupported_format_failure(context.format, supported));
        }
        let ended = self.dispatch(context).and_then(|code| {
            context.out.flush()?;
            Ok(code)
        });
        ended.map_err(|failure| match context.committed_operation() {
            Some(id) => failure
                .after_change(format_args!("the change was made as operation {id}"))
                .after_batches(id),
            None => failure,
        })
    }

    fn dispatch(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        match self {
            Command::Import(args) => args.run(context),
            Command::Find(args) => args.run(context),
            Command::Agenda(args) => args.run(context),
            Command::Watch(args) => args.run(context),
            Command::Show(args) => args.run(context),
            Command::Save(args) => args.run(context),
            Command::Add(args) => args.run(context),
            Command::Edit(args) => args.run(context),
            Command::Merge(args) => args.run(context),
            Command::Remove(args) => args.run(context),
            Command::Undo(args) => args.run(context),
            Command::Log(args) => args.run(context),
            Command::Purge(args) => args.run(context),
            Command::Collections(args) => args.run(context),
            Command::Export(args) => args.run(context),
            Command::Sources(args) => args.run(context),
            Command::Sync(args) => args.run(context),
            Command::Searches(args) => args.run(context),
            Command::Labels(args) => args.run(context),
            Command::Adopt(args) => args.run(context),
            Command::Fields(args) => args.run(context),
            Command::Hg(args) => args.run(context),
            Command::Check(args) => args.run(context),
            Command::Backup(args) => args.run(context),
            Command::Restore(args) => args.run(context),
            Command::Salvage(args) => args.run(context),
            Command::Serve(args) => args.run(context),
            Command::Measure(args) => args.run(context),
            Command::Completions(args) => args.run(context),
            Command::Man(args) => args.run(context),
        }
    }

    /// Returns the output formats that the subcommand supports with these options.
    fn supported_formats(&self) -> &'static [OutputFormat] {
        match self {
            Command::Find(find) if find.is_about_correspondents() => ADDRESS_FORMATS,
            Command::Find(find) if find.is_message_list() => MESSAGE_FORMATS,
            Command::Find(find) if find.is_item_list() => FORMATS_WITH_RAW,
            Command::Agenda(agenda) if agenda.is_busy() => FORMATS_WITH_RAW,
            Command::Log(log) if log.is_about_item() => FORMATS_WITH_RAW,
            Command::Show(_) => PAGE_FORMATS,
            Command::Export(export) => export.supported_formats(),
            Command::Measure(measure) if measure.is_generator() => TEXT_FORMAT,
            Command::Completions(_) | Command::Man(_) => TEXT_FORMAT,
            _ => USUAL_FORMATS,
        }
    }
}

/// Returns the names of the formats of a command with these arguments, if they are others than the
/// usual ones, which clap lists.
pub(crate) fn unusual_format_names(command: &str, args: &[String]) -> Option<Vec<&'static str>> {
    let formats = match command {
        "find" if args.iter().any(|arg| arg == "--correspondents") => ADDRESS_FORMATS,
        "find" if args.iter().any(|arg| arg == "message") => MESSAGE_FORMATS,
        "show" => PAGE_FORMATS,
        _ => return None,
    };
    Some(formats.iter().map(|format| format.name()).collect())
}

fn unsupported_format_failure(format: OutputFormat, supported: &[OutputFormat]) -> CommandFailure {
    let names: Vec<&str> = supported.iter().map(|format| format.name()).collect();
    let message = format!("--format {} is not supported by this command", format.name());
    let failure = CommandFailure::new(FailureKind::Usage, message)
        .with_hint(format!("use --format {}", names.join(" or ")));
    match format {
        OutputFormat::Mbox => failure.with_hint("mbox is for lists of messages: --kind message"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_path::{OutputFolder, OutputPath};
    use clap::builder::ValueParser;
    use std::any::TypeId;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    const PATH_ARGUMENTS: &str = include_str!("../../tests/path_arguments.txt");
    /// The names of values that are paths.
    const PATH_VALUES: &[&str] = &["FILE", "PATH", "DIR", "PAGE", "OUT", "OTHER", "LOG"];

    /// Collects the arguments of a command and of its subcommands that take a path.
    fn collect_path_arguments(
        command: &clap::Command,
        name: &str,
        found: &mut BTreeMap<String, ValueParser>,
    ) {
        for arg in command.get_arguments() {
            // The global options are arguments of the root.
            if !arg.get_action().takes_values() || (arg.is_global_set() && name != "larder") {
                continue;
            }
            let parser = arg.get_value_parser();
            let paths = [
                TypeId::of::<PathBuf>(),
                TypeId::of::<OsString>(),
                TypeId::of::<OutputPath>(),
                TypeId::of::<OutputFolder>(),
            ];
            let value = arg.get_value_names().and_then(|names| names.first());
            let is_named_so = value.is_some_and(|value| PATH_VALUES.contains(&value.as_str()));
            if is_named_so || paths.iter().any(|id| parser.type_id() == *id) {
                found.insert(format!("{name} {}", arg.get_id()), parser.clone());
            }
        }
        for subcommand in command.get_subcommands() {
            collect_path_arguments(subcommand, &format!("{name} {}", subcommand.get_name()), found);
        }
    }

    /// Every argument that takes a path is in the table, which the tests of outputs run, and an
    /// argument that names an output has the type that opens outputs.
    #[test]
    fn arguments_with_paths_are_classified() {
        let mut found = BTreeMap::new();
        collect_path_arguments(&clap_command(), "larder", &mut found);
        let mut known = BTreeMap::new();
        for row in PATH_ARGUMENTS.lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
            let mut cells = row.split(" | ");
            known.insert(cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        }
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, known.keys().copied().collect::<Vec<_>>());
        for (name, parser) in &found {
            let usage = known[name.as_str()];
            let expected = match usage {
                "output" | "new" | "log" => Some(TypeId::of::<OutputPath>()),
                "folder" => Some(TypeId::of::<OutputFolder>()),
                _ => None,
            };
            let is_output = [TypeId::of::<OutputPath>(), TypeId::of::<OutputFolder>()]
                .iter()
                .any(|id| parser.type_id() == *id);
            assert_eq!(is_output, expected.is_some(), "{name} is {usage}");
            assert!(expected.is_none_or(|id| parser.type_id() == id), "{name} is {usage}");
        }
    }
}

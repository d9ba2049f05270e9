//! `larder completions`.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use clap::CommandFactory as _;
use clap::ValueHint;
use clap_complete::Shell;

/// Print completions for a shell
///
///   larder completions bash > ~/.local/share/bash-completion/completions/larder
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        // The generator panics where it cannot write, so it writes to memory.
        let mut script = Vec::new();
        let mut command = without_file_names(super::CliArgs::command());
        clap_complete::generate(self.shell, &mut command, "larder", &mut script);
        context.out.print_bytes(&script)?;
        Ok(CommandStatus::Done)
    }
}

/// The names of values that are files or folders.
const FILE_VALUES: &[&str] = &["FILE", "PATH", "DIR", "PAGE", "OUT", "OTHER", "LOG", "FILE|TEXT"];

/// Shells complete file names for a value without a hint, also for the name of a collection or a
/// date.
fn without_file_names(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let names = arg.get_value_names().unwrap_or_default();
        let is_file = names.iter().any(|name| FILE_VALUES.contains(&name.as_str()));
        let is_free = arg.get_value_hint() == ValueHint::Unknown && arg.get_num_args().is_none();
        let takes_values = arg.get_action().takes_values();
        if is_file || !takes_values || !is_free { arg } else { arg.value_hint(ValueHint::Other) }
    });
    command.mut_subcommands(without_file_names)
}

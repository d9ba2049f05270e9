//! `larder completions`.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use clap::CommandFactory as _;
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
        clap_complete::generate(self.shell, &mut super::CliArgs::command(), "larder", &mut script);
        context.out.print_bytes(&script)?;
        Ok(CommandStatus::Done)
    }
}

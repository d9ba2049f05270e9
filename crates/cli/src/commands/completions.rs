//! `larder completions`.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::git_cinnabar;
use clap::CommandFactory as _;
use clap::ValueHint;
use clap_complete::Shell;

/// Print completions for a shell
///
///   larder completions bash > ~/.local/share/bash-completion/completions/larder
///   larder completions zsh --program git-cinnabar > ~/.zfunc/_git-cinnabar
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
    /// Complete the commands of this name of larder
    #[arg(long, value_name = "NAME", default_value = "larder")]
    program: CompletedProgram,
}

/// The names of larder that people type.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum CompletedProgram {
    Larder,
    GitCinnabar,
}

impl CompletionsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        // The generator panics where it cannot write, so it writes to memory.
        let mut script = Vec::new();
        let (name, command) = match self.program {
            CompletedProgram::Larder => ("larder", super::CliArgs::command()),
            CompletedProgram::GitCinnabar => {
                (git_cinnabar::PROGRAM_NAME, git_cinnabar::clap_command())
            }
        };
        let mut command = without_file_names(command);
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        if matches!((self.program, self.shell), (CompletedProgram::GitCinnabar, Shell::Bash)) {
            script.extend_from_slice(git_function(&command).as_bytes());
        }
        context.out.print_bytes(&script)?;
        Ok(CommandStatus::Done)
    }
}

/// Returns the function of bash that git's own completions call for `git cinnabar`.
fn git_function(command: &clap::Command) -> String {
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let names = names.join(" ");
    format!(
        "\n_git_cinnabar() {{\n    [ \"${{COMP_WORDS[COMP_CWORD-1]}}\" = cinnabar ] || return\n    \
         COMPREPLY=($(compgen -W \"{names}\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n"
    )
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

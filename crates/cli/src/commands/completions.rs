use crate::context::Context;
use crate::failure::{Code, Failure};
use clap_complete::Shell;

/// Print the completions for a shell
///
///   larder completions bash > ~/.local/share/bash-completion/completions/larder
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        // The generator panics where it cannot write, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::args::command(), "larder", &mut script);
        context.out.bytes(&script)?;
        Ok(Code::Done)
    }
}

//! `larder man`.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use std::path::PathBuf;

/// Print the man page; with --out, write one for every subcommand
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write larder.1, larder-import.1, ... into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let command = super::clap_command();
        match self.out {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                context.out.print_bytes(&page)?;
            }
            Some(dir) => {
                std::fs::create_dir_all(&dir)
                    .and_then(|()| clap_mangen::generate_to(command, &dir))
                    .map_err(|error| CommandFailure::from_file_error(&dir, &error))?;
            }
        }
        Ok(CommandStatus::Done)
    }
}

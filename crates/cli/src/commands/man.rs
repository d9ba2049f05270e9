use crate::context::Context;
use crate::failure::{Code, Failure};
use std::path::PathBuf;

/// Print the man page; with --out, write one for every subcommand
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Write larder.1, larder-import.1, ... into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let command = crate::args::command();
        match self.out {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                context.out.bytes(&page)?;
            }
            Some(dir) => {
                std::fs::create_dir_all(&dir)
                    .and_then(|()| clap_mangen::generate_to(command, &dir))
                    .map_err(|error| Failure::file(&dir, &error))?;
            }
        }
        Ok(Code::Done)
    }
}

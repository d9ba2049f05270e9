use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::size;
use std::path::PathBuf;

/// Copy the store into one file while it is in use, and verify the copy
///
/// An older backup of that name is replaced when the new one is whole.
#[derive(Debug, clap::Args)]
pub(crate) struct Backup {
    /// The file to make
    file: PathBuf,
}

impl Backup {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let bytes = context.store()?.backup(&self.file)?;
        context.out.line(format!(
            "{} written and verified, {}",
            self.file.display(),
            size(bytes)
        ))?;
        Ok(Code::Done)
    }
}

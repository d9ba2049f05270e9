use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::output::{plain, size};
use larder_store::Error;
use serde_json::json;
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
        if self.file.is_dir() {
            let what = format!("{} is a folder", plain(&self.file.display().to_string()));
            return Err(Failure::new(Kind::Usage, what).hint("name the file to make in it"));
        }
        let bytes = context.store()?.backup(&self.file).map_err(|error| match error {
            Error::Damaged { path, .. } | Error::NotAStore { path, .. } if path == self.file => {
                let path = plain(&path.display().to_string());
                Failure::new(Kind::Source, format!("{path} is there already, and no backup"))
                    .hint("name another file: only an older backup is replaced")
            }
            Error::File { path, source } if !path.starts_with(&context.dir) => {
                Failure::file(&self.file, &source)
            }
            error => error.into(),
        })?;
        let file = self.file.display().to_string();
        match context.format {
            Format::Json => context.out.json(&json!({ "file": file, "size": bytes }))?,
            _ => {
                let line = format!("{} written and verified, {}", plain(&file), size(bytes));
                context.out.line(line)?;
            }
        }
        Ok(Code::Done)
    }
}

use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::output::{count, plain};
use larder_store::{Directory, Error};
use serde_json::json;
use std::path::PathBuf;

/// Put a backup in the store's place; what is there now is copied aside first
#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// A file that `larder backup` made
    file: PathBuf,
}

impl Restore {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        if !self.file.is_file() {
            return Err(Failure::new(
                Kind::Source,
                format!("{}: there is no such file", plain(&self.file.display().to_string())),
            )
            .hint("name a file that larder backup made"));
        }
        let restored = Directory::new(&context.dir)
            .restore(&context.options(true), &self.file)
            .map_err(|error| match &error {
                Error::Damaged { path, .. } | Error::NotAStore { path, .. }
                    if *path == self.file =>
                {
                    Failure::new(Kind::Source, &error)
                        .hint("name a file that larder backup made; the store is as it was")
                }
                _ => error.into(),
            })?;
        let (file, before) = (&self.file.display().to_string(), restored.before.display());
        if context.format == Format::Json {
            let before = before.to_string();
            let object = json!({ "file": file, "items": restored.items, "before": before });
            context.out.json(&object)?;
            return Ok(Code::Done);
        }
        let items = count(restored.items, "item");
        context.out.line(format!("{items} restored from {}", plain(file)))?;
        context.out.line(format!("what was there before is in {before}"))?;
        Ok(Code::Done)
    }
}

use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::{count, plain};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;

/// Write a collection out again, every card byte for byte as it came
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The collection
    name: String,
    /// Write to this file instead of standard output; it gets its name when it is whole
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    /// A collection is bytes; how many items a file got can be said in JSON, too.
    pub(super) fn formats(&self) -> &'static [Format] {
        match self.output {
            None => &[Format::Text, Format::Raw],
            Some(_) => &[Format::Text, Format::Json],
        }
    }

    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        let collections = reader.collections()?;
        let Some(collection) = collections.iter().find(|collection| collection.name == self.name)
        else {
            return Err(larder_store::Error::NoCollection { name: self.name }.into());
        };
        let summary = match &self.output {
            None => larder_sync::export(&reader, collection, &mut context.out)?,
            Some(path) => {
                let failed = |error: std::io::Error| Failure::file(path, &error);
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(std::path::Path::new("."));
                let file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
                let mut out = std::io::BufWriter::new(file);
                let summary = larder_sync::export(&reader, collection, &mut out)?;
                out.flush().map_err(failed)?;
                let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
                file.as_file().sync_all().map_err(failed)?;
                file.persist(path).map_err(|error| failed(error.error))?;
                let items = count(summary.items, "item");
                match context.format {
                    Format::Json => context.out.json(&json!({ "items": summary.items }))?,
                    _ => context.out.line(format!(
                        "{items} written to {}",
                        plain(&path.display().to_string())
                    ))?,
                }
                summary
            }
        };
        if summary.transcoded > 0 {
            let items = count(summary.transcoded, "item");
            let name = plain(&self.name);
            context.warn(format!(
                "{items} of {name} came in UTF-16 and were written in UTF-8; larder show --format raw prints \
                 them as they came"
            ));
        }
        Ok(Code::Done)
    }
}

use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind, WHEN_SOMETHING_BREAKS};
use crate::output::{count, grouped, plain};
use larder_store::{Collection, Reader};
use larder_sync::ExportSummary;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Write a collection out again, every card byte for byte as it came
///
/// FILE gets its name when it is whole. Where the store is damaged, what could be read is in FILE.partial. A
/// device or a named pipe is written into.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The collection
    name: String,
    /// Write to this file instead of standard output; it gets its name when it is whole
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What is put behind the name of a file that could not be made whole.
const PARTIAL: &str = ".partial";

impl Export {
    /// A collection is bytes; how many items a file got can be said in JSON, too.
    pub(super) fn formats(&self) -> &'static [Format] {
        match self.output {
            None => &[Format::Text, Format::Raw],
            Some(_) => &[Format::Text, Format::Json, Format::Raw],
        }
    }

    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        let collections = reader.collections()?;
        let Some(collection) = collections.iter().find(|collection| collection.name == self.name)
        else {
            return Err(larder_store::Error::NoCollection { name: self.name }.into());
        };
        let device = self.output.as_deref().is_some_and(special);
        let (summary, partial) = match &self.output {
            None => (larder_sync::export(&reader, collection, &mut context.out)?, None),
            Some(path) if device => (into(&reader, collection, path)?, None),
            Some(path) => replaced(&reader, collection, path)?,
        };
        if summary.transcoded > 0 {
            let items = count(summary.transcoded, "item");
            let name = plain(&self.name);
            context.warn(format!(
                "{items} of {name} came in UTF-16 and were written in UTF-8; larder show --format raw prints \
                 them as they came"
            ));
        }
        if let Some(failure) = self.incomplete(&summary, partial.as_deref()) {
            return Err(failure);
        }
        if let Some(path) = &self.output {
            let (items, path) = (count(summary.items, "item"), plain(&path.display().to_string()));
            match context.format {
                Format::Json => context.out.json(&json!({ "items": summary.items }))?,
                Format::Text if !device => {
                    context.out.line(format!("{items} written to {path}"))?;
                }
                // It may be what standard output is, too.
                _ => context.note(format!("{items} written to {path}")),
            }
        }
        Ok(Code::Done)
    }

    /// What there is to say where something is missing.
    fn incomplete(&self, summary: &ExportSummary, partial: Option<&Path>) -> Option<Failure> {
        let name = plain(&self.name);
        let what = match (&summary.failed, summary.unread) {
            (None, 0) => return None,
            (Some(_), 0) => format!("{name} could not be read to its end"),
            (_, unread) => format!("{} of {name} could not be read", count(unread, "item")),
        };
        let why = summary.failed.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let message = format!("{what}, {} could{why}", grouped(summary.items));
        let failure = Failure::new(Kind::Store, message);
        let failure = match partial {
            Some(file) => failure
                .hint(format!("what could be read is in {}", plain(&file.display().to_string()))),
            None => failure,
        };
        Some(failure.hint("larder check tells what is wrong").hint(WHEN_SOMETHING_BREAKS))
    }
}

/// Is it something other than a file, such as a device or a named pipe?
fn special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Writes into what is there.
fn into(reader: &Reader, collection: &Collection, path: &Path) -> Result<ExportSummary, Failure> {
    let file = File::options().write(true).open(path);
    let mut file = file.map_err(|error| Failure::file(path, &error))?;
    Ok(larder_sync::export(reader, collection, &mut file)?)
}

/// Writes a file that gets its name when it is whole, else with an ending behind it: then that is given, too.
fn replaced(
    reader: &Reader,
    collection: &Collection,
    path: &Path,
) -> Result<(ExportSummary, Option<PathBuf>), Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    if path.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    let target = followed(path).map_err(failed)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let summary = larder_sync::export(reader, collection, &mut out)?;
    out.flush().map_err(failed)?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.as_file().sync_all().map_err(failed)?;
    if summary.unread == 0 && summary.failed.is_none() {
        file.persist(target).map_err(|error| failed(error.error))?;
        return Ok((summary, None));
    }
    let mut partial = target.into_os_string();
    partial.push(PARTIAL);
    file.persist(&partial).map_err(|error| failed(error.error))?;
    Ok((summary, Some(partial.into())))
}

/// Links that are followed before a chain of them is taken for a circle, as the system does.
const LINKS: usize = 40;

/// The file that a chain of symbolic links leads to, also where it is not there yet.
fn followed(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if !path.is_symlink() {
            return Ok(path);
        }
        let target = std::fs::read_link(&path)?;
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(std::io::Error::other("too many symbolic links"))
}

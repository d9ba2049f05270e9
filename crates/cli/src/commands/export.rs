use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind, RECOVERY_DOC_HINT};
use crate::output::{format_count, format_grouped, sanitize_line};
use larder_store::{Collection, Reader};
use larder_sync::ExportReport;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Write a collection out again, every card byte for byte as it came
///
/// FILE gets its name when it is whole. Where the store is damaged, what could be read is in
/// FILE.partial. A device or a named pipe is written into.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The collection
    name: String,
    /// Write to this file instead of standard output; it gets its name when it is whole
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What is put behind the name of a file that could not be made whole.
const PARTIAL_SUFFIX: &str = ".partial";

impl ExportArgs {
    /// A collection is bytes; how many items a file got can be said in JSON, too.
    pub(super) fn supported_formats(&self) -> &'static [OutputFormat] {
        match self.output {
            None => &[OutputFormat::Text, OutputFormat::Raw],
            Some(_) => &[OutputFormat::Text, OutputFormat::Json, OutputFormat::Raw],
        }
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let reader = context.open_reader()?;
        let collections = reader.collections()?;
        let Some(collection) = collections.iter().find(|collection| collection.name == self.name)
        else {
            return Err(larder_store::Error::NoCollection { name: self.name }.into());
        };
        let device = self.output.as_deref().is_some_and(is_special_file);
        let (summary, partial) = match &self.output {
            None => (larder_sync::export(&reader, collection, &mut context.out)?, None),
            Some(path) if device => (export_in_place(&reader, collection, path)?, None),
            Some(path) => export_and_replace(&reader, collection, path)?,
        };
        if summary.transcoded > 0 {
            let items = format_count(summary.transcoded, "item");
            let name = sanitize_line(&self.name);
            context.print_warning(format!(
                "{items} of {name} came in UTF-16 and were written in UTF-8; larder show --format raw prints \
                 them as they came"
            ));
        }
        if let Some(failure) = self.incomplete_failure(&summary, partial.as_deref()) {
            return Err(failure);
        }
        if let Some(path) = &self.output {
            let (items, path) =
                (format_count(summary.items, "item"), sanitize_line(&path.display().to_string()));
            match context.format {
                OutputFormat::Json => context.out.print_json(&json!({ "items": summary.items }))?,
                OutputFormat::Text if !device => {
                    context.out.print_line(format!("{items} written to {path}"))?;
                }
                // It may be what standard output is, too.
                _ => context.print_note(format!("{items} written to {path}")),
            }
        }
        Ok(CommandStatus::Done)
    }

    /// What there is to say where something is missing.
    fn incomplete_failure(
        &self,
        summary: &ExportReport,
        partial: Option<&Path>,
    ) -> Option<CommandFailure> {
        let name = sanitize_line(&self.name);
        let what = match (&summary.error, summary.unreadable) {
            (None, 0) => return None,
            (Some(_), 0) => format!("{name} could not be read to its end"),
            (_, unread) => format!("{} of {name} could not be read", format_count(unread, "item")),
        };
        let why = summary.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let message = format!("{what}, {} could{why}", format_grouped(summary.items));
        let failure = CommandFailure::new(FailureKind::Store, message);
        let failure = match partial {
            Some(file) => failure.with_hint(format!(
                "what could be read is in {}",
                sanitize_line(&file.display().to_string())
            )),
            None => failure,
        };
        Some(failure.with_hint("larder check tells what is wrong").with_hint(RECOVERY_DOC_HINT))
    }
}

/// Is it something other than a file, such as a device or a named pipe?
fn is_special_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Writes into what is there.
fn export_in_place(
    reader: &Reader,
    collection: &Collection,
    path: &Path,
) -> Result<ExportReport, CommandFailure> {
    let file = File::options().write(true).open(path);
    let mut file = file.map_err(|error| CommandFailure::from_file_error(path, &error))?;
    Ok(larder_sync::export(reader, collection, &mut file)?)
}

/// Writes a file that gets its name when it is whole, else with an ending behind it: then that is
/// given, too.
fn export_and_replace(
    reader: &Reader,
    collection: &Collection,
    path: &Path,
) -> Result<(ExportReport, Option<PathBuf>), CommandFailure> {
    let failed = |error: std::io::Error| CommandFailure::from_file_error(path, &error);
    if path.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    let target = resolve_symlinks(path).map_err(failed)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let summary = larder_sync::export(reader, collection, &mut out)?;
    out.flush().map_err(failed)?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.as_file().sync_all().map_err(failed)?;
    if summary.unreadable == 0 && summary.error.is_none() {
        file.persist(target).map_err(|error| failed(error.error))?;
        return Ok((summary, None));
    }
    let mut partial = target.into_os_string();
    partial.push(PARTIAL_SUFFIX);
    file.persist(&partial).map_err(|error| failed(error.error))?;
    Ok((summary, Some(partial.into())))
}

/// Links that are followed before a chain of them is taken for a circle, as the system does.
const MAX_SYMLINKS: usize = 40;

/// The file that a chain of symbolic links leads to, also where it is not there yet.
fn resolve_symlinks(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_SYMLINKS {
        if !path.is_symlink() {
            return Ok(path);
        }
        let target = std::fs::read_link(&path)?;
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(std::io::Error::other("too many symbolic links"))
}

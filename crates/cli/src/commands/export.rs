//! `larder export`.

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

/// Export a collection; every item is written byte for byte as it is stored
///
/// FILE is replaced only when the export is complete. If the store is damaged, the items that could
/// be read are written to FILE.partial. A device or a named pipe is written directly.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The collection
    name: String,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The suffix of an incomplete export.
const PARTIAL_SUFFIX: &str = ".partial";

impl ExportArgs {
    /// Returns the output formats. The export itself is bytes; with a file, the number of items can
    /// be printed as JSON.
    pub(super) fn supported_formats(&self) -> &'static [OutputFormat] {
        match self.output {
            None => &[OutputFormat::Text, OutputFormat::Raw],
            Some(_) => &[OutputFormat::Text, OutputFormat::Json, OutputFormat::Raw],
        }
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let reader = context.open_reader()?;
        let collections = reader.collections().list()?;
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
                "{items} of {name} came in UTF-16 and were exported in UTF-8; `larder show --format raw` prints \
                 the original bytes"
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
                // The device may be standard output itself.
                _ => context.print_note(format!("{items} written to {path}")),
            }
        }
        Ok(CommandStatus::Done)
    }

    /// Returns the failure for an incomplete export.
    fn incomplete_failure(
        &self,
        summary: &ExportReport,
        partial: Option<&Path>,
    ) -> Option<CommandFailure> {
        let name = sanitize_line(&self.name);
        let what = match (&summary.error, summary.unreadable) {
            (None, 0) => return None,
            (Some(_), 0) => format!("cannot read all of {name}"),
            (_, unread) => format!("cannot read {} of {name}", format_count(unread, "item")),
        };
        let why = summary.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let message = format!("{what}; exported {}{why}", format_grouped(summary.items));
        let failure = CommandFailure::new(FailureKind::Store, message);
        let failure = match partial {
            Some(file) => failure.with_hint(format!(
                "the items that could be read are in {}",
                sanitize_line(&file.display().to_string())
            )),
            None => failure,
        };
        Some(failure.with_hint("`larder check` shows the damage").with_hint(RECOVERY_DOC_HINT))
    }
}

/// Returns whether the path is a device, a named pipe or the like.
fn is_special_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Writes into an existing device or pipe.
fn export_in_place(
    reader: &Reader,
    collection: &Collection,
    path: &Path,
) -> Result<ExportReport, CommandFailure> {
    let file = File::options().write(true).open(path);
    let mut file = file.map_err(|error| CommandFailure::from_file_error(path, &error))?;
    Ok(larder_sync::export(reader, collection, &mut file)?)
}

/// Writes a temporary file and renames it when it is complete. An incomplete one gets a suffix, and
/// its name is returned.
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

/// Symbolic links to follow before a chain is taken for a cycle, as the system does.
const MAX_SYMLINKS: usize = 40;

/// Returns the target of a chain of symbolic links, which need not exist.
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

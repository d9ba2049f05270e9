//! `larder export`.

use crate::args::OutputFormat;
use crate::commit_store::list_repositories;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind, RECOVERY_DOC_HINT};
use crate::mail_store::list_sources;
use crate::output::{format_count, format_grouped, print_message, sanitize_line};
use crate::output_path::OutputPath;
use larder_store::{Collection, FilePrivacy, OutputFile, Reader};
use larder_sync::ExportReport;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Export a collection; every item is written byte for byte as it is stored
///
/// Messages and commits are not in the store: sources cannot be exported.
///
/// FILE is replaced only when the export is complete. If the store is damaged or lacks committed
/// changes, the items that can be read are written to FILE.partial, and the others are named. A
/// device or a named pipe is written directly; - is standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The collection
    name: String,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<OutputPath>,
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
        let found = reader.collections().find(&self.name)?;
        let Some(collection) = found.filter(|found| found.collection_type.is_listed()) else {
            return Err(larder_store::Error::NoCollection { name: self.name }.into());
        };
        if collection.collection_type.main_kind().has_locator() {
            return Err(source_failure(context, &collection)?);
        }
        let output = self.output.as_ref();
        let output =
            output.map(|path| context.create_output(path, FilePrivacy::Private)).transpose()?;
        let is_direct = output.as_ref().is_some_and(OutputFile::is_direct);
        let (summary, partial) = match output {
            None => (larder_sync::export(&reader, &collection, &mut context.out)?, None),
            Some(output) => export_to_file(&reader, &collection, output)?,
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
            let (items, path) = (
                format_count(summary.items, "item"),
                sanitize_line(&path.path().display().to_string()),
            );
            match context.format {
                OutputFormat::Json => context.out.print_json(&json!({ "items": summary.items }))?,
                OutputFormat::Text if !is_direct => {
                    context.out.print_line(format!("{items} written to {path}"))?;
                }
                // The device may be standard output itself.
                _ => context.print_note(format!("{items} written to {path}")),
            }
        }
        Ok(CommandStatus::Done)
    }

    /// Names what is missing in an incomplete export, and returns the failure.
    fn incomplete_failure(
        &self,
        summary: &ExportReport,
        partial: Option<&Path>,
    ) -> Option<CommandFailure> {
        if summary.is_complete() {
            return None;
        }
        for item in &summary.unreadable {
            print_message("missing", sanitize_line(&item.to_string()));
        }
        let name = sanitize_line(&self.name);
        let what = match summary.unreadable.len() as u64 + summary.uncounted {
            0 => format!("cannot read all of {name}"),
            missing => format!("cannot read {} of {name}", format_count(missing, "item")),
        };
        let why = summary.error.as_ref().map(ToString::to_string);
        let why = why.or(summary.lost_commits.clone()).map(|why| format!(": {why}"));
        let why = why.unwrap_or_default();
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

/// Returns the failure for a source, whose items are not in the store.
fn source_failure(
    context: &CommandContext,
    collection: &Collection,
) -> Result<CommandFailure, CommandFailure> {
    let sources = list_sources(context)?.into_iter().chain(list_repositories(context)?);
    let mut paths = sources.filter(|source| source.name == collection.name).map(|one| one.path);
    let path = paths.next().map(|path| sanitize_line(&path.display().to_string()));
    let name = sanitize_line(&collection.name);
    let noun = collection.collection_type.item_noun();
    let message = match path {
        Some(path) => format!(
            "{name} is a source: its {noun}s are in {path}, and larder has no copies of them"
        ),
        // The source is only known by its index.
        None => format!("{name} is a source: larder has no copies of its {noun}s"),
    };
    let kind = collection.collection_type.main_kind();
    let failure = CommandFailure::new(FailureKind::Usage, message).with_hint(format!(
        "to print the bytes of some: larder find --in {name} --format raw QUERY"
    ));
    Ok(match kind.file_extensions().is_empty() {
        false => failure.with_hint(format!(
            "their paths: larder find --in {name} --files QUERY; a maildir of links: --links DIR"
        )),
        true => failure,
    })
}

/// Writes the output, and gives it its name when it is complete. An incomplete file gets a suffix,
/// and its name is returned.
fn export_to_file(
    reader: &Reader,
    collection: &Collection,
    mut output: OutputFile,
) -> Result<(ExportReport, Option<PathBuf>), CommandFailure> {
    let summary = match larder_sync::export(reader, collection, &mut output) {
        Err(larder_sync::Error::Write(error)) => return Err(output.to_error(error).into()),
        summary => summary?,
    };
    if summary.is_complete() {
        output.commit()?;
        return Ok((summary, None));
    }
    if output.is_direct() {
        return Ok((summary, None));
    }
    let (partial, _) = output.commit_with_suffix(PARTIAL_SUFFIX)?;
    Ok((summary, Some(partial)))
}

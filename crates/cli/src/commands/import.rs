//! `larder import`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::output::{format_bytes, format_count, format_grouped, print_message, sanitize_line};
use crate::output_path::OutputPath;
use larder_store::{DataDirectory, Kind as ItemKind, OperationId};
use larder_sync::{
    CollectionCounts, Compression, DEFAULT_MAX_ITEM_BYTES, ImportEvent, ImportInput, ImportOptions,
    ImportReport, MAX_BATCH_ITEMS,
};
use serde_json::json;
use std::path::PathBuf;

/// Import address books and calendars from vCard and iCalendar files
///
/// Reads vCard 2.1, 3.0 and 4.0, iCalendar, folders of such files, and standard
/// input. Contacts go to the collection `contacts`, a calendar to a collection
/// with the name of the calendar or of its file, and an invitation to the calendar
/// that contains the event. A folder with one file for each item, as vdirsyncer,
/// khal and khard have them, becomes one collection with the name of the folder,
/// or of its file `displayname`; its file `color` has the colour. Invalid items
/// are rejected and reported with file, line and reason; --rejects writes them to
/// a file. An item replaces the stored item with the same UID, so importing a file
/// again changes only items that were edited or merged since the last import.
/// `larder undo` undoes the whole import.
///
///   larder import contacts.vcf work.ics
///   larder import ~/.calendars
///   larder import ~/calendars --into Work
///   zcat backup.vcf.gz | larder import -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ImportArgs {
    /// Files and folders; - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Import into this collection, created if needed
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    /// Write invalid items to this file
    #[arg(long, value_name = "FILE")]
    rejects: Option<OutputPath>,
    /// Items in one transaction, up to 4000 [default: as many as fit into a tenth of a second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_BATCH_ITEMS as u64))]
    batch: Option<u64>,
    /// The size of the largest item to accept; K, M and G are allowed
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = crate::byte_size::parse_nonzero_bytes)]
    max_item: u64,
}

/// The maximum number of errors about single items, and of warnings. Further ones are not printed;
/// the items are still counted and written to `--rejects`.
const MAX_ITEM_MESSAGES: u64 = 1000;

impl ImportArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let was_there = DataDirectory::new(&context.dir).has_store();
        let mut store = context.open_or_create_store()?;
        if !was_there {
            context.print_note(format!("created a new store in {}", context.dir.display()));
        }
        let inputs = self.paths.iter().map(|path| match path.to_str() {
            Some("-") => ImportInput::Stdin(Box::new(std::io::stdin())),
            _ => ImportInput::Path(path.clone()),
        });
        let options = self.import_options(context)?;
        let bar = crate::progress::byte_progress(context.quiet, None);
        let quiet = context.quiet;
        // Errors are counted apart, so that no number of warnings hides them.
        let mut message_counts = [0, 0];
        let mut print = |kind: &str, notice: &dyn std::fmt::Display| {
            let count = &mut message_counts[usize::from(kind == "error")];
            *count += 1;
            if *count <= MAX_ITEM_MESSAGES {
                bar.suspend(|| print_message(kind, sanitize_line(&notice.to_string())));
            }
        };
        let mut events = |event: ImportEvent<'_>| match event {
            ImportEvent::Rejected(notice) => print("error", &format_args!("rejected {notice}")),
            ImportEvent::Warning(notice) if !quiet => print("warning", &notice),
            ImportEvent::Progress { bytes_done, bytes_total, items } => {
                if let Some(total) = bytes_total {
                    bar.set_length(total);
                }
                bar.set_position(bytes_done);
                bar.set_message(format_count(items, "item"));
            }
            _ => {}
        };
        let summary = larder_sync::import(&mut store, inputs.collect(), &options, &mut events)?;
        bar.finish_and_clear();
        for (kind, count) in ["warning", "error"].into_iter().zip(message_counts) {
            if count > MAX_ITEM_MESSAGES {
                let left_out = format_count(count - MAX_ITEM_MESSAGES, &format!("further {kind}"));
                print_message("note", format!("{left_out} not shown"));
            }
        }
        self.print_summary(context, &summary)?;
        self.print_advice(&summary);
        Ok(match &summary {
            summary if summary.interrupted => CommandStatus::Interrupted,
            summary if !summary.unreadable.is_empty() => CommandStatus::SourceMissing,
            summary if summary.rejected > 0 => CommandStatus::Rejected,
            _ => CommandStatus::Done,
        })
    }

    fn import_options(
        &self,
        context: &mut CommandContext,
    ) -> Result<ImportOptions, CommandFailure> {
        let rejects =
            self.rejects.as_ref().map(|path| path.to_target(&mut context.out)).transpose()?;
        Ok(ImportOptions {
            into: self.into.clone(),
            batch: self.batch.map(|batch| batch as usize),
            max_item_bytes: self.max_item as usize,
            rejects,
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            at: now_milliseconds(),
            stop: crate::interrupt::install_interrupt_flag(),
        })
    }

    /// Prints hints if items were rejected.
    fn print_advice(&self, summary: &ImportReport) {
        if summary.rejected == 0 || summary.interrupted {
            return;
        }
        let mut any = false;
        for path in &self.paths {
            if let Some(Compression { format: with, unpack_command: unpack }) =
                larder_sync::detect_compression(path)
            {
                any = true;
                let path = sanitize_line(&path.display().to_string());
                print_message(
                    "hint",
                    format!(
                        "{path} is compressed with {with}; use: {unpack} {path} | larder import -"
                    ),
                );
            }
        }
        if summary.misplaced > 0 {
            print_message(
                "hint",
                "import these items into another collection, with --into NAME; `larder collections` lists them",
            );
        } else if summary.collections.is_empty() && !any {
            print_message(
                "hint",
                "larder reads vCard (BEGIN:VCARD) and iCalendar (BEGIN:VCALENDAR), not CSV or other formats",
            );
        }
    }

    /// Returns the summary: a line for each collection.
    fn summary_lines(&self, summary: &ImportReport) -> Vec<String> {
        if summary.item_count() == 0 && summary.files == 0 && !summary.unreadable.is_empty() {
            return vec!["nothing was imported".into()];
        }
        if summary.item_count() == 0 {
            let place = match self.paths.as_slice() {
                [path] if path.as_os_str() == "-" => "standard input".to_string(),
                [path] => sanitize_line(&path.display().to_string()),
                paths => format_count(paths.len() as u64, "input"),
            };
            return vec![format!("no items in {place}")];
        }
        summary.collections.iter().map(|name| collection_summary_line(summary, name)).collect()
    }

    fn print_summary(
        &self,
        context: &mut CommandContext,
        summary: &ImportReport,
    ) -> Result<(), CommandFailure> {
        for missing in &summary.unreadable {
            print_message("error", sanitize_line(&missing.to_string()));
        }
        if !summary.unreadable.is_empty() {
            let others = match summary.files {
                0 => "",
                _ => "; the other files were imported",
            };
            print_message("hint", format!("check the name and the permissions{others}"));
        }
        if context.format == OutputFormat::Json {
            context.out.print_json(&json!({
                "collection": summary.collections.first(), "collections": summary.collections,
                "added": summary.added, "updated": summary.updated, "cancelled": summary.cancelled,
                "unchanged": summary.unchanged, "uid_conflicts": summary.uid_conflicts, "rejected": summary.rejected,
                "warnings": summary.warnings, "files": summary.files, "bytes": summary.bytes,
                "operation": summary.operation.map(OperationId::to_number), "counts": counts_json(summary),
                "zones_defined": summary.zones_defined, "zones_stored": summary.zones_kept,
            }))?;
            return Ok(());
        }
        if summary.interrupted && summary.item_count() == 0 {
            context.out.print_line("interrupted; nothing was imported")?;
            return Ok(());
        }
        let (files, bytes) = (format_count(summary.files, "file"), format_bytes(summary.bytes));
        match self.summary_lines(summary).as_slice() {
            [one] => context.out.print_line(format!("{one} ({files}, {bytes})"))?,
            several => {
                for line in several {
                    context.out.print_line(line)?;
                }
                context.out.print_line(format!("{files}, {bytes}"))?;
            }
        }
        if summary.zones_defined > 0 {
            let (defined, kept) = (
                format_count(summary.zones_defined, "time zone definition"),
                format_grouped(summary.zones_kept),
            );
            context.out.print_line(format!("{defined}, {kept} distinct"))?;
        }
        if summary.rejected > 0 {
            let kept = match &self.rejects {
                Some(file) if file.is_standard_output() => "written to standard output".into(),
                Some(file) => format!("written to {}", file.path().display()),
                None => "--rejects FILE writes them to a file".into(),
            };
            context
                .out
                .print_line(format!("{} rejected; {kept}", format_grouped(summary.rejected)))?;
        }
        if let Some(id) = summary.operation {
            context.out.print_line(format!("Undo: larder undo {id}"))?;
        }
        if summary.interrupted {
            context.out.print_line(
                "interrupted: items imported so far are stored; run the command again to continue",
            )?;
        }
        Ok(())
    }
}

impl From<larder_sync::Error> for CommandFailure {
    fn from(error: larder_sync::Error) -> CommandFailure {
        match error {
            larder_sync::Error::Store(error) => error.into(),
            larder_sync::Error::Query(error) => error.into(),
            larder_sync::Error::Git(error) => CommandFailure::new(FailureKind::Source, error),
            error @ (larder_sync::Error::NotALinkFolder { .. }
            | larder_sync::Error::LinksInSource { .. }) => {
                CommandFailure::new(FailureKind::Usage, error)
                    .with_hint("name a new folder with --links")
            }
            error @ larder_sync::Error::RejectsFileIsInput { .. } => {
                CommandFailure::new(FailureKind::Usage, error)
                    .with_hint("choose another file with --rejects")
            }
            larder_sync::Error::Write(error) => error.into(),
            larder_sync::Error::RejectsFile(error) => error.into(),
            error @ larder_sync::Error::RejectsNotWritten(_) => {
                CommandFailure::new(FailureKind::Source, error)
                    .with_hint("run the command again: it writes the rejected input only")
            }
            error @ larder_sync::Error::NoMuData { .. } => {
                CommandFailure::new(FailureKind::Source, error)
                    .with_hint("--muhome names the directory that `mu info` shows")
            }
            error => CommandFailure::new(FailureKind::Source, error),
        }
    }
}

/// A counter of the import.
type ImportCounter = fn(&CollectionCounts) -> u64;

/// Formats the counts of a collection: `214 events, 3 tasks added to Work, 2 updated`.
fn collection_summary_line(summary: &ImportReport, name: &str) -> String {
    let here = || summary.counts.iter().filter(|counts| *counts.collection == *name);
    let describe = |number: ImportCounter| {
        let kinds = here().filter(|counts| number(counts) > 0);
        kinds
            .map(|counts| format_count(number(counts), kind_noun(counts.kind)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let sum = |number: ImportCounter| here().map(number).sum::<u64>();
    let name = sanitize_line(name);
    let counters: [(ImportCounter, &str, &str); 4] = [
        (|counts| counts.added, "added", "to"),
        (|counts| counts.updated, "updated", "in"),
        (|counts| counts.cancelled, "cancelled", "in"),
        (|counts| counts.unchanged, "unchanged", "in"),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (number, what, place) in counters.into_iter().filter(|(number, ..)| sum(*number) > 0) {
        parts.push(match parts.is_empty() {
            true => format!("{} {what} {place} {name}", describe(number)),
            false => format!("{} {what}", format_grouped(sum(number))),
        });
    }
    let is_new = here().any(|counts| counts.added + counts.updated + counts.cancelled > 0);
    format!("{}{}", if is_new { "" } else { "nothing new: " }, parts.join(", "))
}

fn kind_noun(kind: ItemKind) -> &'static str {
    if kind.is_searchable() { kind.name() } else { "other item" }
}

fn counts_json(summary: &ImportReport) -> Vec<serde_json::Value> {
    let objects = summary.counts.iter().map(|counts| {
        json!({
            "collection": *counts.collection, "kind": counts.kind.name(), "added": counts.added,
            "updated": counts.updated, "cancelled": counts.cancelled,
            "unchanged": counts.unchanged,
        })
    });
    objects.collect()
}

const _: () = assert!(DEFAULT_MAX_ITEM_BYTES == 32 << 20, "the help says 32M");

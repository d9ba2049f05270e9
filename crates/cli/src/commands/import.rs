use crate::args::OutputFormat;
use crate::context::{CommandContext, now_milliseconds};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_bytes, format_count, format_grouped, print_message, sanitize_line};
use larder_store::{DataDirectory, Kind as ItemKind};
use larder_sync::{
    CollectionCounts, Compression, DEFAULT_MAX_ITEM_BYTES, ImportEvent, ImportInput, ImportOptions,
    ImportReport, MAX_BATCH_ITEMS,
};
use serde_json::json;
use std::path::PathBuf;

/// Take in address books and calendars: vCard files (2.1, 3.0, 4.0), iCalendar files, folders of
/// them, or standard input
///
/// Contacts go to the collection contacts; a calendar to one of its own name, or
/// of its file's; a message about a meeting to the calendar that has it. What is
/// good is taken; what is not is named by file, line and reason, and kept with
/// --rejects. An item whose UID is known is updated; the same file again changes
/// nothing, unless items were edited or merged since: then they become again what
/// the file says. The whole import is one operation: one `larder undo` takes it
/// back.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Files and folders; - is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The collection they go to, made if there is none of that name
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    /// Keep what is not taken in this file, as it came
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Items written in one transaction, up to 4000 [default: as many as keep other writers out for
    /// a tenth of a second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_BATCH_ITEMS as u64))]
    batch: Option<u64>,
    /// The largest item that is taken, in bytes (K, M and G are understood)
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = crate::byte_size::parse_nonzero_bytes)]
    max_item: u64,
}

/// Messages about single items that an import prints; what is left out is counted, and kept, all
/// the same.
const MAX_ITEM_MESSAGES: u64 = 1000;
const MAX_ITEM_MESSAGES_AND_ONE: u64 = MAX_ITEM_MESSAGES + 1;

impl ImportArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let was_there = DataDirectory::new(&context.dir).has_store();
        let mut store = context.open_or_create_store()?;
        if !was_there {
            context.print_note(format!("a new store was made in {}", context.dir.display()));
        }
        let inputs = self.paths.iter().map(|path| match path.to_str() {
            Some("-") => ImportInput::Stdin(Box::new(std::io::stdin())),
            _ => ImportInput::Path(path.clone()),
        });
        let options = self.import_options();
        let bar = crate::progress::byte_progress(context.quiet, None);
        let quiet = context.quiet;
        let mut said = 0;
        let mut say = |kind: &str, notice: &dyn std::fmt::Display| {
            said += 1;
            match said {
                ..=MAX_ITEM_MESSAGES => {
                    bar.suspend(|| print_message(kind, sanitize_line(&notice.to_string())));
                }
                MAX_ITEM_MESSAGES_AND_ONE => {
                    bar.suspend(|| print_message("note", "... more are not shown"));
                }
                _ => {}
            }
        };
        let mut events = |event: ImportEvent<'_>| match event {
            ImportEvent::Rejected(notice) => say("left out", &notice),
            ImportEvent::Warning(notice) if !quiet => say("warning", &notice),
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
        self.print_summary(context, &summary)?;
        self.print_advice(&summary);
        Ok(match &summary {
            summary if summary.interrupted => CommandStatus::Interrupted,
            summary if !summary.unreadable.is_empty() => CommandStatus::SourceMissing,
            summary if summary.rejected > 0 => CommandStatus::LeftOut,
            _ => CommandStatus::Done,
        })
    }

    fn import_options(&self) -> ImportOptions {
        ImportOptions {
            into: self.into.clone(),
            batch: self.batch.map(|batch| batch as usize),
            max_item_bytes: self.max_item as usize,
            rejects: self.rejects.clone(),
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            at: now_milliseconds(),
            stop: crate::interrupt::install_interrupt_flag(),
        }
    }

    /// What may help where something was left out, or nothing found.
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
                    format!("{path} is packed with {with}: {unpack} {path} | larder import -"),
                );
            }
        }
        if summary.collections.is_empty() && !any {
            print_message(
                "hint",
                "a card begins with BEGIN:VCARD, a calendar with BEGIN:VCALENDAR",
            );
        }
    }

    /// How many were taken, and what of them is new: a line for each collection.
    fn summary_lines(&self, summary: &ImportReport) -> Vec<String> {
        if summary.item_count() == 0 {
            let place = match self.paths.as_slice() {
                [path] if path.as_os_str() == "-" => "standard input".to_string(),
                [path] => sanitize_line(&path.display().to_string()),
                paths => format_count(paths.len() as u64, "input"),
            };
            return vec![format!("no item was found in {place}")];
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
            print_message(
                "hint",
                "check the name, and who may read it; what could be read was taken",
            );
        }
        if context.format == OutputFormat::Json {
            context.out.print_json(&json!({
                "collection": summary.collections.first(), "collections": summary.collections,
                "added": summary.added, "updated": summary.updated, "cancelled": summary.cancelled,
                "unchanged": summary.unchanged, "beside": summary.duplicate_uids, "rejected": summary.rejected,
                "warnings": summary.warnings, "files": summary.files, "bytes": summary.bytes,
                "operation": summary.operation, "taken": counts_json(summary),
                "zones_defined": summary.zones_defined, "zones_kept": summary.zones_kept,
            }))?;
            return Ok(());
        }
        if summary.interrupted && summary.item_count() == 0 {
            context.out.print_line("interrupted; nothing was taken yet")?;
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
                format_count(summary.zones_defined, "time zone"),
                format_grouped(summary.zones_kept),
            );
            context.out.print_line(format!("{defined} defined, {kept} kept"))?;
        }
        if summary.rejected > 0 {
            let kept = match &self.rejects {
                Some(file) => format!("kept in {}", file.display()),
                None => "--rejects FILE keeps them".into(),
            };
            context
                .out
                .print_line(format!("{} left out; {kept}", format_grouped(summary.rejected)))?;
        }
        if let Some(id) = summary.operation {
            context.out.print_line(format!("larder undo {id} takes it back"))?;
        }
        if summary.interrupted {
            context
                .out
                .print_line("interrupted: what was committed is kept; the same command goes on")?;
        }
        Ok(())
    }
}

impl From<larder_sync::Error> for CommandFailure {
    fn from(error: larder_sync::Error) -> CommandFailure {
        match error {
            larder_sync::Error::Store(error) => error.into(),
            error @ larder_sync::Error::RejectsFileIsInput { .. } => {
                CommandFailure::new(FailureKind::Usage, error)
                    .with_hint("name another file with --rejects")
            }
            larder_sync::Error::Write(error) => error.into(),
            larder_sync::Error::RejectsFile { path, source } => {
                CommandFailure::from_file_error(&path, &source)
            }
            error => CommandFailure::new(FailureKind::Source, error),
        }
    }
}

/// One of the numbers of what was taken.
type ImportCounter = fn(&CollectionCounts) -> u64;

/// What went to a collection: `214 events, 3 tasks added to Work, 2 updated`.
fn collection_summary_line(summary: &ImportReport, name: &str) -> String {
    let here = || summary.counts.iter().filter(|taken| *taken.collection == *name);
    let of = |number: ImportCounter| {
        let kinds = here().filter(|taken| number(taken) > 0);
        kinds
            .map(|taken| format_count(number(taken), kind_noun(taken.kind)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let sum = |number: ImportCounter| here().map(number).sum::<u64>();
    let name = sanitize_line(name);
    let told: [(ImportCounter, &str, &str); 4] = [
        (|taken| taken.added, "added", "to"),
        (|taken| taken.updated, "updated", "in"),
        (|taken| taken.cancelled, "cancelled", "in"),
        (|taken| taken.unchanged, "unchanged", "in"),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (number, what, place) in told.into_iter().filter(|(number, ..)| sum(*number) > 0) {
        parts.push(match parts.is_empty() {
            true => format!("{} {what} {place} {name}", of(number)),
            false => format!("{} {what}", format_grouped(sum(number))),
        });
    }
    let is_new = here().any(|taken| taken.added + taken.updated + taken.cancelled > 0);
    format!("{}{}", if is_new { "" } else { "nothing new: " }, parts.join(", "))
}

fn kind_noun(kind: ItemKind) -> &'static str {
    if kind == ItemKind::Component { "other item" } else { kind.name() }
}

fn counts_json(summary: &ImportReport) -> Vec<serde_json::Value> {
    let taken = summary.counts.iter().map(|taken| {
        json!({
            "collection": *taken.collection, "kind": taken.kind.name(), "added": taken.added,
            "updated": taken.updated, "cancelled": taken.cancelled, "unchanged": taken.unchanged,
        })
    });
    taken.collect()
}

const _: () = assert!(DEFAULT_MAX_ITEM_BYTES == 32 << 20, "the help says 32M");

//! `larder sync`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::mail_rules::run_rules;
use crate::mail_store::{follow_labels, list_sources, open_mail_reader, open_mail_store};
use crate::output::{format_count, format_grouped, print_message, sanitize_line};
use larder_store::Store;
use larder_sync::{MailSyncOptions, MailSyncReport, RuleScope};
use serde_json::json;
use std::sync::atomic::Ordering;

/// Bring the index of registered maildirs up to date
///
/// Reads new messages, and notes changed flags, moved and removed files. Folders whose state did
/// not change are not listed. Nothing in a maildir is ever changed. Searches see new messages while
/// it runs, the newest mail first. At the end, saved searches with labels run on the new messages.
#[derive(Debug, clap::Args)]
pub(crate) struct SyncArgs {
    /// The sources [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List all folders, also those that did not change, and read files again that were edited
    #[arg(long)]
    full: bool,
    /// Run the rules on all messages, not only on new ones
    #[arg(long)]
    rules: bool,
    /// Write at most N messages in a batch
    #[arg(long, value_name = "N", default_value_t = larder_sync::DEFAULT_MAIL_BATCH)]
    tune_batch: usize,
    /// Read with N threads [default: the number of processors]
    #[arg(long, value_name = "N")]
    tune_readers: Option<usize>,
    /// Read files in the order of their inodes
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    tune_sort_inodes: bool,
}

/// The number of problems that are printed for a source.
const MAX_PRINTED_PROBLEMS: usize = 100;

impl SyncArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if self.names.is_empty() && open_mail_reader(context)?.is_some() {
            remove_unregistered(context, &mut open_mail_store(context)?)?;
        }
        let mut sources = list_sources(context)?;
        for name in &self.names {
            if !sources.iter().any(|source| source.name == *name) {
                let message = format!("no source is named {:?}", sanitize_line(name));
                return Err(CommandFailure::new(FailureKind::NotFound, message)
                    .with_hint("`larder sources` lists them"));
            }
        }
        sources.retain(|source| self.names.is_empty() || self.names.contains(&source.name));
        if sources.is_empty() {
            return Err(CommandFailure::new(FailureKind::NotFound, "no sources are registered")
                .with_hint("larder sources add MAILDIR"));
        }
        let options = self.to_options(context);
        let stop = crate::interrupt::install_interrupt_flag();
        let mut store = open_mail_store(context)?;
        follow_labels(context, &mut store)?;
        let mut status = CommandStatus::Done;
        let mut completed = Vec::new();
        for source in sources {
            let bar = crate::progress::count_progress(context.quiet);
            let report = larder_sync::sync_maildir(
                &mut store,
                &source.path,
                &source.name,
                &options,
                &mut |progress| {
                    bar.set_length(progress.total as u64);
                    bar.set_position(progress.done as u64);
                },
                &|| stop.load(Ordering::Relaxed),
            );
            bar.finish_and_clear();
            let report = match report {
                Err(larder_sync::Error::Store(error)) => return Err(error.into()),
                Err(error) => {
                    print_message("error", format!("{}: {error}", sanitize_line(&source.name)));
                    status = CommandStatus::SourceMissing;
                    continue;
                }
                Ok(report) => report,
            };
            print_report(context, &source.name, &report)?;
            if report.is_interrupted {
                return Ok(CommandStatus::Interrupted);
            }
            if status == CommandStatus::Done && report.problems.iter().any(|one| one.is_left_out) {
                status = CommandStatus::Rejected;
            }
            completed.push(source.name);
        }
        let scope = if self.rules { RuleScope::All } else { RuleScope::New };
        if !run_rules(context, &mut store, &completed, scope)? && status == CommandStatus::Done {
            status = CommandStatus::Rejected;
        }
        // Labels may have changed while the messages were read.
        follow_labels(context, &mut store)?;
        Ok(status)
    }

    fn to_options(&self, context: &CommandContext) -> MailSyncOptions {
        let defaults = MailSyncOptions::default();
        MailSyncOptions {
            is_full: self.full,
            batch_messages: self.tune_batch,
            readers: self.tune_readers.unwrap_or(defaults.readers),
            sort_inodes: self.tune_sort_inodes,
            personal_addresses: context.mail_addresses.clone(),
        }
    }
}

/// Removes the index of collections that are no sources any more: their registration was undone.
fn remove_unregistered(
    context: &mut CommandContext,
    store: &mut Store,
) -> Result<(), CommandFailure> {
    let sources = list_sources(context)?;
    let indexed = store.open_reader()?.collections().list()?;
    for collection in indexed {
        let is_registered = sources.iter().any(|source| source.name == collection.name);
        if collection.item_count > 0 && !is_registered {
            let files =
                larder_sync::remove_indexed_mail(store, &collection.name, now_milliseconds())?;
            let name = sanitize_line(&collection.name);
            let files = format_count(files as u64, "file");
            context.print_note(format!("{name} is no source any more; {files} left the index"));
        }
    }
    Ok(())
}

fn print_report(
    context: &mut CommandContext,
    name: &str,
    report: &MailSyncReport,
) -> Result<(), CommandFailure> {
    let left_out = report.problems.iter().filter(|problem| problem.is_left_out);
    for problem in left_out.clone().take(MAX_PRINTED_PROBLEMS) {
        let path = sanitize_line(&problem.path.display().to_string());
        print_message("error", format!("{path}: {}", sanitize_line(&problem.reason)));
    }
    let mut damaged: Vec<_> = report.problems.iter().filter(|one| !one.is_left_out).collect();
    damaged.dedup_by(|a, b| a.path == b.path);
    for problem in damaged.iter().take(MAX_PRINTED_PROBLEMS) {
        let path = sanitize_line(&problem.path.display().to_string());
        context.print_warning(format!("{path}: {}", sanitize_line(&problem.reason)));
    }
    if damaged.len() > MAX_PRINTED_PROBLEMS {
        let further = format_count((damaged.len() - MAX_PRINTED_PROBLEMS) as u64, "further file");
        context.print_note(format!("{further} with damage not shown"));
    }
    if context.format == OutputFormat::Json {
        let problem = |one: &larder_sync::MailSyncProblem| {
            json!({
                "path": one.path.to_string_lossy(), "reason": one.reason,
                "is_left_out": one.is_left_out,
            })
        };
        context.out.print_json(&json!({
            "name": name,
            "added_files": report.added_files, "reread_files": report.reread_files,
            "renamed_files": report.renamed_files,
            "removed_files": report.removed_files, "directories": report.directories,
            "listed_directories": report.listed_directories,
            "is_interrupted": report.is_interrupted,
            "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        }))?;
        return Ok(());
    }
    let counts = [
        (report.added_files, "added"),
        (report.reread_files, "read again"),
        (report.renamed_files, "renamed or moved"),
        (report.removed_files, "removed"),
        (left_out.count(), "left out"),
        (damaged.len(), "with damage"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> =
        counts.map(|(count, verb)| format!("{} {verb}", format_grouped(*count as u64))).collect();
    if parts.is_empty() {
        parts.push("nothing changed".into());
    }
    let folders = format_count(report.listed_directories as u64, "folder");
    let name = sanitize_line(name);
    let all = format_grouped(report.directories as u64);
    context.out.print_line(format!("{name}: {} ({folders} of {all} listed)", parts.join(", ")))?;
    if report.is_interrupted {
        context.out.print_line("interrupted: run the command again to continue")?;
    }
    Ok(())
}

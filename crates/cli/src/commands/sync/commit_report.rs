//! Synchronising repositories, and printing the result of each.
//!
//! Separate from its parent, because commits have no files, folders, flags and rules.

use super::{MAX_PRINTED_PROBLEMS, RoundPrinter, format_changes, problems_json};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::git_program::start_git;
use crate::machine_time::now_milliseconds;
use crate::output::{format_count, print_message, sanitize_line};
use larder_sync::{
    CommitRoundEvent, CommitSyncOptions, CommitSyncReport, SourceSelection, SourceStores,
    SyncProblem, SyncRoundEvent, sync_repositories,
};
use serde_json::json;

impl RoundPrinter<'_> {
    /// Brings the commits of the repositories up to date, and prints the result of each.
    pub(super) fn sync_commits(
        &mut self,
        stores: &SourceStores,
        selection: &SourceSelection,
        is_full: bool,
        is_stopped: &dyn Fn() -> bool,
    ) {
        if self.status == CommandStatus::Interrupted {
            return;
        }
        let options = CommitSyncOptions { is_full, ..CommitSyncOptions::default() };
        let at = now_milliseconds();
        let mut print = |event: CommitRoundEvent<'_>| self.print_commits(&event);
        let synced =
            sync_repositories(stores, selection, options, at, &start_git, &mut print, is_stopped);
        if let Err(error) = synced {
            self.note_failure(error.into());
        }
    }

    fn print_commits(&mut self, event: &CommitRoundEvent<'_>) {
        match event {
            CommitRoundEvent::Forgotten(forgotten) => {
                let name = sanitize_line(&forgotten.name);
                let commits = format_count(forgotten.files as u64, "commit");
                let note = format!("{name} is no source any more; {commits} left the index");
                self.context.print_note(note);
            }
            CommitRoundEvent::Progress(progress) => {
                self.print(&SyncRoundEvent::Progress(*progress));
            }
            CommitRoundEvent::Finished(source, result) => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
                self.sources += 1;
                match result {
                    Ok(report) => self.print_commit_result(&source.name, report),
                    Err(error) => self.print_source_error(&source.name, error),
                }
            }
        }
    }

    fn print_commit_result(&mut self, name: &str, report: &CommitSyncReport) {
        let mut problems: Vec<&SyncProblem> = report.problems.iter().collect();
        if self.is_watch {
            problems.retain(|one| self.printed.insert((one.path.clone(), one.reason.clone())));
        }
        let changes = [report.added, report.reread, report.removed, problems.len()];
        if self.is_watch && (self.context.quiet || changes.iter().all(|count| *count == 0)) {
            return;
        }
        if let Err(failure) = print_commit_report(self.context, name, report, &problems) {
            self.note_failure(failure);
        }
        self.note_result(report.is_interrupted, &problems);
    }
}

fn print_commit_report(
    context: &mut CommandContext,
    name: &str,
    report: &CommitSyncReport,
    problems: &[&SyncProblem],
) -> Result<(), CommandFailure> {
    for problem in problems.iter().take(MAX_PRINTED_PROBLEMS) {
        let path = sanitize_line(&problem.path.display().to_string());
        let text = format!("{path}: {}", sanitize_line(&problem.reason));
        print_message(if problem.is_left_out { "error" } else { "warning" }, text);
    }
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "name": name,
            "added_commits": report.added, "reread_commits": report.reread,
            "removed_commits": report.removed, "refs": report.refs,
            "is_interrupted": report.is_interrupted,
            "problems": problems_json(problems),
        }))?;
        return Ok(());
    }
    if context.quiet {
        return Ok(());
    }
    let counts =
        [(report.added, "added"), (report.reread, "read again"), (report.removed, "removed")];
    let changes = format_changes(&counts, "commit");
    let refs = format_count(report.refs as u64, "ref");
    let name = sanitize_line(name);
    context.out.print_line(format!("{name}: {changes} ({refs})"))?;
    if report.is_interrupted {
        context.out.print_line("interrupted: run the command again to continue")?;
    }
    Ok(())
}

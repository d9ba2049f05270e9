//! The check of a store that can be made again: `index.db` or `commits.db`.
//!
//! Separate from `check`, whose hints are about data that exists nowhere else.

use super::file_comparison::compare_files;
use crate::args::OutputFormat;
use crate::commands::sync::fill_new_index;
use crate::commit_store::commit_directory;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::mail_store::{
    follow_committed_labels, follow_labels, list_sources, mail_directory, open_mail_reader,
    open_mail_store, require_registrations,
};
use crate::output::{format_bytes, format_count, print_message, sanitize_line};
use larder_edit::{LabelDifferences, compare_labels};
use larder_store::{CheckReport, DataDirectory, Error, Fault, Reader, Store};
use larder_sync::{SyncProblem, find_absent_mail};
use serde_json::json;
use std::sync::Arc;

/// A store that can be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DerivedStore {
    Mail,
    Commits,
}

/// The result of the check of a store.
pub(super) struct DerivedCheck {
    /// Whether the store can be opened, and no page of it is known to be damaged.
    pub(super) is_readable: bool,
    pub(super) status: CommandStatus,
    /// The faults, with the next step.
    pub(super) failure: Option<CommandFailure>,
}

impl DerivedStore {
    pub(super) const ALL: [DerivedStore; 2] = [DerivedStore::Mail, DerivedStore::Commits];

    /// Returns the name of the file.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            DerivedStore::Mail => "index.db",
            DerivedStore::Commits => "commits.db",
        }
    }

    pub(super) fn directory(self, context: &CommandContext) -> DataDirectory {
        match self {
            DerivedStore::Mail => mail_directory(context),
            DerivedStore::Commits => commit_directory(context),
        }
    }

    /// The name of one item, that of all items, and the reassurance that none is lost.
    fn item_names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            DerivedStore::Mail => ("message", "mail", "no mail is lost"),
            DerivedStore::Commits => ("commit", "commits", "no commits are lost"),
        }
    }

    /// Checks the store and prints the result; before a rebuild, faults are warnings. With
    /// `reads_files`, which returns whether the user
    /// interrupted it, messages are compared with their files. Faults are a failure that says what
    /// to do.
    ///
    /// # Errors
    /// The result cannot be printed, or a source cannot be listed.
    pub(super) fn check(
        self,
        context: &mut CommandContext,
        is_rebuild: bool,
        reads_files: Option<&dyn Fn() -> bool>,
    ) -> Result<DerivedCheck, CommandFailure> {
        let report = match self.read_report(context) {
            Err(failure) if failure.is_of_store() => {
                let is_readable = self.can_be_opened(context);
                let status = CommandStatus::Done;
                return Ok(DerivedCheck { is_readable, status, failure: Some(failure) });
            }
            report => report?,
        };
        let Some(report) = report else {
            let (is_readable, status) = (true, CommandStatus::Done);
            return Ok(DerivedCheck { is_readable, status, failure: None });
        };
        let is_readable = !report.has_damaged_pages();
        if let (DerivedStore::Mail, Some(is_stopped)) = (self, reads_files) {
            // From here on, an interrupt ends with a report.
            let _early = is_stopped();
        }
        let labels = match self {
            DerivedStore::Mail if is_readable => find_label_faults(context),
            _ => None,
        };
        self.print_report(context, &report, labels.as_deref())?;
        let file = self.file_name();
        let severity = if is_rebuild { "warning" } else { "error" };
        for fault in &report.faults {
            print_message(severity, format!("{file}: {fault}"));
        }
        if let Some(labels) = &labels {
            print_message(severity, format!("{file}: {labels}"));
        }
        let status = match (self, reads_files) {
            (DerivedStore::Mail, Some(is_stopped)) if is_readable => {
                compare_files(context, is_stopped)
            }
            _ => Ok(CommandStatus::Done),
        };
        let status = match status {
            Err(failure) if failure.is_of_store() => {
                let status = CommandStatus::Done;
                return Ok(DerivedCheck { is_readable, status, failure: Some(failure) });
            }
            status => status?,
        };
        let is_sound =
            report.faults.is_empty() && labels.is_none() && status != CommandStatus::Damaged;
        let failure = (!is_sound).then(|| self.describe_faults(&report, labels.is_some()));
        Ok(DerivedCheck { is_readable, status, failure })
    }

    /// Returns the failure that names the next step after faults were found.
    fn describe_faults(self, report: &CheckReport, has_other_labels: bool) -> CommandFailure {
        let pending = report.faults.iter().map(Fault::pending_work).collect::<Option<Vec<_>>>();
        if let Some(pending) = pending.filter(|pending| !pending.is_empty() && !has_other_labels) {
            let message = format!("work on {} was interrupted", self.file_name());
            let failure = CommandFailure::new(FailureKind::Store, message);
            return pending.iter().fold(failure, |failure, work| {
                failure.with_hint(format!("to finish it: larder {}", work.command()))
            });
        }
        let (_, items, consolation) = self.item_names();
        CommandFailure::new(FailureKind::Store, format!("the index of {items} is damaged"))
            .with_hint(format!("{consolation}; to make the index again: larder check --rebuild"))
    }

    /// Returns whether a store that could not be checked can be opened for reading.
    fn can_be_opened(self, context: &CommandContext) -> bool {
        let zones = Arc::clone(&context.settings.user_locale.zones);
        Reader::open_with_zones(self.directory(context), zones).is_ok()
    }

    /// Makes the store anew from its sources. One that is readable stays as it is while a source
    /// cannot be read: the new one would lack its items. Without all registrations in `data.db`,
    /// the store stays in any case. Returns whether it was replaced.
    pub(super) fn remake(
        self,
        context: &mut CommandContext,
        is_readable: bool,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(CommandStatus, bool), CommandFailure> {
        require_registrations(context).map_err(|failure| {
            let message = format!("{} was not made anew: {}", self.file_name(), failure.message());
            failure
                .hints()
                .iter()
                .fold(CommandFailure::new(FailureKind::Store, message), CommandFailure::with_hint)
        })?;
        let options = context.index_options(true);
        let replacement = self.directory(context).begin_replacement(&options)?;
        let new = replacement.new_directory();
        let (mut status, left_out) = fill_new_index(context, new, is_stopped)?;
        let file = self.file_name();
        let is_complete = |status| matches!(status, CommandStatus::Done | CommandStatus::Rejected);
        if is_stopped() {
            status = CommandStatus::Interrupted;
        } else if is_readable && is_complete(status) && self == DerivedStore::Mail {
            let absent = find_absent(context, new, &left_out)?;
            for problem in &absent {
                let path = sanitize_line(&problem.path.display().to_string());
                print_message("error", format!("{path}: {}", sanitize_line(&problem.reason)));
            }
            if !absent.is_empty() {
                status = CommandStatus::SourceMissing;
            }
        }
        let is_kept = is_readable && !is_complete(status);
        if is_kept || status == CommandStatus::Interrupted {
            context.print_note(format!("{file} stays as it was"));
            return Ok((status, false));
        }
        replacement.commit(&options)?;
        if self == DerivedStore::Mail {
            // Nobody else followed the labels meanwhile.
            follow_committed_labels(context)?;
        }
        context.print_note(format!("{file} was made anew"));
        Ok((status, true))
    }

    /// Checks the store; `None`: there is none, or its creation was interrupted. Damage that
    /// prevents the check is a fault of the report.
    fn read_report(self, context: &CommandContext) -> Result<Option<CheckReport>, CommandFailure> {
        let directory = self.directory(context);
        if !directory.has_store() && !directory.has_pending_replacement() {
            return Ok(None);
        }
        let store = Store::open_to_copy(directory, &context.index_options(false));
        match store.and_then(|store| store.check()) {
            Err(Error::NoStore { .. }) => {
                let file = self.file_name();
                context.print_note(format!(
                    "the creation of {file} was interrupted; run: larder sync"
                ));
                Ok(None)
            }
            Err(error) if error.damaged_file().is_some() => {
                let faults = vec![Fault::Page(error.to_string())];
                Ok(Some(CheckReport { faults, ..CheckReport::default() }))
            }
            report => Ok(Some(report?)),
        }
    }

    fn print_report(
        self,
        context: &mut CommandContext,
        report: &CheckReport,
        labels: Option<&str>,
    ) -> Result<(), CommandFailure> {
        let (item, ..) = self.item_names();
        if context.format == OutputFormat::Json {
            let faults = report.faults.iter().map(ToString::to_string);
            let faults: Vec<String> = faults.chain(labels.map(str::to_string)).collect();
            context.out.print_json(&json!({
                "store": self.file_name(), "faults": faults, "items": report.items,
                "size": report.database_bytes, "wal": report.wal_bytes,
            }))?;
        } else if report.database_bytes > 0 {
            let (items, bytes) = (format_count(report.items, item), report.database_bytes);
            let file = self.file_name();
            context.out.print_line(format!("{file:<18} {}, {items}", format_bytes(bytes)))?;
        }
        Ok(context.out.flush()?)
    }
}

/// Returns the folders of mail in the index that a new one lacks although they may be there again.
fn find_absent(
    context: &CommandContext,
    new: &DataDirectory,
    left_out: &[SyncProblem],
) -> Result<Vec<SyncProblem>, CommandFailure> {
    let Some(old) = open_mail_reader(context)? else { return Ok(Vec::new()) };
    let zones = Arc::clone(&context.settings.user_locale.zones);
    let new = Reader::open_with_zones(new.clone(), zones)?;
    Ok(find_absent_mail(&old, &new, &list_sources(context)?, left_out)?)
}

/// Compares the labels in `index.db` with those in `data.db`. Returns the fault; `None`: they are
/// the same, or could not be compared, which a note or a warning says.
fn find_label_faults(context: &CommandContext) -> Option<String> {
    let compare = || -> Result<Option<LabelDifferences>, CommandFailure> {
        if !DataDirectory::new(&context.dir).has_store() {
            return Ok(Some(LabelDifferences::default()));
        }
        let Some(index) = open_mail_reader(context)? else {
            return Ok(Some(LabelDifferences::default()));
        };
        let data = context.open_complete_reader()?;
        let differences = compare_labels(&data, &index)?;
        if differences.is_some() {
            return Ok(differences);
        }
        // Others may have changed labels meanwhile.
        follow_labels(context, &mut open_mail_store(context)?)?;
        Ok(compare_labels(&data, &index)?)
    };
    match compare() {
        Ok(Some(differences)) if differences.count == 0 => None,
        Ok(Some(LabelDifferences { count, names })) => {
            let messages = format_count(count, "message");
            let others = if count > names.len() as u64 { ", ..." } else { "" };
            let names = sanitize_line(&names.join(", "));
            Some(format!("other labels than in data.db: {messages} ({names}{others})"))
        }
        Ok(None) => {
            context.print_note("labels are being changed; those in index.db were not compared");
            None
        }
        Err(failure) => {
            let reason = failure.message();
            context.print_warning(format!("the labels in index.db were not compared: {reason}"));
            None
        }
    }
}

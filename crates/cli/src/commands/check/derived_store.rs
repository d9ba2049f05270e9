//! The check of a store that can be made again: `index.db` or `commits.db`.
//!
//! Separate from `check`, whose hints are about data that exists nowhere else.

use super::file_comparison::compare_files;
use crate::args::OutputFormat;
use crate::commands::sync::fill_new_index;
use crate::commit_store::commit_directory;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::mail_store::{follow_labels, mail_directory, open_mail_reader, open_mail_store};
use crate::output::{format_bytes, format_count, print_message, sanitize_line};
use larder_edit::{LabelDifferences, compare_labels};
use larder_store::{CheckReport, DataDirectory, Error, Fault, Store};
use serde_json::json;

/// A store that can be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DerivedStore {
    Mail,
    Commits,
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

    /// The name of one item, what the store is an index of, and what is not lost with it.
    fn item_names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            DerivedStore::Mail => ("message", "mail", "no mail is lost"),
            DerivedStore::Commits => ("commit", "commits", "no commits are lost"),
        }
    }

    /// Checks the store and prints the result. With `reads_files`, which returns whether the user
    /// interrupted it, messages are compared with their files. Faults are a failure that says what
    /// to do.
    pub(super) fn check(
        self,
        context: &mut CommandContext,
        reads_files: Option<&dyn Fn() -> bool>,
    ) -> Result<(), CommandFailure> {
        let Some(report) = self.read_report(context)? else { return Ok(()) };
        let is_readable = !report.has_damaged_pages();
        let labels = match self {
            DerivedStore::Mail if is_readable => find_label_faults(context),
            _ => None,
        };
        self.print_report(context, &report, labels.as_deref())?;
        let file = self.file_name();
        for fault in &report.faults {
            print_message("error", format!("{file}: {fault}"));
        }
        if let Some(labels) = &labels {
            print_message("error", format!("{file}: {labels}"));
        }
        let is_sound = report.faults.is_empty() && labels.is_none();
        let has_read = match (self, reads_files) {
            (DerivedStore::Mail, Some(is_stopped)) if is_readable => {
                compare_files(context, is_stopped)?
            }
            _ => true,
        };
        if is_sound && has_read {
            return Ok(());
        }
        let pending = report.faults.iter().map(Fault::pending_work).collect::<Option<Vec<_>>>();
        if let Some(pending) = pending.filter(|pending| !pending.is_empty() && labels.is_none()) {
            let message = format!("work on {file} was interrupted");
            let failure = CommandFailure::new(FailureKind::Store, message);
            return Err(pending.iter().fold(failure, |failure, work| {
                failure.with_hint(format!("to finish it: larder {}", work.command()))
            }));
        }
        let (_, items, consolation) = self.item_names();
        Err(CommandFailure::new(FailureKind::Store, format!("the index of {items} is damaged"))
            .with_hint(format!("{consolation}; to make the index again: larder check --rebuild")))
    }

    /// Makes the store anew from its sources. While one of them cannot be read, a sound store stays
    /// as it is.
    pub(super) fn remake(
        self,
        context: &mut CommandContext,
        is_damaged: bool,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<CommandStatus, CommandFailure> {
        let options = context.store_options(true);
        let replacement = self.directory(context).begin_replacement(&options)?;
        let status = fill_new_index(context, replacement.new_directory(), is_stopped)?;
        let file = self.file_name();
        let is_complete = matches!(status, CommandStatus::Done | CommandStatus::Rejected);
        if is_stopped() || !(is_complete || is_damaged) {
            context.print_note(format!("{file} stays as it was"));
            return Ok(status);
        }
        replacement.commit(&options)?;
        context.print_note(format!("{file} was made anew"));
        Ok(status)
    }

    /// Checks the store; `None`: there is none, or its creation was interrupted. Damage that
    /// prevents the check is a fault of the report.
    fn read_report(self, context: &CommandContext) -> Result<Option<CheckReport>, CommandFailure> {
        let directory = self.directory(context);
        if !directory.has_store() && !directory.has_pending_replacement() {
            return Ok(None);
        }
        let store = Store::open_to_copy(directory, &context.store_options(false));
        match store.and_then(|store| store.check()) {
            Err(Error::NoStore { .. }) => {
                let file = self.file_name();
                context.print_note(format!(
                    "the creation of {file} was interrupted; run: larder sync"
                ));
                Ok(None)
            }
            Err(error @ (Error::Damaged { .. } | Error::DamagedObject { .. })) => {
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
        let data = context.open_reader()?;
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

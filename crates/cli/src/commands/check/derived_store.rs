//! The check of a store that can be made again: `index.db` or `commits.db`.
//!
//! Separate from `check`, whose hints are about data that exists nowhere else.

use crate::args::OutputFormat;
use crate::commit_store::commit_directory;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::mail_store::mail_directory;
use crate::output::{format_bytes, format_count, print_message};
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

    /// Checks the store and prints the result. Faults are a failure that says what to do.
    pub(super) fn check(self, context: &mut CommandContext) -> Result<(), CommandFailure> {
        let Some(report) = self.read_report(context)? else { return Ok(()) };
        self.print_report(context, &report)?;
        if report.faults.is_empty() {
            return Ok(());
        }
        let file = self.file_name();
        for fault in &report.faults {
            print_message("error", format!("{file}: {fault}"));
        }
        let pending = report.faults.iter().map(Fault::pending_work).collect::<Option<Vec<_>>>();
        if let Some(pending) = pending {
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

    /// Checks the store; `None`: there is none, or its creation was interrupted. Damage that
    /// prevents the check is a fault of the report.
    fn read_report(self, context: &CommandContext) -> Result<Option<CheckReport>, CommandFailure> {
        let directory = self.directory(context);
        if !directory.has_store() {
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
    ) -> Result<(), CommandFailure> {
        let (item, ..) = self.item_names();
        if context.format == OutputFormat::Json {
            let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
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

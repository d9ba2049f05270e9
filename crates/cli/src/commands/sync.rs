//! `larder sync`.

mod commit_report;

use crate::args::OutputFormat;
use crate::commit_store::{commit_stores, list_repositories, open_commit_reader};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::interrupt::{install_interrupt_flag, install_interrupt_wake};
use crate::machine_time::now_milliseconds;
use crate::mail_rules::{format_rule_problem, print_rule_effects, rule_problem_hint, run_rules};
use crate::mail_store::{
    follow_labels, list_sources, mail_stores, open_mail_reader, open_mail_store,
    require_registrations,
};
use crate::output::{OutputStream, format_count, format_grouped, print_message, sanitize_line};
use larder_store::{DataDirectory, Store, StoreFile, SyncMode};
use larder_sync::{
    ConversionFailure, MailRuleReport, MailSyncOptions, MailSyncReport, MailWatch, MailWatchEvent,
    MailWatchOptions, RegisteredSource, RuleScope, SourceSelection, SourceStores, SyncProblem,
    SyncRound, SyncRoundEvent, WatchLimits, sync_mail_sources,
};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bring the index of registered maildirs and git repositories up to date
///
/// Reads new messages, and notes changed flags, moved and removed files. Folders whose state did
/// not change are not listed. Nothing in a maildir is ever changed. Searches see new messages while
/// it runs, the newest mail first. At the end, saved searches with labels run on the new messages.
/// Of a repository, the new commits of all refs are read through git, and commits that no ref has
/// any more are removed.
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
    /// Keep running, and note changes as they happen, until Control-C
    ///
    /// A line is printed for each set of changes. Needs a watch of the system for each folder; if
    /// there are not enough, all folders are looked at every minute.
    #[arg(long)]
    watch: bool,
    /// With --watch, look for changes in all folders every N minutes, too: file systems of other
    /// machines report none (0: never)
    #[arg(long, value_name = "N", default_value_t = 30, requires = "watch")]
    interval: u32,
    /// Write at most N messages in one transaction
    #[arg(long, value_name = "N", default_value_t = larder_sync::DEFAULT_MAIL_BATCH)]
    tune_batch: usize,
    /// Read with N threads [default: the number of processors]
    #[arg(long, value_name = "N")]
    tune_readers: Option<usize>,
    /// Read files in the order of their inodes
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    tune_sort_inodes: bool,
    /// Wait for the disk: with each commit (full), with each copying of the log (normal), or only
    /// at the end (off); after a power cut with off, `larder check --rebuild` is needed
    #[arg(long, value_name = "MODE", default_value = "normal")]
    tune_synchronous: SyncModeName,
}

/// A mode of `--tune-synchronous`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SyncModeName {
    Off,
    Normal,
    Full,
}

impl SyncModeName {
    fn to_sync_mode(self) -> SyncMode {
        match self {
            SyncModeName::Off => SyncMode::Off,
            SyncModeName::Normal => SyncMode::Normal,
            SyncModeName::Full => SyncMode::Full,
        }
    }
}

/// The number of files that were left out that are named for a source.
const MAX_PRINTED_PROBLEMS: usize = 100;
/// The number of damaged messages that are named for a source.
const MAX_PRINTED_DAMAGED: usize = 5;

impl Default for SyncArgs {
    /// Returns the arguments of a plain `larder sync`.
    fn default() -> SyncArgs {
        SyncArgs {
            names: Vec::new(),
            full: false,
            rules: false,
            watch: false,
            interval: 0,
            tune_batch: larder_sync::DEFAULT_MAIL_BATCH,
            tune_readers: None,
            tune_sort_inodes: true,
            tune_synchronous: SyncModeName::Normal,
        }
    }
}

impl SyncArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        context.warn_of_access_by_others();
        context.refuse_lost_store()?;
        if DataDirectory::new(&context.dir).has_store() {
            require_registrations(context)?;
        }
        let (sources, repositories) = (list_sources(context)?, list_repositories(context)?);
        for name in &self.names {
            let is_named = |source: &RegisteredSource| source.name == *name;
            if !sources.iter().chain(&repositories).any(is_named) {
                let message = format!("no source is named {:?}", sanitize_line(name));
                return Err(CommandFailure::new(FailureKind::NotFound, message)
                    .with_hint("`larder sources` lists them"));
            }
        }
        let has_mail = !sources.is_empty() || open_mail_reader(context)?.is_some();
        let has_commits = !repositories.is_empty() || open_commit_reader(context)?.is_some();
        if !has_mail && !has_commits {
            return Err(no_sources_failure());
        }
        require_registrations(context)?;
        if has_mail {
            follow_labels(context, &mut open_mail_store(context)?)?;
        }
        let sources = sources.iter().chain(&repositories);
        let selection = SourceSelection::from_names(&self.names, sources);
        match self.watch {
            true => self.watch_sources(context, selection),
            false => self.sync_once(context, &selection),
        }
    }

    fn sync_once(
        &self,
        context: &mut CommandContext,
        selection: &SourceSelection,
    ) -> Result<CommandStatus, CommandFailure> {
        let options = self.to_options(context);
        let stop = install_interrupt_flag();
        let round = SyncRound { selection, options: &options, at: now_milliseconds() };
        let mut printer = RoundPrinter::new(context);
        let (stores, is_stopped) =
            (self.mail_stores(printer.context), || stop.load(Ordering::Relaxed));
        let completed = match stores.index.has_store() || !stores.list_mail_sources()?.is_empty() {
            true => {
                sync_mail_sources(&stores, &round, &mut |event| printer.print(&event), &is_stopped)?
            }
            false => Vec::new(),
        };
        let commits = commit_stores(printer.context);
        printer.sync_commits(&commits, selection, self.full, &is_stopped);
        let scope = if self.rules { RuleScope::All } else { RuleScope::New };
        printer.run_rules(&completed, scope);
        // A store that failed may be that of all sources.
        if printer.sources == 0 && printer.failure.is_none() {
            return Err(no_sources_failure());
        }
        printer.finish()
    }

    fn watch_sources(
        &self,
        context: &mut CommandContext,
        selection: SourceSelection,
    ) -> Result<CommandStatus, CommandFailure> {
        let interval = Duration::from_secs(u64::from(self.interval) * 60);
        let options = MailWatchOptions {
            selection,
            sync: self.to_options(context),
            interval: (self.interval > 0).then_some(interval),
            limits: WatchLimits::default(),
        };
        let mut watch = MailWatch::begin()?;
        let waker = watch.waker();
        let stop = install_interrupt_wake(move || waker.wake());
        let mut printer = RoundPrinter::new(context);
        printer.is_watch = true;
        let mut scope = if self.rules { RuleScope::All } else { RuleScope::New };
        let stores = self.mail_stores(printer.context);
        // Nobody reads the output any more.
        let is_ended = Cell::new(false);
        let is_stopped = || stop.load(Ordering::Relaxed) || is_ended.get();
        let mut print = |event: MailWatchEvent<'_>| match event {
            MailWatchEvent::Round(event) => printer.print(&event),
            MailWatchEvent::RoundEnded(completed) => {
                let commits = commit_stores(printer.context);
                printer.sync_commits(&commits, &options.selection, false, &is_stopped);
                printer.run_rules(completed, mem::replace(&mut scope, RuleScope::New));
                is_ended.set(!printer.flush());
            }
            MailWatchEvent::Ready { folders } => {
                let folders = format_count(folders as u64, "folder");
                printer.context.print_note(format!("watching {folders}; Control-C ends"));
            }
            MailWatchEvent::Lost => printer
                .context
                .print_note("the system lost changes of folders; all folders are looked at"),
            MailWatchEvent::LimitReached { folders } => {
                let folders = format_count(folders as u64, "folder");
                printer.context.print_warning(format!(
                    "the system allows watches of {folders} only: all folders are looked at every \
                     minute; a larger fs.inotify.max_user_watches prevents this"
                ));
            }
        };
        watch.run(&stores, &options, &mut print, &is_stopped)?;
        printer.finish()?;
        Ok(if is_ended.get() { CommandStatus::Done } else { CommandStatus::Interrupted })
    }

    fn mail_stores(&self, context: &CommandContext) -> SourceStores {
        let mut stores = mail_stores(context);
        stores.options.sync_mode = self.tune_synchronous.to_sync_mode();
        stores
    }

    fn to_options(&self, context: &CommandContext) -> MailSyncOptions {
        let defaults = MailSyncOptions::default();
        MailSyncOptions {
            is_full: self.full,
            batch_messages: self.tune_batch,
            readers: self.tune_readers.unwrap_or(defaults.readers),
            sort_inodes: self.tune_sort_inodes,
            personal_addresses: context.mail_addresses.clone(),
            converters: context.converters.clone(),
            ..defaults
        }
    }
}

/// Fills a new index from all sources: that of mail in a directory, or that of commits. Prints the
/// result for each source. `Done` or `Rejected`: all sources were read, except the returned folders
/// and files.
pub(super) fn fill_new_index(
    context: &mut CommandContext,
    directory: &DataDirectory,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(CommandStatus, Vec<SyncProblem>), CommandFailure> {
    let stores = SourceStores { index: directory.clone(), ..mail_stores(context) };
    let mut store = Store::open(directory.clone(), &stores.options)?;
    if directory.store_file() == StoreFile::Commits {
        drop(store);
        let mut printer = RoundPrinter::new(context);
        printer.sync_commits(&stores, &SourceSelection::default(), false, is_stopped);
        let is_interrupted = is_stopped();
        let status = printer.finish()?;
        let status = if is_interrupted { CommandStatus::Interrupted } else { status };
        return Ok((status, Vec::new()));
    }
    follow_labels(context, &mut store)?;
    let options = SyncArgs::default().to_options(context);
    let selection = SourceSelection::default();
    let round = SyncRound { selection: &selection, options: &options, at: now_milliseconds() };
    let mut printer = RoundPrinter::new(context);
    let mut left_out = Vec::new();
    let mut print = |event: SyncRoundEvent<'_>| {
        if let SyncRoundEvent::Finished(_, Ok(report)) = &event {
            left_out.extend(report.problems.iter().filter(|one| one.is_left_out).cloned());
        }
        printer.print(&event);
    };
    let synced = sync_mail_sources(&stores, &round, &mut print, is_stopped)?;
    let status = printer.finish()?;
    // Notes that rules are for mail that comes from now on, and follows labels that changed.
    run_rules(context, &mut store, &synced, RuleScope::New)?;
    Ok((status, left_out))
}

fn no_sources_failure() -> CommandFailure {
    CommandFailure::new(FailureKind::NotFound, "no sources are registered")
        .with_hint("larder sources add MAILDIR")
}

/// Prints the events of rounds.
struct RoundPrinter<'c> {
    context: &'c mut CommandContext,
    bar: Option<indicatif::ProgressBar>,
    /// Whether sources without changes are left out, and problems are printed once.
    is_watch: bool,
    printed: HashSet<(PathBuf, String)>,
    /// The number of sources that were read, or could not be.
    sources: usize,
    status: CommandStatus,
    failure: Option<CommandFailure>,
}

impl<'c> RoundPrinter<'c> {
    fn new(context: &'c mut CommandContext) -> RoundPrinter<'c> {
        RoundPrinter {
            context,
            bar: None,
            is_watch: false,
            printed: HashSet::new(),
            sources: 0,
            status: CommandStatus::Done,
            failure: None,
        }
    }

    fn print(&mut self, event: &SyncRoundEvent<'_>) {
        match event {
            SyncRoundEvent::Forgotten(forgotten) => {
                let name = sanitize_line(&forgotten.name);
                let files = format_count(forgotten.files as u64, "file");
                let note = format!("{name} is no source any more; {files} left the index");
                self.context.print_note(note);
            }
            SyncRoundEvent::Progress(progress) => {
                let is_quiet = self.context.quiet;
                let bar = self.bar.get_or_insert_with(|| crate::progress::count_progress(is_quiet));
                bar.set_length(progress.total as u64);
                bar.set_position(progress.done as u64);
            }
            SyncRoundEvent::Finished(source, result) => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
                self.sources += 1;
                match result {
                    Ok(report) => self.print_result(&source.name, report),
                    Err(error) => {
                        print_message("error", self.describe_source_error(&source.name, error));
                        self.status = CommandStatus::SourceMissing;
                    }
                }
            }
        }
    }

    fn print_result(&mut self, name: &str, report: &MailSyncReport) {
        let mut problems: Vec<&SyncProblem> = report.problems.iter().collect();
        if self.is_watch {
            problems.retain(|one| self.printed.insert((one.path.clone(), one.reason.clone())));
        }
        let changes = [
            report.added_files,
            report.reread_files,
            report.renamed_files,
            report.removed_files,
            problems.len(),
            report.conversion_failures.len(),
        ];
        if self.is_watch && (self.context.quiet || changes.iter().all(|count| *count == 0)) {
            return;
        }
        if let Err(failure) = print_report(self.context, name, report, &problems) {
            self.note_failure(failure);
        }
        self.note_result(report.is_interrupted, &problems);
    }

    /// Keeps the exit code that a source gives.
    fn note_result(&mut self, is_interrupted: bool, problems: &[&SyncProblem]) {
        if is_interrupted {
            self.status = CommandStatus::Interrupted;
        } else if self.status == CommandStatus::Done && problems.iter().any(|one| one.is_left_out) {
            self.status = CommandStatus::Rejected;
        }
    }

    /// Prints that a source cannot be read.
    fn print_source_error(&mut self, name: &str, error: &larder_sync::Error) {
        let text = self.describe_source_error(name, error);
        if !self.is_watch || self.printed.insert((PathBuf::new(), text.clone())) {
            print_message("error", text);
        }
        self.status = CommandStatus::SourceMissing;
    }

    /// Says that a source cannot be read, and why.
    fn describe_source_error(&self, name: &str, error: &larder_sync::Error) -> String {
        let name = sanitize_line(name);
        let wait = if self.is_watch { "; waiting for it" } else { "" };
        let reason = match error {
            larder_sync::Error::Maildir { path, source }
                if source.kind() == ErrorKind::NotFound =>
            {
                let path = path.display();
                format!("{path} is missing (is its disk mounted?); messages that are indexed stay")
            }
            error => error.to_string(),
        };
        format!("{name}: {}{wait}", sanitize_line(&reason))
    }

    /// Runs the rules on the new messages of the sources that a round has completed.
    fn run_rules(&mut self, completed: &[String], scope: RuleScope) {
        if completed.is_empty() || self.status == CommandStatus::Interrupted {
            return;
        }
        let result = open_mail_store(self.context).and_then(|mut store| {
            let report = run_rules(self.context, &mut store, completed, scope)?;
            // Labels may have changed while the messages were read.
            follow_labels(self.context, &mut store)?;
            Ok(report)
        });
        if let Err(failure) = result.and_then(|report| self.print_rules(&report)) {
            self.note_failure(failure);
        }
    }

    fn print_rules(&mut self, report: &MailRuleReport) -> Result<(), CommandFailure> {
        for problem in &report.problems {
            if self.status == CommandStatus::Done {
                self.status = CommandStatus::Rejected;
            }
            let line = format_rule_problem(problem);
            if !self.is_watch || self.printed.insert((PathBuf::new(), line.clone())) {
                print_message("error", line);
                print_message("hint", rule_problem_hint(problem));
            }
        }
        if self.context.quiet && (self.is_watch || self.context.format == OutputFormat::Text) {
            return Ok(());
        }
        print_rule_effects(self.context, report)
    }

    /// Keeps a failure for the end. A watch goes on, and prints each failure once.
    fn note_failure(&mut self, failure: CommandFailure) {
        if !self.is_watch {
            self.failure.get_or_insert(failure);
        } else if self.printed.insert((PathBuf::new(), failure.message().to_string())) {
            failure.print_as_warning(false);
        }
    }

    /// Prints the lines of a round. Returns false if they cannot be printed, or nobody reads them.
    fn flush(&mut self) -> bool {
        self.context.out.flush().is_ok() && !OutputStream::is_reader_gone()
    }

    fn finish(self) -> Result<CommandStatus, CommandFailure> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.status),
        }
    }
}

fn problems_json(problems: &[&SyncProblem]) -> Vec<Value> {
    let problem = |one: &&SyncProblem| {
        json!({
            "path": one.path.to_string_lossy(), "reason": one.reason,
            "is_left_out": one.is_left_out,
        })
    };
    problems.iter().map(problem).collect()
}

/// Returns the first problem of each file that was left out, or of each damaged one.
fn first_problems<'p>(problems: &[&'p SyncProblem], is_left_out: bool) -> Vec<&'p SyncProblem> {
    let mut named = HashSet::new();
    let chosen = problems.iter().filter(|one| one.is_left_out == is_left_out);
    chosen.filter(|one| named.insert(&one.path)).copied().collect()
}

fn print_report(
    context: &mut CommandContext,
    name: &str,
    report: &MailSyncReport,
    problems: &[&SyncProblem],
) -> Result<(), CommandFailure> {
    let (left_out, damaged) = (first_problems(problems, true), first_problems(problems, false));
    let line = |problem: &SyncProblem| {
        let path = sanitize_line(&problem.path.display().to_string());
        format!("{path}: {}", sanitize_line(&problem.reason))
    };
    for problem in left_out.iter().take(MAX_PRINTED_PROBLEMS) {
        print_message("error", line(problem));
    }
    for problem in damaged.iter().take(MAX_PRINTED_DAMAGED) {
        context.print_warning(line(problem));
    }
    for (files, most, what) in [
        (left_out.len(), MAX_PRINTED_PROBLEMS, "left out"),
        (damaged.len(), MAX_PRINTED_DAMAGED, "with damage"),
    ] {
        if files > most {
            let further = format_count((files - most) as u64, "further file");
            context.print_note(format!("{further} {what} not shown (--format json has all)"));
        }
    }
    for failure in &report.conversion_failures {
        let path = sanitize_line(&failure.path.display().to_string());
        let program = sanitize_line(&failure.program);
        let count = format_count(failure.attachments as u64, "attachment");
        let reason = sanitize_line(&failure.reason);
        context
            .print_warning(format!("converter {program}: {reason} ({count}, such as in {path})"));
    }
    if context.format == OutputFormat::Json {
        let failure = |one: &ConversionFailure| {
            json!({
                "program": one.program, "reason": one.reason, "attachments": one.attachments,
                "path": one.path.to_string_lossy(),
            })
        };
        let failures: Vec<_> = report.conversion_failures.iter().map(failure).collect();
        context.out.print_json(&json!({
            "name": name,
            "added_files": report.added_files, "reread_files": report.reread_files,
            "renamed_files": report.renamed_files,
            "removed_files": report.removed_files, "directories": report.directories,
            "listed_directories": report.listed_directories,
            "is_interrupted": report.is_interrupted,
            "problems": problems_json(problems),
            "conversion_failures": failures,
        }))?;
        return Ok(());
    }
    if context.quiet {
        return Ok(());
    }
    let counts = [
        (report.added_files, "added"),
        (report.reread_files, "read again"),
        (report.renamed_files, "renamed or moved"),
        (report.removed_files, "removed"),
        (left_out.len(), "left out"),
        (damaged.len(), "with damage"),
    ];
    let changes = format_changes(&counts, "file");
    let folders = format_count(report.listed_directories as u64, "folder");
    let name = sanitize_line(name);
    let all = format_grouped(report.directories as u64);
    context.out.print_line(format!("{name}: {changes} ({folders} of {all} listed)"))?;
    if report.is_interrupted {
        context.out.print_line("interrupted: run the command again to continue")?;
    }
    Ok(())
}

/// Returns the counts that are not zero, each with its verb, and the first with the noun of all.
fn format_changes(counts: &[(usize, &str)], noun: &str) -> String {
    let mut counts = counts.iter().filter(|(count, _)| *count > 0);
    let Some((count, verb)) = counts.next() else { return "nothing changed".into() };
    let mut parts = vec![format!("{} {verb}", format_count(*count as u64, noun))];
    parts.extend(counts.map(|(count, verb)| format!("{} {verb}", format_grouped(*count as u64))));
    parts.join(", ")
}

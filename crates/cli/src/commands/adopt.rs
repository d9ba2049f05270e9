//! `larder adopt`.

use super::labels::name_messages;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::label_dump_file::read_label_dump;
use crate::machine_time::now_milliseconds;
use crate::mail_store::{list_sources, open_mail_reader, open_mail_store};
use crate::output::{format_count, print_message, sanitize_line};
use crate::program_output::run_program;
use larder_edit::labels::follow_labels;
use larder_store::{Operation, OperationId};
use larder_sync::{AdoptionReport, Error, ForeignMail, adopt_mail, read_mu, read_notmuch};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Take over labels and saved searches from mu or notmuch (`larder undo` reverts it)
///
/// Reads the tags and named queries of notmuch, or the bookmarks and labels of mu, with the
/// configuration of that program, which stays as it is. Queries that Larder cannot run are named
/// and left out. Messages that are not indexed yet get their labels when `larder sync` finds them.
#[derive(Debug, clap::Args)]
pub(crate) struct AdoptArgs {
    /// The program
    #[arg(value_enum)]
    program: MailProgram,
    /// Read the labels from a file that `notmuch dump` or `mu labels export` wrote (- for standard
    /// input), and do not run the program
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// mu: its directory [default: $MUHOME, else $XDG_CONFIG_HOME/mu for the bookmarks]
    #[arg(long, value_name = "DIR")]
    muhome: Option<PathBuf>,
}

/// A mail program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MailProgram {
    Mu,
    Notmuch,
}

/// The number of lines of a dump that are named.
const MAX_PRINTED_PROBLEMS: usize = 20;

impl AdoptArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let command = match self.program {
            MailProgram::Notmuch => "larder adopt notmuch --from -",
            MailProgram::Mu => "larder adopt mu --from -",
        };
        let from = self.from.as_deref();
        let dump = from.map(|path| read_label_dump(path, command)).transpose()?;
        let read = |foreign: Result<ForeignMail, Error>| match (foreign, from) {
            (Err(Error::NoLabelDump { program }), Some(path)) => {
                Err(no_labels_failure(path, program))
            }
            (foreign, _) => Ok(foreign?),
        };
        let (name, foreign) = match self.program {
            MailProgram::Notmuch => ("notmuch", read(read_notmuch(dump.as_deref(), &run_program))?),
            MailProgram::Mu => {
                let home = self.muhome.or_else(|| context.mu_home());
                let bookmarks = context.mu_bookmarks(home.as_deref())?;
                let dump = dump.as_deref();
                ("mu", read(read_mu(&bookmarks, home.as_deref(), dump, &run_program))?)
            }
        };
        let mut store = context.open_or_create_store()?;
        let mut operation = Operation::new("adopt", name, now_milliseconds());
        let hints = setup_hints(context, &foreign)?;
        let problems = print_notices(context, &foreign);
        let index = open_mail_reader(context)?;
        let settings = context.settings.clone();
        let report = adopt_mail(&mut store, index.as_ref(), foreign, &settings, &mut operation)?;
        if index.is_some() {
            let mut index = open_mail_store(context)?;
            let followed = follow_labels(&store.open_reader()?, &mut index, now_milliseconds());
            CommandFailure::after_commit(followed.map_err(CommandFailure::from))?;
        }
        print_report(context, name, &report, operation.id(), problems)?;
        for hint in hints {
            context.print_note(hint);
        }
        let is_complete = report.refused.is_empty() && problems == 0;
        Ok(if is_complete { CommandStatus::Done } else { CommandStatus::Rejected })
    }
}

/// Returns the failure for a file that has no labels of a program.
fn no_labels_failure(path: &Path, program: &str) -> CommandFailure {
    let name = match path.as_os_str() == "-" {
        true => "standard input".to_string(),
        false => sanitize_line(&path.display().to_string()),
    };
    let command = if program == "mu" { "mu labels export" } else { "notmuch dump" };
    CommandFailure::new(FailureKind::Input, format!("{name}: no labels of {program}"))
        .with_hint(format!("`{command}` writes such a file"))
}

/// Returns notes on settings that Larder does not take over by itself.
fn setup_hints(
    context: &CommandContext,
    foreign: &ForeignMail,
) -> Result<Vec<String>, CommandFailure> {
    let mut hints = Vec::new();
    if let Some(path) = &foreign.maildir
        && !list_sources(context)?.iter().any(|source| source.path == *path)
    {
        let path = sanitize_line(&path.display().to_string());
        hints.push(format!("{path} is not registered: larder sources add '{path}'; larder sync"));
    }
    let missing = foreign.excluded_labels.iter();
    let missing: Vec<&String> =
        missing.filter(|label| !context.excluded_labels.contains(label)).collect();
    if !missing.is_empty() {
        hints.push(format!(
            "to hide the same messages, put into config.toml: [mail] exclude-labels = {missing:?}"
        ));
    }
    Ok(hints)
}

/// Names what could not be read. Returns the number of lines of the dump among it.
fn print_notices(context: &CommandContext, foreign: &ForeignMail) -> usize {
    for notice in &foreign.notices {
        context.print_note(sanitize_line(notice));
    }
    let problems = foreign.labels.as_ref().map_or(&[][..], |dump| &dump.problems);
    for problem in problems.iter().take(MAX_PRINTED_PROBLEMS) {
        let reason = sanitize_line(&problem.reason.to_string());
        print_message("error", format!("labels: line {}: {reason}", problem.line));
    }
    if problems.len() > MAX_PRINTED_PROBLEMS {
        let further = (problems.len() - MAX_PRINTED_PROBLEMS) as u64;
        context.print_note(format!("{} not shown", format_count(further, "further line")));
    }
    problems.len()
}

fn print_report(
    context: &mut CommandContext,
    program: &str,
    report: &AdoptionReport,
    operation: Option<OperationId>,
    problems: usize,
) -> Result<(), CommandFailure> {
    for search in &report.refused {
        let (name, reason) = (sanitize_line(&search.name), sanitize_line(&search.reason));
        let query = match search.query.is_empty() {
            true => String::new(),
            false => format!("{}: ", sanitize_line(&search.query)),
        };
        print_message("error", format!("search {name} left out: {query}{reason}"));
    }
    let labels = &report.labels;
    if context.format == OutputFormat::Json {
        let searches = report.searches.iter();
        let searches: Value =
            searches.map(|one| json!({ "name": one.name, "query": one.query })).collect();
        let refused = report
            .refused
            .iter()
            .map(|one| json!({ "name": one.name, "query": one.query, "reason": one.reason }));
        context.out.print_json(&json!({
            "program": program, "labelled": labels.labels.changed, "waiting": labels.waiting,
            "waiting_ids": labels.waiting_ids,
            "unnamed": labels.unnamed, "flag_tags": labels.flag_tags, "bad_lines": problems, "searches": searches,
            "refused": refused.collect::<Vec<_>>(),
            "operation": operation.map(OperationId::to_number),
        }))?;
        return Ok(());
    }
    for search in &report.searches {
        let (name, query) = (sanitize_line(&search.name), sanitize_line(&search.query));
        context.out.print_line(format!("@{name}  {query}"))?;
    }
    let changed = format_count(labels.labels.changed, "message");
    let searches = format_count(report.searches.len() as u64, "search");
    let searches = searches.replace("searchs", "searches");
    let undo = operation.map(|id| format!(" Undo: larder undo {id}")).unwrap_or_default();
    context.out.print_line(format!("From {program}: {changed} labelled, {searches}.{undo}"))?;
    if labels.waiting > 0 {
        let waiting = name_messages(labels.waiting, &labels.waiting_ids);
        context.print_note(format!(
            "{waiting} not in the index; their labels wait until larder sync finds them"
        ));
    }
    if labels.unnamed > 0 {
        let count = format_count(labels.unnamed, "message");
        context.print_note(format!("{count} left out: without a Message-ID"));
    }
    if !labels.flag_tags.is_empty() {
        let tags: Vec<&str> = labels.flag_tags.iter().copied().collect();
        let tags = tags.join(", ");
        let noun = if program == "mu" { "labels" } else { "tags" };
        context.print_note(format!("{noun} that are flags of the files were left out: {tags}"));
    }
    Ok(())
}

//! `larder sources`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::mail_store::{list_sources, open_mail_reader, open_mail_store};
use crate::output::{format_count, sanitize_line};
use crate::table::format_columns;
use larder_sync::maildir::scan_maildir;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Register maildirs, list them, or forget them
///
/// The messages of a maildir stay where they are; `larder sync` indexes them, and `larder find
/// --kind message` searches them.
#[derive(Debug, clap::Args)]
pub(crate) struct SourcesArgs {
    #[command(subcommand)]
    verb: Option<SourcesCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum SourcesCommand {
    /// List the maildirs with the number of their messages (the default)
    List,
    /// Register a maildir: a folder with `cur` and `new`, or a tree of such folders
    Add {
        /// The maildir
        #[arg(value_name = "PATH")]
        maildir: PathBuf,
        /// The name of the collection of its messages
        #[arg(long, value_name = "NAME", default_value = "mail")]
        into: String,
    },
    /// Forget a maildir and its index; its files stay
    Remove {
        /// The name of the collection
        name: String,
    },
}

impl SourcesArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        match self.verb.unwrap_or(SourcesCommand::List) {
            SourcesCommand::List => print_sources(context),
            SourcesCommand::Add { maildir, into } => add_source(context, &maildir, &into),
            SourcesCommand::Remove { name } => remove_source(context, &name),
        }
    }
}

fn print_sources(context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
    let sources = list_sources(context)?;
    let reader = open_mail_reader(context)?;
    let mut rows = Vec::new();
    for source in &sources {
        let indexed = reader.as_ref().map(|reader| reader.collections().find(&source.name));
        let count = indexed.transpose()?.flatten().map_or(0, |collection| collection.item_count);
        let path = sanitize_line(&source.path.display().to_string());
        if context.format == OutputFormat::Json {
            let object = json!({
                "name": source.name, "type": "maildir", "path": path, "messages": count,
            });
            context.out.print_json(&object)?;
        } else {
            rows.push([sanitize_line(&source.name), format_count(count, "message"), path]);
        }
    }
    for line in format_columns(&rows, [30, 20, 0], context.out.line_width()) {
        context.out.print_line(line)?;
    }
    if sources.is_empty() && context.format == OutputFormat::Text {
        context.print_note("no sources; to register a maildir: larder sources add MAILDIR");
    }
    Ok(if sources.is_empty() { CommandStatus::NothingFound } else { CommandStatus::Done })
}

fn add_source(
    context: &mut CommandContext,
    maildir: &Path,
    name: &str,
) -> Result<CommandStatus, CommandFailure> {
    let path = std::path::absolute(maildir)
        .map_err(|error| CommandFailure::from_file_error(maildir, &error))?;
    let scan =
        scan_maildir(&path).map_err(|error| CommandFailure::from_file_error(maildir, &error))?;
    let shown = sanitize_line(&path.display().to_string());
    if scan.directories.is_empty() {
        let message = format!("{shown} is no maildir: it has no directory `cur` or `new`");
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint("name the folder above your mail folders"));
    }
    let sources = list_sources(context)?;
    let known = sources.iter().find(|source| source.name == name);
    if let Some(known) = known.filter(|known| known.path != path) {
        let known = sanitize_line(&known.path.display().to_string());
        let message = format!("the name {} belongs to the maildir {known}", sanitize_line(name));
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint("choose another name with --into"));
    }
    if let Some(other) = larder_sync::find_overlapping_source(&sources, &path)
        && other.name != name
    {
        let (other, known) =
            (sanitize_line(&other.name), sanitize_line(&other.path.display().to_string()));
        let message = format!("messages of {shown} belong to the source {other}, {known}");
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint(format!("larder sources remove {other} makes room for it")));
    }
    let mut store = context.open_or_create_store()?;
    larder_sync::add_mail_source(&mut store, name, &path, now_milliseconds())?;
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({ "name": name, "path": shown }))?;
    } else {
        let folders = format_count(scan.directories.len() as u64, "directory");
        let folders = folders.replace("directorys", "directories");
        let name = sanitize_line(name);
        context
            .out
            .print_line(format!("{name} is {shown} ({folders}); to index it: larder sync"))?;
    }
    Ok(CommandStatus::Done)
}

fn remove_source(
    context: &mut CommandContext,
    name: &str,
) -> Result<CommandStatus, CommandFailure> {
    // A synchronisation may be reading the maildir.
    let mut index = match open_mail_reader(context)? {
        Some(_) => Some(open_mail_store(context)?),
        None => None,
    };
    let lock = index.as_ref().map(larder_store::Store::lock_mail_sync).transpose()?;
    let sources = list_sources(context)?;
    let Some(source) = sources.iter().find(|source| source.name == name) else {
        let message = format!("no source is named {:?}", sanitize_line(name));
        return Err(CommandFailure::new(FailureKind::NotFound, message)
            .with_hint("`larder sources` lists them"));
    };
    let at = now_milliseconds();
    larder_sync::remove_mail_source(&mut context.open_store()?, name, at)?;
    let rest: Vec<_> = sources.iter().filter(|source| source.name != name).cloned().collect();
    let mut files = 0;
    if let (Some(index), Some(lock)) = (&mut index, &lock) {
        let forgotten = larder_sync::match_indexed_sources(index, lock, &rest, at)?;
        files = forgotten.iter().map(|one| one.files).sum();
    }
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({ "name": name, "files": files }))?;
    } else {
        let path = sanitize_line(&source.path.display().to_string());
        let files = format_count(files as u64, "file");
        context.out.print_line(format!(
            "{} forgotten ({files}); {path} is unchanged",
            sanitize_line(name)
        ))?;
    }
    Ok(CommandStatus::Done)
}

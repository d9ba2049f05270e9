//! `larder sources`.

use crate::args::OutputFormat;
use crate::commit_store::{
    list_repositories, open_commit_reader, open_commit_store, open_repository,
};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::mail_store::{
    follow_committed_labels, list_sources, open_labelled_mail, open_mail_reader, open_mail_store,
};
use crate::output::{UNKNOWN_COUNT, format_count, format_grouped, sanitize_line};
use crate::table::format_columns;
use larder_sync::git_repository::is_repository_folder;
use larder_sync::maildir::{DirectoryContents, MaildirDirectory, detect_mail_source};
use larder_sync::{MailSourceFormat, RegisteredSource, SourceType};
use serde_json::json;
use std::path::{Component, Path, PathBuf};

/// Register maildirs, files of mail and git repositories, list them, or forget them
///
/// Messages and commits stay where they are; `larder sync` indexes them, and `larder find --kind
/// message` or `--kind commit` searches them.
#[derive(Debug, clap::Args)]
pub(crate) struct SourcesArgs {
    #[command(subcommand)]
    verb: Option<SourcesCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum SourcesCommand {
    /// List the sources with the number of their messages or commits (the default)
    List,
    /// Register a maildir, an mbox file, a folder of mbox and .eml files, or a git repository
    ///
    /// A maildir is a folder with `cur` and `new`, or a tree of such folders. A repository is a
    /// work tree, a folder `.git`, or a bare repository; it is read through git and never changed.
    Add {
        /// The maildir, the mbox file, the folder or the repository
        path: PathBuf,
        /// The name of the collection [default: mail, or the name of the repository's folder]
        #[arg(long, value_name = "NAME")]
        into: Option<String>,
    },
    /// Forget a source and its index; its files stay
    Remove {
        /// The name of the collection
        name: String,
    },
}

impl SourcesArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        context.refuse_lost_store()?;
        match self.verb.unwrap_or(SourcesCommand::List) {
            SourcesCommand::List => print_sources(context),
            SourcesCommand::Add { path, into } => add_source(context, &path, into.as_deref()),
            SourcesCommand::Remove { name } => remove_source(context, &name),
        }
    }
}

fn print_sources(context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
    let maildirs = list_sources(context)?;
    let repositories = list_repositories(context)?;
    // One index that cannot be read does not hide the sources of the other one.
    let mut first_failure = None;
    let mut keep = |failure: CommandFailure| {
        first_failure.get_or_insert(failure);
    };
    let mail = open_labelled_mail(context).map_err(&mut keep).ok();
    let commits = open_commit_reader(context).map_err(&mut keep).ok();
    let mut rows = Vec::new();
    let all = maildirs.iter().map(|source| (SourceType::Mail, source, &mail));
    let all =
        all.chain(repositories.iter().map(|source| (SourceType::Repository, source, &commits)));
    let is_empty = maildirs.is_empty() && repositories.is_empty();
    for (source_type, source, reader) in all {
        let kind = source_type.kind();
        let count = match reader {
            Some(Some(reader)) => match reader.collections().count_items_of(&source.name) {
                Ok(count) => Some(count.unwrap_or(0)),
                Err(error) => {
                    keep(error.into());
                    None
                }
            },
            Some(None) => Some(0),
            None => None,
        };
        let path = source.path.display().to_string();
        if context.format == OutputFormat::Json {
            let object = json!({
                "name": source.name, "type": type_name(source_type, source.format), "path": path,
                kind.plural(): count,
            });
            context.out.print_json(&object)?;
        } else {
            let count = count.map(|count| format_count(count, kind.name()));
            let count = count.unwrap_or_else(|| UNKNOWN_COUNT.to_string());
            rows.push([sanitize_line(&source.name), count, sanitize_line(&path)]);
        }
    }
    for line in format_columns(&rows, [30, 20, 0], context.out.line_width()) {
        context.out.print_line(line)?;
    }
    if is_empty && context.format == OutputFormat::Text {
        context.print_note(
            "no sources; to register a maildir or an mbox file: larder sources add PATH",
        );
    }
    if let Some(failure) = first_failure {
        return Err(failure);
    }
    Ok(if is_empty { CommandStatus::NothingFound } else { CommandStatus::Done })
}

fn add_source(
    context: &mut CommandContext,
    source: &Path,
    name: Option<&str>,
) -> Result<CommandStatus, CommandFailure> {
    context.warn_of_access_by_others();
    let path =
        absolute_path(source).map_err(|error| CommandFailure::from_file_error(source, &error))?;
    // A maildir in a work tree is a maildir, and a work tree may have maildirs among its files.
    let is_maildir = path.join("cur").is_dir() && path.join("new").is_dir();
    if !is_maildir && is_repository_folder(&path) {
        return add_repository(context, &path, name);
    }
    add_maildir(context, source, &path, name.unwrap_or("mail"))
}

/// Returns the absolute path of a source, without `..`, as queries name its files. Links that a
/// user named stay.
fn absolute_path(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let parts: Vec<Component<'_>> = path.components().collect();
    let last_up = parts.iter().rposition(|part| *part == Component::ParentDir);
    let (up, rest) = parts.split_at(last_up.map_or(0, |at| at + 1));
    let mut clean = match up.is_empty() {
        true => PathBuf::new(),
        // `..` behind a link leads out of the folder that it points to.
        false => std::fs::canonicalize(up.iter().collect::<PathBuf>())?,
    };
    clean.extend(rest);
    Ok(clean)
}

fn add_repository(
    context: &mut CommandContext,
    path: &Path,
    name: Option<&str>,
) -> Result<CommandStatus, CommandFailure> {
    let repository = open_repository(path)?;
    let refs = repository.read_refs().map_err(larder_sync::Error::from)?;
    let name = name.map_or_else(|| repository_name(path), ToString::to_string);
    let sources = list_repositories(context)?;
    let is_same = |source: &&RegisteredSource| {
        let other = open_repository(&source.path).ok();
        source.path == path
            || other.is_some_and(|one| one.common_directory() == repository.common_directory())
    };
    // That the name is taken, too, is no reason to choose another one.
    if let Some(known) = sources.iter().find(is_same) {
        return Err(registered_failure(path, known));
    }
    if let Some(known) = sources.iter().find(|source| source.name == name) {
        return Err(taken_name_failure(known));
    }
    let mut store = context.open_or_create_store()?;
    larder_sync::add_source(&mut store, SourceType::Repository, &name, path, now_milliseconds())?;
    if context.format == OutputFormat::Json {
        let path = path.display().to_string();
        let object = json!({ "name": name, "path": path, "type": "repository" });
        context.out.print_json(&object)?;
    } else {
        let refs = format_count(refs.count as u64, "ref");
        let (name, shown) = (sanitize_line(&name), sanitize_line(&path.display().to_string()));
        let line = format!("{name} is {shown} (git repository, {refs}); to index it: larder sync");
        context.out.print_line(line)?;
    }
    Ok(CommandStatus::Done)
}

/// Returns the name of a repository: that of its folder.
fn repository_name(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let folder = match name(path).as_deref() {
        Some(".git") => path.parent().and_then(name),
        folder => folder.map(ToString::to_string),
    };
    let folder = folder.unwrap_or_default();
    match folder.strip_suffix(".git").unwrap_or(&folder) {
        "" => "commits".to_string(),
        folder => folder.to_string(),
    }
}

fn add_maildir(
    context: &mut CommandContext,
    maildir: &Path,
    path: &Path,
    name: &str,
) -> Result<CommandStatus, CommandFailure> {
    let found = detect_mail_source(path);
    let found = found.map_err(|error| CommandFailure::from_file_error(maildir, &error))?;
    let shown = sanitize_line(&path.display().to_string());
    let Some(found) = found else { return Err(no_mail_failure(path)) };
    let sources = list_sources(context)?;
    if let Some(known) = larder_sync::find_overlapping_source(&sources, path, found.format) {
        if larder_sync::is_same_place(path, &known.path) {
            return Err(registered_failure(path, known));
        }
        let (other, known) =
            (sanitize_line(&known.name), sanitize_line(&known.path.display().to_string()));
        let message = format!("messages of {shown} belong to the source {other}, {known}");
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint(format!("larder sources remove {other} makes room for it")));
    }
    if let Some(known) = sources.iter().find(|source| source.name == name) {
        return Err(taken_name_failure(known));
    }
    let mut store = context.open_or_create_store()?;
    larder_sync::add_mail_source(&mut store, name, path, found.format, now_milliseconds())?;
    if context.format == OutputFormat::Json {
        let path = path.display().to_string();
        context.out.print_json(&json!({ "name": name, "path": path }))?;
    } else {
        let folders = count_directories(&found.scan.directories);
        let name = sanitize_line(name);
        context
            .out
            .print_line(format!("{name} is {shown} ({folders}); to index it: larder sync"))?;
    }
    note_left_out_files(context, found.left_out, &sources);
    Ok(CommandStatus::Done)
}

/// Names the mbox and .eml files beside maildirs, without those that are another source.
fn note_left_out_files(
    context: &CommandContext,
    mut left_out: Vec<MaildirDirectory>,
    sources: &[RegisteredSource],
) {
    let is_source = |path: &Path| {
        larder_sync::find_overlapping_source(sources, path, MailSourceFormat::Files).is_some()
    };
    left_out.retain(|one| !is_source(&one.path));
    if let Some(first) = left_out.first() {
        let (files, first) =
            (count_directories(&left_out), sanitize_line(&first.path.display().to_string()));
        context.print_note(format!(
            "left out beside the maildirs: {files}, such as {first}; each can be a source of its \
             own, a folder if no maildir is in it"
        ));
    }
}

/// Returns the error for a source that is registered, perhaps under another path.
fn registered_failure(path: &Path, known: &RegisteredSource) -> CommandFailure {
    let (shown, name) = (sanitize_line(&path.display().to_string()), sanitize_line(&known.name));
    let mut message = format!("{shown} is already registered: it is the source {name}");
    if known.path != path {
        message += &format!(", {}", sanitize_line(&known.path.display().to_string()));
    }
    CommandFailure::new(FailureKind::Usage, message).with_hint("larder sync indexes it")
}

/// Returns the error for a name that another source has.
fn taken_name_failure(known: &RegisteredSource) -> CommandFailure {
    let path = sanitize_line(&known.path.display().to_string());
    let message = format!("the name {} belongs to the source {path}", sanitize_line(&known.name));
    CommandFailure::new(FailureKind::Usage, message).with_hint("choose another name with --into")
}

/// Returns the name of a type in JSON.
fn type_name(source_type: SourceType, format: MailSourceFormat) -> &'static str {
    match format {
        MailSourceFormat::Maildir => source_type.name(),
        MailSourceFormat::Files => "files",
    }
}

/// Returns the numbers of directories of a maildir, of mbox files, and of folders with .eml files.
fn count_directories(directories: &[MaildirDirectory]) -> String {
    let counts = [
        (DirectoryContents::Maildir, "directory", "directories"),
        (DirectoryContents::Mbox, "mbox file", "mbox files"),
        (DirectoryContents::EmlFiles, "folder of .eml files", "folders of .eml files"),
    ];
    let counts = counts.into_iter().filter_map(|(contents, one, several)| {
        let count = directories.iter().filter(|found| found.contents == contents).count();
        let noun = if count == 1 { one } else { several };
        (count > 0).then(|| format!("{} {noun}", format_grouped(count as u64)))
    });
    counts.collect::<Vec<String>>().join(", ")
}

fn no_mail_failure(path: &Path) -> CommandFailure {
    let shown = sanitize_line(&path.display().to_string());
    if let Some(compression) = larder_sync::detect_compression(path) {
        let message = format!("{shown} is compressed with {}", compression.format);
        return CommandFailure::new(FailureKind::Usage, message)
            .with_hint("unpack it, and register the mbox file that was in it");
    }
    if path.is_file() {
        let message = format!("{shown} is no mbox file: it does not begin with \"From \"");
        return CommandFailure::new(FailureKind::Usage, message)
            .with_hint("name an mbox file, or the folder of .eml files");
    }
    let message =
        format!("{shown} has no mail: no directory `cur` or `new`, no mbox file, and no .eml file");
    CommandFailure::new(FailureKind::Usage, message)
        .with_hint("name the folder above your mail folders, or a git repository")
}

fn remove_source(
    context: &mut CommandContext,
    name: &str,
) -> Result<CommandStatus, CommandFailure> {
    let is_repository = list_repositories(context)?.iter().any(|source| source.name == name);
    let source_type = if is_repository { SourceType::Repository } else { SourceType::Mail };
    // A synchronisation may be reading the source.
    let mut index = match (is_repository, open_mail_reader(context)?) {
        (true, _) => open_commit_store(context)?,
        (false, Some(_)) => Some(open_mail_store(context)?),
        (false, None) => None,
    };
    let lock = index.as_ref().map(larder_store::Store::lock_mail_sync).transpose()?;
    let sources = match is_repository {
        true => list_repositories(context)?,
        false => list_sources(context)?,
    };
    let Some(source) = sources.iter().find(|source| source.name == name) else {
        let message = format!("no source is named {:?}", sanitize_line(name));
        return Err(CommandFailure::new(FailureKind::NotFound, message)
            .with_hint("`larder sources` lists them"));
    };
    let at = now_milliseconds();
    larder_sync::remove_source(&mut context.open_store()?, name, at)?;
    let rest: Vec<_> = sources.iter().filter(|source| source.name != name).cloned().collect();
    let mut files = 0;
    if let (Some(index), Some(lock)) = (&mut index, &lock) {
        let forgotten = larder_sync::match_indexed_sources(index, lock, source_type, &rest, at)?;
        files = forgotten.iter().map(|one| one.files).sum();
    }
    drop((lock, index));
    follow_committed_labels(context)?;
    let noun = if is_repository { "commit" } else { "file" };
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({ "name": name, format!("{noun}s"): files }))?;
    } else {
        let path = sanitize_line(&source.path.display().to_string());
        let files = format_count(files as u64, noun);
        let undo = context.committed_operation().map(|id| format!("larder undo {id}"));
        let undo = undo.map(|undo| format!(". Undo: {undo}, then larder sync"));
        context.out.print_line(format!(
            "{} forgotten ({files}); {path} is unchanged{}",
            sanitize_line(name),
            undo.unwrap_or_default()
        ))?;
    }
    Ok(CommandStatus::Done)
}

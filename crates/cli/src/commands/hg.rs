//! `larder hg`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::git_remote_hg::{GitProgress, conversion_threads};
use crate::hg_servers::server_settings;
use crate::output::{format_bytes, format_count, sanitize_line};
use larder_hg::{
    ConversionSummary, FetchError, GitDirectory, GitId, Metadata, Node, RefStyle, convert_all,
    convert_bundle, open_peer, rollback, update_tags,
};
use serde_json::json;
use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

/// Look up changesets of Mercurial in git, import bundles, convert repositories
///
/// `git clone hg::URL` and `git fetch` work through the program git-remote-hg, which is larder
/// under another name: put it beside larder in a folder of PATH.
#[derive(Debug, clap::Args)]
pub(crate) struct HgArgs {
    /// Use the git repository of this folder
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    repository: PathBuf,
    #[command(subcommand)]
    command: HgCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HgCommand {
    /// Print the commit of each changeset
    Hg2git(IdArgs),
    /// Print the changeset of each commit
    Git2hg(IdArgs),
    /// Import the changesets of a bundle of Mercurial
    Unbundle {
        /// The bundle: a file, as `hg bundle` writes it
        bundle: OsString,
    },
    /// Convert a whole repository to a new git repository
    Convert {
        /// The Mercurial repository: a URL, a folder or a bundle
        source: OsString,
        /// The git repository, which is created
        destination: PathBuf,
    },
    /// Set the tags of git to those of Mercurial
    Tags,
    /// Forget what the last fetch or import added (commits and branches of git stay)
    Rollback,
}

#[derive(Debug, clap::Args)]
struct IdArgs {
    /// Ids: of changesets at least 8 digits, of commits all that git takes
    #[arg(required_unless_present = "batch")]
    ids: Vec<String>,
    /// Read further ids from standard input, one a line
    #[arg(long)]
    batch: bool,
}

impl HgArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        match self.command {
            HgCommand::Hg2git(args) => look_up(context, &self.repository, args, find_commit),
            HgCommand::Git2hg(args) => look_up(context, &self.repository, args, find_changeset),
            HgCommand::Unbundle { bundle } => {
                let repository = discover(&self.repository)?;
                let mut progress = progress(context);
                let threads = conversion_threads();
                let directory = repository.directory();
                let converted =
                    convert_bundle(directory, Path::new(&bundle), threads, &mut progress);
                progress.finish();
                print_converted(
                    context,
                    converted.map_err(|error| source_failure(&bundle, &error))?,
                )
            }
            HgCommand::Convert { source, destination } => {
                convert_repository(context, &source, &destination)
            }
            HgCommand::Tags => {
                let repository = discover(&self.repository)?;
                let count = update_tags(repository.directory());
                let count = count.map_err(|error| hg_failure(&error))?;
                if context.format == OutputFormat::Json {
                    context.out.print_json(&json!({ "tags": count }))?;
                } else if !context.quiet {
                    context.out.print_line(format_count(count as u64, "tag"))?;
                }
                Ok(CommandStatus::Done)
            }
            HgCommand::Rollback => {
                let mut repository = discover(&self.repository)?;
                let is_done = rollback(&mut repository).map_err(|error| store_failure(&error))?;
                if is_done {
                    context.print_note("the last import is forgotten");
                    return Ok(CommandStatus::Done);
                }
                context.print_note("nothing was imported from Mercurial");
                Ok(CommandStatus::NothingFound)
            }
        }
    }
}

fn progress(context: &CommandContext) -> GitProgress {
    GitProgress::new(io::stderr().is_terminal() && !context.quiet)
}

fn discover(folder: &Path) -> Result<GitDirectory, CommandFailure> {
    GitDirectory::discover(folder).map_err(|error| {
        CommandFailure::new(FailureKind::Usage, error)
            .with_hint("name the git repository: larder hg --repository DIR ...")
    })
}

fn store_failure(error: &dyn std::error::Error) -> CommandFailure {
    CommandFailure::new(FailureKind::Store, sanitize_line(&error.to_string()))
}

fn hg_failure(error: &FetchError) -> CommandFailure {
    CommandFailure::new(failure_kind(error), sanitize_line(&error.to_string()))
}

/// A failure that names the repository or the bundle.
fn source_failure(source: &OsString, error: &FetchError) -> CommandFailure {
    let message = format!("{}: {error}", source.to_string_lossy());
    CommandFailure::new(failure_kind(error), sanitize_line(&message))
}

fn failure_kind(error: &FetchError) -> FailureKind {
    match error {
        FetchError::Peer(_) | FetchError::Conversion(_) => FailureKind::Source,
        _ => FailureKind::Store,
    }
}

/// Finds what an id names, of the other program.
type Finder = fn(&mut Metadata, &mut GitDirectory, &str) -> Result<Option<String>, CommandFailure>;

/// Prints what each id is in the other program; 40 zeros if it is not known.
fn look_up(
    context: &mut CommandContext,
    folder: &Path,
    args: IdArgs,
    find: Finder,
) -> Result<CommandStatus, CommandFailure> {
    let mut repository = discover(folder)?;
    let mut metadata = Metadata::open(&mut repository).map_err(|error| store_failure(&error))?;
    let mut status = CommandStatus::Done;
    let stdin = io::stdin();
    let lines = args.batch.then(|| stdin.lock().lines()).into_iter().flatten();
    for id in args.ids.into_iter().map(Ok).chain(lines) {
        let id = id.map_err(|error| CommandFailure::new(FailureKind::Source, error))?;
        let found = find(&mut metadata, &mut repository, id.trim())?;
        if found.is_none() {
            status = CommandStatus::NothingFound;
        }
        if context.format == OutputFormat::Json {
            context.out.print_json(&json!({ "id": id.trim(), "other_id": found }))?;
        } else {
            context.out.print_line(found.unwrap_or_else(|| GitId::NULL.to_string()))?;
        }
    }
    Ok(status)
}

fn find_commit(
    metadata: &mut Metadata,
    repository: &mut GitDirectory,
    id: &str,
) -> Result<Option<String>, CommandFailure> {
    let nodes = match Node::from_hex(id.as_bytes()) {
        Some(node) => vec![node],
        None => metadata.find_by_prefix(repository, id).map_err(|error| store_failure(&error))?,
    };
    match nodes.as_slice() {
        [node] => {
            let commit = metadata.commit_of(repository, node);
            Ok(commit.map_err(|error| store_failure(&error))?.map(|commit| commit.to_string()))
        }
        [] => Ok(None),
        _ => {
            let message = format!("{id} is the beginning of {} changesets", nodes.len());
            Err(CommandFailure::new(FailureKind::Usage, message))
        }
    }
}

fn find_changeset(
    metadata: &mut Metadata,
    repository: &mut GitDirectory,
    id: &str,
) -> Result<Option<String>, CommandFailure> {
    let commit = repository.resolve(&format!("{id}^{{commit}}"));
    let Some(commit) = commit.map_err(|error| store_failure(&error))? else { return Ok(None) };
    let node = metadata.changeset_of(repository, &commit);
    Ok(node.map_err(|error| store_failure(&error))?.map(|node| node.to_string()))
}

fn convert_repository(
    context: &mut CommandContext,
    source: &OsString,
    destination: &Path,
) -> Result<CommandStatus, CommandFailure> {
    if destination.exists() {
        let message = format!("{} exists", sanitize_line(&destination.display().to_string()));
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint("name a folder that does not exist yet"));
    }
    let peer = open_peer(source, |url| server_settings(url, None));
    let mut peer = peer.map_err(|error| hg_failure(&FetchError::Peer(error)))?;
    let repository = GitDirectory::create(destination).map_err(|error| store_failure(&error))?;
    let mut progress = progress(context);
    let converted = convert_all(
        repository.directory(),
        &mut *peer,
        RefStyle::ALL,
        conversion_threads(),
        &mut progress,
    );
    progress.finish();
    print_converted(context, converted.map_err(|error| source_failure(source, &error))?)
}

fn print_converted(
    context: &mut CommandContext,
    converted: ConversionSummary,
) -> Result<CommandStatus, CommandFailure> {
    let ConversionSummary { changesets, objects, bytes } = converted;
    if context.format == OutputFormat::Json {
        let value = json!({ "changesets": changesets, "objects": objects, "bytes": bytes });
        context.out.print_json(&value)?;
    } else if !context.quiet {
        context.out.print_line(format!(
            "ConversionSummary {} ({}, {})",
            format_count(changesets as u64, "changeset"),
            format_count(objects as u64, "object"),
            format_bytes(bytes)
        ))?;
    }
    Ok(CommandStatus::Done)
}

//! `larder hg`.

mod conversion;

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::git_progress::GitProgress;
use crate::hg_lookup::{HgLookup, LookupError, metadata_advice};
use crate::output::{format_bytes, format_count, print_message, sanitize_line};
use larder_hg::{
    CINNABAR_REF, CheckDepth, CinnabarImport, ConversionCheck, FetchError, GitDirectory, GitId,
    Metadata, MetadataError, StateChoice, TagUpdate, check_conversion, ignore_repository_variables,
    import_cinnabar, rollback, set_metadata_state, update_tags,
};
use serde_json::json;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

/// Look up changesets of Mercurial in git, import bundles, convert repositories
///
/// `git clone hg::URL` and `git fetch` work through the program git-remote-hg, which is larder
/// under another name: put it beside larder in a folder of PATH, as by `ln -s larder
/// ~/.cargo/bin/git-remote-hg`. Likewise git-cinnabar, for the commands of that program.
#[derive(Debug, clap::Args)]
pub(crate) struct HgArgs {
    /// Use the git repository of DIR [default: that of GIT_DIR or of the current folder]
    #[arg(long, value_name = "DIR", global = true)]
    repository: Option<PathBuf>,
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
        /// The bundle: a file, as `hg bundle` writes it, or its URL
        bundle: OsString,
    },
    /// Convert a whole repository to a git repository, or add what is new to it
    Convert {
        /// The Mercurial repository: a URL, a folder or a bundle
        source: OsString,
        /// The git repository, which is created if it is not there
        destination: PathBuf,
    },
    /// Check what was converted: changesets, commits and the metadata by their hashes
    ///
    /// The parents of manifests and file revisions are found from those of changesets. That git can
    /// read its objects is checked by `git fsck`.
    Fsck {
        /// Make the texts of all manifests again, and read all files, too
        #[arg(long)]
        full: bool,
    },
    /// Take over a repository of git-cinnabar: read its metadata once, and go on without it
    ///
    /// Commits, refs and the metadata of git-cinnabar stay as they are.
    ImportCinnabar,
    /// Set the tags of git to those of Mercurial
    ///
    /// Tags that were made so and are gone in Mercurial are deleted. A tag of git with the name of
    /// another one of Mercurial stays; it is named, and the exit code is 1.
    Tags,
    /// Forget what the last fetch or import added (commits and branches of git stay)
    Rollback,
    /// Forget everything about Mercurial (commits and branches of git stay)
    Clear,
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
        let HgArgs { repository, command } = self;
        // In a hook of git, its variables are those of the repository of the hook.
        if repository.is_some() || matches!(command, HgCommand::Convert { .. }) {
            ignore_repository_variables();
        }
        let folder = repository.as_deref().unwrap_or(".".as_ref());
        match command {
            HgCommand::Hg2git(args) => look_up(context, folder, args, find_commit),
            HgCommand::Git2hg(args) => look_up(context, folder, args, find_changeset),
            HgCommand::Unbundle { bundle } => conversion::import_bundle(context, folder, &bundle),
            HgCommand::Convert { source, destination } => {
                conversion::convert_repository(context, &source, &destination)
            }
            HgCommand::Fsck { full } => {
                let depth = if full { CheckDepth::Full } else { CheckDepth::Fast };
                check_repository(context, folder, depth)
            }
            HgCommand::ImportCinnabar => import_repository(context, folder),
            HgCommand::Tags => set_tags(context, folder),
            HgCommand::Rollback => roll_back(context, folder),
            HgCommand::Clear => {
                let mut repository = discover(folder)?;
                set_metadata_state(&mut repository, None, StateChoice::Earlier)
                    .map_err(|error| store_failure(&error))?;
                context.print_note("all imports are forgotten");
                Ok(CommandStatus::Done)
            }
        }
    }
}

/// The note of commands in a repository that has nothing of Mercurial.
const NOTHING_IMPORTED: &str = "nothing was imported from Mercurial";

/// Goes back to the state before the last import, and prints how many changesets are forgotten.
fn roll_back(context: &mut CommandContext, folder: &Path) -> Result<CommandStatus, CommandFailure> {
    let mut repository = discover(folder)?;
    let before = count_changesets(&mut repository).map_err(|error| store_failure(&error))?;
    let is_done = rollback(&mut repository).map_err(|error| store_failure(&error))?;
    let left = count_changesets(&mut repository).map_err(|error| store_failure(&error))?;
    let forgotten = before.saturating_sub(left);
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({ "forgotten": forgotten, "changesets": left }))?;
    }
    if !is_done {
        context.print_note(NOTHING_IMPORTED);
        return Ok(CommandStatus::NothingFound);
    }
    let forgotten = format_count(forgotten as u64, "changeset");
    context.print_note(format!("the last import is forgotten: {forgotten}"));
    Ok(CommandStatus::Done)
}

fn count_changesets(repository: &mut GitDirectory) -> Result<usize, MetadataError> {
    Metadata::open(repository)?.count_changesets(repository)
}

fn progress(context: &CommandContext) -> GitProgress {
    let progress = GitProgress::new(io::stderr().is_terminal() && !context.quiet);
    if context.quiet { progress.without_notices() } else { progress }
}

fn discover(folder: &Path) -> Result<GitDirectory, CommandFailure> {
    GitDirectory::discover(folder).map_err(|error| {
        CommandFailure::new(FailureKind::Usage, error)
            .with_hint("name the git repository: larder hg --repository DIR ...")
    })
}

fn store_failure(error: &(dyn Error + 'static)) -> CommandFailure {
    let failure = CommandFailure::new(FailureKind::Store, sanitize_line(&error.to_string()));
    match metadata_advice(error) {
        Some(advice) => failure.with_hint(advice),
        None => failure,
    }
}

fn hg_failure(error: &FetchError) -> CommandFailure {
    let failure = CommandFailure::new(failure_kind(error), sanitize_line(&error.to_string()));
    match error.advice() {
        Some(advice) => failure.with_hint(advice),
        None => failure,
    }
}

fn failure_kind(error: &FetchError) -> FailureKind {
    match error {
        FetchError::Peer(_)
        | FetchError::Conversion(_)
        | FetchError::CloneBundle { .. }
        | FetchError::EmptySource
        | FetchError::Unrelated => FailureKind::Source,
        _ => FailureKind::Store,
    }
}

/// Finds what an id names, of the other program.
type Finder = fn(&mut HgLookup, &str) -> Result<Option<String>, LookupError>;

/// Prints what each id is in the other program; 40 zeros if it is not known.
fn look_up(
    context: &mut CommandContext,
    folder: &Path,
    args: IdArgs,
    find: Finder,
) -> Result<CommandStatus, CommandFailure> {
    let mut lookup = HgLookup::open(discover(folder)?).map_err(|error| store_failure(&error))?;
    if lookup.metadata.is_empty() {
        context.print_note(NOTHING_IMPORTED);
    }
    let mut status = CommandStatus::Done;
    let stdin = io::stdin();
    let lines = args.batch.then(|| stdin.lock().lines()).into_iter().flatten();
    for id in args.ids.into_iter().map(Ok).chain(lines) {
        let id = id.map_err(|error| CommandFailure::new(FailureKind::Source, error))?;
        let found = match find(&mut lookup, id.trim()) {
            Ok(found) => found,
            Err(error @ LookupError::Ambiguous { .. }) => {
                print_message("warning", sanitize_line(&error.to_string()));
                None
            }
            Err(error) => return Err(store_failure(&error)),
        };
        if found.is_none() {
            status = CommandStatus::NothingFound;
        }
        if context.format == OutputFormat::Json {
            context.out.print_json(&json!({ "id": id.trim(), "other_id": found }))?;
        } else {
            context.out.print_line(found.unwrap_or_else(|| GitId::NULL.to_string()))?;
        }
        if args.batch {
            // Another program may wait for it before it asks again.
            context.out.flush()?;
        }
    }
    Ok(status)
}

fn find_commit(lookup: &mut HgLookup, id: &str) -> Result<Option<String>, LookupError> {
    if let Some(fault) = find_id_fault(id) {
        let id = sanitize_line(id);
        print_message("warning", format!("{id:?} is no changeset: {fault}"));
        return Ok(None);
    }
    Ok(lookup.find_commit(id)?.map(|commit| commit.to_string()))
}

/// Returns why no changeset can have an id, or one with this beginning.
fn find_id_fault(id: &str) -> Option<&'static str> {
    let is_hexadecimal = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match id.len() {
        _ if !is_hexadecimal => Some("an id has hexadecimal digits"),
        0..8 => Some("at least 8 digits of an id are needed"),
        8..=40 => None,
        _ => Some("an id has 40 digits"),
    }
}

fn find_changeset(lookup: &mut HgLookup, name: &str) -> Result<Option<String>, LookupError> {
    let report = |fault: &str| print_message("warning", sanitize_line(fault));
    Ok(lookup.find_changeset(name, report)?.map(|node| node.to_string()))
}

/// Takes over the metadata of git-cinnabar.
fn import_repository(
    context: &mut CommandContext,
    folder: &Path,
) -> Result<CommandStatus, CommandFailure> {
    let mut repository = discover(folder)?;
    let commit = repository.resolve(CINNABAR_REF).map_err(|error| store_failure(&error))?;
    let Some(commit) = commit else {
        context.print_note("git-cinnabar has not converted anything here");
        return Ok(CommandStatus::NothingFound);
    };
    let mut progress = progress(context);
    let imported = import_cinnabar(repository.directory(), commit, &mut progress);
    progress.finish();
    let imported = imported.map_err(|error| store_failure(&error))?;
    let CinnabarImport { changesets, manifests, file_revisions, objects, bytes } = imported;
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "changesets": changesets, "manifests": manifests, "file_revisions": file_revisions,
            "objects": objects, "bytes": bytes,
        }))?;
    } else if !context.quiet {
        context.out.print_line(format!(
            "taken over: {}, {}, {} ({}, {})",
            format_count(changesets as u64, "changeset"),
            format_count(manifests as u64, "manifest"),
            format_count(file_revisions as u64, "file revision"),
            format_count(objects as u64, "object"),
            format_bytes(bytes)
        ))?;
    }
    Ok(CommandStatus::Done)
}

fn check_repository(
    context: &mut CommandContext,
    folder: &Path,
    depth: CheckDepth,
) -> Result<CommandStatus, CommandFailure> {
    let repository = discover(folder)?;
    let mut progress = progress(context);
    let checked = check_conversion(repository.directory(), depth, &mut progress);
    progress.finish();
    let report = checked.map_err(|error| store_failure(&error))?;
    let ConversionCheck { changesets, manifests, file_revisions, .. } = report;
    let is_empty = (changesets, report.fault_count) == (0, 0);
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "changesets": changesets, "manifests": manifests, "file_revisions": file_revisions,
            "full": depth == CheckDepth::Full, "without_hash": report.without_hash,
            "without_parents": report.without_parents,
            "without_manifest": report.without_manifest,
            "faults": report.faults, "fault_count": report.fault_count,
        }))?;
    } else if !context.quiet && !is_empty {
        let verdict = match (report.fault_count, depth) {
            (0, CheckDepth::Full) => "OK",
            (0, CheckDepth::Fast) => "OK, without the texts of manifests and files",
            _ => "damaged",
        };
        context.out.print_line(format!(
            "{verdict}: {}, {}, {} checked",
            format_count(changesets as u64, "changeset"),
            format_count(manifests as u64, "manifest"),
            format_count(file_revisions as u64, "file revision"),
        ))?;
        for (count, what) in [
            (report.without_hash, "censored or in LFS, without a text that has the hash"),
            (report.without_parents, "of git-cinnabar, without the parents: these are tried"),
            (
                report.without_manifest,
                "of these in no manifest, so only the blobs are known to be there",
            ),
        ] {
            if count > 0 {
                let count = format_count(count as u64, "file revision");
                context.out.print_line(format!("{count}: {what}"))?;
            }
        }
    }
    context.out.flush()?;
    if is_empty {
        context.print_note(NOTHING_IMPORTED);
        return Ok(CommandStatus::NothingFound);
    }
    if report.fault_count == 0 {
        return Ok(CommandStatus::Done);
    }
    report.faults.iter().for_each(|fault| print_message("error", sanitize_line(fault)));
    let faults = format_count(report.fault_count as u64, "fault");
    let failure = CommandFailure::new(FailureKind::Store, format!("the conversion has {faults}"));
    Err(failure
        .with_hint("see whether git can read all objects: git fsck --full")
        .with_hint("to convert again, to the same ids: git clone hg::URL into a new folder"))
}

/// Sets the tags of git. Those that are kept in place of Mercurial's make the exit code 1.
fn set_tags(context: &mut CommandContext, folder: &Path) -> Result<CommandStatus, CommandFailure> {
    let mut repository = discover(folder)?;
    let metadata = Metadata::open(&mut repository).map_err(|error| store_failure(&error))?;
    let updated = update_tags(repository.directory()).map_err(|error| hg_failure(&error))?;
    let TagUpdate { tags, deleted, kept, .. } = updated;
    let kept: Vec<String> =
        kept.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    if context.format == OutputFormat::Json {
        let report = json!({ "tags": tags, "deleted": deleted, "kept": kept });
        context.out.print_json(&report)?;
    } else if !context.quiet && !metadata.is_empty() {
        let mut line = format_count(tags as u64, "tag");
        if deleted > 0 {
            line.push_str(&format!(", {deleted} deleted"));
        }
        context.out.print_line(line)?;
    }
    context.out.flush()?;
    for name in &kept {
        let name = sanitize_line(name);
        let message = format!("the tag {name} of Mercurial is not set: git has another one");
        print_message("warning", message);
    }
    if metadata.is_empty() {
        context.print_note(NOTHING_IMPORTED);
        return Ok(CommandStatus::NothingFound);
    }
    if kept.is_empty() {
        return Ok(CommandStatus::Done);
    }
    print_message("hint", "to replace a tag of git, delete it (git tag -d NAME), and try again");
    Ok(CommandStatus::NothingFound)
}

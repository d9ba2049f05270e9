//! `larder hg unbundle` and `larder hg convert`: conversions, and the report of what was unusual.

use super::{discover, failure_kind, hg_failure, progress, store_failure};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::hg_lookup::HgLookup;
use crate::hg_servers::server_settings;
use crate::hg_settings::HgSettings;
use crate::output::{format_bytes, format_count, sanitize_line};
use larder_hg::{
    ConversionSummary, FetchError, GitDirectory, Metadata, MetadataError, Oddity, OddityReport,
    convert_all, convert_bundle, open_peer, strip_login,
};
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// How many heads are named, the newest ones first.
const MAX_HEADS: usize = 10;

pub(super) fn import_bundle(
    context: &mut CommandContext,
    folder: &Path,
    bundle: &OsString,
) -> Result<CommandStatus, CommandFailure> {
    let repository = discover(folder)?;
    let directory = repository.directory();
    let settings = read_settings(Some(directory))?;
    let options = settings.conversion().map_err(usage_failure)?;
    let servers = |url: &str| server_settings(url, settings.of_git(), Some(directory));
    let peer = open_peer(bundle, servers);
    let mut peer = peer.map_err(|error| hg_failure(&FetchError::Peer(error)))?;
    let mut progress = progress(context);
    let converted = convert_bundle(directory, &mut *peer, options, &mut progress);
    progress.finish();
    let converted = converted.map_err(|error| source_failure(bundle, &error))?;
    let is_new = converted.changesets > 0;
    let status = print_converted(context, converted)?;
    if is_new && !repository.has_branches().map_err(|error| store_failure(&error))? {
        print_heads(context, repository)?;
    }
    Ok(status)
}

/// Names the heads of a repository without branches, and a command that makes a branch.
fn print_heads(
    context: &mut CommandContext,
    repository: GitDirectory,
) -> Result<(), CommandFailure> {
    context.out.flush()?;
    let mut lookup = HgLookup::open(repository).map_err(|error| store_failure(&error))?;
    let nodes: Vec<_> =
        lookup.metadata.heads().iter().map(|head| (head.node, head.branch.clone())).collect();
    let count = format_count(nodes.len() as u64, "head");
    context.print_note(format!("no branch of git leads to what was imported; it has {count}"));
    for (node, branch) in nodes.iter().rev().take(MAX_HEADS) {
        let commit =
            lookup.find_commit(&node.to_string()).map_err(|error| store_failure(&error))?;
        if let Some(commit) = commit {
            let branch = sanitize_line(&String::from_utf8_lossy(branch));
            context.print_note(format!("{commit} is a head of the branch {branch}"));
        }
    }
    context.print_note("to have a branch there: git branch NAME COMMIT");
    Ok(())
}

pub(super) fn convert_repository(
    context: &mut CommandContext,
    source: &OsString,
    destination: &Path,
) -> Result<CommandStatus, CommandFailure> {
    if destination.exists() && !becomes_destination(destination) {
        let message = format!("{} exists", sanitize_line(&destination.display().to_string()));
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint("name a folder that does not exist yet, or that was converted before"));
    }
    let is_whole = ["HEAD", "objects", "refs"].iter().all(|name| destination.join(name).exists());
    let git_dir = is_whole.then_some(destination);
    let settings = read_settings(git_dir)?;
    let servers = |url: &str| server_settings(url, settings.of_git(), git_dir);
    let style = settings.ref_style().map_err(usage_failure)?;
    let options = settings.fetch_options(&source.to_string_lossy(), &servers);
    let options = options.map_err(usage_failure)?;
    let peer = open_peer(source, servers);
    let mut peer = peer.map_err(|error| hg_failure(&FetchError::Peer(error)))?;
    let repository = create_destination(destination)?;
    let mut progress = progress(context);
    let converted = convert_all(repository.directory(), &mut *peer, style, options, &mut progress);
    progress.finish();
    let converted = converted.map_err(|error| {
        let failure = source_failure(source, &error);
        let is_of_state = matches!(error, FetchError::Unrelated | FetchError::CinnabarRepository);
        let is_of_file = error.is_of_source() && Path::new(source).is_file();
        match is_of_state || is_of_file || error.advice().is_some() {
            true => failure,
            false => {
                failure.with_hint("the same command goes on with what is there, or begins again")
            }
        }
    });
    print_converted(context, converted?)
}

/// How often, and how long after, git is told again to create a repository: another conversion to
/// the folder may do so at the same time.
const CREATIONS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// Returns whether a folder can be a destination, now or when git has created the repository: in
/// between, it has temporary files there.
fn becomes_destination(folder: &Path) -> bool {
    (0..CREATIONS).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        can_be_destination(folder)
    })
}

/// Creates a repository, or completes what a conversion that ended early left of one.
fn create_destination(folder: &Path) -> Result<GitDirectory, CommandFailure> {
    let is_new = !folder.exists();
    let mut created = GitDirectory::create(folder);
    for _ in 1..CREATIONS {
        if created.is_ok() || !folder.exists() {
            break;
        }
        std::thread::sleep(PAUSE);
        created = GitDirectory::create(folder);
    }
    created.map_err(|error| {
        if is_new {
            // If it is empty: what another conversion, or git, wrote there stays.
            let _removed = std::fs::remove_dir(folder);
        }
        store_failure(&error)
    })
}

/// Returns whether a folder has nothing but what `git init` writes, or a part of that.
fn is_new_repository(folder: &Path) -> bool {
    const FILES: [&str; 5] = ["HEAD", "HEAD.lock", "config", "config.lock", "description"];
    // Of hooks and info, the templates are files; the others have folders only.
    const FOLDERS: [&str; 5] = ["branches", "hooks", "info", "objects", "refs"];
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name();
        let is_known = |names: [&str; 5]| names.iter().any(|known| name == *known);
        match entry.file_type() {
            Ok(kind) if kind.is_file() => is_known(FILES),
            Ok(kind) if kind.is_dir() && is_known(FOLDERS) => {
                name == "hooks" || name == "info" || has_folders_only(&entry.path())
            }
            _ => false,
        }
    })
}

fn has_folders_only(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.into_iter().all(|entry| {
        entry.is_ok_and(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_dir()) && has_folders_only(&entry.path())
        })
    })
}

/// Returns whether a folder is empty, or a git repository without a working tree that a conversion
/// made, wholly or in part.
fn can_be_destination(folder: &Path) -> bool {
    let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    let is_converted = || {
        let is_repository = folder.join("HEAD").is_file() && folder.join("objects").is_dir();
        let mut repository = GitDirectory::new(folder);
        is_repository
            && (repository.has_branches().is_ok_and(|has| !has)
                || match Metadata::open(&mut repository) {
                    Ok(metadata) => metadata.commit().is_some(),
                    // The conversion says so.
                    Err(error) => matches!(error, MetadataError::Damaged(_)),
                })
    };
    is_empty || is_new_repository(folder) || is_converted()
}

/// Reads the settings of a repository, or those of the user.
fn read_settings(git_dir: Option<&Path>) -> Result<HgSettings, CommandFailure> {
    HgSettings::read(git_dir, None).map_err(|error| store_failure(&error))
}

fn usage_failure(message: String) -> CommandFailure {
    CommandFailure::new(FailureKind::Usage, message)
}

/// A failure that names the repository or the bundle.
fn source_failure(source: &OsString, error: &FetchError) -> CommandFailure {
    let message = format!("{}: {error}", strip_login(&source.to_string_lossy()));
    let failure = CommandFailure::new(failure_kind(error), sanitize_line(&message));
    match error.advice() {
        Some(advice) => failure.with_hint(advice),
        None => failure,
    }
}

fn print_converted(
    context: &mut CommandContext,
    converted: ConversionSummary,
) -> Result<CommandStatus, CommandFailure> {
    let ConversionSummary { changesets, objects, bytes, unhashed_manifests, oddities } = converted;
    let is_kept = |oddity| matches!(oddity, Oddity::KeptTag | Oddity::KeptBranch);
    let has_kept_refs = oddities.kinds().any(|(oddity, _)| is_kept(oddity));
    if context.format == OutputFormat::Json {
        let oddities: Vec<_> = oddities
            .kinds()
            .map(|(oddity, kind)| {
                json!({ "kind": oddity.name(), "count": kind.count, "examples": kind.examples })
            })
            .collect();
        context.out.print_json(&json!({
            "changesets": changesets, "objects": objects, "bytes": bytes,
            "unhashed_manifests": unhashed_manifests, "oddities": oddities,
        }))?;
    } else if !context.quiet {
        context.out.print_line(format!(
            "converted: {} ({}, {})",
            format_count(changesets as u64, "changeset"),
            format_count(objects as u64, "object"),
            format_bytes(bytes)
        ))?;
        if unhashed_manifests > 0 {
            let count = format_count(unhashed_manifests, "manifest");
            let way = "checked by the hashes of later ones; larder hg fsck --full hashes each";
            context.out.print_line(format!("{count}: {way}"))?;
        }
        print_oddities(context, &oddities)?;
    }
    Ok(if has_kept_refs { CommandStatus::NothingFound } else { CommandStatus::Done })
}

/// Prints what was unusual: the number of each kind, and the first examples.
fn print_oddities(
    context: &mut CommandContext,
    oddities: &OddityReport,
) -> Result<(), CommandFailure> {
    for (oddity, kind) in oddities.kinds() {
        context.out.print_line(format!("{:>8} {}", kind.count, oddity.description()))?;
        for example in &kind.examples {
            context.out.print_line(format!("         {}", sanitize_line(example)))?;
        }
    }
    Ok(())
}

//! `git-cinnabar`: larder under the name of its predecessor, for scripts and habits.
//!
//! Options, exit codes and messages are those of git-cinnabar 0.7, which git starts for
//! `git cinnabar`. An error is a line with its level, and the exit code is 1. Separate from
//! `larder hg`, whose options and messages are larder's own; both call the same functions.

mod arguments;
mod rollback;

use crate::git_progress::{GitProgress, level_line};
use crate::git_remote_hg::{add_advice, name_source};
use crate::hg_lookup::{HgLookup, metadata_advice};
use crate::hg_servers::server_settings;
use crate::hg_settings::HgSettings;
use arguments::{
    CinnabarArgs, CinnabarCommand, ConversionArgs, DataArgs, FetchArgs, FsckArgs, TagArgs,
};
use clap::{CommandFactory as _, Parser as _};
use larder_hg::{
    ChangeError, CheckDepth, GitDirectory, GitId, Node, check_conversion, convert_bundle,
    convert_clone_bundle, fetch_revisions, mark_state, metadata_states, open_peer, repository_tags,
    stored_texts, strip_login,
};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::{Command, ExitCode};

/// The name under which git starts the program for `git cinnabar`.
pub(crate) const PROGRAM_NAME: &str = "git-cinnabar";
/// The exit code of git-cinnabar for errors.
const FAILURE_EXIT_CODE: u8 = 1;

/// A command's end: an exit code, or an error that is printed with its level.
type CommandEnd = Result<ExitCode, Box<dyn Error>>;

/// Returns the definition of the arguments, for the manual.
pub(crate) fn clap_command() -> clap::Command {
    CinnabarArgs::command()
}

/// Runs the command of the arguments.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let command = match CinnabarArgs::try_parse_from(args) {
        Ok(args) => args.command,
        Err(usage) => {
            // Nothing can be said if the terminal is gone.
            let _printed = usage.print();
            let code = if usage.use_stderr() { FAILURE_EXIT_CODE } else { 0 };
            return ExitCode::from(code);
        }
    };
    match run_command(command) {
        Ok(code) => code,
        // The reader of the output is gone.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            let mut message = error.to_string();
            if let Some(advice) = metadata_advice(&*error) {
                message.push_str(&format!(" ({advice})"));
            }
            // Nothing can be said if standard error is gone.
            let _written = io::stderr().write_all(level_line("ERROR", &message).as_bytes());
            ExitCode::from(FAILURE_EXIT_CODE)
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run_command(command: CinnabarCommand) -> CommandEnd {
    if let CinnabarCommand::Other(args) = command {
        let name = args.first().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        return Err(format!("larder does not have the command git cinnabar {name}").into());
    }
    let repository = GitDirectory::discover(".".as_ref()).map_err(|_| "not a git repository")?;
    match command {
        CinnabarCommand::Hg2git(args) => look_up(repository, &args, |lookup, id| {
            if id.is_empty() || id.len() > 40 || id.bytes().any(|byte| !byte.is_ascii_hexdigit()) {
                return Err(format!("Invalid changeset id: {id}").into());
            }
            Ok(lookup.find_commit(id)?.map(|commit| commit.to_string()))
        }),
        CinnabarCommand::Git2hg(args) => look_up(repository, &args, |lookup, name| {
            let report = |fault: &str| {
                // Nothing can be said if standard error is gone.
                let _written = io::stderr().write_all(level_line("WARNING", fault).as_bytes());
            };
            Ok(lookup.find_changeset(name, report)?.map(|node| node.to_string()))
        }),
        CinnabarCommand::Fetch(args) if args.tags => fetch_tags(),
        CinnabarCommand::Fetch(args) => fetch(&repository, &args),
        CinnabarCommand::Unbundle { clonebundle, url } => unbundle(&repository, clonebundle, &url),
        CinnabarCommand::Rollback(args) => rollback::roll_back(repository, &args),
        CinnabarCommand::Clear => rollback::clear(repository),
        CinnabarCommand::Fsck(args) => check(repository, &args),
        CinnabarCommand::Data(args) => print_data(repository, &args),
        CinnabarCommand::Tag(args) => list_tags(&repository, &args),
        CinnabarCommand::Other(_) => Ok(ExitCode::from(FAILURE_EXIT_CODE)),
    }
}

/// Prints what each name is in the other program; zeros if it is not known.
fn look_up(
    repository: GitDirectory,
    args: &ConversionArgs,
    mut find: impl FnMut(&mut HgLookup, &str) -> Result<Option<String>, Box<dyn Error>>,
) -> CommandEnd {
    let mut lookup = HgLookup::open(repository)?;
    let len = args.abbrev.unwrap_or(40).min(40);
    let mut output = io::stdout().lock();
    let mut print = |name: &str| -> Result<(), Box<dyn Error>> {
        let found = find(&mut lookup, name)?.unwrap_or_else(|| GitId::NULL.to_string());
        output.write_all(format!("{}\n", found.get(..len).unwrap_or(&found)).as_bytes())?;
        Ok(output.flush()?)
    };
    for name in &args.names {
        print(name)?;
    }
    if args.batch {
        for line in io::stdin().lock().lines() {
            for name in line?.split_whitespace() {
                print(name)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Fetches revisions, and says so as `git fetch` does.
fn fetch(repository: &GitDirectory, args: &FetchArgs) -> CommandEnd {
    let remote = args.remote.as_deref().unwrap_or_default();
    let url = repository.remote_url(remote)?;
    if !url.starts_with("hg::") && !url.starts_with("hg://") {
        return Err(format!("Invalid mercurial url: {url}").into());
    }
    let config = HgSettings::read(Some(repository.directory()), Some(remote))?;
    let servers = |url: &str| server_settings(url, config.of_git(), Some(repository.directory()));
    let options = config.fetch_options(&url, &servers)?;
    let source = OsString::from(&url);
    let mut peer = open_peer(&source, servers).map_err(|error| name_peer(&source, error))?;
    peer.set_scratch_folder(repository.directory());
    peer.set_base_texts(stored_texts(repository.directory()));
    let mut progress = GitProgress::new(io::stdout().is_terminal());
    let fetched = fetch_revisions(
        repository.directory(),
        &mut *peer,
        &url,
        &args.revisions,
        &options,
        &mut progress,
    );
    progress.finish();
    let fetched = fetched?;
    let mut lines = format!("From {}\n", strip_login(&url));
    let width = fetched.iter().map(|found| found.abbreviation).max().unwrap_or_default() * 2 + 3;
    for found in &fetched {
        let node = found.node;
        lines.push_str(&format!(" * {:width$} hg/revs/{node} -> FETCH_HEAD\n", "branch"));
    }
    io::stderr().write_all(lines.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Names a repository that cannot be opened, and what can be done.
fn name_peer(source: &OsString, error: ChangeError) -> String {
    name_source(source, &add_advice(&error.into()))
}

/// Lets git fetch the refs of tags.
fn fetch_tags() -> CommandEnd {
    let args = ["fetch", "--tags", "hg::tags:", "tag", "*"];
    match Command::new("git").args(args).status()?.success() {
        true => Ok(ExitCode::SUCCESS),
        false => Err("fetch failed".into()),
    }
}

/// Converts what a bundle has, or the bundle that a repository recommends.
fn unbundle(repository: &GitDirectory, is_recommended: bool, url: &OsStr) -> CommandEnd {
    let directory = repository.directory();
    let config = HgSettings::read(Some(directory), None)?;
    let servers = |url: &str| server_settings(url, config.of_git(), Some(directory));
    let options = config.fetch_options(&url.to_string_lossy(), &servers)?;
    let source = url.to_owned();
    let mut peer = open_peer(url, servers).map_err(|error| name_peer(&source, error))?;
    let mut progress = GitProgress::new(io::stdout().is_terminal());
    let converted = match is_recommended {
        true => convert_clone_bundle(directory, &mut *peer, &options, &mut progress),
        false => convert_bundle(directory, &mut *peer, options.conversion, &mut progress).map(Some),
    };
    progress.finish();
    match converted.map_err(|error| name_source(&source, &error))? {
        Some(_) => Ok(ExitCode::SUCCESS),
        None => {
            let message = "Repository didn't provide a clonebundle";
            Err(name_source(&source, &message).into())
        }
    }
}

/// Checks what was converted, and notes the result for rollbacks.
fn check(mut repository: GitDirectory, args: &FsckArgs) -> CommandEnd {
    if metadata_states(&mut repository)?.is_empty() {
        return Err("There does not seem to be any git-cinnabar metadata.".into());
    }
    let mut progress = GitProgress::new(io::stdout().is_terminal());
    let depth = if args.full { CheckDepth::Full } else { CheckDepth::Fast };
    let checked = check_conversion(repository.directory(), depth, &mut progress);
    progress.finish();
    let report = checked?;
    if let Some(state) = report.state {
        mark_state(&mut repository, state, report.fault_count == 0)?;
    }
    if report.fault_count == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let lines = report.faults.iter().map(|fault| level_line("ERROR", fault));
    io::stderr().write_all(lines.collect::<String>().as_bytes())?;
    Err("Your git-cinnabar repository appears to be corrupted.".into())
}

/// Prints a text as Mercurial hashes it. Manifests and file revisions need all digits of their ids.
fn print_data(repository: GitDirectory, args: &DataArgs) -> CommandEnd {
    let HgLookup { mut repository, mut metadata } = HgLookup::open(repository)?;
    let whole = |id: &str| Node::from_hex(id.as_bytes());
    let (kind, id, text) = match args {
        DataArgs { changeset: Some(id), .. } => {
            let mut lookup = HgLookup { repository, metadata };
            let node = lookup.find_node(id)?;
            let text =
                node.map(|node| lookup.metadata.changeset_text(&mut lookup.repository, &node));
            ("changeset", id, text.transpose()?.flatten())
        }
        DataArgs { manifest: Some(id), .. } => {
            let found = whole(id).map(|node| metadata.manifest_revision(&mut repository, &node));
            ("manifest", id, found.transpose()?.flatten().map(|revision| revision.text))
        }
        DataArgs { file, .. } => {
            let id = file.as_ref().ok_or("no node")?;
            let found = whole(id).map(|node| metadata.file_revision(&mut repository, &node));
            ("file", id, found.transpose()?.flatten().map(|revision| revision.text))
        }
    };
    io::stdout().write_all(&text.ok_or_else(|| format!("Unknown {kind} id: {id}"))?)?;
    Ok(ExitCode::SUCCESS)
}

/// Lists tags. The fields of the format are those of git-cinnabar, with spaces between.
fn list_tags(repository: &GitDirectory, args: &TagArgs) -> CommandEnd {
    if !args.is_list {
        return Err("larder does not make tags of Mercurial; git cinnabar tag -l lists them".into());
    }
    let format = args.format.as_deref().unwrap_or("%(tagname)");
    let mut output = Vec::new();
    for tag in repository_tags(repository.directory())? {
        for (number, field) in format.split(' ').enumerate() {
            if number > 0 {
                output.push(b' ');
            }
            match field {
                "%(tagname)" => output.extend_from_slice(&tag.name),
                "%(objectname)" => output.extend_from_slice(tag.commit.to_string().as_bytes()),
                "%(hg::objectname)" => output.extend_from_slice(tag.node.to_string().as_bytes()),
                _ => return Err(format!("Invalid format: {format}").into()),
            }
        }
        output.push(b'\n');
    }
    io::stdout().write_all(&output)?;
    Ok(ExitCode::SUCCESS)
}

//! `git-remote-hg`: larder as git's remote helper for URLs that begin with `hg::`.
//!
//! git starts it with the name of the remote and the URL, and talks to it on standard input and
//! output (`larder_hg::run_remote_helper`). Separate from the subcommands, because git decides the
//! arguments, the exit codes and the form of messages.

use crate::git_progress::GitProgress;
use crate::git_watch::watch_git;
use crate::hg_servers::server_settings;
use crate::hg_settings::HgSettings;
use crate::output::{print_message, sanitize_line};
use larder_hg::{
    END_OF_IMPORT, GitDirectory, HelperError, HelperSettings, relative_path, run_remote_helper,
    run_tags_helper, stored_texts,
};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The name under which git starts a remote helper for `hg::` URLs.
pub(crate) const PROGRAM_NAME: &str = "git-remote-hg";
/// The program whose command for tags is named where it is there.
const CINNABAR_PROGRAM: &str = "git-cinnabar";
/// The exit code of git for errors.
const FATAL_EXIT_CODE: u8 = 128;
/// The URLs of the tags of all that was converted: `hg::tags:` without what names this program, and
/// a second form.
const TAGS_URLS: [&str; 2] = ["tags:", "hg://:tags"];

/// Answers git until it ends the dialogue.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (_, remote, url) = (args.next(), args.next(), args.next());
    let Some((remote, url)) = remote.zip(url) else {
        print_fatal("git starts this program, for URLs such as hg::https://host/repository");
        return ExitCode::from(FATAL_EXIT_CODE);
    };
    match answer(&remote, &url) {
        Ok(code) => code,
        Err(message) => {
            print_fatal(message);
            ExitCode::from(FATAL_EXIT_CODE)
        }
    }
}

fn print_fatal(message: impl Display) {
    let mut line = sanitize_line(&message.to_string());
    line.push('\n');
    // Nothing can be said if standard error is gone.
    let _written = io::stderr().write_all(format!("fatal: {line}").as_bytes());
}

fn answer(remote: &OsString, url: &OsString) -> Result<ExitCode, String> {
    let git_dir = std::env::var_os("GIT_DIR").map(PathBuf::from);
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    if TAGS_URLS.iter().any(|tags| url == tags) {
        let directory =
            git_dir.ok_or("the tags are those of a git repository, and this is none")?;
        return end(run_tags_helper(&directory, &mut input, &mut output), add_advice, &mut output);
    }
    let config =
        HgSettings::read(git_dir.as_deref(), remote.to_str()).map_err(|error| error.to_string())?;
    let style = config.ref_style()?;
    let servers = |url: &str| server_settings(url, config.of_git(), git_dir.as_deref());
    let options = config.fetch_options(&url.to_string_lossy(), &servers)?;
    let is_mirror = config.is_mirror();
    let is_importing = Arc::new(AtomicBool::new(false));
    watch_git(&is_importing, FATAL_EXIT_CODE);
    let git_directory = git_dir.clone();
    let settings = HelperSettings {
        git_dir: git_directory,
        remote: remote.clone(),
        style,
        options,
        is_mirror,
        is_importing,
    };
    let peer = larder_hg::open_peer(url, servers);
    let mut peer = peer.map_err(|error| name_source(url, &add_advice(&error.into())))?;
    peer.set_scratch_folder(&git_dir.clone().unwrap_or_else(std::env::temp_dir));
    if let Some(directory) = &git_dir {
        peer.set_base_texts(stored_texts(directory));
    }
    let mut progress = GitProgress::new(io::stderr().is_terminal())
        .with_unpruned_remote(config.unpruned_remote(style))
        .with_cinnabar(is_in_path(CINNABAR_PROGRAM));
    let ended = run_remote_helper(&settings, &mut *peer, &mut input, &mut output, &mut progress);
    progress.finish();
    if let (Ok(()), Some(directory)) = (&ended, &git_dir) {
        keep_absolute_url(directory, remote, url);
    }
    end(ended, |error| name_source(url, &add_advice(error)), &mut output)
}

/// Returns whether a program is in a folder of PATH.
fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Writes a relative path from the root of the file system to the settings of a remote, as `git
/// clone` does for its own: git runs a clone in another folder than the fetches after it. git waits
/// for this program, and does not write its settings meanwhile.
fn keep_absolute_url(directory: &Path, remote: &OsStr, url: &OsStr) {
    let Some(path) = relative_path(url) else { return };
    let Ok(folder) = std::env::current_dir() else { return };
    // Without `.` in it.
    let path: PathBuf = folder.join(path).components().collect();
    let prefixed = |url: &OsStr| [OsStr::new("hg::"), url].into_iter().collect::<OsString>();
    let (old, new) = (prefixed(url), prefixed(path.as_os_str()));
    let replaced = GitDirectory::new(directory).replace_remote_url(remote, &old, &new);
    if let Err(error) = replaced {
        let message = format!("the URL of the remote is left as it is, relative: {error}");
        print_message("warning", sanitize_line(&message));
    }
}

/// Names the folder or the bundle in a message, unless it is named there. The URL of a server is
/// left as it is: it may have a password.
pub(crate) fn name_source(url: &OsString, message: &dyn Display) -> String {
    let (url, message) = (url.to_string_lossy(), message.to_string());
    let path = url.strip_prefix("hg::").unwrap_or(&url);
    match path.contains("://") || message.contains(path) {
        true => message,
        false => format!("{path}: {message}"),
    }
}

/// Ends the dialogue. `describe` makes the message of an error.
fn end(
    ended: Result<(), HelperError>,
    describe: impl Fn(&HelperError) -> String,
    output: &mut dyn io::Write,
) -> Result<ExitCode, String> {
    match ended {
        // git has ended, and says itself why.
        Err(HelperError::Pipe(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Err(HelperError::Import { error, is_removed: true }) => {
            print_fatal(describe(&error));
            // git may have ended.
            let _written = output.write_all(END_OF_IMPORT);
            let _flushed = output.flush();
            Ok(ExitCode::from(FATAL_EXIT_CODE))
        }
        ended => ended.map(|()| ExitCode::SUCCESS).map_err(|error| describe(&error)),
    }
}

/// Returns a message with what a person can do.
pub(crate) fn add_advice(error: &HelperError) -> String {
    match error.advice() {
        Some(advice) => format!("{error} ({advice})"),
        None => error.to_string(),
    }
}

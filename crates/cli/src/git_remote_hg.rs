//! `git-remote-hg`: larder as git's remote helper for URLs that begin with `hg::`.
//!
//! git starts it with the name of the remote and the URL, and talks to it on standard input and
//! output (`larder_hg::run_remote_helper`). Separate from the subcommands, because git decides the
//! arguments, the exit codes and the form of messages.

use crate::hg_servers::server_settings;
use crate::output::sanitize_line;
use larder_hg::{
    GitDirectory, HelperError, HelperSettings, Phase, Progress, RefStyle, run_remote_helper,
};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The name under which git starts a remote helper for `hg::` URLs.
pub(crate) const PROGRAM_NAME: &str = "git-remote-hg";
/// The exit code of git for errors.
const FATAL_EXIT_CODE: u8 = 128;
/// The time between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Answers git until it ends the dialogue.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (_, remote, url) = (args.next(), args.next(), args.next());
    let Some((remote, url)) = remote.zip(url) else {
        print_fatal("git starts this program, for URLs such as hg::https://host/repository");
        return ExitCode::from(FATAL_EXIT_CODE);
    };
    match answer(&remote, &url) {
        Ok(()) => ExitCode::SUCCESS,
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

fn answer(remote: &OsString, url: &OsString) -> Result<(), String> {
    let git_dir = std::env::var_os("GIT_DIR").map(PathBuf::from);
    let style = ref_style(git_dir.as_deref(), remote)?;
    let settings = HelperSettings { git_dir, style, threads: conversion_threads() };
    let git_dir = settings.git_dir.as_deref();
    let peer = larder_hg::open_peer(url, |url| server_settings(url, git_dir));
    let mut peer = peer.map_err(|error| error.to_string())?;
    let mut progress = GitProgress::new(io::stderr().is_terminal());
    let ended = run_remote_helper(
        &settings,
        &mut *peer,
        &mut io::stdin().lock(),
        &mut io::stdout().lock(),
        &mut progress,
    );
    progress.finish();
    match ended {
        // git has ended, and says itself why.
        Err(HelperError::Pipe(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended.map_err(|error| error.to_string()),
    }
}

/// The number of threads that convert files.
pub(crate) fn conversion_threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Reads the setting `cinnabar.refs`: from the environment, of the remote, or of the repository.
fn ref_style(git_dir: Option<&std::path::Path>, remote: &OsString) -> Result<RefStyle, String> {
    let of_environment = std::env::var("GIT_CINNABAR_REFS").ok();
    let value = match (of_environment, git_dir) {
        (Some(value), _) => Some(value),
        (None, Some(directory)) => {
            let repository = GitDirectory::new(directory);
            let of_remote = format!("remote.{}.cinnabar-refs", remote.to_string_lossy());
            let names = [of_remote.as_str(), "cinnabar.refs"];
            names.iter().find_map(|name| repository.config(name).ok().flatten())
        }
        (None, None) => None,
    };
    let Some(value) = value else { return Ok(RefStyle::ALL) };
    RefStyle::parse(&value).ok_or_else(|| {
        format!("cinnabar.refs is {value:?}; it takes all, bookmarks, heads and tips")
    })
}

/// Progress as git shows it: one line, written over and over.
pub(crate) struct GitProgress {
    is_shown: bool,
    phase: Option<Phase>,
    last: Instant,
    line: String,
}

impl GitProgress {
    pub(crate) fn new(is_shown: bool) -> GitProgress {
        GitProgress { is_shown, phase: None, last: Instant::now(), line: String::new() }
    }

    fn print(&self, end: &str) {
        // A terminal that is gone does not stop the work.
        let _written = io::stderr().write_all(format!("\r{}{end}", self.line).as_bytes());
    }

    /// Ends the last line.
    pub(crate) fn finish(&mut self) {
        if self.is_shown && self.phase.take().is_some() {
            self.print(", done.\n");
        }
    }
}

impl Progress for GitProgress {
    fn set_shown(&mut self, is_shown: bool) {
        self.is_shown = is_shown;
    }

    fn advance(&mut self, phase: Phase, done: u64, total: Option<u64>) {
        if !self.is_shown {
            return;
        }
        let is_new = self.phase != Some(phase);
        if is_new {
            self.finish();
            self.phase = Some(phase);
        }
        let title = match phase {
            Phase::Changesets => "Reading changesets",
            Phase::Manifests => "Reading manifests",
            Phase::Files => "Converting file revisions",
            Phase::Trees => "Writing trees",
            Phase::Commits => "Writing commits",
        };
        self.line = match total {
            Some(total) => {
                let percent = (done * 100).checked_div(total).unwrap_or(100);
                format!("{title}: {percent:3}% ({done}/{total})")
            }
            None => format!("{title}: {done}"),
        };
        if is_new || self.last.elapsed() >= PROGRESS_INTERVAL {
            self.last = Instant::now();
            self.print("");
        }
    }
}

//! How servers of Mercurial are reached: what the environment and git's configuration say.
//!
//! The names are those that git itself uses for its servers (git-config(1), git(1)).

use crate::output::sanitize_line;
use larder_hg::{GitCredentials, GitDirectory, HttpSettings, ServerSettings, SshCommand};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;

/// Returns the settings for a server. `git_dir` is the git directory whose configuration holds.
pub(crate) fn server_settings(url: &str, git_dir: Option<&Path>) -> ServerSettings {
    let config = |name: &str| {
        let value = GitDirectory::config_for_url(git_dir, name, url);
        value.ok().flatten().filter(|value| !value.is_empty())
    };
    let authorities = variable("GIT_SSL_CAINFO")
        .or_else(|| config("http.sslCAInfo").map(OsString::from))
        .and_then(|path| std::fs::read(path).ok());
    let is_unchecked = variable("GIT_SSL_NO_VERIFY").is_some()
        || config("http.sslVerify").is_some_and(|value| value == "false");
    let http = HttpSettings {
        proxy: config("http.proxy").or_else(|| proxy_variable(url)),
        no_proxy: text_variable("NO_PROXY").unwrap_or_default(),
        authorities,
        accepts_any_certificate: is_unchecked,
        timeout: None,
        credentials: Some(Box::new(GitCredentials { git_dir: git_dir.map(Path::to_path_buf) })),
    };
    ServerSettings { http, ssh: ssh_command(config("core.sshCommand")), output: Box::new(print) }
}

fn ssh_command(configured: Option<String>) -> SshCommand {
    if let Some(command) = variable("GIT_SSH_COMMAND") {
        return SshCommand::Shell(command);
    }
    if let Some(command) = configured {
        return SshCommand::Shell(command.into());
    }
    SshCommand::Program(variable("GIT_SSH").unwrap_or_else(|| "ssh".into()))
}

/// The proxy of the environment. The upper-case form of `http_proxy` is not read: a web server sets
/// it to whatever a client sends.
fn proxy_variable(url: &str) -> Option<String> {
    let own = match url.starts_with("https:") {
        true => text_variable("HTTPS_PROXY"),
        false => std::env::var("http_proxy").ok().filter(|value| !value.is_empty()),
    };
    own.or_else(|| text_variable("ALL_PROXY"))
}

/// Returns a variable that is not empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns a variable of this name in lower or upper case.
fn text_variable(name: &str) -> Option<String> {
    let value = variable(&name.to_ascii_lowercase()).or_else(|| variable(name));
    value.and_then(|value| value.into_string().ok())
}

/// Prints a line of a server behind ssh as Mercurial does.
fn print(line: &[u8]) {
    let line = sanitize_line(&String::from_utf8_lossy(line));
    // Nothing can be said if standard error is gone.
    let _written = io::stderr().write_all(format!("remote: {line}\n").as_bytes());
}

//! How servers of Mercurial are reached: what the environment and git's configuration say.
//!
//! The names are those that git itself uses for its servers (git-config(1), git(1)).

use crate::output::sanitize_line;
use larder_hg::{
    ChangeError, GitCredentials, GitSettings, HttpSettings, ServerSettings, SettingsResult,
    SpeedLimit, SshCommand, StreamUse,
};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a server may be silent, unless git's settings say something else: one with a large
/// repository thinks for minutes before it sends the first byte.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(600);

/// Settings of git for servers that are not followed; the second group only concerns TLS.
const IGNORED_SETTINGS: [&[&str]; 2] = [
    &["http.cookieFile", "http.curloptResolve", "http.proxyAuthMethod"],
    &[
        "http.pinnedPubkey",
        "http.proxySSLCAInfo",
        "http.proxySSLCert",
        "http.proxySSLKey",
        "http.sslCAPath",
        "http.sslCipherList",
        "http.sslVersion",
    ],
];

/// The settings of git for a server.
struct ServerConfig<'a> {
    settings: &'a GitSettings,
    url: &'a str,
}

/// Returns the settings for a server. `settings` are those of `git_dir`, the git directory whose
/// credential helpers are asked, or those of the user.
pub(crate) fn server_settings(
    url: &str,
    settings: &GitSettings,
    git_dir: Option<&Path>,
) -> SettingsResult {
    let config = ServerConfig { settings, url };
    let mut http = match url.starts_with("http") {
        true => config.http_settings()?,
        false => HttpSettings::default(),
    };
    http.stream_use = stream_use(config.get("larder.hgStream"));
    http.credentials = Some(Box::new(GitCredentials { git_dir: git_dir.map(Path::to_path_buf) }));
    let ssh = ssh_command(config.get("core.sshCommand"));
    Ok(ServerSettings { http, ssh, output: Box::new(print) })
}

impl ServerConfig<'_> {
    /// Returns a value for the URL, which may be empty.
    fn find(&self, name: &str) -> Option<String> {
        self.settings.get_for_url(name, self.url).ok().flatten()
    }

    /// Returns a value for the URL that is not empty.
    fn get(&self, name: &str) -> Option<String> {
        self.find(name).filter(|value| !value.is_empty())
    }

    fn http_settings(&self) -> Result<HttpSettings, ChangeError> {
        self.report_ignored();
        let is_unchecked = variable("GIT_SSL_NO_VERIFY").is_some()
            || self.get("http.sslVerify").is_some_and(|value| is_false(&value));
        let bytes = self.number("GIT_HTTP_LOW_SPEED_LIMIT", "http.lowSpeedLimit");
        let seconds = self.number("GIT_HTTP_LOW_SPEED_TIME", "http.lowSpeedTime");
        let speed_limit = bytes.zip(seconds).map(|(bytes_per_second, seconds)| SpeedLimit {
            bytes_per_second,
            time: Duration::from_secs(seconds),
        });
        // An empty setting is that of no proxy.
        let proxy = match self.find("http.proxy") {
            Some(proxy) => Some(proxy).filter(|proxy| !proxy.is_empty()),
            None => proxy_variable(self.url),
        };
        // Where no certificate is looked at, the authorities do not matter.
        let authorities = match is_unchecked {
            true => None,
            false => self.read_file("certificates", "GIT_SSL_CAINFO", "http.sslCAInfo")?,
        };
        let follows = self.get("http.followRedirects");
        Ok(HttpSettings {
            proxy,
            no_proxy: text_variable("NO_PROXY").unwrap_or_default(),
            authorities,
            accepts_any_certificate: is_unchecked,
            client_certificate: self.client_certificate()?,
            headers: self.headers()?,
            refuses_redirects: follows.is_some_and(|value| is_false(&value)),
            timeout: Some(speed_limit.map_or(SILENCE_TIMEOUT, |limit| limit.time)),
            speed_limit,
            ..HttpSettings::default()
        })
    }

    fn number(&self, variable: &str, name: &str) -> Option<u64> {
        let value = text_variable(variable).or_else(|| self.get(name))?;
        value.parse().ok().filter(|number| *number > 0)
    }

    /// Reads a file that a variable or a setting names. Those of the system do not stand in for
    /// one that cannot be read: they are other authorities than the ones that the user trusts.
    fn read_file(
        &self,
        content: &str,
        variable_name: &str,
        setting: &str,
    ) -> Result<Option<Vec<u8>>, ChangeError> {
        let path = variable(variable_name).map(PathBuf::from);
        let path = path.or_else(|| self.get(setting).map(|path| expand_home(&path)));
        let read = path.map(|path| {
            std::fs::read(&path).map_err(|error| {
                let shown = path.display();
                let what =
                    format!("reading {content} ({variable_name}, {setting}): {shown}: {error}");
                unreadable(what)
            })
        });
        read.transpose()
    }

    /// Returns the certificate of this side with its key, which may be in the same file.
    fn client_certificate(&self) -> Result<Option<Vec<u8>>, ChangeError> {
        if !self.url.starts_with("https:") {
            return Ok(None);
        }
        let own = self.read_file("a client certificate", "GIT_SSL_CERT", "http.sslCert")?;
        let Some(mut own) = own else { return Ok(None) };
        if let Some(key) = self.read_file("its private key", "GIT_SSL_KEY", "http.sslKey")? {
            own.push(b'\n');
            own.extend(key);
        }
        Ok(Some(own))
    }

    /// Returns the headers that the user adds.
    fn headers(&self) -> Result<Vec<(String, String)>, ChangeError> {
        let lines = self.settings.all_for_url("http.extraHeader", self.url);
        let lines = lines.map_err(|error| unreadable(error.to_string()))?;
        let split = |line: &String| match line.split_once(':') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            // The line may be a secret.
            None => Err(unreadable("http.extraHeader has a value without a colon".to_owned())),
        };
        lines.iter().map(split).collect()
    }

    /// Names the settings that are not followed.
    fn report_ignored(&self) {
        let groups = if self.url.starts_with("https:") { 2 } else { 1 };
        for name in IGNORED_SETTINGS.iter().take(groups).copied().flatten() {
            if self.get(name).is_some() {
                let line = format!("warning: larder does not follow the setting {name}\n");
                // Nothing can be said if standard error is gone.
                let _written = io::stderr().write_all(line.as_bytes());
            }
        }
    }
}

/// Returns the error of settings that cannot be read.
fn unreadable(what: String) -> ChangeError {
    ChangeError::Settings { what }
}

/// Reads a switch of git's configuration that is off.
fn is_false(value: &str) -> bool {
    ["false", "no", "off", "0"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Reads a path of git's settings, in which `~/` is the home of the user.
fn expand_home(path: &str) -> PathBuf {
    match path.strip_prefix("~/").zip(variable("HOME")) {
        Some((rest, home)) => Path::new(&home).join(rest),
        None => PathBuf::from(path),
    }
}

/// Reads the setting `larder.hgStream`. A value that it does not take is reported, and nothing is
/// streamed.
fn stream_use(value: Option<String>) -> StreamUse {
    let Some(value) = value else { return StreamUse::default() };
    StreamUse::parse(&value).unwrap_or_else(|| {
        let value = sanitize_line(&value);
        let line = format!("larder.hgStream is {value}; it takes always, preferred and never");
        // Nothing can be said if standard error is gone.
        let _written = io::stderr().write_all(format!("warning: {line}\n").as_bytes());
        StreamUse::Never
    })
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

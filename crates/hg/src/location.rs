//! Where a repository is: the forms of `hg::` URLs (docs/hg.md), and the peer for each.

use crate::bundle_peer::BundlePeer;
use crate::local::LocalPeer;
use crate::peer::Peer;
use crate::percent;
use crate::revision::ChangeError;
use crate::url_authority::{has_open_password, is_port, strip_login};
use crate::wire::{
    HttpSettings, PipeServer, ServerOutput, SshCommand, SshLocation, connect_http, connect_pipe,
};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The schemes of URLs of servers, with `://`.
const SERVER_SCHEMES: [&[u8]; 3] = [b"http://", b"https://", b"ssh://"];
/// The scheme of paths, which name no machine or this one (RFC 8089, section 2).
const FILE_SCHEME: &[u8] = b"file://";
const THIS_MACHINE: &[u8] = b"localhost";
/// The prefix of the second form, `hg://host[:[port.]scheme]/path`.
const SHORT_SCHEME: &[u8] = b"hg://";

/// The command of Mercurial on servers behind ssh.
const REMOTE_PROGRAM: &str = "hg";

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A file or a folder on this machine.
    Path(PathBuf),
    /// A server, by a URL with the scheme http, https or ssh.
    Url(Vec<u8>),
}

/// Reads a URL as git gives it to a remote helper: without `hg::`, or with `hg://`.
pub(crate) fn parse_location(url: &OsStr) -> Result<Location, ChangeError> {
    let url = url.as_bytes();
    let url = fold_scheme(url.strip_prefix(b"hg::").unwrap_or(url));
    check_login(&url)?;
    if let Some(rest) = url.strip_prefix(SHORT_SCHEME) {
        return Ok(Location::Url(check_fragment(long_url(rest)?)?));
    }
    if let Some(rest) = url.strip_prefix(FILE_SCHEME) {
        return file_path(rest).map(Location::Path);
    }
    if url.is_empty() {
        return Err(ChangeError::new_unsupported("a URL without anything after hg::"));
    }
    if SERVER_SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
        return Ok(Location::Url(check_fragment(url)?));
    }
    match memchr::memmem::find(&url, b"://") {
        Some(end) => {
            let scheme = String::from_utf8_lossy(url.get(..end).unwrap_or_default()).into_owned();
            Err(ChangeError::new_unsupported(format!("the URL scheme {scheme}")))
        }
        None => Ok(Location::Path(PathBuf::from(OsStr::from_bytes(&url)))),
    }
}

/// Writes the scheme of a URL in small letters (RFC 3986, section 3.1).
fn fold_scheme(url: &[u8]) -> Vec<u8> {
    let mut url = url.to_vec();
    if let Some(end) = memchr::memmem::find(&url, b"://")
        && url.iter().take(end).all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
    {
        url[..end].make_ascii_lowercase();
    }
    url
}

/// Returns the path of a URL with the scheme file, after its two slashes.
fn file_path(rest: &[u8]) -> Result<PathBuf, ChangeError> {
    let host_end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_end);
    if path.is_empty() {
        return Err(ChangeError::new_unsupported("a URL with file:// and without a path"));
    }
    if !host.is_empty() && !host.eq_ignore_ascii_case(THIS_MACHINE) {
        let host = String::from_utf8_lossy(host);
        return Err(ChangeError::new_unsupported(format!(
            "the host {host} in a URL with file://; that of a path on this machine begins with \
             file:///"
        )));
    }
    Ok(PathBuf::from(OsString::from_vec(percent::decode(path))))
}

/// Refuses a password with a sign that should be encoded, and does not show it.
fn check_login(url: &[u8]) -> Result<(), ChangeError> {
    let url = String::from_utf8_lossy(url);
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(()) };
    let is_short = scheme.as_bytes() == SHORT_SCHEME.strip_suffix(b"://").unwrap_or_default();
    let can_follow = |text: &str| is_port(text) || is_short && is_port_with_scheme(text);
    match scheme != "file" && has_open_password(rest, can_follow) {
        true => Err(ChangeError::new_unsupported(
            "a URL with /, # or ? before the name of the server; in a password, / is written %2F, \
             # is written %23 and ? is written %3F",
        )),
        false => Ok(()),
    }
}

/// Returns whether a text is `[PORT.]SCHEME`.
fn is_port_with_scheme(text: &str) -> bool {
    let (port, scheme) = text.split_once('.').unwrap_or(("", text));
    is_port(port) && matches!(scheme, "http" | "https" | "ssh")
}

/// Refuses the URL of a part of a repository, which Mercurial names after `#`. Without it, all of
/// the repository would come, which is not what was asked for.
fn check_fragment(url: Vec<u8>) -> Result<Vec<u8>, ChangeError> {
    let Some(mark) = memchr::memchr(b'#', &url) else { return Ok(url) };
    Err(fragment_error(&url[..mark], &url[mark + 1..]))
}

fn fragment_error(url: &[u8], name: &[u8]) -> ChangeError {
    let url = strip_login(&String::from_utf8_lossy(url));
    let name = String::from_utf8_lossy(name);
    ChangeError::new_unsupported(format!(
        "a URL with #{name} for a part of the repository; for a branch: git clone --single-branch \
         -b branches/{name}/tip hg::{url}; for a bookmark: -b bookmarks/{name}"
    ))
}

/// Returns the path that a URL names if it does not begin at the root of the file system.
pub fn relative_path(url: &OsStr) -> Option<PathBuf> {
    match parse_location(url) {
        Ok(Location::Path(path)) if path.is_relative() => Some(path),
        _ => None,
    }
}

/// Writes `host[:[port.]scheme]/path` in the common form; the scheme is https unless it is given.
fn long_url(rest: &[u8]) -> Result<Vec<u8>, ChangeError> {
    let slash = memchr::memchr(b'/', rest).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    // A login, or an address in brackets, may have colons, too.
    let host_start = memchr::memrchr2(b'@', b']', authority).map_or(0, |at| at + 1);
    let colon = memchr::memrchr(b':', &authority[host_start..]).map(|colon| host_start + colon);
    let (host, suffix) = match colon {
        Some(colon) => (&authority[..colon], &authority[colon + 1..]),
        None => (authority, &b""[..]),
    };
    let (port, scheme) = match memchr::memchr(b'.', suffix) {
        Some(dot) => (&suffix[..dot], &suffix[dot + 1..]),
        None if suffix.iter().all(u8::is_ascii_digit) => (suffix, &b"https"[..]),
        None => (&b""[..], suffix),
    };
    if !matches!(scheme, b"http" | b"https" | b"ssh") {
        let suffix = String::from_utf8_lossy(suffix);
        return Err(ChangeError::new_unsupported(format!(
            "{suffix} in the URL: after a colon, hg:// takes a port, a scheme (http, https, ssh), \
             or both with a dot between"
        )));
    }
    let mut url = [scheme, b"://", host].concat();
    if !port.is_empty() {
        url.push(b':');
        url.extend_from_slice(port);
    }
    url.extend_from_slice(path);
    Ok(url)
}

/// How servers are reached.
pub struct ServerSettings {
    /// For HTTP and HTTPS; when the files of a store are taken, also for ssh.
    pub http: HttpSettings,
    /// The program for ssh.
    pub ssh: SshCommand,
    /// Receives the lines that a server behind ssh writes to standard error.
    pub output: ServerOutput,
}

/// The settings for a server, or why they cannot be read.
pub type SettingsResult = Result<ServerSettings, ChangeError>;

/// Opens the repository that a URL names. `settings` is called for a server, with the URL in its
/// common form.
pub fn open_peer(
    url: &OsStr,
    settings: impl FnOnce(&str) -> SettingsResult,
) -> Result<Box<dyn Peer>, ChangeError> {
    match parse_location(url)? {
        Location::Path(path) => open_path(&path),
        Location::Url(url) => {
            let url = String::from_utf8_lossy(&url).into_owned();
            open_server(&url, settings(&url)?)
        }
    }
}

fn open_server(url: &str, settings: ServerSettings) -> Result<Box<dyn Peer>, ChangeError> {
    if !url.starts_with("ssh://") {
        return connect_http(url, settings.http);
    }
    let server = PipeServer::ssh(&settings.ssh, REMOTE_PROGRAM, &SshLocation::parse(url)?);
    let peer = connect_pipe(server, settings.output)?;
    Ok(Box::new(peer.with_stream_use(settings.http.stream_use)))
}

fn open_path(path: &Path) -> Result<Box<dyn Peer>, ChangeError> {
    let is_git = || path.join("HEAD").is_file() && path.join("objects").is_dir();
    if path.is_dir() && !path.join(".hg").exists() && (path.join(".git").exists() || is_git()) {
        let path = path.display();
        let what =
            format!("{path} is a repository of git, not of Mercurial; git takes it without hg::");
        return Err(ChangeError::new_not_mercurial(what));
    }
    if path.is_dir() {
        return Ok(Box::new(LocalPeer::open(path).map_err(ChangeError::from)?));
    }
    match std::fs::metadata(path) {
        Ok(_) => Ok(Box::new(BundlePeer::from_path(path.to_path_buf()))),
        Err(error) => {
            let whole = path.as_os_str().as_bytes();
            // A path may have the sign, so that it names a part only where there is no such file.
            if let Some(mark) = memchr::memrchr(b'#', whole)
                && Path::new(OsStr::from_bytes(&whole[..mark])).exists()
            {
                return Err(fragment_error(&whole[..mark], &whole[mark + 1..]));
            }
            let message = format!("{}: {error}", path.display());
            Err(ChangeError::Read(io::Error::new(error.kind(), message)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_of(text: &str) -> String {
        match parse_location(OsStr::new(text)) {
            Ok(Location::Url(url)) => String::from_utf8(url).expect("a text"),
            Ok(Location::Path(path)) => format!("path {}", path.display()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn parts_of_repositories_are_refused() {
        for text in ["https://me:secret@host/repo#stable", "hg://me@host:https/repo#stable"] {
            let message = url_of(text);
            let advice = "git clone --single-branch -b branches/stable/tip hg::https://host/repo;";
            assert!(message.contains(advice), "{message}");
        }
        for text in [
            "hg::https://me:sec#ret@host.invalid/r",
            "https://me:sec#ret@host.invalid",
            "hg://me:sec#ret@host.invalid/r",
            "hg://me:sec#ret@host.invalid:8000.http/r",
            "ssh://me:sec#r/et@host.invalid/r#stable",
            "https://me:sec/ret@host.invalid/r",
            "ssh://me:sec/ret@host.invalid/r",
            "hg://me:sec/ret@host.invalid:http/r",
        ] {
            let message = url_of(text);
            assert!(message.contains("# is written %23"), "{message}");
            assert!(!message.contains("sec") && !message.contains("ret"), "{message}");
        }
        // A branch may have the sign.
        assert!(url_of("https://host/repo#a@b").contains("branches/a@b/tip"));
        assert!(url_of("http://host#a@b").contains("branches/a@b/tip"));
        assert!(url_of("ssh://host/repo#").starts_with("not supported: a URL with # for a part"));
    }

    #[test]
    fn parts_of_local_repositories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let open = |name: &str| {
            let result = open_peer(path(name).as_os_str(), |_| unreachable!("no server"));
            result.err().map(|error| error.to_string()).unwrap_or_default()
        };
        std::fs::write(path("repo.hg"), "").unwrap();
        assert!(open("repo.hg#stable").contains("-b branches/stable/tip hg::/"));
        assert!(open("other.hg#stable").contains("No such file"));
        std::fs::write(path("repo.hg#stable"), "").unwrap();
        assert_eq!(open("repo.hg#stable"), "");
    }

    #[test]
    fn all_forms_are_read() {
        for (text, expected) in [
            ("https://host/repo", "https://host/repo"),
            ("hg::http://host:8000/", "http://host:8000/"),
            ("hg://host/repo", "https://host/repo"),
            ("hg://host:http/repo", "http://host/repo"),
            ("hg://host:8000.http/repo", "http://host:8000/repo"),
            ("hg://host:8443/repo", "https://host:8443/repo"),
            ("hg://user@host:ssh/a/b", "ssh://user@host/a/b"),
            ("hg://me:secret@host/repo", "https://me:secret@host/repo"),
            ("hg://me:secret@host:http/repo", "http://me:secret@host/repo"),
            ("/srv/repo", "path /srv/repo"),
            ("file:///srv/repo", "path /srv/repo"),
            ("FILE://LocalHost/srv/a%20b", "path /srv/a b"),
            (
                "file://srv/repo",
                "not supported: the host srv in a URL with file://; that of a path on this machine \
                 begins with file:///",
            ),
            ("hg::HTTP://Host/Repo", "http://Host/Repo"),
            ("HG://Host:ssh/Repo", "ssh://Host/Repo"),
            ("a b/C://d", "not supported: the URL scheme a b/C"),
            ("../repo.hg", "path ../repo.hg"),
            ("/srv/repo#1", "path /srv/repo#1"),
            ("ftp://host/repo", "not supported: the URL scheme ftp"),
            ("hg://[::1]/repo", "https://[::1]/repo"),
            ("hg://me@[::1]:8000.http/repo", "http://me@[::1]:8000/repo"),
            ("hg://host:8000.http/a@b", "http://host:8000/a@b"),
            (
                "hg://host:8000.",
                "not supported: 8000. in the URL: after a colon, hg:// takes a port, a scheme \
                 (http, https, ssh), or both with a dot between",
            ),
            ("hg::", "not supported: a URL without anything after hg::"),
            ("file://", "not supported: a URL with file:// and without a path"),
        ] {
            assert_eq!(url_of(text), expected, "{text}");
        }
    }
}

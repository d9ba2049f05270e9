//! Where a repository is that ssh reaches.

use crate::percent;
use crate::revision::ChangeError;
use crate::url_authority::{split_port, strip_login};

/// A repository on a machine that ssh reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshLocation {
    /// The name of the user there.
    pub user: Option<String>,
    /// The name of the machine.
    pub host: String,
    /// The port of the ssh server.
    pub port: Option<u16>,
    /// The path there; it is relative to the user's home directory unless it begins with `/`.
    pub path: String,
}

impl SshLocation {
    /// Returns the argument of ssh that names the machine.
    pub fn target(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.host),
            None => self.host.clone(),
        }
    }

    /// Parses a URL: `ssh://[USER@]HOST[:PORT]/PATH`.
    pub fn parse(url: &str) -> Result<SshLocation, ChangeError> {
        let wrong =
            |what: &str| ChangeError::new_unsupported(format!("{what} in {}", strip_login(url)));
        let rest = url.strip_prefix("ssh://").ok_or_else(|| wrong("the scheme"))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, "."));
        let (user, host) = match host.rsplit_once('@') {
            Some((login, host)) => (login.split(':').next().map(decode), host),
            None => (None, host),
        };
        let (host, port) = split_port(host);
        let port = match port {
            Some(port) => Some(port.parse().map_err(|_| wrong("the port"))?),
            None => None,
        };
        let host = decode(host.trim_start_matches('[').trim_end_matches(']'));
        let path = if path.is_empty() { ".".to_owned() } else { decode(path) };
        let location = SshLocation { user, host, port, path };
        // ssh would take these for options.
        if location.host.is_empty() || location.target().starts_with('-') {
            return Err(wrong("the name of the machine"));
        }
        Ok(location)
    }
}

fn decode(text: &str) -> String {
    String::from_utf8_lossy(&percent::decode(text.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, target: &str, port: Option<u16>, path: &str) {
        let location = SshLocation::parse(url).expect("a location");
        let found = (location.target(), location.port, location.path.as_str());
        assert_eq!(found, (target.to_owned(), port, path), "{url}");
    }

    #[test]
    fn urls_are_parsed() {
        check("ssh://h/r", "h", None, "r");
        check("ssh://h//r", "h", None, "/r");
        check("ssh://u@h:2222/a%20b/c", "u@h", Some(2222), "a b/c");
        check("ssh://[::1]:22/r", "::1", Some(22), "r");
        check("ssh://[::1]", "::1", None, ".");
    }

    #[test]
    fn errors_have_no_password() {
        let error = SshLocation::parse("ssh://me:secret@h:99999/r").unwrap_err().to_string();
        assert_eq!(error, "not supported: the port in ssh://h:99999/r");
    }

    #[test]
    fn names_that_ssh_would_take_for_options_are_refused() {
        let urls = [
            "ssh://-oProxyCommand=x/r",
            "ssh://%2dx/r",
            "ssh:///r",
            "ssh://h:x/r",
            "ssh://-u@h/",
            "h",
        ];
        for url in urls {
            assert!(SshLocation::parse(url).is_err(), "{url}");
        }
    }
}

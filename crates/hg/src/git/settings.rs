//! The settings of git (git-config(1)).
//!
//! They are read once, by one process, because a fetch looks up a dozen of them.

use super::environment::git_command;
use super::repository::GitDirectoryError;
use std::path::{Path, PathBuf};

/// The command of git that reads settings.
const COMMAND: &str = "config";

/// The settings that hold in a repository.
#[derive(Debug)]
pub struct GitSettings {
    directory: Option<PathBuf>,
    /// Names, as git writes them, and values, the one that wins last.
    values: Vec<(String, String)>,
}

impl GitSettings {
    /// Reads the settings of a git directory with those of the user; without one, those of the
    /// user.
    pub fn read(directory: Option<&Path>) -> Result<GitSettings, GitDirectoryError> {
        let output = run(directory, &["--list", "-z"])?;
        // A setting without a value is a switch that is on.
        let values = output.split('\0').filter(|entry| !entry.is_empty()).map(|entry| {
            let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            (name.to_string(), value.to_string())
        });
        let values = values.collect();
        Ok(GitSettings { directory: directory.map(Path::to_path_buf), values })
    }

    /// Returns a value; `None` if it is not set. Names are as git compares them: only the part
    /// between the first and the last dot has upper and lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let name = normal_name(name);
        let found = self.values.iter().rev().find(|(other, _)| *other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns whether a setting is there whose name, as git lists it, begins so.
    pub fn has_prefix(&self, prefix: &str) -> bool {
        self.values.iter().any(|(name, _)| name.starts_with(prefix))
    }

    /// Returns all values of a setting that can have several, in their order.
    pub fn all<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s str> + use<'s> {
        let name = normal_name(name);
        let found = self.values.iter().filter(move |(other, _)| *other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns a value that may be set for some URLs only (`SECTION.URL.NAME`, else
    /// `SECTION.NAME`); `None` if it is not set.
    pub fn get_for_url(&self, name: &str, url: &str) -> Result<Option<String>, GitDirectoryError> {
        let normal = normal_name(name);
        if !self.values.iter().any(|(other, _)| is_for_some_url(other, &normal)) {
            return Ok(self.get(name).map(str::to_string));
        }
        // git knows which URL of several is meant.
        match run(self.directory.as_deref(), &["--get-urlmatch", name, url]) {
            Ok(value) => Ok(Some(value.strip_suffix('\n').unwrap_or(&value).to_string())),
            Err(GitDirectoryError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the values for a URL of a setting that can have several, in their order: those for
    /// all URLs, then those of the name that fits best. An empty value removes those before it.
    pub fn all_for_url(&self, name: &str, url: &str) -> Result<Vec<String>, GitDirectoryError> {
        let normal = normal_name(name);
        let best = self.get_for_url(name, url)?.unwrap_or_default();
        let is_best =
            |(other, value): &&(String, String)| *value == best && is_for_some_url(other, &normal);
        let best_name = self.values.iter().rev().find(is_best).map(|(other, _)| other);
        let mut found = Vec::new();
        for wanted in std::iter::once(&normal).chain(best_name) {
            for value in self.all(wanted) {
                if value.is_empty() {
                    found.clear();
                } else {
                    found.push(value.to_string());
                }
            }
        }
        Ok(found)
    }
}

/// Returns whether a name as git lists it is that of a setting for some URLs.
fn is_for_some_url(listed: &str, name: &str) -> bool {
    let (section, variable) = name.split_once('.').unwrap_or(("", name));
    let rest = listed.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
    rest.and_then(|rest| rest.rsplit_once('.')).is_some_and(|(_, last)| last == variable)
}

fn run(directory: Option<&Path>, args: &[&str]) -> Result<String, GitDirectoryError> {
    let mut git = git_command();
    if let Some(directory) = directory {
        git.arg("--git-dir").arg(directory);
    }
    let output = git
        .arg(COMMAND)
        .args(args)
        .output()
        .map_err(|source| GitDirectoryError::Pipe { command: COMMAND, source })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(GitDirectoryError::Failed { command: COMMAND, message });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes a name as git lists it: section and variable in lower case.
fn normal_name(name: &str) -> String {
    let (Some(first), Some(last)) = (name.find('.'), name.rfind('.')) else {
        return name.to_ascii_lowercase();
    };
    let (section, rest) = name.split_at(first);
    let (middle, variable) = rest.split_at(last - first);
    [&section.to_ascii_lowercase(), middle, &variable.to_ascii_lowercase()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn settings_are_those_of_git() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = |args: &[&str]| {
            let status = Command::new("git").arg("-C").arg(folder.path()).args(args).status();
            assert!(status.expect("git").success(), "{args:?}");
        };
        git(&["init", "-q", "--bare"]);
        git(&["config", "remote.Origin.cinnabar-refs", "heads"]);
        git(&["config", "larder.hgStream", "never\nat all"]);
        git(&["config", "http.sslVerify", "true"]);
        git(&["config", "http.https://host/a.sslVerify", "false"]);
        git(&["config", "http.proxy", "first"]);
        git(&["config", "--add", "http.proxy", "second"]);
        let settings = GitSettings::read(Some(folder.path())).expect("settings");
        assert_eq!(settings.get("remote.Origin.cinnabar-refs"), Some("heads"));
        assert_eq!(settings.get("remote.origin.cinnabar-refs"), None);
        assert_eq!(settings.get("Larder.HGSTREAM"), Some("never\nat all"));
        assert_eq!(settings.all("HTTP.proxy").collect::<Vec<_>>(), ["first", "second"]);
        let for_url = |name, url| settings.get_for_url(name, url).expect("a value");
        assert_eq!(for_url("http.proxy", "https://host/a").as_deref(), Some("second"));
        assert_eq!(for_url("http.sslVerify", "https://host/a/b").as_deref(), Some("false"));
        assert_eq!(for_url("http.sslVerify", "https://host/b").as_deref(), Some("true"));
        assert_eq!(for_url("http.sslCAInfo", "https://host/b"), None);
        for (name, value) in [
            ("http.extraHeader", "dropped: x"),
            ("http.extraHeader", ""),
            ("http.https://host/a.extraHeader", "token: a"),
            ("http.extraHeader", "for: all"),
            ("http.https://host.extraHeader", "token: host"),
            ("http.https://host/a.extraHeader", "token: A"),
        ] {
            git(&["config", "--add", name, value]);
        }
        let settings = GitSettings::read(Some(folder.path())).expect("settings");
        let headers = |url| settings.all_for_url("http.extraHeader", url).expect("values");
        assert_eq!(headers("https://host/a/b"), ["for: all", "token: a", "token: A"]);
        assert_eq!(headers("https://host/b"), ["for: all", "token: host"]);
        assert_eq!(headers("https://other/b"), ["for: all"]);
    }
}

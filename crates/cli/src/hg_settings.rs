//! The settings of git-cinnabar that are followed here; docs/hg.md lists all of them.
//!
//! A setting is read from the variable `GIT_CINNABAR_KEY`, from `remote.NAME.cinnabar-KEY` of git's
//! configuration, and from `cinnabar.KEY`; the first one holds.
//!
//! | key | value |
//! |---|---|
//! | `refs` | which refs a repository has: `all`, or of `bookmarks`, `heads`, `tips` |
//! | `clone` | metadata that a first fetch takes: a URL or path, `#` and a branch; empty: none |
//! | `clonebundle` | the bundle that a first fetch takes: a URL or path; empty: none |
//! | `check` | `cinnabarclone`, `clonebundles`: a fetch fails if these cannot be taken |
//! | `compat` | `0.6`: the ids of that version, where they differ |

use larder_hg::{
    CloneSource, ConversionOptions, FetchOptions, GitDirectoryError, GitSettings, PRIVATE_PREFIX,
    RefStyle, SettingsResult,
};
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::Path;

/// The settings for a remote repository.
pub(crate) struct HgSettings {
    configured: GitSettings,
    remote: Option<String>,
}

impl HgSettings {
    /// Reads the settings. `remote` is the name of the remote; a URL has no settings of its own.
    pub(crate) fn read(
        git_dir: Option<&Path>,
        remote: Option<&str>,
    ) -> Result<HgSettings, GitDirectoryError> {
        let configured = GitSettings::read(git_dir)?;
        let is_url = |remote: &&str| remote.starts_with("hg:");
        let remote = remote.filter(|remote| !is_url(remote)).map(str::to_owned);
        Ok(HgSettings { configured, remote })
    }

    /// The settings of git.
    pub(crate) fn of_git(&self) -> &GitSettings {
        &self.configured
    }

    fn read_value(&self, name: &str) -> Option<&str> {
        self.configured.get(name)
    }

    fn value(&self, key: &str) -> Option<String> {
        let variable = format!("GIT_CINNABAR_{}", key.to_ascii_uppercase());
        if let Ok(value) = std::env::var(variable) {
            return Some(value);
        }
        let of_remote = self.remote.as_ref().map(|name| format!("remote.{name}.cinnabar-{key}"));
        let of_remote = of_remote.and_then(|name| self.read_value(&name));
        of_remote.or_else(|| self.read_value(&format!("cinnabar.{key}"))).map(str::to_owned)
    }

    /// Returns which refs a repository has.
    pub(crate) fn ref_style(&self) -> Result<RefStyle, String> {
        let Some(value) = self.value("refs") else { return Ok(RefStyle::ALL) };
        RefStyle::parse(&value).ok_or_else(|| {
            format!("cinnabar.refs is {value:?}; it takes all, bookmarks, heads and tips")
        })
    }

    fn clone_source(&self, key: &str) -> CloneSource {
        match self.value(key) {
            None => CloneSource::Recommended,
            Some(value) if value.is_empty() => CloneSource::Repository,
            Some(value) => CloneSource::Given(value),
        }
    }

    /// Returns how changes are converted.
    pub(crate) fn conversion(&self) -> Result<ConversionOptions, String> {
        let pads_with_nul = match self.value("compat").as_deref() {
            None | Some("") => false,
            Some("0.6") => true,
            Some(value) => return Err(format!("cinnabar.compat is {value:?}; it takes 0.6")),
        };
        Ok(ConversionOptions { threads: conversion_threads(), pads_with_nul })
    }

    /// Returns how changes are fetched from a URL.
    pub(crate) fn fetch_options<'o>(
        &self,
        url: &str,
        servers: &'o dyn Fn(&str) -> SettingsResult,
    ) -> Result<FetchOptions<'o>, String> {
        let check = self.value("check").unwrap_or_default();
        let has_check = |name: &str| check.split(',').any(|word| word.trim() == name);
        Ok(FetchOptions {
            conversion: self.conversion()?,
            metadata: self.clone_source("clone"),
            bundle: self.clone_source("clonebundle"),
            requires_metadata: has_check("cinnabarclone"),
            requires_bundle: has_check("clonebundles"),
            url: url.to_owned(),
            servers: Some(servers),
        })
    }

    /// Returns whether fetches from the remote may change, and so prune, the refs of the helper:
    /// all refs of a mirror, for which `git remote add --mirror=fetch` only sets the refspec.
    pub(crate) fn is_mirror(&self) -> bool {
        let Some(remote) = &self.remote else { return false };
        self.read_value(&format!("remote.{remote}.mirror")).is_some_and(is_true)
            || self.configured.all(&format!("remote.{remote}.fetch")).any(has_own_refs)
    }

    /// Returns the name of the remote whose refs stay when they are gone there, although heads of
    /// branches, which are named by their nodes, come and go; only for people who have a setting of
    /// git-cinnabar, which speaks of it.
    pub(crate) fn unpruned_remote(&self, style: RefStyle) -> Option<&str> {
        let remote = self.remote.as_deref().filter(|_| style.heads)?;
        if !self.has_cinnabar_settings(remote) {
            return None;
        }
        let of_remote = format!("remote.{remote}.prune");
        let is_pruned = self.read_value(&of_remote).or_else(|| self.read_value("fetch.prune"));
        let is_pruned = is_pruned.is_some_and(is_true);
        (!is_pruned).then_some(remote)
    }

    fn has_cinnabar_settings(&self, remote: &str) -> bool {
        let is_variable = |name: &OsStr| name.as_encoded_bytes().starts_with(b"GIT_CINNABAR_");
        self.configured.has_prefix("cinnabar.")
            || self.configured.has_prefix(&format!("remote.{remote}.cinnabar-"))
            || std::env::vars_os().any(|(name, _)| is_variable(&name))
    }
}

/// Returns whether the destination of a refspec can be a ref of the helper.
fn has_own_refs(refspec: &str) -> bool {
    let Some((_, destination)) = refspec.split_once(':') else { return false };
    match destination.split_once('*') {
        Some((start, _)) => PRIVATE_PREFIX.starts_with(start) || start.starts_with(PRIVATE_PREFIX),
        None => destination.starts_with(PRIVATE_PREFIX),
    }
}

/// Reads a switch of git's configuration.
fn is_true(value: &str) -> bool {
    ["true", "yes", "on", "1"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// The number of threads that convert files.
fn conversion_threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refspecs_of_mirrors_are_found() {
        for refspec in ["+refs/*:refs/*", "refs/heads/*:refs/larder/*", "a:refs/larder/hg/x", "*:*"]
        {
            assert!(has_own_refs(refspec), "{refspec}");
        }
        for refspec in ["+refs/heads/*:refs/remotes/origin/*", "HEAD", "^refs/heads/x", "a:refs/x"]
        {
            assert!(!has_own_refs(refspec), "{refspec}");
        }
    }
}

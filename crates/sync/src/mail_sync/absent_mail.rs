//! The mail of an index that another one, made anew, lacks although it may be there again soon.
//!
//! A synchronisation keeps the messages of a folder whose disk is not mounted, which it knows from
//! its index. An index that is made anew knows no folder, so the same tests are run here, with the
//! folders of the index that it would replace.

use super::{SyncProblem, now_milliseconds, problem_of};
use crate::error::Error;
use crate::maildir::{MailSourceFormat, find_absence, is_empty_file};
use crate::sources::{RegisteredSource, SourceType};
use larder_store::Reader;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Returns the sources and folders with messages in the old index that the new one lacks, because
/// they could not be read (`problems` of the synchronisation that filled it), or because they are
/// empty as the folder of a disk that is not mounted.
///
/// # Errors
/// An index cannot be read.
pub fn find_absent_mail(
    old: &Reader,
    new: &Reader,
    sources: &[RegisteredSource],
    problems: &[SyncProblem],
) -> Result<Vec<SyncProblem>, Error> {
    let now = now_milliseconds() / 1000;
    let indexed = old.collections().list_properties(SourceType::Mail.kind().collection_type())?;
    let (old, new) = (old.mail()?, new.mail()?);
    let mut absent = Vec::<SyncProblem>::new();
    for source in sources {
        // The source may have had another name.
        let former = indexed.iter().find(|one| one.handle_key == source.handle_key);
        let Some(former) = former else { continue };
        let known = old.directories(&former.name)?;
        let found = new.directories(&source.name)?;
        let found: HashSet<Vec<u8>> = found.into_iter().map(|one| one.path).collect();
        if found.is_empty() && !known.is_empty() && !is_empty_file(&source.path) {
            let of_source = |one: &&SyncProblem| one.path.starts_with(&source.path);
            let problem = problems.iter().find(of_source).cloned();
            let known: Vec<&[u8]> = known.iter().map(|one| one.path.as_slice()).collect();
            let (path, format) = (source.path.clone(), source.format);
            let reason = describe_empty_source(&path, format, &source.name, &known, problem);
            absent.push(SyncProblem { path, reason, is_left_out: true });
            continue;
        }
        for directory in known {
            let path = directory_path(&source.path, &directory.path);
            let is_of = |one: &&SyncProblem| one.is_left_out && path.starts_with(&one.path);
            if let Some(problem) = problems.iter().find(is_of) {
                absent.push(problem.clone());
            } else if !found.contains(&directory.path)
                && let Some(problem) = find_absence(&source.path, source.format, &path, now)
            {
                absent.push(problem_of(&problem));
            }
        }
    }
    let mut named = HashSet::<PathBuf>::new();
    absent.retain(|one| named.insert(one.path.clone()));
    Ok(absent)
}

/// Returns the path of a directory that is known by its path below the root.
pub(super) fn directory_path(root: &Path, relative: &[u8]) -> PathBuf {
    match relative {
        b"" => root.to_path_buf(),
        path => root.join(OsStr::from_bytes(path)),
    }
}

/// Returns the reason, for a person, that nothing was found in a source with known directories.
/// Only one that has no `problem`, and in which no disk may be missing, is said to have no mail any
/// more: the advice to remove it would cost the messages of a disk that comes back.
pub(super) fn describe_empty_source(
    root: &Path,
    format: MailSourceFormat,
    name: &str,
    known: &[&[u8]],
    problem: Option<SyncProblem>,
) -> String {
    let now = now_milliseconds() / 1000;
    let find_absence = |path: &&[u8]| find_absence(root, format, &directory_path(root, path), now);
    let absence = || known.iter().find_map(find_absence).map(|one| problem_of(&one));
    if let Some(SyncProblem { path, reason, .. }) = problem.or_else(absence) {
        return format!("has no messages that can be read; {}: {reason}", path.display());
    }
    let has_entries = || fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
    let reason = match format {
        MailSourceFormat::Files if root.is_file() => {
            "is no mbox file any more: it does not begin with \"From \""
        }
        MailSourceFormat::Files if has_entries() => "has no mbox or .eml files any more",
        _ => return "has no folders with messages: is its disk mounted?".into(),
    };
    format!("{reason}; its messages stay in the index until `larder sources remove {name}`")
}

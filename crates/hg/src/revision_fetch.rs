//! Fetching revisions that a user names, which need not be heads.

use crate::conversion::Progress;
use crate::fetch::fetch;
use crate::fetch_error::FetchError;
use crate::fetch_options::FetchOptions;
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::metadata::{Metadata, MetadataError};
use crate::object_id::{GitId, Node};
use crate::peer::Peer;
use crate::revision::ChangeError;
use crate::url_authority::strip_login;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Why revisions were not fetched.
#[derive(Debug, thiserror::Error)]
pub enum RevisionFetchError {
    /// The repository has no such revision.
    #[error("Unknown revision: {0}")]
    UnknownRevision(String),
    /// The repository does not know the revision, or cannot be asked, in its own words.
    #[error("{0}")]
    Refused(String),
    /// The revisions cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The file that names the commits cannot be written.
    #[error("{path}: {source}")]
    FetchHead {
        /// The file `FETCH_HEAD` of git.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl From<ChangeError> for RevisionFetchError {
    fn from(error: ChangeError) -> RevisionFetchError {
        match error {
            ChangeError::Aborted { message } => RevisionFetchError::Refused(message),
            error => FetchError::from(error).into(),
        }
    }
}

impl From<MetadataError> for RevisionFetchError {
    fn from(error: MetadataError) -> RevisionFetchError {
        FetchError::from(error).into()
    }
}

impl From<GitDirectoryError> for RevisionFetchError {
    fn from(error: GitDirectoryError) -> RevisionFetchError {
        FetchError::from(error).into()
    }
}

/// A revision that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedRevision {
    /// The changeset.
    pub node: Node,
    /// Its commit.
    pub commit: GitId,
    /// The number of digits that git shows of the commit.
    pub abbreviation: usize,
}

/// Fetches revisions, named as Mercurial names them, and writes their commits to `FETCH_HEAD`.
/// `url` is the URL of the repository as the user gave it.
pub fn fetch_revisions(
    directory: &Path,
    peer: &mut dyn Peer,
    url: &str,
    revisions: &[String],
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<FetchedRevision>, RevisionFetchError> {
    let nodes = find_nodes(peer, revisions)?;
    let mut repository = GitDirectory::new(directory);
    fetch(&repository, peer, &nodes, options.clone(), progress)?;
    let mut metadata = Metadata::open(&mut repository)?;
    let mut fetched = Vec::with_capacity(nodes.len());
    for node in nodes {
        let unknown = || RevisionFetchError::UnknownRevision(node.to_string());
        let commit = metadata.commit_of(&mut repository, &node)?.ok_or_else(unknown)?;
        let short = repository.run("rev-parse", ["--short", &commit.to_string()], b"")?;
        fetched.push(FetchedRevision { node, commit, abbreviation: short.trim_ascii().len() });
    }
    write_fetch_head(&repository, url, &fetched)?;
    Ok(fetched)
}

/// Returns the nodes of revisions, all of which the repository has.
fn find_nodes(peer: &mut dyn Peer, revisions: &[String]) -> Result<Vec<Node>, RevisionFetchError> {
    let mut nodes = Vec::with_capacity(revisions.len());
    let mut complete = Vec::new();
    for revision in revisions {
        match Node::from_hex(revision.as_bytes()) {
            Some(node) => {
                complete.push(node);
                nodes.push(node);
            }
            None => nodes.push(peer.lookup(revision.as_bytes())?),
        }
    }
    if complete.is_empty() {
        return Ok(nodes);
    }
    let known = peer.find_known(&complete)?;
    match complete.iter().zip(known).find(|(_, is_known)| !is_known) {
        Some((node, _)) => Err(RevisionFetchError::UnknownRevision(node.to_string())),
        None => Ok(nodes),
    }
}

fn write_fetch_head(
    repository: &GitDirectory,
    url: &str,
    fetched: &[FetchedRevision],
) -> Result<(), RevisionFetchError> {
    let url = strip_login(url);
    let lines: String = fetched
        .iter()
        .map(|found| format!("{}\t\t'hg/revs/{}' of {url}\n", found.commit, found.node))
        .collect();
    let output = repository.run("rev-parse", ["--git-path", "FETCH_HEAD"], b"")?;
    let path = Path::new(OsStr::from_bytes(output.strip_suffix(b"\n").unwrap_or(&output)));
    std::fs::write(path, lines).map_err(|source| RevisionFetchError::FetchHead {
        path: path.display().to_string(),
        source,
    })
}

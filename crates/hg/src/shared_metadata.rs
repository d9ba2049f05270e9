//! The metadata of another conversion, which a first fetch takes as a git repository or a bundle of
//! git has it, in place of a conversion of its own.
//!
//! The server names such places in the form of git-cinnabar (`mercurial/cinnabarclone.py` there):
//! a line is a URL, `#` and a branch if it is given, and parameters. Without a branch, the names
//! are made from the URL of the Mercurial repository.

use crate::bundle::ByteStream;
use crate::check::{CheckDepth, ConversionCheck, check_metadata};
use crate::conversion::Progress;
use crate::fetch_options::FetchOptions;
use crate::git::pack_keep::PackKeep;
use crate::git::repository::{GitDirectory, GitDirectoryError, RefChange};
use crate::location::{Location, parse_location};
use crate::metadata::{METADATA_REF, Metadata, MetadataError};
use crate::object_id::GitId;
use crate::received_bytes::ReceivedBytes;
use crate::revision::ChangeError;
use crate::wire::open_web_file;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The ref of metadata that is not checked yet.
const FETCH_REF: &str = "refs/larder/hg/fetch";
/// The folders of refs in which a name is looked for.
const REF_FOLDERS: [&str; 3] = ["", "refs/larder/hg/", "refs/heads/"];
/// The first lines of bundles of git (gitformat-bundle(5)).
const SIGNATURES: [&[u8]; 2] = [b"# v2 git bundle\n", b"# v3 git bundle\n"];
/// The longest line, and the most lines, of the header of a bundle.
const MAX_LINE_BYTES: u64 = 1 << 16;
const MAX_LINES: usize = 1 << 20;
/// The schemes of URLs that a server may name.
const METADATA_SCHEMES: [&str; 3] = ["http://", "https://", "git://"];

/// Why metadata was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SharedMetadataError {
    /// No line names a place that is allowed.
    #[error("{0}")]
    NoPlace(&'static str),
    /// There is no ref of metadata.
    #[error("Could not find cinnabar metadata")]
    NotFound,
    /// The place cannot be reached.
    #[error("unable to access '{url}': {reason}")]
    Access {
        /// The place.
        url: String,
        /// The error.
        reason: String,
    },
    /// git could not transfer the objects.
    #[error("Failed to fetch cinnabar metadata.")]
    Transfer {
        /// The messages of git.
        output: String,
    },
    /// The objects are no metadata, or some are missing.
    #[error("Invalid cinnabar metadata.")]
    Invalid,
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitDirectoryError),
    /// The metadata cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// A place that has metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetadataPlace {
    /// The URL of a git repository, or of a bundle.
    pub(crate) url: String,
    branch: Option<String>,
}

/// Chooses a line. `is_own`: the user gave them, and they may name files. Lines of a server with an
/// encrypted connection, at the URL of the repository, name places that have one, too.
pub(crate) fn choose_metadata(
    manifest: &[u8],
    is_own: bool,
    repository_url: &str,
) -> Result<MetadataPlace, SharedMetadataError> {
    let lines = manifest.split(|byte| *byte == b'\n').filter_map(parse_line);
    let place = lines.into_iter().next().ok_or(SharedMetadataError::NoPlace(
        "Server advertizes cinnabarclone but didn't provide an URL to fetch from",
    ))?;
    if is_own {
        return Ok(place);
    }
    let is_encrypted = match parse_location(OsStr::new(repository_url)) {
        Ok(Location::Url(url)) => !url.starts_with(b"http://"),
        _ => false,
    };
    if is_encrypted && !place.url.starts_with("https://") {
        return Err(SharedMetadataError::NoPlace(
            "Server advertizes cinnabarclone but provided a place without encryption. Skipping.",
        ));
    }
    if METADATA_SCHEMES.iter().any(|scheme| place.url.starts_with(scheme)) {
        return Ok(place);
    }
    Err(SharedMetadataError::NoPlace(
        "Server advertizes cinnabarclone but provided a non http/https git repository. Skipping.",
    ))
}

/// Parses a line. Those with parameters are for grafts, which are not made here.
fn parse_line(line: &[u8]) -> Option<MetadataPlace> {
    let line = std::str::from_utf8(line).ok()?.trim();
    if line.is_empty() || line.contains(char::is_whitespace) {
        return None;
    }
    let (url, branch) = match line.split_once('#') {
        Some((url, branch)) => (url, Some(branch.to_owned())),
        None => (line, None),
    };
    let url = match url.contains("://") {
        true => url.to_owned(),
        false => format!("file://{}", std::path::absolute(url).ok()?.to_str()?),
    };
    Some(MetadataPlace { url, branch })
}

/// Returns the names that metadata of a repository may have: its last folder, that with the ones
/// before it, and with the host; at last `metadata`.
fn branches_for_url(url: &str) -> Vec<String> {
    let place = match parse_location(OsStr::new(url)) {
        Ok(Location::Url(url)) => {
            let url = String::from_utf8_lossy(&url).into_owned();
            let (_, rest) = url.split_once("://").unwrap_or(("", &url));
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            let host = match host.rsplit_once(':') {
                Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
                _ => host,
            };
            format!("{host}{path}")
        }
        Ok(Location::Path(path)) => path.to_string_lossy().into_owned(),
        Err(_) => String::new(),
    };
    let mut names: Vec<String> = Vec::new();
    for part in place.split('/').rev().filter(|part| !part.is_empty()) {
        let name = match names.last() {
            Some(last) => format!("{part}/{last}"),
            None => part.to_owned(),
        };
        names.push(name);
    }
    names.push("metadata".to_owned());
    names
}

/// Refs with their ids, of a repository or a bundle.
type RemoteIds = BTreeMap<String, GitId>;

fn parse_refs(lines: &[u8], separator: char) -> RemoteIds {
    let lines = String::from_utf8_lossy(lines).into_owned();
    let split = |line: &str| {
        let (id, name) = line.split_once(separator)?;
        Some((name.to_owned(), GitId::from_hex(id.as_bytes())?))
    };
    lines.lines().filter_map(split).collect()
}

/// Takes metadata into a repository that has none: fetches it, and points the ref at it if all that
/// it names is there, and its changesets have their hashes and commits.
pub(crate) fn take_metadata(
    repository: &mut GitDirectory,
    place: &MetadataPlace,
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<(), SharedMetadataError> {
    let taken = fetch_metadata(repository, place, options).and_then(|(id, keep)| {
        check_fetched(repository, id, progress)?;
        let name = METADATA_REF.as_bytes().to_vec();
        repository.change_refs(&[RefChange { name, new: Some(id), old: Some(GitId::NULL) }])?;
        drop(keep);
        Ok(())
    });
    // What was refused must not be kept, or copied along.
    let fetched = repository.refs(FETCH_REF)?.into_iter();
    let removals = fetched.map(|(name, id)| RefChange { name, new: None, old: Some(id) });
    let removed = repository.change_refs(&removals.collect::<Vec<_>>());
    taken?;
    Ok(removed?)
}

/// Fetches metadata. Returns its commit; the pack of a bundle stays until the mark is dropped.
fn fetch_metadata(
    repository: &GitDirectory,
    place: &MetadataPlace,
    options: &FetchOptions<'_>,
) -> Result<(GitId, Option<PackKeep>), SharedMetadataError> {
    let names = match &place.branch {
        Some(branch) => vec![branch.clone()],
        None => branches_for_url(&options.url),
    };
    let url = place.url.strip_prefix("file://").unwrap_or(&place.url);
    let listed = repository.run("ls-remote", ["--", url], b"");
    let is_file = Path::new(url).is_file();
    match listed {
        Ok(output) if !output.is_empty() && !is_file => {
            let (name, id) = find_ref(&parse_refs(&output, '\t'), &names)?;
            fetch_ref(repository, url, &name)?;
            Ok((id, None))
        }
        Err(GitDirectoryError::Failed { message, .. })
            if !is_file && access_error(&message).is_some() =>
        {
            let reason = access_error(&message).unwrap_or_default();
            Err(SharedMetadataError::Access { url: place.url.clone(), reason })
        }
        _ => take_bundle(repository, &place.url, &names, options),
    }
}

/// Checks that all that metadata names is there, and that its changesets have their hashes and
/// commits: whoever made it may have made others.
fn check_fetched(
    repository: &mut GitDirectory,
    id: GitId,
    progress: &mut dyn Progress,
) -> Result<(), SharedMetadataError> {
    let mut metadata = match Metadata::open_state(repository, Some(id)) {
        Ok(metadata) => metadata,
        Err(MetadataError::Git(GitDirectoryError::Pipe { command, source })) => {
            return Err(GitDirectoryError::Pipe { command, source }.into());
        }
        Err(_) => return Err(SharedMetadataError::Invalid),
    };
    let report = ConversionCheck::default();
    if metadata.find_missing_object(repository)?.is_some()
        || check_metadata(repository, &mut metadata, CheckDepth::Fast, report, progress)?
            .fault_count
            > 0
    {
        return Err(SharedMetadataError::Invalid);
    }
    Ok(())
}

/// Returns the reason in git's message that a server cannot be reached.
fn access_error(message: &str) -> Option<String> {
    let line = message.lines().find(|line| line.starts_with("fatal: unable to access "))?;
    line.split_once("': ").map(|(_, reason)| reason.to_owned())
}

fn find_ref(refs: &RemoteIds, names: &[String]) -> Result<(String, GitId), SharedMetadataError> {
    let full = names.iter().flat_map(|name| REF_FOLDERS.map(|folder| format!("{folder}{name}")));
    let found = full.into_iter().find_map(|name| refs.get(&name).map(|id| (name.clone(), *id)));
    found.ok_or(SharedMetadataError::NotFound)
}

fn fetch_ref(repository: &GitDirectory, url: &str, name: &str) -> Result<(), SharedMetadataError> {
    let refspec = format!("+{name}:{FETCH_REF}");
    let options = ["--quiet", "--no-progress", "--no-tags", "--no-recurse-submodules"];
    let own = ["--no-write-fetch-head", "--no-auto-gc", "--no-prune", "--", url, &refspec];
    match repository.run("fetch", options.into_iter().chain(own), b"") {
        Ok(_) => Ok(()),
        Err(GitDirectoryError::Failed { message, .. }) => {
            Err(SharedMetadataError::Transfer { output: message })
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes the objects of a bundle, and returns the commit of the metadata.
fn take_bundle(
    repository: &GitDirectory,
    url: &str,
    names: &[String],
    options: &FetchOptions<'_>,
) -> Result<(GitId, Option<PackKeep>), SharedMetadataError> {
    let mut bundle = open_file(url, options)?;
    let refs = read_header(&mut bundle).ok_or(SharedMetadataError::NotFound)?;
    let (_, id) = find_ref(&refs, names)?;
    match repository.index_pack(&mut bundle) {
        Ok(keep) => Ok((id, keep)),
        Err(GitDirectoryError::Failed { message, .. }) => {
            Err(SharedMetadataError::Transfer { output: message })
        }
        Err(error) => Err(error.into()),
    }
}

fn open_file(
    url: &str,
    options: &FetchOptions<'_>,
) -> Result<ByteStream<'static>, SharedMetadataError> {
    let access = |reason: String| SharedMetadataError::Access { url: url.to_owned(), reason };
    if let Some(path) = url.strip_prefix("file://") {
        let file = File::open(OsStr::from_bytes(path.as_bytes()));
        return Ok(Box::new(BufReader::new(file.map_err(|error| access(error.to_string()))?)));
    }
    let settings = options.servers.filter(|_| url.starts_with("http"));
    let Some(settings) = settings else { return Err(SharedMetadataError::NotFound) };
    let settings = settings(url).map_err(|error| access(error.to_string()))?;
    open_web_file(url, settings.http, ReceivedBytes::default()).map_err(|error| match &error {
        // The message begins with the status; these are the words of git for such a failure.
        ChangeError::Aborted { message } => {
            let status = message.split(' ').next().unwrap_or_default();
            access(format!("The requested URL returned error: {status}"))
        }
        _ => access(error.to_string()),
    })
}

/// Reads the start of a bundle up to its pack. `None`: it is no bundle that can be taken.
fn read_header(bundle: &mut dyn BufRead) -> Option<RemoteIds> {
    let mut line = Vec::new();
    let mut read_line = || {
        line.clear();
        bundle.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).ok()?;
        line.ends_with(b"\n").then(|| line.clone())
    };
    if !SIGNATURES.contains(&read_line()?.as_slice()) {
        return None;
    }
    let mut refs = Vec::new();
    for _ in 0..MAX_LINES {
        let line = read_line()?;
        match line.first()? {
            b'\n' => return Some(parse_refs(&refs, ' ')),
            // A part of the objects is left out.
            b'@' if line.starts_with(b"@filter") => return None,
            // A commit that the bundle builds on: objects that are missing are noticed later.
            b'@' | b'-' => {}
            _ => refs.extend_from_slice(&line),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_from_the_url() {
        let names = |url: &str| branches_for_url(url).join(" ");
        assert_eq!(names("hg::https://server/"), "server metadata");
        assert_eq!(names("https://me:pw@server:443/repo"), "repo server/repo metadata");
        assert_eq!(names("hg://server/a/b/r"), "r b/r a/b/r server/a/b/r metadata");
        assert_eq!(names("hg::/srv/repo"), "repo srv/repo metadata");
        assert_eq!(names("gopher://server/"), "metadata");
    }

    #[test]
    fn the_first_line_that_can_be_taken_is_chosen() {
        let chosen_for =
            |url, text: &str, is_own| match choose_metadata(text.as_bytes(), is_own, url) {
                Ok(MetadataPlace { url, branch }) => {
                    format!("{url} {}", branch.unwrap_or_default())
                }
                Err(error) => error.to_string(),
            };
        let chosen = |text: &str, is_own| chosen_for("http://h/r", text, is_own);
        let manifest = "\nhttps://h/graft graft=00112233\nhttps://h/a#b\nhttps://h/c\n";
        assert_eq!(chosen(manifest, false), "https://h/a b");
        assert!(chosen("/srv/metadata.git\n", false).contains("non http/https"));
        assert_eq!(chosen("/srv/metadata.git", true), "file:///srv/metadata.git ");
        assert!(chosen("\n", true).contains("didn't provide an URL"));
        for url in ["https://h/r", "hg::https://h/r", "hg://h/r", "ssh://h/r"] {
            assert!(chosen_for(url, "http://h/a", false).contains("without encryption"), "{url}");
            assert_eq!(chosen_for(url, "https://h/a", false), "https://h/a ", "{url}");
        }
    }

    #[test]
    fn headers_of_bundles_are_read() {
        let id = "1".repeat(40);
        let header = |text: String| read_header(&mut text.as_bytes());
        let refs = header(format!("# v2 git bundle\n-{id} x\n{id} refs/heads/a\n\nPACK"));
        assert_eq!(refs.expect("refs").get("refs/heads/a"), Some(&GitId([0x11; 20])));
        for text in ["", "foo\n", "# v2 git bundle\n", "# v3 git bundle\n@filter=x\n\n"] {
            assert!(header(text.to_owned()).is_none(), "{text}");
        }
    }

    #[test]
    fn the_reason_is_taken_from_the_words_of_git() {
        let message = "x\nfatal: unable to access 'http://h/': Could not resolve host: h";
        assert_eq!(access_error(message).as_deref(), Some("Could not resolve host: h"));
        assert_eq!(access_error("fatal: repository 'http://h/' not found"), None);
    }
}

//! The protocol between git and a remote helper (gitremote-helpers(7)).
//!
//! git asks for refs, whose commits are not known before they are converted, and then for the
//! import of some of them. The helper writes the objects itself, points refs of its own at the
//! commits ([`ImportRefs`]), and tells git that the import is done.
//!
//! git does not look at the end of the helper, and would take commits that an earlier import left
//! in these refs for those of a failed one. So a failed import removes them, and the stream that
//! git reads is declared to be incomplete without its end, which a killed helper does not send.

use crate::conversion::{FetchNotice, Progress};
use crate::fetch::{closed_heads, fetch};
use crate::fetch_error::FetchError;
use crate::fetch_options::FetchOptions;
use crate::git::repository::{GitDirectory, GitDirectoryError, RefChange};
use crate::import_refs::ImportRefs;
use crate::metadata::{Metadata, MetadataError};
use crate::object_id::Node;
use crate::oddity::OddityReport;
use crate::peer::{Peer, PeerRefs};
use crate::refs::{PRIVATE_PREFIX, RefStyle, RemoteRefs, remote_refs};
use crate::repository_tags::{TagChange, find_tag_change, head_nodes, repository_tag_refs};
use crate::revision::ChangeError;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The answer to `capabilities`, before the refspecs. A push is then refused here, which is clearer
/// than git's own words.
const CAPABILITIES: &[u8] = b"option\nimport\npush\n";
/// The line that ends the stream of an import.
pub const END_OF_IMPORT: &[u8] = b"done\n";
/// The answer for the tags, which are read from what was converted.
const TAGS_CAPABILITIES: &[u8] = b"option\nimport\nrefspec HEAD:refs/larder/hg/HEAD\n\n";

/// Why a remote helper ended.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// git's pipe broke.
    #[error("the pipe to git: {0}")]
    Pipe(#[from] io::Error),
    /// The changes could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// An import failed.
    #[error("{error}")]
    Import {
        /// Why.
        error: Box<HelperError>,
        /// Whether git finds that out by itself, because the refs of the import are removed. Then
        /// [`END_OF_IMPORT`] is written when the error was printed: git would take the end of the
        /// stream for a crash of its own, and leave a report.
        is_removed: bool,
    },
    /// git asked for something that this helper did not offer.
    #[error("git sent an unknown command: {0}")]
    UnknownCommand(String),
    /// git asked for a part of the history.
    #[error("shallow clones of Mercurial repositories are not supported; leave out --{option}")]
    Shallow {
        /// The option of git.
        option: &'static str,
    },
    /// git asked for a part of the objects.
    #[error(
        "partial clones of Mercurial repositories are not supported; leave out --filter; after a \
         git fetch, take away what it noted of it: git config --unset remote.{remote}.promisor; \
         git config --unset remote.{remote}.partialclonefilter"
    )]
    Partial {
        /// The name of the remote.
        remote: String,
    },
    /// There is no git repository to import into.
    #[error("there is no git repository to import into")]
    NoRepository,
}

impl HelperError {
    /// Returns what a person can do after this error, if the error does not say so itself.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            HelperError::Fetch(error) => error.advice(),
            HelperError::Import { error, .. } => error.advice(),
            _ => None,
        }
    }
}

impl From<ChangeError> for HelperError {
    fn from(error: ChangeError) -> HelperError {
        FetchError::from(error).into()
    }
}

impl From<MetadataError> for HelperError {
    fn from(error: MetadataError) -> HelperError {
        FetchError::from(error).into()
    }
}

impl From<GitDirectoryError> for HelperError {
    fn from(error: GitDirectoryError) -> HelperError {
        FetchError::from(error).into()
    }
}

/// How a remote helper works.
#[derive(Clone)]
pub struct HelperSettings<'o> {
    /// The git directory; `None` outside of a repository, where only refs can be listed.
    pub git_dir: Option<PathBuf>,
    /// The remote, as git names it: a URL if it has no name.
    pub remote: OsString,
    /// Which refs the remote repository has.
    pub style: RefStyle,
    /// How changes are fetched.
    pub options: FetchOptions<'o>,
    /// Whether git may change all refs to those of the remote repository (`git clone --mirror`):
    /// then the refs of the helper are listed, too, so that git does not prune them.
    pub is_mirror: bool,
    /// Set while an import runs: git then sends nothing, and keeps the input open.
    pub is_importing: Arc<AtomicBool>,
}

/// The state of a dialogue.
struct Dialogue<'d> {
    settings: &'d HelperSettings<'d>,
    repository: Option<GitDirectory>,
    import_refs: ImportRefs,
    peer: &'d mut dyn Peer,
    progress: &'d mut dyn Progress,
    listed: Option<ListedRefs>,
    /// Whether git was told to print errors only.
    is_quiet: bool,
}

/// The refs that git was told of.
struct ListedRefs {
    of_peer: PeerRefs,
    named: RemoteRefs,
}

/// Answers git's commands until there are no more. `progress` is told about conversions.
pub fn run_remote_helper(
    settings: &HelperSettings<'_>,
    peer: &mut dyn Peer,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    progress: &mut dyn Progress,
) -> Result<(), HelperError> {
    let import_refs = ImportRefs::new(&settings.remote);
    let repository = settings.git_dir.as_deref().map(GitDirectory::new);
    let mut dialogue = Dialogue {
        settings,
        repository,
        import_refs,
        peer,
        progress,
        listed: None,
        is_quiet: false,
    };
    let mut imports: Vec<Vec<u8>> = Vec::new();
    let mut pushes: Vec<Vec<u8>> = Vec::new();
    while let Some(line) = read_line(input)? {
        let (command, argument) = split_word(&line);
        match command {
            // An empty line ends a batch, or the dialogue.
            b"" if !imports.is_empty() => {
                output.write_all(b"feature done\n")?;
                output.flush()?;
                let names = std::mem::take(&mut imports);
                settings.is_importing.store(true, Ordering::SeqCst);
                let imported = dialogue.import(&names);
                settings.is_importing.store(false, Ordering::SeqCst);
                let before = imported.map_err(|error| {
                    let is_removed = dialogue.remove_import_refs(&names).is_ok();
                    HelperError::Import { error: Box::new(error), is_removed }
                })?;
                output.write_all(END_OF_IMPORT)?;
                output.flush()?;
                dialogue.report_import(before)?;
            }
            b"" if !pushes.is_empty() => {
                for target in pushes.drain(..) {
                    output.write_all(b"error ")?;
                    output.write_all(&target)?;
                    output.write_all(b" pushing to Mercurial is not supported yet\n")?;
                }
                output.write_all(b"\n")?;
            }
            b"" => return Ok(()),
            b"capabilities" => {
                output.write_all(CAPABILITIES)?;
                output.write_all(dialogue.import_refs.refspecs().as_bytes())?;
                output.write_all(b"\n")?;
            }
            b"option" => output.write_all(dialogue.set_option(argument)?)?,
            b"list" => dialogue.list(output)?,
            b"import" => imports.push(argument.to_vec()),
            b"push" => pushes.push(push_target(argument)),
            _ => {
                let command = String::from_utf8_lossy(&line).into_owned();
                return Err(HelperError::UnknownCommand(command));
            }
        }
        output.flush()?;
    }
    Ok(())
}

/// Answers git's commands for the repository of tags, which lists the tags of all that was
/// converted. Their commits are there, so that git has nothing to import.
pub fn run_tags_helper(
    directory: &Path,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<(), HelperError> {
    while let Some(line) = read_line(input)? {
        match split_word(&line) {
            (b"", _) => return Ok(()),
            (b"capabilities", _) => output.write_all(TAGS_CAPABILITIES)?,
            (b"option", _) => output.write_all(b"unsupported\n")?,
            (b"list", b"") => {
                for (name, commit) in repository_tag_refs(directory)? {
                    output.write_all(&commit.to_hex())?;
                    output.write_all(&[b" ", name.as_slice(), b"\n"].concat())?;
                }
                output.write_all(b"\n")?;
            }
            _ => {
                let command = String::from_utf8_lossy(&line).into_owned();
                return Err(HelperError::UnknownCommand(command));
            }
        }
        output.flush()?;
    }
    Ok(())
}

fn read_line(input: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(Some(line))
}

fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', line) {
        Some(space) => (&line[..space], &line[space + 1..]),
        None => (line, b""),
    }
}

/// Returns the ref that `[+]<src>:<dst>` names on the other side.
fn push_target(argument: &[u8]) -> Vec<u8> {
    let colon = memchr::memchr(b':', argument);
    colon.and_then(|colon| argument.get(colon + 1..)).unwrap_or(argument).to_vec()
}

impl Dialogue<'_> {
    /// Takes an option of git, and answers whether it is supported.
    fn set_option(&mut self, argument: &[u8]) -> Result<&'static [u8], HelperError> {
        match split_word(argument) {
            (b"progress", value) => self.progress.set_shown(value == b"true"),
            (b"verbosity", b"0") => {
                self.is_quiet = true;
                self.progress.set_shown(false);
            }
            (b"verbosity" | b"dry-run" | b"check-connectivity", _) => {}
            (b"depth", _) => {
                // git tells only after the number which of them it is.
                return Err(HelperError::Shallow { option: "depth or --deepen" });
            }
            (b"deepen-relative", _) => return Err(HelperError::Shallow { option: "deepen" }),
            (b"deepen-since", _) => return Err(HelperError::Shallow { option: "shallow-since" }),
            (b"deepen-not", _) => return Err(HelperError::Shallow { option: "shallow-exclude" }),
            (b"filter", _) => {
                let name = self.settings.remote.to_str();
                // A URL may have a password, and has no settings.
                let name = name.filter(|name| !name.contains(':')).unwrap_or("NAME");
                return Err(HelperError::Partial { remote: name.to_owned() });
            }
            _ => return Ok(b"unsupported\n"),
        }
        Ok(b"ok\n")
    }

    /// Lists the refs: those that are converted with their commits, others with `?`.
    fn list(&mut self, output: &mut dyn Write) -> Result<(), HelperError> {
        let peer_refs = self.peer.refs()?;
        let mut state = self.open_state()?;
        if let Some((repository, _)) = &state {
            // A fetch that finds nothing new does not get further.
            repository.sweep_packs();
            remove_crash_reports(repository.directory());
        }
        let style = self.settings.style;
        let closed = match &mut state {
            Some((repository, metadata)) => closed_heads(&peer_refs, repository, metadata)?,
            None => BTreeSet::new(),
        };
        let refs = remote_refs(&peer_refs, style, |head| closed.contains(head));
        if let Some(head) = &refs.head {
            output.write_all(&[b"@", head.as_slice(), b" HEAD\n"].concat())?;
        }
        for (name, node) in &refs.refs {
            let commit = match &mut state {
                Some((repository, metadata)) => metadata.commit_of(repository, node)?,
                None => None,
            };
            match commit {
                Some(commit) => output.write_all(&commit.to_hex())?,
                None => output.write_all(b"?")?,
            }
            output.write_all(&[b" ", name.as_slice(), b"\n"].concat())?;
        }
        if let Some((repository, _)) = &state
            && self.settings.is_mirror
        {
            output.write_all(&repository.list_refs(PRIVATE_PREFIX.as_bytes())?)?;
        }
        output.write_all(b"\n")?;
        self.listed = Some(ListedRefs { of_peer: peer_refs, named: refs });
        Ok(())
    }

    fn open_state(&self) -> Result<Option<(GitDirectory, Metadata)>, HelperError> {
        let Some(repository) = &self.repository else { return Ok(None) };
        let mut repository = repository.share();
        let metadata = Metadata::open(&mut repository)?;
        Ok(Some((repository, metadata)))
    }

    /// Removes the refs of an import.
    fn remove_import_refs(&self, names: &[Vec<u8>]) -> Result<(), HelperError> {
        let Some(repository) = &self.repository else { return Ok(()) };
        let own = |name: &Vec<u8>| name.starts_with(PRIVATE_PREFIX.as_bytes());
        let names: BTreeSet<&Vec<u8>> = names.iter().filter(|name| !own(name)).collect();
        let changes: Vec<RefChange> = names
            .into_iter()
            .map(|name| RefChange { name: self.import_refs.name_of(name), new: None, old: None })
            .collect();
        Ok(repository.change_refs(&changes)?)
    }

    /// Imports refs, and points the refs of the helper at the commits. Returns the heads before if
    /// there was anything to fetch.
    fn import(&mut self, names: &[Vec<u8>]) -> Result<Option<Vec<Node>>, HelperError> {
        let Some(mut repository) = self.repository.as_ref().map(GitDirectory::share) else {
            return Err(HelperError::NoRepository);
        };
        if self.listed.is_none() {
            self.list(&mut io::sink())?;
        }
        let refs = self.listed.as_ref().map(|listed| listed.named.clone()).unwrap_or_default();
        // git asks for a ref twice when HEAD names it.
        let mut wanted: BTreeMap<Vec<u8>, Node> = BTreeMap::new();
        for name in names {
            // One of the helper's own; git then reads what it is after the import.
            if name.starts_with(PRIVATE_PREFIX.as_bytes()) {
                continue;
            }
            let target = if name == b"HEAD" { refs.head.as_ref() } else { Some(name) };
            let node = target.and_then(|target| refs.refs.get(target));
            let unknown = || FetchError::UnknownRef(String::from_utf8_lossy(name).into_owned());
            wanted.insert(name.clone(), *node.ok_or_else(unknown)?);
        }
        let nodes: BTreeSet<Node> = wanted.values().copied().collect();
        let nodes: Vec<Node> = nodes.into_iter().collect();
        let mut reader = repository.share();
        let metadata = Metadata::open(&mut reader)?;
        let (commit, before) = (metadata.commit(), head_nodes(&metadata));
        drop((reader, metadata));
        let options = self.settings.options.clone();
        let converted = fetch(&repository, self.peer, &nodes, options, self.progress)?;
        if before.is_empty() && !self.is_quiet {
            report_pointers(&converted.oddities, self.progress);
        }
        let mut metadata = Metadata::open(&mut repository)?;
        let has_fetched = metadata.commit() != commit;
        let mut changes = Vec::new();
        for (name, node) in wanted {
            let missing = || FetchError::UnknownRef(String::from_utf8_lossy(&name).into_owned());
            let commit = metadata.commit_of(&mut repository, &node)?.ok_or_else(missing)?;
            let name = self.import_refs.name_of(&name);
            changes.push(RefChange { name, new: Some(commit), old: None });
        }
        self.import_refs.remove_clashing(&mut repository, &changes)?;
        repository.change_refs(&changes)?;
        Ok(has_fetched.then_some(before))
    }

    /// Reports an import, after git was told that it is done.
    fn report_import(&mut self, before: Option<Vec<Node>>) -> Result<(), HelperError> {
        self.progress.report(&FetchNotice::Imported);
        let (Some(before), Some((mut repository, mut metadata))) = (before, self.open_state()?)
        else {
            return Ok(());
        };
        if let Some(change) = find_tag_change(&mut repository, &mut metadata, &before)? {
            let (is_quiet, has_replaced) = (self.is_quiet, change == TagChange::Replaced);
            self.progress.report(&FetchNotice::TagsChanged { is_quiet, has_replaced });
        }
        if !self.is_quiet
            && let Some(name) = self.closed_tip(&mut repository, &mut metadata)?
        {
            let name = String::from_utf8_lossy(name).into_owned();
            self.progress.report(&FetchNotice::ClosedTip { name });
        }
        Ok(())
    }

    /// Returns the ref that HEAD names if its changeset closes the branch, which was not known
    /// before the import, and another head of the branch is open.
    fn closed_tip(
        &self,
        repository: &mut GitDirectory,
        metadata: &mut Metadata,
    ) -> Result<Option<&[u8]>, HelperError> {
        let Some(ListedRefs { of_peer, named }) = &self.listed else { return Ok(None) };
        let Some(name) = &named.head else { return Ok(None) };
        let Some(tip) = named.refs.get(name) else { return Ok(None) };
        // A text is read for each head: those of other branches do not matter.
        let branches = of_peer.branches.iter().filter(|(_, heads)| heads.contains(tip)).cloned();
        let of_branch = PeerRefs { branches: branches.collect(), ..PeerRefs::default() };
        let closed = closed_heads(&of_branch, repository, metadata)?;
        let is_closed = |node: &Node| closed.contains(node);
        let current = remote_refs(&of_branch, self.settings.style, is_closed);
        let is_open = current.refs.get(name).is_some_and(|node| !is_closed(node));
        Ok((is_closed(tip) && is_open).then_some(name.as_slice()))
    }
}

/// Reports files of which a clone has pointers in place of the content.
fn report_pointers(oddities: &OddityReport, progress: &mut dyn Progress) {
    for (oddity, kind) in oddities.kinds().filter(|(oddity, _)| oddity.is_pointer()) {
        progress.report(&FetchNotice::Pointers { oddity, count: kind.count });
    }
}

/// Removes what git writes when a helper was killed: its importer takes that for its own crash.
/// Other reports stay. Errors do not matter.
fn remove_crash_reports(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with("fast_import_crash_") {
            continue;
        }
        let report = fs::read_to_string(entry.path()).unwrap_or_default();
        let mut commands = report.lines().skip_while(|line| !line.starts_with("Most Recent"));
        let is_of_killed = report.contains("\nfatal: stream ends early\n")
            && commands.nth(2) == Some("* feature done");
        if is_of_killed {
            let _removed = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PeerRefs;
    use crate::revision::ChangeSource;

    struct FixedPeer;

    impl Peer for FixedPeer {
        fn refs(&mut self) -> Result<PeerRefs, ChangeError> {
            let branches = vec![(b"default".to_vec(), vec![Node([1; 20])])];
            Ok(PeerRefs { branches, ..PeerRefs::default() })
        }

        fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError> {
            Ok(vec![false; nodes.len()])
        }

        fn lookup(&mut self, _: &[u8]) -> Result<Node, ChangeError> {
            Ok(Node::NULL)
        }

        fn changes(
            &mut self,
            _: &[Node],
            _: &[Node],
        ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
            Err(ChangeError::Unsupported { what: "changes".into() })
        }
    }

    struct NoProgress;

    impl Progress for NoProgress {
        fn advance(&mut self, _: crate::conversion::Phase, _: u64, _: Option<u64>) {}
    }

    fn talk(input: &str) -> (String, Result<(), HelperError>) {
        let threads = std::num::NonZeroUsize::MIN;
        let settings = HelperSettings {
            git_dir: None,
            remote: "origin".into(),
            style: RefStyle::ALL,
            options: threads.into(),
            is_mirror: false,
            is_importing: Arc::default(),
        };
        let mut output = Vec::new();
        let result = run_remote_helper(
            &settings,
            &mut FixedPeer,
            &mut input.as_bytes(),
            &mut output,
            &mut NoProgress,
        );
        (String::from_utf8(output).expect("a text"), result)
    }

    #[test]
    fn refs_are_listed_outside_of_a_repository() {
        let (output, result) =
            talk("capabilities\noption family ipv4\noption progress true\nlist\n\n");
        assert!(result.is_ok());
        let answers = output.split_once("\n\n").expect("capabilities").1;
        assert_eq!(
            answers,
            "unsupported\nok\n@refs/heads/branches/default/tip HEAD\n\
             ? refs/heads/branches/default/tip\n\n"
        );
        let (output, result) = talk("import refs/heads/branches/default/tip\n\n");
        let error = result.expect_err("no repository");
        assert_eq!(error.to_string(), HelperError::NoRepository.to_string());
        // What git reads is incomplete.
        assert_eq!(output, "feature done\n");
    }

    #[test]
    fn reports_of_killed_helpers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let report = |end: &str, command: &str| {
            format!(
                "fast-import crash report:\n    fast-import process: 1\n\nfatal: {end}\n\n\
                 Most Recent Commands Before Crash\n---\n{command}\n\nActive Branch LRU\n"
            )
        };
        let reports = [
            ("fast_import_crash_1", report("stream ends early", "* feature done")),
            ("fast_import_crash_2", report("stream ends early", "  feature done\n* blob")),
            ("fast_import_crash_3", report("out of memory", "* feature done")),
            ("other", report("stream ends early", "* feature done")),
        ];
        for (name, report) in &reports {
            fs::write(folder.path().join(name), report).unwrap();
        }
        remove_crash_reports(folder.path());
        let is_left = reports.map(|(name, _)| folder.path().join(name).exists());
        assert_eq!(is_left, [false, true, true, true]);
    }

    #[test]
    fn pushes_and_unknown_commands_are_refused() {
        let (output, result) = talk("list for-push\npush +refs/heads/a:refs/heads/b\n\n");
        assert!(result.is_ok());
        assert!(
            output.ends_with("error refs/heads/b pushing to Mercurial is not supported yet\n\n")
        );
        assert!(matches!(talk("fetch x\n").1, Err(HelperError::UnknownCommand(_))));
    }

    /// git sends the number of `--deepen` as a depth, and only then that it is one.
    #[test]
    fn parts_of_a_history_are_refused_by_the_names_of_options() {
        let message = |input| talk(input).1.expect_err(input).to_string();
        assert!(message("option depth 1\n").ends_with("leave out --depth or --deepen"));
        assert!(message("option deepen-since 1\n").ends_with("leave out --shallow-since"));
        let partial = message("option filter blob:none\n");
        assert!(partial.contains(" leave out --filter; "), "{partial}");
        assert!(partial.contains("git config --unset remote.origin.promisor"), "{partial}");
    }
}

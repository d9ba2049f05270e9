//! The protocol between git and a remote helper (gitremote-helpers(7)).
//!
//! git asks for refs, whose commits are not known before they are converted, and then for the
//! import of some of them. The helper writes the objects itself, points refs of its own at the
//! commits ([`PRIVATE_PREFIX`]), and tells git that the import is done.

use crate::conversion::Progress;
use crate::fetch::{FetchError, closed_heads, fetch};
use crate::git::repository::{GitDirectory, GitDirectoryError, RefChange};
use crate::metadata::{Metadata, MetadataError};
use crate::object_id::Node;
use crate::peer::Peer;
use crate::refs::{RefStyle, RemoteRefs, remote_refs};
use crate::revision::ChangeError;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The refs of the helper, from which git takes the commits.
const PRIVATE_PREFIX: &[u8] = b"refs/larder/hg/";
/// The answer to `capabilities`. A push is then refused here, which is clearer than git's own
/// words.
const CAPABILITIES: &[u8] = b"option\nimport\npush\n\
    refspec refs/heads/*:refs/larder/hg/refs/heads/*\nrefspec HEAD:refs/larder/hg/HEAD\n\n";
/// Why a remote helper ended.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// git's pipe broke.
    #[error("the pipe to git: {0}")]
    Pipe(#[from] io::Error),
    /// The changes could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// git asked for something that this helper did not offer.
    #[error("git sent an unknown command: {0}")]
    UnknownCommand(String),
    /// git asked for a part of the history.
    #[error("shallow clones of Mercurial repositories are not supported; leave out --depth")]
    Shallow,
    /// There is no git repository to import into.
    #[error("there is no git repository to import into")]
    NoRepository,
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
#[derive(Clone, Debug)]
pub struct HelperSettings {
    /// The git directory; `None` outside of a repository, where only refs can be listed.
    pub git_dir: Option<PathBuf>,
    /// Which refs the remote repository has.
    pub style: RefStyle,
    /// The threads that convert files.
    pub threads: NonZeroUsize,
}

/// The state of a dialogue.
struct Dialogue<'d> {
    settings: &'d HelperSettings,
    peer: &'d mut dyn Peer,
    progress: &'d mut dyn Progress,
    refs: Option<RemoteRefs>,
}

/// Answers git's commands until there are no more. `progress` is told about conversions.
pub fn run_remote_helper(
    settings: &HelperSettings,
    peer: &mut dyn Peer,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    progress: &mut dyn Progress,
) -> Result<(), HelperError> {
    let mut dialogue = Dialogue { settings, peer, progress, refs: None };
    let mut imports: Vec<Vec<u8>> = Vec::new();
    let mut pushes: Vec<Vec<u8>> = Vec::new();
    while let Some(line) = read_line(input)? {
        let (command, argument) = split_word(&line);
        match command {
            // An empty line ends a batch, or the dialogue.
            b"" if !imports.is_empty() => {
                dialogue.import(&std::mem::take(&mut imports))?;
                output.write_all(b"done\n")?;
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
            b"capabilities" => output.write_all(CAPABILITIES)?,
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
            (b"verbosity", b"0") => self.progress.set_shown(false),
            (b"verbosity" | b"dry-run" | b"check-connectivity", _) => {}
            (b"depth" | b"deepen-since" | b"deepen-not" | b"deepen-relative", _) => {
                return Err(HelperError::Shallow);
            }
            _ => return Ok(b"unsupported\n"),
        }
        Ok(b"ok\n")
    }

    /// Lists the refs: those that are converted with their commits, others with `?`.
    fn list(&mut self, output: &mut dyn Write) -> Result<(), HelperError> {
        let peer_refs = self.peer.refs()?;
        let mut state = self.open_state()?;
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
        output.write_all(b"\n")?;
        self.refs = Some(refs);
        Ok(())
    }

    fn open_state(&self) -> Result<Option<(GitDirectory, Metadata)>, HelperError> {
        let Some(directory) = &self.settings.git_dir else { return Ok(None) };
        let mut repository = GitDirectory::new(directory);
        let metadata = Metadata::open(&mut repository)?;
        Ok(Some((repository, metadata)))
    }

    /// Imports refs, and points the refs of the helper at the commits.
    fn import(&mut self, names: &[Vec<u8>]) -> Result<(), HelperError> {
        let Some(directory) = self.settings.git_dir.clone() else {
            return Err(HelperError::NoRepository);
        };
        if self.refs.is_none() {
            self.list(&mut io::sink())?;
        }
        let refs = self.refs.clone().unwrap_or_default();
        // git asks for a ref twice when HEAD names it.
        let mut wanted: BTreeMap<Vec<u8>, Node> = BTreeMap::new();
        for name in names {
            let target = if name == b"HEAD" { refs.head.as_ref() } else { Some(name) };
            let node = target.and_then(|target| refs.refs.get(target));
            let unknown = || FetchError::UnknownRef(String::from_utf8_lossy(name).into_owned());
            wanted.insert(name.clone(), *node.ok_or_else(unknown)?);
        }
        let nodes: BTreeSet<Node> = wanted.values().copied().collect();
        let nodes: Vec<Node> = nodes.into_iter().collect();
        fetch(&directory, self.peer, &nodes, self.settings.threads, self.progress)?;
        let mut repository = GitDirectory::new(&directory);
        let mut metadata = Metadata::open(&mut repository)?;
        let mut changes = Vec::new();
        for (name, node) in wanted {
            let missing = || FetchError::UnknownRef(String::from_utf8_lossy(&name).into_owned());
            let commit = metadata.commit_of(&mut repository, &node)?.ok_or_else(missing)?;
            let name = [PRIVATE_PREFIX, name.as_slice()].concat();
            changes.push(RefChange { name, new: Some(commit), old: None });
        }
        repository.change_refs(&changes)?;
        Ok(())
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
        let settings =
            HelperSettings { git_dir: None, style: RefStyle::ALL, threads: NonZeroUsize::MIN };
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
        let (_, result) = talk("import refs/heads/branches/default/tip\n\n");
        assert!(matches!(result, Err(HelperError::NoRepository)));
    }

    #[test]
    fn pushes_and_unknown_commands_are_refused() {
        let (output, result) = talk("list for-push\npush +refs/heads/a:refs/heads/b\n\n");
        assert!(result.is_ok());
        assert!(
            output.ends_with("error refs/heads/b pushing to Mercurial is not supported yet\n\n")
        );
        assert!(matches!(talk("fetch x\n").1, Err(HelperError::UnknownCommand(_))));
        assert!(matches!(talk("option depth 1\n").1, Err(HelperError::Shallow)));
    }
}

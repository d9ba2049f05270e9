//! A bundle as a repository that changes are taken from.

use crate::bundle::{BundleContent, ByteStream, StorePart, open_bundle_content};
use crate::changeset_scan::ChangesetScan;
use crate::object_id::Node;
use crate::peer::{BaseTexts, Peer, PeerRefs};
use crate::received_bytes::{CountedStream, ReceivedBytes};
use crate::revision::{ChangeError, ChangeSource};
use crate::unpacked_store::UnpackedStore;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// The size of the buffer before a file.
const BUFFER_BYTES: usize = 1 << 17;

/// A file that is named in the errors of reading it.
struct NamedFile {
    file: File,
    path: PathBuf,
}

impl Read for NamedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer).map_err(|error| match error.kind() {
            // The caller reads again.
            io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, format!("{}: {error}", self.path.display())),
        })
    }
}

/// The branches, heads and bookmarks of a bundle.
struct BundleIndex {
    scan: ChangesetScan,
    bookmarks: Vec<(Vec<u8>, Node)>,
}

/// A bundle as far as it was read.
enum BundleState {
    Unread,
    Indexed(BundleIndex),
    /// The bundle has the files of a store.
    Unpacked(Box<UnpackedStore>),
}

/// A bundle that is read from its start each time: once for the names, once for the changes. The
/// files of a store are read once, and kept in the scratch folder.
pub struct BundlePeer {
    open: Box<dyn FnMut() -> io::Result<ByteStream<'static>> + Send>,
    state: BundleState,
    base_texts: Box<BaseTexts>,
    scratch: Option<PathBuf>,
    received: ReceivedBytes,
}

impl BundlePeer {
    /// Creates the peer of a file.
    pub fn from_path(path: PathBuf) -> BundlePeer {
        let open = move || -> io::Result<ByteStream<'static>> {
            let file = NamedFile { file: File::open(&path)?, path: path.clone() };
            Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
        };
        BundlePeer::new(Box::new(open))
    }

    /// Creates the peer of a bundle that a function opens.
    pub fn new(open: Box<dyn FnMut() -> io::Result<ByteStream<'static>> + Send>) -> BundlePeer {
        BundlePeer {
            open,
            state: BundleState::Unread,
            base_texts: Box::new(|_| None),
            scratch: None,
            received: ReceivedBytes::default(),
        }
    }

    /// Returns what the bundle has after reading its names.
    fn read_state(&mut self) -> Result<&mut BundleState, ChangeError> {
        if matches!(self.state, BundleState::Unread) {
            self.state = match self.open_content()? {
                BundleContent::Changes { mut source, bookmarks } => {
                    let scan = ChangesetScan::read(source.as_mut(), self.base_texts.as_mut())?;
                    BundleState::Indexed(BundleIndex { scan, bookmarks })
                }
                BundleContent::Store(mut part) => BundleState::Unpacked(self.unpack(&mut part)?),
            };
        }
        Ok(&mut self.state)
    }

    fn open_content(&mut self) -> Result<BundleContent<'static>, ChangeError> {
        let read = CountedStream::new((self.open)()?, self.received.clone());
        open_bundle_content(Box::new(read))
    }

    fn unpack(&self, part: &mut StorePart<'_>) -> Result<Box<UnpackedStore>, ChangeError> {
        let missing = || {
            let what = format!("a stream clone bundle ({}) without a scratch folder", part.name);
            ChangeError::new_unsupported(what)
        };
        let scratch = self.scratch.as_ref().ok_or_else(missing)?;
        Ok(Box::new(UnpackedStore::unpack(part, scratch, &mut |_, _| {})?))
    }
}

impl BundleIndex {
    fn refs(&self) -> PeerRefs {
        let mut refs = self.scan.refs();
        let bookmarks = self.bookmarks.iter().filter(|(_, node)| self.scan.has(*node));
        refs.bookmarks = bookmarks.cloned().collect();
        refs
    }

    fn find_name(&self, name: &[u8]) -> Result<Node, ChangeError> {
        let refs = self.refs();
        let quoted = name.escape_ascii();
        if name == b"tip"
            && let Some(tip) = self.scan.tip()
        {
            return Ok(tip);
        }
        if let Some((_, node)) = refs.bookmarks.iter().find(|(found, _)| found == name) {
            return Ok(*node);
        }
        let encoded = crate::percent::encode(name);
        let branch = refs.branches.iter().find(|(found, _)| *found == encoded);
        if let Some(head) = branch.and_then(|(_, heads)| heads.last()) {
            return Ok(*head);
        }
        let message = match self.scan.find_prefix(&name.to_ascii_lowercase()).as_slice() {
            [node] => return Ok(*node),
            [] => format!("unknown revision '{quoted}'"),
            _ => format!("ambiguous identifier '{quoted}'"),
        };
        Err(ChangeError::Aborted { message })
    }
}

impl Peer for BundlePeer {
    fn refs(&mut self) -> Result<PeerRefs, ChangeError> {
        match self.read_state()? {
            BundleState::Unpacked(store) => store.ask(Peer::refs),
            BundleState::Indexed(index) => Ok(index.refs()),
            BundleState::Unread => Ok(PeerRefs::default()),
        }
    }

    fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError> {
        match self.read_state()? {
            BundleState::Unpacked(store) => store.ask(|peer| peer.find_known(nodes)),
            BundleState::Indexed(index) => {
                Ok(nodes.iter().map(|node| index.scan.has(*node)).collect())
            }
            BundleState::Unread => Ok(vec![false; nodes.len()]),
        }
    }

    fn lookup(&mut self, name: &[u8]) -> Result<Node, ChangeError> {
        match self.read_state()? {
            BundleState::Unpacked(store) => store.ask(|peer| peer.lookup(name)),
            BundleState::Indexed(index) => index.find_name(name),
            BundleState::Unread => Ok(Node::NULL),
        }
    }

    /// Delivers all changes of a changegroup, whatever is asked for; of a store, those that are
    /// asked for, or all if no heads are named.
    fn changes(
        &mut self,
        heads: &[Node],
        common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
        if !matches!(self.state, BundleState::Unpacked(_)) {
            match self.open_content()? {
                BundleContent::Changes { source, .. } => return Ok(source),
                BundleContent::Store(mut part) => {
                    self.state = BundleState::Unpacked(self.unpack(&mut part)?);
                }
            }
        }
        match &mut self.state {
            BundleState::Unpacked(store) => store.changes(heads, common),
            // Not after what is above.
            _ => Err(ChangeError::new_damaged("a bundle that changes while it is read")),
        }
    }

    fn is_partial(&mut self) -> Result<bool, ChangeError> {
        match self.read_state()? {
            BundleState::Indexed(index) => Ok(index.scan.is_partial()),
            BundleState::Unpacked(_) | BundleState::Unread => Ok(false),
        }
    }

    fn has_all_refs(&self) -> bool {
        false
    }

    fn received_bytes(&self) -> ReceivedBytes {
        self.received.clone()
    }

    fn set_base_texts(&mut self, texts: Box<BaseTexts>) {
        self.base_texts = texts;
    }

    fn set_scratch_folder(&mut self, folder: &Path) {
        self.scratch = Some(folder.to_owned());
    }
}

//! A bundle as a repository that changes are taken from.

use crate::bundle::{BundleContent, ByteStream, open_bundle, open_bundle_content};
use crate::changeset_scan::{BaseTexts, ChangesetScan};
use crate::object_id::Node;
use crate::peer::{Peer, PeerRefs};
use crate::revision::{ChangeError, ChangeSource};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;

/// The size of the buffer before a file.
const BUFFER_BYTES: usize = 1 << 17;

/// The branches, heads and bookmarks of a bundle.
struct BundleIndex {
    scan: ChangesetScan,
    bookmarks: Vec<(Vec<u8>, Node)>,
}

/// A bundle that is read from its begin each time: once for the names, once for the changes.
pub struct BundlePeer {
    open: Box<dyn FnMut() -> io::Result<ByteStream<'static>> + Send>,
    base_texts: Box<BaseTexts>,
    index: Option<BundleIndex>,
}

impl BundlePeer {
    /// Creates the peer of a file.
    pub fn from_path(path: PathBuf) -> BundlePeer {
        let open = move || -> io::Result<ByteStream<'static>> {
            Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, File::open(&path)?)))
        };
        BundlePeer::new(Box::new(open))
    }

    /// Creates the peer of a bundle that a function opens.
    pub fn new(open: Box<dyn FnMut() -> io::Result<ByteStream<'static>> + Send>) -> BundlePeer {
        BundlePeer { open, base_texts: Box::new(|_| None), index: None }
    }

    /// Sets the source of the texts of changesets outside of the bundle, for bundles that build on
    /// a repository. Without it the names in such a bundle cannot be read.
    pub fn with_base_texts(
        mut self,
        base_texts: Box<dyn FnMut(Node) -> Option<Vec<u8>> + Send>,
    ) -> BundlePeer {
        self.base_texts = base_texts;
        self
    }

    fn index(&mut self) -> Result<&BundleIndex, ChangeError> {
        let index = match self.index.take() {
            Some(index) => index,
            None => self.read_index()?,
        };
        Ok(self.index.insert(index))
    }

    fn read_index(&mut self) -> Result<BundleIndex, ChangeError> {
        match open_bundle_content((self.open)()?)? {
            BundleContent::Changes { mut source, bookmarks } => {
                let scan = ChangesetScan::read(source.as_mut(), self.base_texts.as_mut())?;
                Ok(BundleIndex { scan, bookmarks })
            }
            BundleContent::Store(part) => Err(ChangeError::new_unsupported(format!(
                "a stream clone bundle (part {})",
                part.name
            ))),
        }
    }
}

impl Peer for BundlePeer {
    fn refs(&mut self) -> Result<PeerRefs, ChangeError> {
        let index = self.index()?;
        let mut refs = index.scan.refs();
        let bookmarks = index.bookmarks.iter().filter(|(_, node)| index.scan.has(*node));
        refs.bookmarks = bookmarks.cloned().collect();
        Ok(refs)
    }

    fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError> {
        let index = self.index()?;
        Ok(nodes.iter().map(|node| index.scan.has(*node)).collect())
    }

    fn lookup(&mut self, name: &[u8]) -> Result<Node, ChangeError> {
        let refs = self.refs()?;
        let index = self.index()?;
        let quoted = name.escape_ascii();
        if name == b"tip"
            && let Some(tip) = index.scan.tip()
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
        let message = match index.scan.find_prefix(&name.to_ascii_lowercase()).as_slice() {
            [node] => return Ok(*node),
            [] => format!("unknown revision '{quoted}'"),
            _ => format!("ambiguous identifier '{quoted}'"),
        };
        Err(ChangeError::Aborted { message })
    }

    /// Delivers all changes of the bundle, whatever is asked for.
    fn changes(
        &mut self,
        _heads: &[Node],
        _common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
        open_bundle((self.open)()?)
    }
}

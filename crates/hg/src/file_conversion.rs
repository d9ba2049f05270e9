//! File revisions as blobs.
//!
//! Files are independent of each other, so threads convert them, each file by one thread. A
//! revision's text is made from its base's, hashed, and written as git's form of the same delta.
//! The texts of a file are dropped when no later revision needs them, or when they take too much
//! memory; such a text is read from the pack again.

use crate::delta::apply_delta;
use crate::git::deflate::Deflater;
use crate::git::delta::{HgText, encode_hunks};
use crate::git::object::{EMPTY_BLOB, ObjectKind, object_id};
use crate::git::pack_writer::{EncodedObject, PackWriter, is_delta_useful};
use crate::object_id::{GitId, IdMap, Node};
use crate::revision::Revision;
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes of texts that one thread keeps.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// The mark around the metadata of a text.
const METADATA_MARK: &[u8] = b"\x01\n";

/// A blob, and the metadata that git does not have: the lines between the marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConvertedFile {
    pub(crate) node: Node,
    pub(crate) blob: GitId,
    /// The whole block with its marks; empty: none.
    pub(crate) metadata: Vec<u8>,
}

/// Why a file revision cannot be converted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("file {path}, revision {node}: {what}")]
    Damaged { path: String, node: Node, what: &'static str },
    #[error("file {path}, revision {node}: not supported: {what}")]
    Unsupported { path: String, node: Node, what: &'static str },
    #[error("writing a pack: {0}")]
    Pack(#[from] io::Error),
    #[error(transparent)]
    Stored(Box<dyn std::error::Error + Send + Sync>),
}

/// The text of a revision of an earlier conversion, in two parts.
pub(crate) struct StoredText {
    pub(crate) metadata: Vec<u8>,
    pub(crate) content: Vec<u8>,
}

/// Reads the text of a revision of an earlier conversion, with the metadata.
pub(crate) trait StoredTexts: Sync {
    /// Returns the text; `None` if no conversion had the revision.
    fn read(&self, node: &Node) -> Result<Option<StoredText>, FileError>;
}

/// The revisions of one file, in memory.
#[derive(Default)]
pub(crate) struct FileRevisions {
    pub(crate) path: Vec<u8>,
    deltas: Vec<u8>,
    revisions: Vec<PendingRevision>,
}

struct PendingRevision {
    node: Node,
    base: Node,
    flags: u16,
    /// Where its delta ends.
    delta_end: usize,
}

impl FileRevisions {
    /// Begins a file.
    pub(crate) fn new(path: Vec<u8>) -> FileRevisions {
        FileRevisions { path, ..FileRevisions::default() }
    }

    /// Adds a revision.
    pub(crate) fn push(&mut self, revision: &Revision) {
        let Revision { node, base, flags, ref delta, .. } = *revision;
        self.deltas.extend_from_slice(delta);
        self.revisions.push(PendingRevision { node, base, flags, delta_end: self.deltas.len() });
    }

    /// The bytes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        self.deltas.len() + self.revisions.len() * size_of::<PendingRevision>() + self.path.len()
    }
}

struct Text {
    text: Vec<u8>,
    metadata_len: usize,
    blob: GitId,
}

/// The state of one thread.
pub(crate) struct FileConverter<'a> {
    pack: &'a Mutex<PackWriter>,
    stored: &'a dyn StoredTexts,
    deflater: Deflater,
    path: Vec<u8>,
    texts: IdMap<Node, Text>,
    /// The nodes of `texts`, the oldest first.
    order: VecDeque<Node>,
    text_bytes: usize,
    /// Texts of this file that were dropped: the blob and the metadata.
    dropped: IdMap<Node, (GitId, Vec<u8>)>,
    git_delta: Vec<u8>,
    /// A buffer for the next text.
    spare: Vec<u8>,
    pub(crate) text_total: u64,
    pub(crate) reread: usize,
}

/// A poisoned lock: another thread panicked, which ends the program anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> FileConverter<'a> {
    pub(crate) fn new(
        pack: &'a Mutex<PackWriter>,
        stored: &'a dyn StoredTexts,
    ) -> FileConverter<'a> {
        FileConverter {
            pack,
            stored,
            deflater: Deflater::new(),
            path: Vec::new(),
            texts: IdMap::default(),
            order: VecDeque::new(),
            text_bytes: 0,
            dropped: IdMap::default(),
            git_delta: Vec::new(),
            spare: Vec::new(),
            text_total: 0,
            reread: 0,
        }
    }

    /// Begins a file.
    fn begin(&mut self, path: &[u8]) {
        self.path = path.to_vec();
        self.texts.clear();
        self.order.clear();
        self.text_bytes = 0;
        self.dropped.clear();
    }

    /// Converts all revisions of a file, and appends the results.
    pub(crate) fn convert_file(
        &mut self,
        file: &FileRevisions,
        converted: &mut Vec<ConvertedFile>,
    ) -> Result<(), FileError> {
        self.begin(&file.path);
        self.convert_revisions(file, converted, false)
    }

    /// Converts the first revisions of a file, of which others follow.
    pub(crate) fn convert_first(
        &mut self,
        file: &FileRevisions,
        converted: &mut Vec<ConvertedFile>,
    ) -> Result<(), FileError> {
        self.begin(&file.path);
        self.convert_revisions(file, converted, true)
    }

    fn convert_revisions(
        &mut self,
        file: &FileRevisions,
        converted: &mut Vec<ConvertedFile>,
        has_more: bool,
    ) -> Result<(), FileError> {
        let mut last_use: IdMap<Node, usize> = IdMap::default();
        for (number, revision) in file.revisions.iter().enumerate() {
            last_use.insert(revision.base, number);
        }
        let mut start = 0;
        for (number, revision) in file.revisions.iter().enumerate() {
            let delta = file.deltas.get(start..revision.delta_end).unwrap_or_default();
            start = revision.delta_end;
            let is_used =
                has_more || last_use.get(&revision.node).is_some_and(|user| *user > number);
            let PendingRevision { node, base, flags, .. } = *revision;
            converted.push(self.convert(node, base, flags, delta, is_used)?);
            if !has_more && last_use.get(&base).is_some_and(|user| *user == number) {
                self.forget(&base);
            }
        }
        Ok(())
    }

    /// Converts the next revision of the file. `is_kept`: a later one may need its text.
    pub(crate) fn convert(
        &mut self,
        node: Node,
        base: Node,
        flags: u16,
        delta: &[u8],
        is_kept: bool,
    ) -> Result<ConvertedFile, FileError> {
        if flags & Revision::ELLIPSIS != 0 {
            return Err(self.support_error(node, "a revision of a shallow repository"));
        }
        self.load(base, node)?;
        let mut text = std::mem::take(&mut self.spare);
        let empty = Text { text: Vec::new(), metadata_len: 0, blob: GitId::NULL };
        let base_text = self.texts.get(&base).unwrap_or(&empty);
        if apply_delta(&base_text.text, delta, &mut text).is_err() {
            return Err(self.damage_error(node, "its delta does not fit its base"));
        }
        let Some(metadata_len) = metadata_len(&text) else {
            return Err(self.damage_error(node, "its metadata has no end"));
        };
        let new = HgText { text: &text, metadata_len };
        let blob = object_id(ObjectKind::Blob, new.content());
        self.text_total += text.len() as u64;
        let old = HgText { text: &base_text.text, metadata_len: base_text.metadata_len };
        let base_blob = (!base.is_null()).then_some(base_text.blob);
        if lock(self.pack).find(&blob).is_none() {
            let object = encode(
                self.pack,
                (blob, new),
                base_blob.map(|id| (id, old, delta)),
                (&mut self.git_delta, &mut self.deflater),
            );
            lock(self.pack).append(&object)?;
        }
        let metadata = text.get(..metadata_len).unwrap_or_default().to_vec();
        if is_kept {
            self.keep(node, Text { text, metadata_len, blob });
        } else {
            self.spare = text;
        }
        Ok(ConvertedFile { node, blob, metadata })
    }

    /// Makes sure that the text of a base is in memory.
    fn load(&mut self, base: Node, node: Node) -> Result<(), FileError> {
        if base.is_null() || self.texts.contains_key(&base) {
            return Ok(());
        }
        let (blob, metadata, content) = match self.dropped.get(&base).cloned() {
            Some((blob, metadata)) => {
                self.reread += 1;
                let content = lock(self.pack).read(&blob)?;
                let content = content.ok_or_else(|| self.damage_error(node, "its base is lost"))?;
                (blob, metadata, content)
            }
            None => match self.stored.read(&base)? {
                Some(StoredText { metadata, content }) => {
                    (object_id(ObjectKind::Blob, &content), metadata, content)
                }
                None => return Err(self.damage_error(node, "its base is missing")),
            },
        };
        let metadata_len = metadata.len();
        let mut text = metadata;
        text.extend_from_slice(&content);
        self.keep(base, Text { text, metadata_len, blob });
        Ok(())
    }

    /// Keeps a text, and drops the oldest ones beyond the limit.
    fn keep(&mut self, node: Node, text: Text) {
        self.text_bytes += text.text.len();
        self.order.push_back(node);
        self.texts.insert(node, text);
        while self.text_bytes > MAX_TEXT_BYTES && self.order.len() > 2 {
            let Some(oldest) = self.order.pop_front() else { break };
            let Some(text) = self.texts.remove(&oldest) else { continue };
            self.text_bytes -= text.text.len();
            let metadata = text.text.get(..text.metadata_len).unwrap_or_default().to_vec();
            self.dropped.insert(oldest, (text.blob, metadata));
        }
    }

    /// Forgets a text that no later revision needs.
    fn forget(&mut self, node: &Node) {
        if let Some(text) = self.texts.remove(node) {
            self.text_bytes -= text.text.len();
            // Mostly it is the oldest one.
            if self.order.front() == Some(node) {
                self.order.pop_front();
            }
            self.spare = text.text;
        }
    }

    fn damage_error(&self, node: Node, what: &'static str) -> FileError {
        FileError::Damaged { path: String::from_utf8_lossy(&self.path).into_owned(), node, what }
    }

    fn support_error(&self, node: Node, what: &'static str) -> FileError {
        let path = String::from_utf8_lossy(&self.path).into_owned();
        FileError::Unsupported { path, node, what }
    }
}

/// Encodes a blob, as a delta of its base where that is shorter.
fn encode(
    pack: &Mutex<PackWriter>,
    (blob, new): (GitId, HgText<'_>),
    base: Option<(GitId, HgText<'_>, &[u8])>,
    (git_delta, deflater): (&mut Vec<u8>, &mut Deflater),
) -> EncodedObject {
    if let Some((base_blob, old, delta)) = base
        && let Some(place) = lock(pack).find(&base_blob)
        && encode_hunks(old, delta, new, git_delta).is_ok()
        && is_delta_useful(git_delta.len(), new.content().len(), place)
    {
        return EncodedObject::encode_delta(blob, ObjectKind::Blob, place, git_delta, deflater);
    }
    EncodedObject::encode_whole(blob, ObjectKind::Blob, new.content(), deflater)
}

/// Returns the length of the metadata at the start of a text; `None` if it has no end.
fn metadata_len(text: &[u8]) -> Option<usize> {
    let Some(rest) = text.strip_prefix(METADATA_MARK) else { return Some(0) };
    let end = memchr::memmem::find(rest, METADATA_MARK)?;
    Some(end + 2 * METADATA_MARK.len())
}

/// The revision of a file without bytes, which Mercurial's servers need not send.
pub(crate) const EMPTY_FILE: Node = Node([
    0xb8, 0x0d, 0xe5, 0xd1, 0x38, 0x75, 0x85, 0x41, 0xc5, 0xf0, 0x52, 0x65, 0xad, 0x14, 0x4a, 0xb9,
    0xfa, 0x86, 0xd1, 0xdb,
]);

/// Returns the blob of a revision that needs no conversion.
pub(crate) fn blob_of_empty_file(node: &Node) -> Option<GitId> {
    (*node == EMPTY_FILE).then_some(EMPTY_BLOB)
}

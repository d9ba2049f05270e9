//! File revisions as blobs.
//!
//! Files are independent of each other, so threads convert them, each file by one thread. A
//! revision's text is made from its base's, checked by its hash, and written as git's form of the
//! same delta.
//! The texts of a file are dropped when no later revision needs them, or when they take too much
//! memory; such a text is read from the pack again.

use crate::delta::{Hunk, apply_delta, hunks};
use crate::git::deflate::Deflater;
use crate::git::delta::{HgText, count_insertions, encode_hunks};
use crate::git::object::{EMPTY_BLOB, ObjectHeader, ObjectKind, object_id};
use crate::git::pack_writer::{
    EncodedObject, FingerprintKey, PackWriter, is_delta_useful, max_useful_delta,
};
use crate::mutex::lock;
use crate::object_id::{GitId, IdMap, Node};
use crate::oddity::{Oddity, OddityReport};
use crate::path_text::path_text;
use crate::revision::{Revision, RevisionHeader, hashed_parents};
use crate::sha1_pair::hash_pair;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// The bytes of texts that all threads together keep.
const MAX_TEXT_BYTES: usize = 32 << 20;
/// The least bytes of texts that a thread keeps.
const MIN_TEXT_BYTES: usize = 1 << 20;
/// A longer text is alone in memory while it is compressed.
const LARGE_TEXT_BYTES: usize = 16 << 20;
/// The bytes of a buffer that is kept from one file to the next.
const MAX_SPARE_BYTES: usize = 1 << 20;
/// The mark around the metadata of a text.
pub(crate) const METADATA_MARK: &[u8] = b"\x01\n";
/// The metadata of a text that stands in place of a censored one.
pub(crate) const CENSORED_METADATA: &[u8] = b"\x01\ncensored:";

/// A blob, and the metadata that git does not have: the lines between the marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConvertedFile {
    pub(crate) node: Node,
    pub(crate) blob: GitId,
    /// Null: none.
    pub(crate) parents: [Node; 2],
    /// The whole block with its marks; empty: none.
    pub(crate) metadata: Vec<u8>,
    /// Whether the text is the one that the node is the hash of.
    pub(crate) has_hash: bool,
}

/// Why a file revision cannot be converted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("file {path}, revision {node}: {what}")]
    Damaged { path: String, node: Node, what: &'static str },
    #[error("two texts of file revisions have the id {node} (a collision of SHA-1)")]
    Collision { node: Node },
    #[error(
        "file {path}, revision {node}: another text has its id in git, {blob} (a collision of SHA-1)"
    )]
    BlobCollision { path: String, node: Node, blob: GitId },
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
    header: RevisionHeader,
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
        self.deltas.extend_from_slice(&revision.delta);
        let header = RevisionHeader::new(revision);
        self.revisions.push(PendingRevision { header, delta_end: self.deltas.len() });
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
    /// The most bytes of `texts`, unless they are few.
    max_text_bytes: usize,
    /// Texts of this file that were dropped: the blob and the metadata.
    dropped: IdMap<Node, (GitId, Vec<u8>)>,
    fingerprint_key: FingerprintKey,
    git_delta: Vec<u8>,
    /// A buffer for the next text.
    spare: Vec<u8>,
    /// The report of what was unusual since it was last taken.
    pub(crate) oddities: OddityReport,
}

impl<'a> FileConverter<'a> {
    /// Creates the state of one of several threads.
    pub(crate) fn new(
        pack: &'a Mutex<PackWriter>,
        stored: &'a dyn StoredTexts,
        threads: NonZeroUsize,
    ) -> FileConverter<'a> {
        FileConverter {
            pack,
            stored,
            deflater: Deflater::new(),
            path: Vec::new(),
            texts: IdMap::default(),
            order: VecDeque::new(),
            text_bytes: 0,
            max_text_bytes: (MAX_TEXT_BYTES / threads).max(MIN_TEXT_BYTES),
            dropped: IdMap::default(),
            fingerprint_key: lock(pack).fingerprint_key(),
            git_delta: Vec::new(),
            spare: Vec::new(),
            oddities: OddityReport::default(),
        }
    }

    /// Begins a file.
    fn begin(&mut self, path: &[u8]) {
        self.end_file();
        self.path = path.to_vec();
    }

    /// Forgets the texts of a file, and gives back the memory of large ones.
    pub(crate) fn end_file(&mut self) {
        self.texts.clear();
        self.order.clear();
        self.text_bytes = 0;
        self.dropped.clear();
        for buffer in [&mut self.spare, &mut self.git_delta] {
            if buffer.capacity() > MAX_SPARE_BYTES {
                *buffer = Vec::new();
            }
        }
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
            last_use.insert(revision.header.base, number);
        }
        let mut start = 0;
        for (number, revision) in file.revisions.iter().enumerate() {
            let delta = file.deltas.get(start..revision.delta_end).unwrap_or_default();
            start = revision.delta_end;
            let RevisionHeader { node, base, .. } = revision.header;
            let is_used = has_more || last_use.get(&node).is_some_and(|user| *user > number);
            converted.push(self.convert(&revision.header, delta.into(), is_used)?);
            if !has_more && last_use.get(&base).is_some_and(|user| *user == number) {
                self.forget(&base);
            }
        }
        Ok(())
    }

    /// Converts the next revision of the file. `is_kept`: a later one may need its text. The memory
    /// of a delta that is given away is freed early.
    pub(crate) fn convert(
        &mut self,
        header: &RevisionHeader,
        mut delta: Cow<'_, [u8]>,
        is_kept: bool,
    ) -> Result<ConvertedFile, FileError> {
        let RevisionHeader { node, p1, p2, base, flags } = *header;
        if let Some(flag) = header.refused_file_flag() {
            return Err(self.support_error(node, flag));
        }
        self.load(base, node)?;
        let (text, is_whole) = self.make_text(header, &mut delta)?;
        let Some(metadata_len) = metadata_len(&text) else {
            return Err(self.damage_error(node, "its metadata has no end"));
        };
        let new = HgText { text: &text, metadata_len };
        let (blob, has_hash) = hash_text(header, new);
        let is_tombstone = !has_hash && is_tombstone(&text, metadata_len);
        if !has_hash && !is_tombstone && !header.has_replaced_text() {
            return Err(self.damage_error(node, "its text does not have its hash"));
        }
        // Changegroups before version 03 have no flags: the text itself tells.
        let flags = if is_tombstone { flags | Revision::CENSORED } else { flags };
        let fingerprint = self.fingerprint_key.fingerprint(new.content());
        let is_there = lock(self.pack).find(&blob).is_some();
        let is_refused = if is_there {
            lock(self.pack).conflicts_with_content(&blob, fingerprint)
        } else {
            let encoded = self.encode_delta((blob, new), base, (!is_whole).then_some(&*delta));
            drop(delta);
            let object = encoded.unwrap_or_else(|| {
                if text.len() > LARGE_TEXT_BYTES {
                    self.drop_texts(0);
                }
                let content = new.content();
                EncodedObject::encode_whole(blob, ObjectKind::Blob, content, &mut self.deflater)
            });
            !lock(self.pack).try_append(&object, fingerprint)?
        };
        if is_refused {
            let path = path_text(&self.path);
            return Err(FileError::BlobCollision { path, node, blob });
        }
        let metadata = text.get(..metadata_len).unwrap_or_default().to_vec();
        if is_kept {
            self.keep(node, Text { text, metadata_len, blob });
        } else if text.len() <= LARGE_TEXT_BYTES {
            self.spare = text;
        }
        if flags != 0 {
            self.report_flags(node, flags);
        }
        Ok(ConvertedFile { node, blob, parents: [p1, p2], metadata, has_hash })
    }

    /// Makes the text of a revision, whose base is in memory. A delta that is given away and has
    /// the whole text becomes this; then returns true, too.
    fn make_text(
        &mut self,
        header: &RevisionHeader,
        delta: &mut Cow<'_, [u8]>,
    ) -> Result<(Vec<u8>, bool), FileError> {
        let RevisionHeader { node, base, .. } = *header;
        let base_text = self.texts.get(&base).map_or(&[][..], |base| &base.text);
        if let Cow::Owned(delta) = &mut *delta
            && has_whole_text(delta, base_text.len())
        {
            let mut text = std::mem::take(delta);
            text.drain(..HUNK_HEADER_BYTES);
            return Ok((text, true));
        }
        let mut text = std::mem::take(&mut self.spare);
        if apply_delta(base_text, delta, &mut text).is_err() {
            return Err(self.damage_error(node, "its delta does not fit its base"));
        }
        Ok((text, false))
    }

    /// Encodes a blob as a delta of its base; `None` where that is not shorter. Without a delta of
    /// Mercurial, the new text takes the place of the whole base.
    fn encode_delta(
        &mut self,
        (blob, new): (GitId, HgText<'_>),
        base: Node,
        delta: Option<&[u8]>,
    ) -> Option<EncodedObject> {
        let Text { text, metadata_len, blob: base_blob } = self.texts.get(&base)?;
        let place = lock(self.pack).find(base_blob)?;
        let old = HgText { text, metadata_len: *metadata_len };
        let (git_delta, len) = (&mut self.git_delta, new.content().len());
        let max_len = max_useful_delta(len);
        let all_hunks = || {
            let whole = Hunk { start: 0, end: text.len(), data: new.text };
            let whole = delta.is_none().then_some(Ok(whole));
            whole.into_iter().chain(hunks(delta.unwrap_or_default(), text.len()))
        };
        // What would be thrown away again takes no memory.
        if len > LARGE_TEXT_BYTES && count_insertions(old, all_hunks()).ok()? > max_len {
            return None;
        }
        let is_short = encode_hunks(old, all_hunks(), new, max_len, git_delta).ok()?;
        (is_short && is_delta_useful(git_delta.len(), len, place)).then(|| {
            let kind = ObjectKind::Blob;
            EncodedObject::encode_delta(blob, kind, place, git_delta, &mut self.deflater)
        })
    }

    fn report_flags(&mut self, node: Node, flags: u16) {
        let path = &self.path;
        for (flag, oddity) in
            [(Revision::CENSORED, Oddity::CensoredFile), (Revision::EXTERNAL, Oddity::FilePointer)]
        {
            if flags & flag != 0 {
                let example = || format!("{}, revision {node}", path_text(path));
                self.oddities.add(oddity, example);
            }
        }
    }

    /// Makes sure that the text of a base is in memory.
    fn load(&mut self, base: Node, node: Node) -> Result<(), FileError> {
        if base.is_null() || self.texts.contains_key(&base) {
            return Ok(());
        }
        let (blob, metadata, content) = match self.dropped.get(&base).cloned() {
            Some((blob, metadata)) => {
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
        let is_large = self.text_bytes > LARGE_TEXT_BYTES.max(2 * self.max_text_bytes);
        self.drop_texts(if is_large { 1 } else { 2 });
    }

    /// Drops the oldest texts beyond the limit, all but some.
    fn drop_texts(&mut self, kept: usize) {
        while self.text_bytes > self.max_text_bytes && self.order.len() > kept {
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
        FileError::Damaged { path: path_text(&self.path), node, what }
    }

    fn support_error(&self, node: Node, what: &'static str) -> FileError {
        let path = path_text(&self.path);
        FileError::Unsupported { path, node, what }
    }
}

/// Returns the blob of a text, and whether the text is that of the revision.
fn hash_text(header: &RevisionHeader, new: HgText<'_>) -> (GitId, bool) {
    let content = new.content();
    if header.has_replaced_text() {
        return (object_id(ObjectKind::Blob, content), false);
    }
    let blob_header = ObjectHeader::new(ObjectKind::Blob, content.len());
    let parents = hashed_parents(&header.p1, &header.p2);
    let texts = [[blob_header.bytes(), content], [&parents, new.text]];
    let [blob, node] = hash_pair(texts.map(<[_; 2]>::into_iter));
    (GitId(blob), Node(node) == header.node)
}

/// The bytes of a hunk before its data.
const HUNK_HEADER_BYTES: usize = 12;

/// Returns whether a delta is one hunk that takes the place of the whole base.
fn has_whole_text(delta: &[u8], base_len: usize) -> bool {
    let mut all_hunks = hunks(delta, base_len);
    let first = all_hunks.next();
    first.is_some_and(|first| {
        let is_whole = |hunk: Hunk<'_>| (hunk.start, hunk.end) == (0, base_len);
        first.is_ok_and(is_whole) && all_hunks.next().is_none()
    })
}

/// Returns whether a text stands in place of a censored one, as Mercurial's extension `censor`
/// writes it: metadata that say so, and nothing else. Nothing can be forged so, because it has no
/// content.
fn is_tombstone(text: &[u8], metadata_len: usize) -> bool {
    text.starts_with(CENSORED_METADATA) && text.len() == metadata_len
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

#[cfg(test)]
mod tests {
    use super::*;
    use sha1::{Digest as _, Sha1};

    struct EmptyState;

    impl StoredTexts for EmptyState {
        fn read(&self, _: &Node) -> Result<Option<StoredText>, FileError> {
            Ok(None)
        }
    }

    fn insertion(text: &[u8]) -> Vec<u8> {
        [&[0; 8], &(text.len() as u32).to_be_bytes()[..], text].concat()
    }

    /// Deltas that are given away give the texts that others give, whole ones and parts.
    #[test]
    fn deltas_given_away_give_the_same_blobs() {
        let whole = |base: usize, text: &[u8]| {
            let numbers = [0, base, text.len()].map(|number| (number as u32).to_be_bytes());
            [&numbers.concat(), text].concat()
        };
        let first = [b'x'; 5000];
        let second = [&first[..], b"y"].concat();
        let part = [&[0, 0, 19, 137, 0, 0, 19, 137, 0, 0, 0, 1][..], b"z"].concat();
        let third = [&second[..], b"z"].concat();
        let texts = [&first[..], &second, &third];
        let deltas = [whole(0, &first), whole(5000, &second), part];
        let mut packs = Vec::new();
        for is_given in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let pack = Mutex::new(PackWriter::create(folder.path()).unwrap());
            let mut converter = FileConverter::new(&pack, &EmptyState, NonZeroUsize::MIN);
            let mut base = Node::NULL;
            for (text, delta) in texts.iter().zip(&deltas) {
                let hash = Sha1::new().chain_update(Node::NULL.0).chain_update(base.0);
                let node = Node(hash.chain_update(text).finalize().into());
                let header = RevisionHeader { node, p1: base, p2: Node::NULL, base, flags: 0 };
                let delta: Cow<'_, [u8]> =
                    if is_given { delta.clone().into() } else { delta.into() };
                let converted = converter.convert(&header, delta, true).unwrap();
                assert_eq!(converted.blob, object_id(ObjectKind::Blob, text));
                base = node;
            }
            drop(converter);
            packs.push(pack.into_inner().unwrap().finish().unwrap().bytes);
        }
        assert_eq!(packs[0], packs[1]);
        // Both later texts are small deltas.
        assert!(packs[0] < 1400, "{}", packs[0]);
    }

    /// An object with the id of another content stands for a collision of SHA-1.
    #[test]
    fn a_blob_of_another_content_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pack = Mutex::new(PackWriter::create(folder.path()).unwrap());
        let mut converter = FileConverter::new(&pack, &EmptyState, NonZeroUsize::MIN);
        let header = |parent: u8, text: &[u8]| {
            let (p1, p2) = (Node([parent; 20]), Node::NULL);
            let node = crate::revision::hash_revision(&p1, &p2, [text]);
            RevisionHeader { node, p1, p2, base: Node::NULL, flags: 0 }
        };
        for parent in [1, 2] {
            let twice = header(parent, b"walrus");
            converter.convert(&twice, insertion(b"walrus").into(), false).unwrap();
        }
        let blob = object_id(ObjectKind::Blob, b"seal");
        lock(&pack).append_forged(blob, ObjectKind::Blob);
        let seal = header(1, b"seal");
        converter.path = b"a".to_vec();
        let error = converter.convert(&seal, insertion(b"seal").into(), false).unwrap_err();
        let expected = format!(
            "file a, revision {}: another text has its id in git, {blob} (a collision of SHA-1)",
            seal.node
        );
        assert_eq!(error.to_string(), expected);
    }

    /// Nothing but the hash tells a text that was damaged on its way.
    #[test]
    fn a_text_without_its_hash_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pack = Mutex::new(PackWriter::create(folder.path()).unwrap());
        let mut converter = FileConverter::new(&pack, &EmptyState, NonZeroUsize::MIN);
        let (p1, p2) = (Node([9; 20]), Node([3; 20]));
        let hash = Sha1::new().chain_update(p2.0).chain_update(p1.0).chain_update(b"walrus");
        let node = Node(hash.finalize().into());
        let mut header = RevisionHeader { node, p1, p2, base: Node::NULL, flags: 0 };
        let converted = converter.convert(&header, insertion(b"walrus").into(), false).unwrap();
        assert_eq!(converted.node, node);
        let refused = converter.convert(&header, insertion(b"walruS").into(), false);
        assert!(refused.unwrap_err().to_string().ends_with("its text does not have its hash"));
        // The text in place of a censored one has another hash.
        header.flags = Revision::CENSORED;
        converter.convert(&header, insertion(b"censored").into(), false).unwrap();
        // Without flags, a tombstone is known by its text; with content it is none.
        header.flags = 0;
        let tombstone = b"\x01\ncensored: a password\n\x01\n";
        let converted = converter.convert(&header, insertion(tombstone).into(), false).unwrap();
        assert!(!converted.has_hash);
        assert!(converter.oddities.kinds().any(|(kind, _)| kind == Oddity::CensoredFile));
        let forged = [&tombstone[..], b"walrus"].concat();
        let refused = converter.convert(&header, insertion(&forged).into(), false);
        assert!(refused.unwrap_err().to_string().ends_with("its text does not have its hash"));
        // No other flag keeps a text from being checked.
        header.flags = Revision::COPIES_INFO;
        converter.convert(&header, insertion(b"walrus").into(), false).unwrap();
        let refused = converter.convert(&header, insertion(b"walruS").into(), false);
        assert!(refused.unwrap_err().to_string().ends_with("its text does not have its hash"));
        header.flags = 1;
        let refused = converter.convert(&header, insertion(b"walrus").into(), false);
        assert!(refused.unwrap_err().to_string().ends_with("not supported: an unknown flag"));
    }
}

//! Manifests: the lines that each one changes, without making their texts.
//!
//! The manifests of a history of 70,000 changesets have 25 GB of text, and differ from each other
//! by a few lines. A text is kept in pieces ([`ManifestText`]), which it shares with the texts that
//! it was made from; only the most recent ones are kept. All that remains of a manifest are the
//! lines it changes, as numbers of paths and of file revisions. An older text is made again from
//! them when a later delta needs it.

use crate::delta::{DeltaError, hunks};
use crate::id_index::IdIndex;
use crate::object_id::{IdMap, Node};
use memchr::memchr;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The least bytes of a piece, before the end of a line.
const PIECE_BYTES: usize = 2 << 10;

/// The text of a manifest, in pieces of whole lines.
#[derive(Clone, Default)]
pub(crate) struct ManifestText {
    pieces: Rc<Vec<Rc<[u8]>>>,
    len: usize,
}

impl ManifestText {
    /// Takes a text of whole lines.
    pub(crate) fn new(text: &[u8]) -> ManifestText {
        let mut pieces = Vec::with_capacity(text.len() / PIECE_BYTES + 1);
        push_pieces(text, &mut pieces);
        ManifestText { pieces: Rc::new(pieces), len: text.len() }
    }

    /// The bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the lines without their newlines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|piece| {
            let lines = piece.strip_suffix(b"\n").unwrap_or(piece);
            lines.split(|byte| *byte == b'\n')
        })
    }

    /// Returns the whole text.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len);
        self.pieces.iter().for_each(|piece| text.extend_from_slice(piece));
        text
    }
}

/// Divides whole lines into pieces.
fn push_pieces(mut text: &[u8], pieces: &mut Vec<Rc<[u8]>>) {
    while text.len() > 2 * PIECE_BYTES {
        let rest = text.get(PIECE_BYTES..).unwrap_or_default();
        let Some(line_end) = memchr(b'\n', rest) else { break };
        let (piece, after) = text.split_at(PIECE_BYTES + line_end + 1);
        pieces.push(piece.into());
        text = after;
    }
    if !text.is_empty() {
        pieces.push(text.into());
    }
}

/// A text being made from another one and a delta.
struct TextPatch<'t> {
    base: &'t ManifestText,
    /// The piece that is read, where it begins, and how much of it was read.
    piece: usize,
    piece_start: usize,
    read: usize,
    /// Text that is not in a piece yet.
    pending: Vec<u8>,
    pieces: Vec<Rc<[u8]>>,
}

impl TextPatch<'_> {
    /// Reads the base up to a position, and passes it on to the new text.
    fn keep_to(&mut self, position: usize) {
        while self.piece_start + self.read < position {
            let Some(piece) = self.base.pieces.get(self.piece) else { return };
            if self.read == 0 && self.piece_start + piece.len() <= position {
                push_pieces(&self.pending, &mut self.pieces);
                self.pending.clear();
                self.pieces.push(piece.clone());
                self.read = piece.len();
            } else {
                let end = piece.len().min(position - self.piece_start);
                self.pending.extend_from_slice(piece.get(self.read..end).unwrap_or_default());
                self.read = end;
            }
            self.end_piece(piece.len());
        }
    }

    /// Reads the base up to a position, and appends it to `removed`.
    fn remove_to(&mut self, position: usize, removed: &mut Vec<u8>) {
        while self.piece_start + self.read < position {
            let Some(piece) = self.base.pieces.get(self.piece) else { return };
            let end = piece.len().min(position - self.piece_start);
            removed.extend_from_slice(piece.get(self.read..end).unwrap_or_default());
            self.read = end;
            self.end_piece(piece.len());
        }
    }

    fn end_piece(&mut self, piece_len: usize) {
        if self.read == piece_len {
            self.piece_start += piece_len;
            self.piece += 1;
            self.read = 0;
        }
    }

    fn finish(mut self) -> ManifestText {
        if self.read > 0 {
            let end = self.piece_start + self.base.pieces.get(self.piece).map_or(0, |p| p.len());
            self.keep_to(end);
        }
        push_pieces(&self.pending, &mut self.pieces);
        self.pieces.extend(self.base.pieces.iter().skip(self.piece).cloned());
        let len = self.pieces.iter().map(|piece| piece.len()).sum();
        ManifestText { pieces: Rc::new(self.pieces), len }
    }
}

/// A text after a delta, with the lines that were removed and added.
struct PatchedText {
    text: ManifestText,
    removed: Vec<u8>,
    added: Vec<u8>,
}

/// Applies a delta. Mercurial's hunks are whole lines; those of others are refused here.
fn patch(base: &ManifestText, delta: &[u8]) -> Result<Option<PatchedText>, DeltaError> {
    let pieces = Vec::with_capacity(base.pieces.len() + 2);
    let pending = Vec::new();
    let mut patch = TextPatch { base, piece: 0, piece_start: 0, read: 0, pending, pieces };
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let is_whole = |lines: &[u8]| lines.last().is_none_or(|last| *last == b'\n');
    for hunk in hunks(delta, base.len) {
        let hunk = hunk?;
        patch.keep_to(hunk.start);
        let before = removed.len();
        patch.remove_to(hunk.end, &mut removed);
        // A hunk within lines would leave a part of one in a piece, or begin in one.
        let starts_line = is_whole(&patch.pending);
        if !starts_line || !is_whole(removed.get(before..).unwrap_or_default()) {
            return Ok(None);
        }
        if !is_whole(hunk.data) {
            return Ok(None);
        }
        added.extend_from_slice(hunk.data);
        patch.pending.extend_from_slice(hunk.data);
    }
    Ok(Some(PatchedText { text: patch.finish(), removed, added }))
}

/// A line of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ManifestLine<'l> {
    pub(crate) path: &'l [u8],
    pub(crate) file: Node,
    pub(crate) flag: FileFlag,
}

/// The kind of a file, which its text does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FileFlag {
    Plain = 0,
    Executable = 1,
    Link = 2,
}

impl FileFlag {
    /// The letter at the end of a line.
    pub(crate) fn letter(self) -> &'static [u8] {
        match self {
            FileFlag::Plain => b"",
            FileFlag::Executable => b"x",
            FileFlag::Link => b"l",
        }
    }

    fn from_letter(letter: &[u8]) -> Option<FileFlag> {
        [FileFlag::Plain, FileFlag::Executable, FileFlag::Link]
            .into_iter()
            .find(|flag| flag.letter() == letter)
    }
}

impl<'l> ManifestLine<'l> {
    /// Reads a line without its newline; `None` if it is not one of a manifest of files.
    pub(crate) fn parse(line: &'l [u8]) -> Option<ManifestLine<'l>> {
        let at = memchr(0, line)?;
        let (path, rest) = line.split_at_checked(at)?;
        let (file, letter) = rest.get(1..)?.split_at_checked(40)?;
        let flag = FileFlag::from_letter(letter)?;
        let file = Node::from_hex(file)?;
        (!path.is_empty()).then_some(ManifestLine { path, file, flag })
    }

    /// Appends the line with its newline.
    pub(crate) fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.path);
        text.push(0);
        text.extend_from_slice(&self.file.to_hex());
        text.extend_from_slice(self.flag.letter());
        text.push(b'\n');
    }
}

/// Paths or other bytes by number.
#[derive(Default)]
pub(crate) struct PathTable {
    numbers: HashMap<Rc<[u8]>, u32, rustc_hash::FxBuildHasher>,
    paths: Vec<Rc<[u8]>>,
}

impl PathTable {
    fn number(&mut self, path: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.paths.len() as u32;
        let path: Rc<[u8]> = path.into();
        self.paths.push(path.clone());
        self.numbers.insert(path, number);
        number
    }

    /// Returns the path with a number.
    pub(crate) fn path(&self, number: u32) -> &[u8] {
        self.paths.get(number as usize).map_or(&[], |path| path)
    }
}

/// The revisions of files that manifests name, by number.
#[derive(Default)]
pub(crate) struct FileTable {
    index: IdIndex,
    nodes: Vec<Node>,
}

impl FileTable {
    /// Returns the number of a node, which it gets now if it is new.
    pub(crate) fn number(&mut self, node: Node) -> u32 {
        if let Some(number) = self.find(&node) {
            return number;
        }
        self.nodes.push(node);
        self.index.push(|place| self.nodes.get(place).map(|node| &node.0));
        self.nodes.len() as u32 - 1
    }

    /// Returns the number of a node, if it has one.
    pub(crate) fn find(&self, node: &Node) -> Option<u32> {
        let found = self.index.find(&node.0, |place| self.nodes.get(place).map(|node| &node.0));
        found.map(|place| place as u32)
    }

    /// Returns the node with a number.
    pub(crate) fn node(&self, number: u32) -> Node {
        self.nodes.get(number as usize).copied().unwrap_or(Node::NULL)
    }

    /// All nodes, in the order of their numbers.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}

/// A changed line: the number of a path, and the file revision that it now has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineChange {
    pub(crate) path: u32,
    /// The number of the file revision and, in the highest two bits, the flag; [`REMOVED`].
    value: u32,
}

/// The value of a line that is removed.
const REMOVED: u32 = u32::MAX;
/// The bits of a value that are the number of a file revision.
const FILE_BITS: u32 = 30;
/// The most file revisions of one conversion.
pub(crate) const MAX_FILES: u32 = (1 << FILE_BITS) - 1;

impl LineChange {
    fn set(path: u32, file: u32, flag: FileFlag) -> LineChange {
        LineChange { path, value: file | (flag as u32) << FILE_BITS }
    }

    fn removal(path: u32) -> LineChange {
        LineChange { path, value: REMOVED }
    }

    /// The file revision and its flag; `None` if the line is removed.
    pub(crate) fn file(self) -> Option<(u32, FileFlag)> {
        let flag = match self.value >> FILE_BITS {
            0 => FileFlag::Plain,
            1 => FileFlag::Executable,
            2 => FileFlag::Link,
            _ => return None,
        };
        Some((self.value & MAX_FILES, flag))
    }
}

/// A manifest, as changes of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manifest {
    pub(crate) node: Node,
    pub(crate) base: ManifestBase,
    /// Where its changes begin; they end where those of the next manifest begin.
    changes_start: usize,
    /// The last manifest that is made from this one; itself if none is.
    pub(crate) last_use: u32,
}

/// The manifest that changes apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestBase {
    /// None: all lines are added.
    Empty,
    /// One of this conversion.
    New(u32),
    /// One of an earlier conversion.
    Stored(Node),
}

/// Why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("manifest {node}: {what}")]
    Damaged { node: Node, what: &'static str },
    #[error("manifest {node} is a delta of {base}, which is missing")]
    MissingBase { node: Node, base: Node },
    #[error("more than {MAX_FILES} file revisions in one conversion")]
    TooManyFiles,
}

/// The manifests of a conversion, in the order of the source.
#[derive(Default)]
pub(crate) struct Manifests {
    manifests: Vec<Manifest>,
    numbers: IdMap<Node, u32>,
    changes: Vec<LineChange>,
    pub(crate) paths: PathTable,
    pub(crate) files: FileTable,
    /// Recent texts, with the manifest that used each last.
    texts: HashMap<u32, (ManifestText, u32), rustc_hash::FxBuildHasher>,
    stored_texts: IdMap<Node, ManifestText>,
    /// The bytes of all texts, most of which were never made.
    pub(crate) text_bytes: u64,
    /// Texts that were made again.
    pub(crate) remade: usize,
}

/// The number of texts that are kept; when twice as many are there, those used last stay.
const KEPT_TEXTS: usize = 256;

impl Manifests {
    /// The number of manifests.
    pub(crate) fn len(&self) -> usize {
        self.manifests.len()
    }

    /// Returns the number of a manifest.
    pub(crate) fn find(&self, node: &Node) -> Option<u32> {
        self.numbers.get(node).copied()
    }

    /// Returns a manifest and its changes, which are sorted by the numbers of paths.
    pub(crate) fn get(&self, number: u32) -> Option<(&Manifest, &[LineChange])> {
        let manifest = self.manifests.get(number as usize)?;
        let next = self.manifests.get(number as usize + 1);
        let end = next.map_or(self.changes.len(), |next| next.changes_start);
        Some((manifest, self.changes.get(manifest.changes_start..end)?))
    }

    /// Adds the next manifest. `stored_text` reads one of an earlier conversion.
    pub(crate) fn add<E: From<ManifestError>>(
        &mut self,
        node: Node,
        base: Node,
        delta: &[u8],
        stored_text: impl FnOnce(&Node) -> Result<Option<ManifestText>, E>,
    ) -> Result<(), E> {
        let number = self.manifests.len() as u32;
        let (base, text) = self.base_text(node, base, number, stored_text)?;
        let damaged = |what| ManifestError::Damaged { node, what };
        let patched =
            patch(&text, delta).map_err(|_| damaged("its delta does not fit its base"))?;
        let patched = match patched {
            Some(patched) => patched,
            None => patch_bytes(&text, delta).ok_or_else(|| damaged("its text is not lines"))?,
        };
        let changes_start = self.changes.len();
        self.add_changes(node, &patched)?;
        if let ManifestBase::New(base) = base
            && let Some(base) = self.manifests.get_mut(base as usize)
        {
            base.last_use = number;
        }
        self.text_bytes += patched.text.len() as u64;
        self.manifests.push(Manifest { node, base, changes_start, last_use: number });
        self.numbers.insert(node, number);
        self.texts.insert(number, (patched.text, number));
        self.drop_old_texts();
        Ok(())
    }

    /// Returns the base of a delta with its text.
    fn base_text<E: From<ManifestError>>(
        &mut self,
        node: Node,
        base: Node,
        number: u32,
        stored_text: impl FnOnce(&Node) -> Result<Option<ManifestText>, E>,
    ) -> Result<(ManifestBase, ManifestText), E> {
        if base.is_null() {
            return Ok((ManifestBase::Empty, ManifestText::default()));
        }
        if let Some(base) = self.find(&base) {
            return Ok((ManifestBase::New(base), self.text(base, number)));
        }
        let stored = ManifestBase::Stored(base);
        if let Some(text) = self.stored_texts.get(&base) {
            return Ok((stored, text.clone()));
        }
        let text = stored_text(&base)?.ok_or(ManifestError::MissingBase { node, base })?;
        self.stored_texts.insert(base, text.clone());
        Ok((stored, text))
    }

    /// Returns the text of a manifest of this conversion, for one with the number `user`.
    fn text(&mut self, number: u32, user: u32) -> ManifestText {
        if let Some((text, last_user)) = self.texts.get_mut(&number) {
            *last_user = user;
            return text.clone();
        }
        let text = self.remake_text(number);
        self.remade += 1;
        self.texts.insert(number, (text.clone(), user));
        text
    }

    /// Makes a text from the nearest one that is kept, and the changes since.
    fn remake_text(&self, number: u32) -> ManifestText {
        let mut chain = vec![number];
        let mut lines: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut add_lines = |text: &ManifestText| {
            for line in text.lines() {
                let path = line.split(|byte| *byte == 0).next().unwrap_or_default();
                lines.insert(path.to_vec(), [line, b"\n"].concat());
            }
        };
        while let Some((manifest, _)) = chain.last().and_then(|last| self.get(*last)) {
            match manifest.base {
                ManifestBase::Empty => break,
                ManifestBase::Stored(base) => {
                    self.stored_texts.get(&base).into_iter().for_each(&mut add_lines);
                    break;
                }
                ManifestBase::New(base) => match self.texts.get(&base) {
                    Some((text, _)) => {
                        add_lines(text);
                        break;
                    }
                    None => chain.push(base),
                },
            }
        }
        for number in chain.iter().rev() {
            let changes = self.get(*number).map_or(&[][..], |(_, changes)| changes);
            for change in changes {
                let path = self.paths.path(change.path);
                match change.file() {
                    None => {
                        lines.remove(path);
                    }
                    Some((file, flag)) => {
                        let mut line = Vec::new();
                        ManifestLine { path, file: self.files.node(file), flag }.write(&mut line);
                        lines.insert(path.to_vec(), line);
                    }
                }
            }
        }
        let text: Vec<u8> = lines.into_values().flatten().collect();
        ManifestText::new(&text)
    }

    fn drop_old_texts(&mut self) {
        if self.texts.len() <= 2 * KEPT_TEXTS {
            return;
        }
        let mut users: Vec<u32> = self.texts.values().map(|(_, user)| *user).collect();
        let (_, limit, _) = users.select_nth_unstable(KEPT_TEXTS);
        let limit = *limit;
        self.texts.retain(|_, (_, user)| *user > limit);
    }

    /// Records the lines that were removed and added; a line whose path is in both is changed.
    fn add_changes(&mut self, node: Node, patched: &PatchedText) -> Result<(), ManifestError> {
        let mut changes: Vec<LineChange> = Vec::new();
        let damaged = |what| ManifestError::Damaged { node, what };
        for line in whole_lines(&patched.added) {
            let line = ManifestLine::parse(line).ok_or(damaged("a line is not one of a file"))?;
            let file = self.files.number(line.file);
            if file >= MAX_FILES {
                return Err(ManifestError::TooManyFiles);
            }
            changes.push(LineChange::set(self.paths.number(line.path), file, line.flag));
        }
        for line in whole_lines(&patched.removed) {
            let line = ManifestLine::parse(line).ok_or(damaged("a line is not one of a file"))?;
            changes.push(LineChange::removal(self.paths.number(line.path)));
        }
        // Stable: an added line is before the removal of the former one.
        changes.sort_by_key(|change| change.path);
        changes.dedup_by_key(|change| change.path);
        self.changes.extend_from_slice(&changes);
        Ok(())
    }

    /// Returns the text of the manifest that was added last.
    pub(crate) fn newest_text(&self) -> Option<&ManifestText> {
        let number = (self.manifests.len() as u32).checked_sub(1)?;
        self.texts.get(&number).map(|(text, _)| text)
    }

    /// Gives back the memory that only the reading of manifests needs.
    pub(crate) fn end_reading(&mut self) {
        self.texts = HashMap::default();
        self.stored_texts = IdMap::default();
        self.paths.numbers = HashMap::default();
        self.changes.shrink_to_fit();
    }
}

fn whole_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.strip_suffix(b"\n").unwrap_or(text);
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Applies a delta whose hunks are not whole lines, and compares the lines of both texts. `None` if
/// the delta does not fit, or the result is not whole lines.
fn patch_bytes(base: &ManifestText, delta: &[u8]) -> Option<PatchedText> {
    let old = base.to_bytes();
    let mut new = Vec::new();
    crate::delta::apply_delta(&old, delta, &mut new).ok()?;
    if new.last().is_some_and(|last| *last != b'\n') {
        return None;
    }
    let by_path = |text: &[u8]| -> BTreeMap<Vec<u8>, Vec<u8>> {
        let path = |line: &[u8]| line.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        whole_lines(text).map(|line| (path(line), line.to_vec())).collect()
    };
    let (old_lines, new_lines) = (by_path(&old), by_path(&new));
    let join = |lines: &BTreeMap<Vec<u8>, Vec<u8>>, others: &BTreeMap<Vec<u8>, Vec<u8>>| {
        let differing = lines.iter().filter(|(path, line)| others.get(*path) != Some(line));
        differing.flat_map(|(_, line)| [line.as_slice(), b"\n"].concat()).collect::<Vec<u8>>()
    };
    Some(PatchedText {
        removed: join(&old_lines, &new_lines),
        added: join(&new_lines, &old_lines),
        text: ManifestText::new(&new),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hunk(start: usize, end: usize, data: &[u8]) -> Vec<u8> {
        let mut delta = Vec::new();
        [start, end, data.len()].iter().for_each(|n| delta.extend((*n as u32).to_be_bytes()));
        delta.extend_from_slice(data);
        delta
    }

    fn write(lines: &BTreeMap<u16, (u8, FileFlag)>) -> Vec<u8> {
        let mut text = Vec::new();
        for (path, (file, flag)) in lines {
            let path = format!("folder/{path:05}");
            let line = ManifestLine { path: path.as_bytes(), file: Node([*file; 20]), flag: *flag };
            line.write(&mut text);
        }
        text
    }

    /// The delta that replaces all between the common ends, by whole lines or by bytes.
    fn delta_of(old: &[u8], new: &[u8], is_by_lines: bool) -> Vec<u8> {
        let mut prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let tail = (&old[prefix..], &new[prefix..]);
        let mut suffix =
            tail.0.iter().rev().zip(tail.1.iter().rev()).take_while(|(a, b)| a == b).count();
        if is_by_lines {
            prefix = old[..prefix].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            let end = &old[old.len() - suffix..];
            suffix = end.iter().position(|b| *b == b'\n').map_or(0, |at| end.len() - at - 1);
        }
        hunk(prefix, old.len() - suffix, &new[prefix..new.len() - suffix])
    }

    #[derive(Debug)]
    struct NoError;

    impl From<ManifestError> for NoError {
        fn from(error: ManifestError) -> NoError {
            panic!("{error}")
        }
    }

    fn flag() -> impl Strategy<Value = FileFlag> {
        prop::sample::select(vec![FileFlag::Plain, FileFlag::Executable, FileFlag::Link])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The texts made from changes are those made by deltas, also after they were dropped.
        #[test]
        fn texts_are_remade_from_their_changes(
            steps in proptest::collection::vec(
                (proptest::collection::btree_map(0..400_u16, (any::<u8>(), flag()), 0..300),
                 any::<prop::sample::Index>(), any::<bool>()), 1..12),
        ) {
            let mut manifests = Manifests::default();
            let mut texts: Vec<Vec<u8>> = Vec::new();
            for (number, (lines, base, is_by_lines)) in steps.iter().enumerate() {
                let text = write(lines);
                let base = (number > 0).then(|| base.index(number));
                let old = base.map_or(&[][..], |base| &texts[base]);
                let delta = delta_of(old, &text, *is_by_lines);
                let node = |number: usize| Node([number as u8 + 1; 20]);
                let base = base.map_or(Node::NULL, node);
                manifests.add::<NoError>(node(number), base, &delta, |_| Ok(None)).unwrap();
                prop_assert_eq!(manifests.text(number as u32, 0).to_bytes(), text.clone());
                texts.push(text);
            }
            manifests.texts.clear();
            for (number, text) in texts.iter().enumerate() {
                prop_assert_eq!(&manifests.remake_text(number as u32).to_bytes(), text);
            }
        }
    }

    #[test]
    fn damaged_lines_are_refused() {
        let damaged: [&[u8]; 5] = [
            b"no newline",
            b"no node\n",
            b"\x000011223344556677889900112233445566778899\n",
            b"a\x00zz11223344556677889900112233445566778899\n",
            b"a\x000011223344556677889900112233445566778899t\n",
        ];
        for text in damaged {
            let mut manifests = Manifests::default();
            let delta = hunk(0, 0, text);
            let result =
                manifests.add::<ManifestError>(Node([1; 20]), Node::NULL, &delta, |_| Ok(None));
            assert!(matches!(result, Err(ManifestError::Damaged { .. })), "{text:?}");
        }
    }
}

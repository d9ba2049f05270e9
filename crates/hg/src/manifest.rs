//! Manifests: the lines that each one changes, without making their texts.
//!
//! The manifests of a history of 70,000 changesets have 25 GB of text, and differ from each other
//! by a few lines. A text is kept in pieces ([`ManifestText`]), which it shares with the texts that
//! it was made from; only the most recent ones are kept. All that remains of a manifest are the
//! lines it changes, as numbers of paths and of file revisions. An older text is made again from
//! them when a later delta needs it.

mod changed_text;
mod expected_parents;
mod hash_checks;
mod hasher;
mod manifest_line;
mod manifest_text;
mod number_tables;
mod stored_manifest_texts;
#[cfg(test)]
mod tests;

pub(crate) use expected_parents::ExpectedParents;
pub(crate) use manifest_line::{FileFlag, ManifestLine};
pub(crate) use manifest_text::ManifestText;
pub(crate) use number_tables::{FileTable, PathTable};
pub(crate) use stored_manifest_texts::ManifestTextReader;

use crate::object_id::{IdMap, Node};
use crate::path_text::path_text;
use crate::revision::RevisionHeader;
use hash_checks::HashChecks;
use manifest_text::{PatchError, PatchedText, check_lines, patch};
use std::collections::{BTreeMap, HashMap};
use std::mem;
use stored_manifest_texts::StoredManifestTexts;

/// A changed line: the path, and the file revision it has now; `None`: it is removed.
pub(crate) type ChangedFile = (Vec<u8>, Option<(Node, FileFlag)>);

/// The most folders that a path is in: git reads no trees that are deeper (`core.maxTreeDepth`).
/// Trees are made by recursion, for which a program's 8 MB of stack are enough at this depth.
const MAX_DEPTH: usize = 2048;

/// The bytes of a path that is too deep in a message.
const PATH_START_BYTES: usize = 60;
/// The most bytes of another path in a message.
const MAX_PATH_BYTES: usize = 1024;

/// Returns whether a path is in more folders than git reads.
pub(crate) fn is_too_deep(path: &[u8]) -> bool {
    path.len() > MAX_DEPTH && memchr::memchr_iter(b'/', path).count() > MAX_DEPTH
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
    /// Numbers of manifests; [`NO_PARENT`]; from [`OUTER_PARENT`] on, numbers of `outer_parents`.
    parents: [u32; 2],
    /// Where its changes begin; they end where those of the next manifest begin.
    changes_start: usize,
    /// The last manifest that is made from this one; itself if none is.
    pub(crate) last_use: u32,
}

/// No parent, in place of a number.
const NO_PARENT: u32 = u32::MAX;
/// The first number of a parent that is none of this conversion.
const OUTER_PARENT: u32 = 1 << 31;

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
    #[error("two texts of manifests have the id {node} (a collision of SHA-1)")]
    Collision { node: Node },
    #[error("manifest {node}: not supported: {flag}")]
    Unsupported { node: Node, flag: &'static str },
    #[error("manifest {node} is a delta of {base}, which is missing")]
    MissingBase { node: Node, base: Node },
    #[error("manifest {node}: a path is more than {MAX_DEPTH} folders deep: {path}...")]
    TooDeep { node: Node, path: String },
    #[error("manifest {node}: its lines are not sorted by path, or a path is there twice: {path}")]
    Order { node: Node, path: String },
    #[error("more than {MAX_FILES} file revisions in one conversion")]
    TooManyFiles,
}

/// The manifests of a conversion, in the order of the source.
#[derive(Default)]
pub(crate) struct Manifests {
    manifests: Vec<Manifest>,
    numbers: IdMap<Node, u32>,
    /// Parents that are none of this conversion.
    outer_parents: Vec<Node>,
    changes: Vec<LineChange>,
    pub(crate) paths: PathTable,
    pub(crate) files: FileTable,
    /// Recent texts, with the manifest that used each last.
    texts: HashMap<u32, (ManifestText, u32), rustc_hash::FxBuildHasher>,
    stored_texts: StoredManifestTexts,
    expected_parents: ExpectedParents,
    checks: HashChecks,
}

/// The number of texts that are kept; when twice as many are there, those used last stay.
const KEPT_TEXTS: usize = 256;

impl Manifests {
    /// Creates the list for manifests that should have these parents. Those that have others are
    /// hashed.
    pub(crate) fn new(mut expected_parents: ExpectedParents) -> Manifests {
        expected_parents.sort();
        Manifests { expected_parents, ..Manifests::default() }
    }

    /// The number of manifests.
    pub(crate) fn len(&self) -> usize {
        self.manifests.len()
    }

    /// The numbers of the manifests.
    pub(crate) fn numbers(&self) -> &IdMap<Node, u32> {
        &self.numbers
    }

    /// Returns the number of a manifest.
    fn find(&self, node: &Node) -> Option<u32> {
        self.numbers.get(node).copied()
    }

    /// Returns a manifest and its changes, which are sorted by the numbers of paths.
    pub(crate) fn get(&self, number: u32) -> Option<(&Manifest, &[LineChange])> {
        let manifest = self.manifests.get(number as usize)?;
        let next = self.manifests.get(number as usize + 1);
        let end = next.map_or(self.changes.len(), |next| next.changes_start);
        Some((manifest, self.changes.get(manifest.changes_start..end)?))
    }

    /// Returns the parents of a manifest; null: none.
    pub(crate) fn parents(&self, manifest: &Manifest) -> [Node; 2] {
        manifest.parents.map(|number| match number {
            NO_PARENT => Node::NULL,
            OUTER_PARENT.. => {
                let place = (number - OUTER_PARENT) as usize;
                self.outer_parents.get(place).copied().unwrap_or(Node::NULL)
            }
            _ => self.manifests.get(number as usize).map_or(Node::NULL, |parent| parent.node),
        })
    }

    fn parent_number(&mut self, parent: Node) -> u32 {
        if parent.is_null() {
            return NO_PARENT;
        }
        if let Some(number) = self.find(&parent) {
            return number;
        }
        self.outer_parents.push(parent);
        OUTER_PARENT + self.outer_parents.len() as u32 - 1
    }

    /// Adds the next manifest. `read` reads one of an earlier conversion. Texts are hashed later:
    /// see [`Manifests::finish_checks`].
    pub(crate) fn add<E: From<ManifestError>>(
        &mut self,
        header: &RevisionHeader,
        delta: &[u8],
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<(), E> {
        let RevisionHeader { node, base, .. } = *header;
        if let Some(flag) = header.refused_history_flag() {
            return Err(ManifestError::Unsupported { node, flag }.into());
        }
        let number = self.manifests.len() as u32;
        let (base, text) = self.base_text(node, base, number, read)?;
        let patched = apply(node, &text, delta)?;
        let changes_start = self.changes.len();
        let paths = self.add_changes(node, &patched)?;
        if let ManifestBase::New(base) = base
            && let Some(base) = self.manifests.get_mut(base as usize)
        {
            base.last_use = number;
        }
        let parents = [self.parent_number(header.p1), self.parent_number(header.p2)];
        self.manifests.push(Manifest { node, base, parents, changes_start, last_use: number });
        if let Some(former) = self.numbers.insert(node, number)
            && !self.text(former, number, read)?.is_equal(&patched.text)
        {
            return Err(ManifestError::Collision { node }.into());
        }
        self.check(header, delta.len(), (&text, &patched.text), paths)?;
        self.texts.insert(number, (patched.text, number));
        self.drop_old_texts(read)
    }

    /// Notes the newest manifest as one to check. First, its base is checked if that is due; the
    /// manifest itself, if the bytes received so far pay for that, or if its parents are not those
    /// of its changeset.
    fn check(
        &mut self,
        header: &RevisionHeader,
        delta_len: usize,
        (base_text, text): (&ManifestText, &ManifestText),
        paths: Vec<u32>,
    ) -> Result<(), ManifestError> {
        let number = (self.manifests.len() as u32).saturating_sub(1);
        let base = self.manifests.last().map_or(ManifestBase::Empty, |newest| newest.base);
        if let ManifestBase::New(base) = base
            && self.checks.is_check_due(base, &paths)
        {
            self.checks.check(base, base_text)?;
        }
        self.checks.add(number, *header, base, paths);
        if self.checks.pay(delta_len, text.len()) || !self.expected_parents.has(header) {
            self.checks.check(number, text)?;
        }
        Ok(())
    }

    /// Checks the ends of chains that were not checked yet.
    pub(crate) fn check_rest<E: From<ManifestError>>(
        &mut self,
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<(), E> {
        (0..self.manifests.len() as u32).rev().try_for_each(|number| self.check_hash(number, read))
    }

    /// Waits for the hashes that are being checked. The error is that of the first text that was
    /// given to be hashed and does not have its hash: it comes before those of manifests that were
    /// added later.
    pub(crate) fn finish_checks(&mut self) -> Result<(), ManifestError> {
        self.checks.finish()
    }

    /// Returns how many manifests were checked without their hashes, by the rule of
    /// [`HashChecks`].
    pub(crate) fn count_unhashed(&self) -> u64 {
        self.checks.count_unhashed()
    }

    /// Checks the hash of a manifest if it is not known to be right.
    fn check_hash<E: From<ManifestError>>(
        &mut self,
        number: u32,
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<(), E> {
        if !self.checks.is_unchecked(number) {
            return Ok(());
        }
        let text = match self.texts.get(&number) {
            Some((text, _)) => text.clone(),
            None => self.remake_text(number, read)?,
        };
        Ok(self.checks.check(number, &text)?)
    }

    /// Returns the base of a delta with its text.
    fn base_text<E: From<ManifestError>>(
        &mut self,
        node: Node,
        base: Node,
        number: u32,
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<(ManifestBase, ManifestText), E> {
        if base.is_null() {
            return Ok((ManifestBase::Empty, ManifestText::default()));
        }
        if let Some(base) = self.find(&base) {
            return Ok((ManifestBase::New(base), self.text(base, number, read)?));
        }
        Ok((ManifestBase::Stored(base), self.stored_text(node, base, read)?))
    }

    /// Returns the text of a manifest of an earlier conversion, which the manifest `node` needs.
    fn stored_text<E: From<ManifestError>>(
        &mut self,
        node: Node,
        base: Node,
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<ManifestText, E> {
        let text = self.stored_texts.read(base, read)?;
        Ok(text.ok_or(ManifestError::MissingBase { node, base })?)
    }

    /// Returns the text of a manifest of this conversion, for one with the number `user`.
    fn text<E: From<ManifestError>>(
        &mut self,
        number: u32,
        user: u32,
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<ManifestText, E> {
        if let Some((text, last_user)) = self.texts.get_mut(&number) {
            *last_user = user;
            return Ok(text.clone());
        }
        let text = self.remake_text(number, read)?;
        self.texts.insert(number, (text.clone(), user));
        Ok(text)
    }

    /// Makes a text from the nearest one that is kept, and the changes since.
    fn remake_text<E: From<ManifestError>>(
        &mut self,
        number: u32,
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<ManifestText, E> {
        let mut chain = vec![number];
        let base_text = loop {
            let last = chain.last().and_then(|last| self.get(*last));
            let Some((Manifest { node, base, .. }, _)) = last else {
                break ManifestText::default();
            };
            match *base {
                ManifestBase::Empty => break ManifestText::default(),
                ManifestBase::Stored(base) => break self.stored_text(*node, base, read)?,
                ManifestBase::New(base) => match self.texts.get(&base) {
                    Some((text, _)) => break text.clone(),
                    None => chain.push(base),
                },
            }
        };
        // The last change of each path counts.
        let mut is_seen = vec![false; self.paths.len()];
        let mut lines: Vec<(&[u8], Option<Vec<u8>>)> = Vec::new();
        for number in chain {
            let changes = self.get(number).map_or(&[][..], |(_, changes)| changes);
            for change in changes {
                let Some(is_seen) = is_seen.get_mut(change.path as usize) else { continue };
                if mem::replace(is_seen, true) {
                    continue;
                }
                let path = self.paths.path(change.path);
                let line = change.file().map(|(file, flag)| {
                    let mut line = Vec::new();
                    ManifestLine { path, file: self.files.node(file), flag }.write(&mut line);
                    line
                });
                lines.push((path, line));
            }
        }
        lines.sort_unstable_by_key(|(path, _)| *path);
        Ok(base_text.replace_lines(&lines))
    }

    /// Drops texts; those that no other one was made from are checked before.
    fn drop_old_texts<E: From<ManifestError>>(
        &mut self,
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<(), E> {
        if self.texts.len() <= 2 * KEPT_TEXTS {
            return Ok(());
        }
        let mut users: Vec<u32> = self.texts.values().map(|(_, user)| *user).collect();
        let (_, limit, _) = users.select_nth_unstable(KEPT_TEXTS);
        let limit = *limit;
        let dropped = self.texts.iter().filter(|(_, (_, user))| *user <= limit);
        let is_end = |number: &u32| self.get(*number).is_some_and(|(m, _)| m.last_use == *number);
        let mut ends: Vec<u32> = dropped.map(|(number, _)| *number).filter(is_end).collect();
        // The newest one first: others may be checked with it.
        ends.sort_unstable();
        ends.into_iter().rev().try_for_each(|number| self.check_hash(number, read))?;
        self.texts.retain(|_, (_, user)| *user > limit);
        Ok(())
    }

    /// Records the lines that were removed and added; a line whose path is in both is changed.
    /// Returns the paths that were added, removed or flagged.
    fn add_changes(
        &mut self,
        node: Node,
        patched: &PatchedText,
    ) -> Result<Vec<u32>, ManifestError> {
        let mut changes: Vec<LineChange> = Vec::new();
        let mut flags: Vec<(u32, FileFlag, bool)> = Vec::new();
        let damaged = |what| ManifestError::Damaged { node, what };
        for line in whole_lines(&patched.added) {
            let line = ManifestLine::parse(line).ok_or(damaged("a line is not one of a file"))?;
            if is_too_deep(line.path) {
                let start = line.path.get(..PATH_START_BYTES).unwrap_or_default();
                let path = path_text(start);
                return Err(ManifestError::TooDeep { node, path });
            }
            let file = self.files.number(line.file);
            if file >= MAX_FILES {
                return Err(ManifestError::TooManyFiles);
            }
            let path = self.paths.number(line.path);
            changes.push(LineChange::set(path, file, line.flag));
            flags.push((path, line.flag, true));
        }
        for line in whole_lines(&patched.removed) {
            let line = ManifestLine::parse(line).ok_or(damaged("a line is not one of a file"))?;
            let path = self.paths.number(line.path);
            changes.push(LineChange::removal(path));
            flags.push((path, line.flag, false));
        }
        // Stable: an added line is before the removal of the former one.
        changes.sort_by_key(|change| change.path);
        changes.dedup_by_key(|change| change.path);
        self.changes.extend_from_slice(&changes);
        flags.sort_unstable();
        let by_path = flags.chunk_by(|a, b| a.0 == b.0);
        // Only the file revision differs where a line with the same flag replaces one.
        let others = by_path
            .filter(|lines| !matches!(lines, [(_, old, false), (_, new, true)] if old == new));
        Ok(others.filter_map(|lines| lines.first().map(|line| line.0)).collect())
    }

    /// Returns the text of the manifest that was added last.
    pub(crate) fn newest_text(&self) -> Option<&ManifestText> {
        let number = (self.manifests.len() as u32).checked_sub(1)?;
        self.texts.get(&number).map(|(text, _)| text)
    }

    /// Gives back the memory that only the reading of manifests needs.
    pub(crate) fn end_reading(&mut self) {
        self.texts = HashMap::default();
        self.stored_texts = StoredManifestTexts::default();
        self.checks = HashChecks::default();
        self.expected_parents = ExpectedParents::default();
        self.paths.end_numbering();
        self.changes.shrink_to_fit();
    }
}

fn whole_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.strip_suffix(b"\n").unwrap_or(text);
    lines.split(|byte| *byte == b'\n').filter(|_| !text.is_empty())
}

/// Applies the delta of a manifest to the text of its base.
fn apply(node: Node, base: &ManifestText, delta: &[u8]) -> Result<PatchedText, ManifestError> {
    let failure = |error| match error {
        PatchError::Delta(_) => {
            ManifestError::Damaged { node, what: "its delta does not fit its base" }
        }
        PatchError::Order { path } => {
            let start = path.get(..MAX_PATH_BYTES).unwrap_or(&path);
            ManifestError::Order { node, path: path_text(start) }
        }
    };
    let patched = match patch(base, delta).map_err(failure)? {
        Some(patched) => Some(patched),
        None => patch_bytes(base, delta).map_err(failure)?,
    };
    patched.ok_or(ManifestError::Damaged { node, what: "its text is not lines" })
}

/// Applies a delta whose hunks are not whole lines, and compares the lines of both texts. `None` if
/// the result is not whole lines.
fn patch_bytes(base: &ManifestText, delta: &[u8]) -> Result<Option<PatchedText>, PatchError> {
    let old = base.to_bytes();
    let mut new = Vec::new();
    crate::delta::apply_delta(&old, delta, &mut new)?;
    if new.last().is_some_and(|last| *last != b'\n') {
        return Ok(None);
    }
    check_lines(None, &new)?;
    let by_path = |text: &[u8]| -> BTreeMap<Vec<u8>, Vec<u8>> {
        let path = |line: &[u8]| line.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        whole_lines(text).map(|line| (path(line), line.to_vec())).collect()
    };
    let (old_lines, new_lines) = (by_path(&old), by_path(&new));
    let join = |lines: &BTreeMap<Vec<u8>, Vec<u8>>, others: &BTreeMap<Vec<u8>, Vec<u8>>| {
        let differing = lines.iter().filter(|(path, line)| others.get(*path) != Some(line));
        differing.flat_map(|(_, line)| [line.as_slice(), b"\n"].concat()).collect::<Vec<u8>>()
    };
    Ok(Some(PatchedText {
        removed: join(&old_lines, &new_lines),
        added: join(&new_lines, &old_lines),
        text: ManifestText::new(&new),
    }))
}

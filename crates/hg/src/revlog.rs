//! Revlogs: the files in which Mercurial keeps the revisions of the changelog, the manifest and
//! each file.
//!
//! An index has an entry of fixed size for each revision. The data of a revision, compressed, is
//! either a full text or a delta against an earlier revision. It stands in a file of its own, or,
//! while both are small, between the entries of the index. Formats 0 and 1 are read; format 2 and
//! side data are refused (mercurial/revlog.py, `hg help internals.revlogs`).
//!
//! Another process may append while a revlog is read. The index that was read when it was opened
//! holds. A last entry that is incomplete does not count, and [`Revlog::is_complete`] tells of it.

mod chunk;
mod index;

use crate::delta::apply_delta;
use crate::object_id::Node;
use crate::revision::ChangeError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

pub use chunk::{ChunkDecoder, ChunkError};
pub use index::RevlogEntry;
use index::{IndexContent, IndexError};

/// The largest text that the index can describe.
const MAX_TEXT_BYTES: usize = i32::MAX as usize;

/// How much of the data is read at once, as most reading goes forward.
const READ_BYTES: usize = 64 << 10;

/// Why a revlog cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RevlogError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// An entry of the index contradicts the format.
    #[error("{}: revision {revision}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The revision number.
        revision: u32,
        /// A description of the damage.
        what: String,
    },
    /// The format has a version or feature that is not supported.
    #[error("{}: {what}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The feature.
        what: String,
    },
}

impl From<RevlogError> for ChangeError {
    fn from(error: RevlogError) -> ChangeError {
        match error {
            RevlogError::Read { path, source } => {
                let what = format!("{}: {source}", path.display());
                ChangeError::Read(io::Error::new(source.kind(), what))
            }
            RevlogError::Damaged { .. } => ChangeError::Damaged { what: error.to_string() },
            RevlogError::Unsupported { .. } => ChangeError::Unsupported { what: error.to_string() },
        }
    }
}

/// An open revlog: its index in memory, its data on disk.
pub struct Revlog {
    index_path: PathBuf,
    data_path: PathBuf,
    content: IndexContent,
    data_file: Option<File>,
    /// Bytes of the data, and where they begin in the file.
    window: Vec<u8>,
    window_start: u64,
    /// The text read last and its revision: the base of the next one, most often.
    recent: Option<u32>,
    text: Vec<u8>,
    delta: Vec<u8>,
    next_text: Vec<u8>,
}

impl Revlog {
    /// Reads the index of a revlog, whose data is in `data_path` unless the index contains it.
    /// Returns `None` if there is no index: such a revlog has no revisions.
    pub fn open(index_path: PathBuf, data_path: PathBuf) -> Result<Option<Revlog>, RevlogError> {
        let file = match File::open(&index_path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RevlogError::Read { path: index_path, source }),
        };
        let content = match index::read_index(file) {
            Ok(content) => content,
            Err(error) => return Err(describe(error, &index_path)),
        };
        Ok(Some(Revlog { data_path, content, ..Revlog::without_revisions(index_path) }))
    }

    /// Creates the revlog of a file that does not exist.
    pub(crate) fn without_revisions(index_path: PathBuf) -> Revlog {
        Revlog {
            index_path,
            data_path: PathBuf::new(),
            content: IndexContent { is_complete: true, ..IndexContent::default() },
            data_file: None,
            window: Vec::new(),
            window_start: 0,
            recent: None,
            text: Vec::new(),
            delta: Vec::new(),
            next_text: Vec::new(),
        }
    }

    /// Returns the number of revisions.
    pub fn len(&self) -> u32 {
        self.content.entries.len() as u32
    }

    /// Returns whether there is no revision.
    pub fn is_empty(&self) -> bool {
        self.content.entries.is_empty()
    }

    /// Returns whether the index ended with a complete entry: false while another process appends
    /// to it, and for a file that was cut off.
    pub fn is_complete(&self) -> bool {
        self.content.is_complete
    }

    /// Returns the entry of a revision.
    pub fn entry(&self, revision: u32) -> Option<&RevlogEntry> {
        self.content.entries.get(revision as usize)
    }

    /// Returns all entries, in the order of their revision numbers.
    pub fn entries(&self) -> &[RevlogEntry] {
        &self.content.entries
    }

    /// Returns whether the file still has the last revision that was read, under its number.
    /// Revisions may have been added.
    pub fn is_current(&self) -> Result<bool, RevlogError> {
        let Some(last) = self.content.entries.last() else { return Ok(true) };
        match index::read_node(&self.index_path, self.len() - 1, last.data_start()) {
            Ok(node) => Ok(node == Some(last.node)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(RevlogError::Read { path: self.index_path.clone(), source }),
        }
    }

    /// Returns the node of a revision; null for none.
    pub fn node(&self, revision: Option<u32>) -> Node {
        revision.and_then(|revision| self.entry(revision)).map_or(Node::NULL, |entry| entry.node)
    }

    /// Returns the revision that the data of this one is a delta against, or `None` if it is a full
    /// text.
    pub fn delta_base(&self, revision: u32) -> Option<u32> {
        let base = self.entry(revision)?.base()?;
        if base == revision {
            None
        } else if self.content.is_general_delta {
            Some(base)
        } else {
            revision.checked_sub(1)
        }
    }

    /// Writes the data of a revision, decompressed, over `data`: a delta if it has a
    /// [`Self::delta_base`], else the full text.
    pub fn read_data(
        &mut self,
        revision: u32,
        decoder: &mut ChunkDecoder,
        data: &mut Vec<u8>,
    ) -> Result<(), RevlogError> {
        let limit = self.data_limit(revision);
        let chunk = self.load_chunk(revision)?;
        match decoder.decode(chunk, limit, data) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.damage(revision, error.to_string())),
        }
    }

    /// Returns the text of a revision, rebuilt from its chain of deltas.
    pub fn read_text(
        &mut self,
        revision: u32,
        decoder: &mut ChunkDecoder,
    ) -> Result<&[u8], RevlogError> {
        let mut chain = Vec::new();
        let mut current = revision;
        let is_cached = loop {
            if self.recent == Some(current) {
                break true;
            }
            chain.push(current);
            match self.delta_base(current) {
                // A base is always an earlier revision, so that this ends.
                Some(base) => current = base,
                None => break false,
            }
        };
        self.recent = None;
        if !is_cached {
            let full = chain.pop().unwrap_or(revision);
            let mut text = std::mem::take(&mut self.text);
            self.read_data(full, decoder, &mut text)?;
            self.text = text;
            self.check_text(full)?;
        }
        while let Some(revision) = chain.pop() {
            let mut delta = std::mem::take(&mut self.delta);
            self.read_data(revision, decoder, &mut delta)?;
            self.delta = delta;
            if apply_delta(&self.text, &self.delta, &mut self.next_text).is_err() {
                return Err(self.damage(revision, "the delta does not fit its base".to_owned()));
            }
            std::mem::swap(&mut self.text, &mut self.next_text);
            self.check_text(revision)?;
        }
        self.recent = Some(revision);
        Ok(&self.text)
    }

    /// Checks that the text just built has the length in the index.
    fn check_text(&self, revision: u32) -> Result<(), RevlogError> {
        let found = self.text.len();
        let expected = self.entry(revision).and_then(RevlogEntry::text_len);
        match expected {
            Some(expected) if expected as usize != found => {
                let what = format!("a text of {found} bytes instead of {expected}");
                Err(self.damage(revision, what))
            }
            _ if found > MAX_TEXT_BYTES => {
                Err(self.damage(revision, "a text over 2 GB".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Returns how long the data of a revision can be when decompressed.
    fn data_limit(&self, revision: u32) -> usize {
        let text_len =
            |revision| self.entry(revision).and_then(RevlogEntry::text_len).map(|len| len as usize);
        let Some(new) = text_len(revision) else { return MAX_TEXT_BYTES };
        let Some(base) = self.delta_base(revision) else { return new };
        let Some(old) = text_len(base) else { return MAX_TEXT_BYTES };
        // A delta of one hunk for each byte, and one more.
        let hunks = new.saturating_add(old).saturating_add(1).saturating_mul(12);
        hunks.saturating_add(new).min(MAX_TEXT_BYTES)
    }

    /// Returns the data of a revision as it is stored.
    fn load_chunk(&mut self, revision: u32) -> Result<&[u8], RevlogError> {
        let Some(entry) = self.entry(revision) else {
            return Err(self.damage(revision, "no such revision".to_owned()));
        };
        let (mut start, len) = (entry.data_start(), entry.data_len() as usize);
        if len == 0 {
            return Ok(&[]);
        }
        if self.content.is_inline {
            start += (u64::from(revision) + 1) * index::ENTRY_BYTES as u64;
        }
        if self.content.inline_bytes.is_empty() {
            self.fill_window(revision, start, len)?;
        }
        let found = if self.content.inline_bytes.is_empty() {
            let skip = start.wrapping_sub(self.window_start) as usize;
            self.window.get(skip..).and_then(|rest| rest.get(..len))
        } else {
            self.content.inline_bytes.get(start as usize..).and_then(|rest| rest.get(..len))
        };
        found.ok_or_else(|| damage(&self.index_path, revision, "its data is cut off".to_owned()))
    }

    /// Makes the window contain these bytes of the data, unless the file ends before.
    fn fill_window(&mut self, revision: u32, start: u64, len: usize) -> Result<(), RevlogError> {
        let window_end = self.window_start + self.window.len() as u64;
        if start >= self.window_start && start.saturating_add(len as u64) <= window_end {
            return Ok(());
        }
        let path = if self.content.is_inline { &self.index_path } else { &self.data_path };
        let read_error = |source| RevlogError::Read { path: path.clone(), source };
        if self.data_file.is_none() {
            self.data_file = Some(File::open(path).map_err(read_error)?);
        }
        let Some(file) = &self.data_file else { return Ok(()) };
        let file_len = file.metadata().map_err(read_error)?.len();
        let available = file_len.saturating_sub(start);
        if available < len as u64 {
            return Err(damage(path, revision, "its data is cut off".to_owned()));
        }
        let wanted = available.min(len.max(READ_BYTES) as u64) as usize;
        self.window.clear();
        self.window.resize(wanted, 0);
        self.window_start = start;
        if let Err(source) = file.read_exact_at(&mut self.window, start) {
            let error = read_error(source);
            self.window.clear();
            return Err(error);
        }
        Ok(())
    }

    /// Creates the error of a revision whose data is damaged.
    pub(crate) fn damage(&self, revision: u32, what: String) -> RevlogError {
        damage(&self.index_path, revision, what)
    }
}

fn damage(path: &Path, revision: u32, what: String) -> RevlogError {
    RevlogError::Damaged { path: path.to_owned(), revision, what }
}

fn describe(error: IndexError, path: &Path) -> RevlogError {
    match error {
        IndexError::Read(source) => RevlogError::Read { path: path.to_owned(), source },
        IndexError::Damaged { revision, what } => damage(path, revision, what.to_owned()),
        IndexError::Unsupported(what) => RevlogError::Unsupported { path: path.to_owned(), what },
    }
}

#[cfg(test)]
mod tests;

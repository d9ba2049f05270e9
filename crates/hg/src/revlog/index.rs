//! The index of a revlog, read into a table of its entries.

use crate::object_id::{IdMap, Node};
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The size of an entry of format 1.
pub(super) const ENTRY_BYTES: usize = 64;
/// The size of an entry of format 0.
const OLD_ENTRY_BYTES: usize = 76;

/// An index with data up to this size is kept in memory: most files of a repository are so small.
const KEPT_INLINE_BYTES: u64 = 256 << 10;

/// How many entries memory is reserved for at once.
const RESERVED_ENTRIES: usize = 1 << 16;

/// The flags of the header, in the upper half of the first four bytes.
const INLINE_DATA: u32 = 1 << 16;
const GENERAL_DELTA: u32 = 1 << 17;

/// No revision, in an entry.
const NONE: u32 = u32::MAX;

/// The entry of a revision: 52 bytes, as an index may have millions of them.
#[derive(Clone, Copy, Debug)]
pub struct RevlogEntry {
    /// The SHA-1 of the parents and the text.
    pub node: Node,
    /// The start of the data in the upper 48 bits, flags below; as two halves, for alignment.
    start_and_flags: [u32; 2],
    data_len: u32,
    text_len: u32,
    base: u32,
    link: u32,
    p1: u32,
    p2: u32,
}

impl RevlogEntry {
    /// Returns the first parent.
    pub fn p1(&self) -> Option<u32> {
        optional(self.p1)
    }

    /// Returns the second parent.
    pub fn p2(&self) -> Option<u32> {
        optional(self.p2)
    }

    /// Returns the revision of the changelog that introduced this one.
    pub fn link(&self) -> Option<u32> {
        optional(self.link)
    }

    /// Returns the flags ([`crate::Revision::CENSORED`] and its neighbours).
    pub fn flags(&self) -> u16 {
        self.start_and_flags[1] as u16
    }

    /// Returns the length of the text in bytes; `None` where the format does not say.
    pub fn text_len(&self) -> Option<u32> {
        optional(self.text_len)
    }

    pub(super) fn base(&self) -> Option<u32> {
        optional(self.base)
    }

    pub(super) fn data_start(&self) -> u64 {
        u64::from(self.start_and_flags[0]) << 16 | u64::from(self.start_and_flags[1] >> 16)
    }

    pub(super) fn data_len(&self) -> u32 {
        self.data_len
    }
}

fn optional(value: u32) -> Option<u32> {
    (value != NONE).then_some(value)
}

/// The content of the file of an index.
#[derive(Default)]
pub(super) struct IndexContent {
    pub(super) entries: Vec<RevlogEntry>,
    pub(super) is_general_delta: bool,
    /// Whether the data stands between the entries.
    pub(super) is_inline: bool,
    /// The whole file, if it is inline and small; else empty.
    pub(super) inline_bytes: Vec<u8>,
    pub(super) is_complete: bool,
}

/// Why an index cannot be read.
#[derive(Debug)]
pub(super) enum IndexError {
    Read(io::Error),
    Damaged { revision: u32, what: &'static str },
    Unsupported(String),
}

impl From<io::Error> for IndexError {
    fn from(error: io::Error) -> IndexError {
        IndexError::Read(error)
    }
}

/// Reads the index in a file.
pub(super) fn read_index(mut file: File) -> Result<IndexContent, IndexError> {
    // Bytes that are appended from now on do not count.
    let file_len = file.metadata()?.len();
    if file_len <= KEPT_INLINE_BYTES {
        let mut bytes = Vec::with_capacity(file_len as usize);
        file.take(file_len).read_to_end(&mut bytes)?;
        let first = bytes.first_chunk::<4>().copied().unwrap_or_default();
        let mut content = parse(&mut bytes.as_slice(), first, bytes.len() as u64)?;
        if content.is_inline {
            content.inline_bytes = bytes;
        }
        return Ok(content);
    }
    let mut first = [0; 4];
    file.read_exact(&mut first)?;
    io::Seek::rewind(&mut file)?;
    // With data between the entries, most of a large buffer is thrown away.
    let buffer_bytes =
        if u32::from_be_bytes(first) & INLINE_DATA == 0 { 64 << 10 } else { 4 << 10 };
    parse(&mut BufReader::with_capacity(buffer_bytes, file), first, file_len)
}

/// Reads the node of a revision from the file of an index, which may have changed since it was
/// read. `None` if the file ends before.
pub(super) fn read_node(path: &Path, revision: u32, data_start: u64) -> io::Result<Option<Node>> {
    let file = File::open(path)?;
    let file_len = file.metadata()?.len();
    let mut first = [0; 4];
    if file_len < 4 {
        return Ok(None);
    }
    file.read_exact_at(&mut first, 0)?;
    let header = u32::from_be_bytes(first);
    let (entry_bytes, node_start) =
        if header == 0 { (OLD_ENTRY_BYTES as u64, 56) } else { (ENTRY_BYTES as u64, 32) };
    let data_before = if header & INLINE_DATA == 0 { 0 } else { data_start };
    let start = u64::from(revision) * entry_bytes + data_before + node_start;
    if file_len < start + 20 {
        return Ok(None);
    }
    let mut node = [0; 20];
    file.read_exact_at(&mut node, start)?;
    Ok(Some(Node(node)))
}

/// A source of bytes that can go forward without reading.
trait ForwardRead: io::Read {
    fn skip(&mut self, len: u64) -> io::Result<()>;
}

impl ForwardRead for &[u8] {
    fn skip(&mut self, len: u64) -> io::Result<()> {
        *self = self.get(len as usize..).unwrap_or_default();
        Ok(())
    }
}

impl ForwardRead for BufReader<File> {
    fn skip(&mut self, len: u64) -> io::Result<()> {
        // The length fits: it is a difference of offsets in one file.
        self.seek_relative(len as i64)
    }
}

/// Parses an index of `file_len` bytes, of which `first` are the first ones.
fn parse(
    input: &mut impl ForwardRead,
    first: [u8; 4],
    file_len: u64,
) -> Result<IndexContent, IndexError> {
    let mut content = IndexContent { is_complete: true, ..IndexContent::default() };
    if file_len < 4 {
        content.is_complete = file_len == 0;
        return Ok(content);
    }
    let header = u32::from_be_bytes(first);
    match (header & 0xffff, header & !0xffff) {
        (0, 0) => parse_old_entries(&mut content, input, file_len)?,
        (1, flags) if flags & !(INLINE_DATA | GENERAL_DELTA) == 0 => {
            content.is_inline = flags & INLINE_DATA != 0;
            content.is_general_delta = flags & GENERAL_DELTA != 0;
            parse_entries(&mut content, input, file_len)?;
        }
        (version, flags) => {
            let what = format!("format {version} with flags {:#x} of revlogs", flags >> 16);
            return Err(IndexError::Unsupported(what));
        }
    }
    Ok(content)
}

/// Parses entries of format 1.
fn parse_entries(
    content: &mut IndexContent,
    input: &mut impl ForwardRead,
    file_len: u64,
) -> Result<(), IndexError> {
    let mut position = 0;
    let mut bytes = [0; ENTRY_BYTES];
    while position < file_len {
        if file_len - position < ENTRY_BYTES as u64 {
            content.is_complete = false;
            break;
        }
        input.read_exact(&mut bytes)?;
        let revision = revision_number(content)?;
        let entry =
            parse_entry(&bytes, revision).map_err(|what| IndexError::Damaged { revision, what })?;
        position += ENTRY_BYTES as u64;
        if content.is_inline {
            if file_len - position < u64::from(entry.data_len) {
                content.is_complete = false;
                break;
            }
            input.skip(u64::from(entry.data_len))?;
            position += u64::from(entry.data_len);
        }
        reserve(content, (file_len - position) / ENTRY_BYTES as u64);
        content.entries.push(entry);
    }
    Ok(())
}

/// Makes room for entries: not for all at once, as the length of a file costs nothing.
fn reserve(content: &mut IndexContent, remaining: u64) {
    if !content.is_inline && content.entries.len() == content.entries.capacity() {
        let step = content.entries.len().max(RESERVED_ENTRIES) as u64;
        content.entries.reserve_exact(remaining.min(step) as usize + 1);
    }
}

fn revision_number(content: &IndexContent) -> Result<u32, IndexError> {
    let count = content.entries.len();
    if count >= i32::MAX as usize {
        return Err(IndexError::Damaged { revision: NONE, what: "too many revisions" });
    }
    Ok(count as u32)
}

fn parse_entry(bytes: &[u8; ENTRY_BYTES], revision: u32) -> Result<RevlogEntry, &'static str> {
    let (words, _) = bytes.as_chunks::<4>();
    let word = |number: usize| words.get(number).map_or(0, |word| u32::from_be_bytes(*word));
    let node = bytes.get(32..).and_then(|rest| rest.first_chunk::<20>());
    let start = if revision == 0 {
        // The header stands there.
        [0, word(1) & 0xffff]
    } else {
        [word(0), word(1)]
    };
    let entry = RevlogEntry {
        node: Node(*node.unwrap_or(&[0; 20])),
        start_and_flags: start,
        data_len: word(2),
        text_len: word(3),
        base: word(4),
        link: word(5),
        p1: word(6),
        p2: word(7),
    };
    check_entry(&entry, revision)?;
    Ok(entry)
}

/// Checks the numbers of an entry: -1 is none, and other negative numbers do not exist.
fn check_entry(entry: &RevlogEntry, revision: u32) -> Result<(), &'static str> {
    let is_number = |value: u32| value == NONE || value <= i32::MAX as u32;
    let is_earlier = |value: u32| value == NONE || value < revision;
    if entry.data_len > i32::MAX as u32 || !is_number(entry.text_len) {
        return Err("a length is negative");
    }
    if !is_earlier(entry.p1) || !is_earlier(entry.p2) {
        return Err("a parent is not an earlier revision");
    }
    if entry.base != revision && !is_earlier(entry.base) {
        return Err("the base of the delta is not an earlier revision");
    }
    if !is_number(entry.link) {
        return Err("the number of the changeset is negative");
    }
    Ok(())
}

/// Parses entries of format 0, which names parents by their nodes.
fn parse_old_entries(
    content: &mut IndexContent,
    input: &mut impl ForwardRead,
    file_len: u64,
) -> Result<(), IndexError> {
    let mut revisions: IdMap<Node, u32> = IdMap::default();
    let mut bytes = [0; OLD_ENTRY_BYTES];
    for _ in 0..file_len / OLD_ENTRY_BYTES as u64 {
        input.read_exact(&mut bytes)?;
        let revision = revision_number(content)?;
        let entry = parse_old_entry(&bytes, &revisions)
            .and_then(|entry| check_entry(&entry, revision).map(|()| entry))
            .map_err(|what| IndexError::Damaged { revision, what })?;
        revisions.insert(entry.node, revision);
        content.entries.push(entry);
    }
    content.is_complete = file_len.is_multiple_of(OLD_ENTRY_BYTES as u64);
    Ok(())
}

fn parse_old_entry(
    bytes: &[u8; OLD_ENTRY_BYTES],
    revisions: &IdMap<Node, u32>,
) -> Result<RevlogEntry, &'static str> {
    let (words, _) = bytes.as_chunks::<4>();
    let word = |number: usize| words.get(number).map_or(0, |word| u32::from_be_bytes(*word));
    let node = |start: usize| {
        let bytes = bytes.get(start..).and_then(|rest| rest.first_chunk::<20>());
        Node(*bytes.unwrap_or(&[0; 20]))
    };
    let parent = |node: Node| match revisions.get(&node) {
        Some(revision) => Ok(*revision),
        None if node.is_null() => Ok(NONE),
        None => Err("a parent is not an earlier revision"),
    };
    Ok(RevlogEntry {
        node: node(56),
        start_and_flags: [word(0) >> 16, word(0) << 16],
        data_len: word(1),
        text_len: NONE,
        base: word(2),
        link: word(3),
        p1: parent(node(16))?,
        p2: parent(node(36))?,
    })
}

//! An mbox file on disk: its messages, what was added to it, and the bytes of one message.
//!
//! A file is read in pieces, so that its size does not matter. Of a file that only grew, the new
//! part is read: its former size, and hashes of the bytes at its beginning and before its former
//! end, tell that it did. The flags of its other messages are in their headers, which are read
//! again. The path of a message is that of the file with the name of its section
//! (`larder_format::mbox`) behind it. The name has a hash of the message, so that another one,
//! which took its place, is never read for it.
//!
//! Separate from `maildir`, which finds files and reads none.

use crate::file_time::{has_min_age, to_nanoseconds};
use crate::regular_file::open_regular_file;
use larder_format::maildir_name::{MaildirFlags, MaildirName};
use larder_format::mbox::{
    END_BYTES, MboxMessage, MboxScanner, MboxSection, SEPARATOR, find_header_end, hash_message,
    is_message_end, read_states, strip_status, unquote,
};
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

/// The bytes that are read at once.
const PIECE_BYTES: usize = 1 << 20;
/// The bytes at each end of a file that are compared.
const EDGE_BYTES: u64 = 4096;
/// The bytes of a header that are read at first.
const HEADER_BYTES: usize = 4096;
/// The bytes of a longer header.
const MAX_HEADER_BYTES: usize = 1 << 20;
/// The bytes around a former end that tell whether a message begins there.
const ADDITION_BYTES: usize = 16;
/// The length of the identity in a stored state: device, inode, time and size.
const IDENTITY_BYTES: usize = 40;
/// A mail program that writes a file anew empties it first, and has a part of it for a while. After
/// this time without a change, the file is taken as it is.
pub(crate) const MIN_SETTLED_SECONDS: i64 = 60;
/// The version of the rules by which messages are found. A file whose state has another one is read
/// again.
const RULES_VERSION: u8 = 1;
/// The place of the version in a stored state, behind the identity and the hash of the edges. The
/// names of messages that are too large follow it.
const VERSION_PLACE: usize = IDENTITY_BYTES + 8;

/// The names of messages, with their hashes.
pub(crate) type MessageHashes = Vec<(Vec<u8>, u64)>;

/// An mbox file that was opened.
#[derive(Debug)]
pub(crate) struct MboxFile {
    file: File,
    metadata: Metadata,
}

/// The messages that were found in a file.
#[derive(Debug)]
pub(crate) struct MboxListing {
    /// The messages, without those that were deleted.
    pub(crate) messages: Vec<MboxMessage>,
    /// Only those are listed that were added behind the others.
    pub(crate) is_addition: bool,
    /// The state to store.
    pub(crate) state: Vec<u8>,
    /// The time of the last change of the file, in nanoseconds since 1970.
    pub(crate) changed: i64,
}

impl MboxFile {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<MboxFile> {
        let (file, metadata) = open_regular_file(path)?;
        Ok(MboxFile { file, metadata })
    }

    /// Returns whether a file begins as an mbox file does.
    pub(crate) fn has_form(path: &Path) -> io::Result<bool> {
        let mut first = Vec::new();
        open_regular_file(path)?.0.take(SEPARATOR.len() as u64).read_to_end(&mut first)?;
        Ok(first == SEPARATOR)
    }

    /// Returns whether the file was changed since it was opened.
    pub(crate) fn has_changed(&self) -> io::Result<bool> {
        let state = |metadata: &Metadata| {
            (encode_identity(metadata), metadata.ctime(), metadata.ctime_nsec())
        };
        Ok(state(&self.file.metadata()?) != state(&self.metadata))
    }

    /// Returns whether the file was changed less than [`MIN_SETTLED_SECONDS`] before a time, in
    /// seconds since 1970.
    pub(crate) fn is_unsettled(&self, now: i64) -> bool {
        is_unsettled(&self.metadata, now)
    }

    /// Returns whether a section begins or ends behind the end of the file.
    pub(crate) fn cuts_off(&self, section: &MboxSection) -> bool {
        section.offset.saturating_add(section.length) > self.metadata.len()
    }

    /// Returns whether the file is as it was when it had this state.
    pub(crate) fn is_known(&self, state: &[u8]) -> bool {
        let identity = encode_identity(&self.metadata);
        has_present_rules(state) && state.starts_with(&identity)
    }

    /// Finds the messages; of a file that only grew since it had a state, the new ones. The time of
    /// the scan is in seconds since 1970.
    pub(crate) fn scan(&self, known: &[u8], scanned_at: i64) -> io::Result<MboxListing> {
        let former_size = self.find_addition(known)?;
        let start = former_size.unwrap_or_default();
        let mut scanner = MboxScanner::new(start);
        let mut messages = Vec::new();
        let (mut at, mut piece) = (start, vec![0; PIECE_BYTES]);
        while at < self.metadata.len() {
            let rest = usize::try_from(self.metadata.len() - at).unwrap_or(usize::MAX);
            let space = piece.len().min(rest);
            let count = self.file.read_at(piece.get_mut(..space).unwrap_or_default(), at)?;
            if count == 0 {
                break;
            }
            at += count as u64;
            let bytes = piece.get(..count).unwrap_or_default();
            scanner.push(bytes, &mut |end| self.is_message_end(end));
            messages.extend(scanner.take_messages());
        }
        messages.extend(scanner.finish());
        messages.retain(|message| !message.is_expunged);
        let mut state = encode_identity(&self.metadata).to_vec();
        if !has_min_age(self.metadata.mtime(), scanned_at) {
            // A later change may leave the time and the size as they are. The size tells whether it
            // grew.
            state.iter_mut().take(IDENTITY_BYTES - 8).for_each(|byte| *byte = 0);
        }
        state.extend(self.hash_edges(self.metadata.len())?.to_le_bytes());
        state.push(RULES_VERSION);
        Ok(MboxListing {
            messages,
            is_addition: former_size.is_some(),
            state,
            changed: to_nanoseconds(self.metadata.ctime(), self.metadata.ctime_nsec()),
        })
    }

    /// Looks for other flags of messages that a file had before it grew, which have these names: a
    /// mail program changes them in their place. Returns the present names and the hashes of all of
    /// them, without those of messages that were deleted; `None`: all are as they were.
    pub(crate) fn list_changed<'n>(
        &self,
        names: impl Iterator<Item = &'n [u8]>,
    ) -> io::Result<Option<MessageHashes>> {
        let (mut present, mut has_changed) = (Vec::new(), false);
        for name in names {
            let Some(section) = MboxSection::parse_name(name) else { continue };
            let (flags, is_expunged) = self.read_states(&section)?;
            let is_same = flags == MaildirName::parse(name).flags(false);
            has_changed |= is_expunged || !is_same;
            match (is_expunged, is_same) {
                (true, _) => {}
                (false, true) => present.push((name.to_vec(), section.hash)),
                (false, false) => present.push((section.to_name(flags).into(), section.hash)),
            }
        }
        Ok(has_changed.then_some(present))
    }

    /// Reads the flags of a message, and whether it is expunged.
    fn read_states(&self, section: &MboxSection) -> io::Result<(MaildirFlags, bool)> {
        let length = usize::try_from(section.length).unwrap_or(usize::MAX);
        let (mut bytes, mut wanted) = (Vec::new(), HEADER_BYTES);
        loop {
            bytes.resize(wanted.min(length), 0);
            self.file.read_exact_at(&mut bytes, section.offset)?;
            let end = find_header_end(&bytes);
            if end.is_some() || wanted >= length.min(MAX_HEADER_BYTES) {
                return Ok(read_states(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(&bytes)));
            }
            wanted = MAX_HEADER_BYTES;
        }
    }

    fn read_section(&self, section: &MboxSection, limit: u64) -> io::Result<Vec<u8>> {
        check_size(section.length, limit)?;
        let end = section.offset.checked_add(section.length);
        let mut bytes = Vec::new();
        if end.is_some_and(|end| end <= self.metadata.len()) {
            bytes.resize(usize::try_from(section.length).unwrap_or_default(), 0);
            self.file.read_exact_at(&mut bytes, section.offset)?;
        }
        if hash_message(&strip_status(&bytes)) == section.hash {
            return Ok(bytes);
        }
        let reason = "the mbox file was changed, and has another message there; run: larder sync";
        Err(io::Error::other(reason))
    }

    /// Returns the size that the file had, if it only grew by whole messages since then.
    fn find_addition(&self, known: &[u8]) -> io::Result<Option<u64>> {
        let number = |range: std::ops::Range<usize>| {
            known.get(range)?.try_into().ok().map(u64::from_le_bytes)
        };
        let size = number(IDENTITY_BYTES - 8..IDENTITY_BYTES);
        let hash = number(IDENTITY_BYTES..IDENTITY_BYTES + 8);
        let (Some(size), Some(hash), true) = (size, hash, has_present_rules(known)) else {
            return Ok(None);
        };
        let has_grown = (1..self.metadata.len()).contains(&size)
            && self.begins_addition(size)?
            && self.hash_edges(size)? == hash;
        Ok(has_grown.then_some(size))
    }

    /// Returns whether a message begins at a former end of the file, with or without the empty line
    /// in front of it.
    fn begins_addition(&self, end: u64) -> io::Result<bool> {
        let mut bytes = vec![0; ADDITION_BYTES];
        let start = end.saturating_sub(3);
        let count = self.file.read_at(&mut bytes, start)?;
        bytes.truncate(count);
        let former = usize::try_from(end - start).unwrap_or_default();
        let Some((before, after)) = bytes.split_at_checked(former) else { return Ok(false) };
        let has_empty_line = before.ends_with(b"\n\n") || before.ends_with(b"\n\r\n");
        let rest = after.strip_prefix(b"\n").or(after.strip_prefix(b"\r\n"));
        Ok(match rest {
            Some(rest) => !has_empty_line && before.ends_with(b"\n") && rest.starts_with(SEPARATOR),
            None => has_empty_line && after.starts_with(SEPARATOR),
        })
    }

    /// Returns the hash of the bytes at the beginning and before `end`.
    fn hash_edges(&self, end: u64) -> io::Result<u64> {
        let mut bytes = vec![0; usize::try_from(EDGE_BYTES.min(end)).unwrap_or_default()];
        self.file.read_exact_at(&mut bytes, 0)?;
        let mut last = bytes.clone();
        let start = end - last.len() as u64;
        self.file.read_exact_at(&mut last, start)?;
        bytes.extend(last);
        Ok(hash_message(&bytes))
    }

    fn is_message_end(&self, end: u64) -> bool {
        let mut bytes = [0; END_BYTES];
        let count = match end <= self.metadata.len() {
            true => self.file.read_at(&mut bytes, end).ok(),
            false => None,
        };
        count.is_some_and(|count| is_message_end(bytes.get(..count).unwrap_or_default()))
    }
}

/// Returns whether a file was changed less than [`MIN_SETTLED_SECONDS`] before a time, in seconds
/// since 1970.
pub(crate) fn is_unsettled(metadata: &Metadata, now: i64) -> bool {
    now.saturating_sub(metadata.mtime()).saturating_abs() < MIN_SETTLED_SECONDS
}

fn has_present_rules(state: &[u8]) -> bool {
    state.get(VERSION_PLACE) == Some(&RULES_VERSION)
}

/// Returns the names of the messages that were too large when a file had this state.
pub(crate) fn large_messages(state: &[u8]) -> impl Iterator<Item = &[u8]> {
    let names = state.get(VERSION_PLACE + 1..).unwrap_or_default();
    names.split(|byte| *byte == b'\n').filter(|name| !name.is_empty())
}

/// Adds the name of a message that is too large to a state.
pub(crate) fn add_large_message(state: &mut Vec<u8>, name: &[u8]) {
    state.extend(name);
    state.push(b'\n');
}

/// Returns the bytes by which an unchanged file is recognised.
fn encode_identity(metadata: &Metadata) -> [u8; IDENTITY_BYTES] {
    let numbers = [
        metadata.dev(),
        metadata.ino(),
        metadata.mtime().cast_unsigned(),
        metadata.mtime_nsec().cast_unsigned(),
        metadata.len(),
    ];
    let mut identity = [0; IDENTITY_BYTES];
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    identity.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    identity
}

/// Returns whether a path is that of a message in an mbox file, which is no file of its own.
#[must_use]
pub fn is_mbox_message(path: &Path) -> bool {
    find_section(path).is_some() && path.parent().is_some_and(Path::is_file)
}

/// Returns whether there is a message at a path, without reading it.
pub(crate) fn has_message_file(path: &Path) -> bool {
    path.is_file() || is_mbox_message(path)
}

fn find_section(path: &Path) -> Option<MboxSection> {
    MboxSection::parse_name(path.file_name()?.as_bytes())
}

/// Reads the message at a path: a file, or a section of an mbox file, with the fields of its
/// states. A pipe is read to its end.
///
/// # Errors
/// The file cannot be read, is larger than `limit`, or the mbox file was changed.
pub fn read_message_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let (mut bytes, _) = read_section(path, limit).unwrap_or(Err(error))?;
            unquote(&mut bytes);
            return Ok(bytes);
        }
        file => file?.take(limit + 1).read_to_end(&mut bytes)?,
    };
    check_size(bytes.len() as u64, limit)?;
    Ok(bytes)
}

/// Reads the message of a section of an mbox file for the index: without the fields of its states,
/// and with the metadata of the file. `None`: the path is that of no section.
pub(crate) fn read_indexed_section(
    path: &Path,
    limit: u64,
) -> Option<io::Result<(Vec<u8>, Metadata)>> {
    Some(read_section(path, limit)?.map(|(bytes, metadata)| {
        let mut bytes = strip_status(&bytes);
        unquote(&mut bytes);
        (bytes, metadata)
    }))
}

/// Reads the bytes of a section as they are. `None`: the path is that of no section.
fn read_section(path: &Path, limit: u64) -> Option<io::Result<(Vec<u8>, Metadata)>> {
    let section = find_section(path)?;
    let file = MboxFile::open(path.parent()?);
    Some(file.and_then(|file| Ok((file.read_section(&section, limit)?, file.metadata))))
}

fn check_size(bytes: u64, limit: u64) -> io::Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(io::Error::other(format!("larger than {} MiB", limit >> 20)))
}

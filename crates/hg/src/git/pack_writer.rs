//! Writing a pack and its index (gitformat-pack(5), versions 2).
//!
//! Ids, checksums and offsets are known as the objects pass by, so nothing is read again to make
//! the index. Threads compress objects by themselves ([`EncodedObject`]) and then append them one
//! at a time; an object is appended once. The files get their names when they are complete and on
//! the disk.

use super::deflate::{Deflater, store};
use super::delta::MIN_DELTA_BYTES;
use super::object::{OFFSET_DELTA, ObjectKind, object_id};
use super::pack_reader;
use crate::id_index::IdIndex;
use crate::object_id::GitId;
use sha1::{Digest as _, Sha1};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The longest chain of deltas, as in git.
pub(crate) const MAX_CHAIN: u8 = 50;
/// Signature and version; the number of objects follows.
const PACK_HEADER: [u8; 8] = *b"PACK\0\0\0\x02";
const INDEX_HEADER: [u8; 8] = *b"\xfftOc\0\0\0\x02";
/// Objects of which the entries are in one block.
const ENTRIES_PER_BLOCK: usize = 1 << 12;
/// The bytes of a pack that can be indexed.
const MAX_PACK_BYTES: u64 = 1 << 40;
/// Bytes that are written in one call.
const BUFFER_BYTES: usize = 1 << 20;
/// From here on, an offset needs the table of 64 bits.
const MAX_SHORT_OFFSET: u64 = 1 << 31;

/// Where an object is in the pack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackPlace {
    pub(crate) offset: u64,
    /// The number of deltas between the object and a whole one.
    pub(crate) chain: u8,
}

/// An object of the pack, in 30 bytes: there are millions of them.
struct PackEntry {
    id: [u8; 20],
    offset: [u8; 5],
    crc: [u8; 4],
    chain: u8,
}

impl PackEntry {
    fn new(id: GitId, place: PackPlace, crc: u32) -> PackEntry {
        let [_, _, _, offset @ ..] = place.offset.to_be_bytes();
        PackEntry { id: id.0, offset, crc: crc.to_be_bytes(), chain: place.chain }
    }

    fn to_place(&self) -> PackPlace {
        let [a, b, c, d, e] = self.offset;
        PackPlace { offset: u64::from_be_bytes([0, 0, 0, a, b, c, d, e]), chain: self.chain }
    }
}

/// The objects of a pack, in blocks, so that adding one moves none.
#[derive(Default)]
struct PackEntries {
    blocks: Vec<Vec<PackEntry>>,
    index: IdIndex,
}

impl PackEntries {
    fn get(&self, number: usize) -> Option<&PackEntry> {
        self.blocks.get(number / ENTRIES_PER_BLOCK)?.get(number % ENTRIES_PER_BLOCK)
    }

    fn find(&self, id: &GitId) -> Option<PackPlace> {
        let found = self.index.find(&id.0, |number| self.get(number).map(|entry| &entry.id));
        found.and_then(|number| self.get(number)).map(PackEntry::to_place)
    }

    fn push(&mut self, entry: PackEntry) {
        match self.blocks.last_mut().filter(|block| block.len() < ENTRIES_PER_BLOCK) {
            Some(block) => block.push(entry),
            None => {
                let mut block = Vec::with_capacity(ENTRIES_PER_BLOCK);
                block.push(entry);
                self.blocks.push(block);
            }
        }
        let blocks = &self.blocks;
        self.index.push(|number| {
            let block = blocks.get(number / ENTRIES_PER_BLOCK)?;
            block.get(number % ENTRIES_PER_BLOCK).map(|entry| &entry.id)
        });
    }

    fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Returns the entries sorted by id.
    fn sort_by_id(&self) -> Vec<&PackEntry> {
        let mut sorted: Vec<&PackEntry> = self.blocks.iter().flatten().collect();
        sorted.sort_unstable_by_key(|entry| entry.id);
        sorted
    }
}

/// An object that is ready to be appended.
pub(crate) struct EncodedObject {
    pub(crate) id: GitId,
    kind: ObjectKind,
    /// The place of the base of a delta.
    base: Option<PackPlace>,
    /// The length of the content or the delta before compression.
    len: usize,
    compressed: Vec<u8>,
}

impl EncodedObject {
    /// Compresses a whole object.
    pub(crate) fn encode_whole(
        id: GitId,
        kind: ObjectKind,
        content: &[u8],
        deflater: &mut Deflater,
    ) -> EncodedObject {
        let mut compressed = Vec::new();
        deflater.deflate(content, &mut compressed);
        EncodedObject { id, kind, base: None, len: content.len(), compressed }
    }

    /// Takes an object whose bytes compression would not make smaller.
    pub(crate) fn encode_stored(id: GitId, kind: ObjectKind, content: &[u8]) -> EncodedObject {
        let mut compressed = Vec::with_capacity(content.len() + 64);
        store(content, &mut compressed);
        EncodedObject { id, kind, base: None, len: content.len(), compressed }
    }

    /// Compresses a delta against an object of the pack.
    pub(crate) fn encode_delta(
        id: GitId,
        kind: ObjectKind,
        base: PackPlace,
        delta: &[u8],
        deflater: &mut Deflater,
    ) -> EncodedObject {
        let mut compressed = Vec::new();
        deflater.deflate(delta, &mut compressed);
        EncodedObject { id, kind, base: Some(base), len: delta.len(), compressed }
    }
}

/// Returns whether a delta is worth its place instead of the whole content.
pub(crate) fn is_delta_useful(delta_len: usize, content_len: usize, base: PackPlace) -> bool {
    delta_len >= MIN_DELTA_BYTES && delta_len < content_len / 2 + 40 && base.chain + 1 < MAX_CHAIN
}

/// A pack that is being written, without a name.
pub(crate) struct PackWriter {
    file: File,
    path: PathBuf,
    folder: PathBuf,
    /// Bytes that are not in the file yet.
    pending: Vec<u8>,
    /// The bytes of the pack so far, with the pending ones.
    end: u64,
    entries: PackEntries,
    is_finished: bool,
}

/// A pack that is complete and on the disk.
#[derive(Debug)]
pub(crate) struct FinishedPack {
    /// The number of objects.
    pub(crate) objects: usize,
    /// The bytes of the pack and its index.
    pub(crate) bytes: u64,
}

impl PackWriter {
    /// Creates a pack in a folder such as `objects/pack`, which is made if it is missing. git
    /// deletes files with such names (`tmp_pack_...`) when they are left by a killed process.
    pub(crate) fn create(folder: &Path) -> io::Result<PackWriter> {
        fs::create_dir_all(folder)?;
        let mut attempt = 0_u32;
        let (path, file) = loop {
            let path = folder.join(format!("tmp_pack_larder_{}_{attempt}", std::process::id()));
            match File::options().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
                Err(error) => return Err(error),
            }
        };
        let mut pending = Vec::with_capacity(BUFFER_BYTES + (64 << 10));
        pending.extend_from_slice(&PACK_HEADER);
        // The number of objects, known at the end.
        pending.extend_from_slice(&[0; 4]);
        let end = pending.len() as u64;
        let folder = folder.to_path_buf();
        let entries = PackEntries::default();
        Ok(PackWriter { file, path, folder, pending, end, entries, is_finished: false })
    }

    /// Returns where an object is.
    pub(crate) fn find(&self, id: &GitId) -> Option<PackPlace> {
        self.entries.find(id)
    }

    /// Appends an object, unless the pack has it.
    pub(crate) fn append(&mut self, object: &EncodedObject) -> io::Result<PackPlace> {
        if let Some(place) = self.find(&object.id) {
            return Ok(place);
        }
        let start = self.pending.len();
        let number = if object.base.is_some() { OFFSET_DELTA } else { object.kind as u8 };
        write_entry_header(&mut self.pending, number, object.len);
        if let Some(base) = object.base {
            write_base_distance(&mut self.pending, self.end - base.offset);
        }
        self.pending.extend_from_slice(&object.compressed);
        let bytes = self.pending.get(start..).unwrap_or_default();
        let chain = object.base.map_or(0, |base| base.chain.saturating_add(1));
        let place = PackPlace { offset: self.end, chain };
        let crc = crc32fast::hash(bytes);
        self.end += bytes.len() as u64;
        if self.end > MAX_PACK_BYTES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.entries.push(PackEntry::new(object.id, place, crc));
        if self.pending.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(place)
    }

    /// Hashes, compresses and appends a whole object.
    pub(crate) fn append_whole(
        &mut self,
        kind: ObjectKind,
        content: &[u8],
        deflater: &mut Deflater,
    ) -> io::Result<GitId> {
        let id = object_id(kind, content);
        if self.find(&id).is_none() {
            self.append(&EncodedObject::encode_whole(id, kind, content, deflater))?;
        }
        Ok(id)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    /// Reads an object again; `None` if the pack does not have it.
    pub(crate) fn read(&mut self, id: &GitId) -> io::Result<Option<Vec<u8>>> {
        let Some(place) = self.find(id) else { return Ok(None) };
        self.flush()?;
        pack_reader::read_object(&self.file, place.offset).map(Some)
    }

    /// Completes the pack and writes its index. A pack without objects leaves nothing.
    pub(crate) fn finish(mut self) -> io::Result<FinishedPack> {
        if self.entries.len() == 0 {
            return Ok(FinishedPack { objects: 0, bytes: 0 });
        }
        self.flush()?;
        let count = u32::try_from(self.entries.len()).map_err(io::Error::other)?;
        self.file.write_all_at(&count.to_be_bytes(), PACK_HEADER.len() as u64)?;
        let checksum = hash_file(&self.file, self.end)?;
        self.file.write_all_at(&checksum.0, self.end)?;
        self.file.sync_all()?;
        let index = encode_index(&self.entries, checksum);
        let index_path = self.path.with_extension("idx");
        let written = self.put_in_place(&index_path, &index, checksum);
        if written.is_err() {
            // Nothing refers to it, and the error is the one to report.
            let _removed = fs::remove_file(&index_path);
        }
        written?;
        self.is_finished = true;
        let bytes = self.end + 20 + index.len() as u64;
        Ok(FinishedPack { objects: self.entries.len(), bytes })
    }

    /// Writes the index and gives both files their names: the pack first, because git looks for
    /// indexes.
    fn put_in_place(&self, index_path: &Path, index: &[u8], checksum: GitId) -> io::Result<()> {
        let mut index_file = File::options().write(true).create_new(true).open(index_path)?;
        index_file.write_all(index)?;
        index_file.sync_all()?;
        for path in [&self.path, index_path] {
            let mut permissions = fs::metadata(path)?.permissions();
            permissions.set_readonly(true);
            fs::set_permissions(path, permissions)?;
        }
        let named = self.folder.join(format!("pack-{checksum}"));
        fs::rename(&self.path, named.with_extension("pack"))?;
        fs::rename(index_path, named.with_extension("idx"))?;
        File::open(&self.folder)?.sync_all()
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // git deletes it later if this fails.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// Writes kind and length: 4 bits of the length in the first byte, then 7 in each.
fn write_entry_header(out: &mut Vec<u8>, number: u8, len: usize) {
    let mut byte = number << 4 | (len & 15) as u8;
    let mut rest = len >> 4;
    while rest > 0 {
        out.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    out.push(byte);
}

/// Writes the distance to a base, the highest bits first; each further byte adds one.
fn write_base_distance(out: &mut Vec<u8>, mut distance: u64) {
    let mut bytes = [0_u8; 10];
    let mut count = 0;
    for byte in bytes.iter_mut().rev() {
        let more = if count == 0 { 0 } else { 0x80 };
        *byte = (distance & 0x7f) as u8 | more;
        count += 1;
        distance >>= 7;
        if distance == 0 {
            break;
        }
        distance -= 1;
    }
    out.extend_from_slice(bytes.get(bytes.len() - count..).unwrap_or_default());
}

fn hash_file(file: &File, len: u64) -> io::Result<GitId> {
    let mut hasher = Sha1::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut position = 0;
    while position < len {
        let wanted = buffer.len().min((len - position) as usize);
        let part = buffer.get_mut(..wanted).unwrap_or_default();
        file.read_exact_at(part, position)?;
        hasher.update(&*part);
        position += wanted as u64;
    }
    Ok(GitId(hasher.finalize().into()))
}

fn encode_index(entries: &PackEntries, pack_checksum: GitId) -> Vec<u8> {
    let sorted = entries.sort_by_id();
    let mut index = Vec::with_capacity(1024 + 8 + 40 + sorted.len() * 28);
    index.extend_from_slice(&INDEX_HEADER);
    let mut place = 0;
    for first in 0..=u8::MAX {
        while sorted.get(place).is_some_and(|entry| entry.id[0] <= first) {
            place += 1;
        }
        index.extend((place as u32).to_be_bytes());
    }
    sorted.iter().for_each(|entry| index.extend_from_slice(&entry.id));
    sorted.iter().for_each(|entry| index.extend_from_slice(&entry.crc));
    let mut long_offsets: Vec<u64> = Vec::new();
    for entry in &sorted {
        let offset = entry.to_place().offset;
        let short = if offset < MAX_SHORT_OFFSET {
            offset as u32
        } else {
            long_offsets.push(offset);
            0x8000_0000 | (long_offsets.len() - 1) as u32
        };
        index.extend(short.to_be_bytes());
    }
    long_offsets.iter().for_each(|offset| index.extend(offset.to_be_bytes()));
    index.extend_from_slice(&pack_checksum.0);
    let checksum: [u8; 20] = Sha1::digest(&index).into();
    index.extend_from_slice(&checksum);
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::delta::GitDeltaWriter;
    use std::process::Command;

    fn git(folder: &Path, args: &[&str]) -> (bool, String) {
        let output = Command::new("git").arg("-C").arg(folder).args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// git verifies the pack, and reads its objects.
    #[test]
    fn git_accepts_packs() {
        let folder = tempfile::tempdir().unwrap();
        assert!(git(folder.path(), &["init", "-q", "--bare"]).0);
        let mut pack = PackWriter::create(&folder.path().join("objects/pack")).unwrap();
        let mut deflater = Deflater::new();
        let base_text: Vec<u8> = (0..5_000_u32).flat_map(|n| n.to_string().into_bytes()).collect();
        let base = pack.append_whole(ObjectKind::Blob, &base_text, &mut deflater).unwrap();
        let mut newest = (base, base_text.clone());
        for number in 0..3_000_usize {
            let mut text = base_text.clone();
            text.truncate(base_text.len() - number);
            let mut delta = Vec::new();
            GitDeltaWriter::new(&mut delta, newest.1.len(), text.len()).copy(0, text.len());
            let id = object_id(ObjectKind::Blob, &text);
            let place = pack.find(&newest.0).unwrap();
            let object = if is_delta_useful(delta.len(), text.len(), place) {
                EncodedObject::encode_delta(id, ObjectKind::Blob, place, &delta, &mut deflater)
            } else {
                EncodedObject::encode_whole(id, ObjectKind::Blob, &text, &mut deflater)
            };
            pack.append(&object).unwrap();
            newest = (id, text);
        }
        assert_eq!(pack.read(&newest.0).unwrap(), Some(newest.1.clone()));
        let finished = pack.finish().unwrap();
        assert_eq!(finished.objects, 3_000);
        let names: Vec<_> = fs::read_dir(folder.path().join("objects/pack")).unwrap().collect();
        assert_eq!(names.len(), 2);
        let mut paths = names.iter().flatten().map(fs::DirEntry::path);
        let pack_path = paths.find(|path| path.extension().unwrap() == "pack").unwrap();
        let path = pack_path.to_str().unwrap();
        let (is_good, text) = git(folder.path(), &["index-pack", "--strict", "--verify", path]);
        assert!(is_good, "{text}");
        let (is_good, text) = git(folder.path(), &["cat-file", "blob", &newest.0.to_string()]);
        assert!(is_good && text.as_bytes() == newest.1);
    }

    #[test]
    fn an_abandoned_pack_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut pack = PackWriter::create(folder.path()).unwrap();
        pack.append_whole(ObjectKind::Blob, b"text", &mut Deflater::new()).unwrap();
        drop(pack);
        let empty = PackWriter::create(folder.path()).unwrap();
        assert_eq!(empty.finish().unwrap().objects, 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn far_offsets_are_in_the_long_table() {
        let mut entries = PackEntries::default();
        for (byte, offset) in [(1_u8, 12), (2, 1 << 31), (3, 5 << 32)] {
            let place = PackPlace { offset, chain: 0 };
            entries.push(PackEntry::new(GitId([byte; 20]), place, 7));
        }
        let index = encode_index(&entries, GitId::NULL);
        let offsets = &index[8 + 1024 + 3 * 24..];
        let expected = [12_u32, 0x8000_0000, 0x8000_0001].map(u32::to_be_bytes).concat();
        assert_eq!(offsets[..12], expected);
        assert_eq!(
            offsets[12..28],
            [(1_u64 << 31).to_be_bytes(), (5_u64 << 32).to_be_bytes()].concat()
        );
    }
}

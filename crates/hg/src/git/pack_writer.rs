//! Writing a pack and its index (gitformat-pack(5), versions 2).
//!
//! Ids, checksums and offsets are known as the objects pass by, so nothing is read again to make
//! the index. Threads compress objects by themselves ([`EncodedObject`]) and then append them one
//! at a time; an object is appended once. The files get their names when they are complete and on
//! the disk. Those of a process that was killed are deleted by the next one
//! ([`super::pack_leftovers`]).

use super::deflate::{Deflater, store};
use super::delta::MIN_DELTA_BYTES;
use super::file_lock::is_named;
use super::object::{OFFSET_DELTA, ObjectKind, object_id};
use super::pack_entries::{PackEntries, PackEntry, PackPlace, encode_index};
use super::pack_keep::PackKeep;
use super::pack_leftovers::{TEMPORARY_PREFIX, sweep_leftovers};
use super::pack_reader;
use crate::object_id::GitId;
use sha1::{Digest as _, Sha1};
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The longest chain of deltas, as in git.
pub(crate) const MAX_CHAIN: u8 = 50;
/// Signature and version; the number of objects follows.
const PACK_HEADER: [u8; 8] = *b"PACK\0\0\0\x02";
/// The bytes of a pack that can be indexed.
const MAX_PACK_BYTES: u64 = 1 << 40;
/// Bytes that are written in one call.
const BUFFER_BYTES: usize = 1 << 20;

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
    delta_len >= MIN_DELTA_BYTES
        && delta_len <= max_useful_delta(content_len)
        && base.chain + 1 < MAX_CHAIN
}

/// Returns the most bytes of a delta that is worth its place instead of the whole content.
pub(crate) fn max_useful_delta(content_len: usize) -> usize {
    content_len / 2 + 39
}

/// The random number that keys fingerprints of contents. Two contents with one id are told apart by
/// their fingerprints, which nobody can make equal without the key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FingerprintKey(u64);

impl FingerprintKey {
    fn new() -> FingerprintKey {
        FingerprintKey(RandomState::new().build_hasher().finish())
    }

    pub(crate) fn fingerprint(self, content: &[u8]) -> u32 {
        xxh3_64_with_seed(content, self.0) as u32
    }
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
    fingerprint_key: FingerprintKey,
    is_finished: bool,
}

/// A pack that is complete and on the disk. git does not delete it before this is dropped.
#[derive(Debug)]
pub(crate) struct FinishedPack {
    /// `None` for a pack without objects, and where the pack has a mark of somebody else.
    _keep: Option<PackKeep>,
    /// The number of objects.
    pub(crate) objects: usize,
    /// The bytes of the pack and its index.
    pub(crate) bytes: u64,
}

impl PackWriter {
    /// Creates a pack in a folder such as `objects/pack`, which is made if it is missing. All
    /// errors name the folder.
    pub(crate) fn create(folder: &Path) -> io::Result<PackWriter> {
        let folder = &std::path::absolute(folder)?;
        let created = fs::create_dir_all(folder).and_then(|()| {
            sweep_leftovers(folder);
            create_file(folder)
        });
        let (path, file) = created.map_err(|error| name_folder(folder, &error))?;
        let mut pending = Vec::with_capacity(BUFFER_BYTES + (64 << 10));
        pending.extend_from_slice(&PACK_HEADER);
        // The number of objects, known at the end.
        pending.extend_from_slice(&[0; 4]);
        let end = pending.len() as u64;
        let folder = folder.to_path_buf();
        let entries = PackEntries::default();
        Ok(PackWriter {
            file,
            path,
            folder,
            pending,
            end,
            entries,
            fingerprint_key: FingerprintKey::new(),
            is_finished: false,
        })
    }

    /// Returns where an object is.
    pub(crate) fn find(&self, id: &GitId) -> Option<PackPlace> {
        self.entries.find(id).map(PackEntry::to_place)
    }

    /// Returns the key of the fingerprints of this pack.
    pub(crate) fn fingerprint_key(&self) -> FingerprintKey {
        self.fingerprint_key
    }

    /// Returns whether the pack has an object with this id and another content than that of the
    /// fingerprint. A large part of the objects of a history come several times, so they are not
    /// read again for that.
    pub(crate) fn conflicts_with_content(&self, id: &GitId, fingerprint: u32) -> bool {
        let entry = self.entries.find(id);
        entry.is_some_and(|entry| u32::from_be_bytes(entry.fingerprint) != fingerprint)
    }

    /// Appends an object whose content has this fingerprint. Returns false if the pack has another
    /// content with its id.
    pub(crate) fn try_append(
        &mut self,
        object: &EncodedObject,
        fingerprint: u32,
    ) -> io::Result<bool> {
        Ok(self.append(object, fingerprint)?
            || !self.conflicts_with_content(&object.id, fingerprint))
    }

    /// Appends an object with this content. Another content with its id is an error.
    pub(crate) fn append_content(
        &mut self,
        object: &EncodedObject,
        content: &[u8],
    ) -> io::Result<GitId> {
        match self.try_append(object, self.fingerprint_key.fingerprint(content))? {
            true => Ok(object.id),
            false => Err(collision_error(&object.id)),
        }
    }

    /// Refuses a content whose id the pack has for another one.
    pub(crate) fn check_content(&self, id: &GitId, content: &[u8]) -> io::Result<()> {
        match self.conflicts_with_content(id, self.fingerprint_key.fingerprint(content)) {
            true => Err(collision_error(id)),
            false => Ok(()),
        }
    }

    /// Appends an object; returns false if the pack has one with its id, maybe of another content.
    fn append(&mut self, object: &EncodedObject, fingerprint: u32) -> io::Result<bool> {
        if self.find(&object.id).is_some() {
            return Ok(false);
        }
        let start = self.pending.len();
        let number = if object.base.is_some() { OFFSET_DELTA } else { object.kind as u8 };
        write_entry_header(&mut self.pending, number, object.len);
        if let Some(base) = object.base {
            write_base_distance(&mut self.pending, self.end - base.offset);
        }
        let header = self.pending.get(start..).unwrap_or_default();
        let chain = object.base.map_or(0, |base| base.chain.saturating_add(1));
        let place = PackPlace { offset: self.end, chain };
        let mut crc = crc32fast::Hasher::new();
        crc.update(header);
        crc.update(&object.compressed);
        self.end += (header.len() + object.compressed.len()) as u64;
        if self.end > MAX_PACK_BYTES {
            return Err(self.name_error(&io::Error::from(io::ErrorKind::FileTooLarge)));
        }
        let crc = crc.finalize();
        self.entries.push(PackEntry::new(object.id, place, crc, fingerprint));
        if self.pending.len() + object.compressed.len() < BUFFER_BYTES {
            self.pending.extend_from_slice(&object.compressed);
        } else {
            self.flush()?;
            // A large object is not copied.
            self.write(&object.compressed)?;
        }
        Ok(true)
    }

    /// Hashes, compresses and appends a whole object.
    pub(crate) fn append_whole(
        &mut self,
        kind: ObjectKind,
        content: &[u8],
        deflater: &mut Deflater,
    ) -> io::Result<GitId> {
        let id = object_id(kind, content);
        if self.find(&id).is_some() {
            self.check_content(&id, content)?;
            return Ok(id);
        }
        self.append_content(&EncodedObject::encode_whole(id, kind, content, deflater), content)
    }

    fn flush(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let written = self.write(&pending);
        self.pending = pending;
        self.pending.clear();
        written
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).map_err(|error| self.name_error(&error))
    }

    fn name_error(&self, error: &io::Error) -> io::Error {
        name_folder(&self.folder, error)
    }

    /// Reads an object again; `None` if the pack does not have it.
    pub(crate) fn read(&mut self, id: &GitId) -> io::Result<Option<Vec<u8>>> {
        let Some(place) = self.find(id) else { return Ok(None) };
        self.flush()?;
        let read = pack_reader::read_object(&self.file, place.offset);
        read.map(Some).map_err(|error| self.name_error(&error))
    }

    /// Completes the pack and writes its index. A pack without objects leaves nothing.
    pub(crate) fn finish(mut self) -> io::Result<FinishedPack> {
        if self.entries.len() == 0 {
            return Ok(FinishedPack { _keep: None, objects: 0, bytes: 0 });
        }
        self.flush()?;
        let checksum = self.complete().map_err(|error| self.name_error(&error))?;
        if !is_named(&self.path, &self.file) {
            self.restore().map_err(|error| self.name_error(&error))?;
        }
        let index = encode_index(&self.entries, checksum);
        let index_path = self.path.with_extension("idx");
        let written = self.put_in_place(&index_path, &index, checksum);
        if written.is_err() {
            // Nothing refers to it, and the error is the one to report.
            let _removed = fs::remove_file(&index_path);
        }
        let keep = written.map_err(|error| self.name_error(&error))?;
        self.is_finished = true;
        let bytes = self.end + 20 + index.len() as u64;
        Ok(FinishedPack { _keep: keep, objects: self.entries.len(), bytes })
    }

    /// Copies the pack to a new file: `git gc --prune=now` has deleted its name, as of any file
    /// that begins with `tmp_`.
    fn restore(&mut self) -> io::Result<()> {
        let (path, mut copy) = create_file(&self.folder)?;
        self.path = path;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut copy)?;
        copy.sync_all()?;
        self.file = copy;
        Ok(())
    }

    /// Writes the number of objects and the checksum, which is returned.
    fn complete(&self) -> io::Result<GitId> {
        let count = u32::try_from(self.entries.len()).map_err(io::Error::other)?;
        self.file.write_all_at(&count.to_be_bytes(), PACK_HEADER.len() as u64)?;
        let checksum = hash_file(&self.file, self.end)?;
        self.file.write_all_at(&checksum.0, self.end)?;
        self.file.sync_all()?;
        Ok(checksum)
    }

    /// Writes the index and gives both files their names: the pack first, because git looks for
    /// indexes. Returns the mark that keeps them.
    fn put_in_place(
        &self,
        index_path: &Path,
        index: &[u8],
        checksum: GitId,
    ) -> io::Result<Option<PackKeep>> {
        write_index(index_path, index)?;
        set_readonly(&self.path)?;
        let named = self.folder.join(format!("pack-{checksum}"));
        let (pack_path, named_index) = (named.with_extension("pack"), named.with_extension("idx"));
        let keep = PackKeep::create(&pack_path, &self.path)?;
        fs::rename(&self.path, &pack_path)?;
        if let Err(error) = name_index(index_path, &named_index, index) {
            if !named_index.exists() && is_named(&pack_path, &self.file) {
                // Without an index it is no pack, and under this name nobody would delete it.
                let _renamed = fs::rename(&pack_path, &self.path);
            }
            return Err(error);
        }
        // A process that wrote the same pack, and was killed, may have replaced this one; a sweep
        // then deletes it.
        fs::metadata(&pack_path)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(keep)
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // It is deleted later if this fails.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// Returns the error of two contents with one id.
fn collision_error(id: &GitId) -> io::Error {
    io::Error::other(format!("another content has the id {id} (a collision of SHA-1)"))
}

/// Creates the file of a pack, with the lock that tells it from one of a killed process.
fn create_file(folder: &Path) -> io::Result<(PathBuf, File)> {
    let mut attempt = 0_u32;
    loop {
        let path = folder.join(format!("{TEMPORARY_PREFIX}{}_{attempt}", std::process::id()));
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                // Without locks, as on some network file systems, the file is never swept.
                let is_swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
                if !is_swept && is_named(&path, &file) {
                    return Ok((path, file));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

fn write_index(path: &Path, index: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(index)?;
    file.sync_all()?;
    set_readonly(path)
}

fn set_readonly(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions)
}

/// How often an index is written again.
const MAX_INDEX_COPIES: u32 = 3;

/// Gives an index its final name. After another process has put the same pack there, a sweep takes
/// the unnamed index for a leftover and deletes it: then it is written again.
fn name_index(index_path: &Path, named_index: &Path, index: &[u8]) -> io::Result<()> {
    for _ in 0..MAX_INDEX_COPIES {
        match fs::rename(index_path, named_index) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_index(index_path, index)?;
            }
            renamed => return renamed,
        }
    }
    fs::rename(index_path, named_index)
}

fn name_folder(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::delta::GitDeltaWriter;
    use std::process::Command;

    impl PackWriter {
        /// Appends an object with an id of another content, as a collision of SHA-1 would be.
        pub(crate) fn append_forged(&mut self, id: GitId, kind: ObjectKind) {
            let content = b"a forged content";
            let fingerprint = self.fingerprint_key.fingerprint(content);
            let object = EncodedObject::encode_stored(id, kind, content);
            assert!(self.append(&object, fingerprint).unwrap());
        }
    }

    fn git(folder: &Path, args: &[&str]) -> (bool, String) {
        let output = Command::new("git").arg("-C").arg(folder).args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// An object with the id of another content stands for a collision of SHA-1.
    #[test]
    fn another_content_of_an_id_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut pack = PackWriter::create(folder.path()).unwrap();
        let mut deflater = Deflater::new();
        let kind = ObjectKind::Tree;
        let content: &[u8] = b"seal";
        let id = object_id(kind, content);
        pack.append_forged(id, kind);
        let whole = pack.append_whole(kind, content, &mut deflater).map_err(|e| e.to_string());
        let expected = format!("another content has the id {id} (a collision of SHA-1)");
        assert_eq!(whole, Err(expected.clone()));
        let object = EncodedObject::encode_stored(id, kind, content);
        let appended = pack.append_content(&object, content).map_err(|error| error.to_string());
        assert_eq!(appended, Err(expected));
        for _ in 0..2 {
            pack.append_whole(kind, b"whale", &mut deflater).unwrap();
        }
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
            pack.append(&object, 0).unwrap();
            newest = (id, text);
        }
        assert_eq!(pack.read(&newest.0).unwrap(), Some(newest.1.clone()));
        let finished = pack.finish().unwrap();
        assert_eq!(finished.objects, 3_000);
        drop(finished);
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
    fn a_swept_index_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let (unnamed, named) = (folder.path().join("tmp.idx"), folder.path().join("pack.idx"));
        // The first is there, the second is not, the folder of the third is not.
        write_index(&unnamed, b"index").unwrap();
        for _ in 0..2 {
            name_index(&unnamed, &named, b"index").unwrap();
            assert_eq!(fs::read(&named).unwrap(), b"index");
            assert!(!unnamed.exists());
        }
        let lost = folder.path().join("lost");
        let error = name_index(&lost.join("tmp.idx"), &lost.join("pack.idx"), b"index");
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// As long as no ref leads to it.
    #[test]
    fn git_keeps_a_finished_pack() {
        let folder = tempfile::tempdir().unwrap();
        assert!(git(folder.path(), &["init", "-q", "--bare"]).0);
        let packs = folder.path().join("objects/pack");
        let mut pack = PackWriter::create(&packs).unwrap();
        let id = pack.append_whole(ObjectKind::Blob, b"text", &mut Deflater::new()).unwrap();
        // The name of the unfinished pack, too, is gone after this.
        assert!(git(folder.path(), &["gc", "-q", "--prune=now"]).0);
        let finished = pack.finish().unwrap();
        for args in [&["repack", "-adq"][..], &["gc", "-q", "--prune=now"]] {
            assert!(git(folder.path(), args).0);
            let (is_there, text) = git(folder.path(), &["cat-file", "blob", &id.to_string()]);
            assert!(is_there, "{args:?}: {text}");
        }
        drop(finished);
        assert!(git(folder.path(), &["gc", "-q", "--prune=now"]).0);
        assert_eq!(fs::read_dir(&packs).unwrap().count(), 0);
    }

    /// A killed process leaves its pack, under a name that `git gc` removes.
    #[test]
    fn git_removes_the_pack_of_a_killed_process() {
        let folder = tempfile::tempdir().unwrap();
        assert!(git(folder.path(), &["init", "-q", "--bare"]).0);
        let packs = folder.path().join("objects/pack");
        let mut pack = PackWriter::create(&packs).unwrap();
        pack.append_whole(ObjectKind::Blob, b"text", &mut Deflater::new()).unwrap();
        std::mem::forget(pack);
        assert_eq!(fs::read_dir(&packs).unwrap().count(), 1);
        assert!(git(folder.path(), &["gc", "-q", "--prune=now"]).0);
        assert_eq!(fs::read_dir(&packs).unwrap().count(), 0);
    }
}

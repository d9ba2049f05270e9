//! Manifests as trees.
//!
//! A tree is made from the tree of another manifest and the paths that changed; unchanged folders
//! are shared. The unchanged runs of a listing are the delta that is written, so no listings are
//! compared. A folder of an earlier conversion is read when a change is below it.
//!
//! Old converters wrote paths with an empty name in them (`a//b`, `/a`). git has no such names:
//! what is below an empty name is merged into the folder around it, whose own entries win. The tree
//! of such a folder here keeps both parts apart, and only its object is merged.

use crate::git::deflate::Deflater;
use crate::git::delta::GitDeltaWriter;
use crate::git::object::{EMPTY_TREE, ObjectKind, object_id};
use crate::git::pack_writer::{EncodedObject, PackWriter, is_delta_useful};
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::manifest::FileFlag;
use crate::object_id::GitId;
use memchr::memchr;
use std::cmp::Ordering;
use std::io;
use std::rc::Rc;
use std::sync::Mutex;

/// A folder.
pub(crate) struct Tree {
    /// The entries as git lists them, without those below an empty name.
    listing: Vec<u8>,
    /// The folders below that are in memory, by name; with the empty name, if there is one.
    folders: Vec<(Box<[u8]>, Rc<Tree>)>,
    /// The object.
    pub(crate) id: GitId,
}

/// The blob of a path, with its flag; `None`: the path is removed.
pub(crate) type PathChange<'p> = (&'p [u8], Option<(GitId, FileFlag)>);

/// Why a tree cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    #[error("writing a pack: {0}")]
    Pack(#[from] io::Error),
    #[error(transparent)]
    Git(#[from] GitDirectoryError),
    #[error("tree {0} is damaged")]
    Damaged(GitId),
}

/// Writes trees into a pack.
pub(crate) struct TreeWriter<'a> {
    pub(crate) pack: &'a Mutex<PackWriter>,
    pub(crate) repository: &'a mut GitDirectory,
    pub(crate) deflater: Deflater,
    git_delta: Vec<u8>,
}

/// What becomes of a name in a folder.
enum EntryChange {
    File(Option<(GitId, FileFlag)>),
    Folder(Option<Rc<Tree>>),
}

/// An entry of a listing.
struct Entry<'l> {
    name: &'l [u8],
    is_folder: bool,
    id: GitId,
    mode: &'l [u8],
    end: usize,
}

/// Reads the entry at a position.
fn entry_at(listing: &[u8], position: usize) -> Option<Entry<'_>> {
    let rest = listing.get(position..)?;
    let space = memchr(b' ', rest)?;
    let nul = memchr(0, rest)?;
    let mode = rest.get(..space)?;
    let name = rest.get(space + 1..nul)?;
    let id = rest.get(nul + 1..nul + 21)?.try_into().ok().map(GitId)?;
    Some(Entry { name, is_folder: mode == b"40000", id, mode, end: position + nul + 21 })
}

/// Returns the entries of a listing.
fn entries(listing: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut position = 0;
    std::iter::from_fn(move || {
        let entry = entry_at(listing, position)?;
        position = entry.end;
        Some(entry)
    })
}

/// Compares names as git does, which takes a folder's name as one with a slash at its end.
fn compare_names(a: (&[u8], bool), b: (&[u8], bool)) -> Ordering {
    let common = a.0.len().min(b.0.len());
    let next = |(name, is_folder): (&[u8], bool)| {
        name.get(common).copied().unwrap_or(if is_folder { b'/' } else { 0 })
    };
    a.0.get(..common).cmp(&b.0.get(..common)).then_with(|| next(a).cmp(&next(b)))
}

fn mode(flag: FileFlag) -> &'static [u8] {
    match flag {
        FileFlag::Plain => b"100644",
        FileFlag::Executable => b"100755",
        FileFlag::Link => b"120000",
    }
}

fn write_entry(listing: &mut Vec<u8>, mode: &[u8], name: &[u8], id: GitId) {
    listing.extend_from_slice(mode);
    listing.push(b' ');
    listing.extend_from_slice(name);
    listing.push(0);
    listing.extend_from_slice(&id.0);
}

impl Tree {
    /// Returns the tree without entries, from which a first tree is made.
    pub(crate) fn empty() -> Rc<Tree> {
        Rc::new(Tree { listing: Vec::new(), folders: Vec::new(), id: EMPTY_TREE })
    }

    fn folder(&self, name: &[u8]) -> Option<&Rc<Tree>> {
        let found = self.folders.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        self.folders.get(found).map(|(_, tree)| tree)
    }
}

impl<'a> TreeWriter<'a> {
    pub(crate) fn new(
        pack: &'a Mutex<PackWriter>,
        repository: &'a mut GitDirectory,
    ) -> TreeWriter<'a> {
        TreeWriter { pack, repository, deflater: Deflater::new(), git_delta: Vec::new() }
    }

    /// Reads a tree of an earlier conversion, without the folders below it.
    pub(crate) fn read(&mut self, id: GitId) -> Result<Rc<Tree>, TreeError> {
        if id == EMPTY_TREE {
            return Ok(Tree::empty());
        }
        let listing = self.repository.read_content(&id)?;
        let is_whole = entries(&listing).last().is_some_and(|last| last.end == listing.len());
        if !is_whole {
            return Err(TreeError::Damaged(id));
        }
        Ok(Rc::new(Tree { listing, folders: Vec::new(), id }))
    }

    /// Makes a tree from another one and its changes, which are sorted by path.
    pub(crate) fn update(
        &mut self,
        base: &Rc<Tree>,
        changes: &[PathChange<'_>],
    ) -> Result<Rc<Tree>, TreeError> {
        if changes.is_empty() {
            return Ok(base.clone());
        }
        Ok(self.update_folder(base, changes)?.unwrap_or_else(Tree::empty))
    }

    /// Returns the changed folder; `None` if nothing is left in it.
    fn update_folder(
        &mut self,
        base: &Rc<Tree>,
        changes: &[PathChange<'_>],
    ) -> Result<Option<Rc<Tree>>, TreeError> {
        let mut entry_changes = self.change_entries(base, changes)?;
        let name_of = |change: &(&[u8], EntryChange)| {
            (change.0.to_vec(), matches!(change.1, EntryChange::Folder(_)))
        };
        entry_changes.sort_by(|a, b| {
            let (a, b) = (name_of(a), name_of(b));
            compare_names((&a.0, a.1), (&b.0, b.1))
        });
        let (listing, instructions) = edit_listing(&base.listing, &entry_changes);
        let mut folders = base.folders.clone();
        for (name, change) in entry_changes {
            let EntryChange::Folder(folder) = change else { continue };
            match (folders.binary_search_by(|(other, _)| (**other).cmp(name)), folder) {
                (Ok(at), Some(folder)) => {
                    if let Some(place) = folders.get_mut(at) {
                        place.1 = folder;
                    }
                }
                (Ok(at), None) => drop(folders.remove(at)),
                (Err(at), Some(folder)) => folders.insert(at, (name.into(), folder)),
                (Err(_), None) => {}
            }
        }
        let below_empty_name = folders.first().filter(|(name, _)| name.is_empty());
        if let Some((_, below)) = below_empty_name {
            let below = self.object_listing(below)?;
            let merged = self.merge_listings(&listing, &below)?;
            let id = self.write_whole(&merged)?;
            return Ok(Some(Rc::new(Tree { listing, folders, id })));
        }
        if listing.is_empty() {
            return Ok(None);
        }
        let id = self.write(base, &listing, &instructions)?;
        Ok(Some(Rc::new(Tree { listing, folders, id })))
    }

    /// Groups changes by the first name of their paths, and makes the folders below.
    fn change_entries<'p>(
        &mut self,
        base: &Rc<Tree>,
        changes: &[PathChange<'p>],
    ) -> Result<Vec<(&'p [u8], EntryChange)>, TreeError> {
        let mut entry_changes: Vec<(&[u8], EntryChange)> = Vec::new();
        let mut rest = changes;
        while let Some((path, change)) = rest.first() {
            let Some(slash) = memchr(b'/', path) else {
                entry_changes.push((path, EntryChange::File(*change)));
                rest = rest.get(1..).unwrap_or_default();
                continue;
            };
            let (name, prefix) = (&path[..slash], &path[..=slash]);
            let below: Vec<PathChange<'_>> = rest
                .iter()
                .map_while(|(path, change)| Some((path.strip_prefix(prefix)?, *change)))
                .collect();
            rest = rest.get(below.len()..).unwrap_or_default();
            let folder = self.base_folder(base, name)?;
            let folder = self.update_folder(&folder, &below)?;
            entry_changes.push((name, EntryChange::Folder(folder)));
        }
        Ok(entry_changes)
    }

    /// Returns the folder with a name in a tree; an empty one if there is none.
    fn base_folder(&mut self, base: &Rc<Tree>, name: &[u8]) -> Result<Rc<Tree>, TreeError> {
        if let Some(folder) = base.folder(name) {
            return Ok(folder.clone());
        }
        let stored = entries(&base.listing).find(|entry| entry.is_folder && entry.name == name);
        match stored {
            Some(entry) => self.read(entry.id),
            None => Ok(Tree::empty()),
        }
    }

    /// Writes a changed listing, as a delta of the former one where that is shorter.
    fn write(
        &mut self,
        base: &Tree,
        listing: &[u8],
        instructions: &[ListingRun],
    ) -> Result<GitId, TreeError> {
        let id = object_id(ObjectKind::Tree, listing);
        let mut pack = crate::file_conversion::lock(self.pack);
        if pack.find(&id).is_some() {
            return Ok(id);
        }
        if let Some(place) = pack.find(&base.id).filter(|_| !base.listing.is_empty()) {
            let mut writer =
                GitDeltaWriter::new(&mut self.git_delta, base.listing.len(), listing.len());
            for run in instructions {
                match run {
                    ListingRun::Copy(start, len) => writer.copy(*start, *len),
                    ListingRun::Insert(start, len) => {
                        writer.insert(listing.get(*start..start + len).unwrap_or_default());
                    }
                }
            }
            if is_delta_useful(self.git_delta.len(), listing.len(), place) {
                let delta = &self.git_delta;
                pack.append(&EncodedObject::encode_delta(
                    id,
                    ObjectKind::Tree,
                    place,
                    delta,
                    &mut self.deflater,
                ))?;
                return Ok(id);
            }
        }
        pack.append(&EncodedObject::encode_whole(
            id,
            ObjectKind::Tree,
            listing,
            &mut self.deflater,
        ))?;
        Ok(id)
    }

    fn write_whole(&mut self, listing: &[u8]) -> Result<GitId, TreeError> {
        let mut pack = crate::file_conversion::lock(self.pack);
        Ok(pack.append_whole(ObjectKind::Tree, listing, &mut self.deflater)?)
    }

    /// Returns the listing of a tree's object, which differs from its own below an empty name.
    fn object_listing(&mut self, tree: &Rc<Tree>) -> Result<Vec<u8>, TreeError> {
        if tree.folders.first().is_some_and(|(name, _)| name.is_empty()) {
            return self.read_listing(tree.id);
        }
        Ok(tree.listing.clone())
    }

    fn read_listing(&mut self, id: GitId) -> Result<Vec<u8>, TreeError> {
        let read = crate::file_conversion::lock(self.pack).read(&id)?;
        match read {
            Some(listing) => Ok(listing),
            None => Ok(self.repository.read_content(&id)?),
        }
    }

    /// Merges a listing into another one, whose entries win; folders in both are merged.
    fn merge_listings(&mut self, own: &[u8], other: &[u8]) -> Result<Vec<u8>, TreeError> {
        let mut merged: Vec<(Vec<u8>, bool, Vec<u8>, GitId)> = entries(own)
            .map(|entry| (entry.name.to_vec(), entry.is_folder, entry.mode.to_vec(), entry.id))
            .collect();
        for entry in entries(other) {
            match merged.iter_mut().find(|(name, ..)| name == entry.name) {
                None => {
                    let name = entry.name.to_vec();
                    merged.push((name, entry.is_folder, entry.mode.to_vec(), entry.id));
                }
                Some((_, true, _, id)) if entry.is_folder && *id != entry.id => {
                    let (own, other) = (self.read_listing(*id)?, self.read_listing(entry.id)?);
                    let listing = self.merge_listings(&own, &other)?;
                    *id = self.write_whole(&listing)?;
                }
                Some(_) => {}
            }
        }
        merged.sort_by(|a, b| compare_names((&a.0, a.1), (&b.0, b.1)));
        let mut listing = Vec::new();
        for (name, _, mode, id) in &merged {
            write_entry(&mut listing, mode, name, *id);
        }
        Ok(listing)
    }
}

/// A part of a changed listing.
enum ListingRun {
    /// Bytes of the former listing: where they begin, and how many.
    Copy(usize, usize),
    /// Bytes that are new: where they begin in the changed listing, and how many.
    Insert(usize, usize),
}

/// Makes a listing from another one and changes that are sorted as git sorts. An entry with an
/// empty name is left out.
fn edit_listing(base: &[u8], changes: &[(&[u8], EntryChange)]) -> (Vec<u8>, Vec<ListingRun>) {
    let mut listing = Vec::with_capacity(base.len() + 64);
    let mut runs = Vec::new();
    let (mut copied_to, mut position) = (0, 0);
    for (name, change) in changes {
        let is_folder = matches!(change, EntryChange::Folder(_));
        let mut replaced_to = None;
        while let Some(entry) = entry_at(base, position) {
            match compare_names((entry.name, entry.is_folder), (name, is_folder)) {
                Ordering::Less => position = entry.end,
                Ordering::Equal => {
                    replaced_to = Some(entry.end);
                    break;
                }
                Ordering::Greater => break,
            }
        }
        push_copy(base, copied_to..position, &mut listing, &mut runs);
        let start = listing.len();
        match change {
            _ if name.is_empty() => {}
            EntryChange::File(Some((id, flag))) => {
                write_entry(&mut listing, mode(*flag), name, *id);
            }
            EntryChange::Folder(Some(folder)) => {
                write_entry(&mut listing, b"40000", name, folder.id);
            }
            EntryChange::File(None) | EntryChange::Folder(None) => {}
        }
        match runs.last_mut() {
            Some(ListingRun::Insert(_, len)) => *len += listing.len() - start,
            _ if listing.len() > start => {
                runs.push(ListingRun::Insert(start, listing.len() - start));
            }
            _ => {}
        }
        position = replaced_to.unwrap_or(position);
        copied_to = position;
    }
    push_copy(base, copied_to..base.len(), &mut listing, &mut runs);
    (listing, runs)
}

fn push_copy(
    base: &[u8],
    range: std::ops::Range<usize>,
    listing: &mut Vec<u8>,
    runs: &mut Vec<ListingRun>,
) {
    if !range.is_empty() {
        runs.push(ListingRun::Copy(range.start, range.len()));
        listing.extend_from_slice(base.get(range).unwrap_or_default());
    }
}

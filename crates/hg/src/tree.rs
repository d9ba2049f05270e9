//! Manifests as trees.
//!
//! A tree is made from the tree of another manifest and the paths that changed; unchanged folders
//! are shared. The unchanged runs of a listing are the delta that is written, so no listings are
//! compared. A folder of an earlier conversion is read when a change is below it.
//!
//! A manifest can have what git cannot:
//!
//! * A path that is a file and a folder (`a` and `a/b`). A folder here has one entry of a name. As
//!   in git-cinnabar, the changes of a manifest are made in order: first each changed path is
//!   removed, with all that is below it, then the new files are added, sorted by path, and take the
//!   places of what is in their way. So the entry depends on what was there before.
//! * Paths with an empty name (`a//b`, `/a`), from old converters. The entry with an empty name is
//!   kept apart, and only the object is merged ([`empty_names`]).
//!
//! Paths that are in the manifest and not in the tree are noted.

mod empty_names;
mod listing;

pub(crate) use listing::{compare_names, entry_at};

use crate::git::deflate::Deflater;
use crate::git::delta::GitDeltaWriter;
use crate::git::object::{EMPTY_TREE, ObjectKind, object_id};
use crate::git::pack_writer::{EncodedObject, PackWriter, is_delta_useful};
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::manifest::{ChangedFile, FileFlag, ManifestText};
use crate::mutex::lock;
use crate::object_id::{GitId, Node};
use listing::{EntryChange, ListingEdit, ListingRun, edit_listing, entries};
use memchr::memchr;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Mutex;

/// A folder.
pub(crate) struct Tree {
    /// The entries as git lists them, without the one with an empty name.
    listing: Vec<u8>,
    /// The folders below that are in memory, by name.
    folders: Vec<(Rc<[u8]>, Rc<Tree>)>,
    /// The entry with an empty name.
    nameless: Option<TreeEntry>,
    /// Whether it or a folder below has an entry with an empty name.
    has_empty_names: bool,
    /// The object.
    pub(crate) id: GitId,
}

/// An entry of a folder.
#[derive(Clone)]
enum TreeEntry {
    File,
    Folder(Rc<Tree>),
}

/// The folder that changes apply to.
enum FolderBase {
    Tree(Rc<Tree>),
    /// None, and nothing is added.
    Removed,
    /// None but a file, which stays, because nothing is added.
    File,
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

/// Writes trees into a pack, or only finds their ids.
pub(crate) struct TreeWriter<'a> {
    /// `None`: the trees are in the repository already.
    pack: Option<&'a Mutex<PackWriter>>,
    pub(crate) repository: &'a mut GitDirectory,
    pub(crate) deflater: Deflater,
    git_delta: Vec<u8>,
    /// The paths of manifests that are not in their trees.
    pub(crate) lost_paths: BTreeSet<Vec<u8>>,
}

/// The changes of the entries of a folder.
#[derive(Default)]
struct ChangedEntries<'p> {
    entries: Vec<(&'p [u8], EntryChange)>,
    /// The folders among them; `None`: nothing is left in one.
    folders: Vec<(&'p [u8], Option<Rc<Tree>>)>,
}

impl<'p> ChangedEntries<'p> {
    /// Sorts the entries as git does.
    fn sort(&mut self) {
        self.entries.sort_by(|(a, a_change), (b, b_change)| {
            compare_names((a, a_change.is_folder()), (b, b_change.is_folder()))
        });
    }

    /// Returns the change of the file with a name. Between it and the next folder, only longer
    /// names were added.
    fn file_change(&mut self, name: &[u8]) -> Option<&mut EntryChange> {
        let longer = self.entries.iter_mut().rev().take_while(|(other, _)| other.starts_with(name));
        let mut files = longer.filter(|(_, change)| !change.is_folder());
        files.find(|(other, _)| *other == name).map(|(_, change)| change)
    }

    fn has_folder(&self, name: &[u8]) -> bool {
        self.folders.iter().any(|(other, _)| *other == name)
    }

    /// Adds the change of a folder.
    fn push_folder(&mut self, name: &'p [u8], folder: Option<Rc<Tree>>) {
        self.entries.push((name, EntryChange::Folder(folder.as_ref().map(|folder| folder.id))));
        self.folders.push((name, folder));
    }
}

impl Tree {
    /// Returns the tree without entries, from which a first tree is made.
    pub(crate) fn empty() -> Rc<Tree> {
        Rc::new(Tree::read_from(Vec::new(), EMPTY_TREE))
    }

    /// Returns a tree whose folders are not in memory.
    fn read_from(listing: Vec<u8>, id: GitId) -> Tree {
        Tree { listing, folders: Vec::new(), nameless: None, has_empty_names: false, id }
    }

    fn folder(&self, name: &[u8]) -> Option<&Rc<Tree>> {
        let found = self.folders.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        self.folders.get(found).map(|(_, tree)| tree)
    }

    /// Returns the folders in memory after changes.
    fn changed_folders(
        &self,
        changes: Vec<(&[u8], Option<Rc<Tree>>)>,
    ) -> Vec<(Rc<[u8]>, Rc<Tree>)> {
        let mut folders = self.folders.clone();
        for (name, folder) in changes {
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
        folders
    }
}

impl<'a> TreeWriter<'a> {
    pub(crate) fn new(
        pack: &'a Mutex<PackWriter>,
        repository: &'a mut GitDirectory,
    ) -> TreeWriter<'a> {
        TreeWriter { pack: Some(pack), ..TreeWriter::without_pack(repository) }
    }

    /// Finds the ids of trees, and writes none of them.
    pub(crate) fn without_pack(repository: &'a mut GitDirectory) -> TreeWriter<'a> {
        TreeWriter {
            pack: None,
            repository,
            deflater: Deflater::new(),
            git_delta: Vec::new(),
            lost_paths: BTreeSet::new(),
        }
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
        Ok(Rc::new(Tree::read_from(listing, id)))
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
        Ok(self.update_folder(base, changes, 0)?.unwrap_or_else(Tree::empty))
    }

    /// Makes a tree from another one and changes of an earlier conversion. `blob_of` finds the
    /// blob of a file revision, which has a path.
    pub(crate) fn update_files<E: From<TreeError>>(
        &mut self,
        base: &Rc<Tree>,
        changes: &[ChangedFile],
        blob_of: impl Fn(&Node, &[u8]) -> Result<GitId, E>,
    ) -> Result<Rc<Tree>, E> {
        let mut path_changes: Vec<PathChange<'_>> = Vec::with_capacity(changes.len());
        for (path, file) in changes {
            let file = match file {
                Some((file, flag)) => Some((blob_of(file, path)?, *flag)),
                None => None,
            };
            path_changes.push((path, file));
        }
        Ok(self.update(base, &path_changes)?)
    }

    /// Makes the tree of an earlier conversion again that has empty names, because its object does
    /// not have them: from all lines or, if a path is a file and a folder, from the changes of all
    /// manifests before.
    pub(crate) fn make_again<E: From<TreeError>>(
        &mut self,
        id: GitId,
        text: &ManifestText,
        blob_of: impl Fn(&Node, &[u8]) -> Result<GitId, E>,
        all_changes: impl FnOnce() -> Result<Vec<Vec<ChangedFile>>, E>,
    ) -> Result<Rc<Tree>, E> {
        let tree = self.update_files(&Tree::empty(), &text.files(), &blob_of)?;
        if tree.id == id {
            return Ok(tree);
        }
        let mut all_changes = all_changes()?.into_iter();
        all_changes
            .try_fold(Tree::empty(), |tree, changes| self.update_files(&tree, &changes, &blob_of))
    }

    /// Returns the changed folder; `None` if nothing is left in it. `depth` bytes of each path are
    /// the folder's. Functions that lead back to this one keep little on the stack.
    fn update_folder(
        &mut self,
        base: &Rc<Tree>,
        changes: &[PathChange<'_>],
        depth: usize,
    ) -> Result<Option<Rc<Tree>>, TreeError> {
        let changed = self.change_entries(base, changes, depth)?;
        let prefix = changes.first().and_then(|(path, _)| path.get(..depth)).unwrap_or_default();
        self.write_folder(base, changed, prefix)
    }

    /// Groups changes by the first name of their paths, and makes the folders below.
    fn change_entries<'p>(
        &mut self,
        base: &Rc<Tree>,
        changes: &'p [PathChange<'p>],
        depth: usize,
    ) -> Result<ChangedEntries<'p>, TreeError> {
        let mut changed = ChangedEntries::default();
        let mut rest = changes;
        while let Some((path, change)) = rest.first() {
            let name = path.get(depth..).unwrap_or_default();
            let Some(slash) = memchr(b'/', name) else {
                changed.entries.push((name, EntryChange::File(*change)));
                rest = rest.get(1..).unwrap_or_default();
                continue;
            };
            let (name, prefix) = (&name[..slash], &name[..=slash]);
            let is_below = |path: &[u8]| path.get(depth..).is_some_and(|p| p.starts_with(prefix));
            let count = rest.iter().take_while(|(path, _)| is_below(path)).count();
            let (below, after) = rest.split_at(count);
            rest = after;
            match self.folder_base(base, name, &mut changed, below, depth + prefix.len())? {
                FolderBase::Tree(tree) => {
                    let folder = self.update_folder(&tree, below, depth + prefix.len())?;
                    changed.push_folder(name, folder);
                }
                FolderBase::Removed => changed.push_folder(name, None),
                FolderBase::File => {}
            }
        }
        Ok(changed)
    }

    /// Returns the folder that changes below a name apply to. An entry that another change removes,
    /// or that is in the way of a path, gives way.
    fn folder_base<'p>(
        &mut self,
        base: &Rc<Tree>,
        name: &'p [u8],
        changed: &mut ChangedEntries<'p>,
        below: &[PathChange<'_>],
        depth: usize,
    ) -> Result<FolderBase, TreeError> {
        let is_set = below.iter().any(|(_, file)| file.is_some());
        let entry = self.entry(base, name)?;
        if let Some(change) = changed.file_change(name) {
            if is_set && matches!(change, EntryChange::File(Some(_))) {
                *change = EntryChange::File(None);
                self.add_lost_file(below, depth);
            }
            if let Some(TreeEntry::Folder(folder)) = entry {
                let prefix = below.first().and_then(|(path, _)| path.get(..depth));
                self.add_lost_below(&folder, &mut prefix.unwrap_or_default().to_vec(), below)?;
            }
            return Ok(if is_set { FolderBase::Tree(Tree::empty()) } else { FolderBase::Removed });
        }
        match entry {
            Some(TreeEntry::Folder(folder)) => Ok(FolderBase::Tree(folder)),
            Some(TreeEntry::File) if is_set => {
                self.add_lost_file(below, depth);
                changed.entries.push((name, EntryChange::File(None)));
                Ok(FolderBase::Tree(Tree::empty()))
            }
            Some(TreeEntry::File) => Ok(FolderBase::File),
            None => Ok(FolderBase::Tree(Tree::empty())),
        }
    }

    /// Returns the entry with a name.
    fn entry(&mut self, base: &Tree, name: &[u8]) -> Result<Option<TreeEntry>, TreeError> {
        if name.is_empty() {
            return Ok(base.nameless.clone());
        }
        if let Some(folder) = base.folder(name) {
            return Ok(Some(TreeEntry::Folder(folder.clone())));
        }
        match entries(&base.listing).find(|entry| entry.name == name) {
            Some(entry) if entry.is_folder => Ok(Some(TreeEntry::Folder(self.read(entry.id)?))),
            Some(_) => Ok(Some(TreeEntry::File)),
            None => Ok(None),
        }
    }

    /// Makes a folder from its changed entries; `None` if nothing is left in it.
    fn write_folder(
        &mut self,
        base: &Tree,
        mut changed: ChangedEntries<'_>,
        prefix: &[u8],
    ) -> Result<Option<Rc<Tree>>, TreeError> {
        let nameless = self.change_nameless(base, &mut changed, prefix)?;
        let ListingEdit { listing, runs, .. } = self.edit(base, &mut changed, prefix)?;
        if listing.is_empty() && nameless.is_none() {
            return Ok(None);
        }
        let folders = base.changed_folders(changed.folders);
        let has_empty_names =
            nameless.is_some() || folders.iter().any(|(_, folder)| folder.has_empty_names);
        let mut tree = Tree { listing, folders, nameless, has_empty_names, id: GitId::NULL };
        tree.id = match &tree.nameless {
            Some(TreeEntry::Folder(below)) => self.merge_nameless(&tree, below, prefix)?,
            nameless => {
                if nameless.is_some() {
                    self.lost_paths.insert(prefix.to_vec());
                }
                self.write(base, &tree.listing, &runs)?
            }
        };
        Ok(Some(Rc::new(tree)))
    }

    /// Takes the changes of the entry with an empty name, and returns the entry that they give.
    fn change_nameless(
        &mut self,
        base: &Tree,
        changed: &mut ChangedEntries<'_>,
        prefix: &[u8],
    ) -> Result<Option<TreeEntry>, TreeError> {
        let is_nameless = |(name, _): &(&[u8], EntryChange)| name.is_empty();
        if !changed.entries.iter().any(is_nameless) {
            return Ok(base.nameless.clone());
        }
        let mut is_file = false;
        changed.entries.retain(|entry| {
            is_file |= is_nameless(entry) && matches!(entry.1, EntryChange::File(Some(_)));
            !is_nameless(entry)
        });
        let folder = changed.folders.iter().position(|(name, _)| name.is_empty());
        match (folder.map(|at| changed.folders.remove(at).1), &base.nameless) {
            (Some(Some(folder)), _) => return Ok(Some(TreeEntry::Folder(folder))),
            (None, Some(TreeEntry::Folder(folder))) => {
                self.add_lost_below(folder, &mut [prefix, b"/"].concat(), &[])?;
            }
            _ => {}
        }
        Ok(is_file.then_some(TreeEntry::File))
    }

    /// Changes a listing. A folder that has the name of a changed file is removed.
    fn edit(
        &mut self,
        base: &Tree,
        changed: &mut ChangedEntries<'_>,
        prefix: &[u8],
    ) -> Result<ListingEdit, TreeError> {
        changed.sort();
        let edited = edit_listing(&base.listing, &changed.entries);
        let taken = edited.taken.iter().filter_map(|at| changed.entries.get(*at));
        let taken = taken.map(|(name, _)| *name).filter(|name| !changed.has_folder(name));
        let taken: Vec<&[u8]> = taken.collect();
        if taken.is_empty() {
            return Ok(edited);
        }
        for name in taken {
            if let Some(TreeEntry::Folder(folder)) = self.entry(base, name)? {
                self.add_lost_below(&folder, &mut [prefix, name, b"/"].concat(), &[])?;
            }
            changed.push_folder(name, None);
        }
        changed.sort();
        Ok(edit_listing(&base.listing, &changed.entries))
    }

    /// Writes a changed listing, as a delta of the former one where that is shorter.
    fn write(
        &mut self,
        base: &Tree,
        listing: &[u8],
        instructions: &[ListingRun],
    ) -> Result<GitId, TreeError> {
        let id = object_id(ObjectKind::Tree, listing);
        let Some(pack) = self.pack else { return Ok(id) };
        // Commits are written meanwhile: the lock is not held while bytes are compressed.
        let base_place = {
            let pack = lock(pack);
            if pack.find(&id).is_some() {
                pack.check_content(&id, listing)?;
                return Ok(id);
            }
            pack.find(&base.id)
        };
        // The object of a merged folder has other entries than its listing.
        let is_merged = matches!(base.nameless, Some(TreeEntry::Folder(_)));
        if let Some(place) = base_place.filter(|_| !base.listing.is_empty() && !is_merged) {
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
                let (delta, deflater) = (&self.git_delta, &mut self.deflater);
                let object =
                    EncodedObject::encode_delta(id, ObjectKind::Tree, place, delta, deflater);
                return Ok(lock(pack).append_content(&object, listing)?);
            }
        }
        let object = EncodedObject::encode_whole(id, ObjectKind::Tree, listing, &mut self.deflater);
        Ok(lock(pack).append_content(&object, listing)?)
    }

    fn write_whole(&mut self, listing: &[u8]) -> Result<GitId, TreeError> {
        let Some(pack) = self.pack else { return Ok(object_id(ObjectKind::Tree, listing)) };
        Ok(lock(pack).append_whole(ObjectKind::Tree, listing, &mut self.deflater)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object with the id of another listing stands for a collision of SHA-1.
    #[test]
    fn another_content_of_a_listing_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        GitDirectory::create(folder.path()).unwrap();
        let mut repository = GitDirectory::new(folder.path());
        let names: Vec<String> = (0..100).map(|number| format!("walrus{number:03}")).collect();
        let blob = Some((GitId([1; 20]), FileFlag::Plain));
        let many: Vec<PathChange<'_>> = names.iter().map(|name| (name.as_bytes(), blob)).collect();
        let empty = Tree::empty();
        let base = TreeWriter::without_pack(&mut repository).update(&empty, &many).unwrap();
        let seal: &[PathChange<'_>] = &[(b"seal", blob)];
        // Whole, below another folder, merged with a folder without a name, and as a delta.
        let cases: [(&Rc<Tree>, &[PathChange<'_>]); 4] = [
            (&empty, seal),
            (&empty, &[(b"a/b", blob)]),
            (&empty, &[(b"/a", blob)]),
            (&base, seal),
        ];
        for (base, changes) in cases {
            let pack = Mutex::new(PackWriter::create(folder.path()).unwrap());
            let changed = TreeWriter::without_pack(&mut repository).update(base, changes).unwrap();
            lock(&pack).append_forged(changed.id, ObjectKind::Tree);
            let mut writer = TreeWriter::new(&pack, &mut repository);
            if !base.listing.is_empty() {
                writer.update(&empty, &many).unwrap();
            }
            let error = writer.update(base, changes).map(|_| ()).unwrap_err().to_string();
            let id = changed.id;
            let expected = format!("another content has the id {id} (a collision of SHA-1)");
            assert_eq!(error, format!("writing a pack: {expected}"), "{changes:?}");
        }
    }
}

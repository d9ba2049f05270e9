//! Paths with an empty name, and the paths that are not in a tree.
//!
//! git has no empty names. What is below one is merged into the folder around it, whose own entries
//! win. Folders that are in both are merged, too, and within them, as within folders that are only
//! below the empty name, what is below another empty name is left out. These are the trees of
//! git-cinnabar; where a file and a folder meet, it writes both, which git refuses.

use super::listing::{ListingEntry, compare_names, entries, write_entry};
use super::{PathChange, Tree, TreeEntry, TreeError, TreeWriter};
use crate::object_id::GitId;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A folder in a merge, with the beginning of its paths.
#[derive(Clone, Copy)]
struct MergedFolder<'t> {
    tree: &'t Tree,
    prefix: &'t [u8],
}

impl MergedFolder<'_> {
    fn path(&self, name: &[u8]) -> Vec<u8> {
        [self.prefix, name].concat()
    }

    /// Returns the beginning of the paths below a folder.
    fn path_below(&self, name: &[u8]) -> Vec<u8> {
        [self.prefix, name, b"/"].concat()
    }

    fn entries(&self) -> BTreeMap<&[u8], ListingEntry<'_>> {
        entries(&self.tree.listing).map(|entry| (entry.name, entry)).collect()
    }
}

impl TreeWriter<'_> {
    /// Writes the object of a folder with another one below its empty name.
    pub(super) fn merge_nameless(
        &mut self,
        tree: &Tree,
        below: &Tree,
        prefix: &[u8],
    ) -> Result<GitId, TreeError> {
        let below_prefix = [prefix, b"/"].concat();
        self.add_lost_nameless(below, &below_prefix)?;
        let own = MergedFolder { tree, prefix };
        self.merge(own, MergedFolder { tree: below, prefix: &below_prefix })
    }

    /// Writes the object of two folders, of which the first one wins, without empty names.
    fn merge(
        &mut self,
        own: MergedFolder<'_>,
        other: MergedFolder<'_>,
    ) -> Result<GitId, TreeError> {
        let (own_entries, other_entries) = (own.entries(), other.entries());
        let mut merged: Vec<ListingEntry<'_>> = Vec::new();
        for (name, mut entry) in own_entries.iter().map(|(name, entry)| (*name, *entry)) {
            match other_entries.get(name) {
                Some(clash) if clash.is_folder && entry.is_folder => {
                    entry.id = self.merge_folders((own, entry.id), (other, clash.id), name)?;
                }
                Some(clash) => self.add_lost_entry(&entry, other, clash)?,
                None => {}
            }
            merged.push(entry);
        }
        let is_other = |entry: &&ListingEntry<'_>| !own_entries.contains_key(entry.name);
        for mut entry in other_entries.values().filter(is_other).copied() {
            if entry.is_folder {
                let side = (other, entry.id);
                entry.id = self.merge_folders(side, side, entry.name)?;
            }
            merged.push(entry);
        }
        merged.sort_by(|a, b| compare_names((a.name, a.is_folder), (b.name, b.is_folder)));
        let mut listing = Vec::new();
        for entry in &merged {
            write_entry(&mut listing, entry.mode, entry.name, entry.id);
        }
        self.write_whole(&listing)
    }

    /// Merges the folders with a name, whose objects are known, and returns the object.
    fn merge_folders(
        &mut self,
        (own, own_id): (MergedFolder<'_>, GitId),
        (other, other_id): (MergedFolder<'_>, GitId),
        name: &[u8],
    ) -> Result<GitId, TreeError> {
        let has_empty_names =
            |side: MergedFolder<'_>| side.tree.folder(name).is_some_and(|f| f.has_empty_names);
        if own_id == other_id && !has_empty_names(own) && !has_empty_names(other) {
            return Ok(own_id);
        }
        let own_tree = self.folder_of(own.tree, name, own_id)?;
        let other_tree = self.folder_of(other.tree, name, other_id)?;
        let (own_prefix, other_prefix) = (own.path_below(name), other.path_below(name));
        self.add_lost_nameless(&own_tree, &own_prefix)?;
        self.add_lost_nameless(&other_tree, &other_prefix)?;
        self.merge(
            MergedFolder { tree: &own_tree, prefix: &own_prefix },
            MergedFolder { tree: &other_tree, prefix: &other_prefix },
        )
    }

    /// Returns a folder below another one. Those that are not in memory are in the repository.
    fn folder_of(&mut self, tree: &Tree, name: &[u8], id: GitId) -> Result<Rc<Tree>, TreeError> {
        match tree.folder(name) {
            Some(folder) => Ok(folder.clone()),
            None => self.read(id),
        }
    }

    /// Notes an entry that has no place, because another one has its name.
    fn add_lost_entry(
        &mut self,
        own: &ListingEntry<'_>,
        other: MergedFolder<'_>,
        entry: &ListingEntry<'_>,
    ) -> Result<(), TreeError> {
        if entry.is_folder {
            let folder = self.folder_of(other.tree, entry.name, entry.id)?;
            return self.add_lost_below(&folder, &mut other.path_below(entry.name), &[]);
        }
        if (own.mode, own.id) != (entry.mode, entry.id) {
            self.lost_paths.insert(other.path(entry.name));
        }
        Ok(())
    }

    /// Notes what is below the empty name of a folder.
    fn add_lost_nameless(&mut self, tree: &Tree, prefix: &[u8]) -> Result<(), TreeError> {
        match &tree.nameless {
            Some(TreeEntry::Folder(folder)) => {
                self.add_lost_below(folder, &mut [prefix, b"/"].concat(), &[])
            }
            Some(TreeEntry::File) => {
                self.lost_paths.insert(prefix.to_vec());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Notes the file that has the name of the folder in which changes are.
    pub(super) fn add_lost_file(&mut self, below: &[PathChange<'_>], depth: usize) {
        let path = below.first().and_then(|(path, _)| path.get(..depth.saturating_sub(1)));
        self.lost_paths.extend(path.map(<[u8]>::to_vec));
    }

    /// Notes the files of a folder, but for those that changes, sorted by path, are of.
    pub(super) fn add_lost_below(
        &mut self,
        folder: &Tree,
        prefix: &mut Vec<u8>,
        changes: &[PathChange<'_>],
    ) -> Result<(), TreeError> {
        let len = prefix.len();
        let is_changed =
            |path: &[u8]| changes.binary_search_by(|(other, _)| (*other).cmp(path)).is_ok();
        for entry in entries(&folder.listing) {
            prefix.extend_from_slice(entry.name);
            if entry.is_folder {
                prefix.push(b'/');
                let below = self.folder_of(folder, entry.name, entry.id)?;
                self.add_lost_below(&below, prefix, changes)?;
            } else if !is_changed(prefix) {
                self.lost_paths.insert(prefix.clone());
            }
            prefix.truncate(len);
        }
        match &folder.nameless {
            Some(TreeEntry::Folder(below)) => {
                prefix.push(b'/');
                self.add_lost_below(below, prefix, changes)?;
                prefix.truncate(len);
            }
            Some(TreeEntry::File) if !is_changed(prefix) => {
                self.lost_paths.insert(prefix.clone());
            }
            Some(TreeEntry::File) | None => {}
        }
        Ok(())
    }
}

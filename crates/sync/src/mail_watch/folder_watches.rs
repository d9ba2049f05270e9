//! The watched folders, under all paths by which sources reach them.
//!
//! The system has one watch for a folder, whatever its paths are, and names the changes by the path
//! that it was told last. So it is told one path, and changes are passed on under the others.
//!
//! Separate from its parent, which decides which folders matter.

use larder_store::{DirectoryChange, DirectoryWatcher, WatchOutcome};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The device and the inode of a folder.
type FolderIdentity = (u64, u64);

/// The watched folders.
#[derive(Debug)]
pub(super) struct FolderWatches {
    watcher: DirectoryWatcher,
    identities: BTreeMap<PathBuf, FolderIdentity>,
    /// The paths of each folder. The watcher knows the first.
    paths: HashMap<FolderIdentity, Vec<PathBuf>>,
    /// The paths whose watches ended since [`FolderWatches::finish_update`].
    ended: BTreeSet<PathBuf>,
}

impl FolderWatches {
    pub(super) fn new(watcher: DirectoryWatcher) -> FolderWatches {
        FolderWatches {
            watcher,
            identities: BTreeMap::new(),
            paths: HashMap::new(),
            ended: BTreeSet::new(),
        }
    }

    /// Returns the number of folders.
    pub(super) fn count(&self) -> usize {
        self.paths.len()
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.identities.contains_key(path)
    }

    /// Returns whether a folder at a path, or below it, is watched.
    pub(super) fn has_within(&self, path: &Path) -> bool {
        self.paths_within(path).next().is_some()
    }

    /// Watches the folder at a path, if that needs no more watches than the limit.
    pub(super) fn add(&mut self, path: PathBuf, limit: usize) -> WatchOutcome {
        let Some(identity) = find_identity(&path) else { return WatchOutcome::Missing };
        if !self.paths.contains_key(&identity) {
            let outcome = match self.paths.len() < limit {
                true => self.watcher.watch(&path),
                false => WatchOutcome::LimitReached,
            };
            if outcome != WatchOutcome::Watched {
                return outcome;
            }
        }
        self.paths.entry(identity).or_default().push(path.clone());
        self.identities.insert(path, identity);
        WatchOutcome::Watched
    }

    /// Ends the watches of all folders but these.
    pub(super) fn retain(&mut self, wanted: &BTreeSet<PathBuf>) {
        let is_gone = |path: &&PathBuf| !wanted.contains(*path);
        let gone: Vec<PathBuf> = self.identities.keys().filter(is_gone).cloned().collect();
        gone.iter().for_each(|path| self.remove(path));
    }

    /// Ends the watches of the folders at a path and below it.
    pub(super) fn forget(&mut self, path: &Path) {
        let gone: Vec<PathBuf> = self.paths_within(path).cloned().collect();
        gone.iter().for_each(|path| self.remove(path));
    }

    /// Ends the watches of the folders at a path and below it that are not there any more, or are
    /// others now. While a folder has no watch, changes in it are lost.
    pub(super) fn forget_replaced(&mut self, path: &Path) {
        let is_replaced =
            |path: &&PathBuf| find_identity(path) != self.identities.get(*path).copied();
        let gone: Vec<PathBuf> = self.paths_within(path).filter(is_replaced).cloned().collect();
        gone.iter().for_each(|path| self.remove(path));
    }

    /// Returns whether the watch of a path ended before it was added again.
    pub(super) fn has_ended(&self, path: &Path) -> bool {
        self.ended.contains(path)
    }

    /// Ends an update: what is not watched again has no other watch to be compared with.
    pub(super) fn finish_update(&mut self) {
        self.ended.clear();
    }

    /// Returns a change under all paths of its folder; one that a watched folder went away, under
    /// all paths of that, too.
    pub(super) fn translate(&self, change: DirectoryChange) -> Vec<DirectoryChange> {
        let (path, to_change): (_, fn(PathBuf) -> DirectoryChange) = match &change {
            DirectoryChange::Added(path) => (path, DirectoryChange::Added),
            DirectoryChange::Removed(path) => (path, DirectoryChange::Removed),
            DirectoryChange::Edited(path) => (path, DirectoryChange::Edited),
            DirectoryChange::Lost => return vec![change],
        };
        let mut paths = vec![path.clone()];
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
            paths.extend(self.paths_of(parent).iter().map(|parent| parent.join(name)));
        }
        if matches!(change, DirectoryChange::Removed(_)) {
            paths.extend(self.paths_of(path).iter().cloned());
        }
        paths.sort_unstable();
        paths.dedup();
        paths.into_iter().map(to_change).collect()
    }

    /// Returns all paths of the watched folder at a path.
    fn paths_of(&self, path: &Path) -> &[PathBuf] {
        let paths = self.identities.get(path).and_then(|identity| self.paths.get(identity));
        paths.map_or(&[], Vec::as_slice)
    }

    /// Returns the watched paths at a path and below it.
    fn paths_within(&self, path: &Path) -> impl Iterator<Item = &PathBuf> {
        let path = path.to_path_buf();
        let from_path = self.identities.range(path.clone()..).map(|(one, _)| one);
        from_path.take_while(move |one| one.starts_with(&path))
    }

    /// Ends the watch of a path. With the path that the watcher knows, all of the folder go: those
    /// that are wanted are added again, by which changes in between are found.
    fn remove(&mut self, path: &Path) {
        let Some(identity) = self.identities.remove(path) else { return };
        self.ended.insert(path.to_path_buf());
        let Some(paths) = self.paths.get_mut(&identity) else { return };
        if paths.first().is_some_and(|first| first == path) {
            self.watcher.unwatch(path);
            for other in self.paths.remove(&identity).into_iter().flatten() {
                self.identities.remove(&other);
                self.ended.insert(other);
            }
        } else {
            paths.retain(|one| one != path);
        }
    }
}

/// Returns the device and the inode of the folder at a path; `None`: there is none.
fn find_identity(path: &Path) -> Option<FolderIdentity> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

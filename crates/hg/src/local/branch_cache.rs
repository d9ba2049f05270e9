//! Mercurial's cache of the branch of each changeset, which saves reading their texts
//! (mercurial/branchmap.py, `revbranchcache`).

use crate::local::layout::read_optional;
use crate::local::local_error::LocalError;
use crate::object_id::Node;
use std::path::Path;

/// The size of a record: the beginning of the node, the number of the branch.
const RECORD_BYTES: usize = 8;
/// The bit of the number that a changeset sets which closes its branch.
const CLOSING: u32 = 1 << 31;

/// The branches of the changesets that the cache has.
#[derive(Default)]
pub(crate) struct BranchCache {
    records: Vec<u8>,
    names: Vec<Vec<u8>>,
}

impl BranchCache {
    /// Reads the cache in a folder; empty if there is none.
    pub(crate) fn read(folder: &Path) -> Result<BranchCache, LocalError> {
        let names = read_optional(&folder.join("rbc-names-v1"))?.unwrap_or_default();
        let records = read_optional(&folder.join("rbc-revs-v1"))?.unwrap_or_default();
        let names = names.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        Ok(BranchCache { records, names })
    }

    /// Returns whether the cache has no changesets.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the branch of a changeset. A record that is empty, or that of another changeset,
    /// says nothing.
    pub(crate) fn branch(&self, revision: u32, node: Node) -> Option<&[u8]> {
        let start = (revision as usize).checked_mul(RECORD_BYTES)?;
        let (begin, rest) = self.records.get(start..)?.split_first_chunk::<4>()?;
        let number = u32::from_be_bytes(*rest.first_chunk::<4>()?) & !CLOSING;
        let is_record = *begin != [0; 4] && node.0.starts_with(begin);
        let name = self.names.get(number as usize).filter(|_| is_record);
        name.map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_of_the_same_changeset_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let numbers = [(7_u8, 0), (7, 1 | CLOSING), (7, 2), (0, 0), (8, 0)];
        let record = |(begin, number): (u8, u32)| [[begin; 4], number.to_be_bytes()].concat();
        let records: Vec<u8> = numbers.into_iter().flat_map(record).collect();
        std::fs::write(folder.path().join("rbc-revs-v1"), records).expect("a file");
        std::fs::write(folder.path().join("rbc-names-v1"), b"default\0other").expect("a file");
        let cache = BranchCache::read(folder.path()).expect("a cache");
        let found: Vec<_> = (0..6).map(|revision| cache.branch(revision, Node([7; 20]))).collect();
        assert_eq!(found[..2], [Some(b"default".as_slice()), Some(b"other")]);
        assert_eq!(found[2..], [None; 4]);
        assert_eq!(cache.branch(3, Node([0; 20])), None, "an empty record");
        assert!(BranchCache::read(Path::new("/nowhere")).expect("no cache").is_empty());
    }
}

//! Merging segments, so that lookups read few of them.
//!
//! Each fetch adds a segment. When there are [`MAX_SEGMENTS`], the newest ones become one, with
//! those before them that are not much larger; so a changeset is rewritten a few times in a long
//! history of fetches, and the large segment of the first clone hardly ever.

use super::segment::{MetadataError, MetadataSegment, StoredBase};
use super::segment_writer::{ChangedLine, ManifestRecord, MetadataWriter};
use crate::git::pack_writer::PackWriter;
use crate::git::repository::GitDirectory;
use crate::object_id::GitId;

/// The number of segments from which on the newest are merged.
pub(super) const MAX_SEGMENTS: usize = 8;
/// A segment is left out of a merge if it has more than so many times the changesets of all newer
/// ones.
const SIZE_RATIO: usize = 2;

/// Returns the first segment to be merged, by the numbers of their changesets, oldest first; `None`
/// if there are few.
pub(super) fn choose_merge(sizes: &[usize]) -> Option<usize> {
    if sizes.len() < MAX_SEGMENTS {
        return None;
    }
    let mut first = sizes.len().checked_sub(2)?;
    let mut sum: usize = sizes.iter().skip(first).sum();
    while let Some(size) = first.checked_sub(1).and_then(|before| sizes.get(before)) {
        if *size > SIZE_RATIO * sum {
            break;
        }
        sum += size;
        first -= 1;
    }
    Some(first)
}

/// Writes one segment with the content of several, and returns its tree.
pub(super) fn merge_segments(
    repository: &mut GitDirectory,
    pack: &mut PackWriter,
    segments: &mut [MetadataSegment],
) -> Result<GitId, MetadataError> {
    let mut writer = MetadataWriter::new();
    let (mut changesets, mut files, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    for segment in segments {
        changesets.extend(segment.read_changesets(repository)?);
        files.extend(segment.read_files(repository)?);
        copies.extend(segment.read_copies(repository)?);
        for text in segment.read_texts(repository)? {
            writer.add_text(pack, &text)?;
        }
        for (name, piece) in segment.read_snapshots(repository)? {
            writer.keep_snapshot(name, piece);
        }
        for manifest in segment.read_manifests(repository)? {
            let changes: Vec<ChangedLine<'_>> =
                manifest.changes.iter().map(|(path, file)| (path.as_slice(), *file)).collect();
            let base = match manifest.base {
                StoredBase::Empty => None,
                StoredBase::Node(base) => Some(base),
            };
            let (node, tree, chain) = (manifest.node, manifest.tree, manifest.chain);
            let record = ManifestRecord { node, tree, base, chain, changes: &changes };
            writer.add_manifest(pack, &record)?;
        }
    }
    Ok(writer.finish(pack, &changesets, &mut files, &mut copies)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand fetches after a clone: few segments, and the clone's is never rewritten.
    #[test]
    fn many_small_segments_are_merged_seldom() {
        let mut sizes = vec![50_000];
        let mut rewritten = 0;
        for _ in 0..1_000 {
            if let Some(first) = choose_merge(&sizes) {
                let merged: usize = sizes.drain(first..).sum();
                rewritten += merged;
                sizes.push(merged);
            }
            sizes.push(10);
            assert!(sizes.len() <= MAX_SEGMENTS);
        }
        assert_eq!(sizes.first(), Some(&50_000));
        assert!(rewritten < 10_000 * 10, "{rewritten}");
    }
}

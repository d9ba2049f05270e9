//! Merging segments, so that lookups read few of them.
//!
//! Each fetch adds a segment. When there are [`MAX_SEGMENTS`], the newest ones become one, with
//! those before them that are not much larger; so a changeset is rewritten a few times in a long
//! history of fetches, and the large segment of the first clone hardly ever.

use super::file_merge::merge_files;
use super::record::{RecordReader, StoredBase, StoredManifest};
use super::segment::MetadataError;
use super::segment_scan::{PieceName, SegmentScan, SegmentTable, pair_rows, read_piece};
use super::segment_writer::{ChangedLine, ManifestRecord, MetadataWriter};
use crate::git::pack_writer::PackWriter;
use crate::git::repository::GitDirectory;
use crate::object_id::{GitId, Node};
use std::io;

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

/// Writes one segment with the content of several, and returns its tree. One piece of each table is
/// read at a time: what is kept are ids, and the metadata of files.
pub(super) fn merge_segments(
    repository: &mut GitDirectory,
    pack: &mut PackWriter,
    segments: &[GitId],
) -> Result<GitId, MetadataError> {
    let mut writer = MetadataWriter::new();
    let (mut changesets, mut copies) = (Vec::new(), Vec::new());
    let mut scans = Vec::new();
    for id in segments {
        let scan = SegmentScan::open(repository, *id)?;
        for name in scan.pieces(repository, SegmentTable::Changesets)? {
            let piece = read_piece(repository, SegmentTable::Changesets, name.id)?;
            changesets.extend(pair_rows(&piece).ok_or(MetadataError::Damaged(name.id))?);
        }
        each_record(repository, &scan, SegmentTable::Texts, |record| {
            let text = record.bytes()?;
            Some(writer.add_text(pack, text))
        })?;
        each_record(repository, &scan, SegmentTable::Lines, |record| {
            let manifest = RecordReader { rest: record.bytes()? }.manifest()?;
            Some(add_manifest(&mut writer, pack, &manifest))
        })?;
        each_record(repository, &scan, SegmentTable::Copies, |record| {
            copies.push((Node(record.id()?), record.bytes()?.to_vec()));
            Some(Ok(()))
        })?;
        for PieceName { name, id } in scan.pieces(repository, SegmentTable::Snapshots)? {
            writer.keep_snapshot(name, id);
        }
        scans.push(scan);
    }
    // Several segments may have one revision, as in the tables of files.
    copies.sort_unstable();
    copies.dedup();
    let files = merge_files(repository, pack, &scans)?;
    Ok(writer.finish(pack, &changesets, files, &mut copies)?)
}

/// Passes on the records of a table. `each` returns `None` if a record is damaged.
fn each_record(
    repository: &mut GitDirectory,
    scan: &SegmentScan,
    table: SegmentTable,
    mut each: impl FnMut(&mut RecordReader<'_>) -> Option<io::Result<()>>,
) -> Result<(), MetadataError> {
    for name in scan.pieces(repository, table)? {
        let piece = read_piece(repository, table, name.id)?;
        let mut reader = RecordReader { rest: &piece };
        while !reader.rest.is_empty() {
            each(&mut reader).ok_or(MetadataError::Damaged(name.id))??;
        }
    }
    Ok(())
}

fn add_manifest(
    writer: &mut MetadataWriter,
    pack: &mut PackWriter,
    manifest: &StoredManifest,
) -> io::Result<()> {
    let changes: Vec<ChangedLine<'_>> =
        manifest.changes.iter().map(|(path, file)| (path.as_slice(), *file)).collect();
    let base = match manifest.base {
        StoredBase::Empty => None,
        StoredBase::Node(base) => Some(base),
    };
    let StoredManifest { node, tree, parents, chain, .. } = *manifest;
    writer
        .add_manifest(pack, &ManifestRecord { node, tree, base, parents, chain, changes: &changes })
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

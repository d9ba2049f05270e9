//! The tags of a repository: the files `.hgtags` of its heads, and the tags of this repository
//! alone (mercurial/tags.py).

use crate::changeset::manifest_of;
use crate::local::layout::read_optional;
use crate::local::local_error::LocalError;
use crate::local::snapshot::Snapshot;
use crate::manifest::ManifestLine;
use crate::object_id::{IdMap, Node};
use crate::revlog::{ChunkDecoder, Revlog};
use crate::tags::TagMerge;

/// The file of the history that has the tags.
const TAGS_FILE: &[u8] = b".hgtags";
/// The file of the tags that no other repository gets.
const LOCAL_TAGS_FILE: &str = "localtags";

/// Finds the node that a tag names, which may be one that does not exist. Removed tags are none.
pub(crate) fn find_tag(
    snapshot: &mut Snapshot,
    decoder: &mut ChunkDecoder,
    name: &[u8],
) -> Result<Option<Node>, LocalError> {
    let mut tags = TagMerge::default();
    let paths = snapshot.layout.filelog(TAGS_FILE);
    let filelog = paths.map(|(index, data)| Revlog::open(index, data)).transpose()?.flatten();
    if let Some(mut filelog) = filelog
        && has_name(&mut filelog, decoder, name)?
    {
        add_head_files(snapshot, decoder, &mut filelog, &mut tags)?;
    }
    let text = read_optional(&snapshot.layout.working_folder.join(LOCAL_TAGS_FILE))?;
    if let Some(text) = text {
        let mut local = TagMerge::default();
        local.add_file(Node::NULL.0, &text);
        // One of a changeset that is not there does not count, the removal of a tag does.
        let is_counted = |node: Node| node.is_null() || !snapshot.find_served(&[node]).is_empty();
        if local.find(name).is_some_and(is_counted) {
            tags.add_file(Node::NULL.0, &text);
        }
    }
    Ok(tags.find(name).filter(|node| !node.is_null()))
}

/// Returns whether a version of the file has a name. Without one, the manifests of the heads, which
/// may be large, are not read.
fn has_name(
    filelog: &mut Revlog,
    decoder: &mut ChunkDecoder,
    name: &[u8],
) -> Result<bool, LocalError> {
    // A line has a node, a space and a name.
    let name = [b" ", name].concat();
    for revision in 0..filelog.len() {
        let text = filelog.read_text(revision, decoder)?;
        if memchr::memmem::find(text, &name).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds the files of the heads, the oldest first. A block of metadata before a text has no lines
/// with a node and a name.
fn add_head_files(
    snapshot: &mut Snapshot,
    decoder: &mut ChunkDecoder,
    filelog: &mut Revlog,
    tags: &mut TagMerge,
) -> Result<(), LocalError> {
    let mut manifests = Vec::new();
    for head in snapshot.heads().into_iter().rev() {
        manifests.push(manifest_of(snapshot.changelog.read_text(head, decoder)?));
    }
    let store = &snapshot.layout.store;
    let opened = Revlog::open(store.join("00manifest.i"), store.join("00manifest.d"))?;
    let Some(mut manifest_log) = opened else { return Ok(()) };
    let (manifest_numbers, file_numbers) = (number_nodes(&manifest_log), number_nodes(filelog));
    for manifest in &manifests {
        let Some(number) = manifest_numbers.get(manifest) else { continue };
        let text = manifest_log.read_text(*number, decoder)?;
        let mut lines = text.split(|byte| *byte == b'\n').filter_map(ManifestLine::parse);
        let Some(line) = lines.find(|line| line.path == TAGS_FILE) else { continue };
        let Some(number) = file_numbers.get(&line.file) else { continue };
        tags.add_file(line.file.0, filelog.read_text(*number, decoder)?);
    }
    Ok(())
}

fn number_nodes(revlog: &Revlog) -> IdMap<Node, u32> {
    (0..).zip(revlog.entries()).map(|(number, entry)| (entry.node, number)).collect()
}

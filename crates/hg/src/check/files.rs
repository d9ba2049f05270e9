//! The check of the texts of file revisions.

use super::ConversionCheck;
use super::tables::{LoadedTables, NONE};
use crate::conversion::{Phase, Progress};
use crate::file_conversion::CENSORED_METADATA;
use crate::git::object_stream::{StreamContent, StreamedObject};
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::manifest::PathTable;
use crate::metadata::MetadataError;
use crate::object_id::{GitId, Node};
use crate::path_text::path_text;
use crate::revision::hash_revision;
use std::collections::{BTreeMap, BTreeSet};

/// The most revisions of a path of which all pairs are tried as parents.
const MAX_PAIRED: usize = 64;
/// How a pointer of LFS begins; the hash is that of the text it points to.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";

/// Where a file revision is mentioned first.
#[derive(Clone, Copy)]
struct Mention {
    /// The number of its path, or [`NONE`]: nowhere.
    path: u32,
    /// The revisions of the path in the parents of the manifest, or [`NONE`]; only if the parents
    /// of the revision are not known.
    before: [u32; 2],
    order: u32,
}

/// Where file revisions are mentioned first, by their numbers.
pub(super) struct FileMentions {
    mentions: Vec<Mention>,
    paths: PathTable,
    count: u32,
}

impl FileMentions {
    pub(super) fn new(files: usize) -> FileMentions {
        let mentions = vec![Mention { path: NONE, before: [NONE; 2], order: 0 }; files];
        FileMentions { mentions, paths: PathTable::default(), count: 0 }
    }

    fn get(&self, file: u32) -> Option<&Mention> {
        self.mentions.get(file as usize).filter(|mention| mention.path != NONE)
    }

    pub(super) fn has(&self, file: u32) -> bool {
        self.get(file).is_some()
    }

    /// Returns the name of a file revision in messages.
    fn subject(&self, tables: &LoadedTables, file: u32) -> String {
        let node = tables.files.get(file as usize).map_or(Node::NULL, |(node, _)| *node);
        let path = self.get(file).map(|mention| self.paths.path(mention.path));
        match path.map(path_text) {
            Some(path) => format!("file {path}, revision {node}"),
            None => format!("file revision {node}"),
        }
    }

    pub(super) fn add(&mut self, file: u32, path: &[u8], before: [u32; 2]) {
        let (path, order) = (self.paths.number(path), self.count);
        self.count += 1;
        if let Some(place) = self.mentions.get_mut(file as usize) {
            *place = Mention { path, before, order };
        }
    }
}

/// How many blobs that git cannot read are passed over: git is started again for each.
const MAX_UNREADABLE: usize = 100;

/// Reads the blobs of all file revisions, and compares the texts with the hashes.
pub(super) fn check_texts(
    repository: &mut GitDirectory,
    tables: &LoadedTables,
    mentions: &FileMentions,
    report: &mut ConversionCheck,
    progress: &mut dyn Progress,
) -> Result<(), MetadataError> {
    // One path after the other: so git finds the bases of deltas among what it has just read.
    let mut order: Vec<u32> = (0..tables.files.len() as u32).collect();
    let file_count = order.len();
    order.retain(|file| mentions.has(*file) || tables.known_parents(*file).is_some());
    report.without_manifest = file_count - order.len();
    order.sort_unstable_by_key(|file| {
        mentions.get(*file).map(|mention| (mention.path, mention.order))
    });
    let mut done = 0;
    let mut failed = Vec::new();
    let mut without_hash = 0;
    let mut each = |done: &mut usize, report: &mut ConversionCheck, object: StreamedObject<'_>| {
        let Some(file) = order.get(*done).copied() else { return Ok::<_, GitDirectoryError>(()) };
        *done += 1;
        progress.advance(Phase::CheckedFiles, *done as u64, Some(order.len() as u64));
        if object.kind.is_empty() {
            // It was reported.
            return Ok(());
        }
        let text = FileText::new(tables, file, object.content);
        let has_hash = match tables.known_parents(file) {
            Some(parents) => text.has_hash_of(tables, parents),
            None => {
                let before = mentions.get(file).map_or([NONE; 2], |mention| mention.before);
                text.has_hash(tables, before)
            }
        };
        if !has_hash {
            if text.has_other_hash() {
                without_hash += 1;
            } else if tables.known_parents(file).is_some() {
                report.add(mentions.subject(tables, file), "its text does not have its hash");
            } else {
                failed.push(file);
            }
        }
        Ok(())
    };
    for unreadable in 0.. {
        let rest = order.get(done..).unwrap_or_default();
        let blobs = rest.iter().filter_map(|file| tables.files.get(*file as usize));
        let blobs = blobs.map(|(_, blob)| *blob);
        let streamed = repository.stream_objects(blobs, StreamContent::Contents, |object| {
            each(&mut done, report, object)
        });
        match streamed {
            Ok(()) => break,
            // git ends at an object that it cannot read.
            Err(error) if error.is_early_end() && unreadable < MAX_UNREADABLE => {
                let Some(file) = order.get(done).copied() else { break };
                let blob = tables.files.get(file as usize).map_or(GitId::NULL, |(_, blob)| *blob);
                let what = format_args!("git cannot read its blob {blob}");
                report.add(mentions.subject(tables, file), what);
                done += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    report.without_hash = without_hash;
    check_again(repository, tables, mentions, &failed, report)
}

/// Tries all revisions of a path as parents of those that do not have their hash with the likely
/// ones.
fn check_again(
    repository: &mut GitDirectory,
    tables: &LoadedTables,
    mentions: &FileMentions,
    failed: &[u32],
    report: &mut ConversionCheck,
) -> Result<(), MetadataError> {
    if failed.is_empty() {
        return Ok(());
    }
    let mut revisions: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for file in failed {
        revisions.extend(mentions.get(*file).map(|mention| (mention.path, BTreeSet::new())));
    }
    let mut lines = GitDirectory::new(repository.directory());
    tables.each_manifest(&mut lines, |_, manifest| {
        for (path, file) in manifest.changes {
            let path = mentions.paths.find(&path);
            if let Some((file, _)) = file
                && let Some(of_path) = path.and_then(|path| revisions.get_mut(&path))
            {
                of_path.extend(tables.file_number(&file));
            }
        }
        Ok(())
    })?;
    for file in failed {
        let Some((_, blob)) = tables.files.get(*file as usize) else { continue };
        let object = repository.read_object(&blob.to_string())?;
        let content = object.map(|object| object.content).unwrap_or_default();
        let path = mentions.get(*file).map_or(NONE, |mention| mention.path);
        let others: Vec<u32> = revisions.get(&path).into_iter().flatten().copied().collect();
        let text = FileText::new(tables, *file, &content);
        let paired = others.get(..others.len().min(MAX_PAIRED)).unwrap_or_default();
        let has_hash = others.iter().any(|other| text.has_hash(tables, [*other, NONE]))
            || paired.iter().any(|first| {
                paired.iter().any(|second| text.has_hash_of(tables, [*first, *second]))
            });
        if !has_hash {
            let what = format_args!(
                "its text does not have its hash with any revisions of the path as parents (blob {blob})"
            );
            report.add(mentions.subject(tables, *file), what);
        }
    }
    Ok(())
}

/// The text of a file revision, in two parts.
struct FileText<'t> {
    node: Node,
    metadata: &'t [u8],
    content: &'t [u8],
}

impl<'t> FileText<'t> {
    fn new(tables: &'t LoadedTables, file: u32, content: &'t [u8]) -> FileText<'t> {
        let node = tables.files.get(file as usize).map_or(Node::NULL, |(node, _)| *node);
        let metadata = tables.copies.get(&node).map_or(&[][..], Vec::as_slice);
        FileText { node, metadata, content }
    }

    /// Returns whether it has its hash with two revisions as parents, one of them, or none.
    fn has_hash(&self, tables: &LoadedTables, [first, second]: [u32; 2]) -> bool {
        let mut tried: Vec<[u32; 2]> = Vec::with_capacity(4);
        [[first, second], [first, NONE], [NONE, second], [NONE; 2]].into_iter().any(|parents| {
            let is_new = !tried.contains(&parents);
            tried.push(parents);
            is_new && self.has_hash_of(tables, parents)
        })
    }

    fn has_hash_of(&self, tables: &LoadedTables, parents: [u32; 2]) -> bool {
        let [p1, p2] = parents
            .map(|number| tables.files.get(number as usize).map_or(Node::NULL, |(node, _)| *node));
        hash_revision(&p1, &p2, [self.metadata, self.content]) == self.node
    }

    /// Returns whether the hash is known to be that of another text.
    fn has_other_hash(&self) -> bool {
        self.metadata.starts_with(CENSORED_METADATA) || self.content.starts_with(LFS_POINTER)
    }
}

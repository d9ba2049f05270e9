//! The phase of files: one thread reads the source, others convert.

use super::conversion_error::ConversionError;
use super::progress::{Phase, Progress};
use super::stored_state::StoredState;
use crate::file_conversion::{ConvertedFile, FileConverter, FileError, FileRevisions, lock};
use crate::git::pack_writer::PackWriter;
use crate::manifest::FileTable;
use crate::object_id::{GitId, Node};
use crate::revision::{ChangeSource, Revision};
use std::mem;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// The bytes of revisions that are given to a thread at once.
const JOB_BYTES: usize = 1 << 20;
/// A file with more bytes of revisions is converted while it is read.
const MAX_BUFFERED_BYTES: usize = 16 << 20;

/// The blobs and the metadata of the files of a conversion.
#[derive(Default)]
pub(super) struct FileResults {
    /// The blobs of the revisions that manifests name, by their numbers; null: not seen.
    pub(super) blobs: Vec<GitId>,
    /// The revisions that no manifest of this conversion names.
    pub(super) others: Vec<(Node, GitId)>,
    pub(super) copies: Vec<(Node, Vec<u8>)>,
    revisions: u64,
    error: Option<FileError>,
}

impl FileResults {
    fn add(&mut self, files: &FileTable, converted: &mut Vec<ConvertedFile>) {
        self.revisions += converted.len() as u64;
        for ConvertedFile { node, blob, metadata } in converted.drain(..) {
            match files.find(&node).and_then(|number| self.blobs.get_mut(number as usize)) {
                Some(place) => *place = blob,
                None => self.others.push((node, blob)),
            }
            if !metadata.is_empty() {
                self.copies.push((node, metadata));
            }
        }
    }
}

/// Reads the files of a source and converts them by several threads.
pub(super) fn convert_files(
    source: &mut dyn ChangeSource,
    files: &FileTable,
    threads: NonZeroUsize,
    pack: &Mutex<PackWriter>,
    stored: &StoredState,
    progress: &mut dyn Progress,
) -> Result<FileResults, ConversionError> {
    let blobs = vec![GitId::NULL; files.nodes().len()];
    let results = Mutex::new(FileResults { blobs, ..FileResults::default() });
    let (sender, receiver) = sync_channel(2 * threads.get());
    let receiver = Mutex::new(receiver);
    let read = std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| convert_jobs(pack, stored, files, &receiver, &results));
        }
        let mut inline = FileConverter::new(pack, stored);
        // The end of the jobs ends the threads, also after an error.
        let sender = sender;
        read_files(source, &sender, &mut inline, files, &results, progress)
    });
    read?;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    match results.error.take() {
        Some(error) => Err(error.into()),
        None => Ok(results),
    }
}

/// Reads the groups of files, and gives them to the threads; very large ones are converted here.
fn read_files(
    source: &mut dyn ChangeSource,
    jobs: &SyncSender<Vec<FileRevisions>>,
    inline: &mut FileConverter<'_>,
    files: &FileTable,
    results: &Mutex<FileResults>,
    progress: &mut dyn Progress,
) -> Result<(), ConversionError> {
    let mut revision = Revision::empty();
    let mut job: Vec<FileRevisions> = Vec::new();
    let mut job_bytes = 0;
    let send = |job: Vec<FileRevisions>| {
        // The threads end only after an error, which is in the results.
        let _sent = jobs.send(job);
    };
    while let Some(path) = source.next_file()? {
        let mut file = FileRevisions::new(path);
        let mut is_large = false;
        while source.next_revision(&mut revision)? {
            file.push(&revision);
            if file.bytes() > MAX_BUFFERED_BYTES {
                is_large = true;
                break;
            }
        }
        if is_large {
            convert_large_file(source, file, inline, files, results)?;
        } else {
            job_bytes += file.bytes();
            job.push(file);
        }
        if job_bytes >= JOB_BYTES {
            job_bytes = 0;
            send(mem::take(&mut job));
            let results = lock(results);
            progress.advance(Phase::Files, results.revisions, None);
            if results.error.is_some() {
                return Ok(());
            }
        }
    }
    send(job);
    Ok(())
}

/// Converts a file, of which only a part was read, while the rest is read.
fn convert_large_file(
    source: &mut dyn ChangeSource,
    file: FileRevisions,
    converter: &mut FileConverter<'_>,
    files: &FileTable,
    results: &Mutex<FileResults>,
) -> Result<(), ConversionError> {
    let mut converted = Vec::new();
    converter.convert_first(&file, &mut converted)?;
    drop(file);
    let mut revision = Revision::empty();
    while source.next_revision(&mut revision)? {
        let Revision { node, base, flags, ref delta, .. } = revision;
        converted.push(converter.convert(node, base, flags, delta, true)?);
    }
    lock(results).add(files, &mut converted);
    Ok(())
}

/// Converts jobs until there are no more, or one fails.
fn convert_jobs(
    pack: &Mutex<PackWriter>,
    stored: &StoredState,
    files: &FileTable,
    jobs: &Mutex<Receiver<Vec<FileRevisions>>>,
    results: &Mutex<FileResults>,
) {
    let mut converter = FileConverter::new(pack, stored);
    let mut converted = Vec::new();
    loop {
        let next = lock(jobs).recv();
        let Ok(job) = next else { return };
        for file in &job {
            if let Err(error) = converter.convert_file(file, &mut converted) {
                lock(results).error.get_or_insert(error);
                break;
            }
        }
        lock(results).add(files, &mut converted);
    }
}

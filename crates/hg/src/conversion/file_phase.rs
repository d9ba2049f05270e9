//! The phase of files: one thread reads the source, others convert.

use super::byte_budget::{BudgetShare, ByteBudget};
use super::conversion_error::ConversionError;
use super::progress::{Phase, Progress};
use super::stored_state::StoredState;
use crate::file_conversion::{ConvertedFile, FileConverter, FileError, FileRevisions};
use crate::git::pack_writer::PackWriter;
use crate::manifest::FileTable;
use crate::metadata::{FileRows, NO_ROW, UNKNOWN_PARENTS};
use crate::mutex::lock;
use crate::object_id::{GitId, IdMap, Node};
use crate::oddity::OddityReport;
use crate::revision::{ChangeSource, Revision, RevisionHeader};
use std::mem;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of revisions that are given to threads and not converted yet. The texts of a file
/// are about as large as its revisions, and a thread has several of them in memory.
const MAX_JOBS_BYTES: usize = 32 << 20;
/// The bytes of revisions that are given to a thread at once.
const JOB_BYTES: usize = 1 << 20;
/// A file with more bytes of revisions is converted while it is read.
const MAX_BUFFERED_BYTES: usize = 16 << 20;

/// The blobs and the metadata of the files of a conversion.
pub(super) struct FileResults<'f> {
    /// Begins with the revisions that manifests name, by their numbers.
    pub(super) rows: FileRows<'f>,
    pub(super) copies: Vec<(Node, Vec<u8>)>,
    pub(super) oddities: OddityReport,
    /// The revisions with a text that they are not the hash of.
    replaced: IdMap<Node, ()>,
    revisions: u64,
    error: Option<FileError>,
}

impl<'f> FileResults<'f> {
    fn new(files: &'f FileTable) -> FileResults<'f> {
        FileResults {
            rows: FileRows::new(files.nodes()),
            copies: Vec::new(),
            oddities: OddityReport::default(),
            replaced: IdMap::default(),
            revisions: 0,
            error: None,
        }
    }

    /// Adds revisions. The same one may come with several paths, but its text must be the same.
    fn add(&mut self, files: &FileTable, converted: &mut Vec<ConvertedFile>) {
        self.revisions += converted.len() as u64;
        for file in converted.drain(..) {
            let ConvertedFile { node, blob, parents, metadata, has_hash } = file;
            if !has_hash {
                self.replaced.insert(node, ());
            }
            let parents = parents.map(|parent| self.parent_number(files, parent));
            match files.find(&node) {
                Some(number) => {
                    let former = self.rows.blob(number);
                    if former.is_some_and(|former| former != blob)
                        && !self.replaced.contains_key(&node)
                    {
                        self.error.get_or_insert(FileError::Collision { node });
                    }
                    self.rows.set(number, blob, parents);
                }
                None => drop(self.rows.push(node, blob, parents)),
            }
            if !metadata.is_empty() {
                self.copies.push((node, metadata));
            }
        }
    }

    /// Sorts the blocks of metadata, and makes equal ones one. Two different ones of a revision are
    /// an error.
    fn merge_copies(&mut self) -> Result<(), FileError> {
        self.copies.sort_unstable();
        self.copies.dedup();
        let is_pair = |pair: &&[(Node, Vec<u8>)]| matches!(pair, [(a, _), (b, _)] if a == b);
        let mut pairs = self.copies.windows(2).filter(is_pair).filter_map(<[_]>::first);
        match pairs.find(|(node, _)| !self.replaced.contains_key(node)) {
            Some((node, _)) => Err(FileError::Collision { node: *node }),
            None => Ok(()),
        }
    }

    fn parent_number(&mut self, files: &FileTable, parent: Node) -> u32 {
        if parent.is_null() {
            return NO_ROW;
        }
        let number = files.find(&parent);
        number.unwrap_or_else(|| self.rows.push(parent, GitId::NULL, UNKNOWN_PARENTS))
    }
}

/// The phase of files.
#[derive(Clone, Copy)]
pub(super) struct FilePhase<'f, 'c> {
    /// The revisions that new manifests name.
    pub(super) files: &'f FileTable,
    /// The revisions of earlier conversions that may come again, sorted: they are left out.
    pub(super) known: &'c [Node],
    pub(super) pack: &'c Mutex<PackWriter>,
    pub(super) stored: &'c StoredState,
}

impl<'f> FilePhase<'f, '_> {
    /// Reads the files of a source and converts them by several threads.
    pub(super) fn convert(
        self,
        source: &mut dyn ChangeSource,
        threads: NonZeroUsize,
        progress: &mut dyn Progress,
    ) -> Result<FileResults<'f>, ConversionError> {
        let results = Mutex::new(FileResults::new(self.files));
        let budget = ByteBudget::new(MAX_JOBS_BYTES);
        let convert = |jobs: &_| self.convert_jobs(jobs, threads, &results);
        with_threads(threads, convert, |jobs| {
            let mut inline = FileConverter::new(self.pack, self.stored, threads);
            let queue = RevisionQueue { jobs, budget: &budget };
            self.read_files(source, &queue, &mut inline, &results, progress)
        })?;
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        match results.error.take() {
            Some(error) => Err(error.into()),
            None => {
                results.merge_copies()?;
                progress.advance(Phase::Files, results.revisions, None);
                Ok(results)
            }
        }
    }

    /// Reads the next revision of a file that was not converted before.
    fn next_revision(
        self,
        source: &mut dyn ChangeSource,
        revision: &mut Revision,
    ) -> Result<bool, ConversionError> {
        while source.next_revision(revision)? {
            if self.known.binary_search(&revision.node).is_err() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the groups of files, and gives them to the threads; very large ones are converted
    /// here.
    fn read_files(
        self,
        source: &mut dyn ChangeSource,
        queue: &RevisionQueue<'_, '_>,
        inline: &mut FileConverter<'_>,
        results: &Mutex<FileResults<'_>>,
        progress: &mut dyn Progress,
    ) -> Result<(), ConversionError> {
        let mut revision = Revision::empty();
        let mut job: Vec<FileRevisions> = Vec::new();
        let mut job_bytes = 0;
        while let Some(path) = source.next_file()? {
            let mut file = FileRevisions::new(path);
            let mut is_large = false;
            while self.next_revision(source, &mut revision)? {
                is_large = file.bytes() + revision.delta.len() > MAX_BUFFERED_BYTES;
                if is_large {
                    break;
                }
                file.push(&revision);
            }
            if is_large {
                let start = (file, &mut revision);
                self.convert_large_file(source, start, inline, results, progress)?;
            } else {
                job_bytes += file.bytes();
                job.push(file);
            }
            if job_bytes >= JOB_BYTES {
                queue.send(mem::take(&mut job), mem::take(&mut job_bytes));
                let results = lock(results);
                progress.advance(Phase::Files, results.revisions, None);
                if results.error.is_some() {
                    return Ok(());
                }
            }
        }
        queue.send(job, job_bytes);
        Ok(())
    }

    /// Converts a file, of which only the first revisions and the next one were read, while the
    /// rest is read.
    fn convert_large_file(
        self,
        source: &mut dyn ChangeSource,
        (file, revision): (FileRevisions, &mut Revision),
        converter: &mut FileConverter<'_>,
        results: &Mutex<FileResults<'_>>,
        progress: &mut dyn Progress,
    ) -> Result<(), ConversionError> {
        let before = lock(results).revisions;
        let mut converted = Vec::new();
        converter.convert_first(&file, &mut converted)?;
        drop(file);
        loop {
            let header = RevisionHeader::new(revision);
            let delta = mem::take(&mut revision.delta);
            converted.push(converter.convert(&header, delta.into(), true)?);
            progress.advance(Phase::Files, before + converted.len() as u64, None);
            if !self.next_revision(source, revision)? {
                break;
            }
        }
        converter.end_file();
        let mut results = lock(results);
        results.add(self.files, &mut converted);
        results.oddities.merge(mem::take(&mut converter.oddities));
        Ok(())
    }

    /// Converts jobs until there are no more, or one fails.
    fn convert_jobs(
        self,
        jobs: &Mutex<Receiver<FileJob<'_>>>,
        threads: NonZeroUsize,
        results: &Mutex<FileResults<'_>>,
    ) {
        let mut converter = FileConverter::new(self.pack, self.stored, threads);
        let mut converted = Vec::new();
        loop {
            let next = lock(jobs).recv();
            let Ok(job) = next else { return };
            for file in &job.files {
                if let Err(error) = converter.convert_file(file, &mut converted) {
                    lock(results).error.get_or_insert(error);
                    break;
                }
            }
            converter.end_file();
            drop(job);
            let mut results = lock(results);
            results.add(self.files, &mut converted);
            results.oddities.merge(mem::take(&mut converter.oddities));
        }
    }
}

/// Files that one thread converts.
struct FileJob<'b> {
    files: Vec<FileRevisions>,
    _share: BudgetShare<'b>,
}

/// The way of files to the threads.
struct RevisionQueue<'q, 'b> {
    jobs: &'q SyncSender<FileJob<'b>>,
    budget: &'b ByteBudget,
}

impl RevisionQueue<'_, '_> {
    /// Waits until a job has room in memory, and sends it.
    fn send(&self, files: Vec<FileRevisions>, bytes: usize) {
        let share = self.budget.take(bytes);
        // The threads end only after an error, which is in the results.
        let _sent = self.jobs.send(FileJob { files, _share: share });
    }
}

/// Calls `send` with a sender of jobs, which threads receive meanwhile. A thread that panics ends
/// the caller by the same panic: without threads, nothing can be sent.
fn with_threads<J: Send, R>(
    threads: NonZeroUsize,
    receive: impl Fn(&Mutex<Receiver<J>>) + Sync,
    send: impl FnOnce(&SyncSender<J>) -> R,
) -> R {
    let (sender, receiver) = sync_channel(2 * threads.get());
    let receiver = Arc::new(Mutex::new(receiver));
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            let (receiver, receive) = (receiver.clone(), &receive);
            scope.spawn(move || receive(&receiver));
        }
        // The last thread drops the receiver, so that no sender waits for it.
        drop(receiver);
        // The end of the jobs ends the threads, also after an error.
        let sender = sender;
        send(&sender)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Different texts under one id, which only a collision of SHA-1 gives: so those that the
    /// conversion of two paths would find are made here.
    #[test]
    fn two_texts_of_a_revision_are_refused() {
        let node = Node([1; 20]);
        let mut files = FileTable::default();
        files.number(node);
        let file = |blob: u8, metadata: &[u8], has_hash: bool| ConvertedFile {
            node,
            blob: GitId([blob; 20]),
            parents: [Node::NULL; 2],
            metadata: metadata.to_vec(),
            has_hash,
        };
        let check = |texts: [ConvertedFile; 2], is_refused: bool| {
            let mut results = FileResults::new(&files);
            texts.into_iter().for_each(|text| results.add(&files, &mut vec![text]));
            let error = results.merge_copies().err().or(results.error);
            let message = error.map(|error| error.to_string());
            let expected =
                format!("two texts of file revisions have the id {node} (a collision of SHA-1)");
            assert_eq!(message, is_refused.then_some(expected));
        };
        check([file(1, b"copy", true), file(1, b"copy", true)], false);
        check([file(1, b"", true), file(2, b"", true)], true);
        check([file(1, b"copy", true), file(1, b"other", true)], true);
        // The text in place of a censored one is another one.
        check([file(1, b"", true), file(2, b"", false)], false);
        check([file(1, b"", false), file(2, b"", true)], false);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_in_a_thread_ends_the_sender() {
        let receive = |jobs: &Mutex<Receiver<u32>>| panic!("{:?}", lock(jobs).recv());
        with_threads(NonZeroUsize::MIN, receive, |jobs| while jobs.send(1).is_ok() {});
    }
}

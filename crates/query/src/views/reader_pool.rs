//! The readers of the views: usually one, more while several threads read.
//!
//! Separate from the engine so that an answer can be read without the engine's lock: a thread takes
//! a reader, reads, and puts it back. The reader that was put back last is used first, so a
//! program with one thread has one connection, with a warm page cache.

use super::mutex::lock_ignoring_poison;
use crate::error::Error;
use larder_store::Reader;
use larder_time::zone::ZoneDatabase;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Readers beyond this number are closed when they are put back.
const MAX_IDLE_READERS: usize = 4;

/// The idle readers, and the data needed to open another reader.
pub(super) struct ReaderPool {
    dir: PathBuf,
    zones: Arc<ZoneDatabase>,
    idle: Mutex<IdleReaders>,
}

struct IdleReaders {
    readers: Vec<Reader>,
    /// The number of times that the file of the store was found to be replaced. A reader of an
    /// earlier file is not put back.
    file_generation: u64,
}

impl ReaderPool {
    /// Opens a pool with one reader of the store in `dir`.
    ///
    /// # Errors
    /// As [`Reader::open_with_zones`].
    pub(super) fn open(dir: &Path, zones: Arc<ZoneDatabase>) -> Result<ReaderPool, Error> {
        let readers = vec![Reader::open_with_zones(dir, Arc::clone(&zones))?];
        let idle = Mutex::new(IdleReaders { readers, file_generation: 0 });
        Ok(ReaderPool { dir: dir.to_path_buf(), zones, idle })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lends a reader to `act`, and opens one if all are in use.
    ///
    /// # Errors
    /// As [`Reader::open_with_zones`], and the errors of `act`.
    pub(super) fn with_reader<T>(
        &self,
        act: impl FnOnce(&Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (reader, generation) = self.take();
        self.lend(reader, generation, act)
    }

    /// As [`ReaderPool::with_reader`], with a reader of the file that is at the store's path now: a
    /// damaged file may have been replaced.
    ///
    /// # Errors
    /// As [`ReaderPool::with_reader`].
    pub(super) fn with_current_reader<T>(
        &self,
        act: impl FnOnce(&Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut reader, mut generation) = self.take();
        if reader.as_ref().is_some_and(Reader::is_replaced) {
            reader = None;
            generation = self.discard_readers();
        }
        self.lend(reader, generation, act)
    }

    /// Releases the memory that idle readers hold for speed, and closes all of them but one.
    pub(super) fn release_memory(&self) {
        let mut idle = lock_ignoring_poison(&self.idle);
        idle.readers.truncate(1);
        idle.readers.iter().for_each(Reader::release_memory);
    }

    fn take(&self) -> (Option<Reader>, u64) {
        let mut idle = lock_ignoring_poison(&self.idle);
        (idle.readers.pop(), idle.file_generation)
    }

    /// Closes the readers of a file that was replaced. Returns the generation of its successor.
    fn discard_readers(&self) -> u64 {
        let mut idle = lock_ignoring_poison(&self.idle);
        idle.readers.retain(|reader| !reader.is_replaced());
        idle.file_generation += 1;
        idle.file_generation
    }

    fn lend<T>(
        &self,
        reader: Option<Reader>,
        generation: u64,
        act: impl FnOnce(&Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let reader = match reader {
            Some(reader) => reader,
            None => Reader::open_with_zones(&self.dir, Arc::clone(&self.zones))?,
        };
        let result = act(&reader);
        let mut idle = lock_ignoring_poison(&self.idle);
        if idle.file_generation == generation && idle.readers.len() < MAX_IDLE_READERS {
            idle.readers.push(reader);
        }
        result
    }

    #[cfg(test)]
    fn idle_count(&self) -> usize {
        lock_ignoring_poison(&self.idle).readers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::{Store, StoreOptions};

    fn create_store(dir: &Path) -> Store {
        Store::open(dir, &StoreOptions { create: true, ..StoreOptions::default() }).unwrap()
    }

    #[test]
    fn one_reader_serves_calls_that_do_not_overlap() {
        let dir = tempfile::tempdir().unwrap();
        drop(create_store(dir.path()));
        let pool = ReaderPool::open(dir.path(), ZoneDatabase::open_bundled()).unwrap();
        for _ in 0..3 {
            pool.with_reader(|reader| Ok(reader.epoch()?)).unwrap();
        }
        assert_eq!(pool.idle_count(), 1);
        pool.with_reader(|_| pool.with_reader(|reader| Ok(reader.epoch()?))).unwrap();
        assert_eq!(pool.idle_count(), 2, "calls that overlap have a reader each");
        pool.release_memory();
        assert_eq!(pool.idle_count(), 1);
    }

    #[test]
    fn a_reader_of_a_replaced_file_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        drop(create_store(dir.path()));
        let pool = ReaderPool::open(dir.path(), ZoneDatabase::open_bundled()).unwrap();
        let epoch = pool.with_reader(|reader| Ok(reader.epoch()?)).unwrap();
        pool.with_reader(|_| {
            for file in std::fs::read_dir(dir.path()).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
            drop(create_store(dir.path()));
            let current = pool.with_current_reader(|reader| Ok(reader.epoch()?)).unwrap();
            assert_ne!(current, epoch);
            Ok(())
        })
        .unwrap();
        let current = pool.with_current_reader(|reader| Ok(reader.epoch()?)).unwrap();
        assert_ne!(current, epoch);
    }
}

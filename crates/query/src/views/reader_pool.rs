//! The readers of the views: one for the change feed, and usually one for answers, more while
//! several threads read.
//!
//! Separate from the engine so that an answer can be read without the engine's lock: a thread takes
//! a reader, reads, and puts it back. The reader that was put back last is used first, so a
//! program with one thread reads its answers with one connection, with a warm page cache.
//!
//! The change feed has a reader of its own. Data versions of different readers cannot be compared,
//! so a feed that is polled with any other reader finds a change where there is none. And its
//! reader never maps the file for long, which the readers of answers do.

use super::mutex::lock_ignoring_poison;
use crate::error::Error;
use larder_store::{DataDirectory, Reader};
use larder_time::zone::ZoneDatabase;
use std::sync::{Arc, Mutex};

/// Readers beyond this number are closed when they are put back.
const MAX_IDLE_READERS: usize = 4;

/// The idle readers, and the data needed to open another reader.
pub(super) struct ReaderPool {
    directory: DataDirectory,
    zones: Arc<ZoneDatabase>,
    idle: Mutex<IdleReaders>,
}

struct IdleReaders {
    readers: Vec<Reader>,
    /// The reader of the change feed, unless it is in use.
    feed_reader: Option<Reader>,
    /// The number of times that the file of the store was found to be replaced. A reader of an
    /// earlier file is not put back.
    file_generation: u64,
}

impl ReaderPool {
    /// Opens a pool with the reader of the change feed of a store.
    ///
    /// # Errors
    /// As [`Reader::open_with_zones`].
    pub(super) fn open(
        directory: impl Into<DataDirectory>,
        zones: Arc<ZoneDatabase>,
    ) -> Result<ReaderPool, Error> {
        let directory = directory.into();
        let feed_reader = Some(Reader::open_with_zones(&directory, Arc::clone(&zones))?);
        let idle = IdleReaders { readers: Vec::new(), feed_reader, file_generation: 0 };
        let idle = Mutex::new(idle);
        Ok(ReaderPool { directory, zones, idle })
    }

    pub(super) fn directory(&self) -> &DataDirectory {
        &self.directory
    }

    /// Lends a reader to `act`, and opens one if all are in use.
    ///
    /// # Errors
    /// As [`Reader::open_with_zones`], and the errors of `act`.
    pub(super) fn with_reader<T>(
        &self,
        act: impl FnOnce(&Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (reader, generation) = {
            let mut idle = lock_ignoring_poison(&self.idle);
            (idle.readers.pop(), idle.file_generation)
        };
        let reader = reader.map_or_else(|| self.open_reader(), Ok)?;
        let result = act(&reader);
        let mut idle = lock_ignoring_poison(&self.idle);
        if idle.file_generation == generation && idle.readers.len() < MAX_IDLE_READERS {
            idle.readers.push(reader);
        }
        result
    }

    /// Lends the reader of the change feed to `act`. It reads the file that is at the store's path
    /// now: a damaged file may have been replaced. For one thread at a time, the one that holds the
    /// engine's lock.
    ///
    /// # Errors
    /// As [`ReaderPool::with_reader`].
    pub(super) fn with_feed_reader<T>(
        &self,
        act: impl FnOnce(&Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut reader = lock_ignoring_poison(&self.idle).feed_reader.take();
        if reader.as_ref().is_some_and(Reader::is_replaced) {
            reader = None;
            self.discard_readers();
        }
        let reader = reader.map_or_else(|| self.open_reader(), Ok)?;
        let result = act(&reader);
        lock_ignoring_poison(&self.idle).feed_reader = Some(reader);
        result
    }

    /// Releases the memory that idle readers hold for speed, and closes all of them but one
    /// and the reader of the change feed.
    pub(super) fn release_memory(&self) {
        let mut idle = lock_ignoring_poison(&self.idle);
        idle.readers.truncate(1);
        idle.readers.iter().chain(&idle.feed_reader).for_each(Reader::release_memory);
    }

    fn open_reader(&self) -> Result<Reader, Error> {
        Ok(Reader::open_with_zones(&self.directory, Arc::clone(&self.zones))?)
    }

    /// Closes the readers of a file that was replaced.
    fn discard_readers(&self) {
        let mut idle = lock_ignoring_poison(&self.idle);
        idle.readers.retain(|reader| !reader.is_replaced());
        idle.file_generation += 1;
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
    use std::path::Path;

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
            let current = pool.with_feed_reader(|reader| Ok(reader.epoch()?)).unwrap();
            assert_ne!(current, epoch);
            Ok(())
        })
        .unwrap();
        let current = pool.with_feed_reader(|reader| Ok(reader.epoch()?)).unwrap();
        assert_ne!(current, epoch);
    }
}

//! The store as the thread that writes uses it.
//!
//! Opening the store and every change wait for the write lock, so the thread of the bus does
//! neither after the start; it reads with a reader of its own. Separate from `call_threads`, which
//! knows nothing of stores.

use super::EdsOptions;
use super::call_error::CallError;
use larder_store::{Store, StoreOptions};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The store, opened again after its file was replaced. A clone refers to the same store.
#[derive(Clone)]
pub(super) struct StoreWriter {
    dir: PathBuf,
    options: StoreOptions,
    /// `None`: it has to be opened. Locked by the thread that writes only.
    store: Arc<Mutex<Option<Store>>>,
    is_replaced: Arc<AtomicBool>,
}

impl StoreWriter {
    pub(super) fn new(store: Store, options: &EdsOptions) -> StoreWriter {
        // A store that was moved away is an error rather than a reason to create one: it may be
        // moved back.
        let store_options = StoreOptions { create: false, ..options.store.clone() };
        StoreWriter {
            dir: options.dir.clone(),
            options: store_options,
            store: Arc::new(Mutex::new(Some(store))),
            is_replaced: Arc::default(),
        }
    }

    /// Makes the next write open the store again.
    pub(super) fn mark_replaced(&self) {
        self.is_replaced.store(true, Ordering::SeqCst);
    }

    /// Calls `write` with the store. Waits for the write lock as long as it takes.
    pub(super) fn write<T>(
        &self,
        write: impl FnOnce(&mut Store) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_replaced.swap(false, Ordering::SeqCst) {
            *store = None;
        }
        // After a panic the store is opened again.
        let mut opened = match store.take() {
            Some(opened) => opened,
            None => Store::open(&self.dir, &self.options)?,
        };
        let result = write(&mut opened);
        *store = Some(opened);
        result
    }
}

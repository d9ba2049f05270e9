//! Locking that ignores poisoning.
//!
//! Apart because every part that owns a mutex uses it: each step under a lock of the views leaves
//! the data consistent, so a panic in another thread is no reason to refuse it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

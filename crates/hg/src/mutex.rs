//! Locking what threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poisoned lock: another thread panicked, which ends the program anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

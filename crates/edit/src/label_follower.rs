//! Following the labels in `data.db` while other work on `index.db` lasts long.
//!
//! A synchronisation holds the write lock of `index.db` most of the time. Others who change labels
//! leave the copy to it, so it looks between its transactions whether there are changes. Separate
//! from `labels`, which follows once: here, a look that finds nothing costs microseconds.

use crate::labels::follow_labels;
use larder_store::{DataVersion, Error, Reader, Store};

/// Follows the labels of a store again and again.
#[derive(Debug)]
pub struct LabelFollower {
    data: Reader,
    /// The version of the data up to which labels were followed; `None`: none were yet.
    followed: Option<DataVersion>,
}

impl LabelFollower {
    /// Creates a follower of the labels in `data.db`.
    #[must_use]
    pub fn new(data: Reader) -> LabelFollower {
        LabelFollower { data, followed: None }
    }

    /// Brings the labels in `index.db` up to date, if `data.db` was written since the last call.
    /// Returns whether any changed.
    ///
    /// # Errors
    /// As [`follow_labels`]. The next call tries again.
    pub fn follow(&mut self, index: &mut Store, at: i64) -> Result<bool, Error> {
        // It is read first: what is written from now on, the next call follows.
        let version = self.data.data_version()?;
        if self.followed == Some(version) {
            return Ok(false);
        }
        let has_changed = follow_labels(&self.data, index, at)?;
        self.followed = Some(version);
        Ok(has_changed)
    }
}

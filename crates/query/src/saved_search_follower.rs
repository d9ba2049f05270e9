//! The saved searches that an open search line uses, as they change.
//!
//! Separate from `saved_searches`, which are those of one moment: a live view stays open while
//! somebody defines a search anew, and follows it.

use crate::error::Error;
use crate::saved_searches::SavedSearches;
use larder_store::{DataDirectory, Reader, StoreState};
use larder_time::zone::ZoneDatabase;
use std::fmt;
use std::sync::Arc;

/// Follows the saved searches that a line uses.
pub struct SavedSearchFollower {
    directory: DataDirectory,
    zones: Arc<ZoneDatabase>,
    line: String,
    /// `None`: the store is not there at the moment.
    reader: Option<Reader>,
    /// The state of the store that was read last.
    state: Option<StoreState>,
    /// The searches that the line uses, as they were last.
    used: SavedSearches,
}

impl fmt::Debug for SavedSearchFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedSearchFollower").field("line", &self.line).finish_non_exhaustive()
    }
}

impl SavedSearchFollower {
    /// Begins to follow the searches of a line, which are `searches` now. `None`: the line uses
    /// none.
    #[must_use]
    pub fn open(
        directory: DataDirectory,
        line: &str,
        searches: &SavedSearches,
        zones: Arc<ZoneDatabase>,
    ) -> Option<SavedSearchFollower> {
        SavedSearches::can_be_in(line).then(|| SavedSearchFollower {
            directory,
            zones,
            line: line.to_string(),
            reader: None,
            state: None,
            used: searches.used_in(line),
        })
    }

    /// Returns all saved searches, if one that the line uses was changed or removed since the last
    /// call. Costs a step into the store if nothing was committed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn poll(&mut self) -> Result<Option<SavedSearches>, Error> {
        if self.reader.as_ref().is_none_or(Reader::is_replaced) {
            (self.reader, self.state) = (None, None);
            self.reader = Reader::open_if_present(&self.directory, Arc::clone(&self.zones))?;
        }
        let Some(reader) = &self.reader else { return Ok(None) };
        let state = reader.changes().stamp()?;
        if self.state.as_ref() == Some(&state) {
            return Ok(None);
        }
        let searches = SavedSearches::read(reader)?;
        self.state = Some(state);
        let used = searches.used_in(&self.line);
        if used == self.used {
            return Ok(None);
        }
        self.used = used;
        Ok(Some(searches))
    }
}

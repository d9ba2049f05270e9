//! Sources that are registered no more, but whose mail is still in the index.
//!
//! Searches leave their messages out: the paths of the files are not known, and the next
//! synchronisation removes them. Separate from `sources`, which reads and writes registrations: an
//! open view follows them.

use crate::error::Error;
use crate::sources::{SourceType, find_departed_sources, list_mail_sources};
use larder_store::{DataDirectory, Reader, StoreState};
use larder_time::zone::ZoneDatabase;
use std::sync::Arc;

/// Leaves the messages of sources that are not registered out of all searches with a reader of the
/// index of mail. A store that lacks commits does not know which these are: none is left out.
///
/// # Errors
/// A store cannot be read.
pub fn leave_out_departed_mail(index: &mut Reader, data: &Reader) -> Result<(), Error> {
    if data.lost_commits().is_some() {
        return Ok(());
    }
    let departed = find_departed_sources(index, SourceType::Mail, &list_mail_sources(data)?)?;
    index.leave_out_collections(departed);
    Ok(())
}

/// Follows the sources of mail that are registered no more, for a search that stays open.
#[derive(Debug)]
pub struct DepartedSourceFollower {
    stores: [FollowedStore; 2],
    zones: Arc<ZoneDatabase>,
    /// The sources, as they were last.
    departed: Vec<String>,
}

/// A store whose commits are followed.
#[derive(Debug)]
struct FollowedStore {
    directory: DataDirectory,
    /// `None`: the store is not there at the moment.
    reader: Option<Reader>,
    /// The state that was read last.
    state: Option<StoreState>,
}

impl DepartedSourceFollower {
    /// Begins to follow the registrations in `data` of the mail in `index`.
    #[must_use]
    pub fn new(
        data: DataDirectory,
        index: DataDirectory,
        zones: Arc<ZoneDatabase>,
    ) -> DepartedSourceFollower {
        let stores =
            [data, index].map(|directory| FollowedStore { directory, reader: None, state: None });
        DepartedSourceFollower { stores, zones, departed: Vec::new() }
    }

    /// Returns the names of the sources, if they are others than those of the last call. Without a
    /// store that has all of its commits, no source is known.
    ///
    /// # Errors
    /// A store cannot be read.
    pub fn poll(&mut self) -> Result<Option<Vec<String>>, Error> {
        let mut is_changed = false;
        for store in &mut self.stores {
            is_changed |= store.poll(&self.zones)?;
        }
        let [data, index] = &self.stores;
        let (true, Some(data), Some(index)) = (is_changed, &data.reader, &index.reader) else {
            return Ok(None);
        };
        if data.lost_commits().is_some() {
            return Ok(None);
        }
        let sources = list_mail_sources(data)?;
        let departed = find_departed_sources(index, SourceType::Mail, &sources)?;
        if departed == self.departed {
            return Ok(None);
        }
        self.departed.clone_from(&departed);
        Ok(Some(departed))
    }
}

impl FollowedStore {
    /// Returns whether something was committed since the last call.
    fn poll(&mut self, zones: &Arc<ZoneDatabase>) -> Result<bool, Error> {
        // A reader does not see that a loss of commits was settled.
        let is_outdated = |reader: &Reader| reader.is_replaced() || reader.lost_commits().is_some();
        if self.reader.as_ref().is_none_or(is_outdated) {
            (self.reader, self.state) = (None, None);
            self.reader = Reader::open_if_present(&self.directory, Arc::clone(zones))?;
        }
        let Some(reader) = &self.reader else { return Ok(false) };
        let state = reader.changes().stamp()?;
        let is_changed = self.state.as_ref() != Some(&state);
        self.state = Some(state);
        Ok(is_changed)
    }
}

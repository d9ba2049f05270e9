//! The items that a search or a list leaves out, because their bytes do not match their checksums.
//!
//! One changed byte must not take a whole address book away: the other items are listed, and the
//! list ends with an error that names the damaged ones. Separate from `result_set` because searches
//! meet such items, too.

use crate::error::Error;
use larder_store::DamagedObject;

/// The damaged items that were met, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct DamagedItems {
    path: std::path::PathBuf,
    objects: Vec<DamagedObject>,
}

impl DamagedItems {
    /// Adds the item that an error names.
    ///
    /// # Errors
    /// The error, if it is about anything but a single item.
    pub(crate) fn add(&mut self, error: larder_store::Error) -> Result<(), larder_store::Error> {
        match error {
            larder_store::Error::DamagedObject {
                path,
                object: object @ (DamagedObject::Item { .. } | DamagedObject::Identity { .. }),
            } => {
                self.path = path;
                self.push(object);
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Adds the items of another list.
    pub(crate) fn extend(&mut self, other: &DamagedItems) {
        if !other.objects.is_empty() {
            self.path.clone_from(&other.path);
        }
        other.objects.iter().cloned().for_each(|object| self.push(object));
    }

    fn push(&mut self, object: DamagedObject) {
        if !self.objects.contains(&object) {
            self.objects.push(object);
        }
    }

    /// Returns the error that names the items; no error if there are none.
    pub(crate) fn to_result(&self) -> Result<(), Error> {
        let Some((first, others)) = self.objects.split_first() else { return Ok(()) };
        let first =
            larder_store::Error::DamagedObject { path: self.path.clone(), object: first.clone() };
        Err(match others {
            [] => Error::Store(first),
            others => Error::DamagedItems { first: Box::new(first), others: others.to_vec() },
        })
    }
}

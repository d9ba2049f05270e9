//! The files of a message in the index, as they are now.
//!
//! Separate from `renamed_files`, which finds one file: a message may have several, and any of them
//! has its text.

use crate::error::Error;
use crate::renamed_files::RenamedFileFinder;
use larder_store::MailReader;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Finds the files of messages.
#[derive(Debug)]
pub struct MessageFileFinder<'r> {
    roots: &'r BTreeMap<String, PathBuf>,
    renamed: RenamedFileFinder,
}

/// The files of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFiles {
    /// The paths. Those where a file seems to be come first; of an mbox file, another message may
    /// be there.
    pub paths: Vec<PathBuf>,
    /// The collection of files that are in no registered source.
    pub unregistered: Option<String>,
}

impl<'r> MessageFileFinder<'r> {
    /// Returns a finder of files below the maildirs with these paths, by the names of their
    /// collections.
    #[must_use]
    pub fn new(roots: &'r BTreeMap<String, PathBuf>) -> MessageFileFinder<'r> {
        MessageFileFinder { roots, renamed: RenamedFileFinder::default() }
    }

    /// Returns the files of a message. One that was renamed since the last synchronisation has its
    /// present path.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn find(&mut self, mail: &MailReader<'_>, row: u32) -> Result<MessageFiles, Error> {
        let (mut present, mut absent, mut unregistered) = (Vec::new(), Vec::new(), None);
        for (collection, path, inode) in mail.located_files(row)? {
            let Some(root) = self.roots.get(&collection) else {
                unregistered = Some(collection);
                continue;
            };
            let path = root.join(path);
            match self.renamed.find(&path, inode) {
                Some(path) => present.push(path),
                None => absent.push(path),
            }
        }
        present.extend(absent);
        Ok(MessageFiles { paths: present, unregistered })
    }
}

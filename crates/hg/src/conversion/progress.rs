//! The progress of a conversion, as a caller shows it.

use crate::oddity::Oddity;
use crate::received_bytes::ReceivedBytes;

/// The phases of a conversion and of a check, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The files of a store arrive.
    Store,
    /// Changesets are read.
    Changesets,
    /// Manifests are read.
    Manifests,
    /// Files are read and converted; counted in revisions.
    Files,
    /// Trees are written; counted in manifests.
    Trees,
    /// Commits are written.
    Commits,
    /// Changesets are compared with their commits.
    CheckedChangesets,
    /// The texts and trees of manifests are made again.
    CheckedManifests,
    /// Blobs are read; counted in file revisions.
    CheckedFiles,
}

/// An event of a fetch that a person is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchNotice {
    /// The changes of a bundle are taken first.
    CloneBundle {
        /// Where the bundle is.
        url: String,
    },
    /// That bundle cannot be read to its end.
    CloneBundleFailed {
        /// The error.
        message: String,
    },
    /// The metadata of another conversion is taken first.
    SharedMetadata {
        /// The git repository, or the bundle of git, that has it.
        url: String,
    },
    /// The server names no metadata that can be taken.
    SharedMetadataSkipped {
        /// The reason.
        message: String,
    },
    /// The metadata cannot be taken.
    SharedMetadataFailed {
        /// The error.
        message: String,
    },
    /// git could not do its part.
    GitOutput {
        /// Its messages.
        text: String,
    },
    /// All changes come from the repository itself, in place of shared metadata.
    CompleteFetch,
    /// Refs were imported for git.
    Imported,
    /// The tags of the repository changed.
    TagsChanged {
        /// Whether git was told to print errors only. git-cinnabar speaks of tags nevertheless.
        is_quiet: bool,
        /// Whether tags that were there before have moved or are gone. git does not change these
        /// when it fetches tags.
        has_replaced: bool,
    },
    /// Files are elsewhere, and git has pointers in their place.
    Pointers {
        /// The kind of pointers.
        oddity: Oddity,
        /// How many there are.
        count: u64,
    },
    /// The tip of a branch is a closed head, as the import has shown.
    ClosedTip {
        /// The ref, which is another head after the next fetch.
        name: String,
    },
}

/// A display of the progress of a conversion.
pub trait Progress {
    /// Shows how much of a phase is done. The total is known of the files of a store, and
    /// from the phase of trees on.
    fn advance(&mut self, phase: Phase, done: u64, total: Option<u64>);

    /// Takes the counter of the bytes that arrive in the phases that read: the store, changesets,
    /// manifests and files.
    fn set_received(&mut self, received: ReceivedBytes) {
        drop(received);
    }

    /// Reports an event that a person is told of.
    fn report(&mut self, notice: &FetchNotice) {
        let _ = notice;
    }

    /// git says whether progress is to be shown.
    fn set_shown(&mut self, is_shown: bool) {
        let _ = is_shown;
    }
}

//! How changes are converted.

use std::num::NonZeroUsize;

/// How changes are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversionOptions {
    /// The threads that convert files.
    pub threads: NonZeroUsize,
    /// Whether a changeset that would be the same commit as another one gets a NUL at the end of
    /// its message, as git-cinnabar did up to version 0.6, in place of a newline.
    pub pads_with_nul: bool,
}

impl From<NonZeroUsize> for ConversionOptions {
    /// Converts by the rules of today.
    fn from(threads: NonZeroUsize) -> ConversionOptions {
        ConversionOptions { threads, pads_with_nul: false }
    }
}

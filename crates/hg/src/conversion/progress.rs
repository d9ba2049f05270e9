//! The progress of a conversion, as a caller shows it.

/// The phases of a conversion, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
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
}

/// A display of the progress of a conversion.
pub trait Progress {
    /// Shows how much of a phase is done. The total is known from the phase of trees on.
    fn advance(&mut self, phase: Phase, done: u64, total: Option<u64>);

    /// git says whether progress is to be shown.
    fn set_shown(&mut self, is_shown: bool) {
        let _ = is_shown;
    }
}

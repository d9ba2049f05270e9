//! The stores that a search over all kinds could not read.
//!
//! Separate from `find`, which prints the answers of the others first.

use crate::context::CommandContext;
use crate::failure::CommandFailure;

/// The failures of stores that can be made again, while the answers of others are printed.
#[derive(Debug, Default)]
pub(super) struct UnreadStores {
    failures: Vec<CommandFailure>,
}

impl UnreadStores {
    /// Returns the result, or keeps the failure of a store for the end.
    pub(super) fn keep<T>(
        &mut self,
        result: Result<T, CommandFailure>,
    ) -> Result<Option<T>, CommandFailure> {
        match result {
            Err(failure) if failure.is_of_store() => {
                self.failures.push(failure);
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// Prints all failures but the last, which is returned.
    pub(super) fn into_result(
        mut self,
        context: &mut CommandContext,
    ) -> Result<(), CommandFailure> {
        let Some(last) = self.failures.pop() else { return Ok(()) };
        context.out.flush()?;
        self.failures.iter().for_each(CommandFailure::print);
        Err(last)
    }
}

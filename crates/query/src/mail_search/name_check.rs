//! The names in a query that no message has: labels, sources and threads.
//!
//! Separate from `compilation`, which finds nothing for such a name: a live view or a saved search
//! may name a label that messages get later, or a source that is indexed later, but in a search
//! that runs once it is a mistake.

use super::MailSearch;
use crate::error::{Error, SyntaxError};
use crate::mail_query::{FolderTest, MailFlag, MailQuery, TextMatch};
use crate::misspelling::nearest_flag;

/// The number of known names that an error lists.
const MAX_LISTED_NAMES: usize = 20;

impl MailSearch<'_> {
    /// Refuses a query with a name that is neither a flag nor a label behind `is:`, no source
    /// behind `in:`, or no thread behind `thread:`.
    ///
    /// # Errors
    /// There is such a name, or the store cannot be read.
    pub fn check_names(&self, query: &MailQuery) -> Result<(), Error> {
        match query {
            MailQuery::And(all) | MailQuery::Or(all) => {
                all.iter().try_for_each(|query| self.check_names(query))
            }
            MailQuery::Xor(left, right) => {
                self.check_names(left)?;
                self.check_names(right)
            }
            MailQuery::Not(query) | MailQuery::ThreadOf(query) => self.check_names(query),
            MailQuery::Existing(query) => match &**query {
                MailQuery::Label(TextMatch::Words(name)) => self.check_label(name),
                _ => Ok(()),
            },
            MailQuery::Folder(FolderTest::Source(name)) => self.check_source(name),
            MailQuery::Thread(id) if self.find_thread(id)?.is_empty() => {
                let hint = "a thread is named by its ID in `larder find --summary`, or by the ID or \
                            the Message-ID of a message";
                Err(unknown_name("thread", id, hint.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn check_label(&self, name: &str) -> Result<(), Error> {
        if self.mail.labels()?.iter().any(|(label, _)| label == name) {
            return Ok(());
        }
        let labels = self.used_labels()?;
        let flags = MailFlag::ALL.iter().map(|(_, flag, _)| *flag);
        let names: Vec<&str> = flags.chain(labels.iter().map(String::as_str)).collect();
        let hint = match nearest_flag(name, &names) {
            Some(near) => format!("did you mean is:{near}?"),
            None => format!("one of {}", join_names(&names)),
        };
        Err(unknown_name("flag or label", name, hint))
    }

    /// Refuses the name of a source of which no mail is indexed.
    ///
    /// # Errors
    /// There is no such source, or the store cannot be read.
    pub fn check_source(&self, name: &str) -> Result<(), Error> {
        let folders = self.mail.folders()?.into_iter();
        let mut sources: Vec<String> = folders.map(|(source, ..)| source).collect();
        if sources.iter().any(|source| source == name) {
            return Ok(());
        }
        sources.dedup();
        let message = format!("no mail of a source {name:?} is indexed");
        let sources = sources.join(", ");
        let hint = format!("sources with mail: {sources}; other collections: --in NAME");
        Err(SyntaxError { message, at: 1, hint: Some(hint) }.into())
    }

    /// Returns the labels that any message has.
    pub(super) fn used_labels(&self) -> Result<Vec<String>, Error> {
        Ok(self.mail.count_labels()?.into_iter().map(|(label, _)| label).collect())
    }
}

/// Returns the first names of a list.
pub(super) fn join_names(names: &[&str]) -> String {
    let listed = names.get(..MAX_LISTED_NAMES).unwrap_or(names).join(", ");
    if names.len() > MAX_LISTED_NAMES { format!("{listed}, ...") } else { listed }
}

fn unknown_name(what: &str, name: &str, hint: String) -> Error {
    SyntaxError { message: format!("unknown {what} {name:?}"), at: 1, hint: Some(hint) }.into()
}

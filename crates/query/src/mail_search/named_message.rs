//! The message that a Message-ID names, if several have it.
//!
//! Separate from `compilation`, whose `msgid:` finds all of them: a message that is read is one.

use crate::error::Error;
use larder_store::{Handle, MailReader};

/// The most other messages that are named.
const MAX_NAMED_MESSAGES: usize = 20;

/// A message among several with its Message-ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedMessage {
    /// The row of the message: the first one that has the Message-ID as its name.
    pub row: u32,
    /// Those with the same text, and their sources.
    pub copies: Vec<(Handle, String)>,
    /// Those with another text.
    pub other_texts: Vec<Handle>,
}

impl NamedMessage {
    /// Returns the message that a Message-ID names. `None`: one message or none has it, or none has
    /// it as its name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn find(mail: &MailReader<'_>, message_id: &str) -> Result<Option<NamedMessage>, Error> {
        let rows = mail.rows_with_uid(message_id)?;
        if rows.len() < 2 {
            return Ok(None);
        }
        let (mut named, mut others) = (None, Vec::new());
        for row in rows {
            let Some(message) = mail.message(row)? else { continue };
            match named {
                None if message.uid == message_id => named = Some(row),
                _ => others.push((row, message.handle)),
            }
        }
        let Some(row) = named else { return Ok(None) };
        let text = mail.text_hash(row)?;
        let mut found = NamedMessage { row, copies: Vec::new(), other_texts: Vec::new() };
        for (row, handle) in others.into_iter().take(MAX_NAMED_MESSAGES) {
            if text.is_some() && mail.text_hash(row)? == text {
                found.copies.push((handle, mail.collection_of(row)?.unwrap_or_default()));
            } else {
                found.other_texts.push(handle);
            }
        }
        Ok(Some(found))
    }
}

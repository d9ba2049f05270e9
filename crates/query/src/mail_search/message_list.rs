//! Lists of messages: the rows and states of those that match, and of those in their threads.
//!
//! A list reads no file.

use super::list_order::MailSort;
use super::row_values::RowValues;
use super::{MailHit, MailSearch};
use crate::error::Error;
use crate::mail_query::MailQuery;
use larder_store::message_flags::MessageFlags;
use larder_store::{MailColumn, MessageRow};

/// The choice and order of the messages of a list.
#[derive(Debug, Clone, Copy)]
pub struct MailListRequest<'q> {
    /// The query.
    pub query: &'q MailQuery,
    /// The order.
    pub sort: MailSort,
    /// The most messages that match, or threads, that are listed.
    pub limit: usize,
    /// The number of messages or threads in front of the list.
    pub offset: usize,
    /// The other messages of the threads are listed, too.
    pub is_related: bool,
}

/// A message with the states that lists show.
#[derive(Debug, Clone)]
pub struct ListedMessage {
    /// The message.
    pub message: MessageRow,
    /// Its states.
    pub flags: MessageFlags,
    /// The number of its thread in the index.
    pub thread: u32,
    /// Its labels, sorted.
    pub labels: Vec<String>,
    /// Whether it matches, and is not only in the thread of one that does.
    pub is_match: bool,
}

impl MailSearch<'_> {
    /// Returns the messages of a list in its order. The limit counts the messages that match; the
    /// others of their threads stand among them, by their own dates.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn list_messages(
        &self,
        request: &MailListRequest<'_>,
    ) -> Result<Vec<ListedMessage>, Error> {
        let MailListRequest { query, sort, limit, offset, .. } = *request;
        let hits = self.find_sorted(query, sort, limit.saturating_add(offset))?;
        let hits = hits.get(offset..).unwrap_or_default();
        let mut matches: Vec<u32> = hits.iter().map(|hit| hit.row).collect();
        matches.sort_unstable();
        let mut listed = hits.to_vec();
        if request.is_related {
            let mut dates = RowValues::new(self.mail, MailColumn::Date);
            for row in self.keep_searched(self.with_threads(&matches)?)? {
                if matches.binary_search(&row).is_err() {
                    listed.push(MailHit { date: dates.get(row)?.saturating_sub(1), row });
                }
            }
            listed.sort_unstable_by(|a, b| b.cmp(a));
            self.sort_hits(&mut listed, sort)?;
        }
        let rows = listed.into_iter().map(|hit| hit.row);
        self.read_listed(rows, |row| matches.binary_search(&row).is_ok())
    }

    /// Reads messages. Rows that have none are left out.
    pub(crate) fn read_listed(
        &self,
        rows: impl Iterator<Item = u32>,
        is_match: impl Fn(u32) -> bool,
    ) -> Result<Vec<ListedMessage>, Error> {
        let mut flags = RowValues::new(self.mail, MailColumn::Flags);
        let mut threads = RowValues::new(self.mail, MailColumn::Thread);
        let mut labels = self.mail.listed_labels()?;
        let messages = self.mail.messages(&rows.collect::<Vec<u32>>())?;
        let mut listed = Vec::with_capacity(messages.len());
        for message in messages {
            let row = message.row;
            let bits = u16::try_from(flags.get(row)?).unwrap_or_default();
            listed.push(ListedMessage {
                message,
                flags: MessageFlags::from_bits(bits),
                thread: threads.get(row)?,
                labels: self
                    .mail
                    .labels_of(&mut labels, row)?
                    .into_iter()
                    .map(Into::into)
                    .collect(),
                is_match: is_match(row),
            });
        }
        Ok(listed)
    }
}

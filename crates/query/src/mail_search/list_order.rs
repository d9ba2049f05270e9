//! The orders of lists of messages.
//!
//! Separate from `search_request::SortSpec`, whose fields have sort indexes: messages are indexed
//! by date, and other orders sort what was found.

use super::row_values::RowValues;
use super::{MailHit, MailSearch};
use crate::error::Error;
use crate::mail_query::MailQuery;
use larder_format::fold::fold;
use larder_store::message_flags::MessageFlags;
use larder_store::message_summary::{AddressValues, SummaryValues};
use larder_store::{MailColumn, MessageRow};

/// The value that messages are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSortKey {
    /// The date.
    Date,
    /// The subject, without prefixes such as `Re:`.
    Subject,
    /// The name of the first sender, else the address.
    From,
    /// The name of the first recipient, else the address.
    To,
    /// The name of the first recipient of a copy, else the address.
    Cc,
    /// The bytes of the file.
    Size,
    /// The name of the mailing list.
    List,
    /// The Message-ID.
    MessageId,
    /// The priority, the lowest first.
    Priority,
}

/// The names of the keys: as in JSON, those of mu, and those of commits.
const KEYS: [(MailSortKey, &[&str]); 9] = [
    (MailSortKey::Date, &["date", "d", "timestamp"]),
    (MailSortKey::Subject, &["subject", "s"]),
    (MailSortKey::From, &["from", "f", "author"]),
    (MailSortKey::To, &["to", "t"]),
    (MailSortKey::Cc, &["cc", "c", "committer"]),
    (MailSortKey::Size, &["size", "z"]),
    (MailSortKey::List, &["list_id", "list", "v"]),
    (MailSortKey::MessageId, &["message_id", "msgid", "i"]),
    (MailSortKey::Priority, &["priority", "prio", "p"]),
];

/// The order of a list of messages. Messages with equal keys are sorted by date, the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailSort {
    /// The value.
    pub key: MailSortKey,
    /// The last value comes first.
    pub is_descending: bool,
}

impl MailSort {
    /// The newest message first.
    pub const NEWEST_FIRST: MailSort = MailSort { key: MailSortKey::Date, is_descending: true };

    /// Parses the name of a key, with a leading minus for descending order; `None`: there is no
    /// such key.
    #[must_use]
    pub fn parse(text: &str) -> Option<MailSort> {
        let name = text.strip_prefix('-');
        let wanted = name.unwrap_or(text);
        let is_named =
            |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(wanted));
        let (key, _) = KEYS.into_iter().find(|(_, names)| is_named(names))?;
        Some(MailSort { key, is_descending: name.is_some() })
    }

    /// Returns the names of the keys.
    pub fn key_names() -> impl Iterator<Item = &'static str> {
        KEYS.into_iter().filter_map(|(_, names)| names.first().copied())
    }

    /// Sorts rows that are the newest first.
    fn sort_by_key<K: Ord>(self, rows: &mut [(K, MailHit)]) {
        match self.is_descending {
            true => rows.sort_by(|(a, _), (b, _)| b.cmp(a)),
            false => rows.sort_by(|(a, _), (b, _)| a.cmp(b)),
        }
    }
}

impl MailSearch<'_> {
    /// Returns the first messages that match in an order, at most `limit`. Only the order by date
    /// stops at the limit: any other reads the rows of all messages that match.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn find_sorted(
        &self,
        query: &MailQuery,
        sort: MailSort,
        limit: usize,
    ) -> Result<Vec<MailHit>, Error> {
        if sort == MailSort::NEWEST_FIRST {
            return self.find_newest(query, limit);
        }
        let mut hits = self.find_newest(query, usize::MAX)?;
        self.sort_hits(&mut hits, sort)?;
        hits.truncate(limit);
        Ok(hits)
    }

    /// Sorts messages, which are the newest first.
    pub(super) fn sort_hits(&self, hits: &mut [MailHit], sort: MailSort) -> Result<(), Error> {
        let number_column = match sort.key {
            MailSortKey::Date if sort.is_descending => return Ok(()),
            MailSortKey::Date => {
                hits.reverse();
                return Ok(());
            }
            MailSortKey::Size => Some(MailColumn::Size),
            MailSortKey::Priority => Some(MailColumn::Flags),
            _ => None,
        };
        if let Some(column) = number_column {
            let mut values = RowValues::new(self.mail, column);
            let mut rows = Vec::with_capacity(hits.len());
            for hit in hits.iter() {
                let value = values.get(hit.row)?;
                let key = match sort.key {
                    MailSortKey::Priority => {
                        let bits = u16::try_from(value).unwrap_or_default();
                        MessageFlags::from_bits(bits).priority() as u32
                    }
                    _ => value,
                };
                rows.push((key, *hit));
            }
            sort.sort_by_key(&mut rows);
            hits.iter_mut().zip(rows).for_each(|(hit, (_, sorted))| *hit = sorted);
            return Ok(());
        }
        // A row without a message has no key, and comes first.
        let mut rows: Vec<(Option<String>, MailHit)> =
            hits.iter().map(|hit| (None, *hit)).collect();
        let wanted: Vec<u32> = hits.iter().map(|hit| hit.row).collect();
        let mut open = rows.iter_mut();
        self.mail.for_each_message(&wanted, &mut |message| {
            if let Some((key, _)) = open.find(|(_, hit)| hit.row == message.row) {
                *key = Some(text_key(&message, sort.key));
            }
        })?;
        sort.sort_by_key(&mut rows);
        hits.iter_mut().zip(rows).for_each(|(hit, (_, sorted))| *hit = sorted);
        Ok(())
    }
}

/// Returns the folded text that a message is sorted by.
fn text_key(message: &MessageRow, key: MailSortKey) -> String {
    let SummaryValues { subject, from, to, cc, list_id, .. } = message.summary.values();
    let first = |addresses: AddressValues<'_>| {
        addresses.first().map_or_else(String::new, |one| fold(one.display_name()).into_owned())
    };
    match key {
        MailSortKey::From => first(from),
        MailSortKey::To => first(to),
        MailSortKey::Cc => first(cc),
        MailSortKey::List => fold(list_id).into_owned(),
        MailSortKey::MessageId => message.uid.clone(),
        _ => fold(without_reply_prefixes(subject)).into_owned(),
    }
}

/// Returns a subject without the prefixes of replies and forwarded messages.
#[must_use]
pub fn without_reply_prefixes(subject: &str) -> &str {
    const PREFIXES: [&str; 10] = ["re", "fwd", "fw", "aw", "wg", "sv", "vs", "tr", "rv", "antw"];
    let mut rest = subject.trim();
    while let Some((prefix, after)) = rest.split_once(':') {
        let word = prefix.split('[').next().unwrap_or(prefix).trim_end();
        if !PREFIXES.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

//! Lists of threads: a limit counts threads, and each has its messages that match, or all.
//!
//! Separate from `thread_tree`, which arranges given messages: here the threads are chosen, by
//! their newest messages that match.

use super::block_test::{BlockTest, Conjunction};
use super::list_order::without_reply_prefixes;
use super::message_list::{ListedMessage, MailListRequest};
use super::row_origin::RowOrigin;
use super::row_values::RowValues;
use super::{MailHit, MailSearch};
use crate::error::Error;
use crate::mail_query::MailQuery;
use crate::thread_tree::{ThreadMessage, ThreadOrder, ThreadPath, ThreadRow, order_threads};
use larder_store::{MailColumn, MessageRow, hash_message_id};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// The number of hits that are read first for each thread of the list.
const HITS_PER_THREAD: usize = 4;

/// A thread of a list.
#[derive(Debug, Clone)]
pub struct ListedThread {
    /// The number of the thread in the index.
    pub thread: u32,
    /// The number of its messages.
    pub total: usize,
    /// The number of its messages that match.
    pub matched: usize,
    /// The listed messages, the newest first.
    pub messages: Vec<ListedMessage>,
    /// The rows of the tree, whose `index` is the place in `messages`. The numbers of threads
    /// ascend over the list.
    pub rows: Vec<ThreadRow>,
}

/// A message of a thread, with its place in the tree.
#[derive(Debug, Clone)]
pub struct ThreadMember {
    /// The message.
    pub listed: ListedMessage,
    /// The place.
    pub place: ThreadRow,
    /// The numbers of the message and of those above it.
    pub path: Vec<u32>,
}

impl ListedThread {
    /// Returns the messages with their places, the oldest first.
    #[must_use]
    pub fn into_members(self) -> Vec<ThreadMember> {
        let mut path = ThreadPath::default();
        let mut members = Vec::with_capacity(self.messages.len());
        for place in self.rows {
            let path = path.advance(&place).to_vec();
            let Some(listed) = self.messages.get(place.index).cloned() else { continue };
            members.push(ThreadMember { listed, place, path });
        }
        members.sort_by_key(|member| {
            let message = &member.listed.message;
            (message.summary.date(), message.row)
        });
        members
    }
}

impl MailSearch<'_> {
    /// Returns the threads with a message that matches, by the newest of these: the last thread
    /// first, or the first if the order is ascending. Without `is_related` only messages that match
    /// are listed. The order must be by date.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn list_threads(&self, request: &MailListRequest<'_>) -> Result<Vec<ListedThread>, Error> {
        let is_descending = request.sort.is_descending;
        let end = request.limit.saturating_add(request.offset);
        let mut chosen =
            self.newest_threads(request.query, if is_descending { end } else { usize::MAX })?;
        if !is_descending {
            chosen.reverse();
            chosen.truncate(end);
        }
        let chosen = chosen.get(request.offset..).unwrap_or_default();
        let mut members = Vec::with_capacity(chosen.len());
        for thread in chosen {
            members.push(self.keep_searched(self.mail.thread_members(*thread)?)?);
        }
        let matches = self.matches_among(request.query, &members.concat())?;
        let is_match = |row: u32| matches.binary_search(&row).is_ok();
        let order = if is_descending { ThreadOrder::Descending } else { ThreadOrder::Ascending };
        let mut threads = Vec::with_capacity(chosen.len());
        let mut first_number = 0;
        for (thread, rows) in chosen.iter().zip(members) {
            let (total, matched) = (rows.len(), rows.iter().filter(|row| is_match(**row)).count());
            let shown = rows.into_iter().filter(|row| request.is_related || is_match(*row));
            let mut messages = self.read_listed(shown, is_match)?;
            messages.sort_by_key(newest_first_key);
            let mut rows = self.arrange(*thread, &messages, order)?;
            for row in &mut rows {
                row.position += if row.level == 0 { first_number } else { 0 };
                row.thread += first_number;
            }
            first_number = rows.last().map_or(first_number, |row| row.thread + 1);
            threads.push(ListedThread { thread: *thread, total, matched, messages, rows });
        }
        Ok(threads)
    }

    /// Returns the thread of a message, all of whose messages count as matching. The message itself
    /// may be of a source that is left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list_thread(&self, row: u32) -> Result<ListedThread, Error> {
        let thread = RowValues::new(self.mail, MailColumn::Thread).get(row)?;
        let mut rows = self.keep_searched(self.mail.thread_members(thread)?)?;
        if !rows.contains(&row) {
            rows.push(row);
        }
        let total = rows.len();
        let mut messages = self.read_listed(rows.into_iter(), |_| true)?;
        messages.sort_by_key(newest_first_key);
        let rows = self.arrange(thread, &messages, ThreadOrder::Descending)?;
        Ok(ListedThread { thread, total, matched: total, messages, rows })
    }

    /// Returns the number of threads with a message that matches.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn count_threads(&self, query: &MailQuery) -> Result<u64, Error> {
        let mut rows = Vec::new();
        self.for_each_match(query, &mut |row| rows.push(row))?;
        let mut values = RowValues::new(self.mail, MailColumn::Thread);
        let mut threads = HashSet::new();
        for row in rows {
            threads.insert(values.get(row)?);
        }
        Ok(threads.len() as u64)
    }

    /// Returns the number of files of the messages that match.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn count_files(&self, query: &MailQuery) -> Result<u64, Error> {
        let mut rows = Vec::new();
        self.for_each_match(query, &mut |row| rows.push(row))?;
        let mut files = 0;
        for row in rows {
            files += self.mail.count_files(row)?;
        }
        Ok(files)
    }

    /// Returns the threads of the newest messages that match, at most `count`, each once.
    fn newest_threads(&self, query: &MailQuery, count: usize) -> Result<Vec<u32>, Error> {
        let mut limit = count.saturating_mul(HITS_PER_THREAD);
        loop {
            let hits = self.find_newest(query, limit)?;
            let is_complete = hits.len() < limit;
            let mut values = RowValues::new(self.mail, MailColumn::Thread);
            let (mut known, mut threads) = (HashSet::new(), Vec::new());
            for MailHit { row, .. } in hits {
                let thread = values.get(row)?;
                if threads.len() < count && known.insert(thread) {
                    threads.push(thread);
                }
            }
            if is_complete || threads.len() >= count {
                return Ok(threads);
            }
            limit = limit.saturating_mul(HITS_PER_THREAD);
        }
    }

    /// Arranges messages of a thread as a tree.
    fn arrange(
        &self,
        thread: u32,
        messages: &[ListedMessage],
        order: ThreadOrder,
    ) -> Result<Vec<ThreadRow>, Error> {
        let header_ids = self.header_ids_of_other_texts(thread, messages)?;
        let mut arranged: Vec<ThreadMessage<'_>> = Vec::with_capacity(messages.len());
        for one in messages {
            let mut message = ThreadMessage::from(&one.message);
            if let Some(id) = header_ids.get(&one.message.row) {
                message.message_id = id;
            }
            arranged.push(message);
        }
        Ok(order_threads(&arranged, order))
    }

    /// Returns the Message-IDs of the messages that have another name because another text has
    /// their Message-ID. The tree shows them as duplicates of that message. The index has only a
    /// hash of such an ID; the message with the ID, or a reply to it, has its text. If neither is
    /// in the list, any text that is the same for the texts of one Message-ID serves.
    fn header_ids_of_other_texts(
        &self,
        thread: u32,
        messages: &[ListedMessage],
    ) -> Result<HashMap<u32, String>, Error> {
        let mut header_ids = HashMap::new();
        if !messages.iter().any(|one| one.message.has_derived_uid) {
            return Ok(header_ids);
        }
        let ids = messages.iter().flat_map(|one| {
            let references = one.message.summary.values().references.iter();
            std::iter::once(one.message.uid.as_str()).chain(references)
        });
        let id_texts: HashMap<i64, &str> = ids.map(|id| (hash_message_id(id), id)).collect();
        for row in messages.iter().filter(|one| one.message.has_derived_uid) {
            let row = row.message.row;
            if let Some(hash) = self.mail.header_message_id(thread, row)? {
                let id = id_texts.get(&hash).map_or_else(|| hash.to_string(), ToString::to_string);
                header_ids.insert(row, id);
            }
        }
        Ok(header_ids)
    }

    /// Returns the members of threads without those of the sources that are left out.
    pub(super) fn keep_searched(&self, rows: Vec<u32>) -> Result<Vec<u32>, Error> {
        match self.mail.left_out_collections() {
            [] => Ok(rows),
            _ => self.matches_among(&MailQuery::All, &rows),
        }
    }

    /// Returns those of the rows that match, ascending.
    fn matches_among(&self, query: &MailQuery, rows: &[u32]) -> Result<Vec<u32>, Error> {
        self.budget.restart();
        let mut matches = Vec::new();
        let mut test = BlockTest::And(Conjunction::new([
            self.rows_test(rows, RowOrigin::EarlierSearch),
            self.compile_searched(query)?,
        ]));
        self.for_each_row(&mut test, &mut |row| matches.push(row))?;
        Ok(matches)
    }
}

impl ListedThread {
    /// Returns the newest message that matches, else the newest one.
    #[must_use]
    pub fn newest_match(&self) -> Option<&ListedMessage> {
        self.messages.iter().find(|one| one.is_match).or(self.messages.first())
    }

    /// Returns the subject of the newest message that matches, without prefixes such as `Re:`.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.newest_match().map_or("", |one| without_reply_prefixes(one.message.summary.subject()))
    }

    /// Returns the names of the senders, each once, by their first messages: those of messages that
    /// match, and the others.
    #[must_use]
    pub fn authors(&self) -> (Vec<&str>, Vec<&str>) {
        let names = |is_match: bool| {
            let messages = self.messages.iter().rev().filter(move |one| one.is_match == is_match);
            let from = messages.filter_map(|one| one.message.summary.values().from.first());
            from.map(|one| one.display_name())
        };
        let mut known = HashSet::new();
        let matching = names(true).filter(|name| known.insert(*name)).collect();
        let others = names(false).filter(|name| known.insert(*name)).collect();
        (matching, others)
    }
}

fn newest_first_key(one: &ListedMessage) -> Reverse<(i64, u32)> {
    Reverse((one.message.summary.date(), one.message.row))
}

impl<'m> From<&'m MessageRow> for ThreadMessage<'m> {
    fn from(message: &'m MessageRow) -> ThreadMessage<'m> {
        let values = message.summary.values();
        ThreadMessage {
            message_id: &message.uid,
            references: values.references.iter().collect(),
            date: values.date,
            subject: values.subject,
        }
    }
}

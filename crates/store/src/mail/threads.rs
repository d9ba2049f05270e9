//! Which messages are one thread: those that name each other in References or In-Reply-To, directly
//! or through messages that are not there.
//!
//! Each Message-ID, by its hash, has a thread from the moment at which a message has or names it.
//! A message that names IDs of two threads joins them: the smaller one gets the number of the
//! larger. So the threads are the same in whatever order messages come. A thread that a message
//! left is divided when the batch ends, if that message joined its parts. Separate from
//! `thread_tree` of larder-query, which draws the messages of a thread as a tree.

use super::columns::{ColumnWriter, MailColumn};
use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A thread with more members stays joined when a message leaves it.
const MAX_DIVIDED_MEMBERS: usize = 5000;
/// The most threads that joined one after the other. Each joins a larger one, so there are fewer.
const MAX_ALIAS_STEPS: usize = 1000;

/// Returns the thread that a number now means.
fn resolve_alias(tx: &ReadTransaction<'_>, mut thread: u32) -> DatabaseResult<u32> {
    let mut select = tx.prepare_cached("SELECT joined FROM mail_thread_alias WHERE thread = ?1")?;
    for _ in 0..MAX_ALIAS_STEPS {
        match select.query_row([thread], |row| row.get(0)).optional()? {
            Some(joined) => thread = joined,
            None => return Ok(thread),
        }
    }
    Err(DatabaseError::Damaged("the threads of mail lead in a circle".into()))
}

/// Returns the thread of a Message-ID, by its hash; `None`: no message has or names it.
pub(crate) fn find_thread(tx: &ReadTransaction<'_>, id: i64) -> DatabaseResult<Option<u32>> {
    let thread = tx
        .prepare_cached("SELECT thread FROM mail_thread_id WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    thread.map(|thread| resolve_alias(tx, thread)).transpose()
}

/// Puts a message into the thread of the Message-IDs that it has and names, and joins their threads
/// if they are several. A new thread has the number of the message's row.
pub(crate) fn join_thread(
    tx: &WriteTransaction<'_>,
    columns: &mut ColumnWriter,
    row: u32,
    ids: &[i64],
) -> DatabaseResult<()> {
    // A commit is in no thread.
    if ids.is_empty() {
        return Ok(());
    }
    let mut threads = Vec::new();
    let mut new_ids = Vec::new();
    for id in ids {
        match find_thread(tx, *id)? {
            Some(thread) if threads.contains(&thread) => {}
            Some(thread) => threads.push(thread),
            None if new_ids.contains(id) => {}
            None => new_ids.push(*id),
        }
    }
    let thread = match threads.as_slice() {
        [] => row,
        [thread] => *thread,
        several => join_all(tx, columns, several)?,
    };
    for id in new_ids {
        tx.prepare_cached("INSERT INTO mail_thread_id VALUES(?1, ?2)")?.execute((id, thread))?;
    }
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    tx.prepare_cached("INSERT INTO mail_thread VALUES(?1, ?2, ?3)")?
        .execute((thread, row, bytes))?;
    columns.set_value(tx, MailColumn::Thread, row, thread)
}

/// Joins threads into the largest one. Returns its number.
fn join_all(
    tx: &WriteTransaction<'_>,
    columns: &mut ColumnWriter,
    threads: &[u32],
) -> DatabaseResult<u32> {
    let mut members: Vec<(u32, Vec<u32>)> = Vec::with_capacity(threads.len());
    for thread in threads {
        members.push((*thread, thread_members(tx, *thread)?));
    }
    // The least number among the largest: the same in whatever order they are named.
    members.sort_by_key(|(thread, rows)| (std::cmp::Reverse(rows.len()), *thread));
    let (target, rest) = match members.split_first() {
        Some(((target, _), rest)) => (*target, rest),
        None => return Ok(0),
    };
    for (thread, rows) in rest {
        for row in rows {
            columns.set_value(tx, MailColumn::Thread, *row, target)?;
        }
        tx.prepare_cached("UPDATE mail_thread SET thread = ?2 WHERE thread = ?1")?
            .execute((thread, target))?;
        tx.prepare_cached("INSERT INTO mail_thread_alias VALUES(?1, ?2)")?
            .execute((thread, target))?;
    }
    Ok(target)
}

/// Returns the rows of a thread, ascending.
pub(crate) fn thread_members(tx: &ReadTransaction<'_>, thread: u32) -> rusqlite::Result<Vec<u32>> {
    tx.prepare_cached("SELECT item FROM mail_thread WHERE thread = ?1 ORDER BY item")?
        .query_map([thread], |row| row.get(0))?
        .collect()
}

/// The threads that messages left in a batch, with the Message-IDs that those had and named.
#[derive(Default)]
pub(crate) struct ThreadDepartures(BTreeMap<u32, BTreeSet<i64>>);

/// A member of a thread: its row, and the hashes of the Message-IDs that it has and names.
type MemberIds = (u32, Vec<i64>);

impl ThreadDepartures {
    /// Removes a message from its thread.
    pub(crate) fn leave(
        &mut self,
        tx: &WriteTransaction<'_>,
        columns: &mut ColumnWriter,
        row: u32,
    ) -> DatabaseResult<()> {
        let thread = columns.value(tx, MailColumn::Thread, row)?;
        if thread == 0 {
            return Ok(());
        }
        let ids: Option<Vec<u8>> = tx
            .prepare_cached("SELECT ids FROM mail_thread WHERE thread = ?1 AND item = ?2")?
            .query_row((thread, row), |row| row.get(0))
            .optional()?;
        self.0.entry(thread).or_default().extend(unpack_ids(&ids.unwrap_or_default()));
        tx.prepare_cached("DELETE FROM mail_thread WHERE thread = ?1 AND item = ?2")?
            .execute((thread, row))?;
        columns.set_value(tx, MailColumn::Thread, row, 0)
    }

    /// Divides the threads whose parts only a message joined that left, and forgets Message-IDs
    /// that no message has or names any more.
    pub(crate) fn divide_threads(
        self,
        tx: &WriteTransaction<'_>,
        columns: &mut ColumnWriter,
    ) -> DatabaseResult<()> {
        // Threads may have been joined after the message left.
        let mut departed: BTreeMap<u32, BTreeSet<i64>> = BTreeMap::new();
        for (thread, ids) in self.0 {
            departed.entry(resolve_alias(tx, thread)?).or_default().extend(ids);
        }
        for (thread, ids) in departed {
            let members = read_members(tx, thread, MAX_DIVIDED_MEMBERS + 1)?;
            if members.len() <= MAX_DIVIDED_MEMBERS {
                forget_ids(tx, &members, &ids)?;
                divide_thread(tx, columns, thread, &members)?;
            }
        }
        Ok(())
    }
}

fn unpack_ids(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

/// Returns the members of a thread by row, at most `limit`.
fn read_members(
    tx: &ReadTransaction<'_>,
    thread: u32,
    limit: usize,
) -> DatabaseResult<Vec<MemberIds>> {
    let sql = "SELECT item, ids FROM mail_thread WHERE thread = ?1 ORDER BY item LIMIT ?2";
    let mut select = tx.prepare_cached(sql)?;
    let mut rows = select.query((thread, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut members = Vec::new();
    while let Some(row) = rows.next()? {
        members.push((row.get(0)?, unpack_ids(row.get_ref(1)?.as_blob()?)));
    }
    Ok(members)
}

/// Forgets those of the Message-IDs that no member has or names.
fn forget_ids(
    tx: &WriteTransaction<'_>,
    members: &[MemberIds],
    ids: &BTreeSet<i64>,
) -> DatabaseResult<()> {
    let named: HashSet<i64> = members.iter().flat_map(|(_, ids)| ids).copied().collect();
    for id in ids.iter().filter(|id| !named.contains(id)) {
        tx.prepare_cached("DELETE FROM mail_thread_id WHERE id = ?1")?.execute([id])?;
    }
    Ok(())
}

/// Divides a thread into the parts that have Message-IDs in common. The part with the message that
/// the thread is named after keeps its number, else the largest one does.
fn divide_thread(
    tx: &WriteTransaction<'_>,
    columns: &mut ColumnWriter,
    thread: u32,
    members: &[MemberIds],
) -> DatabaseResult<()> {
    let mut parts = connected_parts(members);
    if parts.len() < 2 {
        return Ok(());
    }
    let is_named = |part: &[&MemberIds]| part.iter().any(|(row, _)| *row == thread);
    parts.sort_by_key(|part| (std::cmp::Reverse((is_named(part), part.len())), part[0].0));
    for (place, part) in parts.iter().enumerate() {
        // The other parts are named after their first messages, as new threads are. The number is
        // free: a message is in the thread that is named after it, unless that was joined with this
        // one, and then the Message-IDs that led to it get their number below.
        let number = if place == 0 { thread } else { part[0].0 };
        tx.prepare_cached("DELETE FROM mail_thread_alias WHERE thread = ?1")?.execute([number])?;
        for (row, ids) in part {
            if place > 0 {
                tx.prepare_cached(
                    "UPDATE mail_thread SET thread = ?3 WHERE thread = ?1 AND item = ?2",
                )?
                .execute((thread, row, number))?;
                columns.set_value(tx, MailColumn::Thread, *row, number)?;
            }
            for id in ids {
                tx.prepare_cached("INSERT OR REPLACE INTO mail_thread_id VALUES(?1, ?2)")?
                    .execute((id, number))?;
            }
        }
    }
    Ok(())
}

/// Returns the members by the parts that have Message-IDs in common; each part by row.
fn connected_parts(members: &[MemberIds]) -> Vec<Vec<&MemberIds>> {
    // Each part has the place of one of its members as its name, which others lead to.
    let mut leads: Vec<usize> = (0..members.len()).collect();
    let find = |leads: &mut Vec<usize>, mut place: usize| {
        while leads[place] != place {
            leads[place] = leads[leads[place]];
            place = leads[place];
        }
        place
    };
    let mut first_with_id: HashMap<i64, usize> = HashMap::new();
    for (place, (_, ids)) in members.iter().enumerate() {
        for id in ids {
            let other = *first_with_id.entry(*id).or_insert(place);
            let (one, other) = (find(&mut leads, place), find(&mut leads, other));
            leads[one.max(other)] = one.min(other);
        }
    }
    let mut parts: BTreeMap<usize, Vec<&MemberIds>> = BTreeMap::new();
    for (place, member) in members.iter().enumerate() {
        parts.entry(find(&mut leads, place)).or_default().push(member);
    }
    parts.into_values().collect()
}

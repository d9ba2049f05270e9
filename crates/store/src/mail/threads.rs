//! Which messages are one thread: those that name each other in References or In-Reply-To, directly
//! or through messages that are not there.
//!
//! Each Message-ID, by its hash, has a thread from the moment at which a message has or names it.
//! A message that names IDs of two threads joins them: the smaller one gets the number of the
//! larger. So the threads are the same in whatever order messages come. Separate from
//! `thread_tree` of larder-query, which draws the messages of a thread as a tree.

use super::columns::{ColumnWriter, MailColumn};
use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;

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
    tx.prepare_cached("INSERT INTO mail_thread VALUES(?1, ?2)")?.execute((thread, row))?;
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
            tx.prepare_cached("INSERT INTO mail_thread VALUES(?1, ?2)")?.execute((target, row))?;
        }
        tx.prepare_cached("DELETE FROM mail_thread WHERE thread = ?1")?.execute([thread])?;
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

/// Removes a message from its thread. The thread keeps its number: its other messages name the same
/// Message-IDs.
pub(crate) fn leave_thread(
    tx: &WriteTransaction<'_>,
    columns: &mut ColumnWriter,
    row: u32,
) -> DatabaseResult<()> {
    let thread = columns.value(tx, MailColumn::Thread, row)?;
    tx.prepare_cached("DELETE FROM mail_thread WHERE thread = ?1 AND item = ?2")?
        .execute((thread, row))?;
    columns.set_value(tx, MailColumn::Thread, row, 0)
}

//! Collections in a batch: made, renamed, indexed otherwise, removed, brought back, each with a note of what was before.
//!
//! Items are not touched here: a collection is taken away only when it is empty. Apart from `batch` because a
//! collection has a name and a key but no bytes.

use super::Trouble;
use super::batch::Batch;
use crate::Kind;
use crate::batch::Outcome;
use crate::derived::IndexSet;
use crate::error::Error;
use crate::identity::Of;
use crate::summary::Summary;
use rusqlite::OptionalExtension as _;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

impl Batch<'_> {
    /// The collection of this name, made (or brought back) where there is none.
    pub(super) fn collection(&mut self, name: &str, kind: Kind) -> Result<Of, Trouble> {
        if let Some((known, family)) = self.collections.get(name)
            && *family == kind.family()
        {
            return Ok(known.clone());
        }
        let into = match self.find_collection(name)? {
            Some((id, key, family)) if family == kind.family() as i64 => Of { id, key },
            Some(_) => {
                let (name, kind) = (name.to_string(), kind.family().name());
                return Err(Trouble::Store(Error::WrongKind { name, kind }));
            }
            None => self.make_collection(name, kind)?,
        };
        self.collections.insert(name.to_string(), (into.clone(), kind.family()));
        Ok(into)
    }

    pub(super) fn find_collection(
        &self,
        name: &str,
    ) -> rusqlite::Result<Option<(i64, Vec<u8>, i64)>> {
        self.tx
            .prepare_cached(
                "SELECT id, key, family FROM collection WHERE name = ?1 AND removed = 0",
            )?
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()
    }

    fn make_collection(&mut self, name: &str, kind: Kind) -> Result<Of, Trouble> {
        check_name(name)?;
        let removed: Option<(i64, Vec<u8>)> = self
            .tx
            .query_row(
                "SELECT id, key FROM collection WHERE name = ?1 AND family = ?2 AND removed = 1",
                (name, kind.family() as i64),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        if let Some((id, key)) = removed {
            self.restore_collection(id)?;
            return Ok(Of { id, key });
        }
        let key = self.free_key(name)?;
        self.tx.execute(
            "INSERT INTO collection(key, name, family, seq) VALUES(?1, ?2, ?3, ?4)",
            (&key, name, kind.family() as i64, self.seq),
        )?;
        let id = self.tx.last_insert_rowid();
        self.keep_collection(id, None, false)?;
        Ok(Of { id, key })
    }

    /// The key of a new collection is made from its name, so that the same books imported elsewhere have
    /// the same handles; a counter is added where a renamed collection has that key.
    fn free_key(&self, name: &str) -> rusqlite::Result<Vec<u8>> {
        let mut attempt: u64 = 0;
        loop {
            let mut hash = Sha256::new();
            hash.update(name.as_bytes());
            if attempt > 0 {
                hash.update(attempt.to_le_bytes());
            }
            let key = hash.finalize()[..8].to_vec();
            let taken = self
                .tx
                .query_row("SELECT 1 FROM collection WHERE key = ?1", [&key], |_| Ok(()))
                .optional()?;
            if taken.is_none() {
                return Ok(key);
            }
            attempt += 1;
        }
    }

    /// Notes what a collection was before this batch: its name and its summary, or nothing.
    fn keep_collection(
        &mut self,
        id: i64,
        name: Option<&str>,
        removed: bool,
    ) -> rusqlite::Result<()> {
        let ordinal = self.next_ordinal();
        self.tx
            .execute(
                "INSERT INTO collection_former(seq, ordinal, collection, name, removed, summary, head)
                 SELECT ?1, ?2, id, ?4, ?5, summary, head FROM collection WHERE id = ?3",
                (self.seq, ordinal, id, name, removed),
            )
            .map(drop)
    }

    pub(super) fn create(&mut self, name: &str, kind: Kind) -> Result<Outcome, Trouble> {
        if self.find_collection(name)?.is_some() {
            return Err(Trouble::Store(Error::CollectionExists { name: name.to_string() }));
        }
        self.collection(name, kind)?;
        Ok(Outcome::Done)
    }

    fn existing(&self, name: &str) -> Result<i64, Trouble> {
        match self.find_collection(name)? {
            Some((id, ..)) => Ok(id),
            None => Err(Trouble::Store(Error::NoCollection { name: name.to_string() })),
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<Outcome, Trouble> {
        check_name(to)?;
        let id = self.existing(from)?;
        if self.find_collection(to)?.is_some() {
            return Err(Trouble::Store(Error::CollectionExists { name: to.to_string() }));
        }
        self.keep_collection(id, Some(from), false)?;
        self.tx.execute(
            "UPDATE collection SET name = ?2, seq = ?3 WHERE id = ?1",
            (id, to, self.seq),
        )?;
        self.collections.clear();
        Ok(Outcome::Done)
    }

    /// Has the items of a collection indexed otherwise: the sets concerned are given up, and refilled by a refresh.
    pub(super) fn set_summary(
        &mut self,
        name: &str,
        summary: &Summary,
    ) -> Result<Outcome, Trouble> {
        let id = self.existing(name)?;
        let before = Arc::clone(self.derivers.of(self.tx, id)?.summary());
        if *before == *summary {
            return Ok(Outcome::Done);
        }
        self.keep_collection(id, Some(name), false)?;
        self.tx.execute(
            "UPDATE collection SET summary = ?2, seq = ?3 WHERE id = ?1",
            (id, summary.to_stored(), self.seq),
        )?;
        self.derivers.forget();
        if self.has_items(id)? {
            let changed = [before.finds_otherwise(summary), before.sorts_otherwise(summary)];
            for (set, _) in IndexSet::ALL.iter().zip(changed).filter(|(_, changed)| *changed) {
                set.give_up(self.tx)?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Has a calendar say something else of itself. Where there is no such collection, there is nothing to say.
    pub(super) fn set_head(&mut self, name: &str, head: Option<&[u8]>) -> Result<Outcome, Trouble> {
        let Some((id, ..)) = self.find_collection(name)? else { return Ok(Outcome::Done) };
        let same = "SELECT 1 FROM collection WHERE id = ?1 AND head IS ?2";
        if self.tx.query_row(same, (id, head), |_| Ok(())).optional()?.is_none() {
            self.keep_collection(id, Some(name), false)?;
            self.tx.execute(
                "UPDATE collection SET head = ?2, seq = ?3 WHERE id = ?1",
                (id, head, self.seq),
            )?;
        }
        Ok(Outcome::Done)
    }

    fn has_items(&self, collection: i64) -> rusqlite::Result<bool> {
        let one = "SELECT 1 FROM item WHERE collection = ?1 LIMIT 1";
        Ok(self.tx.query_row(one, [collection], |_| Ok(())).optional()?.is_some())
    }

    pub(super) fn remove_collection(&mut self, name: &str) -> Result<Outcome, Trouble> {
        let id = self.existing(name)?;
        if self.has_items(id)? {
            return Ok(Outcome::Conflict(None, None));
        }
        self.keep_collection(id, Some(name), false)?;
        self.tx
            .execute("UPDATE collection SET removed = 1, seq = ?2 WHERE id = ?1", (id, self.seq))?;
        self.collections.clear();
        Ok(Outcome::Done)
    }

    pub(super) fn restore_collection(&mut self, id: i64) -> Result<Outcome, Trouble> {
        let name: Option<String> = self
            .tx
            .query_row("SELECT name FROM collection WHERE id = ?1 AND removed = 1", [id], |row| {
                row.get(0)
            })
            .optional()?;
        let Some(name) = name else { return Ok(Outcome::Conflict(None, None)) };
        if self.find_collection(&name)?.is_some() {
            return Err(Trouble::Store(Error::CollectionExists { name }));
        }
        self.keep_collection(id, Some(&name), true)?;
        self.tx
            .execute("UPDATE collection SET removed = 0, seq = ?2 WHERE id = ?1", (id, self.seq))?;
        Ok(Outcome::Done)
    }
}

/// Names go into command lines and item addresses (`COLLECTION/UID`).
fn check_name(name: &str) -> Result<(), Trouble> {
    let long = name.chars().count() > 200;
    if name.is_empty() || long || name.chars().any(|c| c.is_control() || c == '/') {
        return Err(Trouble::Store(Error::BadName { name: name.to_string() }));
    }
    Ok(())
}

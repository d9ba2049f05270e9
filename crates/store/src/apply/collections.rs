//! Writing the collections of a batch: created, renamed, indexed differently, removed and restored,
//! each with a record of its former state.
//!
//! This module changes no items: a collection is removed only when it is empty. Separate from
//! `batch_writer` because a collection has a name and a key but no bytes.

use super::ApplyError;
use super::batch_writer::BatchWriter;
use crate::batch::ChangeOutcome;
use crate::checksum::Checksum;
use crate::derived_index::DerivedIndex;
use crate::error::Error;
use crate::handle::derive_collection_key;
use crate::row_checksum::{COLLECTION, COLLECTION_HISTORY};
use crate::row_ids::CollectionRow;
use crate::uid_lookup::CollectionKey;
use crate::{CollectionType, Kind};
use larder_extract::IndexConfig;
use rusqlite::OptionalExtension as _;
use std::sync::Arc;

impl BatchWriter<'_> {
    /// Returns the collection with this name; creates or restores it if there is none.
    pub(super) fn find_or_create_collection(
        &mut self,
        name: &str,
        kind: Kind,
    ) -> Result<CollectionKey, ApplyError> {
        if let Some((known, collection_type)) = self.collections.get(name)
            && *collection_type == kind.collection_type()
        {
            return Ok(known.clone());
        }
        let key = match self.find_collection(name)? {
            Some((id, key, collection_type))
                if collection_type == kind.collection_type().number() =>
            {
                CollectionKey { id, handle_key: key }
            }
            Some(_) => {
                let name = name.to_string();
                return Err(ApplyError::Store(Error::WrongKind { name, kind: kind.name() }));
            }
            None => self.insert_or_restore_collection(name, kind)?,
        };
        self.collections.insert(name.to_string(), (key.clone(), kind.collection_type()));
        Ok(key)
    }

    pub(super) fn find_collection(
        &self,
        name: &str,
    ) -> rusqlite::Result<Option<(CollectionRow, Vec<u8>, i64)>> {
        self.tx
            .prepare_cached(
                "SELECT id, handle_key, type FROM collection WHERE name = ?1 AND removed = 0",
            )?
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()
    }

    fn insert_or_restore_collection(
        &mut self,
        name: &str,
        kind: Kind,
    ) -> Result<CollectionKey, ApplyError> {
        check_collection_name(name, Some(kind.collection_type()))?;
        let removed: Option<(CollectionRow, Vec<u8>)> = self
            .tx
            .query_row(
                "SELECT id, handle_key FROM collection WHERE name = ?1 AND type = ?2 AND removed = 1",
                (name, kind.collection_type().number()),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        if let Some((id, key)) = removed {
            self.restore_collection(id)?;
            return Ok(CollectionKey { id, handle_key: key });
        }
        let handle_key = self.unused_key(name)?;
        let id = self.insert_collection(&handle_key, name, kind)?;
        Ok(CollectionKey { id, handle_key })
    }

    /// Returns the key of a new collection. It is made from the name, so that the same address book
    /// imported elsewhere has the same handles; a counter is appended if a renamed collection has
    /// that key.
    fn unused_key(&self, name: &str) -> rusqlite::Result<Vec<u8>> {
        let mut attempt: u64 = 0;
        loop {
            let key = derive_collection_key(name, attempt);
            let taken = self
                .tx
                .query_row("SELECT 1 FROM collection WHERE handle_key = ?1", [&key], |_| Ok(()))
                .optional()?;
            if taken.is_none() {
                return Ok(key);
            }
            attempt += 1;
        }
    }

    /// Records the state of a collection before this batch: its name and its index configuration,
    /// or that it did not exist.
    fn log_collection_version(
        &mut self,
        id: CollectionRow,
        name: Option<&str>,
        removed: bool,
    ) -> rusqlite::Result<()> {
        let ordinal = self.next_ordinal();
        self.tx
            .execute(
                "INSERT INTO collection_history(seq, ordinal, collection, name, removed, index_config, properties,
                   properties_checksum)
                 SELECT ?1, ?2, id, ?4, ?5, index_config, properties, properties_checksum
                 FROM collection WHERE id = ?3",
                (self.seq, ordinal, id, name, removed),
            )?;
        let key = [self.seq.into(), ordinal.into()];
        COLLECTION_HISTORY.write_checksums(self.tx, "seq = ?1 AND ordinal = ?2", &key)
    }

    /// Updates the row of a collection, and its checksum.
    fn update_row(
        &self,
        id: CollectionRow,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> rusqlite::Result<()> {
        COLLECTION.update_row(self.tx, id.to_number(), || self.tx.execute(sql, parameters))
    }

    pub(super) fn create_new_collection(
        &mut self,
        name: &str,
        kind: Kind,
    ) -> Result<ChangeOutcome, ApplyError> {
        if self.find_collection(name)?.is_some() {
            return Err(ApplyError::Store(Error::CollectionExists { name: name.to_string() }));
        }
        self.find_or_create_collection(name, kind)?;
        Ok(ChangeOutcome::Done)
    }

    /// Gives the collection with a key this name; creates or restores it.
    pub(super) fn adopt_collection(
        &mut self,
        name: &str,
        kind: Kind,
        handle_key: &[u8],
    ) -> Result<ChangeOutcome, ApplyError> {
        check_collection_name(name, Some(kind.collection_type()))?;
        let known: Option<(CollectionRow, String, bool)> = self
            .tx
            .query_row(
                "SELECT id, name, removed FROM collection WHERE handle_key = ?1",
                [handle_key],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        if let Some((_, from, false)) = known {
            return self.rename_collection(&from, name);
        }
        if self.find_collection(name)?.is_some() {
            return Err(ApplyError::Store(Error::CollectionExists { name: name.to_string() }));
        }
        match known {
            Some((id, from, _)) => {
                self.log_collection_version(id, Some(&from), true)?;
                let sql = "UPDATE collection SET name = ?2, removed = 0, seq = ?3 WHERE id = ?1";
                self.update_row(id, sql, (id, name, self.seq))?;
                self.collections.clear();
                Ok(ChangeOutcome::Done)
            }
            None => {
                self.insert_collection(handle_key, name, kind)?;
                Ok(ChangeOutcome::Done)
            }
        }
    }

    fn insert_collection(
        &mut self,
        handle_key: &[u8],
        name: &str,
        kind: Kind,
    ) -> rusqlite::Result<CollectionRow> {
        self.tx.execute(
            "INSERT INTO collection(handle_key, name, type, seq) VALUES(?1, ?2, ?3, ?4)",
            (handle_key, name, kind.collection_type().number(), self.seq),
        )?;
        let id = CollectionRow::from_number(self.tx.last_insert_rowid());
        COLLECTION.write_checksums(self.tx, "id = ?1", &[id.to_number().into()])?;
        self.log_collection_version(id, None, false)?;
        Ok(id)
    }

    fn require_collection(&self, name: &str) -> Result<CollectionRow, ApplyError> {
        match self.find_collection(name)? {
            Some((id, ..)) => Ok(id),
            None => Err(ApplyError::Store(Error::NoCollection { name: name.to_string() })),
        }
    }

    pub(super) fn rename_collection(
        &mut self,
        from: &str,
        to: &str,
    ) -> Result<ChangeOutcome, ApplyError> {
        check_collection_name(to, None)?;
        let id = match self.find_collection(from)? {
            Some((id, _, number)) if is_listed_type(number) => id,
            _ => return Err(ApplyError::Store(Error::NoCollection { name: from.to_string() })),
        };
        if from == to {
            return Ok(ChangeOutcome::Done);
        }
        if self.find_collection(to)?.is_some() {
            return Err(ApplyError::Store(Error::CollectionExists { name: to.to_string() }));
        }
        self.log_collection_version(id, Some(from), false)?;
        let sql = "UPDATE collection SET name = ?2, seq = ?3 WHERE id = ?1";
        self.update_row(id, sql, (id, to, self.seq))?;
        self.collections.clear();
        Ok(ChangeOutcome::Done)
    }

    /// Sets the index configuration of a collection. The indexes that change become stale; a
    /// refresh refills them.
    pub(super) fn set_index_config(
        &mut self,
        name: &str,
        config: &IndexConfig,
    ) -> Result<ChangeOutcome, ApplyError> {
        let id = self.require_collection(name)?;
        let before = Arc::clone(self.extractors.for_collection(self.tx, id)?.index_config());
        if *before == *config {
            return Ok(ChangeOutcome::Done);
        }
        self.log_collection_version(id, Some(name), false)?;
        let sql = "UPDATE collection SET index_config = ?2, seq = ?3 WHERE id = ?1";
        self.update_row(id, sql, (id, config.to_stored(), self.seq))?;
        self.extractors.invalidate();
        if self.has_items(id)? {
            if before.has_different_text_indexes(config) {
                DerivedIndex::Text.invalidate(self.tx)?;
            }
            if before.has_different_sort_indexes(config) {
                DerivedIndex::Sort.invalidate(self.tx)?;
            }
        }
        Ok(ChangeOutcome::Done)
    }

    /// Sets the properties of a collection itself. Does nothing if there is no such collection.
    pub(super) fn set_collection_properties(
        &mut self,
        name: &str,
        properties: Option<&[u8]>,
    ) -> Result<ChangeOutcome, ApplyError> {
        let Some((id, ..)) = self.find_collection(name)? else { return Ok(ChangeOutcome::Done) };
        let select_same = "SELECT 1 FROM collection WHERE id = ?1 AND properties IS ?2";
        if self.tx.query_row(select_same, (id, properties), |_| Ok(())).optional()?.is_none() {
            self.log_collection_version(id, Some(name), false)?;
            let checksum = properties.map(|bytes| Checksum::from_properties(id, bytes));
            let sql = "UPDATE collection SET properties = ?2, seq = ?3, properties_checksum = ?4
                       WHERE id = ?1";
            self.update_row(id, sql, (id, properties, self.seq, checksum))?;
        }
        Ok(ChangeOutcome::Done)
    }

    fn has_items(&self, collection: CollectionRow) -> rusqlite::Result<bool> {
        let select_one = "SELECT 1 FROM item WHERE collection = ?1 LIMIT 1";
        Ok(self.tx.query_row(select_one, [collection], |_| Ok(())).optional()?.is_some())
    }

    pub(super) fn remove_collection(&mut self, name: &str) -> Result<ChangeOutcome, ApplyError> {
        let id = self.require_collection(name)?;
        if self.has_items(id)? {
            return Ok(ChangeOutcome::Conflict(None, None));
        }
        self.log_collection_version(id, Some(name), false)?;
        let sql = "UPDATE collection SET removed = 1, seq = ?2 WHERE id = ?1";
        self.update_row(id, sql, (id, self.seq))?;
        self.collections.clear();
        Ok(ChangeOutcome::Done)
    }

    pub(super) fn restore_collection(
        &mut self,
        id: CollectionRow,
    ) -> Result<ChangeOutcome, ApplyError> {
        let name: Option<String> = self
            .tx
            .query_row("SELECT name FROM collection WHERE id = ?1 AND removed = 1", [id], |row| {
                row.get(0)
            })
            .optional()?;
        let Some(name) = name else { return Ok(ChangeOutcome::Conflict(None, None)) };
        if self.find_collection(&name)?.is_some() {
            return Err(ApplyError::Store(Error::CollectionExists { name }));
        }
        self.log_collection_version(id, Some(&name), true)?;
        let sql = "UPDATE collection SET removed = 0, seq = ?2 WHERE id = ?1";
        self.update_row(id, sql, (id, self.seq))?;
        Ok(ChangeOutcome::Done)
    }
}

/// The beginning of the names of collections that Larder keeps itself.
const RESERVED_NAME_START: &str = "larder:";

/// Returns whether lists show the collections of the type with this number.
fn is_listed_type(number: i64) -> bool {
    CollectionType::from_number(number).is_some_and(CollectionType::is_listed)
}

/// Names are part of command lines and item addresses (`COLLECTION/UID`). A reserved name is the
/// one of its type.
fn check_collection_name(
    name: &str,
    collection_type: Option<CollectionType>,
) -> Result<(), ApplyError> {
    let is_long = name.chars().count() > 200;
    let is_reserved = name.starts_with(RESERVED_NAME_START)
        && collection_type.is_none_or(|one| one.is_listed() || one.default_collection() != name);
    if name.is_empty() || is_long || is_reserved || name.chars().any(|c| c.is_control() || c == '/')
    {
        return Err(ApplyError::Store(Error::InvalidCollectionName { name: name.to_string() }));
    }
    Ok(())
}

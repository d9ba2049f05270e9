//! Reading collections.
//!
//! Separate from `collection`, the form in which readers cache them.

use crate::CollectionType;
use crate::checksum::Checksum;
use crate::damaged_object::DamagedObject;
use crate::error::{DatabaseError, Result};
use crate::reader::Reader;
use crate::row_ids::CollectionRow;
use larder_extract::IndexConfig;
use rusqlite::OptionalExtension as _;
use std::sync::Arc;

/// A named set of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// The row in this file.
    pub row: CollectionRow,
    /// The name.
    pub name: String,
    /// The type of its items.
    pub collection_type: CollectionType,
    /// The number of items.
    pub item_count: u64,
    /// The index configuration.
    pub index_config: Arc<IndexConfig>,
}

/// The properties of a collection itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionProperties {
    /// The row in this file.
    pub row: CollectionRow,
    /// The name.
    pub name: String,
    /// The key from which the handles of its items are made.
    pub handle_key: Vec<u8>,
    /// The property lines as they came, see
    /// [`BatchChange::SetCollectionProperties`](crate::BatchChange::SetCollectionProperties).
    pub properties: Option<Vec<u8>>,
}

/// Reads collections. Each call is one short read transaction, or part of the open one.
#[derive(Debug, Clone, Copy)]
pub struct CollectionReader<'a> {
    reader: &'a Reader,
}

impl Reader {
    /// Returns the collections of the store.
    #[must_use]
    pub fn collections(&self) -> CollectionReader<'_> {
        CollectionReader { reader: self }
    }
}

impl CollectionReader<'_> {
    /// Returns the collections that lists show, by name.
    pub fn list(self) -> Result<Vec<Collection>> {
        self.reader.read_statement(|tx| {
            let sql = "SELECT c.id, c.name, c.type,
                              (SELECT count(*) FROM item i WHERE i.collection = c.id), c.index_config
                       FROM collection c WHERE c.removed = 0 ORDER BY c.name";
            let mut select = tx.prepare_cached(sql)?;
            let rows = select.query_map([], |row| {
                let collection_type = CollectionType::from_number(row.get(2)?);
                let Some(collection_type) = collection_type.filter(|one| one.is_listed()) else {
                    return Ok(None);
                };
                let index_config = row.get_ref(4)?.as_str()?;
                Ok(Some(Collection {
                    row: row.get(0)?,
                    name: row.get(1)?,
                    collection_type,
                    item_count: row.get::<_, i64>(3)?.unsigned_abs(),
                    index_config: IndexConfig::from_stored(index_config, collection_type),
                }))
            })?;
            Ok(rows.filter_map(rusqlite::Result::transpose).collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the collection with this name. Does not use the indexes of the table, and if damage
    /// prevents the count of items, their number is 0: a damaged store can be exported.
    pub fn find(self, name: &str) -> Result<Option<Collection>> {
        let Some(collection) = self.find_uncounted(name)? else { return Ok(None) };
        let count = self.count_items(collection.row);
        match count {
            Err(error) if error.damaged_file().is_some() => Ok(Some(collection)),
            count => Ok(Some(Collection { item_count: count?, ..collection })),
        }
    }

    /// Returns the number of items in the collection with this name; `None`: there is none. Unlike
    /// [`CollectionReader::find`], damage that prevents the count is an error.
    pub fn count_items_of(self, name: &str) -> Result<Option<u64>> {
        let collection = self.find_uncounted(name)?;
        collection.map(|collection| self.count_items(collection.row)).transpose()
    }

    fn find_uncounted(self, name: &str) -> Result<Option<Collection>> {
        self.reader.read_statement(|tx| {
            let sql = "SELECT id, name, type, index_config FROM collection NOT INDEXED
                       WHERE removed = 0 AND name = ?1";
            let collection = tx.prepare_cached(sql)?.query_row([name], |row| {
                let Some(collection_type) = CollectionType::from_number(row.get(2)?) else {
                    return Ok(None);
                };
                let index_config = row.get_ref(3)?.as_str()?;
                Ok(Some(Collection {
                    row: row.get(0)?,
                    name: row.get(1)?,
                    collection_type,
                    item_count: 0,
                    index_config: IndexConfig::from_stored(index_config, collection_type),
                }))
            });
            Ok(collection.optional()?.flatten())
        })
    }

    /// Returns the number of items in a collection.
    pub fn count_items(self, collection: CollectionRow) -> Result<u64> {
        self.reader.read_statement(|tx| {
            let sql = "SELECT count(*) FROM item WHERE collection = ?1";
            let mut select = tx.prepare_cached(sql)?;
            Ok(select.query_row([collection], |row| row.get::<_, i64>(0))?.unsigned_abs())
        })
    }

    /// Returns the rows of the collections that lists show, or of the one of them with this name,
    /// without counting items.
    pub fn list_rows(self, name: Option<&str>) -> Result<Vec<CollectionRow>> {
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let mut selected: Vec<_> = cache
                .collections
                .iter()
                .filter(|collection| collection.index_config.collection_type().is_listed())
                .filter(|collection| name.is_none_or(|name| *collection.name == *name))
                .collect();
            selected.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(selected.into_iter().map(|collection| collection.collection_key.id).collect())
        })
    }

    /// Returns the rows and names of all collections, by row.
    pub fn list_names(self) -> Result<Vec<(CollectionRow, Arc<str>)>> {
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let collections = cache.collections.iter();
            Ok(collections
                .map(|collection| (collection.collection_key.id, Arc::clone(&collection.name)))
                .collect())
        })
    }

    /// Returns the rows of the collections that lists show, with their index configurations. They
    /// are valid for lookups within the same [`Reader::begin_read`].
    pub fn list_index_configs(self) -> Result<Vec<(CollectionRow, Arc<IndexConfig>)>> {
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let collections = cache.collections.iter();
            Ok(collections
                .filter(|collection| collection.index_config.collection_type().is_listed())
                .map(|collection| {
                    (collection.collection_key.id, Arc::clone(&collection.index_config))
                })
                .collect())
        })
    }

    /// Returns the properties of all collections of a type, in the order of their creation, without
    /// counting items.
    pub fn list_properties(
        self,
        collection_type: CollectionType,
    ) -> Result<Vec<CollectionProperties>> {
        self.reader.read_statement(|tx| {
            let sql = "SELECT id, name, properties, handle_key FROM collection
                       WHERE removed = 0 AND type = ?1 ORDER BY id";
            let mut select = tx.prepare_cached(sql)?;
            let rows = select.query_map([collection_type.number()], |row| {
                Ok(CollectionProperties {
                    row: row.get(0)?,
                    name: row.get(1)?,
                    properties: row.get(2)?,
                    handle_key: row.get(3)?,
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the property lines of the collection itself, as they came.
    ///
    /// # Errors
    /// [`crate::Error::DamagedObject`] if they do not match their checksum.
    pub fn properties(self, collection: &Collection) -> Result<Option<Vec<u8>>> {
        self.reader.read_statement(|tx| {
            let sql = "SELECT properties, properties_checksum FROM collection WHERE id = ?1";
            let found: Option<(Option<Vec<u8>>, Option<Checksum>)> = tx
                .query_row(sql, [collection.row], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((Some(properties), checksum)) = found else { return Ok(None) };
            if checksum != Some(Checksum::from_properties(collection.row, &properties)) {
                let collection = collection.name.clone();
                let object = DamagedObject::CollectionProperties { collection };
                return Err(DatabaseError::DamagedObject(object));
            }
            Ok(Some(properties))
        })
    }
}

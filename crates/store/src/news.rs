//! What batches made of items: what each was, and what it is.
//!
//! `changes` says which items changed, for who keeps a copy of them. Who keeps none has to know of each what it was, to
//! tell whether that mattered; this is apart as it reads former versions, and for no longer than these are kept.

use crate::error::{Result, at};
use crate::handle::Handle;
use crate::items::{HEAD, ItemHead, named_head};
use crate::reader::Reader;
use crate::times::Times;
use crate::{Kind, Seq, blob, history, span};
use rusqlite::{OptionalExtension as _, Row};
use std::collections::HashMap;
use std::sync::Arc;

/// An item that is not what it was.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Its short name.
    pub handle: Handle,
    /// What it was; `None`: it was not there.
    pub was: Option<Then>,
    /// What it is; `None`: it is not there.
    pub is: Option<Then>,
}

/// An item as it was, or is.
#[derive(Debug, Clone)]
pub struct Then {
    /// What is known of it. Of an item that is not there any more, the row is the one that it was in.
    pub head: ItemHead,
    /// The row of its collection.
    pub collection: i64,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// When it happens.
    pub times: Option<Times>,
}

/// Where a store stands. What is equal in two of them has not changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The last batch.
    pub seq: Seq,
    /// The last batch that changed a collection: one is new, gone, or called otherwise.
    pub collections: Seq,
    /// Which store it is, and by which zones it knows what items are in time.
    pub rest: String,
}

/// How far what changed can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// All was given.
    All,
    /// More items than were asked for; none was given.
    TooMany,
    /// What items were is not kept any more; none was given.
    Expired,
}

/// Where what an item was is found.
struct Was {
    handle: Handle,
    /// Its first former version: the batch that replaced it, and its row of `former`; none for what was not there.
    former: Option<(Seq, Option<i64>)>,
    /// The batch that first changed what it is in time, and not the item.
    retimed: Option<Seq>,
    /// The row in which it is, where a batch changed it and did not take it away.
    row: Option<i64>,
}

/// What was found so far, each item once.
struct Found {
    places: HashMap<Handle, usize>,
    was: Vec<Was>,
}

impl Found {
    /// What is known of the item whose handle is the first column.
    fn of(&mut self, row: &Row<'_>) -> rusqlite::Result<&mut Was> {
        let handle = Handle::from_bytes(row.get_ref(0)?.as_blob()?);
        let place = *self.places.entry(handle).or_insert(self.was.len());
        if place == self.was.len() {
            self.was.push(Was { handle, former: None, retimed: None, row: None });
        }
        self.was.get_mut(place).ok_or(rusqlite::Error::InvalidQuery)
    }
}

/// The rows and names of collections, by row.
type Names<'a> = &'a [(i64, Arc<str>)];

/// Where the columns of a former version are, behind those of [`HEAD`].
const FORMER: &str =
    "f.item, f.handle, f.kind, f.collection, f.uid, f.derived_uid, f.before, f.recurrence, f.frame";
const BYTES: usize = 9;
const TIME: usize = 10;

impl Reader {
    /// The last batch, as of the snapshot in which this is called.
    pub fn seq(&self) -> Result<Seq> {
        crate::store::meta(&self.conn, "seq").map_err(at(&self.path))
    }

    /// Where the store stands, as of the snapshot in which this is called: all at once, as it is asked after each batch.
    pub fn standing(&self) -> Result<Standing> {
        let sql = "SELECT (SELECT value FROM meta WHERE key = 'seq'),
                          (SELECT max(seq) FROM collection),
                          (SELECT value FROM meta WHERE key = 'epoch') || ';' ||
                          (SELECT value FROM meta WHERE key = 'idx:time') || ';' ||
                          (SELECT value FROM meta WHERE key = 'zones')";
        let run = || {
            self.conn.prepare_cached(sql)?.query_row([], |row| {
                let (collections, rest): (Option<Seq>, Option<String>) = (row.get(1)?, row.get(2)?);
                let (collections, rest) = (collections.unwrap_or(0), rest.unwrap_or_default());
                Ok(Standing { seq: row.get(0)?, collections, rest })
            })
        };
        run().map_err(at(&self.path))
    }

    /// Gives each item that a batch behind `after` changed to `each`, with what it was then and what it is, in the order of their
    /// first changes; where these are more than `most`, none. In one snapshot, which may last as long as it takes to read so many.
    /// `names`: of the collections, as [`Reader::collection_names`] gives them.
    pub fn changed(
        &self,
        after: Seq,
        most: usize,
        names: Names<'_>,
        each: &mut dyn FnMut(Changed),
    ) -> Result<Told> {
        let _snapshot = self.snapshot()?;
        let mut run = || -> rusqlite::Result<Told> {
            let sql =
                "SELECT max(value) FROM (SELECT value - 1 AS value FROM meta WHERE key = 'oldest'
                       UNION ALL SELECT value FROM meta WHERE key = ?1)";
            let known: Seq = self
                .conn
                .prepare_cached(sql)?
                .query_row([history::TOLD_SINCE], |row| row.get(0))?;
            if after < known {
                return Ok(Told::Expired);
            }
            let Some(changed) = self.changed_since(after, most)? else { return Ok(Told::TooMany) };
            if changed.is_empty() {
                return Ok(Told::All);
            }
            for was in changed {
                let is = self.is(&was, names)?;
                let was_then = self.was(&was, is.as_ref(), names)?;
                each(Changed { handle: was.handle, was: was_then, is });
            }
            Ok(Told::All)
        };
        run().map_err(at(&self.path))
    }

    /// Which items changed, and where what they were is found.
    fn changed_since(&self, after: Seq, most: usize) -> rusqlite::Result<Option<Vec<Was>>> {
        let mut found = Found { places: HashMap::new(), was: Vec::new() };
        // The first of an item's former versions is what it was, if it was there at all.
        let sql = "SELECT handle, seq, id, before FROM former WHERE seq > ?1 ORDER BY seq, ordinal";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            let former = if row.get::<_, Seq>(3)? > after { None } else { Some(row.get(2)?) };
            let (seq, was) = (row.get(1)?, found.of(row)?);
            was.former.get_or_insert((seq, former));
            if found.was.len() > most {
                return Ok(None);
            }
        }
        let sql = "SELECT handle, seq FROM retimed WHERE seq > ?1 ORDER BY seq";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            let (seq, was) = (row.get(1)?, found.of(row)?);
            was.retimed.get_or_insert(seq);
            if found.was.len() > most {
                return Ok(None);
            }
        }
        let sql = "SELECT handle, seq, id FROM item WHERE seq > ?1 ORDER BY seq, ordinal";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            // What has no former version is new.
            let (seq, is, was) = (row.get(1)?, row.get(2)?, found.of(row)?);
            was.former.get_or_insert((seq, None));
            was.row = Some(is);
            if found.was.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(found.was))
    }

    fn was(
        &self,
        was: &Was,
        is: Option<&Then>,
        names: Names<'_>,
    ) -> rusqlite::Result<Option<Then>> {
        let (replaced, then) = match was.former {
            Some((_, None)) => return Ok(None),
            Some((seq, Some(row))) => (seq, self.former(row, names)?),
            None => match is {
                Some(is) => (Seq::MAX, is.clone()),
                None => return Ok(None),
            },
        };
        match was.retimed {
            Some(seq) if seq < replaced => {
                Ok(Some(Then { times: self.retimed(seq, was.handle)?, ..then }))
            }
            _ => Ok(Some(then)),
        }
    }

    /// What an item is now.
    fn is(&self, was: &Was, names: Names<'_>) -> rusqlite::Result<Option<Then>> {
        let row = match (was.row, was.former) {
            (Some(row), _) => row,
            // A batch replaced it, and none put it there since.
            (None, Some(_)) => return Ok(None),
            // Only when it happens has changed.
            (None, None) => {
                let sql = "SELECT id FROM item WHERE handle = ?1";
                let mut select = self.conn.prepare_cached(sql)?;
                let row = select.query_row([was.handle.to_bytes()], |row| row.get(0)).optional()?;
                let Some(row) = row else { return Ok(None) };
                row
            }
        };
        let sql = format!(
            "SELECT {HEAD}, s.bytes, t.data FROM item i JOIN source s ON s.item = i.id
             LEFT JOIN idx_time t ON t.item = CASE WHEN i.kind >= {} THEN i.id END
             WHERE i.id = ?1",
            // Contacts are nowhere in time: three pages less.
            Kind::Event as i64
        );
        let mut select = self.conn.prepare_cached(&sql)?;
        let then = select.query_row([row], |row| self.then(row, names)).optional()?;
        let mut then = then.ok_or_else(|| blob::missing(row))?;
        if then.bytes.is_empty() {
            then.bytes = blob::must(&self.conn, then.head.row)?.into();
        }
        Ok(Some(then))
    }

    fn former(&self, row: i64, names: Names<'_>) -> rusqlite::Result<Then> {
        let sql = format!(
            "SELECT {FORMER}, coalesce(f.bytes, b.bytes), f.time
             FROM former f LEFT JOIN blob b ON b.hash = f.blob WHERE f.id = ?1"
        );
        self.conn.prepare_cached(&sql)?.query_row([row], |row| self.then(row, names))
    }

    fn then(&self, row: &Row<'_>, names: Names<'_>) -> rusqlite::Result<Then> {
        let time = row.get_ref(TIME)?.as_blob_or_null()?;
        let times = time.and_then(|data| span::unpack(&self.conn, &self.deriver, data));
        let bytes = row.get_ref(BYTES)?.as_blob_or_null()?.unwrap_or_default().into();
        Ok(Then { head: named_head(row, names)?, collection: row.get(3)?, bytes, times })
    }

    fn retimed(&self, seq: Seq, handle: Handle) -> rusqlite::Result<Option<Times>> {
        let sql = "SELECT time FROM retimed WHERE seq = ?1 AND handle = ?2";
        let time: Option<Vec<u8>> = self
            .conn
            .prepare_cached(sql)?
            .query_row((seq, handle.to_bytes()), |row| row.get(0))
            .optional()?
            .flatten();
        Ok(time.and_then(|data| span::unpack(&self.conn, &self.deriver, &data)))
    }
}

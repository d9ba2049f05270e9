//! Derived data: writing index rows in key order, rebuilding a set in steps, digesting what is there.
//!
//! Everything here can be made again from `source`. A set is usable when `meta` holds the fingerprint
//! that this program would fill it with; while it is being refilled `meta` says how far that has come.

use crate::Seq;
use crate::contact::{Deriver, Entry};
use crate::error::{Result, at};
use crate::store::Store;
use crate::{blob, schema};
use rusqlite::{Connection, OptionalExtension as _, Transaction};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher as _};

/// Items re-derived in one transaction of a rebuild: short enough to let others in between.
const STEP: usize = 500;

/// Index tables that share a fingerprint, and are rebuilt together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexSet {
    /// `idx_value`, `idx_text`, `idx_large`: depends on how text is folded.
    Text,
    /// `idx_sort`: depends on the locale, too.
    Sort,
}

impl IndexSet {
    pub(crate) const ALL: [IndexSet; 2] = [IndexSet::Text, IndexSet::Sort];

    /// Its name, as messages have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IndexSet::Text => "text",
            IndexSet::Sort => "sort",
        }
    }

    fn key(self) -> &'static str {
        match self {
            IndexSet::Text => "idx:text",
            IndexSet::Sort => "idx:sort",
        }
    }

    fn fingerprint(self, deriver: &Deriver) -> String {
        match self {
            IndexSet::Text => deriver.text_fingerprint(),
            IndexSet::Sort => deriver.sort_fingerprint(),
        }
    }

    fn make_empty(self, conn: &Connection) -> rusqlite::Result<()> {
        match self {
            IndexSet::Text => {
                conn.execute_batch(
                    "DROP TABLE IF EXISTS idx_value;
                     DROP TABLE IF EXISTS idx_text;
                     DROP TABLE IF EXISTS idx_large;",
                )?;
                conn.execute_batch(schema::TEXT_TABLES)
            }
            IndexSet::Sort => {
                conn.execute_batch("DROP TABLE IF EXISTS idx_sort")?;
                conn.execute_batch(schema::SORT_TABLES)
            }
        }
    }

    fn state(self, conn: &Connection) -> rusqlite::Result<Option<String>> {
        conn.query_row("SELECT value FROM meta WHERE key = ?1", [self.key()], |row| row.get(0))
            .optional()
    }

    fn set_state(self, conn: &Connection, state: &str) -> rusqlite::Result<()> {
        conn.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2)", (self.key(), state)).map(drop)
    }

    /// Is it whole, and filled as this program would fill it?
    pub(crate) fn usable(self, conn: &Connection, deriver: &Deriver) -> rusqlite::Result<bool> {
        Ok(self.state(conn)?.as_deref() == Some(&self.fingerprint(deriver)))
    }
}

/// Marks all sets of a new, empty store as whole.
pub(crate) fn mark_whole(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<()> {
    for set in IndexSet::ALL {
        set.set_state(conn, &set.fingerprint(deriver))?;
    }
    Ok(())
}

/// Gives up the sets that another program, or another locale, has begun to fill since this store was opened: with
/// rows of this one's making among them they are nobody's. The next refresh fills them anew.
pub(crate) fn give_up_others(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<()> {
    for set in IndexSet::ALL {
        let fingerprint = set.fingerprint(deriver);
        let state = set.state(conn)?.unwrap_or_default();
        if state != fingerprint && progress(&state, &fingerprint).is_none() {
            set.set_state(conn, "empty")?;
        }
    }
    Ok(())
}

/// Index rows of a batch, gathered so that they are written in key order: a third of the time at a
/// hundred thousand items, since each page of an index is touched once a batch.
#[derive(Default)]
pub(crate) struct Rows {
    values: Vec<(u16, String, i64)>,
    sort: Vec<(u16, Vec<u8>, i64)>,
    texts: Vec<(i64, String)>,
    large: Vec<i64>,
}

impl Rows {
    /// Replaces the rows of an item: what `old` had and `new` has not goes at once, what is new waits for
    /// [`Rows::write`].
    pub(crate) fn replace(
        &mut self,
        tx: &Transaction<'_>,
        item: i64,
        old: &Entry,
        new: Entry,
    ) -> rusqlite::Result<()> {
        let mut delete = tx.prepare_cached(
            "DELETE FROM idx_value WHERE field = ?1 AND value = ?2 AND item = ?3",
        )?;
        for (field, value) in gone(&old.values, &new.values) {
            delete.execute((field, value, item))?;
        }
        let mut delete =
            tx.prepare_cached("DELETE FROM idx_sort WHERE field = ?1 AND key = ?2 AND item = ?3")?;
        for (field, key) in gone(&old.sort, &new.sort) {
            delete.execute((field, key, item))?;
        }
        if old.text != new.text && !old.text.is_empty() {
            tx.prepare_cached("DELETE FROM idx_text WHERE rowid = ?1")?.execute([item])?;
        }
        if old.large && !new.large {
            tx.prepare_cached("DELETE FROM idx_large WHERE item = ?1")?.execute([item])?;
        }
        self.values.extend(
            gone(&new.values, &old.values).map(|(field, value)| (*field, value.clone(), item)),
        );
        self.sort
            .extend(gone(&new.sort, &old.sort).map(|(field, key)| (*field, key.clone(), item)));
        if new.large && !old.large {
            self.large.push(item);
        }
        if old.text != new.text && !new.text.is_empty() {
            self.texts.push((item, new.text));
        }
        Ok(())
    }

    /// Writes the gathered rows, in key order.
    pub(crate) fn write(&mut self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
        self.values.sort_unstable();
        let mut insert = tx.prepare_cached("INSERT OR IGNORE INTO idx_value VALUES(?1, ?2, ?3)")?;
        for row in self.values.drain(..) {
            insert.execute(row)?;
        }
        self.sort.sort_unstable();
        let mut insert = tx.prepare_cached("INSERT OR IGNORE INTO idx_sort VALUES(?1, ?2, ?3)")?;
        for row in self.sort.drain(..) {
            insert.execute(row)?;
        }
        self.texts.sort_unstable();
        let mut insert = tx.prepare_cached("INSERT INTO idx_text(rowid, text) VALUES(?1, ?2)")?;
        for row in self.texts.drain(..) {
            insert.execute(row)?;
        }
        let mut insert = tx.prepare_cached("INSERT OR IGNORE INTO idx_large VALUES(?1)")?;
        for item in self.large.drain(..) {
            insert.execute([item])?;
        }
        Ok(())
    }
}

/// What is in the sorted list `from` and not in the sorted list `other`.
fn gone<'a, T: Ord>(from: &'a [T], other: &'a [T]) -> impl Iterator<Item = &'a T> {
    from.iter().filter(move |row| other.binary_search(row).is_err())
}

impl Store {
    /// Is this set whole and of this program's making? Where it is not, queries scan.
    pub fn usable(&self, set: IndexSet) -> Result<bool> {
        set.usable(&self.conn, &self.deriver).map_err(at(&self.path))
    }

    /// Refills the sets that another version or locale made, or that a rebuild left unfinished, in steps
    /// that let other writers in between. Returns how many items were derived again.
    pub fn refresh(&mut self) -> Result<u64> {
        let mut derived = 0;
        for set in IndexSet::ALL {
            while !self.usable(set)? {
                derived += self.rebuild_step(set)?;
            }
        }
        Ok(derived)
    }

    /// Drops and refills all derived tables.
    pub fn rebuild(&mut self) -> Result<u64> {
        self.writable()?;
        {
            let lock = self.locks.acquire()?;
            self.recover(&lock)?;
            let tx = crate::store::immediate(&self.conn).map_err(at(&self.path))?;
            for set in IndexSet::ALL {
                set.set_state(&tx, "empty").map_err(at(&self.path))?;
            }
            tx.commit().map_err(at(&self.path))?;
        }
        self.refresh()
    }

    /// Derives the next items of a set anew. Parsing is done before the lock is taken; an item that
    /// changed in between is derived again under it.
    fn rebuild_step(&mut self, set: IndexSet) -> Result<u64> {
        self.writable()?;
        let path = self.path.clone();
        let fingerprint = set.fingerprint(&self.deriver);
        let state = set.state(&self.conn).map_err(at(&path))?.unwrap_or_default();
        let last = progress(&state, &fingerprint);
        let page = match last {
            Some(last) => self.derive_after(last).map_err(at(&path))?,
            None => Vec::new(),
        };
        let lock = self.locks.acquire()?;
        self.recover(&lock)?;
        let step = || -> rusqlite::Result<u64> {
            let tx = crate::store::immediate(&self.conn)?;
            if set.state(&tx)?.unwrap_or_default() != state {
                return Ok(0); // Somebody else made a step: look again.
            }
            match (last, page.last()) {
                (None, _) => {
                    set.make_empty(&tx)?;
                    set.set_state(&tx, &format!("rebuilding 0 {fingerprint}"))?;
                }
                (Some(_), None) => set.set_state(&tx, &fingerprint)?,
                (Some(_), Some((id, ..))) => {
                    fill(&tx, set, &self.deriver, &page)?;
                    set.set_state(&tx, &format!("rebuilding {id} {fingerprint}"))?;
                }
            }
            tx.commit()?;
            Ok(page.len() as u64)
        };
        let derived = step().map_err(at(&path))?;
        self.let_go(lock);
        Ok(derived)
    }

    fn derive_after(&self, last: i64) -> rusqlite::Result<Vec<(i64, Seq, Entry)>> {
        let mut select = self
            .conn
            .prepare_cached("SELECT id, seq FROM item WHERE id > ?1 ORDER BY id LIMIT ?2")?;
        let heads = select
            .query_map((last, STEP as i64), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<(i64, Seq)>>>()?;
        let derive = |(id, seq)| {
            let bytes = blob::source(&self.conn, id)?.unwrap_or_default();
            Ok((id, seq, self.deriver.entry_of(&bytes)))
        };
        heads.into_iter().map(derive).collect()
    }
}

/// How far the rebuild with this fingerprint has come; `None` where it has to begin.
fn progress(state: &str, fingerprint: &str) -> Option<i64> {
    let (last, found) = state.strip_prefix("rebuilding ")?.split_once(' ')?;
    if found == fingerprint { last.parse().ok() } else { None }
}

fn fill(
    tx: &Transaction<'_>,
    set: IndexSet,
    deriver: &Deriver,
    page: &[(i64, Seq, Entry)],
) -> rusqlite::Result<()> {
    let mut rows = Rows::default();
    for (id, seq, entry) in page {
        let now: Option<Seq> = tx
            .prepare_cached("SELECT seq FROM item WHERE id = ?1")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        let mut entry = match now {
            None => continue,
            Some(now) if now == *seq => entry.clone(),
            Some(_) => deriver.entry_of(&blob::source(tx, *id)?.unwrap_or_default()),
        };
        match set {
            IndexSet::Text => {
                entry.sort.clear();
                tx.prepare_cached("DELETE FROM idx_text WHERE rowid = ?1")?.execute([id])?;
            }
            IndexSet::Sort => entry = Entry { sort: entry.sort, ..Entry::default() },
        }
        rows.replace(tx, *id, &Entry::default(), entry)?;
    }
    rows.write(tx)
}

/// Takes an item's rows away, whatever they are.
pub(crate) fn remove(tx: &Transaction<'_>, item: i64, old: &Entry) -> rusqlite::Result<()> {
    Rows::default().replace(tx, item, old, Entry::default())
}

/// A number that does not depend on the order of rows: two tables with the same rows have the same digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Digest {
    /// How many rows.
    pub(crate) rows: u64,
    sum: u64,
}

impl Digest {
    fn add(&mut self, row: impl std::hash::Hash) {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

/// Digests of `idx_value`, `idx_text`, `idx_large` and `idx_sort`, in this order.
pub(crate) type Digests = [Digest; 4];

/// The tables that [`Digests`] are of.
pub(crate) const DIGESTED: [&str; 4] = ["idx_value", "idx_text", "idx_large", "idx_sort"];

/// Digests of what the index tables hold.
pub(crate) fn stored_digests(conn: &Connection) -> rusqlite::Result<Digests> {
    let [mut values, mut text, mut large, mut sort] = Digests::default();
    let each = |sql: &str, add: &mut dyn FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>| {
        let mut select = conn.prepare(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            add(row)?;
        }
        Ok::<(), rusqlite::Error>(())
    };
    each("SELECT field, value, item FROM idx_value", &mut |row| {
        values.add((row.get::<_, u16>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?));
        Ok(())
    })?;
    each("SELECT item FROM idx_large", &mut |row| {
        large.add(row.get::<_, i64>(0)?);
        Ok(())
    })?;
    each("SELECT field, key, item FROM idx_sort", &mut |row| {
        sort.add((row.get::<_, u16>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, i64>(2)?));
        Ok(())
    })?;
    // A vocabulary lists each trigram with each item that has it; it lives in the temporary schema only.
    conn.execute_batch(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, idx_text, instance)",
    )?;
    each("SELECT term, doc FROM temp.vocabulary", &mut |row| {
        text.add((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
        Ok(())
    })?;
    conn.execute_batch("DROP TABLE temp.vocabulary")?;
    Ok([values, text, large, sort])
}

/// Digests of what the index tables should hold, from the source bytes.
pub(crate) fn expected_digests(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<Digests> {
    let [mut values, mut text, mut large, mut sort] = Digests::default();
    let mut select = conn.prepare("SELECT id FROM item ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let item: i64 = row.get(0)?;
        let entry = deriver.entry_of(&blob::source(conn, item)?.unwrap_or_default());
        for (field, value) in entry.values {
            values.add((field, value, item));
        }
        for (field, key) in entry.sort {
            sort.add((field, key, item));
        }
        if entry.large {
            large.add(item);
        }
        for trigram in trigrams(&entry.text) {
            text.add((trigram.to_string(), item));
        }
    }
    Ok([values, text, large, sort])
}

/// Each run of three characters, once: what FTS5's trigram tokenizer makes of a text.
fn trigrams(text: &str) -> BTreeSet<&str> {
    let starts: Vec<usize> =
        text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
    starts.windows(4).map(|window| &text[window[0]..window[3]]).collect()
}

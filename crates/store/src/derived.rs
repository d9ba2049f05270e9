//! Derived data: what a batch writes of it, rebuilding a set in steps, digesting what is there.
//!
//! Everything here can be made again from `source`. A set is usable when `meta` holds the fingerprint
//! that this program would fill it with; while it is being refilled `meta` says how far that has come.

use crate::deriver::{Deriver, Derivers, Entry, SortKeys};
use crate::error::{Result, at};
use crate::event::Timing;
use crate::history;
use crate::index::term::{self, Sign};
use crate::index::{self, Gathered, Terms};
use crate::series::{self, Member, Whose};
use crate::span;
use crate::store::{Meta, Store, meta};
use crate::summary::Summary;
use crate::transaction::Transaction;
use crate::{Kind, Seq};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::mem;
use std::sync::Arc;

/// Items re-derived in one transaction of a rebuild: short enough to let others in between.
const STEP: usize = 500;
/// So few items may be derived under the lock, to end a rebuild.
const GAP: usize = 50;
/// Bytes of the index that are merged in one transaction.
const MERGE: i64 = 2 << 20;

/// Terms that share a fingerprint, and are rebuilt together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexSet {
    /// Terms that items are found by: depends on how text is folded.
    Text = 1,
    /// Terms that items are sorted by: depends on the locale, too.
    Sort = 2,
    /// What items are in time: depends on the time zones, too.
    Time = 3,
}

impl IndexSet {
    pub(crate) const ALL: [IndexSet; 3] = [IndexSet::Text, IndexSet::Sort, IndexSet::Time];

    /// Its name, as messages have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IndexSet::Text => "text",
            IndexSet::Sort => "sort",
            IndexSet::Time => "time",
        }
    }

    fn key(self) -> &'static str {
        match self {
            IndexSet::Text => "idx:text",
            IndexSet::Sort => "idx:sort",
            IndexSet::Time => "idx:time",
        }
    }

    fn fingerprint(self, deriver: &Deriver) -> String {
        match self {
            IndexSet::Text => deriver.text_fingerprint(),
            IndexSet::Sort => deriver.sort_fingerprint(),
            IndexSet::Time => deriver.time_fingerprint(),
        }
    }

    fn state(self, conn: &Connection) -> rusqlite::Result<Option<String>> {
        conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?
            .query_row([self.key()], |row| row.get(0))
            .optional()
    }

    fn set_state(self, conn: &Connection, state: &str) -> rusqlite::Result<()> {
        // While it is not whole, former versions are kept without their times.
        if self == IndexSet::Time {
            history::forget_before(conn, None)?;
        }
        conn.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2)", (self.key(), state)).map(drop)
    }

    /// Nothing of it is to be used from this transaction on, and nothing that it holds is to be kept.
    pub(crate) fn give_up(self, conn: &Connection) -> rusqlite::Result<()> {
        self.set_state(conn, "empty")
    }

    /// Is it whole, and filled as this program would fill it?
    pub(crate) fn usable(self, meta: &Meta, deriver: &Deriver) -> bool {
        meta.text(self.key()) == self.fingerprint(deriver)
            && (self != IndexSet::Time || meta.text(span::ZONES) == deriver.zones().version())
    }

    fn is_whole(self, conn: &Connection, deriver: &Deriver) -> rusqlite::Result<bool> {
        Ok(self.state(conn)?.as_deref() == Some(&self.fingerprint(deriver)))
    }

    /// Takes away all that it holds.
    fn empty(self, conn: &Connection) -> rusqlite::Result<()> {
        match self {
            IndexSet::Text | IndexSet::Sort => index::empty(conn, self),
            IndexSet::Time => span::empty(conn),
        }
    }
}

/// Marks all sets of a new, empty store as whole.
pub(crate) fn mark_whole(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<()> {
    for set in IndexSet::ALL {
        set.set_state(conn, &set.fingerprint(deriver))?;
    }
    span::note_zones(conn, deriver)
}

/// Gives up the sets that another program, or another locale, has begun to fill since this store was opened: with
/// rows of this one's making among them they are nobody's. The next refresh fills them anew.
pub(crate) fn give_up_others(
    conn: &Connection,
    deriver: &Deriver,
    meta: &Meta,
) -> rusqlite::Result<()> {
    for set in IndexSet::ALL {
        let (state, fingerprint) = (meta.text(set.key()), set.fingerprint(deriver));
        let others = set == IndexSet::Time && meta.text(span::ZONES) != deriver.zones().version();
        if others || (state != fingerprint && progress(state, &fingerprint).is_none()) {
            set.give_up(conn)?;
        }
    }
    Ok(())
}

/// What a batch has to say to the index, gathered so that each set is written once.
pub(crate) struct Rows {
    text: Gathered,
    sort: BTreeMap<i64, Placed>,
    time: BTreeMap<i64, Timed>,
    /// The last item that each set is to know: all, unless it is being rebuilt and comes to the others later.
    text_to: i64,
    sort_to: i64,
    time_to: i64,
}

/// An item of a calendar that the batch has changed.
struct Timed {
    whose: Whose,
    /// What it says of time from now on; `None`: it is gone.
    is: Option<Option<Box<Timing>>>,
}

/// Where an item goes in the orders of a store, and where it was: terms.
#[derive(Default)]
struct Placed {
    was: Vec<Vec<u8>>,
    is: Vec<Vec<u8>>,
}

impl Rows {
    pub(crate) fn begin(deriver: &Deriver, meta: &Meta) -> Rows {
        let reach = |set: IndexSet| -> i64 {
            let (state, fingerprint) = (meta.text(set.key()), set.fingerprint(deriver));
            let all = if state == fingerprint { i64::MAX } else { 0 };
            progress(state, &fingerprint).unwrap_or(all)
        };
        Rows {
            text: Gathered::default(),
            sort: BTreeMap::new(),
            time: BTreeMap::new(),
            text_to: reach(IndexSet::Text),
            sort_to: reach(IndexSet::Sort),
            time_to: reach(IndexSet::Time),
        }
    }

    /// Was anything said of this item before?
    pub(crate) fn has(&self, item: i64) -> bool {
        self.sort.contains_key(&item)
    }

    /// An item of this collection has this entry from now on; `was` is what it was sorted by before the batch.
    pub(crate) fn put(&mut self, item: i64, whose: Whose, was: SortKeys, entry: Entry) {
        if item <= self.text_to {
            self.text.put(item, entry.terms);
        }
        self.place(item, whose.collection, was, entry.sort);
        if whose.is_of_calendar {
            self.time.insert(item, Timed { whose, is: Some(entry.timing) });
        }
    }

    /// An item of this collection is gone; `was` is what it was sorted by before the batch.
    pub(crate) fn remove(&mut self, item: i64, whose: Whose, was: SortKeys) {
        if item <= self.text_to {
            self.text.remove(item);
        }
        self.place(item, whose.collection, was, SortKeys::new());
        if whose.is_of_calendar {
            self.time.insert(item, Timed { whose, is: None });
        }
    }

    fn place(&mut self, item: i64, collection: i64, was: SortKeys, is: SortKeys) {
        let terms = |keys: SortKeys, sign| -> Vec<Vec<u8>> {
            keys.into_iter().map(|(field, key)| term::sort(field, collection, &key, sign)).collect()
        };
        let placed = self
            .sort
            .entry(item)
            .or_insert_with(|| Placed { was: terms(was, Sign::Out), is: Vec::new() });
        placed.is = terms(is, Sign::In);
    }

    /// Writes everything, as of the batch `seq`.
    pub(crate) fn write(
        &mut self,
        tx: &Transaction<'_>,
        derivers: &mut Derivers<'_>,
        seq: Seq,
    ) -> rusqlite::Result<()> {
        self.write_time(tx, derivers, seq)?;
        mem::take(&mut self.text).write(tx, IndexSet::Text, seq)?;
        let mut sort = Gathered::default();
        for (item, Placed { was, mut is }) in mem::take(&mut self.sort) {
            // Of what was in no order, and is in none, there is nothing to say.
            if item <= self.sort_to && !(was.is_empty() && is.is_empty()) {
                is.extend(was);
                sort.put(item, Terms::new(is, Vec::new(), false));
            }
        }
        sort.write(tx, IndexSet::Sort, seq)
    }

    /// What a detached occurrence says is also of its series, and the other way round, so whatever has the UID of a changed
    /// item is looked at together, once.
    fn write_time(
        &mut self,
        tx: &Transaction<'_>,
        derivers: &mut Derivers<'_>,
        seq: Seq,
    ) -> rusqlite::Result<()> {
        let mut writer = span::Writer::new(tx, derivers.base());
        let mut changed: BTreeMap<(i64, String), Vec<Member>> = BTreeMap::new();
        let (mut new, mut own) = (HashSet::new(), HashSet::new());
        for (item, Timed { whose, is }) in mem::take(&mut self.time) {
            own.insert(item);
            if whose.is_new {
                new.insert(item);
            }
            let Whose { collection, uid, recurrence, .. } = whose;
            let Some(timing) = is else {
                span::erase(tx, derivers.base(), collection, item)?;
                changed.entry((collection, uid)).or_default();
                continue;
            };
            let member = Member { item, recurrence, timing, changed: true };
            changed.entry((collection, uid)).or_default().push(member);
        }
        for ((collection, uid), members) in changed {
            let times = series::of_changed(tx, derivers, collection, &uid, members)?;
            for (item, times) in times.into_iter().filter(|(item, _)| *item <= self.time_to) {
                // What the item itself was is in `former`.
                if !own.contains(&item) {
                    history::keep_time(tx, seq, item)?;
                }
                writer.put(collection, item, times.as_ref(), new.contains(&item))?;
            }
        }
        writer.finish()
    }
}

impl Store {
    /// Is this set whole and of this program's making? Where it is not, queries scan.
    pub fn usable(&self, set: IndexSet) -> Result<bool> {
        let meta = Meta::read(&self.conn).map_err(at(&self.path))?;
        Ok(set.usable(&meta, &self.deriver))
    }

    /// Merges what a large job left in many segments, in steps that let other writers in between, so that readers have
    /// few to look into.
    pub fn merge_segments(&mut self) -> Result<()> {
        self.writable()?;
        loop {
            let lock = self.locks.acquire()?;
            self.recover(&lock)?;
            let step = || -> rusqlite::Result<bool> {
                let tx = Transaction::begin(&self.conn)?;
                let more = index::merge_most(&tx, MERGE)?;
                tx.commit()?;
                Ok(more)
            };
            let more = step().map_err(at(&self.path))?;
            self.let_go(lock);
            if !more {
                return Ok(());
            }
        }
    }

    /// Refills the sets that another version, locale or summary made, or that a rebuild left unfinished, in steps
    /// that let other writers in between. Returns how many items were derived again.
    pub fn refresh(&mut self) -> Result<u64> {
        let mut derived = 0;
        while let Some(more) = self.refresh_step(STEP)? {
            derived += more;
        }
        if derived > 0 {
            self.merge_segments()?;
        }
        Ok(derived)
    }

    /// One step of a refresh, of so many items: the lock is taken and let go. Returns how many were derived again;
    /// `None`: all sets are whole.
    pub fn refresh_step(&mut self, items: usize) -> Result<Option<u64>> {
        for set in IndexSet::ALL {
            if !set.is_whole(&self.conn, &self.deriver).map_err(at(&self.path))? {
                return self.rebuild_step(set, items).map(Some);
            }
        }
        self.zones_step(items)
    }

    /// Drops and refills all derived tables.
    pub fn rebuild(&mut self) -> Result<u64> {
        self.writable()?;
        {
            let lock = self.locks.acquire()?;
            self.recover(&lock)?;
            let tx = Transaction::begin(&self.conn).map_err(at(&self.path))?;
            for set in IndexSet::ALL {
                set.give_up(&tx).map_err(at(&self.path))?;
            }
            tx.commit().map_err(at(&self.path))?;
        }
        self.refresh()
    }

    /// Derives the next items of a set anew. Parsing is done before the lock is taken, but for what items are in time; an
    /// item that changed in between is derived again under it.
    fn rebuild_step(&mut self, set: IndexSet, items: usize) -> Result<u64> {
        self.writable()?;
        let path = self.path.clone();
        let fingerprint = set.fingerprint(&self.deriver);
        let epoch = history::epoch(&self.conn).map_err(at(&path))?;
        let state = set.state(&self.conn).map_err(at(&path))?.unwrap_or_default();
        let last = progress(&state, &fingerprint);
        let page = match last {
            Some(last) => self.derive_after(set, last, items).map_err(at(&path))?,
            None => Vec::new(),
        };
        let lock = self.locks.acquire()?;
        self.recover(&lock)?;
        let step = || -> rusqlite::Result<u64> {
            let tx = Transaction::begin(&self.conn)?;
            if set.state(&tx)?.unwrap_or_default() != state || history::epoch(&tx)? != epoch {
                return Ok(0); // Somebody else made a step, or restored the store: look again.
            }
            let Some(last) = last else {
                set.empty(&tx)?;
                set.set_state(&tx, &format!("rebuilding 0 {fingerprint}"))?;
                if set == IndexSet::Time {
                    span::note_zones(&tx, &self.deriver)?;
                }
                tx.commit()?;
                return Ok(0);
            };
            fill(&tx, set, &self.deriver, &page)?;
            // What came while this waited for the lock was left to the rebuild. A few are derived under it: who writes
            // all the time would keep the rebuild from ever ending.
            let last = page.last().map_or(last, |one| one.id);
            let gap = GAP.min(items);
            let mut rest = self.derive_after(set, last, gap + 1)?;
            if rest.len() > gap {
                rest.clear();
                set.set_state(&tx, &format!("rebuilding {last} {fingerprint}"))?;
            } else {
                fill(&tx, set, &self.deriver, &rest)?;
                set.set_state(&tx, &fingerprint)?;
            }
            tx.commit()?;
            Ok((page.len() + rest.len()) as u64)
        };
        let derived = step().map_err(at(&path))?;
        self.let_go(lock);
        Ok(derived)
    }

    /// The next items behind row `last`, `limit` at most, with what they give.
    fn derive_after(&self, set: IndexSet, last: i64, limit: usize) -> rusqlite::Result<Vec<One>> {
        // Contacts are nowhere in time.
        let least = if set == IndexSet::Time { Kind::Event } else { Kind::Contact } as i64;
        let mut select = self.conn.prepare_cached(
            "SELECT id, seq, collection FROM item WHERE id > ?1 AND kind >= ?3 ORDER BY id LIMIT ?2",
        )?;
        let heads = select
            .query_map((last, limit as i64, least), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?
            .collect::<rusqlite::Result<Vec<(i64, Seq, i64)>>>()?;
        let mut derivers = Derivers::new(&self.deriver);
        let derive = |(id, seq, collection)| {
            let summary = Arc::clone(derivers.of(&self.conn, collection)?.summary());
            let entry = match set {
                // It is worked out when it is written: others may change what it depends on.
                IndexSet::Time => None,
                _ => {
                    let stored = derivers.read(&self.conn, id)?;
                    stored.map(|stored| derivers.entry(&self.conn, &stored)).transpose()?
                }
            };
            Ok(One { id, seq, summary, entry: entry.unwrap_or_default() })
        };
        heads.into_iter().map(derive).collect()
    }
}

/// What an item gives, as long as it was last changed by this batch and its collection has this summary.
struct One {
    id: i64,
    seq: Seq,
    summary: Arc<Summary>,
    entry: Entry,
}

/// Takes away what nobody can use, so that nothing of it is left behind: sets that another program has filled, or
/// that a rebuild is yet to begin with.
pub(crate) fn empty_unusable(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<()> {
    for set in IndexSet::ALL {
        let state = set.state(conn)?.unwrap_or_default();
        let fingerprint = set.fingerprint(deriver);
        if state != fingerprint && progress(&state, &fingerprint).is_none() {
            set.empty(conn)?;
        }
    }
    Ok(())
}

/// How far the rebuild with this fingerprint has come; `None` where it has to begin.
pub(crate) fn progress(state: &str, fingerprint: &str) -> Option<i64> {
    let (last, found) = state.strip_prefix("rebuilding ")?.split_once(' ')?;
    if found == fingerprint { last.parse().ok() } else { None }
}

fn fill(
    tx: &Transaction<'_>,
    set: IndexSet,
    deriver: &Deriver,
    page: &[One],
) -> rusqlite::Result<()> {
    let (mut gathered, mut derivers) = (Gathered::default(), Derivers::new(deriver));
    let mut writer = span::Writer::new(tx, deriver);
    for One { id, seq, summary, entry } in page {
        let now: Option<(Seq, i64)> = tx
            .prepare_cached("SELECT seq, collection FROM item WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((now, collection)) = now else { continue };
        if set == IndexSet::Time {
            // What it is in time depends on others of its UID.
            let times = series::of_item(tx, &mut derivers, *id)?;
            writer.put(collection, *id, times.as_ref(), false)?;
            continue;
        }
        let entry = if now == *seq && derivers.of(tx, collection)?.is_of(summary) {
            entry.clone()
        } else {
            match derivers.read(tx, *id)? {
                Some(stored) => derivers.entry(tx, &stored)?,
                None => continue,
            }
        };
        if set == IndexSet::Text {
            // Before 1.2 an item of another one's UID was not told from one without any.
            tx.prepare_cached(
                "UPDATE item SET kept = ?2,
                     derived_uid = iif(derived_uid > 0 AND ?3, 2, derived_uid) WHERE id = ?1",
            )?
            .execute((id, &entry.kept, entry.names_uid))?;
        }
        gathered.put(*id, terms_of(set, entry, collection));
    }
    match set {
        IndexSet::Time => writer.finish(),
        IndexSet::Text | IndexSet::Sort => gathered.write(tx, set, meta(tx, "seq")?),
    }
}

/// The terms of one set that an item of this collection gives.
fn terms_of(set: IndexSet, entry: Entry, collection: i64) -> Terms {
    match set {
        IndexSet::Text => entry.terms,
        IndexSet::Sort => {
            let place =
                |(field, key): (u16, Vec<u8>)| term::sort(field, collection, &key, Sign::In);
            Terms::new(entry.sort.into_iter().map(place).collect(), Vec::new(), false)
        }
        IndexSet::Time => Terms::default(),
    }
}

/// A number that does not depend on the order of rows: two tables with the same rows have the same digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Digest {
    /// How many rows.
    pub(crate) rows: u64,
    sum: u64,
}

impl Digest {
    pub(crate) fn add(&mut self, row: impl std::hash::Hash) {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

/// What tells kept values from terms in a digest.
const KEPT: &str = "kept";

/// A digest of what the index holds of a set; the kept values go with the first one.
pub(crate) fn stored_digest(conn: &Connection, set: IndexSet) -> rusqlite::Result<Digest> {
    let mut digest = Digest::default();
    if set == IndexSet::Time {
        span::each_row(conn, &mut |row| digest.add(row))?;
        return Ok(digest);
    }
    let mut live: HashSet<i64> = HashSet::new();
    let mut select = conn.prepare("SELECT id, kept FROM item")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let item = row.get(0)?;
        live.insert(item);
        if set == IndexSet::Text {
            digest.add((KEPT, item, row.get_ref(1)?.as_blob_or_null()?));
        }
    }
    let live = |item| live.contains(&item);
    index::each(conn, set, &live, &mut |term, item| digest.add((term, item)))?;
    Ok(digest)
}

/// Digests of what the index should hold, from the source bytes: of each set, in the order of [`IndexSet::ALL`].
pub(crate) fn expected_digests(
    conn: &Connection,
    deriver: &Deriver,
) -> rusqlite::Result<[Digest; 3]> {
    let (mut digests, mut derivers) = ([Digest::default(); 3], Derivers::new(deriver));
    let mut select = conn.prepare("SELECT id, collection FROM item ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (item, collection): (i64, i64) = (row.get(0)?, row.get(1)?);
        let stored = derivers.read(conn, item)?;
        let entry = stored.map(|stored| derivers.entry(conn, &stored)).transpose()?;
        let entry = entry.unwrap_or_default();
        let times = series::of_item(conn, &mut derivers, item)?;
        span::rows_of(collection, item, times.as_ref(), &mut |row| digests[2].add(row));
        digests[0].add((KEPT, item, entry.kept.as_deref()));
        for (set, digest) in IndexSet::ALL.into_iter().zip(&mut digests) {
            terms_of(set, entry.clone(), collection).each(&mut |term| digest.add((term, item)));
        }
    }
    Ok(digests)
}

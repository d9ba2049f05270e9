//! Derived data: what a batch writes of it, rebuilding a set in steps, digesting what is there.
//!
//! Everything here can be made again from `source`. A set is usable when `meta` holds the
//! fingerprint that this program would fill it with; while it is being refilled `meta` says how far
//! that has come.

use crate::error::{Result, RowResult, sqlite_error_at};
use crate::extractor_cache::ExtractorCache;
use crate::history;
use crate::index_pages::IndexPages;
use crate::interval_table;
use crate::meta::{MetaTable, read_meta_number};
use crate::series::{self, ItemLocation};
use crate::store::Store;
use crate::write_transaction::WriteTransaction;
use crate::{Kind, Seq};
use larder_extract::{
    ExtractedTerms, Extractor, IndexConfig, IndexEntry, ParsedSchedule, SeriesMember, SortKeys,
    term,
};
use larder_index::{IndexId, SegmentBuffer, SortOp, TermSet, UnpackTerm, sort_term};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::mem;
use std::sync::Arc;

/// Items re-derived in one transaction of a rebuild: short enough to let others in between.
const REBUILD_STEP_ITEMS: usize = 500;
/// So few items may be derived under the lock, to end a rebuild.
const MAX_TAIL_ITEMS: usize = 50;
/// Bytes of the index that are merged in one transaction.
const MERGE_STEP_BYTES: i64 = 2 << 20;
/// The packed form of terms.
const UNPACK_TERM: UnpackTerm = term::unpack_term;

/// Terms that share a fingerprint, and are rebuilt together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedIndex {
    /// Terms that items are found by: depends on how text is folded.
    Text = 1,
    /// Terms that items are sorted by: depends on the locale, too.
    Sort = 2,
    /// What items are in time: depends on the time zones, too.
    Schedule = 3,
}

impl DerivedIndex {
    pub(crate) const ALL: [DerivedIndex; 3] =
        [DerivedIndex::Text, DerivedIndex::Sort, DerivedIndex::Schedule];

    /// The sets that are inverted indexes.
    const INVERTED: [DerivedIndex; 2] = [DerivedIndex::Text, DerivedIndex::Sort];

    /// Its name, as messages have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DerivedIndex::Text => "text",
            DerivedIndex::Sort => "sort",
            DerivedIndex::Schedule => "time",
        }
    }

    fn meta_key(self) -> &'static str {
        match self {
            DerivedIndex::Text => "fingerprint:text",
            DerivedIndex::Sort => "fingerprint:sort",
            DerivedIndex::Schedule => "fingerprint:schedule",
        }
    }

    fn fingerprint(self, deriver: &Extractor) -> String {
        match self {
            DerivedIndex::Text => deriver.text_fingerprint(),
            DerivedIndex::Sort => deriver.sort_fingerprint(),
            DerivedIndex::Schedule => deriver.time_fingerprint(),
        }
    }

    fn read_state(self, conn: &Connection) -> rusqlite::Result<Option<String>> {
        conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?
            .query_row([self.meta_key()], |row| row.get(0))
            .optional()
    }

    fn write_state(self, conn: &Connection, state: &str) -> rusqlite::Result<()> {
        // While it is not whole, former versions are kept without their times.
        if self == DerivedIndex::Schedule {
            history::set_schedule_history_start(conn, None)?;
        }
        conn.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2)", (self.meta_key(), state))
            .map(drop)
    }

    /// Nothing of it is to be used from this transaction on, and nothing that it holds is to be
    /// kept.
    pub(crate) fn invalidate(self, conn: &Connection) -> rusqlite::Result<()> {
        self.write_state(conn, "empty")
    }

    /// Is it whole, and filled as this program would fill it?
    pub(crate) fn is_current(self, meta: &MetaTable, deriver: &Extractor) -> bool {
        meta.text(self.meta_key()) == self.fingerprint(deriver)
            && (self != DerivedIndex::Schedule
                || meta.text(interval_table::ZONE_DATA_VERSION_KEY)
                    == deriver.zone_database().data_version())
    }

    fn is_complete(self, conn: &Connection, deriver: &Extractor) -> rusqlite::Result<bool> {
        Ok(self.read_state(conn)?.as_deref() == Some(&self.fingerprint(deriver)))
    }

    /// Returns the number of its inverted index.
    pub(crate) fn index_id(self) -> IndexId {
        IndexId(self as i64)
    }

    /// Takes away all that it holds.
    fn clear(self, conn: &Connection) -> RowResult<()> {
        match self {
            DerivedIndex::Text | DerivedIndex::Sort => {
                larder_index::delete_all(&IndexPages::new(conn), self.index_id())
            }
            DerivedIndex::Schedule => Ok(interval_table::clear(conn)?),
        }
    }
}

/// Marks all sets of a new, empty store as whole.
pub(crate) fn mark_complete(conn: &Connection, deriver: &Extractor) -> rusqlite::Result<()> {
    for set in DerivedIndex::ALL {
        set.write_state(conn, &set.fingerprint(deriver))?;
    }
    interval_table::write_zone_data_version(conn, deriver)
}

/// Gives up the sets that another program, or another locale, has begun to fill since this store
/// was opened: with rows of this one's making among them they are nobody's. The next refresh fills
/// them anew.
pub(crate) fn invalidate_stale(
    conn: &Connection,
    deriver: &Extractor,
    meta: &MetaTable,
) -> rusqlite::Result<()> {
    for set in DerivedIndex::ALL {
        let (state, fingerprint) = (meta.text(set.meta_key()), set.fingerprint(deriver));
        let others = set == DerivedIndex::Schedule
            && meta.text(interval_table::ZONE_DATA_VERSION_KEY)
                != deriver.zone_database().data_version();
        if others || (state != fingerprint && rebuild_progress(state, &fingerprint).is_none()) {
            set.invalidate(conn)?;
        }
    }
    Ok(())
}

/// What a batch has to say to the index, gathered so that each set is written once.
pub(crate) struct IndexUpdates {
    text: SegmentBuffer,
    sort: BTreeMap<i64, SortUpdate>,
    schedules: BTreeMap<i64, ScheduleUpdate>,
    /// The last item that each set is to know: all, unless it is being rebuilt and comes to the
    /// others later.
    last_text_item: i64,
    last_sort_item: i64,
    last_schedule_item: i64,
}

/// An item of a calendar that the batch has changed.
struct ScheduleUpdate {
    location: ItemLocation,
    /// What it says of time from now on; `None`: it is gone.
    parsed_schedule: Option<Option<Box<ParsedSchedule>>>,
}

/// Where an item goes in the orders of a store, and where it was: terms.
#[derive(Default)]
struct SortUpdate {
    removed_terms: Vec<Vec<u8>>,
    inserted_terms: Vec<Vec<u8>>,
}

impl IndexUpdates {
    pub(crate) fn begin(deriver: &Extractor, meta: &MetaTable) -> IndexUpdates {
        let reach = |set: DerivedIndex| -> i64 {
            let (state, fingerprint) = (meta.text(set.meta_key()), set.fingerprint(deriver));
            let all = if state == fingerprint { i64::MAX } else { 0 };
            rebuild_progress(state, &fingerprint).unwrap_or(all)
        };
        IndexUpdates {
            text: SegmentBuffer::default(),
            sort: BTreeMap::new(),
            schedules: BTreeMap::new(),
            last_text_item: reach(DerivedIndex::Text),
            last_sort_item: reach(DerivedIndex::Sort),
            last_schedule_item: reach(DerivedIndex::Schedule),
        }
    }

    /// Was anything said of this item before?
    pub(crate) fn has_item(&self, item: i64) -> bool {
        self.sort.contains_key(&item)
    }

    /// An item of this collection has this entry from now on; `was` is what it was sorted by before
    /// the batch.
    pub(crate) fn put(&mut self, item: i64, whose: ItemLocation, was: SortKeys, entry: IndexEntry) {
        if item <= self.last_text_item {
            self.text.put(item, to_term_set(entry.terms));
        }
        self.put_sort_keys(item, whose.collection, was, entry.sort_keys);
        if whose.is_in_calendar {
            self.schedules.insert(
                item,
                ScheduleUpdate { location: whose, parsed_schedule: Some(entry.parsed_schedule) },
            );
        }
    }

    /// An item of this collection is gone; `was` is what it was sorted by before the batch.
    pub(crate) fn remove(&mut self, item: i64, whose: ItemLocation, was: SortKeys) {
        if item <= self.last_text_item {
            self.text.remove(item);
        }
        self.put_sort_keys(item, whose.collection, was, SortKeys::new());
        if whose.is_in_calendar {
            self.schedules.insert(item, ScheduleUpdate { location: whose, parsed_schedule: None });
        }
    }

    fn put_sort_keys(&mut self, item: i64, collection: i64, was: SortKeys, is: SortKeys) {
        let terms = |keys: SortKeys, sign| -> Vec<Vec<u8>> {
            keys.into_iter().map(|(field, key)| sort_term(field, collection, &key, sign)).collect()
        };
        let placed = self.sort.entry(item).or_insert_with(|| SortUpdate {
            removed_terms: terms(was, SortOp::Remove),
            inserted_terms: Vec::new(),
        });
        placed.inserted_terms = terms(is, SortOp::Insert);
    }

    /// Writes everything, as of the batch `seq`.
    pub(crate) fn write(
        &mut self,
        tx: &WriteTransaction<'_>,
        derivers: &mut ExtractorCache<'_>,
        seq: Seq,
    ) -> RowResult<()> {
        self.write_schedules(tx, derivers, seq)?;
        let pages = IndexPages::new(tx);
        let text = mem::take(&mut self.text);
        text.flush(&pages, DerivedIndex::Text.index_id(), seq, UNPACK_TERM)?;
        let mut sort = SegmentBuffer::default();
        for (item, SortUpdate { removed_terms: was, inserted_terms: mut is }) in
            mem::take(&mut self.sort)
        {
            // Of what was in no order, and is in none, there is nothing to say.
            if item <= self.last_sort_item && !(was.is_empty() && is.is_empty()) {
                is.extend(was);
                sort.put(item, TermSet::new(is, Vec::new(), false));
            }
        }
        sort.flush(&pages, DerivedIndex::Sort.index_id(), seq, UNPACK_TERM)
    }

    /// What a detached occurrence says is also of its series, and the other way round, so whatever
    /// has the UID of a changed item is looked at together, once.
    fn write_schedules(
        &mut self,
        tx: &WriteTransaction<'_>,
        derivers: &mut ExtractorCache<'_>,
        seq: Seq,
    ) -> rusqlite::Result<()> {
        let mut writer = interval_table::IntervalWriter::new(tx, derivers.base());
        let mut changed: BTreeMap<(i64, String), Vec<SeriesMember>> = BTreeMap::new();
        let (mut new, mut own) = (HashSet::new(), HashSet::new());
        for (item, ScheduleUpdate { location: whose, parsed_schedule: is }) in
            mem::take(&mut self.schedules)
        {
            own.insert(item);
            if whose.is_new {
                new.insert(item);
            }
            let ItemLocation { collection, uid, recurrence_id: recurrence, .. } = whose;
            let Some(timing) = is else {
                interval_table::delete_item(tx, derivers.base(), collection, item)?;
                changed.entry((collection, uid)).or_default();
                continue;
            };
            let member = SeriesMember {
                row: item,
                recurrence_id: recurrence,
                parsed_schedule: timing,
                is_changed: true,
            };
            changed.entry((collection, uid)).or_default().push(member);
        }
        for ((collection, uid), members) in changed {
            let times = series::compute_schedules(tx, derivers, collection, &uid, members)?;
            for (item, times) in
                times.into_iter().filter(|(item, _)| *item <= self.last_schedule_item)
            {
                // What the item itself was is in `former`.
                if !own.contains(&item) {
                    history::log_schedule(tx, seq, item)?;
                }
                writer.put(collection, item, times.as_ref(), new.contains(&item))?;
            }
        }
        writer.finish()
    }
}

impl Store {
    /// Is this set whole and of this program's making? Where it is not, queries scan.
    pub fn is_index_current(&self, set: DerivedIndex) -> Result<bool> {
        let meta = MetaTable::read(&self.conn).map_err(sqlite_error_at(&self.path))?;
        Ok(set.is_current(&meta, &self.extractor))
    }

    /// Merges what a large job left in many segments, in steps that let other writers in between,
    /// so that readers have few to look into.
    pub fn merge_segments(&mut self) -> Result<()> {
        self.ensure_writable()?;
        loop {
            let lock = self.lock_files.acquire()?;
            self.verify_before_write(&lock)?;
            let step = || -> RowResult<bool> {
                let tx = WriteTransaction::begin(&self.conn)?;
                let more = compact_segments_step(&tx)?;
                tx.commit()?;
                Ok(more)
            };
            let more = step().map_err(sqlite_error_at(&self.path))?;
            self.release_and_checkpoint(lock);
            if !more {
                return Ok(());
            }
        }
    }

    /// Refills the sets that another version, locale or summary made, or that a rebuild left
    /// unfinished, in steps that let other writers in between. Returns how many items were derived
    /// again.
    pub fn refresh(&mut self) -> Result<u64> {
        let mut derived = 0;
        while let Some(more) = self.refresh_step(REBUILD_STEP_ITEMS)? {
            derived += more;
        }
        if derived > 0 {
            self.merge_segments()?;
        }
        Ok(derived)
    }

    /// One step of a refresh, of so many items: the lock is taken and let go. Returns how many were
    /// derived again; `None`: all sets are whole.
    pub fn refresh_step(&mut self, items: usize) -> Result<Option<u64>> {
        for set in DerivedIndex::ALL {
            if !set.is_complete(&self.conn, &self.extractor).map_err(sqlite_error_at(&self.path))? {
                return self.rebuild_step(set, items).map(Some);
            }
        }
        self.update_zones_step(items)
    }

    /// Drops and refills all derived tables.
    pub fn rebuild(&mut self) -> Result<u64> {
        self.ensure_writable()?;
        {
            let lock = self.lock_files.acquire()?;
            self.verify_before_write(&lock)?;
            let tx = WriteTransaction::begin(&self.conn).map_err(sqlite_error_at(&self.path))?;
            for set in DerivedIndex::ALL {
                set.invalidate(&tx).map_err(sqlite_error_at(&self.path))?;
            }
            tx.commit().map_err(sqlite_error_at(&self.path))?;
        }
        self.refresh()
    }

    /// Derives the next items of a set anew. Parsing is done before the lock is taken, but for what
    /// items are in time; an item that changed in between is derived again under it.
    fn rebuild_step(&mut self, set: DerivedIndex, items: usize) -> Result<u64> {
        self.ensure_writable()?;
        let path = self.path.clone();
        let fingerprint = set.fingerprint(&self.extractor);
        let epoch = history::read_epoch(&self.conn).map_err(sqlite_error_at(&path))?;
        let state = set.read_state(&self.conn).map_err(sqlite_error_at(&path))?.unwrap_or_default();
        let last = rebuild_progress(&state, &fingerprint);
        let page = match last {
            Some(last) => self.extract_page(set, last, items).map_err(sqlite_error_at(&path))?,
            None => Vec::new(),
        };
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        let step = || -> RowResult<u64> {
            let tx = WriteTransaction::begin(&self.conn)?;
            if set.read_state(&tx)?.unwrap_or_default() != state
                || history::read_epoch(&tx)? != epoch
            {
                return Ok(0); // Somebody else made a step, or restored the store: look again.
            }
            let Some(last) = last else {
                set.clear(&tx)?;
                set.write_state(&tx, &format!("rebuilding 0 {fingerprint}"))?;
                if set == DerivedIndex::Schedule {
                    interval_table::write_zone_data_version(&tx, &self.extractor)?;
                }
                tx.commit()?;
                return Ok(0);
            };
            index_page(&tx, set, &self.extractor, &page)?;
            // What came while this waited for the lock was left to the rebuild. A few are derived
            // under it: who writes all the time would keep the rebuild from ever ending.
            let last = page.last().map_or(last, |one| one.id);
            let gap = MAX_TAIL_ITEMS.min(items);
            let mut rest = self.extract_page(set, last, gap + 1)?;
            if rest.len() > gap {
                rest.clear();
                set.write_state(&tx, &format!("rebuilding {last} {fingerprint}"))?;
            } else {
                index_page(&tx, set, &self.extractor, &rest)?;
                set.write_state(&tx, &fingerprint)?;
            }
            tx.commit()?;
            Ok((page.len() + rest.len()) as u64)
        };
        let derived = step().map_err(sqlite_error_at(&path))?;
        self.release_and_checkpoint(lock);
        Ok(derived)
    }

    /// The next items behind row `last`, `limit` at most, with what they give.
    fn extract_page(
        &self,
        set: DerivedIndex,
        last: i64,
        limit: usize,
    ) -> rusqlite::Result<Vec<ExtractedItem>> {
        let is_in_index = |kind: Kind| set != DerivedIndex::Schedule || kind.has_schedule();
        let sql = format!(
            "SELECT id, seq, collection FROM item WHERE id > ?1 AND kind IN ({})
             ORDER BY id LIMIT ?2",
            Kind::numbers_where(is_in_index)
        );
        let mut select = self.conn.prepare_cached(&sql)?;
        let heads = select
            .query_map((last, limit as i64), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(i64, Seq, i64)>>>()?;
        let mut derivers = ExtractorCache::new(&self.extractor);
        let derive = |(id, seq, collection)| {
            let summary =
                Arc::clone(derivers.for_collection(&self.conn, collection)?.index_config());
            let entry = match set {
                // It is worked out when it is written: others may change what it depends on.
                DerivedIndex::Schedule => None,
                _ => {
                    let stored = derivers.read_item(&self.conn, id)?;
                    stored.map(|stored| derivers.extract(&self.conn, &stored)).transpose()?
                }
            };
            Ok(ExtractedItem { id, seq, index_config: summary, entry: entry.unwrap_or_default() })
        };
        heads.into_iter().map(derive).collect()
    }
}

/// What an item gives, as long as it was last changed by this batch and its collection has this
/// summary.
struct ExtractedItem {
    id: i64,
    seq: Seq,
    index_config: Arc<IndexConfig>,
    entry: IndexEntry,
}

/// Moves [`MERGE_STEP_BYTES`] of one of the inverted indexes towards fewer segments. Returns
/// whether any of them had something to merge.
fn compact_segments_step(tx: &WriteTransaction<'_>) -> RowResult<bool> {
    for set in DerivedIndex::INVERTED {
        if larder_index::compact_step(&IndexPages::new(tx), set.index_id(), MERGE_STEP_BYTES)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Merges each inverted index into one segment, without the terms of items that are gone.
pub(crate) fn merge_all_segments(tx: &WriteTransaction<'_>) -> RowResult<()> {
    DerivedIndex::INVERTED
        .into_iter()
        .try_for_each(|set| larder_index::merge_all(&IndexPages::new(tx), set.index_id()))
}

/// Takes away what nobody can use, so that nothing of it is left behind: sets that another program
/// has filled, or that a rebuild is yet to begin with.
pub(crate) fn clear_stale(conn: &Connection, deriver: &Extractor) -> RowResult<()> {
    for set in DerivedIndex::ALL {
        let state = set.read_state(conn)?.unwrap_or_default();
        let fingerprint = set.fingerprint(deriver);
        if state != fingerprint && rebuild_progress(&state, &fingerprint).is_none() {
            set.clear(conn)?;
        }
    }
    Ok(())
}

/// How far the rebuild with this fingerprint has come; `None` where it has to begin.
pub(crate) fn rebuild_progress(state: &str, fingerprint: &str) -> Option<i64> {
    let (last, found) = state.strip_prefix("rebuilding ")?.split_once(' ')?;
    if found == fingerprint { last.parse().ok() } else { None }
}

fn index_page(
    tx: &WriteTransaction<'_>,
    set: DerivedIndex,
    deriver: &Extractor,
    page: &[ExtractedItem],
) -> RowResult<()> {
    let (mut gathered, mut derivers) = (SegmentBuffer::default(), ExtractorCache::new(deriver));
    let mut writer = interval_table::IntervalWriter::new(tx, deriver);
    for ExtractedItem { id, seq, index_config: summary, entry } in page {
        let now: Option<(Seq, i64)> = tx
            .prepare_cached("SELECT seq, collection FROM item WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((now, collection)) = now else { continue };
        if set == DerivedIndex::Schedule {
            // What it is in time depends on others of its UID.
            let times = series::compute_schedule(tx, &mut derivers, *id)?;
            writer.put(collection, *id, times.as_ref(), false)?;
            continue;
        }
        let entry =
            if now == *seq && derivers.for_collection(tx, collection)?.has_index_config(summary) {
                entry.clone()
            } else {
                match derivers.read_item(tx, *id)? {
                    Some(stored) => derivers.extract(tx, &stored)?,
                    None => continue,
                }
            };
        if set == DerivedIndex::Text {
            // Before 1.2 an item of another one's UID was not told from one without any.
            tx.prepare_cached(
                "UPDATE item SET stored_fields = ?2,
                     uid_origin = iif(uid_origin > 0 AND ?3, 2, uid_origin) WHERE id = ?1",
            )?
            .execute((id, &entry.stored_fields, entry.has_uid))?;
        }
        gathered.put(*id, terms_in_index(set, entry, collection));
    }
    match set {
        DerivedIndex::Schedule => writer.finish()?,
        DerivedIndex::Text | DerivedIndex::Sort => {
            let seq = read_meta_number(tx, "last_seq")?;
            gathered.flush(&IndexPages::new(tx), set.index_id(), seq, UNPACK_TERM)?;
        }
    }
    Ok(())
}

/// Returns the terms of an item as the index takes them, without a copy.
fn to_term_set(terms: ExtractedTerms) -> TermSet {
    TermSet::from_encoded(terms.encoded_terms, terms.packed_terms, terms.is_oversized)
}

/// The terms of one set that an item of this collection gives.
fn terms_in_index(set: DerivedIndex, entry: IndexEntry, collection: i64) -> TermSet {
    match set {
        DerivedIndex::Text => to_term_set(entry.terms),
        DerivedIndex::Sort => {
            let place =
                |(field, key): (u16, Vec<u8>)| sort_term(field, collection, &key, SortOp::Insert);
            TermSet::new(entry.sort_keys.into_iter().map(place).collect(), Vec::new(), false)
        }
        DerivedIndex::Schedule => TermSet::default(),
    }
}

/// A number that does not depend on the order of rows: two tables with the same rows have the same
/// digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TableDigest {
    /// How many rows.
    pub(crate) rows: u64,
    sum: u64,
}

impl TableDigest {
    pub(crate) fn add(&mut self, row: impl std::hash::Hash) {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

/// What tells kept values from terms in a digest.
const STORED_FIELDS_TAG: &str = "kept";

/// A digest of what the index holds of a set; the kept values go with the first one.
pub(crate) fn stored_digest(conn: &Connection, set: DerivedIndex) -> RowResult<TableDigest> {
    let mut digest = TableDigest::default();
    if set == DerivedIndex::Schedule {
        interval_table::for_each_record(conn, &mut |row| digest.add(row))?;
        return Ok(digest);
    }
    let mut live: HashSet<i64> = HashSet::new();
    let mut select = conn.prepare("SELECT id, stored_fields FROM item")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let item = row.get(0)?;
        live.insert(item);
        if set == DerivedIndex::Text {
            digest.add((STORED_FIELDS_TAG, item, row.get_ref(1)?.as_blob_or_null()?));
        }
    }
    let live = |item| live.contains(&item);
    let pages = IndexPages::new(conn);
    larder_index::for_each_posting(&pages, set.index_id(), &live, &mut |term, item| {
        digest.add((term, item));
    })?;
    Ok(digest)
}

/// Digests of what the index should hold, from the source bytes: of each set, in the order of
/// [`DerivedIndex::ALL`].
pub(crate) fn expected_digests(
    conn: &Connection,
    deriver: &Extractor,
) -> rusqlite::Result<[TableDigest; 3]> {
    let (mut digests, mut derivers) = ([TableDigest::default(); 3], ExtractorCache::new(deriver));
    let mut select = conn.prepare("SELECT id, collection FROM item ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (item, collection): (i64, i64) = (row.get(0)?, row.get(1)?);
        let stored = derivers.read_item(conn, item)?;
        let entry = stored.map(|stored| derivers.extract(conn, &stored)).transpose()?;
        let entry = entry.unwrap_or_default();
        let times = series::compute_schedule(conn, &mut derivers, item)?;
        interval_table::for_each_expected_record(collection, item, times.as_ref(), &mut |row| {
            digests[2].add(row);
        });
        digests[0].add((STORED_FIELDS_TAG, item, entry.stored_fields.as_deref()));
        for (set, digest) in DerivedIndex::ALL.into_iter().zip(&mut digests) {
            terms_in_index(set, entry.clone(), collection)
                .for_each(UNPACK_TERM, &mut |term| digest.add((term, item)));
        }
    }
    Ok(digests)
}

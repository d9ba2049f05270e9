//! Salvage: copies everything that can be read of a damaged store into a new one.
//!
//! Reads the pages of the file without SQLite, which stops at the first damaged page and does not
//! open a file without its first one. The rows of the tables of truth are copied; everything
//! derived is filled again by the restore. A row is found through its tree or, if a page above it
//! is damaged, in a page that no tree leads to. `repair` makes the rows consistent and says which
//! are missing. Separate from `backup`, which copies whole stores only.

mod btree;
mod changed_item;
mod changed_rows;
mod handle_repair;
mod loss;
mod lost_contexts;
mod page_file;
mod readable_file;
mod repair;
mod row_count;
mod table_spec;

use crate::Seq;
use crate::check::{CheckReport, Fault};
use crate::commit_record::{CommittedState, read_record};
use crate::connection::WriteConnection;
use crate::data_directory::{DataDirectory, StoreFile};
use crate::database_copy::{create_for_stream, create_staging, verify_content};
use crate::error::{DatabaseResult, OutputError, Result, file_error_at, sqlite_error_at};
use crate::handle::Handle;
use crate::interrupted_restore;
use crate::lock::LockFiles;
use crate::meta::EPOCH_KEY;
use crate::output_file::{FilePrivacy, OutputFile, OutputTarget};
use crate::page_layout::PageNumber;
use crate::read_access::{is_forbidden, is_unwritable, lock_out_writers};
use crate::row_ids::{CollectionRow, ItemHistoryRow, ItemRow};
use crate::schema;
use crate::store::{Store, StoreOptions};
use crate::write_transaction::WriteTransaction;
use btree::{BtreeReader, Record, TreeRoot};
use larder_extract::Extractor;
pub use loss::SalvageLoss;
use page_file::PageFile;
pub use readable_file::UnreadableParts;
use repair::Repair;
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use table_spec::{INDEXES, TABLES, TableSpec};
use xxhash_rust::xxh3::xxh3_64;

/// The result of a salvage.
#[derive(Debug, Clone, Default)]
pub struct SalvageReport {
    /// The number of items in the new store.
    pub items: u64,
    /// The number of former versions in it.
    pub versions: u64,
    /// The data that could not be read; empty: the new store has all data.
    pub losses: Vec<SalvageLoss>,
    /// The parts of the files that the disk failed to read, even if nothing is lost.
    pub unreadable_parts: Vec<UnreadableParts>,
    /// Whether a page of a table of truth is damaged, even if nothing is lost.
    pub has_damaged_tables: bool,
}

/// The entries of SQLite's own indexes of `item`, `collection` and `item_history`: they name rows
/// that could not be read.
#[derive(Default)]
struct IndexEntries {
    /// The indexes of which all entries were read.
    whole: BTreeSet<&'static str>,
    items: BTreeSet<ItemRow>,
    /// The batches that last changed items, and the places of the items in them.
    item_places: BTreeMap<ItemRow, (i64, i64)>,
    /// The batches that replaced former versions.
    versions: BTreeMap<ItemHistoryRow, Seq>,
    item_handles: BTreeMap<ItemRow, Handle>,
    item_collections: BTreeMap<ItemRow, CollectionRow>,
    collection_names: BTreeMap<CollectionRow, String>,
    handle_keys: BTreeMap<CollectionRow, Vec<u8>>,
}

impl DataDirectory {
    /// Writes everything that can be read of the store into a new file `to`, which can be restored
    /// like a backup. The store is not changed.
    ///
    /// # Errors
    /// [`Error::Output`](crate::Error::Output) if `to` exists already or cannot be written, and
    /// [`Error::File`](crate::Error::File) if the database file cannot be opened.
    pub fn salvage(
        &self,
        options: &StoreOptions,
        to: impl Into<OutputTarget>,
    ) -> Result<SalvageReport> {
        let to = to.into();
        if let OutputTarget::Path(path) = &to
            && path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_symlink())
        {
            let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(OutputError::File { path: path.clone(), source }.into());
        }
        self.ensure_store_exists()?;
        let locks = match LockFiles::open(self, options.requester.clone()) {
            Err(error) if is_unwritable(self.path(), &error) || is_forbidden(&error) => None,
            locks => Some(locks?),
        };
        let _lock = locks.as_ref().map(LockFiles::acquire).transpose()?;
        let _shared_lock = locks.is_none().then(|| lock_out_writers(self)).transpose()?;
        let source = SalvageSource::open(self)?;
        let mut output = OutputFile::create(self, &to, FilePrivacy::Private)?;
        if let Some(staged) = output.staged_path() {
            output.refuse_foreign_log()?;
            let report = write_salvaged(&source, options, staged)?;
            output.commit()?;
            return Ok(report);
        }
        let prefix = self.staging_prefix("salvage");
        let (staged, report) = create_for_stream(self, &to, |folder| {
            let staged = create_staging(folder, &prefix)?;
            let report = write_salvaged(&source, options, staged.path())?;
            Ok((staged, report))
        })?;
        let written = std::io::copy(&mut staged.file(), &mut output);
        written.map_err(|error| output.to_error(error))?;
        Ok(report)
    }
}

impl DataDirectory {
    /// Rebuilds all indexes, then verifies the store, like [`Store::rebuild_and_check`]. If pages
    /// of derived data are damaged, everything else is copied into a new file, which replaces the
    /// store; the damaged file is kept. If other pages are damaged too, the store is not changed.
    pub fn rebuild_and_check(&self, options: &StoreOptions) -> Result<CheckReport> {
        let rebuilt = Store::open(self, options).and_then(|mut store| store.rebuild_and_check());
        let faults = match &rebuilt {
            Ok(report) if report.has_damaged_pages() => report.faults.clone(),
            Err(error) if error.damaged_file() == Some(&self.database_path()) => {
                vec![Fault::Page(error.to_string())]
            }
            _ => return rebuilt,
        };
        let Some(damaged_copy) = self.rewrite_database(options)? else { return rebuilt };
        let store = Store::open(self, options)?;
        let mut report = store.check()?;
        report.rebuilt_items = report.items;
        report.faults.extend(faults);
        report.damaged_copy = Some(damaged_copy);
        Ok(report)
    }

    /// Replaces the database by a new file with the same rows, and returns the name that the old
    /// file gets. `None`: a page of a table of truth is damaged, and nothing was changed. Salvage
    /// makes some rows again from others, but then only it says what such rows no longer have.
    fn rewrite_database(&self, options: &StoreOptions) -> Result<Option<PathBuf>> {
        let locks = LockFiles::open(self, options.requester.clone())?;
        let lock = locks.acquire()?;
        let source = SalvageSource::open(self)?;
        let staged = create_staging(self.path(), &self.staging_prefix("rebuild"))?;
        let report = write_salvaged(&source, options, staged.path())?;
        if report.has_damaged_tables || !report.losses.is_empty() {
            return Ok(None);
        }
        let damaged_copy = interrupted_restore::replace_database(self, &locks, staged)?;
        lock.mark_clean();
        Ok(damaged_copy)
    }
}

/// The files of a damaged store.
struct SalvageSource {
    /// The record of the last commit, which is read before the pages.
    record: Vec<CommittedState>,
    pages: PageFile,
}

impl SalvageSource {
    fn open(directory: &DataDirectory) -> Result<SalvageSource> {
        let record = read_record(directory);
        let path = directory.database_path();
        let pages = PageFile::open(&path, &directory.wal_path()).map_err(file_error_at(&path))?;
        Ok(SalvageSource { record, pages })
    }

    /// Returns the batches that were committed, and that the pages do not have.
    fn find_missing_batches(&self, copied: &CopiedRows) -> Option<SalvageLoss> {
        let unknown = SalvageLoss::Unknown { objects: "committed batches" };
        let is_same = |state: &&CommittedState| {
            copied.epoch.as_ref().is_none_or(|epoch| *epoch == state.epoch)
        };
        match self.record.iter().filter(is_same).map(|state| state.seq).min() {
            Some(seq) => {
                let batches = seq.saturating_sub(copied.last_seq?);
                (batches > 0).then(|| SalvageLoss::Batches { batches: batches.unsigned_abs() })
            }
            // Another program replaced the store.
            None if !self.record.is_empty() => Some(unknown),
            None => self.pages.has_cut_log.then_some(unknown),
        }
    }
}

/// Writes a new store with the rows that can be read into an empty staging file, and verifies it.
fn write_salvaged(
    source: &SalvageSource,
    options: &StoreOptions,
    path: &Path,
) -> Result<SalvageReport> {
    let conn = WriteConnection::open_staging(path).map_err(sqlite_error_at(path))?;
    let locale = options.locale.as_deref().or(options.locale_if_new.as_deref());
    let locale = locale.unwrap_or("und");
    let extractor = Extractor::with_zones(locale, options.zones.clone());
    let write = || -> DatabaseResult<SalvageReport> {
        let tx = conn.begin_write()?;
        schema::create_tables(&tx, StoreFile::Data, locale)?;
        let copied = copy_rows(&source.pages, &tx)?;
        let mut report = Repair::new(&tx, &extractor, &copied).run()?;
        report.losses.extend(source.find_missing_batches(&copied));
        report.unreadable_parts = source.pages.unreadable_parts();
        tx.commit()?;
        Ok(report)
    };
    let report = write().map_err(sqlite_error_at(path))?;
    verify_content(&conn, path)?;
    Ok(report)
}

/// The rows that were copied: the tables of which rows may be missing, the number of rows that the
/// trees of the others have, and the entries of indexes.
#[derive(Default)]
struct CopiedRows {
    damaged_tables: BTreeSet<&'static str>,
    row_counts: BTreeMap<&'static str, u64>,
    entries: IndexEntries,
    /// The number of the last batch and the epoch of the store, if they could be read.
    last_seq: Option<Seq>,
    epoch: Option<String>,
}

/// The number of rows of a tree, and a digest of their row ids, which does not depend on their
/// order.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct RowDigest {
    count: u64,
    sum: u64,
}

impl RowDigest {
    fn add(&mut self, row_id: i64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(xxh3_64(&row_id.to_le_bytes()));
    }
}

fn copy_rows(pages: &PageFile, tx: &WriteTransaction<'_>) -> DatabaseResult<CopiedRows> {
    let mut reader = BtreeReader::new(pages);
    let mut copied = CopiedRows::default();
    let roots = read_roots(&mut reader)?;
    let mut digests: BTreeMap<&str, RowDigest> = BTreeMap::new();
    for table in TABLES {
        let mut digest = RowDigest::default();
        let is_whole = match roots.get(table.name) {
            Some(root) => {
                let root = TreeRoot { page: *root, is_table: table.has_row_ids };
                copy_tree(&mut reader, tx, table, root, &mut digest, &mut copied)?
            }
            None => false,
        };
        copied.row_counts.insert(table.name, digest.count);
        digests.insert(table.name, digest);
        if !is_whole {
            copied.damaged_tables.insert(table.name);
        }
    }
    for (index, table) in INDEXES {
        let Some(page) = roots.get(*index) else { continue };
        let mut digest = RowDigest::default();
        let root = TreeRoot { page: *page, is_table: false };
        let is_whole = reader.for_each_record(root, &mut |record| {
            let row = record.values.last();
            let row = if let Some(Value::Integer(row)) = row { Some(*row) } else { None };
            row.inspect(|row| digest.add(*row));
            Ok(row.is_some())
        })?;
        // An index that could be read completely names all rows of its table.
        if is_whole && digests.get(table) != Some(&digest) {
            copied.damaged_tables.insert(table);
        }
    }
    copied.damaged_tables.extend(find_incomplete_tables(tx)?);
    if !copied.damaged_tables.is_empty() {
        read_index_entries(&mut reader, &roots, &mut copied.entries)?;
        copy_stray_rows(&mut reader, tx, &copied.damaged_tables)?;
    }
    Ok(copied)
}

/// Reads the roots of the tables of truth and of the indexes, by name. The name of a table is in
/// its row more than once.
fn read_roots(reader: &mut BtreeReader<'_>) -> rusqlite::Result<BTreeMap<String, PageNumber>> {
    let mut roots: BTreeMap<String, PageNumber> = BTreeMap::new();
    let schema = TreeRoot { page: 1, is_table: true };
    reader.for_each_record(schema, &mut |record| {
        let [Value::Text(kind), Value::Text(name), Value::Text(table), Value::Integer(root), _] =
            record.values.as_slice()
        else {
            return Ok(true);
        };
        let is_known = |name: &str| TABLES.iter().any(|table| table.name == name);
        let name = if kind == "table" && !is_known(name) && is_known(table) { table } else { name };
        if let Ok(root) = PageNumber::try_from(*root) {
            roots.entry(name.clone()).or_insert(root);
        }
        Ok(true)
    })?;
    Ok(roots)
}

/// Returns the tables that have no row for one that another table names.
fn find_incomplete_tables(tx: &WriteTransaction<'_>) -> rusqlite::Result<Vec<&'static str>> {
    let references = [
        ("item", "SELECT item FROM source_bytes WHERE item NOT IN (SELECT id FROM item)"),
        ("source_bytes", "SELECT id FROM item WHERE id NOT IN (SELECT item FROM source_bytes)"),
        ("collection", "SELECT 1 FROM item WHERE collection NOT IN (SELECT id FROM collection)"),
        ("batch", "SELECT seq FROM item WHERE seq NOT IN (SELECT seq FROM batch)"),
        ("batch", "SELECT seq FROM item_history WHERE seq NOT IN (SELECT seq FROM batch)"),
        ("operation", "SELECT 1 FROM batch WHERE operation NOT IN (SELECT id FROM operation)"),
    ];
    let mut incomplete = Vec::new();
    for (table, missing) in references {
        let sql = format!("SELECT EXISTS({missing})");
        if tx.query_row(&sql, [], |row| row.get(0))? {
            incomplete.push(table);
        }
    }
    Ok(incomplete)
}

/// Reads the entries of the indexes, which name rows that could not be read.
fn read_index_entries(
    reader: &mut BtreeReader<'_>,
    roots: &BTreeMap<String, PageNumber>,
    entries: &mut IndexEntries,
) -> rusqlite::Result<()> {
    let names = INDEXES.iter().map(|(index, _)| *index).chain(["collection_name"]);
    for name in names {
        let Some(page) = roots.get(name) else { continue };
        let root = TreeRoot { page: *page, is_table: false };
        let is_whole = reader.for_each_record(root, &mut |record| {
            entries.add(name, &record);
            Ok(true)
        })?;
        if is_whole {
            entries.whole.insert(name);
        }
    }
    Ok(())
}

/// Copies the rows that a tree leads to. Returns whether all of them could be read.
fn copy_tree(
    reader: &mut BtreeReader<'_>,
    tx: &WriteTransaction<'_>,
    table: &TableSpec,
    root: TreeRoot,
    digest: &mut RowDigest,
    copied: &mut CopiedRows,
) -> rusqlite::Result<bool> {
    let mut insert = tx.prepare_cached(&table.insert_sql())?;
    let mut has_strange_rows = false;
    let is_whole = reader.for_each_record(root, &mut |record| {
        digest.add(record.row_id);
        let Some(row) = table.to_row(&record) else {
            has_strange_rows = true;
            return Ok(false);
        };
        let is_own = table.is_own_row(&row);
        if table.name == "meta" {
            // The values of the new store are replaced by the former ones later.
            if is_own {
                copied.add_state(&row);
            }
            repair::keep_meta_value(tx, &row)?;
            has_strange_rows |= !is_own;
        } else {
            has_strange_rows |= insert.execute(params_from_iter(row))? == 0;
        }
        // A row that has changed may have taken the pages of others.
        Ok(is_own)
    })?;
    Ok(is_whole && !has_strange_rows)
}

/// Copies the rows of damaged tables from pages of which not all rows came out. Rows that a tree
/// led to are in the new store already, and are not replaced.
fn copy_stray_rows(
    reader: &mut BtreeReader<'_>,
    tx: &WriteTransaction<'_>,
    damaged_tables: &BTreeSet<&'static str>,
) -> rusqlite::Result<()> {
    let is_wanted =
        |table: &&TableSpec| table.is_recognisable && damaged_tables.contains(table.name);
    let tables: Vec<&TableSpec> = TABLES.iter().filter(is_wanted).collect();
    reader.for_each_stray_leaf(&mut |leaf| {
        for record in &leaf.records {
            let own = tables.iter().filter(|table| table.has_row_ids == leaf.is_table);
            let found = own.filter_map(|table| Some((table, table.to_row(record)?)));
            let Some((table, row)) = found.into_iter().find(|(table, row)| table.is_own_row(row))
            else {
                continue;
            };
            if table.name == "meta" {
                repair::keep_meta_value(tx, &row)?;
                continue;
            }
            tx.prepare_cached(&table.insert_sql())?.execute(params_from_iter(row))?;
        }
        Ok(())
    })
}

impl CopiedRows {
    /// Notes the state of the store, from a row of `meta`.
    fn add_state(&mut self, row: &[Value]) {
        match row {
            [Value::Text(key), Value::Integer(seq), _] if key == "last_seq" => {
                self.last_seq = Some(*seq);
            }
            [Value::Text(key), Value::Text(epoch), _] if key == EPOCH_KEY => {
                self.epoch = Some(epoch.clone());
            }
            _ => {}
        }
    }
}

impl IndexEntries {
    /// Adds an entry of the index with this name.
    fn add(&mut self, index: &str, record: &Record) {
        match (index, record.values.as_slice()) {
            ("item_handle" | "item_collection" | "item_seq", [.., Value::Integer(item)]) => {
                self.items.insert(ItemRow::from_number(*item));
            }
            (
                "item_history_seq" | "item_history_handle",
                [.., Value::Integer(seq), Value::Integer(_), Value::Integer(version)],
            ) => {
                self.versions.insert(ItemHistoryRow::from_number(*version), *seq);
            }
            _ => {}
        }
        match (index, record.values.as_slice()) {
            ("item_handle", [Value::Blob(handle), Value::Integer(item)]) => {
                let handle = Handle::from_bytes(handle);
                self.item_handles.insert(ItemRow::from_number(*item), handle);
            }
            ("item_seq", [Value::Integer(seq), Value::Integer(ordinal), Value::Integer(item)]) => {
                self.item_places.insert(ItemRow::from_number(*item), (*seq, *ordinal));
            }
            ("item_collection", [Value::Integer(collection), Value::Integer(item)]) => {
                let collection = CollectionRow::from_number(*collection);
                self.item_collections.insert(ItemRow::from_number(*item), collection);
            }
            ("collection_name", [Value::Text(name), Value::Integer(collection)]) => {
                let collection = CollectionRow::from_number(*collection);
                self.collection_names.insert(collection, name.clone());
            }
            ("sqlite_autoindex_collection_1", [Value::Blob(key), Value::Integer(collection)]) => {
                let collection = CollectionRow::from_number(*collection);
                self.handle_keys.insert(collection, key.clone());
            }
            _ => {}
        }
    }
}

//! Imports address books and calendars.
//!
//! This module is the writer: it runs in the calling thread, receives parsed items in the order of
//! the input from `pipeline`, and passes them to the store in batches. It reads no files and parses
//! nothing.
//!
//! | module | contents |
//! |---|---|
//! | `files` | the files to import |
//! | `item_folder` | folders with one file for each item |
//! | `input_origin` | the origin of an item: its file and folder |
//! | `budget` | the limit on memory in flight |
//! | `calendar` | the calendar around a component |
//! | `prescan` | the first pass over a file of calendars |
//! | `pipeline` | the threads that read and parse |
//! | `revisions` | several revisions of an item in one file |
//! | `routing` | the collection of an item |
//! | `cancellation` | messages with METHOD:CANCEL |
//! | `override_identity` | overrides of one occurrence with different texts of RECURRENCE-ID |
//! | `rejects` | the file of rejected input |
//! | `report` | events and the result |

mod budget;
mod calendar;
mod cancellation;
mod files;
mod input_origin;
mod item_folder;
mod override_identity;
mod pipeline;
mod prescan;
mod rejects;
mod report;
mod revisions;
mod routing;

pub use calendar::rename_calendar;
pub use report::{CollectionCounts, ImportDiagnostic, ImportEvent, ImportReport};

use crate::error::Error;
use calendar::{FinishedCalendar, ItipMethod};
use cancellation::CancelledUids;
use files::InputFiles;
use input_origin::InputOrigin;
use item_folder::FolderCollections;
use larder_format::collection_type::{COLLECTION_TYPES, CollectionTypeRow};
use larder_format::contact::derive_uid;
use larder_format::problem::Problem;
use larder_store::{
    BatchChange, ChangeOutcome, CollectionType, IndexConfig as Indexed, ItemPut, Kind, Operation,
    OutputTarget, ParsedItem, Precondition, Store, is_newer_revision,
};
use override_identity::OverrideLookup;
use pipeline::{
    ImportExtractors, ImportPipeline, InputPiece, ItemParseResult, ItemWarning, ParsedPieces,
    PieceContent, PipelineOutput, PipelineSettings,
};
use rejects::RejectsFile;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The number of items in the first batch.
pub const DEFAULT_BATCH_ITEMS: usize = 1000;
/// The longest time for which a batch holds the lock: after a longer batch the next is smaller.
const TARGET_LOCK_TIME: Duration = Duration::from_millis(100);
/// The maximum number of items to which the batch size adapts. Large batches write pages that many
/// items share, such as index pages, less often.
const MAX_ADAPTIVE_BATCH_ITEMS: usize = 2 * DEFAULT_BATCH_ITEMS;
/// The minimum number of items to which the batch size adapts: every commit costs an fsync.
const MIN_ADAPTIVE_BATCH_ITEMS: usize = 100;
/// The maximum number of items that a caller may choose: a larger batch blocks other writers for
/// too long.
pub const MAX_BATCH_ITEMS: usize = 4000;
/// The default maximum size of an item, in bytes.
pub const DEFAULT_MAX_ITEM_BYTES: usize = 32 << 20;
/// A batch of this size is written, however few items it has: its index rows need several times as
/// much memory.
const MAX_BATCH_BYTES: usize = 5 << 18;
/// The number of bytes read between two progress events.
const PROGRESS_INTERVAL_BYTES: u64 = 1 << 20;
/// The length of a UID in messages.
const MAX_UID_CHARS: usize = 80;

/// The reason why an older revision is rejected.
const OLDER_REASON: &str = "the stored item is newer, by SEQUENCE or DTSTAMP";

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The collection of all items; it is created if it does not exist. `None`: components go to
    /// the collection with the name of their calendar, or else of the file; items in a folder with
    /// one file for each item to the collection of the folder; a scheduling message to
    /// the collection that contains its UID; items outside any calendar to the [default
    /// collection](CollectionType::default_collection) of their type.
    pub into: Option<String>,
    /// The number of items in a batch, 1 to [`MAX_BATCH_ITEMS`]: each batch is one transaction.
    /// `None`: [`DEFAULT_BATCH_ITEMS`] at first, then as many as hold the lock for a tenth of a
    /// second.
    pub batch: Option<usize>,
    /// The maximum size of an item, in bytes. An item needs twice as much memory.
    pub max_item_bytes: usize,
    /// The file of rejected input. It is replaced only if something is rejected; a device or pipe
    /// is written directly.
    pub rejects: Option<OutputTarget>,
    /// The number of threads that parse, at least 1.
    pub threads: usize,
    /// The start of the operation, for the log: milliseconds since 1970.
    pub at: i64,
    /// Set it to stop the import: committed batches stay.
    pub stop: Arc<AtomicBool>,
}

impl ImportOptions {
    /// The default options, with one thread that parses.
    pub fn new(into: impl Into<String>, at: i64) -> ImportOptions {
        ImportOptions {
            into: Some(into.into()),
            batch: None,
            max_item_bytes: DEFAULT_MAX_ITEM_BYTES,
            rejects: None,
            threads: 1,
            at,
            stop: Arc::default(),
        }
    }
}

/// An input of an import.
pub enum ImportInput {
    /// A file of any name, or a folder with all `.vcf`, `.vcard` and `.ics` files in it and below.
    Path(PathBuf),
    /// A stream, named "standard input" in messages.
    Stdin(Box<dyn Read + Send>),
}

/// Imports the items of all inputs as one operation.
///
/// An item whose UID is in the collection is an update, or unchanged if its bytes are the same. A
/// second item with one UID in the same import is kept in addition to the first; of several
/// revisions in one file, with other SEQUENCEs, only the newest is imported. An item without a
/// UID gets one derived from its bytes. Rejected input is reported in `events` and, with
/// [`rejects`](ImportOptions::rejects), kept.
///
/// # Errors
/// A store or rejects file that cannot be written ends the import; earlier batches stay. Missing,
/// unreadable or damaged inputs are not errors; the report lists them.
pub fn import(
    store: &mut Store,
    inputs: Vec<ImportInput>,
    options: &ImportOptions,
    events: &mut dyn FnMut(ImportEvent<'_>),
) -> Result<ImportReport, Error> {
    let operation = Operation::new("import", files::describe_inputs(&inputs), options.at)
        .derive_uid_on_conflict();
    let is_usable = |name: &str, collection_type| {
        let is_default = |row: &CollectionTypeRow| {
            row.default_collection == name && row.collection_type != collection_type
        };
        let stored = store.collection_type(name).ok().flatten();
        !COLLECTION_TYPES.iter().any(is_default)
            && stored.is_none_or(|stored| stored == collection_type)
    };
    let folders = FolderCollections::new(&is_usable, &options.stop);
    let files = InputFiles::find(inputs, options.into.is_none().then_some(folders));
    let rejects = match &options.rejects {
        Some(OutputTarget::Path(path)) if files.contains(path) => {
            return Err(Error::RejectsFileIsInput { path: path.clone() });
        }
        Some(target) => Some(RejectsFile::create(store.directory(), target)?),
        None => None,
    };
    let marked = CancelledUids::new(store.last_seq()?);
    let mut writer = ImportWriter {
        store,
        options,
        events,
        operation,
        into: options.into.as_deref().map(Arc::from),
        targets: COLLECTION_TYPES
            .iter()
            .map(|row| Arc::from(options.into.as_deref().unwrap_or(row.default_collection)))
            .collect(),
        headers: HashMap::new(),
        message_headers: HashMap::new(),
        families: HashMap::new(),
        used_zones: HashSet::new(),
        bytes_total: (!files.is_unbounded).then_some(files.bytes),
        bytes_reported: 0,
        unchanged_keys: UnchangedKeys::default(),
        cancelled_uids: marked,
        message_collections: HashMap::new(),
        override_lookup: OverrideLookup::default(),
        changes: Vec::new(),
        provenances: Vec::new(),
        batch_bytes: 0,
        batch_size: options.batch.unwrap_or(DEFAULT_BATCH_ITEMS).clamp(1, MAX_BATCH_ITEMS),
        rejects,
        report: ImportReport::default(),
    };
    let result = writer.run(files);
    // Also after an error, because the rejects so far were reported.
    let rejects = writer.rejects.take().map_or(Ok(None), RejectsFile::finish);
    result?;
    // The import is complete; merging segments only makes reading faster, so an error is ignored.
    if writer.report.has_changes() && !writer.report.interrupted {
        let _unmerged = writer.store.merge_segments();
    }
    let mut summary = writer.report;
    summary.zones_kept = writer.used_zones.len() as u64;
    summary.rejects_file = rejects.map_err(|error| match error {
        Error::RejectsFile(error) => Error::RejectsNotWritten(error),
        error => error,
    })?;
    summary.operation = writer.operation.id();
    Ok(summary)
}

/// Hashes of the items that this import left unchanged, by collection, UID and recurrence id: a few
/// million fit into memory. For items that the import wrote, the store has the answer. After a hash
/// collision, a changed item is kept in addition to the stored item instead of replacing it.
#[derive(Default)]
struct UnchangedKeys {
    hashes: HashSet<u64>,
    state: RandomState,
}

impl UnchangedKeys {
    fn hash(&self, key: [&str; 3]) -> u64 {
        self.state.hash_one(key)
    }
}

/// Returns the size of the next batch, after one of `size` items that held the lock for `held`.
fn next_batch_size(size: usize, held: Duration) -> usize {
    let next = if held > TARGET_LOCK_TIME {
        size * 3 / 4
    } else if held < TARGET_LOCK_TIME / 2 {
        size * 5 / 4
    } else {
        size
    };
    next.clamp(MIN_ADAPTIVE_BATCH_ITEMS, MAX_ADAPTIVE_BATCH_ITEMS)
}

/// The origin of a change in the batch.
struct Provenance {
    file: Arc<InputOrigin>,
    line: u64,
    uid: String,
    /// The hash in [`UnchangedKeys`].
    hash: u64,
    /// The kind and the collection of the item.
    kind: Kind,
    collection: Arc<str>,
    /// If the item must not replace the stored one: the reason, and its bytes.
    conflict_reject: Option<(String, Vec<u8>)>,
}

struct ImportWriter<'a> {
    store: &'a mut Store,
    options: &'a ImportOptions,
    events: &'a mut dyn FnMut(ImportEvent<'_>),
    operation: Operation,
    /// The collection of all items, if the caller named a collection.
    into: Option<Arc<str>>,
    /// The collections of items outside any calendar, by type.
    targets: Vec<Arc<str>>,
    /// The types of the collections.
    families: HashMap<Arc<str>, CollectionType>,
    /// The properties of the first calendar in each collection.
    headers: HashMap<Arc<str>, Vec<u8>>,
    /// Those of the first scheduling message, used where there is no other calendar: else the order
    /// of the files, and whether they were imported before, would decide.
    message_headers: HashMap<Arc<str>, Vec<u8>>,
    /// The hashes of the time-zone definitions that items use.
    used_zones: HashSet<[u8; 32]>,
    bytes_total: Option<u64>,
    bytes_reported: u64,
    unchanged_keys: UnchangedKeys,
    cancelled_uids: CancelledUids,
    /// The collections of scheduling messages, by UID.
    message_collections: HashMap<String, Arc<str>>,
    override_lookup: OverrideLookup,
    /// The batch that is being filled, the origins of its items, and its size in bytes. The removal
    /// of a replaced override has no origin.
    changes: Vec<BatchChange>,
    provenances: Vec<Option<Provenance>>,
    batch_bytes: usize,
    /// The number of items in a full batch.
    batch_size: usize,
    rejects: Option<RejectsFile>,
    report: ImportReport,
}

impl ImportWriter<'_> {
    fn run(&mut self, mut files: InputFiles) -> Result<(), Error> {
        for notice in std::mem::take(&mut files.unreadable) {
            self.report_unreadable(notice);
        }
        for notice in std::mem::take(&mut files.skipped_folders) {
            self.warn(&notice);
        }
        let settings = PipelineSettings {
            threads: self.options.threads,
            max_item: self.options.max_item_bytes,
            keep_rejects: self.rejects.is_some(),
        };
        let mut extractors: ImportExtractors = std::array::from_fn(|index| {
            let default = Indexed::shared_default(COLLECTION_TYPES[index].collection_type);
            self.store.extractor().with_index_config(default)
        });
        for (extractor, row) in extractors.iter_mut().zip(COLLECTION_TYPES) {
            // The collection of a calendar without `into` is known when its items come.
            if self.options.into.is_some() || !row.collection_type.is_exported_in_calendar() {
                let target = &self.targets[row.collection_type.index()];
                *extractor = self.store.extractor_for_collection(target, row.collection_type)?;
            }
        }
        let mut pipeline = ImportPipeline::start(files, &extractors, &settings)?;
        while !self.poll_stop() {
            match pipeline.next()? {
                PipelineOutput::Pieces(parcel) => {
                    let cost = parcel.cost();
                    self.process_pieces(parcel)?;
                    pipeline.release_budget(cost);
                }
                PipelineOutput::Waiting => {}
                PipelineOutput::End => {
                    self.write_batch()?;
                    return self.write_headers();
                }
            }
        }
        Ok(())
    }

    /// Returns whether to stop. The unwritten batch is dropped then.
    fn poll_stop(&mut self) -> bool {
        self.report.interrupted |= self.options.stop.load(Ordering::Relaxed);
        self.report.interrupted
    }

    fn process_pieces(&mut self, parcel: ParsedPieces) -> Result<(), Error> {
        self.report.bytes = parcel.bytes_done;
        for found in parcel.pieces {
            self.process_piece(found)?;
            if self.report.interrupted {
                return Ok(());
            }
        }
        if self.report.bytes >= self.bytes_reported + PROGRESS_INTERVAL_BYTES {
            self.report_progress();
        }
        Ok(())
    }

    fn process_piece(&mut self, found: InputPiece<ItemParseResult>) -> Result<(), Error> {
        let InputPiece { file, line, content: what } = found;
        let notice = |line, reason| ImportDiagnostic { file: file.to_string(), line, reason };
        match what {
            PieceContent::Item(Ok((parsed, warnings)), _, calendar) => {
                let is_truncated = warnings.iter().any(|warning| warning.is_truncated);
                let method =
                    calendar.as_ref().map_or(&ItipMethod::None, |calendar| &calendar.method);
                let (precondition, conflict_reject) =
                    choose_expectation(&parsed, is_truncated, method);
                let is_cancellation = !is_truncated && *method == ItipMethod::Cancel;
                for ItemWarning { line: line_in_item, reason, .. } in warnings {
                    self.warn(&notice(line + u64::from(line_in_item).saturating_sub(1), reason));
                }
                let (kind, collection) = (
                    parsed.kind(),
                    self.choose_collection(&file, calendar.as_deref(), &parsed, &|reason| {
                        notice(line, reason)
                    })?,
                );
                let (uid, hash) = (String::new(), 0);
                let place = Provenance { file, line, uid, hash, kind, collection, conflict_reject };
                let item = match is_cancellation {
                    true => self.handle_cancellation(place, parsed)?,
                    false => Some((place, parsed)),
                };
                if let Some((place, parsed)) = item {
                    self.add_item(place, precondition, parsed)?;
                }
            }
            PieceContent::Item(Err((bytes, problem)), ..) => {
                let notice = notice(problem_line(line, &problem), problem.to_string());
                self.reject(&notice, &bytes)?;
            }
            PieceContent::CalendarEnd(FinishedCalendar {
                name,
                is_message,
                header: head,
                zone_count: zones,
                has_late_zone: late,
                is_truncated: cut,
            }) => {
                if cut {
                    self.warn(&notice(line, "END:VCALENDAR is missing".into()));
                }
                self.report.zones_defined += zones;
                if late {
                    let what = "a time zone is defined after items that may use it, which were imported without it: import the file by name instead of from standard input";
                    self.warn(&notice(line, what.into()));
                }
                let into = self.target_collection(name);
                // The properties of a message do not matter if nothing of it was imported, or if it
                // went to a named calendar.
                let went =
                    !is_message || self.report.collections.iter().any(|known| **known == *into);
                let kept = is_message && self.store.has_collection_properties(&into)?;
                if went && !kept && !head.is_empty() {
                    let headers =
                        if is_message { &mut self.message_headers } else { &mut self.headers };
                    headers.entry(into).or_insert(head);
                }
            }
            PieceContent::Skipped { why: Some(reason), bytes } => {
                self.reject(&notice(line, reason), &bytes)?;
            }
            PieceContent::Skipped { why: None, bytes } => self.save_reject(&bytes, false)?,
            PieceContent::Unreadable(error) => {
                self.report_unreadable(notice(0, files::io_reason(&error)));
            }
            PieceContent::InputEnd { empty } => {
                self.report.files += 1;
                if empty {
                    self.warn(&notice(0, "the file is empty".into()));
                }
            }
        }
        Ok(())
    }

    /// Adds an item to the batch, and writes the batch if it is full.
    fn add_item(
        &mut self,
        mut place: Provenance,
        expect: Precondition,
        prepared: ParsedItem,
    ) -> Result<(), Error> {
        let collection = Arc::clone(&place.collection);
        if !self.check_family(&place, &prepared)? {
            return Ok(());
        }
        let bytes = prepared.bytes().len();
        let zones = prepared
            .calendar_context()
            .into_iter()
            .flat_map(|calendar_context| &calendar_context.zone_definitions);
        self.used_zones.extend(zones.map(|zone| *zone.hash()));
        if self.batch_bytes + bytes > MAX_BATCH_BYTES {
            self.write_batch()?;
        }
        let own = prepared.uid().map(str::to_owned);
        let derived = own.is_none();
        let uid = own.unwrap_or_else(|| derive_uid(prepared.bytes()));
        let is_detached = !prepared.recurrence_id().is_empty();
        if self.changes.len() >= self.batch_size && !self.is_uid_continued(&collection, &uid) {
            self.write_batch()?;
        }
        place.hash = self.unchanged_keys.hash([&*collection, &uid, prepared.recurrence_id()]);
        place.uid.clone_from(&uid);
        let met = self.unchanged_keys.hashes.contains(&place.hash);
        let expect = if met { Precondition::DeriveUidOnConflict } else { expect };
        if matches!(expect, Precondition::Any | Precondition::NotNewer)
            && let Some(other) = self.find_other_override(&collection, &uid, &prepared)?
        {
            if expect == Precondition::NotNewer && is_newer_revision(&other.bytes, prepared.bytes())
            {
                return self.reject_message(place, &prepared, OLDER_REASON);
            }
            self.changes.push(other.removal);
            self.provenances.push(None);
        }
        self.record_collection(&collection);
        self.changes.push(BatchChange::Put(ItemPut {
            collection,
            uid,
            derived_uid: derived,
            parsed: prepared,
            precondition: expect,
        }));
        self.provenances.push(Some(place));
        self.batch_bytes += bytes;
        let most = if is_detached && self.options.batch.is_none() {
            MAX_BATCH_ITEMS
        } else {
            self.batch_size
        };
        if self.changes.len() >= most {
            self.write_batch()?;
        }
        Ok(())
    }

    /// Returns whether the item has the UID of the last one. Items of one UID are examined together
    /// in each batch, so thousands of overrides are not split among many batches.
    fn is_uid_continued(&self, into: &Arc<str>, uid: &str) -> bool {
        let Some(BatchChange::Put(last)) = self.changes.last() else { return false };
        last.uid == uid && last.collection == *into
    }

    /// Writes the batch, and reports its outcomes.
    fn write_batch(&mut self) -> Result<(), Error> {
        if self.changes.is_empty() || self.poll_stop() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.changes);
        self.batch_bytes = 0;
        let places = std::mem::take(&mut self.provenances);
        let applied = self.store.apply(&mut self.operation, changes)?;
        if self.options.batch.is_none() {
            self.batch_size = next_batch_size(self.batch_size, applied.lock_held);
        }
        let mut is_replacement = false;
        for (outcome, place) in applied.outcomes.iter().zip(places) {
            // An item whose former RECURRENCE-ID was removed in front of it is an update.
            let Some(place) = place else {
                is_replacement = matches!(outcome, ChangeOutcome::Removed(_));
                continue;
            };
            let outcome = match outcome {
                ChangeOutcome::Added(handle) if is_replacement => &ChangeOutcome::Updated(*handle),
                outcome => outcome,
            };
            is_replacement = false;
            self.report.count_outcome(&place.collection, place.kind, outcome);
            if matches!(
                outcome,
                ChangeOutcome::Unchanged(_) | ChangeOutcome::UnchangedWithDerivedUid(_)
            ) {
                self.unchanged_keys.hashes.insert(place.hash);
            }
            match outcome {
                ChangeOutcome::Added(_) => self.report.added += 1,
                ChangeOutcome::Updated(_) => self.report.updated += 1,
                ChangeOutcome::AddedWithDerivedUid(_) => {
                    self.report.added += 1;
                    self.warn_duplicate(&place);
                }
                ChangeOutcome::Conflict(..) => self.reject_conflict(place)?,
                _ => self.report.unchanged += 1,
            }
        }
        self.report_progress();
        Ok(())
    }

    /// Writes the properties of the calendars.
    fn write_headers(&mut self) -> Result<(), Error> {
        let mut heads = std::mem::take(&mut self.message_headers);
        heads.extend(std::mem::take(&mut self.headers));
        if heads.is_empty() || self.poll_stop() {
            return Ok(());
        }
        let mut changes = Vec::new();
        for (name, head) in heads {
            let stored_type = self.store.collection_type(&name)?;
            if stored_type.is_some_and(|stored| !stored.is_exported_in_calendar()) {
                // Its items were rejected.
                continue;
            }
            // A calendar does not set the properties of a collection with another name.
            if self.options.into.is_none() || !self.store.has_collection_properties(&name)? {
                changes.push(BatchChange::SetCollectionProperties(name.to_string(), Some(head)));
            }
        }
        self.store.apply(&mut self.operation, changes)?;
        Ok(())
    }

    fn reject_conflict(&mut self, place: Provenance) -> Result<(), Error> {
        let (reason, bytes) = place.conflict_reject.unwrap_or_default();
        let notice = ImportDiagnostic { file: place.file.to_string(), line: place.line, reason };
        self.reject(&notice, &bytes)
    }

    fn warn_duplicate(&mut self, place: &Provenance) {
        self.report.uid_conflicts += 1;
        let uid = sanitise_text(&place.uid, MAX_UID_CHARS);
        let reason = format!("second item with UID {uid}: added under a derived UID");
        self.warn(&ImportDiagnostic { file: place.file.to_string(), line: place.line, reason });
    }

    fn report_progress(&mut self) {
        self.bytes_reported = self.report.bytes;
        (self.events)(ImportEvent::Progress {
            bytes_done: self.report.bytes,
            bytes_total: self.bytes_total,
            items: self.report.item_count(),
        });
    }

    fn warn(&mut self, notice: &ImportDiagnostic) {
        self.report.warnings += 1;
        (self.events)(ImportEvent::Warning(notice));
    }

    fn report_unreadable(&mut self, notice: ImportDiagnostic) {
        (self.events)(ImportEvent::Unreadable(&notice));
        self.report.unreadable.push(notice);
    }

    fn reject(&mut self, notice: &ImportDiagnostic, bytes: &[u8]) -> Result<(), Error> {
        self.report.rejected += 1;
        (self.events)(ImportEvent::Rejected(notice));
        self.save_reject(bytes, true)
    }

    fn save_reject(&mut self, bytes: &[u8], first: bool) -> Result<(), Error> {
        self.rejects.as_mut().map_or(Ok(()), |rejects| rejects.add(bytes, first))
    }
}

/// Returns the line of a problem in an item that begins at line `first`.
fn problem_line(first: u64, problem: &Problem) -> u64 {
    first + u64::from(problem.line.max(1)) - 1
}

/// Returns the precondition of an item. If the precondition can fail, also returns the reason for
/// the rejection and the bytes of the item.
fn choose_expectation(
    prepared: &ParsedItem,
    cut: bool,
    method: &ItipMethod,
) -> (Precondition, Option<(String, Vec<u8>)>) {
    let (expect, reason) = match method {
        // The item may be incomplete.
        _ if cut => (
            Precondition::Absent,
            "no END line: the item may be incomplete and does not replace the stored one",
        ),
        ItipMethod::None => return (Precondition::Any, None),
        ItipMethod::Publish | ItipMethod::Request => (Precondition::NotNewer, OLDER_REASON),
        ItipMethod::Cancel | ItipMethod::Partial(_) => {
            let name = if let ItipMethod::Partial(name) = method { name } else { "CANCEL" };
            let reason = format!("METHOD:{name} does not replace the stored item");
            return (Precondition::Absent, Some((reason, prepared.bytes().to_vec())));
        }
    };
    (expect, Some((reason.into(), prepared.bytes().to_vec())))
}

/// Prepares text of the input for a message: one line, without control characters, of limited
/// length.
fn sanitise_text(text: &str, limit: usize) -> String {
    let mut shown: String = text
        .chars()
        .take(limit)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(limit).is_some() {
        shown.push('…');
    }
    shown
}

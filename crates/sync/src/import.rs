//! Taking address books and calendars in.
//!
//! This half is the writer: it runs in the calling thread, gets parsed cards in the order of the input
//! from `pipeline`, gives them to the store in batches, and says what became of each. It does not read
//! files and does not parse. `files` finds what to read, `rejects` keeps what is not taken.

mod ahead;
mod budget;
pub(crate) mod calendar;
mod cancel;
mod files;
mod into;
mod pipeline;
mod rejects;
mod told;

pub use told::{Event, Notice, Summary, Taken};

use crate::error::Error;
use calendar::{Ended, Method};
use cancel::Marked;
use files::Files;
use larder_format::contact::derived_uid;
use larder_format::problem::Problem;
use larder_store::{
    Change, Expect, Family, Kind, Operation, Outcome, Prepared, Put, Store, Summary as Indexed,
};
use pipeline::{Derivers, Found, Next, Parcel, Parsed, Pipeline, Said, Settings, What};
use rejects::Rejects;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where cards go to, where nothing else is said.
pub const CONTACTS: &str = "contacts";
/// Cards of the first batch, where nothing else is said.
pub const BATCH: usize = 1000;
/// Other writers are kept out for this long at most: where a batch took longer, the next are smaller.
const HELD: Duration = Duration::from_millis(100);
/// Where batches are soon written they grow to this: what they have in common, such as pages of an index in which keys lie
/// anywhere, is written less often then.
const LARGEST: usize = 2 * BATCH;
/// No batch is cut below this many cards: a commit costs a sync of the disk, however small.
const SMALLEST: usize = 100;
/// The largest batch: more would keep other writers waiting for too long.
pub const MAX_BATCH: usize = 4000;
/// The largest card that is taken, in bytes, where nothing else is said: 32 MB.
pub const MAX_ITEM: usize = 32 << 20;
/// A batch with this many bytes is written, however few cards it has: what is derived from them takes several times
/// as much memory.
const BATCH_BYTES: usize = 5 << 18;
/// How far reading goes on between two words of progress.
const PROGRESS_BYTES: u64 = 1 << 20;
/// UIDs in messages are cut to this many characters.
const UID_SHOWN: usize = 80;

/// Why a message is not taken.
const OLDER: &str = "older than the one that is there, by SEQUENCE and DTSTAMP";

/// How to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The collection that everything goes to; it is made where there is none. `None`: cards go to [`CONTACTS`], what
    /// is in a calendar to one of the calendar's name, else of the file's; a message to the one that has an item of its UID.
    pub into: Option<String>,
    /// Cards of one batch, 1 to [`MAX_BATCH`]: each batch is one transaction. `None`: [`BATCH`] at first, then as many
    /// as keep other writers out for a tenth of a second.
    pub batch: Option<usize>,
    /// The largest card that is taken, in bytes. Twice as much memory is needed for one.
    pub max_item: usize,
    /// Where what is not taken is kept. The file is replaced if something is rejected, and left alone
    /// otherwise; a device or pipe is written to as it is.
    pub rejects: Option<PathBuf>,
    /// Threads that parse, 1 at least.
    pub threads: usize,
    /// When the operation begins, for the log: milliseconds since 1970.
    pub at: i64,
    /// Set it from anywhere to end the import: what was committed stays.
    pub stop: Arc<AtomicBool>,
}

impl ImportOptions {
    /// Everything as usual, parsed by one thread.
    pub fn new(into: impl Into<String>, at: i64) -> ImportOptions {
        ImportOptions {
            into: Some(into.into()),
            batch: None,
            max_item: MAX_ITEM,
            rejects: None,
            threads: 1,
            at,
            stop: Arc::default(),
        }
    }
}

/// Where cards come from.
pub enum Input {
    /// A file, whatever its name, or a folder with all `.vcf`, `.vcard` and `.ics` files in and below it.
    Path(PathBuf),
    /// A stream, which is called "standard input" in messages.
    Stdin(Box<dyn Read + Send>),
}

/// Takes the cards of all inputs into one collection, as one operation.
///
/// A card whose UID is in the collection already is an update, or nothing at all if its bytes are the
/// same; a second card with one UID in the same import is kept beside the first. A card without a UID gets
/// one made from its bytes. What is no card is named in `events` and, with
/// [`rejects`](ImportOptions::rejects), kept.
///
/// # Errors
/// A store or rejects file that cannot be written ends the import; the batches before it are kept. Inputs
/// that are missing, unreadable or broken are no errors: they are in the summary.
pub fn import(
    store: &mut Store,
    inputs: Vec<Input>,
    options: &ImportOptions,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, Error> {
    let operation = Operation::new("import", files::names(&inputs), options.at).each_once();
    let files = Files::find(inputs);
    let rejects = match &options.rejects {
        Some(path) if files.contain(path) => {
            return Err(Error::RejectsIsInput { path: path.clone() });
        }
        Some(path) => Some(Rejects::create(path)?),
        None => None,
    };
    let marked = Marked::since(store.seq()?);
    let mut writer = Writer {
        store,
        options,
        events,
        operation,
        contacts: Arc::from(options.into.as_deref().unwrap_or(CONTACTS)),
        heads: HashMap::new(),
        families: HashMap::new(),
        used_zones: HashSet::new(),
        bytes_total: (!files.endless).then_some(files.bytes),
        bytes_told: 0,
        seen: Seen::default(),
        marked,
        messages: HashMap::new(),
        changes: Vec::new(),
        places: Vec::new(),
        bytes: 0,
        size: options.batch.unwrap_or(BATCH).clamp(1, MAX_BATCH),
        rejects,
        summary: Summary::default(),
    };
    let result = writer.run(files);
    // Also after an error: what was rejected until then has been named already.
    let rejects = writer.rejects.take().map_or(Ok(None), Rejects::finish);
    result?;
    // Everything is in the store; that it is read a little faster is not worth an error.
    if writer.summary.changed() && !writer.summary.interrupted {
        let _unmerged = writer.store.merge_segments();
    }
    let mut summary = writer.summary;
    summary.zones.1 = writer.used_zones.len() as u64;
    summary.rejects = rejects?;
    summary.operation = writer.operation.id();
    Ok(summary)
}

/// Items that this import met and left as they were, by collection, UID and recurrence id, as hashes: a few million fit. What it
/// wrote, the store knows. Two that share a hash only mean that the second
/// card, if it is not what the store has under its UID, is kept beside that instead of replacing it.
#[derive(Default)]
struct Seen {
    hashes: HashSet<u64>,
    state: RandomState,
}

impl Seen {
    fn hash(&self, of: [&str; 3]) -> u64 {
        self.state.hash_one(of)
    }
}

/// The size of the batch after one of `size` cards that kept others out for so long.
fn next_size(size: usize, held: Duration) -> usize {
    let next = if held > HELD {
        size * 3 / 4
    } else if held < HELD / 2 {
        size * 5 / 4
    } else {
        size
    };
    next.clamp(SMALLEST, LARGEST)
}

/// Where a change of the batch comes from.
struct Place {
    file: Arc<str>,
    line: u64,
    uid: String,
    /// As [`Seen`] has it.
    hash: u64,
    /// What it is, and where it goes to.
    kind: Kind,
    collection: Arc<str>,
    /// Where it may not take the place of what is there: why, and its bytes.
    spare: Option<(String, Vec<u8>)>,
}

struct Writer<'a> {
    store: &'a mut Store,
    options: &'a ImportOptions,
    events: &'a mut dyn FnMut(Event<'_>),
    operation: Operation,
    /// Where cards go to.
    contacts: Arc<str>,
    /// What the collections hold.
    families: HashMap<Arc<str>, Family>,
    /// The own lines of the first calendar that went to each collection.
    heads: HashMap<Arc<str>, Vec<u8>>,
    /// The definitions of time zones that are used, by their hashes.
    used_zones: HashSet<[u8; 32]>,
    bytes_total: Option<u64>,
    bytes_told: u64,
    seen: Seen,
    marked: Marked,
    /// Where messages went, by UID.
    messages: HashMap<String, Arc<str>>,
    /// The batch that is being filled, where each of its changes comes from, and its bytes.
    changes: Vec<Change>,
    places: Vec<Place>,
    bytes: usize,
    /// Cards that fill it.
    size: usize,
    rejects: Option<Rejects>,
    summary: Summary,
}

impl Writer<'_> {
    fn run(&mut self, mut files: Files) -> Result<(), Error> {
        for notice in std::mem::take(&mut files.unreadable) {
            self.unreadable(notice);
        }
        for notice in std::mem::take(&mut files.barren) {
            self.warn(&notice);
        }
        let settings = Settings {
            threads: self.options.threads,
            max_item: self.options.max_item,
            keep: self.rejects.is_some(),
        };
        let base = self.store.deriver();
        let mut derivers = Derivers {
            contacts: self.store.deriver_for(&self.contacts, Family::Contacts)?,
            calendar: base.with(Indexed::shared_default(Family::Calendar)),
        };
        if let Some(into) = &self.options.into {
            derivers.calendar = self.store.deriver_for(into, Family::Calendar)?;
        }
        let mut pipeline = Pipeline::start(files, &derivers, &settings)?;
        while !self.stopped() {
            match pipeline.next()? {
                Next::Parcel(parcel) => {
                    let cost = parcel.cost();
                    self.parcel(parcel)?;
                    pipeline.settle(cost);
                }
                Next::Waiting => {}
                Next::End => {
                    self.write()?;
                    return self.write_heads();
                }
            }
        }
        Ok(())
    }

    /// Is the import to end? What is in the unwritten batch is then left out.
    fn stopped(&mut self) -> bool {
        self.summary.interrupted |= self.options.stop.load(Ordering::Relaxed);
        self.summary.interrupted
    }

    fn parcel(&mut self, parcel: Parcel) -> Result<(), Error> {
        self.summary.bytes = parcel.bytes_done;
        for found in parcel.found {
            self.found(found)?;
            if self.summary.interrupted {
                return Ok(());
            }
        }
        if self.summary.bytes >= self.bytes_told + PROGRESS_BYTES {
            self.progress();
        }
        Ok(())
    }

    fn found(&mut self, found: Found<Parsed>) -> Result<(), Error> {
        let Found { file, line, what } = found;
        let notice = |line, reason| Notice { file: file.to_string(), line, reason };
        match what {
            What::Item(Ok((prepared, said)), around) => {
                let cut = said.iter().any(|said| said.cut);
                let method = around.as_ref().map_or(&Method::None, |around| &around.method);
                let (expect, spare) = expected(&prepared, cut, method);
                let cancels = !cut && *method == Method::Cancel;
                for Said { line: within, reason, .. } in said {
                    self.warn(&notice(line + u64::from(within).saturating_sub(1), reason));
                }
                let (kind, collection) = (
                    prepared.kind(),
                    self.goes_to(around.as_deref(), &prepared, &|reason| notice(line, reason))?,
                );
                let (uid, hash) = (String::new(), 0);
                let place = Place { file, line, uid, hash, kind, collection, spare };
                let item = match cancels {
                    true => self.cancel(place, prepared)?,
                    false => Some((place, prepared)),
                };
                if let Some((place, prepared)) = item {
                    self.item(place, expect, prepared)?;
                }
            }
            What::Item(Err((bytes, problem)), _) => {
                let notice = notice(line_of(line, &problem), problem.to_string());
                self.reject(&notice, &bytes)?;
            }
            What::Calendar(Ended { name, is_message, head, zones, late, cut }) => {
                if cut {
                    self.warn(&notice(line, "END:VCALENDAR is missing".into()));
                }
                self.summary.zones.0 += zones;
                if late {
                    let what = "a time zone is defined only behind what may need it, and was not known for that";
                    self.warn(&notice(line, what.into()));
                }
                let into = self.named(name);
                // What a message says of itself is of no matter where nothing of it went, or where a calendar says it.
                let went =
                    !is_message || self.summary.collections.iter().any(|known| **known == *into);
                let kept = is_message && self.store.has_head(&into)?;
                if went && !kept && !head.is_empty() {
                    self.heads.entry(into).or_insert(head);
                }
            }
            What::Stray { why: Some(reason), bytes } => {
                self.reject(&notice(line, reason), &bytes)?;
            }
            What::Stray { why: None, bytes } => self.keep(&bytes, false)?,
            What::Unreadable(error) => self.unreadable(notice(0, files::said(&error))),
            What::End { empty } => {
                self.summary.files += 1;
                if empty {
                    self.warn(&notice(0, "nothing in this file".into()));
                }
            }
        }
        Ok(())
    }

    /// Puts an item into the batch, which is written when it is full.
    fn item(&mut self, mut place: Place, expect: Expect, prepared: Prepared) -> Result<(), Error> {
        let collection = Arc::clone(&place.collection);
        if !self.belongs(&place, &prepared)? {
            return Ok(());
        }
        let bytes = prepared.bytes().len();
        let zones = prepared.frame().into_iter().flat_map(|frame| &frame.zones);
        self.used_zones.extend(zones.map(|zone| *zone.hash()));
        if self.bytes + bytes > BATCH_BYTES {
            self.write()?;
        }
        let own = prepared.uid().map(str::to_owned);
        let derived = own.is_none();
        let uid = own.unwrap_or_else(|| derived_uid(prepared.bytes()));
        let is_detached = !prepared.recurrence().is_empty();
        if self.changes.len() >= self.size && !self.goes_on(&collection, &uid) {
            self.write()?;
        }
        place.hash = self.seen.hash([&*collection, &uid, prepared.recurrence()]);
        place.uid.clone_from(&uid);
        let met = self.seen.hashes.contains(&place.hash);
        let expect = if met { Expect::SecondOfImport } else { expect };
        self.goes_into(&collection);
        self.changes.push(Change::Put(Put {
            collection,
            uid,
            derived_uid: derived,
            prepared,
            expect,
        }));
        self.places.push(place);
        self.bytes += bytes;
        let most = if is_detached && self.options.batch.is_none() { MAX_BATCH } else { self.size };
        if self.changes.len() >= most {
            self.write()?;
        }
        Ok(())
    }

    /// Is this an item of the last one's UID? With each batch all of a UID are looked at, so thousands of changed
    /// occurrences are not divided into many.
    fn goes_on(&self, into: &Arc<str>, uid: &str) -> bool {
        let Some(Change::Put(last)) = self.changes.last() else { return false };
        last.uid == uid && last.collection == *into
    }

    /// Writes the batch, and says what became of it.
    fn write(&mut self) -> Result<(), Error> {
        if self.changes.is_empty() || self.stopped() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.changes);
        self.bytes = 0;
        let places = std::mem::take(&mut self.places);
        let applied = self.store.apply(&mut self.operation, changes)?;
        if self.options.batch.is_none() {
            self.size = next_size(self.size, applied.held);
        }
        for (outcome, place) in applied.outcomes.iter().zip(places) {
            self.summary.tally(&place.collection, place.kind, outcome);
            if matches!(outcome, Outcome::Unchanged(_) | Outcome::UnchangedBeside(_)) {
                self.seen.hashes.insert(place.hash);
            }
            match outcome {
                Outcome::Added(_) => self.summary.added += 1,
                Outcome::Updated(_) => self.summary.updated += 1,
                Outcome::AddedBeside(_) => self.beside(&place),
                Outcome::Conflict(..) => self.reject_spare(place)?,
                _ => self.summary.unchanged += 1,
            }
        }
        self.progress();
        Ok(())
    }

    /// Writes what the calendars say of themselves.
    fn write_heads(&mut self) -> Result<(), Error> {
        let heads = std::mem::take(&mut self.heads);
        if heads.is_empty() || self.stopped() {
            return Ok(());
        }
        let mut changes = Vec::new();
        for (name, head) in heads {
            // What goes into another calendar does not speak for that one.
            if self.options.into.is_none() || !self.store.has_head(&name)? {
                changes.push(Change::SetHead(name.to_string(), Some(head)));
            }
        }
        self.store.apply(&mut self.operation, changes)?;
        Ok(())
    }

    fn reject_spare(&mut self, place: Place) -> Result<(), Error> {
        let (reason, bytes) = place.spare.unwrap_or_default();
        let notice = Notice { file: place.file.to_string(), line: place.line, reason };
        self.reject(&notice, &bytes)
    }

    fn beside(&mut self, place: &Place) {
        self.summary.beside += 1;
        let uid = shown(&place.uid, UID_SHOWN);
        let what = if place.kind == Kind::Contact { "card" } else { "item" };
        let reason = format!("a second {what} with UID {uid}, kept beside the first");
        self.warn(&Notice { file: place.file.to_string(), line: place.line, reason });
    }

    fn progress(&mut self) {
        self.bytes_told = self.summary.bytes;
        (self.events)(Event::Progress {
            bytes_done: self.summary.bytes,
            bytes_total: self.bytes_total,
            items: self.summary.items(),
        });
    }

    fn warn(&mut self, notice: &Notice) {
        self.summary.warnings += 1;
        (self.events)(Event::Warning(notice));
    }

    fn unreadable(&mut self, notice: Notice) {
        (self.events)(Event::Unreadable(&notice));
        self.summary.unreadable.push(notice);
    }

    fn reject(&mut self, notice: &Notice, bytes: &[u8]) -> Result<(), Error> {
        self.summary.rejected += 1;
        (self.events)(Event::Rejected(notice));
        self.keep(bytes, true)
    }

    fn keep(&mut self, bytes: &[u8], first: bool) -> Result<(), Error> {
        self.rejects.as_mut().map_or(Ok(()), |rejects| rejects.add(bytes, first))
    }
}

/// The line of a problem: `first` is that of its card.
fn line_of(first: u64, problem: &Problem) -> u64 {
    first + u64::from(problem.line.max(1)) - 1
}

/// What has to be in the place of an item so that it may be taken; and where that is not all the same, why it is not taken
/// otherwise, and its bytes.
fn expected(
    prepared: &Prepared,
    cut: bool,
    method: &Method,
) -> (Expect, Option<(String, Vec<u8>)>) {
    let (expect, reason) = match method {
        // It may be half of an item.
        _ if cut && prepared.kind() == Kind::Contact => {
            (Expect::Nothing, "END:VCARD is missing, so it does not replace the one that is there")
        }
        _ if cut => {
            (Expect::Nothing, "its END is missing, so it does not replace the one that is there")
        }
        Method::None => return (Expect::Anything, None),
        Method::Publish | Method::Request => (Expect::Older, OLDER),
        Method::Cancel | Method::Part(_) => {
            let name = if let Method::Part(name) = method { name } else { "CANCEL" };
            let reason = format!("METHOD:{name}, so it does not replace the one that is there");
            return (Expect::Nothing, Some((reason, prepared.bytes().to_vec())));
        }
    };
    (expect, Some((reason.into(), prepared.bytes().to_vec())))
}

/// Text of the input as it may stand in a message: one line, without control characters, of bounded length.
fn shown(text: &str, limit: usize) -> String {
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

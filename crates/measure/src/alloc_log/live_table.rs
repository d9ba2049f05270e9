//! The live objects of a process while its log is read, by the number of their allocation.
//!
//! Numbers are consecutive and most objects die young, so the table has pages of consecutive
//! numbers. A page of which less than a quarter is live is dissolved into a hash table once it is
//! complete. So memory follows the number of live objects, not the length of the log.

use super::memory_prefetch::prefetch;
use super::ring_layout::RingOperation;
use rustc_hash::FxHashMap;

const PAGE_OBJECTS: usize = 1024;
/// A complete page with fewer live objects is dissolved.
const MIN_LIVE_OBJECTS: u32 = PAGE_OBJECTS as u32 / 4;
const NO_PAGE: u32 = u32::MAX;

/// A live object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LiveObject {
    /// The number of its allocation in the process.
    pub(super) ordinal: u64,
    /// The clock after its allocation, see `CallPlace`. The age at a release is the clock before
    /// that, less this.
    pub(super) birth: u64,
    pub(super) size: u64,
    pub(super) allocated_by: RingOperation,
    /// The phase that asked for its size, see `CallVisitor::mark`.
    pub(super) phase: u8,
}

/// The largest size that the table holds. No process has that much memory.
pub(super) const MAX_SIZE: u64 = u64::MAX >> (SIZE_SHIFT + 1);
/// The largest number of a phase.
pub(super) const MAX_PHASE: u8 = 63;

/// The bits of an entry: function, phase, size.
const PHASE_SHIFT: u32 = 5;
const SIZE_SHIFT: u32 = 11;

/// An object in a page: its birth, and its size, phase and function, plus 1; 0: none.
type PageEntry = (u64, u64);

struct ObjectPage {
    entries: [PageEntry; PAGE_OBJECTS],
    live: u32,
}

/// The live objects.
pub(super) struct LiveTable {
    /// The page of each range of numbers, from the first of the process on.
    pages: Vec<u32>,
    pool: Vec<Box<ObjectPage>>,
    free_pages: Vec<u32>,
    scattered: FxHashMap<u64, PageEntry>,
    first_ordinal: u64,
}

fn pack(object: &LiveObject) -> PageEntry {
    let phase = u64::from(object.phase & MAX_PHASE);
    let packed = object.size << SIZE_SHIFT | phase << PHASE_SHIFT | object.allocated_by as u64;
    (object.birth, packed + 1)
}

fn unpack(ordinal: u64, (birth, packed): PageEntry) -> Option<LiveObject> {
    let packed = packed.checked_sub(1)?;
    let allocated_by = *super::ring_layout::ALL_OPERATIONS.get((packed & 31) as usize)?;
    let phase = (packed >> PHASE_SHIFT) as u8 & MAX_PHASE;
    Some(LiveObject { ordinal, birth, size: packed >> SIZE_SHIFT, allocated_by, phase })
}

impl LiveTable {
    /// Creates the table of a process whose first allocation has the number after this one.
    pub(super) fn new(first_ordinal: u64) -> LiveTable {
        LiveTable {
            pages: Vec::new(),
            pool: Vec::new(),
            free_pages: Vec::new(),
            scattered: FxHashMap::default(),
            first_ordinal,
        }
    }

    fn index(&self, ordinal: u64) -> usize {
        ordinal.wrapping_sub(self.first_ordinal) as usize
    }

    /// Adds an object. Numbers are consecutive.
    #[inline(always)]
    pub(super) fn insert(&mut self, object: &LiveObject) {
        let index = self.index(object.ordinal);
        let number = index / PAGE_OBJECTS;
        if number >= self.pages.len() {
            self.add_page(number);
        }
        let page = &mut self.pool[self.pages[number] as usize];
        page.entries[index % PAGE_OBJECTS] = pack(object);
        page.live += 1;
    }

    /// Fetches the memory of an object that is soon asked for, if there is one.
    #[inline(always)]
    pub(super) fn prefetch(&self, ordinal: u64) {
        let index = self.index(ordinal);
        if let Some(page) = self.pages.get(index / PAGE_OBJECTS)
            && let Some(page) = self.pool.get(*page as usize)
        {
            prefetch(&page.entries[index % PAGE_OBJECTS]);
        }
    }

    /// Removes and returns an object.
    #[inline(always)]
    pub(super) fn take(&mut self, ordinal: u64) -> Option<LiveObject> {
        let index = self.index(ordinal);
        let number = index / PAGE_OBJECTS;
        let page = *self.pages.get(number)?;
        if page == NO_PAGE {
            return unpack(ordinal, self.scattered.remove(&ordinal)?);
        }
        let page = &mut self.pool[page as usize];
        let entry = &mut page.entries[index % PAGE_OBJECTS];
        let object = unpack(ordinal, *entry)?;
        // What is left of it is no object.
        entry.1 = 0;
        page.live -= 1;
        if page.live < MIN_LIVE_OBJECTS && number + 1 < self.pages.len() {
            self.dissolve(number);
        }
        Some(object)
    }

    /// Returns an object.
    #[inline(always)]
    pub(super) fn get(&self, ordinal: u64) -> Option<LiveObject> {
        let index = self.index(ordinal);
        let page = *self.pages.get(index / PAGE_OBJECTS)?;
        let entry = if page == NO_PAGE {
            *self.scattered.get(&ordinal)?
        } else {
            self.pool[page as usize].entries[index % PAGE_OBJECTS]
        };
        unpack(ordinal, entry)
    }

    /// Replaces an object that is there.
    #[inline(always)]
    pub(super) fn replace(&mut self, object: &LiveObject) {
        let index = self.index(object.ordinal);
        match self.pages.get(index / PAGE_OBJECTS) {
            Some(&NO_PAGE) => {
                self.scattered.insert(object.ordinal, pack(object));
            }
            Some(&page) => {
                self.pool[page as usize].entries[index % PAGE_OBJECTS] = pack(object);
            }
            None => {}
        }
    }

    /// Returns all live objects.
    pub(super) fn iter(&self) -> impl Iterator<Item = LiveObject> + '_ {
        let in_pages =
            self.pages.iter().enumerate().filter(|(_, page)| **page != NO_PAGE).flat_map(
                move |(number, page)| {
                    let first = self.first_ordinal.wrapping_add((number * PAGE_OBJECTS) as u64);
                    let entries = self.pool[*page as usize].entries.iter().enumerate();
                    entries.filter_map(move |(place, entry)| unpack(first + place as u64, *entry))
                },
            );
        let scattered =
            self.scattered.iter().filter_map(|(ordinal, entry)| unpack(*ordinal, *entry));
        in_pages.chain(scattered)
    }

    #[cold]
    #[inline(never)]
    fn add_page(&mut self, number: usize) {
        // The page before is complete now.
        if let Some(before) = number.checked_sub(1)
            && let Some(&page) = self.pages.get(before)
            && page != NO_PAGE
            && self.pool[page as usize].live < MIN_LIVE_OBJECTS
        {
            self.dissolve(before);
        }
        let page = self.free_pages.pop().unwrap_or_else(|| {
            let empty = ObjectPage { entries: [(0, 0); PAGE_OBJECTS], live: 0 };
            self.pool.push(Box::new(empty));
            (self.pool.len() - 1) as u32
        });
        self.pages.resize(number, NO_PAGE);
        self.pages.push(page);
    }

    #[cold]
    #[inline(never)]
    fn dissolve(&mut self, number: usize) {
        let page = std::mem::replace(&mut self.pages[number], NO_PAGE);
        let first = self.first_ordinal.wrapping_add((number * PAGE_OBJECTS) as u64);
        let objects = &mut self.pool[page as usize];
        if objects.live > 0 {
            for (place, entry) in objects.entries.iter_mut().enumerate() {
                if entry.1 != 0 {
                    self.scattered.insert(first + place as u64, *entry);
                    *entry = (0, 0);
                }
            }
        }
        objects.live = 0;
        self.free_pages.push(page);
    }
}

//! The objects that are live in a recorded process, by address.
//!
//! A hash table whose buckets of 128 bytes have the objects themselves, so that a call waits for
//! memory once, wherever its object is. The pages of the program's memory are spread by a hash, and
//! the lines of a page have buckets next to each other: objects that are allocated one after the
//! other are mostly found in memory that the processor has fetched already.
//!
//! The table grows by one bucket at a time (linear hashing, Litwin 1980), so it has about the same
//! number of bytes for each object at any size. A bucket that is full has overflow buckets. Copies
//! share their pages until one is changed. A program that chooses its addresses can put many
//! objects into one chain, and so make its own recording slow.

use super::call_token::usual_release;
use super::memory_prefetch::prefetch;
use super::ring_layout::RingOperation;
use super::shared_pages::SharedPages;
use rustc_hash::FxHashMap;

#[cfg(test)]
mod tests;

/// The bits of a packed object that are its function.
const FUNCTION_BITS: u32 = 5;
/// The objects of a bucket.
const BUCKET_OBJECTS: usize = 7;
/// The bits of a tag.
const TAG_BITS: usize = u8::BITS as usize;
/// The objects for which the table has one more bucket.
const MEAN_OBJECTS: usize = 5;
/// The buckets of an empty table, a power of two.
const FIRST_BUCKETS: usize = 16;
/// The part of the buckets, as a divisor, that may have as many overflow buckets for old objects:
/// those stay there, and an overflow bucket of a young one is soon free again.
const OLD_OVERFLOW_DIVISOR: usize = 6;
/// Buckets in a page that copies share.
const BUCKETS_IN_PAGE: usize = 8;
/// The tag of a place without an object.
const VACANT: u8 = 0;
/// The byte behind the tags of a bucket.
const END: u8 = u8::MAX;
/// The tags of a bucket without objects.
const NO_TAGS: u64 = (END as u64) << (BUCKET_OBJECTS * TAG_BITS);
/// The end of a chain of buckets.
const NO_BUCKET: u32 = u32::MAX;
/// The bits of the key of an address: it is divided by 8, which all addresses are multiples of.
const KEY_BITS: u32 = 44;
/// The bits of a key that are a place in a page of the program's memory, 4 KiB.
const PAGE_KEY_BITS: u32 = 9;
/// The bits of a key that are a place in a line of the program's memory, 64 bytes.
const LINE_KEY_BITS: u32 = 3;
/// The bits of an entry that are the ordinal.
const ORDINAL_BITS: u32 = 45;
/// The bits of a packed object beside the key, and beside the ordinal.
const LOW_BITS: u32 = u64::BITS - KEY_BITS;
const HIGH_BITS: u32 = u64::BITS - ORDINAL_BITS;
/// From this size on, the size is in `large_sizes`, and an entry has this value.
const LARGE_BYTES: u64 = (1 << (LOW_BITS + HIGH_BITS - FUNCTION_BITS)) - 1;
/// The golden ratio, in 64 bits.
const HASH_MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// An object that is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeapObject {
    /// The number of its allocation in the process, from 1 on; below 2^45, which takes a program
    /// that does nothing else some weeks.
    pub(super) ordinal: u64,
    /// Its size, and the function that usually releases it.
    packed: u64,
}

/// An object and its address.
#[derive(Debug, Clone, Copy)]
struct BucketEntry {
    /// The key, and the lower bits of size and function.
    key_and_low: u64,
    /// The ordinal, and the higher bits of the size.
    ordinal_and_high: u64,
}

/// Objects whose addresses have hashes that lead here, in any order.
///
/// In the order of C: the tags, which each search reads first, are in the first line of memory that
/// is fetched, also where a bucket begins in the middle of a line and ends in a third one.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Bucket {
    /// A byte of the hash of each object, so that most of the others need not be compared, and
    /// [`END`]. One number, which is read and written as a whole: a processor that has just
    /// written a byte of it would wait before it reads all.
    tags: u64,
    /// The next overflow bucket of the chain. Of a free overflow bucket: the next free one.
    next_overflow: u32,
    /// Of the first bucket of a chain: a bit for the tag of each object in the others, and perhaps
    /// for some that were there.
    chain_tags: u32,
    entries: [BucketEntry; BUCKET_OBJECTS],
}

/// A map from addresses to objects.
pub(super) struct AddressTable {
    buckets: SharedPages<Bucket, BUCKETS_IN_PAGE>,
    /// As many ones as the index of the last bucket has bits.
    mask: u32,
    overflow: SharedPages<Bucket, BUCKETS_IN_PAGE>,
    /// The first overflow bucket that is free.
    first_free: u32,
    /// The number of overflow buckets that are not free.
    overflow_count: usize,
    object_count: usize,
    /// The sizes from [`LARGE_BYTES`] on, by key.
    large_sizes: FxHashMap<u64, u64>,
}

impl HeapObject {
    #[inline(always)]
    pub(super) fn new(ordinal: u64, size: u64, allocated_by: RingOperation) -> HeapObject {
        let release = usual_release(allocated_by) as u64;
        HeapObject { ordinal, packed: size << FUNCTION_BITS | release }
    }

    #[inline(always)]
    pub(super) fn size(self) -> u64 {
        self.packed >> FUNCTION_BITS
    }

    /// Returns the object with another size.
    #[inline(always)]
    pub(super) fn with_size(self, size: u64) -> HeapObject {
        let packed = (size << FUNCTION_BITS) | (self.packed % (1 << FUNCTION_BITS));
        HeapObject { packed, ..self }
    }

    #[inline(always)]
    pub(super) fn is_usual_release(self, operation: RingOperation) -> bool {
        self.packed % (1 << FUNCTION_BITS) == operation as u64
    }
}

impl AddressTable {
    pub(super) fn new() -> AddressTable {
        let mut buckets = SharedPages::new();
        for _ in 0..FIRST_BUCKETS {
            buckets.push(Bucket::EMPTY);
        }
        AddressTable {
            buckets,
            mask: FIRST_BUCKETS as u32 - 1,
            overflow: SharedPages::new(),
            first_free: NO_BUCKET,
            overflow_count: 0,
            object_count: 0,
            large_sizes: FxHashMap::default(),
        }
    }

    /// Returns a copy that shares its pages with this table.
    pub(super) fn share(&mut self) -> AddressTable {
        AddressTable {
            buckets: self.buckets.share(),
            overflow: self.overflow.share(),
            large_sizes: self.large_sizes.clone(),
            ..*self
        }
    }

    /// Fetches the bucket of an address that is soon asked for.
    #[inline(always)]
    pub(super) fn prefetch(&self, address: u64) {
        prefetch(self.buckets.get(self.home(key(address))));
    }

    /// Puts an object at an address. Returns whether there was another one.
    #[inline]
    pub(super) fn put(&mut self, address: u64, object: HeapObject) -> bool {
        let key = key(address);
        if object.size() >= LARGE_BYTES {
            self.large_sizes.insert(key, object.size());
        }
        let (home, tag, entry) = (self.home(key), tag(key), BucketEntry::new(key, object));
        let bucket = self.buckets.get_mut(home);
        let replaced = match bucket.find(tag, key) {
            Some(place) => Some(std::mem::replace(&mut bucket.entries[place], entry)),
            None if bucket.chain_tags & tag_bit(tag) != 0 => self.put_in_chain(home, tag, entry),
            None => {
                match bucket.vacancy() {
                    Some(place) => bucket.set(place, tag, entry),
                    None => self.put_in_full(home, tag, entry),
                }
                None
            }
        };
        let Some(replaced) = replaced else {
            self.count_object();
            return false;
        };
        if replaced.object().size() >= LARGE_BYTES && object.size() < LARGE_BYTES {
            self.large_sizes.remove(&key);
        }
        true
    }

    /// Takes the object at an address out.
    #[inline]
    pub(super) fn take(&mut self, address: u64) -> Option<HeapObject> {
        let key = key(address);
        let (home, tag) = (self.home(key), tag(key));
        let bucket = self.buckets.get(home);
        let entry = match bucket.find(tag, key) {
            Some(place) => self.buckets.get_mut(home).take(place),
            None if bucket.chain_tags & tag_bit(tag) == 0 => return None,
            None => self.take_from_chain(home, tag, key)?,
        };
        self.object_count -= 1;
        let object = entry.object();
        if object.size() < LARGE_BYTES {
            return Some(object);
        }
        let size = self.large_sizes.remove(&key);
        Some(size.map_or(object, |size| object.with_size(size)))
    }

    /// Returns the object at an address.
    pub(super) fn get(&self, address: u64) -> Option<HeapObject> {
        let key = key(address);
        let mut bucket = self.buckets.get(self.home(key));
        loop {
            if let Some(place) = bucket.find(tag(key), key) {
                let object = bucket.entries[place].object();
                if object.size() < LARGE_BYTES {
                    return Some(object);
                }
                let size = self.large_sizes.get(&key);
                return Some(size.map_or(object, |size| object.with_size(*size)));
            }
            if bucket.next_overflow == NO_BUCKET {
                return None;
            }
            bucket = self.overflow.get(bucket.next_overflow);
        }
    }

    /// Puts an object into a chain of buckets. Returns the one with its address that was there.
    #[inline(never)]
    fn put_in_chain(&mut self, home: u32, tag: u8, entry: BucketEntry) -> Option<BucketEntry> {
        let mut next = self.buckets.get(home).next_overflow;
        let mut chain_tags = 0;
        while next != NO_BUCKET {
            let bucket = self.overflow.get(next);
            if let Some(place) = bucket.find(tag, entry.key()) {
                let known = &mut self.overflow.get_mut(next).entries[place];
                return Some(std::mem::replace(known, entry));
            }
            chain_tags |= bucket.tag_bits();
            next = bucket.next_overflow;
        }
        let bucket = self.buckets.get_mut(home);
        bucket.chain_tags = chain_tags;
        match bucket.vacancy() {
            Some(place) => bucket.set(place, tag, entry),
            None => self.put_in_full(home, tag, entry),
        }
        None
    }

    /// Puts an object into a bucket that is full, in place of the oldest one, which moves into the
    /// chain: the next one that is asked for is rather young than old. If too many are there
    /// already, the object itself goes into the chain.
    #[inline(never)]
    fn put_in_full(&mut self, home: u32, tag: u8, entry: BucketEntry) {
        let may_move = self.overflow_count * OLD_OVERFLOW_DIVISOR < self.buckets.len();
        let bucket = self.buckets.get_mut(home);
        let (tag, entry) = match may_move {
            true => bucket.replace_oldest(tag, entry),
            false => (tag, entry),
        };
        bucket.chain_tags |= tag_bit(tag);
        let mut next = bucket.next_overflow;
        while next != NO_BUCKET {
            let bucket = self.overflow.get(next);
            if let Some(place) = bucket.vacancy() {
                return self.overflow.get_mut(next).set(place, tag, entry);
            }
            next = bucket.next_overflow;
        }
        self.add_overflow(home, tag, entry);
    }

    /// Takes the object of a key out of the overflow buckets of a bucket. One that is empty then is
    /// free.
    #[inline(never)]
    fn take_from_chain(&mut self, home: u32, tag: u8, key: u64) -> Option<BucketEntry> {
        let mut before = NO_BUCKET;
        let mut index = self.buckets.get(home).next_overflow;
        while index != NO_BUCKET {
            let bucket = self.overflow.get(index);
            let next = bucket.next_overflow;
            let Some(place) = bucket.find(tag, key) else {
                (before, index) = (index, next);
                continue;
            };
            let bucket = self.overflow.get_mut(index);
            let entry = bucket.take(place);
            if bucket.tags == NO_TAGS {
                self.free_bucket(index);
                match before {
                    NO_BUCKET => self.buckets.get_mut(home).set_chain(next),
                    before => self.overflow.get_mut(before).next_overflow = next,
                }
            }
            return Some(entry);
        }
        None
    }

    /// Gives back an overflow bucket that is in no chain any more.
    fn free_bucket(&mut self, index: u32) {
        self.overflow.get_mut(index).next_overflow = self.first_free;
        self.first_free = index;
        self.overflow_count -= 1;
    }

    /// Adds an overflow bucket with an object to a bucket that is full, as the first of its chain.
    #[cold]
    #[inline(never)]
    fn add_overflow(&mut self, home: u32, tag: u8, entry: BucketEntry) {
        let first = self.buckets.get_mut(home);
        first.chain_tags |= tag_bit(tag);
        let mut bucket = Bucket { next_overflow: first.next_overflow, ..Bucket::EMPTY };
        bucket.set(0, tag, entry);
        let index = match self.first_free {
            NO_BUCKET => self.overflow.push(bucket),
            free => {
                self.first_free = self.overflow.get(free).next_overflow;
                *self.overflow.get_mut(free) = bucket;
                free
            }
        };
        self.buckets.get_mut(home).next_overflow = index;
        self.overflow_count += 1;
    }

    /// Counts an object that was added, and adds a bucket if the mean is above [`MEAN_OBJECTS`].
    #[inline(always)]
    fn count_object(&mut self) {
        self.object_count += 1;
        if self.object_count > self.buckets.len() * MEAN_OBJECTS {
            self.split_bucket();
        }
    }

    /// Adds a bucket, which gets the objects of an earlier one whose hashes lead to it.
    #[cold]
    #[inline(never)]
    fn split_bucket(&mut self) {
        let added = self.buckets.push(Bucket::EMPTY);
        self.mask |= added;
        let split = added & (self.mask >> 1);
        let mut bucket = std::mem::replace(self.buckets.get_mut(split), Bucket::EMPTY);
        loop {
            let places = bucket.tags.to_le_bytes().into_iter().zip(bucket.entries);
            for (tag, entry) in places.filter(|(tag, _)| *tag != VACANT) {
                self.add_again(tag, entry);
            }
            let index = bucket.next_overflow;
            if index == NO_BUCKET {
                return;
            }
            bucket = *self.overflow.get(index);
            self.free_bucket(index);
        }
    }

    /// Adds an object to a bucket to which only objects were added since it was empty: of its
    /// chain, all overflow buckets but the first are full.
    fn add_again(&mut self, tag: u8, entry: BucketEntry) {
        let home = self.home(entry.key());
        let bucket = self.buckets.get_mut(home);
        if let Some(place) = bucket.vacancy() {
            return bucket.set(place, tag, entry);
        }
        bucket.chain_tags |= tag_bit(tag);
        let next = bucket.next_overflow;
        if next != NO_BUCKET
            && let Some(place) = self.overflow.get(next).vacancy()
        {
            return self.overflow.get_mut(next).set(place, tag, entry);
        }
        self.add_overflow(home, tag, entry);
    }

    /// Returns the index of the bucket that a key leads to.
    #[inline(always)]
    fn home(&self, key: u64) -> u32 {
        let line = (key % (1 << PAGE_KEY_BITS)) >> LINE_KEY_BITS;
        let product = (key >> PAGE_KEY_BITS).wrapping_mul(HASH_MULTIPLIER);
        // Only the highest bits of a product depend on all bits of the page.
        let hash = product ^ product >> 29;
        let index = hash.wrapping_add(line) as u32 & self.mask;
        // The objects of a bucket that is not there yet are in the one that will be split for it.
        if index as usize >= self.buckets.len() { index & (self.mask >> 1) } else { index }
    }

    /// Returns the bytes that are not shared with a table of which this one is a copy.
    pub(super) fn bytes_apart(&self, other: &AddressTable) -> usize {
        self.buckets.bytes_apart(&other.buckets) + self.overflow.bytes_apart(&other.overflow)
    }

    /// Returns how many pages are not shared with a copy.
    #[cfg(test)]
    pub(super) fn own_pages(&self) -> usize {
        self.buckets.own_pages() + self.overflow.own_pages()
    }
}

impl BucketEntry {
    const NONE: BucketEntry = BucketEntry { key_and_low: 0, ordinal_and_high: 0 };

    #[inline(always)]
    fn new(key: u64, object: HeapObject) -> BucketEntry {
        let object = object.with_size(object.size().min(LARGE_BYTES));
        BucketEntry {
            key_and_low: (key << LOW_BITS) | (object.packed % (1 << LOW_BITS)),
            ordinal_and_high: object.ordinal << HIGH_BITS | object.packed >> LOW_BITS,
        }
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self.key_and_low >> LOW_BITS
    }

    /// Returns the object; one of [`LARGE_BYTES`] has that size or a larger one.
    #[inline(always)]
    fn object(self) -> HeapObject {
        let high = self.ordinal_and_high % (1 << HIGH_BITS);
        let packed = (high << LOW_BITS) | (self.key_and_low % (1 << LOW_BITS));
        HeapObject { ordinal: self.ordinal_and_high >> HIGH_BITS, packed }
    }
}

impl Bucket {
    const EMPTY: Bucket = Bucket {
        tags: NO_TAGS,
        next_overflow: NO_BUCKET,
        chain_tags: 0,
        entries: [BucketEntry::NONE; BUCKET_OBJECTS],
    };

    /// Returns the place of a key.
    #[inline(always)]
    fn find(&self, tag: u8, key: u64) -> Option<usize> {
        let mut equal = equal_bytes(self.tags, tag);
        while equal != 0 {
            let place = equal.trailing_zeros() as usize / TAG_BITS;
            if self.entries.get(place).is_some_and(|entry| entry.key() == key) {
                return Some(place);
            }
            equal &= equal - 1;
        }
        None
    }

    /// Returns a place without an object.
    #[inline(always)]
    fn vacancy(&self) -> Option<usize> {
        let vacant = equal_bytes(self.tags, VACANT);
        (vacant != 0).then(|| vacant.trailing_zeros() as usize / TAG_BITS)
    }

    #[inline(always)]
    fn set(&mut self, place: usize, tag: u8, entry: BucketEntry) {
        self.set_tag(place, tag);
        self.entries[place] = entry;
    }

    /// Returns a bit for the tag of each object.
    fn tag_bits(&self) -> u32 {
        let tags = self.tags.to_le_bytes().into_iter().take(BUCKET_OBJECTS);
        tags.filter(|tag| *tag != VACANT).fold(0, |bits, tag| bits | tag_bit(tag))
    }

    /// Sets the next overflow bucket of the first bucket of a chain.
    fn set_chain(&mut self, next: u32) {
        self.next_overflow = next;
        if next == NO_BUCKET {
            self.chain_tags = 0;
        }
    }

    #[inline(always)]
    fn set_tag(&mut self, place: usize, tag: u8) {
        let shift = place * TAG_BITS;
        self.tags = self.tags & !(u64::from(u8::MAX) << shift) | u64::from(tag) << shift;
    }

    /// Puts an object in place of the oldest one, which is returned. All places have one.
    #[inline(always)]
    fn replace_oldest(&mut self, tag: u8, entry: BucketEntry) -> (u8, BucketEntry) {
        let ages = self.entries.iter().map(|entry| entry.ordinal_and_high).enumerate();
        let place = ages.min_by_key(|(_, ordinal)| *ordinal).map_or(0, |(place, _)| place);
        let oldest = ((self.tags >> (place * TAG_BITS)) as u8, self.entries[place]);
        self.set(place, tag, entry);
        oldest
    }

    #[inline(always)]
    fn take(&mut self, place: usize) -> BucketEntry {
        self.set_tag(place, VACANT);
        self.entries[place]
    }
}

/// Returns a number whose bytes have the highest bit where those of `bytes` are equal to `byte`.
#[inline(always)]
fn equal_bytes(bytes: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const LOW_BITS: u64 = ONES * 0x7F;
    let differences = bytes ^ (ONES * u64::from(byte));
    !(((differences & LOW_BITS) + LOW_BITS) | differences | LOW_BITS)
}

/// Returns the key of an address.
#[inline(always)]
fn key(address: u64) -> u64 {
    (address >> 3) % (1 << KEY_BITS)
}

/// Returns the tag of a key: neither [`VACANT`] nor [`END`].
#[inline(always)]
fn tag(key: u64) -> u8 {
    let hash = key.wrapping_mul(HASH_MULTIPLIER) >> u32::BITS;
    ((hash * u64::from(END - 1)) >> u32::BITS) as u8 + 1
}

/// Returns the bit of a tag among those of a chain.
#[inline(always)]
fn tag_bit(tag: u8) -> u32 {
    1 << (tag % u32::BITS as u8)
}

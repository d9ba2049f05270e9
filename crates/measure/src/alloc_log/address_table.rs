//! The objects that are live in a recorded process, by address.
//!
//! A map in three steps: a small cache leads from a region of 16 KiB to its blocks of 1 KiB without
//! hashing, and a block has a place for every address that is a multiple of 16. Measured on the
//! calls of `hg clone`, it takes an eighth of the time of a hash table, because neighbours are
//! allocated together. Addresses that are only multiples of 8, which some allocators return for
//! small objects, are in regions of their own. Copies share their pages until one is changed.
//!
//! A table of places for every block would take 256 bytes an object in a heap of large objects. So
//! a block in which one object begins has it in its region, one of up to eight has a list, and
//! tables of which little is left are made lists whenever their number has doubled.

use super::shared_pages::SharedPages;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// An index into the table of objects; 0: none.
pub(super) type ObjectSlot = u32;

const REGION_LOG2: u32 = 14;
const BLOCK_LOG2: u32 = 10;
const BLOCKS: usize = 1 << (REGION_LOG2 - BLOCK_LOG2);
const PLACES: usize = 1 << (BLOCK_LOG2 - 4);
const LIST_OBJECTS: usize = 8;
/// No place of a block.
const VACANT: u8 = u8::MAX;
const CACHE_ENTRIES: usize = 1024;
/// Regions, lists and tables in a page that copies share.
const REGIONS_IN_PAGE: usize = 16;
const LISTS_IN_PAGE: usize = 32;
const TABLES_IN_PAGE: usize = 8;
/// Fewer tables are not looked through for those with few objects.
const MIN_CROWD: usize = 4096;

/// The objects that begin in a block.
#[derive(Debug, Clone, Copy)]
enum AddressBlock {
    Empty,
    One {
        place: u8,
        slot: ObjectSlot,
    },
    /// The index of a list.
    List(u32),
    /// The index of a table.
    Table(u32),
}

/// The blocks of a region, by index.
type RegionBlocks = [AddressBlock; BLOCKS];
/// The objects of a block by place.
type PlaceTable = [ObjectSlot; PLACES];

/// The objects of a block in any order. A vacancy has the place [`VACANT`].
#[derive(Debug, Clone, Copy)]
struct PlaceList {
    places: [u8; LIST_OBJECTS],
    slots: [ObjectSlot; LIST_OBJECTS],
}

/// A map from addresses to objects.
pub(super) struct AddressTable {
    region_numbers: Rc<FxHashMap<u64, u32>>,
    regions: SharedPages<RegionBlocks, REGIONS_IN_PAGE>,
    lists: BlockPool<PlaceList, LISTS_IN_PAGE>,
    tables: BlockPool<PlaceTable, TABLES_IN_PAGE>,
    /// The number of tables in use at which those with few objects are looked for.
    crowd: usize,
    /// For a remainder of region numbers: the region met last, and its index.
    cache: Box<[(u64, u32); CACHE_ENTRIES]>,
}

impl AddressTable {
    pub(super) fn new() -> AddressTable {
        AddressTable {
            region_numbers: Rc::default(),
            regions: SharedPages::new(),
            lists: BlockPool::new(),
            tables: BlockPool::new(),
            crowd: MIN_CROWD,
            cache: Box::new([(u64::MAX, 0); CACHE_ENTRIES]),
        }
    }

    /// Returns a copy that shares its pages with this table.
    pub(super) fn share(&mut self) -> AddressTable {
        AddressTable {
            region_numbers: Rc::clone(&self.region_numbers),
            regions: self.regions.share(),
            lists: self.lists.share(),
            tables: self.tables.share(),
            crowd: self.crowd,
            cache: self.cache.clone(),
        }
    }

    /// Puts an object at an address; returns the former one, or 0.
    #[inline]
    pub(super) fn put(&mut self, address: u64, slot: ObjectSlot) -> ObjectSlot {
        let region = self.region(address);
        match self.regions.get(region)[block_in_region(address)] {
            AddressBlock::Table(table) => {
                let place = &mut self.tables.get_mut(table)[place_in_block(address)];
                std::mem::replace(place, slot)
            }
            block => self.put_in_small(region, block, address, slot),
        }
    }

    /// Takes the object at an address out; returns 0 if there is none.
    #[inline]
    pub(super) fn take(&mut self, address: u64) -> ObjectSlot {
        let region = self.region(address);
        match self.regions.get(region)[block_in_region(address)] {
            AddressBlock::Table(table) => {
                std::mem::take(&mut self.tables.get_mut(table)[place_in_block(address)])
            }
            block => self.take_from_small(region, block, address),
        }
    }

    /// Returns the object at an address; 0 if there is none.
    pub(super) fn get(&mut self, address: u64) -> ObjectSlot {
        let region = self.region(address);
        let place = place_in_block(address);
        match self.regions.get(region)[block_in_region(address)] {
            AddressBlock::Table(table) => self.tables.get(table)[place],
            AddressBlock::List(list) => {
                let list = self.lists.get(list);
                list.find(place as u8).map_or(0, |index| list.slots[index])
            }
            AddressBlock::One { place: taken, slot } if usize::from(taken) == place => slot,
            AddressBlock::One { .. } | AddressBlock::Empty => 0,
        }
    }

    /// Puts an object into a block that has no table; returns the former one, or 0.
    fn put_in_small(
        &mut self,
        region: u32,
        block: AddressBlock,
        address: u64,
        slot: ObjectSlot,
    ) -> ObjectSlot {
        let place = place_in_block(address) as u8;
        let (block, former) = match block {
            AddressBlock::One { place: taken, slot: former } if taken == place => {
                (AddressBlock::One { place, slot }, former)
            }
            AddressBlock::One { place: taken, slot: other } => {
                let mut list = PlaceList::EMPTY;
                (list.places[0], list.slots[0]) = (taken, other);
                (list.places[1], list.slots[1]) = (place, slot);
                (AddressBlock::List(self.lists.add(list)), 0)
            }
            AddressBlock::List(list) => {
                let objects = self.lists.get_mut(list);
                match objects.find(place).or_else(|| objects.find(VACANT)) {
                    Some(index) => {
                        objects.places[index] = place;
                        return std::mem::replace(&mut objects.slots[index], slot);
                    }
                    None => (self.make_table(list, place, slot), 0),
                }
            }
            AddressBlock::Empty | AddressBlock::Table(_) => (AddressBlock::One { place, slot }, 0),
        };
        self.regions.get_mut(region)[block_in_region(address)] = block;
        former
    }

    /// Takes an object out of a block that has no table; returns 0 if it is not there.
    fn take_from_small(&mut self, region: u32, block: AddressBlock, address: u64) -> ObjectSlot {
        let place = place_in_block(address) as u8;
        let slot = match block {
            AddressBlock::One { place: taken, slot } if taken == place => slot,
            AddressBlock::List(list) => {
                let objects = self.lists.get_mut(list);
                let slot = objects.take(place);
                if slot == 0 || !objects.is_empty() {
                    return slot;
                }
                self.lists.remove(list);
                slot
            }
            AddressBlock::One { .. } | AddressBlock::Empty | AddressBlock::Table(_) => return 0,
        };
        self.regions.get_mut(region)[block_in_region(address)] = AddressBlock::Empty;
        slot
    }

    /// Makes a table of a full list and one more object.
    #[cold]
    #[inline(never)]
    fn make_table(&mut self, list: u32, place: u8, slot: ObjectSlot) -> AddressBlock {
        if self.tables.used() >= self.crowd {
            self.dissolve_tables();
            self.crowd = MIN_CROWD.max(self.tables.used() * 2);
        }
        let mut table = [0; PLACES];
        let objects = self.lists.get(list);
        for (place, slot) in objects.places.iter().zip(objects.slots) {
            table[usize::from(*place)] = slot;
        }
        table[usize::from(place)] = slot;
        self.lists.remove(list);
        AddressBlock::Table(self.tables.add(table))
    }

    /// Makes lists of the tables of which half a list is left.
    fn dissolve_tables(&mut self) {
        for region in 0..self.regions.len() as u32 {
            for block in 0..BLOCKS {
                let AddressBlock::Table(number) = self.regions.get(region)[block] else { continue };
                let table = self.tables.get(number);
                let live = table.iter().filter(|slot| **slot != 0).count();
                if live > LIST_OBJECTS / 2 {
                    continue;
                }
                let list = PlaceList::from_table(table);
                self.tables.remove(number);
                self.regions.get_mut(region)[block] = if live == 0 {
                    AddressBlock::Empty
                } else {
                    AddressBlock::List(self.lists.add(list))
                };
            }
        }
    }

    /// Returns the index of the region of an address.
    #[inline(always)]
    fn region(&mut self, address: u64) -> u32 {
        let region = region_number(address);
        let (cached, index) = self.cache[cache_place(region)];
        if cached == region { index } else { self.find_region(region) }
    }

    #[cold]
    #[inline(never)]
    fn find_region(&mut self, region: u64) -> u32 {
        let index = match self.region_numbers.get(&region) {
            Some(index) => *index,
            None => {
                let index = self.regions.push([AddressBlock::Empty; BLOCKS]);
                Rc::make_mut(&mut self.region_numbers).insert(region, index);
                index
            }
        };
        self.cache[cache_place(region)] = (region, index);
        index
    }

    /// Returns the bytes that are not shared with a table of which this one is a copy.
    pub(super) fn bytes_apart(&self, other: &AddressTable) -> usize {
        self.regions.bytes_apart(&other.regions)
            + self.lists.blocks.bytes_apart(&other.lists.blocks)
            + self.tables.blocks.bytes_apart(&other.tables.blocks)
    }

    /// Returns how many pages are not shared with a copy.
    #[cfg(test)]
    pub(super) fn own_pages(&self) -> usize {
        self.regions.own_pages() + self.lists.blocks.own_pages() + self.tables.blocks.own_pages()
    }
}

impl PlaceList {
    const EMPTY: PlaceList = PlaceList { places: [VACANT; LIST_OBJECTS], slots: [0; LIST_OBJECTS] };

    /// Creates the list of a table that has no more objects.
    fn from_table(table: &PlaceTable) -> PlaceList {
        let mut list = PlaceList::EMPTY;
        let objects = table.iter().enumerate().filter(|(_, slot)| **slot != 0);
        for (index, (place, slot)) in objects.take(LIST_OBJECTS).enumerate() {
            (list.places[index], list.slots[index]) = (place as u8, *slot);
        }
        list
    }

    /// Returns the index of the object at a place, or of the first vacancy.
    #[inline(always)]
    fn find(&self, place: u8) -> Option<usize> {
        const ONES: u64 = u64::MAX / 255;
        // The lowest byte that is zero is the lowest whose borrow reaches its high bit.
        let differences = u64::from_le_bytes(self.places) ^ (ONES * u64::from(place));
        let equal = differences.wrapping_sub(ONES) & !differences & (ONES << 7);
        (equal != 0).then(|| equal.trailing_zeros() as usize / 8)
    }

    /// Takes the object at a place out; returns 0 if it is not there.
    #[inline(always)]
    fn take(&mut self, place: u8) -> ObjectSlot {
        let Some(index) = self.find(place) else { return 0 };
        self.places[index] = VACANT;
        std::mem::take(&mut self.slots[index])
    }

    fn is_empty(&self) -> bool {
        self.places == [VACANT; LIST_OBJECTS]
    }
}

/// A block that leads to another one while it is free.
trait FreeBlock: Copy {
    fn next_free(&mut self) -> &mut u32;
}

impl FreeBlock for PlaceList {
    #[inline(always)]
    fn next_free(&mut self) -> &mut u32 {
        let [first, ..] = &mut self.slots;
        first
    }
}

impl FreeBlock for PlaceTable {
    #[inline(always)]
    fn next_free(&mut self) -> &mut u32 {
        let [first, ..] = self;
        first
    }
}

/// Lists or tables, of which those given back are used again. These are a chain, so copies share it
/// with the blocks.
struct BlockPool<T, const LEN: usize> {
    blocks: SharedPages<T, LEN>,
    /// The block that was given back last, if there are any, and their number.
    last_free: u32,
    free: usize,
}

impl<T: FreeBlock, const LEN: usize> BlockPool<T, LEN> {
    fn new() -> BlockPool<T, LEN> {
        BlockPool { blocks: SharedPages::new(), last_free: 0, free: 0 }
    }

    fn share(&mut self) -> BlockPool<T, LEN> {
        BlockPool { blocks: self.blocks.share(), last_free: self.last_free, free: self.free }
    }

    #[inline(always)]
    fn get(&self, index: u32) -> &T {
        self.blocks.get(index)
    }

    #[inline(always)]
    fn get_mut(&mut self, index: u32) -> &mut T {
        self.blocks.get_mut(index)
    }

    fn add(&mut self, block: T) -> u32 {
        if self.free == 0 {
            return self.blocks.push(block);
        }
        let index = self.last_free;
        let place = self.blocks.get_mut(index);
        self.last_free = *place.next_free();
        self.free -= 1;
        *place = block;
        index
    }

    fn remove(&mut self, index: u32) {
        *self.blocks.get_mut(index).next_free() = self.last_free;
        self.last_free = index;
        self.free += 1;
    }

    fn used(&self) -> usize {
        self.blocks.len() - self.free
    }
}

/// Returns the region of an address; odd multiples of 8 are in others than even ones.
#[inline(always)]
fn region_number(address: u64) -> u64 {
    address >> REGION_LOG2 | (address & 8) << 60
}

/// Returns the place of a region in the cache; both kinds of a region are far from each other.
#[inline(always)]
fn cache_place(region: u64) -> usize {
    (region ^ region >> 54) as usize % CACHE_ENTRIES
}

#[inline(always)]
fn block_in_region(address: u64) -> usize {
    (address >> BLOCK_LOG2) as usize % BLOCKS
}

#[inline(always)]
fn place_in_block(address: u64) -> usize {
    (address >> 4) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_is_a_map(
            steps in prop::collection::vec((0_u64..4096, 0_u8..8), 0..600),
            puts in 2_u8..7,
        ) {
            let (mut table, mut model) = (AddressTable::new(), HashMap::new());
            let mut copies = Vec::new();
            for (number, (place, choice)) in steps.into_iter().enumerate() {
                // Addresses in a few regions that share entries of the cache; those of one block
                // are met often enough to have a table.
                let address = (place & 63) * 8 + (place >> 10) * (1 << (REGION_LOG2 + 9));
                let slot = number as u32 + 1;
                prop_assert_eq!(table.get(address), model.get(&address).copied().unwrap_or(0));
                let (found, expected) = if choice < puts {
                    (table.put(address, slot), model.insert(address, slot))
                } else {
                    (table.take(address), model.remove(&address))
                };
                prop_assert_eq!(found, expected.unwrap_or(0));
                if number % 100 == 99 {
                    table.dissolve_tables();
                    copies.push((table.share(), model.clone()));
                }
            }
            copies.push((table, model));
            for (mut table, model) in copies {
                for (address, slot) in model {
                    prop_assert_eq!(table.take(address), slot);
                }
                prop_assert_eq!(table.lists.used(), 0);
                table.dissolve_tables();
                prop_assert_eq!(table.tables.used(), 0);
            }
        }
    }

    /// Returns the bytes of a table.
    fn bytes(table: &AddressTable) -> usize {
        table.bytes_apart(&AddressTable::new())
    }

    #[test]
    fn large_objects_take_few_bytes() {
        for size in [64_u64, 112, 128, 208, 304, 528, 1056, 4112] {
            let mut table = AddressTable::new();
            let count = 100_000;
            (0..count).for_each(|number| assert_eq!(table.put(number * size, 1), 0));
            let each = bytes(&table) as f64 / count as f64;
            assert!(each < 36.0, "{size} bytes: {each} of the table");
        }
    }

    /// Blocks that are given back cost a copy nothing: they are in pages of both.
    #[test]
    fn free_blocks_are_shared() {
        let mut table = AddressTable::new();
        let count = 100_000;
        // Two objects in each block have a list.
        (0..count).for_each(|number| assert_eq!(table.put(number * 512, 1), 0));
        (0..count).for_each(|number| assert_eq!(table.take(number * 512), 1));
        assert_eq!(table.lists.free as u64, count / 2);
        let mut copy = table.share();
        assert_eq!((table.own_pages(), copy.own_pages()), (0, 0));
        (0..2).for_each(|number| assert_eq!(copy.put(number * 512, 1), 0));
        assert_eq!((copy.lists.used(), table.lists.used()), (1, 0));
        // Those of the region and of the list.
        assert_eq!(copy.own_pages(), 2);
    }

    #[test]
    fn a_heap_that_has_shrunk_gives_its_tables_back() {
        let mut table = AddressTable::new();
        let fill = |table: &mut AddressTable, start: u64| {
            (0..200_000_u64).for_each(|number| assert_eq!(table.put(start + number * 64, 1), 0));
        };
        fill(&mut table, 0);
        let full = table.tables.used();
        (0..200_000).for_each(|number| assert_eq!(table.take(number * 64), 1));
        fill(&mut table, 1 << 40);
        assert!(table.tables.used() < full + full / 2, "{} after {full}", table.tables.used());
        assert!(table.tables.blocks.len() < full + full / 2);
    }
}

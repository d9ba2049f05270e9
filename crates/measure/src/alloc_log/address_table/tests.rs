//! Tests of the table: a map, in few bytes, whose copies share their pages.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn object(ordinal: u64, size: u64) -> HeapObject {
    HeapObject::new(ordinal, size, RingOperation::New)
}

/// Sizes for which an entry has room, just so, or not.
fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_u64, LARGE_BYTES - 2..LARGE_BYTES + 3, Just(u64::MAX >> FUNCTION_BITS)]
}

proptest! {
    #[test]
    fn it_is_a_map(
        steps in prop::collection::vec((0_u64..4096, 0_u8..8, any_size()), 0..1500),
        puts in 2_u8..7,
        spread in 3_u32..30,
    ) {
        let (mut table, mut model) = (AddressTable::new(), HashMap::new());
        let mut copies = Vec::new();
        for (number, (place, choice, size)) in steps.into_iter().enumerate() {
            // Neighbours, and others at distances that are those of parts, pages, or more.
            let address = (place & 255) * 8 + ((place >> 8) << spread);
            let new = object(number as u64 + 1, size);
            prop_assert_eq!(table.get(address), model.get(&address).copied());
            if choice < puts {
                prop_assert_eq!(table.put(address, new), model.insert(address, new).is_some());
            } else {
                prop_assert_eq!(table.take(address), model.remove(&address));
            }
            prop_assert_eq!(table.object_count, model.len());
            if number % 300 == 299 {
                copies.push((table.share(), model.clone()));
            }
        }
        copies.push((table, model));
        for (mut table, model) in copies {
            for (address, object) in model {
                prop_assert_eq!(table.take(address), Some(object));
            }
            prop_assert_eq!((table.object_count, table.large_sizes.len()), (0, 0));
            prop_assert_eq!(free_buckets(&table), table.overflow.len());
            prop_assert_eq!(table.overflow_count, 0);
        }
    }
}

/// Returns the number of overflow buckets that are free.
fn free_buckets(table: &AddressTable) -> usize {
    let known = |index: u32| (index != NO_BUCKET).then_some(index);
    let next = |index: &u32| known(table.overflow.get(*index).next_overflow);
    std::iter::successors(known(table.first_free), next).count()
}

#[test]
fn an_entry_has_its_object() {
    let functions = [RingOperation::Malloc, RingOperation::New, RingOperation::NewArray];
    let sizes = [0, 1, LARGE_BYTES - 1, LARGE_BYTES];
    for key in [0, 1, (1 << KEY_BITS) - 1] {
        for ordinal in [1, (1 << ORDINAL_BITS) - 1] {
            for (size, function) in sizes.iter().flat_map(|size| functions.map(|it| (*size, it))) {
                let object = HeapObject::new(ordinal, size, function);
                let entry = BucketEntry::new(key, object);
                assert_eq!((entry.key(), entry.object()), (key, object));
                assert_eq!((object.ordinal, object.size()), (ordinal, size));
                assert!(object.is_usual_release(usual_release(function)));
                let address = key << 3;
                let mut table = AddressTable::new();
                assert!(!table.put(address, object));
                assert_eq!(table.get(address), Some(object));
                assert_eq!(table.take(address), Some(object));
            }
        }
    }
}

/// Returns the bytes of a table.
fn bytes(table: &AddressTable) -> usize {
    table.bytes_apart(&AddressTable::new())
}

/// The limit of the collector's memory holds for neighbours, which fill their buckets, as for
/// objects that are each in a page of their own, and for any number of them. Objects of 8 bytes
/// take more, 42 bytes; no allocator of C gives such ones.
#[test]
fn an_object_takes_few_bytes() {
    let sizes = [16, 24, 32, 48, 112, 528, 1024, 2048, 4096, 4112, 8192, 16_384, 65_552, 1 << 26];
    for size in sizes {
        let mut table = AddressTable::new();
        for number in 0..400_000_u64 {
            assert!(!table.put(0x5555_0000_0000 + number * size, object(1, size)));
            let count = number + 1;
            if count % 33_333 == 0 || count.is_power_of_two() && count > 1_000 {
                let each = bytes(&table) as f64 / count as f64;
                assert!(each < 38.0, "{count} objects of {size} bytes: {each} of the table");
            }
        }
    }
}

/// Short-lived objects among those that stay do not leave ever more overflow buckets behind.
#[test]
fn overflow_buckets_follow_what_is_live() {
    let mut table = AddressTable::new();
    let (count, young) = (50_000_u64, 5_000_u64);
    let mut ordinal = 0;
    let mut put = |table: &mut AddressTable, address: u64| {
        ordinal += 1;
        assert!(!table.put(address, object(ordinal, 40)));
    };
    (0..count).for_each(|number| put(&mut table, number * 96));
    let mut used = Vec::new();
    for round in 0..100_u64 {
        // Between the others, each time at other places.
        let address = |number: u64| (number * 9 + round * 7) % count * 96 + 48;
        (0..young).for_each(|number| put(&mut table, address(number)));
        let at_peak = bytes(&table) as f64 / (count + young) as f64;
        assert!(at_peak < 38.0, "{at_peak} bytes for an object in round {round}");
        for number in (0..young).rev() {
            assert!(table.take(address(number)).is_some());
        }
        used.push(table.overflow_count);
    }
    assert!(used[99] < table.buckets.len() / 4, "{used:?} of {}", table.buckets.len());
}

/// Overflow buckets are used again for other buckets.
#[test]
fn a_heap_elsewhere_takes_little_more_memory() {
    let mut table = AddressTable::new();
    let count = 100_000;
    let address = |round: u64, number: u64| (round << 40) + number * 32;
    (0..count).for_each(|number| assert!(!table.put(address(0, number), object(1, 8))));
    let first = bytes(&table);
    for round in 1..10 {
        for number in 0..count {
            assert!(table.take(address(round - 1, number)).is_some());
            assert!(!table.put(address(round, number), object(1, 8)));
        }
    }
    let last = bytes(&table);
    assert!(last < first + first / 5 && last < 40 * count as usize, "{last} after {first}");
}

/// A copy has pages of its own only for buckets that it changes.
#[test]
fn copies_share_their_buckets() {
    let mut table = AddressTable::new();
    let address = |number: u64| number * 48;
    (0..100_000).for_each(|number| assert!(!table.put(address(number), object(1, 40))));
    let mut copy = table.share();
    assert_eq!((table.own_pages(), copy.own_pages()), (0, 0));
    for number in [7, 70_000] {
        assert!(copy.take(address(number)).is_some());
        assert!(!copy.put(address(number), object(2, 40)));
    }
    assert!((2..=4).contains(&copy.own_pages()), "{} pages", copy.own_pages());
    assert_eq!(table.get(address(7)), Some(object(1, 40)));
}

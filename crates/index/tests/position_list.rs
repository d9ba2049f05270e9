//! Positions: each list is read as it was written, and phrases and proximity equal a plain search.

use larder_index::position_list::{PositionLists, count_phrase, is_near, write_position_list};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn write(lists: &[Vec<u32>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    lists.iter().for_each(|list| write_position_list(&mut bytes, list));
    bytes
}

#[test]
fn lists_take_few_bytes() {
    for (list, length) in [
        (vec![0], 1),
        (vec![63], 1),
        (vec![64], 2),
        (vec![0, 1, 2], 4),
        (vec![100, 200], 3),
        (vec![u32::MAX], 5),
        (vec![0, u32::MAX], 7),
    ] {
        assert_eq!(write(std::slice::from_ref(&list)).len(), length, "{list:?}");
    }
}

#[test]
fn malformed_lists_are_errors() {
    for bytes in [
        &b""[..],
        b"\x80",
        b"\x00",
        b"\x04\x01",
        b"\x02\x80",
        b"\x04\x01\x00",
        b"\xff\xff\xff\xff\x7f",
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0c\xff\xff\xff\xff\x0f\x01",
    ] {
        let mut positions = vec![7];
        assert!(PositionLists::new(bytes).read(&mut positions).is_err(), "{bytes:?}");
    }
    assert!(PositionLists::new(b"\x04\x01").skip(1).is_err());
    assert!(PositionLists::new(b"\x03").skip(2).is_err());
}

/// Ascending lists of positions.
fn list() -> impl Strategy<Value = Vec<u32>> {
    let sizes = prop_oneof![0..12_u32, 0..300_u32, any::<u32>()];
    prop::collection::btree_set(sizes, 1..20).prop_map(|list| list.into_iter().collect())
}

proptest! {
    #[test]
    fn lists_are_read_as_they_were_written(
        lists in prop::collection::vec(list(), 1..10),
        skipped in 0..10_usize,
    ) {
        let bytes = write(&lists);
        let skipped = skipped.min(lists.len());
        let mut reader = PositionLists::new(&bytes);
        prop_assert_eq!(reader.skip(skipped).unwrap(), &write(&lists[..skipped])[..]);
        let mut positions = Vec::new();
        for list in &lists[skipped..] {
            reader.read(&mut positions).unwrap();
            prop_assert_eq!(&positions, list);
        }
        prop_assert!(reader.remaining_bytes().is_empty());
    }

    #[test]
    fn any_bytes_are_lists_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let (mut reader, mut positions) = (PositionLists::new(&bytes), Vec::new());
        while reader.read(&mut positions).is_ok() {
            prop_assert!(positions.is_sorted_by(|a, b| a < b) && !positions.is_empty());
        }
    }

    /// A text over an alphabet of three words has a phrase where a plain search finds it.
    #[test]
    fn phrases_are_where_a_plain_search_finds_them(
        text in prop::collection::vec(0..3_usize, 1..40),
        phrase in prop::collection::vec(0..3_usize, 1..4),
    ) {
        let positions = |word: usize| -> Vec<u32> {
            (0..).zip(&text).filter(|(_, other)| **other == word).map(|(at, _)| at).collect()
        };
        let lists: Vec<Vec<u32>> = phrase.iter().map(|word| positions(*word)).collect();
        let terms: Vec<(&[u32], u32)> = lists.iter().map(Vec::as_slice).zip(0..).collect();
        let expected = text.windows(phrase.len()).filter(|window| **window == phrase).count();
        prop_assert_eq!(count_phrase(&terms), expected);
    }

    #[test]
    fn nearness_is_a_distance(
        first in prop::collection::btree_set(0..60_u32, 1..6),
        second in prop::collection::btree_set(0..60_u32, 1..6),
        distance in 0..8_u32,
    ) {
        let listed = |set: &BTreeSet<u32>| set.iter().copied().collect::<Vec<_>>();
        let expected = first
            .iter()
            .any(|a| second.iter().any(|b| a != b && a.abs_diff(*b) <= distance));
        prop_assert_eq!(is_near(&listed(&first), &listed(&second), distance), expected);
        prop_assert_eq!(is_near(&listed(&second), &listed(&first), distance), expected);
    }
}

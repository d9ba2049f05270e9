//! The heads of a branch among changesets with numbers, parents before their children.

use std::collections::{BTreeSet, BinaryHeap};

/// Removes the heads that are ancestors of others, through other branches or through changesets
/// that do not count. The heads are in ascending order; the oldest one that can be an ancestor is
/// `oldest`.
pub(crate) fn remove_ancestors<P: IntoIterator<Item = u32>>(
    heads: &mut Vec<u32>,
    oldest: u32,
    parents_of: impl Fn(u32) -> P,
) {
    // A walk towards older changesets, none of which is visited twice.
    let mut pending = BinaryHeap::new();
    let mut ancestors = BTreeSet::new();
    heads.iter().for_each(|head| pending.extend(parents_of(*head)));
    let mut before = u32::MAX;
    while let Some(number) = pending.pop().filter(|number| *number >= oldest) {
        if number != before {
            before = number;
            if heads.binary_search(&number).is_ok() {
                ancestors.insert(number);
            }
            pending.extend(parents_of(number).into_iter().filter(|parent| *parent >= oldest));
        }
    }
    heads.retain(|head| !ancestors.contains(head));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_through_other_branches_are_removed() {
        let parents: [&[u32]; 8] = [&[], &[0], &[1], &[0], &[2, 3], &[3], &[0], &[5, 6]];
        let check = |heads: &[u32], expected: &[u32]| {
            let mut heads = heads.to_vec();
            let oldest = heads[0];
            remove_ancestors(&mut heads, oldest, |number| parents[number as usize].to_vec());
            assert_eq!(heads, expected);
        };
        check(&[1, 4], &[4]);
        check(&[1, 3, 4, 7], &[4, 7]);
        check(&[4, 7], &[4, 7]);
        check(&[6], &[6]);
    }
}

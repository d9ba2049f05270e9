//! Finding ids in a list: a hash table of the numbers of their places.
//!
//! A map of ids to values has room for twice as many as it holds, and keeps three times as much
//! while it grows. Here the list holds ids and values, without gaps, and the table only has four
//! bytes for each place.

/// A hash table of places in a list. The list is passed to each call as a function from a place to
/// the id there.
#[derive(Default)]
pub(crate) struct IdIndex {
    /// Places, plus one; 0 is a free slot. Their number is a power of two.
    slots: Vec<u32>,
    len: usize,
}

/// The least number of slots.
const MIN_SLOTS: usize = 1 << 10;

impl IdIndex {
    /// Returns the place of an id.
    pub(crate) fn find<'l>(
        &self,
        id: &[u8; 20],
        id_at: impl Fn(usize) -> Option<&'l [u8; 20]>,
    ) -> Option<usize> {
        let mut slot = self.first_slot(id)?;
        loop {
            let place = (*self.slots.get(slot)? as usize).checked_sub(1)?;
            if id_at(place) == Some(id) {
                return Some(place);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Adds the id at the next place of the list, which it does not have yet.
    pub(crate) fn push<'l>(&mut self, id_at: impl Fn(usize) -> Option<&'l [u8; 20]>) {
        // A quarter of the slots is free, so that each search ends.
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.slots = vec![0; (self.slots.len() * 2).max(MIN_SLOTS)];
            for place in 0..self.len {
                self.fill(place, &id_at);
            }
        }
        self.fill(self.len, &id_at);
        self.len += 1;
    }

    fn fill<'l>(&mut self, place: usize, id_at: &impl Fn(usize) -> Option<&'l [u8; 20]>) {
        let Some(mut slot) = id_at(place).and_then(|id| self.first_slot(id)) else { return };
        while self.slots.get(slot).is_some_and(|taken| *taken != 0) {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        if let Some(free) = self.slots.get_mut(slot) {
            *free = place as u32 + 1;
        }
    }

    /// Returns the slot from which an id is searched: ids are digests, so any of their bits are a
    /// hash. `None`: there are no slots.
    fn first_slot(&self, id: &[u8; 20]) -> Option<usize> {
        let (first, _) = id.split_first_chunk::<8>()?;
        Some(u64::from_le_bytes(*first) as usize & self.slots.len().checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ids_are_found() {
        let mut index = IdIndex::default();
        let mut ids: Vec<[u8; 20]> = Vec::new();
        let id = |number: usize| {
            let mut id = [0; 20];
            // Neighbours, and pairs with the same slot.
            id[..8].copy_from_slice(&(number as u64 / 2).to_le_bytes());
            id[19] = number as u8;
            id
        };
        for number in 0..5_000 {
            assert_eq!(index.find(&id(number), |place| ids.get(place)), None);
            ids.push(id(number));
            index.push(|place| ids.get(place));
        }
        for number in 0..5_000 {
            assert_eq!(index.find(&id(number), |place| ids.get(place)), Some(number));
        }
    }
}

//! A table of pages that a process and the children of its forks share until one of them changes a
//! page: a fork copies one pointer for each page, and memory follows what differs.

use std::rc::Rc;

/// A table of values in pages of `LEN`.
#[derive(Debug, Clone)]
pub(super) struct SharedPages<T, const LEN: usize> {
    pages: Vec<Rc<[T; LEN]>>,
    len: usize,
    /// The value of places that are not yet in use.
    empty: T,
}

impl<T: Copy, const LEN: usize> SharedPages<T, LEN> {
    /// Creates an empty table.
    pub(super) fn new(empty: T) -> SharedPages<T, LEN> {
        SharedPages { pages: Vec::new(), len: 0, empty }
    }

    /// Returns the value at an index that is in the table.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> &T {
        &self.pages[index as usize / LEN][index as usize % LEN]
    }

    /// Returns the value at an index that is in the table, to be changed: a shared page is copied.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut Rc::make_mut(&mut self.pages[index as usize / LEN])[index as usize % LEN]
    }

    /// Adds a value; returns its index.
    pub(super) fn push(&mut self, value: T) -> u32 {
        let index = self.len as u32;
        if self.len.is_multiple_of(LEN) {
            self.pages.push(Rc::new([self.empty; LEN]));
        }
        self.len += 1;
        *self.get_mut(index) = value;
        index
    }

    /// Returns how many pages are not those of another table.
    #[cfg(test)]
    pub(super) fn own_pages(&self) -> usize {
        self.pages.iter().filter(|page| Rc::strong_count(page) == 1).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_what_neither_changes() {
        let mut table = SharedPages::<u32, 4>::new(0);
        (0..40).for_each(|number| assert_eq!(table.push(number * 10), number));
        let mut copy = table.clone();
        assert_eq!((table.own_pages(), copy.own_pages()), (0, 0));
        *copy.get_mut(5) = 1;
        *table.get_mut(39) = 2;
        copy.push(3);
        assert_eq!((*table.get(5), *copy.get(5)), (50, 1));
        assert_eq!((*table.get(39), *copy.get(39), *copy.get(40)), (2, 390, 3));
        // Two pages have two versions, and the copy has a new one.
        assert_eq!((table.own_pages(), copy.own_pages()), (2, 3));
        drop(copy);
        assert_eq!(table.own_pages(), 10);
    }
}

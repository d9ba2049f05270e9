//! A table that a process and the children of its forks share in pages until one of them changes a
//! page: memory follows what differs.
//!
//! Before the first fork the values are in one piece, which is the fastest; most processes never
//! fork.

use std::rc::Rc;

/// The pages that are made before the memory of their values is given back.
const PAGES_IN_STEP: usize = 1024;

/// A table of values; copies share pages of `LEN` of them.
#[derive(Debug)]
pub(super) enum SharedPages<T, const LEN: usize> {
    /// Nothing is shared, and nothing was.
    Whole(Vec<T>),
    /// The pages, and the number of values.
    Paged(Vec<TablePage<T, LEN>>, usize),
}

/// A page of a table.
#[derive(Debug)]
pub(super) enum TablePage<T, const LEN: usize> {
    /// No other table has it.
    Own(Box<[T; LEN]>),
    /// Perhaps other tables have it, too.
    Shared(Rc<[T; LEN]>),
}

impl<T: Copy, const LEN: usize> SharedPages<T, LEN> {
    /// Creates an empty table.
    pub(super) fn new() -> SharedPages<T, LEN> {
        SharedPages::Whole(Vec::new())
    }

    /// Returns the value at an index that is in the table.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> &T {
        match self {
            SharedPages::Whole(values) => &values[index as usize],
            SharedPages::Paged(pages, _) => {
                let place = index as usize % LEN;
                match &pages[index as usize / LEN] {
                    TablePage::Own(values) => &values[place],
                    TablePage::Shared(values) => &values[place],
                }
            }
        }
    }

    /// Returns the value at an index that is in the table, to be changed: a shared page is copied.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut T {
        match self {
            SharedPages::Whole(values) => &mut values[index as usize],
            SharedPages::Paged(pages, _) => {
                &mut pages[index as usize / LEN].values_mut()[index as usize % LEN]
            }
        }
    }

    /// Adds a value; returns its index.
    #[inline]
    pub(super) fn push(&mut self, value: T) -> u32 {
        match self {
            SharedPages::Whole(values) => {
                values.push(value);
                (values.len() - 1) as u32
            }
            SharedPages::Paged(pages, len) => {
                let index = *len;
                if index.is_multiple_of(LEN) {
                    pages.push(TablePage::Own(Box::new([value; LEN])));
                } else if let Some(page) = pages.last_mut() {
                    page.values_mut()[index % LEN] = value;
                }
                *len += 1;
                index as u32
            }
        }
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        match self {
            SharedPages::Whole(values) => values.len(),
            SharedPages::Paged(_, len) => *len,
        }
    }

    /// Returns a copy that shares all pages with this table.
    pub(super) fn share(&mut self) -> SharedPages<T, LEN> {
        let (shared, len) = match self {
            SharedPages::Paged(pages, len) => {
                let pages = pages.iter_mut().map(TablePage::share).collect();
                return SharedPages::Paged(pages, *len);
            }
            SharedPages::Whole(values) => {
                let len = values.len();
                (into_pages(std::mem::take(values)), len)
            }
        };
        let copy = shared.iter().map(Rc::clone).map(TablePage::Shared).collect();
        *self = SharedPages::Paged(shared.into_iter().map(TablePage::Shared).collect(), len);
        SharedPages::Paged(copy, len)
    }

    /// Returns the bytes of the pages that are not those of a table that was shared with this one.
    pub(super) fn bytes_apart(&self, other: &SharedPages<T, LEN>) -> usize {
        let pages = match (self, other) {
            (SharedPages::Paged(pages, _), SharedPages::Paged(others, _)) => {
                let is_shared = |page: &TablePage<T, LEN>, other: &TablePage<T, LEN>| match page {
                    TablePage::Shared(page) => {
                        matches!(other, TablePage::Shared(other) if Rc::ptr_eq(page, other))
                    }
                    TablePage::Own(_) => false,
                };
                let both = pages.iter().zip(others);
                pages.len() - both.filter(|(page, other)| is_shared(page, other)).count()
            }
            (SharedPages::Paged(pages, _), SharedPages::Whole(_)) => pages.len(),
            (SharedPages::Whole(values), _) => values.len().div_ceil(LEN),
        };
        pages * size_of::<[T; LEN]>()
    }

    /// Returns how many pages are not those of another table.
    #[cfg(test)]
    pub(super) fn own_pages(&self) -> usize {
        let is_own = |page: &&TablePage<T, LEN>| match page {
            TablePage::Own(_) => true,
            TablePage::Shared(values) => Rc::strong_count(values) == 1,
        };
        match self {
            SharedPages::Whole(values) => values.len().div_ceil(LEN),
            SharedPages::Paged(pages, _) => pages.iter().filter(is_own).count(),
        }
    }
}

/// Copies values to pages, from the end on: the memory of those that were copied is given back
/// meanwhile.
fn into_pages<T: Copy, const LEN: usize>(mut values: Vec<T>) -> Vec<Rc<[T; LEN]>> {
    let page = |values: &[T]| {
        let first = *values.first()?;
        let value = |place| values.get(place).copied().unwrap_or(first);
        Some(Rc::new(std::array::from_fn(value)))
    };
    let step = LEN * PAGES_IN_STEP;
    let mut pages = Vec::with_capacity(values.len().div_ceil(LEN));
    while !values.is_empty() {
        let start = (values.len() - 1) / step * step;
        pages.extend(values[start..].chunks(LEN).rev().filter_map(page));
        values.truncate(start);
        values.shrink_to_fit();
    }
    pages.reverse();
    pages
}

impl<T: Copy, const LEN: usize> TablePage<T, LEN> {
    #[inline]
    fn values_mut(&mut self) -> &mut [T; LEN] {
        match self {
            TablePage::Own(values) => values,
            shared @ TablePage::Shared(_) => shared.unshare(),
        }
    }

    /// Makes the page one of this table alone: from then on it is changed without a look at others.
    #[cold]
    #[inline(never)]
    fn unshare(&mut self) -> &mut [T; LEN] {
        if let TablePage::Shared(values) = self {
            *self = TablePage::Own(Box::new(**values));
        }
        match self {
            TablePage::Own(values) => values,
            TablePage::Shared(values) => Rc::make_mut(values),
        }
    }

    /// Returns the same page for another table.
    fn share(&mut self) -> TablePage<T, LEN> {
        let shared = match self {
            TablePage::Shared(values) => Rc::clone(values),
            TablePage::Own(values) => Rc::new(**values),
        };
        *self = TablePage::Shared(Rc::clone(&shared));
        TablePage::Shared(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_values_in_order() {
        for len in [0, 1, 3, 4, 4 * PAGES_IN_STEP - 1, 4 * PAGES_IN_STEP, 9 * PAGES_IN_STEP + 6] {
            let pages = into_pages::<usize, 4>((0..len).collect());
            assert_eq!(pages.len(), len.div_ceil(4));
            let values = pages.iter().flat_map(|page| page.iter().copied());
            assert!(values.take(len).eq(0..len), "{len}");
        }
    }

    #[test]
    fn a_copy_shares_what_neither_changes() {
        let mut table = SharedPages::<u32, 4>::new();
        (0..42).for_each(|number| assert_eq!(table.push(number * 10), number));
        let mut copy = table.share();
        assert_eq!((table.own_pages(), copy.own_pages()), (0, 0));
        *copy.get_mut(5) = 1;
        *table.get_mut(39) = 2;
        assert_eq!((copy.push(3), copy.push(4), copy.push(5)), (42, 43, 44));
        assert_eq!((*table.get(5), *copy.get(5)), (50, 1));
        assert_eq!((*table.get(39), *copy.get(39), *copy.get(42), *copy.get(44)), (2, 390, 3, 5));
        // Three pages have two versions, and the copy has a new one.
        assert_eq!((table.own_pages(), copy.own_pages()), (3, 4));
        // A copy of the copy shares the pages of both.
        let mut third = copy.share();
        assert_eq!((copy.own_pages(), third.own_pages()), (0, 0));
        *third.get_mut(5) += 1;
        assert_eq!((*table.get(5), *copy.get(5), *third.get(5)), (50, 1, 2));
        // The pages are compared by place.
        let page = size_of::<[u32; 4]>();
        assert_eq!((third.bytes_apart(&copy), copy.bytes_apart(&table)), (page, 4 * page));
        drop((copy, third));
        assert_eq!(table.own_pages(), 11);
        assert_eq!((0..42).filter(|number| *table.get(*number) == number * 10).count(), 41);
    }
}
